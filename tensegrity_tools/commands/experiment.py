"""`tensegrity experiment`: results of the source documents, compared with the printed values."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from importlib import import_module
from inspect import signature
from pathlib import Path
from pkgutil import iter_modules
from typing import Annotated, Any

import typer

from tensegrity_dynamics.errors import TensegrityError, unknown_name
from tensegrity_dynamics.robots.quantities import read_quantity
from tensegrity_dynamics.robots.units import USUAL

from ..experiments._progress import listening
from ..output import console, print_json, print_table, progress, table, without_series, write_json
from .arguments import JsonOption, check_folder, check_picture
from .running_robot import need_ros

WIDTH = 160
"""Width of tables for outputs other than a terminal [characters]."""


def experiment(
    name: Annotated[str, typer.Argument(help="name of the experiment; default: list all of them")] = "",
    plot: Annotated[
        Path | None,
        typer.Option("--plot-to", "--plot", help="image file for the plot of the experiment, if it has one: out.png"),
    ] = None,
    settings: Annotated[
        list[str], typer.Option("--set", help="option of the experiment, NAME=VALUE such as rod=0.6m; repeatable")
    ] = [],  # noqa: B006
    nodes: Annotated[bool, typer.Option(help="also run it through the ROS nodes in lock-step, and compare")] = False,
    series: Annotated[
        Path | None,
        typer.Option("--series", help="JSON file for all results, time series included: out.json"),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Reproduce a result of the source documents; the exit status is 1 if the experiment reports a failure."""
    from .. import experiments

    available = [item.name for item in iter_modules(experiments.__path__) if not item.name.startswith("_")]
    if not name:
        modules = {each: import_module(f"tensegrity_tools.experiments.{each}") for each in sorted(available)}
        if as_json:
            print_json({each: module.DESCRIPTION for each, module in modules.items()})
            return
        rows = [
            (each, module.DESCRIPTION, ", ".join(f"{key}={value}" for key, value in _options_with_units(module)))
            for each, module in modules.items()
        ]
        print_table(table("experiments", ("name", "", "options for --set"), rows))
        return
    if name not in available:
        raise TensegrityError(unknown_name("experiment", name, sorted(available)))
    module = import_module(f"tensegrity_tools.experiments.{name}")
    if nodes:
        if "nodes" not in signature(module.run).parameters:
            raise TensegrityError(f"experiment {name} has no nodes to run through; leave --nodes out.")
        need_ros()
    if plot is not None:
        if not hasattr(module, "draw"):
            raise TensegrityError(f"experiment {name} has no picture; leave --plot-to out.")
        check_picture(plot)
    if series is not None:
        check_folder(series, "--series")
    given = _read_options(name, module, settings)
    with progress.status(f"running {name}") as status:
        began = time.monotonic()

        def show(text: str, lasts: bool) -> None:
            line = f"{name}, {time.monotonic() - began:.0f} s: {text}"
            if progress.is_terminal and not lasts:
                status.update(line)
            else:
                progress.print(line, markup=False, highlight=False, soft_wrap=True)

        with listening(show):
            result = module.run(nodes=True, **given) if nodes else module.run(**given)
    if as_json:
        print_json(without_series(result))
    else:
        if not console.is_terminal:  # no digit is cut in a file or a pipe
            console.width = max(console.width, WIDTH)
        module.render(result, console)
    if plot is not None:  # after the results, so that a full disk does not lose them
        module.draw(result, plot)
        if not as_json:
            console.print(f"picture: {plot}")
    if series is not None:
        write_json(result, series)
    if result.get("failures"):  # of experiments that report failures
        raise typer.Exit(1)


def options_of(module: Any) -> dict[str, Any]:
    """Options of an experiment with their defaults: arguments of its `run` that are single values."""
    return {
        each.name: each.default for each in signature(module.run).parameters.values()
        if isinstance(each.default, (bool, int, float, str)) and each.name != "nodes"
    }  # fmt: skip


def _options_with_units(module: Any) -> Iterator[tuple[str, str]]:
    """Name and default with its SI unit of every option: ("rod", "1 m")."""
    for key, value in options_of(module).items():
        kind = getattr(module, "QUANTITIES", {}).get(key, "number")
        yield key, f"{_short(value)} {next(iter(USUAL.get(kind, {})), '')}".strip()


def _short(value: object) -> object:
    """Number with at most six digits: 0.0381 for 1.5 inch."""
    return f"{value:g}" if isinstance(value, float) else value


def _read_options(name: str, module: Any, settings: Sequence[str]) -> dict[str, Any]:
    """Arguments for `run` of an experiment from texts such as "rod=0.6 m"; `QUANTITIES` defines the quantities."""
    usual, quantities = options_of(module), getattr(module, "QUANTITIES", {})
    zero = getattr(module, "MAY_BE_ZERO", ())
    given: dict[str, Any] = {}
    for item in settings:
        key, equals, text = (part.strip() for part in item.partition("="))
        if not equals:
            raise TensegrityError(f"--set {item!r}: write NAME=VALUE.")
        if not usual:
            raise TensegrityError(f"experiment {name} has no options; leave --set out.")
        if key not in usual:
            raise TensegrityError(f"--set {item!r}: " + unknown_name("option", key, usual, f"of experiment {name}"))
        given[key] = _option(item, text, usual[key], quantities.get(key, "number"), key in zero)
    return given


def _option(item: str, text: str, usual: Any, quantity: str, may_be_zero: bool) -> Any:
    if isinstance(usual, str):
        return text
    if isinstance(usual, bool):
        if text.lower() not in ("yes", "no", "true", "false"):
            raise TensegrityError(f"--set {item!r}: write yes or no.")
        return text.lower() in ("yes", "true")
    value = read_quantity(text, quantity, f"--set {item!r}")
    above = usual > 0 and not may_be_zero
    if value < 0.0 or (above and value == 0.0):
        raise TensegrityError(f"--set {item!r}: give {'a value above zero' if above else 'zero or a value above it'}.")
    if isinstance(usual, int) and value != int(value):
        raise TensegrityError(f"--set {item!r}: give a whole number.")
    return type(usual)(value)
