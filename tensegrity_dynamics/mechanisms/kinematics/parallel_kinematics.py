"""Kinematics of mechanisms with loops, for any active joints and output (002, chapter 2, in general form).

With closed loops every motion is v = G y. For each active joint i there is one row (a_i, b_i) with a_i . p' = b_i q_i'
for all motions: the left null vector of [J_p G; G_i]. With a_i of unit length, A has the rows a_i and B = -diag(b), so
that A p' + B q' = 0 (002, 2.13). Unlike -B^-1 A and -A^-1 B, these rows also exist at singularities:

* Type 1, some b_i = 0: the output cannot move along a_i, the joint moves without it;
* Type 2, det A = 0: the output can move while all active joints stand still.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import TensegrityError, UnreachableGoalError, unknown_name
from ...numerics.compilation import QuickCall, allocation_free
from ...numerics.rotations import matrix_from_vector, rotation_vector
from ...robots.output_frame import AXES
from ..body_frame import BodyFrame
from ..mechanism import Mechanism, check_state
from ..workspace import make_workspace
from .body_kinematics import body_kinematics
from .configuration_space import displace
from .loop_equations import loop_equations
from .loop_reduction import independent_basis, make_reduction_workspace, reduce_rows

MAX_NEWTON_STEPS = 12


@allocation_free
def evaluate(flat, q, v, work):
    """Evaluate bodies and loops at a state, for `LoopKinematics`."""
    body_kinematics(flat, q, v, work)
    loop_equations(flat, work)


@allocation_free
def fill_basis(work, reduction):
    """Fill G and g from the last evaluated loops; returns the number of independent coordinates."""
    reduce_rows(work.loop, work.loop_bias, reduction, False)
    return independent_basis(work.loop.shape[1], reduction)


class Coordinates(NamedTuple):
    """Functions of the configuration that define a set of coordinates.

    Attributes:
        values: (n,) coordinates at q.
        error: (n,) difference of a target (n,) and the coordinates at q; for rotations a rotation vector in world axes.
        jacobian: (n, nv) derivative of the coordinates along the velocities, equal to the decrease of a small error.
        between: (n,) coordinates at a fraction (0 to 1) of the path between two values.
    """

    values: Callable[[NDArray], NDArray[np.float64]]
    jacobian: Callable[[NDArray], NDArray[np.float64]]
    error: Callable[[NDArray, NDArray], NDArray[np.float64]]
    between: Callable[[NDArray, NDArray, float], NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class FirstOrder:
    """First-order model A p' + B q' = 0 at one position, and the distances to singularities.

    Attributes:
        a: A (n, n) with unit rows (rotations weighted by the characteristic length).
        b: B (n, n), diagonal.
        motion: (nv, n) velocities of all coordinates per active velocity; NaN at a Type 2 singularity.
        output: (n, nv) velocity of the output per velocity coordinate.
        type_1: smallest |b_i|. type_2: smallest singular value of A. Each vanishes at the singularity of its type.
    """

    a: NDArray[np.float64]
    b: NDArray[np.float64]
    motion: NDArray[np.float64]
    output: NDArray[np.float64]
    type_1: float
    type_2: float

    @property
    def jacobian(self) -> NDArray[np.float64]:
        """J = -A^-1 B, (n, n): output velocity per active velocity (002, 2.14)."""
        return np.asarray(-np.linalg.solve(self.a, self.b), dtype=np.float64)


class LoopKinematics:
    """Geometric, first- and second-order models of a mechanism.

    Args:
        mechanism: mechanism with equal numbers of degrees of freedom, active joints and controlled axes.
        active: names of the driven joints, each with one coordinate.
        output: frame of the end effector.
        length: characteristic length [m] that weights rotations relative to translations in the distances to
            singularities.

    Raises:
        TensegrityError: the numbers of active joints and controlled axes differ.
    """

    def __init__(
        self, mechanism: Mechanism, active: tuple[str, ...], output: BodyFrame, *, length: float = 1.0
    ) -> None:
        if len(active) != len(output.controlled):
            raise TensegrityError(
                f"{len(active)} active joints for {len(output.controlled)} controlled axes; name as many of each."
            )
        self.mechanism, self.active, self.output, self.length = mechanism, tuple(active), output, length
        self._active = np.array([mechanism.velocities_of(name).start for name in active])
        self._active_jacobian = np.zeros((len(active), mechanism.velocity_count))
        self._active_jacobian[np.arange(len(active)), self._active] = 1.0
        self._rows = np.array([AXES.index(axis) for axis in output.controlled])
        self._turns = bool(np.any(self._rows >= 3))
        if output.body not in mechanism.body_index:
            raise TensegrityError(f"output {output.name}: " + unknown_name("body", output.body, mechanism.body_index))
        self._body = mechanism.body_index[output.body]
        self._carrying = self._velocities_that_carry(self._body)
        self._work, self._reduction = make_workspace(mechanism.flat), make_reduction_workspace(mechanism.flat)
        self._evaluate_now, self._fill_basis = QuickCall(evaluate), QuickCall(fill_basis)
        self._displace = QuickCall(displace)
        self._q, self._v = np.full(mechanism.position_count, np.nan), np.full(mechanism.velocity_count, np.nan)
        self._still, self._rate = np.zeros(mechanism.velocity_count), np.zeros(mechanism.position_count)

    # -- geometric models -----------------------------------------------------------------------------------------

    def direct(self, active: Mapping[str, float] | ArrayLike, start: NDArray) -> NDArray[np.float64]:
        """Configuration (nq,) with the active joints at `active` (n,), on the assembly mode of `start`.

        Raises:
            UnreachableGoalError: the loops cannot close there.
        """
        values = np.array([active[name] for name in self.active]) if isinstance(active, Mapping) else np.asarray(active)
        return self._follow(start, self.active_coordinates, values.astype(float), "active joint positions")

    def inverse(self, target: ArrayLike, start: NDArray) -> NDArray[np.float64]:
        """Configuration (nq,) with the controlled output coordinates at target (n,), on the working mode of `start`.

        Raises:
            UnreachableGoalError: the target is not reachable on this working mode.
        """
        return self._follow(start, self.output_coordinates, np.asarray(target, dtype=float), "output")

    def output_pose(self, q: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Rotation (3, 3) and position (3,) [m] of the output frame at q (nq,)."""
        self._evaluate(q, self._still)
        rotation, position = self._pose()
        return rotation, np.array(position)

    def output_values(self, q: NDArray) -> NDArray[np.float64]:
        """Controlled coordinates (n,) of the output: positions [m] and rotation vector [rad]."""
        rotation, position = self.output_pose(q)
        return np.concatenate((position, rotation_vector(rotation)))[self._rows]

    @property
    def output_coordinates(self) -> Coordinates:
        """Controlled coordinates of the output; their level sets contain the working modes."""
        return Coordinates(self.output_values, self._output_jacobian_at, self._output_error, self._output_between)

    @property
    def active_coordinates(self) -> Coordinates:
        """Positions of the active joints; their level sets contain the assembly modes."""
        return Coordinates(
            self._active_values,
            lambda _: self._active_jacobian,
            lambda q, target: target - self._active_values(q),
            lambda first, last, share: first + share * (last - first),
        )

    def loops(self, q: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Loop errors (nc,) [m, or sine of an angle] and K (nc, nv) at a configuration."""
        self._evaluate(q, self._still)
        return self._work.loop_error.copy(), self._work.loop.copy()

    def close(
        self, q: NDArray, coordinates: Coordinates | None = None, target: NDArray | None = None
    ) -> NDArray[np.float64] | None:
        """Configuration near q (nq,) with closed loops and, with a target (n,), these coordinate values (Newton's
        method).

        None if it does not converge or moves away by more than 0.5 (rad or m).
        """
        start, position = np.array(q, dtype=float), np.array(q, dtype=float)
        for _ in range(MAX_NEWTON_STEPS):
            self._evaluate(position, self._still)
            error, matrix = -self._work.loop_error, self._work.loop
            if coordinates is not None and target is not None:
                error = np.concatenate((error, coordinates.error(position, target)))
            if not error.size or np.abs(error).max() < 1e-13:
                return position if np.abs(position - start).max() < 0.5 else None
            if coordinates is not None and target is not None:
                matrix = np.concatenate((matrix, coordinates.jacobian(position)))
            step = _newton_step(matrix, error)
            if not np.all(np.isfinite(step)) or np.abs(step).max() > 1.0:
                return None
            position = self._displaced(position, step)
        near = np.abs(error).max() < 1e-11 and np.abs(position - start).max() < 0.5
        return position if near else None

    def basis(self, q: NDArray) -> NDArray[np.float64]:
        """G (nv, y) at a configuration: basis of all velocities that keep the loops closed (000, 1.2.32)."""
        self._evaluate(q, self._still)
        return self._basis()

    # -- first and second order -----------------------------------------------------------------------------------

    def first_order(self, q: NDArray) -> FirstOrder:
        """A, B and the distances to singularities at a configuration with closed loops."""
        self._evaluate(q, self._still)
        basis = self._basis()
        output = self._output_jacobian()
        weights = np.where(self._rows >= 3, self.length, 1.0)
        count = len(self.active)
        if basis.shape[1] != count:
            raise TensegrityError(
                f"the mechanism has {basis.shape[1]} degrees of freedom, but {count} active joints are named."
            )
        outputs, actives = (weights[:, None] * output) @ basis, basis[self._active]
        a, b = np.zeros((count, count)), np.zeros((count, count))
        stacked = np.empty((count, count, count + 1))
        stacked[:, :, :count], stacked[:, :, count] = outputs.T, actives
        for i, null in enumerate(np.linalg.svd(stacked)[2][:, -1]):
            size = float(np.linalg.norm(null[:-1]))
            if size < 1e-12:
                null, size = np.append(null[:-1], 1.0), 1.0
            null = null / size
            if null[np.argmax(np.abs(null[:-1]))] < 0.0:
                null = -null
            a[i], b[i, i] = null[:-1], null[-1]
        singular = np.linalg.svd(a, compute_uv=False)
        with np.errstate(all="ignore"):
            motion = basis @ _inverse_or_nan(actives)
        return FirstOrder(a * weights, b, motion, output, float(np.min(np.abs(np.diag(b)))), float(singular[-1]))

    def second_order(
        self, q: NDArray, active_rate: ArrayLike, active_acceleration: ArrayLike, first: FirstOrder | None = None
    ) -> tuple[NDArray, NDArray, NDArray]:
        """v (nv,), and accelerations of all coordinates (nv,) and of the output (n,), from those of the active joints
        (002, 2.20).

        `first` is the result of `first_order(q)`, if available.
        """
        first = self.first_order(q) if first is None else first
        v = first.motion @ np.asarray(active_rate, dtype=float)
        self._evaluate(q, v)
        self._basis()
        offset = self._reduction.offset.copy()
        missing = np.asarray(active_acceleration, dtype=float) - offset[self._active]
        acceleration = offset + first.motion @ missing
        return v, acceleration, first.output @ acceleration + self._output_bias()

    def from_output(
        self, q: NDArray, rate: ArrayLike, acceleration: ArrayLike
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """v and a (nv,) of all coordinates for a velocity and an acceleration (n,) of the output.

        Unlike the model based on the active joints, this one is regular at Type 2 singularities.

        Raises:
            TensegrityError: q is a Type 1 singularity, where the output does not determine the joints.
        """
        self._evaluate(q, self._still)
        inverse = _inverse_or_nan(self._output_jacobian() @ self._basis())
        if not np.all(np.isfinite(inverse)):
            raise TensegrityError("the output does not determine the joints here (Type 1 singularity).")
        v = self._basis() @ (inverse @ np.asarray(rate, dtype=float))
        self._evaluate(q, v)
        basis = self._basis()
        offset = self._reduction.offset.copy()
        missing = np.asarray(acceleration, dtype=float) - self._output_bias() - self._output_jacobian() @ offset
        return v, offset + basis @ (inverse @ missing)

    def free_motion(self, q: NDArray) -> tuple[NDArray[np.float64], float]:
        """Unit motion v (nv,) with the least motion of the active joints, and det dq_active/dp.

        The determinant changes its sign at a Type 2 singularity, where this motion does not move the active joints.
        """
        self._evaluate(q, self._still)
        basis = self._basis()
        actives = basis[self._active] @ _inverse_or_nan(self._output_jacobian() @ basis)
        motion = basis @ (_inverse_or_nan(self._output_jacobian() @ basis) @ np.linalg.svd(actives)[2][-1])
        return motion / np.linalg.norm(motion), float(np.linalg.det(actives))

    # -- parts ----------------------------------------------------------------------------------------------------

    def _velocities_that_carry(self, body: int) -> NDArray[np.int64]:
        """Indices of the velocities of the joints between the base and a body."""
        flat, found = self.mechanism.flat, list[int]()
        while body >= 0:
            found += range(flat.v_start[body], flat.v_start[body] + flat.v_count[body])
            body = flat.parent[body]
        return np.array(found, dtype=np.int64)

    def _evaluate(self, q: NDArray, v: NDArray) -> None:
        """Evaluate bodies and loops at a state, unless it is that of the last evaluation."""
        if np.array_equal(q, self._q) and np.array_equal(v, self._v):
            return
        self._q[:] = np.nan  # until the evaluation is complete
        q, v = check_state(self.mechanism, q, v)
        self._evaluate_now(self.mechanism.flat, q, v, self._work)
        self._q[:], self._v[:] = q, v

    def _displaced(self, q: NDArray, step: NDArray) -> NDArray[np.float64]:
        """Configuration (nq,) after a small step (nv,) along the velocities."""
        result = np.empty_like(q)
        self._displace(self.mechanism.flat, q, step, self._rate, result)
        return result

    def _basis(self) -> NDArray[np.float64]:
        count = self._fill_basis(self._work, self._reduction)
        return self._reduction.basis[:, :count].copy()

    def _pose(self) -> tuple[NDArray, NDArray]:
        rotation, frame = self._work.rotation[self._body], self.output.frame
        return rotation @ frame.axes, self._work.position[self._body] + rotation @ frame.origin

    def _output_jacobian_at(self, q: NDArray) -> NDArray[np.float64]:
        self._evaluate(q, self._still)
        return self._output_jacobian()

    def _output_jacobian(self) -> NDArray[np.float64]:
        """(n, nv) Jacobian of the output at the last evaluated state."""
        full = np.zeros((6, self.mechanism.velocity_count))
        _, position = self._pose()
        moving = self._work.jacobian[self._carrying]
        full[:3, self._carrying] = (moving[:, 3:] - moving[:, :3] @ _cross_matrix(position).T).T
        full[3:, self._carrying] = moving[:, :3].T
        return full[self._rows]

    def _output_bias(self) -> NDArray[np.float64]:
        """Acceleration of the output at zero coordinate accelerations (bias), at the last evaluated state."""
        _, position = self._pose()
        velocity, acceleration = self._work.velocity[self._body], self._work.acceleration[self._body]
        turning = _cross_matrix(velocity[:3])
        point = velocity[3:] + turning @ position
        linear = acceleration[3:] + self.mechanism.gravity + _cross_matrix(acceleration[:3]) @ position
        return np.concatenate((linear + turning @ point, acceleration[:3]))[self._rows]

    def _split(self, values: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Position (3,) and rotation (3, 3) from controlled coordinates (n,); the uncontrolled ones are zero."""
        full = np.zeros(6)
        full[self._rows] = values
        return full[:3], matrix_from_vector(full[3:])

    def _output_error(self, q: NDArray, target: NDArray) -> NDArray[np.float64]:
        rotation, position = self.output_pose(q)
        if not self._turns:
            return np.asarray(target - position[self._rows])
        goal, turned = self._split(target)
        return np.concatenate((goal - position, rotation_vector(turned @ rotation.T)))[self._rows]

    def _output_between(self, first: NDArray, last: NDArray, share: float) -> NDArray[np.float64]:
        """Interpolation along a straight line, with a rotation about one axis."""
        (start, before), (end, after) = self._split(first), self._split(last)
        turned = matrix_from_vector(share * rotation_vector(after @ before.T)) @ before
        return np.concatenate((start + share * (end - start), rotation_vector(turned)))[self._rows]

    def _active_values(self, q: NDArray) -> NDArray[np.float64]:
        return np.array([q[self.mechanism.positions_of(name)][0] for name in self.active])

    def _follow(self, start: NDArray, coordinates: Coordinates, target: NDArray, what: str) -> NDArray[np.float64]:
        """Move the coordinates of `start` to the target in steps short enough to stay on the same mode."""
        if target.shape != (len(self.active),) or not np.all(np.isfinite(target)):
            raise TensegrityError(f"{what}: {len(self.active)} finite numbers are needed, found {target}.")
        q = self.close(start)
        if q is None:
            raise TensegrityError("the loops of the start position cannot be closed.")
        origin, distance = coordinates.values(q), float(np.max(np.abs(coordinates.error(q, target))))
        done, stride = 0.0, 1.0
        while done < 1.0:
            stride = min(stride, 1.0 - done, 0.1 / max(1e-12, distance))
            trial = self.close(q, coordinates, coordinates.between(origin, target, done + stride))
            if trial is None:
                stride *= 0.5
                if stride < 1e-7:
                    asked, reached = (", ".join(f"{x:.6g}" for x in each) for each in (target, coordinates.values(q)))
                    raise UnreachableGoalError(
                        f"{what} ({asked}) cannot be reached on this mode; it can be followed to ({reached})."
                    )
                continue
            q, done, stride = trial, done + stride, 2.0 * stride
        return q


def _newton_step(matrix: NDArray, error: NDArray) -> NDArray[np.float64]:
    """(nv,) step that removes an error, with least norm if the rows are underdetermined or dependent."""
    if matrix.shape[0] == matrix.shape[1]:
        with suppress(np.linalg.LinAlgError):
            return np.asarray(np.linalg.solve(matrix, error), dtype=np.float64)
    return np.asarray(np.linalg.lstsq(matrix, error, rcond=1e-13)[0], dtype=np.float64)


def _cross_matrix(vector: NDArray) -> NDArray[np.float64]:
    """(3, 3) cross product matrix of a vector (3,)."""
    x, y, z = vector
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def _inverse_or_nan(matrix: NDArray) -> NDArray[np.float64]:
    try:
        return np.linalg.inv(matrix)
    except np.linalg.LinAlgError:
        return np.full(matrix.shape, np.nan)
