"""Random faults and random goals on the emulated bus for as long as one likes, with the invariants of every cycle.

All is left to one seed. A round is: some cycles of random goals, a random fault on a random tendon, the cycles in which
it must be found, and then what a person does: mend it, have the servos prepared again, home what lost its turns, clear.
"""

from __future__ import annotations

import math
import os
import random
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from emulated_cell import TURNING, WHEELS, EmulatedCell

from tensegrity_driver.safety.faults import FaultKind
from tensegrity_dynamics.command_gate import Mode
from tensegrity_dynamics.errors import TensegrityError

K = FaultKind
SPAN = 0.004
"""m to either side of their lengths at the start in which random goals lie."""
NEAR = 0.007
"""m from their lengths at the start within which all must be before the next fault."""
SPEED = 0.01 / 0.00485
"""rad/s of a spool that runs away at 10 mm/s."""
Act = Callable[[EmulatedCell, str], object]


@dataclass(frozen=True)
class Trouble:
    """One kind of random fault.

    Attributes:
        inject: into a tendon. kinds: of which one must be found. within: cycles; 0: nothing has to be found.
        models: of servos that can have it. moving: the tendon is sent away. obeys: the servo still does what it must.
        shakes: the body jerks, so that no servo can keep tensions below their ceilings meanwhile. tendons: that have
            it, by the beginning of their names.
    """

    inject: Act
    kinds: Collection[FaultKind] = ()
    within: int = 0
    models: Collection[str] = (WHEELS, TURNING)
    moving: bool = False
    obeys: bool = True
    shakes: bool = False
    tendons: str = ""


def tendon(name: str, *arguments: object) -> Act:
    """A fault of the emulated robot about one tendon."""
    return lambda cell, tendon: getattr(cell.emulated.faults, name)(tendon, *arguments)


def whole(name: str, *arguments: object) -> Act:
    """A fault of the emulated robot about all of it."""
    return lambda cell, _: getattr(cell.emulated.faults, name)(*arguments)


def sets(**values: object) -> Act:
    def put(cell: EmulatedCell, _: str) -> None:
        for name, value in values.items():
            setattr(cell, name, value)

    return put


def every_cycle(action: Act) -> Act:
    def begin(cell: EmulatedCell, tendon: str) -> None:
        cell.each_cycle = lambda: action(cell, tendon)

    return begin


