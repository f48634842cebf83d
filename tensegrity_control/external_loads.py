"""Loads that a control reckons with: those that somebody tells while the robot runs, as long as they are fresh, and the
one that the observer estimates.

An estimate is part of a loop, a reported load is not: where the model is wrong it answers to what the control does.
So it counts in bounds, at a bounded rate and slower than it is found, and from the state after its own on, which
settles which state meets which estimate, however messages travel.
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
from tensegrity_dynamics.numerics.types import Array
from tensegrity_dynamics.robots.carried_payload import CarriedPayload
from tensegrity_dynamics.robots.robot import Robot
from tensegrity_dynamics.robots.units import STANDARD_GRAVITY

from .controller import Controller

LARGEST = 0.5
"""Part of the robot's weight up to which an estimate is believed."""
SOME = 50
"""Estimates that are kept until their time comes."""
FOLLOWING = 0.1
"""s, time constant with which the control follows an estimate: slower than the observer and than the control."""
RISE = 0.1
"""s in which an estimate may go from nothing to the largest."""


class HeldPayloads:
    """Payloads that were announced, by name, until a controller takes them.

    Args:
        robot: that carries them.
    """

    def __init__(self, robot: Robot) -> None:
        self.robot, self.payloads = robot, dict[str, Payload]()

    def attach(self, name: str, body: str, mass: float, at: ArrayLike, inertia: ArrayLike) -> None:
        """As `Simulation.attach`. Raises TensegrityError: no body has this."""
        numbers = (np.array(each, dtype=np.float64) for each in (at, inertia))
        self.payloads[name] = Payload(name, body, float(mass), *numbers)

    def detach(self, name: str) -> None:
        """The payload of that name is there no more."""
        self.payloads.pop(name, None)


