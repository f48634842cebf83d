"""Kernel of the ground contact of mechanisms, called through its address (`numerics.late_call`)."""

from __future__ import annotations

from functools import cache
from typing import Any

import numba
import numpy as np
from numba import types

from ...numerics.compilation import allocation_free, callback
from ...numerics.late_call import WITHOUT_COMPILATION, address_of, call_at, pointer_to
from ..late_kernels import CONTACTS, POINTS
from .columns import CONTACT_COLUMNS, POINT_COLUMNS
from .forces import contact_efforts

TABLE_COLUMNS = 16


@allocation_free
def contacts_by_table(flat, work):
    """Call `contact_efforts` for a mechanism with ground contact, through the address of its kernel."""
    table = work.late_table
    points = flat.late_kernels[POINTS]
    table[0], table[1] = points, (flat.contact.shape[0] - points) * POINT_COLUMNS
    table[2], table[3] = flat.kind.shape[0], flat.dof_parent.shape[0]
    table[4], table[5] = address_of(flat.contact), address_of(flat.contact) + 8 * points * POINT_COLUMNS
    table[6], table[7], table[8] = address_of(work.rotation), address_of(work.position), address_of(work.velocity)
    table[9], table[10], table[11] = address_of(work.jacobian), address_of(flat.v_start), address_of(flat.v_count)
    table[12], table[13] = address_of(flat.parent), address_of(flat.dof_parent)
    table[14], table[15] = address_of(work.contact_state), address_of(work.passive)
    call_at(flat.late_kernels[CONTACTS], table)


def _contacts_without_compilation(flat, work):  # type: ignore[no-untyped-def]
    points = flat.late_kernels[POINTS]
    contact_efforts(
        flat.contact[:points], flat.contact[points:].reshape(-1), work.rotation, work.position, work.velocity,
        work.jacobian, flat.v_start, flat.v_count, flat.parent, flat.dof_parent, work.contact_state, work.passive,
    )  # fmt: skip


call_contacts = _contacts_without_compilation if WITHOUT_COMPILATION else contacts_by_table


def _kernel(table_address):  # type: ignore[no-untyped-def]
    table = numba.carray(pointer_to(table_address), (TABLE_COLUMNS,), np.int64)
    points, numbers, bodies, dofs = table[0], table[1], table[2], table[3]
    contact_efforts(
        numba.carray(pointer_to(table[4]), (points, POINT_COLUMNS), np.float64),
        numba.carray(pointer_to(table[5]), (numbers,), np.float64),
        numba.carray(pointer_to(table[6]), (bodies, 3, 3), np.float64),
        numba.carray(pointer_to(table[7]), (bodies, 3), np.float64),
        numba.carray(pointer_to(table[8]), (bodies, 6), np.float64),
        numba.carray(pointer_to(table[9]), (dofs, 6), np.float64),
        numba.carray(pointer_to(table[10]), (bodies,), np.int64),
        numba.carray(pointer_to(table[11]), (bodies,), np.int64),
        numba.carray(pointer_to(table[12]), (bodies,), np.int64),
        numba.carray(pointer_to(table[13]), (dofs,), np.int64),
        numba.carray(pointer_to(table[14]), (points + 1, CONTACT_COLUMNS), np.float64),
        numba.carray(pointer_to(table[15]), (dofs,), np.float64),
    )


@cache
def _compiled_kernel() -> Any:
    return callback(_kernel, types.int64)


def kernel_address() -> int:
    """Address of the kernel of the ground contact; the first call compiles it or reads it from disk."""
    return 1 if WITHOUT_COMPILATION else int(_compiled_kernel().address)
