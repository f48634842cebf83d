"""The browser view: its scene, goals and buttons, its server, and what a real browser makes of it."""

from __future__ import annotations

import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from headless_browser import HeadlessBrowser, find_chromium
from hostile_messages import FLOATS
from hypothesis import given, settings
from hypothesis import strategies as st
from patience import PATIENCE_S, until
from view_robots import prism_robot
from view_visitor import free_port, visit

from tensegrity_dynamics.numerics.rotations import matrix_from_quaternion
from tensegrity_dynamics.robots.carried_payload import CarriedPayload
from tensegrity_dynamics.robots.load_robot import load_robot, shipped_robots
from tensegrity_dynamics.robots.robot import Robot
from tensegrity_dynamics.structures.structure import Structure
from tensegrity_dynamics.visualization.structure_picture import StructurePicture
from tensegrity_dynamics.visualization.style import UNKNOWN_COLOUR, round_up, scale_ticks
from tensegrity_tools.view import Answer, View, ViewState, meshes
from tensegrity_tools.view.display_units import LengthUnit, quaternion_from_roll_pitch_yaw, roll_pitch_yaw
from tensegrity_tools.view.status_panel import status_html
from tensegrity_tools.view.tension_plot import MAX_LINES, TensionPlot


def state_of(robot: Robot, time: float = 1.0, tension: float = 5.0, **more) -> ViewState:
    structure = robot.structure
    tensions = np.where(structure.unilateral, tension, np.nan)
    return ViewState(time=time, configuration=np.array(structure.nodes), tensions=tensions, **more)


@pytest.fixture
def prism() -> Robot:
    return prism_robot()


@pytest.fixture
def view(prism) -> Iterator[View]:
    with View(prism, free_port()) as opened:
        yield opened


# -- scene --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in shipped_robots() if isinstance(load_robot(name).model, Structure)])
def test_every_shipped_structure_can_be_seen(name):
    robot = load_robot(name)
    with View(robot, free_port()) as view, visit(view):
        assert view.show(state_of(robot))
        until(lambda: view.drawn > 0)


def test_slack_tendon_is_named_and_dashed(view, prism):
    state = state_of(prism)
    state.tensions[prism.structure.member("side_2")] = 0.0
    tendons = [name for name, kind in zip(prism.structure.member_names, prism.structure.kinds, strict=True)
               if kind == "tendon"]  # fmt: skip
    with visit(view) as visitor:
        view.show(state)
        until(lambda: visitor.row("Slack") == "side_2")
        assert visitor.scene["/robot/slack"]["visible"]
        assert len(visitor.array("/robot/slack", "points")) > 2
        hidden = visitor.array("/robot/tendons", "batched_scales")[:, 0] == 0.0
        assert [name for name, gone in zip(tendons, hidden, strict=True) if gone] == ["side_2"]
        view.show(state_of(prism, time=2.0))
        until(lambda: visitor.row("Slack") == "none")
        assert not visitor.scene["/robot/slack"]["visible"]


def test_scene_follows_the_nodes(view, prism):
    moved = np.array(prism.structure.nodes)
    moved[prism.structure.node("d")] += (0.01, 0.02, 0.03)
    with visit(view) as visitor:
        view.show(ViewState(time=1.0, configuration=moved))
        until(lambda: np.allclose(visitor.array("/robot/nodes", "batched_positions"), moved, atol=1e-6))
        until(lambda: np.allclose(visitor.scene["/robot/output"]["position"], prism.output.pose(moved)[0]))


def test_what_is_put_on_is_a_ball_that_goes_along_until_it_is_taken_off(view, prism):
    moved = np.array(prism.structure.nodes)
    moved[prism.structure.node("d")] += (0.01, 0.02, 0.03)
    with visit(view) as visitor:
        put_on = (CarriedPayload("d", 0.5, (0.0, 0.0, 0.0)),)
        view.show(state_of(prism, payloads=put_on))
        until(lambda: "/robot/payloads/0" in visitor.scene)
        assert visitor.names_in_scene() == {"0.5 kg"}
        view.show(ViewState(time=2.0, configuration=moved, payloads=put_on))
        at = moved[prism.structure.node("d")]
        until(lambda: np.allclose(visitor.scene["/robot/payloads/0"]["position"], at, atol=1e-6))
        view.show(state_of(prism, time=3.0))
        until(lambda: "/robot/payloads/0" not in visitor.scene and visitor.names_in_scene() == set())


