"""Table of faults: name, remedy, reaction and persistence of every kind of fault, and one detected fault.

A fault stops the tendon that it concerns by its reaction, and all other tendons hold. It stays latched until it is
cleared, and it cannot be cleared while its cause persists. The detection is in `monitors`.

**Torque off is the last reaction, not the first.** In a tensegrity a tendon without torque runs out, and the other
tendons pull the robot apart. Moreover, a detection may be wrong, and the gears may not hold by themselves. A servo is
therefore switched off only where its own report or its motion against a hold command proves that nothing else stops
it: an error of its own electronics (`hardware_error`), a wrong encoder on which its position loop relies
(`untrusted_encoder`), or a motor that winds on although it is commanded to stand still (`disobeys_hold`). A tendon that
moves for an unknown reason (`runaway`, `wrong_sign`) is held in place at its torque limit. A servo that is too hot pays
out its load, and finally switches itself off. Where one servo has been switched off, the others release slowly, all at
the same rate, and do not pull at the remaining structure.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Reaction(Enum):
    """Reaction of a tendon to a fault, from the mildest to the strongest; the value is its name in robot files."""

    WARN = "warn"
    HOLD = "hold"
    RELEASE = "release"
    TORQUE_OFF = "torque off"

    @property
    def strength(self) -> int:
        """Rank among the reactions; of several faults, the strongest reaction applies."""
        return list(Reaction).index(self)


READINGS, LENGTHS = "readings", "lengths"
"""What may show a fault without any commands."""


@dataclass(frozen=True)
class FaultRow:
    """One row of the table of faults.

    Args:
        remedy: what a person must do about the cause, in one line.
        reaction: default reaction of the tendon that has the fault; the robot file may choose another.
        persistence: consecutive bus cycles with the finding that make a fault, or the name of the setting with that
            number. A larger number detects the fault later and is less sensitive to damaged readings.
        latched: whether the fault stays until it is cleared. False: it ends with its cause, since no part of the robot
            is in doubt then.
        may_warn: whether the robot file may choose a mere warning as reaction.
        untrusted_length: the measured length is in doubt, so that no motion is computed from it.
        own_encoder_holds: with `untrusted_length`: a servo that goes to positions by its own encoder is nevertheless
            held at the length of that encoder.
        untrusted_encoder: a measuring encoder is in doubt. A servo that goes to positions by it would run away, so its
            torque goes off whichever reaction is chosen.
        jog_allowed: a person may move the tendon slowly out of the fault.
        shown_by: `READINGS`, or the `LENGTHS` of calibrated spools, if these alone show the fault, whatever was
            commanded; `tensegrity servo watch`, which commands nothing, reports it. "": it also takes the commands.
    """

    remedy: str
    reaction: Reaction = Reaction.HOLD
    persistence: int | str = 1
    latched: bool = True
    may_warn: bool = False
    untrusted_length: bool = False
    own_encoder_holds: bool = False
    untrusted_encoder: bool = False
    jog_allowed: bool = False
    shown_by: str = ""


TORQUE_OFF, RELEASE, WARN = Reaction.TORQUE_OFF, Reaction.RELEASE, Reaction.WARN
A_DAMAGED_READING = 2
"""Bus cycles that make a fault where a single reading may be damaged."""

KEPT = "; a servo of the X series keeps its error: switch it off and on, and home this tendon"

CONFIRMED = 3
"""Bus cycles within which a servo must confirm that its torque is off."""


class FaultKind(Enum):
    """Every kind of fault; the value is its name in robot files."""

    _value_: str
    row: FaultRow

    def __new__(cls, name: str, row: FaultRow) -> FaultKind:
        member = object.__new__(cls)
        member._value_, member.row = name, row
        return member

    # -- a servo ---------------------------------------------------------------------------------------------------
    SERVO_SILENT = (
        "servo_silent",
        FaultRow(
            "check its plug, its supply and its id", persistence="silent", untrusted_length=True, shown_by=READINGS
        ),
    )
    SERVO_RESTARTED = (
        "servo_restarted",
        FaultRow("check supply and plug", persistence=A_DAMAGED_READING),
    )
    WATCHDOG_UNARMED = (
        "watchdog_unarmed",
        FaultRow("find what prevents the driver from running its cycles on time", persistence=A_DAMAGED_READING),
    )
    HARDWARE_ERROR = (
        "hardware_error",
        FaultRow(
            "switch it off and on, home this tendon if the servo counts turns; replace it if the error comes back",
            TORQUE_OFF,
            A_DAMAGED_READING,
            shown_by=READINGS,
        ),
    )
    OVERLOAD = "overload", FaultRow(
        f"loosen what pulls against it{KEPT}", RELEASE, "persist", jog_allowed=True, shown_by=READINGS,
    )  # fmt: skip
    OVERHEATING = (
        "overheating",
        FaultRow(
            f"let it cool down, lower the pretension and look for rubbing{KEPT}",
            RELEASE,
            "persist",
            jog_allowed=True,
            shown_by=READINGS,
        ),
    )
    WARM = "warm", FaultRow(
        "let it rest soon or lower the pretension", WARN, "persist", latched=False, may_warn=True, shown_by=READINGS,
    )  # fmt: skip
    UNDERVOLTAGE = (
        "undervoltage",
        FaultRow(
            f"check supply, cable lengths and how many servos push at once{KEPT}",
            persistence="persist",
            shown_by=READINGS,
        ),
    )
    OVERVOLTAGE = (
        "overvoltage",
        FaultRow(
            "switch the supply off and set it to the voltage of the servo", persistence="persist", shown_by=READINGS
        ),
    )
    # -- a sensor --------------------------------------------------------------------------------------------------
    SENSOR_MISSING = (
        "sensor_missing",
        FaultRow(
            "check the plug of the sensor and the potentiometer board",
            persistence="missing",
            untrusted_length=True,
            shown_by=READINGS,
        ),
    )
    SENSOR_BROKEN = "sensor_broken", FaultRow(
        "check its wires for a break or a short and its shaft for the end stop",
        persistence="persist", untrusted_length=True, shown_by=READINGS,
    )  # fmt: skip
    SENSOR_JUMP = (
        "sensor_jump",
        FaultRow(
            "check sensor, wiring and coupling, then home this tendon again",
            untrusted_length=True,
            untrusted_encoder=True,
            shown_by=LENGTHS,
        ),
    )
    SENSOR_FROZEN = (
        "sensor_frozen",
        FaultRow("check that the sensor turns with the spool", untrusted_length=True, untrusted_encoder=True),
    )
    SENSORS_DISAGREE = "sensors_disagree", FaultRow(
        "tighten the coupling of the potentiometer and calibrate this tendon again",
        persistence="persist", untrusted_length=True, shown_by=LENGTHS,
    )  # fmt: skip
    TURNS_LOST = (
        "turns_lost",
        FaultRow("check the supply and home this tendon again", untrusted_length=True, untrusted_encoder=True),
    )
    # -- motion ----------------------------------------------------------------------------------------------------
    RUNAWAY = (
        "runaway",
        FaultRow(
            "cut the supply if it still moves; check the sensor, the bus and the servo",
            untrusted_length=True,
            own_encoder_holds=True,
        ),
    )
    WRONG_SIGN = "wrong_sign", FaultRow(
        "check the direction of servo and sensor in the robot file, and check whether it is overpowered",
        untrusted_length=True, own_encoder_holds=True,
    )  # fmt: skip
    DISOBEYS_HOLD = "disobeys_hold", FaultRow(
        "cut the supply if it still moves; check the bus and replace the servo", TORQUE_OFF, untrusted_length=True
    )  # fmt: skip
    TORQUE_STAYS_ON = (
        "torque_stays_on",
        FaultRow("cut the supply: nothing else stops this servo", TORQUE_OFF, CONFIRMED, untrusted_length=True),
    )
    WRONG_SPOOL = (
        "wrong_spool",
        FaultRow(
            "exchange ids, plugs or channels back and check that nothing is jammed",
            untrusted_length=True,
        ),
    )
    WOUND_BACKWARDS = "wound_backwards", FaultRow(
        "remove the tension by hand, wind the tendon in the other direction or set direction in the robot file, and "
        "calibrate again",
        persistence="persist", untrusted_length=True,
    )  # fmt: skip
    STUCK = "stuck", FaultRow("look for a caught tendon, a jammed spool or a torque limit that is too low")
    # -- limits of a tendon ----------------------------------------------------------------------------------------
    SPOOL_LIMIT = "spool_limit", FaultRow(
        "wind it back (`tensegrity servo calibrate`, after the driver has ended), check calibration and limits",
        persistence=A_DAMAGED_READING, jog_allowed=True, shown_by=LENGTHS,
    )  # fmt: skip
    TENSION_CEILING = (
        "tension_ceiling",
        FaultRow(
            "loosen this tendon or one that pulls against it",
            RELEASE,
            "persist",
            jog_allowed=True,
        ),
    )
    SLACK = "slack", FaultRow(
        "wind it in until it carries tension, before large motions",
        WARN, "persist", latched=False, may_warn=True, jog_allowed=True,
    )  # fmt: skip
    SNAPPED = "snapped", FaultRow(
        "look at this tendon before anything moves; if it is intact, tighten its knot and home it",
        persistence="snap_cycles",
    )  # fmt: skip
    # -- the bus, the commands and the clocks ------------------------------------------------------------------------
    PORT_LOST = "port_lost", FaultRow("plug the adapter in again; the port is opened by itself")
    BAD_PACKETS = (
        "bad_packets",
        FaultRow("check cables, termination, baud rate and whether two servos share an id", shown_by=READINGS),
    )
    DUPLICATE_ID = "duplicate_id", FaultRow("connect them one by one and give each its own id", shown_by=READINGS)
    SUPPLY_OVERDRAWN = (
        "supply_overdrawn",
        FaultRow(
            "lower the pretension, move fewer tendons at once, or take a stronger supply",
            persistence="persist",
            shown_by=READINGS,
        ),
    )
    STALE_COMMAND = (
        "stale_command",
        FaultRow("send a goal or call `hold`; start the controller where none runs", latched=False),
    )
    TWO_SOURCES = "two_sources", FaultRow("stop all but one", latched=False)
    REFUSED_COMMANDS = (
        "refused_commands",
        FaultRow("read the reason and correct the controller or the limits", persistence="refused", latched=False),
    )
    EMERGENCY_STOP = "emergency_stop", FaultRow("make sure that it is safe")
    CLOCK_JUMP = "clock_jump", FaultRow("stop the program that sets the clock")
    OVERRUN = (
        "overrun",
        FaultRow("raise the period, give the driver a dedicated processor, or set the return delay of the servos to 0"),
    )


ENDS = "; then call driver/release"
"""Text on what ends a latched fault whose cause has gone; the call also prepares, arms or retries what is needed."""
UNTRUSTED_LENGTH = frozenset(kind for kind in FaultKind if kind.row.untrusted_length)
"""Faults after which the measured length is in doubt."""
OWN_ENCODER_HOLDS = frozenset(kind for kind in FaultKind if kind.row.own_encoder_holds)
"""Those of them after which a servo that goes to positions by its own encoder is held at the encoder's length."""
UNTRUSTED_ENCODER = frozenset(kind for kind in FaultKind if kind.row.untrusted_encoder)
"""Faults of a measuring encoder after which a servo that goes to positions would run away."""
JOG_ALLOWED = frozenset(kind for kind in FaultKind if kind.row.jog_allowed)
"""Faults out of which a person may move the tendon slowly."""
SHOWN_BY_READINGS = frozenset(kind for kind in FaultKind if kind.row.shown_by == READINGS)
"""Faults that readings show without commands and without calibration."""
SHOWN_BY_LENGTHS = frozenset(kind for kind in FaultKind if kind.row.shown_by == LENGTHS)
"""Faults that the lengths of calibrated spools show without commands."""


@dataclass(frozen=True)
class Fault:
    """A detected fault.

    Attributes:
        kind: row of the table.
        tendon: name of the actuator that the fault concerns; None: the whole bus.
        cycle: number of the bus cycle that detected it.
        happened: observation, with values and units.
    """

    kind: FaultKind
    tendon: str | None
    cycle: int
    happened: str

    @property
    def remedy(self) -> str:
        """What a person must do about the cause."""
        return self.kind.row.remedy

    @property
    def cause(self) -> str:
        """Tendon, observation and remedy in one line."""
        return f"{self.tendon or 'bus'}: {self.happened}; {self.remedy}"

    @property
    def line(self) -> str:
        """`cause`, and then what ends the fault: for people at a running driver."""
        return self.cause + (ENDS if self.kind.row.latched else "")

    @property
    def key(self) -> tuple[FaultKind, str | None]:
        """Kind and tendon; two faults with one key are the same fault."""
        return self.kind, self.tendon
