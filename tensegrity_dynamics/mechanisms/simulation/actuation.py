"""Actuators of a mechanism in simulation: efforts held over a step, servos, impedances, and their work.

In effort mode an actuator gives the commanded effort, within its effort limit. In position and velocity mode it is a
servo, a digital loop at the integrator's rate with the desired acceleration

    w^2 (target - q) + 2 w (rate - v)

of its joint, with w for the step, or for `SHORTEST_LOOP` if that is longer. The torque for this acceleration follows
from the accelerations under the present torques and the mobility of the driven joints (P (G' M G)^-1 P' with their rows
P of G), and is clipped at the effort limit; the torques of the other servos then follow from what the clipped ones
give. Explicit steps hold the torque constant. They compensate the pull of a cable as it will be at the middle of the
step, extrapolated from its values at the start of this step and of the last one: with the pull at the start the joint
would lag behind every vibration by half a step and feed it. Implicit steps contain the torque in their equations
(`drive_laws`), and compensate the pull at every instant. Set points move at most at the rate of the actuator. A joint
at a position limit is held there in every mode. An extrapolated position (`impedance.MovingPosition`) moves like q_d
below.

In impedance mode the actuator gives

    tau = k_p (q_d - q) + k_d (v_d - v) + tau_ff

within its effort limit. The implicit integrator contains this law in its equations. For the other integrators, the
torque of a step is that of the law at the end of the step (backward Euler, with the same mobilities), so that no gain
makes a step unstable. q_d is extrapolated with v_d as described in `impedance`. If q_d lags behind the command after a
gap, all actuators catch up along a straight line, at most at `CATCH_UP` times their rates, and the feed-forward is
interpolated in the same way.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from ... import impedance
from ...numerics.compilation import allocation_free, for_compiled_callers
from ...numerics.linear_algebra import copy
from ...robots.actuator import Actuator
from ...simulation_interface import EFFORT, IMPEDANCE, POSITION, VELOCITY
from ..dynamics.forward_dynamics import REGULAR, accelerate
from ..kinematics.configuration_space import configuration_rate, normalise_quaternions
from ..kinematics.loop_closure import project_onto_loops
from ..late_kernels import ROUTES
from ..resistance import CARRIED, EFFICIENCY, LAW
from ..resistance import FRICTION as JOINT_FRICTION
from ..routing.columns import COUNT, FINE, FIRST, FRICTION, LOOP_ROW, PERIOD, PUSH, SLIP, STATUS
from ..routing.efforts import keep_slip
from .drive_laws import accelerate_servos, driven_accelerations, driving_power, present_torques
from .powers import ACTUATORS, energy_of_motion, kinetic_energy, powers_in, powers_of
from .rosenbrock import rosenbrock
from .runge_kutta import runge_kutta
from .transitions import IMPLICIT_MARGIN, MARGIN, MOST_PIECES, SMOOTH_HALVINGS, differ, read_pattern

DIVERGED = 3
"""Status if a number is not finite at the end."""
PAST_END = 100
"""Status if a cable is wound past its end; the number of the cable is added."""
BROKEN_ROUTE = 100_000
"""Status if a routed cable cannot follow its route; the number of the cable is added."""
SERVO_BANDWIDTH_TIMES_STEP = 0.25
"""Servo bandwidth w times the step: the stiffest loop at the integrator's rate that leaves a margin."""
SHORTEST_LOOP = 1e-3
"""Shortest period [s] of a servo loop; shorter steps do not make servos stiffer. A loop that is much stiffer than its
effort limit can serve does not brake in time, swings from limit to limit and never comes to rest."""

MOST_HALVED = 12
"""Largest number of halvings of an implicit step in which the energy would grow without supplied work."""
ACROSS_HALVED = 5
"""Largest number of halvings of an implicit step that contains more changes of contact or slip than it searches."""
GROWTH = 1e-6
"""Allowed growth of energy, as a fraction of the kinetic and elastic energy."""

CATCH_UP = impedance.CATCH_UP

