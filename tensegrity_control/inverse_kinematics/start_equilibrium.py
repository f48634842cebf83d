"""The shape from which a motion starts: solved again, and refused with the reason where nothing can start from it."""

from __future__ import annotations

import numpy as np

from tensegrity_dynamics.errors import NoEquilibriumError, TensegrityError
from tensegrity_dynamics.robots.robot import Robot
from tensegrity_dynamics.structures.form_finding.equilibrium import StructureEquilibrium
from tensegrity_dynamics.structures.form_finding.equilibrium_solver import StructureEquilibriumSolver


def shape_solver(robot: Robot, rigid_bars: bool) -> StructureEquilibriumSolver:
    """The solver that plans of a robot share; shapes from it report the robot's output frame."""
    return StructureEquilibriumSolver(robot.structure, rigid_bars=rigid_bars, output=robot.output)


def start_shape(
    robot: Robot, start: StructureEquilibrium | None, solver: StructureEquilibriumSolver
) -> StructureEquilibrium:
    """A stable equilibrium of the robot with every actuated tendon tight.

    Args:
        robot: with at least one actuator.
        start: a shape of the same structure; None starts from the robot file's nodes and rest lengths.
        solver: of the robot, see `shape_solver`.

    Raises:
        TensegrityError: there is no actuator, no equilibrium, no stability, or an actuated tendon is slack.
    """
    structure = robot.structure
    if not robot.actuators:
        raise TensegrityError(f"{robot.name} has no actuators; name its adjustable tendons under 'actuators'.")
    if start is not None and start.structure.member_names != structure.member_names:
        raise TensegrityError(f"the start shape is not a shape of {robot.name}: it has other members.")
    lengths = structure.rest_lengths if start is None else start.rest_lengths
    try:
        shape = solver.solve(np.array(lengths), start=start)
    except NoEquilibriumError as error:
        raise TensegrityError(f"{robot.name} has no equilibrium to start from: {error}") from error
    if not shape.converged:
        raise TensegrityError(
            f"{robot.name} has no equilibrium to start from: forces stay out of balance by {shape.residual:.3g} N."
        )
    if not shape.stable:
        names = structure.node_names
        worst = names[int(np.argmax(np.abs(shape.softest_direction).max(axis=1)))]
        slack = f" Slack: {', '.join(shape.slack)}." if shape.slack else ""
        raise TensegrityError(
            f"{robot.name} is not stable at its start: the softest stiffness is {shape.softest:.3g} N/m, a motion "
            f"mostly of node {worst}.{slack} Shorten tendons or lengthen bars until every tendon carries tension."
        )
    driven = {structure.member_names[k] for k in robot.actuated_members()}
    slack_driven = [name for name in shape.slack if name in driven]
    if slack_driven:
        raise TensegrityError(
            f"{robot.name}: {', '.join(slack_driven)} slack at the start, so the pose does not answer to them; shorten "
            "them until they carry tension, or take them from the actuators."
        )
    return shape
