"""For interpreters and libraries: programs with references, and functions that are about to be.

    run_state         a function of references as one of arrays
    for_loop          a loop over references, as one of arrays
    discharge_state   a program with references as one of arrays
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..base.source import api_boundary
from ..base.typing import Array, ArrayLike, PyTree
from ..base.util import name_of
from ..control_flow.scan import scan
from ..core.effects import InputEffect
from ..core.ir import ClosedOlympuspr, Olympuspr
from ..interpreters.discharge import discharge
from ..numpy.grids import arange
from ..numpy.refs import freeze, new_ref
from ..types.tree import tree_flatten, tree_map


class _OfKind(type):
    """Effects on references, by kind: an `InputEffect` is an instance of the class of its kind."""

    kind = ""

    def __instancecheck__(cls, x: object) -> bool:
        return isinstance(x, InputEffect) and cls.kind in ("", x.kind)

    def __call__(cls, index: int) -> InputEffect:
        """The effect on the operand that `index` counts: for `HiPrim.effects`."""
        return InputEffect(cls.kind, index)


class RefEffect(metaclass=_OfKind):
    """What is done to a reference: the effects `e` for which `isinstance(e, RefEffect)` holds.

    >>> from olympus.extend.state import ReadEffect, RefEffect
    >>> trace = olympus.make_olympuspr(lambda ref: ref[0])
    >>> program = trace(olympus.new_ref(onp.ones(2)))
    >>> [(isinstance(e, RefEffect), isinstance(e, ReadEffect)) for e in program.effects]
    [(True, True)]
    """


class ReadEffect(RefEffect):
    """A reference is read.

    >>> from olympus.extend.state import ReadEffect
    >>> trace = olympus.make_olympuspr(lambda ref: ref[0])
    >>> program = trace(olympus.new_ref(onp.ones(2)))
    >>> [isinstance(e, ReadEffect) for e in program.effects]
    [True]
    """

    kind = "read"


class WriteEffect(RefEffect):
    """A reference is written.

    >>> from olympus.extend.state import WriteEffect
    >>> trace = olympus.make_olympuspr(lambda ref: olympus.ref.set(ref, 0, 1.))
    >>> program = trace(olympus.new_ref(onp.ones(2)))
    >>> [isinstance(e, WriteEffect) for e in program.effects]
    [True]
    """

    kind = "write"


class AccumEffect(RefEffect):
    """Something is added to a reference.

    >>> from olympus.extend.state import AccumEffect
    >>> trace = olympus.make_olympuspr(lambda ref: olympus.ref.addupdate(ref, 0, 1.))
    >>> program = trace(olympus.new_ref(onp.ones(2)))
    >>> [isinstance(e, AccumEffect) for e in program.effects]
    [True]
    """

    kind = "add"


def _returned(what: str, fun: Callable[..., object], out: object) -> TypeError:
    return TypeError(f"{what}: {name_of(fun)} returned {out!r:.60}; None is required; write "
                     "results to references.")


@api_boundary
def run_state(f: Callable[[PyTree], None]) -> Callable[[PyTree], PyTree]:
    """The function of arrays that makes references of them, runs `f`, and returns their contents.

    Args: f: a function of a pytree of references; its result must be None.
    Returns: A function from a pytree of arrays to one of the same structure.

    >>> from olympus.extend.state import run_state
    >>> def count(refs):
    ...     refs["n"][...] += 1
    >>> run_state(count)({"n": 3})
    {'n': Array(4, dtype=int32)}
    """
    def run(init: PyTree) -> PyTree:
        refs = tree_map(new_ref, init)
        out = f(refs)
        if tree_flatten(out)[0]:
            raise _returned("run_state", f, out)
        return tree_map(freeze, refs)

    return api_boundary(run)


@api_boundary
def for_loop(nsteps: int | Sequence[int], body: Callable[..., None], init_state: PyTree, *,
             reverse: bool = False, unroll: int = 1) -> PyTree:
    """`for i in range(nsteps): body(i, refs)` on references to the state.

    Args:
      nsteps: number of iterations; of nested loops, each one's, the outermost first. body: a
      function of the index (one of each loop) and of a pytree of references, of None. init_state: a
      pytree of arrays, the first contents.
      reverse: iterate from the last index to the first.
      unroll: how many iterations one round of the compiled loop does.
    Returns: The contents at the end.

    >>> from olympus.extend.state import for_loop
    >>> def body(i, ref):
    ...     ref[i + 1] = ref[i] * 2
    >>> print(for_loop(4, body, onp.ones(5)))
    [ 1.  2.  4.  8. 16.]
    """
    counts = [nsteps] if isinstance(nsteps, (int, np.integer)) else list(nsteps)

    def nest(indices: tuple[Array, ...], refs: PyTree) -> None:
        if len(indices) == len(counts):
            out = body(*indices, refs)
            if tree_flatten(out)[0]:
                raise _returned("for_loop", body, out)
            return
        scan(lambda c, i: (c, nest((*indices, i), refs)), None,
             arange(counts[len(indices)], dtype=np.int32), reverse=reverse, unroll=unroll)

    return run_state(lambda refs: nest((), refs))(init_state)


@api_boundary
def discharge_state(olympuspr: Olympuspr, consts: Sequence[ArrayLike], *,
                    should_discharge: bool | Sequence[bool] = True
                    ) -> tuple[Olympuspr, Sequence[ArrayLike]]:
    """A program on the contents of references, which it also returns.

    Args:
      olympuspr: an open program.
      consts: the values of its constants.
      should_discharge: flags of the inputs to discharge, if they are references; of all by default.
    Returns: The program from inputs, contents in place of references, to results and then the
      contents at the end, in the order of the inputs; and its constants.

    >>> from olympus.extend.state import discharge_state
    >>> closed = olympus.make_olympuspr(lambda ref: olympus.ref.addupdate(ref, 0, 1.))(
    ...     olympus.new_ref(onp.zeros(2)))
    >>> pure, consts = discharge_state(closed.olympuspr, closed.consts)
    >>> print(olympus.core.eval_olympuspr(pure, consts, onp.array([5., 6.])))
    [Array([6., 6.], dtype=float32)]
    """
    flags = [should_discharge] * len(olympuspr.invars) if isinstance(
        should_discharge, bool) else list(should_discharge)
    which = [w and v.aval.mutable for w, v in zip(flags, olympuspr.invars, strict=True)]
    pure = discharge(ClosedOlympuspr(olympuspr, consts), which, which)
    return pure.olympuspr, pure.consts
