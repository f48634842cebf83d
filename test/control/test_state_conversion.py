"""What a controller learns of a state is the same whether its message was filled or handed over as a record."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")
pytest.importorskip("tensegrity.msg", reason="the interfaces are not built")

from tensegrity_control.ros.state_conversion import StateReader
from tensegrity_dynamics import Simulation, TensegrityError, load_robot
from tensegrity_dynamics.robots.robot_types import type_of
from tensegrity_dynamics.ros.geometry_messages import time_message
from tensegrity_dynamics.ros.state_encoding import InsideState, state_message


@pytest.mark.parametrize("name", ["three_prism", "single_strut"])
def test_a_record_says_what_its_message_says_to_the_last_bit(name):
    robot = load_robot(name)
    simulation, reader = Simulation(robot), StateReader(robot)
    simulation.set_motion(1e-2 * np.random.default_rng(1).normal(size=simulation.state.velocity.shape))
    seen, stamp = simulation.observe(), time_message(5)
    record = type_of(robot).codec(robot).encode(simulation.state, seen.pose, seen.twist)
    position, quaternion = seen.pose
    for other in (
        record, replace(record, output_pose=None), replace(record, converged=False),
        replace(record, output_pose=(position, 2.0 * quaternion)),
        replace(record, output_pose=(position, 0.0 * quaternion)),
        replace(record, output_pose=(0.0 * position, np.array([1.0, 0.0, 0.0, 0.0]))),  # in the world's own frame
    ):  # fmt: skip
        inside, whole = InsideState(other, stamp, "x"), state_message(other, stamp, "x")
        reader.check(inside)
        mine, theirs = reader.observe(inside), reader.observe(whole)
        for field in ("q", "v", "nodes"):
            np.testing.assert_array_equal(getattr(mine, field), getattr(theirs, field))
        assert (mine.pose is None) == (theirs.pose is None)
        has_pose = other.converged and other.output_pose is not None and other.output_pose[1].any()
        assert (mine.pose is not None) == has_pose
        for one, another in zip(mine.pose or (), theirs.pose or (), strict=True):
            np.testing.assert_array_equal(one, another)
    if mine.q is not None:
        assert not np.shares_memory(mine.q, record.q)  # a controller may do with it what it likes
    for message in (InsideState, state_message):
        with pytest.raises(TensegrityError, match="layout"):
            reader.check(message(replace(record, layout="0" * 16), stamp, "x"))
