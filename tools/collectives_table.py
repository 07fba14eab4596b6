"""Which collectives compiled programs have, and how many bytes they give: Olympus beside JAX.

    python tools/collectives_table.py --jax PYTHON_WITH_JAX [--python PYTHON] [--scaling] [NAME …]

Both libraries compile the same programs for eight CPU devices, each in a process of its own. Shown
for each program: the collectives of the optimised module as `kind × count: bytes of results on a
device`; those in a loop's body count once. The exit status is 1 if a program differs.

With `--scaling` the programs are a matmul and a data-parallel training step of one size on 1, 2, 4
and 8 devices, and the compiler's counts of a device's work are shown beside: floating-point
operations, and bytes read and written.
"""

from __future__ import annotations

import argparse
import collections
import importlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy

KINDS = ("all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute|collective-broadcast|"
         "ragged-all-to-all")
OPERATION = re.compile(rf"= (.*?) (?:({KINDS})(?:-start)?)\(")
ARRAY = re.compile(r"([a-z]+)(\d*)[a-z0-9]*\[([\d,]*)\]")
PROGRAMS: dict[str, Callable[..., Any]] = {}
W1, W2 = numpy.ones((2, 64, 64), numpy.float32)
X = numpy.ones((32, 64), numpy.float32)


def program(build: Callable[..., Any]) -> Callable[..., Any]:
    """Register `build(J, np)`: a function to compile, and its arguments."""
    PROGRAMS[build.__name__] = build
    return build


def mesh(J: Any, **axes: int) -> Any:
    """A mesh of eight devices, or some of them, with axes of type Auto."""
    devices = numpy.array(J.devices()[:numpy.prod([*axes.values()])])
    return J.sharding.Mesh(devices.reshape(tuple(axes.values())), tuple(axes))


def mlp(np: Any) -> Callable[..., Any]:
    return lambda params, x: np.tanh(x @ params[0]) @ params[1]


@program
def data_parallel_step(J: Any, np: Any) -> Any:
    def step(params: Any, x: Any) -> Any:
        loss, grads = J.value_and_grad(lambda p: J.lax.pmean((mlp(np)(p, x) ** 2).mean(), "d"))(
            params)
        return [p - 0.1 * g for p, g in zip(params, grads, strict=True)], loss

    P = J.sharding.PartitionSpec
    return J.shard_map(step, mesh=mesh(J, d=8), in_specs=(P(), P("d")), out_specs=(P(), P())), (
        [W1, W2], X)


@program
def tensor_parallel_mlp(J: Any, np: Any) -> Any:
    P = J.sharding.PartitionSpec
    part = lambda w1, w2, x: J.lax.psum(mlp(np)((w1, w2), x), "t")
    return J.shard_map(part, mesh=mesh(J, d=2, t=4), in_specs=(P(None, "t"), P("t"), P("d")),
                       out_specs=P("d")), (W1, W2, X)


@program
def fully_sharded_gradient(J: Any, np: Any) -> Any:
    def loss(params: Any, x: Any) -> Any:
        whole = [J.lax.all_gather(p, "d", tiled=True) for p in params]
        return J.lax.psum((mlp(np)(whole, x) ** 2).sum(), "d")

    P = J.sharding.PartitionSpec
    return J.shard_map(J.grad(loss), mesh=mesh(J, d=8), in_specs=P("d"), out_specs=P("d")), (
        [W1, W2], X)


@program
def scattered_matmul(J: Any, np: Any) -> Any:
    P = J.sharding.PartitionSpec
    part = lambda x, w: J.lax.psum_scatter(x @ w, "t", scatter_dimension=1, tiled=True)
    return J.shard_map(part, mesh=mesh(J, t=8), in_specs=(P(None, "t"), P("t")),
                       out_specs=P(None, "t")), (X, W1)


@program
def sequence_to_heads(J: Any, np: Any) -> Any:
    """The exchange of attention whose sequence is spread: heads instead, and back."""
    P = J.sharding.PartitionSpec

    def part(x: Any) -> Any:
        heads = J.lax.all_to_all(x, "s", split_axis=1, concat_axis=0, tiled=True)
        return J.lax.all_to_all(np.cumsum(heads, 0), "s", split_axis=0, concat_axis=1, tiled=True)

    return J.shard_map(part, mesh=mesh(J, s=8), in_specs=P("s"), out_specs=P("s")), (
        numpy.ones((16, 8, 32), numpy.float32),)


