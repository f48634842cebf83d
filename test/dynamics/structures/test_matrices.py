"""Structures as the matrices of document 001, chapter 4: out and in again, and what is wrong by row and column."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tensegrity_dynamics import load_robot
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.structures.matrices import read_matrices, structure_matrices
from tensegrity_tools.cli import app

PRISM = load_robot("three_prism")


@pytest.mark.parametrize("ending", ["", ".npz"])
def test_matrices_come_back_with_the_same_bits(tmp_path: Path, ending: str) -> None:
    made = structure_matrices(PRISM)
    made.write(tmp_path / f"prism{ending}")
    back = read_matrices(tmp_path / f"prism{ending}")
    structure = PRISM.structure
    for name in ("members", "rest_lengths", "stiffness", "masses", "nodes", "gravity"):
        assert np.array_equal(getattr(back, name), getattr(structure, name)), name
    assert np.array_equal(back.held, structure.supports)
    assert np.array_equal(back.pushes, ~structure.unilateral)
    assert (back.node_names, back.member_names) == (structure.node_names, structure.member_names)


def test_a_robot_file_of_matrices_is_the_same_structure(tmp_path: Path) -> None:
    structure_matrices(PRISM).write(tmp_path / "prism.npz")
    app_returns(["new", str(tmp_path / "again"), "--from-matrices", str(tmp_path / "prism.npz")])
    again = load_robot(tmp_path / "again.yaml").structure
    for name in ("members", "rest_lengths", "stiffness", "masses", "nodes", "fixed", "gravity", "kinds"):
        assert np.array_equal(getattr(again, name), getattr(PRISM.structure, name)), name


def app_returns(words: list[str]) -> None:
    """Run the command in this process; it must succeed."""
    with pytest.raises(SystemExit) as ended:
        app(words)
    assert not ended.value.code


def test_without_nodes_a_start_is_guessed_from_the_lengths(tmp_path: Path) -> None:
    structure_matrices(PRISM).write(tmp_path)
    (tmp_path / "N.csv").unlink()
    (tmp_path / "fixed.csv").unlink()
    made = read_matrices(tmp_path)
    nodes = made.start_nodes()
    lengths = np.linalg.norm(nodes[made.members[:, 0]] - nodes[made.members[:, 1]], axis=1)
    assert made.nodes is None
    assert np.abs(lengths / made.rest_lengths - 1.0).max() < 0.3


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("d", "1\n1\nx\n", r"d.csv, row 3, column 1: 'x' is no number"),
        ("d", "1\n1\n", r"d.csv: it is 2 x 1; 12 numbers are needed"),
        ("k", "0\n" + 11 * "1\n", r"k.csv, row 1: 0 is not a stiffness above zero"),
        ("t", 11 * "1\n" + "2\n", r"t.csv, row 12: 2 is not 1 .* or 0"),
        ("m", "1\n" + "nan\n" + 10 * "1\n", r"m.csv, row 2, column 1: not a finite number"),
        ("C", "1,-1,0\n1,0\n", r"C.csv, row 2: 2 numbers, but row 1 has 3"),
        ("C", "1,-1,0\n1,1,-1\n", r"C.csv, row 2: .* 2 and 1 \(in columns 1, 2, 3\)"),
        ("C", "1,-1,0\n1,0.5,-1\n", r"C.csv, row 2, column 2: 0.5 is none of -1, 0 and 1"),
        ("C", "1,-1,0\n1,-1,0\n", r"C.csv, column 3: no member ends at this node"),
        ("N", "0,0\n1,1\n", r"N.csv: it is 2 x 2; C has 6 columns"),
        ("fixed", "0\n0\n0\n0\n0\n3\n", r"fixed.csv, row 6: 3 is neither 0 nor 1"),
        ("nodes", "a\nb\nc\nd\ne\ne\n", r"nodes.csv, row 6: the name 'e' is used twice"),
    ],
)
def test_what_is_wrong_is_said_with_file_row_and_column(tmp_path: Path, file: str, text: str, said: str) -> None:
    structure_matrices(PRISM).write(tmp_path)
    (tmp_path / f"{file}.csv").write_text(text, encoding="utf-8")
    with pytest.raises(TensegrityError, match=said):
        read_matrices(tmp_path)


def test_missing_matrices_are_named(tmp_path: Path) -> None:
    with pytest.raises(TensegrityError, match=r"C.csv: there is no such file; a structure needs C.csv, d.csv"):
        read_matrices(tmp_path)
    np.savez(tmp_path / "some.npz", C=np.eye(2))
    with pytest.raises(TensegrityError, match=r"some.npz: there is no array 'd'.*Found: C"):
        read_matrices(tmp_path / "some.npz")
    (tmp_path / "broken.npz").write_bytes(b"PK no archive")
    with pytest.raises(TensegrityError, match=r"broken.npz: this is no .npz file"):
        read_matrices(tmp_path / "broken.npz")
    with pytest.raises(TensegrityError, match=r"nowhere does not exist"):
        read_matrices(tmp_path / "nowhere")


def test_new_writes_over_a_file_only_on_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("precious", encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        app(["new", str(tmp_path / "mine")])
    assert ended.value.code == 1
    assert "--force" in capsys.readouterr().err
    assert path.read_text(encoding="utf-8") == "precious"
    app_returns(["new", str(path), "--force"])
    assert load_robot(path).name == "mine"


def test_new_refuses_names_that_no_robot_can_have(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, said in (
        (["new", str(tmp_path / "9 lives")], "cannot be a robot's name"),
        (["new", str(tmp_path / "fine"), "--kind", "structures"], "Did you mean 'structure'"),
        (["new", str(tmp_path / "no" / "folder")], "there is no folder"),
    ):
        with pytest.raises(SystemExit):
            app(words)
        assert said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["structure", "mechanism"])
def test_templates_stand_within_their_limits(tmp_path: Path, kind: str) -> None:
    from tensegrity_control.inverse_kinematics.equilibrium_map import equilibrium_map

    app_returns(["new", str(tmp_path / "own"), "--kind", kind])
    robot = load_robot(tmp_path / "own.yaml")
    equilibria = equilibrium_map(robot.model, robot)
    home = equilibria.start()
    floors = np.array(list(equilibria.tension_floors.values()))
    assert (equilibria.tensions(home) > floors).all()
    assert robot.tour
    assert np.linalg.matrix_rank(equilibria.pose_jacobian(home)[robot.output.rows]) == len(robot.output.controlled)
