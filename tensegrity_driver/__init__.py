"""Driver of the servos that wind the tendons: bus, calibration, position loops, safety, emulator."""
