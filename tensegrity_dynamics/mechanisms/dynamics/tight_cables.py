"""Equations of motion of a mechanism at one state with inextensible driven cables: the effect of actuator efforts.

With the strains of the driven cables held constant (M_s y_s'' = 0 of 000, 3.2.3), their tensions T are the constraint
forces, and everything is affine in the efforts u of the actuators:

    M w'' + c = p + B u - P'T,   E w'' + e = 0   =>   T = T_0 + T_1 u,   w'' = a_0 + A_1 u,   y'' = b_0 + J A_1 u

with the output y, the generalised force P of a unit tension in each cable, and the stretch accelerations E w'' + e. The
result does not depend on the choice of the independent coordinates w. They are chosen from K by pivots, which are kept
from state to state until the entries of G grow (000, 5.4: "so that certain internal matrices remain regular"), so that
all kinds of joints are supported and no coordinate has to stay regular during the whole motion.

For routed cables that actuators wind, every strand between two holding points is held (`routing.held_rows`). They are
taken to slide without friction over guides, as in plans.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Collection
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...errors import TensegrityError
from ...numerics.compilation import Kept, QuickCall, allocation_free, for_compiled_callers, taken
from ...numerics.linear_algebra import cholesky, cholesky_solve_columns, lu_factor, lu_solve
from ...numerics.rotations import rotation_vector
from ...numerics.types import Array
from ...robots.robot import Robot
from .. import joints
from ..body_frame import BodyFrame
from ..kinematics.body_kinematics import body_kinematics
from ..kinematics.configuration_space import configuration_rate, normalise_quaternions
from ..kinematics.loop_reduction import independent_basis, make_reduction_workspace, reduce_rows
from ..late_kernels import CONTACTS, HELD_ROUTES, POINTS
from ..loads import Payload
from ..mechanism import FlatMechanism, put_on, with_own_masses
from ..mechanism_model import MechanismModel
from ..resistance import DAMPING, LAW, STIFFNESS, STOP_STIFFNESS
from ..routing.columns import FINE, FIRST, STATUS, STRAIN, STRAIN_RATE, TENSION, TURNING_V, WHERE
from ..routing.late_call import call_held_rows, call_routed_cables
from ..routing.route import route_problem
from ..touch.columns import NORMAL
from ..workspace import make_workspace
from .equations_of_motion import evaluate
from .forward_dynamics import massless_message, project_mass
from .held_resistances import hold_loop_resistances, hold_tree_resistances
from .sliding_floors import sliding_floors
from .sliding_friction import SlidingFriction, without_friction

REGULAR, SINGULAR_LOOPS, SINGULAR_MASS, SINGULAR_CABLES = 0, 1, 2, 3
DEPENDENT = 1e-9
"""Threshold relative to the largest singular value, above which rows count as independent."""
LARGEST_ENTRY = 20.0
"""Entry of G, relative to the largest one at the last choice of pivots, above which the pivots are chosen again."""

Parts = namedtuple("Parts", "cable joint_q joint_v kind radius strands drive body origin axes")
"""Driven cables: index among the cables, index of their joint in q and in v, kind, pulley radius; these are -1 for
strands of routed cables, which follow the others and count as strains. Strands (s, 2): number of the cable, row of
elements. The actuators in v. Output: body, point in it (3,) m, and controlled axes, from which `selection` (k, 6) makes
the output's rows."""

TightWorkspace = namedtuple(
    "TightWorkspace",
    "right stretch stretch_bias pull inputs full jacobian bias inputs_solved pull_solved output_solved coupling pivots "
    "tension_0 tension_1 rate_0 rate_1 output_0 output_1 mobility joint_0 joint_1 momentum column scale position "
    "velocity selection rates q_rate q_ahead solved held status rows pulls strain strain_rate rubbing",
)
"""rubbing (nv,): forces of friction at desired rates (`sliding_friction`). rows, pulls (s, nv): strain accelerations of
strands, and generalised forces of their unit tensions. strain, strain_rate (s,): at the last `read_strands`."""


def _make_workspace(n: int, nv: int, nq: int, cables: int, inputs: int, outputs: int, strands: int) -> TightWorkspace:
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
        solved=np.zeros((n, 1 + inputs + cables + outputs)), held=np.zeros((n, 1 + cables)),
        status=np.zeros(2, dtype=np.int64),
        rows=np.zeros((strands, nv)), pulls=np.zeros((strands, nv)), strain=np.zeros(strands),
        strain_rate=np.zeros(strands), rubbing=np.zeros(nv),
    )  # fmt: skip