Drives = namedtuple(
    "Drives",
    "q v low high rate effort mode command set_point torque speed feed feed_forward stiffness damping age free known "
    "lead desired_acceleration compliance middle moving servo stiff present mobility column own idle bandwidth "
    "response servos gear",
)
"""Arrays over the actuators. Fixed: indices in q and v, limits, and `gear`, the row of the resistance whose gear the
actuator drives, or -1. State: mode, command, set point of the servo and torque; for extrapolated set points, the
commanded rate, the age of the command and the extrapolation time `lead` [s] (0: a constant position); for servos of
explicit steps, the acceleration `free` of the joint without torques of the servos, at the start of the last step, and
the length `known` [s] of that step (0: none); for impedances, the commanded and the present feed-forward, and the
gains. The rest is scratch: `middle` and `moving` are set point and rate during a step, and `stiff` marks the actuators
with an impedance. `servo` lists those with a servo, of which the equations of an implicit step contain the first
`servos`. `present` are torques at the end of a part of a step."""
DRIVE_STATE = Drives._fields[Drives._fields.index("mode") : Drives._fields.index("lead") + 1]
"""Names of the arrays that hold the state."""


def make_drives(
    actuators: Sequence[Actuator], positions: ArrayLike, velocities: ArrayLike, dofs: int,
    gears: ArrayLike | None = None,
) -> Drives:  # fmt: skip
    """Drives in position mode at zero.

    Args:
        actuators: actuators with their limits. positions, velocities: (a,) index of the joint of each in q and in v.
        dofs: size of v.
        gears: (a,) row of the resistance with the gear of each actuator, or -1; None: no gears.
    """
    count = len(actuators)
    scratch = "desired_acceleration compliance middle moving servo stiff present own idle bandwidth".split()
    kinds = {"mode": np.int64, "servo": np.int64, "stiff": np.bool_}
    return Drives(
        q=np.array(positions, dtype=np.int64), v=np.array(velocities, dtype=np.int64),
        low=np.array([each.position[0] for each in actuators], dtype=np.float64),
        high=np.array([each.position[1] for each in actuators], dtype=np.float64),
        rate=np.array([each.rate for each in actuators], dtype=np.float64),
        effort=np.array([each.effort for each in actuators], dtype=np.float64),
        mobility=np.zeros((count, count)), column=np.zeros(count), response=np.zeros(dofs),
        servos=np.zeros(1, dtype=np.int64),
        gear=np.full(count, -1) if gears is None else np.array(gears, dtype=np.int64),
        **{name: np.zeros(count, dtype=kinds.get(name, np.float64)) for name in (*DRIVE_STATE, *scratch)},
    )  # fmt: skip


Ends = namedtuple("Ends", "q radius longest")
"""Arrays over the cables: index of the involute joint in q, pulley radius, longest rest length."""


travelled = allocation_free(impedance.travelled)
bound_for = allocation_free(impedance.bound_for)
moved_on = allocation_free(impedance.moved_on)


@for_compiled_callers
def moves_on(drives, a):
    """Whether the set point of an actuator is extrapolated between commands."""
    return drives.mode[a] == IMPEDANCE or (drives.mode[a] == POSITION and drives.lead[a] > 0.0)


@allocation_free
def move_set_points(drives, step):
    """Advance the extrapolated set points by `step` [s]; fill `middle` and `moving`."""
    slowest = step
    for a in range(drives.q.shape[0]):
        if not moves_on(drives, a):
            continue
        age, lead, rate = drives.age[a], drives.lead[a], drives.rate[a]
        target, own = bound_for(
            drives.command[a], drives.speed[a], travelled(age, lead), travelled(age + step, lead), drives.low[a],
            drives.high[a], rate * step,
        )  # fmt: skip
        drives.middle[a], drives.moving[a] = target, own
        behind = abs(target - drives.set_point[a] - own)
        slowest = max(slowest, behind / (CATCH_UP * rate))
        drives.age[a] = age + step
    share = step / slowest
    for a in range(drives.q.shape[0]):
        if not moves_on(drives, a):
            continue
        before = drives.set_point[a]
        after = moved_on(
            before, drives.middle[a], drives.moving[a], share, drives.low[a], drives.high[a], drives.rate[a] * step
        )
        drives.feed_forward[a] += share * (drives.feed[a] - drives.feed_forward[a])
        drives.set_point[a] = after
        drives.middle[a] = 0.5 * (before + after)
        drives.moving[a] = (after - before) / step


