"""Mistakes that users make, a line of code each: what they are told is in data/messages.txt.

    PYTHONPATH=. python tests/mistakes.py

writes that file anew; its difference is what a change of messages is reviewed by.
"""

from __future__ import annotations

import linecache
import pathlib
import threading
from typing import Any

import numpy as np

import olympus
import olympus.numpy as onp
from olympus import (
    P,
    checkpoint,
    custom_jvp,
    custom_vjp,
    debug,
    export,
    grad,
    jit,
    jvp,
    lax,
    linear_transpose,
    nn,
    random,
    scipy,
    tree,
    vjp,
    vmap,
)

FILE = pathlib.Path(__file__).parent / "data" / "messages.txt"
PLACE = "<mistake>"     # the file of each line of code, for messages that name it


class Layer:
    """An object with arrays, as a model's."""

    def __init__(self) -> None:
        self.w, self.b = onp.ones((8, 4)), onp.ones(3)


def leaked(transformed: Any, *args: Any) -> Any:
    """A tracer of the function that a transformation was given."""
    kept: list[Any] = []
    transformed(lambda x: kept.append(x * 2) or x)(*args)
    return kept[0]


def in_thread(fun: Any, x: Any) -> Any:
    """Call `fun(x)` in another thread, and raise what it raised."""
    raised: list[BaseException] = []

    def work() -> None:
        try:
            fun(x)
        except TypeError as error:
            raised.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    raise raised[0]


def names() -> dict[str, Any]:
    """What a line of code may use."""
    @custom_vjp
    def ruled(x: Any) -> Any:
        return x * 2

    @custom_jvp
    def forward(x: Any) -> Any:
        return x * 2

    return {
        "olympus": olympus, "onp": onp, "np": np, "jit": jit, "grad": grad, "vmap": vmap,
        "jvp": jvp, "vjp": vjp, "lax": lax, "nn": nn, "random": random, "scipy": scipy,
        "tree": tree, "debug": debug, "export": export, "checkpoint": checkpoint, "P": P,
        "linear_transpose": linear_transpose, "leaked": leaked, "in_thread": in_thread,
        "ruled": ruled, "forward": forward, "layer": Layer(),
        "x": onp.ones(3), "y": onp.ones(4), "n": onp.arange(3), "a": onp.ones((2, 3)),
        "b": onp.ones((4, 5)), "s": onp.float32(1), "z": onp.ones(3) + 1j, "mask": onp.ones(3) > 0,
        "params": {"w": onp.ones((8, 16)), "b": onp.ones(16)}, "key": random.key(0),
    }


def told(code: str) -> tuple[str, str]:
    """(the class, the message) of what a line of code raises."""
    linecache.cache[PLACE] = (len(code), None, [f"{line}\n" for line in code.split("\n")], PLACE)
    try:
        exec(compile(code, PLACE, "exec"), names())
    except Exception as error:
        return type(error).__name__, str(error).rstrip()
    return "nothing", "no exception"


def rows() -> dict[str, tuple[str, str]]:
    """{code: (class, message)} as the file has it."""
    found = {}
    for row in FILE.read_text(encoding="utf-8").split("\n\n>>> ")[1:]:
        code, _, rest = row.rstrip("\n").partition("\n")
        kind, _, message = rest.partition("\n")
        found[code] = kind, message
    return found


HEAD = """What users are told: tests/mistakes.py writes this, and tests/test_messages.py compares it."""


def written() -> str:
    """The file as it should be."""
    return HEAD + "".join([f"\n\n>>> {code}\n{kind}\n{message}"
                           for code in MISTAKES for kind, message in [told(unfolded(code))]]) + "\n"


def unfolded(code: str) -> str:
    r"""The code of a row: `\n` in it ends a line."""
    return code.replace("\\n", "\n")


