"""Crossings of members: rods in contact with each other, and tendons and springs that pass through rods."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..contact.collision import distances, rod_pairs
from .structure import Structure

MOST_NAMED = 5


def crossings(structure: Structure, nodes: NDArray[np.float64]) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Pairs of rods whose capsules overlap, and pairs (cable, rod) with the cable axis inside the capsule.

    The nodes are (n, 3) [m]. Members that share a node do not count. Both lists are empty if the structure has no
    collision model.
    """
    if structure.collision is None:
        return [], []
    radius, held = structure.collision.radius, np.zeros(len(nodes), dtype=np.bool_)
    names = {tuple(pair): name for pair, name in zip(structure.members.tolist(), structure.member_names, strict=True)}
    rods, strings = structure.members[~structure.unilateral], structure.members[structure.unilateral]
    found = []
    for first, reach in ((rods, 2.0 * radius), (strings, radius)):
        pairs = rod_pairs(first, rods, held)
        near = pairs[distances(pairs, nodes) < reach]
        found.append([(names[i, j], names[k, m]) for i, j, k, m in near.tolist()])
    return found[0], found[1]


def describe_crossings(structure: Structure, nodes: NDArray[np.float64]) -> str:
    """Sentence on the crossings; "" if there are none."""
    rods, cables = crossings(structure, nodes)
    notes = []
    for pairs, verb in ((rods, "presses"), (cables, "runs through")):
        said = [f"{one} {verb} {other}" for one, other in pairs[:MOST_NAMED]]
        if len(pairs) > MOST_NAMED:
            said.append(f"{len(pairs) - MOST_NAMED} more")
        notes += said
    return ", ".join(notes)
