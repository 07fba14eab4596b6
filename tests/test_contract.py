"""Contractions beyond their rows: mixed dtypes, precisions, ragged groups, errors by message."""

import itertools

import ml_dtypes
import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus import jit, lax, vjp, vmap

A = np.arange(6, dtype=np.float32).reshape(2, 3)
B = A.reshape(3, 2)
MATRICES = (((1,), (0,)), ((), ()))
KINDS = ("float32", "float16", "bfloat16", "int32", "uint8", "complex64", "bool", "float8_e4m3fn",
         "float8_e5m2")


def wide(x):
    x = np.asarray(x)
    return x.astype(complex if x.dtype.kind == "c" else float)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("preferred", [None, "float32", "int32", "complex64"])
def test_mixed_dtypes(kind, preferred):
    rng = np.random.default_rng(0)
    for other in KINDS:
        x, y = [onp.asarray(rng.integers(0, 3, shape)).astype(d)
                for shape, d in (((2, 3), kind), ((3, 2), other))]
        eighths = [k for k in (kind, other) if k.startswith("float8")]
        floats = {k for k in (kind, other) if k[0] in "fbc" and k != "bool"}
        if preferred is None and eighths and len(floats) > 1:
            with pytest.raises(TypeError, match="do not promote to one"):
                lax.dot(x, y)
            continue
        out = lax.dot(x, y, preferred_element_type=preferred)
        expected = wide(x) @ wide(y)
        if preferred is None:
            assert out.dtype == onp.result_type(x, y)
            if eighths:     # sums are rounded to three bits
                continue
        np.testing.assert_array_equal(wide(out), expected != 0 if out.dtype == bool else expected)


def test_cotangents_have_the_operands_dtypes():
    x, y = A.astype(np.float16), B + 1j * B
    for left, right in ((x, B), (A, y.astype(np.complex64)), (A.astype(ml_dtypes.bfloat16), x.T)):
        out, back = vjp(lax.dot, left, right)
        ct = onp.ones(out.shape, out.dtype)
        cts = back(ct)
        assert [c.dtype for c in cts] == [left.dtype, right.dtype]
        exact = np.ones(out.shape) @ wide(right).T, wide(left).T @ np.ones(out.shape)
        for found, e, like in zip(cts, exact, (left, right), strict=True):
            np.testing.assert_allclose(wide(found), e if like.dtype.kind == "c" else e.real,
                                       rtol=1e-2)


def test_mapped_gradients_of_vectors_times_matrices_move_no_axes():
    w, xs = onp.ones((4, 4)), onp.ones((2, 3, 4))
    gradient = vmap(vmap(olympus.grad(lambda x: onp.tanh(onp.tanh(x @ w) @ w).sum())))
    moves = [e for e in olympus.make_olympuspr(gradient)(xs).eqns
             if e.primitive.name == "transpose" and e.invars[0].aval.ndim > 2]
    assert moves == []


def test_precision_is_made_of_the_strings_that_name_it():
    given = ("fastest", "tensorfloat32", "highest", None, 1)
    assert [lax.Precision(x).name for x in given] == ["DEFAULT", "HIGH", "HIGHEST", "DEFAULT",
                                                      "HIGH"]
    with pytest.raises(ValueError, match="not a valid Precision"):
        lax.Precision("exact")


@pytest.mark.parametrize("precision", [*lax.DotAlgorithmPreset, *lax.Precision, "bfloat16_3x",
                                       ("high", "default"), lax.DotAlgorithm(
                                           np.float32, np.float32, np.float32)], ids=str)
