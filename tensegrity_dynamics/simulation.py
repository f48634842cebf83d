"""`Simulation`: one face to step any robot in time, with commands, observations and energies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import TensegrityError, unknown_name
from .robots.output_frame import Pose
from .robots.robot import Robot
from .structures.structure import Structure


@dataclass(frozen=True, eq=False)
class SimulationState:
    """Where a structure is and how it moves.

    Attributes:
        time: s. nodes, velocities: (n, 3) m and m/s. rest_lengths: (m,) m.
    """

    time: float
    nodes: NDArray[np.float64]
    velocities: NDArray[np.float64]
    rest_lengths: NDArray[np.float64]


@dataclass(frozen=True)
class Energy:
    """Energies [J]; `spools`, `forces` (applied ones, without weight) and `damping` are what was put in and taken out
    since the start, so that total - spools - forces + damping stays the same, but for what an integrator itself takes
    out (the implicit one does)."""

    kinetic: float
    elastic: float
    gravity: float
    spools: float
    damping: float
    forces: float = 0.0

    @property
    def total(self) -> float:
        return self.kinetic + self.elastic + self.gravity


@dataclass(frozen=True, eq=False)
class Observation:
    """What sensors of an ideal robot would read.

    Attributes:
        time: s. lengths, rest_lengths, tensions: by member name, m and N (bars: negative in compression).
        positions, rates, efforts: by actuator: rest length [m], its rate [m/s], tension [N].
        pose: of the output frame, or None. twist: (6,) linear m/s and angular rad/s of it, or None.
    """

    time: float
    lengths: dict[str, float]
    rest_lengths: dict[str, float]
    tensions: dict[str, float]
    positions: dict[str, float]
    rates: dict[str, float]
    efforts: dict[str, float]
    pose: Pose | None
    twist: NDArray[np.float64] | None


class Model(Protocol):
    """What `Simulation` steps: the structure's or the mechanism's model."""

    time_step: float
    shortest_period: float

    @property
    def state(self) -> Any: ...

    def command(self, mode: str, values: Mapping[str, float]) -> None: ...

    def advance(self, steps: int) -> None: ...

    def observe(self) -> Any: ...

    def energy(self) -> Any: ...

    def reset(self) -> None: ...

    def hold(self) -> None: ...


class Simulation:
    """A robot in time.

    Args:
        robot: a robot, or a bare structure (then without actuators).
        time_step: s; by default the model's: a twentieth of its shortest period.
        integrator: "rk4", "rattle" (structures), "implicit" or "adaptive" (mechanisms).
        rigid_bars: structures: bars as constraints (default), or as springs.
        start: where to start at rest: a shape, nodes (n, 3) m of a structure, a position (nq,) of a mechanism or "file"
            for its stated start; by default the equilibrium of the robot's own lengths.
        gravity: (3,) m/s^2 instead of the robot's own.
        air_damping: structures: N s/m on every free node, against its velocity; members have their own damping.

    Raises:
        TensegrityError: unknown integrator or actuator, numbers that are not finite, a free node without mass, rigid
            bars that depend on each other.
    """

    def __init__(
        self,
        robot: Robot | Structure,
        time_step: float | None = None,
        integrator: str = "rk4",
        *,
        rigid_bars: bool = True,
        start: Any = None,
        gravity: ArrayLike | None = None,
        air_damping: float = 0.0,
    ) -> None:
        if time_step is not None and not (np.isfinite(time_step) and time_step > 0.0):
            raise TensegrityError(f"time_step is {time_step} s, must be a finite time above zero.")
        self.robot, self.integrator = robot, integrator
        self.model: Model
        if isinstance(robot, Structure) or isinstance(robot.model, Structure):
            from .structures.dynamics.structure_simulator import StructureSimulator

            self.model = StructureSimulator(
                robot, time_step, integrator, rigid_bars=rigid_bars, start=start, gravity=gravity,
                air_damping=air_damping,
            )  # fmt: skip
        else:
            from .mechanisms.simulation.mechanism_simulator import MechanismSimulator

            self.model = MechanismSimulator(robot, time_step, integrator, start=start, gravity=gravity)

    @property
    def state(self) -> Any:
        """`SimulationState` of a structure, `MechanismState` of a mechanism."""
        return self.model.state

    @property
    def time_step(self) -> float:
        """Step [s]."""
        return self.model.time_step

    @property
    def shortest_period(self) -> float:
        """Shortest period of the structure at the start [s]; steps of explicit integrators must be well below it."""
        return self.model.shortest_period

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
    ) -> Any:
        """One step with new commands to some actuators (the others keep theirs); returns the state."""
        return self.advance(1, effort=effort, position=position, velocity=velocity)

    def advance(
        self,
        steps: int | None = None,
        effort: Mapping[str, float] | None = None,
        position: Mapping[str, float] | None = None,
        velocity: Mapping[str, float] | None = None,
        *,
        duration: float | None = None,
    ) -> Any:
        """Many steps in one compiled call, the commands held throughout; returns the state.

        Args:
            steps: how many; or duration: s, rounded to whole steps.
            effort, position, velocity: by actuator name; tendons: N, m (rest length) and m/s.
        """
        count = self._steps(steps, duration)
        asked = {"position": position or {}, "velocity": velocity or {}, "effort": effort or {}}
        known, seen = tuple(each.name for each in getattr(self.robot, "actuators", ())), set[str]()
        for values in asked.values():  # all of it is looked at before any of it is applied
            checked_commands(values, known)
            for name in seen & set(values):
                raise TensegrityError(f"actuator {name} is commanded in two modes at once; choose one.")
            seen |= set(values)
        for mode, values in asked.items():
            if values:
                self.model.command(mode, values)
        self.model.advance(count)
        return self.model.state

    def _steps(self, steps: int | None, duration: float | None) -> int:
        if (steps is None) == (duration is None):
            raise TensegrityError("give either steps or duration.")
        number = float(duration / self.time_step if steps is None else steps)  # type: ignore[operator]
        if not (np.isfinite(number) and number >= 0.0) or (steps is not None and number != int(number)):
            given = f"duration is {duration} s" if steps is None else f"steps is {steps}"
            raise TensegrityError(f"{given}; give a whole number of steps or a finite time, zero or more.")
        return round(number)

    def observe(self) -> Any:
        """Lengths, tensions and the output's pose at the present state."""
        return self.model.observe()

    def energy(self) -> Any:
        """Energies at the present state [J]."""
        return self.model.energy()

    def reset(self) -> None:
        """Back to the start."""
        self.model.reset()

    def hold(self) -> None:
        """All actuators hold where they are."""
        self.model.hold()


def checked_commands(values: Mapping[str, float], known: tuple[str, ...]) -> dict[int, float]:
    """Commands by actuator index. Raises TensegrityError for unknown names and numbers that are not finite."""
    result = {}
    for name, value in values.items():
        if name not in known:
            raise TensegrityError(unknown_name("actuator", name, known))
        if not np.isfinite(value):
            raise TensegrityError(f"command to actuator {name} is {value}; give a finite number.")
        result[known.index(name)] = float(value)
    return result
