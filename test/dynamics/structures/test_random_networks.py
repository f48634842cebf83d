"""Laws of motion on networks that nobody chose: rods and cables at random, slack ones, soft-plus, ground, collisions.

Every law runs on a few of them in the short run and on many in the long one.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensegrity_dynamics import Simulation, make_structure
from tensegrity_dynamics.contact.collision import Collision
from tensegrity_dynamics.contact.ground import Ground
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.numerics.rotations import matrix_from_vector
from tensegrity_dynamics.structures.crossings import crossings
from tensegrity_dynamics.structures.dynamics.point_masses import make_network
from tensegrity_dynamics.structures.dynamics.rod_masses import inverse_mass_matrix

FEW, MANY = 4, 100
STEPS = 200


@st.composite
def networks(draw, grounded=False):
    """A class-1 network (every node on exactly one rod) with cables between rods, and velocities of its nodes."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rods = draw(st.integers(2, 5))
    middles = rng.uniform(-0.6, 0.6, (rods, 3))
    halves = rng.normal(size=(rods, 3))
    halves *= rng.uniform(0.2, 0.6, rods)[:, None] / np.linalg.norm(halves, axis=1)[:, None]
    ends = np.concatenate((middles - halves, middles + halves))
    nodes = {f"n{i}": ends[i] for i in range(2 * rods)}
    members, masses, damping = [], {}, {}
    for k in range(rods):
        length = 2.0 * float(np.linalg.norm(halves[k]))
        members.append((f"rod_{k}", "bar", f"n{k}", f"n{k + rods}", 1e6, length))
        masses[f"rod_{k}"] = rng.uniform(0.3, 2.0)
    dampers = 5.0 * draw(st.booleans())
    for i in range(2 * rods):
        for j in range(i):
            length = float(np.linalg.norm(ends[i] - ends[j]))
            if i != j + rods and length > 0.05 and rng.random() < 0.5:
                name = f"cable_{i}_{j}"
                members.append((name, "tendon", f"n{i}", f"n{j}", rng.uniform(50, 500), length * rng.uniform(0.7, 1.2)))
                damping[name] = dampers
    loads = {f"n{i}": rng.uniform(0.0, 0.5) for i in range(rods)}
    structure = make_structure(
        nodes, members, masses=masses, node_masses=loads, damping=damping, smoothness=draw(st.sampled_from([0.0, 0.01]))
    )
    # stiff enough that no rod is driven through another's axis, where the direction of the force is lost
    if draw(st.booleans()) and not crossings(replace(structure, collision=Collision(0.02, 1.0)), ends)[0]:
        structure = replace(structure, collision=Collision(0.01, 2e5, dampers))
    if grounded:
        lowest = float(ends[:, 2].min())
        ground = Ground(5e3, damping=dampers, friction=rng.uniform(0.0, 1.0), height=lowest - 0.01)
        structure = replace(structure, ground=ground, gravity=np.array([0.0, 0.0, -9.81]))
    return structure, rng.normal(size=ends.shape)


def moving(structure, velocities, integrator="rattle", step=None):
    simulation = Simulation(structure, step, integrator, start=structure.nodes)
    simulation.set_motion(velocities)
    return simulation


def momenta(simulation):
    inverse = inverse_mass_matrix(make_network(simulation.robot.structure))
    moved = np.linalg.solve(inverse, simulation.state.velocities)
    return moved.sum(axis=0), np.cross(simulation.state.nodes, moved).sum(axis=0), np.abs(moved).sum()


def keeps_momenta(case):
    """To rounding, whatever the members do."""
    for integrator in ("rattle", "rk4"):
        simulation = moving(*case, integrator)
        before = momenta(simulation)
        simulation.advance(STEPS)
        after = momenta(simulation)
        np.testing.assert_allclose(after[0], before[0], atol=1e-11 * before[2])
        np.testing.assert_allclose(after[1], before[1], atol=1e-10 * before[2])


def balances_energy(case):
    """With dampers, ground, friction and collisions in the ledger: what is left falls with the step."""
    structure, velocities = case
    natural = Simulation(structure, integrator="rattle", start=structure.nodes).time_step
    errors = []
    for part in (1, 8):
        simulation = moving(structure, velocities, step=natural / part)
        before = simulation.energy()
        simulation.advance(STEPS * part)
        after = simulation.energy()
        assert after.friction >= -1e-12 and after.damping >= -1e-6 * before.kinetic
        errors.append(abs(after.balance - before.balance) / (before.kinetic + abs(before.elastic) + 1e-9))
    assert errors[1] < 2e-3
    assert errors[1] < 0.5 * errors[0] or errors[1] < 1e-4


def moves_alike_turned_and_renumbered(case):
    structure, velocities = case
    turn, shift = matrix_from_vector([0.3, -1.1, 0.7]), np.array([2.0, -1.0, 0.5])
    mirror = turn @ np.diag([1.0, -1.0, 1.0])
    order = np.arange(len(structure.nodes))[::-1]
    rank = np.argsort(order)
    plain = moving(structure, velocities)
    plain.advance(STEPS)
    for matrix in (turn, mirror):
        moved = replace(
            structure, node_names=tuple(structure.node_names[i] for i in order),
            nodes=(structure.nodes @ matrix.T + shift)[order], node_masses=structure.node_masses[order],
            members=rank[structure.members],
        )  # fmt: skip
        other = moving(moved, (velocities @ matrix.T)[order], step=plain.time_step)
        other.advance(STEPS)
        np.testing.assert_allclose(other.state.nodes[rank], plain.state.nodes @ matrix.T + shift, atol=1e-7)


def never_pulls_on_the_ground(case):
    structure, velocities = case
    simulation = moving(structure, velocities)
    for _ in range(10):
        simulation.advance(STEPS // 5)
        for force in simulation.observe().contacts.values():
            assert force[2] >= 0.0
            assert np.linalg.norm(force[:2]) <= structure.ground.friction * force[2] * (1.0 + 1e-9) + 1e-12


LAWS = {
    "momenta": (keeps_momenta, False), "balance": (balances_energy, False),
    "balance on ground": (balances_energy, True),
    "turned": (moves_alike_turned_and_renumbered, False), "contact": (never_pulls_on_the_ground, True),
}  # fmt: skip


@pytest.mark.parametrize("examples", [FEW, pytest.param(MANY, marks=pytest.mark.long)], ids=["few", "many"])
@pytest.mark.parametrize("law", LAWS)
def test_a_law_holds_for_networks_at_random(law, examples):
    holds, grounded = LAWS[law]
    held, refused = [], []

    @given(networks(grounded))
    @settings(max_examples=examples, deadline=None, database=None)
    def check(case):
        try:
            holds(case)
            held.append(case)
        except TensegrityError as error:  # what cannot be followed is refused, in a sentence or two
            refused.append(str(error))

    check()
    assert len(held) > examples // 2
    assert all(words.count(". ") <= 2 for words in refused)
