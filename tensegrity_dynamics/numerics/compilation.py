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
"""Compiles functions that only compiled functions call; None with a numba that lacks what it stands on."""
with suppress(ImportError):
    from .code_of_parts import PartCompiler

Function = TypeVar("Function", bound=Callable[..., Any])

PLAIN = bool(getattr(numba.config, "DISABLE_JIT", 0))
"""Whether compilation is switched off."""

_stamps: dict[int, str] = {}  # by id of the compiled function, all of which live as long as their modules
_kept: list[Any] = []  # those that numba keeps on disk


def _refuse_shapes(source: Any, target: Any) -> None:
    raise NotImplementedError


@overload(_refuse_shapes)
def _refuse_shapes_compiled(source: Any, target: Any) -> Callable[..., None]:
    def refuse(source: Any, target: Any) -> None:
        raise ValueError("an array is assigned to a slice of another shape")

    return refuse


# numba's own sentence tells both shapes. The texts for it take 40 functions, which every process compiles anew, into
# every function that assigns slices.
if hasattr(arrayobj, "raise_with_shape_context"):
    arrayobj.raise_with_shape_context = _refuse_shapes


def compiled(function: Function) -> Function:
    """Compile `function` on first use and keep the machine code on disk for the next process."""
    # no wrapper for calls from C: nobody makes any (`callback` is for that)
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
    try:
        result = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # a read-only installation and a home that cannot be written: nowhere to keep it
        return numba.njit(**options)(function)
    _ignore_literals(result)
    _follow_callees(function, result)
    return result


def allocation_free(function: Function) -> Function:
    """Compile a function that allocates no array, or fail at its compilation.

    Without allocations no references to arrays need to be counted. The counting of what stands in the tuples of a
    mechanism (some hundred arrays, atomically, in every function) takes longer than the sweeps themselves. Such a
    function may not return arrays either, nor assign one array to a slice of another, and whatever it calls must be
    free of allocations, too: what is compiled on its behalf is compiled by its rules.
    """
    result = compiled(function)
    options = getattr(result, "targetoptions", None)
    if options is not None:  # else compilation is switched off
        options["_nrt"] = False
    return result


def for_compiled_callers(function: Function) -> Function:
    """As `allocation_free`, for a function that Python hardly ever calls, which spares half of its compilation.

    That half reads some hundred arrays out of the arguments as Python hands them over. A call from Python compiles it.
    """
    return _without_wrapper(function, allocation_free(function))


def compiled_part(function: Function) -> Function:
    """As `compiled`, for a function that Python hardly ever calls; see `for_compiled_callers`."""
    return _without_wrapper(function, compiled(function))


def _without_wrapper(function: Any, result: Any) -> Any:
    """Compile `result` without what takes the arguments of a call from Python, and see to such calls apart."""
    options = getattr(result, "targetoptions", None)
    pieces = ("_compiler", "add_overload", "_compile_for_args")
    if options is None or PartCompiler is None or not all(hasattr(result, each) for each in pieces):
        return result  # compilation is switched off, or another numba: as any other function
    make_whole = cache(partial(numba.jit(**options), function))  # not on disk, where both would be one

    def call_from_python(*arguments: Any) -> Any:
        return make_whole()._compile_for_args(*arguments)

    def keep(made: Any) -> None:  # where no call from Python finds it, as it has no entry for one
        result.overloads[tuple(made.signature.args)] = made

    options["no_cpython_wrapper"] = True
    result._compiler.pipeline_class = PartCompiler
    result.add_overload = keep
    result._compile_for_args = call_from_python
    store = getattr(getattr(result, "_cache", None), "_cache_file", None)
    if store is not None:  # what was kept of the same function with an entry for Python, or without one, is another one
        store._source_stamp += " for compiled callers"
    return result


class QuickCall:
    """A compiled function for one caller, whose arguments always have the types of its first call.

    numba looks at the type of every array of every argument in every call, some 250 of a mechanism and its workspace,
    which takes several times as long as to hand them over. Here it has looked once. Nothing looks at the types
    afterwards: take it for arrays of one's own and for numbers, and make arrays of others contiguous before.

    Args:
        function: that is compiled.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._entry: Callable[..., Any] | None = None

    def __call__(self, *arguments: Any) -> Any:
        """As the function itself."""
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
        function: which returns nothing. types: numba's, of its arguments.
    """
    options = {"error_model": "numpy", "nogil": True}
    made: Any = CFunc(function, (types, numba.types.void), locals={}, options=options)
    try:
        made.enable_caching()
        made._cache._cache_file._source_stamp = _stamp(function)
    except (RuntimeError, AttributeError):  # nowhere to keep it, as above, or a numba that keeps it elsewhere
        made = CFunc(function, (types, numba.types.void), locals={}, options=options)
    made.compile()
    return made


