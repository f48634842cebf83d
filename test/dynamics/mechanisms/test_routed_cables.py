"""Routed cables: closed forms of pulleys and capstans, virtual work, energy, drums, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tensegrity_dynamics import RobotFileError, Simulation, TensegrityError, parse_robot
from tensegrity_dynamics.errors import NoEquilibriumError
from tensegrity_dynamics.mechanisms.dynamics.equations_of_motion import evaluate
from tensegrity_dynamics.mechanisms.kinematics.configuration_space import displaced
from tensegrity_dynamics.mechanisms.mechanism_model import MechanismModel
from tensegrity_dynamics.mechanisms.mjcf import mechanism_mjcf
from tensegrity_dynamics.mechanisms.route_readings import read_routes
from tensegrity_dynamics.mechanisms.routing.columns import ELASTIC, SLIP, TENSION, TOUCHES, TRIAL
from tensegrity_dynamics.mechanisms.statics.equilibrium_solver import MechanismEquilibriumSolver
from tensegrity_dynamics.mechanisms.workspace import make_workspace
from tensegrity_dynamics.robots.robot_types import type_of
from tensegrity_dynamics.visualization.picture import make_picture
from tensegrity_tools.experiments import routing

PLANE = """
name: plane
kind: mechanism
gravity: [0, 0, 0]
bodies:
  first: {{mass: 1, inertia: [1, 1, 1]}}
  second: {{mass: 1, inertia: [1, 1, 1]}}
  sheave: {{mass: 0.5, inertia: [0.1, 0.1, 0.1]}}
joints:
  - {{name: firstJt, kind: floating, parent: world, body: first, start: [{a}]}}
  - {{name: secondJt, kind: floating, parent: world, body: second, start: [{b}]}}
  - {{name: sheaveJt, kind: revolute, parent: first, body: sheave, axis: [0, 1, 0], frame: {{at: [0.1, 0, 0.4]}}}}
routed_cables:
  - {{name: rope, young: 1e7, cable_radius: 0.002, strain: 0.01, damping: {damping}, route: [{route}]}}
"""


def elements(sign, friction, order=1):
    """A route in the plane y = 0 over a sheave of one body and a pulley of the other, crossing over between them."""
    points = [
        "{body: world, at: [-0.5, 0, -0.3]}",
        f"{{body: first, at: [-0.35, 0, 0], axis: [0, 1, 0], radius: 0.08, side: {sign}{friction}}}",
        f"{{joint: sheaveJt, radius: 0.07, side: {sign}}}",
        f"{{body: second, at: [0, 0, 0.05], axis: [0, -1, 0], radius: 0.1, side: {sign}{friction}}}",
        "{body: second, at: [0.4, 0, -0.2]}",
    ]
    return ", ".join(points[::order])


def plane(a=(0, 0, 0.5), b=(1.2, 0, 0.1), sign=1, friction="", damping=0.0, order=1):
    text = PLANE.format(
        a=", ".join(map(repr, a)), b=", ".join(map(repr, b)), damping=damping, route=elements(sign, friction, order)
    )
    return parse_robot(text, "here").model_as(MechanismModel)


def state_of(model, q=None, v=None, work=None):
    mechanism = model.mechanism
    work = make_workspace(mechanism.flat) if work is None else work
    still = np.zeros(mechanism.velocity_count)
    evaluate(mechanism.flat, np.array(model.start if q is None else q), still if v is None else v, work)
    return work


DRAGGED = "\nactuators: [{{drives: slide, position: [-0.01, 0.01], rate: 1, effort: 5000}}]\n"

# -- closed forms ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("heavy", "friction", "slips"), [(2.0, 1.0, False), (5.0, 0.05, True)])
def test_an_atwood_machine_accelerates_by_the_form_with_strain(heavy, friction, slips):
    near, far = (routing.atwood(heavy=heavy, friction=friction, young=young, duration=0.02) for young in (1e10, 1e9))
    assert near["slips"] is slips
    assert max(near["error"], far["error"]) < 1e-8
    assert far["from_rigid"] == pytest.approx(10.0 * near["from_rigid"], rel=1e-2)
    if slips:
        assert near["ratio"] == pytest.approx(near["bound"], rel=1e-9)
    else:
        assert near["rigid"] == pytest.approx((heavy - 1) * routing.GRAVITY / (heavy + 1 + 0.01 / 0.1**2))


def test_a_bearing_that_rubs_slows_an_atwood_machine_by_its_moment():
    near, far = (routing.atwood(bearing=0.3, young=young, duration=0.02) for young in (1e10, 1e9))
    assert max(near["error"], far["error"]) < 1e-8
    assert near["rigid"] == pytest.approx((9.80665 - 0.3 / 0.1) / (3.0 + 0.01 / 0.1**2))
    assert far["from_rigid"] == pytest.approx(10.0 * near["from_rigid"], rel=1e-2)


def test_a_sliding_tendon_keeps_the_ratio_of_euler_and_eytelwein():
    found = routing.capstan()
    assert found["slips"] >= 4
    assert found["ratio_error"] < 1e-9


def test_a_cable_over_twenty_guides_multiplies_their_ratios():
    assert routing.chain()["error"] < 1e-9


def test_the_loop_of_a_dragged_tendon_has_the_area_of_its_closed_form():
    assert routing.hysteresis(steps=200)["error"] < 1e-5


def test_a_servo_that_drags_a_tendon_to_and_fro_works_as_much_as_the_area_of_its_loop():
    """Its effort is held over a step: it works effort times way of every step, no mean of the efforts of two steps."""
    text = routing.GUIDE.replace("[0.05, 0, -0.4]", "[-0.05, 0, -0.4]") + DRAGGED
    robot = parse_robot(text.format(mass=1, spring=0, rest=0, damping=0, side=1, friction=0.3), "here")
    simulation = Simulation(robot, 1e-3, start="file")
    ends, works, seen = [], [], simulation.state
    for k in range(1, 601):
        simulation.command("position", {"slide": 1.5e-3 * np.sin(2.0 * np.pi * k / 400)})
        before, seen = seen, simulation.advance(1)
        if before.v[0] * seen.v[0] <= 0.0 and k > 50:  # turns within the step
            ends.append(before.q[0] + 0.5e-3 * before.v[0] ** 2 / (before.v[0] - seen.v[0]))
        if k in (200, 600):
            works.append(simulation.energy())
    heat = works[1].friction - works[0].friction
    assert heat == pytest.approx(works[1].actuators - works[0].actuators, rel=1e-7)
    area = routing.loop_area(robot.model_as(MechanismModel), 0.3, min(ends), max(ends))
    assert heat == pytest.approx(area, rel=2e-6)


def test_nothing_creeps_at_a_guide_that_sticks():
    assert routing.creep(duration=0.5) == 0.0


@pytest.mark.long
def test_nothing_creeps_in_ten_seconds():
    assert routing.creep() < 1e-12


def crane(falls: int, young: float, radius: float, height: float, mass: float) -> str:
    """Robot file of a hook block that hangs on `falls` (even) lines of a rope from a drum."""
    sheaves, route = range(falls // 2), ""
    for k in sheaves:
        route += f"      - {{body: hook, at: [{0.2 * k - 0.1}, 0, 0], radius: 0.05, side: -1, axis: [0, 1, 0]}}\n"
        if k < falls // 2 - 1:
            route += f"      - {{body: world, at: [{0.2 * k}, 0, {height}], radius: 0.05, side: 1, axis: [0, 1, 0]}}\n"
    return f"""
