"""Whether the output can be held at a goal, and on the straight way to it, where it takes all motions of its robot.

Such a robot has one shape for each pose of its output, as long as that lies on the way from here. The output is led
along the way by Newton's method with tight cables, and at each step efforts are looked for that hold it there and keep
all floors (`holding_reserve`): a linear program, which chooses among all self-stresses. Without any, the cable is named
that comes lowest at the best efforts (`tension_headroom`). Where free motions are left, or the way ends in a singular
position, nothing is said: shapes at rest along a way (`QPController.equilibria_to`) and the guard on the way do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tensegrity_dynamics.errors import InfeasibleControlError
from tensegrity_dynamics.mechanisms.dynamics.tight_cables import TightCables
from tensegrity_dynamics.mechanisms.loads import Payload
from tensegrity_dynamics.numerics.rotations import matrix_from_quaternion, matrix_from_vector, rotation_vector
from tensegrity_dynamics.numerics.types import Array
from tensegrity_dynamics.robots.output_frame import Pose
from tensegrity_dynamics.robots.robot import Robot

from .holding_reserve import ROUNDING, HoldingReserve
from .tension_headroom import TensionHeadroom

STEP = 0.05
"""rad or m of the coordinate that moves most from one look to the next."""
MOST_STEPS, ITERATIONS, CLOSE = 50, 8, 1e-6
"""Looks on a way, Newton steps of one, and m or rad at which these have converged."""


class GoalReach:
    """See the module. It has equations of its own, so that it may look in another thread than the control.

    Args:
        robot: as for `TightCables`. payloads: that it carries beside those of its file.

    Attributes:
        applies: whether the output takes all motions of the robot.
    """

    def __init__(self, robot: Robot, payloads: Sequence[Payload] = ()) -> None:
        self._equations = equations = TightCables(robot)
        if payloads:
            equations.carry(payloads)
        effort = np.array([each.effort for each in robot.actuators])
        self._reserve = HoldingReserve(equations, effort, equations.floors)
        self._headroom = TensionHeadroom(equations, effort, equations.floors)
        self.applies = equations.count - len(equations.cables) <= equations.parts.axes.size

    def refuse(self, q: Array, goal: Pose, floor: Array) -> None:
        """Raise InfeasibleControlError where no efforts hold the output on the straight way from q (nq,) to a goal.

        Args:
            floor: (c,) N that the driven cables keep.
        """
        equations, still = self._equations, np.zeros(self._equations.mechanism.velocity_count)
        arrays = equations.update(q, still)
        self._reserve.floor = self._headroom.low = floor
        self._headroom.begin(equations.tension)
        start, first = arrays.position[:3].copy(), np.array(equations.rotation)
        travel = np.asarray(goal[0]) - start
        turn = rotation_vector(matrix_from_quaternion(np.asarray(goal[1])) @ first.T)
        whole = self._motions() @ self._by_row(travel, turn)
        steps = min(max(1, math.ceil(float(np.max(np.abs(whole))) / STEP)), MOST_STEPS)
        for part in np.linspace(0.0, 1.0, steps + 1)[1:].tolist():
            for _ in range(ITERATIONS):
                away = start + part * travel - arrays.position[:3]
                twisted = rotation_vector(matrix_from_vector(part * turn) @ first @ np.array(equations.rotation).T)
                error = self._by_row(away, twisted)
                if float(np.max(np.abs(error))) < CLOSE:
                    break
                q = equations.moved(q, self._motions() @ error, 1.0)
                arrays = equations.update(q, still)
            else:
                return
            if self._reserve.share() > 1.0 + ROUNDING:
                self._say(part)

    def _by_row(self, travel: Array, turn: Array) -> Array:
        """(k,) of the controlled axes, of (3,) m and (3,) rad."""
        return np.asarray(np.concatenate((travel, turn))[self._equations.parts.axes])

    def _motions(self) -> Array:
        """(nv, k) velocities that move one row of the output each and stretch no cable, at the last `update`."""
        equations, arrays = self._equations, self._equations.arrays
        count, outputs = equations.count, arrays.jacobian.shape[0]
        rows = np.vstack((arrays.jacobian, arrays.stretch))
        moving = np.linalg.lstsq(rows, np.eye(len(rows), outputs), rcond=None)[0]
        return np.asarray(equations.reduction.basis[:, :count] @ moving)

    def _say(self, part: float) -> None:
        where = f"{part:.0%} of the way to the goal" if part < 1.0 else "at the goal"
        if not self._headroom.value() < 0.0:
            raise InfeasibleControlError(
                f"no effort within its limits holds the output {where}: {self._reserve.strained()} lacks most; choose "
                "a goal nearer to here."
            )
        cable = self._headroom.tightest()
        floor = float(self._headroom.low[self._equations.cables.index(cable)])
        raise InfeasibleControlError(
            f"no tensions hold the output {where}: cable {cable} would have to fall below the {floor:.3g} N that it "
            "keeps, however the others pull; choose a goal nearer to here, or lower its minimum_tension."
        )
