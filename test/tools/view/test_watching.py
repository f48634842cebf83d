"""What an operator sees beside the robot: a camera that goes along, the face it stands on, faults."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from patience import until
from view_visitor import free_port, visit

from tensegrity_dynamics import forward_kinematics
from tensegrity_dynamics.robots.load_robot import load_robot
from tensegrity_dynamics.visualization.picture import make_picture
from tensegrity_tools.view import View, camera
from tensegrity_tools.view.camera import FollowingCamera, middle_of
from tensegrity_tools.view.state import ViewState


class Camera:
    """Takes what it looks at along, as viser's does."""

    def __init__(self, aspect: float = 1.6) -> None:
        self._position, self.look_at = np.array([3.0, 0.0, 1.0]), np.zeros(3)
        self.aspect, self.fov, self.update_timestamp = aspect, 0.66, 1.0

    @property
    def position(self) -> np.ndarray:
        return self._position

    @position.setter
    def position(self, value: np.ndarray) -> None:
        self.look_at = self.look_at + value - self._position
        self._position = np.array(value)


def server(*cameras: Camera) -> Any:
    clients = {key: SimpleNamespace(camera=camera) for key, camera in enumerate(cameras)}
    return SimpleNamespace(get_clients=lambda: clients, initial_camera=Camera())


@pytest.fixture(autouse=True)
def pages_that_are_laid_out_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(camera, "SETTLED", 0.0)


def test_the_camera_stays_where_the_robot_stays_and_goes_along_where_it_leaves() -> None:
    eye = Camera()
    follower = FollowingCamera(server(eye), np.zeros(3), span=1.0)
    for _ in range(50):
        assert not follower.update(np.array([0.2, 0.0, 0.0]))  # it bends
    np.testing.assert_array_equal(eye.position, [3.0, 0.0, 1.0])
    while follower.update(np.array([1.5, -0.8, 0.0])):
        pass
    assert np.linalg.norm(eye.look_at - [1.5, -0.8, 0.0]) < 0.03
    np.testing.assert_allclose(
        eye.position - eye.look_at, [3.0, 0.0, 1.0], atol=1e-12
    )  # people's own direction and distance
    follower.follows = False
    follower.update(np.array([5.0, 0.0, 0.0]))
    assert np.linalg.norm(eye.look_at - [1.5, -0.8, 0.0]) < 0.03


def test_a_browser_that_comes_later_looks_at_the_robot_too() -> None:
    late = Camera()
    clients: dict[int, Any] = {}
    follower = FollowingCamera(
        SimpleNamespace(get_clients=lambda: clients, initial_camera=Camera()), np.zeros(3), span=1.0
    )
    while follower.update(np.array([4.0, 0.0, 0.0])):
        pass
    clients[7] = SimpleNamespace(camera=late)
    follower.update(np.array([4.0, 0.0, 0.0]))
    assert np.linalg.norm(late.look_at - [4.0, 0.0, 0.0]) < 0.03


def test_on_a_phone_the_camera_steps_back_and_shows_the_robot_above_the_middle() -> None:
    phone = Camera(aspect=0.46)
    follower = FollowingCamera(server(phone), np.zeros(3), span=1.0)
    follower.update(np.zeros(3))
    away = phone.position - phone.look_at
    assert np.linalg.norm(away) == pytest.approx(2.0 * np.sqrt(10.0))
    assert phone.look_at[2] < -0.5 and abs(np.dot(phone.look_at, away)) < 1e-9  # moved across the line of sight
    stands = phone.position.copy()
    assert not follower.update(np.zeros(3))
    np.testing.assert_array_equal(phone.position, stands)
    phone.aspect = 2.2  # turned on its side
    follower.update(np.zeros(3))
    np.testing.assert_allclose(phone.position, [3.0, 0.0, 1.0], atol=1e-12)
    np.testing.assert_allclose(phone.look_at, np.zeros(3), atol=1e-12)


