"""Ways in which a body reads a value that changes later: each makes (g, change).

`g(x)` is `x` times the value, which `change()` turns from 2 to 3. `g` takes arrays of Olympus and
of NumPy, so that a Python loop over NumPy's shows what is right.
"""

import argparse
import collections
import contextlib
import contextvars
import dataclasses
import decimal
import enum
import functools
import importlib
import itertools
import math
import operator
import os
import random
import sys
import tempfile
import threading
import time
import types
import weakref
from pathlib import Path
from typing import NamedTuple

import numpy as np

import olympus
import olympus.numpy as onp

WAYS = {}
S = 2.0
K = 2.0
ARRAY = np.array([2.0])
cfg = types.SimpleNamespace(v=2.0)
module = types.ModuleType("settings")
module.v, module.inner = 2.0, types.ModuleType("inner")
module.inner.v = 2.0


def way(make):
    WAYS[make.__name__.replace("_", " ")] = make
    return make


def in_globals(**values):
    return lambda: globals().update(values)


# NumPy arrays that change in place ----------------------------------------------------------------

@way
def an_array_s_items():
    a = np.array([2.0], "float32")
    return lambda x: x * a[0], lambda: a.fill(3)


@way
def an_array_as_an_operand():
    a = np.array(2.0, "float32")
    return lambda x: x * a, lambda: a.fill(3)


@way
def a_global_array():
    ARRAY[:] = 2
    return lambda x: x * ARRAY[0], lambda: ARRAY.fill(3)


@way
def an_array_in_a_list_in_a_dict():
    d = {"a": [np.array(2.0, "float32")]}
    return lambda x: x * d["a"][0], lambda: d["a"][0].fill(3)


@way
def a_view_of_an_array():
    whole = np.full((4, 4), 2.0, "float32")
    part = whole[1:3, ::2]
    return lambda x: x * part[0, 0], lambda: whole.fill(3)


@way
def a_large_array():
    a = np.full(100_000, 2.0, "float32")
    return lambda x: x * a[-1], lambda: a.__setitem__(-1, 3)


@way
def an_array_of_objects():
    a = np.array([2.0, None], object)
    return lambda x: x * a[0], lambda: a.__setitem__(0, 3.0)


@way
def a_structured_array():
    a = np.zeros(2, [("k", "i4"), ("v", "f4")])
    a["v"] = 2
    return lambda x: x * a["v"][1], lambda: a["v"].fill(3)


@way
def a_row_of_a_structured_array():
    a = np.zeros(2, [("k", "i4"), ("v", "f4")])
    a["v"] = 2
    row = a[1]
    return lambda x: x * row["v"], lambda: a["v"].fill(3)


@way
def a_memory_map():
    a = np.memmap(Path(tempfile.mkdtemp(), "a"), "float32", "w+", shape=(4,))
    a[:] = 2
    return lambda x: x * a[0], lambda: a.fill(3)


@way
def a_masked_array():
    a = np.ma.array([2.0, 0.0, 3.0], mask=[False, True, True])
    return lambda x: x * np.float32(a.sum()), lambda: a.mask.__setitem__(slice(None), [1, 1, 0])


@way
def the_shape_of_an_array():
    a = np.zeros((2, 3))
    return lambda x: x * float(a.shape[0]), lambda: setattr(a, "shape", (3, 2))


@way
def a_bytearray():
    a = bytearray([2])
    return lambda x: x * a[0], lambda: a.__setitem__(0, 3)


@way
def a_memoryview():
    a = bytearray([2])
    view = memoryview(a)
    return lambda x: x * view[0], lambda: a.__setitem__(0, 3)


# Names --------------------------------------------------------------------------------------------

@way
def a_global():
    return lambda x: x * S, in_globals(S=3.0)


@way
def a_global_of_a_nested_lambda():
    return lambda x: (lambda y: y * S)(x), in_globals(S=3.0)


@way
def a_global_of_a_comprehension():
    return lambda x: [y * S for y in [x]][0], in_globals(S=3.0)


