"""Slip of routed cables: the regularised law beside the exact one, and what is seen of stick and slip."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tensegrity_dynamics import RobotFileError, Simulation, TensegrityError, parse_robot
from tensegrity_dynamics.mechanisms.dynamics.equations_of_motion import evaluate
from tensegrity_dynamics.mechanisms.mechanism_model import MechanismModel
from tensegrity_dynamics.mechanisms.routing.columns import (
    DAMPING,
    DRIVE,
    PERIOD,
    RATE,
    RATIO,
    SLIP,
    STIFFNESS,
    STRAIN,
    TENSION,
    TRIAL,
)
from tensegrity_dynamics.mechanisms.routing.efforts import keep_slip
from tensegrity_dynamics.mechanisms.simulation import adaptive
from tensegrity_dynamics.mechanisms.workspace import make_workspace
from tensegrity_tools.commands.motion_table import write_table
from tensegrity_tools.commands.simulate import sample_of
from tensegrity_tools.experiments import routing

CHAIN = """
name: chain
kind: mechanism
gravity: [0, 0, 0]
bodies: {slider: {mass: 1, inertia: [1, 1, 1]}}
joints: [{name: slide, kind: prismatic, parent: world, body: slider, axis: [1, 0, 0], frame: {at: [0.7, 0, 0]}}]
routed_cables:
  - {name: rope, young: 1e9, cable_radius: 0.001, strain: 0, route: [
      {body: world, at: [-0.3, 0, 0]}, {body: world, at: [0, 0, 0], side: 1, axis: [0, 1, 0], radius: 0.05, friction: 0.3},
      {body: world, at: [0.4, 0, 0], side: -1, axis: [0, 1, 0], radius: 0.05, friction: 0.3}, {body: slider, at: [0, 0, 0]}]}
"""  # noqa: E501


def dragged(friction, *, mass=2.0, push=0.05, rest=0.0, damping=0.0, step=2e-4):
    """A mass on a spring that drags a tendon round a guide."""
    text = routing.GUIDE.replace("[0.05, 0, -0.4]", "[-0.05, 0, -0.4]").format(
        mass=mass, spring=4000, rest=rest, damping=damping, side=1, friction=friction
    )
    simulation = Simulation(parse_robot(text, "here"), time_step=step, start="file")
    simulation.set_motion([push])
    return simulation


def test_regularised_friction_comes_to_the_exact_law_in_proportion_to_its_speed():
    exact = dragged(0.15)
    exact.advance(150)
    distances = []
    for speed in (1e-3, 1e-4):
        soft = dragged(f"0.15, friction_speed: {speed}")
        soft.advance(150)
        distances.append(abs(float(soft.state.q[0] - exact.state.q[0])))
        found = soft.observe().routes["tendon"]
        rubbed = np.exp(0.15 * found.wraps[1] * np.tanh(abs(found.slip_speeds[1]) / speed))
        assert max(found.tensions) / min(found.tensions) == pytest.approx(rubbed, rel=1e-8)
        assert soft.energy().friction > 0.0
    assert distances[1] < 2e-4 * abs(float(exact.state.q[0]))
    assert distances[0] == pytest.approx(10.0 * distances[1], rel=0.1)


def test_regularised_friction_creeps_where_the_exact_one_sticks_and_never_gives_energy():
    taken = []
    pull = 0.004 * 1e9 * np.pi * 0.001**2  # of the tendon at the start, which the spring balances
    soft, exact = (dragged(f"0.3{more}", push=0.002, rest=pull / 4000) for more in (", friction_speed: 1e-3", ""))
    for _ in range(8):
        soft.advance(20)
        taken.append(soft.energy().friction)
    exact.advance(160)
    assert exact.observe().routes["tendon"].slipped[1] == 0.0
    assert soft.observe().routes["tendon"].contacts[1] == "creeps"
    assert abs(soft.observe().routes["tendon"].slipped[1]) > 1e-9
    assert (np.diff([0.0, *taken]) >= -1e-15).all()


@pytest.mark.parametrize("damping", [1e4, 3e5])
def test_regularised_friction_of_a_damped_tendon_takes_energy_and_comes_to_the_exact_law(damping):
    """It gave energy, as far as damping pulled against the strains."""
    ends = []
    for more in ("", ", friction_speed: 1e-3", ", friction_speed: 1e-4"):
        simulation, taken = dragged(f"0.15{more}", push=0.2, damping=damping, step=5e-5), [0.0]
        begin = simulation.energy().balance
        for _ in range(60):
            simulation.advance(10)
            taken.append(simulation.energy().friction)
        assert (np.diff(taken) >= -1e-15).all() and taken[-1] > 1e-4
        assert abs(simulation.energy().balance - begin) < 1e-5
        ends.append(float(simulation.state.q[0]))
    exact, soft, softer = ends
    assert abs(softer - exact) < 1e-3 * abs(exact)
    assert abs(softer - exact) < 0.3 * abs(soft - exact)


@settings(max_examples=25, deadline=None, phases=(Phase.explicit, Phase.generate))
@given(data=st.data())
def test_slip_under_regularised_friction_takes_power_whatever_the_rope_does(data):
    """Any guides, strains, slack strands, dampers, speeds and steps."""

    def power_of_ten(low, high):
        return 10.0 ** data.draw(st.floats(low, high))

    count = data.draw(st.integers(1, 5))
    guides = ", ".join(
        f"{{body: world, at: [{0.2 * k:.1f}, 0, 0], axis: [0, 1, 0], radius: 0.05, side: {1 - 2 * (k % 2)}, "
        f"friction: {power_of_ten(-3, 0.2)}, friction_speed: {power_of_ten(-6, 0)}}}"
        for k in range(count)
    )
    young = power_of_ten(6, 11.5)
    damping = young * power_of_ten(-6, -2) * data.draw(st.integers(0, 1))
    model = parse_robot(f"""
