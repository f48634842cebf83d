"""Nodes end quietly by SIGINT and SIGTERM: status 0 and no traceback, at any instant of their lives.

A hundred seeds instead of one: `ENDINGS=100 python -m pytest test/system/test_quiet_end.py -k any_instant`.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pytest
from endings import Until
from patience import PATIENCE_S

rclpy = pytest.importorskip("rclpy", reason="ROS 2 is not installed")
pytest.importorskip("tensegrity.msg", reason="the interfaces of this project are not built")

from diagnostic_msgs.msg import DiagnosticArray  # noqa: E402
from rclpy.executors import SingleThreadedExecutor  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from tensegrity.msg import ActuatorCommand, TendonState  # noqa: E402

from tensegrity_tools.runtime.node_graph import MODULES  # noqa: E402
from tensegrity_tools.runtime.processes import NodeProcesses  # noqa: E402

pytestmark = pytest.mark.system

ROUNDS = int(os.environ.get("ENDINGS", "1"))
SPAN = 6.0  # s after its start in which `up` gets its signal
SIGNALS = (signal.SIGINT, signal.SIGTERM)
SOURCES = (
    ("tensegrity_dynamics.ros.simulator_node", "control_period:=0.005"),
    ("tensegrity_driver.ros.driver_node", "port:=emulated"),
)
LISTENERS = (
    ("tensegrity_dynamics.ros.estimator_node",),
    ("tensegrity_control.ros.controller_node",),
    ("tensegrity_dynamics.ros.markers_node",),
    ("tensegrity_tools.ros.view_node", "port:=18180"),
)
UP = ("up", "sim", "tensebot", "--no-view")
NOISE = ("Traceback", "Exception", "Error", "terminate called", "never awaited")
"""What a process says that ends by an error."""


class Program:
    """A Python program whose output is kept."""

    def __init__(self, words: Sequence[str], folder: Path, name: str) -> None:
        self.log = folder / f"{name}.log"
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, *words], stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
            )

    def handles(self, number: int) -> bool:
        """Whether the process has a handler for a signal, or has ended."""
        try:
            lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        except FileNotFoundError:
            return True
        caught = next((line.split()[1] for line in lines if line.startswith("SigCgt")), "0")
        return self.process.poll() is not None or bool(int(caught, 16) >> (number - 1) & 1)

    def wait_until(self, condition: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < end, self.said
            time.sleep(0.002)

    @property
    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def assert_quiet(self, *status: int) -> None:
        assert self.process.wait(PATIENCE_S) in (status or (0,)), self.said
        assert not [word for word in NOISE if word in self.said], self.said


def stop(programs: Iterable[Program]) -> None:
    for each in programs:
        if each.process.poll() is None:
            each.process.kill()
            each.process.wait()


@pytest.fixture
def start(tmp_path):
    """Starts programs, and leaves none behind."""
    started: list[Program] = []

    def run(*words: str) -> Program:
        started.append(Program(words, tmp_path, f"{len(started)}"))
        return started[-1]

    yield run
    stop(started)


@pytest.fixture
def start_node(start):
    def run(module: str, *parameters: str, robot: str = "tensebot") -> Program:
        words = [word for each in (f"robot:={robot}", *parameters) for word in ("-p", each)]
        program = start("-m", module, "--ros-args", *words)
        program.wait_until(lambda: program.handles(signal.SIGTERM))
        return program

    return run


class Flood:
    """Publishes as fast as it can, so that the nodes hardly do anything but take messages, and hears which nodes spin.

    The messages are long, and none of them moves anything: what takes the time is that Python objects are made of them.
    """

    def __init__(self) -> None:
        words, numbers = [f"unknown_{k}" for k in range(500)], [0.0] * 500
        messages = {
            "actuator_command": ActuatorCommand(source="flood", mode=9, name=words, value=numbers),
            "joint_states": JointState(name=words, position=numbers),
            "tendon_states": TendonState(name=words, length=numbers, tension=numbers),
        }
        self.spinning: set[str] = set()
        self.context = rclpy.Context()
        rclpy.init(context=self.context)
        self.node = rclpy.create_node("flood", context=self.context)
        self.executor = SingleThreadedExecutor(context=self.context)
        self.executor.add_node(self.node)
        self.publishers = [(self.node.create_publisher(type(each), name, 1), each) for name, each in messages.items()]
        self.node.create_subscription(DiagnosticArray, "/diagnostics", self._hear, 10)

    def _hear(self, message: DiagnosticArray) -> None:
        self.spinning.update(status.name for status in message.status)

    def until(self, condition: Callable[[], bool]) -> None:
        ended = Until(condition)
        while not ended.asked:
            for publisher, message in self.publishers:
                publisher.publish(message)
            self.executor.spin_once(timeout_sec=0.001)

    def during(self, duration: float) -> None:
        end = time.monotonic() + duration
        self.until(lambda: time.monotonic() > end)

    def close(self) -> None:
        self.executor.shutdown()
        self.node.destroy_node()
        rclpy.shutdown(context=self.context)


@pytest.fixture
def flood():
    made = Flood()
    yield made
    made.close()


@pytest.mark.long
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_nodes_that_take_many_messages_end_quietly_at_any_instant(start_node, flood, seed):
    chance = random.Random(seed)
    nodes = [SOURCES[seed % len(SOURCES)], *LISTENERS]
    chance.shuffle(nodes)
    early = chance.randrange(len(nodes))  # so many get the signal while they start, the others while they spin
    programs = [start_node(*node) for node in nodes]
    limit = time.monotonic() + PATIENCE_S
    for k, ((module, *_), program) in enumerate(zip(nodes, programs, strict=True)):
        name = module.rpartition(".")[2].removesuffix("_node")
        if k >= early:
            flood.until(lambda name=name: name in flood.spinning or time.monotonic() > limit)
        flood.during(chance.uniform(0.0, 1.0))
        for _ in range(chance.choice((1, 1, 2))):  # a second one comes from somebody who is in a hurry
            program.process.send_signal(chance.choice(SIGNALS))
            time.sleep(chance.uniform(0.0, 0.05))
    for program in programs:
        program.assert_quiet()


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_composed_nodes_end_quietly_at_any_instant_and_name_one_that_cannot_start(start, seed):
    chance = random.Random(seed)
    words = ("-m", "tensegrity_tools.ros.composed_node", "simulator", "estimator", "controller", "--ros-args")
    wrong = start(*words, "-p", "robot:=tensebot", "-p", "controller:controller:=nonsense")
    composed = start(*words, "-p", "robot:=tensebot", "-p", "lockstep:=true")
    composed.wait_until(lambda: composed.handles(signal.SIGTERM))
    time.sleep(chance.uniform(0.0, 3.0))
    for _ in range(chance.choice((1, 2))):
        composed.process.send_signal(chance.choice(SIGNALS))
    composed.assert_quiet()
    wrong.assert_quiet(1)
    assert "controller: There is no" in wrong.said and "nonsense" in wrong.said


PROGRAM = """
import os, signal, sys, threading, time
from concurrent.futures import ThreadPoolExecutor
from std_msgs.msg import String
from tensegrity_dynamics.ros import robot_node
from tensegrity_dynamics.ros.paced_node import PacedNode
from tensegrity_dynamics.ros.robot_node import RobotNode, run_node

