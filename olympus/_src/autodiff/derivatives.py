"""Derivatives: `grad`, `value_and_grad`, `jvp`, `vjp`, `linearize`, `linear_transpose`.

Forward mode pushes tangents through the function. Reverse mode is forward mode with unknown
tangents: primal values are computed at once (so Python `if` sees them), the equations of the
tangents land on a tape, and the tape is walked backwards.

    jvp        JVPTrace
    linearize  JVPTrace above TapeTrace  ─►  a program tangents -> tangents
    vjp, grad  the same, then transpose.backward_pass
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal as Exactly, TypeVar, overload

from ..base.source import api_boundary, filter_traceback
from ..base.typing import Array, ArrayLike, AxisName, P, PyTree, R, Reference
from ..base.util import lazy_imports, name_of, wraps
from ..control.bodies import cast
from ..control.manual_trace import ManualTracer
from ..core import tags
from ..core.context import under
from ..core.evaluate import eval_closed, eval_olympuspr
from ..core.ir import ClosedOlympuspr, DebugInfo, Literal
from ..core.primitive import Linear, Tangent, Zero
from ..core.staging import all_consts_as_inputs, stage
from ..core.trace import Tracer, ctx, typeof
from ..interpreters.batching import BatchTracer
from ..interpreters.dce import dce_program
from ..interpreters.jvp import JVPTracer, jvp_flat
from ..interpreters.partial_eval import TapeTrace
from ..interpreters.transpose import apply_transpose, backward_pass
from ..jit.arguments import (
    abstract, as_arrays, check_argnums, check_arrays, check_callable, check_results, evaluating,
    leaf_name, select, structure_path, substitute,
)
from ..jit.jit import jit
from ..lax.barriers import stop_gradient
from ..lax.shape import zeros_of
from ..lax.sharding import as_typed, reshard_p
from ..runtime.eager import result_array
from ..types import dtypes
from ..types.avals import (
    MUTABLE, ShapedArray, has_tangent, is_float0, matches, memory_kind, scalar_aval,
)
from ..types.sharding import NamedSharding
from ..types.tree import broadcast_prefix, explain_mismatch, flatten_arguments, tree_flatten
from ..types.tree_registry import Partial, PyTreeDef, register_pytree_node

with lazy_imports(__name__):
    from ..interpreters import discharge as _discharge
    from . import grad_refs as _grad_refs  # where there are references

Refs = Mapping[int, Reference] | None

ArgNums = int | Sequence[int]
ONLY_SCALARS = "Gradient only defined for scalar-output functions."
A = TypeVar("A")        # the auxiliary result, which `has_aux` tells of


# The flat core ----------------------------------------------------------------------------------

class FlatFunction:
    """A function of pytrees as one of leaves; keeps the structure of its last result, and aux."""

    __slots__ = ("what", "fun", "call", "has_aux", "out_tree", "aux_parts")

    def __init__(self, what: str, fun: Callable, call: Callable, has_aux: bool) -> None:
        self.what, self.fun, self.call, self.has_aux = what, fun, call, has_aux
        self.out_tree: Any = None
        self.aux_parts: Any = None

    def __call__(self, *leaves: Array) -> list[Array]:
        out = self.call(leaves)
        if self.has_aux:
            out, aux = split_aux(self.what, self.fun, out)
            self.aux_parts = without_tangents(aux)
        outs, self.out_tree = tree_flatten(out)
        check_results(self.what, self.fun, out, outs)
        self.check(out, outs)
        return outs

    @property
    def aux(self) -> object:
        """The auxiliary data, rebuilt under the caller's trace, which users' nodes may note."""
        leaves, tree = self.aux_parts
        return tree.unflatten(leaves)

    def check(self, out: Array | Sequence[Array | Sequence[Array]], outs: Sequence[Array]) -> None:
        """TypeError for a result that the transformation does not take."""


def split_aux(what: str, fun: object, out: object) -> tuple[PyTree, object]:
    """The result and auxiliary data that `has_aux=True` promises."""
    if not isinstance(out, (tuple, list)) or len(out) != 2:
        size = f" of length {len(out)}" if isinstance(out, (tuple, list)) else ""
        raise TypeError(f"{what}: {name_of(fun)} returned a {type(out).__name__}{size}; with "
                        "has_aux=True a two-element tuple (result, aux) is required.")
    return out[0], out[1]


def without_tangents(aux: object) -> tuple[list[object], PyTreeDef]:
    """The leaves of auxiliary data, anything, as the enclosing trace sees them; their structure."""
    trace = ctx.trace
    leaves, tree = tree_flatten(aux)
    # A tracer of this transformation would outlive it. Those of outer traces stay: an outer grad
    # may differentiate aux.
    return [x._primal if type(x) is JVPTracer and x._trace is trace else x for x in leaves], tree


class Linearized:
    """A tape, closed: the program of the tangents, and which inputs and outputs take part."""

    __slots__ = ("program", "avals", "out_avals", "active_in", "active_out")

    def __init__(self, program: ClosedOlympuspr, avals: Sequence[ShapedArray],
                 out_avals: Sequence[ShapedArray], active_in: Sequence[bool],
                 active_out: Sequence[bool]) -> None:
        self.program, self.avals, self.out_avals = program, avals, out_avals
        self.active_in, self.active_out = active_in, active_out


def linearize_flat(fun: Callable[..., list[Array]], primals: Sequence[ArrayLike],
                   avals: Sequence[ShapedArray], reverse: bool = True
                   ) -> tuple[list[Array], Linearized]:
    """Results of a flat function at the primals, and its derivative there as a program.

    `reverse`: whether that is to be transposed.
    """
    parent = ctx.trace
    # The tape passes known values on to the caller's trace, where primals are as concrete as they
    # would be without derivatives. Integers have symbolic zeros: rules record nothing for those.
    tape = TapeTrace(parent)
    tape.reverse = reverse
    tangents = [Zero(t) if is_float0(t) else tape.new_input(t)
                for a in avals for t in (a.to_tangent_aval(),)]
    ctx.trace = tape
    try:
        outs, out_tangents = jvp_flat(under("jvp", fun), primals, tangents)
        # Zeros are no outputs of the program; `active_out` says where they belong.
        program = tape.close([t for t in out_tangents if type(t) is not Zero])
    finally:
        ctx.trace = parent
        tape.end()      # from now on the use of a tracer of the tape is an error: it leaked
    return outs, Linearized(program, avals, [typeof(x) for x in outs],
                            [type(t) is not Zero for t in tangents],
                            [type(t) is not Zero for t in out_tangents])


def pull_back(lin: Linearized, consts: Sequence[ArrayLike], cts: Sequence[ArrayLike | None],
              refs: Refs = None) -> list[ArrayLike]:
    """Cotangents of all inputs, as arrays, from the cotangents of all outputs.

    `refs`: of inputs whose cotangents are added to references, these.
    """
    pr = lin.program.olympuspr
    # One cotangent for each input of the program, that is for each active argument, in order.
    out: Any = iter(backward_pass(pr, consts, [Linear(v.aval) for v in pr.invars],
                             [ct for ct, a in zip(cts, lin.active_out) if a], "transpose",
                             _grad_refs.into(pr.invars, lin.active_in, refs) if refs else None))
    return [zeros_of(aval.to_tangent_aval()) if not active else
            next(out) if refs and i in refs else instantiate(next(out), aval.to_cotangent_aval())
            for i, (aval, active) in enumerate(zip(lin.avals, lin.active_in))]


def instantiate(x: Any, aval: ShapedArray) -> Any:
    """A tangent or cotangent as users get it: zeros made, literals turned into arrays, and as
    weakly typed as the primal."""
    if type(x) is Zero:
        zeros = zeros_of(x.aval)
        return as_typed(zeros, aval) if aval.tagged and not (
            evaluating() or is_float0(x.aval)) else zeros
    if type(x) is Literal:
        x = result_array(x)
    if aval.mutable:        # of references there are tangents that are references
        return x
    if aval.tagged:
        x = as_typed(x, aval)
    have = typeof(x)
    # A strong gradient of a weak argument would give `x - rate * gradient` another dtype than x.
    return x if have.weak_type == aval.weak_type else cast(
        x, have.update(weak_type=aval.weak_type))


def one(aval: ShapedArray, out: Array) -> ArrayLike:
    """The cotangent that `grad` starts from, of a result `out`: a scalar constant."""
    if evaluating():
        unit = Literal(1, aval)     # the operation that takes it has it on the device
        if aval.tagged and aval.explicit:
            while isinstance(out, Tracer):      # the array below it knows the devices
                if isinstance(out, ManualTracer):       # within shard_map none is named
                    return unit
                out = out._val if isinstance(out, BatchTracer) else out._primal
            where = NamedSharding(out._sharding.mesh, aval.sharding.spec)
            return reshard_p.bind(result_array(unit), sharding=where.of_cotangent())
        return unit
    kind = complex if dtypes.is_complex(aval.dtype) else float
    weak = aval.weak_type and aval.dtype == scalar_aval(kind).dtype
    if memory_kind(aval) is not None:
        return Literal(aval.dtype.type(1), aval)
    return tags.pvary(kind(1) if weak else aval.dtype.type(1), aval.vma)


# grad -------------------------------------------------------------------------------------------

def value_and_grad(fun: Callable[P, R], argnums: ArgNums = 0, has_aux: bool = False,
                   holomorphic: bool = False, allow_int: bool = False,
                   reduce_axes: Sequence[AxisName] = ()) -> Callable[P, tuple[R, PyTree]]:
    """A function that returns both the value of `fun` and its gradient.

    It takes the arguments of `grad`. The result is `(value, gradient)`, with `has_aux`
    `((value, aux), gradient)`.

    Args: fun, argnums, has_aux, holomorphic, allow_int, reduce_axes: as for `grad`.
    Returns: A function of the arguments of `fun`; it costs a few evaluations of `fun`, however many
      the arguments.

    >>> olympus.value_and_grad(lambda x: x * x)(3.0)
    (Array(9., dtype=float32, weak_type=True), Array(6., dtype=float32, weak_type=True))
    """
    return _gradient("value_and_grad", fun, argnums, has_aux, holomorphic, allow_int, reduce_axes,
                     True)


def grad(fun: Callable[P, PyTree], argnums: ArgNums = 0, has_aux: bool = False,
         holomorphic: bool = False, allow_int: bool = False,
         reduce_axes: Sequence[AxisName] = ()) -> Callable[P, PyTree]:
    """A function that computes the gradient of `fun` by reverse mode.

    Args:
      fun: a function whose result is a real scalar (a complex one if `holomorphic`).
      argnums: which positional arguments to differentiate: an int, or several. Negative ones count
        from the end of the call's arguments. Each may be a pytree of arrays.
      has_aux: `fun` returns a pair (result, anything else), and the gradient function too.
      holomorphic: `fun` is complex-differentiable; its arguments and result must be complex.
      allow_int: differentiate integer and bool arguments as well; their gradient has dtype float0.
      reduce_axes: must be empty.
    Returns: A function of the same arguments. Its result has the structure of the argument, or is a
      tuple of those if `argnums` is one. The gradient of a real function of complex arguments is
      the conjugate of the direction of steepest ascent.

    TypeError for a result that is no real scalar, and for arguments of other dtypes.

    >>> olympus.grad(onp.tanh)(0.0)
    Array(1., dtype=float32, weak_type=True)
    """
    return _gradient("grad", fun, argnums, has_aux, holomorphic, allow_int, reduce_axes, False)


def _gradient(what: str, fun: Callable, argnums: ArgNums, has_aux: bool, holomorphic: bool,
              allow_int: bool, reduce_axes: Sequence[object], with_value: bool) -> Callable:
    check_callable(what, fun)
    numbers = check_argnums(what, argnums)
    check_reduce_axes(what, reduce_axes)

    @wraps(fun)
    def gradient(*args: PyTree, **kwargs: PyTree) -> object:
        try:
            positions, chosen = select(what, fun, numbers, args)
            leaves, in_tree = flatten_arguments(what, chosen)
            trees = chosen if isinstance(numbers, tuple) else (chosen,)
            # Before the function runs: it may take long, and its own errors would hide these.
            avals = check_arrays(what, fun, leaves, positions, trees)
            check_inputs(what, fun, avals, positions, trees, holomorphic, allow_int)

            def call(xs: Sequence[Array]) -> PyTree:
                full = substitute(args, positions, numbers, in_tree.unflatten(xs))
                return fun(*full, **kwargs)

            flat = ScalarFunction(what, fun, call, has_aux)
            flat.holomorphic = holomorphic
            outs, lin = linearize_flat(flat, as_arrays(leaves), avals)
            aval = lin.out_avals[0].to_tangent_aval()
            grads = pull_back(lin, lin.program.consts, [one(aval, outs[0])])
            gradients = in_tree.unflatten(grads)
            if with_value:
                return ((outs[0], flat.aux) if has_aux else outs[0]), gradients
            return (gradients, flat.aux) if has_aux else gradients
        except Exception as error:
            filter_traceback(error)
            raise

    return gradient


class ScalarFunction(FlatFunction):
    """A flat function whose result `grad` can differentiate."""

    __slots__ = ("holomorphic",)

    def check(self, out: PyTree, outs: Sequence[Array]) -> None:
        what, name = self.what, name_of(self.fun)
        if len(outs) != 1 or outs[0] is not out:    # a container of one array is no scalar
            hint = " pass has_aux=True for auxiliary results;" if isinstance(out, tuple) else ""
            returned = "None" if out is None else f"a {type(out).__name__} of {len(outs)} arrays"
            raise TypeError(f"{what}: {name} returned {returned}. {ONLY_SCALARS} Instead,{hint} "
                            "use vjp or jacrev for other results.")
        aval = typeof(out)
        if not aval.is_array:
            raise TypeError(f"{what}: {name} returned a value of type {aval}. {ONLY_SCALARS} "
                            "Instead, use vjp.")
        if aval.shape != ():
            raise TypeError(f"{what}: {name} returned {aval}. {ONLY_SCALARS} Output had shape: "
                            f"{aval.shape}; sum the result, or use jacrev or vjp.")
        if self.holomorphic:
            if not dtypes.is_complex(aval.dtype):
                raise TypeError(f"{what}: {name} returned {aval}; holomorphic=True requires a "
                                "complex result; drop holomorphic, or return a complex number.")
        elif not dtypes.is_floating(aval.dtype):
            hint = ("pass holomorphic=True if the function is, else use vjp, or differentiate its "
                    "real part" if dtypes.is_complex(aval.dtype) else "use vjp for other results")
            raise TypeError(f"{what}: {name}: {real_outputs(what, aval)}; {hint}.")


def real_outputs(what: str, aval: ShapedArray) -> str:
    """The message for a result that is not real."""
    return (f"{what} requires real-valued outputs (output dtype that is a sub-dtype of "
            f"np.floating), but got {aval.dtype}")


def check_reduce_axes(what: str, reduce_axes: Sequence[object]) -> None:
    """ValueError unless empty."""
    if reduce_axes:
        raise ValueError(f"{what}: reduce_axes={reduce_axes!r} given; it must be empty; sum over "
                         "named axes with lax.psum inside the function.")


def check_inputs(what: str, fun: Callable[..., PyTree], avals: Sequence[ShapedArray],
                 positions: Sequence[int], trees: Sequence[object], holomorphic: bool,
                 allow_int: bool) -> None:
    """TypeError naming the argument whose dtype cannot be differentiated."""
    for i, aval in enumerate(avals):
        if aval.is_high:
            aval = aval.to_tangent_aval()
            if aval.is_high:        # whose methods say what its zero and its sums are
                continue
        kind = dtypes.scalar_kind(aval.dtype)
        if kind == "f" and not holomorphic:
            continue
        if kind == "c" or (allow_int and kind in ("b", "i", "u", "key") and not holomorphic):
            continue
        where = f"argument {leaf_name(fun, positions, trees, i)} of {name_of(fun)}"
        if holomorphic:
            raise TypeError(f"{what}: {where}: {what} with holomorphic=True requires inputs with "
                            f"complex dtype, but got {aval.dtype}; convert it with astype, "
                            "or drop holomorphic.")
        raise TypeError(f"{what}: {where}: {what} requires real- or complex-valued inputs (input "
                        f"dtype that is a sub-dtype of np.inexact), but got {aval.dtype}; "
                        "convert it to float, leave it out of argnums, or pass allow_int=True.")


# jvp --------------------------------------------------------------------------------------------

@overload
def jvp(fun: Callable[..., R], primals: Sequence[PyTree], tangents: Sequence[PyTree],
        has_aux: Exactly[False] = False) -> tuple[R, R]: ...


@overload
def jvp(fun: Callable[..., tuple[R, A]], primals: Sequence[PyTree], tangents: Sequence[PyTree],
        has_aux: Exactly[True]) -> tuple[R, R, A]: ...


@api_boundary
def jvp(fun: Callable[..., PyTree], primals: Sequence[PyTree], tangents: Sequence[PyTree],
        has_aux: bool = False) -> tuple[PyTree, ...]:
    """The value of `fun` and its derivative in one direction, by forward mode.

    Args:
      fun: a function of pytrees of arrays, with any result.
      primals: tuple or list of its arguments.
      tangents: the direction, of the same structure, shapes and dtypes; of dtype float0 where the
        argument is integer or bool.
      has_aux: `fun` returns a pair (result, anything else).
    Returns: `(result, tangent of the result)`, with `has_aux` and aux as the third.

    TypeError for structures or dtypes that differ, ValueError for shapes that do.

    >>> olympus.jvp(onp.sin, (0.0,), (2.0,))[1]
    Array(2., dtype=float32, weak_type=True)
    """
    check_callable("jvp", fun)
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise TypeError("jvp: primal and tangent arguments to olympus.jvp must be tuples or lists; "
                        f"found {type(primals).__name__} and {type(tangents).__name__}; write "
                        "jvp(f, (x,), (t,)).")
    leaves, tree = flatten_arguments("jvp", primals)
    tangent_leaves, tangent_tree = tree_flatten(tangents)
    # The structure first: only then does each tangent have a primal that its type is compared with.
    if tree != tangent_tree:
        mismatch = "; ".join(explain_mismatch(tree, tangents)[:4])
        raise TypeError("jvp: primal and tangent arguments to olympus.jvp must have the same tree "
                        f"structure; {mismatch}; pass one tangent per array, in equal containers.")
    positions = range(len(primals))
    avals = check_arrays("jvp", fun, leaves, positions, primals)
    for i, (aval, t) in enumerate(zip(avals, tangent_leaves)):
        _check_tangent("jvp", aval, t, lambda i=i: leaf_name(fun, positions, primals, i))
    directions = _directions(avals, tangent_leaves)
    flat = FlatFunction("jvp", fun, lambda xs: fun(*tree.unflatten(xs)), has_aux)
    outs, out_tangents = jvp_flat(under("jvp", flat), as_arrays(leaves), directions)
    result_tangents = [instantiate(t, typeof(x)) for x, t in zip(outs, out_tangents)]
    result = flat.out_tree.unflatten(outs), flat.out_tree.unflatten(result_tangents)
    return (*result, flat.aux) if has_aux else result


def _directions(avals: Sequence[ShapedArray], tangents: Sequence[ArrayLike]) -> list[Tangent]:
    """Tangents as forward mode takes them: symbolic zeros for integers."""
    moving = list(map(has_tangent, avals))
    # The float0 arrays that users give for integers are never operands of anything.
    arrays = iter(as_arrays([t for t, moves in zip(tangents, moving) if moves]))
    return [instantiate(next(arrays), a) if moves else Zero(a.to_tangent_aval())
            for a, moves in zip(avals, moving)]


def _structure_error(what: str, given: str, other: str, required: object, found: object, error: type
                     ) -> None:
    text = "; ".join(explain_mismatch(required, found)[:4])
    raise error(f"{what}: {given} have another structure than {other}: {text}; equal structures "
                "are required; pass one array per array.")


def _check_tangent(what: str, aval: ShapedArray, tangent: ArrayLike, name: Callable[[], str]
                   ) -> None:
    """TypeError or ValueError unless a tangent of this type belongs to such a primal."""
    required = aval.to_tangent_aval()
    jvp = what == "jvp"
    error = TypeError if jvp else ValueError    # as in JAX, whose programs catch these
    rule = ("primal and tangent arguments to olympus.jvp do not match" if jvp else
            "linearized function called on tangent values inconsistent with the original primal "
            "values")
    if is_float0(required):
        if getattr(tangent, "dtype", None) != dtypes.float0:
            raise error(f"{what}: the tangent of {name()} is {_describe(tangent)}, and the "
                        f"argument is {aval}: {rule}; a tangent of dtype float0 is required; pass "
                        f"numpy.zeros({aval.shape}, olympus.dtypes.float0).")
        return
    actual = typeof(tangent)
    # Weak types may differ: Python numbers are tangents of arrays.
    if matches(actual, required):
        return
    if not (actual.is_array and required.is_array):
        raise error(f"{what}: the tangent of {name()} is {actual}, and the argument is {aval}: "
                    f"{rule}; a tangent of type {required} is required.")
    if actual.dtype != required.dtype:
        raise error(f"{what}: the tangent of {name()} is {actual}, and the argument is {aval}: "
                    f"{rule}; equal dtypes are required; convert it with astype.")
    raise ValueError(f"{what}: the tangent of {name()} is {actual}, and the argument is {aval}: "
                     f"{'jvp called with different primal and tangent shapes' if jvp else rule}; "
                     "equal shapes are required.")


def _describe(x: Any) -> str:
    dtype = getattr(x, "dtype", None)
    if dtype is not None and dtypes.is_float0(dtype):
        return f"float0{list(x.shape)}"
    try:
        return str(typeof(x))
    except TypeError:
        return f"of type {type(x).__name__}"


# vjp --------------------------------------------------------------------------------------------

class Meta:
    """The static part of a pullback or linear map, all but its constants; compared by identity."""

    __slots__ = ("lin", "in_tree", "out_tree", "name", "argument")

    def __init__(self, lin: Linearized, in_tree: PyTreeDef, out_tree: PyTreeDef, name: str,
                 argument: Sequence[int | None]) -> None:
        self.lin, self.in_tree, self.out_tree, self.name = lin, in_tree, out_tree, name
        self.argument = argument    # which leaf of the arguments each constant is, if it is one


class LinearMap:
    """A derivative at a point. A pytree of the values it needs, so `jit` may return it."""

    # The constants are the leaves: they are traced where the map is an argument of a jitted
    # function. `meta` is the structure, so that maps of two calls of `vjp` have two types.
    __slots__ = ("consts", "meta")

    def __init__(self, meta: Meta, consts: Sequence[Any]) -> None:
        self.meta, self.consts = meta, consts

    def __repr__(self) -> str:
        lin = self.meta.lin
        return (f"<{type(self).__name__} of {self.meta.name}: "
                f"{', '.join(map(str, lin.avals))} -> {', '.join(map(str, lin.out_avals))}>")


class NotNeeded:
    """In `args_res`: an array of the arguments that the pullback does not read."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class NotSaved(NotNeeded):
    """In `args_res`: an array that the pullback reads and was not to keep; it is to be given."""

    __slots__ = ()


