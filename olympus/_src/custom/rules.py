"""The core of custom_jvp and custom_vjp: one call of a Python function with derivative rules.

A call goes to `Trace.process_custom`, which runs the function or its rule on the trace's own
values, so Python control flow works in both. Only staging makes a body; values of outer traces that
the function or a rule closes over become operands.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Hashable, Sequence
from itertools import compress
from types import FunctionType, MethodType
from typing import Any, Generic, NoReturn

import numpy as np

from ..base.source import filter_traceback
from ..base.typing import Array, ArrayLike, MappedAxis, P, Params, PyTree, R, Reference, T
from ..base.util import WithAux, has_content, lazy_imports, name_of, wraps
from ..control.bodies import check_aliases, with_leading
from ..control.groups import HasBodies
from ..core.context import ThreadState, ctx
from ..core.evaluate import eval_closed
from ..core.ir import NO_DEBUG_INFO, ClosedOlympuspr, DebugInfo, OlympusprEqn, Var, numbers
from ..core.primitive import Cotangent, Linear, Primitive, Tangent, Transposed, Zero, with_zeros
from ..core.staging import closure_convert, recorder, stage
from ..core.trace import REFERENCES, Trace, Tracer, typeof
from ..devices.array import array_from_numpy
from ..interpreters.batching import BatchTrace, BatchTracer, axis_of_tangents, to_axis
from ..interpreters.checks import Checks
from ..interpreters.dce import dce_closed
from ..interpreters.partial_eval import TapeTrace
from ..interpreters.transpose import transpose_program
from ..lax.families import add
from ..lax.shape import instantiate, zeros_of
from ..runtime.eager import result_array
from ..types.avals import MUTABLE, ShapedArray, is_float0
from ..types.tree import (
    tree_flatten, tree_leaves, tree_leaves_with_path, tree_map, tree_structure, tree_unflatten,
)
from ..types.tree_paths import explain_mismatch, keystr
from ..types.tree_registry import PyTreeDef

with lazy_imports(__name__):
    from ..core import cells as _cells  # where there are references
    from . import apart as _varied, contents as _contents  # where axes have names

WithTangents = tuple[Sequence[Array], Sequence[Tangent]]     # results and their tangents

class SymbolicZero:
    """A tangent or cotangent known to be zero, as rules with `symbolic_zeros=True` see it.

    Args: aval: the shape and dtype of the zero.

    >>> import olympus
    >>> from olympus.custom_derivatives import zero_from_primal
    >>> zero_from_primal(olympus.numpy.ones(3), symbolic_zeros=True)
    SymbolicZero(float32[3])
    """

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray) -> None:
        self.aval = aval

    shape = property(lambda self: self.aval.shape, doc="Tuple of axis sizes.")
    dtype = property(lambda self: self.aval.dtype, doc="Element type.")
    ndim = property(lambda self: self.aval.ndim, doc="Number of axes.")
    size = property(lambda self: self.aval.size, doc="Number of elements.")

    @staticmethod
    def from_primal_value(val: ArrayLike) -> SymbolicZero:
        """The zero tangent of a primal value."""
        return SymbolicZero(typeof(val).to_tangent_aval())

    def __repr__(self) -> str:
        return f"SymbolicZero({self.aval})"


def zero_from_primal(val: PyTree, symbolic_zeros: bool = False) -> PyTree:
    """The zero tangent of a value, or of each in a pytree.

    Args:
      val: pytree of arrays and numbers.
      symbolic_zeros: whether to return `SymbolicZero` objects in place of arrays.
    Returns: For each leaf an array of its shape and of its tangents' dtype (float0 for integers),
      or a `SymbolicZero`.

    >>> from olympus.custom_derivatives import zero_from_primal
    >>> zero_from_primal(olympus.numpy.ones(3)), zero_from_primal(1).dtype
    (Array([0., 0., 0.], dtype=float32), dtype([('float0', 'V')]))
    """
    if symbolic_zeros:
        return tree_map(SymbolicZero.from_primal_value, val)
    return tree_map(lambda leaf: zeros_of(typeof(leaf).to_tangent_aval()), val)


class Named:
    """A callable that prints as the user's function."""

    __slots__ = ("call", "name")

    def __init__(self, call: Rules, name: str) -> None:
        self.call, self.name = call, name

    def __call__(self, *args: Any) -> Any:
        return self.call(*args)

    def __repr__(self) -> str:
        return self.name


def results(outs: Sequence[Array]) -> list[Array]:
    """Results of a program, for users: literals become arrays, under a trace numbers."""
    if ctx.trace is ThreadState.trace:
        return list(map(result_array, outs))
    return numbers(outs)


