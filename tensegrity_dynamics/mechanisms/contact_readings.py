"""What is known of the ground under a mechanism after `evaluate`: forces, where they act, energies."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .mechanism import Mechanism
from .touch.columns import FORCE, NORMAL, POINT, STORED
from .workspace import Workspace


def read_contacts(mechanism: Mechanism, work: Workspace) -> dict[str, NDArray[np.float64]]:
    """(k, 2, 3) by part that touches: for each of its points where it is [m] and what the ground exerts there [N]."""
    found, first = {}, 0
    if not mechanism.flat.contact_kernel.size:
        return {}
    for part in mechanism.contact_parts:
        count = len(part.balls[0])
        rows = work.contact_state[first : first + count]
        first += count
        rows = rows[rows[:, NORMAL] > 0.0]
        if len(rows):
            found[part.name] = np.stack((rows[:, POINT : POINT + 3], rows[:, FORCE : FORCE + 3]), axis=1)
    return found


def contact_forces(contacts: dict[str, NDArray[np.float64]]) -> dict[str, NDArray[np.float64]]:
    """(3,) N by part that touches, of all its points, from what `read_contacts` gives."""
    return {name: each[:, 1].sum(axis=0) for name, each in contacts.items()}


def ground_energy(work: Workspace) -> float:
    """J that the ground has taken up elastically."""
    return float(work.contact_state[-1, STORED])


def set_standing(work: Workspace, toward: NDArray[np.float64]) -> None:
    """Let the ground carry along a direction (3,) as friction does at rest; zeros for along its normals."""
    work.contact_state[-1, FORCE : FORCE + 3] = toward