@for_compiled_callers
def desired_accelerations(drives, q, v, step, implicit):
    """Fill the desired accelerations of servos, and the torques in effort mode; return the number of servos.

    Impedances count as servos with a compliance, unless the integrator is implicit and contains their law itself.
    """
    bandwidth = SERVO_BANDWIDTH_TIMES_STEP / max(step, SHORTEST_LOOP)
    servos = 0
    move_set_points(drives, step)
    for a in range(drives.q.shape[0]):
        angle, speed = q[drives.q[a]], v[drives.v[a]]
        limit, low, high = drives.effort[a], drives.low[a], drives.high[a]
        mode, before = drives.mode[a], drives.set_point[a]
        drives.compliance[a], drives.stiff[a] = 0.0, False
        moving = False
        if mode == IMPEDANCE:
            stiffness, damping = drives.stiffness[a], drives.damping[a]
            torque = drives.feed_forward[a] + damping * (drives.moving[a] - speed)
            torque += stiffness * ((drives.middle[a] if implicit else before) - angle)
            if not ((angle >= high and torque > 0.0) or (angle <= low and torque < 0.0)):
                weight = step * (step * stiffness + damping)
                drives.stiff[a] = implicit
                if implicit or weight <= 0.0:
                    drives.torque[a] = min(max(torque, -limit), limit)
                    continue
                drives.desired_acceleration[a] = (torque - stiffness * step * speed) / weight
                drives.compliance[a] = 1.0 / weight
                drives.servo[servos] = a
                servos += 1
                continue
            goal = high if angle >= high else low
        elif mode == EFFORT:
            torque = min(max(drives.command[a], -limit), limit)
            if not ((angle >= high and torque > 0.0) or (angle <= low and torque < 0.0)):
                drives.torque[a], drives.set_point[a] = torque, angle
                continue
            goal = high if angle >= high else low
        elif mode == VELOCITY:
            goal = before + drives.command[a] * step
        elif moves_on(drives, a):
            goal, before, moving = before, before - drives.moving[a] * step, True
        else:
            goal = drives.command[a]
        reach = drives.rate[a] * step
        goal = min(max(goal, low), high)
        goal = min(max(goal, before - reach), before + reach)
        rate = (goal - before) / step
        full = abs(drives.torque[a]) >= limit
        if full:
            # not farther ahead than the torque can follow; moving the set point back does not command a backward motion
            goal = min(goal, angle + reach) if rate > 0.0 else max(goal, angle - reach) if rate < 0.0 else goal
        drives.set_point[a] = goal
        # a moving set point is followed at its present value; its value at the end of the step would lead by one step
        aim = before if moving else goal
        if full:
            # a joint that swings beyond its set point, or is pushed away from it, returns no faster than at its rate
            fastest = 2.0 * drives.rate[a] / bandwidth
            aim = min(max(aim, angle - fastest), angle + fastest)
        drives.bandwidth[a] = bandwidth
        drives.desired_acceleration[a] = bandwidth * (bandwidth * (aim - angle) + 2.0 * (rate - speed))
        drives.servo[servos] = a
        servos += 1
    return servos


@allocation_free
def servo_torques(flat, drives, q, v, effort, step, implicit, work, reduction):
    """Fill drives.torque and effort (nv,) for the next `step` s. Returns a status of the forward dynamics, and whether
    reduction.acceleration is the acceleration under these efforts."""
    servos = desired_accelerations(drives, q, v, step, implicit)
    drives.servos[0] = 0
    i = 0
    for a in range(drives.q.shape[0]):
        effort[drives.v[a]] = drives.torque[a]
        if i < servos and drives.servo[i] == a:
            i += 1
        else:
            drives.known[a] = 0.0
    if servos == 0:
        return REGULAR, False
    status, _ = accelerate(flat, q, v, effort, 0.0, work, reduction, False)
    if status != REGULAR:
        return status, False
    drives.servos[0], ahead = servos, 0.0 if implicit else step
    at_limit = True
    while at_limit and servos > 0:  # servos at their limits cannot do their part; the others follow without it
        status = accelerate_servos(drives, servos, True, ahead, work, reduction)
        if status != REGULAR:
            return status, False
        for i in range(servos):
            a = drives.servo[i]
            drives.torque[a] = effort[drives.v[a]] = drives.present[a]
        at_limit, ahead = hold_limits(drives, effort), 0.0
        servos = drives.servos[0]
    if not implicit:
        drives.servos[0] = 0
    return REGULAR, True


