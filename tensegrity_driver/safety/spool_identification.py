"""Check that each command moves its own spool: every spool is moved a little before commands are followed.

If ids, plugs or channels are exchanged, a loop pulls at one spool and measures another. When a driver starts, spools
that are measured by potentiometers are therefore paid out a little and wound back in open loop. There are as many
rounds as the spool numbers 1 to n have binary digits: in round k, the spools whose number has digit k are moved. If the
potentiometer board closes the position loops, positions are commanded instead. For every exchange, some round shows it:
a sensor moves whose spool was not commanded, or the other way round. Torque stays on, so that tight tendons are held;
after a mistake all spools stand still. A loaded servo in wheel mode creeps meanwhile: once every spool has answered,
the position loops wind all of them back to their initial lengths.

A servo that counts its turns is its own sensor: exchanged ids of such servos cannot be detected here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ..spools.readings import Drive, DriveCommand, Readings
from ..spools.spool import Spool
from .faults import Fault, FaultKind

SPEED_SHARE = 1.0 / 3.0
"""Fraction of its rate at which a spool is moved."""
SEEN = 0.35
"""Fraction of the distance above which a sensor counts as having moved."""
SETTLING_CYCLES = 3
"""Cycles from the last command of a motion until the readings show its end."""
BOARD_SETTLING_S = 0.3
"""Additional settling time for the position loop of a board: three of its time constants [s]."""
RETURNED = 0.25
"""Fraction of the distance within which a spool counts as returned."""
LONGEST_RETURN_S = 2.0
"""Time after which the robot continues from the present positions [s]: a servo may be unable to pull a spool back."""
MARGIN = 3.0
"""Required distance from the upper limit, in distances; a spool nearer to that limit is wound in instead."""


class SpoolIdentification:
    """Motions of all spools, and the expected motions of their sensors.

    Args:
        spools: those that are measured by potentiometers are moved. distance: m. period: bus cycle [s].
    """

    def __init__(self, spools: Sequence[Spool], distance: float, period: float) -> None:
        moved = [each for each in spools if each.measured_by == "potentiometer"]
        self.distance = distance
        self._spools = {each.name: each for each in moved}
        self._numbers = {each.name: k + 1 for k, each in enumerate(moved)}
        self._speeds = {each.name: SPEED_SHARE * each.actuator.rate for each in moved}
        slowest = min(self._speeds.values(), default=math.inf)
        self._moving = math.ceil(distance / (slowest * period)) if moved else 0
        self._speeds = {name: distance / (self._moving * period) for name in self._speeds}
        by_board = any(each.on_board for each in moved)
        self._settling = SETTLING_CYCLES + (math.ceil(BOARD_SETTLING_S / period) if by_board else 0)
        self._period = period
        self.rounds = len(moved).bit_length()
        self.faults: tuple[Fault, ...] = ()
        self.restart()

    @property
    def cycles(self) -> int:
        """Bus cycles until every spool has answered; the return takes up to `LONGEST_RETURN_S` more."""
        return self.rounds * 2 * (self._moving + self._settling)

    @property
    def done(self) -> bool:
        """Whether every spool has answered and has returned."""
        return self._round >= self.rounds and self._returning <= 0

    @property
    def answered(self) -> bool:
        """Whether every spool has answered, so that position loops may hold them."""
        return self._round >= self.rounds

    def restart(self) -> None:
        """Start again, as after another fault; a spool that did not answer stays marked."""
        self._round = self._step = 0
        self._returning = math.ceil(LONGEST_RETURN_S / self._period) if self._spools else 0
        self._start: dict[str, float] = {}
        self._outward: dict[str, float] = {}
        self._before: dict[str, float] = {}

    def update(self, cycle: int, readings: Readings) -> Mapping[str, DriveCommand]:
        """Commands of one cycle; none once all have answered or one has not. The findings are in `faults`."""
        if self.done or self.faults:
            return {}
        lengths = {name: each.length for name, each in readings.tendons.items() if name in self._spools}
        if self.answered:
            off = [abs(lengths.get(name, math.nan) - self._start[name]) for name in self._spools]
            back = all(each <= RETURNED * self.distance for each in off)
            self._returning = 0 if back else self._returning - 1
            return {}
        if self._step == 0:
            self._start = self._start or dict(lengths)
            self._begin_round(lengths)
        out = self._moving + self._settling
        if self._step == out:
            self.faults = tuple(self._compare(cycle, lengths))
            if self.faults:
                return {}
        commands = {}
        for name, spool in self._spools.items():
            own = self._outward.get(name, 0.0)
            speed = own if self._step < self._moving else -own if out <= self._step < out + self._moving else 0.0
            commands[name] = DriveCommand(Drive.VELOCITY, speed, spool.actuator.rate, spool.actuator.effort)
            if spool.on_board:  # the board closes the position loop and has no speed commands
                there = self._before.get(name, math.nan) + own * self._period * self._moving
                goal = there if self._step < out else self._before.get(name, math.nan)
                commands[name] = DriveCommand(Drive.POSITION, goal, spool.actuator.rate, spool.actuator.effort)
        self._step += 1
        if self._step == 2 * out:
            self._round, self._step = self._round + 1, 0
        return commands

    def _begin_round(self, lengths: Mapping[str, float]) -> None:
        self._before, self._outward = dict(lengths), {}
        for name, number in self._numbers.items():
            if number >> self._round & 1:
                margin = self._spools[name].actuator.position[1] - lengths.get(name, math.nan)
                self._outward[name] = self._speeds[name] * (-1.0 if margin < MARGIN * self.distance else 1.0)

    def _compare(self, cycle: int, lengths: Mapping[str, float]) -> list[Fault]:
        answered = {}
        for name in self._spools:
            moved = lengths.get(name, math.nan) - self._before.get(name, math.nan)
            answered[name] = math.copysign(1.0, moved) if abs(moved) > SEEN * self.distance else 0.0
        commanded = {
            name: math.copysign(1.0, self._outward[name]) if name in self._outward else 0.0 for name in self._spools
        }
        wrong = [name for name in self._spools if answered[name] != commanded[name]]
        faults = []
        for name in wrong:
            others = ", ".join(each for each in wrong if each != name)
            beside = f"; neither did {others} answer as commanded" if others else ""
            what = "moved without a command" if commanded[name] == 0.0 else (
                "did not move on command" if answered[name] == 0.0 else "moved in the opposite direction"
            )  # fmt: skip
            faults.append(Fault(FaultKind.WRONG_SPOOL, name, cycle, f"its sensor {what}{beside}"))
        return faults
