"""The driver node on an ideal bus, in lock-step: what it publishes, what it refuses, and how it starts and ends."""

from __future__ import annotations

import itertools
import time

import pytest
from patience import PATIENCE_S

rclpy = pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus  # noqa: E402
from driver_link import START, IdealHardware, ideal_lines  # noqa: E402
from lifecycle_msgs.msg import Transition  # noqa: E402
from lifecycle_msgs.srv import ChangeState, GetState  # noqa: E402
from rclpy.executors import SingleThreadedExecutor  # noqa: E402
from rclpy.node import Node  # noqa: E402
from sensor_msgs.msg import JointState, TimeReference  # noqa: E402
from std_msgs.msg import String  # noqa: E402
from std_srvs.srv import Trigger  # noqa: E402
from tensegrity.msg import ActuatorCommand, TendonState  # noqa: E402
from tensegrity.srv import Calibrate  # noqa: E402

from tensegrity_driver.driver import Driver  # noqa: E402
from tensegrity_driver.ros.driver_node import DriverNode  # noqa: E402
from tensegrity_driver.safety.faults import FaultKind  # noqa: E402
from tensegrity_dynamics import load_robot  # noqa: E402
from tensegrity_dynamics.errors import TensegrityError  # noqa: E402
from tensegrity_dynamics.ros.geometry_messages import nanoseconds  # noqa: E402
from tensegrity_dynamics.ros.robot_node import COMMAND, LATCHED, STATE, STOPPED, stop_in_words  # noqa: E402

ROBOT = load_robot("tensebot")


class Bench:
    """The node, and somebody who answers its states like a controller."""

    def __init__(self, **parameters):
        words = ["--ros-args", "--log-level", "fatal", "-p", "robot:=tensebot", "-p", "port:=test"]
        for key, value in {"lockstep": True, "identify": False, **parameters}.items():
            words += ["-p", f"{key}:={str(value).lower() if isinstance(value, bool) else value}"]
        rclpy.init(args=words)
        self.hardware = IdealHardware(ROBOT)
        self.hardware.trouble = parameters.get("trouble")
        self.node = DriverNode(lambda *_, **__: self.hardware)
        self.tester = Node("tester")
        self.executor = SingleThreadedExecutor()
        self.executor.add_node(self.node)
        self.executor.add_node(self.tester)
        self.joints: JointState | None = None
        self.seen: list[tuple[int, int]] = []
        self.tendons: TendonState | None = None
        self.statuses: dict[str, DiagnosticStatus] = {}
        self.goals: dict[str, float] = {}
        self.session = 1
        self.answers, self.closed = True, False
        self.count = 0
        self.tester.create_subscription(JointState, "joint_states", self._take, STATE)
        self.tester.create_subscription(TendonState, "tendon_states", self._take_tendons, STATE)
        self.tester.create_subscription(DiagnosticArray, "/diagnostics", self._take_diagnostics, 50)
        self.publisher = self.tester.create_publisher(ActuatorCommand, "actuator_command", COMMAND)

    @property
    def link(self):
        assert self.hardware.link is not None
        return self.hardware.link

    def _take(self, message):
        self.joints = message
        stamp = message.header.stamp.sec, message.header.stamp.nanosec
        is_new = self.seen[-1:] != [stamp]  # the same state again is no cycle
        self.seen.append(stamp)
        if self.answers:
            self.count += is_new
            self.command(self.goals)

    def _take_tendons(self, message):
        self.tendons = message

    def _take_diagnostics(self, message):
        self.statuses.update({status.name: status for status in message.status})

    def command(self, goals, source="tester", mode=ActuatorCommand.POSITION):
        command = ActuatorCommand(source=source, mode=mode, name=list(goals), value=list(goals.values()))
        command.session = self.session
        command.header.stamp = self.joints.header.stamp
        self.publisher.publish(command)

    def wait(self, condition):
        limit = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < limit, {name: status.message for name, status in self.statuses.items()}
            self.executor.spin_once(timeout_sec=0.1)

    def cycles(self, number):
        until = self.count + number
        self.wait(lambda: self.count >= until)

    def call(self, kind, name, request=None):
        client = self._client_of(kind, name)
        future = client.call_async(request or kind.Request())
        self.wait(future.done)
        return future.result()

    def _client_of(self, kind, name):
        """Once in some 7,000 calls a client and a server of one process never find each other; another client does."""
        limit = time.monotonic() + PATIENCE_S
        while True:
            client, tried = self.tester.create_client(kind, name), time.monotonic()
            self.wait(lambda client=client, tried=tried: client.service_is_ready() or time.monotonic() > tried + 10.0)
            if client.service_is_ready():
                return client
            assert time.monotonic() < limit, f"nobody offers {name}"

    def change(self, transition):
        return self.call(ChangeState, "driver/change_state", ChangeState.Request(transition=Transition(id=transition)))

    @property
    def state(self):
        return self.call(GetState, "driver/get_state").current_state.label

    def says(self, words, status="driver"):
        return status in self.statuses and words in self.statuses[status].message

    def lengths(self):
        return dict(zip(self.joints.name, self.joints.position, strict=True))

    def close(self):
        if self.closed:
            return
        self.closed = True
        self.node.destroy_node()
        self.tester.destroy_node()
        self.executor.shutdown()
        rclpy.try_shutdown()


