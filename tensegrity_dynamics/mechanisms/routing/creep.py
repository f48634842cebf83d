"""Regularised capstan friction of a routed cable: slip speed at each of its contacts.

The driving force D of rest length into a strand (`efforts`) is E A (e + e^2 / 2) without damping, with the strain e.
With damping, e is the equivalent strain that gives the same D. At a contact with friction coefficient mu, wrap angle
phi and regularisation speed s, the cable slips at the speed w that satisfies

    e ahead = e^(mu phi tanh(w / s)) e behind            (behind and ahead are exchanged for w < 0),

so that it creeps whenever the driving forces on both sides differ. (Damping can cancel the whole tension of a strand
and make D negative; then there is no friction, and D becomes equal on both sides.) w is the mean over a step (implicit
Euler), so that any s is possible. It has the sign of D ahead minus D behind: the dissipated power
w (D ahead - D behind) is never negative, with or without damping, for any step.

D of a strand decreases with the rest length that slips into it, so that each w is unique. All of them are found with
Newton's method, or contact by contact if Newton's method diverges at slack strands. When a strand becomes taut, D
jumps because its damper engages, and there may be no speeds that satisfy the law. Then contacts whose slip would
generate power stick.
"""

from __future__ import annotations

import numpy as np

from ...numerics.compilation import for_compiled_callers
from .columns import (
    BEFORE,
    DAMPING,
    DIAGONAL,
    DRIVE,
    FRICTION,
    HOLDS,
    LENGTH,
    LENGTH_RATE,
    LOWER,
    MODE,
    RATE,
    RATIO,
    REST_NOW,
    REST_RATE,
    RIGHT,
    SLIP,
    STIFFNESS,
    STRAIN,
    STRAIN_RATE,
    TENSION,
    TRIAL,
    UPPER,
    WIDTH,
    WRAP,
)
from .slip import find_strains, rest_rates, solve_equations

AT_ONCE, ONE_BY_ONE, BISECTIONS = 40, 100, 60
"""Largest number of iterations of Newton's method, of iterations contact by contact, and of bisections for each
contact."""
PRECISION, ROUNDING = 1e-10, 1e-14
"""Relative and absolute tolerance of the strains in the friction law."""


@for_compiled_callers
def pull(cable, own):
    """Fill tension of a strand and driving force of rest length into it, from its strain and strain rate."""
    own[TENSION] = own[DRIVE] = 0.0
    if own[STRAIN] > 0.0:
        elastic = cable[STIFFNESS] * own[STRAIN]
        damped = max(cable[DAMPING] * own[STRAIN_RATE], -elastic)
        own[TENSION] = elastic + damped
        own[DRIVE] = elastic + 0.5 * elastic * own[STRAIN] + damped * (1.0 + own[STRAIN])


@for_compiled_callers
def driven(cable, own):
    """Equivalent strain of a strand: the strain that gives its driving force without damping."""
    return np.sqrt(max(1.0 + 2.0 * own[DRIVE] / cable[STIFFNESS], 0.0)) - 1.0


@for_compiled_callers
def slope(cable, own, period):
    """Negative derivative of the equivalent strain of a strand with respect to its rest length [1/m]."""
    if own[STRAIN] <= 0.0:
        return 0.0
    strain, stretched, held = driven(cable, own), 1.0 + own[STRAIN], cable[DAMPING] / cable[STIFFNESS]
    part = stretched / own[REST_NOW]
    if held * own[STRAIN_RATE] <= -own[STRAIN]:  # damping cancels the whole tension
        return -own[STRAIN] * part / (1.0 + strain)
    damped = part / period + (own[LENGTH_RATE] - 2.0 * stretched * own[REST_RATE]) / own[REST_NOW] ** 2
    return (part * (stretched + held * own[STRAIN_RATE]) + stretched * held * damped) / (1.0 + strain)


