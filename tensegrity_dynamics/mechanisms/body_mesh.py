"""A mesh on a body: how it looks, and, where a density or a mass is given, what it weighs."""

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
    """A surface fixed to a body.

    Args:
        mesh: in m, in the axes of its own frame.
        placement: that frame on the body.
        density: kg/m^3 of the solid that it encloses; mass: kg of it, instead. Without either it is only drawn.
        uri: as the robot file names it; path: where it was found; scale: m per unit of the file. Viewers that read the
            file themselves get these three.

    Raises:
        TensegrityError: a density or mass that is negative or not finite.
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
        """Of what it encloses, in its own frame. Raises TensegrityError where it encloses nothing, and why."""
        return solid_properties(self.mesh)

    @property
    def weight(self) -> float:
        """Mass [kg]. Raises TensegrityError as `solid` does where a density is given."""
        if self.mass is not None:
            return self.mass
        return self.density * self.solid.volume if self.density else 0.0
