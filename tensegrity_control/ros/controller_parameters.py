"""Which controller runs, with its parameters: `controller` and `<controller>.<gain>`, both while it runs."""

from __future__ import annotations

from typing import Any

from tensegrity_dynamics.errors import TensegrityError, unknown_name
from tensegrity_dynamics.robots.robot import Robot
from tensegrity_dynamics.ros.robot_node import RobotNode

from ..registry import default_gains, make_controller, parameters_of, suitable

LARGEST = 1e6


class ControllerChoice:
    """Declares the parameters on a node and makes controllers from them.

    Args:
        node: whose parameters they are. robot: to be controlled.
    """

    def __init__(self, node: RobotNode, robot: Robot) -> None:
        self._node, self._robot, self.names = node, robot, suitable(robot)
        self.name = self._asked(
            node.parameter(
                "controller", "", f"empty for {self.names[0]}; others: {', '.join(self.names[1:]) or 'none'}", live=True
            )
        )
        self._rigid = node.parameter("rigid_bars", True, "plan with bars that keep their length, as in simulation")
        self.period = node.parameter(
            "control_period", 0.02, "s between two commands of a torque or rate controller", low=0.0005, high=1.0
        )
        self._tracked = node.parameter(
            "near_rigid.tracked", "", "coordinates that follow the path, with blanks between; empty: the heaviest"
        )
        self._gains: dict[str, dict[str, float]] = {}
        for name in self.names:
            self._gains[name] = {
                gain: node.parameter(
                    f"{name}.{gain}", value, f"gain of the controller {name}", low=0.0, high=LARGEST, live=True
                )
                for gain, value in default_gains(name).items()
            }

    def make(self, name: str) -> Any:
        """The controller of a name with the gains that are set. Raises TensegrityError."""
        name = self._asked(name)
        options: dict[str, Any] = dict(self._gains[name])
        known = parameters_of(name)
        if "rigid_bars" in known:
            options["rigid_bars"] = self._rigid
        if "period" in known:
            options["period"] = self.period
        if name == "near_rigid" and self._tracked:
            options["tracked"] = self._tracked.split()
        controller = make_controller(name, self._robot, **options)
        self.name = name
        return controller

    @property
    def is_paced(self) -> bool:
        """Whether the present controller is made for a period."""
        return self.name not in ("tendon_length", "joint_position")

    def set_gain(self, controller: Any, parameter: str, value: float) -> None:
        """Change `<controller>.<gain>`, of the one that runs at once. Raises TensegrityError, and nothing changes."""
        name, gain = parameter.split(".", 1)
        if name == self.name:
            controller.set_gains(**{gain: value})
        self._gains[name][gain] = float(value)

    def is_gain(self, parameter: str) -> bool:
        """Whether a parameter is a gain of one of the controllers."""
        name, _, gain = parameter.partition(".")
        return gain in self._gains.get(name, ())

    def _asked(self, name: str) -> str:
        name = name or self.names[0]
        if name not in self.names:
            raise TensegrityError(unknown_name(f"controller for {self._robot.name}", name, self.names))
        return name
