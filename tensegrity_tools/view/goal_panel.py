"""Goal panel of the browser: a handle to drag, fields for numbers, a send button, and a mark at the accepted goal."""

from __future__ import annotations

import threading
from collections.abc import Callable
from html import escape
from textwrap import shorten

import numpy as np
import viser
from numpy.typing import NDArray

from tensegrity_dynamics.robots.output_frame import Pose
from tensegrity_dynamics.visualization.geometry import patch
from tensegrity_dynamics.visualization.picture import Picture
from tensegrity_dynamics.visualization.style import GOAL_COLOUR, REFUSED_COLOUR

from . import meshes
from .callbacks import in_order, one_at_a_time
from .display_units import LengthUnit, numbers, quaternion_from_roll_pitch_yaw, roll_pitch_yaw
from .state import Answer

LONGEST = 600.0  # longest duration of a motion [s]
FARTHEST = 100.0  # largest distance from the robot, in spans of the robot
ANGLE_DECIMALS = 1  # of degrees

# Called with a goal: position (3,) m, quaternion wxyz (4,), duration s (0: the shortest).
GoalCallback = Callable[[NDArray[np.float64], NDArray[np.float64], float], Answer]
# Called with position (3,) [m] and quaternion wxyz (4,).
StreamCallback = Callable[[NDArray[np.float64], NDArray[np.float64]], None]


