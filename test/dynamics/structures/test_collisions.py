"""Rods that collide: nearest points, forces that keep momenta and energy, what runs through what, refusals."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensegrity_dynamics import Simulation, load_robot, make_structure
from tensegrity_dynamics.contact.collision import Collision, nearest_points
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.robots.robot import Robot
from tensegrity_dynamics.structures.crossings import crossings, describe_crossings
from tensegrity_dynamics.structures.dynamics.structure_simulator import StructureSimulator

SPEED, STIFFNESS, RADIUS, MASS = 0.5, 2e4, 0.02, 1.2


def two_rods(collision=Collision(RADIUS, STIFFNESS), aside=0.0, height=0.045):  # noqa: B008
    """A rod along x above one along y, each of 1 m; `aside` moves the upper one along its own axis."""
    nodes = {"a": (-0.5 + aside, 0, height), "b": (0.5 + aside, 0, height), "c": (0, -0.5, 0), "d": (0, 0.5, 0)}
    members = [("upper", "bar", "a", "b", 1e6, 1.0), ("lower", "bar", "c", "d", 1e6, 1.0)]
    made = make_structure(nodes, members, masses={"upper": MASS, "lower": MASS})
    return replace(made, collision=collision)


def thrown(structure, integrator, step, duration=0.06):
    simulation = Simulation(structure, step, integrator, start=structure.nodes)
    simulation.set_motion([[0, 0, -SPEED]] * 2 + [[0, 0, 0]] * 2)
    simulation.advance(duration=duration)
    return simulation


def momenta(simulation):
    """Of rods of MASS each, spread along them, about the origin."""
    nodes, velocities = simulation.state.nodes, simulation.state.velocities
    total, turning = np.zeros(3), np.zeros(3)
    for i, j in simulation.robot.structure.members.tolist():
        for p, q, part in ((i, i, 3), (j, j, 3), (i, j, 6), (j, i, 6)):
            total += MASS / part * velocities[q]
            turning += MASS / part * np.cross(nodes[p], velocities[q])
    return total, turning


@given(st.lists(st.floats(-1.0, 1.0), min_size=12, max_size=12))
@settings(max_examples=30, deadline=None)
def test_nearest_points_are_nearest(numbers):
    """Against the ends' distances and a grid on both segments."""
    nodes = np.array(numbers).reshape(4, 3)
    if min(np.linalg.norm(nodes[1] - nodes[0]), np.linalg.norm(nodes[3] - nodes[2])) < 0.05:
        return
    s, t, distance = nearest_points(nodes, 0, 1, 2, 3)
    grid = np.linspace(0.0, 1.0, 41)[:, None]
    first, second = (nodes[k] + grid * (nodes[k + 1] - nodes[k]) for k in (0, 2))
    apart = np.linalg.norm(first[:, None] - second[None], axis=2)
    assert 0.0 <= s <= 1.0 and 0.0 <= t <= 1.0
    own = (1 - s) * nodes[0] + s * nodes[1] - (1 - t) * nodes[2] - t * nodes[3]
    assert distance == pytest.approx(np.linalg.norm(own), abs=1e-7)
    assert distance <= apart.min() + 1e-9
    assert distance >= apart.min() - 0.1  # the grid is as coarse as this


@pytest.mark.parametrize("integrator", ["rk4", "rattle"])
def test_two_crossed_rods_that_meet_in_the_middle_change_their_velocities(integrator):
    """A half sine of pi sqrt(m / 2 k), v sqrt(m / 2 k) deep; afterwards the lower one has all of the speed."""
    deepest = SPEED * np.sqrt(0.5 * MASS / STIFFNESS)
    meets = 0.005 / SPEED
    turn = thrown(two_rods(), integrator, 2e-5, meets + 0.5 * np.pi * np.sqrt(0.5 * MASS / STIFFNESS))
    gap = turn.state.nodes[0, 2] - turn.state.nodes[2, 2]
    assert 2.0 * RADIUS - gap == pytest.approx(deepest, rel=1e-3)
    assert turn.energy().collisions == pytest.approx(0.25 * MASS * SPEED**2, rel=1e-3)
    after = thrown(two_rods(), integrator, 2e-5)
    np.testing.assert_allclose(after.state.velocities[:, 2], [0, 0, -SPEED, -SPEED], atol=1e-4)


@pytest.mark.parametrize("integrator", ["rk4", "rattle"])
def test_an_oblique_blow_keeps_momenta_and_energy_and_dampers_take_what_the_ledger_says(integrator):
    for damping in (0.0, 30.0):
        rods = two_rods(Collision(RADIUS, STIFFNESS, damping), aside=0.3)
        start = thrown(rods, integrator, 2e-5, 0.0)
        after = thrown(rods, integrator, 2e-5)
        assert np.abs(after.state.velocities[2:]).max() > 0.1  # they have met
        for before, now in zip(momenta(start), momenta(after), strict=True):
            np.testing.assert_allclose(now, before, atol=1e-9)
        assert after.energy().balance == pytest.approx(start.energy().balance, rel=1e-5)
        assert after.energy().damping == 0.0 if damping == 0.0 else after.energy().damping > 0.01
        assert after.energy().collisions == 0.0


