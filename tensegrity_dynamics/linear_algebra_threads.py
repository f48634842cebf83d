"""Threads of the linear algebra of numpy and scipy.

This module is imported before numpy and needs only the standard library.
"""

from __future__ import annotations

import os

VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
"""Environment variables of their libraries, which are read once, at the first import of numpy."""


def one_thread_each() -> None:
    """Let linear algebra in this process use one thread, unless the user has set a number.

    A robot is several processes on few cores, and its matrices are small. The threads of several processes that wait
    for each other in loops take the cores from each other: gains of a tower of struts took 8 times as long beside a
    second process that designs gains (27 s instead of 3.4 s on two cores), and not less time alone.
    """
    for name in VARIABLES:
        os.environ.setdefault(name, "1")
