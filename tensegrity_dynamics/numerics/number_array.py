"""Arrays of numbers from user input: texts, ragged lists and objects are rejected with a clear message."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..errors import TensegrityError


def number_array(values: object, what: str) -> NDArray[np.float64]:
    """New array of doubles in any shape.

    Args:
        values: user input. what: name and unit of the values, the start of the error message.

    Raises:
        TensegrityError: an entry is not a real number.
    """
    try:
        return np.array(values, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        raise TensegrityError(f"{what} must be real numbers; found {values!r:.200}.") from None
