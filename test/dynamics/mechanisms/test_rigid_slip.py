"""Capstan friction of cables that do not stretch: stick and slip as complementarity, against closed forms."""

from __future__ import annotations

import numpy as np
import pytest

from tensegrity_dynamics import RobotFileError, Simulation, TensegrityError, parse_robot
from tensegrity_dynamics.errors import NoEquilibriumError
from tensegrity_dynamics.mechanisms.dynamics.rigid_tensions import RigidTensions
from tensegrity_dynamics.mechanisms.statics.equilibrium_solver import MechanismEquilibriumSolver

GRAVITY = 9.80665


def atwood(heavy, friction, bearing="", wheel="{joint: wheelJt, radius: 0.1, side: 1, friction: %g}", more=""):
    """Two masses over a wheel of 1 kg with I / r^2 = 1 kg."""
    return parse_robot(
        f"""
name: atwood
kind: mechanism
gravity: [0, 0, -{GRAVITY}]
bodies:
  wheel: {{mass: 1, inertia: [0.01, 0.01, 0.01]}}
  heavy: {{mass: {heavy}, inertia: [1, 1, 1]}}
  light: {{mass: 1, inertia: [1, 1, 1]}}
joints:
  - {{name: wheelJt, kind: revolute, parent: world, body: wheel, axis: [0, 1, 0]{bearing}}}
  - {{name: heavyJt, kind: prismatic, parent: world, body: heavy, axis: [0, 0, -1], frame: {{at: [-0.1, 0, -1]}}}}
  - {{name: lightJt, kind: prismatic, parent: world, body: light, axis: [0, 0, -1], frame: {{at: [0.1, 0, -1]}}}}
routed_cables:
  - {{name: rope, rigid: true{more},
     route: [{{body: heavy, at: [0, 0, 0]}}, {wheel % friction}, {{body: light, at: [0, 0, 0]}}]}}
"""
    )


def run(robot, steps, step=5e-3, v=None, **options):
    simulation = Simulation(robot, time_step=step, start="file", **options)
    if v is not None:
        simulation.set_motion(v)
    simulation.advance(steps)
    return simulation


@pytest.mark.parametrize("heavy", [2.0, 0.5])
def test_a_rigid_rope_that_sticks_turns_the_wheel_as_the_closed_form_says(heavy):
    simulation = run(atwood(heavy, 1.0), 6)
    fall = (heavy - 1) * GRAVITY / (heavy + 1 + 1)
    assert simulation.state.q[1] == pytest.approx(0.5 * fall * simulation.time**2, rel=1e-8)
    seen = simulation.observe().routes["rope"]
    assert seen.contacts[1] == "sticks"
    assert seen.slipped[1] == 0.0
    assert simulation.state.q[0] * 0.1 == pytest.approx(-simulation.state.q[1], abs=1e-14)


@pytest.mark.parametrize("heavy", [10.0, 0.25])
def test_a_rigid_rope_that_slips_has_tensions_of_the_capstan_ratio(heavy):
    friction = 0.1
    simulation = run(atwood(heavy, friction), 6)
    bound = np.exp(friction * np.pi * np.sign(heavy - 1))
    fall = (heavy - bound) * GRAVITY / (heavy + bound)
    seen = simulation.observe().routes["rope"]
    assert simulation.state.q[1] == pytest.approx(0.5 * fall * simulation.time**2, rel=1e-8)
    assert seen.tensions[0] / seen.tensions[1] == pytest.approx(bound, rel=1e-9)
    turn = (seen.tensions[1] - seen.tensions[0]) * 0.1 / 0.01
    assert simulation.state.q[0] == pytest.approx(0.5 * turn * simulation.time**2, rel=1e-8)
    assert seen.contacts[1] == "slips"
    assert abs(simulation.energy_error) < 1e-9
    assert simulation.energy().friction > 0.0
    passed = -simulation.state.q[1] - 0.1 * simulation.state.q[0]
    assert seen.slipped[1] == pytest.approx(passed, abs=1e-12)


