"""How time goes on between two looks of a tour: by the clock, or in lock-step by simulated time alone.

By the clock a goal is sent where the robot happens to be when its computer gets to it. In lock-step the simulation
stands still whenever the tour looks or sends: it runs up to a time (parameter `pause_at` of the simulator), the state
there is answered, and then the tour decides by what belongs to that state. So two tours are the same to the last bit,
however busy the machine is.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tensegrity_dynamics.errors import TensegrityError

from .node_graph import NodeGraph

LOOK = 0.1
"""s between two looks, of the clock or of simulated time."""
STRIDE = 1.0
"""s of simulated time between two looks while nothing is decided."""
SILENCE = 30.0
"""s of wall time without any progress."""


class ByTheClock:
    """The robot moves on by itself; a look is as late as it is."""

    def __init__(self, watcher: Any) -> None:
        self._watcher, self._last, self._heard = watcher, -1.0, time.monotonic()

    @property
    def moving(self) -> bool:
        """Whether the controller says that a motion is under way."""
        return bool(self._watcher.moving)

    def settle(self) -> None:
        """Nothing stands still."""

    def go_on(self, until: float, alive: Callable[[], None]) -> None:
        """Let a little time pass. Raises TensegrityError: the robot's time has stood still."""
        watcher = self._watcher
        watcher.spin(LOOK)
        alive()
        if watcher.time > self._last:
            self._last, self._heard = watcher.time, time.monotonic()
        elif time.monotonic() - self._heard > SILENCE:
            raise TensegrityError(f"the robot's time has stood still for {SILENCE:g} s; is the simulator running?")

    def forget(self) -> None:
        """A plan has taken wall time."""
        self._heard = time.monotonic()

    def end(self) -> None:
        """Nothing to let go."""


class InLockstep:
    """A simulation in lock-step that began paused, and that stands still at every look.

    Args:
        watcher: a `robot_client.Watcher`. late: s by which the newest state that is answered may be old.
    """

    def __init__(self, watcher: Any, late: float = 0.0) -> None:
        self._watcher, self._late, self._mute = watcher, late, False
        watcher.hear_references()

    @property
    def moving(self) -> bool:
        """Whether the controller was on its way at the state that it has answered last for certain."""
        watcher = self._watcher
        settled = watcher.time - self._late
        if settled < 0.0:
            return False
        if not self._mute:  # what was said of that state may still be on its way to here
            self._mute = not watcher.wait_until(lambda: watcher.phase_at(settled) is not None, SILENCE)
        phase = watcher.phase_at(settled)
        self._mute = self._mute and phase is None  # a controller that cannot go on has no reference
        return bool(phase == "moving")

    def settle(self) -> None:
        """Stand still until the last state is answered. Raises TensegrityError: it is not."""
        end = time.monotonic() + SILENCE
        while not self._watcher.pause(True):
            self._watcher.spin(0.002)
            if time.monotonic() > end:
                raise TensegrityError(f"the last state is not answered within {SILENCE:g} s.{self._why()}")

    def go_on(self, until: float, alive: Callable[[], None]) -> None:
        """Run to `until` [s], in strides, or a look further where that is past; and stand still there."""
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
        """Wall time means nothing here."""

    def end(self) -> None:
        """Let the simulation run on."""
        self._watcher.pause_at(0.0)
        self._watcher.pause(False)

    def _why(self) -> str:
        said = self._watcher.diagnostics.get("simulator")
        return f" The simulator says: {said.message}" if said is not None else ""


def in_lockstep(graph: NodeGraph) -> bool:
    """Whether it is a simulation in lock-step, which stands still on command."""
    return graph.source.name == "simulator" and bool(graph.source.parameters.get("lockstep"))


def for_tours(graph: NodeGraph) -> NodeGraph:
    """The same graph as a tour needs it: in lock-step it begins paused, and the controller tells its phase always."""
    if not in_lockstep(graph) or "controller" not in graph:
        return graph
    if "recorder" in graph:
        graph = graph.with_parameters("recorder", release=False)
    return graph.with_parameters("simulator", paused=True).with_parameters("controller", reference_rate=0.0)


def tour_time(watcher: Any, graph: NodeGraph) -> ByTheClock | InLockstep:
    """What suits a graph: `InLockstep` for a simulation in lock-step."""
    if not in_lockstep(graph):
        return ByTheClock(watcher)
    source, period = graph.source, graph.choice.period
    late = sum(round(source.parameters.get(name, 0.0) / period) for name in ("state_delay", "delay_jitter"))
    return InLockstep(watcher, late * period)
