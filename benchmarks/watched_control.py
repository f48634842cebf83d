"""Pictures that reach a page each second, and how far apart commands come, with a page open and without.

    python benchmarks/watched_control.py [--robot manipulator] [--controller NAME] [--seconds 20] [--rounds 2]
        [--everything]

With --everything a recorder and the markers node run, too.
The nodes run by the clock, as with `tensegrity up sim`, while the robot moves to and fro; watched and unwatched take
turns in one run. The page is a client of the view's protocol that draws nothing, so that what is measured is the work
of the nodes. Figures by the clock depend on what else runs: the load is printed with each; `chrt -r 1 python ...` (as
root) keeps other work away. docs/watching.md has figures.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import threading
import time
import urllib.parse
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import numpy as np
import viser
import zstandard
from rclpy.qos import QoSProfile
from tensegrity.msg import ActuatorCommand
from websockets.sync.client import connect

sys.path.insert(0, str(Path(__file__).parent.parent))

from tensegrity_tools.runtime.node_graph import Watching, simulation_graph
from tensegrity_tools.runtime.processes import NodeProcesses
from tensegrity_tools.runtime.robot_client import Watcher

PATIENCE = 300.0
"""s for the nodes to begin."""
CAMERA = {
    "type": "ViewerCameraMessage", "wxyz": [1.0, 0.0, 0.0, 0.0], "position": [1.0, 1.0, 1.0],
    "look_at": [0.0, 0.0, 0.0], "up_direction": [0.0, 0.0, 1.0], "fov": 1.0, "near": 0.1, "far": 100.0,
    "image_height": 400, "image_width": 500,
}  # fmt: skip


def moves_the_robot(packet: bytes) -> bool:
    """Whether a packet of viser moves bodies or nodes: one picture."""
    size = int.from_bytes(packet[8:16], "little")
    return b"batched_positions" in zstandard.ZstdDecompressor().decompress(packet[16 : 16 + size])


@contextmanager
def page(url: str):
    """Times at which pictures came, s, while a page is open."""
    times, over = [], threading.Event()
    address = urllib.parse.urlsplit(url)

    def listen() -> None:
        with connect(
            url.replace("http", "ws", 1), origin=f"http://{address.netloc}",
            subprotocols=[f"viser-v{viser.__version__}"], max_size=2**26,
        ) as socket:  # fmt: skip
            socket.send(msgspec.msgpack.encode(CAMERA))
            while not over.is_set():
                try:
                    packet = socket.recv(timeout=0.2)
                except TimeoutError:
                    continue
                if moves_the_robot(packet):
                    times.append(time.monotonic())

    thread = threading.Thread(target=listen)
    thread.start()
    try:
        yield times
    finally:
        over.set()
        thread.join()


def processor_time(process: int) -> float:
    """s that a process has had."""
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def address_of(nodes: NodeProcesses, watcher: Watcher) -> str:
    """Where the view says that it is."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if found := re.search(r"https?://\S+", nodes.last_words("view", 50)):
            return found[0]
        watcher.spin(0.1)
    raise SystemExit(f"The view did not begin in {PATIENCE:g} s: {nodes.last_words('view', 5)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--robot", default="manipulator")
    parser.add_argument("--controller", default="", help="empty: the usual one of the robot")
    parser.add_argument("--seconds", type=float, default=20.0, help="each time")
    parser.add_argument("--rounds", type=int, default=2, help="of unwatched and watched")
    parser.add_argument("--rise", type=float, default=0.006, help="m to and fro")
    parser.add_argument("--port", type=int, default=8391)
    parser.add_argument("--everything", action="store_true", help="with recorder and markers")
    chosen = parser.parse_args()
    watching = Watching(markers=chosen.everything, view=True, view_port=chosen.port)
    nodes, stamps = NodeProcesses(), []
    with ExitStack() as stack:
        bag = str(Path(stack.enter_context(TemporaryDirectory())) / "bag") if chosen.everything else ""
        graph = simulation_graph(chosen.robot, controller=chosen.controller, watching=watching, bag=bag)
        stack.callback(nodes.stop)
        nodes.start_all(graph)
        watcher = Watcher("watched_control")
        stack.callback(watcher.close)

        def take(_, info) -> None:
            stamps.append(info["source_timestamp"])

        watcher.node.create_subscription(ActuatorCommand, "actuator_command", take, QoSProfile(depth=200), raw=True)
        if not watcher.wait_until(lambda: watcher.time > 0.5, PATIENCE):
            raise SystemExit(f"The robot did not begin in {PATIENCE:g} s.")
        url, view = address_of(nodes, watcher), nodes.running["view"].pid
        position, _ = watcher.pose
        watcher.hear_references()
        up = False
        for _ in range(chosen.rounds):
            for watched in (False, True):
                with page(url) if watched else ExitStack() as times:
                    watcher.spin(2.0)
                    stamps.clear()
                    begun, clock, spent = time.monotonic(), watcher.time, processor_time(view)
                    while (now := time.monotonic()) < begun + chosen.seconds:
                        if watcher.phase_at(watcher.time - 0.1) != "moving":
                            up = not up
                            watcher.send_goal(position + [0.0, 0.0, chosen.rise * up], None)
                        watcher.spin(0.3)
                    took = now - begun
                    gaps = 1e-6 * np.diff(np.sort(stamps))
                    said = (
                        f"{'page open' if watched else 'no page  '}: commands {np.median(gaps):.1f} ms apart, "
                        f"p99 {np.percentile(gaps, 99):.1f}, most {gaps.max():.1f}; "
                        f"view {(processor_time(view) - spent) / took:.2f} of a core; "
                        f"real-time factor {(watcher.time - clock) / took:.2f}; load {os.getloadavg()[0]:.1f}"
                    )
                    if watched:
                        said += f"; {sum(begun <= each < now for each in times) / took:.1f} pictures a second"
                    print(said, flush=True)


if __name__ == "__main__":
    main()