class GoalPanel:
    """Goal pose of the output frame, set in the browser.

    The handle follows the last accepted goal (or the robot, before the first goal) until it is dragged or a number is
    typed; then it stays until that goal is accepted or the handle is reset to the robot.

    Args:
        server: viser server; the fields are added to its open container.
        picture: picture of a robot with an output frame.
        start: present pose of that frame.
        unit: unit of lengths in the fields.
        on_goal: function that is called with a goal when it is sent; None makes the panel read-only.
        on_stream: function that is called with every pose of the handle while it is dragged, where the user wants the
            robot to follow it; None without this choice.

    Attributes:
        binding: names of the tendons that limit the last refused goal, until the handle is moved.
        refusal: short text about the refusal and its reason.
    """

    def __init__(
        self,
        server: viser.ViserServer,
        picture: Picture,
        start: Pose,
        unit: LengthUnit,
        on_goal: GoalCallback | None,
        on_stream: StreamCallback | None = None,
    ) -> None:
        self._server, self._unit, self._on_goal, self._on_stream = server, unit, on_goal, on_stream
        self._turns = picture.goal_sets_orientation
        self._reach = FARTHEST * picture.sizes.span
        self._touched = False
        self._writing = threading.RLock()  # viser runs callbacks in separate threads
        self._present = start
        self._accepted: Pose | None = None
        self._nearest: Pose | None = None
        self.binding: tuple[str, ...] = ()
        self.refusal = ""
        self._refused = False
        self._handle = server.scene.add_transform_controls(
            "/goal",
            scale=0.22 * picture.sizes.span,
            line_width=2.0,
            opacity=0.75,
            disable_sliders=True,
            disable_rotations=not self._turns,
            depth_test=False,
            position=start[0],
            wxyz=start[1],
            visible=on_goal is not None,
        )
        self._mark = self._add_mark(picture)
        self._way = server.scene.add_line_segments(
            "/nearest/way", np.zeros((1, 2, 3)), REFUSED_COLOUR, thickness=2.0 * picture.sizes.tendon, visible=False
        )
        self._end = server.scene.add_icosphere("/nearest/end", 1.5 * picture.sizes.node, REFUSED_COLOUR, visible=False)
        self._add_fields(start)
        self._handle.on_update(in_order(lambda event: self._dragged(event.client, event.phase)))

    def _add_mark(self, picture: Picture) -> viser.FrameHandle:
        scene, corners, sizes = self._server.scene, picture.goal_corners, picture.sizes
        mark = scene.add_frame("/accepted", show_axes=False, visible=False)
        if len(corners) >= 3:
            vertices, faces = patch(corners)
            edge = np.stack((vertices[:-1], np.roll(vertices[:-1], -1, axis=0)), axis=1)
            scene.add_line_segments("/accepted/edge", edge, GOAL_COLOUR, thickness=1.2 * sizes.tendon)
        else:
            vertices, faces = meshes.ball()
            vertices = 2.0 * sizes.node * vertices + corners[0]
        scene.add_mesh_simple(
            "/accepted/patch", vertices, faces, color=GOAL_COLOUR, opacity=0.3, side="double", cast_shadow=False
        )
        return mark

    def _add_fields(self, start: Pose) -> None:
        gui, unit = self._server.gui, self._unit
        step = 10.0**-unit.decimals
        self._position = gui.add_vector3(
            f"Position [{unit.name}]",
            _rounded(start[0] / unit.metres, unit.decimals),
            step=step,
            hint="of the output frame, in the world frame",
        )
        self._angles = gui.add_vector3(
            "Orientation [°]",
            _rounded(roll_pitch_yaw(start[1]), ANGLE_DECIMALS),
            step=0.1,
            hint="roll, pitch, yaw: rotations about the fixed axes x, y, z, in this order",
            visible=self._turns,
        )
        self.duration = gui.add_number(
            "Duration [s]", 0.0, min=0.0, max=LONGEST, step=0.1, hint="0: the shortest duration within the limits"
        )
        self._send = gui.add_button(
            "Send goal",
            icon=viser.Icon.SEND,
            color="teal",
            disabled=self._on_goal is None,
            hint="send the goal to the controller",
        )
        self._follows = gui.add_checkbox(
            "Follow handle", False, visible=self._on_stream is not None,
            hint="send every pose of the handle while it is dragged (topic goal_pose)",
        )  # fmt: skip
        self._back = gui.add_button("Move handle to robot", color="gray", disabled=self._on_goal is None)
        self._near = gui.add_button("Move handle to nearest reachable pose", color="gray", visible=False)
        self.answer = gui.add_html("", visible=False)  # below the buttons: a refusal may take many lines
        self._position.on_update(lambda event: self._typed(event.client))
        self._angles.on_update(lambda event: self._typed(event.client))
        self._send.on_click(one_at_a_time(lambda event: self.send(event.client)))
        self._back.on_click(lambda _: self.reset())
        self._near.on_click(lambda _: self.move_handle(self._nearest) if self._nearest is not None else None)

    # -- input from the browser -----------------------------------------------------------------------------------

    @property
    def pose(self) -> Pose:
        """Pose of the handle: position (3,) m and quaternion wxyz (4,)."""
        with self._writing:
            return np.array(self._handle.position), np.array(self._handle.wxyz)

    def _dragged(self, client: viser.ClientHandle | None, phase: str) -> None:
        if client is None:  # also called for moves by the program, without a client
            return
        self._touch()
        with self._writing:  # so that the last write is the pose of the handle, for several browsers
            if self._pose_problem(*self.pose):
                self._put(self._present)
            else:
                self.write_fields(*self.pose)
                if self._on_stream is not None and self._follows.value:
                    self._touched = phase != "end"  # afterwards the handle shows what was accepted
                    self._on_stream(*self.pose)
            if phase == "end":
                self._show_all()

    def _show_all(self) -> None:
        """Send the pose of the handle to all browsers; the one that moved it may have received older poses of others.

        Since only changes are sent, the handle is moved slightly, and back.
        """
        position = np.array(self._handle.position)
        aside = position + 1e-6 * self._reach
        self._handle.position = aside
        if np.array_equal(self._handle.position, aside):  # otherwise a user still drags it
            self._handle.position = position

    def _typed(self, client: viser.ClientHandle | None) -> None:
        if client is not None:
            self._touch()
            position, quaternion = np.array(self._position.value) * self._unit.metres, self.pose[1]
            if self._turns:
                quaternion = quaternion_from_roll_pitch_yaw(self._angles.value)
            if self._pose_problem(position, quaternion):
                self.write_fields(*self.pose)
            else:
                self._handle.position, self._handle.wxyz = position, quaternion

    def _pose_problem(self, position: NDArray[np.float64], quaternion: NDArray[np.float64]) -> str:
        """Problem of a goal, "" if there is none. A manipulated page can exceed the limits of the fields."""
        if position.shape != (3,) or not np.all(np.isfinite(position)):
            return "the position is no three finite numbers"
        if np.abs(position - self._present[0]).max() > self._reach:
            return f"the position is more than {self._reach:.3g} m from the robot"
        if quaternion.shape != (4,) or not abs(float(np.linalg.norm(quaternion)) - 1.0) < 1e-3:
            return "the orientation is no unit quaternion"
        return ""

    def _goal_problem(self, pose: Pose, duration: float) -> str:
        return duration_problem(duration) or self._pose_problem(*pose)

    def _touch(self) -> None:
        """Register a move of the handle by a user; the last answer belongs to another goal and is hidden."""
        self._touched = True
        self._forget_answer()

    def _forget_answer(self) -> None:
        self.answer.visible = self._near.visible = self._refused = False
        self._way.visible = self._end.visible = False
        self.binding, self.refusal = (), ""

    def move_handle(self, pose: Pose) -> None:
        """Move the handle to a pose, as by dragging it."""
        self._touch()
        self._put(pose)

    def send(self, client: viser.ClientHandle | None = None) -> Answer:
        """Send the pose of the handle as a goal; all browsers show the answer."""
        if self._on_goal is None:
            return Answer(False, "this view is read-only")
        self.refusal = ""
        pose, duration = self.pose, float(self.duration.value)
        if problem := self._goal_problem(pose, duration):
            self._show_answer(f"Refused: {problem}", "#b3261e")
            return Answer(False, problem)
        self._send.disabled = True
        self._show_answer("Waiting for the controller ...", "#555")
        try:
            answer = self._on_goal(*pose, duration)
        except Exception as error:  # any exception is shown to the user who sent the goal
            answer = Answer(False, f"{type(error).__name__}: {error}")
        finally:
            self._send.disabled = False
        if answer.accepted:
            self._touched = False
            told = f" {answer.text}" if answer.text else ""
            self._show_answer(f"Accepted: {self.in_words(pose)}.{told}", "#1b7f5f")
        else:
            stopped = f"Stopped by {', '.join(answer.binding)}, drawn in red." if answer.binding else ""
            reason = answer.text if answer.text.endswith(".") or not stopped else f"{answer.text}."
            self._show_answer(f"Refused: {reason} {stopped}".rstrip(), "#b3261e")
            text = answer.text[:1].upper() + answer.text[1:]
            # the cause comes first, since the panel is narrow
            said = shorten(f"{stopped} {text}".strip(), 180, placeholder=" ... (the rest is below the goal)")
            self.refusal = f"Goal refused. {said}"
            if client is not None:
                client.add_notification("Goal refused", said, color="red", auto_close_seconds=8.0)
        self._nearest, self.binding, self._refused = answer.nearest, answer.binding, not answer.accepted
        self._near.visible = self._way.visible = self._end.visible = answer.nearest is not None
        if answer.nearest is not None:
            self._end.position = answer.nearest[0]
            self._way.points = np.array([[self._present[0], answer.nearest[0]]])
        return answer

    def reset(self) -> None:
        """Move the handle to the robot."""
        self._touch()
        self._put(self._present)

    # -- output to the browser ------------------------------------------------------------------------------------

    def update(self, present: Pose, accepted: Pose | None) -> None:
        """Show the last accepted goal. The handle follows it, or the present pose of the robot, until it is dragged."""
        first = self._accepted is None and accepted is None
        if self._refused and accepted is not None and not _same(accepted, self._accepted):
            self._forget_answer()  # another goal has been accepted since, from any source
        self._present = present
        if accepted is not None:
            self._mark.position, self._mark.wxyz = accepted
        self._mark.visible = accepted is not None
        self._accepted = accepted
        if not self._touched and (first or accepted is not None):
            self._put(accepted if accepted is not None else present)

    def show_handle(self, visible: bool) -> None:
        """Show or hide the handle."""
        self._handle.visible = visible

    def _put(self, pose: Pose) -> None:
        self._handle.position, self._handle.wxyz = pose
        self.write_fields(*pose)

    def write_fields(self, position: NDArray[np.float64], quaternion: NDArray[np.float64]) -> None:
        self._position.value = _rounded(position / self._unit.metres, self._unit.decimals)
        if self._turns:
            self._angles.value = _rounded(roll_pitch_yaw(quaternion), ANGLE_DECIMALS)

    def in_words(self, pose: Pose) -> str:
        """A pose as text: a field that was left empty, or typed with a comma, does not show what is sent."""
        text = f"{numbers(pose[0] / self._unit.metres, self._unit.decimals)} {self._unit.name}"
        return f"{text}, {numbers(roll_pitch_yaw(pose[1]), ANGLE_DECIMALS)} °" if self._turns else text

    def _show_answer(self, text: str, colour: str) -> None:
        self.answer.content = paragraph(text, colour)
        self.answer.visible = True


def _rounded(values: NDArray[np.float64], digits: int) -> tuple[float, float, float]:
    """Three numbers rounded as in the fields, without a minus sign before zero."""
    x, y, z = (np.round(values, digits) + 0.0).tolist()
    return x, y, z


def _same(pose: Pose, other: Pose | None) -> bool:
    return other is not None and all(np.array_equal(a, b) for a, b in zip(pose, other, strict=True))


def duration_problem(duration: float) -> str:
    """Problem of the duration of a motion [s], "" if there is none."""
    if 0.0 <= duration <= LONGEST:  # false for NaN, too
        return ""
    return f"the duration is {duration:g} s; give up to {LONGEST:g} s, or 0 for the shortest"


def paragraph(text: str, colour: str) -> str:
    """One line of the panel as HTML; the text is escaped."""
    return f'<div style="font-size:0.85em;padding:0.2em 0.8em 0.5em;color:{colour}">{escape(text)}</div>'
