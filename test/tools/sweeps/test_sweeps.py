"""Sweeps: every point of the grid once, the same numbers for any count of processes, nothing lost by a kill."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from patience import until

from tensegrity_control import inverse_kinematics
from tensegrity_dynamics import load_robot
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.robots.load_robot import parse_robot
from tensegrity_tools.cli import app
from tensegrity_tools.sweeps.axes import SweepAxis, make_points, read_axis
from tensegrity_tools.sweeps.report import grid_of, summary
from tensegrity_tools.sweeps.run import run_here, run_on_cluster
from tensegrity_tools.sweeps.samples import (
    COLUMNS,
    OUT_OF_REACH,
    REACHED,
    SweepPlan,
    actuator_names,
    sample_chunk,
)
from tensegrity_tools.sweeps.store import SweepFolder

STAY = """kind: structure
name: stay
parameters: {prestress: "10 N"}
gravity: [0, 0, 0]
nodes:
  left: {position: [-1, 0, 0], fixed: true}
  right: {position: [1, 0, 0], fixed: true}
  low: {position: [0, -1, 0], fixed: true}
  high: {position: [0, 1, 0], fixed: true}
  middle: {position: [0, 0, 0]}
defaults: {tendon: {stiffness: 1000}}
form: {prestress: prestress}
members:
  - {name: to_left, kind: tendon, nodes: [left, middle]}
  - {name: to_right, kind: tendon, nodes: [right, middle]}
  - {name: to_low, kind: tendon, nodes: [low, middle]}
  - {name: to_high, kind: tendon, nodes: [high, middle]}
actuators:
  - {drives: to_left, position: [0.5, 1.5], rate: 0.1, effort: 60, minimum_tension: 1}
  - {drives: to_right, position: [0.5, 1.5], rate: 0.1, effort: 60, minimum_tension: 1}
outputs:
  - {name: middle, nodes: {middle: [0, 0, 0]}, controlled: [x]}
"""


def plan(*axes: str, chunk: int = 3, **options: object) -> SweepPlan:
    return SweepPlan(STAY, "stay.yaml", "", tuple(read_axis(each) for each in axes), chunk=chunk, **options)  # type: ignore[arg-type]


def all_points(made: SweepPlan) -> dict[str, np.ndarray]:
    parts = [sample_chunk(made, number) for number in range(len(made.pieces))]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4))
@settings(max_examples=25, deadline=None)
def test_a_grid_is_walked_through_once_from_neighbour_to_neighbour(counts: list[int]) -> None:
    names = ("x", "y", "z", "rx")
    axes = [SweepAxis(name, 0.0, float(count - 1), count) for name, count in zip(names, counts, strict=False)]
    points = make_points(axes)
    assert len(points.inner) == int(np.prod(counts))
    assert len({tuple(row) for row in points.inner.tolist()}) == len(points.inner)
    steps = np.abs(np.diff(points.inner, axis=0)).sum(axis=1)
    assert (steps == 1.0).all()


def test_random_points_lie_within_their_axes_and_follow_the_seed() -> None:
    axes = [SweepAxis("x", -1.0, 1.0, 2), SweepAxis("rz", 0.0, 3.0, 2)]
    first, again, other = (make_points(axes, 200, seed).inner for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert (np.abs(first[:, 0]) <= 1.0).all() and (first[:, 1] >= 0.0).all()
    drawn = np.random.default_rng(1).uniform([-1.0, 0.0], [1.0, 3.0], (200, 2))
    assert np.linalg.norm(np.diff(first, axis=0), axis=1).mean() < np.linalg.norm(np.diff(drawn, axis=0), axis=1).mean()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("w=0:1:2", "no axis 'w'"),
        ("z=0:1", "NAME=LOW:HIGH:COUNT"),
        ("z=0:1kg:3", "'kg' is a unit of mass"),
        ("z=0:1:0", "no count"),
        ("z=0:1:1", "one value has one end"),
        ("load.tip.z=0:1m:2", "unit of length"),
        ("parameter.a=1cm:2m:2", "same unit"),
        ("z=0:inf:3", "finite"),
    ],
)
def test_axes_that_mean_nothing_are_refused(text: str, said: str) -> None:
    with pytest.raises(TensegrityError, match=said):
        read_axis(text)


def test_figures_of_a_stay_are_those_of_its_springs() -> None:
    found = all_points(plan("x=-4mm:4mm:5", wrench=True))
    figures = dict(zip(COLUMNS, found["figures"].T, strict=True))
    assert (figures["status"] == REACHED).all()
    assert found["pose"][:, 0] == pytest.approx(np.linspace(-4e-3, 4e-3, 5), abs=1e-8)
    # two springs along x, and across it the other two with their tension over their length
    side = np.hypot(1.0, found["pose"][:, 0])
    tension = 1000.0 * (side - 0.99)
    across = 2.0 * (
        1000.0 * (found["pose"][:, 0] / side) ** 2 + tension / side * (1.0 - (found["pose"][:, 0] / side) ** 2)
    )
    assert figures["stiffness_min"] == pytest.approx(2000.0 + across, rel=1e-6)
    # one spring shorter by d: the middle moves by K d over that stiffness, both together along (1, -1)
    assert figures["singular_min"] == pytest.approx(np.sqrt(2.0) * 1000.0 / (2000.0 + across), rel=1e-6)
    # both driven tendons between 1 N and 60 N, the other two as they are: 59 N either way at the middle
    assert figures["wrench"][2] == pytest.approx(59.0, rel=1e-6)


def test_a_sweep_finds_what_a_plain_loop_finds_and_what_stops_it() -> None:
    made = plan("x=-8cm:8cm:5", chunk=2)
    found = all_points(made)
    robot = parse_robot(STAY)
    home = None
    for position, status, binding in zip(
        made.points.inner[:, 0], found["figures"][:, 0], found["binding"], strict=True
    ):
        try:
            inverse_kinematics(robot, [position, 0.0, 0.0], start=home)
            expected = REACHED
        except TensegrityError:
            expected = OUT_OF_REACH
        assert status == expected
        assert (binding != "") == (status == OUT_OF_REACH)
    assert {REACHED} <= set(found["figures"][:, 0].tolist())


CRANE = """
kind: mechanism
name: crane
gravity: [0, 0, -10]
bodies:
  trolley: {shapes: [{kind: cube, size: [0.1], mass: 3}]}
  drum: {shapes: [{kind: cylinder, size: [0.04, 0.1], mass: 0.4}]}
  slide: {}
  load: {shapes: [{kind: cube, size: [0.1], mass: 5}]}