@for_compiled_callers
def choose_coordinates(flat, work, reduction, n, fresh, scale):
    """Reduce the loops with the pivots of the last call, or with new ones if those have become ill-conditioned.

    Returns the number of independent coordinates. scale (1,) is the largest entry of G when the pivots were chosen.
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
def strand_rows(flat, parts, q, v, work, reduction, tight, n):
    """As `cable_rows`, for the strands of routed cables."""
    strands = parts.strands
    first, basis = parts.cable.shape[0] - strands.shape[0], reduction.basis
    bias = tight.stretch_bias[first:]
    call_held_rows(flat, strands, q, v, work, tight.rows, tight.pulls, bias, reduction.effort)
    for s in range(strands.shape[0]):
        for i in range(n):
            tight.stretch[first + s, i] = tight.pull[first + s, i] = 0.0
        for d in range(tight.rows.shape[1]):
            row, pull = tight.rows[s, d], tight.pulls[s, d]
            bias[s] += row * reduction.offset[d]
            for m in range(reduction.basis_filled[d]):
                i = reduction.basis_columns[d, m]
                tight.stretch[first + s, i] += row * basis[d, i]
                tight.pull[first + s, i] += pull * basis[d, i]


@for_compiled_callers
def cable_rows(parts, q, work, reduction, tight, n):
    """Fill E and P (c, n), and remove the forces of the driven cables at this state from the passive efforts."""
    basis = reduction.basis
    for c in range(parts.cable.shape[0] - parts.strands.shape[0]):
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


@for_compiled_callers
def begin_equations(flat, parts, q, v, along, ahead, n, fresh, work, reduction, tight, held):
    """Fill the factored mass matrix, the cables' rows and the output's motion; see `tight_equations`."""
    dofs = flat.dof_parent.shape[0]
    configuration_rate(flat, q, along, tight.q_rate)
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
    if flat.late_kernels[HELD_ROUTES] != 0:
        strand_rows(flat, parts, tight.q_ahead, v, work, reduction, tight, n)
    resists = held > 0.0 and flat.resistances.shape[0] > 0
    if resists:
        for d in range(dofs):
            reduction.effort[d] += tight.rubbing[d]
        hold_tree_resistances(flat, tight.q_ahead, work, held)
    project_mass(flat, work, reduction, n)
    if resists:
        hold_loop_resistances(flat, work, reduction, n, held)
    failed = cholesky(reduction.reduced, n)
    if failed >= 0:
        tight.status[1] = reduction.independent[failed]
        return SINGULAR_MASS
    output_motion(flat, parts, work, tight)
    output_rows(reduction, tight, n)
    return REGULAR


@allocation_free
def tight_equations(kept, q, v, along, ahead, n, fresh, held):
    """Fill the last entry of `kept` (`TightCables.kept`) at the velocity v and the position that q reaches `ahead` s
    later at the velocity `along`; return a status. Accelerations are mean values over `held` s (`held_resistances`).

    At the middle of the time for which a command is held, the forces are the mean ones, to second order in that time.
    """
    flat, parts, work, reduction, tight = taken(kept)
    status = begin_equations(flat, parts, q, v, along, ahead, n, fresh, work, reduction, tight, held)
    if status != REGULAR:
        return status
    for i in range(n):
        tight.right[i] = reduction.right[i]
        tight.rates[i] = v[reduction.independent[i]]
    solve_mass(parts, reduction, tight, n)
    if not tensions(tight):
        return SINGULAR_CABLES
    accelerations(parts, reduction, tight)
    return REGULAR


@for_compiled_callers
def output_rows(reduction, tight, n):
    """Fill the Jacobian J (k, n) of the controlled axes, and output_0 (k,) with their bias less the part of G and g."""
    for k in range(tight.selection.shape[0]):
        bias = 0.0
        for r in range(6):
            bias += tight.selection[k, r] * tight.bias[r]
        for i in range(n):
            tight.jacobian[k, i] = 0.0
        for d in range(reduction.offset.shape[0]):
            entry = 0.0
            for r in range(6):
                if tight.selection[k, r] != 0.0:
                    entry += tight.selection[k, r] * tight.full[r, d]
            if entry != 0.0:
                bias += entry * reduction.offset[d]
                for m in range(reduction.basis_filled[d]):
                    i = reduction.basis_columns[d, m]
                    tight.jacobian[k, i] += entry * reduction.basis[d, i]
        tight.output_0[k] = bias


@for_compiled_callers
def solve_mass(parts, reduction, tight, n):
    """Solve with the mass matrix for right side, inputs, pulls and output rows, the columns of `solved` in order."""
    inputs, cables, outputs = parts.drive.shape[0], parts.cable.shape[0], parts.axes.shape[0]
    solved, first_pull, first_row = tight.solved, 1 + inputs, 1 + inputs + cables
    for i in range(n):
        solved[i, 0] = tight.right[i]
        for a in range(inputs):
            tight.inputs[a, i] = solved[i, 1 + a] = reduction.basis[parts.drive[a], i]
        for c in range(cables):
            solved[i, first_pull + c] = tight.pull[c, i]
        for k in range(outputs):
            solved[i, first_row + k] = tight.jacobian[k, i]
    cholesky_solve_columns(reduction.reduced, n, solved)
    for i in range(n):
        for a in range(inputs):
            tight.inputs_solved[a, i] = solved[i, 1 + a]
        for c in range(cables):
            tight.pull_solved[c, i] = solved[i, first_pull + c]
        for k in range(outputs):
            tight.output_solved[k, i] = solved[i, first_row + k]


@for_compiled_callers
def factored(tight, cables):
    """Factor the matrix of the cables' stretch accelerations by their tensions; False if they are dependent."""
    lu_factor(tight.coupling, cables, tight.pivots)
    for c in range(cables):
        if not abs(tight.coupling[c, c]) > 1e-12 * abs(tight.coupling[0, 0]):
            return False
    return True


