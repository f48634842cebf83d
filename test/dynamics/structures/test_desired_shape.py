"""Rest lengths for a desired shape: what is asked for holds at the nodes given, or the nearest ones are named."""

from __future__ import annotations

import numpy as np
import pytest

from tensegrity_dynamics import forward_kinematics
from tensegrity_dynamics.errors import NoEquilibriumError, RobotFileError, TensegrityError
from tensegrity_dynamics.robots.load_robot import parse_robot
from tensegrity_dynamics.robots.robot_types import type_of
from tensegrity_dynamics.structures.analysis.desired_shape import find_rest_lengths
from tensegrity_dynamics.structures.form_finding.force_density import equilibrium_matrix
from tensegrity_dynamics.structures.structure import Structure, make_structure


def prism(twist: float = 150.0, *, is_free: bool = True, gravity: float = 0.0) -> Structure:
    """Three struts, the top turned by `twist` degrees against the base."""
    turned = np.radians(120.0 * np.arange(3))
    nodes = {f"base_{k}": [np.cos(a), np.sin(a), 0.0] for k, a in enumerate(turned)}
    nodes |= {f"top_{k}": [np.cos(a), np.sin(a), 1.2] for k, a in enumerate(turned + np.radians(twist))}
    members = []
    for k in range(3):
        after = (k + 1) % 3
        members += [
            (f"strut_{k}", "bar", f"base_{k}", f"top_{k}", 1e5, 1.0),
            (f"side_{k}", "tendon", f"base_{after}", f"top_{k}", 2e3, 1.0),
            (f"top_{k}", "tendon", f"top_{k}", f"top_{after}", 2e3, 1.0),
        ]
        if is_free:
            members.append((f"base_{k}", "tendon", f"base_{k}", f"base_{after}", 2e3, 1.0))
    fixed = () if is_free else ("base_0", "base_1", "base_2")
    masses = {f"strut_{k}": 0.2 for k in range(3)}
    return make_structure(nodes, members, fixed=fixed, gravity=(0.0, 0.0, gravity), masses=masses)


def out_of_balance(structure: Structure, nodes: np.ndarray, rest: np.ndarray) -> float:
    """Largest force [N] left at a free coordinate, from lengths and rest lengths alone."""
    forces = structure.steady_forces()
    for k, (i, j) in enumerate(structure.members.tolist()):
        along = nodes[j] - nodes[i]
        length = float(np.linalg.norm(along))
        tension = float(structure.stiffness[k]) * (length - float(rest[k]))
        tension = max(tension, 0.0) if structure.unilateral[k] else tension
        forces[i] += tension * along / length
        forces[j] -= tension * along / length
    return float(np.abs(forces.ravel()[structure.free]).max())


def test_prism_has_the_forces_of_its_only_self_stress() -> None:
    structure = prism()
    found = find_rest_lengths(structure, prestress=20.0)
    tendons = found.tensions[structure.unilateral]
    assert found.states == 1
    assert found.moved == 0.0
    assert tendons.mean() == pytest.approx(20.0)
    lengths = np.linalg.norm(found.nodes[structure.members[:, 0]] - found.nodes[structure.members[:, 1]], axis=1)
    densities = found.tensions / lengths
    # Connelly and Terrell: force densities 1 of the edges, sqrt(3) of the sides, -sqrt(3) of the struts
    by_kind = {name: densities[structure.member(name)] for name in ("strut_0", "side_0", "top_0", "base_0")}
    assert by_kind["side_0"] == pytest.approx(np.sqrt(3.0) * by_kind["top_0"])
    assert by_kind["strut_0"] == pytest.approx(-np.sqrt(3.0) * by_kind["top_0"])
    assert by_kind["base_0"] == pytest.approx(by_kind["top_0"])


