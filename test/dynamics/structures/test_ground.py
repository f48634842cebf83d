"""Structures on their ground, in simulation and at rest: laws of contact, friction, energies, how they stand."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensegrity_dynamics import Simulation, forward_kinematics, load_robot, start_up
from tensegrity_dynamics.contact.ground import LAWS, Ground, HeightField
from tensegrity_dynamics.contact.ground_forces import depth, flatten, normal_law, point_force
from tensegrity_dynamics.errors import NoEquilibriumError, TensegrityError
from tensegrity_dynamics.structures.analysis.support import find_support, tipping_slope
from tensegrity_dynamics.structures.structure import make_structure
from tensegrity_dynamics.visualization.markers import MarkerDrawer
from tensegrity_dynamics.visualization.picture import make_picture

pytestmark = pytest.mark.filterwarnings("ignore::tensegrity_dynamics.errors.AccuracyWarning")
G = 9.80665
WEIGHT = 6.0 * G
SIX_BAR = load_robot("six_bar").structure
INTEGRATORS = ("rk4", "rattle", "implicit")


def on(structure=SIX_BAR, **changes):
    """The structure with another ground."""
    return replace(structure, ground=replace(structure.ground, **changes))


@lru_cache
def standing(rigid_bars: bool = True):
    return forward_kinematics(SIX_BAR, rigid_bars=rigid_bars)


def ball(ground: Ground, mass: float = 1.0, gravity: float = 0.0, at: float = 0.0):
    """A point mass: a node that nothing holds, since its tendon is slack."""
    return make_structure(
        {"post": (0, 0, 5), "ball": (0, 0, at)}, [("loose", "tendon", "post", "ball", 1.0, 50.0)], fixed=["post"],
        node_masses={"ball": mass}, gravity=(0, 0, -gravity), ground=ground,
    )  # fmt: skip


# -- the laws ------------------------------------------------------------------------

HILLS = HeightField(0.05 * np.random.default_rng(3).normal(size=(7, 9)), np.array([-0.4, -0.3]), 0.1)
GROUNDS = [
    Ground(1e4),
    Ground(1e4, "exponential", length=0.05),
    Ground(1e4, "softplus", smoothness=2e-3),
    Ground(1e4, slope=0.3, downhill=0.7, height=0.1),
    Ground(1e4, hills=HILLS, height=0.02),
    Ground(1e4, "softplus", smoothness=1e-3, hills=HILLS),
]


@pytest.mark.parametrize("ground", GROUNDS, ids=lambda g: f"{g.law}{'-hills' if g.hills else ''}{g.slope:g}")
@given(x=st.floats(-0.35, 0.35), y=st.floats(-0.25, 0.25), below=st.floats(-0.02, 0.03))
@settings(max_examples=25, deadline=None)
def test_the_force_is_the_slope_of_the_energy(ground, x, y, below) -> None:
    flat, away, force, out = flatten(ground), np.zeros(3), np.zeros(3), np.zeros(6)

    def energy(point):
        return normal_law(flat, depth(flat, *point, away))[2]

    at = np.array([x, y, 0.0])
    at[2] = depth(flat, x, y, 0.0, away) / away[2] - below
    point_force(flat, *at, np.zeros(3), 0.0, away, force, out)
    h = 1e-6
    slopes = [-(energy(at + h * unit) - energy(at - h * unit)) / (2 * h) for unit in np.eye(3)]
    deep = depth(flat, *at, away)
    if ground.law == "softplus" or abs(deep) > 2e-6:
        np.testing.assert_allclose(force, slopes, atol=2e-4 * ground.stiffness * (abs(below) + 1e-3))


@pytest.mark.parametrize("law", LAWS)
def test_the_slope_of_a_law_is_its_derivative(law: str) -> None:
    flat = flatten(Ground(1e4, law, smoothness=1e-3, length=0.01))
    for deep in (-3e-3, -1e-4, 1e-4, 2e-3, 0.05, 0.5):
        h = 1e-7
        change = (normal_law(flat, deep + h)[0] - normal_law(flat, deep - h)[0]) / (2 * h)
        assert normal_law(flat, deep)[1] == pytest.approx(change, rel=1e-5, abs=1e-6)


@given(
    law=st.sampled_from(LAWS), deep=st.floats(-0.01, 0.05), damping=st.floats(0, 1e4), mu=st.floats(0, 3),
    v=st.tuples(*[st.floats(-20, 20)] * 3), slope=st.floats(0, 1.4), horizon=st.sampled_from([0.0, 1e-3]),
)  # fmt: skip
@settings(max_examples=200, deadline=None)
def test_contact_never_pulls_and_friction_stays_within_its_cone_and_takes_energy(
    law, deep, damping, mu, v, slope, horizon
) -> None:
    ground = Ground(1e4, law, damping=damping, friction=mu, slope=slope)
    away, force, out = np.zeros(3), np.zeros(3), np.zeros(6)
    point_force(flatten(ground), *(-deep * ground.normal), np.array(v), horizon, away, force, out)
    normal = float(force @ ground.normal)
    across = force - normal * ground.normal
    sliding = np.array(v) - (np.array(v) @ ground.normal) * ground.normal
    assert normal >= -1e-9 * np.linalg.norm(force)
    assert np.linalg.norm(across) <= mu * normal * (1 + 1e-9) + 1e-9
    assert float(across @ sliding) <= 1e-9 and out[2] >= 0.0


# -- one point mass ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "integrator", [pytest.param(each, marks=pytest.mark.long) if each == "implicit" else each for each in INTEGRATORS]
)
@pytest.mark.parametrize("damping", [0.0, 60.0])
def test_impact_of_a_point_mass_follows_the_closed_form(integrator: str, damping: float) -> None:
    """m x'' + c x' + k x = 0 from x = 0 at speed v: deepest point and largest force of the spring."""
    k, m, v = 1e4, 1.0, 0.5
    simulation = Simulation(ball(Ground(k, damping=damping)), 2e-5, integrator, start=[[0, 0, 5], [0, 0, 0]])
    simulation.set_motion([[0, 0, 0], [0, 0, -v]])
    decay, turn = damping / (2 * m), np.sqrt(k / m - (damping / (2 * m)) ** 2)
    depths = []
    for _ in range(1200):
        simulation.advance(1)
        depths.append(-simulation.state.nodes[1, 2])
        if depths[-1] < max(depths):
            break
    when = np.arctan(turn / decay) / turn if damping else 0.5 * np.pi / turn
    deepest = v / turn * np.exp(-decay * when) * np.sin(turn * when)
    assert max(depths) == pytest.approx(deepest, rel=2e-3)
    assert 2e-5 * np.argmax(depths) == pytest.approx(when, rel=2e-2)


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_a_block_on_a_slope_creeps_below_the_angle_of_friction_and_slides_above_it(integrator: str) -> None:
    slow, mu = 1e-3, 0.2
    for degrees, slides in ((np.degrees(np.arctan(mu)) - 0.1, False), (np.degrees(np.arctan(mu)) + 0.1, True)):
        tilt = np.radians(degrees)
        ground = Ground(1e4, damping=100.0, friction=mu, friction_speed=slow, slope=tilt)
        simulation = Simulation(ball(ground, gravity=G), 1e-3, integrator, start=[[0, 0, 5], [0, 0, 0]])
        simulation.advance(duration=3.0)
        early = np.linalg.norm(simulation.state.velocities[1])
        simulation.advance(duration=3.0)
        late = np.linalg.norm(simulation.state.velocities[1])
        part = np.tan(tilt) / mu
        if slides:
            assert late > 10 * slow and late > 1.5 * early
        else:
            assert late < 10 * slow
            assert late == pytest.approx(slow * part / np.sqrt(1 - part * part), rel=0.05)


