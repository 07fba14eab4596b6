"""What custom_jvp and custom_vjp share: one call of a Python function with derivative rules.

The primitives here never see `process` while the function is still Python: `Trace.process_custom`
runs the function or its rule on the trace's own values, so Python control flow in both works.
Staging alone makes a body; values of outer traces that function or rule close over become operands.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..backend.array import literal_array
from ..core.evaluate import eval_closed
from ..core.ir import ClosedOlympuspr, DropVar, Literal, OlympusprEqn, Var
from ..core.primitive import Higher, Linear, Zero
from ..core.staging import closure_convert, stage
from ..core.trace import Context, Tracer, ctx, typeof
from ..interpreters.transpose import transpose_program
from ..lax.shape import zeros_of
from ..types import dtypes
from ..types.tree import tree_leaves, tree_leaves_with_path, tree_structure
from ..types.tree_paths import explain_mismatch, keystr
from .call import program_uses_axis

__all__ = ["CustomCall", "CustomFunction", "Rule", "SymbolicZero", "instantiate_zero",
           "run_batched", "zero_from_primal"]


class SymbolicZero:
    """A tangent or cotangent known to be zero, as rules with `symbolic_zeros=True` see it."""

    __slots__ = ("aval",)

    def __init__(self, aval: Any) -> None:
        self.aval = aval

    shape = property(lambda self: self.aval.shape, doc="Tuple of axis sizes.")
    dtype = property(lambda self: self.aval.dtype, doc="Element type.")
    ndim = property(lambda self: self.aval.ndim, doc="Number of axes.")
    size = property(lambda self: self.aval.size, doc="Number of elements.")

    @staticmethod
    def from_primal_value(val: Any) -> SymbolicZero:
        """The zero tangent of a primal value."""
        return SymbolicZero(typeof(val).to_tangent_aval())

    def __repr__(self) -> str:
        return f"SymbolicZero({self.aval})"


def zero_from_primal(val: Any, symbolic_zeros: bool = False) -> Any:
    """The zero tangent of a value: an array, or with `symbolic_zeros` a `SymbolicZero`."""
    aval = typeof(val).to_tangent_aval()
    return SymbolicZero(aval) if symbolic_zeros else instantiate_zero(Zero(aval))


class Rule:
    """A callable that prints as the user's function."""

    __slots__ = ("call", "name")

    def __init__(self, call: Callable[..., Any], name: str) -> None:
        self.call, self.name = call, name

    def __call__(self, *args: Any) -> Any:
        return self.call(*args)

    def __repr__(self) -> str:
        return self.name


def name_of(fun: Any) -> str:
    """What a function is called in messages and programs."""
    return getattr(fun, "__name__", type(fun).__name__)


def is_float0(aval: Any) -> bool:
    """Whether values of the aval carry no derivative."""
    return dtypes.is_float0(aval.dtype)


def instantiate_zero(x: Any) -> Any:
    """The (co)tangent as an array; float0 zeros are NumPy arrays, as no device has them."""
    if type(x) is not Zero:
        return x
    return np.zeros(x.aval.shape, dtypes.float0) if is_float0(x.aval) else zeros_of(x.aval)


def python_value(x: Any) -> Any:
    """A literal of a program as the scalar that it stands for; anything else as it is."""
    if type(x) is not Literal:
        return x
    value = x.value()
    return value.item() if x.aval.weak_type else value[()]


def results(outs: Sequence[Any]) -> list[Any]:
    """Results of an evaluated program for users: literals as arrays, as scalars in a trace."""
    if ctx.trace is Context.trace:
        return [literal_array(x) if type(x) is Literal else x for x in outs]
    return list(map(python_value, outs))


def check_pair(what: str, out: Any, content: str) -> tuple[Any, Any]:
    """The two results of a rule."""
    if not isinstance(out, (tuple, list)) or len(out) != 2:
        raise TypeError(f"{what}: the rule returned {type(out).__name__}"
                        f"{f' of length {len(out)}' if isinstance(out, (tuple, list)) else ''}; "
                        f"a pair ({content}) is required; return the two as a tuple.")
    return out[0], out[1]


def check_structure(what: str, required: Any, found: Any, meaning: str) -> None:
    """TypeError naming the paths where two pytree structures differ."""
    if tree_structure(required) == tree_structure(found):
        return
    places = "; ".join(explain_mismatch(required, found)[:4])
    raise TypeError(f"{what}: {meaning}; {places}; return equal structures.")


