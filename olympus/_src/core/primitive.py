"""Primitive: an operation together with every rule that the interpreters read.

Each rule is a method. A class that lacks a rule fails when it is defined; a rule that cannot exist
is set to `None`. Families (`lax.families` …) derive several rules from one fact. Outsiders may
instead write `Primitive("name")` and give the rules one at a time, through the tables of
`olympus.interpreters`, which are views of these methods.
"""

from __future__ import annotations

import importlib
import inspect
import sys
import types
from collections.abc import Callable, Hashable, Iterable, Iterator, MutableMapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias, Unpack, final
from weakref import WeakSet

from ..base.config import remove_size_one_mesh_axis_from_type
from ..base.errors import RuleMissingError
from ..base.typing import Array, ArrayLike, DimSize, F, IrValue, Params, T, Value
from ..base.util import ByKey, Memo, living
from ..types.avals import HIGH, MUTABLE, AbstractValue, Aval, ShapedArray, is_float0
from ..types.mesh import mesh_of_types
from ..types.tree_registry import register_pytree_node
from .effects import Effect
from .facts import GivenFacts, Shapes
from .ir import NO_EFFECTS, ClosedOlympuspr, DropVar, Olympuspr, OlympusprEqn, derived, numbers
from .tags import TagRules, as_inferred, by_body, check_varying, tagged
from .trace import Trace, ctx, enter, leave, typeof

if TYPE_CHECKING:
    from ..lowering.builder import Builder  # `lowering` is above `core`
else:
    Builder = Any

_MEMO_LIMIT = 8192


def _object_of_module(module: str, name: str) -> Any:
    """The object that a pickle refers to by module and name."""
    return getattr(importlib.import_module(module), name)


@final      # so that checkers know what `type(x) is Zero` leaves
class Zero:
    """A tangent or cotangent known to be zero: no array is made for it.

    >>> import olympus
    >>> from olympus.interpreters.ad import Zero
    >>> Zero(olympus.typeof(1.0))
    Zero(float32[])
    """

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray) -> None:
        self.aval = aval

    @staticmethod
    def from_primal_value(value: Array) -> Zero:
        """The zero tangent of a primal value."""
        return Zero(value.aval.to_tangent_aval())

    def __repr__(self) -> str:
        return f"Zero({self.aval})"


def with_zeros(avals: Sequence[ShapedArray], nonzero: Iterator[Array]) -> list[Any]:
    """A tangent or cotangent for each aval: `Zero` for float0, the next given one otherwise."""
    return [Zero(a) if is_float0(a) else next(nonzero) for a in avals]


def spread_tangents(avals: Iterable[Aval], nonzero: Iterable[bool], tangents: Iterable[Tangent]
                    ) -> list[Tangent]:
    """A tangent for each value: the next of `tangents` where it is not zero, a `Zero` elsewhere."""
    nonzero_tangents = iter(tangents)
    return [next(nonzero_tangents) if nz else Zero(a.to_tangent_aval())
            for a, nz in zip(avals, nonzero, strict=True)]


@final
class Linear:
    """Stands, in a transpose rule, for an operand whose cotangent is wanted.

    >>> import olympus
    >>> from olympus.interpreters import ad
    >>> ad.is_undefined_primal(ad.UndefinedPrimal(olympus.typeof(1.0)))
    True
    """

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray) -> None:
        self.aval = aval

    def __repr__(self) -> str:
        return f"Linear({self.aval})"


Tangent: TypeAlias = Array | Zero
Cotangent: TypeAlias = Array | Zero | None      # None: of an operand that is not linear
Transposed: TypeAlias = Array | Linear          # an operand given to a transpose rule


for _mark in (Zero, Linear):    # as nodes without leaves
    register_pytree_node(_mark, lambda mark: ((), mark.aval),
                         lambda aval, _, kind=_mark: kind(aval))


def not_linear(name: str, where: str, instead: str = "") -> TypeError:
    """The error for a transposition in operands in which `name` is not linear."""
    advice = instead or ("differentiate with vjp; check the function given to linear_transpose, "
                         "or the custom_jvp rule that uses it")
    return TypeError(f"{name}: transposed in {where}, in which it is not linear; reverse mode "
                     f"needs a linear function; {advice}.")


