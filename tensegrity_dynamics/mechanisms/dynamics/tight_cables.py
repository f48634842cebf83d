"""The equations of a mechanism at one state as if its driven cables had no stretch left to give: what inputs can do.

With the strains of the driven cables held (M_s y_s'' = 0 of 000, 3.2.3) their tensions T are the forces of that
condition, and everything is affine in the efforts u of the actuators:

    M w'' + c = p + B u - P'T,   E w'' + e = 0   =>   T = T_0 + T_1 u,   w'' = a_0 + A_1 u,   y'' = b_0 + J A_1 u

with y the output, P the pull of a newton in each cable and E w'' + e their accelerations of stretch. Nothing of it
depends on which independent coordinates w are taken. They are chosen from K by pivots, which are kept from one state to
the next until the entries of G grow (000, 5.4: "so that certain internal matrices remain regular"), so joints of every
kind take part and no coordinate has to stay regular for ever.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from ...errors import TensegrityError
from ...numerics.compilation import QuickCall, allocation_free, for_compiled_callers
from ...numerics.linear_algebra import cholesky, cholesky_solve, lu_factor, lu_solve
from ...numerics.types import Array
from ...robots.robot import Robot
from .. import joints
from ..body_frame import BodyFrame
from ..kinematics.configuration_space import configuration_rate, normalise_quaternions
from ..kinematics.loop_reduction import independent_basis, make_reduction_workspace, reduce_rows
from ..mechanism_model import MechanismModel
from ..workspace import make_workspace
from .equations_of_motion import evaluate
from .forward_dynamics import massless_message, project_mass

REGULAR, SINGULAR_LOOPS, SINGULAR_MASS, SINGULAR_CABLES = 0, 1, 2, 3
LARGEST_ENTRY = 20.0
"""Of G, in parts of its largest when the pivots were chosen, beyond which they are chosen anew."""

Parts = namedtuple("Parts", "cable joint_q joint_v kind radius drive body origin axes")
"""Driven cables: index among the cables, of their joint in q and in v, kind and pulley radius; the actuators in v; the
output's body, point in it (3,) m, and controlled axes, of which `selection` (k, 6) makes the output's rows."""

TightWorkspace = namedtuple(
    "TightWorkspace",
    "right stretch stretch_bias pull inputs full jacobian bias inputs_solved pull_solved output_solved coupling pivots "
    "tension_0 tension_1 rate_0 rate_1 output_0 output_1 mobility joint_0 joint_1 momentum column scale position "
    "velocity selection rates q_rate q_ahead status",
)


def _make_workspace(n: int, nv: int, nq: int, cables: int, inputs: int, outputs: int) -> TightWorkspace:
    return TightWorkspace(
        right=np.zeros(n), stretch=np.zeros((cables, n)), stretch_bias=np.zeros(cables), pull=np.zeros((cables, n)),
        inputs=np.zeros((inputs, n)),
        full=np.zeros((6, nv)), jacobian=np.zeros((outputs, n)), bias=np.zeros(6), inputs_solved=np.zeros((inputs, n)),
        pull_solved=np.zeros((cables, n)), output_solved=np.zeros((outputs, n)), coupling=np.zeros((cables, cables)),
        pivots=np.zeros(cables, dtype=np.int64), tension_0=np.zeros(cables), tension_1=np.zeros((cables, inputs)),
        rate_0=np.zeros(n), rate_1=np.zeros((n, inputs)), output_0=np.zeros(outputs),
        output_1=np.zeros((outputs, inputs)), mobility=np.zeros((outputs, outputs)), joint_0=np.zeros(inputs),
        joint_1=np.zeros((inputs, inputs)), momentum=np.zeros((n, inputs)), column=np.zeros(cables), scale=np.zeros(1),
        position=np.zeros(6), velocity=np.zeros(6), selection=np.zeros((outputs, 6)),
        rates=np.zeros(n), q_rate=np.zeros(nq), q_ahead=np.zeros(nq),
        status=np.zeros(2, dtype=np.int64),
    )  # fmt: skip


@for_compiled_callers
def choose_coordinates(flat, work, reduction, n, fresh, scale):
    """Reduce the loops with the pivots of the last call, or with new ones where those have become poor.

    Returns the number of independent coordinates. scale (1,) is the largest entry of G when they were chosen.
    """
    dofs = flat.dof_parent.shape[0]
    if not fresh:
        reduce_rows(work.loop, work.loop_bias, reduction, True)
        if independent_basis(dofs, reduction) == n:
            largest = 0.0
            for d in range(dofs):
                for i in range(n):
                    largest = max(largest, abs(reduction.basis[d, i]))
            if largest <= LARGEST_ENTRY * scale[0]:
                return n
    reduce_rows(work.loop, work.loop_bias, reduction, False)
    count = independent_basis(dofs, reduction)
    scale[0] = 1.0
    for d in range(dofs):
        for i in range(count):
            scale[0] = max(scale[0], abs(reduction.basis[d, i]))
    return count


@allocation_free
def output_motion(flat, parts, work, tight):
    """Fill the Jacobian (6, nv) of the output's point, linear first, its velocity and its bias acceleration."""
    i = parts.body
    o = tight.position
    for k in range(3):
        o[k] = work.position[i, k]
        for m in range(3):
            o[k] += work.rotation[i, k, m] * parts.origin[m]
    x, y, z = o[0], o[1], o[2]
    a, w = work.acceleration[i], work.velocity[i]
    v0, v1, v2 = w[3] + w[1] * z - w[2] * y, w[4] + w[2] * x - w[0] * z, w[5] + w[0] * y - w[1] * x
    tight.velocity[0], tight.velocity[1], tight.velocity[2] = v0, v1, v2
    tight.bias[0] = a[3] + flat.gravity[0] + a[1] * z - a[2] * y + w[1] * v2 - w[2] * v1
    tight.bias[1] = a[4] + flat.gravity[1] + a[2] * x - a[0] * z + w[2] * v0 - w[0] * v2
    tight.bias[2] = a[5] + flat.gravity[2] + a[0] * y - a[1] * x + w[0] * v1 - w[1] * v0
    for k in range(3):
        tight.velocity[3 + k] = w[k]
        tight.bias[3 + k] = a[k]
    while i >= 0:
        for d in range(flat.v_start[i], flat.v_start[i] + flat.v_count[i]):
            j = work.jacobian[d]
            tight.full[0, d] = j[3] + j[1] * z - j[2] * y
            tight.full[1, d] = j[4] + j[2] * x - j[0] * z
            tight.full[2, d] = j[5] + j[0] * y - j[1] * x
            for k in range(3):
                tight.full[3 + k, d] = j[k]
        i = flat.parent[i]


