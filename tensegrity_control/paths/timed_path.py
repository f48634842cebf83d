"""A path of equilibria with a time law: the plan of controllers by actuator positions."""

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
"""Number of points of a time law at which rates and tensions are compared with their limits."""
VIBRATION, BRAKED = 2.0, 4.0
"""Dynamic load factors: of a load that is applied suddenly, and of a load that is applied and removed suddenly."""
LEAST_MARGIN = 0.05
"""Fraction of a tension by which it may fall if it is at its floor at rest."""
SERVO_STEP = 0.4
"""Effect of a slow motion of a servo, in motions of one period at once: in each cycle it moves faster than its set
point and then waits (`tensegrity_driver.spools.position_loop`), by which it is up to 0.2 motions of a period ahead. The
vibration that this excites doubles the effect."""


class TimedPath:
    """A path with a time law; it is followed without feedback.

    Args:
        path: path of equilibria.
        law: path parameter over time.

    Attributes:
        duration: s.
        loads: announced loads that the path contains; see `controllers.known_loads`.
    """

    def __init__(self, path: EquilibriumPath, law: TimeLaw) -> None:
        self.path, self.law, self.duration = path, law, law.duration
        self.loads: Any = None

    def at(self, progress: Progress) -> tuple[float, float]:
        """Path parameter and its rate [1/s]."""
        parameter, rate = self.law.at(progress.time)
        return parameter, progress.pace * rate

    def reference(self, progress: Progress) -> Reference:
        """Pose and twist of the output at the progress of a clock."""
        parameter, rate = self.at(progress)
        return Reference(self.path.pose(parameter), rate * self.path.pose_rates(parameter))

    def command(self, progress: Progress, state: RobotState | None = None) -> Array:
        """(a,) m or rad, positions of the actuators."""
        return self.path.positions(self.at(progress)[0])

    def rates(self, progress: Progress) -> Array:
        """(a,) m/s or rad/s of the actuators."""
        parameter, rate = self.at(progress)
        return np.asarray(rate * self.path.position_rates(parameter))

    def equilibrium(self, time: float) -> Any:
        """Equilibrium at a time [s] of the law; solved if it is between those of the path."""
        return self.path.equilibrium(self.law.at(time)[0])


def shortest_duration(path: EquilibriumPath, law: type[Any]) -> tuple[float, int]:
    """Shortest duration [s] of a time law that keeps all rate limits, and the index of the limiting actuator."""
    return path.largest_rate(*_of_one_second(law))


def motor_duration(path: EquilibriumPath, law: type[Any]) -> MotorUse:
    """The motor that limits the duration of a time law; its `factor` is the shortest duration [s].

    Raises:
        InfeasibleControlError: a motor stalls.
    """
    use = path.motor_use(*_of_one_second(law))
    if not np.isfinite(use.factor):
        raise InfeasibleControlError(f"the path overloads {use.words}; choose another goal, or a stronger motor.")
    return use


def _of_one_second(law: type[Any]) -> tuple[Array, Array]:
    parameters, rates = np.array([law(1.0).at(u) for u in np.linspace(0.0, 1.0, SAMPLES)]).T
    return parameters, rates


@dataclass(frozen=True)
class TensionMargin:
    """Effect of a motion along a path on the tensions.

    Attributes:
        stretch: factor by which the duration must increase so that no tension falls below its floor; 1 or less: the
            duration is sufficient.
        tendon: tendon that determines the factor.
        lowest: N, bound of its lowest tension with the present duration.
        floor: N, its tension floor.
    """

    stretch: float
    tendon: str = ""
    lowest: float = np.inf
    floor: float = 0.0


