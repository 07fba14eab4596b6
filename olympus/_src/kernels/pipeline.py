"""Pipelines inside of kernels: a function of blocks of references, for each place of a grid.

On a TPU blocks are copied while others are computed; here each is copied, computed and copied back.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

from ..base.source import api_boundary
from ..base.typing import Array, PyTree, Reference
from ..control_flow.while_loop import fori_loop
from ..lax.collectives.axes import axis_index
from ..numpy.index_plan import Slice
from ..numpy.refs import get, set
from ..types.avals import make_aval
from ..types.tree import tree_leaves
from .control import when
from .grid import around, program_id
from .masked import load, store
from .scoped import run_scoped
from .specs import Blocked, BlockSpec, Element, Grid, GridSpec, MemoryRef, MemorySpace, Squeezed
from .steps import as_index


def place_of(spec: BlockSpec, ref: Reference, ids: Sequence[Array]) -> tuple[PyTree, ...]:
    """The index of a step's block in a reference: a `ds` for each axis that the body sees."""
    sizes: Sequence[Any] = ref.shape if spec.block_shape is None else spec.block_shape
    if len(sizes) != len(ref.shape):
        raise ValueError(f"emit_pipeline: the block shape {tuple(sizes)} given for a reference of "
                         f"shape {ref.shape}; one entry for each axis is required.")
    place = [0] * len(sizes) if spec.index_map is None else spec.index_map(*ids)
    place = place if isinstance(place, (tuple, list)) else (place,)
    if len(place) != len(sizes):
        raise ValueError(f"emit_pipeline: an index map returned {len(place)} values for the block "
                         f"shape {tuple(sizes)}; one for each axis is required.")
    index: list[Any] = []
    for x, d in zip(place, sizes, strict=True):
        if isinstance(x, Slice) or d is None or isinstance(d, Squeezed):
            index.append(x)
        elif isinstance(d, Element) and tuple(d.padding) == (0, 0):
            index.append(Slice(x, d.block_size))
        elif isinstance(d, (int, Blocked)):
            n = d if isinstance(d, int) else d.block_size
            index.append(Slice(x * n, n))
        else:
            raise NotImplementedError(f"emit_pipeline: the block entry {d} given; an int, None, "
                                      "pl.Blocked, or pl.Element without padding is required.")
    return tuple(index)


class _Steps(NamedTuple):
    """A body, its grid, the specs of its references, and the number of inputs among them.
    """

    body: Callable[..., None]
    sizes: Sequence[Any]
    specs: Sequence[Any]
    num_inputs: int

    def run(self, refs: Sequence[Reference], scratches: PyTree, buffers: Sequence[PyTree] | None,
            prologue: Callable[[], None]) -> None:
        """All steps, on these buffers, or on blocks that are made for each step."""
        def one(i: Array, _: None) -> None:
            ids = []
            for n in reversed(self.sizes):
                ids.append(i % as_index(n))
                i = i // as_index(n)
            with around(ids[::-1], self.sizes):
                if buffers is None:
                    self._on_blocks(refs, scratches, prologue, ids[::-1])
                else:
                    self._on_buffers(refs, scratches, prologue, ids[::-1], buffers)

        steps: Any = 1      # an int for sizes that are ints: such loops have a reverse mode
        for n in self.sizes:
            steps = steps * n
        fori_loop(0, steps, one, None)

    def _on_blocks(self, refs: Sequence[Reference], scratches: PyTree,
                   prologue: Callable[[], None], ids: Sequence[Array]) -> None:
        places = [place_of(spec, ref, ids) for spec, ref in zip(self.specs, refs, strict=True)]
        parts = [ref.at[place] for ref, place in zip(refs, places, strict=True)]

        def on_blocks(*blocks: Reference) -> None:
            for block, ref, place in zip(blocks, refs, places, strict=True):
                set(block, ..., load(ref, place))
            prologue()
            self.body(*blocks, *scratches)
            for block, ref, place in list(zip(blocks, refs, places, strict=True))[
                    self.num_inputs:]:
                store(ref, place, get(block))

        run_scoped(on_blocks, *[MemoryRef(make_aval(p.shape, p.dtype), MemorySpace.ANY)
                                for p in parts])

    def _on_buffers(self, refs: Sequence[Reference], scratches: PyTree,
                    prologue: Callable[[], None], ids: Sequence[Array], buffers: Sequence[PyTree]
                    ) -> None:
        ins, outs = [[(b, ref) for b, ref in zip(buffers, refs, strict=True) if getattr(b, kind)]
                     for kind in ("is_input", "is_output")]
        for buffer, ref in ins:
            buffer.copy_in(ref, ids)
        for buffer, ref in ins:
            buffer.wait_in(ref, ids)
        prologue()
        self.body(*[buffer.current_ref for buffer in buffers], *scratches)
        for buffer, ref in outs:
            buffer.copy_out(ref, ids)
        for buffer, ref in outs:
            buffer.wait_out(ref, ids)


