"""A robot in simulation: simulator, estimator, controller, markers, and the browser view.

ros2 launch tensegrity sim.launch.py robot:=tensebot
"""

from tensegrity_tools.ros.launch_nodes import BAG_ARGUMENT, YES_NO, argument, common_choices, description, number
from tensegrity_tools.runtime.node_graph import simulation_graph

ARGUMENTS = (
    argument(
        "lockstep",
        "false",
        "true: simulator and controller wait for each other; every run gives the same numbers",
        YES_NO,
    ),
    argument(
        "composed",
        "false",
        "true: one process for simulator, estimator, controller and markers; faster in lock-step, quicker to start",
        YES_NO,
    ),
    argument("real_time_factor", "1.0", "simulated seconds per second, where lockstep is false"),
    BAG_ARGUMENT,
)


def generate_launch_description():
    def graph(texts):
        made = simulation_graph(
            texts["robot"],
            lockstep=texts["lockstep"] == "true",
            real_time_factor=number(texts, "real_time_factor"),
            bag=texts["bag"],
            **common_choices(texts),
        )
        return made.as_composed() if texts["composed"] == "true" else made

    return description(ARGUMENTS, graph)