@pytest.fixture
def bench():
    made = []

    def start(**parameters):
        made.append(Bench(**parameters))
        return made[-1]

    yield start
    for each in made:
        each.close()


# -- starting and ending --------------------------------------------------------------------------------------------


def test_it_starts_by_itself_and_takes_over_without_a_jump(bench):
    running = bench()
    running.cycles(20)
    assert running.state == "active"
    assert all(length == pytest.approx(START, abs=2e-4) for length in running.lengths().values())
    assert all(command.speed == 0.0 for each in running.link.sent for command in each.values())
    assert set(running.joints.name) == {each.name for each in ROBOT.actuators}
    assert running.tendons.estimated
    assert set(running.tendons.name) == {each.drives for each in ROBOT.actuators}


def test_it_moves_only_when_it_is_started(bench):
    running = bench(autostart=False)
    assert running.state == "unconfigured"
    assert running.change(Transition.TRANSITION_CONFIGURE).success
    assert running.state == "inactive"
    assert running.link.prepared == 0
    assert running.change(Transition.TRANSITION_ACTIVATE).success
    running.cycles(3)
    assert running.link.prepared == 1
    assert running.change(Transition.TRANSITION_DEACTIVATE).success
    assert running.change(Transition.TRANSITION_CLEANUP).success
    assert running.state == "unconfigured"
    assert running.link.closed


def say_that_it_is_there(running, name):
    publisher = running.tester.create_publisher(DiagnosticArray, "/diagnostics", 10)
    running.wait(publisher.get_subscription_count)
    publisher.publish(DiagnosticArray(status=[DiagnosticStatus(name=name)]))


def test_it_begins_when_those_that_it_waits_for_are_there(bench):
    running = bench(wait_for="estimator controller")
    running.wait(lambda: running.says("waiting for controller, estimator"))
    say_that_it_is_there(running, "estimator")
    running.wait(lambda: "other/controller" in running.statuses or say_that_it_is_there(running, "other/controller"))
    running.wait(lambda: running.says("waiting for controller") and not running.says("estimator"))
    assert running.state == "unconfigured"
    say_that_it_is_there(running, "controller")
    running.cycles(3)


def test_it_does_not_wait_for_ever_for_one_that_never_comes(bench, monkeypatch):
    monkeypatch.setattr("tensegrity_driver.ros.driver_node.LONGEST_WAIT", 0.0)
    bench(wait_for="recorder").cycles(3)


def test_a_bus_that_does_not_answer_at_once_is_asked_again(bench):
    running = bench(trouble="servo 3 does not answer; check its plug.")
    running.wait(lambda: running.says("not configured yet: servo 3 does not answer; check its plug. Trying again"))
    running.hardware.refuses, running.hardware.trouble = "servo 3: return_delay could not be read.", None
    running.wait(lambda: running.says("not activated yet: servo 3: return_delay could not be read. Trying again"))
    running.link.refuses = None
    running.cycles(3)
    assert running.link.prepared == 1


def test_what_is_wrong_with_the_bus_is_said_and_it_can_be_configured_once_it_is_mended(bench, monkeypatch):
    monkeypatch.setattr("tensegrity_driver.ros.driver_node.TRIES", 1)
    running = bench(trouble="servo 3 does not answer; check its plug.")
    running.wait(lambda: running.says("cannot be configured: servo 3 does not answer"))
    assert running.state == "unconfigured"
    running.hardware.trouble = None
    assert running.change(Transition.TRANSITION_CONFIGURE).success


def test_it_does_not_take_over_a_robot_whose_lengths_are_not_known(bench):
    running = bench(autostart=False)
    assert running.change(Transition.TRANSITION_CONFIGURE).success
    running.link.blind = {"draw_2"}
    assert not running.change(Transition.TRANSITION_ACTIVATE).success
    assert running.state == "inactive"
    running.wait(lambda: running.says("draw_2"))
    assert not any(running.link.torque.values())


