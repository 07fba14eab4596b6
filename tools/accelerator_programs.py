"""The programs that tools/accelerators.py compiles, of either library: `L` is olympus or jax.

`programs(L)`, `functions(L)` and `topologies(L)` give, by name, a function and the shapes of its
arguments, for one device; `sharded(L, mesh)` gives jitted functions with arguments over a mesh of
axes data and model.
Everything is of float32 unless its name says otherwise.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any

import numpy as np

F32 = np.dtype(np.float32)
PARTS = ("numpy", "numpy.fft", "numpy.linalg", "lax", "lax.linalg", "nn", "random", "tree", "image",
         "experimental", "scipy.linalg", "scipy.special", "scipy.signal", "scipy.sparse.linalg")


def load(name: str) -> Any:
    """A library with all modules that programs use."""
    for part in PARTS:
        importlib.import_module(f"{name}.{part}")
    return importlib.import_module(name)


def causal_block(L, x, p, heads):
    """A layer of a transformer; weights and activations may have few digits."""
    batch, length, width = x.shape

    def normed(x):
        wide = x.astype(F32)
        mean = wide.mean(-1, keepdims=True)
        var = ((wide - mean) ** 2).mean(-1, keepdims=True)
        return ((wide - mean) * L.lax.rsqrt(var + 1e-5)).astype(x.dtype)

    h = normed(x)
    q, k, v = [(h @ p[n]).reshape(batch, length, heads, width // heads) for n in "qkv"]
    scores = L.numpy.einsum("bthd,bshd->bhts", q, k).astype(F32) / F32.type((width / heads) ** 0.5)
    scores = L.numpy.where(L.numpy.tril(L.numpy.ones((length, length), bool)), scores, -1e9)
    weights = L.nn.softmax(scores, -1).astype(x.dtype)
    x = x + L.numpy.einsum("bhts,bshd->bthd", weights, v).reshape(x.shape) @ p["o"]
    return x + L.nn.gelu(normed(x) @ p["up"]) @ p["down"]


def weights_of(width, hidden):
    return {"q": (width, width), "k": (width, width), "v": (width, width), "o": (width, width),
            "up": (width, hidden), "down": (hidden, width)}


def next_token_loss(L, x, embedding, tokens):
    logits = L.nn.log_softmax((x @ embedding.T).astype(F32)[:, :-1])
    return -L.numpy.take_along_axis(logits, tokens[:, 1:, None], -1).mean()


def specs(L):
    """The maker of arguments' shapes: sizes, and a dtype `d`."""
    return lambda *shape, d=F32: L.ShapeDtypeStruct(shape, d)


def of_key(L, fun, impl=None):
    """A function of the words of a random key, and their shape."""
    size = {None: 2, "rbg": 4, "unsafe_rbg": 4}[impl]
    return (lambda k: fun(L.random.wrap_key_data(k, impl=impl)),
            L.ShapeDtypeStruct((size,), np.uint32))


def slope(L, fun):
    """The gradient of the sum of a function's results."""
    return L.grad(lambda *args: fun(*args).sum())


def transformers(L):
    """Programs of a transformer of two layers, as `programs` gives them."""
    np_, lax, bf16 = L.numpy, L.lax, L.numpy.bfloat16
    width, vocabulary = 512, 1024
    shapes = weights_of(width, 4 * width)
    layer = {n: L.ShapeDtypeStruct(s, bf16) for n, s in shapes.items()}
    params = {"layers": [layer, dict(layer)],
              "embedding": L.ShapeDtypeStruct((vocabulary, width), bf16)}
    tokens = L.ShapeDtypeStruct((8, 128), np.int32)

    def loss(params, tokens, remat=False, scan=False):
        x = params["embedding"][tokens]
        block = functools.partial(causal_block, L, heads=8)
        block = L.checkpoint(block) if remat else block
        if scan:
            stacked = L.tree.map(lambda *ws: np_.stack(ws), *params["layers"])
            x = lax.scan(lambda x, p: (block(x, p), None), x, stacked)[0]
        else:
            for p in params["layers"]:
                x = block(x, p)
        return next_token_loss(L, x, params["embedding"], tokens)

    def step(params, tokens, **how):
        value, slopes = L.value_and_grad(functools.partial(loss, **how))(params, tokens)
        return value, L.tree.map(lambda p, g: p - 0.01 * g, params, slopes)

    return {
        "transformer": (loss, params, tokens),
        "transformer step": (step, params, tokens),
        "transformer step, remat": (functools.partial(step, remat=True), params, tokens),
        "transformer step, scan": (functools.partial(step, remat=True, scan=True), params, tokens),
    }


