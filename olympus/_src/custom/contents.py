"""Custom rules of functions whose references were discharged: operands are their contents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import compress
from typing import Any

from ..base.typing import Array, Params, Reference
from ..base.util import lazy_imports
from ..core.cells import Ref, at_hand, identity_of, is_ref, made_above
from ..core.effects import input_effects
from ..core.evaluate import eval_closed
from ..core.ir import numbers
from ..core.primitive import Primitive, Tangent, Zero
from ..core.staging import closure_convert, stage
from ..core.trace import Tracer, ctx, typeof
from ..interpreters.batching import BatchTrace
from ..interpreters.discharge import content, discharge, is_cell, put_back, sources, written
from ..lax.shape import instantiate
from ..types.avals import is_float0
from ..types.refs import ref_aval
from .rules import CustomCall, Rules, UserRules, WithTangents, Wrapping, merged
from .vjp import Backward, Forward, flat_backward

with lazy_imports(__name__):       # where there are references
    from ..lax import refs as _refs


def state_of(x: Reference) -> object:
    """A reference's state, for `is_written`: a cell's content, or the length of the recording."""
    return x._value if type(x) is Ref else None if type(x) is Zero or not is_ref(x) else len(
        x._trace.eqns)


def is_written(ref: Reference, before: Reference) -> bool:
    """Whether a reference was written since it had the state `before`."""
    if type(ref) is Ref:
        return ref._value is not before
    return any(e.kind != "read" and eqn.invars[e.index] is ref._bound
               for eqn in ref._trace.eqns[before:] for e in input_effects(eqn.effects))


class WithContents(Wrapping):
    """The rules of a function on contents, which returns the contents that it writes.

    cells: per operand, the number of its reference, or None; two operands may be one reference.
    new: flags of operands whose contents are results, after the function's own.
    sources: the indices of the references themselves, as in `discharge`.
    """

    __slots__ = ("cells", "new", "sources", "symbolic", "changed")

    def __init__(self, rules: Rules, cells: Sequence[int | None], new: Sequence[bool],
                 sources: Sequence[int | None], params: Params, exact: bool = False) -> None:
        self.cells, self.new, self.sources = tuple(cells), tuple(new), tuple(sources)
        super().__init__(rules, self.cells, self.new, self.sources)
        self.symbolic = params.get("symbolic_zeros", False)
        # The numbers of written references. Where the function is still Python, its first run says.
        self.changed = {k for k, n in zip(cells, new, strict=True) if n and k is not None and exact}
        self.num_contents += sum(self.new)

    def function(self, fun: Callable[..., list[Array]]) -> Callable[..., list[Array]]:
        """The user's function, flat, on contents."""
        def run(*args: Array) -> list[Array]:
            inner = self.referred(args)
            before = list(map(state_of, inner))
            outs = fun(*inner)
            self.check_still("the function", inner, before, [not n for n in self.new])
            return [*outs, *self.contents(inner, before)]

        return run

    def referred(self, values: Sequence[Tangent]) -> list[Reference]:
        """The operands with new references in place of contents; a `Zero` stays one."""
        refs: dict[int, Reference] = {}
        return [x if k is None or type(x) is Zero else refs[k] if k in refs else refs.setdefault(
            k, _refs.new_ref_p.bind(x, memory_space=None, kind=None, pin=False))
            for x, k in zip(values, self.cells, strict=True)]

    def contents(self, inner: Sequence[Reference], before: Sequence[object]) -> list[Array]:
        """The contents that are results, after the function or rule; `changed` notes which are new.
        """
        self.changed.update([k for x, was, k in zip(inner, before, self.cells, strict=True)
                             if k is not None and is_written(x, was)])
        return [_refs.get_p.bind(x, view=_refs.WHOLE) for x in compress(inner, self.new)]

    def check_written(self, what: str, inner: Sequence[Reference], before: Sequence[object]
                      ) -> None:
        """ValueError if the rule has written a reference that the function does not write.

        `before` is by `state_of`.
        """
        returned = {None, *compress(self.cells, self.new)}
        for x, was, k in zip(inner, before, self.cells, strict=True):
            if k not in returned and type(x) is not Zero and is_written(x, was):
                raise ValueError(
                    f"{what}: the rule {self.names[0]} writes the reference {typeof(x)}, which the "
                    "function\n  with this rule does not write, in a body of jit, a loop, a branch "
                    "or checkpoint;\n  the body works on its content, and such a write would be "
                    "lost;\n  write it in the function, too.")

    def check_still(self, writer: str, inner: Sequence[Reference], before: Sequence[object],
                    active: Sequence[bool]) -> None:
        """ValueError if a reference that holds a differentiated value is written."""
        for x, was, k, a in zip(inner, before, self.cells, active, strict=True):
            if k is not None and a and (k in self.changed or is_written(x, was)):
                raise ValueError(
                    f"custom_vjp: {writer} writes the reference {typeof(x)}, which holds a "
                    "differentiated value;\n  it is required to stay as it is, since the rules "
                    f"{', '.join(self.names)} give no derivative for the write;\n  return "
                    "the new content, and write it outside, or use custom_jvp, whose rule "
                    "writes tangents, too.")


