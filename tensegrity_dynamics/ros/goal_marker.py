"""Interactive goal marker of RViz: after dragging it and clicking on its ball, the pose is published on `goal_pose`.

The protocol of interactive markers (topics `update` and `feedback`, service `get_interactive_markers` of one name) is
implemented here, because the package `interactive_markers` has no Python server. The robot does not move while the
marker is dragged.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped
from rclpy.qos import QoSProfile
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import (
    InteractiveMarker,
    InteractiveMarkerControl,
    InteractiveMarkerFeedback,
    InteractiveMarkerPose,
    InteractiveMarkerUpdate,
    Marker,
)
from visualization_msgs.srv import GetInteractiveMarkers

from ..robots.output_frame import Pose
from ..visualization.mount import Mount
from ..visualization.picture import Picture
from ..visualization.style import GOAL_COLOUR, REFUSED_COLOUR, Colour
from .geometry_messages import fill_pose, pose_from_message
from .robot_node import STATE, WORLD, RobotNode

NAME = "goal"
TOPICS = "goal_marker"
UPDATES, FEEDBACK = QoSProfile(depth=100), QoSProfile(depth=1)
HALF = np.sqrt(0.5)
# a control moves along, or rotates about, the x axis of its orientation
AXES = {"x": (HALF, HALF, 0.0, 0.0), "y": (HALF, 0.0, 0.0, HALF), "z": (HALF, 0.0, HALF, 0.0)}


class GoalMarker:
    """Goal marker of one robot; its topics and its service belong to a node.

    Args:
        node: node of the marker. picture: picture of the robot. mount: pose of the robot in the world.
    """

    def __init__(self, node: RobotNode, picture: Picture, mount: Mount) -> None:
        self._node, self._mount = node, mount
        self._turns, self._size = picture.goal_sets_orientation, 0.35 * picture.sizes.span
        self._pose: Pose | None = None
        self._colour: Colour = GOAL_COLOUR
        self._words = "drag, then click the ball"
        self._number, self.held = 0, False
        self._updates = node.create_publisher(InteractiveMarkerUpdate, f"{TOPICS}/update", UPDATES)
        self._goals = node.create_publisher(PoseStamped, "goal_pose", STATE)
        node.create_subscription(InteractiveMarkerFeedback, f"{TOPICS}/feedback", self._feedback, FEEDBACK)
        node.create_service(GetInteractiveMarkers, f"{TOPICS}/get_interactive_markers", self._give)

    def set_pose(self, pose: Pose) -> None:
        """Set the marker to a pose of the output in base_link at the first call; later its pose is that of the user."""
        if self._pose is None:
            self._pose = pose
            self._send(markers=[self._marker()])

    def answered(self, accepted: bool, reason: str) -> None:
        """Show with colour and text whether the last goal was accepted."""
        self._colour = GOAL_COLOUR if accepted else REFUSED_COLOUR
        self._words = "" if accepted else reason
        if self._pose is not None:
            self._send(markers=[self._marker()])

    def close(self) -> None:
        """Delete the marker."""
        if self._pose is not None:
            self._send(erases=[NAME])

    # -- the protocol ---------------------------------------------------------------------------------------------

    def _send(self, **parts: Any) -> None:
        self._number += 1
        message = InteractiveMarkerUpdate(
            server_id=self._node.get_fully_qualified_name(), seq_num=self._number, type=InteractiveMarkerUpdate.UPDATE,
            **parts,
        )  # fmt: skip
        self._updates.publish(message)

    def _give(self, _: Any, response: GetInteractiveMarkers.Response) -> GetInteractiveMarkers.Response:
        response.sequence_number = self._number
        response.markers = [] if self._pose is None else [self._marker()]
        return response

    def _feedback(self, message: InteractiveMarkerFeedback) -> None:
        found = pose_from_message(message.pose)
        if message.marker_name != NAME or found is None or message.header.frame_id not in ("", WORLD):
            return
        if message.event_type == InteractiveMarkerFeedback.POSE_UPDATE:
            self._pose = self._mount.from_world(found)
            moved = InteractiveMarkerPose(name=NAME, pose=message.pose)
            moved.header.frame_id = WORLD
            self._send(poses=[moved])
        elif message.event_type == InteractiveMarkerFeedback.BUTTON_CLICK and self._pose is not None:
            self._ask(self._pose)

    def _ask(self, pose: Pose) -> None:
        goal = PoseStamped()
        # in base_link, which has the name of the world only if both frames are equal
        goal.header.frame_id = WORLD if self._mount.is_identity else ""
        goal.header.stamp = self._node.get_clock().now().to_msg()
        # on this topic a zero quaternion keeps the orientation
        fill_pose(goal.pose, pose[0], pose[1] if self._turns else np.zeros(4))
        self._goals.publish(goal)

    # -- its looks ------------------------------------------------------------------------------------------------

    def _marker(self) -> InteractiveMarker:
        assert self._pose is not None
        marker = InteractiveMarker(name=NAME, description=self._words, scale=self._size)
        marker.header.frame_id = WORLD
        fill_pose(marker.pose, *self._mount.to_world(self._pose))
        controls = [self._ball()]
        for axis, (w, x, y, z) in AXES.items():
            kinds = {"move": InteractiveMarkerControl.MOVE_AXIS}
            if self._turns:
                kinds["turn"] = InteractiveMarkerControl.ROTATE_AXIS
            for verb, mode in kinds.items():
                control = InteractiveMarkerControl(name=f"{verb}_{axis}", interaction_mode=mode)
                turn = control.orientation
                turn.w, turn.x, turn.y, turn.z = w, x, y, z
                controls.append(control)
        marker.controls = controls
        return marker

    def _ball(self) -> InteractiveMarkerControl:
        red, green, blue = (channel / 255.0 for channel in self._colour)
        ball = Marker(type=Marker.SPHERE, color=ColorRGBA(r=red, g=green, b=blue, a=0.8))
        ball.scale.x = ball.scale.y = ball.scale.z = 0.25 * self._size
        return InteractiveMarkerControl(
            name="ask", interaction_mode=InteractiveMarkerControl.BUTTON, always_visible=True, markers=[ball]
        )
