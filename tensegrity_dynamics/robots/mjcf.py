"""Common parts of the exports to MuJoCo's XML (MJCF) for all kinds of robots: document, number format, differences.

Parts of a robot that MJCF does not support are omitted or approximated, and listed in `Export.differences`.
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
"""Mass of massless bodies in MuJoCo, relative to the total mass, because MuJoCo needs a mass. These bodies have no
weight there."""
TIME_STEP = 1e-4
"""Time step [s] for stiff cables, because MuJoCo integrates tendons explicitly."""
SLACK_OFFSET = 100.0
"""Length [m] added to the elongation of a cable, so that slack cables have a positive length, which spring ranges
require."""


@dataclass(frozen=True)
class Export:
    """Robot in another format.

    Attributes:
        text: document. differences: sentences on unsupported features of the robot and their replacements.
        files: contents of the files that the document refers to, by path relative to its directory.
    """

    text: str
    differences: tuple[str, ...]
    files: Mapping[str, bytes] = field(default_factory=dict, kw_only=True)

    def write(self, out: Path) -> None:
        """Write the document and the files that it refers to. Raises TensegrityError if writing fails."""
        self.write_files(out.parent)
        save_file(out, self.text)

    def write_files(self, folder: Path) -> None:
        """Write the files that the document refers to below a directory. Raises TensegrityError if writing fails."""
        for name, content in self.files.items():
            try:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise TensegrityError(f"cannot write {folder / name}: {error.strerror or error}.") from error
            save_file(folder / name, content)


def numbers(values: ArrayLike) -> str:
    """Numbers as text without loss of precision."""
    return " ".join(f"{value + 0.0:.17g}" for value in np.ravel(np.asarray(values, dtype=np.float64)))


def new_document(name: str, gravity: ArrayLike) -> ET.Element:
    """Root element of a document with its options."""
    root = ET.Element("mujoco", model=name)
    ET.SubElement(root, "compiler", angle="radian", autolimits="true")
    ET.SubElement(root, "option", gravity=numbers(gravity), timestep=numbers(TIME_STEP), integrator="implicitfast")
    return root


def add(parent: ET.Element, tag: str, **values: Any) -> ET.Element:
    """Add an element with attributes; arrays and numbers are written as text, None is omitted."""
    texts = {
        name.rstrip("_"): value if isinstance(value, str) else numbers(value)
        for name, value in values.items()
        if value is not None
    }
    return ET.SubElement(parent, tag, texts)


def orientation(axes: np.ndarray) -> str | None:
    """Quaternion of axes (3, 3) as text; None for the identity."""
    return None if np.array_equal(axes, np.eye(3)) else numbers(quaternion_from_matrix(axes))


def document_text(root: ET.Element, differences: Iterable[str]) -> str:
    """Text of the document, with the differences as a comment at its start."""
    ET.indent(root)
    said = "\n".join(f"  {each}" for each in differences).replace("--", "- -")
    head = f"<!-- What this model does not say as the robot file does:\n{said}\n-->\n" if said else ""
    return f"{head}{ET.tostring(root, encoding='unicode')}\n"
