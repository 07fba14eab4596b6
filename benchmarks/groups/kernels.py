"""What Olympus lowers by formulas of its own on one CPU (`olympus/_src/lax/kernels`)."""

from ..cases import ARRAYS, JIT, NUMBA, NUMPY, SCIPY, TORCH, Group
from ..inputs import normal, positive_definite, uniform
from .execute import run

group = Group("kernels", "Kernels on one CPU")


def convolution(L, groups):
    if L.family == TORCH:
        return lambda x, w: L.nn.functional.conv2d(x, w, padding=1, groups=groups)
    return lambda x, w: L.lax.conv_general_dilated(x, w, (1, 1), "SAME", feature_group_count=groups)


def gradients(L, fun, of):
    if L.family == TORCH:
        return L.grad(lambda x, w: (fun(x, w) ** 2).sum(), of)
    return L.grad(lambda x, w: L.np.sum(fun(x, w) ** 2), of)


def images():
    return normal(16, 64, 32, 32)


for title, count, kernel in (("depthwise convolution", 64, (64, 1, 3, 3)),
                             ("convolution in 4 groups", 4, (64, 16, 3, 3))):
    @group.case(title, JIT, TORCH)
    def _(L, count=count, kernel=kernel):
        return run(L, convolution(L, count), images(), normal(*kernel, seed=1))

    for name, argument in (("image", 0), ("kernel", 1)):
        @group.case(f"{title}, gradient by the {name}", JIT, TORCH, slow=True)
        def _(L, count=count, kernel=kernel, argument=argument):
            return run(L, gradients(L, convolution(L, count), argument), images(),
                       normal(*kernel, seed=1))


def deep(L):
    if L.family == TORCH:
        return lambda x, w: L.nn.functional.conv3d(x, w, padding=1)
    return lambda x, w: L.lax.conv_general_dilated(x, w, (1, 1, 1), "SAME")


@group.case("convolution over three axes", JIT, TORCH)
def _(L):
    return run(L, deep(L), normal(2, 32, 16, 16, 16), normal(32, 32, 3, 3, 3, seed=1))


for name, argument in (("image", 0), ("kernel", 1)):
    @group.case(f"convolution over three axes, gradient by the {name}", JIT, TORCH, slow=True)
    def _(L, argument=argument):
        return run(L, gradients(L, deep(L), argument), normal(2, 32, 16, 16, 16),
                   normal(32, 32, 3, 3, 3, seed=1))


for size in (4, 8):
    @group.case(f"{100_000 // size ** 2 * 10:,} products of {size} × {size} matrices", *ARRAYS)
    def _(L, size=size):
        count = 100_000 // size ** 2 * 10
        return run(L, lambda x, y: x @ y, normal(count, size, size),
                   normal(count, size, size, seed=1))


def definite(count, size):
    x = normal(count, size, size)
    return x @ x.swapaxes(1, 2) + positive_definite(size)


for size in (2, 3, 4):
    @group.case(f"100,000 systems of {size} equations", *ARRAYS)
    def _(L, size=size):
        return run(L, L.np.linalg.solve, definite(100_000, size), normal(100_000, size, 1))

    @group.case(f"100,000 inverses of {size} × {size} matrices", *ARRAYS)
    def _(L, size=size):
        return run(L, L.np.linalg.inv, definite(100_000, size))

    @group.case(f"100,000 Cholesky factors, {size} × {size}", *ARRAYS)
    def _(L, size=size):
        return run(L, L.np.linalg.cholesky, definite(100_000, size))


for shape in ((8, 1_000_000), (64, 100_000), (1_000, 10_000)):
    @group.case(f"sum over {shape[0]:,} rows of {shape[1]:,}", *ARRAYS)
    def _(L, shape=shape):
        return run(L, lambda x: L.np.sum(x, 0), normal(*shape))


@group.case("how many of 10⁷ are true", *ARRAYS)
def _(L):
    return run(L, lambda x: L.np.sum(x), normal(10_000_000) > 0, check=False)    # int64 sums


