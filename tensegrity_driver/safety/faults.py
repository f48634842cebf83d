"""What a fault is, what is done about it, and how it stays until somebody has looked.

A fault stops the tendon it concerns in the way that the robot file chooses and makes all others hold; it stays latched
until it is cleared, and cannot be cleared while its cause is there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from enum import Enum

from tensegrity_dynamics.errors import CommandRefused, TensegrityError, unknown_name


class Reaction(Enum):
    """What is done, from the mildest to the strongest."""

    WARN = "warn"
    HOLD = "hold"
    RELEASE = "release"
    TORQUE_OFF = "torque off"


STRENGTH = {reaction: place for place, reaction in enumerate(Reaction)}


class FaultKind(Enum):
    """Every fault that a monitor finds; the value is its name in robot files."""

    SERVO_SILENT = "servo_silent"
    SERVO_RESTARTED = "servo_restarted"
    WATCHDOG_UNARMED = "watchdog_unarmed"
    HARDWARE_ERROR = "hardware_error"
    OVERLOAD = "overload"
    OVERHEATING = "overheating"
    WARM = "warm"
    UNDERVOLTAGE = "undervoltage"
    OVERVOLTAGE = "overvoltage"
    SENSOR_MISSING = "sensor_missing"
    SENSOR_BROKEN = "sensor_broken"
    SENSOR_JUMP = "sensor_jump"
    SENSOR_FROZEN = "sensor_frozen"
    SENSORS_DISAGREE = "sensors_disagree"
    TURNS_LOST = "turns_lost"
    RUNAWAY = "runaway"
    WRONG_SIGN = "wrong_sign"
    STUCK = "stuck"
    SPOOL_LIMIT = "spool_limit"
    TENSION_CEILING = "tension_ceiling"
    SLACK = "slack"
    SNAPPED = "snapped"
    PORT_LOST = "port_lost"
    BAD_PACKETS = "bad_packets"
    DUPLICATE_ID = "duplicate_id"
    SUPPLY_OVERDRAWN = "supply_overdrawn"
    STALE_COMMAND = "stale_command"
    TWO_SOURCES = "two_sources"
    REFUSED_COMMANDS = "refused_commands"
    EMERGENCY_STOP = "emergency_stop"
    CLOCK_JUMP = "clock_jump"
    OVERRUN = "overrun"


DEFAULT_REACTIONS: Mapping[FaultKind, Reaction] = {
    kind: {
        FaultKind.WARM: Reaction.WARN,
        FaultKind.SLACK: Reaction.WARN,
        FaultKind.RUNAWAY: Reaction.TORQUE_OFF,
        FaultKind.WRONG_SIGN: Reaction.TORQUE_OFF,
        FaultKind.OVERHEATING: Reaction.TORQUE_OFF,
        FaultKind.HARDWARE_ERROR: Reaction.TORQUE_OFF,
        FaultKind.TENSION_CEILING: Reaction.RELEASE,
        FaultKind.OVERLOAD: Reaction.RELEASE,
    }.get(kind, Reaction.HOLD)
    for kind in FaultKind
}
SELF_CLEARING = frozenset(
    {FaultKind.WARM, FaultKind.SLACK, FaultKind.STALE_COMMAND, FaultKind.TWO_SOURCES, FaultKind.REFUSED_COMMANDS}
)
"""Faults that end with their cause: no part of the robot is in doubt once a proper command is there again."""


@dataclass(frozen=True)
class Fault:
    """One fault: what happened to which tendon (None: the whole bus) in which bus cycle, and what to do."""

    kind: FaultKind
    tendon: str | None
    cycle: int
    happened: str
    remedy: str

    @property
    def line(self) -> str:
        """What a person reads."""
        return f"{self.tendon or 'bus'}: {self.happened}; {self.remedy}"

    @property
    def key(self) -> tuple[FaultKind, str | None]:
        """Faults of one kind on one tendon are one fault."""
        return self.kind, self.tendon


@dataclass(frozen=True)
class SafetySettings:
    """Thresholds of all monitors and the reactions; times are in bus cycles, the rest in SI units and degrees Celsius.

    Args:
        period: s of a bus cycle as planned.
        silent, missing, persist: cycles that a servo or a potentiometer may be silent, and that a value must stay
            outside its limits before it counts.
        window, lag: cycles over which motion is compared with commands, and by which it may follow them later.
        tension_lag: cycles for which winding in may go on as told below the tension ceiling. Servos limit their torque
            themselves, and one in wheel mode turns slower under load than it is asked to: looking further ahead would
            leave it no speed on a stiff, tight tendon.
        speed_gain: a servo may run faster than asked by this factor. motion_tolerance: m of motion that says nothing.
        stuck_distance: m that must have been commanded before standing still counts.
        disagreement: m between two sensors of one spool. jump: m beyond what the rate allows from cycle to cycle.
        limit_margin: m beyond the position limits. tension_margin: factor on the tension ceiling.
        slack_tension: N; None takes half of the actuator's minimum tension. snap_drop: N lost within snap_cycles.
        largest_load: fraction of the stall torque. temperatures: warning and limit. voltages: V, lowest and highest.
        supply_current: A of the supply, or None.
        bad_packets: fraction over packet_window cycles. stale: cycles without a command. refused: cycles in a row in
            which commands are refused. clock_jump: s. overrun: factor on the period; overruns: of the last
            overrun_window cycles.
        release_rate: m/s at which a tendon is paid out. release_distance: m at most.
        reactions: where they differ from DEFAULT_REACTIONS. others: what tendons without a fault of their own do.
        latched: faults that stay; all but SELF_CLEARING.
    """

    period: float = 0.02
    silent: int = 5
    missing: int = 5
    persist: int = 5
    window: int = 25
    lag: int = 5
    tension_lag: int = 1
    speed_gain: float = 1.5
    motion_tolerance: float = 1.0e-3
    stuck_distance: float = 2.0e-3
    disagreement: float = 2.0e-3
    jump: float = 2.0e-3
    limit_margin: float = 1.0e-3
    tension_margin: float = 1.05
    slack_tension: float | None = None
    snap_drop: float = 10.0
    snap_cycles: int = 3
    largest_load: float = 0.95
    temperatures: tuple[float, float] = (60.0, 70.0)
    voltages: tuple[float, float] = (9.0, 12.6)
    supply_current: float | None = None
    bad_packets: float = 0.1
    packet_window: int = 25
    stale: int = 25
    refused: int = 25
    clock_jump: float = 0.5
    overrun: float = 1.5
    overruns: int = 3
    overrun_window: int = 25
    release_rate: float = 5.0e-3
    release_distance: float = 10.0e-3
    reactions: Mapping[FaultKind, Reaction] = field(default_factory=dict)
    others: Reaction = Reaction.HOLD
    latched: frozenset[FaultKind] = frozenset(FaultKind) - SELF_CLEARING

    def __post_init__(self) -> None:
        for each in fields(self):
            value, of = getattr(self, each.name), str(each.type)
            whole = of == "int"
            if (whole or of.startswith("float")) and not (value is None and of.endswith("None")):
                allowed = isinstance(value, int if whole else (int, float)) and not isinstance(value, bool)
                if not (allowed and math.isfinite(value) and value > 0):
                    what = "whole" if whole else "finite"
                    raise TensegrityError(f"safety.{each.name} is {value!r}, must be a {what} number above zero.")
            if of.startswith("tuple") and not _two_in_order(value):
                raise TensegrityError(
                    f"safety.{each.name} is {value!r}, must be two finite numbers, the lower one first."
                )
        if self.others is Reaction.WARN:
            raise TensegrityError(
                "safety.others is 'warn'; while one tendon has a fault the others must at least hold."
            )
        harmless = {FaultKind.WARM, FaultKind.SLACK}
        for kind, reaction in self.reactions.items():
            if reaction is Reaction.WARN and kind not in harmless:
                raise TensegrityError(
                    f"safety.reactions.{kind.value} is 'warn'; choose hold, release or torque off. Only "
                    f"{' and '.join(sorted(each.value for each in harmless))} may be a warning alone."
                )

    def reaction(self, kind: FaultKind) -> Reaction:
        """What is done about a kind of fault."""
        return self.reactions.get(kind, DEFAULT_REACTIONS[kind])

    @classmethod
    def from_mapping(cls, block: Mapping[str, object]) -> SafetySettings:
        """Settings from plain data, as a robot file carries them.

        Raises:
            TensegrityError: unknown field, fault or reaction, naming the nearest known one.
        """
        values = dict(block)
        known = [each.name for each in fields(cls)]
        for name in values:
            if name not in known:
                raise TensegrityError("safety: " + unknown_name("setting", name, known))
        if "reactions" in values:
            chosen = values["reactions"]
            if not isinstance(chosen, Mapping):
                raise TensegrityError(f"safety.reactions is {chosen!r}, must name a reaction for each fault.")
            values["reactions"] = {
                _named(FaultKind, "fault", kind): _named(Reaction, "reaction", reaction)
                for kind, reaction in chosen.items()
            }
        if "others" in values:
            values["others"] = _named(Reaction, "reaction", values["others"])
        if "latched" in values:
            latched = values["latched"]
            if not isinstance(latched, Iterable):
                raise TensegrityError(f"safety.latched is {latched}, must be a list of faults.")
            values["latched"] = frozenset(_named(FaultKind, "fault", each) for each in latched)
        for name in ("temperatures", "voltages"):
            if isinstance(values.get(name), list):
                values[name] = tuple(values[name])  # type: ignore[arg-type]
        return cls(**values)  # type: ignore[arg-type]


def _two_in_order(value: object) -> bool:
    """Whether a value is two finite numbers, the lower one first."""
    if not isinstance(value, tuple) or len(value) != 2 or not all(isinstance(each, (int, float)) for each in value):
        return False
    return all(map(math.isfinite, value)) and value[0] < value[1]


def _named(kind: type[Enum], what: str, value: object) -> Enum:
    """The member of an enumeration with a value (or the member itself)."""
    if isinstance(value, kind):
        return value
    for member in kind:
        if member.value == value:
            return member
    raise TensegrityError("safety: " + unknown_name(what, value, [each.value for each in kind]))


class FaultLatch:
    """Which faults hold at present; a latched one stays until it is cleared after its cause has gone."""

    def __init__(self, settings: SafetySettings) -> None:
        self.settings = settings
        self._held: dict[tuple[FaultKind, str | None], Fault] = {}
        self._present: set[tuple[FaultKind, str | None]] = set()

    def update(self, found: Iterable[Fault]) -> tuple[Fault, ...]:
        """Take the faults found in one cycle; returns those that are new."""
        found = tuple(found)
        self._present = {fault.key for fault in found}
        new = tuple(fault for fault in found if fault.key not in self._held)
        self._held.update({fault.key: fault for fault in new})
        for key in [key for key in self._held if key not in self._present and key[0] not in self.settings.latched]:
            del self._held[key]
        return new

    @property
    def faults(self) -> tuple[Fault, ...]:
        """All that hold, the first one first."""
        return tuple(self._held.values())

    def reaction(self, tendon: str) -> Reaction | None:
        """What this tendon has to do, or None where it is free to follow commands."""
        strongest: Reaction | None = None
        for fault in self._held.values():
            reaction = self.settings.reaction(fault.kind)
            if reaction is Reaction.WARN:
                continue
            if fault.tendon is not None and fault.tendon != tendon:
                reaction = self.settings.others
            if strongest is None or STRENGTH[reaction] > STRENGTH[strongest]:
                strongest = reaction
        return strongest

    @property
    def latched(self) -> tuple[Fault, ...]:
        """Those that stay until they are cleared; the others end with their cause."""
        return tuple(fault for fault in self._held.values() if fault.kind in self.settings.latched)

    def clear(self) -> tuple[Fault, ...]:
        """Forget the latched faults; returns them. Those that end with their cause stay until it has ended.

        Raises:
            CommandRefused: the cause of a latched fault is still there, with the lines of all such faults.
        """
        held = self.latched
        still = [fault.line for fault in held if fault.key in self._present]
        if still:
            raise CommandRefused("faults cannot be cleared while their causes are there: " + " | ".join(still))
        for fault in held:
            del self._held[fault.key]
        return held

    def restore(self, faults: Iterable[Fault]) -> None:
        """Latch faults again that were cleared too early."""
        self._held.update({fault.key: fault for fault in faults})
