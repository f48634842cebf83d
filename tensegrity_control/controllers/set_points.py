"""Set points of actuators that close position and rate themselves, for the efforts of one control period.

What a geared servo lacks to its set point is what it needs to bear friction. It stays: a set point that came back to
where its servo is seen would let a joint that sticks rest as far from its goal as the loop's feedback is weaker than
that return. Only what would ask for more than the servo's limit is taken back. Of an actuator that gives the effort it
is told, what it lacks is no friction but commands that came late: of that a share is taken back in every period.
"""

from __future__ import annotations

from tensegrity_dynamics.numerics.compilation import allocation_free

CORRECTED = 0.2
"""Part of what an actuator is off its set point that the set point takes over within the time that commands need. It is
an integral with that delay: at 1.6 it would be unstable by itself, and it excites vibrations long before."""


@allocation_free
def fill_set_points(
    q, v, drive_q, drive_v, moved, stretches, acceleration, lasts, late, share, sticks, reach, follows, seen, seen_rate,
    last, last_rate, solved, more, most, position, rate, left, commanded, commanded_rate, effort,
):  # fmt: skip
    """Fill set points (a,), their rates and the rates with which they are left, the same as they are commanded, and
    efforts.

    Args:
        solved, more, most: (a,) efforts of the program, of the cables' stretch, and limits of both together.
        sticks: whether actuators are geared servos, see the module. reach: (a,) how far these may be off.
        moved: (a, 4) of `CableStretch`, which counts where an actuator `stretches` its cable. acceleration: (a,) for
            `lasts` s, from `late` s on. follows: whether a command was under way: with set points `seen` for the state
            that q and v are of, and `last` ones when this one acts.
    """
    for a in range(position.shape[0]):
        effort[a] = min(max(solved[a] + more[a], -most[a]), most[a])
        here, speed, half = q[drive_q[a]], v[drive_v[a]], 0.5 * lasts * acceleration[a]
        if stretches:
            here -= moved[a, 0]
            speed -= moved[a, 1]
        if follows:
            lack = seen[a] - here
            back = lack - min(max(lack, -reach[a]), reach[a]) if sticks else share * lack
            here = last[a] - back
            speed = last_rate[a] + share * (speed - seen_rate[a])
        speed += half
        position[a], rate[a], left[a] = here, speed, speed + half
        commanded_rate[a] = speed + moved[a, 3]
        commanded[a] = here + moved[a, 2] - late * commanded_rate[a]  # on its way until it acts
