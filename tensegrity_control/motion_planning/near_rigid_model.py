"""Equations of a cable-driven mechanism in tracked coordinates and cable strains (000, sections 3.2 and 5.3).

The independent coordinates are w = (y, strains): tracked coordinates y, and one strain per cable. With the tensions T
of the cables the reduced equations (000, 1.2.35) are

    M w'' + c = S T + B u,   S = -G' (r strain on the unwound angle, r angle on the strain)

They are linear in T, because the generalised forces of a cable are its tension times a geometric factor (000, 3.1.16).
With N' B = 0, N spans the loads that the drives cannot apply immediately: N' (M w'' + c) = N' S T must come from the
tensions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.mechanisms.dynamics.reduced_model import (
    DEPENDENT,
    ReducedModel,
    choose_independent,
    named_coordinates,
)
from tensegrity_dynamics.mechanisms.mechanism_model import MechanismModel
from tensegrity_dynamics.mechanisms.statics.equilibrium_solver import MechanismEquilibriumSolver
from tensegrity_dynamics.mechanisms.statics.tension_stiffness import TensionStiffness
from tensegrity_dynamics.numerics.types import Array
from tensegrity_dynamics.robots.robot import Robot


@dataclass(frozen=True, eq=False)
class Reduced:
    """Equations at one state; see the module.

    Attributes:
        mass: M (n, n).
        bias: c (n,), including resistance in the joints, without the cables.
        cables: S (n, c), per N.
        passive: (n,) S times the tensions of the state.
        inputs: B (n, u).
        basis: G (nv, n).
        velocity: (nv,).
    """

    mass: Array
    bias: Array
    cables: Array
    passive: Array
    inputs: Array
    basis: Array
    velocity: Array


class PlannedStiffness:
    """Difference between the stiffness of the output under given tensions and a desired one, in one direction.

    Args:
        robot: as for `NearRigidModel`.
        direction: (3,) in the world frame.
        stiffness: N/m.

    Raises:
        TensegrityError: a number is out of range, or a cable has no actuator.
    """

    def __init__(self, robot: Robot, direction: Array, stiffness: float) -> None:
        self.direction, self.stiffness = direction, float(stiffness)
        self._model = TensionStiffness(robot, direction)
        entries = [entry.name for entry in robot.model_as(MechanismModel).entries]
        idle = [name for name in entries if name not in self._model.cables]
        if idle:
            raise TensegrityError(f"a stiffness is held by driven cables, and {idle[0]} has no actuator; leave it out.")
        self._order = [entries.index(name) for name in self._model.cables]

    def excess(self, q: Array, tension: Array) -> float:
        """s / s* - 1 at rest at q (nq,), with the balanced tensions nearest to (c,) N.

        -1 if there is no stiffness. The tensions that accelerate a robot do not contribute to its stiffness.
        """
        try:
            balanced = self._model.self_stresses(q, tension[self._order])[0]
            return self._model.value(q, balanced) / self.stiffness - 1.0
        except TensegrityError:
            return -1.0


class NearRigidModel(ReducedModel):
    """Equations of one robot in tracked coordinates and strains; see `ReducedModel`.

    Args:
        robot: a mechanism with cables of the `epsilon` variant only.
        tracked: names of the coordinates that follow a path (`Mechanism.coordinate_names`); of joints with quaternions
            all or none. Together with the strains they must be all degrees of freedom. None: the coordinates with the
            largest inertia.

    Attributes:
        tension_ceiling: (c,) N, upper bound of tensions in plans, infinite without a bound.
        tension_level: N, desired tensions in plans; None for the smallest ones.
        held_stiffness: stiffness of the output that plans hold, or None.
        idle_count: number of motions without a restoring force and without an input; they are not controlled.

    Raises:
        TensegrityError: a cable has another variant, a name is unknown, or degrees of freedom are missing.
    """

    def __init__(self, robot: Robot, tracked: Sequence[str] | None = None) -> None:
        model = robot.model_as(MechanismModel)
        mechanism = model.mechanism
        for entry in model.entries:
            if entry.variant != "epsilon":
                raise TensegrityError(
                    f"cable {entry.name} has variant {entry.variant}; this control needs epsilon (000, 3.2)."
                )
        if model.routes:
            raise TensegrityError(
                f"cable {model.routes[0].name} is routed, and this control needs cables whose strains are coordinates; "
                "take the controller qp, or joint_position."
            )
        if tracked is None:
            strains = [mechanism.velocities_of(entry.joints[2]).start + 1 for entry in model.entries]
            names = mechanism.coordinate_names()
            # angles of cable joints depend on tensions; the tracked coordinates must be equal for all tensions
            turned = {name for entry in model.entries for name in entry.joints}
            chosen = choose_independent(robot, strains, alike=True, unranked=turned)
            tracked = [names[k] for k in chosen if k not in strains]
        self.tracked = tuple(tracked)
        self.y = named_coordinates(mechanism, tracked)
        self.angles = [mechanism.velocities_of(entry.joints[2]).start for entry in model.entries]
        self.q_angles = [mechanism.positions_of(entry.joints[2]).start for entry in model.entries]
        self.strains, self.q_strains = [k + 1 for k in self.angles], [k + 1 for k in self.q_angles]
        self.radii = np.array([entry.radius for entry in model.entries])
        by_name = {cable.name: cable for cable in mechanism.cables}
        cables = [by_name[entry.name] for entry in model.entries]
        self.order = [mechanism.cables.index(cable) for cable in cables]
        self.stiffness = np.array([cable.area * cable.young for cable in cables])
        self.damping_time = np.array([cable.damping / cable.young for cable in cables])
        self.tension_ceiling: Array = np.full(len(cables), np.inf)
        self.tension_level: float | None = None
        self.held_stiffness: PlannedStiffness | None = None
        super().__init__(robot, self.y + self.strains)
        of_cables = [mechanism.velocities_of(name) for entry in model.entries for name in entry.joints]
        self._reluctant = [k for at in of_cables for k in range(at.start, at.stop) if k not in self.strains]
        joints = model.driven_joints(robot.actuators)
        self.idle_count = int(MechanismEquilibriumSolver(mechanism, joints).solve(model.start).idle.shape[1])

    def take_coordinates(self, index: ArrayLike, centre: Array) -> None:
        """As the base class; coordinates that are no strains become the tracked ones."""
        self.y = [int(k) for k in np.asarray(index) if int(k) not in self.strains]
        super().take_coordinates(self.y + self.strains, centre)
        self.tracked = self.names[: len(self.y)]

    def best_coordinates(self, q: Array, always: Sequence[int]) -> NDArray[np.int64] | None:
        found = super().best_coordinates(q, (*always, *self.strains))
        if found is None or not np.all(np.isin(self.strains, found)):
            return None
        return np.concatenate((found[~np.isin(found, self.strains)], self.strains))

    def tracked_at(self, q: Array) -> Array:
        """(y,) tracked coordinates at a configuration (nq,)."""
        return self.coordinates_at(q)[: len(self.y)]

    def idle_motions(self, q: Array, matrix: Array, push: Array) -> tuple[Array, Array]:
        return self.left_alone(q)

    def left_alone(self, q: Array) -> tuple[Array, Array]:
        """As `idle_motions` at any configuration, also in motion: the motions in which neither cables nor drives do
        work."""
        if not self.idle_count:
            return np.zeros((self.index.size, 0)), np.zeros((0, self.index.size))
        reduced = self.reduced(q, np.zeros(self.index.size))
        pulls, inputs = reduced.cables, reduced.inputs
        working = np.hstack((pulls / np.max(np.abs(pulls)), inputs / np.max(np.abs(inputs), initial=1e-300)))
        left, values, _ = np.linalg.svd(working)
        motions = left[:, int(np.count_nonzero(values > 1e-9 * values[0])) :]
        weighed = motions.T @ reduced.mass
        return motions, np.asarray(np.linalg.solve(weighed @ motions, weighed))

    def reduced(self, q: Array, rate: Array) -> Reduced:
        """Equations at configuration q (nq,) and rates w' (n,)."""
        stacked = self.reduced_along(q[None], rate[None])
        return Reduced(*(each[0] for each in vars(stacked).values()))

    def reduced_along(self, positions: Array, rates: Array) -> Reduced:
        """`reduced` for k states, at positions (k, nq) and rates (k, n); all fields have a leading dimension k.

        Raises:
            TensegrityError: the coordinates are dependent at one of them.
        """
        count, n, charts = len(positions), self.index.size, self.charts
        w = charts.numbers(positions)
        velocity, mass = np.empty((count, self._held.size)), np.empty((count, n, n))
        bias, basis = np.empty((count, n)), np.empty((count, self._held.size, n))
        tension = np.empty((count, self._work.tension.size))
        made = self._reduce_states(
            self._flat, np.ascontiguousarray(positions, dtype=np.float64),
            np.ascontiguousarray(charts.velocities(w, rates), dtype=np.float64), self.index, self._held,
            velocity, mass, bias, basis, tension, self._work, self._reduction, self._stages,
        )  # fmt: skip
        if made < count:
            raise TensegrityError(DEPENDENT)
        if charts.turning:
            turn = charts.matrix(w)
            bias += (mass @ charts.bias(w, rates)[..., None])[..., 0]
            bias = (np.swapaxes(turn, 1, 2) @ bias[..., None])[..., 0]
            mass, basis = np.swapaxes(turn, 1, 2) @ mass @ turn, basis @ turn
        pulls = basis[:, self.angles] * (self.radii * positions[:, self.q_strains])[..., None]
        pulls += basis[:, self.strains] * (self.radii * positions[:, self.q_angles])[..., None]
        cables = -np.swapaxes(pulls, 1, 2)
        passive = (cables @ tension[:, self.order, None])[..., 0]
        # the bias so far contains all passive efforts; those of the cables are separate
        return Reduced(mass, bias + passive, cables, passive, np.swapaxes(basis[:, self.drives], 1, 2), basis, velocity)