def test_names_are_written_beside_the_nodes_and_taken_away(view, prism):
    with visit(view) as visitor:
        assert visitor.names_in_scene() == set()
        visitor.type("Names of nodes", True)
        until(lambda: visitor.names_in_scene() == set(prism.structure.node_names))
        visitor.type("Names of nodes", False)
        until(lambda: visitor.names_in_scene() == set())


@pytest.mark.parametrize("bad", ["node", "shape", "time", "goal", "tensions"])
def test_state_that_cannot_be_drawn_is_ignored_and_said(view, prism, bad):
    nodes, tensions = np.array(prism.structure.nodes), None
    if bad == "node":
        nodes[2, 1] = np.nan
    elif bad == "shape":
        nodes = nodes[:-1]
    elif bad == "tensions":
        tensions = np.zeros(3)
    goal = (np.full(3, np.inf), np.array([1.0, 0.0, 0.0, 0.0])) if bad == "goal" else None
    state = ViewState(time=np.nan if bad == "time" else 1.0, configuration=nodes, tensions=tensions, goal=goal)
    with visit(view) as visitor:
        assert view.show(state_of(prism))
        until(lambda: view.drawn > 0)
        before = visitor.array("/robot/nodes", "batched_positions")
        assert not view.show(state)
        until(lambda: "ignored 1 state" in visitor.text())
        np.testing.assert_array_equal(visitor.array("/robot/nodes", "batched_positions"), before)
        view.show(state_of(prism, time=2.0))
        until(lambda: "ignored" not in visitor.text())


def test_no_number_in_a_state_ends_the_pictures(prism):
    random, members = np.random.default_rng(3), len(prism.structure.member_names)
    with View(prism, free_port(), rate=1000.0, on_move=lambda *_: Answer(True)) as view, visit(view) as visitor:
        for k in range(200):
            state = ViewState(
                configuration=np.array(prism.structure.nodes), time=float(random.choice(FLOATS)) if k % 2 else 1.0 + k,
                tensions=random.choice(FLOATS, members), strains=random.choice(FLOATS, members),
                positions={each.name: float(random.choice(FLOATS)) for each in prism.actuators},
                real_time_factor=float(random.choice(FLOATS)),
            )  # fmt: skip
            drawn, shown = view.drawn, view.show(state)
            until(lambda: not shown or view.drawn > drawn or not drawing(view))  # noqa: B023
            assert drawing(view), state
        view.show(state_of(prism, time=1e4, mode="moving"))
        until(lambda: "moving" in visitor.text())


def drawing(view: View) -> bool:
    return view._thread.is_alive()


def test_unknown_tension_is_drawn_as_unknown(view, prism):
    with visit(view) as visitor:
        view.show(ViewState(time=1.0, configuration=np.array(prism.structure.nodes)))
        until(lambda: visitor.row("Position") != "")
        assert visitor.row("Tension") == visitor.row("Slack") == ""
        colours = visitor.array("/robot/tendons", "batched_colors")
        np.testing.assert_array_equal(colours, np.tile(UNKNOWN_COLOUR, (len(colours), 1)))


def test_names_from_a_robot_file_cannot_become_html(view, prism):
    with visit(view) as visitor:
        view.show(state_of(prism, mode="<script>"))
        until(lambda: "&lt;script&gt;" in visitor.text())
        assert "<script>" not in visitor.text()


def test_nothing_is_drawn_while_no_browser_is_connected(view, prism):
    for k in range(20):
        view.show(state_of(prism, time=0.1 * k))
        time.sleep(0.01)
    assert view.drawn == 0
    with visit(view):
        until(lambda: view.drawn > 0)  # a browser that comes later sees the latest state at once


def test_faster_states_than_pictures_are_skipped(prism):
    with View(prism, free_port(), rate=5.0) as view, visit(view) as visitor:
        began, drawn = time.monotonic(), view.drawn
        for k in range(200):
            view.show(state_of(prism, time=0.01 * k))
            time.sleep(0.002)
        until(lambda: "2.0 s" in visitor.text())
        assert view.drawn - drawn <= 5.0 * (time.monotonic() - began) + 2.0


# -- goals and buttons --------------------------------------------------------------------------------------------