class CustomFunction:
    """Base of the decorators: what they know of the function and of one call's arguments."""

    what = ""

    def __init__(self, fun: Callable[..., Any], nondiff_argnums: Sequence[int] = (),
                 nondiff_argnames: Sequence[str] = ()) -> None:
        if not callable(fun):
            raise TypeError(f"{self.what}: fun is {fun!r}; a callable is required; pass the "
                            "function itself.")
        wrapper: Any = self
        functools.update_wrapper(wrapper, fun)
        self.fun = fun
        try:
            signature = inspect.signature(fun)
        except (TypeError, ValueError):
            signature = None
        self._signature = signature
        kinds = [p.kind for p in signature.parameters.values()] if signature else []
        plain = all(k in (k.POSITIONAL_ONLY, k.POSITIONAL_OR_KEYWORD) for k in kinds)
        self._num_positional = len(kinds) if signature and plain else -1
        self.nondiff_argnames = _names(nondiff_argnames)
        self.nondiff_argnums = self._positions(nondiff_argnums)

    def _positions(self, argnums: int | Sequence[int]) -> tuple[int, ...]:
        nums = {argnums} if isinstance(argnums, int) else set(argnums)
        parameters = list(self._signature.parameters) if self._signature else []
        for name in self.nondiff_argnames:
            if name not in parameters:
                raise ValueError(f"{self.what} {name_of(self.fun)}: nondiff_argnames has {name!r}; "
                                 f"a parameter's name is required: {', '.join(parameters)}.")
            nums.add(parameters.index(name))
        count = len(parameters)
        if self._num_positional >= 0 and any(not -count <= n < count for n in nums):
            raise ValueError(f"{self.what} {name_of(self.fun)}: nondiff_argnums is "
                             f"{tuple(sorted(nums))}; the function takes {count} arguments: "
                             f"{', '.join(parameters)}.")
        return tuple(sorted(n + count if n < 0 else n for n in nums))

    def __getattr__(self, name: str) -> Any:
        if name == "fun" or (name.startswith("__") and name.endswith("__")):
            raise AttributeError(name)
        return getattr(self.fun, name)

    def resolve(self, args: tuple, kwargs: dict[str, Any]) -> tuple:
        """All arguments by position, defaults filled in."""
        if self._signature is None or (not kwargs and len(args) == self._num_positional):
            if kwargs:
                raise TypeError(f"{self.what} {name_of(self.fun)}: keyword arguments given; its "
                                "signature cannot be read; pass them by position.")
            return args
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        if bound.kwargs:
            raise TypeError(
                f"{self.what} {name_of(self.fun)}: {', '.join(bound.kwargs)} given by keyword; "
                "every argument must have a position, because rules take them by position; drop "
                "the * or ** from the signature.")
        return bound.args


