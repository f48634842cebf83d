"""What `qp` learned of a push is unlearned with the time constant of learning."""

import pytest

from tensegrity_control import make_controller
from tensegrity_dynamics import load_robot
from tensegrity_tools.runtime.delayed_loop import DelayedLoop, Delays

PERIOD = 0.005


@pytest.mark.parametrize(
    ("name", "push", "late"), [("three_rrr", 20.0, 0), ("three_rrr", 20.0, 1), ("manipulator", 5.0, 1)]
)
def test_a_push_is_learned_and_soon_after_its_end_unlearned_although_impedances_hold_the_output(name, push, late):
    robot = load_robot(name)
    loop = DelayedLoop(robot, make_controller("qp", robot, period=PERIOD), PERIOD, Delays((0, 0), (late, late)))
    home = loop.simulation.observe().pose
    loop.simulation.apply_forces({robot.output.body: [push, 0.0, 0.0]})
    loop.run(2.0)
    assert robot.output.distance(home, loop.simulation.observe().pose)[0] < 2e-5
    loop.simulation.apply_forces(None)
    loop.run(1.0)
    assert not loop.control.relaxed()
    assert robot.output.distance(home, loop.simulation.observe().pose)[0] < 5e-5
