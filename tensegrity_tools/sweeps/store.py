"""Folder of a sweep: its plan, one file per finished chunk, and the final results.

If the process is killed at any time, only complete chunk files remain.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.saved_file import save_file

from .axes import axis_record
from .samples import COLUMNS, NO_ROBOT, OUT_OF_REACH, REACHED, SweepPlan, actuator_names

VERSION = 1
"""Version of the folder format."""


def plan_record(plan: SweepPlan) -> dict[str, Any]:
    """Plan in JSON types."""
    return {
        "version": VERSION,
        "robot": plan.source,
        "text": plan.text,
        "axes": [axis_record(axis) for axis in plan.axes],
        **{name: getattr(plan, name) for name in ("random", "seed", "chunk", "wrench", "rigid_bars")},
    }


class SweepFolder:
    """Folder with the chunks of one plan.

    Raises:
        TensegrityError: the folder cannot be created, or contains another sweep.
    """

    def __init__(self, folder: Path, plan: SweepPlan) -> None:
        self.folder, self.plan = folder, plan
        self.chunks = folder / "chunks"
        record_of_plan = plan_record(plan)
        try:
            self.chunks.mkdir(parents=True, exist_ok=True)
            record = folder / "sweep.json"
            if record.is_file():
                self._compare(json.loads(record.read_text(encoding="utf-8")), record_of_plan)
            elif any(self.chunks.iterdir()):
                raise TensegrityError(
                    f"{folder} holds chunks of a sweep without its sweep.json; choose another folder."
                )
            else:
                save_file(record, json.dumps(record_of_plan, indent=1))
        except OSError as error:
            raise TensegrityError(f"{folder}: {error.strerror or error}.") from error
        except (ValueError, RecursionError) as error:
            raise TensegrityError(
                f"{folder / 'sweep.json'} is no record of a sweep: {error}. Choose another folder with --out, or "
                "remove it."
            ) from error

    def _compare(self, found: Mapping[str, Any], record_of_plan: Mapping[str, Any]) -> None:
        if not isinstance(found, dict):
            raise ValueError("it is no mapping")
        differing = sorted(name for name in {*found, *record_of_plan} if found.get(name) != record_of_plan.get(name))
        if differing:
            words = ", ".join("the robot file" if name == "text" else name for name in differing)
            raise TensegrityError(
                f"{self.folder} holds another sweep: {words} differ. Choose another folder with --out, or remove it."
            )

    def missing(self) -> list[int]:
        """Numbers of the missing chunks; an unreadable file counts as missing."""
        return [number for number in range(len(self.plan.pieces)) if self._read(number) is None]

    def _path(self, number: int) -> Path:
        return self.chunks / f"{number:06d}.npz"

    def _read(self, number: int) -> dict[str, NDArray] | None:
        path = self._path(number)
        if not path.is_file():
            return None
        _, begin, end = self.plan.pieces[number]
        try:
            with np.load(path, allow_pickle=False) as data:
                result = {name: np.array(data[name]) for name in data.files}
        except Exception:  # any exception of a damaged file: it is computed again
            return None
        return result if self._fits(result, end - begin) else None

    def _fits(self, result: Mapping[str, NDArray], count: int) -> bool:
        """Whether a file contains a chunk with `count` points; False for a file of another version or a foreign
        file."""
        shapes = {
            "figures": (count, len(COLUMNS)), "pose": (count, 7), "positions": (count, len(actuator_names(self.plan))),
            "binding": (count,),
        }  # fmt: skip
        if {name: each.shape for name, each in result.items()} != shapes:
            return False
        if any(each.dtype.kind != ("U" if name == "binding" else "f") for name, each in result.items()):
            return False
        return bool(np.isin(result["figures"][:, 0], (REACHED, OUT_OF_REACH, NO_ROBOT)).all())

    def keep(self, number: int, result: Mapping[str, NDArray]) -> None:
        """Write a finished chunk. Raises TensegrityError if this is impossible."""
        import io

        out = io.BytesIO()
        np.savez(out, **result)  # type: ignore[arg-type]
        save_file(self._path(number), out.getvalue())

    def results(self) -> dict[str, NDArray]:
        """Results of all points in the order of computation; `outer` and `inner` contain the values of the axes.

        Raises:
            TensegrityError: a chunk is missing.
        """
        parts = []
        for number in range(len(self.plan.pieces)):
            part = self._read(number)
            if part is None:
                raise TensegrityError(f"{self._path(number)} is missing: the sweep is not finished. Start it again.")
            parts.append(part)
        points = self.plan.points
        merged = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        merged["outer"] = np.repeat(points.outer, len(points.inner), axis=0)
        merged["inner"] = np.tile(points.inner, (len(points.outer), 1))
        return merged
