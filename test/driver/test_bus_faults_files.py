"""Commands that make no sense, and files that cannot be trusted: refused by name, and nothing moves or is lost."""

from __future__ import annotations

import errno
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from bus_fault_cases import K, N
from emulated_cell import TURNING, WHEELS, EmulatedCell, emulated_cell

from tensegrity_driver.bus.identity import BusIdentity
from tensegrity_driver.calibration.calibration_file import load_calibration, save_calibration
from tensegrity_driver.calibration.line_fit import CalibrationError
from tensegrity_driver.calibration.turn_counter import turns_path
from tensegrity_driver.driver import open_driver
from tensegrity_dynamics.command_gate import Mode
from tensegrity_dynamics.errors import CommandRefused, TensegrityError

# -- single commands ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def commanded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmulatedCell]:
    """A cell whose controller sends nothing by itself; a refused command leaves it as it was."""
    with emulated_cell(tmp_path_factory.mktemp("commands"), TURNING) as cell:
        cell.goals = None
        cell.run(int(1.0 / cell.period))  # so that no stamp of the commands is from before the driver began
        yield cell


REFUSED: dict[str, tuple[Callable[[EmulatedCell], object], str]] = {
    "not a number": (lambda c: c.command({N: math.nan}), "finite"),
    "infinite": (lambda c: c.command({N: math.inf}), "finite"),
    "not a number among good ones": (lambda c: c.command({N: 0.21, "draw_2": math.nan}), "draw_2"),
    "below the limit": (lambda c: c.command({N: 0.1}), "below its lower limit"),
    "above the limit": (lambda c: c.command({N: 0.3}), "above its upper limit"),
    "tension above the ceiling": (lambda c: c.command({N: 900.0}, Mode.EFFORT), "above its ceiling"),
    "unknown name": (lambda c: c.command({"draw_l": 0.2}), "Did you mean"),
    "unknown name among good ones": (lambda c: c.command({N: 0.21, "draw_l": 0.2}), "Did you mean"),
    "old stamp": (lambda c: c.command({N: 0.21}, stamp=c.now - 0.6), "older than"),
    "future stamp": (lambda c: c.command({N: 0.21}, stamp=c.now + 0.6), "ahead of the clock"),
    "stamp of another clock": (lambda c: c.command({N: 0.21}, stamp=1e9), "clocks differ"),
    "stamp that is no number": (lambda c: c.command({N: 0.21}, stamp=math.nan), "stamped"),
}
DOUBLED = "doubled name"


@pytest.mark.parametrize("name", [*REFUSED, DOUBLED])
def test_a_command_that_makes_no_sense_is_refused_with_a_reason_and_nothing_moves(
    name: str, commanded: EmulatedCell
) -> None:
    cell = commanded
    before = cell.lengths()
    if name == DOUBLED:
        words = "twice"
        verdict = cell.driver.command(
            [N, N], [0.21, 0.22], Mode.POSITION, source="controller", stamp=cell.now, now=cell.now
        )
    else:
        action, words = REFUSED[name]
        verdict = action(cell)  # type: ignore[assignment]
    assert verdict.refusals and words in str(verdict.refusals[0])
    assert not verdict.set_points
    step = cell.run(8)
    assert cell.lengths() == pytest.approx(before, abs=2e-5)
    assert not step.faults


@pytest.mark.sampled(1)
@pytest.mark.parametrize("servos", [WHEELS, TURNING])
def test_a_speed_above_the_rate_and_a_goal_far_away_are_approached_at_the_rate(servos: str, tmp_path: Path) -> None:
    with emulated_cell(tmp_path, servos) as cell:
        rate = cell.driver.spools[N].actuator.rate
        cell.run(5)
        for mode, value in ((Mode.VELOCITY, 50.0 * rate), (Mode.POSITION, cell.length(N) + 0.02)):
            cell.goals, cell.mode = {N: value}, mode
            for _ in range(12):
                before = cell.length(N)
                cell.run(1)
                assert cell.length(N) - before <= 1.02 * rate * cell.period
            assert not cell.faults


# -- files and what is found before anything moves ---------------------------------------------------------------------


