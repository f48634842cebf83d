"""Choice of the hardware by the name of its port: real servos at a serial port, or emulated ones in this process."""

from __future__ import annotations

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.robots.robot import Robot

from .serial_hardware import SerialHardware

EMULATED = "emulated"
"""Port name of emulated servos inside this process."""


def choose_hardware(
    robot: Robot, port: str, board: str | None, *, own_time: bool = False, patience: float | None = None
) -> SerialHardware:
    """Hardware at a port.

    Args:
        robot: robot with servos. port, board: serial ports, or EMULATED and None.
        own_time: the time of the hardware passes only by `advance`; possible only with emulated servos.
        patience: time to wait for a packet beyond its wire time [s], for real ports; None: determined by the latency
            timer of the USB adapter.

    Raises:
        TensegrityError: no port, or own time with real servos. BusError: the robot cannot be emulated.
    """
    if board and robot.servos.get("position_loop") == "board":
        port = port or board  # the only port
    if not port:
        raise TensegrityError(
            "no port is given; name the serial port of the servos, such as port:=/dev/ttyUSB0, or port:=emulated."
        )
    if port == EMULATED:
        from .emulated_hardware import EmulatedHardware  # imports the simulation, which real servos do not need

        return EmulatedHardware(robot, realtime=not own_time)
    if own_time:
        raise TensegrityError(f"lock-step stops the time, which the servos at {port} cannot; it needs port:=emulated.")
    return SerialHardware(port, board, patience=patience)
