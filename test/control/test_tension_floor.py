"""Tension floors: which tendon, how much, since when."""

from __future__ import annotations

import numpy as np

from tensegrity_control.tension_floor import TensionFloor
from tensegrity_dynamics import load_robot


def test_a_broken_floor_is_named_with_tendon_and_time_and_counted_once():
    watch = TensionFloor(load_robot("single_strut"))  # floors of 20 N
    names = ["B1", "B2", "B3"]
    assert watch.look(0.0, names, [20.0, 19.9, 60.0]) == ""
    said = watch.look(1.25, names, [30.0, 12.5, 60.0])
    assert "tension floor broken" in said and "B2" in said and "12.5 N" in said and "20 N" in said and "1.25 s" in said
    assert "1.25 s" in watch.look(1.5, names, [30.0, 11.0, 60.0]) and watch.breaches == 1
    assert watch.look(2.0, names, [30.0, 25.0, 60.0]) == "" and "B2" in watch.last
    said = watch.look(3.0, names, [0.0, 7.5, 60.0])
    assert watch.breaches == 3 and said.count("tension floor broken") == 1
    assert "B1 has 0 N" in said and "B2 has 7.5 N" in said


def test_tensions_that_nobody_knows_break_no_floor():
    watch = TensionFloor(load_robot("single_strut"))
    assert watch.look(0.0, ["B1", "other"], [np.nan, 0.0]) == ""
    driven = {each.drives for each in load_robot("single_strut").actuators}
    assert set(watch.unreported(["B1", "other"])) == driven - {"B1"}
