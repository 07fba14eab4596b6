"""The demands of a program on a machine: operations, bytes of memory and of links.

Each operation is judged by XLA's own estimates; products of matrices and convolutions are what
bounds a program that is fused, and everything counts in one that is not.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from ..autodiff.derivatives import vjp as vjp_
from ..base.typing import DuckTypedArray, PyTree
from ..base.util import wraps
from ..core.ir import ClosedOlympuspr, Olympuspr, OlympusprEqn, Var, variables
from ..core.primitive import Primitive
from ..jit.arguments import check_callable
from ..jit.cost_table import operation_cost
from ..jit.tracing import make_olympuspr
from ..types import dtypes
from ..types.mesh import AbstractMesh, Mesh
from ..types.shape import prod
from .shard_map import shard_map

ByAxis: TypeAlias = dict[Any, int]
ValidRooflineDtype: TypeAlias = np.dtype | dtypes.ExtendedDType


def _added(first: ByAxis, second: ByAxis) -> ByAxis:
    return {axis: first.get(axis, 0) + second.get(axis, 0) for axis in {**first, **second}}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RooflineResult:
    """The demands of a program, or of a part of it, on a device.

    Attributes:
      flops: floating-point operations of products of matrices and convolutions.
      unfused_flops: the operations' total.
      ici_bytes: bytes over the links to other devices, by axis of the mesh.
      ici_latency: steps over these links, by axis.
      hbm_bytes: bytes that products and convolutions read and write.
      peak_hbm_bytes: bytes of the values that are alive at one time, at most.
      unfused_hbm_bytes: bytes that all operations read and write.

    >>> from olympus.experimental.roofline import RooflineResult
    >>> (RooflineResult(flops=2) + RooflineResult(flops=3, hbm_bytes=4) * 2).flops
    8
    """

    flops: int = 0
    unfused_flops: int = 0
    ici_bytes: ByAxis = dataclasses.field(default_factory=dict)
    ici_latency: ByAxis = dataclasses.field(default_factory=dict)
    hbm_bytes: int = 0
    peak_hbm_bytes: int = 0
    unfused_hbm_bytes: int = 0

    @classmethod
    def zeros(cls) -> RooflineResult:
        """The demands of an empty program."""
        return cls()

    def __add__(self, other: RooflineResult) -> RooflineResult:
        """One after the other: the peak is one program's."""
        return RooflineResult(
            flops=self.flops + other.flops, hbm_bytes=self.hbm_bytes + other.hbm_bytes,
            unfused_flops=self.unfused_flops + other.unfused_flops,
            unfused_hbm_bytes=self.unfused_hbm_bytes + other.unfused_hbm_bytes,
            ici_bytes=_added(self.ici_bytes, other.ici_bytes),
            ici_latency=_added(self.ici_latency, other.ici_latency),
            peak_hbm_bytes=max(self.peak_hbm_bytes, other.peak_hbm_bytes))

    def __mul__(self, count: float) -> RooflineResult:
        """Several times."""
        return RooflineResult(
            flops=int(self.flops * count), hbm_bytes=int(self.hbm_bytes * count),
            unfused_flops=int(self.unfused_flops * count),
            unfused_hbm_bytes=int(self.unfused_hbm_bytes * count),
            ici_bytes={axis: int(n * count) for axis, n in self.ici_bytes.items()},
            ici_latency={axis: int(n * count) for axis, n in self.ici_latency.items()},
            peak_hbm_bytes=self.peak_hbm_bytes)

    __rmul__ = __mul__


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RooflineShape:
    """The shape and dtype of an operand.

    >>> import numpy as np
    >>> from olympus.experimental.roofline import RooflineShape
    >>> RooflineShape(shape=(2, 3), dtype=np.dtype("float32")).bytes
    24
    """

    shape: tuple[int, ...]
    dtype: ValidRooflineDtype

    @classmethod
    def from_aval(cls, aval: DuckTypedArray) -> RooflineShape:
        """The shape of an aval or of a ShapeDtypeStruct."""
        return cls(shape=tuple(aval.shape), dtype=aval.dtype)

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(prod(self.shape))

    @property
    def bytes(self) -> int:
        """The bytes that they take."""
        # A key has two words of 32 bits (threefry's). Parts of a byte, of int4, count as a whole.
        bits = dtypes.itemsize_bits(self.dtype) if isinstance(self.dtype, np.dtype) else 64
        return -(-self.size * bits // 8)

    @classmethod
    def total_bytes(cls, avals: Iterable[Any]) -> int:
        """The bytes of several types."""
        return sum(cls.from_aval(aval).bytes for aval in avals if hasattr(aval, "shape"))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RooflineRuleContext:
    """The context of an operation for a rule of `register_roofline`.

    >>> import olympus
    >>> from olympus.experimental.roofline import RooflineRuleContext
    >>> [f.name for f in __import__("dataclasses").fields(RooflineRuleContext)][:2]
    ['name_stack', 'primitive']
    """

    name_stack: Any
    primitive: Any
    avals_in: Sequence[Any]
    avals_out: Sequence[Any]
    olympuspr_eqn_ctx: Any
    mesh: Mesh | AbstractMesh | None
    pin_lhs_in_vmem: bool
    pin_rhs_in_vmem: bool


Rule: TypeAlias = Callable[..., RooflineResult]
_rules: dict[Any, Rule] = {}


def register_roofline(prim: Primitive) -> Callable[[Rule], Rule]:
    """Decorator: a rule for the demands of an operation on a machine.

    Args: prim: the primitive.
    Returns: A decorator of `rule(ctx, *operands, **params)`, where `ctx` is a `RooflineRuleContext`
      and operands are `RooflineShape`s; it returns a `RooflineResult`.

    >>> import olympus
    >>> from olympus.experimental import roofline
    >>> @roofline.register_roofline(olympus.lax.erf_inv_p)
    ... def rule(ctx, x, **params):
    ...     return roofline.RooflineResult(unfused_flops=30 * x.size)
    >>> roofline.roofline(olympus.lax.erf_inv)(olympus.numpy.ones(4))[1].unfused_flops
    120
    """
    def register(rule: Rule) -> Rule:
        _rules[prim] = rule
        return rule
    return register


def register_standard_roofline(prim: Primitive) -> None:
    """Let an operation ask for what XLA estimates, as all do that have no rule.

    Args: prim: the primitive, whose rule is dropped.

    >>> import olympus
    >>> from olympus.experimental import roofline
    >>> roofline.register_standard_roofline(olympus.lax.erf_inv_p)
    """
    _rules.pop(prim, None)


def roofline(f: Callable[..., PyTree], mesh: Mesh | AbstractMesh | None = None,
             in_specs: PyTree = None, out_specs: PyTree = None, *, pin_lhs_in_vmem: bool = False,
             pin_rhs_in_vmem: bool = False, vjp: bool = False, print_olympuspr: bool = False
             ) -> Callable[..., tuple[PyTree, RooflineResult]]:
    """The demands of a function on a machine; nothing is computed.

    Args:
      f: a function of pytrees of arrays.
      mesh, in_specs, out_specs: if given, `f` is the program of one device of `shard_map`, and the
        result is for one device.
      pin_lhs_in_vmem, pin_rhs_in_vmem: whether the operands of products are in fast memory already:
        they are not counted as read.
      vjp: of the function and its pullback, of cotangents like its result.
      print_olympuspr: whether the program is printed.
    Returns: A function of the same arguments, arrays or structs, that returns the structs of the
      result and a `RooflineResult`. What a loop of known length does counts as often as it runs.

    >>> import olympus
    >>> from olympus.experimental.roofline import roofline
    >>> x = olympus.ShapeDtypeStruct((64, 32), "float32")
    >>> out, found = roofline(lambda x: olympus.numpy.tanh(x @ x.T))(x)
    >>> out.shape, found.flops, found.hbm_bytes
    ((64, 64), 262144, 32768)
    """
    check_callable("roofline", f)
    run = f
    if mesh is not None and in_specs is not None:
        run = shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False)
    traced = _with_pullback(run) if vjp else run

    @wraps(f)
    def judged(*args: PyTree) -> tuple[PyTree, RooflineResult]:
        closed, out = make_olympuspr(traced, return_shape=True)(*args)
        if print_olympuspr:
            print(closed)
        return out, _Judge(mesh, pin_lhs_in_vmem, pin_rhs_in_vmem).program(closed)

    return judged