class Pullback(LinearMap):
    """Maps a cotangent of the result to the tuple of cotangents of the arguments."""

    __slots__ = ()

    @property
    def args_res(self) -> list[Array]:
        """The arguments, as far as they are kept: `NotNeeded()` stands for arguments that are not
        read, `NotSaved()` for those that `saveable_args` excludes. Set it to give these.
        """
        leaves: list[Any] = [NotNeeded()] * self.meta.in_tree.num_leaves
        for x, i in zip(self.consts, self.meta.argument, strict=True):
            if i is not None:
                leaves[i] = x
        return list(self.meta.in_tree.unflatten(leaves))

    @args_res.setter
    def args_res(self, arguments: Sequence[PyTree]) -> None:
        meta = self.meta
        leaves = meta.in_tree.flatten_up_to(tuple(arguments))
        consts = list(self.consts)
        for place, i in enumerate(meta.argument):
            if i is not None and not isinstance(leaves[i], NotNeeded):
                consts[place], = as_arrays([leaves[i]])
                if typeof(consts[place]) != meta.lin.avals[i]:
                    raise ValueError(f"vjp: {typeof(consts[place])} given as arguments"
                                     f"{structure_path(meta.in_tree, i)} of {meta.name}; the "
                                     f"argument {meta.lin.avals[i]} itself is required.")
        self.consts = consts

    @api_boundary
    def __call__(self, *out_cts: object) -> tuple[PyTree, ...]:
        return self.meta.in_tree.unflatten(self.pulled(out_cts))

    @api_boundary
    def with_refs(self, *wanted: PyTree) -> Callable[..., tuple[PyTree, ...]]:
        """The map that adds cotangents of arguments to references.

        Args:
          *wanted: for each argument a reference of its cotangent's type, `olympus.ad.GradValue()`,
            which has it returned, or `olympus.ad.DontWant()`; or a tree of these.

        Returns:
          A function of the result's cotangent, which gives `olympus.ad.GradRef()` where one was
          added to a reference, `DidntWant()` where none was wanted. What a slice, or a gather, of
          an argument read is all that is written.

        >>> import olympus
        >>> import olympus.numpy as onp
        >>> total = olympus.new_ref(onp.ones(2))
        >>> olympus.vjp(lambda x: x[1] * 5., onp.ones(2))[1].with_refs(total)(1.), total
        ((GradRef(),), Ref([1., 6.], dtype=float32))
        """
        return _grad_refs.with_refs(self, wanted)

    def pulled(self, out_cts: Sequence[object], refs: Refs = None) -> list[ArrayLike]:
        """The cotangents of the leaves of the arguments; some are added to references."""
        meta = self.meta
        if len(out_cts) != 1:
            raise TypeError(f"vjp: the function returned by vjp applied to {meta.name} was called "
                            f"with {len(out_cts)} arguments; one is required: the cotangent of "
                            "the whole result, in the result's structure; pass a tuple for a "
                            "tuple.")
        out_ct, = out_cts
        cts, tree = tree_flatten(out_ct)
        if tree != meta.out_tree:
            _structure_error("vjp", f"unexpected tree structure: the cotangents of {meta.name}",
                             "its result", meta.out_tree, out_ct, ValueError)
        for i, (aval, ct) in enumerate(zip(meta.lin.out_avals, cts)):
            self._check(i, aval, ct)
        # A result without tangents has no part in the program; whatever its cotangent is, it is
        # not looked at.
        active = iter(as_arrays([x for x, a in zip(cts, meta.lin.active_out) if a]))
        cts = [next(active) if a else None for a in meta.lin.active_out]
        return pull_back(meta.lin, self.consts, cts, refs)

    def _check(self, index: int, aval: ShapedArray, ct: ArrayLike) -> None:
        required = aval.to_tangent_aval()
        if is_float0(required):
            return              # nothing depends on it, whatever it is
        try:
            actual = typeof(ct)
        except TypeError:
            actual = None
        if actual is not None and matches(actual, required):
            return
        path = structure_path(self.meta.out_tree, index)
        kind = f"of type {type(ct).__name__}" if actual is None else str(actual)
        raise ValueError(f"vjp: unexpected Olympus type: the cotangent of result{path} of "
                         f"{self.meta.name} is {kind}, and the result is {aval}; the same shape "
                         "and dtype are required; convert it with astype or broadcast it.")


