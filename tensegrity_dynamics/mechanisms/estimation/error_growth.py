"""Growth of estimation errors that return through a controller, by what neither it nor the observer knows.

Within an interval t an actuator with a loop of its own gives no constant effort. Where a command changes its mean
effort by du, the state of the robot at the end differs from that under the reported effort by up to

    +-E du,   E = (1/4 t^2, 1/3 t) M^-1 P'   for (w, w')

(half of what du moves, and the rate where the reported effort is that at the end and has decayed as fast as the
interval), with the rows P of the actuators in the basis of w, p' = P w'. A controller of bandwidth b answers an error e
of the estimate of w and w' with the efforts

    C e,   C = B L (b^2 J, 2 b J)

with the rates y' = J w' of the output, its inertia L, and the efforts B that hold the actuators per force at the
output. So errors develop by

    e_k+1 = (1 - K H) (F e_k +- E C (e_k - e_k-1))

with the system F, H and the gains K of the observer. Where the largest eigenvalue is above one, a controller that would
hold the robot by its true state loses it. Such are light outputs on cables: the observer expects loads that accelerate
them within an interval, and takes every deviation of an actuator for such a load. Cable robots with platforms of 0.5
and 1 kg were lost from rest where it is 1.04 to 1.97, and rested with 1.00.
"""

from __future__ import annotations

import numpy as np

from ...numerics.types import Array
from ..dynamics.reduced_model import ReducedModel

BANDWIDTH = 0.13
"""Largest bandwidth of a controller's output loop times the interval of its states."""
MOVED, SPED = 1 / 4, 1 / 3
"""Factors of E for w and w'; see the module."""


def efforts_per_force(mass: Array, slopes: Array, forces: Array, drives: Array) -> Array:
    """B (a, k): change of the efforts at rest per force at the output, where the actuators hold their positions.

    Args:
        mass: M (n, n). slopes: (n, n) w'' per w. forces: (n, k) w'' per force at the output. drives: P (a, n).
    """
    count, inputs = len(mass), len(drives)
    whole = np.zeros((count + inputs, count + inputs))
    whole[:count, :count], whole[:count, count:], whole[count:, :count] = mass @ slopes, drives.T, drives
    right = np.zeros((count + inputs, forces.shape[1]))
    right[:count] = -mass @ forces
    return np.asarray(np.linalg.lstsq(whole, right, rcond=1e-12)[0][count:])


def error_growth(
    model: ReducedModel, q: Array, slopes: Array, forces: Array, system: tuple[Array, Array], gains: Array,
    interval: float,
) -> float:  # fmt: skip
    """Largest factor by which an error of the estimate grows in one interval, see the module.

    Args:
        model: equations of motion. q: (nq,) configuration. slopes, forces: as for `efforts_per_force`.
        system: F (x, x) of an interval and H (y, x), where x begins with w and w'. gains: K (x, y). interval: t [s].
    """
    (ahead, rows), count, size = system, len(slopes), len(gains)
    mass, drives = model.mass(q), model.basis(q)[model.drives]
    moves = (mass @ forces).T  # y' = J w', by virtual work
    inertia = np.linalg.pinv(moves @ forces, hermitian=True)
    per_acceleration = efforts_per_force(mass, slopes, forces, drives) @ inertia @ moves
    answer, bandwidth = np.zeros((len(drives), size)), BANDWIDTH / interval
    answer[:, :count], answer[:, count : 2 * count] = bandwidth**2 * per_acceleration, 2 * bandwidth * per_acceleration
    moved, pushed = np.linalg.solve(mass, drives.T), np.zeros((size, len(drives)))
    pushed[:count], pushed[count : 2 * count] = MOVED * interval**2 * moved, SPED * interval * moved
    left = np.eye(size) - gains @ rows
    returned, whole, largest = left @ pushed @ answer, np.zeros((2 * size, 2 * size)), 0.0
    whole[size:, :size] = np.eye(size)
    for sign in (1.0, -1.0):
        whole[:size, :size], whole[:size, size:] = left @ ahead + sign * returned, -sign * returned
        largest = max(largest, float(np.max(np.abs(np.linalg.eigvals(whole)))))
    return largest
