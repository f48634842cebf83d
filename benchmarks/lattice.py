"""Shapes of lattices of 10^2, 10^3 and 10^4 nodes: how time and memory grow.

    python benchmarks/lattice.py [--json] [--sizes 10 32 100 316]

A square net of strings with light diagonals, its edge fixed, its nodes shifted at random; the solver is chosen by size
(dense up to 300 free coordinates, sparse above, with factors that keep their pattern from 3000 on). Processor time is
that of all threads. Memory is the largest resident size after a solution less that before.
"""

from __future__ import annotations

import argparse
import json
import resource
import time

import numpy as np

from tensegrity_dynamics import Structure, StructureEquilibriumSolver


def lattice(size, seed=0):
    """size x size nodes; built from arrays, because names alone would take longer than the solution."""
    random = np.random.default_rng(seed)
    index = np.arange(size * size).reshape(size, size)
    nodes = np.stack((*np.divmod(np.arange(size * size), size), np.zeros(size * size)), axis=1).astype(float)
    nodes += random.normal(size=nodes.shape) * [0.2, 0.2, 0.1]
    along = np.concatenate(
        (
            np.stack((index[:-1], index[1:]), -1).reshape(-1, 2),
            np.stack((index[:, :-1], index[:, 1:]), -1).reshape(-1, 2),
        )
    )
    across = np.stack((index[:-1, :-1], index[1:, 1:]), -1).reshape(-1, 2)
    members = np.concatenate((along, across))
    count = len(members)
    edge = np.zeros((size, size), dtype=bool)
    edge[[0, -1]] = True
    edge[:, [0, -1]] = True
    return Structure(
        node_names=tuple(f"n{i}" for i in range(size * size)), nodes=nodes,
        member_names=tuple(f"m{i}" for i in range(count)), kinds=("tendon",) * len(along) + ("bar",) * len(across),
        members=members, stiffness=np.full(count, 100.0),
        rest_lengths=np.concatenate((np.full(len(along), 0.9), np.full(len(across), 0.9 * np.sqrt(2.0)))),
        masses=np.zeros(count), damping=np.zeros(count), fixed=edge.ravel(), node_masses=np.zeros(size * size),
        gravity=np.zeros(3),
    )  # fmt: skip


def measure(size):
    """Figures of one lattice."""
    structure = lattice(size)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin, used = time.perf_counter(), time.process_time()
    solver = StructureEquilibriumSolver(structure)
    shape = solver.solve()
    cold, cold_processor = time.perf_counter() - begin, time.process_time() - used
    begin = time.perf_counter()
    solver.solve(structure.rest_lengths * 0.999, start=shape)
    warm = time.perf_counter() - begin
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "nodes": size * size, "free_coordinates": int(structure.free.size), "members": len(structure.member_names),
        "cold_s": cold, "cold_processor_s": cold_processor, "warm_s": warm, "iterations": shape.iterations,
        "residual_N": shape.residual,
        "stable": shape.stable, "memory_MB": (after - before) / 1024.0,
    }  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--sizes", type=int, nargs="+", default=[10, 32, 100])
    options = parser.parse_args()
    measure(5), measure(15), measure(36)  # compile
    rows = [measure(size) for size in options.sizes]
    if options.json:
        print(json.dumps(rows, indent=2))
        return
    print(
        f"{'nodes':>6} {'free':>6} {'cold s':>8} {'cpu s':>8} {'warm s':>8} {'steps':>6} "
        f"{'residual N':>11} {'memory MB':>10} "
        f"{'growth of time':>15}"
    )
    last = None
    for row in rows:
        growth = (
            ""
            if last is None
            else f"x {row['cold_processor_s'] / last['cold_processor_s']:.1f} for x {row['nodes'] / last['nodes']:.1f}"
        )
        print(
            f"{row['nodes']:6} {row['free_coordinates']:6} {row['cold_s']:8.3f} {row['cold_processor_s']:8.3f} "
            f"{row['warm_s']:8.3f} {row['iterations']:6} {row['residual_N']:11.1e} {row['memory_MB']:10.1f} "
            f"{growth:>15}"
        )
        last = row


if __name__ == "__main__":
    main()