@group.case("whether any of 10⁷ is true", *ARRAYS)
def _(L):
    return run(L, lambda x: L.np.any(x), normal(10_000_000) > 9)


for shape, axis in (((10_000_000,), 0), ((1_000, 1_024), 1), ((10_000, 100), 0)):
    @group.case(f"argmax of {' × '.join(f'{n:,}' for n in shape)}, axis {axis}", *ARRAYS)
    def _(L, shape=shape, axis=axis):
        return run(L, lambda x: L.np.argmax(x, axis), normal(*shape), check=False)


for shape, axis in (((1_000_000,), 0), ((1_000, 1_000), 0), ((1_000, 1_000), 1)):
    @group.case(f"cumsum of {' × '.join(f'{n:,}' for n in shape)}, axis {axis}", *ARRAYS)
    def _(L, shape=shape, axis=axis):
        return run(L, lambda x: L.np.cumsum(x, axis), normal(*shape, scale=1e-3), check=False)


@group.case("cumulative maxima of 10⁶", JIT)
def _(L):
    return run(L, lambda x: L.lax.cummax(x), normal(1_000_000))


@group.case("cumulative maxima of 10⁶", NUMPY)
def _(L):
    return run(L, L.np.maximum.accumulate, normal(1_000_000))


@group.case("cumulative maxima of 10⁶", TORCH)
def _(L):
    return run(L, lambda x: L.cummax(x, 0)[0], normal(1_000_000))


@group.case("cumulative products of 10⁶", *ARRAYS)
def _(L):
    return run(L, lambda x: L.np.cumprod(x, 0), 1 + 1e-6 * uniform(0, 1, 1_000_000), check=False)


def in_order(L, x, axis=-1):
    found = L.np.sort(x, axis)
    return found[0] if L.family == TORCH else found


for count in (100_000, 1_000_000):
    @group.case(f"sort of {count:,}", *ARRAYS)
    def _(L, count=count):
        return run(L, lambda x: in_order(L, x), normal(count))

    @group.case(f"argsort of {count:,}", *ARRAYS)
    def _(L, count=count):
        return run(L, lambda x: L.np.argsort(x), normal(count), check=False)   # int64 places


@group.case("permutation of 10⁶", JIT)
def _(L):
    return run(L, lambda key: L.random.permutation(key, 1_000_000), L.random.key(0), check=False)


@group.case("10 of 10⁶ without replacement", JIT)
def _(L):
    return run(L, lambda key: L.random.choice(key, 1_000_000, (10,), replace=False),
               L.random.key(0), check=False)


for shape, axis in (((10_000, 100), 1), ((1_000, 1_000), 0)):
    @group.case(f"sort of {shape[0]:,} × {shape[1]:,}, axis {axis}", *ARRAYS)
    def _(L, shape=shape, axis=axis):
        return run(L, lambda x: in_order(L, x, axis), normal(*shape))

    @group.case(f"argsort of {shape[0]:,} × {shape[1]:,}, axis {axis}", *ARRAYS)
    def _(L, shape=shape, axis=axis):
        return run(L, lambda x: L.np.argsort(x, axis), normal(*shape), check=False)


@group.case("sort of 10⁶ integers below 100", *ARRAYS)
def _(L):
    return run(L, lambda x: in_order(L, x), uniform(0, 100, 1_000_000).astype("int32"))


@group.case("128 rows of a table of 784", *ARRAYS)
def _(L):
    places = uniform(0, 60_000, 128).astype("int32")
    return run(L, lambda x, i: x[i], normal(60_000, 784), places)


# Order statistics