def test_dragged_goal_is_sent_with_its_pose_and_duration(prism):
    asked = []
    with (
        View(prism, free_port(), on_goal=lambda *goal: Answer(asked.append(goal) is None)) as view,
        visit(view) as visitor,
    ):
        view.show(state_of(prism))
        until(lambda: view.drawn > 0)
        quaternion = quaternion_from_roll_pitch_yaw([5.0, -10.0, 20.0])
        visitor.drag_goal([0.01, -0.02, 0.22], quaternion.tolist())
        until(lambda: np.allclose(visitor.part("Orientation [°]")["value"], [5.0, -10.0, 20.0]))
        visitor.type("Duration [s]", 2.5)
        visitor.press("Send goal")
        until(lambda: bool(asked))
        position, sent, duration = asked[0]
        np.testing.assert_allclose(position, [0.01, -0.02, 0.22])
        np.testing.assert_allclose(sent, quaternion, atol=1e-12)
        assert duration == 2.5
        until(lambda: "Accepted: 10.0, -20.0, 220.0 mm, 5.0, -10.0, 20.0 °." in visitor.text())
        visitor.drag_goal([0.0, 0.0, 0.22], quaternion.tolist())
        until(lambda: "Accepted" not in visitor.text())  # that answer was to another goal


def test_browsers_that_drag_one_handle_at_once_show_the_goal_that_would_be_sent(prism):
    with View(prism, free_port(), on_goal=lambda *_: Answer(True)) as view, visit(view) as one, visit(view) as other:
        assert view.goal is not None
        write = view.goal.write_fields

        def write_late(position, quaternion):  # threads of the server wait for each other as they please
            time.sleep(0.01 * chance.random())
            write(position, quaternion)

        chance = np.random.default_rng(3)
        view.goal.write_fields = write_late  # type: ignore[method-assign]
        for _ in range(40):
            for visitor in (one, other):
                visitor.move_handle([float(x) for x in chance.uniform(-0.05, 0.3, 3)], [1.0, 0.0, 0.0, 0.0])
        time.sleep(0.5)  # whatever of the drags is still under way
        stale = one.scene["/goal"]["position"] = [0.0, 0.0, 0.123]  # came late, of another's drag

        def all_say_the_same() -> bool:
            goal = view.goal.pose[0]
            handles = [each.scene["/goal"]["position"] for each in (one, other)]
            fields = [1e-3 * np.array(each.part("Position [mm]")["value"]) for each in (one, other)]
            return np.allclose(handles, goal, atol=1e-9) and np.allclose(fields, goal, atol=1e-4)

        assert not np.allclose(view.goal.pose[0], stale)
        one.let_go()
        other.let_go()
        until(all_say_the_same)


def test_typed_numbers_move_the_handle(prism):
    with View(prism, free_port(), on_goal=lambda *_: Answer(True)) as view, visit(view) as visitor:
        visitor.type("Position [mm]", [10.0, 20.0, 250.0])
        until(lambda: np.allclose(visitor.scene["/goal"]["position"], [0.01, 0.02, 0.25]))
        np.testing.assert_allclose(view.goal.pose[0], [0.01, 0.02, 0.25])


def test_fields_show_no_more_digits_than_are_worth_reading_from_the_first_moment_on(view, prism):
    with visit(view) as visitor:
        shown = np.array([visitor.part("Position [mm]")["value"], visitor.part("Orientation [°]")["value"]])
        assert np.array_equal(shown, np.round(shown, 1))
        assert not np.signbit(shown[shown == 0.0]).any()


def test_handle_is_hidden_and_shown_by_its_checkbox(prism):
    with View(prism, free_port(), on_goal=lambda *_: Answer(True)) as view, visit(view) as visitor:
        assert visitor.scene["/goal"]["visible"]
        visitor.type("Goal handle", False)
        until(lambda: not visitor.scene["/goal"]["visible"])


def test_refused_goal_shows_the_reason_and_keeps_the_handle(prism):
    reason = "side_1 would need 61 N, its limit is 50 N"
    with View(prism, free_port(), on_goal=lambda *_: Answer(False, reason)) as view, visit(view) as visitor:
        visitor.drag_goal([0.0, 0.0, 0.9])
        visitor.press("Send goal")
        until(lambda: f"Refused: {reason}" in visitor.text())
        drawn = view.drawn
        view.show(state_of(prism))
        until(lambda: view.drawn > drawn)
        np.testing.assert_allclose(view.goal.pose[0], [0.0, 0.0, 0.9])


