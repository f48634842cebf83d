"""A robot in simulation: simulator, estimator, controller, markers, and the browser view.

ros2 launch tensegrity sim.launch.py robot:=tensebot
"""

from tensegrity_tools.ros.launch_nodes import launch_description


def generate_launch_description():
    return launch_description("sim")
