"""ROS 2 nodes for simulation, estimation and markers, and conversion of their messages."""