def test_a_refusal_is_shown_until_another_goal_is_accepted_and_never_hides_that_a_tendon_is_slack(prism):
    refused = Answer(False, "out of reach", None, ("side_1",))
    here, there = (state_of(prism, goal=(np.array([0.0, 0.0, z]), np.array([1.0, 0.0, 0.0, 0.0]))) for z in (0.2, 0.3))
    slack = here.tensions.copy()
    slack[prism.structure.member("side_1")] = 0.0
    with View(prism, free_port(), on_goal=lambda *_: refused) as view, visit(view) as visitor:
        view.show(here)
        until(lambda: view.drawn > 0)
        visitor.press("Send goal")
        until(lambda: view.goal.binding == ("side_1",))
        view.show(replace(here, time=1.5))
        widths = {}
        tendons = [name for name, kind in zip(prism.structure.member_names, prism.structure.kinds, strict=True)
                   if kind == "tendon"]  # fmt: skip

        def only_what_stops_it_is_wide() -> bool:
            widths.update(zip(tendons, visitor.array("/robot/tendons", "batched_scales")[:, 0], strict=True))
            return [name for name in tendons if widths[name] > 1.5 * min(widths.values())] == ["side_1"]

        until(only_what_stops_it_is_wide, widths)
        view.show(replace(here, time=2.0, tensions=slack))
        until(lambda: visitor.row("Slack") == "side_1")
        until(lambda: visitor.scene["/robot/slack"]["visible"])
        assert view.goal.answer.visible  # the same goal still
        assert "Goal refused. Stopped by side_1, drawn in red. Out of reach" in visitor.text()  # where all see it
        view.show(replace(there, time=3.0))
        until(lambda: view.goal.binding == () and not view.goal.answer.visible)
        view.show(replace(there, time=4.0))
        until(lambda: "Goal refused" not in visitor.text())


def test_handle_can_be_put_on_the_nearest_reachable_pose(prism):
    nearest = (np.array([0.0, 0.01, 0.24]), np.array([1.0, 0.0, 0.0, 0.0]))
    button = "Move handle to nearest reachable pose"
    with (
        View(prism, free_port(), on_goal=lambda *_: Answer(False, "out of reach", nearest)) as view,
        visit(view) as visitor,
    ):
        assert button not in visitor.labels()
        visitor.press("Send goal")
        until(lambda: button in visitor.labels())
        until(lambda: visitor.scene["/nearest/way"]["visible"])  # from the robot to there
        np.testing.assert_allclose(
            visitor.array("/nearest/way", "points"),
            [prism.output.pose(prism.structure.nodes)[0], nearest[0]],
            atol=1e-6,
        )
        visitor.press(button)
        until(lambda: np.allclose(visitor.scene["/goal"]["position"], nearest[0]))
        until(lambda: button not in visitor.labels() and not visitor.scene["/nearest/way"]["visible"])


def test_handle_can_be_put_back_on_the_robot(prism):
    with View(prism, free_port(), on_goal=lambda *_: Answer(True)) as view, visit(view) as visitor:
        visitor.drag_goal([0.0, 0.0, 0.9])
        visitor.press("Move handle to robot")
        present = prism.output.pose(np.array(prism.structure.nodes))[0]
        until(lambda: np.allclose(visitor.scene["/goal"]["position"], present))


def test_failing_callback_is_shown_and_does_not_end_the_view(prism):
    def broken(*_):
        raise OSError("the bus is gone")

    with View(prism, free_port(), on_goal=broken, on_stop=broken) as view, visit(view) as visitor:
        visitor.press("Send goal")
        until(lambda: "Refused: OSError: the bus is gone" in visitor.text())
        visitor.press("Stop")
        until(lambda: "Stop failed: OSError: the bus is gone" in visitor.text())
        view.show(state_of(prism))
        until(lambda: view.drawn > 0)


