"""Blocks of other packages in robot files: checked with line and field like the rest, and never dropped."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import Field

from tensegrity_dynamics import parse_robot
from tensegrity_dynamics.errors import RobotFileError, TensegrityError
from tensegrity_dynamics.robots import extensions
from tensegrity_dynamics.robots.actuator import Actuator
from tensegrity_dynamics.robots.extensions import register_block
from tensegrity_dynamics.robots.file_errors import Problems
from tensegrity_dynamics.robots.schema import Block, PositiveLength

ROBOT = """\
kind: structure
name: pair
units: {length: cm}
nodes:
  left: {position: [0, 0, 0], fixed: true}
  right: {position: [10, 0, 0]}
members:
  - {name: pull, kind: tendon, nodes: [left, right], rest_length: 9, stiffness: 100}
actuators:
  - {drives: pull, position: [5, 10], rate: 1, effort: 20}
"""
BAG = """\
bag:
  range: 40
  watches: [pull]
"""


class BagBlock(Block):
    range: PositiveLength
    watches: list[str] = Field(default_factory=list)


def read_bag(block: BagBlock, actuators: tuple[Actuator, ...], problems: Problems) -> dict[str, Any]:
    names = [each.name for each in actuators]
    for i, name in enumerate(block.watches):
        if name not in names:
            problems.add(("bag", "watches", i), f"there is no actuator {name}.")
    return block.model_dump()


@pytest.fixture(scope="session")
def bag() -> None:
    register_block("bag", BagBlock, read_bag)


@pytest.mark.usefixtures("bag")
def test_a_registered_block_is_read_in_the_units_of_the_file() -> None:
    robot = parse_robot(ROBOT + BAG)
    assert robot.blocks == {"bag": {"range": pytest.approx(0.4), "watches": ["pull"]}}
    assert parse_robot(ROBOT).blocks == {}


@pytest.mark.usefixtures("bag")
@pytest.mark.parametrize(
    ("old", "new", "start"),
    [
        ("range: 40", "range: -40", "pair.yaml:12: bag.range: must be above 0; found -40."),
        ("range: 40", "rnge: 40", "pair.yaml:11: bag.range: missing; add it."),
        ("[pull]", "[pul]", "pair.yaml:13: bag.watches[0]: there is no actuator pul."),
        ("bag:\n", "bga:\n", "pair.yaml:11: bga: unknown field. Did you mean 'bag'?"),
    ],
)
def test_an_error_in_it_names_line_and_field(old: str, new: str, start: str) -> None:
    with pytest.raises(RobotFileError) as caught:
        parse_robot((ROBOT + BAG).replace(old, new), "pair.yaml")
    assert str(caught.value).startswith(start)


@pytest.mark.usefixtures("bag")
def test_its_errors_come_together_with_those_of_the_robot() -> None:
    text = (ROBOT + BAG).replace("range: 40", "range: -40").replace("rest_length: 9", "rest_length: -9")
    with pytest.raises(RobotFileError) as caught:
        parse_robot(text, "pair.yaml")
    assert [line.split(":")[1] for line in str(caught.value).splitlines()] == ["8", "12"]


def test_a_block_that_nobody_reads_is_an_unknown_field() -> None:
    with pytest.raises(RobotFileError, match=r"pair.yaml:11: crate: unknown field"):
        parse_robot(ROBOT + BAG.replace("bag", "crate"), "pair.yaml")


@pytest.mark.parametrize("name", ["actuators", "servos"])
def test_a_name_that_is_taken_is_refused(name: str) -> None:
    parse_robot(ROBOT + "servos: {defaults: {model: AX-12A, spool_radius: 1}, servos: [{actuator: pull, id: 1}]}")
    with pytest.raises(TensegrityError, match=f"a field '{name}' already"):
        register_block(name, BagBlock, read_bag)


WITHOUT_DRIVER = """
import sys
from tensegrity_dynamics import parse_robot
print(parse_robot(sys.stdin.read()).servos)
print([name for name in sys.modules if name.startswith("tensegrity_driver")])
"""


def test_without_the_driver_its_block_is_kept_as_it_stands_in_the_file(tmp_path: Path) -> None:
    (tmp_path / "tensegrity_dynamics").symlink_to(Path(extensions.__file__).parents[1])
    run = subprocess.run(
        [sys.executable, "-c", WITHOUT_DRIVER],
        input=ROBOT + "servos: {whatever: [1, 2 cm]}",
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1", "NUMBA_CACHE_DIR": str(tmp_path / "cache")},
    )
    assert run.stdout.splitlines() == ["{'whatever': [1, '2 cm']}", "[]"]
