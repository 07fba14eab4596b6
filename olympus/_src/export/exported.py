"""`export`: a jitted function as an object that outlives the process, and `Exported`, the object.

    jit(f) ──trace──► olympuspr ──lower──► StableHLO ──► Exported ──serialize──► bytes
                                     call, from any program ◄── deserialize ──┘
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Literal, overload

from ..autodiff.derivatives import vjp
from ..base import config
from ..base.source import api_boundary
from ..base.typing import Array, IrModule, PyTree
from ..base.util import cut, name_of
from ..core.effects import Effect
from ..core.evaluate import eval_closed
from ..core.ir import ClosedOlympuspr
from ..core.primitive import Primitive
from ..custom.vjp import custom_vjp
from ..devices.devices import default_backend
from ..jit.jit import jit
from ..jit.stages import Traced, Wrapped
from ..lowering.attributes import attr
from ..lowering.linking import external
from ..lowering.registered import Rule
from ..types.avals import Aval, ShapedArray, is_float0
from ..types.dim_equations import Solution, solve
from ..types.mesh import AbstractMesh, Mesh
from ..types.sharding import NamedSharding
from ..types.symbolic import Dimension
from ..types.tree import argument_path, explain_mismatch, flatten_arguments, tree_flatten
from ..types.tree_registry import PyTreeDef
from .artifact import Fields, decode, encode
from .call import as_exported, call_exported_p
from .container import unpack
from .module import ANY_PLATFORM, check_custom_calls, check_in_child, portable, read_module

minimum_supported_calling_convention_version = 9
maximum_supported_calling_convention_version = 10


class DisabledSafetyCheck:
    """A check that `export` leaves out; made by `platform` and `custom_call`.

    >>> from olympus.export import DisabledSafetyCheck
    >>> DisabledSafetyCheck.custom_call("my_kernel"), DisabledSafetyCheck.platform()
    (custom_call:my_kernel, platform)
    """

    _impl: str

    @classmethod
    def platform(cls) -> DisabledSafetyCheck:
        """Let the program be called on platforms that it was not exported for."""
        return cls(ANY_PLATFORM)

    @classmethod
    def custom_call(cls, target_name: str) -> DisabledSafetyCheck:
        """Let the program contain a custom call that may not exist in other versions."""
        return cls(f"custom_call:{target_name}")

    def is_custom_call(self) -> str | None:
        """The target of the custom call that is allowed; None for other checks."""
        kind, _, target = self._impl.partition(":")
        return target if kind == "custom_call" and target else None

    def __init__(self, _impl: str) -> None:
        self._impl = _impl

    def __repr__(self) -> str:
        return self._impl

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DisabledSafetyCheck) and self._impl == other._impl

    def __hash__(self) -> int:
        return hash(self._impl)


@dataclasses.dataclass(frozen=True, repr=False)
class Exported:
    """A function lowered to StableHLO, which can be written, read elsewhere and called.

    Args:
      fun_name: the function's name in messages.
      in_tree: the tree of (positional arguments, keyword arguments).
      in_avals: the types of the flat arguments.
      out_tree, out_avals: likewise of the results.
      in_shardings_hlo, out_shardings_hlo: XLA's shardings, in a deserialised export; None for an
        unspecified sharding. See `in_shardings_olympus`.
      nr_devices: how many devices the program is for.
      platforms: the platforms that it is for: "cpu", "cuda", "rocm", "tpu".
      ordered_effects, unordered_effects: its effects.
      disabled_safety_checks: the checks that were left out.
      mlir_module_serialized: the module, as a portable artifact of StableHLO.
      calling_convention_version: how the module takes its arguments.
      module_kept_var_idx: which of the flat arguments the module takes; it ignores the others.
      uses_global_constants: whether shapes or the platform are known only when it is called.

    >>> import olympus, olympus.numpy as onp
    >>> from olympus import export
    >>> exported = export.export(olympus.jit(onp.sin))(olympus.ShapeDtypeStruct((2,), "float32"))
    >>> exported.fun_name, exported.in_avals, exported.platforms
    ('sin', (ShapedArray(float32[2]),), ('cpu',))
    >>> print(exported.call(onp.zeros(2)))
    [0. 0.]
    """

    fun_name: str
    in_tree: PyTreeDef
    in_avals: tuple[ShapedArray, ...]
    out_tree: PyTreeDef
    out_avals: tuple[ShapedArray, ...]
    _has_named_shardings: bool
    _in_named_shardings: tuple[NamedSharding | None, ...]
    _out_named_shardings: tuple[NamedSharding | None, ...]
    in_shardings_hlo: tuple[object, ...]
    out_shardings_hlo: tuple[object, ...]
    nr_devices: int
    platforms: tuple[str, ...]
    ordered_effects: tuple[Effect, ...]
    unordered_effects: tuple[Effect, ...]
    disabled_safety_checks: Sequence[DisabledSafetyCheck]
    mlir_module_serialized: bytes
    calling_convention_version: int
    module_kept_var_idx: tuple[int, ...]
    uses_global_constants: bool
    _get_vjp: Callable[[Exported], Exported] | None

    def __str__(self) -> str:
        # In source locations and printed programs: the module would fill pages.
        return f"Exported(fun_name={self.fun_name}, ...)"

    __repr__ = __str__

    @overload
    def mlir_module(self, serialized: Literal[True] = True) -> str: ...

    @overload
    def mlir_module(self, serialized: bool) -> str | IrModule: ...

    def mlir_module(self, serialized: bool = True) -> str | IrModule:
        """The module as text, or, if not `serialized`, as an MLIR module."""
        module = read_module(self.mlir_module_serialized)
        return str(module) if serialized else module

    def in_shardings_olympus(self, mesh: Mesh | AbstractMesh | None
                             ) -> Sequence[NamedSharding | None]:
        """The sharding of each flat argument over a mesh of the axes that were exported.

        Over a mesh without devices it names its memory. None for an argument that the export says
        nothing of. ValueError for a mesh of other axes.
        """
        return tuple([_sharding_over(s, a, mesh)
                      for s, a in zip(self._in_named_shardings, self.in_avals, strict=True)])

    def out_shardings_olympus(self, mesh: Mesh | AbstractMesh | None
                              ) -> Sequence[NamedSharding | None]:
        """The sharding of each flat result, as `in_shardings_olympus` gives the arguments'."""
        return tuple([_sharding_over(s, a, mesh)
                      for s, a in zip(self._out_named_shardings, self.out_avals, strict=True)])

    def has_vjp(self) -> bool:
        """Whether the function can be differentiated: an artifact has the orders written to it."""
        return self._get_vjp is not None

    def vjp(self) -> Exported:
        """The export of the derivative.

        It takes the flat arguments, then a cotangent for each flat result, and gives the cotangents
        of the arguments. ValueError if there is none.
        """
        if self._get_vjp is None:
            raise ValueError(f"vjp: No VJP is available of {self.fun_name}; serialize it with a "
                             "larger vjp_order.")
        return self._derivative

    @cached_property
    def _derivative(self) -> Exported:
        assert self._get_vjp is not None
        return self._get_vjp(self)

    def serialize(self, vjp_order: int = 0) -> bytearray:
        """The artifact as bytes, for `deserialize` here or in another process or version.

        Args:
          vjp_order: how many times it shall be differentiable when it is read.
        """
        return encode(self, vjp_order)

    def call(self, *args: PyTree, **kwargs: PyTree) -> PyTree:
        """Call the function, from anywhere: eagerly, under jit, grad and vmap.

        Arguments have the structure, ranks and dtypes that were exported; ValueError otherwise.
        """
        leaves, tree = flatten_arguments("Exported.call", (args, kwargs))
        if tree != self.in_tree:
            differences = explain_mismatch(self.in_tree, tree)
            raise ValueError(
                "The invocation args and kwargs must have the same pytree structure as when the "
                f"function '{self.fun_name}' was exported, but they have the following structural "
                "differences:\n" + "\n".join(
                    "   - " + d.replace("at [0]", "at args").replace("at [1]", "at kwargs")
                    for d in differences))
        return self.out_tree.unflatten(self._flat(*leaves))

    @cached_property
    def _dimensions(self) -> Solution:
        """How the dimension variables follow from the sizes of arguments."""
        return solve([getattr(a, "shape", ()) for a in self.in_avals],
                     lambda i: argument_path(self.in_tree, i))

    @cached_property
    def _flat(self) -> Callable[..., list[Array]]:
        """The call of flat arguments: compiled once, and with the artifact's derivative, if any."""
        @custom_vjp
        def flat(*leaves: Array) -> list[Array]:
            return call_exported_p.bind(*map(as_exported, leaves, self.in_avals), exported=self)

        def bwd(leaves: Sequence[Array], cts: Sequence[object]) -> tuple[Array | None, ...]:
            pulled = self.vjp()._flat(*leaves, *cts)
            return tuple(None if is_float0(a.to_tangent_aval()) else ct
                         for a, ct in zip(self.in_avals, pulled, strict=True))

        flat.defvjp(lambda *leaves: (flat(*leaves), leaves), bwd)
        flat.__name__ = f"call_exported_{self.fun_name}"
        return jit(flat, inline=True)