@for_compiled_callers
def cable_rows(parts, q, work, reduction, tight, n):
    """Fill E and P (c, n), and take what the driven cables pull at this state out of the passive efforts."""
    basis = reduction.basis
    for c in range(parts.cable.shape[0]):
        a, b, kind, radius = parts.joint_q[c], parts.joint_v[c], parts.kind[c], parts.radius[c]
        tension = work.tension[parts.cable[c]]
        on_angle, on_second, from_angle = 0.0, 1.0, 0.0
        if kind == joints.INVOLUTE_EPSILON:
            on_angle, on_second = radius * q[a + 1], radius * q[a]
        elif kind == joints.INVOLUTE_LENGTH:
            on_angle, from_angle = -radius, -radius
        reduction.effort[b] += tension * on_angle
        reduction.effort[b + 1] += tension * on_second
        tight.stretch_bias[c] = reduction.offset[b + 1] + from_angle * reduction.offset[b]
        for i in range(n):
            tight.stretch[c, i] = basis[b + 1, i] + from_angle * basis[b, i]
            tight.pull[c, i] = on_angle * basis[b, i] + on_second * basis[b + 1, i]


@allocation_free
def tight_equations(flat, parts, q, v, ahead, n, fresh, work, reduction, tight):
    """Fill `tight` for the state that q and v reach `ahead` s later at the same rates; returns a status.

    Midway through the time for which a command is held the forces are those of its mean, to second order in that time.
    """
    dofs = flat.dof_parent.shape[0]
    configuration_rate(flat, q, v, tight.q_rate)
    for k in range(q.shape[0]):
        tight.q_ahead[k] = q[k] + ahead * tight.q_rate[k]
    normalise_quaternions(flat, tight.q_ahead)
    evaluate(flat, tight.q_ahead, v, work)
    count = choose_coordinates(flat, work, reduction, n, fresh, tight.scale)
    tight.status[0] = count
    if count != n:
        return SINGULAR_LOOPS
    for d in range(dofs):
        reduction.effort[d] = work.passive[d]
    cable_rows(parts, tight.q_ahead, work, reduction, tight, n)
    project_mass(flat, work, reduction, n)
    failed = cholesky(reduction.reduced, n)
    if failed >= 0:
        tight.status[1] = reduction.independent[failed]
        return SINGULAR_MASS
    output_motion(flat, parts, work, tight)
    for i in range(n):
        tight.right[i] = reduction.right[i]
        tight.rates[i] = v[reduction.independent[i]]
        tight.rate_0[i] = reduction.right[i]
    cholesky_solve(reduction.reduced, n, tight.rate_0)
    inputs, cables, outputs = parts.drive.shape[0], parts.cable.shape[0], parts.axes.shape[0]
    for a in range(inputs):
        for i in range(n):
            tight.inputs[a, i] = reduction.basis[parts.drive[a], i]
            tight.inputs_solved[a, i] = tight.inputs[a, i]
        cholesky_solve(reduction.reduced, n, tight.inputs_solved[a])
    for c in range(cables):
        for i in range(n):
            tight.pull_solved[c, i] = tight.pull[c, i]
        cholesky_solve(reduction.reduced, n, tight.pull_solved[c])
    if not tensions(n, tight, inputs, cables):
        return SINGULAR_CABLES
    accelerations(flat, parts, reduction, tight, n, inputs, cables, outputs)
    return REGULAR


