"""Limits of a plan: tension floors and ceilings, springs that stay tight, rest lengths within their limits."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tensegrity_dynamics.errors import TensegrityError, is_finite_number, unknown_name
from tensegrity_dynamics.numerics.types import Array
from tensegrity_dynamics.robots.robot import Robot
from tensegrity_dynamics.structures.form_finding.equilibrium import StructureEquilibrium

from .limits import Limits
from .structure_jacobian import Sensitivity

PASSIVE_FLOOR = 0.01
"""Fraction of the mean tension that every tendon keeps."""
PASSIVE_REASON = f"{PASSIVE_FLOOR:.0%} of the mean tension: plans keep every tendon and spring tight"
TOLERANCE = 1e-6
"""Tolerance of limits, as a fraction of the mean tension and of half the mean travel."""


class TendonGuard:
    """Limits of one robot as rows over tensions and rest lengths.

    Actuated tendons keep their tension between a floor and the effort limit of the actuator, and their rest length
    within the position limits of the actuator. Springs and unactuated tendons that are tight at the reference stay
    tight: their floor is 1 % of the mean tension there. This is also the smallest floor of an actuated tendon, since a
    slack tendon no longer responds to its actuator. Limits are tightened by twice the tolerance of the planner, so that
    accepted plans keep the original limits strictly.

    Args:
        robot: robot with the limits of its actuators.
        reference: equilibrium that defines tight members and the mean tension.
        tension_floor: N for every actuated tendon, or by actuator name; None: the minimum tension of each actuator.

    Raises:
        TensegrityError: a tension floor is out of range, or an actuator is unknown.
    """

    def __init__(
        self, robot: Robot, reference: StructureEquilibrium, tension_floor: float | Mapping[str, float] | None = None
    ) -> None:
        structure = robot.structure
        self.members = robot.actuated_members()
        floors = _floors(robot, tension_floor)
        # The tension of a member between two fixed nodes cannot be changed by others.
        movable = ~np.all(structure.fixed[structure.members], axis=1)
        tight = structure.unilateral & movable & (reference.tensions > 0.0)
        self.tension_scale = float(np.mean(reference.tensions[tight])) if np.any(tight) else 1.0
        spans = [actuator.position[1] - actuator.position[0] for actuator in robot.actuators]
        self.length_scale = 0.5 * float(np.mean(spans))

        driven = {int(member): k for k, member in enumerate(self.members)}
        least = PASSIVE_FLOOR * self.tension_scale
        self.guarded = np.flatnonzero(tight).astype(np.int64)
        low = np.array([max(floors[driven[k]], least) if k in driven else least for k in self.guarded.tolist()])
        high = np.array([robot.actuators[driven[k]].effort if k in driven else np.inf for k in self.guarded.tolist()])
        self.floors = low
        shortest = np.array([actuator.position[0] for actuator in robot.actuators])
        longest = np.array([actuator.position[1] for actuator in robot.actuators])
        tension_margin, length_margin = 2.0 * TOLERANCE * self.tension_scale, 2.0 * TOLERANCE * self.length_scale
        names = [structure.member_names[k] for k in self.guarded] + [structure.member_names[k] for k in self.members]
        self.limits = Limits(
            low=np.concatenate((low + tension_margin, shortest + length_margin)),
            high=np.concatenate((high - tension_margin, longest - length_margin)),
            scale=np.concatenate((np.full(low.size, self.tension_scale), np.full(shortest.size, self.length_scale))),
            names=tuple(names),
            quantities=("tension",) * low.size + ("rest length",) * shortest.size,
            usual=tuple(PASSIVE_REASON if value == least else "" for value in low) + ("",) * shortest.size,
        )

    def drawn_in(self, fraction: float) -> Limits:
        """The same limits, tightened by a fraction of the typical tension and travel."""
        limits = self.limits
        return Limits(
            limits.low + fraction * limits.scale,
            limits.high - fraction * limits.scale,
            limits.scale,
            limits.names,
            limits.quantities,
            limits.usual,
        )

    def values(self, equilibrium: StructureEquilibrium) -> Array:
        """(r,) N and m, limited quantities at an equilibrium."""
        return np.concatenate((equilibrium.tensions[self.guarded], equilibrium.rest_lengths[self.members]))

    def jacobian(self, slopes: Sensitivity) -> Array:
        """(r, a) derivatives of the limited quantities by the actuated rest lengths."""
        return np.vstack((slopes.tensions[self.guarded], np.eye(self.members.size)))

    def slackened(self, equilibrium: StructureEquilibrium) -> tuple[str, ...]:
        """Guarded members without tension."""
        return tuple(
            equilibrium.structure.member_names[k] for k in self.guarded[equilibrium.tensions[self.guarded] <= 0.0]
        )

    def margins(self, equilibrium: StructureEquilibrium) -> dict[str, float]:
        """N by member name: tension above the floor."""
        above = equilibrium.tensions[self.guarded] - self.floors
        return {
            equilibrium.structure.member_names[k]: float(value) for k, value in zip(self.guarded, above, strict=True)
        }


def _floors(robot: Robot, tension_floor: float | Mapping[str, float] | None) -> list[float]:
    floors = [actuator.minimum_tension for actuator in robot.actuators]
    names = [actuator.name for actuator in robot.actuators]
    if isinstance(tension_floor, Mapping):
        for name, value in tension_floor.items():
            if name not in names:
                raise TensegrityError("tension floor: " + unknown_name("actuator", name, names))
            floors[names.index(name)] = value
    elif tension_floor is not None:
        floors = [tension_floor] * len(floors)
    for actuator, floor in zip(robot.actuators, floors, strict=True):
        if not (is_finite_number(floor) and 0.0 <= floor < actuator.effort):
            raise TensegrityError(
                f"tension floor of {actuator.name} is {floor!r} N; give a number from 0 to below its effort limit "
                f"of {actuator.effort:g} N."
            )
    return [float(floor) for floor in floors]