kind: mechanism
name: crane
gravity: [0, 0, -9.81]
bodies: {{drum: {{mass: 8, inertia: [0.1, 0.1, 0.1]}}, hook: {{mass: {mass}, inertia: [1, 1, 1]}}}}
joints:
  - {{name: drumJt, kind: revolute, parent: world, body: drum, axis: [0, 1, 0], frame: {{at: [-0.5, 0, {height}]}}}}
  - {{name: slide, kind: prismatic, parent: world, body: hook, axis: [0, 0, 1], frame: {{at: [0, 0, 1]}}}}
routed_cables:
  - name: rope
    young: {young}
    cable_radius: {radius}
    tension: 150
    route:
      - {{joint: drumJt, radius: 0.08, side: 1}}
{route}      - {{body: world, at: [{0.1 * falls - 0.1}, 0, {height}]}}
actuators:
  - {{name: winch, drives: drumJt, position: [-60, 60], rate: 3, effort: 600}}
"""


@given(
    falls=st.sampled_from([2, 4, 6, 8]), young=st.floats(1e9, 2e11), radius=st.floats(0.001, 0.008),
    height=st.floats(2.0, 30.0), mass=st.floats(5.0, 500.0), turn=st.floats(-3.0, 3.0),
)  # fmt: skip
@settings(max_examples=30, deadline=None, derandomize=True)
def test_a_crane_rests_on_all_its_falls(falls, young, radius, height, mass, turn):
    robot = parse_robot(crane(falls, young, radius, height, mass))
    model = robot.model_as(MechanismModel)
    shape = MechanismEquilibriumSolver(robot.mechanism, ["drumJt"]).solve(model.start, {"drumJt": turn})
    weight = 9.81 * mass
    assert abs(shape.effort[0]) / 0.08 * falls >= weight  # lines that lean carry somewhat more
    assert shape.residual < 1e-9 * (weight + np.pi * radius**2 * young)


@pytest.mark.parametrize("sheaves", [1, 4, 11])
def test_a_block_and_tackle_shares_its_load_among_its_lines(sheaves):
    found = routing.tackle(sheaves)
    assert found["tension_error"] < 1e-9
    assert found["sink_error"] < 1e-8


def test_a_drum_of_three_layers_pays_out_its_exact_length():
    assert routing.drum()["error"] < 1e-12


@pytest.mark.long
def test_stick_and_slip_keep_the_energy_balance_for_ten_seconds():
    found = routing.stick_slip()
    assert found["events"] > 3
    assert found["balance"] < 1e-6


def test_stick_and_slip_keep_the_energy_balance():
    found = routing.stick_slip(0.3)
    assert found["events"] >= 5
    assert found["balance"] < 1e-7


# -- laws -----------------------------------------------------------------------------------------------------------

SHIFT = st.floats(-0.15, 0.15)


@settings(max_examples=8, deadline=None)
@given(x=SHIFT, z=SHIFT, turn=st.floats(-0.5, 0.5), friction=st.sampled_from(["", ", friction: 0.4"]))
def test_forces_are_the_gradient_of_the_stored_energy(x, z, turn, friction):
    model = plane(a=(x, 0, 0.5 + z), b=(1.2 + z, 0, 0.1 + x), friction=friction)
    mechanism = model.mechanism
    efforts = state_of(model).passive.copy()
    for d, name in enumerate(mechanism.coordinate_names()):
        if name.endswith((".wx", ".wz", ".vy")):
            continue  # out of the plane, where pulleys do not let a cable go
        change = np.zeros(mechanism.velocity_count)
        energies = []
        for sign in (1.0, -1.0):
            change[d] = sign * 1e-6
            energies.append(state_of(model, displaced(mechanism, model.start, change)).route_results[0, ELASTIC])
        assert efforts[d] == pytest.approx(-(energies[0] - energies[1]) / 2e-6, rel=1e-6, abs=1e-5)


@settings(max_examples=6, deadline=None)
@given(x=SHIFT, z=SHIFT)
def test_a_cable_followed_from_its_other_end_pulls_alike(x, z):
    forward = plane(a=(x, 0, 0.5 + z))
    backward = plane(a=(x, 0, 0.5 + z), sign=-1, order=-1)
    assert np.allclose(state_of(forward).passive, state_of(backward).passive, rtol=1e-9, atol=1e-9)


def test_mirrored_machines_pull_alike():
    one = plane(a=(0.05, 0, 0.5), b=(1.2, 0, 0.1))
    text = PLANE.format(a="0.05, 0, 0.5", b="1.2, 0, 0.1", damping=0.0, route=elements(1, ""))
    # z -> -z: points are mirrored, axes keep their direction and sides change
    for old, new in (
        ("-0.3]}", "0.3]}"), ("0.4]}}", "-0.4]}}"), ("0.05], axis", "-0.05], axis"), ("-0.2]}]", "0.2]}]"),
        ("side: 1", "side: -1"), ("0.05, 0, 0.5", "0.05, 0, -0.5"), ("1.2, 0, 0.1", "1.2, 0, -0.1"),
    ):  # fmt: skip
        text = text.replace(old, new) if old != "0.4]}}" else text.replace("at: [0.1, 0, 0.4]", "at: [0.1, 0, -0.4]")
    other = parse_robot(text, "here").model_as(MechanismModel)
    a, b = state_of(one).passive, state_of(other).passive
    # rotations about y and forces along z change their sign
    signs = np.array([-1, -1, -1, 1, 1, -1, -1, -1, -1, 1, 1, -1, -1])
    assert np.allclose(a, signs * b, rtol=1e-9, atol=1e-9)


def free_route(route, starts, young, strain):
    """A cable over points and pulleys of three free bodies, in the plane y = 0."""
    bodies = ", ".join(f"b{k}: {{mass: 1, inertia: [1, 1, 1]}}" for k in range(3))
    joints = ", ".join(
        f"{{name: j{k}, kind: floating, parent: world, body: b{k}, start: [{x}, 0, {z}, 0, 0, 0]}}"
        for k, (x, z) in enumerate(starts)
    )
    points = ", ".join(
        f"{{body: b{body}, at: [{x}, 0, {z}]"
        + (f", axis: [0, 1, 0], radius: {radius}, side: {side}, may_be_clear: true}}" if radius else "}")
        for body, x, z, radius, side in route
    )
    return parse_robot(f"""
