"""Routed cables without stretch: multipliers as tensions, slack and taut, and what is refused."""

from __future__ import annotations

import pickle
from copy import deepcopy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensegrity_dynamics import RobotFileError, Simulation, TensegrityError, parse_robot
from tensegrity_dynamics.mechanisms.dynamics.equations_of_motion import evaluate
from tensegrity_dynamics.mechanisms.kinematics.configuration_space import displaced
from tensegrity_dynamics.mechanisms.mechanism_model import MechanismModel
from tensegrity_dynamics.mechanisms.routing.columns import STRAIN
from tensegrity_dynamics.mechanisms.simulation.transitions import differ, read_pattern
from tensegrity_dynamics.mechanisms.statics.equilibrium_solver import MechanismEquilibriumSolver
from tensegrity_dynamics.mechanisms.workspace import make_workspace
from tensegrity_dynamics.robots.robot_types import type_of
from tensegrity_tools.experiments import routing

GRAVITY = 9.80665
RIGID = "rigid: true"


def tied(route, bodies, joints, options="", gravity=f"0, 0, -{GRAVITY}", more=""):
    return parse_robot(
        f"""
name: tied
kind: mechanism
gravity: [{gravity}]
bodies: {{{bodies}}}
joints: [{joints}]
routed_cables: [{{name: rope, {RIGID}{options}, route: [{route}]}}]
{more}
""",
        "here",
    )


BALL = "ball: {mass: 1, inertia: [1, 1, 1]}"


def ball(at, length=None):
    return tied(
        "{body: world, at: [0, 0, 0]}, {body: ball, at: [0, 0, 0]}", BALL,
        f"{{name: ballJt, kind: floating, parent: world, body: ball, start: [{at}, 0, 0, 0]}}",
        "" if length is None else f", length: {length}",
    )  # fmt: skip


def atwood(heavy=2.0):
    sides = ", ".join(
        f"{{name: {name}Jt, kind: prismatic, parent: world, body: {name}, axis: [0, 0, -1], "
        f"frame: {{at: [{x}, 0, -1]}}}}"
        for name, x in (("heavy", -0.1), ("light", 0.1))
    )
    return tied(
        "{body: heavy, at: [0, 0, 0]}, {joint: wheelJt, radius: 0.1, side: 1}, {body: light, at: [0, 0, 0]}",
        f"wheel: {{mass: 1, inertia: [0.01, 0.01, 0.01]}}, heavy: {{mass: {heavy}, inertia: [1, 1, 1]}}, "
        "light: {mass: 1, inertia: [1, 1, 1]}",
        f"{{name: wheelJt, kind: revolute, parent: world, body: wheel, axis: [0, 1, 0]}}, {sides}",
    )  # fmt: skip


# -- closed forms ---------------------------------------------------------------------------------------------------


def test_an_atwood_machine_without_stretch_is_the_limit_of_those_that_stretch():
    simulation = Simulation(atwood(), time_step=5e-3, start="file")
    simulation.advance(4)
    fall = GRAVITY / (2 + 1 + 0.01 / 0.1**2)
    assert simulation.state.q[1] == pytest.approx(0.5 * fall * simulation.time**2, rel=1e-8)
    assert simulation.observe().routes["rope"].tensions == pytest.approx((2 * (GRAVITY - fall), GRAVITY + fall))
    near, far = (routing.atwood(young=young, duration=0.005)["acceleration"] - fall for young in (1e10, 1e9))
    assert far == pytest.approx(10.0 * near, rel=1e-2)