class LackingPullback(Pullback):
    """One that may not keep arguments which it reads."""

    __slots__ = ()

    def pulled(self, out_cts: Sequence[object], refs: Refs = None) -> list[ArrayLike]:
        lacking = [structure_path(self.meta.in_tree, i) for x, i in zip(
            self.consts, self.meta.argument, strict=True) if i is not None and type(x) is NotSaved]
        if lacking:
            raise ValueError(f"vjp: the pullback of {self.meta.name} reads arguments "
                             f"{', '.join(lacking)}, which saveable_args said not to keep; give "
                             "them by pullback.args_res = [...] before it is called.")
        return super().pulled(out_cts, refs)


class Pushforward(LinearMap):
    """Maps tangents of the arguments to the tangent of the result."""

    __slots__ = ()

    @api_boundary
    def __call__(self, *tangents: ArrayLike) -> PyTree:
        meta = self.meta
        lin = meta.lin
        leaves, tree = tree_flatten(tangents)
        if tree != meta.in_tree:
            _structure_error("linearize", f"the tangents given to {meta.name}", "its arguments",
                             meta.in_tree, tangents, TypeError)
        for i, (aval, t) in enumerate(zip(lin.avals, leaves)):
            _check_tangent("linearize", aval, t,
                           lambda i=i: f"arguments{structure_path(meta.in_tree, i)}")
        active = as_arrays([t for t, a in zip(leaves, lin.active_in) if a])
        out = iter(eval_olympuspr(lin.program.olympuspr, self.consts, *active))
        return meta.out_tree.unflatten([
            instantiate(next(out) if a else Zero(aval.to_tangent_aval()), aval)
            for aval, a in zip(lin.out_avals, lin.active_out)])


