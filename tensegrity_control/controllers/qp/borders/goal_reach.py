"""Check whether the output can be held at a goal and along the straight line to it, if the output fixes all motions.

A robot without free motions has one configuration for each pose of its output along the line. Newton's method with
tight cables moves the output along the line. At each step a linear program searches efforts that hold the output and
keep all tension floors (`holding_reserve`); it includes all self-stresses. If there are none, the cable with the lowest
tension under the best efforts is named (`tension_headroom`). At the goal the actuators must be within their limits, and
no cable may be unwound past its end.

If the robot has free motions, or Newton's method does not converge because the line ends in a singular configuration,
this check accepts the goal. Equilibria along the path (`QPController.equilibria_to`) and the guard during the motion
then check it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from tensegrity_dynamics.errors import InfeasibleControlError
from tensegrity_dynamics.mechanisms.dynamics.tight_cables import TightCables
from tensegrity_dynamics.mechanisms.loads import Payload
from tensegrity_dynamics.mechanisms.mechanism_model import MechanismModel
from tensegrity_dynamics.numerics.rotations import matrix_from_quaternion, matrix_from_vector, rotation_vector
from tensegrity_dynamics.numerics.types import Array
from tensegrity_dynamics.robots.output_frame import Pose
from tensegrity_dynamics.robots.robot import Robot

from .holding_reserve import ROUNDING, HoldingReserve
from .tension_headroom import TensionHeadroom

STEP = 0.05
"""rad or m, largest step of a coordinate between two checks."""
MOST_STEPS, ITERATIONS, CLOSE = 50, 8, 1e-6
"""Largest number of checks along the line, Newton steps per check, and the error [m or rad] at convergence."""


def shapes_towards(equations: TightCables, q: Array, goal: Pose) -> Iterator[tuple[float, Array]]:
    """Shapes with tight cables on the straight line from q (nq,) to a goal of the output: the fraction of the way and
    (nq,) of each, while the equations are at it. Ends before the goal where Newton's method does not converge."""
    still = np.zeros(equations.mechanism.velocity_count)
    arrays = equations.update(q, still)
    start, first = arrays.position[:3].copy(), np.array(equations.rotation)
    end = matrix_from_quaternion(np.asarray(goal[1]))
    travel, turn = np.asarray(goal[0]) - start, rotation_vector(end @ first.T)
    whole = equations.output_motions() @ equations.output_error(np.asarray(goal[0]), end)
    steps = min(max(1, math.ceil(float(np.max(np.abs(whole))) / STEP)), MOST_STEPS)
    for part in np.linspace(0.0, 1.0, steps + 1)[1:].tolist():
        for _ in range(ITERATIONS):
            error = equations.output_error(start + part * travel, matrix_from_vector(part * turn) @ first)
            if float(np.max(np.abs(error))) < CLOSE:
                break
            q = equations.moved(q, equations.output_motions() @ error, 1.0)
            equations.update(q, still)
        else:
            return
        yield part, q


class GoalReach:
    """Check of goals; see the module. It has its own equations, so that it may run in another thread than the
    controller.

    Args:
        robot: as for `TightCables`.
        payloads: payloads in addition to those of the robot file.

    Attributes:
        applies: whether the output fixes all motions of the robot.
    """

    def __init__(self, robot: Robot, payloads: Sequence[Payload] = ()) -> None:
        self._equations = equations = TightCables(robot)
        if payloads:
            equations.carry(payloads)
        effort = np.array([each.effort for each in robot.actuators])
        self._reserve = HoldingReserve(equations, effort, equations.floors)
        self._headroom = TensionHeadroom(equations, effort, equations.floors)
        self._low, self._high = np.array([each.position for each in robot.actuators]).T
        self._turn_q, self._turns = robot.model_as(MechanismModel).cable_turns(robot.actuators)
        self.applies = equations.count - len(equations.cables) <= equations.parts.axes.size

    def refuse(self, q: Array, goal: Pose, floor: Array) -> None:
        """Raise InfeasibleControlError if no efforts hold the output somewhere on the straight line from q (nq,) to a
        goal.

        Args:
            goal: pose of the output.
            floor: (c,) N, tension floors of the actuated cables.
        """
        equations = self._equations
        equations.update(q, np.zeros(equations.mechanism.velocity_count))
        self._reserve.floor = self._headroom.low = floor
        self._headroom.begin(equations.tension)
        for part, shape in shapes_towards(equations, q, goal):
            if self._reserve.share() > 1.0 + ROUNDING:
                self._say(part)
            if part == 1.0:
                self._refuse_beyond_limits(shape)

    def _refuse_beyond_limits(self, q: Array) -> None:
        """Raise InfeasibleControlError if an actuator is beyond its limits in q (nq,), or a cable past its end."""
        robot, wound = self._equations.robot, self._turn_q >= 0
        position = q[self._equations.drive_q]
        beyond = np.maximum(position - self._high, self._low - position)
        past = np.where(wound, q[self._turn_q] - self._turns, -np.inf)
        worst, most = int(np.argmax(beyond)), int(np.argmax(past))
        if past[most] > ROUNDING:
            actuator = robot.actuators[most]
            radius = robot.model_as(MechanismModel).cable_radius(actuator)
            off, whole = radius * q[self._turn_q[most]], radius * self._turns[most]
            raise InfeasibleControlError(
                f"cable {actuator.drives} would be unwound past its end at the goal: {off:.4g} m would be off its "
                f"pulley, and it is {whole:.4g} m long. Choose a goal closer to the present pose, or give the cable a "
                "longer `length`."
            )
        if beyond[worst] > ROUNDING:
            actuator, unit = robot.actuators[worst], robot.actuators[worst].units[0]
            raise InfeasibleControlError(
                f"actuator {actuator.name} would have to be at {position[worst]:.4g} {unit} at the goal, beyond its "
                f"limits {self._low[worst]:.4g} to {self._high[worst]:.4g} {unit}. Choose a goal closer to the present "
                "pose, or widen `position`."
            )

    def _say(self, part: float) -> None:
        where = f"{part:.0%} of the way to the goal" if part < 1.0 else "at the goal"
        if not self._headroom.value() < 0.0:
            raise InfeasibleControlError(
                f"no efforts within their limits hold the output {where}; {self._reserve.strained()} exceeds its limit "
                "most. Choose a goal closer to the present pose."
            )
        cable = self._headroom.tightest()
        floor = float(self._headroom.low[self._equations.cables.index(cable)])
        raise InfeasibleControlError(
            f"no cable tensions hold the output {where}: cable {cable} would fall below its tension floor of "
            f"{floor:.3g} N, whatever the tensions of the other cables. Choose a goal closer to the present pose, or "
            "lower its `minimum_tension`."
        )