class Passed:
    """Equilibria along a motion, with interpolated actuator positions, for `tension_margin`.

    Args:
        equilibria: map that solved them.
        passed: two or more equilibria.
        parameters: (k,) path parameters of them, increasing from 0 to 1.
    """

    def __init__(self, equilibria: EquilibriumMap[Any], passed: Sequence[Any], parameters: Array) -> None:
        self.equilibria, self.equilibria_on_it, self.parameters = equilibria, tuple(passed), parameters
        self.span = 1.0
        self._positions = PchipInterpolator(parameters, [equilibria.positions(each) for each in passed])

    def position_slopes(self, parameters: Array) -> tuple[Array, Array]:
        """(k, a) first and second derivative of the actuator positions [m or rad] by the path parameter."""
        return np.asarray(self._positions(parameters, 1)), np.asarray(self._positions(parameters, 2))


def tension_margin(
    path: EquilibriumPath | Passed, law: TimeLaw, period: float, lead: float, timing: float = 0.0
) -> TensionMargin:
    """Bound of the effect of a motion on the tensions of the equilibria along it.

    Two effects reduce tensions: inertia and late commands.

    Inertia of the moving masses changes tensions by dT/dp'' (p_s s'' + p_ss s'^2). The vibration that this excites
    doubles the change, since a sudden load on an undamped oscillator has twice its static effect; the sum is a.

    A set point moves on at its rate until the next command. At the end of a period T it is off by p'' T^2 / 2, and by
    p'' (T + d)^2 / 2 if it acts at a time that differs by d from the one it was computed for. Tendons feel this before
    the masses follow: a increases by |dT/dp p''| (T + d)^2 / 2.

    Without further commands a set point brakes, which begins and ends suddenly, b = 4 |dT/dp''| p' / (2 lead). Servos
    do not move evenly in slow motions (`SERVO_STEP`), b = 0.4 |dT/dp| p' T; the larger b counts. With a duration f
    times as long the effect is a / f^2 + b / f.

    Args:
        period: T [s] between two commands; 0 if actuators follow the law between them, too.
        lead: s for which actuators move on by themselves (`impedance`).
        timing: d [s], uncertainty of the time at which a set point acts.
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
    carried += 0.5 * (period + timing) ** 2 * np.abs(np.einsum("kca,ka->kc", stretch[nearest], accelerations))
    speeds = slopes * rates[:, None]
    braked = BRAKED * braking_rate(lead) * np.abs(np.einsum("kca,ka->kc", inertia[nearest], speeds))
    step = SERVO_STEP * period if path.equilibria.robot.driven_by_servos else 0.0
    stepped = np.maximum(step * np.abs(np.einsum("kca,ka->kc", stretch[nearest], speeds)), braked)
    margin = np.maximum(resting - floors, LEAST_MARGIN * np.maximum(resting, floors))
    factor = (stepped + np.sqrt(stepped**2 + 4.0 * margin * carried)) / np.maximum(2.0 * margin, 1e-12)
    k, c = np.unravel_index(int(np.argmax(factor)), factor.shape)
    return TensionMargin(float(factor[k, c]), names[c], float(resting[k, c] - carried[k, c] - stepped[k, c]), floors[c])


def through(path: EquilibriumPath, times: list[float], parameters: Array) -> TimeLaw:
    """Time law through path parameters at times [s].

    Raises:
        InfeasibleControlError: an actuator or its motor is too slow.
    """
    law = Waypoints(times, parameters)
    instants = np.linspace(0.0, law.duration, max(SAMPLES, 20 * len(times)))
    parameters, rates = np.array([law.at(float(time)) for time in instants]).T
    used, worst = path.largest_rate(parameters, rates)
    if used > 1.0:
        actuator = path.robot.actuators[worst]
        raise InfeasibleControlError(
            f"the waypoints move {actuator.name} at {used * actuator.rate:.4g} {actuator.units[1]}, above its rate "
            f"limit of {actuator.rate:.4g} {actuator.units[1]}; stretch all times by a factor of {used:.3g} or more."
        )
    motor = path.motor_use(parameters, rates)
    if motor.factor > 1.0:
        raise InfeasibleControlError(
            f"the waypoints overload {motor.words}; "
            + (
                f"stretch all times by a factor of {motor.factor:.3g} or more."
                if np.isfinite(motor.factor)
                else "choose other waypoints, or a stronger motor."
            )
        )
    return law