@pytest.mark.parametrize("integrator", INTEGRATORS[:2])
def test_what_sticks_on_a_slope_moves_by_the_creep_of_the_law_whatever_the_step(integrator: str) -> None:
    """Positions, not velocities: friction as a step of its own lets a block go half a step's pull too far in each."""
    slow, mu, tilt = 1e-3, 0.5, np.radians(5.0)
    structure = ball(Ground(1e4, damping=100.0, friction=mu, friction_speed=slow, slope=tilt), gravity=G)
    part = np.tan(tilt) / mu
    for step in (2e-3, 5e-4):
        simulation = Simulation(structure, step, integrator, start=[[0, 0, 5], [0, 0, 0]])
        simulation.advance(duration=0.5)
        begin = simulation.state.nodes[1]
        simulation.advance(duration=0.5)
        crept = np.linalg.norm(simulation.state.nodes[1] - begin) / 0.5
        assert crept == pytest.approx(slow * part / np.sqrt(1 - part * part), rel=0.01)


@pytest.mark.parametrize("integrator", INTEGRATORS[:2])
def test_sliding_feet_are_integrated_to_second_order(integrator: str) -> None:
    """Six bars pushed off and spinning: a quarter of the step leaves a tenth of the error or less, not a quarter."""
    nodes = standing().nodes
    velocities = np.array((0.4, 0.2, 0.0)) + np.cross((0.0, 0.0, 1.0), nodes - nodes.mean(axis=0))

    def end(step: float) -> np.ndarray:
        simulation = Simulation(SIX_BAR, step, integrator, start=standing())
        simulation.set_motion(velocities)
        simulation.advance(duration=0.05)
        assert simulation.energy().friction > 0.1
        assert abs(simulation.energy_error) < 2e-3
        return simulation.state.nodes

    exact = end(1e-3 / 16)
    errors = [float(np.abs(end(step) - exact).max()) for step in (1e-3, 2.5e-4)]
    assert errors[1] < errors[0] / 8.0 and errors[0] < 4e-5


