"""Robustness of the controller `qp` with unchanged gains: delayed commands, coarse sensors, lost states, model errors,
unknown loads and pushes.

Closed loop of simulation, observer and controller. All runs except the first have a disturbance from the start
(sensors, delay, model) or from the middle on (payload, push). Every run moves the output by the same distance in the
same time. Results: largest distance from the reference during the run, and from one second after the end of the motion
(or push) on; smallest tension relative to the floor.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from tensegrity_control import make_controller
from tensegrity_control.controller import RobotState
from tensegrity_control.external_loads import ExternalLoads
from tensegrity_dynamics import Simulation, load_robot
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.estimation import make_estimator
from tensegrity_dynamics.numerics.rotations import matrix_from_quaternion
from tensegrity_dynamics.robots.units import STANDARD_GRAVITY

from ..output import panels, save_picture, table
from ._progress import figures, report
from ._runs import plant_of

NAME = "robustness"
DESCRIPTION = "`qp` with unchanged gains under delays, coarse sensors, wrong models, unknown loads and pushes"
PERIOD = 0.005  # s
SETTLING, MOVE, AFTER = 0.5, (0.03, 0.0, -0.02), 1.0
SHARE = 0.2
"""Mass of the payload relative to that of the robot."""
PUSH, PUSHED = 5.0, 0.5
"""Force [N] and duration [s] of a push."""


@dataclass(frozen=True)
class Case:
    """Disturbances of a run.

    Args:
        delay: delay of commands, unknown to the controller [periods].
        steps: encoder steps per turn; 0: exact sensors.
        tension_noise: relative error of load cells; they are used if it is above zero.
        lost: fraction of lost states. young, radius, density: factors of the plant relative to the model.
        payload: mass of a payload on the output relative to that of the robot.
        push: force on the output for `PUSHED` s after the motion [N]. state: "observer" or "truth".
        start: displacement from the pose at rest to the start of the evaluated motion [m].
        move: displacement from there to the goal [m].
    """

    name: str
    delay: int = 0
    steps: int = 0
    tension_noise: float = 0.0
    lost: float = 0.0
    young: float = 1.0
    radius: float = 1.0
    density: float = 1.0
    payload: float = 0.0
    push: float = 0.0
    state: str = "observer"
    start: tuple[float, float, float] = (0.0, 0.0, 0.0)
    move: tuple[float, float, float] = MOVE


CASES = (
    Case("as modelled"),
    Case("two periods late", delay=2),
    Case("encoders of 4,096 steps, 5 % lost", steps=4096, lost=0.05),
    Case("the same, load cells with 1 % noise", steps=4096, lost=0.05, tension_noise=0.01),
    Case("Young's modulus + 10 %", young=1.1),
    Case("Young's modulus - 10 %", young=0.9),
    Case("cable radius + 10 %", radius=1.1),
    Case("cable radius - 10 %", radius=0.9),
    Case("masses + 10 %", density=1.1),
    Case("masses - 10 %", density=0.9),
    Case("unknown payload, 20 %", payload=SHARE),
    Case("push of 5 N for 0.5 s", push=PUSH),
    Case("stiffer, thicker, heavier, payload, push", young=1.1, radius=1.1, density=1.1, payload=SHARE, push=PUSH),
    Case("softer, thinner, lighter, payload, push", young=0.9, radius=0.9, density=0.9, payload=SHARE, push=PUSH),
    Case("the last, late, coarse, lost", delay=2, steps=4096, lost=0.05, young=1.1, density=1.1, payload=SHARE,
         push=PUSH),
)  # fmt: skip
QUANTITIES = {"push": "force", "reach": "length"}
MAY_BE_ZERO = ("error", "payload", "push", "seed")
REACH = 0.04
"""Range of random starts and goals [m]."""


def scaled(case: Case, error: float, payload: float, push: float) -> Case:
    """Copy of a case with other model errors, another payload (relative to the robot mass) and push [N]."""
    changed: dict[str, Any] = {
        name: 1.0 + np.sign(getattr(case, name) - 1.0) * error for name in ("young", "radius", "density")
    }
    own = {"10 %": f"{100 * error:g} %", "20 %": f"{100 * payload:g} %", "5 N": f"{push:g} N"}  # by the usual values
    name = re.sub("|".join(own), lambda found: own[found[0]], case.name)
    changed |= {"payload": payload if case.payload else 0.0, "push": push if case.push else 0.0}
    return replace(case, name=name, **changed)


def drawn(case: Case, seed: int, reach: float) -> Case:
    """Copy of a case with random start and goal within `reach` [m], by a seed."""
    start, move = (vector / np.linalg.norm(vector) for vector in np.random.default_rng(seed).normal(size=(2, 3)))
    ends = tuple((reach * start).tolist()), tuple((reach * move).tolist())
    return replace(case, name=f"{case.name}, positions {seed}", start=ends[0], move=ends[1])


@dataclass
class Sensors:
    """Sensors of a plant: quantised positions, efforts, tensions with noise, and random loss of states."""

    case: Case
    random: np.random.Generator

    def positions(self, exact: Mapping[str, float]) -> dict[str, float]:
        if not self.case.steps:
            return dict(exact)
        step = 2.0 * np.pi / self.case.steps
        return {name: step * round(value / step) for name, value in exact.items()}

    def tensions(self, exact: Mapping[str, float]) -> dict[str, float]:
        if not self.case.tension_noise:
            return {}
        return {name: t * (1.0 + self.case.tension_noise * self.random.standard_normal()) for name, t in exact.items()}

    def heard(self) -> bool:
        return bool(self.random.random() >= self.case.lost)


def run_case(case: Case, robot_name: str = "manipulator", seed: int = 7) -> dict[str, Any]:
    """Result of one run: errors [m], smallest tension relative to the floor, and the reason of a failure."""
    robot = load_robot(robot_name)
    plant = plant_of(robot, young=case.young, radius=case.radius, masses=case.density)
    natural = Simulation(plant)
    steps = max(1, int(np.ceil(PERIOD / min(natural.time_step, 1e-3) - 1e-9)))
    simulation, sensors = Simulation(plant, PERIOD / steps), Sensors(case, np.random.default_rng(seed))
    estimator = make_estimator(robot, observer=True) if case.state == "observer" else None
    control, loads = make_controller("qp", robot, period=PERIOD), ExternalLoads(robot)
    floors = robot.model.tension_floors(robot.actuators)
    floor = np.array([floors.get(name, 0.0) for name in robot.model.tension_names])
    body, rows = robot.output.body, robot.output.rows  # type: ignore[attr-defined]
    rows, frame = rows[rows < 3], robot.output.frame  # type: ignore[attr-defined]
    waits = SETTLING
    weight = STANDARD_GRAVITY * case.payload * sum(each.mass for each in robot.mechanism.bodies)
    commands: list[Any] = []
    errors, tensions, last = [], [], None
    moved = pushed = np.inf
    arrival, k = np.inf, 0
    row: dict[str, Any] = {"case": case.name, "worst_m": None, "end_m": None, "least": None, "lost": ""}
    end = np.inf
    while k * PERIOD < end:
        time, seen = k * PERIOD, simulation.observe()
        force = np.array([0.0, 0.0, -weight if time >= 0.5 * SETTLING else 0.0])
        force[0] += case.push if pushed <= time < pushed + PUSHED else 0.0
        arm = matrix_from_quaternion(seen.pose[1]) @ frame.axes.T @ frame.origin
        simulation.apply_forces({body: np.concatenate((force, np.cross(arm, force)))})
        try:
            if sensors.heard() or not k:
                state: Any = simulation.state
                if estimator is not None:
                    state = estimator.update(
                        time, sensors.positions(seen.positions), seen.efforts, sensors.tensions(seen.tensions)
                    )
                look = RobotState.of(simulation, state, seen)
                if not k:
                    control.reset(0.0, look)  # type: ignore[arg-type]
                if time >= waits == SETTLING and any(case.start):
                    goal = control.reference(time).pose[0] + np.array(case.start)
                    waits = control.set_goal(time, goal).arrival + AFTER  # type: ignore[attr-defined]
                elif time >= waits and moved == np.inf:
                    goal = control.reference(time).pose[0] + np.array(case.move)
                    arrival = control.set_goal(time, goal).arrival  # type: ignore[attr-defined]
                    moved, pushed = time, arrival + AFTER
                    end = arrival + AFTER + (PUSHED + AFTER if case.push else 0.0) + 0.2
                if (found := getattr(state, "unknown", None)) is not None and found.body:
                    loads.take_estimate(found.body, found.wrench[:3], found.wrench[3:], time, time)
                loads.update(control, time)
                commands.append((k, control.command(time, look)))
                due = [each for each in commands if each[0] <= k - case.delay]
                if due and due[-1] is not last:
                    last = due[-1]
                    timing = {"age": time - last[0] * PERIOD, "period": PERIOD} if last[1].position is not None else {}
                    simulation.command(last[1].mode, last[1].set_points(), **timing)
            simulation.advance(steps)
        except TensegrityError as error:
            return row | {"lost": str(error)}
        k += 1
        seen = simulation.observe()
        off = seen.pose[0] - control.reference(k * PERIOD).pose[0]
        errors.append((k * PERIOD, float(np.linalg.norm(off[rows]))))
        tensions.append(list(seen.tensions.values()))
    found, kept = np.array(errors), floor > 0.0
    least = np.min(np.array(tensions)[:, kept] / floor[kept]) if kept.any() else np.nan
    settled = (found[:, 0] >= arrival + AFTER) & (found[:, 0] < pushed)
    settled |= found[:, 0] >= (pushed + PUSHED + AFTER if case.push else pushed)
    after = float(np.max(found[settled, 1])) if settled.any() else float(found[-1, 1])
    return row | {"worst_m": float(np.max(found[:, 1])), "end_m": after, "least": float(least)}


def run(
    cases: Sequence[Case] = CASES,
    robot: str = "manipulator",
    only: str = "",
    error: float = 0.1,
    payload: float = SHARE,
    push: float = PUSH,
    seed: int = 7,
    draws: int = 0,
    reach: float = REACH,
    truth: bool = False,
) -> dict[str, Any]:
    """Run all cases.

    Args:
        cases: cases. robot: name or file. only: texts separated by |; only cases whose names contain one are run.
        error: relative error of Young's modulus, radius and masses. payload: payload relative to the robot mass.
        push: force of the push [N]. seed: seed of noise, losses and positions.
        draws: number of random starts and goals per case, in addition to the default one. reach: their range [m].
        truth: whether the state is the true one in place of the observer's.
    """
    if not error < 1.0:
        raise TensegrityError(f"error is {error:g}; give less than 1, which leaves nothing of moduli and masses.")
    chosen = [
        scaled(each, error, payload, push) for each in cases
        if not only or any(text.strip() in each.name for text in only.split("|"))
    ]  # fmt: skip
    if not chosen:
        raise TensegrityError(f"no case holds {only!r}; there are: {'; '.join(each.name for each in cases)}.")
    if truth:
        chosen = [replace(each, state="truth") for each in chosen]
    chosen += [drawn(each, seed + k, reach) for k in range(1, draws + 1) for each in chosen[:]]
    made = []
    for case in chosen:
        report(case.name)
        made.append(figures(case.name, run_case(case, robot, seed=seed)))
    return {"experiment": NAME, "robot": robot, "rows": made}


def render(result: dict[str, Any], console: Console) -> None:
    """Print one line per case."""
    rows = []
    for each in result["rows"]:
        if each["lost"]:
            rows.append((each["case"], "lost", each["lost"], ""))
            continue
        rows.append(
            (each["case"], f"{1e3 * each['worst_m']:.3f}", f"{1e3 * each['end_m']:.4f}", f"{each['least']:.3f}")
        )
    console.print(table("unchanged gains", ("what is wrong", "worst mm", "after 1 s mm", "least T / floor"), rows))


def draw(result: dict[str, Any], path: Path) -> None:
    """Plot the errors as bars."""
    rows = [each for each in result["rows"] if not each["lost"]]
    figure, axes = panels(figsize=(8, 4))
    rows_at = np.arange(len(rows))
    axes.barh(rows_at, [1e3 * each["worst_m"] for each in rows], color="0.8", label="worst")
    axes.barh(rows_at, [1e3 * each["end_m"] for each in rows], height=0.4, label="after one second")
    axes.set_yticks(rows_at, [each["case"] for each in rows])
    axes.set_xscale("log")
    axes.set_xlabel("error [mm]")
    axes.legend()
    save_picture(figure, path)
