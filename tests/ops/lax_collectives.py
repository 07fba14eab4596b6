"""Rows for collectives (more in test_collectives), random bits."""

import numpy as np

from olympus import lax, vmap

from . import Op, reals

THREE = reals(3, 2)
CUBE = reals(3, 3, 2)
KEY = np.array([1, 2, 3, 4], np.uint32)


def over(fun):
    """`fun` of one element, over the axis "i"."""
    return vmap(fun, axis_name="i")


def exchange(x, out):
    """Element i sends its row k to element k."""
    at, one = np.arange(3), np.ones(3, int)
    return over(lambda x, out, i: lax.ragged_all_to_all(x, out, at, one, i, one, axis_name="i"))(
        x, out, np.repeat(at[:, None], 3, 1))


ALL = (
    Op("all_gather", lambda x: np.stack([x] * 3), over(lambda x: lax.all_gather(x, "i")), (THREE,),
       "fi"),
    Op("all_to_all", lambda x: x.swapaxes(0, 1), over(lambda x: lax.all_to_all(x, "i", 0, 0)),
       (CUBE,), "fi"),
    Op("pswapaxes", lambda x: x.swapaxes(0, 1), over(lambda x: lax.pswapaxes(x, "i", 0)), (CUBE,)),
    Op("psum_scatter_start", lambda x: x.sum(0).T[..., None], over(
        lambda x: lax.psum_scatter_start(x, "i", scatter_dimension=1, tiled=True).done()),
       (CUBE.swapaxes(1, 2),)),
    Op("psum_scatter", lambda x: x.sum(0), over(lambda x: lax.psum_scatter(x, "i")), (CUBE,)),
    Op("ppermute", lambda x: np.stack([x[2], 0 * x[0], x[0]]),
       over(lambda x: lax.ppermute(x, "i", [(0, 2), (2, 0)])), (THREE,), "fi"),
    Op("pshuffle", lambda x: x[[2, 0, 1]], over(lambda x: lax.pshuffle(x, "i", [2, 0, 1])),
       (THREE,)),
    Op("pbroadcast", lambda x: np.stack([x[1]] * 3), over(lambda x: lax.pbroadcast(x, "i", 1)),
       (THREE,)),
    Op("pcast", lambda x: x, over(lambda x: lax.pcast(x, "i", to="reduced")), (THREE,)),
    Op("ragged_all_to_all", lambda x, out: x.swapaxes(0, 1), exchange, (CUBE, CUBE[::-1])),
    Op("rng_bit_generator", lambda key: (key, np.zeros((2, 0), "u1")),
       lambda key: lax.rng_bit_generator(key, (2, 0), "uint8", "philox"), (KEY,), grad=False),
    Op("rng_uniform", np.floor, lambda x: lax.rng_uniform(x[0], x[0] + 1, (4,)) // 1,
       (np.full(4, 2.0),), grad=False),
)
