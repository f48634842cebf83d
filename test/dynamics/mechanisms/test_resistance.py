"""Springs, dampers, friction and stops of tree and loop joints, drive trains and loads: closed forms and energy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensegrity_dynamics import RobotFileError, Simulation, TensegrityError, load_robot, parse_robot
from tensegrity_dynamics.mechanisms import equations, forward_dynamics
from tensegrity_dynamics.mechanisms.dynamics.equations_of_motion import evaluate
from tensegrity_dynamics.mechanisms.kinematics.configuration_space import displaced
from tensegrity_dynamics.mechanisms.loop_joints import Loop
from tensegrity_dynamics.mechanisms.resistance import Resistance
from tensegrity_dynamics.mechanisms.statics.equilibrium_solver import MechanismEquilibriumSolver
from tensegrity_dynamics.mechanisms.workspace import make_workspace

PENDULUM = """
name: pendulum
kind: mechanism
gravity: [0, 0, {gravity}]
bodies:
  arm: {{shapes: [{{kind: point, mass: 2, frame: {{at: [0.5, 0, 0]}}}}]}}
joints:
  - {{name: hinge, kind: revolute, parent: world, body: arm, axis: [0, 1, 0]{joint}}}
{more}
"""
INERTIA = 2 * 0.5**2


def pendulum(joint="", gravity=0.0, more=""):
    return parse_robot(PENDULUM.format(joint=joint and f", resistance: {joint}", gravity=gravity, more=more), "here")


FOUR_BAR = """
name: four_bar
kind: mechanism
bodies:
  crank: {{shapes: [{{kind: box, size: [0.3, 0.02, 0.02], mass: 1, frame: {{at: [0.15, 0, 0]}}}}]}}
  coupler: {{shapes: [{{kind: box, size: [0.5, 0.02, 0.02], mass: 1, frame: {{at: [0.25, 0, 0]}}}}]}}
  slider: {{shapes: [{{kind: box, size: [0.1, 0.1, 0.1], mass: 2}}]}}
joints:
  - {{name: a, kind: revolute, parent: world, body: crank, axis: [0, 0, 1], start: [0.6], resistance: {{damping: 0.3}}}}
  - {{name: b, kind: revolute, parent: crank, body: coupler, frame: {{at: [0.3, 0, 0]}}, axis: [0, 0, 1],
     start: [-1.0]}}
  - {{name: c, kind: prismatic, parent: world, body: slider, axis: [1, 0, 0], start: [0.7]}}
loops:
  - {{name: pin, kind: {kind}, before: coupler, after: slider, frame_before: {{at: [0.5, 0, 0]}}{loop}}}