@for_compiled_callers
def law_of(row, cable, own, before):
    """Fill slip direction and strain ratio of a contact at its speed; returns the excess strain of the pulling side."""
    ahead, behind = driven(cable, own), driven(cable, before)
    own[MODE] = np.sign(own[RATE] if own[RATE] != 0.0 else ahead - behind)
    own[RATIO] = 1.0
    if row[WIDTH] > 0.0:
        own[RATIO] = np.exp(row[FRICTION] * max(own[WRAP], 0.0) * np.tanh(abs(own[RATE]) / row[WIDTH]))
    more = own[RATIO] - 1.0
    return ahead - behind - more * max(behind, 0.0) if own[MODE] > 0.0 else behind - ahead - more * max(ahead, 0.0)


@for_compiled_callers
def is_off(cable, own, before, beyond, period):
    """Whether a contact violates its friction law by more than the rounding error."""
    rate = 1.0 / period + max(abs(own[STRAIN_RATE]), abs(before[STRAIN_RATE]))
    most = ROUNDING * own[RATIO] * (1.0 + cable[DAMPING] / cable[STIFFNESS] * rate)
    most += PRECISION * max(abs(driven(cable, own)), abs(driven(cable, before)))
    return own[MODE] != 0.0 and abs(beyond) > most


@for_compiled_callers
def fill_equation(row, cable, own, before, beyond, period):
    """Fill the row of a contact in the linear equations of Newton's method."""
    own[RIGHT], own[UPPER], own[LOWER], own[DIAGONAL] = -beyond, 0.0, 0.0, 1.0
    if own[MODE] == 0.0:
        return
    ahead, behind = slope(cable, own, period), slope(cable, before, period)
    weak = driven(cable, before if own[MODE] > 0.0 else own)
    ratio = own[RATIO] if weak > 0.0 else 1.0
    if own[MODE] > 0.0:
        own[UPPER], own[LOWER] = ahead, ratio * behind
    else:
        own[UPPER], own[LOWER] = -ratio * ahead, -behind
    steeper = 0.0
    if row[WIDTH] > 0.0:
        speed = np.tanh(own[RATE] / row[WIDTH])
        steeper = own[RATIO] * row[FRICTION] * max(own[WRAP], 0.0) * (1.0 - speed * speed) / (period * row[WIDTH])
    own[DIAGONAL] = -own[UPPER] - own[LOWER] - own[MODE] * steeper * max(weak, 0.0)
    if own[DIAGONAL] == 0.0:
        own[DIAGONAL] = -own[MODE]


@for_compiled_callers
def newton_step(row, own, before, period):
    """Change the slip speed of a contact by the Newton step; before its direction reverses, the speed is halved."""
    least, most = -0.5 * own[REST_NOW], 0.5 * before[REST_NOW]  # keeps the rest lengths of the strands positive
    speed = own[RATE] + min(max(own[RIGHT], least), most) / period
    if own[RATE] != 0.0 and speed * own[MODE] <= 0.0:
        speed = 0.5 * own[RATE] if abs(own[RATE]) > 1e-9 * row[WIDTH] else 0.0
    own[RATE], own[TRIAL] = speed, own[SLIP] + period * speed


@for_compiled_callers
def let_slip(row, cable, own, before, speed, period):
    """Set the slip speed of one contact and update strains and driving forces beside it; returns the excess strain."""
    change = speed - own[RATE]
    own[RATE], own[TRIAL] = speed, own[SLIP] + period * speed
    own[REST_NOW] += period * change
    own[REST_RATE] += change
    before[REST_NOW] -= period * change
    before[REST_RATE] -= change
    for strand in (own, before):
        strand[STRAIN] = strand[LENGTH] / strand[REST_NOW] - 1.0
        turning = (1.0 + strand[STRAIN]) * strand[REST_RATE]
        strand[STRAIN_RATE] = (strand[LENGTH_RATE] - turning) / strand[REST_NOW]
        pull(cable, strand)
    return law_of(row, cable, own, before)


