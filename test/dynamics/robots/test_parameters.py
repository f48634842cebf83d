"""Named numbers and arithmetic in robot files."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensegrity_dynamics import RobotFileError, parse_robot
from tensegrity_dynamics.robots.units import BaseUnits

NUMBER = st.floats(0.1, 10.0).map(lambda x: round(x, 6))


def in_field(
    expression: str, quantity: str = "length", units: dict[str, str] | None = None, **parameters: object
) -> float:
    return BaseUnits(units or {}).with_parameters(parameters).to_si(expression, quantity)


@given(NUMBER, NUMBER, NUMBER)
def test_arithmetic_is_that_of_python(a: float, b: float, c: float) -> None:
    text = "(x + 2 * y) / z - x ** 2 + sqrt(y) * -z"
    expected = (a + 2 * b) / c - a**2 + math.sqrt(b) * -c
    assert in_field(text, "number", x=a, y=b, z=c) == expected


@settings(deadline=None)  # the table of units is loaded in the first call
@given(NUMBER, st.sampled_from(["mm", "cm", "in", "m"]), st.sampled_from(["m", "cm", "in"]))
def test_a_parameter_means_what_its_text_would_mean_in_the_field(number: float, unit: str, base: str) -> None:
    units = {"length": base}
    assert in_field("p", units=units, p=f"{number} {unit}") == BaseUnits(units).to_si(f"{number} {unit}", "length")
    assert in_field("p", units=units, p=number) == BaseUnits(units).to_si(number, "length")


def test_units_are_carried_through() -> None:
    assert in_field("k * x", "force", k="20 N/m", x="50 cm") == pytest.approx(10.0, rel=1e-15)
    assert in_field("r * cos(turn)", r="2 m", turn="60 deg") == pytest.approx(1.0, rel=1e-15)
    assert in_field("acos(0.5)", "angle") == pytest.approx(math.pi / 3, rel=1e-15)


@pytest.mark.parametrize("text", ['h + "60 mm"', "h + '60 mm'", '"6 cm" + h', 'abs(-"60 mm" - h)', '2 * "0.18 m"'])
def test_quantities_in_quotes_are_part_of_expressions(text: str) -> None:
    assert in_field(text, h="30 cm") == pytest.approx(0.36, rel=1e-15)
    assert in_field(text, units={"length": "in"}, h="30 cm") == pytest.approx(0.36, rel=1e-15)


def test_a_parameter_is_made_of_quantities_in_quotes() -> None:
    assert in_field("reach", h="30 cm", reach='h + "60 mm"') == pytest.approx(0.36, rel=1e-15)
    assert in_field("k", "stiffness", k='"20 N" / "5 mm"') == pytest.approx(4000.0, rel=1e-15)


def test_a_ratio_of_lengths_goes_with_plain_numbers() -> None:
    assert in_field("1 + h / '30 cm'", "number", h="15 cm") == pytest.approx(1.5, rel=1e-15)
    assert in_field("(h / '30 cm' - 1) * -h", h="15 cm") == pytest.approx(0.075, rel=1e-15)


def test_a_parameter_may_use_those_before_it() -> None:
    assert in_field("c", a=2, b="3 * a", c="b + a") == 8.0


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("radus * 2", "no parameter 'radus'. Did you mean 'radius'"),
        ("radus", "no parameter 'radus'"),
        ("radius + 1", "a plain number (1) and one with a unit are added"),
        ("1 - radius", "a plain number (1) and one with a unit are added"),
        ("radius / radius + radius", "a plain number (1) and one with a unit are added"),
        ("radius + k", "same kind of unit"),
        ("radius + '60 N'", "same kind of unit"),
        ("radius + '60 bogus'", "'bogus' is not a unit"),
        ("radius + 'radius'", '"radius" is no quantity'),
        ("radius + ''", '"" is no quantity'),
        ("radius + 60 mm", """must be in quotes, as in 'radius + "60 mm"'"""),
        ("radius + 6e1 mm", "must be in quotes"),
        ("60 mm + radius", "'mm + radius' is not a unit; in an expression a number with a unit must be in quotes"),
        ("60 mm - radius", "must be in quotes"),
        ("radius + r'60 mm'", "no arithmetic"),
        ("radius + '60' ' mm'", "no arithmetic"),
        ("radius + '60 \\x6dm'", "no arithmetic"),
        ("radius + '''60 mm'''", "no arithmetic"),
        ("radius + f'60 mm'", "no arithmetic"),
        ("k", "the expression is a stiffness; a length is needed"),
        ("radius / 0", "divides by zero"),
        ("10 ** 400", "a power must be"),
        ("10.0 ** 16 ** 16", "a power must be"),
        ("sqrt(-1) * radius", "root of a negative number"),
        ("sin(radius) * radius", "needs an angle"),
        ("asin(2) * radius", "no value at 2"),
        ("(0 - 8) ** (1 / 3) * radius", "root of a negative number"),
        ("radius if 1 else 2", "no arithmetic"),
        ("radius.real", "no arithmetic"),
        ("radius[0]", "no arithmetic"),
        ("max(radius, 1)", "no arithmetic"),
        ("exec(radius)", "There is no function 'exec'"),
        ("(" * 90 + "radius" + ")" * 90 + "*", "no arithmetic"),
        ("radius + " * 30 + "radius", "200 characters"),
    ],
)
def test_what_is_no_sensible_expression_is_refused_in_words(expression: str, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        in_field(expression, radius="70 mm", k="1 kN/m")


FILE = """kind: structure
name: load
parameters:
  width: "60 cm"
  k: "2 kN/m"
