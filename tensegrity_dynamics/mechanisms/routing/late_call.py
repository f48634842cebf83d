"""The kernel of routed cables, called through its address (`numerics.late_call`)."""

from __future__ import annotations

from functools import cache
from typing import Any

import numba
import numpy as np
from numba import types

from ...numerics.compilation import allocation_free, callback, compiled_part, for_compiled_callers
from ...numerics.late_call import WITHOUT_COMPILATION, address_of, call_at, pointer_to
from ..late_kernels import HELD_ROUTES, RIGID_ROUTES, ROUTES
from .columns import CABLE_COLUMNS, ELEMENT_COLUMNS, RESULT_COLUMNS, STATE_COLUMNS, TABLE_COLUMNS
from .efforts import routed_efforts
from .held_rows import held_rows
from .rigid_rows import rigid_rows


@for_compiled_callers
def fill_table(table, flat, q, v, work):
    """Fill the arguments of all kernels: sizes, cables, state and bodies; entry 19 is the array that a kernel fills."""
    table[0], table[1] = flat.route_elements.shape[0], flat.routed_cables.shape[0]
    table[2], table[3], table[4] = flat.kind.shape[0], flat.dof_parent.shape[0], q.shape[0]
    table[5], table[6] = address_of(flat.route_elements), address_of(flat.routed_cables)
    table[7], table[8] = address_of(q), address_of(v)
    table[9], table[10], table[11] = address_of(work.rotation), address_of(work.position), address_of(work.velocity)
    table[12], table[13], table[14] = address_of(work.jacobian), address_of(flat.v_start), address_of(flat.v_count)
    table[15], table[16] = address_of(flat.parent), address_of(flat.dof_parent)
    table[17], table[18] = address_of(work.route_state), address_of(work.route_results)
    table[20], table[21] = address_of(work.axes), address_of(flat.gravity)


@compiled_part  # `allocation_free` returns no arrays
def filled_arrays(table):
    """The arrays of `fill_table`, in the order of its entries from 5 on, without entry 19."""
    elements, cables, bodies, dofs, positions = table[0], table[1], table[2], table[3], table[4]
    return (
        numba.carray(pointer_to(table[5]), (elements, ELEMENT_COLUMNS), np.float64),
        numba.carray(pointer_to(table[6]), (cables, CABLE_COLUMNS), np.float64),
        numba.carray(pointer_to(table[7]), (positions,), np.float64),
        numba.carray(pointer_to(table[8]), (dofs,), np.float64),
        numba.carray(pointer_to(table[9]), (bodies, 3, 3), np.float64),
        numba.carray(pointer_to(table[10]), (bodies, 3), np.float64),
        numba.carray(pointer_to(table[11]), (bodies, 6), np.float64),
        numba.carray(pointer_to(table[12]), (dofs, 6), np.float64),
        numba.carray(pointer_to(table[13]), (bodies,), np.int64),
        numba.carray(pointer_to(table[14]), (bodies,), np.int64),
        numba.carray(pointer_to(table[15]), (bodies,), np.int64),
        numba.carray(pointer_to(table[16]), (dofs,), np.int64),
        numba.carray(pointer_to(table[17]), (elements, STATE_COLUMNS), np.float64),
        numba.carray(pointer_to(table[18]), (cables, RESULT_COLUMNS), np.float64),
        numba.carray(pointer_to(table[20]), (3, 3), np.float64),
        numba.carray(pointer_to(table[21]), (3,), np.float64),
    )


@allocation_free
def routed_cables_by_table(flat, q, v, work):
    """Call `routed_efforts` for a mechanism with routed cables, through the address of its kernel."""
    table = work.late_table
    fill_table(table, flat, q, v, work)
    table[19] = address_of(work.passive)
    call_at(flat.late_kernels[ROUTES], table)


def _routed_cables_without_compilation(flat, q, v, work):  # type: ignore[no-untyped-def]
    routed_efforts(
        flat.route_elements, flat.routed_cables, q, v, work.rotation, work.position, work.velocity, work.jacobian,
        flat.v_start, flat.v_count, flat.parent, flat.dof_parent, flat.gravity, work.route_state, work.route_results,
        work.passive, work.axes,
    )  # fmt: skip


call_routed_cables = _routed_cables_without_compilation if WITHOUT_COMPILATION else routed_cables_by_table


def _kernel(table_address):  # type: ignore[no-untyped-def]
    table = numba.carray(pointer_to(table_address), (TABLE_COLUMNS,), np.int64)
    (
        elements, cables, q, v, rotation, position, velocity, jacobian, v_start, v_count, parent, dof_parent, state,
        results, axes, gravity,
    ) = filled_arrays(table)  # fmt: skip
    passive = numba.carray(pointer_to(table[19]), (table[3],), np.float64)
    routed_efforts(
        elements, cables, q, v, rotation, position, velocity, jacobian, v_start, v_count, parent, dof_parent, gravity,
        state, results, passive, axes,
    )  # fmt: skip


@cache
def _compiled_kernel() -> Any:
    return callback(_kernel, types.int64)


def kernel_address() -> int:
    """Address of the kernel of routed cables; the first call compiles it or reads it from disk."""
    return 1 if WITHOUT_COMPILATION else int(_compiled_kernel().address)


