"""Generated programs of shard_map: random meshes, specifications and chains of collectives.

The oracle is NumPy on the parts of all devices, stacked along leading axes, one for each axis of
the mesh, in float64; derivatives are differences of it along a direction.
"""

from typing import Any, NamedTuple

import numpy as np

import olympus
import olympus.numpy as onp
from olympus import lax
from olympus.sharding import AxisType, Mesh, PartitionSpec as P

SIZES = [(8,), (2, 4), (4, 2), (2, 2, 2), (1, 8), (2, 1, 4)]
NAMES = ("x", "y", "z")


class Step(NamedTuple):
    """One operation on parts [rows, columns]: as a device does it, and as NumPy does all."""

    name: str
    device: Any     # part -> part
    whole: Any      # array [*mesh, rows, columns] -> the same


def cut(x, spec, sizes, names):
    """The parts of an array: [*mesh, ...]."""
    parts = np.empty(sizes, object)
    for where in np.ndindex(*sizes):
        part = x
        for axis, entry in enumerate(spec):
            own = (entry,) if isinstance(entry, str) else entry or ()
            n, at = 1, 0
            for name in own:
                i = names.index(name)
                n, at = n * sizes[i], at * sizes[i] + where[i]
            part = np.split(part, n, axis)[at]
        parts[where] = part
    return np.array(parts.tolist())


def together(parts, spec, sizes, names):
    """The array that the parts make: along axes that are not named, the parts at position 0."""
    mesh = len(sizes)
    parts = parts[tuple([slice(None) if any(n in _named(e) for e in spec) else slice(1)
                         for n in names])]
    for axis, entry in enumerate(spec):
        for name in reversed(_named(entry)):
            i = names.index(name)
            pieces = [np.take(parts, [k], i) for k in range(parts.shape[i])]
            parts = np.concatenate(pieces, mesh + axis)
    return parts.reshape(parts.shape[mesh:])


def _named(entry):
    return (entry,) if isinstance(entry, str) else tuple(entry or ())