def programs_in(param: object) -> list[Any]:
    """The programs, open or closed, in a param: itself, or items of tuples and lists."""
    if isinstance(param, (ClosedOlympuspr, Olympuspr)):
        return [param]
    if isinstance(param, (tuple, list)):
        return [program for x in param for program in programs_in(x)]
    return []


@derived
def program_uses_axis(closed: ClosedOlympuspr, name: Hashable) -> bool:
    """Whether any equation of the program communicates along the named axis."""
    return any(e.primitive.uses_axis(name, e.params) for e in closed.eqns)


def refuse_references(prim: Primitive, avals: Sequence[Aval]) -> None:
    """TypeError if any operand is a reference."""
    for i, aval in enumerate(avals):
        if aval.mutable:
            raise TypeError(f"{prim.name}: operand {i} is a reference {aval}; an array is "
                            "required; read it with ref[...].")


def refuse_users_types(prim: Primitive, avals: Sequence[Aval]) -> None:
    """TypeError if any operand has a user's type."""
    for aval in avals:
        if aval.is_high:
            raise TypeError(f"{prim.name}: {', '.join(map(str, avals))} given as operands; arrays "
                            "are required, since the operation knows nothing of the type "
                            f"{type(aval).__name__}; define one that does as an "
                            "olympus.experimental.hiolympus.HiPrim.")


def check_count(prim: Primitive, rule: str, what: str, returned: Sequence[ArrayLike | Zero | None],
                count: int) -> None:
    """TypeError unless a rule returned `count` tangents, cotangents or mapped axes."""
    if not isinstance(returned, (tuple, list)):
        raise TypeError(f"{prim.name}: its {rule} rule returned {returned!r} as its {what}; a list "
                        f"of {count} is required.")
    if len(returned) != count:
        raise TypeError(f"{prim.name}: its {rule} rule returned {len(returned)} {what}; {count} "
                        "are required, one for each; None or a Zero stands for one that is not "
                        "there.")


def linear_jvp(self: Primitive, primals: Sequence[Array], tangents: Sequence[Tangent],
               **params: Hashable) -> tuple[Array, Tangent]:
    """The jvp rule of operations that are jointly linear in all operands."""
    return self.bind(*primals, **params), self.bind(*tangents, **params)


def pair(prim: Primitive, rule: str, what: str, returned: object, args: Sequence[ArrayLike] = (),
         params: Params | None = None) -> tuple[Any, Any]:
    """The two lists that a rule returned, results and `what` of each; TypeError if it did not.

    Lists must have equal lengths. The results of an outsider's rule, called with `args` and
    `params`, must have the number that its abstract evaluation gives.
    """
    if not isinstance(returned, (tuple, list)) or len(returned) != 2:
        raise TypeError(f"{prim.name}: its {rule} rule returned {returned!r}; a pair (results, "
                        f"{what}) is required.")
    outs, more = returned
    if prim.multiple_results:
        if params is not None and prim.open and not prim.unshaped:
            count = len(prim.result_avals(tuple(map(typeof, args)), params))
            if not isinstance(outs, (tuple, list)) or len(outs) != count:
                raise TypeError(f"{prim.name}: its {rule} rule returned {outs!r} as its results; "
                                f"a list of {count} is required, as its abstract evaluation says.")
        check_count(prim, rule, what, more, len(outs))
    return outs, more


class Axis(ByKey):
    """The axis that vmap adds: size, name for collectives, and the mesh axes that shard it (None:
    XLA decides)."""

    __slots__ = ("size", "name", "mesh_axis")
    size: DimSize
    #: (function of flat arguments, values, mapped axes) -> results, mapped axes; see `batch_flat`
    batched: Callable[..., tuple[list[Array], list[int | None]]]

    # `vmap` sets the size when it has seen its arguments.
    def __init__(self, size: Any, name: Hashable = None, mesh_axis: Hashable = None) -> None:
        self.size, self.name, self.mesh_axis = size, name, mesh_axis

    # JAX's names for `mesh_axis`, which users' rules read.
    spmd_name = property(attrgetter("mesh_axis"), doc="The axes of a mesh.")
    explicit_mesh_axis = property(attrgetter("mesh_axis"), doc="The axes of a mesh.")

    def _key(self) -> tuple[Hashable, ...]:
        return self.size, self.name, self.mesh_axis


