"""Columns of the arrays that hold the points at which a mechanism may touch its ground; one row for each."""

from __future__ import annotations

BODY, CENTRE, RADIUS, POINT_COLUMNS = 0, 1, 4, 5
"""Of a point: the body, centre (3,) m on it, and radius [m] of the ball around it, zero for points."""

(
    POINT, FORCE, NORMAL, DEPTH, STORED, DAMPED, RUBBED, AWAY, OUT, SPEED, CENTRE_NOW, CONTACT_COLUMNS,
) = (0, 3, 6, 7, 8, 9, 10, 11, 14, 20, 23, 26)  # fmt: skip
"""State of a point: where the ground acts (3,) m and its force (3,) N, in the world; normal force [N], depth [m],
energy stored [J], power lost in damping and friction [W]; scratch of the laws: minus the gradient of the depth, their
other results, velocity, centre. One further row has the sums of energy and powers, and in FORCE a direction along which
the ground carries at rest (see `forces`)."""
