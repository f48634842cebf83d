"""Capstan friction of inextensible routed cables: sticking and slipping contacts as a complementarity problem.

A contact has the friction coefficient mu, the wrap angle phi and r = e^(mu phi). Between the strands behind and ahead,

    sticks:  no rest length passes,                        T_behind / r <= T_ahead <= r T_behind
    slips:   T_ahead = r^m T_behind, m = 1 or -1,          rest length passes with the sign of m.

While a contact sticks, both strands are loop rows. While it slips, their sum is one row, and the excess of the tensions
over that of the first strand of such a group acts as a force. The tensions are affine in these excesses x, so that

    T(x) = t + A x,   x_s = (c_s - 1) T_leader(x),   c_s the product of r^m from the leader to s,

is a linear system with one unknown for each slipping contact. A finite ratio cannot hold a tension against a slack
strand: strands between contacts with finite friction (a block) become slack together.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ...errors import TensegrityError
from ..dynamics.rigid_tensions import leader_of
from ..routing.columns import EXCESS, FRICTION, LENGTH, MODE, RATE, REST_NOW, SLIP, WRAP
from ..workspace import Workspace

OVER = 1e-9
"""Excess over the friction bound, relative to the largest tension, at which a sticking contact begins to slip."""
STANDS = 1e-11
"""Slip speed [m/s] below which slip counts as rounding error."""


class RigidSlip:
    """Contacts of inextensible routed cables that can slip.

    Args:
        work: work arrays of the simulation. elements: rows of the elements of the mechanism.
        cables: for each cable the rows (k,) of the elements at which its strands begin, in order.

    Attributes:
        rows: (c,) rows of the elements of the contacts. ahead: (c,) strand that begins at each contact; the previous
            strand is behind it.
        blocks: groups of strands that become slack together.
    """

    def __init__(self, work: Workspace, elements: NDArray[np.float64], cables: list[NDArray[np.int64]]) -> None:
        self._work, self._friction = work, elements[:, FRICTION]
        self.blocks: list[list[int]] = []
        self._cables, rows, ahead, first = cables, [], [], 0
        for strands in cables:
            for k, row in enumerate(strands.tolist()):
                if k and np.isfinite(elements[row, FRICTION]):
                    rows.append(row)
                    ahead.append(first + k)
                    self.blocks[-1].append(first + k)
                else:
                    self.blocks.append([first + k])
            first += strands.size
        self.rows, self.ahead = np.array(rows, dtype=np.int64), np.array(ahead, dtype=np.int64)
        self._strands = np.concatenate(cables) if cables else np.zeros(0, dtype=np.int64)

    @property
    def modes(self) -> NDArray[np.float64]:
        """(c,) 0 for a sticking contact, else 1 or -1, the direction in which rest length passes."""
        return np.array(self._work.route_state[self.rows, MODE])

    def set_mode(self, contact: int, mode: float) -> None:
        """Let a contact stick (0) or slip."""
        self._work.route_state[self.rows[contact], [MODE, EXCESS, RATE]] = mode, 0.0, 0.0

    @property
    def slipping(self) -> bool:
        """Whether any contact slips."""
        return bool(self.rows.size) and bool(np.any(self._work.route_state[self.rows, MODE]))

    def excesses(self) -> NDArray[np.float64]:
        """(c,) tension excess [N] of the strand ahead of each contact over the first strand of its group."""
        return np.array(self._work.route_state[self.rows, EXCESS])

    def set_excesses(self, values: NDArray[np.float64]) -> None:
        """Set the tension excesses (c,) [N] of the strands ahead of the contacts."""
        self._work.route_state[self.rows, EXCESS] = values

    def spread(self, slack: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """(s,) slack strands, extended to whole blocks; the contacts between slack strands are set to sticking."""
        result = np.array(slack)
        for block in self.blocks:
            if len(block) > 1 and result[block].any():
                result[block] = True
        for contact in np.flatnonzero(result[self.ahead]):
            self.set_mode(int(contact), 0.0)
        return result

    def _ratios(self) -> NDArray[np.float64]:
        wraps = np.maximum(self._work.route_state[self.rows, WRAP], 0.0)
        return np.asarray(np.exp(self._friction[self.rows] * wraps))

    def _leaders(self) -> NDArray[np.int64]:
        leaders, first = [], 0
        for strands in self._cables:
            leaders += [first + leader_of(self._work, strands, k) for k in range(strands.size)]
            first += strands.size
        return np.array(leaders, dtype=np.int64)

    def settle(self, tensions: Callable[[], NDArray[np.float64]]) -> NDArray[np.float64]:
        """(s,) tensions [N] of all strands with the excesses at the friction bounds; these excesses are stored.

        Args:
            tensions: function that returns the tensions [N] of the strands for the stored excesses, at one state.

        Raises:
            TensegrityError: friction locks the mechanism, so that no tensions satisfy its law.
        """
        none = np.zeros(self.rows.size)
        self.set_excesses(none)
        free = tensions()
        moving = np.flatnonzero(self.modes)
        if not moving.size:
            return free
        leaders = self._leaders()
        growth = np.ones(leaders.size)
        for ratio, ahead, mode in zip(self._ratios(), self.ahead, self.modes, strict=True):
            if mode:
                growth[ahead] = growth[ahead - 1] * ratio**mode
        unit = max(float(np.abs(free).max()), 1.0)
        own, columns = self.ahead[moving], []
        for contact in moving:
            single = none.copy()
            single[contact] = unit
            self.set_excesses(single)
            columns.append((tensions() - free)[leaders[own]] / unit)
        factors = growth[own] - 1.0
        matrix = np.eye(own.size) - factors[:, None] * np.array(columns).T
        try:
            none[moving] = np.linalg.solve(matrix, factors * free[leaders[own]])
        except np.linalg.LinAlgError:
            raise TensegrityError("friction of a cable without stretch locks it; give it less friction.") from None
        self.set_excesses(none)
        return tensions()

    def beyond(self, tensions: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(c,) excess of each sticking contact over its bound, relative to the largest tension, and its direction.

        The value of a slipping contact is negative.
        """
        ratios, ahead, behind = self._ratios(), tensions[self.ahead], tensions[self.ahead - 1]
        forward, backward = ahead - ratios * behind, behind - ratios * ahead
        scale = max(float(np.abs(tensions).max(initial=0.0)), 1e-300)
        over = np.maximum(forward, backward) / scale - OVER
        return np.where(self.modes == 0.0, over, -1.0), np.where(forward > backward, 1.0, -1.0)

    def speeds(self, closing: NDArray[np.float64]) -> NDArray[np.float64]:
        """(c,) slip speeds [m/s] of the contacts, from the rates of path minus rest length (s,) [m/s] without slip."""
        return np.array([-sum(closing[k] for k in range(self._begin(a), a)) for a in self.ahead])

    def turned_back(self, closing: NDArray[np.float64]) -> NDArray[np.float64]:
        """(c,) slip speed [m/s] against the slip direction of a contact; positive if the slip has reversed."""
        modes = self.modes
        free = self._friction[self.rows] == 0.0
        return np.where((modes == 0.0) | free, -1.0, -modes * self.speeds(closing) - STANDS)

    def take_directions(self, closing: NDArray[np.float64], slack: NDArray[np.bool_]) -> None:
        """Set the slip direction of contacts between taut strands from their motion; contacts without motion stick."""
        speeds = self.speeds(closing)
        for contact, speed in enumerate(speeds.tolist()):
            moves = abs(speed) > STANDS * (1.0 + float(np.abs(closing).max(initial=0.0)))
            self.set_mode(contact, np.sign(speed) if moves and not slack[self.ahead[contact]] else 0.0)

    def join(self, strands: NDArray[np.bool_]) -> None:
        """Combine every block that contains one of the strands (s,) into one row, independent of its contact states."""
        for contact in np.flatnonzero(strands[self.ahead]):
            self.set_mode(int(contact), 1.0)

    def keep(self, slack: NDArray[np.bool_]) -> None:
        """Set the slip so that the rest length of every taut strand equals its path, at the last evaluated state."""
        state = self._work.route_state
        for block in self.blocks:
            passed = 0.0
            if len(block) == 1 or slack[block[0]]:
                continue
            for strand in block[:-1]:
                own = self._strands[strand]
                passed -= float(state[own, LENGTH] - state[own, REST_NOW])
                state[self._strands[strand + 1], SLIP] += passed

    def lost(self) -> float:
        """Energy [J] dissipated by slip since `keep`, with constant excesses, at the last evaluated state."""
        state, rows = self._work.route_state, self._strands[self.ahead]
        return float(state[rows, EXCESS] @ (state[rows, LENGTH] - state[rows, REST_NOW]))

    def record_speeds(self, closing: NDArray[np.float64]) -> None:
        """Store the slip speeds for readings."""
        self._work.route_state[self.rows, RATE] = np.where(self.modes != 0.0, self.speeds(closing), 0.0)

    def _begin(self, strand: int) -> int:
        return next(block[0] for block in self.blocks if strand in block)
