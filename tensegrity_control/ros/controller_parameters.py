"""Which controller runs, with its parameters: `controller` and `<controller>.<gain>`, both while it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tensegrity_dynamics.errors import TensegrityError, unknown_name
from tensegrity_dynamics.robots.robot import Robot
from tensegrity_dynamics.ros.robot_node import RobotNode

from ..controller import Controller, Setting
from ..controllers.goal_controller import wait_for_robot
from ..controllers.goal_taker import GoalTaker, checked_goal_taker
from ..controllers.output_tracking import PLANS
from ..controllers.sampled_controller import ACTUATIONS
from ..registry import controller_class, make_controller, suitable


class ControllerParameters:
    """Declares the parameters on a node and makes controllers from them.

    Args:
        node: whose parameters they are. robot: to be controlled.
    """

    def __init__(self, node: RobotNode, robot: Robot) -> None:
        self._node, self._robot, self.names = node, robot, suitable(robot)
        self.name = self._checked_name(
            node.parameter(
                "controller",
                "",
                f"name of the controller; empty: {self.names[0]}; others: {', '.join(self.names[1:]) or 'none'}",
                live=True,
            )
        )
        self._rigid = node.parameter("rigid_bars", True, "plan with rigid bars, as in simulation")
        self.period = node.parameter(
            "control_period", 0.02, "period of the commands of a torque or rate controller [s]", low=0.0005, high=1.0
        )
        self._tracked = node.parameter(
            "near_rigid.tracked",
            "",
            "names of the coordinates that follow the path, separated by blanks; empty: the heaviest",
        )
        self._actuations = {
            name: node.parameter(
                f"{name}.actuation", ACTUATIONS[0], f"set points that {name} sends: impedances stay stable when "
                "commands are late, efforts do not", choices=ACTUATIONS,
            )
            for name in self.names if "actuation" in controller_class(name).parameters()
        }  # fmt: skip
        self._plans = {
            name: node.parameter(
                f"{name}.plan", PLANS[0], f"receding: {name} plans again during the motion",
                choices=PLANS,
            )
            for name in self.names if "plan" in controller_class(name).parameters()
        }  # fmt: skip
        self._gains = {
            name: self._numbers(name, controller_class(name).default_gains(), live=True) for name in self.names
        }
        self._settings = {
            name: self._numbers(name, controller_class(name).default_settings(), live=False) for name in self.names
        }

    def _numbers(self, name: str, defaults: Mapping[str, float], live: bool) -> dict[str, float]:
        """Declare numbers of a controller, with what they are and their ranges, and give their values."""
        found = {}
        for each, value in defaults.items():
            about = controller_class(name).ABOUT.get(each, Setting())
            text = f"of the controller {name}{'' if live else ', takes effect when it starts'}"
            text = f"{about.text} ({text})" if about.text else f"gain {text}"
            found[each] = self._node.parameter(f"{name}.{each}", value, text, low=about.low, high=about.high, live=live)
        return found

    def make(self, name: str, make: Callable[..., Controller] = make_controller) -> GoalTaker:
        """The controller of a name with the gains that are set, by one of the registry's. Raises TensegrityError."""
        name = self._checked_name(name)
        shared: dict[str, Any] = {
            "rigid_bars": self._rigid,
            "period": self.period,
            "tracked": self._tracked.split() or None,
        }
        shared["actuation"], shared["plan"] = self._actuations.get(name), self._plans.get(name)
        takes = controller_class(name).parameters()
        options = {key: value for key, value in shared.items() if key in takes}
        made = make(name, self._robot, **options, **self._settings[name], **self._gains[name])
        controller = checked_goal_taker(made, name)
        wait_for_robot(controller)
        self.name = name
        return controller

    def set_gain(self, controller: GoalTaker, parameter: str, value: float) -> None:
        """Change `<controller>.<gain>`, of the one that runs at once. Raises TensegrityError, and nothing changes."""
        name, gain = parameter.split(".", 1)
        if name == self.name:
            controller.set_gains(**{gain: value})
        self._gains[name][gain] = float(value)

    def is_gain(self, parameter: str) -> bool:
        """Whether a parameter is a gain of one of the controllers."""
        name, _, gain = parameter.partition(".")
        return gain in self._gains.get(name, ())

    def _checked_name(self, name: str) -> str:
        name = name or self.names[0]
        if name not in self.names:
            raise TensegrityError(unknown_name("controller", name, self.names, f"for {self._robot.name}"))
        return name
