"""Forces of routed cables on the bodies and joints of a mechanism, with their energies.

A strand between two holding elements has the length L(q) and the rest length l. Its strain is L / l - 1, and its
tension is T = E A strain + mu A strain', limited to values of at least zero. The force -T dL/dq acts on the bodies: it
is the pull of the cable at its exit and entry points. A joint that turns and moves the rest length f(angle) carries the
effort

    (T + 1/2 E A strain^2) df/dangle,

the gradient of the elastic energy 1/2 E A strain^2 l: the cable on a pulley or drum is unstrained, and its energy is
transferred to the shaft (000, 3.1.9 neglects this term). So a motion without slip and damping conserves energy.
"""

from __future__ import annotations

from ...numerics.compilation import allocation_free, for_compiled_callers
from ..point_forces import add_force
from .catenary import sagging_efforts
from .columns import (
    BEFORE,
    BODY,
    CLIMB,
    COUNT,
    CREEP,
    DAMPED,
    DRIVE,
    ELASTIC,
    EXCESS,
    FINE,
    FIRST,
    GRADIENT,
    HIGHEST,
    HOLDS,
    LINE_MASS,
    LOOP_ROW,
    PERIOD,
    PUSH,
    RATE,
    REST_NOW,
    RUBBED,
    SLIP,
    STATUS,
    STIFFNESS,
    STRAIN,
    STRAIN_RATE,
    TENSION,
    TRIAL,
    TURNING_V,
    USED_UP,
    W_ENTRY,
    W_EXIT,
    W_IN,
    W_OUT,
    W_TURN_IN,
    W_TURN_OUT,
    WHERE,
    WIDTH,
)  # fmt: skip
from .creep import find_creep, pull
from .path import trace
from .slip import find_rates, find_slip


@for_compiled_callers
def find_tensions(elements, cable, first, last, state, result):
    """Fill tensions of the strands, driving forces of rest length into them, and energies."""
    result[ELASTIC] = result[DAMPED] = result[RUBBED] = result[HIGHEST] = 0.0
    for e in range(first, last):
        if e > first and elements[e, HOLDS] == 0.0:
            continue
        own = state[e]
        if own[REST_NOW] <= 0.0 and result[STATUS] == FINE:
            result[STATUS], result[WHERE] = USED_UP, e - first
        pull(cable, own)
        if own[STRAIN] > 0.0:
            elastic = cable[STIFFNESS] * own[STRAIN]
            result[ELASTIC] += 0.5 * elastic * own[STRAIN] * own[REST_NOW]
            result[DAMPED] += (own[TENSION] - elastic) * own[REST_NOW] * own[STRAIN_RATE]
        result[HIGHEST] = max(result[HIGHEST], own[TENSION])
        if e > first:
            result[RUBBED] += own[RATE] * (own[DRIVE] - state[int(elements[e, BEFORE]), DRIVE])


@for_compiled_callers
def pull_bodies(
    elements, first, last, state, tension, drive, v_start, v_count, parent, dof_parent, jacobian, efforts
):  # fmt: skip
    """Add the forces of one cable on bodies and joints to efforts (nv,); tension and drive are columns of its state."""
    strand = first
    for e in range(first, last + 1):
        row, own = elements[e], state[e]
        body, before = int(row[BODY]), strand
        if e > first and row[HOLDS] != 0.0 and e < last:
            strand = e
        if e > first:
            add_force(
                body, own[W_ENTRY:], own[W_IN:], -state[before, tension], v_start, v_count, parent, dof_parent,
                jacobian, efforts,
            )  # fmt: skip
        if e < last:
            add_force(
                body, own[W_EXIT:], own[W_OUT:], state[strand, tension], v_start, v_count, parent, dof_parent,
                jacobian, efforts,
            )  # fmt: skip
        turning = int(row[TURNING_V])
        if turning < 0:
            continue
        effort = 0.0
        if e > first:
            effort -= own[GRADIENT] * state[before, drive] + own[CLIMB] * own[W_TURN_IN] * state[before, tension]
        if e < last:
            effort += own[GRADIENT] * state[strand, drive] - own[CLIMB] * own[W_TURN_OUT] * state[strand, tension]
        efforts[turning] += effort


@for_compiled_callers
def routed_efforts(
    elements, cables, q, v, rotation, position, velocity, jacobian, v_start, v_count, parent, dof_parent, gravity,
    state, results, passive, scratch,
):  # fmt: skip
    """Fill paths, slip, strains and tensions of all routed cables and add their efforts to passive (nv,)."""
    for c in range(cables.shape[0]):
        cable, result = cables[c], results[c]
        first, count = int(cable[FIRST]), int(cable[COUNT])
        last = first + count - 1
        if cable[LOOP_ROW] >= 0.0:  # loop constraints carry its tension, except the part that friction adds
            slips = False
            for e in range(first + 1, last):
                slips = slips or state[e, EXCESS] != 0.0
            if slips:
                pull_bodies(
                    elements, first, last, state, EXCESS, EXCESS, v_start, v_count, parent, dof_parent, jacobian,
                    passive,
                )  # fmt: skip
            continue
        trace(elements, first, count, q, v, rotation, position, velocity, state, result, scratch)
        if cable[LINE_MASS] > 0.0:
            sagging_efforts(
                elements, cable, first, state, result, gravity, v_start, v_count, parent, dof_parent, jacobian, passive,
                scratch,
            )  # fmt: skip
            result[DAMPED] = result[RUBBED] = 0.0
            continue
        creeps = False
        for e in range(first + 1, last):
            state[e, CREEP] = elements[e, WIDTH] * result[PERIOD]
            creeps = creeps or state[e, CREEP] > 0.0
        if creeps:
            find_creep(elements, cable, first, last, state, result[PERIOD])
        else:
            find_slip(elements, first, last, state)
            find_rates(elements, first, last, state)
        find_tensions(elements, cable, first, last, state, result)
        pull_bodies(
            elements, first, last, state, TENSION, DRIVE, v_start, v_count, parent, dof_parent, jacobian, passive
        )


@allocation_free
def keep_slip(elements, cables, state):
    """Store the present slip as the new reference; returns the dissipated energy [J] since the last call."""
    taken = 0.0
    for c in range(cables.shape[0]):
        first = int(cables[c, FIRST])
        for e in range(first + 1, first + int(cables[c, COUNT]) - 1):
            if elements[e, HOLDS] != 0.0:
                own = state[e]
                moved = own[TRIAL] - own[SLIP]
                push = own[DRIVE] - state[int(elements[e, BEFORE]), DRIVE] if moved != 0.0 else 0.0
                taken += 0.5 * moved * (push + (own[PUSH] if own[PUSH] * moved > 0.0 else push))
                own[SLIP], own[PUSH] = own[TRIAL], push
    return taken
