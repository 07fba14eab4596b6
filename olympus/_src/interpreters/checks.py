"""Checks: a program that finds its own first failure, and returns that before its results.

    program    inputs  ->  results
    checked    inputs  ->  code, words, results

`code` is 0, or the number of the program's `Site` that failed first. `words` describe the failure:
the bits of operands and indices, as many words as any site needs. A checked program does not depend
on its surroundings: loops add the iteration, calls and branches renumber the codes. So a checked
body is kept with its body, and a body that cannot fail stays as it is.

In a quick check the code only says whether the program fails: it has no sites, and checks only the
last of several operations that hand a NaN on. The caller runs the full program after a failure.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Sequence
from itertools import compress
from typing import Any, NamedTuple

import numpy as np

from ..base import lib, source
from ..base.config import notes_failures
from ..base.typing import Array, DimSize, DTypeLike, IrValue, Params
from ..base.util import WithAux, cut, lazy_imports
from ..core.context import ROOT, ctx
from ..core.effects import Effect
from ..core.evaluate import eval_closed, evaluate
from ..core.ir import (
    Atom, ClosedOlympuspr, Literal, Olympuspr, OlympusprEqn, Var, derived, variables,
)
from ..core.primitive import Axis, Builder, Primitive, Tangent
from ..core.staging import stage
from ..core.tags import pvary
from ..core.trace import literal, typeof
from ..lax.arithmetic import div, imag, real, rem
from ..lax.barriers import stop_gradient
from ..lax.bits import bitwise_or
from ..lax.comparison import eq, ne, select
from ..lax.convert import bitcast_convert_type, convert_element_type
from ..lax.creation import full
from ..lax.families import add
from ..lax.reduce import argmax
from ..lax.shape import (
    broadcast_axis, broadcast_in_dim, broadcast_in_dim_p, expand_dims, move_axis, reshape,
)
from ..lax.slicing import concatenate, dynamic_index_in_dim, pad
from ..types import dtypes
from ..types.avals import Aval, ShapedArray
from ..types.shape import definitely_equal, maximum, prod

with lazy_imports(__name__):       # of checked programs
    from . import index_checks as _index_checks

KINDS = ("user", "nan", "index", "div")
# The kinds of checks that will be added to the program that is traced now.
looked_for: Any = lib.Config("olympus_checks", frozenset(), include_in_jit_key=True,
                             include_in_trace_context=True)
INT32, UINT32 = map(dtypes.as_dtype, ("int32", "uint32"))


def looking() -> bool:
    """Whether the program that is traced now will be checked, or its failures noted."""
    return bool(looked_for.value) or notes_failures()


class OlympusRuntimeError(ValueError):
    """A failed check, with its message, line and values.

    >>> import olympus
    >>> from olympus.experimental import checkify
    >>> try:
    ...     olympus.check(False, "x is {x}", x=3)
    ... except checkify.OlympusRuntimeError as error:
    ...     print(str(error).splitlines()[0])
    x is 3 (`check` failed)
    """

    __module__ = "olympus.experimental.checkify"    # it need not be imported for this error


class Field(NamedTuple):
    """The shape and dtype of a value whose bits are among the words."""

    shape: tuple[int, ...]
    dtype: Any
    size: int       # in words


class Site(NamedTuple):
    """A place that can fail: one equation, or one `check` of the user's.

    kind: one of `KINDS`.
    what: the operation's name, or the user's message.
    source: the user's line.
    fields: the values in the first words.
    details: by kind: the structure of the message's fields; the shape of the value that has a NaN;
      (axes, shape of the indexed array, shape of the indices).
    around: the loops and maps around it, the innermost first: (text for one run, index of the word
      that has the number of the run).
    """

    kind: str
    what: str
    source: Any
    fields: tuple[Field, ...] = ()
    details: Any = None
    around: tuple[tuple[str, int], ...] = ()

    def within(self, what: str, word: int) -> Site:
        """The same site in a loop or map, whose word `word` counts its runs."""
        return self._replace(around=(*self.around, (what, word)))

    def values(self, words: np.ndarray) -> list[np.ndarray]:
        """The values of the fields, decoded from the words."""
        values, start = [], 0
        for field in self.fields:
            values.append(_decoded(field, words[start:start + field.size]))
            start += field.size
        return values


class Checked(NamedTuple):
    """A checked program, its sites, and the number of words that it returns."""

    program: ClosedOlympuspr
    sites: tuple[Site, ...]
    width: int


# Words -------------------------------------------------------------------------------------------

def fields_of(values: Sequence[object]) -> tuple[Field, ...]:
    """The layout of values in the words."""
    avals = list(map(typeof, values))
    return tuple([Field(a.shape, a.dtype, prod(a.shape) * _words_each(a.dtype))
                  for a in avals])


def _words_each(dtype: DTypeLike) -> int:
    return max(1, dtypes.itemsize_bits(dtype) // 32)


def words_of(values: Sequence[object]) -> Array:
    """The bits of values, one after the other: uint32[n]."""
    parts = [_encoded(stop_gradient(x)) for x in values]
    return concatenate(parts, 0) if len(parts) > 1 else parts[0] if parts else _no_words(0)


def _encoded(x: Any) -> Array:
    dtype = typeof(x).dtype
    if dtypes.is_complex(dtype):
        parts = [expand_dims(part(x), (typeof(x).ndim,)) for part in (real, imag)]
        x = concatenate(parts, typeof(x).ndim)
    elif dtypes.itemsize_bits(dtype) < 32:
        wide = "float32" if dtypes.is_floating(dtype) else "int32"
        x = convert_element_type(x, dtypes.as_dtype(wide))
    x = bitcast_convert_type(x, UINT32)
    return reshape(x, (prod(typeof(x).shape),))


def _decoded(field: Field, words: np.ndarray) -> np.ndarray:
    dtype, words = field.dtype, np.ascontiguousarray(words, np.uint32)
    if not dtypes.is_complex(dtype) and dtypes.itemsize_bits(dtype) < 32:
        wide = np.float32 if dtypes.is_floating(dtype) else np.int32
        return words.view(wide).reshape(field.shape).astype(dtype)
    return words.view(dtype).reshape(field.shape)


def _no_words(width: int) -> Array:
    return full((width,), 0, UINT32)


def _int(value: int) -> Array:
    return literal(value, INT32)


def no_failure(width: int, vma: frozenset[str] = frozenset()) -> list[Array]:
    """The code and the words of a program that has not failed, varying along the axes `vma`."""
    return [pvary(x, vma) for x in (full((), 0, INT32), _no_words(width))]


def widened(words: Array, width: int) -> Array:
    """The words, padded with zeros at the end."""
    more = width - typeof(words).shape[0]
    return pad(words, literal(0, UINT32), ((0, more, 0),)) if more else words


def moved(code: Array, offset: int) -> Array:
    """The code, renumbered behind `offset` other sites; 0 stays 0."""
    return select(eq(code, _int(0)), code, add(code, _int(offset))) if offset else code


def first(old: Sequence[Array], new: Sequence[Array]) -> list[Array]:
    """(code, words) of the old failure, or of the new one if there is no old one."""
    fine = eq(old[0], _int(0))
    return [select(fine, new[0], old[0]),
            select(broadcast_in_dim(fine, typeof(old[1]).shape, ()), new[1], old[1])]


# The user's checks -------------------------------------------------------------------------------

class CheckEffect(Effect):
    """The effect of a check: the check stays without results, and runs for each element apart.

    Compiled programs have none: checked ones return the failure, others drop checks for debugging.
    """

    __slots__ = ()
    per_element = True
    compiled = False
    name = "Check"


class Check(Primitive):
    """Fail if the code is not 0. params: sites, by code; debug, whether only checked programs fail.
    """

    multiple_results = True
    lowered = ("debug",)

    def infer(self, code: ShapedArray, words: ShapedArray, *, sites: tuple[Site, ...], debug: bool
              ) -> list[Array]:
        return []

    def effects(self, avals: Sequence[ShapedArray], params: Params) -> frozenset[Effect]:
        return frozenset([CheckEffect()])

    def impl(self, code: Array, words: Array, *, sites: tuple[Site, ...], debug: bool
             ) -> list[Array]:
        if not debug:
            raise_failure(code, words, sites)
        return []

    def lower(self, b: Builder, code: IrValue, words: IrValue, *, sites: tuple[Site, ...],
              debug: bool) -> list[IrValue]:
        if debug:
            return []
        raise ValueError(
            f"check: {source.summarize(sites[0].source)} is compiled in a program that is not "
            "checked, from which nothing can be raised; a function that is checked is required "
            "around it; write olympus.jit(checks={'user'}), the decorator, at the outermost jit, "
            "or experimental.checkify.checkify(f), which returns the error. (Cannot abstractly "
            "evaluate a checkify.check which was not functionalized.)")

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Tangent], **params: Hashable
            ) -> tuple[list[Array], list[Tangent]]:
        return self.bind(*primals, **params), []

    transpose = None

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None], *,
             sites: tuple[Site, ...], debug: bool) -> tuple[list[Array], list[int | None]]:
        if axis.size:
            args = [broadcast_axis(x, axis.size, 0) if d is None else move_axis(x, d, 0)
                    for x, d in zip(args, dims, strict=True)]
            args, sites = first_run("element {} of a vmap", (axis.size,), args, sites)
            self.bind(*args, sites=sites, debug=debug)
        return [], []


check_p = Check("check")


def first_run(what: str, shape: Sequence[DimSize], args: Sequence[Any], sites: tuple[Site, ...]
              ) -> tuple[list[Array], tuple[Site, ...]]:
    """The first failure among several runs, and sites that name the run.

    args: code and words; their leading axes, of this shape, count the runs.
    """
    code, words = args
    count, width = prod(shape), typeof(words).shape[-1]
    if len(shape) != 1:
        code, words = reshape(code, (count,)), reshape(words, (count, width))
    one = argmax(ne(code, full((count,), 0, INT32)), 0, np.int32)
    code, words = [dynamic_index_in_dim(x, one, 0, keepdims=False) for x in (code, words)]
    coordinates: list[Array] = []
    for n in reversed(shape[1:]):
        coordinates.insert(0, rem(one, literal(n, INT32)))
        one = div(one, literal(n, INT32))
    for i in reversed(range(len(shape))):
        sites = tuple([site.within(what, width + i) for site in sites])
    return [code, concatenate([words, words_of([one, *coordinates])], 0)], sites


# The pass ----------------------------------------------------------------------------------------

def check_program(closed: ClosedOlympuspr, kinds: frozenset[str], quick: bool = False
                  ) -> Checked | None:
    """The checked program; None if nothing in it is checked. Cached on the program."""
    return _checked(closed, kinds, quick)


@derived
def _checked(closed: ClosedOlympuspr, kinds: frozenset[str], quick: bool) -> Checked | None:
    def body(*args: Array) -> tuple[list[Array], tuple[bool, tuple[Site, ...], int]]:
        checks = Checks(kinds, quick, handed_on(closed.olympuspr) if quick else ())
        outs = evaluate(closed.olympuspr, closed.consts, args, checks.step)
        failure = checks.first()
        differs = bool(checks.found or checks.left)
        return [*failure, *outs], (differs, tuple(checks.sites), checks.width)

    # `checks` has tracers, which end with the trace; only facts about the program are kept.
    with_aux = WithAux(body)
    program = stage(with_aux, closed.in_avals, closed.olympuspr.debug_info)
    differs, sites, width = with_aux.aux
    return Checked(program, sites, width) if differs else None


def counted(body: Checked, num_read: int) -> ClosedOlympuspr:
    """A checked body of a loop: its carry starts with the count of iterations and the code and
    words of the first failure; the last word is the iteration.
    """
    return _counted(body.program, num_read)


@derived
def _counted(checked: ClosedOlympuspr, num_read: int) -> ClosedOlympuspr:
    def step(*args: Array) -> list[Array]:
        read, (count, *old), rest = cut(args, num_read, 3)
        code, words, *outs = eval_closed(checked, *read, *rest)
        words = concatenate([words, words_of([count])], 0)
        return [add(count, _int(1)), *first(old, [code, words]), *outs]

    avals, (code, words) = checked.in_avals, checked.out_avals[:2]
    carry = [code, code, words.update(shape=(words.shape[0] + 1,))]
    return stage(step, [*avals[:num_read], *carry, *avals[num_read:]])


def as_branch(body: Checked | ClosedOlympuspr, offset: int, width: int, vma: frozenset[str]
              ) -> ClosedOlympuspr:
    """A branch that returns as many words as the others; its codes begin behind `offset`."""
    checked = isinstance(body, Checked)
    return _branch(body.program if checked else body, checked, offset, width, vma)


@derived
def _branch(program: ClosedOlympuspr, checked: bool, offset: int, width: int, vma: frozenset[str]
            ) -> ClosedOlympuspr:
    def branch(*args: Array) -> list[Array]:
        if not checked:
            return [*no_failure(width, vma), *eval_closed(program, *args)]
        code, words, *outs = eval_closed(program, *args)
        failure = moved(code, offset), widened(words, width)
        return [*(pvary(x, vma) for x in failure), *outs]

    return stage(branch, program.in_avals)


class Checks:
    """The findings of checks in a program that is run equation by equation.

    A primitive with bodies has a rule `checked(checks, args, params)`: its results, or None if no
    body can fail. The rule gets checked bodies from `body`, and gives their results to `took`.
    """

    def __init__(self, kinds: frozenset[str], quick: bool, handed_on: Container[Var]) -> None:
        self.kinds, self.quick = kinds, quick
        self.handed_on = handed_on      # variables whose NaN is in another checked value, too
        self.wide: dict[Any, Any] = {}      # result of a broadcast -> the value before it
        self.small: dict[Any, Any] = {}     # type of flags -> the union of several small failures
        self.sites: list[Site] = []
        self.found: list[tuple[Any, Any]] = []      # code and words of each possible failure
        self.width = 0
        self.source: Any = None     # the line of the equation
        self.left = False           # whether a check was left out

    def body(self, closed: ClosedOlympuspr) -> Checked | None:
        """The checked program of a body."""
        return check_program(closed, self.kinds, self.quick)

    def took(self, outs: Sequence[Array], sites: Sequence[Site]) -> list[Array]:
        """Strip code and words from the results of a checked operation; add its sites."""
        code, words, *outs = outs
        self.found.append((moved(code, len(self.sites)), words))
        self.sites += [site._replace(source=self.source) if site.source is source.CALLERS else site
                       for site in sites]
        self.width = maximum(self.width, typeof(words).shape[0])
        return outs

    def fails(self, failed: Array, values: Sequence[object], kind: str, what: str,
              details: object = None) -> None:
        """Record a failure of the equation where `failed` holds, with the values to report."""
        code = select(failed, _int(1), _int(0))
        site = Site(kind, what, self.source, fields_of(values), details)
        self.took([code, _no_words(0)] if self.quick else [code, words_of(values)],
                  [] if self.quick else [site])

    def first(self) -> list[Array]:
        """Code and words of the first failure."""
        for wrong in self.small.values():
            self.fails(_index_checks.first_place(wrong, False)[0], [], "", "")
        # From the last to the first: each select needs only its own code.
        code, words = no_failure(self.width)
        for its_code, its_words in reversed(self.found):
            code, words = first([its_code, widened(its_words, self.width)], [code, words])
        return [code, words]

    def step(self, eqn: OlympusprEqn, ins: list[Array]) -> Array | Sequence[Array]:
        """Run one equation with its checks, in its scope, at its line."""
        trace, scope = ctx.trace, ctx.scope
        start, self.source = len(trace.eqns), eqn.source
        if eqn.ctx is not ROOT:
            ctx.scope = scope.extend(*eqn.ctx.names)
        try:
            return self.run(eqn, ins)
        finally:
            ctx.scope = scope
            if eqn.source is not None:
                trace.relocate(start, eqn.source)

    def run(self, eqn: OlympusprEqn, ins: list[Array]) -> Array | Sequence[Array]:
        prim = eqn.primitive
        if prim is check_p:
            self.take_check(ins[0], ins[1], eqn.params["sites"])
            return []
        outs = prim.checked(self, ins, eqn.params) if prim.checked is not None else None
        if outs is not None:
            return outs
        if prim.divides and "div" in self.kinds:
            self.look_at_divisor(eqn, ins)
        if "index" in self.kinds:
            outside = _index_checks.outside(prim, list(map(stop_gradient, ins)), eqn.params,
                                            not self.quick)
            for failed, values, details in outside:
                self.fails(failed, values, "index", prim.name, details)
        outs = prim.bind(*ins, **eqn.params)
        if prim is broadcast_in_dim_p:
            self.wide[eqn.outvars[0]] = ins[0]
        elif prim.makes_nan and "nan" in self.kinds:
            for var, out in zip(eqn.outvars, outs if prim.multiple_results else [outs],
                                strict=True):
                aval = typeof(out)
                if (aval.is_array and dtypes.is_inexact(aval.dtype)
                        and var not in self.handed_on):
                    self.look(is_nan(out), prim, "nan", ins)
        return outs

    def look_at_divisor(self, eqn: OlympusprEqn, ins: Sequence[Array]) -> None:
        """Record a division by zero; a divisor that is a broadcast is checked before it."""
        x, y = ins
        number = self.wide.get(eqn.invars[1], y)
        if type(number) is not Literal or not number.raw:
            narrow = self.quick and not definitely_equal(typeof(y).size, 0)
            self.look(eq_zero(number if narrow else y), eqn.primitive, "div", [x])

    def take_check(self, code: Array, words: object, sites: tuple[Site, ...]) -> None:
        """Take a user's check: all of its errors, or the errors of the wanted kinds."""
        wanted = ["user" in self.kinds or site.kind in self.kinds for site in sites]
        if not all(wanted):
            self.left = True
            table = np.array([False, *wanted])
            code = select(dynamic_index_in_dim(table, code, 0, False), code, _int(0))
        if any(wanted):
            self.took(*([code, _no_words(0)], []) if self.quick else ([code, words], sites))

    def look(self, wrong: Array, prim: Primitive, kind: str, operands: Sequence[Array]) -> None:
        """Record a failure if any element of `wrong` is true, with its index and the operands."""
        aval = typeof(wrong)
        if definitely_equal(aval.size, 0):
            return
        if self.quick and type(aval.size) is int and aval.size <= SMALL:
            union = self.small.get(aval)
            self.small[aval] = wrong if union is None else bitwise_or(union, wrong)
            return
        failed, place = _index_checks.first_place(wrong, not self.quick)
        reported: list[Any] = []
        if place is not None:
            reported = [place]
            if prim.elementwise:
                reported += [at_place(x, place) for x in numeric(operands, [(), aval.shape])]
        elif not aval.shape:
            reported = numeric(operands, [()])
        self.fails(failed, reported, kind, prim.name, aval.shape)