def test_handle_and_mark_go_to_an_accepted_goal_until_the_handle_is_dragged(prism):
    goal, other = ((np.array([0.0, y, 0.25]), np.array([1.0, 0.0, 0.0, 0.0])) for y in (0.0, 0.05))
    with View(prism, free_port(), on_goal=lambda *_: Answer(True)) as view, visit(view) as visitor:
        assert not visitor.scene["/accepted"]["visible"]
        view.show(state_of(prism, goal=goal))
        until(lambda: visitor.scene["/accepted"]["visible"])
        until(lambda: np.allclose(visitor.scene["/goal"]["position"], goal[0]))
        dragged = [0.0, 0.0, 0.3]
        visitor.drag_goal(dragged)
        view.show(state_of(prism, time=2.0, goal=other))
        until(lambda: np.allclose(visitor.scene["/accepted"]["position"], other[0]))
        np.testing.assert_allclose(view.goal.pose[0], dragged)
        visitor.press("Send goal")
        until(lambda: "Accepted" in visitor.text())
        view.show(state_of(prism, time=3.0, goal=other))
        until(lambda: np.allclose(visitor.scene["/goal"]["position"], other[0]))


def test_hold_and_stop_are_passed_on(prism):
    pressed = []

    def note(what: str) -> Answer:
        pressed.append(what)
        return Answer(True)

    with (
        View(prism, free_port(), on_hold=lambda: note("hold"), on_stop=lambda: note("stop")) as view,
        visit(view) as visitor,
    ):
        visitor.press("Hold here")
        until(lambda: pressed == ["hold"])
        visitor.press("Stop")
        until(lambda: pressed == ["hold", "stop"])


def test_an_emergency_stop_is_one_press_away_and_release_is_there_while_something_holds(prism):
    pressed = []
    passed = {f"on_{name}": lambda name=name: Answer(pressed.append(name) is None) for name in ("emergency", "release")}
    with View(prism, free_port(), **passed) as view, visit(view) as visitor:
        view.show(state_of(prism, notes=("a warning",)))
        until(lambda: "a warning" in visitor.text())
        assert visitor.part("Emergency stop")["visible"] and not visitor.part("Release")["visible"]
        visitor.press("Emergency stop")
        until(lambda: pressed == ["emergency"])
        view.show(state_of(prism, time=2.0, errors=("driver: <b> has snapped",)))
        until(lambda: "driver: &lt;b&gt; has snapped" in visitor.text() and visitor.part("Release")["visible"])
        visitor.press("Release")
        until(lambda: pressed == ["emergency", "release"])
        view.show(state_of(prism, time=3.0))
        until(lambda: not visitor.part("Release")["visible"])


def test_view_without_callbacks_is_read_only(view):
    with visit(view) as visitor:
        assert not visitor.part("Emergency stop")["visible"]
        assert all(visitor.part(label)["disabled"] for label in ("Hold here", "Stop", "Send goal"))
        assert not visitor.scene["/goal"]["visible"]
    assert view.goal.send()[:2] == (False, "this view is read-only")


# -- server -------------------------------------------------------------------------------------------------------


def test_server_answers_and_serves_several_browsers(view, prism):
    with urllib.request.urlopen(view.url, timeout=PATIENCE_S) as answer:
        assert answer.status == 200
        assert b"<html" in answer.read()[:2000].lower()
    with visit(view) as first, visit(view) as second:
        until(lambda: view.clients == 2)
        view.show(state_of(prism, mode="moving"))
        until(lambda: "moving" in first.text())
        until(lambda: "moving" in second.text())
    until(lambda: view.clients == 0)


def test_taken_port_leads_to_the_next_free_one_and_a_note(prism):
    with View(prism, free_port()) as first, View(prism, first.port) as second:
        assert second.port != first.port
        assert f"port {first.port} is in use" in second.port_note
        assert str(second.port) in second.url
        assert first.port_note == ""


def test_server_prints_nothing(prism, capsys):
    View(prism, free_port()).close()
    assert capsys.readouterr().out == ""


@pytest.mark.skipif(find_chromium() is None, reason="no Chromium on this machine")
def test_real_browser_shows_the_robot_without_a_network(prism):
    held = []
    with (
        View(prism, free_port(), on_hold=lambda: Answer(held.append(True) is None)) as view,
        HeadlessBrowser(900, 700) as browser,
    ):
        browser.open(view.url)
        view.show(state_of(prism, mode="moving"))
        assert browser.wait(lambda: "moving" in browser.text()), browser.text()
        assert browser.wait(lambda: "tension [N]" in browser.text())
        assert browser.run("document.querySelectorAll('canvas').length") > 0
        assert browser.press("Hold here")
        assert browser.wait(lambda: bool(held))
        elsewhere = [
            url for url in browser.requests
            if not url.startswith(("data:", "blob:", "about:")) and f"localhost:{view.port}" not in url
        ]  # fmt: skip
        assert elsewhere == []
        assert browser.errors == []


