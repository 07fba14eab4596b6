"""How far does olympus.numpy agree with NumPy? Generated calls of both, in 64 bits.

Each family below is a function of NumPy or of olympus.numpy and a product of arguments: arrays of
several dtypes and shapes with NaN, ties, zeros and nothing in them, and options, bad ones included.
Results must have NumPy's structure, shapes, dtypes and values; where NumPy raises, an error of the
same class, or of one that NumPy's derives from, must be raised. What differs on purpose is named in
`EXPLAINED`, by a pattern of the difference, with the reason; the figure counts it as differing.

    PYTHONPATH=. python tools/numpy_sweep.py [--share 1/7] [family ...]
"""

from __future__ import annotations

import argparse
import collections
import itertools
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

import olympus
import olympus.numpy as onp

NAN, INF = np.nan, np.inf
RNG = np.random.default_rng(0)
N = RNG.normal


class Case(NamedTuple):
    name: str
    call: Callable[[Any], Any]      # given np or onp


# Differences on purpose: a pattern of "family: difference", and why.
EXPLAINED: dict[str, str] = {
    r"(float64|complex128) .* found (float32|complex64)|found float(32|16)|found complex64":
        "promotion: small integers, booleans and float32 beside integers become float32, as in JAX",
    r"(poly\w*|roots): (\w+ expected, found (Value|Type)Error|nothing where NumPy raises TypeError|"
    r"ValueError where NumPy raises nothing: \w+: \w+\[2,3\])":
        "polynomials: one error for all ranks but 1; NumPy meets other ones by accident",
    r"polyfit.*deg": "a degree that is no integer is refused, not truncated",
    r"polyfit.*int32": "ranks are default integers",
    r"(histogram\w*): nothing where NumPy raises ValueError":
        "data that are not finite give NaN as edges: nothing waits for values to raise",
    r"copyto: ValueError": "an array of one element does not become a scalar",
}


def families() -> dict[str, list[Case]]:
    """Every call, by the name of what is called."""
    found: dict[str, list[Case]] = collections.defaultdict(list)

    def add(name: str, *pools: Sequence[Any], over: Callable[..., Any] | None = None,
            **options: Sequence[Any]) -> None:
        for args in itertools.product(*pools):
            for values in itertools.product(*options.values()):
                given = {k: v for k, v in zip(options, values, strict=True) if v is not ...}
                call = over or (lambda o, *a, _f=name, **kw: function(o, _f)(*a, **kw))
                found[name].append(Case(label(args, given), lambda o, c=call, a=args, g=given:
                                        c(o, *a, **g)))

    signals(add)
    polynomials(add)
    statistics(add)
    samples(add)
    places(add)
    domains(add)
    return found


def function(o: Any, name: str) -> Any:
    for part in name.split("."):
        o = getattr(o, part)
    return o


def label(args: Sequence[Any], given: dict[str, Any]) -> str:
    return ", ".join([*map(short, args), *(f"{k}={short(v)}" for k, v in given.items())])


def short(x: Any) -> str:
    return f"{x.dtype}{list(x.shape)}" if isinstance(x, np.ndarray) else f"{x!r:.40}"


VECTORS = [np.arange(5), N(size=4), N(size=7) + 1j * N(size=7), np.array([True, False, True]),
           np.arange(3, dtype="u1"), np.array([]), N(size=(2, 3)), np.float32([1, 2, 3]),
           np.array([0, 0, 2, 0])]