@pytest.mark.parametrize("twist", [150.0, 146.0])
def test_rest_lengths_hold_the_shape_under_its_weight(twist: float) -> None:
    structure = prism(twist, is_free=False, gravity=-9.81)
    found = find_rest_lengths(structure, prestress=30.0, move=0.2)
    assert out_of_balance(structure, found.nodes, found.rest_lengths) < 1e-7
    assert found.tensions[structure.unilateral].mean() == pytest.approx(30.0)
    assert (found.tensions[structure.unilateral] > 0.0).all()
    assert np.array_equal(found.nodes[:3], structure.nodes[structure.fixed])


def test_tension_of_a_member_may_be_asked_for_instead() -> None:
    found = find_rest_lengths(prism(), tensions={"strut_1": -50.0})
    assert found.tensions[prism().member("strut_1")] == pytest.approx(-50.0)


def test_kept_rest_length_decides_its_own_tension() -> None:
    structure = prism()
    kept = np.zeros(len(structure.member_names), dtype=np.bool_)
    k = structure.member("side_0")
    kept[k] = True
    length = float(np.linalg.norm(structure.nodes[structure.members[k, 0]] - structure.nodes[structure.members[k, 1]]))
    found = find_rest_lengths(structure.with_rest_lengths({"side_0": length - 0.01}), kept=kept)
    assert found.tensions[k] == pytest.approx(2e3 * 0.01)
    assert found.rest_lengths[k] == pytest.approx(length - 0.01)


def test_nodes_without_a_balance_are_refused_with_the_nearest_that_have_one() -> None:
    with pytest.raises(NoEquilibriumError, match=r"no tensions balance at these nodes.*move \w+ by .* allowed"):
        find_rest_lengths(prism(140.0), prestress=20.0)
    found = find_rest_lengths(prism(140.0), prestress=20.0, move=0.2)
    tops = found.nodes[3:] if prism().node_names[3].startswith("top") else found.nodes[1::2]
    singular = np.linalg.svd(equilibrium_matrix(prism(140.0), found.nodes), compute_uv=False)
    assert tops.shape == (3, 3)
    assert singular[-1] < 1e-9 * singular[0]  # a self-stress that the nodes given do not have


def test_tendons_that_would_push_are_named() -> None:
    nodes = {"left": [-1.0, 0.0, 0.0], "right": [1.0, 0.0, 0.0], "middle": [2.0, 0.0, 0.0]}
    members = [("one", "tendon", "left", "middle", 1e3, 1.0), ("other", "tendon", "right", "middle", 1e3, 1.0)]
    line = make_structure(nodes, members, fixed=("left", "right"))
    with pytest.raises(NoEquilibriumError, match=r"no tensions balance in which every tendon pulls: (one|other)"):
        find_rest_lengths(line, prestress=10.0)


def test_a_mean_that_the_weight_does_not_allow_is_refused_with_those_that_it_allows() -> None:
    corners = {"a": [-3.0, -3.0, 4.0], "b": [3.0, -3.0, 4.0], "c": [3.0, 3.0, 4.0], "d": [-3.0, 3.0, 4.0]}
    members = [(f"to_{name}", "tendon", name, "load", 1e4, 4.0) for name in corners]
    hanging = make_structure(
        {**corners, "load": [0.5, 0.2, 0.0]}, members, fixed=tuple(corners), node_masses={"load": 10.0},
        gravity=(0.0, 0.0, -9.81),
    )  # fmt: skip
    with pytest.raises(NoEquilibriumError, match=r"weight and loads allow means of [\d.]+ to [\d.]+ N"):
        find_rest_lengths(hanging, prestress=200.0)
    tension = find_rest_lengths(hanging, tensions={"to_a": 30.0}).tensions
    assert tension.min() > 0.0 and tension[0] == pytest.approx(30.0)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({}, "give the prestress"),
        ({"prestress": -1.0}, "above zero"),
        ({"tensions": {"sides_0": 1.0}}, "Did you mean 'side_0'"),
        ({"tensions": {"side_0": -1.0}}, "not below zero"),
        ({"prestress": 1.0, "move": -1.0}, "zero or more"),
        ({"prestress": 1e4}, "more than its length|stiffer"),
    ],
)
def test_impossible_requests_are_refused_by_name(asked: dict, said: str) -> None:
    with pytest.raises(TensegrityError, match=said):
        find_rest_lengths(prism(), **asked)


