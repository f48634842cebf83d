"""Actuators of a mechanism in simulation: torques held over a step, servos that hold and move, and their work.

In effort mode an actuator gives what it is told, within its effort limit. In position and velocity mode it is a servo:
a digital loop at the integrator's rate that wants its joint to accelerate by

    w^2 (target - q) + 2 w (rate - v)

and gives the torque for that, from the accelerations under the present torques and the mobility of the driven joints
(P (G' M G)^-1 P' with P their rows of G), cut at the effort limit. The pull of a cable is so met in the step in which
it is felt. Targets move at no more than the actuator's rate; a joint that has reached a position limit is held there,
whatever the mode.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from ...numerics.compilation import compiled
from ...simulation_interface import EFFORT, VELOCITY
from ..dynamics.equations_of_motion import cable_efforts, place_bodies
from ..dynamics.forward_dynamics import REGULAR, SINGULAR_MASS, accelerate, cholesky, cholesky_solve
from ..joints import INVOLUTE_EPSILON, INVOLUTE_LENGTH, INVOLUTE_RIGID, INVOLUTE_U
from .rosenbrock import rosenbrock
from .runge_kutta import runge_kutta

PAST_END = 100
"""Status when a cable is wound past its end; the cable's number is added."""
BANDWIDTH = 0.25
"""Servo bandwidth w times the step: as stiff as a loop at the integrator's rate can safely be."""

Drives = namedtuple("Drives", "q v low high rate effort mode target wanted torque wish servo mobility column response")
"""Arrays over the actuators: where they are in q and v, limits; mode, commanded target, target that the servo follows
now and present torque are state, the rest is scratch."""

Ends = namedtuple("Ends", "q radius longest")
"""Arrays over the cables: where the involute joint is in q, pulley radius, longest rest length."""


@compiled
def wishes(drives, q, v, step):
    """Fill wish with what accelerations servos want, and torque in effort mode; returns how many servos there are."""
    bandwidth = BANDWIDTH / step
    servos = 0
    for a in range(drives.q.shape[0]):
        angle, speed = q[drives.q[a]], v[drives.v[a]]
        limit, low, high = drives.effort[a], drives.low[a], drives.high[a]
        mode, before = drives.mode[a], drives.wanted[a]
        if mode == EFFORT:
            torque = min(max(drives.target[a], -limit), limit)
            if not ((angle >= high and torque > 0.0) or (angle <= low and torque < 0.0)):
                drives.torque[a], drives.wanted[a] = torque, angle
                continue
            goal = high if angle >= high else low
        elif mode == VELOCITY:
            goal = before + drives.target[a] * step
        else:
            goal = drives.target[a]
        reach = drives.rate[a] * step
        goal = min(max(goal, low), high)
        goal = min(max(goal, before - reach), before + reach)
        if abs(drives.torque[a]) >= limit:
            goal = min(max(goal, angle - reach), angle + reach)  # run no further ahead than the torque can follow
        drives.wanted[a] = goal
        drives.wish[a] = bandwidth * bandwidth * (goal - angle) + 2.0 * bandwidth * ((goal - before) / step - speed)
        drives.servo[servos] = a
        servos += 1
    return servos


@compiled
def servo_torques(flat, drives, q, v, effort, step, work, solver):
    """Fill drives.torque and effort (nv,) for the next `step` s; returns a status of the forward dynamics."""
    servos = wishes(drives, q, v, step)
    for a in range(drives.q.shape[0]):
        effort[drives.v[a]] = drives.torque[a]
    if servos == 0:
        return REGULAR
    status, _ = accelerate(flat, q, v, effort, 0.0, work, solver, False)
    if status != REGULAR:
        return status
    count = 0
    for d in range(v.shape[0]):
        count += 0 if solver.is_pivot[d] else 1
    # mobility: how much the torque of one servo accelerates another; solver.reduced holds the factor of G' M G
    for i in range(servos):
        row = drives.v[drives.servo[i]]
        for k in range(count):
            drives.response[k] = solver.basis[row, k]
        cholesky_solve(solver.reduced, count, drives.response)
        for j in range(i + 1):
            other = drives.v[drives.servo[j]]
            total = 0.0
            for k in range(count):
                total += solver.basis[other, k] * drives.response[k]
            drives.mobility[i, j] = total
        drives.column[i] = drives.wish[drives.servo[i]] - solver.acceleration[row]
    for i in range(servos):
        drives.mobility[i, i] *= 1.0 + 1e-9  # drives that depend on each other share
    if cholesky(drives.mobility, servos) >= 0:
        return SINGULAR_MASS
    cholesky_solve(drives.mobility, servos, drives.column)
    for i in range(servos):
        a = drives.servo[i]
        torque = drives.torque[a] + drives.column[i]
        drives.torque[a] = min(max(torque, -drives.effort[a]), drives.effort[a])
        effort[drives.v[a]] = drives.torque[a]
    return REGULAR


