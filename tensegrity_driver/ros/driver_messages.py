"""From a driver's cycle to messages: joint_states, tendon_states, and diagnostics of the bus and of every servo."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticStatus, KeyValue
from sensor_msgs.msg import JointState
from tensegrity.msg import TendonState

from tensegrity_dynamics.ros.robot_node import ERROR, OK, WARN, WORLD

from ..driver import Driver
from ..driver_cycle import DriverCycle
from ..hardware.settings import servo_rows
from ..safety.faults import Fault, Reaction

UNITS = {"temperature": "deg C", "voltage": "V", "current": "A", "load": "of stall torque"}


class DriverMessages:
    """Writes the messages of one driver; remembers the last known lengths.

    Args:
        driver: whose readings they are.
    """

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._known: dict[str, float] = {}
        self._rates: dict[str, float] = {}
        self._ids = {row["actuator"]: row["id"] for row in servo_rows(driver.robot)}
        self._packets = self._bad_packets = 0

    @property
    def _cycle(self) -> DriverCycle:
        return self._driver.cycle

    def take(self, period: float) -> None:
        """Take note of what the last cycle read, `period` s after the one before."""
        readings = self._cycle.readings
        for name, tendon in readings.tendons.items():
            if not math.isfinite(tendon.length):
                self._rates[name] = 0.0
                continue
            before = self._known.get(name, tendon.length)
            self._rates[name] = (tendon.length - before) / period if period > 0.0 else 0.0
            self._known[name] = tendon.length
        self._packets += readings.bus.packets
        self._bad_packets += readings.bus.bad_packets

    def tension(self, name: str) -> float:
        """Estimated tension [N], or nan where load and current do not tell it at present."""
        tendon = self._cycle.readings.tendons.get(name)
        tells = self._cycle.layer.spools[name].tells_tension(self._cycle.layer.sent.get(name))
        return tendon.tension if tendon is not None and tells else math.nan

    def joints(self, stamp: Time) -> JointState:
        """Rest lengths by actuator; where a sensor fails the last known one stays, the fault tells of it."""
        message = JointState(name=[name for name in self._driver.spools if name in self._known])
        message.header.stamp, message.header.frame_id = stamp, WORLD
        message.position = [self._known[name] for name in message.name]
        message.velocity = [self._rates[name] for name in message.name]
        message.effort = [self.tension(name) for name in message.name]
        return message

    def tendons(self, stamp: Time) -> TendonState:
        """Lengths and tensions as load or current tell them; nan where they do not."""
        message = TendonState(estimated=True)
        message.header.stamp, message.header.frame_id = stamp, WORLD
        for name, spool in self._driver.spools.items():
            tendon, tension = self._cycle.readings.tendons.get(name), self.tension(name)
            rest = math.nan if tendon is None else tendon.length
            stretched = tension > 0.0 and spool.stiffness is not None
            message.name.append(spool.actuator.drives)
            message.rest_length.append(rest)
            message.tension.append(tension)
            message.length.append(rest + tension / spool.stiffness if stretched and spool.stiffness else math.nan)
        return message

    # -- diagnostics ----------------------------------------------------------------------------------------------

    def statuses(self, node: str, faults: Sequence[Fault], reactions: Mapping[str, Reaction]) -> list[DiagnosticStatus]:
        """One status for the bus, then one for each servo."""
        counter = self._cycle.counter
        bus: dict[str, Any] = {key: _short(value) for key, value in self._driver.statistics().items()}
        bus.update(rate=f"{counter.rate:.1f} /s", cycles=counter.cycles, overruns=counter.overruns)
        bus.update(longest_period=f"{1e3 * counter.longest:.1f} ms")
        bus.update(packets=self._packets, bad_packets=self._bad_packets)
        own = [each for each in faults if each.tendon is None]
        status = [_status(f"{node}: bus", own, "answering", self._worst(own), **bus)]
        for name in self._driver.spools:
            mine = [each for each in faults if each.tendon == name]
            reaction = reactions.get(name)
            values: dict[str, Any] = {"id": self._ids[name]}
            tendon = self._cycle.readings.tendons.get(name)
            if tendon is not None:
                raw = tendon.raw
                values["rest_length"] = f"{1e3 * tendon.length:.2f} mm"
                values["tension"] = f"{self.tension(name):.1f} N"
                for key, unit in UNITS.items():
                    if (value := getattr(raw, key)) is not None:
                        values[key] = f"{value:.3g} {unit}"
                values["torque"] = {True: "on", False: "off", None: "not known"}[raw.torque_on]
                values["silent_cycles"], values["errors"] = raw.age, ", ".join(sorted(raw.errors)) or "none"
            quiet = "following commands" if reaction is None else reaction.value
            status.append(_status(f"{node}: {name}", mine, quiet, self._worst(mine), **values))
        return status

    def _worst(self, faults: Sequence[Fault]) -> bytes:
        """Level of some faults: an error where one changes what the robot does."""
        settings = self._driver.settings.safety
        if any(settings.reaction(fault.kind) is not Reaction.WARN for fault in faults):
            return ERROR
        return WARN if faults else OK


def _status(name: str, faults: Sequence[Fault], quiet: str, level: bytes, **values: Any) -> DiagnosticStatus:
    """A status that says its faults, or what is going on without any."""
    pairs = [KeyValue(key=key.replace("_", " "), value=str(value)) for key, value in values.items()]
    message = " | ".join(fault.line for fault in faults) or quiet
    return DiagnosticStatus(level=level if faults else OK, name=name, message=message, values=pairs)


def _short(value: object) -> str:
    """A figure for people."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_short(each)}" for key, each in value.items()) or "none"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