joints:
  - {name: rail, kind: prismatic, parent: world, body: trolley, axis: [1, 0, 0], frame: {at: [0, 0, 2]}}
  - {name: winch, kind: revolute, parent: trolley, body: drum, axis: [0, 1, 0]}
  - {name: lx, kind: prismatic, parent: world, body: slide, axis: [1, 0, 0], start: [0.04]}
  - {name: lz, kind: prismatic, parent: slide, body: load, axis: [0, 0, 1], start: [0.5]}
routed_cables:
  - name: rope
    young: 1.0e+10
    cable_radius: 0.0015
    tension: 50
    route: [{joint: winch, radius: 0.04, side: 1}, {body: load, at: [0, 0, 0]}]
actuators:
  - {drives: rail, position: [-0.02, 0.02], rate: 0.5, effort: 100}
  - {drives: winch, position: [-20, 20], rate: 10, effort: 10, minimum_tension: 5}
outputs: [{name: hook, body: load, controlled: [x, z]}]
"""


def test_tensions_of_routed_cables_are_among_the_figures_and_what_stops_a_motion_is_named() -> None:
    plan = SweepPlan(CRANE, "crane.yaml", "", (read_axis("x=-1cm:5cm:3"), read_axis("z=-2cm:0cm:2")))
    found = sample_chunk(plan, 0)
    figures = dict(zip(COLUMNS, found["figures"].T, strict=True))
    reached = figures["status"] == REACHED
    assert reached.sum() == 4  # two columns of three: the rail ends at 2 cm
    np.testing.assert_allclose(figures["tension_min"][reached], 50.0, rtol=1e-9)
    np.testing.assert_allclose(figures["lowest_margin"][reached], 45.0, rtol=1e-9)
    assert set(found["binding"][~reached]) == {"rail"}


def test_loads_and_parameters_make_other_robots() -> None:
    loads = all_points(plan("load.middle.x=-4N:4N:3"))
    assert loads["pose"][:, 0] == pytest.approx([-4.0 / 2020.0, 0.0, 4.0 / 2020.0], rel=2e-2, abs=1e-12)
    prestress = all_points(plan("parameter.prestress=10N:20N:2"))
    assert dict(zip(COLUMNS, prestress["figures"].T, strict=True))["tension_min"] == pytest.approx([10.0, 20.0])
    with pytest.raises(TensegrityError, match="Did you mean 'middle'"):
        plan("load.midle.x=1").robot([1.0])
    with pytest.raises(TensegrityError, match="no parameter 'mass'"):
        plan("parameter.mass=1").robot([1.0])


def test_a_killed_sweep_goes_on_where_it_was(tmp_path: Path) -> None:
    made = plan("x=-4mm:4mm:7")
    folder = SweepFolder(tmp_path, made)
    assert folder.missing() == [0, 1, 2]
    for number, result in run_here(made, [0, 1], workers=1):
        folder.keep(number, result)
    (tmp_path / "chunks" / "000002.npz.part").write_bytes(b"half")  # killed while it wrote
    (tmp_path / "chunks" / "000001.npz").write_bytes(b"damaged")
    again = SweepFolder(tmp_path, made)
    assert again.missing() == [1, 2]
    with pytest.raises(TensegrityError, match="not finished"):
        again.results()
    for number, result in run_here(made, again.missing(), workers=1):
        again.keep(number, result)
    whole = all_points(made)
    assert all(np.array_equal(again.results()[name], whole[name], equal_nan=name != "binding") for name in whole)


def chunk(made: SweepPlan, number: int) -> dict[str, np.ndarray]:
    """A sound one, of points that are all out of reach."""
    _, begin, end = made.pieces[number]
    actuators = len(actuator_names(made))
    figures = np.full((end - begin, len(COLUMNS)), np.nan)
    figures[:, 0] = OUT_OF_REACH
    binding = np.full(end - begin, "spool", dtype="<U80")
    return {"figures": figures, "pose": np.zeros((end - begin, 7)), "positions": np.zeros((end - begin, actuators)),
            "binding": binding}  # fmt: skip


def test_a_chunk_that_is_damaged_or_of_another_schema_is_done_again(tmp_path: Path) -> None:
    made, random = plan("x=-4mm:4mm:7"), np.random.default_rng(1)
    folder, path = SweepFolder(tmp_path, made), tmp_path / "chunks" / "000000.npz"
    folder.keep(0, chunk(made, 0))
    assert folder.missing() == [1, 2]
    whole, sound = path.read_bytes(), chunk(made, 0)
    for name in sound:
        others = [np.array(3.0), sound[name][:-1], sound[name][..., None], np.full(sound[name].shape, 3 + 4j)]
        others += [sound[name] + 17.0] if name == "figures" else []  # nothing that a point can have come to
        for wrong in ({key: each for key, each in sound.items() if key != name}, *({**sound, name: o} for o in others)):
            folder.keep(0, wrong)
            assert 0 in folder.missing()
    folder.keep(0, {**sound, "more": sound["pose"]})
    assert 0 in folder.missing()
    for _ in range(100):
        bad = bytearray(whole[: random.integers(len(whole))] if random.random() < 0.3 else whole)
        for _ in range(random.integers(1, 4)):
            bad[random.integers(len(bad))] ^= int(random.integers(1, 256))
        path.write_bytes(bytes(bad))
        if 0 not in folder.missing():  # only what the format itself leaves open, such as times of files
            with np.load(path) as data:
                assert all(np.array_equal(data[name], each, equal_nan=each.dtype.kind == "f")
                           for name, each in sound.items())  # fmt: skip


@pytest.mark.parametrize("text", ["[]", "3", "null", "{", "\x00", "[" * 5000, '{"version": NaN}', "{}"])
def test_a_record_that_is_none_is_refused_naming_the_folder_and_the_way_out(tmp_path: Path, text: str) -> None:
    (tmp_path / "sweep.json").write_text(text)
    with pytest.raises(TensegrityError, match="--out") as refused:
        SweepFolder(tmp_path, plan("x=-4mm:4mm:7"))
    assert str(tmp_path) in str(refused.value) and len(str(refused.value)) < 600


def test_a_folder_takes_no_second_sweep(tmp_path: Path) -> None:
    SweepFolder(tmp_path, plan("x=-4mm:4mm:7"))
    with pytest.raises(TensegrityError, match="holds another sweep: axes differ"):
        SweepFolder(tmp_path, plan("x=-4mm:4mm:9"))


def test_the_command_writes_table_and_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    robot = tmp_path / "stay.yaml"
    robot.write_text(STAY, encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        app(["sweep", str(robot), "--over", "load.middle.y=0:2:2", "--over", "x=-2mm:2mm:3", "--workers", "1",
             "--out", str(tmp_path / "out"), "--json"])  # fmt: skip
    assert not ended.value.code
    figures = json.loads(capsys.readouterr().out)
    assert (figures["points"], figures["reached"]) == (6, 6)
    rows = list(csv.DictReader((tmp_path / "out" / "points.csv").open(encoding="utf-8")))
    assert len(rows) == 6
    assert {row["load.middle.y"] for row in rows} == {"0", "2"}
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert page.count("data:image/png") == 4
    assert "http" not in page


def test_a_summary_says_where_in_the_units_of_the_axes() -> None:
    swept = plan("parameter.width=20cm:30cm:2", "load.middle.y=1N:2N:2", "rz=-0.1rad:0.1rad:3", "x=1mm:2mm:2")
    at = {"parameter.width": 20.0, "load.middle.y": 1.0, "rz": np.radians(5.0), "x": 0.001}
    found = {"points": 1, "reached": 1, "out_of_reach": 0, "no_robot": 0, "binding": {}}
    found["tension_min"] = {"least": 3.0, "median": 3.0, "largest": 3.0, "least_at": at}
    (words,) = (value for name, value in summary(swept, found) if name == "least tension [N]")
    assert "(at parameter.width 20 cm, load.middle.y 1 N, rz 5 deg, x 0.001 m)" in words


def test_a_map_has_every_value_where_its_point_is_also_along_axes_that_run_downwards() -> None:
    xs, ys = np.array([0.2, 0.1, 0.0]), np.array([-1.0, 1.0])
    points = np.array([(x, y) for y in ys for x in xs])[[4, 0, 5, 2, 1]]  # in any order, one is missing
    grid = grid_of(xs, ys, points, points @ [1.0, 10.0])
    np.testing.assert_allclose(grid, [[-9.8, -9.9, -10.0], [np.nan, 10.1, 10.0]])


def test_axes_that_the_output_does_not_control_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        app(["sweep", "three_prism", "--over", "x=-1mm:1mm:3", "--out", str(tmp_path / "out")])
    assert "platform does not control it; it controls z, rx, ry" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.long  # the client tries for ten seconds
def test_a_cluster_that_is_not_there_is_said() -> None:
    pytest.importorskip("distributed", reason="Dask is not installed (extra `cluster`)")
    with pytest.raises(TensegrityError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9"):
        list(run_on_cluster(plan("x=0:1mm:2"), [0], "tcp://127.0.0.1:9"))


@pytest.mark.long
def test_a_cluster_gives_the_same_numbers() -> None:
    distributed = pytest.importorskip("distributed", reason="Dask is not installed (extra `cluster`)")
    made = plan("x=-4mm:4mm:9")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        there = dict(run_on_cluster(made, [0, 1, 2], cluster.scheduler_address))
    for number in range(3):
        here = sample_chunk(made, number)
        assert all(np.array_equal(there[number][name], here[name], equal_nan=name != "binding") for name in here)


KILLED = """
import sys
from tensegrity_tools.cli import app

