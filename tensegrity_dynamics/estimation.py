"""Estimators of any robot: its configuration over time, from what its actuators say."""

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
"""s, times of rehearsed readings; before the last one some are missing."""
_rehearsed: set[tuple[str, str]] = set()  # estimators and robots in this process


def estimator_methods(robot: Robot) -> tuple[str, ...]:
    """Names of the methods by which a robot can be estimated; "rest", equilibria, is always among them."""
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
            f"{robot.name} is a {robot.kind}, known by its shapes at rest; observers are for {able or 'no robots'}."
        )
    options = {"rigid_bars": rigid_bars}
    if observer and not unknown_loads:
        options["unknown_loads"] = False
    estimator: Estimator = estimators[method](robot, **options)
    return estimator


def rehearse_once(estimator: Callable[[], Estimator], method: str, robot: Robot) -> None:
    """Some estimates at rest, unless this process has made them, so that later ones find all compiled functions loaded.

    A compiled function is loaded when it is first called, which may take some tenths of a second, in which no states
    would come. Refusals are passed over; they are reported with the first reading.

    Args:
        estimator: makes one that nobody uses otherwise.
        method: its name, see `estimator_methods`.
    """
    if (method, robot.name) in _rehearsed:
        return
    _rehearsed.add((method, robot.name))
    with suppress(TensegrityError):
        made, seen = estimator(), Simulation(robot).observe()
        for time in REHEARSED:
            made.update(time, seen.positions, seen.efforts)
