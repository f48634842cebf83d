"""The `tensegrity` command: one module per command, loaded only when it is called."""

from __future__ import annotations

import errno
import re
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from .dependency_errors import what_is_missing
from .start_up import end_at_once

# Name, module in commands/ and function of every command; a new command needs one new line.
COMMANDS = {
    "new": ("new", "new"),
    "check": ("check", "check"),
    "fk": ("forward_kinematics", "fk"),
    "ik": ("inverse_kinematics", "ik"),
    "assembly-modes": ("assembly_modes", "assembly_modes"),
    "wrenches": ("wrenches", "wrenches"),
    "urdf": ("urdf", "urdf"),
    "export": ("export", "export"),
    "simulate": ("simulate", "simulate"),
    "sweep": ("sweep", "sweep"),
    "experiment": ("experiment", "experiment"),
    "compile": ("compile_kernels", "compile_kernels"),
    "up": ("up", "up"),
    "bag": ("bag", "bag"),
    "goal": ("running_robot", "goal"),
    "follow": ("follow", "follow"),
    "push": ("push", "push"),
    "payload": ("push", "payload"),
    "status": ("running_robot", "status"),
    "hold": ("running_robot", "hold"),
    "stop": ("running_robot", "stop"),
    "release": ("running_robot", "release"),
    "servo": ("servo.app", "servo"),
}

DISK_REFUSES = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
"""Error numbers of a disk that is full or read-only, such as during storage of compiled functions."""
ENDED_AT_ONCE = ("compile",)
"""Commands that a signal may end at any point. Exceptions inside LLVM are lost or converted to others, and compiled
functions are stored only in complete files."""
LISTENING = ("up", "goal", "follow", "push", "payload", "status", "hold", "stop", "release")
"""Commands that listen to signals themselves (`Ending`) before they open anything; until then a signal may end them."""
STYLE: dict[str, Any] = {"add_completion": False, "rich_markup_mode": "markdown", "pretty_exceptions_enable": False}


class NumbersCommand(TyperCommand):
    """Command whose arguments may be negative numbers, such as -0.01 or -5mm; other unknown options are refused."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        known = [
            option for parameter in self.get_params(ctx) for option in (*parameter.opts, *parameter.secondary_opts)
        ]
        for word in args:
            if re.match(r"--?[A-Za-z]", word) and word.partition("=")[0] not in known:
                from tensegrity_dynamics.errors import TensegrityError, unknown_name

                names = [name for name in known if name.startswith("--")]
                raise TensegrityError(unknown_name("option", word.partition("=")[0], names))
        ctx.ignore_unknown_options = True  # negative numbers
        return super().parse_args(ctx, args)


class LazyGroup(TyperGroup):
    """Command group that imports the module of a command only when it is used."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, name: str) -> Any:
        if name not in COMMANDS:
            from tensegrity_dynamics.errors import TensegrityError, unknown_name

            raise TensegrityError(unknown_name("command", name, COMMANDS))
        module, function = COMMANDS[name]
        settings: dict[str, Any] = {"help_option_names": ["-h", "--help"]}
        try:
            action = getattr(import_module(f"{__package__}.commands.{module}"), function)
        except ModuleNotFoundError as error:
            action = _unavailable(error)
            settings = {"ignore_unknown_options": True, "allow_extra_args": True}
        if signal.getsignal(signal.SIGINT) is end_at_once and name not in ENDED_AT_ONCE + LISTENING:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if isinstance(action, typer.Typer):  # has subcommands
            group = typer.main.get_group(action)
            group.name = name
            group.context_settings.update(settings)
            return group
        sub = typer.Typer(**STYLE)
        takes_numbers = name in ("goal", "push", "payload")
        sub.command(name, cls=NumbersCommand if takes_numbers else None, context_settings=settings)(action)
        return typer.main.get_command(sub)


program = typer.Typer(
    cls=LazyGroup, no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]}, **STYLE
)


def _show_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import PackageNotFoundError, version

        try:
            print(version("tensegrity-robotics"))
        except PackageNotFoundError:
            print("unknown: run from a checkout that is not installed")
        raise typer.Exit()


@program.callback()
def describe(
    version: bool = typer.Option(False, "--version", callback=_show_version, is_eager=True, help="Print the version."),
) -> None:
    """Tensegrity robots: analyse, simulate, control. ROBOT is a shipped robot's name or the path of a .yaml file."""


def app(arguments: Sequence[str] | None = None) -> None:
    """Run the command with the given arguments, or those of the process; errors give plain text and exit status 1."""
    from tensegrity_dynamics.errors import TensegrityError

    try:
        program(None if arguments is None else list(arguments), prog_name="tensegrity")
    except TensegrityError as error:
        print(error, file=sys.stderr)
        sys.exit(1)
    except ModuleNotFoundError as error:
        print(what_is_missing(error), file=sys.stderr)
        sys.exit(1)
    except OSError as error:
        if error.errno not in DISK_REFUSES:
            raise
        print(f"cannot write {error.filename or 'a file'}: {error.strerror}. Free some space there.", file=sys.stderr)
        sys.exit(1)


def _unavailable(error: ModuleNotFoundError) -> Any:
    def report() -> None:
        raise error

    report.__doc__ = f"(needs the Python module {error.name}, which is not installed)"
    return report


if __name__ == "__main__":
    app()
