"""`tensegrity experiment`: results of the source documents, the printed value beside ours."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from inspect import signature
from pathlib import Path
from pkgutil import iter_modules
from typing import Annotated, Any

import typer

from tensegrity_dynamics.errors import TensegrityError, unknown_name

from ..output import console, print_json, progress, table
from .arguments import JsonOption, check_picture
from .running_robot import need_ros


def experiment(
    name: Annotated[str, typer.Argument(help="which; without one, all are listed")] = "",
    plot: Annotated[
        Path | None, typer.Option("--plot-to", "--plot", help="picture to write, where the experiment has one: out.png")
    ] = None,
    nodes: Annotated[bool, typer.Option(help="run it through the real nodes in lock-step, too, and compare")] = False,
    options: Annotated[
        list[str] | None, typer.Option("--set", help="NAME=VALUE, an option of the experiment; may be repeated")
    ] = None,
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
    if plot is not None:
        if not hasattr(module, "draw"):
            raise TensegrityError(f"experiment {name} has no picture; leave --plot-to out.")
        check_picture(plot)
    given = _read_options(name, module.run, options or [])
    with progress.status(f"running {name}"):
        result = module.run(nodes=True, **given) if nodes else module.run(**given)
    if plot is not None:
        module.draw(result, plot)
    if as_json:
        print_json(result)
        return
    module.render(result, console)
    if plot is not None:
        console.print(f"picture: {plot}")


def _read_options(name: str, run: Callable[..., Any], items: list[str]) -> dict[str, Any]:
    """Arguments of an experiment's `run` from texts such as "drop=0.1": numbers and names, as its defaults are."""
    plain = {
        each.name: each.default for each in signature(run).parameters.values()
        if isinstance(each.default, (int, float, str)) and each.name != "nodes"
    }  # fmt: skip
    given: dict[str, Any] = {}
    for item in items:
        key, equals, value = (part.strip() for part in item.partition("="))
        if not equals:
            raise TensegrityError(f"--set {item!r}: write NAME=VALUE.")
        if key not in plain:
            raise TensegrityError(f"--set {item!r}: " + unknown_name(f"option of experiment {name}", key, plain))
        try:
            given[key] = type(plain[key])(value)
        except ValueError:
            raise TensegrityError(f"--set {item!r}: give a number like {plain[key]!r}.") from None
    return given
