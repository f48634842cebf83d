"""`tensegrity follow` in joint space: the columns of the file are actuators."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import typer

from tensegrity_dynamics.errors import TensegrityError

from ..output import console, print_json, print_table, progress, table
from .running_robot import wait_for, watching

AT_START = 1e-4
"""Tolerance for an actuator at the start of the motion [m or rad]."""


def follow_actuators(
    loaded: Any, file: Path, motion: Any, relative: bool, check_only: bool, namespace: str, as_json: bool
) -> None:
    """Send a motion of actuators to the running robot, and print the result."""
    from tensegrity_control.controllers.actuator_motion import ActuatorMotion
    from tensegrity_control.trajectories.actuator_table import table_between, table_of
    from tensegrity_dynamics import Simulation

    at_rest = Simulation(loaded).observe().positions
    try:
        sent = table_of(motion)
        if relative:
            sent = sent.moved(np.array([at_rest.get(name, 0.0) for name in sent.names]))
        # all limits are checked before any motion
        start = dict(at_rest) | dict(zip(sent.names, sent.positions[0].tolist(), strict=True))
        ActuatorMotion(
            loaded, 0.0, [start[each.name] for each in loaded.actuators], None, sent.names, sent.times, sent.positions,
            sent.velocities, sent.accelerations,
        )  # fmt: skip
    except TensegrityError as error:
        raise TensegrityError(f"{file}: {error}") from None
    figures: dict[str, Any] = {
        "actuators": list(sent.names), "waypoints": len(sent.times), "duration_s": float(sent.times[-1]),
        "slowed_down": motion.stretched,
    }  # fmt: skip
    if check_only:
        _show(figures, as_json)
        return
    with watching(namespace) as watcher:
        from ..runtime.actuator_follower import ActuatorFollower

        wait_for(watcher, loaded.name)
        follower = ActuatorFollower(watcher)
        try:
            here = follower.positions(sent.names)
            if np.any(np.abs(here - sent.positions[0]) > AT_START):
                if not as_json:
                    console.print(
                        f"going to the first waypoint, at most {np.max(np.abs(here - sent.positions[0])):.4g} away"
                    )
                rates = np.array([loaded.actuator(name).rate for name in sent.names])
                gone = follower.follow(table_between(sent.names, here, sent.positions[0], rates))
                if not gone.success:
                    raise TensegrityError(f"the first waypoint cannot be gone to: {gone.reason}")
            with progress.status("following") as status:
                done = follower.follow(sent, lambda part: status.update(f"following, {100.0 * part:.0f} %"))
        finally:
            follower.close()
    figures |= {"error": done.error, "largest_error": done.largest, "success": done.success, "reason": done.reason}
    _show(figures, as_json)


def _show(figures: dict[str, Any], as_json: bool) -> None:
    sizes, errors = [("actuators", ", ".join(figures["actuators"])), ("waypoints", str(figures["waypoints"]))], []
    if "error" in figures:
        worst = max(figures["error"].items(), key=lambda each: abs(each[1]), default=("", 0.0))
        errors = [
            ("largest error at the end", f"{worst[1]:.3g} ({worst[0]}) m or rad"),
            ("largest error during the motion", f"{figures['largest_error']:.3g} m or rad"),
        ]
    show_figures(figures, as_json, sizes, errors)


def show_figures(
    figures: dict[str, Any], as_json: bool, sizes: list[tuple[str, str]], errors: list[tuple[str, str]]
) -> None:
    """Print the result of a motion or of its check as a table or JSON; the exit status is 1 for a failure."""
    success = figures.get("success", True)
    if as_json:
        print_json(figures)
    else:
        rows = [*sizes, ("duration", f"{figures['duration_s']:.3g} s")]
        if figures["slowed_down"] > 1.0:
            rows.append(("slowed down to keep its limits", f"{figures['slowed_down']:.3g} times"))
        if success and figures.get("reason"):
            rows.append(("note", figures["reason"]))
        title = "followed" if success else f"not followed: {figures['reason']}"
        print_table(table(title if "success" in figures else "can be followed", ("", ""), [*rows, *errors]))
    if not success:
        raise typer.Exit(1)
