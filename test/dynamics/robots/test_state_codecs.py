"""States of structures and mechanisms as records and back; records of another robot are refused by name."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from view_robots import prism_robot

from tensegrity_dynamics import Robot, Simulation, TensegrityError, load_robot, shipped_robots
from tensegrity_dynamics.estimation import make_estimator
from tensegrity_dynamics.robots.robot_types import type_of
from tensegrity_dynamics.robots.state_record import StateRecord


def codec_of(robot: Robot):
    return type_of(robot).codec(robot)


def record_of(robot: Robot) -> StateRecord:
    return codec_of(robot).encode(make_estimator(robot).solve({}))


@pytest.fixture
def prism() -> Robot:
    return prism_robot()


@pytest.fixture(scope="module")
def manipulator() -> Robot:
    return load_robot("manipulator")


@pytest.mark.parametrize("name", shipped_robots())
def test_a_moving_state_survives_its_record(name):
    robot = load_robot(name)
    simulation, codec = Simulation(robot), codec_of(robot)
    state = simulation.state
    simulation.set_motion(1e-3 * np.random.default_rng(0).normal(size=state.velocity.shape))
    state, seen = simulation.state, simulation.observe()
    record = codec.encode(state, seen.pose, seen.twist)
    alone = codec.encode(state)
    if robot.model.kind == "mechanism":  # the simulator node leaves pose and twist to the codec
        np.testing.assert_array_equal(np.concatenate(alone.output_pose), np.concatenate(seen.pose))
        np.testing.assert_array_equal(alone.output_twist, seen.twist)
    decoded = codec.decode(record)
    np.testing.assert_array_equal(decoded.configuration, state.configuration)
    np.testing.assert_array_equal(decoded.velocity, state.velocity)
    if robot.outputs:
        assert record.output_name == robot.output.name
        np.testing.assert_array_equal(record.output_pose[0], seen.pose[0])
        position, turn = robot.output_pose(state.configuration)
        np.testing.assert_allclose(position, seen.pose[0], atol=1e-12)
        assert abs(turn @ seen.pose[1]) == pytest.approx(1.0)


def test_bodies_of_a_record_move_as_their_poses_do(manipulator):
    robot, simulation = manipulator, Simulation(manipulator, 1e-4)
    codec, step = codec_of(robot), 1e-5
    simulation.set_motion(0.1 * np.random.default_rng(1).normal(size=robot.mechanism.velocity_count))
    before = codec.encode(simulation.state)
    simulation = Simulation(robot, step)
    simulation.set_state(before.q, before.v)
    simulation.advance(1)
    after = codec.encode(simulation.state)
    moved = (after.body_position - before.body_position) / step
    np.testing.assert_allclose(0.5 * (before.body_twist + after.body_twist)[:, :3], moved, atol=1e-3)
    assert np.max(np.abs(moved)) > 0.05


def test_nodes_are_read_in_the_order_of_the_robot(prism):
    order, record = [3, 1, 5, 0, 2, 4], record_of(prism)
    shuffled = replace(
        record, node_name=[record.node_name[k] for k in order], node_position=record.node_position[order],
        node_velocity=record.node_velocity[order],
    )  # fmt: skip
    np.testing.assert_array_equal(codec_of(prism).decode(shuffled).configuration, record.node_position)


def test_nodes_of_another_robot_are_refused_by_name(prism):
    codec, record = codec_of(prism), record_of(prism)
    names = list(record.node_name)
    with pytest.raises(TensegrityError, match=r"no node 'elbow'.*Do all nodes run the same robot\?"):
        codec.decode(replace(record, node_name=[*names[:2], "elbow", *names[3:]]))
    with pytest.raises(TensegrityError, match="lacks the nodes e, f"):
        codec.decode(replace(record, node_name=names[:4], node_position=record.node_position[:4]))
    with pytest.raises(TensegrityError, match="6 nodes but 4 positions"):
        codec.decode(replace(record, node_position=record.node_position[:4]))


def test_coordinates_of_another_robot_are_refused_by_name(manipulator):
    codec, record = codec_of(manipulator), record_of(manipulator)
    names = list(record.coordinate_name)
    with pytest.raises(TensegrityError, match=r"no coordinate 'elbow'.*Do all nodes run the same robot\?"):
        codec.decode(replace(record, coordinate_name=[names[0], "elbow", *names[2:]]))
    with pytest.raises(TensegrityError, match=r"lacks the coordinates .*same robot"):
        codec.decode(replace(record, coordinate_name=[names[0], *names[2:]]))
    with pytest.raises(TensegrityError, match=r"another order.*same robot"):
        codec.decode(replace(record, coordinate_name=names[::-1]))
    with pytest.raises(TensegrityError, match=r"no coordinates.*same robot"):
        codec.decode(StateRecord())
    with pytest.raises(TensegrityError, match="41 positions q, manipulator has 40"):
        codec.decode(replace(record, q=np.append(record.q, 0.0)))
    q = np.array(record.q)
    q[manipulator.mechanism.positions_of("floatingJt")] = 0.0
    with pytest.raises(TensegrityError, match="quaternion of joint floatingJt has length 0"):
        codec.decode(replace(record, q=q))


def test_tensions_come_by_tendon_or_actuator_and_springs_from_their_stretch(prism):
    structure = prism.structure
    tensions = codec_of(prism).tensions(["side_0", "spool_1", "unknown"], [3.0, 4.0, 9.0], structure.nodes)
    assert tensions[structure.member("side_0")] == 3.0
    assert tensions[structure.member("side_1")] == 4.0
    assert np.isnan(tensions[structure.member("side_2")])
    assert np.isnan(tensions[structure.member("bar_0")])
    coil = structure.member("coil")
    i, j = structure.members[coil]
    stretch = np.linalg.norm(structure.nodes[i] - structure.nodes[j]) - structure.rest_lengths[coil]
    assert tensions[coil] == pytest.approx(structure.stiffness[coil] * stretch)


def test_tensions_come_by_cable_or_actuator_and_the_others_are_unknown(manipulator):
    renamed = replace(manipulator.actuators[2], name="winch_2")
    robot = replace(manipulator, actuators=(*manipulator.actuators[:2], renamed, *manipulator.actuators[3:]))
    names, codec = robot.model.cable_names, codec_of(robot)
    row = names.index(renamed.drives)
    tensions = codec.tensions([names[0], "winch_2", "unknown"], [3.0, 4.0, 9.0], robot.model.start)
    assert tensions[0] == 3.0 and tensions[row] == 4.0
    assert np.all(np.isnan(np.delete(tensions, [0, row])))
    assert np.all(np.isnan(codec.tensions((), (), robot.model.start)))


def test_a_model_that_is_none_is_refused():
    with pytest.raises(TensegrityError, match="the model of arm is of type object; give a RobotModel"):
        Robot(name="arm", model=object())
