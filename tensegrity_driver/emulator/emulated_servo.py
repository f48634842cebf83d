"""One servo on the bus: what it does with an instruction and what it answers.

Errors are kept as the kinds that both protocols know and become bits (1.0) or numbers (2.0) at the end. Writing to a
servo of protocol 1.0 outside its table, or to what cannot be written, is a range error.
"""

from __future__ import annotations

from enum import Enum

from ..bus.control_tables import Field, ServoModel
from ..calibration.calibrated_spools import Motor
from .packets import BROADCAST, ErrorBit, ErrorNumber, Instruction, InstructionPacket, encode_status
from .register_file import RegisterFile
from .servo_physics import CURRENT, CURRENT_BASED, DROOP, EXTENDED, POSITION, PWM, VELOCITY, ServoPhysics

_LEVELS: dict[int, int] = {Instruction.PING: 0, Instruction.READ: 1}
"""Status return level from which an instruction is answered; all others from 2."""
CLEAR_TURNS = bytes((0x01, 0x44, 0x58, 0x4C, 0x22))
"""Parameters of the clear instruction that forgets turns."""
_KNOWN = {
    1: {Instruction.PING, Instruction.READ, Instruction.WRITE, Instruction.REG_WRITE, Instruction.ACTION,
        Instruction.FACTORY_RESET},
    2: {Instruction.PING, Instruction.READ, Instruction.WRITE, Instruction.REG_WRITE, Instruction.ACTION,
        Instruction.FACTORY_RESET, Instruction.REBOOT, Instruction.CLEAR},
}  # fmt: skip
"""Instructions that are for one servo, by protocol; an AX-12A knows no bulk read and no reboot."""


class Trouble(Enum):
    """Kinds of errors: bit in protocol 1.0, number in protocol 2.0."""

    RESULT = (ErrorBit.INSTRUCTION, ErrorNumber.RESULT_FAIL)
    INSTRUCTION = (ErrorBit.INSTRUCTION, ErrorNumber.INSTRUCTION)
    CHECKSUM = (ErrorBit.CHECKSUM, ErrorNumber.CRC)
    RANGE = (ErrorBit.RANGE, ErrorNumber.DATA_RANGE)
    LENGTH = (ErrorBit.INSTRUCTION, ErrorNumber.DATA_LENGTH)
    LIMIT = (ErrorBit.RANGE, ErrorNumber.DATA_LIMIT)
    ANGLE = (ErrorBit.ANGLE_LIMIT, ErrorNumber.DATA_LIMIT)
    ACCESS = (ErrorBit.RANGE, ErrorNumber.ACCESS)


class Refused(Exception):  # control flow between a servo's instructions and its answer; never leaves this module
    def __init__(self, trouble: Trouble) -> None:
        super().__init__(trouble.name)
        self.trouble = trouble


