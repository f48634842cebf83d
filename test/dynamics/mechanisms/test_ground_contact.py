"""Mechanisms on the ground: weight and friction, energy, virtual work, the same law as under structures."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensegrity_dynamics import RobotFileError, Simulation, TensegrityError, load_robot, parse_robot
from tensegrity_dynamics.contact.ground import Ground, HeightField
from tensegrity_dynamics.contact.ground_forces import depth, flatten, point_force
from tensegrity_dynamics.errors import NoEquilibriumError
from tensegrity_dynamics.mechanisms.contact_readings import ground_energy, read_contacts
from tensegrity_dynamics.mechanisms.dynamics.equations_of_motion import evaluate
from tensegrity_dynamics.mechanisms.dynamics.forward_dynamics import forward_dynamics
from tensegrity_dynamics.mechanisms.frame import Frame
from tensegrity_dynamics.mechanisms.kinematics.configuration_space import displaced
from tensegrity_dynamics.mechanisms.mechanism import Body, Joint, Mechanism
from tensegrity_dynamics.mechanisms.mechanism_model import MechanismModel
from tensegrity_dynamics.mechanisms.routing.columns import PATH_LENGTH
from tensegrity_dynamics.mechanisms.statics.equilibrium_solver import MechanismEquilibriumSolver
from tensegrity_dynamics.mechanisms.touch.parts import ContactPart
from tensegrity_dynamics.mechanisms.workspace import make_workspace
from tensegrity_dynamics.robots.robot import Robot
from tensegrity_dynamics.structures.structure import make_structure
from tensegrity_dynamics.visualization.picture import make_picture

G = 9.81
DOWN = np.array([0.0, 0.0, -G])
HILLS = HeightField(0.02 * np.random.default_rng(3).normal(size=(7, 9)), np.array([-0.8, -0.6]), 0.2)
GROUNDS = [
    Ground(1e4, damping=30.0, slope=0.3, downhill=0.7),
    Ground(1e4, "softplus", smoothness=2e-3),
    Ground(1e4, hills=HILLS),
]
PARTS = [
    ContactPart("tip", "block"),
    ContactPart("ball", "block", "sphere", (0.05,)),
    ContactPart("leg", "block", "capsule", (0.03, 0.2)),
    ContactPart("foot", "block", "box", (0.1, 0.06, 0.04)),
]


def block(ground, *parts, mass=2.0, inertia=0.01, gravity=DOWN):
    """A free body with parts that touch the ground."""
    body = Body("block", mass, inertia=inertia * np.eye(3))
    return Mechanism((body,), (Joint("free", "floating", "world", "block"),), gravity=gravity,
                     ground=ground, contact_parts=parts)  # fmt: skip


def configuration_at(mechanism, position, turn=(0.0, 0.0, 0.0)):
    """q of a free body at a position, turned."""
    q = mechanism.neutral()
    q[:3] = position
    return displaced(mechanism, q, np.array([*turn, 0.0, 0.0, 0.0]))


def forces(mechanism, q, v=None):
    """Efforts of the ground, its energy, and the forces of all parts."""
    work = make_workspace(mechanism.flat)
    evaluate(mechanism.flat, q, np.zeros(mechanism.velocity_count) if v is None else v, work)
    return work.passive.copy(), ground_energy(work), read_contacts(mechanism, work)


# -- the laws -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ground", GROUNDS, ids=("slope", "softplus", "hills"))
@settings(max_examples=3, deadline=None)
@given(height=st.floats(-0.02, 0.05), turn=st.floats(-1.0, 1.0), x=st.floats(-0.2, 0.2))
def test_forces_on_shapes_are_the_gradient_of_the_energy_in_the_ground(ground, height, turn, x):
    mechanism = block(ground, *PARTS, gravity=np.zeros(3))
    q = configuration_at(mechanism, (x, 0.1, height), (turn, 0.5 * turn, 0.3))
    efforts, _, _ = forces(mechanism, q)
    for k in range(6):
        step = np.zeros(6)
        step[k] = 1e-6
        higher, lower = (forces(mechanism, displaced(mechanism, q, sign * step))[1] for sign in (1.0, -1.0))
        assert efforts[k] == pytest.approx(-(higher - lower) / 2e-6, abs=2e-3 + 2e-5 * np.abs(efforts).max())


def test_a_point_of_a_body_meets_the_force_that_a_node_of_a_structure_meets():
    ground = replace(GROUNDS[0], friction=0.4, viscous=2.0)
    mechanism = block(ground, PARTS[0])
    q, v = configuration_at(mechanism, (0.1, -0.2, -0.05)), np.array([0.0, 0.0, 0.0, 0.3, -0.2, -0.1])
    away, force, out = np.zeros(3), np.zeros(3), np.zeros(6)
    point_force(flatten(ground), 0.1, -0.2, -0.05, v[3:], 0.0, away, force, out)
    assert out[0] > 0.0
    touching = forces(mechanism, q, v)[2]["tip"]
    np.testing.assert_array_equal(touching[0, 1], force)


def test_a_ball_on_hills_rests_on_its_deepest_point():
    mechanism = block(GROUNDS[2], ContactPart("ball", "block", "sphere", (0.05,)))
    q = configuration_at(mechanism, (0.13, 0.02, 0.05))
    where, push = forces(mechanism, q)[2]["ball"][0]
    away, flat = np.zeros(3), flatten(GROUNDS[2])
    around = np.random.default_rng(1).normal(size=(300, 3))
    around *= 0.05 / np.linalg.norm(around, axis=1, keepdims=True)
    deepest = depth(flat, *where, away)
    assert all(depth(flat, *(q[:3] + each), away) <= deepest + 1e-12 for each in around)
    assert np.linalg.norm(np.cross(where - q[:3], push)) < 1e-10


@settings(max_examples=10, deadline=None)
@given(angle=st.floats(0.05, 0.6), friction=st.floats(0.0, 1.0))
def test_a_block_slides_by_coulombs_law(angle, friction):
    ground = Ground(1e5, slope=angle, friction=friction, friction_speed=1e-6)
    mechanism = block(ground, PARTS[0], mass=1.0)
    down = np.array([np.cos(angle), 0.0, -np.sin(angle)])
    sunk = -G * np.cos(angle) / 1e5 * ground.normal
    motion = np.concatenate((np.zeros(3), down))
    acceleration = forward_dynamics(mechanism, configuration_at(mechanism, sunk), motion).acceleration[3:]
    assert acceleration @ down == pytest.approx(G * (np.sin(angle) - friction * np.cos(angle)), abs=1e-8)
    assert abs(acceleration @ ground.normal) < 1e-8


def test_below_the_angle_of_friction_a_block_only_creeps():
    ground = Ground(1e5, slope=0.3, friction=0.5, friction_speed=1e-3)
    part = np.tan(0.3) / 0.5
    creep = 1e-3 * part / np.sqrt(1.0 - part**2)
    mechanism = block(ground, PARTS[0], mass=1.0)
    motion = np.array([0.0, 0.0, 0.0, creep * np.cos(0.3), 0.0, -creep * np.sin(0.3)])
    sunk = configuration_at(mechanism, -G * np.cos(0.3) / 1e5 * ground.normal)
    np.testing.assert_allclose(forward_dynamics(mechanism, sunk, motion).acceleration, 0.0, atol=1e-9)


# -- at rest ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("slope", [0.0, 0.2])
def test_a_box_stands_on_its_corners_which_carry_its_weight(slope):
    mechanism = block(Ground(1e4, slope=slope), ContactPart("box", "block", "box", (0.2, 0.3, 0.4)))
    shape = MechanismEquilibriumSolver(mechanism).solve(
        configuration_at(mechanism, (0.0, 0.0, 0.28), (0.05, 0.04, 0.0))
    )
    feet = shape.contacts["box"]
    assert shape.stable and len(feet) == 4
    np.testing.assert_allclose(feet[:, 1].sum(axis=0), [0.0, 0.0, 2.0 * G], atol=1e-7)
    np.testing.assert_allclose(np.cross(feet[:, 0] - shape.q[:3], feet[:, 1]).sum(axis=0), 0.0, atol=1e-7)


def test_what_friction_cannot_hold_slides_by_name():
    mechanism = block(Ground(1e4, slope=0.5, friction=0.5), PARTS[3])
    with pytest.raises(NoEquilibriumError, match=r"needs a friction coefficient of 0.5463, its ground has 0.5"):
        MechanismEquilibriumSolver(mechanism)


FINGER = """
name: finger
kind: mechanism
bodies:
  upper: {mass: 0.02, inertia: [1.0e-5, 1.0e-5, 1.0e-6], centre: [0.02, 0, 0]}
  lower: {mass: 0.01, inertia: [1.0e-6, 1.0e-6, 1.0e-7], centre: [0.02, 0, 0]}
  drum: {mass: 0.01, inertia: [1.0e-6, 1.0e-6, 1.0e-6]}
