"""What compiled programs take to run; NumPy and PyTorch run theirs operation by operation."""

from ..cases import ARRAYS, JIT, NUMPY, TORCH, Group, Loop
from ..inputs import normal, positive_definite, random, uniform
from ..programs import transformer

group = Group("execute", "Running compiled programs")
FUNCTIONAL = JIT, TORCH


def run(L, fun, *arrays, check=True):
    """Compiled where the system compiles; each result is waited for."""
    compiled, args = L.jit(fun), [L.array(x) for x in arrays]
    return Loop(lambda: L.wait(compiled(*args)), check)


@group.case("product of 1024 × 1024 matrices", *ARRAYS)
def _(L):
    return run(L, lambda a, b: a @ b, normal(1024, 1024), normal(1024, 1024, seed=1))


@group.case("softmax, layer norm and gelu of 10⁷", *ARRAYS)
def _(L):
    np = L.np

    def f(x):
        e = np.exp(x - np.amax(x, axis=-1, keepdims=True))
        x = e / e.sum(-1, keepdims=True)
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)
        return 0.5 * x * (1 + np.tanh(0.7978846 * (x + 0.044715 * x * x * x)))
    return run(L, f, normal(10_000, 1_000))


@group.case("five elementwise operations of 4096", *ARRAYS)
def _(L):
    return run(L, lambda x: L.np.tanh(L.np.exp(-x * x) + L.np.sin(x) * 0.5), normal(4096))


@group.case("Black–Scholes prices of 10⁶", *ARRAYS)
def _(L):
    np = L.np

    def below(x):   # Abramowitz & Stegun 26.2.17: arithmetic and exp
        t = 1 / (1 + 0.2316419 * abs(x))
        series = t * (0.31938153 + t * (-0.356563782 + t * (
            1.781477937 + t * (-1.821255978 + t * 1.330274429))))
        tail = 0.3989422804 * np.exp(-0.5 * x * x) * series
        return np.where(x > 0, 1 - tail, tail)

    def price(spot, strike, years):
        spread = 0.2 * np.sqrt(years)
        up = (np.log(spot / strike) + 0.05 * years) / spread
        return spot * below(up) - strike * np.exp(-0.03 * years) * below(up - spread)
    n = 1_000_000
    return run(L, price, uniform(50, 150, n), uniform(50, 150, n, 1), uniform(0.1, 2, n, 2))


@group.case("forces between 1024 bodies", *ARRAYS)
def _(L):
    def f(places, masses):
        apart = places[None] - places[:, None]
        pull = ((apart * apart).sum(-1) + 1e-2) ** -1.5 * masses
        return (apart * pull[..., None]).sum(1)
    return run(L, f, normal(1024, 3), abs(normal(1024, seed=1)))


@group.case("gradient of a logistic regression", *FUNCTIONAL)
def _(L):
    def loss(w, x, y):
        z = x @ w
        return (L.np.log(1 + L.np.exp(-abs(z))) + z * (z > 0) - y * z).mean()
    return run(L, L.grad(loss), *regression())


@group.case("gradient of a logistic regression", NUMPY)
def _(L):
    def gradient(w, x, y):
        return x.T @ (1 / (1 + L.np.exp(-(x @ w))) - y) / len(y)
    return run(L, gradient, *regression())


def regression():
    x = normal(100_000, 50)
    return normal(50, seed=1), x, (x.sum(-1) > 0).astype("float32")


@group.case("sort 10⁶", JIT, NUMPY)
def _(L):
    return run(L, L.np.sort, normal(1_000_000))


@group.case("sort 10⁶", TORCH)
def _(L):
    return run(L, lambda x: L.sort(x).values, normal(1_000_000))


@group.case("argsort 200,000", *ARRAYS)
def _(L):
    return run(L, L.np.argsort, normal(200_000), check=False)    # ties, and int64 sums


@group.case("cumsum of 4·10⁶", *ARRAYS)
def _(L):
    return run(L, lambda x: L.np.cumsum(x, 0), normal(4_000_000, scale=1e-3), check=False)