def pixel(camera: dict[str, np.ndarray], browser: HeadlessBrowser, point: np.ndarray) -> tuple[float, float]:
    """Where on the page a point (3,) m of the world is, as seen by the first camera."""
    eye, target, angle = camera["position"], camera["look_at"], camera["fov"]
    back = (eye - target) / np.linalg.norm(eye - target)
    right = np.cross([0.0, 0.0, 1.0], back)
    right /= np.linalg.norm(right)
    away = point - eye
    boxes = "[...document.querySelectorAll('canvas')].map(c => c.getBoundingClientRect())"
    largest = f"{boxes}.map(r => [r.x, r.y, r.width, r.height]).sort((a, b) => b[2] * b[3] - a[2] * a[3])[0]"
    x, y, width, height = browser.run(largest)
    scale = 0.5 * height / np.tan(0.5 * angle) / -(away @ back)
    return x + 0.5 * width + scale * (away @ right), y + 0.5 * height - scale * (away @ np.cross(back, right))


@pytest.mark.skipif(find_chromium() is None, reason="no Chromium on this machine")
def test_goal_dragged_by_mouse_is_sent_and_its_refusal_read(prism):
    asked = []

    def refuse(*goal):
        asked.append(goal)
        return Answer(False, "side_1 is too short")

    with View(prism, free_port(), on_goal=refuse) as view, HeadlessBrowser(1100, 700) as browser:
        browser.open(view.url)
        view.show(state_of(prism))
        assert browser.wait(lambda: "Position" in browser.text()), browser.text()
        start = view.goal.pose[0]
        with visit(view) as visitor:
            grip, camera = start + [0.0, 0.0, 0.9 * visitor.scene["/goal"]["scale"]], visitor.camera
        ends = [pixel(camera, browser, grip), pixel(camera, browser, grip + [0.0, 0.0, 0.03])]

        def dragged() -> bool:  # the page may still be building its scene when the mouse first comes by
            browser.drag(*ends)
            return browser.wait(lambda: view.goal.pose[0][2] > start[2] + 0.02, timeout=2.0)

        assert browser.wait(dragged)
        assert browser.press("Send goal")
        assert browser.wait(lambda: "Refused: side_1 is too short" in browser.text())
        np.testing.assert_allclose(asked[0][0], start + [0.0, 0.0, 0.03], atol=0.004)


# -- small parts --------------------------------------------------------------------------------------------------


@given(st.floats(-179.0, 179.0), st.floats(-89.0, 89.0), st.floats(-179.0, 179.0))
def test_roll_pitch_yaw_there_and_back(roll, pitch, yaw):
    np.testing.assert_allclose(
        roll_pitch_yaw(quaternion_from_roll_pitch_yaw([roll, pitch, yaw])), [roll, pitch, yaw], atol=1e-6
    )


@given(st.floats(-170.0, 170.0), st.sampled_from([-90.0, 90.0]), st.floats(-170.0, 170.0))
def test_roll_pitch_yaw_straight_up_is_the_same_rotation(roll, pitch, yaw):
    quaternion = quaternion_from_roll_pitch_yaw([roll, pitch, yaw])
    again = quaternion_from_roll_pitch_yaw(roll_pitch_yaw(quaternion))
    np.testing.assert_allclose(matrix_from_quaternion(again), matrix_from_quaternion(quaternion), atol=1e-6)


@pytest.mark.parametrize(
    ("mesh", "volume", "share"),
    [
        (meshes.cylinder(200), np.pi, 0.01),
        (meshes.ball(100, 200), 4.0 * np.pi / 3.0, 0.01),
        # The wire's cross section times its length; some is lost in the sharp bends where it leaves the axis.
        (meshes.coil(1.0, 0.1, 0.01, turns=7, sides=60), np.pi * 0.01**2 * (7.0 * 2.0 * np.pi * 0.1 + 0.44), 0.15),
    ],
    ids=["cylinder", "ball", "coil"],
)
def test_mesh_faces_outward_and_holds_its_volume(mesh, volume, share):
    vertices, faces = mesh
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    assert np.sum(np.cross(a, b) * c) / 6.0 == pytest.approx(volume, rel=share)


