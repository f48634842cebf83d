"""Robot files that `tensegrity new` writes; NAME in them becomes the name of the robot."""
