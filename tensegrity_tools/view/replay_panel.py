"""Time bar of a replay in the browser: seek, pause, rate, loop."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import viser

from .state import Answer

QUIET = 0.6
"""s after a user's hand has let go of a field before the replay moves it again."""
LONG, STEP, FINE_STEP = 10.0, 0.1, 0.01
"""s; the time bar goes in steps, finer ones where the recording is not long, and its field shows as many digits."""
SLOWEST, FASTEST = 0.01, 100.0


@dataclass(frozen=True)
class Playback:
    """Where a replay is.

    Args:
        position, end: s from the start of the recording, and its length. rate: robot seconds per second.
        paused, loop: whether it stands still, and whether it begins anew at its end.
    """

    position: float
    end: float
    rate: float = 1.0
    paused: bool = False
    loop: bool = False


# Called with the name of what is changed ("position" [s], "rate", "paused", "loop") and its value.
SteerCallback = Callable[[str, float | bool], Answer]


class ReplayPanel:
    """The fields; they follow the replay, but for those that a user has just moved.

    Args:
        server: the viser server; the fields go into the container that is open.
        playback: where the replay is now.
        on_steer: called with what a user changes.
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
        """Show where the replay is."""
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
        if client is None:  # by `update`
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
