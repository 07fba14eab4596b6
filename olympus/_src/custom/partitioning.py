"""custom_partitioning: functions whose user says how they run on parts of their operands.

    traced      `custom_partitioning` with the whole function as its body
    one device  the body
    several     a custom call with a rule by which Shardy shards operands and results; XLA's
                partitioner then asks `partition` for the program of one device's parts
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..base import errors, lib
from ..base.source import api_boundary
from ..base.typing import Array, Device, F, IrType, IrValue, P, Params, PyTree, R
from ..base.util import WithAux, name_of
from ..control.shard_map import Manual
from ..core.evaluate import eval_closed
from ..core.ir import ClosedOlympuspr, DebugInfo
from ..core.primitive import Builder, Primitive
from ..core.staging import closure_convert, stage
from ..core.trace import Tracer, typeof
from ..interpreters.passes import arrays_only
from ..lowering.module import lower_part
from ..lowering.spreading import named
from ..types.avals import ShapedArray, ShapeDtypeStruct, make_aval
from ..types.mesh import Mesh
from ..types.sharding import NamedSharding, PartitionSpec
from ..types.tree import tree_flatten, tree_leaves, tree_unflatten
from ..types.tree_registry import PyTreeDef
from .rules import CustomFunction
from .sharding_rules import SdyShardingRule, parse_rule, rule_attribute


class CustomPartitioning(Primitive):
    """params: partitioner, the functions of one call."""

    multiple_results = True
    jvp = transpose = vmap = None       # users give these to the function

    def inferred(self, avals: Sequence[ShapedArray], params: Params) -> list[ShapedArray]:
        return params["partitioner"].whole.out_avals

    def infer(self, *avals: ShapedArray, partitioner: Partitioner) -> list[ShapedArray]:
        return partitioner.whole.out_avals

    def impl(self, *args: Array, partitioner: Partitioner) -> list[Array]:
        return eval_closed(partitioner.whole, *args)

    def lower(self, b: Builder, *args: IrValue, partitioner: Partitioner) -> list[IrValue]:
        module, whole, placed = b.module, partitioner.whole, b.module.places
        if len(placed.devices) < 2 or placed.apart:
            return b.call_inline(whole, args)
        part = partitioner.on(module)
        types = [b.type(a) for a in whole.out_avals]
        key = lib.mlir.ir.StringAttr.get(lib.partitioner_key(module.calls.hook(part)))
        attributes = {"api_version": b.attr("2 : i32"), "has_side_effect": b.attr("false"),
                      "backend_config": key}
        rule = partitioner.rule([x.type for x in args], types, part.mesh)
        if rule is not None:
            attributes["sdy.sharding_rule"] = rule_attribute(
                rule, [a.shape for a in whole.in_avals], [a.shape for a in whole.out_avals])
        return b.custom_call(lib.PARTITIONED_CALL, args, types, attributes)


custom_partitioning_p = CustomPartitioning("custom_partitioning")
# The axes that are sharded alike: a rule, its text, or a function that returns one of these.
SpreadAlike = SdyShardingRule | str | Callable[..., object] | None


class Partitioner:
    """The pytree structures, static arguments and user's functions of one call."""

    def __init__(self, owner: custom_partitioning[..., PyTree], whole: ClosedOlympuspr,
                 static: tuple[object, ...], in_tree: PyTreeDef, out_tree: PyTreeDef) -> None:
        assert owner.partition is not None
        self.partition, self.sharding_rule = owner.partition, owner.sharding_rule
        self.decode, self.name = owner.decode_shardings, name_of(owner.fun)
        self.whole, self.static = whole, static
        self.in_tree, self.out_tree = in_tree, out_tree

    def __repr__(self) -> str:
        return f"Partitioner({self.name}, {self.sharding_rule})"

    def rule(self, operands: list[IrType], results: list[IrType], mesh: object
             ) -> SdyShardingRule | None:
        """The rule for Shardy; a user's function may make it of the types."""
        rule, options = self.sharding_rule, {}
        if callable(rule):
            rule = rule(*self.static, mesh, operands, results)
            if isinstance(rule, (list, tuple)) and len(rule) == 2:
                rule, options = rule
            if not isinstance(rule, (str, SdyShardingRule)):
                raise ValueError(f"custom_partitioning: sharding_rule of {self.name} returned "
                                 f"{rule!r}; sharding_rule callable must produce either an "
                                 "SdyShardingRule object or an Einsum-like notation string.")
        return parse_rule(rule, **options) if isinstance(rule, str) else rule

    def on(self, module: Any) -> Parts:
        """The answers to XLA's partitioner about a module that is being lowered."""
        placed = module.places
        meshes = [m for m in [*placed.given, *placed.meshes] if m.device_tuple == placed.devices]
        return Parts(self, meshes[0] if meshes else None, placed.devices, module.platform)


