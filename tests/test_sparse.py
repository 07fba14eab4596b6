"""Sparse arrays beside dense ones: NumPy's and SciPy's answers are the oracle of every row."""

import warnings

import numpy as np
import pytest
import scipy.sparse

import olympus
import olympus.numpy as onp
from olympus import lax, nn
from olympus.experimental import sparse
from olympus.experimental.sparse import linalg, test_util, transform
from olympus.scipy import special

RNG = np.random.default_rng(0)


def holes(*shape, dtype=np.float32, density=.4):
    """An array with about as many nonzero elements as asked for."""
    x = RNG.normal(size=shape) * (RNG.random(shape) < density)
    return (10 * x if np.dtype(dtype).kind in "iu" else x).astype(dtype)


M, N, X = holes(5, 6), holes(5, 6), RNG.normal(size=(6, 3)).astype(np.float32)
V, W = X[:, 0], RNG.normal(size=5).astype(np.float32)


def dense(x):
    return np.asarray(x.todense() if isinstance(x, sparse.OLYMPUSSparse) else x)


def check(got, want, tol=1e-5):
    got, want = dense(got), np.asarray(want)
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=tol, atol=tol)


@pytest.fixture(name="unchecked")
def unchecked_indices():
    """Under the option `enable_checks`, too, indices of a test may be negative or too large."""
    with olympus.enable_checks(False):
        yield


def padded(mat, more=3):
    """The same array with unsorted indices, a duplicate, and padding that is infinite: beyond the
    sizes, too, but under the option `enable_checks`."""
    mat = sparse.BCOO.fromdense(mat)
    order = RNG.permutation(mat.nse)
    outside = np.stack([[mat.shape[0], 0], [1, mat.shape[1] + 4], [-1, 0]][:more]).astype(np.int32)
    if olympus.config.olympus_enable_checks:
        outside = np.where(outside < 0, mat.shape, np.minimum(outside, mat.shape))
    data = np.concatenate([np.asarray(mat.data)[order], [np.inf] * more, [1, -1]], dtype=np.float32)
    indices = np.concatenate([np.asarray(mat.indices)[order], outside, [[2, 2], [2, 2]]])
    return sparse.BCOO((data, indices.astype(np.int32)), shape=mat.shape)


def _by_references(m):
    """M V + 2 M V, collected in a place. Regression: a TypeError outside of jit."""
    place, total = olympus.new_ref(onp.asarray(V)), olympus.new_ref(onp.zeros(5))
    for _ in range(2):
        total[...] += m @ place[...]
        place[...] *= 2
    return olympus.freeze(total)


# A function of a matrix [5, 6], sparse or dense; under sparsify, jit, jvp, vmap and grad.
ROWS = {
    "matvec": lambda m: m @ V, "matmat": lambda m: m @ X, "vecmat": lambda m: W @ m,
    "transposed": lambda m: m.T @ W, "outer": lambda m: (m @ X).T, "sparse": lambda m: m @ m.T,
    "neg": lambda m: -m, "scaled": lambda m: 3 * m, "columns": lambda m: m * V,
    "divided": lambda m: m / (V + 9), "sum": lambda m: m.sum(), "rows": lambda m: m.sum(1),
    "added": lambda m: m + m, "both": lambda m: m + 2 * m[::1], "dense": lambda m: m + N,
    "minus": lambda m: N - m, "slice": lambda m: m[1:4, ::2], "row": lambda m: m[2],
    "element": lambda m: m[2, 3], "reversed": lambda m: m[::-1], "take": lambda m: m[onp.array(
        [2, 0, 2])], "reshape": lambda m: m.reshape(6, 5), "flat": lambda m: m.reshape(30),
    "split": lambda m: m.reshape(5, 2, 3), "tanh": onp.tanh, "square": lambda m: m ** 2,
    "kron": lambda m: onp.kron(m[:2, :3], m), "stretched": lambda m: -m[:, :1] * m * m[2:3],
    "vdot": lambda m: onp.vdot(m, 2 * m), "tensordot": lambda m: onp.tensordot(m, m[::-1]),
    "product": lambda m: m * m[::-1], "itself": lambda m: m * m,
    "stack": lambda m: onp.stack([m, m]), "below": lambda m: onp.concatenate([m, 2 * m], 0),
    "beside": lambda m: onp.concatenate([m, 2 * m], 1), "new": lambda m: m[None],
    "squeeze": lambda m: m[None].squeeze(0), "jit": lambda m: olympus.jit(lambda x: x @ V)(m),
    "fori": lambda m: lax.fori_loop(0, 3, lambda i, c: c * 2, m),
    "while": lambda m: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * 2),
                                      (0, m))[1],
    "cond": lambda m: lax.cond(V[0] > 9, lambda x: x * 2, lambda x: -x, m),
    "checkpoint": lambda m: olympus.checkpoint(lambda x: x * 2)(m), "references": _by_references,
}


@pytest.mark.parametrize("row", ROWS)
def test_sparsified_functions_are_the_dense_ones(row):
    f = ROWS[row]
    run = sparse.sparsify(f)
    want = np.asarray(f(onp.asarray(M)))
    for mat in (sparse.BCOO.fromdense(M), padded(M)):
        check(run(mat), want)
    mat = sparse.BCOO.fromdense(M)
    check(olympus.jit(run)(mat), want)
    if row != "while":      # reads its carry's types anew in each trace
        check(sparse.sparsify(f, use_tracer=True)(mat), want)
    places = tuple(np.asarray(mat.indices).T)

    def of_data(data):
        return onp.asarray(sparse.todense(run(sparse.BCOO((data, mat.indices), shape=M.shape,
                                                          unique_indices=True))))

    direction = RNG.normal(size=mat.data.shape).astype(np.float32)
    whole = np.zeros_like(M)
    whole[places] = direction
    check(olympus.jvp(of_data, (mat.data,), (direction,))[1],
          olympus.jvp(f, (onp.asarray(M),), (whole,))[1], 1e-4)
    two = onp.stack([mat.data, 2 * mat.data])
    check(olympus.vmap(of_data)(two), onp.stack([f(onp.asarray(M)), f(2 * onp.asarray(M))]), 1e-4)
    if row == "while":
        return
    weights = RNG.normal(size=want.shape).astype(np.float32)
    check(olympus.grad(lambda d: (of_data(d) * weights).sum())(mat.data),
          np.asarray(olympus.grad(lambda m: (f(m) * weights).sum())(onp.asarray(M)))[places], 1e-4)


