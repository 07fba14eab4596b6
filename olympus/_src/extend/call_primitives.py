"""Primitives of one's own that call a program, their param `call_olympuspr`.

Every rule is the rule of `jit`'s call: what becomes of such an equation in a transformation are
calls of the programs that become of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from ..base.typing import Array, IrValue, PyTree
from ..control.call import call_p
from ..core.effects import Effect
from ..core.evaluate import eval_closed
from ..core.ir import ClosedOlympuspr
from ..core.linear_util import WrappedFun
from ..core.primitive import Builder, Cotangent, OpenPrimitive, Primitive, Tangent, Transposed
from ..core.staging import stage
from ..core.trace import typeof
from ..types.avals import Aval
from .tables import convert_constvars_olympuspr


def call_impl(f: WrappedFun, *args: PyTree, **params: object) -> PyTree:
    """The results of a wrapped function; params are the primitive's and say nothing of it.

    Args:
      f: a wrapped function.
      *args: its arguments.
      **params: accepted.
    Returns: The wrapped function's results.

    >>> from olympus.extend import core, linear_util
    >>> core.call_impl(linear_util.wrap_init(lambda x: [x + 1]), 2, name="next")
    [3]
    """
    return f.call_wrapped(*args)


class CallPrimitive(OpenPrimitive):
    """An operation that calls a program: `bind(*args, call_olympuspr=program)`, a list of results.

    `bind(*args, subfuns=(fun,))` records the program of a wrapped function of flat values. It has
    the rules of a call; interpreters tell the equation apart by the primitive.

    Args: name: what programs call it.

    >>> from olympus.extend.core import CallPrimitive
    >>> program = olympus.make_olympuspr(lambda x: x * x)(1.0)
    >>> marked_p = CallPrimitive("marked")
    >>> print(olympus.grad(lambda x: marked_p.bind(x, call_olympuspr=program)[0])(3.0))
    6.0
    """

    multiple_results = call_primitive = True

    def __init__(self, name: str) -> None:
        super().__init__(name)
        register_call_primitive_rules(self)

    def bind(self, *args: object, **params: PyTree) -> list[Array]:
        if "subfuns" in params:
            fun, = params.pop("subfuns")
            closed = stage(fun.call_wrapped, [typeof(x) for x in args])
            # Closed-over values may be traced: they become operands.
            args = *closed.consts, *args
            params["call_olympuspr"] = ClosedOlympuspr(
                convert_constvars_olympuspr(closed.olympuspr))
        return super().bind(*args, **params)


def create_call_primitive(name: str, inline_olympus_late: bool = True) -> CallPrimitive:
    """A primitive that calls a program, its param `call_olympuspr`, with all rules.

    Args:
      name: what programs call it.
      inline_olympus_late: whether the program is emitted in place of the equation when a program is
        lowered, instead of as a function.

    >>> program = olympus.make_olympuspr(lambda x: x * x)(1.0)
    >>> tagged_p = core.create_call_primitive("tagged")
    >>> print(olympus.vmap(lambda x: tagged_p.bind(x, call_olympuspr=program)[0])(onp.arange(3.)))
    [0. 1. 4.]
    """
    made = CallPrimitive(name)
    register_call_primitive_rules(made, inline_olympus_late=inline_olympus_late)
    return made


def register_call_primitive_rules(
        prim: Primitive, name: str | None = None,
        transpose_rule: Callable[..., Sequence[Cotangent]] | None = None,
        inline_olympus_late: bool = True) -> None:
    """Give a primitive the rules of a call of its param `call_olympuspr`.

    Args:
      prim: a primitive of one's own.
      name: the name of the functions of lowered programs; by default the primitive's name.
      transpose_rule: `rule(prim, cts, *args, call_olympuspr, **params)` in place of
      `eval_olympuspr_transpose`.
      inline_olympus_late: as for `create_call_primitive`.

    >>> p = core.Primitive("plain")
    >>> core.register_call_primitive_rules(p)
    >>> program = olympus.make_olympuspr(lambda x: x + 1)(1)
    >>> olympus.jit(lambda x: p.bind(x, call_olympuspr=program))(2)
    [Array(3, dtype=int32, weak_type=True)]
    """
    called, back = name or prim.name, transpose_rule or eval_olympuspr_transpose
    p: Any = prim

    def types(*avals: Aval, call_olympuspr: ClosedOlympuspr, **params: Hashable
              ) -> tuple[Sequence[Aval], frozenset[Effect]]:
        return call_olympuspr.out_avals, frozenset(call_olympuspr.effects)

    def lower(b: Builder, *xs: IrValue, call_olympuspr: ClosedOlympuspr, **params: Hashable
              ) -> Sequence[IrValue]:
        if inline_olympus_late:
            return b.call_inline(call_olympuspr, xs)
        return b.call(call_olympuspr, xs, called)

    def rule_of_call(rule: str) -> Callable[..., object]:
        def apply(*args: object, call_olympuspr: ClosedOlympuspr, **params: Hashable) -> object:
            return getattr(call_p, rule)(*args, olympuspr=call_olympuspr, name=called)

        return apply

    p.multiple_results = True
    p.def_effectful_abstract_eval(types)
    p.def_impl(lambda *xs, call_olympuspr, **params: eval_closed(call_olympuspr, *xs))
    p.lower, p.jvp, p.vmap = lower, rule_of_call("jvp"), rule_of_call("vmap")
    p.transpose = lambda cts, *args, **params: back(prim, cts, *args, **params)


def eval_olympuspr_transpose(prim: Primitive, ct: Sequence[Tangent], *args: Transposed,
                             call_olympuspr: ClosedOlympuspr, **params: Hashable
                             ) -> list[Cotangent]:
    """The cotangents of the operands of a call, by a call of the transposed program.

    Args:
      prim: the primitive, for its name.
      ct: the cotangents of the results, a symbolic `Zero` for some.
      *args: the operands; a `UndefinedPrimal` stands for each that a cotangent is wanted for.
      call_olympuspr: the program, linear in those.
      **params: accepted.
    Returns: A list of cotangents, None for the other operands.

    >>> from olympus.interpreters import ad
    >>> program = olympus.make_olympuspr(lambda x, y: x * y)(1.0, 1.0)
    >>> p = core.create_call_primitive("product")
    >>> unknown = ad.UndefinedPrimal(olympus.typeof(1.0))
    >>> print(core.eval_olympuspr_transpose(p, [2.0], 3.0, unknown, call_olympuspr=program)[1])
    6.0
    """
    return call_p.transpose(ct, *args, olympuspr=call_olympuspr, name=prim.name)
