"""Mesh on a body: its shape for viewers and, with a density or a mass, its mass properties."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from ..errors import TensegrityError
from ..meshes.mass_properties import SolidProperties, solid_properties
from ..meshes.mesh import Mesh
from .frame import Frame


@dataclass(frozen=True, eq=False)
class BodyMesh:
    """Surface fixed to a body.

    Args:
        mesh: surface [m] in its own frame.
        placement: pose of the mesh frame on the body.
        density: kg/m^3 of the enclosed solid. mass: kg of the solid, instead of a density. Without either the mesh is
            only drawn.
        uri: name in the robot file. path: file that was found. scale: m per unit of the file. Viewers that load the
            file themselves use these three.

    Raises:
        TensegrityError: a density or mass is negative or not finite.
    """

    mesh: Mesh
    placement: Frame = field(default_factory=Frame)
    density: float | None = None
    mass: float | None = None
    uri: str = ""
    path: Path | None = None
    scale: float = 1.0

    def __post_init__(self) -> None:
        for name, value in (("density", self.density), ("mass", self.mass)):
            if value is not None and not (np.isfinite(value) and value >= 0.0):
                raise TensegrityError(f"mesh: {name} {value} must be finite and not negative.")

    @cached_property
    def solid(self) -> SolidProperties:
        """Mass properties of the enclosed solid in the mesh frame. Raises TensegrityError if the mesh encloses none."""
        return solid_properties(self.mesh)

    @property
    def weight(self) -> float:
        """Mass [kg]. With a density, raises TensegrityError as `solid` does."""
        if self.mass is not None:
            return self.mass
        return self.density * self.solid.volume if self.density else 0.0
