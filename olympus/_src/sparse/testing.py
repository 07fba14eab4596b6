"""Tests of functions of sparse arrays: random arrays, layouts, and a test case.

Nothing here is imported by the package; `olympus.experimental.sparse.test_util` names it.
"""

from __future__ import annotations

import unittest
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, combinations
from typing import NamedTuple, Protocol, TypeVar

import numpy as np

from ..autodiff.jacobians import jacfwd, jacrev
from ..base.docstrings import complete_docstrings
from ..base.typing import Array, ArrayLike, DTypeLike, PyTree
from ..jit.jit import jit
from ..lax.shape import expand_dims
from ..lax.slicing import concatenate
from ..mapping.vmap import vmap
from ..numpy.creation import asarray
from ..types import dtypes
from ..types.shape import prod
from ..types.tree import tree_flatten, tree_leaves, tree_map
from .bcoo import BCOO
from .bcsr import BCSR
from .formats import OLYMPUSSparse, Shape
from .making import todense
from .transform import sparsify

T = TypeVar("T")
#: the error of products in each dtype
MATMUL_TOL = {np.float32: 1e-5, np.float64: 1e-10, np.complex64: 1e-5, np.complex128: 1e-10}
_TOLERANCE = {"bfloat16": 1e-2, "float16": 1e-3, "float32": 1e-6, "complex64": 1e-6}

Maker = Callable[[], Sequence[PyTree]]
Fun = Callable[..., PyTree]


class Draw(Protocol):
    """A function of a shape and a dtype that returns random numbers."""

    def __call__(self, shape: Shape, dtype: DTypeLike) -> np.ndarray: ...


class BatchedDotGeneralProperties(NamedTuple):
    """The operands of a product, and how they are stored.

    >>> from olympus.experimental.sparse import test_util
    >>> test_util.BatchedDotGeneralProperties((2, 3), (3,), 0, 0, (((1,), (0,)), ((), ()))).n_batch
    0
    """

    lhs_shape: Shape
    rhs_shape: Shape
    n_batch: int
    n_dense: int
    dimension_numbers: object


class SparseLayout(NamedTuple):
    """The numbers of axes of a sparse array.

    >>> from olympus.experimental.sparse import test_util
    >>> test_util.SparseLayout(n_batch=1, n_dense=0, n_sparse=2).n_sparse
    2
    """

    n_batch: int
    n_dense: int
    n_sparse: int


def is_sparse(x: object) -> bool:
    """Whether something is a sparse array.

    Args: x: anything.

    >>> from olympus.experimental.sparse import eye, test_util
    >>> test_util.is_sparse(eye(2)), test_util.is_sparse(eye(2).todense())
    (True, False)
    """
    return isinstance(x, OLYMPUSSparse)


def iter_subsets(s: Sequence[T]) -> Iterable[tuple[T, ...]]:
    """All subsets of a sequence, by size.

    Args: s: the sequence.

    >>> from olympus.experimental.sparse import test_util
    >>> list(test_util.iter_subsets("ab"))
    [(), ('a',), ('b',), ('a', 'b')]
    """
    return chain.from_iterable(combinations(s, n) for n in range(len(s) + 1))


def iter_sparse_layouts(shape: Sequence[int], min_n_batch: int = 0) -> Iterator[SparseLayout]:
    """All layouts of a BCOO of a shape.

    >>> from olympus.experimental.sparse import test_util
    >>> [tuple(x) for x in test_util.iter_sparse_layouts((5,))]
    [(0, 0, 1), (0, 1, 0), (1, 0, 0)]
    """
    n = len(shape)
    for n_batch in range(min_n_batch, n + 1):
        for n_dense in range(n + 1 - n_batch):
            yield SparseLayout(n_batch, n_dense, n - n_batch - n_dense)


def iter_bcsr_layouts(shape: Sequence[int], min_n_batch: int = 0) -> Iterator[SparseLayout]:
    """All layouts of a BCSR of a shape, which have two sparse axes.

    >>> from olympus.experimental.sparse import test_util
    >>> [tuple(x) for x in test_util.iter_bcsr_layouts((5, 6, 7))]
    [(0, 1, 2), (1, 0, 2)]
    """
    return (x for x in iter_sparse_layouts(shape, min_n_batch) if x.n_sparse == 2)