def test_what_is_stretched_is_refused_where_it_had_to_be_stored():
    mat = sparse.BCOO.fromdense(M)
    for f in (lambda m: m[:, :1] + m, lambda m: onp.broadcast_to(m[:, :1], m.shape),
              lambda m: m[:, :1] * X[:5, :1] * N):
        with pytest.raises(NotImplementedError, match=r"sparsify: a sparse array \(5, 1\) broadca"):
            sparse.sparsify(f)(mat)


LAYOUTS = [(b, d) for b in range(3) for d in range(3) if b + d <= 4]


@pytest.mark.parametrize("n_batch, n_dense", LAYOUTS)
def test_layouts_convert_and_multiply(n_batch, n_dense):
    m = holes(2, 3, 4, 5)
    mat = sparse.BCOO.fromdense(m, n_batch=n_batch, n_dense=n_dense)
    check(mat, m)
    assert mat.n_sparse == 4 - n_batch - n_dense
    for b, d in ((0, 0), (2, 0), (0, 2), (1, 1)):
        check(mat.update_layout(n_batch=b, n_dense=d, on_inefficient=None), m)
    check(mat.sum_duplicates(), m)
    check(mat.sort_indices(), m)
    check(sparse.bcoo_extract(mat, m), m)
    for axes in ((0,), (1, 2), (3,), (0, 1, 2, 3)):
        check(sparse.bcoo_reduce_sum(mat, axes=axes), m.sum(axes))
    check(sparse.bcoo_slice(mat, start_indices=(0, 1, 0, 2), limit_indices=(2, 3, 3, 5),
                            strides=(1, 1, 2, 1)), m[:, 1:3, 0:3:2, 2:])
    check(sparse.bcoo_dynamic_slice(mat, (1, 1, 9, 0), (1, 2, 2, 3)), m[1:, 1:3, 2:, :3])
    check(sparse.bcoo_rev(mat, (0, 1, 3)), m[::-1, ::-1, :, ::-1])
    check(sparse.bcoo_multiply_sparse(mat, mat), m * m)
    check(olympus.jit(lambda x: x.todense())(mat), m)
    for axis in range(n_batch):
        check(olympus.vmap(lambda x: 2 * x, axis, axis)(mat), 2 * m)
    rhs = holes(2, 4, 6, density=1)
    for contract, batch in ((((2,), (1,)), ((), ())), (((2,), (1,)), ((0,), (0,))),
                            (((0, 2), (0, 1)), ((), ()))):
        if batch[0] and not n_batch:
            continue
        numbers = (contract, batch)
        want = lax.dot_general(m, rhs, numbers)
        check(sparse.bcoo_dot_general(mat, rhs, dimension_numbers=numbers), want)
        flipped = tuple(tuple(x[::-1]) for x in numbers)
        check(sparse.bcoo_dot_general(rhs, mat, dimension_numbers=flipped),
              lax.dot_general(rhs, m, flipped))


@pytest.mark.parametrize("dtype", ["bool", "int8", "int32", "uint16", "bfloat16", "float16",
                                   "float32", "complex64", "float8_e4m3fn", "int4"])
def test_dtypes(dtype):
    dense_array = onp.asarray([[0, 1, 1], [1, 0, 0]]).astype(dtype)
    mat = sparse.BCOO.fromdense(dense_array)
    assert mat.dtype == dense_array.dtype == mat.todense().dtype
    assert (mat.todense() == dense_array).all() and (mat.T.todense() == dense_array.T).all()
    if dtype not in ("float8_e4m3fn", "int4"):
        vector = onp.ones(3, dtype)
        assert (mat @ vector == dense_array @ vector).all()


@pytest.mark.parametrize("kind", ["bcoo", "bcsr", "coo", "csr", "csc"])
def test_formats_convert_and_multiply(kind):
    made = {"bcoo": sparse.BCOO, "bcsr": sparse.BCSR, "coo": sparse.COO, "csr": sparse.CSR,
            "csc": sparse.CSC}[kind]
    mat = made.fromdense(M)
    check(mat, M)
    check(mat @ V, M @ V)
    check(olympus.jit(lambda x, y: x @ y)(mat, X), M @ X)
    check(sparse.todense(mat), M)
    check(sparse.sparsify(sparse.todense)(mat) if kind in ("bcoo", "bcsr") else mat, M)
    if kind != "bcsr":
        check(mat.T @ W, M.T @ W)
    gradient = sparse.grad(lambda x, v: ((x @ v) ** 2).sum(), (0, 1))(mat, V)
    check(gradient[0], 2 * np.outer(M @ V, V) * (M != 0), 1e-4)
    check(gradient[1], 2 * M.T @ (M @ V), 1e-4)
    check(sparse.eye(3, 4, 1, sparse_format=kind), np.eye(3, 4, 1))
    check(sparse.empty((3, 4), sparse_format=kind), np.zeros((3, 4)))
    of_scipy = scipy.sparse.csr_array(M)
    check(made.from_scipy_sparse(of_scipy), M)
    check(made.from_scipy_sparse(scipy.sparse.coo_matrix(M)), M)
    leaves, tree = olympus.tree.flatten(mat)
    check(olympus.tree.unflatten(tree, leaves), M)
    assert repr(mat).startswith(made.__name__ + "(float32[5, 6], nse=")


def kernels_of(fun, *args):
    """The names of the kernels that a program is lowered by."""
    return [t.kernel.name for t in olympus.jit(lambda *x: fun(*x)).lower(*args)._context.taken]


