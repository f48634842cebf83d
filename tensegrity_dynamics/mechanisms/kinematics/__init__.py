"""Kinematics of mechanisms: loop closure, independent coordinates, working and assembly modes."""
