"""`jit(guards=…)`: what a traced function read besides its arguments, and has changed, is told."""

import argparse
import collections
import functools
import itertools
import types
import warnings

import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus import lax
from olympus._src.base.config import jit_guards
from olympus.errors import StaleValueError, StaleValueWarning

offset = 0.0
table = onp.zeros(2)
settings = types.ModuleType("settings")
rates, scales = [1.0, [2.0]], {"a": {"b": 1.0}}
numbers = np.zeros(3)
names = {"a"}


class Model:
    factor = 1.0

    def __init__(self):
        self.bias, self.unread = 0.0, 0

    def __call__(self, x):
        return x + self.bias

    def step(self, x):
        return x * self.factor + self.bias


class Doubled(Model):
    def step(self, x):
        return 2 * x


class Slotted:
    __slots__ = ("rate",)

    def __init__(self, rate):
        self.rate = rate


class Mapped(collections.UserDict):
    pass


model, slotted = Model(), Slotted(1.0)
NAME = "bias"
args, space = argparse.Namespace(rate=1.0), types.SimpleNamespace(rate=1.0)
chained, mapped = collections.ChainMap({"rate": 1.0}), Mapped(rate=1.0)


def shift_of(x):
    try:
        return x.shift
    except AttributeError:
        return 0.0


def helper(x):
    return x + offset


def outermost(x):
    return inner(x)


@olympus.jit
def inner(x):
    return helper(x)


def closing():
    k = 1.0

    def f(x):
        return x * k

    def change(value):
        nonlocal k
        k = value
    return f, change


def with_default(x, n=1.0):
    return x * n


def in_globals(**values):
    globals().update(values)


