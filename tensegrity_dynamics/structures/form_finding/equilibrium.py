"""Equilibrium of a structure, with stability and error estimate."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...errors import TensegrityError
from ...numerics.short_repr import ShortRepr
from ...robots.output_frame import Pose
from ..node_frame import NodeFrame
from ..structure import Structure


@dataclass(frozen=True, eq=False, repr=False)
class StructureEquilibrium(ShortRepr):
    """Equilibrium of a structure: nodes, tensions, stability and error estimate.

    Attributes:
        structure: structure with the rest lengths of this equilibrium.
        nodes: (n, 3) m.
        lengths, tensions: (m,) m and N; negative tension is compression.
        residual: largest component of the out-of-balance force on a free node [N].
        iterations: number of steps of the method (of the last attempt).
        converged: whether the residual is below the required tolerance.
        stable: whether the energy has a strict minimum here, apart from rigid body motions without stiffness, and on a
            ground with the feet fixed.
        softest: lowest eigenvalue of the tangent stiffness [N/m]; with rigid bars, over the motions that they allow.
        softest_direction: (n, 3) motion of this eigenvalue, unit norm.
        position_error: estimate of the distance to the true equilibrium [m]: one and a half
            times the norm of the out-of-balance force divided by the lowest stiffness (the half accounts for the change
            of the stiffness); infinite for an unstable equilibrium.
        method: "newton", "relaxation" or "kinetic".
        output: frame of `pose`, or None.
        contacts: (n, 3) ground forces on the nodes [N]; None for a structure without ground.
    """

    structure: Structure
    nodes: NDArray[np.float64]
    lengths: NDArray[np.float64]
    tensions: NDArray[np.float64]
    residual: float
    iterations: int
    converged: bool
    stable: bool
    softest: float
    softest_direction: NDArray[np.float64]
    position_error: float
    method: str
    output: NodeFrame | None = None
    contacts: NDArray[np.float64] | None = None

    @property
    def rest_lengths(self) -> NDArray[np.float64]:
        """(m,) rest lengths [m]."""
        return self.structure.rest_lengths

    @cached_property
    def pose(self) -> Pose:
        """Position (3,) m and quaternion wxyz (4,) of the output frame."""
        if self.output is None:
            raise TensegrityError("this shape has no output frame; name one under 'outputs' in the robot file.")
        return self.output.pose(self.nodes)

    @property
    def slack(self) -> tuple[str, ...]:
        """Names of tendons and springs without tension; those between two fixed nodes are not included."""
        between_fixed = self.structure.fixed[self.structure.members].all(axis=1)
        loose = self.structure.unilateral & (self.tensions <= 0.0) & ~between_fixed
        return tuple(name for name, is_loose in zip(self.structure.member_names, loose, strict=True) if is_loose)

    @property
    def energy(self) -> float:
        """Elastic energy of the members [J]."""
        stretch = self.lengths - self.rest_lengths
        return float(0.5 * np.sum(self.tensions * stretch))
