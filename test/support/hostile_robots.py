"""Robot files after something has happened to them: shipped robots with fields that are changed, moved or missing."""

from __future__ import annotations

import copy
import io
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from tensegrity_dynamics.robots import load_robot as loading

FOLDER = Path(loading.__file__).parent
TEXTS = {name: (FOLDER / f"{name}.yaml").read_text(encoding="utf-8") for name in loading.shipped_robots()}
NUMBERS = (
    0, -1, 1, 1e300, -1e300, 1e-300, 1e30, 1e9, 1e12, float("nan"), float("inf"), -float("inf"), 10**400, 2**63, True,
    False, 0.5, 1e6, 1e-9,
)  # fmt: skip
WORDS = (
    "", " ", "nan", "é\u202e", "../../etc/passwd", "a/b", "x" * 5000, "0 mm", "1e300 m", "-1 kg", "5 furlong", "5",
    "1/0", "9**16*9**16", "sqrt(-1)", "sin(" * 40 + "1" + ")" * 40, "(" * 90 + "1" + ")" * 90,
    "__import__('os').system('x')", "1 if 1 else 2", "[1,2]", "pi", "1e400", "$", "$+1", "a$b$", "{}", "null", "~", "m",
    "1 m**99", "0.1 m^1000000000",
    "1:30", "0x10", "%s%n{0}", "'", '"', '"1 m" + "1 s"', "1e308*10",
)  # fmt: skip
PLACES = ([], {}, [[]], [None], {"a": None}, [[[[[[1]]]]]], {1: 2}, [1e300] * 3, [float("nan")] * 3, [0] * 2000, None)
FACTORS = (0, -1, 1e3, 1e-3, 1e6, 1e-6, 1e9, 1e-9, 10, 0.1, 2, 0.5, 1e15, 1e-15, 1e100, 1e-100, 1e300, 1e-300)
MARKS = (
    *"\t\n:-{}[]&*!#|>%@`'\"0.\\,\x00\u2028\ufeff",
    "<<: *a",
    "&a ",
    "!!python/object:os.system ",
    "\n---\n",
    "1e999",
)
QUANTITY = re.compile(r"\s*([-+]?[\d.]+(?:[eE][-+]?\d+)?)\s*(\S.*)")


def plain(text: str) -> Any:
    return YAML(typ="safe", pure=True).load(text)


def dumped(data: Any) -> str:
    writer, out = YAML(typ="safe", pure=True), io.StringIO()
    writer.allow_unicode, writer.width = True, 200
    writer.sort_base_mapping_type_on_output = False  # a parameter is defined by those above it
    writer.dump(data, out)
    return out.getvalue()


def fields(data: Any, path: tuple = ()) -> Iterator[tuple]:
    """Paths of all fields of nested mappings and lists."""
    for key, value in data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ():
        yield (*path, key)
        yield from fields(value, (*path, key))


def at(data: Any, path: tuple) -> Any:
    for key in path:
        data = data[key]
    return data


def scaled(value: Any, factor: float) -> Any:
    """A number or a quantity times a factor; None where it is neither."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value * factor) if value else factor
    match = QUANTITY.fullmatch(value) if isinstance(value, str) else None
    return f"{float(match[1]) * factor:.17g} {match[2]}" if match else None


def spoiled(value: Any, draw: random.Random) -> Any:
    kind = draw.randrange(5)
    if kind == 0:
        return draw.choice(NUMBERS)
    if kind == 1:
        return draw.choice(WORDS)
    if kind == 2:
        return copy.deepcopy(draw.choice(PLACES))
    if kind == 3:
        return draw.choice(([value, value], {"a": value}, str(value)))
    changed = scaled(value, draw.choice(FACTORS))
    return -1 if changed is None else changed


def hostile_text(draw: random.Random) -> str:
    """A shipped robot file with up to three fields deleted, renamed, doubled, exchanged or spoiled, or odd marks."""
    text = TEXTS[draw.choice(sorted(TEXTS))]
    if draw.random() < 0.1:
        for _ in range(draw.choice((1, 2, 4))):
            k = draw.randrange(len(text))
            text = text[:k] + draw.choice(MARKS) + text[k + draw.choice((0, 1, 10)) :]
        return text
    data = plain(text)
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        paths = list(fields(data))
        if not paths:
            break
        path = draw.choice(paths)
        where, key, kind = at(data, path[:-1]), path[-1], draw.randrange(10)
        if kind == 0:
            del where[key]
        elif kind == 1 and isinstance(where, dict):
            where[draw.choice((*WORDS, f"{key}x", str(key).upper()))] = where.pop(key)
        elif kind == 2 and isinstance(where, list):
            where.insert(key, copy.deepcopy(where[key]))
        elif kind == 3:
            where[key] = copy.deepcopy(
                at(data, draw.choice([each for each in paths if each[: len(path)] != path] or paths))
            )
        elif kind == 4:
            wrong = draw.choice(("1/0", "b", "a", "2**16", "9**9**9", "0/0", "asin(2)", 1e300, -1, "1 m", "parameters"))
            data["parameters"] = {"a": wrong, draw.choice(("b", "pi", "é", "sin", "")): "a + b"}
        elif kind == 5:
            data["repeat"] = [
                {"count": draw.choice((0, -1, 1e9, 10**9, 3, 1.5, "x", None)), "nodes": data.get("nodes")}
            ]
        else:
            where[key] = spoiled(where[key], draw)
    return dumped(data)


def scaled_text(draw: random.Random) -> str:
    """A shipped robot file with one or two of its numbers times a factor; many of these load."""
    data = plain(TEXTS[draw.choice(sorted(TEXTS))])
    paths = [each for each in fields(data) if scaled(at(data, each), 2.0) is not None and each[0] != "servos"]
    for path in draw.sample(paths, draw.choice((1, 1, 1, 2))):
        at(data, path[:-1])[path[-1]] = scaled(at(data, path), draw.choice(FACTORS))
    return dumped(data)
