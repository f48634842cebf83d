"""Power cuts at random instants of a life with multi-turn servos: no turn that was lost is ever taken for good."""

from __future__ import annotations

import json
import math
import os
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from driver_link import PERIOD
from emulated_cell import TURNING, robot_with

from tensegrity_driver.bus.identity import BusIdentity
from tensegrity_driver.bus.statistics import BusReading
from tensegrity_driver.calibration.calibration_file import save_calibration
from tensegrity_driver.calibration.line_fit import CalibrationError
from tensegrity_driver.calibration.turn_counter import turns_path
from tensegrity_driver.driver import open_driver
from tensegrity_driver.hardware.emulated_hardware import exact_calibration
from tensegrity_driver.spools.readings import Drive, ServoCommand, ServoReading
from tensegrity_driver.spools.spool import Line
from tensegrity_dynamics.command_gate import Mode
from tensegrity_dynamics.errors import CommandRefused

TURN = 2.0 * math.pi
ROBOT = robot_with(TURNING)
NAMES = [row["actuator"] for row in ROBOT.servos["servos"]][:3]
ROWS = [row for row in ROBOT.servos["servos"] if row["actuator"] in NAMES]
RADIUS, MIDDLE = ROWS[0]["spool_radius"], 0.2159
IDENTITY = BusIdentity("power cuts", tuple((row["id"], 1020) for row in ROWS))


class PowerCut(BaseException):
    """All programs and servos are without power from this instant on."""


class Supply:
    """Counts instants, and cuts at one of them."""

    def __init__(self) -> None:
        self.left: int | None = None

    def instant(self) -> None:
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                self.left = None
                raise PowerCut


class TurningServos:
    """Servos that count turns, and forget them without power; what tight tendons do to them then is left to chance."""

    def __init__(self, supply: Supply, chance: random.Random) -> None:
        self.supply, self.chance = supply, chance
        self.angles = {name: TURN * (2.3 + 0.4 * k) for k, name in enumerate(NAMES)}  # of the spools, which nobody sees
        self.lost = dict.fromkeys(NAMES, 0)  # turns
        self.on, self.watchdog = dict.fromkeys(NAMES, False), dict.fromkeys(NAMES, False)
        self.goals: dict[str, float] = {}
        self.tight = dict.fromkeys(NAMES, False)
        self.switched_off: tuple[str, ...] = ()
        self.identity = IDENTITY

    def position(self, name: str) -> float:
        return self.angles[name] - TURN * self.lost[name]

    def length(self, name: str) -> float:
        return MIDDLE - RADIUS * (self.angles[name] - TURN * 2.5)

    def cut(self, names: Iterable[str] = NAMES) -> None:
        for name in names:
            self.let_go(name)
            if self.chance.random() < 0.1:  # somebody turns it while it is off
                self.angles[name] += 0.3 * TURN * self.chance.uniform(-1.0, 1.0)
            self.lost[name] = math.floor(self.angles[name] / TURN)
            self.watchdog[name] = False

    def let_go(self, name: str) -> None:
        """Without torque a tight tendon runs out, by whole turns at worst."""
        if self.tight[name]:
            self.angles[name] -= TURN * self.chance.choice([0.4, 1.0, 2.0, 2.0 * self.chance.random()])
        self.on[name] = self.tight[name] = False

    # -- as a link ---------------------------------------------------------------------------------------------------

    def check(self) -> None:
        self.switched_off = tuple(name for name in NAMES if not self.on[name] and not self.watchdog[name])

    def prepare(self, names: Iterable[str] | None = None) -> None:
        for name in names or NAMES:
            self.supply.instant()
            self.on[name] = self.watchdog[name] = True
            self.goals[name] = self.position(name)

    def read(self) -> tuple[Mapping[str, ServoReading], BusReading]:
        self.supply.instant()
        for name, goal in self.goals.items():
            if self.on[name]:
                step = 0.015 / RADIUS * PERIOD
                self.angles[name] += min(max(goal - self.position(name), -step), step)
        readings = {
            name: ServoReading(
                name, self.position(name), current=0.7 if self.tight[name] else 0.0, temperature=30.0, voltage=12.0,
                torque_on=self.on[name], watchdog=self.watchdog[name],
            )
            for name in NAMES
        }  # fmt: skip
        return readings, BusReading(packets=3)

    def write(self, commands: Mapping[str, ServoCommand]) -> None:
        self.supply.instant()
        for name, command in commands.items():
            if command.kind is Drive.TORQUE_OFF:
                self.let_go(name)
            else:
                self.goals[name] = command.position

    def torque_off(self) -> None:
        for name in NAMES:
            self.let_go(name)

    def unprepared(self) -> tuple[str, ...]:
        return ()

    def warnings(self) -> list[str]:
        return []

    def statistics(self) -> dict[str, object]:
        return {}

    def close(self) -> None:
        pass


