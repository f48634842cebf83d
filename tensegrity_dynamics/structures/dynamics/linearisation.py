"""Linear models of structures (003, section 3.5): nodes, velocities and lengths as states; exact, sparse A and B.

| inputs | states | A and B for the six-bar of 003 | with its rods driven |
| --- | --- | --- | --- |
| rates | nodes, velocities, rest lengths; their rates are the inputs | 96 x 96, 96 x 24 | 102 x 102, 102 x 30 |
| accelerations | the same and the rates | 120 x 120, 120 x 24 | 132 x 132, 132 x 30 |
| lengths | nodes, velocities; rest lengths are the inputs, their rates count as zero | 72 x 72, 72 x 24 | x 30 |

Rigid bars are constraints of the accelerations, so that the full A has two zero eigenvalues for each bar. The model
reduced to the motions that the bars allow (six-bar: 60 coordinates besides lengths) has mass-orthonormal coordinates:
its inertia matrix is the identity.

The accelerations depend on the second derivative of the length of a driven rigid bar, J a = L'' + ..., so that a jump
of its rate u is a jump of the velocities, S du with S = M^-1 J' (J M^-1 J')^-1. The variable w = v - S (u - u0), with S
at x0, has no jumps. To first order w' = a without L'', so that

    p' = w + S (u - u0),   w' = a(p, w + S (u - u0), L, u),   L' = u

is a standard model with the same A, and with A_v S in B. The velocities of the states are w, `LinearModel.jump` has S.
In the same way, lengths as inputs displace nodes and velocities: p by S dL and v by -S d(J v)/dp S dL.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import TensegrityError, unknown_name
from ...linear_models.linear_model import LinearModel, Matrix
from ..structure import Structure
from .acceleration_slopes import fill_model, group_nodes, make_pattern, make_slopes
from .bar_constraints import dependent_bars
from .plant import make_plant
from .point_masses import Network, make_network, make_workspace
from .rod_masses import inverse_mass_matrix

INPUTS = ("rates", "accelerations", "lengths")
"""Inputs of a linear model: rates of the lengths, their accelerations, or the lengths."""


class StructureLinearisation:
    """Linear models of one structure at any state, in arrays that are allocated once.

    Args:
        structure: structure to linearise.
        driven: names of the members whose lengths are inputs; None for all tendons and springs with a free end.
        inputs: one of `INPUTS`.
        rigid_bars, air_damping, rod_mass, stabilisation: as in `Simulation`.

    Attributes:
        matrix, inputs_matrix: A and B (scipy csr) of the last `update`. state, rate: x0 and f (n,) of the last
            `update`.
        jump: see `LinearModel`, None without driven rigid bars.
        state_names, input_names: names of the entries.
        movable: the structure with free nodes in place of nodes held along some axes; the states contain all axes of
            these nodes.

    Raises:
        TensegrityError: a member or input is unknown, a member is repeated, or there is a block `collision`.
    """

    def __init__(
        self,
        structure: Structure,
        driven: Sequence[str] | None = None,
        *,
        inputs: str = "rates",
        rigid_bars: bool = True,
        air_damping: float = 0.0,
        rod_mass: str = "spread",
        stabilisation: tuple[float, float] | None = None,
    ) -> None:
        if inputs not in INPUTS:
            raise TensegrityError(unknown_name("kind of inputs", inputs, INPUTS))
        if structure.collision is not None:
            raise TensegrityError(
                "linear models know no collisions of rods; leave the block collision: out of the robot file."
            )
        self.structure, self.inputs = structure, inputs
        # nodes held along some axes are free here; the reduction to motions excludes the held coordinates
        rollers = structure.rollers
        self.movable = replace(structure, rollers=np.zeros_like(rollers)) if rollers.any() else structure
        self._network: Network = make_network(
            self.movable, rigid_bars=rigid_bars, air_damping=air_damping, rod_mass=rod_mass, stabilisation=stabilisation
        )
        self.driven = tuple(structure.tension_kinds) if driven is None else tuple(driven)
        self._chosen = np.array([structure.member(name) for name in self.driven], dtype=np.int64)
        if np.unique(self._chosen).size < self._chosen.size:
            raise TensegrityError("a member is driven twice; name each once.")
        self._is_rigid = np.isin(self._chosen, self._network.bars)
        self._jumps = bool(self._is_rigid.any()) and inputs != "accelerations" and stabilisation is None
        self._pattern, columns = make_pattern(self._network, self._chosen.tolist())
        self.work, self._nodes = make_workspace(self._network), np.array(structure.nodes)
        self._velocities, self._rest = np.zeros_like(self._nodes), np.array(structure.rest_lengths)
        self._free, self._count = self._network.free.size, self._chosen.size
        self._assemble(columns)
        self._name()
        self._bind()

    def _assemble(self, columns: NDArray[np.int64]) -> None:
        """Create the sparsity patterns of A and B, and the mapping from the data to their entries."""
        from scipy.sparse import bmat, csr_matrix, identity  # imported here to keep the package import fast

        f, e = self._free, self._count
        numbering = np.arange(1.0, columns.size + 1.0)
        rows = csr_matrix((numbering, columns, self._pattern.row_start), shape=(f, 2 * f + 3 * e))
        by_node, by_velocity = rows[:, :f], rows[:, f : 2 * f]
        by_length, by_rate, by_second = (rows[:, 2 * f + k * e : 2 * f + (k + 1) * e] for k in range(3))
        ones, of_lengths, none, tall = -identity(f), -identity(e), csr_matrix((e, e)), csr_matrix((f, e))
        if self.inputs == "rates":
            matrix = bmat([[None, ones, tall], [by_node, by_velocity, by_length], [None, None, none]])
            inputs = bmat([[tall], [by_rate], [of_lengths]])
        elif self.inputs == "accelerations":
            matrix = bmat([
                [None, ones, tall, None], [by_node, by_velocity, by_length, by_rate], [None, None, none, of_lengths],
                [None, None, none, none],
            ])  # fmt: skip
            inputs = bmat([[tall], [by_second], [none], [of_lengths]])
        else:
            matrix, inputs = bmat([[None, ones], [by_node, by_velocity]]), bmat([[tall], [by_length]])
        self.matrix, self.inputs_matrix = matrix.tocsr(), inputs.tocsr()
        self._at_once, self.jump = self.inputs_matrix, None
        stored = np.concatenate((self.matrix.data, self.inputs_matrix.data))
        taken = np.flatnonzero(stored > 0.0)
        self._target = np.full(columns.size, -1, dtype=np.int64)
        self._target[stored[taken].astype(np.int64) - 1] = taken
        for each in (self.matrix, self.inputs_matrix):
            each.data[:] = 1.0
        self.state, self.rate = np.zeros(self.matrix.shape[0]), np.zeros(self.matrix.shape[0])

    def _bind(self) -> None:
        """Pass the arrays of this object to the compiled functions; A and B share one data array."""
        values = np.concatenate((self.matrix.data, self._at_once.data))
        self.matrix.data, self._at_once.data = np.split(values, [self.matrix.nnz])
        self._plant = make_plant(
            self._network, (), (), self._nodes, self._velocities, self._rest, self.work,
            make_slopes(self._network, self._pattern, self._target, values, self.state, self.rate),
        )  # fmt: skip

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_plant"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._bind()

    def _name(self) -> None:
        nodes = [
            f"{name} {axis}" for name, i in zip(self.structure.node_names, self._network.position, strict=True)
            if i >= 0 for axis in "xyz"
        ]  # fmt: skip
        lengths = [f"length of {name}" for name in self.driven]
        self.input_names = tuple(
            {"rates": f"rate of {name}", "accelerations": f"acceleration of {name}", "lengths": f"length of {name}"}[
                self.inputs
            ]
            for name in self.driven
        )
        names = [*nodes, *(f"velocity of {name}" for name in nodes)]
        if self.inputs != "lengths":
            names += lengths
        if self.inputs == "accelerations":
            names += [f"rate of {name}" for name in self.driven]
        self.state_names = tuple(names)

    @property
    def forces(self) -> NDArray[np.float64]:
        """(n, 3) weight and loads of the nodes [N]."""
        return np.asarray(self._network.weight + self.structure.loads)

    def take_masses(self, network: Network) -> None:
        """Set masses and weight from another network of the same structure, for example one with payloads."""
        for name in ("node_masses", "inverse_value", "shared", "weight"):
            getattr(self._network, name)[:] = getattr(network, name)

    def update(
        self,
        nodes: NDArray[np.float64],
        velocities: NDArray[np.float64],
        rest_lengths: NDArray[np.float64],
        rates: NDArray[np.float64] | None = None,
        load: NDArray[np.float64] | None = None,
    ) -> None:
        """Fill matrix, inputs_matrix and rate at a state.

        Nodes held along some axes move freely here; `load` includes their support forces.

        Args:
            nodes, velocities: (n, 3) m and m/s. rest_lengths: (m,) m.
            rates: (e,) rates of the driven lengths [m/s], zero by default.
            load: (n, 3) forces in addition to those of members and ground [N]; by default weight and loads.

        Raises:
            TensegrityError: rigid bars are dependent at this state.
        """
        network, work, f, e = self._network, self.work, self._free, self._count
        self._nodes[:], self._velocities[:], self._rest[:] = nodes, velocities, rest_lengths
        network.load[:] = self.forces if load is None else load
        work.rest_rates[:] = 0.0
        network.bar_lengths[:] = self._rest[network.bars]
        if rates is not None:
            work.rest_rates[self._chosen] = rates
        if not fill_model(self._plant):
            rows = dependent_bars(network, self._nodes)
            names = ", ".join(self.structure.member_names[k] for k in rows) or "some"
            raise TensegrityError(f"rigid bars depend on each other here ({names}); use rigid_bars=False.")
        if self.inputs != "lengths":
            speed = work.rest_rates[self._chosen]
            self.state[2 * f : 2 * f + e], self.rate[2 * f : 2 * f + e] = self._rest[self._chosen], speed
            self.state[2 * f + e :] = speed[: self.state.size - 2 * f - e]  # accelerations as inputs: rates are states
        if self._jumps:
            from scipy.sparse import bmat, csr_matrix  # imported here to keep the package import fast

            _, swing, across, by_rate = self._bars_here(velocities)
            moved = across @ by_rate
            if self.inputs == "rates":
                self.jump = bmat([[csr_matrix((f, e))], [moved], [csr_matrix((e, e))]]).tocsr()
            else:
                self.jump = bmat([[moved], [-(across @ (swing @ moved))]]).tocsr()
            self.inputs_matrix = (self._at_once + self.matrix @ self.jump).tocsr()

    def model(
        self,
        nodes: NDArray[np.float64],
        velocities: NDArray[np.float64],
        rest_lengths: NDArray[np.float64],
        rates: NDArray[np.float64] | None = None,
        load: NDArray[np.float64] | None = None,
        *,
        reduced: bool = False,
    ) -> LinearModel:
        """Linear model at a state, with separate arrays; arguments and errors as for `update`.

        Args:
            reduced: whether it is reduced to the motions that the rigid bars and supports allow.
        """
        if not reduced:
            self.structure.check_no_rollers("a full linear model", "take the reduced one")
        self.update(nodes, velocities, rest_lengths, rates, load)
        if self.inputs == "accelerations":
            given = np.zeros(self._count)
        else:
            given = (self._rest if self.inputs == "lengths" else self.work.rest_rates)[self._chosen]
        full = LinearModel(
            _copied(self.matrix), _copied(self.inputs_matrix), self.rate.copy(), self.state.copy(), given,
            self.state_names, self.input_names, jump=self.jump,
        )  # fmt: skip
        if not reduced:
            return full
        lift, restrict, count = self.reduction(velocities)
        motions = [f"motion {k + 1}" for k in range(count)]
        names = (*motions, *(f"velocity of {name}" for name in motions), *self.state_names[2 * self._free :])
        return full.reduced(lift, restrict, names)

    def reduction(self, velocities: NDArray[np.float64]) -> tuple[Matrix, Matrix, int]:
        """Transformations from the reduced to the full state and back, and number of motions that the bars allow.

        With the M-orthonormal motions T, J T = 0, and D = d(J v)/dp: dp = T z + S dL, dv = T z' + S (dL' - D dp),
        S = M^-1 J' (J M^-1 J')^-1; and z = T' M dp, z' = T' M dv, exactly, because T' M S = 0.
        """
        from scipy.linalg import null_space
        from scipy.sparse import bmat, identity, lil_matrix

        network, f, e = self._network, self._free, self._count
        inverse = np.kron(inverse_mass_matrix(network), np.eye(3))[np.ix_(network.free, network.free)]
        groups, starts = group_nodes(network)
        jacobian, swing, solved, by_rate = self._bars_here(velocities)
        motions, lasting, count = lil_matrix((f, f)), lil_matrix((f, f)), 0
        for g, nodes in enumerate(groups):
            rows = np.concatenate([network.position[i] + np.arange(3) for i in nodes])
            root = np.linalg.cholesky(inverse[np.ix_(rows, rows)])
            held = np.eye(rows.size)[self.structure.rollers[list(nodes)].ravel()]
            weighted = np.vstack((jacobian[starts[g] : starts[g + 1]][:, rows].toarray(), held)) @ root
            basis = null_space(weighted) if weighted.shape[0] else np.eye(rows.size)
            block = np.ix_(rows, np.arange(count, count + basis.shape[1]))
            motions[block] = root @ basis
            lasting[block] = np.linalg.solve(root.T, basis)  # M T
            count += basis.shape[1]
        motions = motions[:, :count].tocsr()
        back = lasting[:, :count].T.tocsr()
        by_length, by_position = solved @ by_rate, -(solved @ swing)
        blocks = [[motions, None], [by_position @ motions, motions]]
        here = [[back, None], [None, back]]
        if self.inputs != "lengths":
            ones = identity(e)
            blocks[0].append(by_length)
            blocks[1].append(by_position @ by_length)
            blocks.append([None, None, ones])
            here = [[back, None, None], [None, back, None], [None, None, ones]]
            if self.inputs == "accelerations":
                blocks[0].append(None)
                blocks[1].append(by_length)
                blocks[2].append(None)
                blocks.append([None, None, None, ones])
                here = [[*row, None] for row in here] + [[None, None, None, ones]]
        return bmat(blocks).tocsr(), bmat(here).tocsr(), count

    def _bars_here(self, velocities: NDArray[np.float64]) -> tuple[Matrix, Matrix, Matrix, Matrix]:
        """J (c, f), D = d(J v)/dp (c, f), S = M^-1 J' (J M^-1 J')^-1 (f, c), and matrix (c, e) from lengths to bars."""
        from scipy.sparse import csr_matrix, lil_matrix

        network, work, f = self._network, self.work, self._free
        bars = network.bars.size
        jacobian, swing = lil_matrix((bars, f)), lil_matrix((bars, f))
        for c, k in enumerate(network.bars.tolist()):
            i, j = network.members[k].tolist()
            unit, relative = work.units[c], velocities[i] - velocities[j]
            turn = (relative - (unit @ relative) * unit) / work.lengths[k]
            for node, sign in ((i, 1.0), (j, -1.0)):
                first = network.position[node]
                if first >= 0:
                    jacobian[c, first : first + 3] = sign * unit
                    swing[c, first : first + 3] = sign * turn
        jacobian, swing = jacobian.tocsr(), swing.tocsr()
        rows = np.flatnonzero(self._is_rigid)
        bar_rows = [int(np.flatnonzero(network.bars == k)[0]) for k in self._chosen[rows]]
        by_rate = csr_matrix((np.ones(rows.size), (bar_rows, rows)), shape=(bars, self._count))
        if not bars:
            return jacobian, swing, csr_matrix((f, 0)), by_rate
        inverse = np.kron(inverse_mass_matrix(network), np.eye(3))[np.ix_(network.free, network.free)]
        across = csr_matrix(inverse) @ jacobian.T
        return jacobian, swing, csr_matrix(across @ np.linalg.inv((jacobian @ across).toarray())), by_rate


def _copied(matrix: Matrix) -> Matrix:
    """Copy of a csr matrix; `copy` of scipy checks the arrays again, which takes longer than filling them."""
    result = matrix.__new__(type(matrix))
    result.__dict__.update(matrix.__dict__)
    result.data, result.indices, result.indptr = matrix.data.copy(), matrix.indices.copy(), matrix.indptr.copy()
    return result
