"""Bags: recordings of all published messages of a robot, in the format of rosbag2 (MCAP or sqlite3). Needs no ROS.

`message_types` finds the definitions of message types. `writer` writes a bag that remains readable if its process is
killed, `reader` reads complete and broken bags, `repair` completes broken ones. `decoding` converts messages to
numbers, `contents` reads the data about the robot, `comparison` compares two bags, `report` writes a report page.
"""

RECORDING = "recording into"
"""Text that a recorder logs, followed by the name of its bag, when the first message has arrived."""