name: free
kind: mechanism
gravity: [0, 0, 0]
bodies: {{{bodies}}}
joints: [{joints}]
routed_cables: [{{name: rope, young: {young}, cable_radius: 0.001, strain: {strain}, route: [{points}]}}]
""").model_as(MechanismModel)


@settings(max_examples=12, deadline=None, phases=(Phase.generate,))
@given(
    places=st.lists(
        st.tuples(SHIFT, SHIFT, st.sampled_from([0.0, 0.02, 0.13]), st.sampled_from([1, -1])), min_size=1, max_size=6
    ),
    young=st.floats(4, 12), strain=st.floats(-6, -1.5), nearer=st.floats(-0.02, 0.3), seed=st.integers(0, 1000),
)  # fmt: skip
def test_any_route_does_virtual_work_gives_no_momentum_and_is_the_same_mirrored_and_from_its_other_end(
    places, young, strain, nearer, seed
):
    """Bodies a metre apart in a zigzag, so that pulleys do not overlap; slack ones pull nothing."""
    starts = [(0.0, 0.0), (1.0, 0.7), (2.0, 0.0)]
    bodies = [0, *(1 + k % 2 for k in range(len(places))), 0]  # each on another body than the one before
    ends = (0.1, -0.05, 0.0, 1), (-0.1, 0.05, 0.0, 1)
    route = [(b, *rest) for b, rest in zip(bodies, [ends[0], *places, ends[1]], strict=True)]
    young, strain = 10.0**young, 10.0**strain
    model = free_route(route, starts, young, strain)
    q = np.array(model.start)
    q[7] -= nearer  # the second body comes along x
    work = state_of(model, q)
    forces = work.passive.reshape(3, 6)
    most = max(float(np.abs(forces).max()), 1e-12 * young * np.pi * 1e-6)
    if work.route_state[0, TENSION] == 0.0:
        assert not work.passive.any()
    direction = np.zeros((3, 6))
    direction[:, [1, 3, 5]] = np.random.default_rng(seed).normal(size=(3, 3))
    energies = [
        state_of(model, displaced(model.mechanism, q, sign * 1e-6 * direction.ravel())).route_results[0, ELASTIC]
        for sign in (1.0, -1.0)
    ]
    assert work.passive @ direction.ravel() == pytest.approx((energies[1] - energies[0]) / 2e-6, abs=2e-5 * most)
    at = q.reshape(3, 7)[:, :3]
    assert np.abs(forces[:, 3:].sum(axis=0)).max() < 1e-9 * most
    assert np.abs((forces[:, :3] + np.cross(at, forces[:, 3:])).sum(axis=0)).max() < 1e-9 * most
    backward = free_route([(*each[:4], -each[4]) for each in route[::-1]], starts, young, strain)
    assert np.allclose(state_of(backward, q).passive, work.passive, rtol=0.0, atol=1e-9 * most)
    mirrored = free_route(
        [(b, x, -z, r, -side) for b, x, z, r, side in route], [(x, -z) for x, z in starts], young, strain
    )
    other, flipped = np.array(mirrored.start), np.tile([-1.0, -1.0, -1.0, 1.0, 1.0, -1.0], 3)
    other[7] -= nearer
    assert np.allclose(state_of(mirrored, other).passive, flipped * work.passive, rtol=0.0, atol=1e-9 * most)


def test_a_cable_through_points_of_a_free_pair_gives_no_momentum():
    text = PLANE.format(a="0, 0, 0.5", b="1.2, 0.3, 0.1", damping=0.0, route=", ".join(
        ["{body: first, at: [0.1, 0, 0]}", "{body: second, at: [0, 0.2, 0]}", "{body: first, at: [0, 0.3, 0.1]}",
         "{body: second, at: [0.3, 0, 0]}"]))  # fmt: skip
    model = parse_robot(text, "here").model_as(MechanismModel)
    work = state_of(model)
    assert np.linalg.norm(work.passive) > 1.0
    # orientations are the world's at the start
    force, moment = work.passive[3:6] + work.passive[9:12], work.passive[:3] + work.passive[6:9]
    arms = np.cross([0, 0, 0.5], work.passive[3:6]) + np.cross([1.2, 0.3, 0.1], work.passive[9:12])
    assert np.allclose(force, 0.0, atol=1e-10)
    assert np.allclose(moment + arms, 0.0, atol=1e-10)


def test_friction_never_gives_energy():
    model = plane(friction=", friction: 0.2")
    flat, work = model.mechanism.flat, make_workspace(model.mechanism.flat)
    rng = np.random.default_rng(3)
    q, total = np.array(model.start), 0.0
    for _ in range(40):
        q[[0, 2]] += rng.normal(scale=5e-3, size=2)
        state_of(model, q, work=work)
        loss = routing.keep_slip(flat.route_elements, flat.routed_cables, work.route_state)
        assert loss >= 0.0
        total += loss
    assert total > 0.0


def test_a_slack_cable_carries_nothing_and_its_damper_never_pushes():
    model = plane(damping=1e6)
    q = np.array(model.start)
    q[7] -= 0.1  # the second body comes nearer
    slack = state_of(model, q)
    assert slack.route_state[2, TENSION] == 0.0  # beyond the sheave
    assert not slack.passive[6:12].any()
    v = np.zeros(model.mechanism.velocity_count)
    v[9] = -100.0
    assert state_of(model, v=v).route_state[:, TENSION].min() >= 0.0


def test_a_cable_leaves_a_pulley_that_it_would_have_to_pull():
    text = """
