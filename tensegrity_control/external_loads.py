"""External loads of a controller: loads reported while the robot runs, as long as they are fresh, and the estimated
load.

An estimated load is part of a feedback loop, a reported load is not: with model errors the estimate reacts to the
actions of the controller. So the estimate is bounded, follows at a bounded rate and more slowly than the observer, and
is used only from the next state on. The last rule fixes which state is combined with which estimate, independently of
the order of messages.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.external_payloads import ExternalPayloads
from tensegrity_dynamics.external_wrenches import ExternalWrenches
from tensegrity_dynamics.mechanisms.loads import Payload
from tensegrity_dynamics.numerics.compilation import QuickCall, allocation_free
from tensegrity_dynamics.numerics.types import Array
from tensegrity_dynamics.robots.carried_payload import CarriedPayload
from tensegrity_dynamics.robots.robot import Robot
from tensegrity_dynamics.robots.units import STANDARD_GRAVITY

from .controller import Controller
from .registry import load_refusal

LARGEST = 0.5
"""Upper bound of an estimate, as a fraction of the weight of the robot."""
SOME = 50
"""Number of stored estimates that are not in use yet."""
FOLLOWING = 0.1
"""s, time constant with which the controller follows an estimate; slower than the observer and than the controller."""
STEPS = 0.02
"""s, interval of the steps in which it follows, or the period of states if that is longer."""
RISE = 0.1
"""s, shortest time for an estimate to change from zero to the bound."""
NOTHING = np.zeros(6)


@allocation_free
def longer(wrench):
    """The larger magnitude of force and moment, in N and N m, of a wrench (6,)."""
    force = wrench[0] * wrench[0] + wrench[1] * wrench[1] + wrench[2] * wrench[2]
    moment = wrench[3] * wrench[3] + wrench[4] * wrench[4] + wrench[5] * wrench[5]
    return math.sqrt(max(force, moment))


@allocation_free
def follow_estimate(before, desired, limit, share, most, result):
    """Fill result (6,) with `before` (6,), moved by a share of the way towards `desired` (6,); False where it is there.

    Args:
        limit: N and N m, largest desired wrench. most: N and N m, largest step.
    """
    bounded = min(1.0, limit / max(longer(desired), 1e-12))
    for k in range(6):
        result[k] = (desired[k] * bounded - before[k]) * share
    step = longer(result)
    slowed = min(1.0, most / max(step, 1e-12))
    for k in range(6):
        result[k] = before[k] + result[k] * slowed
    return step > 0.0


_follow = QuickCall(follow_estimate)


class HeldPayloads:
    """Announced payloads by name, until a controller uses them.

    Args:
        robot: robot that carries them.
    """

    def __init__(self, robot: Robot) -> None:
        self.robot, self.payloads = robot, dict[str, Payload]()

    def attach(self, name: str, body: str, mass: float, at: ArrayLike, inertia: ArrayLike) -> None:
        """As `Simulation.attach`. Raises TensegrityError if a value is invalid."""
        self.payloads[name] = Payload(name, body, mass, at, inertia)  # type: ignore[arg-type]

    def detach(self, name: str) -> None:
        """Remove the payload of that name."""
        self.payloads.pop(name, None)


class ExternalLoads:
    """Loads reported to a controller, under the same rules as in simulation (`ExternalWrenches`).

    Args:
        robot: robot with the bodies or nodes.
        patience: s for which each wrench is valid.
        limit: N, largest estimated force, and in N m (times 1 m) largest estimated moment; None for `LARGEST` times the
            weight of the robot.

    Attributes:
        estimate: (6,) N and N m, estimated wrench in use.
        estimate_of: body on which it acts, or empty.

    Raises:
        TensegrityError: the limit is negative or not finite.
    """

    def __init__(self, robot: Robot, patience: float = 0.5, limit: float | None = None) -> None:
        model, self._robot = robot.model, robot
        self._wrenches = ExternalWrenches(model.load_names, model.takes_moments, patience)
        self._guesses = ExternalWrenches(model.load_names, model.takes_moments, patience)
        self._controller: Controller | None = None
        self._held = HeldPayloads(robot)
        self.payloads = ExternalPayloads(self._held, patience)
        self._payloads_changed = False
        self._carrier: Controller | None = None
        self.limit = LARGEST * STANDARD_GRAVITY * _mass(robot) if limit is None else float(limit)
        if not (np.isfinite(self.limit) and self.limit >= 0.0):
            raise TensegrityError(f"the limit of estimated loads is {limit} N; give a number of at least zero.")
        self._forget_estimates()
        _follow(self.estimate, self.estimate, self.limit, 0.0, 0.0, self.estimate)  # compiled now

    def take(
        self, controller: Controller, name: str, force: ArrayLike, moment: ArrayLike, stamp: float, now: float
    ) -> None:
        """Store a wrench on a body or node, N and N m about world axes, that was valid at `stamp` [s].

        Raises:
            CommandRefused: the name is unknown, or the wrench is not finite, stale or from the future.
            TensegrityError: this controller does not use loads.
        """
        if not controller.takes_loads:
            raise TensegrityError(f"{name}: {load_refusal(controller, self._robot)}")
        self._wrenches.take(name, force, moment, stamp, now)

    def take_payload(self, name: str, mass: float, at: ArrayLike, inertia: ArrayLike, stamp: float, now: float) -> None:
        """Store a payload of a body, see `ExternalPayloads.take`, for controllers that use payloads.

        Raises:
            CommandRefused: as there.
        """
        self.payloads.take(name, mass, at, inertia, stamp, now)
        self._payloads_changed = True

    def begin_with(self, carried: Iterable[CarriedPayload], now: float) -> tuple[CarriedPayload, ...]:
        """Store payloads that the robot carried before this controller started, see `ExternalPayloads.begin_with`.

        Raises:
            CommandRefused: as there.
        """
        new = self.payloads.begin_with(carried, now)
        self._payloads_changed |= bool(new)
        return new

    def take_estimate(self, name: str, force: ArrayLike, moment: ArrayLike, stamp: float, now: float) -> None:
        """Store the estimate of a wrench on a body or node at `stamp` [s]; only one estimate is in use at a time, and
        one that was overtaken by a newer one is not used.

        Raises:
            CommandRefused: as `take`.
        """
        wrench = self._guesses.take(name, force, moment, stamp, now)
        if not self._estimates or stamp > self._estimates[-1][0]:
            self._estimates.append((stamp, name, wrench))

    def update(self, controller: Controller, now: float) -> None:
        """Pass the loads at a time [s] to a controller if they have changed; stale loads are removed."""
        self.carry(controller)
        if not controller.takes_loads:
            self._at = now
            return
        changed = self._wrenches.changed(now) is not None or controller is not self._controller
        if not (controller.takes_estimates and self._follow_estimate(now)) and not changed:
            return
        self._controller = controller
        forces = dict(self._wrenches.held)
        if controller.takes_estimates and self.estimate_of:
            own = forces.get(self.estimate_of)
            forces[self.estimate_of] = self.estimate if own is None else self.estimate[: own.size] + own
        controller.set_loads(forces)

    def carry(self, controller: Controller) -> None:
        """Pass the payloads to a controller if they have changed. Call it before the controller takes over, so that it
        holds them."""
        if controller.takes_payloads and (self._payloads_changed or controller is not self._carrier):
            controller.carry(tuple(self._held.payloads.values()))
            self._payloads_changed, self._carrier = False, controller

    def forget(self) -> None:
        """Remove all loads, as after a reset."""
        self.payloads.forget()
        self._payloads_changed |= bool(self._held.payloads)
        self._held.payloads.clear()
        self._wrenches.forget()
        self._controller = None
        self._forget_estimates()

    def _forget_estimates(self) -> None:
        self._guesses.forget()
        self._estimates: deque[tuple[float, str, Array]] = deque(maxlen=SOME)
        self.estimate, self.estimate_of, self._at, self._step = np.zeros(6), "", -np.inf, -1

    def _follow_estimate(self, now: float) -> bool:
        """Move the estimate in use towards the newest estimate of an earlier time; returns whether it changed."""
        if now < self._at:  # the clock has gone back: their age is unknown
            self._estimates.clear()
        step = int(now / STEPS + 1e-6)
        if step == self._step:
            return False
        self._step = step
        while len(self._estimates) > 1 and self._estimates[1][0] < now:
            self._estimates.popleft()
        elapsed, self._at = max(now - self._at, 0.0), now
        desired, name = NOTHING, self.estimate_of
        if self._estimates and 0.0 < now - self._estimates[0][0] <= self._guesses.patience:
            _, name, desired = self._estimates[0]
        before = self.estimate if name == self.estimate_of else NOTHING
        self.estimate_of, self.estimate = name, np.empty(6)
        share, most = 1.0 - math.exp(-elapsed / FOLLOWING), self.limit * min(elapsed, 1.0) / RISE
        return bool(_follow(before, desired, self.limit, share, most, self.estimate))


def _mass(robot: Robot) -> float:
    """kg, mass of all moving bodies."""
    mechanism = getattr(robot.model, "mechanism", None)
    return 0.0 if mechanism is None else float(np.sum(mechanism.flat.mass))