MISTAKES = [line for line in r"""
def f(x):\n  if x > 0:\n    return x\n  return -x\njit(f)(1.0)
def f(x):\n  if x > 0:\n    return x\n  return -x\nvmap(f)(x)
def f(x):\n  while x < 9:\n    x = x * 2\n  return x\njit(f)(1.0)
def f(x):\n  if x < 0: return 0\n  elif x < 1: return 1\n  return 2\njit(f)(1.0)
def f(x):\n  assert x > 0\n  return x\njit(f)(1.0)
jit(lambda x: 1 if x > 0 else 2)(1.0)
jit(lambda x: x > 0 and x < 1)(0.5)
jit(lambda x: not x)(0.5)
jit(lambda x: max(x, 0.0))(0.5)
jit(lambda x: sorted(x))(x)
jit(lambda d: 1 if d['lr'] > 0 else 2)({'lr': 0.1})
lax.scan(lambda c, x: (c if x > 0 else 0.0, None), 0.0, x)
lax.fori_loop(0, 3, lambda i, c: c if i else c + 1, 1.0)
lax.cond(True, lambda x: 1 if x else 2, lambda x: 2, 1.0)
checkpoint(lambda x: x if x > 0 else -x)(1.0)
jit(vmap(lambda x: x if x > 0 else -x))(x)
grad(jit(lambda x: x if x > 0 else -x))(1.0)
jit(lambda x: float(x))(1.0)
jit(lambda x: int(x))(1.0)
jit(lambda x: complex(x))(1.0)
jit(lambda x: x.item())(1.0)
jit(lambda x: x.tolist())(x)
vmap(lambda x: x.item())(x)
jit(lambda x: f'{x:.2f}')(1.0)
jit(lambda x: round(float(x.sum())))(x)
jit(lambda x: x.tobytes())(x)
import pickle; jit(lambda x: pickle.dumps(x))(1.0)
grad(lambda x: x * float(x))(1.0)
jit(lambda n: onp.zeros(n))(3)
jit(lambda n: onp.ones((2, n)))(3)
jit(lambda n: onp.arange(n))(3)
jit(lambda n: onp.linspace(0, 1, n))(3)
jit(lambda n: x.reshape(n, -1))(3)
jit(lambda m: onp.nonzero(m))(mask)
jit(lambda m: onp.where(m))(mask)
jit(lambda x: onp.unique(x))(x)
jit(lambda r: onp.repeat(x, r))(n)
jit(lambda x: x[:x.sum().astype(int)])(x)
jit(lambda i: x[i:i + 2])(1)
jit(lambda x: onp.sum(x, axis=x[0].astype(int)))(x)
jit(lambda x: np.sin(x))(1.0)
jit(lambda x: np.asarray(x))(1.0)
vmap(lambda x: np.sin(x))(x)
jit(lambda x: np.add(x, 1.0) if False else np.stack([x, x]))(1.0)
def f(x):\n  a = np.zeros(3)\n  a[0] = x\n  return a\njit(f)(1.0)
def f(x):\n  a = np.zeros(3)\n  a[:] = x\n  return a\njit(f)(x)
jit(lambda x: scipy.special.gamma(np.array([x])))(1.0)
jit(lambda n: list(range(n)))(3)
jit(lambda i: [1, 2, 3][i])(1)
jit(lambda i: 'abc' * i)(2)
jit(lambda i: (1, 2, 3)[i:])(1)
jit(lambda x: x[x > 0])(x)
vmap(lambda x: x[x > 0])(a)
jit(lambda x, m: x.at[m].set(x[m]))(x, mask)
onp.sin(leaked(jit, 1.0))
onp.sin(leaked(grad, 1.0))
onp.sin(leaked(vmap, x))
leaked(jit, 1.0) + 1
jit(lambda y: y + leaked(jit, 1.0))(1.0)
jit(lambda x: in_thread(onp.sin, x))(1.0)
with olympus.checking_leaks(): leaked(jit, 1.0)
with olympus.checking_leaks(): leaked(vmap, x)
x[0] = 1.0
x[1:] += y[1:]
a[0, 1] *= 2.0
params['w'][0] = params['b']
def f(x):\n  x[0] = 1.0\n  return x\njit(f)(x)
del x[0]
x['first']
x[1.5]
x[0, 1]
x[5]
x[None, 'a']
a[n[:2], n]
x[mask[:2]]
x.at[5].set(1.0)
x.at[0].set('a')
x.at[0].set(y)
x.at['a'].set(1.0)
x + y
a + params['b']
jit(lambda p, x: x @ p['w'] + p['b'])(params, b)
jit(lambda p, x: onp.dot(x, p['w']))(params, x)
vmap(lambda p, x: onp.dot(x, p['w']), in_axes=(None, 0))(params, b)
grad(lambda p, x: (x @ p['w']).sum())(params, b)
a @ layer.w
layer.b + layer.w
onp.dot(x, y)
onp.dot(a, b)
onp.matmul(s, a)
onp.vdot(x, y)
onp.inner(a, b)
onp.tensordot(a, b, 1)
onp.einsum('ij,jk', a, b)
onp.einsum('ij,jk->ik', a)
onp.einsum('ijk,kl', a, b)
onp.einsum('ii', a)
onp.einsum('ij->ijk', a)
onp.cross(y, y)
onp.concatenate([a, b])
onp.concatenate([])
onp.stack([x, y])
onp.vstack([x, y])
onp.where(mask, x, y)
onp.broadcast_to(x, (4,))
x.reshape(4)
onp.transpose(a, (0, 0))
onp.squeeze(a, 0)
onp.sum(a, axis=2)
onp.sum([1.0, 2.0])
onp.split(x, 2)
onp.zeros(-1)
onp.zeros(2.5)
onp.zeros(3, 'float31')
onp.array([1, [2, 3]])
onp.array('text')
onp.array(2**40)
onp.array(300, 'uint8')
onp.array([1j], 'float32')
onp.clip(z, 0, 1)
onp.linalg.inv(a)
onp.linalg.solve(a, x)
onp.linalg.cholesky(n)
lax.add(x, n)
lax.add(x, y)
lax.sin(n)
lax.dot_general(a, b, (((1,), (0,)), ((), ())))
lax.concatenate([a, b], 0)
lax.dynamic_slice(x, (0,), (5,))
lax.conv(a, b, (1, 1), 'SAME')
lax.psum(x, 'i')
x * '2'
'2' * x
x + 'a'
x + [1.0]
x + None
x < 'a'
jit(lambda x: x * '2')(1.0)
jit(lambda x: x + [1.0])(1.0)
onp.add(x, 'a')
onp.bitwise_and(x, x)
x << 1
bool(x)
float(x)
float(z[0])
int(x)
len(s)
[v for v in s]
jit(lambda x: {x: 1})(1.0)
jit(lambda x: {x})(1.0)
vmap(lambda x: {x: 1})(x)
jit(lambda x: x.block_until_ready())(1.0)
jit(lambda x: x.sharding)(1.0)
jit(lambda x: x)('text')
jit(lambda t: t)({'a': [1.0, 'text']})
jit(lambda x: 'text')(1.0)
jit(lambda x: x)(2**40)
jit(3)
jit(lambda x, n: x, static_argnums=1).trace(1.0, [2])
jit(lambda x, n: x, static_argnums=1).trace(1.0, x)
jit(lambda x: x, static_argnames='m')
jit(lambda x: x, static_argnums=5)(1.0)
jit(lambda x: x, donate_argnums=3)(x)
f = jit(lambda s: s + 1, donate_argnums=0); f(x); x + 1
x.delete(); onp.sin(x)
grad(lambda x: x)(x)
grad(lambda x: x * x)(3)
grad(lambda x: x.astype(int))(1.0)
grad(lambda x: (x, x))(1.0)
grad(lambda x: z.sum() * x)(1.0)
grad(lambda p, x: x @ p['w'])(params, params['b'][:8])
grad(lambda x: x, argnums=3)(1.0)
grad(lambda x: x)('text')
grad(3)
olympus.value_and_grad(lambda x: x * 2)(x)
olympus.value_and_grad(lambda x: x, has_aux=True)(1.0)
jvp(lambda x: x, (x,), (y,))
jvp(lambda x: x, (x,), (n,))
jvp(lambda x: x, x, x)
vjp(lambda x: x, x)[1](y)
jvp(ruled, (1.0,), (1.0,))
grad(ruled)(1.0)
grad(forward)(1.0)
linear_transpose(lax.sin, s)(s)
grad(lambda x: lax.while_loop(lambda v: v < 9, lambda v: v * 2, x))(1.0)
vmap(lambda p, x: x)({'w': x, 'b': y}, x)
vmap(lambda x, y: x)(x, y)
vmap(lambda x: x, in_axes=1)(x)
vmap(lambda x: x)(s)
vmap(lambda x: x, in_axes=None)(x)
vmap(lambda x, y: x, in_axes=(0,))(x, y)
vmap(lambda p: p, in_axes=({'w': 0},))({'v': x})
vmap(lambda x: x)('text')
vmap(lambda x: x, out_axes=3)(x)
lax.scan(lambda c, x: (c.astype(int), x), 1.0, x)
lax.scan(lambda c, x: (c[None], x), 1.0, x)
lax.scan(lambda c, x: c, 1.0, x)
lax.scan(lambda c, x: ({'h': c, 'k': c}, x), {'h': 1.0}, x)
lax.scan(lambda c, x: ({'h': c['h'] + y}, x), {'h': x[:1]}, x)
lax.scan(lambda c, x: (c, x), 1.0, (x, y))
lax.scan(lambda c, x: (c, x), 1.0, None)
lax.while_loop(lambda c: c < 3, lambda c: c.astype(int), 1.0)
lax.while_loop(lambda c: c, lambda c: c, x)
lax.while_loop(lambda c: c < 3, lambda c: (c, c), 1.0)
lax.fori_loop(0, 3, lambda i, c: c[None], x)
lax.cond(True, lambda x: x, lambda x: (x, x), 1.0)
lax.cond(True, lambda x: x, lambda x: x.astype(int), 1.0)
lax.cond(True, lambda x: x, lambda x: x[None], 1.0)
lax.cond(x > 0, lambda: 1, lambda: 2)
lax.cond(None, lambda: 1, lambda: 2)
lax.switch(0, [])
lax.switch(1.5, [lambda: 1, lambda: 2])
lax.map(lambda x: x, s)
lax.associative_scan(lambda p, q: p, s)
random.normal(0)
random.normal(x)
random.normal(params)
random.normal(key, 2.5)
random.normal(key, (2,), 'int32')
random.split(3)
random.key(1.5)
random.key(key)
key + 1
key < key
random.choice(key, x, (5,), replace=False)
random.permutation(key, 'text')
with olympus.debug_key_reuse(True): random.normal(key) + random.uniform(key)
debug.print('{} {}', 1.0)
tree.map(lambda a, b: a, {'a': 1}, {'b': 1})
tree.map(lambda a, b: a, [1, 2], [1])
nn.softmax(x, axis=3)
nn.one_hot(n, 2.5)
nn.dot_product_attention(x, x, x)
nn.initializers.lecun_normal()(key, (3,))
olympus.device_put(x, 'gpu')
olympus.devices('abc')
olympus.eval_shape(lambda x: x, 'text')
olympus.config.update('olympus_enable_x64', 'perhaps')
olympus.config.update('olympus_nonsense', 1)
olympus.pure_callback(lambda x: x, x, 'text')
vmap(lambda x: olympus.pure_callback(lambda v: v, x, x))(x)
m, = export.symbolic_shape('m'); m > 5
with olympus.numpy_dtype_promotion('strict'): x + n
with olympus.numpy_rank_promotion('raise'): a + x
with olympus.debug_nans(True): onp.log(-s)
""".split("\n") if line]


if __name__ == "__main__":
    FILE.write_text(written(), encoding="utf-8")
