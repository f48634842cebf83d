"""`tensegrity compile`: compile the hot functions once, with progress, instead of at the first use of each."""

from __future__ import annotations

import contextlib
import gc
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Annotated, Any

import typer

from tensegrity_dynamics.ending import end_with_parent
from tensegrity_dynamics.errors import TensegrityError

from ..output import console
from ..runtime.compiled_kernels import CompiledKernels

USES = ("motion", "control", "live")
# Robots that together use every compiled function. Those of one kind share most of it, so that each kind is a process;
# the shorter one takes what `qp` adds for mechanisms, when the other one has compiled what that builds on, and that one
# in the end what rolling adds. Nothing is in both, since both would compile what they need at the same time.
PARTS = (
    ("tensebot", "three_prism", "manipulator:live", "cable_robot:live", "single_strut:live", "biglide:live"),
    (
        "manipulator:motion", "manipulator:control", "single_strut:motion", "single_strut:control",
        "biglide:motion", "biglide:control", "six_bar",
    ),
)  # fmt: skip
LIVE = "qp"
FEWER_COLLECTIONS = 200_000
"""Objects between two looks for garbage: a compiler makes millions that stay, and to look at them takes a tenth."""


def compile_kernels(
    robot: Annotated[
        list[str] | None,
        typer.Argument(help="robots whose functions to compile, or ROBOT:motion, :control or :live; default: all"),
    ] = None,
    controller: Annotated[
        str | None,
        typer.Option(help="only what `tensegrity up` starts with this controller; '': the robot's usual one"),
    ] = None,
) -> None:
    """Compile the hot functions, in processes side by side; they stay on disk until the code changes."""
    began = time.monotonic()
    end_with_parent()
    gc.set_threshold(FEWER_COLLECTIONS)
    if controller is not None:
        if not robot:
            raise TensegrityError("--controller is of a robot: name the robot, too.")
        for name in robot:
            _compile_for_nodes(name, controller)
        return
    if robot:
        for word in robot:
            name, _, use = word.rpartition(":")
            name, uses = (name, (use,)) if name and use in USES else (word, USES)
            # before the work: it belongs to the sources as they are now
            kernels = [CompiledKernels(name, each) for each in _controllers(name, uses)]
            _work(name, _tasks(name, uses))
            _note(name, kernels)
        return
    words = [sys.executable, "-m", "tensegrity_tools.cli", "compile"]
    running = [subprocess.Popen([*words, *part], stdout=subprocess.PIPE, text=True) for part in PARTS]
    _work("mechanisms", [("routed cables and ground", _compile_late_kernels)])
    failed = []
    for part, process in zip(PARTS, running, strict=True):
        assert process.stdout is not None
        for line in process.stdout:
            console.print(line.rstrip(), highlight=False)
        if process.wait():
            failed.append(", ".join(part))
    if failed:
        console.print(f"not everything could be compiled (for {'; '.join(failed)}); the rest follows at first use.")
        sys.exit(1)
    console.print(f"compiled in {time.monotonic() - began:.0f} s")


def _compile_late_kernels() -> None:
    """Compile the kernels of routed cables and of the ground under mechanisms, which no shipped robot has."""
    from tensegrity_dynamics.mechanisms.routing import late_call as routing
    from tensegrity_dynamics.mechanisms.touch import late_call as ground

    for address in (
        routing.kernel_address, routing.rigid_kernel_address, routing.held_kernel_address, ground.kernel_address
    ):  # fmt: skip
        address()


def _work(name: str, tasks: Iterable[tuple[str, Callable[[], Any]]]) -> None:
    for title, work in tasks:
        started = time.monotonic()
        work()
        print(f"{name}: {title}: {time.monotonic() - started:.0f} s", flush=True)


def _compile_for_nodes(name: str, controller: str) -> None:
    """Do what the nodes of a robot do, and write down that it is compiled."""
    from tensegrity_control.registry import controller_class, suitable
    from tensegrity_dynamics import load_robot
    from tensegrity_dynamics.estimation import make_estimator

    kernels = [CompiledKernels(name, controller)]
    robot = load_robot(name)
    chosen = controller or suitable(robot)[0]
    moving = controller_class(chosen).needs_velocities
    tasks = {
        "equilibrium": lambda: make_estimator(robot).solve({}),
        "simulation": lambda: _simulate(robot, None),
        f"controller {chosen}": lambda: _lead(chosen, robot, make_estimator(robot, observer=moving)),
    }
    _work(name, tasks.items())
    _note(name, kernels)


def _note(name: str, kernels: Iterable[CompiledKernels]) -> None:
    """Write down what is compiled, so that nothing runs before the next start of the nodes."""
    try:
        for each in kernels:
            each.note()
    except TensegrityError as error:
        print(f"{name}: {error}", flush=True)
        sys.exit(1)


def _controllers(name: str, uses: tuple[str, ...]) -> list[str]:
    """Those that the tasks of a robot lead, with "" for its usual one."""
    from tensegrity_control.registry import suitable
    from tensegrity_dynamics import load_robot

    names = suitable(load_robot(name))
    led = [each for each in names if ("live" if each == LIVE else "control") in uses]
    return led + [""] * (names[0] in led)


def _simulate(robot: Any, integrator: str | None) -> None:
    from tensegrity_dynamics import Simulation

    Simulation(robot, 1e-4, integrator).advance(2)


def _tasks(name: str, uses: tuple[str, ...] = USES) -> Iterator[tuple[str, Callable[[], Any]]]:
    """What a robot is used for, in the order in which one builds on the other."""
    from tensegrity_control.registry import suitable
    from tensegrity_dynamics import load_robot
    from tensegrity_dynamics.estimation import make_estimator
    from tensegrity_dynamics.robots.robot_types import type_of

    robot = load_robot(name)
    if "motion" in uses:
        yield "equilibrium", lambda: make_estimator(robot).solve({})
        for integrator in type_of(robot).integrators:
            yield f"simulation ({integrator})", partial(_simulate, robot, integrator)
    if "control" in uses:
        yield "inverse kinematics", partial(_plan, robot)
        for controller in suitable(robot):
            if controller != LIVE:
                yield f"controller {controller}", partial(_lead, controller, robot)
    if "live" in uses and LIVE in suitable(robot):
        yield f"controller {LIVE}", lambda: _lead(LIVE, robot, make_estimator(robot, observer=True))


def _plan(robot: Any) -> None:
    from tensegrity_control import inverse_kinematics
    from tensegrity_dynamics.estimation import make_estimator

    position, quaternion = robot.output_pose(make_estimator(robot).solve({}).configuration)
    with contextlib.suppress(TensegrityError):  # out of reach: what was tried is compiled
        inverse_kinematics(robot, position=position + [0.0, 0.0, 1e-4], quaternion=quaternion)


def _lead(controller: str, robot: Any, estimator: Any = None) -> None:
    """From rest towards a goal and to a stop, as nodes do: what they would compile in between would stop the control.

    Args:
        estimator: that tells the controller the state; None: the simulation does.
    """
    from tensegrity_control import make_controller
    from tensegrity_control.rehearsal import rehearse

    with contextlib.suppress(TensegrityError):  # not for this robot
        rehearse(make_controller(controller, robot), robot, estimator, followed=True)
