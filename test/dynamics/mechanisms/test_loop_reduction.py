"""Elimination of the loop rows by a plan that is kept from one state to the next."""

from __future__ import annotations

import numpy as np
import pytest

from tensegrity_dynamics import load_robot
from tensegrity_dynamics.mechanisms.dynamics.equations_of_motion import evaluate
from tensegrity_dynamics.mechanisms.kinematics.loop_reduction import (
    independent_basis,
    make_reduction_workspace,
    reduce_rows,
)
from tensegrity_dynamics.mechanisms.workspace import make_workspace


def reduced(flat, work, reduction, reuse=False):
    """Copies of all that a reduction leaves behind."""
    dependent = reduce_rows(work.loop, work.loop_bias, reduction, reuse)
    count = independent_basis(flat.dof_parent.size, reduction)
    names = ("pivot", "is_pivot", "rows", "offset")
    kept = [getattr(reduction, name).copy() for name in names]
    return [dependent, reduction.independent[:count].copy(), reduction.basis[:, :count].copy(), *kept]


@pytest.mark.parametrize("name", ["manipulator", "single_strut", "biglide"])
def test_what_comes_out_depends_on_the_matrix_alone_to_the_last_bit(name):
    robot = load_robot(name)
    flat, rng = robot.mechanism.flat, np.random.default_rng(3)
    work, kept = make_workspace(flat), make_reduction_workspace(flat)
    chosen = set()
    for k in range(60):
        # small steps keep the pivots, large ones do not, and the start has equal entries
        size = (0.0, 1e-3, 0.5)[k % 3]
        q = robot.model.start + size * rng.normal(size=robot.model.start.size)
        evaluate(flat, q, rng.normal(size=flat.dof_parent.size), work)
        for mine, fresh in zip(
            reduced(flat, work, kept), reduced(flat, work, make_reduction_workspace(flat)), strict=True
        ):
            np.testing.assert_array_equal(mine, fresh)
        chosen.add(tuple(kept.pivot))
    assert len(chosen) > 1


def test_kept_pivots_stay_where_others_are_larger():
    robot = load_robot("manipulator")
    flat, rng = robot.mechanism.flat, np.random.default_rng(5)
    work, kept = make_workspace(flat), make_reduction_workspace(flat)
    still = np.zeros(flat.dof_parent.size)
    evaluate(flat, robot.model.start, still, work)
    before = reduced(flat, work, kept)[1]
    moved = False
    for _ in range(10):
        evaluate(flat, robot.model.start + 0.3 * rng.normal(size=robot.model.start.size), still, work)
        moved |= not np.array_equal(reduced(flat, work, make_reduction_workspace(flat))[1], before)
        dependent, index, basis = reduced(flat, work, kept, reuse=True)[:3]
        np.testing.assert_array_equal(index, before)
        assert dependent == 0
        np.testing.assert_allclose(work.loop @ basis, 0.0, atol=1e-10 * np.max(np.abs(basis)))
    assert moved


def test_a_row_of_rounding_errors_holds_no_motion():
    # as of a loop in a plane, which holds nothing across it
    flat = load_robot("single_strut").mechanism.flat
    work, reduction = make_workspace(flat), make_reduction_workspace(flat)
    evaluate(flat, load_robot("single_strut").model.start, np.zeros(flat.dof_parent.size), work)
    full = reduced(flat, work, reduction)
    work.loop[0] *= 1e-15
    without = reduced(flat, work, reduction)
    assert without[0] == full[0] + 1
    assert without[1].size == full[1].size + 1