"""


def test_a_pendulum_on_a_spring_swings_with_its_period():
    simulation = Simulation(pendulum("{stiffness: 8, rest: '10 deg'}"), start=[0.3], time_step=1e-3)
    omega, rest = np.sqrt(8 / INERTIA), np.deg2rad(10)
    simulation.advance(duration=0.5)
    assert simulation.state.q[0] == pytest.approx(rest + (0.3 - rest) * np.cos(omega * 0.5), abs=1e-9)
    assert simulation.energy().elastic == pytest.approx(4.0 * (simulation.state.q[0] - rest) ** 2, rel=1e-12)


def test_coulomb_friction_takes_its_moment_times_the_angle():
    simulation = Simulation(pendulum("{friction: 0.5, friction_speed: 0.01}"), time_step=1e-3, start=[0.0])
    simulation.set_motion([2.0])
    simulation.advance(duration=0.5)
    slowed = 2.0 - 0.5 * 0.5 / INERTIA
    assert simulation.state.v[0] == pytest.approx(slowed, rel=1e-9)
    assert simulation.energy().friction == pytest.approx(0.5 * simulation.state.q[0], rel=1e-9)
    assert simulation.energy_error == pytest.approx(0.0, abs=1e-12)


def test_a_stop_holds_a_weight_where_its_spring_balances_it():
    robot = pendulum("{limits: [-1, 0.2], stop_stiffness: 1000, stop_damping: 20}", gravity=-9.80665)
    rest = MechanismEquilibriumSolver(robot.mechanism).solve(robot.model.start)
    depth = rest.q[0] - 0.2
    assert 1000 * depth == pytest.approx(2 * 9.80665 * 0.5 * np.cos(rest.q[0]), rel=1e-9)
    assert rest.stable
    simulation = Simulation(robot, start=[0.0])
    simulation.advance(duration=3.0)
    assert simulation.state.q[0] == pytest.approx(rest.q[0], abs=1e-4)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("integrator", ["rk4", "adaptive"])
def test_energy_stays_in_balance_with_springs_friction_and_stops(integrator):
    law = "{stiffness: 5, damping: 0.05, friction: 0.1, friction_speed: 0.05, limits: [-0.8, 0.8], stop_stiffness: 300}"
    simulation = Simulation(pendulum(law, gravity=-9.80665), start=[0.5], integrator=integrator, time_step=2e-4)
    simulation.set_motion([3.0])
    whole = simulation.energy().kinetic
    simulation.advance(duration=2.0)
    assert simulation.energy().damping > 0.01 and simulation.energy().friction > 0.05
    assert abs(simulation.energy_error) < 1e-5 * whole


@pytest.mark.parametrize("kind", ["revolute", "cylindrical"])
def test_efforts_of_loop_springs_are_the_gradient_of_their_energy(kind):
    robot = parse_robot(FOUR_BAR.format(kind="point_xy", loop=""), "here")
    old = robot.mechanism.loops[0]
    law = Resistance(stiffness=3.0, rest=0.2)
    frames = (old.predecessor_frame, old.successor_frame)
    slide = law if kind == "cylindrical" else None
    mechanism = replace(robot.mechanism, loops=(Loop("pin", kind, "coupler", "slider", *frames, law, slide),))
    q, still, work = robot.model.start, np.zeros(3), make_workspace(mechanism.flat)

    def energy(at):
        evaluate(mechanism.flat, at, still, work)
        return work.resistance[0]

    passive = equations(mechanism, q, still).passive
    differences = [
        (energy(displaced(mechanism, q, h)) - energy(displaced(mechanism, q, -h))) / 2e-6 for h in 1e-6 * np.eye(3)
    ]
    assert np.abs(passive).max() > 0.1
    np.testing.assert_allclose(passive, -np.array(differences), atol=1e-8)


def test_energy_stays_in_balance_with_resistances_of_loops():
    robot = parse_robot(FOUR_BAR.format(kind="point_xy", loop=""), "here")
    pin = replace(robot.mechanism.loops[0], kind="revolute", turning=Resistance(2.0, 0.3, 0.05, 0.02, 0.1))
    # in the plane the revolute's other rows are held by the tree already; the ball's drag needs none of them
    ball = replace(robot.mechanism.loops[0], kind="point", turning=Resistance(0.0, 0.0, 0.05, 0.02, 0.1))
    for loop in (pin, ball):
        mechanism = replace(robot.mechanism, loops=(loop,))
        simulation = Simulation(replace(robot.model, mechanism=mechanism), start="file", time_step=5e-4)
        simulation.set_motion([4.0, -6.0, 0.0])
        whole = simulation.energy().total
        simulation.advance(duration=0.5)
        assert simulation.energy().friction > 1e-3
        assert abs(simulation.energy_error) < 1e-5 * whole


PISTON = """
name: piston
kind: mechanism
gravity: [0, 0, 0]
bodies: {{rod: {{mass: 2, inertia: [0.02, 0.03, 0.05]}}}}
joints: [{{name: flight, kind: floating, parent: world, body: rod, start: [0.07, 0, 0, 0.4, 0, 0]}}]
loops: [{{name: tube, kind: cylindrical, before: world, after: rod, frame_before: {{z: [1, 0, 0], y: [0, 1, 0]}},
  frame_after: {{z: [1, 0, 0], y: [0, 1, 0]}}, sliding: {{stiffness: 300, rest: 0.02{sliding}}},
  turning: {{stiffness: 1.5{turning}}}}}]
