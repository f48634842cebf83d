"""Payloads and wrenches that are announced while a plan is held or followed: every plan is made anew with them."""

import numpy as np
import pytest
from patience import until

from tensegrity_control import RobotState, make_controller
from tensegrity_control.controllers.known_loads import KnownLoads
from tensegrity_control.external_loads import ExternalLoads
from tensegrity_dynamics import Simulation, load_robot
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.mechanisms.loads import Payload

PERIOD = 0.005
ARM = np.array([0.02, 0.0, 0.4])
"""m in the frame of a strut that stands on a joint: what hangs there pulls it aside."""


class Loop:
    """A robot under a controller, with what acts on it told to the controller or not."""

    def __init__(self, name, controller, told, **parameters):
        self.robot, self.told, self.time = load_robot(name), told, 0.0
        self.simulation = Simulation(self.robot, 1e-3)
        self.control = make_controller(controller, self.robot, period=PERIOD, **parameters)
        self.control.reset(0.0, RobotState.of(self.simulation))
        self.body, self.off, self.tensions = self.robot.output.body, [], []
        self.mass = 0.2 * sum(body.mass for body in self.robot.mechanism.bodies)

    def carry(self, mass, at=ARM):
        payload = Payload("weight", self.body, mass, np.asarray(at))
        if mass:
            self.simulation.attach("weight", self.body, mass, at)
        else:
            self.simulation.detach("weight")
        if self.told:
            self.control.carry((payload,) if mass else ())

    def push(self, force):
        self.simulation.apply_forces({self.body: force})
        if self.told:
            self.control.set_loads({self.body: force})

    def run(self, periods):
        """Largest distance [m] of the output from its reference at the end, after so many periods."""
        for _ in range(periods):
            state = RobotState.of(self.simulation)
            command = self.control.command(self.time, state)
            self.off.append(float(np.linalg.norm(state.pose[0] - self.control.reference(self.time).pose[0])))
            self.simulation.command(command.mode, command.set_points(), period=PERIOD)
            self.simulation.advance(duration=PERIOD)
            self.tensions.append(list(self.simulation.observe().tensions.values()))
            self.time = round((len(self.off)) * PERIOD, 9)
        return self.off[-1]


WAYS = [
    ("task", {"actuation": "impedance"}),
    pytest.param("task", {"actuation": "effort"}, marks=pytest.mark.long),
    pytest.param("near_rigid", {"actuation": "impedance"}, marks=pytest.mark.long),
    pytest.param("near_rigid", {"actuation": "effort"}, marks=pytest.mark.long),
    ("joint_position", {}),
]


def off_with_payload(name, parameters, told):
    loop = Loop("single_strut", name, told, **parameters)
    loop.run(4)
    loop.carry(loop.mass)
    resting = loop.run(100)
    loop.control.set_goal(loop.time, loop.control.reference(loop.time).pose[0] + [0.02, 0.0, 0.0], duration=0.5)
    loop.run(30)
    loop.carry(1.5 * loop.mass, ARM + [0.01, 0.01, 0.0])  # moved, and more, on the way
    moved = loop.run(130)
    loop.carry(0.0)
    gone = loop.run(100)
    return np.array([resting, moved, gone]), np.min(loop.tensions)


@pytest.mark.parametrize(("name", "parameters"), WAYS, ids=lambda each: str(each))
def test_payload_that_is_announced_leaves_the_output_where_it_is_held(name, parameters):
    told, least = off_with_payload(name, parameters, True)
    unknown, _ = off_with_payload(name, parameters, False)
    assert np.all(told < 1e-5)
    assert np.all(told[:2] < 0.05 * unknown[:2])
    assert least > 20.0  # minimum_tension of the strut's cables


@pytest.mark.parametrize("name", [pytest.param("task", marks=pytest.mark.long), "near_rigid"])
def test_wrench_that_is_announced_is_held_until_it_ends(name):
    loop = Loop("single_strut", name, True)
    loop.run(2)
    loop.push(np.array([2.0, -1.0, 0.0, 0.3, 0.1, 0.0]))
    assert loop.run(120) < 1e-6
    loop.push(np.zeros(6))
    assert loop.run(120) < 1e-6
    assert loop.control.replans == 2


