"""Columns of the arrays of contact points of a mechanism; one row for each point."""

from __future__ import annotations

BODY, CENTRE, RADIUS, POINT_COLUMNS = 0, 1, 4, 5
"""Columns of a point: body, centre (3,) on the body [m], and radius of the sphere [m], zero for points."""

(
    POINT, FORCE, NORMAL, DEPTH, STORED, DAMPED, RUBBED, AWAY, OUT, SPEED, CENTRE_NOW, CONTACT_COLUMNS,
) = (0, 3, 6, 7, 8, 9, 10, 11, 14, 20, 23, 26)  # fmt: skip
"""State of a point: point of action (3,) [m] and force (3,) [N] of the ground, in the world; normal force [N];
penetration depth [m]; elastic energy [J]; power dissipated by damping and by friction [W]; scratch of the laws:
negative gradient of the depth, their other results, velocity, centre. One further row has the sums of energy and
powers, and in FORCE the direction of the ground forces at rest (see `forces`)."""