class JvpWithContents(WithContents):
    """The rules of `custom_jvp` on contents: they get references to contents and to tangents."""

    __slots__ = ()

    def __call__(self, primals: Sequence[Array], tangents: Sequence[Tangent]) -> WithTangents:
        refs = self.referred(primals)
        # The rule may write the tangent of a content that has none yet.
        ts = self.referred([
            t if k is None or type(t) is not Zero or is_float0(t.aval) or self.symbolic else
            instantiate(t) for t, k in zip(tangents, self.cells, strict=True)])
        ts = [Zero(typeof(x).to_tangent_aval()) if k is not None and type(t) is Zero else t
              for x, t, k in zip(refs, ts, self.cells, strict=True)]
        before, before_tangents = (list(map(state_of, xs)) for xs in (refs, ts))
        outs, out_tangents = self.rules(refs, ts)
        self.check_written("custom_jvp", refs, before)
        self.check_written("custom_jvp", ts, before_tangents)
        contents = self.contents(refs, before)
        return [*outs, *contents], [*out_tangents, *[
            Zero(typeof(x).to_tangent_aval()) if type(t) is Zero or (
                type(old) is Zero and not is_written(t, was)) else
            _refs.get_p.bind(t, view=_refs.WHOLE)
            for x, (t, old, was) in zip(contents, compress(
                zip(ts, tangents, before_tangents, strict=True), self.new), strict=True)]]


class VjpWithContents(WithContents):
    """The rules of `custom_vjp` on contents; a content that has a derivative stays as it is."""

    __slots__ = ()

    def __call__(self, primals: Sequence[Array], perturbed: Sequence[bool]) -> Forward:
        inner = self.referred(primals)
        before = list(map(state_of, inner))
        outs, res, bwd = self.rules(inner, perturbed)
        self.check_still(f"the rule {self.names[0]}", inner, before, perturbed)
        self.check_written("custom_vjp", inner, before)
        contents = self.contents(inner, before)
        # A residual that is a reference from outside stays that reference; for one that was made in
        # a body, bwd gets the content at that time.
        outside: dict[int, Any] = {
            id(x): primals[i] for x, i in zip(inner, self.sources, strict=True) if i is not None}
        res = [outside.get(id(x), x) for x in res]
        inside = {id(x) for x, k in zip(inner, self.cells, strict=True) if k is not None}
        cells = [id(x) in inside for x in res]
        res = [_refs.get_p.bind(x, view=_refs.WHOLE) if k else x
               for x, k in zip(res, cells, strict=True)]
        still = [None if k is None or p else Zero(typeof(x).to_cotangent_aval())
                 for x, k, p in zip(primals, self.cells, perturbed, strict=True)]

        def back(res: Sequence[Array], cts: Sequence[Tangent]) -> Sequence[Tangent]:
            cts = cts[:len(outs)]
            got = pulled(bwd, res, cells, cts, self.names[-1]) if any(cells) else bwd(res, cts)
            return [ct if zero is None else zero for ct, zero in zip(got, still, strict=True)]

        return [*outs, *contents], res, back


