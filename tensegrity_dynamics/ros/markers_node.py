"""Node `markers`: shows the robot in RViz by markers, frames and a robot description.

Subscribes structure_state, tendon_states, reference. Publishes markers, robot_description (latched), /tf (where the
package tf2_msgs is installed) and /diagnostics.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
from geometry_msgs.msg import Point, TransformStamped
from rclpy.qos import QoSProfile, ReliabilityPolicy
from std_msgs.msg import ColorRGBA, String
from tensegrity.msg import Reference, StructureState, TendonState
from visualization_msgs.msg import Marker as MarkerMessage
from visualization_msgs.msg import MarkerArray

from ..errors import TensegrityError
from ..robots.load_robot import load_robot
from ..robots.output_frame import Pose
from ..visualization.marker import Marker
from ..visualization.markers import MarkerDrawer
from ..visualization.picture import make_picture
from ..visualization.urdf import make_urdf
from .geometry_messages import fill_pose, pose_from_message
from .paced_node import PacedNode
from .robot_node import LATCHED, OK, WARN, WORLD, heard, run_node
from .state_decoding import StateDecoder

try:
    from tf2_msgs.msg import TFMessage
except ImportError:  # in no package registry; it comes with a ROS installation
    TFMessage = None

NEWEST = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
NO_TF = "tf2_msgs is not installed, so /tf is not published; it comes with a ROS installation"

KINDS = {
    "cylinder": MarkerMessage.CYLINDER,
    "box": MarkerMessage.CUBE,
    "sphere": MarkerMessage.SPHERE,
    "lines": MarkerMessage.LINE_LIST,
    "triangles": MarkerMessage.TRIANGLE_LIST,
    "spheres": MarkerMessage.SPHERE_LIST,
}


class MarkersNode(PacedNode):
    """Parameters: robot, frame_prefix, rate."""

    def __init__(self) -> None:
        super().__init__("markers")
        robot = load_robot(self.parameter("robot", "", "a shipped robot or the path of a robot file"))
        self._prefix = self.parameter("frame_prefix", "", "before the names of the robot's frames on /tf")
        self.rate = self.parameter("rate", 20.0, "largest number of pictures per second", low=0.5, high=200.0)
        self._decoder = StateDecoder(robot)
        self._picture = make_picture(robot)
        self._drawer = MarkerDrawer(self._picture)
        self._state: StructureState | None = None
        self._tendons: TendonState | None = None
        self._reference: Reference | None = None
        self._drawn = 0
        self._markers = self.create_publisher(MarkerArray, "markers", QoSProfile(depth=1))
        self._transforms = self.create_publisher(TFMessage, "/tf", QoSProfile(depth=100)) if TFMessage else None
        self._description = self.create_publisher(String, "robot_description", LATCHED)
        self._description.publish(String(data=make_urdf(self._picture, robot.actuators)))
        self.create_subscription(StructureState, "structure_state", self._keep_state, NEWEST)
        self.create_subscription(TendonState, "tendon_states", self._keep_tendons, NEWEST)
        self.create_subscription(Reference, "reference", self._keep_reference, LATCHED)
        self.tell(OK, "waiting for structure_state", robot=robot.name, tf=NO_TF if TFMessage is None else "published")

    def _keep_state(self, message: StructureState) -> None:
        self._state = message

    def _keep_tendons(self, message: TendonState) -> None:
        self._tendons = message

    def _keep_reference(self, message: Reference) -> None:
        self._reference = message

    def work(self) -> None:
        """Draw the newest state, where there is one."""
        state, self._state = self._state, None
        if state is None:
            return
        if not heard(self._markers) and (self._transforms is None or not heard(self._transforms)):
            self.tell(OK, "nobody looks", pictures=self._drawn)
            return
        try:
            decoded = self._decoder.state(state)
        except TensegrityError as error:
            self.tell(WARN, str(error))
            return
        configuration = decoded.configuration
        problem = self._picture.problem(configuration)
        if problem is not None:
            self.tell(WARN, f"a state is not drawn: {problem}")
            return
        tensions = self._decoder.tensions(self._tendons, configuration)
        goal = pose_from_message(self._reference.goal) if self._reference is not None else None
        frame = state.header.frame_id or WORLD
        snapshot = self._picture.at(configuration)
        contacts = self._picture.contact_lines(configuration, decoded.velocity)
        markers = self._drawer.draw(snapshot, tensions, goal, contacts)
        self._markers.publish(MarkerArray(markers=[_marker(each, frame, state.header.stamp) for each in markers]))
        if self._transforms is not None:
            transforms = self._frames(snapshot.link_poses, frame, state.header.stamp)
            self._transforms.publish(TFMessage(transforms=transforms))
        self._drawn += 1
        self.tell(OK, "drawing", pictures=self._drawn)

    def _frames(self, poses: Sequence[Pose], frame: str, stamp: object) -> list[TransformStamped]:
        transforms = []
        for name, (position, quaternion) in zip(self._picture.link_names, poses, strict=True):
            message = TransformStamped(child_frame_id=self._prefix + name)
            message.header.frame_id, message.header.stamp = frame, stamp
            moved, turned = message.transform.translation, message.transform.rotation
            moved.x, moved.y, moved.z = (float(value) for value in position)
            turned.w, turned.x, turned.y, turned.z = (float(value) for value in quaternion)
            transforms.append(message)
        return transforms


def _marker(marker: Marker, frame: str, stamp: object) -> MarkerMessage:
    message = MarkerMessage(ns=marker.namespace, id=marker.number, type=KINDS[marker.kind])
    message.header.frame_id, message.header.stamp = frame, stamp
    if marker.position is None and not len(marker.points):
        message.action = MarkerMessage.DELETE
        return message
    message.scale.x, message.scale.y, message.scale.z = (float(value) for value in marker.scale)
    if marker.position is not None and marker.quaternion is not None:
        fill_pose(message.pose, marker.position, marker.quaternion)
    message.points = [Point(x=x, y=y, z=z) for x, y, z in marker.points.tolist()]
    red, green, blue = np.atleast_2d(marker.colours)[0].tolist()
    message.color = ColorRGBA(r=red, g=green, b=blue, a=marker.opacity)
    if marker.colours.ndim == 2:
        message.colors = [ColorRGBA(r=r, g=g, b=b, a=marker.opacity) for r, g, b in marker.colours.tolist()]
    return message


def main() -> int:
    """Run the node."""
    return run_node(MarkersNode)


if __name__ == "__main__":
    sys.exit(main())
