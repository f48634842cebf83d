"""Registers mean what the makers' manuals say, and values survive the way to counts and back."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensegrity_driver.bus.control_tables import MODELS, Register, ServoModel, model_named, model_of_number
from tensegrity_driver.servos.motors import MOTORS
from tensegrity_dynamics.errors import BusError

RPM = 2.0 * math.pi / 60.0
FIELDS = [(model, field) for model in MODELS.values() for field in model.registers.values()]
NAMES = [f"{model.name} {field.name}" for model, field in FIELDS]


# What the manuals state: model, register, address, size, raw value, its meaning in SI units.
EXAMPLES = [
    ("AX-12A", "present_position", 36, 2, 1023, math.radians(300.0)),
    ("AX-12A", "moving_speed", 32, 2, 300, 33.3 * RPM),
    ("AX-12A", "moving_speed", 32, 2, 1024 + 300, -33.3 * RPM),
    ("AX-12A", "moving_speed", 32, 2, 1024, 0.0),
    ("AX-12A", "present_load", 40, 2, 512, 0.512),
    ("AX-12A", "present_load", 40, 2, 1024 + 512, -0.512),
    ("AX-12A", "torque_limit", 34, 2, 1023, 1.0),
    ("AX-12A", "present_voltage", 42, 1, 120, 12.0),
    ("AX-12A", "present_temperature", 43, 1, 85, 85.0),
    ("AX-12A", "return_delay", 5, 1, 250, 500e-6),
    ("XM430-W350", "goal_position", 116, 4, 4096, 2.0 * math.pi),
    ("XM430-W350", "present_position", 132, 4, 0xFFFFFFFF, -2.0 * math.pi / 4096.0),
    ("XM430-W350", "profile_velocity", 112, 4, 1, 0.229 * RPM),
    ("XM430-W350", "goal_velocity", 104, 4, 0xFFFFFFFF, -0.229 * RPM),
    ("XM430-W350", "present_current", 126, 2, 100, 0.269),
    ("XM430-W350", "present_current", 126, 2, 0xFFFF, -2.69e-3),
    ("XM430-W350", "goal_current", 102, 2, 1193, 1193 * 2.69e-3),
    ("XM430-W350", "bus_watchdog", 98, 1, 5, 0.1),
    ("XM430-W350", "bus_watchdog", 98, 1, 255, -0.02),
    ("XM430-W350", "present_voltage", 144, 2, 120, 12.0),
    ("XM430-W350", "return_delay", 9, 1, 250, 500e-6),
    ("XL430-W250", "present_load", 126, 2, 0xFE0C, -0.5),
    ("XL430-W250", "goal_pwm", 100, 2, 885, 1.0),
    ("XL430-W250", "hardware_error", 70, 1, 32, 32.0),
    ("XL430-W250", "operating_mode", 11, 1, 4, 4.0),
]


@pytest.mark.parametrize(("model", "name", "address", "size", "raw", "value"), EXAMPLES)
def test_a_register_means_what_the_manual_says(
    model: str, name: str, address: int, size: int, raw: int, value: float
) -> None:
    field = MODELS[model].register(name)
    assert (field.address, field.size) == (address, size)
    assert field.decode(raw) == pytest.approx(value, rel=1e-12, abs=1e-12)
    if field.writable and raw not in (1024, 255):
        assert field.encode(value) == raw


def test_every_motor_of_the_spools_has_a_control_table() -> None:
    assert set(MODELS) == set(MOTORS)
    for name, motor in MOTORS.items():
        assert MODELS[name].counts_turns == motor.counts_turns
        assert ("present_current" in MODELS[name].registers) == (motor.torque_constant is not None)


@pytest.mark.parametrize(("name", "number"), [("AX-12A", 12), ("XL430-W250", 1060), ("XM430-W350", 1020)])
def test_a_model_is_found_by_its_number(name: str, number: int) -> None:
    assert model_of_number(number) is MODELS[name]
    assert MODELS[name].register("model_number").initial == number


def test_unknown_models_and_registers_name_the_known_ones() -> None:
    with pytest.raises(BusError, match=r"999.*XM430-W350 \(1020\)"):
        model_of_number(999)
    with pytest.raises(BusError, match="Did you mean 'AX-12A'"):
        model_named("AX-12")
    with pytest.raises(BusError, match="Did you mean 'goal_position'"):
        MODELS["AX-12A"].register("goal_positon")


@pytest.mark.parametrize("model", MODELS.values(), ids=lambda model: model.name)
def test_registers_do_not_overlap(model: ServoModel) -> None:
    fields = sorted(model.registers.values(), key=lambda field: field.address)
    for first, second in pairwise(fields):
        assert first.end <= second.address, f"{first.name} and {second.name}"
    assert len({model.number for model in MODELS.values()}) == len(MODELS)


@pytest.mark.parametrize(("model", "field"), FIELDS, ids=NAMES)
def test_every_number_a_register_takes_comes_back(model: ServoModel, field: Register) -> None:
    for number in {field.low, field.high, (field.low + field.high) // 2}:
        raw = field.encode(field.offset + field.factor * number)
        assert 0 <= raw < 1 << 8 * field.size
        assert field.number(raw) == number
    for number in (field.low - 1, field.high + 1):
        with pytest.raises(BusError, match=field.name):
            field.encode(field.offset + field.factor * number)


@pytest.mark.parametrize("model", MODELS.values(), ids=lambda model: model.name)
def test_initial_values_fit_their_registers(model: ServoModel) -> None:
    for field in model.registers.values():
        assert field.initial is None or 0 <= field.initial < 1 << 8 * field.size
        assert field.eeprom == (field.address < (24 if model.protocol == 1 else 64))


@given(index=st.integers(0, len(FIELDS) - 1), data=st.data())
def test_a_value_comes_back_within_half_a_count(index: int, data: st.DataObject) -> None:
    field = FIELDS[index][1]
    number = data.draw(st.floats(field.low, field.high))
    value = field.offset + field.factor * number
    found = field.decode(field.encode(value))
    assert abs(found - value) <= 0.5 * abs(field.factor) * (1.0 + 1e-9)
    assert field.decode(int.from_bytes(field.encode_bytes(value), "little")) == found


@given(index=st.integers(0, len(FIELDS) - 1), value=st.floats())
def test_the_nearest_value_can_always_be_written(index: int, value: float) -> None:
    field = FIELDS[index][1]
    if math.isfinite(value):
        nearest = field.nearest(value)
        assert field.decode(field.encode(nearest)) == pytest.approx(nearest)
    else:
        for function in (field.nearest, field.encode):
            with pytest.raises(BusError):
                function(value)


def test_error_bits_have_the_names_that_monitors_know() -> None:
    assert MODELS["AX-12A"].errors(0b100100) == {"overheating", "overload"}
    assert MODELS["XM430-W350"].errors(0b111101) == {
        "voltage", "overheating", "encoder", "electrical_shock", "overload",
    }  # fmt: skip
    assert MODELS["XM430-W350"].errors(0) == frozenset()


def test_a_block_covers_its_registers() -> None:
    assert MODELS["AX-12A"].block("present_position", "present_temperature") == (36, 8)
    assert MODELS["XM430-W350"].block("present_current", "present_temperature") == (126, 21)