def _operands_of(infer: object) -> int | None:
    """The number of operands that `infer` takes; None if it takes various numbers."""
    if not isinstance(infer, types.FunctionType) or infer.__defaults__:
        return None
    code = infer.__code__
    return None if code.co_flags & inspect.CO_VARARGS else code.co_argcount - 1     # self


class Primitive(TagRules):
    """Subclass (or call a family's constructor) to declare an operation.

    infer(*avals, **params)                 -> aval, or list of avals if `multiple_results`
    lower(b, *xs, **params)                 -> MLIR value or list; `b` is the lowering builder
    jvp(primals, tangents, **params)        -> out, tangent (lists if several); tangents may be Zero
    transpose(ct, *args, **params)          -> cotangents, None for operands that are not Linear
    vmap(axis, args, dims, **params)        -> out, dim (lists if several); dim None: not mapped
    effects(avals, params)                  -> its effects

    >>> import olympus
    >>> from olympus.extend.core import Primitive
    >>> double_p = Primitive("double")
    >>> _ = double_p.def_impl(lambda x: 2 * x), double_p.def_abstract_eval(lambda x: x)
    >>> print(double_p.bind(4))
    8
    """

    RULES: ClassVar[tuple[str, ...]] = ("infer", "lower", "jvp", "transpose", "vmap")
    #: platform -> lowering rule; replaced as a whole, never changed in place
    platform_rules: dict[str, Callable[..., IrValue | Sequence[IrValue]]] = {}
    #: the results of groups of operands, for eager calls with many: groups of 64 are joined first
    by_groups: Callable[..., Array] | None = None
    #: the function that evaluates an outsider's operation uncompiled
    impl: Callable[..., Any] | None = None
    uncompiled = False      # whether `impl` is its only evaluation
    unshaped = False        # whether an outsider's operation has no abstract evaluation yet
    #: the module of its kernels, for `lowering.kernels`, and the least size of the first or last
    #: operand for which a kernel may apply
    kernels: Any = None
    kernels_from = 0
    #: whether, if types cut none of the axes in `params["axes"]`, it gives the parts of results on
    #: the parts of operands
    by_parts = False
    instances: ClassVar[WeakSet[Primitive]] = WeakSet()     # all primitives
    lowerings: ClassVar[int] = 0    # counts the replaced lowering rules
    infer: Any          # the rules, which the docstring describes; None where there can be none
    lower: Any
    jvp: Any
    transpose: Any
    vmap: Any
    vmap_named: Any     # for collectives: the rule under a vmap that has the axis name they use
    #: for calls of functions with users' rules: (tape, function, rules, operands, params)
    #: -> results
    on_tape: Callable[[Any, Callable[..., list[Array]], Any, tuple, Params], list[Array]]
    what: str           # the kind of such a function
    #: for `interpreters.checks`: (checks, operands, params) -> results of the checked bodies; None
    #: if no body can fail
    checked: Callable[[Any, Sequence[Array], Params], list[Array] | None] | None = None
    #: for users' types, for `interpreters.parts`: (objects and arrays, params) -> results
    in_parts: Callable[[Sequence[Value], Params], Any] | None = None
    #: for primitives with bodies: (flags of the used results, equation) -> the equation without the
    #: parts that only unused results need
    dce: Callable[[Sequence[bool], OlympusprEqn], OlympusprEqn] | None = None
    #: (tape, operands, flags of the unknown ones, **params) -> results
    partial_eval: Callable[..., list[Value]] | None = None
    #: for random keys, in `core.reuse`: (use, cells of operands, equation) -> cells of results
    cells: Callable[[Any, list[Any], OlympusprEqn], list[Any]] | None = None
    #: for operations on references: (operands, params) -> results, with cells (`core/cells.py`) in
    #: place of references
    on_cells: Callable[[Sequence[Any], Params], Any] | None = None
    #: for writes whose result nobody reads: (*operands, **params)
    on_set: Callable[..., None] | None = None
    #: for primitives with bodies: (operands, params) -> results, after it has discharged the bodies
    discharged: Callable[[Sequence[Any], Params], list[Any]] | None = None
    #: (params, operands) -> flags of the operands that, if they are references, reach a rule which
    #: runs later
    hands_references_on: Callable[[Params, Sequence[object]], Sequence[bool]] | None = None
    #: for a user's class that records its own equations: (trace, operands, params) -> results
    recorded_as: Callable[[Any, Sequence[Value], Params], list[Value]] | None = None
    #: (params, count) -> flags of operands for which `transpose` takes a reference in place of a
    #: `Linear`, and adds the cotangent to that
    adds: Callable[[Params, int], Sequence[bool]] | None = None
    #: for operations that read a window of their first operand: (x, ct, *other operands, **params)
    #: -> x with `ct` added to that window
    grown: Callable[..., Array] | None = None
    #: (shapes of operands, of results, params) -> operations, where XLA's count is far off
    flops: Callable[[Shapes, Shapes, Params], float] | None = None

    def __init_subclass__(cls, abstract: bool = False) -> None:
        # A flag, so that no method is called when an equation without effects is recorded.
        if "effectful" not in cls.__dict__:
            cls.effectful = cls.effects is not Primitive.effects
        if "infer" in cls.__dict__:
            cls.arity = _operands_of(cls.__dict__["infer"])
        missing = [rule for rule in cls.RULES if not hasattr(cls, rule)]
        if missing and not abstract and not {"infer", "lower"} <= {*missing}:
            raise TypeError(f"primitive {cls.__name__}: no rule {', '.join(missing)}; every rule "
                            "must be defined or set to None on purpose; add it to the class.")

    def __new__(cls, *args: object, **kwargs: object) -> Self:
        # Outsiders call or subclass `Primitive`, and give the rules one at a time.
        kind: Any = cls if hasattr(cls, "infer") else opened(cls)
        return object.__new__(kind)

    def __init__(self, name: str, **facts: Unpack[GivenFacts]) -> None:
        unknown = facts.keys() - GivenFacts.__annotations__.keys()
        if unknown:
            raise TypeError(f"primitive {name}: {', '.join(sorted(unknown))} given as facts; the "
                            f"names in `GivenFacts` are required.")
        self.name = name
        vars(self).update(facts)
        # Keys are avals and params: the memo keeps no array and no trace alive.
        self._inferred = Memo(_MEMO_LIMIT)
        self.instances.add(self)

    def __deepcopy__(self, memo: object) -> Self:
        return self     # a copy would be another operation

    def __reduce__(self) -> tuple[Callable[..., Self], tuple[str, str]]:
        """Pickle by module and name, like a function."""
        own = type(self).__module__
        for home in (own, *[name for name in sys.modules if name != own]):
            for name, value in list(getattr(sys.modules.get(home), "__dict__", {}).items()):
                if value is self:
                    return _object_of_module, (home, name)
        raise TypeError(f"pickle: primitive {self.name} given; one that a module has by a name is "
                        "required, since its rules are not pickled; assign it where its module is "
                        "imported.")

    def abstract_eval(self, *avals: ShapedArray, **params: Hashable
                      ) -> tuple[Any, frozenset[Effect]]:
        """The avals of the results (one, or a list) and the effects, from the operands' avals."""
        return self.result_avals(avals, params), self.effects(avals, params)

    # Library functions and interpreters of programs apply operations by this method only.
    def bind(self, *args: object, **params: object) -> Any:
        """Apply the operation in the current trace."""
        return ctx.trace.process(self, tuple(numbers(args)) if self.foreign else args, params)

    def bind_with_trace(self, trace: Trace, args: Sequence[object], avals: object, params: Params
                        ) -> object:
        """Apply the operation in `trace`; `avals` are the operands' types, which are not read."""
        outer = enter(trace)
        try:
            return self.bind(*args, **params)
        finally:
            leave(outer)

    def get_bind_params(self, params: Params) -> Params:
        """The keyword arguments by which `bind` applies an equation with these params again."""
        return params

    def def_impl(self, impl: F) -> F:
        """Evaluate with `impl(*arrays, **params)`; with None, the lowering is compiled and run."""
        self.impl = impl
        return impl

    def uses_axis(self, name: Hashable, params: Params) -> bool:
        """Whether the operation communicates along the named axis (collectives do)."""
        return False

    def inferred(self, avals: Sequence[Aval], params: Params) -> Any:
        """The avals of the results, with their tags."""
        if self.arity is not None and len(avals) != self.arity:
            raise TypeError(f"{self.name}: {len(avals)} given as the number of operands "
                            f"({', '.join(map(str, avals))}); {self.arity} is required.")
        check_varying(self, avals)
        if MUTABLE and not self.takes_refs:
            refuse_references(self, avals)
        if HIGH and self.in_parts is None and self.on_cells is None:
            refuse_users_types(self, avals)
        return tagged(self, avals, self.infer(*avals, **params), params)

    def result_avals(self, avals: tuple[ShapedArray, ...], params: Params) -> Any:
        """`inferred`, memoised: avals are interned and params hashable.

        The ambient mesh is part of the key: results of operands without a mesh are on it.
        """
        key = (avals, *params.items()) if params else avals
        if mesh_of_types.value is not None:
            key = key, mesh_of_types.value, remove_size_one_mesh_axis_from_type.value
        # Rules are called outside of the handlers: a KeyError is no context of their exceptions.
        try:
            return self._inferred[key]
        except KeyError:
            pass
        except TypeError:       # of the hash
            raise TypeError(f"{self.name}: parameters {params} given; hashable values are "
                            "required; write tuples instead of lists, sets and arrays.") from None
        out = self._inferred[key] = self.inferred(avals, params)
        return out

    def effects(self, avals: Sequence[ShapedArray], params: Params) -> frozenset[Effect]:
        """The effects of an equation whose operands have these avals."""
        return NO_EFFECTS

    def bodies(self, params: Params) -> list[Any]:
        """The programs, open or closed, that an equation with these params carries."""
        programs = []
        for name in params if self.programs is None else self.programs:
            param = params[name]
            if type(param) is ClosedOlympuspr:      # the usual case
                programs.append(param)
            else:
                programs += programs_in(param)
        return programs

    def applied(self, params: Params, xs: Sequence[T]
                ) -> list[tuple[str, ClosedOlympuspr, Sequence[T]]]:
        """For each body that runs: its name, the body, and the items of `xs` for its inputs.

        `xs` has one item for each operand: a type, a value, a flag.
        """
        return []

    def seen(self, params: Params, avals: Sequence[ShapedArray]) -> Sequence[ShapedArray]:
        """The types of the operands' parts that bodies get."""
        return avals

    def shown(self, eqn: OlympusprEqn) -> Params:
        """The params to print: without params that the types imply."""
        return eqn.params

    #: (equation, text of results, texts of operands) -> the equation's text; None: the general form
    #: `results = name[params] operands`
    text: Callable[[OlympusprEqn, str, Sequence[str]], str] | None = None

    def __repr__(self) -> str:
        return self.name


