#!/usr/bin/env python3
"""Write tests/random_frozen.py: what JAX 0.10.2's `jax.random` returns, for the bit-stream tests.

    /path/to/venv-with-jax-0.10.2/bin/python tools/freeze_random.py > tests/random_frozen.py

The one program here that imports jax; nothing installs or runs it but a person who means to freeze
the streams anew. Each row is an expression over the names of the random module and `key`, so that a
test evaluates the same text with Olympus's module.
"""

import itertools
import textwrap
import warnings

import jax
import jax.extend.random
import numpy as np

SEEDS = (0, 42)
SHAPES = ((), (5,), (2, 3))
COV = "np.array([[2, 1], [1, 2]], 'float32')"
SHAPED = (
    *(f"bits(key, SHAPE, '{dtype}')" for dtype in ("uint8", "uint16", "uint32")),
    *(f"uniform(key, SHAPE, '{dtype}')" for dtype in ("float32", "float16", "bfloat16")),
    "uniform(key, SHAPE, 'float32', -2.0, 3.0)",
    *(f"normal(key, SHAPE, '{dtype}')" for dtype in ("float32", "bfloat16")),
    "bernoulli(key, 0.3, SHAPE)",
    "randint(key, SHAPE, 0, 10)",
    "randint(key, SHAPE, -1000, 1000, 'int32')",
    "randint(key, SHAPE, 3, 200, 'uint8')",
    "randint(key, SHAPE, -2**31, 2**31 - 1, 'int32')",
    "categorical(key, np.log(np.array([0.1, 0.2, 0.3, 0.4], 'float32')), shape=SHAPE)",
    "choice(key, 20, SHAPE)",
    "choice(key, np.arange(10, 16), SHAPE, p=np.array([1, 2, 3, 2, 1, 1], 'float32') / 10)",
    "truncated_normal(key, -1.0, 2.0, SHAPE, 'float32')",
    "gumbel(key, SHAPE, 'float32')",
    "exponential(key, SHAPE, 'float32')",
)
PLAIN = (
    "key_data(key)",
    "key_data(split(key))",
    "key_data(split(key, 3))",
    "key_data(split(key, (2, 2)))",
    *(f"key_data(fold_in(key, {n}))" for n in (0, 1, 7, 2**32 - 1)),
    "permutation(key, 8)",
    "permutation(key, np.arange(6).reshape(3, 2))",
    "permutation(key, np.arange(6).reshape(2, 3), axis=1)",
    "permutation(key, np.arange(6).reshape(2, 3), 1, independent=True)",
    "categorical(key, np.zeros((3, 4), 'float32'))",
    "categorical(key, np.zeros((3, 4), 'float32'), axis=0)",
    "choice(key, np.arange(12), (4,), replace=False)",
    "choice(key, 6, (3,), replace=False, p=np.array([1, 2, 3, 2, 1, 1], 'float32') / 10)",
    "uniform(fold_in(key, 3), (4,))",
    "normal(split(key, 4)[2], (4,))",
    *(f"gamma(key, {a}, (4,), 'float32')" for a in (0.3, 7.5)),
    "gamma(key, 2.5, (2, 3), 'bfloat16')",
    "loggamma(key, 0.01, (2, 3), 'float32')",
    "beta(key, 0.5, 2.0, (2, 3), 'float32')",
    "chisquare(key, 3.0, (2, 3), 'float32')",
    "f(key, 3.0, 5.0, (2, 3), 'float32')",
    "t(key, 4.0, (2, 3), 'float32')",
    "generalized_normal(key, 1.5, (2, 3), 'float32')",
    "ball(key, 2, 1.5, (2, 3), 'float32')",
    "dirichlet(key, np.array([0.1, 1.0, 4.0], 'float32'), (2, 3), 'float32')",
    "poisson(key, 3.5, (2, 3), 'int32')",
    "poisson(key, 50.0, (2, 3), 'uint8')",
    "gamma(key, np.array([[0.1, 1, 20], [0, 1e6, 0.9]], 'float32'))",
    "poisson(key, np.array([0, 0.1, 9.9, 10, 1e5], 'float32'))",
    "binomial(key, np.array([0, 1, 20, 30, 5e4], 'float32'), 0.4)",
    "multinomial(key, 30, np.array([0.2, 0.3, 0.5], 'float32'))",
    "multinomial(key, 30, np.array([0.2, 0.3, 0.5], 'float32'), shape=(2, 3), dtype='int32')",
    *(f"multivariate_normal(key, np.ones(2, 'float32'), {COV}, (2,), method='{m}')"
      for m in ("cholesky", "eigh")),
    *(f"orthogonal(key, {args})" for args in ("3, (2,)", "2, m=3", "3, (), 'complex64', 2")),
)
# Three shapes and two dtypes of every other sampler with parameters.
BOTH = (
    "gumbel(key, SHAPE, DTYPE, 'high')", "laplace(key, SHAPE, DTYPE)",
    "logistic(key, SHAPE, DTYPE)",
    "cauchy(key, SHAPE, DTYPE)", "maxwell(key, SHAPE, DTYPE)", "pareto(key, 2.5, SHAPE, DTYPE)",
    "rayleigh(key, 1.5, SHAPE, DTYPE)", "lognormal(key, 0.7, SHAPE, DTYPE)",
    "wald(key, 1.3, SHAPE, DTYPE)", "triangular(key, -1.0, 0.5, 2.0, SHAPE, DTYPE)",
    "weibull_min(key, 2.0, 1.5, SHAPE, DTYPE)", "double_sided_maxwell(key, 1.0, 2.0, SHAPE, DTYPE)",
    "binomial(key, 20, 0.7, SHAPE, DTYPE)", "orthogonal(key, 2, SHAPE, DTYPE)",
    "exponential(key, SHAPE, DTYPE)", "truncated_normal(key, -1.0, 2.0, SHAPE, DTYPE)",
    "chisquare(key, 3.0, SHAPE, DTYPE)",
)
INTEGERS = ("rademacher(key, SHAPE, DTYPE)", "geometric(key, 0.25, SHAPE, DTYPE)")
X64 = (
    "bits(key, SHAPE, 'uint64')",
    "uniform(key, SHAPE, 'float64')",
    "normal(key, SHAPE, 'float64')",
    "randint(key, SHAPE, -10**12, 10**12, 'int64')",
)
PLAIN_X64 = (
    "gamma(key, 0.3, (3,), 'float64')",
    "loggamma(key, 2.5, (3,), 'float64')",
    "poisson(key, 20.0, (3,), 'int64')",
)
SEEDING = ("-1", "1", "2**31 - 1", "2**31", "2**32 - 1")
# Random123, kat_vectors: key, counter, output of Threefry-2x32 with 20 rounds (Salmon et al. 2011).
KNOWN_ANSWERS = (
    ((0x00000000, 0x00000000), (0x00000000, 0x00000000), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
)

HEADER = '''"""Frozen random outputs of JAX 0.10.2, written by tools/freeze_random.py: do not edit.

FROZEN rows are (expression, seed, x64, dtype, shape, flat values): evaluate the expression with the
names of the random module, `np` as NumPy and `key` as `key(seed)` or `PRNGKey(seed)`, under
`enable_x64(x64)`. Unsigned values are bit patterns; floats read back exactly in their own dtype.
KNOWN_ANSWERS rows are (key, counter, output) of Threefry-2x32 with 20 rounds, from Random123.
"""
'''


def spell(value):
    """One element so that its own dtype reads it back exactly."""
    if value.dtype.kind == "u":
        return f"0x{int(value):0{2 * value.dtype.itemsize}X}"
    if value.dtype.kind == "c":
        return f"complex({spell(value.real)}, {spell(value.imag)})"
    if value.dtype.kind in "ib":
        return repr(value.item())
    return repr(float(str(value))) if value.dtype.itemsize >= 4 else repr(float(value))


def row(expression, seed, x64=False):
    """The source text of one frozen row."""
    with jax.enable_x64(x64):
        names = vars(jax.random) | {"np": np, "key": jax.random.key(seed)}
        if expression.startswith("key_data(key("):
            names["key"] = jax.random.key
        value = np.asarray(eval(expression, names))
    flat = value.ravel()
    values = [spell(v) for v in flat]
    back = np.array([eval(v) for v in values], value.dtype)
    assert back.tobytes() == flat.tobytes(), expression
    head = f"({expression!r}, {seed}, {x64}, {value.dtype.name!r}, {value.shape},"
    body = textwrap.fill(", ".join(values), 90)
    return textwrap.indent(head, "    ") + "\n" + textwrap.indent(f"[{body}]),", "     ")


def main():
    """Print the whole data module."""
    assert jax.__version__ == "0.10.2", jax.__version__
    warnings.simplefilter("error")
    print(HEADER)
    print("KNOWN_ANSWERS = [")
    for key, counter, output in KNOWN_ANSWERS:
        parts = [f"(0x{a:08X}, 0x{b:08X})" for a, b in (key, counter, output)]
        print(f"    ({', '.join(parts)}),")
        got = jax.extend.random.threefry_2x32(np.array(key, "uint32"), np.array(counter, "uint32"))
        assert tuple(map(int, got)) == output, "JAX disagrees with Random123"
    print("]\n\n# Seeds that are not plain small numbers: the expression makes its own key.")
    print("SEEDED = [")
    for seed in SEEDING:
        print(row(f"key_data(key({seed}))", 0))
    print("]\n\nFROZEN = [")
    for seed in SEEDS:
        for expression in PLAIN:
            print(row(expression, seed))
        for expression in PLAIN_X64:
            print(row(expression, seed, x64=True))
        for shape in SHAPES:
            for expression in SHAPED:
                print(row(expression.replace("SHAPE", str(shape)), seed))
            for expression in X64:
                print(row(expression.replace("SHAPE", str(shape)), seed, x64=True))
    print("]\n\n# The other samplers.\nOTHERS = [")
    for seed, shape in itertools.product(SEEDS, SHAPES):
        for expressions, dtypes in ((BOTH, ("float32", "float64")), (INTEGERS, ("int8", "int64"))):
            for expression, dtype in itertools.product(expressions, dtypes):
                text = expression.replace("SHAPE", str(shape)).replace("DTYPE", repr(dtype))
                print(row(text, seed, x64="64" in dtype))
    print("]")


if __name__ == "__main__":
    main()
