"""What a bag knows of its robot: the robot file, the parameters of the nodes, and where its topics are."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tensegrity_dynamics.errors import TensegrityError

from .reader import Bag

ROBOT_FILE = "robot_file"
"""Topic (std_msgs/String, latched) with the text of the robot file."""
ROBOT_LAYOUT = "robot_layout"
"""Topic (tensegrity/RobotLayout, latched) with the names that the numbers of states belong to."""
PARAMETERS = "/parameter_events"
JOINT_STATES = "sensor_msgs/msg/JointState"
VALUES = (
    None, "bool_value", "integer_value", "double_value", "string_value", "byte_array_value", "bool_array_value",
    "integer_array_value", "double_array_value", "string_array_value",
)  # fmt: skip
"""Field of a rcl_interfaces/ParameterValue by its type."""


@dataclass
class Contents:
    """What was recorded about a run.

    Attributes:
        namespace: of the robot's topics, "" or "/name". robot_text: of the robot file, "" where it is not in the bag.
        layout: hash of the names that its states have, "" where it was recorded without.
        parameters: of each node by its full name, as they were at the start.
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
        """Where the robot file was, if it still is there: files that it names are beside it."""
        for parameters in self.parameters.values():
            path = Path(str(parameters.get("robot", "")))
            if path.suffix in (".yaml", ".yml") and path.is_file():
                return path
        return None

    def of_node(self, name: str) -> dict[str, Any] | None:
        """Parameters of one of the robot's nodes; None where it did not run or was not asked."""
        return self.parameters.get(f"{self.namespace}/{name}")


def read_contents(bag: Bag) -> Contents:
    """What the bag knows. Raises TensegrityError: it holds joint_states of several robots."""
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
    """What a rcl_interfaces/ParameterValue holds; None where it is not set."""
    kind = VALUES[value.type] if 0 <= value.type < len(VALUES) else None
    return None if kind is None else getattr(value, kind)
