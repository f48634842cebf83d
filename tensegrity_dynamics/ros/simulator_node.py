"""Node `simulator`: simulation of the robot with the same interface as the hardware.

In lock-step it publishes its state, waits for the command with exactly this stamp, and then advances by one control
period. After a lost message, it publishes the same state again. Otherwise it runs by the clock with real_time_factor.
Without a recent command the actuators hold.

Delays of states and commands can be simulated (`state_delay`, `command_delay`, `delay_jitter`). The time at which each
command becomes active is published on `command_timing`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from geometry_msgs.msg import InertiaStamped, WrenchStamped
from rosgraph_msgs.msg import Clock as ClockMessage
from sensor_msgs.msg import Imu, JointState, TimeReference
from std_msgs.msg import String
from std_srvs.srv import SetBool, Trigger
from tensegrity.msg import ActuatorCommand, CarriedPayloads, StructureState, TendonState

from ..command_gate import CommandGate, Mode
from ..errors import TensegrityError
from ..external_payloads import ExternalPayloads
from ..external_wrenches import ExternalWrenches
from ..late_messages import LateMessages
from ..robots.load_robot import load_robot
from ..robots.robot_types import type_of
from ..simulation import Observation, Simulation, pace
from ..simulation_interface import IMPLICIT_STEP, SHORT_STEP
from .command_decoding import mode_and_values
from .geometry_messages import fill_carried, nanoseconds, payload_from_message, time_message, wrench_from_message
from .imu_messages import imu_message, is_due
from .quick_messages import header, quick_message
from .robot_description import DescriptionPublisher
from .robot_node import (
    ANSWERED,
    CARRIED,
    COMMAND,
    ERROR,
    LATCHED,
    OK,
    SENSORS,
    STOPPED,
    WARN,
    WORLD,
    WRENCHES,
    RobotNode,
    heard,
    run_node,
    sent_in,
    stop_in_words,
)
from .state_encoding import StateBuffer, publish_state

PACE_MARGIN = 1.2
"""Required speed of the integrator alone relative to the desired one, because the node has additional work."""
LEAST_PACE, PACE_PERIODS = 0.95, 50
"""Fraction of the desired speed below which the simulator reports it, and number of periods of the evaluation."""


@dataclass(frozen=True)
class Late:
    """Command accepted by the gate: set points, stamp [ns], sender and its period [s], 0 if unknown."""

    set_points: Mapping[str, tuple[Mode, Any]]
    stamp: int
    source: str
    period: float


@dataclass(frozen=True)
class Reading:
    """Sensor readings at a time [ns], and the state if it is published."""

    stamp: int
    seen: Any
    truth: Any


class SimulatorNode(RobotNode):
    """Simulator node, see the module; the parameters have descriptions.

    Attributes:
        ticks: number of control periods since the start or the last reset. period: control period [ns].
        seen: `Observation` at the end of the last period.
    """

    def __init__(self) -> None:
        super().__init__("simulator")
        robot = load_robot(self.parameter("robot", "", "name of a shipped robot, or path of a robot file"))
        self._lockstep = self.parameter("lockstep", False, "lock-step: wait for the controller's answer to every state")
        self._factor = self.parameter(
            "real_time_factor", 1.0, "simulated seconds per second of real time", low=0.01, high=100.0, live=True
        )
        period = self.parameter("control_period", 0.02, "period of the states [s]", low=0.0005, high=1.0)
        kind = type_of(robot)
        default = kind.node_integrator or kind.integrators[0]
        integrator = self.parameter("integrator", "", f"integrator; empty: {default}", choices=("", *kind.integrators))
        chosen, integrator = bool(integrator), integrator or kind.node_integrator
        longest = self.parameter(
            "time_step",
            0.0,
            "largest step of the integrator [s]; smaller is more accurate and slower; 0: the default of the robot",
            low=0.0,
            high=1.0,
        )
        rigid = self.parameter("rigid_bars", True, "rigid bars")
        self._paused = self.parameter("paused", False, "start paused; `set_paused` changes it")
        self._broken = False  # whether it is paused because the simulation failed
        self._pause_at = self.parameter(
            "pause_at", 0.0, "simulated time at which the simulation pauses [s]; 0: never", low=0.0, high=1e9, live=True
        )
        freshness = self.parameter(
            "freshness", 0.5, "time without a command after which the actuators hold [s], at least two control periods",
            low=0.01, high=60.0,
        )  # fmt: skip
        self._patience = self.parameter(
            "patience", 0.25, "wall time until a state is sent again in lock-step [s]", low=0.01, high=10.0
        )
        self._silence = self.parameter(
            "silence",
            2.0,
            "wall time without an answer after which the controller is reported in lock-step [s]",
            low=0.1,
            high=600.0,
        )
        as_state = self.parameter(
            "truth_as_state", False, "also publish the true state as structure_state; then start no estimator"
        )
        delay = self.parameter("command_delay", 0.0, "artificial delay of commands [s]", low=0.0, high=1.0)
        state_delay = self.parameter("state_delay", 0.0, "artificial delay of states [s]", low=0.0, high=1.0)
        jitter = self.parameter(
            "delay_jitter", 0.0, "largest additional random delay of each state and command [s]", low=0.0, high=1.0
        )
        seed = self.parameter("delay_seed", 0, "seed of the random delays")
        patience = self.parameter(
            "wrench_timeout", 0.5, "time after its stamp for which a wrench acts and a payload is accepted [s]",
            low=0.01, high=60.0,
        )  # fmt: skip
        self._wrenches = ExternalWrenches(robot.model.load_names, robot.model.takes_moments, patience)
        self.on_change(self._parameter_changed)
        natural = Simulation(robot, longest or None, integrator, rigid_bars=rigid)
        integrator = natural.integrator
        self.period = round(period * 1e9)
        late, later, more = (round(each / period) for each in (delay, state_delay, jitter))
        self._late: LateMessages[Late] = LateMessages(late, late + more, seed)
        self._readings: LateMessages[Reading] = LateMessages(later, later + more, seed + 1)
        self.last_reading: Reading | None = None  # the last one that was published
        self._acted: TimeReference | None = None  # of the last command, until it is published
        self._substeps = max(1, -(-self.period // max(1, round(natural.time_step * 1e9))))
        self.simulation = Simulation(robot, period / self._substeps, integrator, rigid_bars=rigid)
        self._choice = ""
        if not (chosen or longest) and "implicit" in kind.integrators:
            self._keep_pace(period)
        self._payloads = ExternalPayloads(self.simulation, patience)
        self.add_status_values(lambda: {"payloads": self._payloads.words})
        self.gate = CommandGate(
            robot.actuators,
            freshness=max(freshness, 2.0 * period),
            without_impedance=self.simulation.without_impedance,
        )
        self.ticks, self._sent, self.holding, self._answered_at = 0, -1, True, -1
        self._codec, self._tendons, self._buffer = kind.codec(robot), robot.model.tension_names, StateBuffer()
        # compile before other nodes wait for the first reply
        self.simulation.advance(1)
        self.simulation.reset()
        self._description = DescriptionPublisher(self, robot)
        sent = sent_in(self._lockstep)
        self._joint_states = self.create_publisher(JointState, "joint_states", sent)
        self._tendon_states = self.create_publisher(TendonState, "tendon_states", sent)
        self._truth = self.create_publisher(StructureState, "~/truth", sent)
        self._state = self.create_publisher(StructureState, "structure_state", sent) if as_state else None
        self._imus = {each.bar: each for each in getattr(robot.model, "imus", ())}
        self._imu = self.create_publisher(Imu, "imu", SENSORS) if self._imus else None
        self._timing = self.create_publisher(TimeReference, "command_timing", sent)
        self._clock_publisher = self.create_publisher(ClockMessage, "/clock", sent)
        self.stop_publisher = self.create_publisher(String, STOPPED, LATCHED)
        self._publish_stop()
        self.carried_publisher = self.create_publisher(CarriedPayloads, CARRIED, LATCHED)
        self._publish_carried()
        self.create_subscription(ActuatorCommand, "actuator_command", self.take_command, COMMAND)
        self.create_subscription(WrenchStamped, "external_wrench", self._external_wrench, WRENCHES)
        self.create_subscription(InertiaStamped, "payload", self._payload, WRENCHES)
        self.create_service(Trigger, "~/reset", self.reset)
        self.create_service(SetBool, "~/set_paused", self.set_paused)
        self.create_service(Trigger, "emergency_stop", self.emergency_stop, callback_group=self.attention.prompt)
        self.create_service(Trigger, "~/release", self.release)
        self.published = self.answered = time.monotonic()
        self.judged_since: tuple[float, int] | None = None  # wall time and tick at the start of the speed evaluation
        self._ticked: float | None = None
        self._lost = 0
        tick = 0.02 if self._lockstep else period / self._factor
        self.timer = self.create_timer(tick, self.tick_lockstep if self._lockstep else self.tick, clock=self.wall_clock)
        self.get_logger().info(
            f"{robot.name}: {self._substeps} steps of {1e6 * self.simulation.time_step:.1f} us in a control period of "
            f"{period:g} s (shortest period {1e3 * self.simulation.shortest_period:.2f} ms)"
        )
        self._publish()

    def _keep_pace(self, period: float) -> None:
        """Use longer implicit steps if explicit steps cannot keep the desired speed, and report it.

        In lock-step the time waits, and runs must be bitwise reproducible on every machine: there the choice depends on
        the length of the explicit step, not on the speed of the machine.
        """
        explicit, limit = self.simulation, PACE_MARGIN * self._factor
        if self._lockstep:
            if explicit.time_step >= SHORT_STEP or explicit.integrator == "implicit":
                return
            reached, why = 0.0, f"{explicit.integrator} takes steps of {1e6 * explicit.time_step:.3g} us"
        else:
            reached = pace(explicit, self._substeps)
            if reached >= limit:
                return
            steps = f"{explicit.integrator} in steps of {1e6 * explicit.time_step:.3g} us"
            why = f"{steps} reaches {reached:.2g} of real time"
        substeps = max(1, -(-self.period // round(IMPLICIT_STEP * 1e9)))
        rigid = bool(self.get_parameter("rigid_bars").value)
        try:
            implicit = Simulation(explicit.robot, period / substeps, "implicit", rigid_bars=rigid)
        except TensegrityError as error:
            self._choice = f"{why}; {error}"
            self.get_logger().warning(self._choice)
            return
        faster = 1.0 if self._lockstep else pace(implicit, substeps)
        if faster > reached:
            self.simulation, self._substeps = implicit, substeps
            self._choice = f"implicit, because {why}; it damps fast motions"
            more = "parameter integrator names another" if self._lockstep else f"it reaches {faster:.2g} of real time"
            self.get_logger().info(f"integrator {self._choice} ({more})")

    @property
    def now(self) -> float:
        """Simulated time [s]."""
        return 1e-9 * self.ticks * self.period

    # -- running --------------------------------------------------------------------------------------------------

    def tick(self) -> None:
        """Execute one control period by the clock."""
        wall = time.monotonic()
        since, self._ticked = 0.0 if self._ticked is None else wall - self._ticked, wall
        periods = since * self._factor / (1e-9 * self.period)
        if self._paused:
            self._publish()
            return
        self._lost += max(0, round(periods) - 1)
        self.gate.streams.publishers = self.command_publishers()
        if self.gate.must_hold(self.now) is not None and not self.holding:
            self.hold_actuators()
        if not self._advance():
            return
        if self.gate.stopped:
            self.set_status(ERROR, f"emergency stop: {self.gate.stopped}; call simulator/release when it is safe")
        elif (contest := self.gate.streams.contest(self.now)) is not None:
            self.set_status(ERROR, contest)
        elif self.holding and self.gate.source:
            self.set_status(
                WARN, f"no command from {self.gate.source} for {self.gate.freshness:g} s: the actuators hold"
            )
        elif not self.holding or not self.gate.streams.publishers:  # nobody commands a robot without a controller
            self.judge_pace()

    def tick_lockstep(self) -> None:
        """Publish the state again if there is no reply, and report a permanently missing reply."""
        wall = time.monotonic()
        self.gate.streams.publishers = self.command_publishers()
        if wall - self.published < self._patience:
            return
        self._publish()
        if self._paused:
            self.answered = wall
            if not self._broken:  # otherwise the status contains the error that paused it
                self.set_status(OK, "paused")
        elif wall - self.answered > self._silence:
            self.hold_actuators()
            waited = wall - self.answered
            self.say_silence(
                waited, "the actuators hold and the simulated time stands still", commanded=bool(self.gate.source)
            )

    def _advance(self) -> bool:
        """Advance by one control period and publish; False if the simulation failed, which the status reports."""
        try:
            if (command := self._late.take(self.ticks)) is not None:
                self._apply(command)
            if (forces := self._wrenches.changed(self.now)) is not None:
                self.simulation.apply_forces(forces)
            self.simulation.advance(self._substeps)
        except TensegrityError as error:
            self._paused = self._broken = True
            self.set_status(ERROR, f"paused: {str(error).rstrip('.')}; call simulator/reset to start again")
            return False
        self.ticks += 1
        if self._pause_at > 0.0 and self.ticks * self.period >= round(1e9 * self._pause_at):
            self._pause_at, self._paused = 0.0, True
        self._publish()
        return True

    def judge_pace(self) -> None:
        """Evaluate the simulation speed over `PACE_PERIODS` control periods, and report it."""
        if self.judged_since is None:
            self.judged_since = time.monotonic(), self.ticks
        began, before = self.judged_since
        if self.ticks - before >= PACE_PERIODS:
            wall = time.monotonic()
            factor = 1e-9 * (self.ticks - before) * self.period / max(1e-9, wall - began)
            self.judged_since = wall, self.ticks
            # lock-step has no desired speed
            late = not self._lockstep and factor < LEAST_PACE * self._factor
            slow = f"too slow: {factor:.2f} simulated seconds per second instead of {self._factor:g}"
            said = slow if late else "running"
            notes = {"note": self.simulation.note} if self.simulation.note else {}
            notes |= {"integrator": self._choice} if self._choice else {}
            notes |= {} if self._lockstep else {"lost_periods": str(self._lost)}
            notes |= self.simulation.details
            self.set_status(
                WARN if late else OK, said, real_time_factor=f"{factor:.2f}", time=f"{self.now:.2f} s", **notes
            )

    def hold_actuators(self) -> None:
        """Hold all actuators at their present positions, and discard delayed commands."""
        self.judged_since = None
        self.simulation.hold()
        self._late.clear()
        self.holding = True

    # -- messages -------------------------------------------------------------------------------------------------

    def _publish(self) -> None:
        now, simulation = self.ticks * self.period, self.simulation
        # /clock first: nodes that receive the other messages read the time from it
        self._clock_publisher.publish(quick_message(ClockMessage, clock=time_message(now)))
        shown = self._state is not None or heard(self._truth)
        seen = self.seen = simulation.observe_sensors()
        truth = None
        if shown:
            output = (seen.pose, seen.twist) if isinstance(seen, Observation) else (None, None)
            truth = self._codec.encode(simulation.state, *output)
        reading = Reading(now, seen, truth)
        if self.last_reading is None:  # no delay for the first state, without which nothing starts
            self.last_reading = reading
        if self._sent < self.ticks:  # a state that is published again is not delayed again
            self._readings.put(self.ticks, reading)
            self._sent = self.ticks
        self.last_reading = self._readings.take(self.ticks) or (
            reading if self.last_reading.stamp == now else self.last_reading
        )
        self._publish_reading(self.last_reading)
        # messages without a reply last, while other nodes compute
        if truth is not None and heard(self._truth):
            publish_state(self._truth, self._buffer, truth, time_message(now), "simulator")
        if self._acted is not None:
            self._timing.publish(self._acted)
            self._acted = None
        if heard(self._tendon_states):
            self._publish_tendons(self.last_reading)

    def _publish_tendons(self, reading: Reading) -> None:
        seen = reading.seen
        tendons = quick_message(
            TendonState, header=header(time_message(reading.stamp), WORLD), layout=self._description.hash,
            name=list(self._tendons), length=[seen.lengths[name] for name in self._tendons],
            rest_length=[seen.rest_lengths[name] for name in self._tendons],
            tension=[seen.tensions[name] for name in self._tendons],
        )  # fmt: skip
        self._tendon_states.publish(tendons)

    def _publish_reading(self, reading: Reading) -> None:
        stamp, seen = time_message(reading.stamp), reading.seen
        joints = quick_message(
            JointState, header=header(stamp, ""), name=list(seen.positions),  # joints have no frame
            position=list(seen.positions.values()), velocity=list(seen.rates.values()),
            effort=list(seen.efforts.values()),
        )  # fmt: skip
        if self._imu is not None:  # before the message to which the estimator replies
            for rod, value in seen.imus.items():
                if self._lockstep or is_due(self._imus[rod].rate, reading.stamp, self.period):
                    self._imu.publish(imu_message(rod, value, stamp, self._imus[rod].noise))
        self._joint_states.publish(joints)
        if self._state is not None and reading.truth is not None:  # last, because the controller replies to it
            publish_state(self._state, self._buffer, reading.truth, stamp, "simulator")
        self.published = time.monotonic()

    def take_command(self, message: ActuatorCommand) -> None:
        stamp = nanoseconds(message.header.stamp)
        answered = self.ticks * self.period if self.last_reading is None else self.last_reading.stamp
        source, session = message.source or "unnamed", int(message.session)
        if self._lockstep and (stamp != answered or self._paused):
            if stamp == answered and message.name:
                self._answered_at = self.ticks
            if message.name or not self.gate.streams.announce(source, session, self.now):
                self.gate.streams.hear(source, session, self.now)
            return  # a reply to a past state, or a repeated reply
        try:
            mode, values = mode_and_values(message)
        except TensegrityError as error:
            self.set_status(WARN, f"command from {message.source or 'unnamed'} refused: {error}")
            return
        verdict = self.gate.check(
            list(message.name), values, mode, source=source, session=session, stamp=1e-9 * stamp, now=self.now,
            positions=self.seen.positions, period=message.period,
        )  # fmt: skip
        if verdict.holds is None:
            for refusal in verdict.refusals:
                self.set_status(WARN, f"command from {source}: {refusal}")
        if verdict.accepted and not verdict.set_points:
            self.hold_actuators()  # every set point was refused
        elif verdict.accepted:
            self.holding = False
            self._late.put(self.ticks, Late(verdict.set_points, stamp, source, message.period))
        elif verdict.holds is not None:  # no command of this source is valid now; the simulated time still advances
            self.hold_actuators()
            self.set_status(
                ERROR if self.gate.streams.contest(self.now) else WARN, f"the actuators hold: {verdict.holds}"
            )
        else:
            return  # an invalid command is not a reply
        self.answered = time.monotonic()
        if self._lockstep:
            if self._advance() and not verdict.refusals:
                self.judge_pace()

    def _apply(self, command: Late) -> None:
        """Apply a command, and publish the time at which it becomes active."""
        age = max(0.0, self.now - 1e-9 * command.stamp)
        by_mode: dict[Mode, dict[str, Any]] = {}
        for name, (kind, value) in command.set_points.items():
            by_mode.setdefault(kind, {})[name] = value
        for kind, values in by_mode.items():
            self.simulation.command(kind.value, values, age=age, period=command.period)
        if heard(self._timing):
            self._acted = quick_message(
                TimeReference, header=header(time_message(self.ticks * self.period), ""),
                time_ref=time_message(command.stamp), source=command.source,
            )  # fmt: skip

    def _external_wrench(self, message: WrenchStamped) -> None:
        try:
            self._wrenches.take(*wrench_from_message(message), self.now)
        except TensegrityError as error:
            self.set_status(WARN, f"external wrench refused: {error}")

    def _payload(self, message: InertiaStamped) -> None:
        before = self._payloads.words
        try:
            self._payloads.take(*payload_from_message(message), self.now)
        except TensegrityError as error:
            self.set_status(WARN, f"payload refused: {error}")
        if self._payloads.words != before:
            self._publish_carried()
            if self._may_log_now():
                self.report()

    def _publish_carried(self) -> None:
        message = fill_carried(CarriedPayloads(), self._payloads.carried.values())
        message.header.stamp = time_message(self.ticks * self.period)
        self.carried_publisher.publish(message)

    # -- services -------------------------------------------------------------------------------------------------

    def reset(self, _: Any, response: Trigger.Response) -> Trigger.Response:
        self.simulation.reset()
        self._wrenches.forget()
        self._payloads.forget()
        self.gate.forget()
        self._late.clear()
        self._readings.clear()
        self.last_reading, self._acted, self._sent = None, None, -1
        self.ticks, self.holding, self._answered_at = 0, True, -1
        self.judged_since = None
        self._paused, self._broken = self._paused and not self._broken, False  # a failure paused it, no user
        self.answered = time.monotonic()
        self._publish_carried()
        self._publish()
        response.success, response.message = True, "reset to the start"
        return response

    def set_paused(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        self._paused = bool(request.data)
        self._broken = self._broken and self._paused
        self.answered = time.monotonic()
        self.judged_since = None
        self._publish()
        settled = self._lockstep and self._paused and self._answered_at == self.ticks
        words = f"paused; {ANSWERED}" if settled else "paused"
        response.success, response.message = True, words if self._paused else "running"
        return response

    def emergency_stop(self, _: Any, response: Trigger.Response) -> Trigger.Response:
        self.gate.stop("called by service")
        self._publish_stop()
        self.hold_actuators()
        response.success, response.message = True, "the actuators hold until simulator/release is called"
        return response

    def _publish_stop(self) -> None:
        self.stop_publisher.publish(String(data=stop_in_words("simulator", self.gate.stopped)))

    def release(self, _: Any, response: Trigger.Response) -> Trigger.Response:
        try:
            self.gate.release(self.now)
            self._publish_stop()
            response.success = True
            response.message = "released: the actuators hold until the next goal or `hold` of the controller"
        except TensegrityError as error:
            response.success, response.message = False, str(error)
        return response

    def _parameter_changed(self, name: str, value: Any) -> None:
        if name == "pause_at":
            self._pause_at = float(value)
        elif name == "real_time_factor" and not self._lockstep:
            self._factor = float(value)
            self.timer.timer_period_ns = int(self.period / self._factor)


def main() -> int:
    """Run the node."""
    return run_node(SimulatorNode)


if __name__ == "__main__":
    sys.exit(main())
