"""`qp` beside singular positions and joint limits: it stops a braking distance before them, and says why."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
import qp_loop
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from tensegrity_control.controller import RobotState
from tensegrity_control.controllers.qp.borders.rate_authority import AHEAD
from tensegrity_control.controllers.qp.borders.singularity_guard import authority, least_change
from tensegrity_control.registry import controller_class, make_controller
from tensegrity_dynamics import Simulation, load_robot
from tensegrity_dynamics.errors import InfeasibleControlError, TensegrityError
from tensegrity_dynamics.numerics.rotations import matrix_from_quaternion, matrix_from_vector, quaternion_from_matrix
from tensegrity_dynamics.robots.load_robot import parse_robot
from tensegrity_tools.runtime.delayed_loop import DelayedLoop, Delays

ARM = """
kind: mechanism
name: arm
gravity: [0, 0, 0]
density: 2000
bodies:
  upper: {shapes: [{kind: box, size: [0.3, 0.03, 0.03], frame: {at: [0.15, 0, 0]}}]}
  fore: {shapes: [{kind: box, size: [0.3, 0.03, 0.03], frame: {at: [0.15, 0, 0]}}]}
joints:
  - {name: shoulder, kind: revolute, parent: world, body: upper, start: ["-30 deg"]}
  - {name: elbow, kind: revolute, parent: upper, body: fore, frame: {at: [0.3, 0, 0]}, start: ["60 deg"]}
actuators:
  - {drives: shoulder, position: ["-50 deg", "50 deg"], rate: "180 deg/s", effort: "10 N m"}
  - {drives: elbow, position: ["-150 deg", "100 deg"], rate: "180 deg/s", effort: "10 N m"}
outputs:
  - {name: tip, body: fore, frame: {at: [0.3, 0, 0]}, controlled: [x, y]}