for title, fun, shape in (
        ("median of 10⁶", lambda L, x: L.np.median(x), (1_000_000,)),
        ("median of 1,000 × 1,000, axis 0", lambda L, x: L.np.median(x, 0), (1_000, 1_000)),
        ("median of 1,000 × 1,000, axis 1", lambda L, x: L.np.median(x, 1), (1_000, 1_000)),
        ("nanmedian of 10⁶", lambda L, x: L.np.nanmedian(x), (1_000_000,)),
        ("one percentile of 10⁶", lambda L, x: L.np.percentile(x, 90), (1_000_000,)),
        ("three percentiles of 10⁶", lambda L, x: L.np.percentile(
            x, L.np.asarray([5.0, 50.0, 95.0])), (1_000_000,))):
    @group.case(title, JIT, NUMPY)
    def _(L, fun=fun, shape=shape):
        return run(L, lambda x: fun(L, x), normal(*shape))


for title, name in (("partition", "partition"), ("places of a partition", "argpartition")):
    @group.case(f"{title} of 10⁶", JIT, NUMPY)
    def _(L, name=name):
        return run(L, lambda x: getattr(L.np, name)(x, 1_000), normal(1_000_000), check=False)


for count in (10, 1_000):
    @group.case(f"the {count:,} largest of 10⁶", JIT)
    def _(L, count=count):
        return run(L, lambda x: L.lax.top_k(x, count)[0], normal(1_000_000))

    @group.case(f"the {count:,} largest of 10⁶", NUMPY)
    def _(L, count=count):
        return run(L, lambda x: L.np.sort(L.np.partition(x, -count)[-count:]), normal(1_000_000))

    @group.case(f"the {count:,} largest of 10⁶", TORCH)
    def _(L, count=count):
        return run(L, lambda x: L.topk(x, count)[0], normal(1_000_000))


# Searches

@group.case("searchsorted of 10⁶ in 10⁶", JIT, NUMPY)
def _(L):
    return run(L, lambda a, x: L.np.searchsorted(a, x), uniform(0, 1, 1_000_000).cumsum(),
               uniform(0, 500_000, 1_000_000, seed=1), check=False)


@group.case("histogram of 10⁶ in 100 bins", JIT, NUMPY)
def _(L):
    return run(L, lambda x: L.np.histogram(x, 100)[0], normal(1_000_000), check=False)


@group.case("places of the true ones of 10⁶", JIT)
def _(L):
    return run(L, lambda x: L.np.nonzero(x, size=1_000_000)[0], normal(1_000_000) > 0, check=False)


@group.case("places of the true ones of 10⁶", NUMPY)
def _(L):
    return run(L, lambda x: L.np.nonzero(x)[0], normal(1_000_000) > 0, check=False)


@group.case("places of the true ones of 10⁶", NUMBA)
def _(L):
    def places(x):
        found, count = empty(x.size, int32), 0
        for i in range(x.size):
            found[count] = i
            count += x[i]
        return found[:count]

    empty, int32 = L.np.empty, L.np.int32
    return run(L, places, normal(1_000_000) > 0, check=False)


@group.case("100,000 rows of a table of 64", *ARRAYS)
def _(L):
    places = (uniform(0, 100_000, 100_000)).astype("int32")
    return run(L, lambda x, i: x[i], normal(100_000, 64), places)


# Convolutions of one feature

for n, count in ((1_000_000, 3), (100_000, 32), (100_000, 1_000), (10_000, 10_000)):
    @group.case(f"convolve {n:,} by {count:,}", JIT, NUMPY)
    def _(L, n=n, count=count):
        return run(L, lambda x, y: L.np.convolve(x, y), normal(n), normal(count, seed=1))


    @group.case(f"convolve {n:,} by {count:,}", SCIPY)
    def _(L, n=n, count=count):
        return run(L, lambda x, y: L.signal.convolve(x, y), normal(n), normal(count, seed=1))


@group.case("convolve 10,000 by 1,000, gradients", JIT, slow=True)
def _(L):
    return run(L, gradients(L, lambda x, y: L.np.convolve(x, y), (0, 1)), normal(10_000),
               normal(1_000, seed=1))


for size in (3, 7, 31):
    @group.case(f"filter of {size} × {size} on an image of 512 × 512", JIT, TORCH)
    def _(L, size=size):
        return run(L, convolution(L, 1), normal(1, 1, 512, 512), normal(1, 1, size, size, seed=1),
                   check=False)


    @group.case(f"filter of {size} × {size} on an image of 512 × 512", SCIPY)
    def _(L, size=size):
        return run(L, lambda x, w: L.signal.convolve(x, w, "same"), normal(512, 512),
                   normal(size, size, seed=1), check=False)


