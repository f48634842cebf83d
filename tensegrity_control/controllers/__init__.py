"""Controllers behind one face: state and reference in, actuator commands out."""
