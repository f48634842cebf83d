"""Numbers and motions in words, for people."""

from __future__ import annotations

from tensegrity_dynamics.robots.formatting import listing, millimetres, span, turned
from tensegrity_dynamics.structures.report import motion, pose_words

__all__ = ["LENGTH_UNITS", "listing", "millimetres", "motion", "pose_words", "span", "turned"]

LENGTH_UNITS = {"mm": 1e-3, "cm": 1e-2, "m": 1.0, "in": 0.0254}
