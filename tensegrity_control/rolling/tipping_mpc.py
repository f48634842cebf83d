"""Model predictive control of tipping: rates of all cables that move the centre of mass over an edge of the face.

At every sampling time the structure is linearised at its present state (`linear_models`; exact A and B for nodes,
velocities and rest lengths) and discretised by the matrix exponential. Over the horizon, with inputs constant over
blocks,

    min  sum_j ((s_j - r_j) / a)^2 + w_u |u_j / u_max|^2 + w_l |(L_j - L_0) / size|^2
    s.t. |u_j| <= u_max,  L_low <= L_j <= L_high,  T_floor <= T_j <= T_limit

with s the distance of the centre of mass from the edge, seen along gravity, r its reference (constant outward rate), L
the rest lengths and T the tensions of the actuated cables. If the predicted tension with all cables at rest violates a
bound, that tension replaces the bound, so that zero rates are always feasible. Slack cables are predicted as tight
ones, since the bounds shall make them tight again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.linear_models.discretization import discretise
from tensegrity_dynamics.numerics.types import Array
from tensegrity_dynamics.structures.dynamics.linearisation import StructureLinearisation

from ..optimization.quadratic_program import SOLVED, Bounds, Objective, QPSolver, QuadraticProgram, Rows, Sizes
from ..optimization.solvers import make_solver
from .gait import GaitSettings, Roll, RollingBody

ITERATIONS = {"piqp": 60, "osqp": 10_000, "daqp": 1000}
"""Default iteration limits of the solvers for one horizon; other solvers use limits of their own."""


@dataclass(frozen=True)
class HorizonSettings:
    """Settings of the horizon.

    Attributes:
        blocks: number of blocks with constant inputs.
        block: s, duration of a block.
        period: s, between two horizons.
        solver: name of the solver of quadratic programs.
        iteration_limit: iteration limit of the solver; a horizon that needs more counts as not solved, on every machine
            alike. 0 for the limit in `ITERATIONS`.
        time_limit: s, wall-clock time for a horizon; 0 for no limit.
        speed: rate of the reference, in sizes of the structure per second.
        accuracy: a in the formula of the module, in sizes of the structure.
        effort, shape: w_u and w_l.
        stall: s within which the centre of mass must come nearer to the edge by a hundredth of the size.
    """

    blocks: int = 5
    block: float = 0.2
    period: float = 0.1
    solver: str = "piqp"
    iteration_limit: int = 0
    time_limit: float = 0.0
    speed: float = 0.2
    accuracy: float = 0.02
    effort: float = 0.03
    shape: float = 0.1
    stall: float = 2.0

    def __post_init__(self) -> None:
        above = ("block", "period", "speed", "accuracy", "stall")
        for name in (*above, "effort", "shape", "time_limit"):
            value = getattr(self, name)
            if not np.isfinite(value) or value < 0.0 or (name in above and value == 0.0):
                least = "above zero" if name in above else "of zero or more"
                raise TensegrityError(f"{name} of the horizon is {value}; give a finite number {least}.")
        if self.blocks < 1:
            raise TensegrityError(f"blocks of the horizon is {self.blocks}; give 1 or more.")
        if self.iteration_limit < 0:
            raise TensegrityError(
                f"iteration_limit is {self.iteration_limit}; give 1 or more, or 0 for that of the solver."
            )


@dataclass(frozen=True, eq=False)
class Horizon:
    """Result of one horizon.

    Attributes:
        rates: (a,) m/s, rates of the rest lengths now; None if the horizon was not solved in time.
        why: reason if it was not solved.
        margins: (blocks,) m, predicted distances from the edge.
        tensions: (blocks, a) N, predicted.
        iterations: iterations of the solver.
        seconds: wall-clock time.
    """

    rates: Array | None
    why: str
    margins: Array
    tensions: Array
    iterations: int
    seconds: float


class TippingMPC:
    """Horizons of one structure; matrices that do not change are computed once.

    Args:
        body: the body that rolls.
        settings: settings of the horizon.
        rate_margin: fraction of the rate limits of the actuators that is used.
        rigid_bars: whether the simulation keeps the bars at constant length.
    """

    def __init__(
        self, body: RollingBody, settings: HorizonSettings, rate_margin: float, *, rigid_bars: bool = True
    ) -> None:
        self.body, self.settings, self._most = body, settings, rate_margin * body.rate
        structure, actuators = body.structure, body.robot.actuators
        self._rows = body.robot.actuated_members()
        self._linear = StructureLinearisation(
            structure, [each.drives for each in actuators], inputs="rates", rigid_bars=rigid_bars
        )
        a, blocks = len(actuators), settings.blocks
        self._floor = np.array([each.minimum_tension for each in actuators])
        self._limit = np.array([each.effort for each in actuators])
        self._ends, self._pull = structure.members[self._rows], structure.stiffness[self._rows]
        self._sizes = Sizes(a * blocks, 0, 2 * a * blocks)
        # the accuracy of the interior-point solver is enough for rates of cables
        options = {"sharpen": False} if settings.solver == "piqp" else {}
        limit = settings.iteration_limit or ITERATIONS.get(settings.solver)
        self._solver: QPSolver = make_solver(settings.solver, self._sizes, limit, **options)
        # changes of length until the end of block j: sum over all blocks up to it
        self._sums = np.kron(np.tril(np.ones((blocks, blocks))), settings.block * np.eye(a))
        self._by_shape = self._sums / body.reader.size
        self._shape_cost = self._by_shape.T @ self._by_shape

    def solve(self, nodes: Array, positions: Array, edge: tuple[int, int], velocities: Array | None = None) -> Horizon:
        """Solve the horizon from nodes (n, 3) m and rest lengths (a,) m over an edge.

        Args:
            edge: indices of its two nodes, with the face on the left seen from above.
            velocities: (n, 3) m/s; None for rest.

        Raises:
            TensegrityError: rigid bars depend on each other.
        """
        began, settings, body = perf_counter(), self.settings, self.body
        structure, a, blocks = body.structure, len(body.names), settings.blocks
        rest = np.array(structure.rest_lengths)
        rest[self._rows] = positions
        model = self._linear.model(nodes, np.zeros_like(nodes) if velocities is None else velocities, rest, np.zeros(a))
        step = discretise(model, settings.block, "exponential")
        margin, by_nodes = margin_over(body, nodes, edge)
        # rows of outputs: the margin, then the tensions, as functions of the state
        outputs = np.zeros((1 + a, model.state.size))
        outputs[0, : 3 * len(nodes)] = by_nodes.ravel()
        i, j = self._ends.T
        arms = nodes[i] - nodes[j]
        lengths = np.linalg.norm(arms, axis=1)
        pulls = self._pull[:, None] * arms / lengths[:, None]
        each = np.arange(a)
        for axis in range(3):
            outputs[1 + each, 3 * i + axis] += pulls[:, axis]
            outputs[1 + each, 3 * j + axis] -= pulls[:, axis]
        outputs[1 + each, 6 * len(nodes) + each] -= self._pull
        now = np.concatenate(([margin], self._pull * (lengths - positions)))
        free, moves = np.empty((blocks, 1 + a)), np.zeros((blocks, 1 + a, blocks, a))
        deviation, reach = np.zeros(model.state.size), [np.asarray(step.inputs)]
        for block in range(blocks):
            deviation = step.matrix @ deviation + step.offset
            free[block] = now + outputs @ deviation
            for age, response in enumerate(reach):
                moves[block, :, block - age] = outputs @ response
            reach.append(step.matrix @ reach[-1])
        program = self._program(positions, margin, free, moves)
        result = self._solver.solve(program)
        found = np.nan_to_num(result.x).reshape(blocks, a) * self._most
        seconds = perf_counter() - began
        predicted = free + np.einsum("jobk,bk->jo", moves, found)
        why = ""
        if result.status != SOLVED or not np.isfinite(result.x).all():
            why = f"the solver found no solution for the horizon: {result.status} after {result.iterations} iterations"
        elif settings.time_limit and seconds > settings.time_limit:
            why = f"solving the horizon took {seconds:.3g} s, more than time_limit ({settings.time_limit:g} s)"
        rates = None if why else found[0]
        return Horizon(rates, why, predicted[:, 0], predicted[:, 1:], result.iterations, seconds)

    def _program(self, positions: Array, margin: float, free: Array, moves: Array) -> QuadraticProgram:
        settings, body = self.settings, self.body
        a, blocks, size = len(body.names), settings.blocks, body.reader.size
        most = np.tile(self._most, blocks)
        times = settings.block * np.arange(1, blocks + 1)
        desired = margin - settings.speed * size * times
        by_margin = moves[:, 0].reshape(blocks, a * blocks) / (settings.accuracy * size)
        miss = (free[:, 0] - desired) / (settings.accuracy * size)
        away = np.tile(positions - body.neutral, blocks) / size
        P = by_margin.T @ by_margin + settings.shape * self._shape_cost
        P[np.diag_indices(a * blocks)] += settings.effort / most**2
        q = by_margin.T @ miss + settings.shape * self._by_shape.T @ away
        # in units of the largest rate, so that the solver sees numbers of size one
        P, q = most[:, None] * P * most, most * q
        tensions = moves[:, 1:].reshape(blocks * a, blocks * a) * most
        quiet = free[:, 1:].ravel()
        floor, limit = (np.tile(each, blocks) for each in (self._floor, self._limit))
        low, high = (np.tile(each - positions, blocks) for each in (body.low, body.high))
        scale = np.concatenate((limit, np.full(a * blocks, size)))
        rows = Rows(
            np.concatenate((tensions, self._sums * most)) / scale[:, None],
            np.concatenate((np.minimum(floor, quiet) - quiet, np.minimum(low, 0.0))) / scale,
            np.concatenate((np.maximum(limit, quiet) - quiet, np.maximum(high, 0.0))) / scale,
        )
        ones = np.ones(a * blocks)
        return QuadraticProgram.of(Objective(P, q), rows=rows, bounds=Bounds(-ones, ones))


def margin_over(body: RollingBody, nodes: Array, edge: tuple[int, int]) -> tuple[float, Array]:
    """m, distance of the centre of mass inside an edge of the face, seen along gravity, and its gradient by nodes (n,
    3).

    The edge leads from its first to its second node with the face on its left, seen from above.
    """
    up, masses = body.reader.up, body.reader.masses / body.reader.masses.sum()
    first, second = nodes[edge[0]], nodes[edge[1]]
    along = second - first
    along = along - (along @ up) * up
    length = float(np.linalg.norm(along))
    inward = np.cross(up, along) / length
    arm = masses @ nodes - first
    margin, part = float(arm @ inward), float(arm @ along) / length**2
    slope = masses[:, None] * inward
    # the edge moves with both feet, in proportion to the position of the centre of mass along it
    slope[edge[0]] -= (1.0 - part) * inward
    slope[edge[1]] -= part * inward
    return margin, slope


def edge_towards(body: RollingBody, nodes: Array, feet: tuple[int, ...], toward: Array) -> tuple[int, int] | None:
    """Edge of a face that a displacement (2,) m crosses first, with the face on its left; None without a polygon."""
    up, centre = body.reader.up, body.reader.centre(nodes)
    best, found = -np.inf, None
    for i in feet:
        for j in feet:
            if i == j:
                continue
            along = nodes[j] - nodes[i]
            inward = np.cross(up, along - (along @ up) * up)
            inward = inward / np.linalg.norm(inward)
            if any((nodes[k] - nodes[i]) @ inward < -1e-6 * body.reader.size for k in feet):
                continue
            distance = max(float((centre - nodes[i]) @ inward), 1e-9)
            rate = -float(inward[:2] @ toward) / distance  # inverse of the time at which the path crosses the edge
            if rate > best:
                best, found = rate, (i, j)
    return found if best > 0.0 else None


class PredictedRoll(Roll):
    """Roll by horizons that wind all cables. If a horizon is not solved in time, one cable continues as in the gait.

    If the structure falls onto a face on the way to the final one, the next tip starts as soon as the fall is over,
    without waiting for rest: one cable alone moves the structure over both edges as well.

    Args:
        mpc: horizons of the structure.
        onto: final face of the roll.
        end: (2,) m, position at the end.
        report: callback for the result of every horizon.
    """

    def __init__(
        self, body: RollingBody, cable: int, settings: GaitSettings, time: float, nodes: Array, positions: Array, *,
        mpc: TippingMPC, onto: tuple[int, ...], end: Array, report: Callable[[Horizon], None],
    ) -> None:  # fmt: skip
        super().__init__(body, cable, settings, time, nodes, positions)
        self._mpc, self._report, self._onto, self._end = mpc, report, onto, end
        self._rates = np.zeros(len(body.names))
        self.why, self._left = "", np.inf
        self._before = (time, np.array(nodes))
        self._velocities = np.zeros_like(nodes)
        self._begin_edge(time, nodes)

    def _begin_edge(self, time: float, nodes: Array) -> None:
        displacement = self._end - self._body.position(nodes)
        self._left = float(np.linalg.norm(displacement))
        self._edge = edge_towards(self._body, nodes, self._face, displacement)
        if self._edge is None:
            self.why = "no edge of the face lies between the centre of mass and the goal"
        self._next, self._nearest, self._nearer_at = time, np.inf, time

    def command(self, time: float, nodes: Array) -> Array:
        last, before = self._before
        if time > last:
            self._velocities, self._before = (nodes - before) / (time - last), (time, np.array(nodes))
        return super().command(time, nodes)

    def _winds(self, time: float, nodes: Array, step: float) -> bool:
        if self.why or self._edge is None:
            return super()._winds(time, nodes, step)
        settings, size = self._mpc.settings, self._body.reader.size
        margin, _ = margin_over(self._body, nodes, self._edge)
        if margin < self._nearest - 0.01 * size:
            self._nearest, self._nearer_at = margin, time
        if time - self._nearer_at > settings.stall:
            self.why = f"the centre of mass came no closer to the tipping edge for {settings.stall:g} s"
            return super()._winds(time, nodes, step)
        if time >= self._next - 1e-9:
            horizon = self._mpc.solve(nodes, self._positions, self._edge, self._velocities)
            self._next = time + settings.period
            self._report(horizon)
            if horizon.rates is None:
                self.why = horizon.why
                return super()._winds(time, nodes, step)
            self._rates = horizon.rates
        moved = np.clip(self._positions + step * self._rates, self._body.low, self._body.high)
        self._positions[:] = moved
        return True

    def _falls(self, step: float) -> None:
        """Return to the neutral lengths already during the fall: with many cables wound in, the fall would continue
        over the next face."""
        if self.why:
            return
        most = self._settings.rate_margin * self._body.rate * step
        self._positions += np.clip(self._body.neutral - self._positions, -most, most)

    def _fallen(self, time: float, nodes: Array, step: float) -> None:
        """Tip the face after the fall, if it is nearer to the end and not the final face."""
        reader = self._body.reader
        feet = reader.touching(nodes)
        nearer = np.linalg.norm(self._end - self._body.position(nodes)) < self._left
        if self.why or not nearer or set(self._onto) <= set(feet) or time - self._since >= self._settings.settling:
            super()._fallen(time, nodes, step)
        elif reader.margin(nodes, feet) <= 0.0:  # it still rocks
            self._falls(step)
        else:
            self._face, self._landed, self._since = feet, np.inf, time
            self._begin_edge(time, nodes)