@allocation_free
def rigid_rows_by_table(flat, q, v, work):
    """Call `rigid_rows` for a mechanism with inextensible routed cables, through the address of its kernel."""
    table = work.late_table
    fill_table(table, flat, q, v, work)
    table[19] = address_of(work.loop)
    table[22], table[23] = address_of(work.acceleration), address_of(work.three)
    table[24], table[25] = address_of(work.loop_bias), address_of(work.loop_error)
    table[26] = work.loop_error.shape[0]
    call_at(flat.late_kernels[RIGID_ROUTES], table)


def _rigid_rows_without_compilation(flat, q, v, work):  # type: ignore[no-untyped-def]
    rigid_rows(
        flat.route_elements, flat.routed_cables, q, v, work.rotation, work.position, work.velocity, work.acceleration,
        work.jacobian, flat.v_start, flat.v_count, flat.parent, flat.dof_parent, flat.gravity, work.route_state,
        work.route_results, work.axes, work.three, work.loop, work.loop_bias, work.loop_error,
    )  # fmt: skip


call_rigid_rows = _rigid_rows_without_compilation if WITHOUT_COMPILATION else rigid_rows_by_table


def _rigid_kernel(table_address):  # type: ignore[no-untyped-def]
    table = numba.carray(pointer_to(table_address), (TABLE_COLUMNS,), np.int64)
    (
        elements, cables, q, v, rotation, position, velocity, jacobian, v_start, v_count, parent, dof_parent, state,
        results, axes, gravity,
    ) = filled_arrays(table)  # fmt: skip
    bodies, dofs, held = table[2], table[3], table[26]
    acceleration = numba.carray(pointer_to(table[22]), (bodies, 6), np.float64)
    three = numba.carray(pointer_to(table[23]), (3,), np.float64)
    loop = numba.carray(pointer_to(table[19]), (held, dofs), np.float64)
    loop_bias = numba.carray(pointer_to(table[24]), (held,), np.float64)
    loop_error = numba.carray(pointer_to(table[25]), (held,), np.float64)
    rigid_rows(
        elements, cables, q, v, rotation, position, velocity, acceleration, jacobian, v_start, v_count, parent,
        dof_parent, gravity, state, results, axes, three, loop, loop_bias, loop_error,
    )  # fmt: skip


@cache
def _compiled_rigid_kernel() -> Any:
    return callback(_rigid_kernel, types.int64)


def rigid_kernel_address() -> int:
    """Address of the kernel of inextensible routed cables; the first call compiles it or reads it from disk."""
    return 1 if WITHOUT_COMPILATION else int(_compiled_rigid_kernel().address)


@allocation_free
def held_rows_by_table(flat, strands, q, v, work, rows, pulls, bias, efforts):
    """Call `held_rows` for a mechanism with routed cables, through the address of its kernel."""
    table = work.late_table
    fill_table(table, flat, q, v, work)
    table[19] = address_of(efforts)
    table[22], table[23] = address_of(work.acceleration), address_of(work.three)
    table[24], table[25], table[26] = address_of(rows), address_of(pulls), address_of(bias)
    table[27], table[28] = address_of(strands), strands.shape[0]
    call_at(flat.late_kernels[HELD_ROUTES], table)


def _held_rows_without_compilation(flat, strands, q, v, work, rows, pulls, bias, efforts):  # type: ignore[no-untyped-def]
    held_rows(
        flat.route_elements, flat.routed_cables, strands, work.velocity, work.acceleration, work.jacobian, flat.v_start,
        flat.v_count, flat.parent, flat.dof_parent, flat.gravity, work.route_state, work.route_results, work.axes,
        work.three, rows, pulls, bias, efforts,
    )  # fmt: skip


call_held_rows = _held_rows_without_compilation if WITHOUT_COMPILATION else held_rows_by_table


def _held_kernel(table_address):  # type: ignore[no-untyped-def]
    table = numba.carray(pointer_to(table_address), (TABLE_COLUMNS,), np.int64)
    (
        elements, cables, _, _, _, _, velocity, jacobian, v_start, v_count, parent, dof_parent, state, results, axes,
        gravity,
    ) = filled_arrays(table)  # fmt: skip
    bodies, dofs, count = table[2], table[3], table[28]
    strands = numba.carray(pointer_to(table[27]), (count, 2), np.int64)
    acceleration = numba.carray(pointer_to(table[22]), (bodies, 6), np.float64)
    three = numba.carray(pointer_to(table[23]), (3,), np.float64)
    rows = numba.carray(pointer_to(table[24]), (count, dofs), np.float64)
    pulls = numba.carray(pointer_to(table[25]), (count, dofs), np.float64)
    bias = numba.carray(pointer_to(table[26]), (count,), np.float64)
    efforts = numba.carray(pointer_to(table[19]), (dofs,), np.float64)
    held_rows(
        elements, cables, strands, velocity, acceleration, jacobian, v_start, v_count, parent, dof_parent, gravity,
        state, results, axes, three, rows, pulls, bias, efforts,
    )  # fmt: skip


@cache
def _compiled_held_kernel() -> Any:
    return callback(_held_kernel, types.int64)


def held_kernel_address() -> int:
    """Address of the kernel of strands with controlled tension; the first call compiles it or reads it from disk."""
    return 1 if WITHOUT_COMPILATION else int(_compiled_held_kernel().address)