@pytest.mark.parametrize("law", LAWS)
def test_a_block_sinks_as_far_as_its_law_says(law: str) -> None:
    k, b, a, f = 1e4, 1e-3, 0.01, G / 1e4
    ground = Ground(k, law, damping=200.0, smoothness=b, length=a)
    simulation = Simulation(ball(ground, gravity=G), 5e-4, "rattle", start=[[0, 0, 5], [0, 0, 0]])
    simulation.advance(duration=3.0)
    expected = {"linear": f, "exponential": a * np.log1p(f / a), "softplus": f - b * b / (4 * f)}[law]
    assert -simulation.state.nodes[1, 2] == pytest.approx(expected, abs=1e-8)


# -- six bars ------------------------------------------------------------------------


def test_six_bars_stand_on_three_feet_which_carry_them_alike() -> None:
    shape = standing()
    assert shape.converged and shape.stable
    support = find_support(shape)
    assert support is not None and set(support.feet) == {"n1", "n5", "n9"}
    np.testing.assert_allclose(support.forces[:, 2], WEIGHT / 3, rtol=1e-9)
    np.testing.assert_allclose(shape.nodes[[0, 4, 8], 2], -WEIGHT / 3 / 1e4, atol=1e-8)
    assert support.carried == pytest.approx(WEIGHT, rel=1e-9)


