"""Node `estimator`: estimation of the robot state, quasi-static from actuator positions, or with an observer.

The observer uses the efforts of joint_states, the tensions of tendon_states if they are measured, and the wrenches of
external_wrench. It publishes the estimated unknown wrench at the output on estimated_wrench. Quasi-static estimates of
mechanisms use the payloads of the topic payload; if the tensions of tendon_states differ from those of the estimate,
the diagnostics warn. The node publishes the accepted wrenches and payloads on topics below its name, before the first
state that includes them: a replay needs the assignment to states. For rolling robots, the estimator uses the topic imu
if the robot file has IMUs; in lock-step it waits for readings of the same time.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import InertiaStamped, WrenchStamped
from sensor_msgs.msg import Imu, JointState
from tensegrity.msg import CarriedPayloads, StructureState, TendonState
from tensegrity.srv import SolveForwardKinematics

from ..errors import TensegrityError
from ..estimation import Estimate, make_estimator, rehearse_once
from ..external_payloads import ExternalPayloads
from ..external_wrenches import ExternalWrenches
from ..robots.load_robot import load_robot
from ..robots.robot_types import type_of
from ..robots.state_record import StateRecord
from ..structures.estimation.imu_readings import ImuReadings
from ..tension_fit import TensionFit
from .geometry_messages import (
    carried_from_message,
    fill_carried,
    fill_payload,
    nanoseconds,
    payload_from_message,
    time_message,
    wrench_from_message,
    wrench_message,
)
from .imu_messages import imu_from_message
from .robot_node import CARRIED, LATCHED, NEWEST, OK, SENSORS, STATE, WARN, WRENCHES, RobotNode, run_node, sent_in
from .state_encoding import StateBuffer, publish_state, state_message

FRESH = 0.5
"""Largest time difference [s] between tensions and an estimate that are compared."""
WORDED = 0.5
"""Update interval of the text on unknown loads [s], in robot time."""
LOADED = 0.02
"""Interval between two published estimates of the unknown wrench [s], in robot time, or the period of states if that is
longer: a fifth of the time constant with which a controller follows them."""


class EstimatorNode(RobotNode):
    """Parameters: robot, method, measured_tensions, unknown_loads, known_wrenches, wrench_timeout, rigid_bars and
    lockstep."""

    def __init__(self) -> None:
        super().__init__("estimator")
        robot = load_robot(self.parameter("robot", "", "name of a shipped robot, or path of a robot file"))
        rigid = self.parameter("rigid_bars", True, "rigid bars of structures, as in simulation")
        self._lockstep = self.parameter("lockstep", False, "lock-step: the simulator waits for every answer")
        method = self.parameter(
            "method", "rest", "rest: equilibrium shapes; observer: mechanisms in motion, from positions and efforts",
            choices=("rest", "observer"),
        )  # fmt: skip
        measured = self.parameter(
            "measured_tensions", False, "the observer uses the tensions of tendon_states, unless they are estimated"
        )
        unknown = self.parameter(
            "unknown_loads", True, "the observer estimates the external load on the output, and the cables' stiffness, "
            "from efforts; gear friction is indistinguishable from a load",
        )  # fmt: skip
        self._observes = method == "observer"
        self._doing = "observing" if self._observes else "estimating"
        options = {"rigid_bars": rigid, "observer": self._observes, "unknown_loads": unknown}
        self.estimator = make_estimator(robot, **options)
        if not self._lockstep:  # in lock-step the time stops while functions are loaded
            rehearse_once(lambda: make_estimator(robot, **options), method, robot)
        with_wrenches = self.parameter(
            "known_wrenches", True, "the estimator uses external_wrench (observer) and payload as known loads; the "
            "controller must have the same value",
        )  # fmt: skip
        keeps = self.parameter("keeps_payloads", False, "publish carried_payloads, if there is no simulator that does")
        patience = self.parameter(
            "wrench_timeout",
            0.5,
            "time after its stamp for which a wrench of external_wrench acts [s]",
            low=0.01,
            high=60.0,
        )
        self._wrenches = ExternalWrenches(robot.model.load_names, robot.model.takes_moments, patience)
        self._at = 0.0
        self._wrench_publisher = self.create_publisher(WrenchStamped, "~/external_wrench", WRENCHES)
        self._payload_publisher = self.create_publisher(InertiaStamped, "~/payload", WRENCHES)
        self._words: dict[str, str] = {}
        self._worded, self._slot = -np.inf, -1
        self._codec, self._buffer = type_of(robot).codec(robot), StateBuffer()
        self._names = set(robot.model.tension_names)
        self._tendons: TendonState | None = None
        self._read: dict[str, float] = {}
        self.publisher = self.create_publisher(StructureState, "structure_state", sent_in(self._lockstep))
        self.create_subscription(JointState, "joint_states", self._estimate, NEWEST)
        self._imus: ImuReadings | None = getattr(self.estimator, "readings", None)
        self._waiting: JointState | None = None
        if self._imus is not None and self._imus.names:
            self.create_subscription(Imu, "imu", self._take_imu, SENSORS)
        self._measures = measured and self._observes
        self._fit = None if self._observes else TensionFit()
        if self._measures or self._fit is not None:
            self.create_subscription(TendonState, "tendon_states", self._keep_tendons, STATE)
        self._estimated = None
        if self._observes:
            self._estimated = self.create_publisher(WrenchStamped, "estimated_wrench", sent_in(self._lockstep))
        if with_wrenches and self._observes:
            self.create_subscription(WrenchStamped, "external_wrench", self._take_wrench, WRENCHES)
        self.payloads: ExternalPayloads | None = None
        self._keeper: Any = None
        self._begun_with = False
        if with_wrenches and self.estimator.takes_payloads:
            self.payloads = ExternalPayloads(self.estimator, patience)  # type: ignore[arg-type]
            self.create_subscription(InertiaStamped, "payload", self._take_payload, WRENCHES)
            if keeps:
                self._keeper = self.create_publisher(CarriedPayloads, CARRIED, LATCHED)
            else:
                self.create_subscription(CarriedPayloads, CARRIED, self.begin_with, LATCHED)
        self.create_service(SolveForwardKinematics, "solve_forward_kinematics", self._solve)
        self.set_status(OK, "waiting for joint_states")

    def _take_imu(self, message: Imu) -> None:
        assert self._imus is not None
        try:
            self._imus.take(*imu_from_message(message))
        except TensegrityError:
            pass  # counted by the readings, and reported with the next estimate
        if self._waiting is not None:
            self._estimate(self._waiting)

    def _lacks_imus(self, stamp: float) -> bool:
        """Whether readings of this time [s] are still missing; in lock-step the node waits for them."""
        if not (self._lockstep and self._imus is not None and self._imus.names):
            return False
        stamps = self._imus.stamps
        return bool(np.isfinite(stamps).all() and (stamps != stamp).any())

    def _estimate(self, message: JointState) -> None:
        if 1e-9 * nanoseconds(message.header.stamp) < self._at and self._imus is not None:
            self._imus.clear()  # a reset
        stamp = nanoseconds(message.header.stamp)
        if self._lacks_imus(1e-9 * stamp) or self._lacks_tendons(stamp):
            self._waiting = message
            return
        self._waiting = None
        names = set(self.estimator.actuators)
        read = {n: p for n, p in zip(message.name, message.position, strict=False) if n in names}
        missing = names - set(read)
        if missing:
            self.set_status(WARN, f"joint_states lacks {', '.join(sorted(missing))}: the value at the start is taken")
        if 1e-9 * stamp < self._at:  # a reset
            self._wrenches.forget()
            if self.payloads is not None:
                self.payloads.forget()
                self._publish_carried()
        self._at = 1e-9 * stamp
        if self._observes and (forces := self._wrenches.changed(1e-9 * stamp)) is not None:
            self.estimator.set_loads(forces)  # type: ignore[attr-defined]
        try:
            at = time_message(stamp)
            estimate = self.estimator.update(1e-9 * stamp, read, *self._forces(message, stamp))
        except TensegrityError as error:
            self.set_status(WARN, f"a reading is not taken: {error}")
            return
        # The load is published first: it is valid from the next state on, and a receiver of this state must have it,
        # also if both messages wait in its queue.
        values = self.refusals | (self.publish_load(estimate, at) if self._observes else self.estimator.notes)
        publish_state(self.publisher, self._buffer, self._record(estimate), at, "estimator")
        self._read = read
        if not estimate.converged:
            self.set_status(WARN, f"no shape for these readings, the last one is shown: {estimate.reason}", **values)
        elif not missing:
            values["slack"] = ", ".join(estimate.slack) or "none"
            if not self._observes and np.isfinite(estimate.softest):
                values["softest"] = f"{estimate.softest:.4g} N/m"
            misfit = self._misfit(estimate)
            self.set_status(WARN if misfit else OK, misfit or self._doing, **values)

    def publish_load(self, estimate: Estimate, at: Time) -> dict[str, str]:
        """Publish the unknown wrench at the output; returns texts on it with standard deviations."""
        unknown = getattr(estimate, "unknown", None)
        if unknown is None or self._estimated is None:
            return {}
        slot = int(self._at / LOADED + 1e-6)
        if slot != self._slot and unknown.body and self._estimated.get_subscription_count():
            self._estimated.publish(wrench_message(at, unknown.body, unknown.wrench.tolist()))
        self._slot = slot
        if not 0.0 <= self._at - self._worded < WORDED:  # diagnostics are published once per second
            deviations = np.sqrt(np.diag(unknown.covariance)).tolist()
            pairs = zip(unknown.names, unknown.values.tolist(), deviations, strict=True)
            self._words = {f"unknown {name}": f"{value:.3g} +- {deviation:.2g}" for name, value, deviation in pairs}
            self._worded = self._at
        return self._words

    def _take_wrench(self, message: WrenchStamped) -> None:
        with self.noting_refusal("external_wrench"):
            self._wrenches.take(*wrench_from_message(message), self._at)
            self._wrench_publisher.publish(message)

    def _take_payload(self, message: InertiaStamped) -> None:
        assert self.payloads is not None
        with self.noting_refusal("payload"):
            self.payloads.take(*payload_from_message(message), self._at)
            self._payload_publisher.publish(message)
            self._publish_carried()

    def begin_with(self, message: CarriedPayloads) -> None:
        """Take the payloads from before the start of this node from the first message; later ones come by `payload`."""
        if self.payloads is None or self._begun_with:
            return
        self._begun_with = True
        with self.noting_refusal("payload"):
            for each in self.payloads.begin_with(carried_from_message(message), self._at):
                self._payload_publisher.publish(fill_payload(InertiaStamped(), each, round(1e9 * self._at)))

    def _publish_carried(self) -> None:
        """Publish the payloads for nodes that start later, if no simulator does."""
        if self._keeper is None or self.payloads is None:
            return
        message = fill_carried(CarriedPayloads(), self.payloads.carried.values())
        message.header.stamp = time_message(round(1e9 * self._at))
        self._keeper.publish(message)

    def _keep_tendons(self, message: TendonState) -> None:
        self._tendons = message
        if self._waiting is not None:
            self._estimate(self._waiting)

    def _lacks_tendons(self, stamp: int) -> bool:
        """Whether measured tensions of this time [ns] are still missing; in lock-step the node waits for them."""
        if not self._lockstep or not self._measures:
            return False
        if (tendons := self._tendons) is None:  # the first ones, unless tensions are not measured
            return bool(self.count_publishers("tendon_states"))
        return not tendons.estimated and nanoseconds(tendons.header.stamp) < stamp

    def _forces(self, message: JointState, stamp: int) -> tuple[dict[str, float], ...]:
        """Further inputs of the observer: efforts, and tensions measured at the same time."""
        if not self._observes:
            return ()
        efforts = dict(zip(message.name, message.effort, strict=False))
        tendons = self._tendons
        if tendons is None or tendons.estimated or nanoseconds(tendons.header.stamp) != stamp:
            return (efforts,)
        tensions = zip(tendons.name, tendons.tension, strict=False)
        return efforts, {name: tension for name, tension in tensions if name in self._names}

    def _misfit(self, estimate: Estimate) -> str:
        """Text on tensions that differ from those of the equilibrium; empty without deviations, and for observers."""
        tendons = self._tendons
        if self._fit is None or tendons is None:
            return ""
        if abs(1e-9 * nanoseconds(tendons.header.stamp) - self._at) > FRESH:
            return ""
        told = dict(zip(tendons.name, tendons.tension, strict=False))
        return self._fit.look(self._at, estimate.tensions, told, tendons.estimated)

    def _record(self, estimate: Estimate) -> StateRecord:
        record = self._codec.encode(estimate, estimate.pose, estimate.twist)
        return replace(record, residual=estimate.residual, converged=estimate.converged)

    def _solve(
        self, request: SolveForwardKinematics.Request, response: SolveForwardKinematics.Response
    ) -> SolveForwardKinematics.Response:
        try:
            if len(request.name) != len(request.rest_length):
                raise TensegrityError(f"{len(request.name)} names for {len(request.rest_length)} positions.")
            rest_lengths = {**self._read, **dict(zip(request.name, request.rest_length, strict=True))}
            still = self.estimator.solve(rest_lengths, request.method or "newton")
        except TensegrityError as error:
            response.success, response.reason = False, str(error)
            return response
        response.success, response.stable, response.softest = True, still.stable, float(still.softest)
        response.state = state_message(self._record(still), self.get_clock().now().to_msg(), "estimator")
        response.tendon_name, response.tension = list(still.tensions), list(still.tensions.values())
        return response


def main() -> int:
    """Run the node."""
    return run_node(EstimatorNode)


if __name__ == "__main__":
    sys.exit(main())
