"""Stability of structures whose tendons are at the edge between slack and tight: the weakest direction decides."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensegrity_dynamics import analyze_prestress, forward_kinematics, load_robot
from tensegrity_dynamics.numerics.one_sided import one_sided_energy, weakest_direction
from tensegrity_dynamics.structures.structure import make_structure

TETRAHEDRON = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]) / np.sqrt(3.0)


def star(directions: np.ndarray, rest: float = 1.0, stiffness: float = 100.0):
    """A node held by tendons of length 1 in the given directions."""
    posts = {f"post_{k}": tuple(direction) for k, direction in enumerate(directions)}
    rows = [(f"t{k}", "tendon", "middle", name, stiffness, rest) for k, name in enumerate(posts)]
    return make_structure({**posts, "middle": (0, 0, 0)}, rows, fixed=tuple(posts))


@pytest.mark.parametrize("rest", [1.0, 1.0 - 1e-14, 1.0 + 1e-14])
def test_a_node_that_stretches_a_tendon_wherever_it_goes_is_stable(rest: float) -> None:
    structure = star(TETRAHEDRON, rest)
    shape = forward_kinematics(structure)
    assert shape.stable and analyze_prestress(structure, shape).stable
    # straight away from one tendon it stretches only that; its opposite stretches three, each by a third
    assert shape.softest == pytest.approx(100.0 / 3.0, rel=1e-3)


@pytest.mark.parametrize("rest", [1.0, 1.0 - 1e-14, 1.0 + 1e-14])
def test_a_node_that_can_go_where_all_tendons_slacken_is_not_stable(rest: float) -> None:
    structure = star(TETRAHEDRON[:3], rest)
    shape = forward_kinematics(structure)
    assert not shape.stable and not analyze_prestress(structure, shape).stable


def test_the_slack_tendons_of_the_four_prism_hold_no_mechanism() -> None:
    analysis = analyze_prestress(load_robot("four_prism"))
    words = dict(analysis.rows())["mechanisms"]
    assert analysis.present_mechanisms == 8 and words.startswith("8, as the 8 slack tendons hold nothing")
    assert analysis.figures()["mechanisms"] == 8
    tight = analyze_prestress(load_robot("three_prism"))
    assert tight.present_mechanisms == tight.mechanism_count == tight.figures()["mechanisms"]


@given(seed=st.integers(0, 10**6), size=st.integers(1, 5), edges=st.integers(0, 6))
@settings(max_examples=40, deadline=None)
def test_no_direction_is_weaker_than_the_weakest(seed: int, size: int, edges: int) -> None:
    random = np.random.default_rng(seed)
    stiffness = random.normal(size=(size, size))
    stiffness = stiffness + stiffness.T
    gradients, weights = random.normal(size=(edges, size)), 10.0 ** random.uniform(-1, 3, edges)
    least, direction = weakest_direction(stiffness, gradients, weights)
    assert np.linalg.norm(direction) == pytest.approx(1.0)
    assert one_sided_energy(stiffness, gradients, weights, direction) == pytest.approx(least, abs=1e-9)
    others = random.normal(size=(3000, size))
    others /= np.linalg.norm(others, axis=1, keepdims=True)
    stretched = np.maximum(0.0, others @ gradients.T) ** 2 @ weights
    energies = np.einsum("ki,ij,kj->k", others, stiffness, others) + stretched
    assert energies.min() >= least - 1e-6 * (1.0 + abs(least))