nodes:
  left: {position: [-width / 2, 0, 0], fixed: true}
  right: {position: [width / 2, 0, 0], fixed: true}
  load: {position: [0, 0, -width]}
members:
  - {name: one, kind: tendon, nodes: [left, load], rest_length: 0.5 * width, stiffness: k}
  - {name: other, kind: tendon, nodes: [right, load], rest_length: 0.5 * width, stiffness: 2 * k}
"""


def test_a_file_with_parameters_is_the_file_with_their_numbers() -> None:
    structure = parse_robot(FILE).structure
    assert structure.nodes.tolist() == [[-0.3, 0, 0], [0.3, 0, 0], [0, 0, -0.6]]
    assert structure.stiffness.tolist() == [2000.0, 4000.0]


@pytest.mark.parametrize(
    "text", ['-width - "60 mm"', "-width - '60 mm'", """'-"60 mm" - width'""", "\"-width - '60 mm'\""]
)
def test_a_file_may_add_a_quantity_to_a_parameter(text: str) -> None:
    structure = parse_robot(FILE.replace("0, 0, -width", f"0, 0, {text}")).structure
    assert structure.nodes[2] == pytest.approx([0, 0, -0.66], rel=1e-15)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (
            "stiffness: 2 * k",
            "stiffness: 2 * kk",
            "robot.yaml:12: members[1] (other).stiffness: There is no parameter",
        ),
        ('k: "2 kN/m"', "k: [2]", "robot.yaml:5: parameters.k: a number is needed"),
        ('k: "2 kN/m"', "sqrt: 2", "robot.yaml:5: parameters.sqrt: 'sqrt' has a meaning in expressions already"),
        ('k: "2 kN/m"', "k: 2 bogus/m", "robot.yaml:5: parameters.k: 'bogus/m' is not a unit"),
        ('k: "2 kN/m"', "k: late * 2\n  late: 1", "robot.yaml:5: parameters.k: There is no parameter 'late'"),
        ('k: "2 kN/m"', "k: 2 kN/m - 1", "robot.yaml:5: parameters.k: 'kN/m - 1' is not a unit of anything in a robot"),
        ('k: "2 kN/m"', 'k: "2 kN/m" / 2', "robot.yaml:5: not readable as YAML: "),
        ('k: "2 kN/m"', 'k: "2 kN/m" / 2', """needs quotes around it: '"60 mm" + radius'."""),
        ("0, 0, -width", '0, 0, "60 mm" - width', """needs quotes around it: '"60 mm" + radius'."""),
        ("parameters:\n", "parameters: 3\nx:\n", "robot.yaml:3: parameters: a mapping is needed"),
    ],
)
def test_errors_name_file_line_and_field(before: str, after: str, message: str) -> None:
    with pytest.raises(RobotFileError) as raised:
        parse_robot(FILE.replace(before, after))
    assert message in str(raised.value)


def test_names_are_never_taken_for_parameters() -> None:
    robot = parse_robot(FILE.replace("k:", "left:").replace(": k", ": left").replace("* k", "* left"))
    assert robot.structure.node_names[0] == "left" and robot.structure.stiffness[0] == 2000.0