@pytest.mark.parametrize("integrator", ["rk4", "implicit"])
def test_a_rope_that_slides_over_a_guide_comes_to_stick_and_stays_without_creep(integrator):
    guide = "{body: world, at: [0, 0, 0], axis: [0, 1, 0], radius: 0.1, side: 1, friction: %g}"
    simulation = run(atwood(1.2, 0.3, wheel=guide), 40, v=[0.0, 0.5, -0.5], integrator=integrator)
    bound = np.exp(0.3 * np.pi)
    slows = (bound - 1.2) * GRAVITY / (1.2 + bound)
    stops = 0.5 / slows
    assert stops < simulation.time
    ((time, _, kind),) = [event for event in simulation.simulator.events if event[2] == "sticks"]
    assert (time, kind) == (pytest.approx(stops, abs=1e-8), "sticks")
    at = simulation.state.q[1]
    assert at == pytest.approx(0.5 * 0.25 / slows, rel=1e-7)
    simulation.advance(20)
    assert simulation.state.q[1] == pytest.approx(at, abs=1e-12)
    seen = simulation.observe().routes["rope"]
    assert seen.tensions == pytest.approx((1.2 * GRAVITY, GRAVITY), rel=1e-8)
    assert simulation.energy().friction == pytest.approx(0.5 * 2.2 * 0.25 + 0.2 * GRAVITY * at, rel=1e-6)


def test_a_rope_with_friction_starts_slack_is_caught_and_every_joule_is_reported():
    simulation = run(atwood(10.0, 0.1, more=", length: 2.4"), 5)
    assert simulation.details == {"cable rope": "slack"}
    assert simulation.observe().routes["rope"].tensions == (0.0, 0.0)
    slack = 2.4 - 2.0 - 0.1 * np.pi
    simulation.advance(25)
    (time, _, kind), *_ = simulation.simulator.events
    assert (kind, time) == ("taut", pytest.approx(np.sqrt(slack / GRAVITY), abs=1e-8))
    seen = simulation.observe().routes["rope"]
    assert seen.tensions[0] / seen.tensions[1] == pytest.approx(np.exp(0.1 * np.pi), rel=1e-9)
    assert abs(simulation.energy_error) < 1e-8


CHAIN = f"""
name: chain
kind: mechanism
gravity: [0, 0, -{GRAVITY}]
bodies:
  wheel: {{mass: 1, inertia: [0.01, 0.01, 0.01]}}
  heavy: {{mass: HEAVY, inertia: [1, 1, 1]}}
  light: {{mass: 1, inertia: [1, 1, 1]}}
joints:
  - {{name: wheelJt, kind: revolute, parent: world, body: wheel, axis: [0, 1, 0], frame: {{at: [0.5, 0, -0.3]}}}}
  - {{name: heavyJt, kind: prismatic, parent: world, body: heavy, axis: [0, 0, -1], frame: {{at: [-0.1, 0, -1]}}}}
  - {{name: lightJt, kind: prismatic, parent: world, body: light, axis: [0, 0, -1], frame: {{at: [1.1, 0, -1]}}}}
routed_cables:
  - {{name: rope, rigid: true, route: [{{body: heavy, at: [0, 0, 0]}},
     {{body: world, at: [0, 0, 0], axis: [0, 1, 0], radius: 0.1, side: 1, friction: 0.1}},
     {{joint: wheelJt, radius: 0.1, side: -1, friction: WHEEL}},
     {{body: world, at: [1, 0, 0], axis: [0, 1, 0], radius: 0.1, side: 1, friction: 0.2}},
     {{body: light, at: [0, 0, 0]}}]}}
"""