name: clear
kind: mechanism
gravity: [0, 0, 0]
bodies: {slider: {mass: 1, inertia: [1, 1, 1]}}
joints: [{name: lift, kind: prismatic, parent: world, body: slider, frame: {at: [1, 0, -0.1]}}]
routed_cables:
  - {name: rope, young: 1e7, cable_radius: 0.002, strain: 0.01, route: [{body: world, at: [-1, 0, -0.1]},
     {body: world, at: [0, 0, 0], axis: [0, 1, 0], radius: 0.05, side: 1, friction: 0.3},
     {body: slider, at: [0, 0, 0]}]}
"""
    model = parse_robot(text, "here").model_as(MechanismModel)
    touching = state_of(model)
    assert touching.route_state[1, TOUCHES] == 1.0
    above = state_of(model, [0.5])
    assert above.route_state[1, TOUCHES] == 0.0
    first, second = above.route_state[:2, TENSION]
    assert first == pytest.approx(second, rel=1e-12)
    route = model.routes[0]
    straight, rest = np.hypot(2.0, 0.5), model.mechanism.flat.route_elements[:2, 18].sum()
    assert first == pytest.approx(route.stiffness * (straight / rest - 1.0), rel=1e-12)


def test_a_pulley_that_is_passed_clear_changes_nothing():
    text = """
name: beside
kind: mechanism
bodies: {sheave: {mass: 1, inertia: [0.1, 0.1, 0.1]}, slider: {mass: 1, inertia: [1, 1, 1]}}
joints:
  - {name: sheaveJt, kind: revolute, parent: world, body: sheave, axis: [0, 1, 0], frame: {at: [0, 0, 0.3]}}
  - {name: lift, kind: prismatic, parent: world, body: slider, frame: {at: [0.6, 0, -0.3]}}
routed_cables:
  - {name: rope, young: 1e7, cable_radius: 0.002, strain: 0.01, route: [{body: world, at: [-0.5, 0, -0.3]},
     {joint: sheaveJt, radius: 0.07, side: 1}, CLEAR {body: slider, at: [0, 0, 0]}]}
