"""pallas_call: a kernel run for each place of a grid.

    the kernel on references ──stage, discharge──► a program on contents of blocks
    pallas_call_p            a call of: for each place of the grid,
                                 read the blocks ─► that program ─► write the blocks

The loop over the grid is a scan (a while, if the grid's size is computed) whose carry is the
grid's indices, the outputs and the scratch; inputs are its constants and are not copied.
Derivatives, vmap and checks work as for any scan.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from ..base.config import pallas_interpret
from ..base.source import api_boundary
from ..base.typing import Array, ArrayLike, IrValue, PyTree, Reference
from ..base.util import clipped, cut, name_of
from ..control.bodies import check_callable, flatten
from ..control.call import Call
from ..core import tags
from ..core.evaluate import eval_closed
from ..core.ir import ClosedOlympuspr, DebugInfo
from ..core.primitive import Builder, Tangent
from ..core.staging import closure_convert, stage
from ..core.trace import typeof
from ..interpreters.discharge import discharge, written
from ..interpreters.partial_eval import TapeTrace
from ..jit.jit import jit
from ..lax.comparison import select
from ..lax.shape import as_array
from ..numpy import refs as _methods_of_references  # noqa: F401  which installs them
from ..types.avals import ShapedArray, make_aval
from ..types.refs import ref_aval
from ..types.shape import SymbolicDim
from ..types.tree import keystr, tree_flatten, tree_flatten_with_path
from ..types.tree_paths import explain_mismatch
from ..types.tree_registry import PyTreeDef
from .aliases import is_array, shared
from .blocks import BlockMapping, not_taken, written_at
from .grid import around, interpreted
from .padding import with_ends_repeated
from .semaphores import check_last_content, content_aval, first_content
from .specs import GENERATOR, INT32, CostEstimate, Grid, GridSpec, NoBlockSpec, no_block_spec
from .steps import Steps, as_index, over_grid


class PallasCall(Call):
    """params: olympuspr, the loop over the grid; name; interpret; cost_estimate; metadata."""

    exchanges = True

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Tangent], *,
            olympuspr: ClosedOlympuspr, **params: Hashable
            ) -> tuple[Sequence[Array], Sequence[Tangent]]:
        return super().jvp(primals, tangents, olympuspr=with_ends_repeated(olympuspr), **params)

    def linearize(self, tape: TapeTrace, primals: Sequence[Array], tangents: Sequence[Tangent], *,
                  olympuspr: ClosedOlympuspr, **params: Hashable
                  ) -> tuple[Sequence[Array], Sequence[Tangent]]:
        return super().linearize(tape, primals, tangents, olympuspr=with_ends_repeated(olympuspr),
                                 **params)

    def lower(self, b: Builder, *args: IrValue, olympuspr: ClosedOlympuspr, name: str,
              interpret: bool, **params: Hashable) -> Sequence[IrValue]:
        if not interpret:
            raise not_compiled(b.platform)
        return super().lower(b, *args, olympuspr=olympuspr, name=name)


pallas_call_p = PallasCall("pallas_call")


class LoweringException(ValueError):
    """A kernel that is to be compiled for a TPU, for which Olympus has no compiler.

    >>> from olympus.experimental.pallas import tpu as pltpu
    >>> issubclass(pltpu.LoweringException, ValueError)
    True
    """


def not_compiled(platform: str) -> ValueError:
    """The error for a kernel that is to be compiled by a backend."""
    if platform == "cpu":
        return ValueError(
            "pallas_call: Only interpret mode is supported on CPU backend: a kernel without "
            "`interpret` given;\n  pass interpret=True to pallas_call, which runs it as a compiled "
            "loop over the grid.")
    kind = LoweringException if platform == "tpu" else ValueError
    return kind(
        f"pallas_call: Cannot lower pallas_call on platform: {platform}: a kernel without "
        "`interpret` given;\n  Olympus has no compiler of kernels; pass interpret=True, which runs "
        "it as a compiled loop over the grid.")


@api_boundary
def pallas_call(kernel: Callable[..., None], out_shape: PyTree, *,
                grid_spec: GridSpec | None = None, grid: Grid = (),
                in_specs: PyTree = no_block_spec, out_specs: PyTree = no_block_spec,
                scratch_shapes: PyTree = (),
                input_output_aliases: Mapping[int, int] = {}, debug: bool = False,
                interpret: object = False, name: str | None = None, compiler_params: object = None,
                cost_estimate: CostEstimate | None = None,
                metadata: Mapping[str, str] | None = None) -> Callable[..., PyTree]:
    """The function of arrays that runs a kernel on blocks of them, for each place of a grid.

    Args:
      kernel: a function of references: to the blocks of the inputs, of the outputs, and to the
        scratch. It returns None.
      out_shape: shapes and dtypes of the outputs, a pytree of `ShapeDtypeStruct`s.
      grid_spec: grid, specs and scratch in one `GridSpec`.
      grid: the size of each axis of the grid; the last one counts fastest. An int is one axis,
        () one step. Sizes may be arrays.
      in_specs: a `BlockSpec` for each input, as a tuple of pytrees like the arguments; whole arrays
        by default.
      out_specs: a `BlockSpec` for each output, a pytree like `out_shape`.
      scratch_shapes: references that last from step to step: a row of `MemoryRef`s or
        `ShapeDtypeStruct`s, or a dict of them, which are passed to the kernel by name.
      input_output_aliases: from the number of an input to the number of the output that begins as
        a copy of it.
      debug: print the kernel's program.
      interpret: run the kernel as a compiled loop over the grid: True, or an `InterpretParams`.
        Without it the kernel would be compiled by a backend, and Olympus has none; the option
        `olympus_pallas_interpret` interprets all kernels.
      name: the kernel's name in programs and profiles.
      compiler_params: options of a backend's compiler; interpret mode ignores them.
      cost_estimate: a call's cost, which the program notes.
      metadata: strings that the program notes.
    Returns: A function of arrays that returns arrays like `out_shape`. It can be jitted, mapped and
      differentiated, in reverse mode too.

    A block that leaves its array is padded. Padding, scratch and outputs hold NaN or the least
    integer until they are written. Raises ValueError where blocks, index maps and
    arrays do not fit.

    >>> def double(x, o):
    ...     o[...] = x[...] * 2
    >>> block = pl.BlockSpec((2,), lambda i: (i,))
    >>> run = pl.pallas_call(double, olympus.ShapeDtypeStruct((6,), onp.float32), grid=3,
    ...                      in_specs=[block], out_specs=block, interpret=True)
    >>> print(run(onp.arange(6.)))
    [ 0.  2.  4.  6.  8. 10.]
    """
    check_callable("pallas_call", kernel=kernel)
    if not isinstance(grid_spec, (GridSpec, type(None))):
        raise TypeError(f"pallas_call: grid_spec {clipped(grid_spec)} given; a GridSpec is "
                        "required.")
    if not isinstance(input_output_aliases, Mapping):
        raise TypeError(f"pallas_call: input_output_aliases {clipped(input_output_aliases)} given; "
                        "a dict from inputs to outputs is required, {0: 0}.")
    if grid_spec is None:
        grid_spec = GridSpec(grid, in_specs, out_specs, scratch_shapes)
    else:
        for what, option, empty in (("grid", grid, ()), ("in_specs", in_specs, no_block_spec),
                                    ("out_specs", out_specs, no_block_spec),
                                    ("scratch_shapes", scratch_shapes, ())):
            if option is not empty and not (isinstance(option, tuple) and not option):
                raise ValueError(f"pallas_call: If `grid_spec` is specified, then `{what}` must be "
                                 f"`{empty!r}`. It is {option!r:.60}; put it into the grid_spec.")
    dynamic = [g for g in grid_spec.grid if not isinstance(g, (int, SymbolicDim))]
    params = {"name": name or name_of(kernel), "cost_estimate": cost_estimate,
              "metadata": tuple(sorted(metadata.items())) if metadata else None}
    # A list of outputs becomes a tuple, as in JAX.
    outs = tuple(out_shape) if isinstance(out_shape, list) else out_shape

    def run(sizes: Sequence[ArrayLike], args: tuple[PyTree, ...]) -> PyTree:
        how = interpret or pallas_interpret.value
        with interpreted(how):
            call = _Call(kernel, grid_spec, outs, sizes, args, input_output_aliases,
                         Steps.of(how, compiler_params, grid_spec.grid))
            program, operands = call.staged(debug)
        return call.out_tree.unflatten(pallas_call_p.bind(
            *operands, olympuspr=program, interpret=bool(how), **params))

    run.__name__ = params["name"]
    jitted = jit(run, inline=True)

    def wrapped(*args: PyTree) -> PyTree:
        return jitted(dynamic, args)

    wrapped.__name__ = params["name"]
    return api_boundary(wrapped)


class _Call:
    """A call of a kernel: its operands, the blocks that they are cut into, the loop over the grid.

    The kernel's references are in the order scalars, inputs, outputs, scratch, and the loop's
    contents in the same order. The last scratch is the state of random numbers, which is no
    argument of the kernel.
    """

    def __init__(self, kernel: Callable[..., None], spec: GridSpec, out_shape: PyTree,
                 sizes: Sequence[ArrayLike], args: tuple[PyTree, ...], aliases: Mapping[int, int],
                 steps: Steps, vma: frozenset[Hashable] = frozenset()) -> None:
        self.given = kernel, spec, out_shape, sizes, args, aliases, steps
        self.kernel, self.aliases, self.steps = kernel, aliases, steps
        self.grid_names = spec.grid_names
        self.grid = tuple([g if isinstance(g, (int, SymbolicDim)) else None for g in spec.grid])
        self.sizes = list(map(as_index, sizes))     # the sizes that are arrays
        skipped = spec.num_scalar_prefetch
        scalar_args, block_args = args[:skipped], args[skipped:]
        scalars, scalar_avals, self.scalar_tree = flatten("pallas_call: args", scalar_args)
        ins, in_avals, self.in_tree = flatten("pallas_call: args", block_args)
        outs, self.out_tree = tree_flatten(out_shape)
        scratch, self.scratch_tree = tree_flatten(spec.scratch_shapes)
        self.scratch = [*scratch, GENERATOR]
        # Under `shard_map` all references vary along the axes along which any operand, or any value
        # that the kernel closes over (`vma`), varies.
        self.vma = vma.union(*[a.vma for a in (*scalar_avals, *in_avals)])
        self.scalars, self.ins = [[tags.pvary(x, self.vma) for x in xs] for xs in (scalars, ins)]
        scalar_avals, in_avals, out_avals, scratch_avals = [
            [a.strong().update(vma=self.vma) for a in avals] for avals in (
                scalar_avals, in_avals, map(content_aval, outs), map(content_aval, self.scratch))]
        _check_aliases(aliases, [*scalar_avals, *in_avals], out_avals)
        self.scalar_refs, self.scratch_refs = [
            list(map(ref_aval, avals)) for avals in (scalar_avals, scratch_avals)]
        named = [*_named("in_specs", spec.in_specs, "args", block_args, self.in_tree, in_avals,
                         skipped),
                 *_named("out_specs", spec.out_specs, "outputs", out_shape, self.out_tree,
                         out_avals, 0)]
        self.mappings = [BlockMapping(one, aval, name, self.grid, self.scalar_refs,
                                      self.scalar_tree.unflatten) for one, aval, name in named]
        self.out_avals = out_avals
        self.counts = len(self.scalars), len(self.ins), len(outs)
        self.info = DebugInfo("pallas_call", name_of(kernel))
        self.shared = shared(aliases, len(self.scalars), self.mappings, len(self.ins)) if (
            steps.one_memory) else []

    def run_kernel(self, *xs: Reference) -> list[Array]:
        """The kernel as a function of the grid's indices, its computed sizes, and references."""
        ids, computed, refs = map(list, cut(xs, len(self.grid), len(self.sizes)))
        for one in self.shared:
            if one.whole:
                refs[one.source] = refs[one.target]
        scalars, ins, outs, (*scratch, generator) = cut(refs, *self.counts)
        sizes, own = iter(computed), self.scratch_tree.unflatten(scratch)
        out = self.out_tree.unflatten(outs)
        args = (*self.scalar_tree.unflatten(scalars), *self.in_tree.unflatten(ins), *_row(out),
                *(() if isinstance(own, dict) else _row(own)))
        named = own if isinstance(own, dict) else {}
        self._check_takes(args, named)
        with around(ids, [next(sizes) if n is None else n for n in self.grid],
                    self.grid_names, generator):
            result = self.kernel(*args, **named)
        if tree_flatten(result)[0]:
            raise ValueError(
                f"pallas_call: The kernel function in the pallas_call {name_of(self.kernel)} at "
                f"{written_at(self.kernel)} should return None. It returns a PyTree: "
                f"{result!r:.60};\n  write results to references, o[...] = x.")
        return []

    def _check_takes(self, args: Sequence[PyTree], named: Mapping[str, PyTree]) -> None:
        """TypeError for a kernel that does not take as many references as it gets."""
        error = not_taken(self.kernel, args, named)
        if error is not None:
            scalars, ins, outs = map(len, (self.scalar_tree.children(), self.in_tree.children(),
                                           _row(self.out_tree.unflatten(self.out_avals))))
            raise TypeError(
                f"pallas_call: the kernel {name_of(self.kernel)}{inspect.signature(self.kernel)} "
                f"at {written_at(self.kernel)} does not take its references ({error}):\n  "
                f"{f'{scalars} prefetched scalars, ' if scalars else ''}{ins} inputs, {outs} "
                f"outputs and {len(args) - scalars - ins - outs + len(named)} of scratch are "
                "given;\n  write one parameter for each.")

    def staged(self, debug: bool) -> tuple[ClosedOlympuspr, list[ArrayLike]]:
        """The loop over the grid as a program, and its operands."""
        index = make_aval((), INT32)
        refs = [*self.scalar_refs, *[m.ref_aval for m in self.mappings],
                *self.scratch_refs]
        avals: list[Any] = [index] * (len(self.grid) + len(self.sizes)) + refs
        closed, held = closure_convert(stage(self.run_kernel, avals, self.info))
        vma = self.vma.union(*[aval.vma for x in held if (aval := typeof(x)).is_array])
        if vma != self.vma:
            return _Call(*self.given, vma).staged(debug)
        if debug:
            print(f"The kernel of pallas_call {name_of(self.kernel)} at "
                  f"{written_at(self.kernel)}:\n{closed}")
        first = len(closed.invars) - len(refs)
        changed = list(written(closed)[first:])
        pure = discharge(closed, [False] * first + [True] * len(refs), [False] * first + changed)
        operands = [*held, *self.sizes, *self.scalars, *self.ins]
        program, more = closure_convert(stage(
            lambda *xs: self.loop(pure, changed, *cut(
                xs, len(held), len(self.sizes), *self.counts[:2])[:4]),
            list(map(typeof, operands)), self.info))
        return program, [*more, *operands]

    def loop(self, kernel: ClosedOlympuspr, changed: Sequence[bool], outer: Sequence[Array],
             computed: Sequence[Array], scalars: Sequence[Array], ins: Sequence[Array]
             ) -> list[Array]:
        """The outputs of all steps. `kernel` works on contents and returns the `changed` ones.

        Changed contents are carried from step to step; all others are constants of the loop.
        """
        sizes, n_in = iter(computed), self.counts[1]
        outs = [m.blank() for m in self.mappings[n_in:]]
        for i, o in self.aliases.items():
            outs[o] = self.mappings[n_in + o].pad([*scalars, *ins][i])
        contents = [*scalars, *[m.pad(x) for m, x in zip(self.mappings, ins)], *outs,
                    *map(first_content, self.scratch)]
        cuts = [*[None] * len(scalars), *self.mappings, *[None] * len(self.scratch)]
        contents = [tags.pvary(x, self.vma) for x in contents]
        aliases = {one.source: one for one in self.shared}
        into = [one.target for i, one in aliases.items() if changed[i] and not one.stays]
        carried = [i for i, c in enumerate(changed) if c and i not in aliases or i in into]
        lasts = [[tags.pvary(x, self.vma) for x in one.first()] for one in self.shared]
        start = [*[contents[i] for i in carried], *[x for xs in lasts for x in xs]]
        common = [i for i, m in enumerate(self.mappings, len(scalars))
                  if i >= len(scalars) + n_in or is_array(m)]

        def step(ids: Sequence[Array], state: Sequence[Array]) -> list[Array]:
            (ids, first), now = self.steps.at(ids), [*contents]
            if first is not None:       # scratch and copies of inputs are each core's own
                state = [x if i in common else select(first, x0, x) for i, x0, x in zip(
                    [*carried, *[-1] * (len(state) - len(carried))], start, state, strict=True)]
            changing, *last = cut(state, len(carried), *map(len, lasts))
            for i, x in zip(carried, changing, strict=True):
                now[i] = x
            windows = [(m, m.ops(ids, now[:len(scalars)])) if m else None for m in cuts]
            blocks = [p[0].block.read(x, *p[1]) if p and i not in aliases else x
                      for i, (x, p) in enumerate(zip(now, windows, strict=True))]
            for k, (i, one) in enumerate(aliases.items()):
                ops = p[1] if (p := windows[i]) else []
                blocks[i], *where = one.read(now[one.target], ops, last[k])
                last[k] = [blocks[i], *where] if last[k] else []
            results = dict(zip([i for i, c in enumerate(changed) if c], eval_closed(
                kernel, *outer, *ids, *computed, *blocks), strict=True))
            for k, (i, one) in enumerate(aliases.items()):
                if i in results and one.stays:      # the block is written, and not the memory
                    last[k][0] = results[i]
                elif i in results:
                    now[one.target] = one.written(results[i])
            return [*[now[i] if i not in results else p[0].block.write(now[i], results[i], *p[1])
                      if (p := windows[i]) else results[i] for i in carried],
                    *[x for xs in last for x in xs]]

        size = [next(sizes) if n is None else n for n in self.grid]
        end = over_grid(step, size, start)[:len(carried)]
        for i, x in zip(carried, end, strict=True):
            contents[i] = x
        for x, content in zip(self.scratch, contents[-len(self.scratch):], strict=True):
            check_last_content("pallas_call", x, content)
        here = len(scalars) + n_in
        return [m.cut(as_array(x)) for m, x in zip(self.mappings[n_in:], contents[here:])]


