"""What goes wrong with hardware, on request and while it runs; `mend` undoes it.

All names are names of actuators. A fault says what happens to the thing, never what the driver should make of it.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from tensegrity_dynamics.errors import BusError, unknown_name

from ..calibration.calibrated_spools import MOTORS
from .emulated_servo import EmulatedServo
from .potentiometer_board import Potentiometer, PotentiometerBoard
from .pseudo_terminal import PseudoTerminal, Server
from .servo_chain import ServoChain
from .servo_physics import NOMINAL_VOLTAGE
from .spooled_robot import SpooledRobot
from .wire_delay import WireDelay


class Faults:
    """Faults of an emulated robot; a base of `EmulatedRobot`."""

    _lock: threading.RLock
    _servos: dict[str, EmulatedServo]
    _channels: dict[str, int]
    _chain: ServoChain
    _wire: WireDelay
    _plant: SpooledRobot
    _board: PotentiometerBoard | None
    _terminals: dict[str, PseudoTerminal]
    _server: Server

    _pulls: dict[str, float]
    _ghosts: dict[str, EmulatedServo]
    _true_ids: dict[str, tuple[int, str]]

    # -- servos ----------------------------------------------------------------------------------------------------

    def silence(self, name: str) -> None:
        """The servo's cable is off: it hears nothing, says nothing and goes on with what it does."""
        with self._lock:
            self._chain.deaf.add(self._known(name))

    def mute(self, name: str) -> None:
        """The servo hears and obeys, but its answers are lost."""
        with self._lock:
            self._chain.mute.add(self._known(name))

    def damage(self, name: str, share: float = 1.0) -> None:
        """A share (0 to 1) of the servo's answers arrives with a wrong bit."""
        with self._lock:
            self._wire.damaged[self._known(name)] = share

    def duplicate(self, name: str, other: str | None = None) -> None:
        """Another servo answers under this servo's id: the one of actuator `other`, or a foreign one on the bus."""
        with self._lock:
            servo = self._servos[self._known(name)]
            if other is not None:
                twin = self._servos[self._known(other)]
                self._true_ids[other] = (self._true_ids.get(other, (twin.id, ""))[0], name)
                twin.registers.set_raw("id", servo.id)
                return
            ghost = EmulatedServo(servo.model, MOTORS[servo.model.name])
            ghost.registers.set_raw("id", servo.id)
            self._ghosts[name] = ghost
            self._chain.servos[f"second {name}"] = ghost

    def heat(self, name: str, celsius: float) -> None:
        """The servo has this temperature until it is mended."""
        with self._lock:
            self._servos[self._known(name)].motion.forced_temperature = celsius

    def sag(self, volts: float, name: str | None = None) -> None:
        """The supply of one servo, or of all, has this voltage."""
        with self._lock:
            for each in self._servos if name is None else (self._known(name),):
                self._servos[each].motion.voltage = volts

    def power_cycle(self, name: str | None = None) -> None:
        """The supply of one servo, or of all, goes off and on: EEPROM kept, RAM as new, torque off, turns lost."""
        with self._lock:
            for each in self._servos if name is None else (self._known(name),):
                self._servos[each].power_cycle()

    def run_away(self, name: str, speed: float) -> None:
        """The shaft turns at this speed [rad/s], whatever it is told and whatever pulls at it."""
        with self._lock:
            self._servos[self._known(name)].motion.forced_speed = speed

    def jam(self, name: str) -> None:
        """The shaft does not turn."""
        with self._lock:
            self._servos[self._known(name)].motion.jammed = True

    def lose_torque(self, name: str) -> None:
        """The servo switches its torque off by itself, once."""
        with self._lock:
            servo = self._servos[self._known(name)]
            servo.registers.set_raw("torque_enable", 0)
            servo.motion.torque_switched()

    def fail(self, name: str, error: str) -> None:
        """The servo reports an error of its own, by the name of its bit, and shuts down where its registers say so.

        An X keeps it until it restarts; an AX-12A keeps only "overload", until its torque limit is written again.
        """
        with self._lock:
            servo = self._servos[self._known(name)]
            bits = {known: bit for bit, known in servo.model.error_bits.items()}
            if error not in bits:
                raise BusError(unknown_name(f"error of a {servo.model.name}", error, bits))
            servo.motion.errors |= 1 << bits[error]

    def pull_shaft(self, name: str, torque: float) -> None:
        """Somebody turns the spool with this torque [N m], in the servo's positive direction; zero: nobody."""
        with self._lock:
            self._pulls[self._known(name)] = torque

    # -- body ------------------------------------------------------------------------------------------------------

    def snap(self, name: str) -> None:
        """The tendon breaks: no tension any more, whatever the spool does."""
        with self._lock:
            self._plant.windings[self._known(name)].snapped = True

    def push(self, node: str, force: Sequence[float]) -> None:
        """Somebody pulls at a node with this force [N], steadily; zero: nobody."""
        with self._lock:
            self._plant.push(node, force)

    # -- potentiometers --------------------------------------------------------------------------------------------

    def break_potentiometer(self, name: str, counts: int = 4095) -> None:
        """Its wire is off: the converter says this."""
        with self._lock:
            self._potentiometer(name).broken = counts

    def freeze_potentiometer(self, name: str) -> None:
        """It stays where it is, as if its coupling were off."""
        with self._lock:
            self._potentiometer(name).frozen = True

    def slip_potentiometer(self, name: str, share: float = 0.2) -> None:
        """It does not follow this share (0 to 1) of the spool's motion."""
        with self._lock:
            self._potentiometer(name).slip = share

    def disturb_potentiometer(self, name: str, counts: float = 20.0) -> None:
        """Its readings scatter with this standard deviation [counts]."""
        with self._lock:
            self._potentiometer(name).noise = counts

    def silence_board(self, silent: bool = True) -> None:
        """The potentiometer board says nothing; False: it speaks again."""
        with self._lock:
            if self._board is None:
                raise BusError("this robot has no potentiometer board; its servos count turns.")
            self._board.silent = silent

    # -- ports -----------------------------------------------------------------------------------------------------

    def unplug(self, port: str = "servos") -> None:
        """The adapter is pulled out: its terminal and its name are gone."""
        with self._lock:
            self._terminal(port).unplug()
        self._server.look_again()

    def plug(self, port: str = "servos") -> None:
        """The adapter is back, under the same name."""
        with self._lock:
            self._terminal(port).plug()
        self._server.look_again()

    def spike(self, seconds: float, every: int = 10) -> None:
        """Every so many deliveries on the servo bus come this much later; zero seconds: none does."""
        if not (0.0 <= seconds < 60.0 and every >= 1):
            raise BusError(f"spikes of {seconds} s at every {every}: give 0 to 60 s and a whole number above zero.")
        with self._lock:
            self._wire.spike, self._wire.spike_every = seconds, every

    def garbage(self, data: bytes = b"\xff\xff\x00\x55\xff", *, now: bool = False) -> None:
        """Bytes that nobody sent come before the next answer, or now."""
        with self._lock:
            if now:
                self._terminal("servos").send(data)
            else:
                self._wire.garbage += data

    def echo(self, on: bool = True) -> None:
        """The adapter returns what the host sends, as simple half-duplex ones do."""
        with self._lock:
            self._wire.echo = on

    # -- and back --------------------------------------------------------------------------------------------------

    def mend(self, name: str | None = None) -> None:
        """Undo the faults of one actuator's servo, tendon and potentiometer, or all faults; ports come back."""
        with self._lock:
            for each in self._servos if name is None else (self._known(name),):
                self._mend_one(each)
            if name is not None:
                return
            self._plant.release()
            self._wire.spike, self._wire.garbage, self._wire.echo = 0.0, b"", False
            self._chain.breaks = False
            if self._board is not None:
                self._board.silent = False
            for terminal in self._terminals.values():
                terminal.plug()
        self._server.look_again()

    def _mend_one(self, name: str) -> None:
        motion = self._servos[name].motion
        self._chain.deaf.discard(name)
        self._chain.mute.discard(name)
        self._chain.servos.pop(f"second {name}", None)
        self._ghosts.pop(name, None)
        self._wire.damaged.pop(name, None)
        self._pulls.pop(name, None)
        for twin, (id_, disturbed) in tuple(self._true_ids.items()):
            if name in (twin, disturbed):
                self._servos[twin].registers.set_raw("id", id_)
                del self._true_ids[twin]
        motion.forced_speed, motion.jammed, motion.voltage = None, False, NOMINAL_VOLTAGE
        if motion.forced_temperature is not None:
            motion.forced_temperature, motion.temperature = None, min(motion.temperature, 40.0)
        self._plant.windings[name].snapped = False
        if self._board is not None and name in self._channels:
            self._board.potentiometers[self._channels[name]].mend()

    # -- names -----------------------------------------------------------------------------------------------------

    def _known(self, name: str) -> str:
        if name not in self._servos:
            raise BusError(unknown_name("emulated actuator", name, self._servos))
        return name

    def _terminal(self, port: str) -> PseudoTerminal:
        if port not in self._terminals:
            raise BusError(unknown_name("emulated port", port, self._terminals))
        return self._terminals[port]

    def _potentiometer(self, name: str) -> Potentiometer:
        if self._board is None or self._known(name) not in self._channels:
            raise BusError(f"the spool of {name} has no potentiometer.")
        return self._board.potentiometers[self._channels[name]]
