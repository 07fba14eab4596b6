"""Programs that say something while they run: what each says, in any order."""

from unittest import mock

import numpy as np

from olympus import debug, grad, jvp, lax, vmap
from olympus._src.control_flow import progress
from olympus._src.host.callbacks import flat_callback

from . import Effect

X = np.array([1.5, -2.0, 0.25], np.float32)


def said(say, x):
    debug.callback(say, x)
    return x * x


def printed(say, x):
    debug.print("{}", x)
    return x * x


def shown(say, transform, *args):
    """The bar's calls: two rounds of a loop."""
    def bar(label, each=1, length=None):
        return lambda done, total: say(f"{label.replace(' ', '-')}:{done}/{total}")

    def loop(x):
        return lax.scan(lambda c, _: (c * x, None), x, None, 2, progress="p")[0]
    with mock.patch.object(progress, "Bar", bar):
        return transform(loop)(*args)


def ticks(say, chosen, *args):
    """A bar's call in a program of its own."""
    prim, transform = chosen
    def call(x):
        flat = flat_callback(lambda done, total: say(f"{done}/{total}"), (0, 0), {})[0]
        prim.bind(x, x, callback=flat, ordered=False, partitioned=False)
        return 2 * x
    return transform(call)(*args)


def inspected(say, transform, *args):
    """Once, when it is compiled."""
    def f(x):
        debug.inspect_array_sharding(x, callback=lambda sharding: say("seen"))
        return x * x
    return transform(f)(*args)


FORTH, BACK = ["p:1/2", "p:2/2"], ["p-backward:1/2", "p-backward:2/2"]
EACH = ["-2.0", "0.25", "1.5"]

ALL = (
    Effect("progress-vmap", shown, (vmap, X), FORTH),
    Effect("progress-jvp", shown, (lambda f: lambda x, t: jvp(f, (x,), (t,)), X[0], X[1]), FORTH),
    Effect("progress-grad", shown, (grad, X[0]), BACK + FORTH),
    Effect("progress-vmap-grad", shown, (lambda f: vmap(grad(f)), X), BACK + FORTH),
    Effect("inspected-vmap", inspected, (vmap, X), ["seen"]),
    Effect("inspected-jvp", inspected, (lambda f: lambda x: jvp(f, (x,), (x,)), X), ["seen"]),
    *(Effect(f"{prim.name}-{name}", ticks, ((prim, transform), x), words)
      for prim, batch in ((progress.tick_p, ["2/2"]), (progress.due_p, ["1/1", "2/2"]))
      for name, transform, x, words in (
          ("many", vmap, np.array([1, 2], "i4"), batch),
          ("forward", lambda f: lambda x: jvp(f, (x,), (x,)), X[0], ["1.5/1.5"]))),
    *(Effect(f"{name}-{fun.__name__}", run, (fun, X), EACH if name != "jvp" else ["1.5"])
      for fun in (said, printed)
      for name, run in (
          ("vmap", lambda say, fun, x: vmap(lambda v: fun(say, v))(x)),
          ("jvp", lambda say, fun, x: jvp(lambda v: fun(say, v), (x[0],), (x[1],))),
          ("grad", lambda say, fun, x: vmap(grad(lambda v: fun(say, v)))(x)),
          ("scan", lambda say, fun, x: lax.scan(lambda c, v: (c, fun(say, v)), 0.0, x)))),
)
