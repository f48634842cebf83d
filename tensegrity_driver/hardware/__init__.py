"""What stands behind the driver: serial ports or emulated servos."""
