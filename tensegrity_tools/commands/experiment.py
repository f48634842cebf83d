"""`tensegrity experiment`: results of the source documents, the printed value beside ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from inspect import signature
from pathlib import Path
from pkgutil import iter_modules
from typing import Annotated

import typer

from tensegrity_dynamics.errors import TensegrityError, unknown_name
from tensegrity_dynamics.robots.quantities import read_quantity

from ..output import console, print_json, progress, table
from .arguments import JsonOption, check_picture
from .running_robot import need_ros


def experiment(
    name: Annotated[str, typer.Argument(help="which; without one, all are listed")] = "",
    plot: Annotated[
        Path | None, typer.Option("--plot-to", "--plot", help="picture to write, where the experiment has one: out.png")
    ] = None,
    settings: Annotated[
        list[str], typer.Option("--set", help="an option of the experiment, NAME=VALUE such as rod=0.6m")
    ] = [],  # noqa: B006
    nodes: Annotated[bool, typer.Option(help="run it through the real nodes in lock-step, too, and compare")] = False,
    as_json: JsonOption = False,
) -> None:
    """Reproduce a result of the source documents."""
    from .. import experiments

    known = [item.name for item in iter_modules(experiments.__path__) if not item.name.startswith("_")]
    if not name:
        rows = [(each, import_module(f"tensegrity_tools.experiments.{each}").DESCRIPTION) for each in sorted(known)]
        if as_json:
            print_json(dict(rows))
            return
        console.print(table("experiments", ("name", ""), rows))
        return
    if name not in known:
        raise TensegrityError(unknown_name("experiment", name, sorted(known)))
    module = import_module(f"tensegrity_tools.experiments.{name}")
    if nodes:
        if "nodes" not in signature(module.run).parameters:
            raise TensegrityError(f"experiment {name} has no nodes to run through; leave --nodes out.")
        need_ros()
    options = _options(name, getattr(module, "OPTIONS", {}), settings)
    if plot is not None:
        if not hasattr(module, "draw"):
            raise TensegrityError(f"experiment {name} has no picture; leave --plot-to out.")
        check_picture(plot)
    with progress.status(f"running {name}"):
        result = module.run(nodes=True, **options) if nodes else module.run(**options)
    if plot is not None:
        module.draw(result, plot)
    if as_json:
        print_json(result)
        return
    module.render(result, console)
    if plot is not None:
        console.print(f"picture: {plot}")


def _options(name: str, known: Mapping[str, tuple[str, float, str]], settings: Sequence[str]) -> dict[str, float]:
    """What is set, in SI by the option's name."""
    result = {}
    for item in settings:
        key, equals, value = (part.strip() for part in item.partition("="))
        if not equals:
            raise TensegrityError(f"--set {item!r}: write NAME=VALUE.")
        if not known:
            raise TensegrityError(f"experiment {name} has no options; leave --set out.")
        if key not in known:
            raise TensegrityError(f"--set {item!r}: " + unknown_name("option", key, known))
        quantity, usual, _ = known[key]
        result[key] = read_quantity(value, quantity, f"--set {key}")
        if result[key] < 0.0 or (usual > 0.0 and not result[key] > 0.0):
            raise TensegrityError(f"--set {item!r}: give a value above zero.")
    return result