def _sharding_over(sharding: NamedSharding | None, aval: ShapedArray,
                   mesh: Mesh | AbstractMesh | None) -> NamedSharding | None:
    """The exported sharding of an array of a type, over a mesh."""
    if sharding is None or mesh is None:
        return sharding
    if mesh.abstract_mesh != sharding.mesh:
        raise ValueError(f"NamedSharding new mesh {mesh} does not match the mesh used for export "
                         f"{sharding.mesh}; give one of the same axes.")
    if isinstance(mesh, AbstractMesh):      # without devices, no memory is the default
        return sharding.update(mesh=mesh, memory_kind=aval.memory_space.value)
    return sharding.update(mesh=mesh)


def default_export_platform() -> str:
    """The default platform of `export`.

    Returns: "cpu", "cuda", "rocm" or "tpu".

    >>> export.default_export_platform()
    'cpu'
    """
    return external(default_backend())


def export(fun_jit: Callable[..., PyTree], *, platforms: Sequence[str] | None = None,
           disabled_checks: Sequence[DisabledSafetyCheck] = (),
           _override_lowering_rules: Sequence[tuple[Primitive, Callable[..., object]]] | None
           = None) -> Callable[..., Exported]:
    """Export a function for other processes, machines and versions.

    Args:
      fun_jit: what `jit` returned, or a function of Olympus.
      platforms: the platforms to lower for, "cpu", "cuda", "rocm", "tpu"; None for the default one.
        A program for several runs on each of them, by the branch of `platform_dependent` that is
        for it.
      disabled_checks: checks to leave out.
    Returns: A function of the arguments (arrays, or anything with a shape and a dtype; shapes may
      be symbolic) that returns an `Exported`.

    ValueError for a function that is not jitted, and for custom calls without a promise that later
    versions have them; NotImplementedError for programs that call Python.

    >>> exported = export.export(olympus.jit(lambda x: 2 * x))(onp.arange(3))
    >>> artifact = exported.serialize()
    >>> print(export.deserialize(artifact).call(onp.arange(3)))
    [0 2 4]
    """
    if not isinstance(fun_jit, Wrapped) and (getattr(fun_jit, "__module__", None) or "").startswith(
            "olympus."):
        fun_jit = jit(fun_jit)      # functions of the library count as jitted
    if not isinstance(fun_jit, Wrapped):
        raise ValueError(f"export: Function to be exported must be the result of `jit` but is:\n  "
                         f"{fun_jit}; write export(jit(f)).")
    rules = {prim: Rule(prim, rule) for prim, rule in _override_lowering_rules or ()}

    @api_boundary
    def do_export(*args_specs: object, **kwargs_specs: object) -> Exported:
        names = (default_export_platform(),) if platforms is None else tuple(platforms)
        _check_scopes(name_of(fun_jit), args_specs, kwargs_specs)
        traced = fun_jit.trace(*args_specs, **kwargs_specs)
        if traced._program.high:
            raise TypeError(f"export: {traced.fun_name} takes or returns values of users' types, "
                            "which another process does not know; a function of arrays is "
                            "required; make the values inside, of their parts.")
        return _exported(traced, names, tuple(disabled_checks),
                         rules)

    do_export.__name__ = f"export_{name_of(fun_jit)}"
    return do_export


