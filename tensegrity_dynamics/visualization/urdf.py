"""URDF of a robot, created from its Picture, for the display in RViz and other ROS tools.

Every moving link is connected to `base_link` by a floating joint, because URDF does not support closed loops; /tf gives
the poses. Fixed links are fixed to `base_link`, whose pose in the world is on /tf_static.
Tendons and cables are not included, because URDF has no element of variable length; the markers show them. Their drives
are included: every actuator is a joint with its name, so that all names in joint_states are in the description. It
moves an empty link `<actuator>_drive`, for a rest length along the x axis of `base_link`.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable, Sequence

import numpy as np

from ..numerics.rotations import matrix_from_quaternion, roll_pitch_yaw
from ..robots.actuator import Actuator
from .mount import BASE_LINK
from .picture import Link, Picture, Solid, frame_name
from .style import LOOKS

COLLIDING = ("bars", "bodies", "blocks", "pulleys", "points")  # roles of solids that are part of the real robot


def make_urdf(picture: Picture, actuators: Sequence[Actuator] = ()) -> str:
    """URDF text of a robot; inertias are about the centres of mass, along the axes of the links.

    Args:
        picture: picture of the robot. actuators: actuators in joint_states.

    The text has no encoding declaration, so that parsers take it as a string as well as from a file in UTF-8.
    """
    root = ET.Element("robot", name=frame_name(picture.name))
    used = {solid.role for solid in picture.solids}
    for role, look in LOOKS.items():
        if role in used:
            material = ET.SubElement(root, "material", name=role)
            channels = [*(channel / 255.0 for channel in look.colour), look.opacity]
            ET.SubElement(material, "color", rgba=_text(channels, ".3f"))
    solids: dict[int, list[Solid]] = {}
    for solid in picture.solids:
        solids.setdefault(solid.link, []).append(solid)
    for index, link in [(-1, Link(BASE_LINK)), *enumerate(picture.links)]:
        _add_link(root, link, solids.get(index, ()))
    poses = picture.at(picture.start).link_poses
    for link, (position, quaternion) in zip(picture.links, poses, strict=True):
        kind = "fixed" if link.still else "floating"
        joint = ET.SubElement(root, "joint", name=f"{BASE_LINK}_to_{link.name}", type=kind)
        if link.still:
            turn = roll_pitch_yaw(matrix_from_quaternion(quaternion))
            ET.SubElement(joint, "origin", xyz=_text(position), rpy=_text(turn))
        ET.SubElement(joint, "parent", link=BASE_LINK)
        ET.SubElement(joint, "child", link=link.name)
    for actuator in actuators:
        _add_drive(root, actuator)
    ET.indent(root)
    return f'<?xml version="1.0"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _add_drive(root: ET.Element, actuator: Actuator) -> None:
    child = f"{frame_name(actuator.name)}_drive"
    ET.SubElement(root, "link", name=child)
    kind = "revolute" if actuator.motion == "revolute" else "prismatic"
    joint = ET.SubElement(root, "joint", name=actuator.name, type=kind)
    ET.SubElement(joint, "parent", link=BASE_LINK)
    ET.SubElement(joint, "child", link=child)
    ET.SubElement(joint, "axis", xyz="1 0 0")
    low, high = actuator.position
    numbers = {"lower": low, "upper": high, "velocity": actuator.rate, "effort": actuator.effort}
    ET.SubElement(joint, "limit", {key: f"{value:.9g}" for key, value in numbers.items()})


def _add_link(root: ET.Element, link: Link, solids: Sequence[Solid]) -> None:
    element = ET.SubElement(root, "link", name=link.name)
    for solid in solids:
        for kind in ("visual", "collision") if solid.role in COLLIDING else ("visual",):
            part = ET.SubElement(element, kind)
            at = solid.position
            if solid.surface is not None and solid.surface.uri:  # the file has a different origin
                at = at + solid.axes @ solid.surface.origin
            ET.SubElement(part, "origin", xyz=_text(at), rpy=_text(roll_pitch_yaw(solid.axes)))
            _add_geometry(ET.SubElement(part, "geometry"), solid)
            if kind == "visual":
                ET.SubElement(part, "material", name=solid.role)
    if link.mass > 0.0:
        inertial = ET.SubElement(element, "inertial")
        ET.SubElement(inertial, "origin", xyz=_text(link.centre), rpy="0 0 0")
        ET.SubElement(inertial, "mass", value=f"{link.mass:.12g}")
        upper = zip(*np.triu_indices(3), strict=True)
        moments = {f"i{'xyz'[i]}{'xyz'[j]}": _text([link.inertia[i, j]], ".12g") for i, j in upper}
        ET.SubElement(inertial, "inertia", moments)


def _add_geometry(geometry: ET.Element, solid: Solid) -> None:
    if solid.kind == "cylinder":
        ET.SubElement(geometry, "cylinder", radius=f"{0.5 * solid.size[0]:.9g}", length=f"{solid.size[2]:.9g}")
    elif solid.surface is not None and solid.surface.uri:
        scale = _text([solid.surface.scale] * 3)
        ET.SubElement(geometry, "mesh", filename=solid.surface.uri, scale=scale)
    elif solid.kind in ("box", "mesh"):
        ET.SubElement(geometry, "box", size=_text(solid.size))
    else:
        ET.SubElement(geometry, "sphere", radius=f"{0.5 * solid.size[0]:.9g}")


def _text(values: Iterable[float], form: str = ".9g") -> str:
    return " ".join(format(float(value) + 0.0, form) for value in values)
