"""What friction at its feet carries of a robot at rest that only the ground holds.

Static friction holds a foot like a constraint, but a foot that slides meets a constant force: sliding has no stiffness.
A shape in which nothing but friction resists some motion therefore stands, but must not be left by a motion in which
feet slide.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..mechanism import Mechanism
from ..touch.columns import AWAY, FORCE, NORMAL

NAMED = 0.3
"""Fraction of the largest coordinate of a motion above which its words name a coordinate."""


@dataclass(frozen=True, eq=False)
class Standing:
    """Friction at the feet of a robot at rest that only the ground holds.

    Attributes:
        used: largest share of the available static friction that a foot uses; above 1 it slides.
        foot: name of this foot; empty if none uses friction.
        loose: coordinates of a motion that nothing but friction resists, besides sliding of the whole robot; empty if
            there is none. `rate`: 1/s, at which this motion grows while the feet slide.
    """

    used: float
    foot: str
    loose: str = ""
    rate: float = 0.0


def friction_used(mechanism: Mechanism, contact_state: NDArray[np.float64]) -> tuple[float, str]:
    """Largest share of the available static friction that a foot uses, and the name of this foot."""
    ground = mechanism.ground
    used, foot, row = 0.0, "", 0
    assert ground is not None
    for part in mechanism.contact_parts:
        for own in contact_state[row : row + len(part.balls[0])]:
            if own[NORMAL] > 0.0:
                away = own[AWAY : AWAY + 3] / np.linalg.norm(own[AWAY : AWAY + 3])
                push = float(own[FORCE : FORCE + 3] @ away)
                along = float(np.linalg.norm(own[FORCE : FORCE + 3] - push * away))
                if along > 1e-9 * push:
                    share = along / (ground.friction * push) if ground.friction > 0.0 else np.inf
                    used, foot = max((used, foot), (share, part.name))
        row += len(part.balls[0])
    return used, foot


def coordinates_of(mechanism: Mechanism, motion: NDArray[np.float64]) -> str:
    """Names of the coordinates that take part in a motion (nv,), those of floating joints only where no other does."""
    parts = np.abs(motion)
    named = [
        name
        for name, part in zip(mechanism.coordinate_names(), parts.tolist(), strict=True)
        if part > NAMED * float(np.max(parts, initial=0.0))
    ]
    floating = {joint.name for joint in mechanism.joints if joint.kind == "floating"}
    inner = [name for name in named if name.split(".")[0] not in floating]
    return ", ".join(inner or named)
