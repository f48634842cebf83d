"""Controllers that follow plans: goals, brakes, gains and take-overs of mechanisms in simulation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensegrity_control import make_controller
from tensegrity_control.controller import RobotState
from tensegrity_control.trajectories.time_scaling import PathClock
from tensegrity_dynamics import Simulation, load_robot
from tensegrity_dynamics.errors import InfeasibleControlError, TensegrityError, UnreachableGoalError
from tensegrity_dynamics.impedance import travelled
from tensegrity_dynamics.mechanisms.dynamics import reduced_model

CASES = [
    ("manipulator", "task", 0.005, (0.0, 0.02, -0.03), 2e-5),
    ("single_strut", "near_rigid", 0.002, (0.03, 0.02, 0.0), 5e-5),
    ("biglide", "computed_torque", 0.005, (0.03, 0.02, 0.0), 1e-3),
    ("biglide", "kinematic", 0.02, (0.03, 0.02, 0.0), 3e-3),
]


class Machine:
    """A simulated mechanism under a controller."""

    def __init__(self, robot: str, controller: str, period: float, **options):
        self.robot, self.period = load_robot(robot), period
        self.simulation = Simulation(self.robot)
        if controller != "kinematic":  # feedback of the state; impedances: test_impedance_control
            options = {"actuation": "effort", **options}
        self.control = make_controller(controller, self.robot, period=period, **options)
        self.held = np.array(list(self.simulation.observe().efforts.values()))
        self.sent: list[np.ndarray] = []
        self.control.reset(0.0, self.state())

    @property
    def now(self) -> float:
        return self.simulation.state.time

    @property
    def position(self) -> np.ndarray:
        return np.array(self.simulation.observe().pose[0])[self.robot.output.rows]

    def state(self) -> RobotState:
        seen, state = self.simulation.observe(), self.simulation.state
        return RobotState(np.array(list(seen.positions.values())), pose=seen.pose, q=state.q, v=state.v)

    def run(self, duration: float, blind: bool = False) -> float:
        """Largest distance [m] from the reference on the way."""
        worst = 0.0
        for _ in range(round(duration / self.period)):
            command = self.control.command(self.now, None if blind else self.state())
            self.sent.append(command.values)
            self.simulation.command(command.mode, command.set_points(), period=self.period)
            self.simulation.advance(duration=self.period)
            desired = self.control.reference(self.now).pose[0][self.robot.output.rows]
            worst = max(worst, float(np.linalg.norm(self.position - desired)))
        return worst


@pytest.fixture(params=CASES, ids=[f"{case[0]}-{case[1]}" for case in CASES], scope="module")
def case(request):
    return request.param


@pytest.mark.sampled(2)
def test_a_goal_is_reached_on_its_path_and_a_second_one_on_the_way_is_taken_from_a_brake(case):
    robot, controller, period, move, tolerance = case
    machine = Machine(robot, controller, period)
    home = np.array(machine.simulation.observe().pose[0])
    assert machine.run(10 * period) < 1e-9  # it takes over without moving
    if machine.control.output_mode == "effort":
        np.testing.assert_allclose(machine.sent[0], machine.held, atol=1e-6)
    accepted = machine.control.set_goal(machine.now, home + move)
    assert machine.control.status(machine.now).phase == "moving"
    assert machine.run(0.5 * accepted.duration) < tolerance
    back = machine.control.set_goal(machine.now, home)
    assert back.arrival > accepted.arrival - 0.5 * accepted.duration
    assert machine.run(back.duration + 20 * period) < tolerance
    assert machine.control.status(machine.now).phase == "holding"
    np.testing.assert_allclose(machine.position, home[machine.robot.output.rows], atol=tolerance)


@pytest.mark.sampled(1)
def test_hold_brakes_on_the_path_without_a_jolt(case):
    robot, controller, period, move, tolerance = case
    machine = Machine(robot, controller, period)
    home = np.array(machine.simulation.observe().pose[0])
    machine.control.set_goal(machine.now, home + move, duration=2.0)
    machine.run(1.0)
    before = machine.sent[-1]
    machine.control.stop(machine.now)
    assert machine.run(0.6) < tolerance
    first = np.array(machine.sent[-round(0.6 / period)])
    scale = max(float(np.max(np.abs(machine.sent))), 1e-9)
    assert np.max(np.abs(first - before)) < 0.2 * scale
    status = machine.control.status(machine.now)
    assert status.phase == "stopped"
    share = np.linalg.norm(machine.position - home[machine.robot.output.rows]) / np.linalg.norm(move)
    assert 0.4 < share < 0.99  # neither at the goal nor back
    with pytest.raises(TensegrityError, match="stopped"):
        machine.control.set_goal(machine.now, home)
    machine.control.release()
    machine.control.set_goal(machine.now, home)


@pytest.mark.sampled(1)
def test_a_refused_goal_leaves_the_motion_as_it_was(case):
    robot, controller, period, move, _ = case
    machine = Machine(robot, controller, period)
    home = np.array(machine.simulation.observe().pose[0])
    accepted = machine.control.set_goal(machine.now, home + move)
    with pytest.raises(TensegrityError):
        machine.control.set_goal(machine.now, home + [5.0, 0.0, 0.0])
    with pytest.raises(TensegrityError, match="finite"):
        machine.control.set_goal(machine.now, home + [np.nan, 0.0, 0.0])
    with pytest.raises(TensegrityError, match="increase"):
        machine.control.follow(machine.now, [(1.0, home, None), (0.5, home, None)])
    with pytest.raises(TensegrityError, match="interpolation"):
        machine.control.follow(machine.now, [(1.0, home, None)], "straight")
    assert machine.control.status(machine.now).arrival == accepted.arrival


def test_without_a_state_the_plan_goes_on_alone_and_is_counted():
    machine = Machine("biglide", "computed_torque", 0.005)
    home = np.array(machine.simulation.observe().pose[0])
    machine.control.set_goal(machine.now, home + [0.03, 0.0, 0.0])
    assert machine.run(0.2, blind=True) < 1e-3
    assert machine.control.blind == 40


def test_gains_are_checked_and_count_at_once():
    machine = Machine("biglide", "computed_torque", 0.005)
    moving = replace(machine.state(), v=np.array([0.01, 0.0, 0.0, 0.0]))
    soft = machine.control.command(machine.now, moving).values
    machine.control.set_gains(damping=20.0)
    assert machine.control.gains()["damping"] == 20.0
    hard = machine.control.command(machine.now, moving).values
    np.testing.assert_allclose(hard, 10.0 * soft, rtol=0.02)  # the rest is the mechanism's own inertia
    for wrong, message in (
        ({"damping": -1.0}, "damping"),
        ({"dampng": 1.0}, "damping"),
        ({"stiffness": np.nan}, "stiffness"),
    ):
        with pytest.raises(TensegrityError, match=message):
            machine.control.set_gains(**wrong)
    assert machine.control.gains()["damping"] == 20.0


def test_a_plan_is_refused_when_something_else_has_begun_since():
    machine = Machine("biglide", "kinematic", 0.02)
    home = np.array(machine.simulation.observe().pose[0])
    goal = machine.control.make_goal(machine.now, home + [0.02, 0.0, 0.0])
    planned = machine.control.plan_goal(machine.now, goal)
    machine.control.hold(machine.now)
    with pytest.raises(TensegrityError, match="another command"):
        machine.control.begin(machine.now, planned)


def test_a_plan_is_refused_when_something_else_comes_in_the_middle_of_planning():
    machine = Machine("biglide", "kinematic", 0.02)
    home = np.array(machine.simulation.observe().pose[0])
    rest = machine.control.rest

    def interrupted(now):
        machine.control.hold(now)
        return rest(now)

    goal = machine.control.make_goal(machine.now, home + [0.02, 0.0, 0.0])
    machine.control.rest = interrupted  # the first that planning does
    with pytest.raises(TensegrityError, match="another command"):
        machine.control.begin(machine.now, machine.control.plan_goal(machine.now, goal))
    assert machine.control.status(machine.now).phase == "holding"


def test_gains_that_change_while_a_plan_is_made_count_for_it():
    machine = Machine("biglide", "computed_torque", 0.005)
    home = np.array(machine.simulation.observe().pose[0])
    planned = machine.control.plan_goal(machine.now, machine.control.make_goal(machine.now, home + [0.02, 0.0, 0.0]))
    machine.control.set_gains(damping=20.0)
    machine.control.begin(machine.now, planned)
    assert planned.tracker.damping == 20.0


def test_gains_of_a_held_shape_count_at_once_and_impossible_ones_change_nothing():
    machine = Machine("single_strut", "near_rigid", 0.005)
    state = machine.state()
    off = replace(state, q=state.q + 1e-4 * np.eye(state.q.size)[machine.control.model.q_index[0]])
    before = machine.control.command(machine.now, off).values
    machine.control.set_gains(position=1e-3)
    assert np.max(np.abs(machine.control.command(machine.now, off).values - before)) > 1e-3
    kept = machine.control.gains()
    with pytest.raises(TensegrityError):
        machine.control.set_gains(position=1e-300)
    assert machine.control.gains() == kept


def test_a_robot_far_from_its_plan_is_not_dragged_back():
    machine = Machine("single_strut", "near_rigid", 0.005)
    state = machine.state()
    away = replace(state, q=state.q + 0.5 * np.eye(state.q.size)[machine.control.model.q_index[0]])
    with pytest.raises(InfeasibleControlError, match="from its plan"):
        machine.control.command(machine.now, away)


def test_durations_become_whole_periods_within_reason():
    machine = Machine("single_strut", "near_rigid", 0.01)
    home = np.array(machine.simulation.observe().pose[0])
    accepted = machine.control.set_goal(machine.now, home + [0.03, 0.0, 0.0], duration=0.5049)
    assert accepted.duration == pytest.approx(0.51)
    machine.run(0.8)
    assert abs(machine.position[0] - home[0] - 0.03) < 2e-5
    for duration in (1e14, np.inf, np.nan, -1.0):
        with pytest.raises(TensegrityError, match="duration"):
            machine.control.set_goal(machine.now, home, duration=duration)
    with pytest.raises(TensegrityError, match="control period"):
        machine.control.follow(machine.now, [(0.003, home, None)])
    with pytest.raises(TensegrityError, match="no cables"):
        make_controller("near_rigid", load_robot("biglide"))


def test_a_path_beyond_position_limits_is_refused_even_where_its_waypoints_are_within():
    machine = Machine("biglide", "kinematic", 0.02)
    home = np.array(machine.simulation.observe().pose[0])
    high = home + [0.0, 2.49, 0.0]
    with pytest.raises(TensegrityError, match="outside its position limits"):
        machine.control.follow(machine.now, [(8.0, high, None), (12.0, high, None), (20.0, home, None)])


def test_paths_with_cables_tight_keep_position_and_rate_limits_between_their_waypoints():
    """A spline swings far beyond waypoints that follow each other too quickly."""
    machine = Machine("single_strut", "near_rigid", 0.01)
    home = np.array(machine.simulation.observe().pose[0])
    points = [(0.2, (0.15, 0.06, 0.0)), (1.9, (-0.16, 0.11, 0.0)), (2.35, (-0.15, -0.26, 0.0))]
    with pytest.raises(TensegrityError, match=r"needs B\d at .* rad, outside its position limits"):
        machine.control.follow(machine.now, [(time, home + move, None) for time, move in points])
    with pytest.raises(InfeasibleControlError, match=r"moves B\d at .* stretch all times"):
        machine.control.follow(machine.now, [(0.2, home + [0.42, 0.0, 0.0], None)], "cubic")
    assert machine.control.status(machine.now).phase == "holding"


def test_paths_that_ask_too_much_are_refused_with_the_actuator():
    machine = Machine("biglide", "computed_torque", 0.005)
    home = np.array(machine.simulation.observe().pose[0])
    with pytest.raises(InfeasibleControlError, match=r"foot_\d at .* stretch all times"):
        machine.control.follow(machine.now, [(0.1, home + [0.1, -0.1, 0.0], None)])
    asked = machine.control.set_goal(machine.now, home + [0.1, -0.1, 0.0], duration=0.1)
    assert "needed by the rate limit" in asked.note
    with pytest.raises((UnreachableGoalError, TensegrityError)):
        machine.control.set_goal(machine.now, home + [0.0, 3.0, 0.0])


def test_controllers_of_mechanisms_want_coordinates():
    control = make_controller("kinematic", load_robot("biglide"))
    with pytest.raises(TensegrityError, match="needs q and v"):
        control.reset(0.0, RobotState())
    with pytest.raises(TensegrityError, match="call reset"):
        control.set_goal(0.0, [0.0, 0.3, 0.0])


# -- the clock ------------------------------------------------------------------------------------------------------


@given(st.floats(0.0, 100.0), st.floats(0.01, 30.0), st.floats(0.0, 1.2), st.floats(0.001, 3.0), st.floats(0.0, 1.0))
def test_a_braked_clock_is_smooth_and_rests_within_the_brake_time(begin, duration, share, longest, part):
    clock = PathClock(begin, duration)
    now = begin + share * duration
    clock.brake(now, longest)
    assert clock.end <= max(begin + duration, now + longest) + 1e-9
    assert 0.0 <= clock.last <= duration + 1e-9
    time = begin + part * (clock.end - begin)
    here, h = clock.at(time), 1e-4 * max(longest, 1e-3)
    assert -1e-9 <= here.time <= clock.last + 1e-9 and 0.0 <= here.pace <= 1.0
    inside = begin + h < time < clock.end - h
    if inside:
        ahead, behind = clock.at(time + h), clock.at(time - h)
        assert (ahead.time - behind.time) / (2 * h) == pytest.approx(here.pace, abs=1e-3)
    rest = clock.at(clock.end + 1.0)
    assert rest.pace == 0.0 and rest.time == pytest.approx(clock.last)


@pytest.fixture(
    scope="module", params=[("tensebot", "tendon_length"), ("biglide", "joint_position"), ("biglide", "kinematic")]
)
def resting(request):
    simulation = Simulation(load_robot(request.param[0]))
    made = make_controller(request.param[1], load_robot(request.param[0]), period=0.02)
    seen = simulation.observe()
    positions = np.array(list(seen.positions.values()))
    made.reset(0.0, RobotState(positions=positions, pose=seen.pose, q=getattr(simulation.state, "q", None)))
    return made


@given(st.floats(width=64) | st.sampled_from([1e300, 3e9, 600.1, -1e-9]))
def test_a_duration_that_no_motion_has_is_refused_whatever_the_controller(resting, duration):
    if 0.0 <= duration <= 600.0:
        resting.check_goal(duration)
        return
    with pytest.raises(TensegrityError, match="the duration is"):
        resting.check_goal(duration)


def test_more_waypoints_than_stated_are_refused(resting):
    resting.check_waypoints(np.linspace(1.0, 500.0, 500).tolist())
    with pytest.raises(TensegrityError, match="501 waypoints; send up to 500"):
        resting.check_waypoints(np.linspace(1.0, 501.0, 501).tolist())
    with pytest.raises(TensegrityError, match="600 s"):
        resting.check_waypoints([1.0, 3e9])


@pytest.mark.long
def test_task_reaches_its_goal_in_other_coordinates_than_those_of_the_start(monkeypatch):
    monkeypatch.setattr(reduced_model, "LARGEST_ENTRY", 0.0)  # those of the start are never good enough
    monkeypatch.setattr(reduced_model, "BETTER", 1e9)
    machine = Machine("manipulator", "task", 0.005)
    home = np.array(machine.simulation.observe().pose[0])
    assert machine.run(0.05) < 1e-9
    first = set(machine.control.model.names)
    for move in ((0.0, 0.02, -0.03), (0.02, 0.0, 0.01)):
        accepted = machine.control.set_goal(machine.now, home + move)
        assert machine.run(accepted.duration + 0.2) < 2e-5
        tracker = machine.control.motion_at(np.inf)[1]
        assert set(tracker.model.names) != first and tracker.model is not machine.control.model
        np.testing.assert_allclose(machine.position, home + move, atol=1e-6)


@pytest.mark.parametrize("jump", [1.0, 3600.0, 3.2e8])
def test_where_the_time_of_states_jumps_ahead_set_points_go_no_further_than_actuators_do_by_themselves(jump) -> None:
    robot = load_robot("manipulator")
    control = make_controller("joint_position", robot)
    control.waits_for_robot = True  # as in the node
    seen = Simulation(robot).observe()
    state = RobotState(np.array(list(seen.positions.values())), pose=seen.pose)
    period, now, sent = 0.02, 1.8e9, []
    control.reset(now, state)
    goal = control.make_goal(now, np.add(seen.pose[0], (0.0, 0.02, -0.03)))
    accepted = control.begin(now, control.plan_goal(now, goal, duration=1.0))
    for k in range(90):
        now += period + (jump if k == 20 else 0.0)
        sent.append(control.command(now, state).values)
    steps = np.abs(np.diff(sent, axis=0))
    rates = np.maximum(steps[18], steps[20]) / period
    assert np.all(steps[19] <= 1.1 * rates * (period + travelled(np.inf, control.lead)))
    assert np.all(np.delete(steps, 19, axis=0) <= period * np.array([each.rate for each in robot.actuators]))
    assert control.gaps == 1 and control.status(now).phase == "holding"
    assert accepted.duration == pytest.approx(1.0, abs=1e-6)
    assert np.abs(sent[-1] - sent[0]).max() > steps[19].max()
    control.reset(now - jump, state)  # what the node does where it goes back
    assert np.abs(control.command(now - jump, state).values - state.positions).max() < 1e-6


@pytest.mark.parametrize("gap", [0.15, 0.4, 5.0])
@pytest.mark.parametrize("asked", ["hold", "goal", "hold before"])
def test_a_brake_asked_for_during_a_gap_is_made_up_for_from_where_the_actuators_are(asked, gap) -> None:
    robot = load_robot("three_rrr")
    control = make_controller("joint_position", robot)
    control.waits_for_robot = True  # as in the node
    seen = Simulation(robot).observe()
    state = RobotState(np.array(list(seen.positions.values())), pose=seen.pose)
    period, now, sent = control.command_period, 0.0, []
    control.reset(now, state)
    control.set_goal(now, np.add(seen.pose[0], (0.03, 0.0, 0.0)), duration=1.0)
    while now < 0.5:
        now += period
        sent.append(control.command(now, state))
        if asked == "hold before" and now > 0.45:
            control.hold(now)
    if asked == "goal":
        control.set_goal(now, np.add(seen.pose[0], (0.0, 0.03, 0.0)), duration=1.0)
    else:
        control.hold(now)
    before, rest = sent[-1], control.rest(now)
    now += gap
    after = control.command(now, state)
    there = before.values + before.velocity * travelled(gap, control.lead)
    # rates change a little on the way
    np.testing.assert_allclose(after.values, there, atol=0.2 * np.abs(there - before.values).max())
    while now < 0.5 + gap + 3.0:
        now, last = now + period, after
        after = control.command(now, state)
        fastest = np.maximum(np.abs(last.velocity), np.abs(after.velocity))
        assert np.all(np.abs(after.values - last.values) <= 1.3 * period * fastest + 2e-3)
    assert control.gaps == 1 and control.status(now).phase == "holding"
    if asked != "goal":
        np.testing.assert_allclose(after.values, rest.configuration, atol=1e-9)