def _check_scopes(name: str, *specs: object) -> None:
    """ValueError unless all symbolic sizes belong to one scope."""
    leaves, tree = tree_flatten(specs)
    symbolic_sizes = [(i, d) for i, x in enumerate(leaves) for d in getattr(x, "shape", ())
                      if isinstance(d, Dimension)]
    for i, d in symbolic_sizes[1:]:
        first, other = symbolic_sizes[0]
        if d.scope is not other.scope:
            raise ValueError(
                f"Invalid mixing of symbolic scopes when exporting {name}.\nExpected current (from "
                f"{argument_path(tree, first)}) scope {other.scope}\nand found for '{d}' "
                f"({argument_path(tree, i)}) scope {d.scope}\nDimensions that meet are made with "
                "one scope: symbolic_shape(..., scope=scope).")


def _exported(traced: Traced, platforms: tuple[str, ...],
              disabled: tuple[DisabledSafetyCheck, ...],
              rules: Mapping[Primitive, Callable[..., object]]) -> Exported:
    """The export of a traced program."""
    version = config.export_calling_convention_version.value
    least, most = (minimum_supported_calling_convention_version,
                   maximum_supported_calling_convention_version)
    if not least <= version <= most:
        raise ValueError(f"export: The requested export calling convention version {version} is "
                         f"outside the range of supported versions [{least}..{most}].")
    recorded = traced._program
    if recorded.refs:
        i = recorded.refs[0]
        raise TypeError(
            f"export: {traced.fun_name} takes the reference {recorded.closed.in_avals[i]} as "
            f"{recorded.arg_names[i] or 'a value that it closes over'}; arrays are required, since "
            "a file has no place that it could write; pass ref[...] and return the new "
            "content, or make the reference inside.")
    effects = sorted(traced.olympuspr.effects, key=repr)
    ordered = tuple(e for e in effects if e.ordered)
    lowered = traced.lower(lowering_platforms=platforms, _private_parameters=rules,
                           _ordered_effects=len(ordered))
    module, context = lowered.compiler_ir(), lowered._context
    if context.host_callbacks:
        raise NotImplementedError(
            f"export: serialization of host_callbacks is not yet implemented: {traced.fun_name} "
            "calls Python, which no other process has; leave callbacks and debug prints out.")
    polymorphic = len(platforms) > 1 or context.refined
    module.operation.attributes["olympus.uses_shape_polymorphism"] = attr(str(polymorphic).lower())
    check_custom_calls(module, filter(None, [c.is_custom_call() for c in disabled]))
    closed, used = traced.olympuspr, lowered._kept
    interface, program = context.interface, lowered._program
    placed = interface.place(lowered._placement)
    asked = placed.shardings or (None,) * len(used)
    ins = [_abstract(s, a) if k else None
           for s, k, a in zip(asked, used, closed.in_avals, strict=True)]
    demanded = program.out_shardings or [None] * len(closed.out_avals)
    outs = [_abstract(s, a) for s, a in zip(demanded, closed.out_avals, strict=True)]
    return Exported(
        fun_name=traced.fun_name, in_tree=traced.in_tree, in_avals=tuple(closed.in_avals),
        out_tree=traced.out_tree, out_avals=tuple(closed.out_avals), _has_named_shardings=True,
        _in_named_shardings=tuple(ins), _out_named_shardings=tuple(outs),
        in_shardings_hlo=(None,) * len(ins), out_shardings_hlo=(None,) * len(outs),
        nr_devices=max(len(placed.devices), context.places.parts), platforms=lowered._platforms,
        ordered_effects=ordered,
        unordered_effects=tuple(e for e in effects if not e.ordered),
        disabled_safety_checks=disabled, mlir_module_serialized=portable(module),
        calling_convention_version=version,
        module_kept_var_idx=tuple(i for i, k in enumerate(used) if k),
        uses_global_constants=polymorphic,
        _get_vjp=lambda primal: _vjp(primal, closed, asked, demanded))


