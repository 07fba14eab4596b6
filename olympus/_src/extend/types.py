"""Operations on types of users: `HiPrim`, whose rules are methods on pytrees of values.

    HiCall          one primitive for each class of operations, with the operation as its param:
                    evaluated, and lowered, as `expand` says
    HiLinearized    its tangents: residuals and tangents go in; transposed, `vjp_bwd` is called

In reverse mode `vjp_fwd` runs instead of the operation, and in forward mode `jvp`; a rule that a
class does not define is made of those that it does, `vjp_from_jvp` and its like say how.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Sequence
from itertools import compress
from typing import Any, ClassVar

from ..base import spelling
from ..base.source import Source, user_frame
from ..base.typing import Array, MappedAxis, Params, PyTree, Reference, Value
from ..base.util import clipped, lazy_imports
from ..core import tags
from ..core.effects import Effect
from ..core.evaluate import eval_closed
from ..core.ir import NO_EFFECTS, DropVar, OlympusprEqn, numbers
from ..core.primitive import (
    Axis, Cotangent, Higher, Linear, OpenPrimitive, Primitive, Tangent, Transposed, Zero,
)
from ..core.staging import StagingTrace, stage
from ..core.trace import FOREIGN_AVALS, ctx, typeof
from ..interpreters.batching import batch_flat
from ..interpreters.discharge import content, discharge, is_cell, put_back, written
from ..interpreters.jvp import jvp_flat
from ..interpreters.partial_eval import TapeTrace
from ..interpreters.transpose import apply_transpose
from ..lax.convert import convert_element_type_p
from ..lax.families import add
from ..lax.shape import as_array, instantiate, zeros_of
from ..numpy.refs import addupdate, freeze, new_ref
from ..types.avals import AbstractValue, Aval, ShapedArray, is_float0, matches
from ..types.tree import broadcast_prefix, tree_flatten, tree_leaves_with_path, tree_unflatten
from ..types.tree_paths import keystr
from ..types.tree_registry import PyTreeDef, is_tree_node

with lazy_imports(__name__):
    from . import mapped_rules as _mapped


def register_hitype(val_cls: type, typeof_fn: Callable[[Any], AbstractValue]) -> None:
    """Make values of a class values of a user's type: operations and transformations take them.

    Args:
      val_cls: the class, which is not registered as a pytree.
      typeof_fn: gives the type of a value, a `HiType`.

    TypeError for anything but a class, or for a container.

    >>> class Token:
    ...     pass
    >>> class TokenType(hiolympus.HiType):
    ...     def __eq__(self, other):
    ...         return isinstance(other, TokenType)
    ...     def __hash__(self):
    ...         return hash(TokenType)
    ...     def __repr__(self):
    ...         return "Token"
    >>> hiolympus.register_hitype(Token, lambda token: TokenType())
    >>> olympus.typeof(Token())
    Token
    """
    if not isinstance(val_cls, type) or not callable(typeof_fn):
        raise TypeError(f"register_hitype: {clipped(val_cls)} and {clipped(typeof_fn)} given; a "
                        "class is required, and a function of its values.")
    if is_tree_node(val_cls):
        raise TypeError(f"register_hitype: class {val_cls.__name__} given, which is registered as "
                        "a pytree: transformations see the leaves of its values, and not these; "
                        "one of the two is required.")
    FOREIGN_AVALS[val_cls] = typeof_fn
    # Values are asked for their `aval` first: by a class whose __getattr__ answers for every name,
    # its operations would be called to say it.
    if hasattr(val_cls, "__getattr__") and not hasattr(val_cls, "aval"):
        val_cls.aval = property(typeof_fn)


# Where cotangents go ------------------------------------------------------------------------------

class GradAccum:
    """Where a rule of reverse mode puts cotangents of one operand: `accum(x)` adds one.

    >>> from olympus.experimental import hiolympus
    >>> issubclass(hiolympus.ValAccum, hiolympus.GradAccum)
    True
    """

    aval: Any

    def accum(self, x: Array | Zero | None) -> None:
        """Add a cotangent."""
        raise NotImplementedError(type(self).__name__)

    def freeze(self) -> PyTree:
        """The sum, a symbolic `Zero` where nothing was added."""
        raise NotImplementedError(type(self).__name__)


class ValAccum(GradAccum):
    """The sum of the cotangents as a value.

    Args:
      aval: the type of a cotangent.
      val: its first value.

    >>> from olympus.experimental import hiolympus
    >>> total = hiolympus.ValAccum(olympus.typeof(1.0))
    >>> total.accum(2.0); total.accum(3.0)
    >>> print(total.freeze())
    5.0
    """

    def __init__(self, aval: AbstractValue, val: Array | Zero | None = None) -> None:
        self.aval, self.val = aval, val

    def accum(self, x: Array | Zero | None) -> None:
        if x is None or type(x) is Zero:
            return
        if self.val is None or type(self.val) is Zero:
            self.val = x
        else:
            self.val = self.aval.vspace_add(self.val, x) if self.aval.is_high else add(self.val, x)

    def freeze(self) -> PyTree:
        return Zero(self.aval) if self.val is None else self.val


class NullAccum(GradAccum):
    """For an operand whose cotangent nobody wants: additions are dropped.

    >>> from olympus.experimental import hiolympus
    >>> nothing = hiolympus.NullAccum(olympus.typeof(1.0))
    >>> nothing.accum(2.0)
    >>> type(nothing.freeze()).__name__
    'Zero'
    """

    def __init__(self, aval: AbstractValue) -> None:
        self.aval = aval

    def accum(self, x: Array | Zero | None) -> None:
        pass

    def freeze(self) -> PyTree:
        return Zero(self.aval)


class RefAccum(GradAccum):
    """The sum of the cotangents as the content of a reference, which is added to in place.

    Args:
      aval: the type of a cotangent.
      ref: the reference; one is made of zeros where it is left out.

    >>> from olympus.experimental import hiolympus
    >>> total = hiolympus.RefAccum(olympus.typeof(onp.ones(2)), olympus.new_ref(onp.ones(2)))
    >>> total.accum(onp.array([1.0, 2.0]))
    >>> print(total.freeze())
    [2. 3.]
    """

    def __init__(self, aval: Aval, ref: Reference = None) -> None:
        self.aval, self.ref = aval, ref

    def inst(self) -> RefAccum:
        """Itself, with a reference."""
        if self.ref is None:
            self.ref = new_ref(zeros_of(self.aval))
        return self

    def accum(self, x: Array | Zero | None) -> None:
        if x is not None and type(x) is not Zero:
            addupdate(self.inst().ref, None, x)

    def freeze(self) -> Array:
        return freeze(self.inst().ref)


# The operation ------------------------------------------------------------------------------------

class HiPrim:
    """An operation with rules of its own, on pytrees of arrays and values of users' types.

    A subclass sets `in_avals` (a tuple of one pytree of types for each argument), `out_aval` (a
    pytree of types) and `params` (a dict of hashable values) in its `__init__`, then calls this
    one. Params are attributes, too. Calling the object applies the operation. Rules are methods:

        expand(*args)                           the result, by operations that there are
        jvp(primals, tangents)                  results, tangents; tangents may be `Zero`
        vjp_fwd(nzs, *args)                     results, residuals
        vjp_bwd_retval(residuals, ct)           a tuple of cotangents of the arguments
        vjp_bwd(residuals, ct, *accums)         the same, by `accum` of each argument's accumulator
        lin(nzs, *args)                         results, residuals
        linearized(residuals, *tangents)        the tangent of the result
        transpose(ct, *args_or_accums)          of an operation that is linear in some arguments
        batch(axis, args, dims)                 results, their mapped axes
        batch_dim_rule(axis, dims)              the mapped axes alone: the rest is vmap of the rules
        dce(used_outs, live_ins)                used arguments, results that are left, the operation
        staging(trace, source, *args)           what is recorded, if not one equation

    `effects` are those on references among the arguments: `{olympus.extend.state.WriteEffect(0)}`
    for an `expand` that writes the first one. `nzs` says of each array whether it has a tangent.
    Without `vjp_fwd` reverse mode goes by `jvp` or `lin`. NotImplementedError where a rule is
    needed that there is no way to.

    >>> from olympus.experimental import hiolympus
    >>> class Cube(hiolympus.HiPrim):
    ...     def __init__(self, aval):
    ...         self.in_avals, self.out_aval, self.params = (aval,), aval, {}
    ...         super().__init__()
    ...     def expand(self, x):
    ...         return x * x * x
    ...     def jvp(self, primals, tangents):
    ...         return self(*primals), 3 * primals[0] ** 2 * tangents[0]
    >>> def cube(x):
    ...     return Cube(olympus.typeof(x))(x)
    >>> olympus.grad(cube)(2.0), olympus.jit(cube)(2.0)
    (Array(12., dtype=float32, weak_type=True), Array(8., dtype=float32, weak_type=True))
    """

    in_avals: Any
    out_aval: Aval
    params: Params
    effects: frozenset[Effect] = NO_EFFECTS
    skip_linearization_on_zero_tangents = True      # always so here
    _call: ClassVar[HiCall]         # which calls bind
    _recorded: ClassVar[HiCall]     # of equations

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        for name, value in vars(cls).items():
            if isinstance(value, tuple) and value and all(map(callable, value)):
                raise TypeError(f"class {cls.__name__}: `{name}` is a pair of rules, not a single "
                                "rule; unpack it in the class body: `vjp_fwd, vjp_bwd_retval = "
                                "vjp_from_jvp`, or `lin, linearized = linearize_from_jvp`.")
        # A primitive of its own, whose name is in printed programs and messages.
        cls._call = cls._recorded = HiCall(cls.__name__)
        if cls.staging is not HiPrim.staging:
            cls._call = StagedHiCall(cls.__name__)

    def __init__(self) -> None:
        name = type(self).__name__
        for field in ("in_avals", "out_aval", "params"):
            if not hasattr(self, field):
                raise AttributeError(f"{name}: subclass __init__ should set `self.{field}` before "
                                     "it calls super().__init__().")
        self.in_avals_flat, self.in_tree = tree_flatten(self.in_avals)
        self.out_avals_flat, self.out_tree = tree_flatten(self.out_aval)
        for what, avals in (("in_avals", self.in_avals_flat), ("out_aval", self.out_avals_flat)):
            for aval in avals:
                if not isinstance(aval, AbstractValue):
                    raise TypeError(f"{name}: {what} has {clipped(aval)} of type "
                                    f"{type(aval).__name__}; types of values are required: "
                                    "olympus.typeof(x).")
        if any({"vjp_bwd", "vjp_bwd_retval"} <= vars(c).keys()
               for c in type(self).__mro__ if c is not HiPrim):
            raise AttributeError(f"{name}: `vjp_bwd` and `vjp_bwd_retval` given; one of them is "
                                 "required: they are one rule in two forms; remove the other.")
        self.__dict__.update(self.params)
        self.check(*self.in_avals)

    def __call__(self, *args: PyTree) -> PyTree:
        try:
            flat = self.in_tree.flatten_up_to(args)
        except ValueError as error:
            raise TypeError(f"{type(self).__name__}: {len(args)} arguments given of another "
                            f"structure than in_avals {self.in_avals}: {error}.") from None
        return tree_unflatten(self.out_tree, self._call.bind(*flat, _prim=self))

    def check(self, *avals: PyTree) -> None:
        """Raise for types of arguments that the operation does not take."""

    def expand(self, *args: PyTree) -> PyTree:
        raise lacks(self, "every use", "expand")

    def jvp(self, primals: tuple[PyTree, ...], tangents: tuple[PyTree, ...]
            ) -> tuple[PyTree, PyTree]:
        raise lacks(self, "jvp support", "jvp")

    def vjp_fwd(self, nzs_in: PyTree, /, *args: PyTree) -> PyTree:
        raise lacks(self, "grad support", "vjp_fwd", ", or derive its reverse-mode rules from its "
                     "jvp or lin rules by setting `vjp_fwd, vjp_bwd_retval = vjp_from_jvp` (or "
                     "`= vjp_from_lin`)")

    def vjp_bwd(self, res: PyTree, outgrad: PyTree, /, *arg_accums: PyTree) -> None:
        cotangents = self.vjp_bwd_retval(res, outgrad)
        accums, tree = tree_flatten(arg_accums)
        for accum, ct in zip(accums, self._flat(tree, cotangents, "vjp_bwd_retval"), strict=True):
            if isinstance(accum, GradAccum):
                accum.accum(ct)

    def vjp_bwd_retval(self, res: PyTree, outgrad: PyTree, /) -> PyTree:
        raise lacks(self, "grad support", "vjp_bwd` or `vjp_bwd_retval", ", or derive its "
                     "reverse-mode rules by setting `vjp_fwd, vjp_bwd_retval = vjp_from_jvp` (or "
                     "`= vjp_from_lin`)")

    def lin(self, nzs_in: PyTree, *primals: PyTree) -> PyTree:
        raise lacks(self, "linearize support", "lin` and `linearized", ", or derive them from its "
                     "`jvp` rule by setting `lin, linearized = linearize_from_jvp`")

    def linearized(self, residuals: PyTree, *tangents: PyTree) -> PyTree:
        raise lacks(self, "linearize support", "lin` and `linearized", ", or derive them from its "
                     "`jvp` rule by setting `lin, linearized = linearize_from_jvp`")

    def transpose(self, out_ct: PyTree, *maybe_accums: PyTree) -> None:
        raise lacks(self, "transpose support", "transpose")

    def batch(self, axis_data: Axis, args: tuple[PyTree, ...], dims: tuple[PyTree, ...]
              ) -> tuple[PyTree, PyTree]:
        out_dim = self.batch_dim_rule(axis_data, dims)
        return _mapped.VmapOf(self, axis_data, dims, out_dim)(*args), out_dim

    def batch_dim_rule(self, axis_data: Axis, dims: tuple[PyTree, ...], /) -> PyTree:
        raise lacks(self, "vmap support", "batch` or `batch_dim_rule")

    def dce(self, used_outs: PyTree, live_ins: PyTree = None
            ) -> tuple[PyTree, PyTree, HiPrim | None]:
        used = any(tree_flatten(used_outs)[0]) or bool(self.effects)
        return used, used, self if used else None

    def staging(self, trace: StagingTrace, source_info: Source | None, *args: PyTree) -> PyTree:
        """The results where the operation is recorded: by one equation, unless overridden."""
        flat = self._flat(self.in_tree, args, "staging")
        return tree_unflatten(self.out_tree, trace.process(
            self._recorded, tuple(flat), {"_prim": self}, source_info))

    def pp_params(self) -> Params:
        """The params that printed programs show."""
        return {k: v for k, v in self.params.items() if not k.startswith("_")}

    def __repr__(self) -> str:
        return (f"{type(self).__name__}"
                f"[{' '.join(f'{k}={v}' for k, v in self.pp_params().items())}]")

    def __hash__(self) -> int:
        return hash((type(self), tuple(self.params.items()), self.effects))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HiPrim) and type(self) is type(other) and (
            self._key() == other._key())

    def _key(self) -> tuple[object, ...]:
        return self.in_avals_flat, self.in_tree, self.params, self.effects

    def _flat(self, tree: PyTreeDef, value: PyTree, rule: str) -> list[Value]:
        """The leaves of a rule's result."""
        try:
            return tree.flatten_up_to(value)
        except ValueError as error:
            raise TypeError(f"{type(self).__name__}.{rule}: {clipped(value)} returned, of another "
                            f"structure than {tree}: {error}.") from None

    def _defines(self, rule: str) -> bool:
        return getattr(type(self), rule) is not getattr(HiPrim, rule)