def at_place(x: Array, place: Array) -> Array:
    """A scalar, or the element of an array at a flat index."""
    aval = typeof(x)
    return dynamic_index_in_dim(reshape(x, (aval.size,)), place, 0, False) if aval.shape else x


def eq_zero(x: Array) -> Array:
    """Whether elements are zero."""
    x = stop_gradient(x)
    return eq(x, full(typeof(x).shape, 0, typeof(x).dtype))


def is_nan(x: Array) -> Array:
    """Whether elements are NaN."""
    x = stop_gradient(x)
    return ne(x, x)


def numeric(operands: Sequence[Array], shapes: Sequence[object]) -> list[Array]:
    """The operands of numbers that have one of the shapes (no keys, no float0)."""
    return [x for x in operands if typeof(x).shape in shapes and not dtypes.is_extended(
        typeof(x).dtype) and not dtypes.is_float0(typeof(x).dtype)]


def handed_on(pr: Olympuspr, results: tuple[bool, ...] | None = None) -> set[Var]:
    """The variables whose NaN is also in another value that is checked. Kept with the program.

    `results`: flags of the program's results that are such variables.
    """
    results = results or (False,) * len(pr.outvars)
    known = pr.cache.get(("handed on", results))
    if known is None:
        known = pr.cache["handed on", results] = _handed_on(pr, compress(pr.outvars, results))
    return known


