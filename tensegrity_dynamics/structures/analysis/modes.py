"""Modes of a structure at rest or in motion, named by their mode shapes (see `linear_models.modes`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...linear_models.linear_model import LinearModel
from ...linear_models.modes import Mode, find_modes, main_parts, motion_words, shares
from ..dynamics.linearisation import StructureLinearisation
from ..dynamics.rod_masses import split_masses
from ..energy import add_member_forces
from ..form_finding.equilibrium import StructureEquilibrium
from ..form_finding.stability import no_force
from ..node_frame import NodeFrame
from ..structure import Structure

WHOLE = 0.8
"""Fraction of the kinetic energy in rigid body motions, above which the mode is named as such a motion."""


def modes_at_rest(shape: StructureEquilibrium, *, rigid_bars: bool) -> list[Mode]:
    """Modes about an equilibrium with fixed rest lengths; with the motion of its output frame, if it has one."""
    structure = shape.structure
    linear = StructureLinearisation(structure, (), inputs="lengths", rigid_bars=rigid_bars)
    load = linear.forces
    if structure.rollers.any():
        left = load.copy()
        add_member_forces(shape.nodes, structure.members, shape.lengths, shape.tensions, left)
        load -= np.where(structure.rollers, left, 0.0)  # support forces along these axes
    model = linear.model(shape.nodes, np.zeros_like(shape.nodes), shape.rest_lengths, load=load, reduced=True)
    taut = shape.tensions > no_force(structure)
    modes = structure_modes(linear.movable, model, shape.nodes, taut, shape.output)
    own = np.isin(linear.movable.free, structure.free)
    return [replace(mode, shape=mode.shape[own]) for mode in modes]


def structure_modes(
    structure: Structure,
    model: LinearModel,
    nodes: NDArray[np.float64],
    taut: Sequence[bool] | NDArray[np.bool_],
    output: NodeFrame | None = None,
    rod_mass: str = "spread",
) -> list[Mode]:
    """Modes of the reduced model of a structure (`StructureLinearisation.model(..., reduced=True)`).

    Args:
        nodes: (n, 3) nodes of the state [m]. taut: (m,) whether members are under tension.
        output: frame whose motion is reported, or None.
        rod_mass: mass distribution of the bars in the model.
    """
    names, (masses, spread) = structure.node_names, split_masses(structure, rod_mass)
    bar_of = _bars_of_nodes(structure)
    twists = _twists(nodes, masses)
    whole = None if structure.supports.any() else twists * np.sqrt(np.repeat(masses, 3))[:, None]
    reach = float(np.sqrt(np.mean(np.sum((nodes - nodes.mean(axis=0)) ** 2, axis=1))))
    ends, taut = structure.members, np.asarray(taut, dtype=np.bool_) & structure.unilateral
    units = nodes[ends[:, 0]] - nodes[ends[:, 1]]
    units = units / np.linalg.norm(units, axis=1, keepdims=True)

    def describe(mode: Mode) -> Mode:
        shape = np.zeros(nodes.size, dtype=np.complex128)
        shape[structure.free] = mode.shape
        moves = shape.reshape(nodes.shape)
        energies = masses * np.sum(np.abs(moves) ** 2, axis=1)
        apart = 0.5 * spread * np.sum(np.abs(moves[ends[:, 0]] - moves[ends[:, 1]]) ** 2, axis=1)
        for end in range(2):
            np.subtract.at(energies, ends[:, end], apart)
        energies = np.maximum(energies, 0.0)
        parts = shares(names, energies)
        stretch = np.abs(np.einsum("ij,ij->i", units, moves[ends[:, 0]] - moves[ends[:, 1]])) ** 2
        energy = np.where(taut, structure.stiffness * stretch, 0.0)
        # rounding errors do not count as elongation
        small = 1e-18 * float(structure.stiffness.max(initial=0.0)) * float(np.max(np.abs(shape), initial=0.0)) ** 2
        cables = shares(structure.member_names, np.where(energy > small, energy, 0.0))
        return replace(mode, what=_words(moves, energies), parts=parts, cables=cables)

    def _words(moves: NDArray, energies: NDArray) -> str:
        total = float(energies.sum())
        if whole is not None and total > 0.0:
            flat = np.sqrt(np.repeat(masses, 3)) * moves.ravel()
            twist = np.linalg.lstsq(whole, flat, rcond=None)[0]
            rigid = (twists @ twist).reshape(nodes.shape)
            across = np.sum(np.abs(rigid[ends[:, 0]] - rigid[ends[:, 1]]) ** 2, axis=1)
            rigid_share = float(masses @ np.sum(np.abs(rigid) ** 2, axis=1) - spread @ across)
            if rigid_share > WHOLE * total:
                return f"all of it {motion_words(twist, reach)}"
        by_bar: dict[str, float] = {}
        for i, energy in enumerate(energies):
            by_bar[bar_of.get(i, names[i])] = by_bar.get(bar_of.get(i, names[i]), 0.0) + float(energy)
        words = main_parts(shares(list(by_bar), np.array(list(by_bar.values()))))
        if output is None or output.nodes.size < 3:
            return words
        twist = output.jacobian(nodes) @ moves.ravel()
        around = nodes[output.nodes] - nodes[output.nodes].mean(axis=0)
        size = float(np.sqrt(np.mean(np.sum(around**2, axis=1))))
        part = np.linalg.norm(np.abs(twist) * np.array([1.0, 1.0, 1.0, size, size, size]))
        if part < 0.2 * float(np.abs(moves).max(initial=0.0)):
            return words
        return f"{output.name} {motion_words(twist, size)}; {words}"

    count = sum(1 for name in model.state_names if name.startswith("motion "))
    return find_modes(model, count, describe)


def _bars_of_nodes(structure: Structure) -> dict[int, str]:
    """Bar of every node that belongs to exactly one bar."""
    found: dict[int, list[str]] = {}
    for k, kind in enumerate(structure.kinds):
        if kind == "bar":
            for i in structure.members[k].tolist():
                found.setdefault(i, []).append(structure.member_names[k])
    return {i: bars[0] for i, bars in found.items() if len(bars) == 1}


def _twists(nodes: NDArray, masses: NDArray) -> NDArray[np.float64]:
    """(3n, 6) node motions for unit twists about the centre of mass."""
    centred = nodes - (masses @ nodes) / max(float(masses.sum()), 1e-300)
    columns = np.zeros((nodes.size, 6))
    for a in range(3):
        columns[a::3, a] = 1.0
        turn = np.zeros(3)
        turn[a] = 1.0
        columns[:, 3 + a] = np.cross(turn, centred).ravel()
    return columns