for _kind in (Pullback, LackingPullback, Pushforward):
    register_pytree_node(_kind, lambda m: (tuple(m.consts), m.meta), _kind)


def _derivative(what: str, kind: type, fun: Callable, primals: tuple, has_aux: bool
                ) -> tuple[PyTree, ...]:
    """(result, linear map[, aux]) of `fun` at the primals."""
    check_callable(what, fun)
    leaves, in_tree = flatten_arguments(what, primals)
    avals = check_arrays(what, fun, leaves, range(len(primals)), primals)
    flat = FlatFunction(what, fun, lambda xs: fun(*in_tree.unflatten(xs)), has_aux)
    flat_primals = as_arrays(leaves)
    outs, lin = linearize_flat(flat, flat_primals, avals, kind is not Pushforward)
    # The map may live long: values that only dead equations read are given back now.
    pr, used, _ = dce_program(lin.program.olympuspr, [True] * len(lin.program.olympuspr.outvars))
    consts = [c for c, u in zip(lin.program.consts, used, strict=True) if u]
    # Not `dce_closed`, which keeps the constants with the program. They are the map's leaves: a
    # second reference in its structure would keep arrays alive that the user has dropped.
    lin.program = ClosedOlympuspr(pr, consts)
    lin.program.consts = []
    # Which constants are arguments: by identity, which `flat_primals` keeps from being reused.
    place = {id(x): i for i, x in enumerate(flat_primals)}
    derivative = kind(Meta(lin, in_tree, flat.out_tree, name_of(fun),
                           [place.get(id(c)) for c in consts]), consts)
    result = flat.out_tree.unflatten(outs)
    return (result, derivative, flat.aux) if has_aux else (result, derivative)


