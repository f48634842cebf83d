"""Arithmetic in robot files: named numbers (`parameters:`) and expressions such as `2 * radius + "5 mm"`.

A value has a unit as powers of the SI base units, so that, for example, a sum of a length and a time is rejected. Plain
numbers have no unit; as everywhere, the field of the result defines their unit.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..errors import unknown_name

MAX_CHARACTERS = 200
MAX_POWER = 16.0  # largest absolute value of an exponent: larger ones are mistakes and take long to compute

CONSTANTS = {"pi": math.pi}
FUNCTIONS: dict[str, Callable[[float], float]] = {
    "sqrt": math.sqrt, "sin": math.sin, "cos": math.cos, "tan": math.tan, "asin": math.asin, "acos": math.acos,
    "atan": math.atan, "abs": abs,
}  # fmt: skip
_ANGLE_IN = ("sin", "cos", "tan")
_QUANTITY = re.compile(r"\s*[+-]?[\d.]+([eE][+-]?\d+)?\s*[^\W\d]")  # a number and a word, which is its unit
_UNQUOTED = re.compile(r"(?<![\w.])[\d.]+([eE][+-]?\d+)?\s*(?![eE]\d)[^\W\d]")  # such a number in an expression
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ALLOWED = 'numbers, parameters, quantities in quotes such as "60 mm", + - * / **, ( ) and functions of one number'


@dataclass(frozen=True)
class Value:
    """Number with its unit.

    Attributes:
        number: value in SI units; a plain number is unchanged.
        powers: exponents of the base units (kilogram, meter, second, radian); None for a plain number.
    """

    number: float
    powers: Mapping[str, float] | None = None


def is_expression(text: str, names: Mapping[str, Value]) -> bool:
    """Whether a text is an expression: it contains a parameter, a function or a constant, or combines plain numbers."""
    if _QUANTITY.match(text):
        return False
    words = set(_NAME.findall(text))
    if words & (set(names) | set(FUNCTIONS) | set(CONSTANTS)):
        return True
    if names and len(words) == 1 and _NAME.fullmatch(text.strip()) and text.strip().lower() not in ("nan", "inf"):
        return True  # a misspelt parameter, which is reported later
    return any(sign in text for sign in "+-*/(") and not re.fullmatch(r"\s*[+-]?[\d.]+([eE][+-]?\d+)?\s*", text)


def evaluate(text: str, names: Mapping[str, Value], read_quantity: Callable[[str], Value]) -> Value:
    """Evaluate an expression.

    Args:
        text: numbers, names of parameters, quantities in single or double quotes, + - * / **, parentheses, and the
            functions above (angles in rad).
        names: parameters by name.
        read_quantity: function that reads a quoted quantity such as 60 mm; it raises ValueError for other texts.

    Raises:
        ValueError: a name is unknown, the text is not arithmetic, units do not match, or the result is not finite; the
            message contains the cause.
    """
    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"an expression may have {MAX_CHARACTERS} characters at most")
    try:
        result = _value(_parse(text.strip()), names, read_quantity)
    except (SyntaxError, RecursionError, MemoryError):
        raise ValueError(_how_to_write(text)) from None
    except ZeroDivisionError:
        raise ValueError("the expression divides by zero") from None
    except OverflowError:
        raise ValueError("the result of the expression is too large") from None
    if not math.isfinite(result.number):
        raise ValueError("the result of the expression must be finite")
    return result


def _parse(text: str) -> ast.AST:
    """Syntax tree of an expression. Raises SyntaxError, also for string literals that are not plain quoted text."""
    if "\\" in text:
        raise SyntaxError("escapes")
    tree = ast.parse(text, mode="eval").body
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if ast.get_source_segment(text, node) not in (f'"{node.value}"', f"'{node.value}'"):
                raise SyntaxError("prefixes, triple quotes, or two texts without a sign between them")
    return tree


def _how_to_write(text: str) -> str:
    """Hint for the correction of a text that is not a valid expression."""
    if _UNQUOTED.search(re.sub(r"\"[^\"]*\"|'[^']*'", "", text)):
        return "in an expression a number with a unit must be in quotes, as in 'radius + \"60 mm\"'"
    return f"this is no arithmetic expression; allowed are {_ALLOWED}"


def _value(node: ast.AST, names: Mapping[str, Value], read_quantity: Callable[[str], Value]) -> Value:
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return Value(float(node.value))  # type: ignore[arg-type]
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return read_quantity(node.value)
    if isinstance(node, ast.Name):
        if node.id in names:
            return names[node.id]
        if node.id in CONSTANTS:
            return Value(CONSTANTS[node.id])
        raise ValueError(unknown_name("parameter", node.id, [*names, *CONSTANTS]).rstrip("."))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.UAdd, ast.USub)):
        inner = _value(node.operand, names, read_quantity)
        return inner if isinstance(node.op, ast.UAdd) else Value(-inner.number, inner.powers)
    if isinstance(node, ast.BinOp):
        return _binary(node, _value(node.left, names, read_quantity), _value(node.right, names, read_quantity))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 1 and not node.keywords:
        return _call(node.func.id, _value(node.args[0], names, read_quantity))
    raise ValueError(f"this is no arithmetic expression; allowed are {_ALLOWED}")


def _binary(node: ast.BinOp, left: Value, right: Value) -> Value:
    if isinstance(node.op, (ast.Add, ast.Sub)):
        if (left.powers or {}) != (right.powers or {}):
            raise ValueError(_why_not_added(left, right))
        combine = operator.add if isinstance(node.op, ast.Add) else operator.sub
        # if one of them is dimensionless, such as a ratio of two lengths, the sum is dimensionless
        return Value(combine(left.number, right.number), right.powers if left.powers is None else left.powers)
    if isinstance(node.op, ast.Mult):
        return Value(left.number * right.number, _joined(left.powers, right.powers, 1.0))
    if isinstance(node.op, ast.Div):
        return Value(left.number / right.number, _joined(left.powers, right.powers, -1.0))
    if isinstance(node.op, ast.Pow):
        if right.powers or abs(right.number) > MAX_POWER:
            raise ValueError(f"a power must be a plain number up to {MAX_POWER:g}")
        return _raised(left, right.number)
    raise ValueError("only + - * / ** are allowed")


def _why_not_added(left: Value, right: Value) -> str:
    if left.powers and right.powers:
        return "numbers that are added must have the same kind of unit, such as two lengths"
    plain, other = (right, left) if left.powers else (left, right)
    example = "60 deg" if set(other.powers or ()) == {"radian"} else "60 mm"
    return f'a plain number ({plain.number:g}) and one with a unit are added; give it its unit, in quotes: "{example}"'


def _joined(
    left: Mapping[str, float] | None, right: Mapping[str, float] | None, sign: float
) -> dict[str, float] | None:
    if left is None and right is None:
        return None
    total = dict(left or {})
    for unit, power in (right or {}).items():
        total[unit] = total.get(unit, 0.0) + sign * power
    return {unit: power for unit, power in total.items() if power != 0.0}


def _raised(base: Value, power: float) -> Value:
    number = base.number**power
    if isinstance(number, complex):
        raise ValueError("the expression takes a root of a negative number")
    powers = None if base.powers is None else {unit: each * power for unit, each in base.powers.items() if power != 0.0}
    return Value(float(number), powers)


def _call(name: str, argument: Value) -> Value:
    if name not in FUNCTIONS:
        raise ValueError(unknown_name("function", name, FUNCTIONS).rstrip("."))
    if name == "abs":
        return Value(abs(argument.number), argument.powers)
    if name == "sqrt":
        if argument.number < 0.0:
            raise ValueError("the expression takes a root of a negative number")
        halved = None if argument.powers is None else {unit: 0.5 * each for unit, each in argument.powers.items()}
        return Value(math.sqrt(argument.number), halved)
    allowed: tuple[dict[str, float] | None, ...] = (None, {}, {"radian": 1.0}) if name in _ANGLE_IN else (None, {})
    if argument.powers not in allowed:
        needed = "an angle or a plain number (rad)" if name in _ANGLE_IN else "a number without unit"
        raise ValueError(f"{name}() needs {needed}")
    try:
        number = FUNCTIONS[name](argument.number)
    except ValueError:
        raise ValueError(f"{name}() has no value at {argument.number:g}") from None
    return Value(number, None if name in _ANGLE_IN else {"radian": 1.0})
