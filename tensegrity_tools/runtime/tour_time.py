"""Progress of time between two checks of a tour: in real time, or in lock-step by simulated time only.

In real time, the state of the robot at which a goal is sent depends on the load of the computer. In lock-step the
simulation is paused whenever the tour checks the state or sends a goal: it runs up to a given time (parameter
`pause_at` of the simulator), the nodes answer the state at this time, and the tour decides by that state. Two tours are
therefore equal bit for bit, independently of the load of the computer.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tensegrity_dynamics.errors import TensegrityError

from .node_graph import NodeGraph

LOOK = 0.1
"""Interval between two checks [s], in real or simulated time."""
STRIDE = 1.0
"""Interval of simulated time between two checks while no decision is due [s]."""
SILENCE = 30.0
"""Wall time without progress after which a tour fails [s]."""


class ByTheClock:
    """Real time: the robot continues to move between and during checks."""

    def __init__(self, watcher: Any) -> None:
        self._watcher, self._last, self._heard = watcher, -1.0, time.monotonic()

    @property
    def moving(self) -> bool:
        """Whether the controller reports a motion in progress."""
        return bool(self._watcher.moving)

    def settle(self) -> None:
        """No effect, since the robot is not paused."""

    def go_on(self, until: float, alive: Callable[[], None]) -> None:
        """Wait for `LOOK` s. Raises TensegrityError if the robot's time does not advance for `SILENCE` s."""
        watcher = self._watcher
        watcher.spin(LOOK)
        alive()
        if watcher.time > self._last:
            self._last, self._heard = watcher.time, time.monotonic()
        elif time.monotonic() - self._heard > SILENCE:
            raise TensegrityError(f"the robot's time has stood still for {SILENCE:g} s; is the simulator running?")

    def forget(self) -> None:
        """Restart the measurement of wall time without progress, after planning."""
        self._heard = time.monotonic()

    def end(self) -> None:
        """No effect, since the robot is not paused."""


class InLockstep:
    """Simulation in lock-step that starts paused, and is paused at every check.

    Args:
        watcher: a `robot_client.Watcher`. late: largest age of the newest answered state [s].
    """

    def __init__(self, watcher: Any, late: float = 0.0) -> None:
        self._watcher, self._late, self._mute = watcher, late, False
        watcher.hear_references()

    @property
    def moving(self) -> bool:
        """Whether the controller was moving the robot at the last state that it has certainly answered."""
        watcher = self._watcher
        settled = watcher.time - self._late
        if settled < 0.0:
            return False
        if not self._mute:  # the message about that state may not have arrived yet
            self._mute = not watcher.wait_until(lambda: watcher.phase_at(settled) is not None, SILENCE)
        phase = watcher.phase_at(settled)
        self._mute = self._mute and phase is None  # a controller that cannot continue has no reference
        return bool(phase == "moving")

    def settle(self) -> None:
        """Pause until the last state is answered. Raises TensegrityError if it is not."""
        end = time.monotonic() + SILENCE
        while not self._watcher.pause(True):
            self._watcher.spin(0.002)
            if time.monotonic() > end:
                raise TensegrityError(f"the last state is not answered within {SILENCE:g} s.{self._why()}")

    def go_on(self, until: float, alive: Callable[[], None]) -> None:
        """Run towards `until` [s] for a time between `LOOK` and `STRIDE`, then pause."""
        watcher = self._watcher
        goal = watcher.time + min(max(until - watcher.time, LOOK), STRIDE)
        watcher.pause_at(goal)
        watcher.pause(False)
        last, heard = watcher.time, time.monotonic()
        while watcher.time < goal - 1e-9:
            watcher.spin_once()
            alive()
            if watcher.time > last:
                last, heard = watcher.time, time.monotonic()
            elif time.monotonic() - heard > SILENCE:
                raise TensegrityError(f"the simulated time has stood still for {SILENCE:g} s.{self._why()}")
        self.settle()

    def forget(self) -> None:
        """No effect, since wall time is not measured."""

    def end(self) -> None:
        """Resume the simulation."""
        self._watcher.pause_at(0.0)
        self._watcher.pause(False)

    def _why(self) -> str:
        said = self._watcher.diagnostics.get("simulator")
        return f" The simulator says: {said.message}" if said is not None else ""


def in_lockstep(graph: NodeGraph) -> bool:
    """Whether a graph is a simulation in lock-step, which can be paused."""
    return graph.source.name == "simulator" and bool(graph.source.parameters.get("lockstep"))


def for_tours(graph: NodeGraph) -> NodeGraph:
    """Copy of a graph for a tour: in lock-step it starts paused, and the controller reports its phase at every
    state."""
    if not in_lockstep(graph) or "controller" not in graph:
        return graph
    if "recorder" in graph:
        graph = graph.with_parameters("recorder", release=False)
    return graph.with_parameters("simulator", paused=True).with_parameters("controller", reference_rate=0.0)


def tour_time(watcher: Any, graph: NodeGraph) -> ByTheClock | InLockstep:
    """Time of a tour on a graph: `InLockstep` for a simulation in lock-step, else `ByTheClock`."""
    if not in_lockstep(graph):
        return ByTheClock(watcher)
    source, period = graph.source, graph.choice.period
    late = sum(round(source.parameters.get(name, 0.0) / period) for name in ("state_delay", "delay_jitter"))
    return InLockstep(watcher, late * period)
