"""Static equilibrium of a mechanism under held joints and applied efforts: Newton's method on the full model.

With the loops closed and some joints held, the motions that remain are G y (000, 1.2.32). At an equilibrium the reduced
force R = G' (tau + p - c) vanishes; its derivative along G gives the reduced stiffness -dR/dy. It is not quite
symmetric, because cable efforts follow the convention of 000 (3.1.9); stability is therefore read from the
eigenvalues of (G' M G)^-1 (-dR/dy): an equilibrium is stable when all their real parts are above zero. A cable at the
edge between slack and tight resists one direction only: there the weakest direction decides (`numerics.one_sided`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import NoEquilibriumError, TensegrityError
from ...numerics.compilation import compiled
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
from ..dynamics.rigid_tensions import rigid_strands, route_tensions
from ..dynamics.tangents import make_tangent_workspace, static_slopes
from ..kinematics.configuration_space import configuration_rate, normalise_quaternions
from ..kinematics.loop_closure import close_loops
from ..kinematics.loop_reduction import ReductionWorkspace, independent_basis, make_reduction_workspace, reduce_rows
from ..loads import LOAD_FORCE
from ..mechanism import Mechanism, check_state
from ..route_readings import RouteReading, read_routes, set_slips, slips
from ..routing.columns import FIRST, FRICTION, LENGTH, REST_NOW, SLACK, STRAIN, TENSION, WRAP
from ..touch.columns import RADIUS
from ..touch.parts import contact_array
from ..workspace import StageWorkspace, Workspace, make_stage_workspace, make_workspace

MOST_DIRECT_STEPS = 40
"""On a ground as stiff as it is, before the search goes by softer ones."""
SOFTEST_SINKING = 0.05
"""Of the size of what touches the ground: how far the whole load sinks one point into the softest ground."""
STIFFER = 10.0
"""From one ground to the next one."""
ROUNDINGS = 32.0
"""Last digits by which the length of a strand may be wrong: it is a sum of projected positions and arcs, each of them
rounded, of coordinates that are rounded themselves."""
SLIDES = 1e-7
"""Part, and N, by which tensions beside a contact may be beyond what friction holds."""
OVERSHOT = 0.5
"""Of the force along a step, where it begins: how much may pull back at its end before it is shortened."""
MOST_SHORTENED = 20
"""Times that one step is shortened."""
NO_STIFFNESS = 1e-7
"""Of the largest stiffness per inertia, which may be none."""
IDLE_DISTANCE, IDLE_STEPS, IDLE_FORCE = 0.1, 10, 1e-4
"""rad or m along a motion that may be idle, in how many steps, and of the force that the stiffest motion would meet."""
EDGE_STRAIN = 1e-8
"""Strains of this size are rounding: such a cable is at the edge between slack and tight."""

ROLLS = (
    " On a slope a round foot rolls if its body is free to turn, as struts are about their axis between cables that "
    "end on it: attach cables off the axis, or make the foot much smaller."
)


@compiled
def reduced_force(flat, q, effort, held, reuse, force, work, reduction, stages):
    """Fill force (y,) with R at closed loops; returns y. solver.basis holds G, solver.independent which are free."""
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
    """Write the position of a joint into q (nq,); of a pulley, wind its cable on or off at the same taut length.

    The loops alone do not tell whole turns of a pulley apart.
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
    """(3,) N: weight and pushes of a mechanism together."""
    flat = mechanism.flat
    return np.asarray(flat.mass.sum() * flat.gravity + flat.loads[:, LOAD_FORCE : LOAD_FORCE + 3].sum(axis=0))


