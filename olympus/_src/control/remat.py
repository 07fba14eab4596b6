"""checkpoint (remat): keep the inputs of a function for reverse mode and compute the rest again."""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Callable, Hashable, Sequence
from itertools import compress
from typing import Any, NamedTuple, cast

from ..base.config import debug_key_reuse, log_checkpoint_residuals
from ..base.logs import LOGGER
from ..base.source import filter_traceback
from ..base.typing import Array, ArrayLike, IrValue, P, Params, PyTree, R
from ..base.util import bit_key, merged, name_of, wraps
from ..core import reuse, tags
from ..core.evaluate import eval_closed
from ..core.ir import Atom, ClosedOlympuspr, OlympusprEqn, Var, derived, read, variables
from ..core.primitive import Axis, Builder, Cotangent, Higher, Linear, Primitive, Tangent
from ..core.staging import stage
from ..core.trace import typeof
from ..interpreters.dce import dce_closed
from ..interpreters.partial_eval import TapeTrace, partial_eval_program
from ..lax.barriers import random_clone_p
from ..lax.contract import dot_general_p
from ..lax.conv import conv_general_dilated_p
from ..lax.sharding import move
from ..types import dtypes
from ..types.avals import MUTABLE, Aval, ShapedArray
from ..types.memory import Space
from ..types.shape import entries, static_int
from ..types.tree import broadcast_prefix, tree_leaves, tree_map, tree_structure, tree_unflatten
from .bodies import Derived, check_aliases, check_callable, flatten, stage_body
from .call import Call, Picked, call_p
from .cond import cond_p
from .scan_primitive import scan_p
from .shard_map import shard_map_p

Prevent = bool | tuple[bool, ...]


class Checkpoint(Call):
    """params: olympuspr, prevent_cse (a bool, or one for each operand), differentiated, policy."""

    called = False
    fusion = ""
    lowered = ("olympuspr", "prevent_cse", "differentiated")
    # Call's way splits the body and keeps its residuals: here the tape must get to `partial_eval`.
    linearize = Higher.linearize

    def cells(self, use: reuse.Use, cells: Sequence[reuse.Cells], eqn: OlympusprEqn
              ) -> list[reuse.Cells]:
        # A recomputation has used its keys the first time.
        differentiated = eqn.params["differentiated"]
        return reuse.read(use, cells, eqn) if differentiated else super().cells(use, cells, eqn)

    def evaluated(self, params: Params) -> Callable[..., list[Array]] | None:
        # Evaluated as the function itself would be: an operation of outsiders may have no other
        # way.
        body = params["olympuspr"]
        return functools.partial(eval_closed, body) if any(
            eqn.primitive.uncompiled for eqn in body.eqns) else None

    def stays(self, params: Params) -> bool:
        flags = params["prevent_cse"]
        prevented = params["differentiated"] and (any(flags) if type(flags) is tuple else flags)
        # Ordered effects are in one function.
        return prevented and not any(e.ordered for e in params["olympuspr"].effects)

    def lower(self, b: Builder, *args: IrValue, olympuspr: ClosedOlympuspr, prevent_cse: Prevent,
              differentiated: bool, policy: object) -> list[IrValue]:
        part = "checkpoint/rematted_computation" if differentiated else "checkpoint"
        if b.stays:
            return b.call_kept(olympuspr, args, part)
        flags = prevent_cse if type(prevent_cse) is tuple else (prevent_cse,) * len(args)
        guarded = list(compress(args, flags))
        if differentiated and guarded:
            # Without it XLA would find the second computation equal to the first and merge them.
            results = iter(b.ops("stablehlo.optimization_barrier", guarded, None,
                                 [x.type for x in guarded]).results)
            args = tuple([b.spread(next(results), a) if flag else x
                          for x, a, flag in zip(args, b.avals_in, flags, strict=True)])
        return b.call_inline(olympuspr, args, part)

    def followed(self, params: Params, body: ClosedOlympuspr, ins: Picked, outs: Picked,
                 transposed: bool = False) -> Params:
        flags, n = params["prevent_cse"], len(params["olympuspr"].invars)
        if type(flags) is tuple:    # (co)tangents are computed
            flags = tuple(ins(flags, (True,) * n, (), (True,) * len(params["olympuspr"].outvars)))
        return {**params, "olympuspr": body, "prevent_cse": flags}

    def partial_eval(self, tape: TapeTrace, args: Sequence[Array], unknown: Sequence[bool], *,
                     olympuspr: ClosedOlympuspr, policy: Policy | None, prevent_cse: Prevent,
                     **params: Hashable) -> Sequence[Array]:
        # A policy is asked of operations: calls are opened for it, and loops and branches
        # rewritten.
        if policy is not None:
            olympuspr = _pass_on(inline_calls(olympuspr), policy)
        split = partial_eval_program(olympuspr, unknown)
        known = [a for a, u in zip(args, unknown, strict=True) if not u]
        #   first   known                    ->  known outputs, saved     now
        #   again   known, saved, unknown    ->  unknown outputs    recorded, a checkpoint too
        # Without a policy nothing is saved: all residuals are computed from the known operands
        # again.
        first, saved, again = _cut(olympuspr, tuple(unknown), policy)
        out = eval_closed(first, *(_unused(known) if params["differentiated"] else known))
        num_known = len(out) - len(saved)
        # Offloaded values go to the other memory here, and come back in `_cut`'s `later`.
        out[num_known:] = [move(x, how.dst) if isinstance(how, Offloadable) else x
                           for x, how in zip(out[num_known:], saved, strict=True)]
        found: list[Any] = []
        if any(split.unknown_out):
            # Operands that are not needed again must not be kept: dropping them here is what saves
            # memory.
            body, used = dce_closed(again, (True,) * sum(split.unknown_out), keep_inputs=False)
            rest = [a for a, u in zip(args, unknown, strict=True) if u]
            operands = [*known, *out[num_known:], *rest]
            level = logging.WARNING if log_checkpoint_residuals.value else logging.DEBUG
            if LOGGER.isEnabledFor(level):
                _log_kept(level, olympuspr, operands[:len(operands) - len(rest)], used)
            if type(prevent_cse) is tuple:
                prevent_cse = tuple(compress(
                    (*compress(prevent_cse, [not u for u in unknown]), *(True,) * len(saved),
                     *compress(prevent_cse, unknown)), used))
            found = tape.record(self, [a for a, u in zip(operands, used, strict=True) if u],
                                {"olympuspr": body, **params, "differentiated": True,
                                 "prevent_cse": prevent_cse, "policy": policy})
        return merged(split.unknown_out, found, out[:num_known])

    def transpose(self, cts: Sequence[Array], *args: Array | Linear, **params: Hashable
                  ) -> list[Cotangent]:
        return super().transpose(cts, *args, **{**params, "differentiated": True})


