"""Elementwise choice: `select_n`, `select`, and the masks that derivative rules are written with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.primitive import Axis, Linear, Primitive, Zero
from ..core.trace import literal, operand, typeof
from ..types import dtypes
from ..types.avals import ShapedArray, make_aval, physical_aval
from .shape import broadcast_axis, broadcast_in_dim, move_axis, zeros_of

__all__ = ["select", "select_n"]

BOOL = dtypes.as_dtype(bool)


class SelectN(Primitive):
    """Elementwise choice among cases by a bool or int32 predicate (rank 0 or the cases' shape)."""

    def infer(self, which: ShapedArray, *cases: ShapedArray) -> ShapedArray:
        kind = dtypes.scalar_kind(which.dtype)
        if kind != "b" and which.dtype != dtypes.as_dtype("int32"):
            raise TypeError(f"select_n: predicate {which} given; bool or int32 is required.")
        if kind == "b" and len(cases) > 2:
            raise TypeError(f"select_n: {len(cases)} cases given with a bool predicate; at most 2 "
                            "are possible; use an int32 predicate.")
        if not cases:
            raise TypeError("select_n: no cases given; at least one is required.")
        shape = next((c.shape for c in cases if c.shape), ())
        if any(c.dtype != cases[0].dtype or c.shape not in ((), shape) for c in cases):
            raise TypeError(f"select_n: cases {', '.join(map(str, cases))} given; equal shapes and "
                            "dtypes are required.")
        if which.shape not in ((), shape):
            raise TypeError(f"select_n: predicate {which} and cases {cases[0]} given; the "
                            "predicate must be rank 0 or of the cases' shape.")
        return make_aval(shape, cases[0].dtype, all(c.weak_type for c in cases))

    def lower(self, b: Any, which: Any, *cases: Any) -> Any:
        out = b.avals_out[0]
        cases = [x if a.shape == out.shape else b.broadcast(x, physical_aval(out), ())
                 for x, a in zip(cases, b.avals_in[1:])]
        aval = b.avals_in[0]
        if dtypes.is_key(out.dtype) and aval.shape:
            aval = aval.update(shape=physical_aval(out).shape)
            which = b.broadcast(which, aval, tuple(range(out.ndim)))
        if dtypes.scalar_kind(aval.dtype) == "b":
            if len(cases) == 1:
                return cases[0]
            return b.op("stablehlo.select", [which, cases[1], cases[0]])
        return self._choose(b, which, aval, list(cases), 0)

    def _choose(self, b: Any, which: Any, aval: ShapedArray, cases: list[Any], first: int) -> Any:
        """Binary search over the predicate's range."""
        if len(cases) == 1:
            return cases[0]
        half = len(cases) // 2
        pivot = b.full(aval, first + half)
        low = b.compare("LT", which, pivot, "SIGNED", aval.update(dtype=BOOL))
        return b.op("stablehlo.select", [
            low, self._choose(b, which, aval, cases[:half], first),
            self._choose(b, which, aval, cases[half:], first + half)])

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        which, *cases = primals
        out = self.bind(*primals)
        shape = typeof(out).shape
        terms = [spread(zeros_of(t.aval) if type(t) is Zero else t, shape) for t in tangents[1:]]
        if dtypes.is_float0(typeof(out).to_tangent_aval().dtype):
            return out, Zero(typeof(out).to_tangent_aval())
        return out, self.bind(which, *terms)

    def transpose(self, ct: Any, which: Any, *cases: Any) -> list[Any]:
        zeros = zeros_of(typeof(ct))
        out: list[Any] = [None]
        for i, case in enumerate(cases):
            if type(case) is Linear:
                picked = [ct if j == i else zeros for j in range(len(cases))]
                out.append(self.bind(which, *picked))
            else:
                out.append(None)
        return out

    def vmap(self, axis: Axis, args: Sequence[Any], dims: Sequence[int | None]) -> Any:
        which, *cases = args
        d_which, *d_cases = dims
        shape = next((s for s in (_without(typeof(c).shape, d) for c, d in zip(cases, d_cases))
                      if s), ())
        full = []
        for c, d in zip(cases, d_cases):
            c = broadcast_axis(c, axis.size, 0) if d is None else move_axis(c, d, 0)
            if typeof(c).ndim < len(shape) + 1:
                c = broadcast_in_dim(c, (axis.size, *shape), (0,))
            full.append(c)
        if d_which is None and not typeof(which).shape:
            return self.bind(which, *full), 0
        which = broadcast_axis(which, axis.size, 0) if d_which is None else \
            move_axis(which, d_which, 0)
        if typeof(which).ndim < len(shape) + 1:
            which = broadcast_in_dim(which, (axis.size, *shape), (0,))
        return self.bind(which, *full), 0


select_n_p = SelectN("select_n")


def select_n(which: Any, *cases: Any) -> Any:
    """cases[which], elementwise.

    Args:
      which: bool (two cases, False is the first) or int32; rank 0 or of the cases' shape.
      *cases: arrays of one shape and dtype.
    """
    return select_n_p.bind(which, *cases)


def select(pred: Any, on_true: Any, on_false: Any) -> Any:
    """on_true where pred, else on_false; pred is a bool, rank 0 or of the operands' shape."""
    return select_n_p.bind(pred, operand(on_false, on_true), operand(on_true, on_false))


def _without(shape: tuple[int, ...], dim: int | None) -> tuple[int, ...]:
    return shape if dim is None else (*shape[:dim], *shape[dim + 1:])


def spread(x: Any, shape: tuple[int, ...]) -> Any:
    """A scalar repeated to a shape; an array of the shape as it is."""
    return x if typeof(x).shape == shape else broadcast_in_dim(x, shape, ())


def where(mask: Any, yes: Any, no: Any) -> Any:
    """Choice by a mask; a Python scalar takes the other's type and the mask's shape."""
    model = no if type(yes) in (int, float) else yes
    shape, dtype = typeof(mask).shape, typeof(model).dtype
    yes, no = (broadcast_in_dim(literal(v, dtype), shape, ()) if type(v) in (int, float)
               else spread(v, shape) for v in (yes, no))
    return select_n_p.bind(mask, no, yes)