@allocation_free
def tensions(n, tight, inputs, cables):
    """Fill T_0 and T_1 from E w'' = 0; False where the cables' stretches depend on each other."""
    for c in range(cables):
        for e in range(cables):
            total = 0.0
            for i in range(n):
                total += tight.stretch[c, i] * tight.pull_solved[e, i]
            tight.coupling[c, e] = total
    lu_factor(tight.coupling, cables, tight.pivots)
    for c in range(cables):
        if not abs(tight.coupling[c, c]) > 1e-12 * abs(tight.coupling[0, 0]):
            return False
    for a in range(-1, inputs):
        for c in range(cables):
            total = tight.stretch_bias[c] if a < 0 else 0.0
            for i in range(n):
                total += tight.stretch[c, i] * (tight.rate_0[i] if a < 0 else tight.inputs_solved[a, i])
            tight.column[c] = total
        lu_solve(tight.coupling, cables, tight.pivots, tight.column)
        for c in range(cables):
            if a < 0:
                tight.tension_0[c] = tight.column[c]
            else:
                tight.tension_1[c, a] = tight.column[c]
    return True


@allocation_free
def accelerations(flat, parts, reduction, tight, n, inputs, cables, outputs):
    """Fill a_0, A_1, M A_1, and the accelerations of output and actuators, from the tensions."""
    dofs = flat.dof_parent.shape[0]
    for i in range(n):
        for c in range(cables):
            tight.rate_0[i] -= tight.pull_solved[c, i] * tight.tension_0[c]
        for a in range(inputs):
            direct, solved = tight.inputs[a, i], tight.inputs_solved[a, i]
            for c in range(cables):
                direct -= tight.pull[c, i] * tight.tension_1[c, a]
                solved -= tight.pull_solved[c, i] * tight.tension_1[c, a]
            tight.momentum[i, a], tight.rate_1[i, a] = direct, solved
    for k in range(outputs):
        bias = 0.0
        for r in range(6):
            bias += tight.selection[k, r] * tight.bias[r]
        for i in range(n):
            tight.jacobian[k, i] = 0.0
        for d in range(dofs):
            entry = 0.0
            for r in range(6):
                if tight.selection[k, r] != 0.0:
                    entry += tight.selection[k, r] * tight.full[r, d]
            if entry != 0.0:
                bias += entry * reduction.offset[d]
                for m in range(reduction.basis_filled[d]):
                    i = reduction.basis_columns[d, m]
                    tight.jacobian[k, i] += entry * reduction.basis[d, i]
        for i in range(n):
            tight.output_solved[k, i] = tight.jacobian[k, i]
            bias += tight.jacobian[k, i] * tight.rate_0[i]
        cholesky_solve(reduction.reduced, n, tight.output_solved[k])
        tight.output_0[k] = bias
        for a in range(inputs):
            total = 0.0
            for i in range(n):
                total += tight.jacobian[k, i] * tight.rate_1[i, a]
            tight.output_1[k, a] = total
    for k in range(outputs):
        for m in range(outputs):
            total = 0.0
            for i in range(n):
                total += tight.jacobian[k, i] * tight.output_solved[m, i]
            tight.mobility[k, m] = total
    for a in range(inputs):
        total = reduction.offset[parts.drive[a]]
        for i in range(n):
            total += tight.inputs[a, i] * tight.rate_0[i]
        tight.joint_0[a] = total
        for b in range(inputs):
            total = 0.0
            for i in range(n):
                total += tight.inputs[a, i] * tight.rate_1[i, b]
            tight.joint_1[a, b] = total


