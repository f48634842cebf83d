"""`kind: structure`: pin-jointed networks of bars, tendons and springs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..robots.robot_types import RobotType
from ..structures.dynamics.structure_simulator import INTEGRATORS, StructureSimulator
from ..structures.estimation.rolling_estimator import make_shape_estimator
from ..structures.file_builder import build_structure
from ..structures.file_schema import StructureFile
from ..structures.matrices import structure_matrices
from ..structures.mjcf import structure_mjcf
from ..structures.report import StructureReport
from ..structures.state_codec import StructureCodec
from ..structures.structure import Structure
from ..visualization.structure_picture import StructurePicture


def _motions(data: Mapping[str, Any]) -> Callable[[Any], str]:
    """Function from the name of a driven part to its motion: "prismatic" for rods of variable length, else "tendon"."""
    members = data.get("members")
    rows = [row for row in members if isinstance(row, dict)] if isinstance(members, list) else []
    rods = [row.get("name") for row in rows if row.get("kind") == "bar"]
    return lambda driven: "prismatic" if driven in rods else "tendon"


STRUCTURE = RobotType(
    name="structure",
    model=Structure,
    schema=StructureFile,
    builder=build_structure,
    motions=_motions,
    simulator=StructureSimulator,
    integrators=tuple(INTEGRATORS),
    node_integrator="rattle",
    estimators={"rest": make_shape_estimator},
    codec=StructureCodec,
    report=StructureReport,
    picture=StructurePicture,
    exports={"mjcf": structure_mjcf, "matrices": structure_matrices},
)
