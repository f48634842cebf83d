"""Marker: one object that RViz draws, as plain arrays; the markers node only copies it into a message."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

NO_POINTS = np.zeros((0, 3))
NO_POINTS.setflags(write=False)


@dataclass(frozen=True, eq=False)
class Marker:
    """One marker.

    Args:
        namespace: what it shows; RViz switches namespaces on and off.
        number: its number within the namespace.
        kind: "cylinder", "box", "sphere", "mesh" or "text" at a pose; "lines", "strip" (one line through all points),
            "triangles" or "spheres" at points.
        scale: (3,) m; of lines and of spheres at points the first is the width.
        colours: (3,) for all or (k, 3) one per point, 0 to 1.
        points: (k, 3) m; empty for a marker with a pose. A marker with neither points nor a pose deletes the one
            that was drawn before.
        opacity: 0 to 1.
        position, quaternion: of a cylinder along z, a box or a sphere; (3,) m and (4,) wxyz.
        text: what a text says; its height is the third scale.
        resource: of a mesh, the address of its file; its scale is that of the file's unit.
    """

    namespace: str
    number: int
    kind: str
    scale: tuple[float, float, float]
    colours: NDArray[np.float64]
    points: NDArray[np.float64] = field(default_factory=lambda: NO_POINTS)
    opacity: float = 1.0
    position: NDArray[np.float64] | None = None
    quaternion: NDArray[np.float64] | None = None
    text: str = ""
    resource: str = ""
