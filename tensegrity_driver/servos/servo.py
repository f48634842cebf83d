"""State of one servo on the bus: its last reading, the registers last written, and the blocks in which it is read.

Two contiguous blocks of registers are read: the measurements in every cycle, and every few cycles a longer block that
includes the state (torque, watchdog, ceilings). The state is read at once after a servo was silent or reported an
error.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cache
from operator import mul

from ..bus.control_tables import DIRECTION_BIT, MODELS, Register, ServoModel
from ..bus.dynamixel_protocol import ALERT, Status
from ..spools.readings import ServoReading

MEASURED = (
    "present_position", "present_velocity", "present_load", "present_current", "present_voltage", "present_temperature",
)  # fmt: skip
STATE = (
    "torque_enable", "torque_limit", "hardware_error", "position_d_gain", "position_p_gain", "bus_watchdog",
    "goal_pwm", "goal_current", "profile_velocity",
)  # fmt: skip
HARDWARE_ERRORS_1 = frozenset({"voltage", "angle_limit", "overheating", "overload"})
"""Protocol 1: error bits of the servo itself; the others concern the instruction."""
_NONE: frozenset[str] = frozenset()
_CODES = {(1, False): "B", (2, False): "H", (4, False): "I", (1, True): "b", (2, True): "h", (4, True): "i"}


class RegisterBlock:
    """Contiguous registers of one model, decoded together.

    Args:
        model: of the servo. names: registers in the block; those that the model lacks are skipped.

    Attributes:
        address, size: of the block. names: registers by address. index: of each register in `names`.
    """

    def __init__(self, model: ServoModel, names: tuple[str, ...]) -> None:
        registers = sorted(
            (model.registers[name] for name in names if name in model.registers), key=lambda each: each.address
        )
        self.address = registers[0].address
        self.size = registers[-1].end - self.address
        self.names = tuple(each.name for each in registers)
        self.index = {name: index for index, name in enumerate(self.names)}
        self.measured = tuple(self.index.get(name, -1) for name in MEASURED)
        self._factors = tuple(each.factor for each in registers)
        self._directions = tuple(index for index, each in enumerate(registers) if each.coding == "direction bit")
        code, end = "<", self.address
        for each in registers:
            code += f"{each.address - end}x{_CODES[each.size, each.coding == 'signed']}"
            end = each.end
        self._struct = struct.Struct(code)

    def numbers(self, data: bytes) -> tuple[int, ...]:
        """Raw numbers of the registers, in the order of `names`."""
        return self._struct.unpack(data)

    def values(self, numbers: tuple[int, ...]) -> list[float | None]:
        """Values in SI units, with None at the end, for the index -1 of registers that the model lacks."""
        values: list[float | None] = [*map(mul, self._factors, numbers), None]
        for index in self._directions:
            if numbers[index] >= DIRECTION_BIT:
                values[index] = self._factors[index] * (DIRECTION_BIT - numbers[index])
        return values


@cache
def blocks_of(model_name: str) -> tuple[RegisterBlock, RegisterBlock]:
    """Block of the measurements and block that includes the state, of a model."""
    model = MODELS[model_name]
    return RegisterBlock(model, MEASURED), RegisterBlock(model, STATE + MEASURED)


class Torque(Enum):
    """Torque of a servo: off, requested but not confirmed by a reading, or on."""

    OFF = "off"
    REQUESTED = "requested"
    ON = "on"


@dataclass
class Servo:
    """One servo of the robot.

    Attributes:
        name: its actuator. id, model, channel: of the robot file; channel of its potentiometer, or None.
        reading: the last one. age: cycles since the last answer.
        prepared: set up, and not rebooted since. may_have_rebooted: silent for so long that a reboot is possible.
        state_due: the state is to be read in the next cycle. alert: it reports a hardware error (protocol 2).
        torque: as requested and confirmed. watchdog: armed by the driver.
        astray: cycles in which it has turned otherwise than commanded, for a wheel.
        sent: raw values of the ceilings last written, by register; all of them belong to the state.
        goal: register that drives it. ceiling: raw torque ceiling in EEPROM.
    """

    name: str
    id: int
    model: ServoModel
    channel: int | None = None
    reading: ServoReading = field(init=False)
    age: int = 0
    prepared: bool = False
    may_have_rebooted: bool = False
    state_due: bool = True
    alert: bool = False
    torque: Torque = Torque.OFF
    watchdog: bool = False
    astray: int = 0
    sent: dict[str, int] = field(default_factory=dict)
    ceiling: int | None = None

    def __post_init__(self) -> None:
        model = self.model
        self.reading = ServoReading(self.name)
        self.measured, self.state = blocks_of(model.name)
        self.goal = model.register("goal_position" if model.counts_turns else "moving_speed")
        # an angle at either end of the range also stands for the dead zone beyond it
        self._full = None if model.counts_turns else 1023
        self._requested: dict[str, tuple[float, int | None]] = {}

    @property
    def label(self) -> str:
        """Id and actuator for messages."""
        return f"servo {self.id} ({self.name})"

    def missed(self) -> None:
        """Count a cycle without answer."""
        self.age += 1
        self.state_due = True
        self.reading = replace(self.reading, age=self.age)

    def take(self, status: Status, *, with_state: bool) -> None:
        """Store the status packet of this cycle.

        Args:
            with_state: it holds the longer block.
        """
        block = self.state if with_state else self.measured
        numbers = block.numbers(status.data)
        values = block.values(numbers)
        position, velocity, load, current, voltage, temperature = block.measured
        self.age, self.state_due = 0, False
        old = self.reading
        torque_on, watchdog, errors = old.torque_on, old.watchdog, old.errors
        if self.model.protocol == 1:
            errors = self.model.errors(status.error) & HARDWARE_ERRORS_1 if status.error else _NONE
        else:
            self.alert = status.error >= ALERT
            if not self.alert:
                errors = _NONE
            elif not with_state:
                self.state_due = not errors
        if with_state:
            index = block.index
            torque_on = numbers[index["torque_enable"]] != 0
            if "bus_watchdog" in index:
                watchdog = numbers[index["bus_watchdog"]] > 0
                bits = numbers[index["hardware_error"]]
                errors = self.model.errors(bits) if bits else _NONE
            self._compare(torque_on, watchdog, numbers)
        in_range = self._full is None or 0 < numbers[position] < self._full
        self.reading = ServoReading(
            self.name,
            values[position] if in_range else None,
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
        """Store the counts of its potentiometer; None: it was not read in this cycle."""
        if counts is None:
            self.reading = replace(self.reading, sensor_age=self.reading.sensor_age + 1)
        else:
            self.reading = replace(self.reading, sensor=counts, sensor_age=0)

    def changed(self, register: Register, value: float) -> bytes | None:
        """Bytes to write where the nearest value for a register differs from the last one, else None.

        Raises:
            BusError: a value that is not finite.
        """
        name = register.name
        # the common case first: the same request, and no other write (such as a preparation) since
        if self._requested.get(name) == (value, self.sent.get(name)):
            return None
        raw = register.encode_nearest(value)
        self._requested[name] = (value, raw)
        if self.sent.get(name) == raw:
            return None
        self.sent[name] = raw
        return raw.to_bytes(register.size, "little")

    def _compare(self, torque_on: bool, watchdog: bool | None, numbers: tuple[int, ...]) -> None:
        """Compare the state with what was requested; a servo that lost torque or watchdog by itself has rebooted."""
        self.may_have_rebooted = False
        if self.torque is not Torque.ON or not torque_on or (self.watchdog and watchdog is False):
            if self.torque is Torque.REQUESTED and torque_on:
                self.torque = Torque.ON
            elif self.prepared and (self.torque is Torque.ON or (self.watchdog and watchdog is False)):
                self.prepared = False
                self.torque = Torque.ON if torque_on else Torque.OFF
                self.watchdog = False
                self.sent.clear()
        index = self.state.index
        for name in [name for name, raw in self.sent.items() if numbers[index[name]] != raw]:
            del self.sent[name]  # this write was lost, and is repeated
