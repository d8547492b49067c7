"""From LLVM's notation to functions that can be called, through llvmlite."""

from __future__ import annotations

import ctypes
import hashlib
import logging
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import llvmlite  # type: ignore[import-untyped]  # it ships no types
import llvmlite.binding as llvm  # type: ignore[import-untyped]  # it ships no types

from fivestate.checker.engines.native import cache

_P, _N = ctypes.c_void_p, ctypes.c_int64

SIGNATURES: dict[str, tuple[Any, ...]] = {
    "expand": (_P, _N, _N, _N, _P, _P, _P, _P),
    "insert": (_P, _P, _P, _N, _N),
    "settle": (_P,),
    "rebuild": (_P, _P, _N, _N),
    "number": (_P, _P, _N, _N, _N, _P, _P, _P),
    "connect": (_P, _P, _P, _N, _N, _P, _P),
    "judge": (_P, _N, _N, _P),
}
"""The functions of a compiled model and what they take: pointers and numbers."""

_SPEED_LEVEL = 2
_PASSES = ("always_inliner", "instruction_combine", "simplify_cfg")
"""All of LLVM's passes would take four times as long, for code that is no faster."""

_KEPT = 16
_log = logging.getLogger(__name__)
_lock = threading.Lock()
_loaded: OrderedDict[str, Code] = OrderedDict()


@dataclass(frozen=True)
class Code:
    """Compiled functions, and what it took to have them.

    Attributes:
        functions: each of ``SIGNATURES``, callable; a call lets other Python threads run.
        compile_seconds: how long LLVM compiled; 0 if the code was found.
        load_seconds: how long finding the code and linking it took.
        cached: whether the code was found, in this process or in the cache.
        note: why the code could not be kept; empty if it could.
    """

    functions: dict[str, Any]
    compile_seconds: float
    load_seconds: float
    cached: bool
    note: str
    library: Any


def build(text: str, recipe: str = "") -> Code:
    """Return the functions that ``text`` defines, compiled now, earlier, or by another process.

    What it comes to is kept under ``recipe`` too, if there is one, for ``recall``.
    """
    with _lock:
        key = _key(text)
        code = _held(key) or _found(key) or _made(key, text)
        if recipe:
            cache.save_name(_recipe(recipe), key)
        return code


def recall(recipe: str) -> Code | None:
    """Return the code that was built under ``recipe``, here or by another process, or nothing."""
    if not recipe:
        return None
    with _lock:
        key = cache.load_name(_recipe(recipe))
        return None if key is None else _held(key) or _found(key)


def _held(key: str) -> Code | None:
    held = _loaded.get(key)
    if held is None:
        return None
    _loaded.move_to_end(key)
    return Code(held.functions, 0.0, 0.0, True, held.note, held.library)


def _found(key: str) -> Code | None:
    started = time.perf_counter()
    code = cache.load(key)
    return None if code is None else _kept(key, code, 0.0, started, "")


def _made(key: str, text: str) -> Code:
    started = time.perf_counter()
    code = _compile(text, _machine())
    compiled = time.perf_counter() - started
    note = cache.save(key, code)
    if note:
        _log.info(note)
    return _kept(key, code, compiled, time.perf_counter(), note)


def _kept(key: str, code: bytes, compiled: float, started: float, note: str) -> Code:
    library, functions = _link(code, _machine(), key)
    loaded = time.perf_counter() - started
    made = _loaded[key] = Code(functions, compiled, loaded, compiled == 0, note, library)
    while len(_loaded) > _KEPT:
        _loaded.popitem(last=False)
    return made


def _recipe(recipe: str) -> str:
    """Return where a recipe's name is kept: another processor has another entry."""
    return _key(recipe)


def _machine() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=_features(),
        opt=_SPEED_LEVEL,
        reloc="pic",
        codemodel="default",
    )


def _features() -> str:
    return str(llvm.get_host_cpu_features().flatten())


def _key(text: str) -> str:
    """Return the digest of all that the compiled code depends on."""
    parts = (
        text,
        llvmlite.__version__,
        str(llvm.llvm_version_info),
        llvm.get_process_triple(),
        llvm.get_host_cpu_name(),
        _features(),
        str(_SPEED_LEVEL),
        *_PASSES,
    )
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part.encode())
    return digest.hexdigest()


def _compile(text: str, machine: Any) -> bytes:
    module = llvm.parse_assembly(text)
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    module.verify()
    tuning = llvm.create_pipeline_tuning_options(speed_level=_SPEED_LEVEL)
    passes = llvm.create_new_module_pass_manager()
    for name in _PASSES:
        getattr(passes, f"add_{name}_pass")()
    passes.run(module, llvm.create_pass_builder(machine, tuning))
    return bytes(machine.emit_object(module))


def _link(code: bytes, machine: Any, name: str) -> tuple[Any, dict[str, Any]]:
    linker = llvm.create_lljit_compiler(machine)
    builder = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
    for function in SIGNATURES:
        builder.export_symbol(function)
    library = builder.link(linker, name)
    functions = {
        function: ctypes.CFUNCTYPE(_N if function == "insert" else None, *takes)(library[function])
        for function, takes in SIGNATURES.items()
    }
    return (linker, library), functions
