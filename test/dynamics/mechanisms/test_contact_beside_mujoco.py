"""Contact of mechanisms against closed forms, and against the exported model on MuJoCo's own ground."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import mujoco
import numpy as np
import pytest

from tensegrity_dynamics import Simulation, parse_robot
from tensegrity_dynamics.mechanisms.statics.equilibrium_solver import MechanismEquilibriumSolver
from tensegrity_dynamics.robots.robot_types import type_of

G = 9.80665
SLOPE = 0.3  # rad
SIDE = 0.1  # m, of the box across; its height is a multiple
BOX = """
name: box
kind: mechanism
bodies: {{box: {{shapes: [{{kind: box, size: [{side}, {side}, {height}], mass: 1}}]}}}}
joints: [{{name: free, kind: floating, parent: world, body: box, start: [0, 0, 0.5]}}]
contact_parts: [{{body: box, kind: box, size: [{side}, {side}, {height}]}}]
contact: {{stiffness: 1.0e+7, damping: 1000, friction: {friction}, friction_speed: 1.0e-3, slope: {slope}}}
"""
ARM = """
name: arm
kind: mechanism
bodies: {link: {mass: 0.4, centre: [0.1, 0, 0], inertia: [0.001, 0.001, 0.001]}}
joints:
  - {name: j, kind: revolute, parent: world, body: link, axis: [0, 1, 0], frame: {at: [0, 0, 0.05]},
     resistance: {damping: 0.5}}
contact_parts: [{body: link, kind: sphere, size: [0.02], at: [0.3, 0, 0]}]
contact: {stiffness: 1.0e+6, friction: 0}
actuators: [{drives: j, position: [-2, 2], rate: 5, effort: 3}]
"""


def on_their_ground(robot, body, geom, friction, normal):
    """MuJoCo's model and data of the exported robot, with a plane and one shape that touches it."""
    root = ET.fromstring(type_of(robot).exports["mjcf"](robot).text)
    option = root.find("option")
    option.attrib.update(cone="elliptic", impratio="1000", integrator="implicitfast")
    touching = {"friction": f"{friction} 0 0", "condim": "3", "solref": "0.002 1", "solimp": "0.99 0.999 0.0001"}
    plane = {"type": "plane", "size": "9 9 1", "zaxis": " ".join(map(str, normal))}
    ET.SubElement(root.find("worldbody"), "geom", **plane, **touching)
    ET.SubElement(root.find(f".//body[@name='{body}']"), "geom", mass="0", **geom, **touching)
    model = mujoco.MjModel.from_xml_string(ET.tostring(root, encoding="unicode"))
    return model, mujoco.MjData(model)


@pytest.mark.parametrize(
    ("friction", "tall"),
    [
        pytest.param(0.5, 1.0, id="holds", marks=pytest.mark.long),
        pytest.param(0.2, 1.0, id="slides", marks=pytest.mark.long),
        pytest.param(1.0, 4.0, id="tips"),
    ],
)
def test_a_box_on_a_slope_holds_slides_and_tips_as_theirs_does(friction, tall):
    """By the closed forms it slides above tan(slope) = mu, and tips above tan(slope) = width / height."""
    duration, height = 0.25, tall * SIDE
    robot = parse_robot(BOX.format(side=SIDE, height=height, friction=friction, slope=SLOPE), "box")
    normal, down = robot.mechanism.ground.normal, np.array([np.cos(SLOPE), 0.0, -np.sin(SLOPE)])
    start = np.array(robot.mechanism.neutral())
    start[:3] = (0.5 * height - G * np.cos(SLOPE) / 4e7) * normal
    start[3:] = np.cos(0.5 * SLOPE), 0.0, np.sin(0.5 * SLOPE), 0.0
    simulation = Simulation(robot, 1e-4, "rk4", start=start)
    simulation.advance(duration=duration)
    ours = np.array(simulation.state.q)

    sides = f"{0.5 * SIDE} {0.5 * SIDE} {0.5 * height}"
    model, data = on_their_ground(robot, "box", {"type": "box", "size": sides}, friction, normal)
    data.qpos[:] = start
    while data.time < duration:
        mujoco.mj_step(model, data)
    theirs = np.array(data.qpos)

    for found, near in ((ours, 5e-4), (theirs, 1e-3)):
        moved = found[:3] - start[:3]
        turned = 2.0 * np.arccos(min(1.0, abs(found[3:] @ start[3:])))
        if tall > 1.0:
            assert turned == pytest.approx(tipped(height, duration), rel=0.03)
        else:
            slid = 0.5 * G * (np.sin(SLOPE) - friction * np.cos(SLOPE)) * duration**2
            assert turned < 1e-3
            np.testing.assert_allclose(moved, max(slid, 0.0) * down, atol=near)


