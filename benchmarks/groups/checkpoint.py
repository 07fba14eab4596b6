"""Temporaries of compiled gradients with and without `checkpoint`, and the time of a step."""

from functools import partial

from ..cases import Figures, Group
from ..clock import stopwatch
from ..inputs import normal

group = Group("checkpoint", "Memory of gradients, with checkpoint and without")


def attention_layer(L, x, p):
    batch, length, width = x.shape
    q, k, v = (a.reshape(batch, length, 4, width // 4) for a in L.np.split(x @ p["qkv"], 3, axis=2))
    scores = L.nn.softmax(L.np.einsum("bthd,bshd->bhts", q, k) / 4.0)
    x = x + L.np.einsum("bhts,bshd->bthd", scores, v).reshape(x.shape) @ p["out"]
    return x + L.nn.gelu(x @ p["up"]) @ p["down"]


def gradient(L, depth, wrapped):
    """Megabytes that the compiled gradient needs besides arguments and results; and a step."""
    layer = partial(attention_layer, L)
    layer = L.checkpoint(layer) if wrapped else layer

    def loss(layers, x):
        for p in layers:
            x = layer(x, p)
        return (x ** 2).mean()

    sizes = {"qkv": (64, 192), "out": (64, 64), "up": (64, 256), "down": (256, 64)}
    layers = [{name: L.array(normal(*size, seed=i, scale=0.1)) for name, size in sizes.items()}
              for i in range(depth)]
    x = L.array(normal(8, 64, 64))
    run = L.jit(L.grad(loss)).lower(layers, x).compile()
    temporaries = run.memory_analysis().temp_size_in_bytes / 2**20
    L.wait(run(layers, x))
    steps = []
    for _ in range(5):
        spent = stopwatch()
        L.wait(run(layers, x))
        steps.append(spent())
    return Figures({"temporaries": temporaries, "step": min(steps)})


for _word, _wrapped in (("plain", False), ("checkpoint", True)):
    for _depth in (4, 8, 16):
        group.case(f"{_word}, n = {_depth}", fresh=True, slow=_depth > 4)(
            partial(gradient, depth=_depth, wrapped=_wrapped))