def _abstract(sharding: object, aval: Aval) -> NamedSharding | None:
    """A sharding without its devices, or the sharding of a type with explicit axes."""
    if type(sharding) is NamedSharding:
        return sharding.update(mesh=sharding.mesh.abstract_mesh)
    return aval.sharding if isinstance(aval, ShapedArray) and aval.explicit else None


def _cotangent(aval: Aval) -> ShapedArray:
    return aval.to_cotangent_aval() if isinstance(aval, ShapedArray) else aval.to_tangent_aval()


def _vjp(primal: Exported, closed: ClosedOlympuspr, ins: Sequence[object],
         outs: Sequence[object]) -> Exported:
    """The export of the derivative of an exported program, with the same shardings."""
    def fun_vjp(*args: PyTree) -> object:
        primals, cts = cut(args, len(primal.in_avals))
        return vjp(lambda *xs: eval_closed(closed, *xs), *primals)[1](list(cts))

    # The types have the shardings over a mesh without devices.
    ins, outs = ([None if isinstance(getattr(s, "mesh", None), AbstractMesh) else s for s in each]
                 for each in (ins, outs))
    avals = [*primal.in_avals, *map(_cotangent, primal.out_avals)]
    fun = jit(fun_vjp)
    if any(s is not None for s in (*ins, *outs)):
        fun = jit(fun_vjp, in_shardings=(*ins, *outs), out_shardings=tuple(ins))
    return export(fun, platforms=primal.platforms,
                  disabled_checks=primal.disabled_safety_checks)(*avals)


def deserialize(blob: bytes | bytearray, *, verify: bool = False) -> Exported:
    """Read an artifact that `Exported.serialize` wrote, here or elsewhere.

    Args:
      blob: its bytes. They are code: a call of the result runs it, custom calls included.
      verify: have another process read the modules first, which takes about a second: a forged
        module may make MLIR's reader end the process.
    Returns: An `Exported`. ValueError for bytes that are no artifact, or a truncated, damaged or
      newer one; the message says which.

    >>> artifact = export.export(olympus.jit(lambda x: x + 1))(1.0).serialize(vjp_order=1)
    >>> print(olympus.grad(export.deserialize(artifact).call)(2.0))
    1.0
    """
    fields = decode(blob)
    if verify:
        check_in_child(unpack(blob)[1])
    return _from_fields(fields)


def _from_fields(fields: Fields) -> Exported:
    written = fields.pop("vjp")
    checks = tuple(map(DisabledSafetyCheck, fields.pop("disabled_safety_checks")))
    get: Callable[[Exported], Exported] | None = None
    if written is not None:
        derivative = _from_fields(written)
        get = lambda _: derivative
    return Exported(**fields, disabled_safety_checks=checks, _get_vjp=get)
