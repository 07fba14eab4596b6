"""Cases for tests/test_extrema.py, which runs this file in a process with eight CPU devices."""

import numpy as np
from eight_devices import names, report

import olympus
import olympus.numpy as onp
from olympus import lax
from olympus.sharding import NamedSharding, PartitionSpec as P

X = np.random.default_rng(0).standard_normal((8, 5000)).astype(np.float32)
X[3, 77] = np.nan


def mesh():
    return olympus.make_mesh((8,), ("i",))


def case_of_shared_axes():
    for spec in (P("i"), P(None, "i"), P()):
        x = olympus.device_put(X, NamedSharding(mesh(), spec))
        for axis in (None, 0, 1):
            for f, g in ((onp.max, np.max), (onp.min, np.min)):
                np.testing.assert_array_equal(olympus.jit(lambda x, f=f, a=axis: f(x, a))(x),
                                              g(X, axis))


def case_of_manual_axes():
    for dtype in ("float32", "bfloat16", "float16", "float8_e5m2"):
        x = onp.asarray(X).astype(dtype)
        wanted = np.asarray(x).astype(np.float32)
        for f, g, h in ((lax.pmax, onp.max, np.max), (lax.pmin, onp.min, np.min)):
            run = olympus.jit(olympus.shard_map(
                lambda x, f=f, g=g: (f(x[0], "i"), f(g(x), "i")), mesh=mesh(), in_specs=P("i"),
                out_specs=P()))
            each, total = run(x)
            np.testing.assert_array_equal(each.astype("float32"), h(wanted, 0))
            assert np.isnan(total.astype("float32"))


CASES = names(globals())

if __name__ == "__main__":
    report(globals())