def test_soft_ground_is_sunk_into_by_the_weight_less_what_it_exerts_on_the_raised_nodes() -> None:
    beta, k = 1e-3, 1e4
    shape = forward_kinematics(on(law="softplus", smoothness=beta), rigid_bars=True)
    feet = [0, 4, 8]
    raised = np.delete(np.arange(12), feet)
    carried = WEIGHT - shape.contacts[raised].sum(axis=0)[2]
    assert 0.0 < WEIGHT - carried < 0.1  # about 0.04 N
    f = carried / (3 * k)
    np.testing.assert_allclose(shape.nodes[feet, 2], -(f - beta**2 / (4 * f)), atol=1e-8)


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("law", ["linear", "softplus"])
def test_in_simulation_they_come_to_rest_where_statics_say(integrator: str, law: str) -> None:
    structure = on(law=law, damping=300.0, friction_speed=0.1)  # below it feet creep: here fast enough to wait for
    shape = forward_kinematics(structure, rigid_bars=True)
    simulation = Simulation(structure, 2e-3, integrator, start=shape.nodes + [0, 0, 0.02])
    simulation.advance(duration=25.0)
    state, seen = simulation.state, simulation.observe()
    np.testing.assert_allclose(state.nodes[:, 2], shape.nodes[:, 2], atol=1e-7)
    apart = [np.linalg.norm(n[:, None] - n[None, :], axis=2) for n in (state.nodes, shape.nodes)]
    np.testing.assert_allclose(apart[0], apart[1], atol=1e-7)
    np.testing.assert_allclose(sum(seen.contacts.values()), [0, 0, WEIGHT], atol=1e-6 * WEIGHT)
    for name, force in seen.contacts.items():
        np.testing.assert_allclose(force, shape.contacts[SIX_BAR.node(name)], atol=1e-4)


@pytest.mark.parametrize("integrator", ["rk4", "rattle"])
def test_a_drop_of_five_centimetres_balances_its_energy(integrator: str) -> None:
    fall = WEIGHT * 0.05
    simulation = Simulation(SIX_BAR, 1e-5, integrator, start=standing().nodes + [0, 0, 0.05])
    before = simulation.energy()
    simulation.advance(duration=0.8)
    after = simulation.energy()
    assert abs(after.balance - before.balance) < 1e-4 * fall
    assert after.damping > 0.3 * fall and after.friction > 0.0 and after.ground > 0.0


def test_start_up_ends_on_a_slope_where_friction_holds_the_feet() -> None:
    tilted = on(slope=np.radians(6.0), height=-0.08)
    rest = start_up(tilted)
    simulation = Simulation(tilted, integrator="rattle", start=rest.nodes)
    simulation.advance(duration=0.2)
    np.testing.assert_allclose(sum(simulation.observe().contacts.values()), [0.0, 0.0, WEIGHT], atol=0.05)
    # the feet, braced against each other, creep by the law's own speed of about 1 mm/s
    assert np.abs(simulation.state.nodes - rest.nodes).max() < 1e-3
    with pytest.raises(TensegrityError, match=r"on a slope of 6 deg a friction of 0\.1 holds nothing"):
        start_up(on(slope=np.radians(6.0), friction=0.1))


def test_start_up_comes_to_rest_in_a_hollow_without_friction() -> None:
    x = np.linspace(-2.0, 2.0, 21)
    hollow = HeightField(0.1 * (x[:, None] ** 2 + x**2) - 0.2, np.array([-2.0, -2.0]), 0.2)
    rest = start_up(on(hills=hollow, friction=0.0), tolerance=1e-3)
    assert rest.residual <= 1e-3 and not rest.slack


def test_friction_takes_nothing_on_ground_without_friction() -> None:
    simulation = Simulation(on(friction=0.0), 1e-4, "rattle", start=standing().nodes + [0, 0, 0.05])
    simulation.set_motion(np.tile([0.3, 0.0, 0.0], (12, 1)))
    simulation.advance(duration=0.5)
    velocity = simulation.state.velocities
    assert simulation.energy().friction == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(velocity.mean(axis=0)[:2], [0.3, 0.0], atol=1e-9)