def hurt(instant):
    if instant == sys.argv[1]:
        print("now", instant, flush=True)
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)

def forever():
    while True:
        time.sleep(0.01)

make = String.__init__

def make_message(message, **words):
    make(message, **words)
    hurt("conversion of a message in rclpy")

class Node(PacedNode if "work" in sys.argv[1] else RobotNode):
    def __init__(self):
        super().__init__("hurt")
        hurt("construction")
        if sys.argv[1] == "a construction without end":
            hurt(sys.argv[1])
            forever()
        self.words, self.publisher = String(data="words"), self.create_publisher(String, "words", 1)
        self.create_subscription(String, "words", lambda _: None, 1)
        self.create_timer(0.01, self.tick, clock=self.wall_clock)
        String.__init__ = make_message  # from here on rclpy alone makes messages, while it takes them

    def tick(self):
        self.publisher.publish(self.words)
        hurt("callback")
        if sys.argv[1] == "a callback without end":
            hurt(sys.argv[1])
            forever()
        if sys.argv[1] == "a callback that swallows the exception":
            hurt(sys.argv[1])
            try:
                forever()
            except KeyboardInterrupt:
                forever()
        if sys.argv[1] == "an error because of the exception":
            hurt(sys.argv[1])
            try:
                forever()
            except KeyboardInterrupt:
                raise RuntimeError("Unable to convert call argument") from None
        if sys.argv[1] == "a thread without end":
            self.threads = ThreadPoolExecutor(1)
            self.threads.submit(forever)
            hurt(sys.argv[1])
        if sys.argv[1] in ("close", "a close without end", "destruction", "after the node"):
            os.kill(os.getpid(), signal.SIGINT)

    def work(self):
        hurt("work")

    def close(self):
        print("closed", flush=True)
        hurt("close")
        if sys.argv[1] == "a close without end":
            robot_node.end_within(1.0, 0)  # instead of CLOSING
            os.kill(os.getpid(), signal.SIGINT)
            print("now", sys.argv[1], flush=True)
            forever()

    def destroy_node(self):
        hurt("destruction")
        super().destroy_node()

