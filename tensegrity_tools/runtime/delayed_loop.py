"""A closed loop whose messages come late on purpose: simulation, gate, estimator and controller, without a clock.

In every control period the simulation is read; the reading reaches the estimator some periods later, what the
controller answers reaches the gate some periods later still, and for some time nothing reaches anybody. How late each
message is follows from a seed, so that what happens is the same on every machine. Messages keep their order; of those
that arrive together the newest counts alone, as in the nodes.
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
"""Commands of which a reading says when they began."""
LONGEST_STEP = 1e-3
"""s, of the simulation."""


@dataclass(frozen=True)
class Delays:
    """How late messages are, in control periods.

    Args:
        states, commands: least and most periods by which each is late, drawn anew for every one.
        busy: least and most periods from one answer of the controller to its next one.
        freezes: (begin, length) in s of times in which the controller's computer does nothing; what it had answered
            before and was still under way leaves when it goes on.
        latency: what the controller knows of it: "measured" from what the plant reports, "nominal" (the mean of both),
            or "unknown".
        seed: of what is drawn.

    Raises:
        TensegrityError: a number is below zero, or the least is above the most.
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
        """Whether the controller's computer stands still at a time [s]."""
        return any(begin <= time < begin + length for begin, length in self.freezes)


@dataclass
class DelayedLoop:
    """See the module; `run` goes on from where it was.

    Args:
        robot: that controller and observer know. control: its controller, made for `period` s. delays: see `Delays`.
        observer: whether states come from the observer; else from the simulation itself.
        plant: the robot that is simulated, where it is another one.

    Attributes:
        time: s. stamp: s, of the last state that the controller has seen.
        refused: what the gate refused, counted by its words. held: periods in which the actuators held.
        errors, tensions: after every period, distance [m] of the controlled axes from the reference and (c,) N.
        cables: names of these.
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
        self._began: deque[tuple[float, float]] = deque(maxlen=REPORTED)  # stamps of commands, and when they began
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
        """s."""
        return self._tick * self.period

    def set_delays(self, delays: Delays) -> None:
        """Other delays from now on; what is under way is lost."""
        self.delays = delays
        self._states: LateMessages[_Reading] = LateMessages(*delays.states, delays.seed)
        self._commands: LateMessages[tuple[float, Command]] = LateMessages(*delays.commands, delays.seed + 1)
        self._random = np.random.default_rng(delays.seed + 2)
        mean = 0.5 * sum((*delays.states, *delays.commands)) * self.period
        self._latency = CommandLatency(mean if delays.latency == "nominal" else 0.0)

    def forget(self) -> None:
        """Forget errors and tensions so far."""
        self.errors.clear()
        self.tensions.clear()

    def least(self) -> float:
        """Least tension so far, in parts of its floor; in newton where there is none, infinite without cables."""
        if not self.cables:
            return float("inf")
        floors = np.array([self._floors.get(name, 0.0) for name in self.cables])
        return float(np.min(np.array(self.tensions) / np.where(floors > 0.0, floors, 1.0)))

    def switch(self, control: Controller) -> None:
        """Let another controller take over from the last state that was seen."""
        before, self.control = self.control, control
        wait_for_robot(control)
        control.reset(self.stamp, self._seen)
        if before.status(self.stamp).phase == "stopped":
            control.stop(self.stamp)  # type: ignore[attr-defined]

    def run(self, duration: float, each: Callable[[float], None] | None = None) -> None:
        """Run on for some time [s]; `each` is called with the time at the begin of every period.

        Raises:
            TensegrityError: the simulation or the controller gives up.
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
    """What is read at a time [s]: positions and efforts by actuator, the truth, since when commands act."""

    time: float
    positions: Mapping[str, float]
    efforts: Mapping[str, float]
    pose: Any
    state: Any
    began: tuple[tuple[float, float], ...]


def freezes(seed: int, until: float, lengths: tuple[float, float], spacing: float) -> Sequence[tuple[float, float]]:
    """Freezes of the controller's computer, drawn from a seed.

    Args:
        until: s. lengths: shortest and longest [s]. spacing: mean time between two [s].
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
