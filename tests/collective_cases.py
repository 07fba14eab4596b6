"""Cases of collectives: what each does to the stack of all elements, by NumPy.

Read by test_collectives.py, which maps them along axes of vmap, and by pmap_cases.py, which gives
each element a device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from ops import reals

from olympus import lax, tree, vmap

GROUPS = [[2, 0], [1, 3]]
UNEQUAL = [[1], [3, 0, 2]]


class Case(NamedTuple):
    """`fun(x, names, **options)` of one element; `oracle(xs, **)` of the rows of a group."""

    name: str
    fun: Callable[..., Any]
    oracle: Callable[..., Any]
    shape: Callable[[int], tuple[int, ...]]     # of an element, for groups of n
    grouped: bool = True


def repeated(f):
    return lambda xs: np.stack([f(xs)] * len(xs))


def gathered(axis, tiled=False):
    return repeated(lambda xs: np.concatenate(xs, axis) if tiled else np.stack(xs, axis))


def exchanged(split, concat, tiled=False):
    def oracle(xs):
        n = len(xs)
        if tiled:
            return np.stack([np.concatenate([np.split(x, n, split)[j] for x in xs], concat)
                             for j in range(n)])
        return np.stack([np.stack([x.take(j, split) for x in xs], concat) for j in range(n)])
    return oracle


def scattered(at, tiled=False):
    def oracle(xs):
        total = xs.sum(0)
        return np.stack(np.split(total, len(xs), at) if tiled else
                        [total.take(j, at) for j in range(len(xs))])
    return oracle


def permuted(perm):
    def oracle(xs):
        out = np.zeros_like(xs)
        for src, dst in perm:
            out[dst] = xs[src]
        return out
    return oracle


RIGHT = [(0, 1), (3, 2), (1, 3)]
CASES = (
    Case("psum", lambda x, i, **o: lax.psum(x * x, i, **o), repeated(lambda xs: (xs * xs).sum(0)),
         lambda n: (2, 3)),
    Case("pmean", lax.pmean, repeated(lambda xs: xs.mean(0)), lambda n: (3,)),
    Case("pmax", lax.pmax, repeated(lambda xs: xs.max(0)), lambda n: (3,)),
    Case("pmin", lax.pmin, repeated(lambda xs: xs.min(0)), lambda n: ()),
    Case("all_gather", lax.all_gather, gathered(0), lambda n: (3,)),
    Case("all_gather-last", lambda x, i, **o: lax.all_gather(x, i, axis=-1, **o), gathered(2),
         lambda n: (2, 3)),
    Case("all_gather-scalar", lax.all_gather, gathered(0), lambda n: ()),
    Case("all_gather-tiled", lambda x, i, **o: lax.all_gather(x, i, axis=1, tiled=True, **o),
         gathered(1, True), lambda n: (2, 3)),
    Case("psum_scatter", lax.psum_scatter, scattered(0), lambda n: (n, 3)),
    Case("psum_scatter-last", lambda x, i, **o: lax.psum_scatter(x, i, scatter_dimension=-1, **o),
         scattered(1), lambda n: (3, n)),
    Case("psum_scatter-tiled", lambda x, i, **o: lax.psum_scatter(
        x, i, scatter_dimension=1, tiled=True, **o), scattered(1, True), lambda n: (2, 3 * n)),
    *(Case(f"all_to_all-{s}{c}", lambda x, i, s=s, c=c, **o: lax.all_to_all(x, i, s, c, **o),
           exchanged(s, c), lambda n, s=s: tuple(n if d == s else 2 + d for d in range(3)))
      for s, c in ((0, 0), (0, 2), (2, 0), (1, 2))),
    *(Case(f"all_to_all-tiled-{s}{c}", lambda x, i, s=s, c=c, **o: lax.all_to_all(
        x, i, s, c, tiled=True, **o), exchanged(s, c, True),
        lambda n, s=s: tuple(2 * n if d == s else 2 + d for d in range(3)))
      for s, c in ((0, 0), (0, 2), (2, 0), (1, 2))),
    Case("pswapaxes", lambda x, i, **o: lax.pswapaxes(x, i, -1, **o), exchanged(1, 1),
         lambda n: (2, n)),
    Case("ppermute", lambda x, i: lax.ppermute(x, i, RIGHT), permuted(RIGHT), lambda n: (2, 3),
         False),
    Case("pshuffle", lambda x, i: lax.pshuffle(x, i, [3, 1, 0, 2]), lambda xs: xs[[3, 1, 0, 2]],
         lambda n: (2,), False),
    Case("pbroadcast", lambda x, i: lax.pbroadcast(x, i, 2), repeated(lambda xs: xs[2]),
         lambda n: (2, 3), False),
    Case("pcast", lambda x, i: lax.pcast(x, i, to="varying"), lambda xs: xs, lambda n: (2,), False),
    Case("axis_index", lambda x, i: x * lax.axis_index(i), lambda xs: xs * np.arange(4.0)[:, None],
         lambda n: (2,), False),
)


class Form(NamedTuple):
    """How the four elements are laid out: sizes of the named axes, and groups."""

    sizes: tuple[int, ...]
    groups: Any = None

    @property
    def names(self) -> Any:
        return ("i", "j")[:len(self.sizes)] if len(self.sizes) > 1 else "i"

    def mapped(self, fun: Callable[..., Any]) -> Callable[..., Any]:
        """`fun` over arrays whose leading axes are the named ones."""
        for name in reversed(("i", "j")[:len(self.sizes)]):
            fun = vmap(fun, axis_name=name)
        return fun


FORMS = (Form((4,)), Form((4,), GROUPS), Form((2, 2)), Form((2, 2), GROUPS))
def setup(case: Case, form: Form) -> tuple[Callable[..., Any], np.ndarray]:
    """The function of one element, and four of them."""
    shape = case.shape(2 if form.groups else 4)
    options = {"axis_index_groups": form.groups} if form.groups else {}
    return (lambda x: case.fun(x, form.names, **options)), reals(*form.sizes, *shape)


def expected(case: Case, form: Form, xs: np.ndarray) -> np.ndarray:
    rows = xs.reshape(4, *xs.shape[len(form.sizes):])
    if not form.groups:
        out = case.oracle(rows)
    else:
        parts = {i: y for g in form.groups for i, y in zip(g, case.oracle(rows[g]), strict=True)}
        out = np.stack([parts[i] for i in range(4)])
    return out.reshape(*form.sizes, *out.shape[1:])


def same(actual: Any, wanted: Any) -> None:
    for a, w in zip(tree.leaves(actual), tree.leaves(wanted), strict=True):
        assert np.shape(a) == np.shape(w)
        np.testing.assert_allclose(a, w, 1e-9, 1e-9)


# Ragged exchange ----------------------------------------------------------------------------------

N, ROWS, LENGTH = 3, 7, 9


def ragged_plan(groups: Any = None, seed: int = 0, count: int = 1) -> tuple[np.ndarray, ...]:
    """Random sizes with slices that do not overlap: (operand, output, offsets and sizes)."""
    rng = np.random.default_rng(seed)
    groups = groups or [range(N)]
    n, k = sum(map(len, groups)), len(groups[0]) * count
    inputs, sends, outputs, receives = np.zeros((4, n, k), np.int32)
    for group in groups:
        for s in group:
            sends[s] = rng.integers(0, ROWS // k + 1, k)
            inputs[s] = np.cumsum([0, *sends[s][:-1]]) + ROWS - sends[s].sum()
        for p, r in enumerate(group):
            receives[r] = [sends[s][p * count + j] for s in group for j in range(count)]
            starts = np.cumsum([0, *receives[r][:-1]]) + 1
            for q, s in enumerate(group):
                outputs[s][p * count:][:count] = starts[q * count:][:count]
    return (reals(n, ROWS, 2), reals(n, LENGTH, 2, seed=1), inputs, sends, outputs, receives)


def ragged_oracle(operand, output, inputs, sends, outputs, receives, groups=None):
    out = output.copy()
    for group in groups or [range(N)]:
        count = sends.shape[1] // len(group)
        for s in group:
            for k, r in enumerate(np.repeat(group, count)):
                size = sends[s][k]
                out[r][outputs[s][k]:outputs[s][k] + size] = \
                    operand[s][inputs[s][k]:inputs[s][k] + size]
    return out
