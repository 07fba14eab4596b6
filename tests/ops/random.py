"""Rows for keys and bits: Threefry-2x32 in NumPy, after Salmon et al. (SC11), is the oracle."""

import numpy as np

from olympus import random
from olympus.extend.random import threefry2x32_p

from . import Op

K = np.array([7, 2**31 + 5], np.uint32)
X, Y = np.arange(3, dtype=np.uint32), np.arange(5, 8, dtype=np.uint32) ** 9
ROTATIONS = (13, 15, 26, 6, 17, 29, 16, 24)


def cipher(key, x, y):
    words = [key[0], key[1], key[0] ^ key[1] ^ np.uint32(0x1BD11BDA)]
    x, y = x + words[0], y + words[1]
    for i in range(20):
        r = ROTATIONS[i % 8]
        x = x + y
        y = x ^ (y << np.uint32(r) | y >> np.uint32(32 - r))
        if i % 4 == 3:
            n = i // 4 + 1
            x, y = x + words[n % 3], y + words[(n + 1) % 3] + np.uint32(n)
    return x, y


def words(key, n):
    return cipher(key, np.zeros(n, np.uint32), np.arange(n, dtype=np.uint32))


def bits(key, n):
    x, y = words(key, n)
    return x ^ y


def fraction(key, n):
    return (bits(key, n) >> np.uint32(9) | np.uint32(0x3F800000)).view(np.float32) - np.float32(1)


def keys(fun):
    """A function of key words in terms of keys."""
    def run(key, *args):
        return random.key_data(fun(random.wrap_key_data(key), *args))
    return run


def row(name, oracle, fun, *args):
    return Op(f"random.{name}", oracle, fun, args, "u", False)


def drawn_rows():
    """Samplers that are a function of one uniform number each."""
    def drawn(name, of_fraction, *params):
        return row(name, lambda k, *p: of_fraction(fraction(k, 5), *p).astype(np.float32),
                   lambda k, *p: getattr(random, name)(random.wrap_key_data(k), *p, (5,),
                                                       np.float32), K, *params)
    two, three = np.float32(2), np.float32(3)
    return (
        drawn("exponential", lambda u: -np.log1p(-u)),
        drawn("power", lambda u, a: (1 - u) ** (1 / a), three),
        drawn("pareto", lambda u, b: (1 - u) ** (-1 / b), three),
        drawn("weibull_min", lambda u, s, c: s * (-np.log1p(-u)) ** (1 / c), two, three),
        drawn("rayleigh", lambda u, s: s * np.sqrt(-2 * np.log(u)), two),
        drawn("triangular", lambda u, a, m, b: np.where(
            u < (m - a) / (b - a), a + np.sqrt(u * (b - a) * (m - a)),
            b - np.sqrt((1 - u) * (b - a) * (b - m))), np.float32(-1), two, three),
    )


ALL = (
    row("threefry2x32", cipher, lambda k, x, y: tuple(threefry2x32_p.encrypt(k, [x, y])), K, X, Y),
    row("key", lambda i: np.stack([np.zeros_like(i), i], -1).astype("u4"),
        lambda i: random.key_data(random.key(i)), np.int32(9)),
    row("split", lambda k: np.stack(words(k, 4), -1), keys(lambda k: random.split(k, 4)), K),
    row("fold_in", lambda k, i: np.stack(cipher(k, np.zeros(1, np.uint32), i[None]), -1)[0],
        keys(random.fold_in), K, np.uint32(9)),
    row("clone", np.copy, keys(random.clone), K),
    row("bits", lambda k: bits(k, 6).reshape(2, 3),
        lambda k: random.bits(random.wrap_key_data(k), (2, 3), "uint32"), K),
    row("uniform", lambda k: fraction(k, 5),
        lambda k: random.uniform(random.wrap_key_data(k), (5,), np.float32), K),
    row("uniform-range", lambda k, a: fraction(k, 5) * (np.float32(3) - a) + a,
        lambda k, a: random.uniform(random.wrap_key_data(k), (5,), np.float32, a, 3.0), K,
        np.float32(-1.5)),
    row("bernoulli", lambda k, p: fraction(k, 5) < p,
        lambda k, p: random.bernoulli(random.wrap_key_data(k), p, (5,)), K, np.float32(0.4)),
    *drawn_rows(),
)
