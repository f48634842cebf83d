"""Questions at the terminal, with a line above them that stays up to date while the person thinks."""

from __future__ import annotations

import select
import sys
from collections.abc import Callable

from tensegrity_dynamics.errors import TensegrityError

from ...output import console

PAUSE = 0.05
"""s between two updates of the live line."""


def ask(question: str, live: Callable[[], str] | None = None) -> str:
    """What the person types, without the blanks around it.

    Args:
        question: ends without a blank. live: makes the line above the question; called again and again on a terminal.

    Raises:
        TensegrityError: the input has ended.
    """
    drawn = live is not None and sys.stdin.isatty() and console.is_terminal
    if live is not None:
        console.print(live(), highlight=False, markup=False, no_wrap=True, crop=True)
    sys.stdout.write(question + " ")
    sys.stdout.flush()
    while drawn and live is not None and not select.select([sys.stdin], [], [], PAUSE)[0]:
        text = live()[: max(20, console.width - 1)]
        sys.stdout.write(f"\0337\033[1A\r\033[2K{text}\0338")  # keep the cursor, one line up, back again
        sys.stdout.flush()
    line = sys.stdin.readline()
    if not line:
        raise TensegrityError("\nthe input has ended; what was not saved is forgotten.")
    return line.strip()


def agreed(question: str) -> bool:
    """Whether the person says yes; anything but yes and no is asked again. Raises TensegrityError."""
    while True:
        answer = ask(f"{question} [y/n]").lower()
        if answer in ("y", "yes", "n", "no"):
            return answer.startswith("y")


def interactive() -> bool:
    """Whether somebody can be asked."""
    return sys.stdin.isatty()