"""
    clear = "{body: world, at: [0.2, 0, -0.1], axis: [0, 1, 0], radius: 0.05, may_be_clear: true},"
    for turned in (0.0, 0.003):
        seen = []
        for between in (clear, ""):
            model = parse_robot(text.replace("CLEAR", between), "here").model_as(MechanismModel)
            work = state_of(model, [turned, 0.002])
            seen.append((work.passive.copy(), read_routes(model.mechanism, work)["rope"].tensions))
        assert seen[0][1] == pytest.approx(seen[1][1], rel=1e-12)
        assert seen[0][0] == pytest.approx(seen[1][0], rel=1e-12)


def test_any_unit_gives_the_same_cable():
    metric = routing.model_of(routing.DRUM, wound=14.5)
    text = routing.DRUM.format(wound=14.5).replace("kind: mechanism", "kind: mechanism\nunits: {length: mm}")
    for old, new in (("0.05", "50"), ("-20]", "-20000]"), ("0.004", "4"), ("0.002", "2"), ("1e9", "'1 GPa'"),
                     ("[1, 1, 1]", "['1 kg m^2', '1 kg m^2', '1 kg m^2']")):  # fmt: skip
        text = text.replace(old, new)
    other = parse_robot(text, "here").model_as(MechanismModel)
    assert np.allclose(state_of(metric).passive, state_of(other).passive, rtol=1e-12)


# -- robots ---------------------------------------------------------------------------------------------------------

ACTUATORS = """
actuators: [{drives: drumJt, position: [-20, 20], rate: 5, effort: 50}]
outputs: [{name: hook, body: load, controlled: [z]}]
"""


def hoist():
    return parse_robot(routing.DRUM.format(wound=14.5) + ACTUATORS, "here")


def test_a_winch_lifts_its_load_and_every_joule_is_reported():
    robot = hoist()
    simulation = Simulation(robot, time_step=1e-3)
    before, weight = simulation.energy(), 9.80665
    start = simulation.observe()
    assert start.tensions["rope"] == pytest.approx(weight, rel=1e-6)
    simulation.command("velocity", {"drumJt": -2.0})  # against the side on which the cable leaves: it winds on
    simulation.advance(duration=0.2)
    after, seen = simulation.energy(), simulation.observe()
    assert seen.pose[0][2] > start.pose[0][2] + 0.01
    assert seen.rest_lengths["rope"] < start.rest_lengths["rope"] - 0.01
    gained = after.kinetic + after.elastic + after.gravity - before.kinetic - before.elastic - before.gravity
    assert gained == pytest.approx(after.actuators, rel=1e-3)


def test_goals_are_planned_for_a_winch():
    from tensegrity_control import inverse_kinematics

    found = inverse_kinematics(hoist(), position=[0.05, 0.0, -19.97])
    assert found.pose_error.max() < 1e-6
    # up by 25.6 mm at a radius of 58 mm and the strain of the weight
    assert found.positions["drumJt"] == pytest.approx(-0.44, abs=0.01)


def test_control_in_strains_refuses_routed_cables_by_name_and_plans_let_them_slide():
    from tensegrity_control import inverse_kinematics
    from tensegrity_control.motion_planning.near_rigid_model import NearRigidModel

    with pytest.raises(TensegrityError, match=r"cable rope is routed.*joint_position"):
        NearRigidModel(hoist())
    guide = "{body: world, at: [0, 0, -1], axis: [0, 1, 0], radius: 0.05, side: -1, friction: 0.2}"
    rubbing = (routing.DRUM.format(wound=14.5) + ACTUATORS).replace(
        "      {body: load, at", f"      {guide}, {{body: load, at"
    )
    rubs, slides = (
        inverse_kinematics(parse_robot(text, "here"), position=[0.05, 0.0, -19.97])
        for text in (rubbing, rubbing.replace(", friction: 0.2", ""))
    )
    np.testing.assert_array_equal(rubs.positions, slides.positions)


def test_a_drum_without_end_winds_its_circumference():
    text = routing.DRUM.replace(" wound: {wound}, layers: {{turns: 5, pitch: 0.004, count: 4, ramp: 0.5}}", "")
    model = parse_robot(text.format(), "here").model_as(MechanismModel)
    assert model.mechanism.routes
    before, after = (
        read_routes(model.mechanism, state_of(model, model.start + [angle, 0.0]))["rope"].rest_length
        for angle in (0.0, -2.0 * np.pi)
    )
    assert before - after == pytest.approx(2.0 * np.pi * 0.05, rel=1e-12)


@pytest.mark.parametrize("side", [1, -1])
def test_a_cable_may_leave_its_drum_in_any_direction(side):
    """Zeros of either sign included: a direction whose numbers all have one was taken for half a turn."""
    text = """
kind: mechanism
name: winch
bodies: {drum: {mass: 1, inertia: [1, 1, 1]}}
joints: [{name: drumJt, kind: revolute, parent: world, body: drum, axis: [0, 1, 0]}]
routed_cables:
  - {name: rope, young: 1e7, cable_radius: 0.002, strain: 0.01, route: [
      {joint: drumJt, radius: 0.05, side: SIDE}, {body: world, at: [X, -0.0, Z]}]}
"""
    for turn in np.radians(np.arange(0, 360, 30)):
        there = (
            text.replace("SIDE", str(side)).replace("X", f"{np.cos(turn):.17f}").replace("Z", f"{np.sin(turn):.17f}")
        )
        model = parse_robot(there, "here").model_as(MechanismModel)
        rope = read_routes(model.mechanism, state_of(model))["rope"]
        assert rope.length == pytest.approx(np.sqrt(1.0 - 0.05**2), rel=1e-9)


def test_a_search_for_a_shape_turns_back_before_a_strand_has_no_length():
    """A drum that nothing holds gives way until the guide has its cable; beyond that there are no forces."""
    text = """
name: loose
kind: mechanism
gravity: [0, 0, -9.81]
bodies:
  drum: {mass: 0.5, inertia: [0.001, 0.001, 0.001]}
  sheave: {mass: 0.3, inertia: [0.0005, 0.0005, 0.0005]}
  load: {mass: 2, inertia: [0.02, 0.02, 0.02]}
  mast: {mass: 1, inertia: [0.1, 0.1, 0.1]}
joints:
  - {name: mastJt, kind: revolute, parent: world, body: mast, axis: [0, 0, 1], resistance: {stiffness: 5}}
  - {name: drumJt, kind: revolute, parent: mast, body: drum, axis: [0, 1, 0]}
  - {name: sheaveJt, kind: revolute, parent: mast, body: sheave, axis: [0, 1, 0], frame: {at: [0.4, 0, 1]}}
  - {name: loadJt, kind: floating, parent: world, body: load, start: [0.95, 0, 0.2, 0, 0, 0]}
