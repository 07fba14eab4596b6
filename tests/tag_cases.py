"""Rows of tests/test_tags.py: an operation, operands with their specifications, and the result's.

Each row ran in JAX 0.10.2's explicit mode, on a mesh of 4 × 2 devices with axes x and y, and gave
the specifications that stand here; REFUSED says that it raised. BEYOND has those that are others
there: JAX refuses the reshape, and lets a cut through the bytes of an element pass.
"""

import numpy as np

REFUSED = None
F = "float32"


def rows(lax):
    """(name, function, [(shape, entries[, dtype])], entries of each result or REFUSED)."""
    x, y, xy, n = "x", "y", ("x", "y"), None
    return [
        ("sin", lax.sin, [((8, 4), (x, y))], [(x, y)]),
        ("add", lax.add, [((8, 4), (x, y)), ((8, 4), (x, y))], [(x, y)]),
        ("add joins", lax.add, [((8, 4), (x, n)), ((8, 4), (n, y))], [(x, y)]),
        ("add scalar", lambda a: lax.mul(a, 2.0), [((8, 4), (xy, n))], [(xy, n)]),
        ("add conflict", lax.add, [((8, 4), (x, n)), ((8, 4), (y, n))], REFUSED),
        ("add twice", lax.add, [((8, 4), (x, n)), ((8, 4), (n, x))], REFUSED),
        ("compare", lax.lt, [((8,), (x,)), ((8,), (x,))], [(x,)]),
        ("select", lambda c, a: lax.select(lax.gt(c, a), a, a), [((8,), (x,))] * 2, [(x,)]),
        ("clamp", lambda a: lax.clamp(0.0, a, 1.0), [((8, 4), (x, n))], [(x, n)]),
        ("convert", lambda a: lax.convert_element_type(a, "int32"), [((8,), (x,))], [(x,)]),
        ("bitcast narrower", lambda a: lax.bitcast_convert_type(a, "uint8"), [((8,), (x,))],
         [(x, n)]),
        ("bitcast wider", lambda a: lax.bitcast_convert_type(a, "int32"),
         [((8, 4), (x, n), "uint8")], [(x,)]),
        ("barrier", lambda a, b: lax.optimization_barrier((a, b)),
         [((8,), (x,)), ((8,), (y,))], [(x,), (y,)]),
        ("broadcast", lambda a: lax.broadcast_in_dim(a, (3, 8, 4), (1, 2)), [((8, 4), (x, y))],
         [(n, x, y)]),
        ("transpose", lambda a: lax.transpose(a, (2, 0, 1)), [((8, 4, 2), (x, n, y))],
         [(y, x, n)]),
        ("squeeze", lambda a: lax.squeeze(a, (1,)), [((8, 1, 4), (x, n, y))], [(x, y)]),
        ("expand", lambda a: lax.expand_dims(a, (1,)), [((8, 4), (x, y))], [(x, n, y)]),
        ("rev", lambda a: lax.rev(a, (0,)), [((8, 4), (x, y))], [(x, y)]),
        ("reshape ones", lambda a: lax.reshape(a, (8, 1, 4)), [((1, 8, 4), (n, x, y))],
         [(x, n, y)]),
        ("reshape split", lambda a: lax.reshape(a, (4, 2, 4)), [((8, 4), (x, n))], [(x, n, n)]),
        ("reshape split two", lambda a: lax.reshape(a, (4, 2, 4)), [((8, 4), (xy, n))],
         [(x, y, n)]),
        ("reshape split badly", lambda a: lax.reshape(a, (2, 4, 4)), [((8, 4), (x, n))], REFUSED),
        ("reshape merge", lambda a: lax.reshape(a, (32, 3)), [((8, 4, 3), (x, n, n))],
         [(x, n)]),
        ("reshape merge two", lambda a: lax.reshape(a, (8,)), [((4, 2), (x, y))], [(xy,)]),
        ("reshape merge badly", lambda a: lax.reshape(a, (32,)), [((8, 4), (n, y))], REFUSED),
        ("reshape others", lambda a: lax.reshape(a, (2, 4, 4)), [((8, 4), (n, y))], [(n, n, y)]),
        ("concatenate", lambda a, b: lax.concatenate([a, b], 0),
         [((8, 4), (x, y)), ((4, 4), (x, y))], [(x, y)]),
        ("pad", lambda a: lax.pad(a, np.float32(0), ((0, 0, 0), (1, 1, 0))), [((8, 4), (x, y))],
         [(x, y)]),
        ("pad badly", lambda a: lax.pad(a, np.float32(0), ((0, 1, 0), (0, 0, 0))),
         [((8, 4), (x, y))], REFUSED),
        ("slice", lambda a: lax.slice(a, (0, 0), (4, 3)), [((8, 4), (x, n))], [(x, n)]),
        ("slice badly", lambda a: lax.slice(a, (0, 0), (3, 4)), [((8, 4), (x, n))], REFUSED),
        ("dynamic_slice", lambda a: lax.dynamic_slice(a, (0, 0), (4, 4)), [((8, 4), (x, y))],
         [(x, y)]),
        ("update slice", lambda a, b: lax.dynamic_update_slice(a, b, (0, 0)),
         [((8, 4), (x, y)), ((4, 4), (x, y))], [(x, y)]),
        ("update slice badly", lambda a, b: lax.dynamic_update_slice(a, b, (0, 0)),
         [((8, 4), (x, y)), ((4, 4), (n, n))], REFUSED),
        ("split", lambda a: lax.split(a, (4, 4), 0), [((8, 4), (x, y))], [(x, y), (x, y)]),
    ] + reducing(lax)


