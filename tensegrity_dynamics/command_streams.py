"""Which streams of commands count: one sender at a time, and none that began before a release or that broke off.

A stream is what one sender sends under one session: a random number that it draws when it starts, and anew with every
goal or `hold` that it takes. Three laws, in the times of the caller's clock:

    one sender      A stream of another name, or a session that another has replaced and that is heard again, shows a
                    second sender. Then none counts until only one has been heard for `freshness`. The same while there
                    are two publishers (`publishers`), whether they speak or not.
    after a release What was heard before `end`, or is stamped before it, never counts again.
    after a gap     A session that was silent for longer than `freshness` never counts again: it says what somebody
                    desired before it stood still, or before its listener did.

A sender whose goal takes time to plan announces the session that it will use then (`announce`: a command without names
under a new session), so that a goal that was asked for before a release does not count after it.

A sender without sessions (session 0) cannot say that it wants something new. After a release its stream counts again
once it has been silent for longer than `freshness`, and a gap says nothing about it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import islice
from typing import Any

Stream = tuple[str, int]
"""Name of a sender, and its session."""
FRESHNESS = 0.5
"""s without a command after which whoever moves a robot holds it where it is, unless it is told another time."""
MAX_STREAMS = 4096
"""Streams that are remembered; of more the ones that have been silent longest are forgotten."""
REMEDY = "send a goal or call `hold`"


class CommandStreams:
    """Memory of who commands.

    Args:
        freshness: s after which a stream counts as silent.

    Attributes:
        publishers: of the command topic as the graph knows them at present, by any name; empty where nobody looks.
    """

    def __init__(self, freshness: float) -> None:
        self.freshness = freshness
        self.publishers: tuple[str, ...] = ()
        self.forget()

    def forget(self) -> None:
        """Forget all streams, as after a reset of the simulated robot."""
        self.heard: dict[Stream, float] = {}
        self._announced: dict[Stream, None] = {}
        self.over: dict[Stream, str] = {}
        self._latest: Stream | None = None
        self._rivals: tuple[Stream, ...] = ()
        self._ended: float | None = None

    def end(self, now: float | None = None) -> None:
        """All streams so far are over, as after a release at a time [s]; without it their stamps are not looked at."""
        for stream in (*self.heard, *self._announced):
            self._put_over(stream, f"the commands of {stream[0]!r} began before the release")
        self._latest, self._rivals = None, ()
        self._ended = now if now is not None and math.isfinite(now) else None

    def announce(self, source: str, session: int, now: float) -> bool:
        """A command without names has come: whether it only announces a session, because its sender still speaks."""
        stream, latest = (source, session), self._latest
        is_seen = stream in self.heard or stream in self._announced
        if not session or is_seen or latest is None or latest[0] != source or latest == stream:
            return False
        if not self._speaks(latest, now):
            return False
        self._announced[stream] = None
        _bound(self._announced)
        return True

    def hear(self, source: str, session: int, now: float) -> None:
        """A command has come, whatever becomes of it; twice in one instant counts once."""
        if not math.isfinite(now):
            return
        if self._ended is not None and now < self._ended:
            self._ended = now  # the clock has gone back since the release
        stream, latest = (source, session), self._latest
        last = self.heard.pop(stream, None)
        self.heard[stream] = now
        self._announced.pop(stream, None)
        _bound(self.heard)
        if last is not None and not 0.0 <= now - last <= self.freshness:
            if session:
                self._put_over(stream, f"the commands of {source!r} broke off for {abs(now - last):.2f} s")
            else:
                self.over.pop(stream, None)
        if self._rivals:
            return
        if latest is not None and latest != stream and self._speaks(latest, now):
            if source != latest[0] or last is not None:
                self._rivals = (stream, latest)
                return
        self._latest = stream

    def contest(self, now: float) -> str | None:
        """Why nobody's commands count, because more than one commands, and what to do about it; or None."""
        found = self.contenders(now)
        return None if found is None else f"{found[0]}; stop {found[1]}: the robot holds."

    def contenders(self, now: float) -> tuple[str, str] | None:
        """Which commands contradict each other, and which of them to stop, in words; None where one alone commands."""
        if self._rivals:
            newest = islice(reversed(self.heard), 2)  # in the order in which they were last heard
            speaking = [stream for stream in newest if self._speaks(stream, now)]
            if len(speaking) > 1:
                (second, _), (first, _) = self._rivals
                alike = ", two senders of one name" if first == second else ""
                return f"{second!r} commands while {first!r} does{alike}", "one of the two"
            self._rivals, self._latest = (), speaking[0] if speaking else None
        if len(self.publishers) > 1:
            who = ", ".join(self.publishers)
            return f"{len(self.publishers)} nodes publish commands ({who})", "all but one"
        return None

    def ended(self, source: str, session: int, stamp: float) -> str | None:
        """Why a stream with a command of this stamp [s] does not count any more, or None."""
        stream = (source, session)
        if self._ended is not None and stamp < self._ended and stream not in self.over:
            self._put_over(stream, f"the commands of {source!r} began before the release")
        why = self.over.get(stream)
        return None if why is None else f"{why}; {REMEDY}."

    # -- parts -----------------------------------------------------------------------------------------------------

    def _put_over(self, stream: Stream, why: str) -> None:
        self.over.setdefault(stream, why)
        _bound(self.over)

    def _speaks(self, stream: Stream, now: float) -> bool:
        last = self.heard.get(stream)
        return last is not None and 0.0 <= now - last <= self.freshness


def _bound(memory: dict[Stream, Any]) -> None:
    if len(memory) > MAX_STREAMS:
        del memory[next(iter(memory))]


def publisher_names(endpoints: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Names of publishers for people, from (namespace, node name) of each."""
    return tuple(f"{space.rstrip('/')}/{name}" for space, name in endpoints)
