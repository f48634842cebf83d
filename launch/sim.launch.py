"""A robot in simulation: simulator, estimator, controller, markers, and the browser view.

ros2 launch tensegrity sim.launch.py robot:=tensebot
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
        "lockstep",
        default_value="false",
        choices=["true", "false"],
        description="true: simulator and controller wait for each other, so that every run gives the same numbers",
    ),
    DeclareLaunchArgument(
        "real_time_factor", default_value="1.0", description="simulated seconds per second, where lockstep is false"
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
    rviz = Node(
        package="rviz2",
        executable="rviz2",
        arguments=["-d", PathJoinSubstitution([FindPackageShare("tensegrity"), "rviz", "tensegrity.rviz"])],
        parameters=[{"use_sim_time": True}],
        condition=IfCondition(LaunchConfiguration("rviz")),
    )
    return LaunchDescription(
        [
            *ARGUMENTS,
            node("simulator", real_time_factor=typed("real_time_factor", float)),
            node("estimator", use_sim_time=True),
            node("controller", use_sim_time=True),
            node("markers", use_sim_time=True),
            node("view", use_sim_time=True, condition=IfCondition(LaunchConfiguration("view"))),
            rviz,
        ]
    )
