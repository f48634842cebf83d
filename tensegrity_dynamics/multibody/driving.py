"""Actuators of a mechanism in simulation: torques held over a step, servos that hold and move, and their work.

In effort mode an actuator gives what it is told, within its effort limit. In position and velocity mode it is a servo,
a digital loop at the integrator's rate on its joint's own angle: with the inertia J that the actuator feels,

    tau = J (w^2 (target - q) + 2 w (rate - v)) + s,   s' = J w^3 / 4 (target - q),

cut at the effort limit, s not growing while it is cut. Targets move at no more than the actuator's rate. A joint that
has reached a position limit is held there by the same servo, whatever the mode.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from ..compilation import compiled
from .equations import cable_efforts
from .forward_dynamics import REGULAR
from .implicit import rosenbrock
from .joints import INVOLUTE_EPSILON, INVOLUTE_LENGTH, INVOLUTE_RIGID, INVOLUTE_U
from .stepping import runge_kutta

POSITION, VELOCITY, EFFORT = 0, 1, 2
PAST_END = 100
"""Status when a cable is wound past its end; the cable's number is added."""
BANDWIDTH = 0.25
"""Servo bandwidth w times the step: as stiff as a loop at the integrator's rate can safely be."""

Drives = namedtuple("Drives", "q v low high rate effort inertia mode target wanted sum torque")
"""Arrays over the actuators: where they are in q and v, limits, inertia; mode, commanded target, the target that the
servo follows now, servo sum and present torque are state."""

Ends = namedtuple("Ends", "q radius longest strain area young kind v")
"""Arrays over the cables: where the involute joint is in q and v, radius, longest rest length; strain is scratch."""


@compiled
def servo_torques(drives, q, v, step):
    """Fill drives.torque for the next `step` s."""
    bandwidth = BANDWIDTH / step
    for a in range(drives.q.shape[0]):
        angle, speed = q[drives.q[a]], v[drives.v[a]]
        limit, inertia = drives.effort[a], drives.inertia[a]
        low, high = drives.low[a], drives.high[a]
        mode, before = drives.mode[a], drives.wanted[a]
        if mode == EFFORT:
            torque = min(max(drives.target[a], -limit), limit)
            outside = (angle >= high and torque > 0.0) or (angle <= low and torque < 0.0)
            if not outside:
                drives.torque[a] = torque
                drives.wanted[a] = angle
                drives.sum[a] = torque
                continue
            goal = high if angle >= high else low
        elif mode == VELOCITY:
            goal = before + drives.target[a] * step
        else:
            goal = drives.target[a]
        reach = drives.rate[a] * step
        goal = min(max(goal, before - reach), before + reach)
        # a joint that starts outside its limits may come back
        goal = min(max(goal, min(low, before)), max(high, before))
        rate = (goal - before) / step
        drives.wanted[a] = goal
        gain = inertia * bandwidth * bandwidth
        torque = gain * (goal - angle) + 2.0 * inertia * bandwidth * (rate - speed) + drives.sum[a]
        cut = min(max(torque, -limit), limit)
        if cut == torque:
            drives.sum[a] += 0.25 * gain * bandwidth * (goal - angle) * step
        else:  # follow no further than the torque can
            drives.wanted[a] = before + min(max(goal - before, -abs(speed) * step), abs(speed) * step)
        drives.torque[a] = cut


@compiled
def past_end(ends, q):
    """Number of the first cable whose rest length is not between zero and its longest, or -1."""
    for c in range(ends.q.shape[0]):
        rest = ends.radius[c] * q[ends.q[c]]
        if not (rest > 0.0 and rest <= ends.longest[c]):
            return c
    return -1


@compiled
def cable_powers(flat, ends, q, v, work, out):
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
def drive(flat, drives, ends, q, v, effort, step, steps, implicit, works, powers, work, solver, stages, scratch):
    """Advance q and v by `steps` steps of `step` s; returns (status, steps done).

    works (3,) J grows by the work of the actuators, what damping takes, and what winding takes. Where a cable would be
    wound past its end, the state stays as before that step.
    """
    before_q, before_v = np.empty(q.shape[0]), np.empty(v.shape[0])
    cable_powers(flat, ends, q, v, work, powers)
    for done in range(steps):
        servo_torques(drives, q, v, step)
        for a in range(drives.q.shape[0]):
            effort[drives.v[a]] = drives.torque[a]
        before_q[:] = q
        before_v[:] = v
        damping, winding = powers[0], powers[1]
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
        cable_powers(flat, ends, q, v, work, powers)
        works[1] += 0.5 * step * (damping + powers[0])
        works[2] += 0.5 * step * (winding + powers[1])
    return REGULAR, steps
