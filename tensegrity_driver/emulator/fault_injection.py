"""Injection of hardware faults into an emulated robot while it runs.

A fault changes the emulated hardware alone; detecting it is up to the driver.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from tensegrity_dynamics.errors import BusError, unknown_name

from ..servos.motors import MOTORS
from .emulated_servo import EmulatedServo
from .potentiometer_board import Potentiometer, PotentiometerBoard
from .pseudo_terminal import PseudoTerminal, Server
from .servo_chain import ServoChain
from .servo_physics import NOMINAL_VOLTAGE
from .spooled_robot import SpooledRobot, Winding
from .wire_delay import WireDelay


@dataclass
class EmulatedParts:
    """Parts of an emulated robot on which its simulation, its ports and its faults act; `lock` guards all of them.

    Attributes:
        servos: by actuator. channels: of the potentiometers, by actuator. chain: the servos on their bus.
        wire: delays and damage on the bus. body: the simulated robot. board: of the potentiometers, or None.
        terminals: pseudo-terminals by name of the port. server: serves them.
        shaft_torques: torque from outside on a spool [N m], by actuator.
        second_servos: additional servos with the id of another, by its actuator.
        original_ids: (id, actuator whose id it took) of servos with a wrong id, by actuator.
        right_windings: direction in which tendons that are wound on backwards should be, by actuator.
    """

    lock: threading.RLock
    servos: dict[str, EmulatedServo]
    channels: dict[str, int]
    chain: ServoChain
    wire: WireDelay
    body: SpooledRobot
    board: PotentiometerBoard | None
    terminals: dict[str, PseudoTerminal]
    server: Server
    shaft_torques: dict[str, float] = field(default_factory=dict)
    second_servos: dict[str, EmulatedServo] = field(default_factory=dict)
    original_ids: dict[str, tuple[int, str]] = field(default_factory=dict)
    right_windings: dict[str, int] = field(default_factory=dict)

    def servo(self, name: str) -> EmulatedServo:
        """Servo of an actuator; raises BusError for an unknown one."""
        if name not in self.servos:
            raise BusError(unknown_name("emulated actuator", name, self.servos))
        return self.servos[name]

    def winding(self, name: str) -> Winding:
        """Spool of an actuator; raises BusError for an unknown one."""
        self.servo(name)
        return self.body.windings[name]


class FaultInjection:
    """Faults of an emulated robot, switched on while it runs; `mend` removes them.

    All names are names of actuators; an unknown one raises BusError.

    Args:
        parts: of the emulated robot.
    """

    def __init__(self, parts: EmulatedParts) -> None:
        self._parts = parts

    # -- servos ----------------------------------------------------------------------------------------------------

    def silence(self, name: str) -> None:
        """Unplug the cable of a servo: it receives and sends nothing, and continues its motion."""
        with self._parts.lock:
            self._parts.chain.deaf.add(self._actuator(name))

    def mute(self, name: str) -> None:
        """Suppress the answers of a servo, which still executes instructions."""
        with self._parts.lock:
            self._parts.chain.mute.add(self._actuator(name))

    def lose_writes(self, name: str, *, singles: bool = True) -> None:
        """Let a servo miss all writes to groups, and with `singles` those to it alone; it answers reads."""
        with self._parts.lock:
            self._parts.chain.loses_groups.add(self._actuator(name))
            if singles:
                self._parts.chain.loses_writes.add(name)

    def damage(self, name: str, share: float = 1.0) -> None:
        """Flip a bit in a share (0 to 1) of the answers of a servo."""
        with self._parts.lock:
            self._parts.wire.damaged[self._actuator(name)] = share

    def duplicate(self, name: str, other: str | None = None) -> None:
        """Let a second servo answer with the id of this one: that of actuator `other`, or an additional one."""
        with self._parts.lock:
            servo = self._parts.servo(name)
            if other is not None:
                twin = self._parts.servo(other)
                self._parts.original_ids[other] = (self._parts.original_ids.get(other, (twin.id, ""))[0], name)
                twin.registers.set_raw("id", servo.id)
                return
            second = EmulatedServo(servo.model, MOTORS[servo.model.name])
            second.registers.set_raw("id", servo.id)
            self._parts.second_servos[name] = second
            self._parts.chain.servos[f"second {name}"] = second

    def heat(self, name: str, celsius: float) -> None:
        """Set the temperature of a servo [degrees Celsius]."""
        with self._parts.lock:
            self._parts.servo(name).motion.forced_temperature = celsius

    def sag(self, volts: float, name: str | None = None) -> None:
        """Set the supply voltage of one servo, or of all [V]."""
        with self._parts.lock:
            for each in self._parts.servos if name is None else (self._actuator(name),):
                self._parts.servos[each].motion.voltage = volts

    def power_cycle(self, name: str | None = None) -> None:
        """Switch the supply of one servo, or of all, off and on: RAM is reset, torque is off, turn counts are lost."""
        with self._parts.lock:
            for each in self._parts.servos if name is None else (self._actuator(name),):
                self._parts.servos[each].power_cycle()

    def run_away(self, name: str, speed: float) -> None:
        """Turn a shaft at a speed [rad/s], whatever its commands and its load."""
        with self._parts.lock:
            self._parts.servo(name).motion.forced_speed = speed

    def jam(self, name: str) -> None:
        """Block a shaft."""
        with self._parts.lock:
            self._parts.servo(name).motion.jammed = True

    def lose_torque(self, name: str) -> None:
        """Switch the torque of a servo off, once."""
        with self._parts.lock:
            servo = self._parts.servo(name)
            servo.registers.set_raw("torque_enable", 0)
            servo.motion.torque_switched()

    def fail(self, name: str, error: str) -> None:
        """Set a hardware error of a servo, by the name of its bit; it shuts down where its registers say so.

        The X series keeps it until a reboot; an AX-12A keeps only "overload", until its torque limit is written.

        Raises:
            BusError: a name that the model lacks.
        """
        with self._parts.lock:
            servo = self._parts.servo(name)
            bits = {text: bit for bit, text in servo.model.error_bits.items()}
            if error not in bits:
                raise BusError(unknown_name("error", error, bits, f"of a {servo.model.name}"))
            servo.motion.errors |= 1 << bits[error]

    def set_register(self, name: str, register: str, raw: int) -> None:
        """Set the raw value of a register of a servo, as another program or a memory fault would.

        Raises:
            BusError: a register that the model lacks, or a number that does not fit into it.
        """
        with self._parts.lock:
            servo = self._parts.servo(name)
            if register not in servo.model.registers:
                raise BusError(unknown_name("register", register, servo.model.registers, f"of a {servo.model.name}"))
            largest = 256 ** servo.model.registers[register].size - 1
            if not 0 <= raw <= largest:
                raise BusError(f"{register} of a {servo.model.name} holds 0 to {largest}, not {raw}.")
            servo.registers.set_raw(register, raw)

    def change_turns(self, name: str, turns: int) -> None:
        """Change the turn count of a servo by a number of turns, without motion of its shaft."""
        with self._parts.lock:
            self._parts.servo(name).motion.change_turns(turns)

    def pull_shaft(self, name: str, torque: float) -> None:
        """Apply an outside torque to a spool [N m], in the positive direction of its servo; zero removes it."""
        with self._parts.lock:
            self._parts.shaft_torques[self._actuator(name)] = torque

    # -- body ------------------------------------------------------------------------------------------------------

    def snap(self, name: str) -> None:
        """Break a tendon: it has no tension, whatever its spool does."""
        with self._parts.lock:
            self._parts.winding(name).snapped = True

    def slip(self, name: str, length: float) -> None:
        """Let a tendon slip on its spool by a length [m], or the gear before it: no sensor of the spool shows this."""
        if not 0.0 <= length < 10.0:
            raise BusError(f"a slip of {length} m: give 0 to 10 m.")
        with self._parts.lock:
            self._parts.winding(name).start += length

    def wind_backwards(self, name: str) -> None:
        """Wind a tendon on the other way round: the servo that wound it in pays it out, at the same length."""
        with self._parts.lock:
            winding = self._parts.winding(name)
            self._parts.right_windings.setdefault(name, winding.direction)
            winding.wind(-self._parts.right_windings[name])

    def push(self, node: str, force: Sequence[float]) -> None:
        """Apply a constant outside force to a node [N]; zero removes it. Raises TensegrityError for an unknown node."""
        with self._parts.lock:
            self._parts.body.push(node, force)

    # -- potentiometers --------------------------------------------------------------------------------------------

    def break_potentiometer(self, name: str, counts: int = 4095) -> None:
        """Break the wire of a potentiometer: the converter reads these counts."""
        with self._parts.lock:
            self._potentiometer(name).broken = counts

    def freeze_potentiometer(self, name: str) -> None:
        """Freeze the reading of a potentiometer, as with a loose coupling."""
        with self._parts.lock:
            self._potentiometer(name).frozen = True

    def slip_potentiometer(self, name: str, share: float = 0.2) -> None:
        """Let a potentiometer slip by a share (0 to 1) of the motion of its spool."""
        with self._parts.lock:
            self._potentiometer(name).slip = share

    def disturb_potentiometer(self, name: str, counts: float = 20.0) -> None:
        """Add noise to a potentiometer, with a standard deviation [counts]."""
        with self._parts.lock:
            self._potentiometer(name).noise = counts

    def silence_board(self, silent: bool = True) -> None:
        """Silence the potentiometer board; False ends it. Raises BusError for a robot without board."""
        with self._parts.lock:
            if self._parts.board is None:
                raise BusError("this robot has no potentiometer board; its servos count turns.")
            self._parts.board.silent = silent

    # -- ports -----------------------------------------------------------------------------------------------------

    def unplug(self, port: str = "servos") -> None:
        """Unplug the adapter of a port: its terminal and its path disappear."""
        with self._parts.lock:
            self._terminal(port).unplug()
        self._parts.server.refresh()

    def plug(self, port: str = "servos") -> None:
        """Plug the adapter of a port in again, at the same path."""
        with self._parts.lock:
            self._terminal(port).plug()
        self._parts.server.refresh()

    def spike(self, seconds: float, every: int = 10) -> None:
        """Delay one of every `every` deliveries on the servo bus [s]; zero ends it."""
        if not (0.0 <= seconds < 60.0 and every >= 1):
            raise BusError(f"spikes of {seconds} s at every {every}: give 0 to 60 s and a whole number above zero.")
        with self._parts.lock:
            self._parts.wire.spike, self._parts.wire.spike_every = seconds, every

    def garbage(self, data: bytes = b"\xff\xff\x00\x55\xff", *, now: bool = False) -> None:
        """Insert bytes before the next answer, or now."""
        with self._parts.lock:
            if now:
                self._terminal("servos").send(data)
            else:
                self._parts.wire.garbage += data

    def echo(self, on: bool = True) -> None:
        """Let the adapter echo what the host sends, as simple half-duplex adapters do."""
        with self._parts.lock:
            self._parts.wire.echo = on

    # -- removal ---------------------------------------------------------------------------------------------------

    def mend(self, name: str | None = None) -> None:
        """Remove the faults of servo, tendon and potentiometer of one actuator, or all faults, ports included."""
        with self._parts.lock:
            for each in self._parts.servos if name is None else (self._actuator(name),):
                self._mend_one(each)
            if name is not None:
                return
            self._parts.body.release()
            self._parts.wire.spike, self._parts.wire.garbage, self._parts.wire.echo = 0.0, b"", False
            self._parts.chain.breaks = False
            if self._parts.board is not None:
                self._parts.board.silent = False
            for terminal in self._parts.terminals.values():
                terminal.plug()
        self._parts.server.refresh()

    def _mend_one(self, name: str) -> None:
        motion = self._parts.servos[name].motion
        self._parts.chain.deaf.discard(name)
        self._parts.chain.mute.discard(name)
        self._parts.chain.loses_groups.discard(name)
        self._parts.chain.loses_writes.discard(name)
        self._parts.chain.servos.pop(f"second {name}", None)
        self._parts.second_servos.pop(name, None)
        self._parts.wire.damaged.pop(name, None)
        self._parts.shaft_torques.pop(name, None)
        for twin, (id_, original) in tuple(self._parts.original_ids.items()):
            if name in (twin, original):
                self._parts.servos[twin].registers.set_raw("id", id_)
                del self._parts.original_ids[twin]
        motion.forced_speed, motion.jammed, motion.voltage = None, False, NOMINAL_VOLTAGE
        if motion.forced_temperature is not None:
            motion.forced_temperature, motion.temperature = None, min(motion.temperature, 40.0)
        self._parts.body.windings[name].snapped = False
        if name in self._parts.right_windings:
            self._parts.winding(name).wind(self._parts.right_windings.pop(name))
        if self._parts.board is not None and name in self._parts.channels:
            self._parts.board.potentiometers[self._parts.channels[name]].mend()

    # -- names -----------------------------------------------------------------------------------------------------

    def _actuator(self, name: str) -> str:
        self._parts.servo(name)
        return name

    def _terminal(self, port: str) -> PseudoTerminal:
        if port not in self._parts.terminals:
            raise BusError(unknown_name("emulated port", port, self._parts.terminals))
        return self._parts.terminals[port]

    def _potentiometer(self, name: str) -> Potentiometer:
        if self._parts.board is None or self._actuator(name) not in self._parts.channels:
            raise BusError(f"the spool of {name} has no potentiometer.")
        return self._parts.board.potentiometers[self._parts.channels[name]]
