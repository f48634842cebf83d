"""Selection of the entities that an executor checks in each wait: messages always, the others at intervals.

The executor of rclpy collects all entities of a node in every wait. Most of them are not needed in a control period:
services for parameters, type descriptions, lifecycle, actions, and for every publisher and subscription the events on
peers with incompatible quality of service or type. With all of them, one wait of the controller costs as much time as
its control law. They are hidden from the executor while the node checks messages only: events by the node
(`RobotNode.waitables`), the others by their callback group.
"""

from __future__ import annotations

from typing import Any

from rclpy.callback_groups import MutuallyExclusiveCallbackGroup, ReentrantCallbackGroup

LOOK, LONGEST_LOOK = 0.03, 0.2
"""Least and largest wall time [s] between two checks of all entities while messages arrive; otherwise all entities are
always checked."""
SHARE = 10.0
"""Ratio of the interval between checks of all entities to the duration of a check: with many nodes on a slow machine
the checks are less frequent."""


def pause(took: float) -> float:
    """Wall time [s] until the next check of all entities, from the duration of the last one [s]."""
    return min(max(LOOK, SHARE * took), LONGEST_LOOK)


class Attention:
    """State of the selection: whether a node checks `everything`, or messages and short timers only.

    Attributes:
        prompt: callback group of entities that are always checked, reentrant.
        patient: callback group of the other entities, mutually exclusive.
        taken: number of processed messages.
    """

    def __init__(self) -> None:
        self.everything, self.taken = True, 0
        self.prompt, self.patient = ReentrantCallbackGroup(), _Patient(self)


class _Patient(MutuallyExclusiveCallbackGroup):
    def __init__(self, attention: Attention) -> None:
        super().__init__()
        self._attention = attention

    def can_execute(self, entity: Any) -> bool:
        return self._attention.everything and super().can_execute(entity)
