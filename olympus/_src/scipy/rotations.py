"""Rotations of space as unit quaternions, and the shortest way between them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..base.source import api_boundary
from ..base.typing import Array, ArrayLike, DTypeLike
from ..core.trace import typeof
from ..jit.fused import fused
from ..numpy.arithmetic import absolute
from ..numpy.conditions import clip
from ..numpy.creation import asarray, ones, zeros
from ..numpy.elementary import sqrt
from ..numpy.indexing import take_along_axis
from ..numpy.joining import concatenate, stack
from ..numpy.linalg.decompositions import eigh
from ..numpy.manipulation import broadcast_to
from ..numpy.promote import inexact, promote_dtypes
from ..numpy.reductions import argmax
from ..numpy.selection import where
from ..numpy.sorting import searchsorted
from ..numpy.statistics import diff
from ..numpy.trigonometry import arctan2, cos, sin
from ..random.continuous import normal
from ..types.shape import definitely_equal, less

_AXES = {"x": 0, "y": 1, "z": 2}


def _float_vectors(name: str, x: ArrayLike, size: int) -> Array:
    """Floats [size] or [n, size]."""
    x = inexact(asarray(x))
    if x.ndim not in (1, 2) or not definitely_equal(x.shape[-1], size):
        raise ValueError(f"Rotation.{name}: {typeof(x)} given; an array [{size}] or [n, {size}] is "
                         "required.")
    return x


@fused
def _times(p: Array, q: Array) -> Array:
    """Hamilton's product of quaternions (x, y, z, w)."""
    px, py, pz, pw = (p[..., i] for i in range(4))
    qx, qy, qz, qw = (q[..., i] for i in range(4))
    return stack([pw * qx + px * qw + py * qz - pz * qy,
                  pw * qy - px * qz + py * qw + pz * qx,
                  pw * qz + px * qy - py * qx + pz * qw,
                  pw * qw - px * qx - py * qy - pz * qz], -1)


@fused
def _normalized(q: Array) -> Array:
    return q / sqrt((q * q).sum(-1, keepdims=True))


@fused(static=("axes", "intrinsic", "degrees"))
def _of_angles(angles: Array, *, axes: tuple[int, ...], intrinsic: bool, degrees: bool) -> Any:
    """Quaternions of turns about axes, one after the other."""
    half = (angles * (math.pi / 180) if degrees else angles) / 2
    total = None
    for i, axis in enumerate(axes):
        turn = zeros((*half.shape[:-1], 4), half.dtype)
        turn = turn.at[..., axis].set(sin(half[..., i])).at[..., 3].set(cos(half[..., i]))
        total = (turn if total is None else
                 _times(total, turn) if intrinsic else _times(turn, total))
    return total


@fused
def _of_matrix(m: Array) -> Array:
    """Quaternions of matrices: of the four ways, the one through the largest component."""
    x, y, z = (m[..., i, i] for i in range(3))
    w = x + y + z
    off = {(i, j): m[..., i, j] for i in range(3) for j in range(3) if i != j}
    sums = [off[1, 0] + off[0, 1], off[2, 0] + off[0, 2], off[2, 1] + off[1, 2]]
    turns = [off[2, 1] - off[1, 2], off[0, 2] - off[2, 0], off[1, 0] - off[0, 1]]
    rows = stack([
        stack([1 + 2 * x - w, sums[0], sums[1], turns[0]], -1),
        stack([sums[0], 1 + 2 * y - w, sums[2], turns[1]], -1),
        stack([sums[1], sums[2], 1 + 2 * z - w, turns[2]], -1),
        stack([*turns, 1 + w], -1)], -2)
    largest = argmax(stack([x, y, z, w], -1), -1)
    return _normalized(take_along_axis(rows, largest[..., None, None], -2)[..., 0, :])


@fused
def _of_rotvec(v: Array) -> Array:
    size = (v * v).sum(-1, keepdims=True)
    small = size < 1e-4
    angle = sqrt(where(small, 1, size))
    part = where(small, 0.5 - size / 48 + size * size / 3840, sin(angle / 2) / angle)
    return concatenate([v * part, where(small, 1 - size / 8 + size * size / 384,
                                       cos(angle / 2))], -1)