def of_contents(prim: CustomCall, rules: UserRules, args: Sequence[Reference], params: Params
                ) -> list[Array] | None:
    """The results of a first call whose rules see derivatives of contents; None if none do.

    In a trace that transforms, such references become contents.
    """
    if ctx.trace.parent is None:        # evaluation, or a recording
        return None
    # A rule of custom_jvp writes contents and tangents into its references. A reference that
    # the rule closes over, too, would not be the same.
    jvp = prim.with_contents == "JvpWithContents"
    known = list(map(identity_of, rules.closed_over(True))) if jvp else []
    which = [is_ref(x) and (at_hand(x) and _differentiated(x._value) or (
        jvp and identity_of(x) not in known)) for x in args]
    if not any(which):
        return None
    first_of = {identity_of(x): i for i, x in reversed([*enumerate(args)]) if which[i]}
    own = _BY_NAME[prim.with_contents](rules, [
        first_of[identity_of(x)] if w else None for x, w in zip(args, which, strict=True)],
        [jvp and w for w in which], [None] * len(args), params)
    outs = ctx.trace.process_custom(prim, own.function(rules.run), own, tuple([
        _refs.get_p.bind(x, view=_refs.WHOLE) if w else x
        for x, w in zip(args, which, strict=True)]), params)
    n = len(outs) - sum(own.new)
    cells = compress(zip(args, own.cells, strict=True), own.new)
    for (ref, k), x in zip(cells, outs[n:], strict=True):
        if k in own.changed:
            _refs.swap_p.bind(ref, x, view=_refs.WHOLE)
    return outs[:n]


def vmap_of_contents(prim: CustomCall, trace: BatchTrace, fun: Callable[..., list[Array]],
                     rules: Rules, vals: Sequence[Reference], dims: Sequence[int | None],
                     params: Params) -> tuple[list[Array], list[int | None]]:
    """The results of a recorded call under vmap, and their axes, by contents of references that
    end with the vmap: rules of the recorded call run after it.
    """
    which = list(map(made_above, vals))
    first_of = {id(x): i for i, x in reversed([*enumerate(vals)])}
    own = _BY_NAME[prim.with_contents](rules, [
        first_of[id(x)] if w else None for x, w in zip(vals, which, strict=True)],
        which, [None] * len(vals), params)
    contents = {id(x): trace.split([x._content()]) for x in compress(vals, which)}
    xs = [contents[id(x)][0][0] if w else x for x, w in zip(vals, which, strict=True)]
    dims = [contents[id(x)][1][0] if w else d for x, d, w in zip(vals, dims, which, strict=True)]
    outs, out_dims = prim.vmap(trace, own.function(fun), own, xs, dims, **params)
    n = len(outs) - sum(which)
    cells = compress(zip(vals, own.cells, strict=True), which)
    for (ref, k), x, d in zip(cells, outs[n:], out_dims[n:], strict=True):
        if k in own.changed:
            ref._put(trace.wrap(x, d))
    return outs[:n], out_dims[:n]


def _differentiated(x: object) -> bool:
    """Whether a value has a tangent, in any of the traces that it belongs to."""
    while isinstance(x, Tracer) and not x._differentiated():
        x = getattr(x, "_val", None)
    return x is not None and isinstance(x, Tracer)


