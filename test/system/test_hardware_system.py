"""Driver, estimator and controller as processes on emulated servos: goals, stops, and what happens when one dies."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from patience import PATIENCE_S, until

rclpy = pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from lifecycle_msgs.msg import Transition  # noqa: E402
from lifecycle_msgs.srv import ChangeState  # noqa: E402
from patient_watcher import PatientWatcher  # noqa: E402
from std_srvs.srv import Trigger  # noqa: E402
from tensegrity.msg import ActuatorCommand  # noqa: E402

from tensegrity_driver.bus.control_tables import model_named  # noqa: E402
from tensegrity_driver.bus.dynamixel_bus import Bus  # noqa: E402
from tensegrity_driver.bus.serial_port import SerialPort  # noqa: E402
from tensegrity_driver.hardware.emulated_hardware import calibrate_emulated  # noqa: E402
from tensegrity_dynamics import load_robot  # noqa: E402
from tensegrity_tools.runtime.node_graph import EMULATED, Watching, hardware_graph  # noqa: E402
from tensegrity_tools.runtime.processes import NodeProcesses  # noqa: E402
from tensegrity_tools.runtime.tour import errors  # noqa: E402

pytestmark = pytest.mark.system

TENSEBOT = load_robot("tensebot")
# its tight and stiff tendons leave servos in wheel mode no speed at the usual lag
SAFETY = {"wheels": "{lag: 2}", "turns": "{}", "patient": "{stale: 1000}"}
BUSY = 1000.0  # periods that a cycle may take on a machine that has much else to do


def robot_file(folder, kind):
    """The tensebot with servos in wheel mode, with servos that count turns, or with such and much patience."""
    assert TENSEBOT.path is not None
    text = TENSEBOT.path.read_text(encoding="utf-8")
    text = text.replace("  protocol: 1\n", f"  protocol: 1\n  safety: {SAFETY[kind]}\n")
    if kind != "wheels":
        text = text.replace("protocol: 1", "protocol: 2").replace("model: AX-12A", "model: XM430-W350")
        text = re.sub(r", potentiometer: \d+", "", text)
    path = folder / f"{kind}.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


class System:
    """A running robot, and somebody who watches it."""

    def __init__(self, robot, lockstep=True, wait=True, **parameters):
        self.robot = load_robot(robot)
        unseen = Watching(markers=False, view=False)
        self.graph = hardware_graph(robot, port=EMULATED, lockstep=lockstep, watching=unseen)
        self.graph = self.graph.with_parameters("driver", overrun=BUSY, **parameters)
        self.nodes = NodeProcesses()
        self.nodes.start_all(self.graph.only("estimator", "controller"))
        self.watcher = PatientWatcher("test_watcher")
        self.wait(lambda: {"estimator", "controller"} <= set(self.watcher.diagnostics))
        self.nodes.start("driver", self.graph["driver"].parameters)
        if wait:
            self.wait(lambda: self.diagnosis("controller") in ("holding", "moving") and self.watcher.tendons)

    def wait(self, condition):
        messages = {name: status.message for name, status in self.watcher.diagnostics.items()}
        assert self.watcher.wait_until(condition, PATIENCE_S), (messages, self.nodes.last_words("driver"))

    def diagnosis(self, name):
        status = self.watcher.diagnostics.get(name)
        return "" if status is None else status.message

    def call(self, kind, name, request=None):
        client = self.watcher.node.create_client(kind, name)
        self.wait(client.service_is_ready)
        future = client.call_async(request or kind.Request())
        self.wait(future.done)
        return future.result()

    def change(self, transition):
        return self.call(ChangeState, "driver/change_state", ChangeState.Request(transition=Transition(id=transition)))

    def reach(self, move, duration=0.0):
        """Send a goal relative to where the robot is and wait for it; returns the errors one second after arrival."""
        position, quaternion = self.watcher.pose
        goal = position + np.array(move), quaternion
        answer = self.watcher.send_goal(*goal, duration=duration)
        assert answer.accepted, answer.reason
        arrival = answer.predicted_arrival.sec + 1e-9 * answer.predicted_arrival.nanosec
        self.wait(lambda: self.watcher.time > arrival + 1.0)
        return errors(self.robot, goal, self.watcher.pose)

    def rests(self):
        return np.array(self.watcher.tendons.rest_length)

    def close(self):
        self.watcher.close()
        self.nodes.stop()


@pytest.fixture
def system():
    made = []

    def start(*arguments, **parameters):
        made.append(System(*arguments, **parameters))
        return made[-1]

    yield start
    for each in made:
        each.close()


# -- in lock-step ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "share"),
    [*(pytest.param(kind, 1.0, marks=pytest.mark.long) for kind in ("wheels", "turns")), ("turns", 0.5)],
)
def test_a_goal_is_reached_by_the_emulated_robot(system, tmp_path, kind, share):
    running = system(robot_file(tmp_path, kind))
    position, orientation = running.reach(share * np.array([0.008, 0.0, 0.012]), duration=2.0 * share)
    assert position < 2e-3 * share
    assert orientation < np.radians(0.5)
    assert running.diagnosis("driver") == "running"
    assert running.watcher.tendons.estimated


@pytest.mark.long
def test_after_a_pause_the_robot_goes_on_from_where_it_is(system, tmp_path):
    running = system(robot_file(tmp_path, "wheels"))
    stands = running.watcher.pose[0]
    assert running.change(Transition.TRANSITION_DEACTIVATE).success
    assert running.change(Transition.TRANSITION_ACTIVATE).success
    before = running.watcher.time
    running.wait(lambda: running.watcher.time > before + 0.5)
    assert np.linalg.norm(running.watcher.pose[0] - stands) < 1e-3
    position, _ = running.reach((0.004, 0.0, 0.006), duration=2.0)
    assert position < 2e-3
    assert running.diagnosis("driver") == "running"


@pytest.mark.long
def test_an_emergency_stop_holds_the_robot_until_it_is_released(system, tmp_path):
    running = system(robot_file(tmp_path, "turns"))
    position, quaternion = running.watcher.pose
    assert running.watcher.send_goal(position + [0.0, 0.0, 0.02], quaternion, duration=5.0).accepted
    start = running.watcher.time
    running.wait(lambda: running.watcher.time > start + 1.0)
    assert running.call(Trigger, "emergency_stop").success
    running.wait(lambda: "emergency stop" in running.diagnosis("driver"))
    stopped = running.watcher.time
    running.wait(lambda: running.watcher.time > stopped + 0.5)
    rests = running.rests()
    running.wait(lambda: running.watcher.time > stopped + 2.0)
    np.testing.assert_allclose(running.rests(), rests, atol=1e-4)
    assert running.call(Trigger, "driver/release").success
    running.wait(lambda: "send a goal or call `hold`" in running.diagnosis("driver"))
    released = running.watcher.time
    running.wait(lambda: running.watcher.time > released + 3.0)
    np.testing.assert_allclose(running.rests(), rests, atol=1e-4)  # though the controller still commands
    assert running.watcher.send_goal(position + [0.0, 0.0, 0.02], quaternion).accepted
    running.wait(lambda: running.diagnosis("driver") == "running")
    running.wait(lambda: np.linalg.norm(running.watcher.pose[0] - position - [0.0, 0.0, 0.02]) < 2e-3)


@pytest.mark.long
def test_without_a_controller_the_emulated_time_stands_still(system, tmp_path):
    running = system(robot_file(tmp_path, "turns"), silence=0.5)
    running.nodes.running["controller"].kill()
    running.wait(lambda: "does not answer" in running.diagnosis("driver"))
    times = [-1.0, running.watcher.time]
    for _ in range(20):  # the last answer of the controller may still be under way on a busy machine
        if times[-1] == times[-2]:
            break
        running.watcher.spin(1.0)
        times.append(running.watcher.time)
    running.watcher.spin(1.0)
    assert running.watcher.time == times[-1] == times[-2]


# -- by the clock ---------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_killed_controller_leads_to_a_hold_that_ends_when_it_is_back(system, tmp_path):
    running = system(robot_file(tmp_path, "turns"), lockstep=False)
    position, quaternion = running.watcher.pose
    assert running.watcher.send_goal(position + [0.0, 0.0, 0.02], quaternion, duration=20.0).accepted
    running.nodes.running["controller"].kill()
    running.wait(lambda: "no command from 'controller'" in running.diagnosis("driver: bus"))
    running.watcher.spin(1.0)
    rests = running.rests()
    running.watcher.spin(1.0)
    np.testing.assert_allclose(running.rests(), rests, atol=1e-4)
    running.nodes.start_all(running.graph.only("controller"))
    running.wait(lambda: running.diagnosis("driver") == "running")


@pytest.mark.long
def test_a_second_source_of_commands_is_refused(system, tmp_path):
    running = system(robot_file(tmp_path, "patient"), lockstep=False)
    publisher = running.watcher.node.create_publisher(ActuatorCommand, "actuator_command", 1)
    rests = running.rests()

    def intrude():
        command = ActuatorCommand(source="intruder", mode=ActuatorCommand.POSITION, name=["draw_1"], value=[0.18])
        command.header.stamp = running.watcher.node.get_clock().now().to_msg()
        publisher.publish(command)
        said = running.diagnosis("driver: bus")  # by the graph, or by the commands themselves where these come first
        return "2 nodes publish commands" in said or "'intruder' commands while 'controller' does" in said

    running.wait(intrude)
    np.testing.assert_allclose(running.rests(), rests, atol=1e-3)


class EmulatorProcess:
    """An emulated robot that goes on when the driver dies."""

    def __init__(self, robot, folder):
        self.folder = folder
        calibrate_emulated(load_robot(robot), folder / "calibration.json")
        words = [sys.executable, "-m", "tensegrity_driver.emulator", robot, "--no-wire", "--directory", str(folder)]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for line in self.process.stdout:
            if line.strip() == "ready":
                break

    @property
    def parameters(self):
        return {
            "port": str(self.folder / "servos"), "calibration": str(self.folder / "calibration.json"),
            "packet_timeout": 0.25,
        }  # fmt: skip

    def close(self):
        self.process.terminate()
        self.process.wait(PATIENCE_S)
        self.process.stdout.close()
        self.process.stdin.close()


@pytest.mark.long
def test_the_servos_of_a_killed_driver_stop_by_their_own_watchdog(system, tmp_path):
    robot = robot_file(tmp_path, "turns")
    emulator = EmulatorProcess(robot, tmp_path)
    try:
        running = system(robot, lockstep=False, **emulator.parameters)
        position, quaternion = running.watcher.pose
        assert running.watcher.send_goal(position + [0.0, 0.0, 0.02], quaternion, duration=60.0).accepted
        running.wait(lambda: running.diagnosis("controller") == "moving")
        running.nodes.running["driver"].kill()
        running.nodes.running["driver"].wait()
        model = model_named("XM430-W350")
        bus = Bus(SerialPort(emulator.parameters["port"], 1_000_000, patience=0.25), 2)
        limit = time.monotonic() + PATIENCE_S
        while True:
            time.sleep(2.0)  # reading feeds a watchdog that has not bitten yet
            bus.open()
            bitten = bus.read_raw(7, model.register("bus_watchdog"))
            bus.close()
            if bitten == 0xFF or time.monotonic() > limit:
                break
        assert bitten == 0xFF
        bus.open()
        positions = [bus.read(7, model.register("present_position")) for _ in range(20)]
        assert max(positions) - min(positions) < 1e-2
        assert bus.read(7, model.register("torque_enable")) == 1.0
        bus.close()
        running.nodes.start("driver", running.graph["driver"].parameters)
        running.wait(lambda: running.diagnosis("driver") == "running")
    finally:
        emulator.close()


@pytest.mark.long
def test_up_hardware_starts_everything_on_emulated_servos_and_ctrl_c_ends_it(tmp_path):
    robot = robot_file(tmp_path, "turns")
    words = [sys.executable, "-m", "tensegrity_tools.cli", "up", "hardware", robot, "--port", "emulated"]
    started = subprocess.Popen(
        [*words, "--no-view", "--stay"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
    )  # fmt: skip
    said = []
    try:
        for line in started.stdout:
            said.append(line)
            if "keeps running" in line:
                break
        children = subprocess.run(["pgrep", "-P", str(started.pid)], capture_output=True, text=True).stdout.split()
        assert len(children) >= 5, "".join(said)
        started.send_signal(signal.SIGINT)
        started.wait(PATIENCE_S)
    finally:
        if started.poll() is None:
            os.killpg(started.pid, signal.SIGKILL)
        started.stdout.close()
    until(lambda: not [child for child in children if os.path.exists(f"/proc/{child}")])


@pytest.mark.long
def test_a_port_that_does_not_open_is_refused_in_plain_words():
    words = ["up", "hardware", "tensebot", "--port", "/dev/none", "--board", "/dev/none", "--no-view"]
    command = [sys.executable, "-m", "tensegrity_tools.cli", *words]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL)
    assert ended.returncode == 1
    assert "/dev/none" in " ".join((ended.stdout + ended.stderr).split())
    assert "Traceback" not in ended.stderr
