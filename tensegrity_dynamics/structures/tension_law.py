"""How the tension of a member follows from its stretch: one law for statics, simulation and step sizes.

| law | tension | from |
| --- | --- | --- |
| both ways (bars) | K a | |
| hard | K max(0, a) | 003, 3.2 and 3.16 |
| soft-plus | K (sqrt(a^2 + b^2) + a) / 2 | 003, 3.17 and 3.18 |

with the stretch a = length - rest length and the smoothness b [m]. A soft-plus string pulls a little while it is slack,
K b / 2 at its rest length and about K b^2 / (4 |a|) far below it; its energy is counted from the rest length on, where
it is zero.
"""

from __future__ import annotations

import numpy as np

from ..numerics.compilation import allocation_free

BOTH_WAYS, HARD = 0.0, 1.0
"""Numbers of the laws in `Structure.laws`; soft-plus is minus its smoothness [m]. An array that only says which members
cannot push (bool) therefore means the hard law."""


@allocation_free
def tension_law(law, stiffness, stretch):
    """Tension [N], its slope [N/m] and the stored energy [J] of a member at a stretch [m]."""
    if law < 0.0:
        root = np.sqrt(stretch * stretch + law * law)
        # where the string is slack the sum of root and stretch would cancel
        plus = 0.5 * (root + stretch) if stretch > 0.0 else 0.5 * law * law / (root - stretch)
        energy = 0.5 * stretch * plus - 0.25 * law * law * np.arcsinh(stretch / law)
        return stiffness * plus, stiffness * plus / root, stiffness * energy
    if law > 0.0 and stretch <= 0.0:
        return 0.0, 0.0, 0.0
    return stiffness * stretch, stiffness, 0.5 * stiffness * stretch * stretch
