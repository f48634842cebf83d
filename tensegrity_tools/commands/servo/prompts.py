"""Questions at the terminal, below a line that is updated until the answer is complete."""

from __future__ import annotations

import select
import sys
from collections.abc import Callable

from tensegrity_dynamics.errors import TensegrityError

from ...output import console

UPDATE_PERIOD_S = 0.05
"""Period of the line above a question [s]."""


def ask(question: str, live: Callable[[], str] | None = None) -> str:
    """Ask a question and return the answer of the user, stripped.

    Args:
        question: text without a trailing blank. live: function that returns the text of the line above it; called
            periodically on a terminal.

    Raises:
        TensegrityError: the input has ended.
    """
    drawn = live is not None and sys.stdin.isatty() and console.is_terminal
    if live is not None:
        console.print(live(), highlight=False, markup=False, no_wrap=True, crop=True)
    sys.stdout.write(question + " ")
    sys.stdout.flush()
    while drawn and live is not None and not select.select([sys.stdin], [], [], UPDATE_PERIOD_S)[0]:
        text = live()[: max(20, console.width - 1)]
        sys.stdout.write(f"\0337\033[1A\r\033[2K{text}\0338")  # save the cursor, one line up, restore it
        sys.stdout.flush()
    line = sys.stdin.readline()
    if not line:
        raise TensegrityError("\nthe input has ended; what was not saved is forgotten.")
    return line.strip()


def agreed(question: str) -> bool:
    """Whether the user answers yes; the question is repeated until the answer is yes or no. Raises TensegrityError."""
    while True:
        answer = ask(f"{question} [y/n]").lower()
        if answer in ("y", "yes", "n", "no"):
            return answer.startswith("y")


def interactive() -> bool:
    """Whether a user can answer questions."""
    return sys.stdin.isatty()
