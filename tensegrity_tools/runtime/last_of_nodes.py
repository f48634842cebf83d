"""Process that ends the nodes whose parent has ended in any way: `python -I -S last_of_nodes.py PIPE PATIENCE`.

The kernel sends SIGTERM to a node when its parent ends, but a node that stands still (SIGSTOP) does not receive it.
This process reads the process ids of the nodes from a pipe that closes with the parent. Then it lets them continue, and
ends those that still live after some patience [s]. It needs only the standard library.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time


def main(pipe: int, patience: float) -> None:
    """Read one process id in each line from a pipe until it closes, then end these processes."""
    nodes = []
    with open(pipe) as lines:
        for line in lines:
            with contextlib.suppress(ProcessLookupError):
                nodes.append(os.pidfd_open(int(line)))  # a process id could be that of another process later
    limit = time.monotonic() + patience
    for number, until in ((signal.SIGCONT, limit), (signal.SIGKILL, limit)):
        for node in nodes:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(node, number)
        while nodes and (left := until - time.monotonic()) > 0.0:
            for ended in select.select(nodes, [], [], left)[0]:
                nodes.remove(ended)
                os.close(ended)


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
