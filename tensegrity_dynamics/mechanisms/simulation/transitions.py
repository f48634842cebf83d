"""What pushes, pulls and slips at a state of a mechanism, so that steps can end where that changes.

The forces of a mechanism are smooth but where a cable goes slack or taut, a stop or the ground begins or ceases to
push, a cable comes to a pulley or leaves it, or begins to slip or sticks. There a force has a kink, or jumps where a
damper acts. A method that steps across is left with errors of order (step)^2 of a kink and of order (step) of a jump,
whatever its own order is. What is pressed or stretched but neither pushes nor pulls, since its damper takes all,
counts, too: the power of the damper has a kink there.

Regularised friction of the ground is smooth, but within a step that is long beside its speed it turns about as if it
jumped, and steps that know its slope from afar overshoot what comes to roll or rest. There a step ends where the slip
is slow, and the next knows how steep friction is. What comes to rest or sets off within a step is no change, nor is the
turn of a joint that rubs: it mostly goes on, and a step that begins in the steep part holds it back.
"""

from __future__ import annotations

from ...contact.ground_forces import FRICTION as GROUND_FRICTION
from ...contact.ground_forces import SPEED as GROUND_SPEED
from ...numerics.compilation import for_compiled_callers
from ..late_kernels import CONTACTS, ROUTES
from ..resistance import FIRST, KIND, LAW, LOW, SECOND, STOP_DAMPING, STOP_STIFFNESS, TREE
from ..routing.columns import CREEP, FRICTION, RATE, STRAIN, TENSION, TOUCHES
from ..touch.columns import AWAY, NORMAL, POINT_COLUMNS, SPEED, STORED

MOST_PIECES = 4
"""Pieces of a step; what changes in the last of them is stepped across."""
HALVINGS = 16
"""Halvings of a step in the search for the instant of a change."""
MARGIN, IMPLICIT_MARGIN = 1.0 / 1024.0, 1.0 / 64.0
"""Part of a step by which steps end before a change, so that none of their stages is beyond it (of implicit ones the
second and third are ahead of it by the square of the step)."""
FORWARD, BACKWARD = -1, -2
"""Directions of slip under regularised friction; between them is 0, which is like either."""
SLOW = 0.5
"""Part of the speed of regularised friction below which its slip has no direction."""


@for_compiled_callers
def slip_direction(speed, slow):
    """Direction in which a contact slips at a speed, whose regularised friction has the speed `slow`."""
    if abs(speed) <= SLOW * slow:
        return 0
    return FORWARD if speed > 0.0 else BACKWARD


@for_compiled_callers
def stop_code(law, x, rate):
    """Which of its stops is pressed at position x and rate, and whether it pushes."""
    for side in range(2):
        sign = -1.0 if side == 0 else 1.0
        depth = sign * (x - law[LOW + side])
        if depth > 0.0:
            return 1 + 2 * side + (4 if law[STOP_STIFFNESS] * depth + law[STOP_DAMPING] * sign * rate > 0.0 else 0)
    return 0


@for_compiled_callers
def read_pattern(flat, q, v, work, pattern):
    """Fill pattern with what pushes, pulls and slips, from the forces at q and v that stand in work."""
    n = 0
    for c in range(work.tension.shape[0]):
        pattern[n] = (1 if work.strain[c] > 0.0 else 0) + (2 if work.tension[c] > 0.0 else 0)
        n += 1
    for r in range(flat.resistances.shape[0]):
        row = flat.resistances[r]
        pattern[n] = 0
        if int(row[KIND]) == TREE:
            pattern[n] = stop_code(row[LAW:], q[int(row[SECOND])], v[int(row[FIRST])])
        n += 1
    if flat.late_kernels[ROUTES] != 0:
        for e in range(work.route_state.shape[0]):
            own = work.route_state[e]
            code = 0
            if own[TOUCHES] != 0.0:
                code = 1
            if own[STRAIN] > 0.0:
                code += 2
            if own[TENSION] > 0.0:
                code += 16
            if flat.route_elements[e, FRICTION] > 0.0 and own[CREEP] == 0.0:
                if own[RATE] > 0.0:
                    code += 4
                elif own[RATE] < 0.0:
                    code += 8
            pattern[n] = code
            n += 1
    if flat.late_kernels[CONTACTS] != 0:
        points = work.contact_state.shape[0] - 1
        rubbing = flat.contact[points + GROUND_FRICTION // POINT_COLUMNS, GROUND_FRICTION % POINT_COLUMNS] > 0.0
        slow = flat.contact[points + GROUND_SPEED // POINT_COLUMNS, GROUND_SPEED % POINT_COLUMNS]
        for i in range(points):
            own = work.contact_state[i]
            pattern[n] = (1 if own[STORED] > 0.0 else 0) + (2 if own[NORMAL] > 0.0 else 0)
            square, along = 0.0, 0.0
            for k in range(3):
                square += own[AWAY + k] * own[AWAY + k]
                along += own[AWAY + k] * own[SPEED + k]
            for k in range(3):
                pattern[n + 1 + k] = 0
                if rubbing and own[NORMAL] > 0.0:
                    pattern[n + 1 + k] = slip_direction(own[SPEED + k] - along / square * own[AWAY + k], slow)
            n += 4


@for_compiled_callers
def differ(pattern, other):
    """Whether two patterns are not the same."""
    for n in range(pattern.shape[0]):
        here, there = pattern[n], other[n]
        if here != there and (here > 0 or there > 0 or here * there != 0):
            return True
    return False
