"""Modes of a robot: how fast its small motions swing or die away, what moves in them, and which cables stretch.

One form for every kind of robot. A kind makes a `LinearModel` whose states are coordinates of unit inertia and their
rates, and says what its shapes mean; the rest is here.
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
"""Of the fastest undamped angular frequency: slower motions count as free."""
MOTIONS = ("along x", "along y", "along z", "about x", "about y", "about z")
SHOWN = 24
"""Rows of a table of modes."""
UNDAMPED = 1e-9
"""Damping ratio below which a mode is undamped, and above whose negative it does not grow: rounding."""


@dataclass(frozen=True, eq=False, repr=False)
class Mode(ShortRepr):
    """One motion of a linear model: shape times e^(eigenvalue t), real part.

    Attributes:
        eigenvalue: 1/s; of a pair the one with the positive imaginary part.
        shape: (N,) complex, of the robot's own coordinates (free coordinates of nodes, velocity coordinates of a
            mechanism), of unit kinetic measure.
        what: what moves, in words. parts: shares of the kinetic energy by name of node or body, largest first.
        cables: shares of the energy in stretched tendons and cables by name, largest first; empty where none stretches.
    """

    eigenvalue: complex
    shape: NDArray[np.complex128]
    what: str = ""
    parts: Mapping[str, float] | None = None
    cables: Mapping[str, float] | None = None

    @property
    def is_free(self) -> bool:
        """Whether nothing brings it back and nothing drives it."""
        return self.eigenvalue == 0.0

    @property
    def frequency(self) -> float:
        """Hz at which it swings; zero where it does not."""
        return float(abs(self.eigenvalue.imag) / (2.0 * np.pi))

    @property
    def damping(self) -> float:
        """Damping ratio: 0 undamped, 1 and above without swinging, below zero where it grows; NaN of free motions."""
        return float("nan") if self.is_free else float(-self.eigenvalue.real / abs(self.eigenvalue)) + 0.0

    @property
    def decay_time(self) -> float:
        """s in which it falls to 1/e; below zero where it grows, infinite where it does neither."""
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
        """For programs."""
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
    """Modes as a picture needs them.

    Attributes:
        configuration: at rest, as pictures take it (nodes (n, 3) m, or q (nq,)). modes: about it.
        tensions: N by name of member or cable. moved: the configuration after a small displacement along the
            coordinates of the shapes, loops closed.
    """

    configuration: NDArray[np.float64]
    modes: Sequence[Mode]
    tensions: Mapping[str, float]
    moved: Callable[[NDArray[np.float64]], NDArray[np.float64]]


def find_modes(model: LinearModel, count: int, describe: Callable[[Mode], Mode]) -> list[Mode]:
    """Modes of a model whose first 2 count states are coordinates of unit inertia and their rates.

    Args:
        describe: the mode with what moves, from its shape. Free motions come first, then those that grow, vibrations
            by frequency, decays from slow to fast.
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
        # turned so that the largest entry is real
        turn = shape[int(np.argmax(np.abs(shape)))]
        shape = shape * (np.conj(turn) / abs(turn)) / size
        modes.append(Mode(complex(value), np.asarray(positions @ shape)))
    if free.any():
        # a free motion comes as a pair of zeros, one of friction alone as one: shapes that neither drive nor hold
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
    """Energies as shares of their sum by name, largest first; those below a thousandth are left out."""
    total = float(np.sum(energies))
    if not total > 0.0:
        return {}
    order = np.argsort(-energies, kind="stable")
    return {names[k]: float(energies[k] / total) for k in order if energies[k] > 1e-3 * total}


def main_parts(parts: Mapping[str, float]) -> str:
    """The parts that hold half of the kinetic energy, or the largest ones of many."""
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
    """The main directions of a twist (6,), linear then angular; reach: m, at which turning counts like shifting."""
    sizes = np.abs(twist) * np.array([1.0, 1.0, 1.0, reach, reach, reach])
    total = float(np.linalg.norm(sizes))
    if not total > 0.0:
        return ""
    order = np.argsort(-sizes, kind="stable")
    return " and ".join(MOTIONS[k] for k in order[:3] if sizes[k] > 0.5 * total)


def mode_report(name: str, description: str, modes: Sequence[Mode], at: str, notes: Sequence[str] = ()) -> Report:
    """Modes of a robot as a report; at: the state that they belong to."""
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
    """A table of the first modes."""
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
