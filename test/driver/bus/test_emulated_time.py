"""Emulated servos tell their own time, by which whoever drives them goes."""

from __future__ import annotations

import os

from tensegrity_driver.bus.emulated_time import NAME, EmulatedTime, time_behind
from tensegrity_driver.robot_clock import RobotClock


def test_the_time_of_emulated_servos_is_read_behind_their_port_and_real_ports_have_none(tmp_path) -> None:
    master, terminal = os.openpty()
    (tmp_path / "servos").symlink_to(os.ttyname(terminal))
    assert time_behind(str(tmp_path / "servos")) is None  # emulated, but by something that tells none
    reported = EmulatedTime(tmp_path / NAME, make=True)
    reported.tell(1.25)
    read = time_behind(str(tmp_path / "servos"))
    assert read is not None and read.now == 1_250_000_000
    assert time_behind("/dev/ttyUSB0") is None
    reported.close(remove=True)
    assert read.now == 1_250_000_000  # whoever still reads it sees that it stands
    assert not list(tmp_path.glob(NAME))
    read.close()
    os.close(master)
    os.close(terminal)


def test_robot_time_is_that_of_servos_that_fall_behind_and_is_no_clock_that_was_set() -> None:
    computer, servos = [10.0e9], [0.0]
    clock = RobotClock(lambda: round(computer[0]), lambda: round(computer[0]))
    clock.begin(lambda: round(servos[0]))
    computer[0] += 4e9
    servos[0] += 1e9
    assert clock.now == 11_000_000_000
    assert clock.pace == 0.25
    assert clock.set_by == 0
    clock.begin()  # of hardware without a time of its own
    assert clock.now == 14_000_000_000
    assert clock.pace == 1.0