class Parts:
    """Makes the program of one device's parts when XLA knows these."""

    def __init__(self, partitioner: Partitioner, mesh: Mesh | None, devices: tuple[Device, ...],
                 platform: str) -> None:
        self.partitioner, self.mesh = partitioner, mesh
        self.devices, self.platform = devices, platform

    def __call__(self, args: Sequence[lib.WholeArray], results: Sequence[lib.WholeArray]
                 ) -> tuple[bytes, list[Any], list[Any]]:
        """(the module of one device, the tilings of its operands, the tilings of its results)."""
        p = self.partitioner
        ins = tree_unflatten(p.in_tree, list(map(self._struct, args)))
        outs = tree_unflatten(p.out_tree, list(map(self._struct, results)))
        mesh, fun, out_shardings, in_shardings = p.partition(*p.static, self._own_mesh(), ins, outs)
        wanted_in = self._tilings(p.in_tree, in_shardings, args)
        wanted_out = self._tilings(p.out_tree, out_shardings, results)
        avals = [_part_type(x, t) for x, t in zip(args, wanted_in, strict=True)]

        def flat(*xs: object) -> list[Array]:
            return tree_leaves(fun(*tree_unflatten(p.in_tree, xs)))

        with Manual(mesh, frozenset(mesh.axis_names), False).within():
            closed = arrays_only(stage(flat, avals, DebugInfo(
                "custom_partitioning", f"{p.name}_part")))
        promised = [_part_type(x, t) for x, t in zip(results, wanted_out, strict=True)]
        if [(a.shape, a.dtype) for a in closed.out_avals] != [
                (a.shape, a.dtype) for a in promised]:
            raise ValueError(f"custom_partitioning: Mismatch in result shapes: the function for "
                             f"parts of {p.name} returned {closed.out_avals}; {promised} is "
                             "required, as the shardings of the results say.")
        return lower_part(closed, p.name, self.platform, mesh, self.devices), wanted_in, wanted_out

    def _own_mesh(self) -> Mesh:
        """The program's mesh, or a mesh with a single axis that no spec names."""
        return self.mesh or Mesh(np.array(self.devices), "devices")

    def _struct(self, x: lib.WholeArray) -> ShapeDtypeStruct:
        sharding = None
        if x.tiling is not None:
            meshes = [self.mesh] if self.mesh is not None and self.partitioner.decode else []
            sharding = named(meshes, self.devices, x.tiling, len(x.shape))
        if type(sharding) is NamedSharding:
            rest = [None] * (len(x.shape) - len(sharding.spec))
            sharding = sharding.update(spec=PartitionSpec(*sharding.spec, *rest))
        return ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding)

    def _tilings(self, tree: PyTreeDef, shardings: object, arrays: Sequence[lib.WholeArray]
                 ) -> list[Any]:
        by_leaf = tree.flatten_up_to(shardings)
        for sharding in by_leaf:
            if not isinstance(sharding, lib.Sharding):
                raise ValueError(f"custom_partitioning: partition of {self.partitioner.name} "
                                 f"returned {sharding!r}; Custom Partitioning rules must return "
                                 "Sharding.")
        return [s._to_xla_hlo_sharding(len(x.shape)) for s, x in zip(by_leaf, arrays, strict=True)]