# What is captured: (a function, how it changes, the message's line, the result before and after).
cell, set_cell = closing()
WAYS = {
    "a global number": (lambda x: x + offset, lambda: in_globals(offset=1.0),
                        "the global offset was 0.0 and is now 1.0", 2.0, 3.0),
    "a global array": (lambda x: x + table[0], lambda: in_globals(table=onp.ones(2)),
                       "the global table was Array([0., 0.], dtype=float32) and is now "
                       "Array([1., 1.], dtype=float32)", 2.0, 3.0),
    "a closure cell": (cell, lambda: set_cell(2.0),
                       "the closure cell k of closing.<locals>.f was 1.0 and is now 2.0", 2.0, 4.0),
    "a default argument": (with_default, lambda: setattr(with_default, "__defaults__", (2.0,)),
                           "the default n of with_default was 1.0 and is now 2.0", 2.0, 4.0),
    "an attribute of a module": (lambda x: x * settings.rate,
                                 lambda: setattr(settings, "rate", 2.0),
                                 "the global settings.rate was 1.0 and is now 2.0", 2.0, 4.0),
    "a list": (lambda x: x * rates[1][0], lambda: rates[1].__setitem__(0, 3.0),
               "the global rates[1][0] was 2.0 and is now 3.0", 4.0, 6.0),
    "the length of a list": (lambda x: x * len(rates), lambda: rates.append(1.0),
                             "the global rates[2] was absent and is now 1.0", 4.0, 6.0),
    "a dict": (lambda x: x * scales["a"]["b"], lambda: scales["a"].update(b=5.0),
               "the global scales['a']['b'] was 1.0 and is now 5.0", 2.0, 10.0),
    "a set": (lambda x: x * len(names), lambda: names.add("b"),
              "the global names was {'a'} and is now", 2.0, 4.0),
    "a NumPy array, in place": (lambda x: x + numbers.sum(), lambda: numbers.fill(1.0),
                                "the global numbers was array([0., 0., 0.]) and is now "
                                "array([1., 1., 1.])", 2.0, 5.0),
    "an attribute of an object": (lambda x: model(x), lambda: setattr(model, "bias", 1.0),
                                  "the global model.bias was 0.0 and is now 1.0", 2.0, 3.0),
    "a slot": (lambda x: x * slotted.rate, lambda: setattr(slotted, "rate", 2.0),
               "the global slotted.rate was 1.0 and is now 2.0", 2.0, 4.0),
    "another object": (lambda x: x * slotted.rate, lambda: in_globals(slotted=Slotted(3.0)),
                       "the global slotted.rate was 1.0 and is now 3.0", 2.0, 6.0),
    "an attribute of a class": (lambda x: model.step(x), lambda: setattr(Model, "factor", 2.0),
                                "the class attribute Model.factor was 1.0 and is now 2.0",
                                2.0, 4.0),
    "an attribute over its class's": (lambda x: model.step(x),
                                      lambda: setattr(model, "factor", 2.0),
                                      "the global model.factor was 1.0 (by its class) and is now "
                                      "2.0", 2.0, 4.0),
    "an attribute by getattr": (lambda x: x * getattr(slotted, "rate"),   # noqa: B009
                                lambda: setattr(slotted, "rate", 2.0),
                                "the global slotted.rate was 1.0 and is now 2.0", 2.0, 4.0),
    "an attribute by vars": (lambda x: x + vars(model)["bias"], lambda: setattr(model, "bias", 1.0),
                             "the global model.bias was 0.0 and is now 1.0", 2.0, 3.0),
    "an attribute by __dict__": (lambda x: x + model.__dict__["bias"],
                                 lambda: setattr(model, "bias", 1.0),
                                 "the global model.bias was 0.0 and is now 1.0", 2.0, 3.0),
    "a global by globals": (lambda x: x + globals()["offset"], lambda: in_globals(offset=1.0),
                            "the global offset was 0.0 and is now 1.0", 2.0, 3.0),
    "an object's class": (lambda x: model.step(x), lambda: setattr(model, "__class__", Doubled),
                          "the global model (its class) was Model and is now Doubled", 2.0, 4.0),
    "an attribute by the name that a global has": (
        lambda x: x + getattr(model, NAME), lambda: setattr(model, "bias", 1.0),
        "the global model.bias was 0.0 and is now 1.0", 2.0, 3.0),
    "attributes by names in a loop": (
        lambda x: x + sum(getattr(model, name) for name in ("bias", "bias")),
        lambda: setattr(model, "bias", 1.0), "the global model.bias was 0.0 and is now 1.0",
        2.0, 4.0),
    "an attribute by a key": (
        lambda x: x + sum(getattr(model, name) for name in {"bias": 0}),
        lambda: setattr(model, "bias", 1.0), "the global model.bias was 0.0 and is now 1.0",
        2.0, 3.0),
    "an attribute that was absent": (
        lambda x: x + getattr(model, "shift", 0.0), lambda: setattr(model, "shift", 1.0),
        "the global model.shift was absent and is now 1.0", 2.0, 3.0),
    "an attribute that was asked for": (
        lambda x: x + 1 if hasattr(model, "shift") else x, lambda: setattr(model, "shift", 1.0),
        "the global model.shift was absent and is now 1.0", 2.0, 3.0),
    "an attribute whose absence is caught": (
        lambda x: x + shift_of(model), lambda: setattr(model, "shift", 1.0),
        "the global model.shift was absent and is now 1.0", 2.0, 3.0),
    "a global that was absent": (
        lambda x: x + globals().get("later", 0.0), lambda: in_globals(later=1.0),
        "the global later was absent and is now 1.0", 2.0, 3.0),
    "arguments of a program": (lambda x: x * args.rate, lambda: setattr(args, "rate", 2.0),
                               "the global args.rate was 1.0 and is now 2.0", 2.0, 4.0),
    "a namespace": (lambda x: x * space.rate, lambda: setattr(space, "rate", 2.0),
                    "the global space.rate was 1.0 and is now 2.0", 2.0, 4.0),
    "a mapping of the standard library": (
        lambda x: x * chained["rate"], lambda: chained.update(rate=2.0),
        "the global chained.maps[0]['rate'] was 1.0 and is now 2.0", 2.0, 4.0),
    "a mapping derived from it": (
        lambda x: x * mapped["rate"], lambda: mapped.update(rate=2.0),
        "the global mapped.data['rate'] was 1.0 and is now 2.0", 2.0, 4.0),
    "a function called": (lambda x: helper(x), lambda: in_globals(offset=1.0),
                          "the global offset was 0.0 and is now 1.0", 2.0, 3.0),
    "a jitted function called": (outermost, lambda: in_globals(offset=1.0),
                                 "the global offset was 0.0 and is now 1.0", 2.0, 3.0),
    "another function": (lambda x: helper(x), lambda: in_globals(helper=lambda x: x * 4),
                         "the global helper was helper and is now", 2.0, 8.0),
    "a nested function": (lambda x: (lambda y: y + offset)(x), lambda: in_globals(offset=1.0),
                          "the global offset was 0.0 and is now 1.0", 2.0, 3.0),
    "a loop's body": (lambda x: lax.fori_loop(0, 2, lambda i, c: c + offset, x),
                      lambda: in_globals(offset=1.0),
                      "the global offset was 0.0 and is now 1.0", 2.0, 4.0),
    "a scan's body": (lambda x: lax.scan(lambda c, _: (c + rates[0], None), x, None, length=1)[0],
                      lambda: rates.__setitem__(0, 2.0),
                      "the global rates[0] was 1.0 and is now 2.0", 3.0, 4.0),
    "lax.map": (lambda x: lax.map(helper, x[None])[0], lambda: in_globals(offset=1.0),
                "the global offset was 0.0 and is now 1.0", 2.0, 3.0),
    "grad of a function": (olympus.grad(lambda x: x * x * scales["a"]["b"]),
                           lambda: scales["a"].update(b=5.0),
                           "the global scales['a']['b'] was 1.0 and is now 5.0", 4.0, 20.0),
    "a partial": (functools.partial(lambda d, x: x * d["k"], {"k": 1.0}), None,
                  "the partial's argument 0['k'] was 1.0 and is now 2.0", 2.0, 4.0),
    "a method's self": (model.step, lambda: setattr(model, "bias", 1.0),
                        "self.bias of Model.step was 0.0 and is now 1.0", 2.0, 3.0),
}


