"""Looks for servos at a port: every speed, both protocols, every id; nothing is written.

Protocol 2 answers one ping for all, each id in a slot of its own; protocol 1 is asked id by id. Two servos under one id
show as two answers to one ping, or as damaged ones where they collide; a bad plug damages answers, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tensegrity_dynamics.errors import BusError

from .control_tables import MODELS, Field
from .dynamixel_protocol import BROADCAST, PacketError, ServoProtocol, Status
from .serial_port import SerialPort

BAUD_RATES = (1_000_000, 57_600, 115_200, 2_000_000, 3_000_000, 4_000_000, 500_000, 9_600)
"""bit/s, the likely ones first: AX-12A and X series as delivered."""
IDS = range(253)
SLOT = 3e-3
"""s that every id has to answer a ping for all, as the makers' library waits."""
_NUMBER = Field("model_number", 0, 2, writable=False)
"""At the same place in all control tables."""


@dataclass(frozen=True)
class FoundServo:
    """One id that answers.

    Attributes:
        id, protocol, baud_rate: how it is reached.
        number: its model number, or None where it could not be read. model: the name for it, or None.
        answers: whole answers to one ping. damaged: there were damaged ones, too.
    """

    id: int
    protocol: int
    baud_rate: int
    number: int | None
    answers: int
    damaged: bool

    @property
    def model(self) -> str | None:
        """The name of its model, or None for one without control table."""
        return next((model.name for model in MODELS.values() if model.number == self.number), None)

    @property
    def doubled(self) -> bool:
        """More than one servo seems to answer under this id."""
        return self.answers > 1 or self.damaged


def scan(
    port: SerialPort,
    *,
    protocols: Sequence[int] = (1, 2),
    baud_rates: Sequence[int] = BAUD_RATES,
    ids: Iterable[int] = IDS,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[FoundServo, ...]:
    """Every servo that answers; the port has its old speed afterwards.

    Args:
        port: open or not.
        protocols, baud_rates, ids: where to look; speeds that the port does not know are left out.
        progress: called with baud rate and protocol before each look.

    Raises:
        BusError: the port is not there, or is lost on the way.
    """
    port.open()
    before, wanted = port.baudrate, tuple(ids)
    found: list[FoundServo] = []
    try:
        for baud_rate in baud_rates:
            try:
                port.set_baud_rate(baud_rate)
            except BusError:
                if not port.is_open:
                    raise
                continue  # no servo can be heard at a speed that this port does not know
            for number in protocols:
                if progress is not None:
                    progress(baud_rate, number)
                protocol = ServoProtocol(port, number)
                likely = _all_of_protocol_2(protocol, wanted) if number == 2 else wanted
                for servo in likely:
                    each = _look(protocol, servo, baud_rate)
                    if each is not None:
                        found.append(each)
    finally:
        if port.is_open:
            port.set_baud_rate(before)
    return tuple(found)


def _all_of_protocol_2(protocol: ServoProtocol, wanted: Sequence[int]) -> Sequence[int]:
    """Ids that answer one ping for all; all that are wanted where answers were damaged."""
    protocol.call(BROADCAST)
    on_the_wire = 14 * (max(wanted, default=0) + 1) * protocol.port.tx_time_per_byte
    protocol.port.setPacketTimeoutMillis(
        on_the_wire + 1e3 * (SLOT * (max(wanted, default=0) + 1) + protocol.port.patience)
    )
    there: set[int] = set()
    while True:
        status = protocol.receive()
        if isinstance(status, Status):
            there.add(status.id)
        elif status is PacketError.DAMAGED and not protocol.port.isPacketTimeout():
            protocol.port.settle()
            return wanted
        else:
            return sorted(there.intersection(wanted)) if status is PacketError.MISSING else wanted


def _look(protocol: ServoProtocol, servo: int, baud_rate: int) -> FoundServo | None:
    protocol.call(servo)
    answers, damaged = 0, False
    while True:
        status = protocol.receive()
        if isinstance(status, Status):
            answers += status.id == servo
            continue
        damaged = damaged or status is PacketError.DAMAGED
        if status is PacketError.MISSING or protocol.port.isPacketTimeout():
            break
    if not answers and not damaged:
        return None
    protocol.ask(servo, _NUMBER.address, _NUMBER.size)
    read = protocol.receive_from(servo, _NUMBER.size)
    if not answers and isinstance(read, PacketError):
        return None  # noise, not an answer
    number = None
    if isinstance(read, Status) and len(read.data) == _NUMBER.size:
        number = int.from_bytes(read.data, "little")
    return FoundServo(servo, protocol.number, baud_rate, number, answers, damaged)
