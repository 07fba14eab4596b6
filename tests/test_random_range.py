"""Samplers with parameters outside of their range: each call ends, and NaN gives NaN or an error.

A rejection loop whose condition a bad parameter keeps true would not end; it runs in C++, where
nothing interrupts it, so all samplers run in a process of their own.
"""

import inspect
import itertools
import math
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus import random
from olympus.extend import random as extend

BAD = [np.nan, np.inf, -np.inf, -1.0, 0.0]
PARAMETERS = frozenset("""
    a alpha b beta concentration df dfden dfnum kappa lam left loc logits lower maxval mean minval
    mode mu n nbad ngood nonc nsample p right scale sigma upper
""".split())    # noqa: SIM905
OTHERS = {"shape": None, "colors": np.array([3, 4]), "x": 3, "d": 2, "mean": np.zeros(2),
          "cov": np.eye(2), "axis": -1}


def grid(count):
    """Every combination of bad and one legal value: float32[count, combinations]."""
    points = itertools.product([*BAD, 0.5], repeat=count)
    return np.array(list(points), np.float32).T


def samplers():
    """(name, sampler, its parameters but the key, those of them that are swept)."""
    for name in sorted(random.__all__):
        fun = getattr(random, name)
        try:
            given = list(inspect.signature(fun).parameters.values())
        except (TypeError, ValueError):
            continue
        swept = [p.name for p in given if p.name in PARAMETERS
                 and not (p.name == "mode" and p.default is not p.empty)]      # of precision
        if given and given[0].name == "key" and swept:
            yield name, fun, given[1:], swept


def draw():
    """Prints the name of each sampler before it draws."""
    key = random.key(0)
    for name, fun, given, swept in samplers():
        columns = dict(zip(swept, grid(len(swept)), strict=True))
        size = len(columns[swept[0]])
        arguments = {}
        for p in given:
            if p.name in columns:
                arguments[p.name] = columns[p.name]
            elif p.name == "shape":
                arguments[p.name] = (size,)
            elif p.default is p.empty:
                arguments[p.name] = OTHERS[p.name]
        print(name, flush=True)
        try:
            out = olympus.block_until_ready(fun(key, **arguments))
        except (TypeError, ValueError) as error:
            print("   ", error)
            continue
        print("   ", np.shape(olympus.tree.leaves(out)[0]))


@pytest.mark.slow
def test_every_sampler_ends_whatever_its_parameters():
    here = pathlib.Path(__file__)
    try:
        done = subprocess.run([sys.executable, "-c", f"import {here.stem}; {here.stem}.draw()"],
                              cwd=here.parent, capture_output=True, text=True, timeout=1200)
    except subprocess.TimeoutExpired as endless:
        pytest.fail(f"no end: {(endless.stdout or b'').decode().splitlines()[-1:]}")
    assert not done.returncode, done.stderr
    assert len(list(samplers())) > 20


# Bits that are all 0 or all 1 ---------------------------------------------------------------------

def mix(x):
    x = (x ^ (x >> 16)) * onp.uint32(0x85EBCA6B)
    x = (x ^ (x >> 13)) * onp.uint32(0xC2B2AE35)
    return x ^ (x >> 16)


def places(shape):
    return onp.arange(math.prod(shape), dtype="uint32").reshape(shape)


def derived(key, number):
    """Words (state, how many derivations from here have forced bits, those bits)."""
    state = mix(key[0] * onp.uint32(0x9E3779B9) + number + 1)
    left, bits = (onp.broadcast_to(x, state.shape) for x in (key[1] - (key[1] > 0), key[2]))
    return onp.stack([state, left, bits], -1)


def bits(key, bit_width, shape):
    free = mix(places(shape) ^ key[0]).astype(f"uint{bit_width}")
    if bit_width == 64:
        free = free << 32 | mix(free.astype("uint32")).astype("uint64")
    forced = onp.zeros_like(free) - key[2].astype(free.dtype)      # all bits are that of the key
    return onp.where(key[1] > 0, forced, free)


FORCED = extend.define_prng_impl(
    key_shape=(3,), name="forced", tag="forced", random_bits=bits, fold_in=derived,
    seed=lambda s: onp.stack([s.astype("uint32"), onp.uint32(1), onp.uint32(0)]),
    split=lambda key, shape: derived(key, places(shape)))
DIRECT = {  # what a uniform number or two are made into, by functions that have poles at 0 and 1
    "bernoulli": (0.4,), "cauchy": (), "double_sided_maxwell": (1.0, 2.0), "exponential": (),
    "geometric": (0.25,), "gumbel": (), "laplace": (), "logistic": (), "lognormal": (1.0,),
    "maxwell": (), "normal": (), "pareto": (2.5,), "power": (2.5,), "rademacher": (),
    "rayleigh": (1.5,), "triangular": (-1.0, 0.5, 2.0), "truncated_normal": (-1.0, 2.0),
    "uniform": (), "wald": (1.3,), "weibull_min": (2.0, 1.5), "logseries": (0.6,)}
LOOPS = {"gamma": (0.5,), "beta": (0.5, 2.0), "t": (4.0,), "generalized_normal": (1.5,),
         "poisson": (2.5,), "vonmises": (0.0, 4.0), "binomial": (20, 0.25), "zipf": (3.0,)}
COUNTS = frozenset(("bernoulli", "geometric", "logseries", "rademacher", "poisson", "zipf"))


@pytest.mark.parametrize(("name", "dtype"), [
    *[(name, dtype) for name in DIRECT for dtype in ("float32", "float16", "bfloat16")],
    *[pytest.param(name, "float32", marks=pytest.mark.slow) for name in LOOPS]])
def test_no_sampler_draws_infinity_of_extreme_bits(name, dtype):
    """`geometric` drew 2147483647 where the uniform number is 0, `rayleigh` infinity."""
    given = [np.asarray(x, dtype) for x in {**DIRECT, **LOOPS}[name]]
    kind = {} if name in COUNTS else {"dtype": dtype}
    for depth, ones in itertools.product((1, 2, 3), (0, 1)):
        key = random.wrap_key_data(np.array([5, depth, ones], np.uint32), impl=FORCED)
        drawn = np.asarray(getattr(random, name)(key, *given, shape=(3,), **kind), np.float64)
        assert np.isfinite(drawn).all() and (abs(drawn) < 1e8).all(), (depth, ones, drawn)
        if name == "geometric":
            assert (drawn >= 1).all() and (drawn < 100).all()