@pytest.mark.parametrize("ending", ["hold", "torque off"])
def test_deactivated_servos_hold_or_let_go_as_chosen_and_start_again_where_they_are(bench, ending):
    running = bench(deactivate=f"'{ending}'")
    running.goals = {"draw_1": 0.19}
    running.cycles(30)
    assert running.link.speeds["draw_1"] != 0.0
    assert running.change(Transition.TRANSITION_DEACTIVATE).success
    assert set(running.link.speeds.values()) == {0.0}
    assert set(running.link.torque.values()) == {ending == "hold"}
    stands = running.link.lengths["draw_1"]
    running.goals = {}
    assert running.change(Transition.TRANSITION_ACTIVATE).success
    running.cycles(20)
    assert running.link.lengths["draw_1"] == pytest.approx(stands, abs=2e-4)


def test_ending_the_node_stops_every_servo(bench):
    running = bench()
    running.goals = {"draw_1": 0.19}
    running.cycles(30)
    running.close()
    assert set(running.link.speeds.values()) == {0.0}
    assert running.link.closed


@pytest.mark.sampled(1)
@pytest.mark.parametrize("error", [TensegrityError("the emulated ports ended."), KeyError("nobody thought of this")])
def test_an_error_in_a_cycle_stops_the_servos_and_it_can_be_configured_again(bench, error):
    running = bench()
    running.goals = {"draw_1": 0.19}
    running.cycles(20)
    link = running.link
    running.hardware.error = error
    running.wait(lambda: running.says("stopped by an error"))
    assert str(error) in running.statuses["driver"].message
    assert running.state == "unconfigured"
    assert set(link.speeds.values()) == {0.0}
    assert link.closed
    running.hardware.error = None
    assert running.change(Transition.TRANSITION_CONFIGURE).success
    assert running.change(Transition.TRANSITION_ACTIVATE).success
    running.wait(lambda: running.says("running"))


# -- commands -------------------------------------------------------------------------------------------------------


def test_commanded_lengths_are_reached_and_published(bench):
    running = bench()
    running.goals = {"draw_1": 0.2, "saddle_3": 0.23}
    running.cycles(150)
    for name, goal in running.goals.items():
        assert running.lengths()[name] == pytest.approx(goal, abs=3e-4)
        assert running.link.lengths[name] == pytest.approx(goal, abs=3e-4)


@pytest.mark.parametrize("jump", [-3600, 10 * 365 * 86400])
def test_a_computer_clock_that_is_set_stops_nothing_and_is_said(bench, jump):
    rig = bench(lockstep=False, overrun=1000.0)  # cycles that a busy machine makes late are no fault here
    rig.wait(lambda: rig.joints is not None and rig.count > 2)
    clock, before = rig.node.robot_clock, nanoseconds(rig.joints.header.stamp)
    system = clock.system
    clock.system = lambda: system() + jump * 10**9
    rig.wait(lambda: rig.says("the computer's clock was changed by"))
    assert rig.state == "active"
    assert 0 < nanoseconds(rig.joints.header.stamp) - before < 600e9


def test_a_process_that_stands_still_between_two_looks_at_the_clock_finds_no_jump_of_it(bench):
    rig = bench(lockstep=False, overrun=1000.0)
    rig.wait(lambda: rig.joints is not None and rig.count > 2)
    clock, looks, count = rig.node.robot_clock, itertools.count(1), rig.count
    steady = clock.steady
    clock.steady = lambda: steady() + next(looks) * 10**9  # each further look comes a second later
    rig.wait(lambda: rig.count > count + 5)
    assert rig.state == "active" and FaultKind.CLOCK_JUMP not in {each.kind for each in rig.node.driver.faults}


def test_it_says_of_each_command_from_when_on_it_acts(bench):
    """In lock-step the servos get it in the cycle that it begins."""
    running, acted = bench(), []
    running.tester.create_subscription(TimeReference, "command_timing", acted.append, STATE)
    running.goals = {"draw_1": 0.2}
    running.wait(lambda: len(acted) > 3)
    period = round(1e9 * running.node.driver.period)
    for each in acted:
        assert each.source == "tester"
        assert nanoseconds(each.header.stamp) - nanoseconds(each.time_ref) == period


def test_a_lost_answer_only_makes_it_send_the_same_state_again(bench):
    running = bench(patience=0.05)
    running.cycles(5)
    running.answers = False
    running.seen.clear()
    running.wait(lambda: len(running.seen) > 5)
    assert len(set(running.seen[-4:])) == 1
    advanced = running.hardware.advanced
    running.command({})
    running.wait(lambda: running.hardware.advanced == advanced + 1)


def test_a_second_source_is_refused_while_the_first_one_commands(bench):
    running = bench()
    running.goals = {"draw_1": 0.21}
    running.cycles(10)
    running.answers = False
    for _ in range(5):
        running.command({"draw_1": 0.17}, source="intruder")
        running.executor.spin_once(timeout_sec=0.05)
    running.answers = True
    running.command(running.goals)
    running.wait(lambda: "intruder" in running.statuses.get("driver: bus", DiagnosticStatus()).message)
    running.cycles(200)
    assert running.link.lengths["draw_1"] == pytest.approx(0.21, abs=3e-4)