@program
def ring(J: Any, np: Any) -> Any:
    """A matmul whose right operand goes around a ring, in a loop."""
    P = J.sharding.PartitionSpec
    pairs = [(i, (i + 1) % 8) for i in range(8)]

    def part(x: Any, w: Any) -> Any:
        def step(carry: Any, _: Any) -> Any:
            total, w = carry
            return (total + x @ w, J.lax.ppermute(w, "r", pairs)), None

        return J.lax.scan(step, (x @ w, w), None, length=8)[0][0]

    return J.shard_map(part, mesh=mesh(J, r=8), in_specs=(P("r"), P(None, "r")),
                       out_specs=P("r")), (X, W1)


@program
def pipeline(J: Any, np: Any) -> Any:
    """Stages of a pipeline on one axis, data on the other; along the last only XLA divides."""
    P = J.sharding.PartitionSpec

    def part(w: Any, x: Any) -> Any:
        for _ in range(2):
            x = J.lax.ppermute(np.tanh(x @ w[0]), "p", [(0, 1), (1, 0)])
        return J.lax.all_gather(x, "p", axis=0, tiled=True)

    return J.shard_map(part, mesh=mesh(J, p=2, d=2, a=2), in_specs=(P("p"), P("d")),
                       out_specs=P(("p", "d")), axis_names={"p", "d"}, check_vma=False), (
        numpy.stack([W1, W2]), X)


@program
def pmap_in_groups(J: Any, np: Any) -> Any:
    pairs = [[0, 1], [2, 3], [4, 5], [6, 7]]
    part = lambda x: (J.lax.pmean(x, "i", axis_index_groups=pairs), J.lax.all_gather(
        x, "i", axis_index_groups=pairs), J.lax.pmax(x, "i"))
    return J.pmap(part, axis_name="i"), (numpy.ones((8, 4, 16), numpy.float32),)


@program
def pmap_training_step(J: Any, np: Any) -> Any:
    def step(params: Any, x: Any) -> Any:
        grads = J.grad(lambda p: (mlp(np)(p, x) ** 2).mean())(params)
        return [p - 0.1 * g for p, g in zip(params, J.lax.pmean(grads, "i"), strict=True)]

    return J.pmap(step, axis_name="i", in_axes=(None, 0), out_axes=None), (
        [W1, W2], X.reshape(8, 4, 64))


@program
def divided_by_xla(J: Any, np: Any) -> Any:
    """A training step with shardings of arguments alone."""
    P, on = J.sharding.PartitionSpec, mesh(J, d=2, t=4)
    put = lambda x, *spec: J.device_put(x, J.sharding.NamedSharding(on, P(*spec)))

    def step(params: Any, x: Any) -> Any:
        grads = J.grad(lambda p: (mlp(np)(p, x) ** 2).mean())(params)
        return [p - 0.1 * g for p, g in zip(params, grads, strict=True)]

    return step, ([put(W1, None, "t"), put(W2, "t")], put(X, "d"))


@program
def explicit_types(J: Any, np: Any) -> Any:
    """Types say how values are cut; the contraction names its result's sharding."""
    kind, P = J.sharding.AxisType.Explicit, J.sharding.PartitionSpec
    on = J.sharding.Mesh(numpy.array(J.devices()).reshape(2, 4), ("d", "t"), axis_types=(kind,) * 2)
    put = lambda x, *spec: J.device_put(x, J.sharding.NamedSharding(on, P(*spec)))

    def forward(w1: Any, w2: Any, x: Any) -> Any:
        hidden = np.tanh(x @ w1)
        return np.einsum("bh,ho->bo", hidden, w2,
                         out_sharding=J.sharding.NamedSharding(on, P("d", None)))

    return forward, (put(W1, None, "t"), put(W2, "t", None), put(X, "d", None))


# Strong scaling ---------------------------------------------------------------------------------

SCALED: dict[str, Callable[..., Any]] = {}


