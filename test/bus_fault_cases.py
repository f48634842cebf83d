"""Every fault that tests put into the emulated hardware: how it is injected, and how soon it must be found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from emulated_cell import TURNING, WHEELS, EmulatedCell
from spool_bench import PERIOD

from tensegrity_driver.reactions import FaultKind, Reaction, SafetySettings

K, R = FaultKind, Reaction
S = SafetySettings(period=PERIOD)
N = "draw_1"
Action = Callable[[EmulatedCell], object]


@dataclass(frozen=True)
class Case:
    """One injected fault.

    Attributes:
        name: of the test. inject, mend: what is done to the hardware, or to what commands it. within: bus cycles.
        tendon: that the fault is about (None: the bus). servos: model.
        reaction: of the tendon. move: m that it is commanded to go as the fault is injected.
        first: faults that may be found before this one, because the cause shows in several ways.
        later: a stronger reaction that follows, because the cause goes on to show in other ways.
        gone: the reaction itself ends the cause. everybody: the fault is that of all tendons at once.
        homed: the tendon is homed before the fault is cleared. cycles: for which the fault is left there.
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
    cycles: int = 8
    pulled: bool = False
    disobedient: tuple[str, ...] = ()
    settings: dict[str, object] = field(default_factory=dict)


def mend(cell: EmulatedCell) -> None:
    cell.emulated.mend()


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


CASES = [
    # -- servos on the wire --
    Case("servo_silent", K.SERVO_SILENT, lambda c: c.emulated.silence(N), mend, S.silent),
    Case("servo_silent_x", K.SERVO_SILENT, lambda c: c.emulated.silence(N), mend, S.silent, servos=TURNING),
    Case("answers_lost", K.SERVO_SILENT, lambda c: c.emulated.mute(N), mend, S.silent),
    Case("bad_checksums_of_one", K.SERVO_SILENT, lambda c: c.emulated.damage(N), mend, S.silent, servos=TURNING),
    # -- what servos say of themselves --
    Case("too_warm", K.WARM, lambda c: c.emulated.heat(N, 65.0), mend, S.persist, None),
    Case(
        "voltage_drop", K.UNDERVOLTAGE, lambda c: c.emulated.sag(8.5, N), mend, S.persist,
    ),
    Case("voltage_too_high", K.OVERVOLTAGE, lambda c: c.emulated.sag(13.0, N), mend, S.persist),
]  # fmt: skip
