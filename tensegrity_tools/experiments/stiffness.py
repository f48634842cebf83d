"""Control of the output stiffness by `qp` with the self-stress during a motion, compared with uncontrolled stiffness.

At points along a continuous motion, the stiffness is measured by two equilibria with locked pulleys and a small force
along the direction in both senses; this uses the model, but no other quantity of the controller. For comparison the
stiffness is also computed by derivatives (`tensegrity check --stiffness`).
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from tensegrity_control import make_controller
from tensegrity_control.controller import RobotState
from tensegrity_dynamics import Robot, Simulation, load_robot
from tensegrity_dynamics.mechanisms.body_frame import BodyFrame
from tensegrity_dynamics.mechanisms.mechanism import Load
from tensegrity_dynamics.mechanisms.mechanism_model import MechanismModel
from tensegrity_dynamics.mechanisms.statics.equilibrium_solver import MechanismEquilibriumSolver
from tensegrity_dynamics.mechanisms.statics.output_stiffness import output_compliance
from tensegrity_dynamics.numerics.types import Array

from ..output import table
from ._progress import figures, report

DESCRIPTION = "a stiffness of the output held by self-stress while the pose moves, against equilibria under load"
MAST = str(Path(__file__).resolve().parents[2] / "examples" / "soft_mast.yaml")
"""Path in the checkout, independent of the working directory."""
QUANTITIES = {"move": "length", "stiffness": "stiffness", "ceiling": "force", "duration": "time", "period": "time"}
MAY_BE_ZERO = ("ceiling",)
FORCE = 1e-2
"""Force of the finite differences, in both senses [N]."""
SETTLING = 1.2
"""Time for the tensions to reach their desired values [s]."""
SIMULATED = 1e-3  # longest step of the simulation [s]


class LoadedShapes:
    """Equilibria of a robot with locked actuators and a small force on its output along a unit vector (3,)."""

    def __init__(self, robot: Robot, along: Array) -> None:
        model = robot.model_as(MechanismModel)
        joints = model.driven_joints(robot.actuators)
        self.output, self._along = robot.outputs[0], along
        assert isinstance(self.output, BodyFrame)
        self.solvers = []
        for force in (0.0, FORCE, -FORCE):
            load = Load("test", self.output.body, force * along, np.zeros(3), np.asarray(self.output.frame.origin))
            mechanism = replace(model.mechanism, loads=(*model.mechanism.loads, load))
            self.solvers.append(MechanismEquilibriumSolver(mechanism, joints))

    def stiffness(self, q: Array) -> tuple[float, float]:
        """Stiffness near q (nq,) [N/m]: by two loaded equilibria, and by derivatives at the unloaded one."""
        here = self.solvers[0].solve(q)
        index = self.solvers[0].mechanism.body_index[self.output.body]
        shapes = [solver.solve(here.q, tolerance=1e-13) for solver in self.solvers[1:]]
        ends = [
            self._along @ (each.positions[index] + each.rotations[index] @ self.output.frame.origin) for each in shapes
        ]
        compliance = output_compliance(self.solvers[0], here, self.output)[:3, :3]
        return 2.0 * FORCE / float(ends[0] - ends[1]), 1.0 / float(self._along @ compliance @ self._along)


def one_run(
    robot: Robot, asked: dict[str, float], along: Array, moves: Array, duration: float, period: float, looks: int
) -> dict[str, Any]:
    """Stiffness [N/m] and tensions [N] along one motion through displacements (k, 3) from the start [m]."""
    control: Any = make_controller("qp", robot, period=period, **asked)
    longest = min(Simulation(robot).time_step, SIMULATED)
    simulation = Simulation(robot, period / max(1, int(np.ceil(period / longest - 1e-9))))
    shapes = LoadedShapes(robot, along)
    axes = shapes.output.rows[shapes.output.rows < 3]
    control.reset(0.0, RobotState.of(simulation))
    begun, found, checked, tensions, errors = round(SETTLING / period), [], [], [], []
    per_look = max(1, round(duration / period / looks))
    for k in range(begun + per_look * looks):
        state = RobotState.of(simulation)
        if k == begun:
            assert state.pose is not None
            times = k * period + duration * np.arange(1, len(moves) + 1) / len(moves)
            points = [(float(t), state.pose[0] + move, None) for t, move in zip(times, moves, strict=True)]
            control.follow(k * period, points, "smooth")
        command = control.command(k * period, state)
        simulation.command(command.mode, command.set_points(), period=period)
        simulation.advance(duration=period)
        if k < begun:
            continue
        seen = simulation.observe()
        off = seen.pose[0] - control.reference((k + 1) * period).pose[0]
        errors.append(float(np.linalg.norm(off[axes])))
        tensions.append(list(seen.tensions.values()))
        if (k + 1 - begun) % per_look == 0:
            value, derived = shapes.stiffness(np.array(simulation.state.q))
            found.append(value)
            checked.append(abs(derived / value - 1.0))
    return {
        "stiffness": found, "least": min(found), "most": max(found), "derivative_off": max(checked),
        "least_tension": float(np.min(tensions)), "most_tension": float(np.max(tensions)), "error": max(errors),
        "relaxed": "; ".join(control.relaxed()),
    }  # fmt: skip


def run(
    robot: str = MAST,
    stiffness: float = 53.0,
    direction: tuple[float, ...] = (1.0, 0.5, 0.0),
    move: tuple[float, ...] = (0.2, 0.1, 0.0, 0.1, 0.2, 0.0),
    ceiling: float = 30.0,
    duration: float = 2.4,
    period: float = 0.01,
    looks: int = 12,
) -> dict[str, Any]:
    """Run the path with and without control of the stiffness.

    Args:
        robot: mechanism whose stiffness depends on its self-stress. stiffness: desired stiffness [N/m].
        direction: direction x, y, z in the world frame.
        move: displacement x, y, z of every point from the start [m]. ceiling: largest tension of cables [N]; 0: none.
        duration: duration of the path [s]. period: control period [s]. looks: number of measurements along the path.
    """
    loaded, along = load_robot(robot), np.array(direction) / np.linalg.norm(direction)
    moves, rows = np.array(move).reshape(-1, 3), []
    names = dict(zip(("stiffness_x", "stiffness_y", "stiffness_z"), along.tolist(), strict=True))
    for name, asked in (("held", {"stiffness": stiffness, **names}), ("left alone", {})):
        report(name)
        row = one_run(loaded, {**asked, "ceiling": ceiling}, along, moves, duration, period, looks)
        rows.append(figures(name, {"run": name, **row}))
    return {"robot": robot, "asked": stiffness, "ceiling": ceiling, "rows": rows}


def render(result: dict[str, Any], console: Console) -> None:
    """Print one line per run."""
    rows = [
        (
            each["run"], f"{each['least']:.3f} to {each['most']:.3f}",
            f"{100.0 * max(abs(each[end] / result['asked'] - 1.0) for end in ('least', 'most')):.2f} %",
            f"{each['derivative_off']:.1e}", f"{each['least_tension']:.2f} to {each['most_tension']:.2f}",
            f"{1e3 * each['error']:.4f}", each["relaxed"],
        )
        for each in result["rows"]
    ]  # fmt: skip
    columns = (
        "",
        "N/m on the way",
        f"off {result['asked']:g} N/m",
        "derivatives off",
        "tensions N",
        "off path mm",
        "relaxed",
    )
    console.print(
        table(f"stiffness of the output of {result['robot']}, ceiling {result['ceiling']:g} N", columns, rows)
    )