STAY = """kind: structure
name: stay
gravity: [0, 0, 0]
nodes:
  left: {position: [-1, 0, 0], fixed: true}
  right: {position: [1, 0, 0], fixed: true}
  middle: {position: [0.2, 0, 0]}
defaults: {tendon: {stiffness: 1000}}
form: FORM
members:
  - {name: one, kind: tendon, nodes: [left, middle]}
  - {name: other, kind: tendon, nodes: [middle, right]}
"""


def test_form_of_a_robot_file_gives_its_members_their_rest_lengths() -> None:
    structure = parse_robot(STAY.replace("FORM", '{prestress: "12 N"}')).structure
    assert structure.rest_lengths == pytest.approx([1.2 - 0.012, 0.8 - 0.012])


def test_form_of_a_robot_file_is_refused_with_its_line() -> None:
    with pytest.raises(RobotFileError, match=r"robot.yaml:9: form.tensions.ones: .*'one'"):
        parse_robot(STAY.replace("FORM", "{tensions: {ones: 3}}"))
    with pytest.raises(RobotFileError, match=r"robot.yaml:9: form: give the prestress"):
        parse_robot(STAY.replace("FORM", "{}"))


STAR = """
kind: structure
name: star
gravity: [0, 0, -9.80665]
nodes:
  hub: {position: [0, 0, 0.25]}
  one: {position: [0.5, 0, 0]}
  two: {position: [-0.25, 0.4330127, 0]}
  three: {position: [-0.25, -0.4330127, 0]}
  top: {position: [AWAY, 0, 0.7], mass: 0.4}
defaults:
  bar: {stiffness: 1.0e+6, mass: 0.3}
  tendon: {stiffness: 1500}
form: {prestress: 25}
members:
  - {name: arm_1, kind: bar, nodes: [hub, one]}
  - {name: arm_2, kind: bar, nodes: [hub, two]}
  - {name: arm_3, kind: bar, nodes: [hub, three]}
  - {name: arm_4, kind: bar, nodes: [hub, top]}
  - {name: edge_1, kind: tendon, nodes: [one, two]}
  - {name: edge_2, kind: tendon, nodes: [two, three]}
  - {name: edge_3, kind: tendon, nodes: [three, one]}
  - {name: stay_1, kind: tendon, nodes: [one, top]}
  - {name: stay_2, kind: tendon, nodes: [two, top]}
  - {name: stay_3, kind: tendon, nodes: [three, top]}
contact: {stiffness: 1.0e+4}
"""


@pytest.mark.parametrize("away", [0.0, 0.1])
def test_what_stands_free_keeps_its_shape_on_the_feet_that_carry_it(away: float) -> None:
    """Rest lengths at nodes that the ground alone holds: it sinks as a rigid body does, and nothing else changes."""
    robot = parse_robot(STAR.replace("AWAY", f"{away}"))
    desired, pulls = robot.structure.nodes, robot.structure.unilateral
    shape = forward_kinematics(robot)
    assert np.mean(shape.tensions[pulls]) == pytest.approx(25.0, rel=2e-3)
    loads = robot.structure.lumped_masses() * 9.80665
    feet = desired[1:4]
    # three feet: each carries its barycentric part of the weight
    parts = np.linalg.solve(np.vstack((np.ones(3), feet[:, :2].T)), [1.0, *(loads @ desired[:, :2] / loads.sum())])
    np.testing.assert_allclose(-shape.nodes[1:4, 2], parts * loads.sum() / 1e4, rtol=2e-3)
    apart = [np.linalg.norm(each[:, None] - each[None, :], axis=2) for each in (desired, shape.nodes)]
    np.testing.assert_allclose(apart[1], apart[0], atol=2e-5)


