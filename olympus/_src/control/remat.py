"""The primitive of `checkpoint`: reverse mode keeps only a program's inputs."""

from __future__ import annotations

import functools
import logging
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from itertools import compress
from typing import Any, NamedTuple

from ..base.config import debug_key_reuse, log_checkpoint_residuals
from ..base.logs import LOGGER
from ..base.typing import Array, ArrayLike, IrValue, Params
from ..base.util import merged, name_of
from ..core import reuse, tags
from ..core.evaluate import eval_closed
from ..core.ir import Atom, ClosedOlympuspr, Olympuspr, OlympusprEqn, Var, derived, read, variables
from ..core.primitive import Axis, Builder, Cotangent, Higher, Linear, Primitive, Tangent
from ..core.staging import stage
from ..core.trace import typeof
from ..interpreters.dce import dce_closed
from ..interpreters.partial_eval import TapeTrace, partial_eval_program
from ..lax.barriers import random_clone_p
from ..lax.families import add_p
from ..lax.sharding import move
from ..types import dtypes
from ..types.avals import ShapedArray
from ..types.memory import Space
from .call import Call, Picked, call_p
from .cond import cond_p
from .scan_primitive import scan_p

Prevent = bool | tuple[bool, ...]


class Checkpoint(Call):
    """params: olympuspr, prevent_cse (a bool, or one for each operand), differentiated, policy."""

    called = False
    fusion = ""
    lowered = ("olympuspr", "prevent_cse", "differentiated")
    # Not Call's, which splits the body and keeps its residuals: the tape must use `partial_eval`.
    linearize = Higher.linearize

    def cells(self, use: reuse.Use, cells: Sequence[reuse.Cells], eqn: OlympusprEqn
              ) -> list[reuse.Cells]:
        # A recomputation does not use its keys again.
        differentiated = eqn.params["differentiated"]
        return reuse.read(use, cells, eqn) if differentiated else super().cells(use, cells, eqn)

    def evaluated(self, params: Params) -> Callable[..., list[Array]] | None:
        # An outsider's operation that cannot be compiled is evaluated by its `impl`.
        body = params["olympuspr"]
        return functools.partial(eval_closed, body) if any(
            eqn.primitive.uncompiled for eqn in body.eqns) else None

    def stays(self, params: Params) -> bool:
        flags = params["prevent_cse"]
        prevented = params["differentiated"] and (any(flags) if type(flags) is tuple else flags)
        # All ordered effects of a module are in one function.
        return prevented and not any(e.ordered for e in params["olympuspr"].effects)

    def lower(self, b: Builder, *args: IrValue, olympuspr: ClosedOlympuspr, prevent_cse: Prevent,
              differentiated: bool, policy: object) -> list[IrValue]:
        part = "checkpoint/rematted_computation" if differentiated else "checkpoint"
        if b.stays:
            return b.call_kept(olympuspr, args, part)
        flags = prevent_cse if type(prevent_cse) is tuple else (prevent_cse,) * len(args)
        if differentiated and any(flags):
            # XLA sums a loop's total over devices once, after the loop, if no barrier hides it.
            totals = _only_added_to(olympuspr.olympuspr)
            flags = [flag and v not in totals
                     for flag, v in zip(flags, olympuspr.invars, strict=True)]
        if differentiated and any(flags):
            # Without the barrier XLA would merge the second computation with the first.
            results = iter(b.barriers([*compress(args, flags)], [*compress(b.avals_in, flags)]))
            args = tuple([b.spread(next(results), a) if flag else x
                          for x, a, flag in zip(args, b.avals_in, flags, strict=True)])
        return b.call_inline(olympuspr, args, part)

    def with_program(self, params: Params, body: ClosedOlympuspr, ins: Picked, outs: Picked,
                 transposed: bool = False) -> Params:
        flags, n = params["prevent_cse"], len(params["olympuspr"].invars)
        if type(flags) is tuple:    # True for tangents and cotangents, which are computed
            flags = tuple(ins(flags, (True,) * n, (), (True,) * len(params["olympuspr"].outvars)))
        return {**params, "olympuspr": body, "prevent_cse": flags}

    def partial_eval(self, tape: TapeTrace, args: Sequence[Array], unknown: Sequence[bool], *,
                     olympuspr: ClosedOlympuspr, policy: Policy | None, prevent_cse: Prevent,
                     **params: Hashable) -> Sequence[Array]:
        # A policy decides about operations: inline calls for it, and rewrite loops and branches.
        if policy is not None:
            olympuspr = _pass_on(inline_calls(olympuspr), policy)
        split = partial_eval_program(olympuspr, unknown)
        known = [a for a, u in zip(args, unknown, strict=True) if not u]
        #   first   known                    ->  known outputs, saved     now
        #   again   known, saved, unknown    ->  unknown outputs    recorded, a checkpoint too
        # Without a policy nothing is saved: all residuals are recomputed from the known operands.
        first, saved, again = _halves(olympuspr, tuple(unknown), policy)
        out = eval_closed(first, *(_unused(known) if params["differentiated"] else known))
        num_known = len(out) - len(saved)
        # Offloaded values go to the other memory here; `later` in `_halves` brings them back.
        out[num_known:] = [move(x, how.dst) if isinstance(how, Offloadable) else x
                           for x, how in zip(out[num_known:], saved, strict=True)]
        unknown_outs: list[Any] = []
        if any(split.unknown_out):
            # Drop operands that the recomputation does not read: that saves their memory.
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
            unknown_outs = tape.record(self, [a for a, u in zip(operands, used, strict=True) if u],
                                       {"olympuspr": body, **params, "differentiated": True,
                                        "prevent_cse": prevent_cse, "policy": policy})
        return merged(split.unknown_out, unknown_outs, out[:num_known])

    def transpose(self, cts: Sequence[Array], *args: Array | Linear, **params: Hashable
                  ) -> list[Cotangent]:
        return super().transpose(cts, *args, **{**params, "differentiated": True})


