"""Whether the ground carries the inertia of a motion of a robot that only the ground holds.

The forces at the feet must balance weight and inertia of all bodies, sum f = sum m (p'' - g) and sum x f = sum p m (p''
- g) + d/dt (I w), within the friction cone (with a margin) and without pulling. A motion that is too fast makes feet
slide, which has no stiffness, or tips the robot over.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from tensegrity_dynamics.mechanisms.mechanism import Mechanism
from tensegrity_dynamics.numerics.rotations import rotation_vector
from tensegrity_dynamics.numerics.types import Array

from ..trajectories.time_scaling import TimeLaw

SAMPLES = 60
"""Number of times of a motion at which the forces of the feet are computed."""
SIDES = 8
"""Number of edges of the pyramid inside the friction cone."""
CERTAIN = 2.0
"""Factor on the inertia: sudden loads on feet that spring have twice their static effect."""


def standing_stretch(mechanism: Mechanism, path: Any, law: TimeLaw, friction_margin: float) -> float:
    """Factor by which the duration of a motion must increase so that the ground carries its inertia; 1 or less if it
    does.

    Args:
        path: path with `parameters` (k,), and `equilibria_on_it` whose `statics` are equilibria of the mechanism.
        friction_margin: fraction of the static friction that the feet must not use.
    """
    shapes = [each.statics for each in path.equilibria_on_it]
    knots = np.asarray(path.parameters, dtype=np.float64)
    ground = mechanism.ground
    if len(shapes) < 2 or ground is None or not law.duration > 0.0:
        return 0.0
    flat = mechanism.flat
    centres = np.array([s.positions + np.einsum("bij,bj->bi", s.rotations, flat.centre) for s in shapes])
    inertias = np.array([np.einsum("bij,bjk,blk->bil", s.rotations, flat.inertia, s.rotations) for s in shapes])
    turned = np.array([_turns(a.rotations, b.rotations) for a, b in itertools.pairwise(shapes)])
    rate = np.concatenate((np.gradient(centres, knots, axis=0), _at_knots(turned, knots)), axis=2)
    bend = np.gradient(rate, knots, axis=0)
    longest, times = 0.0, np.linspace(0.0, law.duration, SAMPLES)
    rates = np.array([law.at(float(time)) for time in times])
    pushes = np.gradient(rates[:, 1], times, edge_order=2)
    for (parameter, speed), push in zip(rates, pushes, strict=True):
        k = int(np.argmin(np.abs(knots - parameter)))
        feet = [point for points in shapes[k].contacts.values() for point in points]
        accelerated = CERTAIN * (rate[k] * push + bend[k] * speed**2)
        pulls = flat.mass[:, None] * accelerated[:, :3]
        spun = np.einsum("bij,bj->i", inertias[k], accelerated[:, 3:])
        moving = np.concatenate((pulls.sum(axis=0), np.cross(centres[k], pulls).sum(axis=0) + spun))
        # forces and moments at rest are those of the feet there, with all loads
        resting = np.sum([np.concatenate((foot[1], np.cross(foot[0], foot[1]))) for foot in feet], axis=0)
        share = _carried(np.array(feet), ground, resting, moving, friction_margin)
        longest = max(longest, float(np.sqrt(1.0 / share)) if share > 0.0 else np.inf)
    return longest


def _turns(before: Array, after: Array) -> Array:
    """(b, 3) rotation vectors in world axes between rotations (b, 3, 3)."""
    return np.array([rotation_vector(b @ a.T) for a, b in zip(before, after, strict=True)])


def _at_knots(turned: Array, knots: Array) -> Array:
    """(k, b, 3) rates of rotation at the knots from the rotations between them."""
    between = turned / np.diff(knots)[:, None, None]
    return np.concatenate((between[:1], 0.5 * (between[1:] + between[:-1]), between[-1:]))


def _carried(feet: Array, ground: Any, resting: Array, moving: Array, margin: float) -> float:
    """Largest part (at most 1e6) of the inertia wrench (6,) that feet (f, 2, 3) carry in addition to that at rest."""
    from scipy.optimize import linprog  # imported here to keep the package import fast

    if not np.linalg.norm(moving) > 1e-9 * np.linalg.norm(resting):
        return 1e6
    columns = []
    for point, force in feet:
        normal = force / np.linalg.norm(force) if ground.hills is not None else ground.normal
        first = np.cross(normal, [1.0, 0.0, 0.0] if abs(normal[0]) < 0.7 else [0.0, 1.0, 0.0])
        first /= np.linalg.norm(first)
        second = np.cross(normal, first)
        for angle in 2.0 * np.pi * np.arange(SIDES) / SIDES:
            edge = normal + (1.0 - margin) * ground.friction * (np.cos(angle) * first + np.sin(angle) * second)
            columns.append(np.concatenate((edge, np.cross(point, edge))))
    matrix = np.column_stack((*columns, -moving))
    scale = max(float(np.linalg.norm(resting)), 1e-12)
    cost = np.zeros(matrix.shape[1])
    cost[-1] = -1.0
    bounds = [(0.0, None)] * len(columns) + [(0.0, 1e6)]
    found = linprog(cost, A_eq=matrix / scale, b_eq=resting / scale, bounds=bounds, method="highs")
    return float(found.x[-1]) if found.status == 0 else 0.0
