#!/usr/bin/env python3
"""Are the samplers' numbers JAX's? A seeded sweep beside another Python that has JAX 0.10.2.

    PYTHONPATH=. python tools/random_sweep.py [--cases 6] [--seed 0] /path/to/python [name …]

Each case is a call of a sampler with parameters, a shape, a dtype and a key of the seeded
generator, with x64 on or off. This process evaluates it with Olympus, the other one, which runs
this file too, with JAX. Cases that one of the two refuses, or that differ by more than a few units
in the last place, are printed; then a line per sampler says how many are equal to the bit.
"""

import argparse
import importlib
import json
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator

import ml_dtypes
import numpy as np

Draw = Callable[[np.random.Generator, tuple], np.ndarray]
SHAPES = [(), (1,), (5,), (2, 3), (3, 1, 4), (0,)]
FLOATS = ["float32", "float32", "float16", "bfloat16", "float64"]
INTS = ["int32", "int8", "uint8", "uint16", "int64"]


def positive(rng: np.random.Generator, shape: tuple) -> np.ndarray:
    """Numbers, few of them small or large."""
    return np.exp(rng.normal(0, 2, shape))


def large(rng: np.random.Generator, shape: tuple) -> np.ndarray:
    """Numbers between 1e-2 and 1e4."""
    return 10 ** rng.uniform(-2, 4, shape)


def real(rng: np.random.Generator, shape: tuple) -> np.ndarray:
    """Numbers of either sign."""
    return rng.normal(0, 2, shape)


def chance(rng: np.random.Generator, shape: tuple) -> np.ndarray:
    """Probabilities."""
    return rng.uniform(0.001, 0.999, shape)


def count(rng: np.random.Generator, shape: tuple) -> np.ndarray:
    """Whole numbers between 0 and 1e5."""
    return np.floor(10 ** rng.uniform(0, 5, shape)) - 1


# Samplers by the kind of their dtypes, with their parameters between the key and the shape.
PLAIN = dict.fromkeys(("uniform", "exponential", "gumbel", "laplace", "logistic", "cauchy",
                       "maxwell"), "f")
PLAIN |= {"normal": "fc", "bits": "u", "rademacher": "fi"}
SHAPED: dict[str, tuple[str, tuple[Draw, ...]]] = {
    "gamma": ("f", (positive,)), "loggamma": ("f", (positive,)), "beta": ("f", (positive,) * 2),
    "chisquare": ("f", (positive,)), "f": ("f", (positive,) * 2), "t": ("f", (positive,)),
    "generalized_normal": ("f", (positive,)), "double_sided_maxwell": ("f", (real, positive)),
    "weibull_min": ("f", (positive,) * 2), "pareto": ("f", (positive,)),
    "rayleigh": ("f", (positive,)), "lognormal": ("f", (chance,)), "wald": ("f", (positive,)),
    "poisson": ("i", (large,)), "geometric": ("i", (chance,)), "binomial": ("f", (count, chance)),
}


def literal(x: np.ndarray, dtype: str, rng: np.random.Generator) -> str:
    """A parameter as text: an array that JAX takes for samples of a dtype, or a Python number."""
    if x.ndim == 0 and rng.random() < 0.5:
        return repr(float(x))
    dtype = dtype if dtype in ("float16", "bfloat16") else "float32"
    return f"np.array({x.tolist()}, {dtype!r})"


def given(draw: Draw, rng: np.random.Generator, shape: tuple, dtype: str) -> str:
    """A parameter of a shape that broadcasts to `shape`."""
    own = shape[int(rng.integers(0, len(shape) + 1)):]
    return literal(np.asarray(draw(rng, own)), dtype, rng)


def dtype_of(kinds: str, rng: np.random.Generator) -> str:
    """A dtype of one of the kinds, by its name."""
    kind = str(rng.choice(list(kinds)))
    names = {"f": FLOATS, "i": INTS, "u": ["uint8", "uint16", "uint32", "uint64"],
             "c": ["complex64", "complex128"]}[kind]
    return str(rng.choice(names))


def others(rng: np.random.Generator, shape: tuple, dtype: str) -> dict[str, str]:
    """Calls of samplers whose arguments follow no common order."""
    n, k = int(rng.integers(1, 5)), int(rng.integers(2, 5))
    low, high = sorted(int(i) for i in rng.integers(-300, 300, 2))
    ordered = np.sort(rng.normal(size=3)).tolist()
    weights = literal(positive(rng, (k,)), dtype, rng)
    root = rng.normal(size=(n, n))
    cov = (root @ root.T + np.eye(n)).tolist()
    wide = rng.choice(["float32", "float64"])
    factored = rng.choice(["float32", "complex64", "float64"])
    method = rng.choice(["cholesky", "eigh", "svd"])
    mode = rng.choice(["low", "high"])
    return {
        "uniform": f"key, {shape}, {dtype!r}, {given(real, rng, shape, dtype)}, 9.5",
        "gumbel": f"key, {shape}, {dtype!r}, mode='high'",
        "truncated_normal": f"key, {given(real, rng, shape, dtype)}, 7.5, {shape}, {dtype!r}",
        "triangular": f"key, {ordered[0]}, {ordered[1]}, {ordered[2]}, {shape}, {dtype!r}",
        "bernoulli": f"key, np.float32({rng.random()}), {shape}, mode='{mode}'",
        "randint": f"key, {shape}, {low}, {high}, '{rng.choice(['int32', 'int16', 'int64'])}'",
        "categorical": f"key, np.log({weights}), shape={shape}, mode='{mode}'",
        "choice": f"key, {k}, {shape}, p={weights} / np.sum({weights})",
        "permutation": f"key, np.arange({6 * k}).reshape({k}, 6), {int(rng.integers(0, 2))}, "
                       f"independent={bool(rng.integers(0, 2))}",
        "dirichlet": f"key, {weights}, {shape}, {dtype!r}",
        "ball": f"key, {n}, {float(positive(rng, ())) + 0.5}, {shape}, {dtype!r}",
        "orthogonal": f"key, {n}, {shape}, '{factored}', {k}",
        "multinomial": f"key, {float(count(rng, ()))}, {weights}, shape={(*shape, k)}",
        "multivariate_normal": f"key, np.ones({n}, 'float32'), np.array({cov}, '{wide}'), "
                               f"{shape}, method='{method}'",
    }