@pytest.fixture(autouse=True)
def as_written():
    """All that is changed has its first value, in each test."""
    set_cell(1.0)
    with_default.__defaults__ = (1.0,)
    settings.rate = 1.0
    Model.factor, slotted.rate = 1.0, 1.0
    model.__class__ = Model
    model.__dict__.pop("factor", None)
    model.__dict__.pop("shift", None)
    args.rate = space.rate = chained["rate"] = mapped["rate"] = 1.0
    model.bias = model.unread = 0
    model.bias = 0.0
    rates[:] = [1.0, [2.0]]
    scales["a"]["b"] = 1.0
    numbers[:] = 0
    names.intersection_update({"a"})
    before = dict(globals())
    in_globals(offset=0.0, table=onp.zeros(2))
    yield
    globals().pop("later", None)
    globals().update(before)


def changed(way):
    fun, change, *rest = WAYS[way]
    if way == "a partial":
        fun = functools.partial(fun.func, {"k": 1.0})
        return fun, lambda: fun.args[0].update(k=2.0), *rest
    return fun, change, *rest


@pytest.mark.parametrize("way", WAYS)
def test_what_has_changed_is_told_by_name_or_traced_anew(way):
    fun, change, line, before, after = changed(way)
    warned, refused, again = [olympus.jit(fun, guards=mode)
                              for mode in ("warn", "error", "retrace")]
    x = onp.float32(2)
    for f in (warned, refused, again):
        assert f(x) == f(x) == before
    change()
    with pytest.warns(StaleValueWarning) as found:
        assert warned(x) == before
    text = str(found[0].message)
    assert line in text
    assert len(found) == 1
    assert found[0].filename == __file__
    assert warned(x) == before      # told once, or this would raise
    with pytest.raises(StaleValueError) as error:
        refused(x)
    assert line in str(error.value)
    assert again(x) == again(x) == after
    assert again.cache_info().traces == 2
    assert again.lower(x).compile()(x) == after


def test_the_option_guards_what_was_jitted_before():
    f = olympus.jit(lambda x: x + offset)
    with jit_guards("error"):
        assert f(1.0) == 1.0
        in_globals(offset=1.0)
        for call in (f, f.lower, f.trace, f.eval_shape, olympus.grad(f),
                     olympus.jit(lambda x: f(x))):
            with pytest.raises(StaleValueError, match="offset was 0.0 and is now 1.0"):
                call(1.0)
        assert olympus.jit(lambda x: x - offset, guards="off")(1.0) == 0.0
    in_globals(offset=2.0)
    assert f(1.0) == f(1.0) == 3.0