def reads_global(x):
    return x * S


@way
def a_global_of_a_helper():
    return lambda x: reads_global(x), in_globals(S=3.0)


@way
def another_helper():
    globals()["helper"] = lambda x: x * 2.0
    return lambda x: helper(x), in_globals(helper=lambda x: x * 3.0)  # noqa: F821


@way
def a_helper_s_code():
    def helper(x):
        return x * 2.0

    def other(x):
        return x * 3.0
    return lambda x: helper(x), lambda: setattr(helper, "__code__", other.__code__)


@way
def its_own_code():
    def g(x):
        return x * 2.0

    def other(x):
        return x * 3.0
    return g, lambda: setattr(g, "__code__", other.__code__)


@way
def a_closure_cell():
    k = 2.0

    def change():
        nonlocal k
        k = 3.0
    return lambda x: x * k, change


@way
def a_cell_of_a_helper():
    k = 2.0

    def helper(x):
        return x * k

    def change():
        nonlocal k
        k = 3.0
    return lambda x: helper(x), change


@way
def a_default():
    def g(x, k=2.0):
        return x * k
    return g, lambda: setattr(g, "__defaults__", (3.0,))


@way
def a_keyword_default():
    def g(x, *, k=2.0):
        return x * k
    return g, lambda: g.__kwdefaults__.update(k=3.0)


@way
def a_default_of_a_helper():
    def helper(x, k=2.0):
        return x * k
    return lambda x: helper(x), lambda: setattr(helper, "__defaults__", (3.0,))


@way
def a_keyword_default_of_a_helper():
    def helper(x, *, k=2.0):
        return x * k
    return lambda x: helper(x), lambda: setattr(helper, "__kwdefaults__", {"k": 3.0})


@way
def a_list_as_a_default():
    ks = [2.0]

    def g(x, k=ks):
        return x * k[0]
    return g, lambda: ks.__setitem__(0, 3.0)


@way
def a_name_that_hides_a_builtin():
    globals()["pow"] = lambda x, n: x * 2.0
    return lambda x: pow(x, 1), in_globals(pow=lambda x, n: x * 3.0)


@way
def a_name_that_goes():
    globals()["abs"] = lambda n: 2.0

    def change():
        del globals()["abs"]
    return lambda x: x * abs(-3.0), change


@way
def a_name_that_comes():
    return lambda x: x * min(2.0, 3.0), in_globals(min=max)


@way
def an_attribute_of_a_function():
    def g(x):
        return x * g.k
    g.k = 2.0
    return g, lambda: setattr(g, "k", 3.0)


@way
def an_attribute_of_a_helper():
    def helper():
        return 1.0
    helper.k = 2.0
    return lambda x: x * helper.k * helper(), lambda: setattr(helper, "k", 3.0)


@way
def an_argument_of_the_caller():
    def outer(ks):
        return lambda x: x * ks[0]
    ks = [2.0]
    return outer(ks), lambda: ks.__setitem__(0, 3.0)


# Containers ---------------------------------------------------------------------------------------

@way
def an_item_of_a_list():
    ks = [2.0]
    return lambda x: x * ks[0], lambda: ks.__setitem__(0, 3.0)


@way
def an_item_of_a_nested_list():
    ks = [[0.0, [2.0]]]
    return lambda x: x * ks[0][1][0], lambda: ks[0][1].__setitem__(0, 3.0)


@way
def the_length_of_a_list():
    ks = [0, 0]
    return lambda x: x * float(len(ks)), lambda: ks.append(0)


@way
def the_order_of_a_list():
    ks = [2.0, 3.0]
    return lambda x: x * ks[0], ks.reverse


@way
def a_long_list():
    ks = [2.0] * 1000
    return lambda x: x * ks[-1], lambda: ks.__setitem__(-1, 3.0)


@way
def a_list_in_a_tuple():
    ks = ([2.0],)
    return lambda x: x * ks[0][0], lambda: ks[0].__setitem__(0, 3.0)


