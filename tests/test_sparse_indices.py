"""Indices of sparse arrays: padding, promises, dtypes, and what `enable_checks` refuses."""

import numpy as np
import pytest
import scipy.sparse

import olympus
import olympus.numpy as onp
from olympus.experimental import sparse

RNG = np.random.default_rng(0)
M = (RNG.normal(size=(5, 6)) * (RNG.random((5, 6)) < .4)).astype(np.float32)
X = RNG.normal(size=(6, 3)).astype(np.float32)


def check(got, want):
    got = np.asarray(got.todense() if isinstance(got, sparse.OLYMPUSSparse) else got)
    assert got.shape == np.shape(want)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.fixture(name="unchecked")
def unchecked_indices():
    """Under the option `enable_checks`, too, indices of a test may be negative or too large."""
    with olympus.enable_checks(False):
        yield


@pytest.mark.parametrize("indices, promise, words", [
    ([[0], [-2]], {}, "indices of 0 or more are required"),
    ([[3], [1]], {"indices_sorted": True}, "indices in lexicographic order are required"),
    ([[2], [2]], {"unique_indices": True}, "an index twice"),
    ([[5], [1]], {}, r"index 5 at indices\[0, 0\] given.*at most 4 for axis 0"),
])
def test_checks_of_indices(indices, promise, words, unchecked):
    make = lambda: sparse.BCOO((onp.ones(2), onp.array(indices)), shape=(4,), **promise)
    make()
    with olympus.enable_checks(True), pytest.raises(ValueError, match=words):
        make()


@pytest.mark.parametrize("kind, parts, words", [
    ("BCSR", ([0, 1], [0, 2, 1]), "pointers that ascend"),
    ("BCSR", ([0, 4], [0, 1, 2]), r"index 4 at indices\[1, 1\] given"),
    ("CSC", ([0, 3], [0, 1, 2, 2]), r"CSC: index 3 at indices\[1, 1\] given"),
    ("COO", ([0, 1], [-1, 0]), r"COO: index -1 at indices\[0, 1\] given"),
])
def test_checks_of_rows_and_pointers(kind, parts, words, unchecked):
    args = (onp.ones(2), *map(onp.array, parts))
    make = lambda: getattr(sparse, kind)(args, shape=(2, 3))
    make()
    with olympus.enable_checks(True), pytest.raises(ValueError, match=words):
        make()


def test_elements_behind_the_last_pointer_are_padding_to_checks():
    parts = onp.ones(3), onp.array([2, 0, 9]), onp.array([0, 2, 2])
    with olympus.enable_checks(True):
        assert sparse.BCSR(parts, shape=(2, 3)).todense().tolist() == [[1, 0, 1], [0, 0, 0]]
        with pytest.raises(ValueError, match=r"index \[0 0\] at 1 after \[0 2\]"):
            sparse.BCSR(parts, shape=(2, 3), indices_sorted=True)


def test_checks_of_arrays_without_indices():
    # Arrays without elements or sparse axes were "cannot reshape array of size 0".
    def make(indices, shape):
        sparse.BCOO((onp.ones(indices[:-1]), onp.zeros(indices, int)), shape=shape,
                    indices_sorted=True, unique_indices=True)
    with olympus.enable_checks(True):
        for indices, shape in (((0, 2), (3, 4)), ((2, 0, 1), (2, 5)), ((0, 3, 1), (0, 5)),
                               ((1, 0), ()), ((2, 0), ()), ((3, 2, 0), (3,))):
            make(indices, shape)
        sparse.BCSR.fromdense(onp.zeros((0, 3, 4)), n_batch=1)


def test_checks_of_indices_whose_places_are_more_than_int64_counts():
    far = 2**31 - 2
    indices = onp.array([[0, far, far], [1, 0, 0], [far, far, 5]])
    with olympus.enable_checks(True):
        sparse.BCOO((onp.ones(3), indices), shape=(far + 1,) * 3, indices_sorted=True,
                    unique_indices=True)
        with pytest.raises(ValueError, match="after"):
            sparse.BCOO((onp.ones(3), indices[::-1]), shape=(far + 1,) * 3, indices_sorted=True)


def test_rows_in_front_are_padding_in_every_format(unchecked):
    # A row of -1, sorted first, took the place of the first element of its matrix by rows.
    index = onp.array([[-1, 0], [0, 1], [1, 2], [0, 9], [1, 0]])
    mat = sparse.BCOO((onp.array([9., 1, 2, 8, 3]), index), shape=(2, 3))
    want = np.array([[0, 1, 0], [3, 0, 2.]])
    assert mat.sort_indices().indices.tolist() == [[0, 1], [1, 0], [1, 2], [2, 3], [2, 3]]
    for m in (sparse.BCSR.from_bcoo(mat), sparse.BCSR.from_bcoo(mat.sort_indices()),
              sparse.BCSR.from_bcoo(mat).to_bcoo()):
        check(m, want)
        check(m @ X[:3], want @ X[:3])


