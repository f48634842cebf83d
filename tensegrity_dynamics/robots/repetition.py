"""Symmetric parts of robot files: parts under `repeat:` are copied, rotated and translated.

    repeat: {count: 3, about: z, members: [...], ...}

In the texts of a repeated part, `$` is the number of the copy (from 1), `$+1` and `$-1` are its neighbours. In a ring
(rotated, not translated) the first copy is the neighbour of the last one. The text of the parts is copied before the
schema is checked; positions and directions are moved afterwards, when they are numbers in SI units.
"""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from .file_errors import Problems
from .schema import Block, CommonBlock, RepeatBlock
from .units import BaseUnits
from .yaml_source import YamlSource

MAX_PARTS = 50_000  # limit for one file: far above any robot, and read within some seconds of processor time
MAX_NESTING = 4  # largest depth of nested repetitions

Path = tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class Movement:
    """Rigid motion from the part in the file to a copy: x -> rotation x + shift [m].

    Attributes:
        rotation: (3, 3). shift: (3,) m.
    """

    rotation: NDArray[np.float64]
    shift: NDArray[np.float64]

    def point(self, position: Sequence[float]) -> list[float]:
        """Moved position (3,) [m]."""
        return [float(x) for x in self.rotation @ np.asarray(position) + self.shift]

    def direction(self, vector: Sequence[float]) -> list[float]:
        """Rotated direction (3,)."""
        return [float(x) for x in self.rotation @ np.asarray(vector)]


@dataclass(frozen=True)
class Copy:
    """One copied part: path in the resulting file, original text, and movements.

    Attributes:
        path: path of the copy. template: part as written in the file.
        moves: (movement, mark) of each repetition, the innermost first.
    """

    path: Path
    template: Any
    moves: tuple[tuple[Movement, str], ...]


@dataclass
class Repetitions:
    """All copied parts of a file."""

    copies: list[Copy] = field(default_factory=list)

    def move(self, block: CommonBlock) -> None:
        """Move every copied part of the validated block by its movements, unless it is fixed to a copied body."""
        for each in self.copies:
            part: Any = block
            for step in each.path:
                part = part[step] if isinstance(part, (list, dict)) else getattr(part, step)
            if not isinstance(part, Block):
                continue
            for movement, mark in each.moves:
                part.apply_movement(movement, partial(_is_marked, each.template, mark))


def _is_marked(template: Any, mark: str, field_name: str) -> bool:
    """Whether a field such as "anchor.body" of a part contains the mark of the repetition in the file."""
    for step in field_name.split("."):
        if isinstance(template, list):
            template = template[int(step)]
        else:
            template = template.get(step, "") if isinstance(template, dict) else ""
    return mark in str(template)


def expand(source: YamlSource, units: BaseUnits, schema: type[CommonBlock], problems: Problems) -> Repetitions:
    """Replace the `repeat` block of a file by the resulting parts.

    Args:
        source: parsed file; its data and the lines of its fields are changed.
        schema: schema of the kind of robot; its lists and mappings of parts can be repeated.

    Raises:
        RobotFileError: a repetition is invalid; the message contains line and field.
    """
    made = Repetitions()
    if "repeat" not in source.data:
        return made
    whole = source.data["repeat"]
    allowed = [name for name in schema.model_fields if name in schema.repeatable()]
    count = 0
    for path, group in _groups(whole, ("repeat",)):
        parts = _expanded(source, path, group, units, allowed, problems, 1)
        count += len(parts)
        if count > MAX_PARTS:
            problems.add(path, f"with those before it makes {count} parts; {MAX_PARTS} at most.")
            break
        for part in parts:
            _insert(source, part, made, problems)
    problems.stop_if_any()
    del source.data["repeat"]
    return made


def _groups(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, list):
        yield from (((*path, i), each) for i, each in enumerate(value))
    else:
        yield path, value


@dataclass(frozen=True)
class _Part:
    """Part to copy: target field, key (None in a list), data, and path in the file."""

    field: str
    key: str | None
    data: Any
    written: Path
    template: Any
    moves: tuple[tuple[Movement, str], ...]