@fused(static=("axes", "intrinsic"))
def _angles(quat: Array, *, axes: tuple[int, ...], intrinsic: bool) -> Array:
    """Angles about three axes whose turns make a rotation."""
    i, j, k = reversed(axes) if intrinsic else axes
    symmetric = i == k
    if symmetric:
        k = 3 - i - j
    sign = (i - j) * (j - k) * (k - i) / 2
    x, y, z, w = (quat[..., n] for n in (i, j, k, 3))
    a, b, c, d = (w, x, y, z * sign) if symmetric else (w - y, x + z * sign, y + w,
                                                         z * sign - x)
    middle = 2 * arctan2(sqrt(c * c + d * d), sqrt(a * a + b * b))
    up, down = arctan2(b, a), arctan2(d, c)
    tiny = 1e-7
    at_zero, at_half = absolute(middle) <= tiny, absolute(middle - math.pi) <= tiny
    first = where(at_zero, 2 * up, where(at_half, -2 * down, up - down))
    third = where(at_zero | at_half, 0, up + down)
    if intrinsic:       # the free angle is the other one then
        first, third = (where(at_zero | at_half, 0, first),
                        where(at_zero, 2 * up, where(at_half, 2 * down, third)))
    if not symmetric:
        third, middle = third * sign, middle - math.pi / 2
    angles = [third, middle, first] if intrinsic else [first, middle, third]
    turned = stack(angles, -1)
    return where(turned < -math.pi, turned + 2 * math.pi,
                 where(turned > math.pi, turned - 2 * math.pi, turned))


@fused
def _matrix(quat: Array) -> Array:
    x, y, z, w = (quat[..., n] for n in range(4))
    return stack([
        stack([x * x - y * y - z * z + w * w, 2 * (x * y - z * w), 2 * (x * z + y * w)], -1),
        stack([2 * (x * y + z * w), y * y - x * x - z * z + w * w, 2 * (y * z - x * w)], -1),
        stack([2 * (x * z - y * w), 2 * (y * z + x * w), z * z - x * x - y * y + w * w], -1),
    ], -2)


@fused
def _rotvec(q: Array) -> Array:
    v, w = q[..., :3], q[..., 3:]
    size = (v * v).sum(-1, keepdims=True)
    small = size < 1e-4
    length = sqrt(where(small, 1, size))
    # angle / sin(angle / 2), as a series where both vanish.
    part = where(small, 2 + size / 3 + 3 * size * size / 20, 2 * arctan2(length, w) / length)
    return v * part


@fused(static=("inverse",))
def _applied(m: Array, v: Array, *, inverse: bool) -> Array:
    """Products of matrices, or their transposes, and vectors."""
    v = v if v.ndim > 1 or m.ndim == 2 else v[None]
    return (m * (v[..., :, None] if inverse else v[..., None, :])).sum(-2 if inverse else -1)


@fused
def _canonical(q: Array) -> Array:
    """With w, or if that is zero the first of x, y, z that is not, positive."""
    x, y, z, w = (q[..., n:n + 1] for n in range(4))
    negative = (w < 0) | ((w == 0) & ((x < 0) | ((x == 0) & ((y < 0) | ((y == 0) & (z < 0))))))
    return where(negative, -q, q)


@fused
def _magnitude(q: Array) -> Array:
    size = (q[..., :3] ** 2).sum(-1)
    zero = size == 0
    return 2 * arctan2(where(zero, 0, sqrt(where(zero, 1, size))), absolute(q[..., 3]))


def _euler_axes(name: str, seq: str, fewest: int) -> tuple[list[int], bool]:
    """The axes of a sequence of letters, and whether each rotation turns the next one's axis."""
    intrinsic = seq.isupper()
    letters = seq.lower() if intrinsic or seq.islower() else ""
    if not fewest <= len(letters) <= 3 or set(letters) - set("xyz") or any(
            a == b for a, b in zip(letters, letters[1:], strict=False)):
        raise ValueError(f"Rotation.{name}: seq {seq!r} given; {fewest} to 3 letters x, y, z, all "
                         "small or all capital, no two alike in a row, are required.")
    return [_AXES[c] for c in letters], intrinsic