def steps(rng, sizes, names, shape):
    """A random step for parts of a shape, and the shape after it."""
    own = tuple(rng.permutation(names)[:rng.integers(1, len(names) + 1)].tolist())
    axes = tuple([names.index(n) for n in own])
    count = int(np.prod([sizes[i] for i in axes]))
    one, at = own[0], axes[0]
    size, mesh = sizes[at], len(sizes)
    w = rng.uniform(-1, 1, size=shape[1])

    def spread(x, total):       # the same on all devices of the axes
        return np.broadcast_to(total, x.shape[:mesh] + total.shape[mesh:])

    def gathered(x):            # tiled along rows, row-major over the axes
        x = np.moveaxis(x, axes, range(len(axes)))
        flat = x.reshape(count, *x.shape[len(axes):])
        rows = mesh - len(axes)
        joined = np.concatenate(list(flat), rows)
        out = np.broadcast_to(joined, (*[sizes[i] for i in axes], *joined.shape))
        return np.moveaxis(out, range(len(axes)), axes)

    def scattered(x):
        total = spread(x, x.mean(axes, keepdims=True))
        parts = np.moveaxis(total, axes, range(len(axes)))
        parts = parts.reshape(count, *parts.shape[len(axes):])
        rows = mesh - len(axes)
        mine = np.stack([np.split(p, count, rows)[k] for k, p in enumerate(parts)])
        mine = mine.reshape(*[sizes[i] for i in axes], *mine.shape[1:])
        return np.moveaxis(mine, range(len(axes)), axes)

    def exchanged(x):           # rows to the others, columns from them
        parts = np.moveaxis(x, at, 0)
        rows = mesh - 1
        out = np.stack([np.concatenate([np.split(p, size, rows)[k] for p in parts], rows + 1)
                        for k in range(size)])
        return np.moveaxis(out, 0, at)

    shift = [(i, (i + 1) % size) for i in range(size)]
    found = [
        (Step("sin", onp.sin, np.sin), shape),
        (Step("weights", lambda x: x * w, lambda x: x * w), shape),
        (Step("total", lambda x: x * onp.cos(lax.psum(x.mean(), own)),
              lambda x: x * np.cos(spread(x, x.mean((-1, -2), keepdims=True).sum(
                  axes, keepdims=True)))), shape),
        (Step("psum", lambda x: lax.psum(x, own) / count,
              lambda x: spread(x, x.mean(axes, keepdims=True))), shape),
        (Step("pmean", lambda x: lax.pmean(x, own) * x,
              lambda x: spread(x, x.mean(axes, keepdims=True)) * x), shape),
        (Step("pmax", lambda x: x - lax.pmax(x, own),
              lambda x: x - spread(x, x.max(axes, keepdims=True))), shape),
        (Step("axis_index", lambda x: x * (1 + lax.axis_index(one)) / size,
              lambda x: x * (1 + np.indices(x.shape)[at]) / size), shape),
        (Step("ppermute", lambda x: lax.ppermute(x, one, shift),
              lambda x: np.roll(x, 1, at)), shape),
        (Step("scan", lambda x: lax.scan(lambda c, r: (c / 2 + r * lax.pmean(r, one), c * r),
                                         x[0] * 0, x)[1], lambda x: scanned(x, at, spread)), shape),
        (Step("cond", lambda x: lax.cond(lax.axis_index(one) % 2 == 0, onp.sin, onp.cos, x),
              lambda x: np.where(np.indices(x.shape)[at] % 2 == 0, np.sin(x), np.cos(x))), shape),
        (Step("remat", olympus.checkpoint(lambda x: onp.sin(lax.psum(x, own) / count) * x),
              lambda x: np.sin(spread(x, x.mean(axes, keepdims=True))) * x), shape),
        (Step("jit", olympus.jit(lambda x: lax.psum(x * x, own) / count * x),
              lambda x: spread(x, (x * x).mean(axes, keepdims=True)) * x), shape),
    ]
    if shape[0] * count <= 64:
        found.append((Step("all_gather", lambda x: lax.all_gather(x, own, tiled=True), gathered),
                      (shape[0] * count, shape[1])))
    if shape[0] % count == 0:
        found.append((Step("psum_scatter", lambda x: lax.psum_scatter(x, own, tiled=True) / count,
                           scattered), (shape[0] // count, shape[1])))
    if shape[0] % size == 0:
        found.append((Step("all_to_all", lambda x: lax.all_to_all(x, one, 0, 1, tiled=True),
                           exchanged), (shape[0] // size, shape[1] * size)))
    return found[rng.integers(len(found))]


def scanned(x, at, spread):
    carry, out = np.zeros_like(x[..., 0, :]), []
    for k in range(x.shape[-2]):
        row = x[..., k, :]
        out.append(carry * row)
        carry = carry / 2 + row * spread(row, row.mean(at, keepdims=True))
    return np.stack(out, -2)


class Program:
    """A random chain of steps on a random mesh."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.sizes = sizes = SIZES[rng.integers(len(SIZES))]
        self.names = names = NAMES[:len(sizes)]
        order = rng.permutation(8) if rng.random() < 0.5 else np.arange(8)
        self.mesh = Mesh(np.array(olympus.devices())[order].reshape(sizes), names,
                         (AxisType.Auto,) * len(sizes))
        self.x = rng.normal(size=(16, 8)) / 3
        self.direction = rng.normal(size=(16, 8))
        self.check = bool(rng.random() < 0.6)
        self.in_spec = random_spec(rng, names, some=True)
        self.steps, shape = [], cut(self.x, self.in_spec, sizes, names).shape[-2:]
        for _ in range(rng.integers(1, 6)):
            step, shape = steps(rng, sizes, names, shape)
            self.steps.append(step)
        # What is summed over some axes at the end is the same along them.
        self.same = tuple(rng.permutation(names)[:rng.integers(0, len(names))].tolist())
        self.out_spec = random_spec(rng, [n for n in names if n not in self.same])

    def __str__(self):
        return (f"{dict(zip(self.names, self.sizes, strict=True))} {self.in_spec} -> "
                f"{[s.name for s in self.steps]} psum{self.same} -> {self.out_spec} "
                f"check_vma={self.check}")

    def sharded(self, **options):
        def run(x):
            for step in self.steps:
                x = step.device(x)
            return lax.psum(x, self.same) if self.same else x

        return olympus.shard_map(run, mesh=self.mesh, in_specs=self.in_spec,
                                 out_specs=self.out_spec, check_vma=self.check, **options)

    def oracle(self, x):
        parts = cut(x, self.in_spec, self.sizes, self.names)
        for step in self.steps:
            parts = step.whole(parts)
        axes = tuple([self.names.index(n) for n in self.same])
        total = parts.sum(axes, keepdims=True)
        return together(np.broadcast_to(total, parts.shape), self.out_spec, self.sizes, self.names)

    def run(self, eager=False):
        """Compare value, tangent, gradient and vmap with the oracle; float64 is on."""
        f, x, d = self.sharded(), self.x, self.direction
        want, eps = self.oracle(x), 1e-6
        slope = (self.oracle(x + eps * d) - self.oracle(x - eps * d)) / (2 * eps)
        cotangent = np.cos(np.arange(want.size)).reshape(want.shape)
        got, tangent = olympus.jit(lambda x: olympus.jvp(f, (x,), (d,)))(x)
        gradient = olympus.jit(olympus.grad(lambda x: (f(x) * cotangent).sum()))(x)
        near(got, want, 1e-9)
        near(tangent, slope, 1e-6)
        near((gradient * d).sum(), (tangent * cotangent).sum(), 1e-9)
        both = olympus.jit(olympus.vmap(f))(np.stack([x, x + d]))
        near(both[1], self.oracle(x + d), 1e-9)
        if eager:
            near(f(x), want, 1e-9)


def near(have, want, tolerance):
    scale = 1 + np.abs(want).max()
    assert np.abs(np.asarray(have) - want).max() <= tolerance * scale, (
        np.abs(np.asarray(have) - want).max(), scale)


def random_spec(rng, names, some=False):
    """A specification of two axes that names all of these axes of a mesh, or some."""
    names = [str(n) for n in rng.permutation(names)]
    if some:
        names = names[:rng.integers(0, len(names) + 1)]
    cut_at = rng.integers(0, len(names) + 1)
    return P(tuple(names[:cut_at]) or None, tuple(names[cut_at:]) or None)