@group.case("sum over the rows of 10⁷", *ARRAYS)
def _(L):
    return run(L, lambda x: L.np.sum(x, 0), normal(10_000, 1_000))


def scattered():
    return normal(100_000), random().integers(0, 100_000, 1_000_000), normal(1_000_000, seed=1)


@group.case("add 10⁶ to places of 10⁵", JIT)
def _(L):
    return run(L, lambda x, i, v: x.at[i].add(v), *scattered())


@group.case("add 10⁶ to places of 10⁵", NUMPY)
def _(L):
    def f(x, i, v):
        x = x.copy()
        L.np.add.at(x, i, v)
        return x
    return run(L, f, *scattered())


@group.case("add 10⁶ to places of 10⁵", TORCH)
def _(L):
    return run(L, lambda x, i, v: x.index_add(0, i, v), *scattered())


@group.case("take 10⁶ of 10⁵", *ARRAYS)
def _(L):
    x, indices, _ = scattered()
    return run(L, lambda x, i: x[i], x, indices)


@group.case("convolution of 8 images", JIT)
def _(L):
    return run(L, lambda x, k: L.lax.conv_general_dilated(
        x, k, (1, 1), "SAME", dimension_numbers=("NCHW", "OIHW", "NCHW")), *images())


@group.case("convolution of 8 images", TORCH)
def _(L):
    return run(L, lambda x, k: L.nn.functional.conv2d(x, k, padding=1), *images())


def images():
    return normal(8, 32, 64, 64), normal(64, 32, 3, 3, seed=1)


@group.case("Fourier transform of 2²⁰", *ARRAYS)
def _(L):
    return run(L, lambda x: abs(L.np.fft.fft(x)), normal(1 << 20))


@group.case("100,000 runs of a while loop", JIT)
def _(L):
    def f(x):
        return L.lax.while_loop(lambda c: c[0] < 100_000,
                                lambda c: (c[0] + 1, c[1] * 0.999 + 0.001), (0, x))[1]
    return run(L, f, normal(8))


@group.case("scan of 10,000 rows", JIT)
def _(L):
    def step(h, x):
        h = 0.9 * h + L.np.tanh(x)
        return h, h
    return run(L, lambda xs: L.lax.scan(step, L.np.zeros(16, "float32"), xs)[1], normal(10_000, 16))


@group.case("scan of 10,000 rows", NUMPY)
def _(L):
    def f(xs):
        h, out = L.np.zeros(16, "float32"), L.np.empty_like(xs)
        for i, x in enumerate(xs):
            out[i] = h = 0.9 * h + L.np.tanh(x)
        return out
    return run(L, f, normal(10_000, 16))


@group.case("Cholesky factor, 256 × 256", *ARRAYS)
def _(L):
    return run(L, L.np.linalg.cholesky, positive_definite(256))


@group.case("singular values, 256 × 256", *ARRAYS)
def _(L):
    return run(L, lambda a: L.np.linalg.svd(a, full_matrices=False)[1], normal(256, 256))


@group.case("solve, 256 × 256", *ARRAYS)
def _(L):
    return run(L, L.np.linalg.solve, positive_definite(256), normal(256, 4))


@group.case("10⁷ normal numbers", JIT)
def _(L):
    draw = L.jit(lambda key: L.random.normal(key, (10_000_000,)))
    key = L.random.key(0)
    return Loop(lambda: L.wait(draw(key)))


@group.case("10⁷ normal numbers", NUMPY)
def _(L):
    generator = random()
    return Loop(lambda: generator.standard_normal(10_000_000, "float32"))


@group.case("10⁷ normal numbers", TORCH)
def _(L):
    return Loop(lambda: L.randn(10_000_000))


@group.case("training step of 2 transformer layers", JIT)
def _(L):
    make, args = transformer(L, layers=2, width=128, words=256, length=64, batch=8)
    gradient = make()

    def step(params, *batch):
        value, slopes = gradient(params, *batch)
        return value, L.tree.map(lambda p, g: p - 0.1 * g, params, slopes)
    compiled = L.jit(step)
    return Loop(lambda: L.wait(compiled(*args)), check=True)
