"""Blocks of robot files that the driver reads; `load_robot` imports this where a file has one."""

from __future__ import annotations

from tensegrity_dynamics.robots.extensions import register_block

from .hardware.file_schema import HardwareBlock, read_servos

register_block("servos", HardwareBlock, read_servos)