def test_a_rod_driven_through_anothers_axis_keeps_its_energy_at_any_distance_of_the_axes():
    """A blow of more than k r^2; past the axes the way is aside by parts of the radius, down to none."""
    speed = 1.3 * np.sqrt(2.0 * STIFFNESS * RADIUS**2 / (0.5 * MASS))
    for lean in (0.0, 1e-4, 0.02):
        rods = two_rods(aside=0.1)
        simulation = Simulation(rods, 1e-4, "rattle", start=rods.nodes)
        simulation.set_motion([[0, lean * speed, -speed]] * 2 + [[0, 0, 0]] * 2)
        start, deepest = simulation.energy(), 0.0
        for _ in range(40):
            simulation.advance(10)
            deepest = max(deepest, simulation.energy().collisions)
        assert simulation.state.nodes[0, 2] < simulation.state.nodes[2, 2]  # it is through
        assert 0.9 * STIFFNESS * RADIUS**2 < deepest <= STIFFNESS * RADIUS**2
        assert simulation.energy().balance == pytest.approx(start.balance, rel=1e-4)


def test_rods_that_start_apart_never_pull_and_without_a_block_pass_through():
    through = thrown(two_rods(None), "rattle", 2e-4, 0.2)
    np.testing.assert_allclose(through.state.velocities[2:], 0.0, atol=1e-12)
    damped = thrown(two_rods(Collision(RADIUS, STIFFNESS, 1e3)), "rattle", 1e-5)
    assert damped.state.velocities[0, 2] >= damped.state.velocities[2, 2] - 1e-12  # they part, or go on together


def test_the_step_advice_names_collisions_where_they_are_the_stiffest():
    stiff = Simulation(two_rods(Collision(RADIUS, 1e9)), start=two_rods().nodes)
    simulator = StructureSimulator(Robot("rods", two_rods(Collision(RADIUS, 1e9))), None, "rk4", start=two_rods().nodes)
    assert simulator.step_limit == "the stiffness of collisions"
    assert stiff.time_step < 0.1 * Simulation(two_rods(Collision(RADIUS, 1e5)), start=two_rods().nodes).time_step


def test_what_runs_through_what_is_named():
    rods = two_rods(height=0.03)
    assert crossings(rods, rods.nodes) == ([("upper", "lower")], [])
    cabled = make_structure(
        {"a": (-1, 0, 0), "b": (1, 0, 0), "c": (0, 1, 0.01), "d": (0, -1, 0.01)},
        [("rod", "bar", "a", "b", 1e6, 2.0), ("cable", "tendon", "c", "d", 100.0, 1.0)],
        masses={"rod": 1.0}, node_masses={"c": 1.0, "d": 1.0},
    )  # fmt: skip
    cabled = replace(cabled, collision=Collision(0.02, 1e4))
    assert describe_crossings(cabled, cabled.nodes) == "cable runs through rod"
    assert describe_crossings(replace(cabled, collision=None), cabled.nodes) == ""
    assert Simulation(cabled, start=cabled.nodes).note == "cable runs through rod"


def test_what_knows_no_collisions_refuses_them_by_name(tmp_path):
    rods = two_rods()
    for options in ({"integrator": "implicit"}, {"model": "minimal"}):
        with pytest.raises(TensegrityError, match=r"collisions of rods.*rk4 or rattle"):
            Simulation(rods, start=rods.nodes, **options)
    with pytest.raises(TensegrityError, match="linear models know no collisions"):
        Simulation(rods, start=rods.nodes).linearise("lengths")
    for wrong, words in (({"radius": 0.0}, "radius is 0"), ({"stiffness": np.nan}, "stiffness is nan"),
                         ({"damping": -1.0}, "damping is -1")):  # fmt: skip
        with pytest.raises(TensegrityError, match=words):
            Collision(**{"radius": 0.01, "stiffness": 1e4, **wrong})
    text = (
        "name: two\nkind: structure\nnodes:\n  a: {position: [0, 0, 0], mass: 1}\n  b: {position: [1, 0, 0], mass: 1}\n"
        "members:\n  - {name: rod, kind: bar, nodes: [a, b], stiffness: 1.0e+5, rest_length: 1, mass: 1}\n"
    )
    path = tmp_path / "two.yaml"
    path.write_text(text + "collision: {radius: 10 mm, stiffness: 1.0e+4, damping: 5}\n")
    assert load_robot(path).structure.collision == Collision(0.01, 1e4, 5.0)
    path.write_text(text + "collision: {radius: -1 mm, stiffness: 1.0e+4}\n")
    with pytest.raises(TensegrityError, match=r"two.yaml:8.*radius"):
        load_robot(path)
