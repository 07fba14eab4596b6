"""Eager calls of the most used functions: the time of Olympus over JAX's, name by name.

    python tools/eager_times.py --jax PYTHON_WITH_JAX [--python PYTHON] [--rounds N] [NAME …]

Both libraries run in a process of their own, on one core, and take turns case by case, so that a
slow spell of the machine falls on both. Shown: the smallest CPU time of a call in microseconds, and
the ratio. Sorted by ratio, worst first. NAME selects the cases that contain it.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy

# What `np` and `lax` are, and small operands; the work of XLA is nearly nothing.
SETUP = """
x, y = np.asarray(X), np.asarray(Y); b = x > 0; i = np.arange(8); k = np.asarray([1, 3, 2])
m, m2 = np.asarray(M), np.asarray(M[::-1].copy()); z = np.asarray((X + 1j * Y).astype('complex64'))
v3 = np.asarray(X[:3]); s = np.asarray(M @ M.T); f = x.astype(np.float16); mask = X > 0
"""
UNARY = (
    "sin cos tan exp log log1p expm1 sqrt square abs sign floor ceil round tanh arctan reciprocal "
    "negative isnan isfinite isinf logical_not fabs signbit cbrt log2 log10 exp2 sum mean std var "
    "max min prod any all argmax argmin cumsum cumprod sort argsort ptp diff ediff1d nanmean "
    "nansum nanmax nanmin nanstd nanvar nanargmax nancumsum median average count_nonzero "
    "zeros_like ones_like flip ravel atleast_1d atleast_2d sinc deg2rad real imag conj trapezoid "
    "gradient isreal iscomplex "
)
BINARY = (
    "add multiply subtract divide maximum minimum power floor_divide remainder arctan2 logaddexp "
    "hypot equal less greater_equal logical_and logical_or float_power copysign nextafter "
    "heaviside allclose array_equal array_equiv isclose dot inner vdot outer kron fmod fmax "
    "vecdot matmul convolve correlate "
)
OTHER = {
    "x + y": "x + y", "x + 1.0": "x + 1.0", "2.0 * x": "2.0 * x", "x / 2": "x / 2",
    "x ** 2": "x ** 2", "x - i": "x - i", "x > 0": "x > 0", "x == y": "x == y", "-x": "-x",
    "i + 1": "i + 1", "i // 2": "i // 2", "i % 2": "i % 2", "m @ m": "m @ m2", "z * z": "z * z",
    "z > z": "np.greater(z, z)", "m + x": "m + x", "x & b": "b & b", "~b": "~b", "x + X": "x + X",
    "m @ x": "m @ x", "x @ x": "x @ x", "f * 2.5": "f * 2.5", "1 / x": "1 / x", "abs(x)": "abs(x)",
    "x[0]": "x[0]", "x[-1]": "x[-1]", "x[1:3]": "x[1:3]", "x[::2]": "x[::2]", "x[mask]": "x[mask]",
    "x[k]": "x[k]", "m[0]": "m[0]", "m[:, 0]": "m[:, 0]", "m[1:, :2]": "m[1:, :2]",
    "m[None]": "m[None]", "m[k, k]": "m[k, k]", "x[i]": "x[i]", "x[...]": "x[...]",
    "x.at[0].set": "x.at[0].set(1.0)", "x.at[1:3].add": "x.at[1:3].add(1.0)",
    "x.at[k].set": "x.at[k].set(0.)", "x.at[k].add": "x.at[k].add(v3)",
    "x.sum()": "x.sum()", "m.sum(0)": "m.sum(0)", "m.sum(axis=1)": "m.sum(axis=1)",
    "m.mean(-1)": "m.mean(-1)", "m.max(axis=0)": "m.max(axis=0)", "x.T": "m.T",
    "m.reshape": "m.reshape(4, 16)", "m.reshape(-1)": "m.reshape(-1)",
    "x.astype": "x.astype('int32')", "x.astype(dtype)": "x.astype(np.int32)",
    "m.ravel()": "m.ravel()", "m.flatten()": "m.flatten()", "m.transpose": "m.transpose(1, 0)",
    "m.swapaxes": "m.swapaxes(0, 1)", "m.squeeze": "m[:1].squeeze(0)", "x.clip": "x.clip(0, 1)",
    "x.round()": "x.round()", "x.argmax()": "x.argmax()", "x.copy()": "x.copy()",
    "m.diagonal()": "m.diagonal()", "m.trace()": "m.trace()", "m.dot": "m.dot(m2)",
    "z.real": "z.real", "z.imag": "z.imag", "z.conj()": "z.conj()", "abs(z)": "np.abs(z)",
    "where": "np.where(b, x, y)", "where scalar": "np.where(b, x, 0.0)",
    "where scalars": "np.where(b, 1.0, 0.0)", "einsum": "np.einsum('ij,kj->ik', m, m2)",
    "einsum ii": "np.einsum('ii->i', m)", "matvec": "np.matvec(m, x)", "vecmat": "np.vecmat(x, m)",
    "tensordot": "np.tensordot(m, m2)", "linalg.norm": "np.linalg.norm(x)",
    "linalg.norm axis": "np.linalg.norm(m, axis=1)", "linalg.norm ord": "np.linalg.norm(m, 1)",
    "concatenate": "np.concatenate([x, y])", "stack": "np.stack([x, y])",
    "vstack": "np.vstack([x, y])", "hstack": "np.hstack([x, y])", "split": "np.split(x, 2)",
    "expand_dims": "np.expand_dims(x, 0)", "squeeze": "np.squeeze(m)",
    "broadcast_to": "np.broadcast_to(x, (8, 8))", "moveaxis": "np.moveaxis(m, 0, 1)",
    "swapaxes": "np.swapaxes(m, 0, 1)", "reshape": "np.reshape(m, (64,))",
    "transpose": "np.transpose(m)", "tile": "np.tile(x, 2)", "repeat": "np.repeat(x, 2)",
    "roll": "np.roll(x, 1)", "pad": "np.pad(x, 1)", "clip": "np.clip(x, 0, 1)",
    "clip arrays": "np.clip(x, y, y)", "take": "np.take(x, k)",
    "take axis": "np.take(m, k, axis=0)",
    "take_along_axis": "np.take_along_axis(x, i, axis=0)", "diag": "np.diag(x)",
    "triu": "np.triu(m)", "tril": "np.tril(m)", "trace": "np.trace(m)", "eye": "np.eye(3)",
    "zeros": "np.zeros((8,))", "ones": "np.ones((8,))", "full": "np.full((8,), 2.0)",
    "arange": "np.arange(8)", "linspace": "np.linspace(0, 1, 8)", "full_like": "np.full_like(x, 2)",
    "asarray": "np.asarray(x)", "array": "np.array(X)", "array list": "np.array([1., 2.])",
    "meshgrid": "np.meshgrid(x, y)", "indices": "np.indices((2, 3))", "cross": "np.cross(v3, v3)",
    "quantile": "np.quantile(x, 0.5)", "percentile": "np.percentile(x, 50)",
    "select": "np.select([b, b], [x, y])", "piecewise": "np.piecewise(x, [b], [0.0, 1.0])",
    "searchsorted": "np.searchsorted(x, y)", "nonzero": "np.nonzero(x)",
    "argwhere": "np.argwhere(x)", "unique": "np.unique(i)", "isin": "np.isin(i, k)",
    "bincount": "np.bincount(i, length=8)", "digitize": "np.digitize(x, y)",
    "histogram": "np.histogram(x, 4)", "cov": "np.cov(m)", "corrcoef": "np.corrcoef(m)",
    "vander": "np.vander(x, 3)", "polyval": "np.polyval(v3, x)", "average weights":
    "np.average(x, weights=y)", "mean axis": "np.mean(m, axis=0)", "sum axis": "np.sum(m, axis=0)",
    "sum keepdims": "np.sum(m, axis=-1, keepdims=True)", "var ddof": "np.var(x, ddof=1)",
    "interp": "np.interp(x, i, y)", "nan_to_num": "np.nan_to_num(x)",
    "diff n": "np.diff(m, axis=0)",
    "round 2": "np.round(x, 2)", "outer": "np.outer(x, y)", "unravel_index":
    "np.unravel_index(3, (2, 3))", "rot90": "np.rot90(m)", "flip axis": "np.flip(m, 0)",
    "append": "np.append(x, y)", "delete": "np.delete(x, 1)", "insert": "np.insert(x, 1, 2.0)",
    "lax.add": "lax.add(x, y)", "lax.select": "lax.select(b, x, y)", "lax.exp": "lax.exp(x)",
    "lax.dot": "lax.dot(m, m2)", "lax.dynamic_slice": "lax.dynamic_slice(x, (1,), (3,))",
    "lax.cond": "lax.cond(True, sin, cos, x)", "lax.scan": "lax.scan(step, 0.0, x)",
    "lax.fori_loop": "lax.fori_loop(0, 3, turn, x)",
    "lax.while_loop": "lax.while_loop(below, bump, 0)", "lax.map": "lax.map(double, x)",
    "float(x[0])": "float(x[0])", "iter": "list(v3)", "mlp": "(np.tanh(m @ m2 + x) ** 2).sum()",
}
HELPERS = """
sin, cos = np.sin, np.cos
def step(c, a): return c + a, a
def turn(i, a): return a * 2
def below(n): return n < 5
def bump(n): return n + 1
def double(a): return a * 2
"""


def cases() -> dict[str, str]:
    """Expression by name."""
    found = {name: f"np.{name}(x)" for name in UNARY.split()}
    found |= {name: f"np.{name}(x, y)" for name in BINARY.split()}
    return {**found, **OTHER}


def worker(library: str) -> None:
    """Answer requests [expression, repetitions] by seconds of CPU per call, line by line."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    rng = numpy.random.default_rng(0)
    space: dict[str, Any] = {
        "np": importlib.import_module(f"{library}.numpy"),
        "lax": importlib.import_module(f"{library}.lax"),
        "X": rng.standard_normal(8).astype("float32"), "Y": rng.random(8).astype("float32"),
        "M": rng.standard_normal((8, 8)).astype("float32")}
    exec(SETUP + HELPERS, space)
    calls: dict[str, Any] = {}
    print("ready", flush=True)
    for line in sys.stdin:
        text, n = json.loads(line)
        try:
            if text not in calls:
                calls[text] = eval(f"lambda: {text}", space)
                for _ in range(3):
                    calls[text]()
            call = calls[text]
            start = time.process_time()
            for _ in itertools.repeat(None, n):
                call()
            answer: Any = (time.process_time() - start) / n
        except Exception as error:
            answer = f"{type(error).__name__}: {error}"[:100]
        print(json.dumps(answer), flush=True)


