"""`tensegrity goal`, `status`, `hold`, `stop`, `release`: commands for a running robot."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Any

import numpy as np
import typer

from tensegrity_dynamics.ending import Ending, leave
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.robots.quantities import read_quantity, read_vector

from ..dependency_errors import what_is_missing
from ..output import console, print_json, print_table, table
from ..runtime.node_graph import checked_namespace
from .arguments import JsonOption


def need_ros() -> None:
    """Raise TensegrityError, with the required installation, if ROS or the interfaces are missing."""
    try:
        import rclpy  # noqa: F401
        from tensegrity.msg import ActuatorCommand  # noqa: F401
    except ModuleNotFoundError as error:
        raise TensegrityError(what_is_missing(error)) from None
    except ImportError as error:
        raise TensegrityError(f"ROS 2 is there but does not load: {error}.") from None


CLOCK = 1e8
"""Time [s] above which a time counts seconds since 1970, as the clock of a computer does, not those of a simulation."""
LONGEST_WAIT = 900.0
"""Longest wait in wall time [s], longer than the longest motion."""
NamespaceOption = Annotated[str, typer.Option(help="namespace of the robot, if several share a ROS domain")]


@contextlib.contextmanager
def watching(namespace: str) -> Iterator[Any]:
    """Context with a `Watcher`; SIGINT and SIGTERM end the process."""
    need_ros()
    from ..runtime.robot_client import Watcher

    inside = checked_namespace(namespace)
    with Ending() as ending:
        watcher = Watcher(check=ending.check, namespace=inside)
        try:
            yield watcher
        finally:
            watcher.close()
    leave(ending, 128 + ending.asked if ending.asked else 0)


def wait_for(watcher: Any, robot: str) -> None:
    """Wait until a robot of this name runs. Raises TensegrityError if none or another one does."""
    if not watcher.wait_for_robot(lambda: watcher.state is not None and watcher.layout is not None):
        raise TensegrityError("no robot is running; start one with `tensegrity up`.")
    runs = watcher.layout.robot
    if runs != robot:
        raise TensegrityError(f"{runs} is running, not {robot}; name {runs}, or choose the other one by --namespace.")


def goal(
    x: Annotated[str, typer.Argument(help="x of the output in the world frame: m, or with a unit, such as 12mm")],
    y: Annotated[str, typer.Argument(help="y, as x")],
    z: Annotated[str, typer.Argument(help="z, as x")],
    relative: Annotated[bool, typer.Option("--relative", help="x, y, z are relative to the present position")] = False,
    quaternion: Annotated[str | None, typer.Option(help="orientation w,x,y,z; default: the present one")] = None,
    duration: Annotated[
        str, typer.Option(help="duration of the motion; plain numbers are s; 0: the shortest that the limits allow")
    ] = "0",
    wait: Annotated[
        bool, typer.Option("--wait", help="wait until it arrives, then print the distance to the goal")
    ] = False,
    namespace: NamespaceOption = "",
) -> None:
    """Send a goal pose to the running robot: `tensegrity goal 0 0 1cm --relative`.

    `tensegrity status` prints the present pose.
    """
    moved = np.array([read_quantity(text, "length", name) for name, text in zip("xyz", (x, y, z), strict=True)])
    turned = read_vector(quaternion, "--quaternion", 4)
    lasts = read_quantity(duration, "time", "--duration")
    with watching(namespace) as watcher:
        if relative or wait:
            watcher.wait_for_robot(lambda: watcher.state is not None)
            moved = moved + watcher.pose[0] if relative else moved
        answer = watcher.send_goal(moved, turned, lasts)
        if not answer.accepted:
            raise TensegrityError(answer.reason)
        arrival = answer.predicted_arrival.sec + 1e-9 * answer.predicted_arrival.nanosec
        console.print(f"accepted; it arrives at {moment(arrival)} of the robot's time. {answer.reason}".strip())
        if wait:
            if not watcher.wait_until(lambda: watcher.time >= arrival, LONGEST_WAIT):
                raise TensegrityError(
                    f"after {LONGEST_WAIT:g} s it is {moment(watcher.time)} of the robot's time: paused?"
                )
            error = 1e3 * float(np.linalg.norm(watcher.pose[0] - moved))
            console.print(f"the output is {error:.3g} mm from the goal position.")
            if (said := watcher.warning("estimator")) and watcher.state.source == "estimator":
                console.print(f"so the estimator has it, but: {said}")


def status(namespace: NamespaceOption = "", as_json: JsonOption = False) -> None:
    """Print the state of the running robot: time, pose, tensions, and the status of every node."""
    with watching(namespace) as watcher:
        watcher.wait_for_robot(lambda: watcher.state is not None)
        watcher.wait_for_diagnostics()
        pose, pulls = watcher.pose, watcher.tensions
        pulls = pulls[np.isfinite(pulls)]
        figures = {
            "time_s": watcher.time,
            "position_m": pose[0],
            "quaternion_wxyz": pose[1],
            "tension_N": [pulls.min(), pulls.max()] if pulls.size else [],  # hardware does not know every tension
            "nodes": {name: s.message for name, s in watcher.diagnostics.items()},
        }
    if as_json:
        print_json(figures)
        return
    rows = [
        ("time", moment(watcher.time)),
        ("position", " ".join(f"{round(float(x), 5) + 0.0:.5f}" for x in pose[0]) + " m"),
        ("quaternion w x y z", " ".join(f"{x:.5f}" for x in pose[1])),
        ("tension", f"{np.min(pulls):.4g} to {np.max(pulls):.4g} N" if pulls.size else "-"),
        *sorted(figures["nodes"].items()),
    ]
    print_table(table("status", ("", ""), rows))


def moment(seconds: float) -> str:
    """Time of a robot [s] as text: seconds of a simulation, or the time of day by the clock of the computer."""
    if seconds < CLOCK:
        return f"{seconds:.2f} s"
    return f"{datetime.fromtimestamp(seconds):%H:%M:%S.%f}"[:-4]


def hold(namespace: NamespaceOption = "") -> None:
    """End the motion and hold; after a stop, the robot accepts goals again."""
    _trigger("hold", namespace)


def stop(
    emergency: Annotated[
        bool, typer.Option("--emergency", help="emergency stop: all actuators hold until `tensegrity release`")
    ] = False,
    namespace: NamespaceOption = "",
) -> None:
    """Stop the running robot; it holds its position and refuses goals until `tensegrity hold`."""
    _trigger("emergency_stop" if emergency else "stop", namespace)


def release(namespace: NamespaceOption = "") -> None:
    """End an emergency stop, and clear the faults whose causes are gone; nothing moves until a goal or `hold`."""
    _trigger("driver/release", namespace, "simulator/release")


def _trigger(name: str, namespace: str, other: str = "") -> None:
    """Call a service, or `other` if the robot offers that one instead, and print its answer."""
    with watching(namespace) as watcher:
        if other:
            watcher.wait_until(lambda: watcher.offered(name) or watcher.offered(other), 5.0)
        answer = watcher.call(other if other and watcher.offered(other) else name)
    if not answer.success:
        raise TensegrityError(answer.message)
    console.print(answer.message)
