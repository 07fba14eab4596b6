"""`pmap`: a function of one example, run by as many devices as there are examples.

It is `jit` of `shard_map` over a mesh of one axis, made of the devices when a call is traced; types
do not say which values vary, so that derivatives are `vmap`'s with an axis name. Where several
processes share the program, arguments and results of a call are on this process's devices, and a
call that is transformed runs on those alone.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from ..base.source import filter_traceback, summarize
from ..base.typing import Device, P, PyTree, R, Reference
from ..base.util import lazy_imports, name_of, wraps
from ..control.shard_map import shard_map_of_any_p
from ..core.context import ThreadState, ctx
from ..core.effects import input_effects
from ..core.ir import Literal, OlympusprEqn
from ..core.staging import JitTracer, StagingTrace
from ..core.trace import typeof
from ..devices import devices as backends
from ..jit.arguments import check_callable, check_results, structure_path
from ..jit.jit import jit
from ..jit.signature import indices
from ..jit.stages import Lowered, Traced
from ..job.state import current
from ..lax.shape import expand_dims, squeeze
from ..types.avals import MUTABLE
from ..types.mesh import Mesh, get_abstract_mesh
from ..types.sharding import PartitionSpec
from ..types.tree import flatten_axes, tree_flatten, tree_map
from .shard_map import mapped_by
from .vmap import check_axes, mapped_arguments

with lazy_imports(__name__):
    from ..arrays import multihost as _multihost  # of jobs only
    from ..lax import refs as _refs  # where there are references

_MOST_AXES = 1 << 16    # more than any array has
# Positional and keyword arguments, given the leaves of those that are not static.
Rebuild = Callable[[Sequence[object]], tuple[list[PyTree], dict[str, PyTree]]]
UNNAMED = "pmap axis"      # the name of an axis that the user has no name for
R_co = TypeVar("R_co", covariant=True)


class Pmapped(Protocol[P, R_co]):
    """A function that `pmap` returns, for type checkers."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...
    def trace(self, *args: P.args, **kwargs: P.kwargs) -> Traced: ...
    def lower(self, *args: P.args, **kwargs: P.kwargs) -> Lowered: ...
    def eval_shape(self, *args: P.args, **kwargs: P.kwargs) -> object: ...
    def clear_cache(self) -> None: ...


def pmap(fun: Callable[P, R], axis_name: Hashable | None = None, *,
         in_axes: int | None | Sequence[PyTree] = 0, out_axes: PyTree = 0,
         static_broadcasted_argnums: int | Sequence[int] = (),
         devices: Sequence[Device] | None = None, backend: str | None = None,
         axis_size: int | None = None, donate_argnums: int | Sequence[int] = ()
         ) -> Pmapped[P, R]:
    """Map a function over an axis of its arguments, each example on a device of its own.

    The function is compiled once, for one example, and all devices run it at once. `shard_map` does
    the same along several axes of a mesh, and cuts arguments into parts of any size.

    Args:
      fun: a function of pytrees of arrays.
      axis_name: what collectives (`lax.psum`) inside the function call the axis.
      in_axes: per positional argument the axis to map over, as for `vmap`: an int, None for an
        argument that all devices get whole, or a pytree of those. Keyword arguments are mapped
        along axis 0.
      out_axes: where the mapped axis is in the results: likewise, counted from the front; None for
        a result that is the same on all devices: the first device's is taken.
      static_broadcasted_argnums: positions of arguments that are Python values of the program:
        hashable, passed positionally; one compilation for each value.
      devices: where the examples run, in their order. Default: the first devices of `backend`.
      backend: a platform's name. Default: the default backend.
      axis_size: how many examples there are; needed only where no argument is mapped.
      donate_argnums: positions of arguments whose buffers the program may reuse; the call deletes
        those arrays, spread over the devices already, whose buffers it did reuse.
    Returns: A function of the same arguments, each mapped array with one axis more. Its results are
      spread over the devices along their mapped axis. It has the methods of a jitted function.

    ValueError for more examples than devices, sizes that differ and axes out of range; TypeError
    for arguments that are not arrays.

    >>> fraction = olympus.pmap(lambda x: x / olympus.lax.psum(x, "i"), axis_name="i")
    >>> fraction(onp.full((olympus.device_count(), 2), 3.0)).sum(0)
    Array([1., 1.], dtype=float32)
    """
    check_callable("pmap", fun)
    for option, axes in (("in_axes", in_axes), ("out_axes", out_axes)):
        check_axes("pmap", option, axes)
    if isinstance(axis_name, tuple) or not isinstance(axis_name, Hashable):
        raise TypeError(f"pmap: axis_name={axis_name!r} of type {type(axis_name).__name__} given; "
                        "a hashable name of one axis is required; give a string.")
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if devices is not None:
        try:
            devices = tuple(devices)
        except TypeError:
            raise TypeError(f"pmap: devices={devices!r} of type {type(devices).__name__} given; a "
                            "sequence of devices, or None, is required.") from None
        if not devices:
            raise ValueError("pmap: 'devices' argument to pmap must be non-empty, or None.")
    mapped = _Mapped(fun, UNNAMED if axis_name is None else axis_name, in_axes, out_axes,
                     indices(static_broadcasted_argnums, "pmap", "static_broadcasted_argnums"),
                     devices, backend, axis_size)
    jitted = jit(wraps(fun)(mapped.traced), static_argnums=static_broadcasted_argnums,
                 donate_argnums=donate_argnums)

    # An eager call of a job has this process's examples; under a trace, values cover all devices.
    def call(*args: PyTree, **kwargs: PyTree) -> object:
        try:
            if current.num_processes > 1 and ctx.trace is ThreadState.trace:
                return mapped.of_process(jitted, args, kwargs)
            return jitted(*args, **kwargs)
        except Exception as error:
            filter_traceback(error)
            raise

    pmapped: Any = wraps(fun)(call)
    for method in ("trace", "lower", "eval_shape", "clear_cache"):
        setattr(pmapped, method, getattr(jitted, method))
    return pmapped


