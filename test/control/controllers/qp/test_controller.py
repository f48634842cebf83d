"""`qp`: goals that move the robot at once, on several mechanisms, with delays, loads and models that are wrong."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from qp_loop import BALL_MAST, Loop, loop, robot_named

from tensegrity_control import make_controller
from tensegrity_control.controller import RobotState
from tensegrity_control.controllers.qp.timing.loop_bandwidth import DELAYED, affordable
from tensegrity_control.inverse_kinematics.continuation import Continuation
from tensegrity_control.inverse_kinematics.mechanism_equilibria import MechanismEquilibriumMap
from tensegrity_control.registry import suitable
from tensegrity_control.trajectories.splines import HermiteSpline
from tensegrity_dynamics import Simulation, load_robot
from tensegrity_dynamics.errors import TensegrityError, UnreachableGoalError
from tensegrity_dynamics.robots.load_robot import parse_robot
from tensegrity_tools.experiments._runs import Variants


def follow(made: Loop, moves: list[tuple[float, list[float]]]) -> tuple[np.ndarray, np.ndarray]:
    """Errors (k,) m from a cubic path through moves from here, and tensions."""
    here = made.look().pose[0]
    knots = np.array([0.0, *(time for time, _ in moves)])
    path = HermiteSpline(knots, here + np.array([[0, 0, 0], *(move for _, move in moves)]), np.zeros((knots.size, 3)))
    begin = made.time
    made.control.follow(begin, [(float(t), path.value(float(t)), None) for t in knots[1:]], "cubic")
    outputs, tensions = made.run(float(knots[-1]))
    times = made.control.period * (1 + np.arange(len(outputs)))
    return np.linalg.norm((outputs - path.value(times))[:, made.control.equations.parts.axes], axis=1), tensions


@pytest.fixture
def no_planner(monkeypatch):
    """Whatever plans a motion, or solves an equilibrium in the loop, fails the test."""

    def forbidden(*_, **__):
        raise AssertionError("a planner was called")

    for module, name in (
        ("inverse_kinematics.solve_ik", "plan_path"), ("motion_planning.output_planner", "plan_output"),
        ("motion_planning.strain_planner", "plan_strains"), ("controllers.elastic_torque_controller", "plan_path"),
    ):  # fmt: skip
        monkeypatch.setattr(sys.modules[f"tensegrity_control.{module}"], name, forbidden)
    monkeypatch.setattr(MechanismEquilibriumMap, "solve", forbidden)
    monkeypatch.setattr(Continuation, "run", forbidden)
    return forbidden


@pytest.mark.sampled(2)
@pytest.mark.parametrize("actuation", ["effort", "impedance"])
@pytest.mark.parametrize(
    ("name", "move"),
    [("manipulator", (0.03, 0.02, -0.04)), ("ball_mast", (0.06, 0.03, 0.0)), ("biglide", (0.05, -0.05, 0.0))],
)
def test_a_goal_moves_the_output_in_the_next_period_and_is_reached(name, move, actuation, no_planner):
    made = loop(name, actuation=actuation)
    made.run(1.2)
    still = made.commands[-1]
    goal = made.look().pose[0] + np.array(move)
    accepted = made.control.set_goal(made.time, goal)
    made.run(made.control.period * 2)
    assert made.control.status(made.time).phase == "moving"
    assert np.max(np.abs(made.commands[-1].values - still.values)) > 1e-6
    outputs, tensions = made.run(accepted.duration + 0.3)
    rows = made.control.equations.parts.axes
    assert np.linalg.norm((outputs[-1] - goal)[rows]) < 2e-5
    assert made.control.status(made.time).phase == "holding" and not made.control.relaxed()
    floor = np.array([each.minimum_tension for each in made.control.robot.actuators])
    assert not tensions.size or np.min(tensions / floor) > 0.95
    for command in made.commands:
        assert np.all(np.abs(command.values) <= [each.effort for each in made.control.robot.actuators])


FINGER = str(Path(__file__).parents[4] / "examples/torque_finger.yaml")


FAR = [pytest.param(move, marks=pytest.mark.long) for move in ((0.008, 0.0, -0.012), (0.008, 0.0, -0.006))]


@pytest.mark.parametrize("move", [(0.002, 0.0, -0.003), *FAR])
def test_a_finger_of_routed_cables_goes_to_its_goal_and_keeps_its_floors(move):
    made = loop(FINGER, period=0.002)  # what would fall away faster is refused
    made.run(0.1)
    goal = made.look().pose[0] + np.array(move)
    accepted = made.control.set_goal(made.time, goal)
    outputs, tensions = made.run(accepted.duration + 0.1)
    assert np.linalg.norm((outputs[-1] - goal)[made.control.equations.parts.axes]) < 1e-4
    assert np.min(tensions) > 1.0 and not made.control.relaxed()


def test_a_goal_at_which_no_shape_at_rest_keeps_the_floors_is_refused_with_the_cable():
    made = loop(FINGER, period=0.002)
    made.run(0.02)
    with pytest.raises(UnreachableGoalError, match=r"short: tension .* at its floor of 1 N"):
        made.control.set_goal(made.time, made.look().pose[0] + np.array([0.008, 0.0, 0.006]))


@pytest.mark.parametrize(
    "path", [[(0.5, [0, 0, -0.05]), (1.5, [0, 0, 0.025])], [(0.5, [0, -0.035, 0]), (1.5, [0, 0.035, 0])]]
)
def test_the_manipulator_follows_the_paths_of_its_document(path, no_planner):
    """000, tables 5.8 and 5.9, a tenth of their time and length: the same speeds and ten times the accelerations."""
    made = loop("manipulator")
    made.run(1.2)
    errors, tensions = follow(made, path)
    assert np.max(errors) < 1e-4
    assert np.min(tensions) >= 0.99 * 5.0


@pytest.mark.sampled(1)
@pytest.mark.parametrize("delay", [1, 2, 3])
@pytest.mark.parametrize("actuation", ["effort", "impedance"])
def test_late_commands_do_not_lose_the_robot(actuation, delay):
    made = loop("manipulator", actuation=actuation, delay=delay)
    made.run(1.0)
    errors, tensions = follow(made, [(0.6, [0.03, 0.0, -0.02])])
    assert np.max(errors) < 2e-3
    outputs, _ = made.run(1.0)
    assert np.linalg.norm(outputs[-1] - made.control.reference(made.time).pose[0]) < 5e-4
    assert np.min(tensions) > 0.5 * 5.0


def wrong_manipulator(young: float, density: float):
    """The manipulator with another Young's modulus and other masses, as factors."""
    variants = Variants()

    def change(blocks):
        blocks["density"] *= density
        for block in blocks["repeat"]:
            for cable in block.get("cables", []):
                cable["young"] = f"{2 * young} GPa"

    return load_robot(str(variants.file("manipulator", change)))


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("young", "density"), [(1.1, 1.0), (0.9, 1.0), (1.21, 1.1), (0.81, 0.9)])
def test_a_wrong_model_costs_little(young, density):
    """Ten per cent of the cables' radius are some twenty of their stiffness."""
    made = loop("manipulator", plant=wrong_manipulator(young, density))
    made.run(2.0)
    errors, tensions = follow(made, [(0.6, [0.03, 0.0, -0.02])])
    assert np.max(errors) < 1e-3
    assert np.min(tensions) > 0.95 * 5.0