@overload
def vjp(fun: Callable[..., R], *primals: PyTree, has_aux: Exactly[False] = False,
        reduce_axes: Sequence[AxisName] = (), saveable_args: PyTree = True, in_nzs: PyTree = None
        ) -> tuple[R, Callable[[PyTree], tuple[PyTree, ...]]]: ...


@overload
def vjp(fun: Callable[..., tuple[R, A]], *primals: PyTree, has_aux: Exactly[True],
        reduce_axes: Sequence[AxisName] = (), saveable_args: PyTree = True, in_nzs: PyTree = None
        ) -> tuple[R, Callable[[PyTree], tuple[PyTree, ...]], A]: ...


@api_boundary
def vjp(fun: Callable[..., PyTree], *primals: PyTree, has_aux: bool = False,
        reduce_axes: Sequence[AxisName] = (), saveable_args: PyTree = True, in_nzs: PyTree = None
        ) -> tuple[PyTree, ...]:
    """The value of `fun` and its pullback, by reverse mode.

    Args:
      fun: a function of pytrees of arrays, with any result.
      *primals: its arguments. A reference is passed on; its cotangent is None.
      has_aux: `fun` returns a pair (result, anything else).
      reduce_axes: must be empty.
      saveable_args: whether the pullback may keep the arguments: a bool, or a tuple of prefixes of
        them. What it may not keep and reads is `NotSaved()` in `pullback.args_res`, which is to be
        set to the arguments before the pullback is called: they need not live twice meanwhile.
      in_nzs: which arguments are differentiated, a prefix like that; None is all. Others have zeros
        for cotangents.

    Returns:
      `(result, pullback)`, with `has_aux` and aux as the third. `pullback` takes one cotangent of
      the result's structure, shapes and dtypes, and returns a tuple of one cotangent per argument;
      integers' have dtype float0. It may be called any number of times. `pullback.args_res` is a
      list of the arguments, with `NotNeeded()` in place of arrays that it does not keep.

    ValueError from the pullback for a cotangent of another structure or type.

    >>> value, pullback = olympus.vjp(onp.sin, 0.0)
    >>> pullback(2.0)
    (Array(2., dtype=float32, weak_type=True),)
    >>> _, pullback = olympus.vjp(lambda x, y: x * y, 2.0, 3.0, saveable_args=(True, False))
    >>> pullback.args_res
    [Array(2., dtype=float32, weak_type=True), NotSaved()]
    >>> pullback.args_res = [2.0, 3.0]
    >>> print(*pullback(1.0))
    3.0 2.0
    """
    check_reduce_axes("vjp", reduce_axes)
    if MUTABLE:
        fun, primals = _grad_refs.without_references(fun, primals)
    if in_nzs is not None:
        fun = _constant_in(fun, _flag_for_each_array("in_nzs", in_nzs, primals))
    out, pullback, *aux = _derivative("vjp", Pullback, fun, primals, has_aux)
    if saveable_args is not True:
        saved, meta = _flag_for_each_array("saveable_args", saveable_args, primals), pullback.meta
        # Without the reference, the caller may donate or delete the arguments meanwhile.
        kept = [c if i is None or saved[i] else NotSaved()
                for c, i in zip(pullback.consts, meta.argument, strict=True)]
        pullback = LackingPullback(meta, kept)
    return out, pullback, *aux


