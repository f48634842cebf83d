"""How fast an output falls away at held efforts, and `qp` where its loop cannot keep up with that."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from planar_arm import PLANAR_ARM

from tensegrity_control import make_controller
from tensegrity_control.controller import RobotState
from tensegrity_control.controllers.qp import held_growth
from tensegrity_control.controllers.qp.controller import QPController
from tensegrity_control.controllers.qp.held_growth import HeldGrowth, fill_nearest, longest_period
from tensegrity_dynamics import Simulation, load_robot
from tensegrity_dynamics.errors import InfeasibleControlError, TensegrityError
from tensegrity_dynamics.mechanisms.dynamics.linearisation import linearise
from tensegrity_dynamics.mechanisms.dynamics.tight_cables import TightCables
from tensegrity_dynamics.robots.load_robot import parse_robot
from tensegrity_tools.runtime.delayed_loop import DelayedLoop, Delays
from tensegrity_tools.runtime.node_graph import choose

PENDULUM = """
kind: mechanism
name: pendulum
gravity: [0, 0, -9.81]
bodies:
  rod: {{mass: 0.2, inertia: [{inertia}, {inertia}, {inertia}], centre: [0, 0, {high}]}}
joints:
  - {{name: pivot, kind: revolute, parent: world, body: rod, axis: [0, 1, 0], start: [{start}]}}
actuators:
  - {{drives: pivot, position: [-1.5, 1.5], rate: "3 rad/s", effort: "20 N m"}}
outputs:
  - {{name: tip, body: rod, frame: {{at: [0, 0, {high}]}}, controlled: [x]}}
"""
CABLE = """{{name: {}, body: world, at: [{}, 0, {}], anchor: {{body: {}, at: [0, 0, {}]}}, block_axis: [0, 0, 1],
     pulley_axis: [0, 1, 0], pulley_radius: 0.02, cable_radius: 0.0005, young: "2 GPa", damping: "5 MPa s", length: 1.0,
     strain: 0.005, block: [{{kind: cube, size: [0.02]}}], pulley: [{{kind: cylinder, size: [0.02, 0.01]}}]}}"""
CABLES = (("a1", 0.3, 0.0, "a", 0.28), ("a2", -0.3, 0.0, "a", 0.28), ("b1", 0.26, 0.04, "b", 0.24),
          ("b2", -0.26, 0.04, "b", 0.24))  # fmt: skip
ARM = """
kind: mechanism
name: thin_arm
gravity: [0, 0, -9.81]
density: 2700
bodies:
  a: {shapes: [{kind: tube, size: [0.02, 0.018, 0.3], frame: {at: [0, 0, 0.15]}}]}
  b: {shapes: [{kind: tube, size: [0.02, 0.018, 0.25], frame: {at: [0, 0, 0.125]}}]}
joints:
  - {name: shoulder, kind: revolute, parent: world, body: a, axis: [0, 1, 0], start: ["-8 deg"]}
  - {name: elbow, kind: revolute, parent: a, body: b, axis: [0, 1, 0], frame: {at: [0, 0, 0.3]}, start: ["15 deg"]}
outputs:
  - {name: tip, body: b, frame: {at: [0, 0, 0.25]}, controlled: [x, z]}
