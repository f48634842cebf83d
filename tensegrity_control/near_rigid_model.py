"""Equations of a cable-driven mechanism in tracked coordinates and cable strains (000, sections 3.2 and 5.3).

The independent coordinates are w = (y, strains): y those that shall follow a path, one strain per cable. With the
tensions T of the cables the reduced equations (000, 1.2.35) read

    M w'' + c = S T + B u,   S = -G' (r strain on the unwound angle, r angle on the strain)

linear in T, because the efforts of a cable are its tension times fixed geometry (000, 3.1.16). Where N' B = 0, N says
what the drives cannot do at once: N' (M w'' + c) = N' S T must come from the tensions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tensegrity_dynamics.errors import TensegrityError, unknown_name
from tensegrity_dynamics.multibody.equations import evaluate, make_work
from tensegrity_dynamics.multibody.forward_dynamics import independent_basis, make_solver, reduce_rows
from tensegrity_dynamics.multibody.implicit import derivative, make_implicit
from tensegrity_dynamics.multibody.statics import close_loops
from tensegrity_dynamics.multibody.stepping import make_stages
from tensegrity_dynamics.robot import Robot

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Reduced:
    """The equations at one state; see the module.

    Attributes:
        mass: M (n, n). bias: c (n,), without the cables. cables: S (n, c), per N. passive: (n,) S times the tensions
            that the state has. inputs: B (n, u). basis: G (nv, n). velocity: (nv,).
    """

    mass: Array
    bias: Array
    cables: Array
    passive: Array
    inputs: Array
    basis: Array
    velocity: Array


class NearRigidModel:
    """Equations of one robot in tracked coordinates and strains; keeps its arrays, so one for each thread.

    Args:
        robot: a mechanism whose cables all have the `epsilon` variant.
        tracked: names of the coordinates that follow a path (`Mechanism.coordinate_names`), of joints with one
            coordinate. With the strains they must be all degrees of freedom.

    Raises:
        TensegrityError: a cable has another variant, a name is unknown, or degrees of freedom are left over.
    """

    def __init__(self, robot: Robot, tracked: Sequence[str]) -> None:
        model = robot.mechanism
        mechanism = model.mechanism
        self.robot, self.mechanism, self.tracked = robot, mechanism, tuple(tracked)
        names = mechanism.coordinate_names()
        self.y, self.q_y = [], []
        for name in tracked:
            if name not in names:
                raise TensegrityError(unknown_name("coordinate", name, names))
            joint = next((each for each in mechanism.joints if each.name == name), None)
            if joint is None:
                raise TensegrityError(f"coordinate {name} is part of a joint with several; track a joint with one.")
            self.y.append(mechanism.velocities_of(name).start)
            self.q_y.append(mechanism.positions_of(name).start)
        for entry in model.entries:
            if entry.variant != "epsilon":
                raise TensegrityError(
                    f"cable {entry.name} has variant {entry.variant}; this control needs epsilon (000, 3.2)."
                )
        self.angles = [mechanism.velocities_of(entry.joints[2]).start for entry in model.entries]
        self.q_angles = [mechanism.positions_of(entry.joints[2]).start for entry in model.entries]
        self.strains, self.q_strains = [k + 1 for k in self.angles], [k + 1 for k in self.q_angles]
        self.drives = [mechanism.velocities_of(model.joint_of(each.drives)).start for each in robot.actuators]
        self.radii = np.array([entry.radius for entry in model.entries])
        by_name = {cable.name: cable for cable in mechanism.cables}
        cables = [by_name[entry.name] for entry in model.entries]
        self.stiffness = np.array([cable.area * cable.young for cable in cables])
        self.damping_time = np.array([cable.damping / cable.young for cable in cables])
        self.coordinates = np.array(self.y + self.strains, dtype=np.int64)
        self._flat = mechanism.flat
        self._work, self._solver = make_work(self._flat), make_solver(self._flat)
        self._stages, self._scratch = make_stages(self._flat), make_implicit(self._flat, mechanism.position_count)
        self._solver.weight[self.coordinates] *= 1e-9  # they are the last to become passive
        self._held = np.zeros(mechanism.velocity_count, dtype=np.bool_)
        self._held[self.coordinates] = True
        self._order = self._independent(model.start)

    def place(self, start: Array, y: Array, strains: Array) -> Array:
        """Position (nq,) near a start with the tracked coordinates (y,) and the strains (c,) as given, loops closed.

        Raises:
            TensegrityError: the loops cannot close there.
        """
        q = start.copy()
        q[self.q_y], q[self.q_strains] = y, strains
        self._stages.v_sum[:] = 0.0
        error = close_loops(self._flat, q, self._held, 1e-13, False, self._work, self._solver, self._stages)
        if not error < 1e-9:
            raise TensegrityError(f"the loops cannot close at {', '.join(self.tracked)} = {np.round(y, 4).tolist()}.")
        return q

    def reduced(self, q: Array, rate: Array) -> Reduced:
        """The equations at position q (nq,) and rates w' (n,)."""
        work, solver = self._work, self._solver
        count = self.mechanism.velocity_count
        basis = self._basis(q, np.zeros(count))
        velocity = basis @ rate
        basis = self._basis(q, velocity)
        mass = basis.T @ work.mass @ basis
        bias = basis.T @ (work.mass @ solver.offset + work.bias)
        pulls = basis[self.angles] * (self.radii * q[self.q_strains])[:, None]
        pulls += basis[self.strains] * (self.radii * q[self.q_angles])[:, None]
        return Reduced(
            mass, bias, -pulls.T, basis.T @ work.passive, basis[self.drives].T.copy(), basis.copy(), velocity
        )  # fmt: skip

    def linearised(self, q: Array, rate: Array, effort: Array) -> tuple[Array, Array]:
        """A (2n, 2n) and B (2n, u) of small deviations of (w, w') from a motion, by central differences."""
        reduced = self.reduced(q, rate)
        count, width = self.coordinates.size, self.mechanism.velocity_count
        efforts = np.zeros(width)
        efforts[self.drives] = effort
        index = self._solver.independent[:count].copy()
        self._scratch.independent[:count] = index
        self._scratch.basis[:, :count] = self._solver.basis[:, :count]
        back = np.argsort(self._order)
        origin = np.zeros(2 * width)
        origin[count : 2 * count] = rate[back]
        both = np.concatenate((self._order, count + self._order))
        matrix, ahead, behind = np.zeros((2 * count, 2 * count)), np.zeros(2 * width), np.zeros(2 * width)
        for k in range(2 * count):
            for side, step in ((ahead, 1e-6), (behind, -1e-6)):
                moved = origin.copy()
                moved[both[k]] += step
                derivative(
                    self._flat, q, moved, count, efforts, side, self._work, self._solver, self._stages, self._scratch
                )
            matrix[:, k] = ((ahead - behind) / 2e-6)[: 2 * count][both]
        inputs = np.vstack((np.zeros_like(reduced.inputs), np.linalg.solve(reduced.mass, reduced.inputs)))
        return matrix, inputs

    def state(self, q: Array, v: Array) -> Array:
        """(2n,) w and w' of a state of the mechanism."""
        return np.concatenate((q[self.q_y], q[self.q_strains], v[self.coordinates]))

    # -- parts ----------------------------------------------------------------------------------------------------

    def _basis(self, q: Array, velocity: Array) -> Array:
        """G with columns in the order of w; leaves M, c and g of the state in the work arrays."""
        evaluate(self._flat, q, velocity, self._work)
        reduce_rows(self._work.loop, self._work.loop_bias, self._solver, False)
        independent_basis(self._held.size, self._solver)
        return self._solver.basis[:, : self.coordinates.size][:, self._order]

    def _independent(self, q: Array) -> NDArray[np.int64]:
        """Where each of w stands among the independent coordinates; raises where they are others."""
        evaluate(self._flat, q, np.zeros(self._held.size), self._work)
        reduce_rows(self._work.loop, self._work.loop_bias, self._solver, False)
        count = independent_basis(self._held.size, self._solver)
        index = self._solver.independent[:count]
        names = self.mechanism.coordinate_names()
        left = [names[k] for k in index if k not in self.coordinates]
        if left or count != self.coordinates.size:
            raise TensegrityError(
                f"{', '.join(self.tracked)} and the strains are {self.coordinates.size} coordinates of {count} degrees "
                f"of freedom; track these, too: {', '.join(left) or 'fewer'}."
            )
        return np.array([int(np.flatnonzero(index == k)[0]) for k in self.coordinates], dtype=np.int64)