LOOP = "a loop over elements"
# Indices of a matrix [64, 40] with 2,560 elements, at place 7: what breaks a promise or is padding.
WRONG = {"right": None, "column at the end": [0, 40], "negative column": [0, -1],
         "far column": [0, 2**31 - 1], "negative row": [-1, 3], "far row": [2**31 - 1, 3],
         "not in order": [60, 3]}


@pytest.mark.parametrize("shape", [(64, 257), (2500, 4)])
@pytest.mark.parametrize("wrong", WRONG)
def test_a_vector(shape, wrong, unchecked):
    # An infinite element of padding counts nowhere.
    places = np.indices(shape).reshape(2, -1).T.astype(np.int32)
    data, x, y = (RNG.normal(size=s).astype(np.float32) for s in (places.shape[0], *shape[::-1]))
    if WRONG[wrong]:
        places[7], data[7] = np.minimum(WRONG[wrong], 2**31 - 1), np.inf
        places[7, 1] = shape[1] if "at the end" in wrong else places[7, 1]
    kept = ((places >= 0) & (places < shape)).all(1)
    data[7] = data[7] if not kept[7] else 2.
    order = RNG.permutation(len(data))
    want = scipy.sparse.coo_array((data[kept], tuple(places[kept].T)), shape=shape)
    for at, by in ((slice(None), x), (order, x), (slice(None), y), (order, y)):
        mat = sparse.BCOO((data[at], places[at]), shape=shape)
        run = (lambda m, v: m @ v) if by is x else (lambda m, v: m.T @ v)
        assert kernels_of(run, mat, by) == [LOOP]
        check(olympus.jit(run)(mat, by), (want if by is x else want.T) @ by, 1e-4)
    by = RNG.normal(size=shape[1]) + 1j
    mat = sparse.BCOO((data.astype(np.complex64), places), shape=shape)
    check(olympus.jit(lambda m, v: m @ v)(mat, by.astype(np.complex64)), want @ by, 1e-4)


@pytest.mark.parametrize("columns, wrong", [*[(13, w) for w in WRONG], (300, "far column"),
                                            (2048, "negative row"), (2049, "far row")])
def test_several_columns(columns, wrong, unchecked):
    rows, places = 64, np.indices((64, 40)).reshape(2, -1).T.astype(np.int32)
    data, x = (RNG.normal(size=s).astype(np.float32) for s in (2560, (40, columns)))
    if WRONG[wrong]:
        places[7], data[7] = WRONG[wrong], np.inf if "in order" not in wrong else 2.
    mat = sparse.BCOO((data, places), shape=(rows, 40), indices_sorted=True)
    kept = ((places >= 0) & (places < (rows, 40))).all(1)
    want = np.asarray(scipy.sparse.coo_array((data[kept], tuple(places[kept].T)),
                                             shape=(rows, 40)) @ x)
    run = lambda m, x: m @ x
    assert kernels_of(run, mat, x) == [LOOP] * (columns < 2049)
    check(olympus.jit(run)(mat, x), want, 1e-4)
    if columns > 13:
        return
    check(olympus.vmap(lambda v: mat @ v, 1, 1)(x), want, 1e-4)
    check(olympus.jit(lambda x: mat @ x)(x), want, 1e-4)
    check(olympus.jit(lambda m, x: sparse.bcoo_dot_general(
        m, x, dimension_numbers=(((1,), (1,)), ((), ()))))(mat, x.T), want, 1e-4)
    if "row" in wrong or "order" in wrong:
        return
    bcsr = sparse.BCSR((data, places[:, 1], onp.arange(rows + 1) * 40), shape=(rows, 40))
    assert kernels_of(run, bcsr, x) == [LOOP]
    check(olympus.jit(run)(bcsr, x), want, 1e-4)


@pytest.mark.parametrize("dtype, index, axes", [
    ("int32", "uint32", [(0,)]), ("int64", "int8", [(1,)]), ("float64", "int64", [(2,), (2, 1)]),
    ("complex64", "uint16", [(0, 2)]), ("complex128", "int32", [(1, 0)])])
def test_one_loop_over_elements(dtype, index, axes):
    # 2,049 elements of [5, 30, 40], with duplicates and padding; some axes are contracted.
    shape = (5, 30, 40)
    with olympus.enable_x64(True):
        places = np.stack([RNG.integers(0, n + 1, 2049) for n in shape], 1).astype(index)
        data = (9 * RNG.normal(size=2049)).astype(dtype)
        mat = sparse.BCOO((onp.asarray(data), onp.asarray(places)), shape=shape)
        whole = np.zeros(shape, dtype)
        kept = (places < np.array(shape)).all(1)
        np.add.at(whole, tuple(places[kept].T), data[kept])
        for lc in axes:
            rhs = (9 * RNG.normal(size=(3, *[shape[d] for d in lc], 2))).astype(dtype)
            numbers = (lc, range(1, 1 + len(lc))), ((), ())
            run = lambda m, x: sparse.bcoo_dot_general(m, x, dimension_numbers=numbers)
            assert kernels_of(run, mat, rhs) == [LOOP]
            want = np.tensordot(whole, rhs, (lc, numbers[0][1]))    # terms cancel
            np.testing.assert_allclose(olympus.jit(run)(mat, rhs), want, 1e-4,
                                       2e-6 * np.abs(want).max() if dtype == "complex64" else 1e-7)


@pytest.mark.parametrize("pointers", [(4, 900, -7, 2, 3, 100), (0, 40, 40, 9, 9, 2560),
                                      (-3, 1, 2, 3, 4, 5), (0, 1, 2, 3, 4, 2561)])
def test_pointers_that_are_none_give_some_product(pointers, unchecked):
    indptr = np.concatenate([pointers, np.full(59, 2560)]).astype(np.int32)
    mat = sparse.BCSR((onp.ones(2560), onp.arange(2560) % 40, indptr), shape=(64, 40))
    x = RNG.normal(size=(40, 8)).astype(np.float32)
    assert kernels_of(lambda m, x: m @ x, mat, x) == [LOOP]
    check(mat @ x, np.asarray(mat.todense()) @ x, 1e-3)


