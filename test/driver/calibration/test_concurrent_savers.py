"""Programs that save one calibration at once: whoever is told that it is saved has its calibration in the file."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from driver_link import calibration

from tensegrity_driver.calibration import file_lock
from tensegrity_driver.calibration.calibration_file import save_calibration
from tensegrity_driver.calibration.line_fit import CalibrationError
from tensegrity_dynamics import load_robot

SAVERS = """
import json, os, sys
from dataclasses import replace
from tensegrity_driver.bus.identity import BusIdentity
from tensegrity_driver.calibration.calibration_file import RobotCalibration, _parse, save_calibration
from tensegrity_driver.calibration.line_fit import CalibrationError
from pathlib import Path
path, rounds, savers = Path(sys.argv[1]), int(sys.argv[2]), 3
save_calibration(path, RobotCalibration("r", "h", BusIdentity("x", ()), {}, "start"))
for name in ("fsync",):
    setattr(os, name, lambda handle: None)  # a disk that forgets nothing
saved = lost = refused = 0
for number in range(rounds):
    loaded = _parse(path, path.read_bytes())
    read, write = os.pipe()
    children = []
    for saver in range(savers):
        child = os.fork()
        if child == 0:
            os.close(write)
            os.read(read, 1)  # all begin at once
            try:
                save_calibration(path, replace(loaded, date=f"{number}.{saver}"))
                os._exit(0)
            except CalibrationError as problem:
                os._exit(3 if "another program" in str(problem) else 4)
        children.append(child)
    os.close(read)
    os.close(write)
    ends = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    assert set(ends) <= {0, 3}, ends
    there = _parse(path, path.read_bytes())
    told = [f"{number}.{saver}" for saver, end in enumerate(ends) if end == 0]
    saved += len(told)
    refused += ends.count(3)
    lost += sum(date != there.date for date in told)
print(json.dumps([saved, refused, lost]))
"""


@pytest.mark.parametrize("rounds", [30, pytest.param(1000, marks=pytest.mark.long)])
def test_of_programs_that_save_at_once_one_saves_and_the_others_get_an_error(rounds: int, tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", SAVERS, str(tmp_path / "robot.json"), str(rounds)],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).resolve().parents[3],
    )
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout) == [rounds, 2 * rounds, 0]


def test_a_lock_that_is_never_given_back_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "tensebot.json"
    monkeypatch.setattr(file_lock, "PATIENCE_S", 0.02)
    with (
        file_lock.file_lock(path),
        pytest.raises(CalibrationError, match=r"another program has held tensebot.json.lock"),
    ):
        save_calibration(path, calibration(load_robot("tensebot")))
    assert save_calibration(path, calibration(load_robot("tensebot"))).revision == 1
