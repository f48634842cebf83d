"""`tensegrity simulate`: simulation of a robot with the library only, and a plot of it."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from tensegrity_dynamics.errors import AccuracyWarning, TensegrityError
from tensegrity_dynamics.robots.formatting import millimetres, span, turned
from tensegrity_dynamics.robots.quantities import read_quantity, read_vector, split_item
from tensegrity_dynamics.robots.report import Report, Section
from tensegrity_dynamics.robots.robot_types import type_of
from tensegrity_dynamics.simulation_interface import SHORT_STEP

from ..output import console, panels, print_json, print_report, progress, save_picture
from .arguments import JsonOption, RobotArgument, check_folder, check_picture, quantity
from .motion_table import write_table

MOST_STEPS = 1e10  # largest number of steps of one run
SAMPLES = 400
COLOURS = {"tendon": "C0", "spring": "C1", "cable": "C2"}
STRAIGHT = {"position": "length", "velocity": "speed", "effort": "force"}
QUANTITIES = {
    "tendon": STRAIGHT,
    "prismatic": STRAIGHT,
    "revolute": {"position": "angle", "velocity": "angular speed", "effort": "torque"},
}
"""Physical quantity of commands, by motion of the actuator and mode."""


def simulate(
    robot: RobotArgument,
    duration: Annotated[str, typer.Option(help="duration; plain numbers are s")] = "2s",
    position: Annotated[
        list[str],
        typer.Option(
            help="position of an actuator (rest length of its tendon, angle of its pulley), NAME=VALUE such as "
            "draw_1=8.3in; repeatable"
        ),
    ] = [],  # noqa: B006
    velocity: Annotated[
        list[str], typer.Option(help="rate of an actuator, NAME=VALUE such as draw_1=-5mm/s; repeatable")
    ] = [],  # noqa: B006
    effort: Annotated[
        list[str],
        typer.Option(
            help="effort of an actuator (tension, torque or force), NAME=VALUE such as draw_1=120N; repeatable"
        ),
    ] = [],  # noqa: B006
    integrator: Annotated[
        str, typer.Option(help="integrator, such as rk4, rattle or implicit; empty: the default of the robot")
    ] = "",
    time_step: Annotated[
        str | None,
        typer.Option(help="time step, such as 50us; default: that of the robot; smaller is more accurate and slower"),
    ] = None,
    force: Annotated[
        list[str],
        typer.Option(
            "--force", "-f", help="constant force on a node or a body, NAME=X,Y,Z such as top_1=0,0,-5N; repeatable"
        ),
    ] = [],  # noqa: B006
    start_velocity: Annotated[
        list[str],
        typer.Option(
            help="initial velocity of a node, NAME=VX,VY,VZ such as top_1=0,0,-0.1m/s, or of a coordinate of a "
            "mechanism, NAME=VALUE; repeatable"
        ),
    ] = [],  # noqa: B006
    gravity: Annotated[str | None, typer.Option(help="gravity X,Y,Z [m/s^2]; default: that of the robot file")] = None,
    elastic_bars: Annotated[
        bool, typer.Option("--elastic-bars", help="elastic bars (structures); default: rigid bars")
    ] = False,
    air_damping: Annotated[
        float,
        quantity("damping", "--air-damping", "damping of every free node against the air [N s/m], structures only"),
    ] = 0.0,
    model: Annotated[
        str, typer.Option(help="model of a structure: point_masses, or minimal (five coordinates per rod, class 1)")
    ] = "",
    begin: Annotated[
        bool, typer.Option("--start-up", help="simulate a structure to rest before the start (003, 3.6.3)")
    ] = False,
    pretension: Annotated[
        str | None, typer.Option(help="with --start-up: pretension of every tendon, such as 20N")
    ] = None,
    ramp: Annotated[str | None, typer.Option(help="with --start-up: duration of winding; 0: at once")] = None,
    plot: Annotated[Path | None, typer.Option("--plot-to", "--plot", help="image file for a plot: out.png")] = None,
    data: Annotated[
        Path | None, typer.Option("--data", help="CSV file of the motion, one line per sample: out.csv")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Simulate a robot without ROS, from equilibrium, with optional constant commands."""
    from tensegrity_dynamics import Simulation, load_robot

    seconds = read_quantity(duration, "time", "--duration")
    if not seconds > 0.0:
        raise TensegrityError(f"--duration {duration}: give a time above zero.")
    step = None if time_step is None else read_quantity(time_step, "time", "--time-step")
    if plot is not None:
        check_picture(plot)
    if data is not None:
        check_folder(data, "--data")
    loaded = load_robot(robot)
    weight = read_vector(gravity, "--gravity", 3)
    loads, motion = _loads(force, loaded), _motion(start_velocity, loaded)
    pulling = loaded.model.tension_kinds
    commands: dict[str, Any] = {
        mode: _commands(items, loaded, mode)
        for mode, items in (("position", position), ("velocity", velocity), ("effort", effort))
    }
    if begin:
        loaded, start, started = _start_up(loaded, pretension, ramp)
    elif pretension is not None or ramp is not None:
        raise TensegrityError("--pretension and --ramp belong to --start-up; add it.")
    options: dict[str, Any] = {"model": model} if model else {}
    if begin:
        options["start"] = start
    began = time.perf_counter()
    warnings.simplefilter("ignore", AccuracyWarning)  # reported as a note
    with progress.status("preparing (the first time the kernels are compiled, about half a minute)") as note:
        simulation = Simulation(
            loaded, step, integrator or None, rigid_bars=not elastic_bars, gravity=weight, air_damping=air_damping,
            **options,
        )  # fmt: skip
        simulation.apply_forces(loads or None)
        if motion is not None:
            simulation.set_motion(motion)
        if seconds > MOST_STEPS * simulation.time_step:
            raise TensegrityError(
                f"--duration {duration}: more than {MOST_STEPS:.0e} steps of {simulation.time_step:.3g} s. Choose a "
                "shorter one, or a longer --time-step; very stiff members or very light nodes need short steps."
            )
        first = sample_of(simulation)
        simulation.advance(1, **commands)
        began = time.perf_counter()
        steps = max(1, round(seconds / simulation.time_step) - 1)
        samples = [first, sample_of(simulation)]
        for part in np.diff(np.linspace(0, steps, min(steps, SAMPLES) + 1).astype(np.int64)).tolist():
            simulation.advance(part)
            samples.append(sample_of(simulation))
            note.update(f"simulating: {samples[-1]['time_s']:.2f} of {seconds:g} s")
    taken = time.perf_counter() - began
    energy, last = simulation.energy(), samples[-1]
    notes = ([simulation.note] if simulation.note else []) + _cut(commands, loaded)
    if simulation.time_step < SHORT_STEP and not integrator and "implicit" in type_of(loaded).integrators:
        notes.append(
            f"steps are as short as {1e6 * simulation.time_step:.2g} us, for the shortest period of "
            f"{1e3 * simulation.shortest_period:.2g} ms, from {simulation.simulator.step_limit}; --integrator implicit "
            "takes longer ones and damps the fastest motions."
        )
    figures = {
        "integrator": simulation.integrator,
        "time_step_s": simulation.time_step,
        "shortest_period_s": simulation.shortest_period,
        "step_limit": simulation.simulator.step_limit,
        "steps": steps + 1,
        "wall_time_s": taken,
        "energy_J": {
            "kinetic": energy.kinetic,
            "elastic": energy.elastic,
            "gravity": energy.gravity,
            "ground": energy.ground,
            "damping": energy.damping,
            "friction": energy.friction,
            "total": energy.total,
            "integrator_error": simulation.energy_error,
        },
        "notes": notes,
        "start_up": _start_up_figures(started) if begin else None,
        "start": first,
        "end": last,
        "plot": str(plot) if plot else None,
        "data": str(data) if data else None,
    }
    if data is not None:
        write_table(samples, data)
    if plot is not None:
        _plot(samples, pulling, plot, loaded.name)
    if as_json:
        print_json(figures)
        return
    rows = []
    if begin:
        rest = f"{started.steps} steps of {1e6 * started.time_step:.3g} us, {started.peaks} energy peaks"
        rows += [("start-up", f"{rest}, {started.residual:.2g} N left")]
        rows += [("tensions after it", span([started.tensions[k] for k in _pulling(loaded.model)], "N"))]
        if started.slack:
            rows += [("slack after it", ", ".join(started.slack))]
    rows += [
        ("steps", f"{steps + 1} of {1e6 * simulation.time_step:.3g} us ({simulation.integrator})"),
        ("speed", f"{seconds / max(taken, 1e-9):.3g} times real time"),
        ("shortest period", f"{1e3 * simulation.shortest_period:.3g} ms, from {simulation.simulator.step_limit}"),
    ]
    if last["position_m"] is not None:
        rows += [("output before", _pose(first)), ("output after", _pose(last))]
    if pulling:
        lowest = {name: min(sample["tensions_N"][name] for sample in samples) for name in pulling}
        weakest = min(lowest, key=lambda name: lowest[name])
        rows.append(("tensions after", span([last["tensions_N"][name] for name in pulling], "N")))
        rows.append(("lowest tension", f"{lowest[weakest] + 0.0:.4g} N in {weakest}"))
    if last["contacts_N"]:
        feet = ", ".join(f"{name} {np.linalg.norm(force):.4g}" for name, force in last["contacts_N"].items())
        carried = np.linalg.norm(sum(last["contacts_N"].values()))
        rows.append(("ground carries", f"{carried:.5g} N: {feet} N"))
    for name, said in simulation.details.items():
        rows.append((name, said))
    for name, (contact, _, _) in last["slip"].items():
        changes = sum(a["slip"][name][0] != b["slip"][name][0] for a, b in pairwise(samples))
        if changes:
            rows.append((f"changes at {name}", f"{changes} from sample to sample ({len(samples)}), now {contact}"))
    rows.append(("energy", f"{energy.total:.6g} J, of it kinetic {energy.kinetic:.2g} J"))
    if energy.friction or energy.damping:
        rows.append(("turned to heat", f"{energy.damping:.3g} J by damping, {energy.friction:.3g} J by friction"))
    rows.append(("error of the integrator", f"{simulation.energy_error:.2g} J"))
    print_report(Report(figures, [Section(f"{loaded.name} after {last['time_s']:.4g} s", ("", ""), rows)], notes=notes))
    if plot is not None:
        console.print(f"picture: {plot}")
    if data is not None:
        console.print(f"table: {data}, {len(samples)} lines")