LETS_GO = (K.SERVO_RESTARTED, K.RUNAWAY, K.WRONG_SIGN, K.DISOBEYS_HOLD, K.TURNS_LOST)
SWINGS = (K.RUNAWAY, K.WRONG_SIGN, K.DISOBEYS_HOLD)
OLD, NEW = (WHEELS,), (TURNING,)
TROUBLES: dict[str, Trouble] = {
    "cable off": Trouble(tendon("silence"), (K.SERVO_SILENT,), 5, obeys=False),
    "answers lost": Trouble(tendon("mute"), (K.SERVO_SILENT,), 5),
    "bad checksums": Trouble(tendon("damage"), (K.SERVO_SILENT, K.DUPLICATE_ID), 5),
    "some bad checksums": Trouble(tendon("damage", 0.2)),
    "doubled id": Trouble(
        tendon("duplicate"), (K.DUPLICATE_ID, K.SENSOR_JUMP, K.SERVO_SILENT, K.BAD_PACKETS), 40, obeys=False
    ),
    "adapter unplugged": Trouble(whole("unplug"), (K.PORT_LOST,), 1),
    "bytes that nobody sent": Trouble(whole("garbage")),
    "warm": Trouble(tendon("heat", 65.0), (K.WARM,), 5),
    "hot": Trouble(tendon("heat", 70.0), (K.OVERHEATING,), 5, obeys=False),
    "voltage drop": Trouble(whole("sag", 8.5), (K.UNDERVOLTAGE,), 5, OLD),
    "voltage too high": Trouble(whole("sag", 13.0), (K.OVERVOLTAGE,), 5, OLD),
    "overload": Trouble(tendon("fail", "overload"), (K.OVERLOAD, *LETS_GO), 5, OLD, obeys=False),
    "torque lost": Trouble(tendon("lose_torque"), LETS_GO, 2, obeys=False),
    "restarted": Trouble(tendon("power_cycle"), LETS_GO, 2, obeys=False),
    "watchdog off": Trouble(
        lambda cell, name: cell.put_register(name, "bus_watchdog", 0), (K.WATCHDOG_UNARMED,), 2, NEW
    ),
    "board silent": Trouble(whole("silence_board"), (K.SENSOR_MISSING,), 5, OLD),
    "board unplugged": Trouble(whole("unplug", "potentiometers"), (K.SENSOR_MISSING,), 5, OLD),
    "wire off": Trouble(tendon("break_potentiometer"), (K.SENSOR_JUMP, K.SENSOR_BROKEN), 5, OLD),
    "short": Trouble(tendon("break_potentiometer", 0), (K.SENSOR_JUMP, K.SENSOR_BROKEN), 5, OLD),
    "potentiometer frozen": Trouble(
        # an AX-12A does not see 60 degrees of every turn: there it is taken to be stuck
        tendon("freeze_potentiometer"),
        (K.SENSOR_FROZEN, K.SENSORS_DISAGREE, K.STUCK, *SWINGS),
        31,
        OLD,
        moving=True,
    ),
    "potentiometer slips": Trouble(tendon("slip_potentiometer", 0.1), (), 0, OLD),
    "runs out": Trouble(tendon("run_away", -SPEED), SWINGS, 31, obeys=False),
    "runs in": Trouble(tendon("run_away", SPEED), SWINGS, 31, obeys=False),
    "jammed": Trouble(tendon("jam"), (K.STUCK,), 25, moving=True),
    "snapped": Trouble(tendon("snap"), (K.SNAPPED, K.SLACK), 6, NEW, shakes=True, tendons="draw"),
    "shaft pulled": Trouble(tendon("pull_shaft", -0.3)),
    "controller killed": Trouble(sets(goals=None), (K.STALE_COMMAND,), 26),
    "two publishers": Trouble(
        every_cycle(lambda cell, name: cell.command({name: 0.2}, source="somebody")), (K.TWO_SOURCES,), 1
    ),
    "nonsense": Trouble(every_cycle(lambda cell, name: cell.command({name: math.nan})), (K.REFUSED_COMMANDS,), 25),
    "emergency stop": Trouble(lambda cell, _: cell.driver.stop("pressed"), (K.EMERGENCY_STOP,), 1),
    "clock ahead": Trouble(sets(clock_step=2.0), (K.CLOCK_JUMP,), 1),
    "clock back": Trouble(sets(clock_step=-2.0), (K.CLOCK_JUMP,), 1),
    "long cycles": Trouble(sets(period=0.05, clock_step=0.05), (K.OVERRUN,), 3),
}


