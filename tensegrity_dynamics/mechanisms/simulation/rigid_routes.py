"""Steps of routed cables that do not stretch: strands go slack where they would push, taut where they are too short.

A taut strand is a row of the loops, whose tension is never below zero: where it would be, the strand goes slack at that
instant. A slack one goes taut where its path is as long as it is. Then its ends are stopped at once: of all impulses of
strands that pull and leave none too short, the one that leaves the least kinetic energy,

    p = argmin 1/2 |v - M^-1 J' p|_M^2  over  p >= 0   (inelastic; what it takes is lost).

Contacts with friction stick and slip, see `rigid_slip`; impulses of strands that go taut pass them undiminished.

All these instants are found within the step by bisection on steps of other lengths, so that a step ends or begins
there. The actuators give over all of them what they would have given over the whole step, as digital servos do.
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
    FIRST,
    GRADIENT,
    LENGTH,
    LENGTH_RATE,
    LOOP_ROW,
    REST_NOW,
    SLACK,
    TURNING_V,
    WIDTH,
)
from ..workspace import Workspace
from .rigid_slip import RigidSlip

ONSET = 1e-11
"""Part of its rest length by which a slack strand is too long when it goes taut."""
PUSH = 1e-6
"""Part of the largest tension below zero at which a strand goes slack."""
SWEEPS, ALIKE = 4, 1e-12
"""Passes in which the mean of what friction adds over a step is found, and part of the tension within which it is."""
MOST_CHANGES = 60
"""Changes within a step; those beyond wait for the next one."""


class RigidRoutes:
    """The strands of one simulation's routed cables that do not stretch.

    Attributes:
        rows: (s,) of the elements at which they begin. names: of their cables. slip: their contacts with friction.
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
        """(s,) which hang slack."""
        return np.asarray(self._work.route_state[self.rows, SLACK] != 0.0)

    def set_slack(self, slack: NDArray[np.bool_]) -> None:
        """Let the strands (s,) hang slack or not, those that friction holds together all or none."""
        self._work.route_state[self.rows, SLACK] = self.slip.spread(slack)

    def gaps(self, q: NDArray, v: NDArray) -> NDArray[np.float64]:
        """(s,) path less rest length of every strand's block at a state, as part of its rest length."""
        evaluate(self._flat, q, v, self._work)
        state = self._work.route_state[self.rows]
        result = np.asarray(state[:, LENGTH] / state[:, REST_NOW] - 1.0)
        for block in self.slip.blocks:
            if len(block) > 1:  # rest length passes between them
                result[block] = state[block, LENGTH].sum() / state[block, REST_NOW].sum() - 1.0
        return result

    def closing(self, v: NDArray) -> NDArray[np.float64]:
        """(s,) m/s at which the paths grow longer than the rest lengths, slack or not, at the state of `gaps`."""
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
        """Let all contacts slip either way, for a motion that is about to be given."""
        if self.slip.rows.size:
            self.slip.join(~self.slack)

    def take_directions(self, q: NDArray, v: NDArray) -> None:
        """Let contacts slip as they move at a state, and stick where they do not."""
        if self.slip.rows.size:
            evaluate(self._flat, q, v, self._work)
            self.slip.keep(self.slack)
            self.slip.take_directions(self.closing(v), self.slack)

    def fit(self, q: NDArray, v: NDArray) -> None:
        """Hold the strands that are as long as their path at a state, and let the shorter paths hang slack."""
        self.set_slack(self.gaps(q, v) < -1e-9)
        self.take_directions(q, v)

    def catch(self, q: NDArray, v: NDArray, taut: NDArray[np.bool_], reduction: ReductionWorkspace) -> float:
        """Stop the strands (s,) that are taut, in index in v (nv,); returns the kinetic energy [J] that this takes.

        Strands that are pulled loose by it hang slack then.
        """
        from scipy.optimize import nnls  # here, so that importing the package stays quick

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
    """Steps of a simulation that end where strands go slack or taut.

    Args:
        routes: the strands. state: q (nq,) and v (nv,), changed in place. step: makes one step of a length [s].
        save: returns what a step changes, restore: brings it back. tensions: N of the strands at the state.
        keep: returns what the actuators are like after a step, hold: lets them give the efforts of that from now on,
            resume: brings them back to it.
        lose: takes an energy [J] that is lost, rub: one that friction takes. note: takes the name of a cable and
            "slack", "taut", "slips" or "sticks".
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
        """One step of a length [s]; where it fails the state stays as it was."""
        begin = self._save()
        self._kept: Any = None
        try:
            self._advance(length)
            if self._kept is not None:
                self._resume(self._kept)
        except TensegrityError:
            self._restore(begin)
            raise

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

    def _settled(self) -> NDArray[np.float64]:
        """(s,) N of the strands, with friction at its bounds where contacts slip."""
        slip = self._routes.slip
        return slip.settle(self._tensions) if slip.slipping else self._tensions()

    def _step(self, length: float) -> None:
        """One step in which nothing changes; what friction adds is its mean over the step."""
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
        """(s + c,) above zero where something changes: a slack strand is too short, or a taut one pushes; a contact is
        beyond its bound, or turns back."""
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
        """Part of a step of `left` s from the state before at which the first of the changes comes."""
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
        """Let contacts slip that are beyond their bound, the worst first, and strands go slack that would push then.

        What sticks at the other contacts may let a strand push that slips, and pulls, when they do.
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
    """Raise TensegrityError where steps of controlled error cannot follow a mechanism's routed cables."""
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
    """Raise TensegrityError where implicit steps cannot follow a mechanism's routed cables.

    The slip of regularised friction is a mean over the step, which what is damped feels already at its start: steps
    that are long beside that damping lose energy that no friction takes (never the other way), or become very short.
    """
    for route in mechanism.routes:
        if route.damping and not route.rigid and route.elements[:, WIDTH].any():
            raise TensegrityError(
                f"cable {route.name} is damped and has regularised friction (friction_speed), which integrator "
                "'implicit' does not follow: leave out friction_speed, for the exact law, or its damping (long "
                "implicit steps damp what is fast by themselves), or take 'rk4'."
            )