def _start_up(loaded: Any, pretension: str | None, ramp: str | None) -> tuple[Any, Any, Any]:
    """Robot with the rest lengths after start-up, the nodes at rest, and the results of the start-up."""
    from tensegrity_dynamics import Structure, start_up

    if not isinstance(loaded.model, Structure):
        raise TensegrityError(f"--start-up is for structures; {loaded.name} is {loaded.model.noun}.")
    target = None if pretension is None else read_quantity(pretension, "force", "--pretension")
    duration = None if ramp is None else read_quantity(ramp, "time", "--ramp")
    with progress.status("start-up (the first time its kernels are compiled)") as note:
        started = start_up(
            loaded.model, target, ramp=duration,
            progress=lambda steps, left: note.update(f"start-up: {steps} steps, {left:.2g} N left"),
        )  # fmt: skip
    return replace(loaded, model=loaded.model.with_rest_lengths(started.rest_lengths)), started.nodes, started


def _pulling(structure: Any) -> list[int]:
    """Indices of tendons and springs that are not fixed at both ends."""
    return [structure.member(name) for name in structure.tension_kinds]


def _start_up_figures(started: Any) -> dict[str, Any]:
    return {
        "steps": started.steps, "time_step_s": started.time_step, "peaks": started.peaks,
        "residual_N": started.residual, "slack": list(started.slack), "tensions_N": started.tensions,
        "nodes_m": started.nodes, "rest_lengths_m": started.rest_lengths,
    }  # fmt: skip


