"""The robot file says who closes the position loops, and is told where it cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest

import tensegrity_dynamics
from tensegrity_dynamics import load_robot, parse_robot
from tensegrity_dynamics.errors import RobotFileError

TEXT = (Path(tensegrity_dynamics.__file__).parent / "robots" / "tensebot.yaml").read_text()


def changed(*pairs: tuple[str, str]) -> str:
    text = TEXT
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new, 1)
    return text


BOARD = ("  protocol: 1\n", "  protocol: 1\n  position_loop: board\n")


def test_the_driver_closes_the_loops_unless_the_file_says_otherwise() -> None:
    assert load_robot("tensebot").servos["position_loop"] == "driver"
    assert parse_robot(changed(BOARD), "test").servos["position_loop"] == "board"


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        (("potentiometer: 3}", "potentiometer: 16}"), "servos.servos.3..*potentiometer.*channel, 0 to 15"),
        (("id: 4, potentiometer: 3}", "id: 4}"), "servos.servos.3..*potentiometer.*give its channel"),
        (("model: AX-12A", "model: XL430-W250"), "model.*position_loop: board drives AX-12A alone"),
        (("  position_loop: board", "  position_loop: boards"), "position_loop.*boards"),
        (("  protocol: 1\n", "  protocol: 2\n"), "protocol.*position_loop: board speaks protocol 1"),
    ],
)
def test_what_a_board_cannot_drive_is_refused_with_its_field(pair: tuple[str, str], message: str) -> None:
    with pytest.raises(RobotFileError, match=f"(?s){message}"):
        parse_robot(changed(BOARD, pair), "test")