"""


def test_springs_of_a_loop_that_slides_and_turns_swing_with_their_periods():
    simulation = Simulation(parse_robot(PISTON.format(sliding="", turning="")), 1e-3, start="file")
    assert simulation.energy().elastic == pytest.approx(0.5 * 300 * 0.05**2 + 0.5 * 1.5 * 0.4**2, rel=1e-12)
    simulation.advance(duration=10.0)
    q = simulation.state.q
    assert q[0] == pytest.approx(0.02 + 0.05 * np.cos(np.sqrt(300 / 2) * 10.0), abs=1e-9)
    assert 2.0 * np.arctan2(q[4], q[3]) == pytest.approx(0.4 * np.cos(np.sqrt(1.5 / 0.02) * 10.0), abs=1e-8)
    assert abs(simulation.energy_error) < 1e-9


def test_energy_stays_in_balance_for_ten_seconds_with_all_that_resists_in_a_loop():
    laws = {
        "sliding": ", damping: 3, friction: 0.5, friction_speed: 0.01",
        "turning": ", damping: 0.01, limits: [-0.2, 0.3], stop_stiffness: 50, stop_damping: 0.2",
    }
    simulation = Simulation(parse_robot(PISTON.format(**laws)), 2.5e-4, start="file")
    simulation.advance(duration=10.0)
    energy = simulation.energy()
    assert min(energy.friction, energy.damping) > 0.1
    assert abs(simulation.energy_error) < 1e-8


@settings(max_examples=8, deadline=None)
@given(
    st.tuples(*[st.floats(0, 10)] * 5), st.floats(-1, 1), st.floats(-5, 5),
)  # fmt: skip
def test_what_resists_never_gives_more_than_its_spring_stores(values, angle, speed):
    stiffness, damping, friction, stop, stop_damping = values
    law = Resistance(stiffness, 0.1, damping, friction, 0.01, (-0.3, 0.3), 1.0 + stop, stop_damping)
    mechanism = pendulum("{damping: 1}").mechanism
    joint = replace(mechanism.joints[0], resistance=(law,))
    mechanism = replace(mechanism, joints=(joint,))
    moving = equations(mechanism, np.array([angle]), np.array([speed])).passive[0]
    still = equations(mechanism, np.array([angle]), np.zeros(1)).passive[0]
    assert (moving - still) * speed <= 1e-12
    over = max(angle - 0.3, 0.0) - max(-0.3 - angle, 0.0)
    assert still == pytest.approx(-stiffness * (angle - 0.1) - (1.0 + stop) * over, abs=1e-12)


def test_a_spherical_joint_turns_back_along_its_rotation_vector():
    robot = parse_robot(
        """
name: ball
kind: mechanism
bodies: {b: {shapes: [{kind: cube, size: [0.1], mass: 1}]}}
joints: [{name: j, kind: spherical, parent: world, body: b, start: [0.3, -0.4, 1.2], resistance: {stiffness: 2}}]
""",
        "here",
    )
    passive = equations(robot.mechanism, robot.model.start, np.zeros(3)).passive
    np.testing.assert_allclose(passive, -2 * np.array([0.3, -0.4, 1.2]), atol=1e-12)


def test_a_rotor_adds_gear_squared_times_its_inertia_and_friction():
    more = (
        "actuators: [{drives: hinge, position: [-1, 1], rate: 5, effort: 2, gear: 10, rotor_inertia: 0.003,"
        " motor_damping: 0.002, motor_friction: 0.004}]"
    )
    robot = pendulum(more=more)
    parts = equations(robot.mechanism, np.zeros(1), np.array([1.5]))
    assert parts.mass[0, 0] == pytest.approx(INERTIA + 0.3)
    assert parts.passive[0] == pytest.approx(-0.2 * 1.5 - 0.04)


@pytest.mark.parametrize("gear", ["0.2 rev/mm", "400 * pi", '"1256.6370614359173 rad/m"'])
def test_the_gear_of_a_spindle_is_its_turning_per_length(gear):
    robot = parse_robot(
        f"""
