"""Compilation of hot functions by numba: cached on disk, without the interpreter lock."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from types import CodeType
from typing import Any, TypeVar

import numba
import numpy as np
from numba.core.ccallback import CFunc
from numba.core.imputils import impl_ret_borrowed
from numba.extending import NativeValue, intrinsic, models, overload, register_model, typeof_impl, unbox
from numba.np import arrayobj

PartCompiler: Any = None
"""Compiler of functions that only compiled functions call; None if this version of numba does not support it."""
with suppress(ImportError):
    from .code_of_parts import PartCompiler

Function = TypeVar("Function", bound=Callable[..., Any])

PLAIN = bool(getattr(numba.config, "DISABLE_JIT", 0))
"""Whether compilation is switched off."""

_stamps: dict[int, str] = {}  # by id of the compiled function; the functions live as long as their modules
_kept: list[Any] = []  # functions that numba keeps on disk


def _refuse_shapes(source: Any, target: Any) -> None:
    raise NotImplementedError


@overload(_refuse_shapes)
def _refuse_shapes_compiled(source: Any, target: Any) -> Callable[..., None]:
    def refuse(source: Any, target: Any) -> None:
        raise ValueError("an array is assigned to a slice of another shape")

    return refuse


# numba's own message contains both shapes. Its code takes 40 functions, which every process compiles again, in every
# function that assigns slices.
if hasattr(arrayobj, "raise_with_shape_context"):
    arrayobj.raise_with_shape_context = _refuse_shapes


def compiled(function: Function) -> Function:
    """Compile `function` on first use and keep the machine code on disk for the next process."""
    # no wrapper for calls from C, which are not used (see `callback`)
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
    try:
        result = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # a read-only installation and a read-only home: no place for the cache
        return numba.njit(**options)(function)
    _ignore_literals(result)
    _follow_callees(function, result)
    return result


def allocation_free(function: Function) -> Function:
    """Compile a function that allocates no array; compilation fails if it does.

    Without allocations, references to arrays need not be counted. For the tuples of a mechanism (about a hundred
    arrays, atomically, in every function) this counting takes longer than the computation. Such a function may not
    return arrays, nor assign one array to a slice of another. All functions that it calls must be free of allocations,
    too, since they are compiled by the same rules.
    """
    result = compiled(function)
    options = getattr(result, "targetoptions", None)
    if options is not None:  # otherwise compilation is switched off
        options["_nrt"] = False
    return result


def for_compiled_callers(function: Function) -> Function:
    """As `allocation_free`, for a function that Python rarely calls; this saves half of its compilation.

    That half unpacks about a hundred arrays from Python's arguments. It is compiled at the first call from Python.
    """
    return _without_wrapper(function, allocation_free(function))


def compiled_part(function: Function) -> Function:
    """As `compiled`, for a function that Python rarely calls; see `for_compiled_callers`."""
    return _without_wrapper(function, compiled(function))


def _without_wrapper(function: Any, result: Any) -> Any:
    """Compile `result` without the code that unpacks arguments from Python, and handle calls from Python separately."""
    options = getattr(result, "targetoptions", None)
    pieces = ("_compiler", "add_overload", "_compile_for_args")
    if options is None or PartCompiler is None or not all(hasattr(result, each) for each in pieces):
        return result  # compilation is switched off, or another version of numba: an ordinary function
    make_whole = cache(partial(numba.jit(**options), function))  # not on disk, where both would have the same key

    def call_from_python(*arguments: Any) -> Any:
        return make_whole()._compile_for_args(*arguments)

    def keep(made: Any) -> None:  # calls from Python do not find it, since it has no entry for them
        result.overloads[tuple(made.signature.args)] = made

    options["no_cpython_wrapper"] = True
    result._compiler.pipeline_class = PartCompiler
    result.add_overload = keep
    result._compile_for_args = call_from_python
    store = getattr(getattr(result, "_cache", None), "_cache_file", None)
    if store is not None:  # the cache must distinguish versions with and without an entry for Python
        store._source_stamp += " for compiled callers"
    return result


class QuickCall:
    """Compiled function for one caller, whose arguments always have the types of its first call.

    In every call numba checks the type of every array of every argument, about 250 for a mechanism and its workspace,
    which takes several times as long as passing them. Here the types are checked once, at the first call. Use it for
    the caller's own arrays and for numbers, and make other arrays contiguous before the call.

    Args:
        function: compiled function.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._entry: Callable[..., Any] | None = None

    def __call__(self, *arguments: Any) -> Any:
        """Call the function."""
        if self._entry is None:
            self._entry = self._find(arguments)
        return self._entry(*arguments)

    @property
    def is_compiled(self) -> bool:
        """Whether the function was called before, so that the next call does not wait for a compilation."""
        return self._entry is not None

    def _find(self, arguments: tuple[Any, ...]) -> Callable[..., Any]:
        compile_for = getattr(self._function, "compile", None)
        if compile_for is None:  # compilation is switched off
            return self._function
        types = tuple(numba.types.unliteral(numba.typeof(each)) for each in arguments)
        compile_for(types)
        found = self._function.overloads[types]  # type: ignore[attr-defined]
        return found.entry_point  # type: ignore[no-any-return]

    def __reduce__(self) -> tuple[Any, ...]:
        return QuickCall, (self._function,)

    def __deepcopy__(self, _: Any) -> QuickCall:
        return QuickCall(self._function)