def rand_default(rng: np.random.RandomState) -> Draw:
    """Normal numbers times 3, cut to integers or made booleans where the dtype is one.

    >>> import numpy as np
    >>> from olympus.experimental.sparse import test_util
    >>> test_util.rand_default(np.random.RandomState(0))((3,), np.int32)
    array([5, 1, 2], dtype=int32)
    """
    def draw(shape: Shape, dtype: DTypeLike) -> np.ndarray:
        dtype = dtypes.as_dtype(dtype)
        x = 3 * rng.randn(*shape)
        if dtype.kind == "b":
            return np.asarray(x > 0)
        return np.asarray(x + 3j * rng.randn(*shape) if dtype.kind == "c" else x).astype(dtype)
    return draw


def rand_sparse(rng: np.random.RandomState, nse: float = 0.5,
                post: Callable[[np.ndarray], object] = lambda x: x,
                rand_method: Callable[[np.random.RandomState], Draw] = rand_default
                ) -> Callable[..., object]:
    """A function of a shape and a dtype that returns dense arrays with zeros.

    Args:
      nse: how many elements are not 0; below 1, which part.
      post: is called with each array.

    >>> import numpy as np
    >>> from olympus.experimental.sparse import test_util
    >>> x = test_util.rand_sparse(np.random.RandomState(0), .25)((4, 4), "float32")
    >>> (x != 0).sum().tolist()
    4
    """
    def make(shape: Shape, dtype: DTypeLike, nse: float = nse) -> object:
        size = prod(shape)
        count = min(size, int(nse * size if 0 <= nse < 1 else nse))
        x = rand_method(rng)(shape, dtype)
        x.flat[rng.choice(size, size - count, replace=False)] = 0
        return post(x)

    return make


def _parts(rng: np.random.RandomState, rand_method: Callable[[np.random.RandomState], Draw],
           nse: float, n_batch: int, n_dense: int, by_rows: bool, shape: Shape, dtype: DTypeLike
           ) -> BCOO | BCSR:
    n_sparse = len(shape) - n_batch - n_dense
    if min(n_sparse, n_batch, n_dense) < 0 or (by_rows and n_sparse != 2):
        raise ValueError(f"rand_{'bcsr' if by_rows else 'bcoo'}: shape {shape}, n_batch={n_batch}, "
                         f"n_dense={n_dense} given; no more axes than it has are required, and two "
                         "sparse ones for a BCSR.")
    batch, sizes = shape[:n_batch], shape[n_batch:n_batch + n_sparse]
    count = int(np.ceil(nse * prod(sizes))) if 0 <= nse < 1 else int(nse)
    data = asarray(rand_method(rng)((*batch, count, *shape[n_batch + n_sparse:]), dtype))
    if not by_rows:
        indices = rng.randint(0, sizes, size=(*batch, count, n_sparse), dtype=np.int32)
        return BCOO((data, indices), shape=shape)
    indices = rng.randint(0, sizes[1], size=(*batch, count), dtype=np.int32)
    indptr = np.sort(rng.randint(0, count + 1, size=(*batch, sizes[0] + 1), dtype=np.int32), -1)
    indptr[..., 0] = 0
    return BCSR((data, asarray(indices), asarray(indptr)), shape=shape)


def rand_bcoo(rng: np.random.RandomState,
              rand_method: Callable[[np.random.RandomState], Draw] = rand_default,
              nse: float = 0.5, n_batch: int = 0, n_dense: int = 0) -> Callable[..., BCOO]:
    """A function of a shape and a dtype that returns random BCOOs, with duplicates.

    >>> import numpy as np
    >>> from olympus.experimental.sparse import test_util
    >>> test_util.rand_bcoo(np.random.RandomState(0), n_batch=1)((2, 3, 4), "float32")
    BCOO(float32[2, 3, 4], nse=6, n_batch=1)
    """
    return partial(_parts, rng, rand_method, nse, n_batch, n_dense, False)  # pyright: ignore