name: chain
kind: mechanism
bodies: {{slider: {{mass: 1, inertia: [1, 1, 1]}}}}
joints: [{{name: slide, kind: prismatic, parent: world, body: slider, axis: [1, 0, 0],
  frame: {{at: [{0.2 * count + 0.1:.1f}, 0, 0]}}}}]
routed_cables: [{{name: rope, young: {young}, cable_radius: 0.001, damping: {damping}, strain: {power_of_ten(-5, -1.5)},
  route: [{{body: world, at: [-0.3, 0, 0]}}, {guides}, {{body: slider, at: [0, 0, 0]}}]}}]
""").model_as(MechanismModel)
    flat, work = model.mechanism.flat, make_workspace(model.mechanism.flat)
    work.route_results[0, PERIOD] = power_of_ten(-6, -2)
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    work.route_state[1 : count + 1, SLIP] = rng.normal(scale=power_of_ten(-7, -2.5), size=count)
    q, v = model.start + rng.normal(scale=1e-3, size=1), rng.normal(scale=power_of_ten(-3, 0.5), size=1)
    evaluate(flat, q, v, work)
    rates, drives = work.route_state[1 : count + 1, RATE], work.route_state[: count + 1, DRIVE]
    stiffness, dashpot = flat.routed_cables[0, [STIFFNESS, DAMPING]]
    rounding = 1e-13 * (stiffness + dashpot * (1.0 / work.route_results[0, PERIOD] + np.abs(v).max()))
    assert np.isfinite(rates).all()
    assert (rates * np.diff(drives) >= -np.abs(rates) * (rounding + 1e-9 * np.abs(drives).max())).all()
    assert (work.route_state[: count + 1, TENSION] >= 0.0).all()


def test_stick_and_slip_are_seen_in_observations_tables_and_diagnostics(tmp_path):
    simulation = dragged(0.15)
    samples = [sample_of(simulation)]
    assert simulation.observe().routes["tendon"].contacts == ("", "sticks", "")
    states = []
    for _ in range(40):
        simulation.advance(10)
        found = simulation.observe().routes["tendon"]
        samples.append(sample_of(simulation))
        states.append(found.contacts[1])
        assert (found.slip_speeds[1] != 0.0) == (found.contacts[1] == "slips")
        assert found.contacts[1] in simulation.details["cable tendon"]
    assert {"sticks", "slips"} == set(states)
    write_table(samples, tmp_path / "motion.csv")
    rows = list(csv.DictReader((tmp_path / "motion.csv").open()))
    assert [float(row["tendon_1_slips"]) for row in rows[1:]] == [float(each == "slips") for each in states]
    assert float(rows[-1]["tendon_1_slip_m"]) == found.slipped[1]


def test_what_regularised_friction_cannot_be_is_refused_by_name():
    with pytest.raises(RobotFileError, match="friction_speed"):
        dragged("0.15, friction_speed: 0")
    with pytest.raises(RobotFileError, match="friction"):
        dragged("-0.15")
    with pytest.raises(RobotFileError, match="friction_speed to all points"):
        parse_robot(CHAIN.replace("friction: 0.3", "friction: 0.3, friction_speed: 0.001", 1))
    text = routing.GUIDE.replace("[0.05, 0, -0.4]", "[-0.05, 0, -0.4]").format(
        mass=2, spring=0, rest=0, damping=0, side=1, friction="0.15, friction_speed: 0.001"
    )
    with pytest.raises(TensegrityError, match=r"tendon has regularised friction.*'rk4'"):
        Simulation(parse_robot(text, "here"), integrator="adaptive")
    with pytest.raises(TensegrityError, match="tendon is damped and has regularised friction"):
        Simulation(parse_robot(text.replace("damping: 0", "damping: 1e5"), "here"), integrator="implicit")


def test_a_tight_strand_between_slack_ones_is_let_go_at_both_ends_alike():
    """Both guides ask for the same there, that nothing is left in the strand between them."""
    model = parse_robot(CHAIN, "chain").model_as(MechanismModel)
    flat = model.mechanism.flat
    work = make_workspace(flat)
    moved = 1e-3
    work.route_state[1:3, SLIP] = -moved, moved  # what was between the guides has gone to both ends
    evaluate(flat, np.array(model.start), np.array([1.0]), work)
    left = work.route_state[1:3, TRIAL] - work.route_state[1:3, SLIP]
    np.testing.assert_allclose(left, [moved, -moved], rtol=1e-9)
    assert (work.route_state[:, TENSION] == 0.0).all()
    assert np.isfinite(work.route_state).all()


def test_what_slips_is_found_from_any_state_and_takes_energy():
    """Every contact that slips does so towards the side that pulls, at its bound; those that stick are within it."""
    rng = np.random.default_rng(1)
    guides = [
        f"{{body: world, at: [{0.2 * k:.1f}, 0, 0], axis: [0, 1, 0], radius: 0.05, side: {1 if k % 2 == 0 else -1},"
        f" friction: {0.2 + 0.6 * (k % 3)}}}"
        for k in range(6)
    ]
    text = f"""
