"""Statistics of a bus: packet counts and latencies since it was opened, and detection of duplicate ids.

Two servos with the same id answer at the same time. If their bytes collide, answers of this id are damaged while those
of all others are valid; if one answers slightly later, two packets follow one request. Both are counted over a window
of cycles, since a single disturbance has the same effect. A bad plug at one servo can also look like a duplicate id.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field

WINDOW_CYCLES = 25
"""Cycles over which answers of an id are counted."""
SECOND_ANSWERS = 2
"""Second answers within the window that mark an id as duplicate."""
MIN_ANSWERS = 10
"""Smallest number of answers of an id within the window for an evaluation of its share of damaged ones."""
DAMAGED_SHARE = 0.5
"""Share of damaged answers that marks an id as duplicate, if that of the others is at most `OTHERS_DAMAGED_SHARE`."""
OTHERS_DAMAGED_SHARE = 0.1  # share of their answers


@dataclass(frozen=True)
class BusReading:
    """State of the bus in one cycle.

    Attributes:
        alive: whether the port is open.
        packets, bad_packets: status packets expected in this cycle, and those missing, damaged or late.
        duplicate_ids: ids with which more than one servo answers.
    """

    alive: bool = True
    packets: int = 0
    bad_packets: int = 0
    duplicate_ids: tuple[int, ...] = ()


@dataclass
class BusStatistics:
    """Counts since the bus object was created.

    Attributes:
        cycles: number of cycles. packets: expected status packets.
        missing, damaged: status packets that did not arrive, or not intact.
        retries: repeated instructions. recovered: packets that arrived after a repetition.
        port_losses, reopenings: number of times that the port was lost, and opened again.
        alerts: status packets with an error of the servo, by id. exchanges: instructions with a valid answer.
        latency_sum, latency_worst: sum and maximum of the time from instruction to last byte of the answer [s].
        elapsed: time from the start of the first cycle to the start of the last one [s].
    """

    cycles: int = 0
    packets: int = 0
    missing: int = 0
    damaged: int = 0
    retries: int = 0
    recovered: int = 0
    port_losses: int = 0
    reopenings: int = 0
    exchanges: int = 0
    latency_sum: float = 0.0
    latency_worst: float = 0.0
    elapsed: float = 0.0
    alerts: Counter[int] = field(default_factory=Counter)

    @property
    def rate(self) -> float:
        """Cycles per second so far."""
        return (self.cycles - 1) / self.elapsed if self.elapsed > 0.0 else 0.0

    @property
    def latency_mean(self) -> float:
        """Mean duration of an exchange [s]; zero before the first one."""
        return self.latency_sum / self.exchanges if self.exchanges else 0.0

    def exchange(self, seconds: float) -> None:
        """Count one exchange of a duration [s]."""
        self.exchanges += 1
        self.latency_sum += seconds
        if seconds > self.latency_worst:
            self.latency_worst = seconds


class DuplicateIdDetector:
    """Detection of ids with which more than one servo answers, by counts over the last `WINDOW_CYCLES` cycles."""

    def __init__(self) -> None:
        self._past: deque[tuple[list[int], Counter[int], Counter[int]]] = deque(maxlen=WINDOW_CYCLES)
        self._window_left = 0
        self._begin()

    def _begin(self) -> None:
        self._answers: list[int] = []
        self._damaged: Counter[int] = Counter()
        self._second: Counter[int] = Counter()
        self.answered = self._answers.append
        """Count a valid answer of a servo; bound directly to the list for speed, as it is called for every packet."""

    def damaged(self, servo: int) -> None:
        """Count a damaged answer of a servo that was read alone."""
        self._answers.append(servo)
        self._damaged[servo] += 1

    def second_answer(self, servo: int) -> None:
        """Count a second answer of a servo to one request."""
        self._second[servo] += 1

    def end_cycle(self) -> tuple[int, ...]:
        """End a cycle; returns the ids that appear to be duplicate."""
        if self._second or self._damaged:
            self._window_left = WINDOW_CYCLES
        self._past.append((self._answers, self._damaged, self._second))
        self._begin()
        if self._window_left == 0:
            return ()  # the usual case: no event within a whole window
        self._window_left -= 1
        answers: Counter[int] = Counter()
        damaged: Counter[int] = Counter()
        second: Counter[int] = Counter()
        for each in self._past:
            answers.update(each[0])
            damaged.update(each[1])
            second.update(each[2])
        duplicate = {servo for servo, count in second.items() if count >= SECOND_ANSWERS}
        for servo, bad in damaged.items():
            others = sum(answers.values()) - answers[servo]
            quiet = sum(damaged.values()) - bad <= OTHERS_DAMAGED_SHARE * others
            if others and quiet and answers[servo] >= MIN_ANSWERS and bad >= DAMAGED_SHARE * answers[servo]:
                duplicate.add(servo)
        return tuple(sorted(duplicate))
