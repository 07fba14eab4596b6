"""Programs recorded, cut and differentiated as interpreters of others call it: by flags."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import compress
from typing import Any, NoReturn, TypeAlias

from ..base.typing import Array, ArrayLike, Params, PyTree
from ..base.util import WithAux
from ..core.ir import ClosedOlympuspr, DebugInfo, Olympuspr
from ..core.linear_util import WrappedFun
from ..core.primitive import Cotangent, Primitive, Tangent, Transposed, Zero
from ..core.staging import stage
from ..core.trace import typeof
from ..interpreters import transpose
from ..interpreters.dce import dce_closed
from ..interpreters.jvp import jvp_flat, jvp_program
from ..interpreters.partial_eval import partial_eval_program, record_unknown
from ..interpreters.parts import in_parts
from ..lax.shape import instantiate as as_array
from ..types.avals import Aval, ShapedArray, is_float0
from ..types.tree import tree_flatten, tree_unflatten
from ..types.tree_registry import PyTreeDef

Val: TypeAlias = Any    # what operations take: arrays, numbers, tracers, values of users' types


class PartialVal(tuple[Any, Any]):
    """(None, value) for a known value, or (aval, None).

    Args: xs: the pair.

    >>> import olympus
    >>> PartialVal.unknown(olympus.typeof(1.0)).is_known(), PartialVal.known(2).get_known()
    (False, 2)
    """

    __slots__ = ()

    def __new__(cls, xs: tuple[Aval | None, ArrayLike | None]) -> PartialVal:
        return super().__new__(cls, xs)

    @classmethod
    def known(cls, const: ArrayLike) -> PartialVal:
        return cls((None, const))

    @classmethod
    def unknown(cls, aval: Aval) -> PartialVal:
        return cls((aval, None))

    def is_known(self) -> bool:
        return self[0] is None

    def get_known(self) -> ArrayLike | None:
        """The value; None if it is not known."""
        return self[1]

    def get_aval(self) -> Aval:
        return typeof(self[1]) if self.is_known() else self[0]


def trace_to_olympuspr_nounits(fun: WrappedFun, pvals: Sequence[PartialVal],
                               instantiate: bool | Sequence[bool] = False
                               ) -> tuple[Olympuspr, list[PartialVal], list[ArrayLike]]:
    """Run a function's operations on known values, and record the rest.

    Args:
      fun: a wrapped function of flat values that returns a flat list.
      pvals: its arguments, known or not.
      instantiate: per result, whether the program gives it even if it is known.
    Returns: The program of the unknown arguments, which gives the unknown results; all results,
      with the values of those that are known; the values of the program's constvars.

    >>> from olympus.extend.linear_util import wrap_init
    >>> args = PartialVal.known(2.0), PartialVal.unknown(olympus.typeof(1.0))
    >>> pr, outs, _ = trace_to_olympuspr_nounits(wrap_init(lambda x, y: [x * x, x * y]), args)
    >>> print(pr, [out.get_known() for out in outs])
    { lambda ; a:f32[]. let b:f32[] = mul 2.0:f32[] a in (b,) } [4.0, None]
    """
    unknown = [not p.is_known() for p in pvals]
    closed, outs, out_unknown = record_unknown(fun.call_wrapped, [
        p[0] if u else p[1] for p, u in zip(pvals, unknown, strict=True)], unknown, instantiate)
    return closed.olympuspr, [PartialVal.unknown(typeof(x)) if u else PartialVal.known(x)
                              for x, u in zip(outs, out_unknown, strict=True)], closed.consts


def trace_to_olympuspr_dynamic(fun: WrappedFun, in_avals: Sequence[Aval], *,
                               keep_inputs: Sequence[bool] | None = None, lower: bool = False,
                               auto_dce: bool = False
                               ) -> tuple[Olympuspr, list[ShapedArray], list[ArrayLike]]:
    """Record all that a function does.

    Args:
      fun: a wrapped function of flat values that returns a flat list.
      in_avals: the avals of the program's inputs.
      keep_inputs: per input, whether it is an argument; all are by default.
      lower: nothing: programs have one level only.
      auto_dce: whether equations that nothing reads are left out.
    Returns: The program; the avals of its results; the values of its constvars.

    >>> from olympus.extend.linear_util import wrap_init
    >>> print(trace_to_olympuspr_dynamic(wrap_init(lambda x: [x * x]), [olympus.typeof(1.0)])[0])
    { lambda ; a:f32[]. let b:f32[] = mul a a in (b,) }
    """
    keep = [True] * len(in_avals) if keep_inputs is None else keep_inputs
    closed = stage(lambda *xs: fun.call_wrapped(*compress(xs, keep)), in_avals)
    if auto_dce:
        closed = dce_closed(closed, [True] * len(closed.outvars))[0]
    return closed.olympuspr, closed.out_avals, closed.consts


def abstract_eval_fun(fun: Callable[..., Sequence[ArrayLike]], *avals: Aval,
                      debug_info: DebugInfo, **params: Any) -> list[ShapedArray]:
    """The types of a function's results.

    Args:
      fun: a function of flat values that returns a flat list.
      avals: the types of its arguments.
      debug_info: its name and its arguments', for messages.
      params: passed to it by keyword.

    >>> names = olympus.extend.core.DebugInfo("tiled", "tiled")
    >>> aval = olympus.typeof(onp.ones(2))
    >>> abstract_eval_fun(lambda x, n: [onp.tile(x, n)], aval, n=3, debug_info=names)
    [ShapedArray(float32[6])]
    """
    return stage(lambda *xs: fun(*xs, **params), avals, debug_info).out_avals


# Programs

def partial_eval_olympuspr_nounits(
        olympuspr: ClosedOlympuspr, unknowns: Sequence[bool],
        instantiate: bool | Sequence[bool]
) -> tuple[ClosedOlympuspr, ClosedOlympuspr, list[bool], list[Aval]]:
    """A program cut in two by which of its inputs are known.

    Args:
      olympuspr: a closed program.
      unknowns: per input, whether it is unknown.
      instantiate: per output, whether it counts as unknown even if it is known.
    Returns: The known half, from known inputs to known outputs and then residuals; the unknown
      half, from residuals and then unknown inputs to unknown outputs; which outputs are unknown;
      the types of the residuals.

    >>> program = olympus.make_olympuspr(lambda x, y: (onp.cos(x), -onp.sin(x) * y))(1.0, 2.0)
    >>> known, later, unknown_out, _ = partial_eval_olympuspr_nounits(program, [False, True], False)
    >>> print(known)
    { lambda ; a:f32[]. let
        b:f32[] = cos a
        c:f32[] = sin a
        d:f32[] = neg c
      in (b, d) }
    >>> print(later, unknown_out)
    { lambda ; a:f32[] b:f32[]. let c:f32[] = mul a b in (c,) } [False, True]
    """
    split = partial_eval_program(olympuspr, unknowns, instantiate)
    known = split.known.olympuspr
    # A residual that is a known input is one more output here: the halves are met by place alone.
    first = len(known.outvars) - split.num_computed
    residuals = split.residual_values(known.invars, known.outvars[first:])
    known = known.replace(outvars=[*known.outvars[:first], *residuals])
    return (split.known.replace(olympuspr=known), split.unknown, list(split.unknown_out),
            [v.aval for v in residuals])


def jvp_olympuspr(olympuspr: ClosedOlympuspr, nonzeros: Sequence[bool],
                  instantiate: bool | Sequence[bool]) -> tuple[ClosedOlympuspr, list[bool]]:
    """The program of values with tangents.

    Args:
      olympuspr: a closed program.
      nonzeros: per input, whether it has a tangent.
      instantiate: per output, whether its tangent is made even if it is zero.
    Returns: A program from inputs and then tangents to outputs and then tangents; per output,
      whether it has a tangent.

    >>> program = olympus.make_olympuspr(lambda x, y: x * y)(1.0, 2.0)
    >>> print(*jvp_olympuspr(program, [True, False], False))
    { lambda ; a:f32[] b:f32[] c:f32[]. let
        d:f32[] = mul a b
        e:f32[] = mul c b
      in (d, e) } [True]
    """
    closed, nonzero_out = jvp_program(olympuspr, nonzeros, instantiate)
    return closed, list(nonzero_out)


def prune_closed_olympuspr_outputs(olympuspr: ClosedOlympuspr, used_outputs: Sequence[bool]
                                   ) -> ClosedOlympuspr:
    """The program with some of its outputs only, and with all of its equations.

    Args:
      olympuspr: a closed program.
      used_outputs: per output, whether it stays.
    Returns: A program of the same inputs.

    >>> program = olympus.make_olympuspr(lambda x: (x, x + 1))(1)
    >>> print(prune_closed_olympuspr_outputs(program, [True, False]))
    { lambda ; a:i32[]. let _:i32[] = add a 1:i32[] in (a,) }
    """
    return olympuspr.rearranged(outputs=[i for i, used in enumerate(used_outputs) if used])


def move_binders_to_back(closed_olympuspr: ClosedOlympuspr, to_move: Sequence[bool]
                         ) -> ClosedOlympuspr:
    """The program with some of its inputs last.

    Args:
      closed_olympuspr: a closed program.
      to_move: per input, whether it goes to the back; those that it says nothing of stay in front.
    Returns: A program of the same outputs.

    >>> program = olympus.make_olympuspr(lambda x, y: x - y)(1, 2)
    >>> print(move_binders_to_back(program, [True, False]))
    { lambda ; a:i32[] b:i32[]. let c:i32[] = sub b a in (c,) }
    """
    moved = [i for i, move in enumerate(to_move) if move]
    rest = [i for i in range(len(closed_olympuspr.invars)) if i not in moved]
    return closed_olympuspr.rearranged(inputs=[*rest, *moved])


def lower_olympuspr(olympuspr: ClosedOlympuspr) -> ClosedOlympuspr:
    """The program in which each value of a user's type is its parts: a program of arrays.

    Args: olympuspr: a closed program.
    Returns: A closed program, the same one if it has no values of users' types.

    >>> program = olympus.make_olympuspr(lambda x: x + 1)(1)
    >>> lower_olympuspr(program) is program
    True
    """
    return in_parts(olympuspr)


def new_eqn_recipe(trace: object, in_tracers: Sequence[Array], out_tracers: Sequence[Array],
                   primitive: Primitive, params: Params, effects: object, source_info: object,
                   ctx: object = None) -> NoReturn:
    """Refused: an unknown value is recorded by its trace, `trace.record(primitive, args, params)`.

    Args:
      trace: a trace of partial evaluation.
      in_tracers, out_tracers: the operands and results of an equation.
      primitive, params, effects, source_info, ctx: the equation.

    >>> new_eqn_recipe(None, [], [], olympus.lax.sin_p, {}, None, None)
    Traceback (most recent call last):
        ...
    NotImplementedError: new_eqn_recipe: an equation of sin given; ...
    """
    raise NotImplementedError(
        f"new_eqn_recipe: an equation of {primitive} given; a trace records equations when they "
        "are bound, so that tracers have no recipes; call trace.record(primitive, args, params), "
        "which returns the tracers of the results.")


# Derivatives of functions

def _tangent(x: ArrayLike, t: Tangent) -> Tangent:
    """A tangent, a symbolic `Zero` for one of float0."""
    return Zero(typeof(x).to_tangent_aval()) if type(t) is Zero or is_float0(typeof(t)) else t


def _with_aux(fun: Callable[..., PyTree], has_aux: bool, xs: PyTree) -> tuple[PyTree, PyTree]:
    out = fun(*xs)
    if not has_aux:
        return out, None
    if not isinstance(out, (tuple, list)) or len(out) != 2:
        raise TypeError(f"has_aux=True given, and the function returned a {type(out).__name__}; a "
                        "pair (result, aux) is required.")
    return out[0], out[1]


def jvp(fun: Callable[..., PyTree], primals: PyTree, tangents: PyTree, has_aux: bool = False,
        instantiate: bool = True, transform_stack: bool = True) -> tuple[PyTree, ...]:
    """`olympus.jvp` for interpreters: tangents may be symbolic zeros, and results' may stay so.

    Args:
      fun: a function of pytrees of values.
      primals: its arguments, a tuple or list.
      tangents: theirs, of the same structure; a leaf may be a `Zero`.
      has_aux: whether it returns a pair (result, aux).
      instantiate: whether zero tangents of results are made.
      transform_stack: accepted.
    Returns: Results, their tangents, and aux if there is any.

    >>> zero = ad.Zero(olympus.typeof(1.0))
    >>> out, tangent = ad.jvp(lambda x, y: x * y, (2.0, 3.0), (1.0, zero))
    >>> print(out, tangent)
    6.0 3.0
    """
    leaves, tree = tree_flatten(tuple(primals))
    tangent_leaves = tree.flatten_up_to(tuple(tangents))

    def flat(*xs: Array) -> tuple[list[Array], tuple[PyTreeDef, PyTreeDef, int]]:
        out, aux = _with_aux(fun, has_aux, tree_unflatten(tree, xs))
        outs, out_tree = tree_flatten(out)
        rest, aux_tree = tree_flatten(aux)
        return [*outs, *rest], (out_tree, aux_tree, len(outs))

    with_aux = WithAux(flat)
    outs, out_tangents = jvp_flat(with_aux, leaves, list(map(_tangent, leaves, tangent_leaves)))
    out_tree, aux_tree, n = with_aux.aux
    tangents_out = [as_array(t) if instantiate else t for t in out_tangents[:n]]
    pair = out_tree.unflatten(outs[:n]), out_tree.unflatten(tangents_out)
    return (*pair, aux_tree.unflatten(outs[n:])) if has_aux else pair


def linearize(traceable: Callable[..., PyTree], primals_ft: PyTree, has_aux: bool = False,
              is_vjp: bool = False, in_nzs: Sequence[bool] | None = None) -> tuple[PyTree, ...]:
    """A function's results, and the program of its tangents.

    Args:
      traceable: a function of pytrees of values.
      primals_ft: its arguments, a tuple or list.
      has_aux: whether it returns a pair (result, aux).
      is_vjp: accepted.
      in_nzs: per leaf of the arguments, whether it has a tangent; all have by default.
    Returns: Results; which of their leaves have a tangent; the program, from the tangents of
      arguments to these; the values of its constvars; aux if there is any.

    >>> out, nonzero, program, consts = ad.linearize(lambda x: (onp.sin(x), 1.0), (0.0,))
    >>> print(out[0], nonzero, olympus.core.eval_olympuspr(program, consts, 2.0)[0])
    0.0 [True, False] 2.0
    """
    leaves, tree = tree_flatten(tuple(primals_ft))
    avals = [typeof(x).to_tangent_aval() for x in leaves]
    on = [not is_float0(a) and (in_nzs is None or in_nzs[i]) for i, a in enumerate(avals)]

    def tangents(*tangents_in: Array) -> tuple[list[Array], tuple[PyTree, ...]]:
        rest = iter(tangents_in)
        outs, out_tangents, *aux = jvp(traceable, tree_unflatten(tree, leaves), tree_unflatten(
            tree, [next(rest) if nz else Zero(a) for a, nz in zip(avals, on, strict=True)]),
            has_aux, False)
        flat, out_tree = tree_flatten(outs)
        nonzero = [type(t) is not Zero for t in out_tree.flatten_up_to(out_tangents)]
        return ([t for t in out_tree.flatten_up_to(out_tangents) if type(t) is not Zero],
                (flat, out_tree, nonzero, aux))

    with_aux, unknown = WithAux(tangents), list(compress(avals, on))
    closed, _, _ = record_unknown(with_aux, unknown, [True] * len(unknown), True)
    flat, out_tree, nonzero, aux = with_aux.aux
    closed = dce_closed(closed, [True] * len(closed.outvars))[0]
    return out_tree.unflatten(flat), nonzero, closed.olympuspr, closed.consts, *aux


def backward_pass(olympuspr: Olympuspr, transform_stack: bool, consts: Sequence[ArrayLike],
                  primals_in: Sequence[Transposed], cts_in: Sequence[Tangent],
                  return_logs: bool = False) -> list[Cotangent]:
    """The cotangents of a linear program's inputs.

    Args:
      olympuspr: a program, linear in the inputs that a `UndefinedPrimal` stands for.
      transform_stack: whether operations are named for the transposition.
      consts: the values of its constvars.
      primals_in: per input, its value or a `UndefinedPrimal`.
      cts_in: per output, its cotangent, or a symbolic `Zero`.
      return_logs: False; nothing is logged.

    Returns:
      A list: per input its cotangent, maybe a symbolic `Zero`, and None for one that has a value.

    >>> program = olympus.make_olympuspr(lambda x, y: x * y)(1.0, 1.0).olympuspr
    >>> unknown = ad.UndefinedPrimal(olympus.typeof(1.0))
    >>> print(ad.backward_pass(program, False, [], [3.0, unknown], [2.0])[1])
    6.0
    """
    if return_logs:
        raise NotImplementedError("backward_pass: return_logs=True given; False is required: "
                                  "transposition keeps no log.")
    return list(transpose.apply_transpose(olympuspr, consts, primals_in, cts_in,
                                          "transpose" if transform_stack else None))
