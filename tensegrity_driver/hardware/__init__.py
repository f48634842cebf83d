"""Hardware of the driver: serial ports or emulated servos."""
