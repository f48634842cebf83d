"""Cables that sag under their own weight: the elastic catenary (Irvine, Cable Structures, 1981, section 1.3).

A cable has the rest length L, the weight w per rest length and the axial stiffness E A. (H, V) are the horizontal and
the vertical component of the tension at its start, V' = V + w L is the vertical component at its end, and T and T' are
the tensions at both ends. Its horizontal span x and its rise z are

    x = H L / E A + H / w asinh(D / H^2),   z = L (V + V') / 2 E A + L (V + V') / (T + T'),   D = V' T - V T',

The usual differences of asinh and square roots are written without cancellation, so that the result for a taut and
light cable is as exact as for a slack one. (x, z) is the gradient of the complementary energy with respect to (H, V).
This energy is convex, so that a damped Newton's method finds the unique solution from any start. The cable is
quasi-static: it has no inertia.
"""

from __future__ import annotations

import numpy as np

from ...numerics.compilation import for_compiled_callers
from ..point_forces import add_force
from .columns import (
    BODY,
    DRIVE,
    ELASTIC,
    FLOW,
    HIGHEST,
    LENGTH,
    LINE_MASS,
    PATH_LENGTH,
    REST,
    REST_NOW,
    STIFFNESS,
    STRAIN,
    TENSION,
    W_ENTRY,
    W_EXIT,
    W_IN,
    W_OUT,
)  # fmt: skip

MOST_ITERATIONS = 100
LIGHT = 1e-9
"""Weight of a cable relative to its tension, below which the cable counts as straight."""
UPRIGHT = 1e-9
"""Least horizontal span relative to the rest length; below it the cable hangs vertically."""


@for_compiled_callers
def crossed(level, rise, end_rise, weight):
    """D = V' T - V T', computed without cancellation; weight is V' - V."""
    tension, end = np.hypot(level, rise), np.hypot(level, end_rise)
    if rise * end_rise > 0.0:
        return level * level * weight * (rise + end_rise) / (end_rise * tension + rise * end)
    return end_rise * tension - rise * end


@for_compiled_callers
def catenary(across, up, rest, weight, stiffness, out):
    """Fill out (2,) with H and V [N] of a cable with a horizontal span `across` and a rise `up` [m].

    Args:
        rest: rest length [m]. weight: weight per rest length [N/m], above zero. stiffness: E A [N].

    Returns:
        Whether the solution converged.
    """
    reach = max(across, UPRIGHT * rest)
    chord = np.hypot(reach, up)
    if rest > chord:
        steep = np.sqrt(3.0 * max((rest * rest - up * up) / (reach * reach) - 1.0, 1e-12))
    else:
        steep = 0.2
    pull = stiffness * max(chord / rest - 1.0, 0.0)
    tanh = np.tanh(min(steep, 300.0))
    level = 0.5 * weight * reach / steep + pull * reach / chord
    rise = 0.5 * weight * (up / tanh - rest) + pull * up / chord
    worst = np.inf
    scale = max(chord, rest)
    for _ in range(MOST_ITERATIONS):
        end_rise = rise + weight * rest
        tension, end = np.hypot(level, rise), np.hypot(level, end_rise)
        cross = crossed(level, rise, end_rise, weight * rest)
        bend = np.arcsinh(cross / (level * level))
        total = rise + end_rise
        x = level * rest / stiffness + level / weight * bend - reach
        z = 0.5 * rest * total / stiffness + rest * total / (tension + end) - up
        worst = np.hypot(x, z)
        if worst <= 4e-15 * scale:
            break
        a = rest / stiffness + (bend - cross / (tension * end)) / weight
        b = -level * rest * total / ((tension + end) * tension * end)
        c = rest / stiffness + cross / (weight * tension * end)
        det = a * c - b * b
        if not det > 0.0:
            break
        step_level, step_rise = -(c * x - b * z) / det, -(a * z - b * x) / det
        part, better = 1.0, False
        for _ in range(40):
            new_level, new_rise = level + part * step_level, rise + part * step_rise
            if new_level > 0.1 * level:
                new_end = new_rise + weight * rest
                one, two = np.hypot(new_level, new_rise), np.hypot(new_level, new_end)
                other = crossed(new_level, new_rise, new_end, weight * rest)
                x = new_level * rest / stiffness + new_level / weight * np.arcsinh(other / (new_level * new_level))
                z = 0.5 * rest * (new_rise + new_end) / stiffness + rest * (new_rise + new_end) / (one + two)
                if np.hypot(x - reach, z - up) < worst:
                    better = True
                    break
            part *= 0.5
        if not better:
            break
        level, rise = new_level, new_rise
    out[0], out[1] = level, rise
    return worst <= 1e-9 * scale