leave = robot_node.leave_now

def leave_now(status):
    hurt("after the node")
    leave(status)

robot_node.leave_now = leave_now
run_node(Node)
"""
INSTANTS = (
    "construction", "a construction without end", "conversion of a message in rclpy", "callback",
    "a callback without end", "a callback that swallows the exception", "an error because of the exception",
    "a thread without end", "work", "close", "a close without end",
    "destruction", "after the node",
)  # fmt: skip


@pytest.fixture(scope="module")
def hurt_nodes(tmp_path_factory, request):
    """A node for every instant that is tested; they run at the same time, as most of their time is waiting."""
    folder = tmp_path_factory.mktemp("hurt")
    instants = [each.callspec.params["instant"] for each in request.session.items if "hurt_nodes" in each.fixturenames]
    programs = {instant: Program(("-c", PROGRAM, instant), folder, instant) for instant in instants}
    yield programs
    stop(programs.values())


@pytest.mark.sampled(3)
@pytest.mark.parametrize("instant", INSTANTS)
def test_a_node_ends_quietly_and_closes_what_it_opened(hurt_nodes, instant):
    program = hurt_nodes[instant]
    program.assert_quiet()
    assert f"now {instant}" in program.said
    assert ("closed" in program.said) == (instant != "a construction without end")


PLANNING = """
import os, signal, sys, time
from types import SimpleNamespace
from tensegrity_control.controllers.goal_controller import GoalController
from tensegrity_control.ros.planning_thread import PlanningThread
from tensegrity_dynamics.ros.robot_node import RobotNode, run_node

class Slow(GoalController):
    def __init__(self): pass
    def check_goal(self, *_): pass
    def status(self, now): return SimpleNamespace(phase="holding")
    def rest(self, now): return None
    def plan_goal(self, *_, **__):
        print("planning", flush=True)
        os.kill(os.getpid(), signal.SIGINT)
        while True:
            pass

Slow.__abstractmethods__ = frozenset()

class Node(RobotNode):
    now = 0.0
    def __init__(self):
        super().__init__("planning")
        self.planner = PlanningThread(self, lockstep=False)
        self.timer = self.create_timer(0.01, self.ask, clock=self.wall_clock)
    async def ask(self):
        self.timer.cancel()
        await self.planner.goal(Slow(), None, 0.0, "")
    def close(self):
        self.planner.close()
        print("closed", flush=True)

run_node(Node)
"""


@pytest.mark.long
def test_a_node_that_plans_for_a_long_time_ends_quietly(start):
    program = start("-c", PLANNING)
    program.assert_quiet()
    assert program.said.split() == ["planning", "closed"]


# in short pieces: what hears signals in Python hears none that comes just before a sleep, until that is over
SLOW_IMPORT = "import time\nprint('importing', flush=True)\nwhile True:\n    time.sleep(0.01)\n"
IMPORTS = [
    *(("numpy", ("-m", module), (0, 0)) for module, *_ in (*SOURCES, *LISTENERS)),
    *((name, ("-m", "tensegrity_tools.cli", *UP), (0, 0)) for name in ("typer", "numpy")),
    ("typer", ("-m", "tensegrity_tools.cli", *UP, "--tour"), (130, 143)),
    ("numpy", ("-m", "tensegrity_tools.cli", "check", "stewart"), (130, 143)),
]


@pytest.mark.parametrize(
    ("library", "words", "statuses"), IMPORTS, ids=[f"{each[0]}-{each[1][1]}-{each[2][0]}" for each in IMPORTS]
)
def test_a_program_ends_quietly_while_it_imports(start, tmp_path, monkeypatch, library, words, statuses):
    (tmp_path / f"{library}.py").write_text(SLOW_IMPORT, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    programs = [start(*words) for _ in SIGNALS]
    for program, number, status in zip(programs, SIGNALS, statuses, strict=True):
        program.wait_until(lambda program=program: "importing" in program.said)
        program.process.send_signal(number)
        program.assert_quiet(status)
        assert "cli" not in words[1] or program.said.splitlines()[-1] == f"ended by {number.name}"


BEFORE_LISTENING = """
import sys, time
sys.argv = ["tensegrity", *sys.argv[1:]]
import tensegrity_tools.cli as cli
from tensegrity_tools.commands import running_robot, up

