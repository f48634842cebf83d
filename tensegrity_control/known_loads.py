"""Loads that somebody tells while a robot runs, and that the control reckons with as long as they are fresh."""

from __future__ import annotations

from numpy.typing import ArrayLike

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.external_wrenches import ExternalWrenches
from tensegrity_dynamics.robots.robot import Robot

from .controller import TAKES_NO_LOADS, Controller


class KnownLoads:
    """The wrenches that a controller is told, by the rules by which they act in simulation (`ExternalWrenches`).

    Args:
        robot: whose bodies or nodes they name. patience: s for which each counts.
    """

    def __init__(self, robot: Robot, patience: float = 0.5) -> None:
        self._wrenches = ExternalWrenches(robot.model.load_names, robot.model.takes_moments, patience)
        self._controller: Controller | None = None

    def take(
        self, controller: Controller, name: str, force: ArrayLike, moment: ArrayLike, stamp: float, now: float
    ) -> None:
        """A wrench on a body or node, N and N m about world axes, that was right at `stamp` [s].

        Raises:
            CommandRefused: unknown name, not finite, stale or of the future; says which.
            TensegrityError: this controller reckons with no loads.
        """
        if not controller.takes_loads:
            raise TensegrityError(f"{name}: {TAKES_NO_LOADS}")
        self._wrenches.take(name, force, moment, stamp, now)

    def tell(self, controller: Controller, now: float) -> None:
        """Tell a controller what acts at a time [s], where that is new to it; what is stale acts no more."""
        forces = self._wrenches.changed(now)
        if controller is not self._controller and controller.takes_loads:
            self._controller = controller
            forces = self._wrenches.held if forces is None else forces
        if forces is not None and controller.takes_loads:
            controller.set_loads(forces)

    def forget(self) -> None:
        """None acts any more, as after a reset."""
        self._wrenches.forget()
        self._controller = None
