"""Records and StructureState messages are the same state."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")
pytest.importorskip("tensegrity.msg", reason="the interfaces are not built")

from rclpy.serialization import deserialize_message, serialize_message
from tensegrity.msg import RobotLayout, StructureState, TendonState

from tensegrity_dynamics import Simulation, TensegrityError, load_robot
from tensegrity_dynamics.robots.robot_types import type_of
from tensegrity_dynamics.robots.state_record import StateRecord
from tensegrity_dynamics.ros.geometry_messages import nanoseconds, time_message
from tensegrity_dynamics.ros.robot_description import layout_message, layout_of_message
from tensegrity_dynamics.ros.state_decoding import StateDecoder, coordinate_record, record_of, state_record
from tensegrity_dynamics.ros.state_encoding import InsideState, StateBuffer, state_message

FIELDS = (
    "node_position", "node_velocity", "body_position", "body_quaternion", "body_twist", "q", "v", "output_twist",
)  # fmt: skip


@pytest.mark.parametrize("name", ["three_prism", "single_strut"])
def test_a_record_survives_the_message(name):
    robot = load_robot(name)
    simulation = Simulation(robot)
    simulation.set_motion(1e-2 * np.random.default_rng(0).normal(size=simulation.state.velocity.shape))
    seen = simulation.observe()
    codec = type_of(robot).codec(robot)
    record = replace(codec.encode(simulation.state, seen.pose, seen.twist), residual=0.25)
    message = state_message(record, time_message(1_500_000_000), "simulator")
    assert (message.header.frame_id, message.source, nanoseconds(message.header.stamp)) == (
        "world", "simulator", 1_500_000_000,
    )  # fmt: skip
    assert not (message.node_name or message.body_name or message.coordinate_name)  # they are in the layout
    back = state_record(message, codec.layout)
    for field in FIELDS:
        expected, found = getattr(record, field), getattr(back, field)
        if expected is not None:
            np.testing.assert_allclose(found, expected, atol=1e-12, err_msg=field)
    for field in ("node_name", "body_name", "coordinate_name"):
        assert tuple(getattr(back, field)) == tuple(getattr(record, field))
    assert (back.output_name, back.residual, back.converged) == (record.output_name, 0.25, True)
    decoder = StateDecoder(robot)
    np.testing.assert_array_equal(decoder.configuration(message), simulation.state.configuration)
    np.testing.assert_array_equal(decoder.state(message).velocity, simulation.state.velocity)


@pytest.mark.parametrize("name", ["three_prism", "single_strut"])
def test_the_buffer_is_read_as_the_message_record_after_record(name):
    robot = load_robot(name)
    simulation, codec, buffer = Simulation(robot), type_of(robot).codec(robot), StateBuffer()
    rng = np.random.default_rng(2)
    for k in range(6):
        simulation.set_motion(1e-2 * rng.normal(size=simulation.state.velocity.shape))
        simulation.advance(2)
        seen, stamp = simulation.observe(), time_message(int(rng.integers(0, 2**60)))
        pose, twist = (None, None) if k == 3 else (seen.pose, seen.twist)
        record = replace(codec.encode(simulation.state, pose, twist), residual=rng.normal(), converged=k != 4)
        assert deserialize_message(buffer(record, stamp, "x"), StructureState) == state_message(record, stamp, "x")


@pytest.mark.parametrize("name", ["three_prism", "single_strut"])
def test_a_state_inside_a_process_is_filled_when_it_is_read_and_then_is_its_message(name):
    robot = load_robot(name)
    simulation, codec, stamp = Simulation(robot), type_of(robot).codec(robot), time_message(1_500_000_000)
    seen = simulation.observe()
    record = replace(codec.encode(simulation.state, seen.pose, seen.twist), residual=0.25, converged=False)
    whole, inside = state_message(record, stamp, "x"), InsideState(record, stamp, "x")
    assert record_of(inside) is record and record_of(whole) is None
    assert (inside.header, inside.source, inside.layout, inside.converged) == (whole.header, "x", record.layout, False)
    with pytest.raises(AttributeError):
        object.__getattribute__(inside, "_q")  # nobody has read it
    for field in StructureState.get_fields_and_field_types():
        assert getattr(InsideState(record, stamp, "x"), field) == getattr(whole, field)
    assert inside == whole and deserialize_message(serialize_message(inside), StructureState) == whole
    with pytest.raises(AttributeError, match="nothing"):
        _ = inside.nothing


def test_a_robot_without_anything_has_bytes_too():
    record, stamp = StateRecord(), time_message(7)
    assert deserialize_message(StateBuffer()(record, stamp, "x"), StructureState) == state_message(record, stamp, "x")


def test_coordinates_alone_are_those_of_the_whole_record_and_refused_like_it():
    robot = load_robot("single_strut")
    simulation = Simulation(robot)
    codec = type_of(robot).codec(robot)
    message, layout = state_message(codec.encode(simulation.state), time_message(0), "simulator"), codec.layout
    whole, part = state_record(message, layout), coordinate_record(message, layout)
    assert part.coordinate_name == whole.coordinate_name
    np.testing.assert_array_equal(part.q, whole.q)
    np.testing.assert_array_equal(part.v, whole.v)
    message.body_pose = message.body_pose[:-3]
    for function in (state_record, coordinate_record):
        with pytest.raises(TensegrityError, match="bod"):
            function(message, layout)


def test_every_field_of_the_message_is_in_the_record():
    of_message = set(StructureState.get_fields_and_field_types()) - {"header", "source"}
    of_record = {
        "body_pose" if n in ("body_position", "body_quaternion") else n for n in vars(state_record(StructureState()))
    }
    assert of_record == of_message


def test_a_message_with_fewer_positions_than_nodes_is_refused():
    with pytest.raises(TensegrityError, match="2 nodes but 0 positions"):
        state_record(StructureState(node_name=["a", "b"]))


def test_tensions_of_a_message_are_read_by_name_and_none_are_known_without_one():
    robot = load_robot("single_strut")
    decoder, names = StateDecoder(robot), robot.model.cable_names
    tensions = decoder.tensions(TendonState(name=[names[1]], tension=[5.0]), robot.model.start)
    assert tensions[1] == 5.0 and np.isnan(tensions[0])
    assert np.isnan(decoder.tensions(None, robot.model.start)).all()


@pytest.mark.parametrize("name", ["three_prism", "single_strut"])
def test_the_layout_survives_its_message_and_one_that_was_changed_is_refused(name):
    robot = load_robot(name)
    layout = type_of(robot).codec(robot).layout
    message = layout_message(layout, robot.name)
    assert layout_of_message(deserialize_message(serialize_message(message), RobotLayout)) == layout
    message.tendon_name = list(message.tendon_name)[::-1]
    with pytest.raises(TensegrityError, match="says the hash"):
        layout_of_message(message)


def test_a_state_of_another_layout_is_refused_in_one_sentence():
    robot, other = load_robot("three_prism"), load_robot("four_prism")
    codec = type_of(other).codec(other)
    message = state_message(codec.encode(Simulation(other).state), time_message(0), "simulator")
    with pytest.raises(TensegrityError, match=r"belong to other names\. Do all nodes run the same robot\?"):
        StateDecoder(robot).state(message)
    with pytest.raises(TensegrityError, match="belong to other names"):
        StateDecoder(robot).tensions(TendonState(layout=message.layout), robot.model.initial_configuration)
    with pytest.raises(TensegrityError, match="robot_layout"):
        state_record(message)


def test_a_state_with_names_needs_no_layout():
    robot = load_robot("three_prism")
    record = replace(type_of(robot).codec(robot).encode(Simulation(robot).state), layout="")
    message = state_message(record, time_message(0), "somebody else")
    assert message.node_name and not message.layout
    np.testing.assert_array_equal(StateDecoder(robot).configuration(message), record.node_position)
