"""The operators and methods of BCOO and BCSR that go by NumPy's rules, installed on the classes.

Errors leave the methods of all formats without the package's frames, at the user's line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..base.source import bounded
from ..base.typing import ArrayLike
from ..core.trace import typeof
from ..numpy import arithmetic
from ..numpy.creation import asarray
from ..numpy.products import matmul
from .bcoo import BCOO, bcoo_dot_general
from .bcsr import BCSR, bcsr_dot_general
from .matrices import COO, CSC, CSR
from .transform import sparsify

Sparse = BCOO | BCSR
Operand = Sparse | ArrayLike


def _vectors(x: Operand) -> bool:
    """Whether it is a matrix or a vector without batch and dense axes."""
    if isinstance(x, (BCOO, BCSR)):
        return x.ndim <= 2 and not x.n_batch and not x.n_dense
    return 1 <= typeof(x).ndim <= 2


def _product(x: Operand, y: Operand) -> object:
    """x @ y; matrices and vectors need no staging."""
    x, y = [a if isinstance(a, (BCOO, BCSR)) else asarray(a) for a in (x, y)]
    if not isinstance(x, BCSR) and not isinstance(y, BCSR) and _vectors(x) and _vectors(y):
        return bcoo_dot_general(x, y, dimension_numbers=(((x.ndim - 1,), (0,)), ((), ())))
    if isinstance(x, BCSR) and not isinstance(y, (BCOO, BCSR)) and _vectors(x) and _vectors(y):
        return bcsr_dot_general(x, y, dimension_numbers=(((1,), (0,)), ((), ())))
    return sparsify(matmul)(x, y)


def _by(fun: Callable[..., object], swapped: bool = False) -> Callable[..., object]:
    staged = sparsify((lambda x, y: fun(y, x)) if swapped else fun)

    def method(self: Sparse, *others: Operand) -> object:
        return staged(self, *others)
    return method


def _power(self: Sparse, exponent: float) -> object:
    # The exponent stays a number: integers and roots keep zeros, other powers do not.
    return sparsify(lambda x: arithmetic.power(x, exponent))(self)


def _item(self: Sparse, index: object) -> object:
    out = sparsify(lambda x: x[index])(self)
    if isinstance(self, BCOO) and not isinstance(out, BCOO) and not out.size:
        return BCOO.fromdense(out)
    return out


def _items(self: Sparse) -> Iterator[object]:
    return (_item(self, i) for i in range(len(self)))


def _method(name: str) -> Callable[..., object]:
    def method(self: Sparse, *args: object, **kwargs: object) -> object:
        return sparsify(lambda x: getattr(x, name)(*args, **kwargs))(self)
    return method


_UNARY = {"abs": arithmetic.abs, "neg": arithmetic.negative, "pos": arithmetic.positive}
_BINARY = {"mul": arithmetic.multiply, "truediv": arithmetic.divide, "add": arithmetic.add,
           "sub": arithmetic.subtract}
_COMPARED = {"gt": arithmetic.greater, "ge": arithmetic.greater_equal, "lt": arithmetic.less,
             "le": arithmetic.less_equal, "eq": arithmetic.equal, "ne": arithmetic.not_equal}


def _install() -> None:
    methods: dict[str, object] = {name: _by(fun) for name, fun in {
        **_UNARY, **_BINARY, **_COMPARED}.items()}
    methods.update({f"r{name}": _by(fun, True) for name, fun in _BINARY.items()})
    methods.update({"matmul": _product, "rmatmul": lambda self, other: _product(other, self),
                    "pow": _power, "rpow": _by(arithmetic.power, True), "getitem": _item,
                    "iter": _items})
    methods = {name: bounded(method) for name, method in methods.items()}
    for name, method in methods.items():
        setattr(BCOO, f"__{name}__", method)
    for name in ("matmul", "rmatmul", "getitem", "neg", "pos", "abs"):
        setattr(BCSR, f"__{name}__", methods[name])
    for name in ("sum", "reshape", "astype"):
        setattr(BCOO, name, bounded(_method(name)))
    BCSR.astype = bounded(_method("astype"))     # pyright: ignore[reportAttributeAccessIssue]


def _bound(cls: type) -> None:
    """Let errors leave the class's own and inherited methods at the user's line."""
    for name in ("__init__", "__matmul__", "fromdense", "from_bcoo", "from_scipy_sparse", "todense",
                 "transpose", "update_layout", "sort_indices", "sum_duplicates", "to_bcoo"):
        for home in cls.__mro__[:-1]:
            method = vars(home).get(name)
            if isinstance(method, classmethod):
                setattr(home, name, classmethod(bounded(method.__func__)))
            elif method is not None:
                setattr(home, name, bounded(method))


_install()
for _cls in (BCOO, BCSR, COO, CSR, CSC):
    _bound(_cls)
