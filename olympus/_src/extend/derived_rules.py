"""Rules of a `HiPrim` made of others of its rules: reverse mode of forward mode, and the like."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import compress
from typing import NamedTuple

from ..base.typing import PyTree, Value
from ..base.util import WithAux
from ..core.evaluate import eval_olympuspr
from ..core.ir import Olympuspr
from ..core.primitive import Zero
from ..interpreters.partial_eval import TapeTracer, record_unknown
from ..lax.shape import instantiate
from ..types.tree import tree_flatten
from ..types.tree_registry import register_pytree_node, register_static
from .types import HiPrim, rule_pair, tangents_of, transposed


@register_static
class Static:
    """Something that is no array, among residuals."""

    __slots__ = ("value",)

    def __init__(self, value: PyTree) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return type(other) is Static and self.value == other.value

    def __hash__(self) -> int:
        return hash(Static)


class Recorded:
    """Residuals of a linear map that was recorded: its constants."""

    # The program, and which results have a tangent.
    __slots__ = ("what", "consts")

    def __init__(self, what: tuple[Olympuspr, tuple[bool, ...]], consts: Sequence[Value]) -> None:
        self.what, self.consts = what, consts


register_pytree_node(Recorded, lambda r: (tuple(r.consts), r.what), Recorded)


def _all_tangents(prim: HiPrim, nonzero: Sequence[bool], tangents: Sequence[Value]
                      ) -> tuple[PyTree, ...]:
    """All tangents, in the structure of the arguments, of those that are not zero."""
    rest = iter(tangents)
    return tuple(prim.in_tree.unflatten([
        next(rest) if nz else Zero(a.to_tangent_aval())
        for a, nz in zip(prim.in_avals_flat, nonzero, strict=True)]))


def _needs(prim: HiPrim, pair: str, rule: str) -> None:
    if not prim._defines(rule):
        raise TypeError(f"subclass {type(prim)} sets {pair} and defines no `{rule}`, from which "
                        "the rules are made; define it.")


def _lin_from_jvp(self: HiPrim, nzs_in: PyTree, *primals: PyTree) -> tuple[PyTree, PyTree, PyTree]:
    _needs(self, "linearize_from_jvp", "jvp")
    nonzero = tree_flatten(nzs_in)[0]

    def linear(*ts: Value) -> tuple[list[Value], tuple[PyTree, tuple[bool, ...]]]:
        out, tangent = rule_pair(self, "jvp", self.jvp(primals, _all_tangents(
            self, nonzero, ts)))
        tangents = tangents_of(self, "jvp", tangent)
        on = tuple([type(t) is not Zero for t in tangents])
        return list(compress(tangents, on)), (out, on)

    with_aux = WithAux(linear)
    avals = [a.to_tangent_aval() for a in compress(self.in_avals_flat, nonzero)]
    closed, _, _ = record_unknown(with_aux, avals, [True] * len(avals), True)
    out, on = with_aux.aux
    if any(type(x) is TapeTracer and not x._trace.alive for x in tree_flatten(out)[0]):
        raise TypeError(f"{type(self).__name__}.jvp: a result depends on the tangents; it must be "
                        "computed of the primals alone.")
    return out, Recorded((closed.olympuspr, on), closed.consts), self.out_tree.unflatten(on)


def _linearized_from_jvp(self: HiPrim, residuals: Recorded, *tangents: PyTree) -> PyTree:
    program, on = residuals.what
    nonzero = [t for t in self._flat(self.in_tree, tangents, "linearized") if type(t) is not Zero]
    outs = iter(eval_olympuspr(program, residuals.consts, *nonzero))
    return self.out_tree.unflatten([
        next(outs) if flag else Zero(a.to_tangent_aval())
        for a, flag in zip(self.out_avals_flat, on, strict=True)])


def jvp_from_lin(self: HiPrim, primals: tuple[PyTree, ...], tangents: tuple[PyTree, ...]
                 ) -> tuple[PyTree, PyTree]:
    """`jvp` of a `HiPrim`, made of its `lin` and `linearized`: `jvp = jvp_from_lin`.

    Args:
      primals: the arguments.
      tangents: one for each.
    Returns: The pair of result and tangent. TypeError where `lin` is made of `jvp`.

    >>> class Double(hiolympus.HiPrim):
    ...     def __init__(self, aval):
    ...         self.in_avals, self.out_aval, self.params = (aval,), aval, {}
    ...         super().__init__()
    ...     def expand(self, x):
    ...         return 2 * x
    ...     def lin(self, nzs, x):
    ...         return self(x), ()
    ...     def linearized(self, residuals, t):
    ...         return 2 * t
    ...     jvp = hiolympus.jvp_from_lin
    >>> olympus.jvp(lambda x: Double(olympus.typeof(x))(x), (1.0,), (3.0,))[1]
    Array(6., dtype=float32, weak_type=True)
    """
    if type(self).lin is _lin_from_jvp:
        raise TypeError(f"subclass {type(self)} can't set both `jvp = jvp_from_lin` and `lin, "
                        "linearized = linearize_from_jvp`, since each would be defined in terms of "
                        "the other; define one of them.")
    _needs(self, "jvp_from_lin", "lin")
    nonzero = self.in_tree.unflatten([
        type(t) is not Zero for t in self._flat(self.in_tree, tangents, "jvp")])
    out, res, *_ = self.lin(tuple(nonzero), *primals)
    return out, self.linearized(res, *tangents)


def _pulled_back(self: HiPrim, fun: Callable[..., Sequence[Value]], nonzero: Sequence[bool],
                 out_ct: PyTree) -> PyTree:
    """Cotangents of the arguments, by a function from their tangents to the results' tangents."""
    cts = list(map(instantiate, self._flat(self.out_tree, out_ct, "vjp_bwd_retval")))
    avals = [a.to_tangent_aval() for a in compress(self.in_avals_flat, nonzero)]
    pulled = iter(transposed(fun, avals, cts))
    return tuple(self.in_tree.unflatten([
        next(pulled) if nz else Zero(a.to_cotangent_aval())
        for a, nz in zip(self.in_avals_flat, nonzero, strict=True)]))