@api_boundary
def emit_pipeline(body: Callable[..., None], *, grid: Grid, in_specs: PyTree = (),
                  out_specs: PyTree = (), tiling: object = None,
                  core_axis: int | Sequence[int] | None = None,
                  core_axis_name: Hashable = None, dimension_semantics: object = None,
                  trace_scopes: bool = True, no_pipelining: bool = False
                  ) -> Callable[..., None]:
    """The function of references that runs a body on their blocks, for each place of a grid.

    Args:
      body: a function of references: to blocks of the inputs, of the outputs, and to scratch. In it
        `program_id` is the place in this grid.
      grid: the size of each axis; the last one counts fastest. Sizes may be traced.
      in_specs, out_specs: a `BlockSpec` for each reference.
      core_axis, core_axis_name: axes of the kernel's grid, or of a mesh of cores, over which a TPU
        spreads the steps; here the first core runs all.
      tiling, dimension_semantics, trace_scopes, no_pipelining: have no effect in interpret mode.
    Returns: A function of references, inputs first, with the keywords `scratches`: references that
      the body gets behind the blocks; `allocations`: a `BufferedRef` for each reference, which has
      its blocks; `body_prologue`: a function that is called before the body.

    >>> def double(x, o):
    ...     o[...] = x[...] * 2
    >>> def kernel(x, o):
    ...     block = pl.BlockSpec((2,), lambda i: (i,))
    ...     pltpu.emit_pipeline(double, grid=(3,), in_specs=[block], out_specs=[block])(x, o)
    >>> out = olympus.ShapeDtypeStruct((5,), onp.int32)
    >>> print(pl.pallas_call(kernel, out, interpret=True)(onp.arange(5)))
    [0 2 4 6 8]
    """
    ins = tree_leaves(in_specs)
    steps = _Steps(body, GridSpec(grid).grid, [*ins, *tree_leaves(out_specs)], len(ins))
    specs = steps.specs

    @api_boundary
    def pipeline(*refs: Reference, scratches: PyTree = (),
                 allocations: Sequence[PyTree] | None = None,
                 body_prologue: Callable[[], None] = lambda: None) -> None:
        if allocations is not None and len(allocations) != len(refs):
            raise ValueError(f"emit_pipeline: {len(allocations)} as the number of allocations "
                             f"given for {len(refs)} references; one for each is required.")
        if len(refs) != len(specs):
            raise ValueError(f"emit_pipeline: {len(refs)} references given for {len(specs)} specs; "
                             "one reference for each is required, inputs first.")
        first: Any = True
        for axis in () if core_axis is None else _row(core_axis):
            first = first & (program_id(axis) == 0)
        for name in () if core_axis_name is None else _row(core_axis_name):
            first = first & (axis_index(name) == 0)
        when(first)(lambda: steps.run(refs, scratches, allocations, body_prologue))

    return pipeline


def _row(x: PyTree) -> Sequence[PyTree]:
    return x if isinstance(x, (tuple, list)) else (x,)
