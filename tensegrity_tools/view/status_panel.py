"""Texts of the panel as HTML: the state of the robot, and the legend of its colours."""

from __future__ import annotations

import time
from datetime import datetime
from html import escape

import numpy as np
from numpy.typing import NDArray

from tensegrity_dynamics.robots.output_frame import Pose, pose_error
from tensegrity_dynamics.visualization.picture import Picture
from tensegrity_dynamics.visualization.style import (
    CONTACT_COLOUR,
    SLACK_COLOUR,
    TENSION_COLOURS,
    UNKNOWN_COLOUR,
    scale_ticks,
)

from .display_units import LengthUnit, numbers, roll_pitch_yaw
from .state import ViewState

MODE_COLOURS = {"moving": "#1f6feb", "holding": "#1b7f5f", "idle": "#6b7280", "stopped": "#b3261e"}
MAX_NAMES = 8
COMPUTER_CLOCK = 1e9
"""Time above which a stamp is that of a computer clock (September 2001 or later); smaller ones start at zero [s]."""
LIVE = 60.0
"""Largest difference of such a stamp from the clock of this computer for a live robot, in contrast to a recording
[s]."""
WARNING, ERROR = "background:#fdf0d5", "background:#b3261e;color:#fff"


def status_html(
    picture: Picture, state: ViewState | None, pose: Pose | None, full_scale: float, unit: LengthUnit,
    notes: tuple[str, ...], standing: str = "", pushes: tuple[float, int] = (0.0, 0),
) -> str:  # fmt: skip
    """Status table at one time.

    Args:
        pose: pose of the output, or None. full_scale: full scale of tension [N]. notes: texts shown as warnings.
        standing: ground contact of the robot as text.
        pushes: total force of the ground [N], and number of contact points.
    """
    if state is None:
        return _table([("", "waiting for the first state of the robot ...")]) + _boxes(notes, WARNING)
    mode = escape(state.mode or "no controller")
    badge = (
        f'<span style="background:{MODE_COLOURS.get(state.mode, "#6b7280")};color:#fff;border-radius:0.7em;'
        f'padding:0.05em 0.7em">{mode}</span>'
    )
    rows = [("Controller", badge), ("Time", _time(state))]
    if pose is not None:
        rows.append(("Position", f"{numbers(pose[0] / unit.metres, unit.decimals)} {unit.name}"))
        if picture.has_orientation:
            rows.append(("Roll, pitch, yaw", f"{numbers(roll_pitch_yaw(pose[1]), 1)} °"))
        if state.goal is not None:
            rows.append(("Error to goal", _error(state.goal, pose, unit, picture.goal_sets_orientation)))
    if picture.surface is not None:
        rows.append(("Stands on", escape(standing) or "nothing"))
        force, count = pushes
        colour = "rgb({},{},{})".format(*CONTACT_COLOUR)
        shown = f'{force:.3g} N at {count} points <span style="color:{colour}">&#9473;</span>'
        rows.append(("Ground force", shown if count else "none"))
    tensions = state.tensions
    if tensions is not None and picture.unilateral.any():
        rows.append(("Tension", _tension_range(picture, tensions)))
        slack = np.flatnonzero(picture.slack(tensions, full_scale))
        rows.append(("Slack", _names([picture.tension_names[row] for row in slack])))
    warnings = list(notes) + list(state.notes)
    if not state.converged:
        warnings.append("the estimate of the configuration has not converged; do not rely on it")
    # errors that stop the robot come first, so that a phone shows them completely
    return _boxes(state.errors, ERROR) + _table(rows) + _boxes(tuple(warnings), WARNING)