def check_pair(what: str, out: object, content: str) -> tuple[PyTree, PyTree]:
    """The two results of a rule."""
    if not isinstance(out, (tuple, list)) or len(out) != 2:
        raise TypeError(f"{what} must produce a pair (list or tuple of length two)\n  representing "
                        f"{content}, but got {out!r:.80}.")
    return out[0], out[1]


def check_structure(what: str, required: PyTree, returned: PyTree, meaning: str) -> None:
    """TypeError if two pytree structures differ, with the paths."""
    if tree_structure(required) == tree_structure(returned):
        return
    differences = "; ".join(explain_mismatch(required, returned)[:4])
    raise TypeError(f"{what} {meaning};\n  {differences};\n  return equal structures.")


class CustomFunction(Generic[P, R]):
    """Base of the decorators: a function, and the positions of its arguments."""

    what = ""
    __name__: str

    def __init__(self, fun: Callable[P, R], nondiff_argnums: Sequence[int] = (),
                 nondiff_argnames: Sequence[str] = ()) -> None:
        if not callable(fun):
            raise TypeError(f"{self.what}: fun is {fun!r}; a callable is required; pass the "
                            "function itself.")
        wraps(fun, attributes=True)(self)
        self.fun = fun
        try:
            signature = inspect.signature(fun)
        except (TypeError, ValueError):
            signature = None
        self._signature = signature
        kinds = [p.kind for p in signature.parameters.values()] if signature else []
        plain = all(k in (k.POSITIONAL_ONLY, k.POSITIONAL_OR_KEYWORD) for k in kinds)
        self._num_positional = len(kinds) if signature and plain else -1
        self.nondiff_argnames = (nondiff_argnames,) if isinstance(nondiff_argnames, str) else (
            tuple(nondiff_argnames))
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

    # The function's attributes show through, except for `fun`: before that is set, the look-up
    # would recur without an end.
    def __getattr__(self, name: str) -> Any:
        if name == "fun" or (name.startswith("__") and name.endswith("__")):
            raise AttributeError(name)
        return getattr(self.fun, name)

    def resolve(self, args: tuple, kwargs: dict[str, PyTree]) -> tuple:
        """All arguments by position, defaults filled in."""
        if self._signature is None or (not kwargs and len(args) == self._num_positional):
            if kwargs:
                raise TypeError(f"{self.what} {name_of(self.fun)}: keyword arguments given; its "
                                "signature cannot be read; pass them by position.")
            return args
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise self._unresolved(str(error)) from None
        bound.apply_defaults()      # a skipped parameter may stand before given ones
        # Keyword-only parameters that are not given keep the function's own defaults.
        placeless = [name for name in bound.kwargs if name in kwargs]
        if placeless:
            raise self._unresolved("The following keyword arguments could not be resolved to "
                                   f"positions: {', '.join(placeless)}")
        return bound.args

    def _unresolved(self, why: str) -> TypeError:
        return TypeError(f"{self.what}: The input arguments to the {self.what}-decorated function "
                         f"{name_of(self.fun)} have no positions, by which rules take them:\n{why}")


def closed_over(*values: object, references: bool = False) -> list[Tracer]:
    """The tracers (and references) in values: in pytrees, and in closures of functions."""
    # The search is not complete: it does not find tracers in globals, or in objects that are no
    # pytrees.
    tracers: list[Tracer] = []
    seen: set[int] = set()
    pending: list[Any] = list(values)
    while pending:
        value = pending.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, Tracer) or (references and type(value) in REFERENCES):
            tracers.append(value)
        elif isinstance(value, FunctionType):
            pending += [c.cell_contents for c in value.__closure__ or () if has_content(c)]
            pending += (value.__defaults__ or ()) + tuple((value.__kwdefaults__ or {}).values())
            if references:
                pending += _cells.globals_with_references(value)
        elif isinstance(value, MethodType):
            owner = value.__self__
            pending += [value.__func__, owner, *getattr(owner, "__dict__", {}).values()]
        elif isinstance(value, functools.partial):
            pending += [value.func, *value.args, *value.keywords.values()]
        elif isinstance(value, CustomFunction):
            pending += vars(value).values()
        elif callable(getattr(value, "__wrapped__", None)):
            pending.append(value.__wrapped__)
        elif not isinstance(value, _LEAVES):
            pending += _parts(value)
    return tracers


def _parts(value: PyTree) -> Sequence[object]:
    """The leaves of a pytree; of one with a dict whose keys cannot be sorted, the values in it."""
    try:
        return tree_leaves(value)
    except ValueError:
        return list(value.values() if isinstance(value, dict) else value
                    if isinstance(value, (list, tuple)) else ())


_LEAVES = (str, bytes, int, float, complex, type(None), np.ndarray, np.generic, type,
           inspect.Signature)


def depends_on(x: object, trace: BatchTrace) -> bool:
    """Whether a tracer belongs to a vmap, or to an inner vmap that maps such a tracer."""
    while isinstance(x, BatchTracer):
        if x._trace is trace:
            return True
        x = x._val
    return False


