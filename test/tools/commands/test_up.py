"""What `up` does when one of its processes ends: who may fall alone is written in the node graph."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tensegrity_dynamics import load_robot
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_tools.cli import app
from tensegrity_tools.commands import up
from tensegrity_tools.commands.up import Living, pace
from tensegrity_tools.runtime.node_graph import EMULATED, Watching, hardware_graph, simulation_graph

GRAPHS = {"simulation": simulation_graph("tensebot"), "hardware": hardware_graph("tensebot", port=EMULATED)}


class Ended:
    """Processes of which some have ended."""

    def __init__(self, **status: int) -> None:
        self.status = status

    def ended(self) -> dict[str, int]:
        return self.status

    def last_words(self, name: str) -> str:
        return f"the last words of {name}"


@pytest.mark.parametrize("kind", GRAPHS)
@pytest.mark.parametrize("status", [1, -9, -11, 0])
def test_a_crash_of_what_only_shows_ends_nobody_else_and_is_said_once(kind, status, capsys):
    alive = Living(Ended(view=status, markers=status), GRAPHS[kind])
    for _ in range(3):
        alive.check()
    said = " ".join(capsys.readouterr().out.split())  # a terminal may break the line anywhere
    assert said.count("the robot continues without it") == 2 and "last words of view" in said
    assert not alive.runs("view") and not alive.runs("markers") and alive.runs("controller")


@pytest.mark.parametrize("kind", GRAPHS)
def test_the_end_of_any_other_node_ends_all_and_says_why(kind):
    others = [node.name for node in GRAPHS[kind] if node.name not in ("view", "markers")]
    assert len(others) == 3
    for name in [*others, "emulator"]:
        alive = Living(Ended(**{name: 1}), GRAPHS[kind])
        alive.began = True
        with pytest.raises(TensegrityError, match=f"the {name} ended with status 1.*\n.*last words of {name}"):
            alive.check()


def test_a_simulated_robot_that_no_controller_can_hold_is_shown_without_one(capsys):
    unfit = Living(Ended(controller=1), GRAPHS["simulation"])
    unfit.check()
    assert not unfit.runs("controller") and "continues without it" in " ".join(capsys.readouterr().out.split())
    began = Living(Ended(controller=1), GRAPHS["simulation"])
    began.began = True
    crashed = Living(Ended(controller=-11), GRAPHS["simulation"])
    built = Living(Ended(controller=1), GRAPHS["hardware"])
    for alive in (began, crashed, built):
        with pytest.raises(TensegrityError, match="the controller ended"):
            alive.check()


def test_what_was_too_late_by_the_clock_stands_in_the_diagnostics():
    def status(**values):  # as nodes write their keys
        pairs = {key.replace("_", " "): str(value) for key, value in values.items()}
        return SimpleNamespace(values=[SimpleNamespace(key=key, value=value) for key, value in pairs.items()])

    controller = status(missed_deadlines=3, answered_states=8100, late_states=1)
    simulator = status(lost_periods=2, real_time_factor="0.99")
    said = pace({"controller": controller, "simulator": simulator})
    assert "3 of 8100 states were answered later than a period, 1 states came late" in said
    assert said.endswith("left out 2 periods, real-time factor 0.99")
    assert pace({"controller": status(missed_deadlines=181, answered_states=3182)}).endswith("more time")
    assert "simulator" not in pace({"controller": controller})  # on hardware


class Robot:
    """In place of a watcher: a robot whose nodes are all ready, of which one ends when it is asked for a motion.

    What waits calls `check` again and again.
    """

    def __init__(self, check, namespace):
        self.check = check
        self.estimate = self.truth = object()
        said = {"controller": "holding", "simulator": "running"}
        self.diagnostics = {
            name: SimpleNamespace(message=text, values=[], level=b"\x00") for name, text in said.items()
        }

    def offered(self, name):
        return True

    def spin(self, duration):
        self.check()

    def send_goal(self, *goal, **options):
        NODES.status["simulator"] = -9
        self.check()
        raise AssertionError("it would wait for the answer of a node that has ended")

    answered, pose, time = True, 0.0, 0.0

    def forget(self): ...

    def close(self): ...


class Nodes(Ended):
    def start_all(self, graph): ...


NODES = Nodes()


@pytest.fixture
def quiet_graph(monkeypatch):
    from tensegrity_tools.runtime import robot_client, tour

    monkeypatch.setattr(robot_client, "Watcher", Robot)
    monkeypatch.setattr(tour, "goal_of", lambda *_: (0, 0))
    NODES.status = {}
    return simulation_graph("tensebot", watching=Watching(markers=False, view=False))


def test_a_wait_for_an_answer_ends_as_soon_as_a_needed_node_has_ended(quiet_graph):
    with pytest.raises(TensegrityError, match="the simulator ended with status -9"):
        up._run(NODES, quiet_graph, load_robot("tensebot"), True, False, lambda: None)


def test_a_start_that_neither_moves_the_robot_nor_stays_says_so(quiet_graph, capsys):
    assert up._run(NODES, quiet_graph, load_robot("tensebot"), False, False, lambda: None) == 0
    assert "--no-stay" in capsys.readouterr().out


def test_a_robot_that_kept_running_until_ctrl_c_is_not_told_to_have_ended_by_an_option(
    quiet_graph, monkeypatch, capsys
):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(up.StatusLine, "show", interrupt)
    assert up._run(NODES, quiet_graph, load_robot("tensebot"), False, True, lambda: None) == 0
    said = capsys.readouterr().out
    assert "It keeps running" in said
    assert "--no-stay" not in said


def test_a_tour_is_refused_before_the_graph_is_resolved_if_the_file_has_none(monkeypatch, tmp_path, capsys):
    def resolve(_):
        raise AssertionError("it loads and compiles what the robot's controller needs")

    monkeypatch.setattr(up, "resolve", resolve)
    path = tmp_path / "cart.yaml"
    path.write_text(
        "name: cart\nkind: mechanism\ndefaults: {actuators: {position: [-1, 1], rate: 1, effort: 9}}\n"
        "bodies: {cart: {mass: 1, inertia: [1, 1, 1]}}\n"
        "joints: [{name: x, kind: prismatic, parent: world, body: cart, axis: [1, 0, 0]}]\n"
        "actuators: [{drives: x}]\noutputs: [{name: cart, body: cart, controlled: [x]}]\n"
    )
    with pytest.raises(SystemExit):
        app(["up", "sim", str(path), "--tour"])
    assert "cart has no tour" in " ".join(capsys.readouterr().err.split())
