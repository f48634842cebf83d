"""Capstan friction of a routed cable (Euler and Eytelwein): sticking and slipping contacts, and their slip.

At a contact with friction coefficient mu and wrap angle phi, the strain on one side is at most e^(mu phi) times that
on the other side. The damping tension mu A strain' has the same ratio while the wrap angle is constant. Below this
bound the contact sticks: exactly no rest length passes. At the bound, the slip keeps the ratio exact. Friction does not
depend on the speed, and the cable has no mass, so that the slip depends on the path only (a one-dimensional
elastic-plastic law). It is computed with Newton's method over the slipping contacts, with an active set.
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
"""Value of RATIO for a contact that cannot slip."""
ROUNDING, SHARE = 1e-15, 1e-12
"""Absolute and relative tolerance of the strain by which a contact may exceed its bound before it slips."""
MOST_ROUNDS, AT_ONCE = 600, 60
"""Largest number of iterations of the active set, and number of first iterations in which all contacts may change
simultaneously."""
NOTHING_NEW = 1e-10
"""Remaining diagonal after elimination, relative to its original value, below which an equation counts as linearly
dependent on the previous ones."""


@for_compiled_callers
def slips_held(own):
    """Whether the imposed state of a contact is slipping."""
    return own[HELD] != 0.0 and own[HELD] != STUCK and own[RATIO] != STICKS


@for_compiled_callers
def hold_contacts(elements, cables, state, held):
    """Impose the present sticking or slipping state on all contacts of elastic cables, or (held false) release them.

    A contact with imposed slip keeps its strain ratio for both slip directions, so that the forces are smooth near a
    state. Without this, a displacement along one coordinate lets some contacts slip and others stick, and the damping
    jumps. Contacts between slack strands are not imposed, because no force acts there.
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
    """Fill the bound of the strain ratio of all contacts and its rate, and set all contacts that are not held to
    sticking.
    """
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
    """Fill rest length and strain of every strand at the present slip."""
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
    """Excess of the strain on the pulling side of a slipping contact over its bound."""
    ahead, behind = own[STRAIN], before[STRAIN]
    if own[MODE] > 0.0:
        return ahead - own[RATIO] * max(behind, 0.0)
    return behind - own[RATIO] * max(ahead, 0.0)


@for_compiled_callers
def fill_equations(elements, first, last, state):
    """Fill the rows of d excess / d slip of the slipping contacts; the rows of sticking contacts leave slip
    unchanged."""
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
        # slip adds rest length to the strand ahead and removes it from the strand behind
        own[DIAGONAL] = forward * ahead + backward * behind
        own[UPPER] = -forward * ahead
        own[LOWER] = -backward * behind


@for_compiled_callers
def solve_equations(elements, first, last, state):
    """Solve the tridiagonal equations of the contacts; the solution replaces the right-hand sides.

    If slack strands lie on both sides of taut ones, the equations of the contacts at both ends are linearly dependent.
    Then both contacts slip by the same amount in opposite directions, independent of the order of the ends.
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
    """Whether a slipping contact misses its bound by more than the tolerance, which grows to the rounding error in late
    iterations."""
    rounding = 0.1 * ROUNDING if turn < AT_ONCE else ROUNDING * (1.0 + own[RATIO])
    return abs(excess(own, before)) > rounding + 0.1 * SHARE * max(own[STRAIN], before[STRAIN])


@for_compiled_callers
def is_solved(elements, first, last, state, turn):
    """Whether all slipping contacts are at their bounds."""
    for e in range(first + 1, last):
        if elements[e, HOLDS] != 0.0 and state[e, MODE] != 0.0:
            if is_off(state[e], state[int(elements[e, BEFORE])], turn):
                return False
    return True


@for_compiled_callers
def find_slip(elements, first, last, state):
    """Fill the present slip at every contact, from the slip at the last step, and all strains.

    At first all contacts may change between sticking and slipping simultaneously, which is fast. If the iteration
    cycles, they change one by one, in the order along the cable, each after the equations of the previous set are
    solved.
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
            # limited so that the rest lengths of the strands stay positive
            before = state[int(elements[e, BEFORE])]
            least, most = -0.5 * state[e, REST_NOW], 0.5 * before[REST_NOW]
            state[e, TRIAL] += min(max(state[e, RIGHT], least), most)


@for_compiled_callers
def find_rates(elements, first, last, state):
    """Fill rates of slip, and of rest length and strain of all strands.

    A contact at its bound continues to slip if its ratio would exceed the bound otherwise; the others stick.
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
    """Fill rates of rest length and strain of the strands, with or without the slip rates."""
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
