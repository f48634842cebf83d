"""`tensegrity follow`: motion of the running robot along a trajectory from a YAML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from tensegrity_dynamics.errors import TensegrityError, UnreachableGoalError

from ..output import console, progress
from .arguments import JsonOption, RobotArgument
from .follow_actuators import follow_actuators, show_figures
from .running_robot import NamespaceOption, wait_for, watching


def follow(
    robot: RobotArgument,
    file: Annotated[
        Path,
        typer.Argument(
            help="YAML file of waypoints with the columns t, x, y, z (and qw, qx, qy, qz), or t, w, x, y, z of an "
            "orientation, or t and actuators; docs/control.md"
        ),
    ],
    relative: Annotated[bool, typer.Option(help="positions are relative to the pose at rest")] = False,
    check_only: Annotated[
        bool, typer.Option("--check", help="only check that every waypoint is reachable; needs no running robot")
    ] = False,
    interpolation: Annotated[
        str, typer.Option(help="interpolation between waypoints, one that the controller supports")
    ] = "smooth",
    namespace: NamespaceOption = "",
    as_json: JsonOption = False,
) -> None:
    """Move the output or actuators of the running robot along a trajectory, after a motion to its first waypoint."""
    from tensegrity_control import load_trajectory
    from tensegrity_control.controllers.goal_controller import MAX_DURATION
    from tensegrity_control.trajectories.pose_trajectory import moved_columns, pose_waypoints
    from tensegrity_dynamics import Simulation, load_robot

    loaded, motion = load_robot(robot), load_trajectory(file)
    turns_only = not moved_columns(motion.names)
    driven = {each.name for each in loaded.actuators}
    if driven.intersection(motion.names):
        others = [name for name in motion.names if name not in driven]
        if others:
            raise TensegrityError(
                f"{file}: columns: {', '.join(others)} {'is no actuator' if len(others) == 1 else 'are no actuators'} "
                f"of {loaded.name}, the others are. A file has columns of actuators or of the output, not of both; "
                f"actuators are {', '.join(each.name for each in loaded.actuators)}."
            )
        follow_actuators(loaded, file, motion, relative, check_only, namespace, as_json)
        return
    try:
        waypoints = pose_waypoints(motion.names, motion.trajectory, motion.knots)
    except TensegrityError as error:
        actuators = ", ".join(each.name for each in loaded.actuators)
        raise TensegrityError(
            f"{file}: {error} One of the actuators has columns named as they are: {actuators}."
        ) from None
    if waypoints[-1][0] > MAX_DURATION:
        raise TensegrityError(
            f"{file}: the motion takes {waypoints[-1][0]:.4g} s, and one motion at most {MAX_DURATION:g} s; cut the "
            "file into shorter ones."
        )
    origin = np.zeros(3)
    if relative or (turns_only and check_only):
        loaded.output  # noqa: B018 - raises where there is none
        origin = np.asarray(Simulation(loaded).observe().pose[0])  # simulations start at rest for all kinds of robots
    figures: dict[str, Any] = {
        "waypoints": len(motion.knots),
        "sent_waypoints": len(waypoints) - 1,
        "duration_s": waypoints[-1][0],
        "slowed_down": motion.stretched,
    }
    if check_only:
        _check(loaded, file, motion, origin)
        _show(figures, as_json)
        return
    starts = motion.trajectory.value(motion.knots[0], 1)
    if np.any(starts != 0.0) and not as_json:
        console.print(
            f"the trajectory begins with a rate of {np.linalg.norm(starts):.3g} 1/s, the robot at rest: it catches up."
        )
    with watching(namespace) as watcher:
        from ..runtime.follower import ARRIVED, Follower

        wait_for(watcher, loaded.name)
        follower = Follower(watcher, loaded.output)
        try:
            if turns_only and not relative:
                origin = np.asarray(watcher.pose[0])
            waypoints = [(when, origin + position, quaternion) for when, position, quaternion in waypoints]
            distance, angle = follower.away(waypoints[0])
            if distance > ARRIVED[0] or angle > ARRIVED[1]:
                if not as_json:
                    console.print(
                        f"going to the first waypoint, {1e3 * distance:.1f} mm and {np.degrees(angle):.1f} deg away"
                    )
                follower.approach(waypoints[0])
            with progress.status("planning") as status:
                done = follower.follow(
                    waypoints, interpolation, lambda part: status.update(f"following, {100.0 * part:.0f} %")
                )
        finally:
            follower.close()
    figures |= {
        "position_error_m": done.position_error,
        "orientation_error_rad": done.orientation_error,
        "largest_position_error_m": done.largest[0],
        "largest_orientation_error_rad": done.largest[1],
        "success": done.success,
        "reason": done.reason,
    }
    _show(figures, as_json)


def _check(loaded: Any, file: Path, motion: Any, origin: np.ndarray) -> None:
    """Solve the inverse kinematics at all waypoints of the file; TensegrityError names the first without a solution."""
    from tensegrity_control import inverse_kinematics
    from tensegrity_control.trajectories.pose_trajectory import moved_columns

    moved = moved_columns(motion.names)
    with progress.status("looking at the waypoints") as status:
        for number, when in enumerate(motion.knots):
            status.update(f"looking at waypoint {number + 1} of {len(motion.knots)}")
            value = motion.trajectory.value(when)
            position = origin + value[:moved] if moved else origin
            try:
                inverse_kinematics(loaded, position, value[moved:] if value.size > moved else None)
            except UnreachableGoalError as error:
                where = f"{file}:{motion.lines[number]}: rows.{number}"
                raise TensegrityError(f"{where}: at {when:g} s: {error}") from None


def _show(figures: dict[str, Any], as_json: bool) -> None:
    def error(prefix: str) -> str:
        position, angle = (figures[f"{prefix}{each}"] for each in ("position_error_m", "orientation_error_rad"))
        return f"{1e3 * position:.3f} mm, {np.degrees(angle):.3f} deg"

    sizes = [
        ("waypoints in the file", str(figures["waypoints"])),
        ("sent, so that the curve stays within 0.1 mm", str(figures["sent_waypoints"])),
    ]
    done = "success" in figures
    errors = [("error at the end", error("")), ("largest error against the plan", error("largest_"))] if done else []
    show_figures(figures, as_json, sizes, errors)
