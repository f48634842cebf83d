"""MuJoCo as a judge: equilibrium and frequencies of an exported model by its own kinematics, masses and forces.

Its soft equalities and contact solver play no part: loops are held exactly, by Newton's method on forces and gaps.
"""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np
from scipy.linalg import eigh, null_space


@dataclass
class Judgement:
    """Equilibrium qpos, poses of the bodies there by name, forces left, and frequencies [rad/s], lowest first."""

    qpos: np.ndarray
    positions: dict[str, np.ndarray]
    residual: float
    frequencies: np.ndarray


class Judge:
    """One model; joints called `held` stay where they are exported."""

    def __init__(self, text: str, held: tuple[str, ...] = ()) -> None:
        self.model = mujoco.MjModel.from_xml_string(text)
        self.model.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
        self.data = mujoco.MjData(self.model)
        self.start = np.array(self.data.qpos)
        joints = [self.model.joint(name) for name in held]
        self.held = np.array([joint.dofadr[0] for joint in joints], dtype=int)
        self.held_q = np.array([joint.qposadr[0] for joint in joints], dtype=int)

    def evaluate(self, qpos):
        """Forces (nv,), rows that hold (c, nv) and their gaps (c,) at rest."""
        model, data = self.model, self.data
        data.qpos[:], data.qvel[:] = qpos, 0.0
        mujoco.mj_forward(model, data)
        force = data.qfrc_passive + data.qfrc_actuator - data.qfrc_bias
        rows = np.flatnonzero(data.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY)
        jacobian = np.array(data.efc_J).reshape(-1, model.nv)[rows] if rows.size else np.zeros((0, model.nv))
        gaps = np.concatenate((np.array(data.efc_pos)[rows], qpos[self.held_q] - self.start[self.held_q]))
        return np.array(force), np.vstack((jacobian, np.eye(model.nv)[self.held])), gaps

    def moved(self, qpos, step):
        result = np.array(qpos)
        mujoco.mj_integratePos(self.model, result, np.asarray(step, dtype=np.float64), 1.0)
        return result

    def stiffness(self, qpos, multipliers):
        matrix = np.zeros((self.model.nv, self.model.nv))
        for k in range(self.model.nv):
            sides = []
            for sign in (1e-6, -1e-6):
                force, rows, _ = self.evaluate(self.moved(qpos, sign * np.eye(self.model.nv)[k]))
                sides.append(force + rows.T @ multipliers)
            matrix[:, k] = -(sides[0] - sides[1]) / 2e-6
        return matrix

    def judge(self, away: float = 1e-3, seed: int = 0) -> Judgement:
        """The equilibrium found from a start `away` (m, rad) from the exported shape, along what the loops allow."""
        _, rows, _ = self.evaluate(self.start)
        free = null_space(rows) if rows.size else np.eye(self.model.nv)
        if not free.shape[1]:
            away, free = 0.0, np.ones((self.model.nv, 1))
        nudge = free @ np.random.default_rng(seed).normal(size=free.shape[1])
        qpos = self.moved(self.start, away * nudge / np.abs(nudge).max())
        for _ in range(50):
            force, rows, gaps = self.evaluate(qpos)
            multipliers = -np.linalg.lstsq(rows.T, force, rcond=1e-10)[0] if rows.size else np.zeros(0)
            left = force + rows.T @ multipliers
            if max(np.abs(left).max(), np.abs(gaps).max(initial=0.0)) < 1e-9:
                break
            matrix = self.stiffness(qpos, multipliers)
            nothing = np.zeros((rows.shape[0], rows.shape[0]))
            system = np.block([[matrix, -rows.T], [rows, nothing]])
            step = np.linalg.lstsq(system, np.concatenate((left, -gaps)), rcond=1e-12)[0][: self.model.nv]
            qpos = self.moved(qpos, step * min(1.0, 0.02 / np.abs(step).max()))
        matrix = self.stiffness(qpos, multipliers)
        _, rows, _ = self.evaluate(qpos)
        mass = np.zeros((self.model.nv, self.model.nv))
        mujoco.mj_fullM(self.model, self.data, mass)
        free = null_space(rows, rcond=1e-9) if rows.size else np.eye(self.model.nv)
        if not free.shape[1]:
            free = np.zeros((self.model.nv, 0))
        reduced = free.T @ matrix @ free
        squares = np.zeros(0)
        if free.shape[1]:
            squares = eigh(0.5 * (reduced + reduced.T), free.T @ mass @ free, eigvals_only=True)
        names = [self.model.body(k).name for k in range(1, self.model.nbody)]
        positions = {name: np.array(self.data.body(name).xpos) for name in names}
        return Judgement(qpos, positions, float(np.abs(left).max()), np.sqrt(np.maximum(squares, 0.0)))

    def accelerations(self, effort: dict[str, float]) -> dict[str, float]:
        """Of joints of one coordinate, by name, from rest in the exported shape under efforts by joint."""
        force, rows, _ = self.evaluate(self.start)
        for name, value in effort.items():
            force[self.model.joint(name).dofadr[0]] += value
        nv, count = self.model.nv, rows.shape[0]
        mass = np.zeros((nv, nv))
        mujoco.mj_fullM(self.model, self.data, mass)
        system = np.block([[mass, -rows.T], [rows, np.zeros((count, count))]])
        answer = np.linalg.lstsq(system, np.concatenate((force, np.zeros(count))), rcond=1e-14)[0]
        return {self.model.joint(k).name: float(answer[self.model.joint(k).dofadr[0]]) for k in range(self.model.njnt)}
