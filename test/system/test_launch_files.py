"""The real launch system accepts the launch files, where it is installed."""

from __future__ import annotations

import importlib.util
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from patience import PATIENCE_S, until

ROOT = Path(__file__).resolve().parents[2]
LAUNCH_FILES = sorted((ROOT / "launch").glob("*.launch.py"))
NEEDS_LAUNCH = "the launch system comes with a ROS installation, not from the Python package index"

NEEDED = {"hardware.launch.py": ["port:=emulated"]}
"""Arguments without which a launch file starts nothing that moves."""


def name_of(path: Path) -> str:
    return path.name


def description(path: Path) -> Any:
    pytest.importorskip("launch_ros", reason=NEEDS_LAUNCH)
    specification = importlib.util.spec_from_file_location(path.name.replace(".", "_"), path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module.generate_launch_description()


@pytest.mark.parametrize("path", LAUNCH_FILES, ids=name_of)
def test_every_launch_argument_is_described_and_has_a_default(path: Path) -> None:
    arguments = description(path).get_launch_arguments()
    assert {"robot", "bag"} & {argument.name for argument in arguments}
    for argument in arguments:
        assert argument.default_value is not None, argument.name
        assert argument.description != "no description given", argument.name


LAUNCH = """
import sys
from launch import LaunchDescription, LaunchService
from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource
service = LaunchService()
source = PythonLaunchDescriptionSource(sys.argv[1])
arguments = [tuple(text.split(":=")) for text in sys.argv[2:]]
service.include_launch_description(LaunchDescription([IncludeLaunchDescription(source, launch_arguments=arguments)]))
sys.exit(service.run())
"""


@pytest.mark.parametrize(
    ("name", "argument", "words"),
    [
        ("sim", "controller:=nonsense", "There is no controller 'nonsense' for tensebot"),
        ("sim", "robot:=nobody", "There is no robot 'nobody'"),
        ("sim", "control_period:=often", "control_period 'often': a time is needed, such as 2 s"),
        (
            "sim",
            "state:=observer",
            "tensebot is a structure, whose state is estimated from equilibria; choose state rest",
        ),
        ("hardware", "robot:=three_prism", "three_prism has no servos"),
        ("sim", "lockstp:=true", "no launch argument 'lockstp'"),
        ("sim", "namespace:=two words", "the namespace 'two words' is none"),
        ("hardware", "robot:=tensebot", "name the port of the servos"),
        ("hardware", "port:=/dev/ttyNONE", "there is no port /dev/ttyNONE"),
        ("sim", "lockstep:=maybe", "lockstep:=maybe is none of 'true', 'false'"),
        ("sim", "rviz:=maybe", "rviz:=maybe is none of 'true', 'false'"),
        ("sim", "view_port:=high", "view_port:=high is no whole number"),
        ("replay", "rate:=1", "name the bag to replay"),
        ("sim", "rviz:=true", "rviz2 is not installed"),
    ],
)
def test_a_wrong_argument_is_one_sentence_and_starts_nothing(name: str, argument: str, words: str) -> None:
    pytest.importorskip("launch_ros", reason=NEEDS_LAUNCH)
    if "rviz2" in words and shutil.which("rviz2"):
        pytest.skip("rviz2 is installed here")
    path = ROOT / "launch" / f"{name}.launch.py"
    done = subprocess.run(
        [sys.executable, "-c", LAUNCH, str(path), argument], capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert done.returncode == 1
    assert words in done.stdout + done.stderr
    assert (done.stdout + done.stderr).count("[ERROR]") == 1
    assert "process started" not in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.system
@pytest.mark.parametrize("path", [each for each in LAUNCH_FILES if "replay" not in each.name], ids=name_of)
def test_launched_nodes_report_the_shape_of_the_robot_and_end_on_ctrl_c(path: Path) -> None:
    pytest.importorskip("launch_ros", reason=NEEDS_LAUNCH)
    import rclpy
    from rclpy.wait_for_message import wait_for_message
    from tensegrity.msg import StructureState

    arguments = ["view:=false", "lockstep:=true", *NEEDED.get(path.name, [])]
    launch = subprocess.Popen([sys.executable, "-c", LAUNCH, str(path), *arguments])
    try:
        rclpy.init()
        listener = rclpy.create_node("launch_listener")
        received, state = wait_for_message(StructureState, listener, "structure_state", time_to_wait=PATIENCE_S)
        listener.destroy_node()
        rclpy.shutdown()
    finally:
        launch.send_signal(signal.SIGINT)
        code = launch.wait(PATIENCE_S)
    assert received
    assert len(state.node_position) > 0 and len(state.layout) == 16 and not state.node_name
    assert code == 0


ROUNDS = int(os.environ.get("ENDINGS", "2"))
NOISE = ("Traceback", "Exception", "terminate called", "KeyboardInterrupt", "never awaited")


def living(mark: str) -> list[str]:
    """Command lines of processes whose environment holds a mark."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "environ").read_bytes():
                words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                found += [words] if words else []  # a zombie has none
        except OSError:
            continue
    return found


@pytest.mark.system
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda each: each.name)
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_launch_that_ends_at_any_instant_leaves_nothing_behind(number: int, seed: int, tmp_path: Path) -> None:
    pytest.importorskip("launch_ros", reason=NEEDS_LAUNCH)
    mark = f"TENSEGRITY_TEST_MARK={os.getpid()}_{number}_{seed}"
    log = tmp_path / "launch.log"
    words = [str(ROOT / "launch" / "hardware.launch.py"), "port:=emulated", "view:=false"]
    with log.open("wb") as output:
        launch = subprocess.Popen(
            [sys.executable, "-c", LAUNCH, *words], stdout=output, stderr=subprocess.STDOUT,
            env={**os.environ, **dict([mark.split("=")])}, start_new_session=True,
        )  # fmt: skip
    try:
        time.sleep(random.Random(f"{number} {seed}").uniform(0.5, 9.0))
        if number == signal.SIGINT:
            os.killpg(launch.pid, number)  # as a terminal sends it
        else:
            launch.send_signal(number)
        launch.wait(PATIENCE_S)
        until(lambda: not living(mark), lambda: living(mark))
    finally:
        if launch.poll() is None:
            os.killpg(launch.pid, signal.SIGKILL)
    said = log.read_text(errors="replace")
    assert not [word for word in NOISE if word in said], said


@pytest.mark.system
def test_a_node_that_stands_still_ends_with_a_launch_that_is_killed(tmp_path: Path) -> None:
    pytest.importorskip("launch_ros", reason=NEEDS_LAUNCH)
    mark = f"TENSEGRITY_TEST_MARK={os.getpid()}_still"
    words = [str(ROOT / "launch" / "sim.launch.py"), "robot:=three_prism", "view:=false"]
    with (tmp_path / "launch.log").open("wb") as output:
        launch = subprocess.Popen(
            [sys.executable, "-c", LAUNCH, *words], stdout=output, stderr=subprocess.STDOUT,
            env={**os.environ, **dict([mark.split("=")])}, start_new_session=True,
        )  # fmt: skip
    try:
        until(lambda: "ready: " in (tmp_path / "launch.log").read_text(errors="replace"))
        still = [int(each.parent.name) for each in Path("/proc").glob("[0-9]*/cmdline") if is_node(each, mark)]
        assert len(still) >= 3
        for each in still:
            os.kill(each, signal.SIGSTOP)
        launch.kill()
        until(lambda: not living(mark), lambda: living(mark))
    finally:
        if launch.poll() is None:
            os.killpg(launch.pid, signal.SIGKILL)


def is_node(words: Path, mark: str) -> bool:
    """Whether a process is a node of a launch with a mark."""
    try:
        return b"--ros-args" in words.read_bytes() and mark.encode() in (words.parent / "environ").read_bytes()
    except OSError:
        return False