if __name__ == "__main__":
    app(["sweep", "three_prism", "--over", "z=-2cm:2cm:100000", "--workers", "2", "--out", sys.argv[1]])
"""


@pytest.mark.long
@pytest.mark.parametrize("ignored", [False, True], ids=["usual", "started_with_sigterm_ignored"])
def test_the_processes_of_a_killed_sweep_end_with_it(tmp_path: Path, ignored: bool) -> None:
    (tmp_path / "killed.py").write_text(KILLED, encoding="utf-8")
    words = [sys.executable, str(tmp_path / "killed.py"), str(tmp_path / "out")]
    ignore = partial(signal.signal, signal.SIGTERM, signal.SIG_IGN)
    sweep = subprocess.Popen(words, preexec_fn=ignore if ignored else None)
    children = Path(f"/proc/{sweep.pid}/task/{sweep.pid}/children")
    chunks = tmp_path / "out" / "chunks"
    try:
        until(lambda: len(list(chunks.glob("*.npz"))) > 1)  # both work
        workers = [Path(f"/proc/{number}/stat") for number in children.read_text().split()]
        assert len(workers) >= 2
    finally:
        sweep.kill()
        sweep.wait()
    until(lambda: not any(each.exists() and ") Z " not in each.read_text() for each in workers))


@pytest.mark.long
def test_processes_do_not_change_the_numbers() -> None:
    robot = load_robot("single_strut")
    assert robot.path is not None
    text = robot.path.read_text(encoding="utf-8")
    made = SweepPlan(text, "single_strut.yaml", "", (read_axis("x=-2cm:2cm:4"), read_axis("y=-2cm:2cm:4")), chunk=4)
    alone, two = (dict(run_here(made, range(4), workers=count)) for count in (1, 2))
    for number in range(4):
        assert all(
            np.array_equal(alone[number][name], two[number][name], equal_nan=name != "binding")
            for name in alone[number]
        )
        assert (alone[number]["figures"][:, 0] == REACHED).all()