def test_a_desired_shape_that_falls_over_is_refused_with_its_feet() -> None:
    with pytest.raises(RobotFileError, match=r"robot.yaml:.*form: .*does not stand on one, two, three, its lowest"):
        parse_robot(STAR.replace("AWAY", "2.0"))


def test_a_shape_whose_weight_nothing_carries_is_refused() -> None:
    with pytest.raises(NoEquilibriumError, match=r"nothing carries the weight and loads of 5.89 N"):
        find_rest_lengths(prism(gravity=-9.81), prestress=50.0)


MAST = """
kind: structure
name: mast
nodes:
  root: {position: [0, 0, 0], fixed: true}
  tip: {position: [0, 0, 0.5], mass: 0.05}
defaults: {bar: {stiffness: 10000, mass: 0.3}, tendon: {stiffness: STIFFNESS}}
form: {prestress: 3}
members: [{name: mast, kind: bar, nodes: [root, tip]}]
repeat:
  count: 5
  about: z
  nodes: {anchor_$: {position: [0.4, 0, 0], fixed: true}}
  members: [{name: stay_$, kind: tendon, nodes: [anchor_$, tip]}]
"""


@pytest.mark.parametrize("stiffness", [8.0, 12.0])
def test_check_says_when_the_structure_does_not_stay_at_its_desired_nodes(stiffness: float) -> None:
    """Sideways: stays T/L (1 - c^2/2) + K c^2/2 each, c the cosine of their slope, against the load of the mast."""
    robot = parse_robot(MAST.replace("STIFFNESS", str(stiffness)))
    length = float(np.hypot(0.4, 0.5))
    flat = (0.4 / length) ** 2
    pressed = 5.0 * 3.0 * 0.5 / length + (0.05 + 0.15) * 9.80665
    sideways = 5.0 * (3.0 / length * (1.0 - flat / 2.0) + stiffness * flat / 2.0) - pressed / 0.5
    notes = type_of(robot).report(robot).check().notes
    said = [note for note in notes if "does not stay there" in note]
    assert bool(said) == (sideways < 0.0)
    if said:
        assert f"softest {sideways:.2g}" in said[0].replace(f"{sideways:.3g}", f"{sideways:.2g}")
        assert "tip 1000.39 mm away" in said[0]


BRACED = """
kind: structure
name: braced
nodes:
  a: {position: [0, 0, 0], fixed: true}
  b: {position: [1, 0, 0], fixed: [y, z]}
  c: {position: [1, 0, 1], fixed: [y], mass: 1}
  d: {position: [0, 0, 1], fixed: [y], mass: 1}
defaults: {bar: {stiffness: 1e5}}
form: {tensions: {ac: 30}}
members:
  - {name: ab, kind: bar, nodes: [a, b]}
  - {name: bc, kind: bar, nodes: [b, c]}
  - {name: cd, kind: bar, nodes: [c, d]}
  - {name: da, kind: bar, nodes: [d, a]}
  - {name: ac, kind: bar, nodes: [a, c]}
  - {name: bd, kind: bar, nodes: [b, d]}
outputs: [{name: corner, nodes: {c: [0, 0, 0]}, controlled: [x, z]}]
"""


def test_check_shows_the_elastic_shape_of_bars_that_cannot_be_rigid() -> None:
    report = type_of(parse_robot(BRACED)).report(parse_robot(BRACED)).check()
    assert report.figures["shape"]["stable"] and report.figures["shape"]["tensions_N"]["ac"] == pytest.approx(30.0)
    assert report.figures["shape_with_rigid_bars"] is None
    assert any("ROS nodes do not take it: the rigid bars do not all fit here: ac is" in note for note in report.notes)
