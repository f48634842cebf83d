"""Data of a bag about its robot: the robot file, the parameters of the nodes, and the namespace of its topics."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tensegrity_dynamics.errors import TensegrityError

from .reader import Bag

ROBOT_FILE = "robot_file"
"""Topic (std_msgs/String, latched) with the text of the robot file."""
ROBOT_LAYOUT = "robot_layout"
"""Topic (tensegrity/RobotLayout, latched) with the names of the numbers in states."""
PARAMETERS = "/parameter_events"
JOINT_STATES = "sensor_msgs/msg/JointState"
VALUES = (
    None, "bool_value", "integer_value", "double_value", "string_value", "byte_array_value", "bool_array_value",
    "integer_array_value", "double_array_value", "string_array_value",
)  # fmt: skip
"""Field name of a rcl_interfaces/ParameterValue by its type."""


@dataclass
class Contents:
    """Recorded data about a run.

    Attributes:
        namespace: namespace of the robot's topics, "" or "/name".
        robot_text: text of the robot file, "" if the bag does not contain it.
        layout: hash of the names of its states, "" if it was not recorded.
        parameters: initial parameters of each node by its full name.
    """

    namespace: str = ""
    robot_text: str = ""
    layout: str = ""
    parameters: dict[str, dict[str, Any]] = field(default_factory=dict)

    def topic(self, name: str) -> str:
        """Full name of a topic of the robot."""
        return name if name.startswith("/") else f"{self.namespace}/{name}"

    @property
    def robot_path(self) -> Path | None:
        """Path of the robot file if it still exists; files that it names are relative to it."""
        for parameters in self.parameters.values():
            path = Path(str(parameters.get("robot", "")))
            if path.suffix in (".yaml", ".yml") and path.is_file():
                return path
        return None

    def of_node(self, name: str) -> dict[str, Any] | None:
        """Parameters of one node of the robot; None if it did not run or they were not recorded."""
        return self.parameters.get(f"{self.namespace}/{name}")


def read_contents(bag: Bag) -> Contents:
    """Data of a bag about its robot. Raises TensegrityError if it contains joint_states of several robots."""
    found = [name for name in bag.of_type(JOINT_STATES) if name.split("/")[-1] == "joint_states"]
    if len(found) > 1:
        raise TensegrityError(f"{bag.path} holds several robots: {', '.join(sorted(found))}; take one of them.")
    result = Contents(found[0].removesuffix("/joint_states") if found else "")
    file, layout = result.topic(ROBOT_FILE), result.topic(ROBOT_LAYOUT)
    topics_read = [each for each in (file, layout, PARAMETERS) if each in bag.topics]
    decoders = {each: bag.decoder(each) for each in topics_read}
    for message in bag.messages(topics_read) if topics_read else ():
        decoded = decoders[message.topic](message.data)
        if message.topic == file:
            result.robot_text = decoded.data
        elif message.topic == layout:
            result.layout = decoded.hash
        else:
            values = result.parameters.setdefault(decoded.node, {})
            for each in decoded.new_parameters:
                values.setdefault(each.name, parameter_value(each.value))
    return result


def parameter_value(value: Any) -> Any:
    """Value of a rcl_interfaces/ParameterValue; None if it is not set."""
    kind = VALUES[value.type] if 0 <= value.type < len(VALUES) else None
    return None if kind is None else getattr(value, kind)
