"""Control of tensegrity robots: inverse kinematics, trajectories, motion planning, controllers."""

from __future__ import annotations

import tensegrity_dynamics  # noqa: F401  first of all, as it makes nodes end quietly while they import the rest

from .controller import Accepted, Command, Controller, Reference, RobotState, Status
from .inverse_kinematics.ik_result import InverseKinematicsResult
from .inverse_kinematics.pose_goal import PoseGoal
from .inverse_kinematics.solve_ik import inverse_kinematics
from .laws.near_rigid_law import NearRigidLaw
from .motion_planning.near_rigid_tracker import NearRigidTracker
from .motion_planning.output_model import OutputModel
from .motion_planning.output_planner import plan_output
from .motion_planning.trajectory_tracking import LinearFeedbackTracker
from .optimization.control_problem import FreeUnknowns, Inequalities, InputProblem, InputSolution
from .optimization.input_optimizer import InputOptimizer
from .optimization.mechanism_problem import mechanism_problem
from .registry import make_controller
from .trajectories.orientation import OrientationSpline
from .trajectories.quintic import QuinticSpline, minimum_jerk
from .trajectories.splines import HermiteSpline, Trajectory
from .trajectories.trajectory_file import load_trajectory

__all__ = [
    "Accepted",
    "Command",
    "Controller",
    "FreeUnknowns",
    "HermiteSpline",
    "Inequalities",
    "InputOptimizer",
    "InputProblem",
    "InputSolution",
    "InverseKinematicsResult",
    "LinearFeedbackTracker",
    "NearRigidLaw",
    "NearRigidTracker",
    "OrientationSpline",
    "OutputModel",
    "PoseGoal",
    "QuinticSpline",
    "Reference",
    "RobotState",
    "Status",
    "Trajectory",
    "inverse_kinematics",
    "load_trajectory",
    "make_controller",
    "mechanism_problem",
    "minimum_jerk",
    "plan_output",
]
