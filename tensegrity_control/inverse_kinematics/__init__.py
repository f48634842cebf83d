"""Inverse kinematics: rest lengths or pulley angles for a goal pose."""
