"""Push handle in the browser: dragged, it pulls a body or node of a simulated robot like a spring."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import viser
from numpy.linalg import norm
from numpy.typing import NDArray

from tensegrity_dynamics.robots.robot import Robot
from tensegrity_dynamics.visualization.picture import Picture, Snapshot
from tensegrity_dynamics.visualization.style import CONTACT_COLOUR

from .callbacks import in_order
from .goal_panel import paragraph

FIRM = 2.0
"""Default stiffness: a pull with the weight of the robot is shorter than its contact line by this factor."""
WEIGHTLESS = 100.0  # N/m, default stiffness without weight
FARTHEST = 10.0  # largest distance of the handle, in spans of the robot
STIFFEST = 1e9  # N/m


class PushPanel:
    """Part to push, stiffness of the pull, and the handle in the scene.

    The force acts at the origin of the body, or on the node, as long as the handle is held; it is the stiffness times
    the distance from there to the handle. A push belongs to the page that began it: only this page moves and ends it.

    Args:
        server: viser server; the fields are added to its open container.
        picture: picture of the robot. robot: robot with bodies or nodes that can be pushed.
        on_show: called when the handle is shown or hidden.
    """

    def __init__(self, server: viser.ViserServer, picture: Picture, robot: Robot, on_show: Callable[[], None]) -> None:
        gui, self._picture, self._names = server.gui, picture, tuple(robot.model.load_names)
        self._lock = threading.RLock()  # viser runs callbacks in separate threads
        self._on_show = on_show
        self._held: tuple[int, NDArray[np.float64]] | None = None  # number of the page that pulls, and to where
        self._push: tuple[str, NDArray[np.float64]] | None = None
        span = picture.sizes.span
        self._choice = gui.add_dropdown(
            "Part", self._names, initial_value=self._at_output(robot), hint="body or node that the handle pulls"
        )
        stiffness = FIRM / picture.metres_per_newton if picture.metres_per_newton > 0.0 else WEIGHTLESS
        self._stiffness = gui.add_number(
            "Stiffness [N/m]", float(f"{stiffness:.2g}"), min=0.0, max=STIFFEST,
            hint="force for each metre between the handle and the part",
        )  # fmt: skip
        self._shown = gui.add_checkbox("Push handle", False, hint="show it at the part; it pulls while you drag it")
        self._text = gui.add_html("", visible=False)
        self._handle = server.scene.add_transform_controls(
            "/push/handle", scale=0.15 * span, line_width=2.0, disable_sliders=True, disable_rotations=True,
            depth_test=False, visible=False,
        )  # fmt: skip
        self._line = server.scene.add_line_segments(
            "/push/line", np.zeros((1, 2, 3)), CONTACT_COLOUR, thickness=2.0 * picture.sizes.tendon, visible=False
        )
        self._handle.on_update(in_order(lambda event: self._dragged(event.client, event.phase)))
        self._shown.on_update(lambda event: self._show(bool(event.target.value)))
        self._choice.on_update(lambda _: self.release())

    def _at_output(self, robot: Robot) -> str:
        """The body of the output, or the part nearest to it."""
        snapshot = self._picture.at(self._picture.start)
        if snapshot.output is None:
            return self._names[-1]
        body, place = getattr(robot.output, "body", ""), snapshot.output[0]

        def distance(name: str) -> float:
            pose = self._picture.carrier_pose(snapshot, name)
            return np.inf if pose is None else float(norm(pose[0] - place))

        return body if body in self._names else min(self._names, key=distance)

    @property
    def push(self) -> tuple[str, NDArray[np.float64]] | None:
        """Name of the pushed body or node and force (3,) in world axes [N]; None while nobody holds the handle."""
        return self._push

    @property
    def shown(self) -> bool:
        """Whether the handle is shown."""
        return bool(self._shown.value)

    def release(self, page: int | None = None) -> None:
        """End the push, of whichever page or only if this page began it; the handle returns to the part with the next
        picture."""
        with self._lock:
            if page is None or self._held is None or self._held[0] == page:
                self._held = self._push = None

    def update(self, snapshot: Snapshot) -> None:
        """Draw the handle, and compute the force, at a snapshot of the robot."""
        name = self._choice.value
        pose = self._picture.carrier_pose(snapshot, name)
        with self._lock:
            if pose is None or not self.shown:
                self.release()
            elif self._held is None:
                self._handle.position = pose[0]
            else:
                pull = self._held[1] - pose[0]
                stiffness = float(self._stiffness.value)
                if norm(pull) <= FARTHEST * self._picture.sizes.span and 0.0 <= stiffness <= STIFFEST:
                    self._push = name, stiffness * pull
                    self._line.points = np.array([[pose[0], pose[0] + pull]])
            pushed = self._push
            self._line.visible = self._text.visible = pushed is not None
            if pushed is not None:
                self._text.content = paragraph(f"{name} is pulled with {norm(pushed[1]):.3g} N", "#555")

    def _dragged(self, client: viser.ClientHandle | None, phase: str) -> None:
        if client is None:  # moved by `update`
            return
        if phase == "end":
            self.release(client.client_id)
            return
        with self._lock:
            if self._held is None or self._held[0] == client.client_id:
                self._held = client.client_id, np.array(self._handle.position)
            else:
                self._handle.position = self._held[1]

    def _show(self, shown: bool) -> None:
        self._handle.visible = shown
        self._on_show()
        if not shown:
            self.release()
