"""The whole system as real processes over DDS: goals in lock-step, refusals, and what happens when a node dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from patience import PATIENCE_S, until

rclpy = pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from patient_watcher import PatientWatcher  # noqa: E402
from rclpy.qos import QoSProfile, ReliabilityPolicy  # noqa: E402
from std_srvs.srv import SetBool, Trigger  # noqa: E402
from tensegrity.msg import ActuatorCommand, StructureState  # noqa: E402

from tensegrity_dynamics import load_robot  # noqa: E402
from tensegrity_dynamics.ros.geometry_messages import pose_from_message, seconds  # noqa: E402
from tensegrity_tools.runtime.node_graph import Watching, simulation_graph  # noqa: E402
from tensegrity_tools.runtime.processes import NodeProcesses  # noqa: E402
from tensegrity_tools.runtime.tour import errors  # noqa: E402

pytestmark = pytest.mark.system

ROBOT = "tensebot"
HOLDING = ("holding", "moving")


class System:
    """A running robot, and somebody who watches it; its nodes in one process, or each in its own to be killed."""

    def __init__(self, *, composed=True, **parameters):
        robot, lockstep = parameters.pop("robot", ROBOT), parameters.pop("lockstep", True)
        self.robot = load_robot(robot)
        graph = simulation_graph(robot, lockstep=lockstep, watching=Watching(markers=False, view=False))
        graph = graph.as_composed() if composed else graph
        self.nodes = NodeProcesses()
        self.nodes.start_all(graph.with_parameters("simulator", **parameters))
        self.watcher = PatientWatcher("test_watcher")
        self.truths: dict[float, tuple] = {}
        reliable = QoSProfile(depth=1000, reliability=ReliabilityPolicy.RELIABLE)
        self.watcher.node.create_subscription(StructureState, "simulator/truth", self._record, reliable)
        try:
            self.wait(lambda: self.diagnosis("controller") in HOLDING and self.watcher.truth is not None)
        except BaseException:
            self.close()  # the tests after this one start their own
            raise

    def _record(self, message):
        nodes = np.array(message.node_position)
        bits = nodes.tobytes() + np.array([*message.q, *message.v]).tobytes()
        self.truths[seconds(message.header.stamp)] = bits

    def wait(self, condition):
        assert self.watcher.wait_until(condition, PATIENCE_S), {
            k: v.message for k, v in self.watcher.diagnostics.items()
        }

    def diagnosis(self, node):
        status = self.watcher.diagnostics.get(node)
        return "" if status is None else status.message

    def pause(self, paused):
        answer = self.watcher.call("simulator/set_paused", SetBool.Request(data=paused))
        assert answer.success

    def close(self):
        self.watcher.close()
        self.nodes.stop()


class OneAtATime:
    """Starts a system; the one that runs already where it is of the same kind and nobody has harmed it."""

    def __init__(self):
        self.running, self.parameters = None, None

    def __call__(self, fresh=True, **parameters):
        if fresh or parameters != self.parameters:
            self.close()
            self.running, self.parameters = System(**parameters), parameters
        return self.running

    def close(self):
        if self.running is not None:
            self.running.close()
        self.running, self.parameters = None, None


@pytest.fixture(scope="module")
def system():
    made = OneAtATime()
    yield made
    made.close()


def goal_from_rest(watcher):
    """A goal 12 mm up and 8 mm aside of where the robot is."""
    position, quaternion = watcher.pose
    return position + [0.008, 0.0, 0.012], quaternion


def reach(system):
    """Start paused, send the goal, go; the truth of every stamp until the goal is reached, and the errors then."""
    goal = goal_from_rest(system.watcher)
    answer = system.watcher.send_goal(*goal)
    assert answer.accepted, answer.reason
    end = answer.predicted_arrival.sec + 1e-9 * answer.predicted_arrival.nanosec + 1.0
    system.watcher.pause_at(end)
    system.pause(False)
    system.wait(lambda: max(system.truths, default=0.0) >= end)  # the last state is not overtaken by another one
    system.watcher.spin(0.5)
    return dict(system.truths), errors(system.robot, goal, system.watcher.pose)


@pytest.mark.parametrize("robot", [ROBOT, pytest.param("manipulator", marks=pytest.mark.long)])
def test_a_goal_in_lockstep_is_reached_and_two_runs_are_bit_equal_composed_or_not(system, robot):
    runs = []
    for composed in (True, False):  # the last one serves the next test
        truths, (position, orientation) = reach(system(paused=True, robot=robot, composed=composed))
        assert position < 1e-3
        assert orientation < np.radians(0.2)
        runs.append(truths)
    shared = sorted(set(runs[0]) & set(runs[1]))
    # a busy machine may lose messages to whoever only watches, but not the last; each state follows from those before
    assert len(shared) > 1 and shared[-1] == max(runs[0]) == max(runs[1])
    assert all(runs[0][stamp] == runs[1][stamp] for stamp in shared)


@pytest.mark.parametrize("lockstep", [True, pytest.param(False, marks=pytest.mark.long)])
def test_a_killed_controller_leads_to_a_safe_hold(system, lockstep):
    options = {"paused": True} if lockstep else {"lockstep": False, "silence": 0.5}
    running = system(fresh=False, robot=ROBOT, composed=False, **options)
    running.pause(False)
    watcher = running.watcher
    assert watcher.send_goal(*goal_from_rest(watcher)).accepted
    start = watcher.time
    running.wait(lambda: watcher.time > start + 0.3)
    running.nodes.running["controller"].kill()
    running.wait(lambda: "hold" in running.diagnosis("simulator"))

    def pass_a_second():
        """Of the robot's time, which on a busy machine is slow; in lock-step it stands still."""
        since = seconds(watcher.tendons.header.stamp)
        if lockstep:
            watcher.spin(1.0)
        else:
            running.wait(lambda: seconds(watcher.tendons.header.stamp) > since + 1.0)

    pass_a_second()
    rests = list(watcher.tendons.rest_length)
    pass_a_second()
    assert list(watcher.tendons.rest_length) == rests  # the spools stand still


