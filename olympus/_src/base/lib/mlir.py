"""MLIR from jaxlib: its classes, the context all programs live in, whole-module operations.

Import this only through `lib.mlir`, which loads it on first use: it costs a hundred milliseconds.
"""
# jaxlib has no stubs of its extension modules.
# pyright: reportAttributeAccessIssue=false

import functools
import hashlib
import io
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxlib import _jax
from jaxlib.mlir import ir, passmanager
from jaxlib.mlir._mlir_libs import _chlo, _jax_mlir_ext, _mlirHlo, _sdy, _stablehlo

from olympus._src.base.util import lazy_module

# Classes of their operations, which are made by name here, take longer to load than the rest.
chlo = lazy_module("jaxlib.mlir.dialects.chlo")
func = lazy_module("jaxlib.mlir.dialects.func")
hlo = lazy_module("jaxlib.mlir.dialects.stablehlo")
sdy = lazy_module("jaxlib.mlir.dialects.sdy")
# In jaxlib 0.12 earlier imports decide whether that module has all of its attributes.
sdy_attributes: Any = _sdy
TracebackToLocationCache: Any = _jax_mlir_ext.TracebackToLocationCache
_lock = threading.Lock()


OlympusIrContext: Any = ir.Context
upstream_dialects = ir.DialectRegistry()
_jax_mlir_ext.register_dialects(upstream_dialects)


def new_context() -> ir.Context:
    """Return an MLIR context of its own, with every dialect loaded; it takes 2 ms."""
    made = ir.Context()
    made.append_dialect_registry(upstream_dialects)
    made.load_all_available_dialects()
    for dialect in (_stablehlo, _chlo, _sdy):
        dialect.register_dialect(made)
    # XLA would load it when it first compiles a module of the context; a thread that makes another
    # module meanwhile would end the process.
    _mlirHlo.register_mhlo_dialect(made)
    return made


_current: list[ir.Context] = []     # at most one


def context() -> ir.Context:
    """Return the process's MLIR context, with every dialect loaded; safe from any thread."""
    with _lock:
        if not _current:
            _current.append(new_context())
        return _current[0]


def renew_context() -> None:
    """Let `context` return a new one: the old one keeps all that was made in it while it lives."""
    with _lock:
        _current.clear()


def parse(text: str | bytes) -> ir.Module:
    """Return the module that MLIR text or bytecode describes; MLIRError if it is malformed."""
    return ir.Module.parse(text, context())


def bytecode(module: ir.Module) -> bytes:
    """Return `module` as MLIR bytecode, which other versions need not be able to read."""
    out = io.BytesIO()
    module.operation.write_bytecode(out)
    return out.getvalue()


def digest(module: ir.Module, locations: bool = False) -> tuple[bytes, int]:
    """Return a digest of `module` without its locations, and the size of the digested text."""
    with module.context:
        bare = module.operation.clone()
        if not locations:
            passmanager.PassManager.parse("builtin.module(strip-debuginfo)").run(bare)
    # MLIR calls `write`: C that no signal interrupts, since its own frames know no exceptions.
    out = io.BytesIO()
    bare.write_bytecode(out)
    bare.erase()
    return hashlib.blake2b(out.getbuffer(), digest_size=20).digest(), out.tell()


@functools.cache
def _register_passes() -> None:
    hlo.register_stablehlo_passes()


def legalize_chlo(module: ir.Module) -> None:
    """Replace, in place, the operations of the chlo dialect by StableHLO."""
    with _lock_passes, module.context:
        _register_passes()
        passmanager.PassManager.parse(
            "builtin.module(func.func(chlo-legalize-to-stablehlo))").run(module.operation)


_lock_passes = threading.Lock()


def serialize_portable_artifact(module: ir.Module, target: str | None = None) -> bytes:
    """Return `module` (StableHLO only) in the form that other versions read.

    Args:
      module: an `ir.Module`.
      target: a StableHLO version; by default one that readers of the last twelve weeks know.

    >>> module = olympus.jit(lambda x: x + 1).lower(1.0).compiler_ir()
    >>> data = mlir.serialize_portable_artifact(module)
    >>> "stablehlo.add" in str(mlir.deserialize_portable_artifact(data))
    True
    """
    if target is None:
        target = hlo.get_version_from_compatibility_requirement(
            hlo.StablehloCompatibilityRequirement.WEEK_12
        )
    # Shardy's operations become StableHLO's, but XLA ends the process where it reads a region of
    # manual axes so, and refinement does not know the type of a constraint: with those they stay
    # Shardy's.
    code = bytecode(module)
    mixed = b"manual_computation" in code or (
        b"sharding_constraint" in code and b"get_dimension_size" in code)
    return _jax.mlir.serialize_portable_artifact(module, target, mixed)


