"""Bags: recordings of what a robot published, in the format of rosbag2 (MCAP or sqlite3). Needs no ROS.

`message_types` finds the definitions of message types, `writer` writes a bag that survives the death of who writes it,
`reader` reads bags, whole or broken, `repair` completes broken ones. `decoding` makes numbers of messages, `contents`
says what a bag knows of its robot, `comparison` finds where two bags differ, `report` makes a page of one.
"""

RECORDING = "recording into"
"""What a recorder logs before the name of its bag when the first message has come."""
