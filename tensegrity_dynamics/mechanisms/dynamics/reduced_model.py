"""Equations of a mechanism in one choice of independent coordinates, which may change during the motion.

With w the chosen coordinates, w' = v restricted to them, and u the efforts of the drives,

    M w'' + c - p = B u

where M, c, p and B are reduced by G (000, 1.2.35). Controllers and observers linearise around it.

Where the entries of G grow, the choice nears a singularity of its own, which is none of the mechanism. `rechoose` then
takes others by pivots (000, 5.4: "chosen algorithmically ... so that certain internal matrices remain regular") and
says how what is known in the old ones reads in the new ones. With T = dw_new / dw, rows of G,

    dw_new = T dw,   dw_new' = T dw' + D dw,   D = d(T w') / dw.

Joints with quaternions take part by charts (`coordinate_charts`), whose centre goes along with the choice: it is taken
anew where a joint has turned far from it.
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
from ..kinematics.loop_closure import close_loops
from ..kinematics.loop_equations import loop_equations
from ..kinematics.loop_reduction import independent_basis, make_reduction_workspace, reduce_rows
from ..mechanism import FlatMechanism, Mechanism, with_own_masses
from ..mechanism_model import MechanismModel
from ..route_readings import read_routes
from ..workspace import make_stage_workspace, make_workspace
from .coordinate_charts import CoordinateCharts
from .equations_of_motion import cable_efforts, evaluate
from .forward_dynamics import accelerate
from .tangents import DEPENDENT as NOT_INDEPENDENT
from .tangents import REGULAR, linearise_states, make_tangent_workspace

DIFFERENCE_STEP = 1e-6
"""Of the central differences, in rad or m and per s."""


DEPENDENT = "the chosen coordinates stop being independent here; choose others."
LARGEST_ENTRY = 10.0
"""Of G, in parts of its largest when the coordinates were chosen, beyond which others are looked for."""
NO_STIFFNESS, NO_REACH = 1e-7, 1e-6
"""Of the largest stiffness per inertia, and of the largest that an input moves, which count as none."""
DECAY = 10.0
"""1/s, of motions that nothing drives back."""
WHOLE, FIRST = 1e-11, 1e-12
"""Weights by which the coordinates of a joint with a quaternion become independent together, and by which given ones
do; others have larger ones."""
GROWN = 1.5
"""The same, up to which no singularity is looked for between two positions that follow each other."""
BETTER = 0.5
"""Part of the largest entry of G that others must come down to, so that no two choices take turns."""


@allocation_free
def largest_size(basis, count):
    """Largest size of an entry in the first columns of a basis; NaN where one is."""
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
    """Close the loops of q around the held coordinates, fill v (nv,) with the velocities of rates (n,) of the
    coordinates `index`, and the tensions at both.

    Returns the largest error of the loops, and whether the coordinates are independent there.
    """
    for d in range(v.shape[0]):
        stages.v_sum[d] = 0.0
    error = close_loops(flat, q, held, 1e-13, False, work, reduction, stages)
    if not error < 1e-9:
        return error, False
    if error > 1e-13:  # the last step has moved it again
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
def moving_states(
    flat, start, coordinates, rates, efforts, index, q_index, held, body, origin, axes, positions, accelerations,
    outputs, jacobians, v, work, reduction, stages,
):  # fmt: skip
    """States with numbers (k, m) at `q_index`, rates (k, n) of v at `index` and efforts (k, nv), each near the last.

    Fills positions (k, nq), accelerations (k, n) of v, and of a point of a body, `origin` (3,) m, the `axes` (p,):
    outputs (k, p) m and their Jacobians (k, p, n); axes 3 to 5 are turns about x, y and z, with outputs of zero.
    Returns how many were made, and the error of the loops at the next.
    """
    for k in range(coordinates.shape[0]):
        q = positions[k]
        for i in range(q.shape[0]):
            q[i] = start[i] if k == 0 else positions[k - 1, i]
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
        for r in range(axes.shape[0]):
            axis = axes[r]
            outputs[k, r] = work.point[axis] if axis < 3 else 0.0
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
        positions: (k, nq). accelerations: w'' (k, n). outputs: (k, p) m, axes of a point, zero for turns.
            jacobians: (k, p, n), velocities and angular velocities of these by w'.
    """

    positions: Array
    accelerations: Array
    outputs: Array
    jacobians: Array


