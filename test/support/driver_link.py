"""A bus of ideal servos for tests: spools that turn as they are told, one bus cycle later, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tensegrity_driver.bus.identity import BusIdentity
from tensegrity_driver.bus.potentiometer_protocol import RADIANS_PER_COUNT
from tensegrity_driver.bus.statistics import BusReading
from tensegrity_driver.calibration.calibrated_spools import servo_rows
from tensegrity_driver.calibration.calibration_file import RobotCalibration, SensorCalibration, hardware_fingerprint
from tensegrity_driver.hardware.hardware import Hardware
from tensegrity_driver.hardware.settings import HardwareSettings
from tensegrity_driver.spools.readings import Drive, ServoCommand, ServoReading
from tensegrity_driver.spools.spool import Line
from tensegrity_dynamics.errors import BusError
from tensegrity_dynamics.robots.robot import Robot

PERIOD = 0.02
IDENTITY = BusIdentity("test", tuple((servo, 12) for servo in range(1, 13)))
START = 0.2159  # m, length of every tendon at first


def ideal_lines(robot: Robot) -> dict[str, Line]:
    """Lines of potentiometers that stand wherever they were mounted."""
    return {
        row["actuator"]: Line(
            -RADIANS_PER_COUNT * row["spool_radius"],
            START + RADIANS_PER_COUNT * row["spool_radius"] * (2000.0 + 30.0 * k),
        )
        for k, row in enumerate(servo_rows(robot))
    }


def calibration(robot: Robot, identity: BusIdentity = IDENTITY) -> RobotCalibration:
    """What a careful person would have measured on that bus."""
    sensors = {
        name: {
            "potentiometer": SensorCalibration(
                "potentiometer", line.slope, line.intercept, (line.slope, line.slope), (line.intercept, line.intercept),
                0.95, 0.0, 5, 0, "2026-01-01",
            )
        }
        for name, line in ideal_lines(robot).items()
    }  # fmt: skip
    return RobotCalibration(robot.name, hardware_fingerprint(robot.servos), identity, sensors, "2026-01-01")


class IdealLink:
    """Free-run servos with potentiometers; moves by one period per reading."""

    def __init__(self, robot: Robot, settings: HardwareSettings | None = None) -> None:
        self.lines = ideal_lines(robot)
        self.lengths = dict.fromkeys(self.lines, START)
        self.radii = {row["actuator"]: row["spool_radius"] for row in servo_rows(robot)}
        self.speeds = dict.fromkeys(self.lines, 0.0)
        self.torque = dict.fromkeys(self.lines, False)
        self.voltage = 11.1
        self.blind: set[str] = set()
        self.prepared = 0
        self.closed = self.unplugged = False
        self.sent: list[dict[str, ServoCommand]] = []
        self.refuses: str | None = None

    @property
    def identity(self) -> BusIdentity:
        return IDENTITY

    switched_off = ()

    def unprepared(self) -> tuple[str, ...]:
        return ()

    def prepare(self, names: Iterable[str] | None = None) -> None:
        if self.refuses is not None:
            raise BusError(self.refuses)
        self.prepared += 1
        self.torque = dict.fromkeys(self.torque, True)

    def torque_off(self) -> None:
        self.torque = dict.fromkeys(self.torque, False)

    def close(self) -> None:
        self.closed = True

    def warnings(self) -> list[str]:
        return []

    def statistics(self) -> dict[str, object]:
        return {"retries": 0}

    def read(self) -> tuple[Mapping[str, ServoReading], BusReading]:
        if self.unplugged:
            raise BusError("the port is gone; plug it in again.")
        for name, speed in self.speeds.items():
            self.lengths[name] -= speed * self.radii[name] * PERIOD
        readings = {
            name: ServoReading(
                name, sensor=None if name in self.blind else float(round(line.inverse(self.lengths[name]))),
                load=0.0, temperature=40.0, voltage=self.voltage, torque_on=self.torque[name],
            )
            for name, line in self.lines.items()
        }  # fmt: skip
        return readings, BusReading(packets=len(readings))

    def write(self, commands: Mapping[str, ServoCommand]) -> None:
        if self.unplugged:
            raise BusError("the port is gone; plug it in again.")
        self.sent.append(dict(commands))
        for name, command in commands.items():
            self.speeds[name] = command.speed if command.kind is Drive.VELOCITY else 0.0
            if command.kind is Drive.TORQUE_OFF:
                self.torque[name] = False


class IdealHardware(Hardware):
    """Hands out ideal links; keeps the last one for the test to look at."""

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self.link: IdealLink | None = None
        self.trouble: str | None = None
        self.refuses: str | None = None  # of the next links
        self.error: Exception | None = None
        self.advanced = 0
        self.closed = False

    def open_bus(self, robot: Robot, settings: HardwareSettings) -> IdealLink:
        if self.trouble is not None:
            raise BusError(self.trouble)
        before = self.link
        self.link = IdealLink(robot, settings)
        self.link.refuses = self.refuses
        if before is not None:  # the same spools
            self.link.lengths = before.lengths
        return self.link

    def make_calibration(self, identity: BusIdentity) -> RobotCalibration:
        return calibration(self.robot, identity)

    def advance(self, seconds: float) -> None:
        if self.error is not None:
            raise self.error
        self.advanced += 1

    def close(self) -> None:
        self.closed = True
