"""`tensegrity simulate`: a robot in time with the library alone, and a picture of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from tensegrity_dynamics.errors import TensegrityError

from ..output import console, print_json, table
from .shape import JsonOption, RobotArgument


def simulate(
    robot: RobotArgument,
    duration: Annotated[float, typer.Option(help="s")] = 2.0,
    command: Annotated[list[str], typer.Option(help="position of an actuator, NAME=VALUE, with a unit or in SI")] = [],  # noqa: B006
    integrator: Annotated[str, typer.Option(help="rk4, rattle or implicit")] = "rk4",
    time_step: Annotated[float | None, typer.Option(help="s; the robot's own without it")] = None,
    plot: Annotated[Path | None, typer.Option(help="picture to write, for example out.png")] = None,
    as_json: JsonOption = False,
) -> None:
    """Simulate a robot without ROS and print where it goes."""
    from tensegrity_dynamics import Simulation, load_robot

    from .shape import read_lengths

    if not (np.isfinite(duration) and duration > 0.0):
        raise TensegrityError(f"--duration {duration}: give seconds above zero.")
    loaded = load_robot(robot)
    with console.status("preparing (the first time the kernels are compiled)"):
        simulation = Simulation(loaded, time_step, integrator)
        simulation.advance(1, position=read_lengths(command))
    steps = max(1, round(duration / simulation.time_step))
    samples = [_sample(simulation)]
    for part in np.array_split(np.arange(steps), min(steps, 200)):
        simulation.advance(len(part))
        samples.append(_sample(simulation))
    energy = simulation.energy()
    figures = {
        "integrator": integrator,
        "time_step_s": simulation.time_step,
        "shortest_period_s": simulation.shortest_period,
        "steps": steps,
        "energy_J": {"kinetic": energy.kinetic, "elastic": energy.elastic, "gravity": energy.gravity, "total": energy.total},
        **samples[-1],
    }
    if plot is not None:
        _plot(samples, plot, loaded.name)
        figures["plot"] = str(plot)
    if as_json:
        print_json(figures)
        return
    rows = [
        ("steps", f"{steps} of {1e6 * simulation.time_step:.3g} us ({integrator})"),
        ("shortest period", f"{1e3 * simulation.shortest_period:.3g} ms"),
        ("time", f"{samples[-1]['time_s']:.3f} s"),
        ("output at", " ".join(f"{1e3 * x:.3f}" for x in samples[-1]["position_m"]) + " mm"),
        ("tensions", f"{min(samples[-1]['tensions_N'].values()):.4g} to {max(samples[-1]['tensions_N'].values()):.4g} N"),
        ("energy", f"{energy.total:.6g} J, of it kinetic {energy.kinetic:.3g} J"),
    ]
    console.print(table(f"{loaded.name} after {duration:g} s", ("", ""), rows))
    if plot is not None:
        console.print(f"picture: {plot}")


def _sample(simulation: Any) -> dict[str, Any]:
    seen = simulation.observe()
    pose = seen.pose if seen.pose is not None else (np.zeros(3), np.array([1.0, 0, 0, 0]))
    return {
        "time_s": seen.time,
        "position_m": pose[0],
        "quaternion_wxyz": pose[1],
        "tensions_N": {name: value for name, value in seen.tensions.items() if value >= 0.0},
    }


def _plot(samples: list[dict[str, Any]], path: Path, name: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    times = [sample["time_s"] for sample in samples]
    figure, (above, below) = plt.subplots(2, 1, figsize=(8, 6), sharex=True, layout="constrained")
    start = samples[0]["position_m"]
    for axis, label in enumerate("xyz"):
        above.plot(times, [1e3 * (sample["position_m"][axis] - start[axis]) for sample in samples], label=label)
    above.set_ylabel("output, change [mm]")
    above.legend(loc="upper right")
    above.set_title(name)
    for member in samples[0]["tensions_N"]:
        below.plot(times, [sample["tensions_N"].get(member, 0.0) for sample in samples], linewidth=0.8)
    below.set_ylabel("tensions [N]")
    below.set_xlabel("time [s]")
    figure.savefig(path, dpi=120)
    plt.close(figure)
