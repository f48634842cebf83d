"""Nodes as processes: started together, monitored, and ended together, even if the parent process is killed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tensegrity_dynamics.ending import follow_parent, hold_signals

from . import last_of_nodes
from .node_graph import NodeDescription, NodeGraph, ProcessDescription

ALONE = {
    "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
    # a killed process leaves locks in shared memory, after which no message arrives
    "FASTDDS_BUILTIN_TRANSPORTS": "UDPv4",
}
"""Environment of a robot that is visible only on this computer."""
PATIENCE = 8.0
"""Time that nodes have to end [s]; then they are killed."""


class LastOfNodes:
    """Process that ends the nodes of this process, also those that stand still, however this process ends."""

    def __init__(self) -> None:
        nodes, self._nodes = os.pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", last_of_nodes.__file__, str(nodes), str(PATIENCE)], pass_fds=(nodes,),
            stdin=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        os.close(nodes)

    def add(self, process: int) -> None:
        """Include a node by its process id."""
        with contextlib.suppress(OSError):  # somebody has ended that process
            os.write(self._nodes, f"{process}\n".encode())

    def close(self) -> None:
        """End the nodes that still live, and wait for it."""
        if self._nodes >= 0:
            os.close(self._nodes)
            self._nodes = -1
            self._process.wait()


class NodeProcesses:
    """Set of node processes that end with this process."""

    def __init__(self) -> None:
        self._folder = temporary_folder("nodes")
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self._last = LastOfNodes()

    def start(self, name: str, parameters: Mapping[str, Any]) -> None:
        """Start the node `name` with ROS parameters in a separate process."""
        self.start_process(ProcessDescription(name, (NodeDescription(name, dict(parameters)),)))

    def start_all(self, graph: NodeGraph) -> None:
        """Start the nodes of a graph except those that wait for emulated servos."""
        for process in graph.processes():
            if not graph.waits(process):
                self.start_process(process)

    def start_process(self, process: ProcessDescription) -> None:
        """Start the nodes of one process."""
        self.run(process.name, ["-m", process.module, *process.arguments])

    def run(self, name: str, words: Sequence[str]) -> None:
        """Start Python with these arguments as the process `name`."""
        with self.log_path(name).open("wb") as log:
            self.running[name] = subprocess.Popen(
                [sys.executable, *words], stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                start_new_session=True, preexec_fn=_begin_node,
            )  # fmt: skip
        self._last.add(self.running[name].pid)

    def log_path(self, name: str) -> Path:
        """Path of the log file with the output of a node."""
        return Path(self._folder.name) / f"{name}.log"

    def last_words(self, name: str, lines: int = 6) -> str:
        """Last lines of the output of a node."""
        with contextlib.suppress(OSError):
            return "\n".join(self.log_path(name).read_text(errors="replace").strip().splitlines()[-lines:])
        return ""

    def ended(self) -> dict[str, int]:
        """Exit status of every node that is no longer running."""
        return {name: process.returncode for name, process in self.running.items() if process.poll() is not None}

    def stop(self, patience: float = PATIENCE) -> None:
        """End all nodes: first by a signal to terminate, then by force after `patience` s."""
        for process in self.running.values():
            if process.poll() is None:
                process.terminate()
        limit = time.monotonic() + patience
        for process in self.running.values():
            try:
                process.wait(max(0.05, limit - time.monotonic()))
            except subprocess.TimeoutExpired:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        self._last.close()
        with contextlib.suppress(OSError):
            self._folder.cleanup()


def temporary_folder(purpose: str) -> tempfile.TemporaryDirectory[str]:
    """Temporary folder that this process removes; folders left by killed processes are removed first."""
    for left in Path(tempfile.gettempdir()).glob("tensegrity_*_*_*"):
        owner = re.fullmatch(r"tensegrity_[a-z]+_(\d+)_.*", left.name)
        with contextlib.suppress(OSError):
            if owner and left.is_dir() and left.stat().st_uid == os.getuid() and not _lives(int(owner[1])):
                shutil.rmtree(left, ignore_errors=True)
    return tempfile.TemporaryDirectory(prefix=f"tensegrity_{purpose}_{os.getpid()}_")


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _begin_node() -> None:
    """Preparation in the child process: end with the parent, block signals temporarily."""
    hold_signals()
    follow_parent()


def usual_domain(shared: bool = False) -> dict[str, str]:
    """ROS domain 0 on this computer only (as for other terminals, `ros2` and RViz), unless the user has chosen one.

    If another process holds domain 0 by this function, the result is `own_domain`, unless the domain may be `shared` (a
    robot in a namespace).
    """
    if "ROS_DOMAIN_ID" in os.environ:
        return {}
    if shared:
        return {"ROS_DOMAIN_ID": "0", **ALONE}
    path = Path(tempfile.gettempdir()) / "tensegrity_domain_0.lock"
    try:
        lock = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o666)  # stays open until this process ends
    except OSError:  # the file belongs to another user
        return own_domain()
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # another process has it
        os.close(lock)
        return own_domain()
    return {"ROS_DOMAIN_ID": "0", **ALONE}


def own_domain() -> dict[str, str]:
    """Separate ROS domain for this run, on this computer only, unless the user has chosen one.

    Domains use ports from 7400 + 250 domain on; the first domain with a free discovery port is used.
    """
    if "ROS_DOMAIN_ID" in os.environ:
        return {}
    start = os.getpid() % 70
    for offset in range(70):
        domain = 21 + (start + offset) % 70
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.bind(("127.0.0.1", 7400 + 250 * domain + 10))
            except OSError:
                continue
        return {"ROS_DOMAIN_ID": str(domain), **ALONE}
    return {}
