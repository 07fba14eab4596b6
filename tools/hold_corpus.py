"""What holds do to compile time, size, time of a step and memory of fifty programs.

    PYTHONPATH=. python tools/hold_corpus.py [--jobs 1] [--least 48 256] [PATTERN ...]

Each program is compiled with `olympus_hold` "off" and "auto", in a process of its own. Compile time
is CPU time of the process. The steps of both are run by turns, each as often as fits in three
seconds, and the least wall time counts. The size is the number of instructions of the optimised
module; temporaries are what its `memory_analysis` says. The rule of `lowering/holds.py` was chosen
with this table: the sums are to be least, and no program slower by 3 % or larger by 5 %.
"""

from __future__ import annotations

import argparse
import fnmatch
import functools
import json
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import olympus
import olympus.numpy as onp
from olympus import grad, lax, nn, random
from olympus._src.base import config
from olympus._src.lowering import holds
from olympus.scipy import special

Made = tuple[Callable[..., Any], tuple[Any, ...]]
PROGRAMS: dict[str, Callable[[], Made]] = {}


def program(*sizes: int) -> Callable[[Callable[..., Made]], Callable[..., Made]]:
    """Decorator: a program of the corpus for each depth, named by both."""
    def add(make: Callable[..., Made]) -> Callable[..., Made]:
        for size in sizes or (0,):
            name = make.__name__ + (f"_{size}" if sizes else "")
            PROGRAMS[name] = functools.partial(make, *sizes and (size,))
        return make
    return add


def normal(*shape: int, seed: int = 0) -> Any:
    return random.normal(random.key(seed + sum(shape)), shape)


def square(out: Any) -> Any:
    return sum((x ** 2).mean() for x in olympus.tree.leaves(out))


def loss_of(fun: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: square(fun(*args))


# Nets.

def layer_norm(x: Any) -> Any:
    h = x - x.mean(-1, keepdims=True)
    return h * lax.rsqrt((h * h).mean(-1, keepdims=True) + 1e-5)


def rms_norm(x: Any) -> Any:
    return x * lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6)


def stack(layer: Callable[..., Any]) -> Callable[..., Any]:
    def run(layers: Any, x: Any) -> Any:
        for p in layers:
            x = layer(p, x)
        return x
    return run


def dense(depth: int, width: int = 64, batch: int = 32) -> Any:
    return [normal(width, width, seed=i) / width ** 0.5 for i in range(depth)], normal(batch, width)


