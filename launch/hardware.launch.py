"""A robot that was built: driver, estimator, controller, markers, and the browser view.

ros2 launch tensegrity hardware.launch.py robot:=tensebot port:=/dev/ttyUSB0 board_port:=/dev/ttyUSB1
ros2 launch tensegrity hardware.launch.py robot:=tensebot port:=emulated
"""

from tensegrity_tools.ros.launch_nodes import BAG_ARGUMENT, YES_NO, argument, common_choices, description
from tensegrity_tools.runtime.node_graph import hardware_graph

ARGUMENTS = (
    argument("port", "", "serial port of the servos, or `emulated` for servos inside the driver"),
    argument("board_port", "", "serial port of the potentiometer board, where there is one"),
    argument("calibration", "", "calibration file; empty: that of the robot file"),
    argument("deactivate", "hold", "what the servos do when the driver is deactivated or ends", ("hold", "torque off")),
    argument("lockstep", "false", "true: emulated servos and controller wait for each other, as in simulation", YES_NO),
    BAG_ARGUMENT,
)


def generate_launch_description():
    def graph(texts):
        return hardware_graph(
            texts["robot"],
            port=texts["port"],
            board=texts["board_port"],
            calibration=texts["calibration"],
            deactivate=texts["deactivate"],
            lockstep=texts["lockstep"] == "true",
            bag=texts["bag"],
            **common_choices(texts),
        )

    return description(ARGUMENTS, graph)
