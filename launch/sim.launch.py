"""A robot in simulation: simulator, estimator, controller, markers, and the browser view.

ros2 launch tensegrity sim.launch.py robot:=tensebot
"""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, Shutdown
from launch.condition import Condition
from launch.conditions import IfCondition, UnlessCondition
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution, PythonExpression
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
    DeclareLaunchArgument("controller", default_value="", description="which (docs/control.md); empty: the usual one"),
    DeclareLaunchArgument(
        "state",
        default_value="rest",
        choices=["rest", "observer", "truth"],
        description="where the state comes from; torque controllers need observer or truth",
    ),
    DeclareLaunchArgument("control_period", default_value="0.02", description="s between two commands"),
    DeclareLaunchArgument("view", default_value="true", choices=["true", "false"], description="the browser view"),
    DeclareLaunchArgument("rviz", default_value="false", choices=["true", "false"], description="start rviz2 too"),
]


def typed(name: str, value_type: type) -> ParameterValue:
    """A launch argument as a node parameter of a fixed type (a robot called 123 stays a text)."""
    return ParameterValue(LaunchConfiguration(name), value_type=value_type)


def state_is(kind: str) -> PythonExpression:
    """Whether the launch argument `state` has this value."""
    return PythonExpression(["'", LaunchConfiguration("state"), f"' == '{kind}'"])


def node(name: str, *, condition: Condition | None = None, **parameters: object) -> Node:
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
            node(
                "simulator",
                real_time_factor=typed("real_time_factor", float),
                control_period=typed("control_period", float),
                truth_as_state=ParameterValue(state_is("truth"), value_type=bool),
            ),
            node(
                "estimator", use_sim_time=True, method=typed("state", str), condition=UnlessCondition(state_is("truth"))
            ),
            node(
                "controller",
                use_sim_time=True,
                controller=typed("controller", str),
                control_period=typed("control_period", float),
            ),
            node("markers", use_sim_time=True),
            node("view", use_sim_time=True, condition=IfCondition(LaunchConfiguration("view"))),
            rviz,
        ]
    )