def transformer_layer(p: Any, x: Any) -> Any:
    batch, length, width = x.shape
    q, k, v = [(layer_norm(x) @ p[n]).reshape(batch, length, 4, width // 4) for n in "qkv"]
    a = nn.softmax(onp.einsum("bthd,bshd->bhts", q, k) / 4.0)
    x = x + onp.einsum("bhts,bshd->bthd", a, v).reshape(x.shape) @ p["o"]
    return x + nn.gelu(layer_norm(x) @ p["a"]) @ p["b"]


def transformer(depth: int) -> Any:
    layers = [{n: normal(*((64, 256) if n == "a" else (256, 64) if n == "b" else (64, 64)),
                         seed=i) / 8 for n in "qkvoab"} for i in range(depth)]
    return layers, normal(4, 32, 64)


@program(12)
def transformer_forward(depth: int) -> Made:
    return stack(transformer_layer), transformer(depth)


@program(6, 12)
def transformer_gradient(depth: int) -> Made:
    return grad(loss_of(stack(transformer_layer))), transformer(depth)


@program(4)
def transformer_hessian_vector(depth: int) -> Made:
    gradient = grad(loss_of(stack(transformer_layer)))
    args = transformer(depth)
    return lambda ws, x: olympus.jvp(lambda ws: gradient(ws, x), (ws,), (ws,))[1], args


@program()
def transformer_bfloat16() -> Made:
    layers, x = transformer(6)
    cast = olympus.tree.map(lambda w: w.astype("bfloat16"), layers)
    return grad(lambda ws, x: square(stack(transformer_layer)(ws, x)).astype("float32")), (
        cast, x.astype("bfloat16"))


@program(24)
def residual_tanh_gradient(depth: int) -> Made:
    return grad(loss_of(stack(lambda w, x: x + onp.tanh(x @ w)))), dense(depth)


@program(24)
def residual_layer_norm_gradient(depth: int) -> Made:
    return grad(loss_of(stack(lambda w, x: x + nn.relu(layer_norm(x) @ w)))), dense(depth)


@program(24)
def residual_post_norm_gradient(depth: int) -> Made:
    return grad(loss_of(stack(lambda w, x: layer_norm(x + nn.relu(x @ w))))), dense(depth)


@program(12)
def gated_rms_gradient(depth: int) -> Made:
    layers = [{"a": w, "b": w.T, "c": w[::-1]} for w in dense(depth, 128)[0]]

    def layer(p: Any, x: Any) -> Any:
        h = rms_norm(x)
        return x + (nn.silu(h @ p["a"]) * (h @ p["c"])) @ p["b"]
    return grad(loss_of(stack(layer))), (layers, normal(64, 128))


@program(12)
def dropout_gradient(depth: int) -> Made:
    def run(ws: Any, x: Any, key: Any) -> Any:
        for i, w in enumerate(ws):
            h = nn.relu(layer_norm(x) @ w)
            x = x + h * random.bernoulli(random.fold_in(key, i), 0.9, h.shape)
        return x
    return grad(loss_of(run)), (*dense(depth), random.key(0))


@program(8)
def plain_mlp_gradient(depth: int) -> Made:
    return grad(loss_of(stack(lambda w, x: nn.gelu(x @ w)))), dense(depth, 128, 64)


@program(8)
def batch_norm_gradient(depth: int) -> Made:
    def layer(w: Any, x: Any) -> Any:
        h = x @ w
        return nn.relu((h - h.mean(0)) * lax.rsqrt(h.var(0) + 1e-5))
    return grad(loss_of(stack(layer))), dense(depth, 128, 64)


@program(6)
def convolutions_gradient(depth: int) -> Made:
    def layer(w: Any, x: Any) -> Any:
        h = lax.conv_general_dilated(x, w, (1, 1), "SAME",
                                     dimension_numbers=("NHWC", "HWIO", "NHWC"))
        h = (h - h.mean((1, 2), keepdims=True)) * lax.rsqrt(h.var((1, 2), keepdims=True) + 1e-5)
        return x + nn.swish(h)
    return grad(loss_of(stack(layer))), (
        [normal(3, 3, 8, 8, seed=i) / 8 for i in range(depth)], normal(2, 16, 16, 8))


@program(12)
def scanned_layers_gradient(depth: int) -> Made:
    ws, x = dense(depth)

    def run(ws: Any, x: Any) -> Any:
        return lax.scan(lambda x, w: (x + nn.relu(layer_norm(x) @ w), None), x, ws)[0]
    return grad(loss_of(run)), (onp.stack(ws), x)


@program(8)
def checkpointed_layers_gradient(depth: int) -> Made:
    layer = olympus.checkpoint(lambda w, x: x + nn.relu(layer_norm(x) @ w))
    return grad(loss_of(stack(layer))), dense(depth)


@program(30)
def gru_gradient(steps: int) -> Made:
    def run(p: Any, xs: Any) -> Any:
        h = onp.zeros((16, 64))
        for t in range(steps):
            z, r = (nn.sigmoid(xs[t] @ p[a] + h @ p[b]) for a, b in ("ab", "cd"))
            h = z * h + (1 - z) * onp.tanh(xs[t] @ p["e"] + (r * h) @ p["f"])
        return h
    return grad(loss_of(run)), ({n: normal(64, 64, seed=i) / 8 for i, n in enumerate("abcdef")},
                                normal(steps, 16, 64))


@program(20)
def lstm_gradient(steps: int) -> Made:
    def run(w: Any, u: Any, xs: Any) -> Any:
        h = c = onp.zeros((16, 64))
        for t in range(steps):
            i, f, g, o = onp.split(xs[t] @ w + h @ u, 4, -1)
            c = nn.sigmoid(f) * c + nn.sigmoid(i) * onp.tanh(g)
            h = nn.sigmoid(o) * onp.tanh(c)
        return h
    return grad(loss_of(run), (0, 1)), (normal(64, 256) / 8, normal(64, 256, seed=1) / 8,
                                        normal(steps, 16, 64))


@program()
def adam_step() -> Made:
    def update(ws: Any, ms: Any, vs: Any, x: Any) -> Any:
        gs = grad(loss_of(stack(lambda w, x: x + nn.relu(layer_norm(x) @ w))))(ws, x)
        norm = onp.sqrt(sum((g ** 2).sum() for g in gs))
        gs = [g * onp.minimum(1, 1 / norm) for g in gs]
        ms = [0.9 * m + 0.1 * g for m, g in zip(ms, gs, strict=True)]
        vs = [0.99 * v + 0.01 * g * g for v, g in zip(vs, gs, strict=True)]
        return [w - 1e-3 * m / (onp.sqrt(v) + 1e-8)
                for w, m, v in zip(ws, ms, vs, strict=True)], ms, vs
    ws, x = dense(8)
    return update, (ws, [w * 0 for w in ws], [w * w for w in ws], x)


@program()
def maml() -> Made:
    net = stack(lambda w, x: onp.tanh(x @ w))

    def task(ws: Any, x: Any, y: Any) -> Any:
        def error(ws: Any) -> Any:
            return ((net(ws, x) - y) ** 2).mean()
        for _ in range(3):
            ws = olympus.tree.map(lambda w, g: w - 0.1 * g, ws, grad(error)(ws))
        return error(ws)
    ws, x = dense(3, 32, 8)
    return grad(lambda ws, xs, ys: olympus.vmap(task, (None, 0, 0))(ws, xs, ys).mean()), (
        ws, onp.stack([x, -x]), onp.stack([x * 2, x]))


@program(12)
def flow_gradient(couplings: int) -> Made:
    def run(ws: Any, x: Any) -> Any:
        a, b = onp.split(x, 2, -1)
        total = 0.0
        for w in ws:
            s, t = onp.split(onp.tanh(a @ w), 2, -1)
            a, b = b * onp.exp(s) + t, a
            total = total + s.sum(-1)
        return (0.5 * (a ** 2 + b ** 2).sum(-1) - total).mean()
    return grad(run), ([normal(32, 64, seed=i) / 8 for i in range(couplings)], normal(128, 64))


@program()
def pinn_gradient() -> Made:
    net = stack(lambda w, x: onp.tanh(x @ w))

    def residual(ws: Any, x: Any) -> Any:
        def u(x: Any) -> Any:
            return net(ws, onp.concatenate([x, x ** 2] * 8)).sum()
        return grad(lambda x: grad(u)(x).sum())(x).sum() + u(x) ** 3
    ws, _ = dense(4, 32)
    return grad(lambda ws, xs: (olympus.vmap(residual, (None, 0))(ws, xs) ** 2).mean()), (
        ws, normal(256, 2))


@program()
def vae_gradient() -> Made:
    def run(p: Any, x: Any, key: Any) -> Any:
        h = nn.relu(x @ p[0])
        mean, log = h @ p[1], h @ p[2]
        z = mean + onp.exp(0.5 * log) * random.normal(key, mean.shape)
        logits = nn.relu(z @ p[3]) @ p[4]
        return (onp.logaddexp(0, logits) - x * logits).sum() - 0.5 * (
            1 + log - mean ** 2 - onp.exp(log)).sum()
    ws = [normal(128, 128, seed=i) / 11 for i in range(5)]
    return grad(run), (ws, normal(64, 128), random.key(1))


# Equations.

def lorenz(y: Any) -> Any:
    return onp.stack([10 * (y[1] - y[0]), y[0] * (28 - y[2]) - y[1], y[0] * y[1] - 8 / 3 * y[2]])


def runge_kutta(field: Callable[[Any], Any], y: Any, dt: float) -> Any:
    a = field(y)
    b = field(y + dt / 2 * a)
    c = field(y + dt / 2 * b)
    d = field(y + dt * c)
    return y + dt / 6 * (a + 2 * b + 2 * c + d)


def steps_of(step: Callable[[Any], Any], count: int) -> Callable[[Any], Any]:
    def run(y: Any) -> Any:
        for _ in range(count):
            y = step(y)
        return y
    return run


def lorenz_step(y: Any) -> Any:
    return runge_kutta(lorenz, y, 0.01)


@program(3, 10)
def lorenz_forward(steps: int) -> Made:
    return steps_of(lorenz_step, steps), (normal(3, 100),)


@program(2, 3, 5)
def lorenz_gradient(steps: int) -> Made:
    return grad(loss_of(steps_of(lorenz_step, steps))), (normal(3, 100),)


@program(2)
def lorenz_hessian(steps: int) -> Made:
    return olympus.hessian(loss_of(steps_of(lorenz_step, steps))), (normal(3, 4),)


@program()
def lorenz_in_a_loop() -> Made:
    return grad(loss_of(lambda y: lax.fori_loop(0, 20, lambda _, y: lorenz_step(y), y))), (
        normal(3, 100),)


@program()
def lorenz_in_a_branch() -> Made:
    run = steps_of(lorenz_step, 2)
    return grad(loss_of(lambda y: lax.cond(y[0, 0] > -9, run, lambda y: 2 * y, y))), (
        normal(3, 100),)


@program(6)
def pendulum_leapfrog_gradient(steps: int) -> Made:
    def run(y: Any) -> Any:
        q, p = y
        for _ in range(steps):
            p = p - 0.05 * onp.sin(q) - 0.01 * onp.roll(q, 1)
            q = q + 0.1 * p
            p = p - 0.05 * onp.sin(q) - 0.01 * onp.roll(q, 1)
        return onp.stack([q, p])
    return grad(loss_of(run)), (normal(2, 500),)


@program(2)
def harmonic_leapfrog_gradient(steps: int) -> Made:
    def run(y: Any) -> Any:
        for _ in range(steps):
            q, p = y[0], y[1]
            p = p - 0.05 * (2 * q - onp.roll(q, 1) - onp.roll(q, -1))
            q = q + 0.1 * p
            p = p - 0.05 * (2 * q - onp.roll(q, 1) - onp.roll(q, -1))
            y = onp.stack([q, p])
        return y
    return grad(loss_of(run)), (normal(2, 500),)


@program(12, 40)
def logistic_gradient(steps: int) -> Made:
    return grad(loss_of(steps_of(lambda x: 3.7 * x * (1 - x), steps))), (normal(1000),)


@program(8)
def newton_gradient(steps: int) -> Made:
    def run(a: Any) -> Any:
        x = a
        for _ in range(steps):
            x = x - (x ** 3 - a) / (3 * x ** 2 + 0.1)
        return x
    return grad(loss_of(run)), (normal(10_000),)


@program(10)
def fixed_point_gradient(steps: int) -> Made:
    w = normal(32, 32) / 12
    return grad(loss_of(lambda x: steps_of(lambda z: onp.tanh(z @ w + x), steps)(x))), (
        normal(64, 32),)


@program(4)
def n_body_gradient(steps: int) -> Made:
    def force(q: Any) -> Any:
        d = q[:, None] - q[None]
        return -(d / ((d ** 2).sum(-1, keepdims=True) + 0.1) ** 1.5).sum(1)

    def run(q: Any, p: Any) -> Any:
        for _ in range(steps):
            p = p + 0.01 * force(q)
            q = q + 0.01 * p
        return q
    return grad(loss_of(run)), (normal(128, 3), normal(128, 3, seed=1))


@program(6)
def heat_gradient(steps: int) -> Made:
    def step(u: Any) -> Any:
        near = sum(onp.roll(u, s, a) for s in (1, -1) for a in (0, 1))
        return u + 0.1 * (near - 4 * u)
    return steps_of(step, steps), (normal(100, 100),)


@program(3)
def burgers_gradient(steps: int) -> Made:
    def step(u: Any) -> Any:
        middle = u[1:-1] - 0.1 * u[1:-1] * (u[2:] - u[:-2]) + 0.05 * (
            u[2:] - 2 * u[1:-1] + u[:-2])
        return onp.concatenate([u[:1], middle, u[-1:]])
    return grad(loss_of(steps_of(step, steps))), (normal(1000),)


@program()
def neural_ode_gradient() -> Made:
    w, v = normal(32, 32) / 6, normal(32, 32, seed=1) / 6

    def run(ws: Any, y: Any) -> Any:
        def step(y: Any) -> Any:
            return runge_kutta(lambda y: onp.tanh(y @ ws[0]) @ ws[1], y, 0.1)
        return steps_of(step, 4)(y)
    return grad(loss_of(run)), ([w, v], normal(64, 32))


# Elementwise programs, special functions, draws, filters.

def black_scholes(s: Any, k: Any, t: Any, sigma: Any, r: Any) -> Any:
    d = (onp.log(s / k) + (r + sigma ** 2 / 2) * t) / (sigma * onp.sqrt(t))
    def cdf(x: Any) -> Any:
        return 0.5 * lax.erfc(-x / 2 ** 0.5)
    return s * cdf(d) - k * onp.exp(-r * t) * cdf(d - sigma * onp.sqrt(t))


def options(count: int) -> tuple[Any, ...]:
    u = random.uniform(random.key(0), (5, count), minval=0.1)
    return (100 * u[0], 100 * u[1], u[2], u[3], 0.1 * u[4])


@program()
def black_scholes_prices() -> Made:
    return black_scholes, options(100_000)


@program()
def black_scholes_greeks() -> Made:
    return grad(lambda *a: black_scholes(*a).sum(), (0, 1, 2, 3, 4)), options(100_000)


@program()
def black_scholes_gamma() -> Made:
    delta = grad(lambda *a: black_scholes(*a).sum())
    return grad(lambda *a: delta(*a).sum(), (0, 3)), options(100_000)


@program()
def special_functions_gradient() -> Made:
    def run(x: Any) -> Any:
        return (special.gammaln(x + 1) + special.digamma(x + 2) * special.erf(x)
                + special.i0e(x) * special.ndtri(nn.sigmoid(x)))
    return grad(loss_of(run)), (random.uniform(random.key(0), (20_000,)) + 0.5,)


@program(30)
def elementwise_chain(length: int) -> Made:
    return grad(loss_of(steps_of(lambda x: onp.sin(x) * 1.1 + x, length))), (normal(10_000),)


@program(30)
def cheap_chain(length: int) -> Made:
    return grad(loss_of(steps_of(lambda x: x * 1.01 + 0.1, length))), (normal(10_000),)


@program(64)
def wide(count: int) -> Made:
    def run(x: Any) -> Any:
        base = (x * 2 + 1) * (x - 3) / (x * x + 1)
        return [(base * i - x).sum() for i in range(count)]
    return run, (normal(1000),)


@program(200)
def many_leaves(count: int) -> Made:
    return lambda xs: [x * 2 + 1 for x in xs], ([normal(8, seed=i) for i in range(count)],)


@program(16)
def split_and_draw(count: int) -> Made:
    def run(key: Any) -> Any:
        out = []
        for _ in range(count):
            key, sub = random.split(key)
            out.append(random.normal(sub, (10,)))
        return out
    return run, (random.key(0),)


@program(4)
def langevin(steps: int) -> Made:
    def run(q: Any, key: Any) -> Any:
        for i in range(steps):
            noise = random.normal(random.fold_in(key, i), q.shape)
            q = q - 0.1 * grad(lambda q: (q ** 4 / 4 - q ** 2 / 2).sum())(q) + 0.4 * noise
        return q
    return run, (normal(1000), random.key(0))


@program(5)
def blurs_and_edges(count: int) -> Made:
    def blur(x: Any) -> Any:
        x = onp.pad(x, 1, mode="edge")
        return sum(x[i:x.shape[0] - 2 + i, j:x.shape[1] - 2 + j]
                   for i in range(3) for j in range(3)) / 9
    return lambda x: x + (x - steps_of(blur, count)(x)) * 2, (normal(64, 64),)


@program()
def softmax_cross_entropy_gradient() -> Made:
    def run(x: Any, w: Any) -> Any:
        return -nn.log_softmax(x @ w)[:, 0].mean()
    return grad(run, (0, 1)), (normal(256, 64), normal(64, 100))


@program()
def gaussian_process_gradient() -> Made:
    def run(p: Any, x: Any, y: Any) -> Any:
        d = ((x[:, None] - x[None]) ** 2 / onp.exp(p[:2])).sum(-1)
        k = onp.exp(p[2]) * onp.exp(-0.5 * d) + onp.exp(p[3]) * onp.eye(len(x)) + 1e-3
        low = onp.linalg.cholesky(k)
        z = olympus.scipy.linalg.solve_triangular(low, y, lower=True)
        return 0.5 * z @ z + onp.log(onp.diagonal(low)).sum()
    return grad(run), (onp.zeros(4), normal(64, 2), normal(64))


@program()
def complex_mandelbrot() -> Made:
    c = normal(100, 100) + 1j * normal(100, 100, seed=1)
    return steps_of(lambda z: z * z * 0.3 + c, 12), (c * 0,)


def measure(name: str, least: tuple[int, int]) -> dict[str, Any]:
    """What a row of the table has, of one program: pairs of off and auto."""
    holds.LEAST, holds.LEAST_PLACES = least
    olympus.config.update("olympus_enable_compilation_cache", False)
    fun, args = PROGRAMS[name]()
    found: dict[str, Any] = {"name": name, "compile": [], "size": [], "temporaries": []}
    steps = []
    for mode in "off", "auto":
        with config.hold(mode):
            lowered = olympus.jit(fun).lower(*args)
            found["held"] = lowered.as_text().count('inlineable = "false"')
            start = time.process_time()
            steps.append(lowered.compile())
            found["compile"].append(time.process_time() - start)
        found["size"].append(steps[-1].as_text().count(" = "))
        found["temporaries"].append(steps[-1].memory_analysis().temp_size_in_bytes / 1000)
        olympus.block_until_ready(steps[-1](*args))
    least_times = [float("inf")] * 2
    end = time.monotonic() + 3
    while time.monotonic() < end:
        for i, step in enumerate(steps):
            start = time.perf_counter()
            olympus.block_until_ready(step(*args))
            least_times[i] = min(least_times[i], time.perf_counter() - start)
    found["step"] = [1000 * t for t in least_times]
    return found


COLUMNS = {"compile": "compile, s", "size": "instructions", "step": "step, ms",
           "temporaries": "temporaries, kB"}


def number(x: float) -> str:
    return f"{x:,.0f}" if x >= 100 else f"{x:.3g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("patterns", nargs="*", default=["*"])
    parser.add_argument("--least", type=int, nargs=2, default=(holds.LEAST, holds.LEAST_PLACES))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.one, options.least)))
        return
    names = [n for n in PROGRAMS if any(fnmatch.fnmatch(n, p) for p in options.patterns)]

    def run(name: str) -> dict[str, Any]:
        command = [sys.executable, __file__, "--one", name, "--least", *map(str, options.least)]
        return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)

    print("| program | holds |", *[f"{c}: off | auto |" for c in COLUMNS.values()])
    print("|---|---|" + "---|" * 2 * len(COLUMNS))
    rows = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for row in pool.map(run, names):
            rows.append(row)
            cells = [number(x) for c in COLUMNS for x in row[c]]
            print(f"| {row['name']} | {row['held']} |", " | ".join(cells), "|", flush=True)
    # An equal module is not compiled again.
    rows = [row for row in rows if row["size"][0] != row["size"][1]]
    sums = [number(sum(row[c][i] for row in rows)) for c in COLUMNS for i in range(2)]
    held = sum(row["held"] for row in rows)
    print(f"| the {len(rows)} that differ | {held} |", " | ".join(sums), "|")


if __name__ == "__main__":
    main()
