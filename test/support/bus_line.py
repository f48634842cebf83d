"""Serial lines for tests of the bus: emulated servos behind a port without time, and a pseudo-terminal that answers."""

from __future__ import annotations

import os
import select
import threading
import tty
from collections.abc import Callable, Mapping

from tensegrity_driver.bus.control_tables import MODELS
from tensegrity_driver.bus.serial_port import SerialPort
from tensegrity_driver.emulator.emulated_servo import EmulatedServo
from tensegrity_driver.emulator.servo_chain import ServoChain
from tensegrity_driver.servos.motors import MOTORS
from tensegrity_dynamics.errors import BusError


def make_servo(model: str, number: int) -> EmulatedServo:
    """A servo as delivered, under an id; its registers stay as tests set them."""
    servo = EmulatedServo(MODELS[model], MOTORS[model], mounted=1.0)
    servo.registers.set_raw("id", number)
    return turned_to(servo, 0.0)


def turned_to(servo: EmulatedServo, angle: float) -> EmulatedServo:
    """The servo, switched on with its shaft at an angle [rad]."""
    servo.motion.angle = angle
    servo.power_cycle()
    type(servo.motion).refresh_registers(servo.motion)
    servo.motion.refresh_registers = lambda: None  # type: ignore[method-assign]
    return servo


class FedPort(SerialPort):
    """A port from which bytes come as given; nothing waits, and the time is over when they are used up."""

    def __init__(self, data: bytes = b"") -> None:
        super().__init__("fed", patience=0.1)
        self.data = bytearray(data)
        self.is_open = True
        self.sent: list[bytes] = []

    def open(self) -> None:
        self.is_open = True

    def writePort(self, packet: list[int] | bytes) -> int:  # noqa: N802
        self.sent_last = bytes(packet)
        self.sent.append(self.sent_last)
        self.feed(bytes(packet))
        return len(packet)

    def feed(self, packet: bytes) -> None:
        """What comes back to a packet; nothing, unless somebody answers."""

    def readPort(self, length: int) -> bytes:  # noqa: N802
        taken = bytes(self.data[: max(length, 0)])
        del self.data[: max(length, 0)]
        return taken

    def clearPort(self) -> None:  # noqa: N802
        self.leftover = bytes(self.data)
        self.data.clear()

    def drain(self, quiet: float | None = None) -> None:
        self.data.clear()

    def isPacketTimeout(self) -> bool:  # noqa: N802
        return not self.data


class ChainPort(FedPort):
    """A port with emulated servos behind it; `spoil` changes what they answer, `gone` takes the adapter away."""

    def __init__(self, protocol: int, servos: Mapping[str, EmulatedServo]) -> None:
        super().__init__()
        self.chain = ServoChain(servos, protocol)
        self.spoil: Callable[[str, bytes], bytes] = lambda name, data: data
        self.gone = False

    def open(self) -> None:
        if self.gone:
            raise BusError("port fed cannot be opened")
        self.is_open = True

    def feed(self, packet: bytes) -> None:
        if self.gone:
            raise self._lost("unplugged")
        for answer in self.chain.feed(packet):
            self.data += self.spoil(answer.name, answer.data)


class Line:
    """A pseudo-terminal; a thread answers every piece that arrives with what `answer` makes of it."""

    def __init__(self, answer: Callable[[bytes], bytes] = lambda data: b"") -> None:
        self.master, slave = os.openpty()
        tty.setraw(slave)
        self.path = os.ttyname(slave)
        self._slave: int | None = slave
        self.answer = answer
        self.heard = bytearray()
        self._end_read, self._end_write = os.pipe()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def __enter__(self) -> Line:
        return self

    def __exit__(self, *_: object) -> None:
        self.unplug()

    def send(self, data: bytes) -> None:
        """Send something unasked."""
        os.write(self.master, data)

    def unplug(self) -> None:
        """The other end goes away for good."""
        if self._slave is not None:
            os.write(self._end_write, b"x")
            self._thread.join()
            for file in (self._slave, self.master, self._end_read, self._end_write):
                os.close(file)
            self._slave = None

    def _run(self) -> None:
        while True:
            ready, _, _ = select.select([self.master, self._end_read], [], [])
            if self._end_read in ready:
                return
            data = os.read(self.master, 4096)
            self.heard += data
            back = self.answer(data)
            if back:
                os.write(self.master, back)
