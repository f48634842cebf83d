"""Closed loop with artificial message delays: simulation, gate, estimator and controller, without a clock.

The simulation is read in every control period. A reading reaches the estimator some periods later, and the answer of
the controller reaches the gate after some further periods; during a freeze no message is processed. The delays follow
from a seed, so that the result is the same on every computer. Messages keep their order; of messages that arrive
together only the newest is used, as in the nodes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tensegrity_control.command_latency import CommandLatency
from tensegrity_control.controller import Command, Controller, RobotState
from tensegrity_control.controllers.goal_controller import wait_for_robot
from tensegrity_dynamics import Robot, Simulation
from tensegrity_dynamics.command_gate import CommandGate, Mode
from tensegrity_dynamics.errors import TensegrityError, unknown_name
from tensegrity_dynamics.estimation import make_estimator
from tensegrity_dynamics.late_messages import LateMessages
from tensegrity_dynamics.numerics.types import Array

LATENCIES = ("measured", "nominal", "unknown")
REPORTED = 16
"""Number of last commands for which a reading reports the time at which they took effect."""
LONGEST_STEP = 1e-3
"""Longest time step of the simulation [s]."""


@dataclass(frozen=True)
class Delays:
    """Delays of messages, in control periods.

    Args:
        states, commands: smallest and largest delay; a new one is drawn for every message.
        busy: smallest and largest number of periods between two answers of the controller.
        freezes: (begin, length) of intervals in which the computer of the controller is stopped [s]; answers that it
            had computed but not sent before are sent when it continues.
        latency: knowledge of the controller about the delay: "measured" (from reports of the plant), "nominal" (the
            mean of both), or "unknown".
        seed: seed of the random delays.

    Raises:
        TensegrityError: a number is below zero, or the smallest value exceeds the largest.
    """

    states: tuple[int, int] = (0, 0)
    commands: tuple[int, int] = (0, 0)
    busy: tuple[int, int] = (1, 1)
    freezes: tuple[tuple[float, float], ...] = ()
    latency: str = "measured"
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("states", "commands", "busy"):
            least, most = getattr(self, name)
            if not int(name == "busy") <= least <= most:
                raise TensegrityError(
                    f"delays of {name} are {least} to {most} periods; give 0 (busy: 1) <= least <= most."
                )
        if self.latency not in LATENCIES:
            raise TensegrityError(unknown_name("knowledge of the latency", self.latency, LATENCIES))
        for begin, length in self.freezes:
            if not (np.isfinite(begin) and np.isfinite(length) and begin >= 0.0 and length >= 0.0):
                raise TensegrityError(f"a freeze of {length} s at {begin} s; both must be zero or above.")

    def frozen(self, time: float) -> bool:
        """Whether the computer of the controller is stopped at a time [s]."""
        return any(begin <= time < begin + length for begin, length in self.freezes)


@dataclass
class DelayedLoop:
    """Delayed loop, see the module docstring; `run` continues from the present time.

    Args:
        robot: model of controller and observer. control: controller of the robot. period: control period [s].
        delays: see `Delays`.
        observer: whether states are estimated by the observer; otherwise they are those of the simulation.
        plant: simulated robot, if it differs from `robot`.

    Attributes:
        time: present time [s]. stamp: stamp of the last state received by the controller [s].
        refused: number of refusals of the gate by message. held: number of periods in which the actuators were held.
        errors: distance of the controlled axes from the reference after every period [m].
        tensions: (c,) tensions after every period [N]. cables: (c,) names of the cables.
    """

    robot: Robot
    control: Controller
    period: float
    delays: Delays = field(default_factory=Delays)
    observer: bool = False
    plant: Robot | None = None

    def __post_init__(self) -> None:
        plant = self.plant or self.robot
        natural = Simulation(plant)
        self.steps = max(1, int(np.ceil(self.period / min(natural.time_step, LONGEST_STEP) - 1e-9)))
        self.simulation = Simulation(plant, self.period / self.steps)
        self.gate = CommandGate(plant.actuators, without_impedance=self.simulation.without_impedance)
        self._estimator = make_estimator(self.robot, observer=True) if self.observer else None
        self.set_delays(self.delays)
        self._began: deque[tuple[float, float]] = deque(maxlen=REPORTED)  # stamps of commands, times of their effect
        self._tick, self._free, self._holding = 0, 0, True
        self.refused: dict[str, int] = {}
        self.held = 0
        self.errors: list[float] = []
        self.tensions: list[Array] = []
        self._floors = self.robot.model.tension_floors(self.robot.actuators)
        self.cables = self.robot.model.tension_names
        self._reset()

    @property
    def time(self) -> float:
        """Present time [s]."""
        return self._tick * self.period

    def set_delays(self, delays: Delays) -> None:
        """Change the delays; messages in transit are lost."""
        self.delays = delays
        self._states: LateMessages[_Reading] = LateMessages(*delays.states, delays.seed)
        self._commands: LateMessages[tuple[float, Command]] = LateMessages(*delays.commands, delays.seed + 1)
        self._random = np.random.default_rng(delays.seed + 2)
        mean = 0.5 * sum((*delays.states, *delays.commands)) * self.period
        self._latency = CommandLatency(mean if delays.latency == "nominal" else 0.0)

    def forget(self) -> None:
        """Delete the recorded errors and tensions."""
        self.errors.clear()
        self.tensions.clear()

    def least(self) -> float:
        """Smallest recorded tension, relative to its floor; in N without a floor, infinite without cables."""
        if not self.cables:
            return float("inf")
        floors = np.array([self._floors.get(name, 0.0) for name in self.cables])
        return float(np.min(np.array(self.tensions) / np.where(floors > 0.0, floors, 1.0)))

    def switch(self, control: Controller) -> None:
        """Let another controller take over from the last received state. Raises TensegrityError: it refuses the state,
        and the present one continues."""
        wait_for_robot(control)
        control.reset(self.stamp, self._seen)
        before, self.control = self.control, control
        if before.status(self.stamp).phase == "stopped":
            control.stop(self.stamp)  # type: ignore[attr-defined]

    def run(self, duration: float, each: Callable[[float], None] | None = None) -> None:
        """Continue for `duration` s; `each` is called with the time at the start of every period.

        Raises:
            TensegrityError: the simulation or the controller fails.
        """
        for _ in range(round(duration / self.period)):
            if each is not None:
                each(self.time)
            self._step()

    # -- inside ---------------------------------------------------------------------------------------------------

    def _reset(self) -> None:
        self.stamp = -np.inf
        self._seen = self._estimate(0.0, self.simulation.observe())
        self.stamp = 0.0
        wait_for_robot(self.control)
        self.control.reset(0.0, self._seen)

    def _estimate(self, stamp: float, reading: Any) -> RobotState:
        if self._estimator is None:
            state: Any = reading.state if isinstance(reading, _Reading) else self.simulation.state
        else:
            state = self._estimator.update(stamp, reading.positions, reading.efforts)
        pose = reading.pose if self._estimator is None else state.pose
        positions = np.array(list(reading.positions.values()))
        return RobotState(positions=positions, pose=pose, q=state.configuration, v=state.velocity)

    def _step(self) -> None:
        now, seen = self.time, self.simulation.observe()
        self._states.put(
            self._tick,
            _Reading(now, seen.positions, seen.efforts, seen.pose, self.simulation.state, tuple(self._began)),
        )
        if self._tick >= self._free and not self.delays.frozen(now):
            reading = self._states.take(self._tick)
            if reading is not None:
                self._answer(reading)
                self._free = self._tick + int(self._random.integers(self.delays.busy[0], self.delays.busy[1] + 1))
        command = None if self.delays.frozen(now) else self._commands.take(self._tick)
        if command is not None:
            self._apply(command, now)
        if not self._holding and self.gate.must_hold(now) is not None:
            self._hold()
        self.held += self._holding
        self.simulation.advance(self.steps)
        self._tick += 1
        self._note()

    def _answer(self, reading: _Reading) -> None:
        self.stamp = reading.time
        self._seen = self._estimate(reading.time, reading)
        for began in reading.began if self.delays.latency == "measured" else ():
            if self._latency.acted(*began):
                self.control.acted(*began)
        age = self._latency.age(reading.time, reading.time)
        command = self.control.command(reading.time, replace(self._seen, age=age))
        self._latency.sent(reading.time, reading.time)
        self._commands.put(self._tick, (reading.time, command))

    def _apply(self, sent: tuple[float, Command], now: float) -> None:
        stamp, command = sent
        points = command.set_points()
        verdict = self.gate.check(
            list(points), list(points.values()), Mode(command.mode), source="controller", stamp=stamp, now=now,
            positions=self.simulation.observe_sensors().positions, period=self.period,
        )  # fmt: skip
        for refusal in verdict.refusals:
            word = str(refusal)
            self.refused[word] = self.refused.get(word, 0) + 1
        if not verdict.accepted:
            return
        if not verdict.set_points:
            self._hold()
            return
        self._holding = False
        by_mode: dict[str, dict[str, Any]] = {}
        for name, (kind, value) in verdict.set_points.items():
            by_mode.setdefault(kind.value, {})[name] = value
        for mode, values in by_mode.items():
            self.simulation.command(mode, values, age=now - stamp, period=self.period)
        self._began.append((stamp, now))

    def _hold(self) -> None:
        self.simulation.hold()
        self._holding = True

    def _note(self) -> None:
        seen = self.simulation.observe()
        self.tensions.append(np.array([seen.tensions[name] for name in self.cables]))
        try:
            off = seen.pose[0] - self.control.reference(self.time).pose[0]
        except TensegrityError:
            return
        rows = [row for row in self.robot.output.rows if row < 3]
        self.errors.append(float(np.linalg.norm(off[rows])))


@dataclass(frozen=True)
class _Reading:
    """Reading at a time [s]: positions and efforts by actuator, true state, times at which commands took effect."""

    time: float
    positions: Mapping[str, float]
    efforts: Mapping[str, float]
    pose: Any
    state: Any
    began: tuple[tuple[float, float], ...]


def freezes(seed: int, until: float, lengths: tuple[float, float], spacing: float) -> Sequence[tuple[float, float]]:
    """Random freezes of the computer of the controller.

    Args:
        seed: seed. until: end of the last interval considered [s]. lengths: shortest and longest freeze [s].
        spacing: mean time between two freezes [s].
    """
    random, time = np.random.default_rng(seed), 0.0
    found: list[tuple[float, float]] = []
    while True:
        time += spacing * (0.5 + float(random.random()))
        length = float(random.uniform(*lengths))
        if time + length > until:
            return tuple(found)
        found.append((time, length))
        time += length
