"""Readable texts for numbers and motions."""

from __future__ import annotations

from tensegrity_dynamics.robots.formatting import listing, millimetres, span, turned
from tensegrity_dynamics.structures.report import motion, pose_words

__all__ = ["listing", "millimetres", "motion", "pose_words", "span", "turned"]
