"""Equations of motion of mechanisms with loops, forward and inverse dynamics, reduction."""