def run_batched(trace: BatchTrace, fun: Callable[..., Sequence[Array]], vals: Sequence[ArrayLike],
                dims: Sequence[int | None]) -> tuple[list[Array], list[int | None]]:
    """Run `fun` under an existing vmap trace, which is put above the current one.

    Function and rules may close over the trace's tracers, so a new trace would not do. Rules run
    later, above another trace, perhaps after vmap has returned.
    """
    #   at the call            when the rule runs (in a backward pass, for example)
    #     vmap's trace           vmap's trace      the same object, alive again, with its axis name
    #     its parent             the current trace
    before = ctx.trace, trace.parent, trace.alive, ctx.axes
    try:
        trace.parent, trace.alive, ctx.trace = ctx.trace, True, trace
        if trace.axis.name is not None:
            ctx.axes = {**ctx.axes, trace.axis.name: trace.axis.size}
        out, out_dims, _ = trace.split(fun(*[trace.wrap(x, d)
                                             for x, d in zip(vals, dims, strict=True)]))
        return out, out_dims
    finally:
        ctx.trace, trace.parent, trace.alive, ctx.axes = before


def mapped_by_rule(trace: BatchTrace, rules: Rules, dims: Sequence[int | None]) -> bool | None:
    """True if all outputs must be mapped; None: the first run of function or rule decides.

    If an operand is mapped, or a value that the rules close over, then every element has
    (co)tangents of its own, also for an output that all elements share.
    """
    if any(d is not None for d in dims) or any(depends_on(t, trace) for t in rules.closed_over()):
        return True
    return None


def alike(a: ShapedArray, b: ShapedArray) -> bool:
    """Whether types have one shape and dtype, or are one user's type."""
    return a == b if a.is_high or b.is_high else (a.shape, a.dtype) == (b.shape, b.dtype)


def unbatched(aval: ShapedArray, dim: MappedAxis, size: int) -> ShapedArray:
    """The aval of one element of a mapped value."""
    if type(dim) is int and not aval.is_high:
        return aval.update(shape=(*aval.shape[:dim], *aval.shape[dim + 1:]))
    return aval if dim is None else aval.without_axis(dim, size)


class Ruled(CustomFunction[P, R]):
    """Base of the decorators that define derivatives: a call hands function and rules to a trace.

    Subclasses give the attributes with the user's rules (`_rules`), the primitive of a call
    (`_prim`), and its class of `UserRules` (`_kind`).
    """

    _rules: tuple[str, ...] = ()
    _setters = ""
    _prim: Any = None
    _kind: Any = None

    def __init__(self, fun: Callable[P, R], nondiff_argnums: Sequence[int] = (),
                 nondiff_argnames: Sequence[str] = ()) -> None:
        super().__init__(fun, nondiff_argnums, nondiff_argnames)
        # On the instance: if `fun` is decorated, too, its rules have been copied here.
        for name in self._rules:
            setattr(self, name, None)
        self.symbolic_zeros = self.optimize_remat = False

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            rules = tuple([getattr(self, name) for name in self._rules])
            if None in rules:
                raise AttributeError(f"{self.what}: No {self.what[-3:].upper()} defined for "
                                     f"{self.what} function {name_of(self.fun)} using "
                                     f"{self._setters}. Define it before the first call.")
            resolved = self.resolve(args, kwargs)
            statics = {i: resolved[i] for i in self.nondiff_argnums if i < len(resolved)}
            leaves, tree = tree_flatten([a for i, a in enumerate(resolved)
                                         if i not in self.nondiff_argnums])
            check_aliases(self.what, self.fun, (), leaves, tree, self.nondiff_argnums)
            own, out = self._kind(self, rules, statics, tree), None
            params = {"name": name_of(self.fun), "symbolic_zeros": self.symbolic_zeros}
            if MUTABLE and any(type(getattr(x, "aval", None)) in MUTABLE for x in leaves):
                out = _contents.of_contents(self._prim, own, leaves, params)
            if out is None:
                out = ctx.trace.process_custom(self._prim, own.run, own, tuple(leaves), params)
            return own.result(out)
        except Exception as error:
            filter_traceback(error)
            raise


# Each transformation wraps the rules once more:
#   UserRules  the user's Python rules
#   Batched    rules under vmap
#   Staged     rules as programs: made by staging if they may close over tracers
#   Shifted    rules behind leading operands: made by staging if the function closes over tracers
class Rules:
    """The rules of one call, on flat lists of values; (co)tangents may be `Zero`."""

    __slots__ = ("names", "num_contents", "optimize_remat")
    code: object = None         # `code` and `identity` compare users' rules
    identity: object = None
    own = (0, 0)    # ends of the leading operands that the function, and the rules, close over
    # Methods of staged rules, for `stage_rules`.
    stage: Any
    place: Any

    def __init__(self, like: Rules) -> None:
        self.names: Sequence[str] = like.names        # of the user's rules
        self.optimize_remat: bool = like.optimize_remat
        self.num_contents = like.num_contents       # number of results after the function's own

    def closed_over(self, references: bool = False) -> list[Tracer]:
        """The tracers that the rules close over, and on demand the references."""
        return []

    def __call__(self, primals: Sequence[Array], others: Sequence[object]) -> Any:
        raise NotImplementedError