def cases(rng: np.random.Generator, number: int) -> Iterator[dict]:
    """Calls of every sampler, as text, with the seed of their key and whether x64 is on."""
    for _ in range(number):
        shape = SHAPES[rng.integers(len(SHAPES))]
        calls = [(name, f"key, {shape}, {dtype_of(kinds, rng)!r}") for name, kinds in PLAIN.items()]
        for name, (kinds, params) in SHAPED.items():
            dtype = dtype_of(kinds, rng)
            args = [given(draw, rng, shape, dtype) for draw in params]
            calls.append((name, f"key, {', '.join(args)}, shape={shape}, dtype={dtype!r}"))
        calls += others(rng, shape, dtype_of("f", rng)).items()
        for name, args in calls:
            x64 = "64" in args.split("shape=")[-1] or "128" in args or bool(rng.integers(0, 2))
            yield {"name": name, "args": args, "x64": x64, "seed": int(rng.integers(0, 1000))}


def evaluate(package: str, calls: list[dict]) -> list[tuple[str, str, list, str]]:
    """Per call the dtype, shape and values' bytes of its result, or the class of the error."""
    module = importlib.import_module(package)
    module.random = importlib.import_module(f"{package}.random")
    out = []
    for call in calls:
        with module.enable_x64(call["x64"]), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                names = {"np": np, "key": module.random.key(call["seed"])}
                found = np.asarray(eval(f"random.{call['name']}({call['args']})",
                                        {"random": module.random} | names))
                out.append((found.dtype.name, "", list(found.shape), found.tobytes().hex()))
            except Exception as error:
                out.append((type(error).__name__, str(error)[:200], [], ""))
    return out


def distance(dtype: str, ours: np.ndarray, theirs: np.ndarray) -> float:
    """The largest difference in units in the last place of the larger number."""
    if np.dtype(dtype).kind in "iub":
        return float(np.abs(ours.astype(float) - theirs.astype(float)).max())
    wide = np.complex128 if np.dtype(dtype).kind == "c" else np.float64
    a, b = ours.astype(wide), theirs.astype(wide)
    eps = float(ml_dtypes.finfo(ours.real.dtype).eps)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(all="ignore"):
        units = np.abs(a - b) / (eps * np.maximum(np.abs(a), np.abs(b)))
    return float(np.where(same, 0, units).max())


def array(dtype: str, shape: list, data: str) -> np.ndarray:
    """An array from what `evaluate` says about it."""
    dtype = np.dtype(getattr(ml_dtypes, dtype, dtype))
    return np.frombuffer(bytes.fromhex(data), dtype).reshape(shape)


def main() -> None:
    """Run the sweep, or evaluate the calls of a file for another process that does."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("other")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--cases", type=int, default=6)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--evaluate", action="store_true")
    options = parser.parse_args()
    if options.evaluate:
        with open(options.other) as file:
            json.dump(evaluate("jax", json.load(file)), sys.stdout)
        return
    calls = [c for c in cases(np.random.default_rng(options.seed), options.cases)
             if not options.names or c["name"] in options.names]
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(calls, file)
        file.flush()
        theirs = json.loads(subprocess.check_output(
            [options.other, __file__, file.name, "--evaluate"]))
    equal: dict[str, list[float]] = {}
    for call, ours, other in zip(calls, evaluate("olympus", calls), theirs, strict=True):
        if ours[3] == other[3] and ours[0] == other[0] and ours[2] == other[2]:
            units = 0.0
        elif not ours[3] or ours[0] != other[0] or ours[2] != other[2]:
            units = float("inf")
            print(call, "\n   ", ours[:3], "\n   ", other[:3])
        else:
            units = distance(ours[0], array(ours[0], *ours[2:]), array(ours[0], *other[2:]))
            if units > 4:
                print(call, f"\n    {units:.0f} units")
        equal.setdefault(call["name"], []).append(units)
    for name, units in equal.items():
        print(f"{name:24} {sum(u == 0 for u in units):3} of {len(units):3} equal, at most "
              f"{max(units):g} units apart")


if __name__ == "__main__":
    main()
