"""An artifact's fields besides code, as JSON: types, shardings, effects."""

from __future__ import annotations

from typing import Any

from ..base.util import lazy_imports
from ..core.effects import Effect
from ..types import dtypes
from ..types.avals import Aval, ShapedArray, abstract_token, make_aval
from ..types.memory import Space
from ..types.mesh import AbstractMesh, AxisType
from ..types.scopes import SymbolicScope, symbolic_shape
from ..types.shape import SymbolicDim
from ..types.sharding import NamedSharding, PartitionSpec

with lazy_imports(__name__):
    from ..random import keys as _keys

_KEY = "key:"       # and the name of a generator
_SIZES = range(2**63)
_UNCONSTRAINED = {"unconstrained": True}


def encode_aval(aval: Aval) -> object:
    """A type: shape, dtype, weak type, memory space. Its sharding: see `encode_sharding`."""
    if aval is abstract_token:
        return "token"
    dtype = aval.dtype
    if isinstance(dtype, dtypes.ExtendedDType):
        name = _KEY + dtype.impl.name
    else:
        name = "float0" if dtypes.is_float0(dtype) else dtype.name
    written = {"shape": [str(n) if isinstance(n, SymbolicDim) else n for n in aval.shape],
               "dtype": name}
    if aval.weak_type:
        written["weak_type"] = True
    if aval.memory_space is not Space.Device:
        written["memory_space"] = aval.memory_space.name
    return written


def decode_aval(written: Any, scope: SymbolicScope, sharding: NamedSharding | None) -> Aval:
    """The type; its symbols belong to the scope."""
    if written == "token":
        return abstract_token
    if type(written["shape"]) is not list or not all(
            type(n) is str or (type(n) is int and n in _SIZES) for n in written["shape"]):
        raise ValueError(f"no such shape: {written['shape']}")
    shape = tuple(written["shape"])
    if not all(isinstance(n, int) for n in shape):
        shape = symbolic_shape(",".join(map(str, shape)), scope=scope)
    name = written["dtype"]
    if name == "float0":
        dtype: Any = dtypes.float0
    elif name.startswith(_KEY):
        dtype = _key_dtype(name.removeprefix(_KEY))
    else:
        dtype = dtypes.as_dtype(name)
    space = written.get("memory_space")
    aval: ShapedArray = make_aval(shape, dtype, bool(written.get("weak_type")), None, frozenset(),
                                  None if space is None else Space[space])
    return aval if sharding is None or sharding.mesh.empty else aval.update(sharding=sharding)


def _key_dtype(generator: str) -> object:
    implementation = _keys.GENERATORS.get(generator)
    if implementation is None:
        raise ValueError(f"deserialize: the program takes or gives keys of {generator!r}, a "
                         "generator that this process does not know; define it first.")
    return _keys.key_dtype(implementation)


def encode_sharding(sharding: NamedSharding | None) -> object:
    """A sharding over an abstract mesh, or None."""
    if sharding is None:
        return None
    mesh, spec = sharding.mesh.abstract_mesh, sharding.spec
    written = {
        "sizes": list(mesh.axis_sizes), "names": [str(n) for n in mesh.axis_names],
        "types": [t.name for t in mesh.axis_types],
        "spec": [_UNCONSTRAINED if p is PartitionSpec.UNCONSTRAINED
                 else list(p) if isinstance(p, tuple) else p for p in spec]}
    for field in ("unreduced", "reduced"):
        if getattr(spec, field):
            written[field] = sorted(getattr(spec, field))
    if sharding._key[2] is not None:
        written["memory_kind"] = sharding._key[2]
    return written


def decode_sharding(written: Any) -> NamedSharding | None:
    """The sharding that `encode_sharding` wrote."""
    if written is None:
        return None
    mesh = AbstractMesh(tuple(written["sizes"]), tuple(written["names"]),
                        tuple(AxisType[t] for t in written["types"]))
    parts = [PartitionSpec.UNCONSTRAINED if p == _UNCONSTRAINED
             else tuple(p) if isinstance(p, list) else p for p in written["spec"]]
    spec = PartitionSpec(*parts, unreduced=frozenset(written.get("unreduced", ())),
                         reduced=frozenset(written.get("reduced", ())))
    return NamedSharding(mesh, spec, memory_kind=written.get("memory_kind"))


def encode_effect(effect: Effect) -> str:
    """The name of an effect's class; NotImplementedError for an effect with arguments."""
    kind = type(effect)
    try:
        same = kind() == effect
    except Exception:       # of a constructor that needs arguments
        same = False
    if not same:
        raise NotImplementedError(
            f"serialize: effect {effect} of {kind} must have a nullary constructor that makes an "
            "equal effect; only such effects are written.")
    return f"{kind.__module__}.{kind.__qualname__}"


def decode_effect(name: str) -> Effect:
    """An effect of the class of that name, which must be imported."""
    pending = [Effect]
    while pending:
        kind = pending.pop()
        if f"{kind.__module__}.{kind.__qualname__}" == name:
            return kind()
        pending += kind.__subclasses__()
    raise NotImplementedError(f"deserialize: the program has effects of {name}, which is not "
                              "defined in this process; import the module that defines it.")