@pytest.mark.parametrize(("heavy", "rough"), [(8.0, 2.0), (0.2, 2.0), (8.0, 0.02), (1.05, 2.0)])
def test_contacts_of_a_chain_stick_and_slip_each_by_its_own_law(heavy, rough):
    """Two guides with a wheel between, whose inertia over its radius squared is 1 kg."""
    robot = parse_robot(CHAIN.replace("HEAVY", str(heavy)).replace("WHEEL", str(rough)))
    simulation = run(robot, 6)
    seen = simulation.observe().routes["rope"]
    first, middle, last = (np.exp(mu * seen.wraps[k]) for k, mu in ((1, 0.1), (2, rough), (3, 0.2)))
    if heavy == 1.05:
        assert seen.contacts[1:4] == ("sticks", "sticks", "sticks")
        assert np.abs(simulation.state.v).max() == 0.0
        return
    sign = np.sign(heavy - 1)
    first, middle, last = first**sign, middle**sign, last**sign
    # heavy (g - a) = T1, T1 = first T2, T3 = last T4, T4 = g + a; the wheel turns with the rope, or T2 = middle T3
    if rough > 1.0:
        fall = (heavy - first * last) * GRAVITY / (heavy + first * (1 + last))
    else:
        fall = (heavy - first * middle * last) * GRAVITY / (heavy + first * middle * last)
    assert seen.contacts[1:4] == ("slips", "sticks" if rough > 1.0 else "slips", "slips")
    assert simulation.state.q[1] == pytest.approx(0.5 * fall * simulation.time**2, rel=1e-8)
    assert seen.tensions[0] / seen.tensions[1] == pytest.approx(first, rel=1e-9)
    assert seen.tensions[2] / seen.tensions[3] == pytest.approx(last, rel=1e-9)
    assert abs(simulation.energy_error) < 1e-8


@pytest.mark.parametrize("sheaves", [1, 3])
@pytest.mark.parametrize("heavier", [1.0, 3.0, 0.2])
def test_a_block_and_tackle_whose_sheaves_do_not_turn_sticks_or_slips_by_its_ratios(sheaves, heavier):
    """A block of 4 kg on 2 n lines; the end of the rope hangs behind 2 n half turns and carries its share, or not."""
    friction, lines = 0.05, 2 * sheaves
    sheave = f"axis: [0, 1, 0], radius: 0.1, friction: {friction}"
    route = ", ".join(
        f"{{body: block, at: [{0.4 * k:.1f}, 0, 0], side: -1, {sheave}}}, "
        f"{{body: world, at: [{0.4 * k + 0.2:.1f}, 0, 0], side: 1, {sheave}}}"
        for k in range(sheaves)
    )
    mass = heavier * 4 / lines
    robot = parse_robot(f"""
name: tackle
kind: mechanism
gravity: [0, 0, -{GRAVITY}]
bodies: {{block: {{mass: 4, inertia: [1, 1, 1]}}, pull: {{mass: {mass}, inertia: [1, 1, 1]}}}}
joints:
  - {{name: hoist, kind: prismatic, parent: world, body: block, frame: {{at: [0, 0, -2]}}}}
  - {{name: end, kind: prismatic, parent: world, body: pull, frame: {{at: [{0.4 * sheaves - 0.1:.1f}, 0, -1]}}}}
routed_cables: [{{name: rope, rigid: true, route: [{{body: world, at: [-0.1, 0, 0]}}, {route}, {{body: pull, at: [0, 0, 0]}}]}}]
""")  # noqa: E501
    simulation = run(robot, 6, step=2e-3)
    seen = simulation.observe().routes["rope"]
    assert len(seen.wraps) == lines + 2 and seen.wraps[1:-1] == pytest.approx([np.pi] * lines, abs=1e-9)
    if heavier == 1.0:
        assert set(seen.contacts[1:-1]) == {"sticks"}
        assert simulation.state.q == pytest.approx([0.0, 0.0], abs=1e-14)
        assert sum(seen.tensions[:-1]) == pytest.approx(4 * GRAVITY, rel=1e-8)
        assert seen.tensions[-1] == pytest.approx(mass * GRAVITY, rel=1e-8)
        return
    ratio = np.exp(np.sign(heavier - 1) * friction * np.pi)
    end = ratio**lines / (ratio ** np.arange(lines)).sum()  # tension at the end, of what the lines carry together
    rises = (mass - 4 * end) * GRAVITY / (lines * mass + 4 * end)
    assert set(seen.contacts[1:-1]) == {"slips"}
    assert simulation.state.q[0] == pytest.approx(0.5 * rises * simulation.time**2, rel=1e-8)
    assert simulation.state.q[1] == pytest.approx(-lines * simulation.state.q[0], rel=1e-8)
    assert np.divide(seen.tensions[1:], seen.tensions[:-1]) == pytest.approx([ratio] * lines, rel=1e-9)
    assert abs(simulation.energy_error) < 1e-8


