"""Equations of a mechanism in a set of independent coordinates, which can change during the motion.

With the chosen coordinates w, their rates w' (entries of v) and the efforts u of the drives,

    M w'' + c - p = B u

where M, c, p and B are reduced by G (000, 1.2.35). Controllers and observers use the linearisation of this model.

If the entries of G grow, the chosen coordinates approach a singularity of the parametrisation, which is not one of the
mechanism. Then `rechoose` selects other coordinates by pivoting (000, 5.4: "chosen algorithmically ... so that certain
internal matrices remain regular") and returns the transformation of deviations from the old to the new coordinates.
With T = dw_new / dw, which consists of rows of G,

    dw_new = T dw,   dw_new' = T dw' + D dw,   D = d(T w') / dw.

Joints with quaternions are parametrised by charts (`coordinate_charts`). A new chart centre is set if a joint has
rotated far from the old one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import TensegrityError, unknown_name
from ...numerics.compilation import QuickCall, allocation_free
from ...numerics.types import Array
from ...robots.robot import Robot
from ..joint_coordinates import QUATERNION_KINDS
from ..kinematics.body_kinematics import body_kinematics, last_dof, world_point
from ..kinematics.configuration_space import normalise_quaternions
from ..kinematics.loop_closure import close_loops
from ..kinematics.loop_equations import loop_equations
from ..kinematics.loop_reduction import independent_basis, make_reduction_workspace, reduce_rows
from ..mechanism import FlatMechanism, Mechanism, with_own_masses
from ..mechanism_model import MechanismModel
from ..route_readings import read_routes
from ..workspace import make_stage_workspace, make_workspace
from .coordinate_charts import CoordinateCharts
from .equations_of_motion import cable_efforts, evaluate
from .forward_dynamics import accelerate, project_mass
from .tangents import DEPENDENT as NOT_INDEPENDENT
from .tangents import REGULAR, equations_at, linearise_states, make_tangent_workspace

DIFFERENCE_STEP = 1e-6
"""Step of the central differences [rad or m, rad/s or m/s]."""


DEPENDENT = "the chosen coordinates stop being independent here; choose others."
LARGEST_ENTRY = 10.0
"""Largest entry of G, relative to its largest entry when the coordinates were chosen; above it others are searched."""
NO_STIFFNESS, NO_REACH = 1e-7, 1e-6
"""Relative thresholds below which a motion counts as having no stiffness (relative to the largest stiffness per
inertia), and as not affected by the inputs (relative to the largest effect of an input)."""
DECAY = 10.0
"""Decay rate [1/s] assigned to motions without restoring force."""
WHOLE, FIRST = 1e-11, 1e-12
"""Pivot weights: for all coordinates of a joint with a quaternion, so that they become independent together, and for
prescribed independent coordinates. Other coordinates have larger weights."""
GROWN = 1.5
"""Largest entry of G, relative to its largest entry when the coordinates were chosen; up to this value no singularity
is searched between two successive positions."""
BETTER = 0.5
"""Required reduction of the largest entry of G by new coordinates; it prevents alternation between two choices."""


@allocation_free
def largest_size(basis, count):
    """Largest absolute value in the first columns of a basis; NaN if one of them is NaN."""
    largest = 0.0
    for d in range(basis.shape[0]):
        for i in range(count):
            size = abs(basis[d, i])
            if not size <= largest:
                largest = size
                if size != size:
                    return size
    return largest


@allocation_free
def moving_state(flat, q, v, index, held, rate, work, reduction, stages):
    """Close the loops of q with fixed held coordinates, and fill v (nv,) and the tensions.

    The velocities v follow from the rates (n,) of the coordinates `index`. Returns the largest error of the loops, and
    whether the coordinates are independent there.
    """
    for d in range(v.shape[0]):
        stages.v_sum[d] = 0.0
    error = close_loops(flat, q, held, 1e-13, False, work, reduction, stages)
    if not error < 1e-9:
        return error, False
    if error > 1e-13:  # the last step has changed q
        body_kinematics(flat, q, stages.v_sum, work)
        loop_equations(flat, work)
    reduce_rows(work.loop, work.loop_bias, reduction, False)
    count = independent_basis(v.shape[0], reduction)
    independent = count == index.shape[0]
    for i in range(count):
        independent = independent and held[reduction.independent[i]]
    if independent:
        for d in range(v.shape[0]):
            v[d] = 0.0
            for i in range(count):
                v[d] += reduction.basis[d, reduction.basis_index[index[i]]] * rate[i]
        cable_efforts(flat, q, v, work)
    return error, independent


@allocation_free
def foresee(flat, positions, k, evenly):
    """Fill positions[k] (nq,) with the row before it, or `evenly` by extrapolation of degree two or less."""
    q = positions[k]
    for i in range(q.shape[0]):
        q[i] = positions[k - 1, i]
        if evenly and k == 2:
            q[i] += positions[1, i] - positions[0, i]
        elif evenly and k > 2:
            q[i] += 2.0 * positions[k - 1, i] - 3.0 * positions[k - 2, i] + positions[k - 3, i]
    normalise_quaternions(flat, q)


@allocation_free
def close_states(flat, positions, coordinates, q_index, held, in_sequence, evenly, work, reduction, stages):
    """Close the loops of positions (k, nq), with the values (k, m) at `q_index` given.

    Each search starts from its own row, or with `in_sequence` from the row before it, or with `evenly` as `foresee`
    extrapolates the rows before it. Returns the number of closed rows, and the loop error of the next one.
    """
    for d in range(held.shape[0]):
        stages.v_sum[d] = 0.0
    for k in range(positions.shape[0]):
        if in_sequence and k > 0:
            foresee(flat, positions, k, evenly)
        for i in range(q_index.shape[0]):
            positions[k, q_index[i]] = coordinates[k, i]
        error = close_loops(flat, positions[k], held, 1e-13, False, work, reduction, stages)
        if not error < 1e-9:
            return k, error
    return positions.shape[0], 0.0


@allocation_free
def reduce_states(
    flat, positions, rates, index, held, velocities, masses, biases, bases, tensions, work, reduction, stages
):
    """Reduce the equations of motion to the coordinates `index`, at positions (k, nq) with closed loops.

    The rates (k, n) are those of v at `index`. The function fills velocities (k, nv), G' M G (k, n, n), G' (M g + c -
    p) (k, n), G (k, nv, n) and tensions (k, c). Returns the number of states at which the coordinates are independent.
    """
    dofs, n = held.shape[0], index.shape[0]
    for d in range(dofs):
        stages.v_sum[d] = 0.0
    for k in range(positions.shape[0]):
        q, v = positions[k], velocities[k]
        body_kinematics(flat, q, stages.v_sum, work)
        loop_equations(flat, work)
        reduce_rows(work.loop, work.loop_bias, reduction, False)
        independent = independent_basis(dofs, reduction) == n
        for i in range(n):
            independent = independent and held[reduction.independent[i]]
        if not independent:
            return k
        for d in range(dofs):
            v[d] = 0.0
            for i in range(n):
                bases[k, d, i] = reduction.basis[d, reduction.basis_index[index[i]]]
                v[d] += bases[k, d, i] * rates[k, i]
        equations_at(flat, q, v, work)
        reduce_rows(work.loop, work.loop_bias, reduction, True)
        independent_basis(dofs, reduction)
        for d in range(dofs):
            reduction.effort[d] = work.passive[d]
        project_mass(flat, work, reduction, n)
        for i in range(n):
            a = reduction.basis_index[index[i]]
            biases[k, i] = -reduction.right[a]
            for j in range(n):
                b = reduction.basis_index[index[j]]
                masses[k, i, j] = reduction.reduced[max(a, b), min(a, b)]
        for c in range(tensions.shape[1]):
            tensions[k, c] = work.tension[c]
    return positions.shape[0]


@allocation_free
def moving_states(
    flat, coordinates, rates, efforts, index, q_index, held, body, origin, axes, positions, accelerations,
    points, turns, jacobians, v, work, reduction, stages,
):  # fmt: skip
    """Compute states in sequence; the search for each state starts from the ones before.

    The states are given by the values (k, m) of q at `q_index`, the rates (k, n) of v at `index` and the efforts
    (k, nv), and by the first row of positions, from which the first search starts. The function fills positions (k, nq)
    and accelerations (k, n) of v, and for a point of a body, `origin` (3,) m, the points (k, 3) [m], the rotations
    (k, 3, 3) of the body and the Jacobians (k, p, n) along the `axes` (p,). Axes 3 to 5 are rotations about x, y and z.
    Returns the number of completed states, and the loop error at the next one.
    """
    for k in range(coordinates.shape[0]):
        q = positions[k]
        if k > 0:
            foresee(flat, positions, k, True)
        for i in range(q_index.shape[0]):
            q[q_index[i]] = coordinates[k, i]
        error, independent = moving_state(flat, q, v, index, held, rates[k], work, reduction, stages)
        if not independent:
            return k, error
        accelerate(flat, q, v, efforts[k], 0.0, work, reduction, True)
        for i in range(index.shape[0]):
            accelerations[k, i] = reduction.acceleration[index[i]]
        world_point(work.rotation, work.position, body, origin, work.point)
        x, y, z = work.point[0], work.point[1], work.point[2]
        for a in range(3):
            points[k, a] = work.point[a]
            for b in range(3):
                turns[k, a, b] = work.rotation[body, a, b] if body >= 0 else (1.0 if a == b else 0.0)
        for r in range(axes.shape[0]):
            axis = axes[r]
            for i in range(index.shape[0]):
                jacobians[k, r, i] = 0.0
            d = last_dof(flat, body)
            while d >= 0:
                j = work.jacobian[d]
                if axis == 0:
                    entry = j[3] + j[1] * z - j[2] * y
                elif axis == 1:
                    entry = j[4] + j[2] * x - j[0] * z
                elif axis == 2:
                    entry = j[5] + j[0] * y - j[1] * x
                else:
                    entry = j[axis - 3]
                for i in range(index.shape[0]):
                    jacobians[k, r, i] += entry * reduction.basis[d, reduction.basis_index[index[i]]]
                d = flat.dof_parent[d]
    return coordinates.shape[0], 0.0


@dataclass(frozen=True, eq=False)
class MovingStates:
    """States of a mechanism along a motion.

    Attributes:
        positions: (k, nq). accelerations: w'' (k, n).
        points: (k, 3) m, a point of a body. turns: (k, 3, 3) rotations of this body.
        jacobians: (k, p, n) derivatives of the linear and angular velocities along chosen axes with respect to w'.
    """

    positions: Array
    accelerations: Array
    points: Array
    turns: Array
    jacobians: Array


class ReducedModel:
    """Equations of one robot in chosen coordinates. Objects own work arrays: use one object per thread.

    Args:
        robot: mechanism with actuators.
        index: indices of the coordinates in v; of joints with quaternions all or none. None: the driven joints, then
            those joints with one coordinate that carry the most mass, if they are independent at the start, then the
            universal and cable joints, and last the joints with quaternions.
        counted: whether the coordinates have values w. If not, small displacements along v replace them, and only
            `linearised` is available.

    Attributes:
        index: (n,) indices of the coordinates in v. q_index: indices of the entries of q that follow from w.
        names: names of the coordinates. drives, q_drives: (u,) indices of the actuators in v and in q.
        charts: charts of w around `centre` (nq,).

    Raises:
        TensegrityError: the coordinates are not independent at the start, or independent coordinates are missing.
    """

    def __init__(self, robot: Robot, index: ArrayLike | None = None, *, counted: bool = True) -> None:
        model = robot.model_as(MechanismModel)
        mechanism = model.mechanism
        self.robot, self.mechanism = robot, mechanism
        own = {name: np.array(getattr(mechanism.flat, name)) for name in ("cable_young", "resistances")}
        self._flat = with_own_masses(mechanism.flat)._replace(**own)
        self._work, self._reduction = make_workspace(self._flat), make_reduction_workspace(self._flat)
        self._stages, self._moving_state = make_stage_workspace(self._flat), QuickCall(moving_state)
        self._largest, self._evaluate = QuickCall(largest_size), QuickCall(evaluate)
        self._reduce_rows, self._find_basis = QuickCall(reduce_rows), QuickCall(independent_basis)
        self._close_loops, self._close_states = QuickCall(close_loops), QuickCall(close_states)
        self._reduce_states, self._moving_states = QuickCall(reduce_states), QuickCall(moving_states)
        self._linearise_states, self._accelerate = QuickCall(linearise_states), QuickCall(accelerate)
        driven = model.driven_joints(robot.actuators)
        self.drives = np.array([mechanism.velocities_of(name).start for name in driven], dtype=np.int64)
        self.q_drives = np.array([mechanism.positions_of(name).start for name in driven], dtype=np.int64)
        all_names = mechanism.coordinate_names()
        self.index = np.array(choose_independent(robot, self.drives) if index is None else index, dtype=np.int64)
        self._counted = counted
        self._centre_charts(self.index, model.start)
        self.names = tuple(all_names[k] for k in self.index)
        self._held = np.zeros(mechanism.velocity_count, dtype=np.bool_)
        self._held[self.index] = True
        self._tangent = make_tangent_workspace(self._flat, mechanism.position_count, 2 * self.index.size)
        self._touched = self._reduction.weight.copy()
        self._reluctant: list[int] = []  # coordinates with low priority in all later choices
        self._reduction.weight[self.index] *= 1e-9  # low priority to become passive
        self._check(model.start)
        self._usual_entry = self._usual_at(np.array(model.start))

    def take_loads(self, load: Array, stiffness: Array) -> None:
        """Set loads (b, 6) [moment, force] on bodies, and stiffness factors (c,) of the cables, for later calls."""
        self._work.load[:] = load
        np.multiply(self.mechanism.flat.cable_young, stiffness, out=self._flat.cable_young)

    @property
    def centre(self) -> Array:
        """(nq,) centre of the charts of joints with quaternions."""
        return self._centre

    @property
    def flat(self) -> FlatMechanism:
        """Arrays of the mechanism with the cable stiffness of `take_loads`."""
        return self._flat

    @property
    def work(self) -> Any:
        """Kinematics and forces at the last computed state, see `make_workspace`."""
        return self._work

    @property
    def offset(self) -> Array:
        """g (nv,) at the last computed state."""
        return np.asarray(self._reduction.offset)

    def closed_configuration(self, start: Array, w: Array) -> Array:
        """Configuration (nq,) near a start with the coordinates at w (n,) and closed loops.

        Raises:
            TensegrityError: the loops cannot close there.
        """
        q = np.array(start, dtype=np.float64)
        q[self.q_index] = self.charts.positions(np.asarray(w))
        self._stages.v_sum[:] = 0.0
        error = self._close_loops(self._flat, q, self._held, 1e-13, False, self._work, self._reduction, self._stages)
        self._refuse_open(error, start, w)
        return q

    def closed_configurations(self, starts: Array, coordinates: Array, *, evenly: bool = False) -> Array:
        """(k, nq) `closed_configuration` for w (k, n), near starts (k, nq), or in sequence from one start (nq,).

        Args:
            evenly: whether w is a smooth motion at equal time steps, whose next start can be extrapolated.

        Raises:
            TensegrityError: as `closed_configuration`.
        """
        in_sequence = starts.ndim == 1
        positions: Array = np.empty((len(coordinates), starts.shape[-1]))
        positions[:] = starts
        values = np.ascontiguousarray(self.charts.positions(coordinates), dtype=np.float64)
        made, error = self._close_states(
            self._flat, positions, values, self.q_index, self._held, in_sequence, evenly, self._work, self._reduction,
            self._stages,
        )  # fmt: skip
        if made < len(positions):
            near = positions[max(0, made - 1)] if in_sequence else starts[made]
            self._refuse_open(error, near, coordinates[made])
        return positions

    def _refuse_open(self, error: float, start: Array, w: Array) -> None:
        if not error < 1e-9:
            moves = np.asarray(w) - self.charts.numbers(start)
            values = ", ".join(
                f"{name} = {0.0 if abs(value) < 1e-9 else value:.4g} (moved by {move:.2g})"
                for name, value, move in zip(self.names, w, moves, strict=True)
            )
            raise TensegrityError(
                f"the loops cannot close where {values} was requested: a gap of {error:.2g} m or rad is left. That is "
                "out of reach or near a singularity; choose other coordinates, or go there in shorter steps."
            )

    def state_at(self, start: Array, w: Array, rate: Array) -> tuple[Array, Array, Array]:
        """Configuration (nq,) near a start, velocity (nv,) and cable tensions (c,) [N] at w (n,) and w' (n,).

        It combines `closed_configuration` and `velocity` in one call.

        Raises:
            TensegrityError: as these methods.
        """
        q, v = np.array(start, dtype=np.float64), np.empty(self._held.size)
        q[self.q_index] = self.charts.positions(w)
        rate = np.ascontiguousarray(self.charts.velocities(w, rate), dtype=np.float64)
        error, independent = self._moving_state(
            self._flat, q, v, self.index, self._held, rate, self._work, self._reduction, self._stages
        )
        self._refuse_open(error, start, w)
        if not independent:
            raise TensegrityError(DEPENDENT)
        return q, v, self._work.tension.copy()

    def least_tensions(self, start: Array, w: Array, rate: Array) -> dict[str, float]:
        """Cable tensions [N] by name at w (n,) and w' (n,), see `state_at`; for routed cables the least strand tension.

        Cables of the rigid variant are not included, because their tensions do not follow from a strain."""
        q, v, own = self.state_at(start, w, rate)
        found = {cable.name: float(tension) for cable, tension in zip(self.mechanism.cables, own, strict=True)}
        if self.mechanism.routes:
            self._evaluate(self._flat, q, v, self._work)
            found |= {name: min(each.tensions) for name, each in read_routes(self.mechanism, self._work).items()}
        return found

    def state(self, q: Array, v: Array) -> Array:
        """(2n,) coordinates w and rates w' of a state of the mechanism."""
        return np.concatenate((self.charts.numbers(q), self.charts.rates(q, v[self.index])))

    def coordinates_at(self, q: Array) -> Array:
        """Coordinates w (n,) at a configuration."""
        return self.charts.numbers(q)

    def velocity(self, q: Array, rate: Array) -> Array:
        """(nv,) velocities v for rates w' (n,) at a configuration."""
        return np.asarray(self._basis(q, np.zeros(self._held.size)) @ rate)

    def basis(self, q: Array, velocity: Array | None = None) -> Array:
        """G (nv, n) at a position, columns in the order of w; at rest, or at velocities (nv,)."""
        return np.array(self._basis(q, np.zeros(self._held.size) if velocity is None else velocity))

    def mass(self, q: Array) -> Array:
        """Reduced mass matrix M (n, n) at a configuration."""
        basis = self._basis(q, np.zeros(self._held.size))
        return np.asarray(basis.T @ self._work.mass @ basis)

    def linearised(self, q: Array, rate: Array, effort: Array) -> tuple[Array, Array, Array]:
        """A (2n, 2n) and B (2n, u) for small deviations of (w, w'), and w'' (n,), at a state under efforts (u,)."""
        matrices, inputs, accelerations = self.linearised_along(q[None], rate[None], effort[None])
        return matrices[0], inputs[0], accelerations[0]

    def linearised_along(self, positions: Array, rates: Array, efforts: Array) -> tuple[Array, Array, Array]:
        """`linearised` for k states: A (k, 2n, 2n), B (k, 2n, u), w'' (k, n) for rows of q, w' and efforts."""
        states, count, width = len(positions), self.index.size, self._held.size
        w = self.charts.numbers(positions)
        on_all = np.zeros((states, width))
        on_all[:, self.drives] = efforts
        matrices, inputs = np.empty((states, 2 * count, 2 * count)), np.empty((states, 2 * count, self.drives.size))
        accelerations, velocity = np.empty((states, count)), np.empty(width)
        status = self._linearise_states(
            self._flat, np.ascontiguousarray(positions, dtype=np.float64),
            np.ascontiguousarray(self.charts.velocities(w, rates), dtype=np.float64), on_all,
            self.index, self._held, self.drives, np.full(count, DIFFERENCE_STEP), matrices, inputs, accelerations,
            velocity, self._work, self._reduction, self._tangent,
        )  # fmt: skip
        if status == NOT_INDEPENDENT:
            raise TensegrityError(DEPENDENT)
        if status != REGULAR:
            raise TensegrityError("a motion of the chosen coordinates has no inertia here; choose others.")
        return self.charts.linearised(w, rates, matrices, inputs, accelerations)

    def accelerations(self, q: Array, rate: Array, effort: Array) -> Array:
        """Accelerations w'' (n,) at a state under efforts (u,)."""
        efforts = np.zeros(self._held.size)
        efforts[self.drives] = effort
        q, velocity = np.ascontiguousarray(q, dtype=np.float64), np.ascontiguousarray(self.velocity(q, rate))
        self._accelerate(self._flat, q, velocity, efforts, 0.0, self._work, self._reduction, False)
        found = self._reduction.acceleration[self.index].copy()
        return self.charts.accelerations(self.charts.numbers(q), rate, found) if self.charts.turning else found

    def states_along(
        self, start: Array, coordinates: Array, rates: Array, efforts: Array, body: int = -1,
        origin: Array | None = None, axes: ArrayLike = (),
    ) -> MovingStates:  # fmt: skip
        """States for w (k, n), w' (k, n) and efforts (k, u) in sequence; each search starts from the previous state.

        Args:
            start: (nq,) configuration near the first state.
            body, origin, axes: body, point (3,) [m] in this body, and axes of `MovingStates.jacobians`.

        Raises:
            TensegrityError: as `state_at`.
        """
        count, size = coordinates.shape
        on_all = np.zeros((count, self._held.size))
        on_all[:, self.drives] = efforts
        rows = np.asarray(axes, dtype=np.int64)
        states = MovingStates(
            np.empty((count, start.size)), np.empty((count, size)), np.empty((count, 3)),
            np.empty((count, 3, 3)), np.empty((count, rows.size, size)),
        )  # fmt: skip
        states.positions[0] = start
        charts = self.charts
        made, error = self._moving_states(
            self._flat, np.ascontiguousarray(charts.positions(coordinates), dtype=np.float64),
            np.ascontiguousarray(charts.velocities(coordinates, rates), dtype=np.float64), on_all, self.index,
            self.q_index, self._held, body, np.zeros(3) if origin is None else np.array(origin, dtype=np.float64), rows,
            states.positions, states.accelerations, states.points, states.turns, states.jacobians,
            np.empty(self._held.size), self._work, self._reduction, self._stages,
        )  # fmt: skip
        if made < count:
            self._refuse_open(error, states.positions[made - 1] if made else start, coordinates[made])
            raise TensegrityError(DEPENDENT)
        if charts.turning:
            states.accelerations[:] = charts.accelerations(coordinates, rates, states.accelerations)
            states.jacobians[:] = states.jacobians @ charts.matrix(coordinates)
        return states

    def steadied(self, q: Array, matrix: Array, push: Array, decay: float = DECAY) -> Array:
        """A (2n, 2n) at rest with an added decay [1/s] of motions without restoring force and without effect of inputs.

        An example is the spin of a strut on ball joints. Such motions are neither controllable nor observable with the
        actuators. Without the added decay, neither a regulator nor the covariance of an observer converges.

        Args:
            matrix, push: A and B (2n, u) of `linearised` at configuration q (nq,).
        """
        spins, onto = self.idle_motions(q, matrix, push)
        if not spins.shape[1]:
            return matrix
        result = matrix.copy()
        steady(result, spins, onto, decay)
        return result

    def idle_motions(self, q: Array, matrix: Array, push: Array) -> tuple[Array, Array]:
        """(n, m) motions of w without restoring force and without effect of inputs, and their transpose times M.

        They are orthonormal in M. The arguments are those of `steadied`."""
        n = self.index.size
        lower = np.linalg.cholesky(self.mass(q))
        stiffness = lower.T @ matrix[n:, :n] @ np.linalg.inv(lower.T)
        reach = push[n:].T @ lower
        # both criteria together: finite difference slopes alone cannot distinguish a spin from the softest driven
        # motion
        sizes = [float(np.linalg.norm(each, 2)) if each.size else 0.0 for each in (stiffness, reach)]
        parts = [each / (size or 1.0) for each, size in zip((stiffness, reach), sizes, strict=True)]
        right = np.linalg.svd(np.vstack(parts), full_matrices=False)[2]
        stiff, driven = (np.linalg.norm(part @ right.T, axis=0) for part in parts)
        idle = (stiff <= NO_STIFFNESS) & (driven <= NO_REACH)
        return np.linalg.solve(lower.T, right[idle].T), right[idle] @ lower.T

    # -- other coordinates ----------------------------------------------------------------------------------------

    def largest_entry(self, q: Array) -> float:
        """Largest absolute entry of G at a configuration (at least 1); infinite if the coordinates are dependent.

        It is the largest ratio of the rate of another coordinate to the rate of a chosen one.
        """
        try:
            return float(np.max(np.abs(self._basis(q, np.zeros(self._held.size)))))
        except TensegrityError:
            return np.inf

    def is_poor(self, q: Array) -> bool:
        """Whether other coordinates should be searched, at the last computed configuration (nq,)."""
        if self.charts.turning and self.charts.is_far(q):
            return True
        return not self._largest(self._reduction.basis, self.index.size) <= LARGEST_ENTRY * self._usual_entry

    def regular_coordinates(self, positions: Array) -> tuple[NDArray[np.int64], Array] | None:
        """Indices in v of coordinates that are regular at all configurations (k, nq), and chart centre (nq,).

        None if the present coordinates are regular. Candidates are the choices by pivoting at these configurations; the
        one with the smallest largest entry of G is returned. If no candidate is better by the factor `BETTER`, the
        present coordinates are kept.
        """
        worst = self._worst_entry(positions)
        before, best = (self.index, self._centre), None
        middle = positions[len(positions) // 2]
        if worst > LARGEST_ENTRY * self._usual_entry:
            tried: set[tuple[int, ...]] = set()
            for q in positions:
                chosen = self.best_coordinates(q, ())
                if chosen is None or tuple(chosen) in tried:
                    continue
                tried.add(tuple(chosen))
                self.take_coordinates(chosen, middle)
                largest = self._worst_entry(positions)
                self.take_coordinates(*before)
                if largest < (BETTER * worst if best is None else best[0]):
                    best = largest, chosen
        if best is not None:
            return best[1], middle
        if self.charts.turning and any(self.charts.is_far(q) for q in positions):
            return self.index, middle
        return None

    def _worst_entry(self, positions: Array) -> float:
        """Largest entry of G along successive configurations (k, nq); infinite if the coordinates become singular.

        A singularity between two configurations is a zero crossing of the determinant of the transformation to other
        coordinates."""
        entries = [self.largest_entry(q) for q in positions]
        if np.all(np.isfinite(entries)):
            for (here, one), (ahead, other) in pairwise(zip(positions, entries, strict=True)):
                others = self.best_coordinates(here, ()) if max(one, other) > GROWN * self._usual_entry else None
                if others is not None:
                    turns = [np.linalg.det(self.basis(q)[others]) for q in (here, ahead)]
                    if turns[0] * turns[1] <= 0.0:
                        return np.inf
        return max(entries)

    def _usual_at(self, q: Array) -> float:
        """Largest entry of G at q (nq,), of the coordinates or of those found by pivoting, whichever is smaller: the
        coordinates of a start may have large entries themselves, such as blocks of cables for the spin of a strut."""
        chosen, here = (self.index, self._centre), self.largest_entry(q)
        best = self.best_coordinates(q, ())
        if best is None:
            return here
        self.take_coordinates(best, q)
        there = self.largest_entry(q)
        self.take_coordinates(*chosen)
        return min(here, there)

    def take_coordinates(self, index: ArrayLike, centre: Array) -> None:
        """Change to other coordinates, given as in the constructor, with charts around `centre` (nq,)."""
        chosen = np.array(index, dtype=np.int64)
        self._centre_charts(chosen, centre)
        self.index = chosen
        names = self.mechanism.coordinate_names()
        self.names = tuple(names[k] for k in self.index)
        self._held[:] = False
        self._held[self.index] = True
        self._reduction.weight[:] = self._touched
        self._reduction.weight[self.index] *= 1e-9

    def _centre_charts(self, index: NDArray[np.int64], centre: Array) -> None:
        self.charts = CoordinateCharts(self.mechanism, index if self._counted else (), centre)
        self._centre, self.q_index = np.array(centre, dtype=np.float64), self.charts.q_index

    def rechoose(self, q: Array, v: Array, always: Sequence[int] = ()) -> Array | None:
        """Change coordinates if they are near singular at q (nq,) with velocities v (nv,), and re-centre charts.

        New charts around q are set if q is far from the present chart centre.

        Args:
            always: indices in v of coordinates that are part of every choice.

        Returns:
            Matrix (2n, 2n) that transforms small deviations of (w, w') to the new coordinates, or None without a
            change: the old coordinates are regular, or no others are better.
        """
        largest = self.largest_entry(q)
        if largest <= LARGEST_ENTRY * self._usual_entry:
            if not self.charts.is_far(q):
                return None
            turned = self._transformation(q, v, self.index)
            self.take_coordinates(self.index, q)
            return turned
        before = self.index, self._centre
        chosen = self.best_coordinates(q, always)
        if chosen is None or set(chosen.tolist()) == set(before[0].tolist()):
            return None
        change = self._transformation(q, v, chosen) if np.isfinite(largest) else None
        self.take_coordinates(chosen, q)
        found = self.largest_entry(q)
        if change is None or not found < BETTER * largest:
            self.take_coordinates(*before)
            return None
        self._usual_entry = found
        return change

    def best_coordinates(self, q: Array, always: Sequence[int]) -> NDArray[np.int64] | None:
        """Indices in v chosen by pivoting at a configuration; None if they include only a part of a quaternion
        joint."""
        weight, mechanism = self._reduction.weight, self.mechanism
        weight[:] = 1.0
        for joint in mechanism.joints:
            if joint.kind in QUATERNION_KINDS:
                weight[mechanism.velocities_of(joint.name)] = 1e3
        weight[list(self._reluctant)] *= 1e3
        weight[list(always)] = FIRST

        def pivots() -> list[int]:
            return [int(k) for k in self._independent(q, np.zeros(self._held.size))]

        try:
            index = np.array(whole_joints(mechanism, weight, pivots), dtype=np.int64)
            CoordinateCharts(mechanism, index, q)
            return index
        except TensegrityError:
            return None
        finally:
            weight[:] = self._touched
            weight[self.index] *= 1e-9

    def _transformation(self, q: Array, v: Array, index: NDArray[np.int64]) -> Array:
        """(2n, 2n) transformation of deviations of (w, w') to the coordinates `index`, centred at q; see the module."""
        count, charts = self.index.size, CoordinateCharts(self.mechanism, index, q)
        change = np.zeros((2 * count, 2 * count))
        turn = np.array([charts.rates(q, each[index]) for each in self.basis(q).T]).T
        change[:count, :count] = change[count:, count:] = turn
        w, rate = np.split(self.state(q, v), 2)
        if np.any(rate):
            size = DIFFERENCE_STEP / self.largest_entry(q)
            for k in range(count):
                sides = []
                for sign in (1.0, -1.0):
                    moved = w.copy()
                    moved[k] += sign * size
                    beside = self.closed_configuration(q, moved)
                    sides.append(charts.rates(beside, self.velocity(beside, rate)[index]))
                change[count:, k] = (sides[0] - sides[1]) / (2.0 * size)
        return change

    # -- parts ----------------------------------------------------------------------------------------------------

    def _basis(self, q: Array, velocity: Array) -> Array:
        """G (nv, n), columns in the order of w; M, c and g of the state remain in the work arrays."""
        index = self._independent(q, velocity)
        if index.size != self.index.size or not self._held[index].all():
            raise TensegrityError(DEPENDENT)
        basis = self._reduction.basis[:, self._reduction.basis_index[self.index]]
        return np.asarray(basis @ self.charts.matrix(self.charts.numbers(q))) if self.charts.turning else basis

    def _independent(self, q: Array, velocity: Array) -> NDArray[np.int64]:
        """Independent coordinates found by pivoting; these are the chosen ones if they are independent."""
        q, velocity = (np.ascontiguousarray(each, dtype=np.float64) for each in (q, velocity))
        self._evaluate(self._flat, q, velocity, self._work)
        self._reduce_rows(self._work.loop, self._work.loop_bias, self._reduction, False)
        count = self._find_basis(self._work.mass.shape[0], self._reduction)
        return np.asarray(self._reduction.independent[:count])

    def _check(self, q: Array) -> None:
        independent = self._independent(q, np.zeros(self._held.size)).tolist()
        names = self.mechanism.coordinate_names()
        left = [names[k] for k in independent if not self._held[k]]
        lost = [name for name, k in zip(self.names, self.index, strict=True) if int(k) not in independent]
        if left or lost:
            raise TensegrityError(
                f"{', '.join(self.names)} are not a choice of all {len(independent)} independent coordinates here:"
                f"{' missing ' + ', '.join(left) if left else ''}{' dependent ' + ', '.join(lost) if lost else ''}."
            )


def steady(matrix: Array, motions: Array, onto: Array, decay: float = DECAY) -> None:
    """Add a decay rate [1/s] of motions (n, m) of w to A (2n, 2n); `onto` (m, n) projects a motion onto them."""
    n = len(motions)
    matrix[n:, :n] -= decay**2 * motions @ onto
    matrix[n:, n:] -= 2.0 * decay * motions @ onto


def named_coordinates(mechanism: Mechanism, names: Sequence[str]) -> list[int]:
    """Indices in v of coordinates by name.

    Raises:
        TensegrityError: a name is unknown.
    """
    names_of_all = mechanism.coordinate_names()
    for name in names:
        if name not in names_of_all:
            raise TensegrityError(unknown_name("coordinate", name, names_of_all))
    return [names_of_all.index(name) for name in names]


def whole_joints(mechanism: Mechanism, weight: Array, pivots: Callable[[], list[int]]) -> list[int]:
    """Result of `pivots` with all or no coordinates of each joint with a quaternion, if possible.

    If `pivots` selects a part of such a joint, the weights (nv,) of the joint are lowered and `pivots` is repeated."""
    while True:
        chosen = pivots()
        parts = [
            at for joint in mechanism.joints if joint.kind in QUATERNION_KINDS
            for at in (mechanism.velocities_of(joint.name),)
            if 0 < sum(at.start <= k < at.stop for k in chosen) < at.stop - at.start and np.all(weight[at] > WHOLE)
        ]  # fmt: skip
        if not parts:
            return chosen
        weight[parts[0]] = WHOLE


def choose_independent(
    robot: Robot, first: ArrayLike, *, alike: bool = False, unranked: Collection[str] = ()
) -> list[int]:
    """Independent coordinates at the start: `first` (indices in v), then joints with one coordinate by carried mass.

    If these are not sufficient, joints with several coordinates follow, and spherical and floating joints last. With
    `alike`, joints of all kinds are ranked by the mass that they carry. Coordinates of `first` that depend on each
    other are excluded. Coordinates of other joints, such as the `unranked` ones, are chosen only if no others are left,
    whatever mass they carry.
    """
    mechanism = robot.mechanism
    flat, chosen = mechanism.flat, np.asarray(first, dtype=np.int64)
    work, reduction, carried = make_workspace(flat), make_reduction_workspace(flat), flat.mass.copy()
    for i in range(carried.size - 1, -1, -1):
        if flat.parent[i] >= 0:
            carried[flat.parent[i]] += carried[i]
    index = mechanism.body_index
    ranked = [
        joint for joint in mechanism.joints
        if (alike or joint.kind in ("revolute", "prismatic"))
        and joint.name not in unranked
        and not np.any(np.isin(np.arange(mechanism.velocity_count)[mechanism.velocities_of(joint.name)], chosen))
    ]  # fmt: skip
    # a lower weight prevents that a coordinate becomes passive
    for rank, joint in enumerate(sorted(ranked, key=lambda each: carried[index[each.body]])):
        reduction.weight[mechanism.velocities_of(joint.name)] *= 1e-3 * 0.5 ** min(rank, 26)
    for joint in mechanism.joints:
        if joint.kind in QUATERNION_KINDS and not alike:
            reduction.weight[mechanism.velocities_of(joint.name)] *= 1e3
    reduction.weight[chosen] *= FIRST
    evaluate(flat, robot.model.initial_configuration, np.zeros(mechanism.velocity_count), work)

    def pivots() -> list[int]:
        reduce_rows(work.loop, work.loop_bias, reduction, False)
        return [int(k) for k in reduction.independent[: independent_basis(mechanism.velocity_count, reduction)]]

    return whole_joints(mechanism, reduction.weight, pivots)