def test_a_payload_and_a_push_that_nobody_announced_are_compensated():
    made = loop("manipulator")
    made.run(1.0)
    own = sum(body.mass for body in made.control.robot.mechanism.bodies)
    made.simulation.apply_forces({"end-effector": [0.0, 0.0, -0.2 * 9.80665 * own]})
    outputs, _ = made.run(1.0)
    target = made.control.reference(made.time).pose[0]
    assert np.linalg.norm(outputs[-1] - target) < 1e-3
    made.simulation.apply_forces({"end-effector": [5.0, 0.0, -0.2 * 9.80665 * own]})
    made.run(0.5)
    made.simulation.apply_forces({"end-effector": [0.0, 0.0, -0.2 * 9.80665 * own]})
    outputs, tensions = made.run(1.0)
    assert np.linalg.norm(outputs[-1] - target) < 1e-3
    assert np.min(tensions) > 0.0


def test_a_load_that_is_known_is_carried_without_being_learned():
    errors = []
    for is_given in (False, True):
        made = loop("manipulator")
        made.run(1.0)
        load = {"end-effector": [0.0, 3.0, -5.0]}
        if is_given:
            made.control.set_loads(load)
        made.simulation.apply_forces(load)
        outputs, _ = made.run(0.3)
        errors.append(np.max(np.linalg.norm(outputs - made.control.reference(made.time).pose[0], axis=1)))
    assert errors[1] < 0.3 * errors[0]