@way
def a_dict():
    d = {"k": 2.0}
    return lambda x: x * d["k"], lambda: d.update(k=3.0)


@way
def a_key_that_comes():
    d = {}
    return lambda x: x * d.get("k", 2.0), lambda: d.update(k=3.0)


@way
def the_order_of_a_dict():
    d = {"a": 2.0, "b": 3.0}
    return lambda x: x * next(iter(d.values())), lambda: d.update(a=d.pop("a"))


@way
def the_values_of_a_dict():
    d = {"k": 2.0}
    values = d.values()
    return lambda x: x * sum(values), lambda: d.update(k=3.0)


@way
def the_keys_of_a_dict():
    d = {2.0: None}
    keys = d.keys()

    def change():
        d.clear()
        d[3.0] = None
    return lambda x: x * sum(keys), change


@way
def a_mapping_proxy():
    d = {"k": 2.0}
    proxy = types.MappingProxyType(d)
    return lambda x: x * proxy["k"], lambda: d.update(k=3.0)


@way
def a_default_dict():
    d = collections.defaultdict(lambda: 2.0)
    return lambda x: x * d["k"], lambda: d.update(k=3.0)


@way
def an_ordered_dict():
    d = collections.OrderedDict(a=2.0, b=3.0)
    return lambda x: x * next(iter(d.values())), lambda: d.move_to_end("a")


@way
def a_chain_map():
    d = collections.ChainMap({}, {"k": 2.0})
    return lambda x: x * d["k"], lambda: d.maps[0].update(k=3.0)


@way
def a_counter():
    d = collections.Counter("aa")
    return lambda x: x * float(d["a"]), lambda: d.update("a")


@way
def a_set():
    s = {1, 2}
    return lambda x: x * float(len(s)), lambda: s.add(5)


@way
def a_deque():
    q = collections.deque([2.0, 3.0])
    return lambda x: x * q[0], q.rotate


@way
def a_list_of_a_class_of_ones_own():
    class Rates(list):
        scale = 1.0
    ks = Rates([2.0])
    return lambda x: x * ks[0] * ks.scale, lambda: setattr(ks, "scale", 1.5)


@way
def a_user_dict():
    d = collections.UserDict(k=2.0)
    return lambda x: x * d["k"], lambda: d.update(k=3.0)


@way
def a_partial_s_list():
    ks = [2.0]
    g = functools.partial(lambda ks, x: x * ks[0], ks)
    return g, lambda: ks.__setitem__(0, 3.0)


@way
def a_partial_s_keywords():
    p = functools.partial(lambda x, k: x * k, k=2.0)
    return lambda x: p(x), lambda: p.keywords.update(k=3.0)


# Objects ------------------------------------------------------------------------------------------

class Model:
    factor = 2.0

    def __init__(self, k=2.0):
        self.k = k

    def __call__(self, x):
        return x * self.k

    def by_class(self, x):
        return x * self.factor

    @property
    def doubled(self):
        return self.k * 1.0

    @staticmethod
    def static(x):
        return x * S

    @classmethod
    def of_class(cls, x):
        return x * cls.factor

    def __getattr__(self, name):
        if name != "missing":
            raise AttributeError(name)
        return self.k

    def __iter__(self):
        return iter([self.k])

    def __getitem__(self, i):
        return self.k

    def __enter__(self):
        return self.k

    def __exit__(self, *_):
        return None


@way
def an_attribute():
    m = Model()
    return lambda x: x * m.k, lambda: setattr(m, "k", 3.0)


@way
def an_attribute_of_a_namespace():
    cfg.v = 2.0
    return lambda x: x * cfg.v, lambda: setattr(cfg, "v", 3.0)


@way
def an_attribute_of_an_attribute():
    m = Model(Model())
    return lambda x: x * m.k.k, lambda: setattr(m.k, "k", 3.0)


@way
def a_namespace_of_argparse():
    args = argparse.Namespace(k=2.0)
    return lambda x: x * args.k, lambda: setattr(args, "k", 3.0)


