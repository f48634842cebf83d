"""Definitions of message types from the installed interface files (.msg, .action), and their RIHS hashes.

A bag contains the definition of each of its types: the text of the type, then those of all nested types, each after a
line of "=" and a line "MSG: package/Name" (the concatenated form of rosbag2). Types of actions have no separate file;
the definition of the feedback message is generated from the .action file in the same way as by rosidl.

The hash (REP 2016, "RIHS01") is that of the compiled type, read from the .json file that rosidl installs with it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tensegrity_dynamics.errors import TensegrityError

SEPARATOR = "=" * 80
PRIMITIVE = {
    "bool", "byte", "char", "float32", "float64", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64",
    "uint64", "string", "wstring",
}  # fmt: skip
FIELD = re.compile(r"^\s*([A-Za-z][\w/]*)(?:<=\d+)?(?:\[[^\]]*\])?\s+[A-Za-z]\w*")
ACTION_PARTS = ("Goal", "Result", "Feedback")


@dataclass(frozen=True)
class Definition:
    """One message type.

    Attributes:
        name: such as "sensor_msgs/msg/JointState". text: its definition with those of all nested types.
        digest: its hash, "RIHS01_...".
    """

    name: str
    text: str
    digest: str


class MessageTypes:
    """Types of the interface packages that are installed in the folders of AMENT_PREFIX_PATH."""

    def __init__(self) -> None:
        prefixes = os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)
        self._prefixes = [Path(each) for each in prefixes if each]
        self._definitions: dict[str, Definition] = {}

    def __getitem__(self, name: str) -> Definition:
        """Definition of a type such as "std_msgs/msg/Header". Raises TensegrityError if it is not installed."""
        if name not in self._definitions:
            own = self._own_text(name)
            parts, inside = [own], dict.fromkeys(self._inside(name, own))
            queue = list(inside)
            while queue:
                nested = queue.pop(0)
                text = self._own_text(nested)
                parts.append(f"{SEPARATOR}\nMSG: {_short(nested)}\n{text}")
                for each in self._inside(nested, text):
                    if each not in inside:
                        inside[each] = None
                        queue.append(each)
            self._definitions[name] = Definition(
                name, "\n".join(part.rstrip("\n") for part in parts) + "\n", self._hash(name)
            )
        return self._definitions[name]

    def _own_text(self, name: str) -> str:
        package, kind, short = _split(name)
        if kind == "msg":
            return self._file(name, package, kind, f"{short}.msg").read_text(encoding="utf-8")
        stem, _, part = short.rpartition("_")
        if kind == "action" and part == "FeedbackMessage":
            return f"unique_identifier_msgs/UUID goal_id\n{stem}_Feedback feedback\n"
        if kind == "action" and part in ACTION_PARTS:
            text = self._file(name, package, kind, f"{stem}.action").read_text(encoding="utf-8")
            sections = re.split(r"^---[ \t]*$", text, flags=re.MULTILINE)
            if len(sections) != 3:
                raise TensegrityError(f"{package}/action/{stem}.action has {len(sections)} parts instead of three.")
            return sections[ACTION_PARTS.index(part)].lstrip("\n")
        raise TensegrityError(f"{name}: messages of this kind are not kept in bags.")

    def _inside(self, owner: str, text: str) -> Iterator[str]:
        """Full names of the nested types of a definition."""
        package, kind, _ = _split(owner)
        for line in text.splitlines():
            field = FIELD.match(line.split("#")[0])
            if field is None or field[1] in PRIMITIVE:
                continue
            words = field[1].split("/")
            if len(words) == 1:
                yield "std_msgs/msg/Header" if words[0] == "Header" else f"{package}/{kind}/{words[0]}"
            elif len(words) == 2:
                yield f"{words[0]}/msg/{words[1]}"
            else:
                yield field[1]

    def _hash(self, name: str) -> str:
        package, kind, short = _split(name)
        stem = short.rpartition("_")[0] if kind == "action" else short
        path = self._file(name, package, kind, f"{stem}.json")
        for each in json.loads(path.read_text(encoding="utf-8"))["type_hashes"]:
            if each["type_name"] == name:
                return str(each["hash_string"])
        raise TensegrityError(f"{path} has no hash of {name}; build the interfaces again ('make setup').")

    def _file(self, name: str, package: str, kind: str, file: str) -> Path:
        for prefix in self._prefixes:
            path = prefix / "share" / package / kind / file
            if path.is_file():
                return path
        raise TensegrityError(
            f"the message type {name} is not installed: no share/{package}/{kind}/{file} below "
            f"{', '.join(str(each) for each in self._prefixes) or 'AMENT_PREFIX_PATH, which is empty'}."
        )


def _split(name: str) -> tuple[str, str, str]:
    words = name.split("/")
    if len(words) != 3 or not all(words):
        raise TensegrityError(f"{name!r} is no message type; one looks like std_msgs/msg/Header.")
    return words[0], words[1], words[2]


def _short(name: str) -> str:
    """Name of a nested type in a definition: "geometry_msgs/Pose", or the full name for a type of an action."""
    package, kind, short = _split(name)
    return f"{package}/{short}" if kind == "msg" else name
