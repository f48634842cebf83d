"""What exports to MuJoCo's XML (MJCF) of every kind of robot share: the document, numbers as text, what cannot be said.

Parts that a robot has and MJCF has not are left out, or said as nearly as possible, and listed in `Export.differences`.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import TensegrityError
from ..numerics.rotations import quaternion_from_matrix
from ..saved_file import save_file

LEAST_PART = 1e-5
"""Mass of a body without mass, as a part of the whole mass: MuJoCo needs some. Such bodies have no weight there."""
TIME_STEP = 1e-4
"""s, for stiff cables under MuJoCo's explicit treatment of tendons."""
SLACK_OFFSET = 100.0
"""m added to the elongation of a cable, so that its slack side is a length above zero, as spring ranges need."""


@dataclass(frozen=True)
class Export:
    """A robot as text of another format.

    Attributes:
        text: the document. differences: sentences, what the format cannot say and what stands for it.
        files: what the document names beside itself, by path from its folder.
    """

    text: str
    differences: tuple[str, ...]
    files: Mapping[str, bytes] = field(default_factory=dict, kw_only=True)

    def write(self, out: Path) -> None:
        """Write it to a file, with what it names. Raises TensegrityError where that cannot be done."""
        self.write_files(out.parent)
        save_file(out, self.text)

    def write_files(self, folder: Path) -> None:
        """Write what the document names, below a folder. Raises TensegrityError where that cannot be done."""
        for name, content in self.files.items():
            try:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise TensegrityError(f"cannot write {folder / name}: {error.strerror or error}.") from error
            save_file(folder / name, content)


def numbers(values: ArrayLike) -> str:
    """Numbers as text that gives the same bits again."""
    return " ".join(f"{value + 0.0:.17g}" for value in np.ravel(np.asarray(values, dtype=np.float64)))


def new_document(name: str, gravity: ArrayLike) -> ET.Element:
    """The root of a document with its options."""
    root = ET.Element("mujoco", model=name)
    ET.SubElement(root, "compiler", angle="radian", autolimits="true")
    ET.SubElement(root, "option", gravity=numbers(gravity), timestep=numbers(TIME_STEP), integrator="implicitfast")
    return root


def add(parent: ET.Element, tag: str, **values: Any) -> ET.Element:
    """An element with attributes; arrays and numbers as text, None left out."""
    texts = {
        name.rstrip("_"): value if isinstance(value, str) else numbers(value)
        for name, value in values.items()
        if value is not None
    }
    return ET.SubElement(parent, tag, texts)


def orientation(axes: np.ndarray) -> str | None:
    """Quaternion of axes (3, 3), or None for none."""
    return None if np.array_equal(axes, np.eye(3)) else numbers(quaternion_from_matrix(axes))


def document_text(root: ET.Element, differences: Iterable[str]) -> str:
    """The document, with what it does not say as a comment at its head."""
    ET.indent(root)
    said = "\n".join(f"  {each}" for each in differences).replace("--", "- -")
    head = f"<!-- What this model does not say as the robot file does:\n{said}\n-->\n" if said else ""
    return f"{head}{ET.tostring(root, encoding='unicode')}\n"