def test_an_emergency_stop_is_published_until_it_is_released(bench):
    running, published = bench(), []
    running.tester.create_subscription(String, STOPPED, published.append, LATCHED)
    running.wait(lambda: published and published[-1].data == "")
    assert running.call(Trigger, "emergency_stop").success
    running.wait(lambda: published[-1].data == stop_in_words("driver", "called by service"))
    running.wait(lambda: running.says("emergency stop"))
    assert running.call(Trigger, "driver/release").success
    running.wait(lambda: published[-1].data == "")


def test_an_emergency_stop_latches_until_it_is_released(bench):
    running = bench()
    running.goals = {"draw_1": 0.19}
    running.cycles(20)
    assert running.call(Trigger, "emergency_stop").success
    running.cycles(20)
    stands = running.link.lengths["draw_1"]
    running.cycles(20)
    assert running.link.lengths["draw_1"] == pytest.approx(stands, abs=3e-4)
    running.wait(lambda: running.says("emergency stop"))
    assert running.change(Transition.TRANSITION_DEACTIVATE).success
    answer = running.call(Trigger, "driver/release")
    assert answer.success
    assert "emergency_stop" in answer.message
    assert running.change(Transition.TRANSITION_ACTIVATE).success
    running.cycles(50)
    assert running.link.lengths["draw_1"] == pytest.approx(stands, abs=3e-4)
    running.wait(lambda: running.says("send a goal or call `hold`", "driver: bus"))
    running.session = 2  # as with a goal that came after the release
    running.cycles(150)
    assert running.link.lengths["draw_1"] == pytest.approx(0.19, abs=3e-4)


@pytest.mark.parametrize("identify", [True, False])
def test_a_release_says_that_the_spools_are_moved_a_little_where_their_test_was_interrupted(
    bench, identify, monkeypatch
):
    running = bench()
    running.cycles(3)
    assert running.call(Trigger, "emergency_stop").success
    running.cycles(5)
    monkeypatch.setattr(Driver, "identifying", property(lambda _: identify))  # spools with potentiometers are tested
    answer = running.call(Trigger, "driver/release")
    assert answer.success
    assert ("each spool is moved a little" in answer.message) == identify


def test_a_fault_is_reported_with_its_servo_and_released_once_its_cause_has_gone(bench):
    running = bench()
    running.cycles(5)
    running.link.voltage = 5.0
    running.cycles(30)
    running.wait(lambda: running.says("5", "driver: draw_1"))
    assert running.statuses["driver: draw_1"].level == DiagnosticStatus.ERROR
    refused = running.call(Trigger, "driver/release")
    assert not refused.success
    assert "causes" in refused.message
    running.link.voltage = 11.1
    running.cycles(5)
    assert running.call(Trigger, "driver/release").success
    running.session = 2
    running.wait(lambda: running.says("running"))
    assert not running.call(Trigger, "driver/release").success


def test_an_unplugged_bus_stops_everything_and_is_driven_again_after_release(bench):
    running = bench()
    running.cycles(5)
    running.link.unplugged = True
    running.cycles(10)
    running.wait(lambda: running.says("port", "driver: bus"))
    assert running.state == "active"
    running.link.unplugged = False
    running.cycles(10)
    assert running.call(Trigger, "driver/release").success
    running.goals, running.session = {"draw_4": 0.21}, 2
    running.cycles(100)
    assert running.link.lengths["draw_4"] == pytest.approx(0.21, abs=3e-4)


# -- calibrating ----------------------------------------------------------------------------------------------------


def test_points_measured_by_hand_make_a_calibration_that_is_saved_where_asked(bench, tmp_path):
    path = tmp_path / "folder" / "calibration.json"
    running = bench(calibration=str(path))
    running.cycles(3)
    line = ideal_lines(ROBOT)["draw_5"]
    lengths = [0.17 + 0.018 * k for k in range(6)]
    request = Calibrate.Request(servo="draw_5", reading=[line.inverse(each) for each in lengths], length=lengths)
    moving = running.call(Calibrate, "driver/calibrate", request)
    assert not moving.success
    assert "in use" in moving.reason
    assert running.change(Transition.TRANSITION_DEACTIVATE).success
    request.save = True
    answer = running.call(Calibrate, "driver/calibrate", request)
    assert answer.success, answer.reason
    assert answer.slope == pytest.approx(line.slope)
    assert answer.intercept == pytest.approx(line.intercept)
    assert answer.residual < 1e-9
    assert path.is_file()
    request.servo = "draw_9"
    assert "Did you mean" in running.call(Calibrate, "driver/calibrate", request).reason
