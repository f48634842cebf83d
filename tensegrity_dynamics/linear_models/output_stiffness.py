"""Stiffness of the output of a robot at rest, its dependence on self-stress, and the effect of the actuators.

    C = J K^-1 J',   S = (C of the axes asked for)^-1

with the stiffness K of the free motions with held actuators, and the Jacobian J of the output along them. C is the
compliance of the output with all axes free. S is the stiffness of the listed axes, while the other axes are free.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import TensegrityError
from ..robots.output_frame import AXES
from ..robots.report import Report, Section

RIGID = 1e-12
"""Compliance relative to its largest entry, below which an axis counts as rigid."""
ROUNDING = 1e-9
"""Entry relative to the largest entry of a matrix, below which it is printed as zero."""
RANK_TOLERANCE = 1e-9
"""Tolerance of the rank, relative to the largest singular value."""


@dataclass(frozen=True, eq=False)
class SelfStress:
    """Change of tensions that does not move the robot, and its effect on the stiffness of the output.

    Attributes:
        tensions: tensions per unit self-stress by cable [N], with unit norm.
        slope: (k, k) change of the stiffness per unit self-stress [N/m and N m/rad per N].
    """

    tensions: Mapping[str, float]
    slope: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class OutputStiffness:
    """Stiffness of an output.

    Attributes:
        output: name of the output. axes: (k,) evaluated axes out of x, y, z, rx, ry, rz (world axes at its origin).
        compliance: (6, 6) m/N, rad/(N m) and mixed; rows of rigid axes are zero.
        self_stresses: self-stresses with their effect on the stiffness; empty if there are none.
        jacobian: (6, a) motion of the output per motion of each actuator at rest [m or rad per m or rad].
        actuators: names of the actuators. reach: length that weights rotations [m].
    """

    output: str
    axes: tuple[str, ...]
    compliance: NDArray[np.float64]
    self_stresses: tuple[SelfStress, ...]
    jacobian: NDArray[np.float64]
    actuators: tuple[str, ...]
    reach: float

    @property
    def rows(self) -> NDArray[np.int64]:
        """(k,) indices of the evaluated axes."""
        return np.array([AXES.index(axis) for axis in self.axes], dtype=np.int64)

    @property
    def stiffness(self) -> NDArray[np.float64]:
        """(k, k) stiffness [N/m, N m/rad and mixed].

        Raises:
            TensegrityError: an axis is rigid, so that its stiffness is not finite.
        """
        return stiffness_of(self.compliance, self.rows)

    @property
    def singular_values(self) -> NDArray[np.float64]:
        """Singular values of the map from actuators to the axes, rotations weighted by the reach; largest first."""
        weight = np.where(self.rows < 3, 1.0, self.reach)
        return np.asarray(np.linalg.svd(weight[:, None] * self.jacobian[self.rows], compute_uv=False), dtype=np.float64)

    @property
    def rank(self) -> int:
        """Number of axes that the actuators move independently."""
        values = self.singular_values
        return int(np.count_nonzero(values > RANK_TOLERANCE * max(float(values.max(initial=0.0)), 1e-300)))

    @property
    def manipulability(self) -> float:
        """Product of the singular values over the axes (Yoshikawa 1985); zero if an axis cannot be moved."""
        values = self.singular_values
        return float(np.prod(values)) if values.size == len(self.axes) else 0.0

    def figures(self) -> dict:
        """Data for programs."""
        try:
            stiffness = self.stiffness
        except TensegrityError:
            stiffness = None
        return {
            "output": self.output,
            "axes": list(self.axes),
            "stiffness": stiffness,
            "compliance": self.compliance,
            "self_stresses": [{"tensions_N": dict(s.tensions), "slope_per_N": s.slope} for s in self.self_stresses],
            "actuators": list(self.actuators),
            "jacobian": self.jacobian,
            "singular_values": self.singular_values,
            "rank": self.rank,
            "manipulability": self.manipulability,
        }


def stiffness_of(compliance: NDArray[np.float64], rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """(k, k) stiffness of some axes, with the other axes free.

    Raises:
        TensegrityError: an axis is rigid.
    """
    part = compliance[np.ix_(rows, rows)]
    values = np.linalg.svd(part, compute_uv=False)
    if values.size and not values[-1] > RIGID * max(float(values[0]), 1e-300):
        raise TensegrityError(
            "the output is rigid along an axis or about one while its actuators hold, so that its stiffness there is "
            "not finite; its compliance says where."
        )
    return np.asarray(np.linalg.inv(part), dtype=np.float64)


def stiffness_report(name: str, description: str, found: OutputStiffness, at: str) -> Report:
    """Report of the stiffness of an output; at: text on its state."""
    units = ["N" if axis in "xyz" else "N m" for axis in found.axes]
    per = [f"{axis} {'m' if axis in 'xyz' else 'rad'}" for axis in found.axes]
    parts: list[Section | str] = []
    try:
        stiffness = found.stiffness
        rows = [
            (f"{axis} {unit}", *(f"{value:.5g}" for value in row))
            for axis, unit, row in zip(found.axes, units, _without_rounding(stiffness), strict=True)
        ]
        right = tuple(range(1, len(per) + 1))
        parts.append(Section(f"stiffness of {found.output} {at}: force over motion", ("", *per), rows, right=right))
    except TensegrityError as error:
        stiffness = None
        parts.append(f"No finite stiffness: {error}")
    for number, stress in enumerate(found.self_stresses, 1):
        order = sorted(stress.tensions.items(), key=lambda item: -abs(item[1]))
        words = ", ".join(f"{cable} {value:+.3f}" for cable, value in order[:6] if abs(value) > 1e-6)
        more = " ..." if len(order) > 6 else ""
        rows = [
            (f"{axis} {unit}", *(f"{value:.4g}" for value in row))
            for axis, unit, row in zip(found.axes, units, _without_rounding(stress.slope), strict=True)
        ]
        title = f"its change per N of self-stress {number}: {words}{more}"
        parts.append(Section(title, ("", *per), rows, right=tuple(range(1, len(per) + 1))))
    if not found.self_stresses:
        parts.append("No self-stress: there are no tensions to change that would leave the robot where it is.")
    values = found.singular_values
    input_rows = [
        ("actuators", str(len(found.actuators))),
        ("axes that they move", f"{found.rank} of {len(found.axes)} ({', '.join(found.axes)})"),
        ("singular values", ", ".join(f"{value:.4g}" for value in values) or "none"),
        ("manipulability", f"{found.manipulability:.4g} (turning measured at {found.reach:.3g} m)"),
    ]
    parts.append(Section(f"what the actuators do to {found.output}", ("", ""), input_rows))
    warnings = []
    if found.rank < len(found.axes):
        warnings.append(f"its actuators move {found.rank} of the {len(found.axes)} axes that its output controls.")
    return Report(
        {"robot": name, "at": at, "stiffness": found.figures(), "notes": warnings}, parts,
        heading=(name, description), notes=warnings,
    )  # fmt: skip


def _without_rounding(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Matrix with zeros in place of rounding errors."""
    return np.where(np.abs(matrix) > ROUNDING * np.abs(matrix).max(initial=0.0), matrix, 0.0)
