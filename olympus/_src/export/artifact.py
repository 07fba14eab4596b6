"""Exports as artifacts: the metadata and modules that the container holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from ..types.avals import Aval, physical_aval
from ..types.scopes import SymbolicScope
from ..types.sharding import NamedSharding
from ..types.symbolic import Dimension, symbols
from .container import pack, unpack
from .fields import (
    decode_aval, decode_effect, decode_sharding, encode_aval, encode_effect, encode_sharding,
)
from .nodes import Unregistered, decode_tree, encode_tree

if TYPE_CHECKING:
    from .program import ExportedProgram

_SIMPLE = {"fun_name": str, "nr_devices": int, "calling_convention_version": int,
           "uses_global_constants": bool}
Fields: TypeAlias = dict[str, Any]      # the fields of an `Exported`, as JSON or as arguments


def encode(exported: ExportedProgram, vjp_order: int) -> bytearray:
    """The artifact of an export and of its derivatives up to an order."""
    if not isinstance(vjp_order, int) or vjp_order < 0:
        raise ValueError(f"serialize: vjp_order={vjp_order!r} given; an int of 0 or more is "
                         "required.")
    blobs: list[bytes] = []
    return pack(_artifact_metadata(exported, vjp_order, blobs), blobs)


def _artifact_metadata(exported: ExportedProgram, vjp_order: int, blobs: list[bytes]) -> Fields:
    derivative = None
    if vjp_order and not exported.has_vjp():
        raise ValueError(f"serialize: serialization of an Exported that does not have vjps of "
                         f"high-enough order: {exported.fun_name} lacks {vjp_order}; ask for "
                         "fewer.")
    blobs.append(exported.mlir_module_serialized)
    module = len(blobs) - 1
    if vjp_order:
        derivative = _artifact_metadata(exported.vjp(), vjp_order - 1, blobs)
    scope = next((d.scope for a in exported.in_avals for d in a.shape
                  if isinstance(d, Dimension)), None)
    return {
        **{name: getattr(exported, name) for name in _SIMPLE},
        "constraints": [] if scope is None else list(scope.given),
        "in_tree": encode_tree(exported.in_tree), "out_tree": encode_tree(exported.out_tree),
        "in_avals": list(map(encode_aval, exported.in_avals)),
        "out_avals": list(map(encode_aval, exported.out_avals)),
        "in_shardings": list(map(encode_sharding, exported._in_named_shardings)),
        "out_shardings": list(map(encode_sharding, exported._out_named_shardings)),
        "platforms": list(exported.platforms),
        "ordered_effects": list(map(encode_effect, exported.ordered_effects)),
        "unordered_effects": list(map(encode_effect, exported.unordered_effects)),
        "disabled_safety_checks": list(map(str, exported.disabled_safety_checks)),
        "module": module, "module_kept_var_idx": list(exported.module_kept_var_idx),
        "vjp": derivative}


def decode(blob: object) -> Fields:
    """The fields of the export in an artifact; `vjp` are its derivative's, or None."""
    metadata, blobs = unpack(blob)
    try:
        return _fields(metadata, blobs)
    except (Unregistered, NotImplementedError):
        raise
    except (ValueError, LookupError, TypeError, AttributeError, SyntaxError) as error:
        raise ValueError(f"deserialize: the artifact is malformed ({type(error).__name__}: "
                         f"{error}); write it anew.") from None


def _check_metadata(written: Fields, blobs: list[bytes]) -> None:
    """ValueError unless an artifact's metadata have the kinds that `_artifact_metadata` writes."""
    used, platforms = written["module_kept_var_idx"], written["platforms"]
    wrong = [name for name, kind in _SIMPLE.items() if type(written[name]) is not kind]
    wrong += [name for name in ("constraints", "platforms", "disabled_safety_checks",
                                "ordered_effects", "unordered_effects")
              if type(written[name]) is not list or {*map(type, written[name])} - {str}]
    indices = range(len(written["in_avals"]))
    if type(used) is not list or used != sorted({*used} & {*indices}):
        wrong.append("module_kept_var_idx")
    if type(written["module"]) is not int or written["module"] not in range(len(blobs)):
        wrong.append("module")
    if wrong or not platforms or written["nr_devices"] < 1:
        raise ValueError(f"no such value of {', '.join(wrong) or 'platforms, nr_devices'}")


def _of_xla(sharding: NamedSharding | None, aval: Aval) -> object:
    """XLA's form of a sharding, or None."""
    return None if sharding is None else sharding._to_xla_hlo_sharding(physical_aval(aval).ndim)


def _fields(written: Fields, blobs: list[bytes]) -> Fields:
    _check_metadata(written, blobs)
    ins = tuple(map(decode_sharding, written["in_shardings"]))
    outs = tuple(map(decode_sharding, written["out_shardings"]))
    scope = SymbolicScope(written["constraints"])
    in_avals, out_avals = (
        tuple(decode_aval(a, scope, s) for a, s in zip(written[name], shardings, strict=True))
        for name, shardings in (("in_avals", ins), ("out_avals", outs)))
    by_arguments, said = (
        set().union(*[symbols(d) for a in avals for d in getattr(a, "shape", ())
                      if isinstance(d, Dimension)]) for avals in (in_avals, out_avals))
    if said - by_arguments:
        raise ValueError(f"sizes {sorted(said - by_arguments)} of results that no argument gives")
    derivative = written["vjp"]
    return {
        **{name: written[name] for name in _SIMPLE}, "in_avals": in_avals, "out_avals": out_avals,
        "in_tree": decode_tree(written["in_tree"], in_avals),
        "out_tree": decode_tree(written["out_tree"], out_avals),
        "_has_named_shardings": True, "_in_named_shardings": ins, "_out_named_shardings": outs,
        "in_shardings_hlo": tuple(map(_of_xla, ins, in_avals)),
        "out_shardings_hlo": tuple(map(_of_xla, outs, out_avals)),
        "platforms": tuple(written["platforms"]),
        "ordered_effects": tuple(map(decode_effect, written["ordered_effects"])),
        "unordered_effects": tuple(map(decode_effect, written["unordered_effects"])),
        "disabled_safety_checks": tuple(written["disabled_safety_checks"]),
        "mlir_module_serialized": blobs[written["module"]],
        "module_kept_var_idx": tuple(written["module_kept_var_idx"]),
        "vjp": None if derivative is None else _fields(derivative, blobs)}
