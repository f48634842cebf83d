"""Pattern of active contacts, cable forces and slips at a state of a mechanism, so that steps can end at its changes.

The forces of a mechanism are smooth except at certain events: a cable becomes slack or taut, a stop or the ground
begins or ceases to push, a cable touches a pulley or leaves it, or a cable begins to slip or sticks. There a force has
a kink, or it jumps if a damper acts. A step across a kink has an error of order (step)^2, and a step across a jump has
an error of order (step), independent of the order of the method. A compressed stop or a stretched cable without force,
because its damper cancels the elastic force, is also part of the pattern: the power of the damper has a kink there.

Regularised friction is smooth. But if a step is long compared with the regularisation speed, the friction reverses
within the step like a jump. Steps that use its slope far from zero speed overshoot the transition to rolling or rest,
and push on after a reversal; steps that begin in its steep part hold back what starts to move. Friction of the ground:
a step ends at a low slip speed, so that the next step uses the steep slope. A contact that comes to rest or starts to
move within a step is no change of the pattern, since the motion usually continues. Friction of joints and gears: a step
ends where the direction reverses, and where a joint that was held leaves the steep part of the friction; a joint that
comes to rest is no change.
"""

from __future__ import annotations

from ...contact.ground_forces import FRICTION as GROUND_FRICTION
from ...contact.ground_forces import SPEED as GROUND_SPEED
from ...numerics.compilation import for_compiled_callers
from ..dynamics.joint_efforts import POSITION, RATE
from ..late_kernels import CONTACTS, ROUTES
from ..resistance import EFFICIENCY, LAW, LOW, STOP_DAMPING, STOP_STIFFNESS
from ..resistance import FRICTION as JOINT_FRICTION
from ..resistance import SPEED as JOINT_SPEED
from ..routing.columns import COUNT, CREEP, FRICTION, LOOP_ROW, STRAIN, TENSION, TOUCHES
from ..routing.columns import FIRST as ROUTE_FIRST
from ..routing.columns import RATE as SLIP_RATE
from ..touch.columns import AWAY, NORMAL, POINT_COLUMNS, SPEED, STORED

MOST_PIECES = 4
"""Largest number of pieces of a step; changes in the last piece are not resolved."""
HALVINGS, SMOOTH_HALVINGS = 16, 10
"""Number of bisections of a step in the search for the instant of a change; the second of one of regularised friction,
which is smooth."""
MARGIN, IMPLICIT_MARGIN = 1.0 / 1024.0, 1.0 / 64.0
"""Margin before a change at which a step ends, as a fraction of the step, so that none of its stages lies beyond the
change. It is larger for implicit steps, whose second and third stage lie ahead of the end by the square of the step."""
FORWARD, BACKWARD, HELD = -1, -2, -3
"""Directions of slip under regularised friction. 0 between them counts as equal to both; a joint that comes to be held
is no change."""
SLOW, STEEP = 0.5, 4.0
"""Multiples of the regularisation speed of friction, below which slip on the ground has no direction, and below which
friction holds a joint: its slope there is more than a thousandth of that at rest."""


@for_compiled_callers
def slip_direction(speed, least):
    """Slip direction at a speed [m/s or rad/s], 0 up to the speed `least`."""
    if abs(speed) <= least:
        return 0
    return FORWARD if speed > 0.0 else BACKWARD


@for_compiled_callers
def stop_code(law, x, rate):
    """Code of the compressed stop at position x and rate x', and whether it exerts a force; 0 without."""
    for side in range(2):
        sign = -1.0 if side == 0 else 1.0
        depth = sign * (x - law[LOW + side])
        if depth > 0.0:
            return 1 + 2 * side + (4 if law[STOP_STIFFNESS] * depth + law[STOP_DAMPING] * sign * rate > 0.0 else 0)
    return 0


@for_compiled_callers
def read_pattern(flat, work, pattern):
    """Fill pattern with active contacts, cable forces and slips, from the forces and motions stored in work."""
    n = 0
    for c in range(work.tension.shape[0]):
        pattern[n] = (1 if work.strain[c] > 0.0 else 0) + (2 if work.tension[c] > 0.0 else 0)
        n += 1
    for r in range(flat.resistances.shape[0]):
        law = flat.resistances[r, LAW:]
        rate = work.motion[r, RATE]
        pattern[n] = stop_code(law, work.motion[r, POSITION], rate)
        pattern[n + 1] = 0
        if law[JOINT_FRICTION] > 0.0 or law[EFFICIENCY] < 1.0:
            pattern[n + 1] = slip_direction(rate, STEEP * law[JOINT_SPEED]) or HELD
        n += 2
    if flat.late_kernels[ROUTES] != 0:
        for c in range(flat.routed_cables.shape[0]):
            first, rigid = int(flat.routed_cables[c, ROUTE_FIRST]), flat.routed_cables[c, LOOP_ROW] >= 0.0
            for e in range(first, first + int(flat.routed_cables[c, COUNT])):
                own = work.route_state[e]
                code = 1 if own[TOUCHES] != 0.0 else 0
                if not rigid:  # otherwise `rigid_routes` finds the changes, and the strain is a rounding error
                    if own[STRAIN] > 0.0:
                        code += 2
                    if own[TENSION] > 0.0:
                        code += 16
                    if flat.route_elements[e, FRICTION] > 0.0 and own[CREEP] == 0.0:
                        if own[SLIP_RATE] > 0.0:
                            code += 4
                        elif own[SLIP_RATE] < 0.0:
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
                    pattern[n + 1 + k] = slip_direction(own[SPEED + k] - along / square * own[AWAY + k], SLOW * slow)
            n += 4


@for_compiled_callers
def differ(pattern, other):
    """Number of bisections that the change from a pattern to another one takes; 0: they are equal."""
    found = 0
    for n in range(pattern.shape[0]):
        here, there = pattern[n], other[n]
        if here != there and (here > 0 or there > 0):
            return HALVINGS
        if here != there and there != HELD and here * there != 0:
            found = SMOOTH_HALVINGS
    return found