def test_turned_ground_and_gravity_give_the_same_shape() -> None:
    """A slope is level ground under a gravity that leans the other way."""
    tilt = np.radians(8.0)
    cosine, sine = np.cos(tilt), np.sin(tilt)
    leant = SIX_BAR.nodes @ np.array([[cosine, 0, -sine], [0, 1, 0], [sine, 0, cosine]])
    slope = forward_kinematics(on(slope=tilt, friction=1.0), start=leant, rigid_bars=True)
    leaning = replace(SIX_BAR, gravity=np.array([G * np.sin(tilt), 0, -G * np.cos(tilt)]))
    level = forward_kinematics(on(leaning, friction=1.0), rigid_bars=True)
    pushes = [np.sort(np.linalg.norm(shape.contacts, axis=1)) for shape in (slope, level)]
    # steps are capped along the axes, so that it turns a little on its way to rest
    np.testing.assert_allclose(pushes[0], pushes[1], rtol=1e-3)
    np.testing.assert_allclose(np.sort(slope.tensions), np.sort(level.tensions), rtol=1e-3)


def test_what_the_ground_cannot_hold_is_refused_by_name() -> None:
    with pytest.raises(NoEquilibriumError, match=r"slides: .* needs a friction coefficient of 0\.36"):
        forward_kinematics(on(slope=np.radians(20.0), friction=0.2), rigid_bars=True)
    with pytest.raises(NoEquilibriumError, match="lift the structure off its ground"):
        forward_kinematics(SIX_BAR, forces={"n1": [0, 0, 100.0]})
    with pytest.raises(NoEquilibriumError, match="Give the robot a ground"):
        forward_kinematics(replace(SIX_BAR, ground=None))


def test_a_free_structure_is_stable_apart_from_its_rigid_motions() -> None:
    floating = replace(SIX_BAR, ground=None, gravity=np.zeros(3))
    for rigid in (False, True):
        shape = forward_kinematics(floating, rigid_bars=rigid)
        assert shape.stable and shape.softest > 100.0
    # all cables sqrt(3/8) L, rods sqrt(6) times the tension
    lengths = shape.lengths[SIX_BAR.unilateral]
    np.testing.assert_allclose(lengths, np.sqrt(3 / 8), atol=1e-9)
    np.testing.assert_allclose(shape.tensions[~SIX_BAR.unilateral] / shape.tensions[-1], -np.sqrt(6), atol=1e-9)


def test_on_hard_light_ground_it_tips_over_every_edge_at_the_angle_of_geometry() -> None:
    stiff = replace(SIX_BAR, gravity=np.array([0, 0, -1e-4]))
    support = find_support(forward_kinematics(stiff, rigid_bars=True))
    assert support is not None
    np.testing.assert_allclose(np.degrees(support.tipping), 22.208, atol=1e-3)
    assert support.margin == pytest.approx(np.sqrt(3 / 8) / (2 * np.sqrt(3)), rel=1e-4)


def test_wrong_ground_is_named() -> None:
    cases = [
        (dict(stiffness=0.0), "stiffness is 0"), (dict(stiffness=1.0, friction=-0.1), "friction is -0.1"),
        (dict(stiffness=1.0, smoothness=0.0), "smoothness is 0"),
        (dict(stiffness=1.0, law="hard"), "law of the ground"),
        (dict(stiffness=1.0, slope=np.pi / 2), "must be below 90 deg"), (dict(stiffness=np.nan), "stiffness is nan"),
    ]  # fmt: skip
    for values, message in cases:
        with pytest.raises(TensegrityError, match=message):
            Ground(**values)
    for heights, message in ([[0.0, 1.0]], "two rows"), ([[0.0, np.nan], [0.0, 0.0]], "row 0, column 1"):
        with pytest.raises(TensegrityError, match=message):
            HeightField(np.array(heights), np.zeros(2), 0.1)


