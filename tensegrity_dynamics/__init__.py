"""Models of tensegrity robots: robot files, structures, equilibria, prestress, mechanisms, simulation, estimation."""

from __future__ import annotations

from .ending import end_at_once, end_with_parent, module_to_run
from .linear_algebra_threads import one_thread_each

if module_to_run().endswith(("_node", ".emulator")):  # before the following imports, which take a second
    end_at_once(0)
    end_with_parent()
    one_thread_each()

from .errors import (
    BusError,
    CommandRefused,
    InfeasibleControlError,
    NoEquilibriumError,
    RobotFileError,
    TensegrityError,
    UnreachableGoalError,
)
from .estimation import make_estimator
from .robot_types import register_built_in_types
from .robots.actuator import Actuator
from .robots.load_robot import load_robot, parse_robot, shipped_robots
from .robots.model import RobotModel
from .robots.output_frame import OutputFrame
from .robots.robot import Robot
from .robots.robot_types import RobotType, register_robot_type
from .rollout import Rollout
from .simulation import Simulation
from .structures.analysis.multiple_equilibria import find_equilibria
from .structures.analysis.prestress import analyze_prestress
from .structures.dynamics.start_up import start_up
from .structures.form_finding.equilibrium import StructureEquilibrium
from .structures.form_finding.equilibrium_solver import StructureEquilibriumSolver
from .structures.form_finding.forward_kinematics import forward_kinematics
from .structures.node_frame import NodeFrame
from .structures.structure import Structure, make_structure

register_built_in_types()

__all__ = [
    "Actuator",
    "BusError",
    "CommandRefused",
    "InfeasibleControlError",
    "NoEquilibriumError",
    "NodeFrame",
    "OutputFrame",
    "Robot",
    "RobotFileError",
    "RobotModel",
    "RobotType",
    "Rollout",
    "Simulation",
    "Structure",
    "StructureEquilibrium",
    "StructureEquilibriumSolver",
    "TensegrityError",
    "UnreachableGoalError",
    "analyze_prestress",
    "find_equilibria",
    "forward_kinematics",
    "load_robot",
    "make_estimator",
    "make_structure",
    "parse_robot",
    "register_robot_type",
    "shipped_robots",
    "start_up",
]
