"""Chains of operations as values: what `tools/faithful.py` generates, shrinks and prints.

A `Program` is text over leaves, which are arguments and constants, and steps. It may stand inside
of a loop, a branch, a map or a derivative (`WRAPPERS`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import olympus
import olympus.numpy as onp
from olympus import lax, sharding

FLOATS = ("float16", "bfloat16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
INTS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


class Operation(NamedTuple):
    """An operation as text over its operands; which kinds of dtype it takes, and gives."""

    text: str
    arity: int
    kinds: str              # f floating, c complex, i signed, u unsigned, b bool
    gives: str = ""         # a dtype, or "" for the operands'


OPERATIONS: dict[str, Operation] = {
    **{name: Operation(f"lax.{name}({{0}}, {{1}})", 2, kinds) for name, kinds in (
        ("add", "fciu"), ("sub", "fciu"), ("mul", "fciu"), ("div", "fciu"), ("max", "fiu"),
        ("min", "fiu"), ("pow", "f"), ("rem", "fiu"), ("atan2", "f"),
        ("bitwise_and", "iub"), ("bitwise_or", "iub"), ("bitwise_xor", "iub"))},
    **{name: Operation(f"lax.{name}({{0}}, {{1}} & {{bits}})", 2, "iu") for name in (
        "shift_left", "shift_right_logical", "shift_right_arithmetic")},
    **{f"{name}_any": Operation(f"lax.{name}({{0}}, {{1}})", 2, "iu") for name in (
        "shift_left", "shift_right_logical", "shift_right_arithmetic")},
    **{name: Operation(f"lax.{name}({{0}})", 1, kinds) for name, kinds in (
        ("neg", "fciu"), ("abs", "fi"), ("square", "fciu"), ("sqrt", "fc"), ("rsqrt", "f"),
        ("cbrt", "f"), ("exp", "fc"), ("exp2", "f"), ("expm1", "f"), ("log", "fc"), ("log1p", "f"),
        ("tanh", "fc"), ("logistic", "f"), ("sin", "f"), ("cos", "f"), ("sign", "fiu"),
        ("floor", "f"), ("ceil", "f"), ("round", "f"), ("bitwise_not", "iub"), ("conj", "c"),
        ("clz", "iu"), ("population_count", "iu"))},
    "log2": Operation("onp.log2({0})", 1, "f"),
    "reciprocal": Operation("1 / {0}", 1, "fc"),
    "cube": Operation("lax.integer_pow({0}, 3)", 1, "fciu"),
    "inverse_square": Operation("lax.integer_pow({0}, -2)", 1, "f"),
    "floor_divide": Operation("{0} // {1}", 2, "iu"),
    "mod": Operation("{0} % {1}", 2, "fiu"),
    "clamp": Operation("lax.clamp({1}, {0}, {2})", 3, "fiu"),
    "lt": Operation("{0} < {1}", 2, "fiu", "bool"), "eq": Operation("{0} == {1}", 2, "fiu", "bool"),
    "select": Operation("lax.select({0} > 0, {1}, {2})", 3, "fi"),
    "cond": Operation(
        "lax.cond(onp.ravel({0})[0] > 0, lambda p, q: p, lambda p, q: q, {1}, {2})", 3, "fiu"),
    "cond of constants": Operation(
        "lax.cond(onp.ravel({0})[0] > 0, lambda: {1} + 0, lambda: {2} * 1)", 3, "fiu"),
    "ldexp": Operation("onp.ldexp({0}, 100)", 1, "f"),
    "float32": Operation("lax.convert_element_type({0}, 'float32')", 1, "fiu", "float32"),
    "float16": Operation("lax.convert_element_type({0}, 'float16')", 1, "f", "float16"),
    "bfloat16": Operation("lax.convert_element_type({0}, 'bfloat16')", 1, "f", "bfloat16"),
    "int32": Operation("lax.convert_element_type({0}, 'int32')", 1, "fiu", "int32"),
    "uint8": Operation("lax.convert_element_type({0}, 'uint8')", 1, "iu", "uint8"),
    "int64": Operation("lax.convert_element_type({0}, 'int64')", 1, "iu", "int64"),
    "real": Operation("lax.real({0})", 1, "c", "part"),
    "imag": Operation("lax.imag({0})", 1, "c", "part"),
    "cabs": Operation("lax.abs({0})", 1, "c", "part"),
    "complex": Operation("lax.complex({0}, {1})", 2, "g", "whole")}
DIVISIONS = {"div", "rem", "mod", "floor_divide"}
#: moves and reductions of arrays, by name: the shapes that they take and give, and the text
ARRAYS: dict[str, tuple[tuple[int, ...], tuple[int, ...], str, str]] = {
    "reshape": ((8,), (4, 2), "lax.reshape({0}, (4, 2))", "fciub"),
    "flat": ((4, 2), (8,), "lax.reshape({0}, (8,))", "fciub"),
    "transpose": ((4, 2), (4, 2), "lax.reshape({0}.T, (4, 2))", "fciub"),
    "rotate": ((8,), (8,), "lax.concatenate([{0}[1:], {0}[:1]], 0)", "fciub"),
    "rev": ((8,), (8,), "lax.rev({0}, (0,))", "fciub"),
    "spread": ((), (8,), "lax.broadcast({0}, (8,))", "fciub"),
    "first": ((8,), (), "{0}[0]", "fciub"),
    "sum": ((8,), (), "lax.reduce_sum({0}, (0,))", "fiu"),
    "max": ((8,), (), "lax.reduce_max({0}, (0,))", "fiu"),
    "min": ((8,), (), "lax.reduce_min({0}, (0,))", "fiu"),
    "prod": ((8,), (), "lax.reduce_prod({0}, (0,))", "f"),
    "cumsum": ((8,), (8,), "lax.cumsum({0}, 0)", "fiu"),
    "cumsum back": ((8,), (8,), "lax.cumsum({0}, 0, reverse=True)", "fiu"),
    "cumprod": ((8,), (8,), "lax.cumprod({0}, 0)", "fiu"),
    "cummax": ((8,), (8,), "lax.cummax({0}, 0)", "fiu"),
    "sort": ((8,), (8,), "lax.sort({0})", "fiu"),
    "sums": ((4, 2), (4, 2), "lax.broadcast(lax.reduce_sum({0}, (0,)), (4,))", "fiu"),
    "reduce": ((8,), (), "lax.reduce({0}, onp.asarray(-0., {0}.dtype), lax.add, (0,))", "f"),
    "window": ((8,), (8,), "lax.reduce_window({0}, onp.asarray(0, {0}.dtype), lax.add, (2,), (1,), "
               "'SAME')", "f"),
    "dense": ((4, 2), (4, 2), "lax.dot({0}, {0}[:2]) + lax.broadcast({0}[0], (4,))", "f"),
    "dot": ((8,), (), "lax.dot({0}, {0})", "f"),
    "matmul": ((4, 2), (4, 2), "lax.dot({0}, {0}[:2])", "f")}


class Leaf(NamedTuple):
    """An argument, or a constant: a number in place, a closed-over array, a spread number.

    A scalar is an argument of rank 0 that is spread. A constant that is given is an array, or a
    spread number, that the function gets as an argument where it stands inside of something else.
    """

    kind: str       # arg, scalar, literal, array, splat, given
    value: Any
    by: str = ""    # an operation that is applied to the constant first


class Step(NamedTuple):
    """An operation applied to values by number: leaves come first, then earlier steps."""

    name: str
    operands: tuple[int, ...]


class Program(NamedTuple):
    """Leaves, steps, and how the function is wrapped; the last step is the result."""

    leaves: tuple[Leaf, ...]
    steps: tuple[Step, ...]
    wrapper: str = ""

    @property
    def args(self) -> list[Any]:
        return [each.value if each.kind == "arg" else np.ravel(each.value)[0][...]
                for each in self.leaves if each.kind in ("arg", "scalar")]

    @property
    def dtype(self) -> np.dtype:
        return self.leaves[0].value.dtype

    def text(self) -> str:
        """The program as Python, without values of its arguments."""
        args = [f"x{i}" for i, each in enumerate(self.leaves)
                if each.kind in ("arg", "scalar", "given")]
        names = [f"x{i}" if each.kind in ("arg", "given") else
                 f"lax.broadcast(x{i}, {each.value.shape})" if each.kind == "scalar" else
                 constant(each) for i, each in enumerate(self.leaves)]
        lines = [f"def f({', '.join(args)}):"]
        for i, step in enumerate(self.steps):
            template = (OPERATIONS[step.name].text if step.name in OPERATIONS
                        else ARRAYS[step.name[1:]][2])
            names.append(f"v{i}")
            bits = self.dtype.itemsize * 8 - 1
            given = [names[k] for k in step.operands]
            if step.name in DIVISIONS and self.may_divide_by_zero(step.operands[1]):
                given[1] = f"harmless({given[1]})"
            lines.append(f"    v{i} = " + template.format(*given, bits=bits))
        lines.append(f"    return {names[-1]}")
        if self.wrapper or "given" in [each.kind for each in self.leaves]:
            given = [constant(each) if each.kind == "given" else f"x{i}"
                     for i, each in enumerate(self.leaves) if f"x{i}" in args]
            args = [n for n in given if n in args]
            lines += [f"def g({', '.join(args)}):",
                      f"    return wrapped({self.wrapper!r}, f)({', '.join(given)})"]
        return "\n".join(lines)

    def may_divide_by_zero(self, divisor: int) -> bool:
        """Whether a value, by number, is a result, or a constant integer with an element 0."""
        if divisor >= len(self.leaves):
            return True
        kind, value, by = self.leaves[divisor]
        return bool(by) or kind not in ("arg", "scalar") and (
            value.dtype.kind in "iu" and not value.all())

    def function(self) -> Callable[..., Any]:
        scope = {"harmless": harmless, "lax": lax, "np": np, "onp": onp, "wrapped": wrapped}
        exec(self.text(), scope)
        return scope.get("g") or scope["f"]

    def pattern(self) -> str:
        """The chain as an expression, in which x is an argument and C a constant."""
        letters: dict[int, str] = {}
        for i, each in enumerate(self.leaves):
            letters[i] = ("xyzwuvst"[sum(k.kind == "arg" for k in self.leaves[:i])]
                          if each.kind == "arg" else "s" if each.kind == "scalar" else
                          f"{each.by}(C)" if each.by else "C")
        names = [letters[i] for i in range(len(self.leaves))]
        for step in self.steps:
            names.append(f"{step.name}({', '.join(names[k] for k in step.operands)})")
        return (f"{self.wrapper}: " if self.wrapper else "") + names[-1]


def harmless(divisor: Any) -> Any:
    """A divisor that is not zero where it is an integer: XLA's compiler (jaxlib 0.10.2) ends the
    process where it finds that a quotient of integers has the divisor zero. `lax.div` and `rem`
    keep it from finding one, so programs without this would do, too, as long as they do.
    """
    return divisor if onp.issubdtype(divisor.dtype, np.inexact) else divisor & 63 | 1


def constant(each: Leaf) -> str:
    """A constant's text, or that of what is computed from it."""
    if each.by:
        return OPERATIONS[each.by].text.format(constant(each._replace(by="")))
    # Python's numbers take the dtype of their neighbours.
    x = np.asarray(each.value)
    value = x.reshape(-1)[0]
    if x.dtype.kind in "iub":
        number = str(int(value)) if x.dtype != bool else str(bool(value))
    elif x.dtype.kind == "c":
        number = f"complex({plain(value.real)}, {plain(value.imag)})"
    else:
        number = plain(value)
    if each.kind == "literal":
        return f"({number})"
    name = x.dtype.name
    if each.kind == "splat" or each.kind == "given" and (x.tobytes() == x.reshape(-1)[:1].tobytes()
                                                         * x.size):
        return f"lax.full({x.shape}, {number}, '{name}')"
    return f"np.array({numbers(x)}, dtype='{name}')"