@allocation_free
def move(coupling, pivots, pull_solved, inputs, column, tension, moved):
    """Solve for tension (c, k), which comes in as stretches, and fill moved (a, k): what they move the actuators by."""
    cables, n = pull_solved.shape
    for k in range(tension.shape[1]):
        for c in range(cables):
            column[c] = tension[c, k]
        lu_solve(coupling, cables, pivots, column)
        for c in range(cables):
            tension[c, k] = column[c]
        for a in range(inputs.shape[0]):
            total = 0.0
            for i in range(n):
                pulled = 0.0
                for c in range(cables):
                    pulled += pull_solved[c, i] * column[c]
                total += inputs[a, i] * pulled
            moved[a, k] = total


class TightCables:
    """The equations of the module for one robot; every object keeps its own arrays, so take one for each thread.

    Args:
        robot: a mechanism with actuators and an output.

    Attributes:
        count: n, independent coordinates. cables: names of the driven cables that stretch. relaxation: (c,) s, damping
            over stiffness of each. springs: (c,) N, what a strain of one would pull. softness: (c,) by how much more
            they stretch than was stated; 1 unless somebody finds another. drive_q: (a,) actuators in q. arrays: what
            the last `update` filled, see `TightWorkspace`.

    Raises:
        TensegrityError: the robot has no such equations; says which part of it is in the way.
    """

    def __init__(self, robot: Robot) -> None:
        model = robot.model_as(MechanismModel)
        mechanism = model.mechanism
        self.robot, self.mechanism, self._flat = robot, mechanism, mechanism.flat
        model.need_elastic_cables("this control")
        if not robot.actuators or not robot.outputs:
            what = "actuator" if not robot.actuators else "output"
            raise TensegrityError(f"{robot.name} has no {what}; name one in its file to control it.")
        output: BodyFrame = robot.output  # type: ignore[assignment]
        driven = [model.joint_of(each.drives) for each in robot.actuators]
        entries = [entry for entry in model.entries if entry.variant != "rigid" and entry.joints[1] in driven]
        by_name = {cable.name: k for k, cable in enumerate(mechanism.cables)}
        cable_joints = [mechanism.joint(entry.joints[2]) for entry in entries]
        self.cables = tuple(entry.name for entry in entries)
        self.parts = Parts(
            cable=np.array([by_name[name] for name in self.cables], dtype=np.int64),
            joint_q=np.array([mechanism.positions_of(joint.name).start for joint in cable_joints], dtype=np.int64),
            joint_v=np.array([mechanism.velocities_of(joint.name).start for joint in cable_joints], dtype=np.int64),
            kind=np.array([joints.JOINT_KINDS[joint.kind] for joint in cable_joints], dtype=np.int64),
            radius=np.array([joint.radius for joint in cable_joints]),
            drive=np.array([mechanism.velocities_of(name).start for name in driven], dtype=np.int64),
            body=int(mechanism.body_index[output.body]), origin=np.array(output.frame.origin), axes=output.rows,
        )  # fmt: skip
        if self.parts.body < 0:
            raise TensegrityError(f"output {output.name} is fixed to the world; choose a body that moves.")
        self.work, self.reduction = make_workspace(self._flat), make_reduction_workspace(self._flat)
        evaluate(self._flat, model.start, np.zeros(mechanism.velocity_count), self.work)
        reduce_rows(self.work.loop, self.work.loop_bias, self.reduction, False)
        self.count = int(independent_basis(mechanism.velocity_count, self.reduction))
        self.arrays = _make_workspace(
            self.count, mechanism.velocity_count, mechanism.position_count, len(entries), len(driven), output.rows.size
        )
        self.arrays.selection[np.arange(output.rows.size), output.rows] = 1.0
        self._turned = np.array(output.frame.axes)
        own = [mechanism.cables[k] for k in self.parts.cable]
        self.drive_q = np.array([mechanism.positions_of(name).start for name in driven])
        self._are_strains = bool((self.parts.kind == joints.INVOLUTE_EPSILON).all())
        self.springs = np.array([cable.area * cable.young for cable in own])
        self.softness = np.ones(len(own))
        self.relaxation = np.array([cable.damping / cable.young for cable in own])
        self._equations, self._rate = QuickCall(tight_equations), QuickCall(configuration_rate)
        self._fresh = True
        still = np.zeros(mechanism.velocity_count)
        self.update(np.array(model.start), still)
        self.moved(np.array(model.start), still, 0.0)  # compiled before anybody waits for it

    def update(self, q: Array, v: Array, ahead: float = 0.0) -> TightWorkspace:
        """Move to position q (nq,) and velocity v (nv,), `ahead` s later. Raises TensegrityError: no such equations."""
        q, v = np.ascontiguousarray(q, dtype=np.float64), np.ascontiguousarray(v, dtype=np.float64)
        status = self._equations(
            self._flat, self.parts, q, v, ahead, self.count, self._fresh, self.work, self.reduction, self.arrays
        )
        self._fresh = status != REGULAR
        if status == REGULAR:
            return self.arrays
        if status == SINGULAR_MASS:
            raise TensegrityError(massless_message(self.mechanism, int(self.arrays.status[1])))
        if status == SINGULAR_CABLES:
            raise TensegrityError(f"the stretches of the cables {', '.join(self.cables)} depend on each other here.")
        raise TensegrityError(
            f"the loops leave {self.arrays.status[0]} motions here and {self.count} at the start: a singular position."
        )

    @property
    def rotation(self) -> Array:
        """(3, 3) of the output's frame in the world, at the state of the last `update`."""
        return np.asarray(self.work.rotation[self.parts.body] @ self._turned)

    def moved(self, q: Array, v: Array, time: float) -> Array:
        """(nq,) where q comes to at velocity v (nv,) after a time [s] in which it turns little."""
        q, v = np.ascontiguousarray(q, dtype=np.float64), np.ascontiguousarray(v, dtype=np.float64)
        rate = np.zeros_like(q)
        self._rate(self._flat, q, v, rate)
        result = q + time * rate
        normalise_quaternions(self._flat, result)
        return np.asarray(result)

    def stretching(self, rate: Array) -> Array:
        """(nv,) of all coordinates that comes with rates (c,) of stretch, at no momentum of other motions."""
        arrays = self.arrays
        if not rate.size:
            return np.zeros(self.mechanism.velocity_count)
        pulls = np.linalg.solve(arrays.stretch @ arrays.pull_solved.T, rate)
        return np.asarray(self.reduction.basis[:, : self.count] @ (arrays.pull_solved.T @ pulls))

    def stretches(self, q: Array, v: Array) -> tuple[Array, Array, Array]:
        """Strain or elongation of the driven cables as E counts it, its rate, and (c,) what of it is a newton."""
        parts = self.parts
        amount, rate, unit = q[parts.joint_q + 1], v[parts.joint_v + 1], self.softness / self.springs
        if self._are_strains:
            return amount, rate, unit
        rest = parts.radius * q[parts.joint_q]
        unit[parts.kind != joints.INVOLUTE_EPSILON] *= rest[parts.kind != joints.INVOLUTE_EPSILON]
        taut = parts.kind == joints.INVOLUTE_LENGTH
        amount[taut] -= rest[taut]
        rate[taut] -= (parts.radius * v[parts.joint_v])[taut]
        return amount, rate, unit

    def stretched(self, stretch: Array) -> tuple[Array, Array]:
        """What stretching (c, k) takes beside the tight motion: of actuators moved (a, k), and of their efforts (a, k).

        Both with the factors that the last `update` has left.
        Moved is what comes with the stretch at no momentum of other motions; efforts are those for accelerations of
        stretch.
        """
        arrays, tension = self.arrays, np.array(stretch, dtype=np.float64)
        moved = np.empty((arrays.inputs.shape[0], tension.shape[1]))
        move(arrays.coupling, arrays.pivots, arrays.pull_solved, arrays.inputs, arrays.column, tension, moved)
        if arrays.tension_1.shape[0] == arrays.tension_1.shape[1]:
            return moved, np.linalg.solve(arrays.tension_1, tension)
        return moved, np.linalg.lstsq(arrays.tension_1, tension, rcond=1e-9)[0]

    def stretch_frequencies(self) -> Array:
        """(c,) rad/s of the cables' stretch beside the rigid motions, at the last state; empty without cables."""
        arrays = self.arrays
        if not self.cables:
            return np.zeros(0)
        springs = 1.0 / self.stretches(arrays.q_ahead, np.zeros(self.mechanism.velocity_count))[2]
        squares = np.linalg.eigvals((arrays.stretch @ arrays.pull_solved.T) * springs).real
        return np.sqrt(np.maximum(squares, 0.0))
