"""Plot of tension over time for the last seconds, as a drawing (SVG) in the panel.

The chart of viser loses its time axis if data arrive while the panel is being unfolded.
"""

from __future__ import annotations

from collections import deque
from html import escape

import numpy as np
from numpy.typing import NDArray

from tensegrity_dynamics.visualization.picture import Picture
from tensegrity_dynamics.visualization.style import scale_ticks

WINDOW = 20.0  # s of robot time
SPACING = 0.08  # s between points
MAX_LINES = 24

# Colours that are distinguishable on white, also for most colour-blind people (Tol's bright and muted sets).
LINE_COLOURS = (
    "#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#332288", "#88ccee", "#117733", "#999933",
    "#cc6677", "#882255",
)  # fmt: skip

WIDTH, HEIGHT = 320, 150  # of the drawing, in pixels
LEFT, RIGHT, TOP, BOTTOM = 46, 8, 8, 30  # margins around the lines


class TensionPlot:
    """Tension over time: one line per actuated tendon or cable, or per passive one where none is actuated.

    More than `MAX_LINES` are reduced to three lines: lowest, mean and highest.

    Args:
        picture: picture of the robot.

    Attributes:
        names: names of the lines.
    """

    def __init__(self, picture: Picture) -> None:
        self._rows = rows = picture.plotted
        self._summary = len(rows) > MAX_LINES
        self.names = ["lowest", "mean", "highest"] if self._summary else [picture.tension_names[row] for row in rows]
        self._points: deque[tuple[float, NDArray[np.float64]]] = deque(maxlen=int(WINDOW / SPACING) + 2)

    def add(self, time: float, tensions: NDArray[np.float64]) -> None:
        """Add the tensions (m,) [N] at a time [s]; a backward jump of the time starts a new plot."""
        if self._points and time < self._points[-1][0]:
            self._points.clear()
        if self._points and time < self._points[-1][0] + SPACING:
            return
        values = tensions[self._rows]
        if self._summary:
            finite = values[np.isfinite(values)]
            values = np.array([finite.min(), finite.mean(), finite.max()]) if finite.size else np.full(3, np.nan)
        self._points.append((time, values))
        while time - self._points[0][0] > WINDOW:
            self._points.popleft()

    @property
    def times(self) -> list[float]:
        """Times of the samples in the plot, in order [s]."""
        return [time for time, _ in self._points]

    def svg(self, full_scale: float) -> str:
        """SVG drawing with a scale from 0 to `full_scale` [N]; unknown tensions are left out of a line."""
        wide, high = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
        lines = "".join(self._lines(full_scale, wide, high))
        return (
            f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" style="width:100%;display:block" font-size="10" fill="currentColor">'
            f"{_grid(full_scale, wide, high)}{lines}</svg>"
        )

    def _lines(self, full_scale: float, wide: int, high: int) -> list[str]:
        if len(self._points) < 2:
            return []
        times = np.array([time for time, _ in self._points]) - self._points[-1][0]
        values = np.clip(np.array([values for _, values in self._points]), 0.0, full_scale)
        across = np.char.mod("%.1f", LEFT + wide * (1.0 + times / WINDOW))
        down = np.char.mod("%.1f", TOP + high * (1.0 - values / full_scale))
        finite = np.isfinite(values)
        drawn = []
        for k, name in enumerate(self.names):
            shown = finite[:, k]
            points = " ".join(f"{x},{y}" for x, y in zip(across[shown], down[shown, k], strict=True))
            colour = LINE_COLOURS[k % len(LINE_COLOURS)]
            drawn.append(
                f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.4">'
                f"<title>{escape(name)}</title></polyline>"
            )
        return drawn


def _grid(full_scale: float, wide: int, high: int) -> str:
    parts = []
    for value in scale_ticks(full_scale):
        y = TOP + high * (1.0 - value / full_scale)
        parts.append(f'<path d="M{LEFT} {y:.1f}h{wide}" stroke="#e3e6ea"/>')
        parts.append(f'<text x="{LEFT - 5}" y="{y + 3.5:.1f}" text-anchor="end">{value:.3g}</text>')
    for k in range(5):
        x = LEFT + wide * k / 4.0
        parts.append(f'<path d="M{x:.1f} {TOP}v{high}" stroke="#e3e6ea"/>')
        label = "now" if k == 4 else f"{-WINDOW * (1.0 - k / 4.0):g}"
        anchor = "end" if k == 4 else "middle"
        parts.append(f'<text x="{x:.1f}" y="{TOP + high + 13}" text-anchor="{anchor}">{label}</text>')
    parts.append(f'<text x="{LEFT + wide / 2}" y="{HEIGHT - 3}" text-anchor="middle">time [s]</text>')
    middle = TOP + high / 2
    parts.append(f'<text x="9" y="{middle}" text-anchor="middle" transform="rotate(-90 9 {middle})">tension [N]</text>')
    return "".join(parts)
