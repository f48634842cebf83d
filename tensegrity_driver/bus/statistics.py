"""How a bus has been doing: counts and latencies since it was opened, and which ids seem to be given twice.

Two servos under one id answer at the same time. Where their bytes collide, answers of this one id are damaged while
those of all others are fine; where one is a little later, two answers come to one question. Either is counted here over
some cycles, because a single disturbance looks the same. A bad plug at one servo can look like a doubled id, too.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field

WINDOW = 25
"""Cycles over which an id is judged."""
SECOND_ANSWERS = 2
"""Second answers within the window that make an id a doubled one."""
LEAST_ANSWERS = 10
"""Answers of an id within the window below which damage says nothing."""
DAMAGED_SHARE = 0.5
"""Share of damaged answers of one id that makes it a doubled one, if the others have less than `QUIET_SHARE`."""
QUIET_SHARE = 0.1


@dataclass
class BusStatistics:
    """Counts since the bus was made.

    Attributes:
        cycles: so far. packets: answers expected. missing, damaged: those that did not come, or not whole.
        retries: instructions sent again. recovered: answers that came then. port_losses, reopenings: of the port.
        alerts: answers with an error bit of the servo, by id. exchanges: instructions with an answer.
        latency_sum, latency_worst: s from the instruction to the last byte of the answer.
        elapsed: s from the beginning of the first cycle to the beginning of the last one.
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
        """s per exchange, or zero before the first one."""
        return self.latency_sum / self.exchanges if self.exchanges else 0.0

    @property
    def bad_share(self) -> float:
        """Share of the expected answers that did not come whole at the first try."""
        return (self.missing + self.damaged) / self.packets if self.packets else 0.0

    def exchange(self, seconds: float) -> None:
        """Count one exchange."""
        self.exchanges += 1
        self.latency_sum += seconds
        if seconds > self.latency_worst:
            self.latency_worst = seconds


class DoubledIds:
    """Watches for ids under which more than one servo answers."""

    def __init__(self) -> None:
        self._past: deque[tuple[list[int], Counter[int], Counter[int]]] = deque(maxlen=WINDOW)
        self._notable = 0
        self._begin()

    def _begin(self) -> None:
        self._answers: list[int] = []
        self._damaged: Counter[int] = Counter()
        self._second: Counter[int] = Counter()
        self.answered = self._answers.append
        """One servo answered whole; told for every answer, and therefore as quick as can be."""

    def damaged(self, servo: int) -> None:
        """One servo was asked for itself, and its answer came damaged; nothing is said of a silent one."""
        self._answers.append(servo)
        self._damaged[servo] += 1

    def second_answer(self, servo: int) -> None:
        """A servo answered once more than it was asked."""
        self._second[servo] += 1

    def end_cycle(self) -> tuple[int, ...]:
        """The ids that seem to be doubled, judged over the last cycles."""
        if self._second or self._damaged:
            self._notable = WINDOW
        self._past.append((self._answers, self._damaged, self._second))
        self._begin()
        if self._notable == 0:
            return ()  # nothing has happened for a whole window, as nearly always
        self._notable -= 1
        answers: Counter[int] = Counter()
        damaged: Counter[int] = Counter()
        second: Counter[int] = Counter()
        for each in self._past:
            answers.update(each[0])
            damaged.update(each[1])
            second.update(each[2])
        found = {servo for servo, count in second.items() if count >= SECOND_ANSWERS}
        for servo, bad in damaged.items():
            others = sum(answers.values()) - answers[servo]
            quiet = sum(damaged.values()) - bad <= QUIET_SHARE * others
            if others and quiet and answers[servo] >= LEAST_ANSWERS and bad >= DAMAGED_SHARE * answers[servo]:
                found.add(servo)
        return tuple(sorted(found))
