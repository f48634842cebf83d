"""Control of an elastic mechanism along a planned motion: the plan's inputs and its own feedback (`task_plan`)."""

from __future__ import annotations

from ..motion_planning.output_model import TaskModel
from ..motion_planning.output_planner import TaskPlan
from ..motion_planning.trajectory_tracking import PlanFollower


class TaskControl(PlanFollower):
    """Follows a plan, and holds its end.

    Args:
        model: the model that was planned with. plan: the motion.
    """

    model: TaskModel
    plan: TaskPlan

    def __init__(self, model: TaskModel, plan: TaskPlan) -> None:
        super().__init__(model, plan)