@pytest.mark.parametrize("sheaves", [1, 5])
def test_every_line_of_a_rigid_block_and_tackle_carries_its_share(sheaves):
    route = ["{body: world, at: [0, 0, 0]}"]
    for k in range(sheaves):
        route.append(f"{{body: block, at: [{0.1 + 0.4 * k:.1f}, 0, 0], axis: [0, 1, 0], radius: 0.1, side: -1}}")
        route.append(f"{{body: world, at: [{0.3 + 0.4 * k:.1f}, 0, 0], axis: [0, 1, 0], radius: 0.1, side: 1}}")
    route[-1] = "{body: pull, at: [0, 0, 0]}"
    x = 0.2 + 0.4 * (sheaves - 1)
    robot = tied(
        ", ".join(route), "block: {mass: 4, inertia: [1, 1, 1]}, pull: {mass: 1, inertia: [1, 1, 1]}",
        "{name: hoist, kind: prismatic, parent: world, body: block, frame: {at: [0, 0, -1]}}, "
        f"{{name: end, kind: prismatic, parent: world, body: pull, frame: {{at: [{x:.1f}, 0, 0]}}}}",
    )  # fmt: skip
    simulation = Simulation(robot, time_step=1e-3, start="file")
    simulation.advance(5)
    lines = 2 * sheaves
    # the end hangs below the last line and sinks `lines` times as far: (4 + lines^2) a = 4 g + lines g
    sinks = (4 + lines) * GRAVITY / (4 + lines**2)
    assert simulation.state.q[0] == pytest.approx(-0.5 * sinks * simulation.time**2, rel=1e-8)
    assert simulation.observe().tensions["rope"] == pytest.approx(4 * (GRAVITY - sinks) / lines, rel=1e-8)


def test_a_thrown_ball_leaves_its_circle_where_the_tension_vanishes():
    simulation = Simulation(ball("0, 0, -1"), time_step=4e-3, start="file")
    speed = np.sqrt(3.5 * GRAVITY)
    simulation.set_motion([0, 0, 0, speed, 0, 0])
    before = simulation.energy().total
    simulation.advance(210)
    simulator = simulation.simulator
    (time, name, kind), *_ = simulator.events
    assert (name, kind) == ("rope", "slack")
    # T = 0 where cos = (2 g l - v^2) / 3 g l, seen from below
    other = Simulation(ball("0, 0, -1"), time_step=time / 100, start="file")
    other.set_motion([0, 0, 0, speed, 0, 0])
    other.advance(100)
    assert -other.state.q[2] == pytest.approx((2 - 3.5) / 3, abs=1e-6)
    after = simulation.energy()
    assert after.total + after.damping == pytest.approx(before, abs=1e-6)
    assert np.linalg.norm(simulation.state.q[:3]) <= 1 + 1e-9


def test_a_falling_ball_is_caught_when_its_rope_is_straight_and_every_joule_is_reported():
    simulation = Simulation(ball("0.6, 0, -0.8", 1.2), time_step=1e-3, start="file")
    assert simulation.details == {"cable rope": "slack"}
    before = simulation.energy().total
    simulation.advance(300)
    ((time, _, kind),) = simulation.simulator.events
    drop = np.sqrt(1.44 - 0.36) - 0.8
    assert (kind, time) == ("taut", pytest.approx(np.sqrt(2 * drop / GRAVITY), abs=1e-8))
    along = np.sqrt(1.44 - 0.36) / 1.2  # of the fall, which is lost
    after = simulation.energy()
    assert after.damping == pytest.approx(GRAVITY * drop * along**2, rel=1e-6)
    assert after.total + after.damping == pytest.approx(before, abs=1e-9)
    assert np.linalg.norm(simulation.state.q[:3]) == pytest.approx(1.2, abs=1e-12)
    assert simulation.observe().tensions["rope"] > 0.0


def test_a_winch_without_stretch_lifts_drops_and_catches_its_load():
    robot = tied(
        "{joint: drumJt, radius: 0.05, side: 1}, {body: ball, at: [0, 0, 0]}",
        BALL + ", drum: {mass: 1, inertia: [0.01, 0.01, 0.01]}",
        "{name: drumJt, kind: revolute, parent: world, body: drum, axis: [0, 1, 0]}, "
        "{name: guide, kind: prismatic, parent: world, body: ball, frame: {at: [0.05, 0, -1]}}",
        more="actuators: [{drives: drumJt, position: [-20, 20], rate: 5, effort: 50}]",
    )
    simulation = Simulation(robot, time_step=2e-3)
    simulation.command("velocity", {"drumJt": -2.0})
    simulation.advance(50)
    lifted, seen = simulation.state.q[1], simulation.observe()
    assert lifted == pytest.approx(-0.05 * simulation.state.q[0], abs=1e-12)
    assert lifted > 5e-3
    assert seen.tensions["rope"] == pytest.approx(GRAVITY, rel=1e-3)  # the drum has come up to its speed
    # paid out faster than it falls
    simulation.command("effort", {"drumJt": 2.5})
    simulation.advance(20)
    assert simulation.observe().tensions["rope"] == 0.0
    simulation.command("velocity", {"drumJt": 0.0})
    simulation.advance(180)
    kinds = [kind for _, _, kind in simulation.simulator.events]
    assert kinds[0] == "slack"
    assert kinds[-1] == "taut"
    assert simulation.observe().tensions["rope"] == pytest.approx(GRAVITY, rel=1e-6)
    assert abs(simulation.energy_error) < 1e-6


