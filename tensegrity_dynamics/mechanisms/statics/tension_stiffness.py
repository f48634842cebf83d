"""Stiffness of a mechanism's output in one direction as a function of the tensions of its cables, where it is.

With the actuators held a force f along a direction d of the output moves it by C f d, and

    s = 1 / (d' C d),   C = J K^-1 J'

is the force over the motion along d, all else free to follow (`output_stiffness`). The tensions may be others at the
same pose: every cable keeps its taut length and is wound so far that its stretch gives the tension asked for. Those
that a pose leaves open are T + N z, with N the self-stresses: what the balance of forces (`wrench_feasibility`) does
not see.
"""

from __future__ import annotations

import numpy as np

from ...errors import TensegrityError
from ...numerics.types import Array
from ...robots.robot import Robot
from .. import joints
from ..body_frame import BodyFrame
from ..mechanism_model import MechanismModel
from .equilibrium_solver import MechanismEquilibriumSolver
from .output_stiffness import compliance_along, output_jacobian
from .wrench_feasibility import cable_statics

SINGULAR = 1e-9
"""Of the largest singular value of the balance: what is below is a self-stress."""


class TensionStiffness:
    """See the module; every object keeps arrays of its own, so take one for each thread.

    Args:
        robot: a mechanism with driven cables and an output. direction: (3,) of a force on the output, in the world.

    Attributes:
        cables: (c,) names of the driven cables, in the order of all tensions here. ceiling: (c,) N that the efforts
            of the actuators allow.

    Raises:
        TensegrityError: it has none, or the direction is not three finite numbers beside zero.
    """

    def __init__(self, robot: Robot, direction: Array) -> None:
        along = np.asarray(direction, dtype=np.float64)
        if along.shape != (3,) or not np.all(np.isfinite(along)) or not np.linalg.norm(along) > 1e-9:
            raise TensegrityError(f"the direction of a stiffness is {along.tolist()}; give x, y, z, not all zero.")
        self.direction = along / np.linalg.norm(along)
        self._robot, self._model = robot, robot.model_as(MechanismModel)
        self._output: BodyFrame = robot.output  # type: ignore[assignment]
        mechanism = self._model.mechanism
        self._solver = MechanismEquilibriumSolver(mechanism, self._model.driven_joints(robot.actuators))
        statics = cable_statics(robot, self._model.start)
        self.cables, self.ceiling = statics.cables, statics.tension_high
        entries = {entry.name: entry for entry in self._model.entries}
        springs = {cable.name: cable.young * cable.area for cable in mechanism.cables}
        self._springs = np.array([springs[name] for name in self.cables])
        self._parts = [
            (
                mechanism.positions_of(entries[name].joints[1]).start,
                mechanism.positions_of(entries[name].joints[2]).start,
                float(mechanism.joint(entries[name].joints[1]).axis[2]),
                mechanism.joint(entries[name].joints[2]),
            )
            for name in self.cables
        ]

    def self_stresses(self, q: Array, tension: Array) -> tuple[Array, Array]:
        """Tensions (c,) N in balance at q (nq,), those nearest to `tension`, and N (c, s) with orthonormal columns."""
        statics = cable_statics(self._robot, q)
        balance, count = statics.balance, len(self.cables)
        size = np.concatenate(
            (np.full(count, max(1.0, float(np.max(np.abs(tension))))), np.maximum(statics.effort, 1e-9))
        )
        _, values, rows = np.linalg.svd(balance * size, full_matrices=True)
        rank = int(np.count_nonzero(values > SINGULAR * float(values.max(initial=0.0))))
        open_rows = (rows[rank:] * size)[:, :count]
        _, sizes, own = np.linalg.svd(open_rows, full_matrices=False)
        stress = own[sizes > SINGULAR * max(1.0, float(sizes.max(initial=0.0)))].T
        held = np.linalg.lstsq(balance * size, statics.passive, rcond=SINGULAR)[0][:count] * size[:count]
        return held + stress @ (stress.T @ (tension - held)), stress

    def wound(self, q: Array, tension: Array) -> Array:
        """q (nq,) at the same pose with the cables wound until they pull `tension` (c,) N."""
        result = np.array(q, dtype=np.float64)
        for (pulley, cable, sign, joint), spring, pull in zip(self._parts, self._springs, tension, strict=True):
            kind = joints.JOINT_KINDS[joint.kind]
            taut = float(joints.cable_length(kind, joint.radius, result[cable : cable + 2]))
            rest = taut / (1.0 + pull / spring)
            angle = rest / joint.radius
            result[pulley] -= (angle - result[cable]) / sign
            result[cable] = angle
            if kind == joints.INVOLUTE_EPSILON:
                result[cable + 1] = pull / spring
            elif kind == joints.INVOLUTE_U:
                result[cable + 1] = taut - rest
        return result

    def value(self, q: Array, tension: Array) -> float:
        """s [N/m] at the pose of q (nq,) with tensions (c,) N. Raises TensegrityError: no stiffness at all there."""
        solver, at = self._solver, self.wound(q, tension)
        none = np.zeros(solver.mechanism.velocity_count)
        count = solver._residual(at, none, reuse=False).size
        stiffness, basis = solver._stiffness(at, none, count)
        along = self.direction @ (output_jacobian(solver.mechanism, at, self._output)[:3] @ basis)
        compliance = float(compliance_along(stiffness, along[None], np.zeros(1, np.int64))[0, 0])
        if not compliance > 0.0:
            raise TensegrityError("the output has no finite stiffness along this direction with these tensions.")
        return 1.0 / compliance