class EmulatedServo:
    """One servo.

    Args:
        model: its control table. motor: what its torque means. mounted, droop: see `ServoPhysics`.
    """

    def __init__(self, model: ServoModel, motor: Motor, mounted: float = 0.0, droop: float = DROOP) -> None:
        self.model, self.registers = model, RegisterFile(model)
        self.motion = ServoPhysics(model, self.registers, motor, mounted, droop)
        self._waiting: tuple[int, bytes] | None = None
        modes = {VELOCITY, POSITION, EXTENDED, PWM}
        self._modes = modes if motor.torque_constant is None else modes | {CURRENT, CURRENT_BASED}

    @property
    def id(self) -> int:
        """Under which it answers."""
        return self.registers.raw("id")

    @property
    def return_delay(self) -> float:
        """s before it answers."""
        return self.registers.value("return_delay")

    # -- instructions ----------------------------------------------------------------------------------------------

    def answer(self, packet: InstructionPacket) -> bytes | None:
        """Do what an instruction for one servo, or for all, asks; returns the status packet, or None for silence."""
        self.motion.heard()
        if not packet.whole:
            return self._status(b"", Trouble.CHECKSUM) if packet.id == self.id else None
        needed = _LEVELS.get(packet.instruction, 2)
        tells = self._level >= needed and (packet.id != BROADCAST or packet.instruction == Instruction.PING)
        trouble, data = None, b""
        try:
            data = self._obey(packet)
        except Refused as refused:
            trouble = refused.trouble
        return self._status(data, trouble) if tells else None

    def read(self, address: int, size: int) -> tuple[int, bytes]:
        """Error byte and data for a read that is part of a longer one; data are zeros where it is refused."""
        self.motion.heard()
        try:
            return self.error_byte(), self._read(address, size)
        except Refused as refused:
            return self.error_byte(refused.trouble), bytes(size)

    def write(self, address: int, data: bytes) -> None:
        """A write that nobody answers; what is not allowed changes nothing."""
        self.motion.heard()
        try:
            self._write(address, data)
        except Refused:
            return  # no status packet belongs to a sync or bulk write: the real ones say nothing either

    def status(self, error: int, data: bytes) -> bytes:
        """A status packet of this servo."""
        return encode_status(self.model.protocol, self.id, error, data)

    @property
    def tells_reads(self) -> bool:
        """Its status return level lets it answer reads."""
        return self._level >= 1

    def error_byte(self, trouble: Trouble | None = None) -> int:
        """Error byte of a status packet."""
        if self.model.protocol == 1:
            return self.motion.errors | (trouble.value[0] if trouble else 0)
        alert = ErrorNumber.ALERT if self.motion.errors else 0
        return alert | (trouble.value[1] if trouble else 0)

    def power_cycle(self) -> None:
        """Supply off and on: EEPROM kept, RAM as delivered, torque off, turns forgotten."""
        self._waiting = None
        self.motion.power_up()

    # -- parts -----------------------------------------------------------------------------------------------------

    @property
    def _level(self) -> int:
        return self.registers.raw("status_return_level")

    def _status(self, data: bytes, trouble: Trouble | None = None) -> bytes:
        return self.status(self.error_byte(trouble), data)

    def _obey(self, packet: InstructionPacket) -> bytes:
        """Returns the parameters of the answer; raises Refused."""
        given, two = packet.parameters, self.model.protocol == 2
        if packet.instruction not in _KNOWN[self.model.protocol]:
            raise Refused(Trouble.INSTRUCTION)
        instruction = Instruction(packet.instruction)
        if instruction is Instruction.PING:
            number = self.registers.raw("model_number").to_bytes(2, "little")
            return number + bytes((self.registers.raw("firmware"),)) if two else b""
        if instruction is Instruction.READ:
            if len(given) != (4 if two else 2):
                raise Refused(Trouble.LENGTH)
            return self._read(_word(given, 0, two), _word(given, 2 if two else 1, two))
        if instruction in (Instruction.WRITE, Instruction.REG_WRITE):
            place = 2 if two else 1
            if len(given) <= place:
                raise Refused(Trouble.LENGTH)
            address, data = _word(given, 0, two), bytes(given[place:])
            if instruction is Instruction.WRITE:
                self._write(address, data)
            else:
                self._check(address, data)
                self._waiting = (address, data)
                self.registers.set_raw("registered", 1)
        elif instruction is Instruction.ACTION:
            if self._waiting is None:
                raise Refused(Trouble.RESULT)
            (address, data), self._waiting = self._waiting, None
            self.registers.set_raw("registered", 0)
            self._write(address, data)
        elif instruction is Instruction.FACTORY_RESET:
            self._factory_reset(given)
        elif instruction is Instruction.REBOOT:
            self.power_cycle()
        elif given != CLEAR_TURNS:
            raise Refused(Trouble.RANGE)
        elif self.registers.raw("moving"):
            raise Refused(Trouble.RESULT)
        else:
            self.motion.forget_turns()
            self.motion.torque_switched()
        return b""

    def _factory_reset(self, given: bytes) -> None:
        if self.model.protocol == 1:
            self.registers.factory_reset()
        elif given in (b"\x01", b"\x02"):
            self.registers.factory_reset(("id",) if given == b"\x01" else ("id", "baud_rate"))
        else:  # "all" is refused for X series servos of recent firmware, and so is what nobody knows
            raise Refused(Trouble.RANGE)
        self.power_cycle()

    def _read(self, address: int, size: int) -> bytes:
        if size < 1 or address + size > self.registers.size:
            raise Refused(Trouble.RANGE)
        return bytes(self.registers.memory[address : address + size])

    def _write(self, address: int, data: bytes) -> None:
        after = self._check(address, data)
        was_on, old_id = self.motion.torque_on, self.id
        self.registers.memory[address : address + len(data)] = after
        names = {each.name for each in self.registers.covered(address, len(data))}
        if self.motion.torque_on != was_on and "torque_enable" in names:
            self._keep_goals(names)
        if "torque_limit" in names and self.registers.raw("torque_limit"):
            self.motion.forgive()
        if "operating_mode" in names:
            self.motion.torque_switched()
        if self.id != old_id:
            self._waiting = None

    def _keep_goals(self, names: set[str]) -> None:
        """Switching torque on makes it hold where it is, unless the same instruction says where to go."""
        kept = {name: self.registers.raw(name) for name in ("goal_position", "goal_velocity") if name in names}
        self.motion.torque_switched()
        for name, raw in kept.items():
            self.registers.set_raw(name, raw)

    def _check(self, address: int, data: bytes) -> bytes:
        """Bytes as they would be written; raises Refused."""
        fields = self.registers.covered(address, len(data))
        if address + len(data) > self.registers.size or not fields:
            raise Refused(Trouble.RANGE if self.model.protocol == 1 else Trouble.ACCESS)
        after = bytearray(self.registers.memory)
        after[address : address + len(data)] = data
        for field in fields:
            self._check_field(field, int.from_bytes(after[field.address : field.end], "little"))
        return bytes(data)

    def _check_field(self, field: Field, raw: int) -> None:
        registers, two = self.registers, self.model.protocol == 2
        number = field.number(raw)
        if not field.writable:
            raise Refused(Trouble.ACCESS)
        if field.eeprom and (self.motion.torque_on if two else registers.raw("lock")):
            raise Refused(Trouble.ACCESS)
        if field.name == "lock" and registers.raw("lock") and not raw:
            raise Refused(Trouble.RANGE)  # only a power cycle opens it
        if two and field.name.startswith("goal_") and self.motion.watchdog_bit:
            raise Refused(Trouble.RANGE)
        if not field.low <= number <= field.high:
            raise Refused(Trouble.RANGE)
        if field.name == "operating_mode" and raw not in self._modes:
            raise Refused(Trouble.RANGE)
        if field.name == "torque_enable" and raw and two and self.motion.errors & registers.raw("shutdown"):
            raise Refused(Trouble.RESULT)  # after a shutdown only a reboot lets it move again
        duty = "pwm_limit" if "pwm_limit" in registers else "torque_ceiling"
        ceilings = {"goal_velocity": "velocity_limit", "goal_current": "torque_ceiling", "goal_pwm": duty}
        if field.name in ceilings and abs(number) > registers.raw(ceilings[field.name], abs(number)):
            raise Refused(Trouble.LIMIT)
        if field.name == "goal_position" and self.motion.mode == POSITION:
            low, high = sorted((registers.raw("cw_limit"), registers.raw("ccw_limit")))
            if not low <= number <= high:
                raise Refused(Trouble.ANGLE)


def _word(data: bytes, place: int, two: bool) -> int:
    return int.from_bytes(data[place : place + 2], "little") if two else data[place]
