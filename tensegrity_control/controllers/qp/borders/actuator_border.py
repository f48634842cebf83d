"""Check whether a motion drives an actuator beyond its range, or a cable past its end.

An output that is driven on against an actuator at its limit strains the cable of this actuator until the others have no
more effort, and the robot is lost. Where a range may soon be used up, Newton's method with constant strains therefore
moves the present shape to the goal, two steps in every period. If an actuator or a cable is beyond its end there, the
motion is ended in time to brake.
"""

from __future__ import annotations

import numpy as np

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.mechanisms.dynamics.tight_cables import TightCables
from tensegrity_dynamics.mechanisms.mechanism_model import MechanismModel
from tensegrity_dynamics.numerics.compilation import QuickCall, allocation_free
from tensegrity_dynamics.numerics.rotations import matrix_from_quaternion
from tensegrity_dynamics.numerics.types import Array
from tensegrity_dynamics.robots.output_frame import Pose, pose_error

KEPT_OFF = 0.01
"""Fraction of its range that an actuator keeps from the ends, where hard stops act."""
FORESEEN = 3.0
"""Time to the end, in units of that which the output needs to brake, below which the goal is looked at."""
LONGEST, CLOSE, STEPS, CLOSE_BY, MOST = 0.05, 1e-5, 2, 5, 100
"""Largest step of the output and error at convergence [m or rad]; number of steps in a period, of periods for a goal
close by, and of steps after which there is no convergence."""


@allocation_free
def measure(q, v, acceleration, drive_q, drive_v, limits, turn_q, turns, foreseen, ahead, left):
    """Write the remaining ranges (2, a) [m or rad] downwards and upwards into `left`.

    Args:
        acceleration: (a,) of the actuators. limits: (5, a) low and high position, the distances to keep from them, and
            rate. turn_q, turns: see `MechanismModel.cable_turns`. foreseen, ahead: s.

    Returns:
        Whether a range may be used up within `foreseen` s, and the largest fraction of its rate that an actuator uses
        now or after `ahead` s.
    """
    near, used = False, 0.0
    for a in range(drive_q.shape[0]):
        here, rate, low, high = q[drive_q[a]], v[drive_v[a]], limits[2, a], limits[3, a]
        down, up = here - limits[0, a] - low, limits[1, a] - high - here
        if turn_q[a] >= 0:  # the limits hold for one direction of the cable; a cable that turns winds itself, too
            off = q[turn_q[a]]
            down, up = min(down, turns[a] - off - low), min(up, off - high)
        near = near or down < max(-rate * foreseen, low) or up < max(rate * foreseen, high)
        used = max(used, abs(rate) / limits[4, a], abs(rate + ahead * acceleration[a]) / limits[4, a])
        left[0, a], left[1, a] = down, up
    return near, used