class OpenPrimitive(Primitive):
    """The class of `Primitive(name)`: an operation whose rules are given one at a time.

    >>> from olympus.extend.core import Primitive
    >>> twice_p = Primitive("twice")
    >>> @twice_p.def_impl
    ... def twice(x):
    ...     return 2 * x
    >>> twice_p.bind(4)
    Array(8, dtype=int32, weak_type=True)
    """

    open = foreign = True
    jvp = transpose = vmap = None
    spread = staticmethod(as_inferred)
    effectful = False
    programs = None

    @property
    def uncompiled(self) -> bool:
        return self.impl is not None and "lower" not in vars(self) and not self.platform_rules

    @property
    def unshaped(self) -> bool:
        return getattr(self.abstract_eval, "__func__", None) is OpenPrimitive.abstract_eval

    def abstract_eval(self, *avals: ShapedArray, **params: Hashable
                      ) -> tuple[Any, frozenset[Effect]]:
        raise RuleMissingError(f"{self.name}: Abstract evaluation for {self.name!r} not "
                               f"implemented; give it a rule with {self.name}_p."
                               "def_abstract_eval(rule).")

    def def_abstract_eval(self, rule: F) -> F:
        """Give the result's aval (or a list of them) as a function of the operands' avals."""
        self.abstract_eval = lambda *avals, **params: (rule(*avals, **params), NO_EFFECTS)
        return rule

    def def_effectful_abstract_eval(self, rule: F) -> F:
        """Give (result's aval or a list of them, set of effects) as a function of the avals."""
        self.abstract_eval, self.effectful = rule, True
        return rule

    def effects(self, avals: Sequence[ShapedArray], params: Params) -> frozenset[Effect]:
        return frozenset(self.abstract_eval(*avals, **params)[1])

    def infer(self, *avals: ShapedArray, **params: Hashable) -> Any:
        out, _ = self.abstract_eval(*avals, **params)
        several = isinstance(out, (tuple, list))
        if several != self.multiple_results:
            raise ValueError(f"{self.name}: {self.name}.abstract_eval() method should return a "
                             f"tuple or a list iff {self.name}.multiple_results, which is "
                             f"{self.multiple_results}; it returned {out!r}.")
        if not all(isinstance(a, AbstractValue) for a in (out if several else [out])):
            wanted = "a list of avals" if self.multiple_results else "one aval"
            raise TypeError(f"{self.name}: its abstract evaluation rule returned {out!r}; {wanted} "
                            "(olympus.core.ShapedArray) is required; see multiple_results.")
        return list(out) if several else out

    def lower(self, b: Builder, *xs: IrValue, **params: Hashable) -> IrValue:
        raise RuleMissingError(f"{self.name}: MLIR translation rule for primitive {self.name!r} "
                               f"not found for platform {b.platform}; give one with olympus."
                               f"interpreters.mlir.register_lowering({self.name}_p, rule).")

    # Not memoised: an outsider's rule may treat 1 and True differently, which are equal keys.
    result_avals = Primitive.inferred


