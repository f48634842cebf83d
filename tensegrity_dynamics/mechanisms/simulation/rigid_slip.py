"""Capstan friction of routed cables that do not stretch: contacts that stick and slip, as complementarity.

Between the strands behind and ahead of a contact of friction mu and wrap angle phi, with r = e^(mu phi),

    sticks:  no rest length passes,                        T_behind / r <= T_ahead <= r T_behind
    slips:   T_ahead = r^m T_behind, m = 1 or -1,          rest length passes with the sign of m.

While it sticks both strands are rows of the loops; while it slips their sum is one row, and what the tensions have
beyond that of the first strand of such a group acts as a force. The tensions are affine in these excesses x, so that

    T(x) = t + A x,   x_s = (c_s - 1) T_leader(x),   c_s the product of r^m from the leader to s,

is a linear system with as many unknowns as contacts slip. No finite ratio holds a tension against a slack strand:
strands between contacts of finite friction (a block) go slack together.
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
"""Part of the largest tension by which a contact that sticks is beyond its bound when it slips."""
STANDS = 1e-11
"""m/s of slip that is rounding."""


class RigidSlip:
    """The contacts that may slip of the strands of routed cables without stretch.

    Args:
        work: of the simulation. elements: rows of elements of the mechanism.
        cables: of each cable the rows (k,) of elements at which its strands begin, in order.

    Attributes:
        rows: (c,) of the contacts' elements. ahead: (c,) the strand that begins there; the one before is behind.
        blocks: strands that go slack together.
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
        """(c,) 0 where a contact sticks, else 1 or -1, the direction in which rest length passes."""
        return np.array(self._work.route_state[self.rows, MODE])

    def set_mode(self, contact: int, mode: float) -> None:
        """Let a contact stick (0) or slip."""
        self._work.route_state[self.rows[contact], [MODE, EXCESS, RATE]] = mode, 0.0, 0.0

    @property
    def slipping(self) -> bool:
        """Whether any contact slips."""
        return bool(self.rows.size) and bool(np.any(self._work.route_state[self.rows, MODE]))

    def excesses(self) -> NDArray[np.float64]:
        """(c,) N of the strands ahead of contacts beyond the first strand of their group."""
        return np.array(self._work.route_state[self.rows, EXCESS])

    def set_excesses(self, values: NDArray[np.float64]) -> None:
        """Let the strands ahead of contacts have other excesses (c,) N."""
        self._work.route_state[self.rows, EXCESS] = values

    def spread(self, slack: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """(s,) with whole blocks slack of which one strand is; the contacts between slack strands stick."""
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
        """(s,) N of all strands, with the excesses at their bounds, which are kept.

        Args:
            tensions: N of the strands for the excesses as they are set, at one state.

        Raises:
            TensegrityError: friction locks the mechanism, so that no tension satisfies its law.
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
        """(c,) part of the largest tension by which each contact that sticks is beyond its bound, and its direction.

        Of one that slips it is negative.
        """
        ratios, ahead, behind = self._ratios(), tensions[self.ahead], tensions[self.ahead - 1]
        forward, backward = ahead - ratios * behind, behind - ratios * ahead
        scale = max(float(np.abs(tensions).max(initial=0.0)), 1e-300)
        over = np.maximum(forward, backward) / scale - OVER
        return np.where(self.modes == 0.0, over, -1.0), np.where(forward > backward, 1.0, -1.0)

    def speeds(self, closing: NDArray[np.float64]) -> NDArray[np.float64]:
        """(c,) m/s at which rest length passes the contacts, for what the paths grow by (s,) m/s without it."""
        return np.array([-sum(closing[k] for k in range(self._begin(a), a)) for a in self.ahead])

    def turned_back(self, closing: NDArray[np.float64]) -> NDArray[np.float64]:
        """(c,) m/s above zero where rest length passes a slipping contact against its direction."""
        modes = self.modes
        free = self._friction[self.rows] == 0.0
        return np.where((modes == 0.0) | free, -1.0, -modes * self.speeds(closing) - STANDS)

    def take_directions(self, closing: NDArray[np.float64], slack: NDArray[np.bool_]) -> None:
        """Let contacts between taut strands slip as they move, or stick where they do not."""
        speeds = self.speeds(closing)
        for contact, speed in enumerate(speeds.tolist()):
            moves = abs(speed) > STANDS * (1.0 + float(np.abs(closing).max(initial=0.0)))
            self.set_mode(contact, np.sign(speed) if moves and not slack[self.ahead[contact]] else 0.0)

    def join(self, strands: NDArray[np.bool_]) -> None:
        """Make one row of every block that has one of the strands (s,), whatever its contacts did."""
        for contact in np.flatnonzero(strands[self.ahead]):
            self.set_mode(int(contact), 1.0)

    def keep(self, slack: NDArray[np.bool_]) -> None:
        """Let so much have slipped that every taut strand is as long as its path, at the state evaluated last."""
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
        """J that slip has taken since `keep`, for excesses that were steady meanwhile, at the state evaluated last."""
        state, rows = self._work.route_state, self._strands[self.ahead]
        return float(state[rows, EXCESS] @ (state[rows, LENGTH] - state[rows, REST_NOW]))

    def record_speeds(self, closing: NDArray[np.float64]) -> None:
        """Keep the speeds of slip for readings."""
        self._work.route_state[self.rows, RATE] = np.where(self.modes != 0.0, self.speeds(closing), 0.0)

    def _begin(self, strand: int) -> int:
        return next(block[0] for block in self.blocks if strand in block)
