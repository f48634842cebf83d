"""Marker: one object displayed by RViz, as plain arrays; the markers node copies it to a message."""

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
        namespace: kind of object; RViz can switch namespaces on and off.
        number: its number within the namespace.
        kind: "cylinder", "box", "sphere", "mesh" or "text" at a pose; "lines", "strip" (one line through all points),
            "triangles" or "spheres" at points.
        scale: (3,) m; for lines and for spheres at points, the first value is the width.
        colours: (3,) for all or (k, 3) one per point, 0 to 1.
        points: (k, 3) m; empty for a marker with a pose. A marker without points and pose deletes the previous one.
        opacity: 0 to 1.
        position, quaternion: pose of a cylinder along z, a box or a sphere; (3,) m and (4,) wxyz.
        text: displayed text; its height is the third scale.
        resource: address of the file of a mesh; its scale is that of the unit of the file.
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
