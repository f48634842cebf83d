"""The image for the ATmega2560, in simavr: the same laws with real interrupts, converters and wires."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from firmware_board import BoardBench, SimulatedAvr, built

from tensegrity_driver.bus.potentiometer_protocol import POSITIONS, BoardMode, BoardReason

FLASH_BYTES, RAM_BYTES = 262_144, 8_192
CYCLES_PER_MS = 16_000

needs_avr = pytest.mark.skipif(
    not (shutil.which("avr-g++") and Path("/usr/lib/avr/include/avr/io.h").exists()),
    reason="no AVR compiler here: apt-get install gcc-avr avr-libc",
)
needs_simavr = pytest.mark.skipif(
    not Path("/usr/include/simavr/sim_avr.h").exists(), reason="no simavr here: apt-get install libsimavr-dev"
)


def sizes() -> tuple[int, int]:
    """Bytes of flash and of RAM without the stack."""
    done = subprocess.run(["avr-size", built("board.elf")], capture_output=True, text=True, check=True)
    text, data, bss = map(int, done.stdout.splitlines()[1].split()[:3])
    return text + data, data + bss


@needs_avr
def test_the_image_fits_into_a_tenth_of_the_processor(capsys) -> None:
    flash, ram = sizes()
    with capsys.disabled():
        print(f"\nfirmware for the ATmega2560: {flash} bytes of flash, {ram} bytes of RAM")
    assert flash < 0.1 * FLASH_BYTES
    assert ram < 0.5 * RAM_BYTES  # the rest is for the stack, which needs less than 1 KB


@pytest.fixture
def bench() -> Iterator[BoardBench]:
    avr = SimulatedAvr(built("board.elf", CHANNELS="8"), built("run_board"), 8)
    yield BoardBench(avr, 8, start=1500.0)  # simavr 1.6 has no more inputs of the converter
    avr.close()


@needs_avr
@needs_simavr
def test_the_processor_arms_moves_and_stops_when_the_host_falls_silent(bench: BoardBench, capsys) -> None:
    bench.run(250)
    measured = bench.state().positions
    assert measured == pytest.approx(bench.counts, abs=4.0)  # 10 bits, added up
    bench.arm()
    goals = [round(each) + (60 if k % 2 else -60) for k, each in enumerate(bench.counts)]
    for _ in range(50):
        bench.send(POSITIONS, positions=tuple(goals))
        bench.run(20)
    assert bench.counts == pytest.approx(goals, abs=8.0)
    away = tuple(2800 if each < 2000 else 800 for each in goals)
    bench.send(POSITIONS, positions=away)
    bench.run(200)
    assert all(bench.speeds())
    bench.run(290)
    assert not any(bench.speeds())
    status = bench.status()
    assert (status.mode, status.reason) == (BoardMode.STOPPED, BoardReason.HOST_SILENT)
    with capsys.disabled():
        longest = bench.board.longest_turn  # type: ignore[union-attr]
        print(f"\nlongest turn of the loop in simavr: {longest} cycles, {longest / CYCLES_PER_MS:.2f} ms")
    assert longest < 4 * CYCLES_PER_MS
