"""Samplers with parameters outside of their range: each call ends, and NaN gives NaN or an error.

A rejection loop whose condition a bad parameter keeps true would not end; it runs in C++, where
nothing interrupts it, so all samplers run in a process of their own.
"""

import inspect
import itertools
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import olympus
from olympus import random

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
