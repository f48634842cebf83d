"""Springs and dampers of joints over the time for which a command is held.

Dampers of light links can stop them in less than the period of a control loop, and stiff springs can turn them back.
Then the acceleration at the start of the period does not predict the motion until its end: v + h a is far beyond rest.
The mean acceleration over h s is that of a larger inertia (linearly implicit integration),

    (M + s h C + h^2 K / 4) a = F(q + h v / 2, v),   s = 1 / (1 - exp(-x)) - 1 / x,   x = h C / M

with K and C the stiffness and damping of joints and of the stops that they touch. For one coordinate with a damper it
is exact; with a spring alone it is the trapezoidal rule, which never gains energy. Slow joints (x << 1) keep their
inertia to second order in h. Friction is not included: it is limited, but its slope at standstill would act like an
unlimited damper.
"""

from __future__ import annotations

import numpy as np

from ...numerics.compilation import for_compiled_callers
from ..kinematics.body_kinematics import last_dof
from ..resistance import (
    DAMPING,
    FIRST,
    KIND,
    LAW,
    LOOP_BALL,
    LOW,
    SECOND,
    STIFFNESS,
    STOP_DAMPING,
    STOP_STIFFNESS,
    TREE,
    TREE_BALL,
)
from .joint_efforts import loop_motion


@for_compiled_callers
def held_inertia(law, x, held, mass):
    """Inertia that the law adds over `held` s at position x to a coordinate of inertia `mass`, which may be zero."""
    stiffness, damping = law[STIFFNESS], law[DAMPING]
    for side in range(2):
        sign = -1.0 if side == 0 else 1.0
        if sign * (x - law[LOW + side]) > 0.0:
            stiffness += law[STOP_STIFFNESS]
            damping += law[STOP_DAMPING]
    added = 0.25 * held * held * stiffness
    drag = held * damping
    if drag <= 0.0:
        return added
    if drag < 1e-3 * mass:
        return added + 0.5 * drag
    if drag > 30.0 * mass:
        return added + drag - mass
    return added + drag / (1.0 - np.exp(-drag / mass)) - mass


@for_compiled_callers
def hold_tree_resistances(flat, q, work, held):
    """Add the inertias of tree joints at q (nq,) to the mass matrix, over `held` s."""
    for r in range(flat.resistances.shape[0]):
        row = flat.resistances[r]
        kind, a, b = int(row[KIND]), int(row[FIRST]), int(row[SECOND])
        if kind == TREE:
            work.mass[a, a] += held_inertia(row[LAW:], q[b], held, work.mass[a, a])
        elif kind == TREE_BALL:
            for k in range(3):  # evaluated at zero rotation: ball joints have no stops
                work.mass[a + k, a + k] += held_inertia(row[LAW:], 0.0, held, work.mass[a + k, a + k])


@for_compiled_callers
def hold_loop_resistances(flat, work, reduction, n, held):
    """Add the inertias of loop joints to the reduced mass (n, n), lower triangle, and to its right side, over `held` s.

    They count as fast (s = 1), since no coordinate has their inertia alone.
    """
    for r in range(flat.resistances.shape[0]):
        row = flat.resistances[r]
        for axis in range(loop_axes(row)):
            added = held_inertia(row[LAW:], loop_wrench(row, axis, work), held, 0.0)
            if added > 0.0:
                bias = loop_line(flat, row, work, reduction, n)
                line = reduction.product[0]
                for i in range(n):
                    reduction.right[i] -= added * line[i] * bias
                    for j in range(i + 1):
                        reduction.reduced[i, j] += added * line[i] * line[j]


@for_compiled_callers
def loop_axes(row):
    """Number of motions of a loop joint that a resistance law opposes; 0 for the laws of tree joints."""
    kind = int(row[KIND])
    if kind == TREE or kind == TREE_BALL:
        return 0
    return 3 if kind == LOOP_BALL else 1


@for_compiled_callers
def loop_wrench(row, axis, work):
    """Fill work.direction (6,) with the unit wrench against one of these motions; returns the position [rad or m]."""
    if int(row[KIND]) != LOOP_BALL:
        return loop_motion(row, work)
    for k in range(6):
        work.direction[k] = 1.0 if k == axis else 0.0
    return 0.0


@for_compiled_callers
def loop_line(flat, row, work, reduction, n):
    """Fill reduction.product[0, :n] with the derivatives of the rate of a loop joint along work.direction with respect
    to the rates of the independent coordinates; returns the contribution of the bias to its acceleration."""
    line, basis = reduction.product[0], reduction.basis
    for i in range(n):
        line[i] = 0.0
    bias = 0.0
    for end in range(2):
        sign = -1.0 if end == 0 else 1.0
        d = last_dof(flat, int(row[FIRST]) if end == 0 else int(row[SECOND]))
        while d >= 0:
            entry = 0.0
            for k in range(6):
                entry += sign * work.direction[k] * work.jacobian[d, k]
            bias += entry * reduction.offset[d]
            for m in range(reduction.basis_filled[d]):
                i = reduction.basis_columns[d, m]
                line[i] += entry * basis[d, i]
            d = flat.dof_parent[d]
    return bias