def test_elements_without_sparse_axes_are_not_unique():
    # An element was read as often as the array has room.
    mat = sparse.BCOO.fromdense(onp.array([1., 2.]), n_batch=1, nse=3)
    check(sparse.bcoo_extract(mat, mat.todense()), [1, 2])
    check(sparse.bcoo_extract(mat.sum_duplicates(nse=4), mat.todense()), [1, 2])


def test_indices_of_two_dtypes():
    # They were "one dtype is required"; the narrow one's padding must not become an element.
    for kinds in (("int8", "int32"), ("uint32", "uint8"), ("int8", "uint8")):
        a, b = (sparse.BCOO.fromdense(M, nse=25, index_dtype=k) for k in kinds)
        check(a + b, 2 * M)
        check(a @ b.T, M @ M.T)
        check(a * b, M * M)
        many = 2 if kinds == ("int8", "uint8") else 30      # 30 * 6 is more than int8 counts
        for axis in (0, 1):
            check(sparse.bcoo_concatenate([a, b] * many, dimension=axis),
                  np.concatenate([M, M] * many, axis))
        batches = [sparse.BCOO.fromdense(M, n_batch=1, index_dtype=k) for k in kinds]
        check(sparse.bcoo_concatenate(batches, dimension=0), np.concatenate([M, M]))


def test_layouts_and_shapes_of_empty_arrays():
    rows = [((4, 2), 2, 0, 0), ((2, 3, 2), 1, 1, 0), ((2, 1, 0), 1, 1, 4), ((0, 3), 1, 0, 2),
            ((3, 0), 1, 0, 0), ((2, 0, 3), 1, 0, 0)]
    for shape, n_batch, n_dense, nse in rows:
        mat = sparse.BCOO.fromdense(onp.zeros(shape), nse=nse, n_batch=n_batch, n_dense=n_dense)
        for b in range(len(shape) + 1):
            for d in range(len(shape) - b + 1):
                check(mat.update_layout(n_batch=b, n_dense=d, on_inefficient=None), np.zeros(shape))
        front = shape[:n_batch]
        for new in (shape, (1, *shape), (*front, 1, *shape[n_batch:])):
            check(sparse.bcoo_reshape(mat, new_sizes=new), np.zeros(new))


def test_reshapes_of_more_places_than_the_indices_count():
    shape, new = (70000, 70000), (35000, 140000)
    mat = sparse.BCOO((onp.ones(2), onp.array([[69999, 69998], [3, 2]])), shape=shape)
    with pytest.raises(ValueError, match="4900000000 places; int32 counts to"):
        sparse.bcoo_reshape(mat, new_sizes=new)
    with olympus.enable_x64(True):
        moved = sparse.bcoo_reshape(mat, new_sizes=new).indices
    assert moved.tolist() == [[34999, 139998], [1, 70002]]
    small = sparse.BCOO((onp.ones(1), onp.array([[11, 11]], "int8")), shape=(12, 12))
    assert sparse.bcoo_reshape(small, new_sizes=(6, 24)).indices.tolist() == [[5, 23]]


def test_rows_count_beyond_the_dtype_of_columns():
    m = np.zeros((300, 4), np.float32)
    m[42, 0], m[298, 1] = 1, 2
    csr = scipy.sparse.csr_array(m)
    mat = sparse.BCSR((csr.data, csr.indices.astype(np.int8), csr.indptr), shape=m.shape)
    check(mat, m)
    check(mat.to_bcoo(), m)
    check(olympus.jit(lambda a: a @ X[:4, 0])(mat), m @ X[:4, 0])
    check(mat @ X[:4], m @ X[:4])


@pytest.mark.parametrize("make", [
    lambda m: sparse.BCOO.fromdense(m, index_dtype=np.int8),
    lambda m: sparse.BCSR.fromdense(m, index_dtype=np.int8),
    lambda m: sparse.BCOO.from_scipy_sparse(scipy.sparse.csr_array(m), index_dtype=np.int8),
    lambda m: sparse.empty(m.shape, index_dtype=np.int8),
    lambda m: sparse.BCOO((onp.ones(1), onp.zeros((1, 2), np.int8)), shape=m.shape)])
def test_indices_that_cannot_count_to_the_size_are_refused(make):
    with pytest.raises(ValueError, match="int8 counts to 127"):
        make(np.eye(128, 2, dtype=np.float32))