"""
KEPT = 0.1


@given(st.integers(1, 4), st.integers(1, 6), st.integers(0, 2**32 - 1), st.booleans(), st.floats(0.0, 50.0))
@settings(max_examples=40, deadline=None)
def test_the_ratio_of_singular_values_is_that_of_a_decomposition(rows, inputs, seed, dependent, start):
    random = np.random.default_rng(seed)
    output, scale, effort = (
        random.normal(size=(rows, inputs)),
        random.uniform(0.1, 9.0, rows),
        random.uniform(1, 9, inputs),
    )
    if dependent:
        output[-1] = 1e-7 * output[-1] + output[0]
    values = np.linalg.svd(scale[:, None] * output * effort, compute_uv=False)
    expected = values[-1] / max(values[0], start) if inputs >= rows else 0.0
    assert authority(scale, output, effort, start, np.empty_like(output)) == pytest.approx(
        expected, rel=1e-9, abs=1e-14
    )


def test_an_output_that_nothing_moves_has_no_authority():
    assert authority(np.ones(2), np.zeros((2, 3)), np.ones(3), 0.0, np.empty((2, 3))) == 0.0


@pytest.fixture(scope="module", autouse=True)
def arm():
    """`loop("arm")` is the arm of this file."""
    robot, before = parse_robot(ARM, "arm.yaml"), qp_loop.robot_named
    qp_loop.robot_named = lambda name: robot if name == "arm" else before(name)
    yield robot
    qp_loop.robot_named = before


def led(name, target, turn=0.0, stream=False, seconds=1.5, **parameters):
    """The loop after a goal, or a stream of goals, to a position and turn from here; (k, nq), least distance, and what
    it said."""
    made = qp_loop.loop(name, actuation="effort", **parameters)
    (here, quaternion), begin = made.look().pose, made.time
    seen, least, said = [], 1.0, set()

    def goal(part):
        rotation = matrix_from_vector(np.array([0.0, 0.0, part * turn])) @ matrix_from_quaternion(quaternion)
        made.control.set_goal(made.time, here + part * np.array([*target, 0.0]), quaternion_from_matrix(rotation))

    def look(time):
        nonlocal least
        if stream:
            goal(min(1.0, (time - begin) / 0.6))
        seen.append(made.simulation.state.q)
        least = min(least, made.control.singularity_distance)
        said.update(made.control.relaxed())

    if not stream:
        goal(1.0)
    made.run(seconds, look)
    return made, np.array(seen), least, " ".join(said)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("stream", [False, True])
def test_a_line_through_full_extension_ends_before_it_by_name_and_the_way_back_is_free(stream):
    made, seen, least, said = led("arm", (0.2, 0.05), stream=stream)
    assert least > 0.99 * KEPT and np.min(seen[:, 1]) > np.radians(5.0)
    assert "kept away from a singularity (the actuators hardly move the output along x" in said
    goal = made.look().pose[0] - np.array([0.1, 0.0, 0.0])
    made.run(made.control.set_goal(made.time, goal).duration + 0.4)
    assert np.linalg.norm(made.look().pose[0] - goal) < 1e-4 and not made.control.relaxed()


def test_without_the_guard_the_same_line_leads_through_the_fold_and_is_left():
    _, seen, _, said = led("arm", (0.2, 0.05), seconds=3.0, singularity=0.0)
    assert np.min(np.abs(seen[:, 1])) < 0.02  # through the fold
    assert "tracking by" in said


def test_a_parallel_robot_stops_before_its_links_line_up():
    made, _, least, said = led("three_rrr", (0.0, 0.0), turn=1.5, seconds=1.2)
    assert least > 0.99 * KEPT and "the actuators hardly move the output along rz" in said
    assert np.max(np.abs(made.simulation.state.v)) < 0.5


@pytest.mark.sampled(1)
@pytest.mark.parametrize("stream", [False, True])
def test_actuators_stop_before_their_limits(stream):
    _, seen, _, _ = led("arm", (-0.3, -0.05), stream=stream, seconds=2.2)
    limits = np.radians([[-50.0, -150.0], [50.0, 100.0]])
    assert np.all(seen[:, :2] > limits[0]) and np.all(seen[:, :2] < limits[1])
    assert np.min(seen[:, 0]) < np.radians(-48.0)  # it did come there


@settings(max_examples=5)
@given(st.floats(-0.4, 0.4), st.floats(0.4, 1.5), st.floats(-2.0, 2.0), st.floats(-2.0, 2.0))
def test_the_gradient_is_that_of_the_distance_along_any_motion(shoulder, elbow, fast, slow):
    made = qp_loop.loop("arm", actuation="effort")
    guard, equations = made.control.guard, made.control.equations
    q, v = np.array([shoulder, elbow]), np.array([fast, slow])

    def distance(time):
        equations.update(q + time * v, np.zeros(2))
        return guard.seen()

    h = 1e-3
    values = distance(-h), distance(0.0), distance(h)
    arrays = equations.update(q, v)
    rate_of_output = arrays.jacobian @ arrays.rates
    slope, rate, bend, _ = guard.derivatives(q, v, 0.0)
    found = (values[2] - values[0]) / (2.0 * h)
    assert found.size == 2  # by efforts and by rates
    for each in (rate, slope @ rate_of_output):
        np.testing.assert_allclose(each, found, atol=2e-3 * (1.0 + np.max(np.abs(found))))
    # along the straight line of the joints, w'' = 0, the output has the acceleration J' w'
    bias = equations.arrays.output_0 - equations.arrays.jacobian @ equations.arrays.rate_0
    second = (values[2] - 2.0 * values[1] + values[0]) / h**2
    np.testing.assert_allclose(bend + slope @ bias, second, atol=1e-2 * (1.0 + np.max(np.abs(second))))


@given(st.integers(1, 3), st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_the_change_for_several_borders_is_the_smallest_that_keeps_all(count, seed):
    random = np.random.default_rng(seed)
    slopes, shorts = random.normal(size=(count, 4)), random.normal(size=count)
    multipliers = np.empty(count)
    least_change(slopes @ slopes.T, shorts, multipliers)
    change = multipliers @ slopes
    found = minimize(
        lambda x: x @ x, np.zeros(4), jac=lambda x: 2.0 * x, tol=1e-12,
        constraints={"type": "ineq", "fun": lambda x: slopes @ x - shorts, "jac": lambda x: slopes},
    )  # fmt: skip
    assert np.all(multipliers >= 0.0)
    assert change @ change <= 1.02 * found.fun + 1e-9
    assert np.min(slopes @ change - shorts) > -0.02 * np.max(np.abs(shorts))


@given(st.floats(-0.4, 0.4), st.floats(0.02, 1.5), st.floats(-2.0, 2.0), st.floats(0.2, 2.0))
@settings(max_examples=10, deadline=None)
def test_growing_rates_tell_when_an_arm_will_be_stretched(shoulder, elbow, along, across):
    """The output at constant speed y' takes rates r = J^-1 y', and c is their derivative."""
    made = qp_loop.loop("arm", actuation="effort")
    control, equations = made.control, made.control.equations
    arrays = equations.update(np.array([shoulder, elbow]), np.zeros(2))
    speed, h = np.array([along, across]), 1e-5
    v = np.linalg.solve(arrays.jacobian, speed)

    def rates(time):
        jacobian = equations.update(np.array([shoulder, elbow]) + time * v, np.zeros(2)).jacobian
        return np.linalg.solve(jacobian, speed)

    grows = (rates(h) - rates(-h)) / (2.0 * h)
    equations.update(np.array([shoulder, elbow]), v)
    expected = max(np.max(grows / v), 0.0)
    control._rates.begin()
    found = control._rates.excess(v, grows, np.zeros(2), 1.0) / (2.0 * AHEAD)
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-6)
    force = np.array([0.3, -0.2])  # accelerations of the output are told from those
    moved = np.linalg.solve(equations.update(np.array([shoulder, elbow]), v).jacobian, force)
    again = control._rates.excess(v, grows + moved, force, 1.0) / (2.0 * AHEAD)
    assert again == pytest.approx(expected, rel=1e-6, abs=1e-6)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("late", [0, 1, 2])
@pytest.mark.parametrize(
    "offset", [(0.194, -0.116), (0.193, -0.106), (0.075, 0.199), (0.051, -0.214), (-0.222, -0.01), (0.15, -0.151)]
)
def test_a_goal_beyond_two_singularities_is_approached_and_left_again(offset, late):
    """One border is kept by sliding along it, which leads to the other one."""
    robot = load_robot("three_rrr")
    control = make_controller("qp", robot, period=0.01)
    loop = DelayedLoop(robot, control, 0.01, Delays((0, late), (0, late)))
    loop.run(0.3)
    home = loop.simulation.observe().pose
    loop.run(control.set_goal(loop.stamp, home[0] + np.array([*offset, 0.0])).duration + 2.0)
    assert control.guard.distance > 0.9 * KEPT
    loop.run(control.set_goal(loop.stamp, home[0]).duration + 2.0)
    assert np.linalg.norm(loop.simulation.observe().pose[0] - home[0]) < 1e-3


@pytest.mark.sampled(2)
@pytest.mark.parametrize("late", [0, 2])
@pytest.mark.parametrize(
    ("robot", "offset", "speed"),
    [
        ("three_rrr", (0.165, -0.227), 0.26), ("three_rrr", (-0.206, 0.101), 0.28), ("three_rrr", (-0.1, 0.13), 0.15),
        ("biglide", (-0.179, -0.067), 0.21), ("biglide", (-0.169, 0.061), 0.26), ("biglide", (0.1, 0.248), 0.16),
    ],
)  # fmt: skip
def test_a_stream_beyond_the_border_leaves_the_way_home_free(robot, offset, speed, late):
    robot = load_robot(robot)
    period = controller_class("qp").period_for(robot).seconds
    control = make_controller("qp", robot, period=period)
    loop = DelayedLoop(robot, control, period, Delays((0, late), (0, late)))
    loop.run(0.3)
    home, far, sent = loop.simulation.observe().pose, np.array([*offset, 0.0]), 0.0

    def drag(now):
        nonlocal sent
        sent = min(1.0, sent + speed * period / np.linalg.norm(far))
        with contextlib.suppress(InfeasibleControlError):  # refused, once it stands at the border
            control.set_goal(loop.stamp, home[0] + sent * far)

    loop.run(np.linalg.norm(far) / speed + 1.5, drag)
    assert control.guard.distance > 0.9 * KEPT
    loop.run(control.set_goal(loop.stamp, home[0]).duration + 3.0)
    assert np.linalg.norm((loop.simulation.observe().pose[0] - home[0])[:2]) < 1e-3


def test_a_robot_that_is_stretched_already_is_refused_by_name():
    straight = ARM.replace('start: ["60 deg"]', 'start: ["0 deg"]').replace('start: ["-30 deg"]', 'start: ["0 deg"]')
    robot = parse_robot(straight, "straight.yaml")
    for kind, says in (
        ("qp", "singular configuration: no actuator moves its output along x"),
        ("computed_torque", "Type 1"),
    ):
        control = make_controller(kind, robot)
        state = Simulation(robot).state
        with pytest.raises(TensegrityError, match=says):
            control.reset(0.0, RobotState(q=state.q, v=state.v))


def test_an_arm_stretched_across_the_axes_is_refused_without_a_figure():
    robot = parse_robot(ARM.replace('start: ["60 deg"]', 'start: ["0 deg"]'), "straight.yaml")
    control, state = make_controller("qp", robot), Simulation(robot).state
    with pytest.raises(TensegrityError, match=r"to move . and . of its output independently is not possible\. Start"):
        control.reset(0.0, RobotState(q=state.q, v=state.v))


PLATE = """
kind: mechanism
name: hung_plate
density: 1500
parameters: {a: 0.6, p: 0.08}
bodies:
  slide_x: {}
  slide_z: {}
  plate: {shapes: [{kind: box, size: [2*p, 0.02, 2*p], mass: 0.7}]}