def roofline_and_grad(f: Callable[..., PyTree], mesh: Mesh | AbstractMesh | None, in_specs: PyTree,
                      out_specs: PyTree, *, pin_lhs_in_vmem: bool = False,
                      pin_rhs_in_vmem: bool = False, print_olympuspr: bool = False
                      ) -> Callable[..., tuple[PyTree, RooflineResult, RooflineResult]]:
    """The demands of a function on a machine, alone and with its pullback.

    Args: f, mesh, in_specs, out_specs, pin_lhs_in_vmem, pin_rhs_in_vmem, print_olympuspr: as for
        `roofline`.
    Returns: A function of the same arguments that returns the structs of the result and two
      `RooflineResult`s.

    >>> import olympus
    >>> from olympus.experimental.roofline import roofline_and_grad
    >>> x = olympus.ShapeDtypeStruct((8, 8), "float32")
    >>> _, alone, both = roofline_and_grad(lambda x: x @ x, None, None, None)(x)
    >>> both.flops / alone.flops
    3.0
    """
    options = {"pin_lhs_in_vmem": pin_lhs_in_vmem, "pin_rhs_in_vmem": pin_rhs_in_vmem,
               "print_olympuspr": print_olympuspr}

    @wraps(f)
    def judged(*args: PyTree) -> tuple[PyTree, RooflineResult, RooflineResult]:
        out, alone = roofline(f, mesh, in_specs, out_specs, **options)(*args)
        _, both = roofline(f, mesh, in_specs, out_specs, vjp=True, **options)(*args)
        return out, alone, both

    return judged


