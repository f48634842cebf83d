"""The goal in the browser: a handle to drag, numbers to type, a button to send, and a ghost of what was accepted."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from textwrap import shorten

import numpy as np
import viser
from numpy.typing import NDArray

from tensegrity_dynamics.mechanisms.kinematics.parallel_kinematics import BodyOutput
from tensegrity_dynamics.robots.output_frame import OutputFrame, Pose
from tensegrity_dynamics.visualization.structure_picture import GOAL_COLOUR, Sizes

from . import meshes
from .display_units import LengthUnit, quaternion_from_roll_pitch_yaw, roll_pitch_yaw
from .state import Answer

# What the owner does with a goal: position (3,) m, quaternion wxyz (4,), duration s (0: the shortest).
GoalCallback = Callable[[NDArray[np.float64], NDArray[np.float64], float], Answer]


class GoalPanel:
    """Where people say where the output frame shall go.

    The handle rests on the last accepted goal (or on the robot, before there is one) until somebody drags it or types
    a number; from then on it stays where it was put, until the goal is sent and accepted or put back on the robot.

    Args:
        server: the viser server; the panel's fields go into the container that is open.
        output: the frame that goals mean.
        corners: (k, 3) m, what is shown of an accepted goal, in that frame: a patch of three and more, or a ball.
        start: its pose now.
        sizes, unit: of this robot.
        on_goal: called with a goal that somebody sends; None makes a view that only looks.
    """

    def __init__(
        self,
        server: viser.ViserServer,
        output: OutputFrame | BodyOutput,
        corners: NDArray[np.float64],
        start: Pose,
        sizes: Sizes,
        unit: LengthUnit,
        on_goal: GoalCallback | None,
    ) -> None:
        self._server, self._unit, self._on_goal = server, unit, on_goal
        self._turns = any(axis.startswith("r") for axis in output.controlled)
        self._touched = False
        self._present = start
        self._accepted: Pose | None = None
        self._nearest: Pose | None = None
        self._handle = server.scene.add_transform_controls(
            "/goal",
            scale=0.22 * sizes.span,
            line_width=2.0,
            opacity=0.75,
            disable_sliders=True,
            disable_rotations=not self._turns,
            depth_test=False,
            position=start[0],
            wxyz=start[1],
            visible=on_goal is not None,
        )
        self._ghost = self._add_ghost(corners, sizes)
        self._add_fields(start)
        self._handle.on_update(lambda event: self._dragged(event.client))

    def _add_ghost(self, corners: NDArray[np.float64], sizes: Sizes) -> viser.FrameHandle:
        scene = self._server.scene
        ghost = scene.add_frame("/accepted", show_axes=False, visible=False)
        if len(corners) >= 3:
            vertices, faces = meshes.polygon(corners)
            edge = np.stack((vertices[:-1], np.roll(vertices[:-1], -1, axis=0)), axis=1)
            scene.add_line_segments("/accepted/edge", edge, GOAL_COLOUR, thickness=1.2 * sizes.tendon)
        else:
            vertices, faces = meshes.ball()
            vertices = 2.0 * sizes.node * vertices + corners[0]
        scene.add_mesh_simple(
            "/accepted/patch", vertices, faces, color=GOAL_COLOUR, opacity=0.3, side="double", cast_shadow=False
        )
        return ghost

    def _add_fields(self, start: Pose) -> None:
        gui, unit = self._server.gui, self._unit
        step = 10.0**-unit.decimals
        self._position = gui.add_vector3(
            f"Position [{unit.name}]",
            tuple(start[0] / unit.metres),
            step=step,
            hint="of the output frame, in the world",
        )
        self._angles = gui.add_vector3(
            "Roll, pitch, yaw [°]",
            tuple(roll_pitch_yaw(start[1])),
            step=0.1,
            hint="about the fixed axes x, y, z, in this order",
            visible=self._turns,
        )
        self._duration = gui.add_number(
            "Duration [s]", 0.0, min=0.0, max=600.0, step=0.1, hint="0: the shortest time that the limits allow"
        )
        self._send = gui.add_button(
            "Send goal", icon=viser.Icon.SEND, color="teal", disabled=self._on_goal is None, hint="ask the controller"
        )
        self._back = gui.add_button("Put the handle on the robot", color="gray", disabled=self._on_goal is None)
        self._answer = gui.add_html("", visible=False)
        self._near = gui.add_button("Put the handle on the nearest reachable pose", color="gray", visible=False)
        self._position.on_update(lambda event: self._typed(event.client))
        self._angles.on_update(lambda event: self._typed(event.client))
        self._send.on_click(lambda event: self.send(event.client))
        self._back.on_click(lambda _: self.reset())
        self._near.on_click(lambda _: self.place(self._nearest) if self._nearest is not None else None)

    # -- what people do -------------------------------------------------------------------------------------------

    @property
    def pose(self) -> Pose:
        """Where the handle is: position (3,) m and quaternion wxyz (4,)."""
        return np.array(self._handle.position), np.array(self._handle.wxyz)

    def _dragged(self, client: viser.ClientHandle | None) -> None:
        if client is not None:  # the program's own moves come back here without a client
            self._touch()
            self._write_fields(*self.pose)

    def _typed(self, client: viser.ClientHandle | None) -> None:
        if client is not None:
            self._touch()
            self._handle.position = np.array(self._position.value) * self._unit.metres
            if self._turns:
                self._handle.wxyz = quaternion_from_roll_pitch_yaw(self._angles.value)

    def _touch(self) -> None:
        """From now on the handle is somebody's; the answer to the last goal is not about this one."""
        self._touched = True
        self._answer.visible = self._near.visible = False

    def place(self, pose: Pose) -> None:
        """Put the handle somewhere, as a person would by dragging."""
        self._touch()
        self._put(pose)

    def send(self, client: viser.ClientHandle | None = None) -> Answer:
        """Send the goal under the handle; everybody sees the answer."""
        if self._on_goal is None:
            return Answer(False, "this view only looks")
        self._send.disabled = True
        self._say("Waiting for the controller ...", "#555")
        try:
            answer = self._on_goal(*self.pose, float(self._duration.value))
        except Exception as error:  # whatever the owner's callback raises belongs before the eyes of who pressed
            answer = Answer(False, f"{type(error).__name__}: {error}")
        finally:
            self._send.disabled = False
        if answer.accepted:
            self._touched = False
            self._say("Accepted" + (f": {answer.text}" if answer.text else "."), "#1b7f5f")
        else:
            self._say(f"Refused: {answer.text}", "#b3261e")
            if client is not None:
                client.add_notification("Goal refused", shorten(answer.text, 160), color="red", auto_close_seconds=8.0)
        self._nearest = answer.nearest
        self._near.visible = answer.nearest is not None
        return answer

    def reset(self) -> None:
        """Put the handle where the robot is."""
        self._touch()
        self._put(self._present)

    # -- what the robot does --------------------------------------------------------------------------------------

    def update(self, present: Pose, accepted: Pose | None) -> None:
        """Take note of the robot's pose and of the last accepted goal."""
        first = self._accepted is None and accepted is None
        self._present = present
        if accepted is not None:
            self._ghost.position, self._ghost.wxyz = accepted
        self._ghost.visible = accepted is not None
        self._accepted = accepted
        if not self._touched and (first or accepted is not None):
            self._put(accepted if accepted is not None else present)

    def show_handle(self, visible: bool) -> None:
        """Show or hide the handle."""
        self._handle.visible = visible

    def _put(self, pose: Pose) -> None:
        self._handle.position, self._handle.wxyz = pose
        self._write_fields(*pose)

    def _write_fields(self, position: NDArray[np.float64], quaternion: NDArray[np.float64]) -> None:
        digits = self._unit.decimals
        self._position.value = tuple(float(x) for x in np.round(position / self._unit.metres, digits) + 0.0)
        if self._turns:
            self._angles.value = tuple(float(x) for x in np.round(roll_pitch_yaw(quaternion), 1) + 0.0)

    def _say(self, text: str, colour: str) -> None:
        self._answer.content = paragraph(text, colour)
        self._answer.visible = True


def paragraph(text: str, colour: str) -> str:
    """A line of the panel as HTML; the text is escaped."""
    return f'<div style="font-size:0.85em;padding:0.2em 0.8em 0.5em;color:{colour}">{escape(text)}</div>'
