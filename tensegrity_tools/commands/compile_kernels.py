"""`tensegrity compile`: compilation of all numerical functions in advance, instead of at their first use."""

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
# Robots that together use every compiled function. Robots of one kind share most functions, so each kind is a process.
# The shorter process also compiles the functions of `qp` for mechanisms, after the other process has compiled their
# dependencies; the longer one finally compiles the functions of rolling. The processes have no task in common, since
# both would compile the same functions at the same time.
PARTS = (
    ("tensebot", "three_prism", "manipulator:live", "cable_robot:live", "single_strut:live", "biglide:live"),
    (
        "manipulator:motion", "manipulator:control", "single_strut:motion", "single_strut:control",
        "biglide:motion", "biglide:control", "six_bar",
    ),
)  # fmt: skip
LIVE = "qp"
FEWER_COLLECTIONS = 200_000
"""Threshold of new objects for a garbage collection. A compiler creates millions of permanent objects, whose inspection
would take a tenth of the time."""


def compile_kernels(
    robot: Annotated[
        list[str] | None,
        typer.Argument(help="robots whose functions to compile, or ROBOT:motion, :control or :live; default: all"),
    ] = None,
    controller: Annotated[
        str | None,
        typer.Option(help="only what `tensegrity up` starts with this controller; '': the default of the robot"),
    ] = None,
) -> None:
    """Compile the numerical functions in parallel processes; they are kept on disk until the code changes."""
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
            # before the compilation, since it depends on the present sources
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
    """Compile the kernels of routed cables and of the ground of mechanisms, which no shipped robot uses."""
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
    """Execute the functions that the nodes of a robot use, and record that they are compiled."""
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
    """Record the compiled kernels, so that the next start of the nodes needs no compilation."""
    try:
        for each in kernels:
            each.note()
    except TensegrityError as error:
        print(f"{name}: {error}", flush=True)
        sys.exit(1)


def _controllers(name: str, uses: tuple[str, ...]) -> list[str]:
    """Controllers in the tasks of a robot; "" is its default controller."""
    from tensegrity_control.registry import suitable
    from tensegrity_dynamics import load_robot

    names = suitable(load_robot(name))
    led = [each for each in names if ("live" if each == LIVE else "control") in uses]
    return led + [""] * (names[0] in led)


def _simulate(robot: Any, integrator: str | None) -> None:
    from tensegrity_dynamics import Simulation

    Simulation(robot, 1e-4, integrator).advance(2)


def _tasks(name: str, uses: tuple[str, ...] = USES) -> Iterator[tuple[str, Callable[[], Any]]]:
    """(name, function) of the tasks of a robot, in the order of their dependencies."""
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
    with contextlib.suppress(TensegrityError):  # out of reach: the functions used are compiled
        inverse_kinematics(robot, position=position + [0.0, 0.0, 1e-4], quaternion=quaternion)


def _lead(controller: str, robot: Any, estimator: Any = None) -> None:
    """Run a controller from rest towards a goal and to a stop, like the nodes, to compile all functions of this
    sequence.

    Args:
        estimator: estimator of the state for the controller; None: state of the simulation.
    """
    from tensegrity_control import make_controller
    from tensegrity_control.rehearsal import rehearse

    with contextlib.suppress(TensegrityError):  # not possible with this robot
        rehearse(make_controller(controller, robot), robot, estimator, followed=True)