def test_products_of_infinite_columns():
    # 0 times infinity is NaN in a dense product, and padding has no place.
    x = RNG.normal(size=(6, 8)).astype(np.float32)
    x[0] = np.inf
    mat = sparse.BCOO.fromdense(M, nse=25)
    rows = M[:, 0] == 0
    for m in (mat, sparse.BCSR.from_bcoo(mat)):
        check((m @ x)[rows], M[rows, 1:] @ x[1:])


def test_duplicates_are_summed_and_padding_is_dropped():
    mat = padded(M)
    check(mat.sum_duplicates(remove_zeros=False), M)
    assert mat.sum_duplicates().nse == (M != 0).sum()
    check(olympus.jit(lambda m: m.sum_duplicates(nse=40))(mat), M)
    check(sparse.bcoo_squeeze(mat[:, 1:2], dimensions=(1,)), M[:, 1])
    check(sparse.bcoo_concatenate([mat, mat], dimension=0), np.concatenate([M, M]))
    check(sparse.bcoo_dot_general_sampled(M, X, np.array([[0, 1], [4, 2], [9, 0]]),
                                          dimension_numbers=(((1,), (0,)), ((), ()))),
          [(M @ X)[0, 1], (M @ X)[4, 2], 0])
    twice = sparse.bcoo_extract(mat, onp.asarray(N), assume_unique=False)
    check(twice, np.where((M != 0) | (np.indices(M.shape) == 2).all(0), N, 0))


def test_convolution():
    v, k = holes(7), holes(3, density=1)
    for padding in ("VALID", "SAME", ((2, 1),)):
        want = lax.conv_general_dilated(v[None, None], k[None, None], (1,), padding)
        for lhs in (sparse.BCOO.fromdense(v[None, None]), v[None, None]):
            rhs = k[None, None] if lhs is not v else k
            check(sparse.bcoo_conv_general_dilated(
                lhs, sparse.BCOO.fromdense(rhs), window_strides=(1,), padding=padding), want)


def test_jacobians_and_values():
    mat = sparse.BCOO.fromdense(M)
    for jac in (sparse.jacfwd, sparse.jacrev):
        found = jac(lambda m: m @ V)(mat)
        check(found, np.einsum("ik,j->ikj", np.eye(5), V) * (M != 0))
    value, gradient = sparse.value_and_grad(lambda m: (m @ V).sum())(mat)
    check(value, (M @ V).sum())
    check(gradient, np.broadcast_to(V, M.shape) * (M != 0))
    gradient, aux = sparse.grad(lambda t: ((t["m"] @ t["v"]).sum(), 3), has_aux=True)(
        {"m": mat, "v": V})
    assert aux == 3 and gradient["m"].nse == mat.nse
    check(gradient["v"], M.sum(0))


def test_scan_over_batches():
    m = holes(4, 5, 6)
    mat = sparse.BCOO.fromdense(m, n_batch=1)
    total, rows = lax.scan(lambda c, x: (c + x @ V, x), onp.zeros(5), mat)
    check(total, (m @ V).sum(0))
    check(rows, m)


def test_solves():
    a = holes(20, 20, density=.2) + 5 * np.eye(20, dtype=np.float32)
    A, b = sparse.BCSR.fromdense(a), RNG.normal(size=20).astype(np.float32)
    solve = lambda data, b: linalg.spsolve(data, A.indices, A.indptr, b)
    check(solve(A.data, b), np.linalg.solve(a, b), 1e-4)
    check(olympus.jit(solve)(A.data, b), np.linalg.solve(a, b), 1e-4)
    rows, columns = np.nonzero(a)

    def of_dense(data, b):
        return onp.linalg.solve(onp.zeros((20, 20)).at[rows, columns].set(data), b)

    for f in (0, 1):
        check(olympus.grad(lambda *x: (solve(*x) ** 2).sum(), f)(A.data, b),
              olympus.grad(lambda *x: (of_dense(*x) ** 2).sum(), f)(A.data, onp.asarray(b)), 1e-3)
    assert np.isnan(linalg.spsolve(np.ones(1, np.float32), [0], [0, 1, 1], np.ones(2))).all()
    check(olympus.scipy.sparse.linalg.cg(sparse.BCOO.fromdense(a @ a.T), b, tol=1e-6)[0],
          np.linalg.solve(a @ a.T, b), 1e-3)


def test_lobpcg():
    q, _ = np.linalg.qr(RNG.normal(size=(60, 60)))
    a = ((q * np.arange(1., 61)) @ q.T).astype(np.float32)
    values, vectors, steps = linalg.lobpcg_standard(
        sparse.BCOO.fromdense(a), RNG.normal(size=(60, 3)).astype(np.float32), m=200)
    check(values, [60, 59, 58], 1e-3)
    check(a @ np.asarray(vectors), np.asarray(vectors) * np.asarray(values), 2e-2)
    assert 0 < int(steps) <= 200


class TestLayouts(test_util.SparseTestCase):
    """Functions of random arrays with duplicates, in every layout, beside dense ones."""

    def test_values_derivatives_and_maps(self):
        for n_batch, n_dense, n_sparse in test_util.iter_sparse_layouts((2, 3, 4)):
            kind = test_util.rand_bcsr if n_sparse == 2 and n_batch else test_util.rand_bcoo
            rand = kind(self.rng(), n_batch=n_batch, n_dense=n_dense)
            x = self.rng().randn(4, 2).astype(np.float32)
            make = lambda: [rand((2, 3, 4), "float32")]
            if n_dense == 0 and n_sparse > 1:
                product = lambda m: m @ x
                self._CheckAgainstDense(product, product, make, tol=1e-5)
                self._CheckGradsSparse(product, sparse.sparsify(product), make, atol=1e-5)
            if n_batch and kind is test_util.rand_bcoo:
                twice = lambda m: 2 * m
                self._CheckBatchingSparse(twice, twice, make, bdims=[n_batch - 1])