def factorisations(L):
    """Programs of linear algebra, as `programs` gives them."""
    np_, lax = L.numpy, L.lax

    S = specs(L)
    return {
        "Cholesky": (np_.linalg.cholesky, S(256, 256)),
        "QR": (np_.linalg.qr, S(256, 128)),
        "solve": (np_.linalg.solve, S(256, 256), S(256, 8)),
        "eigh": (np_.linalg.eigh, S(128, 128)),
        "SVD": (functools.partial(np_.linalg.svd, full_matrices=False), S(128, 64)),
        "triangular solve": (functools.partial(
            lax.linalg.triangular_solve, left_side=True, lower=True), S(256, 256), S(256, 8)),
    }


def draws(L):
    """Programs that draw random numbers, as `programs` gives them."""
    np_, random, bf16 = L.numpy, L.random, L.numpy.bfloat16

    S = specs(L)
    def split_and_draw(k):
        a, b = random.split(random.wrap_key_data(k))
        return random.uniform(a, (1024, 128), bf16), random.randint(b, (1024,), 0, 10)

    def dropout(k, x):
        key = random.wrap_key_data(k)
        kept = random.bernoulli(key, 0.9, x.shape)
        return np_.where(kept, x / 0.9, 0), random.categorical(key, x)

    return {
        "normal": (lambda k: random.normal(random.wrap_key_data(k), (1024, 1024)),
                   S(2, d=np.uint32)),
        "normal by rbg": (lambda k: random.normal(random.wrap_key_data(k, impl="rbg"),
                                                  (1024, 1024)), S(4, d=np.uint32)),
        "split, uniform bfloat16": (split_and_draw, S(2, d=np.uint32)),
        "dropout, categorical": (dropout, S(2, d=np.uint32), S(64, 512)),
    }


