"""A robot that was built: driver, estimator, controller, markers, and the browser view.

ros2 launch tensegrity hardware.launch.py robot:=tensebot port:=/dev/ttyUSB0 board_port:=/dev/ttyUSB1
ros2 launch tensegrity hardware.launch.py robot:=tensebot port:=emulated
"""

from tensegrity_tools.ros.launch_nodes import launch_description


def generate_launch_description():
    return launch_description("hardware")
