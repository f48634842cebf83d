"""Runs the commands of set_up.py: their output goes to a log, the terminal shows that something moves."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

LOGS = Path(__file__).resolve().parent.parent / "log" / "set_up"
QUIET = 20.0  # s between signs of life where the output is no terminal


class SetUpError(Exception):
    """A step failed; the message is for the person at the terminal."""


def say(text: str) -> None:
    """One line, over whatever progress line stands there."""
    print(("\r\x1b[2K" if sys.stdout.isatty() else "") + text, flush=True)


def run(command: Sequence[str], name: str, environment: Mapping[str, str] | None = None) -> None:
    """Run a command to its end; raises SetUpError with the end of its output."""
    LOGS.mkdir(parents=True, exist_ok=True)
    log = LOGS / f"{name}.log"
    began = time.monotonic()
    last_sign = began
    with open(log, "w", encoding="utf-8") as record:
        try:
            process = subprocess.Popen(
                command, cwd=LOGS.parent.parent, env=environment, text=True, errors="replace",
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )  # fmt: skip
        except OSError as error:
            raise SetUpError(f"{command[0]} does not start: {error}") from None
        assert process.stdout is not None
        try:
            for line in process.stdout:
                record.write(line)
                if not line.strip() or line.startswith("WARNING"):
                    continue
                now = time.monotonic()
                if sys.stdout.isatty():
                    _show(line, now - began)
                elif now - last_sign > QUIET:
                    last_sign = now
                    print(f"      {now - began:4.0f} s  {line.strip()[:100]}", flush=True)
            code = process.wait()
        except KeyboardInterrupt:
            process.terminate()
            process.wait()
            raise
    if sys.stdout.isatty():
        print("\r\x1b[2K", end="", flush=True)
    if code != 0:
        end = "\n".join(f"  {line}" for line in log.read_text(encoding="utf-8").splitlines()[-25:])
        raise SetUpError(
            f"this command failed ({code}):\n  {' '.join(command)}\n{end}\n"
            f"The whole output is in {os.path.relpath(log)}; run make setup again, it goes on from here."
        )


def _show(line: str, seconds: float) -> None:
    """The last line of output and the time so far, in place."""
    text = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", line).strip()
    width = shutil.get_terminal_size().columns - 1
    print("\r\x1b[2K" + f"      {seconds:4.0f} s  {text}"[:width], end="", flush=True)