def test_every_precision_runs(precision):
    np.testing.assert_array_equal(lax.dot(A, B, precision=precision), A @ B)
    np.testing.assert_array_equal(
        jit(olympus.grad(lambda x: lax.dot(x, B, precision=precision).sum()))(A),
        np.ones((2, 2)) @ B.T)


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: lax.dot_general(A, A, (((0, 0), (0, 0)), ((), ()))), TypeError, "named once"),
    (lambda: lax.dot_general(A, A, (((0,), (0,)), ((0,), (0,)))), TypeError, "named once"),
    (lambda: lax.dot_general(A, B, (((-1,), (0,)), ((), ()))), TypeError, "must be an axis"),
    (lambda: lax.dot_general(A, B, (((1,), (1,)), ((), ()))), TypeError, "to have the same shape"),
    (lambda: lax.dot(A, np.float32(1)), TypeError, "ranks 1 or 2"),
    (lambda: lax.batch_matmul(A, B[None]), ValueError, "equal ranks"),
    (lambda: lax.dot(A, B, precision="low"), ValueError, "precision"),
    (lambda: lax.dot(A, B, precision=("F32_F32_F32",) * 2), ValueError, "not in a pair"),
    (lambda: lax.dot(A, B, out_sharding="x"), TypeError, "a NamedSharding, a Part"),
    (lambda: lax.scaled_dot(A, B, lhs_scale=np.ones((2, 2), np.float32)), TypeError, "divide"),
    (lambda: lax.scaled_dot(A, B, rhs_scale=np.ones(3, np.float32)), TypeError, "rank"),
    (lambda: lax.scaled_dot(A, B[0]), TypeError, "equal ranks"),
])
def test_products_explain_themselves(call, error, message):
    with pytest.raises(error, match=message):
        call()


def numbers(contracting, batch, ragged, group):
    return lax.RaggedDotDimensionNumbers((contracting, batch), ragged, group)


BASIC = numbers(((1,), (1,)), ((), ()), [0], [0])
GROUPS = np.ones((2, 3, 2), np.float32)


@pytest.mark.parametrize(("dims", "sizes", "options", "error", "message"), [
    (numbers(((1,), (1,)), ((), ()), [0, 1], [0]), [1, 1], {}, TypeError, "exactly one ragged"),
    (numbers(((1,), (1,)), ((), ()), [0], []), [1, 1], {}, TypeError, "one group axis"),
    (numbers(((1,), (1,)), ((), ()), [0], [1]), [1, 1], {}, TypeError, "neither contracting"),
    (numbers(((1,), (1,)), ((), ()), [1], [0]), [1, 1], {}, TypeError, "no group axis"),
    (BASIC, [1, 1, 1], {}, TypeError, "as many groups"),
    (BASIC, [[1, 1]], {}, TypeError, "a shape of"),
    (BASIC, [0.5, 0.5], {}, TypeError, "integer dtype"),
    (numbers(((1,), (1,)), ((), ()), [1], []), [1, 1], {"group_offset": 1}, ValueError,
     "group_offset given"),
])
def test_ragged_products_explain_themselves(dims, sizes, options, error, message):
    with pytest.raises(error, match=message):
        lax.ragged_dot_general(A, GROUPS, np.array(sizes), dims, **options)


def test_ragged_dimension_numbers_are_values():
    again = lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))
    assert again == BASIC
    assert hash(again) == hash(BASIC)
    assert "lhs_ragged_dimensions=(0,)" in repr(BASIC)
    assert again != numbers(((1,), (1,)), ((), ()), [0], [2])


@pytest.mark.parametrize("dims", [d for d in itertools.product((0, None), repeat=3) if any(
    v is not None for v in d)])
def test_ragged_products_map_over_anything(dims):
    rng = np.random.default_rng(1)
    args = [rng.normal(size=(2, 5, 3)), rng.normal(size=(2, 2, 3, 4)),
            np.array([[2, 3], [1, 1]], np.int32)]
    one = [a if d == 0 else a[0] for a, d in zip(args, dims, strict=True)]
    out = jit(vmap(lax.ragged_dot, dims))(*one)
    for k in (0, 1):
        np.testing.assert_allclose(out[k], lax.ragged_dot(*[
            a[k] if d == 0 else a for a, d in zip(one, dims, strict=True)]), rtol=1e-6)


