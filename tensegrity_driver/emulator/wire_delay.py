"""Transmission of answers to the host: delays, collisions and damage.

The time on the wire is ten bits per byte at the baud rate, for the instruction and every answer, plus the return delay
of each servo. A USB adapter passes bytes on when it holds 62 of them or when its latency timer runs out.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from itertools import groupby

from tensegrity_dynamics.errors import BusError

from .servo_chain import Answer

ADAPTER_BYTES = 62
"""Bytes that a USB adapter passes on without waiting for its timer."""


@dataclass(frozen=True)
class WireSettings:
    """Modelled delays; none by default.

    Attributes:
        baud_rate: for the time on the wire [bit/s]; None: no time. return_delay: servos wait for their return delay.
        latency_timer: of the USB adapter [s]; the factory setting of common adapters is 0.016.
        check_baud_rate: servos answer only a host whose terminal has their own baud rate.
    """

    baud_rate: int | None = None
    return_delay: bool = False
    latency_timer: float = 0.0
    check_baud_rate: bool = False

    def __post_init__(self) -> None:
        if (self.baud_rate is not None and self.baud_rate <= 0) or not 0.0 <= self.latency_timer <= 1.0:
            raise BusError(
                f"wire settings: baud rate {self.baud_rate} must be above zero and the latency timer "
                f"{self.latency_timer} s between 0 and 1 s."
            )


@dataclass
class WireDelay:
    """One wire with its adapter.

    Attributes:
        damaged: share of the answers (0 to 1) with a flipped bit, by name of the servo.
        spike: delay of one of every `spike_every` deliveries [s].
        garbage: bytes sent to the host before the next answer. echo: the adapter returns what the host sends.
    """

    settings: WireSettings = WireSettings()
    seed: int = 0
    damaged: dict[str, float] = field(default_factory=dict)
    spike: float = 0.0
    spike_every: int = 10
    garbage: bytes = b""
    echo: bool = False

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._deliveries = 0

    def deliver(self, request: bytes, answers: list[Answer]) -> list[tuple[float, bytes]]:
        """Deliveries to the host: pairs of delay from now [s] and bytes."""
        per_byte = 10.0 / self.settings.baud_rate if self.settings.baud_rate else 0.0
        now = len(request) * per_byte
        stream: list[tuple[float, int]] = []  # time and value of every byte
        if self.echo:
            stream += [((index + 1) * per_byte, byte) for index, byte in enumerate(request)]
        if self.garbage:
            stream += [(now, byte) for byte in self.garbage]
            self.garbage = b""
        for _, group in groupby(answers, key=lambda each: each.slot):
            same = list(group)
            if self.settings.return_delay:
                now += min(each.delay for each in same)
            data = self._collide([self._damage(each) for each in same])
            for byte in data:
                now += per_byte
                stream.append((now, byte))
        late = self._lateness() if stream else 0.0
        return [(time + late, data) for time, data in self._adapter(stream)]

    # -- parts -----------------------------------------------------------------------------------------------------

    def _damage(self, answer: Answer) -> bytes:
        share = self.damaged.get(answer.name, 0.0)
        if share <= 0.0 or self._random.random() >= share:
            return answer.data
        data = bytearray(answer.data)
        data[self._random.randrange(4, len(data))] ^= 1 << self._random.randrange(8)
        return bytes(data)

    def _collide(self, packets: list[bytes]) -> bytes:
        """Superposition of packets sent at the same time; by chance they may follow one another instead."""
        data = packets[0]
        for other in packets[1:]:
            if self._random.random() < 0.5:
                data = data + other
                continue
            shift = self._random.randrange(1, 4)  # bytes by which the second one is later
            length = max(len(data), shift + len(other))
            one = data + b"\xff" * (length - len(data))
            two = b"\xff" * shift + other + b"\xff" * (length - shift - len(other))
            data = bytes(a & b for a, b in zip(one, two, strict=True))  # a driven low wins over an idle high
        return data

    def _lateness(self) -> float:
        self._deliveries += 1
        return self.spike if self.spike > 0.0 and self._deliveries % self.spike_every == 0 else 0.0

    def _adapter(self, stream: list[tuple[float, int]]) -> list[tuple[float, bytes]]:
        if not stream:
            return []
        latency = self.settings.latency_timer
        if latency <= 0.0 and not self.settings.baud_rate:
            chunks: list[tuple[float, bytes]] = []
            for time, group in groupby(stream, key=lambda each: each[0]):
                chunks.append((time, bytes(byte for _, byte in group)))
            return chunks
        if latency <= 0.0:  # an ideal adapter passes a burst on as a whole
            return [(stream[-1][0], bytes(byte for _, byte in stream))]
        chunks, held, began = [], bytearray(), 0.0
        for time, byte in stream:
            if held and time > began + latency:
                chunks.append((began + latency, bytes(held)))
                held.clear()
            if not held:
                began = time
            held.append(byte)
            if len(held) == ADAPTER_BYTES:
                chunks.append((time, bytes(held)))
                held.clear()
        if held:
            chunks.append((began + latency, bytes(held)))
        return chunks
