"""Node `estimator`: the robot's shape from what its spools say."""

from __future__ import annotations

import sys
from typing import Any

from sensor_msgs.msg import JointState
from tensegrity.msg import StructureState, TendonState
from tensegrity.srv import SolveForwardKinematics

from ..errors import TensegrityError
from ..estimation import Estimate, ShapeEstimator
from ..robot_file import load_robot
from ..statics.forward_kinematics import METHODS, forward_kinematics
from .node import OK, STATE, WARN, WORLD, RobotNode, run_node
from .state_messages import nanoseconds, structure_state, time_message


class EstimatorNode(RobotNode):
    """Parameters: robot, rigid_bars, lockstep."""

    def __init__(self) -> None:
        super().__init__("estimator")
        self._robot = load_robot(self.parameter("robot", "", "a shipped robot or the path of a robot file"))
        self._rigid = self.parameter("rigid_bars", True, "bars keep their length, as in simulation")
        self.parameter(
            "lockstep", False, "the simulator waits for answers; the estimator works the same way either way"
        )
        self._estimator = ShapeEstimator(self._robot, rigid_bars=self._rigid)
        self._known = {each.name for each in self._robot.actuators}
        self._tendons: TendonState | None = None
        self._publisher = self.create_publisher(StructureState, "structure_state", STATE)
        self.create_subscription(TendonState, "tendon_states", self._keep_tendons, STATE)
        self.create_subscription(JointState, "joint_states", self._estimate, STATE)
        self.create_service(SolveForwardKinematics, "solve_forward_kinematics", self._solve)
        self.tell(OK, "waiting for joint_states")

    def _keep_tendons(self, message: TendonState) -> None:
        self._tendons = message

    def _estimate(self, message: JointState) -> None:
        spools = {n: p for n, p in zip(message.name, message.position, strict=False) if n in self._known}
        missing = self._known - set(spools)
        if missing:
            self.tell(WARN, f"joint_states lacks {', '.join(sorted(missing))}: its own rest length is taken")
        stamp = nanoseconds(message.header.stamp)
        estimate = self._estimator.update(1e-9 * stamp, spools)
        self._publisher.publish(self._message(time_message(stamp), estimate))
        if not estimate.converged:
            self.tell(WARN, f"no shape for these lengths, the last one is shown: {estimate.reason}")
        elif not missing:
            slack = ", ".join(estimate.shape.slack)
            self.tell(OK, "estimating", slack=slack or "none", softest=f"{estimate.shape.softest:.4g} N/m")

    def _message(self, stamp: Any, estimate: Estimate) -> StructureState:
        shape = estimate.shape
        return structure_state(
            stamp, WORLD, "estimator", self._robot.structure.node_names, shape.nodes, estimate.velocities,
            "" if shape.output is None else shape.output.name, None if shape.output is None else shape.pose,
            estimate.twist, shape.residual, estimate.converged,
        )  # fmt: skip

    def _solve(
        self, request: SolveForwardKinematics.Request, response: SolveForwardKinematics.Response
    ) -> SolveForwardKinematics.Response:
        method = request.method or "newton"
        try:
            if len(request.name) != len(request.rest_length):
                raise TensegrityError(f"{len(request.name)} names for {len(request.rest_length)} rest lengths.")
            present = self._present_lengths()
            present.update(zip(request.name, request.rest_length, strict=True))
            rigid = self._rigid and method == METHODS[0]
            shape = forward_kinematics(self._robot, present, method=method, rigid_bars=rigid)
        except TensegrityError as error:
            response.success, response.reason = False, str(error)
            return response
        still = Estimate(0.0, shape, 0.0 * shape.nodes, None, True)
        response.success, response.stable, response.softest = True, bool(shape.stable), float(shape.softest)
        response.state = self._message(self.get_clock().now().to_msg(), still)
        response.tendon_name = list(self._robot.structure.member_names)
        response.tension = shape.tensions.tolist()
        return response

    def _present_lengths(self) -> dict[str, float]:
        """Rest lengths by tendon as last heard; the robot file's where nothing was."""
        structure = self._robot.structure
        driven = {each.drives for each in self._robot.actuators}
        if self._tendons is None:
            return {}
        heard = zip(self._tendons.name, self._tendons.rest_length, strict=False)
        return {name: value for name, value in heard if name in driven and name in structure.member_names}


def main() -> int:
    """Run the node."""
    return run_node(EstimatorNode)


if __name__ == "__main__":
    sys.exit(main())
