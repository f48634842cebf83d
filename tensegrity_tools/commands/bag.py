"""`tensegrity bag`: record a robot; show, compare and repair recordings; write report pages."""

from __future__ import annotations

import contextlib
import sys
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from tensegrity_dynamics.ending import Ending, leave
from tensegrity_dynamics.errors import TensegrityError

from ..bags import RECORDING
from ..output import console, print_json, print_table, progress, table
from .arguments import JsonOption, check_picture, quantity

bag = typer.Typer(
    add_completion=False,
    rich_markup_mode="markdown",
    no_args_is_help=True,
    help="Bags: record a running robot, look at recordings, compare, repair. `tensegrity up replay BAG` replays one.",
)

CLOSING_S = 60.0
"""Longest time for the recorder to close the bag on a busy computer [s]."""
BagArgument = Annotated[Path, typer.Argument(help="a bag: its folder, or a .mcap or .db3 file", show_default=False)]


@bag.command(
    "replay",
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []},
)
def replay_command(context: typer.Context) -> None:
    """Replay a bag: the same as `tensegrity up replay BAG`, with the same options."""
    from .up import up

    other = typer.Typer(add_completion=False)
    other.command()(up)
    typer.main.get_command(other).main(["replay", *context.args], prog_name="tensegrity up", standalone_mode=False)


@bag.command("record")
def record_command(
    path: Annotated[Path | None, typer.Argument(help="new folder of the bag; default: named by date and time")] = None,
    storage: Annotated[str, typer.Option(help="storage format: mcap (compressed) or sqlite3")] = "mcap",
    robot: Annotated[str, typer.Option(help="robot file to store in the bag; default: that of the nodes")] = "",
    exclude: Annotated[
        str | None, typer.Option(help="topics to leave out, separated by blanks; default: markers and frames")
    ] = None,
) -> None:
    """Record a running robot; Ctrl-C ends it. (`tensegrity up sim --bag FILE` also records the first state.)"""
    from ..runtime.node_graph import recorder_node
    from ..runtime.processes import NodeProcesses
    from .running_robot import need_ros

    target = path or Path(datetime.now().strftime("bag_%Y%m%d_%H%M%S"))
    parameters: dict[str, Any] = {"storage": storage}
    if exclude is not None:
        parameters["exclude"] = exclude or "/none"
    node = recorder_node(robot, str(target), **parameters)
    need_ros()
    began = False
    with contextlib.ExitStack() as release:
        with Ending() as ending:
            nodes = NodeProcesses()
            release.callback(nodes.stop)
            nodes.start(node.name, node.parameters)
            console.print("waiting for a robot")
            while not ending.asked and not nodes.ended():
                ending.wait(0.2)
                if not began and RECORDING in nodes.last_words("recorder"):
                    began = True
                    console.print(f"{RECORDING} {target}; Ctrl-C ends it.", markup=False)
            for status in nodes.ended().values():
                words = nodes.last_words("recorder")
                raise TensegrityError(words or f"the recorder ended with status {status}.")
        nodes.stop(CLOSING_S)
        with contextlib.suppress(TensegrityError):
            _print_info(target)
    leave(ending, 0 if began else 128 + ending.asked)


@bag.command("info")
def info_command(path: BagArgument, as_json: JsonOption = False) -> None:
    """Show the content of a bag, also if its recorder was killed."""
    if as_json:
        print_json(_figures(path))
    else:
        _print_info(path)


@bag.command("repair")
def repair_command(path: BagArgument) -> None:
    """Repair a bag whose recorder was killed; the broken bag is kept in the same folder."""
    from ..bags.repair import repair_bag

    with progress.status("reading what there is"):
        done = repair_bag(path)
    if done.broken is None:
        console.print(f"{path} is complete: {done.count} messages; nothing to repair.", markup=False)
    else:
        console.print(f"{path} is complete again: {done.count} messages. Broken bag: {done.broken}.", markup=False)


