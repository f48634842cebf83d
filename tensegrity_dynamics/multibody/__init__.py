"""Mechanisms of bodies, joints, loops, and cables that stretch: equations of motion, kinematics, statics."""

from __future__ import annotations

from .assembly import assemble
from .equations import Equations, equations
from .forward_dynamics import Accelerations, forward_dynamics
from .independent import independent_coordinates, reduced_equations, wrench_jacobian
from .inverse_dynamics import inverse_dynamics
from .mechanism import Body, Cable, Frame, Joint, Mechanism

__all__ = [
    "Accelerations", "Body", "Cable", "Equations", "Frame", "Joint", "Mechanism", "assemble", "equations",
    "forward_dynamics", "independent_coordinates", "inverse_dynamics", "reduced_equations", "wrench_jacobian",
]  # fmt: skip