def signals(add: Any) -> None:
    for name in ("convolve", "correlate"):
        add(name, VECTORS, VECTORS, mode=["full", "same", "valid", "other"])
    for name in ("bartlett", "blackman", "hamming", "hanning"):
        add(name, [-1, 0, 1, 2, 3, 4, 7, 50])
    add("kaiser", [0, 1, 2, 5, 50], [0, 1, 8.6, -3.0, 200.0])
    points = [(np.array([0.0, 1, 2, 3]), N(size=4)), (np.array([0.0, 1, 1, 3]), N(size=4)),
              (np.array([1.0]), np.array([5.0])), (np.arange(3), np.arange(3) ** 2),
              (np.array([0.0, 1, 3]), N(size=3) + 1j), (np.array([]), np.array([])),
              (np.arange(3.0), np.array([0, INF, 1])), (np.arange(3.0), np.arange(4.0)),
              (np.ones((2, 2)), np.ones((2, 2)))]
    where = [N(size=5) * 3, np.array([0.0, 1, 1.5, 2, 3, 9, -1, NAN, INF, -INF]), np.array(1.2),
             np.zeros((2, 0)), np.arange(6).reshape(2, 3), 2.5]
    add("interp", where, points, [{}, {"left": -5}, {"right": 7.5}, {"period": 2.5},
                                  {"period": -3}, {"left": 1, "period": 1}, {"period": 0}],
        over=lambda o, x, p, kw: o.interp(x, *p, **kw))
    add("unwrap", [np.array([0, 1, 2, -1, 0]), np.cumsum(N(size=9)) * 3, N(size=(3, 4)) * 5,
                   np.array(3.0), np.zeros(0), np.zeros((2, 0)), np.arange(5) * 3,
                   np.array([1j, 2]), np.array([2, 0, 1, -1, 3]) * np.pi],
        period=[..., 4, 5, 2.5], discont=[..., 5.0, 0.1], axis=[..., 0])
    bits = [np.array([1, 0, 1, 1, 0, 0, 0, 0, 1]), RNG.integers(0, 2, (3, 9, 2)),
            np.ones((2, 8), bool), np.array(3), np.array([1.5])]
    add("packbits", bits, axis=[None, 0, 1, -1, 5], bitorder=["big", "little"])
    add("unpackbits", [(b * 37).astype("u1") for b in bits], axis=[None, 0, 1, 5],
        count=[None, 0, 3, -3, 20, -99], bitorder=["big", "little"])


def polynomials(add: Any) -> None:
    for name in ("polyadd", "polysub"):
        add(name, VECTORS, VECTORS)
    for name in ("polymul", "polydiv"):     # NumPy always drops leading zeros
        add(name, VECTORS, VECTORS, over=lambda o, a, b, f=name: getattr(o, f)(
            a, b, **({} if o is np else {"trim_leading_zeros": True})))
    add("polyder", VECTORS, [0, 1, 2, 5, -1])
    add("polyint", VECTORS, [0, 1, 2, 5, -1])
    add("polyint", VECTORS, [2], k=[3, [1.0, 2], [1, 2, 3], [], 2j],
        over=lambda o, p, m, k: o.polyint(p, m, np.asarray(k)))
    add("poly", VECTORS)
    add("roots", VECTORS, over=lambda o, p: o.sort_complex(o.roots(p)))
    x = np.linspace(-1, 1, 9)
    add("polyfit", [N(size=9), N(size=(9, 2)), N(size=8), np.arange(9), N(size=9) + 1j],
        [0, 1, 3, -1, 1.5], [{}, {"w": np.arange(1.0, 10)}, {"full": True}, {"cov": True},
                             {"cov": "unscaled"}, {"rcond": 1e-3}, {"w": x[:3]}],
        over=lambda o, y, deg, kw: o.polyfit(x, y, deg, **kw))


def statistics(add: Any) -> None:
    x = N(size=(3, 6))
    z = x + 1j * N(size=(3, 6))
    counts, weights = np.array([1, 2, 0, 1, 1, 3]), np.array([0.1, 2, 3, 0.5, 1, 1])
    data = [x, x[0], z, x.T, np.array(2.0), np.zeros((3, 0)), np.zeros(0), np.zeros((2, 2, 2))]
    add("cov", data, [None, x[0], x[:2]], [
        {}, {"rowvar": False}, {"bias": True}, {"ddof": 2}, {"ddof": 1.5}, {"fweights": counts},
        {"aweights": weights}, {"fweights": counts, "aweights": weights}, {"fweights": -counts},
        {"aweights": weights[:2]}, {"dtype": np.float32}],
        over=lambda o, m, y, kw: o.cov(m, y, **kw))
    add("corrcoef", data, [None, x[0], x[:2]], rowvar=[True, False])


