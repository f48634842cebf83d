"""What the inverse kinematics finds: the actuator positions of a goal pose and the equilibria that lead there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensegrity_dynamics.errors import TensegrityError, unknown_name
from tensegrity_dynamics.numerics.short_repr import ShortRepr

METHODS = ("newton", "broyden")


@dataclass(frozen=True, eq=False, repr=False)
class InverseKinematicsResult(ShortRepr):
    """Solution of the inverse kinematics: actuator positions at the goal and the path of equilibria to it.

    Attributes:
        positions: of the actuators at the goal, by name: rest length [m] of a tendon, rad or m of a joint.
        equilibrium: at the goal.
        path: equilibria from the start (first) to the goal (last), each stable and within the limits.
        commands: (s, a) actuator positions of each of them, in the robot's order.
        pose_error: (p,) m and rad that remains on the controlled axes.
        margins: N by member name: tension above its floor at the goal, for every guarded tendon, spring or cable.
        lowest_margin: (tendon, N) the smallest such margin along the whole path.
        iterations: steps taken, rejected ones included.
        solves: equilibria solved on the path.
        method: "newton" or "broyden".
    """

    positions: dict[str, float]
    equilibrium: Any
    path: tuple[Any, ...]
    commands: NDArray[np.float64]
    pose_error: NDArray[np.float64]
    margins: dict[str, float]
    lowest_margin: tuple[str, float]
    iterations: int
    solves: int
    method: str = "newton"

    @property
    def rest_lengths(self) -> dict[str, float]:
        """m by actuator name: the positions of a structure's actuators."""
        return self.positions

    @property
    def shape(self) -> Any:
        """The equilibrium at the goal, by its short name: `plan.shape.nodes`."""
        return self.equilibrium


@dataclass(frozen=True, eq=False)
class InverseKinematicsOptions:
    """How a path is looked for.

    Args:
        preferred: equilibrium whose tensions and positions redundant actuators keep near; None is the start. Passing
            the same one at every call makes the positions of a goal independent of where the path to it began.
        tension_floor: N for all actuated tendons, or by actuator name; None takes each actuator's minimum tension.
        method: "newton" with the exact Jacobian, or "broyden" as in document 001, for comparison.
        tolerance: m and rad, largest pose error on a controlled axis that counts as reached. Smaller costs steps.
        max_iterations: steps tried before giving up.
        length_weight: how much redundant tendons keep their rest length against their tension. A deviation by half
            the mean travel and one by the mean tension count alike at 1; smaller values hold the tensions more evenly.

    Raises:
        TensegrityError: a number is out of range, or the method does not exist.
    """

    preferred: Any = None
    tension_floor: Any = None
    method: str = "newton"
    tolerance: float = 1e-9
    max_iterations: int = 300
    length_weight: float = 1.0

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise TensegrityError(unknown_name("method", self.method, METHODS))
        for name in ("tolerance", "length_weight"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value > 0.0):
                raise TensegrityError(f"{name} is {value}; give a number above zero.")