# -- laws -----------------------------------------------------------------------------------------------------------

POINTS = [
    "{body: world, at: [-0.5, 0, -0.3]}", "{body: first, at: [-0.35, 0, 0], axis: [0, 1, 0], radius: 0.08, side: 1}",
    "{joint: sheaveJt, radius: 0.07, side: 1}",
    "{body: second, at: [0, 0, 0.05], axis: [0, -1, 0], radius: 0.1, side: 1}",
    "{body: second, at: [0.4, 0, -0.2]}",
]  # fmt: skip


@settings(max_examples=5, deadline=None)
@given(x=st.floats(-0.15, 0.15), z=st.floats(-0.15, 0.15), seed=st.integers(0, 100))
def test_rows_are_the_gradient_of_the_gap_and_their_bias_its_second_rate(x, z, seed):
    floating = "kind: floating, parent: world, start: "
    model = tied(
        ", ".join(POINTS), "first: {mass: 1, inertia: [1, 1, 1]}, second: {mass: 1, inertia: [1, 1, 1]}, "
        "sheave: {mass: 0.5, inertia: [0.1, 0.1, 0.1]}",
        f"{{name: firstJt, body: first, {floating}[{x!r}, 0, 0.5, 0, 0, 0]}}, "
        f"{{name: secondJt, body: second, {floating}[1.2, 0, {0.1 + z!r}, 0, 0, 0]}}, "
        "{name: sheaveJt, kind: revolute, parent: first, body: sheave, axis: [0, 1, 0], frame: {at: [0.1, 0, 0.4]}}",
        gravity="1, 2, 3",
    ).model_as(MechanismModel)  # fmt: skip
    mechanism = model.mechanism
    work = make_workspace(mechanism.flat)
    v = np.random.default_rng(seed).normal(size=mechanism.velocity_count)
    v[[d for d, name in enumerate(mechanism.coordinate_names()) if name.endswith((".wx", ".wz", ".vy"))]] = 0.0
    found = []
    for step in (1e-5, -1e-5):
        evaluate(mechanism.flat, displaced(mechanism, model.start, step * v), v, work)
        found.append((work.loop_error.copy(), work.loop @ v))
    evaluate(mechanism.flat, np.array(model.start), v, work)
    assert np.allclose(work.loop @ v, (found[0][0] - found[1][0]) / 2e-5, atol=1e-8)
    assert np.allclose(-work.loop_bias, (found[0][1] - found[1][1]) / 2e-5, atol=1e-6)


@pytest.mark.parametrize(("rest", "tension"), [(0.02, GRAVITY - 2.0), (0.2, 0.0)])
def test_a_rigid_rope_at_rest_is_taut_or_slack_and_never_pushes(rest, tension):
    robot = tied(
        "{body: world, at: [0, 0, 0]}, {body: ball, at: [0, 0, 0]}", BALL,
        "{name: guide, kind: prismatic, parent: world, body: ball, frame: {at: [0, 0, -1]}, "
        f"resistance: {{stiffness: 100, rest: {rest}}}}}",
    )  # fmt: skip
    shape = MechanismEquilibriumSolver(robot.mechanism).solve(robot.model.start)
    assert shape.routes["rope"].tension == pytest.approx(tension, abs=1e-9)
    assert shape.q[0] == pytest.approx(0.0 if tension else 0.2 - GRAVITY / 100, abs=1e-9)
    assert shape.stable
    notes = type_of(robot).report(robot).check().notes
    assert any("slack at rest: rope" in note for note in notes) is (tension == 0.0)


