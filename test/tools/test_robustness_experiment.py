"""The plants of the experiment `robustness`: not the robot that controller and observer were told of."""

from __future__ import annotations

import numpy as np
import pytest

from tensegrity_dynamics import load_robot
from tensegrity_tools.experiments.robustness import Case, plant_of


@pytest.mark.parametrize("name", ["single_strut", "cable_robot"])
def test_every_cable_of_a_plant_is_as_much_stiffer_as_the_case_says(name):
    nominal = {each.name: each for each in load_robot(name).mechanism.cables}
    found = {each.name: each for each in plant_of(name, Case("", young=1.1, radius=0.9)).mechanism.cables}
    assert nominal.keys() == found.keys()
    for each, own in nominal.items():
        np.testing.assert_allclose(found[each].young, 1.1 * own.young)
        np.testing.assert_allclose(found[each].area, 0.81 * own.area)