def opened(kind: type[Primitive]) -> type[Primitive]:
    """An outsider's subclass of `Primitive` without rules, as an `OpenPrimitive`.

    Its methods `impl` and `abstract_eval` take the place of the functions that others give to
    `def_impl` and `def_effectful_abstract_eval`.
    """
    if kind is Primitive:
        return OpenPrimitive
    if "_opened" not in vars(kind):
        setattr(kind, "_opened", types.new_class(  # noqa: B010
            kind.__name__, (kind, OpenPrimitive), exec_body=lambda body: body.update({
                "__module__": kind.__module__, "__qualname__": kind.__qualname__,
                "effectful": kind.abstract_eval is not Primitive.abstract_eval})))
    return vars(kind)["_opened"]


def missing_rule(prim: Primitive, message: str) -> Exception:
    """RuleMissingError for an outsider's primitive, which can get the rule; TypeError for ours."""
    kind = RuleMissingError if isinstance(prim, OpenPrimitive) else TypeError
    return kind(f"{prim.name}: {message}")


def no_transpose(prim: Primitive) -> Exception:
    """The error of a primitive without a transpose rule; a built-in one is not linear then."""
    if not prim.open:
        return not_linear(prim.name, "an operand")
    return missing_rule(prim, f"Transpose rule (for reverse-mode differentiation) for "
                        f"{prim.name!r} not implemented; give one with olympus.interpreters.ad."
                        "primitive_transposes.")


