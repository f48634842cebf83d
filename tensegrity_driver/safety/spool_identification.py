"""Does each spool answer when it is spoken to? Found by moving every spool a little before commands are followed.

Exchanged ids, plugs or channels make a loop pull at one spool and look at another. When a driver begins, spools that
potentiometers measure are therefore paid out a little and wound back, open loop, in as many rounds as their
numbers 1 to n have binary digits: in round k those whose number has digit k. Where the potentiometer board closes the
position loops, it is sent there and back instead. Whatever is exchanged with whatever, some round shows it: a sensor
moves whose spool was not commanded, or the other way round. Torque is on all the while, so that tight tendons are held,
and after a mistake all spools stand still. A loaded servo in wheel mode creeps meanwhile: once every spool has
answered, the position loops wind all of them back to where they were.

A servo that counts its turns is its own sensor: exchanged ids of such servos cannot be seen here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ..spools.readings import Drive, DriveCommand, Readings
from ..spools.spool import Spool
from .faults import Fault, FaultKind

SPEED_SHARE = 1.0 / 3.0
"""Part of its rate at which a spool is moved."""
SEEN = 0.35
"""Part of the distance above which a sensor counts as having moved."""
SETTLING_CYCLES = 3
"""Cycles from the last command of a motion to its end in what is read."""
BOARD_SETTLING_S = 0.3
"""Time that the position loop of a board takes beyond that: three of its time constants [s]."""
RETURNED = 0.25
"""Part of the distance within which a spool counts as back where it was."""
LONGEST_RETURN_S = 2.0
"""Time after which the robot goes on from where its spools are then [s]: a servo may not be able to pull one back."""
MARGIN = 3.0
"""Distances that a spool must have to its upper limit to be paid out; nearer to it, it is wound in instead."""


class SpoolIdentification:
    """The motions of all spools, and what their sensors must show.

    Args:
        spools: those that are measured by potentiometers are moved. distance: m. period: s of a bus cycle.
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
        """Bus cycles until every spool has answered; it takes up to `LONGEST_RETURN_S` more until all are back."""
        return self.rounds * 2 * (self._moving + self._settling)

    @property
    def done(self) -> bool:
        """Whether every spool has answered, and is back."""
        return self._round >= self.rounds and self._returning <= 0

    @property
    def answered(self) -> bool:
        """Whether every spool has answered: position loops may hold them."""
        return self._round >= self.rounds

    def restart(self) -> None:
        """Begin again, as after another fault; a spool that did not answer stays one."""
        self._round = self._step = 0
        self._returning = math.ceil(LONGEST_RETURN_S / self._period) if self._spools else 0
        self._start: dict[str, float] = {}
        self._outward: dict[str, float] = {}
        self._before: dict[str, float] = {}

    def update(self, cycle: int, readings: Readings) -> Mapping[str, DriveCommand]:
        """Commands of one cycle, none once all have answered or one has not; what it has found is in `faults`."""
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
            if spool.on_board:  # which closes the position loop, and knows no speeds
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
