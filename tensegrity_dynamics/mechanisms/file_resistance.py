"""Reader for joint resistances of a robot file; their units depend on whether the joint rotates or slides."""

from __future__ import annotations

from typing import Any

from ..errors import TensegrityError
from ..robots.file_errors import Problems
from ..robots.units import BaseUnits
from .file_schema import CableBlock, JointBlock, MechanismFile, ResistanceBlock
from .joint_coordinates import JOINT_COORDINATES
from .resistance import Resistance

QUANTITIES: dict[bool, dict[str, str]] = {
    True: {
        "stiffness": "torsional stiffness", "rest": "angle", "damping": "torsional damping", "friction": "torque",
        "friction_speed": "angular speed", "limits": "angle", "stop_stiffness": "torsional stiffness",
        "stop_damping": "torsional damping",
    },
    False: {
        "stiffness": "stiffness", "rest": "length", "damping": "damping", "friction": "force",
        "friction_speed": "speed", "limits": "length", "stop_stiffness": "stiffness", "stop_damping": "damping",
    },
}  # fmt: skip
"""Quantity of each field for rotating (True) and sliding (False) joints."""

Path = tuple[Any, ...]


class ResistanceReader:
    """Reader for resistances in the units of one file; errors are added to `problems` with their field."""

    def __init__(self, block: MechanismFile, problems: Problems) -> None:
        self._problems = problems
        self._units = BaseUnits(block.units.model_dump()).with_parameters(block.parameters)

    def of_joint(self, item: JointBlock, path: Path) -> tuple[Resistance, ...]:
        """One resistance for each coordinate of a tree joint; a single one in the file applies to all of them."""
        given = item.resistance
        if given is None:
            return ()
        count = JOINT_COORDINATES[item.kind].resistances
        if not count:
            allowed = ", ".join(name for name, kind in JOINT_COORDINATES.items() if kind.resistances)
            self._problems.add((*path, "resistance"), f"a {item.kind} joint has none; {allowed} joints have.")
            return ()
        turns = [quantity == "angle" for quantity in JOINT_COORDINATES[item.kind].quantities]
        if not isinstance(given, list):
            if len(set(turns)) > 1:
                self._problems.add(
                    (*path, "resistance"),
                    f"the coordinates of a {item.kind} joint are of different kinds "
                    f"({', '.join(JOINT_COORDINATES[item.kind].quantities)}): give a list of {count}.",
                )
                return ()
            one = self.read(given, turns[0], (*path, "resistance"))
            return () if one is None else (one,) * count
        if len(given) != count:
            self._problems.add(
                (*path, "resistance"),
                f"a {item.kind} joint takes {count}, one for each coordinate; found {len(given)}.",
            )
            return ()
        made = [self.read(each, turns[k], (*path, "resistance", k)) for k, each in enumerate(given)]
        return tuple(each for each in made if each is not None) if None not in made else ()

    def of_cable(self, item: CableBlock, part: str, path: Path) -> Resistance | None:
        """Resistance of the bearing of the "block" or "pulley" of a cable."""
        name = f"{part}_resistance"
        return self.read(getattr(item, name), True, (*path, name))

    def read(self, given: ResistanceBlock | None, turns: bool, path: Path) -> Resistance | None:
        """Resistance law, or None if there is none or it is invalid."""
        if given is None:
            return None
        if given.rest is not None and given.stiffness is None:
            self._problems.add((*path, "rest"), "only a spring has a rest position; give its stiffness, too.")
            return None
        values: dict[str, Any] = {}
        for name, kind in QUANTITIES[turns].items():
            value = getattr(given, name)
            if value is None:
                continue
            parts = value if name == "limits" else [value]
            numbers = []
            for k, part in enumerate(parts):
                where = (*path, name, k) if name == "limits" else (*path, name)
                try:
                    numbers.append(self._units.to_si(part, kind))
                except ValueError as error:
                    self._problems.add(where, f"{error}; found {str(part)[:60]!r}.")
                    return None
            values[name] = (numbers[0], numbers[1]) if name == "limits" else numbers[0]
        try:
            return Resistance(**values)
        except TensegrityError as error:
            self._problems.add(path, str(error))
            return None