def plain(value: Any) -> str:
    """A floating-point number as Python reads it."""
    number = float(value)
    return repr(number) if np.isfinite(number) else f"onp.{'nan' if number != number else 'inf'}" \
        if number != -np.inf else "-onp.inf"


def numbers(x: Any) -> str:
    if x.dtype.kind in "iub":
        return str(x.tolist())
    if x.dtype.kind == "c":
        return str(x.tolist()).replace("inf", "np.inf").replace("nan", "np.nan")
    listed = x.astype(np.float64).tolist()
    return repr(listed).replace("inf", "np.inf").replace("nan", "np.nan")


# What a function may stand inside of

def in_scan(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *xs: lax.scan(lambda c, row: (c, f(*row)), 0,
                                tuple(lax.broadcast(x, (2,)) for x in xs))[1][1]


def nothing_like(f: Callable[..., Any], xs: Sequence[Any]) -> Any:
    out = olympus.eval_shape(f, *xs)
    return onp.zeros(out.shape, out.dtype)


def in_fori(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *xs: lax.fori_loop(0, 2, lambda i, c: f(*xs), nothing_like(f, xs))


def in_while(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *xs: lax.while_loop(
        lambda s: s[0] < 2, lambda s: (s[0] + 1, s[1], f(*s[1])),
        (onp.int32(0), tuple(map(onp.asarray, xs)), nothing_like(f, xs)))[2]


def in_cond(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *xs: lax.cond(onp.ravel(xs[0])[0] != 0, f, lambda *ys: f(*ys[::1]), *xs)


def in_vmap(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *xs: olympus.vmap(f)(*(lax.broadcast(x, (2,)) for x in xs))[0]


def in_shard_map(f: Callable[..., Any]) -> Callable[..., Any]:
    mesh = sharding.Mesh(np.array(olympus.devices()[:1]), ("i",))
    return olympus.shard_map(f, mesh=mesh, in_specs=sharding.PartitionSpec(),
                             out_specs=sharding.PartitionSpec())


def in_custom(f: Callable[..., Any]) -> Callable[..., Any]:
    rule = olympus.custom_jvp(f)
    rule.defjvp(lambda primals, tangents: olympus.jvp(f, primals, tangents))
    return rule


def of_jvp(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *xs: olympus.jvp(f, xs, tuple(map(onp.ones_like, xs)))[1]


def of_grad(f: Callable[..., Any]) -> Callable[..., Any]:
    def gradient(*xs: Any) -> Any:
        out, pull = olympus.vjp(lambda x: f(x, *xs[1:]), xs[0])
        return pull(onp.ones_like(out))[0]

    return gradient


WRAPPERS: dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]] = {
    "scan": in_scan, "fori_loop": in_fori, "while_loop": in_while, "cond": in_cond,
    "vmap": in_vmap, "shard_map": in_shard_map, "custom_jvp": in_custom, "jit": olympus.jit,
    "checkpoint": olympus.checkpoint, "jvp": of_jvp, "grad": of_grad,
    "grad of checkpoint": lambda f: of_grad(olympus.checkpoint(f)),
    "grad of scan": lambda f: of_grad(in_scan(f)), "jvp of vmap": lambda f: of_jvp(in_vmap(f)),
    "scan of grad": lambda f: in_scan(of_grad(f)), "vmap of cond": lambda f: in_vmap(in_cond(f))}


def wrapped(wrapper: str, f: Callable[..., Any]) -> Callable[..., Any]:
    return WRAPPERS[wrapper](f) if wrapper else f
