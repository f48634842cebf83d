"""A driver on the emulated bus of a whole robot, in counted cycles, with what must hold in every one of them.

The driver and the hardware share nothing but bytes over pseudo-terminals. Time is moved by hand: one `advance` of the
emulated world, then one bus cycle. What no cycle may break is asserted in `EmulatedCell.run`:

    true tension <= tension_margin · effort, but where somebody outside pulls
    low - limit_margin <= true rest length <= high + limit_margin, but where a case says that the servo obeys nobody
    the calibration file is byte for byte what was last saved
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tensegrity_driver.bus.identity import EMULATED_ADAPTER, BusIdentity
from tensegrity_driver.calibration.calibration_file import save_calibration
from tensegrity_driver.driver import Driver, open_driver
from tensegrity_driver.emulator import with_servos
from tensegrity_driver.hardware.emulated_hardware import EmulatedHardware
from tensegrity_driver.safety.faults import Fault, FaultKind
from tensegrity_driver.safety.safety_layer import SafetyStep
from tensegrity_dynamics import load_robot
from tensegrity_dynamics.command_gate import Mode, Verdict
from tensegrity_dynamics.errors import CommandRefused
from tensegrity_dynamics.robots.robot import Robot

TENSEBOT = load_robot("tensebot")
WHEELS = "AX-12A"
TURNING = "XM430-W350"
TURNS = 3
"""Turns that every servo which counts them has counted when a cell begins, so that there are some to lose."""


def robot_with(servos: str, *, limits: Mapping[str, tuple[float, float]] | None = None, **safety: object) -> Robot:
    """TenseBot with servos of a model, safety settings of its own, and narrower position limits where named."""
    robot = TENSEBOT if servos == WHEELS else with_servos(TENSEBOT, servos)
    actuators = tuple(replace(a, position=(limits or {}).get(a.name, a.position)) for a in robot.actuators)
    return replace(robot, actuators=actuators, servos={**robot.servos, "safety": {"identify": 0.0, **safety}})


class EmulatedCell:
    """A driver that runs on emulated servos.

    Attributes:
        period, clock_step: s that pass in a cycle, and by which the clock that stamps commands goes on.
        goals, mode: what the controller sends in every cycle, by actuator; None: it is dead.
        session: that the controller drew with its last goal, see `new_goal`.
        pulled: somebody outside pulls, so that no ceiling of a servo bounds the tensions.
        disobedient: actuators whose shafts obey nobody, so that no driver could keep them within their limits.
        worst_tension, worst_excursion: greatest tension over effort, and m beyond limits, of all cycles so far.
    """

    def __init__(self, robot: Robot, folder: Path) -> None:
        self.robot = robot
        self.hardware = EmulatedHardware(robot)
        self.emulated = self.hardware.emulated
        self.path = folder / "calibration.json"
        for each in self.emulated.identity:
            # they were switched on some turns ago, as after a day of work
            self.emulated.faults.change_turns(each.actuator, TURNS)
        identity = BusIdentity(EMULATED_ADAPTER, tuple((each.id, each.number) for each in self.emulated.identity))
        save_calibration(self.path, self.hardware.make_calibration(identity))
        self.now = 100.0
        self.driver = self.open()
        self.saved = self.path.read_bytes()
        self.settings = self.driver.settings.safety
        self.period = self.clock_step = self.driver.period
        self._start = {n: self.emulated.observe().positions[n] for n in self.driver.spools}
        self.goals: dict[str, float] | None = {}
        self.mode = Mode.POSITION
        self.session = 1
        self.pulled = False
        self.disobedient: Collection[str] = ()
        self.worst_tension, self.worst_excursion = 0.0, -1.0
        self.each_cycle: Callable[[], object] | None = None
        self.verdict: Verdict | None = None
        self.driver.begin(lambda: self.now)

    def open(self) -> Driver:
        """A driver on the ports and the calibration file, as a freshly started program makes one."""
        return open_driver(self.robot, self.hardware.open_bus, calibration=self.path)

    def close(self) -> None:
        self.driver.close()
        self.hardware.close()

    # -- time ------------------------------------------------------------------------------------------------------

    def run(self, cycles: int) -> SafetyStep:
        """So many cycles; asserts in each what must always hold."""
        for _ in range(cycles):
            self.world(self.period)
            self.now += self.clock_step
            if self.each_cycle is not None:
                self.each_cycle()
            if self.goals is not None:
                self.verdict = self.command(self.goals, self.mode)
            step = self.driver.run(self.period, self.now)
        return step

    def world(self, seconds: float) -> None:
        """The world goes on without the driver."""
        self.hardware.advance(seconds)
        self.hold_invariants()

    def run_world_only(self, cycles: int) -> None:
        """So many cycles in which no driver says anything."""
        for _ in range(cycles):
            self.world(self.period)
            self.now += self.period

    def command(self, goals: Mapping[str, float], mode: Mode = Mode.POSITION, **other: object) -> Verdict:
        """One command of the controller, or of somebody else."""
        given = {"source": "controller", "session": self.session, "stamp": self.now, "now": self.now, **other}
        return self.driver.command(list(goals), list(goals.values()), mode, **given)  # type: ignore[arg-type]

    def until(self, kind: FaultKind, tendon: str | None, within: int, first: Collection[FaultKind] = ()) -> Fault:
        """The fault of this kind, which must come within the cycles, before any but those named as first."""
        for _ in range(within):
            new = self.run(1).new
            for fault in new:
                if (fault.kind, fault.tendon) == (kind, tendon):
                    return fault
            for fault in new:
                assert fault.kind in first or fault.kind is kind, fault.line
        raise AssertionError(f"{kind} was not found within {within} cycles; {self.faults}")

    def clear(self, within: int) -> None:
        """Clear all faults, which must be possible within so many cycles."""
        for _ in range(within):
            self.run(1)
            try:
                self.driver.clear()
                self.new_goal()
                return
            except CommandRefused as refusal:
                reason = refusal
        raise AssertionError(f"not cleared within {within} cycles: {reason}")

    def new_goal(self) -> None:
        """Somebody sends the controller a goal, without which nothing moves after a release or a gap."""
        self.session += 1

    def go_to(self, name: str, goal: float, within: int) -> None:
        """Send one tendon to a rest length [m], which it must reach to 0.4 mm within so many cycles."""
        self.goals = {name: goal}
        self.new_goal()
        for _ in range(within):
            self.run(1)
            if abs(self.length(name) - goal) <= 4e-4:
                return
        raise AssertionError(f"{name} is at {self.length(name):g} m after {within} cycles, not at {goal:g} m")

    # -- what is there ---------------------------------------------------------------------------------------------

    @property
    def faults(self) -> dict[tuple[FaultKind, str | None], Fault]:
        return {each.key: each for each in self.driver.faults}

    @property
    def kinds(self) -> set[FaultKind]:
        return {kind for kind, _ in self.faults}

    def length(self, name: str) -> float:
        """True rest length [m] by the angle of the spool: what a snapped tendon does is not its servo's doing."""
        spool = self.driver.spools[name]
        return self._start[name] - spool.direction * spool.radius * self.emulated.angle(name)

    def lengths(self) -> dict[str, float]:
        return {name: self.length(name) for name in self._start}

    def tension(self, name: str) -> float:
        """True tension [N]."""
        return float(self.emulated.observe().efforts[name])

    def hold_invariants(self) -> None:
        """What no cycle may break, whatever is injected."""
        efforts = self.emulated.observe().efforts
        settings = self.settings
        for name, spool in self.driver.spools.items():
            low, high = spool.actuator.position
            length, ratio = self.length(name), efforts[name] / spool.actuator.effort
            beyond = max(low - length, length - high)
            if not self.pulled:
                self.worst_tension = max(self.worst_tension, ratio)
                assert ratio <= settings.tension_margin, f"{name} carries {ratio:.3f} of its ceiling"
            if name not in self.disobedient:
                self.worst_excursion = max(self.worst_excursion, beyond)
                assert beyond <= settings.limit_margin, f"{name} is {beyond * 1e3:.2f} mm beyond its limits"
        assert self.path.read_bytes() == self.saved

    # -- what people do --------------------------------------------------------------------------------------------

    def home(self, name: str) -> None:
        """Calibrate one tendon again from points that a rule would show, and save that."""
        spool = self.driver.spools[name]
        line = self.emulated.lines(name)[spool.measured_by]
        lengths: Sequence[float] = [self.length(name) + 0.01 * k for k in range(-3, 4)]
        self.driver.calibrate(name, [line.inverse(each) for each in lengths], lengths, save=True)
        self.saved = self.path.read_bytes()

    def restart_driver(self) -> None:
        """The program ends properly and is started again."""
        self.driver.end()
        self.driver.close()
        self.driver = self.open()
        self.driver.begin(lambda: self.now)
        self.new_goal()

    def put_register(self, name: str, field: str, raw: int) -> None:
        """Another program, or a fault inside, changes a register of a servo."""
        self.emulated.faults.set_register(name, field, raw)


@contextlib.contextmanager
def emulated_cell(folder: Path, servos: str = WHEELS, **changes: object) -> Iterator[EmulatedCell]:
    """A cell with servos of a model; changes as for `robot_with`."""
    cell = EmulatedCell(robot_with(servos, **changes), folder)  # type: ignore[arg-type]
    try:
        yield cell
    finally:
        cell.close()
