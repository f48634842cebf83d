"""Other stable equilibria of the same lengths, from random starts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tensegrity_dynamics import (
    StructureEquilibriumSolver,
    find_equilibria,
    forward_kinematics,
    load_robot,
    make_structure,
)
from tensegrity_dynamics.errors import NoEquilibriumError, TensegrityError

TENSEBOT = load_robot("tensebot")


@pytest.fixture(scope="module")
def shapes():
    return find_equilibria(TENSEBOT)


def test_the_platform_has_two_upright_stable_shapes(shapes) -> None:
    upright = [found for found in shapes if found.upright]
    assert len(upright) == 2
    nominal, other = sorted(upright, key=lambda found: found.energy)
    assert nominal.nominal and not other.nominal
    assert nominal.label.endswith("(nominal, upright)") and "turned by 180 deg" in other.label
    assert other.pose is not None and other.pose[0][2] == pytest.approx(0.3942, abs=1e-4)
    assert nominal.pose is not None and nominal.pose[0][2] == pytest.approx(0.1866, abs=1e-4)


def test_shapes_come_by_energy_with_letters_and_account_for_every_start(shapes) -> None:
    energies = [found.energy for found in shapes]
    assert energies == sorted(energies)
    assert [found.label.split()[0] for found in shapes] == [chr(ord("A") + i) for i in range(len(shapes))]
    assert sum(found.count for found in shapes) + shapes[0].lost == shapes[0].starts == 200
    assert any("folded below the base" in found.label for found in shapes)
    assert sum(found.nominal for found in shapes) == 1


def test_every_shape_is_a_stable_equilibrium_of_its_own(shapes) -> None:
    for found in shapes:
        again = forward_kinematics(TENSEBOT, start=found.shape.nodes)
        assert again.stable and again.softest == pytest.approx(found.softest, rel=1e-6) and found.softest > 0.0
        np.testing.assert_allclose(again.nodes, found.shape.nodes, atol=1e-7)
    for i, first in enumerate(shapes):
        for second in shapes[i + 1 :]:
            assert np.abs(first.shape.nodes - second.shape.nodes).max() > 1e-3


def test_the_same_seed_finds_the_same_shapes(shapes) -> None:
    again = find_equilibria(TENSEBOT)
    assert [found.count for found in again] == [found.count for found in shapes]
    other = find_equilibria(TENSEBOT, seed=1)
    assert [found.count for found in other] != [found.count for found in shapes]


@pytest.mark.parametrize("seed", range(3))
def test_two_inches_of_noise_always_lead_back_to_the_nominal_shape(seed: int) -> None:
    # the document: 48 of 50 starts (001, section 5.5)
    (only,) = find_equilibria(TENSEBOT, noise=2 * 0.0254, count=50, seed=seed)
    assert only.nominal and only.count == 50 and only.lost == 0


def test_energy_counts_the_work_of_weight_and_forces() -> None:
    structure = make_structure(
        {"hook": (0, 0, 0), "mass": (0.1, 0, -0.5)},
        [("string", "tendon", "hook", "mass", 500.0, 1.0)],
        fixed=["hook"], node_masses={"mass": 2.0}, gravity=(0, 0, -10.0),
    )  # fmt: skip
    (hanging,) = find_equilibria(structure, count=10, noise=0.3)
    # against the start: 20 N through 0.54 m, and 20 N of string stretched by 0.04 m
    assert hanging.energy == pytest.approx(-20.0 * 0.54 + 0.5 * 20.0 * 0.04, rel=1e-9)
    assert hanging.pose is None and hanging.label == "A (nominal, folded below the base)"


def test_shapes_of_a_structure_with_nothing_fixed_are_one_however_they_lie() -> None:
    structure = load_robot("three_prism").structure
    free = replace(structure, fixed=np.zeros_like(structure.fixed))
    found = find_equilibria(free, count=20, noise=0.1)
    assert len(found) == 1 and found[0].count == 20 and found[0].label == "A (nominal)"


@pytest.mark.long
def test_a_structure_that_is_not_prestressed_has_no_stable_shape() -> None:
    with pytest.raises(NoEquilibriumError, match=r"none of 8 random starts.*analyze_prestress"):
        find_equilibria(load_robot("four_prism"), count=8)


def test_rest_lengths_by_actuator_name_are_used() -> None:
    name = TENSEBOT.actuators[0].name
    (shape,) = find_equilibria(TENSEBOT, {name: 0.21}, count=5, noise=0.02)
    member = TENSEBOT.actuators[0].drives
    assert shape.shape.rest_lengths[TENSEBOT.structure.member(member)] == 0.21


@pytest.mark.parametrize(("options", "message"), [({"count": 0}, "count is 0"), ({"noise": -1.0}, "noise is -1"),
                                                   ({"noise": np.inf}, "noise is inf")])  # fmt: skip
def test_wrong_options_are_named(options: dict, message: str) -> None:
    with pytest.raises(TensegrityError, match=message):
        find_equilibria(TENSEBOT, **options)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("rigid_bars", "starts"),
    [(False, 6), (True, 6), *(pytest.param(each, 20, marks=pytest.mark.long) for each in (False, True))],
)
def test_tendons_at_the_verge_of_slack_make_no_shape_stable(rigid_bars, starts):
    """The four-prism of 001 has no prestress: wherever it is found, its tendons carry nothing and it can move."""
    structure = load_robot("four_prism").structure
    solver, random = StructureEquilibriumSolver(structure, rigid_bars=rigid_bars), np.random.default_rng(0)
    for _ in range(starts):
        moved = 0.1 * random.normal(size=structure.nodes.shape)
        shape = solver.solve(start=structure.nodes + np.where(structure.fixed[:, None], 0.0, moved))
        assert not shape.stable
