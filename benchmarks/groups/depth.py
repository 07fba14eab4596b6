"""Programs of equal parts, n deep: from the function to its first result, and a step after it."""

from functools import partial

from ..cases import Figures, Group
from ..clock import stopwatch
from ..inputs import normal as numbers

group = Group("depth", "Compile time against depth")


def measured(L, make, depth):
    """In a process of its own, with no compiled programs on disk."""
    fun, args = make(L, depth)
    L.wait((L.jit(lambda x: x + 1)(1.0), args))
    compiled, spent = L.jit(fun), stopwatch()
    L.wait(compiled(*args))
    first, steps = spent(), []
    for _ in range(10):
        spent = stopwatch()
        L.wait(compiled(*args))
        steps.append(spent())
    return Figures({"first result": first, "step": min(steps)})


def program(name, *depths, quick):
    """Decorator: a case for each depth, tried if the one before was quick enough; `quick`: the
    deepest that --quick takes.
    """
    def add(make):
        before = ""
        for depth in depths:
            case = f"{name}, n = {depth}" if len(depths) > 1 else name
            group.case(case, fresh=True, slow=depth > quick, after=before)(
                partial(measured, make=make, depth=depth))
            before = case
        return make
    return add


def normal(L, *shape, seed=0):
    return L.array(numbers(*shape, seed=seed))


@program("gradient of n transformer layers", 6, 12, 24, 48, quick=6)
def transformer(L, depth):
    np, nn = L.np, L.nn

    def norm(x):
        h = x - x.mean(-1, keepdims=True)
        return h * L.lax.rsqrt((h * h).mean(-1, keepdims=True) + 1e-5)

    def layer(p, x):
        batch, length, width = x.shape
        q, k, v = [(norm(x) @ p[n]).reshape(batch, length, 4, width // 4) for n in "qkv"]
        a = nn.softmax(np.einsum("bthd,bshd->bhts", q, k) / 4.0)
        x = x + np.einsum("bhts,bshd->bthd", a, v).reshape(x.shape) @ p["o"]
        return x + nn.gelu(norm(x) @ p["a"]) @ p["b"]

    def loss(layers, x):
        for p in layers:
            x = layer(p, x)
        return (x ** 2).mean()

    sizes = {**dict.fromkeys("qkvo", (64, 64)), "a": (64, 256), "b": (256, 64)}
    layers = [{n: normal(L, *sizes[n], seed=i) / 8 for n in sizes} for i in range(depth)]
    return L.grad(loss), (layers, normal(L, 4, 32, 64))


def runge_kutta(field, y, dt):
    a = field(y)
    b = field(y + dt / 2 * a)
    c = field(y + dt / 2 * b)
    d = field(y + dt * c)
    return y + dt / 6 * (a + 2 * b + 2 * c + d)


@program("gradient of n Runge-Kutta steps", 2, 3, 4, 5, 10, 20, 40, quick=3)
def lorenz(L, depth):
    def field(y):
        return L.np.stack([10 * (y[1] - y[0]), y[0] * (28 - y[2]) - y[1],
                              y[0] * y[1] - 8 / 3 * y[2]])

    def loss(y):
        for _ in range(depth):
            y = runge_kutta(field, y, 0.01)
        return (y ** 2).sum()
    return L.grad(loss), (normal(L, 3, 100),)


@program("evaluation of an auto-encoder", 1, quick=0)
def evaluation(L, depth):
    np, nn, random = L.np, L.nn, L.random

    def decode(ws, z):
        return nn.relu(nn.relu(z @ ws[3]) @ ws[4]) @ ws[5]

    def run(ws, images, key):
        draw, binary, shown = random.split(key, 3)
        x = random.bernoulli(binary, images)
        h = nn.relu(nn.relu(x @ ws[0]) @ ws[1])
        mean, log = np.split(h @ ws[2], 2, axis=1)
        z = mean + np.exp(0.5 * log) * random.normal(draw, mean.shape)
        logits = decode(ws, z)
        elbo = -np.sum(np.logaddexp(0.0, np.where(x, -1.0, 1.0) * logits)) + 0.5 * np.sum(
            1 + log - mean ** 2 - np.exp(log))
        codes, pixels = random.split(shown)
        picture = decode(ws, random.normal(codes, (100, 10)))
        return elbo, random.bernoulli(pixels, np.logaddexp(0.0, picture) / 9)
    sizes = (784, 512), (512, 512), (512, 20), (10, 512), (512, 512), (512, 784)
    ws = [normal(L, *size, seed=i) / size[0] ** 0.5 for i, size in enumerate(sizes)]
    return run, (ws, abs(normal(L, 64, 784)) % 1, random.key(0))


@program("step of variational inference over n sites", 4, 16, quick=4)
def inference(L, depth):
    np, random = L.np, L.random

    def log_normal(x, mean, scale):
        return np.sum(-0.5 * ((x - mean) / scale) ** 2 - np.log(scale) - 0.9189385)

    def bound(params, data, key):
        total, mean = 0.0, 0.0
        for p in params:
            key, sub = random.split(key)
            scale = L.nn.softplus(p["scale"])
            x = p["mean"] + scale * random.normal(sub, p["mean"].shape)
            total = total + log_normal(x, 0.0, 1.0) - log_normal(x, p["mean"], scale)
            mean = np.tanh(mean + x)
        return -total - log_normal(data, mean, 1.0)

    def step(params, moments, data, key):
        loss, slopes = L.value_and_grad(bound)(params, data, key)
        moments = L.tree.map(lambda m, g: 0.9 * m + 0.1 * g, moments, slopes)
        return loss, L.tree.map(lambda p, m: p - 0.01 * m, params, moments), moments
    params = [{n: normal(L, 8, seed=i) for n in ("mean", "scale")} for i in range(depth)]
    return step, (params, params, normal(L, 50, 8), random.key(0))


@program("gradient of a neural ODE", 4, quick=0)
def neural_ode(L, depth):
    def loss(ws, y):
        for _ in range(depth):
            y = runge_kutta(lambda y: L.np.tanh(y @ ws[0]) @ ws[1], y, 0.1)
        return (y ** 2).mean()
    return L.grad(loss), ([normal(L, 32, 32, seed=i) / 6 for i in range(2)], normal(L, 64, 32))
