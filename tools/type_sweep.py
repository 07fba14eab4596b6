"""One type whichever way: calls on explicit mesh axes, eagerly and by every transformation.

    PYTHONPATH=. python tools/type_sweep.py [--part 0] [--seed 0] [--auto]

Draws calls and specifications as tools/explicit_sweep.py does, and compares the types of
the results (shape, dtype, weak type, sharding and mesh, varying axes, memory) of the eager call
with the types under `jit`, `eval_shape`, an export that is called and `vmap`, whose axis comes in
front; and the cotangents' types with the operands'. Where one is refused, so must the others be.
With --auto one axis of the mesh is left to XLA. KNOWN has the calls whose difference is meant.
Needs eight devices; exits with 1 for a difference.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from explicit_sweep import points

import olympus
from olympus import export, lax, nn, tree
from olympus.sharding import AxisType, PartitionSpec, set_mesh

PARTS = 4
NAMES = {"lax": lax, "np": olympus.numpy, "nn": nn, "P": olympus, "S": PartitionSpec}
KNOWN = {
    ("np.prod(a, 1)", "vjp"): "products of all other factors need an axis whole, in JAX as well",
    ("np.prod(a, 0)", "vjp"): "likewise",
    ("lax.conv_general_dilated(a, b, (1,), 'SAME', dimension_numbers=('NWC', 'WIO', 'NWC'))",
     "vjp"): "of spatial axes that are cut XLA gives wrong gradients of kernels",
    ("lax.while_loop(lambda c: np.sum(c) < 3, lambda c: c * 2, a)", "vjp"): "no reverse mode"}


def told(x: Any) -> tuple[Any, ...]:
    """All that a type says."""
    a = x if hasattr(x, "str_short") else olympus.typeof(x)
    return str(a), a.weak_type, a.sharding.mesh, a.memory_space


def function(text: str) -> Callable[..., Any]:
    """An expression of the table as a function of its operands."""
    def run(*xs: Any) -> Any:
        scope = {**NAMES, **dict(zip("abc", xs, strict=False)), "i": olympus.numpy.array([0, 2, 1])}
        return tree.leaves(eval(text, scope))

    return run


def operand(shape: Sequence[int], entries: Any, dtype: str) -> Any:
    """Distinct numbers of a shape, cut so over the mesh around."""
    size = int(np.prod(shape))
    value = np.random.default_rng(size).permutation(size).reshape(shape)
    value = value % 3 if dtype == "int32" else (value + 1) / size
    return olympus.device_put(value.astype(dtype), PartitionSpec(*entries))


def answer(call: Callable[[], Sequence[Any]]) -> list[Any]:
    """The types of results; the error's class, of a call that is refused."""
    try:
        return list(map(told, call()))
    except (TypeError, ValueError, NotImplementedError) as error:
        return [type(error).__mro__[-4:-1], str(error)]


def ways(f: Callable[..., Any], xs: Sequence[Any]) -> dict[str, Callable[[], Any]]:
    """What must have the types of `f(*xs)`."""
    structs = [olympus.ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding) for x in xs]
    found = {"jit": lambda: olympus.jit(f)(*xs),
            "eval_shape": lambda: [s.aval for s in olympus.eval_shape(f, *structs)],
            "export": lambda: export.export(olympus.jit(f))(*xs).call(*xs)}
    if xs:
        found["vmap"] = lambda: [olympus.typeof(x).without_axis(0) for x in olympus.vmap(f)(
            *[olympus.numpy.stack([x, x]) for x in xs])]
    return found


def cotangents(f: Callable[..., Any], xs: Sequence[Any]) -> Any:
    """(types of cotangents, those that they must be)."""
    outs, pull = olympus.vjp(f, *xs)
    found = pull([as_cotangent(x) for x in outs])
    pairs = [(told(ct), told(olympus.typeof(x).to_cotangent_aval()))
             for ct, x in zip(found, xs, strict=True) if x.dtype == np.float32]
    return [a for a, _ in pairs], [b for _, b in pairs]


def as_cotangent(x: Any) -> Any:
    """Ones as the cotangent of a result."""
    aval = olympus.typeof(x).to_cotangent_aval()
    if aval.dtype == olympus.dtypes.float0:
        return np.zeros(aval.shape, aval.dtype)
    ones = olympus.numpy.ones(aval.shape, aval.dtype)
    return olympus.reshard(ones, aval.sharding) if aval.explicit else ones


def differences(text: str, operands: Sequence[Any]) -> list[str]:
    """What is said otherwise than eagerly, a line for each way."""
    xs, f = [operand(*each) for each in operands], function(text)
    eager = answer(lambda: f(*xs))
    found = []
    for name, call in ways(f, xs).items():
        other = answer(call)
        refused = [not x or type(x[0][0]) is type for x in (eager, other)]
        if (text, name) not in KNOWN and not (refused == [True, True] or eager == other):
            found.append(f"{name}: {other}, eagerly {eager}")
    if xs and eager and type(eager[0][0]) is str and (text, "vjp") not in KNOWN:
        have, want = cotangents(f, xs)
        if have != want:
            found.append(f"vjp: {have}, and {want} is required")
    return found


def along_x(calls: Sequence[Any]) -> list[Any]:
    """The calls that name no other axis, with operands that are cut along it alone."""
    return [(text, [(shape, [e if e == "x" else None for e in entries], dtype)
                    for shape, entries, dtype in operands])
            for text, operands in calls if "'y'" not in text]


def compare(calls: Sequence[Any], last: AxisType = AxisType.Explicit) -> list[str]:
    """The differences of calls on a mesh of eight devices, each with its lines; `last` is the type
    of its axis y."""
    found = []
    mesh = olympus.make_mesh((4, 2), ("x", "y"), (AxisType.Explicit, last))
    with set_mesh(mesh):
        for text, operands in calls:
            try:
                lines = differences(text, operands)
            except Exception as error:
                lines = [f"{type(error).__name__}: {error}"]
            if lines:
                found.append("\n    ".join([f"{text} on {operands}", *lines]))
    return found


def main() -> int:
    """Compare, print the differences; 1 if there are any."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", type=int, choices=range(PARTS), help="a part of the calls only")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--auto", action="store_true", help="leave the axis y to XLA")
    args = parser.parse_args()
    calls = points(1, args.seed)[args.part or 0::1 if args.part is None else PARTS]
    found = compare(along_x(calls), AxisType.Auto) if args.auto else compare(calls)
    print(*found, f"{len(found)} calls differ", sep="\n")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
