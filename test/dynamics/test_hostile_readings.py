"""Readings that no robot can have: each ends in an estimate or in a refusal by name, never in a warning."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensegrity_dynamics import Simulation, load_robot
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.estimation import make_estimator
from tensegrity_dynamics.estimation_interface import LARGEST_READING

ESTIMATORS = (("tensebot", False), ("single_strut", False), ("single_strut", True))
VALUES = st.floats() | st.sampled_from([1.7e308, -1e300, 1e160, LARGEST_READING, -LARGEST_READING, 5e-324])


@pytest.fixture(scope="module")
def estimators():
    made = []
    for name, observer in ESTIMATORS:
        robot = load_robot(name)
        seen = Simulation(robot).observe()
        made.append((make_estimator(robot, observer=observer), seen.positions, seen.efforts, seen.tensions))
    return made


@settings(max_examples=6, deadline=None)
@given(data=st.data())
def test_any_number_in_any_reading_ends_in_an_estimate_or_in_a_refusal_by_name(estimators, data):
    for estimator, *readings in estimators:
        estimator.reset()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for time in (0.0, 0.005):
                assert estimator.update(time, *readings).converged
            kind = data.draw(st.sampled_from(["position", "effort", "tension"]))
            changed = [dict(each) for each in readings]
            wrong = changed[("position", "effort", "tension").index(kind)]
            name, value = data.draw(st.sampled_from(sorted(wrong) or [""])), data.draw(VALUES)
            if wrong:
                wrong[name] = value
            estimate = estimator.update(0.01, *changed)
            assert np.isfinite(estimate.configuration).all() and np.isfinite(estimate.velocity).all()
            assert estimate.converged == (not estimate.reason)
            if kind == "position" and not abs(value) <= LARGEST_READING:
                assert not estimate.converged and name in estimate.reason
            at = data.draw(VALUES)
            again = estimator.update(at, *readings)
            assert np.isfinite(again.time) and again.converged == (not again.reason)
            if not np.isfinite(at):
                assert "time must be a finite number" in again.reason


@pytest.mark.parametrize("value", [1e300, -1.7e308, 1e10, float("nan"), float("inf")])
def test_a_position_that_no_robot_can_have_is_refused_with_its_name(estimators, value):
    for estimator, positions, *others in estimators:
        estimator.reset()
        good = estimator.update(0.0, positions, *others)
        name = sorted(positions)[0]
        kept = estimator.update(0.005, positions | {name: value}, *others)
        assert not kept.converged and kept.reason.startswith(f"{name} is reported to be at ")
        np.testing.assert_array_equal(kept.configuration, good.configuration)
        untimely = estimator.update(float("nan"), positions, *others)
        assert not untimely.converged and "time must be a finite number" in untimely.reason
        assert estimator.update(0.01, positions, *others).converged
        with pytest.raises(TensegrityError, match=f"^{name} is reported to be at "):
            estimator.solve(positions | {name: value})
