"""The firmware of the potentiometer board on this machine: built once per state of its sources, run by ctypes.

`FirmwareBoard` stands in an emulated robot where the emulated board stands, with the emulated servos at its own bus:
the driver talks to the firmware over a pseudo-terminal, and every millisecond of its time is one of the emulated robot.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from bus_line import make_servo

from tensegrity_driver.bus.potentiometer_protocol import (
    DRIVE,
    RADIANS_PER_COUNT,
    SERVO,
    SETUP,
    STATE,
    AnswerReader,
    BoardAction,
    BoardAnswer,
    BoardMode,
    BoardRequest,
    BoardServo,
    BoardState,
    ChannelSetup,
    encode_request,
)
from tensegrity_driver.emulator.potentiometer_board import Potentiometer, PotentiometerBoard
from tensegrity_driver.emulator.servo_chain import ServoChain

FOLDER = Path(__file__).resolve().parents[2] / "firmware"
ANSWER_MS = 4
MAX_EXCHANGES = 200
"""Exchanges with servos at one instant before something goes round in circles; arming twelve servos takes 60."""


@functools.cache
def built(target: str, **variables: str) -> Path:
    """A target of the Makefile, built into a folder that belongs to this state of the sources."""
    state = hashlib.sha256(repr(sorted(variables.items())).encode())
    for each in sorted(FOLDER.rglob("*")):
        if each.is_file() and "build" not in each.relative_to(FOLDER).parts:
            state.update(each.read_bytes())
    folder = Path(tempfile.gettempdir()) / f"tensegrity_firmware_{os.getuid()}" / state.hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / target
    if not made.exists():
        compiler = next(
            (each for each in (os.environ.get("CXX"), "c++", "g++", "clang++") if each and shutil.which(each)), "c++"
        )
        own = Path(tempfile.mkdtemp(dir=folder))  # two test processes may build at once
        settings = [f"{name}={value}" for name, value in {"BUILD": own, "CXX": compiler, **variables}.items()]
        done = subprocess.run(["make", "-C", FOLDER, *settings, own / target], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        (own / target).replace(made)
        shutil.rmtree(own)
    return made


@functools.cache
def library() -> ctypes.CDLL:
    loaded = ctypes.CDLL(str(built("libboard.so")))
    memory, bytes_, u8, u16, u32 = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint8, ctypes.c_uint16, ctypes.c_uint32
    loaded.board_begin.argtypes = [memory, u8, u32, u8]
    loaded.board_host_bytes.argtypes = [memory, bytes_, u32, u32]
    loaded.board_servo_bytes.argtypes = [memory, bytes_, u32]
    loaded.board_convert.argtypes = [memory, u8, u16]
    loaded.board_run.argtypes = [memory, u32]
    for name in ("board_begin", "board_host_bytes", "board_servo_bytes", "board_convert", "board_run"):
        getattr(loaded, name).restype = None
    for name in ("board_take_host", "board_take_servos"):
        getattr(loaded, name).argtypes = [memory, bytes_]
        getattr(loaded, name).restype = u32
    for name in ("board_mode", "board_reason"):
        getattr(loaded, name).argtypes = [memory]
        getattr(loaded, name).restype = u8
    return loaded


class Firmware:
    """The core of the firmware; its time [ms] is what the caller says, and wraps at 2^32."""

    def __init__(self, channels: int, start_ms: int = 0) -> None:
        self._library = library()
        self._memory = ctypes.create_string_buffer(self._library.board_bytes() + 16)
        self._at = (ctypes.addressof(self._memory) + 15) // 16 * 16
        self._buffer = ctypes.create_string_buffer(self._library.board_capacity())
        self.now = start_ms
        self._library.board_begin(self._at, channels, self.time, ANSWER_MS)

    @property
    def time(self) -> int:
        return self.now & 0xFFFFFFFF

    def host(self, data: bytes) -> bytes:
        """Bytes from the host; returns the answers."""
        self._library.board_host_bytes(self._at, data, len(data), self.time)
        return ctypes.string_at(self._buffer, self._library.board_take_host(self._at, self._buffer))

    def servos(self, data: bytes) -> None:
        """Bytes from the servos."""
        self._library.board_servo_bytes(self._at, data, len(data))

    def run(self) -> bytes:
        """One turn of the loop; returns bytes for the servos."""
        self._library.board_run(self._at, self.time)
        return ctypes.string_at(self._buffer, self._library.board_take_servos(self._at, self._buffer))

    def step(self) -> tuple[bytes, bytes]:
        """A millisecond; returns bytes for the host and for the servos."""
        self.now += 1
        return b"", self.run()

    def convert(self, channel: int, counts: int) -> None:
        self._library.board_convert(self._at, channel, counts)

    @property
    def mode(self) -> int:
        return int(self._library.board_mode(self._at))

    @property
    def reason(self) -> int:
        return int(self._library.board_reason(self._at))


class SimulatedAvr:
    """The image for the ATmega2560 in simavr, with the face of `Firmware`: its time passes in `step`."""

    def __init__(self, image: Path, runner: Path, channels: int) -> None:
        self._process = subprocess.Popen(
            [runner, image], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self._host, self._servos = b"", b""
        self._millivolts = [0] * channels
        self.longest_turn = 0

    def close(self) -> None:
        self._process.communicate()

    def host(self, data: bytes) -> None:
        self._host += data

    def servos(self, data: bytes) -> None:
        self._servos += data

    def convert(self, channel: int, counts: int) -> None:
        self._millivolts[channel] = round((counts + 2.0) * 5000.0 / 4096.0)  # the middle of a step of its 10 bits

    def step(self) -> tuple[bytes, bytes]:
        """A millisecond; returns bytes for the host and for the servos."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        fields = [self._host.hex() or "-", self._servos.hex() or "-", *map(str, self._millivolts)]
        self._host, self._servos = b"", b""
        print("1000", *fields, file=self._process.stdin, flush=True)
        line = ""
        while not line.startswith("="):  # simavr has messages of its own
            line = self._process.stdout.readline()
            assert line, "simavr ended"
        _, host, servos, longest = line.split()
        self.longest_turn = int(longest)
        return tuple(b"" if text == "-" else bytes.fromhex(text) for text in (host, servos))  # type: ignore[return-value]


