"""Modules as artifacts: made portable, checked for unstable operations, read again."""

from __future__ import annotations

import signal
import struct
import subprocess
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ..base import lib
from ..base.lib import mlir
from ..base.typing import IrModule, IrOperation
from ..lowering.attributes import module_context
from ..lowering.linking import operations

if TYPE_CHECKING:
    from .program import ExportedProgram

ANY_PLATFORM = "platform"       # the check that a program for any platform turns off
_LAPACK = {**dict.fromkeys(("potrf", "geqrf", "geev", "gesdd", "getrf", "gehrd", "gees", "trsm",
                            "gtsv"), "sdcz"),
           "orgqr": "sd", "ungqr": "cz", "syevd": "sd", "heevd": "cz", "sytrd": "sd",
           "hetrd": "cz"}
# Custom calls that jaxlib promises to keep: the list is JAX's, whose artifacts depend on it.
STABLE = frozenset([
    *(f"lapack_{letter}{kernel}_ffi" for kernel, letters in _LAPACK.items() for letter in letters),
    *(f"{library}_{kernel}_ffi" for library in ("cusolver", "hipsolver")
      for kernel in ("getrf", "geqrf", "orgqr", "potrf", "syevd", "gesvd", "gesvdj")),
    "cu_lu_pivots_to_permutation", "hip_lu_pivots_to_permutation", "hipsolver_gesdd_ffi",
    "cusolver_sytrd_ffi", "hipsolver_sytrd_ffi", "cusparse_gtsv2_ffi", "cu_threefry2x32_ffi",
    "hip_threefry2x32_ffi", "Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape",
    "annotate_device_placement", "Eigh", "Qr", "ProductOfElementaryHouseholderReflectors",
    "LuDecomposition", "ApproxTopK",
    "stablehlo.dynamic_approx_top_k", "tf.call_tf_function", "tpu_custom_call", "AllocateBuffer",
    "mosaic_gpu_v2", "stablehlo.dynamic_reduce_window", "stablehlo.dynamic_rng_bit_generator",
    "stablehlo.dynamic_top_k", "shape_assertion"])


def custom_calls(module: IrModule) -> Iterable[tuple[str, IrOperation]]:
    """(target, operation) of every custom call in a module."""
    for op in operations(module):
        if op.name == "stablehlo.custom_call":
            yield mlir.ir.StringAttr(op.attributes["call_target_name"]).value, op


def drop_assertions(module: IrModule) -> None:
    """Remove the checks of the sizes of arguments, which other engines do not know."""
    for target, op in list(custom_calls(module)):
        if target == "shape_assertion":
            op.erase()


def drop_identities(module: IrModule) -> None:
    """Take out the calls of functions that return their operands.

    Such a call makes XLA:CPU compute a value once; for other engines it has no meaning.
    """
    ir, identities = mlir.ir, set[str]()
    for op in module.body.operations:
        if op.operation.name == "func.func":
            block = op.regions[0].blocks[0]
            if [*block.operations[0].operands] == [*block.arguments] and len(block.operations) == 1:
                identities.add(ir.StringAttr(op.attributes["sym_name"]).value)
    for op in list(operations(module)):
        if op.name == "func.call" and (
                ir.FlatSymbolRefAttr(op.attributes["callee"]).value in identities):
            for out, operand in zip(op.results, op.operands, strict=True):
                out.replace_all_uses_with(operand)
            op.erase()


def check_custom_calls(module: IrModule, allowed: Iterable[str]) -> None:
    """ValueError for custom calls that jaxlib may change, unless they are allowed."""
    allowed = {*STABLE, *allowed}
    if "ALL" in allowed:
        return
    calls = [(target, f"{op} at {op.location}") for target, op in custom_calls(module)
             if target not in allowed]
    if calls:
        own = list(dict.fromkeys([f"'{t}'" for t, _ in calls if lib.registered_calls(t)]))
        needed = (f" Whoever calls the export has to register {', '.join(own)} "
                  "(olympus.ffi.register_ffi_target)." if own else "")
        raise ValueError(
            "export: Cannot serialize code with custom calls whose targets have no compatibility "
            "guarantees; allow a target with disabled_checks=[DisabledSafetyCheck.custom_call("
            f"name)], or compute it otherwise.{needed} Examples are:\n"
            + "\n".join([text for _, text in calls[:5]]) + ".\n")