@for_compiled_callers
def solve_contact(row, cable, own, before, period):
    """Find the slip speed of one contact with the speeds of all other contacts fixed; returns whether it changed.

    When a strand becomes taut, its damper engages and its driving force jumps, and there may be no speed that satisfies
    the law. The speed just below the jump is taken: there slip dissipates power.
    """
    known = own[RATE]
    beyond = let_slip(row, cable, own, before, 0.0, period)
    sign = own[MODE]
    if not is_off(cable, own, before, beyond, period):
        return known != 0.0
    low, high = 0.0, max(row[WIDTH], 1e-9)
    for _ in range(1100):  # doublings
        most = 0.5 * (before[REST_NOW] if sign > 0.0 else own[REST_NOW]) / period
        high = min(high, low + most)
        if not let_slip(row, cable, own, before, sign * high, period) > 0.0:
            break
        low, high = high, 2.0 * high
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        if let_slip(row, cable, own, before, sign * middle, period) > 0.0:
            low = middle
        else:
            high = middle
    let_slip(row, cable, own, before, sign * low, period)
    return abs(own[RATE] - known) > PRECISION * abs(known)


@for_compiled_callers
def find_drives(elements, cable, first, last, state):
    """Fill strains and driving forces of all strands at the trial slip speeds."""
    find_strains(elements, first, last, state)
    rest_rates(elements, first, last, state, True)
    for e in range(first, last):
        if e == first or elements[e, HOLDS] != 0.0:
            pull(cable, state[e])


@for_compiled_callers
def stick_where_power_is_given(elements, cable, first, last, state):
    """Stop the contacts whose slip would generate power, the one with the largest power first."""
    for _ in range(last - first):
        find_drives(elements, cable, first, last, state)
        worst, least = -1, 0.0
        for e in range(first + 1, last):
            own, before = state[e], state[int(elements[e, BEFORE])]
            if elements[e, HOLDS] != 0.0 and own[RATE] * (own[DRIVE] - before[DRIVE]) < least:
                worst, least = e, own[RATE] * (own[DRIVE] - before[DRIVE])
        if worst < 0:
            return
        state[worst, RATE], state[worst, TRIAL] = 0.0, state[worst, SLIP]


@for_compiled_callers
def find_creep(elements, cable, first, last, state, period):
    """Fill slip speeds and slip of all contacts, and strains and driving forces of all strands."""
    for turn in range(AT_ONCE + ONE_BY_ONE):
        if turn == 0 or turn == AT_ONCE:
            for e in range(first + 1, last):
                state[e, RATE], state[e, TRIAL] = 0.0, state[e, SLIP]
        find_drives(elements, cable, first, last, state)
        settled = True
        for e in range(first + 1, last):
            row, own, before = elements[e], state[e], state[int(elements[e, BEFORE])]
            if row[HOLDS] == 0.0:
                continue
            if row[FRICTION] == np.inf:
                own[MODE], own[RIGHT], own[UPPER], own[LOWER], own[DIAGONAL] = 0.0, 0.0, 0.0, 0.0, 1.0
                continue
            beyond = law_of(row, cable, own, before)
            settled = settled and not is_off(cable, own, before, beyond, period)
            if turn < AT_ONCE:
                fill_equation(row, cable, own, before, beyond, period)
        if settled:
            return
        if turn < AT_ONCE:
            solve_equations(elements, first, last, state)
        settled = turn >= AT_ONCE
        for e in range(first + 1, last):
            row, own, before = elements[e], state[e], state[int(elements[e, BEFORE])]
            if row[HOLDS] == 0.0 or row[FRICTION] == np.inf:
                continue
            if turn < AT_ONCE:
                newton_step(row, own, before, period)
            elif solve_contact(row, cable, own, before, period):
                settled = False
        if settled:
            break
    stick_where_power_is_given(elements, cable, first, last, state)
