"""What is remembered of a servo between cycles."""

from __future__ import annotations

from tensegrity_driver.bus.control_tables import MODELS
from tensegrity_driver.servos.servo import Servo


def test_a_value_is_written_once_and_again_when_a_preparation_has_written_another():
    record = Servo("draw_1", 7, MODELS["XM430-W350"])
    register = record.model.register("profile_velocity")
    first = record.changed(register, 3.0)
    assert first is not None
    assert record.changed(register, 3.0) is None
    record.sent = {**record.sent, "profile_velocity": 1}  # as a preparation does
    assert record.changed(register, 3.0) == first
    record.sent.clear()  # as after a restart
    assert record.changed(register, 3.0) == first
    assert record.changed(register, 3.0) is None
