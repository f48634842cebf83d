"""Support of a structure: feet, support polygon, stability margin, and tipping angle over each edge.

Projected along the load, the centre of mass of a standing structure is within the polygon of the feet. Rotated about an
edge of the polygon as one rigid body, the structure tips when the centre of mass is above this edge. With the height h
of the centre of mass above the edge and its distance d from it, both perpendicular to the edge, the tipping angle is
atan(d / h).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import TensegrityError
from ..form_finding.equilibrium import StructureEquilibrium
from ..form_finding.equilibrium_solver import StructureEquilibriumSolver


@dataclass(frozen=True, eq=False)
class Support:
    """Support of a structure.

    Attributes:
        feet: names of the nodes with ground forces, in the order of the support polygon, if there is one.
        forces: (k, 3) forces on the feet [N]. carried: their sum along the load [N].
        edges: pairs of feet, the edges of the support polygon; empty if all feet are on one line.
        tipping: tilt angle over each edge at which the structure tips as one rigid body [rad].
        margin: least distance of the centre of mass from an edge, projected along the load [m]; negative outside.
        friction: largest friction coefficient required by a foot.
    """

    feet: tuple[str, ...]
    forces: NDArray[np.float64]
    carried: float
    edges: tuple[tuple[str, str], ...]
    tipping: NDArray[np.float64]
    margin: float
    friction: float

    def rows(self, sagging: Sequence[float] = ()) -> list[tuple[str, str]]:
        """Rows of a report; sagging: `tipping_slope` over each edge [rad]."""
        if not self.feet:
            return [("stands on", "nothing: no node touches the ground")]
        pushed = np.linalg.norm(self.forces, axis=1)
        feet = ", ".join(f"{name} ({force:.4g} N)" for name, force in zip(self.feet, pushed, strict=True))
        rows = [("stands on", f"{feet}; together {self.carried:.5g} N")]
        if self.edges:
            tilts = ", ".join(
                f"{first}-{second} {np.degrees(angle):.2f}"
                for (first, second), angle in zip(self.edges, self.tipping, strict=True)
            )
            rows.append(("  margin", f"{1e3 * self.margin:.4g} mm from the nearest edge to the centre of mass"))
            rows.append(("  tips over", f"{tilts} deg as one body"))
            if len(sagging):
                slopes = ", ".join(f"{np.degrees(angle):.2f}" for angle in sagging)
                rows.append(("    with its sag", f"{slopes} deg, as far as friction holds"))
        rows.append(("  friction needed", f"{self.friction:.3g}"))
        return rows

    def figures(self) -> dict[str, Any]:
        """Data of the support for programs."""
        return {
            "feet": list(self.feet),
            "forces_N": dict(zip(self.feet, self.forces.tolist(), strict=True)),
            "carried_N": self.carried,
            "edges": [list(edge) for edge in self.edges],
            "tipping_angles_deg": np.degrees(self.tipping).tolist(),
            "margin_m": self.margin if np.isfinite(self.margin) else None,
            "friction_needed": self.friction,
        }


def find_support(shape: StructureEquilibrium) -> Support | None:
    """Support of an equilibrium; None for a structure without ground."""
    structure, ground = shape.structure, shape.structure.ground
    if ground is None or shape.contacts is None:
        return None
    sizes = np.linalg.norm(shape.contacts, axis=1)
    # on soft ground many nodes have small ground forces
    feet = np.flatnonzero(sizes > 1e-3 * float(sizes.max(initial=0.0)))
    total = shape.contacts.sum(axis=0)
    carried = float(np.linalg.norm(total))
    up = total / carried if carried > 0.0 else np.array([0.0, 0.0, 1.0])
    normal = ground.normal
    along = shape.contacts[feet] @ normal
    across = np.linalg.norm(shape.contacts[feet] - along[:, None] * normal, axis=1)
    friction = float(np.max(across / np.maximum(along, 1e-300), initial=0.0)) if ground.hills is None else np.nan
    # the resultant ground force passes through the centre of the load (weight and other forces)
    masses = structure.lumped_masses()
    centre = (masses[:, None] * shape.nodes).sum(axis=0) / masses.sum() if masses.any() else shape.nodes.mean(axis=0)
    order = _hull(shape.nodes[feet], up)
    corners = feet[order]
    edges, angles, distances = [], [], []
    middle = shape.nodes[corners].mean(axis=0) if corners.size else centre
    for i, j in zip(corners, np.roll(corners, -1), strict=True) if corners.size > 2 else ():
        edge = shape.nodes[j] - shape.nodes[i]
        edge = edge / np.linalg.norm(edge)
        inward = np.cross(up, edge)
        inward = inward / np.linalg.norm(inward)
        if inward @ (middle - shape.nodes[i]) < 0.0:
            inward = -inward
        over = np.cross(inward, edge)
        over = over if over @ up > 0.0 else -over
        arm = centre - shape.nodes[i]
        distances.append(float(arm @ inward))
        angles.append(float(np.arctan2(arm @ inward, arm @ over)))
        edges.append((structure.node_names[i], structure.node_names[j]))
    names = corners if corners.size > 2 else feet
    return Support(
        tuple(structure.node_names[i] for i in names), shape.contacts[names], carried, tuple(edges), np.array(angles),
        min(distances, default=-np.inf), friction,
    )  # fmt: skip


def tipping_slopes(shape: StructureEquilibrium, *, rigid_bars: bool = False) -> list[float]:
    """`tipping_slope` [rad] perpendicular to each edge of the support; empty without edges."""
    support = find_support(shape)
    if support is None or not support.edges:
        return []
    up = shape.contacts.sum(axis=0)  # type: ignore[union-attr]
    slopes = []
    for first, second in support.edges:
        i, j = shape.structure.node(first), shape.structure.node(second)
        corners = [shape.structure.node(name) for name in support.feet]
        outward = np.cross(shape.nodes[j] - shape.nodes[i], up)
        if outward @ (shape.nodes[corners].mean(axis=0) - shape.nodes[i]) > 0.0:
            outward = -outward
        slopes.append(tipping_slope(shape, outward, rigid_bars=rigid_bars))
    return slopes


def _hull(points: NDArray[np.float64], up: NDArray[np.float64]) -> NDArray[np.int64]:
    """Corners of the convex hull of points (k, 3) projected along `up`, in order (monotone chain; Andrew 1979)."""
    if len(points) < 3:
        return np.arange(len(points))
    first = np.linalg.svd(up[None, :])[2][1]
    flat = np.stack((points @ first, points @ np.cross(up, first)), axis=1)
    size = float(np.ptp(flat, axis=0).max())
    ranks = np.lexsort((flat[:, 1], flat[:, 0]))

    def turn(a: int, b: int, c: int) -> float:
        one, other = flat[b] - flat[a], flat[c] - flat[a]
        return float(one[0] * other[1] - one[1] * other[0])

    def chain(rows: NDArray[np.int64]) -> list[int]:
        result: list[int] = []
        for row in rows:
            while len(result) > 1 and turn(result[-2], result[-1], int(row)) <= 1e-9 * size * size:
                result.pop()
            result.append(int(row))
        return result[:-1]

    return np.array(chain(ranks) + chain(ranks[::-1]), dtype=np.int64)


def tipping_slope(
    shape: StructureEquilibrium, downhill: NDArray[np.float64], *, rigid_bars: bool = False, accuracy: float = 2e-4
) -> float:
    """Largest slope [rad] on which an elastic structure stands, tilted from its present pose, without sliding.

    The slope is increased in small steps, because the structure deforms before the centre of mass is above an edge.

    Args:
        shape: equilibrium on a plane. downhill: (3,) direction in the plane towards which it is tilted.
        rigid_bars: as for the shape. accuracy: accuracy of the slope [rad].

    Raises:
        TensegrityError: the ground is not a plane, or the load does not press the structure onto it.
    """
    structure, ground = shape.structure, shape.structure.ground
    if ground is None or ground.hills is not None or structure.fixed.any() or shape.contacts is None:
        raise TensegrityError("the slope at which a structure tips is that of a free structure on a plane.")
    held = replace(structure, ground=replace(ground, friction=1e6))
    load = -shape.contacts.sum(axis=0)
    if not float(np.linalg.norm(load)) > 0.0:
        raise TensegrityError("nothing presses the structure onto its ground.")
    across = np.array(downhill, dtype=np.float64)
    across = across - (across @ load) / (load @ load) * load
    across = np.linalg.norm(load) * across / np.linalg.norm(across)
    masses = structure.lumped_masses()
    solver = StructureEquilibriumSolver(held, rigid_bars=rigid_bars, maximum_iterations=200)  # falling takes more
    support = find_support(shape)
    feet = [] if support is None else [structure.node(name) for name in support.feet]
    if len(feet) < 3:
        return 0.0

    def tilted(angle: float, start: StructureEquilibrium) -> tuple[StructureEquilibrium, float] | None:
        """Shape, and fraction of the load on the foot with the least load; None if the structure has tipped."""
        leaning = (np.cos(angle) * load + np.sin(angle) * across) / masses.sum()
        try:
            found = solver.solve(start=start, gravity=leaning)
        except TensegrityError:
            return None
        assert found.contacts is not None
        least = float(np.linalg.norm(found.contacts[feet], axis=1).min() / np.linalg.norm(load))
        return (found, least) if least > 0.0 and found.stable else None

    # the force on the lifted foot decreases nearly linearly: the step ends slightly before it vanishes
    last, at, stride, before = shape, 0.0, np.radians(2.0), 1.0 / len(feet)
    while stride > 0.1 * accuracy and at < 0.5 * np.pi - stride:
        step = tilted(at + stride, last)
        if step is None:
            stride *= 0.5
            continue
        last, least = step
        at, rate = at + stride, (before - least) / stride
        if rate > 0.0:
            stride = min(np.radians(2.0), 0.98 * least / rate)  # short, so that the feet hardly rotate
        before = least
    return at
