"""Bad calls: what is raised, and a part of the message that says what is required."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np

import olympus
from olympus import custom_vjp, grad, jvp, lax, linear_transpose, pure_callback, vmap
from olympus._src.export.call import call_exported_p
from olympus.experimental import io_callback

from . import Refusal
from .lax_shape import PUT, ROWS_OF, TAKE, V, ints
from .rules import exported

F, I, B = np.ones(3, "f4"), np.ones(3, "i4"), np.ones(3, bool)
X = np.ones((3, 4))
HALF, FIVE = np.float32(0.5), np.ones(5, "f4")


def doubled(x: Any) -> Any:
    return lax.while_loop(lambda v: v < 9.0, lambda v: v * 2, x)


@custom_vjp
def ruled(x: Any) -> Any:
    return lax.sin(x)


ruled.defvjp(lambda x: (lax.sin(x), x), lambda x, ct: (ct * lax.cos(x),))


def on_host(x: Any) -> Any:
    return pure_callback(np.sin, x, x)


def in_order(x: Any) -> Any:
    return io_callback(np.sin, x, x, ordered=True)


def named(prim: Callable[..., Any]) -> Callable[[Any], Any]:
    return vmap(lambda x: grad(lambda v: prim(v, "i"))(x), axis_name="i")


ELEMENTWISE = [
    (lambda: lax.add(F, I), TypeError, "add: operands are float32[3], int32[3]; one dtype is"),
    (lambda: lax.add(F, np.ones((2, 3), "f4")), TypeError,
     "add: operands are float32[3], float32[2,3]; equal shapes are required"),
    (lambda: lax.add(I, 2.5), TypeError, "add: operands are int32[3], float64[]; one dtype is"),
    (lambda: lax.mul(2, 1.5), TypeError, "mul: operands are int64[], float64[]; one dtype is"),
    (lambda: lax.add(1.0, 1), TypeError, "one dtype is required"),
    (lambda: lax.eq(1, 1j), TypeError, "one dtype is required"),
    (lambda: lax.clamp(0, 1.5, 2), TypeError, "one dtype is required"),
    (lambda: lax.select(True, 1, 2.0), TypeError, "cases of one dtype and shape are required"),
    (lambda: lax.add(F[:, None], np.ones((2, 1, 1), "f4")), TypeError, "equal shapes are required"),
    (lambda: lax.add(np.ones((3, 2), "f4"), np.ones((1, 4), "f4")), TypeError,
     "add: operands are float32[3,2], float32[1,4]; equal shapes are required"),
    (lambda: lax.convert_element_type(F, None), ValueError, "float32[3] to None given; a dtype"),
    (lambda: lax.add(B, B), TypeError, "add: operand 0 is bool[3]; dtypes accepted are signed"),
    (lambda: lax.add(np.ones(2, "u1"), 300), OverflowError, "the Python int 300 given next to"),
    (lambda: lax.exp(I), TypeError, "exp: operand 0 is int32[3]; dtypes accepted are floating"),
    # Traced only: XLA's compiler aborts on it, so that it must not get there even if this fails.
    (lambda: olympus.make_olympuspr(lax.rem)(F + 0j, F + 0j), TypeError,
     "rem: operand 0 is complex64[3]"),
    (lambda: lax.sin([1.0]), TypeError, "a value of type builtins.list given"),
    (lambda: lax.integer_pow(I, -1), TypeError, "integer_pow: int32[3] to the power -1 given"),
    (lambda: lax.integer_pow(F, 2.5), TypeError, "integer_pow: exponent 2.5 given"),
    (lambda: lax.pow(I, I), TypeError, "pow: operand 0 is int32[3]; dtypes accepted"),
    (lambda: lax.complex(F.astype("f2"), F.astype("f2")), TypeError, "float32 or float64 is"),
    (lambda: lax.real(F), TypeError, "real: operand 0 is float32[3]; dtypes accepted are complex"),
    (lambda: lax.select(B, F, I), TypeError, "select_n: operands are bool[3], int32[3], float32"),
    (lambda: lax.select(F, F, F), TypeError, "select_n: which is float32[3]; bool or int32"),
    (lambda: lax.select_n(B, F, F, F), TypeError, "select_n: bool which given with 3 cases"),
    (lambda: lax.select_n(B[:2], F, F), TypeError, "which of rank 0 or of the cases' shape is"),
    (lambda: lax.select_n(True), ValueError, "select_n: no cases given"),
    (lambda: lax.clamp(F[:2], F, 1.0), TypeError, "equal shapes are required"),
    (lambda: lax.clamp(F, np.float32(1), 2.0), TypeError,
     "clamp: bounds float32[3] and float32[] given"),
    (lambda: lax.bitcast_convert_type(B, "int8"), TypeError, "bitcast_convert_type: bool[3] to"),
    (lambda: lax.bitcast_convert_type(np.ones((3, 3), "i1"), "float32"), ValueError,
     "a last axis of size 4 is required"),
    (lambda: lax.reduce_precision(F, 0, 1), ValueError, "exponent_bits=0, mantissa_bits=1 given"),
    (lambda: lax.exp(F, accuracy=3), TypeError, "accuracy: 3 given; an AccuracyMode, a Tolerance"),
    (lambda: lax.Tolerance(), ValueError, "Tolerance: atol=0.0, rtol=0.0, ulps=0 given"),
    (lambda: lax.round(F, 7), ValueError, "7 is not a valid RoundingMethod"),
    (lambda: lax.stop_gradient({"a": "s"}), TypeError, "a value of type builtins.str given"),
    (lambda: grad(lambda x: lax.nextafter(x, 2.0))(1.0), TypeError,
     "nextafter: Differentiation rule for 'nextafter' not implemented"),
]

STRUCTURE = [
    (lambda x: lax.squeeze(x, (0,)), ValueError, "cannot select an axis to squeeze out"),
    (lambda x: lax.concatenate([], 0), ValueError, "no operands given"),
    (lambda x: lax.concatenate([x, np.ones((2, 2))], 0), TypeError, "equal sizes are required"),
    (lambda x: lax.concatenate([x, ints([1])], 0), TypeError, "one dtype is required"),
    (lambda x: lax.slice(x, (0, 0), (9, 1)), TypeError, "start <= limit <= size"),
    (lambda x: lax.slice(x, (0,), (1,)), TypeError, "one entry per axis"),
    (lambda x: lax.reshape(x, (5,)), TypeError, "the numbers must be equal"),
    (lambda x: lax.transpose(x, (0, 0)), TypeError, "permutation of range"),
    (lambda x: lax.rev(x, (0, 0)), ValueError, "name each axis once"),
    *[(lambda x, call=call: call(x), ValueError, "count it from the front: 1") for call in (
        lambda x: lax.rev(x, (-1,)), lambda x: lax.concatenate([x, x], -1),
        lambda x: lax.reduce_sum(x, (-1,)), lambda x: lax.reduce_max(x, (0, -1)),
        lambda x: lax.reduce(x, 0.0, lax.add, (-1,)), lambda x: lax.argmax(x, -1, "int32"),
        lambda x: lax.cumsum(x, -1), lambda x: lax.broadcasted_iota("int32", (3, 4), -1))],
    (lambda x: lax.tile(x, (2,)), TypeError, "one number of repeats per axis"),
    (lambda x: lax.broadcast_in_dim(x, (2,), (0,)), TypeError, "one increasing result axis"),
    (lambda x: lax.broadcast(x, (-1,)), ValueError, "not negative"),
    (lambda x: lax.broadcast_to_rank(x, 1), ValueError, "at least 2 is required"),
    (lambda x: lax.collapse(x, 1, 1), ValueError, "at least one axis"),
    (lambda x: lax.pad(x, 0.0, [(-9, 0, 0), (0, 0, 0)]), ValueError, "not negative are required"),
    (lambda x: lax.pad(x, np.int32(0), [(1, 0, 0)] * 2), TypeError, "scalar of the operand's"),
    (lambda x: lax.pad(x, x[0], [(1, 0, 0)] * 2), ValueError, "a scalar is required"),
    (lambda x: lax.pad(x, 0.0, [(1, 0, 0)]), ValueError, "per axis is required"),
    (lambda x: lax.split(x, (1, 1)), ValueError, "sum to 3"),
    (lambda x: lax.index_in_dim(x, 5), IndexError, "out of bounds for axis 0 with size 3"),
    (lambda x: lax.full((2,), x), TypeError, "a scalar is required"),
    (lambda x: lax.iota("bool", 2), TypeError, "numeric dtype"),
    (lambda x: lax.dynamic_slice(x, (0, 0), (5, 1)), TypeError, "at most the axis's"),
    (lambda x: lax.dynamic_slice(x, (0.0, 0), (1, 1)), TypeError, "integers are required"),
    (lambda x: lax.dynamic_slice(x, (0,), (1, 1)), TypeError, "one per axis is required"),
    (lambda x: lax.dynamic_update_slice(x, np.ones((5, 1)), (0, 0)), TypeError, "not larger"),
    (lambda x: lax.gather(x[0], np.ones((1, 1)), TAKE, (1,)), TypeError, "integer dtype"),
    (lambda x: lax.gather(x, ints([0, 0]), ROWS_OF, (1, 4)), TypeError, "size 1 is"),
    (lambda x: lax.gather(x, ints([0]), ROWS_OF, (1, 9)), TypeError,
     "Slice size at index 1 in gather op is out of range"),
    (lambda x: lax.gather(x, ints([0]), ROWS_OF._replace(offset_dims=(3,)), (1, 4)), TypeError,
     "Offset dimension 0 in gather op is out of bounds"),
    (lambda x: lax.gather(x, ints([0]), ROWS_OF._replace(collapsed_slice_dims=(1, 0)), (1, 1)),
     TypeError, "collapsed_slice_dims in gather op must be sorted"),
    (lambda x: lax.gather(x, ints([0, 0]), ROWS_OF._replace(start_index_map=(0, 0)), (1, 4)),
     TypeError, "start_index_map in gather op must not repeat"),
    (lambda x: lax.gather(x, ints([0]), ROWS_OF._replace(start_indices_batching_dims=(2,)), (1, 4)),
     TypeError, "Invalid start_indices_batching_dims set in gather op; valid range"),
    (lambda x: lax.gather(x, ints([0]), ROWS_OF, (1,)), TypeError, "one slice size for every"),
    (lambda x: lax.scatter(x, ints([0]), np.ones((1, 4)),
                           lax.ScatterDimensionNumbers((1,), (0,), (0,), (0,))), TypeError,
     "inserted_window_dims and operand_batching_dims in scatter op must be disjoint"),
    (lambda x: lax.scatter(x, ints([0]), np.ones((1, 4)), PUT), TypeError,
     "Updates tensor must be of rank"),
    (lambda x: lax.gather(x, ints([0]), ROWS_OF, (1, 4), mode="wrap"), ValueError,
     "mode"),
    (lambda x: lax.scatter(x[0], ints([0]), np.ones(2), PUT), TypeError,
     "Bounds of the scatter dimensions"),
    (lambda x: lax.scatter(x[0], ints([0]), ints(1), PUT), TypeError, "one dtype"),
    (lambda x: lax.reduce_sum(x > 0, (0,)), TypeError, "numeric dtype is required"),
    (lambda x: lax.reduce_sum(x, (3,)), ValueError, "out of bounds"),
    (lambda x: lax.reduce_and(x, (0,)), TypeError, "dtypes accepted are bool"),
    (lambda x: lax.argmax(x[:0], 0, "int32"), ValueError, "at least one element"),
    (lambda x: lax.argmax(x, 0, "float32"), TypeError, "index_dtype must be an integer type"),
    (lambda x: lax.argmax(x + 1j, 0, "int32"), TypeError, "dtypes accepted"),
    (lambda x: lax.cumsum(x, 5), ValueError, "out of bounds"),
    (lambda x: lax.cumsum(x > 0), TypeError, "dtypes accepted"),
    (lambda x: lax.sort((x, x[0])), TypeError, "equal shapes"),
    (lambda x: lax.sort(x, num_keys=3), ValueError, "1 to 1 is required"),
    (lambda x: lax.top_k(x, 9), ValueError, "at most the axis's size"),
    (lambda x: olympus.eval_shape(lambda v: lax.top_k(v, 2), olympus.ShapeDtypeStruct(
        (2 ** 31,), "float32")), ValueError, "an axis of at most 2147483647 elements"),
    (lambda x: lax.padtype_to_pads((4, 4), (2,), (1, 1), "SAME"), ValueError, "one entry per axis"),
    (lambda x: linear_transpose(lambda u: lax.scatter_mul(V.astype("f4"), ints([1]), u, PUT),
                                np.ones(1, "f4"))(V.astype("f4")), TypeError, "in its updates"),
]

RULES = [
    (lambda: grad(doubled)(HALF), ValueError, "while_loop: Reverse-mode differentiation"),
    (lambda: linear_transpose(lambda x: lax.while_loop(lambda x: x < 3, lambda x: 2 * x, x,
                                                       checkpoints=2), HALF)(HALF),
     ValueError, "use vjp instead"),
    (lambda: jvp(ruled, (HALF,), (HALF,)), TypeError, "custom_vjp ruled: can't apply forward-mode"),
    (lambda: jvp(lambda t: jvp(ruled, (HALF,), (t,))[1], (HALF,), (HALF,)), TypeError,
     "custom_vjp ruled: can't apply forward-mode"),
    (lambda: grad(on_host)(HALF), ValueError, "pure_callback: Pure callbacks do not support JVP"),
    (lambda: linear_transpose(on_host, HALF)(HALF), ValueError,
     "pure_callback: transposed; Python code has no transpose"),
    (lambda: vmap(on_host)(F), ValueError, "vmap_method=None"),
    (lambda: grad(in_order)(HALF), ValueError, "io_callback: IO callbacks do not support JVP"),
    (lambda: linear_transpose(in_order, HALF)(HALF), ValueError,
     "io_callback: transposed; Python code has no transpose"),
    (lambda: vmap(in_order)(F), ValueError, "Cannot `vmap` ordered IO callback"),
    (lambda: linear_transpose(lambda x: lax.div(1.0, x), HALF)(HALF), TypeError,
     "div: transposed in operand 1, in which it is not linear"),
    (lambda: linear_transpose(lambda x: lax.mul(x, x), HALF)(HALF), TypeError,
     "mul: transposed in operand 0, in which it is not linear"),
    (lambda: linear_transpose(lax.sin, HALF)(HALF), TypeError,
     "sin: transposed in an operand, in which it is not linear"),
    (lambda: vmap(lambda x: linear_transpose(lambda v: lax.pmax(v, "i"), x)(x), axis_name="i")(F),
     TypeError, "pmax: transposed in an operand, in which it is not linear"),
    (lambda: jvp(lambda x: call_exported_p.bind(x, x, exported=exported), (FIVE,), (FIVE,)),
     TypeError, "call_exported: sines differentiated forwards; an artifact holds its reverse"),
    (lambda: lax.psum(F, "i"), NameError, "psum: Found an unbound axis name: i. To fix"),
    (lambda: lax.axis_index("i"), NameError, "axis_index: Found an unbound axis name: i"),
    (lambda: vmap(lambda p, x: lax.cond(p, in_order, lax.sin, x))(B, F), ValueError,
     "cond: mapped over its predicate with an ordered io_callback in a branch"),
    (lambda: olympus.jit(lambda x: 1 if x > 0 else 2)(HALF), TypeError,
     "a concrete value is required"),
]


def refusals(table: list[tuple[Any, ...]], what: str, *args: Any) -> tuple[Refusal, ...]:
    return tuple(Refusal(f"{what}-{i}-{message[:30]}", call, error, re.escape(message), args, True)
                 for i, (call, error, message) in enumerate(table))


ALL = (*refusals(ELEMENTWISE, "elementwise"), *refusals(STRUCTURE, "structure", X),
       *refusals(RULES, "rules"))
