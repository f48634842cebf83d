"""Run of a replay: its nodes as processes, until the player ends."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from tensegrity_dynamics.errors import TensegrityError

from .node_graph import NodeGraph
from .processes import NodeProcesses


def run_replay(nodes: NodeProcesses, graph: NodeGraph, check: Callable[[], None], say: Callable[[str], None]) -> int:
    """Start the nodes of a `replay_graph` and wait.

    Args:
        check: function that is called repeatedly; an exception from it ends the wait.
        say: function that receives lines of text for the user.

    Returns:
        Exit status of the player: 0 if everything was equal, or the bag was played to its end.

    Raises:
        TensegrityError: a required node ended.
    """
    nodes.start_all(graph)
    missed: set[str] = set()
    shown = "view" not in graph
    while True:
        check()
        time.sleep(0.05)
        if not shown and (address := re.search(r"https?://\S+", nodes.last_words("view", 50))):
            shown = True
            say(f"watch it in a browser: {address[0]}")
        for name, status in nodes.ended().items():
            words = nodes.last_words(name, 20)
            if name == "player":
                if said := "\n".join(line for line in words.splitlines() if "ready: " not in line):
                    say(said)
                return status
            if not graph[name].may_end:
                raise TensegrityError(f"the {name} ended with status {status}; its last words:\n{words}")
            if name not in missed:
                missed.add(name)
                say(f"the {name} ended with status {status}; the replay continues without it. {words}".strip())
