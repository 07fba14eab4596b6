# pyright: strict
"""What users write, as type checkers see it: strict, and nothing unknown. Run by test_types.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import olympus
import olympus.numpy as onp
from olympus import Array, lax, nn, random


class Params(NamedTuple):
    w: Array
    b: Array


def init(key: Array, width: int) -> Params:
    left, right = random.split(key)
    scale = 1.0 / onp.sqrt(width)
    return Params(random.normal(left, (width, width)) * scale, random.uniform(right, (width,)))


def predict(params: Params, x: Array) -> Array:
    hidden = nn.relu(x @ params.w + params.b)
    hidden = onp.where(hidden > 0, hidden, 0.1 * hidden)
    return nn.log_softmax(hidden, axis=-1)


def loss(params: Params, x: Array, y: Array) -> Array:
    rows = onp.arange(x.shape[0])
    return -onp.mean(predict(params, x)[rows, y])


@olympus.jit
def step(params: Params, x: Array, y: Array) -> tuple[Params, Array]:
    value, grads = olympus.value_and_grad(loss)(params, x, y)
    moved = olympus.tree.map(lambda p, g: p - 0.1 * g, params, grads)
    return moved, value


def running(xs: Array) -> tuple[Array, Array]:
    def body(carry: Array, x: Array) -> tuple[Array, Array]:
        carry = carry + x
        return carry, onp.maximum(carry, 0.0)

    return lax.scan(body, onp.zeros(xs.shape[1:]), xs)


def collatz(n: Array) -> Array:
    def body(state: tuple[Array, Array]) -> tuple[Array, Array]:
        n, count = state
        return lax.cond(n % 2 == 0, lambda: n // 2, lambda: 3 * n + 1), count + 1

    return lax.while_loop(lambda state: state[0] > 1, body, (n, onp.int32(0)))[1]


def newton(f: Callable[[Array], Array], x: Array, steps: int) -> Array:
    slope = olympus.grad(f)

    def improved(i: Array, x: Array) -> Array:
        derivative: Array = slope(x)
        return x - f(x) / derivative

    return lax.fori_loop(0, steps, improved, x)


def statistics(x: Array) -> dict[str, float]:
    norm = onp.linalg.norm(x, axis=-1)
    order = onp.argsort(norm)[::-1]
    top = onp.concatenate([x[order[:2]], onp.ones_like(x[:1])])
    stacked = onp.stack([top, top.T.T]).reshape(-1, x.shape[1]).astype(onp.float32)
    spread = onp.einsum("ij,kj->ik", stacked, stacked)
    return {"mean": float(norm.mean()), "trace": spread.trace().item(),
            "max": float(onp.max(x.at[0, 0].set(1.0, mode=lax.GatherScatterMode.CLIP)))}


def by_option(x: Array) -> tuple[Array, ...]:
    grid, step = onp.linspace(0.0, onp.linalg.norm(x, onp.inf), x.shape[0], retstep=True)
    values, counts = onp.unique(x, return_counts=True)
    line, *rest = onp.polyfit(grid, onp.polyval(onp.polyfit(grid, grid, 1), grid), 1, full=True)
    first, second = onp.atleast_1d(grid[0], grid[1])
    both, places, _ = onp.intersect1d(values, values, return_indices=True)
    weighed = onp.average(x, 0).sum() + onp.indices(x.shape).max() + both[0] + places[0]
    singular = lax.linalg.svd(onp.atleast_2d(x), compute_uv=False)
    q, r = lax.linalg.qr(x)
    return (grid * step, values, counts, line, *rest, first, second, weighed, singular.max(),
            q @ r, lax.sort(x))


@olympus.custom_jvp
def clipped(x: Array) -> Array:
    return onp.clip(x, -1.0, 1.0)


def clipped_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    x, = primals
    return onp.clip(x, -1.0, 1.0), tangents[0]


clipped.defjvp(clipped_jvp)


@olympus.shard_map(out_specs=olympus.P())
def total(part: Array) -> Array:
    return lax.psum(part.sum(), "i")


def spread(x: Array) -> Array:
    return total(x) + olympus.smap(onp.sum, out_axes=0, axis_name="i")(x)


def averaged(params: Params) -> Params:
    return lax.pmean(params, "i")


def whole(x: Array) -> tuple[Array, bool]:
    one = olympus.sharding.make_single_device_sharding(olympus.devices()[0])
    moved: Array = olympus.device_put(x, one)
    return onp.zeros_like(x, device=one) + moved, moved.sharding.is_fully_replicated


def cubes(x: Array) -> Array:
    return onp.sum(onp.sin(x) * x ** 3)


def main() -> None:
    params = init(random.key(0), 4)
    x, y = onp.asarray(np.eye(4, dtype=np.float32)), onp.arange(4)
    params, value = step(params, x, y)
    per_example = olympus.vmap(loss, in_axes=(None, 0, 0))(params, x[:, None], y[:, None])
    jac = olympus.jacfwd(onp.sin)(x[0])
    hess = olympus.hessian(cubes)(x[0])
    out, tangent = olympus.jvp(onp.tanh, (x,), (x,))
    primal, pull = olympus.vjp(onp.cos, x)
    text = olympus.make_olympuspr(predict)(params, x).pretty_print()
    lowered = step.lower(params, x, y).as_text()
    leaves, treedef = olympus.tree.flatten(params)
    total = sum(leaf.size for leaf in leaves)
    again = olympus.tree.unflatten(treedef, leaves)
    print(value, per_example, jac, hess, out, tangent, primal, pull(x), text, lowered, total, again,
          running(x), collatz(onp.int32(7)), newton(lambda x: x ** 2 - 2.0, onp.float32(1.0), 5),
          statistics(x), by_option(x), np.asarray(x), olympus.device_put(x), clipped(x),
          olympus.vmap(averaged, axis_size=2, in_axes=None, axis_name="i")(params), whole(x))


if __name__ == "__main__":
    main()
