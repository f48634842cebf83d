"""Tension laws of members: tension as a function of elongation, for statics, simulation and step sizes.

| law | tension | from |
| --- | --- | --- |
| both ways (bars) | K a | |
| hard | K max(0, a) | 003, 3.2 and 3.16 |
| soft-plus | K (sqrt(a^2 + b^2) + a) / 2 | 003, 3.17 and 3.18 |
| extension spring | F0 + K a from a = 0 on; below it max(0, F0 + 10 K a) | measured F0 and K |

with the elongation a = length - rest length and the smoothness b [m]. A soft-plus string has a small tension while it
is slack: K b / 2 at its rest length, and about K b^2 / (4 |a|) far below it. Its energy is zero at the rest length.

The coils of an extension spring are pressed against each other with the initial tension F0; the spring opens at its
rest length, the length of the closed coils. In the model, closed coils are ten times as stiff as the spring, so that
the tension decreases continuously to zero within F0 / (10 K) below the rest length. This replaces rigid coils, which no
integrator could handle. The energy is zero where the tension begins.
"""

from __future__ import annotations

import numpy as np

from ..numerics.compilation import inlined

BILATERAL, HARD = 0.0, 1.0
"""Numbers of the laws in `Structure.laws`; a soft-plus law is minus its smoothness [m]. So a bool array of the members
that cannot carry compression selects the hard law. An extension spring is one plus F0 / K [m]."""
CLOSED = 10.0
"""Stiffness of closed coils relative to that of the spring."""


def extension_law(initial_tension, stiffness):
    """Number of the law of springs with an initial tension [N]; that of the hard law if it is zero."""
    return HARD + np.asarray(initial_tension, dtype=np.float64) / np.asarray(stiffness, dtype=np.float64)


@inlined
def tension_law(law, stiffness, stretch):
    """Tension [N], its slope [N/m] and elastic energy [J] of a member at an elongation [m]."""
    if law < 0.0:
        root = np.sqrt(stretch * stretch + law * law)
        # for a slack string the sum of root and stretch would cancel
        plus = 0.5 * (root + stretch) if stretch > 0.0 else 0.5 * law * law / (root - stretch)
        energy = 0.5 * stretch * plus - 0.25 * law * law * np.arcsinh(stretch / law)
        return stiffness * plus, stiffness * plus / root, stiffness * energy
    if law > HARD:
        opening = law - HARD  # F0 / K
        if stretch >= 0.0:
            half = 0.5 * stretch * stretch + opening * stretch + 0.5 * opening * opening / CLOSED
            return stiffness * (opening + stretch), stiffness, stiffness * half
        beyond = opening + CLOSED * stretch
        if beyond <= 0.0:
            return 0.0, 0.0, 0.0
        return stiffness * beyond, CLOSED * stiffness, 0.5 * stiffness * beyond * beyond / CLOSED
    if law > 0.0 and stretch <= 0.0:
        return 0.0, 0.0, 0.0
    return stiffness * stretch, stiffness, 0.5 * stiffness * stretch * stretch
