"""Spools: motion of rest lengths towards commands, within the limits of rate, position and effort.

A spool is driven by a self-locking servo: it moves at most at its rate, stops winding while the tension of its tendon
is above the effort limit, and never leaves its position limits. An extrapolated position (`impedance.MovingPosition`)
moves until the next command. If it lags behind after a gap, all spools catch up along a straight line, at most at a
fraction of their rates. Rods of variable length are driven in the same way: their length corresponds to the rest
length, and they do not extend while their compression is above the effort limit.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence

import numpy as np

from ... import impedance
from ...numerics.compilation import allocation_free, compiled, for_compiled_callers
from ...robots.actuator import Actuator
from ...simulation_interface import POSITION, VELOCITY
from ..structure import Structure

TENSION_TIME = 0.05
"""Time constant [s] with which a spool in effort mode approaches the commanded tension."""

Spools = namedtuple("Spools", "member low high rate effort stiffness mode target speed going age lead rods")
"""Arrays over the actuators. State: mode, target and speed [m/s, of the present step]; for extrapolated targets their
rate, the age of the command and the extrapolation time [s] (0: constant). rods (1,): number of driven rigid bars."""


def make_spools(structure: Structure, actuators: Sequence[Actuator], rigid: Sequence[int] = ()) -> Spools:
    """Spools of the actuators that drive members, holding their present rest lengths; `rigid` are rigid bars."""
    member = np.array([structure.member(each.drives) for each in actuators], dtype=np.int64)
    stiffness = np.array(structure.stiffness[member], dtype=np.float64)
    for a in np.flatnonzero(np.isin(member, rigid)):
        # a rod acts against the members at its ends
        meets = np.isin(structure.members, structure.members[member[a]]).any(axis=1) & structure.unilateral
        stiffness[a] = max(float(structure.stiffness[meets].sum()), 1e-9)
    return Spools(
        member=member,
        low=np.array([each.position[0] for each in actuators], dtype=np.float64),
        high=np.array([each.position[1] for each in actuators], dtype=np.float64),
        rate=np.array([each.rate for each in actuators], dtype=np.float64),
        effort=np.array([each.effort for each in actuators], dtype=np.float64),
        stiffness=stiffness,
        mode=np.zeros(member.size, dtype=np.int64),
        target=np.array(structure.rest_lengths[member], dtype=np.float64),
        **{name: np.zeros(member.size) for name in ("speed", "going", "age", "lead")},
        rods=np.array([np.count_nonzero(np.isin(member, rigid))], dtype=np.int64),
    )


travelled = compiled(impedance.travelled)
CATCH_UP = impedance.CATCH_UP


@for_compiled_callers
def catching_up(spools, rest_lengths, step):
    """Advance the extrapolated targets by `step` [s]; returns the fraction of their lag that is removed in the step."""
    slowest = step
    for a in range(spools.member.shape[0]):
        if spools.mode[a] == POSITION and spools.lead[a] > 0.0:
            spools.age[a] += step
            target, own = moving_target(spools, a, step)
            behind = abs(target - rest_lengths[spools.member[a]] - own)
            slowest = max(slowest, behind / (CATCH_UP * spools.rate[a]))
    return step / slowest


@for_compiled_callers
def moving_target(spools, a, step):
    """Present target of a spool [m], and its extrapolated displacement in the last `step` [s]."""
    age, lead, going = spools.age[a], spools.lead[a], spools.going[a]
    ahead = travelled(age, lead)
    target = min(max(spools.target[a] + going * ahead, spools.low[a]), spools.high[a])
    return target, going * (ahead - travelled(max(age - step, 0.0), lead))


@allocation_free
def set_speeds(spools, rest_lengths, tensions, step, rest_rates):
    """Fill spools.speed and rest_rates (m,) [m/s] for the next `step` [s], from the tensions (m,) [N] at its start.

    Returns whether a rate has changed, because damping forces change with it.
    """
    changed = False
    share = catching_up(spools, rest_lengths, step)
    for a in range(spools.member.shape[0]):
        k = spools.member[a]
        if spools.mode[a] == POSITION and spools.lead[a] > 0.0:
            target, own = moving_target(spools, a, step)
            speed = (own + share * (target - rest_lengths[k] - own)) / step
        elif spools.mode[a] == POSITION:
            speed = (spools.target[a] - rest_lengths[k]) / step
        elif spools.mode[a] == VELOCITY:
            speed = spools.target[a]
        else:
            speed = (tensions[k] - spools.target[a]) / (spools.stiffness[a] * TENSION_TIME)
        speed = min(max(speed, -spools.rate[a]), spools.rate[a])
        if (speed < 0.0 and tensions[k] > spools.effort[a]) or (speed > 0.0 and -tensions[k] > spools.effort[a]):
            speed = 0.0
        # the limits apply, but a tendon that starts outside can return
        if speed < 0.0:
            speed = max(speed, min(0.0, (spools.low[a] - rest_lengths[k]) / step))
        else:
            speed = min(speed, max(0.0, (spools.high[a] - rest_lengths[k]) / step))
        changed = changed or speed != rest_rates[k]
        spools.speed[a] = speed
        rest_rates[k] = speed
    return changed


@allocation_free
def wind(spools, rest_lengths, time):
    """Advance the rest lengths by `time` [s] at the present speeds."""
    for a in range(spools.member.shape[0]):
        rest_lengths[spools.member[a]] += spools.speed[a] * time


@allocation_free
def winding_power(spools, tensions):
    """Power [W] of the spools on the structure: tension times winding rate."""
    power = 0.0
    for a in range(spools.member.shape[0]):
        power -= tensions[spools.member[a]] * spools.speed[a]
    return power
