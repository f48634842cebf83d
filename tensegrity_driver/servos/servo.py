"""What the bus knows of one servo: its registers in blocks, its last reading, and what it was last sent.

Two blocks of registers that lie in one piece are read in turn: what is measured, in every cycle, and from time to time
a longer one that also tells the state (torque, watchdog, ceilings). A servo is asked for its state at once after it was
silent or said that something is wrong with it.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cache
from operator import mul

from ..bus.control_tables import DIRECTION, MODELS, Field, ServoModel
from ..bus.dynamixel_protocol import ALERT, Status
from ..spools.readings import ServoReading

MEASURED = (
    "present_position", "present_velocity", "present_load", "present_current", "present_voltage", "present_temperature",
)  # fmt: skip
STATE = (
    "torque_enable", "torque_limit", "hardware_error", "bus_watchdog", "goal_pwm", "goal_current", "profile_velocity",
)  # fmt: skip
OF_THE_SERVO = frozenset({"voltage", "angle_limit", "overheating", "overload"})
"""Error bits of protocol 1 about the servo itself; the others are about the instruction it got."""
_NONE: frozenset[str] = frozenset()
_CODES = {(1, False): "B", (2, False): "H", (4, False): "I", (1, True): "b", (2, True): "h", (4, True): "i"}


class RegisterBlock:
    """Registers of one model in one piece, decoded together.

    Args:
        model: of the servo. names: registers in it; those that the model has not are left out.

    Attributes:
        address, size: of the block. names: registers in it, by address. place: where each is among them.
    """

    def __init__(self, model: ServoModel, names: tuple[str, ...]) -> None:
        fields = sorted((model.fields[name] for name in names if name in model.fields), key=lambda each: each.address)
        self.address = fields[0].address
        self.size = fields[-1].end - self.address
        self.names = tuple(each.name for each in fields)
        self.place = {name: place for place, name in enumerate(self.names)}
        self.measured = tuple(self.place.get(name, -1) for name in MEASURED)
        self._factors = tuple(each.factor for each in fields)
        self._directions = tuple(place for place, each in enumerate(fields) if each.coding == "direction bit")
        code, end = "<", self.address
        for each in fields:
            code += f"{each.address - end}x{_CODES[each.size, each.coding == 'signed']}"
            end = each.end
        self._struct = struct.Struct(code)

    def numbers(self, data: bytes) -> tuple[int, ...]:
        """The numbers as they are in the registers, in the order of `names`."""
        return self._struct.unpack(data)

    def values(self, numbers: tuple[int, ...]) -> list[float | None]:
        """The values of numbers in SI units, and None behind them, for registers that the model has not."""
        found: list[float | None] = [*map(mul, self._factors, numbers), None]
        for place in self._directions:
            if numbers[place] >= DIRECTION:
                found[place] = self._factors[place] * (DIRECTION - numbers[place])
        return found


@cache
def blocks_of(model_name: str) -> tuple[RegisterBlock, RegisterBlock]:
    """The measured block and the one with the state of a model."""
    model = MODELS[model_name]
    return RegisterBlock(model, MEASURED), RegisterBlock(model, STATE + MEASURED)


class Torque(Enum):
    """What is known about a servo's torque."""

    OFF = "off"
    ASKED = "asked for"
    ON = "on"


@dataclass
class Servo:
    """One servo of the robot.

    Attributes:
        name: its actuator. id, model, channel: as the robot's file says; channel of its potentiometer, or None.
        reading: the last one. age: cycles since it answered.
        prepared: set up, and not restarted since. unsure: it was silent for so long that it may have restarted.
        state_due: its state is to be read in the next cycle. alert: it says that it has an error (protocol 2).
        torque: as asked for and confirmed. watchdog: armed by us.
        sent: raw values of ceilings last written, by register; all are part of the state. goal: what it is driven by.
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
    torque: Torque = Torque.OFF
    watchdog: bool = False
    sent: dict[str, int] = field(default_factory=dict)
    ceiling: int | None = None

    def __post_init__(self) -> None:
        model = self.model
        self.reading = ServoReading(self.name)
        self.measured, self.state = blocks_of(model.name)
        self.goal = model.field("goal_position" if model.counts_turns else "moving_speed")
        # an angle at the end of its range only says that the shaft is there or in the dead zone beyond
        self._full = None if model.counts_turns else 1023
        self._asked: dict[str, tuple[float, int | None]] = {}

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
        numbers = block.numbers(status.data)
        values = block.values(numbers)
        position, velocity, load, current, voltage, temperature = block.measured
        self.age, self.state_due = 0, False
        old = self.reading
        torque_on, watchdog, errors = old.torque_on, old.watchdog, old.errors
        if self.model.protocol == 1:
            errors = self.model.errors(status.error) & OF_THE_SERVO if status.error else _NONE
        else:
            self.alert = status.error >= ALERT
            if not self.alert:
                errors = _NONE
            elif not with_state:
                self.state_due = not errors
        if with_state:
            place = block.place
            torque_on = numbers[place["torque_enable"]] != 0
            if "bus_watchdog" in place:
                watchdog = numbers[place["bus_watchdog"]] > 0
                bits = numbers[place["hardware_error"]]
                errors = self.model.errors(bits) if bits else _NONE
            self._compare(torque_on, watchdog, numbers)
        known = self._full is None or 0 < numbers[position] < self._full
        self.reading = ServoReading(
            self.name,
            values[position] if known else None,
            values[velocity],
            old.sensor,
            values[load],
            values[current],
            values[temperature],
            values[voltage],
            errors,
            0,
            old.sensor_age,
            torque_on,
            watchdog,
        )

    def take_sensor(self, counts: float | None) -> None:
        """Take what its potentiometer says; None: it was not read in this cycle."""
        if counts is None:
            self.reading = replace(self.reading, sensor_age=self.reading.sensor_age + 1)
        else:
            self.reading = replace(self.reading, sensor=counts, sensor_age=0)

    def changed(self, register: Field, value: float) -> bytes | None:
        """What to write where the nearest value for a register differs from the last one; raises BusError for none."""
        name = register.name
        # the quick way: nothing was asked since, and nobody (a preparation, say) has written something else
        if self._asked.get(name) == (value, self.sent.get(name)):
            return None
        raw = register.encode_nearest(value)
        self._asked[name] = (value, raw)
        if self.sent.get(name) == raw:
            return None
        self.sent[name] = raw
        return raw.to_bytes(register.size, "little")

    def _compare(self, torque_on: bool, watchdog: bool | None, numbers: tuple[int, ...]) -> None:
        """Compare its state with what was asked for; a servo that lost torque or watchdog by itself has restarted."""
        self.unsure = False
        if self.torque is not Torque.ON or not torque_on or (self.watchdog and watchdog is False):
            if self.torque is Torque.ASKED and torque_on:
                self.torque = Torque.ON
            elif self.prepared and (self.torque is Torque.ON or (self.watchdog and watchdog is False)):
                self.prepared = False
                self.torque = Torque.ON if torque_on else Torque.OFF
                self.watchdog = False
                self.sent.clear()
        place = self.state.place
        for name in [name for name, raw in self.sent.items() if numbers[place[name]] != raw]:
            del self.sent[name]  # it got lost on the way, and is written again
