"""Endurance with message delays: random goals, varying delays, computer freezes, and changes of the controller.

All random values follow from one seed. In every interval of some seconds new delays of states and commands are drawn,
fixed or varying, 0 to 3 control periods in total. The computer of the controller freezes occasionally for 0.1 to 0.5 s,
also during motions, and new goals arrive before the last one is reached. At the end of an interval the robot is
commanded to hold, and another controller takes over. A run is lost if the simulation or the controller fails. Further
faults are a tendon that is slack or below its floor, and an output far from its reference although the controller
answers; each fault is reported with its time, tendon and controller.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tensegrity_control import make_controller
from tensegrity_control.registry import controller_class
from tensegrity_dynamics import load_robot
from tensegrity_dynamics.errors import TensegrityError, unknown_name

from ..output import panels, save_picture, table
from ..runtime.delayed_loop import DelayedLoop, Delays, freezes
from ._progress import report

DESCRIPTION = "random goals for minutes or hours with delays, freezes and switches of controllers, from a seed"
QUANTITIES = {"duration": "time", "period": "time", "reach": "length", "stretch": "time"}
MOST = 3
"""Largest total delay of states and commands [periods]."""
FROZEN, SPACING = (0.1, 0.5), 3.0
"""Shortest and longest freeze of the computer, and mean time between two freezes [s]."""
FAR = 0.02
"""Distance from the reference that counts as a fault, if the controller has answered for `CAUGHT_UP` [m]."""
CAUGHT_UP = 1.0
"""Time after a freeze at which the robot must be at its reference again [s]."""
STATES = ("observer", "truth")
RESTING = 2.5
"""Time for the robot to come to rest before another controller takes over [s]."""


def finite(value: float) -> float | None:
    """The value, or None if it is not finite."""
    return value if np.isfinite(value) else None


def faults(loop: DelayedLoop, begin: float) -> list[str]:
    """Faults in the records of a loop since `begin` [s]: tendons that were slack or below their floors, with smallest
    tension and its time, and the largest distance of the output from its reference while the controller answered."""
    floors = loop.robot.model.tension_floors(loop.robot.actuators)
    found = []
    tensions = np.array(loop.tensions).reshape(len(loop.tensions), -1)
    for name, column in zip(loop.cables, tensions.T, strict=True):
        floor = floors.get(name, 0.0)
        if name not in floors or not column.size or float(np.min(column)) >= floor > 0.0:
            continue
        least, when = float(np.min(column)), begin + (int(np.argmin(column)) + 1) * loop.period
        if least <= 0.0:
            found.append(f"{name} was slack at {when:.2f} s")
        elif least < floor:
            found.append(f"{name} fell to {least:.3g} N at {when:.2f} s, its floor is {floor:.3g} N")
    times = begin + loop.period * np.arange(1, len(loop.errors) + 1)
    answered = np.ones(times.size, dtype=bool)
    for at, long in loop.delays.freezes:
        answered &= (times < at) | (times > at + long + CAUGHT_UP)
    off = np.where(answered, np.array(loop.errors), 0.0)
    if off.size and off.max() > FAR:
        found.append(f"the output was {1e3 * off.max():.1f} mm off at {times[off.argmax()]:.2f} s")
    return found


def draw_delays(random: np.random.Generator) -> tuple[tuple[int, int], tuple[int, int]]:
    """Smallest and largest delay of states and of commands [periods], at most `MOST` in total."""
    total = int(random.integers(0, MOST + 1))
    states = int(random.integers(0, total + 1))
    least = [0 if random.random() < 0.5 else most for most in (states, total - states)]
    return (least[0], states), (least[1], total - states)


def run(
    duration: float = 60.0,
    robot: str = "manipulator",
    controllers: str = "qp,joint_position",
    state: str = "observer",
    period: float = 0.005,
    reach: float = 0.02,
    goals: bool = True,
    stretch: float = 10.0,
    seed: int = 0,
) -> dict[str, Any]:
    """Run one robot for `duration` s of its time.

    Args:
        controllers: names separated by commas, which take over in turn. state: "observer" or "truth".
        period: control period [s]. reach: largest distance of goals from the start along each axis [m].
        goals: whether there are goals; else the robot rests, while delays, freezes and controllers change.
        stretch: duration of an interval with the same delays [s]. seed: seed of all random values.

    Raises:
        TensegrityError: robot or controllers do not exist.
    """
    loaded, names = load_robot(robot), [each.strip() for each in controllers.split(",")]
    for each_name in names:
        controller_class(each_name)  # refused now, not where it takes over
    if state not in STATES:
        raise TensegrityError(unknown_name("state", state, STATES))
    if min(duration, stretch) < period:
        raise TensegrityError(f"duration and stretch must be at least one period of {period:g} s.")
    if goals and stretch <= RESTING:
        raise TensegrityError(
            f"stretch is {stretch:g} s; give more than {RESTING:g} s, the rest at its end, for goals."
        )
    random = np.random.default_rng(seed)

    def make(name: str) -> Any:
        available = controller_class(name).parameters()
        return make_controller(name, loaded, **({"period": period} if "period" in available else {}))

    loop = DelayedLoop(loaded, make(names[0]), period, Delays(seed=seed), state == "observer")
    home = np.array(loop.control.reference(0.0).pose[0])
    rows = np.array([row for row in loaded.output.rows if row < 3])
    result: dict[str, Any] = {"robot": robot, "seed": seed, "stretches": [], "lost": ""}
    next_goal = 0.0

    def each(time: float) -> None:
        nonlocal next_goal
        if not goals or time < next_goal:
            return
        goal = home.copy()
        goal[rows] += random.uniform(-reach, reach, rows.size)
        try:
            accepted = loop.control.set_goal(loop.stamp, goal)  # type: ignore[attr-defined]
            count["goals"] += 1
            next_goal = time + float(random.uniform(0.3, 1.3)) * (accepted.arrival - loop.stamp)
        except TensegrityError:  # out of reach, or refused in the present state
            count["refused"] += 1
            next_goal = time + 0.5

    while duration - loop.time > 0.5 * period and not result["lost"]:
        states, commands = draw_delays(random)
        length = min(stretch, duration - loop.time)
        pauses = [(loop.time + at, long) for at, long in freezes(int(random.integers(2**31)), length, FROZEN, SPACING)]
        loop.set_delays(Delays(states, commands, freezes=tuple(pauses), seed=int(random.integers(2**31))))
        count, name = {"goals": 0, "refused": 0}, names[len(result["stretches"]) % len(names)]
        loop.forget()
        begin = loop.time
        try:
            loop.run(max(length - RESTING, 0.0), each)
            loop.control.hold(loop.stamp)  # type: ignore[attr-defined]
            loop.run(min(RESTING, length))
            loop.switch(make(names[(len(result["stretches"]) + 1) % len(names)]))
        except TensegrityError as error:
            result["lost"] = f"after {loop.time:.2f} s under {name}: {error}"
        result["stretches"].append(
            {"until": loop.time, "controller": name, "states": states, "commands": commands,
             "freezes": len(pauses), **count, "worst": max(loop.errors, default=0.0), "least": finite(loop.least()),
             "refusals": sum(loop.refused.values()), "faults": faults(loop, begin)}
        )  # fmt: skip
        done = result["stretches"][-1]
        least = "" if done["least"] is None else f", least tension {done['least']:.3f} of its floor"
        report(f"{loop.time:.0f} s, {name}, worst error {1e3 * done['worst']:.2f} mm{least}")
        next_goal = 0.0
    wrong = [f"{each['controller']}: {what}" for each in result["stretches"] for what in each["faults"]]
    result["failures"] = ([f"lost {result['lost']}"] if result["lost"] else []) + wrong
    return result


def render(result: dict[str, Any], console: Any) -> None:
    """Print one line per interval."""
    rows = [
        (f"{each['until']:.0f}", each["controller"], _range(each["states"]), _range(each["commands"]),
         str(each["freezes"]), str(each["goals"]), f"{1e3 * each['worst']:.3f}", _tension(each["least"]))
        for each in result["stretches"]
    ]  # fmt: skip
    columns = ("until s", "controller", "states late", "commands late", "freezes", "goals", "worst mm", "least T/floor")
    console.print(table(f"{result['robot']}, seed {result['seed']}", columns, rows))
    stretches = result["stretches"]
    tight = [each["least"] for each in stretches if each["least"] is not None]
    text = f"{stretches[-1]['until']:.0f} s: worst error {1e3 * max(each['worst'] for each in stretches):.2f} mm"
    text += f", least tension {min(tight):.3f} of its floor" if tight else ""
    console.print(text, soft_wrap=True)
    for each in result["failures"]:
        console.print(f"[red]failed[/red] {each}", soft_wrap=True)
    if not result["failures"]:
        console.print("never lost, no tendon slack or below its floor, never far off with somebody who answered.")


def _tension(least: float | None) -> str:
    return "" if least is None else f"{least:.3f}"


def _range(periods: tuple[int, int]) -> str:
    return str(periods[1]) if periods[0] == periods[1] else f"{periods[0]} to {periods[1]}"


def draw(result: dict[str, Any], path: Path) -> None:
    """Plot largest error and smallest tension of every interval."""
    figure, (errors, tensions) = panels(2, 1, figsize=(8, 6), sharex=True)
    until = [each["until"] for each in result["stretches"]]
    errors.semilogy(until, [max(1e3 * each["worst"], 1e-6) for each in result["stretches"]], ".")
    tight = [each for each in result["stretches"] if each["least"] is not None]
    tensions.plot([each["until"] for each in tight], [each["least"] for each in tight], ".")
    errors.set(ylabel="worst error [mm]")
    tensions.set(xlabel="time [s]", ylabel="least tension / floor")
    save_picture(figure, path)