def _commands(items: Sequence[str], loaded: Any, mode: str) -> dict[str, float]:
    """Set points in SI units by actuator name."""
    by_name = {actuator.name: actuator for actuator in loaded.actuators}
    result = {}
    for item in items:
        name, value = split_item(item, f"--{mode}", "NAME=VALUE", "actuator", list(by_name))
        result[name] = read_quantity(value, QUANTITIES[by_name[name].motion][mode], f"--{mode} {item!r}:")
    return result


def _cut(commands: Mapping[str, Mapping[str, float]], loaded: Any) -> list[str]:
    """Notes about commands that the simulation clips to the limits of the actuators."""
    notes = []
    for actuator in loaded.actuators:
        limits = {
            "position": actuator.position,
            "velocity": (-actuator.rate, actuator.rate),
            "effort": (0.0 if actuator.motion == "tendon" else -actuator.effort, actuator.effort),
        }
        for (mode, (low, high)), unit in zip(limits.items(), actuator.units, strict=True):
            value = commands[mode].get(actuator.name)
            if value is not None and not low <= value <= high:
                notes.append(
                    f"--{mode} {actuator.name}: {value:g} {unit} is outside its limits {low:g} to {high:g} {unit}; it "
                    f"was driven with {min(max(value, low), high):g} {unit}."
                )
    return notes


