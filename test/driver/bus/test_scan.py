"""A scan finds every servo at its speed and protocol, names its model, and tells doubled ids."""

from __future__ import annotations

import pytest
from bus_line import ChainPort, FedPort, make_servo

from tensegrity_driver.bus.control_tables import MODELS
from tensegrity_driver.bus.scan import scan
from tensegrity_driver.emulator import EmulatedRobot, WireSettings
from tensegrity_driver.hardware.emulated_hardware import EmulatedPort
from tensegrity_dynamics import load_robot
from tensegrity_dynamics.errors import BusError


class TunedPort(ChainPort):
    """Servos that hear one speed only."""

    def __init__(self, protocol: int, ids: dict[int, str], baud_rate: int) -> None:
        super().__init__(protocol, {f"s{i}": make_servo(model, i) for i, model in ids.items()})
        self.tuned = baud_rate

    def feed(self, packet: bytes) -> None:
        if self.baudrate == self.tuned:
            super().feed(packet)


@pytest.mark.parametrize("model", MODELS)
def test_servos_are_found_at_their_speed_and_named(model: str) -> None:
    protocol = MODELS[model].protocol
    port = TunedPort(protocol, {3: model, 17: model, 200: model}, 57_600)
    looks: list[tuple[int, int]] = []
    found = scan(port, baud_rates=(1_000_000, 57_600), progress=lambda *each: looks.append(each))
    assert [(each.id, each.protocol, each.baud_rate, each.model) for each in found] == [
        (i, protocol, 57_600, model) for i in (3, 17, 200)
    ]
    assert not any(each.doubled for each in found)
    assert looks == [(1_000_000, 1), (1_000_000, 2), (57_600, 1), (57_600, 2)]
    assert port.baudrate == 1_000_000


def test_a_model_without_control_table_is_found_without_a_name() -> None:
    port = TunedPort(2, {3: "XM430-W350"}, 57_600)
    port.chain.servos["s3"].registers.set_raw("model_number", 1200)
    found = scan(port, protocols=(2,), baud_rates=(57_600,))
    assert (found[0].number, found[0].model) == (1200, None)


@pytest.mark.parametrize("model", ["AX-12A", "XM430-W350"])
def test_two_answers_and_damaged_answers_are_a_doubled_id(model: str) -> None:
    protocol = MODELS[model].protocol
    port = TunedPort(protocol, {3: model, 4: model, 5: model}, 57_600)
    ping = len(make_servo(model, 1).status(0, b"" if protocol == 1 else bytes(3)))

    def spoil(name: str, data: bytes) -> bytes:
        if name == "s4":
            return data + data
        return data[:-1] + bytes((data[-1] ^ 1,)) if name == "s5" and len(data) == ping else data

    port.spoil = spoil
    found = {each.id: each for each in scan(port, protocols=(protocol,), baud_rates=(57_600,), ids=range(8))}
    assert {i: each.doubled for i, each in found.items()} == {3: False, 4: True, 5: True}


@pytest.mark.parametrize("model", ["AX-12A", "XM430-W350"])
def test_a_servo_whose_answer_is_lost_once_is_named_all_the_same(model: str) -> None:
    protocol = MODELS[model].protocol
    port = TunedPort(protocol, {3: model}, 57_600)
    number = len(make_servo(model, 1).status(0, bytes(2)))
    lost: list[bytes] = []

    def lose(name: str, data: bytes) -> bytes:
        if len(data) == number and not lost:  # of the model number
            lost.append(data)
            return b""
        return data

    port.spoil = lose
    (found,) = scan(port, protocols=(protocol,), baud_rates=(57_600,), ids=(3,))
    assert lost
    assert (found.model, found.doubled) == (model, False)


def test_noise_is_no_servo() -> None:
    class Noise(FedPort):
        def feed(self, packet: bytes) -> None:
            self.data += b"\x12\x34\xff\x00\xff"

    assert scan(Noise(), baud_rates=(57_600,), ids=range(10)) == ()


def test_a_lost_port_ends_the_scan() -> None:
    port = TunedPort(2, {3: "XM430-W350"}, 57_600)
    port.is_open = False
    port.gone = True
    with pytest.raises(BusError, match="cannot be opened"):
        scan(port)


def test_the_servos_of_a_robot_are_found_at_their_terminal() -> None:
    with EmulatedRobot(load_robot("tensebot"), wire=WireSettings(check_baud_rate=True)) as robot:
        port = EmulatedPort(robot.servo_port, 57_600, robot)
        assert scan(port, protocols=(1,), baud_rates=(57_600,), ids=(1,)) == ()
        found = scan(port, protocols=(1,), baud_rates=(1_000_000,), ids=range(1, 14))
        assert [(each.id, each.number) for each in found] == [(each.id, each.number) for each in robot.identity]
        assert {each.baud_rate for each in found} == {1_000_000}
        port.close()