class Life:
    """Days of one robot: it is driven, ended, cut off, driven again, and homed where its driver says so."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.chance, self.supply = random.Random(seed), Supply()
        self.servos = TurningServos(self.supply, self.chance)
        self.path = folder / "calibration.json"
        actuators = tuple(each for each in ROBOT.actuators if each.name in NAMES)
        self.robot = replace(ROBOT, actuators=actuators, servos={**ROBOT.servos, "servos": ROWS})
        lines = {name: {"encoder": self.line(name)} for name in NAMES}
        save_calibration(self.path, exact_calibration(self.robot, lines, IDENTITY))
        self.refused = self.accepted = self.cuts = 0
        self.now = 0.0

    def line(self, name: str) -> Line:
        return Line(-RADIUS, self.servos.length(name) + RADIUS * self.servos.position(name))

    def drive(self) -> None:
        """A driver from its start to its end; a power cut may break it off anywhere."""
        self.servos.check()
        driver = open_driver(self.robot, lambda *_: self.servos, calibration=self.path)
        for _ in range(2 * len(NAMES)):
            try:
                driver.begin(lambda: self.now)
                break
            except (CommandRefused, CalibrationError) as refusal:
                self.refused, text = self.refused + 1, str(refusal)
                for name in NAMES:
                    if name in str(refusal) or isinstance(refusal, CalibrationError):
                        self.home(driver, name)
        else:
            raise AssertionError(f"homing every tendon does not help: {text}")
        self.accepted += 1
        for name, spool in driver.spools.items():
            wrong = abs(spool.encoder(self.servos.position(name)) - self.servos.length(name))
            assert wrong < 0.05 * RADIUS * TURN, f"{name} is {1e3 * wrong:.1f} mm wrong, and nobody says so"
        self.servos.tight = {name: self.chance.random() < 0.5 for name in NAMES}
        for _ in range(self.chance.randrange(12)):
            self.now += PERIOD
            goals = [self.servos.length(name) + self.chance.uniform(-1e-3, 1e-3) for name in NAMES]
            driver.command(NAMES, goals, Mode.POSITION, source="c", session=1, stamp=self.now, now=self.now)
            driver.run(PERIOD, self.now)
        driver.end(release_torque=self.chance.random() < 0.3)

    def home(self, driver, name: str) -> None:
        """The true line of a spool, as a rule shows it, after it was wound to where it belongs."""
        self.servos.tight[name] = False
        self.servos.angles[name] = TURN * (2.5 + 0.3 * self.chance.uniform(-1.0, 1.0))
        line = self.line(name)
        lengths = [MIDDLE + 0.01 * k for k in range(-3, 4)]
        driver.calibrate(name, [line.inverse(each) for each in lengths], lengths, save=True)

    def live(self, cuts: int) -> None:
        while self.cuts < cuts:
            try:
                self.supply.left = self.chance.randrange(240)
                self.drive()
                self.drive()
                raise PowerCut
            except PowerCut:
                self.supply.left = None
                self.cuts += 1
                self.servos.cut(NAMES if self.chance.random() < 0.7 else self.chance.sample(NAMES, 1))


@pytest.fixture
def instants(monkeypatch: pytest.MonkeyPatch) -> Callable[[Supply], None]:
    """Every call of the system in which a file is saved is an instant, too."""

    fsync = os.fsync

    def count(supply: Supply) -> None:
        for name in ("write", "replace", "fsync"):
            real = getattr(os, name)

            def call(*arguments, real=real):
                supply.instant()
                return None if real is fsync else real(*arguments)  # the disk of a test forgets nothing

            monkeypatch.setattr(os, name, call)

    return count


@pytest.mark.parametrize(("seed", "cuts"), [(1, 60), pytest.param(2, 1000, marks=pytest.mark.long)])
def test_no_lost_turn_is_taken_for_good_after_power_cuts_at_random_instants(
    seed: int, cuts: int, tmp_path: Path, instants: Callable[[Supply], None]
) -> None:
    life = Life(tmp_path, seed)
    instants(life.supply)
    life.live(cuts)
    assert life.cuts == cuts
    assert life.refused > cuts // 5 and life.accepted > cuts // 5


def driven(folder: Path) -> Life:
    life = Life(folder, 3)
    life.servos.tight = dict.fromkeys(NAMES, False)
    life.drive()
    return life


def row(text: bytes) -> bytes:
    """A file in which one spool has this position."""
    return b'{"revision": 1, "spools": {"draw_1": ' + text + b"}}"


BROKEN = {
    "empty": b"", "cut off": b'{"revision": 1, "spo', "no object": b"[]", "nested": b"[" * 200_000,
    "nested objects": b'{"a":' * 100_000, "a big number": row(b"[1" + b"0" * 400 + b", 0.2]"),
    "a bigger number": b"9" * 6000, "not a number": row(b"[NaN, 0.2]"), "infinite": row(b"[1.0, Infinity]"),
    "a word": row(b'"x"'), "a true position": row(b"[true, 0.2]"), "no text": b"\xff\xfe\x00",
    "revision of a word": b'{"revision": "1", "spools": {}}', "huge": b" " * 2_000_000,
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_memory_of_turns_is_an_error_in_words_where_a_servo_was_switched_off(
    name: str, tmp_path: Path
) -> None:
    life = driven(tmp_path)
    life.servos.cut()
    turns_path(life.path).write_bytes(BROKEN[name])
    life.servos.check()
    driver = open_driver(life.robot, lambda *_: life.servos, calibration=life.path)
    with pytest.raises(CalibrationError, match=r"calibration.json.turns is damaged .*home the tendons"):
        driver.begin(lambda: 0.0)
    assert not any(life.servos.on.values())
    for each in NAMES:
        life.home(driver, each)
    driver.begin(lambda: 0.0)


def test_the_memory_of_turns_is_void_from_the_moment_of_activation_on(tmp_path: Path) -> None:
    life = driven(tmp_path)
    before = json.loads(turns_path(life.path).read_bytes())["spools"]
    assert any(each is not None for each in before.values())
    life.servos.check()
    driver = open_driver(life.robot, lambda *_: life.servos, calibration=life.path)
    seen = []
    real = life.servos.prepare
    life.servos.prepare = lambda names=None: (seen.append(json.loads(turns_path(life.path).read_bytes())), real(names))
    driver.begin(lambda: 0.0)
    assert seen[0]["spools"] == dict.fromkeys(NAMES)


def test_a_memory_that_cannot_be_made_void_keeps_the_driver_from_beginning(tmp_path: Path, monkeypatch) -> None:
    life = driven(tmp_path)

    def full(*unused: object) -> int:
        raise OSError(28, os.strerror(28))

    life.servos.on = dict.fromkeys(NAMES, False)
    life.servos.check()
    monkeypatch.setattr(os, "write", full)
    driver = open_driver(life.robot, lambda *_: life.servos, calibration=life.path)
    with pytest.raises(CalibrationError, match="No space left"):
        driver.begin(lambda: 0.0)
    assert not any(life.servos.on.values())