def _log_kept(level: int, program: ClosedOlympuspr, known: Sequence[object],
              used: Sequence[bool]) -> None:
    """Log the residuals that a checkpoint keeps until it recomputes the rest."""
    kept = [str(typeof(x)) for x, u in zip(known, used, strict=False) if u]
    LOGGER.log(level, "checkpoint: %s keeps %d arrays: %s",
               program.olympuspr.debug_info.func_name, len(kept), ", ".join(kept))


def _unused(xs: Sequence[Array]) -> Sequence[Array]:
    """Operands of a recomputed program: for `core.reuse`, its keys differ from the first time's."""
    if not debug_key_reuse.value:
        return xs
    return [random_clone_p.bind(x) if dtypes.is_key(getattr(typeof(x), "dtype", None)) else x
            for x in xs]


class _Verdict:
    """A policy's answer for a value, besides a bool."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> str:
        return self.name    # by name: answers are compared by identity


Saveable = _Verdict("Saveable")
Recompute = _Verdict("Recompute")


class Offloadable(NamedTuple):
    """A policy's answer: keep the value in the memory space `dst`, and bring it back to `src`.

    >>> import olympus
    >>> from olympus.ad_checkpoint import Offloadable
    >>> Offloadable(olympus.memory.Space.Device, olympus.memory.Space.Host).dst
    MemorySpace.Host
    """

    src: Space
    dst: Space


def inline_calls(closed: ClosedOlympuspr) -> ClosedOlympuspr:
    """The program with the bodies of inner jitted functions in place of their calls."""
    if not any(eqn.primitive is call_p for eqn in closed.olympuspr.eqns):
        return closed
    return _inlined(closed)


@derived
def _inlined(closed: ClosedOlympuspr) -> ClosedOlympuspr:
    return stage(lambda *args: _evaluate_inline(closed, args), closed.in_avals, closed.debug_info)


def _evaluate_inline(closed: ClosedOlympuspr, args: Sequence[Array]) -> list[Array]:
    pr = closed.olympuspr
    env: dict[Any, Any] = dict(
        zip((*pr.constvars, *pr.invars), (*closed.consts, *args), strict=True))

    for eqn in pr.eqns:
        ins = read(eqn.invars, env)
        if eqn.primitive is call_p:
            out: Any = _evaluate_inline(eqn.params["olympuspr"], ins)
        else:
            out = eqn.primitive.bind(*ins, **eqn.params)
        env.update(zip(eqn.outvars, out if eqn.primitive.multiple_results else [out], strict=True))
    return read(pr.outvars, env)


def _pass_on(closed: ClosedOlympuspr, policy: Policy) -> ClosedOlympuspr:
    """The program whose loops and branches are checkpointed with the policy inside, too, where it
    keeps something: each iteration, branch that is taken, or device, then keeps no more than that.
    """
    if not any(_keeps_inside(policy, eqn) for eqn in closed.eqns):
        return closed
    return _passed_on(closed, policy)


@derived
def _checkpointed(body: ClosedOlympuspr, policy: Policy) -> ClosedOlympuspr:
    return stage(functools.partial(
        checkpoint_p.bind, olympuspr=body, prevent_cse=False, differentiated=False,
        policy=policy), body.in_avals)


@derived
def _passed_on(closed: ClosedOlympuspr, policy: Policy) -> ClosedOlympuspr:
    def passed_on(eqn: OlympusprEqn) -> OlympusprEqn:
        if not _keeps_inside(policy, eqn):
            return eqn
        (name,) = eqn.primitive.programs
        given = eqn.params[name]
        return eqn.replace(params={**eqn.params, name: (
            tuple([_checkpointed(body, policy) for body in given]) if type(given) is tuple
            else _checkpointed(given, policy))})

    pr = closed.olympuspr
    return closed.replace(olympuspr=pr.replace(eqns=list(map(passed_on, pr.eqns))))


def _keeps_inside(policy: Policy, eqn: OlympusprEqn) -> bool:
    """Whether the policy keeps a value in the body of a loop, branch or device."""
    return eqn.primitive in (scan_p, cond_p, shard_map_p) and any(
        _verdict(policy, e) is not Recompute
        for body in eqn.primitive.bodies(eqn.params) for e in inline_calls(body).olympuspr.eqns)


@derived
def _cut(closed: ClosedOlympuspr, unknown: tuple[bool, ...], policy: Policy | None
         ) -> tuple[ClosedOlympuspr, list[_Verdict | Offloadable], ClosedOlympuspr]:
    """The program for now, the way each value is saved, and the program for reverse mode.

    now:    known inputs -> known outputs, saved values
    later:  known inputs, saved values, unknown inputs -> unknown outputs
    """
    #   inputs ──► … ──► saved ──► … ──► residuals
    # `first` computes the saved ones; `rest` the residuals, from inputs and saved ones. An equation
    # that makes a saved value is not in `rest`, nor is what only it needs.
    split = partial_eval_program(closed, unknown)
    pr = split.known.olympuspr
    n = len(pr.outvars) - split.num_computed
    residuals = pr.outvars[n:]
    how = {v: verdict for eqn in pr.eqns if policy is not None
           and (verdict := _verdict(policy, eqn)) is not Recompute for v in eqn.outvars}
    wanted = _needed(pr.eqns, residuals, set(how))
    # A value that the policy would keep, but no residual is computed from, is not kept.
    saved = [v for v in how if v in wanted]
    kept = pr.replace(outvars=[*pr.outvars[:n], *saved])
    first, _ = dce_closed(split.known.replace(olympuspr=kept), (True,) * len(kept.outvars))
    stops = set(saved)

    def again_too(eqn: OlympusprEqn) -> bool:
        if eqn.outvars or policy is None:
            return not any(v in stops for v in eqn.outvars)
        # An equation with an effect alone, whose operands are all kept, has it again.
        return not any(v in how for v in variables(eqn.invars)) or _verdict(
            policy, eqn) is Recompute

    rest = split.known.replace(olympuspr=pr.replace(
        invars=[*pr.invars, *saved], outvars=residuals, eqns=list(filter(again_too, pr.eqns))))
    rest, _ = dce_closed(rest, (True,) * len(residuals))
    num_known, num_saved = len(pr.invars), len(saved)

    def later(*args: ArrayLike) -> Sequence[Array]:
        known = args[:num_known]
        kept = [move(x, to.src) if isinstance(to := how[v], Offloadable) else x
                for v, x in zip(saved, args[num_known:], strict=False)]
        computed = eval_closed(rest, *known, *kept)
        return eval_closed(split.unknown, *split.residual_values(known, computed),
                           *args[num_known + num_saved:])

    unknown_avals = split.unknown.in_avals[len(split.residuals):]
    saved_avals = [v.aval.update(memory_space=to.dst) if isinstance(to := how[v], Offloadable)
                   else v.aval for v in saved]
    again = stage(later, [*split.known.in_avals, *saved_avals, *unknown_avals])
    return first, [how[v] for v in saved], again


def _verdict(policy: Policy, eqn: OlympusprEqn) -> _Verdict | Offloadable:
    """`Saveable`, `Recompute` or an `Offloadable`."""
    found = policy(eqn.primitive, *[v.aval for v in eqn.invars], **eqn.params)
    if isinstance(found, Offloadable):
        return Offloadable(*map(Space.of, found))
    if isinstance(found, _Verdict):
        return found
    if callable(found):
        raise TypeError(f"checkpoint: policy {name_of(policy)} returned {found!r}; a bool is "
                        "required; a policy that takes names is called with them first: "
                        "policy=save_only_these_names('a').")
    # The values that a loop or branch hands to reverse mode are those that it keeps inside.
    return Saveable if found or _keeps_inside(policy, eqn) else Recompute


def _needed(eqns: Sequence[OlympusprEqn], outs: Sequence[Atom], stops: set[Var]) -> set[Var]:
    """The variables that `outs` are computed from, not looking behind `stops`."""
    # A stop is live, but keeps its own operands no longer alive.
    live: set[Any] = set(variables(outs))
    for eqn in reversed(eqns):
        if any(v in live for v in eqn.outvars) and not any(v in stops for v in eqn.outvars):
            live.update(variables(eqn.invars))
    return live


checkpoint_p = Checkpoint("remat2")


def checkpoint(fun: Callable[P, R], *, prevent_cse: bool | Sequence[PyTree] = True,
               policy: Callable[..., bool] | None = None,
               static_argnums: int | Sequence[int] = (),
               static_argnames: str | Sequence[str] = ()) -> Callable[P, R]:
    """Make reverse mode keep only a function's inputs, and compute the rest again.

    Args:
      fun: the function.
      prevent_cse: keep XLA from merging both computations; not needed inside `scan`. A sequence has
        a bool for each array: it is a prefix of the tuple of arguments that are not static, or, if
        some are given by keyword, of the pair of that tuple and the keywords.
      policy: `(primitive, *avals, **params) -> bool`: which results to keep after all; see
        `checkpoint_policies`.
      static_argnums, static_argnames: arguments that are not arrays.

    Returns:
      A function with the same arguments and result.

    >>> f = olympus.checkpoint(lambda x: onp.sin(onp.sin(x)))
    >>> print(f"{olympus.grad(f)(1.0):.4f}")
    0.3600
    """
    check_callable("checkpoint", fun=fun)
    if policy is not None:
        check_callable("checkpoint", policy=policy)
    nums = {static_int(n, "checkpoint", "static_argnums") for n in entries(static_argnums)}
    names = entries(static_argnames)
    if not all(isinstance(n, str) for n in names):
        raise TypeError(f"checkpoint: static_argnames {static_argnames!r} given; names (str) are "
                        "required.")
    nums |= _positions(fun, set(names))
    if not isinstance(prevent_cse, (bool, tuple, list)) or not all(
            type(x) is bool for x in tree_leaves(prevent_cse)):
        raise TypeError(f"checkpoint: prevent_cse {prevent_cse!r} given; a bool, or a sequence "
                        "with the structure of the arguments whose leaves are bools, is required.")
    call = cast("Callable[..., R]", fun)

    @wraps(fun)
    def wrapped(*args: Array, **kwargs: PyTree) -> object:
        static = {n % len(args) for n in nums if -len(args) <= n < len(args)}
        fixed = {k: v for k, v in kwargs.items() if k in names}
        dynamic = ([a for i, a in enumerate(args) if i not in static],
                   {k: v for k, v in kwargs.items() if k not in names})

        def body(given: list[Array], named: dict[str, PyTree]) -> PyTree:
            rest = iter(given)
            return call(*[a if i in static else next(rest) for i, a in enumerate(args)], **named,
                        **fixed)

        leaves, avals, tree = flatten("checkpoint", dynamic)
        prevented: Prevent = prevent_cse is True
        if not isinstance(prevent_cse, bool):
            whole = tuple(dynamic[0])
            flags = tuple(broadcast_prefix(
                tuple(prevent_cse), (whole, dynamic[1]) if dynamic[1] else whole))
            prevented = any(flags) and flags
        # Static arguments are part of the key of the staged body. Those whose equality says too
        # little leave it without a key: it is staged at each call.
        given = {**{i: args[i] for i in static}, **fixed}
        key = (len(args), *[(k, bit_key(v)) for k, v in given.items()]) \
            if all(type(v) in _PLAIN for v in given.values()) else None
        try:
            staged = stage_body(Derived(body, fun, key, "checkpoint"), tree, avals)
            if MUTABLE:
                named = sorted(dynamic[1])
                check_aliases("checkpoint", fun, staged.consts, leaves, tree_structure(
                    (*dynamic[0], *[dynamic[1][k] for k in named])), (*static,), named)
        except Exception as error:
            filter_traceback(error)
            raise
        if type(prevented) is tuple:
            prevented = (False,) * len(staged.consts) + prevented
        out = checkpoint_p.bind(*staged.consts, *leaves, olympuspr=staged.program,
                                prevent_cse=prevented, differentiated=False, policy=policy)
        return tree_unflatten(staged.out_tree, out)

    return wrapped


# Static arguments that are all that they say; others may change, or equal different objects.
_PLAIN = (bool, int, float, complex, str, bytes, type(None))


def _positions(fun: Callable[..., PyTree], names: set[str]) -> set[int]:
    """Where arguments of these names stand if they are given by position."""
    try:
        parameters = list(inspect.signature(fun).parameters.values())
    except (TypeError, ValueError):
        return set()
    return {i for i, p in enumerate(parameters)
            if p.name in names and p.kind is p.POSITIONAL_OR_KEYWORD}


class Name(Primitive):
    """The operand, under a name that checkpoint policies see."""

    spread = staticmethod(tags.same)
    cells = staticmethod(reuse.same)
    makes_nan = False
    pace = 0.3

    def infer(self, x: ShapedArray, *, name: str) -> ShapedArray:
        return x

    def lower(self, b: Builder, x: IrValue, *, name: str) -> IrValue:
        return x

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Tangent], *, name: str
            ) -> tuple[Array, Tangent]:
        return self.bind(*primals, name=name), tangents[0]

    def transpose(self, ct: Array, x: Linear, *, name: str) -> list[Cotangent]:
        return [ct if type(x) is Linear else None]

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None], *, name: str
             ) -> tuple[Array, int | None]:
        return self.bind(*args, name=name), dims[0]


name_p = Name("name")


def checkpoint_name(x: PyTree, name: str) -> PyTree:
    """`x`, with a name for the policies `save_only_these_names` and its like.

    Args:
      x: a pytree of arrays.
      name: any str; several values may have one.

    Returns:
      The same values.

    >>> from olympus.ad_checkpoint import checkpoint_name
    >>> keep = olympus.checkpoint_policies.save_only_these_names("wave")
    >>> wave = lambda x: checkpoint_name(olympus.numpy.sin(x), "wave") ** 2
    >>> f = olympus.checkpoint(wave, policy=keep)
    >>> print(f"{olympus.grad(f)(1.0):.4f}")
    0.9093
    """
    if not isinstance(name, str):
        raise TypeError(f"checkpoint_name: name is {name!r}; a str is required.")
    return tree_map(lambda leaf: name_p.bind(leaf, name=name), x)


def checkpoint_name_fwd(x: PyTree, name: str) -> Array:
    """`checkpoint_name` for values of the function itself: its derivatives have no name.

    That is what `checkpoint_name` does, too.

    Args:
      x: a pytree of arrays.
      name: any str.

    Returns:
      The same values.

    >>> from olympus.ad_checkpoint import checkpoint_name_fwd
    >>> f = lambda x: olympus.numpy.sin(checkpoint_name_fwd(x, "angle"))
    >>> str(olympus.make_olympuspr(lambda x: olympus.jvp(f, (x,), (x,)))(1.0)).count("name=angle")
    1
    """
    return checkpoint_name(x, name)


Policy = Callable[..., bool | _Verdict | Offloadable]


class checkpoint_policies:
    """Policies for `checkpoint`: what to keep for reverse mode.

    Each is `(primitive, *avals, **params) -> bool`, or is made by a function of names, such as
    `save_only_these_names`, which `ad_checkpoint.checkpoint_name` gives.

    >>> import olympus
    >>> keep_dots = olympus.checkpoint_policies.dots_saveable
    >>> f = olympus.checkpoint(lambda x: olympus.numpy.sin(x @ x), policy=keep_dots)
    >>> print(olympus.grad(lambda x: f(x).sum())(olympus.numpy.zeros((2, 2)) + 1).round(2))
    [[-1.66 -1.66]
     [-1.66 -1.66]]
    """

    @staticmethod
    def everything_saveable(prim: Primitive, *avals: Aval, **params: object) -> bool:
        """Keep all: as without checkpoint."""
        return True

    @staticmethod
    def nothing_saveable(prim: Primitive, *avals: Aval, **params: object) -> bool:
        """Keep only inputs."""
        return False

    @staticmethod
    def dots_saveable(prim: Primitive, *avals: Aval, **params: object) -> bool:
        """Keep results of matrix products and convolutions."""
        return prim is dot_general_p or prim is conv_general_dilated_p

    checkpoint_dots = dots_saveable

    @staticmethod
    def dots_with_no_batch_dims_saveable(prim: Primitive, *avals: Aval, **params: Any) -> bool:
        """Keep results of matrix products without batch axes."""
        return prim is dot_general_p and params["dimension_numbers"][1] == ((), ())

    checkpoint_dots_with_no_batch_dims = dots_with_no_batch_dims_saveable

    @staticmethod
    def save_only_these_names(*names: str) -> Policy:
        """Keep values that `checkpoint_name` gave one of these names."""
        return lambda prim, *_, **params: prim is name_p and params["name"] in names

    @staticmethod
    def save_any_names_but_these(*names: str) -> Policy:
        """Keep values that have a name, except these."""
        return lambda prim, *_, **params: prim is name_p and params["name"] not in names

    @staticmethod
    def save_anything_except_these_names(*names: str) -> Policy:
        """Keep all values but those with one of these names."""
        return lambda prim, *_, **params: not (prim is name_p and params["name"] in names)

    @staticmethod
    def offload_dot_with_no_batch_dims(offload_src: Space | str, offload_dst: Space | str
                                       ) -> Policy:
        """Move results of matrix products without batch axes to another memory space."""
        moved = Offloadable(Space.of(offload_src), Space.of(offload_dst))
        keep = checkpoint_policies.dots_with_no_batch_dims_saveable
        return lambda prim, *avals, **params: (
            moved if keep(prim, *avals, **params) else Recompute)

    @staticmethod
    def save_and_offload_only_these_names(
            *, names_which_can_be_saved: Sequence[str], names_which_can_be_offloaded: Sequence[str],
            offload_src: Space | str, offload_dst: Space | str) -> Policy:
        """Keep values with one set of names, move those with another to a memory space.

        Names are those that `checkpoint_name` gives; a name may be in one set only (ValueError).
        """
        saved, offloaded = set(names_which_can_be_saved), set(names_which_can_be_offloaded)
        if saved & offloaded:
            raise ValueError(
                f"save_and_offload_only_these_names: {sorted(saved & offloaded)} in both sets; a "
                "value is either saved or offloaded; drop the names from one.")
        moved = Offloadable(Space.of(offload_src), Space.of(offload_dst))

        def policy(prim: Primitive, *_: object, **params: Hashable) -> _Verdict | Offloadable:
            name = params["name"] if prim is name_p else None
            return Saveable if name in saved else moved if name in offloaded else Recompute

        return policy

    @staticmethod
    def save_from_both_policies(policy_1: Policy, policy_2: Policy) -> Policy:
        """Keep what either policy keeps; where both do, as the first one says."""
        def policy(prim: Primitive, *avals: Aval, **params: Hashable
                   ) -> bool | _Verdict | Offloadable:
            first = policy_1(prim, *avals, **params)
            return policy_2(prim, *avals, **params) if first in (False, Recompute) else first

        return policy
