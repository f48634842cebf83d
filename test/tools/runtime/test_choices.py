"""Both interfaces, `tensegrity up` and the launch files, lead to the same parameters of every node."""

from __future__ import annotations

import contextlib
import inspect
import io
import json
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from tensegrity_control.registry import suitable
from tensegrity_driver.hardware.serial_hardware import SerialHardware
from tensegrity_dynamics import TensegrityError, load_robot, shipped_robots
from tensegrity_tools.cli import app, program
from tensegrity_tools.commands.up import up
from tensegrity_tools.runtime.choices import (
    Choices,
    check_ports,
    choices_for,
    choices_from_texts,
    parameter_table,
    resolve,
)

ANOTHER_NAME = {"board_port": "board"}
"""Choices whose option is called otherwise."""


def option(name: str) -> str:
    return "--" + ANOTHER_NAME.get(name, name).replace("_", "-")


def table_of_up(use: str, robot: str, **chosen: str) -> list[tuple[str, str, str]]:
    words = ["up", use, robot, "--parameters", "--json"]
    for name, text in chosen.items():
        words += [option(name)] if text == "true" else [option(name), text]
    said = io.StringIO()
    with contextlib.redirect_stdout(said), pytest.raises(SystemExit) as end:
        app(words)
    assert not end.value.code, said.getvalue()
    return [(row["node"], row["parameter"], row["value"]) for row in json.loads(said.getvalue())]


def table_of_launch(use: str, robot: str, folder: Path, **chosen: str) -> list[tuple[str, str, str]]:
    return parameter_table(resolve(choices_from_texts(use, {"robot": robot, **chosen}, folder)))


@pytest.mark.parametrize("name", shipped_robots())
def test_every_controller_gets_the_same_parameters_through_both_interfaces(name: str, tmp_path: Path) -> None:
    robot = load_robot(name)
    for controller in ("", *suitable(robot)):
        chosen = {"controller": controller} if controller else {}
        through_up = table_of_up("sim", name, **chosen)
        assert through_up == table_of_launch("sim", name, tmp_path, **chosen)
        assert ("controller", "robot", name) in through_up and len(through_up) > 15
        if robot.servos:
            for port in ("emulated", "/dev/ttyUSB7"):
                ports = {**chosen, "port": port}
                assert table_of_up("hardware", name, **ports) == table_of_launch("hardware", name, tmp_path, **ports)


CHANGED = {
    "sim": {"lockstep": "true", "state": "truth", "control_period": "40 ms", "command_delay": "0.08", "paused": "true",
            "real_time_factor": "0.5", "namespace": "left", "frame_prefix": "one_", "view_port": "8123",
            "view_address": "0.0.0.0", "composed": "true", "mount": "1 0 0 0 0 90"},
    "hardware": {"port": "/dev/ttyUSB0", "board_port": "/dev/ttyUSB1", "calibration": __file__,
                 "deactivate": "torque off", "control_period": "0.04", "namespace": "cell/left"},
}  # fmt: skip


@pytest.mark.parametrize("use", CHANGED)
def test_choices_change_the_same_parameters_through_both_interfaces(use: str, tmp_path: Path) -> None:
    usual = {"port": "/dev/ttyUSB0"} if use == "hardware" else {}
    through_up = table_of_up(use, "tensebot", **CHANGED[use])
    assert through_up == table_of_launch(use, "tensebot", tmp_path, **CHANGED[use])
    assert through_up != table_of_up(use, "tensebot", **usual)


def test_every_launch_argument_is_an_option_of_up_with_the_same_default() -> None:
    options = inspect.signature(up).parameters
    for use in ("sim", "hardware", "replay"):
        for choice in choices_for(use):
            name = ANOTHER_NAME.get(choice.name, choice.name)
            assert name in options, f"{choice.name} cannot be chosen by `up`"
            if choice.name != "rate":  # a comparison by `up`, a film by launch, where people watch
                assert options[name].default == choice.default, choice.name