def made_of(prim: HiPrim) -> str:
    """The rule that reverse mode's derive from, if one of the library's pairs is set."""
    return getattr(type(prim).vjp_fwd, "made_of", "")


def lacks(prim: HiPrim, use: str, rules: str, otherwise: str = "") -> NotImplementedError:
    return NotImplementedError(f"for {use}, subclass {type(prim)} must implement "
                               f"`{rules}`{otherwise}.")


# Its primitive ------------------------------------------------------------------------------------

class HiCall(Higher):
    """params: _prim, the operation: policies of `checkpoint` have a parameter `prim`. Operands and
    results are the leaves of its arguments.
    """

    programs = ()
    foreign = True
    called = False
    lower = None    # lowered programs work on parts

    def infer(self, *avals: Aval, _prim: HiPrim) -> list[Value]:
        if len(avals) != len(_prim.in_avals_flat) or not all(
                map(matches, avals, _prim.in_avals_flat)):
            raise TypeError(f"{self.name}: input type mismatch: {', '.join(map(str, avals))} given "
                            f"as operands; {', '.join(map(str, _prim.in_avals_flat))} are "
                            "required, which the operation was made for.")
        return _prim.out_avals_flat

    def effects(self, avals: Sequence[Aval], params: Params) -> frozenset[Effect]:
        return params["_prim"].effects

    def shown(self, eqn: OlympusprEqn) -> Params:
        return eqn.params["_prim"].pp_params()

    def impl(self, *args: Value, _prim: HiPrim) -> list[Value]:
        """The results, by `expand`; checked."""
        self.infer(*map(typeof, args), _prim=_prim)
        out = _prim._flat(_prim.out_tree, _prim.expand(*_prim.in_tree.unflatten(args)), "expand")
        return [_checked(_prim, "expand", i, x, aval)
                for i, (x, aval) in enumerate(zip(out, _prim.out_avals_flat, strict=True))]

    def in_parts(self, args: Sequence[Value], params: Params) -> list[Value]:
        return self.impl(*args, **params)

    def discharged(self, ins: Sequence[Reference], params: Params) -> list[Value]:
        """The results, by `expand` on the contents of references."""
        body = stage(lambda *xs: self.impl(*xs, **params), list(map(typeof, ins)))
        which = list(map(is_cell, ins))
        new = list(map(operator.and_, which, written(body)))
        outs = eval_closed(discharge(body, which, new), *map(content, ins))
        return put_back([*compress(ins, new)], outs)

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Tangent], *, _prim: HiPrim
            ) -> tuple[list[Value], list[Tangent]]:
        # What is recorded may be transposed later: rules of reverse mode stay with it.
        if ctx.trace.recorded and _prim._defines("vjp_fwd") and (
                made_of(_prim) != "jvp"):
            return self.with_vjp(primals, tangents, _prim)
        if _prim._defines("jvp"):
            return self.with_jvp(primals, tangents, _prim)
        if _prim._defines("lin"):
            return self.with_lin(primals, tangents, _prim)
        if _prim._defines("vjp_fwd"):
            return self.with_vjp(primals, tangents, _prim)
        raise lacks(_prim, "jvp support", "jvp")

    def linearize(self, tape: TapeTrace, primals: Sequence[Value], tangents: Sequence[Tangent], *,
                  _prim: HiPrim) -> tuple[list[Value], list[Tangent]]:
        ways = {"vjp_fwd": self.with_vjp, "lin": self.with_lin, "jvp": self.with_jvp}
        order = ("vjp_fwd", "jvp", "lin") if tape.reverse else ("lin", "jvp", "vjp_fwd")
        for rule in order:
            if _prim._defines(rule):
                return ways[rule](primals, tangents, _prim)
        raise lacks(_prim, "grad support", "vjp_fwd` and `vjp_bwd_retval", ", or its `jvp`")

    def with_jvp(self, primals: Sequence[Value], tangents: Sequence[Tangent], _prim: HiPrim
                 ) -> tuple[list[Value], list[Tangent]]:
        outs, out_tangents = rule_pair(_prim, "jvp", _prim.jvp(
            tuple(_prim.in_tree.unflatten(primals)), tuple(_prim.in_tree.unflatten(tangents))))
        outs = _prim._flat(_prim.out_tree, outs, "jvp")
        return ([_checked(_prim, "jvp", i, x, a)
                 for i, (x, a) in enumerate(zip(outs, _prim.out_avals_flat, strict=True))],
                tangents_of(_prim, "jvp", out_tangents))

    def with_lin(self, primals: Sequence[Value], tangents: Sequence[Tangent], _prim: HiPrim
                 ) -> tuple[list[Value], list[Tangent]]:
        outs, res, _ = _forward(_prim, "lin", primals, tangents)
        return outs, tangents_of(_prim, "linearized", _prim.linearized(
            res, *_prim.in_tree.unflatten(tangents)))

    def with_vjp(self, primals: Sequence[Value], tangents: Sequence[Tangent], _prim: HiPrim
                 ) -> tuple[list[Value], list[Tangent]]:
        outs, res, nonzero_out = _forward(_prim, "vjp_fwd", primals, tangents)
        res_leaves, res_tree = tree_flatten(res)
        forward = ("lin" if made_of(_prim) == "lin" else
                   "jvp" if _prim._defines("jvp") else "transpose")
        lead = list(primals) if forward == "jvp" else []
        results = hi_linearized_p.bind(
            *lead, *res_leaves, *[t for t in tangents if type(t) is not Zero], _prim=_prim,
            res_tree=res_tree, nonzero=tuple([type(t) is not Zero for t in tangents]),
            nonzero_out=nonzero_out, forward=forward)
        avals = [a.to_tangent_aval() for a in _prim.out_avals_flat]
        rest = iter(results)
        return outs, [next(rest) if on else Zero(a)
                      for a, on in zip(avals, nonzero_out, strict=True)]

    def partial_eval(self, tape: TapeTrace, args: Sequence[Value], unknown: Sequence[bool],
                     **params: Hashable) -> PyTree:
        return tape.record(self, args, params)

    def transpose(self, cts: Sequence[Tangent], *args: Transposed, _prim: HiPrim
                  ) -> list[Cotangent]:
        operands = [ValAccum(a.aval.to_cotangent_aval()) if type(a) is Linear else a for a in args]
        _prim.transpose(_prim.out_tree.unflatten(cts), *_prim.in_tree.unflatten(operands))
        return [a.freeze() if isinstance(a, ValAccum) else None for a in operands]

    def vmap(self, axis: Axis, args: Sequence[Value], dims: Sequence[Value], *, _prim: HiPrim
             ) -> tuple[list[Value], list[Value]]:
        out, out_dims = rule_pair(_prim, "batch", _prim.batch(
            axis, tuple(_prim.in_tree.unflatten(args)), tuple(_prim.in_tree.unflatten(dims))))
        return (list(map(as_array, _prim._flat(_prim.out_tree, out, "batch"))),
                _prim._flat(_prim.out_tree, out_dims, "batch"))

    vmap_named = vmap

    def dce(self, used: Sequence[bool], eqn: OlympusprEqn) -> OlympusprEqn:
        _prim = eqn.params["_prim"]
        live = _prim.in_tree.unflatten([True] * len(eqn.invars))
        used_tree = _prim.out_tree.unflatten(used)
        # The newer form of the rule has the flags of arguments besides.
        two = _prim.dce.__func__.__code__.co_argcount > 2
        used_ins, produced, new = _prim.dce(used_tree, live) if two else _prim.dce(used_tree)
        if new is None or new is _prim:
            return eqn.replace(outvars=[v if u else DropVar(v.aval)
                                        for v, u in zip(eqn.outvars, used, strict=True)])
        ins, outs = (broadcast_prefix(flags, tree.unflatten([0] * tree.num_leaves))
                     for flags, tree in ((used_ins, _prim.in_tree), (produced, _prim.out_tree)))
        return eqn.replace(
            invars=[*compress(eqn.invars, ins)], primitive=new._recorded, params={"_prim": new},
            outvars=[v if u else DropVar(v.aval) for v, u, made in zip(
                eqn.outvars, used, outs, strict=True) if made])


