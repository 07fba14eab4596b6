"""Ways in which a body reads what belongs to the process: see `body_reads.py`."""

import contextvars
import decimal
import functools
import itertools
import os
import random
import threading
import time
from pathlib import Path

import numpy as np
from body_reads import UNDO, folder, way

import olympus

S = K = 2.0
CALLS = 10_000      # more than a test makes
random.seed(0)
FIRST_STATE = random.getstate()


def in_globals(**values):
    return lambda: globals().update(values)


# State of the process -----------------------------------------------------------------------------

@way
def an_environment_variable():
    os.environ["BODY_READS"] = "2"
    return (lambda x: x * float(os.environ["BODY_READS"]),
            lambda: os.environ.update(BODY_READS="3"))


@way
def a_getenv():
    os.environ["BODY_READS"] = "2"
    return (lambda x: x * float(os.getenv("BODY_READS")),
            lambda: os.environ.update(BODY_READS="3"))


@way
def a_context_variable():
    var = contextvars.ContextVar("k", default=2.0)
    return lambda x: x * var.get(), lambda: var.set(3.0)


@way
def a_thread_s_local():
    local = threading.local()
    local.k = 2.0
    return lambda x: x * local.k, lambda: setattr(local, "k", 3.0)


@way
def a_local_of_a_class_of_ones_own():
    class Local(threading.local):
        k = 2.0
    local = Local()
    return lambda x: x * local.k, lambda: setattr(local, "k", 3.0)


@way
def random_numbers_of_Python():
    random.seed(0)
    UNDO.append(random.seed)
    return (lambda x: x * (2.0 + (random.getstate() != FIRST_STATE)), lambda: random.seed(1))


@way
def random_numbers_of_NumPy():
    np.random.seed(0)
    return (lambda x: x * (2.0 + float(np.random.get_state()[2] != 624)),
            lambda: np.random.rand())


@way
def a_generator_of_random_numbers():
    rng = np.random.default_rng(0)
    first = rng.bit_generator.state
    return (lambda x: x * (2.0 + float(rng.bit_generator.state != first)), lambda: rng.random())


@way
def a_generator():
    values = itertools.chain([2.0] * CALLS, itertools.repeat(3.0))
    g = (v for v in values)

    def change():
        for v in g:
            if v == 3.0:
                break
    return lambda x: x * next(g), change


@way
def the_time():
    started = time.monotonic()
    offset = [0.0]
    before = time.monotonic

    def change():
        offset[0] = 1000.0
    time.monotonic = lambda: before() + offset[0]
    UNDO.append(lambda: setattr(time, "monotonic", before))
    return lambda x: x * (2.0 + (time.monotonic() - started > 500)), change


@way
def a_file():
    path = Path(folder(), "k")
    path.write_text("2")
    return lambda x: x * float(path.read_text()), lambda: path.write_text("3")


@way
def a_file_that_is_opened():
    name = os.path.join(folder(), "k")
    Path(name).write_text("2")

    def g(x):
        with open(name) as file:
            return x * float(file.read())
    return g, lambda: Path(name).write_text("3")


@way
def a_file_of_NumPy():
    name = os.path.join(folder(), "k.npy")
    np.save(name, 2.0)
    return lambda x: x * float(np.load(name)), lambda: np.save(name, 3.0)


@way
def a_file_of_NumPy_by_another_name():
    name = os.path.join(folder(), "k.npy")
    np.save(name, 2.0)

    def g(x):
        q = np
        return x * float(q.load(name))
    return g, lambda: np.save(name, 3.0)


@way
def the_precision_of_decimals():
    context = decimal.getcontext()
    before = context.prec
    context.prec = 2
    UNDO.append(lambda: setattr(context, "prec", before))
    return (lambda x: x * (2.0 + (len(str(decimal.Decimal(1) / decimal.Decimal(3))) > 5)),
            lambda: setattr(context, "prec", 20))


@way
def the_print_options_of_NumPy():
    before = np.get_printoptions()["precision"]
    np.set_printoptions(precision=2)
    UNDO.append(lambda: np.set_printoptions(precision=before))
    return (lambda x: x * float(np.get_printoptions()["precision"]),
            lambda: np.set_printoptions(precision=3))


@way
def a_cached_helper():
    k = [2.0]

    @functools.lru_cache
    def helper():
        return k[0]

    def change():
        k[0] = 3.0
        helper.cache_clear()
    return lambda x: x * helper(), change


@way
def a_cached_helper_that_is_cleared_later():
    k = [2.0]

    @functools.lru_cache
    def helper():
        return k[0]
    helper()
    k[0] = 3.0
    return lambda x: x * helper(), lambda: helper.cache_clear()


@way
def a_jitted_helper_s_global():
    # A jitted function keeps what it read, as pages say; a new one around it reads again.
    return lambda x: olympus.jit(lambda y: y * S)(x), in_globals(S=3.0)


@way
def an_exec():
    space = {"k": 2.0}
    return lambda x: x * eval("k", space), lambda: space.update(k=3.0)


@way
def a_function_made_by_exec():
    space = {"k": 2.0}
    exec("def f(x):\n    return x * k", space)
    f = space["f"]
    return lambda x: f(x), lambda: space.update(k=3.0)


@way
def a_default_of_a_wrapped_function():
    def plain(x, k=2.0):
        return x * k

    @functools.wraps(plain)
    def g(*args):
        return plain(*args)
    return g, lambda: setattr(plain, "__defaults__", (3.0,))


@way
def a_generic_function():
    @functools.singledispatch
    def scale(x):
        return x * 2.0
    return lambda x: scale(x), lambda: scale.register(object, lambda x: x * 3.0)


@way
def a_custom_rule_s_function():
    k = [2.0]

    @olympus.custom_jvp
    def f(x):
        return x * k[0]
    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0] * k[0]))
    return lambda x: f(x) if isinstance(x, olympus.Array) else x * k[0], lambda: k.__setitem__(
        0, 3.0)


@way
def a_list_that_it_appends_to_and_a_helper_reads():
    ks = [2.0]

    def helper(x):
        return x * ks[0]

    def g(x):
        ks.append(0.0)
        return helper(x)
    return g, lambda: ks.__setitem__(0, 3.0)
