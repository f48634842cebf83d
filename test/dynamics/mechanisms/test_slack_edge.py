"""Stability of a mechanism whose cables are at the edge between slack and tight: one-sided stiffnesses decide."""

from __future__ import annotations

import numpy as np
import pytest

from tensegrity_dynamics import Simulation
from tensegrity_dynamics.mechanisms.statics.equilibrium_solver import MechanismEquilibriumSolver
from tensegrity_dynamics.robots.load_robot import parse_robot
from tensegrity_dynamics.robots.report import Section
from tensegrity_dynamics.robots.robot_types import type_of

ARM = """
kind: mechanism
name: arm
density: 2700
bodies:
  strut:
    shapes: [{{kind: cylinder, size: [0.02, 1.0], frame: {{at: [0, 0, 0.5]}}}}]
{joints}
repeat:
  count: 3
  about: z
  cables:
    - name: B$
      body: world
      at: [0.9, 0, 0]
      block_axis: [0, 0, 1]
      pulley_axis: [0, 1, 0]
      pulley_radius: 0.05
      anchor: {{body: world_or_strut, at: {anchor}}}
      young: "2 GPa"
      damping: "10 MPa s"
      cable_radius: "1 mm"
      length: 2.2
      strain: {strain}
      block: [{{kind: cube, size: [0.05]}}]
      pulley: [{{kind: cylinder, size: [0.05, 0.01]}}]
  actuators:
    - {{drives: B$, position: [-12, 12], rate: "30 rad/s", effort: "50 N m"}}
outputs:
  - {{name: tip, body: strut, frame: {{at: [0, 0, 1]}}, controlled: [x, y]}}
""".replace("world_or_strut", "strut")
BALL = "joints:\n  - {name: ball, kind: spherical, parent: world, body: strut}"
UNIVERSAL = "joints:\n  - {name: cross, kind: universal, parent: world, body: strut}"


def arm(joints: str, anchor: str, strain: float):
    return parse_robot(ARM.format(joints=joints, anchor=anchor, strain=strain))


def solved(robot):
    held = robot.model.driven_joints(robot.actuators)
    return MechanismEquilibriumSolver(robot.mechanism, held).solve(robot.model.start)


def tilt_after(robot, seconds: float) -> float:
    """Tilt of the tip [m] after a small push, the pulleys held."""
    simulation = Simulation(robot, 1e-3, "implicit", start="file")
    simulation.apply_forces({"strut": [0, 0, 0, 0.02, 0.01, 0]})
    simulation.advance(duration=0.05)
    simulation.apply_forces(None)
    simulation.advance(duration=seconds)
    return float(np.linalg.norm(simulation.observe().pose[0][:2]))


@pytest.mark.parametrize("offset", [0.1, -0.1])
def test_an_arm_that_can_turn_its_cables_slack_is_not_stable_and_falls(offset: float) -> None:
    """A turn to one side shortens all three cables at once: then they hold nothing, and the arm is a pendulum."""
    robot = arm(BALL, f"[0.1, {offset}, 1.0]", 0.0)
    shape = solved(robot)
    assert float(np.max(np.abs(shape.strain))) < 1e-8
    assert not shape.stable and shape.softest < 0.0
    assert tilt_after(robot, 3.0) > 0.05


def test_an_arm_that_stretches_a_cable_wherever_it_goes_is_stable_at_the_edge_too() -> None:
    robot = arm(UNIVERSAL, "[0, 0, 1.0]", 0.0)
    shape = solved(robot)
    assert float(np.max(np.abs(shape.strain))) < 1e-8
    assert shape.stable and shape.softest > 0.0
    assert tilt_after(robot, 3.0) < 0.01


def test_a_motion_that_changes_no_force_is_said_beside_stable_and_one_that_cables_hold_is_not() -> None:
    for anchor, free in (("[0, 0, 1]", True), ("[0.2, 0, 1]", False)):
        robot = arm(BALL, anchor, 0.004)
        said = [row[1] for part in type_of(robot).report(robot).check().parts if isinstance(part, Section)
                for row in part.rows if row[0] == "stable"]  # fmt: skip
        assert said == ["yes, but nothing holds motions of ball.wz (1): they change no force" if free else "yes"]


def test_well_within_the_edge_the_softest_stiffness_is_the_one_without_cables_or_with_all_of_them() -> None:
    tight, edge = solved(arm(UNIVERSAL, "[0, 0, 1.0]", 1e-5)), solved(arm(UNIVERSAL, "[0, 0, 1.0]", 0.0))
    # of three cables 120 deg apart at least one and at most two are stretched: a half to the whole of a direction
    assert 0.3 * tight.softest < edge.softest < 0.8 * tight.softest
    loose = arm(UNIVERSAL, "[0, 0, 1.0]", -1e-4)
    assert not solved(loose).stable


def test_a_search_across_the_slack_edge_ends_at_the_same_shape_from_wherever_it_begins():
    """Newton's method alone goes to and fro for ever between a cable that is slack and one that is tight."""
    robot = arm(UNIVERSAL, "[0, 0, 1]", 0.01)
    mechanism, start = robot.model.mechanism, robot.model.start
    names = robot.model.driven_joints(robot.actuators)
    solver = MechanismEquilibriumSolver(mechanism, names)
    turns = np.radians(np.arange(0, 360, 40))
    for turn in turns:  # as far as the tip moves by 30 mm to all sides
        positions = 0.6 * np.cos(turn + 2.0 * np.pi / 3.0 * np.arange(3))
        by_name = dict(zip(names, positions, strict=True))
        near = solver.solve(start, {name: 0.0 for name in names})
        for part in np.linspace(0.1, 1.0, 10):
            near = solver.solve(near.q, {name: part * value for name, value in by_name.items()})
        direct = solver.solve(start, by_name)
        assert direct.stable and np.all(near.strain > 0.0)
        np.testing.assert_allclose(direct.q, near.q, atol=1e-8)
        assert direct.iterations < 15
