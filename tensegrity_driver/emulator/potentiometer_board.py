"""Emulated potentiometer board: ten-turn potentiometers on the spools, 12-bit converters, and its messages.

A potentiometer reads `offset + gain · angle`, rounded and limited to 0 to 4095 counts.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

from ..bus.potentiometer_protocol import (
    POSITIONS,
    RADIANS_PER_COUNT,
    STATE,
    VELOCITY_ZERO,
    BoardAnswer,
    BoardState,
    RequestReader,
    encode_answer,
)

FULL_SCALE = 4095
"""Counts of a 12-bit converter at full scale."""


class Potentiometer:
    """One potentiometer on a spool.

    Args:
        offset: counts at angle zero. direction: +1 if the counts increase in the positive direction of the servo, else
            -1.

    Attributes:
        broken: counts in the case of a broken wire, or None. frozen: whether the reading does not change.
        slip: fraction of the motion that the potentiometer does not follow, 0 to 1. noise: standard deviation [counts].
    """

    def __init__(self, offset: float, direction: int = 1) -> None:
        self.offset, self.direction = offset, direction
        self.broken: int | None = None
        self.frozen = False
        self.slip = 0.0
        self.noise = 0.0
        self._angle = 0.0
        self._wiper = offset

    def move(self, angle: float) -> None:
        """Follow the spool to an angle [rad]."""
        moved = self.direction * (angle - self._angle) / RADIANS_PER_COUNT
        self._angle = angle
        if not self.frozen:
            self._wiper += (1.0 - self.slip) * moved

    def counts(self, chance: random.Random) -> int:
        """Reading of the converter [counts]; `chance` yields its noise."""
        if self.broken is not None:
            return self.broken
        noise = chance.gauss(0.0, self.noise) if self.noise > 0.0 else 0.0
        return min(max(round(self._wiper + noise), 0), FULL_SCALE)

    def mend(self) -> None:
        """Remove all faults and restore the offset of the start."""
        self.broken, self.frozen, self.slip, self.noise = None, False, 0.0, 0.0
        self._wiper = self.offset + self.direction * self._angle / RADIANS_PER_COUNT


class PotentiometerBoard:
    """Board with its potentiometers.

    Args:
        potentiometers: potentiometers by channel. seed: seed of their noise.

    Attributes:
        silent: whether the board does not answer. desired: desired positions by channel [counts].
    """

    def __init__(self, potentiometers: Mapping[int, Potentiometer], seed: int = 0) -> None:
        self.potentiometers = dict(potentiometers)
        self.channels = max(self.potentiometers, default=-1) + 1
        self.silent = False
        self._chance = random.Random(seed)
        self._reader = RequestReader(self.channels)
        self._positions = [0] * self.channels
        self._velocities = [VELOCITY_ZERO] * self.channels
        self.convert({})
        self.desired = list(self._positions)  # the board starts with its present positions as goals (001, section 7.3)

    def convert(self, speeds: Mapping[int, float]) -> None:
        """Read all converters.

        Args:
            speeds: speeds of the spools by channel [rad/s]; other spools are at rest.
        """
        for channel, each in self.potentiometers.items():
            self._positions[channel] = each.counts(self._chance)
            rate = each.direction * speeds.get(channel, 0.0) / RADIANS_PER_COUNT
            self._velocities[channel] = min(max(round(VELOCITY_ZERO + rate), 0), 65535)

    def feed(self, data: bytes) -> list[bytes]:
        """Execute bytes from the host; returns the answers."""
        if self.silent:
            return []
        answers = []
        for request in self._reader.feed(data):
            if request.flag == STATE:
                state = BoardState(tuple(self._positions), tuple(self.desired), tuple(self._velocities))
                answers.append(encode_answer(BoardAnswer(STATE, request.sequence, state)))
            else:
                self.desired = list(request.positions)
                answers.append(encode_answer(BoardAnswer(POSITIONS, request.sequence)))
        return answers

    def run(self, seconds: float) -> None:
        """Advance the time of the board by `seconds`; a board that only measures needs no action."""

    def end_of_burst(self) -> None:
        """Discard an incomplete message after a pause."""
        self._reader.end_of_burst()