class ReducedModel:
    """Equations of one robot in chosen coordinates; every object keeps its own arrays, so take one for each thread.

    Args:
        robot: a mechanism with actuators.
        index: of the coordinates in v, of joints with quaternions all or none. None: the driven joints, and of the
            other joints of one coordinate those that carry the most mass, as far as they are independent at the start,
            then those of universal and cable joints, and those with quaternions last.
        counted: whether the coordinates have numbers w; without, small displacements along v stand for these, and
            `linearised` is all there is.

    Attributes:
        index: (n,) of the coordinates in v. q_index: of the numbers in q that follow from w. names: of the
            coordinates. drives, q_drives: (u,) of the actuators in v and in q. charts: of w around `centre` (nq,).

    Raises:
        TensegrityError: the coordinates are not independent at the start, or not all of them.
    """

    def __init__(self, robot: Robot, index: ArrayLike | None = None, *, counted: bool = True) -> None:
        model = robot.model_as(MechanismModel)
        mechanism = model.mechanism
        self.robot, self.mechanism = robot, mechanism
        self._flat = with_own_masses(mechanism.flat)._replace(cable_young=np.array(mechanism.flat.cable_young))
        self._work, self._reduction = make_workspace(self._flat), make_reduction_workspace(self._flat)
        self._stages, self._moving_state = make_stage_workspace(self._flat), QuickCall(moving_state)
        self._largest = QuickCall(largest_size)
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
        self._reluctant: list[int] = []  # coordinates that others than the first choice avoid
        self._reduction.weight[self.index] *= 1e-9  # the last to become passive
        self._check(model.start)
        self._usual_entry = self.largest_entry(np.array(model.start))

    def take_loads(self, load: Array, stiffness: Array) -> None:
        """Reckon from now on with loads (b, 6) [moment, force] on bodies, and cables (c,) times as stiff as stated."""
        self._work.load[:] = load
        np.multiply(self.mechanism.flat.cable_young, stiffness, out=self._flat.cable_young)

    @property
    def centre(self) -> Array:
        """(nq,) around which charts of joints with quaternions count."""
        return self._centre

    @property
    def flat(self) -> FlatMechanism:
        """The mechanism's arrays with the stiffness of `take_loads`."""
        return self._flat

    @property
    def work(self) -> Any:
        """Kinematics and forces at the state that was last computed, see `make_workspace`."""
        return self._work

    @property
    def offset(self) -> Array:
        """g (nv,) at the state that was last computed."""
        return np.asarray(self._reduction.offset)

    def closed_configuration(self, start: Array, w: Array) -> Array:
        """Position (nq,) near a start with the coordinates at w (n,) and loops closed.

        Raises:
            TensegrityError: the loops cannot close there.
        """
        q = start.copy()
        q[self.q_index] = self.charts.positions(np.asarray(w))
        self._stages.v_sum[:] = 0.0
        error = close_loops(self._flat, q, self._held, 1e-13, False, self._work, self._reduction, self._stages)
        self._refuse_open(error, start, w)
        return q

    def _refuse_open(self, error: float, start: Array, w: Array) -> None:
        if not error < 1e-9:
            moves = np.asarray(w) - self.charts.numbers(start)
            values = ", ".join(
                f"{name} = {0.0 if abs(value) < 1e-9 else value:.4g} (moved by {move:.2g})"
                for name, value, move in zip(self.names, w, moves, strict=True)
            )
            raise TensegrityError(
                f"the loops cannot close where {values} was asked for: a gap of {error:.2g} m or rad is left. That is "
                "out of reach or near a singularity; choose other coordinates, or go there in shorter steps."
            )

    def state_at(self, start: Array, w: Array, rate: Array) -> tuple[Array, Array, Array]:
        """Position (nq,) near a start, velocity (nv,) and tensions of the cables (c,) N where the coordinates are at
        w (n,) with rates w' (n,): `closed_configuration` and `velocity` in one call.

        Raises:
            TensegrityError: as these.
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
        """N by name of the cables where the coordinates are at w (n,) with rates w' (n,), see `state_at`; of a routed
        cable the least of its strands. Cables of the rigid variant have none of their own."""
        q, v, own = self.state_at(start, w, rate)
        found = {cable.name: float(tension) for cable, tension in zip(self.mechanism.cables, own, strict=True)}
        if self.mechanism.routes:
            evaluate(self._flat, q, v, self._work)
            found |= {name: min(each.tensions) for name, each in read_routes(self.mechanism, self._work).items()}
        return found

    def state(self, q: Array, v: Array) -> Array:
        """(2n,) w and w' of a state of the mechanism."""
        return np.concatenate((self.charts.numbers(q), self.charts.rates(q, v[self.index])))

    def coordinates_at(self, q: Array) -> Array:
        """w (n,) at a position."""
        return self.charts.numbers(q)

    def velocity(self, q: Array, rate: Array) -> Array:
        """(nv,) velocities that go with rates w' (n,) at a position."""
        return np.asarray(self._basis(q, np.zeros(self._held.size)) @ rate)

    def basis(self, q: Array, velocity: Array | None = None) -> Array:
        """G (nv, n) at a position, columns in the order of w; at rest, or at velocities (nv,)."""
        return np.array(self._basis(q, np.zeros(self._held.size) if velocity is None else velocity))

    def mass(self, q: Array) -> Array:
        """M (n, n) at a position."""
        basis = self._basis(q, np.zeros(self._held.size))
        return np.asarray(basis.T @ self._work.mass @ basis)

    def linearised(self, q: Array, rate: Array, effort: Array) -> tuple[Array, Array, Array]:
        """A (2n, 2n) and B (2n, u) of small deviations of (w, w'), and w'' (n,), at a state under efforts (u,)."""
        matrices, inputs, accelerations = self.linearised_along(q[None], rate[None], effort[None])
        return matrices[0], inputs[0], accelerations[0]

    def linearised_along(self, positions: Array, rates: Array, efforts: Array) -> tuple[Array, Array, Array]:
        """`linearised` at k states at once: A (k, 2n, 2n), B (k, 2n, u), w'' (k, n) for rows of q, w' and efforts."""
        states, count, width = len(positions), self.index.size, self._held.size
        w = np.array([self.charts.numbers(q) for q in positions]) if self.charts.turning else positions
        on_all = np.zeros((states, width))
        on_all[:, self.drives] = efforts
        matrices, inputs = np.empty((states, 2 * count, 2 * count)), np.empty((states, 2 * count, self.drives.size))
        accelerations, velocity = np.empty((states, count)), np.empty(width)
        status = linearise_states(
            self._flat, np.ascontiguousarray(positions, dtype=np.float64),
            np.ascontiguousarray(self.charts.velocities(w, rates)), on_all,
            self.index, self._held, self.drives, np.full(count, DIFFERENCE_STEP), matrices, inputs, accelerations,
            velocity, self._work, self._reduction, self._tangent,
        )  # fmt: skip
        if status == NOT_INDEPENDENT:
            raise TensegrityError(DEPENDENT)
        if status != REGULAR:
            raise TensegrityError("a motion of the chosen coordinates has no inertia here; choose others.")
        return self.charts.linearised(w, rates, matrices, inputs, accelerations)

    def accelerations(self, q: Array, rate: Array, effort: Array) -> Array:
        """w'' (n,) at a state under efforts (u,)."""
        efforts = np.zeros(self._held.size)
        efforts[self.drives] = effort
        accelerate(self._flat, q, self.velocity(q, rate), efforts, 0.0, self._work, self._reduction, False)
        found = self._reduction.acceleration[self.index].copy()
        return self.charts.accelerations(self.charts.numbers(q), rate, found) if self.charts.turning else found

    def states_along(
        self, start: Array, coordinates: Array, rates: Array, efforts: Array, body: int = -1,
        origin: Array | None = None, axes: ArrayLike = (),
    ) -> MovingStates:  # fmt: skip
        """States with coordinates w (k, n), rates w' (k, n) and efforts (k, u) one after the other, each near the last.

        Args:
            start: (nq,) near the first. body, origin, axes: of `MovingStates.outputs`, a point (3,) m in a body.

        Raises:
            TensegrityError: as `state_at`.
        """
        count, size = coordinates.shape
        on_all = np.zeros((count, self._held.size))
        on_all[:, self.drives] = efforts
        rows = np.asarray(axes, dtype=np.int64)
        states = MovingStates(
            np.empty((count, start.size)), np.empty((count, size)), np.empty((count, rows.size)),
            np.empty((count, rows.size, size)),
        )  # fmt: skip
        charts = self.charts
        made, error = moving_states(
            self._flat, np.ascontiguousarray(start), np.ascontiguousarray(charts.positions(coordinates)),
            np.ascontiguousarray(charts.velocities(coordinates, rates)), on_all,
            self.index, self.q_index, self._held, body, np.zeros(3) if origin is None else origin, rows,
            states.positions, states.accelerations, states.outputs, states.jacobians, np.empty(self._held.size),
            self._work, self._reduction, self._stages,
        )  # fmt: skip
        if made < count:
            self._refuse_open(error, states.positions[made - 1] if made else start, coordinates[made])
            raise TensegrityError(DEPENDENT)
        if charts.turning:
            states.accelerations[:] = charts.accelerations(coordinates, rates, states.accelerations)
            states.jacobians[:] = states.jacobians @ charts.matrix(coordinates)
        return states

    def steadied(self, q: Array, matrix: Array, push: Array, decay: float = DECAY) -> Array:
        """A (2n, 2n) at rest with motions dying out at a rate [1/s] that nothing drives back and no input reaches.

        Such as the spin of a strut on a ball joint. No feedback does anything about them and no actuator shows them,
        but without this neither a regulator nor the covariance of an observer comes to rest.

        Args:
            matrix, push: A and B (2n, u) of `linearised` at position q (nq,).
        """
        spins, onto = self.idle_motions(q, matrix, push)
        if not spins.shape[1]:
            return matrix
        result = matrix.copy()
        steady(result, spins, onto, decay)
        return result

    def idle_motions(self, q: Array, matrix: Array, push: Array) -> tuple[Array, Array]:
        """(n, m) motions of w that nothing drives back and no input reaches, orthonormal in M, and their transpose
        times M. Arguments as of `steadied`."""
        n = self.index.size
        lower = np.linalg.cholesky(self.mass(q))
        stiffness = lower.T @ matrix[n:, :n] @ np.linalg.inv(lower.T)
        reach = push[n:].T @ lower
        # both together, since slopes by differences alone do not tell a spin from the softest motion that is driven
        sizes = [float(np.linalg.norm(each, 2)) if each.size else 0.0 for each in (stiffness, reach)]
        parts = [each / (size or 1.0) for each, size in zip((stiffness, reach), sizes, strict=True)]
        right = np.linalg.svd(np.vstack(parts), full_matrices=False)[2]
        stiff, driven = (np.linalg.norm(part @ right.T, axis=0) for part in parts)
        idle = (stiff <= NO_STIFFNESS) & (driven <= NO_REACH)
        return np.linalg.solve(lower.T, right[idle].T), right[idle] @ lower.T

    # -- other coordinates ----------------------------------------------------------------------------------------

    def largest_entry(self, q: Array) -> float:
        """Of G at a position, 1 or more: how fast other coordinates go beside the chosen ones; infinite where these
        depend on each other.
        """
        try:
            return float(np.max(np.abs(self._basis(q, np.zeros(self._held.size)))))
        except TensegrityError:
            return np.inf

    def is_poor(self, q: Array) -> bool:
        """Whether others should be looked for, at the position (nq,) that was last computed."""
        if self.charts.turning and self.charts.is_far(q):
            return True
        return not self._largest(self._reduction.basis, self.index.size) <= LARGEST_ENTRY * self._usual_entry

    def regular_coordinates(self, positions: Array) -> tuple[NDArray[np.int64], Array] | None:
        """Indices in v of coordinates that are good at all positions (k, nq), with the position (nq,) of the centres of
        their charts; None where the chosen ones are.

        Of the choices by pivots at these positions the one whose largest entry of G anywhere is the least; where none
        is better by `BETTER`, the chosen ones stay.
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
        """The largest entry of G at positions (k, nq) one after the other; infinite where the coordinates are singular
        at one of them, or between two: there the determinant of their change to others goes through zero."""
        entries = [self.largest_entry(q) for q in positions]
        if np.all(np.isfinite(entries)):
            for (here, one), (ahead, other) in pairwise(zip(positions, entries, strict=True)):
                others = self.best_coordinates(here, ()) if max(one, other) > GROWN * self._usual_entry else None
                if others is not None:
                    turns = [np.linalg.det(self.basis(q)[others]) for q in (here, ahead)]
                    if turns[0] * turns[1] <= 0.0:
                        return np.inf
        return max(entries)

    def take_coordinates(self, index: ArrayLike, centre: Array) -> None:
        """Count in other coordinates from now on, given as to the constructor, with charts around `centre` (nq,)."""
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
        """Take other coordinates where the chosen ones have become poor at a position (nq,) with velocities (nv,), and
        charts around that position where they are far from it.

        Args:
            always: indices in v of coordinates that take part in every choice.

        Returns the matrix (2n, 2n) by which small deviations of (w, w') go over into those of the new coordinates, or
        None where all stays as it is: where the old ones are good, or no others are better.
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
        """Indices in v of the choice by pivots at a position, None where it takes a part of a joint without numbers."""
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
        """(2n, 2n) from deviations of (w, w') to those of the coordinates `index`, centred at q; see the module."""
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
        """G (nv, n), columns in the order of w; leaves M, c and g of the state in the work arrays."""
        index = self._independent(q, velocity)
        if index.size != self.index.size or not self._held[index].all():
            raise TensegrityError(DEPENDENT)
        basis = self._reduction.basis[:, self._reduction.basis_index[self.index]]
        return np.asarray(basis @ self.charts.matrix(self.charts.numbers(q))) if self.charts.turning else basis

    def _independent(self, q: Array, velocity: Array) -> NDArray[np.int64]:
        """Independent coordinates as the solver finds them, the chosen ones if they can be."""
        evaluate(self._flat, q, velocity, self._work)
        reduce_rows(self._work.loop, self._work.loop_bias, self._reduction, False)
        count = independent_basis(self._work.mass.shape[0], self._reduction)
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
    """Let motions (n, m) of w die out at a rate [1/s] in A (2n, 2n), with `onto` (m, n) their parts of any motion."""
    n = len(motions)
    matrix[n:, :n] -= decay**2 * motions @ onto
    matrix[n:, n:] -= 2.0 * decay * motions @ onto


def named_coordinates(mechanism: Mechanism, names: Sequence[str]) -> list[int]:
    """Indices in v of coordinates by name. Raises TensegrityError: a name is unknown."""
    names_of_all = mechanism.coordinate_names()
    for name in names:
        if name not in names_of_all:
            raise TensegrityError(unknown_name("coordinate", name, names_of_all))
    return [names_of_all.index(name) for name in names]


def whole_joints(mechanism: Mechanism, weight: Array, pivots: Callable[[], list[int]]) -> list[int]:
    """`pivots`, with the weights (nv,) of joints with quaternions of which it takes a part only lowered until it takes
    the whole joint, where that can be."""
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
    """Independent coordinates at the start: `first` (indices in v), and of the joints with one those that carry most.

    Where these do not suffice those of joints with several follow, and spherical and floating ones last; with `alike`
    joints of all kinds are ranked by what they carry. Coordinates of `first` that depend on others of them, and those
    of other joints where nothing else is left (so of `unranked` ones, whatever they carry), take part as they must.
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
    # a lower weight keeps a coordinate from becoming passive
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
