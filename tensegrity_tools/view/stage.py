"""Ground, light and initial camera of the scene in the browser, scaled to the size of the robot."""

from __future__ import annotations

import numpy as np
import viser
from numpy.typing import NDArray

from tensegrity_dynamics.visualization.style import round_up

FIELD_OF_VIEW = np.radians(38.0)  # from the lower to the upper edge; narrow, so that parallels look parallel
FLAT = 0.1  # height relative to the span below which the camera looks from above


def set_up_stage(server: viser.ViserServer, points: NDArray[np.float64], span: float) -> tuple[float, viser.GridHandle]:
    """Add ground, light and camera for points (n, 3) [m] of a robot with a span [m].

    Returns:
        Size of a grid cell [m], and the grid.
    """
    scene = server.scene
    scene.set_up_direction("+z")
    scene.configure_default_lights(True, cast_shadow=True)
    # No environment map: it changes the colours, which have a meaning.
    scene.configure_environment_map(None)
    scene.add_light_ambient("/light", intensity=0.7)
    scene.world_axes.visible = False
    cell = round_up(span / 12.0)
    low, high = points.min(axis=0), points.max(axis=0)
    middle = 0.5 * (low + high)
    side = 2.0 * cell * np.ceil(1.7 * span / cell)
    grid = scene.add_grid(
        "/ground",
        width=side,
        height=side,
        cell_size=cell,
        section_size=5.0 * cell,
        cell_color=(222, 225, 230),
        section_color=(190, 195, 203),
        fade_distance=6.0 * span,
        fade_from="origin",
        shadow_opacity=0.18,
        position=(0.0, 0.0, float(min(0.0, low[2]))),
    )
    camera = server.initial_camera
    camera.near, camera.far = 0.01 * span, 60.0 * span
    camera.fov = FIELD_OF_VIEW
    camera.look_at = middle
    # Distance at which a sphere around the points, with a margin for motion, fits between upper and lower edge.
    reach = 1.25 * max(float(np.linalg.norm(points - middle, axis=1).max()), 0.4 * span)
    flat = high[2] - low[2] < FLAT * span
    direction = np.array([0.42, -0.62, 0.85] if flat else [0.80, -0.52, 0.30])
    camera.position = middle + reach / np.sin(0.5 * FIELD_OF_VIEW) * direction / np.linalg.norm(direction)
    camera.up = (0.0, 0.0, 1.0)
    return cell, grid