name: chain
kind: mechanism
gravity: [0, 0, 0]
bodies: {{slider: {{mass: 1, inertia: [1, 1, 1]}}}}
joints: [{{name: slide, kind: prismatic, parent: world, body: slider, axis: [1, 0, 0], frame: {{at: [1.3, 0, 0]}}}}]
routed_cables:
  - {{name: rope, young: 1e9, cable_radius: 0.001, strain: 0.02, route: [
      {{body: world, at: [-0.3, 0, 0]}}, {", ".join(guides)}, {{body: slider, at: [0, 0, 0]}}]}}
"""
    model = parse_robot(text, "chain").model_as(MechanismModel)
    flat, start, still = model.mechanism.flat, np.array(model.start), np.zeros(1)
    for _ in range(150):
        work = make_workspace(flat)
        work.route_state[1:7, SLIP] = rng.normal(scale=10.0 ** rng.uniform(-3.5, -2), size=6)
        evaluate(flat, start, still, work)
        state = work.route_state
        strain = np.maximum(state[:7, STRAIN], 0.0)
        ahead, behind, ratio = strain[1:], strain[:-1], state[1:7, RATIO]
        slipped = state[1:7, TRIAL] - state[1:7, SLIP]
        assert (ahead <= ratio * behind * (1 + 1e-9) + 1e-12).all()
        assert (behind <= ratio * ahead * (1 + 1e-9) + 1e-12).all()
        assert (slipped * (ahead - behind) >= -1e-15).all()
        assert keep_slip(flat.route_elements, flat.routed_cables, state) >= 0.0


BOUNCE = """
{kind: mechanism, name: bounce, gravity: [0, 0, -9.8],
 bodies: {wheel: {mass: 1, inertia: [1, 0.02, 1]}, a: {mass: 1, inertia: [1, 1, 1]}, b: {mass: 6, inertia: [1, 1, 1]}},
 joints: [{name: w, kind: revolute, parent: world, body: wheel, axis: [0, 1, 0]},
  {name: ja, kind: prismatic, parent: world, body: a, axis: [0, 0, 1], frame: {at: [-0.1, 0, -1]}},
  {name: jb, kind: prismatic, parent: world, body: b, axis: [0, 0, 1], frame: {at: [0.1, 0, -1]}}],
 routed_cables: [{name: rope, young: 3.183e9, cable_radius: 0.001, tension: 58.8, route: [
  {body: a, at: [0, 0, 0]}, {joint: w, radius: 0.1, friction: 0.1}, {body: b, at: [0, 0, 0]}]}]}
