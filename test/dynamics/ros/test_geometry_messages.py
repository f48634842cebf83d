"""Poses and times between messages and arrays."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from tensegrity_dynamics.ros.geometry_messages import fill_pose, pose_from_message, seconds, state_pose, stated_pose


def test_unset_pose_is_no_goal():
    def message(w: float, x: float = 0.0):
        return SimpleNamespace(
            position=SimpleNamespace(x=x, y=0.0, z=0.0), orientation=SimpleNamespace(w=w, x=0.0, y=0.0, z=0.0)
        )

    assert pose_from_message(message(0.0)) is None
    assert pose_from_message(message(1.0)) is None  # as the message is made
    assert pose_from_message(message(1.0, 0.1)) is not None
    # an output may well stand in the world's own frame
    states = [SimpleNamespace(output_name=name, output_pose=message(w)) for name in ("", "hand") for w in (0.0, 1.0)]
    assert [state_pose(state) is None for state in states] == [True, True, True, False]
    assert stated_pose(message(0.0)) is None and stated_pose(message(1.0)) is not None
    assert pose_from_message(message(1.0, np.nan)) is None
    position, quaternion = pose_from_message(fill_pose(message(0.0), [1.0, 2.0, 3.0], [0.0, 0.0, 1.0, 0.0]))
    np.testing.assert_array_equal(position, [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(quaternion, [0.0, 0.0, 1.0, 0.0])
    assert seconds(SimpleNamespace(sec=3, nanosec=500_000_000)) == 3.5
