"""Trajectories: they pass their waypoints, are as smooth as they say, hold outside, and refuse nonsense."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.interpolate import PPoly, make_interp_spline
from scipy.spatial.transform import Rotation, RotationSpline

from tensegrity_control.trajectories.orientation import OrientationSpline
from tensegrity_control.trajectories.quintic import QuinticSpline, minimum_jerk
from tensegrity_control.trajectories.splines import (
    HermiteSpline,
    PiecewisePolynomial,
    chained,
    uniform_hermite_spline,
    within_limits,
)
from tensegrity_control.trajectories.trajectory_file import load_trajectory, parse_trajectory
from tensegrity_dynamics.errors import RobotFileError, TensegrityError
from tensegrity_dynamics.numerics.rotations import matrix_from_quaternion, rotation_vector

FEW = settings(max_examples=30, deadline=None)
SEEDS = st.integers(0, 2**32 - 1)
TABLE_4_1 = ([0, 2, 4, 6], [[0, 0], [4, 0], [0, 3], [0, 0]], np.zeros((4, 2)))


def random_knots(random, count: int):
    return random.uniform(-3, 3) + np.cumsum(random.uniform(0.1, 2.0, count))


def random_splines(seed: int):
    """One of each kind that is a polynomial."""
    random = np.random.default_rng(seed)
    knots = random_knots(random, random.integers(3, 7))
    values, rates, bends = random.normal(size=(3, knots.size, 2))
    return [
        HermiteSpline(knots, values, rates),
        QuinticSpline(knots, values),
        QuinticSpline(knots, values, rates),
        QuinticSpline(knots, values, rates, bends),
    ], (knots, values, rates, bends)


def random_quaternions(random, count: int):
    """Neighbours less than half a turn apart."""
    while True:
        found = random.normal(size=(count, 4))
        unit = found / np.linalg.norm(found, axis=1)[:, None]
        if np.abs(np.sum(unit[1:] * unit[:-1], axis=1)).min() > 0.01:
            return found


def random_orientation(seed: int, count: int = 4):
    random = np.random.default_rng(seed)
    return OrientationSpline(random_knots(random, count), random_quaternions(random, count))


@FEW
@given(SEEDS)
def test_splines_pass_their_waypoints_with_the_given_derivatives(seed):
    splines, (knots, values, rates, bends) = random_splines(seed)
    for spline in splines:
        np.testing.assert_allclose(spline.value(knots), values, atol=1e-10)
    for spline in (splines[0], splines[2], splines[3]):
        np.testing.assert_allclose(spline.value(knots, 1), rates, atol=1e-9)
    np.testing.assert_allclose(splines[3].value(knots, 2), bends, atol=1e-8)


@FEW
@given(SEEDS)
def test_every_derivative_agrees_with_differences_of_the_one_below(seed):
    splines, (knots, *_) = random_splines(seed)
    times = np.concatenate([a + (b - a) * np.array([0.2, 0.5, 0.8]) for a, b in pairwise(knots)])
    h = 1e-6
    for spline in splines:
        for derivative in range(1, 5):
            differences = (spline.value(times + h, derivative - 1) - spline.value(times - h, derivative - 1)) / (2 * h)
            exact = spline.value(times, derivative)
            np.testing.assert_allclose(differences, exact, atol=1e-6 * (1.0 + np.abs(exact).max()) * 1e2)


@FEW
@given(SEEDS)
def test_splines_are_as_smooth_as_they_say(seed):
    splines, (knots, *_) = random_splines(seed)
    for spline, smooth in zip(splines, (1, 4, 2, 2), strict=True):
        for derivative in range(smooth + 1):
            before = [_one_piece(spline, i, 1.0, derivative) for i in range(knots.size - 2)]
            after = [_one_piece(spline, i + 1, 0.0, derivative) for i in range(knots.size - 2)]
            scale = 1.0 + np.abs(spline.value(knots, derivative)).max()
            np.testing.assert_allclose(np.array(before), np.array(after), atol=1e-7 * scale)


def _one_piece(spline, piece: int, u: float, derivative: int):
    coefficients = spline.polynomial.c[:, piece : piece + 1]
    alone = PiecewisePolynomial(PPoly(coefficients, spline.knots[piece : piece + 2]))
    return alone.value(alone.end if u else alone.start, derivative)


def test_the_documents_example_spline_is_reproduced():
    # 000 table 4.1: between knots with rates of zero, the curve is the cubic 3 u^2 - 2 u^3 from value to value.
    spline = HermiteSpline(*TABLE_4_1)
    u = np.linspace(0.0, 1.0, 11)[:, None]
    np.testing.assert_allclose(spline.value(2.0 + 2.0 * u[:, 0]), [4, 0] + [-4, 3] * (3 * u**2 - 2 * u**3), atol=1e-14)


def test_uniform_knots_are_non_uniform_knots_at_equal_distances():
    values, rates = np.random.default_rng(3).normal(size=(2, 5, 3))
    uniform, times = uniform_hermite_spline(1.0, 0.25, values, rates), np.linspace(0.9, 2.1, 77)
    other = HermiteSpline(1.0 + 0.25 * np.arange(5), values, rates)
    np.testing.assert_array_equal(uniform.value(times), other.value(times))


@FEW
@given(SEEDS)
def test_outside_of_the_range_the_end_is_held(seed):
    for spline in random_splines(seed)[0]:
        for outside, end in (
            (spline.start - 1e-6, spline.start),
            (spline.end + 1e-6, spline.end),
            (np.inf, spline.end),
        ):
            np.testing.assert_array_equal(spline.value(outside), spline.value(end))
            for derivative in (1, 2, 3):
                assert not np.any(spline.value(outside, derivative))
            assert not np.any(spline.sample(outside)[1:])


@FEW
@given(SEEDS)
def test_the_compiled_sample_is_that_of_scipy(seed):
    random = np.random.default_rng(seed)
    for motion in random_splines(seed)[0]:
        out = np.empty((3, 2))
        for t in [*random.uniform(motion.start, motion.end, 5), *motion.knots]:
            assert motion.sample(t, out) is out
            for derivative, row in enumerate(out):
                np.testing.assert_allclose(row, motion.polynomial(t, derivative), rtol=1e-11, atol=1e-10)
        for outside in (motion.start - 0.5, motion.end + 0.5):
            rows = [motion.value(outside, derivative) for derivative in range(3)]
            np.testing.assert_allclose(motion.sample(outside), rows, rtol=1e-11, atol=1e-10)


@FEW
@given(SEEDS)
def test_least_jerk_through_all_points_is_the_quintic_spline_of_scipy(seed):
    random = np.random.default_rng(seed)
    knots, values = random_knots(random, 6), random.normal(size=(6, 2))
    still = [(1, np.zeros(2)), (2, np.zeros(2))]
    other = make_interp_spline(knots, values, k=5, bc_type=(still, still))
    times = np.linspace(knots[0], knots[-1], 40)
    for derivative in range(4):
        expected = other(times, derivative)
        scale = 1.0 + np.abs(expected).max()
        np.testing.assert_allclose(QuinticSpline(knots, values).value(times, derivative), expected, atol=1e-7 * scale)


def test_angular_rates_are_those_of_scipy_for_the_same_turns():
    # scipy's spline through two orientations turns evenly; ours between the same two has the same axis and end
    quaternions = np.array([[1.0, 0.0, 0.0, 0.0], [0.6, 0.48, 0.64, 0.0]])
    ours = OrientationSpline([0.0, 2.0], quaternions, np.zeros((2, 3)), np.zeros((2, 3)))
    even = RotationSpline([0.0, 2.0], Rotation.from_quat(np.roll(quaternions, -1, axis=1)))
    mean = 0.5 * np.sum(ours.value(np.linspace(0.0, 2.0, 2001)[:-1], 1), axis=0) * 1e-3
    np.testing.assert_allclose(mean, even(1.0, 1), atol=1e-6)


def test_many_times_give_rows_and_one_time_gives_one():
    spline, turn = HermiteSpline(*TABLE_4_1), random_orientation(0)
    assert spline.value([1.0, 2.0, 3.0]).shape == (3, 2) and spline.value(1.0).shape == (2,)
    assert turn.value([1.0, 2.0]).shape == (2, 4) and turn.value([1.0, 2.0], 1).shape == (2, 3)
    assert turn.value(1.0, 2).shape == (3,) and spline.value([]).shape == (0, 2)


def test_minimum_jerk_is_the_known_polynomial():
    u = np.linspace(0.0, 1.0, 21)
    found = minimum_jerk(2.0, 5.0, [1.0], [3.0]).value(2.0 + 3.0 * u)[:, 0]
    np.testing.assert_allclose(found, 1.0 + 2.0 * (10 * u**3 - 15 * u**4 + 6 * u**5), atol=1e-13)


@FEW
@given(SEEDS)
def test_no_other_rates_and_accelerations_jerk_less(seed):
    random = np.random.default_rng(seed)
    knots, values = random_knots(random, 5), random.normal(size=(5, 1))
    best = QuinticSpline(knots, values)

    def jerk(spline) -> float:
        total = 0.0
        nodes, weights = np.polynomial.legendre.leggauss(4)
        for a, b in pairwise(knots):
            rows = spline.value(a + (b - a) * (nodes + 1) / 2, 3)
            total += float(weights @ rows[:, 0] ** 2) * (b - a) / 2
        return total

    for _ in range(5):
        rates, bends = best.value(knots, 1), best.value(knots, 2)
        rates[1:-1] += 0.05 * random.normal(size=(3, 1))
        bends[1:-1] += 0.05 * random.normal(size=(3, 1))
        assert jerk(QuinticSpline(knots, values, rates, bends)) >= jerk(best) * (1 - 1e-9)


def test_single_rows_can_be_left_open():
    knots, values = [0.0, 1.0, 3.0], [[0.0], [1.0], [4.0]]
    spline = QuinticSpline(knots, values, rates=[[0.5], None, [0.0]])
    assert spline.value(0.0, 1)[0] == 0.5 and spline.value(3.0, 1)[0] == pytest.approx(0.0, abs=1e-12)
    assert spline.value(1.0, 1)[0] != 0.0


@FEW
@given(SEEDS)
def test_orientations_turn_as_their_angular_velocity_says(seed):
    motion, h = random_orientation(seed), 1e-5
    for t in np.random.default_rng(seed).uniform(motion.start + h, motion.end - h, 4):
        if np.min(np.abs(motion.knots - t)) < 2 * h:
            continue
        later, before = (matrix_from_quaternion(motion.value(t + s * h)) for s in (1, -1))
        velocity, scale = motion.value(t, 1), 1.0 + np.abs(motion.value(t, 2)).max()
        np.testing.assert_allclose(rotation_vector(later @ before.T) / (2 * h), velocity, atol=1e-6 * scale**2)
        difference = (motion.value(t + h, 1) - motion.value(t - h, 1)) / (2 * h)
        np.testing.assert_allclose(difference, motion.value(t, 2), atol=1e-6 * scale**2)


@FEW
@given(SEEDS)
def test_orientations_pass_their_waypoints_with_the_given_rates_and_never_jump(seed):
    random = np.random.default_rng(seed)
    knots, given = random_knots(random, 5), random_quaternions(random, 5)
    velocities, accelerations = random.normal(size=(2, 5, 3))
    motion = OrientationSpline(knots, given, velocities, accelerations)
    found = motion.value(knots)
    np.testing.assert_allclose(np.abs(np.sum(found * given, axis=1)), np.linalg.norm(given, axis=1), rtol=1e-12)
    np.testing.assert_allclose(
        np.linalg.norm(motion.value(np.linspace(knots[0], knots[-1], 50)), axis=1), 1.0, rtol=1e-12
    )
    np.testing.assert_allclose(motion.value(knots, 1), velocities, atol=1e-9)
    np.testing.assert_allclose(motion.value(knots, 2), accelerations, atol=1e-7)
    for derivative in range(3):
        jump = motion.value(knots[1:-1], derivative) - motion.value(knots[1:-1] - 1e-9, derivative)
        assert np.abs(jump).max() < 1e-4 * (1 + motion.largest(2).max() ** 2)


def test_a_turn_between_two_orientations_keeps_its_axis():
    axis = np.array([1.0, 2.0, -2.0]) / 3.0
    last = np.concatenate(([np.cos(0.6)], np.sin(0.6) * axis))
    motion = OrientationSpline([0.0, 2.0], [[1, 0, 0, 0], -last])
    u = np.linspace(0.0, 1.0, 11)
    angle = 1.2 * (10 * u**3 - 15 * u**4 + 6 * u**5)
    expected = np.column_stack((np.cos(angle / 2), np.sin(angle / 2)[:, None] * axis))
    np.testing.assert_allclose(motion.value(2 * u), expected, atol=1e-12)
    np.testing.assert_allclose(np.cross(motion.value(2 * u, 1), axis), 0.0, atol=1e-12)


@FEW
@given(SEEDS, st.floats(0.05, 3.0), st.floats(0.05, 3.0))
def test_a_stretched_motion_keeps_its_limits_and_its_path(seed, velocity, acceleration):
    for motion in [*random_splines(seed)[0][:2], random_orientation(seed)]:
        slow, factor = within_limits(motion, velocity, acceleration)
        assert factor >= 1.0
        times = np.linspace(slow.start, slow.end, 500)
        for derivative, limit in ((1, velocity), (2, acceleration)):
            rows = slow.value(times, derivative)
            sizes = np.linalg.norm(rows, axis=1) if isinstance(motion, OrientationSpline) else np.abs(rows)
            assert sizes.max() <= limit * (1 + 1e-6)
        u = np.linspace(0.0, 1.0, 17)
        same = motion.value(motion.start + u * (motion.end - motion.start))
        np.testing.assert_allclose(slow.value(slow.start + u * (slow.end - slow.start)), same, atol=1e-9)
        if factor > 1.0:
            used = max(slow.largest(1).max() / velocity, slow.largest(2).max() / acceleration)
            assert used == pytest.approx(1.0, rel=1e-4)  # not slower than needed


@FEW
@given(SEEDS)
def test_largest_is_the_largest_of_dense_samples(seed):
    for spline in random_splines(seed)[0]:
        times = np.linspace(spline.start, spline.end, 20001)
        for derivative in (1, 2):
            sampled = np.abs(spline.value(times, derivative)).max(axis=0)
            exact = spline.largest(derivative)
            assert np.all(sampled <= exact * (1 + 1e-9))
            # a cubic's acceleration peaks at a knot, on either side of it
            np.testing.assert_allclose(sampled, exact, rtol=5e-2)


def test_motions_are_chained_where_they_meet_and_refused_where_they_jump():
    first, second = HermiteSpline([0, 1], [0, 1], [0, 2]), QuinticSpline([5, 6], [1, 3], [2, 0])
    whole = chained(first, second)
    assert (whole.start, whole.end) == (0.0, 2.0)
    np.testing.assert_allclose(whole.value([0.5, 1.5], 1), [first.value(0.5, 1), second.value(5.5, 1)], rtol=1e-12)
    with pytest.raises(TensegrityError, match=r"rate jumps .* part 2"):
        chained(first, QuinticSpline([5, 6], [1, 3]))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([0, 2, 1], [0, 1, 2]), "time 2 .* comes before time 1"),
        (([0, 1, 1], [0, 1, 2]), "time 2 .* repeats time 1"),
        (([0, np.nan, 1], [0, 1, 2]), "time 1 is not finite"),
        (([0, 1, 2], [0, np.nan, 2]), "values at time 1 .* finite"),
        (([0, 1, 2], [0, 1]), r"values have shape \(2, 1\)"),
        (([0, 1], [0, 1], [0, 1, 2]), r"rates have shape \(3, 1\)"),
        (([0], [0]), "at least two"),
        ((["a", "b"], [0, 1]), "not numbers"),
    ],
)
@pytest.mark.parametrize("kind", [HermiteSpline, QuinticSpline])
def test_nonsense_is_refused_with_its_place(kind, arguments, words):
    with pytest.raises(TensegrityError, match=words):
        kind(*arguments)


def test_impossible_questions_and_orientations_are_refused():
    spline = HermiteSpline(*TABLE_4_1)
    for call in (lambda: spline.value(np.nan), lambda: spline.sample(np.nan), lambda: spline.value(0.0, -1)):
        with pytest.raises(TensegrityError):
            call()
    with pytest.raises(TensegrityError, match="half a turn"):
        OrientationSpline([0, 1], [[1, 0, 0, 0], [0, 1, 0, 0]])
    with pytest.raises(TensegrityError, match="quaternion 1 is zero"):
        OrientationSpline([0, 1], [[1, 0, 0, 0], [0, 0, 0, 0]])
    with pytest.raises(TensegrityError, match="derivatives 0, 1 and 2"):
        random_orientation(1).value(0.0, 3)
    with pytest.raises(TensegrityError, match="velocity limit"):
        within_limits(spline, velocity=-1.0)


FILE = """\
kind: cubic Hermite
columns: [t, phi, psi, phi_rate, psi_rate]
quantities: {phi: angle, psi: angle}
rows:
- [0, 0, 0, 0, 0]
- [1, 0, 0, 0, 0]
- [3 s, 0, 45 deg, 0, 0]
- [7, 0.785398163, 0, 0, 0]
- [9, 0, 0, 0, 0]
"""


def test_a_trajectory_comes_from_a_file(tmp_path: Path):
    (tmp_path / "way.yaml").write_text(FILE)
    found = load_trajectory(tmp_path / "way.yaml")
    assert found.names == ("phi", "psi") and (found.trajectory.start, found.trajectory.end) == (0.0, 9.0)
    np.testing.assert_allclose(found.trajectory.value(3.0), [0.0, np.pi / 4], rtol=1e-15)


def test_limits_in_a_file_slow_the_motion_down():
    found = parse_trajectory(FILE + "limits: {velocity: [1 rad/s, 5.729577951 deg/s]}\n")
    assert found.stretched > 1.0
    assert found.trajectory.largest(1)[1] == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("- [1, 0, 0, 0, 0]", "- [1, 0, 0, 0]", r"way\.yaml:6: rows\.1: 5 numbers are needed, found 4"),
        (
            "- [1, 0, 0, 0, 0]",
            "- [1, .nan, 0, 0, 0]",
            r"way\.yaml:6: rows\.1\.1: column phi: .*an angle is needed",
        ),
        ("- [1, 0, 0, 0, 0]", "- [0, 0, 0, 0, 0]", r"way\.yaml:6: rows\.1\.0: .*let times increase"),
        ("45 deg", "45 mm", r"way\.yaml:7: rows\.2\.2: column psi.*unit of length"),
        ("cubic Hermite", "cubic Hermit", r"way\.yaml:1: kind: .*Did you mean 'cubic Hermite'"),
        ("psi_rate]", "chi_rate]", r"way\.yaml:2: columns\.4: 'chi_rate' has no coordinate"),
        (", psi_rate]", "]", r"way\.yaml:2: columns: the column 'psi_rate' is missing"),
        ("cubic Hermite", "minimum jerk", r"way\.yaml:2: columns\.3: minimum jerk has no column 'phi_rate'"),
        (FILE, "", r"way\.yaml:1: a trajectory is a YAML mapping, such as {kind.*, found nothing"),
        ("kind:", "limits: {velocity: 1 m/s}\nkind:", r"way\.yaml:1: limits\.velocity: .*a unit of speed"),
        ("kind:", "kin:", r"way\.yaml:1: kin: .*Did you mean 'kind'"),
        (
            "- [1, 0, 0, 0, 0]",
            "- [1.0e-310, 1, 0, 0, 0]",
            r"way\.yaml:6: rows\.1\.0: .*does not come after",
        ),
        ("kind:", "limits: {velocity: 1.0e-20}\nkind:", r"way\.yaml:1: limits: .*cannot be stretched by"),
        ("{phi: angle", "{phj: angle", r"way\.yaml:3: quantities\.phj: .*Did you mean 'phi'"),
    ],
)
def test_errors_of_a_file_name_line_and_field(old, new, words):
    with pytest.raises(RobotFileError, match=words):
        parse_trajectory(FILE.replace(old, new), "way.yaml")


def test_orientations_come_from_a_file():
    text = "kind: orientation\ncolumns: [t, w, x, y, z]\nrows: [[0, 1, 0, 0, 0], [2, 0.6, 0.8, 0, 0]]\n"
    found = parse_trajectory(text + "limits: {velocity: 0.3}\n")
    np.testing.assert_allclose(found.trajectory.value(100.0), [0.6, 0.8, 0.0, 0.0], atol=1e-12)


def test_the_trajectory_file_in_the_documentation_is_slowed_down_to_its_limit():
    document = Path(__file__).parents[3] / "docs" / "control.md"
    text = re.search(r"^```yaml\n(.*?)^```", document.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)[1]
    square = parse_trajectory(text)
    assert square.names == ("x", "y", "z") and square.stretched > 1.0
    assert square.trajectory.largest(1).max() == pytest.approx(0.03)
    np.testing.assert_allclose(square.trajectory.value(square.trajectory.end), [0.0, 0.0, 1.2], atol=1e-12)
