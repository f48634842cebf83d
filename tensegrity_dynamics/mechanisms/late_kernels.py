"""Entries of `FlatMechanism.late_kernels`: what a mechanism has beyond joints, loops and cables.

Addresses of the kernels (`numerics.late_call`) of routed cables, of the ground, and of routed cables without stretch,
zero where there are none, the number of points that may touch the ground, and the address of the kernel of strands that
control holds (`dynamics.tight_cables`, zero elsewhere). One array, since what moves a mechanism hands all of them on in
every call.
"""

from __future__ import annotations

ROUTES, CONTACTS, POINTS, RIGID_ROUTES, HELD_ROUTES, ENTRIES = range(6)