def _part_type(x: lib.WholeArray, tiling: object) -> ShapedArray:
    """The type of one device's part."""
    counts = lib.tile_counts(tiling, len(x.shape))
    shape = tuple([-(-size // n) for size, n in zip(x.shape, counts, strict=True)])
    return make_aval(shape, np.dtype(x.dtype))


class custom_partitioning(CustomFunction[P, R]):
    """Decorator: on several devices, the function runs on the parts of its operands.

    Args:
      fun: a function of pytrees of arrays, which runs where there is one device, and outside `jit`.
      static_argnums: positions of arguments that are no arrays; the functions given to
        `def_partition` get them first.

    `def_partition` must be called once. There are no derivatives and no vmap of the function: give
    it those with `custom_jvp`, `custom_vjp` and `custom_vmap`.

    >>> import olympus, olympus.numpy as onp
    >>> from olympus.experimental.custom_partitioning import custom_partitioning
    >>> @custom_partitioning
    ... def f(x):
    ...     return onp.cumsum(x, 1)
    >>> def partition(mesh, arg_shapes, result_shape):      # cut along the rows
    ...     rows = olympus.sharding.NamedSharding(
    ...         mesh, olympus.sharding.PartitionSpec(arg_shapes[0].sharding.spec[0], None))
    ...     return mesh, lambda x: onp.cumsum(x, 1), rows, (rows,)
    >>> _ = f.def_partition(partition, sharding_rule="i j -> i j")
    >>> print(f(onp.ones((1, 3))))
    [[1. 2. 3.]]
    """

    what = "custom_partitioning"

    def __init__(self, fun: Callable[P, R], static_argnums: int | Sequence[int] = ()) -> None:
        super().__init__(fun, (static_argnums,) if isinstance(static_argnums, int)
                         else tuple(static_argnums))
        self.partition: Callable[..., Any] | None = None
        self.sharding_rule: Any = None
        self.decode_shardings = True

    def def_partition(self, partition: F,
                      infer_sharding_from_operands: Callable[..., object] | None = None,
                      propagate_user_sharding: Callable[..., object] | None = None,
                      decode_shardings: bool = True, sharding_rule: SpreadAlike = None, *,
                      reduction_factors: tuple[str, ...] = (),
                      need_replication_factors: tuple[str, ...] = (),
                      permutation_factors: tuple[str, ...] = (), **factor_sizes: int
                      ) -> F:
        """Say how the function runs on parts.

        Args:
          partition: takes (static arguments…, mesh, the operands, the result), the latter two as
            `ShapeDtypeStruct`s of whole arrays with the shardings that XLA suggests, and returns
            (mesh, a function of one device's parts, the result's shardings, the operands'
            shardings, as a tuple). The function may use collectives along axes of the mesh.
          infer_sharding_from_operands, propagate_user_sharding: not used: Shardy takes the rule.
          decode_shardings: whether suggested shardings are `NamedSharding`s where they can be.
          sharding_rule: which axes of operands and results are spread alike: a text like
            "... i j, j k -> ... i k", an `SdyShardingRule`, or a function of (static arguments…,
            mesh, operand types, result types) that returns one of these.
          reduction_factors, need_replication_factors, permutation_factors, **factor_sizes: as for
            `SdyShardingRule`, for a rule that is a text.

        Returns:
          `partition`.
        """
        options: dict[str, Any] = {
            name: value for name, value in (
                ("reduction_factors", reduction_factors),
                ("need_replication_factors", need_replication_factors),
                ("permutation_factors", permutation_factors)) if value}
        options |= factor_sizes
        if isinstance(sharding_rule, str):
            sharding_rule = parse_rule(sharding_rule, **options)
        elif sharding_rule is not None and not callable(sharding_rule) and (
                not isinstance(sharding_rule, SdyShardingRule)):
            raise TypeError(f"custom_partitioning: rule must be a str, but got "
                            f"{type(sharding_rule)}; an SdyShardingRule, or a function, will do, "
                            "too.")
        elif options:
            raise ValueError(f"custom_partitioning: Unknown keyword arguments: {options}; they are "
                             "for rules that are texts.")
        self.partition, self.sharding_rule = partition, sharding_rule
        self.decode_shardings = decode_shardings
        if sharding_rule is None and (infer_sharding_from_operands or propagate_user_sharding):
            self.sharding_rule = _no_rule
        return partition

    @api_boundary
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if self.partition is None:
            raise AttributeError(f"custom_partitioning {name_of(self.fun)}: called without "
                                 "def_partition; call that first.")
        if self.sharding_rule is _no_rule:
            raise NotImplementedError(
                f"custom_partitioning {name_of(self.fun)}: sharding propagation callbacks instead "
                "of sharding_rule are provided; Shardy takes rules only. Need to provide "
                "sharding_rule to migrate to Shardy.")
        arguments = self.resolve(args, kwargs)
        static = tuple([arguments[i] for i in self.nondiff_argnums])
        if any(isinstance(x, Tracer) for x in tree_leaves(static)):
            raise errors.UnexpectedTracerError(
                f"custom_partitioning {name_of(self.fun)}: a traced value given for a static "
                "argument; a Python value is required.")
        dynamic = tuple([x for i, x in enumerate(arguments) if i not in self.nondiff_argnums])
        leaves, in_tree = tree_flatten(dynamic)
        fun: Callable[..., Any] = self.fun

        def flat(*xs: object) -> tuple[list[Array], PyTreeDef]:
            rest = iter(tree_unflatten(in_tree, xs))
            return tree_flatten(fun(*[
                x if i in self.nondiff_argnums else next(rest) for i, x in enumerate(arguments)]))

        with_aux, name = WithAux(flat), name_of(self.fun)
        closed, tracers = closure_convert(stage(with_aux, [typeof(x) for x in leaves],
                                                DebugInfo("custom_partitioning", name)))
        if tracers:
            raise errors.UnexpectedTracerError(
                f"custom_partitioning {name}: the function closes over traced values; those are "
                "operands, which `partition` spreads; pass them as arguments.")
        closed = arrays_only(closed)
        outs = custom_partitioning_p.bind(
            *leaves, partitioner=Partitioner(self, closed, static, in_tree, with_aux.aux))
        return tree_unflatten(with_aux.aux, outs)


def _no_rule() -> None:
    """Stands for functions that Shardy does not ask."""
