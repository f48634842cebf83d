"""One emulated servo on the bus: execution of instructions, and the status packets that answer them.

Errors are common to both protocols and encoded last, as bits (1.0) or numbers (2.0). In protocol 1.0 a write outside
the control table, or to a register that is read only, is a range error.
"""

from __future__ import annotations

from enum import Enum

from ..bus.control_tables import Register, ServoModel
from ..servos.motors import Motor
from .packets import BROADCAST, ErrorBit, ErrorNumber, Instruction, InstructionPacket, encode_status
from .register_file import RegisterFile
from .servo_physics import CURRENT, CURRENT_BASED, DROOP, EXTENDED, POSITION, PWM, VELOCITY, ServoPhysics

_LEVELS: dict[int, int] = {Instruction.PING: 0, Instruction.READ: 1}
"""Lowest status return level at which an instruction is answered; 2 for all others."""
CLEAR_TURNS = bytes((0x01, 0x44, 0x58, 0x4C, 0x22))
"""Parameters of the clear instruction that resets the turn count."""
_INSTRUCTIONS = {
    1: {Instruction.PING, Instruction.READ, Instruction.WRITE, Instruction.REG_WRITE, Instruction.ACTION,
        Instruction.FACTORY_RESET},
    2: {Instruction.PING, Instruction.READ, Instruction.WRITE, Instruction.REG_WRITE, Instruction.ACTION,
        Instruction.FACTORY_RESET, Instruction.REBOOT, Instruction.CLEAR},
}  # fmt: skip
"""Instructions to one servo, by protocol; an AX-12A has neither bulk read nor reboot."""


class ServoError(Enum):
    """Error of an instruction: bit in protocol 1.0, number in protocol 2.0."""

    RESULT = (ErrorBit.INSTRUCTION, ErrorNumber.RESULT_FAIL)
    INSTRUCTION = (ErrorBit.INSTRUCTION, ErrorNumber.INSTRUCTION)
    CHECKSUM = (ErrorBit.CHECKSUM, ErrorNumber.CRC)
    RANGE = (ErrorBit.RANGE, ErrorNumber.DATA_RANGE)
    LENGTH = (ErrorBit.INSTRUCTION, ErrorNumber.DATA_LENGTH)
    LIMIT = (ErrorBit.RANGE, ErrorNumber.DATA_LIMIT)
    ANGLE = (ErrorBit.ANGLE_LIMIT, ErrorNumber.DATA_LIMIT)
    ACCESS = (ErrorBit.RANGE, ErrorNumber.ACCESS)


class InstructionRejected(Exception):  # control flow within this module, from an instruction to its status packet
    def __init__(self, error: ServoError) -> None:
        super().__init__(error.name)
        self.error = error