def inlined(function: Function) -> Function:
    """As `allocation_free`, for parts of a sweep: their code stands within that of their callers.

    A mechanism is passed as some hundred arrays, of which every call copies shape, strides and address. For what is
    called from one or two calls in the innermost loops this copying takes a fifth of the time.
    """
    result = allocation_free(function)
    options = getattr(result, "targetoptions", None)
    if options is not None:
        options["forceinline"] = True
    return result


def inlined_part(function: Function) -> Function:
    """As `inlined`, for a function that Python hardly ever calls; see `for_compiled_callers`."""
    return _without_wrapper(function, inlined(function))


def _ignore_literals(result: Any) -> None:
    """Compile once for all numbers of a type that callers write out, such as True and False.

    numba compiles a function anew for every constant that a compiled caller passes, with all that it calls.
    """
    template = getattr(result, "get_call_template", None)
    if template is None:  # compilation is switched off
        return

    def without_literals(arguments: tuple, keywords: dict) -> tuple:
        types = tuple(numba.types.unliteral(each) for each in arguments)
        return template(types, {name: numba.types.unliteral(each) for name, each in keywords.items()})

    result.get_call_template = without_literals


def _follow_callees(function: Any, result: Any) -> None:
    """Let the cached machine code live exactly as long as nothing changes that is compiled into it.

    numba looks at the time stamp of the function's own file: after a change in another file the old code would run on,
    and a fresh checkout, or one more line of comment, compiles everything anew. Here the stamp is what the function
    says, together with the stamps of all that it calls and the constants that it reads.
    """
    store = getattr(getattr(result, "_cache", None), "_cache_file", None)
    if store is None:  # compilation is switched off, or a numba that keeps its cache elsewhere
        return
    _stamps[id(result)] = store._source_stamp = _stamp(function)
    _kept.append(result)
    store._load_index = partial(_readable, store._load_index)
    result._cache._index_key = partial(_key_with_fields, result._cache._index_key)


def _stamp(function: Any) -> str:
    """What a function says, with the stamps of all that it calls and the constants that it reads."""
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
    """The compiled versions in a cache; none where it names a tuple that is gone by now, so that it is made anew."""
    try:
        return load()
    except (AttributeError, ImportError):
        return {}


def _key_with_fields(key: Callable[..., tuple], signature: tuple, codegen: Any) -> tuple:
    """The key of a compiled version with the fields of the named tuples among the arguments.

    numba compares the types of their entries, not their names: two arrays that change their order would be read one
    for the other.
    """
    return *key(signature, codegen), tuple(map(_fields, signature))


def _fields(kind: Any) -> Any:
    """Names of the fields of a named tuple's type, and of those within a structure."""
    within = getattr(kind, "field_dict", None)
    if within is not None:
        return tuple((name, _fields(each)) for name, each in within.items())
    return getattr(kind, "fields", None)


def _meaning(code: CodeType) -> str:
    """Instructions, names and constants of a function, without the lines and the file where they stand."""
    constants = (_meaning(each) if isinstance(each, CodeType) else repr(each) for each in code.co_consts)
    return repr((code.co_code, code.co_names, code.co_varnames, code.co_freevars, *constants))


class Kept:
    """Arguments of compiled functions that stay the same: read once, and handed over by their address.

    To read an array takes 40 ns in every call, which is a third of what the equations of a mechanism take. A compiled
    function that is handed one of these gets the arguments by `taken`. Arrays are shared, numbers those of the start.

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
    """numba's type of a `Kept` with values of some type."""

    def __init__(self, values: Any) -> None:
        self.values = values
        super().__init__(f"kept({values.name})")

    @property
    def fields(self) -> tuple:
        """Names of the fields of named tuples within."""
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
    """Write values to an address, unless that is 0; returns how many bytes they take."""

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
"""Within a compiled function: the values of a `Kept`."""


@allocation_free
def _hand_over(address: int, values: tuple) -> int:
    return _store(address, values)  # type: ignore[call-arg, return-value]


def kept_in() -> Path | None:
    """Folder of machine code that numba keeps on disk; None where it keeps none."""
    path = getattr(getattr(_hand_over, "stats", None), "cache_path", None)
    return Path(path) if path else None


def used_kernels() -> dict[Path, str]:
    """The compiled functions that this process has used: by index file of their machine code the stamp in it."""
    stores = [each._cache._cache_file for each in _kept if each.overloads]
    return {Path(store._index_path): store._source_stamp for store in stores}