@pytest.mark.parametrize(
    ("use", "texts", "words"),
    [
        ("sim", {"controller": "nonsense"}, "There is no controller 'nonsense' for tensebot"),
        ("sim", {"control_period": "often"}, "control_period 'often': a time is needed, such as 2 s"),
        ("sim", {"command_delay": "5 kg"}, "command_delay '5 kg': 'kg' is a unit of mass"),
        ("sim", {"view_port": "80.5"}, "view_port:=80.5 is no whole number"),
        ("sim", {"view_port": "70000"}, "give 1 to 65535"),
        ("sim", {"view_address": "192.0.2.1"}, "the view cannot listen on '192.0.2.1'"),
        ("sim", {"bag": "/dev/null/run"}, "the bag /dev/null/run cannot be made: there is no folder /dev/null"),
        ("sim", {"lockstep": "perhaps"}, "lockstep:=perhaps is none of 'true', 'false'"),
        ("sim", {"real_time_factor": "-1"}, "the real time factor is -1"),
        ("sim", {"real_time_factor": "nan"}, "real_time_factor 'nan': the number must be finite"),
        ("sim", {"command_delay": "2"}, "the command delay is 2.0 s"),
        ("sim", {"namespace": "two words"}, "the namespace 'two words' is none"),
        ("hardware", {"robot": "three_prism"}, "three_prism has no servos"),
        ("hardware", {"port": "emulated", "calibration": "/nowhere"}, "there is no calibration file /nowhere"),
        ("hardware", {}, "name the port of the servos"),
        ("sim", {"mount": "1 2"}, "the mount '1 2' is none"),
        ("replay", {}, "name the bag to replay"),
        ("replay", {"bag": "/nowhere"}, "/nowhere"),
    ],
)
def test_what_does_not_go_together_is_one_sentence(use: str, texts: dict[str, str], words: str, tmp_path: Path) -> None:
    with pytest.raises(TensegrityError) as refused:
        resolve(choices_from_texts(use, texts, tmp_path))
    assert words in str(refused.value) and "\n" not in str(refused.value)


def test_what_another_use_has_is_refused_by_name() -> None:
    with pytest.raises(TensegrityError, match=r"--composed is for `up sim`, not .*; --rate is for `up replay`"):
        program(["up", "hardware", "tensebot", "--port", "emulated", "--composed", "--rate", "2"])


def test_a_paused_simulation_is_not_released_by_its_recorder(tmp_path: Path) -> None:
    for paused in (False, True):
        graph = resolve(Choices("sim", paused=paused, bag=str(tmp_path / "bag")))
        assert graph.source.parameters["paused"] is True
        assert graph["recorder"].parameters["release"] is not paused


def test_ports_are_looked_at_when_processes_shall_start_and_not_when_parameters_are_asked_for(tmp_path: Path) -> None:
    (master, slave), missing = os.openpty(), str(tmp_path / "none")
    there = os.ttyname(slave)

    def check(robot: str, **ports: str) -> None:
        check_ports(resolve(Choices("hardware", tmp_path, robot=robot, view=False, **ports)))

    try:
        check("tensebot", port="emulated")
        check("tensebot", port=there, board_port=there)
        for ports, words in (
            ({"port": missing}, f"there is no port {missing}"),
            ({"port": there}, "are measured by potentiometers, but no port is given for their board"),
            ({"port": there, "board_port": missing}, f"there is no port {missing}"),
        ):
            with pytest.raises(TensegrityError, match=re.escape(words)):
                check("tensebot", **ports)
        tensebot = load_robot("tensebot")
        by_board = replace(tensebot, servos={**tensebot.servos, "position_loop": "board"})
        SerialHardware(missing, there).check_ports(by_board)  # the port of the board is the only one
        SerialHardware(there).check_ports(by_board)
        with pytest.raises(TensegrityError, match=re.escape(f"there is no port {missing}")):
            SerialHardware(there, missing).check_ports(by_board)
    finally:
        os.close(master)
        os.close(slave)
    check_ports(resolve(Choices("sim")))
