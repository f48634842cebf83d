"""Forward kinematics of a structure: equilibrium for given rest lengths (TFK; 001, chapter 5)."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...errors import TensegrityError, unknown_name
from ...robots.robot import Robot
from ..structure import Structure
from .equilibrium import StructureEquilibrium
from .equilibrium_solver import StructureEquilibriumSolver
from .kinetic_damping import relax_kinetic
from .viscous_relaxation import relax

METHODS = ("newton", "relaxation", "kinetic")


def forward_kinematics(
    robot: Robot | Structure,
    rest_lengths: Mapping[str, float] | ArrayLike | None = None,
    forces: Mapping[str, ArrayLike] | ArrayLike | None = None,
    start: ArrayLike | StructureEquilibrium | None = None,
    method: str = "newton",
    *,
    rigid_bars: bool = False,
    tolerance: float | None = None,
    gravity: ArrayLike | None = None,
    **options: Any,
) -> StructureEquilibrium:
    """Forward kinematics: the stable equilibrium near a start, for given rest lengths and forces.

    Args:
        robot: robot or structure.
        rest_lengths: by member or actuator name [m], or all as (m,); the others are those of the structure.
        forces: external forces without weight, by node name (3,) [N], or all as (n, 3).
        start: nodes (n, 3) [m] or a previous equilibrium; by default the nodes of the structure.
        method: "newton" (trust region, always ends at a minimum), "relaxation" (001, Algorithm 1 corrected) or
            "kinetic" (kinetic-energy damping).
        rigid_bars: whether bars keep exactly their rest length ("newton" only).
        tolerance: largest allowed out-of-balance component [N]; by default 1e-13 of the largest stiffness times rest
            length for "newton" (or the rounding error, far from the origin or with large forces) and 1e-10 of it for
            the other methods.
        gravity: (3,) gravity in place of that of the structure [m/s^2].
        options: options of the method: maximum_iterations, and for example delta and epsilon of "relaxation".

    Returns:
        Equilibrium. `stable` is False and `softest` is zero if a motion without stiffness remains.

    Raises:
        NoEquilibriumError: there is no equilibrium (a component without fixed nodes is not in balance), or it was not
            reached.
        TensegrityError: a name or option is unknown, shapes do not match, a number is not finite, nodes coincide, or
            rigid bars are dependent.
    """
    if isinstance(robot, Robot) and robot.kind != Structure.kind:
        raise TensegrityError(
            f"{robot.name} is {robot.model.noun}, which has no rest lengths; "
            "make_estimator(robot).solve({actuator: position}) finds its shape."
        )
    structure = robot.structure if isinstance(robot, Robot) else robot
    if not isinstance(structure, Structure):
        raise TensegrityError(f"{robot!r} is no robot; give one, such as load_robot('my_robot.yaml').")
    output = robot.outputs[0] if isinstance(robot, Robot) and robot.outputs else None
    if method not in METHODS:
        raise TensegrityError(unknown_name("method", method, METHODS))
    if isinstance(robot, Robot) and isinstance(rest_lengths, Mapping):
        driven = {actuator.name: actuator.drives for actuator in robot.actuators}
        rest_lengths = {driven.get(name, name): value for name, value in rest_lengths.items()}
    if method == "newton":
        _check_options(options, ("maximum_iterations",), method)
        solver = StructureEquilibriumSolver(
            structure, rigid_bars=rigid_bars, output=output, tolerance=tolerance, **options
        )
        return solver.solve(rest_lengths, forces, start, gravity=gravity)
    if rigid_bars:
        raise TensegrityError(f"rigid bars need method 'newton'; {method!r} is for elastic bars.")
    return _relaxed(structure, output, rest_lengths, forces, start, method, tolerance, gravity, options)


def _relaxed(
    structure, output, rest_lengths, forces, start, method, tolerance, gravity, options
) -> StructureEquilibrium:
    run = relax if method == "relaxation" else relax_kinetic
    _check_options(options, tuple(signature(run).parameters)[4:], method)
    natural = 1e-10 * float(np.max(structure.stiffness * structure.rest_lengths, initial=1e-300))
    limit = natural if tolerance is None else float(tolerance)
    # balance, stability and softest direction are evaluated in the same way for all methods
    assessor = StructureEquilibriumSolver(structure, output=output, tolerance=limit)
    structure = structure.with_rest_lengths(rest_lengths)
    nodes = assessor.start_nodes(start)
    total = assessor.total_forces(forces, gravity)
    nodes, iterations, _ = run(structure, total, nodes, limit, **options)
    return assessor.assess(nodes, structure.rest_lengths, total, iterations, method)


def _check_options(options: Mapping[str, Any], names: tuple[str, ...], method: str) -> None:
    for name in options:
        if name not in names:
            raise TensegrityError(unknown_name("option", name, names, f"of method {method!r}"))
