"""What friction holds of mechanisms that stand on their ground, beside the pendulum in closed form."""

from __future__ import annotations

import numpy as np
import pytest
from standing_tables import table

from tensegrity_dynamics.errors import NoEquilibriumError
from tensegrity_dynamics.mechanisms.mechanism_model import MechanismModel
from tensegrity_dynamics.mechanisms.report import MechanismReport
from tensegrity_dynamics.mechanisms.statics.equilibrium_solver import MechanismEquilibriumSolver
from tensegrity_dynamics.robots.report import KinematicsOptions


def shape_of(robot):
    model = robot.model_as(MechanismModel)
    solver = MechanismEquilibriumSolver(model.mechanism, model.driven_joints(robot.actuators))
    return solver.solve(model.start)


def test_hips_on_vertical_legs_that_nothing_drives_stand_by_friction_alone():
    shape = shape_of(table(0.0, driven=False))
    assert shape.stable and shape.standing is not None
    assert shape.standing.loose == "hip_1, hip_2, hip_3" and shape.standing.rate > 1.0


@pytest.mark.parametrize(("share", "holds"), [(1.2, True), (0.8, False)])
def test_springs_of_more_than_the_load_times_the_leg_hold_sliding_feet(share, holds):
    # a leg with the trunk's share N at its top, and its own weight in the middle: N l + m g l / 2, from the foot's side
    length, trunk, leg = 0.25, 3.0 * 9.81 / 3.0, 0.3 * 9.81
    critical = trunk * length + leg * length / 2.0
    shape = shape_of(table(0.0, driven=False, spring=share * critical))
    assert shape.standing is not None
    assert (shape.standing.loose == "") is holds


@pytest.mark.parametrize(("slope", "friction"), [(5.0, 0.2), (12.0, 0.9)])
def test_feet_use_the_tangent_of_the_slope_of_their_friction(slope, friction):
    standing = shape_of(table(-10.0, slope=slope, friction=friction)).standing
    assert standing.used == pytest.approx(np.tan(np.radians(slope)) / friction, rel=1e-6)


def test_a_moment_that_only_friction_bears_is_refused_with_this_reason():
    robot = table(-10.0)
    body = robot.mechanism.bodies[0].name
    with pytest.raises(NoEquilibriumError, match="a moment about the vertical is not searched for"):
        MechanismReport(robot).forward_kinematics(KinematicsOptions(forces=(f"{body}=0,0,0,0,0,0.01",)))


def test_check_says_which_motion_nothing_but_friction_resists():
    report = MechanismReport(table(0.0, driven=False)).check()
    assert any("no stiffness resists a motion of hip_1, hip_2, hip_3" in note for note in report.notes)
    assert not MechanismReport(table(-12.0)).check().notes
