"""Browser view of a robot: a web server with one scene; `show` sets the state, callbacks receive goals, hold and
stop."""

from __future__ import annotations

import contextlib
import io
import threading
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import viser
from numpy.typing import NDArray

from tensegrity_dynamics.beat import Beat
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.robots.robot import Robot
from tensegrity_dynamics.visualization.picture import Picture, make_picture
from tensegrity_dynamics.visualization.style import round_up

from ..network_address import check_address
from ..page_capture import view_addition
from .actuator_panel import ActuatorPanel, MoveCallback
from .callbacks import in_order, one_at_a_time
from .camera import FollowingCamera, middle_of
from .display_units import LengthUnit
from .goal_panel import GoalCallback, GoalPanel, StreamCallback
from .guard import Guard
from .phone import STYLE
from .push_panel import PushPanel
from .region_panel import RegionPanel, has_region
from .replay_panel import Playback, ReplayPanel, SteerCallback
from .robot_scene import RobotScene
from .state import Answer, ViewState
from .status_panel import ground_html, legend_html, status_html
from .tension_plot import TensionPlot

# Called when hold or stop is pressed.
Callback = Callable[[], Answer]

PANEL_PERIOD = 0.2  # period of the text updates [s]
SHRINK_BELOW = 0.7  # the full scale of tension shrinks only when the new one is below this fraction of it
PEAK_MEMORY = 20.0  # time window of the largest tension [s]


