"""Columns of the arrays that hold routed cables, for compiled functions; one row for each element or cable.

Compiled functions hand over every array of a mechanism, so that a few wide arrays are better than many.
"""

from __future__ import annotations

POINT, PULLEY = 0, 1
"""Kinds of elements: a point (an end, a hole, a ring), a pulley in a plane of its body."""

(
    KIND, BODY, CENTRE, AXIS, MARK, RADIUS, SIDE, TURNING_Q, TURNING_V, FRICTION, HOLDS, BEFORE, REST, ANGLE,
    TURN_IN, TURN_OUT, WOUND, PITCH, LAYER_TURN, RAMP, LAYERS, WIDTH, ELEMENT_COLUMNS,
) = (0, 1, 2, 5, 8, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28)  # fmt: skip
"""Of an element: its kind; the body that carries it (-1: the world); centre, axis and mark (3,) on that body; radius;
side (+1: the cable runs round the axis by the right-hand rule); index in q and in v of the joint that turns it (-1: it
does not turn); friction coefficient (inf: no slip); whether it holds the cable, so that the tension may differ on both
sides; row of the holding element before; rest length at the start of the strand that begins here; angle of the turning
joint at the start; turn [rad] of the cable from where it arrives to the mark, and from the mark to where it leaves, at
the start; of drums the turn wound on at the start (inf: without end), pitch of the layers [m], turn of one layer [rad],
turn over which the cable climbs to the next one, and number of layers; speed of slip [m/s] that regularises friction
(0: the exact law)."""

FIRST, COUNT, STIFFNESS, DAMPING, LOOP_ROW, LINE_MASS, CABLE_COLUMNS = range(7)
"""Of a cable: row of its first element, number of elements, E A [N], mu A [N s]; of one that does not stretch the first
of the loop rows that hold its strands (-1: it stretches); of one that sags its mass per rest length [kg/m], else 0."""

(
    SLIP, TRIAL, RATE, WRAP, W_CENTRE, W_AXIS, W_RADIUS, W_ENTRY, W_EXIT, W_IN, W_OUT, W_TURN_IN, W_TURN_OUT, TOUCHES,
    FLOW, FLOW_RATE, GRADIENT, CLIMB, LENGTH, LENGTH_RATE, REST_NOW, REST_RATE, STRAIN, STRAIN_RATE, TENSION, DRIVE,
    MODE, RATIO, RATIO_RATE, DIAGONAL, RIGHT, LOWER, UPPER, SPIN_IN, SPIN_OUT, PUSH, SLACK, UNIT, CREEP,
    HELD, STATE_COLUMNS,
) = (
    0, 1, 2, 3, 4, 7, 10, 11, 14, 17, 20, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41,
    42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52,
)  # fmt: skip
"""State and results of an element: rest length [m] that has slipped over it towards the end of the cable, at the last
step and now, and its rate; wrap angle; centre, axis and radius in the world; where the cable arrives and leaves, and
its directions there (unit, along the cable); turns to and from the mark; whether the cable touches; rest length that
has passed by turning, its rate, and its gradient by the angle; gradient of the length by the angle through the radius;
of the strand that begins here: length, rest length, strain, their rates, tension, and what drives rest length into it
(T + 1/2 E A strain^2 with damping); how it slips (-1, 0, 1); ratio of strains at the limit and its rate; scratch of the
linear equations; how fast the directions turn; what slip was driven by when it was kept last (0: it stuck); whether a
strand that does not stretch hangs slack; scratch of its row; m of slip in a step at the speed that regularises
friction; how a contact is held, whatever its bound says (0: it is not held, STUCK, or -1 or 1: it slips)."""

STUCK = 2.0
"""Value of HELD of a contact that sticks."""

EXCESS = RIGHT
"""Of a strand without stretch that slips along with the one before it: its tension beyond that of the first of them."""

ELASTIC, DAMPED, RUBBED, PATH_LENGTH, HIGHEST, STATUS, WHERE, PERIOD, RESULT_COLUMNS = range(9)
"""Of a cable: energy [J], power lost in damping and in slip [W], length of its path [m], highest tension [N], whether
it can lie as its route says, and at which element it cannot; s since slip was kept last, which regularised friction
asks for (0: it sticks below its bound)."""

TABLE_COLUMNS = 29
"""Sizes and addresses that the kernels of routed cables are called with."""

FINE, OVERLAP, FLEET, TURNED_TOO_FAR, LIFTED, DRUM_EMPTY, DRUM_FULL = range(7)
"""Values of STATUS."""
