"""Compilation of functions that only compiled functions call: only intermediate code for their callers is created.

numba links the intermediate code of all callees into that of a function, optimises it as a whole, and creates machine
code. It does the same for every callee: the machine code of a function that Python does not call is never executed, and
the optimisation of a callee is repeated in each of its callers. Without both, such a function compiles in less than
half of the time, its callers compile as fast as before, and the results are bitwise equal.

This depends on private parts of numba. If one of them is missing, the import of this module raises ImportError, and
`compilation` compiles such functions like all others.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
from numba.core.codegen import Codegen, JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.targetconfig import TargetConfig

PIECES = {
    JITCodeLibrary: ("_optimize_final_module", "_finalize_final_module", "_get_module_for_linking"),
    Codegen: ("_create_empty_module",),
    Compiler: ("compile_extra",),
    TargetConfig: ("__eq__", "values", "options", "_values"),
}
"""Methods of numba that are called or overridden here."""
ENVIRONMENT = "_ZN08NumbaEnv"
"""Prefix of the names of the variables with which a function of numba finds its Python objects."""
VARIABLE = '@"{}" = common local_unnamed_addr global ptr null'

for _owner, _names in PIECES.items():
    for _name in _names:
        if not hasattr(_owner, _name):
            raise ImportError(f"this numba has no {_owner.__name__}.{_name}")
try:
    llvm.parse_assembly(VARIABLE.format(ENVIRONMENT))
except RuntimeError as error:  # LLVM version with typed pointers
    raise ImportError(f"this LLVM does not read {VARIABLE}") from error


def _all_values(settings: Any) -> dict[str, Any]:
    return {name: settings._values.get(name, option.default) for name, option in settings.options.items()}


def _are_same(settings: Any, other: object) -> bool:
    if not isinstance(other, TargetConfig):
        return NotImplemented
    is_set_alike = type(settings) is type(other) and settings._values == other._values
    return is_set_alike or settings.values() == other.values()


# numba compares its settings some hundred thousand times per minute, which takes a tenth of the compilation time.
setattr(TargetConfig, "__eq__", _are_same)  # noqa: B010
setattr(TargetConfig, "values", _all_values)  # noqa: B010


class PartLibrary(JITCodeLibrary):
    """Code of one function, only for linking."""

    def _optimize_final_module(self) -> None:
        """No optimisation: the callers optimise all linked code."""

    def _finalize_final_module(self) -> None:
        self._finalized = True
        whole = self._get_module_for_linking()
        names = [each.name for each in whole.global_variables if each.name.startswith(ENVIRONMENT)]
        rest = str(self._codegen._create_empty_module(self.name))  # with target triple and data layout
        rest += "".join(f"\n{VARIABLE.format(name)}" for name in names)
        self._final_module = llvm.parse_assembly(rest)
        self._final_module.name = whole.name
        super()._finalize_final_module()


class PartCompiler(Compiler):
    """Compiler with a `PartLibrary` as its result."""

    def compile_extra(self, func: Any) -> Any:
        """As the method of numba."""
        if self.state.library is None:
            self.state.library = PartLibrary(self.state.targetctx.codegen(), func.__qualname__)
            self.state.library.enable_object_caching()
        return super().compile_extra(func)
