"""Mechanisms of bodies, joints, loops, and cables that stretch: equations of motion, kinematics, statics."""

from __future__ import annotations

from .dynamics.equations_of_motion import Equations, equations
from .dynamics.forward_dynamics import Accelerations, forward_dynamics
from .dynamics.inverse_dynamics import inverse_dynamics
from .dynamics.reduced_equations import reduced_equations
from .frame import Frame
from .kinematics.independent_coordinates import independent_coordinates, wrench_jacobian
from .kinematics.loop_closure import assemble
from .mechanism import Body, Cable, Joint, Mechanism

__all__ = [
    "Accelerations", "Body", "Cable", "Equations", "Frame", "Joint", "Mechanism", "assemble", "equations",
    "forward_dynamics", "independent_coordinates", "inverse_dynamics", "reduced_equations", "wrench_jacobian",
]  # fmt: skip
