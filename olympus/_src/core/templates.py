"""Templates: the equations of a library function, kept and written again at equal calls.

A library function's operations depend only on the types of its operands, on its other arguments and
on the Context. So the first call under a staging trace runs the function and keeps the equations
that it recorded as a `Template`. Later calls write these equations with fresh variables, at a
microsecond each, under the caller's line and scope. The program is the same to the letter, save
that equal constants are one.

The function runs itself if an argument is neither a value of this trace nor a plain constant (a
deep list, a function, an array). A recording is no template if it warned, had effects or read a
value of another trace.
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, TypeAlias

import numpy as np

from ..base import source
from ..base.config import numpy_dtype_promotion, numpy_rank_promotion
from ..base.typing import Array, ArrayLike, Params, PyTree, T
from ..base.util import KnownTypes, Memo, WithAux, bit_key
from ..types.tree import tree_flatten, tree_unflatten
from ..types.tree_registry import PyTreeDef
from .context import Name, Scope, ctx, current_context
from .ir import NO_EFFECTS, Literal, OlympusprEqn, Var
from .primitive import Primitive
from .staging import JitTracer, StagingTrace, stage
from .trace import Trace, Tracer

_user_frame = source.user_frame
_bound = attrgetter("_bound")
new: Any = object.__new__

# By function, Context, types of operands and the other arguments; None: the function runs itself.
_templates: Memo = Memo(4096)
# Types whose values are keys themselves: no value of another type equals one.
_exact = KnownTypes(str, type(None), type, Literal)
_plain = frozenset((int, bool, str, type(None)))    # types whose values are keys beside their type
_by_bits = frozenset((float, complex))
_DEEP = 4       # a list in so many lists is not looked into
# Primitive, places of operands, aval or avals of results, params, names of scopes.
_Equation: TypeAlias = "tuple[Primitive, list[int], Any, Params, tuple[Name, ...]]"


def call(trace: Trace, fun: Callable[..., PyTree], args: Sequence[object],
         kwargs: Mapping[str, object]) -> PyTree:
    """The result of `fun`, a library function, under a trace that records."""
    key: list[Hashable] = [fun, current_context()]
    operands: list[Any] = []
    own = trace if type(trace) is StagingTrace else None
    if not _note(args, own, key, operands):
        return fun(*args, **kwargs)
    if kwargs:
        key.append((*kwargs,))      # a tuple, so that no positional text looks like a name
        if not _note(kwargs.values(), own, key, operands):
            return fun(*args, **kwargs)
    if len(operands) > 1 and len({*map(id, operands)}) < len(operands):
        index_of = {id(x): i for i, x in enumerate(operands)}
        key.append(tuple([index_of[id(x)] for x in operands]))     # which operands are one object
    template = _templates.get(whole := tuple(key), _templates)
    if template is _templates:
        if own is not None:
            return _record(own, whole, operands, fun, args, kwargs)
        template = _templates[whole] = _staged(fun, args, kwargs)
    if template is None:
        return fun(*args, **kwargs)
    if own is not None:
        return template.write(own, operands)
    # The user's strict options do not apply inside of library functions, but they would to custom
    # rules among the equations that `bind` binds here.
    strict = numpy_dtype_promotion.value != "standard" or numpy_rank_promotion.value != "allow"
    return fun(*args, **kwargs) if strict else template.bind(operands)


def by_identity(kind: type[T]) -> type[T]:
    """Class decorator: objects of this class are constant arguments, compared by identity."""
    _exact.keep(kind)
    return kind


def _note(args: Iterable[Any], own: StagingTrace | None, key: list[Hashable],
          operands: list[Tracer], depth: int = 0) -> bool:
    """Add arguments to the key, and tracers (of the trace `own`, or of any) to the operands.

    False for an argument that has no key: the function must run itself. So must it for a list that
    is deep, or contains itself.
    """
    for a in args:
        kind = type(a)
        if kind is JitTracer and (a._trace is own or own is None):
            operands.append(a)
            key.append(a.aval)
        elif kind in _exact:
            key.append(a)
        elif kind is int or kind is bool:
            key += kind, a
        elif kind is tuple or kind is list:
            kinds = (*map(type, a),)
            if _plain.issuperset(kinds):    # shapes, axes
                key += kind, kinds
                key += a
                continue
            key += kind, len(a)
            if depth == _DEEP or not _note(a, own, key, operands, depth + 1):
                return False
        elif kind in _by_bits or _meet(kind):
            key.append(bit_key(a))
        elif own is None and issubclass(kind, Tracer):
            operands.append(a)
            key.append(a.aval)
        else:
            return False
    return True


def _meet(kind: type) -> bool:
    """Whether values of a new type are constants: dtypes, enums, primitives."""
    if issubclass(kind, (type, np.dtype, enum.Enum, Primitive)):
        _exact.meet(kind)
        return True
    return False


class Template:
    """The equations of a call, whose operands are indices into the list of all values.

    The list begins with the operands of the call, the literals and the constants.
    """

    __slots__ = ("eqns", "literals", "consts", "height", "result", "tree")

    def __init__(self, eqns: list[_Equation], literals: list[Literal], consts: list[ArrayLike],
                 height: int, result: Sequence[int], tree: PyTreeDef | None) -> None:
        self.eqns, self.literals, self.consts = eqns, literals, consts
        self.height, self.result, self.tree = height, result, tree

    def write(self, trace: StagingTrace, operands: Sequence[JitTracer]) -> PyTree:
        """Record the equations once more, and return the result."""
        values: list[Any] = [*map(_bound, operands), *self.literals]
        for const in self.consts:
            values.append(trace.atom(const))
        line, scope, record = trace.source or _user_frame(3), ctx.scope, trace.eqns.append
        at, append = values.__getitem__, values.append
        for prim, inputs, aval, params, names in self.eqns:
            eqn = new(OlympusprEqn)
            eqn.primitive, eqn.params, eqn.effects, eqn.source = prim, params, NO_EFFECTS, line
            eqn.ctx = scope.extend(*names) if names else scope
            eqn.invars = [*map(at, inputs)]
            if type(aval) is list:      # of several results
                outs = eqn.outvars = [*map(Var, aval)]
                values += outs
            else:
                var = new(Var)
                var.aval = aval
                eqn.outvars = [var]
                append(var)
            record(eqn)
        if self.height > trace.height:
            trace.height = self.height
        results = []
        for i in self.result:
            if i < len(operands):
                results.append(operands[i])
            else:
                out = new(JitTracer)
                out._trace, out._bound, out.aval = trace, values[i], values[i].aval
                results.append(out)
        return results[0] if self.tree is None else tree_unflatten(self.tree, results)

    def bind(self, operands: Sequence[Array]) -> PyTree:
        """Bind the equations' operations to values in the current trace, and return the result."""
        values: list[Any] = [*operands, *self.literals, *self.consts]
        scope = ctx.scope
        try:
            for prim, inputs, _, params, names in self.eqns:
                ctx.scope = scope.extend(*names) if names else scope
                out = prim.bind(*[values[i] for i in inputs], **params)
                if prim.multiple_results:
                    values += out
                else:
                    values.append(out)
        finally:
            ctx.scope = scope
        results = [values[i] for i in self.result]
        return results[0] if self.tree is None else tree_unflatten(self.tree, results)


