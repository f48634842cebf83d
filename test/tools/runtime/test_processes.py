"""What processes leave behind when they are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from tensegrity_tools.runtime.processes import temporary_folder

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