"""


def test_steps_with_error_control_pass_a_strand_that_lies_without_force_while_cable_slips_to_it():
    # its strain stays at zero but for rounding: it was slack and taut without end at one instant
    ends = []
    for integrator, step in (("adaptive", 0.05), ("rk4", 1e-4)):
        robot = parse_robot(BOUNCE, "here")
        simulation = Simulation(robot, time_step=step, integrator=integrator)
        simulation.set_state(robot.model.initial_configuration)
        simulation.advance(duration=0.05)
        ends.append(simulation.state.q)
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-8)


def test_a_shape_that_cable_slips_to_is_found_although_its_stiffness_is_far_from_symmetric():
    """The symmetric part of the stiffness is indefinite there; the motions are stable (5.9 N left after 301 steps)."""
    robot = parse_robot(
        """
kind: mechanism
name: crane
bodies: {trolley: {mass: 3, inertia: [1, 1, 1]}, swing: {}, block: {mass: 3, inertia: [0.1, 0.1, 0.1]}}
joints:
  - {name: rail, kind: prismatic, parent: world, body: trolley, axis: [1, 0, 0], frame: {at: [0, 0, 2]}, start: [0.2],
     resistance: {stiffness: 400}}
  - {name: swingJt, kind: revolute, parent: trolley, body: swing, axis: [0, 1, 0], frame: {at: [0, 0, -0.05]}}
  - {name: hoist, kind: prismatic, parent: swing, body: block, axis: [0, 0, -1], start: [1.0]}
routed_cables:
  - {name: rope, young: 20e9, cable_radius: 1.5e-3, tension: 14, route: [
      {body: world, at: [-1, 0, 2.09]},
      {body: trolley, at: [-0.1, 0, 0.05], axis: [0, 1, 0], radius: 0.04, side: 1},
      {body: block, at: [0, 0, 0], axis: [0, 1, 0], radius: 0.05, side: -1, friction: 3},
      {body: trolley, at: [0.1, 0, 0.05], axis: [0, 1, 0], radius: 0.04, side: 1, friction: 0.1},
      {body: world, at: [1.5, 0, 2.09]}]}
"""
    )
    simulation = Simulation(robot, time_step=1e-4)
    before, seen = simulation.state.q, simulation.observe().routes["rope"]
    assert seen.tensions[2] / seen.tensions[1] == pytest.approx(np.exp(0.1 * seen.wraps[3]), rel=1e-9)
    simulation.advance(200)
    assert simulation.state.q == pytest.approx(before, abs=1e-9)


TWO_WEIGHTS = """
kind: mechanism
name: weights
gravity: [0, 0, -9.81]
bodies: {{first: {{mass: {0}, inertia: [1, 1, 1]}}, last: {{mass: {1}, inertia: [1, 1, 1]}}}}
joints:
  - {{name: firstJt, kind: prismatic, parent: world, body: first, axis: [0, 0, -1], frame: {{at: [0, 0, {2}]}}}}
  - {{name: lastJt, kind: prismatic, parent: world, body: last, axis: [0, 0, -1], frame: {{at: {3}}},
     resistance: {{{4}}}}}
routed_cables: [{{name: rope, cable_radius: 1e-3, {5}, route: [{{body: first, at: [0, 0, 0]}}, {6},
  {{body: last, at: [0, 0, 0]}}]}}]
"""
RUBS = (
    1.34, 0.986, -0.986, "[0.178, 0, -1.1946]", "friction: 0.998, friction_speed: 0.02",
    "young: 2e9, damping: 2e5, tension: 2.662",
    "{body: world, at: [0.089, 0, 0], axis: [0, 1, 0], radius: 0.089, side: 1, friction: 0.1788}",
)  # fmt: skip
SLACKENS = (
    1.1158, 1.4459, -1.2915, "[0.389, 0, 1.182]", "damping: 0.6412", "young: 2e8, tension: 17.1644",
    "{body: world, at: [0.0971, 0, 0], axis: [0, 1, 0], radius: 0.0971, side: 1, friction: 0.2154}, "
    "{body: world, at: [0.2916, 0, -0.5119], axis: [0, 1, 0], radius: 0.0974, side: -1, friction: 0.1118}",
)  # fmt: skip


@pytest.mark.parametrize(("parts", "speeds"), [(RUBS, (0.4052242, 0.10292718)), (SLACKENS, (0.43372345, 0.04133963))])
def test_steps_with_error_control_do_not_stop_again_and_again_where_a_rope_sticks_or_hangs_slack(
    parts, speeds, monkeypatch
):
    monkeypatch.setattr(adaptive, "MAX_EVENTS", 20)
    simulation = Simulation(parse_robot(TWO_WEIGHTS.format(*parts)), 0.15, "adaptive", start="file")
    simulation.set_motion(speeds)
    simulation.advance(1)
    assert {"sticks", "slips"} <= {kind for _, _, kind in simulation.simulator.events}
    assert abs(simulation.energy_error) < 1e-8