def _with_pullback(f: Callable[..., PyTree]) -> Callable[..., PyTree]:
    def both(*args: PyTree) -> object:
        out, pullback = vjp_(f, *args)
        return out, pullback(out)       # the result has the types that a cotangent must have
    return both


class _Judge:
    """Walks through programs and adds up what their equations ask for."""

    def __init__(self, mesh: Mesh | AbstractMesh | None, pin_lhs: bool, pin_rhs: bool) -> None:
        self.mesh, self.pinned = mesh, (pin_lhs, pin_rhs)

    def program(self, closed: ClosedOlympuspr | Olympuspr) -> RooflineResult:
        """The demands of a program: the sum of its equations', and the most memory alive."""
        pr = closed.olympuspr if isinstance(closed, ClosedOlympuspr) else closed
        total = RooflineResult()
        for eqn in pr.eqns:
            total += self._equation(eqn)
        if any(eqn.primitive.per_device for eqn in pr.eqns):
            return total        # whose values here cover all devices
        return dataclasses.replace(total, peak_hbm_bytes=max(total.peak_hbm_bytes, _peak(pr)))

    def _equation(self, eqn: OlympusprEqn) -> RooflineResult:
        prim, params = eqn.primitive, eqn.params
        # A rule comes first: it may be of an operation with bodies, which are not judged then.
        if prim in _rules:
            context = RooflineRuleContext(
                name_stack=eqn.ctx, primitive=prim, avals_in=[v.aval for v in eqn.invars],
                avals_out=[v.aval for v in eqn.outvars], olympuspr_eqn_ctx=eqn.ctx, mesh=self.mesh,
                pin_lhs_in_vmem=self.pinned[0], pin_rhs_in_vmem=self.pinned[1])
            return _rules[prim](context, *[RooflineShape.from_aval(v.aval) for v in eqn.invars],
                                **params)
        if prim.ring is not None:
            return self._collective(eqn, prim.ring)
        # A linear solve runs its solver, not the programs that its derivatives need. The body of a
        # reduction or scatter runs for each element: XLA's estimate says that.
        bodies = [self.program(body) for _, body, _ in prim.applied(params, eqn.invars)]
        if not bodies:
            return self._operation(eqn)
        if prim.branches:       # any of them may run
            return max(bodies, key=lambda result: result.unfused_flops)
        times = prim.times(params)
        # How often a `while` runs is not known: its bodies count once.
        return sum(bodies, RooflineResult()) * (1 if times is None else times)

    def _operation(self, eqn: OlympusprEqn) -> RooflineResult:
        # XLA counts exp, sin and their like apart; here each is one operation.
        cost = operation_cost(eqn)
        flops, size = int(cost.flops + cost.transcendentals), int(cost.bytes)
        if not eqn.primitive.contracts:
            return RooflineResult(unfused_flops=flops, unfused_hbm_bytes=size)
        # Operands behind the first two (sizes of groups, scales) are small, and left out.
        loaded = [v.aval for v, pinned in zip(eqn.invars, self.pinned, strict=False) if not pinned]
        moved = RooflineShape.total_bytes([*loaded, *[v.aval for v in eqn.outvars]])
        return RooflineResult(flops=flops, unfused_flops=flops, hbm_bytes=moved,
                              unfused_hbm_bytes=moved)

    def _collective(self, eqn: OlympusprEqn, ring: Callable[[int, int], tuple[int, int]]
                    ) -> RooflineResult:
        """Over a ring along each axis."""
        named = eqn.params.get("axes", eqn.params.get("axis_name"))
        sizes = {} if self.mesh is None else self.mesh.shape
        axes = [a for a in (named if isinstance(named, (tuple, list)) else (named,)) if a in sizes]
        count = int(prod([sizes[a] for a in axes]))
        size = RooflineShape.total_bytes([v.aval for v in eqn.invars])
        moved, steps = ring(size, count)
        return RooflineResult(ici_bytes=dict.fromkeys(axes, moved),
                              ici_latency=dict.fromkeys(axes, steps))


def _peak(pr: Olympuspr) -> int:
    """The bytes of the values that are alive at one time, at most, if equations run in order."""
    last: dict[Any, int] = {}
    for at, eqn in enumerate(pr.eqns):
        last.update(dict.fromkeys(variables(eqn.invars), at))
    last.update(dict.fromkeys(variables(pr.outvars), len(pr.eqns)))

    def size(v: Var) -> int:
        return RooflineShape.total_bytes([v.aval])

    alive = peak = sum(map(size, {*pr.invars, *pr.constvars}))
    for at, eqn in enumerate(pr.eqns):
        alive += sum(map(size, eqn.outvars))
        peak = max(peak, alive)
        ended = {v for v in variables(eqn.invars) if last[v] == at}
        # A value that nothing reads is alive while its equation runs.
        alive -= sum(map(size, ended)) + sum(size(v) for v in eqn.outvars if v not in last)
    return peak