def legend_html(full_scale: float, cell: float, unit: LengthUnit) -> str:
    """Legend: colour scale of tension from 0 to `full_scale` [N], slack, unknown, and size of a grid cell [m]."""
    steps = ", ".join("rgb({:.0f},{:.0f},{:.0f})".format(*colour) for colour in TENSION_COLOURS)
    grey, green = ("rgb({},{},{})".format(*colour) for colour in (SLACK_COLOUR, UNKNOWN_COLOUR))
    ticks = "".join(f"<span>{value:.3g}</span>" for value in scale_ticks(full_scale))
    dashed = f"background:repeating-linear-gradient(90deg,{grey} 0 5px,transparent 5px 9px)"
    swatch = "display:inline-block;width:2.2em;height:4px;vertical-align:middle;margin-right:0.4em"
    return (
        '<div style="font-size:0.85em;padding:0.2em 0.8em 0.4em">'
        f'<div style="height:0.8em;border-radius:0.3em;background:linear-gradient(90deg,{steps})"></div>'
        f'<div style="display:flex;justify-content:space-between">{ticks}</div>'
        '<div style="display:flex;justify-content:space-between;margin-top:0.2em"><span>tension [N]</span>'
        f'<span><i style="{swatch};{dashed}"></i>slack</span>'
        f'<span><i style="{swatch};background:{green}"></i>unknown</span></div>'
        f"{_ground(cell, unit)}</div>"
    )


def ground_html(cell: float, unit: LengthUnit) -> str:
    """Legend of a robot without a colour scale: size of a grid cell [m]."""
    return f'<div style="font-size:0.85em;padding:0.2em 0.8em 0.4em">{_ground(cell, unit)}</div>'


def _ground(cell: float, unit: LengthUnit) -> str:
    size = f"{round(cell / unit.metres, 9):g} {unit.name}"
    return f'<div style="color:#777;margin-top:0.2em">grid cell: {size}</div>'


def _time(state: ViewState) -> str:
    factor = state.real_time_factor
    speed = f" &nbsp;·&nbsp; {factor:.2f} × real time" if np.isfinite(factor) else ""
    if state.time < COMPUTER_CLOCK:
        return f"{state.time:.1f} s{speed}"
    if abs(time.time() - state.time) < LIVE:  # in real time
        return f"{datetime.fromtimestamp(state.time):%H:%M:%S}"
    return f"{datetime.fromtimestamp(state.time):%Y-%m-%d %H:%M:%S}{speed}"


def _error(goal: Pose, pose: Pose, unit: LengthUnit, with_orientation: bool) -> str:
    error = pose_error(goal, pose)
    text = f"{np.linalg.norm(error[:3]) / unit.metres:.{unit.decimals + 1}f} {unit.name}"
    return text + (f", {np.degrees(np.linalg.norm(error[3:])):.2f} °" if with_orientation else "")


def _tension_range(picture: Picture, tensions: NDArray[np.float64]) -> str:
    values = tensions[picture.unilateral]
    finite = values[np.isfinite(values)]
    if not finite.size:
        return "unknown"
    rest = f", {values.size - finite.size} unknown" if finite.size < values.size else ""
    return f"{finite.min():.2f} to {finite.max():.2f} N{rest}"


def _names(names: list[str]) -> str:
    if not names:
        return "none"
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return f'<b style="color:#b3261e">{escape(", ".join(names[:MAX_NAMES]))}{more}</b>'


def _table(rows: list[tuple[str, str]]) -> str:
    cells = "".join(
        f'<tr><td style="color:#777;padding-right:0.9em;white-space:nowrap;vertical-align:top">{name}</td>'
        f"<td>{value}</td></tr>"
        for name, value in rows
    )
    return (
        '<table style="font-size:0.85em;margin:0.2em 0.8em 0.3em;line-height:1.55;font-variant-numeric:tabular-nums">'
        f"{cells}</table>"
    )


def _boxes(notes: tuple[str, ...], colours: str) -> str:
    return "".join(
        f'<div style="font-size:0.85em;margin:0 0.8em 0.4em;padding:0.2em 0.6em;{colours};border-radius:0.3em">'
        f"{escape(note)}</div>"
        for note in notes
    )