KEEP = {
    "reshape": lambda m: m.reshape(6, 4), "to one": lambda m: m[:1, 1:2].reshape(()),
    "slice": lambda m: m[1:, ::2], "element": lambda m: m[3, 2],
    "rows": lambda m: m[onp.array([1, 0])],
    "squeeze": lambda m: sparse.bcoo_squeeze(m[:1], dimensions=(0,)),
    "dense": lambda m: m.update_layout(n_dense=1, on_inefficient=None),
    "batch": lambda m: m.update_layout(n_batch=1, on_inefficient=None),
    "transpose": lambda m: m.T, "turn": lambda m: sparse.bcoo_rev(m, [0]),
    "join": lambda m: sparse.bcoo_concatenate([m, m], dimension=0),
    "spread": lambda m: sparse.bcoo_broadcast_in_dim(m, shape=(2, 4, 6),
                                                     broadcast_dimensions=(1, 2)),
    "duplicates": lambda m: m.sum_duplicates(nse=9), "sort": lambda m: m.sort_indices(),
    "extract": lambda m: sparse.bcoo_extract(m, m.todense()), "product": lambda m: m @ m.T,
    "vector": lambda m: m @ m.todense()[0], "columns": lambda m: m @ m.T.todense(),
    "by dense": lambda m: m * m.todense(), "by sparse": lambda m: m * m,
    "no axis": lambda m: sparse.BCOO.fromdense(m.todense(), n_batch=1, n_dense=1, nse=2),
    "cut": lambda m: sparse.bcoo_slice(m, start_indices=(1, 0), limit_indices=(3, 4)),
    "todense": lambda m: m.todense(), "by rows": lambda m: sparse.BCSR.from_bcoo(m).to_bcoo(),
}


@pytest.mark.parametrize("name", KEEP)
def test_dtypes_stay(name):
    # The product of two arrays of truths was one of integers.
    for dtype in ("bool", "int4", "uint8", "float8_e5m2", "bfloat16", "complex64"):
        def run(data, indices):
            mat = sparse.BCOO((data, indices), shape=(4, 6))
            out = KEEP[name](mat)
            return out.data if isinstance(out, sparse.OLYMPUSSparse) else out
        with olympus.numpy_rank_promotion("raise"):
            out = olympus.eval_shape(run, olympus.ShapeDtypeStruct((7,), dtype),
                                     olympus.ShapeDtypeStruct((7, 2), "int32"))
        assert out.dtype == onp.dtype(dtype), dtype


def test_arrays_of_truths():
    x, y = RNG.random((2, 5, 5)) < .4
    a, b = sparse.BCOO.fromdense(x), sparse.BCOO.fromdense(y, nse=20)

    def run(a, b):
        bits = [sparse.sparsify(f)(a, b) for f in (lax.bitwise_and, lax.bitwise_or)]
        return [todense(m) for m in (a @ b, a @ y, a * b, b * x, a + b, a + y, *bits)]

    todense = sparse.todense
    found = olympus.jit(run)(a, b)
    wanted = x @ y, x @ y, x & y, x & y, x | y, x | y, x & y, x | y
    for m, want in zip(found, wanted, strict=True):
        assert m.dtype == bool and (np.asarray(m) == want).all()
    with pytest.raises(NotImplementedError, match=r"and of int32\[5, 5\].*arrays of bool are requ"):
        sparse.sparsify(lax.bitwise_and)(a.astype("int32"), b.astype("int32"))


def test_random():
    mat = sparse.random_bcoo(olympus.random.key(1), (2, 40, 50, 3), nse=.1, n_batch=1, n_dense=1,
                             sorted_indices=True)
    assert mat.nse == 200 and mat.shape == (2, 40, 50, 3)
    for rows in np.asarray(mat.indices):
        flat = rows[:, 0] * 50 + rows[:, 1]
        assert (np.diff(flat) > 0).all() and flat.max() < 2000


# Functions of each element that are 0 at 0, some by numbers that are not.
AT_ZERO = {
    "sign": onp.sign, "trunc": onp.trunc, "rint": onp.rint, "cbrt": onp.cbrt, "i1": special.i1,
    "nan_to_num": onp.nan_to_num, "isnan": onp.isnan, "erf": special.erf, "ceil": onp.ceil,
    "relu": nn.relu, "gelu": nn.gelu, "elu": nn.elu, "silu": nn.silu, "soft_sign": nn.soft_sign,
    "hard_tanh": nn.hard_tanh, "leaky_relu": nn.leaky_relu, "cos - 1": lambda x: onp.cos(x) - 1,
    "where": lambda x: onp.where(x > 1, x * x, -x), "stop_gradient": lax.stop_gradient,
}


@pytest.mark.parametrize("name", AT_ZERO)
def test_functions_that_are_zero_at_zero_keep_places(name):
    fun = AT_ZERO[name]
    # With padding; and with an index that is stored twice.
    once = sparse.BCOO.fromdense(onp.asarray(np.array([[0, 1.5, 0], [-.4, 0, 2.25]], "f")), nse=5)
    twice = sparse.BCOO((onp.array([1.0, -3.0, 0.5, 2.0]), onp.array(
        [[0, 0], [0, 0], [1, 2], [2, 3]])), shape=(2, 3))
    for mat in (once, twice):
        for tracer in (False, True):
            found = sparse.sparsify(fun, use_tracer=tracer)(mat)
            assert found.nse == mat.nse
            check(found, fun(mat.todense()))


def test_functions_that_are_not_zero_at_zero_are_named():
    mat = sparse.BCOO.fromdense(onp.eye(3))
    for fun, name in ((onp.exp, "exp"), (nn.sigmoid, "logistic"), (lambda x: x == 0, "eq"),
                      (lambda x: onp.cos(x).sum(), "cos"), (lambda x: (x + 1) @ x, "Addition")):
        for tracer in (False, True):
            with pytest.raises(NotImplementedError, match=f"(?s)sparsify: {name}.*dense"):
                sparse.sparsify(fun, use_tracer=tracer)(mat)


