"""YAML reader that stores the line of every field and accepts plain data only: no tags and no aliases."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..errors import RobotFileError

MAXIMUM_BYTES = 4_000_000  # sufficient for a lattice of ten thousand nodes
MAXIMUM_DEPTH = 40
KEPT_CHARACTERS = 50_000
"""Texts up to this size are parsed once and cached, because parsing takes nine tenths of the loading time."""
NOT_FINITE = re.compile(r"^([-+]?)\.(?=(nan|inf)$)", re.IGNORECASE)
"""Leading point of the YAML words for NaN and infinity."""
REMEDIES = {
    r"'\t'": "Tabs are not allowed; indent with spaces.",
    "' or '": "A bracket is not closed, or a comma or colon is missing in it.",
    "end of stream": "A quote is not closed.",
    "": "Check colons, brackets, quotes and the indentation here and in the line above.",
}
"""Remedy by a part of the message of the YAML reader, which says what it expected."""
STARTS_WITH_QUANTITY = re.compile(r"""[:,\[]\s*("[^"]*"|'[^']*')\s*[-+*/]""")
"""Field such as `"60 mm" + radius`, which YAML reads as the text 60 mm followed by invalid characters."""


class YamlSource:
    """Parsed file: plain data and the line of each field.

    Args:
        text: YAML text. name: name of the file in errors.

    Raises:
        RobotFileError: the text is not YAML, not a mapping, too large or too deeply nested, contains tags or aliases,
            or repeats a key.
    """

    def __init__(self, text: str, name: str) -> None:
        self.name = name
        self._lines: dict[tuple, int] = {}
        self._origins: dict[tuple, tuple] = {}  # path of the original of a copied part
        self._below: dict[tuple, list[tuple]] = {}  # cache of the fields of a repeated part
        if not isinstance(text, str):
            raise RobotFileError(f"{name}: the text of a robot file is needed, found {type(text).__name__}.")
        if len(text) > MAXIMUM_BYTES:
            raise RobotFileError(f"{name}: the file is larger than {MAXIMUM_BYTES} characters; split the robot.")
        self.data = self._plain(self._compose(text), (), 0)
        if not isinstance(self.data, dict):
            found = "nothing" if self.data is None else type(self.data).__name__
            raise RobotFileError(f"{name}:1: a robot file is a mapping that starts with 'name:', found {found}.")

    def line(self, path: Sequence[Any]) -> int:
        """Line (from 1) of the field, or of the innermost enclosing field."""
        key = tuple(path)
        while key and key not in self._lines:
            key = key[:-1]
        return self._lines.get(key, 1)

    def copy_lines(self, origin: Sequence[Any], target: Sequence[Any]) -> None:
        """Assign the lines of the fields at `origin` to the fields at `target`, including nested fields."""
        start, end = tuple(origin), tuple(target)
        self._origins[end] = start
        held = self._fields_below(start)
        self._lines.update({end + rest: self._lines[start + rest] for rest in held})

    def written(self, path: Sequence[Any]) -> tuple:
        """Path of a field in the file: its own path, or that of the repeated part or the default from which it was
        copied."""
        key = tuple(path)
        for length in range(len(key), 0, -1):
            if key[:length] in self._origins:
                return self.written(self._origins[key[:length]] + key[length:])
        return key

    def _fields_below(self, path: tuple) -> list[tuple]:
        if path not in self._below:
            self._below[path] = [each[len(path) :] for each in self._lines if each[: len(path)] == path]
        return self._below[path]

    def _compose(self, text: str) -> Any:
        from ruamel.yaml.error import MarkedYAMLError, YAMLError

        compose = _composed if len(text) <= KEPT_CHARACTERS else _composed.__wrapped__
        try:
            return compose(text)
        except MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line = mark.line + 1 if mark else 1
            problem = error.problem or error.context or ""
            remedy = next(text for found, text in REMEDIES.items() if found in problem)
            opened = error.context_mark if re.search("flow|quoted", error.context or "") else None
            began = f" It opens in line {opened.line + 1}." if opened else ""
            reason = f"{self.name}:{line}: not readable as YAML: {problem}. {remedy}{began}"
            if mark and any(STARTS_WITH_QUANTITY.search(each) for each in text.splitlines()[max(line - 2, 0) : line]):
                reason += """ An expression that starts with a quote needs quotes around it: '"60 mm" + radius'."""
            raise RobotFileError(reason) from None
        except RecursionError:
            raise RobotFileError(f"{self.name}:1: nested deeper than {MAXIMUM_DEPTH} levels.") from None
        except (YAMLError, ValueError, AttributeError, TypeError, IndexError, KeyError) as error:
            text = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise RobotFileError(f"{self.name}:1: not readable as YAML: {text}.") from None

    def _plain(self, node: Any, path: tuple, depth: int) -> Any:
        from ruamel.yaml.nodes import MappingNode, ScalarNode, SequenceNode

        if node is None:
            return None
        line = node.start_mark.line + 1
        self._lines.setdefault(path, line)
        if depth > MAXIMUM_DEPTH:
            raise RobotFileError(f"{self.name}:{line}: nested deeper than {MAXIMUM_DEPTH} levels.")
        if node.anchor:
            raise RobotFileError(
                f"{self.name}:{line}: anchors and aliases (&, *) are not used in robot files; give what parts have in "
                "common once under `defaults`, or use `parameters` or `repeat`."
            )
        if isinstance(node, ScalarNode):
            return self._scalar(node, line)
        if isinstance(node, SequenceNode):
            self._check_tag(node, "tag:yaml.org,2002:seq", line)
            return [self._plain(item, (*path, i), depth + 1) for i, item in enumerate(node.value)]
        assert isinstance(node, MappingNode)
        self._check_tag(node, "tag:yaml.org,2002:map", line)
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            at = key_node.start_mark.line + 1
            if not isinstance(key_node, ScalarNode):
                raise RobotFileError(f"{self.name}:{at}: a key must be a plain word.")
            key = str(key_node.value)
            if key in result:
                raise RobotFileError(f"{self.name}:{at}: the key {key!r} appears twice in the same block; keep one.")
            field = (*path, key)
            self._lines[field] = at
            result[key] = self._plain(value_node, field, depth + 1)
        return result

    def _check_tag(self, node: Any, plain: str, line: int) -> None:
        tag = str(node.tag) if node.tag is not None else plain
        if tag not in (plain, "None", "!"):
            raise RobotFileError(f"{self.name}:{line}: tags such as {tag} are not allowed in robot files.")

    def _scalar(self, node: Any, line: int) -> Any:
        tag, value = str(node.tag), node.value
        kind = tag.rsplit(":", 1)[-1]
        if not tag.startswith("tag:yaml.org,2002:") or kind not in ("str", "int", "float", "bool", "null", "timestamp"):
            raise RobotFileError(f"{self.name}:{line}: tags such as {tag} are not allowed in robot files.")
        if kind == "null":
            return None
        if kind == "bool":
            return value.lower() in ("true", "yes", "on")
        if kind in ("int", "float") and not node.style:
            try:
                return int(value) if kind == "int" else float(NOT_FINITE.sub(r"\1", value))
            except ValueError:
                pass  # octal or sexagesimal numbers and similar stay text, which the schema reads or rejects
        return value


@lru_cache(maxsize=16)
def _composed(text: str) -> Any:
    """Nodes of a YAML text; they must not be changed."""
    from ruamel.yaml import YAML

    return YAML(typ="safe", pure=True).compose(text)


def read_text(path: Path) -> str:
    """Text of a file. Raises RobotFileError if it cannot be read or is not text."""
    try:
        with path.open("rb") as file:
            raw = file.read(MAXIMUM_BYTES + 1)
    except OSError as error:
        raise RobotFileError(f"{path}: cannot be read: {error.strerror or error}.") from None
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RobotFileError(f"{path}: not a text file (byte {error.start} is not UTF-8).") from None