class ExternalLoads:
    """The wrenches reported to a controller, by the rules by which they act in simulation (`ExternalWrenches`).

    Args:
        robot: whose bodies or nodes they name. patience: s for which each counts.
        limit: N, the largest force that is believed of an estimate, and in N m the largest moment times 1 / m; None
            for `LARGEST` of the robot's weight.

    Attributes:
        estimate: (6,) N and N m, what of the estimate counts now. estimate_of: the body that it acts on, or empty.
    """

    def __init__(self, robot: Robot, patience: float = 0.5, limit: float | None = None) -> None:
        model = robot.model
        self._wrenches = ExternalWrenches(model.load_names, model.takes_moments, patience)
        self._guesses = ExternalWrenches(model.load_names, model.takes_moments, patience)
        self._controller: Controller | None = None
        self._held = HeldPayloads(robot)
        self._payloads = ExternalPayloads(self._held, patience)
        self._payloads_changed = False
        self._carrier: Controller | None = None
        self.limit = LARGEST * STANDARD_GRAVITY * _mass(robot) if limit is None else float(limit)
        if not (np.isfinite(self.limit) and self.limit >= 0.0):
            raise TensegrityError(f"the limit of estimated loads is {limit} N; give a number of at least zero.")
        self._forget_estimates()

    def take(
        self, controller: Controller, name: str, force: ArrayLike, moment: ArrayLike, stamp: float, now: float
    ) -> None:
        """A wrench on a body or node, N and N m about world axes, that was right at `stamp` [s].

        Raises:
            CommandRefused: unknown name, not finite, stale or of the future; says which.
            TensegrityError: this controller reckons with no loads.
        """
        if not controller.takes_loads:
            raise TensegrityError(f"{name}: {controller.no_loads}")
        self._wrenches.take(name, force, moment, stamp, now)

    def take_payload(self, name: str, mass: float, at: ArrayLike, inertia: ArrayLike, stamp: float, now: float) -> None:
        """A payload of a body, as `ExternalPayloads.take` has it, for controllers that reckon with payloads.

        Raises:
            CommandRefused: as there.
        """
        self._payloads.take(name, mass, at, inertia, stamp, now)
        self._payloads_changed = True

    def begin_with(self, carried: Iterable[CarriedPayload], now: float) -> tuple[CarriedPayload, ...]:
        """Payloads that the robot carried before this controller listened, as `ExternalPayloads.begin_with` has it.

        Raises:
            CommandRefused: as there.
        """
        new = self._payloads.begin_with(carried, now)
        self._payloads_changed |= bool(new)
        return new

    def take_estimate(self, name: str, force: ArrayLike, moment: ArrayLike, stamp: float, now: float) -> None:
        """A wrench that is estimated to have acted on a body or node at `stamp` [s]; one body has one at a time.

        Raises:
            CommandRefused: as `take`.
        """
        wrench = self._guesses.take(name, force, moment, stamp, now)
        self._estimates.append((stamp, name, wrench))

    def update(self, controller: Controller, now: float) -> None:
        """Tell a controller what acts at a time [s], where that is new to it; what is stale acts no more."""
        self.carry(controller)
        if not controller.takes_loads:
            self._at = now
            return
        changed = self._wrenches.changed(now) is not None or controller is not self._controller
        if not (controller.takes_estimates and self._follow_estimate(now)) and not changed:
            return
        self._controller = controller
        forces = dict(self._wrenches.held)
        if controller.takes_estimates and self.estimate_of and self.estimate.any():
            own = forces.get(self.estimate_of, np.zeros(6))
            forces[self.estimate_of] = self.estimate[: own.size] + own
        controller.set_loads(forces)

    def carry(self, controller: Controller) -> None:
        """Tell a controller what is carried, where that is new to it: before it takes over, so that it holds it."""
        if controller.takes_payloads and (self._payloads_changed or controller is not self._carrier):
            controller.carry(tuple(self._held.payloads.values()))
            self._payloads_changed, self._carrier = False, controller

    def forget(self) -> None:
        """None acts any more, as after a reset."""
        self._payloads.forget()
        self._payloads_changed |= bool(self._held.payloads)
        self._held.payloads.clear()
        self._wrenches.forget()
        self._controller = None
        self._forget_estimates()

    def _forget_estimates(self) -> None:
        self._guesses.forget()
        self._estimates: deque[tuple[float, str, Array]] = deque(maxlen=SOME)
        self.estimate, self.estimate_of, self._at = np.zeros(6), "", -np.inf

    def _follow_estimate(self, now: float) -> bool:
        """Move what counts towards the newest estimate of an earlier time; returns whether that changed it."""
        if now < self._at:  # the clock has gone back: nobody knows any more how old they are
            self._estimates.clear()
        old = [each for each in self._estimates if each[0] < now]
        newest = max(old, key=lambda each: each[0]) if old else None
        while newest is not None and self._estimates[0] is not newest:
            self._estimates.popleft()
        elapsed, self._at = now - self._at, now
        desired, name = np.zeros(6), self.estimate_of
        if newest is not None and now - newest[0] <= self._guesses.patience:
            _, name, desired = newest
            largest = _longest(desired)
            desired = desired * min(1.0, self.limit / max(largest, 1e-12))
        before = self.estimate if name == self.estimate_of else np.zeros(6)
        step = (desired - before) * (1.0 - math.exp(-max(elapsed, 0.0) / FOLLOWING))
        most = self.limit * min(max(elapsed, 0.0), 1.0) / RISE
        longest = _longest(step)
        self.estimate_of, self.estimate = name, before + step * min(1.0, most / max(longest, 1e-12))
        return longest > 0.0


def _longest(wrench: Array) -> float:
    """The larger length of force and moment, in N and N m, of a wrench (6,)."""
    force, moment = wrench[:3], wrench[3:]
    return math.sqrt(max(float(force @ force), float(moment @ moment)))


def _mass(robot: Robot) -> float:
    """kg of all that moves."""
    mechanism = getattr(robot.model, "mechanism", None)
    return 0.0 if mechanism is None else float(np.sum(mechanism.flat.mass))
