"""From a new process to a first result."""

from ..cases import ARRAYS, Anew, Group

group = Group("start", "A new process")


@group.case("import", *ARRAYS, fresh=True)
def _(L):
    return Anew(lambda: None, lambda _: L.module)


@group.case("import and a first sum", *ARRAYS, fresh=True)
def _(L):
    return Anew(lambda: None, lambda _: float((L.np.ones(3) + 1).sum()))


def first_gradient(L):
    """Import, trace, compile and run: a script that does one thing."""
    def run(_):
        def loss(w, x):
            return (L.np.tanh(x @ w) ** 2).mean()
        step = L.jit(lambda w, x: w - 0.1 * L.grad(loss)(w, x))
        L.wait(step(L.np.ones((8, 4)), L.np.ones((32, 8))))
    return Anew(lambda: None, run)


group.case("import and a compiled gradient", fresh=True)(first_gradient)
group.case("the same, compiled programs kept on disk", fresh=True, warm=True)(first_gradient)
