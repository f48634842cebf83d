"""Set points of actuators with their own position and rate loops, for the efforts of one control period.

A geared servo needs its position error to overcome friction. So the error is kept: if the set point returned to the
measured position, a joint that sticks would rest far from its goal, since the feedback of the loop is weaker than that
return. Only an error for which the servo would exceed its limit is reduced. For an actuator that delivers exactly the
commanded effort, the error comes from late commands and not from friction; a fraction of it is removed in every period.
Where a command acts at once, its position begins anew at the measured one. Its rate does not: the damper of an actuator
realises most of a commanded rate within a period, and repeated by a command that is later than known, such a rate would
alternate forever.
"""

from __future__ import annotations

from tensegrity_dynamics.numerics.compilation import allocation_free

CORRECTED = 0.2
"""Fraction of the error between actuator and set point that the set point removes within the latency of commands. It is
an integral with this delay: at 1.6 it would be unstable by itself, and well below that it excites vibrations."""


@allocation_free
def fill_set_points(
    q, v, drive_q, drive_v, moved, stretches, acceleration, lasts, late, share, sticks, reach, follows, seen, seen_rate,
    last, last_rate, solved, more, most, position, rate, left, commanded, commanded_rate, effort,
):  # fmt: skip
    """Fill set points (a,), their rates, the rates at the end of the command, the commanded set points and rates, and
    efforts.

    Args:
        solved, more, most: (a,) efforts of the program, efforts due to the stretch of the cables, and limits of their
            sum.
        sticks: whether actuators are geared servos, see the module.
        reach: (a,) largest error between a servo and its set point.
        moved: (a, 4) of `CableStretch`, used if an actuator `stretches` its cable.
        acceleration: (a,) for `lasts` s, from `late` s on.
        follows: whether a command was active: with set points `seen` for the state of q and v, and set points `last` at
            the time when this command acts.
    """
    for a in range(position.shape[0]):
        effort[a] = min(max(solved[a] + more[a], -most[a]), most[a])
        here, speed, half = q[drive_q[a]], v[drive_v[a]], 0.5 * lasts * acceleration[a]
        if stretches:
            here -= moved[a, 0]
            speed -= moved[a, 1]
        if follows:
            lack = seen[a] - here
            back = lack - min(max(lack, -reach[a]), reach[a]) if sticks else (share if late > 0.0 else 1.0) * lack
            here = last[a] - back
            speed = last_rate[a] + share * (speed - seen_rate[a])
        speed += half
        position[a], rate[a], left[a] = here, speed, speed + half
        commanded_rate[a] = speed + moved[a, 3]
        commanded[a] = here + moved[a, 2] - late * commanded_rate[a]  # on its way until it acts