def programs(L):
    """Whole programs: name -> (function, shapes of arguments)."""
    np_, lax, nn = L.numpy, L.lax, L.nn
    bf16, fp8 = np_.bfloat16, np_.float8_e4m3fn
    nhwc = {"dimension_numbers": ("NHWC", "HWIO", "NHWC")}

    S = specs(L)
    def layernorm(x, g, b):
        m, v = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        return nn.gelu((x - m) * lax.rsqrt(v + 1e-5) * g + b)

    def rnn(xs, w, h):
        def step(h, x):
            h = np_.tanh(h @ w + x)
            return h, h
        return lax.scan(step, h, xs)

    def conv(x, w):
        return lax.conv_general_dilated(x, w, (1, 1), "SAME", **nhwc)

    def max_pool(x):
        return lax.reduce_window(x, -np_.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")

    def chain(x, w):
        f = L.checkpoint(lambda x: np_.sin(np_.sin(x @ w)))
        return L.grad(lambda x: f(f(f(x))).sum())(x)

    def squares(fun):
        return lambda *args: (fun(*args) ** 2).sum()

    heads = [S(2, 256, 8, 64, d=bf16)] * 3
    return {
        "matmul": (lambda a, b: a @ b, S(1024, 1024), S(1024, 1024)),
        "matmul, bfloat16": (lambda a, b: a @ b, S(1024, 1024, d=bf16), S(1024, 1024, d=bf16)),
        "matmul, highest": (functools.partial(np_.matmul, precision="highest"),
                            S(512, 512), S(512, 512)),
        "matmul, int8": (functools.partial(lax.dot, preferred_element_type=np.int32),
                         S(512, 512, d=np.int8), S(512, 512, d=np.int8)),
        "matmul, float8": (functools.partial(lax.dot, preferred_element_type=F32),
                           S(512, 512, d=fp8), S(512, 512, d=fp8)),
        "elementwise": (lambda x: np_.sin(x) * np_.exp(-x * x) + np_.tanh(x), S(1 << 20)),
        "erf, lgamma, digamma": (lambda x: lax.erf(x) + lax.lgamma(x) + lax.erf_inv(x)
                                 + lax.digamma(x), S(4096)),
        "softmax": (nn.softmax, S(256, 4096)),
        "layer norm, gelu": (layernorm, S(256, 1024), S(1024), S(1024)),
        "sort": (np_.sort, S(65536)),
        "argsort": (np_.argsort, S(65536)),
        "top_k": (lambda x: lax.top_k(x, 16), S(64, 8192)),
        "cumsum": (np_.cumsum, S(1 << 16)),
        "gather": (lambda x, i: x[i], S(4096, 256), S(512, d=np.int32)),
        "scatter-add": (lambda x, i, u: x.at[i].add(u),
                        S(4096, 256), S(512, d=np.int32), S(512, 256)),
        "scan of an RNN": (rnn, S(64, 8, 128), S(128, 128), S(8, 128)),
        "gradient of the scan": (lambda xs, w, h: L.value_and_grad(
            lambda w: (rnn(xs, w, h)[0] ** 2).sum())(w), S(64, 8, 128), S(128, 128), S(8, 128)),
        "while": (lambda x: lax.while_loop(lambda c: (c[0] < 10) & (np_.sum(c[1]) < 1e3),
                                           lambda c: (c[0] + 1, c[1] * 2 + 1), (0, x)), S(128)),
        "cond": (lambda p, x: lax.cond(p > 0, lambda x: x @ x, np_.linalg.inv, x),
                 S(), S(128, 128)),
        "fft": (np_.fft.fft, S(64, 1024, d=np.complex64)),
        "rfft": (np_.fft.rfft, S(64, 1024)),
        "convolution, bfloat16": (conv, S(32, 56, 56, 64, d=bf16), S(3, 3, 64, 64, d=bf16)),
        "gradient of a convolution": (L.grad(squares(conv), (0, 1)),
                                      S(8, 28, 28, 64), S(3, 3, 64, 64)),
        "gradient of max-pooling": (L.grad(squares(max_pool)), S(8, 28, 28, 64)),
        **factorisations(L),
        **draws(L),
        **transformers(L),
        "attention, bfloat16": (
            functools.partial(nn.dot_product_attention, is_causal=True), *heads),
        "vmap of gradients": (L.vmap(L.grad(lambda w, x, b: np_.sum(np_.tanh(x @ w + b) ** 2)),
                                     (None, 0, None)), S(128, 128), S(64, 128), S(128)),
        "Hessian": (L.hessian(lambda x: np_.sum(np_.sin(x) * np_.roll(x, 1) ** 2)), S(64)),
        "chain of checkpoints": (chain, S(256, 512), S(512, 512)),
    }


def matrices_and_order(L):
    """Functions of matrices, of order and of random keys: name -> (function, shapes)."""
    np_, lax, scipy, random = L.numpy, L.lax, L.scipy, L.random
    linalg = np_.linalg

    S = specs(L)
    M, C, V, I = S(16, 16), S(16, 16, d=np.complex64), S(64), S(64, d=np.int32)
    T, R, W = S(8, 16, 16), S(24, 16), S(16)
    return {
        "cholesky": (linalg.cholesky, M), "cholesky complex": (linalg.cholesky, C),
        "qr": (linalg.qr, R), "svd": (linalg.svd, R), "svd complex": (linalg.svd, C),
        "eigh": (linalg.eigh, M), "eigh complex": (linalg.eigh, C), "eig": (linalg.eig, M),
        "eigvals": (linalg.eigvals, M), "lu": (lax.linalg.lu, M), "solve": (linalg.solve, M, W),
        "inv": (linalg.inv, M), "det": (linalg.det, M), "slogdet": (linalg.slogdet, M),
        "lstsq": (linalg.lstsq, R, S(24)), "pinv": (linalg.pinv, R),
        "matrix_rank": (linalg.matrix_rank, R), "schur": (lax.linalg.schur, M),
        "hessenberg": (lax.linalg.hessenberg, M), "tridiagonal": (lax.linalg.tridiagonal, M),
        "tridiagonal_solve": (lax.linalg.tridiagonal_solve, W, W, W, S(16, 2)),
        "qdwh": (lax.linalg.qdwh, M),
        "triangular_solve": (functools.partial(lax.linalg.triangular_solve, left_side=True), M, M),
        "householder_product": (lax.linalg.householder_product, R, W),
        "qr with pivots": (functools.partial(scipy.linalg.qr, pivoting=True), R),
        "expm": (scipy.linalg.expm, M), "sqrtm": (scipy.linalg.sqrtm, M),
        "funm": (lambda a: scipy.linalg.funm(a, np_.sin), M), "polar": (scipy.linalg.polar, M),
        "cho_solve": (lambda a, b: scipy.linalg.cho_solve((a, True), b), M, W),
        "lu_solve": (lambda a, b: scipy.linalg.lu_solve(scipy.linalg.lu_factor(a), b), M, W),
        "eigh_tridiagonal": (functools.partial(scipy.linalg.eigh_tridiagonal, eigvals_only=True),
                             W, S(15)),
        "cholesky_update": (lax.linalg.cholesky_update, M, W),
        "symmetric_product": (lax.linalg.symmetric_product, R, S(24, 24)),
        "vmap cholesky": (L.vmap(linalg.cholesky), T),
        "grad cholesky": (slope(L, linalg.cholesky), M),
        "grad eigh": (slope(L, lambda a: linalg.eigh(a)[1]), M),
        "grad svd": (slope(L, lambda a: linalg.svd(a, full_matrices=False)[1]), R),
        "grad qr": (slope(L, lambda a: linalg.qr(a)[1]), R),
        "fft": (np_.fft.fft, C), "rfft2": (np_.fft.rfft2, M), "irfft": (np_.fft.irfft, C),
        "fftconvolve": (scipy.signal.fftconvolve, M, M),
        "normal": of_key(L, lambda k: random.normal(k, (64,))),
        "gamma": of_key(L, lambda k: random.gamma(k, 2.0, (8,))),
        "poisson": of_key(L, lambda k: random.poisson(k, 2.0, (8,))),
        "choice": of_key(L, lambda k: random.choice(k, 100, (8,), replace=False)),
        "permutation": of_key(L, lambda k: random.permutation(k, 64)),
        "rbg": of_key(L, lambda k: random.normal(k, (8,)), "rbg"),
        "unsafe_rbg": of_key(L, lambda k: random.normal(k, (8,)), "unsafe_rbg"),
        "orthogonal": of_key(L, lambda k: random.orthogonal(k, 8)),
        "binomial": of_key(L, lambda k: random.binomial(k, 10, 0.3, (8,))),
        "multivariate_normal": of_key(L, lambda k: random.multivariate_normal(
            k, np.zeros(3, F32), np.eye(3, dtype=F32))),
        "rng_bit_generator": (lambda k: lax.rng_bit_generator(k, (8,)), S(4, d=np.uint32)),
        "sort": (np_.sort, V), "sort complex": (np_.sort, C), "argsort": (np_.argsort, V),
        "lexsort": (lambda a, b: np_.lexsort((a, b)), V, V),
        "top_k": (lambda x: lax.top_k(x, 3), V),
        "approx_max_k": (lambda x: lax.approx_max_k(x, 10), S(16, 4096)),
        "approx_min_k": (lambda x: lax.approx_min_k(x, 10), S(16, 4096)),
        "median": (np_.median, V), "searchsorted": (np_.searchsorted, V, V),
        "searchsorted, wide": (np_.searchsorted, S(65536), S(4096)),
        "unique of a size": (lambda x: np_.unique(x, size=8), I), "cumsum": (np_.cumsum, V),
        "cumprod": (np_.cumprod, V), "cummax": (lax.cummax, V),
        "cumlogsumexp": (lax.cumlogsumexp, V),
        "associative_scan": (lambda x: lax.associative_scan(np_.add, x), V),
    }


def networks(L):
    """Attention of long sequences, a loss and a spectrogram: name -> (function, shapes)."""
    np_, nn = L.numpy, L.nn

    S = specs(L)
    def slopes(q, k, v):
        return L.grad(lambda *qkv: (nn.dot_product_attention(
            *qkv, is_causal=True).astype(F32) ** 2).sum(), (0, 1, 2))(q, k, v)

    def masked(q, lengths):
        return nn.dot_product_attention(q, q, q, query_seq_lengths=lengths, local_window_size=64,
                                        key_value_seq_lengths=lengths)

    def loss(x, y):
        return -(nn.log_softmax(x) * nn.one_hot(y, 1000)).sum(-1).mean()

    heads, few = [S(1, 2048, n, 64, d=np_.bfloat16) for n in (8, 2)]
    return {
        "attention gradient": (slopes, heads, heads, heads),
        "grouped attention gradient": (slopes, heads, few, few),
        "masked attention": (masked, S(2, 512, 8, 64, d=np_.bfloat16), S(2, d=np.int32)),
        "one-hot loss gradient": (L.grad(loss), S(512, 1000), S(512, d=np.int32)),
        "stft": (lambda x: L.scipy.signal.stft(x, nperseg=128)[2], S(2, 4096)),
    }


def further_functions(L):
    """The other functions on small arguments: name -> (function, shapes)."""
    np_, lax, scipy = L.numpy, L.lax, L.scipy
    bf16, fp8 = np_.bfloat16, np_.float8_e4m3fn

    S = specs(L)
    def pool(x):
        return lax.reduce_window(x, -np.inf, lax.max, (2,), (2,), "VALID")

    def scaled(a, b, s, t):
        return L.nn.scaled_matmul(a, b, s, t)

    M, V, I = S(16, 16), S(64), S(64, d=np.int32)
    W = S(16)
    i8, i4, f8 = S(8, 8, d=np.int8), S(8, 8, d=np_.int4), S(16, 16, d=fp8)
    e8 = np_.float8_e8m0fnu
    ring = (((1,), (0,)), ((), ()))
    return {
        "igamma": (lax.igamma, V, V), "betainc": (scipy.special.betainc, V, V, V),
        "lgamma": (lax.lgamma, V), "digamma": (lax.digamma, V), "bessel_i1e": (lax.bessel_i1e, V),
        "erf_inv": (lax.erf_inv, V), "zeta": (scipy.special.zeta, V, V),
        "polygamma": (scipy.special.polygamma, I, V), "sinc": (np_.sinc, V), "i0": (np_.i0, V),
        "erfc": (lax.erfc, V),
        "conv": (lambda x, w: lax.conv(x, w, (1, 1), "SAME"), S(1, 4, 8, 8), S(4, 4, 3, 3)),
        "conv bfloat16": (lambda x, w: lax.conv(x, w, (1, 1), "SAME"),
                          S(1, 4, 8, 8, d=bf16), S(4, 4, 3, 3, d=bf16)),
        "reduce_window": (lambda x: lax.reduce_window(x, 0.0, lax.add, (2,), (2,), "VALID"), V),
        "grad max_pool": (slope(L, pool), V),
        "jvp max_pool": (lambda x: L.jvp(pool, (x,), (x,)), V),
        "ragged_dot": (lax.ragged_dot, S(256, 128), S(4, 128, 128), S(4, d=np.int32)),
        "dot int8": (functools.partial(lax.dot, preferred_element_type=np.int32), i8, i8),
        "dot int4": (functools.partial(lax.dot, preferred_element_type=np.int32), i4, i4),
        "dot float8": (functools.partial(lax.dot, preferred_element_type=F32), f8, f8),
        "dot TF32": (lambda a, b: lax.dot_general(
            a, b, ring, precision=lax.DotAlgorithmPreset.TF32_TF32_F32), M, M),
        "dot BF16_X3": (lambda a, b: lax.dot_general(
            a, b, ring, precision=lax.DotAlgorithmPreset.BF16_BF16_F32_X3), M, M),
        "attention": (lambda q: L.nn.dot_product_attention(q, q, q), S(1, 16, 2, 8)),
        "attention by cuDNN": (
            lambda q: L.nn.dot_product_attention(q, q, q, implementation="cudnn"),
            S(1, 16, 2, 64, d=np.float16)),
        "scaled_matmul": (scaled, S(1, 32, 64, d=fp8), S(1, 32, 64, d=fp8), S(1, 32, 2, d=e8),
                          S(1, 32, 2, d=e8)),
        "gelu": (L.nn.gelu, V), "logsumexp": (L.nn.logsumexp, V),
        "resize": (lambda x: L.image.resize(x, (8, 8), "bicubic"), M),
        "pure_callback": (lambda x: L.pure_callback(np.asarray, V, x), V),
        "io_callback": (lambda x: L.experimental.io_callback(lambda x: None, None, x), V),
        "debug.print": (lambda x: (L.debug.print("{}", x), x)[1], V),
        "ordered callback": (
            lambda x: (L.debug.callback(lambda x: None, x, ordered=True), x)[1], V),
        "scan": (lambda x: lax.scan(lambda c, a: (c + a, c), np.float32(0), x), V),
        "while": (lambda x: lax.while_loop(lambda c: c.sum() < 9, lambda c: c + 1, x), V),
        "cond": (lambda x: lax.cond(x[0] > 0, np_.sin, np_.cos, x), V),
        "platform_dependent": (lambda x: lax.platform_dependent(
            x, cpu=np_.sin, tpu=np_.cos, default=np_.tan), V),
        "checkpoint": (slope(L, L.checkpoint(lambda x: np_.sin(np_.sin(x)))), V),
        "custom_root": (lambda x: lax.custom_root(
            lambda y: y * y - x[0], x[1], lambda f, x0: x0, lambda g, y: y / g(F32.type(1))), V),
        "optimization_barrier": (lax.optimization_barrier, V),
        "bitcast": (lambda x: lax.bitcast_convert_type(x, np.int32), V),
        "reduce_precision": (lambda x: lax.reduce_precision(x, 5, 10), V),
        "device_put to the host": (lambda x: L.device_put(x, L.memory.Space.Host), V),
        "cg": (lambda a, b: scipy.sparse.linalg.cg(a, b)[0], M, W),
        "gmres": (lambda a, b: scipy.sparse.linalg.gmres(a, b)[0], M, W),
    }


def functions(L):
    """Single functions on small arguments: name -> (function, shapes of arguments)."""
    return {**matrices_and_order(L), **further_functions(L), **networks(L)}


def topologies(L):
    """One program, for every kind of chip."""
    return {"softmax of a product": (lambda a: L.nn.softmax(a @ a),
                                     L.ShapeDtypeStruct((512, 512), L.numpy.bfloat16))}


def sharded(L, mesh):
    """Programs over the axes data and model of a mesh: name -> (jitted function, its arguments)."""
    np_, lax, P = L.numpy, L.lax, L.sharding.PartitionSpec
    bf16, n = np_.bfloat16, dict(zip(mesh.axis_names, mesh.devices.shape, strict=True))["data"]

    def S(shape, dtype, *spec):
        return L.ShapeDtypeStruct(shape, dtype, sharding=L.sharding.NamedSharding(mesh, P(*spec)))

    width, layers, vocabulary = 1024, 4, 8192
    shapes = weights_of(width, 4 * width)
    params = {name: S((layers, *shape), bf16, *(None, *(
        ("model", None) if name in ("o", "down") else (None, "model"))))
        for name, shape in shapes.items()}
    params["embedding"] = S((vocabulary, width), bf16, "model", None)

    def loss(p, tokens):
        def layer(x, w):
            return causal_block(L, x, w, 16), None
        x = lax.scan(L.checkpoint(layer), p["embedding"][tokens], {n: p[n] for n in shapes})[0]
        return next_token_loss(L, x, p["embedding"], tokens)

    def step(p, tokens):
        value, slopes = L.value_and_grad(loss)(p, tokens)
        return value, L.tree.map(lambda a, b: (a - 0.01 * b).astype(a.dtype), p, slopes)

    def mlp(ws, x):
        for w in ws:
            x = L.nn.relu(x @ w)
        return (x.astype(F32) ** 2).mean()

    def ring(x, w):
        pairs = [(j, (j + 1) % n) for j in range(n)]

        def body(i, c):
            total, w = c
            return total + x @ w, lax.ppermute(w, "data", pairs)

        start = lax.pcast(np_.zeros((x.shape[0], w.shape[1]), x.dtype), ("data",), to="varying")
        return lax.fori_loop(0, n, body, (start, w))[0]

    rows, columns = P("data", None), P(None, "data")
    return {
        "transformer step": (
            L.jit(step, donate_argnums=0, out_shardings=(
                None, {name: s.sharding for name, s in params.items()})),
            (params, S((4 * n, 256), np.int32, "data", None))),
        "MLP, weights over all": (
            L.jit(L.grad(mlp)), ([S((2048, 2048), bf16, "data", "model")] * 4,
                                 S((64 * n, 2048), bf16, "data", None))),
        "matmul of tiles": (L.jit(lambda a, b: a @ b),
                            (S((4096, 4096), bf16, "data", "model"),) * 2),
        "psum": (L.jit(L.shard_map(lambda x: lax.psum(x @ x.T, "data"), mesh=mesh, in_specs=rows,
                                   out_specs=P())), (S((64 * n, 256), F32, "data", None),)),
        "ring of ppermute": (
            L.jit(L.shard_map(ring, mesh=mesh, in_specs=(rows, rows), out_specs=rows)),
            (S((64 * n, 256), F32, "data", None), S((256 * n, 256), F32, "data", None))),
        "all_to_all": (L.jit(L.shard_map(
            lambda x: lax.all_to_all(x, "data", 0, 1, tiled=True), mesh=mesh, in_specs=columns,
            out_specs=rows)), (S((8 * n, 8 * n), F32, None, "data"),)),
        "sort": (L.jit(np_.sort), (S((64 * n, 256), F32, "data", None),)),
    }
