"""Programs that go to another process: of rows of the tables, and whole ones.

Run as a program, `artifacts.py FOLDER`, it is that process: it reads each artifact of the folder,
calls it and its gradient, and writes the results beside it.
"""

import sys
from pathlib import Path

import numpy as np

import olympus
import olympus.numpy as onp
from olympus import export, lax, nn, random


def program_of(op, args, kind="f"):
    """A function of the arrays of a kind among a row's arguments, all else closed over."""
    leaves, tree = olympus.tree.flatten(args)
    moves = [isinstance(x, np.ndarray) and x.dtype.kind == kind for x in leaves]

    def fun(*given):
        rest = iter(given)
        return op.fun(*olympus.tree.unflatten(
            tree, [next(rest) if m else x for m, x in zip(moves, leaves, strict=True)]))

    return fun, [x for m, x in zip(moves, leaves, strict=True) if m]


def total(fun):
    """A number that a gradient can be taken of: the sum of all floating results, weighted."""
    def loss(*args):
        parts = [(onp.asarray(x) * onp.linspace(0.5, 1.5, x.size, dtype=x.dtype).reshape(x.shape))
                 .sum() for x in olympus.tree.leaves(fun(*args))
                 if onp.issubdtype(x.dtype, onp.floating)]
        return sum(parts, onp.zeros((), parts[0].dtype)) if parts else onp.zeros(())

    return loss


def write(folder, name, fun, args, gradient):
    """Write an artifact and the arguments of its calls."""
    exported = export.export(olympus.jit(fun), disabled_checks=[
        export.DisabledSafetyCheck.custom_call("ALL")])(*args)
    Path(folder, f"{name}.bin").write_bytes(exported.serialize(vjp_order=int(gradient)))
    np.savez(Path(folder, f"{name}.in.npz"), *olympus.tree.leaves(args))


def run(folder):
    """Call every artifact of a folder."""
    for path in sorted(Path(folder).glob("*.bin")):
        read = export.deserialize(path.read_bytes())
        with np.load(path.with_suffix(".in.npz")) as saved:
            leaves = [saved[name] for name in saved.files]
        args, _ = read.in_tree.unflatten(leaves)
        outs = olympus.tree.leaves(read.call(*args))
        found = [np.asarray(x) for x in outs]
        if read.has_vjp():
            grads = olympus.grad(total(read.call), tuple(range(len(args))))(*args)
            found += [np.asarray(x) for x in olympus.tree.leaves(grads)]
        np.savez(path.with_suffix(".out.npz"), *found)


# Whole programs: name -> (function of floating arrays, arguments, whether it has a gradient)

R = np.random.default_rng(0)


def f32(*shape):
    return R.normal(size=shape).astype(np.float32)


def mlp(x, *layers):
    for w in layers:
        x = onp.tanh(x @ w)
    return nn.log_softmax(x)


def attention(x, qkv, out):
    q, k, v = onp.split((x @ qkv).reshape(2, 6, 2, 12), 3, -1)
    weights = nn.softmax(onp.einsum("bqhd,bkhd->bhqk", q, k) / 2)
    return onp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(2, 6, 8) @ out + x


def lstm(xs, w, u):
    def cell(state, x):
        h, c = state
        i, f, g, o = onp.split(x @ w + h @ u, 4)
        c = nn.sigmoid(f) * c + nn.sigmoid(i) * onp.tanh(g)
        h = nn.sigmoid(o) * onp.tanh(c)
        return (h, c), h

    zero = onp.zeros(u.shape[0])
    return lax.scan(cell, (zero, zero), xs)