@for_compiled_callers
def tensions(tight):
    """Fill T_0 and T_1 from E w'' + e = 0; False if the cables' stretches are dependent."""
    cables, inputs = tight.tension_1.shape
    solved = tight.solved
    for c in range(cables):
        tight.tension_0[c] = tight.stretch_bias[c]
        for a in range(inputs):
            tight.tension_1[c, a] = 0.0
        for e in range(cables):
            tight.coupling[c, e] = 0.0
        for i in range(solved.shape[0]):
            entry = tight.stretch[c, i]
            tight.tension_0[c] += entry * solved[i, 0]
            for a in range(inputs):
                tight.tension_1[c, a] += entry * solved[i, 1 + a]
            for e in range(cables):
                tight.coupling[c, e] += entry * solved[i, 1 + inputs + e]
    if not factored(tight, cables):
        return False
    lu_solve(tight.coupling, cables, tight.pivots, tight.tension_0)
    for a in range(inputs):
        for c in range(cables):
            tight.column[c] = tight.tension_1[c, a]
        lu_solve(tight.coupling, cables, tight.pivots, tight.column)
        for c in range(cables):
            tight.tension_1[c, a] = tight.column[c]
    return True


@for_compiled_callers
def accelerations(parts, reduction, tight):
    """Fill a_0, A_1, M A_1, and the accelerations of output and actuators, from the tensions."""
    cables, inputs = tight.tension_1.shape
    outputs, n = tight.jacobian.shape
    solved, first_row = tight.solved, 1 + inputs + cables
    for i in range(n):
        rate = solved[i, 0]
        for a in range(inputs):
            tight.momentum[i, a], tight.rate_1[i, a] = tight.inputs[a, i], solved[i, 1 + a]
        for c in range(cables):
            direct, moved = tight.pull[c, i], solved[i, 1 + inputs + c]
            rate -= moved * tight.tension_0[c]
            for a in range(inputs):
                tight.momentum[i, a] -= direct * tight.tension_1[c, a]
                tight.rate_1[i, a] -= moved * tight.tension_1[c, a]
        tight.rate_0[i] = rate
    for k in range(outputs):
        for a in range(inputs):
            tight.output_1[k, a] = 0.0
        for m in range(outputs):
            tight.mobility[k, m] = 0.0
        for i in range(n):
            entry = tight.jacobian[k, i]
            tight.output_0[k] += entry * tight.rate_0[i]
            for a in range(inputs):
                tight.output_1[k, a] += entry * tight.rate_1[i, a]
            for m in range(outputs):
                tight.mobility[k, m] += entry * solved[i, first_row + m]
    for a in range(inputs):
        tight.joint_0[a] = reduction.offset[parts.drive[a]]
        for b in range(inputs):
            tight.joint_1[a, b] = 0.0
        for i in range(n):
            entry = tight.inputs[a, i]
            tight.joint_0[a] += entry * tight.rate_0[i]
            for b in range(inputs):
                tight.joint_1[a, b] += entry * tight.rate_1[i, b]


