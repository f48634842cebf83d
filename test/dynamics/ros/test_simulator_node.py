"""Which integrator the simulator node chooses, and what it says about it."""

from __future__ import annotations

import pytest

rclpy = pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from single_node import node_of  # noqa: E402

from tensegrity_dynamics.ros import simulator_node  # noqa: E402
from tensegrity_dynamics.ros.simulator_node import PACE_PERIODS, SimulatorNode  # noqa: E402

SLIDE = """
kind: mechanism
name: slide
gravity: [0, 0, -9.80665]
bodies: {{slide: {{mass: {mass}, inertia: [1e-9, 1e-9, 1e-9]}}}}
joints: [{{name: rail, kind: prismatic, parent: world, body: slide, axis: [0, 0, 1]}}]
routed_cables:
  - {{name: rope, young: 1e10, cable_radius: 0.001, tension: 1,
     route: [{{body: world, at: [0, 0, 1]}}, {{body: slide, at: [0, 0, 0]}}]}}
"""
LIGHT, HEAVY = 1e-5, 1e-2
"""kg on the rope: explicit steps of 6 us, below `SHORT_STEP`, and of 0.2 ms."""


@pytest.fixture
def robot(tmp_path):
    def write(mass: float) -> str:
        path = tmp_path / "slide.yaml"
        path.write_text(SLIDE.format(mass=mass))
        return str(path)

    return write


@pytest.mark.parametrize(
    ("mass", "given", "integrator"),
    [
        (LIGHT, {}, "implicit"),
        (LIGHT, {"integrator": "rk4"}, "rk4"),
        (LIGHT, {"time_step": 1e-5}, "rk4"),
        (HEAVY, {}, "rk4"),
    ],
)
def test_in_lockstep_short_explicit_steps_become_implicit_unless_one_was_asked_for(robot, mass, given, integrator):
    with node_of(SimulatorNode, robot(mass), {"lockstep": True, **given}) as (node, _):
        assert node.simulation.integrator == integrator
        assert (node.simulation.time_step > 5e-4) == (integrator == "implicit")


@pytest.mark.parametrize(
    ("speeds", "factor", "integrator"),
    [
        ({"rk4": 0.5, "implicit": 8.0}, 1.0, "implicit"),
        ({"rk4": 1.3, "implicit": 8.0}, 1.0, "rk4"),  # it keeps the pace
        ({"rk4": 1.3, "implicit": 8.0}, 2.0, "implicit"),  # not twice as fast
        ({"rk4": 0.5, "implicit": 0.4}, 1.0, "rk4"),  # the other is slower still
    ],
)
def test_explicit_steps_that_cannot_keep_the_pace_become_implicit_and_that_is_said(
    robot, monkeypatch, speeds, factor, integrator
):
    monkeypatch.setattr(simulator_node, "pace", lambda simulation, steps: speeds[simulation.integrator])
    with node_of(SimulatorNode, robot(LIGHT), {"real_time_factor": factor}) as (node, _):
        assert node.simulation.integrator == integrator
        said = []
        monkeypatch.setattr(node, "set_status", lambda *words, **values: said.append(values))
        node.judge_pace()
        node.ticks += PACE_PERIODS
        node.judge_pace()
        choice = said[0].get("integrator", "")
        assert choice.startswith("implicit, because rk4 in steps of") == (integrator == "implicit")
        if choice:
            assert f"reaches {speeds['rk4']:.2g} of real time" in choice


def test_a_robot_without_controller_is_said_to_run(robot):
    with node_of(SimulatorNode, robot(HEAVY), {}) as (node, _):
        for _ in range(PACE_PERIODS + 2):
            node.tick()
        assert node.status_text == "running"
