"""Generated programs on meshes of eight devices beside the same programs of one device.

    PYTHONPATH=. python tools/sharded_programs.py [--count 40] [--seed 0]

A program is a chain of steps on two 8 x 8 matrices; mesh, types of axes and specifications are
drawn. Where types refuse a step, its operands are put on every device as a whole first, as a user
would. Each program runs eagerly, under jit, grad, jvp, vmap, linearize and checkpoint; values must
equal the values of the unsharded program, gradients must be sharded as their operands, and arrays
must be where their types say. Exits with 1 at the first program that differs, and prints its seed.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

if __name__ == "__main__":      # before the backend starts
    os.environ["XLA_FLAGS"] = (os.environ.get("XLA_FLAGS", "")
                               + " --xla_force_host_platform_device_count=8")

import olympus
import olympus.numpy as onp
from olympus import lax
from olympus._src.types.sharding import sharding_in_types
from olympus.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

N = 8
MESHES = [((8,), ("a",)), ((4, 2), ("a", "b")), ((2, 4), ("a", "b")), ((2, 2, 2), ("a", "b", "c"))]


@olympus.custom_jvp
def cube(x: Any) -> Any:
    """A function with a rule of its own."""
    return x * x * x


cube.defjvps(lambda t, out, x: 3 * x * x * t)


@olympus.custom_vjp
def halved(x: Any) -> Any:
    """A function with a reverse rule of its own."""
    return x / 2


halved.defvjp(lambda x: (x / 2, None), lambda _, ct: (ct / 2,))

# (x, w) -> a matrix like x
STEPS: dict[str, Callable[[Any, Any], Any]] = {
    "sin": lambda x, w: onp.sin(x), "scale": lambda x, w: x * 0.5 + 1,
    "transpose": lambda x, w: x.T, "add": lambda x, w: x + w, "product": lambda x, w: x * w,
    "row": lambda x, w: x - w[:1], "column": lambda x, w: x * w.sum(1, keepdims=True) / N,
    "matmul": lambda x, w: x @ w / N, "gram": lambda x, w: onp.einsum("ij,kj->ik", x, w) / N,
    "softmax": lambda x, w: olympus.nn.softmax(x, 1), "mean": lambda x, w: x - x.mean(0),
    "cumsum": lambda x, w: onp.cumsum(x, 1) / N, "sort": lambda x, w: onp.sort(x, 0),
    "reshape": lambda x, w: onp.tanh(x.reshape(4, 2, N)).reshape(N, N),
    "flat": lambda x, w: onp.cos(onp.ravel(x)).reshape(N, N), "flip": lambda x, w: x[::-1],
    "where": lambda x, w: onp.where(x > w, x, 0.5 * w), "max": lambda x, w: onp.maximum(x, w),
    "join": lambda x, w: onp.concatenate([x[:4], w[:4]]), "roll": lambda x, w: onp.roll(x, 1, 1),
    "set": lambda x, w: x.at[2].set(w[3]), "take": lambda x, w: x[onp.array([3, 1, 0, 2] * 2)],
    "pad": lambda x, w: onp.pad(x, ((0, 0), (1, 1)))[:, 2:], "norm": lambda x, w: x / (
        1 + onp.linalg.norm(w)), "outer": lambda x, w: onp.outer(x.sum(1), w.sum(0)) / N,
    "scan": lambda x, w: lax.scan(lambda c, r: (0.5 * c + r, c * r), w[0] * 0, x)[1],
    "loop": lambda x, w: lax.fori_loop(0, 2, lambda i, c: onp.sin(c) + w, x),
    "cond": lambda x, w: lax.cond(True, lambda x: x * 2, lambda x: onp.ones((N, N)), x),
    "vmap": lambda x, w: olympus.vmap(lambda r, s: r * s.sum() / N)(x, w),
    "vmap both": lambda x, w: olympus.vmap(lambda r: r @ w, out_axes=1)(x) / N,
    "checkpoint": lambda x, w: olympus.checkpoint(lambda x: onp.sin(x) * w)(x),
    "custom": lambda x, w: cube(onp.tanh(x)), "custom reverse": lambda x, w: halved(x),
    "jit": lambda x, w: olympus.jit(lambda x, w: x - 0.1 * w)(x, w),
    "solve": lambda x, w: onp.linalg.solve(w / N + 2 * onp.eye(N), x),
    "zeros": lambda x, w: x + onp.zeros_like(w) + onp.ones(N),
}


def specification(chosen: random.Random, names: tuple[str, ...], ndim: int = 2) -> PartitionSpec:
    """A random specification of `ndim` axes of size 8."""
    entries: list[list[str]] = [[] for _ in range(ndim)]
    for name in chosen.sample(names, len(names)):
        place = chosen.randrange(ndim + 1)
        if place < ndim:
            entries[place].append(name)
    return PartitionSpec(*[tuple(e) for e in entries])


def whole(x: Any) -> Any:
    """A value of explicit axes on every device."""
    return olympus.reshard(x, PartitionSpec(*[None] * x.ndim)) if (
        olympus.typeof(x).sharding.mesh.explicit_axes) else x


def step(name: str, out: PartitionSpec | None) -> Callable[[Any, Any], Any]:
    """A step, of whole operands where types refuse it; its result is cut as `out` says, if given.
    """
    def run(x: Any, w: Any) -> Any:
        try:
            y = STEPS[name](x, w)
        except (TypeError, ValueError):
            y = STEPS[name](whole(x), whole(w))
        return y if out is None or not olympus.typeof(y).sharding.mesh.explicit_axes else (
            olympus.reshard(y, out))

    return run


def compare(what: str, got: Any, want: Any) -> None:
    """AssertionError unless trees of arrays have equal values, which are where their types say."""
    for g, w in zip(olympus.tree.leaves(got), olympus.tree.leaves(want), strict=True):
        assert g.aval.sharding == sharding_in_types(g.sharding, g.ndim) or (
            not g.aval.sharded), f"{what}: {g.aval} is on {g.sharding}"
        scale = 1 + np.abs(np.asarray(w)).max(initial=0)
        np.testing.assert_allclose(np.asarray(g) / scale, np.asarray(w) / scale, atol=3e-5,
                                   err_msg=what)


class Drawn(NamedTuple):
    """A program, its arguments on a mesh and as a whole, and the mesh that is set around it."""

    text: str
    steps: list[str]
    f: Callable[[Any, Any], Any]
    loss: Callable[[Any, Any], Any]
    batched: Callable[[Any, Any], Any]      # f of a stack of x
    placed: list[Any]
    spread: tuple[Any, Any]     # what `batched` is given
    unsharded: tuple[Any, Any, Any]     # x, w, a stack of x
    around: Mesh | None


def draw(seed: int) -> Drawn:
    """The program of a number."""
    chosen = random.Random(f"sharded {seed}")
    values = np.random.default_rng(seed)
    sizes, names = chosen.choice(MESHES)
    kinds = chosen.choice([[AxisType.Explicit], [AxisType.Explicit], [AxisType.Auto],
                           [AxisType.Auto, AxisType.Explicit]])
    types = tuple(chosen.choice(kinds) for _ in names)
    mesh = Mesh(np.array(olympus.devices()).reshape(sizes), names, types)
    explicit = mesh.explicit_axes
    steps = [(name, specification(chosen, explicit) if chosen.random() < 0.25 else None)
             for name in chosen.choices(list(STEPS), k=chosen.randint(2, 5))]
    specs = [specification(chosen, names) for _ in range(2)]
    around = mesh if explicit or chosen.random() < 0.5 else None
    x, w, t = (onp.asarray(values.normal(size=(N, N)).astype("f")) for _ in range(3))

    def f(x: Any, w: Any) -> Any:
        for name, out in steps:
            x = step(name, out)(x, w)
        return x

    def loss(x: Any, w: Any) -> Any:
        return (whole(f(x, w)) * onp.cos(whole(w))).sum()

    def put(x: Any, *spec: Any) -> Any:
        return olympus.device_put(x, NamedSharding(mesh, PartitionSpec(*spec)))

    chain, placed, stack = [name for name, _ in steps], [
        put(x, *specs[0]), put(w, *specs[1])], onp.stack([x, t])
    return Drawn(f"{seed}: {mesh} {specs} {chain}", chain, f, loss,
                 olympus.vmap(f, in_axes=(0, None)), placed,
                 (put(stack, None, *specs[0]), placed[1]), (x, w, stack), around)


def check(seed: int) -> str:
    """One program in all its modes; AssertionError where it differs. Returns its description."""
    text, steps, f, loss, batched, placed, spread, (x, w, stack), around = draw(seed)
    modes = {
        "eager": f, "jit": olympus.jit(f), "grad": olympus.grad(loss, (0, 1)),
        "jit of grad": olympus.jit(olympus.grad(loss, (0, 1))),
        "grad of checkpoint": olympus.grad(olympus.checkpoint(loss), (0, 1)),
        "jvp": olympus.jit(lambda x, w: olympus.jvp(f, (x, w), (x, w))),
        "linearize": lambda x, w: olympus.linearize(loss, x, w)[1](x, w),
    }
    if "custom reverse" in steps:
        del modes["jvp"], modes["linearize"]
    with olympus.set_mesh(None):
        wanted = {name: run(x, w) for name, run in modes.items()}
        wanted["vmap"] = batched(stack, w)
    with olympus.set_mesh(around):
        for name, run in modes.items():
            got = run(*placed)
            compare(f"{text} {name}", got, wanted[name])
            if "grad" in name:
                assert [g.aval.sharding for g in got] == [p.aval.sharding for p in placed], text
        compare(f"{text} vmap", olympus.jit(batched)(*spread), wanted["vmap"])
    return text


def main() -> int:
    """Check programs one after another."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    failed = 0
    for seed in range(args.seed, args.seed + args.count):
        try:
            check(seed)
        except Exception as error:
            failed += 1
            print(f"seed {seed}: {type(error).__name__}: {str(error)[:700]}")
    print(f"{args.count} programs, {failed} differ")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