def _names(names: str | Sequence[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def closes_over_tracers(*values: Any) -> bool:
    """Whether any value is a tracer, holds one in a pytree, or is a function with one in a cell."""
    for value in values:
        if callable(value) and not isinstance(value, Tracer):
            cells = getattr(value, "__closure__", None) or ()
            contents = [c.cell_contents for c in cells if _filled(c)]
            contents += getattr(value, "__defaults__", None) or ()
        else:
            contents = [value]
        if any(isinstance(leaf, Tracer) for leaf in tree_leaves(contents)):
            return True
    return False


def _filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def run_batched(trace: Any, fun: Callable[..., Sequence[Any]], vals: Sequence[Any],
                dims: Sequence[int | None]) -> tuple[list[Any], list[int | None]]:
    """Run `fun` under an existing vmap trace, placed above the current one.

    The trace is that of the original vmap, not a new one, so that its tracers which `fun` closes
    over are recognised; rules run it again later, above another trace, even after vmap returned.
    """
    saved = ctx.trace, trace.parent, trace.alive, ctx.axes
    trace.parent, trace.alive, ctx.trace = ctx.trace, True, trace
    if trace.axis.name is not None:
        ctx.axes = {**ctx.axes, trace.axis.name: trace.axis.size}
    try:
        out, out_dims, _ = trace.split(fun(*[trace.wrap(x, d) for x, d in zip(vals, dims)]))
        return out, out_dims
    finally:
        ctx.trace, trace.parent, trace.alive, ctx.axes = saved


def unbatched(aval: Any, dim: int | None) -> Any:
    """The aval of one element."""
    return aval if dim is None else aval.update(
        shape=(*aval.shape[:dim], *aval.shape[dim + 1:]))


class _InProgress(threading.local):
    """The rules being staged in this thread: a rule that calls its own function ends there."""

    rules: frozenset[Any] | set[Any] = frozenset()


_in_progress = _InProgress()


class CustomCall(Higher, abstract=True):
    """A call of a function with rules; staged, it has the body `call_olympuspr`.

    Subclasses say how rules are kept in params (`pack`, `unpack`) and how they are staged.
    """

    partial_eval = None     # see on_tape

    def on_tape(self, tape: Any, fun: Callable[..., Any], rules: Any, args: tuple,
                params: dict[str, Any]) -> Any:
        """The results under a tape, some of whose unknowns are among the operands."""
        return fun(*args)       # linear in the unknowns: no rule is needed any more

    def infer(self, *avals: Any, call_olympuspr: ClosedOlympuspr, **params: Any) -> list[Any]:
        return call_olympuspr.out_avals

    def effects(self, *, call_olympuspr: ClosedOlympuspr, **params: Any) -> frozenset[Any]:
        return call_olympuspr.effects

    def lower(self, b: Any, *args: Any, call_olympuspr: ClosedOlympuspr, **params: Any) -> Any:
        return b.call_inline(call_olympuspr, args)

    def uses_axis(self, name: Any, params: dict[str, Any]) -> bool:
        return program_uses_axis(params["call_olympuspr"], name)

    def transpose(self, cts: Sequence[Any], *args: Any, call_olympuspr: ClosedOlympuspr,
                  **params: Any) -> list[Any]:
        linear = tuple(type(a) is Linear for a in args)
        nonzero = tuple(type(ct) is not Zero for ct in cts)
        body, _ = transpose_program(call_olympuspr, linear, nonzero)
        out = iter(eval_closed(body, *[a for a in args if type(a) is not Linear],
                               *[ct for ct, nz in zip(cts, nonzero) if nz]))
        return [next(out) if lin else None for lin in linear]

    def dce(self, used: Sequence[bool], eqn: OlympusprEqn) -> OlympusprEqn:
        # Rules compute all outputs, so the signature stays; XLA removes what nothing reads.
        return eqn.replace(outvars=[v if u else DropVar(v.aval)
                                    for v, u in zip(eqn.outvars, used)])

    def bind_eqn(self, args: Any, params: dict[str, Any]) -> Any:
        rules, rest = self.unpack(params)
        body = params["call_olympuspr"]
        return ctx.trace.process_custom(self, lambda *xs: eval_closed(body, *xs), rules,
                                        tuple(map(python_value, args)), rest)

    def stage(self, fun: Callable[..., Any], rules: Any, args: tuple,
              params: dict[str, Any]) -> Any:
        """Record the call in the current (staging) trace."""
        avals = [typeof(a) for a in args]
        body, tracers = closure_convert(stage(fun, avals))
        inner = _in_progress.rules
        if tracers or (rules.closes_over_tracers() and rules.code not in inner):
            _in_progress.rules = {*inner, rules.code}
            try:
                rules, more = rules.staged(avals, len(tracers), rules.code not in inner)
            finally:
                _in_progress.rules = inner
            pr, n = body.olympuspr, len(tracers)
            unread = [Var(t.aval) for t in more]
            body = body.replace(olympuspr=pr.replace(
                invars=[*pr.invars[:n], *unread, *pr.invars[n:]]))
            args = (*tracers, *more, *args)
        return ctx.trace.process(self, tuple(args), self.pack(rules, body, params))

    def pack(self, rules: Any, body: ClosedOlympuspr, params: dict[str, Any]) -> dict[str, Any]:
        raise NotImplementedError

    def unpack(self, params: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        raise NotImplementedError


def check_consts(what: str, name: str, active: Sequence[bool]) -> None:
    """TypeError if a derivative is wanted in a value that the function closes over."""
    if any(active):
        raise TypeError(f"{what} {name}: differentiated with respect to a value that the function "
                        "closes over; its rule knows nothing of that value; make it an argument "
                        "of the function.")


def leaf_paths(treedef: Any) -> list[str]:
    """The key path of each leaf of a structure; empty for a tree that is one leaf."""
    dummy = treedef.unflatten(range(treedef.num_leaves))
    return [keystr(path) for path, _ in tree_leaves_with_path(dummy)]


def at(path: str) -> str:
    """How messages name the place of a leaf."""
    return f"at {path}, " if path else ""
