"""Controllers with a common interface: state and reference in, actuator commands out."""
