"""Functions whose operations run in the order in which they are written."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any, overload

from ..base.typing import Array, P, PyTree, R
from ..base.util import wraps
from ..core.evaluate import bind, evaluate
from ..core.ir import OlympusprEqn
from ..core.trace import is_array
from ..lax.barriers import optimization_barrier_p
from ..types.tree import tree_unflatten
from .arguments import check_callable
from .jit import JitFunction, JitOptions


@overload
def program_order(f: Callable[P, R], *, enforce: bool, strict_in_out: bool = False,
                  exclude_argnames: str | Sequence[str] | None = None) -> Callable[P, R]: ...


@overload
def program_order(*, enforce: bool, strict_in_out: bool = False,
                  exclude_argnames: str | Sequence[str] | None = None
                  ) -> Callable[[Callable[P, R]], Callable[P, R]]: ...


def program_order(f: Callable[..., PyTree] | None = None, *, enforce: bool,
                  strict_in_out: bool = False, exclude_argnames: str | Sequence[str] | None = None
                  ) -> Callable[..., PyTree]:
    """The function, whose operations XLA computes in the order in which they are written.

    Each one waits for the result of the one before. A loop, a branch or a jitted function is one
    operation. XLA fuses less of what waits.

    Args:
      f: a function of pytrees of arrays; without it, a decorator is returned.
      enforce: whether this is done; False gives the function as it is.
      strict_in_out: whether, besides, all arguments are there before the first operation, and all
        operations have ended before a result is read.
      exclude_argnames: arguments that are not waited for then, by name.

    >>> from olympus.experimental.overlap import program_order
    >>> f = program_order(lambda x, y: (x * 2, y * 3), enforce=True)
    >>> olympus.make_olympuspr(f)(1.0, 2.0)
    { lambda ; a:f32[] b:f32[]. let
        c:f32[] = mul a 2.0:f32[]
        _:f32[] d:f32[] = optimization_barrier c b
        e:f32[] = mul d 3.0:f32[]
      in (c, e) }
    """
    if f is None:
        return functools.partial(program_order, enforce=enforce, strict_in_out=strict_in_out,
                                 exclude_argnames=exclude_argnames)
    check_callable("program_order", f)
    if not enforce:
        return f
    left_out = {exclude_argnames} if isinstance(exclude_argnames, str) else {
        *(exclude_argnames or ())}
    info = JitFunction(f, JitOptions())     # it keeps its programs: one for calls of equal types

    @wraps(f)
    def ordered(*args: PyTree, **kwargs: PyTree) -> object:
        arguments = info.signature.arguments(args, kwargs)
        program = info.program(arguments)
        operands = [*program.lead, *arguments.leaves]
        if strict_in_out:
            _join(operands, [i for i, name in enumerate(program.arg_names)
                             if re.split(r"\W", name)[0] not in left_out])
        # Bound one by one, in whatever trace is current.
        chain = _Chain()
        outs = evaluate(program.closed.olympuspr, program.closed.consts, operands, chain.step)
        if strict_in_out:
            # The last operation may be one whose result is not returned.
            outs = _join([*outs, chain.last], range(len(outs) + 1))[:-1]
        return tree_unflatten(program.out_tree, outs)

    return ordered


def _join(values: list[Array], places: Sequence[int]) -> list[Array]:
    """Let none of the arrays at these places be read before all are there; in place."""
    # XLA reads none of a barrier's results before all of its operands are there.
    places = [i for i in places if is_array(values[i])]
    if len(places) > 1:
        for i, x in zip(places, optimization_barrier_p.bind(*[values[i] for i in places]),
                        strict=True):
            values[i] = x
    return values


class _Chain:
    """Binds equations; each waits for a result of its predecessor."""

    def __init__(self) -> None:
        self.last: Any = None

    def step(self, eqn: OlympusprEqn, ins: list[Array]) -> Array | list[Array]:
        self.last, *ins = _join([self.last, *ins], range(len(ins) + 1))
        out = bind(eqn, ins)
        outs = out if eqn.primitive.multiple_results else [out]
        # One result will do: all of an operation's are there at once.
        self.last = next(filter(is_array, outs), self.last)
        return out
