"""A bench of spools for tests: tendons of known stiffness on spools that follow speeds or positions with a delay.

Not a servo emulator: no bytes, no bus. It gives the position loops, the homing and the safety layer something to hold
on to in which every fault can be put at a chosen cycle.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from tensegrity_driver.bus.statistics import BusReading
from tensegrity_driver.spools.readings import CommandState, Drive, DriveCommand, Readings, ServoReading
from tensegrity_driver.spools.spool import Line, Spool
from tensegrity_dynamics.robots.robot import Actuator

PERIOD = 0.02
RADIUS = 4.85e-3
STALL = 1.5
COUNT = 2.0 * 3.141592653589793 * RADIUS * 10.0 / 4096.0
"""m per count of a ten-turn potentiometer read with 12 bits."""


def spool(name: str = "draw_1", *, encoder: bool = False, **changes: object) -> Spool:
    """A spool: wheel mode with a potentiometer and an encoder that repeats, or a servo that counts turns."""
    actuator = Actuator(name, name, (0.16, 0.27), rate=0.015, effort=200.0, minimum_tension=8.0)
    settings: dict[str, object] = {
        "actuator": actuator,
        "measured_by": "encoder" if encoder else "potentiometer",
        "radius": RADIUS,
        "potentiometer": None if encoder else Line(COUNT, 0.08),
        "encoder": Line(-RADIUS, 0.21),
        "stall_torque": STALL,
        "encoder_turn": not encoder,
        "stiffness": 20e3,
    }
    settings.update(changes)
    return Spool(**settings)  # type: ignore[arg-type]


@dataclass
class Axis:
    """One spool and its tendon as they really are.

    Attributes:
        length: true rest length [m]. reach: distance [m] that the tendon has to span. stiffness: N/m.
        delay: cycles from a command to its effect. jammed, snapped: as it says. drift: m/s without any command.
        gain: of speeds (negative: turns the wrong way). limited: it obeys the torque limit that comes with a command.
        slipped: m by which the potentiometer is off; frozen: counts at which it stays; override: of reading fields.
    """

    spool: Spool
    length: float = 0.21
    reach: float = 0.2125
    stiffness: float = 20e3
    delay: int = 1
    gain: float = 1.0
    drift: float = 0.0
    jammed: bool = False
    snapped: bool = False
    slipped: float = 0.0
    frozen: float | None = None
    silent: bool = False
    override: dict = field(default_factory=dict)
    age: int = 0
    torque: bool = False
    pushing: bool = False
    limited: bool = True

    def __post_init__(self) -> None:
        self.queue: deque[DriveCommand | None] = deque([None] * self.delay)
        self.last: ServoReading | None = None

    @property
    def tension(self) -> float:
        """True tension [N]."""
        return 0.0 if self.snapped else max(0.0, self.stiffness * (self.reach - self.length))

    @property
    def pushes(self) -> bool:
        """Whether the servo's load shows the tension: always, or only while it winds in."""
        return self.spool.load_at_rest or self.pushing

    def move(self, command: DriveCommand | None, period: float) -> None:
        """One cycle with a new command (None: nothing was sent)."""
        self.queue.append(command)
        acting = self.queue.popleft()
        speed, floor = self.drift, 0.0
        self.pushing = self.spool.reports_tension(acting)
        if acting is not None and acting.kind is Drive.TORQUE_OFF:
            self.torque, speed = False, 0.0
            self.length += 0.5 * max(self.reach - self.length, 0.0)  # pulled loose
        elif acting is not None:
            self.torque = True
            rate = self.spool.actuator.rate
            if acting.kind is Drive.VELOCITY:
                desired = acting.value
            else:
                desired = min(max((acting.value - self.length) / period, -rate), rate)
            speed += self.gain * desired
            if (
                self.limited and acting.tension > 0.0 and not self.snapped
            ):  # the torque limit stops winding in, desired or not
                least = min(self.reach - acting.tension / self.stiffness, self.length)
                floor = least
        if not self.jammed:
            self.length = max(self.length + speed * period, floor)

    def read(self) -> ServoReading:
        """What the bus would say."""
        if self.silent and self.last is not None:
            self.age += 1
            return ServoReading(**{**self.last.__dict__, "age": self.age})
        self.age = 0
        line, encoder = self.spool.potentiometer, self.spool.encoder
        counts = None if line is None else float(round(line.inverse(self.length + self.slipped)))
        turns = None if encoder is None else encoder.inverse(self.length)
        values: dict = {
            "name": self.spool.name,
            "position": turns,
            "sensor": counts if self.frozen is None else self.frozen,
            "load": self.spool.direction * self.tension * self.spool.radius / STALL if self.pushes else 0.0,
            "temperature": 40.0,
            "voltage": 11.1,
            "torque_on": self.torque,
            "watchdog": self.torque,
        }
        values.update(self.override)
        self.last = ServoReading(**values)
        return self.last


@dataclass
class Bench:
    """Several axes on one bus.

    Attributes:
        bus, command, period, clock_step: what the next cycle is told.
    """

    axes: dict[str, Axis]
    bus: BusReading = field(default_factory=lambda: BusReading(packets=12))
    command: CommandState = field(default_factory=lambda: CommandState("controller", 0))
    period: float = PERIOD
    clock_step: float | None = None

    def read(self) -> Readings:
        """One cycle's readings."""
        tendons = {name: axis.spool.observe(axis.read()) for name, axis in self.axes.items()}
        return Readings(tendons, self.bus, self.period, self.clock_step, self.command)

    def move(self, commands: dict[str, DriveCommand]) -> None:
        """Send commands and let one cycle pass."""
        for name, axis in self.axes.items():
            axis.move(commands.get(name), self.period)
