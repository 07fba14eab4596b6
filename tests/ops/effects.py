"""Programs that say something while they run: what each says, in any order."""

import numpy as np

from olympus import debug, grad, jvp, lax, vmap

from . import Effect

X = np.array([1.5, -2.0, 0.25], np.float32)


def said(say, x):
    debug.callback(say, x)
    return x * x


def printed(say, x):
    debug.print("{}", x)
    return x * x


EACH = ["-2.0", "0.25", "1.5"]

ALL = tuple(
    Effect(f"{name}-{fun.__name__}", run, (fun, X), EACH if name != "jvp" else ["1.5"])
    for fun in (said, printed)
    for name, run in (
        ("vmap", lambda say, fun, x: vmap(lambda v: fun(say, v))(x)),
        ("jvp", lambda say, fun, x: jvp(lambda v: fun(say, v), (x[0],), (x[1],))),
        ("grad", lambda say, fun, x: vmap(grad(lambda v: fun(say, v)))(x)),
        ("scan", lambda say, fun, x: lax.scan(lambda c, v: (c, fun(say, v)), 0.0, x)),
    ))
