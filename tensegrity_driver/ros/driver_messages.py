"""Messages of a driver: joint_states, tendon_states, and diagnostics of the bus and of every servo."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticStatus, KeyValue
from sensor_msgs.msg import JointState
from tensegrity.msg import TendonState

from tensegrity_dynamics.robots.robot_types import type_of
from tensegrity_dynamics.ros.robot_node import ERROR, OK, WARN, WORLD

from ..calibration.calibrated_spools import servo_rows
from ..driver import Driver
from ..safety.faults import Fault, Reaction

UNITS = {"temperature": "deg C", "voltage": "V", "current": "A", "load": "of stall torque"}


class DriverMessages:
    """Messages of one driver, with the last valid lengths if a sensor fails.

    Args:
        driver: driver; it is read after every cycle.
    """

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._lengths: dict[str, float] = {}
        self._rates: dict[str, float] = {}
        self._ids = {row["actuator"]: row["id"] for row in servo_rows(driver.robot)}
        self._packets = self._bad_packets = 0
        layout = type_of(driver.robot).codec(driver.robot).layout
        self._layout = "" if layout is None else layout.hash

    def update(self, period: float) -> None:
        """Update lengths, rates and counts from the last cycle, `period` [s] after the one before."""
        readings = self._driver.readings
        for name, tendon in readings.tendons.items():
            if not math.isfinite(tendon.length):
                self._rates[name] = 0.0
                continue
            before = self._lengths.get(name, tendon.length)
            self._rates[name] = (tendon.length - before) / period if period > 0.0 else 0.0
            self._lengths[name] = tendon.length
        self._packets += readings.bus.packets
        self._bad_packets += readings.bus.bad_packets

    def joints(self, stamp: Time) -> JointState:
        """Positions by actuator; the last valid one if a sensor fails, which is reported as a fault."""
        message = JointState(name=[name for name in self._driver.spools if name in self._lengths])
        message.header.stamp = stamp  # of joints, which have no frame
        spools = self._driver.spools
        message.position = [spools[name].position(self._lengths[name]) for name in message.name]
        message.velocity = [spools[name].rate(self._rates[name]) for name in message.name]
        message.effort = [spools[name].effort(self._driver.tension(name)) for name in message.name]
        return message

    def tendons(self, stamp: Time) -> TendonState:
        """Lengths and estimated tensions; nan if load and current do not indicate the tension.

        For cables of a mechanism only tensions: the length on a pulley also depends on the direction of the cable.
        """
        message = TendonState(layout=self._layout, estimated=True)
        message.header.stamp, message.header.frame_id = stamp, WORLD
        for name, spool in self._driver.spools.items():
            if not spool.pulls:
                continue
            tendon, tension = self._driver.readings.tendons.get(name), self._driver.tendon_tension(name)
            rest = math.nan if tendon is None or spool.driven.motion != "tendon" else tendon.length
            stretched = tension > 0.0 and spool.stiffness is not None
            message.name.append(spool.actuator.drives)
            message.rest_length.append(rest)
            message.tension.append(tension)
            message.length.append(rest + tension / spool.stiffness if stretched and spool.stiffness else math.nan)
        return message

    # -- diagnostics ----------------------------------------------------------------------------------------------

    def statuses(self, node: str, faults: Sequence[Fault], reactions: Mapping[str, Reaction]) -> list[DiagnosticStatus]:
        """One status for the bus, then one for each servo."""
        counter = self._driver.counter
        bus: dict[str, Any] = {key: _format(value) for key, value in self._driver.link.statistics().items()}
        bus.update(rate=f"{counter.rate:.1f} /s", cycles=counter.cycles, overruns=counter.overruns)
        bus.update(longest_period=f"{1e3 * counter.longest:.1f} ms")
        bus.update(packets=self._packets, bad_packets=self._bad_packets)
        own = [each for each in faults if each.tendon is None]
        status = [_status(f"{node}: bus", own, "answering", self._worst(own), **bus)]
        for name in self._driver.spools:
            mine = [each for each in faults if each.tendon == name]
            reaction = reactions.get(name)
            values: dict[str, Any] = {"id": self._ids[name]}
            tendon = self._driver.readings.tendons.get(name)
            if tendon is not None:
                raw = tendon.raw
                values["rest_length"] = f"{1e3 * tendon.length:.2f} mm"
                values["tension"] = f"{self._driver.tendon_tension(name):.1f} N"
                for key, unit in UNITS.items():
                    if (value := getattr(raw, key)) is not None:
                        values[key] = f"{value:.3g} {unit}"
                sent = self._driver.sent.get(name)
                if sent is not None and sent.impedance is not None:
                    lever = self._driver.spools[name].lever
                    unit = "/".join(self._driver.spools[name].driven.units[2::-2])
                    values["stiffness"] = f"{sent.impedance.stiffness * lever * lever:.3g} {unit}"
                values["torque"] = {True: "on", False: "off", None: "not known"}[raw.torque_on]
                values["silent_cycles"], values["errors"] = raw.age, ", ".join(sorted(raw.errors)) or "none"
            quiet = "following commands" if reaction is None else reaction.value
            status.append(_status(f"{node}: {name}", mine, quiet, self._worst(mine), **values))
        return status

    def _worst(self, faults: Sequence[Fault]) -> bytes:
        """Level of a set of faults: ERROR where one has a reaction other than a warning."""
        settings = self._driver.settings.safety
        if any(settings.reaction(fault.kind) is not Reaction.WARN for fault in faults):
            return ERROR
        return WARN if faults else OK


def _status(name: str, faults: Sequence[Fault], quiet: str, level: bytes, **values: Any) -> DiagnosticStatus:
    """Status with its faults, or the text `quiet` without faults."""
    pairs = [KeyValue(key=key.replace("_", " "), value=str(value)) for key, value in values.items()]
    message = " | ".join(fault.line for fault in faults) or quiet
    return DiagnosticStatus(level=level if faults else OK, name=name, message=message, values=pairs)


def _format(value: object) -> str:
    """Figure as a short text."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_format(each)}" for key, each in value.items()) or "none"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
