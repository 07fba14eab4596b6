"""NumPy arrays that are written into after a call: the call has the values from before.

A callback that waits keeps every program behind it from starting, so that each road shows whether
the values were read, or copied, before the call returned.
"""
# pyright: reportAttributeAccessIssue=false

import functools
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus import lax

RELEASED = threading.Event()
# XLA shares memory at multiples of 64, copies up to 100 KiB at once, and more in another thread.
SIZES = [(n, shift) for n in (7, 5_000, 40_000) for shift in (0, 16)]


def _wait(x: Any) -> Any:
    # XLA starts a program at once, in the thread that calls it, if all its operands are there.
    if threading.current_thread() is not threading.main_thread():
        RELEASED.wait(30)
    return np.asarray(x)


@functools.cache
def _slow() -> Callable[..., Any]:
    return olympus.jit(lambda x: lax.fori_loop(
        0, 40, lambda i, a: a @ a * 0.001, onp.full((400, 400), x))[0, 0])


@functools.cache
def _waiting() -> Callable[..., Any]:
    return olympus.jit(lambda x: olympus.pure_callback(_wait, x, x))


def late() -> Any:
    """The number 0, on the device once `RELEASED` is set."""
    return _waiting()(_slow()(onp.float32(0)))


def buffer(size: int, shift: int) -> Any:
    raw = np.zeros(size * 4 + 128, np.uint8)
    start = -raw.ctypes.data % 64 + shift
    return raw[start:start + size * 4].view(np.float32)


@functools.cache
def jitted(fun: Callable[..., Any], **options: Any) -> Any:
    return olympus.jit(fun, **options)


def double(x: Any, w: Any) -> Any:
    return x * 2 + w


def of_dict(d: dict[str, Any], w: Any) -> Any:
    return d["x"] * 2 + w


@functools.cache
def compiled(size: int) -> Callable[..., Any]:
    return jitted(double).lower(onp.zeros(size), onp.float32(0)).compile()


@functools.cache
def on_a_mesh() -> Callable[..., Any]:
    mesh = olympus.make_mesh((1,), ("i",))
    return olympus.jit(double, in_shardings=tuple(
        olympus.NamedSharding(mesh, spec) for spec in (olympus.P("i"), olympus.P())))


mapped = olympus.vmap(double, (0, None))
on_devices = olympus.pmap(double, in_axes=(0, None))
slope = olympus.grad(lambda x, w: (x * x + w * x).sum())
# Each computes 2 x + w of a NumPy array x and the number 0, which comes late.
ROADS: dict[str, Callable[[Any, Any], Any]] = {
    "jit": lambda x, w: jitted(double)(x, w),
    "jit of a keyword": lambda x, w: jitted(double)(w=w, x=x),
    "jit of a dict": lambda x, w: jitted(of_dict)({"x": x}, w),
    "jit on a mesh": lambda x, w: on_a_mesh()(x, w),
    "jit that may keep x": lambda x, w: jitted(double, donate_argnums=0)(x, w),
    "Compiled": lambda x, w: compiled(x.size)(x, w),
    "an operator": lambda x, w: w + x + x,
    "add": lambda x, w: onp.add(x, w) + onp.add(w, x),
    "where": lambda x, w: onp.where(w == 0, x, -x) * 2,
    "matmul": lambda x, w: onp.matmul(onp.full((1, 1), 2.) + w, x[None])[0],
    "concatenate": lambda x, w: onp.concatenate([w[None], x])[1:] * 2,
    "lax": lambda x, w: lax.add(lax.mul(x, np.float32(2)), lax.broadcast(w, x.shape)),
    "asarray": lambda x, w: onp.asarray(x) * 2 + w,
    "array": lambda x, w: onp.array(x) * 2 + w,
    "device_put": lambda x, w: olympus.device_put(x) * 2 + w,
    "at": lambda x, w: onp.full(x.shape, w).at[:].set(x) * 2,
    "vmap": lambda x, w: mapped(x, w),
    "grad": lambda x, w: slope(x, w),
    "pmap": lambda x, w: on_devices(x[None], w)[0],
    "make_array_from_callback": lambda x, w: olympus.make_array_from_callback(
        x.shape, olympus.sharding.SingleDeviceSharding(olympus.devices()[0]),
        lambda index: x[index]) * 2 + w,
}


class Other(np.ndarray):
    """A subclass that C++ takes for NumPy's array."""


@pytest.mark.parametrize("kind", [np.memmap, np.matrix, Other])
def test_subclasses_of_numpys_array_written_into_after_a_call(kind: type[np.ndarray]) -> None:
    _check(jitted(double), [buffer(*pair).reshape(1, -1).view(kind) for pair in SIZES])


@pytest.mark.parametrize("road", ROADS)
def test_a_numpy_array_written_into_after_a_call(road: str) -> None:
    _check(ROADS[road], [buffer(*pair) for pair in SIZES])


def _check(call: Callable[[Any, Any], Any], arrays: list[Any]) -> None:
    found, wanted = [], []
    for x in arrays:        # traced and compiled before, since the compiler uses the same threads
        call(x, onp.float32(0)).block_until_ready()
    RELEASED.set()
    late().block_until_ready()
    RELEASED.clear()
    try:
        w = late()
        for x in arrays:
            x[...] = np.arange(x.size)
            found.append(call(x, w))
            wanted.append(2 * np.array(x))
            x[...] = -1
    finally:
        RELEASED.set()
    for have, want in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(np.asarray(have), want)