@pytest.fixture
def cell(tmp_path: Path) -> Iterator[EmulatedCell]:
    """A robot at rest, its driver closed, its calibration in a file."""
    with emulated_cell(tmp_path, TURNING) as each:
        each.driver.end()
        each.driver.close()
        yield each
        each.path.write_bytes(each.saved)


def stays(cell: EmulatedCell) -> None:
    """Nothing has moved and no servo has been touched."""
    before = cell.lengths()
    torque = {name: cell.emulated.register(name, "torque_enable") for name in before}
    cell.hardware.advance(0.2)
    assert cell.lengths() == pytest.approx(before, abs=1e-5)
    assert set(torque.values()) == {1.0}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: data[: len(data) // 2],
        lambda data: b"",
        lambda data: bytes(len(data)),
        lambda data: data.replace(b'"slope": -0.00485', b'"slope": +0.00485'),
        lambda data: data.replace(b"2000-", b"2001-", 1),
    ],
    ids=["cut off", "empty", "zeros", "edited to nonsense", "edited digit"],
)
def test_a_damaged_calibration_is_refused_by_name_and_nothing_moves(
    spoil: Callable[[bytes], bytes], cell: EmulatedCell
) -> None:
    spoilt = spoil(cell.saved)
    assert spoilt != cell.saved
    cell.path.write_bytes(spoilt)
    with pytest.raises(CalibrationError, match=r"calibration\.json.*(damaged|no calibration file)"):
        cell.open()
    assert cell.path.read_bytes() == spoilt
    stays(cell)


def test_a_missing_calibration_is_refused_and_nothing_moves(cell: EmulatedCell) -> None:
    cell.path.unlink()
    with pytest.raises(CalibrationError, match="tensegrity servo calibrate"):
        cell.open()
    stays(cell)


def test_a_calibration_of_another_bus_is_refused_naming_the_servo(cell: EmulatedCell, tmp_path: Path) -> None:
    mine = cell.driver.calibration
    rows = [(number + 20 if number == 7 else number, model) for number, model in mine.bus.servos]
    other = tmp_path / "other.json"
    save_calibration(other, replace(mine, bus=BusIdentity(mine.bus.adapter, tuple(rows)), revision=0))
    with pytest.raises(CalibrationError, match=r"another bus: servo 7 is new"):
        open_driver(cell.robot, cell.hardware.open_bus, calibration=other)
    stays(cell)


def test_a_calibration_of_another_wiring_is_refused(cell: EmulatedCell) -> None:
    rows = [{**row, "direction": -1 if row["actuator"] == N else 1} for row in cell.robot.servos["servos"]]
    rewired = replace(cell.robot, servos={**cell.robot.servos, "servos": rows})
    with pytest.raises(CalibrationError, match="other servo settings"):
        open_driver(rewired, cell.hardware.open_bus, calibration=cell.path)
    stays(cell)


def test_turns_lost_while_it_was_switched_off_are_found_before_anything_moves_where_the_length_is_impossible(
    cell: EmulatedCell,
) -> None:
    cell.emulated.faults.power_cycle(N)
    cell.emulated.faults.change_turns(N, 9)  # switched on and turned by hand
    turns_path(cell.path).unlink()  # as before a driver has ever ended properly
    cell.driver = cell.open()
    with pytest.raises(CommandRefused, match=f"{N}.*not known or impossible"):
        cell.driver.begin(lambda: cell.now)
    assert cell.emulated.register(N, "torque_enable") == 0.0


def test_servos_that_were_switched_off_since_they_were_last_driven_are_named_when_the_driver_opens(
    cell: EmulatedCell,
) -> None:
    """One lost turn may leave a length within its limits: without a memory only the servo's own state reports it."""
    cell.driver = cell.open()
    assert not [note for note in cell.driver.link.warnings() if "turns" in note]
    cell.driver.close()
    cell.emulated.faults.power_cycle(N)
    cell.driver = cell.open()
    (note,) = [note for note in cell.driver.link.warnings() if "turns" in note]
    assert N in note and "home" in note
    with pytest.raises(CommandRefused, match=f"{N} lost power and may have lost turns"):
        cell.driver.begin(lambda: cell.now)
    turns_path(cell.path).unlink()
    cell.driver.begin(lambda: cell.now)
    cell.driver.end(release_torque=True)
    cell.driver.close()
    cell.driver = cell.open()  # without torque, but not restarted
    assert not [note for note in cell.driver.link.warnings() if "turns" in note]


