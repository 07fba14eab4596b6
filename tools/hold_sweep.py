"""Holds in programs that XLA divides over devices: values and collectives with and without.

    PYTHONPATH=. python tools/hold_sweep.py [--count 40] [--seed 0] [--least 48 256]
                                            [--skip-corpus] [PATTERN …]

The programs come from tools/sharded_programs.py, drawn by numbers from `--seed` on, on meshes of
eight devices, with their gradients, `jvp` and `vmap`; and from tools/hold_corpus.py, where their
names match the patterns, on four devices, along each axis of their last array that four divides (in
nets the batch or features, in equations their states). Each is compiled with `olympus_hold` "off"
and "auto". Values must be equal within rounding and cut in the same way, and there must be as many
collectives of each kind. With a `--least` below the rule's own more is held. Exits with 1 if a
program differs.
"""

from __future__ import annotations

import argparse
import collections
import fnmatch
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

if __name__ == "__main__":      # before the backend starts
    os.environ["XLA_FLAGS"] = (os.environ.get("XLA_FLAGS", "")
                               + " --xla_force_host_platform_device_count=8")

import hold_corpus
import sharded_programs
from collectives_table import OPERATION

import olympus
from olympus._src.base import config
from olympus._src.lowering import holds
from olympus.sharding import Mesh, NamedSharding, PartitionSpec

PARTS = 4
Made = tuple[Callable[..., Any], tuple[Any, ...]]


def difference(fun: Callable[..., Any], args: tuple[Any, ...]) -> tuple[int, int, str]:
    """How many values are held, how many collectives there are then, and what holds change but
    should not, if anything.
    """
    lowered = {}
    for mode in "off", "auto":
        with config.hold(mode):
            lowered[mode] = olympus.jit(fun).lower(*args)
    held = [each.as_text().count('inlineable = "false"') for each in lowered.values()]
    if held[0] == held[1]:
        return 0, 0, ""     # an equal module
    compiled = [each.compile() for each in lowered.values()]
    kinds = [collections.Counter(kind for _, kind in OPERATION.findall(each.as_text()))
             for each in compiled]
    count = held[1] - held[0], sum(kinds[0].values())
    if kinds[0] != kinds[1]:
        return *count, f"collectives: {dict(kinds[0])} without, {dict(kinds[1])} with holds"
    outs = [olympus.tree.leaves(each(*args)) for each in compiled]
    return *count, next(filter(None, map(unlike, *outs)), "")


def unlike(a: Any, b: Any) -> str:
    """In what two arrays differ."""
    if not a.sharding.is_equivalent_to(b.sharding, a.ndim):
        return f"cut as {a.sharding.spec} without, as {b.sharding.spec} with holds"
    kind = a.dtype if olympus.dtypes.issubdtype(a.dtype, np.inexact) else np.float32
    x, y = (np.asarray(each).astype(np.result_type(kind, np.float32)) for each in (a, b))
    error = abs(x - y).max(initial=0) / (1e-30 + abs(x).max(initial=0))
    return "" if error < 400 * olympus.numpy.finfo(kind).eps else f"values: {error:.1e} of them"


def drawn(seed: int) -> Iterator[tuple[str, Made]]:
    """A program of tools/sharded_programs.py and its derived programs."""
    of = sharded_programs.draw(seed)
    args = tuple(of.placed)
    with olympus.set_mesh(of.around):
        yield of.text, (of.f, args)
        yield f"grad {of.text}", (olympus.grad(of.loss, (0, 1)), args)
        yield f"vmap {of.text}", (of.batched, of.spread)
        if "custom reverse" not in of.steps:
            yield f"jvp {of.text}", (lambda x, w: olympus.jvp(of.f, (x, w), (x, w)), args)


def cut(name: str) -> Iterator[tuple[str, Made]]:
    """A program of the corpus, with its last array of numbers on four devices."""
    fun, args = hold_corpus.PROGRAMS[name]()
    mesh = Mesh(np.array(olympus.devices()[:PARTS]), ("d",))
    leaves, tree = olympus.tree.flatten(args)
    last = max((i for i, x in enumerate(leaves) if not olympus.dtypes.issubdtype(
        x.dtype, olympus.dtypes.prng_key)), default=-1)
    for axis, size in enumerate(leaves[last].shape if last >= 0 else ()):
        if size % PARTS == 0:
            spec = PartitionSpec(*[None] * axis, "d")
            leaf = olympus.device_put(leaves[last], NamedSharding(mesh, spec))
            given = [leaf if i == last else x for i, x in enumerate(leaves)]
            yield f"{name}, axis {axis} of {leaf.aval}", (fun, olympus.tree.unflatten(tree, given))


def main() -> int:
    """Print differences and counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("patterns", nargs="*", default=["*"])
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--least", type=int, nargs=2, default=(holds.LEAST, holds.LEAST_PLACES))
    parser.add_argument("--skip-corpus", action="store_true")
    options = parser.parse_args()
    holds.LEAST, holds.LEAST_PLACES = options.least
    olympus.config.update("olympus_enable_compilation_cache", False)
    sources = [drawn(seed) for seed in range(options.seed, options.seed + options.count)]
    if not options.skip_corpus:
        sources += [cut(name) for name in hold_corpus.PROGRAMS
                    if any(fnmatch.fnmatch(name, p) for p in options.patterns)]
    programs = with_holds = values = collectives = differ = 0
    for source in sources:
        for text, (fun, args) in source:
            held, count, why = difference(fun, args)
            programs, values, collectives = programs + 1, values + held, collectives + count
            with_holds += held > 0
            differ += bool(why)
            if why:
                print(f"{text}: {held} held, {why}", flush=True)
    print(f"{programs} programs, {with_holds} of them with {values} holds and {collectives} "
          f"collectives; {differ} differ")
    return int(differ > 0)


if __name__ == "__main__":
    sys.exit(main())
