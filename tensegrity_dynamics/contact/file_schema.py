"""Blocks `contact:` and `collision:` of a robot file, and the `Ground` of the block `contact:` (docs/robot_file.md)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, model_validator

from ..errors import TensegrityError
from ..robots.file_errors import Problems
from ..robots.schema import (
    Angle,
    Block,
    Damping,
    Length,
    Number,
    PositiveLength,
    PositiveSpeed,
    Stiffness,
    Text,
)
from .ground import Ground, HeightField
from .ground_forces import surface_height


class HeightsBlock(Block):
    """Hills: heights in the robot file, or in a separate file of numbers."""

    values: list[list[Length]] | None = None
    file: Text | None = None
    spacing: PositiveLength
    origin: Annotated[list[Length], Field(min_length=2, max_length=2)] | None = None

    @model_validator(mode="after")
    def _one_source(self) -> HeightsBlock:
        if (self.values is None) == (self.file is None):
            raise ValueError("give either values or file")
        return self


class ContactBlock(Block):
    """Ground of a robot."""

    stiffness: Annotated[Stiffness, Field(gt=0)]
    law: Literal["linear", "exponential", "softplus"] = "linear"
    damping: Annotated[Damping, Field(ge=0)] = 0.0
    friction: Annotated[Number, Field(ge=0)] = 0.5
    friction_speed: PositiveSpeed = 1e-3
    viscous: Annotated[Damping, Field(ge=0)] = 0.0
    smoothness: PositiveLength = 1e-3
    length: PositiveLength = 1.0
    height: Length = 0.0
    slope: Angle = 0.0
    downhill: Angle = 0.0
    heights: HeightsBlock | None = None


class CollisionBlock(Block):
    """Bars that collide with each other."""

    radius: PositiveLength
    stiffness: Annotated[Stiffness, Field(gt=0)]
    damping: Annotated[Damping, Field(ge=0)] = 0.0


def build_ground(block: ContactBlock | None, problems: Problems) -> Ground | None:
    """Ground of a file that satisfies the schema; errors are added to the problems."""
    if block is None:
        return None
    hills = None
    if block.heights is not None:
        try:
            hills = _heights(block.heights, Path(problems.source.name).parent)
        except (TensegrityError, OSError, ValueError) as error:
            problems.add(("contact", "heights"), f"{error}")
            return None
    names = ContactBlock.model_fields.keys() - {"heights"}
    try:
        return Ground(**{name: getattr(block, name) for name in names}, hills=hills)
    except TensegrityError as error:
        steep = "slope" in str(error) or hills is not None
        problems.add(("contact", "slope") if steep else ("contact",), str(error).removeprefix("contact: "))
        return None


def check_start(ground: Ground, names: tuple[str, ...], nodes: np.ndarray, free: np.ndarray, weight: float) -> dict:
    """Errors of start positions by index of the free node: below the ground, or outside the field of its hills.

    Args:
        nodes: (n, 3) m. free: (n,) bool. weight: total weight [N]; a node can start at the depth due to this weight.
    """
    found = {}
    size = float(np.ptp(nodes, axis=0).max()) if len(nodes) else 1.0
    allowed = weight / ground.stiffness + 1e-6 * size
    for i in np.flatnonzero(free):
        x, y, z = nodes[i].tolist()
        if ground.hills is not None and not ground.hills.holds(x, y):
            found[int(i)] = f"{names[i]} starts beyond the heights of the ground; move it, or give more of them."
            continue
        below = (surface_height(ground, x, y) - z) * float(ground.normal[2])
        if below > allowed:
            found[int(i)] = f"{names[i]} starts {below:.4g} m under the ground; lift it, or lower the ground (height)."
    return found


def _heights(block: HeightsBlock, folder: Path) -> HeightField:
    if block.values is not None:
        lengths = {len(row) for row in block.values}
        if len(lengths) > 1:
            raise TensegrityError(f"the rows of the heights differ in length: {sorted(lengths)}; give a rectangle.")
        heights = np.array(block.values, dtype=np.float64)
    else:
        path = Path(str(block.file))
        path = path if path.is_absolute() else folder / path
        if not path.is_file():
            raise TensegrityError(f"there is no file {path}; heights are text, a row of numbers in m a line (or .npy).")
        try:
            heights = np.load(path) if path.suffix == ".npy" else np.loadtxt(path, delimiter=_delimiter(path), ndmin=2)
            if not isinstance(heights, np.ndarray) or heights.dtype.kind not in "iuf":
                raise ValueError("give one array of real numbers")
        except (ValueError, EOFError, MemoryError) as error:
            raise TensegrityError(f"{path} holds no table of numbers: {error}.") from None
    if heights.ndim != 2:
        raise TensegrityError(f"heights are a table of rows and columns, found shape {heights.shape}.")
    middle = -0.5 * block.spacing * (np.array(heights.shape[::-1]) - 1)
    return HeightField(heights, middle if block.origin is None else np.array(block.origin), block.spacing)


def _delimiter(path: Path) -> str | None:
    with path.open(encoding="utf-8") as file:
        return "," if "," in file.readline() else None
