"""Rigid cables: their tension is what the loop holds the anchor with, and they never push."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tensegrity_dynamics
from tensegrity_control import make_controller
from tensegrity_control.inverse_kinematics.mechanism_equilibria import MechanismEquilibriumMap
from tensegrity_dynamics import NoEquilibriumError, RobotFileError, Simulation, TensegrityError, parse_robot
from tensegrity_dynamics.mechanisms.body_poses import BodyPoses
from tensegrity_dynamics.mechanisms.estimation.quasi_static_estimator import MechanismEstimator
from tensegrity_dynamics.robots.robot_types import type_of

HOIST = """
name: hoist_on_a_rope
kind: mechanism
gravity: [0, 0, {gravity}]
bodies: {{weight: {{shapes: [{{kind: cube, size: [0.1], mass: 2}}]}}}}
joints: [{{name: guide, kind: prismatic, parent: world, body: weight, axis: [0, 0, 1], start: [-0.8]}}]
cables:
  - {{name: rope, body: world, at: [0, 0, 0], block_axis: [0, 0, 1], pulley_axis: [0, -1, 0], pulley_radius: 0.05,
     anchor: {{body: weight, at: [0.05, 0, 0]}}, {stretch}cable_radius: 0.001, variant: {variant}}}
actuators: [{{drives: rope, position: [-20, 20], rate: 50, effort: 10}}]
outputs: [{{name: hook, body: weight, controlled: [z]}}]
"""
WEIGHT, RADIUS = 2 * 9.80665, 0.05


def hoist(variant="rigid", gravity=-9.80665):
    return parse_robot(
        HOIST.format(variant=variant, gravity=gravity, stretch="" if variant == "rigid" else "young: 1.0e+9, "), "here"
    )


def test_a_rigid_rope_carries_the_weight_and_what_accelerates_it():
    robot = hoist()
    assert MechanismEstimator(robot).solve({}).tensions["rope"] == pytest.approx(WEIGHT, rel=1e-12)
    simulation = Simulation(robot, time_step=1e-3)
    assert simulation.observe().tensions["rope"] == pytest.approx(WEIGHT, rel=1e-9)
    simulation.advance(5, effort={"rope": 1.5 * WEIGHT * RADIUS})
    assert simulation.observe().tensions["rope"] == pytest.approx(1.5 * WEIGHT, rel=1e-9)
    speed = -simulation.state.v[robot.mechanism.velocities_of("guide")][0]
    assert -speed == pytest.approx(0.5 * 9.80665 * simulation.time, rel=1e-9)


def test_a_rigid_rope_is_refused_where_it_would_push():
    simulation = Simulation(hoist(), time_step=1e-3)
    simulation.advance(3, effort={"rope": 0.5 * WEIGHT * RADIUS})
    with pytest.raises(TensegrityError, match="rigid cable rope would have to push with 10 N"):
        simulation.advance(3, effort={"rope": -10 * RADIUS})
    assert simulation.time == pytest.approx(3e-3)
    with pytest.raises(NoEquilibriumError, match="rope would have to push"):
        MechanismEstimator(hoist(gravity=9.80665))
    report = type_of(hoist()).report(hoist(gravity=9.80665)).check()
    assert any("rope would have to push" in note for note in report.notes)
    with pytest.raises(NoEquilibriumError, match="rope would have to push"):
        type_of(hoist()).report(hoist(gravity=9.80665)).stiffness()


def test_no_reading_and_no_equilibrium_has_a_rigid_rope_that_pushes():
    up = hoist(gravity=9.80665)  # the weight pulls upwards, on a rope from above
    with pytest.raises(TensegrityError, match=r"at 0 s the rigid cable rope would have to push with 19\.61 N"):
        Simulation(up, time_step=1e-3).observe()  # it said -19.61 N
    with pytest.raises(TensegrityError, match="rope would have to push"):
        MechanismEquilibriumMap(up, shapes_only=True)
    assert MechanismEquilibriumMap(hoist(), shapes_only=True).home.effort.max() == pytest.approx(WEIGHT * RADIUS)


def test_after_a_refused_push_the_last_state_still_reads_its_pull():
    simulation = Simulation(hoist(), time_step=1e-3)
    simulation.advance(3, effort={"rope": 0.5 * WEIGHT * RADIUS})
    with pytest.raises(TensegrityError, match="would have to push"):
        simulation.advance(3, effort={"rope": -10 * RADIUS})
    assert simulation.observe().tensions["rope"] == pytest.approx(0.5 * WEIGHT, rel=1e-9)


@pytest.mark.parametrize("name", ["near_rigid", "task", "qp", "joint_position"])
def test_control_by_strains_refuses_rigid_cables_by_name(name):
    with pytest.raises(TensegrityError, match=r"cable rope (is|has variant) rigid"):
        make_controller(name, hoist())


def test_a_rigid_cable_needs_no_modulus_and_a_push_that_is_rounding_stops_nothing():
    text = (Path(tensegrity_dynamics.__file__).parent / "robots" / "single_strut.yaml").read_text()
    rigid = text.replace('young: "2 GPa"', "variant: rigid").replace('      damping: "10 MPa s"\n', "")
    rigid = rigid.replace("      strain: 0.01\n", "").replace(", minimum_tension: 20", "")
    simulation = Simulation(parse_robot(rigid, "here"), time_step=1e-3)
    simulation.advance(1)  # nothing pulls the upright strut aside
    assert list(simulation.observe().tensions.values()) == pytest.approx([0.0] * 3, abs=1e-9)
    with pytest.raises(RobotFileError, match=r"B1\)\.young: a cable that stretches needs it; or say variant: rigid"):
        parse_robot(text.replace('      young: "2 GPa"\n', ""), "here")


def hung_mass(anchors, routed):
    """A mass of 2 kg at the origin on rigid cables to points (x, z), more than it needs."""
    lines = [
        "{kind: mechanism, name: hung, bodies: {slide: {}, load: {mass: 2, inertia: [0.01, 0.01, 0.01]}}, joints: [",
        "{name: x, kind: prismatic, parent: world, body: slide, axis: [1, 0, 0]},",
        "{name: z, kind: prismatic, parent: slide, body: load, axis: [0, 0, 1]}],",
        "routed_cables: [" if routed else "cables: [",
    ]
    for k, (x, z) in enumerate(anchors):
        lines.append(
            f"{{name: c{k}, rigid: true, route: [{{body: world, at: [{x}, 0, {z}]}}, {{body: load, at: [0, 0, 0]}}]}},"
            if routed
            else f"{{name: c{k}, body: world, at: [{x}, 0, {z}], block_axis: [0, 0, 1], pulley_axis: [0, 1, 0], "
            "pulley_radius: 0.02, cable_radius: 0.001, variant: rigid, anchor: {body: load, at: [0, 0, 0]}, "
            "pulley: [{kind: cylinder, size: [0.02, 0.01], density: 1000, frame: {z: [0, 1, 0]}}]},"
        )
    drives = [f"{{drives: c{k}, position: [-9, 9], rate: 3, effort: 100}}," for k in range(len(anchors))]
    return parse_robot("\n".join([*lines, "]", "" if routed else f", actuators: [{' '.join(drives)}]", "}"]), "here")


@pytest.mark.parametrize("routed", [False, True])
def test_redundant_rigid_cables_hold_what_can_be_held_by_pulling(routed):
    # the forces of least norm would compress the third cable, which may as well carry nothing
    robot = hung_mass([(-1, 1), (1, 1), (1, -0.3)], routed)
    simulation = Simulation(robot, time_step=1e-3)
    simulation.advance(duration=0.1)
    tensions = np.array(list(simulation.observe().tensions.values()))
    directions = np.array([[-1, 1], [1, 1], [1, -0.3]]) / np.sqrt([2, 2, 1.09])[:, None]
    if not routed:  # the cables leave the rims of their pulleys
        directions = np.array([cable_direction(robot, simulation, f"c{k}") for k in range(3)])
    assert (tensions > 0.0).all()
    np.testing.assert_allclose(directions.T @ tensions, [0.0, 2 * 9.80665], atol=1e-6)


def cable_direction(robot, simulation, name):
    poses = BodyPoses(robot.model).update(simulation.state.q)
    return -poses.rotations[robot.mechanism.body_index[f"{name}-cable"]][[0, 2], 0]


def test_servos_of_redundant_rigid_cables_keep_their_tensions():
    simulation = Simulation(hung_mass([(-1, 1), (1, 1), (0.3, 1)], False), time_step=1e-3)
    before = simulation.observe().tensions
    simulation.advance(duration=0.2)  # rounding errors shifted 2 N from one cable to another
    for name, tension in simulation.observe().tensions.items():
        assert tension == pytest.approx(before[name], abs=1e-4)