joints:
  - {name: along_x, kind: prismatic, parent: world, body: slide_x, axis: [1, 0, 0]}
  - {name: along_z, kind: prismatic, parent: slide_x, body: slide_z, axis: [0, 0, 1]}
  - {name: turn, kind: revolute, parent: slide_z, body: plate, axis: [0, 1, 0]}
repeat:
  count: 4
  about: y
  routed_cables:
    - name: rope_$
      young: "5 GPa"
      cable_radius: "0.7 mm"
      damping: "5 MPa s"
      tension: "40 N"
      route:
        - {joint: drum_$, radius: 0.03, side: 1}
        - {body: plate, at: [p, 0, p]}
  bodies:
    drum_$: {shapes: [{kind: cylinder, size: [0.03, 0.01], mass: 0.1, frame: {z: [0, 1, 0]}}]}
  joints:
    - {name: drum_$, kind: revolute, parent: world, body: drum_$, axis: [0, 1, 0], frame: {at: [a, 0, a]}}
  actuators:
    - {drives: drum_$, position: [-15, 15], rate: 10, effort: 10, minimum_tension: 5}
outputs: [{name: plate, body: plate, controlled: [x, z, ry]}]
"""


def test_axes_that_no_efforts_move_apart_are_refused_by_name_and_fewer_of_them_taken():
    """Four ropes whose lines meet: none turns the plate. It was driven to the ends of all efforts, and fell out."""
    for controlled, refused in (("[x, z, ry]", True), ("[x, z]", False)):
        robot = parse_robot(PLATE.replace("[x, z, ry]", controlled), "hung_plate.yaml")
        control, start = make_controller("qp", robot), Simulation(robot).state
        state = RobotState(q=start.q, v=start.v)
        if not refused:
            control.reset(0.0, state)
            continue
        with pytest.raises(
            TensegrityError, match=r"singular configuration: to move (x|z) and ry of its output independently"
        ):
            control.reset(0.0, state)


@pytest.mark.parametrize("bent", [0.02, 0.1])
def test_a_goal_that_would_take_hours_beside_a_singular_position_is_refused_with_the_axis(bent):
    """It was accepted, for 5,400 s in which nothing was seen to move."""
    nearly = ARM.replace('start: ["60 deg"]', f'start: ["{bent} deg"]').replace(
        'start: ["-30 deg"]', 'start: ["0 deg"]'
    )
    robot = parse_robot(nearly, "nearly.yaml")
    control, start = make_controller("qp", robot), Simulation(robot)
    state = start.state
    control.reset(0.0, RobotState(q=state.q, v=state.v))
    here = start.observe().pose[0]
    with pytest.raises(TensegrityError, match=r"would take .* s, above .*hardly move the output along x"):
        control.set_goal(0.0, here + np.array([-0.1, 0.05, 0.0]))
