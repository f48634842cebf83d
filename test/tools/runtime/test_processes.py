"""What processes leave behind when they are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from patience import until

from tensegrity_tools.runtime.processes import temporary_folder, usual_domain

KEEP = """
from tensegrity_tools.runtime.processes import temporary_folder
folder = temporary_folder("nodes")
print(folder.name, flush=True)
input()
"""


def test_folders_of_killed_processes_are_removed_by_the_next_one_and_no_others():
    child = subprocess.Popen([sys.executable, "-c", KEEP], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    left = Path(child.stdout.readline().strip())
    foreign = Path(tempfile.mkdtemp(prefix="tensegrity_notes_of_mine_"))
    try:
        with temporary_folder("nodes") as mine:
            assert left.is_dir()  # its owner lives
            child.send_signal(signal.SIGKILL)
            child.communicate()
            assert left.is_dir()
            with temporary_folder("emulated"):
                assert not left.exists()
                assert Path(mine).is_dir() and foreign.is_dir() and str(os.getpid()) in mine
    finally:
        foreign.rmdir()


PARENT = """
import time
from tensegrity_tools.runtime.processes import NodeProcesses
nodes = NodeProcesses()
nodes.run("node", ["-c", "from tensegrity_dynamics.ending import end_at_once; import time; end_at_once(3); "
                         "print('begun', flush=True); time.sleep(600.0)"])
while "begun" not in nodes.last_words("node"):
    time.sleep(0.01)
print(nodes.running["node"].pid, flush=True)
time.sleep(600.0)
"""


def lives(process: int) -> bool:
    """Whether a process runs or stands still; one that has ended may wait for a parent that asks for its status."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("frozen", [False, True])
def test_a_node_ends_when_its_parent_is_killed_also_if_it_stands_still(frozen):
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    node = int(parent.stdout.readline())
    if frozen:
        os.kill(node, signal.SIGSTOP)
    assert lives(node)
    parent.send_signal(signal.SIGKILL)
    parent.communicate()
    until(lambda: not lives(node))


DOMAIN = """
import os, sys
from tensegrity_tools.runtime.processes import usual_domain
print(usual_domain().get("ROS_DOMAIN_ID", "chosen"), flush=True)
sys.stdin.read()
"""


def usual_domain_of_a_namespace() -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("ROS_DOMAIN_ID", raising=False)
        return usual_domain(shared=True)["ROS_DOMAIN_ID"]


def test_one_robot_runs_in_the_domain_of_other_terminals_and_further_ones_in_their_own(tmp_path):
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    chosen = environment.pop("ROS_DOMAIN_ID", "7")

    def begin(more):
        return subprocess.Popen(
            [sys.executable, "-c", DOMAIN], env={**environment, **more}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True,
        )  # fmt: skip

    def domain(process):
        return process.stdout.readline().strip()

    with begin({}) as first:
        assert domain(first) == "0"
        with begin({}) as second, begin({"ROS_DOMAIN_ID": chosen}) as third:
            assert domain(second) not in ("0", "chosen")
            assert domain(third) == "chosen"
            assert usual_domain_of_a_namespace() == "0"
    with begin({}) as after:
        assert domain(after) == "0"
