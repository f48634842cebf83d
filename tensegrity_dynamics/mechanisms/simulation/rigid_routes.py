"""Steps of inextensible routed cables: strands become slack under compression, and taut if they are too short.

A taut strand is a row of the loop constraints, and its tension is never negative: at the instant at which it would
become negative, the strand becomes slack. A slack strand becomes taut when its path is as long as its rest length. Then
its ends stop instantaneously. Of all tensile impulses that leave no strand too short, the one with the least remaining
kinetic energy acts,

    p = argmin 1/2 |v - M^-1 J' p|_M^2  over  p >= 0   (inelastic impact; the energy is lost).

Contacts with friction stick and slip, see `rigid_slip`; impulses of strands that become taut pass them without loss.

All these instants are found by bisection over the step length, so that a step ends or begins there. During all parts of
a step, the actuators give the same efforts as over the whole step, like digital servos.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import TensegrityError
from ..dynamics.equations_of_motion import evaluate
from ..kinematics.loop_reduction import ReductionWorkspace, independent_basis, reduce_rows
from ..mechanism import FlatMechanism, Mechanism
from ..routing.columns import (
    COUNT,
    DRIVE,
    FIRST,
    GRADIENT,
    LENGTH,
    LENGTH_RATE,
    LOOP_ROW,
    REST_NOW,
    SLACK,
    TENSION,
    TURNING_V,
    WIDTH,
)
from ..workspace import Workspace
from .rigid_slip import RigidSlip

ONSET = 1e-11
"""Excess of the path over the rest length, relative to the rest length, at which a slack strand becomes taut."""
PUSH = 1e-6
"""Compression relative to the largest tension, at which a strand becomes slack."""
SWEEPS, ALIKE = 4, 1e-12
"""Largest number of iterations for the mean friction excess over a step, and its tolerance relative to the tension."""
MOST_CHANGES = 60
"""Largest number of changes within a step; further changes are handled in the next step."""


class RigidRoutes:
    """Strands of the inextensible routed cables of one simulation.

    Attributes:
        rows: (s,) rows of the elements at which the strands begin. names: names of their cables.
        slip: their contacts with friction.
    """

    def __init__(self, mechanism: Mechanism, flat: FlatMechanism, work: Workspace) -> None:
        self._flat, self._work = flat, work
        self.names: list[str] = []
        rows: list[int] = []
        ends: list[int] = []
        cables: list[NDArray[np.int64]] = []
        loops: list[int] = []
        for cable, route in zip(flat.routed_cables, mechanism.routes, strict=True):
            if route.rigid:
                strands = int(cable[FIRST]) + route.holding
                cables.append(strands)
                rows += strands.tolist()
                ends += [*strands[1:].tolist(), int(cable[FIRST]) + int(cable[COUNT]) - 1]
                loops += (int(cable[LOOP_ROW]) + np.arange(strands.size)).tolist()
                self.names += [route.name] * strands.size
        self.rows, self._loops = np.array(rows, dtype=np.int64), np.array(loops, dtype=np.int64)
        self._ends = ends
        self.slip = RigidSlip(work, flat.route_elements, cables)

    @property
    def slack(self) -> NDArray[np.bool_]:
        """(s,) whether each strand is slack."""
        return np.asarray(self._work.route_state[self.rows, SLACK] != 0.0)

    def set_slack(self, slack: NDArray[np.bool_]) -> None:
        """Set the strands (s,) slack or taut; the strands of a block become slack together."""
        self._work.route_state[self.rows, SLACK] = self.slip.spread(slack)

    def gaps(self, q: NDArray, v: NDArray) -> NDArray[np.float64]:
        """(s,) path length minus rest length of the block of each strand at a state, relative to its rest length."""
        evaluate(self._flat, q, v, self._work)
        state = self._work.route_state[self.rows]
        result = np.asarray(state[:, LENGTH] / state[:, REST_NOW] - 1.0)
        for block in self.slip.blocks:
            if len(block) > 1:  # rest length can pass between its strands
                result[block] = state[block, LENGTH].sum() / state[block, REST_NOW].sum() - 1.0
        return result

    def closing(self, v: NDArray) -> NDArray[np.float64]:
        """(s,) rates of path length minus rest length [m/s] of all strands, slack or taut, at the state of `gaps`."""
        state, flat = self._work.route_state, self._flat
        rates = []
        for row, end in zip(self.rows, self._ends, strict=True):
            passed = 0.0
            for sign, e in ((1.0, int(row)), (-1.0, int(end))):
                turning = int(flat.route_elements[e, TURNING_V])
                passed += sign * state[e, GRADIENT] * v[turning] if turning >= 0 else 0.0
            rates.append(state[row, LENGTH_RATE] - passed)
        return np.array(rates)

    def let_slip(self) -> None:
        """Allow slip in both directions at all contacts, before a motion is set."""
        if self.slip.rows.size:
            self.slip.join(~self.slack)

    def read_released(self, release: Callable[[], None]) -> None:
        """Keep only the tensions of a change of strands and contacts."""
        state = self._work.route_state
        before = state.copy()
        release()
        before[:, [TENSION, DRIVE]] = state[:, [TENSION, DRIVE]]
        state[:] = before

    def take_directions(self, q: NDArray, v: NDArray) -> None:
        """Set the slip direction of contacts from the motion at a state; contacts without motion stick."""
        if self.slip.rows.size:
            evaluate(self._flat, q, v, self._work)
            self.slip.keep(self.slack)
            self.slip.take_directions(self.closing(v), self.slack)

    def fit(self, q: NDArray, v: NDArray) -> None:
        """Set the strands taut whose path at a state is as long as their rest length, and those with shorter paths
        slack.
        """
        self.set_slack(self.gaps(q, v) < -1e-9)
        self.take_directions(q, v)

    def catch(self, q: NDArray, v: NDArray, taut: NDArray[np.bool_], reduction: ReductionWorkspace) -> float:
        """Apply the impulse that stops the taut strands (s,), in v (nv,); returns the lost kinetic energy [J].

        Strands that the impulse loosens are slack afterwards.
        """
        from scipy.optimize import nnls  # imported here to keep the package import fast

        work = self._work
        caught = taut & self.slack
        self.set_slack(~taut)
        self.slip.join(caught)
        evaluate(self._flat, q, v, work)
        rows = np.array(work.loop[self._loops[taut]])
        self.set_slack(np.ones(taut.size, dtype=bool))
        evaluate(self._flat, q, v, work)
        work.loop_bias[:] = 0.0
        reduce_rows(work.loop, work.loop_bias, reduction, False)
        count = independent_basis(v.size, reduction)
        basis, free = reduction.basis[:, :count], reduction.independent[:count]
        try:
            factor = np.linalg.cholesky(basis.T @ work.mass @ basis)
        except np.linalg.LinAlgError:
            name = self.names[int(np.argmax(taut))]
            raise TensegrityError(
                f"cable {name} goes taut on something without mass, which moves on its own while it hangs slack; give "
                "that a mass."
            ) from None
        speeds = np.array(v[free])
        across = rows @ basis
        impulses, _ = nnls(np.linalg.solve(factor, across.T), factor.T @ speeds)
        after = speeds - np.linalg.solve(factor.T, np.linalg.solve(factor, across.T @ impulses))
        lost = 0.5 * float(np.sum((factor.T @ speeds) ** 2) - np.sum((factor.T @ after) ** 2))
        v[:] = basis @ after
        opening = across @ after < -1e-9 * (1.0 + np.abs(across @ speeds))
        slack = ~taut
        slack[np.flatnonzero(taut)[opening & (impulses <= 0.0)]] = True
        self.set_slack(slack)
        self.take_directions(q, v)
        return lost


class Stepper:
    """Steps of a simulation that end when strands become slack or taut.

    Args:
        routes: strands. state: q (nq,) and v (nv,), changed in place. step: function that makes a step of a length [s].
        save: function that returns the data changed by a step. restore: function that restores these data.
        keep: function that returns the state of the actuators after a step. hold: function that makes the actuators
            give the efforts of this state. resume: function that restores this state.
        tensions: function that returns the tensions [N] of the strands at the state.
        lose: function that records a lost energy [J]. rub: function that records an energy dissipated by friction [J].
        note: function that records the name of a cable, an event "slack", "taut", "slips" or "sticks", and its time
            [s].
    """

    def __init__(
        self,
        routes: RigidRoutes,
        state: tuple[NDArray[np.float64], NDArray[np.float64]],
        reduction: ReductionWorkspace,
        step: Callable[[float], None],
        save: Callable[[], Any],
        restore: Callable[[Any], None],
        keep: Callable[[], Any],
        hold: Callable[[Any], None],
        resume: Callable[[Any], None],
        tensions: Callable[[], NDArray[np.float64]],
        lose: Callable[[float], None],
        rub: Callable[[float], None],
        note: Callable[[str, str, float], None],
    ) -> None:
        self._routes, self._q, self._v, self._reduction = routes, *state, reduction
        self._steady_step, self._save, self._restore, self._rub = step, save, restore, rub
        self._keep, self._hold, self._resume = keep, hold, resume
        self._tensions, self._lose, self._note = tensions, lose, note

    def advance(self, length: float) -> None:
        """One step of a length [s]; if it fails, the state is unchanged."""
        begin = self._save()
        self._kept: Any = None
        try:
            self._advance(length)
            if self._kept is not None:
                self._resume(self._kept)
        except TensegrityError:
            self._restore(begin)
            raise

    def find_pulls(self) -> None:
        """Store the tensions with which the next step begins, where strands that would push are slack; contacts and
        strands stay as they are."""
        note, self._note = self._note, lambda cable, kind, time: None
        try:
            self._routes.read_released(self._release_and_settle)
        finally:
            self._note = note

    def _advance(self, length: float) -> None:
        done = 0.0
        for _ in range(MOST_CHANGES):
            self._release(done)
            left = length - done
            if left <= 1e-12 * length:
                return
            before = self._save()
            self._step(left)
            measure = self._measure()
            if not (measure > 0.0).any():
                return
            which = np.flatnonzero(measure > 0.0)
            if self._kept is None:
                self._kept = self._keep()
                self._restore(before)
                self._hold(self._kept)
                before = self._save()
            share = left * self._earliest(before, left, which)
            self._restore(before)
            if share > 1e-9 * length:
                self._step(share)
            done += share
            self._change(which, done)
        self._step(length - done)

    def _release_and_settle(self) -> None:
        self._release(0.0)
        self._settled()

    def _settled(self) -> NDArray[np.float64]:
        """(s,) tensions [N] of the strands, with friction at its bounds at slipping contacts."""
        slip = self._routes.slip
        return slip.settle(self._tensions) if slip.slipping else self._tensions()

    def _step(self, length: float) -> None:
        """One step without changes of contacts and strands; the friction excess is its mean over the step."""
        slip = self._routes.slip
        if not slip.slipping:
            self._steady_step(length)
            return
        self._settled()
        begin = used = slip.excesses()
        before = self._save()
        for _ in range(SWEEPS):
            slip.set_excesses(used)
            self._steady_step(length)
            tensions = self._settled()
            mean = 0.5 * (begin + slip.excesses())
            if np.max(np.abs(mean - used)) <= ALIKE * float(np.abs(tensions).max()):
                break
            used = mean
            self._restore(before)
        else:
            slip.set_excesses(used)
            self._steady_step(length)
        self._routes.gaps(self._q, self._v)
        slip.set_excesses(used)
        self._rub(slip.lost())
        slip.keep(self._routes.slack)
        slip.record_speeds(self._routes.closing(self._v))

    def _measure(self) -> NDArray[np.float64]:
        """(s + c,) measure of changes for strands and contacts; a positive value is a change.

        A slack strand is too short, or a taut one is under compression; a contact exceeds its bound, or its slip
        reverses."""
        slack, slip = self._routes.slack, self._routes.slip
        tensions = self._settled()
        gaps, closing = self._routes.gaps(self._q, self._v), self._routes.closing(self._v)
        together = closing.copy()
        for block in slip.blocks:
            together[block] = closing[block].sum()
        scale = max(float(np.abs(tensions).max(initial=0.0)), 1e-300)
        strands = np.where(
            slack, np.where(together > 0.0, gaps - ONSET, -1.0), -tensions - PUSH * scale if tensions.any() else -1.0
        )
        if not slip.rows.size:
            return strands
        return np.concatenate((strands, np.maximum(slip.beyond(tensions)[0], slip.turned_back(closing))))

    def _earliest(self, before: Any, left: float, which: NDArray[np.int64]) -> float:
        """Fraction of a step of `left` [s] from the state `before`, at which the first of the changes occurs."""
        low, high = 0.0, 1.0
        for _ in range(40):
            middle = 0.5 * (low + high)
            self._restore(before)
            self._step(left * middle)
            if (self._measure()[which] > 0.0).any():
                high = middle
            else:
                low = middle
            if high - low < 1e-9:
                break
        return high

    def _change(self, which: NDArray[np.int64], time: float) -> None:
        routes = self._routes
        measure, slack = self._measure(), routes.slack
        due = which[measure[which] > -ONSET]
        caught = [s for s in due if s < slack.size and slack[s]]
        if caught:
            taut = ~slack
            taut[caught] = True
            self._lose(routes.catch(self._q, self._v, taut, self._reduction))
            for name in dict.fromkeys(routes.names[s] for s in caught):
                self._note(name, "taut", time)
            return
        for contact in due[due >= slack.size] - slack.size:
            if routes.slip.modes[contact]:
                routes.slip.set_mode(int(contact), 0.0)
                self._note(routes.names[routes.slip.ahead[contact]], "sticks", time)
        self._release(time)

    def _release(self, time: float) -> None:
        """Let contacts slip that exceed their bound, the worst first; then set strands under compression slack.

        Sticking at other contacts can cause compression in a strand that is in tension when these contacts slip.
        """
        routes, slip = self._routes, self._routes.slip
        for _ in range(routes.rows.size + 2 * slip.rows.size):
            tensions = self._settled()
            over, directions = slip.beyond(np.maximum(tensions, 0.0))
            if np.any(over > 0.0):
                contact = int(np.argmax(over))
                slip.set_mode(contact, float(directions[contact]))
                self._note(routes.names[slip.ahead[contact]], "slips", time)
                continue
            worst = int(np.argmin(tensions))
            if not tensions[worst] < 0.0:
                return
            slack = routes.slack
            slack[worst] = True
            routes.set_slack(slack)
            self._note(routes.names[worst], "slack", time)


def refuse_adaptive(mechanism: Mechanism) -> None:
    """Raise TensegrityError if steps with error control do not support the routed cables of a mechanism."""
    for route in mechanism.routes:
        if route.rigid:
            raise TensegrityError(
                f"cable {route.name} does not stretch, which integrator 'adaptive' does not follow; take 'rk4' or "
                "'implicit'."
            )
        if route.elements[:, WIDTH].any():
            raise TensegrityError(
                f"cable {route.name} has regularised friction (friction_speed), which integrator 'adaptive' does not "
                "follow; take 'rk4' or 'implicit', or leave it out."
            )


def refuse_implicit(mechanism: Mechanism) -> None:
    """Raise TensegrityError if implicit steps do not support the routed cables of a mechanism.

    The slip of regularised friction is a mean over the step, and damping responds to it at the start of the step. If
    steps are long compared with this damping, they lose energy that friction does not dissipate (they never gain
    energy), or they become very short.
    """
    for route in mechanism.routes:
        if route.damping and not route.rigid and route.elements[:, WIDTH].any():
            raise TensegrityError(
                f"cable {route.name} is damped and has regularised friction (friction_speed), which integrator "
                "'implicit' does not follow: leave out friction_speed, for the exact law, or its damping (long "
                "implicit steps damp what is fast by themselves), or take 'rk4'."
            )
