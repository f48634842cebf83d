"""Fields of the robot file on the stretch of a cable; every kind of cable follows the same law."""

from __future__ import annotations

from typing import Any

from ..robots.file_errors import Problems
from .file_schema import CableBlock, RoutedCableBlock
from .routing.route import MOST_STRAIN

Path = tuple[Any, ...]


def stretch_fits(
    item: CableBlock | RoutedCableBlock, rigid: bool, needed: tuple[str, ...], path: Path, problems: Problems
) -> bool:
    """Whether a cable has what its stretch needs: nothing if it is rigid, else `needed` and a possible strain.

    Args:
        item: cable of the file, whose kind says how it is made rigid. path: of the cable.
    """
    wrong: dict[str, str] = {}
    if rigid:
        given = [name for name in ("young", "strain", "tension") if getattr(item, name, None) is not None]
        wrong |= dict.fromkeys(given, "a rigid cable does not stretch; leave it out.")
        if item.damping:
            wrong["damping"] = "a rigid cable has no strain to be damped; leave it out."
    else:
        say = "variant: rigid" if isinstance(item, CableBlock) else "rigid: true"
        missing = [name for name in needed if getattr(item, name) is None]
        wrong |= dict.fromkeys(missing, f"a cable that stretches needs it; or say {say}.")
        strain = item.strain or 0.0
        if not strain > -1.0:
            wrong["strain"] = f"a strain is above -1; found {strain:g}."
        elif strain > MOST_STRAIN:
            wrong["strain"] = (
                f"no cable starts stretched by {100.0 * strain:.3g} %; give a strain of at most {MOST_STRAIN:g}."
            )
    for name, message in wrong.items():
        problems.add((*path, name), message)
    return not wrong