class Higher(Primitive, abstract=True):
    """A primitive that carries a body: every rule transforms the body and binds again.

    partial_eval(trace, args, unknown, **params)   split into the known part and the unknown one
    dce(used, eqn)                                 drop outputs, then inputs, that nothing needs;
                                                   the default keeps the signature
    """

    RULES = (*Primitive.RULES, "partial_eval", "dce")
    takes_refs = True
    multiple_results = True
    spread = staticmethod(by_body)
    algebra = "called"
    called = False  # whether it applies its one program once, unchanged, and prints the `name`
    in_parts: Callable[[Sequence[Value], Params], Any]
    discharged: Callable[[Sequence[Any], Params], list[Any]]
    hands_references_on: Callable[[Params, Sequence[object]], Sequence[bool]]
    # (primitive, operands, params) -> results if it touches an operand that is a reference, None
    # otherwise. Set by `lax/refs.py`: there are no references before that is imported.
    on_references: ClassVar[Any] = None

    def bind(self, *args: object, **params: object) -> list[Array]:
        """Apply the operation in the current trace."""
        for x in args if MUTABLE else ():       # hot: no frames
            if type(getattr(x, "aval", None)) in MUTABLE:
                results = Higher.on_references(self, args, params)
                if results is not None:
                    return results
                break
        return ctx.trace.process(self, tuple(numbers(args)) if self.foreign else args, params)

    def dce(self, used: Sequence[bool], eqn: OlympusprEqn) -> OlympusprEqn:
        return eqn.replace(outvars=[v if u else DropVar(v.aval)
                                    for v, u in zip(eqn.outvars, used, strict=True)])

    def depends(self, flags: Sequence[bool], eqn: OlympusprEqn) -> Sequence[bool]:
        """Flags of the results that depend on any flagged operand."""
        return [any(flags)] * len(eqn.outvars)

    def evaluated(self, params: Params) -> Callable[..., list[Array]] | None:
        """A function that evaluates operation by operation; None: compile the whole."""
        return None

    def specs_out(self, params: Params) -> Sequence[Any]:
        """The specs that users gave for the results (`out_specs`), or ()."""
        return ()

    def stays(self, params: Params) -> bool:
        """Whether the compiler should not inline the body."""
        return False

    def uses_axis(self, name: Hashable, params: Params) -> bool:
        return any(program_uses_axis(program, name) for program in self.bodies(params))

    def linearize(self, tape: Trace, primals: Sequence[ArrayLike], tangents: Sequence[Array | Zero],
                  **params: Hashable) -> tuple[Sequence[Array], Sequence[Array | Zero]]:
        """Outputs and tangents with the tangent part on `tape`.

        The default binds the jvp program on the tape (the current trace), which splits it into a
        known and an unknown program.
        """
        return self.jvp(primals, tangents, **params)

    def step_through(self, run: Callable[..., list[Array]], *args: object, **params: Hashable
                     ) -> None:
        """Evaluate the bodies by `run(closed, *args)`, as often as the operation and in its order.

        The search for the equation that made a NaN calls it.
        """

    result_avals = Primitive.inferred   # not memoised: the keys would keep bodies alive


