"""Error texts for missing Python modules, with the remedy in one sentence."""

from __future__ import annotations

ROS_MODULES = (
    "rclpy", "launch", "launch_ros", "rosbag2_py", "builtin_interfaces", "diagnostic_msgs", "geometry_msgs",
    "lifecycle_msgs", "rcl_interfaces", "rosgraph_msgs", "sensor_msgs", "std_msgs", "std_srvs", "tf2_msgs",
    "trajectory_msgs", "visualization_msgs", "action_msgs", "ament_index_python",
)  # fmt: skip


AGAIN = "install the project anew ('make setup', or 'pip install .')"


def what_is_missing(error: ModuleNotFoundError) -> str:
    """Name of the missing module and how to install it."""
    name = (error.name or "").split(".")[0]
    if name == "tensegrity":
        return (
            "The ROS interfaces of this project (Python package 'tensegrity') are missing, and this command talks to "
            "its ROS nodes. In the checkout run 'make setup' and use .venv/bin/tensegrity; on a machine with ROS 2 run "
            "'colcon build' and '. install/setup.bash'."
        )
    if name in ROS_MODULES:
        return (
            f"ROS 2 is missing (no Python module {name!r}), and this command talks to ROS nodes. In the checkout run "
            "'make setup' and use .venv/bin/tensegrity; on a machine with ROS 2 source it first, for example "
            "'. /opt/ros/jazzy/setup.bash'. The commands check, fk, ik, simulate and experiment work without ROS."
        )
    if name.startswith("tensegrity_"):
        return f"This installation has no module {error.name}; {AGAIN}."
    return f"The Python package {name!r} is missing; {AGAIN}."
