"""Entries of `FlatMechanism.late_kernels`: features of a mechanism beyond joints, loops and cables.

The entries are the addresses of the kernels (`numerics.late_call`) of routed cables, of the ground, and of inextensible
routed cables (zero if there are none), the number of points that can touch the ground, and the address of the kernel of
strands with controlled tension (`dynamics.tight_cables`, zero elsewhere). They are in one array, because all compiled
functions pass them on in every call.
"""

from __future__ import annotations

ROUTES, CONTACTS, POINTS, RIGID_ROUTES, HELD_ROUTES, ENTRIES = range(6)
