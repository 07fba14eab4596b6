"""Calls of functions with derivative rules in a trace of a user's class.

Its methods get function and rules as `WrappedFun`s of flat values, transform them, and bind the
call again in another trace:

    trace.process_custom_jvp_call(prim, fun, jvp, args, ...)
        prim.bind_with_trace(parent, args, avals, {"subfuns": (fun, jvp), ...})
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from ..base.typing import Array, Params
from ..base.util import cut
from ..core.linear_util import WrappedFun, wrap_init
from ..core.primitive import Primitive, Tangent, Zero
from ..core.trace import ThreadState, Trace, enter, leave
from ..lax.shape import instantiate
from ..types.tree import tree_structure
from .jvp import custom_jvp
from .rules import Rules, SymbolicZero, results
from .vjp import Backward, CustomVJPPrimal, custom_vjp

Tangents: TypeAlias = Sequence[Any]     # arrays, `Zero`s and `SymbolicZero`s


def ours(tangents: Tangents) -> list[Tangent]:
    """(Co)tangents for rules of ours."""
    return [Zero(t.aval) if type(t) is SymbolicZero else t for t in tangents]


def theirs(tangents: Tangents, symbolic_zeros: bool) -> Tangents:
    """(Co)tangents for functions of the user's: arrays, or `SymbolicZero`s where it wants these."""
    return [SymbolicZero(t.aval) if symbolic_zeros and type(t) is Zero else instantiate(t)
            for t in tangents]


def call_anew(fun: WrappedFun, *args: object) -> Tangents:
    """The results of a wrapped function, which may have been called before: its stores are new."""
    for store in fun.stores:
        if store is not None:
            store.reset()
    return list(fun.call_wrapped(*args))


def by_method(trace: Trace, method: str, prim: Primitive,
              functions: Sequence[Callable[..., object]], args: tuple, **params: object
              ) -> list[Array]:
    """The results by a method of the trace, which runs while operations are evaluated."""
    outer = enter(ThreadState.trace)
    try:
        return list(getattr(trace, method)(prim, *map(wrap_init, functions), results(args),
                                           **params))
    finally:
        leave(outer)


def jvp_by_method(prim: Primitive, trace: Trace, fun: Callable[..., list[Array]], rules: Rules,
                  args: tuple, params: Params) -> list[Array]:
    """The results of a call of a `custom_jvp` function."""
    symbolic_zeros = params["symbolic_zeros"]

    def jvp(*flat: Array) -> Tangents:
        primals, tangents = cut(flat, len(args))
        outs, out_tangents = rules(primals, ours(tangents))
        return [*outs, *theirs(out_tangents, symbolic_zeros)]

    return by_method(trace, "process_custom_jvp_call", prim, (fun, jvp), args,
                     symbolic_zeros=symbolic_zeros)


def jvp_of_functions(args: tuple, subfuns: tuple[WrappedFun, WrappedFun],
                     symbolic_zeros: bool = False) -> list[Array]:
    """The call of a function with a rule, by wrapped functions."""
    fun, jvp = subfuns
    made = custom_jvp(lambda *xs: call_anew(fun, *xs))

    def rule(primals: tuple, tangents: tuple) -> Sequence[Tangents]:
        flat = call_anew(jvp, *primals, *tangents)
        return cut(flat, len(flat) // 2)

    made.defjvp(rule, symbolic_zeros)
    return list(made(*args))


def vjp_by_method(prim: Primitive, trace: Trace, fun: Callable[..., list[Array]], rules: Rules,
                  args: tuple, params: Params) -> list[Array]:
    """The results of a call of a `custom_vjp` function."""
    forward: list[tuple[int, int, Backward]] = []     # of the last run: numbers of results

    def fwd(*flat: Array) -> list[Array]:
        outs, res, back = rules(flat[::2], flat[1::2])
        forward[:] = (len(res), len(outs), back),
        return [*res, *outs]

    def bwd(*flat: Array) -> Tangents:
        num_res, _, back = forward[0]
        res, cts = cut(flat, num_res)
        return list(back(res, ours(cts)))

    def out_trees() -> tuple[object, object, list[None]]:
        num_res, num_outs, _ = forward[0]
        return tree_structure([0] * num_outs), tree_structure([0] * num_res), [None] * num_res

    return by_method(trace, "process_custom_vjp_call", prim, (fun, fwd, bwd), args,
                     out_trees=out_trees, symbolic_zeros=params["symbolic_zeros"])


def vjp_of_functions(args: tuple, subfuns: tuple[WrappedFun, WrappedFun, WrappedFun],
                     out_trees: Callable[[], tuple[Any, ...]], symbolic_zeros: bool = False
                     ) -> list[Array]:
    """The call of a function with a pair of rules, by wrapped functions."""
    fun, fwd, bwd = subfuns
    made = custom_vjp(lambda *xs: call_anew(fun, *xs))

    def forward(*xs: CustomVJPPrimal) -> tuple[list[Array], list[Array]]:
        flat = call_anew(fwd, *[part for x in xs for part in (x.value, x.perturbed)])
        res, outs = cut(flat, out_trees()[1].num_leaves)
        return outs, res

    def backward(res: list[Array], cts: Tangents) -> tuple[object, ...]:
        flat = call_anew(bwd, *res, *theirs(ours(cts), symbolic_zeros))
        return tuple([SymbolicZero(ct.aval) if type(ct) is Zero else ct for ct in flat])

    made.defvjp(forward, backward, symbolic_zeros=True)
    return list(made(*args))