class StagedHiCall(HiCall):
    """An operation whose class has a rule of recording, `staging`."""

    def recorded_as(self, trace: StagingTrace, args: Sequence[Value], params: Params
                    ) -> list[Value]:
        _prim = params["_prim"]
        if isinstance(trace, TapeTrace):    # where it is only noted, to be bound again
            return StagingTrace.process(trace, _prim._recorded, args, params, trace.source)
        outer, ctx.trace = ctx.trace, trace
        try:
            out = _prim.staging(trace, trace.source or user_frame(),
                                *_prim.in_tree.unflatten(numbers(args)))
        finally:
            ctx.trace = outer
        return [_checked(_prim, "staging", i, x, aval) for i, (x, aval) in enumerate(zip(
            _prim._flat(_prim.out_tree, out, "staging"), _prim.out_avals_flat, strict=True))]


HiPrim._call = HiPrim._recorded = HiCall("HiPrim")


def rule_pair(prim: HiPrim, rule: str, returned: MappedAxis) -> tuple[PyTree, PyTree]:
    if not isinstance(returned, (tuple, list)) or len(returned) != 2:
        raise TypeError(f"{type(prim).__name__}.{rule}: {clipped(returned)} returned; a pair is "
                        "required.")
    return returned[0], returned[1]


def _path(tree: PyTreeDef, i: int) -> str:
    return keystr(tree_leaves_with_path(tree.unflatten(range(tree.num_leaves)))[i][0])


