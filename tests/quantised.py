"""A quantised array as a type of users, with its operations: what several tests' programs use."""

from dataclasses import dataclass

import numpy as np

import olympus
import olympus.numpy as onp
from olympus.experimental import hiolympus as hi

X = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)


# int8 and a scale for each row; to derivatives a float array.
@dataclass(frozen=True)
class QArray:
    values: olympus.Array
    scale: olympus.Array

    def __radd__(self, other):
        return "radd"


@dataclass(frozen=True)
class Rows(hi.MappingSpec):
    """Mapped along the first axis of each part."""


@dataclass(frozen=True)
class QType(hi.HiType):
    shape: tuple
    rows = hi.aval_property(lambda q: olympus.typeof(q).shape[0])
    dequantised = hi.aval_method(lambda q, factor=1.: factor * dequantise(q))
    __radd__ = hi.aval_method(lambda q, x: x + dequantise(q))
    __matmul__ = hi.aval_method(lambda q, x: dequantise(q) @ x)

    def __str__(self):
        return f"q8[{','.join(map(str, self.shape))}]"

    def lo_ty(self):
        return [hi.ShapedArray(self.shape, "int8"), hi.ShapedArray(self.shape[:-1], "float32")]

    def lower_val(self, q):
        return [q.values, q.scale]

    def raise_val(self, values, scale):
        return QArray(values, scale)

    def to_tangent_aval(self):
        return hi.ShapedArray(self.shape, "float32")

    def inc_rank(self, size, spec):
        return QType((size, *self.shape))

    def dec_rank(self, size, spec):
        return QType(self.shape[1:])

    def leading_axis_spec(self):
        return Rows()

    def shard(self, mesh, manual_axes, check_vma, spec):
        return QType((self.shape[0] // mesh.shape[spec.axis], *self.shape[1:]))

    def unshard(self, mesh, check_vma, spec):
        return QType((self.shape[0] * mesh.shape[spec.axis], *self.shape[1:]))

    def nospec(self, mesh, check_vma, names):
        return CutRows(names[0])


@dataclass(frozen=True)
class CutRows(hi.HiPspec):
    axis: str

    def to_lo(self):
        return olympus.P(self.axis, None), olympus.P(self.axis)

    def to_tangent_spec(self):
        return olympus.P(self.axis, None)


hi.register_hitype(QArray, lambda q: QType(tuple(q.values.shape)))


def quantised(x):
    scale = onp.maximum(abs(x).max(-1), 1e-30) / 127
    return onp.round(x / scale[..., None]), scale


class Quantise(hi.HiPrim):
    def __init__(self, aval):
        self.in_avals, self.out_aval, self.params = (aval,), QType(aval.shape), {}
        super().__init__()

    def expand(self, x):
        values, scale = quantised(x)
        return QArray(values.astype(onp.int8), scale)

    def jvp(self, primals, tangents):
        return self(*primals), tangents[0]

    def batch(self, axis, args, dims):
        return quantise(*hi.bdims_at_front(axis, args, dims)), Rows()


class Dequantise(hi.HiPrim):
    def __init__(self, aval):
        self.in_avals, self.params = (aval,), {}
        self.out_aval = hi.ShapedArray(aval.shape, "float32")
        super().__init__()

    def expand(self, q):
        return q.values.astype(onp.float32) * q.scale[..., None]

    def jvp(self, primals, tangents):
        return self(*primals), tangents[0]

    def batch(self, axis, args, dims):
        assert dims == (Rows(),)
        return dequantise(*args), 0


def quantise(x):
    return Quantise(olympus.typeof(x))(x)


def dequantise(q):
    return Dequantise(olympus.typeof(q))(q)
