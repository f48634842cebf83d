"""What a request of set_goal_pose asks for: orientation kept or set, and never by an omitted field."""

from __future__ import annotations

import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")
pytest.importorskip("tensegrity.srv", reason="the interfaces are not built")

from geometry_msgs.msg import Quaternion
from tensegrity.srv import SetGoalPose

from tensegrity_control.ros.goal_requests import pose_asked
from tensegrity_dynamics import TensegrityError

KEEP, SET = SetGoalPose.Request.KEEP, SetGoalPose.Request.SET


def request(orientation: int, turn: Quaternion | None = None) -> SetGoalPose.Request:
    made = SetGoalPose.Request(orientation=orientation)
    made.target.pose.position.z = 0.2
    if turn is not None:
        made.target.pose.orientation = turn
    return made


def test_an_omitted_quaternion_keeps_the_orientation() -> None:
    for turn in (None, Quaternion(w=0.0)):
        pose = pose_asked(request(KEEP, turn))
        assert pose.position.z == 0.2
        assert pose.orientation == Quaternion(w=0.0)


def test_identity_is_identity_where_the_orientation_is_set() -> None:
    assert pose_asked(request(SET)).orientation == Quaternion(w=1.0)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (SetGoalPose.Request(), "the request is empty"),
        (request(SET, Quaternion(w=0.0)), "quaternion of target is zero"),
        (request(KEEP, Quaternion(x=1.0, w=0.0)), "orientation is KEEP"),
        (request(7), "orientation is 7; give 0"),
    ],
)
def test_requests_that_contradict_themselves_are_refused(asked: SetGoalPose.Request, words: str) -> None:
    with pytest.raises(TensegrityError, match=words):
        pose_asked(asked)
