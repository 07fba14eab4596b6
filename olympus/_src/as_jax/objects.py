"""JAX's names on the objects of programs: fields, params and protocols."""
# Classes get attributes here that only JAX's have otherwise.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any

from ..base import lib, spelling
from ..base.config import compatible
from ..base.typing import R
from ..control.call import call_p
from ..core.ir import ClosedOlympuspr
from ..core.primitive import Higher, Primitive
from ..core.trace import Tracer
from ..custom.rules import CustomCall
from ..interpreters.batching import BatchTracer
from ..interpreters.jvp import JVPTracer
from ..jit.stages import Traced
from ..types.avals import AbstractValue
from ..types.sharding import Sharding, device_tuple
from ..types.symbolic import Dimension
from . import keywords, spellings

# Params of a call that JAX has and Olympus needs not. They can be read, and are left out when the
# params are given back.
_UNSAID: dict[str, Any] = {
    "compiler_options_kvs": (), "ctx_mesh": None, "inline": False, "keep_unused": False}


class Params(dict[str, Any]):
    """The params of an equation that carries programs: JAX's names are read and written as ours."""

    __slots__ = ()

    def __missing__(self, name: str) -> Any:
        spelt = spellings.ours(name)
        if spelt == name or not super().__contains__(spelt):
            return _UNSAID[name]
        value = self[spelt]
        # JAX's `remat` has an open program.
        return value.olympuspr if super().__contains__("prevent_cse") else value

    def __contains__(self, name: object) -> bool:
        return self.get(name, self) is not self

    def get(self, name: Any, default: Any = None) -> Any:
        """The param of that name in either spelling."""
        try:
            return self[name]
        except KeyError:
            return default

    def __repr__(self) -> str:
        return spellings.theirs(super().__repr__())

    def copy(self) -> Params:
        """Params that may be changed."""
        return Params(self)

    def pop(self, name: str, *default: Any) -> Any:
        """The param of that name in either spelling, which is taken out."""
        return super().pop(spellings.ours(name), *default)

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(spellings.ours(name), value)

    def __or__(self, other: Any) -> Params:
        return Params({**self, **given(other)})


def given(params: dict[str, Any]) -> dict[str, Any]:
    """Params in our spelling, whichever they are in: what both name is as JAX's name says."""
    respelt = {spellings.ours(name): value for name, value in params.items() if "jax" in name}
    return {name: value for name, value in (params | respelt).items()
            if name not in _UNSAID and "jax" not in name}


def named(primitive: Any, params: dict[str, Any]) -> dict[str, Any]:
    """The params of an equation as it keeps them."""
    return Params(params) if isinstance(primitive, Higher) else params


def spelt_out(primitive: Primitive, params: dict[str, Any]) -> dict[str, Any]:
    """The params of an operation by JAX's names, those that Olympus needs not among them."""
    if not isinstance(primitive, Higher):
        return params
    read = Params(params)
    own = {theirs: read[theirs] for theirs in map(spellings.theirs, params)}
    return {**_UNSAID, **own} if primitive is call_p else own


def respelt(bind: Callable[..., R]) -> Callable[..., R]:
    """A primitive's `bind`, for params in JAX's spelling."""
    def respelling(self: Primitive, *args: object, **params: object) -> R:
        if any("jax" in name for name in params):
            params = given(params)
        return bind(self, *args, **params)

    return respelling


def alias(kind: type, *names: str) -> None:
    """Let objects of a class answer to JAX's spelling of these attributes."""
    for name in names:
        setattr(kind, spellings.theirs(name), property(
            attrgetter(name), doc=f"`{name}`, as JAX calls it."))


def callback_text(kind: type[Exception]) -> Callable[[Any], str]:
    """The text of an exception in a callback: it names the class, which Equinox looks for."""
    return lambda error: (f"INTERNAL: CpuCallback error calling callback: {kind.__name__}: "
                          f"{kind.__str__(error)}")


def addressable(sharding: Sharding) -> tuple[Any, ...]:
    """The devices of a sharding that are this process's, in its order."""
    here = sharding.addressable_devices
    return tuple(device for device in device_tuple(sharding) if device in here)


def subclasses(kind: type) -> Iterator[type]:
    """A class, and all classes below it."""
    yield kind
    for below in kind.__subclasses__():
        yield from subclasses(below)


def respell() -> None:
    """Let programs, equations and foreign arrays be what JAX's users know them as."""
    spelling.answer_to(spellings.theirs, named, spelt_out, "__jax_array__", "jax.numpy")
    alias(ClosedOlympuspr, "olympuspr")
    alias(Traced, "olympuspr", "loolympus")
    for kind, names in ((JVPTracer, {"primal": "_primal", "tangent": "_tangent"}),
                        (BatchTracer, {"val": "_val", "batch_dim": "_dim"})):
        for theirs, ours in names.items():      # arrays have none of them
            setattr(kind, theirs, property(attrgetter(ours), doc=f"JAX's `{theirs}`."))
    for kind in subclasses(Tracer):     # autoray and opt_einsum choose functions by it
        kind.__module__ = "jax._src.core"
    compatible.set_global(True)
    for method in ("__init__", "replace"):
        setattr(ClosedOlympuspr, method, keywords.respelled(getattr(ClosedOlympuspr, method)))
    lib.set_text_of_failure(callback_text)
    Higher.bind, CustomCall.bind = respelt(Higher.bind), respelt(CustomCall.bind)
    Dimension.__jax_array__ = Dimension.__olympus_array__
    AbstractValue.at_least_vspace = lambda aval: aval.to_tangent_aval()     # Distrax's name of it
    Sharding._device_assignment = property(device_tuple)        # Orbax reads both
    Sharding._addressable_device_assignment = property(addressable)
    Primitive.call_primitive = False     # Distrax asks each of an interpreter's for it
