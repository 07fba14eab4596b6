"""Random collectives on random meshes of eight devices, against NumPy.

    XLA_FLAGS=--xla_force_host_platform_device_count=8 \\
        PYTHONPATH=.:tests python tools/collective_sweep.py [--count N] [--seed N]

Each draws a mesh (sizes, names, order of devices), which of its axes are manual, a collective with
axes, groups and options, a dtype, whether types say what varies, and whether the call is jitted,
and has a vmap within. All devices have values of their own. The exit status is 1 if one differs;
its seed is shown, and draws the same again with --count 1.
"""

from __future__ import annotations

import argparse
import math
import sys
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
from collective_cases import exchanged, gathered, permuted, repeated, scattered

import olympus
from olympus import lax
from olympus.sharding import Mesh, PartitionSpec as P

SIZES = [(8,), (4, 2), (2, 4), (2, 2, 2), (1, 8), (4,), (2, 2), (4, 1, 2)]
DTYPES = ["float32", "float64", "int32", "int8", "bool", "bfloat16", "complex64", "uint16"]


class Draw:
    """One random call: a function of one device's part, and its effect on a group's parts."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = np.random.default_rng(seed)
        self.sizes = SIZES[rng.integers(len(SIZES))]
        self.axes = tuple("abc"[:len(self.sizes)])
        devices = np.array(olympus.devices())[rng.permutation(8)[:math.prod(self.sizes)]]
        self.mesh = Mesh(devices.reshape(self.sizes), self.axes)
        chosen = rng.permutation(len(self.axes))[:rng.integers(1, len(self.axes) + 1)]
        self.names = tuple([self.axes[i] for i in chosen])
        self.n = math.prod([self.sizes[i] for i in chosen])
        others = [a for a in self.axes if a not in self.names]
        self.auto = {a for a in others if rng.random() < 0.3}
        self.check, self.jitted, self.mapped = (rng.random(3) < [0.5, 0.7, 0.3]).tolist()
        self.dtype = str(rng.choice(DTYPES))
        self.groups: list[list[int]] | None = None
        self.kind = str(rng.choice([
            "psum", "pmax", "pmin", "all_gather", "psum_scatter", "all_to_all", "ppermute",
            "pshuffle", "pbroadcast", "axis_index"]))
        self.shape = tuple(map(int, rng.integers(1, 4, rng.integers(0, 4))))
        self.fun, self.oracle = self.collective()
        if self.jitted or self.auto:
            self.jitted = True

    def draw_groups(self, equal: bool) -> int:
        """Partition the positions at random, perhaps; how many are in a group."""
        rng, n = self.rng, self.n
        if rng.random() < 0.5:
            return n
        order = rng.permutation(n).tolist()
        if equal:
            size = int(rng.choice([k for k in range(1, n + 1) if n % k == 0]))
            self.groups = [order[i:i + size] for i in range(0, n, size)]
            return size
        cuts = sorted({0, n, *rng.integers(0, n + 1, 2).tolist()})
        self.groups = [order[i:j] for i, j in zip(cuts, cuts[1:], strict=False)]
        return n

    def options(self) -> dict[str, Any]:
        return {} if self.groups is None else {"axis_index_groups": self.groups}

    def with_axis(self, size: int) -> int:
        """An axis of the part that has this size, or is a multiple of it."""
        at = int(self.rng.integers(len(self.shape) + 1))
        self.shape = (*self.shape[:at], size, *self.shape[at:])
        return at

    def collective(self) -> tuple[Callable[..., Any], Callable[..., Any]]:
        rng, names = self.rng, self.names if len(self.names) > 1 or self.rng.random() < 0.5 else \
            self.names[0]
        match self.kind:
            case "psum" | "pmax" | "pmin":
                if self.kind == "psum" and self.dtype == "bool":
                    self.dtype = "int32"
                self.draw_groups(equal=False)
                reduce = {"psum": np.sum, "pmax": np.max, "pmin": np.min}[self.kind]
                if self.dtype == "complex64" and self.kind != "psum":
                    self.dtype = "float32"      # NumPy's order is the same, but for NaN
                fun = getattr(lax, self.kind)
                return (lambda x: fun(x, names, **self.options())), repeated(
                    lambda xs: reduce(xs, 0, keepdims=False).astype(xs.dtype))
            case "all_gather":
                self.draw_groups(equal=True)
                tiled = bool(self.shape) and rng.random() < 0.5
                at = int(rng.integers(len(self.shape) + (not tiled)))
                return (lambda x: lax.all_gather(x, names, axis=at, tiled=tiled, **self.options())
                        ), gathered(at, tiled)
            case "psum_scatter":
                size, tiled = self.draw_groups(equal=True), rng.random() < 0.5
                at = self.with_axis(size * int(rng.integers(1, 3)) if tiled else size)
                if self.dtype == "bool":
                    self.dtype = "int32"
                cut = scattered(at, tiled)
                return (lambda x: lax.psum_scatter(x, names, scatter_dimension=at, tiled=tiled,
                                                   **self.options())), \
                    lambda xs: cut(xs).astype(xs.dtype)
            case "all_to_all":
                size, tiled = self.draw_groups(equal=True), rng.random() < 0.5
                at = self.with_axis(size * int(rng.integers(1, 3)) if tiled else size)
                to = int(rng.integers(len(self.shape)))
                return (lambda x: lax.all_to_all(x, names, at, to, tiled=tiled, **self.options())
                        ), exchanged(at, to, tiled)
            case "ppermute":
                count = int(rng.integers(0, self.n + 1))
                pairs = list(zip(rng.permutation(self.n)[:count].tolist(),
                                 rng.permutation(self.n)[:count].tolist(), strict=True))
                return (lambda x: lax.ppermute(x, names, pairs)), permuted(pairs)
            case "pshuffle":
                order = rng.permutation(self.n).tolist()
                return (lambda x: lax.pshuffle(x, names, order)), lambda xs: xs[order]
            case "pbroadcast":
                source = int(rng.integers(self.n))
                return (lambda x: lax.pbroadcast(x, names, source)), repeated(
                    lambda xs: xs[source])
            case _:
                return (lambda x: lax.axis_index(names).astype(x.dtype)), lambda xs: np.arange(
                    self.n).astype(xs.dtype)

    def run(self) -> tuple[Any, np.ndarray]:
        """What devices compute, and what NumPy says."""
        manual = [a for a in self.axes if a not in self.auto]
        sizes = [self.mesh.shape[a] for a in manual]
        raw = self.rng.normal(size=(*sizes, *self.shape)) * 9
        xs = np.asarray(olympus.numpy.asarray(raw > 0 if self.dtype == "bool" else raw).astype(
            self.dtype))
        front = (0,) * len(manual)

        def part(x: Any) -> Any:
            if self.mapped:
                out = olympus.vmap(self.fun, 0, 0)(x[front][None])[0]
            else:
                out = self.fun(x[front])
            return out[(None,) * len(manual)]

        fun = olympus.shard_map(part, mesh=self.mesh, in_specs=P(*manual), out_specs=P(*manual),
                                axis_names=set(manual), check_vma=self.check)
        return (olympus.jit(fun) if self.jitted else fun)(xs), self.expected(xs, manual)

    def expected(self, xs: np.ndarray, manual: list[str]) -> np.ndarray:
        places = [manual.index(name) for name in self.names]
        rest = [i for i in range(len(manual)) if i not in places]
        tail = list(range(len(manual), xs.ndim))
        stacked = xs.transpose(*rest, *places, *tail).reshape(-1, self.n, *self.shape)
        out = np.stack([self.of_groups(rows) for rows in stacked])
        out = out.reshape([xs.shape[i] for i in (*rest, *places)] + list(out.shape[2:]))
        return np.moveaxis(out, range(len(manual)), [*rest, *places])

    def of_groups(self, rows: np.ndarray) -> np.ndarray:
        if self.groups is None:
            return self.oracle(rows)
        parts = {i: y for g in self.groups
                 for i, y in zip(g, self.oracle(rows[g]), strict=True)}
        return np.stack([parts[i] for i in range(self.n)])

    def __str__(self) -> str:
        return (f"{self.kind} {self.dtype}{self.shape} over {self.names} of {self.mesh}, "
                f"auto {self.auto}, groups {self.groups}, check {self.check}, jit {self.jitted}, "
                f"vmap {self.mapped}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    wrong = 0
    with olympus.enable_x64(True):
        for seed in range(given.seed, given.seed + given.count):
            draw = Draw(seed)
            try:
                got, want = draw.run()
                assert got.shape == want.shape and got.dtype == want.dtype, (
                    got.shape, got.dtype, want.shape, want.dtype)
                tolerance = 0.05 if draw.dtype == "bfloat16" else 1e-5
                kind = complex if draw.dtype == "complex64" else float
                np.testing.assert_allclose(np.asarray(got).astype(kind), want.astype(kind),
                                           tolerance, tolerance * 9)
            except Exception:
                wrong += 1
                print(f"seed {seed}: {draw}\n{traceback.format_exc(limit=-2)}")
    print(f"{given.count - wrong} of {given.count} as NumPy.")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
