"""Set points of actuators that close position and rate themselves, for the efforts of one control period.

What an actuator lacks to its set point is what it needs to bear what no model knows, friction above all. It stays: a
set point that came back to where its actuator is seen would let a joint that sticks rest as far from its goal as the
loop's feedback is weaker than that return. Only what would ask for more than the actuator's limit is taken back.
"""

from __future__ import annotations

from tensegrity_dynamics.numerics.compilation import allocation_free

CORRECTED = 0.2
"""Part of what an actuator's rate is off that of its set point that the set point takes over within the time that
commands need. It is an integral with that delay: at 1.6 it would be unstable by itself, and it excites vibrations long
before."""


@allocation_free
def fill_set_points(
    q, v, drive_q, drive_v, moved, stretches, acceleration, lasts, late, share, reach, follows, seen, seen_rate, last,
    last_rate, solved, more, most, position, rate, left, commanded, commanded_rate, effort,
):  # fmt: skip
    """Fill set points (a,), their rates and the rates with which they are left, the same as they are commanded, and
    efforts.

    Args:
        solved, more, most: (a,) efforts of the program, of the cables' stretch, and limits of both together.
        reach: (a,) how far an actuator may be off its set point, see the module.
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
            here = last[a] - lack + min(max(lack, -reach[a]), reach[a])
            speed = last_rate[a] + share * (speed - seen_rate[a])
        speed += half
        position[a], rate[a], left[a] = here, speed, speed + half
        commanded_rate[a] = speed + moved[a, 3]
        commanded[a] = here + moved[a, 2] - late * commanded_rate[a]  # on its way until it acts