class RuleView(MutableMapping[Primitive, Any]):
    """One rule of every primitive as a table: reading shows the rule, assigning defines it.

    `show(prim, rule)` and `store(rule)` translate between the table's form of a rule and ours.
    """

    def __init__(self, rule: str, show: Callable[[Primitive, Any], Any] = lambda prim, rule: rule,
                 store: Callable[[Any], Any] = lambda rule: rule) -> None:
        self.rule, self.show, self.store = rule, show, store

    def __getitem__(self, prim: Primitive) -> Any:
        rule = getattr(prim, self.rule, None)
        if rule is None:
            raise KeyError(prim)
        return self.show(prim, rule)

    def __setitem__(self, prim: Primitive, rule: object) -> None:
        setattr(prim, self.rule, self.store(rule))
        prim.foreign = True

    def __delitem__(self, prim: Primitive) -> None:
        if prim not in self:
            raise KeyError(prim)
        setattr(prim, self.rule, None)

    def __iter__(self) -> Iterator[Primitive]:
        # A copy: primitives may be made or collected during the iteration.
        return (p for p in living(Primitive.instances) if getattr(p, self.rule) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def olympusprs_in_params(params: Params) -> Iterator[Olympuspr]:
    """The programs that an equation carries, also in tuples and lists.

    Args: params: an equation's parameters.
    Returns: An iterator over open programs, in the order of the parameters.

    >>> from olympus.extend.core import olympusprs_in_params
    >>> eqn, = olympus.make_olympuspr(olympus.jit(lambda x: x + 1))(1.0).eqns
    >>> [len(program.eqns) for program in olympusprs_in_params(eqn.params)]
    [1]
    """
    for value in params.values():
        yield from map(_opened, programs_in(value))


def _opened(program: ClosedOlympuspr | Olympuspr) -> Olympuspr:
    return program.olympuspr if isinstance(program, ClosedOlympuspr) else program


def subolympusprs(olympuspr: Olympuspr) -> Iterator[Olympuspr]:
    """The programs that a program's equations carry; not those within them.

    Args: olympuspr: an open program.
    Returns: An iterator over open programs, in the order of the equations.

    >>> from olympus.extend.core import subolympusprs
    >>> outer = olympus.make_olympuspr(olympus.jit(lambda x: x + 1))(1.0)
    >>> [len(program.eqns) for program in subolympusprs(outer.olympuspr)]
    [1]
    """
    carrying = {prim for prim in olympuspr.primitives if prim.programs != ()}
    for eqn in olympuspr.eqns if carrying else ():      # as a rule there are none
        if eqn.primitive in carrying:
            yield from map(_opened, eqn.primitive.bodies(eqn.params))


def programs_within(olympuspr: Olympuspr) -> Iterator[Olympuspr]:
    """A program and all programs in it, at any depth, each once."""
    pending, seen = [olympuspr], {olympuspr}
    while pending:
        yield (program := pending.pop())
        for inner in subolympusprs(program):
            if inner not in seen:
                seen.add(inner)
                pending.append(inner)
