"""Products and substitutions of a few numbers, compiled; for such sizes faster than a call of a library."""

from __future__ import annotations

from tensegrity_dynamics.numerics.compilation import compiled


@compiled
def dot(one, other):  # type: ignore[no-untyped-def]
    """Inner product; for a few numbers faster than a call of a library."""
    total = 0.0
    for i in range(one.shape[0]):
        total += one[i] * other[i]
    return total


@compiled
def add(into, factor, vector):  # type: ignore[no-untyped-def]
    """into += factor vector."""
    for i in range(into.shape[0]):
        into[i] += factor * vector[i]


@compiled
def substitute(upper, count, vector, transposed):  # type: ignore[no-untyped-def]
    """R x = vector, or R' x = vector, in place."""
    for step in range(count):
        i = step if transposed else count - 1 - step
        for other in range(step):
            j = other if transposed else count - 1 - other
            vector[i] -= (upper[j, i] if transposed else upper[i, j]) * vector[j]
        vector[i] /= upper[i, i]