def test_no_elements():
    assert lax.dot(np.zeros((0, 3)), np.zeros((3, 2))).shape == (0, 2)
    assert not lax.dot(np.zeros((2, 0)), np.zeros((0, 2))).any()
    assert lax.ragged_dot(np.zeros((0, 3)), GROUPS, np.array([0, 0])).shape == (0, 2)
    assert lax.scaled_dot(np.zeros((2, 0)), np.zeros((0, 2)),
                          lhs_scale=np.zeros((2, 0))).shape == (2, 2)
    for lhs, rhs in (((0, 3, 5), (4, 3, 2)), ((2, 0, 5), (4, 0, 2)), ((2, 3, 1), (4, 3, 2)),
                     ((2, 3, 5), (0, 3, 2))):
        x, w = np.ones(lhs), np.ones(rhs)
        out, back = vjp(lambda x, w: lax.conv(x, w, (1,), "VALID"), x, w)
        assert not out.any()
        assert [c.shape for c in back(out)] == [lhs, rhs]


IMAGE, KERNEL = np.ones((1, 3, 8), np.float32), np.ones((4, 3, 2), np.float32)


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: lax.conv(IMAGE, KERNEL, (0,), "VALID"), ValueError, "positive entries"),
    (lambda: lax.conv(IMAGE, KERNEL, (1, 1), "VALID"), ValueError, "1 spatial axes"),
    (lambda: lax.conv(IMAGE, KERNEL[:, :, :0], (1,), "VALID"), ValueError, "at least one place"),
    (lambda: lax.conv_general_dilated(IMAGE, KERNEL, (1,), [(0, 0)], rhs_dilation=(0,)),
     ValueError, "positive entries"),
    (lambda: lax.conv_general_dilated(IMAGE, KERNEL, (1,), [(0, 0)], out_sharding="x"),
     TypeError, "a NamedSharding, a PartitionSpec"),
    (lambda: lax.conv_general_dilated(IMAGE, KERNEL, (1,), [(0, 0)] * 2), TypeError, "one pair"),
    (lambda: lax.conv_transpose(IMAGE, KERNEL, (2,), "SAME_LOWER"), ValueError, "with strides 1"),
    (lambda: lax.conv_general_dilated_patches(IMAGE, (2, 2), (1,), "VALID"), TypeError,
     "one size per spatial"),
    (lambda: lax.conv_general_dilated_local(IMAGE, KERNEL, (1,), "VALID", (2,)), TypeError,
     "input axis must have size 6"),
    (lambda: lax.conv_general_permutations(("NCH", "OIW", "NCH")), ValueError, "spatial letters"),
    (lambda: lax.conv_shape_tuple((1, 3, 8), (4, 3, 2), (1,), [(0, 0)] * 2), TypeError,
     "one pair per axis"),
])
def test_convolutions_explain_themselves(call, error, message):
    with pytest.raises(error, match=message):
        call()


# Sums have the operands' kind; sums of integers may be floats.
TAKEN = {"int8": ("float32", "int32"), "float16": ("float32",), "bfloat16": ("float32",),
         "complex64": ("complex64",), "bool": ("float32", "int32", "complex64")}


@pytest.mark.parametrize("preferred", [None, "float32", "int32", "complex64"])
@pytest.mark.parametrize("kind", ["int8", "float16", "bfloat16", "complex64", "bool"])
def test_convolutions_of_each_dtype(kind, preferred):
    x, w = onp.asarray(IMAGE).astype(kind), onp.asarray(KERNEL).astype(kind)
    if preferred not in {None, *TAKEN[kind]}:
        with pytest.raises(TypeError, match="one of the operands' kind, or a float for integers"):
            lax.conv(x, w, (3,), "VALID", preferred_element_type=preferred)
        return
    out = lax.conv(x, w, (3,), "VALID", preferred_element_type=preferred)
    assert out.dtype == (kind if preferred is None else preferred)
    np.testing.assert_array_equal(wide(out), wide(np.full((1, 4, 3), 6).astype(out.dtype)))


