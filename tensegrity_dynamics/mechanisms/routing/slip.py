"""Capstan friction of a routed cable: which of its contacts stick and which slip, and how far (Euler and Eytelwein).

Over a contact of friction mu and wrap angle phi the strain on one side is at most e^(mu phi) times that on the other;
the damping tension mu A strain' keeps the same ratio while the wrap angle stays. Inside that bound the contact sticks:
no rest length passes, to the last bit. At the bound as much passes as keeps the ratio exact. Friction does not depend
on the speed, and the cable has no mass, so that what has slipped follows from the path alone (an elastic-plastic law
in one dimension): Newton's method over the contacts that slip, with an active set.
"""

from __future__ import annotations

import numpy as np

from ...numerics.compilation import for_compiled_callers
from .columns import (
    BEFORE,
    COUNT,
    DIAGONAL,
    FIRST,
    FLOW,
    FLOW_RATE,
    FRICTION,
    HELD,
    HOLDS,
    LENGTH,
    LENGTH_RATE,
    LOOP_ROW,
    LOWER,
    MODE,
    RATE,
    RATIO,
    RATIO_RATE,
    REST,
    REST_NOW,
    REST_RATE,
    RIGHT,
    SIDE,
    SLIP,
    SPIN_IN,
    SPIN_OUT,
    STRAIN,
    STRAIN_RATE,
    STUCK,
    TOUCHES,
    TRIAL,
    UPPER,
    WRAP,
)  # fmt: skip

STICKS = -1.0
"""Ratio of a contact on which nothing can slip."""
ROUNDING, SHARE = 1e-15, 1e-12
"""Strain, and part of it, by which a ratio may be beyond its bound before the contact slips."""
MOST_ROUNDS, AT_ONCE = 600, 60
"""Rounds of the search for what slips, and those of them in which all contacts may change at once."""
NOTHING_NEW = 1e-10
"""Part of its diagonal that is left of an equation that follows from those before it."""


@for_compiled_callers
def slips_held(own):
    """Whether a contact slips because it is held so."""
    return own[HELD] != 0.0 and own[HELD] != STUCK and own[RATIO] != STICKS


@for_compiled_callers
def hold_contacts(elements, cables, state, held):
    """Hold all contacts of cables that stretch as they stick or slip now, or (not held) let their bounds decide again.

    A contact that slips and is held keeps its ratio whichever way it goes, so that forces are smooth about a state:
    beside it, along one coordinate, the bounds let some contacts slip on and others stick, where damping jumps.
    Between slack strands nothing is held: what is pulled there comes without force.
    """
    for c in range(cables.shape[0]):
        first = int(cables[c, FIRST])
        for e in range(first + 1, first + int(cables[c, COUNT]) - 1):
            own = state[e]
            own[HELD] = 0.0
            if not held or cables[c, LOOP_ROW] >= 0.0 or elements[e, HOLDS] == 0.0:
                continue
            if max(own[STRAIN], state[int(elements[e, BEFORE]), STRAIN]) <= 100.0 * ROUNDING:
                continue
            own[HELD] = STUCK
            if own[RATE] != 0.0 or own[RATIO] == 1.0:
                own[HELD] = -1.0 if own[RATE] < 0.0 else 1.0


@for_compiled_callers
def bounds(elements, first, last, state):
    """Fill ratio and its rate of all contacts, and let them stick."""
    for e in range(first + 1, last):
        if elements[e, HOLDS] == 0.0:
            continue
        own = state[e]
        own[MODE], own[RATE], own[RATIO_RATE], own[TRIAL] = 0.0, 0.0, 0.0, own[SLIP]
        friction = elements[e, FRICTION]
        if own[TOUCHES] == 0.0:
            own[RATIO] = 1.0
        elif friction == np.inf:
            own[RATIO] = STICKS
        else:
            own[RATIO] = np.exp(friction * max(own[WRAP], 0.0))
            own[RATIO_RATE] = friction * own[RATIO] * elements[e, SIDE] * (own[SPIN_OUT] - own[SPIN_IN])
        if slips_held(own):
            own[MODE] = own[HELD]


@for_compiled_callers
def find_strains(elements, first, last, state):
    """Fill rest length and strain of every strand, with what has slipped by now."""
    strand, passed = first, state[first, FLOW]
    for e in range(first + 1, last + 1):
        if elements[e, HOLDS] == 0.0 and e < last:
            continue
        own = state[strand]
        beyond = state[e, FLOW]
        if e < last:
            beyond += state[e, TRIAL]
        own[REST_NOW] = elements[strand, REST] + passed - beyond
        own[STRAIN] = own[LENGTH] / own[REST_NOW] - 1.0
        strand, passed = e, beyond


