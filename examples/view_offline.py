"""A robot in the browser without ROS: its tendons oscillate until you drag the goal and send it, then it moves there.

Forward and inverse kinematics come from the library; each picture is an equilibrium, without dynamics.

python examples/view_offline.py [ROBOT] [--seconds 600] [--port 8080]
"""

import argparse
import time

import numpy as np

from tensegrity_control.inverse_kinematics.solve_ik import inverse_kinematics
from tensegrity_dynamics.errors import NoEquilibriumError, TensegrityError, UnreachableGoalError
from tensegrity_dynamics.robots.load_robot import load_robot
from tensegrity_dynamics.structures.form_finding.forward_kinematics import forward_kinematics
from tensegrity_tools.view import Answer, View, ViewState

AMPLITUDE = 0.03  # of the rest length
PERIOD = 6.0  # s
USUAL_DURATION = 3.0  # s of a motion to a goal

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("robot", nargs="?", default="tensebot")
parser.add_argument("--seconds", type=float, default=600.0)
parser.add_argument("--port", type=int, default=8080)
arguments = parser.parse_args()


class Motion:
    """Rest lengths over time: an oscillation at first, then the path to each goal."""

    def __init__(self) -> None:
        self.robot = load_robot(arguments.robot)
        self.equilibrium = forward_kinematics(self.robot)
        self.driven = self.robot.actuated_members()
        self.path = None  # (k, m) rest lengths [m] of equilibria along the path
        self.begun, self.duration, self.goal, self.mode = 0.0, 1.0, None, "oscillating"

    def rest_lengths(self, now: float) -> np.ndarray:
        if self.path is None:
            lengths = np.array(self.robot.structure.rest_lengths)
            phases = now / PERIOD + np.arange(len(self.driven)) / max(len(self.driven), 1)
            lengths[self.driven] *= 1.0 + AMPLITUDE * np.sin(2.0 * np.pi * phases)
            return lengths
        fraction = min((now - self.begun) / self.duration, 1.0)
        if fraction == 1.0 and self.mode == "moving":
            self.mode = "holding"
        parameter = fraction * fraction * (3.0 - 2.0 * fraction) * (len(self.path) - 1)
        low = min(int(parameter), len(self.path) - 2)
        return (low + 1 - parameter) * self.path[low] + (parameter - low) * self.path[low + 1]

    def go(self, position, quaternion, duration):
        """Called by the view with a goal."""
        try:
            plan = inverse_kinematics(self.robot, position, quaternion, start=self.equilibrium)
        except UnreachableGoalError as error:
            return Answer(False, str(error), error.nearest and error.nearest.pose)
        except TensegrityError as error:
            return Answer(False, str(error))
        path = np.array([equilibrium.rest_lengths for equilibrium in plan.path])
        self.path = np.vstack((path, path[-1:]))
        self.begun, self.duration = time.monotonic() - start, duration or USUAL_DURATION
        self.goal, self.mode = (position, quaternion), "moving"
        return Answer(True)

    def hold(self):
        """Called by the view on hold and on stop."""
        self.path, self.mode = np.array([self.equilibrium.rest_lengths] * 2), "holding"
        return Answer(True)


motion = Motion()
start = time.monotonic()
with View(motion.robot, arguments.port, on_goal=motion.go, on_hold=motion.hold, on_stop=motion.hold) as view:
    print(view.port_note or "open", view.url, flush=True)
    used, solved = time.process_time(), 0
    while (now := time.monotonic() - start) < arguments.seconds:
        try:
            motion.equilibrium = forward_kinematics(motion.robot, motion.rest_lengths(now), start=motion.equilibrium)
            solved += 1
        except NoEquilibriumError as error:
            print(error)
        equilibrium = motion.equilibrium
        view.show(ViewState(now, equilibrium.nodes, equilibrium.tensions, motion.goal, motion.mode, "the library"))
        time.sleep(max(0.0, 0.02 - (time.monotonic() - start - now)))
    share = (time.process_time() - used) / (time.monotonic() - start)
    print(f"{solved} equilibria, {view.drawn} pictures, {100.0 * share:.1f} % of one processor")
