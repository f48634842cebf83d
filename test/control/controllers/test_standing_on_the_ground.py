"""Robots that only the ground holds: which goals position control takes, and what the simulation says to it."""

from __future__ import annotations

import numpy as np
import pytest
from standing_tables import cart, table

from tensegrity_control import make_controller
from tensegrity_control.controller import Accepted, RobotState
from tensegrity_control.inverse_kinematics.mechanism_equilibria import MechanismEquilibriumMap
from tensegrity_dynamics import Robot, Simulation, TensegrityError

SETTLED, PERIOD = 0.3, 0.02


class Loop:
    """Position control of a simulated robot whose actuators hold their start."""

    def __init__(self, robot: Robot) -> None:
        self.control, self.simulation = (
            make_controller("joint_position", robot),
            Simulation(robot, 1e-3, integrator="implicit"),
        )
        self.simulation.hold()
        self.simulation.advance(duration=SETTLED)
        self.control.reset(SETTLED, RobotState.of(self.simulation))
        self.position, self.quaternion = self.simulation.observe().pose

    def send(self, move, **options) -> Accepted:
        return self.control.set_goal(SETTLED, self.position + np.array(move), self.quaternion, **options)

    def run(self, accepted: Accepted) -> tuple[np.ndarray, float]:
        """Where the output went [m], and its largest distance from the reference along z on the way [m]."""
        worst, simulation = 0.0, self.simulation
        while simulation.time < accepted.arrival + 0.3:
            command = self.control.command(simulation.time, RobotState.of(simulation))
            simulation.command(command.mode, command.set_points(), period=PERIOD)
            simulation.advance(duration=PERIOD)
            wanted = self.control.reference(simulation.time).pose[0]
            worst = max(worst, abs(float((simulation.observe().pose[0] - wanted)[2])))
        return simulation.observe().pose[0] - self.position, worst


@pytest.mark.parametrize(("angle", "friction"), [(-0.5, 0.1), (-2.0, 0.6), (-20.0, 1.0)])
def test_a_table_comes_down_evenly_whatever_friction_its_feet_slide_against(angle, friction):
    loop = Loop(table(angle, friction=friction))
    moved, worst = loop.run(loop.send([0.0, 0.0, -5e-3]))
    assert moved == pytest.approx([0.0, 0.0, -5e-3], abs=2e-5)
    assert worst < 5e-4  # it went 27 mm past the goal and back where legs were nearly vertical


def test_a_table_on_vertical_legs_is_refused_as_singular():
    loop = Loop(table(0.0))
    with pytest.raises(TensegrityError, match="singular shape; begin the motion from another one"):
        loop.send([0.0, 0.0, -5e-3])


def test_a_motion_lasts_until_the_feet_carry_its_inertia():
    loop = Loop(table(-15.0, friction=0.1))
    accepted = loop.send([0.0, 0.0, -2e-2], duration=0.05)
    assert accepted.note
    moved, _ = loop.run(accepted)
    assert moved == pytest.approx([0.0, 0.0, -2e-2], abs=1e-4)


@pytest.mark.parametrize("friction", [0.05, 0.5])
def test_a_wheel_rolls_its_angle_times_its_radius(friction):
    loop = Loop(cart(friction))
    accepted = loop.send([0.1, 0.0, 0.0])
    moved, _ = loop.run(accepted)
    assert loop.simulation.observe().positions["drive"] == pytest.approx(0.1 / 0.05, rel=1e-2)
    assert moved[0] == pytest.approx(0.1, abs=1.5e-3)  # the skid drags, and friction below 1 mm/s is regularised


def test_a_wheel_that_carries_less_than_the_skid_spins_and_the_goal_is_refused():
    loop = Loop(cart(0.5, axle=10.0, skid=-2.0))
    with pytest.raises(TensegrityError, match="out of reach"):
        loop.send([0.1, 0.0, 0.0])
    loop.simulation.command("position", {"drive": 1.0})
    loop.simulation.advance(duration=2.0)
    assert abs(loop.simulation.observe().pose[0][0] - loop.position[0]) < 5e-3  # rolling would be 50 mm


def test_equilibria_leave_feet_where_they_are_and_come_back_to_the_start():
    equilibria = MechanismEquilibriumMap(table(-10.0))
    there = equilibria.solve(equilibria.home.positions + np.array([0.2, -0.1, 0.05]), equilibria.home)
    back = equilibria.solve(equilibria.home.positions, there)
    assert back.q == pytest.approx(equilibria.home.q, abs=1e-3)
    assert np.isfinite(equilibria.sensitivity(there).pose).all()
    assert np.abs(equilibria.sensitivity(there).pose).max() < 1.0  # m per rad; 1e12 where sliding had no law


def test_what_slides_against_friction_must_be_within_the_efforts():
    loop = Loop(table(-10.0, friction=1.0, effort=1.2))
    with pytest.raises(TensegrityError, match=r"feet slide against\s+friction .* above its limit of 1.2"):
        loop.send([0.0, 0.0, -5e-3])


def test_a_slope_near_the_friction_is_refused_with_its_share():
    share = np.tan(np.radians(16.0)) / 0.3
    with pytest.raises(TensegrityError, match=f"uses {100.0 * share:.3g} % of the friction"):
        make_controller("joint_position", table(-10.0, slope=16.0, friction=0.3))
    make_controller("joint_position", table(-10.0, slope=14.0, friction=0.3))


@pytest.mark.parametrize("name", ["qp", "task"])
def test_controllers_by_effort_say_why_they_refuse_a_robot_that_only_the_ground_holds(name):
    with pytest.raises(TensegrityError, match="sliding has no stiffness"):
        make_controller(name, table(-12.0))
