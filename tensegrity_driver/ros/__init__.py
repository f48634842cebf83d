"""The ROS 2 node of the driver."""
