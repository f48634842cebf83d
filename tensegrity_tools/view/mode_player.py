"""Animation of modes in the browser view: the robot oscillates along a mode shape about its shape at rest.

Every mode is shown with the same period and amplitude, independently of its frequency and energy; the amplitude is a
fraction of the size of the robot. Phases between parts are those of the (complex) mode shape; growth and decay are not
shown.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.linear_models.modes import Mode, ModeShapes
from tensegrity_dynamics.robots.robot import Robot
from tensegrity_dynamics.robots.robot_types import type_of
from tensegrity_dynamics.visualization.picture import Picture

from .state import ViewState
from .view import View

Array = NDArray[np.float64]

LITTLE = 1e-4
"""Step with which the size of a mode is measured [rad or m]."""
PERIOD = 2.0
"""Period of the oscillation in the view [s]."""
SIZE = 0.06
"""Amplitude relative to the span of the robot."""
RATE = 30.0
"""Frame rate [1/s]."""


class ModePlayer:
    """Modes of one robot, with one selected mode.

    Args:
        robot: robot whose report contains modes. number: number of the mode, from 1.

    Raises:
        TensegrityError: the robot has no modes, or fewer modes.
    """

    def __init__(self, robot: Robot, number: int = 1) -> None:
        self.robot = robot
        self.shapes: ModeShapes = type_of(robot).report(robot).mode_shapes()
        if not self.shapes.modes:
            raise TensegrityError(f"{robot.name}: nothing can move, so that it has no modes; what is held holds it.")
        self.size = 1.0
        self.choose(number)

    def choose(self, number: int) -> None:
        """Select a mode by its number, from 1. Raises TensegrityError if it does not exist."""
        count = len(self.shapes.modes)
        if not 1 <= number <= count:
            raise TensegrityError(f"{self.robot.name} has modes 1 to {count}, found {number}.")
        self.number = number

    @property
    def mode(self) -> Mode:
        """Selected mode."""
        return self.shapes.modes[self.number - 1]

    @property
    def words(self) -> str:
        """Description of the mode in one line."""
        mode = self.mode
        swing = f"{mode.frequency:.4g} Hz, damping ratio {mode.damping:.3g}" if mode.frequency else mode.kind
        return f"{self.number}: {swing}; {mode.what}"

    def configurations(self, picture: Picture) -> Callable[[float], Array]:
        """Configuration as a function of the phase [rad]; its amplitude is `SIZE` times `size` of the span of the
        robot."""
        shape, moved = self.mode.shape, self.shapes.moved
        rest = drawn_points(picture, self.shapes.configuration)
        little = LITTLE / float(np.abs(shape).max())
        parts = [drawn_points(picture, moved(little * each)) - rest for each in (shape.real, shape.imag)]
        largest = float(np.sqrt(np.max(np.sum(parts[0] ** 2 + parts[1] ** 2, axis=1)))) / little
        scale = SIZE * picture.sizes.span * self.size / largest if largest > 0.0 else 0.0
        return lambda phase: moved(scale * (shape * np.exp(1j * phase)).real)


def drawn_points(picture: Picture, configuration: Array) -> Array:
    """(k, 3) centres of solids, ends of lines and balls at a configuration [m]."""
    snapshot = picture.at(configuration)
    lines = (np.reshape(each, (-1, 3)) for each in snapshot.lines)
    return np.vstack([snapshot.solid_positions, snapshot.balls, *lines])


def play_modes(
    robot: Robot, number: int, port: int, address: str, say: Callable[[str], None], until: Callable[[], bool]
) -> None:
    """Show modes in a browser view, with a selection, until `until()` is true.

    Raises:
        TensegrityError: the robot has no such mode, or the view cannot listen on the address.
    """
    player = ModePlayer(robot, number)
    shapes = player.shapes
    with View(robot, port, host=address) as view:
        picture = view.picture
        tensions = np.array([shapes.tensions.get(name, np.nan) for name in picture.tension_names])

        changed = [True]
        names = [f"{k + 1}: {mode.frequency:.4g} Hz" if mode.frequency else f"{k + 1}: {mode.kind}"
                 for k, mode in enumerate(shapes.modes)]  # fmt: skip

        def take(number: int, size: float) -> None:
            player.choose(number)
            player.size = size
            changed[0] = True

        with view.controls.add_folder("Modes", order=0.0):  # at the top, where a phone shows it
            chosen = view.controls.add_dropdown("Mode", names, initial_value=names[number - 1])
            size = view.controls.add_slider("Size", 0.1, 3.0, 0.1, 1.0)
            chosen.on_update(lambda event: take(names.index(chosen.value) + 1, size.value))
            size.on_update(lambda event: take(player.number, size.value))
        say(f"{robot.name}, mode {player.words}")
        say(f"{view.port_note or 'the view is'} at {view.url}")
        begun = time.monotonic()
        while not until():
            if changed[0]:
                changed[0] = False
                at = player.configurations(picture)
                view.warn(f"mode {player.words}")
            now = time.monotonic() - begun
            view.show(ViewState(now, at(2.0 * np.pi * now / PERIOD), tensions, mode="mode shape", source="the library"))
            time.sleep(1.0 / RATE)
