"""Functions of references run on each core of a mesh, one after the other.

    core_map(mesh)(f)                  f for each core, on references that it closes over
    kernel(f, out_type, mesh=mesh)     the function of arrays that makes references of them
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from ..base.config import pallas_interpret
from ..base.source import api_boundary
from ..base.typing import Array, PyTree, Reference
from ..base.util import name_of
from ..control_flow.while_loop import fori_loop
from ..core.cells import is_ref
from ..core.trace import literal
from ..numpy.refs import freeze, new_ref
from ..types.tree import tree_flatten, tree_map
from .call import not_compiled
from .grid import around
from .scoped import made, run_scoped
from .semaphores import first_content
from .specs import GENERATOR, INT32, CostEstimate

_NOT_GIVEN = object()


def _sizes(mesh: PyTree) -> Mapping[str, int]:
    """Names and sizes of a mesh's axes."""
    shape = getattr(mesh, "shape", None)
    if not isinstance(shape, Mapping):
        raise TypeError(f"core_map: {mesh!r:.60} given; a mesh of cores is required, whose `shape` "
                        "has the sizes by name.")
    return shape


def _on_cores(mesh: PyTree, f: Callable[[], None]) -> None:
    shape = _sizes(mesh)
    names, sizes = tuple(shape), tuple(shape.values())

    def on(ids: Sequence[Array]) -> None:
        with around(ids, sizes, names, made(GENERATOR)):
            result = f()
        if tree_flatten(result)[0]:
            raise ValueError(f"core_map: {name_of(f)} returned {result!r:.60}; None is required; "
                             "write results to references.")

    if math.prod(sizes) == 1:
        on([literal(0, INT32)] * len(sizes))
        return

    def body(i: Array, carry: None) -> None:
        ids = []
        for n in reversed(sizes):
            ids.append(i % n)
            i = i // n
        on(ids[::-1])

    fori_loop(0, math.prod(sizes), body, None)


@api_boundary
def core_map(mesh: PyTree, *, compiler_params: object = None, interpret: object = False,
             debug: bool = False, cost_estimate: CostEstimate | None = None,
             name: str | None = None, metadata: Mapping[str, str] | None = None,
             scratch_shapes: PyTree = ()) -> Callable[[Callable[..., None]], None]:
    """Run the decorated function on each core of a mesh; it closes over references.

    Args:
      mesh: a mesh of cores: `shape` has the sizes of its axes by name.
      interpret: run the cores one after the other; without it a backend would compile the function.
      scratch_shapes: types of references that the function gets for each core.
      compiler_params, debug, cost_estimate, name, metadata: as for `pallas_call`.

    >>> from types import SimpleNamespace
    >>> from olympus.experimental import pallas as pl
    >>> ref = olympus.new_ref(onp.zeros(2))
    >>> @pl.core_map(SimpleNamespace(shape={"core": 2}), interpret=True)
    ... def _():
    ...     ref[lax.axis_index("core")] = 1.
    >>> print(ref[...])
    [1. 1.]
    """
    def run(f: Callable[..., None]) -> None:
        if not (interpret or pallas_interpret.value):
            raise not_compiled("cpu")
        named = isinstance(scratch_shapes, dict)
        _on_cores(mesh, lambda: run_scoped(
            f, *(() if named else scratch_shapes), **(scratch_shapes if named else {})))

    return api_boundary(run)


@api_boundary
def kernel(body: PyTree = _NOT_GIVEN, out_type: PyTree = (), *, mesh: PyTree,
           scratch_types: PyTree = (), compiler_params: object = None, interpret: object = False,
           cost_estimate: CostEstimate | None = None, debug: bool = False,
           name: str | None = None, metadata: Mapping[str, str] | None = None) -> PyTree:
    """The function of arrays that runs a kernel on each core of a mesh.

    Args:
      body: a function of references: to the arguments, the outputs and the scratch. Left out, a
        decorator for it is returned.
      out_type: shapes and dtypes of the outputs, a pytree.
      mesh: a mesh of cores.
      scratch_types: types of references that the function gets for each core, a row or a dict.
      interpret, compiler_params, cost_estimate, debug, name, metadata: as for `core_map`.
    Returns: A function of arrays, and of references, which it may write; it returns arrays like
      `out_type`.

    >>> from types import SimpleNamespace
    >>> from olympus.experimental import pallas as pl
    >>> @pl.kernel(out_type=olympus.ShapeDtypeStruct((2,), onp.float32),
    ...            mesh=SimpleNamespace(shape={"core": 1}), interpret=True)
    ... def double(x, o):
    ...     o[...] = x[...] * 2
    >>> print(double(onp.array([1., 2.])))
    [2. 4.]
    """
    options = {"mesh": mesh, "scratch_types": scratch_types, "compiler_params": compiler_params,
               "interpret": interpret, "cost_estimate": cost_estimate, "debug": debug,
               "name": name, "metadata": metadata}
    if body is _NOT_GIVEN:
        return lambda fun: kernel(fun, out_type, **options)
    if isinstance(body, Sequence) or isinstance(mesh, Sequence):
        raise NotImplementedError("kernel: several kernels given; one function and one mesh are "
                                  "required: nothing here runs several at once; call them in turn.")

    def run(*args: PyTree) -> PyTree:
        refs = tree_map(lambda x: x if is_ref(x) else new_ref(x), args)
        outs: Reference = tree_map(lambda x: new_ref(first_content(x)), out_type)
        row = outs if isinstance(outs, (tuple, list)) else (outs,)
        core_map(mesh, interpret=interpret, name=name, scratch_shapes=scratch_types)(
            lambda *scratch, **named: body(*refs, *row, *scratch, **named))
        return tree_map(freeze, outs)

    run.__name__ = name or name_of(body)
    return api_boundary(run)
