"""Arrays of numbers from what a user gives: texts, ragged lists and objects are refused by one sentence."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..errors import TensegrityError


def number_array(values: object, what: str) -> NDArray[np.float64]:
    """A new array of doubles in any shape; what: what it is and in which unit, the start of the sentence.

    Raises:
        TensegrityError: something in it is no real number.
    """
    try:
        return np.array(values, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        raise TensegrityError(f"{what} must be real numbers; found {values!r:.200}.") from None
