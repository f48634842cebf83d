"""Independent coordinates that are chosen anew while a mechanism moves through a singularity of the first ones.

The Biglide with its legs stretched out: there its two feet no longer say where it is (Type 2 of document 002), though
its motion is regular in other coordinates.
"""

from __future__ import annotations

import numpy as np
import pytest
from state_differences import change_of_coordinates

from tensegrity_dynamics import Simulation, load_robot
from tensegrity_dynamics.mechanisms.dynamics import reduced_model
from tensegrity_dynamics.mechanisms.dynamics.reduced_model import ReducedModel
from tensegrity_dynamics.mechanisms.estimation.kalman_observer import MechanismObserver

PERIOD, RATE = 5e-3, -1.0


@pytest.fixture(scope="module")
def robot(tmp_path_factory):
    """The Biglide shortly before its legs are in line, at pin_1 = -56.3 deg."""
    from importlib import resources

    text = (resources.files("tensegrity_dynamics") / "robots" / "biglide.yaml").read_text()
    pin_1, leg = np.radians(-40.0), 0.3606
    pin_2 = np.arccos(np.cos(pin_1) - 0.4 / leg)
    starts = [0.285, pin_1, 0.285 + leg * (np.sin(pin_1) - np.sin(pin_2)), pin_2]
    parts = text.split("provenance:")[0].split("start: [")
    for k, start in enumerate(starts, start=1):
        parts[k] = f"{float(start)!r}]" + parts[k].split("]", 1)[1]
    path = tmp_path_factory.mktemp("robot") / "biglide.yaml"
    path.write_text("start: [".join(parts))
    return load_robot(str(path))


def in_coordinates(robot, *names):
    index = [robot.mechanism.coordinate_names().index(name) for name in names]
    return ReducedModel(robot, index)


def crossing(robot):
    """Simulation that is about to stretch its legs."""
    simulation = Simulation(robot, 1e-3, start="file")
    start = np.array(robot.model.start)
    simulation.set_state(start, in_coordinates(robot, "rail_1", "pin_1").velocity(start, np.array([0.0, RATE])))
    return simulation


def observed(robot, cycles=100):
    """Truth (k, nq), estimates (k, nq) and the observer, on the way through the singularity."""
    simulation, observer = crossing(robot), MechanismObserver(robot)
    true, found = [], []
    for _ in range(cycles):
        simulation.advance(duration=PERIOD, effort={"foot_1": 0.0, "foot_2": 0.0})
        state, seen = simulation.state, simulation.observe()
        true.append(state.q)
        found.append(observer.update(state.time, seen.positions, seen.efforts).q)
    return np.array(true), np.array(found), observer


def test_observer_goes_through_the_singularity_of_its_coordinates_as_if_it_had_begun_with_others(robot, monkeypatch):
    true, found, observer = observed(robot)
    assert np.degrees(true[0, 1]) > -56.3 > np.degrees(true[-1, 1])
    assert observer.reduced.names != ReducedModel(robot).names == ("rail_1", "rail_2")
    off = np.max(np.abs(found - true), axis=1)
    assert np.max(off[20:]) < 1e-5 and off[-1] < 1e-9
    monkeypatch.setattr(reduced_model, "LARGEST_ENTRY", 1.0)  # takes others in the first period
    _, other, begun = observed(robot)
    assert begun.reduced.names != ("rail_1", "rail_2")
    np.testing.assert_allclose(found[-1], other[-1], rtol=0, atol=1e-9)


def test_what_is_known_in_the_old_coordinates_reads_the_same_in_the_new_ones(robot):
    model, start = ReducedModel(robot), np.array(robot.model.start)
    across = in_coordinates(robot, "rail_1", "pin_1")
    q = across.closed_configuration(start, np.array([0.285, np.radians(-55.6)]))
    v = across.velocity(q, np.array([0.1, RATE]))
    old = in_coordinates(robot, "rail_1", "rail_2")
    change = model.rechoose(q, v)
    assert change is not None and model.names != old.names
    assert model.largest_entry(q) < 0.5 * old.largest_entry(q)
    here = model.state(q, v)
    np.testing.assert_allclose(change, change_of_coordinates(old, model, q, v, 1e-7), rtol=1e-4, atol=1e-4)
    assert model.rechoose(q, v) is None  # and it stays with these
    np.testing.assert_array_equal(model.state(q, v), here)


def test_two_choices_do_not_take_turns_where_a_mechanism_goes_back_and_forth(robot):
    model, across = ReducedModel(robot), in_coordinates(robot, "rail_1", "pin_1")
    q, changes, still = np.array(robot.model.start), 0, np.zeros(4)
    for angle in np.radians(-54.0 + 2.5 * np.sin(np.linspace(0.0, 6.0 * np.pi, 60))):
        q = across.closed_configuration(q, np.array([0.285, angle]))
        changes += model.rechoose(q, still) is not None
    assert changes == 1


def test_coordinates_that_must_take_part_stay(robot):
    model = ReducedModel(robot)
    q = in_coordinates(robot, "rail_1", "pin_1").closed_configuration(
        np.array(robot.model.start), np.array([0.285, np.radians(-55.5)])
    )
    rail_2 = int(model.index[1])
    assert model.rechoose(q, np.zeros(4), always=(rail_2,)) is not None
    assert rail_2 in model.index


def test_coordinates_that_start_badly_are_left_before_loops_close_on_another_branch():
    robot = load_robot("cable_robot")
    first, q = ReducedModel(robot), np.array(robot.model.start)
    other = ReducedModel(robot, first.best_coordinates(q, ()))
    assert first.largest_entry(q) > 4.0 * other.largest_entry(q)
    for _ in range(26):  # 0.13 rad along the motion for which the coordinates of the start are worst
        column = first.basis(q)[:, int(np.argmax(np.abs(first.basis(q)).max(axis=0)))]
        step = 0.005 * column[other.index] / np.abs(column).max()
        q = other.closed_configuration(q, other.coordinates_at(q) + step)
    assert first.largest_entry(q) > 100.0 and other.largest_entry(q) < 6.0
    assert first.is_poor(q)
    assert first.rechoose(q, np.zeros(robot.mechanism.velocity_count)) is not None
    assert first.largest_entry(q) < 10.0
