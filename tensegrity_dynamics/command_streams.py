"""Validity of command streams: one sender at a time, no stream from before a release, and no interrupted stream.

A stream consists of the commands of one sender in one session. A session is a random number that the sender draws at
its start, and again for every goal or `hold` that it accepts. There are three rules, in the times of the clock of the
caller:

    one sender      A stream with another name, or commands of a session that was already replaced, indicate a second
                    sender. Then no stream is valid until only one was received for `freshness`. The same holds while
                    there are two publishers (`publishers`), whether they send or not. Publishers of one name count as
                    one if the present stream was first received after the others had fallen silent: those were
                    killed, and the graph keeps them until their lease ends.
    after a release Streams received before `end`, or stamped before it, are never valid again.
    after a gap     A session that was silent for longer than `freshness` is never valid again: its commands were
                    requested before the sender or the receiver was blocked.

A sender whose goal needs planning time announces the session of this goal (`announce`: a command without names in a new
session), so that a goal requested before a release is not valid after it.

A sender without sessions (session 0) cannot indicate a new request. After a release its stream is valid again after it
was silent for longer than `freshness`, and a gap has no effect on it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import islice
from typing import Any

SEVERAL = "{} nodes publish {} ({})"
"""Words for several publishers of what one node should publish: their number, what, and their names."""
KILLED = "a killed one counts for 25 s"
"""Words for the lease of Fast DDS, 20 s, during which the graph lists a publisher whose process was killed."""
Stream = tuple[str, int]
"""Name and session of a sender."""
FRESHNESS = 0.5
"""Default time without a command [s], after which a robot is held at its position."""
MAX_STREAMS = 4096
"""Largest number of stored streams; above it the streams with the longest silence are deleted."""
REMEDY = "send a goal or call `hold`"


class CommandStreams:
    """Record of the command streams.

    Args:
        freshness: time after which a stream counts as silent [s].

    Attributes:
        publishers: names of the present publishers of the command topic in the ROS graph; empty if not monitored.
    """

    def __init__(self, freshness: float) -> None:
        self.freshness = freshness
        self.publishers: tuple[str, ...] = ()
        self._number, self._grown = 0, -math.inf  # of publishers, and when it last increased
        self.forget()

    def forget(self) -> None:
        """Delete all streams, for example after a reset of the simulated robot."""
        self.heard: dict[Stream, float] = {}
        self._announced: dict[Stream, None] = {}
        self.over: dict[Stream, str] = {}
        self._latest: Stream | None = None
        self._succeeded = -math.inf  # when a new stream last began in silence, or a rival last fell silent
        self._rivals: tuple[Stream, ...] = ()
        self._ended: float | None = None

    def end(self, now: float | None = None) -> None:
        """End all present streams, for example after a release at a time [s]; without a time, stamps are not
        checked."""
        for stream in (*self.heard, *self._announced):
            self._put_over(stream, f"the commands of {stream[0]!r} began before the release")
        self._latest, self._rivals = None, ()
        self._ended = now if now is not None and math.isfinite(now) else None

    def announce(self, source: str, session: int, now: float) -> bool:
        """Process a command without names; returns whether it only announces a session of a sender that still sends."""
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
        """Record the reception of a command, accepted or not; several at the same time count once."""
        if not math.isfinite(now):
            return
        if self._ended is not None and now < self._ended:
            self._ended = now  # the clock was set back since the release
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
        elif last is None and len(self.heard) > 1:
            self._succeeded = now
        self._latest = stream

    def contest(self, now: float) -> str | None:
        """Reason why no commands are valid because of several senders, with a remedy; or None."""
        found = self.contenders(now)
        return None if found is None else f"{found[0]}; stop {found[1]}: the robot holds."

    def contenders(self, now: float) -> tuple[str, str] | None:
        """Texts on the conflicting senders, and on the one to stop; None with a single sender."""
        if self._rivals:
            newest = islice(reversed(self.heard), 2)  # in the order of their last reception
            speaking = [stream for stream in newest if self._speaks(stream, now)]
            if len(speaking) > 1:
                (second, _), (first, _) = self._rivals
                alike = ", two senders of one name" if first == second else ""
                return f"{second!r} commands while {first!r} does{alike}", "one of the two"
            self._rivals, self._latest, self._succeeded = (), speaking[0] if speaking else None, now
        number, before = len(self.publishers), self._number
        self._number = number
        if number > before or now < self._grown:
            self._grown = now
        # a stream may be heard before the graph shows its publisher
        replaced = len(set(self.publishers)) == 1 and self._succeeded >= self._grown - self.freshness
        if number > 1 and not replaced:
            names = ", ".join(self.publishers)
            return SEVERAL.format(number, "commands", f"{names}; {KILLED}"), "all but one"
        return None

    def ended(self, source: str, session: int, stamp: float) -> str | None:
        """Reason why a stream with a command of this stamp [s] is no longer valid, or None."""
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
    """Names of publishers for messages, from (namespace, node name) of each."""
    return tuple(f"{space.rstrip('/')}/{name}" for space, name in endpoints)
