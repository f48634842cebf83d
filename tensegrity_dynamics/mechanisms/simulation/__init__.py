"""Integration of mechanisms in time, with their actuators."""
