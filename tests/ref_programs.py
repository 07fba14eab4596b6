"""Generated programs with references beside the same programs on plain arrays.

A program is a tree of statements on three places: `a` and `b` of shape [4], `m` of shape [3, 4].
On references a place is a `Ref`, made inside; a further one of shape [4] is made outside of all
transformations, and read and written with values that do not depend on x. Control flow is by `lax`,
whose bodies close over the references or get rows of them. On plain arrays a place is a name in a
dict; loops are Python's, both sides of a branch are computed and selected.

Both are functions of x float32[4] with a scalar result, which pairs of transformations are applied
to. The plain program runs eagerly, the other one eagerly, compiled, or, without XLA's compiler,
discharged and step by step.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

import olympus
from olympus import lax, numpy as onp
from olympus.extend.core import ClosedOlympuspr, Literal
from olympus.extend.state import discharge_state
from olympus.ref import Ref, addupdate, freeze, new_ref, swap
from olympus.sharding import AxisType

Statement = tuple[Any, ...]
MASK = np.array([True, False, True, True])
WEIGHTS = np.array([0.3, -1.0, 0.5, 0.8], np.float32)
OUTSIDE = np.array([0.5, -0.25, 1.5, 0.75], np.float32)

# Indices of [4], by name: the index, given a traced int; whether the values may be a vector.
INDICES: dict[str, tuple[Callable[[Any], Any], bool]] = {
    "all": (lambda i: Ellipsis, True), "int": (lambda i: 1, False), "last": (lambda i: -1, False),
    "slice": (lambda i: slice(1, 3), False), "strided": (lambda i: slice(None, None, 2), False),
    "backwards": (lambda i: slice(None, None, -1), True),
    "new": (lambda i: (None, slice(2)), False),
    "array": (lambda i: np.array([0, 3]), False), "twice": (lambda i: np.array([2, 2]), False),
    "mask": (lambda i: MASK, False), "traced": (lambda i: i, False),
    "ellipsis": (lambda i: (Ellipsis, 0), False),
}
NESTS = ("scan", "rows", "stretches", "fori", "while", "until", "cond", "switch", "jit", "remat",
         "vmap", "map", "shard_map")

OF_ROWS = ("rows", "stretches", "vmap")


def statements(rng: random.Random, depth: int, places: tuple[str, ...], nests: tuple[str, ...],
               outside: bool = True) -> list[Statement]:
    """A block: writes, reads, and blocks in loops, branches and calls, which `nests` names.

    `outside` says whether it may write the place outside: not where that depends on x, or is done
    for each of several elements.
    """
    found: list[Statement] = []
    for _ in range(rng.randint(1, 3)):
        if depth and rng.random() < 0.55:
            kind = rng.choice([k for k in nests
                               if "m" in places or k not in OF_ROWS])
            inner = places if kind not in OF_ROWS else (
                *[p for p in places if p != "m"], "row")
            inner = ("row",) if kind == "vmap" else inner
            shared = outside and kind not in ("until", "cond", "switch", "vmap")
            within = tuple(k for k in nests if k != "shard_map" or kind != "shard_map")
            blocks = [statements(rng, depth - 1, inner, within, shared)
                      for _ in range({"cond": 2, "switch": 3}.get(kind, 1))]
            found.append((kind, rng.choice(places), blocks))
            continue
        to, of = [rng.choice([p for p in places if p != "m"]) for _ in range(2)]
        how = rng.choice(["set", "set", "add", "swap", "part", "passed", "ruled",
                          *["out"] * outside])
        index = rng.choice([k for k in INDICES if how == "add" or k != "twice"])
        found.append((how, to, of, index, round(rng.uniform(-1, 1), 2)))
    return found


class Program:
    """A generated program, by its seed."""

    def __init__(self, seed: int, loops: bool = True) -> None:
        rng = random.Random(seed)
        nests = NESTS if loops else tuple(k for k in NESTS if k not in ("while", "until"))
        self.block = statements(rng, 2, ("a", "b", "m"), nests)
        self.factor = rng.random() < 0.5        # whether what is outside is part of each value
        self.ref, self.cell = new_ref(OUTSIDE), [onp.asarray(OUTSIDE)]

    def on_refs(self, x: Any) -> Any:
        """The program on references."""
        places = {"a": new_ref(x), "b": new_ref(x * 0.5 + 1),
                  "m": new_ref(onp.stack([x, x * x, 1 - x]))}
        OnRefs(self.ref, self.factor).run(self.block, places, onp.int32(1))
        return (places["a"][...] * freeze(places["b"])).sum() + onp.cos(places["m"][...]).sum()

    def on_arrays(self, x: Any) -> Any:
        """The program on plain arrays."""
        places = {"a": x, "b": x * 0.5 + 1, "m": onp.stack([x, x * x, 1 - x])}
        OnArrays(self.cell, self.factor).run(self.block, places, onp.int32(1))
        return (places["a"] * places["b"]).sum() + onp.cos(places["m"]).sum()

    def __repr__(self) -> str:
        return repr(self.block)


def value(read: Callable[[], Any], vector: bool, scale: float, outside: Any, i: Any) -> Any:
    """What is written: of what another place has."""
    x = onp.sin(read()) * scale + 0.1 * i
    if outside is not None:
        x = x * outside[...] if vector else x * outside[1]
    return x if vector else x.mean()


def kept(outside: Any, i: Any, scale: float) -> Any:
    """What is written to the place outside: of what it has."""
    return onp.sin(outside).mean() * scale + 0.1 * i


def ruled(index: Any) -> Callable[[Ref, Any], Any]:
    """A function of a reference and a value, with a rule of its own; it does what `exchanged` does.
    """
    @olympus.custom_jvp
    def exchange(ref: Ref, v: Any) -> Any:
        ref[...], out = exchanged(index, ref[...], v)
        return out

    @exchange.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        (ref, v), (slope, t) = primals, tangents
        (new, out), (new_slope, slope_of_out) = olympus.jvp(
            lambda x, v: exchanged(index, x, v), (ref[...], v), (slope[...], t))
        ref[...], slope[...] = new, new_slope
        return out, slope_of_out

    return exchange


def exchanged(index: Any, x: Any, v: Any) -> tuple[Any, Any]:
    """An array with other values at an index, and the sum of the former ones."""
    old = x[index]
    return x.at[index].set(v * onp.cos(old.mean())), old.sum()


class OnRefs:
    def __init__(self, outside: Ref, factor: bool) -> None:
        self.outside, self.factor = outside, factor

    def run(self, block: list[Statement], places: dict[str, Ref], i: Any) -> None:
        for statement in block:
            if statement[0] in NESTS:
                self.nest(*statement, places, i)
                continue
            how, to, of, name, scale = statement
            make, vector = INDICES[name]
            ref, index = places[to], make(i)
            if how == "out":
                self.outside[index] = kept(self.outside[...], i, scale)
                continue
            v = value(lambda: places[of][...], vector, scale,
                      self.outside if self.factor else None, i)
            if how == "set":
                ref[index] = v
            elif how == "passed":       # a part, as an argument
                olympus.jit(lambda part, v: addupdate(part, (), v))(ref.at[index], v)
            elif how == "add":
                addupdate(ref, index, v)
            elif how == "swap":
                ref[0] = swap(ref, index, v).sum() * 0.5
            elif how == "ruled":
                ref[0] = ruled(index)(ref, v) * 0.5
            else:
                ref.at[1:].at[0:2][...] = v.mean() + ref.at[index][...].sum() * 0.1

    def nest(self, kind: str, on: str, blocks: list[list[Statement]], places: dict[str, Ref],
             i: Any) -> None:
        def body(i: Any, places: dict[str, Ref] = places, k: int = 0) -> None:
            self.run(blocks[k], places, i)

        if kind == "scan":
            lax.scan(lambda c, j: (c, body(j)), 0, onp.arange(3, dtype=onp.int32))
        elif kind in ("rows", "stretches"):
            lax.scan(lambda c, row: (c + 1, body(c, {**places, "row": row})), onp.int32(0),
                     places["m"], checkpoint=None if kind == "rows" else 2)
        elif kind == "fori":
            lax.fori_loop(0, 2, lambda j, c: (body(j), c)[1], 0)
        elif kind == "while":
            lax.while_loop(lambda j: j < 2, lambda j: (body(j), j + 1)[1], onp.int32(0))
        elif kind == "until":
            lax.while_loop(lambda j: (j < 3) & (places[on][...].sum() > 0.8),
                           lambda j: (body(j), j + 1)[1], onp.int32(0))
        elif kind == "map":
            lax.map(body, onp.arange(2, dtype=onp.int32))
        elif kind == "cond":
            lax.cond(places[on][...].sum() > 0.3, lambda: body(i), lambda: body(i, k=1))
        elif kind == "switch":
            lax.switch(onp.int32(places[on][...].sum() > 0) + 1, [
                lambda k=k: body(i, k=k) for k in range(3)])
        elif kind == "jit":
            olympus.jit(body)(i)
        elif kind == "remat":
            olympus.checkpoint(body)(i)
        elif kind == "shard_map":
            mesh = olympus.make_mesh((1,), ("d",), axis_types=(AxisType.Auto,))
            olympus.jit(olympus.shard_map(body, mesh=mesh, in_specs=olympus.P(),
                                          out_specs=olympus.P(), check_vma=False))(i)
        else:
            olympus.vmap(lambda row, j: body(j, {"row": row}))(
                places["m"], onp.arange(3, dtype=onp.int32))


class OnArrays:
    def __init__(self, outside: list[Any], factor: bool) -> None:
        self.outside, self.factor = outside, factor

    def run(self, block: list[Statement], places: dict[str, Any], i: Any) -> None:
        for statement in block:
            if statement[0] in NESTS:
                self.nest(*statement, places, i)
                continue
            how, to, of, name, scale = statement
            make, vector = INDICES[name]
            x, index = places[to], make(i)
            if how == "out":
                held = self.outside[0]
                self.outside[0] = held.at[index].set(kept(held, i, scale))
                continue
            v = value(lambda: places[of], vector, scale,
                      self.outside[0] if self.factor else None, i)
            if how == "set":
                x = x.at[index].set(v)
            elif how in ("add", "passed"):
                x = x.at[index].add(v)
            elif how == "swap":
                old = x[index]
                x = x.at[index].set(v).at[0].set(old.sum() * 0.5)
            elif how == "ruled":
                x, out = exchanged(index, x, v)
                x = x.at[0].set(out * 0.5)
            else:
                x = x.at[1:3].set(v.mean() + x[index].sum() * 0.1)
            places[to] = x

    def nest(self, kind: str, on: str, blocks: list[list[Statement]], places: dict[str, Any],
             i: Any) -> None:
        if kind in ("cond", "switch"):
            found = []
            for block in blocks:
                copy = dict(places)
                self.run(block, copy, i)
                found.append(copy)
            total = places[on].sum()
            first, second = found if kind == "cond" else found[1:]
            if kind == "cond":
                taken = total > 0.3
                second, first = second, first
            else:
                taken = onp.logical_not(total > 0)
            for name in places:
                places[name] = onp.where(taken, first[name], second[name])
        elif kind == "until":
            going = onp.array(True)
            for j in range(3):
                going = going & (places[on].sum() > 0.8)
                copy = dict(places)
                self.run(blocks[0], copy, onp.int32(j))
                places.update({k: onp.where(going, copy[k], x) for k, x in places.items()})
        elif kind in OF_ROWS:
            for j in range(3):
                inner = {"row": places["m"][j]}
                if kind != "vmap":
                    inner |= {k: v for k, v in places.items() if k not in ("m", "row")}
                self.run(blocks[0], inner, onp.int32(j))
                places["m"] = places["m"].at[j].set(inner.pop("row"))
                places.update(inner)
        else:
            for j in {"scan": range(3), "fori": range(2), "while": range(2), "map": range(2)}.get(
                    kind, [i]):
                self.run(blocks[0], places, j if j is i else onp.int32(j))


Fun = Callable[[Any], Any]
#: Another function of x, from one with a scalar result.
TRANSFORMATIONS: dict[str, Callable[[Fun], Fun]] = {
    "same": lambda f: f,
    "jit": olympus.jit,
    "grad": lambda f: lambda x: (olympus.grad(f)(x) * WEIGHTS).sum(),
    "jvp": lambda f: lambda x: olympus.jvp(f, (x,), (onp.asarray(WEIGHTS),))[1],
    "linearize": lambda f: lambda x: olympus.linearize(f, x)[1](onp.asarray(WEIGHTS)),
    "vmap": lambda f: lambda x: (olympus.vmap(f)(onp.stack([x, -x, 2 * x])) * WEIGHTS[:3]).sum(),
    "remat": olympus.checkpoint,
    "scan": lambda f: lambda x: lax.scan(
        lambda c, y: (c * 0.5 + f(y), None), onp.float32(0), onp.stack([x, -x]))[0],
}
REVERSE = ("grad",)
PAIRS = [(s, t) for s in TRANSFORMATIONS for t in TRANSFORMATIONS]


#: The same on plain arrays, as Python runs them.
PLAIN: dict[str, Callable[[Fun], Fun]] = {
    **TRANSFORMATIONS, "jit": lambda f: f, "remat": lambda f: f,
    "scan": lambda f: lambda x: f(x) * 0.5 + f(-x),
}


def in_steps(closed: ClosedOlympuspr, *args: Any) -> list[Any]:
    """The results of a program without references, operation by operation, loops in Python."""
    def step(eqn: Any, ins: list[Any]) -> Any:
        name, params = eqn.primitive.name, eqn.params
        if name == "scan":
            n, m = params["num_consts"], params["num_carry"]
            carry, rows = ins[n:n + m], []
            order = range(params["length"])
            for i in order[::-1] if params["reverse"] else order:
                *outs, = in_steps(params["olympuspr"], *ins[:n], *carry,
                                  *[x[i] for x in ins[n + m:]])
                carry = outs[:m]
                rows.append(outs[m:])
            rows = rows[::-1] if params["reverse"] else rows
            return [*carry, *map(onp.stack, zip(*rows, strict=True))]
        if name == "while":
            n, m = params["cond_nconsts"], params["body_nconsts"]
            carry = ins[n + m:]
            while in_steps(params["cond_olympuspr"], *ins[:n], *carry)[0]:
                carry = in_steps(params["body_olympuspr"], *ins[n:n + m], *carry)
            return carry
        if name == "cond":
            return in_steps(params["branches"][int(ins[0])], *ins[1:])
        if "olympuspr" in params and name != "shard_map":
            return in_steps(params["olympuspr"], *ins)
        return eqn.primitive.bind(*ins, **params)

    env = dict(zip(closed.olympuspr.constvars, closed.consts, strict=True))
    env.update(zip(closed.olympuspr.invars, args, strict=True))
    read = lambda v: onp.asarray(v.val, v.aval.dtype) if isinstance(v, Literal) else env[v]
    for eqn in closed.eqns:
        outs = step(eqn, [read(v) for v in eqn.invars])
        env.update(zip(eqn.outvars, outs if eqn.primitive.multiple_results else [outs],
                       strict=True))
    return [read(v) for v in closed.olympuspr.outvars]


def discharged(program: Program, fun: Fun, x: Any) -> Any:
    """The result, by the pure program of a function of references; the one outside is written."""
    outside = program.ref

    def traced(ref: Ref, x: Any) -> Any:
        program.ref = ref
        return fun(x)

    closed = olympus.make_olympuspr(traced)(outside, x)
    program.ref = outside
    pure = discharge_state(closed.olympuspr, closed.consts)
    out, outside[...] = in_steps(ClosedOlympuspr(*pure), outside[...], x)
    return out


def difference(seed: int, outer: str, inner: str, way: str = "eager") -> float:
    """How far the two programs of a seed are apart under a pair of transformations, relatively.

    The program on references runs in one of the ways "eager", "jit", "steps".
    """
    program = Program(seed, not {outer, inner} & {*REVERSE})
    x = onp.array([0.3, -0.2, 0.5, 0.9])
    fun = TRANSFORMATIONS[outer](TRANSFORMATIONS[inner](program.on_refs))
    found = float({"eager": fun, "jit": olympus.jit(fun),
                   "steps": lambda x: discharged(program, fun, x)}[way](x))
    wanted = float(PLAIN[outer](PLAIN[inner](program.on_arrays))(x))
    held, kept = np.asarray(program.ref[...]), np.asarray(program.cell[0])
    return max(abs(found - wanted) / (1 + abs(wanted)), float(np.abs(held - kept).max()))
