"""A camera that goes along with a robot that rolls away; people turn and zoom it as ever."""

from __future__ import annotations

import contextlib
import time
from typing import Any, NamedTuple

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
HIDDEN = 0.25
"""Part of a phone's page by which the robot is moved up from the middle: the panel takes the lower half."""
NARROWEST = 0.35
"""Width over height; what a page tells that is narrower is said while it is being laid out."""
SETTLED = 0.4
"""s for which the shape of a page has not changed, before the camera is fitted to it."""
SHARE = 0.15
"""Share of the remaining distance by which the camera goes with every picture."""


def middle_of(snapshot: Snapshot) -> NDArray[np.float64]:
    """(3,) m, the middle of what is drawn."""
    parts = (snapshot.balls, snapshot.solid_positions, snapshot.label_positions)
    points = next((each for each in parts if len(each)), np.zeros((1, 3)))
    return np.asarray(points.mean(axis=0))


class Fit(NamedTuple):
    """How a camera differs from the first one: times its distance, and the part of the page that it looks lower."""

    distance: float = 1.0
    lower: float = 0.0


def fit_of(aspect: float) -> Fit:
    """For a page of a width over its height.

    The first camera fits the height. Where the page is narrower than high, as on a phone, it steps back, and shows the
    robot in the upper part, since the panel hides the lower one.
    """
    return Fit(WIDTH / max(aspect, NARROWEST), HIDDEN) if aspect < UPRIGHT else Fit()


class FollowingCamera:
    """Moves the cameras of all browsers by what the robot has moved, and fits them to the shape of their pages.

    Args:
        server: the viser server. start: middle of the robot (3,) m, where the first camera looks. span: m, of it.
    """

    def __init__(self, server: viser.ViserServer, start: NDArray[np.float64], span: float) -> None:
        self._server, self._span = server, span
        self._start = np.array(start)
        self._shift = np.zeros(3)
        self._given: dict[int, NDArray[np.float64]] = {}
        self._fits: dict[int, Fit] = {}
        self._shapes: dict[int, tuple[float, float]] = {}  # width over height, and since when
        self._is_moving = False
        self.follows = True

    @property
    def shift(self) -> NDArray[np.float64]:
        """(3,) m, how far the cameras have gone."""
        return self._shift.copy()

    def update(self, middle: NDArray[np.float64]) -> bool:
        """Go on towards the middle of the robot (3,) m; returns whether some distance is left."""
        if self.follows:
            left = middle - self._start - self._shift
            distance = float(np.linalg.norm(left))
            self._is_moving = distance > (ARRIVE if self._is_moving else LEAVE) * self._span
            if self._is_moving:
                jumped = distance > 2.0 * self._span  # a reset, or a leap in a replay
                self._shift += left if jumped else SHARE * left
        clients = self._server.get_clients()
        records: tuple[dict[int, Any], ...] = (self._given, self._fits, self._shapes)
        for record in records:
            for key in record.keys() - clients.keys():
                del record[key]
        settling = False
        for key, client in clients.items():
            with contextlib.suppress(AssertionError, ValueError):  # it has gone, or has sent nothing yet
                if client.camera.update_timestamp:
                    settling |= not self._lead(key, client.camera)
        return settling or (self._is_moving and self.follows)

    def _lead(self, key: int, camera: viser.CameraHandle) -> bool:
        """Fit a camera to its page, also when that is turned, and take it along; False where that is still to be done.

        What people turned and zoomed stays: only the distance changes, by a factor, and the height on the page.
        """
        aspect, now = camera.aspect, time.monotonic()
        former, since = self._shapes.get(key, (0.0, now))
        if abs(aspect - former) > 0.01 * aspect:
            self._shapes[key] = (aspect, since := now)
        first = self._server.initial_camera
        if self._fits.get(key, Fit()) != Fit() and np.allclose(camera.position, first.position, 0.0, 1e-5 * self._span):
            # the page took the first camera after ours, or somebody pressed "Reset View"
            self._shapes[key] = (aspect, since := now)
            del self._fits[key]
            self._given.pop(key, None)
        settled = now - since >= SETTLED
        new = key not in self._fits
        if new and not settled:
            return False
        # a new page has sent a camera and an angle of its own that are not those that it has by now
        eye = first if new else camera
        aim, away = np.array(eye.look_at), np.array(eye.position) - np.array(eye.look_at)
        before, moved = self._fits.get(key, Fit()), False
        after = fit_of(aspect) if settled else before
        if max(abs(before.distance - after.distance), abs(before.lower - after.lower)) > 0.01:
            aim += before.lower * _page_height(away, first.fov)
            away *= after.distance / before.distance
            aim -= after.lower * _page_height(away, first.fov)
            moved = True
        step = self._shift - self._given.get(key, np.zeros(3))
        if np.abs(step).max() > 1e-4 * self._span:
            aim += step
            moved = True
        if moved:
            camera.position = aim + away
            camera.look_at = aim
            self._given[key] = self._shift.copy()
        self._fits[key] = after
        return settled or after == fit_of(aspect)


def _page_height(away: NDArray[np.float64], angle: float) -> NDArray[np.float64]:
    """(3,) m, from the lower to the upper edge of the page, at the distance of what the camera looks at."""
    distance = float(np.linalg.norm(away))
    side = np.cross((0.0, 0.0, 1.0), away)
    up = np.cross(away / distance, side / max(float(np.linalg.norm(side)), 1e-9))
    return np.asarray(2.0 * distance * np.tan(0.5 * angle) * up)
