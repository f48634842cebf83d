"""Maps from actuator positions to equilibria: what was solved is kept, and another kind of model brings its own."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

from tensegrity_control import inverse_kinematics
from tensegrity_control.controllers.joint_position import JointPositionController
from tensegrity_control.controllers.tendon_length import TendonLengthController
from tensegrity_control.inverse_kinematics.equilibrium_map import EquilibriumMap, equilibrium_map
from tensegrity_control.inverse_kinematics.ik_result import InverseKinematicsOptions, InverseKinematicsResult
from tensegrity_control.inverse_kinematics.mechanism_equilibria import MechanismEquilibriumMap
from tensegrity_control.inverse_kinematics.pose_goal import PoseGoal
from tensegrity_control.inverse_kinematics.solve_ik import plan_path
from tensegrity_control.inverse_kinematics.structure_equilibria import StructureEquilibriumMap
from tensegrity_control.paths.equilibrium_path import EquilibriumPath
from tensegrity_dynamics import load_robot
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.robots.model import RobotModel


@pytest.mark.parametrize(
    ("robot", "controller", "kind"),
    [
        ("tensebot", TendonLengthController, StructureEquilibriumMap),
        ("single_strut", JointPositionController, MechanismEquilibriumMap),
    ],
)
def test_no_equilibrium_of_a_goal_is_differentiated_twice(monkeypatch, robot, controller, kind):
    made = Counter()
    differentiate = kind.differentiate

    def counted(self, equilibrium):
        made[equilibrium] += 1
        return differentiate(self, equilibrium)

    monkeypatch.setattr(kind, "differentiate", counted)
    control = controller(load_robot(robot))
    control.reset(0.0)
    now = 0.0
    for move in ([0.01, 0.0, 0.0], [0.0, 0.005, 0.0]):
        now = control.set_goal(now, control.home.pose[0] + move).arrival
    assert len(made) > 2 and max(made.values()) == 1


def test_an_equilibrium_that_the_map_solved_is_a_start_without_being_solved_again():
    equilibria = StructureEquilibriumMap(load_robot("tensebot"), rigid_bars=True)
    assert equilibria.start(equilibria.home) is equilibria.home
    stranger = replace(equilibria.home)  # equal, but from somewhere else
    assert equilibria.start(stranger) is not stranger


def test_a_path_passes_through_the_equilibria_that_were_found_and_those_between_are_as_near_as_asked_for():
    robot = load_robot("tensebot")
    equilibria = StructureEquilibriumMap(robot, rigid_bars=True)
    found = inverse_kinematics(robot, equilibria.home.pose[0] + [0.0, 0.015, 0.01], equilibria=equilibria)
    path = EquilibriumPath(equilibria, found.path)
    assert path.first is found.path[0] and path.last is found.path[-1]
    assert sum(any(each is other for other in found.path) for each in path.equilibria_on_it) >= 3
    for parameter in (0.07, 0.33, 0.71, 0.96):
        solved = equilibria.solve(path.positions(parameter), path.equilibrium(parameter))
        assert np.linalg.norm(path.pose(parameter)[0] - solved.pose[0]) < 5 * equilibria.path_tolerance


# -- another kind of model -------------------------------------------------------------------------------------------


class Stage(RobotModel):
    """A table whose actuators move it along x and y."""

    kind, noun = "stage", "a stage"
    tension_names: tuple[str, ...] = ()
    tension_kinds: ClassVar[dict[str, str]] = {}
    initial_configuration = np.zeros(2)

    def output_pose(self, output, configuration):
        return Rest(configuration).pose


@dataclass(frozen=True, eq=False)
class Rest:
    positions: np.ndarray

    @property
    def pose(self):
        return np.append(self.positions, 0.0), np.array([1.0, 0.0, 0.0, 0.0])


class StageMap(EquilibriumMap[Rest]):
    def __init__(self, robot):
        super().__init__()
        self.robot, self.home = robot, Rest(np.zeros(2))

    def positions(self, equilibrium):
        return equilibrium.positions

    def start(self, equilibrium=None):
        return equilibrium or self.home

    def solve(self, positions, start):
        return Rest(np.array(positions))

    def differentiate(self, equilibrium):
        raise AssertionError("nobody asks")

    def _slowest_period(self, equilibrium):
        return 0.1


def plan_stage(
    equilibria: StageMap, start: Rest, goal: PoseGoal, options: InverseKinematicsOptions | None = None
) -> InverseKinematicsResult:
    end = Rest(goal.position[:2])
    names = [each.name for each in equilibria.robot.actuators]
    positions = dict(zip(names, end.positions.tolist(), strict=True))
    commands = np.array([start.positions, end.positions])
    return InverseKinematicsResult(positions, end, (start, end), commands, np.zeros(2), {}, ("", np.inf), 1, 1)


def test_another_kind_of_model_registers_its_own_map_and_planner():
    robot = replace(load_robot("biglide"), model=Stage())
    with pytest.raises(TensegrityError, match="for which no equilibrium map is registered"):
        inverse_kinematics(robot, [0.1, 0.2, 0.0])
    equilibrium_map.register(Stage, lambda model, robot, **options: StageMap(robot))
    with pytest.raises(TensegrityError, match="no inverse kinematics is registered for StageMap"):
        inverse_kinematics(robot, [0.1, 0.2, 0.0])
    plan_path.register(StageMap, plan_stage)
    found = inverse_kinematics(robot, [0.1, 0.2, 0.0])
    assert list(found.positions.values()) == [0.1, 0.2]


def test_options_of_structures_are_refused_for_mechanisms_by_name():
    robot = load_robot("biglide")
    for options, words in (({"rigid_bars": True}, "rigid_bars is for structures"), ({"tension_floor": 1.0}, "floor")):
        with pytest.raises(TensegrityError, match=words):
            inverse_kinematics(robot, [0.03, 0.3, 0.0], **options)
