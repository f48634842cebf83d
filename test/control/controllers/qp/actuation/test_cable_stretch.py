"""Efforts for cables that stretch: against the law of the cable and the linear equations, written down plainly."""

from __future__ import annotations

import numpy as np
import pytest
from qp_loop import robot_named

from tensegrity_control.controllers.qp.actuation.cable_stretch import LEAST_LAG, SOFTENING, SOFTEST, CableStretch
from tensegrity_dynamics.mechanisms.dynamics.tight_cables import TightCables

PERIOD = 0.005


@pytest.mark.parametrize("name", ["manipulator", "single_strut"])
def test_efforts_stretch_the_cables_as_their_law_says_and_softness_follows_what_is_seen(name) -> None:
    made, random = TightCables(robot_named(name)), np.random.default_rng(11)
    q, v = np.array(made.robot.model.start), random.normal(scale=0.1, size=made.mechanism.velocity_count)
    seen = q + random.normal(scale=1e-4, size=q.size), v + random.normal(scale=0.01, size=v.size)
    made.update(q, v)
    stretch, lag = CableStretch(made, PERIOD, impedance=False), np.maximum(made.relaxation, LEAST_LAG * PERIOD)
    stretch.begin(q, v)
    amount, _, unit = made.stretches(q, v)
    elastic, rate, pulling, floor = np.maximum(amount, 0.0) / unit, None, None, 0.5 * amount / unit
    softness, before = made.softness.copy(), PERIOD
    for elapsed, held in ((PERIOD, PERIOD), (PERIOD, PERIOD), (3.0 * PERIOD, 2.0 * PERIOD), (PERIOD, PERIOD)):
        tension = elastic * random.uniform(0.9, 1.1, elastic.size)
        effort = stretch.efforts(q, v, seen, tension, floor, elapsed, held)
        if pulling is not None:
            elastic = pulling + (elastic - pulling) * np.exp(-elapsed / lag)
        change = (tension - elastic) * (1.0 - np.exp(-held / lag)) / held
        last = change if rate is None else rate * np.exp((before - elapsed) / lag)
        rate, pulling, before = change, tension, held
        amount, _, unit = made.stretches(q, v)
        unit = unit / made.softness * softness
        seen_more = np.clip(amount / (unit * elastic), 1.0 / SOFTEST, SOFTEST) - 1.0
        softness = np.clip(softness * (1.0 + min(1.0, elapsed / SOFTENING) * seen_more), 1.0 / SOFTEST, SOFTEST)
        np.testing.assert_allclose(made.softness, softness, rtol=1e-12)
        unit = made.stretches(q, v)[2]
        np.testing.assert_allclose(effort, made.stretched((unit * (change - last) / held)[:, None])[1][:, 0], rtol=1e-9)
        amount, speed, unit = made.stretches(*seen)
        columns = np.column_stack((amount, speed, unit * elastic, unit * change))
        np.testing.assert_allclose(stretch.moved, made.stretched(columns)[0], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["manipulator", "single_strut"])
@pytest.mark.parametrize("periods", [1.0, 0.4, 3.0, 12.0])
def test_set_points_carry_the_stretch_on_at_its_rate_for_as_long_as_the_next_command_is_away(name, periods) -> None:
    made = TightCables(robot_named(name))
    q, v = np.array(made.robot.model.start), np.zeros(made.mechanism.velocity_count)
    made.update(q, v)
    stretch, still = CableStretch(made, PERIOD, impedance=True), (q, v)
    stretch.begin(q, v)
    start, held = stretch.elastic.copy(), 4.0 * PERIOD
    stretch.efforts(q, v, still, 1.2 * start, 0.5 * start, PERIOD, held, (PERIOD, 1.0))
    rate = 0.2 * start * (1.0 - np.exp(-held / stretch.lag)) / held
    gone = periods * PERIOD
    effort = stretch.efforts(q, v, still, start + gone * rate, 0.5 * start, gone, held, (gone, 0.5))
    np.testing.assert_allclose(stretch.elastic, start + gone * rate, rtol=1e-9)
    unit = made.stretches(q, v)[2]
    np.testing.assert_allclose(effort, made.stretched((unit * -0.5 * rate / held)[:, None])[1][:, 0], rtol=1e-6)