def test_streamed_goals_are_followed_smoothly():
    """A hand that leads the output around a circle, 100 goals a second."""
    made = loop("manipulator")
    made.run(1.0)
    centre, references = made.look().pose[0].copy(), []

    def each(time):
        angle = 2.0 * np.pi * (time - 1.0)
        if round(time / made.control.period) % 2 == 0:
            made.control.set_goal(time, centre + 0.02 * np.array([np.cos(angle) - 1.0, np.sin(angle), 0.0]))
        references.append(made.control.reference(time).pose[0])

    outputs, tensions = made.run(2.0, each)
    assert np.max(np.linalg.norm(outputs[:-1] - np.array(references)[1:], axis=1)) < 5e-4
    rates = np.diff(references, axis=0) / made.control.period
    bends = np.linalg.norm(np.diff(rates, axis=0), axis=1) / made.control.period
    assert np.max(np.linalg.norm(rates, axis=1)) <= 1.05 * made.control.limits.motion[0]
    assert np.max(bends) <= 1.1 * made.control.limits.motion[1]
    turned = np.linalg.norm(np.array(references) - centre, axis=1)
    assert np.max(turned) > 0.02  # it did go round
    assert np.min(tensions) > 0.95 * 5.0


def test_a_goal_out_of_reach_stops_at_the_border_and_says_so():
    made = loop("single_strut")
    made.run(1.0)
    made.control.set_goal(made.time, [1.6, 0.0, 0.0])  # the strut is 1 m long
    outputs, _ = made.run(6.0)
    status = made.control.status(made.time)
    assert status.phase == "holding"
    assert any("out of reach" in each for each in status.relaxed)
    assert np.linalg.norm(outputs[-1] - outputs[-40]) < 5e-3
    accepted = made.control.set_goal(made.time, [0.1, 0.0, 1.0])  # and it goes on
    outputs, _ = made.run(accepted.duration + 1.0)
    assert np.linalg.norm(outputs[-1][:2] - [0.1, 0.0]) < 1e-3
    assert not made.control.status(made.time).relaxed


def test_a_new_goal_does_not_brake_the_motion_first():
    made = loop("biglide")
    here = made.look().pose[0]
    accepted = made.control.set_goal(0.0, here + [0.1, -0.1, 0.0], duration=1.0)
    made.run(0.5 * accepted.duration)
    before = made.control.reference(made.time)
    made.control.set_goal(made.time, here + [0.1, -0.15, 0.0])
    after = made.control.reference(made.time)
    assert np.allclose(before.twist, after.twist) and np.allclose(before.pose[0], after.pose[0])
    assert np.linalg.norm(after.twist) > np.hypot(0.1, 0.1) / accepted.duration  # faster than on the average


def test_hold_brakes_and_stop_refuses_goals_until_it_is_released():
    made = loop("biglide")
    here = made.look().pose[0]
    made.control.set_goal(0.0, here + [0.1, -0.1, 0.0], duration=2.0)
    made.run(1.0)
    made.control.stop(made.time)
    outputs, _ = made.run(1.0)
    assert np.linalg.norm(outputs[-1] - outputs[-5]) < 1e-6
    with pytest.raises(TensegrityError, match="stopped"):
        made.control.set_goal(made.time, here)
    made.control.release()
    made.control.set_goal(made.time, here)
    outputs, _ = made.run(3.0)
    assert np.linalg.norm((outputs[-1] - here)[:2]) < 1e-6


