"""Search for all assembly and working modes of a mechanism with Newton's method from random starts.

`mode_enumeration` follows curves from one mode to the next, and so finds only the modes connected to the first one.
Here every start is random. Its loops are closed, and it is moved along closed loops until the coordinates have the
required values (damped Newton steps, G of 000, 1.2.32); no connection between modes is needed. The hit counts of the
modes give an estimate of the missed ones: the probability that another start finds a new mode is about the ratio of the
number of modes found once to the number of all hits (Good 1953).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...errors import TensegrityError
from ..joint_coordinates import JOINT_COORDINATES
from ..mechanism import Mechanism
from ..workspace import make_stage_workspace, make_workspace
from .configuration_space import configuration_rate, normalise_quaternions
from .loop_closure import close_loops
from .loop_reduction import make_reduction_workspace
from .parallel_kinematics import Coordinates, LoopKinematics

SAME = 1e-5
"""Distance [m and rad] below which two modes are equal."""
CLOSED, ARRIVED = 1e-11, 1e-10
"""Tolerances of closed loops [m, or sine of an angle], and of coordinates at their required values [m and rad]."""
FURTHEST = 1e-3
"""Largest uncertainty [m and rad] of a mode that counts; at a singular pose, where modes coincide, those that a search
arrives at are only as near to it as the root of `ARRIVED`."""
LONGEST_STEP = 0.3
"""Longest Newton step [rad or m]."""
MAX_STEPS, MAX_HALVINGS = 40, 4
"""Largest number of Newton steps of one start, and of halvings of one step."""
CONFIRMATIONS = 5
"""Number of hits of every mode before a search ends; a larger number finds rarer modes and takes longer."""
LEAST_MEETINGS = 50
"""Least number of hits after the last new mode before a search ends."""


@dataclass(frozen=True, eq=False)
class ModeSearch:
    """Result of a search.

    Attributes:
        modes: configurations (nq,); the first one is the start of the search.
        met: number of hits of each mode. starts: number of starts of Newton's method; not all of them converge.
        singular: numbers from 0 of modes at singular poses, where several modes coincide; they count once.
        unseen: estimated probability that another converged start finds a new mode (Good 1953).
    """

    modes: tuple[NDArray[np.float64], ...]
    met: tuple[int, ...]
    starts: int
    singular: tuple[int, ...] = ()

    @property
    def unseen(self) -> float:
        return sum(count <= 1 for count in self.met) / max(1, sum(self.met))


def search_assembly_modes(kinematics: LoopKinematics, q: NDArray, *, starts: int = 3000, seed: int = 0) -> ModeSearch:
    """Closed configurations with the same active joints as q (nq,) and different poses of the output.

    Modes that differ in passive joints only (a leg rotated about its own axis) count once.

    Args:
        starts: largest number of starts. The search ends when every mode was found `CONFIRMATIONS` times, and half of
            all hits (and at least `LEAST_MEETINGS`) came after the last new mode.
        seed: seed of the random starts.

    Raises:
        TensegrityError: the loops of q cannot be closed.
    """

    def mark(position: NDArray) -> NDArray[np.float64]:
        rotation, origin = kinematics.output_pose(position)
        return np.concatenate((origin, rotation.ravel()))

    return _search(kinematics, kinematics.active_coordinates, q, mark, starts, seed)


def search_working_modes(
    kinematics: LoopKinematics,
    q: NDArray,
    *,
    limits: NDArray | None = None,
    starts: int = 3000,
    seed: int = 0,
) -> ModeSearch:
    """Closed configurations with the same output as q (nq,) and different active joints (full turns do not count).

    Args:
        limits: (n, 2) lowest and highest position of the active joints [rad or m]; modes outside these limits, apart
            from full turns, do not count. Other arguments and errors as in `search_assembly_modes`.
    """
    turning = np.array([kinematics.mechanism.joint(name).kind == "revolute" for name in kinematics.active])

    def mark(position: NDArray) -> NDArray[np.float64]:
        values = kinematics.active_coordinates.values(position)
        return np.concatenate((np.cos(values), np.sin(values), np.where(turning, 0.0, values)))

    def within(position: NDArray) -> bool:
        if limits is None:
            return True
        values, (low, high) = kinematics.active_coordinates.values(position), limits.T
        turns = np.where(turning, 2.0 * np.pi * np.ceil((low - SAME - values) / (2.0 * np.pi)), 0.0)
        values = values + turns
        return bool(np.all((values >= low - SAME) & (values <= high + SAME)))

    return _search(kinematics, kinematics.output_coordinates, q, mark, starts, seed, within)


def _search(
    kinematics: LoopKinematics,
    coordinates: Coordinates,
    q: NDArray,
    mark: Callable[[NDArray], NDArray[np.float64]],
    starts: int,
    seed: int,
    counts: Callable[[NDArray], bool] = lambda _: True,
) -> ModeSearch:
    mover = _Mover(kinematics, coordinates)
    first = np.array(q, dtype=np.float64)
    if not mover.close(first):
        raise TensegrityError("the loops of the position to start from cannot be closed.")
    target = coordinates.values(first)
    spread = max(float(np.max(np.abs(mover.work.position), initial=0.0)), SAME)
    rng = np.random.default_rng(seed)
    modes, marks, met = [first], [mark(first)], [1]
    meetings = newest = 1
    done = 0
    while done < starts and not (min(met) >= CONFIRMATIONS and meetings - newest >= max(newest, LEAST_MEETINGS)):
        done += 1
        trial = mover.arrive(_drawn(kinematics.mechanism, first, spread, rng), target)
        if trial is None or not counts(trial):
            continue
        meetings += 1
        own = mark(trial)
        distances = np.max(np.abs(np.array(marks) - own), axis=1)
        nearest = int(np.argmin(distances))
        if distances[nearest] < max(SAME, mover.uncertainty(trial)):
            met[nearest] += 1
        else:
            modes.append(trial)
            marks.append(own)
            met.append(1)
            newest = meetings
    singular = tuple(k for k, mode in enumerate(modes) if mover.uncertainty(mode) > SAME)
    return ModeSearch(tuple(modes), tuple(met), done, singular)


class _Mover:
    """Motion of configurations along closed loops, with work arrays that are allocated once."""

    def __init__(self, kinematics: LoopKinematics, coordinates: Coordinates) -> None:
        self.kinematics, self.coordinates = kinematics, coordinates
        self.flat = kinematics.mechanism.flat
        self.work, self.reduction = make_workspace(self.flat), make_reduction_workspace(self.flat)
        self.stages = make_stage_workspace(self.flat)
        self.held = np.zeros(kinematics.mechanism.velocity_count, dtype=np.bool_)

    def close(self, position: NDArray) -> bool:
        """Close the loops of a configuration in place."""
        for _ in range(2):  # each call makes up to twenty Newton steps
            error = close_loops(self.flat, position, self.held, 1e-13, False, self.work, self.reduction, self.stages)
            if not error < 1e3 or error <= CLOSED:
                break
        return bool(error <= CLOSED) and bool(np.all(np.isfinite(position)))

    def arrive(self, position: NDArray, target: NDArray) -> NDArray[np.float64] | None:
        """Configuration moved until the coordinates have their target (n,); None if it does not converge."""
        if not self.close(position):
            return None
        error = self.coordinates.error(position, target)
        for _ in range(MAX_STEPS):
            size = float(np.max(np.abs(error)))
            if size < ARRIVED:
                return position
            basis = self.kinematics.basis(position)
            try:
                step = basis @ np.linalg.solve(self.coordinates.jacobian(position) @ basis, error)
            except np.linalg.LinAlgError:
                return None
            longest = float(np.max(np.abs(step)))
            if not np.isfinite(longest):
                return None
            share = min(1.0, LONGEST_STEP / longest)
            for _ in range(MAX_HALVINGS):
                moved = self.moved(position, share * step)
                if moved is not None:
                    ahead = self.coordinates.error(moved, target)
                    if float(np.max(np.abs(ahead))) < size:
                        break
                share *= 0.5
            else:
                return None
            position, error = moved, ahead
        return None

    def uncertainty(self, position: NDArray) -> float:
        """Distance [m and rad] within which another start may arrive at the same mode as this configuration: twice
        that of each from a double root, 2 e / s with the smallest singular value s of the coordinates' Jacobian."""
        rows = self.coordinates.jacobian(position) @ self.kinematics.basis(position)
        smallest = float(np.linalg.svd(rows, compute_uv=False)[-1])
        return min(FURTHEST, 4.0 * ARRIVED / smallest) if smallest > 0.0 else FURTHEST

    def moved(self, position: NDArray, step: NDArray) -> NDArray[np.float64] | None:
        """Configuration after a step (nv,) with closed loops; None if they cannot close."""
        configuration_rate(self.flat, position, step, self.stages.q_rate)
        result = position + self.stages.q_rate
        normalise_quaternions(self.flat, result)
        return result if self.close(result) else None


def _drawn(mechanism: Mechanism, q: NDArray, spread: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """Random configuration: any angles and orientations, lengths and translations within `spread` [m] of those of q."""
    result = np.array(q)
    for joint in mechanism.joints:
        coordinates = JOINT_COORDINATES[joint.kind]
        at = mechanism.positions_of(joint.name)
        count = len(coordinates.start)  # 0 of involute joints: they follow
        if coordinates.quaternion:
            turn = rng.normal(size=4)
            result[at.stop - 4 : at.stop] = turn / np.linalg.norm(turn)
            count -= 3
        for k, quantity in zip(range(at.start, at.start + count), coordinates.start, strict=False):
            turns = quantity == "angle"
            result[k] = rng.uniform(-np.pi, np.pi) if turns else q[k] + rng.uniform(-spread, spread)
    return result