class Worker:
    """A library in a process of its own, which `script --worker library` answers for."""

    def __init__(self, python: str, library: str, env: dict[str, str], script: str = __file__
                 ) -> None:
        self.process = subprocess.Popen(
            [python, script, "--worker", library], stdin=subprocess.PIPE, env=env,
            stdout=subprocess.PIPE, text=True)
        self.process.stdout.readline()

    def ask(self, *request: Any) -> Any:
        """Seconds of CPU, or the error."""
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


def compare(jax: Worker, olympus: Worker, text: str, rounds: int) -> tuple[Any, Any]:
    """The smallest time of each, or the first error."""
    firsts = [w.ask(text, 3) for w in (jax, olympus)]
    if any(isinstance(t, str) for t in firsts):
        return firsts[0], firsts[1]
    n = max(5, int(0.004 / max(firsts)))
    pairs = [(jax.ask(text, n), olympus.ask(text, n)) for _ in range(rounds)]
    return min(p[0] for p in pairs), min(p[1] for p in pairs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--jax")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--worker")
    options = parser.parse_args()
    if options.worker:
        worker(options.worker)
        return
    if not options.jax:
        parser.error("--jax: the Python that has JAX is required")
    root = str(Path(__file__).resolve().parent.parent)
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    jax = Worker(options.jax, "jax", env)
    olympus = Worker(options.python, "olympus", {**env, "PYTHONPATH": root})
    rows = []
    for name, text in cases().items():
        if options.names and not any(part in name for part in options.names):
            continue
        a, b = compare(jax, olympus, text, options.rounds)
        if isinstance(a, str) or isinstance(b, str):
            print(f"{name:20} jax: {a}   olympus: {b}")
            continue
        rows.append((b / a, name, a, b))
    rows.sort(reverse=True)
    for ratio, name, a, b in rows:
        print(f"{name:20} {a * 1e6:9.1f} {b * 1e6:9.1f} {ratio:7.2f}")
    mean = math.exp(sum(math.log(r[0]) for r in rows) / len(rows))
    print(f"{len(rows)} cases, geometric mean {mean:.3f}, "
          f"{sum(r[0] > 1 for r in rows)} above 1")


if __name__ == "__main__":
    main()