class ActuatorBorder:
    """Ranges of the actuators that are left; see the module.

    Args:
        equations: equations of the robot at the state of their last `update`.

    Attributes:
        left: (2, a) m or rad, ranges that are left downwards and upwards at the last `look`.
        kept: (2, a) m or rad, distances to keep from the ends; a start that is closer keeps half of its distance.
        is_near: whether a range is nearly used up, or will be soon, at the last `look`.
        words: what ends the motion, after `is_reached` or `is_beyond` has returned True.
    """

    def __init__(self, equations: TightCables) -> None:
        robot = equations.robot
        model = robot.model_as(MechanismModel)
        self._equations, self._measure = equations, QuickCall(measure)
        position = np.array([each.position for each in robot.actuators]).T
        start = model.start[equations.drive_q]
        self.kept = np.minimum(KEPT_OFF * np.diff(position, axis=0), 0.5 * np.abs(position - start))
        self._turn_q, self._turns = model.cable_turns(robot.actuators)
        rates = np.array([each.rate for each in robot.actuators])
        self._limits = np.vstack((position, self.kept, rates))
        self.left, self.words, self.is_near = np.zeros_like(self.kept), "", False
        self._end, self._version, self._steps, self._there = model.start, -1, MOST, np.zeros_like(self.kept)
        self._last: Pose | None = None
        self._still = np.zeros(model.mechanism.velocity_count)
        equations.moved(self._end, self._still, 1.0)  # compiled now, not near the first limit

    def look(self, q: Array, v: Array, acceleration: Array, ahead: float, brakes: float) -> float:
        """Evaluate the ranges that are left.

        Args:
            acceleration: (a,) of the actuators. ahead: s.
            brakes: s, distance in which the output comes to rest, over its rate.

        Returns:
            Largest fraction of its rate that an actuator uses, now or after `ahead` s.
        """
        self.is_near, used = self._at(q, v, acceleration, FORESEEN * brakes, ahead, self.left)
        return used

    def is_reached(self, q: Array, goal: Pose, version: int, rate: Array, brakes: float) -> bool:
        """Whether the output has to brake now, after `look` at the same state. The equations may be at another state
        afterwards, if `is_decided` was False before.

        Args:
            q: (nq,) state. goal: pose at the end of the motion. version: number that changes with the goal.
            rate: (k,) m/s, rad/s of the reference.
        """
        equations = self._equations
        if not self.is_decided(version):
            self._approach(q, goal, version)
            return False
        if self._last is not None and not (self._there < 0.0).any():
            return False
        slopes = equations.output_motions()[equations.parts.drive]
        if self._last is None:
            self._go_straight(slopes, goal)
        beyond, rates = self._there < 0.0, slopes @ rate
        for side, toward in enumerate((-rates, rates)):
            reached = beyond[side] & (toward * brakes > self.left[side])
            if reached.any():
                self.words = self._words(q, side, int(np.argmin(np.where(reached, self._there[side], np.inf))))
                return True
        return False

    def is_beyond(self, q: Array, goal: Pose, version: int) -> bool:
        """Whether an actuator or cable is beyond its end at a goal; if the goal is not close by, only those count that
        are at their ends at q (nq,). The equations are at another state afterwards.

        Args:
            version: number that the goal will have.
        """
        for _ in range(CLOSE_BY):
            if not self.is_decided(version):
                self._approach(q, goal, version)
        if self._last is None or not self.is_decided(version):
            self._equations.update(q, self._still)
            self._at(q, self._still, self._still, 0.0, 0.0, self.left)
            self._go_straight(self._equations.output_motions()[self._equations.parts.drive], goal)
            self._there[self.left > self.kept] = np.inf  # far from its end the straight line does not tell
        side, a = np.unravel_index(int(np.argmin(self._there)), self._there.shape)
        if not self._there[side, a] < 0.0:
            return False
        self.words = self._words(q, int(side), int(a))
        return True

    def _approach(self, q: Array, goal: Pose, version: int) -> None:
        """Move a shape by some steps towards a goal, and look at its ranges once it is there. It begins at q (nq,), or
        goes on if the last goal was close to this one (goals in a stream)."""
        equations = self._equations
        if version != self._version:
            if not self._is_close(goal):
                self._end = q
            self._last, self._version, self._steps, self._there[:] = goal, version, 0, np.inf
        for _ in range(STEPS):
            self._steps += 1
            try:
                equations.update(self._end, self._still)
            except TensegrityError:  # a singular position, or a cable that leaves its route
                self._last, self._steps = None, MOST
                return
            error = equations.output_error(goal[0], matrix_from_quaternion(goal[1]))
            size = float(np.max(np.abs(error)))
            if size <= CLOSE:
                self._at(self._end, self._still, self._still, 0.0, 0.0, self._there)
                self._steps = MOST
                return
            if self._steps >= MOST or not np.isfinite(size):
                self._last, self._steps = None, MOST
                return
            part = min(1.0, LONGEST / size)
            self._end = equations.moved(self._end, equations.output_motions() @ (part * error), 1.0)

    def _go_straight(self, slopes: Array, goal: Pose) -> None:
        """Estimate the ranges at a goal that no shape of the robot was found for from the present ones, along the
        straight line, with motions (a, k) of the actuators per motion of the output."""
        change = slopes @ self._equations.output_error(goal[0], matrix_from_quaternion(goal[1]))
        self._there[0], self._there[1] = self.left[0] + change, self.left[1] - change

    def _is_close(self, goal: Pose) -> bool:
        """Whether a goal is at most one step from the last one."""
        if self._last is None:
            return False
        return float(np.max(np.abs(pose_error(goal, self._last)))) < LONGEST

    def is_decided(self, version: int) -> bool:
        """Whether it is known for the goal with this number what is beyond its end there, so that `is_reached` leaves
        the equations as they are."""
        return version == self._version and self._steps >= MOST

    def _at(
        self, q: Array, v: Array, acceleration: Array, foreseen: float, ahead: float, left: Array
    ) -> tuple[bool, float]:
        equations = self._equations
        return self._measure(  # type: ignore[no-any-return]
            q, v, acceleration, equations.drive_q, equations.parts.drive, self._limits, self._turn_q, self._turns,
            foreseen, ahead, left,
        )  # fmt: skip

    def _words(self, q: Array, side: int, a: int) -> str:
        actuator = self._equations.robot.actuators[a]
        if self._turn_q[a] >= 0:
            off = float(q[self._turn_q[a]])
            ending = (float(self._turns[a]) - off, off)[side] - 2.0 * float(self.kept[side, a])
            if ending <= float(self.left[side, a]):
                return f"cable {actuator.drives} is {('nearly all unwound', 'wound up nearly to its anchor')[side]}"
        return f"actuator {actuator.name} is close to its limit of {actuator.position[side]:.4g} {actuator.units[0]}"