@pytest.mark.parametrize(
    ("law", "values"),
    [("linear", {}), ("exponential", {"length": 2e-3}), ("softplus", {"smoothness": 1e-3})],
)
def test_a_foot_on_hills_stands_where_the_force_balances(law: str, values: dict) -> None:
    """A hollow holds a ball without friction: its deepest point, sunk in as the law says."""
    x, y = np.meshgrid(np.linspace(-1, 1, 21), np.linspace(-1, 1, 21))
    hollow = HeightField(0.2 * (x**2 + y**2), np.array([-1.0, -1.0]), 0.1)
    ground = Ground(1e4, law, damping=100.0, friction=0.0, viscous=5.0, hills=hollow, **values)
    simulation = Simulation(ball(ground, gravity=G), 5e-4, "rattle", start=[[0, 0, 5], [0.3, 0.2, 0.05]])
    simulation.advance(duration=20.0)
    at = simulation.state.nodes[1]
    f = G / 1e4
    sunk = {"linear": f, "exponential": 2e-3 * np.log1p(f / 2e-3), "softplus": f - 1e-6 / (4 * f)}[law]
    np.testing.assert_allclose(at, [0, 0, -sunk], atol=1e-6)
    np.testing.assert_allclose(simulation.observe().contacts["ball"], [0, 0, G], atol=1e-5)


def test_heights_and_positions_agree_at_the_given_points() -> None:
    flat = flatten(Ground(1.0, hills=HILLS, height=0.3))
    for row in (0, 3, 6):
        for column in (0, 4, 8):
            x, y = HILLS.origin + HILLS.spacing * np.array([column, row])
            away = np.zeros(3)
            assert depth(flat, x, y, HILLS.heights[row, column] + 0.3, away) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("edge", [(0, 4), (4, 8)])
def test_it_tips_in_simulation_at_the_slope_that_statics_name_for_its_sagged_shape(edge: tuple[int, int]) -> None:
    """Gravity leans over an edge of the base: the foot behind it lifts off at the same angle, well before 23.93 deg."""
    structure = on(friction=5.0)  # tips before it slides
    shape = forward_kinematics(structure, rigid_bars=True)
    i, j = edge
    (behind,) = {0, 4, 8} - {i, j}
    out = 0.5 * (shape.nodes[i] + shape.nodes[j]) - shape.nodes[behind]
    out = np.array([out[0], out[1], 0.0]) / np.hypot(out[0], out[1])
    limit = tipping_slope(shape, out, rigid_bars=True)
    assert np.degrees(limit) == pytest.approx(18.58, abs=0.02)

    def leaning(angle: float) -> np.ndarray:
        return G * (np.sin(angle) * out - np.cos(angle) * np.array([0, 0, 1]))

    below = forward_kinematics(structure, start=shape, gravity=leaning(limit - np.radians(0.2)), rigid_bars=True)
    foot = structure.node_names[behind]
    for beyond, stands in ((-0.2, True), (0.2, False)):
        gravity = leaning(limit + np.radians(beyond))
        simulation = Simulation(structure, 1e-3, "rattle", start=below.nodes, gravity=gravity)
        simulation.advance(duration=10.0)
        assert (foot in simulation.observe().contacts) == stands


def test_its_picture_shows_ground_and_the_forces_on_its_feet() -> None:
    robot = load_robot("six_bar")
    picture, shape = make_picture(robot), standing()
    lines = picture.contact_lines(shape.nodes)
    assert lines.shape == (3, 2, 3) and picture.surface is not None
    np.testing.assert_allclose(np.ptp(picture.surface[..., 2]), 0.0)
    pushes = lines[:, 1] - lines[:, 0]
    np.testing.assert_allclose(pushes, np.tile([0, 0, 0.25 * picture.sizes.span], (3, 1)), atol=1e-9)
    sliding = picture.contact_lines(shape.nodes, np.tile([1.0, 0.0, 0.0], (12, 1)))
    leaning = sliding[:, 1] - sliding[:, 0]
    np.testing.assert_allclose(leaning[:, 0], -0.5 * leaning[:, 2], rtol=1e-5)  # friction 0.5, against the motion
    drawn = MarkerDrawer(picture).draw(picture.at(shape.nodes), shape.tensions, contacts=lines)
    assert {"ground", "contacts"} <= {marker.namespace for marker in drawn}
    assert len(picture.contact_lines(shape.nodes + [0, 0, 1])) == 0
