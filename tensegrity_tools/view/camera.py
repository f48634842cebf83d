"""A camera that goes along with a robot that rolls away; people turn and zoom it as ever."""

from __future__ import annotations

import contextlib

import numpy as np
import viser
from numpy.typing import NDArray

from tensegrity_dynamics.visualization.picture import Snapshot

LEAVE, ARRIVE = 0.25, 0.02
"""Parts of the span: how far the robot goes from the middle before the camera follows, and until where it does."""
UPRIGHT = 0.65
"""Width over height of a page below which it is a phone's."""
WIDTH = 0.92
"""Width over height of the part of a phone's page in which the robot is to fit."""
HIDDEN = 0.28
"""Part of a phone's page by which the robot is moved up from the middle."""
SHARE = 0.15
"""Of the way that is left, how much the camera goes with every picture."""


def middle_of(snapshot: Snapshot) -> NDArray[np.float64]:
    """(3,) m, the middle of what is drawn."""
    parts = (snapshot.balls, snapshot.solid_positions, snapshot.label_positions)
    points = next((each for each in parts if len(each)), np.zeros((1, 3)))
    return np.asarray(points.mean(axis=0))


class FollowingCamera:
    """Moves the cameras of all browsers by what the robot has moved.

    Args:
        server: the viser server. start: middle of the robot (3,) m, where the first camera looks. span: m, of it.
    """

    def __init__(self, server: viser.ViserServer, start: NDArray[np.float64], span: float) -> None:
        self._server, self._span = server, span
        self._start = np.array(start)
        self._shift = np.zeros(3)
        self._given: dict[int, NDArray[np.float64]] = {}
        self._under_way = False
        self.follows = True

    @property
    def shift(self) -> NDArray[np.float64]:
        """(3,) m, how far the cameras have gone."""
        return self._shift.copy()

    def update(self, middle: NDArray[np.float64]) -> bool:
        """Go on towards the middle of the robot (3,) m; tells whether there is some way left."""
        if self.follows:
            left = middle - self._start - self._shift
            distance = float(np.linalg.norm(left))
            self._under_way = distance > (ARRIVE if self._under_way else LEAVE) * self._span
            if self._under_way:
                jumped = distance > 2.0 * self._span  # a reset, or a leap in a replay
                self._shift += left if jumped else SHARE * left
        clients = self._server.get_clients()
        self._given = {key: given for key, given in self._given.items() if key in clients}
        for key, client in clients.items():
            with contextlib.suppress(AssertionError, ValueError):  # it has gone, or has told nothing yet
                if not client.camera.update_timestamp:
                    continue
                if key not in self._given and 0.0 < client.camera.aspect < UPRIGHT:
                    self._fit(client.camera)
                step = self._shift - self._given.setdefault(key, np.zeros(3))
                if np.abs(step).max() > 1e-4 * self._span:
                    client.camera.position = client.camera.position + step  # takes what it looks at along
                    self._given[key] = self._shift.copy()
        return self._under_way and self.follows

    def _fit(self, camera: viser.CameraHandle) -> None:
        """Step back where the page is narrower than high, as on a phone, since the first camera fits the height, and
        show the robot in the upper part, since the panel hides the lower one."""
        aim = np.array(camera.look_at)
        away = (np.array(camera.position) - aim) * (WIDTH / camera.aspect)
        distance = float(np.linalg.norm(away))
        side = np.cross((0.0, 0.0, 1.0), away / distance)
        up = np.cross(away / distance, side / max(float(np.linalg.norm(side)), 1e-9))
        height = 2.0 * distance * np.tan(0.5 * camera.fov)  # m, of what the page shows around the robot
        aim = aim - HIDDEN * height * up
        camera.position = aim + away
        camera.look_at = aim
