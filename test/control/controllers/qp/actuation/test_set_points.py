"""Set points of actuators that do not go where they are sent: gears that stick."""

from __future__ import annotations

import numpy as np
import pytest

from tensegrity_control.controllers.qp.actuation.set_points import CORRECTED, fill_set_points
from tensegrity_control.controllers.qp.timing.pending_commands import PendingCommands, Sent

PERIOD, PLAY = 0.02, 1.6e-3  # s, rad


class Gear:
    """An actuator that turns only when its set point is `PLAY` away from it, led by a loop of bandwidth w [1/s] one
    period late; `reach` [rad] is how far it may be off its set point."""

    def __init__(self, reach: float = np.inf, stuck: float = np.inf, sticks: bool = True) -> None:
        self.q, self.before, self.commanded, self.stuck, self.sticks = 0.0, 0.0, 0.0, stuck, sticks
        self.reach, self.pending, self.step = np.array([reach]), PendingCommands(0.12), 0
        self.command = np.zeros((2, 1))

    def lead(self, goal: float, w: float) -> float:
        """One period; the gear's position after it."""
        time = self.step * PERIOD
        acts = time + PERIOD
        q, v, index = np.array([self.q]), np.array([(self.q - self.before) / PERIOD]), np.zeros(1, np.int64)
        pull = w * w * (goal - q) - 2.0 * w * v
        before = self.pending.commanded(time, acts)
        position, rate, left, sent, sent_rate, effort = np.zeros((6, 1))
        fill_set_points(
            q, v, index, index, np.zeros((1, 4)), True, pull, PERIOD, PERIOD, 0.5 * CORRECTED, self.sticks,
            self.reach, before is not None, *(before or (position, rate, position, rate)), 0.0 * q, 0.0 * q, np.ones(1),
            position, rate, left, sent, sent_rate, effort,
        )  # fmt: skip
        self.pending.send(Sent(acts, PERIOD, pull, position, rate, left, time))
        self.before, self.step = self.q, self.step + 1
        if time < self.stuck:
            self.q = min(max(self.q, self.commanded - PLAY), self.commanded + PLAY)
        self.commanded = float(sent[0] + PERIOD * sent_rate[0])
        return self.q


@pytest.mark.parametrize("w", [2.0, 5.0])
def test_a_gear_that_sticks_rests_where_it_was_sent_and_does_not_hunt(w):
    gear = Gear()
    ways = np.array([gear.lead(0.01, w) for _ in range(round(30.0 / w / PERIOD))])
    late = ways[-ways.size // 3 :] - 0.01
    assert np.max(np.abs(late)) < 0.2 * PLAY  # PLAY off or more where set points come back to where it is seen
    assert np.ptp(late) < 0.05 * PLAY


def test_the_set_point_of_a_gear_that_is_caught_asks_for_no_more_than_the_actuator_gives():
    gear = Gear(reach=0.005, stuck=0.2)
    lacks = []
    for _ in range(500):
        gear.lead(0.1, 2.0)
        lacks.append(gear.commanded - gear.q)
    assert 0.0045 < lacks[-1] < 0.0075  # with what it moves on by until the next command


def test_what_commands_that_came_late_left_behind_comes_back_where_no_gear_sticks():
    free, geared = Gear(stuck=0.2, sticks=False), Gear(stuck=0.2)
    for _ in range(500):
        free.lead(0.01, 2.0)
        geared.lead(0.01, 2.0)
    assert abs(free.commanded - free.q) < 0.2 * abs(geared.commanded - geared.q)