def test_what_does_not_go_with_slip_is_refused_by_name():
    slippery, rough = hung(0.05), hung(0.5)
    with pytest.raises(NoEquilibriumError, match=r"rope slips at route\[1\].*more friction"):
        MechanismEquilibriumSolver(slippery.mechanism).solve(slippery.model.start)
    assert MechanismEquilibriumSolver(rough.mechanism).solve(rough.model.start).routes["rope"].contacts[1] == "sticks"
    simulation = run(atwood(10.0, 0.1), 2)
    with pytest.raises(TensegrityError, match="friction of slip is not linear"):
        simulation.linearise()
    with pytest.raises(RobotFileError, match="rigid cable slips by the exact law"):
        atwood(2.0, 0.2, wheel="{joint: wheelJt, radius: 0.1, side: 1, friction: %g, friction_speed: 0.01}")


def hung(friction):
    """A weight on a rope over a fixed guide, at whose other end a spring pulls."""
    return parse_robot(
        f"""
name: hung
kind: mechanism
gravity: [0, 0, -{GRAVITY}]
bodies: {{ball: {{mass: 1, inertia: [1, 1, 1]}}, slide: {{mass: 1, inertia: [1, 1, 1]}}}}
joints:
  - {{name: ballJt, kind: prismatic, parent: world, body: ball, frame: {{at: [0.1, 0, -1]}},
     resistance: {{stiffness: 100}}}}
  - {{name: slideJt, kind: prismatic, parent: world, body: slide, frame: {{at: [-0.1, 0, -1]}},
     resistance: {{stiffness: 100, rest: -0.02}}}}
routed_cables:
  - {{name: rope, rigid: true, route: [{{body: slide, at: [0, 0, 0]}}, {{body: world, at: [0, 0, 0], axis: [0, 1, 0],
     radius: 0.1, side: 1, friction: {friction}}}, {{body: ball, at: [0, 0, 0]}}]}}
"""
    )


def test_a_servo_on_a_drum_whose_rope_sticks_pushes_as_on_its_own_mass():
    """Nothing can move while the rope sticks at the guide, whatever the torque within its bound."""
    robot = parse_robot(
        """
name: dragged
kind: mechanism
gravity: [0, 0, 0]
bodies: {slider: {mass: 0.05, inertia: [1, 1, 1]}, drum: {mass: 1, inertia: [1.0e-3, 1.0e-3, 1.0e-3]}}
joints:
  - {name: slide, kind: prismatic, parent: world, body: slider, axis: [0, 0, 1], frame: {at: [0, 0, -1]},
     resistance: {stiffness: 300, rest: -0.01, damping: 4}}
  - {name: drumJt, kind: revolute, parent: world, body: drum, axis: [0, 1, 0], frame: {at: [0.05, 0, -0.6]}}
routed_cables:
  - {name: rope, rigid: true, route: [{body: slider, at: [0, 0, 0]},
      {body: world, at: [0.01, 0, 0], axis: [0, 1, 0], radius: 0.01, side: 1, friction: 0.13},
      {joint: drumJt, radius: 0.03, side: -1}]}
actuators: [{drives: drumJt, position: [-9, 9], rate: 5, effort: 1000}]
"""
    )
    simulation = Simulation(robot, time_step=1e-3, start="file")
    simulation.command("position", {robot.actuators[0].name: -1e-6})
    torques = []
    for _ in range(5):
        simulation.advance(1)
        assert simulation.observe().routes["rope"].contacts[1] == "sticks"
        torques.append(simulation.observe().efforts[robot.actuators[0].name])
    missing = (0.25 / 1e-3) ** 2 * (-1e-6 - simulation.state.q[1])  # rad/s^2, see `actuation`
    assert np.diff(torques) == pytest.approx(1e-3 * missing, rel=1e-6)
    assert simulation.observe().routes["rope"].tensions == pytest.approx((3.0, -torques[-1] / 0.03), rel=1e-6)


def test_a_step_of_a_slipping_rope_settles_its_tensions_once_for_each_state(monkeypatch):
    """A settled excess takes three forward dynamics (none, one, all); a step has five states to settle."""
    simulation = run(atwood(10.0, 0.1), 3)
    counted = []
    tensions = RigidTensions.tensions

    def counting(*args):
        counted.append(args)
        return tensions(*args)

    monkeypatch.setattr(RigidTensions, "tensions", counting)
    simulation.advance(1)
    assert len(counted) <= 3 * 5 + 3  # 52 where the tensions to settle were settled themselves