class FirmwareBoard(PotentiometerBoard):
    """The firmware with emulated potentiometers and servos; see `DrivingBoard`, which it replaces."""

    def __init__(self, potentiometers: Mapping[int, Potentiometer], chain: ServoChain, seed: int = 0) -> None:
        super().__init__(potentiometers, seed)
        self.firmware = Firmware(self.channels, start_ms=2**32 - 3000)  # its clock wraps soon after the start
        self._chain = chain
        self._elapsed = 0.0
        self._convert()

    def feed(self, data: bytes) -> list[bytes]:
        answer = self.firmware.host(data)
        self._turn()
        return [answer] if answer and not self.silent else []

    def end_of_burst(self) -> None:
        """The firmware has a clock of its own."""

    def run(self, seconds: float) -> None:
        self._convert()
        self._elapsed += seconds
        while self._elapsed >= 1e-3 - 1e-9:
            self._elapsed -= 1e-3
            self.firmware.now += 1
            self._turn()

    def _convert(self) -> None:
        for channel in self.potentiometers:
            self.firmware.convert(channel, self._positions[channel])

    def _turn(self) -> None:
        """Turns of its loop at this instant, until it asks its servos nothing more."""
        for _ in range(MAX_EXCHANGES):
            sent = self.firmware.run()
            if not sent:
                return
            for answer in self._chain.feed(sent):
                self.firmware.servos(answer.data)
        raise AssertionError("the firmware asks and asks at one instant")


class BoardBench:
    """A board with servos that turn potentiometers, a millisecond a step.

    Attributes:
        answers: of the board to the host so far.
    """

    def __init__(self, board: Firmware | SimulatedAvr, channels: int, start: float = 2000.0) -> None:
        self.board = board
        self.servos = [make_servo("AX-12A", 1 + k) for k in range(channels)]
        for servo in self.servos:
            servo.registers.set_raw("ccw_limit", 0)
        self.chain = ServoChain({str(k): servo for k, servo in enumerate(self.servos)}, 1)
        self.counts = [start + 50.0 * k for k in range(channels)]
        self.reader = AnswerReader()
        self.answers: list[BoardAnswer] = []
        self._sequence = 0

    def send(self, flag: int, **contents: object) -> None:
        self._sequence = (self._sequence + 1) & 0xFF
        self._take(self.board.host(encode_request(BoardRequest(flag, self._sequence, **contents))))  # type: ignore[arg-type]

    def ask(self, flag: int, **contents: object) -> BoardAnswer:
        """The answer of the board, which may take some milliseconds on the wire."""
        self.send(flag, **contents)
        for _ in range(100):
            if self.answers and self.answers[-1].sequence == self._sequence:
                return self.answers[-1]
            self.run(1)
        raise AssertionError(f"no answer to request {flag}")

    def run(self, milliseconds: int) -> None:
        for _ in range(milliseconds):
            for k, servo in enumerate(self.servos):
                speed = servo.motion.move(0.0, 0.0, 1e-3)
                servo.motion.turned(servo.motion.angle + 1e-3 * speed, 1e-3)
                self.counts[k] += 1e-3 * speed / RADIANS_PER_COUNT
                self.board.convert(k, round(self.counts[k]))
            host, sent = self.board.step()
            self._take(host)
            for answer in self.chain.feed(sent):
                self.board.servos(answer.data)

    def arm(self) -> None:
        for k in range(len(self.servos)):
            setup = ChannelSetup(k, 1 + k, True, 500, 3500, 300, 1023)
            assert self.ask(SETUP, setup=setup).flag == SETUP
        assert self.ask(DRIVE, number=BoardAction.ARM).flag == DRIVE
        for _ in range(100):
            self.run(5)
            if self.status().mode is BoardMode.ARMED:
                return
        raise AssertionError(f"not armed: {self.status()}")

    def status(self) -> BoardServo:
        servo = self.ask(SERVO, channel=0).servo
        assert servo is not None
        return servo

    def state(self) -> BoardState:
        state = self.ask(STATE).state
        assert state is not None
        return state

    def speeds(self) -> list[int]:
        """Speed registers of the servos, with their sign."""
        raw = [servo.registers.raw("moving_speed") for servo in self.servos]
        return [each if each < 1024 else 1024 - each for each in raw]

    def _take(self, data: bytes | None) -> None:
        self.answers += self.reader.feed(data or b"")


needs_compiler = pytest.mark.skipif(
    not any(shutil.which(each) for each in (os.environ.get("CXX", ""), "c++", "g++", "clang++") if each)
    or not shutil.which("make"),
    reason="no C++ compiler or no make here",
)
