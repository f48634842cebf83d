"""Verification by MuJoCo: equilibrium and frequencies of an exported model by MuJoCo's kinematics, masses and forces.

Its soft equality constraints and contact solver are not used: loops are closed exactly, by Newton's method on forces
and gaps.
A motion without restoring force (a slack tendon net, a robot that slides on its ground) has no unique equilibrium: the
search starts at a distance from the exported shape in all other directions, takes no steps along these motions, and
selects from the continuum of equilibria the shape nearest to the exported one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh, null_space

from tensegrity_dynamics.errors import TensegrityError

Array = NDArray[np.float64]

STEP = 1e-6
"""Step of finite differences [m or rad]."""
LOOSE = 1e-9
"""Smallest stiffness that counts as a restoring force, relative to the largest stiffness [-]."""
LONGEST = 0.02
"""Largest step of Newton's method [m or rad]."""


@dataclass
class Judgement:
    """Equilibrium of a model by MuJoCo.

    Attributes:
        qpos: coordinates. positions: origins of the bodies by name [m].
        left: largest residual force [N or N m]. gap: largest gap of a loop [m or rad].
        exported: largest residual force in the exported shape [N or N m].
        frequencies: undamped angular frequencies in ascending order [rad/s]; zero for motions without restoring force.
        loose: number of these motions.
    """

    qpos: Array
    positions: dict[str, Array]
    left: float
    gap: float
    exported: float
    frequencies: Array
    loose: int


