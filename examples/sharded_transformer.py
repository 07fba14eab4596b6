"""Train a small transformer with data and tensor parallelism, on however many devices there are.

    python examples/sharded_transformer.py
    OLYMPUS_NUM_CPU_DEVICES=8 python examples/sharded_transformer.py

The program is the same on one device and on eight, and so are its numbers. Axes of the mesh are
explicit: types say how each value is cut, and the lines below that say `out_sharding` are those
where they leave it open, which is where devices communicate.

    batch over "data"             heads and hidden units over "model"

            tokens [B@data, T]
                │ embed                          every device
            x [B@data, T, E]  ◄───────────────┐
                │ queries, keys, values [E, 3, H@model, D]
            attention [B@data, T, H@model, D] │
                │ out [H@model, D, E]         │  sum over "model"
                ├─────────────────────────────┤
                │ up [E, F@model]             │
            hidden [B@data, T, F@model]       │
                │ down [F@model, E]           │  sum over "model"
                └─────────────────────────────┘

It learns to go on counting: sequences n, n + s, n + 2 s … modulo the size of the vocabulary.
"""

import argparse

import numpy as np

import olympus
import olympus.numpy as onp
from olympus import nn, random
from olympus.sharding import PartitionSpec as P

WORDS, LENGTH, WIDTH, HEADS, HIDDEN, BLOCKS = 32, 16, 64, 4, 256, 2
BATCH, STEPS, RATE = 32, 60, 3e-3

SPECS = {   # of the weights of a block
    "qkv": P(None, None, "model", None), "out": P("model", None, None),
    "up": P(None, "model"), "down": P("model", None), "scale": P(None, None),
}
BY_ROWS = P("data", None, None)     # of what flows from block to block


def make_mesh():
    """Devices as data × model: 1 × 1, 2 × 1, 2 × 2, 4 × 2 …"""
    count = 1 << (len(olympus.devices()).bit_length() - 1)
    model = 2 if count >= 4 else 1
    return olympus.make_mesh((count // model, model), ("data", "model"))


def init(key):
    """Weights, each made where it belongs: no device holds all of them."""
    def weight(key, shape, spec):
        scale = 1 / np.sqrt(WIDTH)
        return scale * random.normal(key, shape, out_sharding=spec)

    shapes = {"qkv": (WIDTH, 3, HEADS, WIDTH // HEADS), "out": (HEADS, WIDTH // HEADS, WIDTH),
              "up": (WIDTH, HIDDEN), "down": (HIDDEN, WIDTH)}
    key, words, places = random.split(key, 3)
    blocks = []
    for one in random.split(key, BLOCKS):
        keys = dict(zip(shapes, random.split(one, len(shapes)), strict=True))
        blocks.append({name: weight(keys[name], shape, SPECS[name])
                       for name, shape in shapes.items()}
                      | {"scale": onp.ones((2, WIDTH), out_sharding=SPECS["scale"])})
    return {"words": weight(words, (WORDS, WIDTH), P()),
            "places": weight(places, (LENGTH, WIDTH), P()), "blocks": blocks}


def block(w, x):
    """x: float32[B@data,T,E] -> the same."""
    normal = nn.standardize(x) * w["scale"][0]
    qkv = onp.einsum("bte,ekhd->kbthd", normal, w["qkv"])       # [3,B@data,T,H@model,D]
    scores = onp.einsum("bthd,bshd->bhts", qkv[0], qkv[1]) / np.sqrt(WIDTH // HEADS)
    causal = np.tri(LENGTH, dtype=bool)
    mixed = onp.einsum("bhts,bshd->bthd", nn.softmax(onp.where(causal, scores, -1e9)), qkv[2])
    x += onp.einsum("bthd,hde->bte", mixed, w["out"], out_sharding=BY_ROWS)
    hidden = nn.gelu(onp.einsum("bte,ef->btf", nn.standardize(x) * w["scale"][1], w["up"]))
    return x + onp.einsum("btf,fe->bte", hidden, w["down"], out_sharding=BY_ROWS)


def loss(params, tokens):
    """The mean cross-entropy of each next token; tokens: int32[B@data,T+1]."""
    x = params["words"].at[tokens[:, :-1]].get(out_sharding=BY_ROWS) + params["places"]
    for w in params["blocks"]:
        x = block(w, x)
    logits = onp.einsum("bte,we->btw", nn.standardize(x), params["words"])
    right = nn.one_hot(tokens[:, 1:], WORDS)
    return -(nn.log_softmax(logits) * right).sum(-1).mean()


@olympus.jit
def step(params, moments, tokens):
    """One step of Adam without bias correction; gradients are cut as the weights are."""
    value, grads = olympus.value_and_grad(loss)(params, tokens)
    first = olympus.tree.map(lambda m, g: 0.9 * m + 0.1 * g, moments[0], grads)
    second = olympus.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, moments[1], grads)
    params = olympus.tree.map(lambda p, m, v: p - RATE * m / (onp.sqrt(v) + 1e-4), params, first,
                              second)
    return params, (first, second), value


def batches():
    """Endless arrays of counting sequences, int32[BATCH, LENGTH + 1]."""
    rng = np.random.default_rng(0)
    while True:
        start, stride = rng.integers(0, WORDS, (2, BATCH, 1))
        yield ((start + stride % 5 * np.arange(LENGTH + 1)) % WORDS).astype(np.int32)


def main(steps):
    """Train, and print what is where."""
    mesh = make_mesh()
    print(f"mesh: {dict(mesh.shape)}")
    with olympus.set_mesh(mesh):
        params = init(random.key(0))
        zeros = olympus.tree.map(onp.zeros_like, params)
        moments = zeros, zeros
        for name, w in params["blocks"][0].items():
            print(f"  {name:6} {olympus.typeof(w)}")
        for i, tokens in zip(range(steps), batches(), strict=False):
            params, moments, value = step(params, moments,
                                          olympus.device_put(tokens, P("data", None)))
            if i % 10 == 0 or i == steps - 1:
                print(f"step {i:3}: loss {float(value):.4f}")
    return float(value)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=STEPS)
    main(parser.parse_args().steps)