class View:
    """Browser view of one robot, for any number of browsers.

    `show` only stores the state and may be called at any rate from any thread; a thread of the view draws the latest
    one, at most `rate` times per second, and only while a browser is connected.

    Args:
        robot: robot that has a `Picture`.
        port: TCP port; if it is in use, the next free one is taken (reported in `port_note`).
        host: address to listen on. The default admits only this computer; "0.0.0.0" opens the view to the network,
            where anyone who reads its address or its traffic can drive the robot. See `Guard` for the access control.
        rate: frames per second; fewer on a busy computer (`Beat`).
        on_goal: called with position (3,) [m], quaternion wxyz (4,) and duration [s] when a goal is sent; returns an
            `Answer`. None: the view accepts no goals.
        on_stream: called with position and quaternion of the handle while it is dragged, where the user has chosen that
            the robot follows it. None: no such choice.
        on_move: called with name, new position [m or rad] and duration [s] (0: the shortest) to move one actuator;
            returns an `Answer` when it has arrived. None: the view moves no actuators.
        on_hold, on_stop, on_emergency, on_release: called when the button is pressed; return an `Answer`. *Release* is
            shown while a state has errors.
        on_steer: for a replay, called with changes by a user at the time bar; returns an `Answer`. The view then has a
            time bar in place of hold and stop, after the first call of `show_playback`.

    Attributes:
        goal: goal panel, None for a robot without outputs.
        region: button of the reachable region, None where `has_region` is false and in views that accept no goals.
        actuators: panel of the actuators, None for a robot without.
        replay: time bar, None until it exists.
        drawn: number of frames sent. ignored: number of states that could not be drawn.
        port, url: port and address of the view; the address contains the token that is required for access.
        guard: access control.

    Raises:
        TensegrityError: the robot has no Picture.
        TensegrityError: the server cannot listen on the address, or cannot be guarded.
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
        on_stream: StreamCallback | None = None,
        on_move: MoveCallback | None = None,
        on_hold: Callback | None = None,
        on_stop: Callback | None = None,
        on_emergency: Callback | None = None,
        on_release: Callback | None = None,
        on_steer: SteerCallback | None = None,
    ) -> None:
        picture = make_picture(robot)
        if not rate > 0.0:
            raise ValueError(f"rate is {rate}, must be above zero (pictures per second).")
        self.robot, self._picture = robot, picture
        self.ignored = self.drawn = 0
        self._beat = Beat(rate)
        check_address(host)
        self.guard = Guard(host, view_addition(robot.name))
        with _quiet(), self.guard.installed():
            self.server = viser.ViserServer(host=host, port=port, label=f"tensegrity · {robot.name}", verbose=False)
        self.server.request_share_url = _no_tunnel  # type: ignore[method-assign]
        self.port = self.server.get_port()
        try:
            self.guard.watch_fields(self.server.gui)
            self.guard.check(self.port, f"viser-v{viser.__version__}")
        except TensegrityError:
            with _quiet():
                self.server.stop()
            raise
        self.port_note = "" if self.port == port else f"port {port} is in use; the view is at port {self.port}"
        self.url = self.guard.url
        self._full_scale = 1.0  # N
        self._peaks: list[tuple[float, float]] = []
        self._failure = ""  # from a button
        self._warning = ""  # from the owner of the view
        self._problem = ""  # problem of the last state
        self._latest: ViewState | None = None
        self.replay: ReplayPanel | None = None
        self._playback: Playback | None = None
        self._on_steer = on_steer
        self._changed = threading.Event()
        self._closing = False
        with self.server.atomic():
            self._scene = RobotScene(self.server, picture)
            start = picture.at(picture.start)
            self._pose, self._standing, self._pushes = start.output, "", (0.0, 0)
            self.camera = FollowingCamera(self.server, middle_of(start), picture.sizes.span)
            self._unit = LengthUnit.for_span(picture.sizes.span)
            self._add_panel(on_goal, on_stream, on_move, on_hold, on_stop, on_emergency, on_release)
        self.server.on_client_connect(lambda _: self._changed.set())
        self.server.on_client_disconnect(in_order(lambda client: self._end_push(client.client_id)))
        self._thread = threading.Thread(target=self._run, name="view", daemon=True)
        self._thread.start()

    def _add_panel(
        self, on_goal: GoalCallback | None, on_stream: StreamCallback | None, on_move: MoveCallback | None,
        on_hold: Callback | None, on_stop: Callback | None, on_emergency: Callback | None,
        on_release: Callback | None,
    ) -> None:  # fmt: skip
        gui = self.server.gui
        gui.configure_theme(
            show_logo=False, show_share_button=False, brand_color=(38, 139, 110), control_width="medium"
        )
        gui.main_panel.dock_right()
        gui.main_panel.set_width(350)
        gui.add_html(STYLE)
        # At the top, where a text of varying length does not move them.
        replays = self._on_steer is not None
        self._replay_folder = gui.add_folder("Replay", visible=False) if replays else None
        self._hold = gui.add_button(
            "Hold here",
            icon=viser.Icon.PLAYER_PAUSE,
            color="blue",
            disabled=on_hold is None,
            visible=not replays,
            hint="brake and hold the position",
        )
        self._stop = gui.add_button(
            "Stop", icon=viser.Icon.HAND_STOP, color="red", disabled=on_stop is None, visible=not replays,
            hint="stop all actuators",
        )  # fmt: skip
        self._emergency = gui.add_button(
            "Emergency stop", icon=viser.Icon.ALERT_OCTAGON, color=(120, 0, 0), visible=on_emergency is not None,
            hint="hold all actuators, whatever the controller says, until released",
        )  # fmt: skip
        self._release = gui.add_button(
            "Release", icon=viser.Icon.LOCK_OPEN, color="gray", visible=False,
            hint="end an emergency stop, and clear the faults whose causes have gone",
        )  # fmt: skip
        self._releases = on_release is not None
        for button, callback in (
            (self._hold, on_hold), (self._stop, on_stop), (self._emergency, on_emergency), (self._release, on_release)
        ):  # fmt: skip
            if callback is None:
                continue
            press = partial(self._press, callback)
            # a press of the emergency stop may find a driver that the one before has not found
            button.on_click(press if callback is on_emergency else one_at_a_time(press))
        self._status = gui.add_html(status_html(self._picture, None, None, 1.0, self._unit, ()))
        self._plot = TensionPlot(self._picture)
        self._legend: viser.GuiHtmlHandle | None = None
        if self._picture.unilateral.any():
            with gui.add_folder("Tension"):
                self._legend = gui.add_html(legend_html(self._full_scale, self._scene.cell, self._unit))
                self._chart = gui.add_html(self._plot.svg(self._full_scale))
        else:
            gui.add_html(ground_html(self._scene.cell, self._unit))
        self.goal: GoalPanel | None = None
        self.region: RegionPanel | None = None
        if self._pose is not None:
            with gui.add_folder("Goal", visible=self._on_steer is None):  # a replay accepts no goals
                self.goal = GoalPanel(self.server, self._picture, self._pose, self._unit, on_goal, on_stream)
                if on_goal is not None and has_region(self.robot):
                    self.region = RegionPanel(self.server, self.robot, self._picture, self.goal)
        self.actuators: ActuatorPanel | None = None
        if self.robot.actuators:
            with gui.add_folder("Actuators", expand_by_default=False):
                self.actuators = ActuatorPanel(
                    self.server, self.robot, self._picture.tension_names, self._unit, on_move
                )
        self._push_folder = gui.add_folder("Push", expand_by_default=False, visible=False)
        self._push: PushPanel | None = None
        if self.robot.model.load_names:
            with self._push_folder:
                self._push = PushPanel(self.server, self._picture, self.robot, on_show=self._show_goal_handle)
        with gui.add_folder("Picture", expand_by_default=False):
            names = gui.add_checkbox(f"Names of {self._picture.label_kind}", False)
            names.on_update(lambda event: self._scene.show_names(event.target.value))
            follow = gui.add_checkbox("Camera goes along", True)
            follow.on_update(lambda event: setattr(self.camera, "follows", bool(event.target.value)))
            if self.goal is not None:
                self._with_handle = gui.add_checkbox("Goal handle", on_goal is not None, visible=self._on_steer is None)
                self._with_handle.on_update(lambda _: self._show_goal_handle())

    def _show_goal_handle(self) -> None:
        """As its box says, but not beside the push handle: two at one place cannot be told apart."""
        if self.goal is not None:
            pushes = self._push is not None and self._push.shown
            self.goal.show_handle(self._with_handle.value and not pushes)

    def _press(self, callback: Callback, event: viser.GuiEvent[viser.GuiButtonHandle]) -> None:
        label, client = event.target.label, event.client
        try:
            answer = callback()
        except Exception as error:  # the user must see that nothing happened
            answer = Answer(False, f"{type(error).__name__}: {error}")
        self._failure = "" if answer.accepted else f"{label} failed: {answer.text}"
        if not answer.accepted and client is not None:
            client.add_notification(f"{label} failed", answer.text, color="red", auto_close_seconds=8.0)
        self._changed.set()

    # -- public ---------------------------------------------------------------------------------------------------

    @property
    def clients(self) -> int:
        """Number of connected browsers."""
        return len(self.server.get_clients())

    @property
    def picture(self) -> Picture:
        """Picture of the robot."""
        return self._picture

    @property
    def controls(self) -> viser.GuiApi:
        """Panel, to which the owner of the view may add controls."""
        return self.server.gui

    def show(self, state: ViewState) -> bool:
        """Schedule a state for drawing; returns False, without a change, if it cannot be drawn (wrong shape, not
        finite)."""
        problem = state.problem(self._picture)
        if problem is not None:
            self.ignored += 1
            self._problem = f"ignored {self.ignored} state{'s' if self.ignored > 1 else ''}: {problem}"
            self._changed.set()
            return False
        self._latest, self._problem = state, ""
        self._changed.set()
        return True

    @property
    def push(self) -> tuple[str, NDArray[np.float64]] | None:
        """Body or node that a user pulls, and force (3,) in world axes [N]; None: nobody does."""
        return None if self._push is None else self._push.push

    def allow_pushes(self, allowed: bool) -> None:
        """Show or hide the push handle; for simulated robots, whose owner applies `push`."""
        self._push_folder.visible = allowed and self._push is not None
        if not allowed:
            self._end_push()

    def _end_push(self, page: int | None = None) -> None:
        if self._push is not None:
            self._push.release(page)

    def show_playback(self, playback: Playback) -> None:
        """Schedule an update of the time bar with the state of a replay."""
        self._playback = playback
        self._changed.set()

    def warn(self, text: str) -> None:
        """Show a warning below the status (for example a lost topic), until it is replaced by another one or by ""."""
        if text != self._warning:
            self._warning = text
            self._changed.set()

    def close(self) -> None:
        """Stop the server and disconnect the browsers."""
        if not self._closing:
            self._closing = True
            self._changed.set()
            self._thread.join(timeout=5.0)
            if self.region is not None:
                self.region.close()
            with _quiet():
                self.server.stop()

    def __enter__(self) -> View:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- the drawing thread ---------------------------------------------------------------------------------------

    def _run(self) -> None:
        next_panel = 0.0
        written = True
        while True:
            # After the last frame before a pause the texts still have to be updated.
            self._changed.wait(timeout=None if written else PANEL_PERIOD)
            if self._closing:
                return
            self._changed.clear()
            begun = time.monotonic()
            state = self._latest
            self._show_replay()
            tensions = self._update_scale(state, begun)
            if self.server.get_clients():
                with self.server.atomic():
                    if state is not None and tensions is not None:
                        self._draw(state, tensions)
                    written = begun >= next_panel
                    if written:
                        next_panel = begun + PANEL_PERIOD
                        self._write(state)
            ended = time.monotonic()
            time.sleep(max(0.0, self._beat.next(begun, ended) - ended))

    def _show_replay(self) -> None:
        playback, self._playback = self._playback, None
        if playback is None or self._replay_folder is None or self._on_steer is None:
            return
        if self.replay is None:
            self._replay_folder.visible = True
            with self._replay_folder:
                self.replay = ReplayPanel(self.server, playback, self._on_steer)
        else:
            self.replay.update(playback)

    def _update_scale(self, state: ViewState | None, now: float) -> NDArray[np.float64] | None:
        """Update plot and colour scale, also while no browser is connected; returns the tensions to draw."""
        if state is None:
            return None
        tensions = (
            np.full(len(self._picture.tension_names), np.nan)
            if state.tensions is None
            else np.asarray(state.tensions, dtype=np.float64)
        )
        self._plot.add(state.time, tensions)
        finite = tensions[self._picture.unilateral & np.isfinite(tensions)]
        if finite.size:
            self._peaks = [peak for peak in self._peaks if now - peak[0] < PEAK_MEMORY and peak[1] > finite.max()]
            self._peaks.append((now, float(finite.max())))
            full_scale = max(round_up(1.1 * self._peaks[0][1]), self._picture.smallest_full_scale)
            if full_scale > self._full_scale or full_scale < SHRINK_BELOW * self._full_scale:
                self._full_scale = full_scale
        return tensions

    def _draw(self, state: ViewState, tensions: NDArray[np.float64]) -> None:
        snapshot = self._picture.at(state.configuration)
        contacts = self._picture.contact_lines(state.configuration, state.velocity)
        feet = self._picture.footing(state.configuration, contacts)
        self._standing = ", ".join(self._picture.label_names[row] for row in feet)
        scale = self._picture.metres_per_newton
        pushes = float(np.linalg.norm((contacts[:, 1] - contacts[:, 0]).sum(axis=0))) / scale if scale else 0.0
        self._pushes = (pushes, len(contacts))
        binding = self.goal.binding if self.goal is not None else ()
        self._scene.update(snapshot, tensions, self._full_scale, contacts, feet, binding, state.payloads)
        if self.camera.update(middle_of(snapshot)):
            self._changed.set()  # also without a new state
        self._scene.follow(self.camera.shift)
        self._pose = snapshot.output
        if self.goal is not None and self._pose is not None:
            self.goal.update(self._pose, state.goal)
        if self._push is not None and self._push_folder.visible:
            self._push.update(snapshot)
        self.drawn += 1

    def _write(self, state: ViewState | None) -> None:
        refusal = self.goal.refusal if self.goal is not None else ""
        notes = tuple(note for note in (self._warning, self._problem, self._failure, refusal) if note)
        self._release.visible = self._releases and state is not None and bool(state.errors)
        self._status.content = status_html(self._picture, state, self._pose, self._full_scale, self._unit, notes,
                                           self._standing, self._pushes)  # fmt: skip
        if self.actuators is not None and state is not None:
            self.actuators.update(state)
        if self._legend is not None:
            self._legend.content = legend_html(self._full_scale, self._scene.cell, self._unit)
            self._chart.content = self._plot.svg(self._full_scale)


def _no_tunnel(*_: object, **__: object) -> None:
    """Replacement of the public tunnel of viser, which is disabled."""


def _quiet() -> contextlib.redirect_stdout:
    """Context that suppresses the output of viser at start and stop, which would interfere with a status line."""
    return contextlib.redirect_stdout(io.StringIO())
