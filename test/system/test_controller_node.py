"""The controller node while it runs: other controllers, other gains, trajectories with feedback and cancel."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from patience import PATIENCE_S

rclpy = pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from builtin_interfaces.msg import Duration  # noqa: E402
from geometry_msgs.msg import Pose  # noqa: E402
from patient_watcher import PatientWatcher  # noqa: E402
from rcl_interfaces.srv import DescribeParameters, SetParameters  # noqa: E402
from rclpy.action import ActionClient  # noqa: E402
from rclpy.parameter import Parameter  # noqa: E402
from tensegrity.action import FollowTrajectory  # noqa: E402
from tensegrity.msg import ActuatorCommand, Reference  # noqa: E402

from tensegrity_dynamics import load_robot  # noqa: E402
from tensegrity_dynamics.ros.geometry_messages import fill_pose  # noqa: E402
from tensegrity_tools.experiments.stiffness import LoadedShapes  # noqa: E402
from tensegrity_tools.runtime.closed_loop import through_libraries  # noqa: E402
from tensegrity_tools.runtime.lockstep_run import through_nodes  # noqa: E402
from tensegrity_tools.runtime.node_graph import Watching, simulation_graph  # noqa: E402
from tensegrity_tools.runtime.processes import NodeProcesses  # noqa: E402

pytestmark = pytest.mark.system


class Running:
    """A mechanism in lock-step under its controller, the truth being its state."""

    def __init__(self, robot: str, **parameters):
        graph = simulation_graph(
            robot,
            controller=parameters.pop("controller", ""),
            state="truth",
            control_period=parameters.pop("control_period", 0.01),
            lockstep=parameters.pop("lockstep", True),
            watching=Watching(markers=False, view=False),
        )
        self.nodes = NodeProcesses()
        self.nodes.start_all(graph.with_parameters("controller", **parameters).as_composed())
        self.watcher = PatientWatcher("test_watcher")
        node = self.watcher.node
        self.commands: list[ActuatorCommand] = []
        self.mode = ""
        node.create_subscription(ActuatorCommand, "actuator_command", self.commands.append, 1000)
        node.create_subscription(Reference, "reference", lambda message: setattr(self, "mode", message.mode), 10)
        self.parameters = node.create_client(SetParameters, "controller/set_parameters")
        self.action = ActionClient(node, FollowTrajectory, "follow_trajectory")
        self.wait(lambda: self.mode == "holding" and self.watcher.truth is not None)

    def wait(self, condition):
        assert self.watcher.wait_until(condition, PATIENCE_S), {
            k: v.message for k, v in self.watcher.diagnostics.items()
        }

    def set(self, name, value):
        future = self.parameters.call_async(
            SetParameters.Request(parameters=[Parameter(name, value=value).to_parameter_msg()])
        )
        self.wait(future.done)
        return future.result().results[0]

    def follow(self, points, feedback=None, **options):
        goal = FollowTrajectory.Goal(**options)
        for when, position in points:
            goal.time_from_start.append(Duration(sec=int(when), nanosec=round(1e9 * (when % 1.0))))
            goal.waypoint.append(fill_pose(Pose(), position, (0.0, 0.0, 0.0, 0.0)))
        sent = self.action.send_goal_async(goal, feedback_callback=feedback)
        self.wait(sent.done)
        return sent.result()

    def close(self):
        self.watcher.close()
        self.nodes.stop()


@pytest.fixture
def running():
    made = []

    def start(*arguments, **parameters):
        made.append(Running(*arguments, **parameters))
        return made[-1]

    yield start
    for each in made:
        each.close()


@pytest.mark.long
def test_a_stiffness_is_set_along_any_direction_and_its_parameters_say_what_zero_means(running):
    robot = str(Path(__file__).parents[2] / "examples" / "soft_mast.yaml")
    system = running(robot, controller="qp", **{"qp.ceiling": 30.0, "qp.stiffness_z": 0.0})
    names = [f"qp.stiffness{end}" for end in ("", "_x", "_y", "_z")]
    client = system.watcher.node.create_client(DescribeParameters, "controller/describe_parameters")
    future = client.call_async(DescribeParameters.Request(names=names))
    system.wait(future.done)
    for each in future.result().descriptors:
        bounds = each.floating_point_range[0]
        assert "0: " in each.description and (bounds.from_value < 0.0) == (each.name != names[0]), each
    refused = system.set("qp.stiffness", 53.0)
    assert not refused.successful and "not all zero" in refused.reason
    for name, value in (("qp.stiffness_x", -1.0), ("qp.stiffness_y", -0.5)):
        assert system.set(name, value).successful
    refused = system.set("qp.stiffness", 500.0)
    assert not refused.successful and "out of reach of the self-stress" in refused.reason
    assert system.set("qp.stiffness", 53.0).successful
    home = np.array(system.watcher.pose[0])
    assert system.watcher.send_goal(home + [0.1, 0.1, 0.0], None).accepted
    system.wait(lambda: system.mode == "moving")
    system.wait(lambda: system.mode == "holding")
    along = np.array([1.0, 0.5, 0.0]) / np.sqrt(1.25)
    held = LoadedShapes(load_robot(robot), along).stiffness(np.array(system.watcher.truth.q))[0]
    assert abs(held / 53.0 - 1.0) < 0.03


@pytest.mark.long
def test_controllers_are_switched_at_rest_without_a_bump_and_gains_change_with_validation(running):
    system = running("biglide")
    home = np.array(system.watcher.pose[0])
    assert system.watcher.send_goal(home + [0.05, 0.0, 0.0], None, duration=3.0).accepted
    system.wait(lambda: system.mode == "moving")
    refused = system.set("controller", "computed_torque")
    assert not refused.successful and "call hold first" in refused.reason
    system.wait(lambda: system.mode == "holding")
    before = np.array(system.watcher.pose[0])
    for name, mode in (
        ("computed_torque", ActuatorCommand.IMPEDANCE), ("kinematic", ActuatorCommand.VELOCITY),
        ("joint_position", ActuatorCommand.POSITION), ("computed_torque", ActuatorCommand.IMPEDANCE),
    ):  # fmt: skip
        answer = system.set("controller", name)
        assert answer.successful, answer.reason
        system.wait(lambda mode=mode: system.commands[-1].mode == mode)
        first = next(each for each in reversed(system.commands) if each.mode == mode)
        if mode != ActuatorCommand.POSITION:
            asked = first.effort if mode == ActuatorCommand.IMPEDANCE else first.value
            assert np.max(np.abs(asked)) < 1e-3  # at rest nothing is needed
        system.watcher.spin(0.3)
        np.testing.assert_allclose(system.watcher.pose[0], before, atol=1e-4)
    for name, value in (("computed_torque.damping", -1.0), ("controller", "computed_torqe"), ("near_rigid.rate", 0.0)):
        answer = system.set(name, value)
        assert answer.successful is (name == "near_rigid.rate")  # which another controller judges when it is chosen
    assert system.set("computed_torque.stiffness", 100.0).successful
    assert system.set("computed_torque.damping", 20.0).successful
    assert system.watcher.send_goal(home, None).accepted
    system.wait(lambda: system.mode == "moving")
    system.wait(lambda: system.mode == "holding")
    np.testing.assert_allclose(system.watcher.pose[0], home, atol=1e-3)
    values = {each.key: each.value for each in system.watcher.diagnostics["controller"].values}
    assert values["controller"] == "computed_torque" and float(values["distance to singularity"]) > 0.0
    assert {"late states", "missed deadlines"} <= set(values)


def test_trajectories_report_their_way_and_can_be_cancelled(running):
    system = running("biglide", controller="computed_torque", **{"computed_torque.stiffness": 100.0})
    home = np.array(system.watcher.pose[0])
    heard = []
    handle = system.follow([(0.5, home + [0.02, 0.0, 0.0]), (1.0, home)], heard.append, interpolation="minimum_jerk")
    result = handle.get_result_async()
    system.wait(result.done)
    assert result.result().result.success, result.result().result.reason
    assert result.result().result.position_error < 1e-3
    progress = [each.feedback.progress for each in heard]
    assert progress and progress == sorted(progress)  # how many are heard is a matter of the clock
    handle = system.follow([(500.0, home + [0.1, 0.0, 0.0])])  # lock-step is faster than a busy watcher
    result = handle.get_result_async()
    system.wait(lambda: system.mode == "moving")
    handle.cancel_goal_async()
    system.wait(result.done)
    assert "cancelled" in result.result().result.reason
    system.wait(lambda: system.mode == "holding")
    refused = system.follow([(0.2, home - [0.1, 0.0, 0.0])]).get_result_async()  # far from wherever it stopped
    system.wait(refused.done)
    assert "stretch all times" in refused.result().result.reason
    wrong = system.follow([(1.0, home)], interpolation="straight").get_result_async()
    system.wait(wrong.done)
    assert "interpolation" in wrong.result().result.reason


def test_by_the_clock_a_goal_is_planned_while_the_control_goes_on(running):
    system = running("biglide", controller="computed_torque", lockstep=False)
    home = np.array(system.watcher.pose[0])
    count = len(system.commands)
    answer = system.watcher.send_goal(home + [0.03, 0.0, 0.0], None)
    assert answer.accepted, answer.reason
    assert len(system.commands) > count
    system.wait(lambda: system.mode == "moving")
    again = system.watcher.send_goal(home, None)  # on the way: it brakes first
    assert again.accepted, again.reason
    system.wait(lambda: system.mode == "holding")
    system.wait(lambda: np.linalg.norm(np.array(system.watcher.pose[0]) - home) < 2e-3)
    refused = system.watcher.send_goal(home + [0.0, 5.0, 0.0], None)
    assert not refused.accepted and refused.reason


@pytest.mark.parametrize(
    ("robot", "controller", "period", "observer"),
    [
        pytest.param("biglide", "kinematic", 0.05, False, marks=pytest.mark.long),
        pytest.param("single_strut", "near_rigid", 0.01, True, marks=pytest.mark.long),
    ],
)
def test_a_trajectory_through_the_nodes_is_that_through_the_libraries_and_the_same_twice_composed_or_not(
    robot, controller, period, observer
):
    loaded = load_robot(robot)
    from tensegrity_dynamics import Simulation

    home = np.array(Simulation(loaded).observe().pose[0])
    waypoints = [(1.0, home + [0.03, 0.02, 0.0], None)]
    options = {"period": period, "interpolation": "minimum_jerk", "hold": 0.2, "observer": observer}
    library = through_libraries(loaded, controller, waypoints, **options)
    runs = [through_nodes(robot, controller, waypoints, composed=each, **options) for each in (True, False)]
    for name in ("q", "v", "commands", "tensions", "seen_q"):
        np.testing.assert_array_equal(getattr(runs[0], name), getattr(runs[1], name))
    np.testing.assert_allclose(runs[0].poses, library.poses, atol=1e-6)
    errors = [np.max(np.linalg.norm(run.poses - library.poses[-1], axis=1)) for run in (runs[0], library)]
    assert errors[0] == pytest.approx(errors[1], rel=0.01)
