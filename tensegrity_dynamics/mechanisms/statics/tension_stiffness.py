"""Stiffness of the output of a mechanism in one direction, as a function of the cable tensions at a fixed pose.

With held actuators, a force f along a direction d at the output moves the output by C f d, and

    s = 1 / (d' C d),   C = J K^-1 J'

is the force per motion along d, while the motion in all other directions is free (`output_stiffness`). Different
tensions are possible at the same pose: every cable keeps its taut length and is wound until its elongation gives the
desired tension. The possible tensions at a pose are T + N z, where N spans the self-stresses, that is, the null space
of the force balance (`wrench_feasibility`).
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
"""Threshold relative to the largest singular value of the force balance; directions below it are self-stresses."""


class TensionStiffness:
    """Stiffness of the output in one direction, see the module. Objects own work arrays: use one object per thread.

    Args:
        robot: mechanism with driven cables and an output.
        direction: (3,) direction of the force on the output, in world axes.

    Attributes:
        cables: (c,) names of the driven cables, in the order of all tensions of this class.
        ceiling: (c,) largest tensions [N] that the efforts of the actuators allow.

    Raises:
        TensegrityError: the robot has no driven cables or no output, or the direction is not a finite nonzero vector.
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
        """Balanced tensions (c,) [N] at q (nq,) nearest to `tension`, and the self-stresses N (c, s), orthonormal."""
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
        """Configuration q (nq,) at the same pose with the cables wound until their tensions are `tension` (c,) [N]."""
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
        """Stiffness s [N/m] at the pose of q (nq,) with tensions (c,) [N].

        Raises:
            TensegrityError: the output has no stiffness there.
        """
        solver, at = self._solver, self.wound(q, tension)
        none = np.zeros(solver.mechanism.velocity_count)
        count = solver._residual(at, none, reuse=False).size
        stiffness, basis = solver._stiffness(at, none, count)
        along = self.direction @ (output_jacobian(solver.mechanism, at, self._output)[:3] @ basis)
        compliance = float(compliance_along(stiffness, along[None], np.zeros(1, np.int64))[0, 0])
        if not compliance > 0.0:
            raise TensegrityError("the output has no finite stiffness along this direction with these tensions.")
        return 1.0 / compliance
