"""A recorded robot: the player at a rate with markers and the browser view, or (rate:=0) estimator and controller
again in lock-step, compared bit for bit.

ros2 launch tensegrity replay.launch.py bag:=run_1
ros2 launch tensegrity replay.launch.py bag:=run_1 rate:=0
"""

from tensegrity_tools.ros.launch_nodes import launch_description


def generate_launch_description():
    return launch_description("replay")