def standing_direction(mechanism: Mechanism) -> NDArray[np.float64]:
    """(3,) unit vector against the load of a mechanism that only its ground holds; zeros where nothing loads it.

    Raises:
        NoEquilibriumError: on a plane it would slide, or be lifted off.
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
        q: (nq,). positions (b, 3) m and rotations (b, 3, 3): bodies in sweep order, in the world.
        strain, tension: of each cable, - and N.
        effort: (nv,) N or N m that holds the held joints (and what was applied to the others).
        residual: largest reduced force left [N or N m].
        iterations: of Newton's method. stable: see the module. softest: lowest eigenvalue of the symmetric part of
            the reduced stiffness over G of unit columns.
        slip: (e,) m that has slipped at the elements of routed cables, for a straight path from where it began.
        routes: readings of the routed cables by name.
        contacts: by contact part that touches (k, 2, 3): where its points touch [m] and the ground's force [N].
        idle: (nv, m) motions along which nothing changes but themselves, such as the spin of a strut on a ball joint.
            They are no part of `stable` and `softest`.
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


class MechanismEquilibriumSolver:
    """Equilibria of one mechanism, one after the other, in arrays that are made once.

    Args:
        mechanism: the mechanism.
        held: names of joints whose coordinates are prescribed, such as the pulleys.
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
        self._force = np.zeros(mechanism.velocity_count)
        self._strands = rigid_strands(mechanism)
        self._tangent = make_tangent_workspace(self._flat, mechanism.position_count)
        self._ground = mechanism.ground
        self._load = float(np.linalg.norm(_whole_load(mechanism)))
        self._stands = mechanism.touches and mechanism.is_free
        if self._stands:
            set_standing(self._work, standing_direction(mechanism))

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
        """The equilibrium near start (nq,).

        Args:
            start: (nq,) warm start; loops need not be closed exactly.
            positions: coordinates of joints by name, written over the start (for the held ones).
            effort: (nv,) N or N m applied to the coordinates.
            slip: (e,) m that had slipped at the elements of routed cables where the path to this shape begins; none
                without.
            tolerance: on the largest reduced force [N or N m], relative to the largest effort at play.

        Raises:
            NoEquilibriumError: Newton's method does not converge or the loops cannot close; the message states the
                force that is left.
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
        """(s,) path less rest length of the strands without stretch, as part of their rest length."""
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
        """As `solve`; strands that would push go slack, and those that would be too short come back."""
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
        """Raise NoEquilibriumError where a strand without stretch would slip over a contact at rest."""
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
        """N of the strands of routed cables that stretch, by name, at rest at q (nq,)."""
        evaluate(self._flat, q, np.zeros(self._held.size), self._work)
        return {name: each.tensions for name, each in read_routes(self.mechanism, self._work).items()}

    def _at(self, q: NDArray) -> None:
        """Evaluate everything at rest at a position."""
        evaluate(self._flat, np.ascontiguousarray(q), np.zeros(self.mechanism.velocity_count), self._work)

    def _solve(
        self,
        start: ArrayLike,
        positions: Mapping[str, ArrayLike] | None,
        effort: ArrayLike | None,
        tolerance: float,
        maximum_iterations: int,
    ) -> MechanismEquilibrium:
        """As `solve`, with strands without stretch held or slack as they are marked."""
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
        direct = min(MOST_DIRECT_STEPS, maximum_iterations) if self._stands else maximum_iterations
        found, worst, steps, is_there = self._descend(q, tau, tolerance, direct)
        if not is_there and self._stands:
            found, worst, more, is_there = self._stiffen(q, tau, tolerance, maximum_iterations)
            steps += more
        if is_there:
            self._check_ends(found)
            return self._shape(found, tau, worst, steps)
        raise NoEquilibriumError(
            f"no equilibrium found: a force of {worst:.3g} is left after {steps + 1} Newton steps. "
            "Tendons may be slack, or the start is too far; start nearer or tighten them."
            + (ROLLS if self._stands and self._may_roll() else "")
        )

    def _may_roll(self) -> bool:
        """Whether round parts stand on a slope: where their body is free to turn, friction lets them roll."""
        along = abs(float(self._ground.normal @ _whole_load(self.mechanism))) if self._ground is not None else 0.0
        return along < (1.0 - 1e-9) * self._load and bool(np.any(self.mechanism.contact_points[:, RADIUS] > 0.0))

    # -- parts ----------------------------------------------------------------------------------------------------

    def _stiffen(
        self, q: NDArray, tau: NDArray, tolerance: float, maximum_iterations: int
    ) -> tuple[NDArray[np.float64], float, int, bool]:
        """As `_descend`, on grounds from a soft one to the real one, each from the shape on the one before.

        On a stiff ground feet that touch and leave again in turn can keep Newton's method from getting anywhere; on
        one so soft that all feet touch at once they cannot, and its shape is near that on a somewhat stiffer one.
        """
        mechanism, real = self.mechanism, self._ground
        assert real is not None
        evaluate(self._flat, q, np.zeros(tau.size), self._work)
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
        """N or N m: what the last digits of positions change of the forces of the ground and of routed cables, which
        no search gets below; `_residual` was called at q just before."""
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
        """Newton's method from q, at first with a shift of inertia (see `_step`).

        Returns where it ends, the largest force left there, the steps, and whether that force is small.
        """
        last, worst, iteration = np.inf, np.inf, 0
        for iteration in range(maximum_iterations + 1):
            # the pivots of this iterate serve all that is compared with it
            force = self._residual(q, tau, reuse=False)
            scale = 1.0 + float(np.max(np.abs(self._reduction.effort), initial=0.0))
            worst = float(np.max(np.abs(force), initial=0.0))
            if worst <= tolerance * scale + self._rounding(q):
                return q, worst, iteration, True
            # a falling residual: nearer to Newton's method; a growing one: nearer to gradient descent
            if worst < 1e-3 * scale:
                shift = 0.0
            elif worst > last:
                # a cycle between slack and tight ends only with shorter and shorter steps
                shift = min(10.0 ** (1 + iteration // 75), max(1.0, 2.0 * shift))
            elif np.isfinite(last):
                shift *= max(0.1, worst / last)
            last = worst
            stiffness, basis = self._stiffness(q, tau, force.size)
            if not np.isfinite(stiffness).all():  # a strand of no length lies within the differences
                break
            try:
                step = self._step(q, stiffness, basis, force, shift)
            except np.linalg.LinAlgError:  # so far away that rounding leaves nothing of the inertia
                break
            moved = self._search(q, tau, basis, step, force)
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

    def _close(self, q: NDArray, reuse: bool = False) -> bool:
        args = (self._flat, q, self._held, 1e-13, reuse, self._work, self._reduction, self._stages)
        return bool(close_loops(*args) <= 1e-10)

    def _residual(self, q: NDArray, tau: NDArray, reuse: bool = True) -> NDArray[np.float64]:
        args = (self._flat, q, tau, self._held, reuse, self._force, self._work, self._reduction, self._stages)
        return self._force[: reduced_force(*args)].copy()

    def _moved(self, q: NDArray, step: NDArray) -> NDArray[np.float64] | None:
        result = np.array(q)
        configuration_rate(self._flat, q, step, self._stages.q_rate)
        result += self._stages.q_rate
        normalise_quaternions(self._flat, result)
        return result if self._close(result, reuse=True) else None

    def moved(self, q: NDArray, step: NDArray) -> NDArray[np.float64]:
        """Position (nq,) after a displacement (nv,) with held joints as they are and loops closed; q where none can."""
        self._close(np.array(q))
        found = self._moved(q, np.asarray(step, dtype=np.float64))
        return np.array(q) if found is None else found

    def _stability(self, q: NDArray, tau: NDArray, count: int) -> tuple[bool, float, NDArray]:
        """Whether an equilibrium is stable, its softest stiffness and idle motions (nv, m); `_residual` was called at q
        just before."""
        flat, strain = self._flat, self._work.strain.copy()
        basis = self._reduction.basis[:, :count].copy()
        usual = _difference_steps(basis)
        stiffness, gradients = self._slopes(q, tau, basis, usual)
        edge = np.flatnonzero((np.abs(strain) <= EDGE_STRAIN) & (np.abs(gradients).max(axis=1, initial=0.0) > 0.0))
        clear = np.setdiff1d(np.arange(strain.size), edge)
        # differences that no cable crosses its edge for: slack and tight ones stay what they are
        steps = usual.copy()
        for c in clear:
            steps = np.minimum(steps, 0.3 * abs(strain[c]) / np.maximum(np.abs(gradients[c]), 1e-300))
        area = flat.cable_area.copy()
        area[edge] = 0.0
        self._flat = flat._replace(cable_area=area)
        try:
            if edge.size or np.any(steps < usual):
                stiffness, _ = self._slopes(q, tau, basis, steps)
            evaluate(self._flat, q, np.zeros(tau.size), self._work)
        finally:
            self._flat = flat
        stiffness = stiffness + self._held_by_friction(basis)
        reduced = basis.T @ self._work.mass @ basis
        idle = np.zeros((basis.shape[0], 0))
        if not edge.size:
            moving = self._idle(q, tau, basis, stiffness, reduced)
            if moving.shape[1]:
                rest = np.linalg.qr(reduced @ moving, mode="complete")[0][:, moving.shape[1] :]
                idle, basis = basis @ moving, basis @ rest
                reduced, stiffness = rest.T @ reduced @ rest, rest.T @ stiffness @ rest
        rates = np.linalg.eigvals(np.linalg.lstsq(reduced, stiffness, rcond=None)[0])
        stable = not rates.size or bool(np.min(rates.real) > 1e-9 * np.max(np.abs(rates)))
        size = np.linalg.norm(basis, axis=0)
        scaled = stiffness / np.outer(size, size)
        scaled = 0.5 * (scaled + scaled.T)
        if not edge.size:
            return stable, float(np.linalg.eigvalsh(scaled)[0]) if scaled.size else np.inf, idle
        # the energy of a cable, 1/2 E A strain^2 on its rest length
        rest = np.array([flat.radius[i] * q[flat.q_start[i]] for i in flat.cable_joint[edge]])
        weights = flat.cable_young[edge] * flat.cable_area[edge] * rest
        softest, _ = weakest_direction(scaled, gradients[edge] / size, weights)
        largest = float(
            np.max(np.abs(np.linalg.eigvalsh(scaled))) + np.max(weights * (gradients[edge] ** 2).sum(axis=1))
        )
        return stable or softest > 1e-9 * largest, softest, idle

    def _idle(self, q: NDArray, tau: NDArray, basis: NDArray, stiffness: NDArray, mass: NDArray) -> NDArray[np.float64]:
        """(y, m) motions, orthonormal in the mass, along which no force arises, such as the spin of a strut on a ball.

        They are looked at over a distance along which any other motion would meet forces, even one whose stiffness is
        zero where it starts.
        """
        from scipy.linalg import eigh  # here, so that importing the package stays quick

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

    def _held_by_friction(self, basis: NDArray) -> NDArray[np.float64]:
        """(y, y): feet that stand do not slide; as stiff as the ground is, wherever friction acts."""
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
        """-dR/dy along the closed-loop motions G (nv, y), or along other columns (nv, m), and (c, m) of the strains.

        By central differences of steps (m,). The pivots of G are those of the last `_residual`; `self._tangent` has
        more.
        """
        motions = basis if columns is None else columns
        count = motions.shape[1]
        self._tangent.columns[:, :count] = motions
        static_slopes(self._flat, q, tau, steps, count, self._work, self._reduction, self._tangent)
        gradients = self._tangent.strain[:count].T.copy()
        gradients[np.abs(gradients) < 1e-9 * np.abs(gradients).max(initial=0.0)] = 0.0
        return basis.T @ self._tangent.force[:count].T, gradients

    def _strain_gradients(self, q: NDArray, basis: NDArray) -> NDArray[np.float64]:
        """(c, y) change of each cable's strain along the closed-loop motions; see `_slopes`."""
        return self._slopes(q, np.zeros(basis.shape[0]), basis, _difference_steps(basis))[1]

    def _stiffness(self, q: NDArray, tau: NDArray, count: int) -> tuple[NDArray, NDArray]:
        """-dR/dy along the closed-loop motions, and their basis G (nv, y); `_residual` was called at q just before."""
        basis = self._reduction.basis[:, :count].copy()
        return self._slopes(q, tau, basis, _difference_steps(basis))[0], basis

    def _step(
        self, q: NDArray, stiffness: NDArray, basis: NDArray, force: NDArray, shift: float
    ) -> NDArray[np.float64]:
        """A Newton step with as much inertia as makes it a descent direction: (K + s M) dy = R, K + s M positive.

        That is one implicit step of an overdamped motion with time step 1/s, which cannot end at an unstable
        equilibrium.
        """
        from scipy.linalg import eigh  # here, so that importing the package stays quick

        zero = np.zeros(basis.shape[0])
        evaluate(self._flat, q, zero, self._work)
        if self._stands:
            # Sliding as a whole costs nothing, so equilibria are many and Newton's matrix is singular. Feet that resist
            # sliding in proportion to the force that is left keep the steps small and the convergence quadratic (Fan
            # and Yuan, On the quadratic convergence of the Levenberg-Marquardt method without nonsingularity, 2005).
            left = min(1.0, float(np.max(np.abs(force), initial=0.0)) / self._load) if self._load > 0.0 else 1.0
            stiffness = stiffness + left * self._held_by_friction(basis)
        mass = basis.T @ self._work.mass @ basis
        mass += 1e-9 * np.trace(mass) / max(1, force.size) * np.eye(force.size)
        rates = eigh(0.5 * (stiffness + stiffness.T), mass, eigvals_only=True)
        least = shift * 1e-3 * max(abs(rates[0]), abs(rates[-1]))
        if rates[0] <= 1e-12 * abs(rates[-1]):
            least = max(least, 1e-6 * abs(rates[-1])) - 2.0 * rates[0]
        if least == 0.0 and not stiffness.any():
            least = 1.0  # nothing resists here: along the force, as far as `_search` lets it
        return np.linalg.solve(stiffness + least * mass, force)

    def _search(
        self, q: NDArray, tau: NDArray, basis: NDArray, step: NDArray, force: NDArray
    ) -> NDArray[np.float64] | None:
        """The position after the step, at most 0.1 (rad or m) away, shortened until the loops close.

        A step goes along the force that drives it. Where a cable gets tight or slack on it, Newton's method may go so
        far that the force there drives it back as strongly, and so to and fro for ever. Such a step is shortened, by
        the secant of the force along it, until less than `OVERSHOT` of that pulls back: so the stored energy falls with
        every step (Matthies and Strang, The solution of nonlinear finite element equations, 1979).
        """
        scale = min(1.0, 0.1 / max(1e-12, float(np.max(np.abs(basis @ step), initial=0.0))))
        driving, moved = float(force @ step), None
        for _ in range(MOST_SHORTENED):
            tried = self._moved(q, scale * (basis @ step))
            if tried is None:
                scale *= 0.5
                continue
            back = -float(self._residual(tried, tau) @ step)
            if not np.isfinite(back):  # a strand of no length: there are no forces beyond
                scale *= 0.5
                continue
            moved = tried
            if not back > OVERSHOT * driving > 0.0:
                break
            scale *= max(0.1, driving / (driving + back))
        return moved

    def _shape(self, q: NDArray, tau: NDArray, residual: float, iterations: int) -> MechanismEquilibrium:
        force = self._residual(q, tau, reuse=False)
        stable, softest, idle = True, np.inf, np.zeros((tau.size, 0))
        if force.size:
            stable, softest, idle = self._stability(q, tau, force.size)
        evaluate(self._flat, q, np.zeros(tau.size), self._work)
        work = self._work
        # what the held joints must give: tau + p - c + K' lambda = 0 on all coordinates
        open_effort = tau + work.passive - work.bias
        free = ~self._held
        multipliers = np.linalg.lstsq(work.loop[:, free].T, -open_effort[free], rcond=None)[0]
        effort = np.where(free, tau, tau - (open_effort + work.loop.T @ multipliers))
        route_tensions(self.mechanism, work, multipliers, float(np.max(np.abs(open_effort), initial=0.0)))
        return MechanismEquilibrium(
            q.copy(), work.position.copy(), work.rotation.copy(), work.strain.copy(), work.tension.copy(),
            effort, residual, iterations, stable, softest, slips(work), read_routes(self.mechanism, work),
            read_contacts(self.mechanism, work), idle,
        )  # fmt: skip


def _difference_steps(motions: NDArray) -> NDArray[np.float64]:
    """(m,) steps of differences along motions (nv, m) that move no coordinate by more than 1e-6."""
    return np.asarray(1e-6 / np.maximum(1e-12, np.max(np.abs(motions), axis=0, initial=0.0)))
