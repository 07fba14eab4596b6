"""How explicit mesh axes pass through operations: generated calls beside JAX's.

    PYTHONPATH=. python tools/explicit_sweep.py --jax /path/to/python [--per-op 12] [--seed 0]

Each call is an expression of CALLS on operands of given shapes, whose specifications are drawn over
a mesh of 4 x 2 explicit devices. Both packages trace it, each in a process of its own (this file is
run by the other Python, too), and give the specifications of the results or the class of the error.
KNOWN has the calls whose difference is meant, with the reason. Exits with 1 for any other that JAX
answers; where JAX refuses (it joins no cut operand with a whole one in select, concatenate and
vmap), Olympus may answer, and --refused shows it.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import json
import random
import subprocess
import sys
from typing import Any

A, B, V, M, T = (8, 4), (4, 8), (8,), (8, 8), (8, 4, 2)
CALLS: list[tuple[str, list[tuple[Any, ...]]]] = [
    # elementwise and broadcasting
    ("lax.sin(a)", [A]), ("np.add(a, b)", [A, A]), ("np.add(a, b)", [A, (4,)]),
    ("np.add(a, b)", [A, (1, 4)]), ("np.multiply(a, b)", [A, (8, 1)]), ("a * 2.0", [A]),
    ("np.add(a, b)", [A, ()]), ("a + b", [T, (4, 2)]), ("lax.atan2(a, b)", [A, A]),
    ("np.where(a > 0, a, b)", [A, A]), ("np.where(a > 0, a, 0.0)", [A]),
    ("np.where(c > 0, a, b)", [A, A, (8, 1)]), ("lax.select(a > 0, a, b)", [A, A]),
    ("lax.clamp(0.0, a, 1.0)", [A]), ("np.clip(a, 0, 1)", [A]), ("a.astype('int32')", [A]),
    ("np.isnan(a)", [A]), ("np.logaddexp(a, b)", [A, A]), ("nn.relu(a)", [A]), ("nn.gelu(a)", [A]),
    ("lax.is_finite(a)", [A]), ("lax.integer_pow(a, 3)", [A]), ("np.sign(a)", [A]),
    ("lax.bitcast_convert_type(a, 'int32')", [A]), ("lax.erf(a)", [A]), ("np.round(a)", [A]),
    ("lax.reduce_precision(a, 5, 2)", [A]), ("np.nan_to_num(a)", [A]),
    ("lax.complex(a, b)", [A, A]),
    # shape
    ("np.transpose(a)", [A]), ("np.transpose(a, (2, 0, 1))", [T]), ("np.moveaxis(a, 0, 2)", [T]),
    ("np.swapaxes(a, 0, 1)", [T]), ("np.expand_dims(a, 1)", [A]), ("np.squeeze(a, 1)", [(8, 1, 4)]),
    ("np.reshape(a, (8, 2, 2))", [A]), ("np.reshape(a, (4, 2, 4))", [A]), ("np.ravel(a)", [A]),
    ("np.reshape(a, (32,))", [A]), ("np.reshape(a, (4, 8))", [A]),
    ("np.reshape(a, (2, 4, 4))", [A]), ("np.reshape(a, (8, 8))", [T]),
    ("np.reshape(a, (32, 2))", [T]), ("np.reshape(a, (64,))", [T]),
    ("np.reshape(a, (1, 8, 4))", [A]), ("np.reshape(a, (8, 1, 4, 1))", [A]),
    ("np.reshape(a, (8, 4))", [A]), ("np.reshape(a, (8,))", [(8, 1)]),
    ("np.broadcast_to(a, (3, 8, 4))", [A]), ("np.broadcast_to(a, (8, 4))", [(8, 1)]),
    ("np.broadcast_to(a, (8, 4))", [(4,)]), ("lax.broadcast(a, (2,))", [A]),
    ("lax.broadcast_in_dim(a, (8, 3, 4), (0, 2))", [A]), ("np.tile(a, (2, 1))", [A]),
    ("np.repeat(a, 2, 0)", [A]), ("np.repeat(a, 2, 1)", [A]), ("np.flip(a, 0)", [A]),
    ("np.roll(a, 1, 0)", [A]), ("np.rot90(a)", [A]), ("np.atleast_2d(a)", [V]),
    ("np.concatenate([a, b], 0)", [A, A]), ("np.concatenate([a, b], 1)", [A, A]),
    ("np.stack([a, b])", [A, A]), ("np.stack([a, b], 1)", [A, A]), ("np.hstack([a, b])", [A, A]),
    ("np.vstack([a, b])", [A, A]), ("np.split(a, 2, 0)", [A]), ("np.split(a, 2, 1)", [A]),
    ("np.pad(a, 1)", [A]), ("np.pad(a, ((0, 0), (2, 2)))", [A]),
    ("lax.pad(a, 0.0, ((4, 4, 0), (0, 0, 0)))", [A]), ("np.diagonal(a)", [M]), ("np.trace(a)", [M]),
    ("np.tril(a)", [M]), ("np.meshgrid(a, b)", [V, (4,)]), ("np.diag(a)", [V]),
    ("lax.rev(a, (0, 1))", [A]), ("np.append(a, b, 0)", [A, A]), ("np.unstack(a)", [(2, 8)]),
    ("lax.collapse(a, 0, 2)", [T]), ("lax.squeeze(a, (0,))", [(1, 8)]),
    # reductions and scans
    ("np.sum(a)", [A]), ("np.sum(a, 0)", [A]), ("np.sum(a, 1)", [A]), ("np.mean(a, 0)", [A]),
    ("np.sum(a, (0, 2))", [T]), ("np.sum(a, 1, keepdims=True)", [A]), ("np.max(a, 0)", [A]),
    ("np.argmax(a, 0)", [A]), ("np.argmax(a, 1)", [A]), ("np.var(a, 1)", [A]),
    ("np.all(a > 0)", [A]), ("np.any(a > 0, 0)", [A]), ("np.prod(a, 1)", [A]),
    ("np.cumsum(a, 0)", [A]), ("np.cumsum(a, 1)", [A]), ("lax.cummax(a, 0)", [A]),
    ("lax.cumlogsumexp(a, 1)", [A]), ("np.sort(a, 0)", [A]), ("np.sort(a, 1)", [A]),
    ("np.argsort(a, 1)", [A]), ("lax.top_k(a, 2)", [A]), ("nn.softmax(a, 1)", [A]),
    ("nn.softmax(a, 0)", [A]), ("nn.logsumexp(a, 1)", [A]), ("nn.standardize(a, 1)", [A]),
    ("np.median(a, 1)", [A]), ("lax.sort((a, b), dimension=1, num_keys=1)", [A, A]),
    ("np.linalg.norm(a)", [A]), ("np.linalg.norm(a, axis=1)", [A]),
    ("lax.reduce(a, 0.0, lax.add, (0,))", [A]), ("lax.associative_scan(lax.add, a, axis=1)", [A]),
    ("np.count_nonzero(a, 0)", [A]),
    # contractions
    ("np.dot(a, b)", [A, B]), ("np.matmul(a, b)", [A, B]), ("a @ b", [A, (4,)]), ("a @ b", [V, A]),
    ("np.dot(a, b)", [V, V]), ("np.matmul(a, b)", [(2, 8, 4), (2, 4, 8)]),
    ("np.matmul(a, b)", [(2, 8, 4), B]), ("np.einsum('ij,jk->ik', a, b)", [A, B]),
    ("np.einsum('ij,kj->ki', a, b)", [A, A]),
    ("np.einsum('bij,bjk->bik', a, b)", [(2, 8, 4), (2, 4, 8)]), ("np.einsum('ij->ji', a)", [A]),
    ("np.einsum('ij->i', a)", [A]), ("np.outer(a, b)", [V, V]), ("np.tensordot(a, b, 1)", [A, B]),
    ("np.vdot(a, b)", [V, V]), ("np.inner(a, b)", [A, A]), ("np.kron(a, b)", [(2, 2), (4, 4)]),
    ("np.cross(a, b)", [(8, 3), (8, 3)]),
    ("lax.dot_general(a, b, (((1,), (1,)), ((0,), (0,))))", [T, (8, 4, 4)]),
    ("lax.batch_matmul(a, b)", [(2, 8, 4), (2, 4, 8)]), ("np.vecdot(a, b)", [A, A]),
    # indexing
    ("a[0]", [A]), ("a[:, 0]", [A]), ("a[2:6]", [A]), ("a[:4]", [A]), ("a[::2]", [A]),
    ("a[None]", [A]), ("a[..., None]", [A]), ("a[::-1]", [A]), ("a[:, 1:3]", [A]), ("a[-1]", [A]),
    ("a[i]", [A]), ("a[:, i]", [A]), ("np.take(a, i, 0)", [A]), ("np.take(a, i, 1)", [A]),
    ("a[i, i]", [A]), ("np.take_along_axis(a, b, 1)", [A, (8, 2, 'i')]), ("a[b]", [A, (8, 'i')]),
    ("a[b]", [A, (4, 2, 'i')]), ("a.at[0].set(0.0)", [A]), ("a.at[i].add(1.0)", [A]),
    ("a.at[:, 0].set(b)", [A, V]), ("a.at[2:4].set(b)", [A, (2, 4)]),
    ("a.at[:, 1:3].add(b)", [A, (8, 2)]), ("a.at[i].set(b)", [A, (3, 4)]),
    ("lax.dynamic_slice(a, (0, 0), (4, 4))", [A]), ("lax.dynamic_slice_in_dim(a, 1, 4, 0)", [A]),
    ("lax.dynamic_index_in_dim(a, 1, 0)", [A]), ("lax.dynamic_index_in_dim(a, 1, 1, False)", [A]),
    ("lax.dynamic_update_slice(a, b, (0, 0))", [A, (4, 4)]), ("lax.index_in_dim(a, 1, 0)", [A]),
    ("lax.dynamic_update_slice(a, b, (0, 0))", [A, (8, 2)]),
    ("lax.dynamic_update_index_in_dim(a, b, 1, 0)", [A, (4,)]),
    ("lax.slice(a, (0, 0), (4, 4))", [A]), ("lax.slice_in_dim(a, 0, 2, axis=1)", [A]),
    ("np.searchsorted(a, b)", [V, (4,)]), ("nn.one_hot(a, 4)", [(8, 'i')]),
    ("np.select([a > 0], [b], 0.0)", [A, A]),
    ("np.compress(np.array([True, False] * 4), a, 0)", [A]),
    # windows, convolutions, matrices
    ("lax.reduce_window(a, 0.0, lax.add, (2, 1), (1, 1), 'SAME')", [A]),
    ("lax.reduce_window(a, 0.0, lax.add, (1, 2), (1, 2), 'VALID')", [A]),
    ("lax.conv(a, b, (1, 1), 'SAME')", [(8, 4, 4, 4), (4, 4, 3, 3)]), ("np.fft.fft(a)", [A]),
    ("lax.conv_general_dilated(a, b, (1,), 'SAME', dimension_numbers=('NWC', 'WIO', 'NWC'))",
     [(8, 8, 4), (3, 4, 4)]),
    ("np.fft.rfft(a, axis=0)", [A]), ("lax.linalg.cholesky(a)", [(4, 8, 8)]),
    ("np.linalg.qr(a)", [(2, 8, 4)]), ("np.linalg.svd(a)", [(2, 8, 4)]),
    ("np.linalg.eigh(a)", [(2, 8, 8)]), ("np.linalg.solve(a, b)", [M, (8, 2)]),
    ("np.linalg.inv(a)", [M]), ("np.linalg.det(a)", [M]),
    ("lax.linalg.triangular_solve(a, b, left_side=True)", [(2, 8, 8), (2, 8, 4)]),
    ("lax.linalg.lu(a)", [(2, 8, 8)]), ("np.convolve(a, b)", [V, (4,)]),
    ("np.interp(a, b, c)", [V, V, V]),
    # control and transformations
    ("lax.scan(lambda c, r: (c + r, c * r), np.zeros(4), a)", [A]),
    ("lax.scan(lambda c, r: (c + r, c * r), b, a)", [A, (4,)]),
    ("lax.map(lambda r: r * 2, a)", [A]), ("lax.cond(True, lax.sin, lax.cos, a)", [A]),
    ("lax.fori_loop(0, 3, lambda k, c: c * 2, a)", [A]),
    ("lax.switch(1, [lax.sin, lax.cos], a)", [A]),
    ("lax.while_loop(lambda c: np.sum(c) < 3, lambda c: c * 2, a)", [A]),
    ("P.vmap(lax.sin)(a)", [A]), ("P.vmap(lambda r: r.sum(), in_axes=1)(a)", [A]),
    ("P.vmap(lambda r, s: r @ s)(a, b)", [A, A]),
    ("P.vmap(lambda r: r * b, out_axes=1)(a)", [A, (4,)]), ("P.vmap(lambda r: r @ b)(a)", [A, B]),
    ("P.vmap(lambda r, s: r + s, in_axes=(0, None))(a, b)", [A, (4,)]),
    ("P.vmap(lambda r, s: r + s)(a, b)", [A, A]), ("P.vmap(lambda r: np.sort(r))(a)", [A]),
    ("P.vmap(lambda r, s: r + s, in_axes=(0, 1))(a, b)", [A, B]),
    ("P.vmap(P.vmap(lax.sin))(a)", [A]), ("P.grad(lambda a: np.sum(lax.sin(a) * b))(a)", [A, A]),
    ("P.grad(lambda b: np.sum(a * b))(b)", [A, (4,)]),
    ("P.grad(lambda a: np.sum(np.dot(a, b)))(a)", [A, B]),
    ("P.grad(lambda b: np.sum(np.dot(a, b)))(b)", [A, B]),
    ("P.grad(lambda a: np.sum(np.reshape(a, (4, 2, 4)) ** 2))(a)", [A]),
    ("P.grad(lambda a: np.sum(a[0]))(a)", [A]),
    ("P.grad(lambda a: np.sum(np.concatenate([a, b])))(a)", [A, A]),
    ("P.grad(lambda a: a.T[0, 0] * 1.0)(a)", [A]),
    ("P.grad(lambda a: np.sum(np.max(a, 1)))(a)", [A]),
    ("P.grad(lambda a: np.sum(nn.softmax(a) * b))(a)", [A, A]), ("P.jvp(lax.sin, (a,), (a,))", [A]),
    ("P.linearize(lambda a: np.sum(a ** 2), a)[0]", [A]),
    ("P.checkpoint(lambda a: lax.sin(a) * 2)(a)", [A]), ("P.jit(lambda a: a.T)(a)", [A]),
    ("P.jacfwd(lambda a: np.sum(a ** 2))(a)", [V]), ("P.hessian(lambda a: np.sum(a ** 3))(a)", [V]),
    ("np.vectorize(lambda r, s: r + s)(a, b)", [A, A]), ("np.apply_along_axis(np.sum, 1, a)", [A]),
    ("P.value_and_grad(lambda a: np.mean(a ** 2))(a)", [A]), ("np.zeros_like(a)", [A]),
    ("np.ones_like(a)", [A]), ("np.full_like(a, 2)", [A]), ("np.linspace(a, b, 4)", [V, V]),
    ("P.random.normal(P.random.key(0), a.shape) + a", [A]), ("P.lax.stop_gradient(a)", [A]),
    ("P.lax.optimization_barrier(a)", [A]), ("np.array(a)", [A]), ("np.copy(a)", [A]),
    # out_sharding
    ("np.dot(a, b, out_sharding=S('x', 'y'))", [A, B]),
    ("np.matmul(a, b, out_sharding=S('x'))", [A, B]),
    ("np.einsum('ij,jk->ik', a, b, out_sharding=S(None, 'y'))", [A, B]),
    ("np.reshape(a, (32,), out_sharding=S('x'))", [A]), ("np.ravel(a, out_sharding=S('x'))", [A]),
    ("np.reshape(a, (2, 4, 4), out_sharding=S('y', 'x'))", [A]),
    ("lax.reshape(a, (32,), out_sharding=S(('x', 'y')))", [A]),
    ("a.reshape(32, out_sharding=S())", [A]),
    ("lax.broadcast_in_dim(a, (3, 8, 4), (1, 2), out_sharding=S(None, 'x'))", [A]),
    ("lax.broadcast(a, (8,), out_sharding=S('x'))", [A]),
    ("np.broadcast_to(a, (8, 8, 4), out_sharding=S('x'))", [A]),
    ("lax.iota('int32', 8, out_sharding=S('x'))", []), ("np.arange(8, out_sharding=S('x'))", []),
    ("np.zeros((8, 2), out_sharding=S('x', 'y'))", []), ("np.ones(8, out_sharding=S('x'))", []),
    ("np.full((8,), 1.0, out_sharding=S('x'))", []), ("np.eye(8, out_sharding=S('x'))", []),
    ("a.at[i].get(out_sharding=S('x'))", [A]), ("a.at[b].get(out_sharding=S('x'))", [A, (8, 'i')]),
    ("a.at[i].set(b, out_sharding=S('x'))", [A, (3, 4)]),
    ("nn.one_hot(a, 4, out_sharding=S('x', 'y'))", [(8, 'i')]),
    ("a.at[:, i].add(b, out_sharding=S('x'))", [A, (8, 3)]),
    ("P.random.normal(P.random.key(0), (8,), out_sharding=S('x'))", []),
    ("P.random.uniform(P.random.key(0), (8, 4), out_sharding=S('x', 'y'))", []),
    ("np.sum(a, 0, out_sharding=S('y'))", [A]),
    ("lax.dot(a, b, out_sharding=S('x', None))", [A, B]),
    ("P.sharding.reshard(a, S('y', 'x'))", [A]), ("P.sharding.reshard(a, S())", [A]),
    ("np.take(a, b, 0, out_sharding=S('x'))", [A, (8, 'i')]),
    ("np.repeat(a, 2, 0, out_sharding=S('x'))", [A]), ("lax.split(a, (4, 4), 0)", [A]),
    ("np.tile(a, (2, 1))", [A]),
    ("lax.dot_general(a, b, (((1,), (0,)), ((), ())), out_sharding=S('y', 'x'))", [A, B]),
    ("P.nn.dot_product_attention(a, a, a)", [(4, 8, 2, 4)]),
    ("np.matmul(a, b, out_sharding=S(unreduced={'x'}))", [A, B]),
    ("P.sharding.reshard(a, S(unreduced={'x'}))", [A]),
    ("P.sharding.reshard(a, S(reduced={'x'}))", [A]),
    ("np.einsum('ij,jk->ik', a, b, out_sharding=S(unreduced={'x', 'y'}))", [A, B]),
]

# Calls whose answers are meant to differ from JAX's: the reason, by the expression.
BATCH = "JAX takes the cut of batch axes from the left operand and drops that of the right one"
KNOWN = {"np.einsum('bij,bjk->bik', a, b)": BATCH, "lax.batch_matmul(a, b)": BATCH,
         "lax.dot_general(a, b, (((1,), (1,)), ((0,), (0,))))": BATCH}


def points(per_op: int, seed: int) -> list[tuple[str, list[Any]]]:
    """(expression, [(shape, entries, dtype)]) of each call."""
    found = []
    for number, (text, shapes) in enumerate(CALLS):
        choices = []
        for shape in shapes:
            sizes = [n for n in shape if n != "i"]
            dtype = "int32" if "i" in shape else "float32"
            specs = [e for e in itertools.product([None, "x", "y", ("x", "y")], repeat=len(sizes))
                     if _possible(sizes, e)]
            choices.append([(sizes, e, dtype) for e in specs])
        every = list(itertools.product(*choices))
        chosen = random.Random(f"{seed} {number}")
        found += [(text, list(p)) for p in
                  (every if len(every) <= per_op else chosen.sample(every, per_op))]
    return found


def _possible(shape: Any, entries: Any) -> bool:
    names = [n for e in entries for n in (e or ())]
    count = {"x": 4, "y": 2}
    for n, e in zip(shape, entries, strict=True):
        parts = 1
        for name in e or ():
            parts *= count[name]
        if n % parts:
            return False
    return len(set(names)) == len(names)


def answers(package: str, calls: list[Any]) -> list[Any]:
    """What a package says of each call: entries of the results, or an error."""
    load = importlib.import_module
    root = load(package)
    sharding, typeof = load(f"{package}.sharding"), root.typeof
    for name in ("nn", "random"):
        load(f"{package}.{name}")
    spec = sharding.PartitionSpec
    mesh = sharding.AbstractMesh((4, 2), ("x", "y"), (sharding.AxisType.Explicit,) * 2)
    names = {"lax": root.lax, "np": root.numpy, "nn": root.nn, "P": root, "S": spec}
    found: list[Any] = []
    for text, operands in calls:
        structs = [root.ShapeDtypeStruct(shape, dtype, sharding=sharding.NamedSharding(
            mesh, spec(*[tuple(e) if isinstance(e, list) else e for e in entries])))
            for shape, entries, dtype in operands]
        types: list[Any] = []

        def run(*xs: Any, text: str = text, types: list[Any] = types) -> Any:
            scope = {**names, **dict(zip("abc", xs, strict=False)),
                     "i": root.numpy.array([0, 2, 1])}
            out = root.tree.leaves(eval(text, scope))       # of the table above
            types += [typeof(x).sharding.spec for x in out]
            return out

        try:
            with sharding.use_abstract_mesh(mesh):
                root.eval_shape(run, *structs)
            found.append([repr(s) for s in types])
        except Exception as error:
            found.append([type(error).__name__, str(error)[:300]])
    return found


def main() -> int:
    """Compare, print the differences; 1 if there are any that are not known."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jax", help="a Python that has JAX 0.10.2")
    parser.add_argument("--per-op", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--refused", action="store_true", help="show what only JAX refuses")
    parser.add_argument("--answer", metavar="PACKAGE", help="answer the calls on stdin (internal)")
    args = parser.parse_args()
    if args.answer:
        print(json.dumps(answers(args.answer, json.load(sys.stdin))))
        return 0
    calls = points(args.per_op, args.seed)
    text = json.dumps(calls)
    theirs, mine = [json.loads(subprocess.run(
        [python, __file__, "--answer", package], input=text, capture_output=True, text=True,
        check=True).stdout.splitlines()[-1]) for python, package in (
            (args.jax, "jax"), (sys.executable, "olympus"))]
    different = lenient = 0
    for (call, operands), his, own in zip(calls, theirs, mine, strict=True):
        refused = [not (r == [] or r[0].startswith("P(")) for r in (his, own)]
        if refused == [True, True] or (his == own) or call in KNOWN:
            continue
        if refused[0]:
            lenient += 1
            if not args.refused:
                continue
        else:
            different += 1
        shown = ", ".join(f"{s}{tuple(e)}" for s, e, _ in operands)
        print(f"{call}  on {shown}\n    jax      {his}\n    olympus  {own}")
    print(f"{len(calls)} calls, {different} differ, JAX alone refuses {lenient}")
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main())
