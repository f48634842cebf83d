"""Default values of robot files: what most parts of a list have in common is given once.

    defaults: {cables: {young: "2 GPa", cable_radius: "1 mm"}, actuators: {rate: "10 rad/s"}}

Every part of `cables` and `actuators`, repeated ones as well, that does not give these fields gets them, as if they
were in its own block. Kinds of robots may have further keys of `defaults` in their schema.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from ..errors import unknown_name
from .file_errors import Problems
from .schema import CommonBlock
from .yaml_source import YamlSource

Path = tuple[Any, ...]


def fill_defaults(source: YamlSource, schema: type[CommonBlock], problems: Problems) -> None:
    """Fill the fields of all parts from `defaults`, and remove what is filled from there.

    Args:
        source: parsed file; its data and the lines of its fields are changed.
        schema: schema of the kind of robot; its lists and mappings of parts can have defaults.
    """
    whole = source.data.get("defaults")
    if not isinstance(whole, dict):
        if whole is not None and "defaults" not in schema.model_fields:
            problems.add(("defaults",), "a mapping is needed, such as {actuators: {rate: 5 cm/s}}.")
        return
    lists = schema.repeatable()
    own = schema.model_fields["defaults"].annotation.model_fields if "defaults" in schema.model_fields else {}  # type: ignore[union-attr]
    for name in list(whole):
        if name in own:
            continue
        values = whole.pop(name)
        if name not in lists:
            problems.add(("defaults", name), unknown_name("list of parts", name, (*own, *lists)))
        elif not isinstance(values, dict):
            problems.add(("defaults", name), f"a mapping is needed, with fields of {name} and their values.")
        elif "name" in values:
            problems.add(("defaults", name, "name"), "every part has a name of its own; leave it out.")
        else:
            for path, part in _parts_named(name, source.data, ()):
                _fill(source, name, values, path, part)
    if not whole and "defaults" not in schema.model_fields:
        del source.data["defaults"]


def _parts_named(name: str, group: dict[str, Any], path: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """All parts of a list or mapping with their paths, in repetitions as well."""
    parts = group.get(name)
    found = parts.items() if isinstance(parts, dict) else enumerate(parts) if isinstance(parts, list) else ()
    yield from (((*path, name, key), each) for key, each in found if isinstance(each, dict))
    nested = group.get("repeat")
    inner = enumerate(nested) if isinstance(nested, list) else [(None, nested)]
    for key, each in inner:
        if isinstance(each, dict):
            yield from _parts_named(name, each, (*path, "repeat") if key is None else (*path, "repeat", key))


def _fill(source: YamlSource, name: str, values: dict[str, Any], path: Path, part: dict[str, Any]) -> None:
    for field, value in values.items():
        if field not in part:
            part[field] = copy.deepcopy(value)
            source.copy_lines(("defaults", name, field), (*path, field))