@allocation_free
def held_motion(kept, effort, q, still, along, ahead, n, motion):
    """Fill motion (k,) with the output's acceleration at rest under efforts (a,), at the position that q reaches
    `ahead` s later at the velocity `along`; return a status. Other results of `tight_equations` are left outdated.

    Args:
        still: (nv,) zeros.
    """
    flat, parts, work, reduction, tight = taken(kept)
    status = begin_equations(flat, parts, q, still, along, ahead, n, False, work, reduction, tight, 0.0)
    if status != REGULAR:
        return status
    cables, held = parts.cable.shape[0], tight.held
    for i in range(n):
        held[i, 0] = reduction.right[i]
        for a in range(effort.shape[0]):
            held[i, 0] += reduction.basis[parts.drive[a], i] * effort[a]
        for c in range(cables):
            held[i, 1 + c] = tight.pull[c, i]
    cholesky_solve_columns(reduction.reduced, n, held)
    for c in range(cables):
        tight.column[c] = tight.stretch_bias[c]
        for e in range(cables):
            tight.coupling[c, e] = 0.0
        for i in range(n):
            entry = tight.stretch[c, i]
            tight.column[c] += entry * held[i, 0]
            for e in range(cables):
                tight.coupling[c, e] += entry * held[i, 1 + e]
    if not factored(tight, cables):
        return SINGULAR_CABLES
    lu_solve(tight.coupling, cables, tight.pivots, tight.column)
    for k in range(motion.shape[0]):
        motion[k] = tight.output_0[k]
    for i in range(n):
        rate = held[i, 0]
        for c in range(cables):
            rate -= held[i, 1 + c] * tight.column[c]
        for k in range(motion.shape[0]):
            motion[k] += tight.jacobian[k, i] * rate
    return REGULAR


@for_compiled_callers
def fill_moved(pull_solved, rows, tension, moved):
    """Fill moved (r, k) with the displacements of rows (r, n) by tensions (c, k) that `move` has solved for."""
    cables, n = pull_solved.shape
    for k in range(tension.shape[1]):
        for r in range(rows.shape[0]):
            total = 0.0
            for i in range(n):
                pulled = 0.0
                for c in range(cables):
                    pulled += pull_solved[c, i] * tension[c, k]
                total += rows[r, i] * pulled
            moved[r, k] = total


@allocation_free
def move(coupling, pivots, pull_solved, inputs, column, tension, moved):
    """Solve for tension (c, k), given as stretches, and fill moved (a, k) with the displacements of the actuators."""
    cables = pull_solved.shape[0]
    for k in range(tension.shape[1]):
        for c in range(cables):
            column[c] = tension[c, k]
        lu_solve(coupling, cables, pivots, column)
        for c in range(cables):
            tension[c, k] = column[c]
    fill_moved(pull_solved, inputs, tension, moved)


@allocation_free
def move_on(flat, q, v, time, rate, result):
    """Fill result (nq,) with the position that q reaches at velocity v (nv,) after a time; rate (nq,) is scratch."""
    configuration_rate(flat, q, v, rate)
    for k in range(q.shape[0]):
        result[k] = q[k] + time * rate[k]
    normalise_quaternions(flat, result)


@allocation_free
def hold_stretch(joint_v, kind, radius, rows, v, coupling, pivots, pull_solved, basis, column, result):
    """Fill result (nv,) with v minus the stretch rates of the cables; see `TightCables.without_stretching`."""
    cables, n = pull_solved.shape
    first = cables - rows.shape[0]
    for c in range(first):
        column[c] = v[joint_v[c] + 1]
        if kind[c] == joints.INVOLUTE_LENGTH:
            column[c] -= radius[c] * v[joint_v[c]]
    for c in range(first, cables):
        column[c] = 0.0
        for d in range(v.shape[0]):
            column[c] += rows[c - first, d] * v[d]
    lu_solve(coupling, cables, pivots, column)
    for d in range(result.shape[0]):
        result[d] = v[d]
    for i in range(n):
        pulled = 0.0
        for c in range(cables):
            pulled += pull_solved[c, i] * column[c]
        for d in range(result.shape[0]):
            result[d] -= basis[d, i] * pulled


@allocation_free
def read_strands(flat, strands, q, v, work, strain, rate):
    """Fill strains (s,) of strands of routed cables and their rates at a state."""
    body_kinematics(flat, q, v, work)
    call_routed_cables(flat, q, v, work)
    for s in range(strands.shape[0]):
        own = work.route_state[strands[s, 1]]
        strain[s], rate[s] = own[STRAIN], own[STRAIN_RATE]