joints:
  - {name: knuckle, kind: revolute, parent: world, body: upper, axis: [0, 1, 0], frame: {at: [0, 0, 0.03]}}
  - {name: middle, kind: revolute, parent: upper, body: lower, axis: [0, 1, 0], frame: {at: [0.05, 0, 0]}, start: [0.5],
     resistance: {stiffness: 0.5, rest: 0.5, damping: 1.0e-4}}
  - {name: drumJt, kind: revolute, parent: world, body: drum, axis: [0, 1, 0], frame: {at: [-0.1, 0, 0.02]}}
routed_cables:
  - name: tendon
    young: 1.0e+9
    cable_radius: 2.0e-4
    tension: 3.0
    route:
      - {joint: drumJt, radius: 0.01, side: -1}
      - {body: upper, at: [0.02, 0, -0.005]}
      - {body: lower, at: [0.02, 0, -0.004]}
actuators:
  - {drives: drumJt, position: [-3, 3], rate: 5, effort: 1}
outputs: [{name: tip, body: lower, frame: {at: [0.04, 0, 0]}}]
contact: {stiffness: 2.0e+3, friction: 0.3}
contact_parts:
  - {name: tip, body: lower, kind: sphere, size: [0.005], at: [0.04, 0, 0]}
"""


def test_the_ground_bears_what_the_tendon_presses_by_virtual_work():
    robot = parse_robot(FINGER, "finger")
    mechanism = robot.model_as(MechanismModel).mechanism
    shape = MechanismEquilibriumSolver(mechanism, ("drumJt",)).solve(robot.model.initial_configuration)
    force, tension = shape.contacts["tip"][:, 1].sum(axis=0), shape.routes["tendon"].tension
    work, still = make_workspace(mechanism.flat), np.zeros(mechanism.velocity_count)
    weight = -mechanism.gravity[2] * mechanism.flat.mass

    def at(q):
        """Tip, path length of the tendon, weight's and spring's energy."""
        evaluate(mechanism.flat, q, still, work)
        body = mechanism.body_index["lower"]
        centres = work.position + np.einsum("bij,bj->bi", work.rotation, mechanism.flat.centre)
        spring = 0.25 * (q[mechanism.positions_of("middle")][0] - 0.5) ** 2
        tip = work.position[body] + work.rotation[body] @ [0.04, 0.0, 0.0]
        return tip, work.route_results[0, PATH_LENGTH], weight @ centres[:, 2] + spring

    assert force[2] > 0.05 and tension > 0.5
    for joint in ("knuckle", "middle"):
        step = np.zeros_like(shape.q)
        step[mechanism.positions_of(joint)] = 1e-6
        (tip, length, stored), (tip_low, length_low, stored_low) = at(shape.q + step), at(shape.q - step)
        gained = force @ (tip - tip_low) - tension * (length - length_low) - (stored - stored_low)
        assert abs(gained) < 1e-6 * 2e-6


# -- in time ------------------------------------------------------------------------------------------------------


def free_robot(ground, *parts, **options):
    mechanism = block(ground, *parts, **options)
    return Robot(name="block", model=MechanismModel(mechanism, configuration_at(mechanism, (0.0, 0.0, 0.0))))


def test_a_drop_onto_a_damped_ground_balances_its_energy():
    ground = Ground(5e3, damping=20.0, friction=0.4, friction_speed=0.05)
    robot = free_robot(ground, PARTS[3], mass=1.0)
    simulation = Simulation(
        robot, 1e-3, "adaptive", start=configuration_at(robot.model.mechanism, (0, 0, 0.05), (0.3, 0.2, 0))
    )
    simulation.set_motion([0.0, 0.0, 0.0, 0.3, 0.0, -0.8])
    before = simulation.energy().balance
    simulation.advance(duration=0.02)
    after = simulation.energy()
    assert after.damping > 1e-3 and after.friction > 1e-3
    assert after.balance == pytest.approx(before, abs=1e-8)


FEELER = """
name: feeler
kind: mechanism
gravity: [0, 0, -9.81]
bodies: {head: {mass: 0.4, inertia: [0.001, 0.001, 0.001]}}
joints: [{name: down, kind: prismatic, parent: world, body: head, frame: {at: [0.13, 0.21, 0.3]}}]
contact:
  {stiffness: 1.0e+5, damping: 100, friction: 0.5, heights: {values: [[0, 0.1], [0.05, 0.15]], spacing: 0.5}}
