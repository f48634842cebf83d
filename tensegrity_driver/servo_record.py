"""What the bus knows of one servo: its registers in blocks, its last reading, and what it was last sent.

Two blocks of registers that lie in one piece are read in turn: what is measured, in every cycle, and from time to time
a longer one that also tells the state (torque, watchdog, ceilings). A servo is asked for its state at once after it was
silent or said that something is wrong with it.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field, replace
from functools import cache

from .control_tables import DIRECTION, MODELS, ServoModel
from .servo_protocol import ALERT, Status
from .servo_state import ServoReading

MEASURED = (
    "present_position", "present_velocity", "present_load", "present_current", "present_voltage", "present_temperature",
)  # fmt: skip
STATE = (
    "torque_enable", "torque_limit", "hardware_error", "bus_watchdog", "goal_pwm", "goal_current", "profile_velocity",
)  # fmt: skip
CEILINGS = ("torque_limit", "goal_pwm", "goal_current", "profile_velocity")
"""State registers that are written when they change, and compared with what was written."""
OF_THE_SERVO = frozenset({"voltage", "angle_limit", "overheating", "overload"})
"""Error bits of protocol 1 about the servo itself; the others are about the instruction it got."""
_CODES = {(1, False): "B", (2, False): "H", (4, False): "I", (1, True): "b", (2, True): "h", (4, True): "i"}


class RegisterBlock:
    """Registers of one model in one piece, decoded together.

    Args:
        model: of the servo. names: registers in it; those that the model has not are left out.
    """

    def __init__(self, model: ServoModel, names: tuple[str, ...]) -> None:
        fields = sorted((model.fields[name] for name in names if name in model.fields), key=lambda each: each.address)
        self.address = fields[0].address
        self.size = fields[-1].end - self.address
        self.names = tuple(each.name for each in fields)
        self._factors = tuple((each.name, each.factor, each.coding == "direction bit") for each in fields)
        code, place = "<", self.address
        for each in fields:
            code += f"{each.address - place}x{_CODES[each.size, each.coding == 'signed']}"
            place = each.end
        self._struct = struct.Struct(code)

    def numbers(self, data: bytes) -> tuple[int, ...]:
        """The numbers as they are in the registers, in the order of `names`."""
        return self._struct.unpack(data)

    def values(self, data: bytes) -> dict[str, float]:
        """The values in SI units by name."""
        found = {}
        for (name, factor, direction), number in zip(self._factors, self._struct.unpack(data), strict=True):
            if direction:
                number = DIRECTION - number if number >= DIRECTION else number
            found[name] = factor * number
        return found


@cache
def blocks_of(model_name: str) -> tuple[RegisterBlock, RegisterBlock]:
    """The measured block and the one with the state of a model."""
    model = MODELS[model_name]
    return RegisterBlock(model, MEASURED), RegisterBlock(model, STATE + MEASURED)


class Torque:
    """What is known about a servo's torque."""

    OFF, ASKED, ON = "off", "asked", "on"


@dataclass
class ServoRecord:
    """One servo of the robot.

    Attributes:
        name: its actuator. id, model, channel: as the robot's file says; channel of its potentiometer, or None.
        reading: the last one. age: cycles since it answered.
        prepared: set up, and not restarted since. unsure: it was silent for so long that it may have restarted.
        state_due: its state is to be read in the next cycle. alert: it says that it has an error (protocol 2).
        torque: as asked for and confirmed. watchdog: armed by us. sent: raw values last written, by register.
        ceiling: raw value that the torque ceiling in EEPROM allows.
    """

    name: str
    id: int
    model: ServoModel
    channel: int | None = None
    reading: ServoReading = field(init=False)
    age: int = 0
    prepared: bool = False
    unsure: bool = False
    state_due: bool = True
    alert: bool = False
    torque: str = Torque.OFF
    watchdog: bool = False
    sent: dict[str, int] = field(default_factory=dict)
    ceiling: int | None = None

    def __post_init__(self) -> None:
        self.reading = ServoReading(self.name)
        self.measured, self.state = blocks_of(self.model.name)
        self._load = "present_load" if "present_load" in self.model.fields else None
        self._current = "present_current" if "present_current" in self.model.fields else None
        # an angle at the end of its range only says that the shaft is there or in the dead zone beyond
        position = self.model.field("present_position")
        self._full = None if self.model.counts_turns else position.factor * 1023

    @property
    def label(self) -> str:
        """For messages."""
        return f"servo {self.id} ({self.name})"

    def missed(self) -> None:
        """It did not answer in this cycle."""
        self.age += 1
        self.state_due = True
        self.reading = replace(self.reading, age=self.age)

    def take(self, status: Status, *, with_state: bool) -> None:
        """Take what it answered."""
        block = self.state if with_state else self.measured
        values = block.values(status.data)
        self.age, self.state_due = 0, False
        old = self.reading
        torque_on, watchdog, errors = old.torque_on, old.watchdog, old.errors
        if self.model.protocol == 1:
            errors = self.model.errors(status.error) & OF_THE_SERVO if status.error else frozenset()
        else:
            self.alert = bool(status.error & ALERT)
            if not self.alert:
                errors = frozenset()
            elif not with_state:
                self.state_due = not errors
        if with_state:
            torque_on = values["torque_enable"] != 0.0
            if "bus_watchdog" in values:
                watchdog = values["bus_watchdog"] > 0.0
                errors = self.model.errors(int(values["hardware_error"]))
            self._compare(torque_on, watchdog, block.numbers(status.data))
        position: float | None = values["present_position"]
        if self._full is not None and not 0.0 < values["present_position"] < self._full:
            position = None
        self.reading = ServoReading(
            self.name,
            position,
            values["present_velocity"],
            old.sensor,
            values[self._load] if self._load else None,
            values[self._current] if self._current else None,
            values["present_temperature"],
            values["present_voltage"],
            errors,
            0,
            old.sensor_age,
            torque_on,
            watchdog,
        )

    def take_sensor(self, counts: float | None) -> None:
        """Take what its potentiometer says; None: it was not read in this cycle."""
        reading = self.reading
        if counts is None:
            self.reading = replace(reading, sensor_age=reading.sensor_age + 1)
        else:
            # frozen only for others: this record owns its reading, and `replace` would cost a tenth of a cycle
            object.__setattr__(reading, "sensor", counts)
            object.__setattr__(reading, "sensor_age", 0)

    def _compare(self, torque_on: bool, watchdog: bool | None, numbers: tuple[int, ...]) -> None:
        """Compare its state with what was asked for; a servo that lost torque or watchdog by itself has restarted."""
        self.unsure = False
        if self.torque == Torque.ASKED and torque_on:
            self.torque = Torque.ON
        elif self.prepared and ((self.torque == Torque.ON and not torque_on) or (self.watchdog and watchdog is False)):
            self.prepared = False
            self.torque = Torque.ON if torque_on else Torque.OFF
            self.watchdog = False
            self.sent.clear()
        found = dict(zip(self.state.names, numbers, strict=True))
        for name in CEILINGS:
            if name in self.sent and found.get(name) != self.sent[name]:
                del self.sent[name]  # it got lost on the way, and is written again