# Elementwise functions of 10⁶ numbers

for title, fun in (("sin", lambda L, x, y: L.np.sin(x)), ("arcsin", lambda L, x, y: L.np.arcsin(x)),
                   ("arctan2", lambda L, x, y: L.np.arctan2(x, y)),
                   ("x % y", lambda L, x, y: x % y), ("x ** 2.5", lambda L, x, y: y ** 2.5)):
    @group.case(f"{title} of 10⁶", *ARRAYS)
    def _(L, fun=fun):
        return run(L, lambda x, y: fun(L, x, y), uniform(-1, 1, 1_000_000),
                   uniform(0.1, 2, 1_000_000, seed=1), check=False)


# Points in space, grids and loops

@group.case("distances of 1,000 points from 1,000", JIT, NUMPY)
def _(L):
    return run(L, lambda x, y: L.np.sqrt(((x[:, None] - y) ** 2).sum(-1)), normal(1_000, 3),
               normal(1_000, 3, seed=1))


def forces(L, x):
    away = x[:, None] - x
    return (away * (((away * away).sum(-1) + 1e-3) ** -1.5)[..., None]).sum(1)


@group.case("forces between 1,000 bodies", JIT, NUMPY)
def _(L):
    return run(L, lambda x: forces(L, x), normal(1_000, 3))


@group.case("forces between 1,000 bodies", NUMBA)
def _(L):
    def each(x):
        found = zeros_like(x)
        for i in range(x.shape[0]):
            for j in range(x.shape[0]):
                a, b, c = x[i, 0] - x[j, 0], x[i, 1] - x[j, 1], x[i, 2] - x[j, 2]
                near = a * a + b * b + c * c + offset
                pull = one / (near * sqrt(near))
                found[i, 0] += a * pull
                found[i, 1] += b * pull
                found[i, 2] += c * pull
        return found

    zeros_like, sqrt, one, offset = L.np.zeros_like, L.np.sqrt, L.np.float32(1), L.np.float32(1e-3)
    return run(L, each, normal(1_000, 3))


@group.case("forces between 1,000 bodies, gradient", JIT, slow=True)
def _(L):
    return run(L, L.grad(lambda x: (forces(L, x) ** 2).sum()), normal(1_000, 3))


def heated(u):
    return 0.1 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])


@group.case("20 steps of the heat equation, 512 × 512", JIT)
def _(L):
    return run(L, lambda u: L.lax.fori_loop(
        0, 20, lambda _, u: u.at[1:-1, 1:-1].add(heated(u)), u), normal(512, 512))


@group.case("20 steps of the heat equation, 512 × 512", NUMPY)
def _(L):
    def steps(u):
        u = u.copy()
        for _ in range(20):
            u[1:-1, 1:-1] += heated(u)
        return u

    return run(L, steps, normal(512, 512))


@group.case("20 steps of the heat equation, 512 × 512", NUMBA)
def _(L):
    def steps(u):
        u, new = u.copy(), u.copy()
        for _ in range(20):
            for i in range(1, u.shape[0] - 1):
                for j in range(1, u.shape[1] - 1):
                    new[i, j] = u[i, j] + tenth * (
                        u[i + 1, j] + u[i - 1, j] + u[i, j + 1] + u[i, j - 1] - four * u[i, j])
            u, new = new, u
        return u

    tenth, four = L.np.float32(0.1), L.np.float32(4)
    return run(L, steps, normal(512, 512))


@group.case("1,000 steps of a recurrent net of 16", JIT)
def _(L):
    def net(x, w):
        return L.lax.scan(lambda c, v: (L.np.tanh(w @ c + v),) * 2, x[0], x)[1]

    return run(L, net, normal(1_000, 16), 0.1 * normal(16, 16, seed=1))