def _only_added_to(pr: Olympuspr) -> set[Var]:
    """The inputs that a result adds something to, and nothing else reads: sums so far."""
    reads = Counter(v for eqn in pr.eqns for v in variables(eqn.invars))
    reads.update(variables(pr.outvars))
    outs = set(variables(pr.outvars))
    added = {v for eqn in pr.eqns if eqn.primitive is add_p and eqn.outvars[0] in outs
             for v in variables(eqn.invars)}
    return {v for v in pr.invars if v in added and reads[v] == 1}


def _log_kept(level: int, program: ClosedOlympuspr, known: Sequence[object],
              used: Sequence[bool]) -> None:
    """Log the residuals that a checkpoint keeps until it recomputes the rest."""
    shown = [str(typeof(x)) for x, u in zip(known, used, strict=False) if u]
    LOGGER.log(level, "checkpoint: %s keeps %d arrays: %s",
               program.olympuspr.debug_info.func_name, len(shown), ", ".join(shown))


def _unused(xs: Sequence[Array]) -> Sequence[Array]:
    """The operands of a recomputation; for `core.reuse`, keys are cloned, since they are used."""
    if not debug_key_reuse.value:
        return xs
    return [random_clone_p.bind(x) if dtypes.is_key(getattr(typeof(x), "dtype", None)) else x
            for x in xs]


class Verdict:
    """A policy's answer for a value, in place of a bool."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> str:
        return self.name    # by name: answers are compared by identity


Saveable = Verdict("Saveable")
Recompute = Verdict("Recompute")


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
    """The program with checkpointed bodies in loops, branches and shard_maps, where the policy
    keeps a value inside: each iteration, branch or device then keeps only the policy's values."""
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
        bodies = eqn.params[name]
        return eqn.replace(params={**eqn.params, name: (
            tuple([_checkpointed(body, policy) for body in bodies]) if type(bodies) is tuple
            else _checkpointed(bodies, policy))})

    pr = closed.olympuspr
    return closed.replace(olympuspr=pr.replace(eqns=list(map(passed_on, pr.eqns))))


def _keeps_inside(policy: Policy, eqn: OlympusprEqn) -> bool:
    """Whether the policy keeps a value in a body of a scan, a cond or a shard_map."""
    return (eqn.primitive in (scan_p, cond_p) or eqn.primitive.per_device) and any(
        _verdict(policy, e) is not Recompute
        for body in eqn.primitive.bodies(eqn.params) for e in inline_calls(body).olympuspr.eqns)