@for_compiled_callers
def hold_limits(drives, effort):
    """Remove servos at or beyond their effort limits from the equations of the step; returns whether there was one.

    Such a servo gives its limit effort during the whole step. A limit within the equations would be a kink that the
    Jacobian of a step does not contain.
    """
    left = 0
    for i in range(drives.servos[0]):
        a = drives.servo[i]
        limit = drives.effort[a]
        if abs(drives.present[a]) < limit:
            drives.servo[left] = a
            left += 1
        else:
            drives.torque[a] = effort[drives.v[a]] = limit if drives.present[a] > 0.0 else -limit
    found = left < drives.servos[0]
    drives.servos[0] = left
    return found


@allocation_free
def load_gears(flat, drives):
    """Load the gears with the torques of their actuators; return whether there are gears with friction."""
    found = False
    for a in range(drives.q.shape[0]):
        if drives.gear[a] >= 0:
            found = True
            flat.resistances[drives.gear[a], LAW + CARRIED] = drives.torque[a]
    return found


@allocation_free
def past_end(ends, q):
    """Number of the first cable whose rest length is not between zero and its maximum, or -1."""
    for c in range(ends.q.shape[0]):
        rest = ends.radius[c] * q[ends.q[c]]
        if not (rest > 0.0 and rest <= ends.longest[c]):
            return c
    return -1


@for_compiled_callers
def broken_route(work):
    """Number of the first routed cable that cannot follow its route, or -1."""
    for c in range(work.route_results.shape[0]):
        if work.route_results[c, STATUS] != FINE:
            return c
    return -1


@for_compiled_callers
def hop(flat, drives, q, v, effort, step, powers, work, reduction, stages):
    """Advance for a short time with constant acceleration; fill stages.taken with the works [J]. Returns a status."""
    status = driven_accelerations(flat, drives, q, v, effort, work, reduction, False)
    if status != REGULAR:
        return status
    powers_in(flat, q, v, work, powers)
    for k in range(4):
        stages.taken[k] = step * powers[k]
    for k in range(v.shape[0]):
        stages.v[k] = v[k] + 0.5 * step * reduction.acceleration[k]
        v[k] += step * reduction.acceleration[k]
    stages.taken[ACTUATORS] = step * driving_power(drives, stages.v, effort)
    configuration_rate(flat, q, stages.v, stages.q_rate)
    for k in range(q.shape[0]):
        q[k] += step * stages.q_rate[k]
    normalise_quaternions(flat, q)
    project_onto_loops(flat, q, v, work, reduction, stages)
    return REGULAR


@for_compiled_callers
def begin_piece(q, v, stages):
    """Store the state at the start of a piece of a step, and the pattern of its contacts, cable forces and slips."""
    copy(q, stages.piece_q)
    copy(v, stages.piece_v)
    for n in range(stages.pattern.shape[0]):
        stages.pattern[n] = stages.new_pattern[n]


@for_compiled_callers
def end_piece(flat, works, work, stages):
    """Add the works of a piece of a step, and keep its final slip, unless a route is broken."""
    broken = broken_route(work)
    if broken >= 0:
        return BROKEN_ROUTE + broken
    works[0] += stages.taken[ACTUATORS]
    for k in range(4):
        works[1 + k] += stages.taken[k]
    works[4] += keep_slip(flat.route_elements, flat.routed_cables, work.route_state)
    return REGULAR


WHOLE, SEARCH, AHEAD, HOP = 0, 1, 2, 3
"""Kinds of pieces of a step: the whole rest, the search for a change, the part up to the change, the hop across it."""


