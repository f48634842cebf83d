"""The one place that knows how hot functions are compiled (numba, cached on disk, without the interpreter lock)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compile `function` on first use and keep the machine code on disk for the next process."""
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # a read-only installation and a home that cannot be written: nowhere to keep it
        return numba.njit(**options)(function)
