"""A driver on emulated servos, an estimator and a controller in one closed loop, in counted cycles and without a clock.

It is what `tensegrity up hardware ROBOT --port emulated` starts, by the same libraries: bytes, monitors and limits are
all there, but time passes only when `run` counts a cycle, so that what happens is the same on every machine.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from emulated_driver import driven

from tensegrity_control import make_controller
from tensegrity_control.command_latency import CommandLatency
from tensegrity_control.controller import RobotState
from tensegrity_control.registry import controller_class, suitable
from tensegrity_control.resting_error import RestingError
from tensegrity_driver.driver import Driver
from tensegrity_driver.hardware.emulated_hardware import EmulatedHardware
from tensegrity_driver.safety.faults import Fault
from tensegrity_dynamics import Robot
from tensegrity_dynamics.command_gate import Mode
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.estimation import make_estimator
from tensegrity_dynamics.late_messages import LateMessages
from tensegrity_tools.runtime.tour import POSITION_TOLERANCE, errors, goal_of

SETTLING = 3.0
"""s after the arrival that a goal may take until it is reached."""


@dataclass(frozen=True)
class Clockwork:
    """How unevenly time passes; all of it follows from the seed.

    Args:
        cycles: least and most planned periods from one cycle of the driver to the next.
        pace: least and most seconds of the emulated world per second of the clock, as on a busy machine.
        late: least and most cycles by which commands come late.
        freezes: (begin, length) in s from the end of the start, in which the controller's computer does nothing.
        measured: cycles as they were by the clock, in place of all but freezes: s from one to the next, and of how many
            cycles ago the state was whose command came before it, or -1 where none came; again and again.
    """

    cycles: tuple[float, float] = (1.0, 1.0)
    pace: tuple[float, float] = (1.0, 1.0)
    late: tuple[int, int] = (0, 0)
    freezes: tuple[tuple[float, float], ...] = ()
    seed: int = 0
    measured: tuple[tuple[float, int], ...] = ()


def measured(run: str) -> tuple[tuple[float, int], ...]:
    """Cycles of `measured_cycles.json`: 5 s of tours of `task` in motion, by the clock on two idle processors."""
    rows = json.loads(Path(__file__).with_name("measured_cycles.json").read_text())[run]
    return tuple((1e-3 * period, age) for period, age in rows)


@dataclass
class HardwareLoop:
    """See the module.

    Attributes:
        time: s. faults: all that were found, with the time. refused: what driver or controller refused.
        lowest: N, least true tension that an actuator's tendon had after the start.
        off: what the controller's node would say of the output at rest.
    """

    robot: Robot
    hardware: EmulatedHardware
    driver: Driver
    control: Any
    clockwork: Clockwork = Clockwork()

    def __post_init__(self) -> None:
        self.time, self.count, self.began = 0.0, 0, np.inf
        self.random = np.random.default_rng(self.clockwork.seed)
        self.late: LateMessages[Any] = LateMessages(*self.clockwork.late, self.clockwork.seed)
        self.latency = CommandLatency(self.driver.period * (1.0 + 0.5 * sum(self.clockwork.late)))
        self._answers: dict[int, Any] = {}
        self.faults: list[tuple[float, Fault]] = []
        self.refused: list[str] = []
        self.lowest, self.off = np.inf, ""
        self.resting = RestingError(self.robot)
        self.estimator = make_estimator(self.robot, observer=self.control.needs_velocities, unknown_loads=False)
        self.driver.begin(lambda: self.time)
        self._reset = False
        while self.driver.identifying or not self._reset:
            self.cycle()

    @property
    def emulated(self) -> Any:
        return self.hardware.emulated

    def cycle(self) -> None:
        """One cycle of the driver, and what estimator and controller answer; it is followed in the next one."""
        driver, clockwork = self.driver, self.clockwork
        late = None
        if clockwork.measured:
            period, late = clockwork.measured[self.count % len(clockwork.measured)]
            self.hardware.advance(period)
        else:
            period = driver.period * self.random.uniform(*clockwork.cycles)
            self.hardware.advance(period * self.random.uniform(*clockwork.pace))
        self.time += period
        self.count += 1
        command = self.late.take(self.count) if late is None else self._answers.get(self.count - late)
        if command is not None and late != -1:
            self._give(*command)
        step = driver.run(period, self.time)
        if command is not None and late != -1 and self.latency.acted(command[1], self.time):
            self.control.acted(command[1], self.time)
        self.faults += [(self.time, each) for each in step.new]
        tendons = driver.readings.tendons
        positions = {name: spool.position(tendons[name].length) for name, spool in driver.spools.items()}
        efforts = {name: spool.effort(driver.tension(name)) for name, spool in driver.spools.items()}
        estimate = self.estimator.update(self.time, positions, efforts)
        q, v = getattr(estimate, "configuration", None), getattr(estimate, "velocity", None)
        nodes = getattr(estimate, "nodes", None)
        measured = np.array([positions[each.name] for each in self.robot.actuators])
        state = RobotState(measured, nodes=nodes, pose=estimate.pose, q=q, v=v)
        if driver.identifying:
            return
        if not self._reset:
            self.control.reset(self.time, state)
            self._reset, self.began = True, self.time
        since = self.time - self.began
        if any(begin <= since < begin + length for begin, length in clockwork.freezes):
            return
        age = self.latency.age(self.time, self.time)
        command = self.control.command(self.time, replace(state, age=age)), self.time
        self.latency.sent(self.time, self.time)
        self._answers = {k: each for k, each in self._answers.items() if k > self.count - 50} | {self.count: command}
        self.late.put(self.count + 1, command)
        held = self.control.reference(self.time).pose
        self.off = self.resting.look(self.time, self.control.status(self.time), held, estimate.pose)
        tensions = self.emulated.observe().tensions
        self.lowest = min(self.lowest, *(tensions[each.drives] for each in self.robot.actuators))

    def _give(self, command: Any, stamp: float) -> None:
        points = command.set_points()
        verdict = self.driver.command(
            list(points), list(points.values()), Mode(command.mode), source="controller", session=1, stamp=stamp,
            now=self.time, period=self.control.period or self.driver.period,
        )  # fmt: skip
        self.refused += [str(each) for each in verdict.refusals]

    def run(self, duration: float, each: Callable[[], None] | None = None) -> None:
        """Go on for some time [s]; `each` is called before every cycle."""
        end = self.time + duration
        while self.time < end - 1e-9:
            if each is not None:
                each()
            self.cycle()

    def send(self, pose: Any, duration: float | None = None) -> Any:
        """A goal, planned while time stands still; the answer of the controller. Raises TensegrityError."""
        goal = self.control.make_goal(self.time, *pose)
        return self.control.begin(self.time, self.control.plan_goal(self.time, goal, duration=duration))

    def tour(self, show: Callable[[str], None] = lambda _: None, stops: int | None = None) -> list[float]:
        """Errors [m] of the output at every stop that was reached; ends at the first that was not."""
        home, reached = self.emulated.observe().pose, []
        for stop in self.robot.tour[:stops]:
            goal = goal_of(stop, home)
            try:
                answer = self.send(goal, stop.duration)
            except TensegrityError as error:
                self.refused.append(str(error))
                break
            self.run(answer.duration)
            late = self.time + SETTLING
            while True:
                self.cycle()
                error = errors(self.robot, goal, self.emulated.observe().pose)
                good = error[0] < (stop.tolerance or POSITION_TOLERANCE) and error[1] < np.radians(0.2)
                if good or self.time > late or self.stopped:
                    break
            show(f"{stop.name}: {1e3 * error[0]:.3f} mm {np.degrees(error[1]):.2f} deg after {answer.duration:.2f} s")
            if not good or self.stopped:
                break
            reached.append(error[0])
        return reached

    @property
    def stopped(self) -> bool:
        """Whether a fault holds the robot."""
        return any(each.kind.row.latched for each in self.driver.faults)


@contextmanager
def hardware_loop(
    robot: Robot, controller: str = "", clockwork: Clockwork = Clockwork(), **parameters: Any
) -> Iterator[HardwareLoop]:
    """A loop that holds its robot at rest.

    Args:
        controller: its name; "" for the usual one. parameters: of its constructor.
    """
    name = controller or suitable(robot)[0]
    made = controller_class(name)
    if "period" in made.parameters():
        parameters.setdefault("period", made.default_period)
    with driven(robot, overrun=EmulatedHardware.overrun) as (hardware, driver):
        yield HardwareLoop(
            robot, hardware, driver, make_controller(name, robot.with_servo_motors(), **parameters), clockwork
        )