def samples(add: Any) -> None:
    edges = np.array([-1.0, 0, 0.5, 3])
    data = [N(size=50), np.arange(50), np.arange(12).reshape(3, 4), np.array([]), np.array(3.0),
            np.array([1.0, NAN, 2]), np.array([2, 2, 2]), np.float32(N(size=20))]
    bins = [10, 1, 7, 0, "auto", "fd", "other", np.array([0.0, 1, 2.5]), np.array([3, 1]),
            np.array([[1.0, 2]]), np.linspace(-1, 1, 30)]
    for name in ("histogram", "histogram_bin_edges"):
        add(name, data, bins, range=[..., (0, 5), (5, 0), (2, 2), (0, INF)])
    add("histogram", data, bins, density=[True], weights=[..., np.ones(3)])
    points = [N(size=(30, 2)), N(size=(30, 3)), RNG.integers(0, 5, (30, 2)), np.zeros((0, 2)),
              N(size=5), N(size=(2, 2, 2)), [N(size=6), N(size=6)]]
    add("histogramdd", points, [10, 3, 0, [3, 4], [3, edges], [edges, edges], [3, 4, 5]],
        range=[..., [(0, 1), (0, 2)], [None, (0, 2)], [(0, 1)]], density=[..., True])
    pairs = [(N(size=40), N(size=40)), (N(size=3), N(size=4)), (np.zeros(0), np.zeros(0))]
    add("histogram2d", pairs, [10, 3, 0, [3, 4], [3, edges], [3, 4, 5], edges],
        density=[..., True], over=lambda o, p, b, **kw: o.histogram2d(*p, b, **kw))


def changed(o: Any, name: str, a: np.ndarray, *args: Any, **kwargs: Any) -> Any:
    """What NumPy writes into its operand, and ours returns."""
    if o is not np:
        return getattr(o, name)(a, *args, inplace=False, **kwargs)
    a = a.copy()
    getattr(np, name)(a, *args, **kwargs)
    return a


def places(add: Any) -> None:
    matrices = [np.zeros((3, 3)), np.zeros((5, 2)), np.zeros((2, 5)), np.zeros((3, 3, 3)),
                np.zeros((7, 3), int), np.zeros(3), np.zeros((2, 3, 2)), np.zeros((0, 3)),
                np.ones((4, 3), complex)]
    add("fill_diagonal", matrices, [1, np.array([1, 2]), np.arange(10), np.array([])],
        [False, True], over=lambda o, *args: changed(o, "fill_diagonal", *args))
    arrays = [np.arange(6.0), np.arange(6).reshape(2, 3), np.zeros(0), np.array(3.0)]
    add("copyto", [np.arange(6).reshape(2, 3), np.arange(6.0).reshape(2, 3), np.array(3.0)],
        [1, 2.5, np.arange(3), np.float32(2), 1j, [1, 2, 3]],
        ["same_kind", "unsafe", "no"], [True, np.array([True, False, True])],
        over=lambda o, *args: changed(o, "copyto", *args))
    add("putmask", arrays, [7, np.array([10, 20]), np.arange(50), np.array([2.5])],
        over=lambda o, a, v: changed(o, "putmask", a, a > 2, v))
    add("trim_zeros", [np.array([0, 0, 1, 2, 0, 3, 0]), np.zeros(4), np.array([]), np.eye(4)[1:3],
                       np.array([NAN, 0]), np.array(0.0)],
        trim=["fb", "f", "b", "F", "x", ""], axis=[..., 0, -1, (0,), (0, 1), 5])
    add("mask_indices", [0, 1, 3], ["triu", "tril"], [-1, 0, 2],
        over=lambda o, n, f, k: o.mask_indices(n, getattr(o, f), k))