@dataclass
class Soak:
    """A cell under random faults.

    Attributes:
        cycles: so far. injected, found: by name of the trouble. slowest: cycles until it was found, by name.
        side: kinds of faults that came besides. memory: bytes of the process after each round.
    """

    cell: EmulatedCell
    model: str
    seed: int
    cycles: int = 0
    injected: Counter[str] = field(default_factory=Counter)
    found: Counter[str] = field(default_factory=Counter)
    slowest: dict[str, int] = field(default_factory=dict)
    side: Counter[str] = field(default_factory=Counter)
    memory: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.home = self.cell.lengths()
        self.names = [name for name, each in TROUBLES.items() if self.model in each.models]
        self._left: list[str] = []

    def run(self, cycles: int) -> None:
        """Rounds until so many cycles have passed; raises AssertionError where anything is not as it must be."""
        while self.cycles < cycles:
            self.wander()
            if not self._left:  # every kind once before any comes again
                self._left = self.random.sample(self.names, len(self.names))
            name = self._left.pop()
            tendons = [each for each in self.home if each.startswith(TROUBLES[name].tendons)]
            self.round(name, self.random.choice(tendons))
            self.memory.append(resident())

    @property
    def expected(self) -> dict[str, int]:
        """How many of the injected ones have to be found, by name."""
        return {name: count for name, count in self.injected.items() if TROUBLES[name].within}

    def step(self, cycles: int) -> set[FaultKind]:
        """So many cycles; the kinds of the faults that came."""
        came: set[FaultKind] = set()
        for _ in range(cycles):
            came |= {fault.kind for fault in self.cell.run(1).new}
            self.cycles += 1
        return came

    def wander(self) -> None:
        """Random goals, by positions or velocities, and near the start at the end; no fault may come."""
        cell, chance = self.cell, self.random
        for _ in range(chance.randint(1, 3)):
            if chance.random() < 0.25:
                cell.mode = Mode.VELOCITY
                cell.goals = {name: chance.uniform(-0.004, 0.004) for name in self.home}
                self.quiet(chance.randint(5, 20))
            cell.mode = Mode.POSITION
            cell.goals = {name: length + chance.uniform(-SPAN, SPAN) for name, length in self.home.items()}
            self.quiet(chance.randint(5, 40))
        for _ in range(60):
            if max(abs(length - self.home[name]) for name, length in cell.lengths().items()) <= NEAR:
                return
            self.quiet(10)
        raise AssertionError(f"seed {self.seed}, cycle {self.cycles}: the goals are not reached")

    def quiet(self, cycles: int) -> None:
        came = self.step(cycles)
        assert came <= {K.SLACK}, f"seed {self.seed}, cycle {self.cycles}: without cause {self.cell.faults}"

    def round(self, name: str, tendon: str) -> None:
        """One fault, from its cause until the robot is free again."""
        cell, trouble = self.cell, TROUBLES[name]
        where = f"seed {self.seed}, cycle {self.cycles}: {name} of {tendon}"
        cell.disobedient, cell.pulled = () if trouble.obeys else (tendon,), trouble.shakes
        if trouble.moving:
            cell.goals = {**(cell.goals or {}), tendon: cell.length(tendon) + self.random.choice((-0.006, 0.006))}
        self.injected[name] += 1
        trouble.inject(cell, tendon)
        for k in range(1, trouble.within + 1):
            came = self.step(1)
            if came & set(trouble.kinds):
                self.found[name] += 1
                self.slowest[name] = max(self.slowest.get(name, 0), k)
                break
        else:
            assert not trouble.within, f"{where} was not found within {trouble.within} cycles: {cell.faults}"
        self.step(self.random.randint(1, 6))
        self.side.update(kind.value for kind in cell.kinds - set(trouble.kinds))
        self.get_over(name, tendon, where)
        cell.disobedient, cell.pulled = (), False

    def get_over(self, name: str, tendon: str, where: str) -> None:
        """Mend, prepare, home, clear."""
        cell = self.cell
        cell.each_cycle, cell.goals = None, {}
        cell.period = cell.clock_step = cell.driver.period
        cell.emulated.faults.mend()
        cell.driver.release_stop()
        self.step(80 if name == "snapped" else 8)
        if K.TURNS_LOST in cell.kinds:
            cell.home(tendon)
        for _ in range(8):
            try:
                cell.driver.recover()
                self.step(4)
                cell.driver.clear()
                cell.new_goal()
                break
            except TensegrityError as problem:
                why = problem
                self.step(6)
        else:
            raise AssertionError(f"{where} is not got over: {why}")
        self.step(3)
        assert cell.kinds <= {K.SLACK}, f"{where}: {cell.faults} after it was cleared"


def resident() -> int:
    """Bytes of memory that this process has at present."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
