"""`sparsify`: functions of dense arrays applied to sparse ones, operation by operation.

The function is staged at the dense types, and its program is evaluated with a rule for each
primitive that meets a sparse operand. A rule takes an environment of buffers and a `SparsifyValue`
for each operand, which names the buffers of a sparse or dense array: so a rule sees which operands
share their indices. Loops and branches carry pytrees of sparse arrays.

Operations on each element may pass through numbers other than 0 at the places that are not stored
(`x + 1`, `x > 0`, `cos(x)`), as long as the result has zeros there: a value carries that number.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

import numpy as np

from ..base.docstrings import complete_docstrings
from ..base.source import filter_traceback
from ..base.typing import Array, ArrayLike, DType, Params, PyTree
from ..base.util import WithAux, cut, wraps
from ..control.call import call_p
from ..control.cond import cond_p
from ..control.remat import checkpoint_p
from ..control.scan_primitive import scan_p
from ..control.while_primitive import while_p
from ..control_flow.branches import switch
from ..control_flow.scan import scan
from ..control_flow.while_loop import while_loop
from ..core.evaluate import evaluate
from ..core.ir import ClosedOlympuspr, Literal, Olympuspr, OlympusprEqn, derived
from ..core.primitive import Primitive
from ..core.staging import stage
from ..core.trace import Trace, Tracer, ctx, enter, leave, typeof
from ..custom.jvp import custom_jvp_call_p
from ..jit.arguments import check_callable
from ..jit.jit import jit
from ..jit.tracing import ensure_compile_time_eval
from ..lax.arithmetic import (
    abs_p, conj_p, div_p, imag_p, integer_pow_p, mul_p, neg_p, real_p, sign_p, square_p, sub_p,
)
from ..lax.barriers import copy_p, stop_gradient_p
from ..lax.bits import and_p, or_p
from ..lax.comparison import eq_p, ge_p, gt_p, le_p, lt_p, ne_p, select_n_p
from ..lax.contract import dot_general_p
from ..lax.conv import conv_general_dilated_p
from ..lax.convert import convert_element_type_p
from ..lax.families import add_p
from ..lax.indexing import gather_p
from ..lax.shape import broadcast_in_dim_p, reduce_sum_p, reshape_p, rev_p, squeeze_p, transpose_p
from ..lax.slicing import concatenate_p, dynamic_slice_p, slice_p
from ..lax.special.classical import bessel_i1e_p
from ..lax.stack import stack_p
from ..lax.transcendental import (
    asin_p, asinh_p, atan_p, atanh_p, cos_p, cosh_p, exp_p, expm1_p, log1p_p, log_p, sin_p, sinh_p,
    sqrt_p, tan_p, tanh_p,
)
from ..numpy.creation import asarray, full
from ..types.avals import ShapedArray, make_aval
from ..types.shape import broadcast_shapes
from ..types.tree import tree_flatten, tree_map
from ..types.tree_registry import PyTreeDef
from . import layout
from .bcoo import BCOO, bcoo_dot_general, bcoo_transpose
from .bcsr import BCSR, bcsr_broadcast_in_dim, bcsr_concatenate, bcsr_dot_general
from .formats import WORDS
from .making import todense_p
from .values import Fill, SparsifyEnv, SparsifyValue

T = TypeVar("T")


Rule = Callable[..., Sequence[SparsifyValue]]
#: primitive -> rule(spenv, *spvalues, **params): values of the results, where a BCOO is an operand
sparse_rules_bcoo: dict[Primitive, Rule] = {}
#: the rules where a BCSR is an operand
sparse_rules_bcsr: dict[Primitive, Rule] = {}


def _is_sparse(x: object) -> bool:
    return isinstance(x, (BCOO, BCSR))


def _is_value(x: object) -> bool:
    return isinstance(x, SparsifyValue)


def arrays_to_spvalues(spenv: SparsifyEnv, args: PyTree) -> PyTree:
    """A pytree of arrays, sparse or dense, as one of values; equal buffers are shared.

    >>> from olympus.experimental import sparse
    >>> env = sparse.transform.SparsifyEnv()
    >>> value = sparse.transform.arrays_to_spvalues(env, sparse.eye(2))
    >>> value.data_ref, value.indices_ref
    (0, 1)
    """
    known = {id(x): i for i, x in enumerate(spenv._buffers)}

    def ref(x: Array) -> int:
        if id(x) not in known:
            known[id(x)] = spenv._push(x)
        return known[id(x)]

    def value(x: object) -> SparsifyValue:
        if isinstance(x, (BCOO, BCSR)):
            return SparsifyValue(
                x.shape, ref(x.data), ref(x.indices),
                ref(x.indptr) if isinstance(x, BCSR) else None, x.indices_sorted, x.unique_indices)
        return spenv.dense(x)   # pyright: ignore[reportArgumentType]

    return tree_map(value, args, is_leaf=_is_sparse)


def spvalues_to_arrays(spenv: SparsifyEnv, spvalues: PyTree) -> PyTree:
    """A pytree of values as one of arrays, sparse or dense.

    >>> from olympus.experimental import sparse
    >>> env = sparse.transform.SparsifyEnv()
    >>> value = sparse.transform.arrays_to_spvalues(env, sparse.eye(2))
    >>> sparse.transform.spvalues_to_arrays(env, value)
    BCOO(float32[2, 2], nse=2)
    """
    def array(v: SparsifyValue) -> BCOO | BCSR | Array:
        if v.narrow is not None:
            raise NotImplementedError(
                f"sparsify: a sparse array {v.narrow} broadcast to {v.shape} given; adding sparse "
                "dimensions with lengths != 1 is not possible but for a product with a sparse "
                "array; make the array's axes batches, by update_layout, or dense.")
        if v.is_sparse() and v.fill is not None and v.fill.error is not None:
            raise v.fill.error
        promises = {"indices_sorted": bool(v.indices_sorted),
                    "unique_indices": bool(v.unique_indices)}
        if v.is_bcsr():
            return BCSR((spenv.data(v), spenv.indices(v), spenv.indptr(v)), shape=v.shape,
                        **promises)
        if v.is_bcoo():
            return BCOO((spenv.data(v), spenv.indices(v)), shape=v.shape, **promises)
        return spenv.data(_whole(spenv, v))

    return tree_map(array, spvalues, is_leaf=_is_value)


def _whole(spenv: SparsifyEnv, v: SparsifyValue) -> SparsifyValue:
    """The value with a buffer, where it is a dense array of one number without."""
    if v.fill is None or v.data_ref is not None:
        return v
    return spenv.dense(full(v.shape, v.fill.number))


def spvalues_to_avals(spenv: SparsifyEnv, spvalues: PyTree) -> PyTree:
    """The types of the dense arrays that values stand for.

    >>> from olympus.experimental import sparse
    >>> env = sparse.transform.SparsifyEnv()
    >>> value = sparse.transform.arrays_to_spvalues(env, sparse.eye(2))
    >>> print(sparse.transform.spvalues_to_avals(env, value))
    float32[2,2]
    """
    def aval(v: SparsifyValue) -> ShapedArray:
        if v.data_ref is None and v.fill is not None:
            return make_aval(v.shape, v.fill.number.dtype)
        data = typeof(spenv.data(v))
        return data if v.is_dense() else make_aval(v.shape, data.dtype, data.weak_type)

    return tree_map(aval, spvalues, is_leaf=_is_value)


def _applied(spenv: SparsifyEnv, prim: Primitive, values: Sequence[SparsifyValue],
             params: dict[str, Hashable]) -> Sequence[SparsifyValue]:
    """The results of an operation with a sparse operand."""
    if len({v.indices_ref for v in values if v.is_sparse()}) > 1:   # their sums may share
        values = [spenv._summed.get(_buffers_of(v), v) if v.is_sparse() else v for v in values]
    passed = [v.fill.error for v in values if v.is_sparse() and v.fill is not None]
    if not passed:
        try:
            return _by_rule(spenv, prim, [_whole(spenv, v) for v in values], params)
        except NotImplementedError as error:
            passed = [error]
    result = _of_elements(spenv, prim, values, params, passed[0])
    if result is None:
        raise passed[0] or AssertionError(prim.name)
    return [result]


def _of_elements(spenv: SparsifyEnv, prim: Primitive, values: Sequence[SparsifyValue],
                 params: dict[str, Hashable], error: NotImplementedError | None
                 ) -> SparsifyValue | None:
    """The result of an elementwise operation of sparse arrays that share their indices and of dense
    arrays of one number; None for other operations and operands.
    """
    if not (prim.elementwise or prim in _OF_ELEMENTS):
        return None
    values = [_once(spenv, v) if v.is_sparse() else v for v in values]
    like = next(v for v in values if v.is_sparse())
    if any(v.fill is None if v.is_dense() else v.narrow is not None or v.shape != like.shape or (
            v.indices_ref, v.indptr_ref) != (like.indices_ref, like.indptr_ref) for v in values):
        return None
    shape = spenv.data(like).shape
    data = prim.bind(*[
        spenv.data(v) if v.is_sparse() else full(shape, v.fill.number)      # pyright: ignore
        for v in values], **params)
    with ensure_compile_time_eval():
        number = np.asarray(prim.bind(*[
            asarray(v.fill.number if v.fill is not None else np.zeros((), spenv.data(v).dtype))
            for v in values], **params))
    return like._replace(data_ref=spenv._push(data),
                         fill=None if number == 0 else Fill(number, error))


def _buffers_of(v: SparsifyValue) -> tuple[int | None, ...]:
    return v.data_ref, v.indices_ref, v.indptr_ref


def _once(spenv: SparsifyEnv, v: SparsifyValue) -> SparsifyValue:
    """A sparse value with each index stored once."""
    if v.unique_indices:
        return v
    key = _buffers_of(v)
    if key not in spenv._summed:
        mat = spvalues_to_arrays(spenv, v)
        summed = arrays_to_spvalues(spenv, mat.sum_duplicates(nse=mat.nse, remove_zeros=False))
        # Arrays that share indices share the indices of their sums.
        first = spenv._summed.setdefault((None, *key[1:]), summed)
        spenv._summed[key] = summed._replace(indices_ref=first.indices_ref,
                                             indptr_ref=first.indptr_ref)
    return spenv._summed[key]


def _by_rule(spenv: SparsifyEnv, prim: Primitive, values: Sequence[SparsifyValue],
             params: dict[str, Hashable]) -> Sequence[SparsifyValue]:
    rules = sparse_rules_bcsr if any(v.is_bcsr() for v in values) else sparse_rules_bcoo
    rule = rules.get(prim)
    if rule is None:
        types = ", ".join(str(a) for a in spvalues_to_avals(spenv, list(values)))
        kind = "BCSR" if rules is sparse_rules_bcsr else "BCOO"
        because = ("sparse rule for {0} is not implemented because it would result in dense output"
                   if prim in _DENSIFYING else "sparse rule for {0} is not implemented for " + kind)
        raise NotImplementedError(
            f"sparsify: {prim.name} of {types} given; {because.format(prim.name)}; call "
            "sparse.todense() on the operand if this is your intent.")
    return rule(spenv, *values, **params)


def eval_sparse(olympuspr: Olympuspr, consts: Sequence[ArrayLike],
                spvalues: Sequence[SparsifyValue], spenv: SparsifyEnv) -> Sequence[SparsifyValue]:
    """Evaluate a program on values, some of which are sparse.

    Args:
      olympuspr: the open program, staged at dense types.
      consts: its constants, dense.
      spvalues: a value for each input.
      spenv: the environment of these; results are added to it.

    >>> env = sparse.transform.SparsifyEnv()
    >>> value = sparse.transform.arrays_to_spvalues(env, sparse.eye(2))
    >>> program = olympus.make_olympuspr(lambda x: 3 * x)(sparse.eye(2).todense())
    >>> out, = sparse.transform.eval_sparse(program.olympuspr, program.consts, [value], env)
    >>> print(env.data(out))
    [3. 3.]
    """
    def value(x: object) -> SparsifyValue:
        return x if isinstance(x, SparsifyValue) else _dense(spenv, x)

    def step(eqn: OlympusprEqn, ins: Sequence[SparsifyValue | Array | Literal]) -> object:
        if eqn.primitive is broadcast_in_dim_p and type(ins[0]) is Literal:
            return _everywhere(spenv, ins[0], eqn.params)
        if any(isinstance(x, SparsifyValue) and x.is_sparse() for x in ins):
            results = _applied(spenv, eqn.primitive, [value(x) for x in ins], eqn.params)
            return list(results) if eqn.primitive.multiple_results else results[0]
        arrays = [spenv.data(_whole(spenv, x)) if isinstance(x, SparsifyValue) else x for x in ins]
        out = eqn.primitive.bind(*arrays, **eqn.params)
        return [spenv.dense(x) for x in out] if eqn.primitive.multiple_results else spenv.dense(out)

    results = evaluate(olympuspr, consts, list(spvalues), step)   # pyright: ignore
    return [value(x) for x in results]


def _dense(spenv: SparsifyEnv, x: object) -> SparsifyValue:
    """A new value for a dense array or a literal."""
    if type(x) is not Literal:
        return spenv.dense(x)   # pyright: ignore[reportArgumentType]
    return spenv.dense(x.raw)._replace(fill=Fill(np.asarray(x.raw, x.aval.dtype)))


def _everywhere(spenv: SparsifyEnv, x: object, params: Params) -> SparsifyValue:
    """A new value for an array that has a literal at each place."""
    return _dense(spenv, x)._replace(shape=params["shape"], data_ref=None)


def _sparse_call(closed: ClosedOlympuspr, *args: PyTree) -> list[PyTree]:
    """The results of a program at arrays, sparse or dense."""
    spenv = SparsifyEnv()
    values = arrays_to_spvalues(spenv, list(args))
    return spvalues_to_arrays(spenv, list(eval_sparse(
        closed.olympuspr, closed.consts, values, spenv)))


def sparsify_raw(f: Callable[..., PyTree]) -> Callable[..., tuple[Sequence[SparsifyValue],
                                                                  PyTreeDef]]:
    """A function of an environment and values, from one of dense arrays; also the results' tree.

    Args: f: the function.

    >>> from olympus.experimental import sparse
    >>> env = sparse.transform.SparsifyEnv()
    >>> value = sparse.transform.arrays_to_spvalues(env, sparse.eye(2))
    >>> (out,), tree = sparse.transform.sparsify_raw(lambda x: 3 * x)(env, value)
    >>> print(env.data(out))
    [3. 3.]
    """
    def run(spenv: SparsifyEnv, *spvalues: PyTree, **params: PyTree
            ) -> tuple[Sequence[SparsifyValue], PyTreeDef]:
        leaves, tree = tree_flatten(spvalues, is_leaf=_is_value)

        def flat(*xs: Array) -> tuple[list[Array], PyTreeDef]:
            outs, out_tree = tree_flatten(f(*tree.unflatten(xs), **params))
            return [asarray(x) for x in outs], out_tree

        with_aux = WithAux(flat)
        closed = stage(with_aux, spvalues_to_avals(spenv, leaves))
        return eval_sparse(closed.olympuspr, closed.consts, leaves, spenv), with_aux.aux

    return run


def sparsify(f: Callable[..., PyTree], use_tracer: bool = False) -> Callable[..., PyTree]:
    """A function of dense arrays made one of sparse or dense arrays.

    Args:
      f: the function; it is staged at the dense types, so arguments have no values in it.
      use_tracer: apply rules while it runs, by a trace of their own, in place of afterwards.
    Returns: A function of the same arguments. Results are sparse where their operations keep zeros.

    NotImplementedError for an operation that has no rule, or whose result would be dense.

    >>> M = sparse.BCOO.fromdense(onp.array([[0., 5.], [6., 0.]]))
    >>> print(sparse.sparsify(lambda M, v: 2 * M.T @ v)(M, onp.array([1., 10.])))
    [120.  10.]
    """
    check_callable("sparsify", f)
    raw = sparsify_raw(f)

    @wraps(f)
    def run(*args: PyTree, **params: PyTree) -> PyTree:
        try:
            if use_tracer:
                return _with_tracers(f, args, params)
            spenv = SparsifyEnv()
            outs, tree = raw(spenv, *arrays_to_spvalues(spenv, args), **params)
            return tree.unflatten(spvalues_to_arrays(spenv, list(outs)))
        except Exception as error:
            filter_traceback(error)
            raise

    return run


# The trace ---------------------------------------------------------------------------------------

class SparseTracer(Tracer):
    """A sparse or dense array of a function under `sparsify(f, use_tracer=True)`.

    >>> from olympus.experimental import sparse
    >>> def f(x):
    ...     print(type(x).__name__, type(x._trace).__name__)
    ...     return -x
    >>> sparse.sparsify(f, use_tracer=True)(sparse.eye(2))
    SparseTracer SparseTrace
    BCOO(float32[2, 2], nse=2)
    """

    __slots__ = ("_spvalue",)

    def __init__(self, trace: SparseTrace, *, spvalue: SparsifyValue) -> None:
        super().__init__(trace, spvalues_to_avals(trace.spenv, [spvalue])[0])
        self._spvalue = spvalue

    @property
    def spenv(self) -> SparsifyEnv:
        """The environment of its buffers."""
        return self._trace.spenv


class SparseTrace(Trace):
    """Applies the sparse rules where an operand is sparse.

    >>> from olympus.experimental import sparse
    >>> def f(x):
    ...     print(type(x).__name__, type(x._trace).__name__)
    ...     return -x
    >>> sparse.sparsify(f, use_tracer=True)(sparse.eye(2))
    SparseTracer SparseTrace
    BCOO(float32[2, 2], nse=2)
    """

    __slots__ = ("spenv", "tag")

    def __init__(self, parent_trace: Trace, tag: object, spenv: SparsifyEnv) -> None:
        super().__init__(parent_trace)
        self.tag, self.spenv = tag, spenv

    @property
    def parent_trace(self) -> Trace | None:
        """The trace that operations of dense arrays go on to."""
        return self.parent

    def _value(self, x: object) -> SparsifyValue:
        if isinstance(x, SparseTracer) and x._trace is self:
            return x._spvalue
        return _dense(self.spenv, x)

    def process(self, prim: Primitive, args: Sequence[object], params: dict[str, Hashable]
                ) -> object:
        ctx.trace = self.parent
        try:
            if prim is broadcast_in_dim_p and type(args[0]) is Literal:
                return SparseTracer(self, spvalue=_everywhere(self.spenv, args[0], params))
            own = [isinstance(x, SparseTracer) and x._trace is self for x in args]
            if any(o and x._spvalue.is_sparse() for o, x in zip(own, args)):   # pyright: ignore
                results = _applied(self.spenv, prim, [self._value(x) for x in args], params)
            else:
                out = prim.bind(*[
                    self.spenv.data(_whole(self.spenv, x._spvalue)) if o else x  # pyright: ignore
                    for o, x in zip(own, args)], **params)
                results = [self.spenv.dense(x) for x in (out if prim.multiple_results else [out])]
            outs = [SparseTracer(self, spvalue=v) for v in results]
            return outs if prim.multiple_results else outs[0]
        finally:
            ctx.trace = self

    def process_custom(self, prim: Primitive, fun: Callable[..., Sequence[ArrayLike]],
                       rules: object, args: tuple[ArrayLike, ...], params: dict[str, Hashable]
                       ) -> list[Array]:
        return list(fun(*args))     # pyright: ignore[reportReturnType]


def sparsify_subtrace(
        fun: Callable[..., Sequence[ArrayLike]], tag: object, spenv: SparsifyEnv,
        spvalues: Sequence[SparsifyValue],
        ) -> tuple[Callable[..., list[Array]], Callable[[], list[SparsifyValue]]]:
    """A function of buffers, which runs `fun` under a trace of its own.

    Args:
      fun: takes an array for each value, and returns a list of arrays.
      tag: an object that tells this trace from others.
      spenv: the environment of the values; results are added to it.
      spvalues: a value for each argument of `fun`.
    Returns: A function from the buffers that `spenv` has to those of it and of the results, and,
      for after its call, a function that returns the values of the results.

    >>> from olympus.experimental import sparse
    >>> env = sparse.transform.SparsifyEnv()
    >>> value = sparse.transform.arrays_to_spvalues(env, sparse.eye(2))
    >>> run, values = sparse.transform.sparsify_subtrace(lambda x: [-x], object(), env, [value])
    >>> buffers = run(*env._buffers)
    >>> print(buffers[values()[0].data_ref])
    [-1. -1.]
    """
    def run(*bufs: Array) -> tuple[list[Array], list[SparsifyValue]]:
        spenv._buffers[:len(bufs)] = bufs
        trace = SparseTrace(ctx.trace, tag, spenv)
        tracers = [SparseTracer(trace, spvalue=v) for v in spvalues]
        outer = enter(trace)
        try:
            results = [trace._value(x) for x in fun(*tracers)]
        finally:
            leave(outer)
            trace.alive = False
        return list(spenv._buffers), results

    with_aux = WithAux(run)
    return with_aux, lambda: with_aux.aux


def sparsify_fun(fun: Callable[..., Sequence[ArrayLike]], args: Sequence[BCOO | BCSR | ArrayLike]
                 ) -> list[BCOO | BCSR | Array]:
    """The results of a function at arrays, sparse or dense, by rules applied while it runs.

    Args:
      fun: takes as many arrays, and returns a list of arrays.
      args: the arrays.

    >>> from olympus.experimental import sparse
    >>> sparse.transform.sparsify_fun(lambda x: [-x, x.sum()], [sparse.eye(2)])[0]
    BCOO(float32[2, 2], nse=2)
    """
    spenv = SparsifyEnv()
    run, values = sparsify_subtrace(fun, object(), spenv, arrays_to_spvalues(spenv, list(args)))
    return spvalues_to_arrays(SparsifyEnv(run(*spenv._buffers)), values())


def _with_tracers(f: Callable[..., PyTree], args: PyTree, params: dict[str, PyTree]) -> PyTree:
    leaves, tree = tree_flatten(args, is_leaf=_is_sparse)
    with_aux = WithAux(lambda *xs: tree_flatten(f(*tree.unflatten(xs), **params)))
    outs = sparsify_fun(with_aux, leaves)
    return with_aux.aux.unflatten(outs)


# Rules -------------------------------------------------------------------------------------------

_OF_ELEMENTS = frozenset((convert_element_type_p, select_n_p, stop_gradient_p))
_DENSIFYING = frozenset((cos_p, cosh_p, eq_p, exp_p, ge_p, gt_p, le_p, log_p, lt_p, ne_p))


def _elementwise(prim: Primitive, linear: bool) -> Rule:
    """The rule of an operation that maps 0 to 0: apply it to the stored elements."""
    def rule(spenv: SparsifyEnv, x: SparsifyValue, **params: Hashable) -> list[SparsifyValue]:
        if not linear:
            x = _once(spenv, x)     # f(a + b) is not f(a) + f(b)
        return [x._replace(data_ref=spenv._push(prim.bind(spenv.data(x), **params)))]
    return rule


for _prim in (conj_p, copy_p, imag_p, neg_p, real_p):
    sparse_rules_bcoo[_prim] = sparse_rules_bcsr[_prim] = _elementwise(_prim, True)
for _prim in (abs_p, asin_p, asinh_p, atan_p, atanh_p, bessel_i1e_p, expm1_p, log1p_p, sign_p,
              sin_p, sinh_p, sqrt_p, square_p, tan_p, tanh_p):
    sparse_rules_bcoo[_prim] = sparse_rules_bcsr[_prim] = _elementwise(_prim, False)


def _convert(spenv: SparsifyEnv, x: SparsifyValue, **params: Hashable) -> Sequence[SparsifyValue]:
    # Conversions of floats to floats or complex numbers are linear: equal indices may remain.
    new: DType = params["new_dtype"]    # pyright: ignore[reportAssignmentType]
    linear = spenv.data(x).dtype.kind in "fcV" and new.kind in "fcV"
    return _elementwise(convert_element_type_p, linear)(spenv, x, **params)


def _integer_pow(spenv: SparsifyEnv, x: SparsifyValue, *, y: int) -> Sequence[SparsifyValue]:
    if y <= 0:
        raise NotImplementedError(
            f"sparsify: sparse rule for integer_pow with non-positive exponent {y} is not "
            "implemented because it would result in dense output; call sparse.todense() on the "
            "operand if this is your intent.")
    return _elementwise(integer_pow_p, False)(spenv, x, y=y)


sparse_rules_bcoo[convert_element_type_p] = sparse_rules_bcsr[convert_element_type_p] = _convert
sparse_rules_bcoo[integer_pow_p] = sparse_rules_bcsr[integer_pow_p] = _integer_pow


def _standard(fun: Callable[..., PyTree], *dropped: str) -> Rule:
    """The rule that calls a function of sparse arrays with the params but `dropped`."""
    def rule(spenv: SparsifyEnv, *values: SparsifyValue, **params: Hashable
             ) -> list[SparsifyValue]:
        passed = {k: v for k, v in params.items() if k not in dropped}
        return [arrays_to_spvalues(spenv, fun(*spvalues_to_arrays(spenv, list(values)), **passed))]
    return rule


def _sparsified(x: BCOO | Array, like: Sequence[BCOO | Array]) -> BCOO:
    """An operand as a BCOO: a dense one with all of its elements stored."""
    if isinstance(x, BCOO):
        return x
    first = next(y for y in like if isinstance(y, BCOO))
    return BCOO.fromdense(x, nse=x.size, index_dtype=first.indices.dtype)


def _concatenate(*xs: BCOO, dimension: int) -> BCOO:
    return layout.bcoo_concatenate(xs, dimension=dimension)


def _convolve(lhs: BCOO | Array, rhs: BCOO | Array, **params: Hashable) -> BCOO:
    names = ("window_strides", "padding", "lhs_dilation", "rhs_dilation", "feature_group_count",
             "batch_group_count")
    return layout.bcoo_conv_general_dilated(
        lhs, rhs, **{k: params[k] for k in names})  # pyright: ignore[reportArgumentType]


def _gather(operand: BCOO, start: Array, **params: Hashable) -> BCOO:
    return layout.bcoo_gather(operand, start, **{    # pyright: ignore[reportArgumentType]
        k: params[k] for k in ("dimension_numbers", "slice_sizes", "mode")})


def _stacked(broadcast: Callable[..., T], concatenate: Callable[..., T]) -> Callable[..., T]:
    def stack(*xs: BCOO, axis: int) -> T:
        shape = xs[0].shape
        dims = [d + (d >= axis) for d in range(len(shape))]
        return concatenate([broadcast(x, shape=(*shape[:axis], 1, *shape[axis:]),
                                      broadcast_dimensions=dims) for x in xs], dimension=axis)
    return stack


for _prim, _fun in {
        concatenate_p: _concatenate,
        conv_general_dilated_p: _convolve, dot_general_p: bcoo_dot_general,
        dynamic_slice_p: lambda x, *starts, slice_sizes, **_: layout.bcoo_dynamic_slice(
            x, starts, slice_sizes),
        gather_p: _gather, reshape_p: layout.bcoo_reshape, rev_p: layout.bcoo_rev,
        slice_p: layout.bcoo_slice, squeeze_p: layout.bcoo_squeeze,
        stack_p: _stacked(layout.bcoo_broadcast_in_dim, layout.bcoo_concatenate)}.items():
    sparse_rules_bcoo[_prim] = _standard(_fun)
for _prim, _fun in {
        broadcast_in_dim_p: bcsr_broadcast_in_dim,
        concatenate_p: lambda *xs, dimension: bcsr_concatenate(xs, dimension=dimension),
        dot_general_p: bcsr_dot_general,
        stack_p: _stacked(bcsr_broadcast_in_dim, bcsr_concatenate)}.items():
    sparse_rules_bcsr[_prim] = _standard(_fun)


def _transpose(spenv: SparsifyEnv, x: SparsifyValue, *, permutation: Sequence[int]
               ) -> list[SparsifyValue]:
    mat = spvalues_to_arrays(spenv, x)
    out = bcoo_transpose(mat, permutation=permutation)
    n_batch, n_sparse = mat.n_batch, mat.n_sparse
    perm, same = tuple(permutation), tuple(range(x.ndim))
    b, s = slice(n_batch), slice(n_batch, n_batch + n_sparse)
    transposed = arrays_to_spvalues(spenv, out)
    # Buffers that the permutation leaves as they are remain shared.
    if perm[b] == same[b] and perm[s.stop:] == same[s.stop:]:
        transposed = transposed._replace(data_ref=x.data_ref)
    if perm[:s.stop] == same[:s.stop]:
        transposed = transposed._replace(indices_ref=x.indices_ref)
    return [transposed]


sparse_rules_bcoo[transpose_p] = _transpose


def _add(spenv: SparsifyEnv, x: SparsifyValue, y: SparsifyValue) -> list[SparsifyValue]:
    if x.is_sparse() and y.is_sparse():
        if x.shape != y.shape:
            raise NotImplementedError(f"sparsify: Addition between sparse matrices of different "
                                      f"shapes: {x.shape} and {y.shape} given; broadcast one.")
        if x.indices_ref == y.indices_ref:
            return [x._replace(data_ref=spenv._push(spenv.data(x) + spenv.data(y)))]
        a, b = spvalues_to_arrays(spenv, [x, y])
        if a.n_batch != b.n_batch or a.n_dense != b.n_dense:
            raise NotImplementedError(
                "sparsify: Addition between sparse matrices with different batch/dense dimensions: "
                f"{a} and {b} given; use update_layout.")
        # Elements of the one, then of the other; readers sum elements with equal indices.
        n, batch = a.n_batch, a.shape[:a.n_batch]
        data = [layout.broadcast_batch(m.data, batch) for m in (a, b)]
        index = [layout.broadcast_batch(m.indices, batch) for m in (a, b)]
        return [spenv.sparse(x.shape, layout.lax_concatenate(data, n),
                             layout.concatenate(index, n))]     # of two dtypes, perhaps
    if y.is_sparse():
        x, y = y, x
    if y.shape != broadcast_shapes(x.shape, y.shape):
        raise NotImplementedError(
            f"sparsify: Addition between a sparse array of shape {x.shape} and a dense array of "
            f"shape {y.shape} is not implemented, where the result would be larger than the dense "
            "one; call sparse.todense() on the sparse one if this is your intent.")
    return [spenv.dense(spvalues_to_arrays(spenv, x).todense() + spenv.data(y))]


def _sub(spenv: SparsifyEnv, x: SparsifyValue, y: SparsifyValue) -> list[SparsifyValue]:
    if y.is_sparse():
        negative, = sparse_rules_bcoo[neg_p](spenv, y)
    else:
        negative = spenv.dense(-spenv.data(y))
    return _add(spenv, x, negative)


def _stretched(spenv: SparsifyEnv, mat: BCOO, shape: tuple[int, ...]) -> SparsifyValue:
    value = arrays_to_spvalues(spenv, mat)
    return value if mat.shape == shape else value._replace(shape=shape, narrow=mat.shape)


def _broadcast(spenv: SparsifyEnv, x: SparsifyValue, *, shape: tuple[int, ...],
               broadcast_dimensions: Sequence[int], **params: Hashable) -> list[SparsifyValue]:
    mat = spvalues_to_arrays(spenv, x)
    sizes = dict(zip(broadcast_dimensions, mat.shape, strict=True))
    dense = [*broadcast_dimensions[mat.n_batch + mat.n_sparse:], len(shape)][0]
    first = [*broadcast_dimensions[mat.n_batch:], len(shape)][0]
    sparse = [sizes.get(d, 1) if first <= d < dense else size for d, size in enumerate(shape)]
    broadcast = layout.bcoo_broadcast_in_dim(mat, shape=tuple(sparse),
                                             broadcast_dimensions=broadcast_dimensions)
    return [_stretched(spenv, broadcast, shape)]


def _mul(spenv: SparsifyEnv, x: SparsifyValue, y: SparsifyValue, **params: Hashable
         ) -> list[SparsifyValue]:
    if x.is_sparse() and y.is_sparse():
        if x.indices_ref == y.indices_ref and x.narrow is y.narrow is None:
            x, y = _once(spenv, x), _once(spenv, y)
            return [x._replace(data_ref=spenv._push(spenv.data(x) * spenv.data(y)))]
        mats = spvalues_to_arrays(spenv, [v._replace(shape=v.narrow or v.shape, narrow=None)
                                          for v in (x, y)])
        return [_stretched(spenv, layout.bcoo_multiply_sparse(*mats), x.shape)]
    if y.is_sparse():
        x, y = y, x
    mat, v = spvalues_to_arrays(spenv, [x, y])
    return [x._replace(data_ref=spenv._push(layout.bcoo_multiply_dense(mat, v)))]


def _div(spenv: SparsifyEnv, x: SparsifyValue, y: SparsifyValue) -> list[SparsifyValue]:
    if y.is_sparse():
        raise NotImplementedError(
            "sparsify: Division by a sparse array is not implemented because it would result in "
            "dense output; call sparse.todense() on the divisor if this is your intent.")
    mat = spvalues_to_arrays(spenv, x)
    whole = mat.dtype.kind in "iu"
    divisor = spenv.data(y)
    if whole:       # integers have no reciprocal: read the divisor at each index
        ones = layout.in_place_ones(mat)
        return [x._replace(data_ref=spenv._push(
            div_p.bind(mat.data, layout.bcoo_multiply_dense(ones, divisor))))]
    return [x._replace(data_ref=spenv._push(layout.bcoo_multiply_dense(mat, 1 / divisor)))]


def _reduce_sum(spenv: SparsifyEnv, x: SparsifyValue, *, axes: Sequence[int],
                **params: Hashable) -> list[SparsifyValue]:
    out = layout.bcoo_reduce_sum(spvalues_to_arrays(spenv, x), axes=axes)
    return [arrays_to_spvalues(spenv, out if out.shape else out.data.sum(dtype=out.dtype))]


def _of_booleans(name: str, rule: Rule) -> Rule:
    """`rule`, for "and" and "or" of bools, which are their product and sum; other dtypes fail."""
    def run(spenv: SparsifyEnv, x: SparsifyValue, y: SparsifyValue) -> Sequence[SparsifyValue]:
        dtype = spenv.data(x).dtype
        if dtype != layout.BOOL:
            raise NotImplementedError(
                f"sparsify: {name} of {dtype}{list(x.shape)} given; arrays of bool are required, "
                "because elements of equal indices are summed before their bits count; call "
                "sparse.todense() on the sparse operands.")
        return rule(spenv, x, y)
    return run


sparse_rules_bcoo.update({add_p: _add, sub_p: _sub, mul_p: _mul, div_p: _div,
                          broadcast_in_dim_p: _broadcast,
                          and_p: _of_booleans("and", _mul), or_p: _of_booleans("or", _add),
                          reduce_sum_p: _reduce_sum})


def _todense(spenv: SparsifyEnv, x: SparsifyValue, **params: Hashable) -> list[SparsifyValue]:
    return [spenv.dense(spvalues_to_arrays(spenv, x).todense())]


sparse_rules_bcoo[todense_p] = sparse_rules_bcsr[todense_p] = _todense


# Bodies ------------------------------------------------------------------------------------------

def _plain(x: BCOO | BCSR | Array) -> BCOO | BCSR | Array:
    """The array without its promises about indices: a branch or iteration may break them."""
    return type(x)(x._bufs, shape=x.shape) if isinstance(x, (BCOO, BCSR)) else x   # pyright: ignore


def _plain_call(closed: ClosedOlympuspr, *args: PyTree) -> list[PyTree]:
    return [_plain(x) for x in _sparse_call(closed, *args)]


@derived
def _compiled(closed: ClosedOlympuspr) -> Callable[..., list[PyTree]]:
    return jit(lambda *xs: _sparse_call(closed, *xs))


def _called(body: str) -> Rule:
    """The rule of a call: jit of the sparsified program, compiled once for each types of arguments.
    """
    def rule(spenv: SparsifyEnv, *values: SparsifyValue, **params: Hashable
             ) -> list[SparsifyValue]:
        closed: ClosedOlympuspr = params[body]      # pyright: ignore[reportAssignmentType]
        arrays = spvalues_to_arrays(spenv, list(values))
        return arrays_to_spvalues(spenv, _compiled(closed)(*arrays))
    return rule


def _while(spenv: SparsifyEnv, *values: SparsifyValue, cond_nconsts: int, body_nconsts: int,
           cond_olympuspr: ClosedOlympuspr, body_olympuspr: ClosedOlympuspr
           ) -> list[SparsifyValue]:
    arrays = [_plain(x) for x in spvalues_to_arrays(spenv, list(values))]
    of_cond, of_body, init = cut(arrays, cond_nconsts, body_nconsts)
    out = while_loop(lambda carry: _sparse_call(cond_olympuspr, *of_cond, *carry)[0],
                     lambda carry: _plain_call(body_olympuspr, *of_body, *carry), init)
    return arrays_to_spvalues(spenv, out)


def _scan(spenv: SparsifyEnv, *values: SparsifyValue, olympuspr: ClosedOlympuspr, num_consts: int,
          num_carry: int, length: int, reverse: bool, unroll: int, **params: Hashable
          ) -> list[SparsifyValue]:
    arrays = [_plain(x) for x in spvalues_to_arrays(spenv, list(values))]
    consts, init, xs = cut(arrays, num_consts, num_carry)
    for x in xs:
        if isinstance(x, (BCOO, BCSR)) and not x.n_batch:
            raise NotImplementedError(
                f"sparsify: sparse rule for scan with x values {x} given, whose leading axis is no "
                "batch; rows are taken along batch axes; call update_layout(n_batch=1) on it.")

    def step(carry: list[PyTree], x: list[PyTree]) -> tuple[list[PyTree], list[PyTree]]:
        outs = _plain_call(olympuspr, *consts, *carry, *x)
        return outs[:num_carry], outs[num_carry:]

    carry, ys = scan(step, init, xs, length, reverse, unroll)
    return arrays_to_spvalues(spenv, [*carry, *ys])


def _cond(spenv: SparsifyEnv, index: SparsifyValue, *values: SparsifyValue,
          branches: Sequence[ClosedOlympuspr], **params: Hashable) -> list[SparsifyValue]:
    out = switch(spenv.data(index), [lambda *xs, b=b: _plain_call(b, *xs) for b in branches],
                 *spvalues_to_arrays(spenv, list(values)))
    return arrays_to_spvalues(spenv, out)


for _rules in (sparse_rules_bcoo, sparse_rules_bcsr):
    _rules.update({
        call_p: _called("olympuspr"), checkpoint_p: _called("olympuspr"),
        custom_jvp_call_p: _called("call_olympuspr"), while_p: _while, scan_p: _scan,
        cond_p: _cond})


complete_docstrings(globals(), WORDS, returns="a pytree of the same structure.")