def portable(module: IrModule) -> bytes:
    """A module as an artifact that jaxlibs of the last twelve weeks, and all later ones, read."""
    mlir.legalize_chlo(module)
    return mlir.serialize_portable_artifact(module)


def version_of(artifact: bytes) -> tuple[int, ...]:
    """The StableHLO version that an artifact is written in; () if it names none."""
    head = artifact[:64].partition(b"StableHLO_v")[2].partition(b"\0")[0]
    try:
        return tuple(map(int, head.decode().split(".")))
    except ValueError:
        return ()


def read_module(artifact: bytes) -> IrModule:
    """The module of an artifact; ValueError if this jaxlib cannot read it."""
    version, newest = version_of(artifact), mlir.stablehlo_versions()[1]
    if not version:
        raise ValueError("deserialize: the artifact's module is malformed: it names no version of "
                         "StableHLO; write the artifact anew.")
    if version > newest:
        raise ValueError(
            f"deserialize: the artifact's module is newer than this jaxlib: its StableHLO is "
            f"{_dotted(version)}; jaxlib {lib.jaxlib_version} reads {_dotted(newest)} at most; "
            "update jaxlib.")
    try:
        with module_context():
            return mlir.deserialize_portable_artifact(artifact)
    except (ValueError, MemoryError):       # where its counts are enormous
        raise ValueError(
            f"deserialize: the artifact's module, StableHLO {_dotted(version)}, is malformed: "
            f"jaxlib {lib.jaxlib_version} cannot read it; write the artifact anew.") from None


_LENGTH = struct.Struct("<Q")
_MALFORMED = 3              # the exit status of a child with a message
_CHILD_SECONDS = 120


def check_in_child(artifacts: Sequence[bytes]) -> None:
    """ValueError unless another process can read these modules, so that no damage reaches this one.

    MLIR's reader trusts its bytecode: on a forged module it may end the process or never return.
    """
    stdin = b"".join([_LENGTH.pack(len(a)) + a for a in artifacts])
    command = [sys.executable, "-c", f"import {__name__} as module; module.read_all()"]
    try:
        child = subprocess.run(command, input=stdin, capture_output=True, timeout=_CHILD_SECONDS)
    except subprocess.TimeoutExpired:
        raise ValueError(
            f"deserialize: the artifact's module is malformed: jaxlib {lib.jaxlib_version} has not "
            f"read it in {_CHILD_SECONDS} seconds; write the artifact anew.") from None
    if child.returncode == _MALFORMED:
        raise ValueError(child.stdout.decode())
    if child.returncode:
        ended = (signal.Signals(-child.returncode).name if child.returncode < 0 else
                 f"status {child.returncode}")
        raise ValueError(
            f"deserialize: the artifact's module is malformed: it ends ({ended}) the process in "
            f"which jaxlib {lib.jaxlib_version} reads it; do not use it.")


def check_single(what: str, name: str, exported: ExportedProgram) -> None:
    """ValueError unless a program is for one device of one platform."""
    if len(exported.platforms) > 1 or exported.nr_devices > 1:
        raise ValueError(
            f"{what}: {name} is exported for {exported.nr_devices} devices and the platforms "
            f"{', '.join(exported.platforms)}; one of each is required; export it anew.")


def read_all() -> None:
    """The part of `check_in_child` in the child: read the modules that come by standard input."""
    stream = sys.stdin.buffer
    while head := stream.read(_LENGTH.size):
        try:
            read_module(stream.read(*_LENGTH.unpack(head)))
        except ValueError as error:
            print(error, end="")
            sys.exit(_MALFORMED)


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
