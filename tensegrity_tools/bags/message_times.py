"""Times of recorded messages: those of the computer's clock when the recording begins, whoever sets it later.

The middleware stamps messages by the computer's clock, and a replay needs their order. If the clock is set meanwhile,
messages received before and after it must not change places.
"""

from __future__ import annotations

from tensegrity_driver.robot_clock import RobotClock

STEP = 1_000_000
"""Change between two looks above which the clock was set, not adjusted [ns]."""
LONGEST_WAY = 10 * 10**9
"""Time after the clock was set during which messages may still come that were sent before [ns]."""


class MessageTimes:
    """Times of messages that are taken in rounds.

    Args:
        clock: clock that nobody sets.
    """

    def __init__(self, clock: RobotClock | None = None) -> None:
        self._clock = clock or RobotClock()
        self._since = self._round = self._clock.now
        self._set_by = self._set_by_before = 0
        self._calm_from = self._round

    def begin_round(self) -> None:
        """Begin to take messages: those of this round were received since the beginning of the last one."""
        self._since, self._round = self._round, self._clock.now

    @property
    def now(self) -> int:
        """Present time [ns]."""
        return self._clock.now

    def of(self, received: int, sent: int) -> int:
        """Time of a message [ns]: when it was sent, or received where that is not known.

        Args:
            received, sent: by the computer's clock [ns]; 0: unknown.
        """
        now, set_by, received = self.now, self._clock.set_by, received or self._clock.system()
        if abs(set_by - self._set_by) > STEP:
            self._set_by_before, self._calm_from = self._set_by, now + LONGEST_WAY
        self._set_by = set_by
        shifts = (set_by,) if now >= self._calm_from else (set_by, self._set_by_before)
        came = next((received - each for each in shifts if self._since <= received - each <= now), now)
        return max((sent - each for each in shifts if sent > 0 and sent - each <= came), default=came)
