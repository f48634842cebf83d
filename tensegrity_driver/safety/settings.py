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
        period: planned bus cycle [s].
        silent: cycles that a servo may stay without an answer; more tolerate more lost packets and stop it later.
        missing: cycles that a sensor may stay without a reading. persist: cycles for which a value must be beyond its
            limit.
        window: cycles over which motion is compared with commands; more detect slower motion, but later.
        lag: cycles by which motion may follow its command. More tolerate slower servos, keep a greater distance from
            every limit, and detect motion without a command later.
        tension_lag: cycles for which winding in may go on as commanded below the tension ceiling. Servos limit their
            torque themselves, and a servo in wheel mode turns more slowly under load than commanded: a longer lead
            would leave it no speed on a stiff, tight tendon.
        speed_gain: factor by which a servo may run faster than commanded. motion_tolerance: motion that counts as
            standing still [m].
        stuck_distance: commanded distance without motion that is a fault [m].
        disagreement: allowed difference between two sensors of one spool [m].
        jump: allowed change from cycle to cycle beyond the one that the rate explains [m].
        limit_margin: allowed distance beyond the position limits [m]. tension_margin: factor on the tension ceiling.
        slack_tension: tension below which a tendon is slack [N]; None: half of the actuator's minimum tension.
        wrong_pull: force with which a servo may push in the direction of paying out [N], above the friction of gear and
            spool; None: a quarter of the tension ceiling.
        snap_drop: tension that a snapped tendon loses within `snap_cycles` [N].
        largest_load: fraction of the stall torque. temperatures: warning and limit [degrees Celsius].
        voltages: lowest and highest [V]. supply_current: of the supply for all servos together [A]; None: not watched.
        bad_packets: allowed fraction of missing or damaged packets over `packet_window` cycles.
        stale: cycles without a command. refused: consecutive cycles with refused commands.
        clock_jump: allowed difference between the clock that stamps commands and the elapsed time [s].
        overrun: factor on the period above which a cycle is late. overruns: late cycles among the last
            `overrun_window` that make a fault.
        release_rate: speed of paying out a tendon [m/s]. release_distance: largest length paid out [m].
        identify: motion of each spool at the start of a driver, which checks that the right spool answers [m]; 0: none.
        reactions: by kind of fault, where they differ from the table of faults.
        others: reaction of tendons without a fault of their own; None: they hold, and release where a servo has been
            switched off.
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
        """Time without a command, or without a bus cycle, that is a fault in itself [s].

        If the robot file (or hardware whose time stands still with the driver) allows a longer cycle, that cycle.
        """
        return max(self.stale, self.overrun) * self.period

    def reaction(self, kind: FaultKind) -> Reaction:
        """Reaction to a kind of fault: the chosen one, or the one of the table of faults."""
        return self.reactions.get(kind, kind.row.reaction)

    def persistence(self, kind: FaultKind) -> int:
        """Consecutive bus cycles for which a finding of this kind must persist to make a fault."""
        cycles = kind.row.persistence
        return getattr(self, cycles) if isinstance(cycles, str) else cycles
