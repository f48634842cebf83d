"""The reachable region: its law against the inverse kinematics, and its button in the browser view."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from patience import until
from view_robots import prism_robot
from view_visitor import free_port, visit

from tensegrity_control.inverse_kinematics.equilibrium_map import equilibrium_map
from tensegrity_control.inverse_kinematics.solve_ik import inverse_kinematics
from tensegrity_control.registry import make_controller
from tensegrity_dynamics.errors import TensegrityError, UnreachableGoalError
from tensegrity_dynamics.robots.load_robot import load_robot
from tensegrity_tools.view import Answer, View
from tensegrity_tools.view.reach import reachable_points, star_of

HIDE, SHOW = "Hide reachable region", "Show reachable region"


def is_reached(robot, position, quaternion, equilibria) -> bool:
    try:
        inverse_kinematics(robot, position, quaternion, equilibria=equilibria)
    except UnreachableGoalError:
        return False
    return True


def check_ends(robot, ends, equilibria, centre, chosen) -> None:
    quaternion = equilibria.home.pose[1]
    for row in chosen:
        assert is_reached(robot, centre + 0.9 * (ends[row] - centre), quaternion, equilibria), row
        assert not is_reached(robot, centre + 1.1 * (ends[row] - centre), quaternion, equilibria), row


@pytest.mark.parametrize(("name", "count"), [("tensebot", 4), ("stewart", 6), ("three_prism", 2), ("three_rrr", 1)])
def test_goals_inside_the_region_are_reachable_and_those_outside_are_not(name, count):
    robot = load_robot(name)
    equilibria = equilibrium_map(robot.model, robot)
    points = reachable_points(robot, equilibria.home.pose, precision=0.05)
    centre = next(points)
    ends = [end for _, end in zip(range(count), points, strict=False)]
    check_ends(robot, ends, equilibria, centre, range(count))
    ways = [(end - centre) / np.linalg.norm(end - centre) for end in ends]
    np.testing.assert_allclose(ways, star_of(robot.output).directions[:count], atol=1e-5)


@pytest.mark.long
@pytest.mark.parametrize("name", ["tensebot", "stewart", "three_rrr"])
def test_whole_regions_agree_with_the_inverse_kinematics(name):
    robot = load_robot(name)
    equilibria = equilibrium_map(robot.model, robot)
    centre, *ends = reachable_points(robot, equilibria.home.pose)
    check_ends(robot, ends, equilibria, centre, range(len(ends)))


def test_controller_accepts_the_goals_inside_and_refuses_those_outside():
    robot = load_robot("tensebot")
    equilibria = equilibrium_map(robot.model, robot)
    points = reachable_points(robot, equilibria.home.pose)
    centre, end = next(points), next(points)
    controller = make_controller("tendon_length", robot)
    controller.reset(0.0)
    with pytest.raises(UnreachableGoalError):
        controller.set_goal(0.0, centre + 1.1 * (end - centre))
    assert controller.set_goal(0.0, centre + 0.9 * (end - centre))


@pytest.mark.parametrize(
    ("name", "directions", "triangles", "edges"),
    [("tensebot", 42, 80, 120), ("biglide", 24, 24, 24), ("three_prism", 2, 0, 2)],
)
def test_directions_are_those_in_which_goals_move_the_output(name, directions, triangles, edges):
    output = load_robot(name).output
    star = star_of(output)
    assert (len(star.directions), len(star.triangles), len(star.edges)) == (directions, triangles, edges)
    np.testing.assert_allclose(np.linalg.norm(star.directions, axis=1), 1.0)
    np.testing.assert_allclose(star.directions.sum(axis=0), 0.0, atol=1e-12)  # every one has its opposite
    free = [row for row in range(3) if row not in output.rows]
    assert not star.directions[:, free].any()
    assert set(range(1, directions + 1)) <= set(star.edges.ravel())


def test_pose_out_of_reach_has_no_region_and_says_so():
    robot = prism_robot()
    position, quaternion = equilibrium_map(robot.model, robot).home.pose
    with pytest.raises(TensegrityError, match="the pose itself is out of reach"):
        next(reachable_points(robot, (position + [0.0, 0.0, 5.0], quaternion)))


# -- the button -----------------------------------------------------------------------------------------------------


def region_processes() -> list[int]:
    """Process ids of those of the views of this process."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended meanwhile
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == os.getpid() and b"tensegrity_tools.view.reach" in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
    return found


def test_button_shows_the_region_and_hides_it():
    robot = load_robot("three_prism")
    with View(robot, free_port(), on_goal=lambda *_: Answer(True)) as view, visit(view) as visitor:
        visitor.press(SHOW)
        until(lambda: "/region/edges" in visitor.scene)
        until(lambda: "2 directions from there" in visitor.text())
        low, high = visitor.array("/region/edges", "points").reshape(2, 2, 3)[:, 1, 2]
        assert abs(low - high) == pytest.approx(0.167, abs=0.01)
        assert "/region/surface" not in visitor.scene  # a line
        assert not region_processes()
        visitor.press(HIDE)
        until(lambda: "/region/edges" not in visitor.scene)
        assert SHOW in visitor.labels() and "directions" not in visitor.text()


def test_computing_process_has_the_lowest_priority_and_ends_with_its_button_and_its_view():
    robot = load_robot("manipulator")
    with View(robot, free_port(), on_goal=lambda *_: Answer(True)) as view, visit(view) as visitor:
        visitor.press(SHOW)
        until(lambda: "of 42 directions" in visitor.text())
        (process,) = region_processes()
        assert os.getpriority(os.PRIO_PROCESS, process) == 19
        visitor.press(HIDE)
        until(lambda: not region_processes())
        until(lambda: "directions" not in visitor.text())
        visitor.press(SHOW)
        until(region_processes)
    until(lambda: not region_processes())


def test_handle_out_of_reach_is_told_below_the_button():
    robot = load_robot("three_prism")
    with View(robot, free_port(), on_goal=lambda *_: Answer(True)) as view, visit(view) as visitor:
        visitor.drag_goal([0.0, 0.0, 5.0])
        visitor.press(SHOW)
        until(lambda: "No reachable region: the pose itself is out of reach" in visitor.text())
        assert SHOW in visitor.labels()


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("three_prism", {}),
        ("three_prism", {"on_steer": lambda *_: Answer(True)}),
        ("six_bar", {"on_goal": lambda *_: Answer(True)}),  # its rest lengths do not decide where it is
    ],
    ids=["without goals", "replay", "rolling robot"],
)
def test_view_without_goals_by_inverse_kinematics_has_no_such_button(name, options):
    with View(load_robot(name), free_port(), **options) as view, visit(view) as visitor:
        assert view.region is None and SHOW not in visitor.labels()
