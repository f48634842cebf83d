"""Lets every program of this environment find the compiled ROS interfaces, without sourcing anything.

Python imports this module at start-up (through a .pth file that set_up.py writes). The dynamic linker reads
LD_LIBRARY_PATH only when a process starts, so where the libraries are missing from it Python is started once more.
"""

import os
import sys

PREFIXES: list = []  # filled in by set_up.py: where the ament index is, first match wins
BOOTSTRAP_MARK = "_ROS_WHEELS_BOOTSTRAP_COMPLETE"


def _prepend(variable, entries):
    """Put the entries that are missing before the others; return whether any was missing."""
    present = [entry for entry in os.environ.get(variable, "").split(os.pathsep) if entry]
    missing = [entry for entry in entries if entry not in present]
    if missing:
        os.environ[variable] = os.pathsep.join(missing + present)
    return bool(missing)


def _start():
    _prepend("AMENT_PREFIX_PATH", PREFIXES)
    if _prepend("LD_LIBRARY_PATH", [os.path.join(prefix, "lib") for prefix in PREFIXES]):
        # Carries the libraries hidden in wheels too, where ROS comes from wheels: their own start-up hook runs again.
        os.environ.pop(BOOTSTRAP_MARK, None)
        os.execve(sys.executable, sys.orig_argv, os.environ)


if PREFIXES:
    _start()
