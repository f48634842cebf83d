"""Scan of a port for servos: every speed, both protocols, every id; nothing is written.

In protocol 2 all servos answer one broadcast ping, each id in its own time slot; in protocol 1 every id is pinged. Two
servos with the same id send two answers to one ping, or damaged ones if they collide; a bad plug damages answers, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tensegrity_dynamics.errors import BusError

from .control_tables import MODELS, Register
from .dynamixel_bus import MAX_TRIES
from .dynamixel_protocol import PacketError, ServoProtocol, Status
from .serial_port import SerialPort

BAUD_RATES = (1_000_000, 57_600, 115_200, 2_000_000, 3_000_000, 4_000_000, 500_000, 9_600)
"""Speeds of the scan [bit/s]; the factory settings of AX-12A and X series come first."""
IDS = range(253)
MODEL_NUMBER = Register("model_number", 0, 2, writable=False)
"""Register at the same address in all control tables."""


@dataclass(frozen=True)
class FoundServo:
    """Servo id that answers.

    Attributes:
        id, protocol, baud_rate: needed to reach it.
        number: model number, or None if it could not be read.
        answers: number of valid answers to one ping. damaged: whether damaged answers arrived as well.
    """

    id: int
    protocol: int
    baud_rate: int
    number: int | None
    answers: int
    damaged: bool

    @property
    def model(self) -> str | None:
        """Name of the model, or None if it has no control table."""
        return next((model.name for model in MODELS.values() if model.number == self.number), None)

    @property
    def doubled(self) -> bool:
        """Whether more than one servo appears to answer with this id."""
        return self.answers > 1 or self.damaged


def scan(
    port: SerialPort,
    *,
    protocols: Sequence[int] = (1, 2),
    baud_rates: Sequence[int] = BAUD_RATES,
    ids: Iterable[int] = IDS,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[FoundServo, ...]:
    """Find all servos that answer; the speed of the port is restored afterwards.

    Args:
        port: open or not.
        protocols, baud_rates, ids: range of the scan; speeds that the port does not support are skipped.
        progress: called with baud rate and protocol before each part of the scan.

    Raises:
        BusError: the port does not exist, or is lost during the scan.
    """
    port.open()
    before, ids = port.baudrate, tuple(ids)
    servos: list[FoundServo] = []
    try:
        for baud_rate in baud_rates:
            try:
                port.set_baud_rate(baud_rate)
            except BusError:
                if not port.is_open:
                    raise
                continue  # no servo can answer at a speed that this port does not support
            for number in protocols:
                if progress is not None:
                    progress(baud_rate, number)
                protocol = ServoProtocol(port, number)
                for servo in _answering_ids(protocol, ids) if number == 2 else ids:
                    found = _ping_and_identify(protocol, servo, baud_rate)
                    if found is not None:
                        servos.append(found)
    finally:
        if port.is_open:
            port.set_baud_rate(before)
    return tuple(servos)


def _answering_ids(protocol: ServoProtocol, ids: Sequence[int]) -> Sequence[int]:
    """Ids that answer a broadcast ping; all requested ids if answers were damaged."""
    answering = protocol.broadcast_ping(max(ids, default=0))
    return ids if answering is None else sorted(answering.intersection(ids))


def _ping_and_identify(protocol: ServoProtocol, servo: int, baud_rate: int) -> FoundServo | None:
    answers, damaged = protocol.ping_all_answers(servo)
    if not answers and not damaged:
        return None
    for _ in range(MAX_TRIES):
        status = protocol.read(servo, MODEL_NUMBER.address, MODEL_NUMBER.size)
        if isinstance(status, Status) or damaged or len(answers) != 1:
            break  # servos with the same id always disturb each other
    if not answers and isinstance(status, PacketError):
        return None  # noise instead of an answer
    number = None
    if isinstance(status, Status) and len(status.data) == MODEL_NUMBER.size:
        number = int.from_bytes(status.data, "little")
    return FoundServo(servo, protocol.number, baud_rate, number, len(answers), damaged)
