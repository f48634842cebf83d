"""URDF of a mechanism: one link per body, with visuals and inertia, and one for each output.

Every link hangs on the world by a floating joint, because URDF knows neither loops nor cables; /tf says where they are.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ..mechanisms.mechanism import Body
from ..mechanisms.mechanism_model import MechanismModel
from ..robots.robot import Robot
from .mechanism_picture import COLOURS, OPACITY, MechanismPicture, Solid
from .urdf import WORLD, finish_urdf, frame_name, link_names

SHAPED = ("bodies", "blocks", "pulleys", "points")  # roles that come from primitives, and so can be bumped into


def make_mechanism_urdf(robot: Robot) -> str:
    """URDF text of a mechanism; inertias are those of the bodies, about their centres of mass in body axes.

    Raises:
        TensegrityError: the robot is not a mechanism.
    """
    model = robot.model_as(MechanismModel)
    picture = MechanismPicture(robot)
    names = link_names(robot)
    root = ET.Element("robot", name=frame_name(robot.name))
    for role, colour in COLOURS.items():
        material = ET.SubElement(root, "material", name=role)
        channels = [*(channel / 255.0 for channel in colour), OPACITY.get(role, 1.0)]
        ET.SubElement(material, "color", rgba=_text(channels, ".3f"))
    solids: dict[int, list[Solid]] = {}
    for solid in picture.solids:
        solids.setdefault(solid.body, []).append(solid)
    bodies = {body.name: body for body in model.mechanism.bodies}
    _add_link(root, WORLD, None, solids.get(-1, ()))
    for i, body in enumerate(model.body_names):
        _add_link(root, names[i], bodies[body], solids.get(i, ()))
    for name in names[len(model.body_names) :]:
        ET.SubElement(root, "link", name=name)
    return finish_urdf(root, names)


def roll_pitch_yaw(axes: NDArray[np.float64]) -> NDArray[np.float64]:
    """(3,) rad about the fixed x, y and z axes, in this order, as URDF wants them, of a rotation matrix (3, 3)."""
    flat = float(np.hypot(axes[0, 0], axes[1, 0]))
    pitch = np.arctan2(-axes[2, 0], flat)
    if flat < 1e-9:  # looking straight up or down, roll and yaw are one turn: call it yaw
        return np.array([0.0, pitch, np.arctan2(-axes[0, 1], axes[1, 1])])
    return np.array([np.arctan2(axes[2, 1], axes[2, 2]), pitch, np.arctan2(axes[1, 0], axes[0, 0])])


def _add_link(root: ET.Element, name: str, body: Body | None, solids: Iterable[Solid]) -> None:
    link = ET.SubElement(root, "link", name=name)
    for solid in solids:
        for kind in ("visual", "collision") if solid.role in SHAPED else ("visual",):
            part = ET.SubElement(link, kind)
            turn = roll_pitch_yaw(solid.placement.axes)
            ET.SubElement(part, "origin", xyz=_text(solid.placement.origin), rpy=_text(turn))
            _add_geometry(ET.SubElement(part, "geometry"), solid)
            if kind == "visual":
                ET.SubElement(part, "material", name=solid.role)
    if body is not None and body.mass > 0.0:
        inertial = ET.SubElement(link, "inertial")
        ET.SubElement(inertial, "origin", xyz=_text(body.centre), rpy="0 0 0")
        ET.SubElement(inertial, "mass", value=f"{body.mass:.12g}")
        moments = {
            f"i{a}{b}": f"{body.inertia[i, j]:.12g}" for i, a in enumerate("xyz") for j, b in enumerate("xyz") if i <= j
        }
        ET.SubElement(inertial, "inertia", moments)


def _add_geometry(geometry: ET.Element, solid: Solid) -> None:
    if solid.kind == "cylinder":
        ET.SubElement(geometry, "cylinder", radius=f"{0.5 * solid.size[0]:.9g}", length=f"{solid.size[2]:.9g}")
    elif solid.kind == "box":
        ET.SubElement(geometry, "box", size=_text(solid.size))
    else:
        ET.SubElement(geometry, "sphere", radius=f"{0.5 * solid.size[0]:.9g}")


def _text(values: Iterable[float], form: str = ".9g") -> str:
    return " ".join(format(float(value) + 0.0, form) for value in values)