# -- refused --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("rigid: true", "rigid: true, young: 1e9", "young: a rigid cable does not stretch"),
        ("rigid: true", "rigid: true, damping: 5", "no strain to be damped"),
        ("rigid: true", "rigid: true, sag: true", "one of rigid and sag"),
        ("rigid: true", "rigid: true, length: 0.9", "too short"),
        ("rigid: true", "cable_radius: 0.001", r"young: a cable that stretches needs it"),
        ("radius: 0.1", "radius: 0.1, friction_speed: 0.2", "slips by the exact law"),
    ],
)
def test_what_a_rigid_cable_cannot_have_is_refused_by_name(old, new, said):
    text = """
name: tied
kind: mechanism
bodies: {wheel: {mass: 1, inertia: [1, 1, 1]}, ball: {mass: 1, inertia: [1, 1, 1]}}
joints:
  - {name: wheelJt, kind: revolute, parent: world, body: wheel, axis: [0, 1, 0]}
  - {name: ballJt, kind: prismatic, parent: world, body: ball, frame: {at: [0.1, 0, -1]}}
routed_cables:
  - {name: rope, rigid: true, route: [{body: world, at: [-0.1, 0, -1]}, {joint: wheelJt, radius: 0.1, side: 1},
     {body: ball, at: [0, 0, 0]}]}
"""
    assert parse_robot(text, "here")
    with pytest.raises(RobotFileError, match=said):
        parse_robot(text.replace(old, new, 1), "here")


def test_steps_of_controlled_error_and_linear_models_of_slack_ropes_are_refused_by_name():
    with pytest.raises(TensegrityError, match=r"rope does not stretch.*'rk4'"):
        Simulation(atwood(), integrator="adaptive")
    with pytest.raises(TensegrityError, match="rope hangs slack"):
        Simulation(ball("0.6, 0, -0.8", 1.2), time_step=1e-3, start="file").linearise()


def test_copy_of_a_simulation_leaves_the_original_alone_where_a_rope_goes_taut():
    """What a step undoes and loses belongs to the copy: the blow's energy was booked on the original."""
    robot = parse_robot("""
kind: mechanism
name: drop
bodies: {ball: {shapes: [{kind: point, size: [], mass: 1}]}}
joints: [{name: fall, kind: prismatic, parent: world, body: ball, axis: [0, 0, 1], frame: {at: [0, 0, -0.5]}}]
routed_cables:
  - {name: rope, rigid: true, cable_radius: 0.001, length: 0.6, route: [{body: world, at: [0, 0, 0]}, {body: ball, at: [0, 0, 0]}]}
""")  # noqa: E501
    simulation = Simulation(robot, 1e-3, start=[0.0])
    simulation.advance(20)
    copied, before = deepcopy(simulation), simulation.energy()
    copied.advance(200)
    assert copied.energy().damping == pytest.approx(0.1 * 9.80665, rel=1e-6)  # all that it fell
    assert simulation.energy() == before
    simulation.advance(200)
    assert simulation.energy() == copied.energy()
    with pytest.raises(TensegrityError, match="stays in its process"):
        pickle.dumps(simulation)


def test_no_reading_of_a_set_state_has_a_strand_that_pushes():
    # a spring lifts the load towards the point from which it hangs
    robot = parse_robot(
        """
        {kind: mechanism, name: lifted, bodies: {load: {mass: 1, inertia: [1, 1, 1]}},
         joints: [{name: z, kind: prismatic, parent: world, body: load, axis: [0, 0, 1], start: [-1],
                   resistance: {stiffness: 40}}],
         routed_cables: [{name: rope, rigid: true, route: [{body: world, at: [0, 0, 0]}, {body: load, at: [0, 0, 0]}]}]}
        """,
        "here",
    )
    simulation = Simulation(robot, time_step=1e-3)
    simulation.set_state(robot.model.initial_configuration)
    seen = simulation.observe()
    assert seen.tensions == {"rope": 0.0}  # -30.2 N before
    assert seen.routes["rope"].tensions == (0.0,)
    simulation.advance(duration=0.3)
    rest = -9.80665 / 40
    assert simulation.state.q[0] == pytest.approx(rest + (-1 - rest) * np.cos(0.3 * np.sqrt(40)), abs=1e-9)


def test_rounding_of_the_length_of_a_taut_rigid_rope_ends_no_step():
    """Elastic cables become slack or taut where their strain changes its sign; a rigid one has none but rounding."""
    simulator = Simulation(atwood(), time_step=1e-3, start="file").simulator
    patterns = []
    for rounding in (1e-16, -1e-16):
        simulator._work.route_state[:, STRAIN] = rounding
        patterns.append(simulator._stages.pattern.copy())
        read_pattern(simulator.flat, simulator._work, patterns[-1])
    assert not differ(*patterns)