@for_compiled_callers
def step_in_pieces(
    flat, drives, q, v, effort, step, implicit, evaluated, works, powers, work, reduction, stages, scratch
):  # fmt: skip
    """One step of `step` s, in pieces that end where contact, cable force or slip begins or ends; returns a status.

    For explicit steps, `evaluated` says whether reduction.acceleration is that of the start; for implicit steps,
    whether stages.new_pattern is. The instant of a change is found by bisection over the step length. A piece ends
    slightly before it, so that no stage of the method lies beyond it, and a hop leads across.
    """
    kind, trial, left, low, high, halved, halvings, pieces = WHOLE, step, step, 0.0, 0.0, 0, 0, 1
    begin_piece(q, v, stages)
    while True:
        for c in range(work.route_results.shape[0]):
            work.route_results[c, PERIOD] = trial
        if kind == HOP:
            status = hop(flat, drives, q, v, effort, trial, powers, work, reduction, stages)
        elif implicit:
            status = rosenbrock(flat, drives, q, v, effort, trial, work, reduction, stages, scratch)
        else:
            status = runge_kutta(flat, q, v, effort, trial, 1, 0.0, work, reduction, stages, evaluated)
        evaluated = False
        changed = 1 if kind == HOP else differ(stages.pattern, stages.new_pattern)
        if status == REGULAR and (implicit or changed > 0 or flat.late_kernels[ROUTES] != 0):
            powers_of(flat, q, v, work, powers)  # the last stage of an explicit step is near its end, not at it
            read_pattern(flat, work, stages.new_pattern)
            changed = differ(stages.pattern, stages.new_pattern)
        if kind == SEARCH:
            if status != REGULAR or changed > 0:
                high, halvings = trial, max(changed, SMOOTH_HALVINGS)
            else:
                low = trial
            halved += 1
            trial = 0.5 * (low + high)
            if halved >= halvings:
                kind, trial = AHEAD, max(low - (IMPLICIT_MARGIN if implicit else MARGIN) * left, 0.0)
        elif status != REGULAR:
            return status
        elif kind == WHOLE and changed > 0 and pieces < MOST_PIECES:
            kind, low, high, halved, halvings, trial = SEARCH, 0.0, left, 0, changed, 0.5 * left
        else:
            stages.across[0] = kind == WHOLE and changed > 0
            status = end_piece(flat, works, work, stages)
            left -= trial
            if status != REGULAR or kind == WHOLE or left <= 0.0:
                return status
            begin_piece(q, v, stages)
            if kind == AHEAD:
                kind, trial = HOP, min(2.0 * high - low - trial, left)
            else:
                kind, trial, pieces = WHOLE, left, pieces + 1
            continue
        copy(stages.piece_q, q)
        copy(stages.piece_v, v)
        if kind == AHEAD and trial == 0.0:
            kind, trial = HOP, min(2.0 * high - low, left)


@for_compiled_callers
def keep_ledger(works, work, kept_works, kept_slip, back):
    """Store works (5,) and slip (e, 2) at the start of a step, or restore them (`back`)."""
    for k in range(5):
        if back:
            works[k] = kept_works[k]
        else:
            kept_works[k] = works[k]
    for e in range(kept_slip.shape[0]):
        if back:
            work.route_state[e, SLIP], work.route_state[e, PUSH] = kept_slip[e, 0], kept_slip[e, 1]
        else:
            kept_slip[e, 0], kept_slip[e, 1] = work.route_state[e, SLIP], work.route_state[e, PUSH]


@for_compiled_callers
def rubs_anywhere(flat):
    """Whether a joint or a gear has friction, or an elastic cable at any element of its route."""
    for r in range(flat.resistances.shape[0]):
        if flat.resistances[r, LAW + JOINT_FRICTION] > 0.0 or flat.resistances[r, LAW + EFFICIENCY] < 1.0:
            return True
    for c in range(flat.routed_cables.shape[0]):
        cable = flat.routed_cables[c]
        if cable[LOOP_ROW] >= 0.0:  # inextensible
            continue
        for e in range(int(cable[FIRST]), int(cable[FIRST] + cable[COUNT])):
            friction = flat.route_elements[e, FRICTION]
            if friction > 0.0 and friction < np.inf:
                return True
    return False


@for_compiled_callers
def energy_kept(flat, works, q, v, powers, work):
    """Kinetic, elastic, gravitational and ground energy with the present slip, minus the supplied energy [J].

    Returns that balance, and the stored energy (motion and cables) alone.
    """
    period = 0.0
    for c in range(work.route_results.shape[0]):
        period = work.route_results[c, PERIOD]
        work.route_results[c, PERIOD] = 0.0  # otherwise regularised friction would continue to slip
    stored = powers_of(flat, q, v, work, powers)
    work.route_results[:, PERIOD] = period
    moving = kinetic_energy(flat, v, work)
    return stored + energy_of_motion(flat, v, work) - (works[0] + works[3] - works[2]), stored + moving