def test_transposed_convolution_is_the_gradient():
    x, w = np.random.default_rng(0).normal(size=(1, 3, 9)), np.ones((4, 3, 3))
    for padding in ("VALID", [(2, 1)], [(0, 3)]):
        out, back = vjp(lambda x, p=padding: lax.conv(x, w, (2,), p), x)
        pads = [(0, 0)] if padding == "VALID" else padding
        ct = onp.asarray(np.random.default_rng(1).normal(size=out.shape))
        found = lax.conv_transpose(ct, w, (2,), pads, dimension_numbers=("NCH", "OIH", "NCH"),
                                   transpose_kernel=True, use_consistent_padding=True)
        np.testing.assert_allclose(found, back(ct)[0][:, :, :found.shape[2]], rtol=1e-5)
    names = ("NHC", "HIO", "NHC")
    image, kernel = np.ones((2, 5, 3)), np.ones((3, 3, 4))
    for stride, padding in itertools.product((1, 2, 4), ("SAME", "VALID", [(1, 0)])):
        assert lax.conv_transpose(image, kernel, (stride,), padding).shape == (
            lax.conv_transpose_shape_tuple((2, 5, 3), (3, 3, 4), (stride,), padding, names))


def test_einsum_of_two_dtypes_converts_no_operand():
    x, y = onp.full((2, 2), 100, np.int8), onp.array([[0.5, 1.], [2., 3.]])
    program = olympus.make_olympuspr(lambda x, y: onp.einsum("ij,jk->ik", x, y))(x, y)
    (product,) = program.eqns
    assert product.primitive.name == "dot_general"
    assert product.params["preferred_element_type"] == np.float32
    np.testing.assert_array_equal(onp.einsum("ij,jk->ik", x, y), np.asarray(x, "f4") @ y)
    # What is summed alone is summed at the dtype of the whole: 200 is no int8.
    np.testing.assert_array_equal(onp.einsum("ij,jk->k", x, y), [500, 800])
    np.testing.assert_array_equal(
        olympus.grad(lambda y: onp.einsum("ij,jk->", x, y))(y), np.full((2, 2), 200))


def test_einsum_of_weak_numbers_is_weak():
    weak = onp.broadcast_to(onp.array(2), (3,))
    assert onp.einsum("i,i->i", weak, weak).weak_type and onp.einsum("i->", weak).weak_type
    assert not onp.einsum("i,i->", weak, onp.arange(3)).weak_type
    assert onp.einsum(",i->i", 2.0, onp.arange(3)).dtype == onp.float32


@pytest.mark.parametrize("dtype, out", [
    ("int4", "int32"), ("uint4", "uint32"), ("int2", "int32"), ("int4", "int8"),
    ("float4_e2m1fn", "float32"), ("float4_e2m1fn", "bfloat16"), ("int4", "float32")])
def test_products_of_less_than_8_bits_into_wider_dtypes(dtype: str, out: str) -> None:
    a, b = [onp.asarray(np.arange(12).reshape(s) % 2).astype(dtype) for s in ((3, 4), (4, 3))]
    x, y = [np.asarray(v).astype(float) for v in (a, b)]
    for f in (lax.dot, onp.matmul, lambda x, y, **kw: onp.einsum("ij,jk->ik", x, y, **kw)):
        found = olympus.jit(lambda x, y, f=f: f(x, y, preferred_element_type=out))(a, b)
        assert found.dtype == out
        np.testing.assert_array_equal(np.asarray(found).astype(float), x @ y)
    found = lax.conv(a[None, None], b[None, None, :2, :2], (1, 1), "VALID",
                     preferred_element_type=out)
    views = np.lib.stride_tricks.sliding_window_view(x, (2, 2))
    np.testing.assert_array_equal(np.asarray(found)[0, 0].astype(float),
                                  (views * y[:2, :2]).sum((2, 3)))