@derived
def _halves(closed: ClosedOlympuspr, unknown: tuple[bool, ...], policy: Policy | None
            ) -> tuple[ClosedOlympuspr, list[Verdict | Offloadable], ClosedOlympuspr]:
    """The first program, the verdict on each saved value, and the program for reverse mode.

    first:  known inputs -> known outputs, saved values
    again:  known inputs, saved values, unknown inputs -> unknown outputs
    """
    #   inputs ──► … ──► saved ──► … ──► residuals
    # `first` computes the saved values; `rest` computes the residuals from inputs and saved values.
    # Equations that make saved values are not in `rest`, nor are equations that only these need.
    split = partial_eval_program(closed, unknown)
    pr = split.known.olympuspr
    n = len(pr.outvars) - split.num_computed
    residuals = pr.outvars[n:]
    verdicts = {v: verdict for eqn in pr.eqns if policy is not None
                and (verdict := _verdict(policy, eqn)) is not Recompute for v in eqn.outvars}
    wanted = _needed(pr.eqns, residuals, set(verdicts))
    # A value is saved only if a residual is computed from it, whatever the policy says.
    saved = [v for v in verdicts if v in wanted]
    now = pr.replace(outvars=[*pr.outvars[:n], *saved])
    first, _ = dce_closed(split.known.replace(olympuspr=now), (True,) * len(now.outvars))
    stops = set(saved)

    def again_too(eqn: OlympusprEqn) -> bool:
        if eqn.outvars or policy is None:
            return not any(v in stops for v in eqn.outvars)
        # An equation without results: its effect happens again only if the policy recomputes it, or
        # none of its operands is kept.
        return not any(v in verdicts for v in variables(eqn.invars)) or _verdict(
            policy, eqn) is Recompute

    rest = split.known.replace(olympuspr=pr.replace(
        invars=[*pr.invars, *saved], outvars=residuals, eqns=list(filter(again_too, pr.eqns))))
    rest, _ = dce_closed(rest, (True,) * len(residuals))
    num_known, num_saved = len(pr.invars), len(saved)

    def later(*args: ArrayLike) -> Sequence[Array]:
        known = args[:num_known]
        values = [move(x, to.src) if isinstance(to := verdicts[v], Offloadable) else x
                  for v, x in zip(saved, args[num_known:], strict=False)]
        computed = eval_closed(rest, *known, *values)
        return eval_closed(split.unknown, *split.residual_values(known, computed),
                           *args[num_known + num_saved:])

    unknown_avals = split.unknown.in_avals[len(split.residuals):]
    saved_avals = [v.aval.update(memory_space=to.dst) if isinstance(to := verdicts[v], Offloadable)
                   else v.aval for v in saved]
    again = stage(later, [*split.known.in_avals, *saved_avals, *unknown_avals])
    return first, [verdicts[v] for v in saved], again


def _verdict(policy: Policy, eqn: OlympusprEqn) -> Verdict | Offloadable:
    """A policy's answer for an equation, with bools as `Saveable` or `Recompute`."""
    verdict = policy(eqn.primitive, *[v.aval for v in eqn.invars], **eqn.params)
    if isinstance(verdict, Offloadable):
        return Offloadable(*map(Space.of, verdict))
    if isinstance(verdict, Verdict):
        return verdict
    if callable(verdict):
        raise TypeError(f"checkpoint: policy {name_of(policy)} returned {verdict!r}; a bool is "
                        "required; a policy that takes names is called with them first: "
                        "policy=save_only_these_names('a').")
    # A loop or branch that keeps values inside must hand them on to reverse mode.
    return Saveable if verdict or _keeps_inside(policy, eqn) else Recompute


def _needed(eqns: Sequence[OlympusprEqn], outs: Sequence[Atom], stops: set[Var]) -> set[Var]:
    """The variables that `outs` depend on, up to `stops`."""
    # A stop is live, but does not make its own operands live.
    live: set[Any] = set(variables(outs))
    for eqn in reversed(eqns):
        if any(v in live for v in eqn.outvars) and not any(v in stops for v in eqn.outvars):
            live.update(variables(eqn.invars))
    return live


checkpoint_p = Checkpoint("remat2")


class Name(Primitive):
    """The operand, with a name that checkpoint policies read."""

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


Policy = Callable[..., bool | Verdict | Offloadable]