@way
def a_call_of_an_object():
    m = Model()
    return lambda x: m(x), lambda: setattr(m, "k", 3.0)


@way
def a_bound_method():
    m = Model()
    g = m.__call__
    return lambda x: g(x), lambda: setattr(m, "k", 3.0)


@way
def an_attribute_of_a_class():
    Model.factor = 2.0
    m = Model()
    return lambda x: m.by_class(x), lambda: setattr(Model, "factor", 3.0)


@way
def an_attribute_over_its_class_s():
    Model.factor = 2.0
    m = Model()
    return lambda x: m.by_class(x), lambda: setattr(m, "factor", 3.0)


@way
def an_attribute_of_a_derived_class():
    class Derived(Model):
        pass
    Model.factor = 2.0
    m = Derived()
    return lambda x: m.by_class(x), lambda: setattr(Derived, "factor", 3.0)


@way
def a_class_method():
    Model.factor = 2.0
    return lambda x: Model.of_class(x), lambda: setattr(Model, "factor", 3.0)


@way
def a_static_method():
    return lambda x: Model.static(x), in_globals(S=3.0)


@way
def a_property():
    m = Model()
    return lambda x: x * m.doubled, lambda: setattr(m, "k", 3.0)


@way
def a_cached_property():
    class Cached:
        k = 2.0

        @functools.cached_property
        def v(self):
            return self.k
    c = Cached()

    def change():
        c.k = 3.0
        del c.v
    return lambda x: x * c.v, change


@way
def a_getattr_of_a_class():
    m = Model()
    return lambda x: x * m.missing, lambda: setattr(m, "k", 3.0)


@way
def an_iteration_over_an_object():
    m = Model()
    return lambda x: x * [*m][0], lambda: setattr(m, "k", 3.0)


@way
def an_item_of_an_object():
    m = Model()
    return lambda x: x * m[0], lambda: setattr(m, "k", 3.0)


@way
def a_context_manager():
    m = Model()

    def g(x):
        with m as k:
            return x * k
    return g, lambda: setattr(m, "k", 3.0)


@way
def a_context_manager_of_a_generator():
    @contextlib.contextmanager
    def manager():
        yield S

    def g(x):
        with manager() as k:
            return x * k
    return g, in_globals(S=3.0)


@way
def a_method_that_is_replaced():
    class Own:
        def f(self, x):
            return x * 2.0
    own = Own()
    return lambda x: own.f(x), lambda: setattr(Own, "f", lambda self, x: x * 3.0)


@way
def a_base_class_that_is_replaced():
    class A:
        k = 2.0

    class B:
        k = 3.0

    class C(A):
        pass
    c = C()
    return lambda x: x * c.k, lambda: setattr(C, "__bases__", (B,))


@way
def the_class_of_an_object():
    class Other(Model):
        def __call__(self, x):
            return x * 3.0
    m = Model()
    return lambda x: m(x), lambda: setattr(m, "__class__", Other)


@way
def the_dict_of_an_object():
    m = Model()
    return lambda x: x * m.k, lambda: setattr(m, "__dict__", {"k": 3.0})


@way
def a_metaclass():
    class Meta(type):
        k = 2.0

    class A(metaclass=Meta):
        pass
    return lambda x: x * A.k, lambda: setattr(Meta, "k", 3.0)


@way
def an_operator_of_a_class():
    class Own:
        def __init__(self):
            self.k = 2.0

        def __mul__(self, x):
            return x * self.k
    own = Own()
    return lambda x: own * x, lambda: setattr(own, "k", 3.0)


@way
def a_slot():
    class Own:
        __slots__ = ("k",)
    own = Own()
    own.k = 2.0
    return lambda x: x * own.k, lambda: setattr(own, "k", 3.0)


@way
def a_slot_that_comes():
    class Own:
        __slots__ = ("k",)
    own = Own()
    return lambda x: x * (own.k if hasattr(own, "k") else 2.0), lambda: setattr(own, "k", 3.0)