def _checked(prim: HiPrim, rule: str, i: int, x: Value, aval: Aval, what: str = "") -> PyTree:
    """A result of a rule, of the type that it must have; weakly typed as that is."""
    try:
        actual = typeof(x)
    except TypeError:
        raise TypeError(f"{type(prim).__name__}.{rule}: {what}result{_path(prim.out_tree, i)} is "
                        f"{clipped(x)} of type {type(x).__name__}; a value of type {aval} is "
                        "required, as out_aval says.") from None
    if not matches(actual, aval):
        raise TypeError(f"{type(prim).__name__}.{rule}: {what}result{_path(prim.out_tree, i)} is "
                        f"{actual}; {aval} is required, as out_aval says.")
    if actual.is_array and actual.weak_type != aval.weak_type and not what:
        return convert_element_type_p.bind(x, new_dtype=aval.dtype, weak_type=aval.weak_type,
                                           sharding=None)
    return as_array(x)


def tangents_of(prim: HiPrim, rule: str, returned: PyTree) -> list[Tangent]:
    """The tangents that a rule returned, one for each result."""
    tangents = []
    for i, (t, aval) in enumerate(zip(
            prim._flat(prim.out_tree, returned, rule), prim.out_avals_flat, strict=True)):
        wanted = aval.to_tangent_aval()
        zero = type(t) is Zero or is_float0(wanted)
        tangents.append(Zero(wanted) if zero else _checked(
            prim, rule, i, t, wanted, "the tangent of "))
    return tangents


