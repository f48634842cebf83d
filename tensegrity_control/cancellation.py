"""Cancellation of plans that are computed in a thread: they check at every step whether they were cancelled.

Long computations call `checkpoint` at every point where they can be interrupted; in a thread without cancellation it
does nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

_own = threading.local()


class PlanCancelledError(Exception):
    """The plan was cancelled while it was computed; the message contains the reason.

    It is no TensegrityError, since a search that tries another step after a TensegrityError must not do so after this
    one.
    """


class Cancellation:
    """Request to cancel a plan, from any thread."""

    def __init__(self) -> None:
        self._reason = ""

    def cancel(self, reason: str) -> None:
        """Cancel the plan; the first reason is kept."""
        self._reason = self._reason or reason

    @property
    def reason(self) -> str:
        """Reason of the cancellation, "" if there is none."""
        return self._reason


@contextmanager
def can_be_cancelled(by: Cancellation) -> Iterator[None]:
    """Context in which computations of this thread can be cancelled."""
    before = getattr(_own, "cancellation", None)
    _own.cancellation = by
    try:
        yield
    finally:
        _own.cancellation = before


def checkpoint() -> None:
    """Raise PlanCancelledError if the computation of this thread was cancelled."""
    cancellation = getattr(_own, "cancellation", None)
    if cancellation is not None and cancellation.reason:
        raise PlanCancelledError(f"the plan was given up: {cancellation.reason}")