def test_a_board_that_says_nothing_at_the_start_is_named_and_nothing_moves(tmp_path: Path) -> None:
    with emulated_cell(tmp_path, WHEELS) as cell:
        cell.driver.end()
        cell.driver.close()
        cell.emulated.faults.silence_board()
        with pytest.raises(TensegrityError, match=r"potentiometer board .* does not answer"):
            cell.open()
        stays(cell)


# -- saving ------------------------------------------------------------------------------------------------------------


def calibrate(cell: EmulatedCell) -> None:
    line = cell.emulated.lines(N)["encoder"]
    lengths = [0.19 + 0.01 * k for k in range(6)]
    cell.driver.calibrate(N, [line.inverse(each) for each in lengths], lengths, save=True)


def full(*unused: object) -> int:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("where", ["write", "fsync"])
def test_a_full_disk_loses_nothing_and_the_driver_goes_on_as_calibrated_before(
    where: str, cell: EmulatedCell, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell.path.with_name(cell.path.name + ".lock").touch()
    before, folder = cell.driver.spools, sorted(cell.path.parent.iterdir())
    with monkeypatch.context() as patch:
        patch.setattr(f"os.{where}", full)
        with pytest.raises(CalibrationError, match="No space left"):
            calibrate(cell)
    assert cell.path.read_bytes() == cell.saved
    assert sorted(cell.path.parent.iterdir()) == folder
    assert cell.driver.spools == before
    calibrate(cell)  # with space again it is saved
    assert json.loads(cell.path.read_bytes())["revision"] == json.loads(cell.saved)["revision"] + 1


SAVE_UNDER_A_LIMIT = """
import resource, signal, sys
from pathlib import Path
from tensegrity_driver.calibration.line_fit import CalibrationError
from tensegrity_driver.calibration.calibration_file import save_atomically
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
path = Path(sys.argv[1])
data = path.read_bytes()
resource.setrlimit(resource.RLIMIT_FSIZE, (len(data) // 2, len(data) // 2))
try:
    save_atomically(path, data + b" ")
except CalibrationError as problem:
    print(problem)
"""


@pytest.mark.long
def test_a_limit_of_the_system_on_files_loses_nothing(cell: EmulatedCell) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SAVE_UNDER_A_LIMIT, str(cell.path)], capture_output=True, text=True, check=True
    )
    assert "could not be saved" in done.stdout and "untouched" in done.stdout
    assert cell.path.read_bytes() == cell.saved
    assert [each.name for each in cell.path.parent.glob("*.new")] == []


def test_of_two_programs_that_save_one_calibration_the_later_one_is_refused(cell: EmulatedCell) -> None:
    mine = cell.driver.calibration
    first = save_calibration(cell.path, mine)
    with pytest.raises(CalibrationError, match="another program"):
        calibrate(cell)
    there = load_calibration(cell.path, robot=cell.robot.name, hardware=mine.hardware, bus=mine.bus)
    assert there == first
    assert cell.path.with_name(cell.path.name + ".previous").read_bytes() == cell.saved


def test_a_homed_tendon_is_saved_and_the_one_before_is_kept(tmp_path: Path) -> None:
    with emulated_cell(tmp_path, TURNING) as cell:
        before = cell.saved
        cell.run(5)
        cell.emulated.faults.power_cycle(N)
        cell.until(K.TURNS_LOST, N, 1)
        cell.home(N)
        assert cell.path.with_name(cell.path.name + ".previous").read_bytes() == before
        cell.driver.recover()
        cell.run(10)
        cell.driver.clear()
        cell.restart_driver()  # what was saved is what is loaded
        stands = cell.length(N)
        cell.run(20)
        assert cell.length(N) == pytest.approx(stands, abs=2e-4)
        assert cell.kinds <= {K.SLACK}