@compiled
def past_end(ends, q):
    """Number of the first cable whose rest length is not between zero and its longest, or -1."""
    for c in range(ends.q.shape[0]):
        rest = ends.radius[c] * q[ends.q[c]]
        if not (rest > 0.0 and rest <= ends.longest[c]):
            return c
    return -1


@compiled
def cable_powers(flat, q, v, work, out):
    """Fill out: power [W] lost in damping, and the energy that winding takes along (000, 3.1.9), 1/2 E A strain^2 l0'.

    Returns the elastic energy [J].
    """
    cable_efforts(flat, q, v, work)
    out[0] = out[1] = 0.0
    energy = 0.0
    for c in range(flat.cable_joint.shape[0]):
        i = flat.cable_joint[c]
        a, b = flat.q_start[i], flat.v_start[i]
        kind, radius = flat.kind[i], flat.radius[i]
        if kind == INVOLUTE_RIGID:
            continue
        rest, rest_rate = radius * q[a], radius * v[b]
        strain = work.strain[c]
        if kind == INVOLUTE_EPSILON:
            stretch_rate = rest_rate * strain + rest * v[b + 1]
        elif kind == INVOLUTE_U:
            stretch_rate = v[b + 1]
        elif kind == INVOLUTE_LENGTH:
            stretch_rate = v[b + 1] - rest_rate
        else:
            stretch_rate = 0.0
        stiffness = flat.cable_area[c] * flat.cable_young[c]
        tight = max(strain, 0.0)
        energy += 0.5 * stiffness * tight * tight * rest
        out[0] += (work.tension[c] - stiffness * tight) * stretch_rate
        out[1] += 0.5 * stiffness * tight * tight * rest_rate
    return energy


@compiled
def load_power(flat, q, v, work):
    """Power [W] of the wrenches in work.load; places the bodies at q and v."""
    loaded = False
    for i in range(work.load.shape[0]):
        for k in range(6):
            loaded = loaded or work.load[i, k] != 0.0
    if not loaded:
        return 0.0
    place_bodies(flat, q, v, work)
    power = 0.0
    for i in range(work.load.shape[0]):
        moment, force, turning, moving = work.load[i, :3], work.load[i, 3:], work.velocity[i, :3], work.velocity[i, 3:]
        x, y, z = work.position[i]
        power += moment[0] * turning[0] + moment[1] * turning[1] + moment[2] * turning[2]
        power += force[0] * (moving[0] + turning[1] * z - turning[2] * y)
        power += force[1] * (moving[1] + turning[2] * x - turning[0] * z)
        power += force[2] * (moving[2] + turning[0] * y - turning[1] * x)
    return power


@compiled
def drive(flat, drives, ends, q, v, effort, step, steps, implicit, works, powers, work, solver, stages, scratch):
    """Advance q and v by `steps` steps of `step` s; returns (status, steps done).

    works (4,) J grows by the work of the actuators, by what damping and what winding take, and by the work of the
    wrenches in work.load. Where a cable would be wound past its end, the state stays as before that step.
    """
    before_q, before_v = np.empty(q.shape[0]), np.empty(v.shape[0])
    cable_powers(flat, q, v, work, powers)
    pushing = load_power(flat, q, v, work)
    for done in range(steps):
        status = servo_torques(flat, drives, q, v, effort, step, work, solver)
        before_q[:] = q
        before_v[:] = v
        damping, winding = powers[0], powers[1]
        if status != REGULAR:
            return status, done
        if implicit:
            status = rosenbrock(flat, q, v, effort, step, 1, work, solver, stages, scratch)
        else:
            status = runge_kutta(flat, q, v, effort, step, 1, 0.0, work, solver, stages)
        cable = past_end(ends, q)
        if status != REGULAR or cable >= 0:
            q[:] = before_q
            v[:] = before_v
            return (status if cable < 0 else PAST_END + cable), done
        for a in range(drives.q.shape[0]):
            works[0] += drives.torque[a] * (q[drives.q[a]] - before_q[drives.q[a]])
        cable_powers(flat, q, v, work, powers)
        works[1] += 0.5 * step * (damping + powers[0])
        works[2] += 0.5 * step * (winding + powers[1])
        pushed, pushing = pushing, load_power(flat, q, v, work)
        works[3] += 0.5 * step * (pushed + pushing)
    return REGULAR, steps
