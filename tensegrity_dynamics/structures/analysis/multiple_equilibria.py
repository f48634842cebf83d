"""Search for other stable equilibria with the same rest lengths from random starts (001, section 5.5 and figure 11).

Collisions of members are not checked, neither during the search nor at the equilibria.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import NoEquilibriumError, TensegrityError
from ...numerics.rotations import rotation_vector
from ...numerics.short_repr import ShortRepr
from ...robots.output_frame import Pose
from ...robots.robot import Robot
from ..form_finding.equilibrium import StructureEquilibrium
from ..form_finding.equilibrium_solver import StructureEquilibriumSolver
from ..form_finding.stability import no_force, no_stiffness, stiffness_spectrum
from ..structure import Structure


@dataclass(frozen=True, eq=False, repr=False)
class DistinctEquilibrium(ShortRepr):
    """One stable equilibrium, with the number of random starts that led to it.

    Attributes:
        label: letter in the order of energy, and kind of shape: "nominal" (reached from the undisturbed start),
            "upright" with its rotation relative to the nominal one, "tipped over", or "folded below the base".
        shape: equilibrium. energy: elastic energy minus the work of weight and forces [J].
        count: number of random starts that ended here. starts: total number of random starts.
        lost: number of random starts without a stable end.
        nominal: whether it is the nominal shape, see label.
        upright: whether the output is above the fixed nodes and tilted by less than 45 degrees relative to the nominal
            shape. Without an output: whether the centre of the free nodes is above the fixed ones; True without fixed
            nodes.
    """

    label: str
    shape: StructureEquilibrium
    energy: float
    count: int
    starts: int
    lost: int
    nominal: bool
    upright: bool

    @property
    def pose(self) -> Pose | None:
        """Position (3,) [m] and quaternion wxyz (4,) of the output frame; None without an output."""
        return None if self.shape.output is None else self.shape.pose

    @property
    def softest(self) -> float:
        """Lowest stiffness [N/m]."""
        return self.shape.softest

    @property
    def slack(self) -> tuple[str, ...]:
        """Names of slack tendons and springs."""
        return self.shape.slack


def find_equilibria(
    robot: Robot | Structure,
    rest_lengths: Mapping[str, float] | ArrayLike | None = None,
    *,
    count: int = 200,
    noise: float | None = None,
    seed: int = 0,
    forces: Mapping[str, ArrayLike] | ArrayLike | None = None,
    start: ArrayLike | StructureEquilibrium | None = None,
    gravity: ArrayLike | None = None,
    rigid_bars: bool = False,
    tolerance: float = 1e-4,
) -> tuple[DistinctEquilibrium, ...]:
    """Stable equilibria found from random starts, lowest energy first.

    Args:
        count: number of random starts.
        noise: largest random displacement [m] of every free coordinate of the start, uniformly distributed; by default
            the largest extent of the start, so that the starts are nearly independent of it. A tenth of this shows the
            robustness of the start.
        seed: seed of the random starts; the same seed gives the same shapes.
        forces, start, gravity, rigid_bars: as in `forward_kinematics`.
        tolerance: largest distance of corresponding nodes of equal shapes, relative to the size. Without fixed nodes,
            the shapes are aligned first.

    Raises:
        NoEquilibriumError: no start led to a stable equilibrium.
        TensegrityError: an input is out of range.
    """
    structure = robot.structure if isinstance(robot, Robot) else robot
    output = robot.outputs[0] if isinstance(robot, Robot) and robot.outputs else None
    if isinstance(robot, Robot) and isinstance(rest_lengths, Mapping):
        driven = {actuator.name: actuator.drives for actuator in robot.actuators}
        rest_lengths = {driven.get(name, name): value for name, value in rest_lengths.items()}
    if count < 1:
        raise TensegrityError(f"count is {count}, must be at least 1.")
    solver = StructureEquilibriumSolver(structure, rigid_bars=rigid_bars, output=output)
    total = solver.total_forces(forces, gravity)
    middle = solver.start_nodes(start)
    if noise is None:
        noise = float(np.ptp(middle, axis=0).max())
    if not (np.isfinite(noise) and noise > 0.0):
        raise TensegrityError(f"noise is {noise} m, must be a finite length above zero.")
    generator = np.random.default_rng(seed)
    free = ~structure.fixed

    def stable_from(nodes: NDArray) -> StructureEquilibrium | None:
        try:
            shape = solver.solve(rest_lengths, forces, nodes, gravity=gravity)
        except TensegrityError:  # no equilibrium, or coincident nodes during the search
            return None
        return shape if _stable(shape) else None

    shapes: list[StructureEquilibrium] = []
    counts: list[int] = []

    def sort_in(shape: StructureEquilibrium) -> int:
        for i, former in enumerate(shapes):
            if _same(former, shape, tolerance):
                return i
        shapes.append(shape)
        counts.append(0)
        return len(shapes) - 1

    undisturbed = stable_from(middle)
    nominal = None if undisturbed is None else sort_in(undisturbed)
    lost = 0
    for _ in range(count):
        nodes = middle.copy()
        nodes[free] += generator.uniform(-noise, noise, size=(int(free.sum()), 3))
        shape = stable_from(nodes)
        if shape is None:
            lost += 1
        else:
            counts[sort_in(shape)] += 1
    if not shapes:
        raise NoEquilibriumError(
            f"none of {count} random starts, nor the undisturbed one, ended at a stable equilibrium. Is the structure "
            "prestressed? See `analyze_prestress`."
        )
    energies = [float(shape.energy - np.sum(total * (shape.nodes - middle))) for shape in shapes]
    down = -np.asarray(structure.gravity if gravity is None else gravity, dtype=np.float64)
    up = down / np.linalg.norm(down) if np.linalg.norm(down) > 0.0 else np.array([0.0, 0.0, 1.0])
    usual = middle if nominal is None else shapes[nominal].nodes
    result = []
    for rank, i in enumerate(sorted(range(len(shapes)), key=lambda i: energies[i])):
        kind, upright = _kind(shapes[i], usual, up)
        words = (["nominal"] if i == nominal else []) + ([kind] if kind else [])
        label = _letter(rank) + (f" ({', '.join(words)})" if words else "")
        result.append(DistinctEquilibrium(label, shapes[i], energies[i], counts[i], count, lost, i == nominal, upright))
    return tuple(result)


def _stable(shape: StructureEquilibrium) -> bool:
    structure, tensions = shape.structure, shape.tensions
    verge = structure.unilateral & (tensions > 0.0) & (tensions <= no_force(structure))
    if shape.stable and not verge.any():
        return True
    if not shape.stable and structure.fixed.any():
        return False
    # tendons at the transition to slack, or rigid body motions, which have no stiffness
    values, _ = stiffness_spectrum(structure, shape.nodes, shape.lengths, tensions)
    return bool(values.size == 0 or values[0] > no_stiffness(structure))


def _same(first: StructureEquilibrium, second: StructureEquilibrium, tolerance: float) -> bool:
    one, other = first.nodes, second.nodes
    size = float(np.ptp(one, axis=0).max())
    held = first.structure.supports.any(axis=0)
    if held.any() and not first.structure.fixed.any():
        one, other = one - np.where(held, 0.0, one.mean(axis=0)), other - np.where(held, 0.0, other.mean(axis=0))
        if np.count_nonzero(held) == 1:  # it can rotate about this axis
            turned = other[:, ~held] @ (1.0, 1.0j)
            turned = turned * np.exp(1j * np.angle(np.vdot(turned, one[:, ~held] @ (1.0, 1.0j))))
            other[:, ~held] = np.stack((turned.real, turned.imag), axis=1)
    elif not held.any():
        one, other = one - one.mean(axis=0), other - other.mean(axis=0)
        u, _, vt = np.linalg.svd(other.T @ one)
        u[:, 2] *= np.sign(np.linalg.det(u) * np.linalg.det(vt))  # excludes reflections
        other = other @ (u @ vt)
    return float(np.abs(one - other).max()) <= tolerance * size


def _kind(shape: StructureEquilibrium, usual: NDArray[np.float64], up: NDArray[np.float64]) -> tuple[str, bool]:
    """Text on the kind of shape, relative to the nominal nodes (n, 3) [m], and whether it is upright."""
    fixed = shape.structure.fixed
    if not fixed.any():
        return "", True
    floor = float((shape.nodes[fixed] @ up).max())
    output = shape.output
    if output is None:
        upright = float((shape.nodes[~fixed] @ up).mean()) > floor
        return ("upright" if upright else "folded below the base"), upright
    if float((shape.nodes[output.nodes] @ up).max()) < floor:
        return "folded below the base", False
    turn = output.fit(shape.nodes)[1] @ output.fit(usual)[1].T
    tilt = float(np.degrees(np.arccos(np.clip(up @ turn @ up, -1.0, 1.0))))
    if tilt >= 45.0:
        return f"tipped over by {tilt:.0f} deg", False
    vector = rotation_vector(turn)
    about = float(np.degrees(vector @ up))
    return ("upright" if abs(about) < 5.0 else f"upright, turned by {abs(about):.0f} deg"), True


def _letter(rank: int) -> str:
    """A, B, ..., Z, AA, AB, ..."""
    text = ""
    rank += 1
    while rank:
        rank, digit = divmod(rank - 1, 26)
        text = chr(ord("A") + digit) + text
    return text