def stand(*_, **__):
    print("standing", flush=True)
    while True:
        time.sleep(0.01)

up._refuse_foreign = running_robot.read_quantity = stand
cli.app()
"""


@pytest.mark.parametrize(("words", "statuses"), [(("up", "sim"), (0, 0)), (("goal", "0", "0", "0"), (130, 143))])
def test_a_command_ends_quietly_between_its_imports_and_what_it_opens(start, words, statuses):
    for number, status in zip(SIGNALS, statuses, strict=True):
        program = start("-c", BEFORE_LISTENING, *words)
        program.wait_until(lambda program=program: "standing" in program.said)
        program.process.send_signal(number)
        program.assert_quiet(status)
        assert program.said.splitlines()[-1] == f"ended by {number.name}"


@pytest.mark.long
def test_a_node_ends_quietly_while_its_kernels_are_compiled(start_node, tmp_path, monkeypatch):
    cache = tmp_path / "kernels"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(cache))
    program = start_node(SOURCES[0][0])
    program.wait_until(lambda: any(cache.rglob("*.nbi")))  # one is compiled, and many are to come
    program.process.send_signal(signal.SIGTERM)
    program.assert_quiet()


@pytest.mark.parametrize("seed", range((ROUNDS + 1) // 2))
def test_up_and_all_its_nodes_end_quietly_at_any_instant(start, seed):
    chance = random.Random(seed)
    number = SIGNALS[seed % len(SIGNALS)]
    program = start("-m", "tensegrity_tools.cli", *UP)
    program.wait_until(lambda: program.handles(signal.SIGTERM))
    time.sleep(chance.uniform(0.0, SPAN))
    program.process.send_signal(number)
    # while it imports, a signal ends it as it ends every program; between that and its first line SIGTERM does, too
    program.assert_quiet(0, 128 + number, *([-number] if number == signal.SIGTERM else []))


EMULATING = """
import os, signal, time
import tensegrity_driver.emulator.__main__ as emulator

def start(options):
    print("starting", flush=True)
    os.kill(os.getpid(), signal.SIGINT)
    while True:
        time.sleep(0.01)

emulator.start = start
emulator.main(["tensebot"])
"""


@pytest.mark.long
def test_an_emulator_that_still_starts_ends_quietly(start):
    program = start("-c", EMULATING)
    program.assert_quiet()
    assert "starting" in program.said


@pytest.mark.long
@pytest.mark.parametrize("module", [*MODULES.values(), "tensegrity_driver.emulator"])
def test_nothing_that_takes_long_is_imported_before_signals_are_listened_to(module):
    words = [sys.executable, "-X", "importtime", "-c", f"import {module}"]
    lines = subprocess.run(words, capture_output=True, text=True, timeout=600.0).stderr.splitlines()
    names = [line.rsplit("|", 1)[1].strip() for line in lines if line.startswith("import time:")]
    before = names[: names.index("tensegrity_dynamics.ending")]
    assert not {"argparse", "tempfile", "numpy", "numba", "yaml", "rclpy", "typer"} & set(before)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_before_the_interpreter_is_up_ends_a_node_quietly_too(number):
    nodes = NodeProcesses()
    try:
        for name in MODULES:
            nodes.start(name, {"robot": "tensebot"})
            os.kill(nodes.running[name].pid, number)
        assert {name: process.wait(PATIENCE_S) for name, process in nodes.running.items()} == dict.fromkeys(MODULES, 0)
        assert not any(nodes.last_words(name) for name in MODULES)
    finally:
        nodes.stop()


@pytest.mark.parametrize(
    ("module", "arguments"), [(MODULES["simulator"], []), ("tensegrity_driver.emulator", ["tensebot"])]
)
def test_an_installed_executable_lets_signals_wait_until_it_hears_them(start, tmp_path, module, arguments):
    text = (Path(__file__).parents[2] / "scripts" / "launcher.in").read_text()
    launcher = tmp_path / "launcher"
    launcher.write_text(text.replace("@Python3_EXECUTABLE@", sys.executable).replace("@MODULE@", module))
    node = start("-c", f"import os; os.execv('/bin/sh', {['sh', str(launcher), *arguments]!r})")
    words = Path(f"/proc/{node.process.pid}/cmdline")  # a shell ends by the signal, and is soon another program
    node.wait_until(lambda: words.read_text().startswith(f"{sys.executable}\0-m\0"))
    node.process.send_signal(signal.SIGINT)
    node.assert_quiet()
