"""Rows for operations about programs: composites, platforms, tokens and sinks."""

import numpy as np

from olympus import jit, lax, numpy as onp

from . import Op, reals

V = reals(5)
M = reals(3, 4)

scaled = lax.composite(lambda x, y, *, by: (by * onp.sin(x), x * y), "test.scaled", 2)


def waits(x):
    """`x`, after tokens that nothing waits for."""
    token = lax.after_all(lax.create_token(x), lax.create_token())
    return jit(lambda t, x: (lax.after_all(t), 2 * x))(token, x)[1]


def sunk(x):
    lax.dce_sink({"a": x * 3}, prevent_mlir_dce=True)
    return onp.sin(x)


ALL = (
    Op("composite", lambda x, y: (2 * np.sin(x), x * y), lambda x, y: scaled(x, y, by=2.0),
       (M, reals(3, 4, seed=1))),
    Op("platform_dependent", np.sin, lambda x: lax.platform_dependent(
        x, tpu=onp.cos, cpu=onp.sin, default=lambda x: x), (M,)),
    Op("create_token", lambda x: 2 * x, waits, (V,)),
    Op("after_all", lambda x: 2 * x, waits, (V,)),
    Op("dce_sink", np.sin, sunk, (V,)),
    Op("stage", lambda x: 2 * x, lambda x: lax.stage(2.0) * lax.stage(x), (V,)),
)
