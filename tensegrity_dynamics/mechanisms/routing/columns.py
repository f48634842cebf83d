"""Columns of the arrays of routed cables for compiled functions; one row for each element or cable.

Compiled functions pass on every array of a mechanism, so that a few wide arrays are faster than many narrow ones.
"""

from __future__ import annotations

POINT, PULLEY = 0, 1
"""Kinds of elements: a point (an end, a hole, a ring), or a pulley in a plane fixed to its body."""

(
    KIND, BODY, CENTRE, AXIS, MARK, RADIUS, SIDE, TURNING_Q, TURNING_V, FRICTION, HOLDS, BEFORE, REST, ANGLE,
    TURN_IN, TURN_OUT, WOUND, PITCH, LAYER_TURN, RAMP, LAYERS, WIDTH, ELEMENT_COLUMNS,
) = (0, 1, 2, 5, 8, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28)  # fmt: skip
"""Columns of an element: its kind; the body that carries it (-1: the world); centre, axis and mark (3,) on that body;
radius [m]; side (+1: the cable runs round the axis by the right-hand rule); index in q and in v of the joint that turns
it (-1: it does not turn); friction coefficient (inf: no slip); whether it holds the cable, so that the tension can
differ on both sides; row of the previous holding element; initial rest length [m] of the strand that begins here;
initial angle of the turning joint; initial turn [rad] of the cable from its entry point to the mark, and from the mark
to its exit point. For drums: initial wound turn [rad] (inf: unlimited), pitch of the layers [m], turn of one layer
[rad], turn over which the cable climbs to the next layer [rad], and number of layers. Last, the slip speed [m/s] that
regularises friction (0: exact law)."""

FIRST, COUNT, STIFFNESS, DAMPING, LOOP_ROW, LINE_MASS, CABLE_COLUMNS = range(7)
"""Columns of a cable: row of its first element; number of elements; E A [N]; mu A [N s]; first of the loop rows of its
strands if it is inextensible (-1: it is elastic); mass per rest length [kg/m] if it sags, else 0."""

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
step and at present, and its rate; wrap angle; centre, axis and radius in the world frame; entry and exit point of the
cable, and its directions there (unit vectors along the cable); turns to and from the mark; whether the cable touches;
rest length that has passed by rotation of the pulley, its rate, and its gradient with respect to the angle; gradient of
the radius with respect to the angle (drums with layers). Of the strand that begins here: length, rest length, strain,
their rates, tension, and the driving force of rest length into it (T + 1/2 E A strain^2 with damping). Slip direction
(-1, 0, 1); ratio of strains at the friction limit and its rate; scratch of the linear equations; rates of rotation of
the cable directions; driving force of slip at the last stored state (0: it stuck); whether an inextensible strand is
slack; scratch of its row; slip [m] in one step at the speed that regularises friction; imposed state of a contact,
independent of its bound (0: not imposed, STUCK, or -1 or 1: slipping)."""

STUCK = 2.0
"""Value of HELD for a contact with imposed sticking."""

EXCESS = RIGHT
"""Column of an inextensible strand that slips together with the strand before it: tension minus that of the first of
these strands."""

ELASTIC, DAMPED, RUBBED, PATH_LENGTH, HIGHEST, STATUS, WHERE, PERIOD, RESULT_COLUMNS = range(9)
"""Results of a cable: energy [J]; power dissipated by damping and by slip [W]; length of its path [m]; highest tension
[N]; status of its path, and number of the element where the path is not feasible; time since slip was stored last [s],
which regularised friction needs (0: it sticks below its bound)."""

TABLE_COLUMNS = 29
"""Number of sizes and addresses in the argument table of the kernels of routed cables."""

FINE, OVERLAP, FLEET, TURNED_TOO_FAR, LIFTED, DRUM_EMPTY, DRUM_FULL, USED_UP = range(8)
"""Values of STATUS."""
