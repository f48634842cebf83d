"""`Simulation`: one face to step any robot in time, with commands, observations and energies."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Mapping
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import AccuracyWarning, TensegrityError, is_finite_number, unknown_name
from .impedance import ImpedanceSetPoint
from .linear_models.linear_model import LinearModel
from .robots.load_robot import naming_lines
from .robots.model import RobotModel
from .robots.robot import Robot, robot_of
from .robots.robot_types import type_of
from .simulation_interface import Energy, Observation, SensorReadings, Simulator, checked_commands

__all__ = ["Energy", "Observation", "Simulation", "pace"]

WATCHED = ("implicit",)
"""Integrators that take energy out of what is fast against their step; what they take is watched."""
TOLERATED_LOSS = 0.05
"""Part of the largest kinetic energy that such an integrator may take before it is said."""


class Simulation:
    """Simulation of a robot; `copy.deepcopy` makes an independent copy that continues from the same state.

    Args:
        robot: a robot, or a bare model (then without actuators).
        time_step: s; by default a twentieth of the shortest period of the robot, for `implicit` 1 ms (or more, where
            that is longer).
        integrator: "rk4", "rattle" (structures), "implicit" or "adaptive" (mechanisms); by default the usual one of the
            kind of robot.
        rigid_bars: structures: bars as constraints (default), or as springs.
        start: where to start at rest: an equilibrium, a configuration (nodes (n, 3) m of a structure, q (nq,) of a
            mechanism), or "file" for the stated start of a mechanism; by default the equilibrium of the robot's own
            lengths.
        gravity: (3,) m/s^2 instead of the robot's own.
        air_damping: structures: N s/m on every free node, against its velocity; members have their own damping.
        options: what else the simulator of the kind takes; structures: model, vertical, rod_mass, stabilisation, see
            `StructureSimulator`.

    Attributes:
        simulator: of the robot's kind, with what only that has, such as the events of rigid cables.

    Raises:
        TensegrityError: unknown integrator or actuator, numbers that are not finite, a free node without mass, rigid
            bars that depend on each other.
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
                raise TensegrityError(unknown_name(f"option for robots of kind {kind.name!r}", name, available))
        with naming_lines(self.robot):
            self.simulator: Simulator = kind.simulator(
                self.robot, time_step, self.integrator, rigid_bars=rigid_bars, start=start, gravity=gravity,
                air_damping=air_damping, **options,
            )  # fmt: skip
        self._actuators = tuple(each.name for each in self.robot.actuators)
        self.simulator.actuator_names = self._actuators
        self._is_watched = self.integrator in WATCHED
        self._energy_note = ""
        self._begin_balance()

    def __repr__(self) -> str:
        return f"<Simulation of {self.robot.name} at {self.time:.6g} s: {self.report}>"

    @property
    def note(self) -> str:
        """Remarks on the run so far, such as inaccurate steps; empty without any."""
        return "; ".join(part for part in (self._energy_note, self.simulator.note) if part)

    @property
    def details(self) -> dict[str, str]:
        """What diagnostics say of parts of the robot at the present state, by name, such as cables that slip."""
        return self.simulator.details

    @property
    def energy_error(self) -> float:
        """Energy [J] added by the integrator itself (negative: removed) since the start, or since a state was set."""
        return self.energy().balance - self._balance

    def _begin_balance(self) -> None:
        energy = self.simulator.energy()
        self._balance, self._liveliest = energy.balance, energy.kinetic
        self._heat = energy.damping + energy.friction

    def _watch_energy(self) -> None:
        """Say once where an integrator that damps has taken a good part of the motion."""
        energy = self.simulator.energy()
        lost = self._balance - energy.balance
        # what has become heat since was in motion, too: between two looks a motion may come and go
        heat = energy.damping + energy.friction - self._heat
        self._liveliest = max(self._liveliest, energy.kinetic + max(heat, 0.0) + max(lost, 0.0))
        rounding = 1e-9 * (abs(energy.elastic) + abs(energy.gravity))
        if self._energy_note or lost <= TOLERATED_LOSS * self._liveliest + rounding:
            return
        self._energy_note = (
            f"at {self.time:.3g} s the {self.integrator} integrator has taken {lost:.3g} J out of the motion, "
            f"{100 * lost / max(self._liveliest, 1e-300):.0f} % of what was in motion: it damps what is fast "
            f"against steps of {1e3 * self.time_step:.3g} ms. Where that matters take shorter steps or an explicit "
            "integrator."
        )
        warnings.warn(self._energy_note, AccuracyWarning, stacklevel=3)

    @property
    def state(self) -> Any:
        """The present state, of the kind's own class: `StructureState`, `MechanismState`."""
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
        """Why an actuator takes no impedance, by name."""
        return self.simulator.without_impedance

    @property
    def report(self) -> str:
        """Integrator, step and what it follows from, in one line."""
        part = self.time_step / self.shortest_period
        return (
            f"{self.integrator}, steps of {1e6 * self.time_step:.4g} us = {part:.3g} of the shortest period "
            f"({1e3 * self.shortest_period:.4g} ms)"
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
        """Many steps in one compiled call, the commands held throughout; returns the state.

        Args:
            steps: how many; or duration: s, rounded to whole steps.
            effort, position, velocity: by actuator name; tendons: N, m (rest length) and m/s.
            impedance: by actuator name; for joints and pulleys of mechanisms.
        """
        count = self._steps(steps, duration)
        given = {
            "position": position, "velocity": velocity, "effort": effort, "impedance": impedance
        }  # fmt: skip
        asked: dict[str, Mapping[str, Any]] = {mode: each for mode, each in given.items() if each is not None}
        seen = set[str]()
        for mode, values in asked.items():  # all of it is looked at before any of it is applied
            checked_commands(mode, values, self._actuators)
            for name in seen & set(values):
                raise TensegrityError(f"actuator {name} is commanded in two modes at once; choose one.")
            seen |= set(values)
        for mode, values in asked.items():
            if values:
                self.command(mode, values)
        self.simulator.advance(count)
        if self._is_watched:
            self._watch_energy()
        return self.simulator.state

    def step_arrays(
        self, set_points: ArrayLike | None = None, mode: str = "position", steps: int = 1
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Steps with arrays in and out, without names: the fast interface for loops in Python.

        Args:
            set_points: (a,) of all actuators in the order of `robot.actuators`, held from now on; as before without.
            mode: what they mean: "position", "velocity" or "effort".
            steps: how many in this call, zero or more.

        Returns:
            Configuration and velocity: nodes (n, 3) m and m/s of a structure, q and v of a mechanism. They may be the
            simulation's own arrays, read-only: read them before the next step, or copy them.

        Raises:
            TensegrityError: wrong shape or mode, a set point that is not finite (by its actuator), or a motion that
                cannot be followed.
        """
        result = self.simulator.step_arrays(set_points, mode, self._steps(steps, None))
        if self._is_watched:
            self._watch_energy()
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

    # -- what simulators of every kind can do; see `Simulator` ----------------------------------------------------

    def command(self, mode: str, values: Mapping[str, Any], *, age: float = 0.0, period: float = 0.0) -> None:
        """Set points of some actuators from now on.

        Args:
            mode: "position", "velocity", "effort" or "impedance". values: by actuator name: a number, a
                position also as a `MovingPosition`, or an `ImpedanceSetPoint`.
            age: s since the command was right. period: s between two commands, 0 where unknown; see `impedance`.

        Raises:
            TensegrityError: unknown mode or actuator, a number that is not finite, or an actuator without this mode.
        """
        if not (0.0 <= age < math.inf and 0.0 <= period < math.inf):
            raise TensegrityError(f"age {age} s and period {period} s of a command must be finite, zero or more.")
        timing = {"age": age, "period": period} if mode in ("position", "impedance") else {}
        self.simulator.command(mode, values, **timing)

    def apply_forces(self, forces: Mapping[str, ArrayLike] | ArrayLike | None) -> None:
        """Constant forces from now on, in addition to the weight, in world axes; None removes all of them.

        Args:
            forces: of a structure by node name (3,) N; of a mechanism by body name (3,) N at the body's origin, or
                (6,) N and N m, a force there and a moment.

        Raises:
            TensegrityError: unknown name, wrong shape, or numbers that are not finite.
        """
        self.simulator.apply_forces(forces)

    def set_gravity(self, gravity: ArrayLike) -> None:
        """Set the gravity (3,) m/s^2 from now on; the change of energy counts as work of forces.

        Raises:
            TensegrityError: not three finite numbers.
        """
        self.simulator.set_gravity(gravity)

    def attach(
        self, name: str, body: str, mass: float, at: ArrayLike = (0.0, 0.0, 0.0), inertia: ArrayLike | None = None
    ) -> None:
        """Attach a payload to a body (structures: to a node), or move the one of that name.

        It has the speed of what carries it from the first instant; the energy that it brings counts as work of forces.

        Args:
            name: of the payload, also one of the robot file. mass: kg. at: (3,) m in the frame of the body.
            inertia: (3, 3) kg m^2 about its centre of mass, in axes of the body; None for a point. A node takes points.

        Raises:
            TensegrityError: unknown body, numbers that are not finite or below zero, or an inertia that no body has.
        """
        self.simulator.attach(name, body, mass, at, inertia)

    def detach(self, name: str) -> None:
        """Remove a payload, of the robot file or attached later.

        Raises:
            TensegrityError: there is none of that name.
        """
        self.simulator.detach(name)

    def set_state(self, configuration: ArrayLike, velocity: ArrayLike | None = None) -> None:
        """Put the robot somewhere else, at rest without a velocity; what its constraints forbid is taken out.

        Raises:
            TensegrityError: wrong shape, or numbers that are not finite.
        """
        self.simulator.set_state(configuration, velocity)
        self._begin_balance()

    def set_motion(self, velocity: ArrayLike) -> None:
        """Give the robot a velocity: (n, 3) m/s of a structure, (nv,) of a mechanism; without what constraints forbid.

        Raises:
            TensegrityError: wrong shape, or numbers that are not finite.
        """
        self.simulator.set_motion(velocity)
        self._begin_balance()

    def linearise(self, inputs: str = "", *, reduced: bool = False) -> LinearModel:
        """Linear model of the robot at its present state, at rest or in motion (003, section 3.5).

        Args:
            inputs: of structures "rates" (default), "accelerations" or "lengths": what drives the tendons; of
                mechanisms "efforts". A command that the actuators follow by themselves is no part of the model.
            reduced: of structures: in the motions that rigid bars allow. Those of mechanisms always are reduced.

        Raises:
            TensegrityError: unknown inputs, or a state without a linear model (dependent bars, singular loops).
        """
        return self.simulator.linearise(inputs, reduced=reduced)

    def observe(self) -> Any:
        """`Observation` of lengths, tensions, actuators and the output at the present state."""
        return self.simulator.observe()

    def observe_sensors(self) -> SensorReadings | Observation:
        """The part of `observe` that real sensors measure; faster, for use in every control period."""
        return self.simulator.observe_sensors()

    def energy(self) -> Energy:
        """Energies at the present state [J]."""
        return self.simulator.energy()

    def reset(self) -> None:
        """Return to the start, at rest, with holding actuators and with the loads and gravity of the file alone."""
        self.simulator.reset()
        self._energy_note = ""
        self._begin_balance()

    def hold(self) -> None:
        """All actuators hold where they are."""
        self.simulator.hold()


def pace(simulation: Simulation, steps: int) -> float:
    """Simulated seconds per second of wall time in calls of `steps` steps, the best of three; reset afterwards."""
    best = np.inf
    simulation.advance(1)  # compiled before the clock runs
    for _ in range(3):
        began = time.perf_counter()
        simulation.advance(steps)
        best = min(best, time.perf_counter() - began)
    simulation.reset()
    return steps * simulation.time_step / max(best, 1e-9)