class Rotation(NamedTuple):
    """One rotation of space or an array of them, as scipy.spatial.transform's; a pytree.

    `quat` holds unit quaternions (x, y, z, w), [4] or [n, 4]. Make rotations by the `from_…`
    methods, which normalise; `p * q` is `q`, then `p`.

    >>> import olympus.numpy as onp
    >>> from olympus.scipy.spatial.transform import Rotation
    >>> turn = Rotation.from_euler("z", 90., degrees=True)
    >>> print(onp.round(turn.apply(onp.array([1., 0., 0.]))), onp.round(turn.as_rotvec(), 4))
    [0. 1. 0.] [0.     0.     1.5708]
    """

    quat: Array

    @classmethod
    @api_boundary
    def concatenate(cls, rotations: Sequence[Rotation]) -> Rotation:
        """All of several rotations, one after the other: [n, 4]."""
        return cls(concatenate([r.quat.reshape(-1, 4) for r in rotations]))

    @classmethod
    @api_boundary
    def from_euler(cls, seq: str, angles: ArrayLike, degrees: bool = False) -> Rotation:
        """Rotations about one to three axes in turn.

        Args:
          seq: the axes: small letters for those that stay, capitals for those that turn along.
          angles: in radians, for one axis a scalar or [n], else [len(seq)] or [n, len(seq)].
          degrees: whether they are in degrees.
        """
        axes, intrinsic = _euler_axes("from_euler", seq, 1)
        angles = inexact(asarray(angles))
        if len(axes) == 1 and angles.ndim < 2:
            angles = angles[..., None]
        angles = _float_vectors("from_euler", angles, len(axes))
        return cls(_of_angles(angles, axes=tuple(axes), intrinsic=intrinsic, degrees=degrees))

    @classmethod
    @api_boundary
    def from_matrix(cls, matrix: ArrayLike) -> Rotation:
        """Rotations of matrices [3, 3] or [n, 3, 3], orthogonal of determinant 1; not checked.

        Shepperd, "Quaternion from rotation matrix" (1978): no division by a small number.
        """
        m = inexact(asarray(matrix))
        if m.ndim not in (2, 3) or m.shape[-2:] != (3, 3):
            raise ValueError(f"Rotation.from_matrix: {typeof(m)} given; an array [3, 3] or "
                             "[n, 3, 3] is required.")
        return cls(_of_matrix(m))

    @classmethod
    @api_boundary
    def from_mrp(cls, mrp: ArrayLike) -> Rotation:
        """Rotations of modified Rodrigues parameters, [3] or [n, 3]: axis times tan(angle / 4)."""
        m = _float_vectors("from_mrp", mrp, 3)
        size = (m * m).sum(-1, keepdims=True)
        return cls(concatenate([2 * m, 1 - size], -1) / (1 + size))

    @classmethod
    @api_boundary
    def from_quat(cls, quat: ArrayLike) -> Rotation:
        """Rotations of quaternions (x, y, z, w), [4] or [n, 4], of any length but zero."""
        return cls(_normalized(_float_vectors("from_quat", quat, 4)))

    @classmethod
    @api_boundary
    def from_rotvec(cls, rotvec: ArrayLike, degrees: bool = False) -> Rotation:
        """Rotations of vectors [3] or [n, 3]: the axis times the angle."""
        v = _float_vectors("from_rotvec", rotvec, 3)
        return cls(_of_rotvec(v * (math.pi / 180) if degrees else v))

    @classmethod
    @api_boundary
    def identity(cls, num: int | None = None, dtype: DTypeLike = float) -> Rotation:
        """The rotation by nothing, or `num` of them."""
        one = asarray([0, 0, 0, 1], dtype)
        return cls(one if num is None else broadcast_to(one, (num, 4)))

    @classmethod
    @api_boundary
    def random(cls, random_key: ArrayLike, num: int | None = None) -> Rotation:
        """A rotation drawn evenly from all, or `num` of them, by a key."""
        return cls(_normalized(normal(random_key, (4,) if num is None else (num, 4))))

    @property
    def single(self) -> bool:
        """Whether it is one rotation and not an array of them."""
        return self.quat.ndim == 1

    def __getitem__(self, indexer: object) -> Rotation:
        """Some of an array of rotations."""
        if self.single:
            raise TypeError("Rotation: an index given to a single rotation; an array of rotations "
                            "is required.")
        return Rotation(self.quat[indexer])

    def __len__(self) -> int:
        """The number of rotations in an array of them."""
        if self.single:
            raise TypeError("Rotation: len of a single rotation asked for; an array of rotations "
                            "is required.")
        return self.quat.shape[0]

    def __mul__(self, other: Rotation) -> Rotation:
        """`other`, then this."""
        return Rotation(_times(*promote_dtypes("Rotation", self.quat, other.quat)))

    @api_boundary
    def apply(self, vectors: ArrayLike, inverse: bool = False) -> Array:
        """Vectors [3] or [n, 3] after the rotation, or before it."""
        v, m = (asarray(x) for x in promote_dtypes(
            "Rotation.apply", _float_vectors("apply", vectors, 3), self.as_matrix()))
        return _applied(m, v, inverse=inverse)

    @api_boundary
    def as_euler(self, seq: str, degrees: bool = False) -> Array:
        """Three angles whose rotations in turn are this one, [3] or [n, 3].

        Bernardes & Viollet, "Quaternion to Euler angles conversion" (2022). Where the second angle
        makes the first and third axis one, the third angle (capitals) or the first is zero.
        """
        axes, intrinsic = _euler_axes("as_euler", seq, 3)
        angles = _angles(self.quat, axes=tuple(axes), intrinsic=intrinsic)
        return angles * (180 / math.pi) if degrees else angles

    @api_boundary
    def as_matrix(self) -> Array:
        """Matrices [3, 3] or [n, 3, 3]."""
        return _matrix(self.quat)

    @api_boundary
    def as_mrp(self) -> Array:
        """Modified Rodrigues parameters, [3] or [n, 3], of angles up to pi."""
        q = self.as_quat(canonical=True)
        return q[..., :3] / (1 + q[..., 3:])

    @api_boundary
    def as_rotvec(self, degrees: bool = False) -> Array:
        """The axis times the angle, which is at most pi: [3] or [n, 3]."""
        q = self.as_quat(canonical=True)
        return _rotvec(q) * (180 / math.pi if degrees else 1)

    @api_boundary
    def as_quat(self, canonical: bool = False, scalar_first: bool = False) -> Array:
        """The quaternions: with `canonical` of the two the one whose w is not negative."""
        q = _canonical(self.quat) if canonical else self.quat
        return concatenate([q[..., 3:], q[..., :3]], -1) if scalar_first else q

    @api_boundary
    def inv(self) -> Rotation:
        """The rotations back."""
        return Rotation(concatenate([-self.quat[..., :3], self.quat[..., 3:]], -1))

    @api_boundary
    def magnitude(self) -> Array:
        """The angles, between 0 and pi."""
        return _magnitude(self.quat)

    @api_boundary
    def mean(self, weights: ArrayLike | None = None) -> Rotation:
        """The rotation nearest to all, in the mean square of chords, each with a weight.

        Markley et al., "Averaging quaternions" (2007).
        """
        q = self.quat.reshape(-1, 4)
        weights = ones(q.shape[:1], q.dtype) if weights is None else asarray(weights)
        if weights.shape != q.shape[:1]:
            raise ValueError(f"Rotation.mean: weights {typeof(weights)} given; one for each of the "
                             f"{q.shape[0]} rotations is required.")
        return Rotation(eigh(q.T @ (weights[:, None] * q))[1][:, -1])


