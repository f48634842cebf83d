"""A path of equilibria walked in time: the plan of controllers by actuator positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.interpolate import PchipInterpolator

from tensegrity_dynamics.errors import InfeasibleControlError
from tensegrity_dynamics.impedance import braking_rate
from tensegrity_dynamics.numerics.types import Array
from tensegrity_dynamics.robots.motor_limits import MotorUse

from ..controller import Reference, RobotState
from ..inverse_kinematics.equilibrium_map import EquilibriumMap
from ..trajectories.time_scaling import Progress, TimeLaw, Waypoints
from .equilibrium_path import EquilibriumPath

SAMPLES = 201
"""Points of a time law at which rates and tensions are compared with their limits."""
VIBRATION, BRAKED = 2.0, 4.0
"""How much more than at rest a load does that comes at once, and one that comes and goes at once."""
LEAST_MARGIN = 0.05
"""Part of a tension by which it may fall where it rests at its floor already."""


class TimedPath:
    """A path with a time law; it is followed without feedback.

    Args:
        path: of equilibria. law: path parameter over time.

    Attributes:
        duration: s. loads: that were announced, and that it knows; see `controllers.known_loads`.
    """

    def __init__(self, path: EquilibriumPath, law: TimeLaw) -> None:
        self.path, self.law, self.duration = path, law, law.duration
        self.loads: Any = None

    def at(self, progress: Progress) -> tuple[float, float]:
        """Path parameter and its rate [1/s]."""
        parameter, rate = self.law.at(progress.time)
        return parameter, progress.pace * rate

    def reference(self, progress: Progress) -> Reference:
        """Pose and twist of the output."""
        parameter, rate = self.at(progress)
        return Reference(self.path.pose(parameter), rate * self.path.pose_rates(parameter))

    def command(self, progress: Progress, state: RobotState | None = None) -> Array:
        """(a,) m or rad."""
        return self.path.positions(self.at(progress)[0])

    def rates(self, progress: Progress) -> Array:
        """(a,) m/s or rad/s of the actuators."""
        parameter, rate = self.at(progress)
        return np.asarray(rate * self.path.position_rates(parameter))

    def equilibrium(self, time: float) -> Any:
        """The equilibrium at a time [s] of the law, solved anew between those of the path."""
        return self.path.equilibrium(self.law.at(time)[0])


def shortest_duration(path: EquilibriumPath, law: type[Any]) -> tuple[float, int]:
    """Shortest duration [s] of a time law that keeps all rate limits, and the index of the actuator that sets it."""
    return path.largest_rate(*_of_one_second(law))


def motor_duration(path: EquilibriumPath, law: type[Any]) -> MotorUse:
    """The motor that sets the shortest duration [s] of a time law, its `factor`.

    Raises:
        InfeasibleControlError: a motor stalls.
    """
    use = path.motor_use(*_of_one_second(law))
    if not np.isfinite(use.factor):
        raise InfeasibleControlError(f"the path is too much for {use.words}; choose another goal, or a stronger motor.")
    return use


def _of_one_second(law: type[Any]) -> tuple[Array, Array]:
    parameters, rates = np.array([law(1.0).at(u) for u in np.linspace(0.0, 1.0, SAMPLES)]).T
    return parameters, rates


@dataclass(frozen=True)
class TensionMargin:
    """What a motion along a path may do to tensions.

    Attributes:
        stretch: factor by which its duration must grow so that no tension falls below its floor; 1 or less: enough.
        tendon: that needs it. lowest: N that this one may fall to as the motion is. floor: N.
    """

    stretch: float
    tendon: str = ""
    lowest: float = np.inf
    floor: float = 0.0


class Passed:
    """Equilibria that a motion passes, with the actuators' positions in between, for `tension_margin`.

    Args:
        equilibria: map that made them. passed: two or more. parameters: (k,) of them, increasing from 0 to 1.
    """

    def __init__(self, equilibria: EquilibriumMap[Any], passed: Sequence[Any], parameters: Array) -> None:
        self.equilibria, self.equilibria_on_it, self.parameters = equilibria, tuple(passed), parameters
        self.span = 1.0
        self._positions = PchipInterpolator(parameters, [equilibria.positions(each) for each in passed])

    def position_slopes(self, parameters: Array) -> tuple[Array, Array]:
        """(k, a) m or rad per unit of the parameter, and per square of it."""
        return np.asarray(self._positions(parameters, 1)), np.asarray(self._positions(parameters, 2))


def tension_margin(
    path: EquilibriumPath | Passed, law: TimeLaw, period: float, lead: float, timing: float = 0.0
) -> TensionMargin:
    """What a motion does to the tensions of the equilibria that it passes.

    Two things take from them. The masses have to be carried along, which takes a = dT/dp'' (p_s s'' + p_ss s'^2), and
    the vibration that this excites as much again: a load that comes at once does to an undamped oscillator twice what
    it does at rest. And commands may be late. Actuators that stay where they are commanded go on in steps of p' T,
    which the tendons feel before the masses follow, b = |dT/dp| p' T; those that move on by themselves brake at last,
    which begins and ends at once, b = 4 |dT/dp''| p' / (2 lead). The larger one counts. Set points that are made for
    the time at which they act, and move on at their rate, are p'' d^2 / 2 off where that time is d off, which the
    tendons feel before the masses follow, too: a grows by |dT/dp p''| d^2 / 2. With a duration that is f times as long
    it is a / f^2 + b / f.

    Args:
        period: s for which a command is held. lead: s for which actuators move on by themselves (`impedance`).
        timing: d, s by which the time at which a set point acts is uncertain.
    """
    names, floors = list(path.equilibria.tension_floors), np.array(list(path.equilibria.tension_floors.values()))
    if path.span <= 0.0 or not names:
        return TensionMargin(0.0)
    times = np.linspace(0.0, law.duration, SAMPLES)
    parameters, rates = np.array([law.at(float(time)) for time in times]).T
    changes = np.gradient(rates, times, edge_order=2)
    slopes, curvatures = path.position_slopes(parameters)
    accelerations = slopes * changes[:, None] + curvatures * (rates**2)[:, None]
    solved = path.equilibria_on_it
    at = np.interp(parameters, path.parameters, np.arange(len(solved)))
    nearest = np.minimum(np.round(at).astype(int), len(solved) - 1)
    tensions = np.array([path.equilibria.tensions(each) for each in solved])
    inertia, stretch = (np.array(each) for each in zip(*map(path.equilibria.tension_dynamics, solved), strict=True))
    resting = np.array([np.interp(at, np.arange(len(solved)), column) for column in tensions.T]).T
    carried = VIBRATION * np.abs(np.einsum("kca,ka->kc", inertia[nearest], accelerations))
    carried += 0.5 * timing**2 * np.abs(np.einsum("kca,ka->kc", stretch[nearest], accelerations))
    speeds = slopes * rates[:, None]
    braked = BRAKED * braking_rate(lead) * np.abs(np.einsum("kca,ka->kc", inertia[nearest], speeds))
    stepped = np.maximum(period * np.abs(np.einsum("kca,ka->kc", stretch[nearest], speeds)), braked)
    margin = np.maximum(resting - floors, LEAST_MARGIN * np.maximum(resting, floors))
    factor = (stepped + np.sqrt(stepped**2 + 4.0 * margin * carried)) / np.maximum(2.0 * margin, 1e-12)
    k, c = np.unravel_index(int(np.argmax(factor)), factor.shape)
    return TensionMargin(float(factor[k, c]), names[c], float(resting[k, c] - carried[k, c] - stepped[k, c]), floors[c])


def through(path: EquilibriumPath, times: list[float], parameters: Array) -> TimeLaw:
    """A time law through path parameters at times [s]. Raises InfeasibleControlError where an actuator is too slow."""
    law = Waypoints(times, parameters)
    instants = np.linspace(0.0, law.duration, max(SAMPLES, 20 * len(times)))
    parameters, rates = np.array([law.at(float(time)) for time in instants]).T
    used, worst = path.largest_rate(parameters, rates)
    if used > 1.0:
        actuator = path.robot.actuators[worst]
        raise InfeasibleControlError(
            f"the waypoints ask {actuator.name} for {used * actuator.rate:.4g} {actuator.units[1]}, above its rate "
            f"limit of {actuator.rate:.4g} {actuator.units[1]}; stretch all times by a factor of {used:.3g} or more."
        )
    motor = path.motor_use(parameters, rates)
    if motor.factor > 1.0:
        raise InfeasibleControlError(
            f"the waypoints ask too much of {motor.words}; "
            + (
                f"stretch all times by a factor of {motor.factor:.3g} or more."
                if np.isfinite(motor.factor)
                else "go elsewhere, or take a stronger one."
            )
        )
    return law