def _flag_for_each_array(what: str, flag_tree: PyTree, primals: tuple[PyTree, ...]) -> list[bool]:
    """A bool for each array of the arguments."""
    try:
        flags = broadcast_prefix(flag_tree, primals)
    except ValueError as error:
        raise ValueError(f"vjp: {what} {flag_tree!r:.60} given; a bool is required, or a tuple of "
                         f"prefixes of the arguments ({error}).") from None
    if not all(isinstance(flag, bool) for flag in flags):
        raise TypeError(f"vjp: {what} {flag_tree!r:.60} given; True and False are required.")
    return flags


def _constant_in(fun: Callable[..., PyTree], differentiated: Sequence[bool]
                 ) -> Callable[..., PyTree]:
    """The function, without derivatives by some of the arguments' arrays."""
    # Not by closing over them: the pullback returns a cotangent, here zeros, for each argument.
    @wraps(fun)
    def inner(*args: PyTree) -> object:
        leaves, tree = tree_flatten(args)
        return fun(*tree.unflatten([x if d else stop_gradient(x) for x, d in zip(
            leaves, differentiated, strict=True)]))
    return inner


@overload
def linearize(fun: Callable[..., R], *primals: PyTree, has_aux: Exactly[False] = False
              ) -> tuple[R, Callable[..., R]]: ...


