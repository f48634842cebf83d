"""Blocks of robot files that the driver reads; `load_robot` imports this where a file has one."""

from __future__ import annotations

from tensegrity_dynamics.robots.extensions import register_block

from .hardware.file_schema import HardwareBlock, read_servos
from .servos.motors import actuator_motors

register_block("servos", HardwareBlock, read_servos, actuator_motors)