@way
def a_descriptor():
    class Field:
        def __init__(self):
            self.k = 2.0

        def __get__(self, obj, cls=None):
            return self.k

    class Own:
        v = field = Field()
    own, field = Own(), vars(Own)["field"]
    return lambda x: x * own.v, lambda: setattr(field, "k", 3.0)


@way
def a_member_of_an_enum():
    class Rate(enum.Enum):
        K = 2.0
    return lambda x: x * Rate.K.value, lambda: setattr(Rate.K, "_value_", 3.0)


@way
def a_dataclass():
    @dataclasses.dataclass
    class Own:
        k: float
        ks: list = dataclasses.field(default_factory=list)
    own = Own(2.0)
    return lambda x: x * own.k, lambda: setattr(own, "k", 3.0)


@way
def a_frozen_dataclass_s_list():
    @dataclasses.dataclass(frozen=True)
    class Own:
        ks: list
    own = Own([2.0])
    return lambda x: x * dataclasses.astuple(own)[0][0], lambda: own.ks.__setitem__(0, 3.0)


@way
def a_named_tuple_s_list():
    class Own(NamedTuple):
        ks: list
    own = Own([2.0])
    return lambda x: x * own.ks[0], lambda: own.ks.__setitem__(0, 3.0)


@way
def a_registered_dataclass():
    @olympus.tree_util.register_dataclass
    @dataclasses.dataclass
    class Own:
        k: float
    own = Own(2.0)
    return lambda x: x * olympus.tree.leaves(own)[0], lambda: setattr(own, "k", 3.0)


@way
def an_attribute_by_a_text():
    m = Model()
    return lambda x: x * getattr(m, "k", None), lambda: setattr(m, "k", 3.0)


@way
def an_attribute_by_a_computed_text():
    m = Model()
    return lambda x: x * getattr(m, "K".lower()), lambda: setattr(m, "k", 3.0)


@way
def a_method_by_a_computed_text():
    class Own:
        def layer_0(self, x):
            return x * S
    own = Own()
    return lambda x: getattr(own, f"layer_{0}")(x), in_globals(S=3.0)


@way
def the_vars_of_an_object():
    m = Model()
    return lambda x: x * vars(m)["k"], lambda: setattr(m, "k", 3.0)


@way
def the_globals():
    return lambda x: x * globals()["K"], in_globals(K=3.0)


@way
def an_attribute_getter():
    m, get = Model(), operator.attrgetter("k")
    return lambda x: x * get(m), lambda: setattr(m, "k", 3.0)


@way
def a_method_caller():
    class Own:
        def f(self, x):
            return x * S
    own, call = Own(), operator.methodcaller("f", 1.0)
    return lambda x: x * call(own), in_globals(S=3.0)


@way
def a_weak_reference():
    m = Model()
    ref = weakref.ref(m)
    return lambda x: x * ref().k, lambda: setattr(m, "k", 3.0)


@way
def a_private_attribute():
    class Own:
        def __init__(self):
            self.__k = 2.0

        def f(self, x):
            return x * self.__k

        def set(self):
            self.__k = 3.0
    own = Own()
    return lambda x: own.f(x), own.set


@way
def a_super_s_method():
    class Base:
        k = 2.0

        def f(self, x):
            return x * self.k

    class Own(Base):
        def f(self, x):
            return super().f(x)
    own = Own()
    return lambda x: own.f(x), lambda: setattr(Base, "k", 3.0)


@way
def an_init_subclass_registry():
    class Base:
        registry = {}
    Base.registry["k"] = 2.0
    return lambda x: x * Base.registry["k"], lambda: Base.registry.update(k=3.0)


# Modules ------------------------------------------------------------------------------------------

@way
def an_attribute_of_a_module():
    module.v = 2.0
    return lambda x: x * module.v, lambda: setattr(module, "v", 3.0)


@way
def an_attribute_of_a_module_in_a_module():
    module.inner.v = 2.0
    return lambda x: x * module.inner.v, lambda: setattr(module.inner, "v", 3.0)


