"""Static equilibrium of a mechanism with held joints and applied efforts: Newton's method on the full model.

With closed loops and held joints, the remaining motions are G y (000, 1.2.32). At an equilibrium the reduced force
R = G' (tau + p - c) vanishes. Its derivative along G gives the reduced stiffness -dR/dy. This matrix is not exactly
symmetric, because the cable efforts follow the convention of 000 (3.1.9). The stability is therefore determined from
the eigenvalues of (G' M G)^-1 (-dR/dy): an equilibrium is stable if all real parts are positive. A cable at the
transition between slack and taut resists motion in one direction only; there the direction of the least stiffness
determines the stability (`numerics.one_sided`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import NoEquilibriumError, TensegrityError
from ...numerics.compilation import QuickCall, compiled
from ...numerics.one_sided import weakest_direction
from ...numerics.short_repr import ShortRepr
from .. import joints
from ..contact_readings import (
    point_centres,
    point_jacobians,
    point_normals,
    read_contacts,
    set_standing,
    touching_points,
)
from ..dynamics.equations_of_motion import evaluate
from ..dynamics.pulling_multipliers import PullingRows
from ..dynamics.rigid_tensions import rigid_strands, route_tensions
from ..dynamics.tangents import make_tangent_workspace, static_slopes
from ..kinematics.configuration_space import configuration_rate, normalise_quaternions
from ..kinematics.loop_closure import close_loops
from ..kinematics.loop_reduction import ReductionWorkspace, independent_basis, make_reduction_workspace, reduce_rows
from ..loads import LOAD_FORCE
from ..mechanism import Mechanism, check_state
from ..route_readings import RouteReading, read_routes, set_slips, slips, strand_tensions
from ..routing.columns import FINE, FIRST, FRICTION, LENGTH, REST_NOW, SLACK, SLIP, STATUS, STRAIN, TENSION, WHERE, WRAP
from ..routing.route import route_problem
from ..routing.slip import hold_contacts
from ..touch.columns import NORMAL, RADIUS
from ..touch.parts import contact_array
from ..workspace import StageWorkspace, Workspace, make_stage_workspace, make_workspace
from .standing import Standing, coordinates_of, friction_used

MOST_DIRECT_STEPS = 40
"""Largest number of Newton steps with the actual ground stiffness, before the solver continues with softer grounds."""
SOFTEST_SINKING = 0.05
"""Penetration of a single point that carries the whole load into the softest ground, as a fraction of the size of the
contact geometry. It defines the stiffness of the softest ground."""
STIFFER = 10.0
"""Ratio of the stiffness of two successive grounds."""
ROUNDINGS = 32.0
"""Rounding error of the length of a strand, in units of the machine precision. The length is a sum of projected
positions and arcs. Each term is rounded, and so are the coordinates."""
SLIDES = 1e-7
"""Tolerance by which the tensions beside a contact may exceed the friction bound: relative, and absolute in N."""
OVERSHOT = 0.5
"""Largest opposing force along a step at its end, relative to the driving force at its start. Above this value the
step is shortened."""
MOST_SHORTENED = 20
"""Largest number of times that one step is shortened."""
FALLING = 0.5
"""Factor of the inertia shift after a whole step with a falling residual, if that fell less. A stiff rope shifts by so
much inertia that a load on it swings down in steps of a thousandth of its way."""
NO_STIFFNESS = 1e-7
"""Threshold, relative to the largest stiffness per inertia, below which a motion may have no stiffness."""
IDLE_DISTANCE, IDLE_STEPS, IDLE_FORCE = 0.1, 10, 1e-4
"""Test of an idle motion: distance along the motion [rad or m], number of steps, and tolerance of the force relative
to the force of the stiffest motion over this distance."""
EDGE_STRAIN = 1e-8
"""Strain below which a cable counts as being at the transition between slack and taut (rounding error)."""

ROLLS = (
    " On a slope a round foot rolls if its body is free to turn, as struts are about their axis between cables that "
    "end on it: attach cables off the axis, or make the foot much smaller."
)

SLACK_OR_FAR = "Tendons may be slack, or the start is too far; start nearer or tighten them."
ONLY_PUSHED = (
    "It may fall, or the start is too far. Feet push against the whole load here; friction that bears a moment about "
    "the vertical is not searched for: leave this moment out."
)


class LostRouteError(NoEquilibriumError):
    """A routed cable leaves its route in the shape found: it leaves the plane of a pulley, or its drum is empty."""


@compiled
def reduced_force(flat, q, effort, held, reuse, force, work, reduction, stages):
    """Fill force (y,) with R at closed loops and return y.

    reduction.basis holds G, reduction.independent the free coordinates.
    """
    dofs = held.shape[0]
    evaluate(flat, q, stages.v_sum, work)
    for d in range(dofs):
        reduction.effort[d] = effort[d] + work.passive[d] - work.bias[d]
        if held[d]:
            for r in range(work.loop.shape[0]):
                work.loop[r, d] = 0.0
    work.loop_bias[:] = 0.0
    reduce_rows(work.loop, work.loop_bias, reduction, reuse)
    for d in range(dofs):
        if held[d]:
            reduction.is_pivot[d] = True  # neither passive nor free
    count = independent_basis(dofs, reduction)
    for i in range(count):
        force[i] = 0.0
        for d in range(dofs):
            force[i] += reduction.basis[d, i] * reduction.effort[d]
    return count


def set_joint_position(mechanism: Mechanism, q: NDArray, name: str, value: ArrayLike) -> None:
    """Write the position of a joint into q (nq,). For a pulley, the cable is wound or unwound at the same taut length.

    The loop equations alone do not distinguish full turns of a pulley.
    """
    at = mechanism.positions_of(name)
    before = np.array(q[at])
    q[at] = value
    pulley = mechanism.joint(name)
    for joint in mechanism.joints:
        if pulley.kind == "revolute" and joint.parent == pulley.body and joint.kind.startswith("involute"):
            at_cable = mechanism.positions_of(joint.name)
            kind = joints.JOINT_KINDS[joint.kind]
            length = joints.cable_length(kind, joint.radius, q[at_cable])
            q[at_cable.start] -= float((q[at] - before)[0] * (pulley.axis @ np.array([0.0, 0.0, 1.0])))
            rest = joint.radius * q[at_cable.start]
            if kind == joints.INVOLUTE_EPSILON and rest > 0.0:
                q[at_cable.start + 1] = length / rest - 1.0
            elif kind == joints.INVOLUTE_U:
                q[at_cable.start + 1] = length - rest


def _whole_load(mechanism: Mechanism) -> NDArray[np.float64]:
    """(3,) total external force on a mechanism [N]: weight plus applied loads."""
    flat = mechanism.flat
    return np.asarray(flat.mass.sum() * flat.gravity + flat.loads[:, LOAD_FORCE : LOAD_FORCE + 3].sum(axis=0))


def standing_direction(mechanism: Mechanism) -> NDArray[np.float64]:
    """(3,) unit vector opposite to the load of a mechanism that only the ground supports; zeros without load.

    Raises:
        NoEquilibriumError: the mechanism would slide on the plane or be lifted off.
    """
    ground, load = mechanism.ground, _whole_load(mechanism)
    size = float(np.linalg.norm(load))
    if size == 0.0 or ground is None:
        return np.zeros(3)
    toward = -load / size
    if ground.hills is None:
        along = float(toward @ ground.normal)
        if not along > 0.0:
            raise NoEquilibriumError("the loads lift it off its ground, and nothing else holds it.")
        need = float(np.sqrt(max(0.0, 1.0 / along**2 - 1.0)))
        if need > ground.friction * (1.0 + 1e-12) and need > 1e-9:
            raise NoEquilibriumError(
                f"it slides: to stand it needs a friction coefficient of {need:.4g}, its ground has "
                f"{ground.friction:.4g}. Make the slope or the load smaller, or the friction larger."
            )
    return np.asarray(toward)


@dataclass(frozen=True, eq=False, repr=False)
class MechanismEquilibrium(ShortRepr):
    """An equilibrium of a mechanism.

    Attributes:
        q: (nq,) configuration.
        positions: (b, 3) m. rotations: (b, 3, 3). Poses of the bodies in the world frame, in sweep order.
        strain: strain of each cable. tension: tension of each cable [N].
        effort: (nv,) effort [N or N m] that holds the held joints; for the other joints the applied effort.
        residual: largest remaining reduced force [N or N m].
        iterations: number of iterations of Newton's method. stable: stability, see the module.
        softest: lowest eigenvalue of the symmetric part of the reduced stiffness, for G with unit columns.
        slip: (e,) slip [m] at the elements of routed cables, for a straight path from the start configuration.
        routes: readings of the routed cables by name.
        contacts: for each contact part that touches, by name, (k, 2, 3): contact points [m] and ground forces [N].
        idle: (nv, m) motions that change no force, such as the spin of a strut on ball joints. They do not count for
            `stable` and `softest`.
        loose: coordinates of a motion that no stiffness resists, if the equilibrium is not stable; else empty.
        standing: friction at the feet of a robot that only the ground holds; None for other robots.
    """

    q: NDArray[np.float64]
    positions: NDArray[np.float64]
    rotations: NDArray[np.float64]
    strain: NDArray[np.float64]
    tension: NDArray[np.float64]
    effort: NDArray[np.float64]
    residual: float
    iterations: int
    stable: bool
    softest: float
    slip: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    routes: Mapping[str, RouteReading] = field(default_factory=dict)
    contacts: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    idle: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 0)))
    loose: str = ""
    standing: Standing | None = None


class MechanismEquilibriumSolver:
    """Solver for equilibria of one mechanism; its work arrays are allocated once and used for every solution.

    Args:
        mechanism: the mechanism.
        held: names of the joints with prescribed coordinates, such as the pulleys.

    Attributes:
        stands: whether only the ground holds the mechanism.
    """

    def __init__(self, mechanism: Mechanism, held: tuple[str, ...] = ()) -> None:
        self.mechanism = mechanism
        self._flat = mechanism.flat
        self._held = np.zeros(mechanism.velocity_count, dtype=np.bool_)
        for name in held:
            self._held[mechanism.velocities_of(name)] = True
        self._work: Workspace = make_workspace(self._flat)
        self._reduction: ReductionWorkspace = make_reduction_workspace(self._flat)
        self._stages: StageWorkspace = make_stage_workspace(self._flat)
        self._force, self._still = np.zeros(mechanism.velocity_count), np.zeros(mechanism.velocity_count)
        self._evaluate, self._close_loops = QuickCall(evaluate), QuickCall(close_loops)
        self._reduced_force, self._static_slopes = QuickCall(reduced_force), QuickCall(static_slopes)
        self._strands, self._pulling = rigid_strands(mechanism), PullingRows(mechanism)
        self._tangent = make_tangent_workspace(self._flat, mechanism.position_count)
        self._ground = mechanism.ground
        self._load = float(np.linalg.norm(_whole_load(mechanism)))
        self.stands = mechanism.touches and mechanism.is_free
        self.stand()

    def stand(self) -> None:
        """Let the ground push against the load of a robot that only the ground holds."""
        if self.stands:
            set_standing(self._work, standing_direction(self.mechanism))

    def solve(
        self,
        start: ArrayLike,
        positions: Mapping[str, ArrayLike] | None = None,
        effort: ArrayLike | None = None,
        *,
        slip: ArrayLike | None = None,
        tolerance: float = 1e-10,
        maximum_iterations: int = 300,
    ) -> MechanismEquilibrium:
        """Find the equilibrium near a start configuration.

        Args:
            start: (nq,) warm start; the loops do not need to be closed exactly.
            positions: joint positions by name, which replace those of the start (for the held joints).
            effort: (nv,) applied efforts [N or N m].
            slip: (e,) slip [m] at the elements of routed cables at the start of the path to this equilibrium; zero by
                default.
            tolerance: tolerance of the largest reduced force [N or N m], relative to the largest effort.

        Raises:
            NoEquilibriumError: Newton's method does not converge, or the loops cannot close. The message states the
                remaining force.
        """
        set_slips(self._work, np.zeros(len(self._work.route_state)) if slip is None else np.asarray(slip))
        if not self._strands.size:
            return self._solve(start, positions, effort, tolerance, maximum_iterations)
        self._work.route_state[:, SLACK] = 0.0
        try:
            return self._solve_one_sided(start, positions, effort, tolerance, maximum_iterations)
        except NoEquilibriumError:
            self._at(np.array(start, dtype=np.float64))
            gaps = self._gaps()
            if not gaps.min() < -EDGE_STRAIN:
                raise
            self._work.route_state[self._strands, SLACK] = gaps < -EDGE_STRAIN
            return self._solve_one_sided(start, positions, effort, tolerance, maximum_iterations)

    def _gaps(self) -> NDArray[np.float64]:
        """(s,) path length minus rest length of the inextensible strands, relative to their rest length."""
        state = self._work.route_state[self._strands]
        return np.asarray(state[:, LENGTH] / state[:, REST_NOW] - 1.0)

    def _solve_one_sided(
        self,
        start: ArrayLike,
        positions: Mapping[str, ArrayLike] | None,
        effort: ArrayLike | None,
        tolerance: float,
        maximum_iterations: int,
    ) -> MechanismEquilibrium:
        """As `solve`; inextensible strands under compression become slack, those that are too short become taut
        again."""
        state = self._work.route_state
        for _ in range(4 * self._strands.size + 4):
            shape = self._solve(start, positions, effort, tolerance, maximum_iterations)
            slack = state[self._strands, SLACK] != 0.0
            pushes = np.where(slack, 0.0, -state[self._strands, TENSION])
            gaps = np.where(slack, self._gaps(), 0.0)
            if gaps.max() > EDGE_STRAIN:
                state[self._strands[int(np.argmax(gaps))], SLACK] = 0.0
            elif pushes.max() > 0.0:
                state[self._strands[int(np.argmax(pushes))], SLACK] = 1.0
            else:
                self._refuse_slip()
                return shape
            start = shape.q
        raise NoEquilibriumError(
            "no equilibrium found: rigid cables go slack and taut in turns; start nearer, or let them stretch."
        )

    def _refuse_slip(self) -> None:
        """Raise NoEquilibriumError if an inextensible strand would slip over a contact at rest."""
        elements, state = self._flat.route_elements, self._work.route_state
        for cable, route in zip(self._flat.routed_cables, self.mechanism.routes, strict=True):
            strands = int(cable[FIRST]) + route.holding if route.rigid else np.zeros(0, dtype=np.int64)
            for behind, e in pairwise(strands.tolist()):
                low, high = sorted((state[behind, TENSION], state[e, TENSION]))
                bound = np.exp(min(elements[e, FRICTION] * max(state[e, WRAP], 0.0), 700.0))
                if np.isfinite(elements[e, FRICTION]) and high > bound * low * (1.0 + SLIDES) + SLIDES:
                    raise NoEquilibriumError(
                        f"no equilibrium: cable {route.name} slips at route[{e - int(cable[FIRST])}], where it would "
                        f"have {low:.4g} N on one side and {high:.4g} N on the other, and friction holds {bound:.4g} "
                        "times as much; give it more friction, or simulate from the start of the file."
                    )

    def route_tensions_at(self, q: NDArray[np.float64]) -> dict[str, tuple[float, ...]]:
        """Tensions [N] of the strands of elastic routed cables, by cable name, at rest at q (nq,)."""
        self._at(q)
        return strand_tensions(self.mechanism, self._work)

    def positions_at(self, q: NDArray[np.float64]) -> NDArray[np.float64]:
        """(b, 3) positions [m] of the bodies at q (nq,)."""
        self._at(q)
        return self._work.position.copy()

    def _at(self, q: NDArray) -> None:
        """Evaluate the mechanism at a configuration with zero velocity."""
        self._evaluate(self._flat, np.ascontiguousarray(q, dtype=np.float64), self._still, self._work)

    def _solve(
        self,
        start: ArrayLike,
        positions: Mapping[str, ArrayLike] | None,
        effort: ArrayLike | None,
        tolerance: float,
        maximum_iterations: int,
    ) -> MechanismEquilibrium:
        """As `solve`; inextensible strands stay taut or slack as they are marked."""
        mechanism = self.mechanism
        zero = np.zeros(mechanism.velocity_count)
        q, _ = check_state(mechanism, np.array(start, dtype=np.float64), zero)
        q = np.array(q)
        for name, value in (positions or {}).items():
            if not np.all(np.isfinite(value)):
                raise TensegrityError(f"the position of joint {name} is not finite; give numbers in rad or m.")
            set_joint_position(mechanism, q, name, value)
        self._check_ends(q)
        tau = np.array(zero if effort is None else effort, dtype=np.float64)
        if not self._close(q):
            raise NoEquilibriumError("the loops cannot close near the start; start nearer or check the positions.")
        direct = min(MOST_DIRECT_STEPS, maximum_iterations) if self.stands else maximum_iterations
        found, worst, steps, is_there = self._descend(q, tau, tolerance, direct)
        if not is_there and self.stands:
            found, worst, more, is_there = self._stiffen(q, tau, tolerance, maximum_iterations)
            steps += more
        if is_there:
            self._check_ends(found)
            self._check_routes(found)
            return self._shape(found, tau, worst, steps)
        raise NoEquilibriumError(
            f"no equilibrium found: a force of {worst:.3g} is left after {steps + 1} Newton steps. "
            f"{ONLY_PUSHED if self.stands else SLACK_OR_FAR}" + (ROLLS if self.stands and self._may_roll() else "")
        )

    def _may_roll(self) -> bool:
        """Whether round contact parts stand on a slope; if their body can turn, they roll in spite of friction."""
        along = abs(float(self._ground.normal @ _whole_load(self.mechanism))) if self._ground is not None else 0.0
        return along < (1.0 - 1e-9) * self._load and bool(np.any(self.mechanism.contact_points[:, RADIUS] > 0.0))

    # -- parts ----------------------------------------------------------------------------------------------------

    def _stiffen(
        self, q: NDArray, tau: NDArray, tolerance: float, maximum_iterations: int
    ) -> tuple[NDArray[np.float64], float, int, bool]:
        """As `_descend`, with a sequence of ground stiffnesses from a soft one to the actual one (continuation).

        Each solution is the start of the next one. On a stiff ground, feet that alternately touch and leave can
        prevent the convergence of Newton's method. On a ground so soft that all feet touch, this does not occur, and
        the solution is near that on a slightly stiffer ground.
        """
        mechanism, real = self.mechanism, self._ground
        assert real is not None
        self._at(q)
        size = float(np.linalg.norm(np.ptp(point_centres(mechanism, q), axis=0)))
        size = max(size, float(mechanism.contact_points[:, RADIUS].max(initial=0.0)), 1e-6)
        stiffness = self._load / (SOFTEST_SINKING * size)
        steps, shift, flat = 0, 1.0, self._flat
        try:
            while 0.0 < stiffness < real.stiffness / STIFFER**0.5:
                self._ground = replace(real, stiffness=stiffness)
                touching = contact_array(self._ground, mechanism.contact_parts, mechanism.body_index)
                self._flat = flat._replace(contact=touching)
                q, _, more, is_there = self._descend(q, tau, 1e-6, maximum_iterations, shift)
                steps, shift = steps + more, 0.0 if is_there else 1.0
                stiffness *= STIFFER
        finally:
            self._flat, self._ground = flat, real
        found, worst, more, is_there = self._descend(q, tau, tolerance, maximum_iterations, shift)
        return found, worst, steps + more, is_there

    def _rounding(self, q: NDArray) -> float:
        """Rounding error [N or N m] of the forces of the ground and of routed cables, due to rounded positions.

        No iteration can reach a smaller residual. `_residual` must have been called at q before.
        """
        found, digit = 0.0, float(np.finfo(np.float64).eps)
        if self.mechanism.routes:
            strands = self._work.route_state[self._work.route_state[:, STRAIN] > 0.0]
            reach = max(float(np.abs(self._work.position).max(initial=0.0)), float(strands[:, LENGTH].max(initial=0.0)))
            stiffness = float(np.sum(strands[:, TENSION] / (strands[:, STRAIN] * strands[:, REST_NOW])))
            found += ROUNDINGS * digit * reach * stiffness
        if self.mechanism.touches and self._ground is not None:
            centres = point_centres(self.mechanism, q)
            reach = float(np.abs(centres).max(initial=0.0))
            found += digit * self._ground.stiffness * reach * len(centres)
        return found

    def _descend(
        self, q: NDArray, tau: NDArray, tolerance: float, maximum_iterations: int, shift: float = 1.0
    ) -> tuple[NDArray[np.float64], float, int, bool]:
        """Newton's method from q, with an initial inertia shift (see `_step`).

        Returns the final configuration, the largest remaining force, the number of steps, and whether this force is
        within the tolerance.
        """
        last, worst, iteration, taken = np.inf, np.inf, 0, 1.0
        for iteration in range(maximum_iterations + 1):
            # the pivots of this iterate are also used for all trial steps that are compared with it
            force = self._residual(q, tau, reuse=False)
            scale = 1.0 + float(np.max(np.abs(self._reduction.effort), initial=0.0))
            worst = float(np.max(np.abs(force), initial=0.0))
            if worst <= tolerance * scale + self._rounding(q):
                return q, worst, iteration, True
            # a falling residual shifts the step towards Newton's method, a growing one towards gradient descent
            if worst < 1e-3 * scale:
                shift = 0.0
            elif worst > last:
                # a cycle between slack and taut ends only if the steps become shorter and shorter
                shift = min(10.0 ** (1 + iteration // 75), max(1.0, 2.0 * shift))
            elif np.isfinite(last):
                shift *= min(max(0.1, worst / last), FALLING if taken == 1.0 else 1.0)
            last = worst
            stiffness, basis = self._stiffness(q, tau, force.size)
            if not np.isfinite(stiffness).all():  # a strand has zero length within the finite differences
                break
            try:
                step = self._step(q, stiffness, basis, force, shift)
            except np.linalg.LinAlgError:  # so far away that the inertia is lost in the rounding error
                break
            moved, taken = self._search(q, tau, basis, step, force)
            if moved is None:
                break
            q = moved
        return q, worst, iteration, False

    def _check_ends(self, q: NDArray) -> None:
        for cable in self.mechanism.cables:
            joint = self.mechanism.joint(cable.joint)
            rest = float(joint.radius * q[self.mechanism.positions_of(joint.name).start])
            if not 0.0 < rest <= cable.longest:
                raise NoEquilibriumError(
                    f"cable {cable.name} would have {rest:.4g} m off its pulley, but it is {cable.longest:.4g} m long; "
                    "it cannot be wound past its end."
                )

    def _check_routes(self, q: NDArray) -> None:
        """Raise LostRouteError where a routed cable cannot follow its route; simulations stop there, too."""
        self._at(q)
        for route, reading in zip(self.mechanism.routes, self._work.route_results, strict=True):
            if reading[STATUS] != FINE:
                problem = route_problem(route, int(reading[STATUS]), int(reading[WHERE]))
                raise LostRouteError(f"cable {route.name} cannot follow the shape found: {problem}")

    def _close(self, q: NDArray, reuse: bool = False) -> bool:
        args = (self._flat, q, self._held, 1e-13, reuse, self._work, self._reduction, self._stages)
        return bool(self._close_loops(*args) <= 1e-10)

    def _residual(self, q: NDArray, tau: NDArray, reuse: bool = True) -> NDArray[np.float64]:
        args = (self._flat, q, tau, self._held, reuse, self._force, self._work, self._reduction, self._stages)
        return self._force[: self._reduced_force(*args)].copy()

    def _moved(self, q: NDArray, step: NDArray) -> NDArray[np.float64] | None:
        result = np.array(q)
        configuration_rate(self._flat, q, step, self._stages.q_rate)
        result += self._stages.q_rate
        normalise_quaternions(self._flat, result)
        return result if self._close(result, reuse=True) else None

    def moved(self, q: NDArray, step: NDArray) -> NDArray[np.float64]:
        """Configuration (nq,) after a displacement (nv,), held joints fixed and loops closed; q if they cannot
        close."""
        self._close(np.array(q))
        found = self._moved(q, np.asarray(step, dtype=np.float64))
        return np.array(q) if found is None else found

    def _stability(self, q: NDArray, tau: NDArray, count: int) -> tuple[bool, float, NDArray, str, tuple[str, float]]:
        """Stability of an equilibrium, its lowest stiffness, its idle motions (nv, m), coordinates of a motion that no
        stiffness resists, and those of one that nothing but friction resists, with its rate of growth.

        `_residual` must have been called at q before.
        """
        flat, strain = self._flat, self._work.strain.copy()
        basis = self._reduction.basis[:, :count].copy()
        usual = _difference_steps(basis)
        stiffness, gradients = self._slopes(q, tau, basis, usual)
        edge = np.flatnonzero((np.abs(strain) <= EDGE_STRAIN) & (np.abs(gradients).max(axis=1, initial=0.0) > 0.0))
        clear = np.setdiff1d(np.arange(strain.size), edge)
        # finite difference steps so small that no cable changes between slack and taut
        steps = usual.copy()
        for c in clear:
            steps = np.minimum(steps, 0.3 * abs(strain[c]) / np.maximum(np.abs(gradients[c]), 1e-300))
        area = flat.cable_area.copy()
        area[edge] = 0.0
        self._flat = flat._replace(cable_area=area)
        try:
            if edge.size or np.any(steps < usual):
                stiffness, _ = self._slopes(q, tau, basis, steps)
            self._at(q)
        finally:
            self._flat = flat
        reduced = basis.T @ self._work.mass @ basis
        sliding = self._grows_sliding(stiffness, reduced, basis) if self.stands and not edge.size else ("", 0.0)
        stiffness = stiffness + self.held_by_friction(basis)
        idle = np.zeros((basis.shape[0], 0))
        if not edge.size:
            moving = self._idle(q, tau, basis, stiffness, reduced)
            if moving.shape[1]:
                rest = np.linalg.qr(reduced @ moving, mode="complete")[0][:, moving.shape[1] :]
                idle, basis = basis @ moving, basis @ rest
                reduced, stiffness = rest.T @ reduced @ rest, rest.T @ stiffness @ rest
        rates, motions = np.linalg.eig(np.linalg.lstsq(reduced, stiffness, rcond=None)[0])
        stable = not rates.size or bool(np.min(rates.real) > 1e-9 * np.max(np.abs(rates)))
        loose = "" if stable else coordinates_of(self.mechanism, (basis @ motions[:, np.argmin(rates.real)]).real)
        size = np.linalg.norm(basis, axis=0)
        scaled = stiffness / np.outer(size, size)
        scaled = 0.5 * (scaled + scaled.T)
        if not edge.size:
            softest = float(np.linalg.eigvalsh(scaled)[0]) if scaled.size else np.inf
            return stable, softest, idle, loose, sliding
        # energy of a cable: 1/2 E A strain^2 times its rest length
        rest = np.array([flat.radius[i] * q[flat.q_start[i]] for i in flat.cable_joint[edge]])
        weights = flat.cable_young[edge] * flat.cable_area[edge] * rest
        softest, _ = weakest_direction(scaled, gradients[edge] / size, weights)
        largest = float(
            np.max(np.abs(np.linalg.eigvalsh(scaled))) + np.max(weights * (gradients[edge] ** 2).sum(axis=1))
        )
        stable = stable or bool(softest > 1e-9 * largest)
        return stable, softest, idle, "" if stable else loose, sliding

    def _grows_sliding(self, stiffness: NDArray, mass: NDArray, basis: NDArray) -> tuple[str, float]:
        """Coordinates and rate of growth [1/s] of a motion that nothing but friction resists, besides sliding of the
        whole robot; empty and zero if there is none."""
        count = mass.shape[0]
        mass = mass + 1e-9 * np.trace(mass) / max(1, count) * np.eye(count)
        rates, motions = np.linalg.eig(np.linalg.solve(mass, stiffness))
        if not count or not np.min(rates.real) < -NO_STIFFNESS * np.max(np.abs(rates)):
            return "", 0.0
        worst = int(np.argmin(rates.real))
        return coordinates_of(self.mechanism, (basis @ motions[:, worst]).real), float(np.sqrt(-rates[worst].real))

    def tangential_jacobians(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(p, 3, nv) Jacobian of the contact points along the ground and (p,) their normal forces [N], after
        `evaluate`; zeros for points that do not touch."""
        normals, jacobians = point_normals(self._work), point_jacobians(self._flat, self._work)
        pressed = np.maximum(self._work.contact_state[:-1, NORMAL], 0.0)
        along = jacobians - normals[:, :, None] * np.einsum("px,pxd->pd", normals, jacobians)[:, None, :]
        along[pressed <= 0.0] = 0.0
        return along, pressed

    def _idle(self, q: NDArray, tau: NDArray, basis: NDArray, stiffness: NDArray, mass: NDArray) -> NDArray[np.float64]:
        """(y, m) idle motions, orthonormal in the mass; they cause no force, such as the spin of a strut on ball
        joints.

        They are tested over a distance along which any other motion causes forces, even one whose stiffness is zero at
        the start.
        """
        from scipy.linalg import eigh  # imported here to keep the package import fast

        count = mass.shape[0]
        none = np.zeros((count, 0))
        if not count:
            return none
        mass = mass + 1e-9 * np.trace(mass) / count * np.eye(count)
        rates, motions = eigh(0.5 * (stiffness + stiffness.T), mass)
        largest = float(np.max(np.abs(rates)))
        size = float(np.max(np.linalg.norm(stiffness, axis=0) / np.linalg.norm(basis, axis=0)))
        found = []
        for motion in motions.T[np.abs(rates) <= NO_STIFFNESS * largest]:
            step = IDLE_DISTANCE / IDLE_STEPS / np.max(np.abs(basis @ motion)) * (basis @ motion)
            beside: NDArray | None = q
            for _ in range(IDLE_STEPS):
                beside = None if beside is None else self._moved(beside, step)
            if beside is not None:
                force = self._residual(beside, tau, reuse=True)
                if np.max(np.abs(force)) <= IDLE_FORCE * IDLE_DISTANCE * size:
                    found.append(motion)
        self._residual(q, tau, reuse=True)
        return np.array(found).T if found else none

    @contextmanager
    def sticking(self, shape: MechanismEquilibrium) -> Iterator[None]:
        """Context in which routed cables stick at all contacts with friction, with the slip of an equilibrium.

        The path from the start may leave contacts at their bound. Small motions about the equilibrium slip there once,
        in one direction, and stick from then on.
        """
        flat, before = self._flat, self._work.route_state[:, SLIP].copy()
        cables = (flat.route_elements, flat.routed_cables, self._work.route_state)
        if shape.slip.size:
            set_slips(self._work, shape.slip)
        self._at(shape.q)
        hold_contacts(*cables, True)
        try:
            yield
        finally:
            hold_contacts(*cables, False)
            set_slips(self._work, before)

    def held_by_friction(self, basis: NDArray) -> NDArray[np.float64]:
        """(y, y) stiffness of static friction: feet on the ground do not slide. It equals the ground stiffness at every
        point with friction."""
        held = np.zeros((basis.shape[1], basis.shape[1]))
        ground = self._ground
        if not self.mechanism.touches or ground is None or ground.friction == 0.0:
            return held
        normals, jacobians = point_normals(self._work), point_jacobians(self._flat, self._work)
        for row in touching_points(self._work):
            along = (np.eye(3) - np.outer(normals[row], normals[row])) @ jacobians[row] @ basis
            held += ground.stiffness * along.T @ along
        return held

    def _slopes(
        self, q: NDArray, tau: NDArray, basis: NDArray, steps: NDArray, columns: NDArray | None = None
    ) -> tuple[NDArray, NDArray]:
        """Slopes -dR/dy along the closed-loop motions G (nv, y) or along other columns (nv, m), and strain slopes (c,
        m).

        They are central differences with steps (m,). The pivots of G are those of the last `_residual`. `self._tangent`
        holds further results.
        """
        motions = basis if columns is None else columns
        count = motions.shape[1]
        self._tangent.columns[:, :count] = motions
        self._static_slopes(self._flat, q, tau, steps, count, self._work, self._reduction, self._tangent)
        gradients = self._tangent.strain[:count].T.copy()
        gradients[np.abs(gradients) < 1e-9 * np.abs(gradients).max(initial=0.0)] = 0.0
        return basis.T @ self._tangent.force[:count].T, gradients

    def _strain_gradients(self, q: NDArray, basis: NDArray) -> NDArray[np.float64]:
        """(c, y) derivative of the strain of each cable along the closed-loop motions; see `_slopes`."""
        return self._slopes(q, np.zeros(basis.shape[0]), basis, _difference_steps(basis))[1]

    def _stiffness(self, q: NDArray, tau: NDArray, count: int) -> tuple[NDArray, NDArray]:
        """Stiffness -dR/dy along the closed-loop motions, and their basis G (nv, y).

        `_residual` must have been called at q before.
        """
        basis = self._reduction.basis[:, :count].copy()
        return self._slopes(q, tau, basis, _difference_steps(basis))[0], basis

    def _step(
        self, q: NDArray, stiffness: NDArray, basis: NDArray, force: NDArray, shift: float
    ) -> NDArray[np.float64]:
        """Newton step (K + s M) dy = R with an inertia shift s that gives all eigenvalues of M^-1 K + s positive real
        parts.

        This is one implicit step of an overdamped motion with time step 1/s, which cannot end at an unstable
        equilibrium.
        """
        from scipy.linalg import eigh, eigvals  # imported here to keep the package import fast

        self._at(q)
        if self.stands:
            # Sliding of the whole mechanism needs no force, so that equilibria are not isolated and Newton's matrix is
            # singular. A resistance of the feet to sliding, proportional to the remaining force, keeps the steps small
            # and the convergence quadratic (Fan and Yuan, On the quadratic convergence of the Levenberg-Marquardt
            # method without nonsingularity, 2005).
            left = min(1.0, float(np.max(np.abs(force), initial=0.0)) / self._load) if self._load > 0.0 else 1.0
            stiffness = stiffness + left * self.held_by_friction(basis)
        mass = basis.T @ self._work.mass @ basis
        mass += 1e-9 * np.trace(mass) / max(1, force.size) * np.eye(force.size)
        rates = eigh(0.5 * (stiffness + stiffness.T), mass, eigvals_only=True)
        if rates[0] <= 1e-12 * abs(rates[-1]):
            # friction of cables makes the stiffness much less symmetric than winding
            rates = np.sort(eigvals(stiffness, mass).real)
        least = shift * 1e-3 * max(abs(rates[0]), abs(rates[-1]))
        if rates[0] <= 1e-12 * abs(rates[-1]):
            least = max(least, 1e-6 * abs(rates[-1])) - 2.0 * rates[0]
        if least == 0.0 and not stiffness.any():
            least = 1.0  # no stiffness here: the step follows the force, up to the limit of `_search`
        return np.linalg.solve(stiffness + least * mass, force)

    def _search(
        self, q: NDArray, tau: NDArray, basis: NDArray, step: NDArray, force: NDArray
    ) -> tuple[NDArray[np.float64] | None, float]:
        """Configuration after the step, at most 0.1 rad or m away, and the part of the step that was taken; the step is
        shortened until the loops close.

        A step follows the driving force. If a cable becomes taut or slack during the step, Newton's method can go so
        far that the force at the end drives it back equally strongly, and the iteration oscillates without end. Such a
        step is shortened with the secant of the force along it, until the opposing force is less than `OVERSHOT` times
        the driving force. So the stored energy decreases with every step (Matthies and Strang, The solution of
        nonlinear finite element equations, 1979).
        """
        scale = min(1.0, 0.1 / max(1e-12, float(np.max(np.abs(basis @ step), initial=0.0))))
        driving, moved = float(force @ step), None
        for _ in range(MOST_SHORTENED):
            tried = self._moved(q, scale * (basis @ step))
            if tried is None:
                scale *= 0.5
                continue
            left = self._residual(tried, tau)
            if left.size != step.size:  # loops lose or gain rows there; the step belongs to the number of motions here
                scale *= 0.5
                continue
            back = -float(left @ step)
            if not np.isfinite(back):  # a strand has zero length; the forces are undefined there
                scale *= 0.5
                continue
            moved = tried
            if not back > OVERSHOT * driving > 0.0:
                break
            scale *= max(0.1, driving / (driving + back))
        return moved, scale

    def _shape(self, q: NDArray, tau: NDArray, residual: float, iterations: int) -> MechanismEquilibrium:
        force = self._residual(q, tau, reuse=False)
        stable, softest, idle, loose, sliding = True, np.inf, np.zeros((tau.size, 0)), "", ("", 0.0)
        if force.size:
            stable, softest, idle, loose, sliding = self._stability(q, tau, force.size)
        self._at(q)
        work = self._work
        standing = Standing(*friction_used(self.mechanism, work.contact_state), *sliding) if self.stands else None
        # efforts of the held joints: tau + p - c + K' lambda = 0 on all coordinates
        open_effort = tau + work.passive - work.bias
        free = ~self._held
        scale = float(np.max(np.abs(open_effort), initial=0.0))
        multipliers = self._pulling.solve(work, work.loop[:, free].T, -open_effort[free], scale)
        effort = np.where(free, tau, tau - (open_effort + work.loop.T @ multipliers))
        route_tensions(self.mechanism, work, multipliers, scale)
        return MechanismEquilibrium(
            q.copy(), work.position.copy(), work.rotation.copy(), work.strain.copy(), work.tension.copy(),
            effort, residual, iterations, stable, softest, slips(work), read_routes(self.mechanism, work),
            read_contacts(self.mechanism, work), idle, loose, standing,
        )  # fmt: skip


def _difference_steps(motions: NDArray) -> NDArray[np.float64]:
    """(m,) finite difference steps along motions (nv, m) that move no coordinate by more than 1e-6 rad or m."""
    return np.asarray(1e-6 / np.maximum(1e-12, np.max(np.abs(motions), axis=0, initial=0.0)))