# Programs as others write them, of a matrix given by its elements: (values, rows, columns, size).

def diffusion(make, vals, rows, cols, n):
    """Energy of a graph's Laplacian, and its derivatives by weights and signal."""
    x = onp.sin(onp.arange(float(n))).astype(vals.dtype)

    def energy(vals, x):
        w = make(vals, rows, cols, n)
        w = w + w.T
        degrees = w @ onp.ones(n, vals.dtype)
        return (x * (degrees * x - w @ x)).sum().real
    return energy(vals, x), olympus.grad(energy, (0, 1))(vals, x)


def rank_of_pages(make, vals, rows, cols, n):
    """PageRank by a scan of products."""
    w = make(abs(vals) / n, rows, cols, n)
    return lax.scan(lambda r, _: (0.85 * (w @ r) + 0.15 / n, r.sum()), onp.ones(n) / n, None, 20)


def layer_of_a_graph(make, vals, rows, cols, n):
    """Two layers of a graph's convolution, and the derivative by the network's weights."""
    h = onp.cos(onp.arange(4.0 * n)).reshape(n, 4).astype(vals.dtype)

    def loss(weights, vals):
        w = make(vals, rows, cols, n)
        return (abs(w.T @ onp.tanh(w @ (h @ weights))) ** 2).sum()
    return olympus.jit(olympus.value_and_grad(loss, (0, 1)))(onp.eye(4, 3, dtype=vals.dtype), vals)


def shrinkage(make, vals, rows, cols, n):
    """LASSO by proximal steps, and the derivative of the path by its penalty."""
    w, b = make(vals, rows, cols, n), onp.cos(onp.arange(float(n)))

    def run(penalty):
        def step(x, _):
            y = x - 0.02 * (w.T @ (w @ x - b))
            return onp.sign(y) * onp.maximum(abs(y) - 0.02 * penalty, 0), None
        return lax.scan(step, onp.zeros(n), None, 30)[0]
    return run(0.3), olympus.jacfwd(run)(0.3)


def several_at_once(make, vals, rows, cols, n):
    """Products by mapped values, as of an ensemble of elements' stiffnesses."""
    x = onp.arange(float(n)).astype(vals.dtype)
    return olympus.vmap(lambda v: make(v, rows, cols, n) @ x)(onp.stack([vals, 2 * vals, -vals]))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("program", [diffusion, rank_of_pages, layer_of_a_graph, shrinkage,
                                     several_at_once])
def test_programs_of_sparse_matrices_are_those_of_dense_ones(program, dtype):
    if dtype == "complex64" and program in (rank_of_pages, shrinkage):
        pytest.skip("of real numbers")
    n = 12
    rows, cols = RNG.integers(0, n, (2, 40))    # some places are there twice
    vals = RNG.normal(size=40) + (1j * RNG.normal(size=40) if dtype == "complex64" else 0)
    vals = onp.asarray(vals.astype(dtype))
    found, wanted = [olympus.tree.leaves(program(make, vals, rows, cols, n)) for make in (
        lambda v, r, c, n: sparse.BCOO((v, onp.stack([r, c], 1)), shape=(n, n)),
        lambda v, r, c, n: onp.zeros((n, n), v.dtype).at[r, c].add(v))]
    for x, y in zip(found, wanted, strict=True):
        check(x, y, 1e-4)


def test_gradients_of_a_sparse_solve_are_those_of_a_dense_one():
    # The normal equations of a chain of poses.
    n = 9
    mat = scipy.sparse.diags([-1.0, 3.0, -1.2], [-1, 0, 1], (n, n)).tocsr().astype("f")
    rows, b = np.repeat(range(n), np.diff(mat.indptr)), np.cos(np.arange(n, dtype="f"))

    def by(solve):
        return olympus.value_and_grad(lambda vals, b: (solve(vals, b) ** 3).sum(), (0, 1))

    found = by(lambda vals, b: linalg.spsolve(vals, mat.indices, mat.indptr, b))(mat.data, b)
    wanted = by(lambda vals, b: onp.linalg.solve(
        onp.zeros((n, n)).at[rows, mat.indices].set(vals), b))(mat.data, b)
    for x, y in zip(*map(olympus.tree.leaves, (found, wanted)), strict=True):
        check(x, y, 1e-4)


def test_rules_of_users():
    transform.sparse_rules_bcoo[lax.erf_p] = lambda env, x: [
        x._replace(data_ref=env._push(lax.erf(env.data(x))))]
    try:
        check(sparse.sparsify(lax.erf)(sparse.BCOO.fromdense(M)), lax.erf(onp.asarray(M)))
    finally:
        del transform.sparse_rules_bcoo[lax.erf_p]