class UserRules(Rules):
    """The user's Python rules in one call of a decorated function: `run` is the flat function."""

    __slots__ = ("what", "code", "identity", "fun", "rules", "symbolic_zeros", "statics", "in_tree",
                 "out_tree", "out_avals")

    def __init__(self, owner: Ruled[..., PyTree], rules: tuple[Callable[..., PyTree], ...],
                 statics: dict[int, object], in_tree: PyTreeDef) -> None:
        self.what, self.fun, self.rules = f"{owner.what} {name_of(owner.fun)}", owner.fun, rules
        self.names, self.optimize_remat = tuple(map(name_of, rules)), owner.optimize_remat
        self.num_contents = 0
        self.code = getattr(rules[0], "__code__", rules[0])
        # Static arguments by id: they need not be hashable, and `statics` keeps them alive.
        self.identity = (*rules, owner.fun, *map(id, statics.values()))
        self.symbolic_zeros, self.statics, self.in_tree = owner.symbolic_zeros, statics, in_tree
        self.out_tree: Any = None       # both are set by the first run of function or rule
        self.out_avals: list[Any] | None = None

    def result(self, leaves: Sequence[Array]) -> PyTree:
        """The call's result, once the function or its rule has run."""
        assert self.out_tree is not None, "the trace that processed the call ran one of the two"
        return tree_unflatten(self.out_tree, leaves)

    def closed_over(self, references: bool = False) -> list[Tracer]:
        return closed_over(self.fun, *self.rules, *self.statics.values(), references=references)

    def arguments(self, flat: Sequence[object]) -> list[PyTree]:
        """The function's arguments: differentiable and static ones at their positions."""
        # Positions ascend, since nondiff_argnums is sorted: each insertion is at its final place.
        args = self.in_tree.unflatten(flat)
        for i, value in self.statics.items():
            args.insert(i, value)
        return args

    def run(self, *flat: Array) -> list[Array]:
        start = _varied.Apart(flat) if ctx.axes else None
        leaves, self.out_tree = tree_flatten(self.fun(*self.arguments(flat)))
        if start is not None:
            leaves = start.varying(leaves)
        self.out_avals = list(map(typeof, leaves))
        self.check_returned("primal", name_of(self.fun), leaves)
        return leaves

    def check_returned(self, role: str, name: str, leaves: Sequence[Array]) -> None:
        """ValueError for a reference among the results of the function or a rule."""
        for x in leaves if MUTABLE else ():
            if typeof(x).mutable:
                what = self.what.split()[0]
                raise _cells.returned_reference(what, name, x, role=f"{what} {role} function")

    def zeros(self, tangents: Sequence[Tangent]) -> list[Array | SymbolicZero]:
        """(Co)tangents for the user's rule: arrays, or `SymbolicZero`s where it wants these."""
        if self.symbolic_zeros:
            return [SymbolicZero(t.aval) if type(t) is Zero else t for t in tangents]
        return list(map(instantiate, tangents))

    def output(self, what: str, out: PyTree) -> list[Array]:
        """The leaves of a rule's primal output, which must agree with the function's."""
        # If the function has not run (staging runs it first), the rule's output takes the place of
        # its result.
        leaves, tree = tree_flatten(out)
        self.check_returned("fwd" if len(self.names) > 1 else "jvp", self.names[0], leaves)
        if self.out_avals is not None and self.out_tree != tree:
            check_structure(what, tree_unflatten(self.out_tree, self.out_avals), out,
                            "where the first element represents the primal output, which is not "
                            f"like that of {name_of(self.fun)}")
        pairs = () if self.out_avals is None else zip(self.out_avals, leaves, strict=True)
        for i, (aval, x) in enumerate(pairs):
            returned = typeof(x)
            if not alike(returned, aval):
                raise TypeError(f"{what} where the first element represents the primal output: "
                                f"{at(leaf_paths(tree)[i])}the rule's primal output is {returned}; "
                                f"the function's is {aval}, and they must agree.")
        self.out_tree = tree
        return leaves


class Shifted(Rules):
    """The rules of a function that takes the values it closes over as leading operands."""

    __slots__ = ("rules", "num_leading")

    def __init__(self, rules: Rules, num_leading: int) -> None:
        super().__init__(rules)
        self.rules, self.num_leading = rules, num_leading

    @property
    def own(self) -> tuple[int, int]:   # a property: staging sets the inner rules' later
        lead, own = self.rules.own
        return self.num_leading + lead, self.num_leading + own

    def __call__(self, primals: Sequence[Array], others: Sequence[object]) -> Any:
        return self.rules(primals[self.num_leading:], others[self.num_leading:])