class TightCables:
    """Equations of the module for one robot; every object has its own arrays, so use one object per thread.

    Args:
        robot: a mechanism with actuators and an output.
        slides: whether joints rub at the rates of the last `slide`, where accelerations are mean values, and nowhere
            else; otherwise at the rates of the state.

    Attributes:
        count: n, independent coordinates. cables: names of the driven elastic cables and of the strands of routed ones
            (`rope[1]` where there are several). floors: (c,) N, `minimum_tension` of the actuators that wind them.
            relaxation: (c,) damping over stiffness [s]. springs: (c,) tension per unit strain [N]. softness: (c,)
            factor on the nominal compliance; 1 until a controller estimates another. resists: whether joints have
            springs, dampers or stops. rubs: whether joints have friction, with `slides`. drive_q: (a,) actuators in
            q. arrays: results of the last `update`, see `TightWorkspace`. kept: mechanism, parts, work, reduction and
            arrays, for compiled functions. mechanism: the robot's, whose cables slide without friction over guides.
            flat: its arrays, with the present loads, without the ground unless it carries the robot at its start.
            chooses_anew: whether the next `update` chooses the independent coordinates again.

    Raises:
        TensegrityError: the robot has no such equations; the text names the part that prevents them.
    """

    def __init__(self, robot: Robot, *, slides: bool = False) -> None:
        model = robot.model_as(MechanismModel).holding_cables()
        mechanism = model.mechanism
        kept = sliding_floors(robot.model_as(MechanismModel), robot.actuators)
        self.robot, self.mechanism, self.model = replace(robot, model=model), mechanism, model
        if not robot.actuators or not robot.outputs:
            what = "actuator" if not robot.actuators else "output"
            raise TensegrityError(f"{robot.name} has no {what}; name one in its file to control it.")
        output: BodyFrame = robot.output  # type: ignore[assignment]
        driven = model.driven_joints(robot.actuators)
        entries = [entry for entry in model.entries if entry.variant != "rigid" and entry.joints[1] in driven]
        by_name = {cable.name: k for k, cable in enumerate(mechanism.cables)}
        cable_joints = [mechanism.joint(entry.joints[2]) for entry in entries]
        drive = np.array([mechanism.velocities_of(name).start for name in driven], dtype=np.int64)
        names, strands, flat = _held_strands(model, drive)
        flat = _without_ground(flat, model.start)
        self._friction = SlidingFriction(flat) if slides else None
        self.rubs = self._friction is not None and self._friction.any
        self.flat = with_own_masses(without_friction(flat) if slides else flat)
        apart = np.full(len(names), -1, dtype=np.int64)
        self.cables = (*(entry.name for entry in entries), *names)
        self.parts = Parts(
            cable=np.append(np.array([by_name[entry.name] for entry in entries], dtype=np.int64), apart),
            joint_q=np.append([mechanism.positions_of(joint.name).start for joint in cable_joints], apart).astype(int),
            joint_v=np.append([mechanism.velocities_of(joint.name).start for joint in cable_joints], apart).astype(int),
            kind=np.append(
                [joints.JOINT_KINDS[joint.kind] for joint in cable_joints], apart + 1 + joints.INVOLUTE_EPSILON
            ).astype(int),
            radius=np.append([joint.radius for joint in cable_joints], 0.0 * apart),
            strands=strands, drive=drive, body=int(mechanism.body_index[output.body]),
            origin=np.array(output.frame.origin), axes=output.rows,
        )  # fmt: skip
        if self.parts.body < 0:
            raise TensegrityError(f"output {output.name} is fixed to the world; choose a body that moves.")
        self.work, self.reduction = make_workspace(self.flat), make_reduction_workspace(self.flat)
        self._seen = make_workspace(self.flat) if strands.size else self.work
        evaluate(self.flat, model.start, np.zeros(mechanism.velocity_count), self.work)
        reduce_rows(self.work.loop, self.work.loop_bias, self.reduction, False)
        self.count = int(independent_basis(mechanism.velocity_count, self.reduction))
        self.arrays = _make_workspace(
            self.count, mechanism.velocity_count, mechanism.position_count, len(self.cables), len(driven),
            output.rows.size, len(names),
        )  # fmt: skip
        self.arrays.selection[np.arange(output.rows.size), output.rows] = 1.0
        self.kept = Kept(self.flat, self.parts, self.work, self.reduction, self.arrays)
        self._turned = np.array(output.frame.axes)
        own = [mechanism.cables[k] for k in self.parts.cable[: len(entries)]]
        routes = [mechanism.routes[k] for k in strands[:, 0]]
        self.drive_q = np.array([mechanism.positions_of(name).start for name in driven])
        self._are_strains = bool((self.parts.kind == joints.INVOLUTE_EPSILON).all())
        self.springs = np.array([cable.area * cable.young for cable in own] + [each.stiffness for each in routes])
        self.softness = np.ones(len(self.cables))
        self.relaxation = np.array(
            [cable.damping / cable.young for cable in own] + [each.damping / each.stiffness for each in routes]
        )
        laws = flat.resistances[:, LAW:]
        self.resists = bool(np.any(laws[:, [STIFFNESS, DAMPING, STOP_STIFFNESS]] > 0.0))
        self.floors = np.array([kept[each.name] for each in (*entries, *routes)])
        self._equations, self._move_on = QuickCall(tight_equations), QuickCall(move_on)
        self._hold_stretch, self._q_rate = QuickCall(hold_stretch), np.zeros(mechanism.position_count)
        self._held_motion, self._still = QuickCall(held_motion), np.zeros(mechanism.velocity_count)
        self._read_strands = QuickCall(read_strands)
        self.chooses_anew = True
        self.update(np.array(model.start), self._still)
        self._compile(np.array(model.start))

    def _compile(self, q: Array) -> None:
        """Call every compiled function once, at the last `update`, so that no control period waits for one later."""
        self.moved(q, self._still, 0.0)
        self.without_stretching(self._still)
        self.see(q, self._still)
        self.held(q, np.zeros(self.parts.drive.size), 0.0, self._still, np.empty(self.parts.axes.size))
        self.update(q, self._still)

    def carry(self, payloads: Collection[Payload]) -> None:
        """Let bodies carry these payloads from the next `update` on, in addition to the payloads of the file."""
        put_on(self.flat, self.mechanism, (*self.mechanism.payloads, *payloads))

    def update(
        self, q: Array, v: Array, ahead: float = 0.0, along: Array | None = None, held: float = 0.0
    ) -> TightWorkspace:
        """Evaluate the equations at velocity v (nv,) and the position that q (nq,) reaches `ahead` s later.

        Args:
            along: (nv,) velocity at which q reaches that position; None: v. held: time [s] over which accelerations are
                mean values, with springs and dampers of joints taken implicitly (`held_resistances`) and, with
                `slides`, with friction.

        Raises:
            TensegrityError: no such equations.
        """
        q, v = np.ascontiguousarray(q, dtype=np.float64), np.ascontiguousarray(v, dtype=np.float64)
        along = v if along is None else np.ascontiguousarray(along, dtype=np.float64)
        status = self._equations(self.kept, q, v, along, ahead, self.count, self.chooses_anew, held)
        self._refuse(status)
        return self.arrays

    def slide(self, q: Array, v: Array) -> None:
        """Let joints rub at the position q (nq,) as at the rates v (nv,) from the next `update` on."""
        if self._friction is not None and self.rubs:
            self._friction.slide(np.ascontiguousarray(q), np.ascontiguousarray(v))
            self.arrays.rubbing[:] = self._friction.effort

    def friction_slopes(self, q: Array, motions: Array) -> Array:
        """(k, k), see `SlidingFriction.slopes`; zero without friction that slides."""
        if self._friction is None or not self.rubs:
            return np.zeros((len(motions), len(motions)))
        return self._friction.slopes(np.ascontiguousarray(q), motions)

    def held(self, q: Array, effort: Array, ahead: float, along: Array, motion: Array) -> None:
        """Fill motion (k,) with the output's acceleration at rest under efforts (a,), at the position that q (nq,)
        reaches `ahead` s later at the velocity `along` (nv,). This costs much less than `update`, which is required
        before `arrays` are read again.

        Raises TensegrityError: no such equations.
        """
        self._refuse(self._held_motion(self.kept, effort, q, self._still, along, ahead, self.count, motion))

    def _refuse(self, status: int) -> None:
        """Raise TensegrityError if the status of the last equations is not regular."""
        self.chooses_anew = status != REGULAR
        if self.parts.strands.size:
            self._refuse_routes()
        if status == REGULAR:
            return
        if status == SINGULAR_MASS:
            raise TensegrityError(massless_message(self.mechanism, int(self.arrays.status[1])))
        if status == SINGULAR_CABLES:
            raise TensegrityError(f"the stretches of the cables {', '.join(self.cables)} depend on each other here.")
        raise TensegrityError(
            f"the loops leave {self.arrays.status[0]} motions here and {self.count} at the start: a singular position."
        )

    def _refuse_routes(self) -> None:
        """Raise TensegrityError if a routed cable cannot follow its route."""
        for number, result in enumerate(self.work.route_results):
            if result[STATUS] != FINE:
                route = self.model.routes[number]
                problem = route_problem(route, int(result[STATUS]), int(result[WHERE]))
                self.chooses_anew = True
                raise TensegrityError(f"cable {route.name}: {problem}")

    @property
    def tension(self) -> Array:
        """Tensions (c,) [N] of the driven cables from their strains, at the state of the last `update`."""
        parts = self.parts
        first = parts.cable.size - len(parts.strands)
        own = self.work.route_state[parts.strands[:, 1], TENSION]
        return np.concatenate((self.work.tension[parts.cable[:first]], own))

    def see(self, q: Array, v: Array) -> None:
        """Evaluate the strains of routed cables at a state, for `arrays.strain` and `strain_rate`."""
        if self.parts.strands.size:
            arrays = self.arrays
            self._read_strands(self.flat, self.parts.strands, q, v, self._seen, arrays.strain, arrays.strain_rate)

    @property
    def rotation(self) -> Array:
        """Rotation matrix (3, 3) of the output's frame in the world, at the state of the last `update`."""
        return np.asarray(self.work.rotation[self.parts.body] @ self._turned)

    def moved(self, q: Array, v: Array, time: float) -> Array:
        """Position (nq,) that q reaches at velocity v (nv,) after a time [s] in which bodies rotate little."""
        q, v = np.ascontiguousarray(q, dtype=np.float64), np.ascontiguousarray(v, dtype=np.float64)
        result = np.empty_like(q)
        self._move_on(self.flat, q, v, time, self._q_rate, result)
        return result

    def moved_under(
        self, q: Array, v: Array, effort: Array, time: float, rubbing: Array | None = None
    ) -> tuple[Array, Array, Array]:
        """Position (nq,) and velocity (nv,) after a time [s] under efforts (a,), from position q and velocity v, and
        the change of the rate of the output (k,). Joints rub with forces (nv,), as at present if None. Springs and
        dampers of joints can be faster than this time.

        Afterwards the equations belong to another state. Raises TensegrityError: no such equations.
        """
        kept = self.arrays.rubbing.copy()
        if rubbing is not None:
            self.arrays.rubbing[:] = rubbing
        arrays, reduction = self.update(q, v, 0.5 * time, held=time), self.reduction
        arrays.rubbing[:] = kept
        rates = arrays.rate_0 + arrays.rate_1 @ effort
        change = time * (reduction.basis[:, : self.count] @ rates + reduction.offset)
        return self.moved(q, v + 0.5 * change, time), v + change, time * (arrays.output_0 + arrays.output_1 @ effort)

    def output_motions(self) -> Array:
        """(nv, k) velocities that each move one row of the output and stretch no cable, at the last `update`."""
        rows = np.vstack((self.arrays.jacobian, self.arrays.stretch))
        moving = np.linalg.lstsq(rows, np.eye(len(rows), len(self.arrays.jacobian)), rcond=None)[0]
        return np.asarray(self.reduction.basis[:, : self.count] @ moving)

    def output_error(self, position: Array, rotation: Array) -> Array:
        """(k,) m or rad from the output at the last `update` to a position (3,) and a rotation matrix (3, 3), along the
        controlled axes."""
        turn = rotation_vector(rotation @ self.rotation.T)
        return np.asarray(np.concatenate((position - self.arrays.position[:3], turn))[self.parts.axes])

    def free_directions(self) -> Array:
        """(n, m) orthonormal rates of w at the last `update` that move neither the output nor a cable's stretch."""
        rows = np.vstack((self.arrays.stretch, self.arrays.jacobian))
        size = np.linalg.norm(rows, axis=1)
        _, values, turned = np.linalg.svd(rows / np.where(size > 0.0, size, 1.0)[:, None])
        return np.asarray(turned[int(np.sum(values > DEPENDENT)) :].T)

    def without_stretching(self, v: Array) -> Array:
        """v (nv,) without the stretch rates of the cables and the motion coupled to them at zero momentum of the rest.

        It uses the factors of the last `update`.
        """
        arrays, parts, result = self.arrays, self.parts, np.empty_like(v)
        self._hold_stretch(
            parts.joint_v, parts.kind, parts.radius, arrays.rows, v, arrays.coupling, arrays.pivots, arrays.pull_solved,
            self.reduction.basis, arrays.column, result,
        )  # fmt: skip
        return result

    def stretches(self, q: Array, v: Array) -> tuple[Array, Array, Array]:
        """Strain or elongation of the driven cables as in E, its rate, and (c,) its amount per newton."""
        parts = self.parts
        amount, rate, unit = q[parts.joint_q + 1], v[parts.joint_v + 1], self.softness / self.springs
        if parts.strands.size:
            self.see(np.ascontiguousarray(q), np.ascontiguousarray(v))
            amount[-len(parts.strands) :], rate[-len(parts.strands) :] = self.arrays.strain, self.arrays.strain_rate
        if self._are_strains:
            return amount, rate, unit
        rest = parts.radius * q[parts.joint_q]
        unit[parts.kind != joints.INVOLUTE_EPSILON] *= rest[parts.kind != joints.INVOLUTE_EPSILON]
        taut = parts.kind == joints.INVOLUTE_LENGTH
        amount[taut] -= rest[taut]
        rate[taut] -= (parts.radius * v[parts.joint_v])[taut]
        return amount, rate, unit

    def stretched(self, stretch: Array) -> tuple[Array, Array]:
        """Actuator displacements (a, k) and efforts (a, k) for stretching the cables (c, k), in addition to the tight
        motion.

        The displacement is the one coupled to the stretch at zero momentum of the other motions; the efforts are those
        for accelerations of the stretch. Both use the factors of the last `update`.
        """
        arrays, tension = self.arrays, np.array(stretch, dtype=np.float64)
        moved = np.empty((arrays.inputs.shape[0], tension.shape[1]))
        move(arrays.coupling, arrays.pivots, arrays.pull_solved, arrays.inputs, arrays.column, tension, moved)
        if arrays.tension_1.shape[0] == arrays.tension_1.shape[1]:
            return moved, np.linalg.solve(arrays.tension_1, tension)
        return moved, np.linalg.lstsq(arrays.tension_1, tension, rcond=1e-9)[0]

    def stretch_frequencies(self) -> Array:
        """Natural frequencies (c,) [rad/s] of the cables' stretch, at the last state; empty without cables."""
        arrays = self.arrays
        if not self.cables:
            return np.zeros(0)
        springs = 1.0 / self.stretches(arrays.q_ahead, np.zeros(self.mechanism.velocity_count))[2]
        squares = np.linalg.eigvals((arrays.stretch @ arrays.pull_solved.T) * springs).real
        return np.sqrt(np.maximum(squares, 0.0))