@overload
def linearize(fun: Callable[..., tuple[R, A]], *primals: PyTree, has_aux: Exactly[True]
              ) -> tuple[R, Callable[..., R], A]: ...


@api_boundary
def linearize(fun: Callable[..., PyTree], *primals: PyTree,
              has_aux: bool = False) -> tuple[PyTree, ...]:
    """The value of `fun` and its derivative there as a linear function of tangents.

    What does not depend on the tangents is computed once: call it for many tangents where `jvp`
    would compute the function anew each time.

    Args:
      fun: a function of pytrees of arrays, with any result.
      *primals: its arguments.
      has_aux: `fun` returns a pair (result, anything else).
    Returns: `(result, derivative)`, with `has_aux` and aux as the third; `derivative(*tangents)`
      takes tangents of the arguments' structures, shapes and dtypes.

    >>> value, derivative = olympus.linearize(onp.sin, 0.0)
    >>> derivative(2.0)
    Array(2., dtype=float32, weak_type=True)
    """
    return _derivative("linearize", Pushforward, fun, primals, has_aux)


def fwd_and_bwd(fun: Callable[..., PyTree], argnums: ArgNums, has_aux: bool = False,
                jitted: bool = True) -> tuple[Callable[..., PyTree], Callable[..., PyTree]]:
    """`vjp` as two functions: a forward one that returns residuals and a backward one.

    Args:
      fun: a function of pytrees of arrays, with any result.
      argnums: which positional arguments to differentiate.
      has_aux: `fun` returns a pair (result, anything else).
      jitted: compile both.
    Returns: `fwd(*args) -> (result, residuals)`, with `has_aux` and aux as the third, and
      `bwd(residuals, cotangent) -> cotangents`: of one argument, or a tuple as `argnums` is.

    >>> fwd, bwd = olympus.fwd_and_bwd(lambda x, y: x * y, argnums=0)
    >>> value, residuals = fwd(2.0, 3.0)
    >>> bwd(residuals, 1.0)
    Array(3., dtype=float32, weak_type=True)
    """
    check_callable("fwd_and_bwd", fun)
    numbers = check_argnums("fwd_and_bwd", argnums)

    @wraps(fun)
    def fwd(*args: PyTree, **kwargs: PyTree) -> object:
        positions, chosen = select("fwd_and_bwd", fun, numbers, args)

        def partial(*xs: object) -> PyTree:
            value = xs if isinstance(numbers, tuple) else xs[0]
            return fun(*substitute(args, positions, numbers, value), **kwargs)

        primals = chosen if isinstance(numbers, tuple) else (chosen,)
        return _derivative("fwd_and_bwd", Pullback, partial, primals, has_aux)

    def bwd(residuals: Pullback, cotangent: object) -> object:
        cts = residuals(cotangent)
        return cts if isinstance(numbers, tuple) else cts[0]

    # Two programs: the residuals between them are the leaves of the pullback that `fwd` returns.
    return (jit(fwd), jit(bwd)) if jitted else (fwd, bwd)


