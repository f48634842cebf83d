"""Thresholds and reactions of the safety layer: the `safety` block of a robot file (docs/faults.md, Settings)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, field_validator

from tensegrity_dynamics.errors import unknown_name
from tensegrity_dynamics.robots.file_errors import worded_error
from tensegrity_dynamics.robots.schema import (
    Count,
    Length,
    PositiveForce,
    PositiveLength,
    PositiveNumber,
    PositiveSpeed,
    PositiveTime,
    SettingsBlock,
)

from .faults import FaultKind, Reaction

NAMES = {kind.value: kind for kind in FaultKind}


def _fault_kind(value: Any) -> FaultKind:
    if isinstance(value, FaultKind):
        return value
    if not isinstance(value, str) or value not in NAMES:
        raise worded_error(((), unknown_name("fault", value, NAMES)))
    return NAMES[value]


def _ascending(pair: tuple[float, ...]) -> tuple[float, ...]:
    if not pair[0] < pair[1]:
        raise worded_error(((), f"{pair[0]:g} is not below {pair[1]:g}; put the lower one first."))
    return pair


def _at_least_hold(value: Any) -> Any:
    if value is None:
        return None
    allowed = [each.value for each in Reaction if each is not Reaction.WARN]
    if value is Reaction.WARN or (not isinstance(value, Reaction) and value not in allowed):
        raise worded_error(((), f"found {value!r}; allowed: {', '.join(map(repr, allowed))}."))
    return value


Kind = Annotated[FaultKind, BeforeValidator(_fault_kind)]
Pair = Annotated[tuple[PositiveNumber, ...], Field(min_length=2, max_length=2), AfterValidator(_ascending)]


class SafetySettings(SettingsBlock):
    """Thresholds of all monitors and the reactions; times in bus cycles, the rest in SI units and degrees Celsius.

    Args:
        period: s of a bus cycle as planned.
        silent: cycles that a servo may not answer; more of them ride out more lost packets and stop it later.
        missing: cycles that a sensor may give no reading. persist: cycles for which a value must be beyond its limit.
        window: cycles over which motion is compared with commands; more of them find slower motion, later.
        lag: cycles by which motion may follow its command. Raising it tolerates slower servos, keeps a greater distance
            from every limit, and finds motion without a command later.
        tension_lag: cycles for which winding in may go on as commanded below the tension ceiling. Servos limit their
            torque themselves, and one in wheel mode turns slower under load than it is commanded: looking further ahead
            would leave it no speed on a stiff, tight tendon.
        speed_gain: factor by which a servo may run faster than commanded. motion_tolerance: m of motion that count as
            standing still.
        stuck_distance: m that must have been commanded before standing still is a fault.
        disagreement: m allowed between two sensors of one spool.
        jump: m allowed from cycle to cycle beyond what the rate explains.
        limit_margin: m allowed beyond the position limits. tension_margin: factor on the tension ceiling.
        slack_tension: N below which a tendon is slack; None takes half of the actuator's minimum tension.
        wrong_pull: N with which a servo may push in the direction of paying out, more than friction of gear and spool
            ask for; None takes a quarter of the tension ceiling.
        snap_drop: N that a snapped tendon loses within `snap_cycles`.
        largest_load: fraction of the stall torque. temperatures: degrees Celsius, warning and limit.
        voltages: V, lowest and highest. supply_current: A of the supply for all servos together; None: not watched.
        bad_packets: fraction of missing or damaged packets allowed over `packet_window` cycles.
        stale: cycles without a command. refused: cycles in a row with refused commands.
        clock_jump: s that the clock which stamps commands may differ from the time that passed.
        overrun: factor on the period above which a cycle is late. overruns: late cycles allowed less one, of the last
            `overrun_window`.
        release_rate: m/s at which a tendon is paid out. release_distance: m paid out at most.
        identify: m by which each spool is moved when a driver begins, to see that it is the one that answers; 0: not.
        reactions: by kind of fault, where they differ from the table of faults.
        others: what tendons without a fault of their own do; None: they hold, and release where a servo has let go.
        latched: faults that stay until they are cleared.
    """

    period: PositiveTime = 0.02
    silent: Count = 5
    missing: Count = 5
    persist: Count = 5
    window: Count = 25
    lag: Count = 5
    tension_lag: Count = 1
    speed_gain: PositiveNumber = 1.5
    motion_tolerance: PositiveLength = 1.0e-3
    stuck_distance: PositiveLength = 2.0e-3
    disagreement: PositiveLength = 2.0e-3
    jump: PositiveLength = 2.0e-3
    limit_margin: PositiveLength = 1.0e-3
    tension_margin: PositiveNumber = 1.05
    slack_tension: PositiveForce | None = None
    wrong_pull: PositiveForce | None = None
    snap_drop: PositiveForce = 10.0
    snap_cycles: Count = 3
    largest_load: PositiveNumber = 0.95
    temperatures: Pair = (60.0, 70.0)
    voltages: Pair = (9.0, 12.6)
    supply_current: PositiveNumber | None = None
    bad_packets: PositiveNumber = 0.1
    packet_window: Count = 25
    stale: Count = 25
    refused: Count = 25
    clock_jump: PositiveTime = 0.5
    overrun: PositiveNumber = 1.5
    overruns: Count = 3
    overrun_window: Count = 25
    release_rate: PositiveSpeed = 5.0e-3
    release_distance: PositiveLength = 10.0e-3
    identify: Annotated[Length, Field(ge=0)] = 0.6e-3
    reactions: Mapping[Kind, Reaction] = {}
    others: Annotated[Reaction | None, BeforeValidator(_at_least_hold)] = None
    latched: tuple[Kind, ...] = tuple(kind for kind in FaultKind if kind.row.latched)

    @field_validator("reactions")
    @classmethod
    def _warnings_are_harmless(cls, reactions: Mapping[FaultKind, Reaction]) -> Mapping[FaultKind, Reaction]:
        allowed = " and ".join(kind.value for kind in FaultKind if kind.row.may_warn)
        problems = [
            ((kind.value,), f"choose hold, release or torque off; only {allowed} may be a warning alone.")
            for kind, reaction in reactions.items()
            if reaction is Reaction.WARN and not kind.row.may_warn
        ]
        if problems:
            raise worded_error(*problems)
        return reactions

    @property
    def stale_time(self) -> float:
        """s without a command, or without a bus cycle, that are a fault by themselves.

        Where the robot file (or hardware whose time stands still with the driver) allows a longer cycle, that.
        """
        return max(self.stale, self.overrun) * self.period

    def reaction(self, kind: FaultKind) -> Reaction:
        """Reaction to a kind of fault: the chosen one, or that of the table of faults."""
        return self.reactions.get(kind, kind.row.reaction)

    def persistence(self, kind: FaultKind) -> int:
        """Bus cycles in a row for which a finding of this kind must be there to make a fault."""
        cycles = kind.row.persistence
        return getattr(self, cycles) if isinstance(cycles, str) else cycles