contact_parts: [{body: head, kind: sphere, size: ["10 mm"]}]
"""


@pytest.mark.parametrize("step", [4e-4, 2e-4, 1e-4])
def test_an_impact_with_damping_and_friction_leaves_the_ledger_an_error_of_second_order(step):
    # A force F that sets in at an unknown instant of a step leaves an error in the velocity of up to F h / m, and so,
    # where heat is summed with the weights of the method, (F h)^2 / m of energy, not the F v h of a mean of two ends.
    simulation = Simulation(parse_robot(FEELER), step, start="file")
    before = simulation.energy().balance
    fastest = 0.0
    for _ in range(60):
        fastest = max(fastest, float(np.abs(simulation.advance(duration=0.01).v[0])))
    energy = simulation.energy()
    assert energy.friction > 0.04  # it has struck, and rubbed
    assert abs(energy.balance - before) < (100.0 * fastest * step) ** 2 / 0.4


def test_the_default_step_is_a_twentieth_of_the_period_on_the_ground():
    simulation = Simulation(parse_robot(FEELER.replace("damping: 100", "damping: 0")), start="file")
    upright = 1.0 / np.sqrt(1.0 + 0.2**2 + 0.1**2)  # of the plane z = 0.2 x + 0.1 y
    period = 2.0 * np.pi * np.sqrt(0.4 / (1e5 * upright**2))
    assert simulation.time_step == pytest.approx(period / 20.0, rel=1e-4)


@pytest.mark.parametrize("integrator", ["rk4", "implicit"])
def test_a_ball_rolls_down_with_five_sevenths_of_the_weight(integrator):
    angle, radius = 0.2, 0.05
    ground = Ground(1e5, slope=angle, damping=200.0, friction=0.8, friction_speed=0.01)
    robot = free_robot(ground, ContactPart("ball", "block", "sphere", (radius,)), mass=1.0, inertia=0.4 * radius**2)
    start = (radius - G * np.cos(angle) / 1e5) * ground.normal
    simulation = Simulation(robot, 1e-4, integrator, start=configuration_at(robot.model.mechanism, start))
    simulation.advance(duration=0.05)
    turning, moving = simulation.state.v[:3], simulation.state.v[3:]
    assert np.linalg.norm(moving) == pytest.approx(5.0 / 7.0 * G * np.sin(angle) * 0.05, rel=0.02)
    assert abs(turning[1]) * radius == pytest.approx(np.linalg.norm(moving), rel=0.05)


def test_a_rod_falls_on_the_ground_as_mechanism_and_as_structure():
    ground = Ground(2e4, damping=40.0, friction=0.3, friction_speed=0.05)
    length, mass, tilt, height = 0.5, 1.0, 0.5, 0.26
    half = 0.5 * length * np.array([np.sin(tilt), 0.0, np.cos(tilt)])
    middle = np.array([0.0, 0.0, height])
    structure = make_structure(
        {"low": middle - half, "high": middle + half, "post": (0, 0, 9), "other": (0, 1, 9)},
        [("rod", "bar", "low", "high", 1e6, length), ("loose", "tendon", "post", "other", 1.0, 3.0)],
        fixed=["post", "other"], node_masses={"low": 0.5 * mass, "high": 0.5 * mass}, gravity=DOWN, ground=ground,
    )  # fmt: skip
    about = 0.25 * mass * length**2
    body = Body("rod", mass, inertia=np.diag([about, about, 1e-6]))
    ends = [
        ContactPart(name, "rod", placement=Frame(np.array([0.0, 0.0, sign * 0.5 * length])))
        for name, sign in (("low", -1.0), ("high", 1.0))
    ]
    mechanism = Mechanism((body,), (Joint("free", "floating", "world", "rod"),), gravity=DOWN, ground=ground,
                          contact_parts=tuple(ends))  # fmt: skip
    q = np.array([*middle, np.cos(0.5 * tilt), 0.0, np.sin(0.5 * tilt), 0.0])
    rigid = Simulation(Robot(name="rod", model=MechanismModel(mechanism, q)), 2e-5, "rk4", start="file")
    nodes = Simulation(structure, 2e-5, "rattle", start=structure.nodes)
    worst = 0.0
    for _ in range(4):
        rigid.advance(duration=0.03)
        nodes.advance(duration=0.03)
        ends_now = nodes.state.nodes[:2]
        worst = max(worst, float(np.abs(rigid.state.q[:3] - ends_now.mean(axis=0)).max()))
    assert nodes.energy().friction > 1e-3
    assert worst < 2e-5
    # nodes of structures take friction as an implicit step of its own, of first order
    assert rigid.energy().friction == pytest.approx(nodes.energy().friction, rel=1e-2)
    assert rigid.energy().damping == pytest.approx(nodes.energy().damping, rel=2e-2)


@pytest.mark.filterwarnings("ignore::tensegrity_dynamics.errors.AccuracyWarning")
def test_three_fingers_press_a_table_alike():
    robot = load_robot(Path(__file__).parents[3] / "examples" / "tendon_hand.yaml")
    simulation = Simulation(robot, 1e-3, "implicit")
    simulation.command("effort", {each.name: -0.002 for each in robot.actuators})
    simulation.advance(duration=0.1)
    pushes = [simulation.observe().contacts[f"tip_{k}"] for k in (1, 2, 3)]
    assert pushes[0][2] > 0.05
    for k in (1, 2):
        c, s = np.cos(k * 2.0 * np.pi / 3.0), np.sin(k * 2.0 * np.pi / 3.0)
        turned = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]]) @ pushes[0]
        np.testing.assert_allclose(pushes[k], turned, atol=1e-4)


# -- files and pictures -------------------------------------------------------------------------------------------


def test_pictures_show_the_ground_and_what_it_carries():
    picture = make_picture(parse_robot(FINGER, "finger"))
    assert picture.surface is not None
    shape = MechanismEquilibriumSolver(picture.model.mechanism, ("drumJt",)).solve(picture.start)
    lines = picture.contact_lines(shape.q)
    assert len(lines) == 1 and lines[0, 1, 2] > lines[0, 0, 2]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("contact_parts:", "outputs_of:", r"contact: nothing touches this ground"),
        ("contact: {stiffness: 2.0e+3, friction: 0.3}", "", r"contact_parts: there is no ground that they touch"),
        (
            "size: [0.005]",
            "size: [0.005, 1]",
            r"contact_parts\[0\].*size: a sphere has 1 dimensions .* found 2",
        ),
        ("size: [0.005]", "size: [-1]", r"contact_parts\[0\].*its size -1 m must be finite and above zero"),
        ("{name: tip, body: lower, kind: sph", "{name: tip, body: lowr, kind: sph", r"Did you mean 'lower'"),
        ("friction: 0.3}", "friction: 0.3, height: 0.1}", r"contact_parts\[0\].*tip starts 0.\d+ m under the ground"),
    ],
)
def test_a_bad_ground_is_refused_by_its_field(old, new, message):
    assert old in FINGER
    text = FINGER.replace(old, new)
    if new == "outputs_of:":
        text = text[: text.index("outputs_of:")]
    with pytest.raises(RobotFileError, match=message):
        parse_robot(text, "finger")


def test_a_part_of_an_unknown_kind_is_refused():
    with pytest.raises(TensegrityError, match="There is no kind 'cone'"):
        ContactPart("tip", "block", "cone")


def floating_struts(slope: float, friction: float, foot: float) -> str:
    """A prism of three floating struts of class 1 that stands on a slope [deg] with feet of some radius [m]."""
    turn, length, low, top = math.radians(slope), 0.4173, [], []
    for i in range(3):
        for ends, angle, z in ((low, 120.0 * i, foot), (top, 120.0 * i + 150.0, 0.3 + foot)):
            x, y = 0.15 * math.cos(math.radians(angle)), 0.15 * math.sin(math.radians(angle))
            ends.append(
                np.array([x * math.cos(turn) + z * math.sin(turn), y, -x * math.sin(turn) + z * math.cos(turn)])
            )
    bodies, frames, feet, cables = {}, [], [], []
    tube = {"kind": "tube", "size": [0.008, 0.006, length], "density": 2700, "frame": {"at": [0, 0, length / 2]}}
    for i in range(3):
        bodies[f"rod{i}"] = {"shapes": [tube]}
        along = top[i] - low[i]
        frame = {"at": low[i].tolist(), "z": along.tolist(), "y": np.cross(along, [0.3, 0.2, 0.9]).tolist()}
        frames.append({"name": f"free{i}", "kind": "floating", "parent": "world", "body": f"rod{i}", "frame": frame})
        feet.append({"name": f"foot{i}", "body": f"rod{i}", "kind": "sphere", "size": [foot], "at": [0, 0, 0]})
        size = float(np.linalg.norm(along))
        for name, begin, other, end, tension in (
            ("base", 0.0, (i + 1) % 3, 0.0, 9.68),
            ("head", size, (i + 1) % 3, size, 9.68),
            ("side", 0.0, (i + 2) % 3, size, 20.0),
        ):
            route = [{"body": f"rod{i}", "at": [0, 0, begin]}, {"body": f"rod{other}", "at": [0, 0, end]}]
            cables.append(
                {"name": f"{name}{i}", "young": 1e9, "cable_radius": 1e-3, "tension": tension, "route": route}
            )
    ground = {"stiffness": 2e4, "friction": friction, "slope": f"{slope} deg"}
    return json.dumps({
        "kind": "mechanism", "name": "struts", "gravity": [0, 0, -9.80665], "contact": ground, "bodies": bodies,
        "joints": frames, "contact_parts": feet, "routed_cables": cables,
    })  # fmt: skip


@settings(max_examples=6)
@given(slope=st.floats(0.5, 25.0), friction=st.floats(0.5, 1.0))
def test_floating_struts_stand_on_a_slope_by_friction_that_carries_their_weight(slope, friction) -> None:
    robot = parse_robot(floating_struts(slope, friction, 1e-9), "struts")
    found = MechanismEquilibriumSolver(robot.mechanism).solve(robot.model.initial_configuration)
    forces = np.array([reading[:, 1].sum(axis=0) for reading in found.contacts.values()])
    weight = 9.80665 * sum(each.mass for each in robot.mechanism.bodies)
    np.testing.assert_allclose(forces.sum(axis=0), [0.0, 0.0, weight], atol=1e-8)
    normal = robot.mechanism.ground.normal
    pressed = forces @ normal
    slid = np.linalg.norm(forces - np.outer(pressed, normal), axis=1)
    np.testing.assert_allclose(slid, math.tan(math.radians(slope)) * pressed, rtol=1e-6)
    assert found.stable and found.idle.shape[1] == 3  # the struts spin about their axes


def test_round_feet_of_struts_that_turn_freely_roll_down_a_slope_and_the_refusal_says_so() -> None:
    robot = parse_robot(floating_struts(5.0, 0.5, 0.01), "struts")
    with pytest.raises(NoEquilibriumError, match="round foot rolls"):
        MechanismEquilibriumSolver(robot.mechanism).solve(robot.model.initial_configuration)
