"""Where the operations of a program run: on the device, or on the host beside it."""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Callable, Iterator

from ..base.typing import Array, PyTree
from ..base.util import WithAux, name_of, wraps
from ..control.compute_on import compute_on_p
from ..core.context import ROOT, ComputeOn as ComputeScope, ctx, outermost
from ..core.ir import DebugInfo
from ..core.staging import closure_convert, stage
from ..core.trace import typeof
from ..lax.sharding import move
from ..types.memory import Space
from ..types.tree import flatten_axes, tree_flatten, tree_unflatten
from ..types.tree_registry import PyTreeDef

_TYPES = ("device_host", "device", "tpu_sparsecore")


def _check_compute_type(what: str, compute_type: str) -> None:
    if not isinstance(compute_type, str):
        raise TypeError(f"{what}: `compute_on`'s compute_type argument must be a string: "
                        f"{compute_type!r} given; name one of {', '.join(_TYPES)}.")
    if compute_type not in _TYPES and not compute_type.startswith("gpu_stream:"):
        raise ValueError(f"{what}: Invalid compute type {compute_type}. Current supported values "
                         "are `device_host`, `device`, `tpu_sparsecore`, and `gpu_stream:#`; name "
                         "one of those.")


@contextlib.contextmanager
def compute_on(compute_type: str) -> Iterator[None]:
    """Context manager and decorator: operations that are traced inside run elsewhere.

    Args: compute_type: "device_host", the host; "device", the device; "tpu_sparsecore"; or
        "gpu_stream:1", a stream of the GPU, by its number.

    On a CPU, all are the same. Operands must be in a memory that is read there: move them with
    `device_put` and a `memory.Space`. TypeError for anything but a string, ValueError for an
    unknown one.

    >>> from olympus.experimental.compute_on import compute_on
    >>> @olympus.jit
    ... def f(x):
    ...     with compute_on("device_host"):
    ...         y = x * 2
    ...     return y + 1
    >>> '_xla_compute_type = "host"' in f.lower(1.0).as_text(), f(1.0)
    (True, Array(3., dtype=float32, weak_type=True))
    """
    _check_compute_type("compute_on", compute_type)
    outer, scope = ctx.scope, ComputeScope(compute_type)
    # Also for programs that begin inside: jitted functions that are called there.
    around = outermost.swap_local((outermost.value or ROOT).extend(scope))
    ctx.scope = outer.extend(scope)
    try:
        yield
    finally:
        ctx.scope = outer
        outermost.set_local(around)


def compute_on2(f: Callable[..., PyTree] | None = None, *, compute_type: str,
                out_memory_spaces: PyTree, compiler_options: dict[str, object] | None = None
                ) -> Callable[..., PyTree]:
    """The function, run elsewhere, as one call; a decorator if no function is given.

    Args:
      f: a function of pytrees of arrays.
      compute_type: as `compute_on` takes it.
      out_memory_spaces: the `memory.Space` of the results, or a pytree of those that is a prefix of
        the result's structure.
      compiler_options: options of the call for XLA, by name.
    Returns: A function of the same positional arguments.

    >>> from olympus.experimental.compute_on import compute_on2
    >>> f = compute_on2(onp.sin, compute_type="device_host",
    ...                 out_memory_spaces=olympus.memory.Space.Host)
    >>> f(onp.zeros(2)).sharding.memory_kind
    'pinned_host'
    """
    _check_compute_type("compute_on2", compute_type)
    if f is None:
        return functools.partial(compute_on2, compute_type=compute_type,
                                 out_memory_spaces=out_memory_spaces,
                                 compiler_options=compiler_options)
    options = None if compiler_options is None else json.dumps(compiler_options)

    @wraps(f)
    def elsewhere(*args: Array) -> object:
        leaves, tree = tree_flatten(args)

        def flat(*inner: Array) -> tuple[list[Array], PyTreeDef]:
            with compute_on(compute_type):
                return tree_flatten(f(*tree_unflatten(tree, inner)))

        with_aux = WithAux(flat)
        closed, tracers = closure_convert(stage(with_aux, [typeof(x) for x in leaves],
                                                DebugInfo("compute_on", name_of(f))))
        outs = compute_on_p.bind(*tracers, *leaves, olympuspr=closed, compute_type=compute_type,
                                 compiler_options=options)
        spaces = flatten_axes("compute_on2 out_memory_spaces", with_aux.aux, out_memory_spaces)
        return tree_unflatten(with_aux.aux, [
            move(x, Space.of(space)) for x, space in zip(outs, spaces, strict=True)])

    return elsewhere
