"""The `servos` block of a robot file: the bus, its servos and the settings of the driver (docs/robot_file.md)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from tensegrity_dynamics.errors import unknown_name
from tensegrity_dynamics.robots.actuator import Actuator
from tensegrity_dynamics.robots.file_errors import Problems
from tensegrity_dynamics.robots.schema import Block, Count, Name, PositiveLength, PositiveNumber, Text

from ..calibration.homing_settings import HomingSettings
from ..safety.settings import SafetySettings
from ..servos.motors import MOTORS

BOARD_MODELS = ("AX-12A",)
"""Servo models that the firmware of the potentiometer board drives."""
BOARD_CHANNELS = 16
"""Largest number of channels of the firmware of the potentiometer board."""
Channel = Annotated[int, Field(ge=0, strict=True)]


class ServoDefaults(Block):
    """Default values of the fields of all servos."""

    model: Text | None = None
    spool_radius: PositiveLength | None = None
    gear: PositiveNumber = 1.0
    direction: Literal[1, -1] = 1


class ServoBlock(Block):
    """One servo; missing fields come from the defaults."""

    actuator: Name
    id: Annotated[int, Field(ge=0, le=253, strict=True)]
    model: Text | None = None
    spool_radius: PositiveLength | None = None
    gear: PositiveNumber | None = None
    direction: Literal[1, -1] | None = None
    potentiometer: Channel | None = None


class BoardBlock(Block):
    """Potentiometer board at a separate serial port."""

    baud_rate: Count = 115_200
    channels: Count | None = None


class GainsBlock(Block):
    """Gains of the position loops of servos in wheel mode; the driver refuses gains that are unstable with its
    period."""

    proportional: Annotated[float, Field(gt=0)] | None = None
    integral: Annotated[float, Field(ge=0)] | None = None


class HardwareBlock(Block):
    """The servo bus and its servos."""

    protocol: Literal[1, 2] = 2
    baud_rate: Count = 1_000_000
    position_loop: Literal["driver", "board"] = "driver"
    gains: GainsBlock = GainsBlock()
    calibration: Text | None = None
    safety: SafetySettings = SafetySettings()
    homing: HomingSettings = HomingSettings()
    board: BoardBlock = BoardBlock()
    defaults: ServoDefaults = ServoDefaults()
    servos: Annotated[list[ServoBlock], Field(min_length=1)]


def read_servos(block: HardwareBlock, actuators: tuple[Actuator, ...], problems: Problems) -> dict[str, Any]:
    """Block as plain data: servos completed with the defaults; safety and homing as stated in the file."""
    defaults = block.defaults.model_dump()
    servos = []
    for servo in block.servos:
        own = servo.model_dump()
        servos.append({**own, **{name: value for name, value in defaults.items() if own[name] is None}})
    _check_servos(servos, block.board.channels, actuators, problems)
    if block.position_loop == "board":
        _check_board_drives(servos, block, problems)
    return {
        **block.model_dump(include={"protocol", "baud_rate", "position_loop", "calibration", "board"}),
        "safety": block.safety.model_dump(mode="json", exclude_unset=True),
        "homing": block.homing.model_dump(mode="json", exclude_unset=True),
        "gains": block.gains.model_dump(exclude_none=True),
        "servos": servos,
    }


def _check_servos(
    servos: list[dict[str, Any]], channels: int | None, actuators: tuple[Actuator, ...], problems: Problems
) -> None:
    """Check names, duplicate numbers, channels of the board, and fields missing in both servo and defaults."""
    names = [actuator.name for actuator in actuators]
    wound = [actuator.name for actuator in actuators if actuator.motion in ("tendon", "prismatic")]
    turned = [actuator.name for actuator in actuators if actuator.motion == "revolute"]
    used: dict[str, set[Any]] = {"id": set(), "actuator": set(), "potentiometer": set()}
    for i, servo in enumerate(servos):
        path = ("servos", "servos", i)
        if servo["actuator"] not in names:
            problems.add((*path, "actuator"), unknown_name("actuator", servo["actuator"], names))
        for field, values in used.items():
            if servo[field] in values:
                problems.add((*path, field), f"{servo[field]} is used twice; every servo needs its own {field}.")
            elif servo[field] is not None:
                values.add(servo[field])
        if channels is not None and (servo["potentiometer"] or 0) >= channels:
            problems.add(
                (*path, "potentiometer"),
                f"the board has {channels} channels, the first one is 0; found {servo['potentiometer']}.",
            )
        for field in ("model", "spool_radius") if servo["actuator"] in wound else ("model",):
            if servo[field] is None:
                problems.add(path, f"no {field} is given, here or under servos.defaults; add one.")
        if servo["model"] not in (None, *MOTORS):
            problems.add((*path, "model"), unknown_name("servo model", servo["model"], MOTORS))
        if servo["actuator"] in turned and servo["spool_radius"] is not None:
            problems.add(
                path,
                f"{servo['actuator']} is a joint that turns; its pulley has a radius already. Leave spool_radius out, "
                "and say by gear how many times the servo turns for one turn of the joint.",
            )


def _check_board_drives(servos: list[dict[str, Any]], block: HardwareBlock, problems: Problems) -> None:
    """Check servos for a board that closes the position loop: protocol 1, wheel mode, each with a potentiometer."""
    for i, servo in enumerate(servos):
        path = ("servos", "servos", i)
        if servo["model"] not in (None, *BOARD_MODELS):
            problems.add(
                (*path, "model"),
                f"position_loop: board drives {', '.join(BOARD_MODELS)} alone; found {servo['model']}. Take "
                "position_loop: driver.",
            )
        elif servo["potentiometer"] is None or servo["potentiometer"] >= BOARD_CHANNELS:
            problems.add(
                (*path, "potentiometer"),
                f"position_loop: board closes the loop by the potentiometer; give its channel, 0 to "
                f"{BOARD_CHANNELS - 1}.",
            )
    if block.protocol != 1:
        problems.add(("servos", "protocol"), "position_loop: board speaks protocol 1 to its servos; set protocol: 1.")
