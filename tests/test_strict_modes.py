"""The options that refuse mixtures of dtypes and ranks speak of what the user mixes, and no more.

What a function does inside is not the user's: where his operands are of one dtype and of one rank,
a call that runs in the standard mode runs in the strict ones, to results of the same types.
"""

import inspect
import itertools
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ops import KINDS, Op, tables

import olympus
import olympus.numpy as onp
from olympus import image, lax, nn, random
from olympus._src.base import config
from olympus.scipy import cluster, fft, integrate, linalg, ndimage, signal, sparse, special, stats
from olympus.scipy.spatial.transform import Rotation, Slerp

Call = Callable[[], Any]


def types_of(call: Call, strict: bool = False) -> Any:
    """The types of the results, nothing being computed."""
    if strict:
        with olympus.numpy_dtype_promotion("strict"), olympus.numpy_rank_promotion("raise"):
            return types_of(call)
    return [(x.shape, x.dtype, x.weak_type)
            for x in olympus.tree_util.tree_leaves(olympus.eval_shape(call))]


def mixed_in_tests(error: Exception) -> bool:
    """Whether it is a line of the tests that mixes, by an operator."""
    codes, trace = [], error.__traceback__
    while trace is not None:
        codes.append(trace.tb_frame.f_code)
        trace = trace.tb_next
    last = max(i for i, code in enumerate(codes) if Path(code.co_filename).parts[-3] == "tests"
               or Path(code.co_filename) == Path(__file__))
    operator = codes[last + 1]
    return (Path(operator.co_filename).name, operator.co_name) in (
        ("eager.py", "method"), ("array_methods.py", "method"), ("array_methods.py", "operator"))


def plain(args: Any) -> bool:
    """Whether the arrays among operands have one dtype, and one rank but for scalars."""
    arrays = [x for x in olympus.tree_util.tree_leaves(args) if hasattr(x, "dtype")]
    return len({x.dtype for x in arrays}) < 2 and len({x.ndim for x in arrays if x.ndim}) < 2


def rows(table: str) -> Iterator[tuple[str, bool, Call]]:
    """Each row of a table in each of its dtypes, and its cotangents where there are."""
    for row in tables()[table]:
        for letter in row.dtypes if isinstance(row, Op) else ():
            args = tuple([x.astype(KINDS[letter]) if getattr(x, "dtype", None) == np.float64 else x
                          for x in row.args])
            if not plain(args):
                continue
            name, wide = f"{row.name} of {letter}", letter in "dz"
            yield name, wide, lambda row=row, args=args: row.fun(*args)
            if row.grad and letter in "fd":
                yield f"gradient of {name}", wide, lambda row=row, args=args: (
                    lambda out, back: back(out))(*olympus.vjp(row.fun, *args))


@pytest.mark.parametrize("table", tables())
def test_rows_of_one_dtype_and_rank_pass_in_the_strict_modes(table: str) -> None:
    wrong = []
    for name, wide, call in rows(table):
        with olympus.enable_x64(wide):
            expected = types_of(call)
            try:
                with config.traceback_filtering("off"):
                    found = types_of(call, strict=True)
            except (TypeError, ValueError) as error:
                if not mixed_in_tests(error):
                    wrong.append(f"{name}: {error}")
            else:
                wrong += [f"{name}: {found}, not {expected}"] * (found != expected)
    assert not wrong, "\n".join(wrong)


# What no row covers, by the failures that there were ---------------------------------------------

X = np.linspace(0.1, 0.9, 8, dtype=np.float32)
M = np.eye(3, dtype=np.float32) * 2 + np.arange(9, dtype=np.float32).reshape(3, 3) / 9
C, V, CV = M + 1j * M.T, M[0], M[0] + 1j * M[1]
I, MI = np.arange(8, dtype=np.int32), np.arange(9, dtype=np.int32).reshape(3, 3)
Q = np.ones((1, 2, 1, 3), np.float32)
ONE, TWO = np.ones(1, np.int32), np.array([1, 2], np.int32)
TURNS = Rotation(onp.ones((2, 4)) / 2)
BINS = np.linspace(0, 8, 4, dtype=np.float32)


