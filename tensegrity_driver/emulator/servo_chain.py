"""All servos on one bus: who hears an instruction, who answers it, and in which order.

Answers carry the slot of time in which they begin. Two in one slot are sent at the same time over the same wire and
collide; that is what two servos with one id do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .emulated_servo import EmulatedServo
from .packets import BROADCAST, Instruction, InstructionPacket, encode_fast_status, instruction_reader


@dataclass(frozen=True)
class Answer:
    """A status packet of the servo called `name`, in a slot of time, `delay` s after it may begin."""

    name: str
    slot: int
    delay: float
    data: bytes


class ServoChain:
    """The servos of one bus.

    Args:
        servos: by name. protocol: 1 or 2.

    Attributes:
        baud_rate: bit/s that the host uses now, or None where it does not matter.
        deaf: names of servos that neither hear nor answer. mute: of those that hear but do not answer.
        breaks: a sync read ends at the first servo that is missing, because the next ones wait for it.
    """

    def __init__(self, servos: Mapping[str, EmulatedServo], protocol: int) -> None:
        self.servos, self.protocol = dict(servos), protocol
        self.baud_rate: int | None = None
        self.deaf: set[str] = set()
        self.mute: set[str] = set()
        self.breaks = False
        self.reader = instruction_reader(protocol)
        self._several: dict[int, Callable[[bytes], list[Answer]]] = {Instruction.SYNC_WRITE: self._sync_write}
        if protocol == 2:
            self._several |= {
                Instruction.SYNC_READ: self._sync_read,
                Instruction.FAST_SYNC_READ: self._fast_sync_read,
                Instruction.BULK_READ: self._bulk_read,
                Instruction.BULK_WRITE: self._bulk_write,
            }

    def feed(self, data: bytes) -> list[Answer]:
        """Bytes from the host; returns what comes back."""
        return self._all(self.reader.feed(data))

    def quiet(self) -> list[Answer]:
        """Nothing came for long: a packet that never ended is given up."""
        return self._all(self.reader.quiet())

    # -- parts -----------------------------------------------------------------------------------------------------

    def _all(self, packets: list[InstructionPacket]) -> list[Answer]:
        answers: list[Answer] = []
        for packet in packets:
            first = answers[-1].slot + 1 if answers else 0
            answers += [Answer(each.name, first + each.slot, each.delay, each.data) for each in self._one(packet)]
        return [each for each in answers if each.name not in self.mute]

    def _hearing(self) -> dict[str, EmulatedServo]:
        return {name: servo for name, servo in self.servos.items() if name not in self.deaf and self._tuned(servo)}

    def _tuned(self, servo: EmulatedServo) -> bool:
        if self.baud_rate is None:
            return True
        return servo.model.baud_rates.get(servo.registers.raw("baud_rate")) == self.baud_rate

    def _with_id(self, id_: int) -> list[tuple[str, EmulatedServo]]:
        return [(name, servo) for name, servo in self._hearing().items() if servo.id == id_]

    def _one(self, packet: InstructionPacket) -> list[Answer]:
        several = self._several.get(packet.instruction)
        if several is not None and packet.whole:
            return several(packet.parameters) if packet.id == BROADCAST else []
        if packet.id != BROADCAST:
            return self._answers(0, packet, self._with_id(packet.id))
        found: list[Answer] = []
        everybody = sorted(self._hearing().items(), key=lambda item: item[1].id)
        for name, servo in everybody:
            # protocol 2.0 gives every id a slot of its own to answer a ping in; in 1.0 all answer at once
            found += self._answers(servo.id if self.protocol == 2 else 0, packet, [(name, servo)])
        return found

    def _answers(self, slot: int, packet: InstructionPacket, servos: list[tuple[str, EmulatedServo]]) -> list[Answer]:
        found = []
        for name, servo in servos:
            delay = servo.return_delay  # of the time before the instruction
            data = servo.answer(packet)
            if data is not None:
                found.append(Answer(name, slot, delay, data))
        return found

    def _sync_write(self, given: bytes) -> list[Answer]:
        step = 2 if self.protocol == 2 else 1
        if len(given) < 2 * step:
            return []
        address = int.from_bytes(given[:step], "little")
        size = int.from_bytes(given[step : 2 * step], "little")
        rows = given[2 * step :]
        if size == 0 or len(rows) % (size + 1):
            return []  # the lengths contradict each other: nobody knows which bytes are his
        for place in range(0, len(rows), size + 1):
            for _, servo in self._with_id(rows[place]):
                servo.write(address, rows[place + 1 : place + 1 + size])
        return []

    def _bulk_write(self, given: bytes) -> list[Answer]:
        place = 0
        while place + 5 <= len(given):
            id_, address, size = _row(given, place)
            if place + 5 + size > len(given):
                break
            for _, servo in self._with_id(id_):
                servo.write(address, given[place + 5 : place + 5 + size])
            place += 5 + size
        return []

    def _sync_read(self, given: bytes) -> list[Answer]:
        if len(given) < 5:
            return []
        address, size = int.from_bytes(given[:2], "little"), int.from_bytes(given[2:4], "little")
        return self._read_all([(id_, address, size) for id_ in given[4:]])

    def _bulk_read(self, given: bytes) -> list[Answer]:
        return self._read_all([_row(given, place) for place in range(0, len(given) - 4, 5)])

    def _read_all(self, rows: list[tuple[int, int, int]]) -> list[Answer]:
        answers: list[Answer] = []
        for slot, (id_, address, size) in enumerate(rows):
            telling = [each for each in self._with_id(id_) if each[1].tells_reads]
            for name, servo in telling:
                error, data = servo.read(address, size)
                answers.append(Answer(name, slot, servo.return_delay, servo.status(error, data)))
            if self.breaks and not [name for name, _ in telling if name not in self.mute]:
                break
        return answers

    def _fast_sync_read(self, given: bytes) -> list[Answer]:
        if len(given) < 5:
            return []
        address, size = int.from_bytes(given[:2], "little"), int.from_bytes(given[2:4], "little")
        packets: list[list[bytes]] = [[]]
        first = ""
        for id_ in given[4:]:
            telling = [each for each in self._with_id(id_) if each[1].tells_reads and each[0] not in self.mute]
            if not telling:
                return []  # every servo adds its part to one packet: without one of them it never ends
            first = first or telling[0][0]
            parts = []
            for _, servo in telling:
                error, data = servo.read(address, size)
                parts.append(bytes((error, servo.id)) + data)
            packets = [before + [part] for before in packets for part in parts]
        delay = self.servos[first].return_delay
        return [Answer(first, 0, delay, encode_fast_status(parts)) for parts in packets[:2]]


def _row(data: bytes, place: int) -> tuple[int, int, int]:
    """Id, address and size of one row of a bulk instruction."""
    return (
        data[place],
        int.from_bytes(data[place + 1 : place + 3], "little"),
        int.from_bytes(data[place + 3 : place + 5], "little"),
    )
