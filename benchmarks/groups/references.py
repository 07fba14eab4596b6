"""References: reads and writes eagerly, in compiled functions, in loops, and while tracing."""

import functools

from ..cases import Anew, Group, Loop
from ..inputs import normal

group = Group("references", "References")


def made(L, *shape):
    return L.new_ref(L.array(normal(*shape)))


@group.case("a jitted call with one reference")
def _(L):
    f, ref = L.jit(lambda ref: L.ref.set(ref, 0, ref[0] + 1.0)), made(L, 8)
    return Loop(lambda: (f(ref), None)[1])


@group.case("a jitted call that closes over one")
def _(L):
    ref = made(L, 8)
    f = L.jit(lambda: L.ref.set(ref, 0, ref[0] + 1.0))
    return Loop(lambda: (f(), None)[1])


@group.case("ref[...]")
def _(L):
    ref = made(L, 8)
    return Loop(lambda: ref[...], check=True)


@group.case("ref[3]")
def _(L):
    ref = made(L, 8)
    return Loop(lambda: ref[3], check=True)


@group.case("ref[3] = 1.0")
def _(L):
    ref = made(L, 8)
    return Loop(lambda: L.ref.set(ref, 3, 1.0))


@group.case("a row of 4 MB, jitted")
def _(L):
    f, ref = L.jit(lambda ref, i: L.ref.set(ref, i, L.np.ones(1024))), made(L, 1024, 1024)
    return Loop(lambda: (f(ref, 5), L.wait(ref[0, :1]))[1])


def rows(L, by_carry):
    x = L.array(normal(2000, 64))

    def carried(x):
        return L.lax.fori_loop(0, 2000, lambda i, x: x.at[i].set(x[i] * 2.0), x)

    def referred(x):
        ref = L.new_ref(x)
        L.lax.fori_loop(0, 2000, lambda i, c: (L.ref.set(ref, i, ref[i] * 2.0), c)[1], 0)
        return ref[...]

    f = L.jit(carried if by_carry else referred)
    return Loop(lambda: L.wait(f(x)), check=True)


group.case("2,000 rows written in a loop")(functools.partial(rows, by_carry=False))
group.case("the same, by carry")(functools.partial(rows, by_carry=True))


@group.case("2,000 rows swapped in a loop")
def _(L):
    def f(x):
        ref = L.new_ref(x)

        def body(i, total):
            old = ref[i]
            L.ref.set(ref, i, old * 0.5 + total)
            return total + old

        return L.lax.fori_loop(0, 2000, body, L.np.zeros(64)), ref[...]

    g, x = L.jit(f), L.array(normal(2000, 64))
    return Loop(lambda: L.wait(g(x)), check=True)


@group.case("gradient through 100 writes in a loop")
def _(L):
    def f(x):
        ref = L.new_ref(x)
        L.lax.fori_loop(0, 100, lambda i, c: (L.ref.set(ref, i % 8, L.np.sin(ref[i % 8])), c)[1], 0)
        return ref[...].sum()

    g, x = L.jit(L.grad(f)), L.array(normal(8))
    return Loop(lambda: L.wait(g(x)), check=True)


@group.case("gradient of a table, of which a loop reads 2 × 2,000 rows")
def _(L):
    def f(table):
        return L.lax.fori_loop(0, 2000, lambda i, total: total + (
            L.np.sin(table[i]) * table[(i * 7) % 2000]).sum(), 0.0)

    g, table = L.jit(L.grad(f)), L.array(normal(2000, 64))
    return Loop(lambda: L.wait(g(table)), check=True)


def accesses(L, write):
    ref = made(L, 8)

    def make():
        def f(ref):
            for i in range(100):
                if write:
                    ref[i % 8] = 1.0
                else:
                    ref[i % 8]
        return f

    return Anew(make, lambda f: L.trace(f, (ref,)))


group.case("tracing 100 reads")(functools.partial(accesses, write=False))
group.case("tracing 100 writes")(functools.partial(accesses, write=True))