def reducing(lax):
    """Rows of operations that reduce, contract, index or carry a body."""
    dot = lambda contract, batch=((), ()): lambda a, b: lax.dot_general(a, b, (contract, batch))
    take = lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,),
                                      start_index_map=(0,))
    batched = lax.GatherDimensionNumbers(
        offset_dims=(1,), collapsed_slice_dims=(1,), start_index_map=(1,),
        operand_batching_dims=(0,), start_indices_batching_dims=(0,))
    put = lax.ScatterDimensionNumbers(update_window_dims=(1,), inserted_window_dims=(0,),
                                      scatter_dims_to_operand_dims=(0,))
    window = lambda dims: lambda x: lax.reduce_window(x, -np.inf, lax.max, dims, (1, 1), "VALID")
    nchw = ("NCHW", "OIHW", "NCHW")
    x, y, n = "x", "y", None
    return [
        ("sum", lambda a: lax.reduce_sum(a, (1,)), [((8, 4, 2), (x, y, n))], [(x, n)]),
        ("max", lambda a: lax.reduce_max(a, (0,)), [((8, 4), (x, y))], [(y,)]),
        ("argmax", lambda a: lax.argmax(a, 0, "int32"), [((8, 4), (x, y))], [(y,)]),
        ("dot", dot(((1,), (0,))), [((8, 4), (x, n)), ((4, 2), (n, y))], [(x, y)]),
        ("dot one cut", dot(((1,), (0,))), [((8, 4), (n, x)), ((4, 2), (n, y))], [(n, y)]),
        ("dot both cut", dot(((1,), (0,))), [((8, 4), (n, x)), ((4, 2), (x, n))], REFUSED),
        ("dot twice", dot(((1,), (0,))), [((8, 4), (x, n)), ((4, 8), (n, x))], REFUSED),
        ("dot batch", dot(((2,), (1,)), ((0,), (0,))),
         [((8, 4, 2), (x, y, n)), ((8, 2, 2), (x, n, n))], [(x, y, n)]),
        ("take rows", lambda a, i: lax.gather(a, i, take, (1, 4), mode="clip"),
         [((8, 4), (n, y)), ((3, 1), (n, n), "int32")], [(n, y)]),
        ("take cut rows", lambda a, i: lax.gather(a, i, take, (1, 4), mode="clip"),
         [((8, 4), (x, n)), ((3, 1), (n, n), "int32")], REFUSED),
        ("take batched", lambda a, i: lax.gather(a, i, batched, (1, 1, 4), mode="clip"),
         [((8, 3, 4), (x, n, y)), ((8, 1), (n, n), "int32")], [(x, y)]),
        ("put rows", lambda a, i, u: lax.scatter(a, i, u, put, mode="clip"),
         [((8, 4), (n, y)), ((3, 1), (n, n), "int32"), ((3, 4), (n, y))], [(n, y)]),
        ("put cut rows", lambda a, i, u: lax.scatter(a, i, u, put, mode="clip"),
         [((8, 4), (x, n)), ((3, 1), (n, n), "int32"), ((3, 4), (n, n))], REFUSED),
        ("window", window((1, 2)), [((8, 4), (x, n))], [(x, n)]),
        ("window badly", window((2, 1)), [((8, 4), (x, n))], REFUSED),
        ("conv", lambda a, k: lax.conv_general_dilated(a, k, (1, 1), "SAME",
                                                       dimension_numbers=nchw),
         [((8, 3, 4, 4), (x, n, y, n)), ((5, 3, 3, 3), (n,) * 4)], [(x, n, y, n)]),
        ("conv kernel cut", lambda a, k: lax.conv_general_dilated(
            a, k, (1, 1), "SAME", dimension_numbers=nchw),
         [((8, 3, 4, 4), (x, n, n, n)), ((4, 3, 3, 3), (y, n, n, n))], REFUSED),
        ("sort", lambda a: lax.sort(a, dimension=1), [((8, 4), (x, n))], [(x, n)]),
        ("sort cut", lambda a: lax.sort(a, dimension=0), [((8, 4), (x, n))], REFUSED),
        ("top_k", lambda a: lax.top_k(a, 2), [((8, 4), (x, n))], [(x, n), (x, n)]),
        ("cumsum", lambda a: lax.cumsum(a, 1), [((8, 4), (x, n))], [(x, n)]),
        ("cumsum cut", lambda a: lax.cumsum(a, 0), [((8, 4), (x, n))], REFUSED),
        ("cholesky", lax.linalg.cholesky_p.bind, [((8, 4, 4), (x, n, n))], [(x, n, n)]),
        ("cholesky cut", lax.linalg.cholesky_p.bind, [((8, 4, 4), (n, x, n))], REFUSED),
        ("fft", lambda a: lax.fft(lax.complex(a, a), "FFT", (4,)), [((8, 4), (x, n))], [(x, n)]),
        ("scan", lambda a: lax.scan(lambda c, r: (lax.add(c, r), lax.sin(c)), lax.index_in_dim(
            a, 0, 0, keepdims=False), a), [((3, 8), (n, x))], [(x,), (n, x)]),
        ("cond", lambda a: lax.cond(True, lax.sin, lax.cos, a), [((8,), (x,))], [(x,)]),
        ("while", lambda a: lax.fori_loop(0, 3, lambda i, c: lax.sin(c), a), [((8,), (x,))],
         [(x,)]),
    ]


BEYOND = [
    ("bitcast wider cut", lambda lax: lambda a: lax.bitcast_convert_type(a, "int32"),
     [((8, 4), (None, "y"), "uint8")], REFUSED),
    ("reshape two groups", lambda lax: lambda a: lax.reshape(a, (4, 2, 2, 2)),
     [((8, 4), ("x", "y"))], [("x", None, "y", None)]),
]