def _handed_on(pr: Olympuspr, results: Iterable[Atom]) -> set[Var]:
    handed = set(variables(results))
    for eqn in reversed(pr.eqns):
        prim = eqn.primitive
        if prim.looked_into:
            (_, body, operands), = prim.applied(eqn.params, eqn.invars)
            inside = handed_on(body.olympuspr, tuple([v in handed for v in eqn.outvars]))
            handed.update(variables([v for v, x in zip(operands, body.invars, strict=True)
                                     if x in inside]))
        elif prim.hands_on(eqn.params):
            out, = eqn.outvars
            if (_has_nan(out.aval) and not definitely_equal(out.aval.size, 0)
                    and (prim.makes_nan or out in handed)):
                handed.update([v for v in variables(eqn.invars) if _has_nan(v.aval)])
    return handed


def _has_nan(aval: Aval) -> bool:
    """Whether elements may be NaN as a whole; half of a complex number may be."""
    return getattr(aval, "dtype", None) in NAN_DTYPES


NAN_DTYPES = frozenset(map(dtypes.as_dtype, ("float16", "bfloat16", "float32", "float64")))
SMALL = 1 << 14     # elements: a loop over fewer takes less time than its start


# Failures as text --------------------------------------------------------------------------------

def raise_failure(code: Array, words: object, sites: Sequence[Site]) -> None:
    """Raise the error of a code that is not 0."""
    number = int(code)
    if number:
        raise OlympusRuntimeError(explained(sites[number - 1], np.asarray(words)))