@way
def a_module_by_another_name():
    module.v = 2.0

    def g(x):
        m = module
        return x * m.v
    return g, lambda: setattr(module, "v", 3.0)


@way
def a_module_in_a_list():
    module.v = 2.0
    modules = [module]
    return lambda x: x * modules[0].v, lambda: setattr(module, "v", 3.0)


def _imported(text):
    folder = tempfile.mkdtemp()
    name = f"module_{Path(folder).name}"
    path = Path(folder, name + ".py")
    path.write_text(text)
    sys.path.insert(0, folder)
    importlib.invalidate_caches()
    try:
        found = importlib.import_module(name)
    finally:
        sys.path.remove(folder)

    def change(text):
        exec(compile(text, str(path), "exec"), vars(found))
    return found, change


@way
def a_module_that_is_loaded_again():
    found, change = _imported("def f(x):\n    return x * 2.0\n")
    return lambda x: found.f(x), lambda: change("def f(x):\n    return x * 3.0\n")


@way
def a_function_of_a_module_that_is_loaded_again():
    found, change = _imported("K = 2.0\ndef f(x):\n    return x * K\n")
    f = found.f
    return lambda x: f(x), lambda: change("K = 3.0\ndef f(x):\n    return x * K\n")


@way
def a_module_imported_in_the_body():
    found, change = _imported("K = 2.0\n")
    space = {"name": found.__name__}
    exec(f"def g(x):\n    import {found.__name__} as m\n    return x * m.K\n", space)
    return space["g"], lambda: change("K = 3.0")


@way
def a_name_imported_in_the_body():
    found, change = _imported("K = 2.0\n")
    space = {}
    exec(f"def g(x):\n    from {found.__name__} import K\n    return x * K\n", space)
    return space["g"], lambda: change("K = 3.0")


@way
def the_table_of_modules():
    module.v = 2.0
    sys.modules["body_reads_settings"] = module
    return (lambda x: x * sys.modules["body_reads_settings"].v), lambda: setattr(module, "v", 3.0)


@way
def a_function_of_NumPy_that_is_replaced():
    before = np.cbrt

    def change():
        np.cbrt = lambda v: 3.0
    np.cbrt = lambda v: 2.0
    UNDO.append(lambda: setattr(np, "cbrt", before))
    return lambda x: x * np.cbrt(8), change


@way
def a_constant_of_math_that_is_replaced():
    before = math.tau
    math.tau = 2.0
    UNDO.append(lambda: setattr(math, "tau", before))
    return lambda x: x * math.tau, lambda: setattr(math, "tau", 3.0)


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
    path = Path(tempfile.mkdtemp(), "k")
    path.write_text("2")
    return lambda x: x * float(path.read_text()), lambda: path.write_text("3")


@way
def a_file_that_is_opened():
    name = os.path.join(tempfile.mkdtemp(), "k")
    Path(name).write_text("2")

    def g(x):
        with open(name) as file:
            return x * float(file.read())
    return g, lambda: Path(name).write_text("3")


@way
def a_file_of_NumPy():
    name = os.path.join(tempfile.mkdtemp(), "k.npy")
    np.save(name, 2.0)
    return lambda x: x * float(np.load(name)), lambda: np.save(name, 3.0)


@way
def a_file_of_NumPy_by_another_name():
    name = os.path.join(tempfile.mkdtemp(), "k.npy")
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
def an_array_of_Olympus():
    globals()["weights"] = onp.float32(2.0)
    return lambda x: x * weights, in_globals(weights=onp.float32(3.0))  # noqa: F821


@way
def a_list_that_it_appends_to_and_a_helper_reads():
    ks = [2.0]

    def helper(x):
        return x * ks[0]

    def g(x):
        ks.append(0.0)
        return helper(x)
    return g, lambda: ks.__setitem__(0, 3.0)


UNDO = []
CALLS = 10_000
FIRST_STATE = None
random.seed(0)
FIRST_STATE = random.getstate()