class _Mapped:
    """The arguments of `pmap`."""

    def __init__(self, fun: Callable[..., PyTree], name: Hashable, in_axes: PyTree,
                 out_axes: PyTree, static: tuple[int, ...], devices: tuple[Device, ...] | None,
                 backend: str | None, axis_size: int | None) -> None:
        self.fun, self.name, self.in_axes, self.out_axes = fun, name, in_axes, out_axes
        self.static, self.devices, self.backend = static, devices, backend
        self.axis_size = axis_size
        self.out_specs = tree_map(self._spec, out_axes, is_leaf=lambda x: x is None)

    @property
    def traced(self) -> Callable[..., PyTree]:
        """The function of whole arrays, over all devices."""
        def mapped(*args: PyTree, **kwargs: PyTree) -> object:
            if outer := get_abstract_mesh().manual_axes:
                raise ValueError(f"pmap: {name_of(self.fun)} is called by a function mapped along "
                                 f"{outer}; one level of pmap or shard_map is required, whose "
                                 "devices are taken then; use vmap inside, or shard_map over a "
                                 "mesh with several axes.")
            leaves, dims, size, rebuilt = self._arguments(args, kwargs, self.axis_size)

            # A device's part has size 1 along the mapped axis, which the function must not see. A
            # reference gets a reference without that axis, whose content is put back at the end.
            def run(*xs: Reference) -> PyTree:
                parts = [x if d is None else _refs.new_ref_p.bind(
                    squeeze(x[...], (d,)), memory_space=None, kind=None, pin=False)
                         if typeof(x).mutable else squeeze(x, (d,))
                         for x, d in zip(xs, dims, strict=True)]
                full, named = rebuilt(parts)
                out = self._stacked(self.fun(*full, **named))
                if MUTABLE and isinstance(ctx.trace, StagingTrace):
                    self._check_writes([x for x, d in zip(xs, dims, strict=True) if d is not None])
                for x, part, d in zip(xs, parts, dims, strict=True):
                    if d is not None and typeof(x).mutable:
                        x[...] = expand_dims(part[...], (d,))
                return out

            # Types do not say what varies: as under vmap with an axis name, grad inside sums over
            # the devices.
            return mapped_by(
                shard_map_of_any_p, "shard_map", run, self._mesh(size),
                tuple(map(self._spec, dims)), self.out_specs, frozenset(), False)(*leaves)

        return mapped

    def _check_writes(self, mapped: Sequence[JitTracer]) -> None:
        """ValueError for a value of one device that is written to a reference that all share."""
        eqns: list[OlympusprEqn] = ctx.trace.eqns
        varying: set[Any] = {x._bound for x in mapped}
        own = {*varying, *[v for eqn in eqns for v in eqn.outvars]}
        for eqn in eqns:
            # A value that the devices have agreed on is the same on each.
            if eqn.primitive.uses_axis(self.name, eqn.params) or varying.isdisjoint(
                    [v for v in eqn.invars if type(v) is not Literal]):
                continue
            varying.update(eqn.outvars)
            for e in input_effects(eqn.effects):
                if e.kind != "read" and (ref := eqn.invars[e.index]) not in own:
                    raise ValueError(
                        f"pmap: a value that differs from device to device is written to a "
                        f"reference {ref.aval}\n  at {summarize(eqn.source)}, which all of them "
                        f"share when {name_of(self.fun)} is mapped;\n  pass the reference as an "
                        "argument that in_axes maps, or write what lax.psum or lax.pmean makes of "
                        "the values.")

    def of_process(self, jitted: Callable[..., PyTree], args: tuple, kwargs: dict[str, PyTree]
                   ) -> object:
        """A call on this process's examples, one for each of its devices."""
        # axis_size counts the examples of all processes; each has as many.
        size = self.axis_size and self.axis_size // current.num_processes
        leaves, dims, size, rebuilt = self._arguments(args, kwargs, size)
        mesh = self._mesh(size * current.num_processes if self.devices is None else
                          len(self.devices))
        if len(mesh.local_devices) != size:
            raise ValueError(f"pmap: {name_of(self.fun)} is mapped over {size} examples in process "
                             f"{current.process_id}, and {len(mesh.local_devices)} of its devices "
                             "take part; one of them for each example is required.")
        full, named = rebuilt(_multihost.host_local_array_to_global_array(
            leaves, mesh, list(map(self._spec, dims))))
        return _multihost.global_array_to_host_local_array(jitted(*full, **named), mesh,
                                                           self.out_specs)

    def _arguments(self, args: tuple, kwargs: dict[str, PyTree], size: int | None
                   ) -> tuple[list[Any], list[int | None], int, Rebuild]:
        """The leaves of dynamic arguments, the mapped axis of each, how many examples there are,
        and what makes arguments of such leaves again."""
        static, count, axes = self.static, len(args), self.in_axes
        if static and max(static) >= count:
            raise ValueError(
                f"pmap: pmapped function has static_broadcasted_argnums={static} but was called "
                f"with only {count} positional argument{'' if count == 1 else 's'}. All static "
                f"broadcasted arguments must be passed positionally: {name_of(self.fun)}.")
        fixed = {i % count for i in static}     # negative ones count from the end of this call
        dynamic = [i for i in range(count) if i not in fixed]
        # Entries of in_axes for static arguments are allowed, and mean nothing.
        if fixed and type(axes) is tuple and len(axes) == count:
            axes = tuple([axes[i] for i in dynamic])
        leaves, in_tree, dims, size = mapped_arguments(
            "pmap", self.fun, tuple([args[i] for i in dynamic]), kwargs, axes, size, dynamic)

        def rebuilt(xs: Sequence[object]) -> tuple[list[PyTree], dict[str, PyTree]]:
            full, (mapped, named) = list(args), in_tree.unflatten(xs)
            for i, x in zip(dynamic, mapped, strict=True):
                full[i] = x
            return full, named

        return leaves, dims, size, rebuilt

    def _spec(self, axis: int | None) -> PartitionSpec:
        """How an array is cut that is mapped along an axis."""
        if axis is not None and axis > _MOST_AXES:
            raise ValueError(f"pmap: axis {axis} given; no array has as many axes; give another.")
        return PartitionSpec() if axis is None else PartitionSpec(*[None] * axis, self.name)

    def _mesh(self, size: int) -> Mesh:
        """The mesh for a call on `size` examples: the first of the devices."""
        devices = self.devices
        if devices is None:
            devices = tuple(backends.devices(self.backend))
            if current.num_processes > 1:       # each process's side by side
                devices = tuple(sorted(devices, key=lambda d: d.process_index))
                if size != len(devices):      # of what this process does alone
                    devices = tuple(backends.local_devices(backend=self.backend))
        if not 0 < size <= len(devices):
            raise ValueError(f"pmap: {name_of(self.fun)} is mapped over {size} examples, and there "
                             f"are {len(devices)} devices; one device for each example is "
                             "required; map over some with vmap inside, or over parts with "
                             "shard_map.")
        return Mesh(np.array(devices[:size], dtype=object), (self.name,))

    def _stacked(self, out: object) -> object:
        """A device's results with the mapped axis, on which each has one entry."""
        outs, tree = tree_flatten(out)
        check_results("pmap", self.fun, out, outs)
        dims = flatten_axes("pmap out_axes", tree, self.out_axes)
        for i, (x, d) in enumerate(zip(outs, dims, strict=True)):
            if d is not None and not 0 <= d <= typeof(x).ndim:
                rank = typeof(x).ndim + 1
                raise ValueError(f"pmap: out_axes has {d} for result{structure_path(tree, i)} of "
                                 f"{name_of(self.fun)}, which with the mapped axis has rank {rank};"
                                 f" an axis in range({rank}) is required.")
        return tree.unflatten([x if d is None else expand_dims(x, (d,))
                               for x, d in zip(outs, dims, strict=True)])