def _forward(prim: HiPrim, rule: str, primals: Sequence[Value], tangents: Sequence[Tangent]
             ) -> tuple[list[Value], PyTree, tuple[bool, ...]]:
    """Results, residuals, and which results have a tangent, by `vjp_fwd` or `lin`."""
    nonzero = prim.in_tree.unflatten([type(t) is not Zero for t in tangents])
    returned = getattr(prim, rule)(tuple(nonzero), *prim.in_tree.unflatten(primals))
    if not isinstance(returned, (tuple, list)) or not 2 <= len(returned) <= 3:
        raise TypeError(f"{type(prim).__name__}.{rule}: {clipped(returned)} returned; (results, "
                        "residuals) is required, or these and which results have a tangent.")
    out, res, *flags = returned
    outs = prim._flat(prim.out_tree, out, rule)
    on = broadcast_prefix(flags[0], prim.out_aval) if flags else [True] * len(outs)
    return ([_checked(prim, rule, i, x, a)
             for i, (x, a) in enumerate(zip(outs, prim.out_avals_flat, strict=True))], res,
            tuple([bool(f) and not is_float0(a.to_tangent_aval())
                   for f, a in zip(on, prim.out_avals_flat, strict=True)]))


class HiLinearized(Primitive):
    """The tangents of an operation, of residuals of `vjp_fwd`.

    params: _prim, res_tree, nonzero and nonzero_out (which arguments and results have a tangent),
    forward: how tangents are computed, should anybody want them. Operands: the arguments if it is
    by `jvp`, residuals, then the tangents that are not zero.
    """

    multiple_results = foreign = True

    def _parted(self, args: Sequence[Value], params: Params) -> tuple[PyTree, PyTree, PyTree]:
        """Arguments, residuals, tangents."""
        n = len(params["nonzero"]) if params["forward"] == "jvp" else 0
        m = n + params["res_tree"].num_leaves
        return args[:n], args[n:m], args[m:]

    def infer(self, *avals: Aval, _prim: HiPrim, nonzero_out: Sequence[bool], **params: Hashable
              ) -> list[Value]:
        return [a.to_tangent_aval() for a in compress(_prim.out_avals_flat, nonzero_out)]

    result_avals = Primitive.inferred
    spread = staticmethod(tags.by_body)     # operands are not cast to vary alike
    lower = None

    def in_parts(self, args: Sequence[Value], params: Params) -> list[Value]:
        _prim, nonzero, on = params["_prim"], params["nonzero"], params["nonzero_out"]
        primals, leaves, ts = self._parted(args, params)
        res = tree_unflatten(params["res_tree"], leaves)
        forward, rest = params["forward"], iter(ts)
        if forward == "transpose":
            return transposed(
                lambda *cts: self.backward(cts, res, params), [
                    a.to_cotangent_aval() for a in compress(_prim.out_avals_flat, on)], ts)
        tangents = [next(rest) if nz else Zero(a.to_tangent_aval())
                    for a, nz in zip(_prim.in_avals_flat, nonzero, strict=True)]
        tree = _prim.in_tree.unflatten
        # The rule of `vjp_from_lin`, whose residuals are a pair.
        returned = _prim.linearized(res[0], *tree(tangents)) if forward == "lin" else rule_pair(
            _prim, "jvp", _prim.jvp(tuple(tree(primals)), tuple(tree(tangents))))[1]
        return list(map(instantiate, compress(tangents_of(_prim, forward, returned), on)))

    def impl(self, *args: Value, **params: Hashable) -> list[Value]:
        return self.in_parts(args, params)

    def backward(self, cts: Sequence[Value], res: PyTree, params: Params) -> list[Value]:
        """The cotangents of the arguments that have a tangent."""
        _prim = params["_prim"]
        rest = iter(cts)
        all_cts = _prim.out_tree.unflatten([
            next(rest) if on else Zero(a.to_cotangent_aval())
            for a, on in zip(_prim.out_avals_flat, params["nonzero_out"], strict=True)])
        avals = [a.to_cotangent_aval() for a in _prim.in_avals_flat]
        if type(_prim).vjp_bwd is HiPrim.vjp_bwd:
            pulled = _prim._flat(_prim.in_tree, tuple(_prim.vjp_bwd_retval(res, all_cts)),
                                "vjp_bwd_retval")
        else:
            accums = [ValAccum(a) if nz else NullAccum(a)
                      for a, nz in zip(avals, params["nonzero"], strict=True)]
            _prim.vjp_bwd(res, all_cts, *_prim.in_tree.unflatten(accums))
            pulled = [a.freeze() for a in accums]
        return [self._cotangent(_prim, i, ct, a) for i, (ct, a, nz) in enumerate(
            zip(pulled, avals, params["nonzero"], strict=True)) if nz]

    def _cotangent(self, prim: HiPrim, i: int, ct: Value, aval: ShapedArray) -> PyTree:
        if ct is None or type(ct) is Zero:
            return Zero(aval)
        if not matches(typeof(ct), aval):
            raise TypeError(f"{type(prim).__name__}.vjp_bwd: the cotangent of argument"
                            f"{_path(prim.in_tree, i)} is {typeof(ct)}; {aval} is required.")
        return as_array(ct)

    def transpose(self, cts: Sequence[Tangent], *args: Transposed, **params: Any
                  ) -> list[Cotangent]:
        primals, leaves, ts = self._parted(args, params)
        pulled = self.backward(cts, tree_unflatten(params["res_tree"], leaves), params)
        return [*[None] * (len(primals) + len(leaves)),
                *[ct if type(a) is Linear else None for a, ct in zip(ts, pulled, strict=True)]]

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Tangent], **params: Hashable
            ) -> tuple[list[Value], list[Tangent]]:
        return jvp_flat(lambda *xs: self.in_parts(xs, params), primals, tangents)

    def vmap(self, axis: Axis, args: Sequence[Value], dims: Sequence[Value], **params: Hashable
             ) -> tuple[list[Value], list[Value]]:
        return batch_flat(lambda *xs: self.in_parts(xs, params), axis, args, dims)


