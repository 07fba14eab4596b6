"""What tracing with symbolic sizes costs beside tracing with numbers.

    PYTHONPATH=. python tools/symbolic_speed.py [--repeat 30] [--cold] [NAME …]

For each program that a NAME is part of, all unless given: thread CPU time in milliseconds of
`jit(f).trace`, with numbers and with symbolic sizes, the least of many runs in turn, and their
ratio. `--cold` takes other sizes and another scope each time, so that nothing was traced before.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import olympus
import olympus.numpy as onp
from olympus import export, lax, nn

Program = tuple[Callable[..., Any], tuple[Any, ...]]


def spec(*shape: Any, dtype: str = "float32") -> Any:
    return olympus.ShapeDtypeStruct(shape, dtype)


def mlp(weights: Any, x: Any) -> Any:
    for w in weights:
        x = onp.tanh(x @ w)
    return x


def convolutional(kernels: Any, x: Any) -> Any:
    for kernel in kernels:
        x = nn.relu(lax.conv_general_dilated(x, kernel, (1, 1), "SAME",
                                             dimension_numbers=("NHWC", "HWIO", "NHWC")))
    return lax.reduce_window(x, -np.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "SAME").mean((1, 2))


def block(p: Any, x: Any) -> Any:
    h = nn.standardize(x)
    scores = onp.einsum("btd,bsd->bts", h @ p["q"], h @ p["k"]) / 8.0
    mask = onp.tril(onp.ones((x.shape[1], x.shape[1]), bool))
    x = x + nn.softmax(onp.where(mask, scores, -1e9)) @ (h @ p["v"]) @ p["o"]
    return x + nn.gelu(nn.standardize(x) @ p["a"]) @ p["b"]


def gradient(f: Callable[..., Any]) -> Callable[..., Any]:
    return olympus.grad(lambda *args: f(*args).sum())


def programs(b: Any, t: Any) -> dict[str, Program]:
    """Programs and their arguments for sizes b and t."""
    weights = [spec(64, 64)] * 6
    kernels = [spec(3, 3, 3, 8), spec(3, 3, 8, 8), spec(3, 3, 8, 8)]
    p = {"a": spec(64, 256), "b": spec(256, 64), **{name: spec(64, 64) for name in "qkvo"}}
    x = spec(b, t)
    return {
        "mlp": (mlp, (weights, spec(b, 64))),
        "mlp-gradient": (gradient(mlp), (weights, spec(b, 64))),
        "conv": (convolutional, (kernels, spec(b, 32, 32, 3))),
        "conv-spatial": (convolutional, (kernels, spec(b, t, t, 3))),
        "block": (block, (p, spec(b, t, 64))),
        "block-gradient": (gradient(block), (p, spec(b, t, 64))),
        "softmax": (nn.softmax, (x,)),
        "cumsum": (lambda x: onp.cumsum(x, 1), (x,)),
        "slices": (lambda x: (x[1:], x[:-1], x[::2], x[:, None, 1:3], x[-1], x[0]), (x,)),
        "indices": (lambda x, i: (x[i], x.at[i].add(1.0), onp.take(x, i, axis=0)),
                    (x, spec(b, dtype="int32"))),
        "pad": (lambda x: onp.pad(onp.concatenate([x, x], 0), 1), (x,)),
        "reshape": (lambda x: (x.reshape(-1), x.reshape(x.shape[0], -1), x.T.ravel(),
                               onp.broadcast_to(x, (3, *x.shape))), (spec(b, t, 4),)),
        "scan": (lambda x: lax.scan(lambda c, r: (c + r, c * r), onp.zeros(x.shape[1:]), x), (x,)),
        "vmap": (olympus.vmap(lambda x: (x - x.mean()) / x.std()), (x,)),
        "sort": (lambda x: (onp.sort(x, 0), onp.argsort(x, 1)), (x,)),
        "einsum": (lambda x, y: onp.einsum("bt,st->bs", x, y), (x, x)),
    }


def seconds(program: Program) -> float:
    fun, args = program
    jitted = olympus.jit(lambda *args: fun(*args))
    start = time.thread_time()
    jitted.trace(*args)
    return time.thread_time() - start


def pair(step: int) -> tuple[dict[str, Program], dict[str, Program]]:
    b, t = export.symbolic_shape("b, t", constraints=["b >= 2", "t >= 4"])
    return programs(8 + 2 * step, 16 + 2 * step), programs(b, t)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=[""])
    parser.add_argument("--repeat", type=int, default=30)
    parser.add_argument("--cold", action="store_true")
    options = parser.parse_args()
    gc.disable()
    first = pair(0)
    for name in first[0]:
        if not any(part in name for part in options.names):
            continue
        times = []
        for step in range(options.repeat):
            times.append([seconds(p[name]) for p in (pair(step) if options.cold else first)])
            gc.collect(0)
        numbers, symbolic = np.min(times, 0) * 1e3
        print(f"{name:15} {numbers:7.2f} {symbolic:7.2f} {symbolic / numbers:6.2f}", flush=True)


if __name__ == "__main__":
    main()
