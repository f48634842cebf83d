"""Entries of `FlatMechanism.late_kernels`: what a mechanism has beyond joints, loops and cables.

Addresses of the kernels (`numerics.late_call`) of routed cables and of the ground, zero where there are none, the number
of places that may touch the ground, and the address of the kernel of routed cables without stretch. One array, since what moves a mechanism hands all of them on in every call.
"""

from __future__ import annotations

ROUTES, CONTACTS, PLACES, RIGID_ROUTES, ENTRIES = range(5)
