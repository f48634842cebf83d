"""A robot in the browser without ROS: it swings its tendons until you drag the goal and send it, then it goes there.

The library alone finds shapes from lengths and lengths from poses; each picture is an equilibrium, nothing swings.

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

SWING = 0.03  # of the rest length
PERIOD = 6.0  # s
USUAL_DURATION = 3.0  # s of a motion to a goal

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("robot", nargs="?", default="tensebot")
parser.add_argument("--seconds", type=float, default=600.0)
parser.add_argument("--port", type=int, default=8080)
arguments = parser.parse_args()


class Motion:
    """Rest lengths over time: a swing at first, then the way to each goal."""

    def __init__(self) -> None:
        self.robot = load_robot(arguments.robot)
        self.shape = forward_kinematics(self.robot)
        self.driven = self.robot.actuated_members()
        self.way = None  # (k, m) rest lengths from equilibrium to equilibrium
        self.begun, self.duration, self.goal, self.mode = 0.0, 1.0, None, "swinging"

    def rest_lengths(self, now: float) -> np.ndarray:
        if self.way is None:
            lengths = np.array(self.robot.structure.rest_lengths)
            phases = now / PERIOD + np.arange(len(self.driven)) / max(len(self.driven), 1)
            lengths[self.driven] *= 1.0 + SWING * np.sin(2.0 * np.pi * phases)
            return lengths
        share = min((now - self.begun) / self.duration, 1.0)
        if share == 1.0 and self.mode == "moving":
            self.mode = "holding"
        place = share * share * (3.0 - 2.0 * share) * (len(self.way) - 1)
        low = min(int(place), len(self.way) - 2)
        return (low + 1 - place) * self.way[low] + (place - low) * self.way[low + 1]

    def go(self, position, quaternion, duration):
        """What the view calls with a goal."""
        try:
            plan = inverse_kinematics(self.robot, position, quaternion, start=self.shape)
        except UnreachableGoalError as error:
            return Answer(False, str(error), error.nearest and error.nearest.pose)
        except TensegrityError as error:
            return Answer(False, str(error))
        way = np.array([shape.rest_lengths for shape in plan.path])
        self.way = np.vstack((way, way[-1:]))
        self.begun, self.duration = time.monotonic() - start, duration or USUAL_DURATION
        self.goal, self.mode = (position, quaternion), "moving"
        return Answer(True)

    def hold(self):
        """What the view calls on hold and on stop."""
        self.way, self.mode = np.array([self.shape.rest_lengths] * 2), "holding"
        return Answer(True)


motion = Motion()
start = time.monotonic()
with View(motion.robot, arguments.port, on_goal=motion.go, on_hold=motion.hold, on_stop=motion.hold) as view:
    print(view.port_note or "open", view.url, flush=True)
    used, solved = time.process_time(), 0
    while (now := time.monotonic() - start) < arguments.seconds:
        try:
            motion.shape = forward_kinematics(motion.robot, motion.rest_lengths(now), start=motion.shape)
            solved += 1
        except NoEquilibriumError as error:
            print(error)
        shape = motion.shape
        view.show(ViewState(now, shape.nodes, shape.tensions, motion.goal, motion.mode, "the library"))
        time.sleep(max(0.0, 0.02 - (time.monotonic() - start - now)))
    share = (time.process_time() - used) / (time.monotonic() - start)
    print(f"{solved} shapes, {view.drawn} pictures, {100.0 * share:.1f} % of one processor")
