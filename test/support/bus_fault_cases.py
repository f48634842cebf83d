"""Every fault that tests put into the emulated hardware: how it is injected, and how soon it must be found."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from emulated_cell import TURNING, WHEELS, EmulatedCell
from spool_bench import PERIOD

from tensegrity_driver.safety.faults import FaultKind, Reaction
from tensegrity_driver.safety.settings import SafetySettings

K, R = FaultKind, Reaction
S = SafetySettings(period=PERIOD)
N = "draw_1"
HOME = 0.2159
"""m: rest length of every tendon at the start."""
COUNT_LENGTH = 7.5e-5
"""m of a count of a potentiometer."""
SETTLED = 12
"""Cycles before anything is injected."""
Action = Callable[[EmulatedCell], object]


@dataclass(frozen=True)
class Case:
    """One injected fault.

    Attributes:
        name: of the test. inject, mend: what is done to the hardware, or to what commands it. within: bus cycles.
        tendon: that the fault is about (None: the bus). servos: model.
        reaction: of the tendon in the cycle after the fault was found. later: of the tendon some cycles on, where it is
            a stronger one, because the cause goes on to show in other ways.
        move: m that it is commanded to go as the fault is injected.
        first: faults that may be found before this one, because the cause shows in several ways.
        gone: the reaction itself ends the cause. homed: the tendon is homed before the fault is cleared.
        pulled, disobedient: see `EmulatedCell`. settings: that differ.
    """

    name: str
    kind: FaultKind
    inject: Action
    mend: Action
    within: int
    reaction: Reaction | None = R.HOLD
    tendon: str | None = N
    servos: str = WHEELS
    move: float | None = None
    first: tuple[FaultKind, ...] = ()
    later: Reaction | None = None
    gone: bool = False
    homed: bool = False
    pulled: bool = False
    disobedient: tuple[str, ...] = ()
    settings: dict[str, object] = field(default_factory=dict)


def mend(cell: EmulatedCell) -> None:
    cell.emulated.faults.mend()


def sets(**values: object) -> Action:
    def put(cell: EmulatedCell) -> None:
        for name, value in values.items():
            setattr(cell, name, value)

    return put


def sends(action: Action) -> Action:
    """Something that happens in every cycle from now on."""

    def begin(cell: EmulatedCell) -> None:
        cell.each_cycle = lambda: action(cell)

    return begin


quiet = sets(each_cycle=None)


def fast(speed: float) -> float:
    """rad/s of a spool at so many m/s."""
    return speed / 0.00485


def until_it_shows(cell: EmulatedCell, shows: Callable[[], bool], at_most: int = 400) -> None:
    """Cycles until a cause that grows has reached what counts; nothing may be found before."""
    for _ in range(at_most):
        if shows():
            return
        cell.run(1)
        assert cell.kinds <= {K.SLACK}, cell.faults
    raise AssertionError(f"the cause does not show within {at_most} cycles")


def slip(cell: EmulatedCell) -> None:
    """The coupling of a potentiometer slips while its spool turns, until it is 2 mm and three counts off."""
    began = cell.length(N)
    cell.emulated.faults.slip_potentiometer(N, 0.5)
    until_it_shows(cell, lambda: 0.5 * abs(cell.length(N) - began) > S.disagreement + 3 * COUNT_LENGTH)


def creep(cell: EmulatedCell) -> None:
    """A spool turns too slowly to be called a runaway, until it is outside its limits."""
    cell.disobedient = (N,)
    cell.emulated.faults.run_away(N, -fast(0.0016))
    high = cell.driver.spools[N].actuator.position[1]
    until_it_shows(cell, lambda: cell.length(N) > high + S.limit_margin - 0.0016 * PERIOD)


def wind_back(cell: EmulatedCell) -> None:
    """The servo obeys again and is jogged to where it may be."""
    cell.emulated.faults.mend()
    cell.driver.jog(N, HOME + 0.001)
    cell.run(60)


class Hand:
    """Somebody lifts the plate more and more until a saddle carries nothing, and puts it down as slowly."""

    PACE = 1.5  # N per cycle; quicker, and the driver calls the tendons snapped

    def __init__(self) -> None:
        self.force = 0.0

    def lift(self, cell: EmulatedCell) -> None:
        self.force = 0.0
        cell.each_cycle = lambda: self.add(cell, self.PACE)
        until_it_shows(cell, lambda: cell.tension("saddle_5") < 4.0)
        cell.each_cycle = None

    def put_down(self, cell: EmulatedCell) -> None:
        while self.force > 0.0:
            self.add(cell, -self.PACE)
            cell.run(1)

    def add(self, cell: EmulatedCell, force: float) -> None:
        self.force = max(0.0, self.force + force)
        cell.emulated.faults.push("top_1", (0.0, 0.0, self.force))


HAND = Hand()


def knot(cell: EmulatedCell) -> None:
    """The tendon is knotted again, and tightened by hand."""
    cell.emulated.faults.mend()
    cell.run(80)


def mend_and_restart(cell: EmulatedCell) -> None:
    cell.emulated.faults.mend()
    cell.emulated.faults.power_cycle(N)


def load_the_supply(cell: EmulatedCell) -> None:
    for k in range(1, 7):
        cell.emulated.faults.pull_shaft(f"saddle_{k}", -0.3)


def damage_all(cell: EmulatedCell) -> None:
    for name in cell.driver.spools:
        cell.emulated.faults.damage(name, 0.25)


def runs_without_writes(cell: EmulatedCell) -> None:
    """Its torque is to go off in the end, and no write gets through to it."""
    cell.emulated.faults.lose_writes(N)
    cell.emulated.faults.run_away(N, fast(0.01))


def restart(cell: EmulatedCell) -> None:
    cell.emulated.faults.power_cycle(N)


def rival(cell: EmulatedCell) -> None:
    cell.command({N: 0.2}, source="somebody")


def nonsense(cell: EmulatedCell) -> None:
    cell.command({N: math.nan})


def nothing(cell: EmulatedCell) -> None:
    """The cause has gone by itself, or goes when the servo is prepared again."""


def emulated(name: str, *arguments: object) -> Action:
    """A fault of the emulated robot by its name."""
    return lambda cell: getattr(cell.emulated.faults, name)(*arguments)


ENDS = (K.SENSOR_JUMP, K.SPOOL_LIMIT)
LET_GO = (K.SERVO_RESTARTED, K.RUNAWAY, K.WRONG_SIGN, K.SLACK)
"""How a servo without torque on a tight tendon shows as well: it runs out at once."""
CASES = [
    # -- servos on the wire --
    Case("servo_silent", K.SERVO_SILENT, emulated("silence", N), mend, S.silent),
    Case("servo_silent_x", K.SERVO_SILENT, emulated("silence", N), mend, S.silent, servos=TURNING),
    Case("answers_lost", K.SERVO_SILENT, emulated("mute", N), mend, S.silent),
    Case("bad_checksums_of_one", K.SERVO_SILENT, emulated("damage", N), mend, S.silent, first=(K.DUPLICATE_ID,)),
    Case(
        "bad_checksums_of_one_x", K.SERVO_SILENT, emulated("damage", N), mend, S.silent, first=(K.DUPLICATE_ID,),
        servos=TURNING,
    ),
    Case("bad_checksums_of_all", K.BAD_PACKETS, damage_all, mend, 14, tendon=None),
    Case("bad_checksums_of_all_x", K.BAD_PACKETS, damage_all, mend, 14, tendon=None, servos=TURNING),
    Case("doubled_id", K.DUPLICATE_ID, emulated("duplicate", N), mend, 5, tendon=None),
    Case(
        "doubled_id_x", K.DUPLICATE_ID, emulated("duplicate", N), mend, 40, tendon=None, servos=TURNING,
        first=(*ENDS, K.SERVO_SILENT, K.BAD_PACKETS), later=R.TORQUE_OFF,  # the other servo's encoder counts as its own
    ),
    Case("adapter_unplugged", K.PORT_LOST, emulated("unplug"), mend, 1, tendon=None),
    Case("adapter_unplugged_x", K.PORT_LOST, emulated("unplug"), mend, 1, tendon=None, servos=TURNING),
    # -- what servos say of themselves --
    Case("warm", K.WARM, emulated("heat", N, 65.0), mend, S.persist, None),
    Case("hot", K.OVERHEATING, emulated("heat", N, 70.0), mend, S.persist, R.RELEASE),
    Case(
        "shut_down_by_heat", K.OVERHEATING, emulated("heat", N, 75.0), mend, S.persist, R.RELEASE,
        first=LET_GO,
    ),
    Case("hot_x", K.OVERHEATING, emulated("heat", N, 71.0), mend, S.persist, R.RELEASE, servos=TURNING),
    Case("voltage_drop", K.UNDERVOLTAGE, emulated("sag", 8.5), mend, S.persist),
    Case(
        "voltage_drop_of_one_x", K.UNDERVOLTAGE, emulated("sag", 8.5, N), mend_and_restart, S.persist, servos=TURNING,
        homed=True,  # an X keeps its error until it is restarted
    ),
    Case("voltage_too_high", K.OVERVOLTAGE, emulated("sag", 13.0), mend, S.persist),
    Case(
        "overload", K.OVERLOAD, emulated("fail", N, "overload"), nothing, S.persist, R.RELEASE,
        first=LET_GO,  # its shutdown shows first
    ),
    Case(
        "encoder_error_x", K.HARDWARE_ERROR, emulated("fail", N, "encoder"), restart, 2, R.TORQUE_OFF,
        servos=TURNING, first=LET_GO, homed=True,
    ),
    Case(
        "restarted", K.SERVO_RESTARTED, restart, nothing, 2, first=LET_GO, gone=True, disobedient=(N,),
    ),
    Case(
        "torque_lost", K.SERVO_RESTARTED, emulated("lose_torque", N), nothing, 2, first=LET_GO,
        gone=True, disobedient=(N,),
    ),
    Case(
        "torque_lost_x", K.SERVO_RESTARTED, emulated("lose_torque", N), nothing, 2, disobedient=(N,), gone=True,
        servos=TURNING,
    ),
    Case("turns_lost_x", K.TURNS_LOST, restart, nothing, 1, R.TORQUE_OFF, servos=TURNING, homed=True),
    Case(
        "watchdog_off_x", K.WATCHDOG_UNARMED, lambda c: c.put_register(N, "bus_watchdog", 0), nothing, 2,
        servos=TURNING,
    ),
    Case(
        "supply_overdrawn_x", K.SUPPLY_OVERDRAWN, load_the_supply, mend, S.persist, tendon=None, servos=TURNING,
        settings={"supply_current": 4.6},
    ),
    # -- sensors --
    Case("board_silent", K.SENSOR_MISSING, emulated("silence_board"), mend, S.missing),
    Case("board_unplugged", K.SENSOR_MISSING, emulated("unplug", "potentiometers"), mend, S.missing),
    Case("potentiometer_wire_off", K.SENSOR_BROKEN, emulated("break_potentiometer", N), mend, S.persist, first=ENDS),
    Case("potentiometer_jumps", K.SENSOR_JUMP, emulated("break_potentiometer", N, 2200), mend, 1),
    Case("potentiometer_frozen", K.SENSOR_FROZEN, emulated("freeze_potentiometer", N), mend, 13, move=0.005),
    Case("potentiometer_slips", K.SENSORS_DISAGREE, slip, mend, S.persist, move=0.008),
    # -- spools and tendons --
    Case(
        "runs_out", K.RUNAWAY, emulated("run_away", N, -fast(0.01)), mend, 10,
        gone=True, disobedient=(N,),
    ),
    Case(
        "runs_in", K.RUNAWAY, emulated("run_away", N, fast(0.01)), mend, 10,
        gone=True, disobedient=(N,),
    ),
    Case(
        "runs_slowly", K.WRONG_SIGN, emulated("run_away", N, fast(0.0025)), mend, 31,
        gone=True, disobedient=(N,),
    ),
    Case(
        "runs_out_x", K.WRONG_SIGN, emulated("run_away", N, -fast(0.01)), mend, 31,
        gone=True, disobedient=(N,), servos=TURNING,
    ),
    Case(
        "wrong_sign", K.WRONG_SIGN, emulated("run_away", N, fast(0.01)), mend, 31,
        gone=True, move=0.005, disobedient=(N,),
    ),
    Case(
        "wrong_sign_x", K.WRONG_SIGN, emulated("run_away", N, fast(0.01)), mend, 31,
        gone=True, move=0.005, disobedient=(N,), servos=TURNING,
    ),
    Case(
        "disobeys_hold", K.DISOBEYS_HOLD, emulated("run_away", N, fast(0.01)), mend, 31, R.TORQUE_OFF,
        first=(K.RUNAWAY,), gone=True, disobedient=(N,),
    ),
    Case(
        "disobeys_hold_x", K.DISOBEYS_HOLD, emulated("run_away", N, fast(0.01)), mend, 31, R.TORQUE_OFF,
        first=(K.RUNAWAY, K.WRONG_SIGN), gone=True, disobedient=(N,), servos=TURNING,
    ),
    Case(
        "writes_lost", K.TORQUE_STAYS_ON, runs_without_writes, mend, 34, R.TORQUE_OFF,
        first=(K.RUNAWAY, K.DISOBEYS_HOLD), disobedient=(N,),
    ),
    Case(
        "wound_backwards", K.WOUND_BACKWARDS, emulated("wind_backwards", N), mend, 20, move=0.005, gone=True,
        disobedient=(N,), settings={"wrong_pull": "20 N"},
    ),
    Case(
        "wound_backwards_x", K.WOUND_BACKWARDS, emulated("wind_backwards", N), mend, S.persist, servos=TURNING,
        disobedient=(N,),
    ),
    Case(
        "wound_backwards_and_winding_x", K.WOUND_BACKWARDS, emulated("wind_backwards", N), mend, 20, move=-0.005,
        disobedient=(N,), servos=TURNING, first=(K.SLACK,), settings={"wrong_pull": "180 N"},
    ),
    Case("jammed", K.STUCK, emulated("jam", N), mend, 13, move=0.005, gone=True),
    Case("jammed_x", K.STUCK, emulated("jam", N), mend, 13, move=0.005, gone=True, servos=TURNING),
    Case("snapped_x", K.SNAPPED, emulated("snap", N), knot, S.snap_cycles, servos=TURNING),
    Case(
        "pulled_x", K.TENSION_CEILING, emulated("pull_shaft", N, -0.5), mend, S.persist, R.RELEASE, servos=TURNING,
        settings={"tension_margin": 0.95},
    ),
    Case("slack_x", K.SLACK, HAND.lift, HAND.put_down, S.persist, None, tendon="saddle_5", servos=TURNING, pulled=True),
    Case(
        "outside_its_limits_x", K.SPOOL_LIMIT, creep, wind_back, 2, disobedient=(N,), servos=TURNING,
        settings={"limits": {N: (HOME - 0.0035, HOME + 0.0035)}},
    ),
    # -- commands and clocks --
    Case("controller_killed", K.STALE_COMMAND, sets(goals=None), sets(goals={}), S.stale + 1, tendon=None),
    Case("two_publishers", K.TWO_SOURCES, sends(rival), quiet, 1, tendon=None),
    Case("nonsense_all_the_time", K.REFUSED_COMMANDS, sends(nonsense), quiet, S.refused, tendon=None),
    Case(
        "emergency_stop", K.EMERGENCY_STOP, lambda c: c.driver.stop("pressed"), lambda c: c.driver.release_stop(), 1,
        tendon=None,
    ),
    Case("clock_ahead", K.CLOCK_JUMP, sets(clock_step=3.0), sets(clock_step=PERIOD), 1, tendon=None),
    Case(
        "overrun", K.OVERRUN, sets(period=0.05, clock_step=0.05), sets(period=PERIOD, clock_step=PERIOD), S.overruns,
        tendon=None,
    ),
]  # fmt: skip
