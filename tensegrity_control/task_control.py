"""Control of an elastic mechanism along a planned motion: the plan's inputs and its own feedback (`task_plan`)."""

from __future__ import annotations

from .plan_follower import PlanFollower
from .task_model import TaskModel
from .task_plan import TaskPlan


class TaskControl(PlanFollower):
    """Follows a plan, and holds its end.

    Args:
        model: the model that was planned with. plan: the motion.
    """

    model: TaskModel
    plan: TaskPlan

    def __init__(self, model: TaskModel, plan: TaskPlan) -> None:
        super().__init__(model, plan)
