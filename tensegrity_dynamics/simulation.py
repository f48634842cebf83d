"""`Simulation`: common interface for the simulation of all robots, with commands, observations and energies."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Mapping
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import AccuracyWarning, StepTooShortError, TensegrityError, is_finite_number, unknown_name
from .impedance import ImpedanceSetPoint
from .linear_models.linear_model import LinearModel
from .robots.load_robot import naming_lines
from .robots.model import RobotModel
from .robots.robot import Robot, robot_of
from .robots.robot_types import type_of
from .simulation_interface import Energy, Observation, SensorReadings, Simulator, checked_commands

__all__ = ["Energy", "Observation", "Simulation", "pace"]

DAMPING = ("implicit",)
"""Integrators that damp motions which are fast relative to their step; their energy error is checked in every call."""
WATCH_STEPS = 64
"""Steps between checks of the energy error of the other integrators, which is small except where steps are too long."""
TOLERATED_LOSS, TOLERATED_GAIN = 0.05, 0.02
"""Energy that an integrator may remove and add, relative to the largest energy in motion, without a warning."""


class Simulation:
    """Simulation of a robot; `copy.deepcopy` makes an independent copy that continues from the same state.

    Args:
        robot: robot, or model (then without actuators).
        time_step: step [s]; by default a twentieth of the shortest period of the robot, for `implicit` 1 ms (or this
            value, if it is larger). For `adaptive` the interval of servos and results, 1 ms; its own steps are others.
        integrator: "rk4", "rattle" (structures), "implicit" or "adaptive" (mechanisms); by default that of the kind of
            robot, or "implicit" for a mechanism so stiff that explicit steps would be shorter than 0.1 us (see `note`).
        rigid_bars: for structures: whether bars are constraints (default) or springs.
        start: start at rest: an equilibrium, a configuration (nodes (n, 3) [m] of a structure, q (nq,) of a mechanism),
            or "file" for the start of the file of a mechanism; by default the equilibrium with the lengths of the
            robot.
        gravity: (3,) gravity in place of that of the robot [m/s^2].
        air_damping: for structures: drag of every free node [N s/m]; the damping of members is separate.
        options: further options of the simulator of the kind; for structures: model, vertical, rod_mass, stabilisation,
            see `StructureSimulator`.

    Attributes:
        simulator: simulator of the kind of robot, with further data such as the events of rigid cables.

    Raises:
        TensegrityError: an integrator or actuator is unknown, a number is not finite, a free node has no mass, or rigid
            bars are dependent.
    """

    def __init__(
        self,
        robot: Robot | RobotModel,
        time_step: float | None = None,
        integrator: str | None = None,
        *,
        rigid_bars: bool = True,
        start: Any = None,
        gravity: ArrayLike | None = None,
        air_damping: float = 0.0,
        **options: Any,
    ) -> None:
        if time_step is not None and not (is_finite_number(time_step) and time_step > 0.0):
            raise TensegrityError(f"time_step is {time_step!r}, must be a finite time above zero.")
        self.robot = robot_of(robot)
        kind = type_of(self.robot)
        self.integrator = integrator or kind.integrators[0]
        available = signature(kind.simulator).parameters
        for name in options:
            if name not in available:
                raise TensegrityError(unknown_name("option", name, available, f"for robots of kind {kind.name!r}"))
        options |= {"rigid_bars": rigid_bars, "start": start, "gravity": gravity, "air_damping": air_damping}
        self._choice = ""
        with naming_lines(self.robot):
            try:
                self.simulator: Simulator = kind.simulator(self.robot, time_step, self.integrator, **options)
            except StepTooShortError as error:
                if integrator or "implicit" not in kind.integrators:
                    raise
                try:
                    self.simulator = kind.simulator(self.robot, time_step, "implicit", **options)
                except TensegrityError:
                    raise error from None
                self.integrator, self._choice = "implicit", f"integrator 'implicit' was chosen, because {error}"
        self._actuators = tuple(each.name for each in self.robot.actuators)
        self.simulator.actuator_names = self._actuators
        self._watch_steps = 1 if self.integrator in DAMPING else WATCH_STEPS
        self._energy_note = ""
        self._begin_balance()

    def __repr__(self) -> str:
        return f"<Simulation of {self.robot.name} at {self.time:.6g} s: {self.report}>"

    @property
    def note(self) -> str:
        """Notes on the simulation so far, such as inaccurate steps; empty if there are none."""
        return "; ".join(part for part in (self._choice, self._energy_note, self.simulator.note) if part)

    @property
    def details(self) -> dict[str, str]:
        """Diagnostic texts on parts of the robot at the present state by name, for example slipping cables."""
        return self.simulator.details

    @property
    def energy_error(self) -> float:
        """Energy [J] added by the integrator itself (negative: removed) since the start, or since a state was set."""
        return self.energy().balance - self._balance

    def _begin_balance(self) -> None:
        energy = self.simulator.energy()
        self._balance, self._liveliest, self._unwatched = energy.balance, energy.kinetic, 0
        self._heat = energy.damping + energy.friction

    def _watch_energy(self, steps: int) -> None:
        """Warn once if the integrator has removed or added a large part of the motion energy, after some more steps."""
        self._unwatched += steps
        if self._unwatched < self._watch_steps:
            return
        self._unwatched = 0
        energy = self.simulator.energy()
        lost = self._balance - energy.balance
        # dissipated energy also counts as motion energy: a motion can start and end between two checks
        heat = energy.damping + energy.friction - self._heat
        self._liveliest = max(self._liveliest, energy.kinetic + max(heat, 0.0) + lost)
        # errors of rounding and of closed constraints are in proportion to what is stored
        rounding = 1e-12 + 1e-7 * (abs(energy.elastic) + abs(energy.gravity))
        tolerated = TOLERATED_LOSS if lost > 0.0 else TOLERATED_GAIN
        if self._energy_note or abs(lost) <= tolerated * self._liveliest + rounding:
            return
        share = f"{100 * abs(lost) / max(self._liveliest, 1e-300):.0f} % of what was in motion"
        step = f"steps of {1e3 * self.time_step:.3g} ms"
        damps = self.integrator in DAMPING
        what = f"taken {lost:.3g} J out of" if lost > 0.0 else f"added {-lost:.3g} J to"
        why = f"it damps what is fast against {step}" if damps and lost > 0.0 else f"{step} are too long for it"
        self._energy_note = (
            f"at {self.time:.3g} s the {self.integrator} integrator has {what} the motion, {share}: {why}. Where that "
            f"matters take shorter steps{' or an explicit integrator' if damps else ''}."
        )
        warnings.warn(self._energy_note, AccuracyWarning, stacklevel=3)

    @property
    def state(self) -> Any:
        """Present state, of the class of the kind of robot: `StructureState`, `MechanismState`."""
        return self.simulator.state

    @property
    def time(self) -> float:
        """Time since the start [s]."""
        return self.simulator.time

    @property
    def time_step(self) -> float:
        """Step [s]."""
        return self.simulator.time_step

    @property
    def shortest_period(self) -> float:
        """Shortest period of the robot at the start [s]; steps of explicit integrators must be well below it."""
        return self.simulator.shortest_period

    @property
    def without_impedance(self) -> Mapping[str, str]:
        """Reasons why actuators have no impedance mode, by name."""
        return self.simulator.without_impedance

    @property
    def report(self) -> str:
        """Integrator, step and origin of the step, in one line."""
        part = self.time_step / self.shortest_period
        return (
            f"{self.integrator}, steps of {1e6 * self.time_step:.4g} us = {part:.3g} of the shortest period "
            f"({1e3 * self.shortest_period:.4g} ms, from {self.simulator.step_limit})"
        )

    def step(
        self,
        effort: Mapping[str, float] | None = None,
        position: Mapping[str, float] | None = None,
        velocity: Mapping[str, float] | None = None,
        impedance: Mapping[str, ImpedanceSetPoint] | None = None,
    ) -> Any:
        """One step with new commands to some actuators (the others keep theirs); returns the state."""
        return self.advance(1, effort=effort, position=position, velocity=velocity, impedance=impedance)

    def advance(
        self,
        steps: int | None = None,
        effort: Mapping[str, float] | None = None,
        position: Mapping[str, float] | None = None,
        velocity: Mapping[str, float] | None = None,
        impedance: Mapping[str, ImpedanceSetPoint] | None = None,
        *,
        duration: float | None = None,
    ) -> Any:
        """Advance by several steps in one compiled call with constant commands; returns the state.

        Args:
            steps: number of steps. duration: instead of steps, duration [s], rounded to whole steps.
            effort, position, velocity: by actuator name; tendons: N, m (rest length) and m/s.
            impedance: by actuator name; for joints and pulleys of mechanisms.
        """
        count = self._steps(steps, duration)
        given = {
            "position": position, "velocity": velocity, "effort": effort, "impedance": impedance
        }  # fmt: skip
        asked: dict[str, Mapping[str, Any]] = {mode: each for mode, each in given.items() if each is not None}
        seen = set[str]()
        for mode, values in asked.items():  # everything is checked before anything is applied
            checked_commands(mode, values, self._actuators)
            for name in seen & set(values):
                raise TensegrityError(f"actuator {name} is commanded in two modes at once; choose one.")
            seen |= set(values)
        for mode, values in asked.items():
            if values:
                self.command(mode, values)
        self.simulator.advance(count)
        self._watch_energy(count)
        return self.simulator.state

    def step_arrays(
        self, set_points: ArrayLike | None = None, mode: str = "position", steps: int = 1
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Advance with arrays as inputs and outputs, without names: the fast interface for loops in Python.

        Args:
            set_points: (a,) set points of all actuators in the order of `robot.actuators`; None keeps the last ones.
            mode: meaning of the set points: "position", "velocity" or "effort".
            steps: number of steps, zero or more.

        Returns:
            Configuration and velocity: nodes (n, 3) [m and m/s] of a structure, q and v of a mechanism. They can be
            read-only arrays of the simulation: read them before the next step, or copy them.

        Raises:
            TensegrityError: the shape or mode is wrong, a set point is not finite (with its actuator), or the motion
                cannot be simulated.
        """
        count = self._steps(steps, None)
        result = self.simulator.step_arrays(set_points, mode, count)
        self._watch_energy(count)
        return result

    def _steps(self, steps: int | None, duration: float | None) -> int:
        if (steps is None) == (duration is None):
            raise TensegrityError("give either steps or duration.")
        if steps is not None:
            if not isinstance(steps, (int, np.integer)) or steps < 0:
                raise TensegrityError(f"steps is {steps}; give a count, zero or more, or a time as duration=.")
            return int(steps)
        count = duration / self.time_step if is_finite_number(duration) else -1.0  # type: ignore[operator]
        if not (np.isfinite(count) and count >= 0.0):
            raise TensegrityError(f"duration is {duration!r}; give a finite time in s, zero or more, or steps=.")
        return round(count)

    # -- methods of the simulators of all kinds; see `Simulator` --------------------------------------------------

    def command(self, mode: str, values: Mapping[str, Any], *, age: float = 0.0, period: float = 0.0) -> None:
        """Command set points of some actuators, which are kept until the next command.

        Args:
            mode: "position", "velocity", "effort" or "impedance".
            values: by actuator name: a number, a position also as a `MovingPosition`, or an `ImpedanceSetPoint`.
            age: age of the command [s]. period: period of the commands [s], 0 if unknown; see `impedance`.

        Raises:
            TensegrityError: a mode or actuator is unknown, a number is not finite, or an actuator does not have this
                mode.
        """
        if not (0.0 <= age < math.inf and 0.0 <= period < math.inf):
            raise TensegrityError(f"age {age} s and period {period} s of a command must be finite, zero or more.")
        timing = {"age": age, "period": period} if mode in ("position", "impedance") else {}
        self.simulator.command(mode, values, **timing)

    def apply_forces(self, forces: Mapping[str, ArrayLike] | ArrayLike | None) -> None:
        """Apply constant forces in addition to the weight, in world axes; None removes all of them.

        Args:
            forces: for a structure by node name (3,) [N]; for a mechanism by body name (3,) [N] at the origin of the
                body, or (6,) [N and N m], a force there and a moment.

        Raises:
            TensegrityError: a name is unknown, a shape is wrong, or a number is not finite.
        """
        self.simulator.apply_forces(forces)

    def set_gravity(self, gravity: ArrayLike) -> None:
        """Set the gravity (3,) [m/s^2]; the change of energy counts as work of forces.

        Raises:
            TensegrityError: the gravity does not consist of three finite numbers.
        """
        self.simulator.set_gravity(gravity)

    def attach(
        self, name: str, body: str, mass: float, at: ArrayLike = (0.0, 0.0, 0.0), inertia: ArrayLike | None = None
    ) -> None:
        """Attach a payload to a body (structures: to a node), or move the payload of this name to it.

        It has the speed of its carrier at once; its energy counts as work of forces.

        Args:
            name: name of the payload, also of one in the robot file. mass: mass [kg].
            at: (3,) centre of mass in the frame of the body [m].
            inertia: (3, 3) inertia about the centre of mass, in axes of the body [kg m^2]; None for a point mass. Nodes
                support point masses only.

        Raises:
            TensegrityError: the body is unknown, a number is not finite or negative, or the inertia is not physically
                possible.
        """
        self.simulator.attach(name, body, mass, at, inertia)

    def detach(self, name: str) -> None:
        """Remove a payload, of the robot file or attached later.

        Raises:
            TensegrityError: there is none of that name.
        """
        self.simulator.detach(name)

    def set_state(self, configuration: ArrayLike, velocity: ArrayLike | None = None) -> None:
        """Set configuration and velocity (zero by default), projected onto the constraints.

        Raises:
            TensegrityError: a shape is wrong, or a number is not finite.
        """
        self.simulator.set_state(configuration, velocity)
        self._begin_balance()

    def set_motion(self, velocity: ArrayLike) -> None:
        """Set the velocity: (n, 3) [m/s] of a structure, (nv,) of a mechanism; projected onto the constraints.

        Raises:
            TensegrityError: the shape is wrong, or a number is not finite.
        """
        self.simulator.set_motion(velocity)
        self._begin_balance()

    def linearise(self, inputs: str = "", *, reduced: bool = False) -> LinearModel:
        """Linear model of the robot at its present state, at rest or in motion (003, section 3.5).

        Args:
            inputs: for structures "rates" (default), "accelerations" or "lengths" of the tendons; for mechanisms
                "efforts". The internal loops of actuators are not part of the model.
            reduced: for structures: whether the model is reduced to the motions that rigid bars allow. Models of
                mechanisms are always reduced.

        Raises:
            TensegrityError: the inputs are unknown, or the state has no linear model (dependent bars, singular loops).
        """
        return self.simulator.linearise(inputs, reduced=reduced)

    def observe(self) -> Any:
        """`Observation` of lengths, tensions, actuators and the output at the present state."""
        return self.simulator.observe()

    def observe_sensors(self) -> SensorReadings | Observation:
        """Part of `observe` that real sensors measure; faster, for use in every control period."""
        return self.simulator.observe_sensors()

    def energy(self) -> Energy:
        """Energies at the present state [J]."""
        return self.simulator.energy()

    def reset(self) -> None:
        """Return to the start, at rest, with holding actuators, and with the loads and gravity of the file only."""
        self.simulator.reset()
        self._energy_note = ""
        self._begin_balance()

    def hold(self) -> None:
        """Let all actuators hold their present positions."""
        self.simulator.hold()


def pace(simulation: Simulation, steps: int) -> float:
    """Simulated time per wall time in calls of `steps` steps, the best of three; the simulation is reset afterwards."""
    best = np.inf
    simulation.advance(1)  # compiles before the time measurement
    for _ in range(3):
        began = time.perf_counter()
        simulation.advance(steps)
        best = min(best, time.perf_counter() - began)
    simulation.reset()
    return steps * simulation.time_step / max(best, 1e-9)