@settings(max_examples=20)
@given(st.integers(2, 400))
def test_plot_keeps_the_last_seconds_only(count):
    picture = StructurePicture(prism_robot())
    plot = TensionPlot(picture)
    for k in range(count):
        plot.add(0.1 * k, np.full(len(picture.tension_names), float(k)))
    assert plot.times[-1] == pytest.approx(0.1 * (count - 1))
    assert plot.times[-1] - plot.times[0] <= 20.0 + 1e-9
    assert plot.svg(100.0).count("<polyline") == 3


def test_plot_starts_anew_when_the_clock_jumps_back():
    picture = StructurePicture(prism_robot())
    plot = TensionPlot(picture)
    for moment in (10.0, 10.5, 0.0, 0.5):
        plot.add(moment, np.ones(len(picture.tension_names)))
    assert plot.times == [0.0, 0.5]


def test_plot_of_unknown_tensions_has_no_numbers_that_are_none():
    picture = StructurePicture(prism_robot())
    plot = TensionPlot(picture)
    for moment in (0.0, 1.0):
        plot.add(moment, np.full(len(picture.tension_names), np.nan))
    assert "nan" not in plot.svg(1.0).lower()
    assert len(plot.names) <= MAX_LINES


def test_small_robots_are_measured_in_millimetres():
    assert LengthUnit.for_span(0.4).text(0.0123) == "12.3 mm"
    assert LengthUnit.for_span(40.0).text(1.5) == "1.5000 m"


def test_colour_scale_follows_the_largest_tension_and_forgets_slowly(view, prism):
    with visit(view) as visitor:
        for moment, tension, full_scale in ((1.0, 17.0, 20.0), (2.0, 4.0, 20.0), (3.0, 41.0, 50.0)):
            view.show(state_of(prism, moment, tension))
            until(lambda moment=moment: f"{moment:.1f} s" in visitor.text())
            until(lambda full_scale=full_scale: visitor.full_scale() == full_scale)


def test_colour_scale_does_not_magnify_rounding_errors(view, prism):
    with visit(view) as visitor:
        view.show(state_of(prism, tension=1e-12))
        until(lambda: "side_0" in visitor.row("Slack"))
        until(lambda: 1e-4 < visitor.full_scale() < 1.0)


@pytest.mark.long
def test_offline_example_runs_and_reports():
    example = Path(__file__).resolve().parents[3] / "examples" / "view_offline.py"
    command = [sys.executable, str(example), "three_prism", "--seconds", "1", "--port", str(free_port())]
    result = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, cwd=example.parent.parent)
    assert result.returncode == 0, result.stderr
    assert "open http://localhost:" in result.stdout
    assert "% of one processor" in result.stdout


@pytest.mark.parametrize("power", [-3, 0, 2])
@pytest.mark.parametrize("value", [0.7, 1.1, 1.6, 2.2, 2.7, 3.3, 4.4, 5.5, 7.0, 9.0])
def test_every_full_scale_has_three_to_five_equal_steps_of_round_numbers(value, power):
    ticks = scale_ticks(round_up(value * 10.0**power))
    assert 4 <= len(ticks) <= 6 and ticks[0] == 0.0 and ticks[-1] == round_up(value * 10.0**power)
    step = f"{ticks[1]:.6e}"
    assert step[0] in "125" and float(step.partition("e")[0]) in (1.0, 2.0, 5.0)
    assert np.allclose(np.diff(ticks), ticks[1])


def test_stamps_of_a_computers_clock_are_read_as_a_time_of_day(prism):
    def shown(time_s: float) -> str:
        state = replace(state_of(prism, time_s), real_time_factor=1.11)
        return status_html(StructurePicture(prism), state, None, 1.0, LengthUnit.for_span(1.0), ())

    now = time.time()
    assert "12.3 s" in shown(12.3) and "1.11 × real time" in shown(12.3)
    assert re.search(r"<td>\d\d:\d\d:\d\d</td>", shown(now)) and "real time" not in shown(now)
    assert re.search(r"<td>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d.*real time</td>", shown(now - 86400.0))  # a recording