# Each mistake: the call, the class of the error, and words of its message.
MISTAKES = {
    "indices of floats": (lambda: sparse.BCOO((V, onp.ones((6, 1))), shape=(6,)), TypeError,
                          "indices of an integer dtype are required"),
    "too few sizes": (lambda: sparse.BCOO((V, onp.zeros((6, 2), int)), shape=(6,)), ValueError,
                      "2 sparse axes need a shape of 2 sizes"),
    "data of another count": (lambda: sparse.BCOO((V, onp.zeros((5, 1), int)), shape=(6,)),
                              ValueError, "Invalid data.shape"),
    "pointers of another count": (lambda: sparse.BCSR((V, onp.zeros(6, int), onp.zeros(3, int)),
                                                      shape=(6, 6)), ValueError,
                                  "indptr shape must match the matrix shape plus 1"),
    "product": (lambda: sparse.BCOO.fromdense(M) @ W, TypeError, "contracting axes"),
    "traced count": (lambda: olympus.jit(sparse.BCOO.fromdense)(M),
                     olympus.errors.ConcretizationTypeError, "nse, the number of stored elements"),
    "dense result": (lambda: onp.exp(1.) and sparse.sparsify(onp.cos)(sparse.BCOO.fromdense(M)),
                     NotImplementedError, "would result in dense output"),
    "no rule": (lambda: sparse.sparsify(onp.sort)(sparse.BCOO.fromdense(M)), NotImplementedError,
                "sparse rule for sort is not implemented"),
    "mixed axes": (lambda: sparse.BCOO.fromdense(M, n_batch=1).T, NotImplementedError,
                   "cannot permute batch axes with non-batch axes"),
    "inefficient": (lambda: sparse.BCOO.fromdense(M).update_layout(n_batch=1),
                    sparse.SparseEfficiencyError, "inefficient storage"),
    "shape to solve": (lambda: linalg.spsolve(V, onp.zeros(6, int), onp.zeros(3, int), V),
                       ValueError, "one pointer more than b"),
    "search too wide": (lambda: linalg.lobpcg_standard(onp.eye(4), onp.ones((4, 1))), ValueError,
                        "search dim \\* 5 < matrix dim"),
    "one part": (lambda: sparse.BCOO((V,), shape=(6,)), TypeError,
                 r"BCOO: 1 parts given; a tuple of 2 arrays, \(data, indices\)"),
    "no tuple": (lambda: sparse.CSR(V, shape=(6, 6)), TypeError, r"3 arrays, \(data, indices, i"),
    "half an element": (lambda: sparse.BCOO.fromdense(M, nse=2.5), TypeError,
                        "bcoo_fromdense: nse: 2.5 of type float given; an int is required"),
    "less than none": (lambda: sparse.BCOO.fromdense(M, nse=-1), ValueError, "nse=-1 given"),
    "axis of a name": (lambda: sparse.bcoo_reduce_sum(sparse.BCOO.fromdense(M), axes=["i"]),
                       TypeError, "bcoo_reduce_sum: 'i' of type str given"),
    "no pairs": (lambda: sparse.bcoo_dot_general(sparse.BCOO.fromdense(M), V, dimension_numbers=1),
                 TypeError, "two pairs of axes"),
    "NumPy's array": (lambda: np.asarray(sparse.BCOO.fromdense(M)), TypeError, r"call todense\(\)"),
    "no function": (lambda: sparse.sparsify(3), TypeError, "sparsify: Expected a callable"),
    "not of SciPy": (lambda: sparse.BCOO.from_scipy_sparse(M), TypeError, "scipy.sparse"),
    "lacking": (lambda: sparse.CSR.fromdense(M) * 2, NotImplementedError, "to_bcoo"),
}


@pytest.mark.parametrize("row", MISTAKES)
def test_mistakes(row):
    run, kind, words = MISTAKES[row]
    with pytest.raises(kind, match=words):
        run()


MAT = sparse.BCOO.fromdense(M)


@pytest.mark.parametrize("run", [
    lambda: sparse.BCOO((V, onp.zeros((2, 1), int)), shape=(6,)),
    lambda: sparse.CSR((V, onp.zeros(2, int), onp.zeros(7, int)), shape=(6, 6)),
    lambda: sparse.COO((V, onp.zeros(6, int), onp.zeros(2, int)), shape=(6, 6)),
    lambda: MAT @ onp.ones(99), lambda: onp.ones(99) @ MAT, lambda: MAT + onp.ones((9, 9)),
    lambda: MAT.transpose((0, 0)), lambda: MAT.update_layout(n_batch=1),
    lambda: sparse.CSR.fromdense(M) @ onp.ones(99), lambda: sparse.bcoo_reduce_sum(MAT, axes=(9,)),
    lambda: linalg.spsolve(V, V, V, V)])
def test_errors_arrive_at_the_users_line(run):
    with pytest.raises(Exception) as caught:
        run()
    assert caught.traceback[-1].frame.code.path == caught.traceback[0].frame.code.path


def test_inefficient_layouts_warn_or_are_made():
    mat = sparse.BCOO.fromdense(M)
    with pytest.warns(sparse.SparseEfficiencyWarning, match="inefficient"):
        mat.update_layout(n_dense=1, on_inefficient="warn")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check(mat.update_layout(n_dense=1, on_inefficient=None), M)


def test_advection_diffusion():
    """u' = D u'' - c u' on a ring, 200 implicit steps, beside SciPy's solver of the same matrix."""
    n, dt = 64, .01
    ring = scipy.sparse.eye_array(n, format="csr")[np.roll(np.arange(n), -1)]
    operator = .05 * (ring + ring.T - 2 * scipy.sparse.eye_array(n)) * n / 4 - (ring - ring.T) * 2
    A = (scipy.sparse.eye_array(n) - dt * operator).tocsr().astype(np.float32)
    mat = sparse.BCOO.from_scipy_sparse(A)
    u = np.exp(-np.linspace(-3, 3, n) ** 2).astype(np.float32)

    @olympus.jit
    def run(mat, u):
        step = lambda u, _: (olympus.scipy.sparse.linalg.bicgstab(
            mat, u, tol=1e-7)[0], None)
        return lax.scan(step, u, None, length=50)[0]

    want, factors = u.astype(np.float64), scipy.sparse.linalg.splu(A.astype(np.float64).tocsc())
    for _ in range(50):
        want = factors.solve(want)
    check(run(mat, u), want, 1e-3)


def test_message_passing():
    """A layer of a graph network: mean of neighbours, weights, tanh; and its gradient."""
    a = holes(30, 30, density=.15) != 0
    mean = (a / np.maximum(a.sum(1, keepdims=True), 1)).astype(np.float32)
    graph, h = sparse.BCOO.fromdense(mean), RNG.normal(size=(30, 8)).astype(np.float32)
    w = RNG.normal(size=(8, 8)).astype(np.float32)
    layer = sparse.sparsify(lambda g, h, w: onp.tanh(g @ h @ w))
    check(olympus.jit(layer)(graph, h, w), np.tanh(mean @ h @ w), 1e-4)
    loss = lambda g, h, w: (layer(g, h, w) ** 2).sum()
    for i in (1, 2):
        check(olympus.grad(loss, i)(graph, h, w), olympus.grad(
            lambda g, h, w: (onp.tanh(g @ h @ w) ** 2).sum(), i)(onp.asarray(mean), h, w), 1e-3)