def test_a_page_that_is_being_laid_out_moves_no_camera(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(camera, "SETTLED", 1e9)
    page = Camera(aspect=0.1)
    follower = FollowingCamera(server(page), np.zeros(3), span=1.0)
    for aspect in (0.1, 2.0, 0.46, 1.6, 0.46):
        page.aspect = aspect
        assert follower.update(np.zeros(3))  # comes back for it, though the robot stands still
        np.testing.assert_array_equal(page.position, [3.0, 0.0, 1.0])


def test_the_camera_that_a_page_has_before_it_hears_of_ours_does_not_count() -> None:
    page = Camera(aspect=0.46)
    page.position, page.look_at, page.fov = np.array([30.0, 30.0, 30.0]), np.zeros(3), 1.309
    usual = Camera(aspect=0.46)
    follower = FollowingCamera(server(page, usual), np.zeros(3), span=1.0)
    follower.update(np.zeros(3))
    np.testing.assert_allclose(page.look_at, usual.look_at)
    assert np.linalg.norm(page.position - page.look_at) == pytest.approx(2.0 * np.sqrt(10.0))
    fitted, aim = page.position.copy(), page.look_at.copy()
    page.position = np.array([3.0, 0.0, 1.0])  # the first camera came after ours, or is asked for once more
    follower.update(np.zeros(3))
    np.testing.assert_allclose(page.position, fitted)
    np.testing.assert_allclose(page.look_at, aim)


def test_the_face_that_a_robot_stands_on_are_the_nodes_that_carry_it() -> None:
    picture = make_picture(load_robot("six_bar"))
    sunk = picture.start - [0.0, 0.0, 3e-3]
    contacts = picture.contact_lines(sunk)
    feet = picture.footing(sunk, contacts)
    lowest = np.argsort(sunk[:, 2])[:3]
    assert sorted(feet) == sorted(lowest) and len(contacts) == 3
    raised = picture.start + [0.0, 0.0, 1.0]
    assert not len(picture.footing(raised, picture.contact_lines(raised)))


def test_the_force_of_the_ground_is_written_in_newton() -> None:
    robot = load_robot("six_bar")
    with View(robot, free_port()) as view, visit(view) as visitor:
        weight = float(np.linalg.norm(robot.structure.weights().sum(axis=0)))
        view.show(ViewState(1.0, forward_kinematics(robot).nodes))
        until(lambda: visitor.row("Ground force").endswith(" N at 3 points &#9473;"))
        assert float(visitor.row("Ground force").split()[0]) == pytest.approx(weight, rel=5e-3)
        view.show(ViewState(2.0, view.picture.start + [0.0, 0.0, 1.0]))
        until(lambda: visitor.row("Ground force") == "none")


def test_a_plate_shows_a_goal_only_where_the_output_is_one_that_goals_turn() -> None:
    assert len(make_picture(load_robot("tensebot")).goal_corners) >= 3
    corners = make_picture(load_robot("six_bar")).goal_corners  # twelve nodes around it
    np.testing.assert_array_equal(corners, np.zeros((1, 3)))


def test_the_middle_of_a_mechanism_is_that_of_its_bodies() -> None:
    picture = make_picture(load_robot("single_strut"))
    start = picture.at(picture.start)
    middle = middle_of(start)
    assert np.all(middle > start.solid_positions.min(axis=0) - 1e-9)
    assert np.all(middle < start.solid_positions.max(axis=0) + 1e-9)


def test_faults_of_the_own_robot_are_shown_until_they_are_over() -> None:
    pytest.importorskip("rclpy", reason="ROS 2 is not installed")
    pytest.importorskip("tensegrity.msg", reason="the interfaces are not built")
    from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus

    from tensegrity_tools.ros.view_node import Faults

    def say(name: str, level: bytes, message: str) -> DiagnosticArray:
        return DiagnosticArray(status=[DiagnosticStatus(name=name, level=level, message=message)])

    faults = Faults("/left", "left/view")
    faults.hear(say("left/driver", DiagnosticStatus.ERROR, "draw_3 stalls; free it, then call driver/release"))
    faults.hear(say("right/driver", DiagnosticStatus.ERROR, "of another robot"))
    faults.hear(say("left/view", DiagnosticStatus.WARN, "no structure_state"))
    faults.hear(say("left/estimator", DiagnosticStatus.OK, "estimating"))
    assert faults.lines(errors=True) == ("driver: draw_3 stalls; free it, then call driver/release",)
    for name in ("draw_3", "draw_1"):
        faults.hear(say(f"left/driver: {name}", DiagnosticStatus.ERROR, f"{name}: stalls; free it"))
    faults.hear(say("left/driver: bus", DiagnosticStatus.ERROR, "bus: two sources; end one | bus: no command; hold"))
    faults.hear(say("left/driver", DiagnosticStatus.ERROR, "bus: two sources; end one (and 2 more)"))
    assert sorted(faults.lines(errors=True)) == [  # each once, though the driver sums them up
        "driver: bus: no command; hold",
        "driver: bus: two sources; end one",
        "driver: draw_3, draw_1: stalls; free it",
    ]
    for name in ("left/driver", "left/driver: bus", "left/driver: draw_3", "left/driver: draw_1"):
        faults.hear(say(name, DiagnosticStatus.OK, "active"))
    assert faults.lines(errors=True) == faults.lines(errors=False) == ()
