"""Tension over time for the last seconds, drawn in the browser by the chart library that viser brings along."""

from __future__ import annotations

from collections import deque

import numpy as np
import viser
import viser.uplot
from numpy.typing import NDArray

from tensegrity_dynamics.robot import Robot

WINDOW = 20.0  # s of robot time
SPACING = 0.08  # s between points
MOST_LINES = 24

# Hues that stay apart on white, also for most colour-blind people (Tol's bright and muted sets).
LINE_COLOURS = (
    "#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#332288", "#88ccee", "#117733", "#999933",
    "#cc6677", "#882255",
)  # fmt: skip


class TensionPlot:
    """A line per actuated tendon (per tendon where none is actuated); many are thinned to lowest, mean and highest.

    Args:
        server: the viser server; the chart goes into the container that is open.
        robot: a robot whose model is a structure.
    """

    def __init__(self, server: viser.ViserServer, robot: Robot) -> None:
        structure = robot.structure
        rows = robot.actuated_members() if robot.actuators else np.flatnonzero(structure.unilateral)
        self._rows = rows
        self._summary = len(rows) > MOST_LINES
        names = ["lowest", "mean", "highest"] if self._summary else [structure.member_names[row] for row in rows]
        self._points: deque[tuple[float, NDArray[np.float64]]] = deque(maxlen=int(WINDOW / SPACING) + 2)
        lines = [
            viser.uplot.Series(label=name, stroke=LINE_COLOURS[k % len(LINE_COLOURS)], width=1.5)
            for k, name in enumerate(names)
        ]
        axis = {"grid": {"stroke": "#e6e8ec", "width": 1}, "ticks": {"stroke": "#c5c9d0", "width": 1}}
        small = {"font": "11px sans-serif", "labelFont": "11px sans-serif", "stroke": "#444", "labelSize": 16}
        self._chart = server.gui.add_uplot(
            (np.array([-WINDOW, 0.0]), *(np.full(2, np.nan) for _ in names)),
            (viser.uplot.Series(label="seconds ago"), *lines),
            scales=_scales(1.0),
            axes=(
                viser.uplot.Axis(label="time before now [s]", size=30, **axis, **small),
                viser.uplot.Axis(label="tension [N]", size=38, **axis, **small),
            ),
            legend=viser.uplot.Legend(show=False),
            height=190,
            padding=(8, 12, 0, 2),
        )
        self._top = 1.0

    def add(self, time: float, tensions: NDArray[np.float64]) -> None:
        """Remember one instant; a clock that jumps back starts a new plot."""
        if self._points and time < self._points[-1][0]:
            self._points.clear()
        if self._points and time < self._points[-1][0] + SPACING:
            return
        values = tensions[self._rows]
        if self._summary:
            known = values[np.isfinite(values)]
            values = np.array([known.min(), known.mean(), known.max()]) if known.size else np.full(3, np.nan)
        self._points.append((time, values))
        while time - self._points[0][0] > WINDOW:
            self._points.popleft()

    def draw(self, ceiling: float) -> None:
        """Send the points to the browsers, on a scale from 0 to ceiling [N]."""
        if len(self._points) < 2:
            return
        if ceiling != self._top:
            self._top = ceiling
            self._chart.scales = _scales(ceiling)
        times = np.array([time for time, _ in self._points]) - self._points[-1][0]
        values = np.array([values for _, values in self._points])
        self._chart.data = (times, *(np.ascontiguousarray(column) for column in values.T))


def _scales(ceiling: float) -> dict[str, viser.uplot.Scale]:
    """Fixed ranges: the client of viser loses track of a time axis whose end moves with every message."""
    return {"x": viser.uplot.Scale(time=False, range=(-WINDOW, 0.0)), "y": viser.uplot.Scale(range=(0.0, ceiling))}
