"""The node graph decides in one place what runs and what follows from a choice."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tensegrity_dynamics import TensegrityError, load_robot, shipped_robots
from tensegrity_tools.runtime.node_graph import (
    COMPOSED,
    EMULATED,
    MODULES,
    NodeDescription,
    NodeGraph,
    Watching,
    choose,
    hardware_graph,
    simulation_graph,
)


def names(graph: NodeGraph) -> list[str]:
    return [node.name for node in graph]


EXAMPLES = Path(__file__).parents[3] / "examples"


def test_every_node_has_a_module_with_a_main_and_an_executable_of_its_name() -> None:
    pytest.importorskip("rclpy", reason="ROS 2 is not installed")
    for name, module in MODULES.items():
        assert module.rsplit(".", 1)[1] == f"{name}_node"
        specification = importlib.util.find_spec(module)
        assert specification is not None and specification.origin is not None
        assert "def main()" in Path(specification.origin).read_text(encoding="utf-8")


@pytest.mark.parametrize("robot", shipped_robots())
def test_every_shipped_robot_has_a_graph_whose_controller_gets_what_it_needs(robot: str) -> None:
    graph = simulation_graph(robot)
    assert names(graph) == ["simulator", "estimator", "controller", "markers", "view"]
    assert graph["controller"].parameters["controller"] == graph.choice.controller
    periods = {graph[name].parameters["control_period"] for name in ("simulator", "controller")}
    assert periods == {graph.choice.period}
    assert all(node.parameters["robot"] == robot for node in graph)


def test_nodes_that_only_show_may_end_and_no_others() -> None:
    for graph in (simulation_graph("tensebot"), hardware_graph("tensebot", port=EMULATED)):
        assert {node.name for node in graph if node.may_end} == {"markers", "view"}


def test_the_truth_as_state_needs_no_estimator() -> None:
    graph = simulation_graph("manipulator", controller="task", state="truth")
    assert "estimator" not in graph and graph.source.parameters["truth_as_state"] is True


def test_a_torque_controller_gets_the_observer_and_a_short_period_by_itself() -> None:
    choice = simulation_graph("manipulator", controller="task").choice
    assert (choice.state, choice.period) == ("observer", 0.01)


def test_a_robot_that_needs_commands_faster_than_nodes_keep_is_refused_by_the_clock_alone() -> None:
    asked = {"robot": str(EXAMPLES / "torque_finger.yaml"), "controller": "qp"}
    with pytest.raises(
        TensegrityError, match=r"every 1 ms: under a held command .*--lockstep, --real-time-factor 0\.2 or"
    ):
        simulation_graph(**asked)
    assert simulation_graph(**asked, lockstep=True).choice.period == 0.001
    assert simulation_graph(**asked, real_time_factor=0.2).choice.period == 0.001
    assert simulation_graph(**asked, control_period=0.002).choice.period == 0.002


def test_servos_begin_when_those_that_answer_are_there_but_emulated_time_waits_itself(tmp_path: Path) -> None:
    for port in ("/dev/ttyUSB0", EMULATED):
        graph = hardware_graph("tensebot", port=port, emulator_folder=tmp_path)
        answer = [node.name for node in graph if node.name in ("estimator", "controller")]
        assert str(graph["driver"].parameters["wait_for"]).split() == answer
    recorded = hardware_graph("tensebot", port=EMULATED, bag=str(tmp_path / "run"))
    assert "recorder" in recorded and "recorder" in recorded["driver"].parameters["wait_for"].split()
    assert "wait_for" not in hardware_graph("tensebot", port=EMULATED, lockstep=True)["driver"].parameters


def test_only_the_driver_of_emulated_servos_starts_after_their_emulator(tmp_path: Path) -> None:
    emulated = hardware_graph("tensebot", port=EMULATED, emulator_folder=tmp_path)
    assert [each.name for each in emulated.processes() if emulated.waits(each)] == ["driver"]
    real = hardware_graph("tensebot", port="/dev/ttyUSB0", emulator_folder=tmp_path)
    assert not any(map(real.waits, real.processes()))


def test_all_nodes_but_the_source_use_its_clock() -> None:
    for graph in (simulation_graph("tensebot"), hardware_graph("tensebot", port=EMULATED)):
        clocks = {node.parameters["use_sim_time"] for node in graph if node is not graph.source}
        assert clocks == {graph.simulated_time}


def test_an_emulator_of_its_own_stands_behind_the_ports_of_the_driver(tmp_path: Path) -> None:
    graph = hardware_graph("tensebot", port=EMULATED, emulator_folder=tmp_path)
    assert graph.emulator is not None and graph.emulator.folder == tmp_path
    assert Path(graph["driver"].parameters["port"]).parent == tmp_path
    assert hardware_graph("tensebot", port="/dev/ttyUSB0", emulator_folder=tmp_path).emulator is None


def test_on_servos_plans_know_the_motors_and_friction_of_gears_is_taken_for_no_load() -> None:
    for controller in ("task", "qp"):
        graph = hardware_graph("manipulator", controller=controller, port=EMULATED)
        assert graph["controller"].parameters["servo_motors"]
        assert graph["estimator"].parameters["unknown_loads"] is False


def test_more_parameters_and_fewer_nodes_leave_the_graph_as_it_was() -> None:
    graph = simulation_graph("tensebot")
    assert graph.with_parameters("simulator", paused=True)["simulator"].parameters["paused"] is True
    assert "paused" not in graph["simulator"].parameters
    assert names(graph.only("controller", "view")) == ["controller", "view"]
    unseen = simulation_graph("tensebot", watching=Watching(markers=False, view=False))
    assert names(unseen) == ["simulator", "estimator", "controller"]


@pytest.mark.parametrize(
    ("robot", "asked", "words"),
    [
        ("tensebot", {"controller": "task"}, "There is no controller 'task' for tensebot"),
        ("tensebot", {"state": "seen"}, "There is no state 'seen'"),
        ("tensebot", {"state": "observer"}, "choose --state rest or truth"),
        ("manipulator", {"controller": "task", "state": "rest"}, "task needs velocities"),
        ("tensebot", {"period": 3.0}, "--control-period is 3.0 s; give 0.0005 to 1"),
        ("tensebot", {"period": float("nan")}, "--control-period is nan s"),
    ],
)
def test_what_does_not_go_together_is_refused_in_one_sentence(robot: str, asked: dict, words: str) -> None:
    with pytest.raises(TensegrityError) as raised:
        choose(load_robot(robot), **asked)
    assert words in str(raised.value) and "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("robot", "asked", "words"),
    [
        ("three_prism", {"port": EMULATED}, "three_prism has no servos"),
        ("tensebot", {"port": ""}, "name the port"),
        ("tensebot", {"port": "/dev/ttyUSB0", "lockstep": True}, "real servos do not wait"),
        ("tensebot", {"port": EMULATED, "state": "truth"}, "only a simulation knows the true state"),
    ],
)
def test_hardware_that_cannot_be_is_refused_in_one_sentence(robot: str, asked: dict, words: str) -> None:
    with pytest.raises(TensegrityError, match=words):
        hardware_graph(robot, **asked)


def test_composed_nodes_share_a_process_and_their_parameters_name_them() -> None:
    graph = simulation_graph("tensebot", lockstep=True)
    assert [process.name for process in graph.processes()] == names(graph)
    shared, view = graph.as_composed().processes()
    assert shared.name == COMPOSED and view.name == "view"
    assert shared.words == ["simulator", "estimator", "controller", "--may-end", "markers"]
    assert not shared.may_end
    given = set(shared.arguments)
    assert {"simulator:lockstep:=true", 'estimator:robot:="tensebot"', "controller:use_sim_time:=true"} <= given
    assert all(":" in word for word in shared.arguments[shared.arguments.index("--ros-args") + 2 :: 2])
    assert graph.as_composed().process(COMPOSED) == "process of simulator, estimator, controller, markers"


@pytest.mark.parametrize("controller", ["task", "qp"])
def test_a_controller_of_torques_is_made_for_the_period_in_which_the_driver_tells_states(controller: str) -> None:
    graph = hardware_graph("manipulator", port=EMULATED, controller=controller)
    assert graph["controller"].parameters["control_period"] == 0.02
    asked = hardware_graph("manipulator", port=EMULATED, controller=controller, control_period=0.01)
    assert asked["controller"].parameters["control_period"] == 0.01


def test_servos_are_not_composed() -> None:
    with pytest.raises(TensegrityError, match="a process of their own"):
        hardware_graph("tensebot", port=EMULATED).as_composed()


def test_a_robot_in_a_namespace_has_its_own_clock_and_frames() -> None:
    graph = simulation_graph("tensebot")
    assert graph.in_namespace("") == graph
    left = graph.in_namespace("/cell/left/")
    assert all(("/clock", "clock") in node.remappings for node in left)
    assert left["markers"].parameters["frame_prefix"] == "cell/left/"
    assert graph.in_namespace("left", "l_")["markers"].parameters["frame_prefix"] == "l_"
    for process in (*left.processes(), *left.as_composed().processes()):
        assert "__ns:=/cell/left" in process.arguments
    for wrong in ("two words", "3d", "a//b"):
        with pytest.raises(TensegrityError, match="namespace"):
            graph.in_namespace(wrong)


HOSTILE_TEXTS = (
    "a b", "a: b", "a #b", "#", "", " ", "~", "null", "true", "123", "1e5", "0x10", ".nan", "[1", "{a: 1}", "&a", "*a",
    "!!x", "- a", "a\nb", "a\tb", "a\x01b", "\x7f", "\\x", '"q"', "it's", "é", "\u2028", "\U0001f916", "%s", "x:=y",
    "x" * 4000,
)  # fmt: skip


def test_any_text_reaches_a_node_as_it_is() -> None:
    rclpy = pytest.importorskip("rclpy", reason="ROS 2 is not installed")
    given = {f"text_{k}": text for k, text in enumerate(HOSTILE_TEXTS)} | {"yes": True, "number": 0.25, "count": 3}
    context = rclpy.Context()
    rclpy.init(args=["--ros-args", *NodeDescription("reader", given).arguments()], context=context)
    try:
        node = rclpy.create_node("reader", context=context, automatically_declare_parameters_from_overrides=True)
        assert {name: node.get_parameter(name).value for name in given} == given
        node.destroy_node()
    finally:
        context.shutdown()
