"""Problems of a robot file, collected and reported in one error, each with line and field."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticCustomError

from ..errors import RobotFileError, TensegrityError
from .yaml_source import YamlSource

Model = TypeVar("Model", bound=BaseModel)
WORDED = "worded"
"""Type of validator errors with complete messages, see `worded_error`."""
MOST = 20  # largest number of listed problems; the others are counted

NOT_WHAT_IS_NEEDED = {
    "list_type": "a list is needed",
    "tuple_type": "a list is needed",
    "dict_type": "a mapping is needed",
    "model_type": "a mapping is needed",
    "model_attributes_type": "a mapping is needed",
    "string_type": "a text is needed",
    "int_type": "a whole number is needed",
    "int_from_float": "a whole number is needed",
    "bool_type": "true or false is needed",
}

LIMITS = {
    "greater_than": ("above", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("below", "lt"),
    "less_than_equal": ("at most", "le"),
}


class Problems:
    """Collection of the problems of a file.

    Args:
        source: parsed file, for line numbers and values.
        folder: base directory of relative file names in it.
    """

    def __init__(self, source: YamlSource, folder: Path = Path()) -> None:
        self.source, self.folder = source, folder
        self._found: dict[tuple[int, str], None] = {}
        self._reported: set[tuple[tuple, str]] = set()

    def add(self, path: Sequence[Any], message: str) -> None:
        """Add a problem of the field at `path`, such as ("members", 3, "nodes"); of copied parts, whose problems differ
        only in the numbers of the copies, the first is added.
        """
        written = self.source.written(path)
        same = written, message if written == tuple(path) else re.sub(r"\d+", "", message)
        if same in self._reported:
            return
        self._reported.add(same)
        line = self.source.line([step for step in path if step != "[key]"])
        self._found[line, f"{self.source.name}:{line}: {spell(self.source.data, path)}: {message}"] = None

    def add_invalid(self, schema: type[BaseModel], item: Any) -> None:
        """Add one entry of the error list of pydantic, with a reformulated message."""
        for path, message in explain(self.source.data, schema, item):
            self.add(path, message)

    def add_block(self, path: Sequence[Any], schema: type[BaseModel], error: ValidationError) -> None:
        """Add the errors of the block at `path`, which was validated separately."""
        for item in error.errors():
            self.add_invalid(schema, {**item, "loc": (*path, *item["loc"])})

    def stop_if_any(self) -> None:
        """Raise RobotFileError if there are problems: one line for each, in the order of the file."""
        lines = [text for _, text in sorted(self._found)]
        if not lines:
            return
        if len(lines) > MOST:
            lines[MOST:] = [f"{self.source.name}: ... and {len(lines) - MOST} more."]
        raise RobotFileError("\n".join(lines))


def explain(data: Any, schema: type[BaseModel], item: Any) -> list[tuple[list[Any], str]]:
    """Pairs (path of the field, message) from one entry of the error list of pydantic for `data`."""
    path, kind = _field_path(data, item["loc"]), item["type"]
    found = _spell_value(data, path, item.get("input"))
    limits = item.get("ctx") or {}
    if kind == WORDED:
        return [([*path, *at], message) for at, message in limits["problems"]]
    if kind == "extra_forbidden":
        names = _field_names(schema, path[:-1])
        near = get_close_matches(str(path[-1]), names, n=1, cutoff=0.5)
        guess = f" Did you mean {near[0]!r}?" if near else ""
        return [(path, f"unknown field.{guess} Allowed: {', '.join(names)}.")]
    if kind == "missing":
        return [([*path, item["loc"][-1]], "missing; add it.")]
    if kind == "value_error":
        return [(path, f"{limits['error']}; found {found}.")]
    if kind == "string_pattern_mismatch" or "[key]" in path:
        name = repr(str(path[-2])[:60]) if "[key]" in path else found
        return [(path, f"{name} is no name; use up to 64 letters, digits, _ and -, starting with a letter.")]
    if kind in ("literal_error", "enum"):
        return [(path, f"found {found}; allowed: {limits['expected'].replace(' or ', ', ')}.")]
    if kind in LIMITS:
        word, key = LIMITS[kind]
        return [(path, f"must be {word} {limits[key]:g}; found {found}.")]
    if kind in ("too_short", "too_long"):
        least = limits.get("min_length")
        need = f"at least {least}" if least is not None else f"at most {limits['max_length']}"
        return [(path, f"the number of entries must be {need}; found {limits['actual_length']}.")]
    message = NOT_WHAT_IS_NEEDED.get(kind) or item["msg"][0].lower() + item["msg"][1:]
    return [(path, f"{message}; found {found}.")]


def worded_error(*problems: tuple[Sequence[Any], str]) -> PydanticCustomError:
    """Error of a validator with complete messages.

    Args:
        problems: pairs (path from the validated field to the invalid part, message).
    """
    text = " ".join(message for _, message in problems)
    return PydanticCustomError(WORDED, "{text}", {"text": text, "problems": problems})


def validate_block(schema: type[Model], data: Any, name: str) -> Model:
    """Validated block from plain data in SI units that are not part of a file.

    Raises:
        TensegrityError: the data do not satisfy the schema; the message names every field as a part of `name`.
    """
    try:
        return schema.model_validate(data)
    except ValidationError as error:
        problems = [each for item in error.errors() for each in explain(data, schema, item)]
    raise TensegrityError("\n".join(f"{spell({name: data}, [name, *path])}: {message}" for path, message in problems))


def spell(data: Any, location: Sequence[Any]) -> str:
    """Readable name of a field, such as "members[3] (draw_1).stiffness"."""
    text = ""
    for step in location:
        if step == "[key]":
            continue
        if isinstance(step, int):
            data = data[step] if isinstance(data, list) and step < len(data) else None
            name = data.get("name", data.get("drives", data.get("actuator"))) if isinstance(data, dict) else None
            text += f"[{step}]" + (f" ({name[:60]})" if isinstance(name, str) else "")
        else:
            data = data.get(step) if isinstance(data, dict) else None
            text += f".{str(step)[:60]}" if text else str(step)[:60]
    return text or "the file"


def _field_path(data: Any, location: Sequence[Any]) -> list[Any]:
    """Part of a location of pydantic that consists of fields of the data, without names of validators."""
    path: list[Any] = []
    for step in location:
        if (isinstance(data, dict) and step in data) or (isinstance(data, list) and isinstance(step, int)):
            data = data[step] if isinstance(data, dict) or step < len(data) else None
            path.append(step)
        elif step == "[key]":
            path.append(step)
    return path


def _spell_value(data: Any, path: Sequence[Any], otherwise: Any) -> str:
    """Value of a field as text, shortened for a message."""
    for step in path:
        if step == "[key]":
            data = otherwise
            break
        data = data[step]
    return "nothing" if data is None else shown(data)


def shown(value: Any) -> str:
    """Value of a file as text, shortened for a message."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _field_names(schema: Any, location: Sequence[Any]) -> list[str]:
    """Allowed field names at a location of the schema."""
    current: Any = schema
    for step in location:
        if isinstance(step, str) and step in getattr(current, "model_fields", {}):
            current = _model_in(current.model_fields[step].annotation)
    return list(getattr(current, "model_fields", {}))


def _model_in(annotation: Any) -> Any:
    # in Python 3.10, isinstance(list[float], type) is true
    if get_origin(annotation) is None and isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for part in get_args(annotation):
        found = _model_in(part)
        if found is not None:
            return found
    return None