def strict_calls() -> Iterator[tuple[str, Call]]:
    for fun, x in itertools.product(("expm", "sqrtm"), (M, C)):
        yield f"gradient of {fun} of {x.dtype}", lambda fun=fun, x=x: olympus.grad(
            lambda a: abs(getattr(linalg, fun)(a)).sum())(x)
    yield "expm_frechet", lambda: linalg.expm_frechet(C, C)
    yield "rsf2csf", lambda: linalg.rsf2csf(*linalg.schur(M))
    yield "complex logsumexp", lambda: special.logsumexp(CV, return_sign=True)
    for solve, options in ((sparse.linalg.cg, {}), (sparse.linalg.bicgstab, {}),
                           (sparse.linalg.gmres, {"solve_method": "batched"}),
                           (sparse.linalg.gmres, {"solve_method": "incremental"})):
        for a, b in ((M, V), (C, CV)):
            yield f"{solve.__name__} {options} of {a.dtype}", lambda s=solve, o=options, a=a, b=b: (
                olympus.grad(lambda b: abs(s(a, b, **o)[0]).sum())(b))
            yield f"{solve.__name__} {options} of a function", (
                lambda s=solve, o=options, a=a, b=b: s(lambda x: onp.matmul(a, x), b, **o))
    for order, x in itertools.product((0, 1, 3), (M, MI)):
        yield f"map_coordinates {order}", lambda order=order, x=x: ndimage.map_coordinates(
            x, [V, V], order, mode="constant")
    for method in ("linear", "cubic", "lanczos3", "lanczos5"):
        yield f"resize {method}", lambda m=method: image.resize(M, (5, 5), m)
        yield f"scale_and_translate {method}", lambda m=method: image.scale_and_translate(
            M, (5, 5), (0, 1), V[:2], V[:2], m)
    yield "histogram of ints, edges", lambda: onp.histogram(I, BINS)
    yield "histogram of ints, range", lambda: onp.histogram(I, 3, range=(0.0, 8.0))
    yield "lax.dot of two dtypes", lambda: lax.dot(
        np.ones((2, 3), KINDS["e"]), np.ones((3, 2), np.int16))
    yield "attention, lengths", lambda: nn.dot_product_attention(
        Q, Q, Q, query_seq_lengths=ONE, key_value_seq_lengths=ONE)
    yield "istft", lambda: signal.istft(np.ones((3, 5), np.complex64), nperseg=4)
    yield "csd, windows", lambda: signal.csd(X, X, 2.0, nperseg=4, average="median")
    yield "bessel_jn", lambda: special.bessel_jn(X, v=3)
    yield "multigammaln", lambda: special.multigammaln(X + 3, 2)
    yield "lpmn_values", lambda: special.lpmn_values(2, 2, X, True)
    yield "sph_harm_y", lambda: special.sph_harm_y(TWO, ONE, V[:1], V[:1])
    yield "insert at places", lambda: onp.insert(X, TWO, 2.0)
    yield "insert at traced places", lambda: olympus.jit(lambda i: onp.insert(X, i, 2.0))(TWO)
    yield "simpson", lambda: integrate.simpson(M, V)
    yield "Rotation.apply of one vector", lambda: TURNS.apply(V)
    yield "Slerp", lambda: Slerp.init(V[:2], TURNS)(V)


LISTED = dict(strict_calls())


@pytest.mark.parametrize("name", LISTED)
def test_what_a_function_mixes_inside_passes_in_the_strict_modes(name: str) -> None:
    assert types_of(LISTED[name], strict=True) == types_of(LISTED[name])


# Every public function, with every operand one array ---------------------------------------------

def required(fun: Any) -> list[str] | None:
    """The parameters without defaults; None for anything but a function of Olympus."""
    if not callable(fun) or inspect.isclass(fun):
        return None
    try:
        parameters = inspect.signature(fun).parameters.values()
    except (TypeError, ValueError):
        return None
    return [p.name for p in parameters if p.default is p.empty and p.kind is not p.VAR_KEYWORD
            and p.kind is not p.VAR_POSITIONAL]


def distributions() -> Iterator[tuple[str, Any]]:
    for name, group in vars(stats).items():
        if isinstance(group, types.ModuleType):
            yield from ((f"{name}.{n}", f) for n, f in vars(group).items() if n[0] != "_")


SAMPLES = {"matrix": M, "vector": X, "complex": C, "ints": I, "int matrix": MI, "complexes": CV}
PLACES = (nn, onp, onp.linalg, onp.fft, lax, special, linalg, signal, ndimage, integrate, stats,
          fft, cluster.vq, random)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("place", PLACES, ids=lambda m: m.__name__)
def test_every_function_of_equal_operands_passes_in_the_strict_modes(place: Any) -> None:
    found = dict(distributions()) if place is stats else {}
    found |= {n: getattr(place, n) for n in dir(place) if n[0] != "_"}
    wrong, passed = [], 0
    for (name, fun), (kind, x) in itertools.product(found.items(), SAMPLES.items()):
        wanted = required(fun)
        if wanted is None or name in ("matvec", "vecmat"):     # they broadcast equal ranks
            continue
        if place is random:
            values = {"key": random.key(0), "shape": (4,)}
            args = [values.get(n, np.float32(0.5)) for n in wanted]
        else:
            args = [x] * len(wanted)
        call = lambda fun=fun, args=args: fun(*args)
        try:
            expected = types_of(call)
        except Exception:       # whatever it says: it does not take such operands
            continue
        passed += 1
        try:
            if types_of(call, strict=True) != expected:
                wrong.append(f"{name} of {kind}: other types")
        except (TypeError, ValueError) as error:
            wrong.append(f"{name} of {kind}: {error}")
    assert passed > 0
    assert not wrong, "\n".join(wrong)


def test_the_strict_modes_still_refuse_what_the_user_mixes() -> None:
    with olympus.numpy_dtype_promotion("strict"):
        for call in (lambda: linalg.solve(M, V.astype(np.float16)), lambda: onp.append(X, I),
                     lambda: signal.convolve(X, I), lambda: onp.multiply(I, 0.5),
                     lambda: sparse.linalg.cg(lambda x: x + I[:3], V)):
            with pytest.raises(ValueError, match="operands of one dtype are required"):
                call()
    with olympus.numpy_rank_promotion("raise"):
        with pytest.raises(ValueError, match="equal ranks are required"):
            stats.norm.logpdf(M, V)
        with pytest.raises(ValueError, match="equal ranks are required"):
            sparse.linalg.cg(lambda x: (x + M)[0], V)