def test_without_a_state_the_last_command_goes_on():
    made = loop("manipulator")
    made.control.set_goal(0.0, made.look().pose[0] + [0, 0, -0.02])
    made.run(0.2)
    last = made.commands[-1]
    blind = made.control.command(made.time, RobotState())
    assert np.array_equal(blind.values, last.values)
    assert np.allclose(blind.position, last.position + made.control.period * last.velocity)
    assert made.control.diagnostics()["blind_periods"] == "1"


def test_what_it_is_not_for_is_refused_by_name():
    assert "qp" not in suitable(load_robot("three_prism"))
    turning = parse_robot(BALL_MAST.replace("controlled: [x, y]", "controlled: [x, rz]"), "turning.yaml")
    with pytest.raises(TensegrityError, match="controls rz, about which no actuator"):
        make_controller("qp", turning)
    robot = robot_named("ball_mast")
    with pytest.raises(TensegrityError, match="cable stay1 with its margin"):
        make_controller("qp", robot, floor=50.0, ceiling=40.0)
    with pytest.raises(TensegrityError, match="solver"):
        make_controller("qp", robot, solver="nothing")
    with pytest.raises(TensegrityError, match="bandwidth"):
        make_controller("qp", robot, bandwidth=-1.0)


@pytest.mark.parametrize("actuation", ["impedance", "effort"])
def test_programs_that_no_solver_solves_are_counted_and_the_last_efforts_go_on(actuation, monkeypatch):
    made = loop("manipulator", actuation=actuation)
    made.run(0.5)
    program, random, failing = made.control.program, np.random.default_rng(0), [False]
    write = program._write  # as if bounds were active, so that a solver is needed
    monkeypatch.setattr(program, "_write", lambda *given: (*write(*given)[:2], False))
    for name in ("_solver", "_soft_solver"):
        solve = getattr(program, name).solve
        monkeypatch.setattr(
            getattr(program, name),
            "solve",
            lambda asked, solve=solve: (
                solve(asked)._replace(status="iteration limit", x=np.full_like(asked.q, np.nan))
                if failing[0] else solve(asked)
            ),
        )  # fmt: skip
    goal = made.look().pose[0] + [0.03, 0.0, 0.0]
    accepted = made.control.set_goal(made.time, goal)
    outputs, tensions = made.run(
        accepted.duration + 0.5, lambda time: failing.__setitem__(0, bool(random.random() < 0.2))
    )
    assert int(made.control.diagnostics()["unsolved_programs"]) == program.failed > 20
    assert np.linalg.norm(outputs[-1] - goal) < 1e-4 and np.min(tensions) > 0.95 * 5.0
    assert np.all(np.isfinite([command.values for command in made.commands]))


def test_a_state_that_is_not_finite_is_refused():
    made = loop("biglide")
    state = made.look()
    with pytest.raises(TensegrityError):
        made.control.command(0.0, RobotState(q=np.full_like(state.q, np.nan), v=state.v))


@pytest.mark.parametrize("period", [0.001, 0.005, 0.02])
def test_the_loop_affords_all_of_its_bandwidth_in_time_and_less_the_later_commands_come(period):
    parts = [affordable(period, late * period) for late in (0.5, 1.0, 2.0, 5.0, 20.0)]
    assert parts[:2] == [1.0, 1.0] and sorted(parts[1:], reverse=True) == parts[1:]
    # the delay that a crossing at the lower bandwidth sees, in its own time, stays what it was made for
    assert parts[-1] * (3.5 + 19.0) == pytest.approx(3.5)
    known = [affordable(period, period, late=late * period) for late in (0.0, 1.0, 2.0, 6.0)]
    assert known == pytest.approx([1.0, 1.0, 3.5 / 4.5, 3.5 / 8.5])


