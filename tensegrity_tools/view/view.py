"""The view itself: a web server with one scene, fed by `show`, and calling back when somebody wants something."""

from __future__ import annotations

import contextlib
import io
import threading
import time
from collections.abc import Callable

import numpy as np
import viser
from numpy.typing import NDArray

from tensegrity_dynamics.robots.robot import Robot
from tensegrity_dynamics.visualization.structure_picture import round_ceiling

from .display_units import LengthUnit
from .goal_panel import GoalCallback, GoalPanel
from .kinds import kind_of
from .state import Answer, ViewState
from .status_panel import ground_html, legend_html, status_html
from .tension_plot import TensionPlot

# What the owner does when somebody presses hold or stop.
Callback = Callable[[], Answer]

PANEL_PERIOD = 0.2  # s between new texts; faster nobody can read
FADE = 0.7  # the colour scale shrinks only when the one wanted is below this share of it
MEMORY = 20.0  # s for which the largest tension counts


class View:
    """Show a robot in any number of browsers.

    `show` only takes a note and may be called at any rate from any thread; a thread of the view draws the latest
    state, at most `rate` times per second, and only while a browser looks.

    Args:
        robot: a robot whose model is a structure or a mechanism.
        port: where browsers find the view; the next free one is taken where it is in use (`port_note` says so).
        host: address to listen on. The default is this machine alone, because whoever sees the view can stop the
            robot; "0.0.0.0" opens it to the network.
        rate: largest number of pictures per second.
        on_goal: called with position (3,) m, quaternion wxyz (4,) and duration s when somebody sends a goal; returns
            an `Answer`. Without it, the view only looks.
        on_hold, on_stop: called when somebody presses the button; return an `Answer`.

    Raises:
        TensegrityError: the robot is neither.
        ValueError: rate is not above zero.
    """

    def __init__(
        self,
        robot: Robot,
        port: int = 8080,
        *,
        host: str = "127.0.0.1",
        rate: float = 30.0,
        on_goal: GoalCallback | None = None,
        on_hold: Callback | None = None,
        on_stop: Callback | None = None,
    ) -> None:
        kind = kind_of(robot)
        if not rate > 0.0:
            raise ValueError(f"rate is {rate}, must be above zero (pictures per second).")
        self.robot, self._kind = robot, kind
        self.ignored = 0  # states that could not be drawn
        self.drawn = 0  # pictures sent
        self._period = 1.0 / rate
        with _quiet():
            self._server = viser.ViserServer(host=host, port=port, label=f"tensegrity · {robot.name}", verbose=False)
        self.port = self._server.get_port()
        self.port_note = "" if self.port == port else f"port {port} is in use; the view is at port {self.port}"
        self.url = f"http://{'localhost' if host in ('127.0.0.1', '0.0.0.0') else host}:{self.port}"
        self._least = kind.least
        self._ceiling = 1.0
        self._peaks: list[tuple[float, float]] = []
        self._note = ""
        self._warning = ""
        self._trouble = ""
        self._latest: ViewState | None = None
        self._fresh = threading.Event()
        self._closing = False
        with self._server.atomic():
            self._scene = kind.scene(self._server)
            self._pose = self._scene.pose(kind.start)
            self._unit = LengthUnit.for_span(self._scene.sizes.span)
            self._add_panel(on_goal, on_hold, on_stop)
        self._server.on_client_connect(lambda _: self._fresh.set())
        self._thread = threading.Thread(target=self._run, name="view", daemon=True)
        self._thread.start()

    def _add_panel(self, on_goal: GoalCallback | None, on_hold: Callback | None, on_stop: Callback | None) -> None:
        gui = self._server.gui
        gui.configure_theme(
            show_logo=False, show_share_button=False, brand_color=(38, 139, 110), control_width="medium"
        )
        gui.main_panel.dock_right()
        gui.main_panel.set_width(350)
        # On top, where no text that grows can push them from under the mouse.
        self._hold = gui.add_button(
            "Hold here", icon=viser.Icon.PLAYER_PAUSE, color="blue", disabled=on_hold is None, hint="end the motion"
        )
        self._stop = gui.add_button(
            "Stop", icon=viser.Icon.HAND_STOP, color="red", disabled=on_stop is None, hint="stop all actuators"
        )
        for button, callback in ((self._hold, on_hold), (self._stop, on_stop)):
            if callback is not None:
                button.on_click(
                    lambda event, callback=callback: self._press(event.target.label, callback, event.client)
                )
        self._status = gui.add_html(status_html(self._kind, None, None, 1.0, self._unit, ()))
        self._plot = TensionPlot(self.robot)
        self._legend: viser.GuiHtmlHandle | None = None
        if self._kind.pulls.any():
            with gui.add_folder("Tension"):
                self._legend = gui.add_html(legend_html(self._ceiling, self._scene.cell, self._unit))
                self._chart = gui.add_html(self._plot.svg(self._ceiling))
        else:
            gui.add_html(ground_html(self._scene.cell, self._unit))
        self.goal: GoalPanel | None = None
        if self._pose is not None:
            with gui.add_folder("Goal"):
                self.goal = GoalPanel(
                    self._server, self.robot.output, self._kind.corners, self._pose, self._scene.sizes, self._unit,
                    on_goal,
                )  # fmt: skip
        with gui.add_folder("Picture", expand_by_default=False):
            names = gui.add_checkbox(f"Names of the {self._kind.labelled}", False)
            names.on_update(lambda event: self._scene.show_names(event.target.value))
            if self.goal is not None:
                handle = gui.add_checkbox("Goal handle", on_goal is not None)
                handle.on_update(lambda event: self.goal.show_handle(event.target.value) if self.goal else None)

    def _press(self, label: str, callback: Callback, client: viser.ClientHandle | None) -> None:
        try:
            answer = callback()
        except Exception as error:  # the person who pressed must learn that nothing happened
            answer = Answer(False, f"{type(error).__name__}: {error}")
        self._note = "" if answer.accepted else f"{label} failed: {answer.text}"
        if not answer.accepted and client is not None:
            client.add_notification(f"{label} failed", answer.text, color="red", auto_close_seconds=8.0)
        self._fresh.set()

    # -- the face -------------------------------------------------------------------------------------------------

    @property
    def clients(self) -> int:
        """How many browsers look."""
        return len(self._server.get_clients())

    def show(self, state: ViewState) -> bool:
        """Draw this state soon. False where it cannot be drawn (wrong shape, not finite); the picture then stays."""
        problem = state.problem(self._kind)
        if problem is not None:
            self.ignored += 1
            self._trouble = f"ignored {self.ignored} state{'s' if self.ignored > 1 else ''}: {problem}"
            self._fresh.set()
            return False
        self._latest, self._trouble = state, ""
        self._fresh.set()
        return True

    def warn(self, text: str) -> None:
        """Show a warning above the buttons (a lost topic, say) until another one, or "", replaces it."""
        if text != self._warning:
            self._warning = text
            self._fresh.set()

    def close(self) -> None:
        """Stop the server; browsers lose the connection."""
        if not self._closing:
            self._closing = True
            self._fresh.set()
            self._thread.join(timeout=5.0)
            with _quiet():
                self._server.stop()

    def __enter__(self) -> View:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- the drawing thread ---------------------------------------------------------------------------------------

    def _run(self) -> None:
        next_panel = 0.0
        written = True
        while True:
            # The last picture before a pause still owes its texts.
            self._fresh.wait(timeout=None if written else PANEL_PERIOD)
            if self._closing:
                return
            self._fresh.clear()
            begun = time.monotonic()
            state = self._latest
            tensions = self._remember(state, begun)
            if self._server.get_clients():
                with self._server.atomic():
                    if state is not None and tensions is not None:
                        self._draw(state, tensions)
                    written = begun >= next_panel
                    if written:
                        next_panel = begun + PANEL_PERIOD
                        self._write(state)
            time.sleep(max(0.0, self._period - (time.monotonic() - begun)))

    def _remember(self, state: ViewState | None, now: float) -> NDArray[np.float64] | None:
        """Keep what the plot and the colour scale need, also while nobody looks; returns the tensions to draw."""
        if state is None:
            return None
        tensions = (
            np.full(len(self._kind.names), np.nan)
            if state.tensions is None
            else np.asarray(state.tensions, dtype=np.float64)
        )
        self._plot.add(state.time, tensions)
        known = tensions[self._kind.pulls & np.isfinite(tensions)]
        if known.size:
            self._peaks = [peak for peak in self._peaks if now - peak[0] < MEMORY and peak[1] > known.max()]
            self._peaks.append((now, float(known.max())))
            wanted = max(round_ceiling(1.1 * self._peaks[0][1]), self._least)
            if wanted > self._ceiling or wanted < FADE * self._ceiling:
                self._ceiling = wanted
        return tensions

    def _draw(self, state: ViewState, tensions: NDArray[np.float64]) -> None:
        shape = self._kind.shape(state)
        self._scene.update(shape, tensions, self._ceiling)
        self._pose = self._scene.pose(shape)
        if self.goal is not None and self._pose is not None:
            self.goal.update(self._pose, state.goal)
        self.drawn += 1

    def _write(self, state: ViewState | None) -> None:
        notes = tuple(note for note in (self._warning, self._trouble, self._note) if note)
        self._status.content = status_html(self._kind, state, self._pose, self._ceiling, self._unit, notes)
        if self._legend is not None:
            self._legend.content = legend_html(self._ceiling, self._scene.cell, self._unit)
            self._chart.content = self._plot.svg(self._ceiling)


def _quiet() -> contextlib.redirect_stdout:
    """viser greets and says goodbye on the standard output, where a status line of ours may stand."""
    return contextlib.redirect_stdout(io.StringIO())