def test_trees_cut_and_join_batches():
    whole = holes(4, 5, 6)
    for made in (sparse.BCOO, sparse.BCSR):
        mat = made.fromdense(whole, n_batch=1)
        for cut in (slice(0, 1), slice(1, 3), 2):
            check(olympus.tree.map(lambda x: x[cut], mat), whole[cut])
        check(olympus.tree.map(lambda x: onp.concatenate([x, x]), mat), np.concatenate([whole] * 2))
    shared = sparse.BCOO((mat.data[:1], mat.to_bcoo().indices[:1]), shape=whole.shape)
    for same in (olympus.tree.map(lambda x: x, shared), olympus.jit(lambda m: m)(shared)):
        assert same.shape == whole.shape
        check(same, np.stack([whole[0]] * 4))
    tree = olympus.tree.structure(olympus.tree.map(lambda x: None, mat))
    assert "shape=(4, 5, 6)" in repr(tree)


def test_products_on_several_devices():
    mesh = olympus.make_mesh((1,), ("i",))
    spec = olympus.sharding.PartitionSpec
    mat = sparse.BCOO.fromdense(holes(4, 5, 6), n_batch=1)
    run = olympus.shard_map(lambda m: m @ V, mesh=mesh, in_specs=spec("i"), out_specs=spec("i"))
    check(run(mat), np.asarray(mat.todense()) @ V)


SYMBOLIC = {
    "product": lambda mat, x: mat @ x[:, 0],
    "several columns": lambda mat, x: mat.sort_indices() @ x,
    "duplicates": lambda mat, x: mat.sum_duplicates(nse=30).todense(),
    "sums": lambda mat, x: mat.sum(0).todense(),
    "two sparse": lambda mat, x: (mat @ mat.T).todense(),
}


@pytest.mark.parametrize("row", SYMBOLIC)
def test_exports_of_any_number_of_elements_and_columns(row):
    fun = SYMBOLIC[row]
    k, n = olympus.export.symbolic_shape("k, n")
    struct = olympus.ShapeDtypeStruct
    exported = olympus.export.export(olympus.jit(
        lambda data, indices, x: fun(sparse.BCOO((data, indices), shape=M.shape), x)))(
        struct((k,), "float32"), struct((k, 2), "int32"), struct((6, n), "float32"))
    mat = sparse.BCOO.fromdense(M)
    twice = np.concatenate([mat.data, mat.data]), np.concatenate([mat.indices, mat.indices])
    for (data, indices), factor in (((mat.data, mat.indices), 1), (twice, 2)):
        whole = factor * M
        want = {"product": whole @ V, "several columns": whole @ X, "duplicates": whole,
                "sums": whole.sum(0), "two sparse": whole @ whole.T}[row]
        check(exported.call(data, indices, X), want)


def test_parts_of_the_trace_of_sparsify():
    mat = sparse.BCOO.fromdense(M)
    product, negative = transform.sparsify_fun(lambda x, v: [x @ v, -x], [mat, onp.asarray(V)])
    check(product, M @ V)
    check(negative, -M)
    assert isinstance(negative, sparse.BCOO)
    env = transform.SparsifyEnv()
    value = transform.arrays_to_spvalues(env, mat)
    run, values = transform.sparsify_subtrace(lambda x: [2 * x], object(), env, [value])
    bufs = run(3 * mat.data, mat.indices)
    check(transform.spvalues_to_arrays(transform.SparsifyEnv(bufs), values())[0], 6 * M)


@pytest.mark.parametrize("n_batch, n_dense", [(0, 0), (1, 0), (1, 1), (2, 1)])
def test_no_function_promotes_ranks_or_dtypes(n_batch, n_dense):
    m = holes(2, 3, 4, 5)

    def run(mat):
        return [
            mat.todense(), mat.sum_duplicates(nse=9), mat.sort_indices(), mat[1:, ::2, 1:3, :4],
            sparse.bcoo_dynamic_slice(mat, (1, 1, 2, 0), (1, 2, 2, 3)), -mat, mat * 2.,
            sparse.bcoo_rev(mat, (0, 1, 2)), sparse.bcoo_multiply_sparse(mat, mat),
            sparse.bcoo_multiply_dense(mat, onp.asarray(m)), sparse.bcoo_extract(mat, m),
            sparse.bcoo_reduce_sum(mat, axes=(0, 2)), sparse.bcoo.bcoo_eliminate_zeros(mat, nse=9),
            sparse.bcoo_concatenate([mat, mat], dimension=2),
            mat.update_layout(n_batch=1, n_dense=1, on_inefficient=None),
            sparse.bcoo_squeeze(mat[:, :, 1:2], dimensions=(2,)),
            sparse.bcoo_dot_general(mat, m, dimension_numbers=(((2,), (2,)), ((), ()))),
        ]

    mat = sparse.BCOO.fromdense(m, n_batch=n_batch, n_dense=n_dense, nse=60)
    with olympus.numpy_rank_promotion("raise"), olympus.numpy_dtype_promotion("strict"):
        olympus.eval_shape(run, mat)
        a, b = sparse.BCOO.fromdense(M, nse=20), sparse.BCSR.fromdense(M, nse=20)
        olympus.eval_shape(lambda a, b, v: [a @ a.T, a @ v, b @ v, b.sum_duplicates(nse=9),
                                            sparse.todense(b)], a, b, V)
        olympus.eval_shape(lambda x: linalg.lobpcg_standard(onp.eye(20), x, m=5),
                           onp.ones((20, 3)))