def test_floors_rise_by_what_tensions_were_seen_below_what_they_should_be_and_that_is_forgotten():
    robot, period = load_robot("single_strut"), 0.005
    control, state = make_controller("qp", robot, period=period), Simulation(robot).state
    seen = RobotState(pose=robot.output_pose(state.q), q=state.q, v=state.v)
    control.reset(0.0, seen)
    stretch, floor = control.stretch, control.bounds.floor
    commanded, one = stretch.elastic.copy(), np.eye(len(floor))[0]

    def see(tensions, time, acts=0.0):
        stretch.seen[:] = tensions
        control.watch_tensions(time, acts)

    see(commanded - 0.02 * floor * one, 0.0)  # what it grew by is not known yet
    np.testing.assert_allclose(control.bounds.reserve, 0.02 * floor * one, atol=1e-9)
    see(commanded - 0.02 * floor * one, 0.0)
    np.testing.assert_allclose(control.bounds.reserve, 0.02 * floor * one, atol=1e-9)
    see(commanded - 0.05 * floor * one, 0.0)
    ahead = DELAYED * period + period + stretch.lag[0]  # until the next command acts and has changed the tension
    expected = (0.05 + 0.03 * ahead / period) * floor * one
    np.testing.assert_allclose(control.bounds.reserve, expected, atol=1e-9)
    control.bounds.shortfall[:] = 0.02 * floor * one
    see(commanded - 0.05 * floor * one, 0.0, acts=DELAYED * period + 0.002)
    expected += 0.03 * 0.002 / period * floor * one
    np.testing.assert_allclose(control.bounds.reserve, expected, atol=1e-9)
    control.command(0.0, seen)
    assert control.program.tension_low[0] == pytest.approx((control.bounds.low + expected)[0])
    # never beyond what is desired, or half of the floor where that is no more
    desired = control.program.desired_tension
    for level in (1.1 * control.bounds.low[0], 4.0 * floor[0]):
        desired[0] = level
        see(commanded - 100.0 * floor * one, 0.0)
        assert control.bounds.reserve[0] == pytest.approx(max(0.5 * floor[0], level - control.bounds.low[0]))
    before = control.bounds.reserve.copy()
    for _ in range(100):
        see(commanded, -1.0)  # nothing was commanded for that time
    np.testing.assert_allclose(control.bounds.reserve, before * np.exp(-1.0), rtol=1e-6)


@pytest.mark.parametrize("field", ["q", "v", "age"])
def test_a_state_that_is_not_finite_is_answered_like_none_and_forgotten(field):
    made = loop("single_strut")
    made.run(0.05)
    good = made.look()
    wrong = replace(good, **{field: np.nan if field == "age" else np.full_like(getattr(good, field), np.nan)})
    before = made.control.blind
    command = made.control.command(made.time, wrong)
    assert made.control.blind == before + 1 and np.all(np.isfinite(command.values))
    made.run(0.2)
    assert made.control.blind == before + 1 and np.linalg.norm(made.look().pose[0] - good.pose[0]) < 1e-5


def test_an_output_on_cables_that_sag_is_refused_with_the_cable():
    text = """
kind: mechanism
name: hung
bodies:
  left: {shapes: [{kind: point, size: [], mass: 1}]}
  right: {shapes: [{kind: point, size: [], mass: 1}]}
  camera: {shapes: [{kind: point, size: [], mass: 5}]}
joints:
  - {name: pull_left, kind: prismatic, parent: world, body: left, axis: [-1, 0, 0], frame: {at: [-20, 0, 5]}}
  - {name: pull_right, kind: prismatic, parent: world, body: right, axis: [1, 0, 0], frame: {at: [20, 0, 5]}}
  - {name: side, kind: prismatic, parent: world, body: camera, axis: [1, 0, 0]}
routed_cables:
  - {name: rope_left, sag: true, density: 4000, young: 2.0e+10, cable_radius: 0.002, length: 20.6,
     route: [{body: left, at: [0, 0, 0]}, {body: camera, at: [0, 0, 0]}]}
  - {name: rope_right, sag: true, density: 4000, young: 2.0e+10, cable_radius: 0.002, length: 20.6,
     route: [{body: right, at: [0, 0, 0]}, {body: camera, at: [0, 0, 0]}]}
actuators:
  - {drives: pull_left, position: [-5, 5], rate: 1, effort: 5000}
  - {drives: pull_right, position: [-5, 5], rate: 1, effort: 5000}
outputs:
  - {name: camera, body: camera, controlled: [x]}
"""
    with pytest.raises(TensegrityError, match=r"cable rope_left sags.*use joint_position"):
        make_controller("qp", parse_robot(text, "hung.yaml"))
