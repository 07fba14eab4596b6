# pyright: strict
"""Mistakes that type checkers are to find, each on a line that says so. Never run; see test_types.
"""

from __future__ import annotations

import olympus
import olympus.numpy as onp
from olympus import Array, lax, nn, random
from olympus.example_libraries import optimizers


def scaled(x: Array, by: float) -> Array:
    return x * by


key = random.key(0)
x = random.normal(key, (3,))

# Arguments of other types than are declared, or too many of them.
scaled("text", 2.0)  # mistake
scaled(x)  # mistake
scaled(x, 2.0, 3.0)  # mistake
olympus.jit(scaled)(x, "text")  # mistake
olympus.vmap(scaled)("text", 2.0)  # mistake
olympus.grad(scaled)("text", 2.0)  # mistake
olympus.grad(scaled)(x, 2.0, 3.0)  # mistake
olympus.value_and_grad(scaled)(x)  # mistake
olympus.checkpoint(scaled)(x, bye=2.0)  # mistake
olympus.jit(olympus.vmap(scaled))(x, "text")  # mistake
olympus.jit(scaled).lower(x)  # mistake
onp.sin([object()])  # mistake
onp.sum(x, axis="rows")  # mistake
random.normal(key, shape="3")  # mistake
nn.softmax(x, axi=0)  # mistake
onp.reshape(x, (1.5, 2))  # mistake
olympus.jit(scaled, static_argnum=1)  # mistake
optimizers.adam(0.1, b3=0.9)  # mistake
olympus.shard_map(scaled, out_specs=olympus.P())(x, "text")  # mistake
olympus.shard_map(out_specs=olympus.P())(scaled)(x)  # mistake
olympus.smap(scaled, out_axes=0, axis_name="i")(x)  # mistake
olympus.pmap(scaled)(x, 2.0, 3.0)  # mistake
onp.zeros((3,), device="cpu")  # mistake
onp.zeros((3,), out_sharding=olympus.devices()[0])  # mistake

# Names that are not there.
onp.sine(x)  # mistake
onp.linalg.xyz(x)  # mistake
onp.fft.ftt(x)  # mistake
olympus.gard(scaled)  # mistake
lax.ad(x, x)  # mistake
lax.linalg.choleski(x)  # mistake
nn.rellu(x)  # mistake
nn.initializers.glorot(key, (2, 2))  # mistake
random.norml(key)  # mistake
olympus.tree.mapp(onp.sin, x)  # mistake
olympus.jit(scaled).lowered(x, 2.0)  # mistake
olympus.scipy.special.gama(x)  # mistake
print(olympus.scipy.specials)  # mistake
onp.linalg.sdv(x)  # mistake
print(x.shpe)  # mistake
print(x.sharding.is_replicated)  # mistake
print(olympus.devices()[0].platfrm)  # mistake
x.at[0].sett(1)  # mistake

# Results taken for another type.
text: str = onp.sin(x)  # mistake
count: int = x.sum()  # mistake
u, s = onp.linalg.svd(x)  # mistake
(onp.where(x > 0, x, 0)).append(1)  # mistake
q: Array = onp.linalg.qr(x)  # mistake
values: Array = onp.unique(x, return_counts=True)  # mistake
pair: tuple[Array, Array, Array] = olympus.value_and_grad(scaled)(x, 2.0)  # mistake
name: int = olympus.jit(scaled)(x, 2.0)  # mistake
label: str = lax.add(x, x)  # mistake
mean: str = lax.pmean(x, "i")  # mistake
draw: int = random.normal(key, (3,))  # mistake
shown: bytes = nn.softmax(x)  # mistake
rows: list[int] = olympus.vmap(scaled)(x, 2.0)  # mistake
part: int = olympus.shard_map(scaled, out_specs=olympus.P())(x, 2.0)  # mistake
steps: int = olympus.pmap(scaled).lower(x, 2.0)  # mistake
factors: tuple[Array, Array] = lax.linalg.qdwh(x)  # mistake

# What an immutable array refuses.
x[0] = 1.0  # mistake
x.shape = (3, 1)  # mistake
del x[0]  # mistake