@bag.command("compare")
def compare_command(
    first: BagArgument,
    second: BagArgument,
    plot_to: Annotated[
        Path | None, typer.Option(help="image file for a plot of the differences over time: out.png")
    ] = None,
    tolerance: Annotated[
        float | None,
        quantity(
            "number",
            "--tolerance",
            "largest allowed difference; beyond it, or if messages are missing, the exit status is 1",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Compare two bags, topic by topic, over the robot's time."""
    from ..bags.comparison import compare_bags, plot_comparison
    from ..bags.reader import Bag

    if plot_to is not None:
        check_picture(plot_to)
    if tolerance is not None and not tolerance >= 0.0:  # nothing exceeds NaN
        raise TensegrityError(f"--tolerance is {tolerance:g}; give a number from 0 on.")
    with progress.status("comparing"), Bag(first) as one, Bag(second) as two:
        found = compare_bags(one, two)
    if plot_to is not None:
        plot_comparison(found, plot_to, (str(first), str(second)))
    rows = [
        (each.topic, each.field, len(each.times), each.missing, each.largest, each.mean_square, each.when)
        for each in found.errors
    ]
    if as_json:
        names = ("topic", "field", "compared", "missing", "largest", "root_mean_square", "at_s")
        print_json({
            "fields": [dict(zip(names, row, strict=True)) for row in rows], "only_first": found.only_first,
            "only_second": found.only_second, "interpolated": found.interpolated,
        })  # fmt: skip
    else:
        shown = [row for row in rows if row[4] > 0.0]
        if shown:
            titles = ("topic", "field", "compared", "missing", "largest", "rms", "at s")
            print_table(table("differences", titles, shown))
        equal = sorted({row[0] for row in rows} - {row[0] for row in shown})
        if equal:
            console.print(f"no number differs: {', '.join(equal)}", markup=False)
        for only, where in ((found.only_first, first), (found.only_second, second)):
            if only:
                console.print(f"only in {where}: {', '.join(only)}", markup=False)
        if found.interpolated:
            console.print("The two bags have no stamps in common: both start at 0 s, the first is interpolated.")
    if tolerance is not None and any(row[4] > tolerance or row[3] for row in rows):
        sys.exit(1)


@bag.command("report")
def report_command(
    path: BagArgument,
    out: Annotated[Path | None, typer.Option(help="HTML file to write; default: beside the bag, with its name")] = None,
) -> None:
    """Write a report page that needs no network: the robot in 3D over time, tensions, errors, goals and faults."""
    from ..bags.report import write_report

    target = out or path.with_name(path.stem + ".html")
    began = time.monotonic()
    with progress.status("reading the bag"):
        size = write_report(path, target)
    console.print(f"{target}: {1e-6 * size:.2f} MB after {time.monotonic() - began:.1f} s", markup=False)


def _figures(path: Path) -> dict[str, Any]:
    from ..bags.contents import read_contents
    from ..bags.reader import Bag

    with Bag(path) as opened:
        contents = read_contents(opened)
        duration = 1e-9 * (opened.end - opened.start)
        topics = [
            {"name": each.name, "type": each.type, "count": each.count, "latched": each.quality.latched,
             "rate_hz": each.count / duration if duration > 0.0 else None, "hash": each.digest}
            for each in sorted(opened.topics.values(), key=lambda each: each.name)
        ]  # fmt: skip
        return {
            "bag": str(path), "whole": opened.whole, "problem": opened.problem, "storage": opened.storage,
            "bytes": opened.size, "messages": opened.count, "start_s": 1e-9 * opened.start, "duration_s": duration,
            "robot": _robot_name(contents), "nodes": sorted(contents.parameters), "topics": topics,
        }  # fmt: skip


def _robot_name(contents: Any) -> str:
    from tensegrity_dynamics.robots.load_robot import parse_robot

    if contents.robot_text:
        with contextlib.suppress(TensegrityError):
            return parse_robot(contents.robot_text, path=contents.robot_path).name
    for parameters in contents.parameters.values():
        if parameters.get("robot"):
            return str(parameters["robot"])
    return ""


def _print_info(path: Path) -> None:
    figures = _figures(path)
    began = datetime.fromtimestamp(figures["start_s"], timezone.utc).astimezone()
    rows = [
        ("robot", figures["robot"] or "not in the bag"),
        ("recorded", f"{began:%Y-%m-%d %H:%M:%S}, {figures['duration_s']:.1f} s"),
        ("messages", f"{figures['messages']} in {1e-6 * figures['bytes']:.2f} MB ({figures['storage']})"),
        ("nodes", ", ".join(figures["nodes"]) or "not in the bag"),
    ]
    print_table(table(str(path), ("", ""), rows))
    if figures["topics"]:
        console.print()
        print_table(table("topics", ("topic", "messages", "per s", "", "type"), [
            (each["name"], each["count"], "" if each["rate_hz"] is None else f"{each['rate_hz']:.1f}",
             "latched" if each["latched"] else "", each["type"]) for each in figures["topics"]
        ], right=(2,)))  # fmt: skip
    if not figures["whole"]:
        words = escape(f"{figures['problem']}. `tensegrity bag repair {path}` completes it.")
        console.print(f"\n[yellow]broken:[/yellow] {words}")