routed_cables:
  - {name: rope, young: 2e9, cable_radius: 0.001, tension: 15, route: [
      {joint: drumJt, radius: 0.05, wound: 7, layers: {turns: 5, pitch: 0.002, count: 3}},
      {body: mast, at: [0, 0, 0.9], axis: [0, 1, 0], radius: 0.03, friction: 0.2, friction_speed: 0.001},
      {joint: sheaveJt, radius: 0.06, friction: 0.3, friction_speed: 0.001},
      {body: mast, at: [0.8, 0, 1], axis: [0, 1, 0], radius: 0.05, friction: 0.2, friction_speed: 0.001},
      {body: mast, at: [0.9, 0, 0.8], axis: [0, 1, 0], radius: 0.02, side: -1, may_be_clear: true},
      {body: load, at: [0, 0, 0.1]}]}
"""
    robot = parse_robot(text, "here")
    with pytest.raises(NoEquilibriumError, match=r"a force of \d"):
        MechanismEquilibriumSolver(robot.mechanism, ()).solve(robot.model.initial_configuration)


@pytest.mark.parametrize(("wound", "speed", "state"), [(0.05, 5.0, "empty"), (19.95, -5.0, "full")])
def test_an_empty_or_full_drum_stops_the_simulation_by_name(wound, speed, state):
    text = routing.DRUM.format(wound=wound) + ACTUATORS
    simulation = Simulation(parse_robot(text, "here"), time_step=1e-3)
    simulation.command("velocity", {"drumJt": speed})
    with pytest.raises(TensegrityError, match=rf"cable rope.*drum at route\[0\] \(joint drumJt\) is {state}"):
        simulation.advance(duration=0.5)


def test_pictures_draw_the_whole_route():
    robot = parse_robot(routing.GUIDE.format(mass=1, spring=0, rest=0, damping=0, side=1, friction=0.3).replace(
        "[0.05, 0, -0.4]", "[-0.05, 0, -0.4]"), "here")  # fmt: skip
    picture = make_picture(robot)
    lines = picture.at(picture.start).lines[0]
    assert picture.tension_names == ("tendon",)
    assert np.allclose(lines[1:, 0], lines[:-1, 1])
    arc = lines[1:-1, 0]
    assert np.allclose(np.linalg.norm(arc, axis=1), 0.05)
    assert np.allclose(lines[-1, 1], [0.5, 0, 0.05])


def test_mjcf_names_pulleys_whose_tangent_it_cannot_say():
    text = PLANE.format(a="0, 0, 0.5", b="1.2, 0, 0.1", damping=0, route=elements(1, ""))
    with pytest.raises(TensegrityError, match=r"cable rope: MJCF has no tangent .* from route\[2\] .* to route\[3\]"):
        mechanism_mjcf(parse_robot(text, "here"))


# -- what is refused ------------------------------------------------------------------------------------------------

WRONG = """
name: wrong
kind: mechanism
bodies: {slider: {mass: 1, inertia: [1, 1, 1]}}
joints: [{name: lift, kind: prismatic, parent: world, body: slider, frame: {at: [1, 0, -0.1]}}]
routed_cables:
  - {name: rope, young: 1e7, cable_radius: 0.002, %s route: [{body: world, at: [-1, 0, -0.1]}, %s
     {body: slider, at: [0, 0, 0]}]}
"""


@pytest.mark.parametrize(
    ("field", "points", "message"),
    [
        ("", "{body: world, at: [0, 0, 0], axis: [0, 1, 0], radius: 0.05, side: -1},", "runs clear of the pulley"),
        ("", "{body: world, at: [0, 0, 0], axis: [0, 1, 0], radius: 1.5},", "the point lies within the pulley"),
        ("", "{body: world, at: [0, 0, 0], axis: [0, 1, 0], radius: 0.3, turns: 1}, "
             "{body: world, at: [0.4, 0, 0], axis: [0, 1, 0], radius: 0.3, side: -1},", "the pulleys overlap"),
        ("", "{body: world, at: [0, 0, 0]}, {body: world, at: [0, 0, 0]},", "both points are at one place; move them"),
        ("", "{body: world, at: [-1, 0, -0.1]},", "after route[0] (body world) it cannot run straight to "
             "route[1] (body world): both points are at one place"),
        ("", "{body: world, at: [0, 0.1, 0], axis: [0, 1, 0], radius: 0.05},", "leaves the plane of a pulley"),
        ("", "{body: world, at: [0, 0, 0], axis: [0, 1, 0], radius: 0.05, friction: -0.1},", "friction"),
        ("length: 0.5,", "{body: world, at: [0, 0, 0], axis: [0, 1, 0], radius: 0.05},", "too short"),
        ("", "{body: world, at: [0, 0, 0], radius: 0.05},", "needs its radius and its axis"),
        ("", "{joint: lift, radius: 0.05},", "turns with a revolute one"),
        ("", "{body: nobody, at: [0, 0, 0]},", "nobody"),
        ("strain: 0, length: 3,", "", "one of strain, tension and length"),
        ("sag: true, density: 1e-310,", "", "must be above 0"),
    ],
)  # fmt: skip
def test_routes_that_cannot_be_are_refused_by_name(field, points, message):
    with pytest.raises(RobotFileError, match=r"routed_cables\[0\]") as error:
        parse_robot(WRONG % (field, points), "here")
    assert message in str(error.value)


WINCH = """
name: winch
kind: mechanism
bodies: {drum: {mass: 1, inertia: [0.01, 0.01, 0.01]}, load: {mass: 1, inertia: [1, 1, 1]}}
joints:
  - {name: turns, kind: revolute, parent: world, body: drum, axis: [0, 1, 0], start: [1.0]}
  - {name: lift, kind: prismatic, parent: world, body: load, frame: {at: [0.05, 0, -2]}}
