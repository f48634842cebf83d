"""Integration of a mechanism with error control, dense output and events where cables become slack or taut.

The method of Dormand and Prince of order 8 (SciPy's DOP853) is applied to (q, v) with the forward dynamics of closed
loops. When the strain of a cable passes through zero, its force has a kink: the integration stops there and restarts,
so that no step contains the kink. It also does so where stops of joints begin or cease to push. The drift of loops and
quaternions, which is not larger than the tolerance, is removed by projection at every such stop and at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...contact.ground import LAWS
from ...contact.ground_forces import SOFTPLUS
from ...errors import TensegrityError
from ..dynamics.equations_of_motion import cable_efforts
from ..dynamics.forward_dynamics import SINGULAR_MASS, accelerate, massless_message
from ..kinematics.configuration_space import configuration_rate
from ..kinematics.loop_closure import project_onto_loops
from ..kinematics.loop_reduction import make_reduction_workspace
from ..late_kernels import ROUTES
from ..mechanism import FlatMechanism, Mechanism, check_state
from ..resistance import HIGH, LAW, LOW, STOP_DAMPING, STOP_STIFFNESS
from ..route_readings import set_slips
from ..routing.columns import FINE, RUBBED, STATUS
from ..touch.columns import DEPTH
from ..workspace import make_stage_workspace, make_workspace
from .actuation import Ends, past_end
from .powers import powers_in, powers_of
from .route_events import RouteEvents, slips_kept

MAX_EVENTS = 100_000
DEEP, PUSHES = 0, 1
"""Columns of `_Motion.stop_values`."""


@dataclass(frozen=True)
class CableEvent:
    """Event at a time [s] after the start: a cable becomes "slack" or "taut", or "sticks" or "slips" on its route.

    For the ground, a contact part (field `cable`) "touches" the ground or "lifts" off it."""

    time: float
    cable: str
    kind: str


@dataclass(frozen=True, eq=False)
class MechanismPath:
    """Simulated motion.

    Attributes:
        times: (k,) times of the accepted steps [s]. q: (k, nq), v: (k, nv) states at these times; the loops are closed
            at the first and the last one.
        works: (4,) energies [J]: dissipated by damping, removed by winding, work of the loads, dissipated by friction.
        slip: (e,) slip at the elements of routed cables [m].
        events: events in order of time.
    """

    times: NDArray[np.float64]
    q: NDArray[np.float64]
    v: NDArray[np.float64]
    works: NDArray[np.float64]
    slip: NDArray[np.float64]
    events: tuple[CableEvent, ...]
    _pieces: tuple[tuple[float, float, Callable], ...]

    def at(self, times: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """q (k, nq) and v (k, nv) at times (k,) [s] between start and end, with the order of the method.

        Raises:
            TensegrityError: a time is outside this interval.
        """
        instants = np.atleast_1d(np.asarray(times, dtype=np.float64))
        if not (np.all(instants >= self.times[0]) and np.all(instants <= self.times[-1])):
            raise TensegrityError(
                f"the motion lasts from {self.times[0]:g} to {self.times[-1]:g} s; give times within."
            )
        size = self.q.shape[1]
        states = np.zeros((instants.size, size + self.v.shape[1]))
        for begin, end, piece in self._pieces:
            inside = (instants >= begin) & (instants <= end)
            if inside.any():
                states[inside] = piece(instants[inside])[: states.shape[1]].T
        return states[:, :size], states[:, size:]


def integrate(
    mechanism: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    effort: ArrayLike | Callable[[float, NDArray, NDArray], ArrayLike],
    duration: float,
    *,
    relative: float = 1e-9,
    absolute: float = 1e-11,
    load: ArrayLike | None = None,
    flat: FlatMechanism | None = None,
    slip: ArrayLike | None = None,
) -> MechanismPath:
    """Simulate the motion from (q, v) for `duration` [s].

    Args:
        effort: (nv,) efforts [N or N m], or a function of time [s], q and v that returns them.
        relative, absolute: tolerances of every coordinate.
        load: (b, 6) moment and force on each body at its origin in world axes [N m and N]; zero by default.
        flat: arrays of the mechanism with another gravity or other payloads; by default its own arrays.
        slip: (e,) initial slip at the elements of routed cables [m]; zero by default.

    Raises:
        TensegrityError: a cable is wound past its end, a massless body moves independently, or steps become too small.
    """
    from scipy.integrate import solve_ivp  # imported here to keep the package import fast

    position, velocity = check_state(mechanism, np.array(q, dtype=np.float64), np.array(v, dtype=np.float64))
    if not (np.isfinite(duration) and duration > 0.0):
        raise TensegrityError(f"duration is {duration} s, must be a finite time above zero.")
    motion = _Motion(mechanism, effort, load, mechanism.flat if flat is None else flat)
    set_slips(motion.work, np.zeros(motion.work.route_state.shape[0]) if slip is None else np.asarray(slip))
    nq, nv = motion.sizes
    state = np.concatenate((position, velocity, np.zeros(4)))
    times, states, pieces, events = [np.zeros(1)], [state[None, :]], [], []
    time, taut = 0.0, motion.strains(state) > 0.0
    scale = np.full(state.size, absolute)
    is_down = None
    is_beyond = motion.stop_values(state) > 0.0
    routed = RouteEvents(mechanism, motion.flat, motion.work, motion.split)
    motion.rate(time, state)
    if motion.massless >= 0:
        raise TensegrityError(massless_message(mechanism, motion.massless))
    while time < duration:
        watch = [motion.crossing(c, bool(taut[c])) for c in range(taut.size)]
        watch += routed.begin(state)
        before_ground = len(watch)
        is_down = motion.depths(state) > 0.0 if is_down is None else is_down
        watch += [motion.touching(index, bool(down)) for index, down in enumerate(is_down)]
        before_stops = len(watch)
        stops = [
            (k, part) for k in range(len(is_beyond)) for part in (DEEP, PUSHES) if part == DEEP or is_beyond[k, DEEP]
        ]
        watch += [motion.stopping(k, part, bool(is_beyond[k, part])) for k, part in stops]
        solution = solve_ivp(
            motion.rate, (time, duration), state, method="DOP853", rtol=relative, atol=scale, events=watch or None,
            dense_output=True,
        )  # fmt: skip
        if solution.status < 0:
            raise TensegrityError(
                f"the motion cannot be followed beyond {solution.t[-1]:.6g} s: {solution.message} "
                "Cables that are very stiff need integrator 'implicit'."
            )
        state, end = solution.y[:, -1].copy(), float(solution.t[-1])
        pieces.append((time, end, solution.sol))
        if solution.status == 1 and end > solution.t[-2]:
            # the last step leads across the kink, and so does its interpolation: make one that ends at the kink
            before = float(solution.t[-2])
            again = solve_ivp(
                motion.rate, (before, end), solution.y[:, -2], method="DOP853", rtol=relative, atol=scale,
                dense_output=True,
            )  # fmt: skip
            state = again.y[:, -1].copy()
            pieces[-1:] = [(time, before, solution.sol), (before, end, again.sol)]
        motion.close(state)
        motion.check_ends(state, end)
        times.append(solution.t[1:])
        states.append(np.vstack((solution.y[:, 1:-1].T, state)))
        time = end
        routed.keep(state)
        if solution.status == 1:
            for cable, kind in routed.found(solution.t_events[taut.size : before_ground]):
                events.append(CableEvent(time, cable, kind))
            for (k, part), found in zip(stops, solution.t_events[before_stops:], strict=True):
                if len(found):
                    is_beyond[k, part] = not is_beyond[k, part]
                    if part == DEEP:
                        is_beyond[k, PUSHES] = is_beyond[k, DEEP]
            for index, found in enumerate(solution.t_events[before_ground:before_stops]):
                if len(found):
                    events.append(CableEvent(time, motion.point_names[index], "lifts" if is_down[index] else "touches"))
                    is_down[index] = not is_down[index]
            for c, found in enumerate(solution.t_events[: taut.size]):
                if len(found):
                    events.append(CableEvent(time, mechanism.cables[c].name, "slack" if taut[c] else "taut"))
                    taut[c] = not taut[c]
            if len(events) > MAX_EVENTS:
                raise TensegrityError(
                    f"more than {MAX_EVENTS} times a cable went slack or taut, stuck or slipped, or a part touched "
                    f"within {time:.4g} s."
                )
    whole = np.vstack(states)
    return MechanismPath(
        np.concatenate(times), whole[:, :nq], whole[:, nq : nq + nv], whole[-1, nq + nv :], slips_kept(motion.work),
        tuple(events), tuple(pieces),
    )  # fmt: skip


class _Motion:
    """Right-hand side and events for the state vector (q, v, works of `powers_of`)."""

    def __init__(
        self, mechanism: Mechanism, effort: ArrayLike | Callable, load: ArrayLike | None, flat: FlatMechanism
    ) -> None:
        self.mechanism, self.flat = mechanism, flat
        self.work, self.reduction, self.stages = (
            make_workspace(self.flat),
            make_reduction_workspace(self.flat),
            make_stage_workspace(self.flat),
        )
        if load is not None:
            self.work.load[:] = load
        self.sizes = (mechanism.position_count, mechanism.velocity_count)
        self.powers, self.rates = np.zeros(4), np.zeros(self.sizes[0])
        self.massless = -1  # coordinate that moved no mass in a trial, or -1
        cables = mechanism.cables
        joints = [mechanism.joint(cable.joint) for cable in cables]
        self.point_names = [part.name for part in mechanism.contact_parts for _ in part.balls[0]]
        if not mechanism.touches or mechanism.ground is None or mechanism.ground.law == LAWS[SOFTPLUS]:
            self.point_names = []  # this contact law has no kink
        self.ends = Ends(
            q=np.array([mechanism.positions_of(joint.name).start for joint in joints], dtype=np.int64),
            radius=np.array([joint.radius for joint in joints], dtype=np.float64),
            longest=np.array([cable.longest for cable in cables], dtype=np.float64),
        )  # fmt: skip
        self.effort: Callable
        if callable(effort):
            self.effort = effort
        else:
            steady = np.array(effort, dtype=np.float64)
            if steady.shape != (self.sizes[1],) or not np.all(np.isfinite(steady)):
                raise TensegrityError(f"effort must be ({self.sizes[1]},) finite numbers.")
            self.effort = lambda t, q, v: steady

    def split(self, state: NDArray) -> tuple[NDArray, NDArray]:
        nq, nv = self.sizes
        return np.ascontiguousarray(state[:nq]), np.ascontiguousarray(state[nq : nq + nv])

    def rate(self, time: float, state: NDArray) -> NDArray[np.float64]:
        q, v = self.split(state)
        tau = np.ascontiguousarray(self.effort(time, q, v), dtype=np.float64)
        status, coordinate = accelerate(self.flat, q, v, tau, 0.0, self.work, self.reduction, False)
        if status == SINGULAR_MASS:  # the method rejects a trial step with such a stage, far off in an impact
            self.massless = int(coordinate)
            return np.full(state.size, np.nan)
        configuration_rate(self.flat, q, v, self.rates)
        powers_in(self.flat, q, v, self.work, self.powers)
        if self.flat.late_kernels[ROUTES]:
            self.powers[3] += self.work.route_results[:, RUBBED].sum()
        return np.concatenate((self.rates, self.reduction.acceleration, self.powers))

    def strains(self, state: NDArray) -> NDArray[np.float64]:
        q, v = self.split(state)
        cable_efforts(self.flat, q, v, self.work)
        return self.work.strain.copy()

    def crossing(self, cable: int, is_taut: bool) -> Callable:
        """Event function for SciPy: strain of one cable, with the direction of its possible zero crossing."""

        def strain(_: float, state: NDArray) -> float:
            return float(self.strains(state)[cable])

        strain.terminal, strain.direction = True, -1.0 if is_taut else 1.0  # type: ignore[attr-defined]
        return strain

    def depths(self, state: NDArray) -> NDArray[np.float64]:
        """(p,) penetration depths [m] of all points with a contact law that has a kink at zero depth."""
        if not self.point_names:
            return np.zeros(0)
        q, v = self.split(state)
        powers_of(self.flat, q, v, self.work, self.powers)
        return self.work.contact_state[:-1, DEPTH].copy()

    def touching(self, index: int, is_down: bool) -> Callable:
        """Event function for SciPy: penetration depth of one point in the ground."""

        def deep(_: float, state: NDArray) -> float:
            return float(self.depths(state)[index])

        deep.terminal, deep.direction = True, -1.0 if is_down else 1.0  # type: ignore[attr-defined]
        return deep

    def stop_values(self, state: NDArray) -> NDArray[np.float64]:
        """(s, 2) how far joints are beyond each of their stops [rad or m], and its push there [N m or N]."""
        q, v = self.split(state)
        powers_of(self.flat, q, v, self.work, self.powers)
        found = []
        for row, (position, rate) in zip(self.flat.resistances, self.work.motion, strict=True):
            law = row[LAW:]
            for limit, sign in ((law[LOW], -1.0), (law[HIGH], 1.0)):
                if np.isfinite(limit):
                    deep = sign * (position - limit)
                    found.append((deep, law[STOP_STIFFNESS] * deep + law[STOP_DAMPING] * sign * rate))
        return np.array(found).reshape(-1, 2)

    def stopping(self, stop: int, part: int, is_beyond: bool) -> Callable:
        """Event function for SciPy: a value of `stop_values`, with the direction of its possible zero crossing."""

        def beyond(_: float, state: NDArray) -> float:
            return float(self.stop_values(state)[stop, part])

        beyond.terminal, beyond.direction = True, -1.0 if is_beyond else 1.0  # type: ignore[attr-defined]
        return beyond

    def close(self, state: NDArray) -> None:
        """Remove the drift of loops and quaternions by projection, in place."""
        q, v = self.split(state)
        project_onto_loops(self.flat, q, v, self.work, self.reduction, self.stages)
        state[: self.sizes[0]], state[self.sizes[0] : sum(self.sizes)] = q, v

    def check_ends(self, state: NDArray, time: float) -> None:
        cable = past_end(self.ends, self.split(state)[0])
        if cable >= 0:
            name = self.mechanism.cables[cable].name
            raise TensegrityError(f"cable {name} is wound past its end before {time:.4g} s.")
        for route, result in zip(self.mechanism.routes, self.work.route_results, strict=True):
            if result[STATUS] != FINE:
                raise TensegrityError(f"cable {route.name} cannot lie as its route says any more before {time:.4g} s.")
