"""Report page of a bag that needs no network: the robot in 3D over its time, tensions, errors, goals and faults.

The page contains a small viewer (`report_page.html`) and the numbers as base64: positions as 16-bit integers relative
to the bounding box of the motion, all others as 32-bit floats. As many time samples are kept as the budget permits.
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timezone
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.robots.load_robot import load_robot, parse_robot
from tensegrity_dynamics.robots.output_frame import pose_error
from tensegrity_dynamics.robots.robot import Robot
from tensegrity_dynamics.saved_file import save_file
from tensegrity_dynamics.visualization.geometry import patch
from tensegrity_dynamics.visualization.picture import Picture, Snapshot, make_picture
from tensegrity_dynamics.visualization.style import (
    CONTACT_COLOUR,
    GOAL_COLOUR,
    LOOKS,
    PAYLOAD_COLOUR,
    PLATE_COLOUR,
    SLACK_COLOUR,
    SLACK_FRACTION,
    TENSION_COLOURS,
    round_up,
)

from ..page_capture import SCRIPT
from .contents import Contents, read_contents
from .decoding import stamp_of
from .reader import Bag
from .report_loads import PAYLOAD, PUSH, ReportLoads
from .timeline import along_robot_time

LARGEST_PAGE = 5_000_000
"""Largest size of a page [bytes]."""
BUDGET = 2_800_000
"""Largest size of its numbers before base64 encoding, which adds one third [bytes]."""
MOST_FRAMES, MOST_EVENTS = 1500, 400
LEVELS = ("ok", "warning", "error", "stale")
STARTING = ("starting",)
"""Diagnostic messages of a node before its first data."""
REQUESTS = ("goal pose", "trajectory", "hold", "stop", "cancel", "trajectory of actuators")


@dataclass
class _Run:
    """Data of a bag over the robot's time [s]."""

    loads: ReportLoads
    states: list[tuple[float, Any]] = field(default_factory=list)
    tendons: list[tuple[float, Any]] = field(default_factory=list)
    references: list[tuple[float, Any]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    end: float = 0.0


def write_report(path: Path | str, target: Path | str) -> int:
    """Write the page of a bag; returns its size in bytes.

    Raises:
        TensegrityError: the bag contains no robot or no state that can be shown, or the page cannot be written.
    """
    with Bag(path) as bag:
        contents = read_contents(bag)
        robot = _robot(bag, contents)
        run = _read(bag, contents, robot)
        if not run.states:
            raise TensegrityError(f"{bag.path} holds no state of a robot (structure_state, simulator/truth).")
        data = _page_data(robot, run)
        data["title"] = robot.name
        data["facts"] = _facts(bag, contents, robot, run)
    page = resources.files(__package__).joinpath("report_page.html").read_text(encoding="utf-8")
    parts = {
        "title": html.escape(f"{robot.name}: {Path(path).name}"),
        "capture": SCRIPT,
        # "<!--" and "<script" inside a script element would change where it ends
        "data": json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c"),
    }
    # in one pass: a bag may be named like one of these places
    raw = re.sub(r"\{\{(title|capture|data)\}\}", lambda match: parts[match[1]], page).encode()
    if len(raw) > LARGEST_PAGE:
        raise TensegrityError(f"the page would have {1e-6 * len(raw):.1f} MB; this robot has too many parts for it.")
    save_file(Path(target), raw)
    return len(raw)


def _robot(bag: Bag, contents: Contents) -> Robot:
    if contents.robot_text:
        return parse_robot(contents.robot_text, f"{bag.path}: robot_file", contents.robot_path)
    for parameters in contents.parameters.values():
        if parameters.get("robot"):
            return load_robot(parameters["robot"])
    raise TensegrityError(f"{bag.path} does not name its robot: it has neither robot_file nor the nodes' parameters.")


def _read(bag: Bag, contents: Contents, robot: Robot) -> _Run:
    patience = (contents.of_node("simulator") or {}).get("wrench_timeout", 0.5)
    run = _Run(ReportLoads(robot, float(patience)))
    truth, estimate = contents.topic("simulator/truth"), contents.topic("structure_state")
    states = truth if truth in bag.topics and bag.topics[truth].count else estimate
    names = {
        states: run.states, contents.topic("tendon_states"): run.tendons, contents.topic("reference"): run.references,
    }  # fmt: skip
    goals = contents.topic("goal")
    loads = {contents.topic("external_wrench"): run.loads.push, contents.topic("carried_payloads"): run.loads.carry}
    topics_read = [each for each in (*names, *loads, goals, "/diagnostics") if each in bag.topics]
    decoders = {each: bag.decoder(each) for each in topics_read}
    said: dict[str, tuple[int, str]] = {}
    for now, message in along_robot_time(bag, contents, topics_read):
        run.end = max(run.end, now)
        decoded = decoders[message.topic](message.data)
        if message.topic in names:
            kept = names[message.topic]
            if kept and stamp_of(decoded) == stamp_of(kept[-1][1]):
                kept.pop()  # same state again: the last message counts
            kept.append((now, decoded))
        elif message.topic in loads:
            run.events += loads[message.topic](now, decoded)
        elif message.topic == goals:
            run.events.append(_goal_event(now, decoded))
        else:
            run.events += _fault_events(now, decoded, said)
    return run


def _goal_event(now: float, goal: Any) -> dict[str, Any]:
    what = REQUESTS[goal.request] if goal.request < len(REQUESTS) else f"request {goal.request}"
    where = ""
    for p in (each.position for each in goal.waypoint[-1:]):
        where = " (" + ", ".join(f"{round(1e3 * each, 1) + 0.0:.1f}" for each in (p.x, p.y, p.z)) + ") mm"
    text = (
        f"{what}{where}: " + ("accepted" if goal.accepted else "refused") + (f". {goal.reason}" if goal.reason else "")
    )
    return {"at": now, "who": "goal", "level": "goal" if goal.accepted else "refused", "text": text}


def _fault_events(now: float, array: Any, said: dict[str, tuple[int, str]]) -> Iterator[dict[str, Any]]:
    """Changes in the diagnostics: new warnings and errors, and the end of one."""
    for status in array.status:
        level, before = int(status.level), said.get(status.name)
        said[status.name] = level, status.message
        if (level, status.message) == before or (level == 0 and (before is None or before[0] == 0)):
            continue
        if before is None and status.message in STARTING:
            said.pop(status.name)
            continue
        yield {"at": now, "who": status.name, "level": LEVELS[min(level, 3)], "text": status.message}


def _facts(bag: Bag, contents: Contents, robot: Robot, run: _Run) -> list[list[str]]:
    began = datetime.fromtimestamp(1e-9 * bag.start, timezone.utc)
    controller = (contents.of_node("controller") or {}).get("controller", "")
    facts = [
        ["robot", f"{robot.name} ({robot.kind})"],
        ["controller", controller or "not in the bag"],
        ["recorded", f"{began:%Y-%m-%d %H:%M} UTC, {run.end:.2f} s of the robot's time"],
        ["bag", f"{bag.path.name}: {bag.count} messages, {bag.storage}"],
    ]
    return facts if bag.whole else [*facts, ["broken", bag.problem]]


# -- numbers of the page ------------------------------------------------------------------------------------------


def _page_data(robot: Robot, run: _Run) -> dict[str, Any]:
    from tensegrity_dynamics.ros.state_decoding import StateDecoder  # reads messages, needs no node

    picture, decoder = make_picture(robot), StateDecoder(robot)
    rows = len(picture.tension_names)
    parts = _Parts(picture)
    loads = run.loads
    per_frame = 6 * parts.count + 4 * (rows + 16 + PAYLOAD * len(loads.carriers) + PUSH * len(loads.pushed))
    count = max(2, min(MOST_FRAMES, BUDGET // per_frame, len(run.states)))
    times, points, tensions, errors, outputs, goals, loaded = [], [], [], [], [], [], []
    refused = ""
    latest, follow = _Latest(run.tendons), _Latest(run.references)
    # messages that belong to a state have its stamp, and precede or follow it
    by_stamp = {stamp_of(each): each for _, each in run.references}
    pulls = {stamp_of(each): each for _, each in run.tendons}
    # references are published at a low rate for display: among too many states, those with a reference are shown
    states = [each for each in run.states if stamp_of(each[1]) in by_stamp]
    states = states if len(states) > 1 else run.states
    for k in np.unique(np.linspace(0, len(states) - 1, min(count, len(states))).round().astype(int)):
        now, state = states[k]
        try:
            configuration = decoder.configuration(state)
            pulled_now = decoder.tensions(pulls.get(stamp_of(state), latest.at(now)), configuration)
        except TensegrityError as error:
            refused = refused or str(error)
            continue
        if picture.problem(configuration) is not None:
            continue
        snapshot = picture.at(configuration)
        reference = follow.at(now)
        times.append(now)
        points.append(parts.of(snapshot))
        tensions.append(pulled_now)
        errors.append(_errors(state, by_stamp.get(stamp_of(state))))
        outputs.append([np.nan] * 3 if snapshot.output is None else 1e3 * np.asarray(snapshot.output[0]))
        goals.append(_goal_points(picture, reference))
        loaded.append(loads.at(now, picture, snapshot))
    if not times:
        why = f" ({refused})" if refused else ""
        raise TensegrityError(f"no state of the bag can be drawn; are they of the robot that the bag names?{why}")
    pulled = np.array(tensions, dtype=np.float64).reshape(len(times), rows)
    finite = pulled[np.isfinite(pulled)]
    full = max(picture.smallest_full_scale, round_up(1.05 * float(finite.max())) if finite.size else 0.0)
    shape, low, step = _quantised(np.array(points))
    return {
        "times": _floats(times), "points": _encoded(shape.astype("<u2")), "count": parts.count,
        "low": low.tolist(), "step": step.tolist(), "primitives": parts.primitives, "ground": _ground(picture),
        "tensions": _floats(pulled), "tension_names": list(picture.tension_names),
        "unilateral": np.asarray(picture.unilateral).astype(int).tolist(), "full": full,
        "slack": SLACK_FRACTION * full, "colours": TENSION_COLOURS.astype(int).tolist(),
        "slack_colour": list(SLACK_COLOUR), "goal_colour": list(GOAL_COLOUR), "goals": _floats(goals),
        "goal_points": len(goals[0]) // 3, "loads": _floats(loaded), "carriers": loads.carriers, "pushed": loads.pushed,
        "payload_colour": list(PAYLOAD_COLOUR), "push_colour": list(CONTACT_COLOUR),
        "plots": _plots(picture, pulled, np.array(errors), np.array(outputs, dtype=np.float64)),
        "events": run.events[:MOST_EVENTS], "events_left_out": max(0, len(run.events) - MOST_EVENTS), "end": run.end,
    }  # fmt: skip


class _Latest:
    """Last message up to a time; the requested times must not decrease."""

    def __init__(self, messages: list[tuple[float, Any]]) -> None:
        self._messages, self._at = messages, -1

    def at(self, now: float) -> Any:
        while self._at + 1 < len(self._messages) and self._messages[self._at + 1][0] <= now:
            self._at += 1
        return self._messages[self._at][1] if self._at >= 0 else None


class _Parts:
    """Drawn parts, as primitives that refer to one list of points per time sample.

    A primitive is {kind, at (index of its first point), ...}: "rod" (two ends, radius), "box" (eight corners), "ball"
    (radius), "line" (two ends; row of the tension), "face" (three corners).
    """

    def __init__(self, picture: Picture) -> None:
        self._picture, start = picture, picture.at(picture.start)
        self.primitives: list[dict[str, Any]] = []
        self.count = 0
        for solid, size in zip(picture.solids, start.solid_sizes, strict=True):
            look = LOOKS[solid.role]
            shown = {"colour": list(look.colour), "opacity": look.opacity}
            if solid.kind == "cylinder":
                self._add("rod", 2, radius=round(0.5 * float(size[0]), 6), **shown)
            elif solid.kind in ("box", "mesh"):  # a mesh is drawn as its bounding box to keep the page small
                self._add("box", 8, **shown)
            else:
                self._add("ball", 1, radius=round(0.5 * float(size[0]), 6), **shown)
        for lines in picture.line_sets:
            for row in lines.rows.tolist():
                self._add("line", 2, row=row, form=lines.form, radius=round(lines.radius, 6))
        if picture.balls is not None:
            for radius, colour in zip(picture.balls.radii.tolist(), picture.balls.colours.tolist(), strict=True):
                self._add("ball", 1, radius=round(radius, 6), colour=colour, opacity=1.0)
        for _ in start.plates:
            self._add("face", 3, colour=list(PLATE_COLOUR), opacity=0.35)

    def _add(self, kind: str, points: int, **looks: Any) -> None:
        self.primitives.append({"kind": kind, "at": self.count, **looks})
        self.count += points

    def of(self, snapshot: Snapshot) -> NDArray[np.float64]:
        """(count, 3) points of a snapshot [m]."""
        from tensegrity_dynamics.numerics.rotations import matrix_from_quaternion

        found = []
        for solid, position, quaternion, size in zip(
            self._picture.solids,
            snapshot.solid_positions,
            snapshot.solid_quaternions,
            snapshot.solid_sizes,
            strict=True,
        ):
            half = 0.5 * np.asarray(size)
            axes = matrix_from_quaternion(quaternion)
            if solid.kind == "cylinder":
                found += [position - half[2] * axes[:, 2], position + half[2] * axes[:, 2]]
            elif solid.kind in ("box", "mesh"):
                corners = [(x, y, z) for z in (-1, 1) for x, y in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
                found += [position + axes @ (half * np.array(corner)) for corner in corners]
            else:
                found.append(position)
        parts = [np.array(found).reshape(-1, 3), *(lines.reshape(-1, 3) for lines in snapshot.lines)]
        parts += [snapshot.balls.reshape(-1, 3), snapshot.plates.reshape(-1, 3)]
        return np.concatenate(parts)


def _errors(state: Any, reference: Any) -> tuple[float, float]:
    """Distance [mm] and angle [deg] between the output and its reference."""
    from tensegrity_dynamics.ros.geometry_messages import state_pose, stated_pose

    pose = state_pose(state)
    topics_read = None if reference is None else stated_pose(reference.pose)
    if pose is None or topics_read is None:
        return float("nan"), float("nan")
    error = pose_error(topics_read, pose)
    return 1e3 * float(np.linalg.norm(error[:3])), float(np.degrees(np.linalg.norm(error[3:])))


def _goal_points(picture: Picture, reference: Any) -> list[float]:
    """Corners and axes of the goal, flattened; NaN without a goal."""
    from tensegrity_dynamics.numerics.rotations import matrix_from_quaternion
    from tensegrity_dynamics.ros.geometry_messages import stated_pose

    corners = picture.goal_corners
    patched = len(corners) >= 3
    goal = None if reference is None else stated_pose(reference.goal)
    count = 4 + (len(corners) if patched else 0)
    if goal is None:
        return [float("nan")] * (3 * count)
    rotation = matrix_from_quaternion(goal[1])
    points = [goal[0], *(goal[0] + picture.sizes.axes * rotation.T)]
    if patched:
        patch(goal[0] + corners @ rotation.T)  # raises if the corners span no area
        points += list(goal[0] + corners @ rotation.T)
    return [float(value) for value in np.concatenate(points)]


def _plots(
    picture: Picture, tensions: NDArray[np.float64], errors: NDArray[np.float64], outputs: NDArray[np.float64]
) -> list[dict[str, Any]]:
    plots = []
    if len(picture.plotted) and np.isfinite(tensions[:, picture.plotted]).any():
        names = [picture.tension_names[row] for row in picture.plotted.tolist()]
        plots.append({"title": "tension [N]", "names": names, "values": _floats(tensions[:, picture.plotted])})
    if np.isfinite(outputs).any():
        plots.append({"title": "output, from its start [mm]", "names": ["x", "y", "z"],
                      "values": _floats(outputs - outputs[np.isfinite(outputs[:, 0])][:1])})  # fmt: skip
    if np.isfinite(errors[:, 0]).any():
        plots.append({"title": "position error [mm]", "names": ["error"], "values": _floats(errors[:, :1])})
        if picture.has_orientation:
            plots.append({"title": "orientation error [deg]", "names": ["error"], "values": _floats(errors[:, 1:])})
    return plots


def _ground(picture: Picture) -> list[list[float]]:
    return [] if picture.ground is None else np.round(picture.ground, 5).tolist()


def _quantised(
    points: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Points in steps of 1/65535 of their bounding box, with the corner of the box and the step, each (3,) [m]."""
    low, high = points.min(axis=(0, 1)), points.max(axis=(0, 1))
    step = np.maximum(high - low, 1e-9) / 65535.0
    return np.rint((points - low) / step), low, step


def _floats(values: Any) -> str:
    return _encoded(np.asarray(values, dtype="<f4"))


def _encoded(array: NDArray[Any]) -> str:
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