def _row(x: PyTree) -> Sequence[PyTree]:
    """Outputs or scratch as arguments of a kernel: a row of references."""
    return x if isinstance(x, (tuple, list)) else (x,)


# Checks ------------------------------------------------------------------------------------------

def _named(what: str, specs: PyTree, root: str, values: PyTree, tree: PyTreeDef,
           avals: Sequence[ShapedArray], skipped: int) -> list[tuple[PyTree, ShapedArray, str]]:
    """Spec, type and name of each operand; ValueError for specs of another structure."""
    paths = [path for path, _ in tree_flatten_with_path(values)[0]]
    if skipped:
        first = [type(path[0])(path[0].idx + skipped) for path in paths]
        paths = [(key, *path[1:]) for key, path in zip(first, paths, strict=True)]
    names = [f"{root}{keystr(path)}" for path in paths]
    if isinstance(specs, NoBlockSpec):
        return [(specs, a, name) for a, name in zip(avals, names, strict=True)]
    leaves, found_tree = tree_flatten(specs)
    if found_tree != tree:
        of = "inputs" if what == "in_specs" else "out_shape"
        differences = "\n".join([f"  * {text};" for text in explain_mismatch(tree, found_tree)[:4]])
        raise ValueError(
            f"pallas_call: `{what}` and the {of} have different structures:\n  Pytree for `{what}` "
            f"and `{of}` do not match:\n{differences}\n  write one BlockSpec for each array, "
            "pl.no_block_spec for a whole one.")
    return list(zip(leaves, avals, names, strict=True))


def _check_aliases(aliases: Mapping[int, int], ins: Sequence[ShapedArray],
                   outs: Sequence[ShapedArray]) -> None:
    """ValueError for aliases without an operand, between two types, or of one output twice."""
    of: dict[int, int] = {}
    for i, o in aliases.items():
        text = f"pallas_call: input_output_aliases contains the mapping '{i}:{o}' with"
        for kind, k, n in (("input", i, len(ins)), ("output", o, len(outs))):
            if k not in range(n):
                raise ValueError(f"{text} {kind} index {k} outside the range [0, {n}); give the "
                                 "number of an array, counted from 0, leaf by leaf.")
        if o in of:
            raise ValueError(f"{text} output index {o}, which input {of[o]} is an alias of, too; "
                             "an output begins as a copy of one input; drop one.")
        of[o] = i
        if ins[i].shape != outs[o].shape or ins[i].dtype != outs[o].dtype:
            raise ValueError(f"{text} the input {ins[i]} and a different abstract value {outs[o]} "
                             "of the output; equal shapes and dtypes are required.")