hi_linearized_p = HiLinearized("hi_linearized")


def transposed(fun: Callable[..., Sequence[Value]], avals: Sequence[Value], cts: Sequence[Value]
                ) -> list[Value]:
    """Cotangents of the arguments, of these types, of a linear flat function."""
    closed = stage(lambda *xs: list(map(instantiate, fun(*xs))), avals)
    cotangents: Sequence[Any] = apply_transpose(
        closed.olympuspr, closed.consts, [Linear(a) for a in avals], cts)
    return list(map(instantiate, cotangents))


class HiPrimitive(OpenPrimitive):
    """An operation whose rules take values of users' types, written as a primitive's.

    Subclass it with `abstract_eval(*avals, **params)` (types of results, and effects),
    `to_loolympus(*values, **params)` (the results), `jvp` and `transpose`.

    Args: name: what programs call it.

    >>> from olympus.experimental import hiolympus
    >>> class Square(hiolympus.HiPrimitive):
    ...     def abstract_eval(self, x):
    ...         return x, set()
    ...     def to_loolympus(self, x):
    ...         return x * x
    >>> olympus.jit(Square("square").bind)(3.0)
    Array(9., dtype=float32, weak_type=True)
    """

    programs = ()
    is_high = takes_refs = True

    def is_effectful(self, params: Params) -> bool:
        """Whether the operation has effects."""
        return False

    def to_loolympus(self, *values: Value, **params: Hashable) -> PyTree:
        raise NotImplementedError(f"{self.name}: {spelling.shown('to_loolympus')} must be defined "
                                  f"in class {type(self).__name__}, which says what it computes.")

    def impl(self, *values: Value, **params: Hashable) -> PyTree:
        """The results, of objects and arrays."""
        return getattr(self, spelling.shown("to_loolympus"), self.to_loolympus)(*values, **params)

    def in_parts(self, args: Sequence[Value], params: Params) -> PyTree:
        return self.impl(*args, **params)