def test_computed_torque_answers_a_payload_at_once():
    def largest(told):
        loop = Loop("stewart", "computed_torque", told)
        loop.run(2)
        loop.carry(loop.mass, [0.0, 0.0, 0.0])
        loop.run(40)
        return max(loop.off)

    assert largest(True) < 0.05 * largest(False)


def test_loads_of_the_same_numbers_are_planned_once():
    loop = Loop("single_strut", "task", True)
    for _ in range(5):  # as a sender that pushes on sends on
        loop.push(np.array([2.0, 0.0, 0.0]))
        loop.run(2)
    assert loop.control.replans == 1


def test_begins_with_what_it_was_told_before():
    loop = Loop("single_strut", "task", True)
    loop.carry(loop.mass)
    loop.control.reset(0.0, RobotState.of(loop.simulation))
    before = loop.control.replans
    loop.run(10)
    assert loop.control.replans == before == 0
    assert loop.control.robot.mechanism.payloads[-1].mass == loop.mass


def test_payload_that_no_effort_holds_is_named_and_goals_are_refused_until_it_is_off():
    loop = Loop("single_strut", "task", True)
    loop.control.carry((Payload("rock", loop.body, 1e4, ARM),))
    before = loop.control.command(0.0, RobotState.of(loop.simulation))
    (said,) = loop.control.status(0.0).relaxed
    assert "no plan holds the announced loads" in said
    assert loop.control.diagnostics()["loads_not_planned"] == said
    with pytest.raises(TensegrityError, match="no plan holds"):
        loop.control.set_goal(0.0, loop.control.reference(0.0).pose[0] + [0.01, 0.0, 0.0])
    loop.control.carry(())
    after = loop.control.command(PERIOD, RobotState.of(loop.simulation))
    assert not loop.control.status(PERIOD).relaxed
    assert np.allclose(after.position, before.position)
    loop.control.set_goal(PERIOD, loop.control.reference(0.0).pose[0] + [0.01, 0.0, 0.0])


def test_plan_for_loads_is_made_beside_the_control_where_nodes_ask_for_it():
    loop = Loop("single_strut", "task", True)
    loop.control.plans_beside = True
    loop.run(1)
    loop.carry(loop.mass)
    loop.run(1)
    until(lambda: loop.run(1) < np.inf and loop.control.replans == 1)
    assert loop.run(150) < 1e-5


def test_goal_that_was_planned_with_other_loads_is_refused():
    loop = Loop("single_strut", "task", True)
    loop.run(1)
    goal = loop.control.make_goal(loop.time, loop.control.reference(loop.time).pose[0] + [0.01, 0.0, 0.0])
    planned = loop.control.plan_goal(loop.time, goal)
    loop.carry(loop.mass)
    loop.run(1)
    with pytest.raises(TensegrityError, match="the announced loads changed"):
        loop.control.begin(loop.time, planned)


def test_loads_are_equal_by_their_numbers():
    one, same, other = (KnownLoads((Payload("a", "b", mass, ARM),), (("b", (1.0,) * 6),)) for mass in (1.0, 1.0, 2.0))
    assert one == same
    assert hash(one) == hash(same)
    assert one != other


def test_controller_that_takes_no_loads_says_so_by_name():
    robot = load_robot("biglide")
    control = make_controller("kinematic", robot)
    with pytest.raises(TensegrityError, match="kinematic commands rates"):
        ExternalLoads(robot).take(control, robot.output.body, [1.0, 0.0, 0.0], [0.0, 0.0, 0.0], 0.0, 0.0)
    with pytest.raises(TensegrityError, match="kinematic commands rates"):
        control.carry(())


def test_estimates_change_no_plan():
    loop = Loop("single_strut", "task", True)
    loads = ExternalLoads(loop.robot)
    loads.take_estimate(loop.body, [1.0, 0.0, 0.0], [0.0, 0.0, 0.0], 0.0, 0.0)
    for k in range(3):
        loads.update(loop.control, 0.01 * (k + 1))
    loop.run(2)
    assert loop.control.replans == 0