@for_compiled_callers
def careful_step(
    flat, drives, q, v, effort, step, implicit, careful, evaluated, works, powers, work, reduction, stages, scratch
):  # fmt: skip
    """One step of `step` [s]; if `careful`, it is divided into shorter ones if the energy would grow without supplied
    work, or if it contains more changes than it searches.

    The damping of a cable with friction jumps when slip begins, and friction of a joint when it reverses. The slopes on
    one side of the jump do not describe the other side: light pulleys that rub and stick, more of them than a step has
    pieces, would be thrown out of rest again and again.
    """
    trial, left, halved = step, step, 0
    copy(drives.torque, drives.present)
    while True:
        if careful:
            copy(q, stages.careful_q)
            copy(v, stages.careful_v)
            keep_ledger(works, work, stages.careful_works, stages.careful_slip, False)
            before, _ = energy_kept(flat, works, q, v, powers, work)
            spent = works[1] + works[4]
        status = step_in_pieces(
            flat, drives, q, v, effort, trial, implicit, evaluated, works, powers, work, reduction, stages, scratch
        )
        if status == REGULAR and implicit:
            status = present_torques(flat, drives, q, v, effort, work, reduction)
        if careful and halved < MOST_HALVED:
            fails = status != REGULAR
            if not fails:
                after, most = energy_kept(flat, works, q, v, powers, work)
                grown, most = after - before, GROWTH * most
                heat = works[1] + works[4] - spent
                fails = not (grown <= most and grown + heat <= most and heat >= -most)
                fails = fails or (stages.across[0] and halved < ACROSS_HALVED)
            if fails:
                copy(stages.careful_q, q)
                copy(stages.careful_v, v)
                keep_ledger(works, work, stages.careful_works, stages.careful_slip, True)
                trial, halved = 0.5 * trial, halved + 1
                powers_of(flat, q, v, work, powers)
                read_pattern(flat, work, stages.new_pattern)
                continue
        left -= trial
        if status != REGULAR or left <= 0.0:
            return status
        if halved > 0:
            trial, halved = min(2.0 * trial, left), halved - 1


@allocation_free
def drive(flat, drives, ends, q, v, effort, step, steps, implicit, works, powers, work, reduction, stages, scratch):
    """Advance q and v by `steps` steps of `step` s; return (status, steps done).

    works (5,) [J] grows by the work of the actuators, by the dissipation of damping and that of winding, by the work of
    the loads, and by the dissipation of friction; explicit steps sum them with the weights of the method. If a cable
    would be wound past its end, the state stays as before that step.
    """
    before_q, before_v = scratch.before_q, scratch.before_v
    careful = implicit and rubs_anywhere(flat)
    for done in range(steps):
        status, evaluated = servo_torques(flat, drives, q, v, effort, step, implicit, work, reduction)
        rubs = load_gears(flat, drives)
        evaluated = evaluated and not rubs
        if implicit and (done == 0 or rubs):
            powers_of(flat, q, v, work, powers)
            read_pattern(flat, work, stages.new_pattern)
        copy(q, before_q)
        copy(v, before_v)
        if status != REGULAR:
            return status, done
        keep_ledger(works, work, stages.kept_works, stages.kept_slip, False)
        while True:
            status = careful_step(
                flat, drives, q, v, effort, step, implicit, careful, evaluated, works, powers, work, reduction, stages,
                scratch,
            )  # fmt: skip
            if status != REGULAR or not implicit or not hold_limits(drives, effort):
                break
            copy(before_q, q)  # repeat the step with these servos at their limits
            copy(before_v, v)
            keep_ledger(works, work, stages.kept_works, stages.kept_slip, True)
            powers_of(flat, q, v, work, powers)
            read_pattern(flat, work, stages.new_pattern)
        cable = past_end(ends, q)
        if status != REGULAR or cable >= 0:
            copy(before_q, q)
            copy(before_v, v)
            keep_ledger(works, work, stages.kept_works, stages.kept_slip, True)
            return (status if cable < 0 else PAST_END + cable), done
        for a in range(drives.q.shape[0]):  # mean over the step
            drives.torque[a] = 0.5 * (drives.torque[a] + drives.present[a])
    total = 0.0
    for k in range(q.shape[0]):
        total += abs(q[k])
    for k in range(v.shape[0]):
        total += abs(v[k])
    return (REGULAR if np.isfinite(total) else DIVERGED), steps
