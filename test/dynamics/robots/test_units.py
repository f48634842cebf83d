"""Units that files mostly use are read without the library that reads all others, to the same bits."""

from __future__ import annotations

import subprocess
import sys

import pint
import pytest

from tensegrity_dynamics.robots.units import QUANTITIES, SI, USUAL, BaseUnits


@pytest.fixture(scope="module")
def registry() -> pint.UnitRegistry:
    made: pint.UnitRegistry = pint.UnitRegistry()
    made.define("rev = revolution")
    return made


@pytest.mark.parametrize("quantity", USUAL)
def test_usual_units_are_those_of_pint_to_the_last_bit(quantity, registry):
    base = {dimension: getattr(registry, unit) for dimension, unit in SI.items()}
    kind = registry.Quantity(1.0)
    for dimension, power in QUANTITIES[quantity].items():
        kind = kind * (1.0 * base[dimension]) ** power
    for unit, factor in USUAL[quantity].items():
        found = registry.Quantity("1 * " + unit.replace("^", "**")).to_base_units()
        assert (found.magnitude, found.units) == (factor, kind.to_base_units().units), unit
        assert BaseUnits().to_si(f"1 {unit}", quantity) == factor


def test_a_usual_unit_of_another_quantity_is_refused_as_that():
    with pytest.raises(ValueError, match="'mm' is a unit of length; a mass is needed"):
        BaseUnits().to_si("3 mm", "mass")


def test_an_unusual_unit_is_read_too():
    assert BaseUnits().to_si("1 yard", "length") == pytest.approx(0.9144)
    assert BaseUnits().to_si("2 rev/min", "angular speed") == BaseUnits().to_si("2 rpm", "angular speed")


def test_a_robot_with_usual_units_loads_without_pint():
    program = (
        "import sys; from tensegrity_dynamics import load_robot; load_robot('tensebot'); load_robot('manipulator')"
    )
    subprocess.run([sys.executable, "-c", f"{program}; assert 'pint' not in sys.modules"], check=True)