name: spindle
kind: mechanism
bodies: {{b: {{shapes: [{{kind: cube, size: [0.1], mass: 1}}]}}}}
joints: [{{name: j, kind: prismatic, parent: world, body: b}}]
actuators: [{{drives: j, position: [-1, 1], rate: 1, effort: 2, gear: {gear}, rotor_inertia: 1.0e-6}}]
""",
        "here",
    )
    parts = equations(robot.mechanism, np.zeros(1), np.zeros(1))
    assert parts.mass[0, 0] == pytest.approx(1.0 + 1e-6 * (400 * np.pi) ** 2)


def test_a_rotor_on_what_is_not_there_is_refused_for_the_name():
    with pytest.raises(RobotFileError, match=r"drives: There is no drivable part 'hing'. Did you mean 'hinge'"):
        pendulum(more="actuators: [{drives: hing, position: [-1, 1], rate: 5, effort: 2, rotor_inertia: 0.003}]")


def test_loads_of_the_file_act_like_the_forces_that_a_user_applies():
    loads = "loads: [{name: pull, body: arm, at: [0.5, 0, 0], force: [0, 0, 3], moment: [0, 0.2, 0]}]"
    robot = pendulum(more=loads, gravity=-9.80665)
    at = np.array([0.4])
    arm = 0.5 * np.array([np.cos(0.4), 0, -np.sin(0.4)])
    wrench = {"arm": np.concatenate(([0, 0, 3], np.cross(arm, [0, 0, 3]) + [0, 0.2, 0]))}
    simulation = Simulation(pendulum(gravity=-9.80665), start=at, time_step=1e-7)
    simulation.apply_forces(wrench)
    simulation.advance(1)
    own = forward_dynamics(robot.mechanism, at, np.zeros(1)).acceleration[0]
    assert simulation.state.v[0] / 1e-7 == pytest.approx(own, rel=1e-6)
    free = Simulation(robot, start=at, time_step=1e-3)
    free.advance(duration=1.0)
    assert abs(free.energy().forces) > 0.1
    assert abs(free.energy_error) < 1e-6


def test_a_payload_is_a_part_of_its_body_and_can_be_taken_off():
    loads = "loads: [{name: box, body: arm, at: [1.0, 0, 0], mass: 3}]"
    robot = pendulum(more=loads, gravity=-10)
    at, speed = np.array([0.0]), np.zeros(1)
    loaded = forward_dynamics(robot.mechanism, at, speed).acceleration[0]
    assert loaded == pytest.approx(10 * (2 * 0.5 + 3 * 1.0) / (INERTIA + 3 * 1.0))
    simulation = Simulation(robot, start=at, time_step=1e-3)
    simulation.set_motion([1.0])
    simulation.advance(200)
    simulation.detach("box")
    simulation.attach("ball", "arm", 1.0, (0.2, 0, 0))
    simulation.set_gravity([0, 0, -3.0])
    simulation.advance(200)
    assert simulation.energy().forces < -0.1
    assert abs(simulation.energy_error) < 1e-8
    moving = forward_dynamics(pendulum(gravity=-3).mechanism, at, speed).acceleration[0]
    simulation.detach("ball")
    simulation.set_state(at)
    before = simulation.state.v[0]
    simulation.advance(1)
    assert (simulation.state.v[0] - before) / 1e-3 == pytest.approx(moving, rel=1e-5)
    simulation.reset()
    simulation.set_state(at)
    simulation.advance(1)
    assert simulation.state.v[0] / 1e-3 == pytest.approx(loaded, rel=1e-5)
    with pytest.raises(TensegrityError, match="ball"):
        simulation.detach("ball")


def test_a_body_may_state_its_mass_centre_and_inertia():
    text = PENDULUM.format(joint="", gravity=0, more="").replace(
        "arm: {", "arm: {mass: 3, centre: [0.1, 0, 0.2], inertia: [0.4, 0.5, 0.6, 0.1, 0, -0.05], "
    )
    body = parse_robot(text, "here").mechanism.bodies[0]
    assert body.mass == 3 and body.inertia[0, 1] == body.inertia[1, 0] == 0.1 and body.inertia[1, 2] == -0.05
    mass = equations(parse_robot(text, "here").mechanism, np.zeros(1), np.zeros(1)).mass[0, 0]
    assert mass == pytest.approx(0.5 + 3 * (0.1**2 + 0.2**2))


BAD = {
    "{friction: -1}": "joints.0.*resistance.*friction is -1",
    "{stiffness: '3 N'}": "joints.0.*resistance.stiffness.*torsional stiffness",
    "{limits: [1, -1], stop_stiffness: 3}": "resistance.*empty range",
    "{limits: [0, 1]}": "stop_stiffness above zero",
    "{stop_stiffness: 3}": "no limits",
    "{friction_speed: 0}": "friction_speed is 0",
    "{drag: 0}": r"^[^\n]*resistance.*drag: unknown field[^\n]*$",
    "[{drag: 0}]": r"^[^\n]*resistance\[0\].drag: unknown field[^\n]*$",
    "5": r"^[^\n]*resistance: a mapping is needed; found 5.$",
    "[]": r"^[^\n]*resistance: the number of entries must be at least 1; found 0.$",
    "[{damping: 1}, {damping: 1}]": "takes 1, one for each coordinate; found 2",
}


@pytest.mark.parametrize("law", BAD)
def test_a_bad_resistance_is_refused_by_its_field(law):
    with pytest.raises(RobotFileError, match=BAD[law]):
        pendulum(law)


def test_bad_loads_bodies_and_gears_are_refused_by_their_field():
    cases = {
        "loads: [{name: a, body: leg, mass: 1}]": r"loads\[0\].*body.*arm",
        "loads: [{name: a, body: arm}]": r"loads\[0\].*give a mass, or a force",
        "loads: [{name: a, body: arm, mass: 1, force: [0, 0, 1]}]": r"loads\[0\].*either",
        "loads: [{name: a, body: arm, mass: -1}]": r"loads\[0\].*mass",
        "loads: [{name: a, body: arm, force: [0, 0, .nan]}]": r"loads\[0\].*a force is needed",
        "actuators: [{drives: hinge, position: [-1, 1], rate: 5, effort: 2, gear: 0}]": r"actuators\[0\].*gear",
    }
    for more, reason in cases.items():
        with pytest.raises(RobotFileError, match=reason):
            pendulum(more=more)
    inertia = PENDULUM.format(joint="", gravity=0, more="").replace("arm: {", "arm: {mass: 1, inertia: [1, 1, 3], ")
    with pytest.raises(RobotFileError, match="largest principal moment"):
        parse_robot(inertia, "here")
    loop = FOUR_BAR.format(kind="point_xy", loop=", turning: {damping: 1}")
    with pytest.raises(RobotFileError, match="no free turn"):
        parse_robot(loop, "here")


GEARED = "actuators: [{drives: hinge, position: [-9, 9], rate: 50, effort: 5, gear: 30, efficiency: 0.7}]"


@pytest.mark.parametrize(("speed", "passed"), [(2.0, 0.7), (-2.0, 1.0 / 0.7)])
def test_a_gear_passes_its_efficiency_forward_and_its_inverse_backward(speed, passed):
    simulation = Simulation(pendulum(more=GEARED), time_step=1e-3, start=[0.0])
    simulation.set_motion([speed])
    simulation.command("effort", {"hinge": 0.5})
    simulation.advance(duration=0.2)
    assert simulation.state.v[0] == pytest.approx(speed + 0.2 * 0.5 * passed / INERTIA, rel=1e-9)
    lost = simulation.energy().friction
    assert lost == pytest.approx(abs(passed - 1.0) * 0.5 * abs(simulation.state.q[0]), rel=1e-9)
    assert simulation.energy_error == pytest.approx(0.0, abs=1e-9)


def test_a_load_below_what_the_gear_loses_does_not_drive_it_back():
    """The joint pushes 0.5 back on a motor that gives 0.4, whose gear holds up to 0.4 / 0.7."""
    simulation = Simulation(pendulum(more=GEARED, gravity=-0.5), time_step=1e-3, start=[0.0])
    simulation.command("effort", {"hinge": -0.4})
    simulation.advance(duration=0.2)
    assert abs(simulation.state.q[0]) < 0.2 * 1e-3


def test_what_the_regularised_loss_of_a_gear_changes_falls_with_its_speed():
    off = []
    for speed in (1e-2, 1e-3):
        geared = pendulum(f"{{friction_speed: {speed}}}", more=GEARED)
        simulation = Simulation(geared, time_step=1e-4, start=[0.0])
        simulation.command("effort", {"hinge": 0.5})
        simulation.advance(duration=0.05)
        off.append(simulation.state.v[0] - 0.05 * 0.5 * 0.7 / INERTIA)
    assert 0.0 < off[1] < 0.11 * off[0] < 1e-3


def test_a_gear_of_zero_is_refused():
    with pytest.raises(RobotFileError, match=r"actuators\[0\].*gear"):
        pendulum(more=GEARED.replace("gear: 30", "gear: 0"))


@pytest.mark.parametrize("efficiency", [0, 1.2, "'2 N'"])
def test_an_efficiency_that_no_gear_has_is_refused(efficiency):
    with pytest.raises(RobotFileError, match=r"actuators\[0\].*efficiency"):
        pendulum(more=GEARED.replace("0.7", str(efficiency)))


def test_shapes_at_rest_know_no_gear():
    shape = MechanismEquilibriumSolver(pendulum("{stiffness: 8}", gravity=-1.0, more=GEARED).mechanism)
    found = shape.solve([0.0]).q[0]
    assert 8.0 * found == pytest.approx(2 * 0.5 * np.cos(found), rel=1e-9)


@pytest.mark.filterwarnings("ignore::tensegrity_dynamics.errors.AccuracyWarning")
def test_a_geared_winch_that_reaches_its_torque_limit_moves_alike_at_every_step():
    turned = []
    for step in (5e-4, 1e-3):
        simulation = Simulation(load_robot(Path(__file__).parents[3] / "examples" / "finger.yaml"), step, "implicit")
        simulation.advance(duration=0.05, position={"winch": -1.0})
        turned.append(simulation.observe().positions["winch"])
    assert turned == pytest.approx([-0.5, -0.5], abs=1e-2)  # its rate limit, within the distance of one step


@pytest.mark.filterwarnings("ignore::tensegrity_dynamics.errors.AccuracyWarning")
@pytest.mark.parametrize(
    ("law", "term"),
    [
        ("{friction: 1e8}", "friction"),
        ("{friction: 1, friction_speed: 1e-12, damping: 2}", "friction"),
        ("{damping: 1e12, friction: 1}", "damping"),
        ("{stiffness: 1e15, damping: 3}", "stiffness"),
        ("{limits: [-1, 1], stop_stiffness: 1e15, stop_damping: 1}", "stop_stiffness"),
    ],
)
def test_a_joint_too_stiff_for_explicit_steps_is_simulated_by_implicit_ones_or_refused_by_its_term(law, term):
    robot = parse_robot(FOUR_BAR.format(kind="point_xy", loop="").replace("{damping: 0.3}", law), "here")
    for integrator in ("rk4", "adaptive"):
        with pytest.raises(
            TensegrityError, match=rf"the {term} .*of a makes motions as fast as .*integrator 'implicit'"
        ):
            Simulation(robot, integrator=integrator)
    Simulation(robot, 1e-3, "rk4")  # a step that was asked for is taken
    simulation = Simulation(robot)
    assert simulation.integrator == "implicit" and f"the {term}" in simulation.note
    simulation.advance(duration=0.02)
    assert np.isfinite(simulation.state.q).all()


def test_a_rest_position_without_a_spring_is_refused():
    with pytest.raises(RobotFileError, match=r"joints\[0\] .*resistance\.rest: only a spring has a rest position"):
        pendulum("{rest: '10 deg'}")
