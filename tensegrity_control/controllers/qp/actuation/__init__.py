"""From accelerations to what actuators receive: tension bounds, stretch of cables, gear losses, set points."""
