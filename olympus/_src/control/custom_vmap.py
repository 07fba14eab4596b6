"""custom_vmap: a function whose behaviour under vmap a rule of the user defines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.ir import ClosedOlympuspr
from ..core.primitive import Zero
from ..core.trace import ctx, typeof
from ..interpreters.batching import to_axis
from ..interpreters.jvp import instantiate, jvp_flat
from ..types.shape import definitely_equal
from ..types.tree import broadcast_prefix, tree_flatten, tree_map, tree_unflatten
from .bodies import name_of, structure_error
from .custom_rules import (
    CustomCall,
    CustomFunction,
    Rule,
    check_pair,
    closes_over_tracers,
    run_batched,
)
from .map import map as loop_map

__all__ = ["custom_vmap", "custom_vmap_call_p", "sequential_vmap"]


class custom_vmap(CustomFunction):
    """Decorator: under vmap the rule given to `def_vmap` runs instead of the function.

    Derivatives are those of the function, and of the rule where both meet.

    Args:
      fun: a function of pytrees of arrays.

    >>> import olympus, olympus.numpy as onp
    >>> @olympus.custom_batching.custom_vmap
    ... def f(x, y):
    ...     return x + y
    >>> @f.def_vmap
    ... def rule(axis_size, in_batched, x, y):
    ...     return onp.full(axis_size, -1.), True
    >>> print(f(1., 2.), olympus.vmap(f)(onp.ones(2), onp.ones(2)))
    3.0 [-1. -1.]
    """

    what = "custom_vmap"

    def __init__(self, fun: Callable[..., Any]) -> None:
        super().__init__(fun)
        self.vmap_rule: Callable[..., Any] | None = None

    def def_vmap(self, vmap_rule: Callable[..., tuple[Any, Any]]
                 ) -> Callable[..., tuple[Any, Any]]:
        """Set the rule `(axis_size, in_batched, *args) -> (out, out_batched)`; return it.

        Mapped arrays have the mapped axis in front. `in_batched` is a list, per argument a pytree
        of bools; `out_batched` has the structure of `out`, or of a prefix of it.
        """
        self.vmap_rule = vmap_rule
        return vmap_rule

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.vmap_rule is None:
            raise AttributeError(f"custom_vmap {name_of(self.fun)}: called without a rule; one is "
                                 "required; set it with def_vmap first.")
        leaves, tree = tree_flatten(self.resolve(args, kwargs))
        call = _VmapCall(self, tree)
        out = ctx.trace.process_custom(custom_vmap_call_p, call.run, call, tuple(leaves),
                                       {"name": name_of(self.fun)})
        return tree_unflatten(call.out_tree, out)


class _VmapRule:
    """A flat rule: (axis size, whether each argument is mapped, args) -> outs, which are mapped."""

    __slots__ = ()
    name = ""
    code: Any = None

    def closes_over_tracers(self) -> bool:
        return False

    def __call__(self, size: int, batched: Sequence[bool], args: Sequence[Any]
                 ) -> tuple[list[Any], list[bool]]:
        raise NotImplementedError

    def staged(self, avals: Sequence[Any], num_leading: int, whole: bool
               ) -> tuple[_VmapRule, list[Any]]:
        """The rule of the staged function, which has `num_leading` operands more in front."""
        if self.closes_over_tracers():
            raise TypeError(f"custom_vmap: the rule {self.name} closes over a traced value of a "
                            "function that is staged; only arguments reach it later; pass the "
                            "value as an argument of the function.")
        return _Shifted(self, num_leading), []


class _VmapCall(_VmapRule):
    """One call of a decorated function: `run` is the flat function."""

    __slots__ = ("name", "code", "fun", "rule", "in_tree", "out_tree")

    def __init__(self, owner: custom_vmap, in_tree: Any) -> None:
        self.fun, self.in_tree = owner.fun, in_tree
        self.rule: Any = owner.vmap_rule
        self.name, self.code = name_of(self.rule), getattr(self.rule, "__code__", self.rule)
        self.out_tree: Any = None

    def closes_over_tracers(self) -> bool:
        return closes_over_tracers(self.rule)

    def run(self, *flat: Any) -> list[Any]:
        leaves, self.out_tree = tree_flatten(self.fun(*self.in_tree.unflatten(flat)))
        return leaves

    def __call__(self, size: int, batched: Sequence[bool], args: Sequence[Any]
                 ) -> tuple[list[Any], list[bool]]:
        what = f"custom_vmap {name_of(self.fun)}: the rule {self.name}"
        result = self.rule(size, list(self.in_tree.unflatten(batched)),
                           *self.in_tree.unflatten(args))
        out, out_batched = check_pair(what, result, "output, whether each is mapped")
        leaves, tree = tree_flatten(out)
        if self.out_tree is not None and self.out_tree != tree:
            raise structure_error(what, self.out_tree, tree,
                                  "it returned another structure than the function")
        self.out_tree = tree
        flags = [bool(f) for f in broadcast_prefix(out_batched, out)]
        for x, flag in zip(leaves, flags):
            aval = typeof(x)
            if flag and not (aval.shape and definitely_equal(aval.shape[0], size)):
                raise ValueError(f"{what} returned {aval} as mapped; a leading axis of size {size} "
                                 "is required; return False for it in out_batched otherwise.")
        return leaves, flags


class _Shifted(_VmapRule):
    """The rule of a function that takes the values it closes over as leading operands."""

    __slots__ = ("name", "code", "rule", "num_leading")

    def __init__(self, rule: _VmapRule, num_leading: int) -> None:
        self.name, self.code, self.rule, self.num_leading = rule.name, rule.code, rule, num_leading

    def __call__(self, size: int, batched: Sequence[bool], args: Sequence[Any]
                 ) -> tuple[list[Any], list[bool]]:
        n = self.num_leading
        if any(batched[:n]):
            raise TypeError(f"custom_vmap: the function of the rule {self.name} closes over a "
                            "mapped value; the rule knows nothing of it; pass it as an argument.")
        return self.rule(size, batched[n:], args[n:])


class _Differentiated(_VmapRule):
    """The rule of the function (primals, tangents that are not zero) -> (outs, tangents)."""

    __slots__ = ("name", "code", "rule", "tangents")

    def __init__(self, rule: _VmapRule, tangents: Sequence[Any]) -> None:
        self.name, self.code, self.rule = rule.name, rule.code, rule
        self.tangents = [type(t) is not Zero for t in tangents]

    def closes_over_tracers(self) -> bool:
        return self.rule.closes_over_tracers()

    def __call__(self, size: int, batched: Sequence[bool], args: Sequence[Any]
                 ) -> tuple[list[Any], list[bool]]:
        n = len(self.tangents)
        given = iter(zip(args[n:], batched[n:]))
        primals, tangents, flags = [], [], []
        for x, mapped, nonzero in zip(args[:n], batched[:n], self.tangents):
            t, t_mapped = next(given) if nonzero else (None, False)
            mapped_any = mapped or t_mapped
            primals.append(to_axis(x, None, 0, size) if mapped_any and not mapped else x)
            if t is None:
                t = Zero(typeof(primals[-1]).to_tangent_aval())
            elif mapped_any and not t_mapped:
                t = to_axis(t, None, 0, size)
            tangents.append(t)
            flags.append(mapped_any)
        out_flags: list[bool] = []

        def run(*xs: Any) -> list[Any]:
            outs, out_flags[:] = self.rule(size, flags, xs)
            return outs

        outs, out_tangents = jvp_flat(run, primals, tangents)
        return [*outs, *map(instantiate, out_tangents)], out_flags * 2


class CustomVmapCall(CustomCall):
    """params, staged: name, call_olympuspr, rule."""

    def jvp(self, fun: Callable[..., Any], rules: Any, primals: Sequence[Any],
            tangents: Sequence[Any], **params: Any) -> Any:
        n, nonzero = len(primals), [t for t in tangents if type(t) is not Zero]

        def both(*args: Any) -> list[Any]:
            given = iter(args[n:])
            outs, out_tangents = jvp_flat(fun, args[:n], [
                t if type(t) is Zero else next(given) for t in tangents])
            return [*outs, *map(instantiate, out_tangents)]

        out = ctx.trace.process_custom(self, both, _Differentiated(rules, tangents),
                                       (*primals, *nonzero), params)
        half = len(out) // 2
        return out[:half], out[half:]

    def vmap(self, trace: Any, fun: Callable[..., Any], rules: Any, vals: Sequence[Any],
             dims: Sequence[int | None], **params: Any) -> Any:
        if all(d is None for d in dims):
            if closes_over_tracers(fun):
                return run_batched(trace, fun, vals, dims)
            out = ctx.trace.process_custom(self, fun, rules, tuple(vals), params)
            return out, [None] * len(out)
        mapped = [d is not None for d in dims]
        args = [x if d is None else to_axis(x, d, 0, trace.axis.size) for x, d in zip(vals, dims)]
        outs, flags = rules(trace.axis.size, mapped, args)
        return outs, [0 if flag else None for flag in flags]

    def pack(self, rules: Any, body: ClosedOlympuspr, params: dict[str, Any]) -> dict[str, Any]:
        return {**params, "call_olympuspr": body, "rule": Rule(rules, rules.name)}

    def unpack(self, params: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        return params["rule"].call, {"name": params["name"]}


custom_vmap_call_p = CustomVmapCall("custom_vmap_call")


def sequential_vmap(f: Callable[..., Any]) -> custom_vmap:
    """Decorator: under vmap the function runs for one element after the other, in a loop.

    >>> import olympus, olympus.numpy as onp
    >>> f = olympus.custom_batching.sequential_vmap(lambda x: onp.sum(x))
    >>> print(olympus.vmap(f)(onp.ones((2, 3))))
    [3. 3.]
    """
    made = custom_vmap(f)

    @made.def_vmap
    def rule(axis_size: int, in_batched: Any, *args: Any) -> tuple[Any, Any]:
        leaves, tree = tree_flatten(args)
        flags = tree_flatten(tuple(in_batched))[0]
        mapped = [x for x, flag in zip(leaves, flags) if flag]

        def one(elements: Sequence[Any]) -> Any:
            rest = iter(elements)
            return f(*tree.unflatten([next(rest) if flag else x
                                      for x, flag in zip(leaves, flags)]))

        out = loop_map(one, mapped)
        return out, tree_map(lambda _: True, out)

    return made
