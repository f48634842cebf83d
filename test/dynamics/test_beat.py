"""A beat keeps its mean rate whatever single times are late, and leaves most of a busy processor to others."""

from __future__ import annotations

import numpy as np
import pytest

from tensegrity_dynamics.beat import SHARE, Beat


def times(rate: float, durations: np.ndarray, lateness: np.ndarray) -> np.ndarray:
    """When work of these durations [s] begins, where the one who works wakes up late by so much [s]."""
    beat, now, begun = Beat(rate), 0.0, []
    for duration, late in zip(durations, lateness, strict=True):
        begun.append(now)
        due = beat.next(now, now + duration)
        now = max(due, now + duration) + late
    return np.array(begun)


@pytest.mark.parametrize("rate", [5.0, 30.0, 60.0])
def test_the_mean_rate_is_the_one_asked_for_however_late_each_turn_wakes(rate: float) -> None:
    rng, count = np.random.default_rng(1), 2000
    begun = times(rate, rng.uniform(0.0, 0.5 * SHARE / rate, count), rng.uniform(0.0, 0.9 / rate, count))
    assert (count - 2) / (begun[-1] - begun[1]) == pytest.approx(rate, rel=2e-3)


def test_work_that_takes_long_is_done_less_often_and_takes_no_more_than_its_share() -> None:
    for duration in (0.009, 0.02, 0.3):
        begun = times(30.0, np.full(200, duration), np.zeros(200))
        assert 199 * duration / (begun[-1] - begun[0]) == pytest.approx(SHARE, rel=0.02)


def test_after_a_stall_what_was_missed_is_not_made_up_for() -> None:
    lateness = np.zeros(100)
    lateness[50] = 2.0
    gaps = np.diff(times(30.0, np.zeros(100), lateness))
    assert np.sum(gaps < 0.9 / 30.0) <= 2  # the first turn, and the one after the stall