def explained(site: Site, words: np.ndarray) -> str:
    """The message of a failure: its line, its values, and the iterations of loops around it."""
    values = site.values(words)
    lines = [_headline(site, values), f"  at {place_of(site)}"]
    if site.kind in ("nan", "div") and values:
        lines += _operand_lines(site, values)
    runs = [what.format(words[word].astype(np.int32)) for what, word in site.around]
    if runs:
        lines.append(f"  in {', of '.join(runs)}")
    return "\n".join(lines)


def place_of(site: Site) -> str:
    """The user's line as text; a site of an artifact has the text itself."""
    return site.source if isinstance(site.source, str) else source.summarize(site.source)


def _headline(site: Site, values: Sequence[np.ndarray]) -> str:
    if site.kind == "user":
        args, kwargs = site.details.unflatten([x[()] for x in values])
        return f"{site.what.format(*args, **kwargs)} (`check` failed)"
    if site.kind == "nan":
        return f"nan generated by primitive: {site.what}."
    if site.kind == "div":
        return f"division by zero in {site.what}"
    axes, shape, rows = site.details
    if not values:
        return (f"out-of-bounds indexing for array of shape {shape}: an index is out of bounds for "
                f"one of the axes {tuple(axes)}.\n  an index of {site.what}")
    index, place = map(int, values)
    row, component = divmod(place, len(axes))
    axis = axes[component]
    where = f", at {_coordinates(row, rows)} of the shape {rows}" if rows else ""
    return (f"out-of-bounds indexing for array of shape {shape}: index {index} is out of bounds "
            f"for axis {axis} with size {shape[axis]}.\n  an index of {site.what}{where}")


def _coordinates(place: int, shape: Sequence[int]) -> list[int]:
    """The indices of the element with this flat index."""
    return list(map(int, np.unravel_index(place, shape)))


def _operand_lines(site: Site, values: Sequence[np.ndarray]) -> list[str]:
    """The element's index, and the operands there."""
    shown = []
    if site.details:
        place, *values = values
        shown.append(f"at {_coordinates(int(place), site.details)} of the shape {site.details}")
    if values:
        shown.append(f"of the operand{'s' * (len(values) > 1)} "
                     f"{', '.join(str(x[()]) for x in values)}")
    return [f"  {', '.join(shown)}"]
