"""Node `markers`: display of the robot in RViz with markers, frames, a robot description and an interactive goal.

Subscribes structure_state, tendon_states, reference, goal, carried_payloads. Publishes markers, robot_description
(latched), /tf and /tf_static (where the package tf2_msgs is installed), the interactive marker `goal_marker`, goal_pose
and /diagnostics.
Markers are published repeatedly also without motion, expire after a few seconds, and are deleted when the node ends: so
RViz never shows an outdated robot.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from builtin_interfaces.msg import Duration
from geometry_msgs.msg import Point, TransformStamped
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from std_msgs.msg import ColorRGBA, String
from tensegrity.msg import CarriedPayloads, Goal, Reference, StructureState, TendonState
from visualization_msgs.msg import Marker as MarkerMessage
from visualization_msgs.msg import MarkerArray

from ..errors import TensegrityError
from ..robots.carried_payload import CarriedPayload
from ..robots.load_robot import load_robot
from ..robots.output_frame import Pose
from ..visualization.marker import Marker
from ..visualization.markers import MarkerDrawer
from ..visualization.mount import BASE_LINK, Mount, parse_mount
from ..visualization.picture import make_picture
from ..visualization.trace import Trace
from ..visualization.urdf import make_urdf
from .geometry_messages import carried_from_message, fill_pose, pose_from_message, seconds, stated_pose
from .goal_marker import GoalMarker
from .paced_node import PacedNode
from .robot_node import CARRIED, LATCHED, OK, WARN, WORLD, heard, run_node
from .state_decoding import StateDecoder

try:
    from tf2_msgs.msg import TFMessage
except ImportError:  # not in a package registry: part of a ROS installation, or built by `make setup`
    TFMessage = None

NEWEST = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
STATIC = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
NO_TF = "tf2_msgs is not installed, so /tf is not published; it comes with a ROS installation, or by make setup"
LIFETIME = 3.0
"""Lifetime of markers in RViz [s of wall time] without update."""
AGAIN = 0.5
"""Interval of repeated publication without a new state [s of wall time]."""
MOST_WORDS = 100
"""Largest number of characters of a displayed reason; the complete text is on `goal`."""

KINDS = {
    "cylinder": MarkerMessage.CYLINDER,
    "box": MarkerMessage.CUBE,
    "sphere": MarkerMessage.SPHERE,
    "mesh": MarkerMessage.MESH_RESOURCE,
    "lines": MarkerMessage.LINE_LIST,
    "triangles": MarkerMessage.TRIANGLE_LIST,
    "spheres": MarkerMessage.SPHERE_LIST,
    "strip": MarkerMessage.LINE_STRIP,
    "text": MarkerMessage.TEXT_VIEW_FACING,
}


class MarkersNode(PacedNode):
    """Parameters: robot, frame_prefix, mount, goal_marker, rate."""

    def __init__(self) -> None:
        super().__init__("markers")
        robot = load_robot(self.parameter("robot", "", "name of a shipped robot, or path of a robot file"))
        self._prefix = self.parameter("frame_prefix", "", "prefix of the robot's frame names on /tf")
        self.rate = self.parameter("rate", 20.0, "largest rate of markers [1/s]", low=0.5, high=200.0)
        self._mount = parse_mount(
            self.parameter("mount", "", "pose of base_link in the world: x y z in m, then roll pitch yaw in degrees")
        )
        desired = self.parameter(
            "goal_marker", True, "publish an interactive goal for RViz, on goal_marker and goal_pose"
        )
        self._decoder = StateDecoder(robot)
        self.picture = make_picture(robot)
        self._drawer = MarkerDrawer(self.picture)
        self._trace = Trace(0.005 * self.picture.sizes.span)
        self._answer: Goal | None = None
        self.last: tuple[float, list[MarkerMessage]] = (-AGAIN, [])
        self._pace, self._seen = 1.0, (0.0, 0.0)
        self._state: StructureState | None = None
        self._tendons: TendonState | None = None
        self._reference: Reference | None = None
        self._carried: tuple[CarriedPayload, ...] = ()
        self._drawn = 0
        self._markers = self.create_publisher(MarkerArray, "markers", QoSProfile(depth=1))
        self._transforms = self.create_publisher(TFMessage, "/tf", QoSProfile(depth=100)) if TFMessage else None
        self._static = self._publish_static() if TFMessage else None
        takes_goals = desired and bool(robot.outputs) and not robot.model.takes_no_goals
        self._goal_marker = GoalMarker(self, self.picture, self._mount) if takes_goals else None
        self._description = self.create_publisher(String, "robot_description", LATCHED)
        self._description.publish(String(data=make_urdf(self.picture, robot.actuators)))
        self.create_subscription(StructureState, "structure_state", self._keep_state, NEWEST)
        self.create_subscription(TendonState, "tendon_states", self._keep_tendons, NEWEST)
        self.create_subscription(Reference, "reference", self._keep_reference, LATCHED)
        self.create_subscription(Goal, "goal", self._keep_answer, LATCHED)
        self.create_subscription(CarriedPayloads, CARRIED, self._keep_carried, LATCHED)
        if TFMessage is None:
            self.get_logger().info(NO_TF)
        self.set_status(
            OK, "waiting for structure_state", robot=robot.name, tf=NO_TF if TFMessage is None else "published"
        )

    def _keep_state(self, message: StructureState) -> None:
        self._state = message

    def _keep_tendons(self, message: TendonState) -> None:
        self._tendons = message

    def _keep_reference(self, message: Reference) -> None:
        self._reference = message

    def _keep_carried(self, message: CarriedPayloads) -> None:
        self._carried = carried_from_message(message)

    def _keep_answer(self, message: Goal) -> None:
        self._answer = message
        if self._goal_marker is not None and message.request == Goal.POSE:
            self._goal_marker.answered(message.accepted, message.reason)

    def close(self) -> None:
        """Delete all markers."""
        self._markers.publish(MarkerArray(markers=[MarkerMessage(action=MarkerMessage.DELETEALL)]))
        if self._goal_marker is not None:
            self._goal_marker.close()

    def _publish_static(self) -> Any:
        """Publish the latched transforms of base_link and of all fixed frames."""
        publisher = self.create_publisher(TFMessage, "/tf_static", STATIC)
        poses = self.picture.at(self.picture.start).link_poses
        still = [
            (link.name, pose) for link, pose in zip(self.picture.links, poses, strict=True) if link.still
        ]  # fmt: skip
        stamp = self.get_clock().now().to_msg()
        base = _transform(WORLD, self._prefix + BASE_LINK, self._mount.pose, stamp)
        publisher.publish(TFMessage(transforms=[base, *self._frames(still, stamp)]))
        return publisher

    def work(self) -> None:
        """Publish the markers of the newest state; without a new state, repeat the last ones before they expire."""
        state, self._state = self._state, None
        if state is None:
            if self.last[1] and time.monotonic() - self.last[0] >= AGAIN and heard(self._markers):
                self._publish(self.last[1])
            return
        if not heard(self._markers) and (self._transforms is None or not heard(self._transforms)):
            self.set_status(OK, "nobody looks", pictures=self._drawn)
            return
        try:
            decoded = self._decoder.state(state)
            tensions = self._decoder.tensions(self._tendons, decoded.configuration)
        except TensegrityError as error:
            self.set_status(WARN, str(error))
            return
        configuration = decoded.configuration
        problem = self.picture.problem(configuration)
        if problem is not None:
            self.set_status(WARN, f"a state is not drawn: {problem}")
            return
        goal = stated_pose(self._reference.goal) if self._reference is not None else None
        refused, reason = self._refused()
        snapshot = self.picture.at(configuration)
        contacts = self.picture.contact_lines(configuration, decoded.velocity)
        if snapshot.output is not None:
            self._trace.add(seconds(state.header.stamp), snapshot.output[0])
            if self._goal_marker is not None:
                self._goal_marker.set_pose(snapshot.output)
        trace = self._trace.points if snapshot.output is not None else None
        markers = self._drawer.draw(
            snapshot, tensions, goal, contacts, refused=refused, trace=trace, words=self._words(tensions, reason),
            payloads=self._carried,
        )  # fmt: skip
        self._follow_pace(seconds(state.header.stamp))
        self._publish([_marker(each, self._mount, state.header.stamp) for each in markers])
        if self._transforms is not None:
            moving = [
                (link.name, pose) for link, pose in zip(self.picture.links, snapshot.link_poses, strict=True)
                if not link.still
            ]  # fmt: skip
            self._transforms.publish(TFMessage(transforms=self._frames(moving, state.header.stamp)))
        self._drawn += 1
        self.set_status(OK, "drawing", pictures=self._drawn)

    def _publish(self, messages: list[MarkerMessage]) -> None:
        """Publish markers that expire if this node no longer updates them."""
        life = max(1.0, self._pace) * LIFETIME  # RViz measures it in robot time
        whole = int(life)
        lifetime = Duration(sec=whole, nanosec=int(1e9 * (life - whole)))
        for each in messages:
            each.lifetime = lifetime
        self._markers.publish(MarkerArray(markers=messages))
        self.last = (time.monotonic(), messages)

    def _follow_pace(self, stamp: float) -> None:
        """Update the ratio of robot time to wall time, about once per second."""
        wall = time.monotonic()
        before, then = self._seen
        if wall - then > 1.0 or stamp < before:
            self._pace = max(1.0, (stamp - before) / (wall - then)) if then > 0.0 and wall > then else 1.0
            self._seen = (stamp, wall)

    def _refused(self) -> tuple[Pose | None, str]:
        """Last requested goal if it was rejected, and the reason."""
        answer = self._answer
        if answer is None or answer.request != Goal.POSE or answer.accepted:
            return None, ""
        found = pose_from_message(answer.waypoint[0]) if answer.waypoint else None
        return found, answer.reason[:MOST_WORDS]

    def _words(self, tensions: np.ndarray, reason: str) -> str:
        """Text above the robot: its activity, its tensions, and the reason of a rejected goal."""
        finite = tensions[self.picture.unilateral & np.isfinite(tensions)]
        parts = [f"{self.picture.name}: {self._reference.mode}" if self._reference is not None else self.picture.name]
        if finite.size:
            parts.append(f"{finite.min():.3g} to {finite.max():.3g} N")
        parts += [f"{each.name} carries {each.mass:g} kg" for each in self._carried]
        return "\n".join([*parts, *([f"goal refused: {reason}"] if reason else [])])

    def _frames(self, poses: Sequence[tuple[str, Pose]], stamp: Any) -> list[TransformStamped]:
        base = self._prefix + BASE_LINK
        return [_transform(base, self._prefix + name, pose, stamp) for name, pose in poses]


def _transform(parent: str, child: str, pose: Pose, stamp: Any) -> TransformStamped:
    message = TransformStamped(child_frame_id=child)
    message.header.frame_id, message.header.stamp = parent, stamp
    moved, turned = message.transform.translation, message.transform.rotation
    moved.x, moved.y, moved.z = (float(value) for value in pose[0])
    turned.w, turned.x, turned.y, turned.z = (float(value) for value in pose[1])
    return message


def _marker(marker: Marker, mount: Mount, stamp: Any) -> MarkerMessage:
    """Message of a marker, transformed to the world by the mount."""
    message = MarkerMessage(
        ns=marker.namespace, id=marker.number, type=KINDS[marker.kind], text=marker.text, mesh_resource=marker.resource
    )
    message.header.frame_id, message.header.stamp = WORLD, stamp
    if marker.position is None and not len(marker.points):
        message.action = MarkerMessage.DELETE
        return message
    message.scale.x, message.scale.y, message.scale.z = (float(value) for value in marker.scale)
    if marker.position is not None and marker.quaternion is not None:
        pose = marker.position, marker.quaternion
        fill_pose(message.pose, *(pose if mount.is_identity else mount.to_world(pose)))
    else:
        fill_pose(message.pose, *mount.pose)  # which RViz applies to the points
    message.points = [Point(x=x, y=y, z=z) for x, y, z in marker.points.tolist()]
    red, green, blue = (marker.colours if marker.colours.ndim == 1 else marker.colours[0]).tolist()
    message.color = ColorRGBA(r=red, g=green, b=blue, a=marker.opacity)
    if marker.colours.ndim == 2:
        message.colors = [ColorRGBA(r=r, g=g, b=b, a=marker.opacity) for r, g, b in marker.colours.tolist()]
    return message


def main() -> int:
    """Run the node."""
    return run_node(MarkersNode)


if __name__ == "__main__":
    sys.exit(main())