class Wrapping(Rules):
    """Rules that run other rules. They equal rules that wrap equal ones with the same `added`."""

    __slots__ = ("code", "identity", "own", "rules")

    def __init__(self, rules: Rules, *added: object) -> None:
        super().__init__(rules)
        self.rules, self.code, self.own = rules, rules.code, rules.own
        self.identity = (*added, rules.identity)

    def closed_over(self, references: bool = False) -> list[Tracer]:
        return self.rules.closed_over(references)


class Batched(Wrapping):
    """Rules under vmap: they run under the vmap's own trace, above the current one.

    Either all outputs are mapped, along axis 0, or none is: if any is, all (co)tangents belong to
    elements.
    """

    __slots__ = ("trace", "dims", "mapped", "out_dims")

    def __init__(self, trace: BatchTrace, rules: Rules, dims: Sequence[int | None]) -> None:
        self.trace, self.dims = trace, list(dims)
        super().__init__(rules, trace, self.dims)
        self.mapped = mapped_by_rule(trace, rules, dims)
        self.out_dims: list[Any] = []       # the first run fills it

    def axes_of(self, values: Sequence[Array], dims: Sequence[MappedAxis],
                kind: str = "to_tangent_aval") -> list[MappedAxis]:
        """Where the tangents of values that are mapped so are mapped, or what `kind` says."""
        return [axis_of_tangents(typeof(x), d, self.trace.axis.size, kind) if d is not None else d
                for x, d in zip(values, dims, strict=True)]

    def place(self, outs: Sequence[Array], dims: Sequence[int | None],
              others: Sequence[int | None] = ()) -> list[Array]:
        """The outputs, all mapped or none; the first run of function or rule decides.

        `others`: the mapped axes of the rule's other results, which count, too.
        """
        if self.mapped is None:
            self.mapped = any(d is not None for d in (*dims, *others))
        self.check_shared((*dims, *others))
        # A value of a user's type stays mapped as it is, in function and rule alike.
        size, high = self.trace.axis.size, [typeof(x).is_high for x in outs]
        if not self.out_dims:
            self.out_dims = [None if not self.mapped else d if h else 0
                             for d, h in zip(dims, high, strict=True)]
        return [to_axis(x, d, want, size) for x, d, want in zip(
            outs, dims, self.out_dims, strict=True)] if self.mapped else list(outs)

    def check_shared(self, dims: Sequence[int | None]) -> None:
        """ValueError if elements share the outputs, and some results differ between them."""
        if not self.mapped and any(d is not None for d in dims):
            raise ValueError(
                f"vmap: the rules {', '.join(self.names)} return values that differ between the "
                "mapped elements; the function's arguments and outputs do not, so that all "
                "elements share one call and its derivative; pass what differs (a mapped value in "
                "an object, lax.axis_index) to the function as an argument.")


class Chosen(Wrapping):
    """The rules of a call whose outputs that are not `used` were dropped."""

    __slots__ = ("used",)

    def __init__(self, rules: Rules, used: Sequence[bool]) -> None:
        self.used = tuple(used)
        super().__init__(rules, self.used)
        self.num_contents = sum(self.used[len(self.used) - rules.num_contents:])


class WithFailure(Wrapping):
    """The rules of a checked function, which returns code and words before its results."""

    __slots__ = ("program",)

    def __init__(self, rules: Rules, program: ClosedOlympuspr) -> None:
        super().__init__(rules, program)
        self.program = program

    def failure(self, primals: Sequence[Array]) -> list[Array]:
        """Code and words, by running the checked function: the rules have none."""
        return eval_closed(self.program, *primals)[:2]


def packed(fun: Callable[..., WithTangents], num_values: int, zeros: Sequence[Zero | None]
           ) -> WithAux:
    """`fun(values, tangents)` as a function of the values and the nonzero tangents.

    `zeros`: per tangent its `Zero`, or None. The results are outs and nonzero tangents, too, and
    `WithAux.aux` has the `zeros` of the output tangents.
    """
    def run(*args: Array) -> tuple[list[Array], list[Zero | None]]:
        outs, tangents = fun(args[:num_values], merged(zeros, args[num_values:]))
        return ([*outs, *(t for t in tangents if type(t) is not Zero)],
                [t if type(t) is Zero else None for t in tangents])

    return WithAux(run)


def merged(zeros: Sequence[Zero | None], nonzero: Sequence[T]) -> list[T | Zero]:
    """All tangents in order, symbolic zeros among the others."""
    rest = iter(nonzero)
    return [next(rest) if z is None else z for z in zeros]


