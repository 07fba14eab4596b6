"""A function in C++ with its derivative, root-mean-square normalisation; and one with state.

    make -C examples/ffi && python examples/ffi/rms_norm.py
"""

import ctypes
import functools
import sys
from pathlib import Path

import numpy as np

import olympus
import olympus.numpy as onp
from olympus import ffi

LIBRARY = Path(__file__).parent / "build" / "libhandlers.so"


def load(path=LIBRARY):
    """Register the library's handlers; again does nothing."""
    library = ctypes.cdll.LoadLibrary(str(path))
    ffi.register_ffi_target("rms_norm", ffi.pycapsule(library.RmsNorm))
    ffi.register_ffi_target("rms_norm_grad", ffi.pycapsule(library.RmsNormGrad))
    # The type of a state comes before the handlers that have it.
    for function in (library.CounterId, library.CounterInfo):
        function.restype = ctypes.c_void_p
    ffi.register_ffi_type("Counter", {"type_id": ffi.pycapsule(library.CounterId()),
                                      "type_info": ffi.pycapsule(library.CounterInfo())})
    ffi.register_ffi_target("counter", {
        "instantiate": ffi.pycapsule(library.CounterInstantiate),
        "execute": ffi.pycapsule(library.CounterExecute)})
    # Rows are independent, so arrays spread over devices need not be gathered.
    ffi.register_ffi_target_as_batch_partitionable("rms_norm")
    ffi.register_ffi_target_as_batch_partitionable("rms_norm_grad")


@functools.partial(olympus.custom_vjp, nondiff_argnums=(1,))
def rms_norm(x, eps=1e-5):
    """x / sqrt(mean(x**2) + eps) along the last axis of float32[..., n] or float64[..., n]."""
    return forward(x, eps)[0]


def forward(x, eps):
    promised = (olympus.ShapeDtypeStruct(x.shape, x.dtype),
                olympus.ShapeDtypeStruct(x.shape[:-1], x.dtype))
    y, r = ffi.ffi_call("rms_norm", promised, vmap_method="broadcast_all")(x, eps=eps)
    return y, (r, x)


def backward(eps, residuals, ct):
    r, x = residuals
    promised = olympus.ShapeDtypeStruct(x.shape, x.dtype)
    return (ffi.ffi_call("rms_norm_grad", promised, vmap_method="broadcast_all")(r, x, ct),)


rms_norm.defvjp(forward, backward)


def reference(x, eps=1e-5):
    """The same in NumPy's words, with the derivative that Olympus finds."""
    return x / onp.sqrt(onp.mean(x * x, axis=-1, keepdims=True) + eps)


def main(path=LIBRARY):
    if not path.exists():
        sys.exit(f"{path} is not there; build it with: make -C {Path(__file__).parent}")
    load(path)
    x = onp.asarray(np.random.default_rng(0).normal(size=(4, 1000)), "float32")
    weights = onp.linspace(-1, 1, 1000)
    for name, f in (("jit", olympus.jit(rms_norm)), ("vmap", olympus.vmap(rms_norm))):
        print(f"{name:5} differs by {float(onp.abs(f(x) - reference(x)).max()):.1e}")
    gradients = [olympus.jit(olympus.grad(lambda x, f=f: (f(x) * weights).sum()))(x)
                 for f in (rms_norm, reference)]
    print(f"grad  differs by {float(onp.abs(gradients[0] - gradients[1]).max()):.1e}")
    count = olympus.jit(lambda: ffi.ffi_call("counter", olympus.ShapeDtypeStruct((), "int32"),
                                             has_side_effect=True)(start=5))
    print("three calls of a counter:", *[int(count()) for _ in range(3)])


if __name__ == "__main__":
    main()
