"""Control of an elastic mechanism along a planned motion: the plan's inputs and its own feedback (`task_plan`)."""

from __future__ import annotations

from ..motion_planning.output_model import OutputModel
from ..motion_planning.output_planner import OutputPlan
from ..motion_planning.trajectory_tracking import LinearFeedbackTracker


class OutputTracker(LinearFeedbackTracker):
    """Follows a plan, and holds its end.

    Args:
        model: the model that was planned with. plan: the motion.
    """

    model: OutputModel
    plan: OutputPlan

    def __init__(self, model: OutputModel, plan: OutputPlan) -> None:
        super().__init__(model, plan)