def _record(trace: StagingTrace, key: tuple[object, ...], operands: list[JitTracer],
            fun: Callable[..., PyTree], args: Sequence[object], kwargs: Mapping[str, object]
            ) -> PyTree:
    """Run the function, and keep its equations as a template."""
    start, before, warned = len(trace.eqns), len(trace.consts), source.warned.count
    result = fun(*args, **kwargs)
    inputs = [x._bound for x in operands]
    # Two tracers of one variable: the equations do not say which one they read, so none are kept.
    if len(set(inputs)) == len(set(map(id, operands))):
        new = itertools.islice(reversed(trace.consts.values()), len(trace.consts) - before)
        _templates[key] = None if source.warned.count != warned else _template(
            trace, inputs, {var: value for value, var in new}, trace.eqns[start:], ctx.scope,
            result)
    return result


def _staged(fun: Callable[..., PyTree], args: Sequence[object], kwargs: Mapping[str, object]
            ) -> Template | None:
    """The template of a call under a transformation; None also where the function fails."""
    operands: list[Tracer] = []
    _note([*args, *kwargs.values()], None, [], operands)

    def recorded(*tracers: JitTracer) -> tuple[tuple[()], Template | None]:
        left = iter(tracers)
        traced = _with_tracers([*args, *kwargs.values()], left)
        result = fun(*traced[:len(args)], **dict(zip(kwargs, traced[len(args):], strict=True)))
        trace = ctx.trace
        return (), _template(trace, [x._bound for x in tracers],
                             {var: value for value, var in trace.consts.values()}, trace.eqns,
                             ctx.scope, result)

    warned, outer = source.warned.count, source.warned.silent
    source.warned.silent = True     # the function itself will warn
    try:
        stage(record := WithAux(recorded), [x.aval for x in operands])
    except Exception:   # the function itself will raise it, with the caller's arguments
        return None
    finally:
        source.warned.silent = outer
    return record.aux if source.warned.count == warned else None


def _with_tracers(a: Any, left: Iterator[Tracer]) -> Any:
    """An argument with the next tracers of `left` in place of its own."""
    if isinstance(a, Tracer):
        return next(left)
    return type(a)([_with_tracers(item, left) for item in a]) if type(a) in (list, tuple) else a


def _template(trace: StagingTrace, inputs: Sequence[Var], known: Mapping[Var, ArrayLike],
              recorded: Sequence[OlympusprEqn], scope: Scope, result: object) -> Template | None:
    """The template of recorded equations; None if they depend on more than `inputs` and constants.

    `known`: variables of constants, with their values.
    """
    if type(result) is JitTracer:
        leaves, tree = [result], None
    else:
        leaves, tree = tree_flatten(result)
    if any(eqn.effects for eqn in recorded) or any(
            type(x) is not JitTracer or x._trace is not trace for x in leaves):
        return None
    results = {var for eqn in recorded for var in eqn.outvars}
    inputs_read = dict.fromkeys([*[v for eqn in recorded for v in eqn.invars if v not in results],
                                 *[x._bound for x in leaves if x._bound not in results]])
    literals = [v for v in inputs_read if type(v) is Literal]
    consts = [v for v in inputs_read if type(v) is not Literal and v not in inputs]
    if any(var not in known or isinstance(known[var], Tracer) for var in consts):
        return None
    values = [*inputs, *literals, *consts]
    index_of = {atom: i for i, atom in enumerate(values)}
    steps, height, count = [], 0, len(values)
    for eqn in recorded:
        names = eqn.ctx.names[len(scope.names):]
        outs = [v.aval for v in eqn.outvars]
        steps.append((eqn.primitive, [index_of[v] for v in eqn.invars],
                      outs[0] if len(outs) == 1 else outs, eqn.params, names))
        index_of.update(zip(eqn.outvars, itertools.count(count)))
        count += len(eqn.outvars)
        for body in eqn.primitive.bodies(eqn.params):
            height = max(height, getattr(body, "olympuspr", body).height)
    return Template(steps, literals, [known[var] for var in consts], height,
                    [index_of[x._bound] for x in leaves], tree)
