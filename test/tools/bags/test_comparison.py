"""Errors between two bags are those that were put there, whatever the order, the sign of quaternions and the start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bag_examples import sample, sample_message, write_samples

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_tools.bags.comparison import compare_bags, plot_comparison
from tensegrity_tools.bags.decoding import first_difference, largest_difference
from tensegrity_tools.bags.reader import Bag

STEP = 20_000_000


def compared(tmp_path: Path, first: list[Any], second: list[Any]) -> Any:
    for name, messages in (("first", first), ("second", second)):
        write_samples(tmp_path / name, messages)
    with Bag(tmp_path / "first") as one, Bag(tmp_path / "second") as two:
        found = compare_bags(one, two)
    return {(each.topic, each.field): each for each in found.errors}, found


def run(offset: float = 0.0, start: int = 0, sign: float = 1.0, steps: int = 50) -> list[Any]:
    """A linear motion, so that interpolation between its points is exact."""
    quaternion = [sign * each for each in (0.0, 0.6, 0.0, 0.8)]
    return [
        ("/a", k, sample(start + k * STEP, [0.1 * k, 1.0 + (offset if k == 30 else 0.0)], quaternion=quaternion))
        for k in range(steps)
    ]


def test_a_bag_equals_itself(tmp_path: Path) -> None:
    errors, found = compared(tmp_path, run(), run())
    assert set(errors) == {("/a", "value"), ("/a", "orientation")}
    assert all(each.largest == 0.0 and each.missing == 0 for each in errors.values())
    assert not found.interpolated


def test_an_error_is_found_with_its_size_and_time(tmp_path: Path) -> None:
    errors, _ = compared(tmp_path, run(), run(offset=0.25))
    error = errors["/a", "value"]
    assert error.largest == pytest.approx(0.25)
    assert error.mean_square == pytest.approx(0.25 / np.sqrt(50))
    assert error.when == pytest.approx(30 * 0.02)


def test_a_quaternion_and_its_negative_are_the_same_orientation(tmp_path: Path) -> None:
    errors, _ = compared(tmp_path, run(), run(sign=-1.0))
    assert errors["/a", "orientation"].largest == 0.0


def test_the_error_of_an_orientation_is_its_angle(tmp_path: Path) -> None:
    angle = 0.3
    turned = (0.0, 0.0, float(np.sin(angle / 2)), float(np.cos(angle / 2)))
    errors, _ = compared(tmp_path, [("/a", 0, sample(0))], [("/a", 0, sample(0, quaternion=turned))])
    assert errors["/a", "orientation"].largest == pytest.approx(angle, abs=1e-12)


def test_runs_whose_stamps_have_nothing_in_common_begin_together(tmp_path: Path) -> None:
    errors, found = compared(tmp_path, run(), run(start=123_456_789_000_000_003))
    assert found.interpolated
    assert errors["/a", "value"].largest < 1e-6


def test_missing_messages_are_counted_and_topics_of_one_bag_named(tmp_path: Path) -> None:
    second = [each for k, each in enumerate(run()) if k % 5] + [("/b", 1, sample(1))]
    errors, found = compared(tmp_path, run(), second)
    assert errors["/a", "value"].missing == 10
    assert found.only_second == ["/b"]
    assert found.only_first == []


def test_sensors_that_share_a_topic_are_compared_each_with_itself(tmp_path: Path) -> None:
    first = [("/imu", k, sample(k * STEP, [each + k], frame=f"rod_{each}")) for k in range(50) for each in (1, 3, 5)]
    lost = [each for j, each in enumerate(first) if j != 89]  # of the last sensor at one stamp
    errors, found = compared(tmp_path, first, lost)
    assert {topic: each.missing for (topic, field), each in errors.items() if field == "value"} == {
        "/imu (rod_1)": 0, "/imu (rod_3)": 0, "/imu (rod_5)": 1,
    }  # fmt: skip
    assert all(each.largest == 0.0 for each in errors.values())
    assert not found.only_first


def test_bags_without_a_common_topic_are_not_compared(tmp_path: Path) -> None:
    with pytest.raises(TensegrityError, match="no topic in common"):
        compared(tmp_path, [("/a", 0, sample(0))], [("/b", 0, sample(0))])


def test_a_picture_of_the_differences_is_drawn(tmp_path: Path) -> None:
    _, found = compared(tmp_path, run(), run(offset=1.0))
    plot_comparison(found, tmp_path / "picture.png", ("first", "second"))
    assert (tmp_path / "picture.png").stat().st_size > 5000


@pytest.mark.parametrize(
    ("first", "second", "path"),
    [
        ((1, [1.0, np.nan]), (1, [1.0, np.nan]), None),
        ((1, [0.0]), (1, [-0.0]), "value[0]"),
        ((1, [1.0, 2.0]), (1, [1.0, 2.0 + 2**-51]), "value[1]"),
        ((1, [1.0]), (1, [1.0, 2.0]), "value"),
        ((1, [1.0]), (2, [1.0]), "header.stamp.nanosec"),
        ((1, [], "a"), (1, [], "b"), "word"),
    ],
)
def test_the_first_difference_is_named_to_the_last_bit(first: Any, second: Any, path: str | None) -> None:
    found = first_difference(sample_message(*first), sample_message(*second))
    assert (None if found is None else found[0]) == path


def test_the_size_of_a_difference_is_that_of_numbers_alone() -> None:
    assert largest_difference(sample_message(1, [1.0, np.nan]), sample_message(1, [1.5, np.nan])) == 0.5
    assert largest_difference(sample_message(1, [1.0]), sample_message(1, [1.0], "word")) == np.inf