def domains(add: Any) -> None:
    numbers = [np.array([1.0, 4]), np.array([-1.0, 4]), np.array([1, 4]), np.array([-1, 2]),
               np.array([0.5, -0.5]), np.array([2.0, 0.1]), np.array([1j, 2]), -4.0, 4.0, 3, -3,
               np.array([]), np.array([0.0, 1])]
    for name in ("sqrt", "log", "log2", "log10", "arccos", "arcsin", "arctanh"):
        add(f"emath.{name}", numbers)
    add("emath.power", numbers, [2, 0.5, -1, -0.5, 2j])
    add("emath.logn", [2, 0.5, -2.0], numbers)
    add("real_if_close", [np.array([1 + 0j, 2]), np.array([1 + 1e-10j, 2]), np.array([1j]), 2.5],
        [100, 1e-3, 1e7])
    for name in ("asanyarray", "ascontiguousarray", "asfortranarray", "asarray_chkfinite",
                 "require"):
        add(name, [*numbers, [1.0, NAN], [[1, 2]]], dtype=[..., np.complex64])
    add("fix", numbers)


# Judging -----------------------------------------------------------------------------------------

def outcome(call: Callable[[Any], Any], o: Any) -> tuple[Any, Exception | None]:
    with warnings.catch_warnings(), np.errstate(all="ignore"), olympus.enable_x64(True):
        warnings.simplefilter("ignore")
        try:
            return call(o), None
        except Exception as error:
            return None, error


def flat(x: Any) -> list[Any]:
    return [y for e in x for y in flat(e)] if isinstance(x, (tuple, list)) else [x]


def difference(case: Case) -> str:
    """What differs, in words; empty if nothing does."""
    expected, error = outcome(case.call, np)
    found, own = outcome(case.call, onp)
    if error is not None and own is not None:
        same = isinstance(own, type(error)) or isinstance(error, type(own))
        return "" if same else f"{type(error).__name__} expected, found {type(own).__name__}"
    if error is not None:
        return f"nothing where NumPy raises {type(error).__name__}"
    if own is not None:
        return f"{type(own).__name__} where NumPy raises nothing: {str(own)[:60]}"
    expected, found = flat(expected), flat(found)
    if len(expected) != len(found):
        return f"{len(expected)} results expected, found {len(found)}"
    for e, f in zip(map(np.asarray, expected), map(np.asarray, found), strict=True):
        if e.shape != f.shape:
            return f"shape {e.shape} expected, found {f.shape}"
        if e.dtype != f.dtype:
            return f"{e.dtype} expected, found {f.dtype}"
        rough = 1e-4 if e.dtype in (np.float32, np.complex64) else 1e-9
        if not np.allclose(f, e, rough, rough, equal_nan=True):
            return "values"
    return ""


def explanation(family: str, what: str) -> str:
    return next((why for pattern, why in EXPLAINED.items()
                 if re.search(pattern, f"{family}: {what}")), "")


def sweep(names: Sequence[str] = (), share: tuple[int, int] = (0, 1)
          ) -> Iterator[tuple[str, Case, str]]:
    """(family, case, difference) of each case of a share."""
    number, of = share
    for family, cases in families().items():
        if not names or any(n in family for n in names):
            for case in cases[number % of::of]:
                yield family, case, difference(case)


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="families whose name contains one of these")
    parser.add_argument("--share", default="0/1", help="i/n: every n-th case from the i-th on")
    options = parser.parse_args(argv)
    share = tuple(map(int, options.share.split("/")))
    total, open_, reasons = 0, 0, collections.Counter[str]()
    for family, case, what in sweep(options.names, share):    # type: ignore[arg-type]
        total += 1
        if what:
            why = explanation(family, what)
            reasons[why or "not explained"] += 1
            if not why:
                open_ += 1
                print(f"{family}({case.name}): {what}")
    for why, count in reasons.most_common():
        print(f"{count:6}  {why}")
    print(f"{total} calls, {total - sum(reasons.values())} agree")
    return bool(open_)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