"""


def pendulum(high=0.1, inertia=0.001, start=0.0):
    return parse_robot(PENDULUM.format(high=high, inertia=inertia, start=start), "pendulum.yaml")


def thin_arm(floor=3.0):
    """An arm of two struts, whose thin cables push it off rest faster than weight does."""
    cables = "".join(f"  - {CABLE.format(*each)}\n" for each in CABLES)
    driven = "".join(
        f'  - {{drives: {name}, position: [-12, 12], rate: "6 rad/s", effort: "5 N m", minimum_tension: "{floor} N"}}\n'
        for name, *_ in CABLES
    )
    return parse_robot(f"{ARM}cables:\n{cables}actuators:\n{driven}", "thin_arm.yaml")


@pytest.mark.parametrize("rank", [3, 2])
def test_the_nearest_holding_efforts_are_those_of_the_pseudo_inverse(rank):
    random = np.random.default_rng(rank)
    drift, effort, size = random.normal(size=3), random.normal(size=5), random.uniform(0.5, 2.0, size=5)
    output = random.normal(size=(3, rank)) @ random.normal(size=(rank, 5))
    held, free = np.empty(5), drift + output @ effort
    fill_nearest(drift, output, size, effort, np.zeros((3, 6)), held)
    expected = effort - size * (np.linalg.pinv(output * size, rcond=1e-6) @ free)
    np.testing.assert_allclose(held, expected, atol=1e-9)


@pytest.mark.parametrize(("high", "inertia", "start"), [(0.1, 0.001, 0.0), (0.03, 1e-5, 0.4), (-0.2, 0.002, 0.1)])
def test_a_pendulum_that_is_held_upright_falls_away_as_in_closed_form(high, inertia, start):
    robot = pendulum(high, inertia, start)
    growth = HeldGrowth(TightCables(robot), np.array([20.0]))
    found = growth.rate_at(np.array([start]), np.zeros(1))
    squared = 0.2 * 9.81 * high * np.cos(start) / (inertia + 0.2 * high**2)
    assert found == pytest.approx(np.sqrt(max(squared, 0.0)), rel=1e-4)
    np.testing.assert_allclose(growth.held, -0.2 * 9.81 * high * np.sin(start), atol=1e-9)


def test_a_finger_that_stays_in_its_shape_under_its_tendon_does_not_fall_away():
    """Without the winch, which is heavy by its gear, its tip moves with a twentieth of the inertia that it has."""
    robot = load_robot(str(Path(__file__).parents[4] / "examples/finger.yaml"))
    equations, here = TightCables(robot), Simulation(robot).state.q
    growth, still = HeldGrowth(equations, np.array([0.3])), np.zeros(equations.mechanism.velocity_count)
    equations.update(here, still)
    effort, efforts = growth.holding(equations.tension), still.copy()
    efforts[equations.parts.drive] = effort
    model = linearise(equations.mechanism, here, still, efforts, equations.parts.drive, ("winch",))
    assert np.max(np.linalg.eigvals(model.matrix).real) < 0.0
    assert growth.rate_at(here, effort) == 0.0
    assert np.max(np.abs(equations.stretches(here, growth.directions[0])[1])) < 1e-9


def test_a_look_in_parts_is_the_same_whatever_loads_come_between():
    equations = TightCables(pendulum())
    growth = HeldGrowth(equations, np.array([20.0]))
    whole, part = growth.rate_at(np.zeros(1), np.zeros(1)), np.random.default_rng(1)
    while not growth.look(np.zeros(1), np.zeros(1)):
        equations.work.load[equations.parts.body, 3:] = part.normal(size=3)
        equations.update(np.array([0.2]), np.array([1.0]))
    assert growth.rate == pytest.approx(whole)


def test_a_robot_that_falls_away_faster_than_its_loop_is_refused_at_the_start_by_name():
    robot = pendulum(high=0.02, inertia=1e-7)  # about sqrt(g / high) = 22 1/s
    state = RobotState(q=np.zeros(1), v=np.zeros(1))
    control = make_controller("qp", robot, period=0.01, actuation="effort")
    with pytest.raises(TensegrityError, match=r"pendulum diverges from rest with 22.1 1/s .* Shorten the period"):
        control.reset(0.0, state)
    make_controller("qp", robot, period=0.005, actuation="effort").reset(0.0, state)


def test_the_period_that_follows_from_a_drawn_robot_is_accepted_and_never_longer_for_one_that_falls_faster():
    random, found = np.random.default_rng(12), []
    for _ in range(8):
        robot = pendulum(random.uniform(-0.02, 0.06), 10.0 ** random.uniform(-7.0, -3.0), random.uniform(-0.5, 0.5))
        period = QPController.period_for(robot).seconds
        control = make_controller("qp", robot, period=period)
        start = Simulation(robot)
        control.reset(0.0, RobotState(q=start.state.q, v=start.state.v))
        found.append((control.growth.for_period, period))
    found.sort()
    assert len({period for _, period in found}) > 2
    assert all(later[1] <= earlier[1] for earlier, later in pairwise(found))


def light_planar_arm():
    """Cables push its elbow off rest twice as fast at the stop of its tour as at its start."""
    light = (("mass: 8,", "mass: 0.8,"), ("mass: 5,", "mass: 0.5,"), ("pulley_radius: 0.04", "pulley_radius: 0.025"),
             ("[0.04, 0.01]", "[0.025, 0.01]"), ("4 GPa", "1 GPa"), ("0.03, block", "0.015, block"),
             ("40 N m", "8 N m"), ("minimum_tension: 30", "minimum_tension: 6"),
             ("{name: hand, body: fore, frame: {at: [0, 0, 0.35]}, controlled: [x, z]}",
              "{name: elbow, body: upper, frame: {at: [0, 0, 0.4]}, controlled: [x]}"))  # fmt: skip
    text = PLANAR_ARM
    for heavy, less in light:
        assert heavy in text
        text = text.replace(heavy, less)
    return parse_robot(f"{text}tour: [{{name: aside, move: [0.05, 0, 0]}}, {{name: home}}]\n", "light_planar_arm.yaml")


def test_an_arm_gets_to_the_stop_of_its_tour_at_the_period_that_follows_from_it():
    robot = light_planar_arm()
    period = QPController.period_for(robot).seconds
    assert period < QPController.period_for(replace(robot, tour=())).seconds
    assert not QPController.caution_for(robot, period) and QPController.caution_for(robot, period + 1e-3)
    loop = DelayedLoop(robot, make_controller("qp", robot, period=period), period)
    loop.run(0.1)
    goal = np.array(loop.simulation.observe().pose[0]) + robot.tour[0].move
    loop.run(loop.control.set_goal(loop.stamp, goal).duration + 0.3)
    assert abs(loop.simulation.observe().pose[0][0] - goal[0]) < 1e-4 and not loop.control.relaxed()


@pytest.mark.parametrize("lag", [0.0, 0.002, 0.02])
def test_a_longer_period_than_the_one_that_follows_leaves_less_room_than_a_loop_is_designed_for(lag):
    def bandwidth(period):
        return 0.25 / (period + lag)

    for rate in np.geomspace(0.5, 300.0, 30):
        period = longest_period(rate, bandwidth)
        fits = [2.0 * rate <= 0.95 * HeldGrowth.designed(each, bandwidth(each)) for each in (period, period + 1e-3)]
        assert fits[0] or period == 0.001
        assert not fits[1] or period == 0.01


@pytest.mark.parametrize("floor", [1.0, pytest.param(8.0, marks=pytest.mark.long)])
def test_an_arm_at_the_period_that_follows_from_it_survives_two_periods_of_delay_that_nobody_reports(floor):
    robot = thin_arm(floor)
    period = QPController.period_for(robot).seconds
    loop = DelayedLoop(
        robot, make_controller("qp", robot, period=period), period, Delays(commands=(2, 2), latency="unknown")
    )
    loop.run(0.1 if floor < 4.0 else 1.2)  # tensions of 4 N at the start
    loop.forget()
    here = np.array(loop.simulation.observe().pose[0])
    loop.control.set_goal(loop.stamp, here + np.array([0.01, 0.0, 0.003]))
    loop.run(0.6)
    assert loop.least() > 0.95 and max(loop.errors) < 1e-4 and not loop.control.relaxed()


@pytest.mark.parametrize("gap", [0.3, pytest.param(0.6, marks=pytest.mark.long)])
def test_an_arm_that_falls_away_fast_survives_a_gap_in_its_commands_during_a_motion(gap):
    robot = thin_arm()
    period = QPController.period_for(robot).seconds
    loop = DelayedLoop(
        robot, make_controller("qp", robot, period=period), period, Delays(freezes=((0.5, gap),)), observer=True
    )
    loop.run(0.3)
    goal = loop.simulation.observe().pose[0] + np.array([0.02, 0.0, 0.005])
    loop.control.set_goal(loop.stamp, goal)
    loop.forget()
    loop.run(0.9 + gap)
    assert loop.least() > 0.95 and max(loop.errors) < 4e-3 and not loop.control.relaxed()


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, 1])
def test_an_arm_that_falls_away_fast_is_never_lost_on_the_way_to_drawn_goals(seed):
    robot = thin_arm(8.0)
    period = QPController.period_for(robot).seconds
    loop = DelayedLoop(robot, make_controller("qp", robot, period=period), period)
    random, home = np.random.default_rng(seed), np.array(loop.control.reference(0.0).pose[0])
    loop.run(1.5)
    loop.forget()
    refused = []
    for _ in range(4):
        try:
            loop.control.set_goal(loop.stamp, home + random.uniform(-0.15, 0.15, 3) * (1.0, 0.0, 1.0))
        except InfeasibleControlError as error:
            refused.append("diverges" in str(error))
        loop.run(1.0)
    assert loop.least() > 0.9 and max(loop.errors) < 5e-3 and all(refused)


@pytest.mark.long
def test_commands_that_are_reported_to_come_too_late_for_the_loop_leave_the_arm_to_its_impedances(monkeypatch):
    monkeypatch.setattr(held_growth, "RESISTED", 0.0)  # as if soft cables took all stiffness from the impedances
    robot = thin_arm()
    loop = DelayedLoop(robot, make_controller("qp", robot, period=0.0025), 0.0025)
    loop.run(1.5)
    loop.set_delays(Delays(commands=(6, 6), latency="nominal"))
    loop.forget()
    loop.run(1.0)
    assert "held by the actuators' impedances alone" in " ".join(loop.control.relaxed())
    assert np.max(np.abs(loop.simulation.state.v)) < 1e-3 and loop.least() > 0.9
    loop.set_delays(Delays())
    loop.run(2.0)
    assert not loop.control.relaxed()
    here = loop.simulation.observe().pose[0]
    arrival = loop.control.set_goal(loop.stamp, here + np.array([0.005, 0.0, 0.0])).duration
    loop.run(arrival + 0.5)
    assert np.linalg.norm(loop.simulation.observe().pose[0] - here - (0.005, 0.0, 0.0)) < 5e-4


@pytest.mark.long
@pytest.mark.parametrize("delays", [Delays(commands=(6, 6), latency="nominal"), Delays(commands=(4, 4), busy=(6, 6))])
@pytest.mark.parametrize("held", [False, True])
def test_a_goal_on_whose_way_commands_came_too_late_is_reached_when_they_are_in_time_again(monkeypatch, delays, held):
    monkeypatch.setattr(held_growth, "RESISTED", 0.0)
    robot = thin_arm()
    loop = DelayedLoop(robot, make_controller("qp", robot, period=0.0025), 0.0025)
    loop.run(1.5)
    goal = loop.simulation.observe().pose[0] + np.array([0.02, 0.0, 0.0])
    arrival = loop.control.set_goal(loop.stamp, goal).duration
    loop.run(0.5 * arrival)
    loop.set_delays(delays)
    loop.run(1.5)
    here = loop.simulation.observe().pose[0]
    assert "held by the actuators' impedances alone" in " ".join(loop.control.relaxed())
    assert np.linalg.norm(here - goal) > 5e-3
    if held:
        loop.control.hold(loop.stamp)  # then it is bound for nowhere any more
    loop.set_delays(Delays())
    loop.run(arrival + 2.0)
    assert not loop.control.relaxed() and loop.least() > 0.9
    np.testing.assert_allclose(loop.simulation.observe().pose[0], here if held else goal, atol=1e-4)


def test_motion_from_stable_to_slowly_diverging_positions_goes_on_until_the_limit_is_near():
    text = PENDULUM.format(high=0.1, inertia=0.001, start=1.7).replace("[-1.5, 1.5]", "[-3, 3]")
    robot = parse_robot(text, "pendulum.yaml")  # p^2 = m g h cos(angle) / (I + m h^2), 8.1 1/s upright
    growth = HeldGrowth(TightCables(robot), np.array([20.0]))
    growth.begin(np.array([1.7]), [np.zeros(1)])
    growth.allowed = growth.affords = 8.0
    time, angle = 0.0, 1.7
    while not growth.watch(time, np.array([angle]), np.zeros(1), 0.3):  # 0.3 s ahead, at 1 rad/s
        time, angle = time + 0.01, angle - 0.01
        assert angle > 0.4
    within = np.arccos((0.95 * 8.0 / 8.1) ** 2)
    assert within < angle < within + 0.45
    found = re.search(
        r"\((\S+) 1/s in this configuration, (\S+) 1/s before it could stop, up to 7.6 1/s", growth.words()
    )
    assert found and float(found[1]) < 7.6 <= float(found[2])


MAST = """
kind: mechanism
name: mast
gravity: [0, 0, -9.81]
bodies:
  mast: {shapes: [{kind: box, size: [0.02, 0.02, 0.1], mass: 2, frame: {at: [0, 0, 0.05]}}]}
  d1: {mass: 0.02, inertia: [1e-6, 1e-6, 1e-6]}
  d2: {mass: 0.02, inertia: [1e-6, 1e-6, 1e-6]}
