"""The servo bus: serial port, Dynamixel protocol, control tables, potentiometer board."""
