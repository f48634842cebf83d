"""Monitors: each detects one or two kinds of faults in every bus cycle; importing this package registers all."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ...spools.spool import Spool
from ..faults import FaultKind
from ..settings import SafetySettings
from . import bus, limits, motion, sensors  # noqa: F401  each registers its monitors
from .monitor import BUS_MONITORS, TENDON_MONITORS, Monitor

__all__ = ["Monitor", "bus_monitors", "make_monitors", "tendon_monitors"]

ORDER = {kind: number for number, kind in enumerate(FaultKind)}


def bus_monitors(settings: SafetySettings, kinds: Collection[FaultKind] = tuple(FaultKind)) -> list[Monitor]:
    """Monitors of the bus, the commands and the clocks that find one of the kinds."""
    return [each.make(settings) for each in BUS_MONITORS if set(each.kinds) & set(kinds)]


def tendon_monitors(
    spool: Spool, settings: SafetySettings, kinds: Collection[FaultKind] = tuple(FaultKind)
) -> list[Monitor]:
    """Monitors of one tendon that find one of the kinds, in the order of the table of faults."""
    chosen = [each for each in TENDON_MONITORS if set(each.kinds) & set(kinds)]
    return [each.make(settings, spool) for each in sorted(chosen, key=lambda each: ORDER[each.kinds[0]])]


def make_monitors(spools: Sequence[Spool], settings: SafetySettings) -> list[Monitor]:
    """All monitors for these spools and their bus."""
    return bus_monitors(settings) + [each for spool in spools for each in tendon_monitors(spool, settings)]
