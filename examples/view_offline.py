"""A robot that breathes, in the browser, without ROS: tendon lengths swing, the library finds the shape, the view shows it.

python examples/view_offline.py [ROBOT] [--seconds 60] [--port 8080]
"""

import argparse
import time

import numpy as np

from tensegrity_dynamics.errors import NoEquilibriumError
from tensegrity_dynamics.robot_file import load_robot
from tensegrity_dynamics.statics.forward_kinematics import forward_kinematics
from tensegrity_tools.view import View, ViewState

SWING = 0.03  # of the rest length
PERIOD = 6.0  # s

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("robot", nargs="?", default="tensebot")
parser.add_argument("--seconds", type=float, default=60.0)
parser.add_argument("--port", type=int, default=8080)
arguments = parser.parse_args()

robot = load_robot(arguments.robot)
rest = {each.drives: robot.structure.rest_lengths[robot.structure.member(each.drives)] for each in robot.actuators}
shape = forward_kinematics(robot)
paused: list[bool] = []

with View(
    robot,
    arguments.port,
    on_hold=lambda: paused.append(True),
    on_stop=lambda: paused.append(True),
    on_goal=lambda *_: "this example moves by itself; `tensegrity up sim` has a controller",
) as view:
    print(view.port_note or "open", view.url, flush=True)
    begun, used, solved = time.monotonic(), time.process_time(), 0
    while (now := time.monotonic() - begun) < arguments.seconds:
        if not paused:
            lengths = {
                name: length * (1.0 + SWING * np.sin(2.0 * np.pi * (now / PERIOD + k / len(rest))))
                for k, (name, length) in enumerate(rest.items())
            }
            try:
                shape = forward_kinematics(robot, lengths, start=shape)
            except NoEquilibriumError as error:
                print(error)
            solved += 1
        view.show(ViewState(now, shape.nodes, shape.tensions, mode="stopped" if paused else "moving"))
        time.sleep(max(0.0, 0.02 - (time.monotonic() - begun - now)))
    share = (time.process_time() - used) / (time.monotonic() - begun)
    print(f"{solved} shapes, {view.drawn} pictures for {view.clients} browsers, {100.0 * share:.1f} % of one processor")
