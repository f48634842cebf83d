"""Mechanisms of bodies, joints, loops and elastic cables: kinematics, dynamics, statics and simulation."""

from __future__ import annotations

from .cable_substitution import with_cables
from .dynamics.equations_of_motion import Equations, equations
from .dynamics.forward_dynamics import Accelerations, forward_dynamics
from .dynamics.inverse_dynamics import inverse_dynamics
from .dynamics.reduced_equations import reduced_equations
from .frame import Frame
from .involute_conversion import convert_cable_state
from .joints import force_subspaces
from .kinematics.independent_coordinates import independent_coordinates, wrench_jacobian
from .kinematics.loop_closure import assemble
from .kinematics.mode_enumeration import assembly_modes, working_modes
from .kinematics.parallel_kinematics import LoopKinematics
from .mechanism import Body, Cable, Joint, Mechanism

__all__ = [
    "Accelerations", "Body", "Cable", "Equations", "Frame", "Joint", "LoopKinematics", "Mechanism", "assemble",
    "assembly_modes", "convert_cable_state", "equations", "force_subspaces", "forward_dynamics",
    "independent_coordinates", "inverse_dynamics", "reduced_equations", "with_cables", "working_modes",
    "wrench_jacobian",
]  # fmt: skip