joints:
  - {name: hinge, kind: revolute, parent: world, body: mast, axis: [0, 1, 0], resistance: {damping: 0.0005}}
  - {name: j1, kind: revolute, parent: world, body: d1, axis: [0, 1, 0], frame: {at: [-0.06, 0, 0]}}
  - {name: j2, kind: revolute, parent: world, body: d2, axis: [0, 1, 0], frame: {at: [0.06, 0, 0]}}
routed_cables:
  - {name: left, young: "YOUNG MPa", cable_radius: "1 mm", damping: "1.2 MPa s", tension: 2,
     route: [{joint: j1, radius: 0.01, side: 1}, {body: mast, at: [0, 0, 0.04]}]}
  - {name: right, young: "YOUNG MPa", cable_radius: "1 mm", damping: "1.2 MPa s", tension: 2,
     route: [{joint: j2, radius: 0.01, side: -1}, {body: mast, at: [0, 0, 0.04]}]}
actuators:
  - {drives: j1, position: [-20, 20], rate: 10, effort: 6, minimum_tension: 0.3}
  - {drives: j2, position: [-20, 20], rate: 10, effort: 6, minimum_tension: 0.3}
outputs: [{name: tip, body: mast, frame: {at: [0, 0, 0.1]}, controlled: [x]}]
"""
"""A heavy mast on two soft cables."""


@pytest.mark.parametrize("young", [120, 240])
def test_a_mast_whose_impedances_resist_ten_or_twenty_times_what_weight_pushes_bears_random_delays(young):
    robot = parse_robot(MAST.replace("YOUNG", str(young)), "mast.yaml")
    period = QPController.period_for(robot).seconds
    delays = Delays((0, 3), (0, 3), seed=1)
    loop = DelayedLoop(robot, make_controller("qp", robot, period=period), period, delays)
    loop.run(0.3)
    goal = loop.simulation.observe().pose[0] + np.array([0.004, 0.0, 0.0])
    loop.control.set_goal(loop.time, goal)
    loop.run(2.0)
    assert max(loop.errors) < 1.5e-4 and loop.least() > 3.0 and loop.control.relaxed() == ()


@pytest.mark.parametrize(
    ("period", "delays", "most"),
    [(0.006, Delays((3, 3), (3, 3)), 5e-5), (0.01, Delays((0, 3), (0, 3), seed=3), 3e-4)],
)
def test_a_mast_whose_delay_is_known_does_not_swing_up_on_its_actuators(period, delays, most):
    """Its prediction contains no vibrations: at the bandwidth for three periods they grew by 0.8 and 10 1/s."""
    robot = parse_robot(MAST.replace("YOUNG", "240"), "mast.yaml")
    loop = DelayedLoop(robot, make_controller("qp", robot, period=period), period, delays)
    loop.run(0.3)
    for offset in (0.004, -0.004):
        goal = loop.simulation.observe().pose[0] + np.array([offset, 0.0, 0.0])
        loop.control.set_goal(loop.time, goal)
        loop.run(2.0)
    assert max(loop.errors) < most and loop.least() > 3.0 and loop.control.relaxed() == ()


def test_a_mast_whose_commands_come_too_late_for_it_says_so_and_takes_no_goal():
    """Its impedances resist a third of what weight pushes; 4 mm further it was lost without a word."""
    robot = parse_robot(MAST.replace("YOUNG", "5"), "mast.yaml")
    loop = DelayedLoop(robot, make_controller("qp", robot, period=0.006), 0.006, Delays((3, 3), (3, 3)))
    loop.run(0.3)
    (said,) = loop.control.relaxed()
    assert re.match(
        r"the output diverges .* faster than the loop can hold it \(12.* up to 11.3 1/s can be held\)", said
    )
    goal = loop.simulation.observe().pose[0] + np.array([0.004, 0.0, 0.0])
    with pytest.raises(InfeasibleControlError, match="it takes goals again when commands come sooner"):
        loop.control.set_goal(loop.time, goal)
    loop.run(1.0)
    assert max(loop.errors) < 1e-3 and loop.least() > 3.0
    loop.set_delays(Delays((1, 1), (1, 1)))
    loop.run(1.5)
    assert loop.control.relaxed() == ()
    loop.control.set_goal(loop.time, goal)
    loop.run(2.0)
    assert abs(loop.simulation.observe().pose[0][0] - goal[0]) < 5e-4


def test_a_period_that_is_given_and_leaves_too_little_margin_is_said_with_the_one_that_would_be_chosen():
    robot = parse_robot(MAST.replace("YOUNG", "5"), "mast.yaml")
    fits = QPController.period_for(robot).seconds
    said = QPController.caution_for(robot, 0.01)
    assert re.fullmatch(r"a control period of 10 ms leaves too little .* mast diverges .* take (\S+) ms", said)
    assert f"take {1e3 * fits:g} ms" in said and QPController.caution_for(robot, fits) == ""
    assert str(choose(robot, "qp", period=0.01)).endswith(f"as given. Caution: {said}")
    for period, words in ((0.01, said), (fits, None)):
        control, start = make_controller("qp", robot, period=period), Simulation(robot).state
        control.reset(0.0, RobotState(q=start.q, v=start.v))
        assert control.diagnostics().get("control_period") == words
    assert QPController.caution_for(load_robot("manipulator"), 0.02) == ""