class _InProgress(threading.local):
    """The rules being staged in this thread, by the code of the user's rule."""

    def __init__(self) -> None:
        self.frames: dict[Any, _Frame] = {}


_in_progress = _InProgress()


class _Frame:
    """A rule that is being staged, which calls of the same function inside of it share.

    Its operands are `consts`, the tracers that the rule closes over, then the arguments.
    """

    __slots__ = ("identity", "avals", "consts", "rules", "used")

    def __init__(self, identity: object, avals: Sequence[ShapedArray], rules: Rules) -> None:
        self.identity, self.avals, self.rules = identity, avals, rules
        self.consts: list[Any] = []
        self.used = False

    def serves(self, rules: Rules, avals: Sequence[ShapedArray]) -> bool:
        # A call with other types (a smaller problem) or static arguments keeps its Python rules.
        return self.identity == rules.identity and self.avals == avals


def stage_rules(kind: type[Rules], rules: Rules, avals: Sequence[ShapedArray]
                ) -> tuple[Rules, list[Tracer]]:
    """The rules as programs, of class `kind`, and the tracers that they take as leading operands.

    Calls of the function in its own rules get the same rules and operands. Only staging finds the
    tracers, so rules with such calls are staged again.
    """
    # The frame has the code of the user's rule as key: a rule that calls its own function, as most
    # custom_jvp rules do, would otherwise be staged within itself without an end.
    staged = kind(rules)
    frame = _Frame(rules.identity, avals, staged)
    outer_frames = _in_progress.frames
    _in_progress.frames = {**outer_frames, rules.code: frame}
    try:
        while True:
            tracers = staged.stage(rules, avals)
            # Inner calls got the consts known at that time. If there was such a call, and there are
            # more consts, the program is wrong: stage it again.
            more = [t for t in tracers if not any(t is c for c in frame.consts)]
            frame.consts = [*frame.consts, *more]
            if not (more and frame.used):
                break
        staged.place(frame.consts)
    finally:
        _in_progress.frames = outer_frames
    return staged, frame.consts


def with_consts(program: ClosedOlympuspr, own: Sequence[Tracer], consts: Sequence[Tracer]
                ) -> ClosedOlympuspr:
    """The program with `consts` as first inputs, in place of the tracers `own`."""
    index_of = {id(t): i for i, t in enumerate(own)}
    return with_leading(program, len(own), [index_of.get(id(c), c.aval) for c in consts])


class ClosedOver(Primitive):
    """The tangents of a call's outputs that come from closed-over values, unknown to its rule.

    params: what (the kind of function), name, out_avals. Operands: tangents of values that the
    function or its rule closes over. Every rule raises, so there is no error if nobody needs the
    outputs' derivatives.
    """

    multiple_results = True

    def infer(self, *avals: ShapedArray, what: str, name: str, out_avals: Sequence[ShapedArray]
              ) -> list[ShapedArray]:
        return list(out_avals)

    def _refuse(self, *args: object, what: str, name: str, **params: Hashable) -> NoReturn:
        raise TypeError(f"{what} {name}: differentiated with respect to a value that the function "
                        "or its rule closes over; the rule knows nothing of that value; make it "
                        "an argument of the function, or close over lax.stop_gradient of it.")

    lower = jvp = transpose = vmap = _refuse


closed_over_p = ClosedOver("closed_over")


def refuse(what: str, name: str, active: Sequence[object], outs: Sequence[ArrayLike],
           tangents: Sequence[Tangent]) -> Sequence[Array | Zero]:
    """The outputs' tangents, which raise when used if closed-over values have `active` tangents."""
    avals = tuple([typeof(x).to_tangent_aval() for x in outs])
    wanted = tuple([a for a in avals if not is_float0(a)])
    # Raising here would refuse derivatives that nobody needs. So the tangents become results of an
    # operation that raises when it is evaluated, transformed or lowered.
    if not active or not wanted:
        return list(tangents)
    refused = iter(closed_over_p.bind(*active, what=what, name=name, out_avals=wanted))
    return [x if type(t) is Zero else add(x, t)
            for x, t in zip(with_zeros(avals, refused), tangents, strict=True)]


