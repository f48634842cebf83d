"""Figures 2 to 5 of 004 for random networks: time of an inversion, sparsity, storage, and difference of two models.

The document uses the pairs of all nodes. For comparison, our method uses only the pairs joined by members, and applies
H* without forming it.
"""

from __future__ import annotations

import time
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from tensegrity_dynamics.structures.node_distances.constraints import cycle_matrix
from tensegrity_dynamics.structures.node_distances.inertia import apply_inverse, inverse_matrix, pair_masses
from tensegrity_dynamics.structures.node_distances.model import NodeDistanceModel
from tensegrity_dynamics.structures.node_distances.pairs import all_pairs, connected_pairs
from tensegrity_dynamics.structures.node_distances.sorted_coordinates import (
    SortedCoordinates,
    parameters_of_positions,
)
from tensegrity_dynamics.structures.structure import Structure, make_structure

from ..output import panels, save_picture, table

NAME = "node_distances"
DESCRIPTION = "004: figures 2 to 5, node distances beside node positions, all pairs beside connected ones"
QUANTITIES = {"duration": "time"}
SIZES = (6, 10, 14)
"""Numbers of rods of the structures; the document continues in steps of four to 30 (`run(sizes=...)`)."""
LARGE = (100, 1000)
PRINTED_ERROR = 1e-5
"""Error printed in figure 5 [m]."""