def callback(function: Callable[..., None], *types: Any) -> Any:
    """Compile a function of numbers for calls by its address (attribute `address`), at once, and keep it on disk.

    Args:
        function: returns nothing. types: numba types of its arguments.
    """
    options = {"error_model": "numpy", "nogil": True}
    made: Any = CFunc(function, (types, numba.types.void), locals={}, options=options)
    try:
        made.enable_caching()
        made._cache._cache_file._source_stamp = _stamp(function)
    except (RuntimeError, AttributeError):  # no place for the cache, as above, or another version of numba
        made = CFunc(function, (types, numba.types.void), locals={}, options=options)
    made.compile()
    return made


def inlined(function: Function) -> Function:
    """As `allocation_free`, for parts of a computation; their code is inserted into that of their callers.

    A mechanism is passed as about a hundred arrays, and every call copies their shape, strides and address. For
    functions with one or two call sites in the innermost loops, this copying takes a fifth of the time.
    """
    result = allocation_free(function)
    options = getattr(result, "targetoptions", None)
    if options is not None:
        options["forceinline"] = True
    return result


def inlined_part(function: Function) -> Function:
    """As `inlined`, for a function that Python rarely calls; see `for_compiled_callers`."""
    return _without_wrapper(function, inlined(function))


def _ignore_literals(result: Any) -> None:
    """Compile once for all literal values of a type, such as True and False.

    By default numba compiles a function, with all that it calls, again for each constant that compiled callers pass.
    """
    template = getattr(result, "get_call_template", None)
    if template is None:  # compilation is switched off
        return

    def without_literals(arguments: tuple, keywords: dict) -> tuple:
        types = tuple(numba.types.unliteral(each) for each in arguments)
        return template(types, {name: numba.types.unliteral(each) for name, each in keywords.items()})

    result.get_call_template = without_literals


def _follow_callees(function: Any, result: Any) -> None:
    """Keep cached machine code valid exactly until the function or anything compiled into it changes.

    numba checks the time stamp of the function's own file: it would use old code after a change in another file, and
    compile everything again after a fresh checkout or a changed comment. Here the stamp is the function's content,
    with the stamps of all functions that it calls and the constants that it reads.
    """
    store = getattr(getattr(result, "_cache", None), "_cache_file", None)
    if store is None:  # compilation is switched off, or a numba version with another cache
        return
    _stamps[id(result)] = store._source_stamp = _stamp(function)
    _kept.append(result)
    store._load_index = partial(_readable, store._load_index)
    result._cache._index_key = partial(_key_with_fields, result._cache._index_key)


def _stamp(function: Any) -> str:
    """Content of a function, with the stamps of all functions that it calls and the constants that it reads."""
    code = function.__code__
    digest = hashlib.sha256(_meaning(code).encode())
    for name in sorted(code.co_names):
        value = function.__globals__.get(name)
        if id(value) in _stamps:
            digest.update(f"{name}={_stamps[id(value)]};".encode())
        elif isinstance(value, (bool, int, float, str, tuple, np.generic)):
            digest.update(f"{name}={value!r};".encode())
        elif isinstance(value, np.ndarray):
            digest.update(name.encode() + value.tobytes())
    return digest.hexdigest()


