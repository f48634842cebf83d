"""Bodies composed of geometric primitives of uniform density (000, table 5.1), which are also used for display.

Every primitive is centred at the origin of its frame; the axis of round primitives is z.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..errors import TensegrityError, unknown_name
from .body_mesh import BodyMesh
from .frame import Frame
from .mechanism import Body

DIMENSIONS = {
    "cylinder": ("radius", "height"),
    "tube": ("outer_diameter", "inner_diameter", "length"),
    "box": ("x", "y", "z"),
    "cube": ("side",),
    "sphere": ("radius",),
    "point": (),
}


@dataclass(frozen=True, eq=False)
class Primitive:
    """Solid of uniform density.

    Args:
        kind: one of `DIMENSIONS`; "point" is a point mass.
        size: dimensions [m] in the order of `DIMENSIONS[kind]`.
        density: density [kg/m^3]. mass: mass [kg], instead of a density. Without both, the solid is for display only.
        placement: frame of the solid on the body.
    """

    kind: str
    size: tuple[float, ...] = ()
    density: float = 0.0
    mass: float | None = None
    placement: Frame = field(default_factory=Frame)

    def __post_init__(self) -> None:
        if self.kind not in DIMENSIONS:
            raise TensegrityError(unknown_name("primitive", self.kind, DIMENSIONS))
        dimensions = DIMENSIONS[self.kind]
        if len(self.size) != len(dimensions):
            raise TensegrityError(
                f"{self.kind} needs {len(dimensions)} dimensions ({', '.join(dimensions)}): {self.size}."
            )
        for name, value in zip(dimensions, self.size, strict=True):
            if not (np.isfinite(value) and value > 0.0) and not (name == "inner_diameter" and value == 0.0):
                raise TensegrityError(f"{self.kind}: {name} is {value} m, must be above zero.")
        if self.kind == "tube" and self.size[1] >= self.size[0]:
            raise TensegrityError(f"tube: inner diameter {self.size[1]} m is not below the outer one {self.size[0]} m.")
        if not (np.isfinite(self.density) and self.density >= 0.0):
            raise TensegrityError(f"{self.kind}: density {self.density} kg/m^3 must not be negative.")
        if self.mass is not None and not (np.isfinite(self.mass) and self.mass >= 0.0):
            raise TensegrityError(f"{self.kind}: mass {self.mass} kg must not be negative.")
        if self.kind == "point" and self.mass is None:
            raise TensegrityError("point: a point has no volume; give its mass in kg.")

    @property
    def volume(self) -> float:
        """Volume [m^3]."""
        s = self.size
        return {
            "cylinder": lambda: np.pi * s[0] ** 2 * s[1],
            "tube": lambda: np.pi / 4.0 * (s[0] ** 2 - s[1] ** 2) * s[2],
            "box": lambda: s[0] * s[1] * s[2],
            "cube": lambda: s[0] ** 3,
            "sphere": lambda: 4.0 / 3.0 * np.pi * s[0] ** 3,
            "point": lambda: 0.0,
        }[self.kind]()

    @property
    def weight(self) -> float:
        """Mass [kg]."""
        return float(self.density * self.volume if self.mass is None else self.mass)

    def unit_inertia(self) -> NDArray[np.float64]:
        """(3, 3) inertia about the centre per kilogram, in the axes of the primitive [m^2]."""
        s = self.size
        if self.kind in ("cylinder", "tube"):
            squares = s[0] ** 2 if self.kind == "cylinder" else (s[0] ** 2 + s[1] ** 2) / 4.0
            side = squares / 4.0 + s[-1] ** 2 / 12.0
            return np.diag([side, side, squares / 2.0])
        if self.kind == "sphere":
            return np.eye(3) * 0.4 * s[0] ** 2
        if self.kind == "point":
            return np.zeros((3, 3))
        x, y, z = s if self.kind == "box" else (s[0], s[0], s[0])
        return np.diag([y * y + z * z, x * x + z * z, x * x + y * y]) / 12.0


def body_from(name: str, primitives: Sequence[Primitive], meshes: Sequence[BodyMesh] = ()) -> Body:
    """Body composed of primitives and meshes: masses are added, inertias by the parallel axis theorem.

    Raises:
        TensegrityError: a mesh with a mass or density encloses no volume, see `solid_properties`.
    """
    parts = [(each.weight, each.placement, np.zeros(3), each.unit_inertia()) for each in primitives if each.weight]
    parts += [(each.weight, each.placement, each.solid.centre, each.solid.inertia) for each in meshes if each.weight]
    mass = float(sum(weight for weight, *_ in parts))
    if mass == 0.0:
        return Body(name, shapes=tuple(primitives), meshes=tuple(meshes))
    centres = [frame.origin + frame.axes @ own for _, frame, own, _ in parts]
    centre = np.sum([part[0] * at for part, at in zip(parts, centres, strict=True)], axis=0) / mass
    inertia = np.zeros((3, 3))
    for (weight, frame, _, unit_inertia), at in zip(parts, centres, strict=True):
        axes, arm = frame.axes, at - centre
        inertia += weight * (axes @ unit_inertia @ axes.T + arm @ arm * np.eye(3) - np.outer(arm, arm))
    return Body(name, mass, centre, 0.5 * (inertia + inertia.T), tuple(primitives), tuple(meshes))