def _vjp_fwd_from_jvp(self: HiPrim, nzs_in: PyTree, *primals: PyTree) -> tuple[PyTree, PyTree]:
    _needs(self, "vjp_from_jvp", "jvp")
    return self(*primals), (primals, Static(tuple(tree_flatten(nzs_in)[0])))


def _transposed_jvp(self: HiPrim, res: PyTree, out_ct: PyTree) -> PyTree:
    primals, nonzero = res
    return _pulled_back(self, lambda *ts: tangents_of(self, "jvp", rule_pair(
        self, "jvp", self.jvp(tuple(primals), _all_tangents(self, nonzero.value, ts)))[1]),
        nonzero.value, out_ct)


def _vjp_fwd_from_lin(self: HiPrim, nzs_in: PyTree, *primals: PyTree) -> tuple[PyTree, ...]:
    _needs(self, "vjp_from_lin", "lin")
    out, res, *rest = self.lin(nzs_in, *primals)
    return out, (res, Static(tuple(tree_flatten(nzs_in)[0]))), *rest


def _transposed_linearized(self: HiPrim, res: PyTree, out_ct: PyTree) -> PyTree:
    own, nonzero = res
    return _pulled_back(self, lambda *ts: tangents_of(self, "linearized", self.linearized(
        own, *_all_tangents(self, nonzero.value, ts))), nonzero.value, out_ct)


class LinearizeFromJvp(NamedTuple):
    """`linearize_from_jvp`: `lin` and `linearized` of an operation, made of its `jvp`."""

    lin: Callable[..., PyTree]
    linearized: Callable[..., PyTree]


class VjpFromJvp(NamedTuple):
    """`vjp_from_jvp`: reverse mode of an operation, which runs its `jvp` in the backward pass.

    Residuals are the arguments. Without any rule of reverse mode `jvp` runs in the forward pass,
    and what its tangents need is kept.
    """

    vjp_fwd: Callable[..., PyTree]
    vjp_bwd_retval: Callable[..., PyTree]


class VjpFromLin(NamedTuple):
    """`vjp_from_lin`: reverse mode of an operation, made of its `lin` and `linearized`."""

    vjp_fwd: Callable[..., PyTree]
    vjp_bwd_retval: Callable[..., PyTree]


for _fwd, _rule in ((_vjp_fwd_from_jvp, "jvp"), (_vjp_fwd_from_lin, "lin")):
    setattr(_fwd, "made_of", _rule)     # noqa: B010
linearize_from_jvp = LinearizeFromJvp(_lin_from_jvp, _linearized_from_jvp)
vjp_from_jvp = VjpFromJvp(_vjp_fwd_from_jvp, _transposed_jvp)
vjp_from_lin = VjpFromLin(_vjp_fwd_from_lin, _transposed_linearized)
