"""Calls of compiled functions through their address, bound when a mechanism is built.

What the equations of motion call directly is compiled into everything that moves a mechanism, for every robot. What few
robots need (routed cables, ground) is compiled when the first of them is loaded, and reached through its address with a
table of sizes and addresses, so that the others neither wait for its compilation nor carry its code.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils, config
from numba.extending import intrinsic

WITHOUT_COMPILATION = bool(config.DISABLE_JIT)  # type: ignore[attr-defined]


@intrinsic
def address_of(context, array):  # type: ignore[no-untyped-def]
    """Where an array's numbers begin, as an integer."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        struct = context.make_array(signature.args[0])(context, builder, arguments[0])
        return builder.ptrtoint(struct.data, ir.IntType(64))

    return types.int64(array), generate


@intrinsic
def pointer_to(context, address):  # type: ignore[no-untyped-def]
    """An address as a pointer without a type."""

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
