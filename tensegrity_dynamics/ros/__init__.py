"""ROS 2 nodes of simulation, estimation and markers, and the conversion of their messages."""
