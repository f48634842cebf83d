"""Control of an elastic mechanism along a planned motion: the plan's inputs and its own feedback (`task_plan`)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .task_model import TaskModel
from .task_plan import TaskPlan

Array = NDArray[np.float64]


class TaskControl:
    """Follows a plan, and holds its end.

    Args:
        model: the model that was planned with. plan: the motion.
    """

    def __init__(self, model: TaskModel, plan: TaskPlan) -> None:
        self.model, self.plan = model, plan
        self.period = float(plan.times[1] - plan.times[0])
        self.names = tuple(each.name for each in model.robot.actuators)
        self._limits = np.array([each.effort for each in model.robot.actuators])

    def effort(self, time: float, q: Array, v: Array) -> Array:
        """(u,) N m or N within the actuators' limits, to be held from `time` [s] for one period."""
        plan = self.plan
        k = min(max(round((time - plan.times[0]) / self.period), 0), len(plan.times) - 1)
        wanted = plan.states[k]
        if k == len(plan.times) - 1:  # at rest from here on
            wanted = np.concatenate((wanted[: self.model.index.size], np.zeros(self.model.index.size)))
        deviation = self.model.state(q, v) - wanted
        return np.clip(plan.inputs[k] - plan.gains[k] @ deviation, -self._limits, self._limits)

    def as_dict(self, effort: Array) -> dict[str, float]:
        """Efforts by actuator name."""
        return dict(zip(self.names, effort.tolist(), strict=True))
