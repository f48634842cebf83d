"""Camera that follows a rolling robot; users can still rotate and zoom the view."""

from __future__ import annotations

import contextlib
import time
from typing import Any, NamedTuple

import numpy as np
import viser
from numpy.typing import NDArray

from tensegrity_dynamics.visualization.picture import Snapshot

LEAVE, ARRIVE = 0.25, 0.02
"""Distance of the robot from the centre of view at which the camera starts, and stops, to follow it, relative to the
span of the robot [-]."""
UPRIGHT = 0.65
"""Aspect ratio (width over height) below which a page is treated as that of a phone."""
WIDTH = 0.92
"""Aspect ratio of the part of a phone page in which the robot has to fit."""
HIDDEN = 0.25
"""Upward shift of the robot from the centre of a phone page, relative to the page height; the panel covers the lower
half."""
NARROWEST = 0.35
"""Smallest plausible aspect ratio; a page reports smaller ones only during its layout."""
SETTLED = 0.4
"""Time without change of the aspect ratio of a page after which the camera is fitted to it [s]."""
SHARE = 0.15
"""Fraction of the remaining distance by which the camera moves per frame."""


def middle_of(snapshot: Snapshot) -> NDArray[np.float64]:
    """(3,) centre of the drawn parts [m]."""
    parts = (snapshot.balls, snapshot.solid_positions, snapshot.label_positions)
    points = next((each for each in parts if len(each)), np.zeros((1, 3)))
    return np.asarray(points.mean(axis=0))


class Fit(NamedTuple):
    """Difference of a camera from the initial one: ratio of distances, and downward shift relative to the page
    height."""

    distance: float = 1.0
    lower: float = 0.0


def fit_of(aspect: float) -> Fit:
    """Fit of the camera to a page with an aspect ratio (width over height).

    The initial camera fits the height. On a page that is narrower than high, as on a phone, the camera moves back and
    shows the robot in the upper part, since the panel covers the lower part.
    """
    return Fit(WIDTH / max(aspect, NARROWEST), HIDDEN) if aspect < UPRIGHT else Fit()


class FollowingCamera:
    """Camera control that moves the cameras of all browsers with the robot and fits them to the aspect ratio of their
    pages.

    Args:
        server: viser server. start: (3,) centre of the robot, target of the initial camera [m]. span: span of the robot
        [m].
    """

    def __init__(self, server: viser.ViserServer, start: NDArray[np.float64], span: float) -> None:
        self._server, self._span = server, span
        self._start = np.array(start)
        self._shift = np.zeros(3)
        self._given: dict[int, NDArray[np.float64]] = {}
        self._fits: dict[int, Fit] = {}
        self._shapes: dict[int, tuple[float, float]] = {}  # aspect ratio, and time of its last change
        self._is_moving = False
        self.follows = True

    @property
    def shift(self) -> NDArray[np.float64]:
        """(3,) displacement of the cameras [m]."""
        return self._shift.copy()

    def update(self, middle: NDArray[np.float64]) -> bool:
        """Move towards the centre of the robot (3,) [m]; returns whether the motion is still incomplete."""
        if self.follows:
            left = middle - self._start - self._shift
            distance = float(np.linalg.norm(left))
            self._is_moving = distance > (ARRIVE if self._is_moving else LEAVE) * self._span
            if self._is_moving:
                jumped = distance > 2.0 * self._span  # a reset, or a jump in a replay
                self._shift += left if jumped else SHARE * left
        clients = self._server.get_clients()
        records: tuple[dict[int, Any], ...] = (self._given, self._fits, self._shapes)
        for record in records:
            for key in record.keys() - clients.keys():
                del record[key]
        settling = False
        for key, client in clients.items():
            with contextlib.suppress(AssertionError, ValueError):  # disconnected, or has sent no data yet
                if client.camera.update_timestamp:
                    settling |= not self._lead(key, client.camera)
        return settling or (self._is_moving and self.follows)

    def _lead(self, key: int, camera: viser.CameraHandle) -> bool:
        """Fit a camera to its page, also after a rotation of the page, and move it; returns False if this is still
        pending.

        Rotation and zoom by users are kept: only the distance is scaled, and the height on the page is changed.
        """
        aspect, now = camera.aspect, time.monotonic()
        former, since = self._shapes.get(key, (0.0, now))
        if abs(aspect - former) > 0.01 * aspect:
            self._shapes[key] = (aspect, since := now)
        first = self._server.initial_camera
        if self._fits.get(key, Fit()) != Fit() and np.allclose(camera.position, first.position, 0.0, 1e-5 * self._span):
            # the page applied the initial camera after ours, or a user pressed "Reset View"
            self._shapes[key] = (aspect, since := now)
            del self._fits[key]
            self._given.pop(key, None)
        settled = now - since >= SETTLED
        new = key not in self._fits
        if new and not settled:
            return False
        # the camera and angle that a new page has sent are not its present ones any more
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
    """(3,) vector from the lower to the upper edge of the page, at the distance of the camera target [m]."""
    distance = float(np.linalg.norm(away))
    side = np.cross((0.0, 0.0, 1.0), away)
    up = np.cross(away / distance, side / max(float(np.linalg.norm(side)), 1e-9))
    return np.asarray(2.0 * distance * np.tan(0.5 * angle) * up)