def tipped(height, duration):
    """rad about the lower edge, from rest, of a box that does not slide."""
    reach = 0.5 * np.hypot(SIDE, height)
    lean = SLOPE - np.arctan2(SIDE, height)
    angle = rate = 0.0
    for _ in range(20000):  # steps by halves of rate: second order
        pull = lambda turned: 0.75 * G * np.sin(lean + turned) / reach  # noqa: E731  # inertia 4/3 reach^2
        step = duration / 20000
        middle = rate + 0.5 * step * pull(angle)
        angle += step * middle
        rate = middle + 0.5 * step * pull(angle)
    return angle


def test_an_arm_presses_the_ground_as_hard_as_theirs():
    robot, effort = parse_robot(ARM, "arm"), 1.5
    solver = MechanismEquilibriumSolver(robot.mechanism)
    start = np.array([np.arcsin(0.03 / 0.3)])
    shape = solver.solve(start, effort=[effort])
    lever = 0.3 * np.cos(shape.q[0])
    weight = 0.4 * G * 0.1 * np.cos(shape.q[0])
    (pressed,) = shape.contacts["link"][:, 1]
    np.testing.assert_allclose(pressed, [0.0, 0.0, (effort + weight) / lever], atol=1e-6)

    model, data = on_their_ground(robot, "link", {"type": "sphere", "size": "0.02", "pos": "0.3 0 0"}, 0.0, [0, 0, 1])
    data.qpos[:], data.ctrl[:] = start, effort
    for _ in range(5000):
        mujoco.mj_step(model, data)
    force = np.zeros(6)
    mujoco.mj_contactForce(model, data, 0, force)
    assert force[0] == pytest.approx(pressed[2], rel=1e-3)


LEGS = """
name: legs
kind: mechanism
bodies:
  hub: {mass: 1, inertia: [0.01, 0.01, 0.01]}
joints:
  - {name: free, kind: floating, parent: world, body: hub, start: [0, 0, 0.35, 0.05, 0.02, 0]}
repeat:
  count: 3
  about: z
  bodies:
    leg_$: {mass: 0.1, inertia: [0.001, 0.001, 0.001], centre: [0.1, 0, -0.1]}
  joints:
    - {name: hip_$, kind: revolute, parent: hub, body: leg_$, frame: {at: [0.05, 0, 0]}, axis: [0, 1, 0],
       resistance: {stiffness: SPRING, damping: 0.1}}
  contact_parts:
    - {name: foot_$, body: leg_$, kind: sphere, size: [0.02], at: [0.2, 0, -0.3]}
contact: {stiffness: GROUND, friction: 0.8}
"""


@pytest.mark.parametrize("spring", [2.0, 2000.0])
def test_a_walker_stands_on_ground_of_any_stiffness(spring):
    heights = []
    for ground in (1e3, 1e5, 1e7):
        robot = parse_robot(LEGS.replace("SPRING", f"{spring}").replace("GROUND", f"{ground:.1f}"), "legs")
        shape = MechanismEquilibriumSolver(robot.mechanism).solve(robot.model.start)
        feet = np.concatenate(list(shape.contacts.values()))
        assert shape.stable and len(feet) == 3
        np.testing.assert_allclose(feet[:, 1].sum(axis=0), [0.0, 0.0, 1.3 * G], atol=1e-6)
        np.testing.assert_allclose(np.cross(feet[:, 0], feet[:, 1])[:, :2].sum(axis=0) + 1.3 * G * np.array([
            -centre_of(robot, shape)[1], centre_of(robot, shape)[0]]), 0.0, atol=1e-6)  # fmt: skip
        heights.append(shape.q[2])
    assert abs(heights[2] - heights[1]) < 1e-3 * heights[2]
    assert heights[0] < heights[1] < heights[2]


def centre_of(robot, shape):
    """(3,) m of all masses."""
    flat = robot.mechanism.flat
    centres = shape.positions + np.einsum("bij,bj->bi", shape.rotations, flat.centre)
    return flat.mass @ centres / flat.mass.sum()