def deserialize_portable_artifact(artifact: bytes) -> ir.Module:
    """Return the module that `serialize_portable_artifact` wrote, here or in another version.

    Args: artifact: the bytes.

    >>> module = olympus.jit(lambda x: x + 1).lower(1.0).compiler_ir()
    >>> again = mlir.deserialize_portable_artifact(mlir.serialize_portable_artifact(module))
    >>> type(again) is mlir.ir.Module
    True
    """
    module = hlo.deserialize_portable_artifact(context(), artifact)
    # Shardy's meshes and shardings, as attributes of StableHLO or as they are.
    passes = ("xla-sdy-round-trip-import-shardy-attrs"
              if "mhlo.frontend_attributes" in module.operation.attributes else
              "sdy-lift-inlined-meshes")
    with _lock_passes, module.context:
        passmanager.PassManager.parse(f"builtin.module({passes})").run(module.operation)
    return module


@functools.cache
def stablehlo_versions() -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the oldest and the newest version of StableHLO that this jaxlib reads."""
    versions = hlo.get_minimum_version(), hlo.get_current_version()
    oldest, newest = (tuple(map(int, version.split("."))) for version in versions)
    return oldest, newest


def hlo_to_stablehlo(computation: bytes) -> bytes:
    """The StableHLO of XLA's HLO.

    Args: computation: the bytes of an HLO module's message.
    Returns: A module as MLIR bytecode, which `ir.Module.parse` reads.

    >>> hlo = olympus.jit(lambda x: x + 1).lower(1.0).compiler_ir("hlo")
    >>> with mlir.ir.Context() as context:
    ...     context.allow_unregistered_dialects = True
    ...     code = mlir.hlo_to_stablehlo(hlo.as_serialized_hlo_module_proto())
    >>> type(code)
    <class 'bytes'>
    """
    return _jax.mlir.hlo_to_stablehlo(computation)


def refine_polymorphic_shapes(mlir_module: bytes, enable_shape_assertions: bool = True,
                              validate_static_shapes: bool = True, enable_shardy: bool = False
                              ) -> bytes:
    """A module with static shapes, computed from its main function's arguments.

    Args:
      mlir_module: as MLIR bytecode or text.
      enable_shape_assertions: whether its assertions about shapes are checked.
      validate_static_shapes: whether shapes that stay unknown are an error.
      enable_shardy: whether it has operations of Shardy's.

    >>> text = olympus.jit(lambda x: x + 1).lower(1.0).as_text()
    >>> type(mlir.refine_polymorphic_shapes(text.encode()))
    <class 'bytes'>
    """
    return _jax.mlir.refine_polymorphic_shapes(
        mlir_module, enable_shape_assertions=enable_shape_assertions,
        validate_static_shapes=validate_static_shapes, enable_shardy=enable_shardy)


def refine(module: ir.Module) -> ir.Module:
    """Return `module` with static shapes, computed from its main function's arguments.

    A ValueError tells of shapes that stay unknown, and of assertions about them that fail.
    """
    refined = refine_polymorphic_shapes(bytecode(module), enable_shardy=True)
    with module.context:
        return ir.Module.parse(refined)


def computation(module: ir.Module) -> Any:
    """Return `module` as XLA's computation, before optimisation."""
    return _jax.mlir.mlir_module_to_xla_computation(
        bytecode(module), use_tuple_args=False, return_tuple=False
    )


def hlo_module(module: ir.Module) -> Any:
    """Return the XLA HLO of `module` before optimisation, as `hlo_cost_analysis` takes it."""
    return computation(module).get_hlo_module()


def hlo_module_text(module: ir.Module, metadata: bool) -> str:
    """Return the text of the XLA HLO of `module` before optimisation; names and lines if wanted."""
    return hlo_module(module).to_string() if metadata else computation(module).as_hlo_text()


def eval_module(module: ir.Module, arguments: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Run `module` in StableHLO's reference interpreter: NumPy arrays in, NumPy arrays out."""
    with module.context, ir.Location.unknown():
        dense: list[Any] = [np.asarray(argument, order="C") for argument in arguments]
        return hlo.eval_module(module, list(map(ir.DenseElementsAttr.get, dense)))