class EmulatedServo:
    """One emulated servo.

    Args:
        model: with its control table. motor: with its torque. mounted, droop: see `ServoPhysics`.

    Attributes:
        registers: its memory. motion: its shaft, motor and sensors.
    """

    def __init__(self, model: ServoModel, motor: Motor, mounted: float = 0.0, droop: float = DROOP) -> None:
        self.model, self.registers = model, RegisterFile(model)
        self.motion = ServoPhysics(model, self.registers, motor, mounted, droop)
        self._waiting: tuple[int, bytes] | None = None
        modes = {VELOCITY, POSITION, EXTENDED, PWM}
        self._modes = modes if motor.torque_constant is None else modes | {CURRENT, CURRENT_BASED}

    @property
    def id(self) -> int:
        """Present id."""
        return self.registers.raw("id")

    @property
    def return_delay(self) -> float:
        """Time before it answers [s]."""
        return self.registers.value("return_delay")

    # -- instructions ----------------------------------------------------------------------------------------------

    def answer(self, packet: InstructionPacket) -> bytes | None:
        """Execute an instruction to this servo or to all; returns the status packet, or None for no answer."""
        self.motion.reset_watchdog()
        if not packet.whole:
            return self._status(b"", ServoError.CHECKSUM) if packet.id == self.id else None
        answered = self._level >= _LEVELS.get(packet.instruction, 2) and (
            packet.id != BROADCAST or packet.instruction == Instruction.PING
        )
        error, data = None, b""
        try:
            data = self._execute(packet)
        except InstructionRejected as rejected:
            error = rejected.error
        return self._status(data, error) if answered else None

    def read(self, address: int, size: int) -> tuple[int, bytes]:
        """Error byte and data of its part in a sync or bulk read; zeros for a rejected one."""
        self.motion.reset_watchdog()
        try:
            return self.error_byte(), self._read(address, size)
        except InstructionRejected as rejected:
            return self.error_byte(rejected.error), bytes(size)

    def write(self, address: int, data: bytes) -> None:
        """Execute its part of a sync or bulk write, which is not answered; a rejected write has no effect."""
        self.motion.reset_watchdog()
        try:
            self._write(address, data)
        except InstructionRejected:
            return  # sync and bulk writes have no status packet

    def status(self, error: int, data: bytes) -> bytes:
        """Bytes of a status packet of this servo."""
        return encode_status(self.model.protocol, self.id, error, data)

    @property
    def answers_reads(self) -> bool:
        """Whether its status return level lets it answer reads."""
        return self._level >= 1

    def error_byte(self, error: ServoError | None = None) -> int:
        """Error byte of a status packet, with the error of its instruction or None."""
        if self.model.protocol == 1:
            return self.motion.errors | (error.value[0] if error else 0)
        alert = ErrorNumber.ALERT if self.motion.errors else 0
        return alert | (error.value[1] if error else 0)

    def power_cycle(self) -> None:
        """Supply off and on: EEPROM persists, RAM is reset, torque is off, the turn count is lost."""
        self._waiting = None
        self.motion.power_up()

    # -- parts -----------------------------------------------------------------------------------------------------

    @property
    def _level(self) -> int:
        return self.registers.raw("status_return_level")

    def _status(self, data: bytes, error: ServoError | None = None) -> bytes:
        return self.status(self.error_byte(error), data)

    def _execute(self, packet: InstructionPacket) -> bytes:
        """Execute an instruction; returns the parameters of the status packet. Raises InstructionRejected."""
        parameters, two = packet.parameters, self.model.protocol == 2
        if packet.instruction not in _INSTRUCTIONS[self.model.protocol]:
            raise InstructionRejected(ServoError.INSTRUCTION)
        instruction = Instruction(packet.instruction)
        if instruction is Instruction.PING:
            number = self.registers.raw("model_number").to_bytes(2, "little")
            return number + bytes((self.registers.raw("firmware"),)) if two else b""
        if instruction is Instruction.READ:
            if len(parameters) != (4 if two else 2):
                raise InstructionRejected(ServoError.LENGTH)
            return self._read(_word(parameters, 0, two), _word(parameters, 2 if two else 1, two))
        if instruction in (Instruction.WRITE, Instruction.REG_WRITE):
            start = 2 if two else 1
            if len(parameters) <= start:
                raise InstructionRejected(ServoError.LENGTH)
            address, data = _word(parameters, 0, two), bytes(parameters[start:])
            if instruction is Instruction.WRITE:
                self._write(address, data)
            else:
                self._check(address, data)
                self._waiting = (address, data)
                self.registers.set_raw("registered", 1)
        elif instruction is Instruction.ACTION:
            if self._waiting is None:
                raise InstructionRejected(ServoError.RESULT)
            (address, data), self._waiting = self._waiting, None
            self.registers.set_raw("registered", 0)
            self._write(address, data)
        elif instruction is Instruction.FACTORY_RESET:
            self._factory_reset(parameters)
        elif instruction is Instruction.REBOOT:
            self.power_cycle()
        elif parameters != CLEAR_TURNS:
            raise InstructionRejected(ServoError.RANGE)
        elif self.registers.raw("moving"):
            raise InstructionRejected(ServoError.RESULT)
        else:
            self.motion.reset_turns()
            self.motion.torque_switched()
        return b""

    def _factory_reset(self, parameters: bytes) -> None:
        if self.model.protocol == 1:
            self.registers.factory_reset()
        elif parameters in (b"\x01", b"\x02"):
            self.registers.factory_reset(("id",) if parameters == b"\x01" else ("id", "baud_rate"))
        else:  # recent firmware of the X series rejects "all"
            raise InstructionRejected(ServoError.RANGE)
        self.power_cycle()

    def _read(self, address: int, size: int) -> bytes:
        if size < 1 or address + size > self.registers.size:
            raise InstructionRejected(ServoError.RANGE)
        return bytes(self.registers.memory[address : address + size])

    def _write(self, address: int, data: bytes) -> None:
        after = self._check(address, data)
        was_on, old_id = self.motion.torque_on, self.id
        self.registers.memory[address : address + len(data)] = after
        names = {each.name for each in self.registers.covered(address, len(data))}
        if self.motion.torque_on != was_on and "torque_enable" in names:
            self.keep_goals(names)
        if "torque_limit" in names and self.registers.raw("torque_limit"):
            self.motion.clear_overload()
        if "operating_mode" in names:
            self.motion.torque_switched()
        if self.id != old_id:
            self._waiting = None

    def keep_goals(self, names: set[str]) -> None:
        """Hold the present position when torque comes on, unless the same instruction sets a goal."""
        kept = {name: self.registers.raw(name) for name in ("goal_position", "goal_velocity") if name in names}
        self.motion.torque_switched()
        for name, raw in kept.items():
            self.registers.set_raw(name, raw)

    def _check(self, address: int, data: bytes) -> bytes:
        """Bytes that a write would store; raises InstructionRejected."""
        registers = self.registers.covered(address, len(data))
        if address + len(data) > self.registers.size or not registers:
            raise InstructionRejected(ServoError.RANGE if self.model.protocol == 1 else ServoError.ACCESS)
        after = bytearray(self.registers.memory)
        after[address : address + len(data)] = data
        for register in registers:
            self._check_register(register, int.from_bytes(after[register.address : register.end], "little"))
        return bytes(data)

    def _check_register(self, register: Register, raw: int) -> None:
        registers, two = self.registers, self.model.protocol == 2
        number = register.number(raw)
        if not register.writable:
            raise InstructionRejected(ServoError.ACCESS)
        if register.eeprom and (self.motion.torque_on if two else registers.raw("lock")):
            raise InstructionRejected(ServoError.ACCESS)
        if register.name == "lock" and registers.raw("lock") and not raw:
            raise InstructionRejected(ServoError.RANGE)  # only a power cycle unlocks it
        if two and register.name.startswith("goal_") and self.motion.watchdog_bit:
            raise InstructionRejected(ServoError.RANGE)
        if not register.low <= number <= register.high:
            raise InstructionRejected(ServoError.RANGE)
        if register.name == "operating_mode" and raw not in self._modes:
            raise InstructionRejected(ServoError.RANGE)
        if register.name == "torque_enable" and raw and two and self.motion.errors & registers.raw("shutdown"):
            raise InstructionRejected(ServoError.RESULT)  # after a shutdown only a reboot allows torque
        duty = "pwm_limit" if "pwm_limit" in registers else "torque_ceiling"
        ceilings = {"goal_velocity": "velocity_limit", "goal_current": "torque_ceiling", "goal_pwm": duty}
        if register.name in ceilings and abs(number) > registers.raw(ceilings[register.name], abs(number)):
            raise InstructionRejected(ServoError.LIMIT)
        if register.name == "goal_position" and self.motion.mode == POSITION:
            low, high = sorted((registers.raw("cw_limit"), registers.raw("ccw_limit")))
            if not low <= number <= high:
                raise InstructionRejected(ServoError.ANGLE)


def _word(data: bytes, start: int, two: bool) -> int:
    """Address or size in the parameters of an instruction: two bytes in protocol 2.0, one in 1.0."""
    return int.from_bytes(data[start : start + 2], "little") if two else data[start]
