"""Descriptions of motions of a structure: the nodes that move most, and the motion of the output."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..node_frame import NodeFrame
from ..structure import Structure

AXES = ("x", "y", "z")


def describe_motion(
    structure: Structure, nodes: NDArray[np.float64], direction: NDArray[np.float64], output: NodeFrame | None = None
) -> str:
    """Clause that describes a motion: translation and rotation of the output, or the axes of the largest node motions.

    Args:
        nodes: (n, 3) m. direction: (n, 3) motion of the nodes; its size has no effect.
        output: frame whose motion is described, or None.
    """
    sizes = np.linalg.norm(direction, axis=1)
    largest = float(sizes.max(initial=0.0))
    if largest <= 0.0:
        return "nothing moves"
    order = np.argsort(-sizes, kind="stable")
    movers = [structure.node_names[i] for i in order if sizes[i] > 0.9 * largest]
    listed = ", ".join(movers[:4]) + (f" and {len(movers) - 4} more" if len(movers) > 4 else "")
    verb = "moves" if len(movers) == 1 else "move"
    if output is None:
        first = direction[order[0]] / sizes[order[0]]
        main = " and ".join(AXES[a] for a in np.flatnonzero(np.abs(first) > 0.5))
        return f"{listed} {verb} most ({structure.node_names[order[0]]} along {main})"
    twist = output.jacobian(nodes) @ (direction / largest).ravel()
    centre = nodes[output.nodes].mean(axis=0)
    reach = float(np.linalg.norm(nodes[output.nodes] - centre, axis=1).max())
    shift, turn = twist[:3], twist[3:]
    parts = []
    if np.linalg.norm(shift) > 0.05:
        parts.append(f"shifts {_mostly(shift)} by {np.linalg.norm(shift):.2f} mm")
    if reach > 0.0 and np.linalg.norm(turn) * reach > 0.05:
        parts.append(f"turns {_mostly(turn, 'about')} by {1e-3 * np.degrees(np.linalg.norm(turn)):.3g} deg")
    does = " and ".join(parts) or "hardly moves"
    return f"{output.name} {does} per mm of the largest node motion; {listed} {verb} most"


def _mostly(vector: NDArray[np.float64], word: str = "along") -> str:
    unit = vector / np.linalg.norm(vector)
    main = np.flatnonzero(np.abs(unit) > 0.95)
    if main.size:
        return f"{word} {AXES[main[0]]}"
    return f"{word} (" + " ".join(f"{x:.2f}" for x in unit) + ")"
