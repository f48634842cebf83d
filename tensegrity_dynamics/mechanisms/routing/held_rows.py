"""Strands of routed cables as equation rows: accelerations of their strains, and generalised forces per unit tension.

A strand has the length L(q) and the rest length l(q), which changes with the joints that turn with the cable. Its
strain is e = L / l - 1, and

    e'' = (L'' - (1 + e) l'' - 2 e' l') / l.

A tension T exerts the generalised force -T (dL/dq - (1 + e / 2) dl/dq) on the coordinates (`routing.efforts`). L'' at
constant rates of the coordinates is that of the straight segments (`rigid_rows`). The contribution of a drum whose
cable climbs from layer to layer is neglected.
"""

from __future__ import annotations

from ...numerics.compilation import for_compiled_callers
from .columns import (
    COUNT,
    DRIVE,
    FINE,
    FIRST,
    HOLDS,
    LIFTED,
    REST_NOW,
    REST_RATE,
    STATUS,
    STRAIN,
    STRAIN_RATE,
    TENSION,
    TOUCHES,
    UNIT,
    UPPER,
    WHERE,
)  # fmt: skip
from .efforts import pull_bodies
from .path import next_touching
from .rigid_rows import line_bias

NONE = UPPER
"""Column that is scratch elsewhere and zero in this module."""


@for_compiled_callers
def held_rows(
    elements, cables, strands, velocity, acceleration, jacobian, v_start, v_count, parent, dof_parent, gravity, state,
    results, scratch, rate, rows, pulls, bias, efforts,
):  # fmt: skip
    """Fill rows (s, nv), bias (s,) and pulls (s, nv) of strands, and subtract the forces of these strands from efforts.

    Rows and bias give the accelerations of the strains, pulls are the generalised forces per unit tension. The inputs
    are the results of `routed_efforts`; efforts has the shape (nv,).

    Args:
        strands: (s, 2) number of the cable, and row of the element at which the strand begins.
    """
    for s in range(strands.shape[0]):
        cable, strand = int(strands[s, 0]), int(strands[s, 1])
        first, result = int(cables[cable, FIRST]), results[cable]
        last = first + int(cables[cable, COUNT]) - 1
        end = strand + 1
        while end < last and elements[end, HOLDS] == 0.0:
            end += 1
        for e in range(first, last + 1):
            state[e, UNIT] = state[e, NONE] = 0.0
            if state[e, TOUCHES] == 0.0 and elements[e, HOLDS] != 0.0 and result[STATUS] == FINE:
                result[STATUS], result[WHERE] = LIFTED, e - first
        own, along, turned = state[strand], rows[s], pulls[s]
        for d in range(rows.shape[1]):
            along[d] = turned[d] = 0.0
        own[UNIT] = 1.0
        pull_bodies(elements, first, last, state, UNIT, NONE, v_start, v_count, parent, dof_parent, jacobian, along)
        pull_bodies(elements, first, last, state, NONE, UNIT, v_start, v_count, parent, dof_parent, jacobian, turned)
        own[UNIT] = 0.0
        strain, rest = own[STRAIN], own[REST_NOW]
        for d in range(rows.shape[1]):
            length, wound = -along[d], turned[d]
            efforts[d] += own[TENSION] * length - own[DRIVE] * wound
            along[d] = (length - (1.0 + strain) * wound) / rest
            turned[d] = length - (1.0 + 0.5 * strain) * wound
        total, i = -2.0 * own[STRAIN_RATE] * own[REST_RATE], strand
        while i < end:
            j = next_touching(state, i, last)
            total += line_bias(elements, i, j, velocity, acceleration, gravity, state, scratch, rate)
            i = j
        bias[s] = total / rest
