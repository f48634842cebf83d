"""URDF of a robot, so that RViz and other tools of ROS can show it.

One link per bar (of a structure) or body (of a mechanism), free in the world by a floating joint, and one for the
output frame. Tendons and cables are not in it: their lengths change, which URDF cannot say; the markers show them.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Sequence

import numpy as np

from ..mechanisms.mechanism_model import MechanismModel
from ..robots.robot import Robot
from ..structures.structure import Structure
from .structure_picture import BAR_COLOUR, Sizes, shows_mechanism

WORLD = "world"


def frame_name(name: str) -> str:
    """A name that frames in ROS may have: spaces and slashes become underscores."""
    return "".join(letter if letter.isalnum() or letter in "_-." else "_" for letter in name)


def bar_rows(structure: Structure) -> np.ndarray:
    """(b,) indices of the members that are links of the URDF: the bars."""
    return np.flatnonzero(~structure.unilateral)


def link_names(robot: Robot) -> tuple[str, ...]:
    """Link of each bar in the order of `bar_rows`, or of each body in sweep order, then of each output.

    A taken name gets a number.
    """
    if shows_mechanism(robot):
        wanted = list(robot.model_as(MechanismModel).body_names)
    else:
        wanted = [robot.structure.member_names[row] for row in bar_rows(robot.structure)]
    wanted += [output.name for output in robot.outputs]
    names = [WORLD]
    for name in map(frame_name, wanted):
        free, number = name, 2
        while free in names:
            free, number = f"{name}_{number}", number + 1
        names.append(free)
    return tuple(names[1:])


def make_urdf(robot: Robot) -> str:
    """URDF text of a robot.

    Of a structure, the frame of a bar lies at its middle with z from its first to its second node; of a mechanism, the
    frame of a body is its own.

    Raises:
        TensegrityError: the robot is neither.
    """
    if shows_mechanism(robot):
        from .mechanism_urdf import make_mechanism_urdf

        return make_mechanism_urdf(robot)
    structure = robot.structure
    radius = Sizes.of(structure).bar
    rows = bar_rows(structure)
    names = link_names(robot)
    root = ET.Element("robot", name=frame_name(robot.name))
    material = ET.SubElement(root, "material", name="bar")
    ET.SubElement(material, "color", rgba=" ".join(f"{channel / 255:.3f}" for channel in BAR_COLOUR) + " 1")
    ET.SubElement(root, "link", name=WORLD)
    for row, name in zip(rows, names, strict=False):
        _add_bar(root, name, float(structure.rest_lengths[row]), radius, float(structure.masses[row]))
    for name in names[len(rows) :]:
        ET.SubElement(root, "link", name=name)
    return finish_urdf(root, names)


def finish_urdf(root: ET.Element, names: Sequence[str]) -> str:
    """The text, after a floating joint from the world to every link: what moves is in /tf."""
    for name in names:
        joint = ET.SubElement(root, "joint", name=f"{WORLD}_to_{name}", type="floating")
        ET.SubElement(joint, "parent", link=WORLD)
        ET.SubElement(joint, "child", link=name)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True)


def _add_bar(root: ET.Element, name: str, length: float, radius: float, mass: float) -> None:
    link = ET.SubElement(root, "link", name=name)
    for kind in ("visual", "collision"):
        part = ET.SubElement(link, kind)
        geometry = ET.SubElement(part, "geometry")
        ET.SubElement(geometry, "cylinder", length=f"{length:.9g}", radius=f"{radius:.9g}")
        if kind == "visual":
            ET.SubElement(part, "material", name="bar")
    if mass > 0.0:
        inertial = ET.SubElement(link, "inertial")
        ET.SubElement(inertial, "mass", value=f"{mass:.9g}")
        # Half of the mass sits at each end, as in the simulation; along its axis a solid cylinder of the shown radius.
        across, along = 0.25 * mass * length**2, 0.5 * mass * radius**2
        ET.SubElement(
            inertial, "inertia", ixx=f"{across:.9g}", iyy=f"{across:.9g}", izz=f"{along:.9g}", ixy="0", ixz="0", iyz="0"
        )