def pulled(bwd: Backward, res: Sequence[Array], mask: Sequence[bool], cts: Sequence[Tangent],
           name: str) -> list[Tangent]:
    """The cotangents by bwd, which gets new references for the residuals that `mask` flags.

    The original references were made in a body that has ended, so bwd may not write to them.
    """
    run = flat_backward(bwd, len(res), [ct if type(ct) is Zero else None for ct in cts])
    operands = [*res, *[ct for ct in cts if type(ct) is not Zero]]
    avals: list[Any] = [*map(typeof, operands)]
    avals[:len(res)] = [ref_aval(typeof(x)) if k else typeof(x)
                        for x, k in zip(res, mask, strict=True)]
    closed, consts = closure_convert(stage(run, avals))
    for aval, w in zip(closed.in_avals[len(consts):], written(closed)[len(consts):], strict=True):
        if w:
            raise ValueError(
                f"custom_vjp: the rule {name} writes the reference {aval}, which was made in a body"
                "\n  of jit, a loop, a branch or checkpoint that has ended when the rule runs, so "
                "that\n  nobody could read what is written;\n  make the reference outside, and "
                "pass it or close over it.")
    return merged(run.aux, eval_closed(
        discharge(closed, [a.mutable and i >= len(consts)
                           for i, a in enumerate(closed.in_avals)]), *consts, *operands))


def linear_of_contents(prim: Primitive, ins: Sequence[Reference], params: Params) -> list[Array]:
    """The tangents of a call of `custom_vjp` with cells among its residuals.

    `bwd` gets the references for which the cells stand, or contents of references made in a body.
    """
    cells = list(map(is_cell, ins))
    values = [x._stands_for if cell and x._stands_for is not None else x
              for x, cell in zip(ins, cells, strict=True)]
    mask = [*map(is_cell, values)][:params["num_res"]]
    if any(mask):
        bwd, name = params["bwd"], params["name"]
        params = {**params, "bwd": lambda res, cts: pulled(bwd, res, mask, cts, f"bwd of {name}")}
    return prim.bind(*map(content, values), **params)


class VmapWithContents(WithContents):
    """The rule of `custom_vmap` on contents: it gets references to all elements of mapped ones."""

    __slots__ = ()
    rules: Any      # a rule of `custom_vmap`
    num_leading = property(lambda self: self.rules.num_leading)

    def decides(self, mapped: Sequence[bool]) -> bool:
        """Whether the rule applies, given flags of mapped operands."""
        return self.rules.decides(mapped)

    def seal(self) -> None:
        """Note that the call is staged, so values that the rule closes over end before it runs."""
        self.rules.seal()

    def __call__(self, size: int, batched: Sequence[bool], args: Sequence[Array]
                 ) -> tuple[list[Array], list[bool]]:
        refs = self.referred(args)
        before = list(map(state_of, refs))
        outs, flags = self.rules(size, batched, refs)
        self.check_written("custom_vmap", refs, before)
        contents = self.contents(refs, before)
        return [*outs, *contents], [*flags, *compress(batched, self.new)]


_BY_NAME = {kind.__name__: kind for kind in (JvpWithContents, VjpWithContents, VmapWithContents)}


def discharged(prim: CustomCall, ins: Sequence[Reference], params: Params) -> list[Array]:
    """The results of a call on cells, as a call on contents with rules on contents."""
    # A rule that calls its own function may give it references that a trace above made.
    above = {id(x): (x, Ref(_refs.get_p.bind(x, view=_refs.WHOLE), ctx.trace))
             for x in ins if made_above(x)}
    ins = [above[id(x)][1] if id(x) in above else x for x in ins]
    ins, params = prim.with_references(ins, params)
    body, (rules, rest) = params["call_olympuspr"], prim.unpack(params)
    which = list(map(is_cell, ins))
    numbers_of = {id(x): i for i, x in reversed([*enumerate(ins)]) if which[i]}
    new = [cell and w for cell, w in zip(which, written(body), strict=True)]
    first_of = sources(ins)
    pure = discharge(body, which, new, first_of)
    if numbers_of:
        rules = _BY_NAME[prim.with_contents](rules, [
            numbers_of.get(id(x)) for x in ins], new, first_of, rest, exact=True)
    outs = ctx.trace.process_custom(prim, prim.function(pure), rules,
                                    tuple(numbers(map(content, ins))), rest)
    written_cells = [*compress(ins, new)]
    outs = put_back(written_cells, outs)
    for ref, cell in above.values():
        if any(cell is x for x in written_cells):
            _refs.swap_p.bind(ref, cell._value, view=_refs.WHOLE)
    return outs
