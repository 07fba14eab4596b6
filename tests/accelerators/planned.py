"""Three programs whose plans are looked at: a transformer's step, a convolution net's, a stencil.

Each has a function of no arguments that gives the types of its arguments, cut over named axes.
"""

import olympus
import olympus.nn as nn
import olympus.numpy as onp
from olympus import lax
from olympus.sharding import PartitionSpec as P

BF16 = onp.bfloat16


def spec(shape, *axes, dtype=BF16):
    return olympus.ShapeDtypeStruct(shape, dtype, sharding=P(*axes))


# A transformer: batches over "data", heads and hidden units over "model" ------------------------

LAYERS, WIDTH, HEADS, HIDDEN, WORDS, LENGTH, BATCH = 4, 1024, 8, 4096, 32768, 512, 32


def transformer_arguments():
    layers = {"qkv": spec((LAYERS, WIDTH, 3, HEADS, WIDTH // HEADS), None, "data", None, "model"),
              "out": spec((LAYERS, HEADS, WIDTH // HEADS, WIDTH), None, "model", None, "data"),
              "up": spec((LAYERS, WIDTH, HIDDEN), None, "data", "model"),
              "down": spec((LAYERS, HIDDEN, WIDTH), None, "model", "data")}
    weights = {"layers": layers, "words": spec((WORDS, WIDTH), "model", "data")}
    return weights, spec((BATCH, LENGTH), "data", dtype=onp.int32)


def block(x, w):
    x = lax.with_sharding_constraint(x, P("data"))      # weights are gathered, not activations
    q, k, v = onp.moveaxis(onp.einsum("bld,dchk->blchk", normal(x), w["qkv"]), 2, 0)
    x = x + onp.einsum("blhk,hkd->bld", nn.dot_product_attention(q, k, v, is_causal=True),
                       w["out"])
    return x + nn.gelu(normal(x) @ w["up"]) @ w["down"], None


def normal(x):
    wide = x.astype(onp.float32)
    return (wide * lax.rsqrt((wide ** 2).mean(-1, keepdims=True) + 1e-6)).astype(x.dtype)


def transformer_loss(weights, words):
    x = weights["words"][words]
    x, _ = lax.scan(olympus.checkpoint(block), x, weights["layers"])
    logits = (normal(x) @ weights["words"].T).astype(onp.float32)
    at = onp.take_along_axis(logits[:, :-1], words[:, 1:, None], -1)[..., 0]
    return (nn.logsumexp(logits[:, :-1], -1) - at).mean()


def descended(loss):
    def step(weights, *data):
        slopes = olympus.grad(loss)(weights, *data)
        return olympus.tree.map(lambda w, g: w - (1e-3 * g).astype(w.dtype), weights, slopes)
    return step


transformer_step = olympus.jit(descended(transformer_loss), donate_argnums=0)


# A residual net of convolutions over images ------------------------------------------------------

CHANNELS, BLOCKS, IMAGES, SIDE = 64, 3, 256, 128


def convolution_arguments():
    weights, before = [spec((7, 7, 3, CHANNELS))], CHANNELS
    for n in range(BLOCKS):
        after = CHANNELS * 2 ** n
        weights.append((spec((3, 3, before, after)), spec((3, 3, after, after)),
                        spec((1, 1, before, after))))
        before = after
    weights.append(spec((before, 1000)))
    return weights, spec((IMAGES, SIDE, SIDE, 3), "data"), spec((IMAGES,), "data", dtype=onp.int32)


def convolved(x, w, stride=1):
    return lax.conv_general_dilated(x, w, (stride, stride), "SAME",
                                    dimension_numbers=("NHWC", "HWIO", "NHWC"))


def convolution_loss(weights, images, labels):
    first, *blocks, last = weights
    x = nn.relu(convolved(images, first, 2))
    for a, b, across in blocks:
        x = nn.relu(convolved(nn.relu(convolved(x, a, 2)), b) + convolved(x, across, 2))
    logits = (x.mean((1, 2)) @ last).astype(onp.float32)
    return -nn.log_softmax(logits)[onp.arange(len(labels)), labels].mean()


convolution_step = descended(convolution_loss)


# The wave equation in three dimensions, the grid cut over two axes -------------------------------

GRID, STEPS = 512, 100


def stencil_arguments():
    grid = spec((GRID, GRID, GRID), "x", "y", dtype=onp.float32)
    return grid, grid


def neighbours(u, axis, name):
    """A part with one layer of the parts beside it."""
    size = lax.axis_size(name)
    rows = [(n, (n + 1) % size) for n in range(size)]
    first, last = lax.slice_in_dim(u, 0, 1, axis=axis), lax.slice_in_dim(u, -1, None, axis=axis)
    return onp.concatenate([lax.ppermute(last, name, rows), u, lax.ppermute(
        first, name, [(b, a) for a, b in rows])], axis)


def stepped(state, _):
    before, u = state
    wide = onp.pad(neighbours(neighbours(u, 0, "x"), 1, "y"), [(0, 0), (0, 0), (1, 1)], "wrap")
    around = (wide[2:, 1:-1, 1:-1] + wide[:-2, 1:-1, 1:-1] + wide[1:-1, 2:, 1:-1]
              + wide[1:-1, :-2, 1:-1] + wide[1:-1, 1:-1, 2:] + wide[1:-1, 1:-1, :-2])
    return (u, 2 * u - before + 0.1 * (around - 6 * u)), None


@olympus.jit
def waves(before, u):
    def part(before, u):
        return lax.scan(stepped, (before, u), None, length=STEPS)[0]
    return olympus.shard_map(part, in_specs=P("x", "y"), out_specs=P("x", "y"))(before, u)