def class_1_network(count: int) -> Structure:
    """Random network of `count` nodes: every node belongs to one bar, and has cables to its four nearest nodes."""
    draw = np.random.default_rng(0)
    positions = draw.normal(size=(count, 3)) * count ** (1.0 / 3.0)
    names = [f"n{i}" for i in range(count)]
    rows = []
    taken = set()
    for k in range(count // 2):
        i, j = 2 * k, 2 * k + 1
        length = float(np.linalg.norm(positions[i] - positions[j]))
        rows.append((f"bar_{k}", "bar", names[i], names[j], 1000.0, length))
        taken.add((i, j))
    for i in range(count):
        near = np.argsort(np.linalg.norm(positions - positions[i], axis=1))[1:5].tolist()
        for j in [*near, (i + 1) % count]:
            pair = (min(i, j), max(i, j))
            if pair not in taken:
                taken.add(pair)
                length = float(np.linalg.norm(positions[i] - positions[j]))
                rows.append((f"cable_{len(rows)}", "tendon", names[i], names[j], 100.0, 0.9 * length))
    masses = dict(zip(names, draw.uniform(0.5, 2.0, count).tolist(), strict=True))
    return make_structure(dict(zip(names, positions, strict=True)), rows, node_masses=masses)


def run(sizes: Any = SIZES, large: Any = LARGE, duration: float = 0.3) -> dict[str, Any]:
    """Run all figures.

    Args:
        sizes: sizes of the networks of figures 2 and 4. large: sizes of the networks of our method.
        duration: duration of figure 5 [s].
    """
    return {
        "experiment": NAME,
        "figure_2_and_4": [_inversion(count) for count in sizes],
        "figure_3": _sparsity(),
        "figure_5": _discrepancy(duration),
        "large": [_large(count) for count in large],
    }


def _best(work: Any, times: int = 5) -> float:
    """Shortest processor time of several calls [s]."""
    best = np.inf
    for _ in range(times):
        began = time.process_time()
        work()
        best = min(best, time.process_time() - began)
    return best


def _inversion(count: int) -> dict[str, Any]:
    structure = class_1_network(count)
    pairs, own = all_pairs(count), connected_pairs(structure)
    masses, eye = structure.lumped_masses(), np.eye(3)
    inertia = np.kron(np.diag(pair_masses(pairs, masses)), eye)
    forces = np.ones((len(own), 3))
    driven = np.flatnonzero(structure.unilateral)
    point = SortedCoordinates(NodeDistanceModel(structure), driven).linearise(structure.nodes, structure.rest_lengths)
    return {
        "nodes": count, "pairs": len(pairs), "connected": len(own),
        "pseudo_inverse_s": _best(lambda: np.linalg.pinv(inertia), 3),
        "inverse_dense_s": _best(lambda: np.kron(inverse_matrix(pairs, masses, dense=True), eye)),
        "inverse_sparse_s": _best(lambda: inverse_matrix(pairs, masses)),
        "applied_s": _best(lambda: apply_inverse(own, 1.0 / masses, forces), 20),
        "numbers_document": parameters_of_positions(count, len(driven))["document"],
        "numbers_dense": parameters_of_positions(count, len(driven))["dense"],
        "numbers_ours": point.numbers,
    }  # fmt: skip


def _sparsity() -> dict[str, Any]:
    matrix = all_pairs(6).map_matrix()
    rows, columns = matrix.nonzero()
    return {"shape": list(matrix.shape), "nonzero": int(matrix.nnz), "rows": rows.tolist(), "columns": columns.tolist()}


def _discrepancy(duration: float) -> dict[str, Any]:
    structure = class_1_network(6)
    model = NodeDistanceModel(structure, all_pairs(6))
    own = NodeDistanceModel(structure)
    speed = 0.1 * np.random.default_rng(1).normal(size=(6, 3))
    times, nodes = model.simulate_positions(structure.nodes, speed, duration, tolerance=1e-12)
    rows = {}
    for name, which, method in (
        ("multipliers (7.1)", model, "multipliers"), ("H*", model, "applied"), ("H*, connected pairs", own, "applied")
    ):  # fmt: skip
        motion = which.simulate(structure.nodes, speed, duration, method=method, tolerance=1e-12)
        rows[name] = np.abs(motion.nodes - nodes).max(axis=(1, 2)).tolist()
    return {"times_s": times.tolist(), "errors_m": rows, "printed_m": PRINTED_ERROR}


def _large(count: int) -> dict[str, Any]:
    structure = class_1_network(count)
    tracemalloc.start()
    model = NodeDistanceModel(structure)
    cycles = cycle_matrix(model.pairs)
    delta, rest = model.pairs.distances(structure.nodes), structure.rest_lengths
    model.accelerations(delta, rest)
    memory = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return {
        "nodes": count, "connected": len(model.pairs), "cycles": int(cycles.shape[1]), "nonzero": int(cycles.nnz),
        "accelerations_s": _best(lambda: model.accelerations(delta, rest)), "memory_bytes": memory,
        "dense_inverse_bytes": 8 * (3 * count * (count - 1) // 2) ** 2,
    }  # fmt: skip


def render(result: dict[str, Any], console: Console) -> None:
    """Print the results as tables."""
    rows = [
        (str(r["nodes"]), str(r["pairs"]), str(r["connected"]), *(f"{1e6 * r[key]:.0f}" for key in
         ("pseudo_inverse_s", "inverse_dense_s", "inverse_sparse_s", "applied_s")),
         *(str(r[key]) for key in ("numbers_document", "numbers_dense", "numbers_ours")))
        for r in result["figure_2_and_4"]
    ]  # fmt: skip
    heads = ("nodes", "pairs", "connected", "pinv us", "H* dense us", "H* sparse us", "applied us",
             "n(n+m)", "9n2+3nm", "ours")  # fmt: skip
    console.print(table("figures 2 and 4: time of an inversion, numbers of a linear model per time point", heads, rows))
    shape = result["figure_3"]["shape"]
    console.print(f"figure 3: D of 6 nodes is {shape[0]} x {shape[1]} with {result['figure_3']['nonzero']} numbers")
    errors = [(name, f"{max(values):.1e}") for name, values in result["figure_5"]["errors_m"].items()]
    console.print(table("figure 5: farthest from node positions (printed: below 1e-5 m)", ("", "m"), errors))
    lines = [
        (str(r["nodes"]), str(r["connected"]), str(r["cycles"]), str(r["nonzero"]), f"{1e6 * r['accelerations_s']:.0f}",
         f"{1e-6 * r['memory_bytes']:.1f}", f"{1e-6 * r['dense_inverse_bytes']:.3g}")
        for r in result["large"]
    ]  # fmt: skip
    large_heads = ("nodes", "connected", "cycles", "numbers of L", "accelerations us", "MB in all", "MB of a dense H*")
    console.print(table("connected pairs on to large networks", large_heads, lines))


def draw(result: dict[str, Any], path: Path) -> None:
    """Plot the four figures."""
    figure, ((two, three), (four, five)) = panels(2, 2, figsize=(10, 7))
    rows = result["figure_2_and_4"]
    nodes = [row["nodes"] for row in rows]
    for key, label in (("pseudo_inverse_s", "pinv"), ("inverse_dense_s", "H* dense"), ("inverse_sparse_s", "H* sparse"),
                       ("applied_s", "applied, connected")):  # fmt: skip
        two.semilogy(nodes, [row[key] for row in rows], label=label)
    two.set(xlabel="nodes", ylabel="time [s]", title="time of an inversion (figure 2)")
    two.legend()
    three.plot(result["figure_3"]["columns"], result["figure_3"]["rows"], ".", markersize=3)
    three.invert_yaxis()
    three.set(xlabel="column", ylabel="row", title="numbers in D of 6 nodes (figure 3)")
    for key, label in (("numbers_document", "positions, n(n + m)"), ("numbers_dense", "positions, dense"),
                       ("numbers_ours", "connected pairs")):  # fmt: skip
        four.plot(nodes, [row[key] for row in rows], label=label)
    four.set(xlabel="nodes", ylabel="numbers per time point", title="size of a linear model (figure 4)", yscale="log")
    four.legend()
    for name, values in result["figure_5"]["errors_m"].items():
        five.semilogy(result["figure_5"]["times_s"], np.maximum(values, 1e-18), label=name)
    five.set(xlabel="time [s]", ylabel="distance [m]", title="farthest from node positions (figure 5)")
    five.legend()
    save_picture(figure, path, dpi=150)