def _expanded(
    source: YamlSource, path: Path, group: Any, units: BaseUnits, allowed: list[str], problems: Problems, depth: int
) -> list[_Part]:
    """Parts of one repetition, copy by copy."""
    if not isinstance(group, dict):
        problems.add(path, "a mapping is needed, such as {count: 3, about: z, members: [...]}.")
        return []
    if depth > MAX_NESTING:
        problems.add(path, f"repetitions may stand in each other {MAX_NESTING} deep at most.")
        return []
    header = {key: value for key, value in group.items() if key in RepeatBlock.model_fields}
    for key in group:
        if key not in header and key not in allowed and key != "repeat":
            names = ", ".join([*RepeatBlock.model_fields, *allowed, "repeat"])
            problems.add((*path, key), f"cannot be repeated. Allowed: {names}.")
    try:
        settings = RepeatBlock.model_validate(header, context={"units": units})
    except ValidationError as error:
        problems.add_block(path, RepeatBlock, error)
        return []
    inner: list[_Part] = []
    for name in allowed:
        inner += _written_parts(group.get(name), name, (*path, name), problems)
    for where, nested in _groups(group["repeat"], (*path, "repeat")) if "repeat" in group else ():
        inner += _expanded(source, where, nested, units, allowed, problems, depth + 1)
        if len(inner) > MAX_PARTS:
            break
    if len(inner) * settings.count > MAX_PARTS:
        problems.add((*path, "count"), f"makes {len(inner) * settings.count} parts; {MAX_PARTS} at most.")
        return []
    result = []
    for k in range(1, settings.count + 1):
        movement = _movement(settings, k - 1)
        for part in inner:
            key = None if part.key is None else _numbered(part.key, settings, k)
            moves = (*part.moves, (movement, settings.mark))
            data = _numbered(part.data, settings, k)
            # a name numbered by an inner repetition still contains the outer mark
            result.append(_Part(part.field, key, data, part.written, part.template, moves))
    return result


def _written_parts(value: Any, name: str, path: Path, problems: Problems) -> list[_Part]:
    if value is None:
        return []
    if isinstance(value, list):
        return [_Part(name, None, each, (*path, i), each, ()) for i, each in enumerate(value)]
    if isinstance(value, dict):
        return [_Part(name, key, each, (*path, key), each, ()) for key, each in value.items()]
    problems.add(path, "a list or a mapping of parts is needed.")
    return []


def _movement(settings: RepeatBlock, steps: int) -> Movement:
    """Motion of a copy: `steps` times the angle about the axis, then `steps` times the translation."""
    rotation, shift = np.eye(3), np.zeros(3)
    if settings.about is not None:
        angle = settings.turn_per_copy
        sine, cosine = _rounded(math.sin(steps * angle)), _rounded(math.cos(steps * angle))
        first, second = {"x": (1, 2), "y": (2, 0), "z": (0, 1)}[settings.about]
        rotation[first, first] = rotation[second, second] = cosine
        rotation[first, second], rotation[second, first] = -sine, sine
        through = np.asarray(settings.through)
        shift = through - rotation @ through
    if settings.along is not None:
        shift = shift + steps * np.asarray(settings.along)
    return Movement(rotation, shift)


def _rounded(value: float) -> float:
    """Sine or cosine without rounding error if it is a multiple of 0.5 (for angles such as 30, 60 and 90 deg)."""
    near = round(2.0 * value) / 2.0
    return near if abs(value - near) < 1e-14 else value


def _numbered(value: Any, settings: RepeatBlock, number: int) -> Any:
    """Data with the mark replaced by the number of the copy, in nested texts as well."""
    if isinstance(value, dict):
        return {_numbered(key, settings, number): _numbered(each, settings, number) for key, each in value.items()}
    if isinstance(value, list):
        return [_numbered(each, settings, number) for each in value]
    if not isinstance(value, str) or settings.mark not in value:
        return copy.copy(value)

    def replace(match: re.Match[str]) -> str:
        other = number + int(match[1] or 0)
        return str((other - 1) % settings.count + 1 if settings.is_ring else other)

    text = re.sub(re.escape(settings.mark) + r"([+-]\d{1,6})?(?![\d])", replace, value)
    return int(text) if value.strip() == settings.mark else text


def _insert(source: YamlSource, part: _Part, made: Repetitions, problems: Problems) -> None:
    """Add a copy to its field; its errors refer to the line of the original part."""
    if part.key is None:
        held = source.data.setdefault(part.field, [])
        if not isinstance(held, list):
            problems.add((part.field,), "a list is needed, since repeated parts are added to it.")
            return
        path: Path = (part.field, len(held))
        held.append(part.data)
    else:
        held = source.data.setdefault(part.field, {})
        if not isinstance(held, dict):
            problems.add((part.field,), "a mapping is needed, since repeated parts are added to it.")
            return
        if part.key in held:
            problems.add(part.written, f"makes {part.key!r}, which is there already; put $ into the name.")
            return
        path = (part.field, part.key)
        held[part.key] = part.data
    source.copy_lines(part.written, path)
    made.copies.append(Copy(path, part.template, part.moves))