routed_cables: [{name: rope, young: 1e9, cable_radius: 0.001, strain: 0, route: [ENDS]}]
actuators: [{drives: turns, position: [-100, 100], rate: 9, effort: 99}]
"""
WINCH_DRUM = "{joint: turns, radius: 0.05, side: 1, wound: 2, layers: {turns: 3, pitch: 0.002, count: 2}}"


@pytest.mark.parametrize(
    ("ends", "unwound", "wound"),
    [
        (WINCH_DRUM + ", {body: load, at: [0, 0, 0]}", 4.0 * np.pi, -8.0 * np.pi),
        ("{body: load, at: [0, 0, 0]}, " + WINCH_DRUM.replace("side: 1", "side: -1"), 4.0 * np.pi, -8.0 * np.pi),
        ("{joint: turns, radius: 0.05, side: 1, wound: 2}, {body: load, at: [0, 0, 0]}", 4.0 * np.pi, -101.0),
    ],
)
def test_limits_of_a_winch_end_where_its_drum_is_empty_or_full_and_check_says_so(ends, unwound, wound):
    robot = parse_robot(WINCH.replace("ENDS", ends), "here")
    assert robot.actuators[0].position == pytest.approx((1.0 + wound, 1.0 + unwound), abs=1e-12)
    (note,) = [each for each in type_of(robot).report(robot).check().notes if "before the limits in the file" in each]
    assert "turns at 13.57 rad (rope)" in note
    assert ("turns at -24.13 rad (rope)" in note) == (wound > -100.0)
    simulation = Simulation(robot, time_step=1e-3, start="file")
    for end, message in zip(robot.actuators[0].position, ("is full", "is empty"), strict=True):
        lift = simulation.state.q[1:]
        simulation.set_state([end - 1e-6 * np.sign(end), *lift])
        simulation.observe()
        if end > -99.0:  # the one-layer drum holds any number of turns
            simulation.set_state([end + 0.1 * np.sign(end), *lift])
            with pytest.raises(TensegrityError, match=message):
                simulation.advance(1)


def test_a_routed_cable_whose_points_are_on_one_body_is_refused():
    text = (WRONG % ("", "")).replace("{body: world, at: [-1, 0, -0.1]}", "{body: slider, at: [-1, 0, 0]}")
    with pytest.raises(
        RobotFileError, match=r"here:7: routed_cables\[0\] \(rope\).route: all its points are on slider;"
    ):
        parse_robot(text, "here")


def test_turning_pulleys_on_one_side_of_the_cable_that_overlap_are_refused():
    apart = ANTAGONISTS.replace("at: [0.3, 0, 0]", "at: [%s, 0, 0]")
    parse_robot(apart % "0.051", "here")
    with pytest.raises(
        RobotFileError, match=r"route\[0\] \(joint shaftJt\) and route\[1\] \(joint hinge\) overlap: .* 0.045 m apart"
    ):
        parse_robot(apart % "0.045", "here")


def test_what_slipped_stays_when_nothing_moves():
    model = routing.tendon_round_guide(0.3)
    flat, work = model.mechanism.flat, make_workspace(model.mechanism.flat)
    state_of(model, model.start + 1.5e-3, work=work)
    routing.keep_slip(flat.route_elements, flat.routed_cables, work.route_state)
    kept = work.route_state[:, SLIP].copy()
    assert kept.any()
    for _ in range(5):
        state_of(model, model.start + 1.5e-3, work=work)
        assert np.array_equal(work.route_state[:, TRIAL], kept)
        routing.keep_slip(flat.route_elements, flat.routed_cables, work.route_state)


ANTAGONISTS = """
name: antagonists
kind: mechanism
gravity: [0, 0, 0]
bodies:
  shaft: {mass: 0.1, inertia: [1.0e-4, 1.0e-4, 1.0e-4]}
  arm: {mass: 0.2, inertia: [1.0e-3, 1.0e-3, 1.0e-3]}
joints:
  - {name: shaftJt, kind: revolute, parent: world, body: shaft, axis: [0, 1, 0]}
  - {name: hinge, kind: revolute, parent: world, body: arm, axis: [0, 1, 0], frame: {at: [0.3, 0, 0]}}
routed_cables:
  - {name: upper, young: 1.0e+9, cable_radius: 1.0e-3, tension: 40, route: [
      {joint: shaftJt, radius: 0.02, side: 1}, {joint: hinge, radius: 0.03, side: 1}]}
  - {name: lower, young: 1.0e+9, cable_radius: 1.0e-3, tension: 40, route: [
      {joint: shaftJt, radius: 0.02, side: -1}, {joint: hinge, radius: 0.03, side: -1}]}
