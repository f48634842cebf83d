"""The `tensegrity` command: one module per command, loaded only when it is called."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

# Name, module and function of every command. Commands of one group (bag record, servo scan) have a space.
COMMANDS = {
    "check": ("check", "check"),
    "fk": ("shape", "fk"),
    "ik": ("shape", "ik"),
    "simulate": ("simulate", "simulate"),
    "experiment": ("experiment", "experiment"),
    "up": ("up", "up"),
    "goal": ("talk", "goal"),
    "status": ("talk", "status"),
    "hold": ("talk", "hold"),
    "stop": ("talk", "stop"),
}


class LazyGroup(TyperGroup):
    """Loads the module of a command when the command is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, name: str) -> Any:
        if name not in COMMANDS:
            return None
        module, function = COMMANDS[name]
        sub = typer.Typer(add_completion=False)
        sub.command(name)(getattr(import_module(f"tensegrity_tools.commands.{module}"), function))
        return typer.main.get_command(sub)


program = typer.Typer(cls=LazyGroup, no_args_is_help=True, add_completion=False, rich_markup_mode=None)


@program.callback()
def describe() -> None:
    """Tensegrity robots: check, shape, simulate, drive. A ROBOT is the name of a shipped one or a .yaml file."""


def app() -> None:
    """Run the command; errors are one plain message and exit status 1."""
    from tensegrity_dynamics.errors import TensegrityError

    try:
        program()
    except TensegrityError as error:
        print(f"tensegrity: {error}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    app()
