"""Estimators for all robots: configuration over time from actuator readings."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from .errors import TensegrityError
from .estimation_interface import Estimate, Estimator
from .robots.robot import Robot
from .robots.robot_types import robot_type, robot_types, type_of
from .simulation import Simulation

__all__ = ["Estimate", "Estimator", "estimator_methods", "make_estimator", "rehearse_once"]

REHEARSED = (0.0, 0.01, 0.02, 0.03, 0.2)
"""Times of rehearsed readings [s]; before the last one some readings are missing."""
_rehearsed: set[tuple[str, str]] = set()  # rehearsed estimators and robots in this process


def estimator_methods(robot: Robot) -> tuple[str, ...]:
    """Names of the estimation methods of a robot; "rest" (equilibria) is always available."""
    return tuple(type_of(robot).estimators)


def make_estimator(
    robot: Robot, *, rigid_bars: bool = True, observer: bool = False, unknown_loads: bool = True
) -> Estimator:
    """Estimator of a robot: of its equilibrium, or an observer of its motion.

    Args:
        rigid_bars: structures only: rigid bars, as in simulation.
        unknown_loads: observers only: also estimate a wrench at the output and the cables' stiffness. They follow
            from the actuators' efforts; gear friction is indistinguishable from a load.

    Raises:
        TensegrityError: an observer is requested, and this kind of robot has none.
        NoEquilibriumError: the robot has no equilibrium with its actuators at their start.
    """
    estimators = type_of(robot).estimators
    method = "observer" if observer else "rest"
    if method not in estimators:
        able = " and ".join(f"{name}s" for name in robot_types() if method in robot_type(name).estimators)
        raise TensegrityError(
            f"{robot.name} is a {robot.kind}, whose state is estimated from equilibria; observers are for "
            f"{able or 'no robots'}."
        )
    options = {"rigid_bars": rigid_bars}
    if observer and not unknown_loads:
        options["unknown_loads"] = False
    estimator: Estimator = estimators[method](robot, **options)
    return estimator


def rehearse_once(estimator: Callable[[], Estimator], method: str, robot: Robot) -> None:
    """Make some estimates at rest once per process, so that all compiled functions are loaded for later estimates.

    A compiled function is loaded at its first call, which can take some tenths of a second without states. Errors are
    ignored here; they are reported with the first reading.

    Args:
        estimator: function that creates an estimator used only here.
        method: its name, see `estimator_methods`.
    """
    if (method, robot.name) in _rehearsed:
        return
    _rehearsed.add((method, robot.name))
    with suppress(TensegrityError):
        made, seen = estimator(), Simulation(robot).observe()
        for time in REHEARSED:
            made.update(time, seen.positions, seen.efforts)
