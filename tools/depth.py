"""Compile time against depth, Olympus beside JAX: table and picture of docs/compile_time.md.

    PYTHONPATH=. python tools/depth.py --jax PYTHON_WITH_JAX [--limit 15] [--write] [NAME …]

Each program is traced, lowered, compiled and run in a process of its own, without a cache of
compiled programs, the libraries by turns. Shown are CPU seconds from the function to its first
result, and the least wall time of a step of ten. Where a library took longer than the limit,
its deeper programs are not tried.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy

ROOT = Path(__file__).resolve().parent.parent
PAGE, PICTURE = ROOT / "docs/compile_time.md", ROOT / "docs/images/depth.svg"
Made = tuple[Callable[..., Any], tuple[Any, ...]]
PROGRAMS: dict[str, tuple[Callable[..., Made], tuple[int, ...]]] = {}


def program(name: str, *depths: int) -> Callable[[Callable[..., Made]], Callable[..., Made]]:
    """Decorator: makes a function and its arguments with a library and a depth."""
    def add(make: Callable[..., Made]) -> Callable[..., Made]:
        PROGRAMS[name] = make, depths
        return make
    return add


def normal(L: Any, *shape: int, seed: int = 0) -> Any:
    return L.numpy.asarray(numpy.random.default_rng(seed).standard_normal(shape), "float32")


@program("gradient of n transformer layers", 6, 12, 24, 48)
def transformer(L: Any, depth: int) -> Made:
    np, nn = L.numpy, L.nn

    def norm(x: Any) -> Any:
        h = x - x.mean(-1, keepdims=True)
        return h * L.lax.rsqrt((h * h).mean(-1, keepdims=True) + 1e-5)

    def layer(p: Any, x: Any) -> Any:
        batch, length, width = x.shape
        q, k, v = [(norm(x) @ p[n]).reshape(batch, length, 4, width // 4) for n in "qkv"]
        a = nn.softmax(np.einsum("bthd,bshd->bhts", q, k) / 4.0)
        x = x + np.einsum("bhts,bshd->bthd", a, v).reshape(x.shape) @ p["o"]
        return x + nn.gelu(norm(x) @ p["a"]) @ p["b"]

    def loss(layers: Any, x: Any) -> Any:
        for p in layers:
            x = layer(p, x)
        return (x ** 2).mean()

    sizes = {**dict.fromkeys("qkvo", (64, 64)), "a": (64, 256), "b": (256, 64)}
    layers = [{n: normal(L, *sizes[n], seed=i) / 8 for n in sizes} for i in range(depth)]
    return L.grad(loss), (layers, normal(L, 4, 32, 64))


def runge_kutta(field: Callable[[Any], Any], y: Any, dt: float) -> Any:
    a = field(y)
    b = field(y + dt / 2 * a)
    c = field(y + dt / 2 * b)
    d = field(y + dt * c)
    return y + dt / 6 * (a + 2 * b + 2 * c + d)


@program("gradient of n Runge-Kutta steps", 2, 3, 4, 5, 10, 20, 40)
def lorenz(L: Any, depth: int) -> Made:
    def field(y: Any) -> Any:
        return L.numpy.stack([10 * (y[1] - y[0]), y[0] * (28 - y[2]) - y[1],
                              y[0] * y[1] - 8 / 3 * y[2]])

    def loss(y: Any) -> Any:
        for _ in range(depth):
            y = runge_kutta(field, y, 0.01)
        return (y ** 2).sum()
    return L.grad(loss), (normal(L, 3, 100),)


@program("n × (split, normal)", 4, 16)
def draws(L: Any, depth: int) -> Made:
    def run(key: Any) -> list[Any]:
        found = []
        for _ in range(depth):
            key, sub = L.random.split(key)
            found.append(L.random.normal(sub, (10,)))
        return found
    return run, (L.random.key(0),)


@program("evaluation of an auto-encoder", 1)
def evaluation(L: Any, depth: int) -> Made:
    np, nn, random = L.numpy, L.nn, L.random

    def decode(ws: Any, z: Any) -> Any:
        return nn.relu(nn.relu(z @ ws[3]) @ ws[4]) @ ws[5]

    def run(ws: Any, images: Any, key: Any) -> tuple[Any, Any]:
        draw, binary, shown = random.split(key, 3)
        x = random.bernoulli(binary, images)
        h = nn.relu(nn.relu(x @ ws[0]) @ ws[1])
        mean, log = np.split(h @ ws[2], 2, axis=1)
        z = mean + np.exp(0.5 * log) * random.normal(draw, mean.shape)
        logits = decode(ws, z)
        elbo = -np.sum(np.logaddexp(0.0, np.where(x, -1.0, 1.0) * logits)) + 0.5 * np.sum(
            1 + log - mean ** 2 - np.exp(log))
        codes, pixels = random.split(shown)
        picture = decode(ws, random.normal(codes, (100, 10)))
        return elbo, random.bernoulli(pixels, np.logaddexp(0.0, picture) / 9)
    sizes = (784, 512), (512, 512), (512, 20), (10, 512), (512, 512), (512, 784)
    ws = [normal(L, *size, seed=i) / size[0] ** 0.5 for i, size in enumerate(sizes)]
    return run, (ws, abs(normal(L, 64, 784)) % 1, random.key(0))


@program("step of variational inference over n sites", 4, 16)
def inference(L: Any, depth: int) -> Made:
    np, random = L.numpy, L.random

    def log_normal(x: Any, mean: Any, scale: Any) -> Any:
        return np.sum(-0.5 * ((x - mean) / scale) ** 2 - np.log(scale) - 0.9189385)

    def bound(params: Any, data: Any, key: Any) -> Any:
        total, mean = 0.0, 0.0
        for p in params:
            key, sub = random.split(key)
            scale = L.nn.softplus(p["scale"])
            x = p["mean"] + scale * random.normal(sub, p["mean"].shape)
            total = total + log_normal(x, 0.0, 1.0) - log_normal(x, p["mean"], scale)
            mean = np.tanh(mean + x)
        return -total - log_normal(data, mean, 1.0)

    def step(params: Any, moments: Any, data: Any, key: Any) -> Any:
        loss, slopes = L.value_and_grad(bound)(params, data, key)
        moments = L.tree.map(lambda m, g: 0.9 * m + 0.1 * g, moments, slopes)
        return loss, L.tree.map(lambda p, m: p - 0.01 * m, params, moments), moments
    params = [{n: normal(L, 8, seed=i) for n in ("mean", "scale")} for i in range(depth)]
    return step, (params, params, normal(L, 50, 8), random.key(0))


@program("gradient of a neural ODE", 4)
def neural_ode(L: Any, depth: int) -> Made:
    def loss(ws: Any, y: Any) -> Any:
        for _ in range(depth):
            y = runge_kutta(lambda y: L.numpy.tanh(y @ ws[0]) @ ws[1], y, 0.1)
        return (y ** 2).mean()
    return L.grad(loss), ([normal(L, 32, 32, seed=i) / 6 for i in range(2)], normal(L, 64, 32))


def measure(library: str, name: str, depth: int) -> tuple[float, float]:
    """CPU seconds to the first result, and the least seconds of a step."""
    L = importlib.import_module(library)
    fun, args = PROGRAMS[name][0](L, depth)
    L.block_until_ready((L.jit(lambda x: x + 1)(1.0), args))
    start = time.process_time()
    compiled = L.jit(fun)
    L.block_until_ready(compiled(*args))
    seconds, steps = time.process_time() - start, []
    for _ in range(10):
        since = time.perf_counter()
        L.block_until_ready(compiled(*args))
        steps.append(time.perf_counter() - since)
    return seconds, min(steps)


def ask(python: str, library: str, name: str, depth: int) -> tuple[float, float]:
    """What a library measures in a process of its own."""
    env = {**os.environ, "PYTHONPATH": str(ROOT) if library == "olympus" else "",
           "OLYMPUS_ENABLE_COMPILATION_CACHE": "false"}
    done = subprocess.run([python, __file__, "--worker", library, str(depth), name], env=env,
                          capture_output=True, text=True, check=True)
    seconds, step = json.loads(done.stdout.splitlines()[-1])
    return seconds, step


def rows(name: str, pythons: dict[str, str], limit: float) -> list[tuple[int, list[Any]]]:
    """By depth, what each library measured, or None."""
    found: list[tuple[int, list[Any]]] = []
    for depth in PROGRAMS[name][1]:
        cells = []
        for i, (library, python) in enumerate(pythons.items()):
            before = found[-1][1][i] if found else (0.0, 0.0)
            slow = before is None or before[0] > limit
            cells.append(None if slow else ask(python, library, name, depth))
        found.append((depth, cells))
    return found


def table(found: dict[str, list[tuple[int, list[Any]]]]) -> list[str]:
    lines = ["| program | n | JAX, s | Olympus, s | ratio | JAX's step, ms | Olympus's, ms |",
             "|-|-|-|-|-|-|-|"]
    for name, measured in found.items():
        for depth, (jax, ours) in measured:
            cells = [name, f"{depth}"]
            cells += ([f"{jax[0]:.2f}", f"{ours[0]:.2f}", f"{ours[0] / jax[0]:.2f}",
                       f"{jax[1] * 1e3:.3f}", f"{ours[1] * 1e3:.3f}"] if jax else
                      ["not tried", f"{ours[0]:.2f}", "", "", f"{ours[1] * 1e3:.3f}"])
            lines.append(f"| {' | '.join(cells)} |")
    return lines


def draw(found: dict[str, list[tuple[int, list[Any]]]]) -> None:
    """Seconds against depth, where there are several depths of a program."""
    importlib.import_module("matplotlib").use("svg")
    pyplot = importlib.import_module("matplotlib.pyplot")
    pyplot.rcParams["svg.fonttype"] = "none"
    deep = {name: measured for name, measured in found.items() if len(measured) > 2}
    figure, places = pyplot.subplots(1, len(deep), figsize=(5 * len(deep), 3.6), squeeze=False)
    for place, (name, measured) in zip(places[0], deep.items(), strict=True):
        for i, (label, color) in enumerate((("JAX", "#c44e52"), ("Olympus", "#2a6fb0"))):
            points = [(depth, cells[i][0]) for depth, cells in measured if cells[i]]
            place.loglog(*zip(*points, strict=True), "o-", color=color, label=label)
        depths = [depth for depth, _ in measured]
        place.set_xticks(depths, map(str, depths))
        place.set_yticks([0.3, 1, 3, 10, 30], ["0.3", "1", "3", "10", "30"])
        place.minorticks_off()
        place.set_title(name, fontsize=10)
        place.set_xlabel("n")
        place.set_ylabel("CPU seconds to the first result")
        place.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(PICTURE)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help="parts of the programs' names")
    parser.add_argument("--jax")
    parser.add_argument("--limit", type=float, default=15)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(measure(options.worker[0], options.names[0], int(options.worker[1]))))
        return
    if not options.jax:
        parser.error("--jax: the Python that has JAX is required")
    pythons = {"jax": options.jax, "olympus": sys.executable}
    ask_all = functools.partial(rows, pythons=pythons, limit=options.limit)
    found = {name: ask_all(name) for name in PROGRAMS
             if any(part in name for part in options.names or [""])}
    lines = table(found)
    print("\n".join(lines))
    if options.write:
        draw(found)
        write(lines)


def write(lines: Sequence[str]) -> None:
    before, rest = PAGE.read_text(encoding="utf-8").split("<!-- depth -->\n")[:2]
    after = rest[rest.index("<!-- end -->"):]
    PAGE.write_text(f"{before}<!-- depth -->\n" + "\n".join(lines) + f"\n{after}",
                    encoding="utf-8")


if __name__ == "__main__":
    main()