class Judge:
    """MuJoCo model; joints named in `held` keep their exported positions.

    Raises:
        TensegrityError: MuJoCo is missing.
    """

    def __init__(self, text: str, held: Sequence[str] = ()) -> None:
        try:
            import mujoco  # an extra
        except ModuleNotFoundError:
            raise TensegrityError("MuJoCo is missing: pip install 'mujoco>=3.2,<5'.") from None
        self._mujoco: Any = mujoco
        self.model: Any = mujoco.MjModel.from_xml_string(text)
        self.model.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
        self.data: Any = mujoco.MjData(self.model)
        self.start = np.array(self.data.qpos)
        joints = [self.model.joint(name) for name in held]
        self.held = np.array([joint.dofadr[0] for joint in joints], dtype=int)
        self.held_q = np.array([joint.qposadr[0] for joint in joints], dtype=int)

    def evaluate(self, qpos: Array) -> tuple[Array, Array, Array]:
        """Forces (nv,), constraint Jacobian (c, nv) and constraint gaps (c,) at rest."""
        mujoco, model, data = self._mujoco, self.model, self.data
        data.qpos[:], data.qvel[:] = qpos, 0.0
        mujoco.mj_forward(model, data)
        force = data.qfrc_passive + data.qfrc_actuator - data.qfrc_bias
        rows = np.flatnonzero(data.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY)
        jacobian = np.array(data.efc_J).reshape(-1, model.nv)[rows] if rows.size else np.zeros((0, model.nv))
        gaps = np.concatenate((np.array(data.efc_pos)[rows], qpos[self.held_q] - self.start[self.held_q]))
        return np.array(force), np.vstack((jacobian, np.eye(model.nv)[self.held])), gaps

    def moved(self, qpos: Array, step: Array) -> Array:
        """Coordinates after a displacement (nv,)."""
        result = np.array(qpos)
        self._mujoco.mj_integratePos(self.model, result, np.asarray(step, dtype=np.float64), 1.0)
        return result

    def stiffness(self, qpos: Array, multipliers: Array) -> Array:
        """(nv, nv) stiffness of the forces including constraint forces, by finite differences."""
        matrix = np.zeros((self.model.nv, self.model.nv))
        for k in range(self.model.nv):
            sides = []
            for sign in (STEP, -STEP):
                force, rows, _ = self.evaluate(self.moved(qpos, sign * np.eye(self.model.nv)[k]))
                sides.append(force + rows.T @ multipliers)
            matrix[:, k] = -(sides[0] - sides[1]) / (2.0 * STEP)
        return matrix

    def forces_left(self, qpos: Array) -> tuple[Array, Array, Array, Array]:
        """Residual forces that constraints cannot balance (nv,), multipliers (c,), Jacobian (c, nv), gaps (c,)."""
        force, rows, gaps = self.evaluate(qpos)
        multipliers = -np.linalg.lstsq(rows.T, force, rcond=1e-10)[0] if rows.size else np.zeros(0)
        return force + rows.T @ multipliers, multipliers, rows, gaps

    def judge(self, away: float = 1e-3) -> Judgement:
        """Equilibrium, found from a start at a distance `away` [m, rad] from the exported shape along stiff motions."""
        qpos = self.start
        left, multipliers, rows, gaps = self.forces_left(qpos)
        exported = float(np.abs(left).max(initial=0.0))
        stiff = _stiff_motions(self.stiffness(qpos, multipliers), rows)[0]
        if stiff.shape[1]:
            nudge = stiff @ np.random.default_rng(0).normal(size=stiff.shape[1])
            qpos = self.moved(qpos, away * nudge / np.abs(nudge).max())
        qpos = self._settled(qpos)
        left, multipliers, rows, gaps = self.forces_left(qpos)
        loose = _stiff_motions(self.stiffness(qpos, multipliers), rows)[1]
        if loose.shape[1]:
            moved = np.zeros(self.model.nv)
            self._mujoco.mj_differentiatePos(self.model, moved, 1.0, self.start, qpos)
            qpos = self._settled(self.moved(qpos, -loose @ (loose.T @ moved)))
        left, multipliers, rows, gaps = self.forces_left(qpos)
        matrix = self.stiffness(qpos, multipliers)
        self.evaluate(qpos)
        mass = np.zeros((self.model.nv, self.model.nv))
        self._mujoco.mj_fullM(self.model, self.data, mass)
        stiff, loose = _stiff_motions(matrix, rows)
        free = np.hstack((stiff, loose))
        squares = np.zeros(0)
        if free.shape[1]:
            reduced = free.T @ matrix @ free
            squares = eigh(0.5 * (reduced + reduced.T), free.T @ mass @ free, eigvals_only=True)
            squares[np.argsort(np.abs(squares))[: loose.shape[1]]] = 0.0
        names = [self.model.body(k).name for k in range(1, self.model.nbody)]
        positions = {name: np.array(self.data.body(name).xpos) for name in names}
        return Judgement(
            qpos, positions, float(np.abs(left).max(initial=0.0)), float(np.abs(gaps).max(initial=0.0)), exported,
            np.sort(np.sqrt(np.maximum(squares, 0.0))), loose.shape[1],
        )  # fmt: skip

    def _settled(self, qpos: Array) -> Array:
        """Newton's method on forces and gaps, without steps along motions without restoring force."""
        for _ in range(50):
            left, multipliers, rows, gaps = self.forces_left(qpos)
            if max(np.abs(left).max(initial=0.0), np.abs(gaps).max(initial=0.0)) < 1e-10:
                break
            matrix = self.stiffness(qpos, multipliers)
            stiff = _stiff_motions(matrix, rows)[0]
            closing = -np.linalg.lstsq(rows, gaps, rcond=1e-9)[0] if rows.size else np.zeros(self.model.nv)
            step = closing + stiff @ np.linalg.solve(stiff.T @ matrix @ stiff, stiff.T @ (left - matrix @ closing))
            largest = float(np.abs(step).max(initial=0.0))
            qpos = self.moved(qpos, step * min(1.0, LONGEST / largest) if largest > 0.0 else step)
            if largest < 1e-13:
                break
        return qpos

    def accelerations(self, effort: dict[str, float]) -> dict[str, float]:
        """Accelerations of joints with one coordinate by name, from rest in the exported shape, for efforts by
        joint."""
        force, rows, _ = self.evaluate(self.start)
        for name, value in effort.items():
            force[self.model.joint(name).dofadr[0]] += value
        nv, count = self.model.nv, rows.shape[0]
        mass = np.zeros((nv, nv))
        self._mujoco.mj_fullM(self.model, self.data, mass)
        system = np.block([[mass, -rows.T], [rows, np.zeros((count, count))]])
        answer = np.linalg.lstsq(system, np.concatenate((force, np.zeros(count))), rcond=1e-14)[0]
        return {self.model.joint(k).name: float(answer[self.model.joint(k).dofadr[0]]) for k in range(self.model.njnt)}


def _stiff_motions(matrix: Array, rows: Array) -> tuple[Array, Array]:
    """Orthonormal motions (nv, k) that satisfy the constraints: those with a stiffness, and those without."""
    free = null_space(rows, rcond=1e-9) if rows.size else np.eye(matrix.shape[0])
    if not free.shape[1]:
        return free, free
    reduced = free.T @ matrix @ free
    values, vectors = np.linalg.eigh(0.5 * (reduced + reduced.T))
    is_stiff = np.abs(values) > LOOSE * np.abs(matrix).max(initial=0.0)
    return free @ vectors[:, is_stiff], free @ vectors[:, ~is_stiff]
