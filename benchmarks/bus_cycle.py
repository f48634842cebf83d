"""Cycles per second of the servo bus beside a bare dynamixel-sdk loop that reads and writes the same registers.

Run: python benchmarks/bus_cycle.py [--cycles N] [--json]

One cycle reads every servo (state and measurements, decoded to SI units) and writes one goal to every servo. Both
loops talk to the same responder, a process of its own behind a pseudo-terminal that repeats answers it has given
before, with and without the time that the bytes would need on a wire of 1 Mbit/s. They take turns, so that both see the
same machine. The bare loop spins while it waits, as the SDK's own port does; the time of the processor stands beside
the wall time. Cycles in which a packet got lost, because the machine was busy for too long, are counted and left out.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import struct
import sys
import time
import tty

from dynamixel_sdk import COMM_SUCCESS, GroupSyncRead, GroupSyncWrite, PacketHandler, PortHandler

from tensegrity_driver.bus.control_tables import MODELS
from tensegrity_driver.bus.dynamixel_bus import Bus
from tensegrity_driver.bus.serial_port import SerialPort
from tensegrity_driver.servos.servo import blocks_of
from tensegrity_driver.servos.servo_group import ServoGroup
from tensegrity_driver.spools.readings import Drive, ServoCommand

MODEL = {1: "AX-12A", 2: "XM430-W350"}
GOAL = {1: "moving_speed", 2: "goal_position"}
WARM_UP = 20
BYTE = 10.0 / 1_000_000
SINGLE_WRITE, SYNC_WRITE = 0x03, 0x83


def responder(master, protocol, ids, wire):
    """Answers instructions; what it has answered before it repeats without a thought. Ends when the line does."""
    from tensegrity_driver.emulator.emulated_servo import EmulatedServo
    from tensegrity_driver.emulator.servo_chain import ServoChain
    from tensegrity_driver.servos.motors import MOTORS

    model = MODEL[protocol]
    servos = {str(i): EmulatedServo(MODELS[model], MOTORS[model], mounted=1.0) for i in ids}
    for number, servo in zip(ids, servos.values(), strict=True):
        servo.registers.set_raw("id", number)
        servo.power_cycle()
    chain, answers, buffer, free = ServoChain(servos, protocol), {}, b"", 0.0
    head, index = (4, 4) if protocol == 1 else (7, 7)
    while True:
        try:
            buffer += os.read(master, 4096)
        except OSError:
            return
        while len(buffer) >= head:
            length = buffer[3] + 4 if protocol == 1 else (buffer[5] | buffer[6] << 8) + 7
            if len(buffer) < length:
                break
            packet, buffer = buffer[:length], buffer[length:]
            instruction = packet[index]
            if instruction == SYNC_WRITE:
                answer = b""
            else:
                answer = answers.get(packet)
                if answer is None or instruction == SINGLE_WRITE:
                    if instruction == SINGLE_WRITE:
                        answers.clear()
                    answer = answers[packet] = b"".join(each.data for each in chain.feed(packet))
            if wire:
                free = max(free, time.perf_counter()) + (len(packet) + len(answer)) * BYTE
                while answer and time.perf_counter() < free:
                    pass
            if answer:
                os.write(master, answer)


class Line:
    """A responder in a process of its own."""

    def __init__(self, protocol, ids, wire):
        self.master, self.slave = os.openpty()
        tty.setraw(self.slave)
        self.path = os.ttyname(self.slave)
        arguments = (self.master, protocol, ids, wire)
        self.process = multiprocessing.get_context("fork").Process(target=responder, args=arguments, daemon=True)
        self.process.start()

    def close(self):
        self.process.terminate()
        self.process.join()
        os.close(self.master)
        os.close(self.slave)


def our_cycle(path, protocol, ids):
    """A function that does one cycle of ours, and one that lets go of the port."""
    rows = [{"actuator": f"tendon_{i}", "id": i, "model": MODEL[protocol]} for i in ids]
    link = ServoGroup({"servos": rows}, Bus(SerialPort(path, patience=0.2), protocol))
    link.open()
    link.check()
    link.prepare()
    if protocol == 1:
        commands = {row["actuator"]: ServoCommand(Drive.VELOCITY, 0.0, 0.5) for row in rows}
    else:
        commands = {row["actuator"]: ServoCommand(Drive.POSITION, 1.0, 0.02) for row in rows}

    def cycle():
        readings, health = link.read()
        link.write(commands)
        return not health.bad_packets and len(readings) == len(ids)

    return cycle, link.close


def bare_cycle(path, protocol, ids):
    """The same with nothing but the SDK."""
    port, handler = PortHandler(path), PacketHandler(float(protocol))
    port.openPort()
    model = MODELS[MODEL[protocol]]
    block = blocks_of(model.name)[1]
    fields = [(model.register(name), model.register(name).address - block.address) for name in block.names]
    goal = model.register(GOAL[protocol])
    read = GroupSyncRead(port, handler, block.address, block.size)
    write = GroupSyncWrite(port, handler, goal.address, goal.size)
    data = list(goal.encode_bytes(0.5))
    for i in ids:
        read.addParam(i)
        write.addParam(i, data)
    codes = {(1, "signed"): "<b", (2, "signed"): "<h", (4, "signed"): "<i"}

    def values(registers):
        found = {}
        for field, start in fields:
            piece = registers[start : start + field.size]
            if field.coding == "signed":
                number = struct.unpack(codes[field.size, "signed"], piece)[0]
            else:
                number = int.from_bytes(piece, "little")
                if field.coding == "direction bit" and number >= 1024:
                    number = 1024 - number
            found[field.name] = number * field.factor
        return found

    def cycle():
        readings = {}
        if protocol == 2:
            if read.txRxPacket() != COMM_SUCCESS:
                return False
            for i in ids:
                readings[i] = values(bytes(read.data_dict[i]))
        else:
            for i in ids:
                registers, result, _ = handler.readTxRx(port, i, block.address, block.size)
                if result != COMM_SUCCESS:
                    return False
                readings[i] = values(bytes(registers))
        for i in ids:
            write.changeParam(i, data)
        write.txPacket()
        return True

    return cycle, port.closePort


def measure(protocol, servos, wire, cycles):
    """Medians of a cycle, ours and bare, that take turns; the ratio is the median over pairs of neighbours."""
    ids = tuple(range(1, servos + 1))
    line = Line(protocol, ids, wire)
    loops = {"ours": our_cycle(line.path, protocol, ids), "bare": bare_cycle(line.path, protocol, ids)}
    wall, processor, lost, pairs = {"ours": [], "bare": []}, {"ours": [], "bare": []}, {"ours": 0, "bare": 0}, []
    try:
        for number in range(-WARM_UP, cycles):
            pair = {}
            for name, (cycle, _) in loops.items():
                begin, busy = time.perf_counter(), time.thread_time()
                if cycle():
                    pair[name] = time.perf_counter() - begin, time.thread_time() - busy
                else:
                    lost[name] += 1
            if number >= 0 and len(pair) == len(loops):
                pairs.append(pair["ours"][0] / pair["bare"][0])
                for name in loops:
                    wall[name].append(pair[name][0])
                    processor[name].append(pair[name][1])
    finally:
        for _, close in loops.values():
            close()
        line.close()
    found = {"ratio": statistics.median(pairs)}
    for name in loops:
        found[f"{name}_ms"] = 1e3 * statistics.median(wall[name])
        found[f"{name}_processor_ms"] = 1e3 * statistics.median(processor[name])
        found[f"{name}_cycles_per_s"] = 1.0 / statistics.median(wall[name])
        found[f"{name}_lost"] = lost[name]
    return found


def main():
    """Measure all cases and print them."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--cycles", type=int, default=1000)
    options.add_argument("--json", action="store_true")
    given = options.parse_args()
    results = {}
    if not given.json:
        print(
            "protocol servos  wire        ours: ms  cycles/s  cpu ms  lost   bare: ms  cycles/s  cpu ms  lost   ratio"
        )
    for wire in (False, True):
        for protocol in (1, 2):
            for servos in (6, 12):
                found = measure(protocol, servos, wire, given.cycles)
                results[f"protocol {protocol}, {servos} servos, {'1 Mbit/s' if wire else 'no wire time'}"] = found
                if not given.json:
                    columns = "".join(
                        f"  {found[name + '_ms']:8.3f}  {found[name + '_cycles_per_s']:8.0f}"
                        f"  {found[name + '_processor_ms']:6.3f}  {found[name + '_lost']:4}"
                        for name in ("ours", "bare")
                    )
                    print(
                        f"{protocol:8} {servos:6}  {'1 Mbit/s' if wire else 'none':8}{columns}  {found['ratio']:6.2f}"
                    )
                    sys.stdout.flush()
    if given.json:
        print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