def convolutions(x, k):
    y = nn.relu(lax.conv_general_dilated(x, k, (2, 2), "SAME",
                                         dimension_numbers=("NHWC", "HWIO", "NHWC")))
    return lax.reduce_window(y, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") / 4


def adam(w, x, y):
    def step(i, state):
        w, m, v = state
        g = olympus.grad(lambda w: ((x @ w - y) ** 2).mean())(w)
        m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
        return w - 0.1 * m / (onp.sqrt(v) + 1e-3), m, v

    return lax.fori_loop(0, 20, step, (w, onp.zeros_like(w), onp.zeros_like(w)))[0]


def newton(a):
    return lax.while_loop(lambda c: abs(c[0] ** 2 - a[0] ** 2 - 1) > 1e-4,
                          lambda c: ((c[0] + (a[0] ** 2 + 1) / c[0]) / 2, c[1] + 1), (3.0, 0))


def kalman(zs, q):
    def step(state, z):
        mean, var = state
        gain = (var + q[0] ** 2) / (var + q[0] ** 2 + 1)
        return (mean + gain * (z - mean), (1 - gain) * (var + q[0] ** 2)), mean

    return lax.scan(step, (0.0, 1.0), zs)[1]


def life(x):
    def step(_, board):
        near = sum(onp.roll(board, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1))
        return (near == 3) | (board & (near == 4))

    return lax.fori_loop(0, 5, step, (x > 0).astype(int) > 0).sum(0)


def gaussian_process(x, y):
    k = onp.exp(-(x[:, None] - x) ** 2) + 0.1 * onp.eye(len(x))
    low = onp.linalg.cholesky(k)
    alpha = olympus.scipy.linalg.cho_solve((low, True), y)
    return y @ alpha / 2 + onp.log(onp.diagonal(low)).sum()


def viterbi(scores, moves):
    def step(best, s):
        paths = best[:, None] + moves
        return paths.max(0) + s, paths.argmax(0)

    return lax.scan(step, scores[0], scores[1:])


def dropout(x):
    keep = random.bernoulli(random.key(0), 0.5, x.shape)
    return onp.where(keep, x / 0.5, 0.0), random.normal(random.key(1), (3,)) * x[0]


@olympus.custom_vjp
def clipped(x):
    return x ** 3


clipped.defvjp(lambda x: (x ** 3, x), lambda x, ct: (onp.clip(3 * x * x * ct, -1, 1),))


def many_branches(x):
    return lax.switch(onp.argmax(x), [onp.sin, onp.cos, onp.tanh, lambda x: x * x, onp.exp], x)


def kmeans(x, c):
    def step(_, c):
        near = onp.argmin(((x[:, None] - c) ** 2).sum(-1), 1)
        hot = nn.one_hot(near, len(c))
        return (hot.T @ x) / onp.maximum(hot.sum(0)[:, None], 1)

    return lax.fori_loop(0, 4, step, c)


def filtered(x):
    return onp.fft.irfft(onp.fft.rfft(x) * onp.exp(-onp.arange(len(x) // 2 + 1)), len(x))


def norm(x):
    return (x - x.mean(-1, keepdims=True)) / onp.sqrt(x.var(-1, keepdims=True) + 1e-5)


PROGRAMS = {
    "mlp": (mlp, (f32(5, 8), f32(8, 16), f32(16, 4)), True),
    "attention": (attention, (f32(2, 6, 8), f32(8, 24), f32(8, 8)), True),
    "lstm": (lstm, (f32(7, 3), f32(3, 16), f32(4, 16)), True),
    "convolutions": (convolutions, (f32(2, 8, 8, 3), f32(3, 3, 3, 4)), True),
    "adam": (adam, (f32(4), f32(9, 4), f32(9)), False),
    "newton": (newton, (f32(1),), False),
    "kalman": (kalman, (f32(12), f32(1)), True),
    "life": (life, (f32(8, 9),), False),
    "gaussian_process": (gaussian_process, (f32(6), f32(6)), True),
    "viterbi": (viterbi, (f32(6, 4), f32(4, 4)), True),
    "dropout": (dropout, (f32(3),), True),
    "custom_vjp": (lambda x: clipped(x).sum() * x, (f32(3),), True),
    "branches": (many_branches, (f32(5),), True),
    "kmeans": (kmeans, (f32(20, 2), f32(3, 2)), False),
    "filtered": (filtered, (f32(16),), True),
    "norm": (norm, (f32(3, 8),), True),
    "remat": (olympus.checkpoint(lambda x, w: onp.sin(onp.sin(x @ w) @ w)), (f32(4), f32(4, 4)),
              True),
    "least_squares": (lambda a, b: onp.linalg.solve(a.T @ a + onp.eye(3), a.T @ b),
                      (f32(7, 3), f32(7)), True),
    "principal": (lambda x: onp.linalg.svd(x, compute_uv=False), (f32(6, 4),), True),
    "eigenvalues": (lambda a: onp.linalg.eigvalsh(a + a.T), (f32(5, 5),), True),
    "jacobian": (lambda x: olympus.jacfwd(lambda x: onp.sin(x) * x.sum())(x), (f32(4),), True),
    "hessian": (lambda x: olympus.hessian(lambda x: (x ** 3).sum() * x[0])(x), (f32(3),), True),
    "ranks": (lambda x: (onp.sort(x), onp.argsort(x), lax.top_k(x, 3)), (f32(9),), True),
    "segments": (lambda x: olympus.ops.segment_sum(x, np.array([0, 2, 1, 2, 0]), 3), (f32(5, 2),),
                 True),
    "prefixes": (lambda x: (lax.associative_scan(onp.maximum, x), onp.cumsum(x), onp.cumprod(x)),
                 (f32(6),), False),
    "special": (lambda x: (olympus.scipy.special.gammaln(x ** 2 + 1), olympus.scipy.special.erf(x),
                           olympus.scipy.stats.norm.logpdf(x)), (f32(5),), True),
    "resized": (lambda x: olympus.image.resize(x, (5, 7), "bilinear"), (f32(4, 4),), True),
    "interpolated": (lambda x, y: onp.interp(x, onp.arange(5.0), y), (f32(6), f32(5)), True),
    "updates": (lambda x: x.at[1:3].mul(2).at[onp.array([0, 0])].add(x[4]), (f32(5),), True),
    "halves": (lambda x, w: (x.astype("bfloat16") @ w.astype("bfloat16")).astype("float32"),
               (f32(3, 4), f32(4, 2)), True),
    "roots": (lambda c: abs(onp.roots(c, strip_zeros=False)), (f32(4),), False),
    "batched": (olympus.vmap(lambda a, b: onp.linalg.det(a) * b), (f32(4, 3, 3), f32(4)), True),
}

if __name__ == "__main__":
    run(sys.argv[1])