def test_bad_goals_are_refused_with_a_reason_while_the_robot_holds(system):
    running = system()
    watcher = running.watcher
    position, quaternion = watcher.pose
    cases = [
        ((np.nan, 0.0, 0.2), quaternion, {}, "finite"),
        ((0.0, 0.0, 5.0), quaternion, {}, "reach"),
        (position, quaternion, {"frame": "kitchen"}, "kitchen"),
        (position, quaternion, {"duration": -1.0}, "duration"),
    ]
    for goal, turned, options, word in cases:
        answer = watcher.send_goal(goal, turned, **options)
        assert not answer.accepted
        assert word in answer.reason
    far = watcher.send_goal((0.0, 0.0, 5.0), quaternion)
    assert far.binding
    assert pose_from_message(far.nearest)[0][2] > position[2]
    watcher.spin(0.5)
    np.testing.assert_allclose(watcher.pose[0], position, atol=1e-6)
    assert running.diagnosis("controller") == "holding"


def test_stop_latches_until_hold(system):
    watcher = system(fresh=False).watcher
    assert watcher.call("stop").success
    refused = watcher.send_goal(*goal_from_rest(watcher))
    assert not refused.accepted
    assert "stopped" in refused.reason
    assert watcher.call("hold").success
    assert watcher.send_goal(*goal_from_rest(watcher)).accepted


@pytest.mark.long
def test_a_second_source_of_commands_is_refused(system):
    running = system(lockstep=False)
    watcher = running.watcher
    publisher = watcher.node.create_publisher(ActuatorCommand, "actuator_command", 1)

    def intrude():
        command = ActuatorCommand(source="intruder", mode=ActuatorCommand.POSITION, name=["draw_1"], value=[0.2])
        command.header.stamp = watcher.truth.header.stamp
        publisher.publish(command)
        return "intruder" in running.diagnosis("simulator")

    running.wait(intrude)
    assert "controller" in running.diagnosis("simulator")
    assert watcher.tendons is not None


@pytest.mark.long
def test_a_killed_simulator_is_reported(system):
    running = system(composed=False)
    running.nodes.running["simulator"].kill()
    running.wait(lambda: "no structure_state" in running.diagnosis("controller"))
    assert "simulator" in running.nodes.ended()


@pytest.mark.long
def test_emergency_stop_holds_until_released(system):
    running = system(lockstep=False)
    watcher = running.watcher
    stop = watcher.node.create_client(Trigger, "emergency_stop")
    release = watcher.node.create_client(Trigger, "simulator/release")
    for client in (stop, release):
        assert client.wait_for_service(timeout_sec=10.0)
    future = stop.call_async(Trigger.Request())
    running.wait(future.done)
    running.wait(lambda: "emergency stop" in running.diagnosis("simulator"))
    future = release.call_async(Trigger.Request())
    running.wait(future.done)
    assert future.result().success
    running.wait(lambda: "began before the release" in running.diagnosis("simulator"))
    assert watcher.call("hold").success
    running.wait(lambda: running.diagnosis("simulator") == "running")


@pytest.mark.long
def test_ctrl_c_ends_every_process():
    words = [sys.executable, "-m", "tensegrity_tools.cli", "up", "sim", ROBOT, "--no-view", "--stay"]
    started = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    try:
        for line in started.stdout:
            if "keeps running" in line:
                break
        children = subprocess.run(["pgrep", "-P", str(started.pid)], capture_output=True, text=True).stdout.split()
        assert len(children) >= 4
        started.send_signal(signal.SIGINT)
        started.wait(PATIENCE_S)
    finally:
        if started.poll() is None:
            os.killpg(started.pid, signal.SIGKILL)
    until(lambda: not [child for child in children if os.path.exists(f"/proc/{child}")])
