"""Calls of foreign functions: the handlers of examples/ffi, built by the system's C++ compiler."""

import ctypes
import functools
import shutil
import subprocess
import tempfile
from importlib import import_module
from pathlib import Path

import numpy as np

from ..cases import Anew, Group, Loop, Skipped
from ..inputs import normal

group = Group("ffi", "Foreign functions")
SOURCE = Path(__file__).parents[2] / "examples" / "ffi" / "rms_norm.cc"


@functools.cache
def library(headers):
    """The handlers, built with the headers of a system's jaxlib."""
    compiler = shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        raise Skipped("there is no C++ compiler")
    made = Path(tempfile.mkdtemp()) / "librms_norm.so"
    subprocess.run([compiler, "-std=c++17", "-O2", "-shared", "-fPIC", "-isystem", headers, SOURCE,
                    "-o", made], check=True)
    return ctypes.cdll.LoadLibrary(str(made))


def call(L, n):
    """(x: [n] to [n] normalised and its root mean square, x), by a handler of C++."""
    ffi, found, struct = L.ffi, library(L.ffi.include_dir()), L.ShapeDtypeStruct
    ffi.register_ffi_target("rms_norm", ffi.pycapsule(found.RmsNorm))
    x = L.array(normal(n))
    promised = (struct(x.shape, x.dtype), struct((), x.dtype))
    return ffi.ffi_call("rms_norm", promised, vmap_method="broadcast_all"), x


def hundred(f):
    """A function of a hundred calls, each of the last one's result."""
    def chain(x):
        for _ in range(100):
            x = f(x, eps=1e-5)[0]
        return x
    return chain


@group.case("in jit")
def _(L):
    f, x = call(L, 8)
    f = L.jit(functools.partial(f, eps=1e-5))
    return Loop(lambda: f(x), check=True)


@group.case("outside of jit")
def _(L):
    f, x = call(L, 8)
    return Loop(lambda: f(x, eps=1e-5), check=True)


@group.case("outside of jit, ffi_call made anew")
def _(L):
    _, x = call(L, 8)
    struct, make = L.ShapeDtypeStruct, L.ffi.ffi_call

    def run():
        return make("rms_norm", (struct(x.shape, x.dtype), struct((), x.dtype)))(x, eps=1e-5)
    return Loop(run, check=True)


@group.case("vmap, not compiled")
def _(L):
    f, x = call(L, 8)
    mapped, xs = L.vmap(functools.partial(f, eps=1e-5)), L.array(normal(16, 8))
    return Loop(lambda: mapped(xs), check=True)


@group.case("4·10⁶ numbers, in jit")
def _(L):
    f, x = call(L, 4_000_000)
    f = L.jit(functools.partial(f, eps=1e-5))
    return Loop(lambda: f(x), check=True)


@group.case("a hundred calls, traced")
def _(L):
    f, x = call(L, 8)
    return Anew(lambda: hundred(f), lambda fun: L.trace(fun, (x,)))


@group.case("a hundred calls, lowered")
def _(L):
    f, x = call(L, 8)
    return Anew(lambda: L.jit(hundred(f)).trace(x), lambda traced: traced.lower())


def doubled(L):
    """(x: [8] to [8] doubled by Python on its buffers, x)."""
    buffers, x = import_module(f"{L.name}.experimental.buffer_callback"), L.array(normal(8))

    def double(ctx, out, x):
        np.multiply(np.asarray(x), 2, out=np.asarray(out))
    return buffers.buffer_callback(double, L.ShapeDtypeStruct(x.shape, x.dtype)), x


@group.case("buffer_callback, in jit")
def _(L):
    f, x = doubled(L)
    f = L.jit(f)
    return Loop(lambda: f(x), check=True)


@group.case("buffer_callback, outside of jit")
def _(L):
    f, x = doubled(L)
    return Loop(lambda: f(x), check=True)


def on_host(L, call):
    """`call(function of the host, type of its result, x)` in jit, for x: [8]."""
    x = L.array(normal(8))
    promised = L.ShapeDtypeStruct(x.shape, x.dtype)
    f = L.jit(lambda x: call(lambda x: np.asarray(x) * 2, promised, x))
    return Loop(lambda: f(x), check=True)


@group.case("pure_callback, in jit")
def _(L):
    return on_host(L, L.pure_callback)


@group.case("io_callback, in jit")
def _(L):
    return on_host(L, import_module(f"{L.name}.experimental").io_callback)