def scaled(build: Callable[..., Any]) -> Callable[..., Any]:
    """Register `build(J, np, put)` for all numbers of devices; `put` cuts rows if told to."""
    for n in (1, 2, 4, 8):
        def of_size(J: Any, np: Any, n: int = n) -> Any:
            P, on = J.sharding.PartitionSpec, mesh(J, d=n)
            return build(J, np, lambda shape, cut: J.device_put(
                numpy.ones(shape, numpy.float32), J.sharding.NamedSharding(
                    on, P("d") if cut else P())))

        SCALED[f"{build.__name__} on {n}"] = of_size
    return build


@scaled
def matmul(J: Any, np: Any, put: Any) -> Any:
    """Rows of both operands are cut: each device needs the whole right one."""
    return (lambda x, w: x @ w), (put((512, 512), True), put((512, 512), True))


@scaled
def training_step(J: Any, np: Any, put: Any) -> Any:
    """Examples are cut, parameters are not: gradients are summed."""
    def step(params: Any, x: Any) -> Any:
        loss, grads = J.value_and_grad(lambda p: (mlp(np)(p, x) ** 2).mean())(params)
        return [p - 0.1 * g for p, g in zip(params, grads, strict=True)], loss

    return step, ([put((256, 256), False) for _ in range(2)], put((512, 256), True))


# One side ---------------------------------------------------------------------------------------

def bytes_of(types: str) -> int:
    """What the arrays in the text of a type take."""
    total = 0
    for kind, bits, shape in ARRAY.findall(types):
        width = 8 if kind == "pred" else int(bits)
        total += width // 8 * int(numpy.prod([int(n) for n in shape.split(",") if n]))
    return total


def collectives(text: str) -> dict[str, tuple[int, int]]:
    """By kind, how many there are in a module, and the bytes of their results."""
    found: dict[str, list[int]] = collections.defaultdict(lambda: [0, 0])
    for types, kind in OPERATION.findall(text):
        found[kind][0] += 1
        found[kind][1] += bytes_of(types)
    return {kind: (count, size) for kind, (count, size) in sorted(found.items())}


def side(library: str, chosen: list[str]) -> None:
    """Compile the programs with one library, and print their collectives."""
    J, np = importlib.import_module(library), importlib.import_module(f"{library}.numpy")
    out = {}
    for name in chosen:
        fun, args = {**PROGRAMS, **SCALED}[name](J, np)
        compiled = (fun if hasattr(fun, "lower") else J.jit(fun)).lower(*args).compile()
        out[name] = collectives(compiled.as_text())
        if name in SCALED:
            costs = compiled.cost_analysis()
            for what in ("flops", "bytes accessed"):
                out[name][what] = None, int(costs[what])
    print(json.dumps(out))


def run(python: str, library: str, chosen: list[str]) -> dict[str, Any]:
    flags = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"
    path = str(Path(__file__).parent.parent) if library == "olympus" else ""
    done = subprocess.run(
        [python, "-P", __file__, "--side", library, *chosen], capture_output=True, text=True,
        env={**os.environ, "XLA_FLAGS": flags, "PYTHONPATH": path}, check=False)
    if done.returncode:
        sys.exit(done.stderr[-3000:])
    return json.loads(done.stdout.splitlines()[-1])


def shown(found: dict[str, Any]) -> str:
    return ", ".join(f"{kind}{f' × {count}' if count else ''}: {size:,}"
                     for kind, (count, size) in found.items()) or "none"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jax", help="a Python that has jax")
    parser.add_argument("--python", default=sys.executable, help="the Python for Olympus")
    parser.add_argument("--scaling", action="store_true", help="1, 2, 4 and 8 devices")
    parser.add_argument("--side", help=argparse.SUPPRESS)
    parser.add_argument("names", nargs="*", help="programs; all by default")
    given = parser.parse_args()
    chosen = given.names or list(SCALED if given.scaling else PROGRAMS)
    if given.side:
        side(given.side, chosen)
        return
    ours = run(given.python, "olympus", chosen)
    theirs = run(given.jax, "jax", chosen) if given.jax else {}
    for name in chosen:
        print(f"{name}\n    Olympus  {shown(ours[name])}")
        if given.jax:
            print(f"    JAX      {shown(theirs[name])}"
                  f"{'' if ours[name] == theirs[name] else '    DIFFERENT'}")
    if given.jax:
        equal = sum(ours[name] == theirs[name] for name in chosen)
        print(f"{equal} of {len(chosen)} programs have the same figures.")
        sys.exit(equal < len(chosen))


if __name__ == "__main__":
    main()