@for_compiled_callers
def sagging_efforts(
    elements, cable, first, state, result, gravity, v_start, v_count, parent, dof_parent, jacobian, passive, scratch
):  # fmt: skip
    """Fill tensions and energy of a sagging cable between two points, and add its efforts to passive (nv,).

    Its energy is the elastic energy plus the gravitational energy of its weight, with zero height at the world origin.
    """
    a, b = state[first], state[first + 1]
    rest, stiffness = elements[first, REST] + a[FLOW] - b[FLOW], cable[STIFFNESS]
    pull = np.sqrt(gravity[0] ** 2 + gravity[1] ** 2 + gravity[2] ** 2)
    reach, chord = scratch[0], 0.0
    for k in range(3):
        reach[k] = b[W_ENTRY + k] - a[W_EXIT + k]
        chord += reach[k] * reach[k]
    chord = np.sqrt(chord)
    weight = cable[LINE_MASS] * pull
    straight = stiffness * max(chord / rest - 1.0, 0.0)
    result[ELASTIC] = result[HIGHEST] = 0.0
    a[REST_NOW] = rest
    if weight * rest <= LIGHT * straight or weight == 0.0:
        a[TENSION] = b[TENSION] = straight
        for k in range(3):
            a[W_OUT + k] = b[W_IN + k] = reach[k] / chord
        result[ELASTIC] = 0.5 * straight * max(chord - rest, 0.0)
        a[LENGTH] = chord
    else:
        up, level = 0.0, 0.0
        for k in range(3):
            up -= reach[k] * gravity[k] / pull
        across = scratch[1]
        for k in range(3):
            across[k] = reach[k] + up * gravity[k] / pull
            level += across[k] * across[k]
        level = np.sqrt(level)
        found = scratch[2]
        catenary(level, up, rest, weight, stiffness, found)
        force, rise = found[0], found[1]
        end_rise = rise + weight * rest
        one, two = np.hypot(force, rise), np.hypot(force, end_rise)
        a[TENSION], b[TENSION] = one, two
        height = 0.0
        for k in range(3):
            sideways = across[k] / level if level > 0.0 else 0.0
            a[W_OUT + k] = (force * sideways - rise * gravity[k] / pull) / one
            b[W_IN + k] = (force * sideways - end_rise * gravity[k] / pull) / two
            height -= a[W_EXIT + k] * gravity[k] / pull
        bend = force * force * np.arcsinh(crossed(force, rise, end_rise, weight * rest) / (force * force))
        pulled = 0.5 * (end_rise * two - rise * one + bend) / weight  # integral of the tension
        cubes = (end_rise**3 - rise**3) / 3.0
        result[ELASTIC] = 0.5 * (force * force * rest + cubes / weight) / stiffness
        result[ELASTIC] += weight * rest * height + pulled - one * rest
        result[ELASTIC] += 0.5 * (cubes - rise * rise * weight * rest) / (weight * stiffness)
        a[LENGTH] = rest + pulled / stiffness
    a[DRIVE], b[DRIVE] = a[TENSION], b[TENSION]
    a[STRAIN] = a[LENGTH] / rest - 1.0
    result[PATH_LENGTH], result[HIGHEST] = a[LENGTH], max(a[TENSION], b[TENSION])
    add_force(
        int(elements[first, BODY]), a[W_EXIT:], a[W_OUT:], a[TENSION], v_start, v_count, parent, dof_parent, jacobian,
        passive,
    )  # fmt: skip
    add_force(
        int(elements[first + 1, BODY]), b[W_ENTRY:], b[W_IN:], -b[TENSION], v_start, v_count, parent, dof_parent,
        jacobian, passive,
    )  # fmt: skip
