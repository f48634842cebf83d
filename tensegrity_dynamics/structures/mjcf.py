"""Export of a structure to MJCF: nodes as point masses with three slides, members as tendons with springs."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np

from ..contact.ground import Ground
from ..robots.mjcf import Export, add, document_text, new_document
from ..robots.robot import Robot
from .form_finding.equilibrium_solver import StructureEquilibriumSolver
from .structure import Structure

FAR = 1e6
"""Length [m] above that of any spring that carries only compression."""


def structure_mjcf(robot: Robot) -> Export:
    """Structure at its equilibrium, with elastic bars as in `forward_kinematics`.

    Raises:
        NoEquilibriumError: there is no equilibrium.
    """
    structure = robot.model_as(Structure)
    nodes = StructureEquilibriumSolver(structure).solve().nodes
    masses = structure.lumped_masses()
    whole = float(masses.sum()) or 1.0
    root = new_document(robot.name, structure.gravity)
    world = add(root, "worldbody")
    massless, differences = [], []
    for i, name in enumerate(structure.node_names):
        if structure.fixed[i]:
            add(world, "site", name=name, pos=nodes[i])
            continue
        body = add(world, "body", name=name, pos=nodes[i])
        mass = float(masses[i])
        if mass == 0.0:
            mass = 1e-3 * whole
            massless.append(name)
            body.set("gravcomp", "1")
        add(body, "inertial", pos=np.zeros(3), mass=mass, diaginertia=np.full(3, 1e-6 * mass))
        for axis, direction in zip("xyz", np.eye(3), strict=True):
            if structure.supports[i] @ direction:
                continue
            add(body, "joint", name=f"{name}.{axis}", type="slide", axis=direction, ref=nodes[i] @ direction)
        add(body, "site", name=name)
    tendons = add(root, "tendon")
    for k, name in enumerate(structure.member_names):
        ends = structure.members[k]
        if structure.fixed[ends].all():
            continue
        rest = float(structure.rest_lengths[k] - structure.initial_tensions[k] / structure.stiffness[k])
        spatial = add(
            tendons, "spatial", name=name, stiffness=structure.stiffness[k],
            springlength=[0.0, rest] if structure.unilateral[k] else [rest, rest],
            damping=structure.damping[k] or None,
        )  # fmt: skip
        for end in ends:
            add(spatial, "site", site=structure.node_names[end])
    add_ground(tendons, structure)
    pushed = np.flatnonzero(structure.loads.any(axis=1) & ~structure.fixed)
    if pushed.size:
        actuators = add(root, "actuator")
        for i in map(int, pushed):
            for axis, force, held in zip("xyz", structure.loads[i], structure.supports[i], strict=True):
                if force and not held:
                    add(
                        actuators, "general", name=f"load.{structure.node_names[i]}.{axis}",
                        joint=f"{structure.node_names[i]}.{axis}", gaintype="fixed", gainprm=0.0, biastype="affine",
                        biasprm=[force, 0.0, 0.0],
                    )  # fmt: skip
    if massless:
        differences.append(f"nodes without mass have a thousandth of the whole: {', '.join(massless)}.")
    if "bar" in structure.kinds:
        differences.append("bars are springs of their stiffness, as in shapes; never rigid.")
        if structure.masses[~structure.unilateral].any():
            differences.append("the mass of bars is at their ends, as with rod_mass='ends' in simulations.")
    if (structure.damping[structure.unilateral] > 0.0).any():
        differences.append("the damping of a tendon acts while it is slack, too, and may push.")
    for row in np.flatnonzero(structure.initial_tensions > 0.0):
        differences.append(f"{structure.member_names[row]} pulls on below its rest length, until its tension is zero.")
    for each in robot.actuators:
        differences.append(f"actuator {each.name}: MuJoCo cannot wind the rest length of {each.drives}; it stays.")
    differences += ground_differences(structure)
    if structure.smoothness > 0.0:
        differences.append("tendons have an edge between slack and tight there, not a soft-plus law.")
    if structure.collision is not None:
        differences.append("collisions of bars are left out: they pass through each other there.")
    return Export(document_text(root, differences), tuple(differences))


def add_ground(tendons: ET.Element, structure: Structure) -> None:
    """Add the plane with the linear law for every node: a fixed tendon over its coordinates as a compression spring.

    Its length is the height n . p of the node over the plane through the origin, minus the contribution of held
    coordinates.
    """
    ground = structure.ground
    if ground is None or not _is_springs(ground):
        return
    surface = float(ground.normal[2]) * ground.height
    for i in np.flatnonzero(~structure.fixed):
        name, held = structure.node_names[i], structure.supports[i]
        height = surface - float(ground.normal[held] @ structure.nodes[i, held])
        fixed = add(
            tendons, "fixed", name=f"ground.{name}", stiffness=ground.stiffness, springlength=[height, FAR],
        )  # fmt: skip
        for axis, along in zip(np.array(list("xyz"))[~held], ground.normal[~held], strict=True):
            add(fixed, "joint", joint=f"{name}.{axis}", coef=along)


def _is_springs(ground: Ground) -> bool:
    return ground.law == "linear" and ground.hills is None


def ground_differences(structure: Structure) -> list[str]:
    """Differences between the ground and its representation in MJCF."""
    ground = structure.ground
    if ground is None:
        return []
    if not _is_springs(ground):
        return ["the ground is left out: its hills or its law of force have no equal there."]
    left_out = [name for name in ("damping", "friction", "viscous") if getattr(ground, name)]
    return [f"the ground is a spring under every node, without {', '.join(left_out)}."] if left_out else []
