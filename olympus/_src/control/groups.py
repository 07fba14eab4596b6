"""Rules of primitives with bodies, derived from one description of their operands.

A primitive says which of its operands each of its programs takes (`applied`). A primitive that runs
a body repeatedly, or one of several bodies, also gives the operands' roles (`Groups`). The rules
that follow from these are here.

    role     called once    iterations                              branches
    own                     a count, consts of a condition          the index
    read     all            the same in each                        all others
    carry                   each returns it for the next one
    each                    a row for each
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Hashable, Sequence
from itertools import compress
from typing import Any, NamedTuple

from ..base.typing import Array, ArrayLike, IrValue, MappedAxis, Params, Reference, T, Value
from ..base.util import cut, lazy_imports, merged
from ..core.effects import Effect, input_effects
from ..core.evaluate import eval_closed
from ..core.ir import ClosedOlympuspr, Literal, OlympusprEqn, effects_of_body
from ..core.primitive import Axis, Builder, Higher, Primitive, Tangent, Zero, spread_tangents
from ..core.reuse import Cells, Use
from ..core.trace import typeof
from ..interpreters.batching import batch_program, to_axis
from ..interpreters.checks import Checked, Checks, counted, no_failure
from ..interpreters.dce import dce_closed
from ..interpreters.jvp import jvp_program
from ..interpreters.partial_eval import Split, TapeTrace, depends, partial_eval_program
from ..lax.shape import instantiate
from ..types.avals import Aval, ShapedArray
from .bodies import with_leading
from .returned import apart, exchanged

with lazy_imports(__name__):
    from ..interpreters import discharge as _refs, parts as _parts  # references; users' types

Flags = tuple[bool, ...]
Applied = list[tuple[str, ClosedOlympuspr, Sequence[T]]]    # the bodies that run; their operands


class HasBodies(Higher, abstract=True):
    """A primitive that says by `applied` which operands each of its programs takes.

    By default it runs one program once on all operands, and returns its results.
    """

    body = "olympuspr"      # the name of the param
    programs = (body,)

    def times(self, params: Params) -> int | None:
        return 1

    def applied(self, params: Params, xs: Sequence[T]) -> Applied[T]:
        return [("the program", params[self.body], xs)]

    def effects(self, avals: Sequence[Aval], params: Params) -> frozenset[Effect]:
        # An effect on an input names its index: translate from each program's inputs to operands.
        effects = [effects_of_body(body, its)
                   for _, body, its in self.applied(params, range(len(avals)))]
        return effects[0] if len(effects) == 1 else frozenset().union(*effects)

    def infer(self, *avals: Aval, **params: Hashable) -> list[ShapedArray]:
        (_, body, _), = self.applied(params, avals)
        return body.out_avals

    def cells(self, use: Use, cells: Sequence[Cells], eqn: OlympusprEqn) -> list[Cells]:
        (_, body, its), = self.applied(eqn.params, cells)
        return use.call(body, its)

    def depends(self, flags: Sequence[bool], eqn: OlympusprEqn) -> Sequence[bool]:
        (_, body, its), = self.applied(eqn.params, flags)
        return depends(body, its)

    def lower(self, b: Builder, *args: IrValue, **params: Hashable) -> list[IrValue]:
        (_, body, its), = self.applied(params, args)
        return b.call_inline(body, its)

    def step_through(self, run: Callable[..., list[Array]], *args: Array, **params: Hashable
                     ) -> None:
        (_, body, its), = self.applied(params, args)
        run(body, *its)

    def in_parts(self, args: Sequence[Value], params: Params) -> list[Value]:
        # The program is written out: only its equations are recorded.
        (_, body, its), = self.applied(params, args)
        return _parts.raised(body.out_avals, eval_closed(
            _parts.in_parts(body), *_parts.parts_of(its)))

    # Each reference becomes its content; each written one adds a result.
    def discharged(self, ins: Sequence[Reference], params: Params) -> list[Array]:
        ins, params = self.with_references(ins, params)
        (_, body, its), = self.applied(params, ins)
        which = list(map(_refs.is_cell, its))
        new = list(map(operator.and_, which, _refs.written(body)))
        outs = self.bind(*map(_refs.content, ins), **self.with_contents(
            params, _refs.discharge(body, which, new, _refs.sources(its)), new))
        return _refs.put_back([*compress(its, new)], outs)

    def with_contents(self, params: Params, body: ClosedOlympuspr, new: Sequence[bool]) -> Params:
        """The params with a body that also returns the contents of the flagged references."""
        return {**params, self.body: body}

    def hands_references_on(self, params: Params, xs: Sequence[object]) -> list[bool]:
        handed_on = {i for _, body, its in self.applied(params, range(len(xs)))
                     for i, on in zip(its, _refs.handed_on(body), strict=True) if on}
        return [i in handed_on for i in range(len(xs))]

    # A rule that runs later reads and writes the reference itself, not the content of this pass.
    def with_references(self, ins: Sequence[Reference], params: Params
                        ) -> tuple[Sequence[Reference], Params]:
        """Operands and params, with references added that bodies both touch and hand on."""
        which = _refs.to_hand_on(self, ins, params)
        return self.with_more(which, [ins[i]._stands_for for i in which], ins, params) if (
            which) else (ins, params)

    def with_more(self, which: Sequence[int], more: Sequence[T], xs: Sequence[T], params: Params
                  ) -> tuple[Sequence[T], Params]:
        """The operation with the operands `more`; further inputs of its body take them."""
        raise ValueError(
            f"{self.name}: its body reads or writes the reference {typeof(xs[which[0]])}, which a "
            "rule of custom_vjp in it gets, too, in the backward pass;\n  the body works on the "
            "content; read the reference outside, and pass the value.")

    def vmap_named(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None],
                   **params: Hashable) -> tuple[list[Array], list[int | None]]:
        return self.vmap(axis, args, dims, **params)


class Groups(NamedTuple):
    """The number of operands of each role, in the order of the operands.

    Bodies take all but the `own` ones. They return the carry, then the other results, which a loop
    stacks as rows.
    """

    own: int
    read: int
    carry: int
    each: int


class AgreeingRuns(HasBodies, abstract=True):
    """A primitive whose runs agree on types: iterations of one body, or one run of several bodies.

    A property (having a tangent, being mapped, being unknown) of a carry or a result in one run
    holds in all runs.
    """

    # The numbers of own, read and carried operands: a number, the name of the param that has it, or
    # None for the rest. All others come as rows.
    roles: tuple[Any, Any, Any]
    rows = 0    # the number of axes of rows, in operands and results, that a run does not see

    def groups(self, params: Params, count: int) -> Groups:
        """The roles of `count` operands."""
        own, read, carry = self.roles
        own = params[own] if isinstance(own, str) else own
        read = params[read] if isinstance(read, str) else read
        carry = params[carry] if isinstance(carry, str) else carry
        if carry is None:
            carry = count - own - read
        if read is None:
            read = count - own - carry
        return Groups(own, read, carry, count - own - read - carry)

    def regrouped(self, params: Params, bodies: Sequence[ClosedOlympuspr], read: int,
                  carry: Sequence[int | ShapedArray], own: Sequence[int] = ()) -> Params:
        """The params with other bodies.

        Args:
          read: the number of consts.
          carry: per carry of the new bodies, the index of the old one, or the aval of a new one.
          own: the indices of the own operands that stay.
        """
        counts = zip(self.roles, (len(own), read, len(carry)), strict=True)
        one = type(params[self.body]) is ClosedOlympuspr
        return {**params, **{role: n for role, n in counts if type(role) is str},
                self.body: bodies[0] if one else tuple(bodies)}

    def deciding(self, params: Params, groups: Groups) -> Sequence[bool]:
        """Flags of own operands, then carries, that decide the branch or the iteration count."""
        return *(True,) * groups.own, *(False,) * groups.carry

    def decided(self, params: Params, own: Sequence[bool], carry: Sequence[bool]) -> bool:
        """Whether a flagged value decides the branch or the iteration count."""
        groups = Groups(len(own), 0, len(carry), 0)
        return any(map(operator.and_, self.deciding(params, groups), (*own, *carry)))

    def given(self, params: Params, xs: Sequence[T]) -> list[T]:
        own, read, _, each = self.cut(params, xs)
        return [*own, *read, *each]

    def unchanged(self, params: Params, xs: Sequence[T]) -> list[T]:
        body = params[self.body]
        if type(body) is not ClosedOlympuspr:
            return []
        _, read, carry, _ = self.cut(params, xs)
        pr = body.olympuspr
        return [x for x, v, out in zip(carry, pr.invars[len(read):], pr.outvars, strict=False)
                if v is out]

    def cut(self, params: Params, xs: Sequence[T]) -> list[list[T]]:
        """The items of `xs`, one for each operand, by group."""
        return cut(xs, *self.groups(params, len(xs))[:3])

    def applied(self, params: Params, xs: Sequence[T]) -> Applied[T]:
        # Short, because `effects` calls it for each equation.
        bodies, own = params[self.body], self.roles[0]
        its = xs[params[own] if isinstance(own, str) else own:]
        if type(bodies) is ClosedOlympuspr:
            return [("the body", bodies, its)]
        return [(f"branch {i}", body, its) for i, body in enumerate(bodies)]

    def seen(self, params: Params, avals: Sequence[ShapedArray]) -> list[ShapedArray]:
        *groups, each = self.cut(params, avals)
        return [*(a for group in groups for a in group),
                *(a.without_axis(a.leading_axis_spec()) for a in each)]

    def alike(self, params: Params) -> tuple[ClosedOlympuspr, ...]:
        """The bodies as a tuple; the param may be one body."""
        bodies = params[self.body]
        return bodies if type(bodies) is tuple else (bodies,)

    def infer(self, *avals: ShapedArray, **params: Hashable) -> list[ShapedArray]:
        return self.alike(params)[0].out_avals

    def agreed(self, params: Params, start: Sequence[bool], make: Callable[..., T],
               flags: Callable[[T], Sequence[bool]] = operator.itemgetter(1)
               ) -> tuple[list[T], tuple[bool, ...]]:
        """The bodies that `make` derives, and flags of the results that have a property.

        Args:
          start: flags of the carries that have it when the first run begins.
          make: (body, flags of carries that have it, flags of results that must have it) -> derived
            body.
          flags: derived body -> flags of results that have it.
        """
        bodies, nk = self.alike(params), len(start)
        count = len(bodies[0].outvars)
        n = count if len(bodies) > 1 else nk    # rows of a loop stay rows

        def step(have: Flags) -> tuple[tuple[list[T], Flags], Flags]:
            forced = (*have, *(False,) * (count - n))
            made = [make(body, have[:nk], forced) for body in bodies]
            each = tuple(map(any, zip(*map(flags, made), strict=True)))
            return (made, each[n:]), each[:n]

        (made_bodies, rest), have = fixpoint(
            (*start, *(False,) * (n - nk)), step, self.handed_on(params))
        return made_bodies, (*have, *rest)

    def handed_on(self, params: Params) -> list[tuple[int, int]]:
        """Pairs of carries: a run returns the first one, as it is, as the second of the next run.

        So a property of the one is a property of the other, in no round of `fixpoint` of its own: a
        body that keeps its last values moves each by one place in each run.
        """
        body = self.alike(params)[0]
        own = self.groups(params, 0).own
        _, nr, nk, _ = self.groups(params, own + len(body.invars))
        place = {v: i for i, v in enumerate(body.invars[nr:nr + nk])}
        return [(place[v], i) for i, v in enumerate(body.outvars[:nk])
                if type(v) is not Literal and v in place]

    def apart_at_first(self, b: Builder, carry: Sequence[IrValue]) -> list[IrValue]:
        """The carries that the first run of a loop reads, with one name each after it."""
        params = b.eqn.params
        body = self.alike(params)[0]
        own = self.groups(params, 0).own
        first = self.groups(params, own + len(body.invars)).read
        flags = exchanged(body, first, first + len(carry))
        return apart(b, carry, flags, body.out_avals)

    def in_parts(self, args: Sequence[Value], params: Params) -> list[Value]:
        own, read, carry, each = map(_parts.parts_of, self.cut(params, args))
        outs = self.bind(*own, *read, *carry, *each, **self.regrouped(
            params, [_parts.in_parts(body) for body in self.alike(params)], len(read),
            list(map(typeof, carry)), range(len(own))))
        return _parts.raised(self.infer(*map(typeof, args), **params), outs)

    def depends(self, flags: Sequence[bool], eqn: OlympusprEqn) -> Sequence[bool]:
        return self.reached(eqn.params, flags)

    def reached(self, params: Params, flags: Sequence[bool]) -> Sequence[bool]:
        """Flags of the results that depend on flagged values; a carry has one flag in all runs."""
        own, read, start, each = self.cut(params, flags)
        _, depending = self.agreed(params, start, lambda body, carry, _: depends(
            body, (*read, *carry, *each)), tuple)
        if self.decided(params, own, depending[:len(start)]):
            return [True] * len(depending)
        return depending

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array], **params: Hashable
            ) -> tuple[Sequence[Array], Sequence[Tangent]]:
        own, *p = self.cut(params, primals)
        t = self.cut(params, tangents)[1:]
        nz_read, nz_start, nz_each = [[type(x) is not Zero for x in g] for g in t]
        derived, nz = self.agreed(params, nz_start, lambda body, carry, force: jvp_program(
            body, (*nz_read, *carry, *nz_each), force))
        avals = self.alike(params)[0].in_avals
        (nr, nk, _), n, m = map(len, p), len(avals), len(nz)
        # A carry that gets a tangent in the body must come in with one.
        t[1] = [instantiate(x) if on else x for x, on in zip(t[1], nz, strict=False)]
        t = [[x for x in group if type(x) is not Zero] for group in t]
        #   jvp_program   r k e | dr dk de     ->  k y | dk dy      (read, carry, each, others)
        #   the body      r dr | k dk | e de   ->  k dk | y dy
        ins, outs = range(n + sum(map(len, t))), range(m + sum(nz))
        order = (woven(cut(ins[:n], nr, nk), cut(ins[n:], *map(len, t[:2]))),
                 woven(cut(outs[:m], nk), cut(outs[m:], len(t[1]))))
        t_avals = [a.to_tangent_aval() for a in compress(avals[nr:], nz[:nk])]
        results = self.bind(*own, *woven(p, t), **self.regrouped(
            params, [body.rearranged(*order) for body, _ in derived], nr + len(t[0]),
            [*range(nk), *t_avals], range(len(own))))
        carry, t_carry, ys, t_ys = cut(results, nk, len(t_avals), m - nk)
        results = [*carry, *ys]
        return results, spread_tangents(map(typeof, results), nz, (*t_carry, *t_ys))

    def adds(self, params: Params, count: int) -> Sequence[bool]:
        own, read, carry, each = self.groups(params, count)
        return [*(False,) * own, *(True,) * read, *(False,) * carry, *(True,) * each]

    def split(self, params: Params, read: Sequence[bool], start: Sequence[bool] = (),
              each: Sequence[bool] = ()) -> tuple[list[Split], tuple[bool, ...]]:
        """The bodies split in two by flags of unknown operands; flags of the unknown results."""
        return self.agreed(params, start, lambda body, carry, force: partial_eval_program(
            body, (*read, *carry, *each), force), operator.attrgetter("unknown_out"))

    def batched(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None], params: Params,
                more: Callable[[Flags], Flags] = lambda mapped: mapped
                ) -> tuple[Params, list[Array], list[int | None]]:
        """Params with mapped bodies, operands mapped as they need, and the results' mapped axes.

        `more`: flags of mapped carries -> the same, with carries that must be mapped as well.
        """
        own, read, carry, each = self.cut(params, args)
        _, d_read, d_start, d_each = self.cut(params, dims)
        nk, fronts = len(carry), list(map(front, map(typeof, carry), d_start))

        for x, d in zip(each, d_each, strict=True):
            if d is not None and typeof(x).is_high:
                raise _mapped_rows(self, typeof(x))

        # Rows are along axis 0, and the mapped axis is the next one: in the body axis 0.
        def make(body: ClosedOlympuspr, mapped: Flags, force: Flags
                 ) -> tuple[ClosedOlympuspr, tuple[int | None, ...]]:
            mapped = more(mapped)
            return batch_program(body, axis, [
                *d_read, *at_front(mapped, fronts), *(
                    None if d is None else row_axis(d) for d in d_each)],
                (*mapped, *force[nk:]))

        made, mapped = self.agreed(params, [d is not None for d in d_start], make,
                                   lambda made: [d is not None for d in made[1]])
        for aval, d in zip(made[0][0].out_avals[nk:], made[0][1][nk:], strict=True):
            if self.rows and d is not None and aval.is_high:
                raise _mapped_rows(self, aval)
        carry = [to_axis(x, d, to, axis.size) if m else x
                 for x, d, to, m in zip(carry, d_start, fronts, mapped, strict=False)]
        each = [x if d is None else to_axis(x, d, row_axis(d, self.rows), axis.size)
                for x, d in zip(each, d_each, strict=True)]
        return self.regrouped(params, [body for body, _ in made], len(read), range(nk),
                              range(len(own))), [*own, *read, *carry, *each], [
            *at_front(mapped[:nk], fronts), *(None if d is None else row_axis(d, d, self.rows)
                                              for d in made[0][1][nk:])]

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None], **params: Hashable
             ) -> tuple[Sequence[Array], Sequence[int | None]]:
        params, args, out = self.batched(axis, args, dims, params)
        return self.bind(*args, **params), out

    # Contents that are only read stay consts or rows. A written const becomes a carry of a loop, or
    # a result of branches; of written rows, each run returns its row.
    def discharged(self, ins: Sequence[Reference], params: Params) -> list[Array]:
        ins, params = self.with_references(ins, params)
        own, read, carry, each = self.cut(params, ins)
        its, bodies, n = [*read, *carry, *each], self.alike(params), len(read) + len(carry)
        which = list(map(_refs.is_cell, its))
        new = [w and any(flags)
               for w, *flags in zip(which, *map(_refs.written, bodies), strict=True)]
        m, pure = len(bodies[0].outvars), [
            _refs.discharge(b, which, new, _refs.sources(its)) for b in bodies]
        if len(bodies) > 1:
            outs = self.bind(*map(_refs.content, ins), **self.regrouped(
                params, pure, len(read), range(len(carry)), range(len(own))))
            return _refs.put_back([*compress(its, new)], outs)
        #   discharged   read | carry | each           ->  carry, ys | written, rows
        #   the loop     read | written, carry | each  ->  written, carry | ys, rows
        written, rows = [i for i in places(new) if i < n], [i for i in places(new) if i >= n]
        read_only = [i for i in range(len(read)) if i not in written]
        k = len(written)
        body = pure[0].rearranged(
            [*read_only, *written, *range(len(read), len(its))],
            [*range(m, m + k), *range(m), *range(m + k, m + k + len(rows))])
        values = list(map(_refs.content, its))
        outs = self.bind(
            *own, *[values[i] for i in [*read_only, *written, *range(len(read), len(its))]],
            **self.regrouped(params, [body], len(read_only), [
                *[typeof(values[i]) for i in written], *range(len(carry))], range(len(own))))
        results = _refs.put_back([its[i] for i in rows], outs)
        for i, x in zip(written, results, strict=False):
            its[i]._put(x)
        return results[k:]

    def with_more(self, which: Sequence[int], more: Sequence[T], xs: Sequence[T], params: Params
                  ) -> tuple[Sequence[T], Params]:
        own, read, carry, each = self.cut(params, xs)
        avals, first = self.alike(params)[0].in_avals, len(own) + len(read) + len(carry)
        pairs = [[(x, avals[i - len(own)]) for i, x in zip(which, more, strict=True)
                  if (i >= first) == rows] for rows in (False, True)]
        (more_read, read_avals), (more_each, each_avals) = [
            ([x for x, _ in group], [a for _, a in group]) for group in pairs]
        bodies = [with_leading(body, len(avals), [*read_avals, *range(len(avals)), *each_avals])
                  for body in self.alike(params)]
        return [*own, *more_read, *read, *carry, *each, *more_each], self.regrouped(
            params, bodies, len(more_read) + len(read), range(len(carry)), range(len(own)))

    # The count of iterations, and the code and words of the first failure, are three carries more.
    def checked(self, checks: Checks, args: Sequence[Array], params: Params) -> Any:
        (body,) = map(checks.body, self.alike(params))
        return body and checks.took(
            self.run_checked(body, args, params), [
                site.within(f"iteration {{}} of a {self.name}", body.width) for site in body.sites])

    def run_checked(self, body: Checked, args: Sequence[Array], params: Params) -> list[Array]:
        """The code, the words and the results of a loop of the checked body."""
        own, read, carry, each = self.cut(params, args)
        program = counted(body, len(read))
        start = no_failure(body.width + 1, program.out_avals[1].vma)
        start = [start[0], *start]      # the count is an int32 that starts at 0, too
        new = self.regrouped(params, [program], len(read),
                             [*map(typeof, start), *range(len(carry))], range(len(own)))
        return self.bind(*own, *read, *start, *carry, *each, **self.until_failure(new))[1:]

    def until_failure(self, params: Params) -> Params:
        """The params of a checked loop that ends at a failure, if possible; its carry begins with
        the count and the code."""
        return params

    def dce(self, used: Sequence[bool], eqn: OlympusprEqn) -> OlympusprEqn:
        params = eqn.params
        groups = self.groups(params, len(eqn.invars))
        no, nr, nk, _ = groups
        own, deciding = cut(self.deciding(params, groups), no)
        start, rest = cut(used, nk)

        # A carry whose last value nobody reads may feed a value that is read, one run later.
        def step(carry: Flags) -> tuple[tuple[list[ClosedOlympuspr], Flags], Flags]:
            reduced = [dce_closed(body, (*carry, *rest)) for body in self.alike(params)]
            keep = tuple(map(any, zip(*[flags for _, flags in reduced], strict=True)))
            return ([body for body, _ in reduced], keep), keep[nr:nr + nk]

        (bodies, keep), carry = fixpoint(tuple(map(operator.or_, start, deciding)), step,
                                         [(j, i) for i, j in self.handed_on(params)])
        keep = [*keep[:nr], *carry, *keep[nr + nk:]]
        return eqn.replace(
            invars=[*compress(eqn.invars, (*own, *keep))],
            outvars=[*compress(eqn.outvars, (*carry, *rest))],
            params=self.regrouped(params, [body.rearranged(places(keep)) for body in bodies],
                                  sum(keep[:nr]), places(carry), places(own)))


class Loop(AgreeingRuns, abstract=True):
    """Iterations of one body, whose number is unknown."""

    adds: Any = None
    repeats = True

    def times(self, params: Params) -> None:
        return None

    def cells(self, use: Use, cells: Sequence[Cells], eqn: OlympusprEqn) -> list[Cells]:
        own, read, start, _ = self.cut(eqn.params, cells)

        def step(i: int, carry: Sequence[Cells]) -> list[Cells]:
            return [use.call(body, its)
                    for _, body, its in self.applied(eqn.params, [*own, *read, *carry])][-1]

        return use.loop(step, start)

    def known_loop(self, args: Sequence[ArrayLike], unknown: Sequence[bool], params: Params
                   ) -> tuple[functools.partial[list[Array]] | None, tuple[bool, ...]]:
        """The loop of the known carries, and flags of the unknown ones.

        None if the iteration count is unknown, or the loop changes an operand in place.
        """
        own, read, start, _ = self.cut(params, unknown)
        (split,), uk = self.split(params, read, start)
        if self.decided(params, own, uk) or input_effects(
                self.effects(list(map(typeof, args)), params)):
            return None, uk
        carry = places(uk, False)
        body, _ = dce_closed(split.known, [True] * len(carry) + [False] * split.num_computed)
        known = [a for a, u in zip(args, (*own, *read, *uk), strict=True) if not u]
        return functools.partial(self.bind, *known, **self.regrouped(
            params, [body], read.count(False), carry, places(own, False))), uk

    def partial_eval(self, tape: TapeTrace, args: Sequence[Array], unknown: Sequence[bool],
                     **params: Hashable) -> Sequence[Array]:
        """Run the loop of the known carries, and record the whole loop.

        There are no residuals, because the number of their rows is unknown: the recorded loop
        computes the known carries again.
        """
        whole = tape.record(self, args, params)
        known, uk = self.known_loop(args, unknown, params)
        return whole if known is None else merged(uk, compress(whole, uk), known())


def fixpoint(start: Flags, step: Callable[[Flags], tuple[T, Flags]],
             implied: Sequence[tuple[int, int]] = ()) -> tuple[T, Flags]:
    """Iterate `step(flags in) -> (result, flags out)` until no flag is added.

    Flags only turn on, so there are at most as many rounds as flags. Returns the last result, with
    the flags that hold for inputs and outputs. `implied`: pairs of flags; the first one turns on
    the second.
    """
    following: dict[int, list[int]] = {}
    for i, j in implied:
        following.setdefault(i, []).append(j)

    def followed(flags: Sequence[bool]) -> Flags:
        flags = [*flags]
        pending = places(flags)
        for i in pending:
            more = [j for j in following.get(i, ()) if not flags[j]]
            pending += more
            for j in more:
                flags[j] = True
        return tuple(flags)

    # At the end the flags out are a subset of the flags in. A step that makes a body forces the
    # flags in onto its outputs, so that a carry keeps its types.
    flags = followed(start)
    while True:
        result, out = step(flags)
        grown = followed([a or b for a, b in zip(flags, out, strict=True)])
        if grown == flags:
            return result, flags
        flags = grown


def woven(*rows: Sequence[Sequence[T]]) -> list[T]:
    """The items of several rows, group by group.

    >>> woven([[1], [2, 3]], [[10], [20]])
    [1, 10, 2, 3, 20]
    """
    return [x for groups in zip(*rows, strict=True) for group in groups for x in group]


def places(flags: Sequence[bool], wanted: bool = True) -> list[int]:
    """The indices of the flags that are `wanted`."""
    return [i for i, flag in enumerate(flags) if bool(flag) is wanted]


def at_front(mapped: Sequence[bool], fronts: Sequence[MappedAxis] = ()
             ) -> list[MappedAxis]:
    """The mapped axes of values: in front where flagged, None elsewhere."""
    if fronts:
        return [to if m else None for m, to in zip(mapped, fronts, strict=True)]
    return [0 if m else None for m in mapped]


def front(aval: Aval, dim: MappedAxis) -> MappedAxis:
    """0; for a user's type, whose mapped axis cannot be moved, its own mapped axis."""
    return dim if aval.is_high else 0


def _mapped_rows(prim: Primitive, aval: Aval) -> NotImplementedError:
    return NotImplementedError(
        f"vmap: {prim.name} given rows of type {aval} that are mapped, too; a MappingSpec says of "
        "one axis where it is; convert them to arrays, or use lax.map in place of vmap.")


def row_axis(dim: MappedAxis, axis: int = 0, rows: int = 0) -> MappedAxis:
    """`axis + rows`; for a user's type its spec, which holds for rows, too."""
    return axis + rows if type(dim) is int else dim
