"""Calls of compiled functions through their address, which is set when a mechanism is created.

Functions that the equations of motion call directly are compiled into all functions that move a mechanism, for every
robot. Functions that few robots need (routed cables, ground) are compiled when the first such robot is loaded, and are
called through their address with a table of sizes and addresses. So other robots need neither the compilation time nor
the code.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils, config
from numba.extending import intrinsic

WITHOUT_COMPILATION = bool(config.DISABLE_JIT)  # type: ignore[attr-defined]


@intrinsic
def address_of(context, array):  # type: ignore[no-untyped-def]
    """Address of the data of an array, as an integer."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        struct = context.make_array(signature.args[0])(context, builder, arguments[0])
        return builder.ptrtoint(struct.data, ir.IntType(64))

    return types.int64(array), generate


@intrinsic
def pointer_to(context, address):  # type: ignore[no-untyped-def]
    """Untyped pointer from an address."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(types.int64), generate


@intrinsic
def call_at(context, address, table):  # type: ignore[no-untyped-def]
    """Call the function at an address with an array of integers."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        kind = ir.FunctionType(ir.VoidType(), [ir.IntType(64)])
        struct = context.make_array(signature.args[1])(context, builder, arguments[1])
        function = builder.inttoptr(arguments[0], kind.as_pointer())
        builder.call(function, [builder.ptrtoint(struct.data, ir.IntType(64))])
        return context.get_dummy_value()

    return types.void(types.int64, table), generate
