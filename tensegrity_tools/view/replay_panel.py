"""Time bar of a replay in the browser: seek, pause, rate, loop."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import viser

from .state import Answer

QUIET = 0.6
"""Time after the last input of a user to a field until the replay updates it again [s]."""
LONG, STEP, FINE_STEP = 10.0, 0.1, 0.01
"""Length of a long recording, and steps of the time bar for long and for short recordings [s]; the field shows the same
number of digits."""
SLOWEST, FASTEST = 0.01, 100.0


@dataclass(frozen=True)
class Playback:
    """State of a replay.

    Args:
        position, end: time from the start of the recording, and its length [s]. rate: robot seconds per second.
        paused, loop: whether it is paused, and whether it restarts at its end.
    """

    position: float
    end: float
    rate: float = 1.0
    paused: bool = False
    loop: bool = False


# Called with the name of the changed quantity ("position" [s], "rate", "paused", "loop") and its value.
SteerCallback = Callable[[str, float | bool], Answer]


class ReplayPanel:
    """Fields of the replay; they follow the replay, except those that a user has just changed.

    Args:
        server: viser server; the fields are added to its open container.
        playback: present state of the replay.
        on_steer: function that is called with changes by a user.
    """

    def __init__(self, server: viser.ViserServer, playback: Playback, on_steer: SteerCallback) -> None:
        gui, self._on_steer = server.gui, on_steer
        self.touched: dict[str, float] = {}
        self._refused = ""
        self.end = playback.end
        longest = max(playback.end, FINE_STEP)
        self.bar = gui.add_slider(
            "Time [s]", min=0.0, max=longest, step=STEP if longest >= LONG else FINE_STEP,
            initial_value=0.0, hint="drag to go to a time of the recording",
        )  # fmt: skip
        self._pause = gui.add_button("Pause", icon=viser.Icon.PLAYER_PAUSE, color="blue")
        self._play = gui.add_button("Play", icon=viser.Icon.PLAYER_PLAY, color="teal")
        self.rate = gui.add_number(
            "Rate", playback.rate, min=SLOWEST, max=FASTEST, step=0.01, hint="robot seconds per second"
        )
        self._loop = gui.add_checkbox("Loop", playback.loop, hint="from the end to the start again")
        self.bar.on_update(lambda event: self._changed("position", float(event.target.value), event.client))
        self.rate.on_update(lambda event: self._changed("rate", float(event.target.value), event.client))
        self._loop.on_update(lambda event: self._changed("loop", bool(event.target.value), event.client))
        self._pause.on_click(lambda event: self._changed("paused", True, event.client))
        self._play.on_click(lambda event: self._changed("paused", False, event.client))
        self.update(playback)

    def update(self, playback: Playback) -> None:
        """Show the state of the replay."""
        now = time.monotonic()
        if not self._held("position", now):
            self.bar.value = round(min(max(playback.position, 0.0), self.end), 3)
        if not self._held("rate", now):
            self.rate.value = playback.rate
        if not self._held("loop", now):
            self._loop.value = playback.loop
        if not self._held("paused", now):
            self._show_paused(playback.paused)

    def _held(self, name: str, now: float) -> bool:
        return now - self.touched.get(name, -QUIET) < QUIET

    def _show_paused(self, paused: bool) -> None:
        self._pause.visible, self._play.visible = not paused, paused

    def _changed(self, name: str, value: float | bool, client: viser.ClientHandle | None) -> None:
        if client is None:  # changed by `update`
            return
        self.touched[name] = time.monotonic()
        if name == "position":
            value = min(max(value, 0.0), self.end)
        elif name == "rate":
            value = min(max(value, SLOWEST), FASTEST)
        elif name == "paused":
            self._show_paused(bool(value))
        answer = self._on_steer(name, value)
        said, self._refused = self._refused, "" if answer.accepted else answer.text
        if self._refused and self._refused != said:  # once, however long the bar is dragged
            client.add_notification("The replay cannot be steered", answer.text, color="red", auto_close_seconds=8.0)