def _without_ground(flat: FlatMechanism, start: Array) -> FlatMechanism:
    """The same arrays without the ground, unless it carries the robot at its start (nq,).

    Otherwise the force of the ground on an output that is moved into it would count as a known load: efforts against it
    push the output deeper, and the force grows until an actuator is at its limit."""
    if not flat.late_kernels[CONTACTS]:
        return flat
    work = make_workspace(flat)
    evaluate(flat, start, np.zeros(flat.dof_parent.size), work)
    if np.any(work.contact_state[:, NORMAL] > 0.0):
        return flat
    kernels = np.array(flat.late_kernels)
    kernels[[CONTACTS, POINTS]] = 0
    return flat._replace(late_kernels=kernels)


def _held_strands(
    model: MechanismModel, drive: NDArray[np.int64]
) -> tuple[tuple[str, ...], NDArray[np.int64], FlatMechanism]:
    """Names and numbers (s, 2) of the strands of routed cables that driven joints (a,) wind, and the mechanism's arrays
    with the kernel for them."""
    flat, names, rows = model.mechanism.flat, [], []
    for number, route in enumerate(model.mechanism.routes):
        if not np.isin(route.elements[:, TURNING_V], drive).any():
            continue
        begins = route.holding
        names += [route.name if begins.size == 1 else f"{route.name}[{k}]" for k in range(begins.size)]
        rows += [(number, int(flat.routed_cables[number, FIRST]) + e) for e in begins.tolist()]
    if rows:
        from ..routing.late_call import held_kernel_address  # imported here to avoid compilation for other robots

        kernels = np.array(flat.late_kernels)
        kernels[HELD_ROUTES] = held_kernel_address()
        flat = flat._replace(late_kernels=kernels)
    return tuple(names), np.array(rows, dtype=np.int64).reshape(-1, 2), flat
