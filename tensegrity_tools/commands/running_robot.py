"""`tensegrity goal`, `status`, `hold`, `stop`: talk to a robot that is running."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Annotated, Any

import numpy as np
import typer

from tensegrity_dynamics.ending import Ending, leave
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.robots.quantities import read_vector

from ..dependency_errors import what_is_missing
from ..output import console, print_json, table
from .arguments import JsonOption


def need_ros() -> None:
    """Raise TensegrityError with what to install where ROS or the interfaces are missing."""
    try:
        import rclpy  # noqa: F401
        from tensegrity.msg import ActuatorCommand  # noqa: F401
    except ModuleNotFoundError as error:
        raise TensegrityError(what_is_missing(error)) from None
    except ImportError as error:
        raise TensegrityError(f"ROS 2 is there but does not load: {error}.") from None


NamespaceOption = Annotated[str, typer.Option(help="of the robot, where several share a ROS domain")]


@contextlib.contextmanager
def watching(namespace: str) -> Iterator[Any]:
    """A `Watcher` for the length of the context; SIGINT and SIGTERM end the process."""
    need_ros()
    from ..runtime.robot_client import Watcher

    with Ending() as ending:
        watcher = Watcher(check=ending.check, namespace=namespace)
        try:
            yield watcher
        finally:
            watcher.close()
    leave(ending, 128 + ending.asked if ending.asked else 0)


def goal(
    x: Annotated[float, typer.Argument(help="m")],
    y: Annotated[float, typer.Argument(help="m")],
    z: Annotated[float, typer.Argument(help="m")],
    quaternion: Annotated[str | None, typer.Option(help="w,x,y,z; the present orientation without it")] = None,
    duration: Annotated[float, typer.Option(help="s; 0 for the shortest that the limits allow")] = 0.0,
    namespace: NamespaceOption = "",
) -> None:
    """Send a goal pose to the running robot."""
    turned = read_vector(quaternion, "--quaternion", 4)
    with watching(namespace) as watcher:
        answer = watcher.send_goal((x, y, z), turned, duration)
    if not answer.accepted:
        raise TensegrityError(answer.reason)
    arrival = answer.predicted_arrival.sec + 1e-9 * answer.predicted_arrival.nanosec
    console.print(f"accepted; arrival at {arrival:.2f} s. {answer.reason}".strip())


def status(namespace: NamespaceOption = "", as_json: JsonOption = False) -> None:
    """What the running robot does."""
    with watching(namespace) as watcher:
        watcher.wait_until(lambda: watcher.state is not None and len(watcher.diagnostics) > 2, 4.0)
        pose, pulls = watcher.pose, watcher.tensions
        figures = {
            "time_s": watcher.time,
            "position_m": pose[0],
            "quaternion_wxyz": pose[1],
            "tension_N": [pulls.min(), pulls.max()] if pulls.size else [],
            "nodes": {name: s.message for name, s in watcher.diagnostics.items()},
        }
    if as_json:
        print_json(figures)
        return
    rows = [
        ("time", f"{figures['time_s']:.2f} s"),
        ("position", " ".join(f"{1e3 * x:.2f}" for x in pose[0]) + " mm"),
        ("quaternion w x y z", " ".join(f"{x:.5f}" for x in pose[1])),
        ("tension", f"{np.min(pulls):.4g} to {np.max(pulls):.4g} N" if pulls.size else "-"),
        *sorted(figures["nodes"].items()),
    ]
    console.print(table("status", ("", ""), rows))


def hold(namespace: NamespaceOption = "") -> None:
    """Break the motion off and hold; also takes goals again after a stop."""
    _trigger("hold", namespace)


def stop(namespace: NamespaceOption = "") -> None:
    """Stop the running robot; it holds, and refuses goals until `tensegrity hold`."""
    _trigger("stop", namespace)


def _trigger(name: str, namespace: str) -> None:
    with watching(namespace) as watcher:
        answer = watcher.call(name)
    if not answer.success:
        raise TensegrityError(answer.message)
    console.print(answer.message)
