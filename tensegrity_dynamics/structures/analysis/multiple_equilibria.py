"""Other stable equilibria of the same lengths, searched from random starts (001, section 5.5 and figure 11).

Members may pass through each other, during the search and at the equilibria: that is not checked.
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
    """One stable equilibrium, and how often random starts led to it.

    Attributes:
        label: a letter by energy, and what kind of shape it is: "nominal" (reached from the undisturbed start),
            "upright" and how far it is turned from the nominal one, "tipped over", or "folded below the base".
        shape: the equilibrium. energy: elastic, less the work of weight and forces [J].
        count: random starts that ended here. starts: random starts in all. lost: those without a stable end.
        nominal: see label.
        upright: the output stands above the fixed nodes and is tilted by less than 45 degrees against the nominal
            shape (without an output: the middle of the free nodes stands above the fixed ones; True where none is).
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
        """Position (3,) m and quaternion wxyz (4,) of the output frame, or None where there is none."""
        return None if self.shape.output is None else self.shape.pose

    @property
    def softest(self) -> float:
        """N/m."""
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
        count: random starts.
        noise: m, every free coordinate of the start is moved by up to this, evenly spread; by default the largest
            extent of the start, so that little is left of it. A tenth of that shows how robust the start is.
        seed: of the random starts; the same seed gives the same shapes.
        forces, start, gravity, rigid_bars: as in `forward_kinematics`.
        tolerance: shapes whose nodes agree within this part of the size are one; where nothing is fixed, after they are
            laid onto each other.

    Raises:
        NoEquilibriumError: no start, random or not, ended at a stable equilibrium.
        TensegrityError: input out of range.
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
        except TensegrityError:  # no equilibrium, or nodes that meet during the search
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
    # tendons on the verge of going slack, or motions as one rigid body, which have no stiffness
    values, _ = stiffness_spectrum(structure, shape.nodes, shape.lengths, tensions)
    return bool(values.size == 0 or values[0] > no_stiffness(structure))


def _same(first: StructureEquilibrium, second: StructureEquilibrium, tolerance: float) -> bool:
    one, other = first.nodes, second.nodes
    size = float(np.ptp(one, axis=0).max())
    held = first.structure.supports.any(axis=0)
    if held.any() and not first.structure.fixed.any():
        one, other = one - np.where(held, 0.0, one.mean(axis=0)), other - np.where(held, 0.0, other.mean(axis=0))
        if np.count_nonzero(held) == 1:  # nothing holds it from turning about that axis
            turned = other[:, ~held] @ (1.0, 1.0j)
            turned = turned * np.exp(1j * np.angle(np.vdot(turned, one[:, ~held] @ (1.0, 1.0j))))
            other[:, ~held] = np.stack((turned.real, turned.imag), axis=1)
    elif not held.any():
        one, other = one - one.mean(axis=0), other - other.mean(axis=0)
        u, _, vt = np.linalg.svd(other.T @ one)
        u[:, 2] *= np.sign(np.linalg.det(u) * np.linalg.det(vt))  # no mirror image
        other = other @ (u @ vt)
    return float(np.abs(one - other).max()) <= tolerance * size


def _kind(shape: StructureEquilibrium, usual: NDArray[np.float64], up: NDArray[np.float64]) -> tuple[str, bool]:
    """The kind of shape in words, against the usual nodes (n, 3) m, and whether it is upright."""
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
