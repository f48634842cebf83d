"""Modes of a robot: frequency, damping and shape of its small motions, and the cables that they stretch.

This module is common to all kinds of robots. A kind creates a `LinearModel` whose states are coordinates of unit
inertia and their rates, and describes its mode shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..numerics.short_repr import ShortRepr
from ..robots.report import Report, Section
from .linear_model import LinearModel

FREE_RATE = 1e-6
"""Rate relative to the largest undamped angular frequency, below which a motion counts as free."""
MOTIONS = ("along x", "along y", "along z", "about x", "about y", "about z")
SHOWN = 24
"""Largest number of rows of a table of modes."""
UNDAMPED = 1e-9
"""Absolute damping ratio below which a mode counts as undamped (rounding errors)."""


@dataclass(frozen=True, eq=False, repr=False)
class Mode(ShortRepr):
    """Mode of a linear model: real part of shape times e^(eigenvalue t).

    Attributes:
        eigenvalue: eigenvalue [1/s]; for a complex pair the one with positive imaginary part.
        shape: (N,) complex mode shape in the coordinates of the robot (free coordinates of nodes, velocity coordinates
            of a mechanism), with unit kinetic energy norm.
        what: text on the motion. parts: fractions of the kinetic energy by name of node or body, largest first.
        cables: fractions of the elastic energy of tendons and cables by name, largest first; empty without elongation.
    """

    eigenvalue: complex
    shape: NDArray[np.complex128]
    what: str = ""
    parts: Mapping[str, float] | None = None
    cables: Mapping[str, float] | None = None

    @property
    def is_free(self) -> bool:
        """Whether the motion is free: no restoring force and no growth."""
        return self.eigenvalue == 0.0

    @property
    def frequency(self) -> float:
        """Frequency of the oscillation [Hz]; zero without oscillation."""
        return float(abs(self.eigenvalue.imag) / (2.0 * np.pi))

    @property
    def damping(self) -> float:
        """Damping ratio: 0 undamped, 1 and above without oscillation, negative for growth; NaN for free motions."""
        return float("nan") if self.is_free else float(-self.eigenvalue.real / abs(self.eigenvalue)) + 0.0

    @property
    def decay_time(self) -> float:
        """Time of the decay to 1/e [s]; negative for growth, infinite without decay or growth."""
        return float("inf") if self.eigenvalue.real == 0.0 else float(-1.0 / self.eigenvalue.real)

    @property
    def kind(self) -> str:
        """ "vibration", "decay", "growth" or "free"."""
        if self.is_free:
            return "free"
        if self.eigenvalue.real > UNDAMPED * abs(self.eigenvalue):
            return "growth"
        return "vibration" if self.eigenvalue.imag else "decay"

    def figures(self) -> dict:
        """Data for programs."""
        return {
            "kind": self.kind,
            "frequency_Hz": self.frequency,
            "damping_ratio": self.damping,
            "decay_time_s": self.decay_time,
            "eigenvalue_per_s": [self.eigenvalue.real, self.eigenvalue.imag],
            "what": self.what,
            "kinetic_energy_shares": dict(self.parts or {}),
            "cable_energy_shares": dict(self.cables or {}),
        }


@dataclass(frozen=True, eq=False, repr=False)
class ModeShapes(ShortRepr):
    """Modes with the data for their display.

    Attributes:
        configuration: configuration at rest in the form of pictures (nodes (n, 3) [m], or q (nq,)).
        modes: modes about it. tensions: tensions by name of member or cable [N].
        moved: function that returns the configuration after a small displacement along the coordinates of the shapes,
            with closed loops.
    """

    configuration: NDArray[np.float64]
    modes: Sequence[Mode]
    tensions: Mapping[str, float]
    moved: Callable[[NDArray[np.float64]], NDArray[np.float64]]


def find_modes(model: LinearModel, count: int, describe: Callable[[Mode], Mode]) -> list[Mode]:
    """Modes of a model whose first 2 count states are coordinates of unit inertia and their rates.

    Args:
        count: number of coordinates.
        describe: function that adds the description to a mode from its shape.

    Returns:
        Modes in this order: free motions, growing modes, vibrations by frequency, decays from slow to fast.
    """
    matrix = model.dense_matrix[: 2 * count, : 2 * count]
    if count == 0:
        return []
    values, vectors = np.linalg.eig(matrix)
    slow = FREE_RATE * np.sqrt(float(np.linalg.norm(matrix[count:, :count], 2)))
    lift = model.lift
    assert lift is not None
    half = lift.shape[0] // 2 if lift.shape[1] == 2 * count else _positions(model)
    positions = lift[:half, :count]
    free = np.abs(values) <= slow
    modes = []
    for value, vector in zip(values[~free], vectors[:, ~free].T, strict=True):
        if value.imag < 0.0:
            continue
        shape = vector[:count]
        size = np.linalg.norm(shape)
        # rotated in the complex plane so that the largest entry is real
        turn = shape[int(np.argmax(np.abs(shape)))]
        shape = shape * (np.conj(turn) / abs(turn)) / size
        modes.append(Mode(complex(value), np.asarray(positions @ shape)))
    if free.any():
        # a free motion gives a pair of zero eigenvalues, with friction only one; their shapes have no stiffness
        _, sizes, rows = np.linalg.svd(matrix[count:, :count])
        loose = rows[sizes <= 1e-9 * sizes[0]] if sizes[0] > 0.0 else rows
        modes += [Mode(0.0 + 0.0j, np.asarray(positions @ row).astype(np.complex128)) for row in loose]
    return sorted((describe(mode) for mode in modes), key=_order)


def _positions(model: LinearModel) -> int:
    return sum(1 for name in model.full_names if f"velocity of {name}" in model.full_names)


def _order(mode: Mode) -> tuple:
    rank = {"free": 0, "growth": 1, "vibration": 2, "decay": 3}[mode.kind]
    return rank, -mode.eigenvalue.real if mode.kind == "growth" else mode.frequency, abs(mode.eigenvalue)


def shares(names: Sequence[str], energies: NDArray[np.float64]) -> dict[str, float]:
    """Energies as fractions of their sum by name, largest first; those below a thousandth are omitted."""
    total = float(np.sum(energies))
    if not total > 0.0:
        return {}
    order = np.argsort(-energies, kind="stable")
    return {names[k]: float(energies[k] / total) for k in order if energies[k] > 1e-3 * total}


def main_parts(parts: Mapping[str, float]) -> str:
    """Text on the parts with half of the kinetic energy, or on the largest of many parts."""
    chosen: list[str] = []
    total = 0.0
    for name, share in parts.items():
        if total >= 0.5 or len(chosen) == 2:
            break
        chosen.append(name)
        total += share
    more = "" if total >= 0.5 else f" and {len(parts) - len(chosen)} more"
    return ", ".join(chosen) + more


def motion_words(twist: NDArray[np.complex128], reach: float) -> str:
    """Text on the main directions of a twist (6,), linear then angular; reach: length that weights rotations [m]."""
    sizes = np.abs(twist) * np.array([1.0, 1.0, 1.0, reach, reach, reach])
    total = float(np.linalg.norm(sizes))
    if not total > 0.0:
        return ""
    order = np.argsort(-sizes, kind="stable")
    return " and ".join(MOTIONS[k] for k in order[:3] if sizes[k] > 0.5 * total)


def mode_report(name: str, description: str, modes: Sequence[Mode], at: str, notes: Sequence[str] = ()) -> Report:
    """Report of the modes of a robot; at: text on their state."""
    parts: list[Section | str] = [mode_section(f"modes {at}", modes)]
    if len(modes) > SHOWN:
        parts.append(f"{len(modes) - SHOWN} faster or more strongly damped modes are left out; --json has them all.")
    if not modes:
        parts = ["Nothing can move: what is held holds all of it."]
    growing = [mode for mode in modes if mode.kind == "growth"]
    warnings = list(notes)
    if growing:
        warnings.append(f"{len(growing)} of its motions grow: it does not stay in this shape.")
    return Report(
        {"robot": name, "at": at, "modes": [mode.figures() for mode in modes], "notes": warnings},
        parts,
        heading=(name, description),
        notes=warnings,
    )


def mode_section(title: str, modes: Sequence[Mode], shown: int = SHOWN) -> Section:
    """Table of the first modes."""
    rows = []
    for number, mode in enumerate(modes[:shown], 1):
        cables = ", ".join(f"{cable} {100 * share:.0f} %" for cable, share in list((mode.cables or {}).items())[:2])
        swing = f"{mode.frequency:.4g}" if mode.frequency else "-"
        undamped = abs(mode.damping) < UNDAMPED
        damping = "-" if mode.is_free else "0" if undamped else f"{mode.damping:.3g}"
        decay = "-" if undamped or not np.isfinite(mode.decay_time) else f"{mode.decay_time:.3g}"
        rows.append((str(number), mode.kind, swing, damping, decay, mode.what, cables or "-"))
    heads = ("", "kind", "frequency Hz", "damping ratio", "decay time s", "what moves", "stretch energy in")
    return Section(title, heads, rows, right=(2, 3, 4))