# The way of a call. `process_custom(prim, fun, rules, args, params)` of each trace replaces its own
# tracers, and passes the call to its parent:
#   evaluation   fun(*args), without the rules
#   JVPTrace     with a tangent: prim.jvp, which runs the rules; otherwise the parent
#   BatchTrace   prim.vmap: the parent, with function and rules that run under this trace
#   TapeTrace    with an unknown operand: prim.on_tape; otherwise the parent
#   staging      prim.stage: one equation, with `fun` as its body and the rules in its params
#   an equation  bind: the same again from the top, with the body as `fun`
class CustomCall(HasBodies, abstract=True):
    """A call of a function with rules; staged, it has the body `call_olympuspr`.

    Subclasses give the params that contain the rules (`kept`), and the classes of rules that are
    programs (`staged`), under vmap (`batched`), behind leading operands (`shifted`), of some
    outputs (`chosen`), of a checked function (`with_failure`), of references (`with_contents`).
    """

    what = ""
    kept: tuple[str, ...] = ()
    staged: type[Rules]
    batched: Callable[..., Batched]
    shifted: Callable[..., Rules] = Shifted
    chosen: Callable[..., Rules] | None = None
    with_failure: Callable[..., Rules] | None = None
    with_contents: str      # a class of `contents.py`, which is loaded where there are references
    body = "call_olympuspr"
    programs = lowered = (body,)
    partial_eval = None     # see on_tape
    fusion = "called"

    def on_tape(self, tape: TapeTrace, fun: Callable[..., list[Array]], rules: Rules, args: tuple,
                params: Params) -> list[Array]:
        """The results under a tape, where some operands are unknown."""
        return fun(*args)       # linear in the unknowns, so no rule is needed

    def transpose(self, cts: Sequence[Tangent], *args: Transposed, call_olympuspr: ClosedOlympuspr,
                  **params: Hashable) -> Sequence[Cotangent]:
        linear = tuple(type(a) is Linear for a in args)
        nonzero = tuple(type(ct) is not Zero for ct in cts)
        body, _ = transpose_program(call_olympuspr, linear, nonzero)
        out = iter(eval_closed(body, *[a for a in args if type(a) is not Linear],
                               *compress(cts, nonzero)))
        return [next(out) if lin else None for lin in linear]

    def bind(self, *args: Any, **params: Any) -> list[Array]:
        """Apply an equation again. (First calls go to `process_custom` directly.)"""
        if MUTABLE and any(type(getattr(x, "aval", None)) in MUTABLE for x in args):
            results = self.on_references(self, args, params)
            if results is not None:
                return results
        if "subfuns" in params:
            return self.of_functions(args, **params)
        rules, rest = self.unpack(params)
        return ctx.trace.process_custom(self, self.function(params["call_olympuspr"]), rules,
                                        tuple(numbers(args)), rest)

    def in_users_trace(self, trace: Trace, fun: Callable[..., list[Array]], rules: Any, args: tuple,
                       params: Params) -> Sequence[Array]:
        """The results in a trace of a user's class, which is the current one.

        The class may have a method for such functions, which may bind the call again, with
        `subfuns` in place of the rules (`of_functions`).
        """
        return fun(*args)

    def of_functions(self, args: tuple, **params: object) -> list[Array]:
        """The results of `bind` with `subfuns`."""
        raise TypeError(f"{self.name}: bound with functions ('subfuns'); custom_jvp_call and "
                        "custom_vjp_call alone can be; bind it with the params of its equation.")

    #   operands   tracers of the function | consts of the rules | arguments
    # The body does not read the second group; `Shifted` rules do not get the first.
    def stage(self, fun: Callable[..., list[Array]], rules: Rules, args: tuple, params: Params
              ) -> list[Array]:
        """Record the call in the current (staging) trace."""
        avals = [typeof(a) for a in args]
        users = isinstance(rules, UserRules)
        body, tracers = closure_convert(stage(fun, avals, DebugInfo(
            self.what, name_of(rules.fun)) if users else NO_DEBUG_INFO))
        if tracers and users:
            check_aliases(self.what, rules.fun, tracers, args, rules.in_tree, (*rules.statics,))
        more: list[Any] = []
        #   the rule is not being staged      stage it if it may close over tracers
        #   it is, for these types            a call in its own rule: share the program
        #   it is, for others                 keep the Python rule
        frame = _in_progress.frames.get(rules.code)
        if frame is None:
            if tracers or rules.closed_over(bool(REFERENCES)):
                rules, more = self._staged(rules, avals)
        elif frame.serves(rules, avals):
            rules, more, frame.used = frame.rules, frame.consts, True
        if tracers:
            rules = self.shifted(rules, len(tracers))
        if more:
            pr, n = body.olympuspr, len(tracers)
            body = body.replace(olympuspr=pr.replace(
                invars=[*pr.invars[:n], *(Var(t.aval) for t in more), *pr.invars[n:]]))
        operands, params = (*tracers, *more, *args), self.pack(rules, body, params)
        # References whose contents are known now, made in a trace above, must not be recorded.
        if REFERENCES and any(map(_cells.made_above, operands)):
            return self.discharged(list(operands), params)
        return ctx.trace.process(self, operands, params)

    def _staged(self, rules: Rules, avals: Sequence[ShapedArray]) -> tuple[Rules, list[Tracer]]:
        try:
            return stage_rules(self.staged, rules, avals)
        except Exception:
            # The rules raise, or close over values that are being differentiated outside. That is
            # an error only if they are used, and then they raise again.
            return rules, []

    def differentiate(self, fun: Callable[..., list[Array]], rules: Rules,
                      primals: Sequence[Array], tangents: Sequence[Array | Zero], params: Params,
                      apply: Callable[..., WithTangents]
                      ) -> tuple[Sequence[Array], Sequence[Array | Zero]]:
        """Outputs and tangents by `apply(primals, tangents)`, which runs the rules.

        The first tangents may belong to values that function or rules close over.
        """
        #   primals   function's tracers (lead) | rules' tracers (up to own) | arguments
        # If no argument has a tangent, the rule does not run, and the values that it closes over
        # have no influence: only the function's own tracers get no derivative.
        lead, own = rules.own
        if own and all(type(t) is Zero for t in tangents[own:]):
            outs = ctx.trace.process_custom(self, fun, rules, tuple(primals), params)
            out_tangents = [Zero(typeof(x).to_tangent_aval()) for x in outs]
            own = lead
        else:
            zeros = [Zero(typeof(x).to_tangent_aval()) for x in primals[:own]]
            # Rules read their operands' `aval`, which NumPy's arrays lack.
            values = [array_from_numpy(x) if isinstance(x, np.ndarray) else x for x in primals]
            outs, out_tangents = apply(values, [*zeros, *tangents[own:]])
        active = [t for t in tangents[:own] if type(t) is not Zero]
        return outs, refuse(self.what, params["name"], active, outs, out_tangents)

    def vmap(self, trace: BatchTrace, fun: Callable[..., list[Array]], rules: Rules,
             vals: Sequence[Array], dims: Sequence[int | None], **params: Hashable
             ) -> tuple[list[Array], list[int | None]]:
        if REFERENCES and any(map(_cells.made_above, vals)) and recorder(trace) is not None:
            return _contents.vmap_of_contents(self, trace, fun, rules, vals, dims, params)
        # The parent runs the function or the rules. Both pass their outputs through
        # `batched.place`, which decides `out_dims`.
        batched = self.batched(trace, rules, dims)

        def run(*xs: Array) -> list[Array]:
            return batched.place(*run_batched(trace, fun, xs, dims))

        outs = ctx.trace.process_custom(self, run, batched, tuple(vals), params)
        return outs, batched.out_dims

    #: program -> the function to call
    function: Any = staticmethod(lambda closed: lambda *xs: eval_closed(closed, *xs))

    def with_more(self, which: Sequence[int], more: Sequence[T], xs: Sequence[T], params: Params
                  ) -> tuple[Sequence[T], Params]:
        body, (rules, rest) = params["call_olympuspr"], self.unpack(params)
        body = with_leading(body, 0, [body.in_avals[i] for i in which])
        return [*more, *xs], self.pack(self.shifted(rules, len(which)), body, rest)

    def discharged(self, ins: Sequence[Reference], params: Params) -> list[Array]:
        return _contents.discharged(self, ins, params)

    def checked(self, checks: Checks, args: Sequence[Array], params: Params) -> list[Array] | None:
        body = checks.body(params["call_olympuspr"])
        if body is None or self.with_failure is None:
            return None
        rules, rest = self.unpack(params)
        outs = ctx.trace.process_custom(
            self, lambda *xs: eval_closed(body.program, *xs),
            self.with_failure(rules, body.program), tuple(numbers(args)), rest)
        return checks.took(outs, body.sites)

    def dce(self, used: Sequence[bool], eqn: OlympusprEqn) -> OlympusprEqn:
        if self.chosen is None:
            return super().dce(used, eqn)
        rules, rest = self.unpack(eqn.params)
        body, _ = dce_closed(eqn.params["call_olympuspr"], used)
        return eqn.replace(outvars=[*compress(eqn.outvars, used)],
                           params=self.pack(self.chosen(rules, used), body, rest))

    def pack(self, rules: Rules, body: ClosedOlympuspr, params: Params) -> Params:
        """The params of an equation: those in `kept` have the rules, with their user's name."""
        named = {k: Named(rules, name) for k, name in zip(self.kept, rules.names, strict=True)}
        return {**params, "call_olympuspr": body, **named}

    def unpack(self, params: Params) -> tuple[Rules, Params]:
        """The rules, and the other params of the call."""
        rest = {k: x for k, x in params.items() if k != "call_olympuspr" and k not in self.kept}
        return params[self.kept[0]].call, rest


def leaf_paths(treedef: PyTreeDef) -> list[str]:
    """The key path of each leaf of a structure; "" if the tree is one leaf."""
    dummy = treedef.unflatten(range(treedef.num_leaves))
    return [keystr(path) for path, _ in tree_leaves_with_path(dummy)]


def at(path: str) -> str:
    """The place of a leaf, for messages."""
    return f"at {path}, " if path else ""