# linear_transpose -------------------------------------------------------------------------------

@api_boundary
def linear_transpose(fun: Callable[..., PyTree], *primals: PyTree,
                     reduce_axes: Sequence[AxisName] = ()) -> Callable[..., tuple[PyTree, ...]]:
    """The transpose of a function that is linear in all its arguments.

    Args:
      fun: a linear function of pytrees of arrays.
      *primals: arguments, or anything with shape and dtype: the values are not used.
      reduce_axes: must be empty.
    Returns: A function of one cotangent of the result's structure and types, which returns a tuple
      of one value per argument.

    TypeError if an operation in it is not linear in what depends on the arguments.

    >>> olympus.linear_transpose(lambda x, y: 2 * x - y, 1.0, 1.0)(3.0)
    (Array(6., dtype=float32, weak_type=True), Array(-3., dtype=float32, weak_type=True))
    """
    check_callable("linear_transpose", fun)
    check_reduce_axes("linear_transpose", reduce_axes)
    leaves, in_tree = flatten_arguments("linear_transpose", primals)
    avals = [abstract(x) for x in leaves]
    flat = FlatFunction("linear_transpose", fun, lambda xs: fun(*in_tree.unflatten(xs)), False)
    closed = stage(flat, avals, DebugInfo("linear_transpose", name_of(fun)))
    if any(typeof(x).mutable for x in closed.consts):
        pure, contents = _discharge.on_contents(
            "linear_transpose", name_of(fun), *all_consts_as_inputs(closed))
        closed = stage(lambda *xs: eval_closed(pure, *contents, *xs), avals)
    out_avals, out_tree = closed.out_avals, flat.out_tree
    # A map between integers and floats rounds, and one of bools has no addition: not linear.
    kinds = {"b": "bool", "i": "integer", "u": "integer", "f": "inexact", "c": "inexact"}
    other_kinds = {kinds.get(dtypes.scalar_kind(a.dtype), "other") if a.is_array else "inexact"
                   for a in (*avals, *out_avals)}
    if len(other_kinds) > 1 or other_kinds & {"bool", "other"}:
        raise TypeError("linear_transpose: linear_transpose only supports functions of arguments "
                        "and results that are all floating or complex, or all integers; "
                        f"{name_of(fun)} maps {', '.join(map(str, avals))} to "
                        f"{', '.join(map(str, out_avals))}; close over the other arguments.")

    pr, name = closed.olympuspr, name_of(fun)

    def transposed(consts: Sequence[ArrayLike], out_ct: PyTree) -> tuple[PyTree, ...]:
        cts, tree = tree_flatten(out_ct)
        if tree != out_tree:
            _structure_error("linear_transpose", "cotangent tree does not match function output: "
                             f"the cotangents of {name}", "its result", out_tree, out_ct,
                             TypeError)
        for i, (aval, ct) in enumerate(zip(out_avals, cts)):
            actual = typeof(ct)
            if not matches(actual, aval):
                raise TypeError("linear_transpose: cotangent type does not match function output: "
                                f"the cotangent of result{structure_path(out_tree, i)} of "
                                f"{name} is {actual}, and the result is {aval}.")
        # Not `backward_pass`, which is for tapes: a loop or call of the user's program may return
        # coefficients beside linear results.
        ins = apply_transpose(pr, consts, [Linear(a) for a in avals], as_arrays(cts),
                              "transpose")
        return in_tree.unflatten([instantiate(x, a.to_cotangent_aval())
                                  for x, a in zip(ins, avals)])

    # A pytree of the values that it closes over, so that `jit` may return it.
    return Partial(api_boundary(transposed), closed.consts)