class Slerp(NamedTuple):
    """Rotations between rotations at given times, at constant speed the shortest way; a pytree.

    Make one by `Slerp.init(times, rotations)`: [n] ascending times and n rotations, two or more.

    >>> import olympus.numpy as onp
    >>> from olympus.scipy.spatial.transform import Rotation, Slerp
    >>> way = Slerp.init(onp.array([0., 1.]), Rotation.from_euler("z", onp.array([0., 1.])))
    >>> print(f"{way(0.25).magnitude():.4f}")
    0.2500
    """

    times: Array
    timedelta: Array
    rotations: Rotation
    rotvecs: Array

    @classmethod
    @api_boundary
    def init(cls, times: ArrayLike, rotations: Rotation) -> Slerp:
        """The way through these rotations at these times."""
        times, count = inexact(asarray(times)), typeof(rotations.quat).shape[0]
        if rotations.single or (
                not definitely_equal(times.shape, (count,)) or less(count, 2)):
            raise ValueError(f"Slerp.init: times {typeof(times)} and quaternions "
                             f"{typeof(rotations.quat)} given; vectors of two or more, as many of "
                             "the one as of the other, are required.")
        start, end = Rotation(rotations.quat[:-1]), Rotation(rotations.quat[1:])
        return cls(times, diff(times), start, (start.inv() * end).as_rotvec())

    @api_boundary
    def __call__(self, times: ArrayLike) -> Rotation:
        """The rotations at times [] or [m]; beyond the ends the outer speed goes on."""
        times = asarray(times)
        i = clip(searchsorted(self.times, times, side="right") - 1, 0, self.timedelta.shape[0] - 1)
        part = (times - self.times[i]) / self.timedelta[i]
        return self.rotations[i] * Rotation.from_rotvec(self.rotvecs[i] * part[..., None])
