"""Equations of a mechanism in chosen independent coordinates, with the place of its output: what task plans rest on.

With w the independent coordinates, w' = v restricted to them, and u the efforts of the drives,

    M w'' + c - p = B u,   place = f(w),   place' = J w'

where M, c, p and B are reduced by G (000, 1.2.35) and w is the same choice of coordinates all along a path.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tensegrity_dynamics.errors import TensegrityError, unknown_name
from tensegrity_dynamics.multibody.equations import evaluate, make_work
from tensegrity_dynamics.multibody.forward_dynamics import independent_basis, make_solver, reduce_rows
from tensegrity_dynamics.multibody.implicit import derivative, make_implicit
from tensegrity_dynamics.multibody.independent import wrench_jacobian
from tensegrity_dynamics.multibody.loop_kinematics import BodyOutput
from tensegrity_dynamics.multibody.model import Places
from tensegrity_dynamics.multibody.statics import close_loops
from tensegrity_dynamics.multibody.stepping import make_stages
from tensegrity_dynamics.robot import Robot

Array = NDArray[np.float64]


class TaskModel:
    """Equations of one robot in independent coordinates; keeps its arrays, so one for each thread.

    Args:
        robot: a mechanism with actuators and an output of which positions alone are controlled.
        coordinates: names of all independent coordinates, of joints with one coordinate each. Without it: the driven
            joints, and of the others those that carry the most mass, as far as they are independent at the start.

    Raises:
        TensegrityError: a name is unknown or belongs to a joint with several coordinates, the coordinates are not
            independent or not all, or the output controls rotations.
    """

    def __init__(self, robot: Robot, coordinates: Sequence[str] | None = None) -> None:
        model = robot.mechanism
        mechanism = model.mechanism
        self.robot, self.mechanism, self._flat = robot, mechanism, mechanism.flat
        self.output: BodyOutput = robot.output  # type: ignore[assignment]
        if any(axis.startswith("r") for axis in self.output.controlled):
            raise TensegrityError(f"output {self.output.name} controls rotations; tasks are positions, name x, y, z.")
        self.rows = self.output.rows
        self._work, self._solver = make_work(self._flat), make_solver(self._flat)
        self._stages, self._scratch = make_stages(self._flat), make_implicit(self._flat, mechanism.position_count)
        self._places = Places(model)
        driven = [model.joint_of(each.drives) for each in robot.actuators]
        self.drives = np.array([mechanism.velocities_of(name).start for name in driven], dtype=np.int64)
        names = list(coordinates) if coordinates is not None else self._chosen(driven)
        known = mechanism.coordinate_names()
        joints = {joint.name: joint for joint in mechanism.joints}
        for name in names:
            if name not in known:
                raise TensegrityError(unknown_name("coordinate", name, known))
            if name not in joints:
                raise TensegrityError(f"coordinate {name} is part of a joint with several; choose one with one.")
        self.names = tuple(names)
        self.index = np.array([mechanism.velocities_of(name).start for name in names], dtype=np.int64)
        self.q_index = np.array([mechanism.positions_of(name).start for name in names], dtype=np.int64)
        self._held = np.zeros(mechanism.velocity_count, dtype=np.bool_)
        self._held[self.index] = True
        self._solver.weight[self.index] *= 1e-9  # they are the last to become passive
        self._check(model.start)

    def place(self, start: Array, w: Array) -> Array:
        """Position (nq,) near a start with the coordinates at w (n,) and loops closed.

        Raises:
            TensegrityError: the loops cannot close there.
        """
        q = start.copy()
        q[self.q_index] = w
        self._stages.v_sum[:] = 0.0
        error = close_loops(self._flat, q, self._held, 1e-13, False, self._work, self._solver, self._stages)
        if not error < 1e-9:
            raise TensegrityError("the loops cannot close on the way; choose other independent coordinates.")
        return q

    def output_place(self, q: Array) -> Array:
        """(k,) m, the controlled coordinates of the output."""
        return np.asarray(self._places.move(q).output(self.output)[0][0][self.rows])

    def state(self, q: Array, v: Array) -> Array:
        """(2n,) w and w' of a state of the mechanism."""
        return np.concatenate((q[self.q_index], v[self.index]))

    def linearised(self, q: Array, rate: Array, effort: Array) -> tuple[Array, Array, Array, Array]:
        """A (2n, 2n), B (2n, u), the accelerations w'' (n,), and J (k, n) of the output, at a state under efforts."""
        count, width = self.index.size, self._held.size
        efforts = np.zeros(width)
        efforts[self.drives] = effort
        basis = self._basis(q, np.zeros(width))
        jacobian = wrench_jacobian(self.mechanism, q, self.output.body, self.output.frame.origin)[3:][self.rows] @ basis
        mass = basis.T @ self._work.mass @ basis
        inputs = np.vstack((np.zeros((count, self.drives.size)), np.linalg.solve(mass, basis[self.drives].T)))
        index = self._solver.independent[:count]
        order = np.array([int(np.flatnonzero(index == k)[0]) for k in self.index])
        self._scratch.independent[:count] = index
        self._scratch.basis[:, :count] = self._solver.basis[:, :count]
        origin, ahead, behind = np.zeros(2 * width), np.zeros(2 * width), np.zeros(2 * width)
        origin[count + order] = rate
        both = np.concatenate((order, count + order))
        arguments = (self._work, self._solver, self._stages, self._scratch)
        matrix = np.zeros((2 * count, 2 * count))
        for k in range(2 * count):
            keep = origin[both[k]]
            origin[both[k]] = keep + 1e-6
            derivative(self._flat, q, origin, count, efforts, ahead, *arguments)
            origin[both[k]] = keep - 1e-6
            derivative(self._flat, q, origin, count, efforts, behind, *arguments)
            origin[both[k]] = keep
            matrix[:, k] = ((ahead - behind) / 2e-6)[: 2 * count][both]
        derivative(self._flat, q, origin, count, efforts, ahead, *arguments)
        return matrix, inputs, ahead[count : 2 * count][order].copy(), jacobian

    # -- parts ----------------------------------------------------------------------------------------------------

    def _basis(self, q: Array, velocity: Array) -> Array:
        """G (nv, n), columns in the order of w; leaves M, c and g of the state in the work arrays."""
        evaluate(self._flat, q, velocity, self._work)
        reduce_rows(self._work.loop, self._work.loop_bias, self._solver, False)
        count = independent_basis(self._held.size, self._solver)
        index = self._solver.independent[:count]
        if count != self.index.size or not self._held[index].all():
            raise TensegrityError("the chosen coordinates stop being independent on the way; choose others.")
        return self._solver.basis[:, [int(np.flatnonzero(index == k)[0]) for k in self.index]]

    def _chosen(self, driven: list[str]) -> list[str]:
        """Independent coordinates at the start: the drives, then the joints of one coordinate that carry most."""
        flat, mechanism = self._flat, self.mechanism
        work, solver = make_work(flat), make_solver(flat)
        carried = flat.mass.copy()
        for i in range(carried.size - 1, -1, -1):
            if flat.parent[i] >= 0:
                carried[flat.parent[i]] += carried[i]
        index = mechanism.body_index
        single = [j for j in mechanism.joints if j.kind in ("revolute", "prismatic") and j.name not in driven]
        # a lower weight keeps a coordinate from becoming passive
        for rank, joint in enumerate(sorted(single, key=lambda each: carried[index[each.body]])):
            solver.weight[mechanism.velocities_of(joint.name)] *= 1e-3 * 0.5 ** min(rank, 100)
        solver.weight[self.drives] *= 1e-12
        evaluate(flat, self.robot.mechanism.start, np.zeros(mechanism.velocity_count), work)
        reduce_rows(work.loop, work.loop_bias, solver, False)
        count = independent_basis(mechanism.velocity_count, solver)
        names = mechanism.coordinate_names()
        return [names[k] for k in solver.independent[:count]]

    def _check(self, q: Array) -> None:
        evaluate(self._flat, q, np.zeros(self._held.size), self._work)
        reduce_rows(self._work.loop, self._work.loop_bias, self._solver, False)
        count = independent_basis(self._held.size, self._solver)
        names = self.mechanism.coordinate_names()
        index = set(self._solver.independent[:count].tolist())
        left = [names[k] for k in index if not self._held[k]]
        lost = [name for name, k in zip(self.names, self.index, strict=True) if int(k) not in index]
        if left or lost:
            raise TensegrityError(
                f"{', '.join(self.names)} are not a choice of all {count} independent coordinates here: "
                f"{'missing ' + ', '.join(left) if left else ''}{' dependent ' + ', '.join(lost) if lost else ''}."
            )