@for_compiled_callers
def excess(own, before):
    """By how much the strain on the pulling side of a slipping contact is beyond its bound."""
    ahead, behind = own[STRAIN], before[STRAIN]
    if own[MODE] > 0.0:
        return ahead - own[RATIO] * max(behind, 0.0)
    return behind - own[RATIO] * max(ahead, 0.0)


@for_compiled_callers
def fill_equations(elements, first, last, state):
    """Fill the rows of d excess / d slip of the contacts that slip; those that stick keep what they have."""
    for e in range(first + 1, last):
        if elements[e, HOLDS] == 0.0:
            continue
        own, before = state[e], state[int(elements[e, BEFORE])]
        own[LOWER] = own[UPPER] = 0.0
        own[DIAGONAL] = 1.0
        if own[MODE] == 0.0:
            own[RIGHT] = 0.0
            continue
        ahead = own[LENGTH] / (own[REST_NOW] * own[REST_NOW])  # -d strain / d rest length
        behind = before[LENGTH] / (before[REST_NOW] * before[REST_NOW])
        forward, backward = -1.0, -own[RATIO]
        if own[MODE] < 0.0:
            forward, backward = own[RATIO] if own[STRAIN] > 0.0 else 0.0, 1.0
        elif before[STRAIN] <= 0.0:
            backward = 0.0
        # slip adds rest length ahead and takes it from behind
        own[DIAGONAL] = forward * ahead + backward * behind
        own[UPPER] = -forward * ahead
        own[LOWER] = -backward * behind


@for_compiled_callers
def solve_equations(elements, first, last, state):
    """Solve the three-diagonal equations of the contacts; the solution replaces the right sides.

    Where slack strands lie on both sides of tight ones the contacts at both ends ask for the same: the equation of the
    second one says nothing new. Then both let pass the same, in opposite directions, whichever end comes first.
    """
    previous = -1
    for e in range(first + 1, last):
        if elements[e, HOLDS] == 0.0:
            continue
        if previous >= 0:
            whole = abs(state[e, DIAGONAL])
            factor = state[e, LOWER] / state[previous, DIAGONAL]
            state[e, DIAGONAL] -= factor * state[previous, UPPER]
            if not abs(state[e, DIAGONAL]) > NOTHING_NEW * whole:
                factor = 1.0 / state[previous, DIAGONAL]
                state[e, DIAGONAL] = 1.0 - factor * state[previous, UPPER]
                state[e, UPPER] = state[e, RIGHT] = 0.0
            state[e, RIGHT] -= factor * state[previous, RIGHT]
        previous = e
    following = -1
    for e in range(last - 1, first, -1):
        if elements[e, HOLDS] == 0.0:
            continue
        if following >= 0:
            state[e, RIGHT] -= state[e, UPPER] * state[following, RIGHT]
        state[e, RIGHT] /= state[e, DIAGONAL]
        following = e


@for_compiled_callers
def is_off(own, before, turn):
    """Whether a contact that slips is off its bound by more than, in late rounds, rounding leaves."""
    rounding = 0.1 * ROUNDING if turn < AT_ONCE else ROUNDING * (1.0 + own[RATIO])
    return abs(excess(own, before)) > rounding + 0.1 * SHARE * max(own[STRAIN], before[STRAIN])


@for_compiled_callers
def is_solved(elements, first, last, state, turn):
    """Whether all contacts that slip are at their bounds."""
    for e in range(first + 1, last):
        if elements[e, HOLDS] != 0.0 and state[e, MODE] != 0.0:
            if is_off(state[e], state[int(elements[e, BEFORE])], turn):
                return False
    return True


