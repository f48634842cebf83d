"""What an executor looks at each time it waits: messages always, the rest of a node now and then while messages flow.

rclpy's executor collects all entities of a node anew whenever it waits. Most of them are nothing that a control period
waits for: services of parameters, descriptions of types, lifecycle, actions, and for every publisher and subscription
some that tell of peers whose quality of service or type does not fit. With all of them one wait of the controller costs
as much as its control law. They are hidden from the executor while the node looks at messages alone: events by the
node (`RobotNode.waitables`), the rest by its group.
"""

from __future__ import annotations

from typing import Any

from rclpy.callback_groups import MutuallyExclusiveCallbackGroup, ReentrantCallbackGroup

LOOK, LONGEST_LOOK = 0.03, 0.2
"""s of wall time after which a node looks at everything, while messages flow; else it always does."""
SHARE = 10.0
"""Looking takes one part of so many of the time: with many nodes on a slow machine they look less often."""


def pause(took: float) -> float:
    """s of wall time until a node looks at everything again, where that took so many s the last time."""
    return min(max(LOOK, SHARE * took), LONGEST_LOOK)


class Attention:
    """Whether a node looks at `everything` or at messages and short timers alone.

    Attributes:
        prompt: group of what is always looked at, any number at a time.
        patient: group of the rest, one at a time.
        taken: messages so far.
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