def _readable(load: Callable[[], dict]) -> dict:
    """The compiled versions in a cache; empty if it refers to a tuple that no longer exists, so that it is replaced."""
    try:
        return load()
    except (AttributeError, ImportError):
        return {}


def _key_with_fields(key: Callable[..., tuple], signature: tuple, codegen: Any) -> tuple:
    """Key of a compiled version with the field names of the named tuples among the arguments.

    numba compares the types of the entries, not their names: two arrays that exchange their order would be confused.
    """
    return *key(signature, codegen), tuple(map(_fields, signature))


def _fields(kind: Any) -> Any:
    """Field names of a named tuple's type, and of those nested in it."""
    within = getattr(kind, "field_dict", None)
    if within is not None:
        return tuple((name, _fields(each)) for name, each in within.items())
    return getattr(kind, "fields", None)


def _meaning(code: CodeType) -> str:
    """Instructions, names and constants of a function, without line numbers and file name."""
    constants = (_meaning(each) if isinstance(each, CodeType) else repr(each) for each in code.co_consts)
    return repr((code.co_code, code.co_names, code.co_varnames, code.co_freevars, *constants))


class Kept:
    """Constant arguments of compiled functions: unpacked once, and passed by their address.

    Unpacking an array takes 40 ns per call, for all arrays a third of the time for the equations of a mechanism. A
    compiled function reads the arguments of a `Kept` by `taken`. Arrays are shared; numbers keep their initial values.

    Args:
        values: arrays, numbers, and tuples of them.
    """

    def __init__(self, *values: Any) -> None:
        self.values = values
        if not PLAIN:
            self._memory = np.zeros(int(_hand_over(0, values)), dtype=np.uint8)
            self.address = int(self._memory.ctypes.data)
            _hand_over(self.address, values)

    def __reduce__(self) -> tuple[Any, ...]:
        return Kept, self.values


class KeptType(numba.types.Type):
    """numba's type of a `Kept` with values of given types."""

    def __init__(self, values: Any) -> None:
        self.values = values
        super().__init__(f"kept({values.name})")

    @property
    def fields(self) -> tuple:
        """Field names of the nested named tuples."""
        return tuple(map(_fields, self.values.types))


register_model(KeptType)(models.OpaqueModel)


@typeof_impl.register(Kept)
def _typeof_kept(value: Kept, context: Any) -> KeptType:
    return KeptType(numba.typeof(value.values))


@unbox(KeptType)
def _unbox_kept(kind: KeptType, value: Any, context: Any) -> NativeValue:
    address = context.pyapi.object_getattr_string(value, "address")
    found = context.pyapi.long_as_voidptr(address)
    context.pyapi.decref(address)
    return NativeValue(found)


@intrinsic
def _store(typing_context: Any, address: Any, values: Any) -> Any:
    """Write values to an address, unless it is 0; return their size in bytes."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = context.get_value_type(signature.args[1])
        with builder.if_then(builder.icmp_unsigned("!=", arguments[0], arguments[0].type(0))):
            builder.store(arguments[1], builder.inttoptr(arguments[0], kind.as_pointer()), align=8)
        return context.get_constant(numba.types.int64, context.get_abi_sizeof(kind))

    return numba.types.int64(numba.types.int64, values), generate


@intrinsic
def _load(typing_context: Any, kept: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = context.get_value_type(signature.return_type)
        found = builder.load(builder.bitcast(arguments[0], kind.as_pointer()), align=8)
        return impl_ret_borrowed(context, builder, signature.return_type, found)

    return kept.values(kept), generate


def _taken_without_compilation(kept: Kept) -> tuple:
    return kept.values


taken = _taken_without_compilation if PLAIN else _load
"""In a compiled function: the values of a `Kept`."""


@allocation_free
def _hand_over(address: int, values: tuple) -> int:
    return _store(address, values)  # type: ignore[call-arg, return-value]


def kept_in() -> Path | None:
    """Folder of numba's cache of machine code; None if there is none."""
    path = getattr(getattr(_hand_over, "stats", None), "cache_path", None)
    return Path(path) if path else None


def used_kernels() -> dict[Path, str]:
    """Compiled functions that this process has used: by index file of their machine code, the stamp in it."""
    stores = [each._cache._cache_file for each in _kept if each.overloads]
    return {Path(store._index_path): store._source_stamp for store in stores}
