"""Image of one shape of a robot, drawn from its `Picture`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tensegrity_dynamics.numerics.rotations import matrix_from_quaternion
from tensegrity_dynamics.robots.robot import Robot
from tensegrity_dynamics.visualization.geometry import CORNERS, EDGES
from tensegrity_dynamics.visualization.picture import make_picture
from tensegrity_dynamics.visualization.style import LOOKS, SLACK_COLOUR, round_up, tension_colours

from .output import save_picture


def draw_shape(robot: Robot, configuration: NDArray[np.float64], tensions: NDArray[np.float64], path: Path) -> None:
    """Write an image of a robot: solids as axes or edges, tendons coloured by tension, slack tendons dashed.

    Args:
        configuration: configuration as for `Picture`. tensions: (m,) [N]. path: .png, .svg or .pdf file.
    """
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap, Normalize
    from matplotlib.figure import Figure
    from mpl_toolkits.mplot3d.art3d import Line3DCollection

    picture = make_picture(robot)
    snapshot = picture.at(configuration)
    finite = tensions[picture.unilateral & np.isfinite(tensions)]
    scale = max(round_up(1.1 * float(finite.max(initial=0.0))), picture.smallest_full_scale)
    figure = Figure(figsize=(7.0, 7.0), layout="constrained")
    axes = figure.add_subplot(projection="3d")
    drawn = [snapshot.label_positions.reshape(-1, 3)]
    poses = zip(picture.solids, snapshot.solid_sizes, snapshot.solid_positions, snapshot.solid_quaternions, strict=True)
    for solid, size, position, quaternion in poses:
        turn = matrix_from_quaternion(quaternion)
        if solid.kind == "cylinder":
            ends = position + np.array([[-0.5], [0.5]]) * size[2] * turn[:, 2]
            lines, width = ends[None], 4.0 if solid.role == "bars" else 1.5
        else:
            lines, width = (position + (CORNERS * size) @ turn.T)[EDGES], 0.8
        drawn.append(lines.reshape(-1, 3))
        colour = np.array(LOOKS[solid.role].colour) / 255.0
        axes.add_collection3d(Line3DCollection(lines, colors=[colour], linewidths=width))
    slack, colours = picture.slack(tensions, scale), tension_colours(tensions, scale) / 255.0
    for group, lines in zip(picture.line_sets, snapshot.lines, strict=True):
        loose = slack[group.rows]
        drawn.append(lines.reshape(-1, 3))
        if not loose.all():  # matplotlib draws no empty collections
            axes.add_collection3d(Line3DCollection(lines[~loose], colors=colours[group.rows[~loose]], linewidths=1.6))
        if loose.any():
            grey = np.array(SLACK_COLOUR) / 255.0
            axes.add_collection3d(Line3DCollection(lines[loose], colors=[grey], linewidths=1.2, linestyles="dashed"))
    points = np.concatenate(drawn)
    low, high = points.min(axis=0), points.max(axis=0)
    half = 0.5 * float((high - low).max()) or 0.5
    for name, middle in zip("xyz", 0.5 * (low + high), strict=True):
        getattr(axes, f"set_{name}lim")(middle - half, middle + half)
        getattr(axes, f"set_{name}label")(f"{name} [m]")
    axes.locator_params(nbins=5)  # labels of two axes overlap in a corner
    if finite.size:
        shades = ListedColormap(tension_colours(np.linspace(0.0, scale, 64), scale) / 255.0)
        scaled = ScalarMappable(Normalize(0.0, scale), shades)
        figure.colorbar(scaled, ax=axes, label="tension [N]", shrink=0.6, pad=0.1)
    axes.set_box_aspect(None, zoom=0.88)  # otherwise the last label is cut off
    title = f"{robot.name}: tensions {finite.min():.3g} to {finite.max():.3g} N"
    axes.set_title(title if finite.size else robot.name)
    save_picture(figure, path, dpi=130)
