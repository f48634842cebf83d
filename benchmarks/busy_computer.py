"""A robot in real time beside programs that take all processors: at rest, moving, and while controllers are switched.

Run: python benchmarks/busy_computer.py [--minutes 10] [--loops 8] [--robot manipulator]
     [--controllers task joint_position] [--use sim] [--drag 0] [--seed 1] [--json]

With `--drag SECONDS` poses are sent to `goal_pose` instead, at 100 Hz as the handle of the view sends them, through the
stops of the tour and home. Printed are also how many were taken, how far the output was behind, the periods without a
command, and the periods from the first pose to the first command that it changed. For an idle computer: `--loops 0
--controllers qp --drag 30`.

Nodes run as `tensegrity up` starts them. Goals are drawn from the tour of the robot file. The robot counts as lost
where a node ends, or where the output rests further than `LOST` from where it is held. Exit status 1 where it is lost.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from geometry_msgs.msg import Pose, PoseStamped
from tensegrity.msg import ActuatorCommand

from tensegrity_dynamics import load_robot
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.ros.geometry_messages import fill_pose, seconds
from tensegrity_tools.runtime.choices import Choices, resolve
from tensegrity_tools.runtime.compiled_kernels import CompiledKernels
from tensegrity_tools.runtime.processes import NodeProcesses, own_domain, temporary_folder
from tensegrity_tools.runtime.tour import errors, goal_of

LOST = 0.02
"""m from where the output is held."""
REST = 5.0
"""s at rest before each goal and after each switch."""
ARRIVAL = 30.0
"""s that a motion may take beyond what was predicted."""
LOOP = "while True: pass"
DRAGGED = 0.01
"""s between two poses of a drag."""
AHEAD = 0.5
"""s of the way from rest to the first pose of a drag."""
CHANGED = 3.0
"""Commands differ by this factor more than at rest where a pose has changed them."""


class BusyRun:
    """One robot, and what became of it; `figures` are those that are printed.

    Args:
        robot: its file. watcher: a `robot_client.Watcher`. check: raises where a node has ended. seed: of the goals.
    """

    def __init__(self, robot: Any, watcher: Any, check: Any, seed: int) -> None:
        self.robot, self.watcher, self.check = robot, watcher, check
        self.random = np.random.default_rng(seed)
        self.home = self.held = watcher.pose
        self.worst, self.lost, self.reached, self.sent, self.switched = 0.0, "", 0, 0, 0
        self.refused: dict[str, int] = {}

    def rest(self, duration: float, what: str) -> None:
        """Stay for some time [s]; the pose that is held is the last goal."""
        until = time.monotonic() + duration
        while time.monotonic() < until and not self.lost:
            self._spin()
            off = errors(self.robot, self.held, self.watcher.pose)[0]
            self.worst = max(self.worst, off)
            if off > LOST:
                when = self.watcher.time
                self.lost = f"{what}: the output is {1e3 * off:.1f} mm off where it is held at {when:.2f} s"

    def move(self) -> None:
        """To a goal of the tour, or home."""
        stops = self.robot.tour
        goal = goal_of(stops[self.random.integers(len(stops))], self.home)
        self.sent += 1
        answer = self.watcher.send_goal(*goal)
        if not answer.accepted:
            self._refuse(answer.reason)
            return
        limit = answer.predicted_arrival.sec + ARRIVAL
        while self.watcher.time < limit:
            self._spin()
            if self.watcher.time > limit - ARRIVAL and errors(self.robot, goal, self.watcher.pose)[0] < 1e-3:
                self.reached, self.held = self.reached + 1, goal
                return
        self.hold()  # given up on the way: then it is held where it stands

    def drag(self, duration: float) -> dict[str, Any]:
        """Send poses for some time [s] as a hand at the handle does, and rest; what was answered to them."""
        commands: list[tuple[float, float, np.ndarray]] = []  # stamp and period [s], values

        def keep(message: Any) -> None:
            values = np.array(message.position or message.value)
            commands.append((seconds(message.header.stamp), message.period, values))

        handle = self.watcher.node.create_publisher(PoseStamped, "goal_pose", 5)
        self.watcher.node.create_subscription(ActuatorCommand, "actuator_command", keep, 1000)
        self.watcher.wait_until(lambda: bool(commands) and handle.get_subscription_count() > 0, 30.0)
        self.rest(REST, "before a drag")
        still, first = len(commands), self.watcher.time
        corners = [np.array(each[0]) for each in (*(goal_of(stop, self.home) for stop in self.robot.tour), self.home)]
        times, corners = np.linspace(0.0, duration, len(corners) + 1), [np.array(self.home[0]), *corners]
        behind, began = 0.0, time.monotonic()
        while (now := time.monotonic() - began) < duration:
            pose = [float(np.interp(now + AHEAD, times, column)) for column in np.array(corners).T]
            handle.publish(PoseStamped(pose=fill_pose(Pose(), pose, (0.0, 0.0, 0.0, 0.0))))
            self.sent += 1
            self.watcher.spin(max(began + self.sent * DRAGGED - time.monotonic(), 0.0))
            behind = max(behind, errors(self.robot, (np.array(pose), self.home[1]), self.watcher.pose)[0])
        self.rest(REST, "after a drag")
        period = commands[-1][1]
        steps = [float(np.max(np.abs(b[2] - a[2]))) for a, b in pairwise(commands)]
        changed = next((at for at, step in enumerate(steps) if at >= still and step > CHANGED * max(steps[:still])), -1)
        return {
            "poses_sent": self.sent,
            "furthest_behind_mm": round(1e3 * behind, 1),
            "periods_without_a_command": sum(round((b[0] - a[0]) / period) - 1 for a, b in pairwise(commands)),
            "periods_to_the_first_changed_command": round((commands[changed + 1][0] - first) / period, 1),
        }

    def hold(self) -> None:
        """Hold where the robot stands."""
        self.watcher.call("hold")
        self._settle()

    def switch(self, controller: str) -> None:
        """Let another controller take over at rest."""
        from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
        from rcl_interfaces.srv import SetParameters

        client = self.watcher.node.create_client(SetParameters, "controller/set_parameters")
        value = ParameterValue(type=ParameterType.PARAMETER_STRING, string_value=controller)
        client.wait_for_service(timeout_sec=10.0)
        future = client.call_async(SetParameters.Request(parameters=[Parameter(name="controller", value=value)]))
        self.watcher.wait_until(future.done, 60.0)
        result = future.result().results[0] if future.done() else None
        if result is None or not result.successful:
            self._refuse("no answer" if result is None else result.reason)
        else:
            self.switched += 1

    def _settle(self) -> None:
        self.watcher.spin(2.0)
        self.held = self.watcher.pose

    def _spin(self) -> None:
        self.watcher.spin(0.1)
        self.check()

    def _refuse(self, reason: str) -> None:
        self.refused[reason] = self.refused.get(reason, 0) + 1

    @property
    def figures(self) -> dict[str, Any]:
        """See the module."""
        floors = self.robot.model.tension_floors(self.robot.actuators)
        least = {name: pull / floors[name] for name, (pull, _) in self.watcher.lowest.items() if floors.get(name)}
        weakest = min(least, key=lambda name: least[name], default="")
        said = {each.key: each.value for each in self.watcher.diagnostics["controller"].values}
        return {
            "lost": self.lost or "no",
            "goals_sent": self.sent,
            "goals_reached": self.reached,
            "controllers_switched": self.switched,
            "refused": self.refused,
            "poses_taken": said.get("streamed goals"),
            "pose_refused": said.get("goal pose refused"),
            "least_tension_over_floor": round(least[weakest], 3) if weakest else None,
            "least_tension_in": weakest,
            "worst_error_at_rest_mm": round(1e3 * self.worst, 3),
            "answered_states": said.get("answered states"),
            "late_states": said.get("late states"),
            "missed_deadlines": said.get("missed deadlines"),
            "real_time_factor": round(self.watcher.real_time_factor, 2),
        }


def busy(options: argparse.Namespace) -> dict[str, Any]:
    """Start everything, run, and end it."""
    from tensegrity_tools.runtime.emulator_process import start_emulator
    from tensegrity_tools.runtime.robot_client import Watcher

    robot = load_robot(options.robot)
    for controller in options.controllers:
        kernels = CompiledKernels(options.robot, controller)
        if not kernels.are_ready:
            print(kernels.why, file=sys.stderr)
            subprocess.run(kernels.command, check=True, stdout=sys.stderr)
    os.environ.update(own_domain())
    with contextlib.ExitStack() as release:
        folder = release.enter_context(temporary_folder("busy"))
        port = "emulated" if options.use == "hardware" else ""
        chosen = Choices(
            options.use, Path(folder), robot=options.robot, controller=options.controllers[0], view=False, port=port
        )
        graph = resolve(chosen)
        nodes = NodeProcesses()
        release.callback(nodes.stop)

        def check() -> None:
            for name, status in nodes.ended().items():
                raise TensegrityError(f"the {name} ended with status {status}: {nodes.last_words(name)}")

        nodes.start_all(graph)
        watcher = Watcher(check=check)
        release.callback(watcher.close)
        if graph.emulator is not None:
            start_emulator(nodes, graph.emulator, check)
            for process in filter(graph.waits, graph.processes()):
                nodes.start_process(process)
        if not watcher.wait_until(lambda: watcher.state is not None and watcher.offered("set_goal_pose"), 300.0):
            raise TensegrityError("the nodes did not begin within five minutes.")
        watcher.wait_until(lambda: watcher.warning("controller") == "" and "controller" in watcher.diagnostics, 60.0)
        run = BusyRun(robot, watcher, check, options.seed)
        run.hold()
        watcher.forget()
        for _ in range(options.loops):
            loop = subprocess.Popen([sys.executable, "-S", "-c", LOOP])
            release.callback(loop.wait)
            release.callback(loop.kill)
        began, rounds, dragged = time.monotonic(), 0, run.drag(options.drag) if options.drag else {}
        while not dragged and time.monotonic() - began < 60.0 * options.minutes and not run.lost:
            run.rest(REST, "at rest")
            run.move()
            run.rest(REST, "after a goal")
            if len(options.controllers) > 1:
                rounds += 1
                run.hold()
                run.switch(options.controllers[rounds % len(options.controllers)])
                run.rest(REST, f"after a switch to {options.controllers[rounds % len(options.controllers)]}")
        watcher.spin(1.5)  # diagnostics come once a second
        wall = time.monotonic() - began
        return {"robot": options.robot, "controllers": options.controllers, "use": options.use, "loops": options.loops,
                "wall_seconds": round(wall, 1), **dragged, **run.figures}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--loops", type=int, default=8)
    parser.add_argument("--robot", default="manipulator")
    parser.add_argument("--controllers", nargs="+", default=["task", "joint_position"])
    parser.add_argument("--use", choices=("sim", "hardware"), default="sim")
    parser.add_argument("--drag", type=float, default=0.0, help="s during which poses are streamed")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    try:
        found = busy(options)
    except TensegrityError as error:
        print(f"lost: {error}")
        return 1
    if options.json:
        print(json.dumps(found, indent=1))
    else:
        for name, value in found.items():
            print(f"{name.replace('_', ' ')}: {value}")
    return 0 if found["lost"] == "no" else 1


if __name__ == "__main__":
    sys.exit(main())