def rand_bcsr(rng: np.random.RandomState,
              rand_method: Callable[[np.random.RandomState], Draw] = rand_default,
              nse: float = 0.5, n_batch: int = 0, n_dense: int = 0) -> Callable[..., BCSR]:
    """A function of a shape and a dtype that returns random BCSRs, with duplicates.

    >>> import numpy as np
    >>> from olympus.experimental.sparse import test_util
    >>> test_util.rand_bcsr(np.random.RandomState(0))((3, 4), "float32")
    BCSR(float32[3, 4], nse=6)
    """
    return partial(_parts, rng, rand_method, nse, n_batch, n_dense, True)   # pyright: ignore


class SparseTestCase(unittest.TestCase):
    """A test case whose checks compare functions of sparse arrays with those of dense ones.

    >>> import numpy as np
    >>> from olympus.experimental.sparse import test_util
    >>> class Test(test_util.SparseTestCase):
    ...     def test_product(self):
    ...         make = lambda: [test_util.rand_bcoo(self.rng())((3, 4), "float32"), np.ones(4)]
    ...         self._CheckAgainstDense(lambda m, v: m @ v, lambda m, v: m @ v, make)
    >>> Test("test_product").debug()
    """

    def setUp(self) -> None:
        super().setUp()
        self._rng = np.random.RandomState(sum(map(ord, self._testMethodName)))

    def rng(self) -> np.random.RandomState:
        """The generator of this test."""
        return self._rng

    def assertAllClose(self, x: PyTree, y: PyTree, *, check_dtypes: bool = True,
                       atol: float | None = None, rtol: float | None = None,
                       canonicalize_dtypes: bool = True, err_msg: str = "") -> None:
        """Check that pytrees have equal structures, shapes and dtypes, and almost equal numbers.

        The error of None is that of the dtype. `canonicalize_dtypes`: whether a dtype of 64 bits is
        the one of 32 where x64 is off.
        """
        (xs, x_tree), (ys, y_tree) = tree_flatten(x), tree_flatten(y)
        self.assertEqual(x_tree, y_tree, err_msg)
        for a, b in zip(xs, ys, strict=True):
            a, b = (asarray(v) if canonicalize_dtypes else v for v in (a, b))
            if check_dtypes:
                self.assertEqual(a.dtype, b.dtype, err_msg)
            name = np.dtype(a.dtype).name
            bound = _TOLERANCE.get(name, 1e-12 if np.dtype(a.dtype).kind in "fc" else 0)
            wide = [np.asarray(v) if np.dtype(v.dtype).kind != "V" else
                    np.asarray(v).astype(np.float32) for v in (a, b)]
            np.testing.assert_allclose(*wide, atol=bound if atol is None else atol,
                                       rtol=bound if rtol is None else rtol, err_msg=err_msg)

    def assertArraysEqual(self, x: ArrayLike, y: ArrayLike, *, check_dtypes: bool = True,
                          err_msg: str = "") -> None:
        """Check that arrays have equal shapes, dtypes and numbers."""
        self.assertAllClose(x, y, check_dtypes=check_dtypes, atol=0, rtol=0, err_msg=err_msg)

    def assertSparseArraysEquivalent(self, x: PyTree, y: PyTree, *, check_dtypes: bool = True,
                                     atol: float | None = None, rtol: float | None = None,
                                     canonicalize_dtypes: bool = True, err_msg: str = "") -> None:
        """Check that sparse arrays are stored alike."""
        self.assertAllClose(x, y, check_dtypes=check_dtypes, atol=atol, rtol=rtol,
                            canonicalize_dtypes=canonicalize_dtypes, err_msg=err_msg)

    def _CheckAgainstDense(self, dense_op: Fun, sparse_op: Fun, args_maker: Maker,
                           check_jit: bool = True, check_dtypes: bool = True,
                           tol: float | None = None, atol: float | None = None,
                           rtol: float | None = None, canonicalize_dtypes: bool = True) -> None:
        """Check a function of sparse arrays, also under jit, by one of dense ones."""
        atol, rtol = tol if atol is None else atol, tol if rtol is None else rtol
        args = args_maker()
        expected, actual = dense_op(*_dense(args)), sparse_op(*args)
        self.assertAllClose(expected, _dense(actual), check_dtypes=check_dtypes, atol=atol,
                            rtol=rtol, canonicalize_dtypes=canonicalize_dtypes)
        if check_jit:
            self.assertSparseArraysEquivalent(actual, jit(sparse_op)(*args), atol=atol, rtol=rtol)

    def _CheckGradsSparse(self, dense_fun: Fun, sparse_fun: Fun, args_maker: Maker, *,
                          argnums: Sequence[int] | None = None,
                          modes: Sequence[str] = ("fwd", "rev"), atol: float | None = None,
                          rtol: float | None = None) -> None:
        """Check the Jacobians of a function in stored elements by those of one of dense arrays."""
        args = args_maker()
        leaves, tree = tree_flatten(args)
        starts = np.cumsum([0, *[len(tree_leaves(x)) for x in args]])[:-1].tolist()
        positions = starts if argnums is None else [starts[i] for i in argnums]

        def dense(*xs: Array) -> PyTree:
            return dense_fun(*_dense(tree.unflatten(xs)))

        def sparse(*xs: Array) -> PyTree:
            return _dense(sparse_fun(*tree.unflatten(xs)))

        for mode, jacobian in (("rev", jacrev), ("fwd", jacfwd)):
            if mode in modes:
                wanted, actual = (jacobian(f, argnums=positions)(*leaves) for f in (dense, sparse))
                self.assertAllClose(wanted, actual, atol=atol, rtol=rtol)

    def _random_bdims(self, *args: int) -> list[int]:
        """A number from 0 to each argument."""
        return [self.rng().randint(0, n + 1) for n in args]

    def _CheckBatchingSparse(self, dense_fun: Fun, sparse_fun: Fun, args_maker: Maker, *,
                             batch_size: int = 3, bdims: Sequence[int | None] | None = None,
                             check_jit: bool = False, check_dtypes: bool = True,
                             tol: float | None = None, atol: float | None = None,
                             rtol: float | None = None, canonicalize_dtypes: bool = True) -> None:
        """Check a mapped function of sparse arrays by the mapped one of dense arrays.

        `bdims`: the mapped axis of each argument; None draws them.
        """
        if bdims is None:
            bdims = self._random_bdims(*[x.n_batch if is_sparse(x) else x.ndim
                                         for x in args_maker()])

        def stacked(xs: Sequence[PyTree], axis: int) -> PyTree:
            wide = [sparsify(partial(expand_dims, dimensions=[axis]))(x) for x in xs]
            return sparsify(partial(concatenate, dimension=axis))(wide)

        def mapped_args() -> list[PyTree]:
            several = zip(*[args_maker() for _ in range(batch_size)], strict=True)
            return [xs[0] if axis is None else stacked(xs, axis)
                    for xs, axis in zip(several, bdims, strict=True)]

        self._CheckAgainstDense(
            vmap(dense_fun, tuple(bdims)), vmap(sparse_fun, tuple(bdims)), mapped_args,
            check_dtypes=check_dtypes, tol=tol, atol=atol, rtol=rtol, check_jit=check_jit,
            canonicalize_dtypes=canonicalize_dtypes)


def _dense(tree: PyTree) -> PyTree:
    return tree_map(todense, tree, is_leaf=is_sparse)


complete_docstrings(globals(), {
    "shape": "the shape.", "min_n_batch": "the least number of batch axes.",
    "rng": "a generator of NumPy.",
    "rand_method": "makes a function of a shape and a dtype of the generator.",
    "nse": "the number of stored elements of each batch; below 1, the part that they are.",
    "n_batch, n_dense": "the numbers of axes.",
}, returns="an iterator, or a function that makes arrays.")