@pytest.mark.parametrize(("old", "new", "differ"), [
    (0.0, -0.0, True), (1, True, True), (1, 1.0, True), (float("nan"), float("nan"), False),
    (1.5, 1.5 + 0 * offset, False), ([1, 2], [1, 2], False), ("ab", "".join("ab"), False),
    (np.float32(1), np.float64(1), True), (np.ones(2), np.ones(2), False),
    (np.float32("nan"), np.float32("nan"), False), (np.zeros(1), -np.zeros(1), True)])
def test_values_are_compared_by_type_and_bits(old, new, differ):
    in_globals(offset=old)
    f = olympus.jit(lambda x: (offset, x)[1], guards="error")
    f(1.0)
    in_globals(offset=new)
    if differ:
        with pytest.raises(StaleValueError):
            f(1.0)
    else:
        assert f(1.0) == f(1.0) == 1.0


def test_arrays_of_equal_bits_are_one_value():
    f = olympus.jit(lambda x: x + table[0], guards="error")
    f(1.0)
    in_globals(table=onp.zeros(2))
    f(1.0)
    in_globals(table=onp.zeros(2, int))
    with pytest.raises(StaleValueError, match="table"):
        f(1.0)


def test_what_the_function_does_not_read_may_change():
    def f(x):
        kept.append(x.dtype)        # what tracing itself changes is no change since
        return model(x)

    kept = []
    f = olympus.jit(f, guards="error")
    f(1.0)
    model.unread = 1
    settings.rate = 7.0
    assert f(1.0) == 1.0


@pytest.mark.parametrize(("value", "why"), [
    (np.zeros(5000), "it has 40,000 bytes"), (list(range(1000)), "it has 1,000 items"),
    (itertools.count(), "what a count holds cannot be read"),
    (bytearray(3), "what a bytearray holds cannot be read"),
    (np.array([[1], None], object), "it has Python objects")])
def test_a_value_that_cannot_be_compared_is_told_once_by_name(value, why):
    in_globals(offset=value)
    f = olympus.jit(lambda x: (offset, x)[1], guards="error")
    with pytest.warns(StaleValueWarning, match=f"cannot compare the global offset: {why}") as found:
        f(1.0)
    f(1.0)
    f(onp.ones(2))
    assert len(found) == 1
    in_globals(offset=None)
    with pytest.raises(StaleValueError, match="offset"):
        f(1.0)


def test_a_value_that_is_restored_is_no_change():
    f = olympus.jit(lambda x: x + offset, guards="error")
    f(1.0)
    in_globals(offset=1.0)
    with pytest.raises(StaleValueError):
        f(1.0)
    in_globals(offset=0.0)
    assert f(1.0) == 1.0


def test_cleared_caches_forget_what_was_captured():
    f = olympus.jit(lambda x: x + offset, guards="error")
    for clear in (f.clear_cache, olympus.clear_caches):
        in_globals(offset=0.0)
        f.clear_cache()
        assert f(1.0) == 1.0
        in_globals(offset=1.0)
        clear()
        assert f(1.0) == 2.0


def test_guards_keep_donation_static_arguments_and_arrays_given_twice():
    f = olympus.jit(lambda x, y, k: (x * k[0] + offset, y), static_argnums=2, donate_argnums=0,
                    guards="retrace")
    for expected in (0.0, 1.0):
        in_globals(offset=expected)
        x, y = onp.ones(3), onp.ones(3)
        assert (f(x, y, (2.0,))[0] == 2 + expected).all()
        assert x.is_deleted()
        assert not y.is_deleted()
        assert (f(y + 0, y, (3,))[0] == 3 + expected).all()


def test_bad_guards_are_refused():
    with pytest.raises(ValueError, match="guards='maybe' given; 'off', 'warn'"):
        olympus.jit(lambda x: x, guards="maybe")


def test_without_guards_nothing_is_looked_at():
    f = olympus.jit(lambda x: x + offset)
    with warnings.catch_warnings(action="error"):
        f(1.0)
        in_globals(offset=1.0)
        assert f(1.0) == 1.0
    assert f._jit_info.purity is None
