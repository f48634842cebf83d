"""Whether a goal can be held at rest, and the shapes at rest on the way to it, where the program needs them.

An output that fixes all motions of the robot has one shape per pose, which `GoalReach` checks. Free motions, springs
and routed cables settle where statics leads them; for these the equilibria from the present shape to the goal are
computed.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tensegrity_dynamics.errors import InfeasibleControlError
from tensegrity_dynamics.mechanisms.dynamics.tight_cables import TightCables
from tensegrity_dynamics.mechanisms.loads import Payload
from tensegrity_dynamics.mechanisms.mechanism_model import MechanismModel
from tensegrity_dynamics.numerics.types import Array

from ...inverse_kinematics.mechanism_equilibria import MechanismEquilibriumMap
from ...inverse_kinematics.pose_goal import PoseGoal
from ...inverse_kinematics.solve_ik import plan_path
from .borders.goal_reach import GoalReach


class GoalEquilibria:
    """Checks of goals at rest, see the module. They may run in another thread than the controller.

    Args:
        equations: of the robot; only what does not change with the state is read.
    """

    def __init__(self, equations: TightCables) -> None:
        self._equations, self._robot = equations, equations.robot
        self._floor = equations.floors
        self._payloads: tuple[Payload, ...] = ()
        self._map: MechanismEquilibriumMap | None = None
        self._reach: GoalReach | None = None

    def begin(self, floor: Array) -> None:
        """Take the (c,) tension floors [N] of the driven cables."""
        self._floor, self._map = floor, None

    def carry(self, payloads: Sequence[Payload]) -> None:
        """Set the payloads in addition to those of the robot file."""
        self._payloads = tuple(payloads)
        self._map = self._reach = None

    def refuse(self, q: Array, goal: PoseGoal, low: Array) -> None:
        """Raise InfeasibleControlError if the output fixes all motions, and no efforts hold it on the straight line
        from q (nq,) to a goal with tensions of at least (c,) N."""
        if self._reach is None:
            self._reach = GoalReach(self._robot, self._payloads)
        if self._reach.applies:
            self._reach.refuse(q, goal.pose, low)

    def path(self, q: Array, goal: PoseGoal) -> tuple[Array, Array, Array]:
        """Shapes at rest from q (nq,) to a goal, as `OutputPath` takes them: fractions of the way (s,), configurations
        (s, nq) and tensions (s, c) [N].

        Raises:
            UnreachableGoalError, InfeasibleControlError: no sequence of shapes at rest with tight cables leads there.
        """
        cables, equilibria = self._equations.cables, self._equilibria()
        here = equilibria.solve(q[self._equations.drive_q], q)
        path = plan_path(equilibria, here, goal, None).path
        tensions = np.array([equilibria.tensions_of(shape, cables) for shape in path])
        for name, least in zip(cables, np.min(tensions, axis=0), strict=True):
            if not least > 0.0:
                raise InfeasibleControlError(
                    f"cable {name} would be slack on the way to the goal, and this control keeps all cables tight; "
                    "choose a goal closer to the present pose, tighten the cable, or use the controller joint_position."
                )
        travel = np.cumsum([0.0, *(np.linalg.norm(b.pose[0] - a.pose[0]) for a, b in itertools.pairwise(path))])
        return travel / max(float(travel[-1]), 1e-300), np.array([shape.q for shape in path]), tensions

    def _equilibria(self) -> MechanismEquilibriumMap:
        if self._map is None:
            model, robot = self._robot.model_as(MechanismModel), self._robot
            mechanism = replace(model.mechanism, payloads=(*model.mechanism.payloads, *self._payloads))
            if self._payloads:
                robot = replace(robot, model=replace(model, mechanism=mechanism))
            self._map = found = MechanismEquilibriumMap(robot)
            strands = self._equations.parts.strands[:, 0].tolist()
            for strand, floor in zip(strands, self._floor[self._floor.size - len(strands) :], strict=True):
                found.strand_floors.setdefault(mechanism.routes[strand].name, float(floor))
        return self._map
