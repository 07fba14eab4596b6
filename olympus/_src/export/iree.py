"""Exports for IREE: compiled to a module of its virtual machine, which runs without Python.

StableHLO goes in as it is, as a portable artifact; `iree-compile`, of the wheel
iree-base-compiler, is run as a program of its own.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..base.lib import mlir
from ..base.typing import IrModule, IrOperation
from ..lowering.attributes import i64s, module_context
from ..lowering.linking import fresh_symbols, link, operations
from ..types.shape import definitely_equal
from . import edges
from .bounds import guard_indices
from .edges import write_edges
from .exported import Exported
from .files import replacing
from .module import (
    check_single, custom_calls, drop_assertions, drop_identities, portable, read_module,
)

_LOCAL = ("--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu")
TARGETS = {
    "host": (*_LOCAL, "--iree-llvmcpu-target-cpu=host"),
    "generic": (*_LOCAL, "--iree-llvmcpu-target-cpu=generic"),
    "vmvx": ("--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=vmvx"),
    **{name: (f"--iree-hal-target-device={name}",) for name in ("cuda", "hip", "metal", "vulkan")},
}
_LEAST = 256        # bytes of a parameter
_NUMBER_TYPES = {f"{kind}{bits}" for kind in ("i", "ui") for bits in (8, 16, 32, 64)} | {
    "f16", "f32", "f64"}
# Calls for XLA's partitioner, which has nothing to do on one device.
_NOTHING = {"Sharding", "annotate_device_placement"}


def to_iree(exported: Exported | Mapping[str, Exported], path: str | Path, *, target: str = "host",
            parameters: str | Path | None = None, compiler: str | Path | None = None,
            options: Sequence[str] = ()) -> dict[str, str]:
    """Compile an export by IREE, to a file that its runtime loads from C, Python and others.

    Args:
      exported: an `Exported`, whose function is called `main`, or a dict of several by name: they
        become functions of one file. Symbolic sizes stay open, and are not checked.
      path: the file to write, as a rule `.vmfb`.
      target: "host", this machine's CPU; "generic", any CPU of its kind; "vmvx", bytecode for all;
        "cuda", "hip", "metal" or "vulkan".
      parameters: a file, `.safetensors`, for the constants of 256 bytes or more, which the runtime
        is then given as the parameters `model`; the file of `path` has code only. Left out, all are
        in one file.
      compiler: the program `iree-compile`; left out, it is looked for in this Python's environment
        and on the path. `pip install 'olympus[deploy]'` brings it.
      options: further flags for it.
    Returns: The types of each function: arguments and results, flat, without the arguments that the
      program ignores.

    The numbers equal jit's, also at the edges of formats; docs/export.md has what IREE computes
    otherwise still. NotImplementedError for programs with custom calls, by name (LAPACK is not
    there), and for sorts along an axis of symbolic size. ValueError for
    exports of several platforms or devices, or for an unknown target; FileNotFoundError without the
    compiler; RuntimeError, with the compiler's message, where it fails.

    >>> exported = export.export(olympus.jit(lambda x: onp.tanh(x)))(onp.ones(3))
    >>> export.to_iree(exported, "tanh.vmfb")       # doctest: +SKIP
    {'main': '(float32[3]) -> (float32[3])'}
    """
    flags = TARGETS.get(target)
    if flags is None:
        raise ValueError(f"to_iree: target {target!r} given; one of {', '.join(TARGETS)} is "
                         "required.")
    entries = dict(exported) if isinstance(exported, Mapping) else {"main": exported}
    program = _compiler(compiler)
    whole = _merged_module(entries)
    for op in [*operations(whole)]:     # which IREE refuses where sizes are open
        if op.name == "stablehlo.optimization_barrier":
            for result, x in zip(op.results, op.operands, strict=True):
                result.replace_all_uses_with(x)
            op.erase()
    doubles = any("f64" in str(x.type) for op in operations(whole) for x in op.results)
    module, weights = (portable(whole), {}) if parameters is None else _without_constants(whole)
    # Unless told, IREE computes float64 in float32, also where a program's arguments are float64.
    wide = any(str(a.dtype) in ("float64", "complex128") for e in entries.values()
               for a in (*e.in_avals, *e.out_avals))
    # For doubles that occur inside only, it may lack a function; then they become floats.
    demotions = ("false",) if wide else ("false", "true") if doubles else ("true",)
    with tempfile.TemporaryDirectory() as folder, replacing(path) as compiled:
        source = Path(folder) / "module.mlir"
        source.write_bytes(module)
        command = [program, "--iree-input-type=stablehlo", *flags]
        errors = ""
        for demotion in demotions:
            done = subprocess.run(
                [*command, f"--iree-input-demote-f64-to-f32={demotion}", *options, str(source),
                 "-o", str(compiled)], capture_output=True, text=True, check=False)
            errors = done.stderr
            if not done.returncode:
                break
        else:
            lines = [line for line in errors.splitlines() if "error:" in line]
            raise RuntimeError(f"to_iree: iree-compile refused {', '.join(entries)}:\n"
                               + "\n".join(lines[:5] or errors.splitlines()[:5]))
        if parameters is not None:
            with replacing(parameters) as new:
                _write_safetensors(new, weights)
    return {name: _signature(e) for name, e in entries.items()}


def _compiler(named: str | Path | None) -> str:
    """The compiler as a program."""
    beside = str(Path(sys.executable).parent)
    path = shutil.which(str(named)) if named else (
        shutil.which("iree-compile", path=beside) or shutil.which("iree-compile"))
    if path is None:
        raise FileNotFoundError(
            f"to_iree: {named or 'iree-compile'} not found; the wheels iree-base-compiler and, to "
            "run what it makes, iree-base-runtime are required; pip install 'olympus[deploy]'.")
    return path


def _merged_module(entries: Mapping[str, Exported]) -> IrModule:
    """A module that has each export as a public function."""
    for name, exported in entries.items():
        check_single("to_iree", name, exported)
    modules = [read_module(e.mlir_module_serialized) for e in entries.values()]
    for module in modules:
        drop_assertions(module)
        drop_identities(module)
        mlir.legalize_chlo(module)
        guard_indices(module)
        write_edges(module, edges.IREE)
        _annotate(module)
    for name, module in zip(entries, modules, strict=True):
        targets = {target for target, _ in custom_calls(module)} - _NOTHING
        if targets:
            raise NotImplementedError(
                f"to_iree: {name} has the custom calls {', '.join(sorted(targets))}, which IREE "
                "has not; compute that part otherwise.")
    with module_context():
        whole = mlir.ir.Module.create()
        symbol = fresh_symbols()
        for name, module in zip(entries, modules, strict=True):
            made = link(whole, symbol, module, name).symbol
            for op in whole.body.operations:
                if mlir.ir.StringAttr(op.attributes["sym_name"]).value == made:
                    op.attributes["sym_visibility"] = mlir.ir.StringAttr.get("public")
        whole.operation.verify()
    return whole


def _annotate(module: IrModule) -> None:
    """Mark dynamic broadcasts as IREE requires: an axis of unknown size keeps its size.

    It would merge two and forget their attributes, so they are merged here.
    """
    name, field = "stablehlo.dynamic_broadcast_in_dim", "broadcast_dimensions"
    for op in operations(module):
        if op.name == name:
            inner = op.operands[0].owner    # a block, of arguments
            while not isinstance(inner, mlir.ir.Block) and inner.operation.name == name:
                dims = list(mlir.ir.DenseI64ArrayAttr(op.attributes[field]))
                op.attributes[field] = i64s([dims[d] for d in mlir.ir.DenseI64ArrayAttr(
                    inner.attributes[field])])
                op.operands[0] = inner.operands[0]
                inner = op.operands[0].owner
            sizes = mlir.ir.RankedTensorType(op.operands[0].type).shape
            for attribute, ones in (("known_expanding_dimensions", True),
                               ("known_nonexpanding_dimensions", False)):
                op.attributes[attribute] = i64s(
                    [i for i, n in enumerate(sizes) if definitely_equal(n, 1) == ones])


def _without_constants(module: IrModule) -> tuple[bytes, dict[str, np.ndarray]]:
    """A module as text, in which large constants are parameters; and these, by name."""
    # Each constant becomes the call of a function, which the text then defines in IREE's dialect.
    ir, declared = mlir.ir, []
    weights: dict[str, np.ndarray] = {}
    mlir.legalize_chlo(module)
    with module_context():
        for op in list(operations(module)):
            value = _large(op)
            if value is None:
                continue
            name = f"parameter_{len(weights)}"
            kind = op.results[0].type
            weights[name] = value
            callee = {"callee": ir.FlatSymbolRefAttr.get(name)}
            call = ir.Operation.create("func.call", [kind], [], callee, loc=op.location,
                                       ip=ir.InsertionPoint(op))
            op.results[0].replace_all_uses_with(call.results[0])
            op.erase()
            declared.append(
                f'  util.global private @{name}_value = #flow.parameter.named<"model"::"{name}"> : '
                f"{kind}\n  func.func private @{name}() -> {kind} {{\n    %0 = util.global.load "
                f"@{name}_value : {kind}\n    return %0 : {kind}\n  }}\n")
            mlir.func.FuncOp(name, ir.FunctionType.get([], [kind]), visibility="private",
                             ip=ir.InsertionPoint(module.body))
        text = str(module)
    lines = [line for line in text.splitlines(keepends=True)
             if not line.startswith("  func.func private @parameter_")]
    end = max(i for i, line in enumerate(lines) if line.rstrip() == "}")
    return "".join([*lines[:end], *declared, *lines[end:]]).encode(), weights


def _large(op: IrOperation) -> np.ndarray | None:
    """The elements of a constant that is worth a parameter."""
    if op.name != "stablehlo.constant":
        return None
    elements: Any = mlir.ir.DenseElementsAttr(op.attributes["value"])
    if elements.is_splat or str(elements.type.element_type) not in _NUMBER_TYPES:
        return None
    array = np.array(elements)
    return array if array.nbytes >= _LEAST else None


def _write_safetensors(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """A length of 8 bytes, JSON that says where each array is, and the arrays."""
    header, at = {}, 0
    for name, x in arrays.items():
        header[name] = {"dtype": f"{x.dtype.kind.upper()}{8 * x.itemsize}", "shape": x.shape,
                        "data_offsets": [at, at + x.nbytes]}
        at += x.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(b"".join([len(text).to_bytes(8, "little"), text,
                               *(np.ascontiguousarray(x).tobytes() for x in arrays.values())]))


def _signature(exported: Exported) -> str:
    ins = ", ".join(str(exported.in_avals[i]) for i in exported.module_kept_var_idx)
    return f"({ins}) -> ({', '.join(map(str, exported.out_avals))})"
