"""All emulated servos on one bus: which of them execute an instruction, and the order of their answers.

Answers carry the time slot in which they begin. Two answers in one slot are sent at the same time and collide, as from
two servos with one id.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .emulated_servo import EmulatedServo
from .packets import BROADCAST, Instruction, InstructionPacket, encode_fast_status, instruction_reader


@dataclass(frozen=True)
class Answer:
    """Status packet of the servo `name` in a time slot, `delay` [s] after the slot begins."""

    name: str
    slot: int
    delay: float
    data: bytes


class ServoChain:
    """The servos of one bus.

    Args:
        servos: by name. protocol: 1 or 2.

    Attributes:
        baud_rate: present speed of the host [bit/s], or None to ignore speeds.
        deaf: names of servos that neither receive nor answer. mute: of those that receive but do not answer.
        loses_groups: names of servos that miss every sync and bulk write. loses_writes: of those that miss every write.
        breaks: a sync read ends at the first missing servo, for which the next ones wait.
    """

    def __init__(self, servos: Mapping[str, EmulatedServo], protocol: int) -> None:
        self.servos, self.protocol = dict(servos), protocol
        self.baud_rate: int | None = None
        self.deaf: set[str] = set()
        self.mute: set[str] = set()
        self.loses_groups: set[str] = set()
        self.loses_writes: set[str] = set()
        self.breaks = False
        self.reader = instruction_reader(protocol)
        self._group_instructions: dict[int, Callable[[bytes], list[Answer]]] = {
            Instruction.SYNC_WRITE: self._sync_write
        }
        if protocol == 2:
            self._group_instructions |= {
                Instruction.SYNC_READ: self._sync_read,
                Instruction.FAST_SYNC_READ: self._fast_sync_read,
                Instruction.BULK_READ: self._bulk_read,
                Instruction.BULK_WRITE: self._bulk_write,
            }

    def feed(self, data: bytes) -> list[Answer]:
        """Execute bytes from the host; returns the answers."""
        return self._all(self.reader.feed(data))

    def end_of_burst(self) -> list[Answer]:
        """Discard an incomplete packet after a pause; returns answers to packets behind it."""
        return self._all(self.reader.end_of_burst())

    # -- parts -----------------------------------------------------------------------------------------------------

    def _all(self, packets: list[InstructionPacket]) -> list[Answer]:
        answers: list[Answer] = []
        for packet in packets:
            first = answers[-1].slot + 1 if answers else 0
            answers += [Answer(each.name, first + each.slot, each.delay, each.data) for each in self._one(packet)]
        return [each for each in answers if each.name not in self.mute]

    def _receiving(self) -> dict[str, EmulatedServo]:
        return {name: servo for name, servo in self.servos.items() if name not in self.deaf and self._tuned(servo)}

    def _tuned(self, servo: EmulatedServo) -> bool:
        if self.baud_rate is None:
            return True
        return servo.model.baud_rates.get(servo.registers.raw("baud_rate")) == self.baud_rate

    def _with_id(self, id_: int) -> list[tuple[str, EmulatedServo]]:
        return [(name, servo) for name, servo in self._receiving().items() if servo.id == id_]

    def _one(self, packet: InstructionPacket) -> list[Answer]:
        handler = self._group_instructions.get(packet.instruction)
        if handler is not None and packet.whole:
            return handler(packet.parameters) if packet.id == BROADCAST else []
        if packet.id != BROADCAST:
            return self._answers(0, packet, self._with_id(packet.id))
        answers: list[Answer] = []
        everybody = sorted(self._receiving().items(), key=lambda item: item[1].id)
        for name, servo in everybody:
            # in protocol 2.0 every id answers a broadcast ping in its own slot; in 1.0 all answer at once
            answers += self._answers(servo.id if self.protocol == 2 else 0, packet, [(name, servo)])
        return answers

    def _answers(self, slot: int, packet: InstructionPacket, servos: list[tuple[str, EmulatedServo]]) -> list[Answer]:
        answers = []
        for name, servo in servos:
            if packet.instruction == Instruction.WRITE and name in self.loses_writes:
                continue
            delay = servo.return_delay  # as it was before the instruction
            data = servo.answer(packet)
            if data is not None:
                answers.append(Answer(name, slot, delay, data))
        return answers

    def _sync_write(self, parameters: bytes) -> list[Answer]:
        step = 2 if self.protocol == 2 else 1
        if len(parameters) < 2 * step:
            return []
        address = int.from_bytes(parameters[:step], "little")
        size = int.from_bytes(parameters[step : 2 * step], "little")
        rows = parameters[2 * step :]
        if size == 0 or len(rows) % (size + 1):
            return []  # contradictory lengths
        for start in range(0, len(rows), size + 1):
            for name, servo in self._with_id(rows[start]):
                if name not in self.loses_groups:
                    servo.write(address, rows[start + 1 : start + 1 + size])
        return []

    def _bulk_write(self, parameters: bytes) -> list[Answer]:
        start = 0
        while start + 5 <= len(parameters):
            id_, address, size = _row(parameters, start)
            if start + 5 + size > len(parameters):
                break
            for name, servo in self._with_id(id_):
                if name not in self.loses_groups:
                    servo.write(address, parameters[start + 5 : start + 5 + size])
            start += 5 + size
        return []

    def _sync_read(self, parameters: bytes) -> list[Answer]:
        if len(parameters) < 5:
            return []
        address, size = int.from_bytes(parameters[:2], "little"), int.from_bytes(parameters[2:4], "little")
        return self._read_all([(id_, address, size) for id_ in parameters[4:]])

    def _bulk_read(self, parameters: bytes) -> list[Answer]:
        return self._read_all([_row(parameters, start) for start in range(0, len(parameters) - 4, 5)])

    def _read_all(self, rows: list[tuple[int, int, int]]) -> list[Answer]:
        answers: list[Answer] = []
        for slot, (id_, address, size) in enumerate(rows):
            answering = [each for each in self._with_id(id_) if each[1].answers_reads]
            for name, servo in answering:
                error, data = servo.read(address, size)
                answers.append(Answer(name, slot, servo.return_delay, servo.status(error, data)))
            if self.breaks and not [name for name, _ in answering if name not in self.mute]:
                break
        return answers

    def _fast_sync_read(self, parameters: bytes) -> list[Answer]:
        if len(parameters) < 5:
            return []
        address, size = int.from_bytes(parameters[:2], "little"), int.from_bytes(parameters[2:4], "little")
        packets: list[list[bytes]] = [[]]
        first = ""
        for id_ in parameters[4:]:
            answering = [each for each in self._with_id(id_) if each[1].answers_reads and each[0] not in self.mute]
            if not answering:
                return []  # every servo adds its part to one packet, which stays incomplete without one of them
            first = first or answering[0][0]
            parts = []
            for _, servo in answering:
                error, data = servo.read(address, size)
                parts.append(bytes((error, servo.id)) + data)
            packets = [before + [part] for before in packets for part in parts]
        delay = self.servos[first].return_delay
        return [Answer(first, 0, delay, encode_fast_status(parts)) for parts in packets[:2]]


def _row(data: bytes, start: int) -> tuple[int, int, int]:
    """Id, address and size of one row of a bulk instruction."""
    return (
        data[start],
        int.from_bytes(data[start + 1 : start + 3], "little"),
        int.from_bytes(data[start + 3 : start + 5], "little"),
    )
