"""Reachable region of the output in the browser: a button in the folder of the goal, and a translucent body.

The region is computed by a process of lowest priority (`reach`), which ends with its button, its view or this process.
"""

from __future__ import annotations

import contextlib
import json
import pickle
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import viser

from tensegrity_dynamics.robots.robot import Robot
from tensegrity_dynamics.visualization.picture import Picture
from tensegrity_dynamics.visualization.style import GOAL_COLOUR

from .goal_panel import GoalPanel, paragraph

SHOW, HIDE = "Show reachable region", "Hide reachable region"
PROCESS = "tensegrity_tools.view.reach"


def has_region(robot: Robot) -> bool:
    """Whether goals move the output of a robot by inverse kinematics, in at least one coordinate of its position."""
    return not robot.model.takes_no_goals and robot.output is not None and bool((robot.output.rows < 3).any())


class RegionPanel:
    """Region that the output can reach from the pose of the goal handle, with the orientation of the handle.

    Args:
        server: viser server; the button is added to its open container.
        robot: robot with a region (`has_region`). picture: its picture. goal: panel of its goal handle.
    """

    def __init__(self, server: viser.ViserServer, robot: Robot, picture: Picture, goal: GoalPanel) -> None:
        self._server, self._robot, self._goal, self._sizes = server, robot, goal, picture.sizes
        self._lock = threading.RLock()  # viser runs callbacks in separate threads
        self._turn = 0  # number of the last press; threads of former ones change nothing any more
        self._process: subprocess.Popen[bytes] | None = None
        self._drawn: list[viser.SceneNodeHandle] = []
        self._button = server.gui.add_button(
            SHOW, icon=viser.Icon.POLYGON, color="gray",
            hint="positions that goals can reach from the handle, with its present orientation; takes a while",
        )  # fmt: skip
        self._text = server.gui.add_html("", visible=False)
        self._button.on_click(lambda _: self._press())

    def close(self) -> None:
        """End a computation."""
        with self._lock:
            self._turn += 1
            if self._process is not None:
                self._process.kill()

    def _press(self) -> None:
        with self._lock:
            self.close()
            for each in self._drawn:
                each.remove()
            self._drawn, self._text.visible = [], False
            starts = self._button.label == SHOW
            self._button.label = HIDE if starts else SHOW
            if starts:
                threading.Thread(target=self._compute, args=(self._turn,), name="region", daemon=True).start()

    def _compute(self, turn: int) -> None:
        pose = self._goal.pose
        with self._lock:
            if turn != self._turn:
                return
            self._write("reachable region: starting")
            # of this thread, with which the kernel ends it: see `follow_parent`
            process = subprocess.Popen(
                [sys.executable, "-m", PROCESS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
            )
            self._process = process
        with process:
            assert process.stdin is not None and process.stdout is not None
            with contextlib.suppress(OSError), process.stdin:  # it may have been ended
                pickle.dump((self._robot, pose), process.stdin)
            last: dict[str, Any] = {}
            for line in process.stdout:
                with self._lock:
                    if turn != self._turn:
                        return
                    last = json.loads(line)
                    if "done" in last:
                        self._write(f"reachable region: {last['done']} of {last['of']} directions")
        with self._lock, self._server.atomic():
            if turn != self._turn:
                return
            self._process = None
            if "points" in last:
                self._draw(*(np.array(last[key]) for key in ("points", "triangles", "edges")))
                self._write(
                    f"Reachable region, for the handle at that time ({self._goal.in_words(pose)}): "
                    f"{len(last['points']) - 1} directions from there, without payloads."
                )
            else:
                self._button.label = SHOW
                self._write(f"No reachable region: {last.get('error', 'its process was ended')}", "#b3261e")

    def _draw(self, points: Any, triangles: Any, edges: Any) -> None:
        scene = self._server.scene
        if len(triangles):
            surface = scene.add_mesh_simple(
                "/region/surface", points, triangles, color=GOAL_COLOUR, opacity=0.2, flat_shading=True,
                side="double", cast_shadow=False, receive_shadow=False,
            )  # fmt: skip
            self._drawn.append(surface)
        thickness = (0.3 if len(triangles) > len(points) else 1.0) * self._sizes.tendon  # thin on a surface
        self._drawn.append(scene.add_line_segments("/region/edges", points[edges], GOAL_COLOUR, thickness=thickness))

    def _write(self, text: str, colour: str = "#555") -> None:
        self._text.content, self._text.visible = paragraph(text, colour), True
