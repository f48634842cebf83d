"""A robot that was built: driver, estimator, controller, markers, and the browser view.

ros2 launch tensegrity hardware.launch.py robot:=tensebot port:=/dev/ttyUSB0 board_port:=/dev/ttyUSB1
ros2 launch tensegrity hardware.launch.py robot:=tensebot port:=emulated
"""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, Shutdown
from launch.conditions import IfCondition
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare

ARGUMENTS = [
    DeclareLaunchArgument(
        "robot", default_value="tensebot", description="a shipped robot, or the path of a robot file"
    ),
    DeclareLaunchArgument(
        "port", default_value="", description="serial port of the servos, or `emulated` for servos inside the driver"
    ),
    DeclareLaunchArgument(
        "board_port", default_value="", description="serial port of the potentiometer board, where there is one"
    ),
    DeclareLaunchArgument(
        "calibration", default_value="", description="calibration file; empty for that of the robot file"
    ),
    DeclareLaunchArgument(
        "deactivate",
        default_value="hold",
        choices=["hold", "torque off"],
        description="what the servos do when the driver is deactivated or ends",
    ),
    DeclareLaunchArgument(
        "lockstep",
        default_value="false",
        choices=["true", "false"],
        description="true: emulated servos and controller wait for each other, as in simulation",
    ),
    DeclareLaunchArgument("view", default_value="true", choices=["true", "false"], description="the browser view"),
    DeclareLaunchArgument("rviz", default_value="false", choices=["true", "false"], description="start rviz2 too"),
]


def typed(name: str, value_type: type) -> ParameterValue:
    """A launch argument as a node parameter of a fixed type (a robot called 123 stays a text)."""
    return ParameterValue(LaunchConfiguration(name), value_type=value_type)


def node(name: str, *, condition: IfCondition | None = None, **parameters: object) -> Node:
    """One node of this package; the others end with it, because none makes sense alone."""
    return Node(
        package="tensegrity",
        executable=f"{name}_node",
        name=name,
        output="screen",
        condition=condition,
        on_exit=Shutdown(reason=f"the {name} node ended"),
        parameters=[{"robot": typed("robot", str), "lockstep": typed("lockstep", bool), **parameters}],
    )


def generate_launch_description() -> LaunchDescription:
    simulated = typed("lockstep", bool)  # then the driver publishes the clock
    rviz = Node(
        package="rviz2",
        executable="rviz2",
        arguments=["-d", PathJoinSubstitution([FindPackageShare("tensegrity"), "rviz", "tensegrity.rviz"])],
        parameters=[{"use_sim_time": simulated}],
        condition=IfCondition(LaunchConfiguration("rviz")),
    )
    wired = {name: typed(name, str) for name in ("port", "board_port", "calibration", "deactivate")}
    return LaunchDescription(
        [
            *ARGUMENTS,
            node("driver", **wired),
            node("estimator", use_sim_time=simulated),
            node("controller", use_sim_time=simulated),
            node("markers", use_sim_time=simulated),
            node("view", use_sim_time=simulated, condition=IfCondition(LaunchConfiguration("view"))),
            rviz,
        ]
    )
