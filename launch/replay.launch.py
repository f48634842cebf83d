"""A recorded robot: the player at a rate with markers and the browser view, or (rate:=0) estimator and controller
again in lock-step, compared bit for bit.

ros2 launch tensegrity replay.launch.py bag:=run_1
ros2 launch tensegrity replay.launch.py bag:=run_1 rate:=0
"""

import atexit
import tempfile
from pathlib import Path

from tensegrity_tools.ros.launch_nodes import VIEW_ARGUMENTS, YES_NO, argument, description, number, watching
from tensegrity_tools.runtime.replay_graph import replay_graph

ARGUMENTS = (
    argument("bag", "", "the bag to replay: its folder, or a .mcap or .db3 file"),
    argument("rate", "1.0", "robot seconds per second; 0: estimator and controller answer again and are compared"),
    argument("start", "0", "s from the start of the bag"),
    argument("loop", "false", "from the end to the start again", YES_NO),
    argument("paused", "false", "begin paused; `ros2 param set /player paused false` goes on", YES_NO),
)


def generate_launch_description():
    def graph(texts):
        folder = tempfile.TemporaryDirectory(prefix="tensegrity_replay_")
        atexit.register(folder.cleanup)
        return replay_graph(
            texts["bag"],
            Path(folder.name),
            rate=number(texts, "rate"),
            start=number(texts, "start"),
            loop=texts["loop"] == "true",
            paused=texts["paused"] == "true",
            watching=watching(texts),
        )

    return description(ARGUMENTS, graph, common=VIEW_ARGUMENTS)