@for_compiled_callers
def find_slip(elements, first, last, state):
    """Fill what has slipped at every contact by now, from what had slipped at the last step, and all strains.

    Contacts begin to slip and stick again all at once, which is quick. Where that goes round in circles they do one by
    one, the first of the cable before others, each after the equations of those before are solved.
    """
    bounds(elements, first, last, state)
    for turn in range(MOST_ROUNDS):
        one_by_one = turn >= AT_ONCE
        if turn == AT_ONCE:
            bounds(elements, first, last, state)
        find_strains(elements, first, last, state)
        may_change = not one_by_one or is_solved(elements, first, last, state, turn)
        settled = True
        for e in range(first + 1, last):
            if elements[e, HOLDS] == 0.0:
                continue
            own, before = state[e], state[int(elements[e, BEFORE])]
            ahead, behind = own[STRAIN], before[STRAIN]
            if own[MODE] == 0.0:
                own[RIGHT] = 0.0
                if own[RATIO] != STICKS and may_change and own[HELD] == 0.0:
                    slack = ROUNDING + SHARE * max(ahead, behind)
                    if ahead - own[RATIO] * max(behind, 0.0) > slack:
                        own[MODE], settled, may_change = 1.0, False, not one_by_one
                    elif behind - own[RATIO] * max(ahead, 0.0) > slack:
                        own[MODE], settled, may_change = -1.0, False, not one_by_one
                continue
            if is_off(own, before, turn):
                settled = False
            elif (own[TRIAL] - own[SLIP]) * own[MODE] < 0.0 and may_change and own[HELD] == 0.0:
                own[MODE], own[TRIAL], settled, may_change = 0.0, own[SLIP], False, not one_by_one
        if settled:
            return
        fill_equations(elements, first, last, state)
        for e in range(first + 1, last):
            if elements[e, HOLDS] != 0.0 and state[e, MODE] != 0.0:
                state[e, RIGHT] = -excess(state[e], state[int(elements[e, BEFORE])])
        solve_equations(elements, first, last, state)
        for e in range(first + 1, last):
            if elements[e, HOLDS] == 0.0 or state[e, MODE] == 0.0:
                continue
            # never so far that a strand has no rest length
            before = state[int(elements[e, BEFORE])]
            least, most = -0.5 * state[e, REST_NOW], 0.5 * before[REST_NOW]
            state[e, TRIAL] += min(max(state[e, RIGHT], least), most)


@for_compiled_callers
def find_rates(elements, first, last, state):
    """Fill rates of slip, and of rest length and strain of all strands.

    Of the contacts at their bound those slip on whose ratio would leave it otherwise; the others stick from here.
    """
    for e in range(first + 1, last):
        if elements[e, HOLDS] == 0.0:
            continue
        own, before = state[e], state[int(elements[e, BEFORE])]
        ahead, behind = own[STRAIN], before[STRAIN]
        own[MODE] = 0.0
        if own[RATIO] == STICKS or max(ahead, behind) <= 0.0:
            continue
        if own[HELD] != 0.0:
            own[MODE] = own[HELD] if slips_held(own) else 0.0
            continue
        near = 100.0 * (ROUNDING + SHARE * max(ahead, behind))
        if ahead - own[RATIO] * max(behind, 0.0) > -near:
            own[MODE] = 1.0
        elif behind - own[RATIO] * max(ahead, 0.0) > -near:
            own[MODE] = -1.0
    for _ in range(last - first + 1):
        rest_rates(elements, first, last, state, False)
        fill_equations(elements, first, last, state)
        slips = False
        for e in range(first + 1, last):
            if elements[e, HOLDS] == 0.0 or state[e, MODE] == 0.0:
                continue
            slips = True
            own, before = state[e], state[int(elements[e, BEFORE])]
            if own[MODE] > 0.0:
                ratio = own[RATIO] if before[STRAIN] > 0.0 else 0.0
                own[RIGHT] = ratio * before[STRAIN_RATE] - own[STRAIN_RATE]
                own[RIGHT] += own[RATIO_RATE] * max(before[STRAIN], 0.0)
            else:
                ratio = own[RATIO] if own[STRAIN] > 0.0 else 0.0
                own[RIGHT] = ratio * own[STRAIN_RATE] - before[STRAIN_RATE]
                own[RIGHT] += own[RATIO_RATE] * max(own[STRAIN], 0.0)
        if not slips:
            return
        solve_equations(elements, first, last, state)
        worst, wrong = 0.0, -1
        for e in range(first + 1, last):
            if elements[e, HOLDS] == 0.0 or state[e, MODE] == 0.0 or state[e, RATIO] == 1.0 or state[e, HELD] != 0.0:
                continue  # without friction nothing sticks
            if state[e, RIGHT] * state[e, MODE] < worst:
                worst, wrong = state[e, RIGHT] * state[e, MODE], e
        if wrong < 0:
            for e in range(first + 1, last):
                if elements[e, HOLDS] != 0.0:
                    state[e, RATE] = state[e, RIGHT] if state[e, MODE] != 0.0 else 0.0
            rest_rates(elements, first, last, state, True)
            return
        state[wrong, MODE] = 0.0


@for_compiled_callers
def rest_rates(elements, first, last, state, slipping):
    """Fill rates of rest length and strain of the strands, with or without what slips."""
    strand, passed = first, state[first, FLOW_RATE]
    for e in range(first + 1, last + 1):
        if elements[e, HOLDS] == 0.0 and e < last:
            continue
        own = state[strand]
        beyond = state[e, FLOW_RATE]
        if e < last and slipping:
            beyond += state[e, RATE]
        own[REST_RATE] = passed - beyond
        own[STRAIN_RATE] = (own[LENGTH_RATE] - (1.0 + own[STRAIN]) * own[REST_RATE]) / own[REST_NOW]
        strand, passed = e, beyond
