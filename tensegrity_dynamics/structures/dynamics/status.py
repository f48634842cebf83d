"""How a compiled run of steps ended."""

from __future__ import annotations

DONE, DEPENDENT_BARS, LOST = 0, 1, 2
"""All steps taken; rigid bars whose lengths follow from each other; not finite, or bars that cannot be closed."""
