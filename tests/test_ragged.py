"""Ragged contractions beyond their rows: layouts, derivatives, maps, NaN of others, kernels."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np
import pytest

from olympus import jit, jvp, lax, vjp, vmap

# einsum's letters; m is the ragged axis, g the groups: of rhs where m is free, else of the result.
# The last letters are those of the group sizes.
LAYOUTS = ["mk,gkn->mn g", "bmk,bgkn->bmn bg", "bmk,bgkn->bmn g", "amk,gnk->amn ag",
           "mck,kgcn->mn g", "makb,gkbn->abmn g", "bamk,gkb->bam bag", "mk,mn->gkn g",
           "bmk,mbn->gbkn bg", "cmk,mnc->gkn cg", "kcm,nmc->gkn g", "mck,cmn->gkn g", "m,m->g g"]
SMALL = {"a": 2, "b": 3, "c": 2, "g": 3, "k": 4, "m": 7, "n": 2}
LARGE = {"a": 2, "b": 2, "c": 2, "g": 4, "k": 64, "m": 200, "n": 96}


class Case:
    """A layout's operands, its contraction, and the one by einsum with the groups' places as 1."""

    def __init__(self, layout: str, dims: dict[str, int], seed: int, offset: int | None = None,
                 dtype: str = "float32") -> None:
        rng = np.random.default_rng(seed)
        terms, self.by = layout.split()
        given, self.out = terms.split("->")
        self.x, self.y = given.split(",")
        self.offset = offset
        self.args = [rng.normal(size=[dims[i] for i in axes]).astype(dtype)
                     for axes in (self.x, self.y)]
        count = dims["g"] + (0 if offset is None else offset + 1)
        # The last places belong to no group.
        sizes = rng.multinomial(dims["m"], [1 / (count + 1)] * (count + 1),
                                [dims[i] for i in self.by[:-1]])
        self.sizes = sizes[..., :-1].astype(np.int32)
        both = [i for i in self.x if i in self.y]
        summed, batch = [[i for i in both if (i in self.out) == kept] for kept in (False, True)]
        order = [i for i in self.x if i in batch]
        self.numbers = lax.RaggedDotDimensionNumbers(
            tuple(tuple(tuple(axes.index(i) for i in kind) for axes in (self.x, self.y))
                  for kind in (summed, order)),
            (self.x.index("m"),), (self.y.index("g"),) if "g" in self.y else ())
        free = [[i for i in axes if i not in both and i != "g"] for axes in (self.x, self.y)]
        self.found = ("" if "g" in self.y else "g") + "".join([*order, *free[0], *free[1]])

    def __call__(self, x: Any, y: Any, sizes: Any = None) -> Any:
        sizes = self.sizes if sizes is None else sizes
        return lax.ragged_dot_general(x, y, sizes, self.numbers, group_offset=self.offset)

    def places(self, sizes: Any = None) -> np.ndarray:
        sizes = np.asarray(self.sizes if sizes is None else sizes)
        ends = np.cumsum(sizes, -1)[..., None]
        m = np.arange(self.args[0].shape[self.x.index("m")])
        found = ((m >= ends - sizes[..., None]) & (m < ends)).astype(float)
        first = self.offset or 0
        count = self.args[1].shape[self.y.index("g")] if "g" in self.y else found.shape[-2]
        return found[..., first:first + count, :]

    def einsum(self, x: Any, y: Any, sizes: Any = None) -> np.ndarray:
        return np.einsum(f"{self.x},{self.y},{self.by}m->{self.found}", np.asarray(x, float),
                         np.asarray(y, float), self.places(sizes), optimize=True)


close = functools.partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-4)


def check_derivatives(case: Case, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = case.args
    tx, ty = [rng.normal(size=v.shape).astype(v.dtype) for v in (x, y)]
    tangent = case.einsum(tx, y) + case.einsum(x, ty)
    close(jit(lambda *v: jvp(case, v[:2], v[2:])[1])(x, y, tx, ty), tangent, atol=1e-3)
    ct = rng.normal(size=tangent.shape).astype(x.dtype)
    cx, cy = jit(lambda x, y, ct: vjp(case, x, y)[1](ct))(x, y, ct)
    for given, other in ((tx, cx), (ty, cy)):       # of each operand alone
        wanted = case.einsum(given, y) if given is tx else case.einsum(x, given)
        close(np.sum(given * np.float64(other)), np.sum(ct * wanted), rtol=1e-3, atol=2e-2)


@pytest.mark.parametrize(("layout", "offset"), [*zip(LAYOUTS, itertools.repeat(None)), (
    LAYOUTS[0], 1), (LAYOUTS[3], 2)])
def test_ragged_products_of_any_layout(layout: str, offset: int | None) -> None:
    case, other = [Case(layout, SMALL, seed, offset) for seed in (0, 2)]
    close(case(*case.args), case.einsum(*case.args))
    check_derivatives(case, 1)
    one, two = [(*c.args, c.sizes) for c in (case, other)]
    choices = [c for c in itertools.product((False, True), repeat=3) if any(c)]
    stacks = [np.stack(pair, -1) for pair in zip(one, two, strict=True)]

    def all_maps(one: Any, stacks: Any) -> list[Any]:
        return [vmap(case, [v.ndim if m else None for v, m in zip(one, mapped, strict=True)])(
            *[s if m else v for v, s, m in zip(one, stacks, mapped, strict=True)])
            for mapped in choices]

    for mapped, out in zip(choices, jit(all_maps)(one, stacks), strict=True):
        mixed = [y if m else x for x, y, m in zip(one, two, mapped, strict=True)]
        close(out, np.stack([case.einsum(*one), case.einsum(*mixed)]), err_msg=str(mapped))


KERNEL = "blocks of groups"


IN_BLOCKS = {LAYOUTS[i] for i in (0, 1, 2, 3, 4, 7, 8)}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_ragged_products_in_blocks(layout: str) -> None:
    case = Case(layout, LARGE, 0)
    names = [t.kernel.name for t in jit(case).lower(*case.args)._context.taken]
    assert (KERNEL in names) == (layout in IN_BLOCKS)
    if layout not in IN_BLOCKS:
        return
    close(jit(case)(*case.args), case.einsum(*case.args), atol=2e-3)
    check_derivatives(case, 1)
    for sizes in (np.zeros_like(case.sizes), np.full_like(case.sizes, 50),     # none; no place left
                  np.full_like(case.sizes, 1)):
        close(jit(case)(*case.args, sizes), case.einsum(*case.args, sizes), atol=2e-3)


@pytest.mark.parametrize("dims", [SMALL, LARGE], ids=["dense", "blocks"])
@pytest.mark.parametrize("layout", ["mk,gkn->mn g", "mk,mn->gkn g"])
def test_a_nan_of_one_group_stays_in_its_results(layout: str, dims: dict[str, int]) -> None:
    case = Case(layout, dims, 0)
    first, second = case.sizes[:2]
    for operand in (0, 1):
        args = [v.copy() for v in case.args]
        of_groups = operand == 1 and "g" in case.y
        args[operand][0 if of_groups else slice(first)] = np.nan
        out = np.asarray(jit(case)(*args))
        reached = np.isnan(out).any(tuple(range(1, out.ndim)))
        wanted = np.arange(len(out)) < (first if "m" in case.found else 1)
        np.testing.assert_array_equal(reached, wanted)
        rows = slice(first, first + second) if "m" in case.found else slice(1, None)
        close(out[rows], case.einsum(*case.args)[rows], atol=2e-3)


def test_sizes_of_any_integer_dtype() -> None:
    x, y = np.ones((300, 2), np.float32), np.ones((2, 2, 1), np.float32)
    for dtype in ("uint8", "int8", "uint32", "int16"):
        sizes = np.array([120, 100], dtype)
        out = np.asarray(lax.ragged_dot(x, y, sizes))[:, 0]
        np.testing.assert_array_equal(out, 2.0 * (np.arange(300) < 220))