actuators: [{drives: shaftJt, position: [-2, 2], rate: 9, effort: 9}]
"""


def test_one_motor_drives_a_hinge_by_two_antagonists_on_its_shaft():
    robot = parse_robot(ANTAGONISTS, "here")
    solver = MechanismEquilibriumSolver(robot.mechanism, ("shaftJt",))
    shape = solver.solve(robot.model.initial_configuration, {"shaftJt": 0.6})
    hinge = robot.mechanism.positions_of("hinge")
    assert shape.q[hinge][0] == pytest.approx(0.6 * 0.02 / 0.03, rel=1e-9)
    tensions = [shape.routes[name].tension for name in ("upper", "lower")]
    assert tensions == pytest.approx([40.0, 40.0], rel=1e-9)
    pushed = np.zeros(robot.mechanism.velocity_count)
    pushed[robot.mechanism.velocities_of("hinge")] = 0.3
    loaded = solver.solve(shape.q, {"shaftJt": 0.6}, pushed)
    one, two = (loaded.routes[name] for name in ("upper", "lower"))
    stretch = 1e9 * np.pi * 1e-6
    pulls = [each.tension * (1.0 + 0.5 * each.strain) for each in (one, two)]
    assert abs(pulls[0] - pulls[1]) * 0.03 == pytest.approx(0.3, rel=1e-8)
    stiffness = 2 * stretch * 0.03**2 / one.rest_length
    assert loaded.q[hinge][0] - shape.q[hinge][0] == pytest.approx(0.3 / stiffness, rel=4e-2)


@pytest.mark.parametrize(("radius", "drop"), [(1e-3, 40.0), (6e-3, 2.0)])
def test_a_light_load_rests_on_a_rope_of_steel(radius, drop):
    """The last digit of its height is more force than the search would leave otherwise."""
    model = parse_robot(f"""
name: hoist
kind: mechanism
bodies: {{drum: {{mass: 1, inertia: [1, 1, 1]}}, load: {{mass: 0.05, inertia: [1, 1, 1]}}}}
joints:
  - {{name: drumJt, kind: revolute, parent: world, body: drum, axis: [0, 1, 0]}}
  - {{name: loadJt, kind: prismatic, parent: world, body: load, axis: [0, 0, 1], frame: {{at: [0.03, 0, {-drop}]}}}}
routed_cables:
  - {{name: rope, young: "200 GPa", cable_radius: {radius}, strain: 0,
     route: [{{joint: drumJt, radius: 0.03, side: 1}}, {{body: load, at: [0, 0, 0]}}]}}
""").model_as(MechanismModel)
    solver = MechanismEquilibriumSolver(model.mechanism, ("drumJt",))
    for angle in (0.0, -0.3, -9.9):
        shape = solver.solve(model.start, {"drumJt": angle})
        rest = drop + 0.03 * angle
        strain = 0.05 * 9.80665 / (200e9 * np.pi * radius**2)
        assert shape.q[1] == pytest.approx(drop - rest * (1 + strain), abs=1e-14 * drop)
        assert shape.stable


@pytest.mark.parametrize("aside", [-0.03, 0.005, 0.15])
def test_a_load_aside_on_a_stiff_rope_over_a_pulley_comes_to_hang_below_it(aside):
    """The rope resists 5000 times as much as the weight does to a swing, and the pulley has an inertia of its own."""
    robot = parse_robot(f"""
name: hoist
kind: mechanism
bodies: {{drum: {{mass: 1, inertia: [1, 1, 1]}}, sheave: {{mass: 2, inertia: [0.004, 0.008, 0.004]}}, x: {{}},
  load: {{mass: 30, inertia: [1, 1, 1]}}}}
joints:
  - {{name: drumJt, kind: revolute, parent: world, body: drum, axis: [0, 1, 0], frame: {{at: [-1, 0, 0]}}}}
  - {{name: sheaveJt, kind: revolute, parent: world, body: sheave, axis: [0, 1, 0]}}
  - {{name: xJt, kind: prismatic, parent: world, body: x, axis: [1, 0, 0], start: [{0.1 + aside}]}}
  - {{name: zJt, kind: prismatic, parent: x, body: load, axis: [0, 0, 1], start: [-2.5]}}
routed_cables:
  - {{name: rope, young: "20 GPa", cable_radius: "3 mm", tension: "290 N",
     route: [{{joint: drumJt, radius: 0.1, side: 1}}, {{joint: sheaveJt, radius: 0.1, side: 1, friction: 0.12}},
       {{body: load, at: [0, 0, 0]}}]}}
""")
    shape = MechanismEquilibriumSolver(robot.mechanism, ("drumJt",)).solve(robot.model.start)
    assert shape.q[2] == pytest.approx(0.1, abs=1e-9)
    assert shape.routes["rope"].tensions == pytest.approx([30 * 9.80665] * 2, rel=1e-8)
    assert shape.stable


def test_a_cable_of_which_more_is_wound_in_than_there_was_is_refused_by_name():
    """A rest length below zero would count as slack."""
    robot = parse_robot("""
name: winch
kind: mechanism
bodies: {drum: {mass: 1, inertia: [1, 1, 1]}, load: {mass: 2, inertia: [1, 1, 1]}}
joints:
  - {name: drumJt, kind: revolute, parent: world, body: drum, axis: [0, 1, 0]}
  - {name: loadJt, kind: prismatic, parent: world, body: load, axis: [0, 0, 1], frame: {at: [0.1, 0, -1.4]}}
routed_cables:
  - {name: rope, young: 1e9, cable_radius: 0.001, strain: 0.001,
     route: [{joint: drumJt, radius: 0.1, side: 1}, {body: load, at: [0, 0, 0]}]}
""")
    message = r"rope .*after route\[0\].* nothing of it is left .* wind less"
    with pytest.raises(NoEquilibriumError, match=message):
        MechanismEquilibriumSolver(robot.mechanism, ("drumJt", "loadJt")).solve(robot.model.start, {"drumJt": -14.1})
    simulation = Simulation(robot, 1e-3, start="file")
    simulation.set_state([-14.1, 0.0])
    with pytest.raises(TensegrityError, match=message):
        simulation.advance(1)
