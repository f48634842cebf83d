"""A kind of robot that is registered from outside is loaded, simulated, estimated, reported and run by the nodes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import hoist
import numpy as np
import pytest
from patience import PATIENCE_S, until
from typer.testing import CliRunner
from view_visitor import free_port, visit

from tensegrity_control.controller import Controller, RobotState
from tensegrity_control.registry import CONTROLLERS, make_controller, suitable
from tensegrity_dynamics import (
    Robot,
    RobotFileError,
    Simulation,
    TensegrityError,
    load_robot,
    parse_robot,
    register_robot_type,
)
from tensegrity_dynamics.estimation import make_estimator
from tensegrity_dynamics.robots import extensions
from tensegrity_dynamics.robots.robot_types import robot_types, type_of, unregister_robot_type
from tensegrity_dynamics.visualization.markers import MarkerDrawer
from tensegrity_dynamics.visualization.picture import make_picture
from tensegrity_tools.cli import program
from tensegrity_tools.view import View, ViewState


@pytest.fixture(scope="module", autouse=True)
def registered() -> Iterator[None]:
    register_robot_type(hoist.HOIST)
    yield
    unregister_robot_type("hoist")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("robots") / "crane.yaml"
    path.write_text(hoist.FILE)
    return path


@pytest.fixture
def crane(path: Path) -> Robot:
    return load_robot(path)


def test_its_file_is_read_with_units_and_checked(crane: Robot) -> None:
    assert isinstance(crane.model, hoist.Hoist)
    assert crane.model.stiffness == 2000.0 and crane.actuators[0].position == (0.2, 1.8)
    with pytest.raises(RobotFileError, match=r"crane.yaml:7: rope.rest_length: 3 m reach the ground"):
        parse_robot(hoist.FILE.replace("rest_length: 800", "rest_length: 3000"), "crane.yaml")
    with pytest.raises(RobotFileError, match="mass: must be above 0"):
        parse_robot(hoist.FILE.replace("mass: 3 kg", "mass: 0 kg"), "crane.yaml")


def test_it_is_no_structure_and_no_mechanism(crane: Robot) -> None:
    with pytest.raises(TensegrityError, match="crane is a hoist, not a pin-jointed structure"):
        crane.structure  # noqa: B018
    with pytest.raises(TensegrityError, match="crane is a hoist, not a mechanism of bodies and joints"):
        crane.mechanism  # noqa: B018


def test_it_swings_with_its_own_period_and_keeps_its_energy(crane: Robot) -> None:
    simulation = Simulation(crane)
    rest = simulation.state.configuration[0]
    simulation.set_motion([0.3])
    before, heights = simulation.energy().balance, []
    for _ in range(1000):
        simulation.advance(1)
        heights.append(simulation.state.configuration[0] - rest)
    assert simulation.energy().damping > 0.01
    assert simulation.energy().balance == pytest.approx(before, abs=1e-3 * 0.5 * 3.0 * 0.3**2)
    ups = np.flatnonzero((np.array(heights[:-1]) < 0.0) & (np.array(heights[1:]) >= 0.0))
    assert np.mean(np.diff(ups)) * simulation.time_step == pytest.approx(simulation.shortest_period, rel=0.01)


def test_commands_and_forces_pass_through_the_common_face(crane: Robot) -> None:
    simulation = Simulation(crane)
    start = simulation.observe().pose[0][2]
    simulation.advance(duration=4.0, position={"winch": 0.5})
    seen = simulation.observe()
    assert seen.positions["winch"] == pytest.approx(0.5)
    assert seen.pose[0][2] - start == pytest.approx(0.3, abs=1e-3)
    assert make_estimator(crane).update(seen.time, seen.positions).pose[0][2] == pytest.approx(
        seen.pose[0][2], abs=1e-3
    )
    simulation.apply_forces({"load": (0.0, 0.0, -20.0)})
    simulation.advance(duration=4.0)
    assert simulation.observe().tensions["rope"] == pytest.approx(seen.tensions["rope"] + 20.0, rel=1e-3)
    with pytest.raises(TensegrityError, match=r"no actuator 'wench'.*'winch'"):
        simulation.command("position", {"wench": 0.3})
    with pytest.raises(TensegrityError, match="no integrator of hoists 'rk4'"):
        Simulation(crane, integrator="rk4")


def test_an_observer_that_it_does_not_have_is_refused(crane: Robot) -> None:
    with pytest.raises(TensegrityError, match=r"crane is a hoist.*observers are for mechanisms"):
        make_estimator(crane, observer=True)


def test_its_states_survive_a_record(crane: Robot) -> None:
    codec, simulation = type_of(crane).codec(crane), Simulation(crane)
    simulation.set_motion([0.3])
    state = simulation.state
    decoded = codec.decode(codec.encode(state))
    np.testing.assert_array_equal(decoded.configuration, state.configuration)
    np.testing.assert_array_equal(decoded.velocity, state.velocity)


def test_markers_follow_its_load_and_its_rope(crane: Robot) -> None:
    picture = make_picture(crane)
    markers = MarkerDrawer(picture).draw(picture.at(np.array([0.7])), np.array([30.0]))
    shown = {each.namespace: each for each in markers}
    np.testing.assert_array_equal(shown["bodies"].position, [0.0, 0.0, 0.7])
    np.testing.assert_array_equal(shown["ropes"].points, [[0.0, 0.0, 2.0], [0.0, 0.0, 0.7]])


def test_the_browser_follows_its_load_and_names_its_slack_rope(crane: Robot) -> None:
    with View(crane, free_port()) as view, visit(view) as visitor:
        assert not view.show(ViewState(time=0.0, configuration=np.zeros(2)))
        assert view.show(ViewState(time=1.0, configuration=np.array([0.7]), tensions=np.zeros(1)))
        until(lambda: visitor.row("Slack") == "rope")
        np.testing.assert_allclose(visitor.array("/robot/solids/0", "batched_positions"), [[0.0, 0.0, 0.7]], atol=1e-6)


def run(*arguments: str) -> str:
    result = CliRunner().invoke(program, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_commands_print_its_reports(path: Path) -> None:
    shown = run("check", str(path))
    assert "carries 29.42 N" in shown and "It hangs." in shown
    assert json.loads(run("check", str(path), "--json"))["height_m"] == pytest.approx(1.2 - 3 * 9.80665 / 2000)
    assert json.loads(run("fk", str(path), "-l", "winch=0.5", "--json"))["height_m"] == pytest.approx(
        1.5 - 3 * 9.80665 / 2000
    )
    figures = json.loads(run("simulate", str(path), "--duration", "3 s", "--position", "winch=500 mm", "--json"))
    assert figures["integrator"] == "heun"
    assert figures["end"]["position_m"][2] - figures["start"]["position_m"][2] == pytest.approx(0.3, abs=5e-3)
    assert "lowest tension" in run("simulate", str(path), "--duration", "0.2 s")


def test_its_description_is_printed_and_written(path: Path, tmp_path: Path) -> None:
    text = run("urdf", str(path))
    assert '<mass value="3" />' in text
    assert run("urdf", str(path), "--out", str(tmp_path / "crane.urdf")) == ""
    assert (tmp_path / "crane.urdf").read_text() == text


def test_what_it_has_no_part_for_is_refused_in_words(path: Path) -> None:
    result = CliRunner().invoke(program, ["ik", str(path), "--move", "0,0,0.1"])
    assert result.exit_code != 0
    assert "crane is a hoist, for which no equilibrium map is registered" in str(result.exception)


def test_a_kind_is_registered_once_and_forgotten_by_name() -> None:
    with pytest.raises(TensegrityError, match="'hoist' are registered already"):
        register_robot_type(hoist.HOIST)
    with pytest.raises(TensegrityError, match="no kind of robot 'crane'"):
        unregister_robot_type("crane")
    assert robot_types() == ("structure", "mechanism", "hoist")


def install(folder: Path, module: str) -> str:
    """What pip leaves of a package that names `module` as an extension."""
    installed = folder / "hoist_robot-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: hoist-robot\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text(f"[tensegrity.extensions]\nhoist = {module}\n")
    return str(folder)


def test_an_installed_package_registers_it_when_a_file_asks_for_it(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unregister_robot_type("hoist")
    monkeypatch.setattr(extensions, "import_extensions", import_extensions := extensions.import_extensions.__wrapped__)
    monkeypatch.setattr("tensegrity_dynamics.robots.file_reader.import_extensions", import_extensions)
    monkeypatch.setitem(CONTROLLERS, "winch", Controller)  # the test takes it away at its end
    monkeypatch.syspath_prepend(install(tmp_path, "hoist_control"))
    crane = load_robot(path)
    controller = make_controller(suitable(crane)[0], crane)
    controller.reset(0.0, RobotState.of(Simulation(crane)))
    assert controller.set_goal(0.0, position=[0.0, 0.0, 0.9]).arrival == pytest.approx(4.0, abs=1.0)


def test_an_extension_that_cannot_be_imported_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(install(tmp_path, "no_such_hoist"))
    with pytest.raises(TensegrityError, match=r"no_such_hoist of hoist-robot cannot be imported \(ModuleNotFoundError"):
        extensions.import_extensions.__wrapped__()


@pytest.mark.long
@pytest.mark.system
def test_its_installed_package_lets_up_sim_drive_it_through_its_tour(path: Path, tmp_path: Path) -> None:
    pytest.importorskip("rclpy", reason="ROS 2 is not installed")
    support, root = Path(hoist.__file__).parent, Path(hoist.__file__).parents[2]
    folders = (str(root), str(support), install(tmp_path, "hoist_control"), os.environ.get("PYTHONPATH", ""))
    words = ["-m", "tensegrity_tools.cli", "up", "sim", str(path), "--tour", "--lockstep", "--composed", "--no-view"]
    done = subprocess.run(
        [sys.executable, *words], capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(folders)},
    )  # fmt: skip
    assert done.returncode == 0 and "2 of 2 goals reached" in done.stdout, done.stdout + done.stderr


@pytest.mark.system
def test_the_nodes_run_it(path: Path) -> None:
    pytest.importorskip("rclpy", reason="ROS 2 is not installed")
    pytest.importorskip("tensegrity.msg", reason="the interfaces are not built")
    support, root = Path(hoist.__file__).parent, Path(hoist.__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(root), os.environ.get("PYTHONPATH", "")))}
    command = [sys.executable, str(support / "hoist_nodes.py"), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, env=environment)
    assert done.returncode == 0, done.stderr
    heard = json.loads(done.stdout.splitlines()[-1])
    weight = 3 * 9.80665
    assert heard["settled"] and heard["coordinates"] == ["height"] and heard["tendons"] == ["rope"]
    assert heard["height"] == pytest.approx(1.5 - weight / 2000, abs=1e-4)
    assert heard["true_height"] == pytest.approx(heard["height"], abs=0.1)
    assert heard["solved_height"] == pytest.approx(1.3 - weight / 2000) and heard["stable"]
    assert {"bodies", "ropes"} <= set(heard["markers"])
    assert 'link name="box"' in heard["description"]