def _loads(items: Sequence[str], loaded: Any) -> dict[str, Any]:
    """Forces (3,) by name of a node or a body [N]; forces on the same one are added."""
    what, loads = "body" if loaded.model.takes_moments else "node", dict[str, Any]()
    for item in items:
        name, value = split_item(item, "--force", "NAME=X,Y,Z", what, loaded.model.load_names)
        loads[name] = loads.get(name, np.zeros(3)) + read_vector(value, f"--force {item!r}:", kind="force")
    return loads


def _motion(items: Sequence[str], loaded: Any) -> Any:
    """Initial velocities, (n, 3) of a structure or (nv,) of a mechanism; None if there are none."""
    from tensegrity_dynamics import Structure

    if not items:
        return None
    mechanism = getattr(loaded.model, "mechanism", None)
    if mechanism is None and not isinstance(loaded.model, Structure):
        raise TensegrityError(
            f"--start-velocity is for structures and mechanisms; {loaded.name} is {loaded.model.noun}."
        )
    names = loaded.model.node_names if mechanism is None else mechanism.coordinate_names()
    what, form = ("node", "NAME=VX,VY,VZ") if mechanism is None else ("coordinate", "NAME=VALUE")
    motion = np.zeros((len(names), 3) if mechanism is None else len(names))
    kinds = () if mechanism is None else mechanism.coordinate_speeds()
    for item in items:
        name, value = split_item(item, "--start-velocity", form, what, names)
        k, said = names.index(name), f"--start-velocity {item!r}:"
        motion[k] = read_quantity(value, kinds[k], said) if kinds else read_vector(value, said, kind="speed")
    return motion


def sample_of(simulation: Any) -> dict[str, Any]:
    seen = simulation.observe()
    position, quaternion = seen.pose if seen.pose is not None else (None, None)
    return {
        "time_s": seen.time,
        "position_m": position,
        "quaternion_wxyz": quaternion,
        "tensions_N": dict(seen.tensions),
        "contacts_N": dict(seen.contacts),
        "slip": {
            f"{name}_{k}": (contact, each.slipped[k], each.slip_speeds[k])
            for name, each in getattr(seen, "routes", {}).items()
            for k, contact in enumerate(each.contacts)
            if contact
        },
    }


def _pose(sample: dict[str, Any]) -> str:
    return f"{millimetres(sample['position_m'])}, {turned(sample['quaternion_wxyz'])}"


def _plot(samples: list[dict[str, Any]], pulling: Mapping[str, str], path: Path, name: str) -> None:
    times = [sample["time_s"] for sample in samples]
    figure, axes = panels(2 if pulling else 1, 1, figsize=(8, 6), sharex=True)
    above, below = axes if pulling else (axes, axes)
    start = samples[0]["position_m"]
    if start is not None:
        for axis, label in enumerate("xyz"):
            above.plot(times, [1e3 * (sample["position_m"][axis] - start[axis]) for sample in samples], label=label)
        above.legend(loc="best")
    above.set_ylabel("output, change [mm]")
    above.set_title(name)
    named: set[str] = set()
    for member, kind in pulling.items():
        tensions = [sample["tensions_N"][member] for sample in samples]
        below.plot(
            times, tensions, color=COLOURS.get(kind, "C3"), linewidth=0.8, label="" if kind in named else f"{kind}s"
        )
        named.add(kind)
    if pulling:
        below.legend(loc="best")
        below.set_ylabel("tensions [N]")
    below.set_xlabel("time [s]")
    save_picture(figure, path, dpi=120)
