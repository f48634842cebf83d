"""A report shows what is carried where it is carried, and a push as long as it acts."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("tensegrity.msg", reason="the ROS interfaces are not built")

from geometry_msgs.msg import WrenchStamped
from tensegrity.msg import CarriedPayloads

from tensegrity_dynamics import load_robot
from tensegrity_dynamics.numerics.rotations import matrix_from_quaternion
from tensegrity_dynamics.visualization.picture import make_picture
from tensegrity_tools.bags.report_loads import PAYLOAD, PUSH, ReportLoads

ROBOT = load_robot("biglide")
PICTURE = make_picture(ROBOT)
BODY, OTHER = ROBOT.model.load_names[-1], ROBOT.model.load_names[0]


def wrench(name: str, *force: float) -> WrenchStamped:
    message = WrenchStamped()
    message.header.frame_id = name
    message.wrench.force.x, message.wrench.force.y, message.wrench.force.z = force
    return message


def shown(loads: ReportLoads, now: float) -> tuple[np.ndarray, np.ndarray]:
    """Payloads (n, 5) and pushes (m, 6) at a time."""
    row = loads.at(now, PICTURE, PICTURE.at(PICTURE.start))
    borne = PAYLOAD * len(loads.carriers)
    return row[:borne].reshape(-1, PAYLOAD), row[borne:].reshape(-1, PUSH)


def test_a_payload_is_shown_at_its_centre_in_its_body_until_it_is_taken_off() -> None:
    loads, centre = ReportLoads(ROBOT, 0.5), np.array([0.01, 0.02, -0.03])
    on = CarriedPayloads(name=[BODY], mass=[0.2], centre=centre.tolist())
    events = [*loads.carry(1.0, on), *loads.carry(1.5, on), *loads.carry(2.0, CarriedPayloads())]
    assert [each["at"] for each in events] == [1.0, 2.0]
    assert "0.2 kg" in events[0]["text"] and "nothing more" in events[1]["text"]
    pose = PICTURE.carrier_pose(PICTURE.at(PICTURE.start), BODY)
    assert pose is not None
    for now, there in ((0.9, False), (1.0, True), (1.9, True), (2.0, False)):
        ball = shown(loads, now)[0][0]
        assert np.isfinite(ball).all() == there
        if there:
            np.testing.assert_allclose(ball[:3], pose[0] + matrix_from_quaternion(pose[1]) @ centre, atol=1e-15)
            assert ball[4] == 0.2


def test_a_push_is_shown_until_the_next_one_or_as_long_as_it_counts() -> None:
    loads = ReportLoads(ROBOT, 0.5)
    pushes = [(1.0, (3.0, 0.0, 4.0)), (1.2, (0.0, 2.0, 0.0)), (2.0, (1.0, 0.0, 0.0)), (2.1, (0.0, 0.0, 0.0))]
    events = [event for at, force in pushes for event in loads.push(at, wrench(BODY, *force))]
    assert [(each["at"], each["text"]) for each in events] == [(1.0, "pushed by 5 N"), (2.0, "pushed by 1 N")]
    forces = {now: shown(loads, now)[1][0][3:] for now in (0.9, 1.1, 1.6, 1.8, 2.05, 2.2)}
    for now, force in ((1.1, pushes[0][1]), (1.6, pushes[1][1]), (2.05, pushes[2][1])):
        assert forces[now].tolist() == list(force)
    assert all(np.isnan(forces[now]).all() for now in (0.9, 1.8, 2.2))


def test_a_push_that_the_simulator_refuses_is_not_shown() -> None:
    loads = ReportLoads(ROBOT, 0.5)
    assert not [*loads.push(1.0, wrench("nobody", 1.0, 0.0, 0.0)), *loads.push(1.0, wrench(BODY, np.nan, 0.0, 0.0))]
    assert loads.pushed == ()


def test_loads_of_several_bodies_keep_their_columns() -> None:
    loads = ReportLoads(ROBOT, 0.5)
    for now, name in ((1.0, BODY), (1.1, OTHER)):
        assert len([*loads.push(now, wrench(name, now, 0.0, 0.0))]) == 1
    assert loads.pushed == (BODY, OTHER)
    assert shown(loads, 1.05)[1][0][3] == 1.0 and np.isnan(shown(loads, 1.05)[1][1]).all()
    assert shown(loads, 1.2)[1][:, 3].tolist() == [1.0, 1.1]
