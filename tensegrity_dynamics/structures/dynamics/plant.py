"""State of one simulation as one object for the compiled steps, which keeps the call overhead from Python small.

A function with tuples of some sixty arrays checks each of them in each call, which takes longer than the physics of a
small robot. A `Plant` passes a single reference.
"""

from __future__ import annotations

import numpy as np
from numba import types
from numba.experimental import structref

from ...numerics.compilation import compiled, compiled_part
from .point_masses import COMPLETED, DIVERGED

BAD_SET_POINT = 3
"""Status in addition to those of `point_masses`: a set point is not finite, and nothing was changed."""
NO_SET_POINTS = np.zeros(0)

FIELDS = ("network", "spools", "rods", "nodes", "velocities", "rest_lengths", "work", "stages")


@structref.register
class PlantType(types.StructRef):
    """Compiled type of `Plant`."""

    def preprocess_fields(self, fields):
        return tuple((name, types.unliteral(kind)) for name, kind in fields)


class Plant(structref.StructRefProxy):
    """References to the arrays of one simulation; `rods` is an empty tuple without minimal coordinates."""


structref.define_proxy(Plant, PlantType, list(FIELDS))


@compiled
def make_plant(network, spools, rods, nodes, velocities, rest_lengths, work, stages):
    return Plant(network, spools, rods, nodes, velocities, rest_lengths, work, stages)


@compiled_part
def take_set_points(plant, mode, set_points):
    """Set the set points of all actuators, if given; False if one is not finite."""
    spools = plant.spools
    for a in range(set_points.shape[0]):
        if not np.isfinite(set_points[a]):
            return False
    for a in range(set_points.shape[0]):
        spools.mode[a] = mode
        spools.target[a] = set_points[a]
        spools.lead[a] = 0.0
    return True


@compiled_part
def checked_end(nodes):
    """Status of completed steps: whether the final nodes are finite."""
    for i in range(nodes.shape[0]):
        for a in range(3):
            if not np.isfinite(nodes[i, a]):
                return DIVERGED
    return COMPLETED
