"""Plans that are made in a thread of their own can be called off: they ask at every step whether somebody did.

What computes for long calls `checkpoint` wherever it can be left; in a thread that nobody can call off it does nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

_own = threading.local()


class PlanCancelledError(Exception):
    """The plan was called off while it was made; says by what.

    No TensegrityError, for a search that tries another step after such an error must not do so after this one.
    """


class Cancellation:
    """A request to give up a plan, from any thread."""

    def __init__(self) -> None:
        self._reason = ""

    def cancel(self, reason: str) -> None:
        """Call the plan off; the first reason stays."""
        self._reason = self._reason or reason

    @property
    def reason(self) -> str:
        """Why it was called off, "" where nobody did."""
        return self._reason


@contextmanager
def can_be_cancelled(by: Cancellation) -> Iterator[None]:
    """What this thread computes in this context can be called off."""
    before = getattr(_own, "cancellation", None)
    _own.cancellation = by
    try:
        yield
    finally:
        _own.cancellation = before


def checkpoint() -> None:
    """Raise PlanCancelledError where somebody has called off what this thread computes."""
    cancellation = getattr(_own, "cancellation", None)
    if cancellation is not None and cancellation.reason:
        raise PlanCancelledError(f"the plan was given up: {cancellation.reason}")
