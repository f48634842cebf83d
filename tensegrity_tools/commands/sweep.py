"""`tensegrity sweep`: evaluation of a robot over many poses, loads or parameters, with a report."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from tensegrity_dynamics.errors import TensegrityError

from ..output import console, print_json, print_table, progress, table
from .arguments import JsonOption, RigidOption, RobotArgument


def sweep(
    robot: RobotArgument,
    over: Annotated[
        list[str],
        typer.Option(
            "--over",
            help="range NAME=LOW:HIGH:COUNT; x, y, z, rx, ry, rz of the output relative to its pose at rest (m, deg), "
            "load.NAME.z (N), parameter.NAME of the robot file; repeatable",
        ),
    ],
    out: Annotated[Path | None, typer.Option("--out", help="folder of the results; default: NAME_sweep")] = None,
    random: Annotated[
        int, typer.Option("--random", min=0, help="number of random poses instead of the grid; 0: the grid")
    ] = 0,
    seed: Annotated[int, typer.Option("--seed", min=0, help="seed of the random poses")] = 0,
    wrench: Annotated[
        bool,
        typer.Option("--wrench", help="structures: also compute the force that the output can bear along every axis"),
    ] = False,
    rigid_bars: RigidOption = False,
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, help="number of processes; default: all cores")
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option("--scheduler", help="address of a Dask scheduler, such as tcp://host:8786")
    ] = None,
    chunk: Annotated[int, typer.Option("--chunk", min=1, help="number of points per piece of work")] = 50,
    as_json: JsonOption = False,
) -> None:
    """Compute reachability, tension margins, stiffness and singular values over a grid; run again to resume."""
    from tensegrity_dynamics import load_robot
    from tensegrity_dynamics.robots.yaml_source import read_text

    from ..sweeps.axes import read_axis
    from ..sweeps.report import summary, write_report, write_table
    from ..sweeps.run import run_here, run_on_cluster
    from ..sweeps.samples import SweepPlan
    from ..sweeps.store import SweepFolder

    loaded = load_robot(robot)
    axes = tuple(read_axis(text) for text in over)
    names = [axis.name for axis in axes]
    for axis in axes:
        if names.count(axis.name) > 1:
            raise TensegrityError(f"--over {axis.name} is given twice; give each axis once.")
        if axis.is_pose and axis.name not in loaded.output.controlled:
            raise TensegrityError(
                f"--over {axis.name}: {loaded.output.name} does not control it; it controls "
                f"{', '.join(loaded.output.controlled)}."
            )
    if loaded.model.takes_no_goals and any(axis.is_pose for axis in axes):
        raise TensegrityError(f"{loaded.name} {loaded.model.takes_no_goals}.")
    if scheduler is not None and workers is not None:
        raise TensegrityError("give --workers (processes here) or --scheduler (a cluster), not both.")
    assert loaded.path is not None
    text, path = read_text(loaded.path), str(loaded.path.resolve())
    plan = SweepPlan(text, loaded.path.name, path, axes, random, seed, chunk, wrench, rigid_bars)
    for row in {0, len(plan.points.outer) - 1}:  # reports wrong names before the computation
        plan.robot(plan.points.outer[row].tolist())
    folder = out or Path(f"{loaded.name}_sweep")
    store = SweepFolder(folder, plan)
    missing, total = store.missing(), len(plan.pieces)
    begun = time.monotonic()
    done = total - len(missing)
    if done:
        progress.print(f"{done} of {total} pieces are in {folder} already.", style="yellow", markup=False)
    source = run_here(plan, missing, workers) if scheduler is None else run_on_cluster(plan, missing, scheduler)
    try:
        with progress.status(f"0 of {len(missing)} pieces") as status:
            for finished, (number, result) in enumerate(source, 1):
                store.keep(number, result)
                spent = time.monotonic() - begun
                left = spent / finished * (len(missing) - finished)
                status.update(f"{finished} of {len(missing)} pieces, {spent:.0f} s, about {left:.0f} s left")
    except KeyboardInterrupt:
        progress.print(f"stopped; finished points are in {folder}. Run the same command to continue.", style="yellow")
        raise typer.Exit(130) from None
    results = store.results()
    actuators = tuple(each.name for each in loaded.actuators)
    write_table(plan, results, actuators, folder / "points.csv")
    figures = write_report(plan, results, loaded.name, folder)
    if as_json:
        print_json({"robot": loaded.name, "folder": str(folder), **figures})
        return
    print_table(
        table(
            f"{loaded.name}: {len(missing)} of {total} pieces in {time.monotonic() - begun:.1f} s",
            ("", ""),
            summary(plan, figures),
        )
    )
    console.print(f"\n{folder}/report.html, {folder}/points.csv", markup=False, highlight=False)
