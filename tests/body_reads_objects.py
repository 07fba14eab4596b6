"""More ways in which a body reads a value that changes later: see `body_reads.py`."""

import abc
import argparse
import array
import contextlib
import copy
import dataclasses
import enum
import functools
import importlib
import inspect
import math
import numbers
import operator
import os
import sys
import threading
import time
import types
import weakref
from pathlib import Path
from typing import NamedTuple

import numpy as np
from body_reads import UNDO, folder, way

import olympus

S = K = 2.0
cfg = types.SimpleNamespace(v=2.0)
module = types.ModuleType("settings")
module.v, module.inner = 2.0, types.ModuleType("inner")
module.inner.v = 2.0


def in_globals(**values):
    return lambda: globals().update(values)


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
def an_attribute_of_a_class_with_many():
    many = type("Many", (), {f"a{i}": i for i in range(300)} | {"v": 2.0, "__module__": __name__})
    return lambda x: x * many.v, lambda: setattr(many, "v", 3.0)


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
    place = folder()
    name = f"module_{Path(place).name}"
    path = Path(place, name + ".py")
    path.write_text(text)
    sys.path.insert(0, place)
    importlib.invalidate_caches()
    try:
        found = importlib.import_module(name)
    finally:
        sys.path.remove(place)

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


# Found by attacking the above ---------------------------------------------------------------------

@way
def what_is_an_instance_of_a_class():
    class Base(abc.ABC):  # noqa: B024
        pass

    class Own:
        pass
    own = Own()
    return (lambda x: x * (3.0 if isinstance(own, Base) else 2.0), lambda: Base.register(Own))


@way
def what_is_a_number():
    class Own:
        pass
    own = Own()
    return (lambda x: x * (3.0 if isinstance(own, numbers.Number) else 2.0),
            lambda: numbers.Number.register(Own))


@way
def an_instance_check_of_ones_own():
    class Meta(type):
        k = 2.0

        def __instancecheck__(cls, x):
            return cls.k == 2.0

    class Own(metaclass=Meta):
        pass
    return lambda x: x * (2.0 if isinstance(1, Own) else 3.0), lambda: setattr(Meta, "k", 3.0)


@way
def a_module_that_computes_its_names():
    m = types.ModuleType("computing")
    ks = [2.0]
    m.__getattr__ = lambda name: ks[0]
    return lambda x: x * m.any, lambda: ks.__setitem__(0, 3.0)


@way
def a_module_of_a_class_of_ones_own():
    class Own(types.ModuleType):
        ks = [2.0]

        @property
        def v(self):
            return self.ks[0]
    m = Own("own")
    return lambda x: x * m.v, lambda: Own.ks.__setitem__(0, 3.0)


@way
def a_name_that_a_module_gets():
    m = types.ModuleType("growing")
    return (lambda x: x * (m.v if hasattr(m, "v") else 2.0), lambda: setattr(m, "v", 3.0))


@way
def the_name_of_a_class():
    class Own:
        pass
    Own.__name__ = "ab"
    return lambda x: x * float(len(Own.__name__)), lambda: setattr(Own, "__name__", "abc")


@way
def annotations_of_a_class():
    class Own:
        k: 2.0
    return (lambda x: x * Own.__annotations__["k"], lambda: Own.__annotations__.update(k=3.0))


@way
def a_number_of_ones_own():
    class Own(float):
        scale = 1.0
    k = Own(2.0)
    return lambda x: x * float(k) * k.scale, lambda: setattr(k, "scale", 1.5)


@way
def a_number_of_NumPy_of_ones_own():
    class Own(np.float64):
        scale = 1.0
    k = Own(2.0)
    return lambda x: x * float(k) * k.scale, lambda: setattr(k, "scale", 1.5)


@way
def a_text_of_ones_own():
    class Own(str):
        pass
    k = Own("a")
    k.v = 2.0
    return lambda x: x * k.v, lambda: setattr(k, "v", 3.0)


@way
def a_tuple_of_ones_own():
    class Own(tuple):
        pass
    k = Own((1.0,))
    k.v = 2.0
    return lambda x: x * k.v * k[0], lambda: setattr(k, "v", 3.0)


@way
def a_partial_method():
    class Own:
        def f(self, n, x):
            return x * n * S
        g = functools.partialmethod(f, 1.0)
    own = Own()
    return lambda x: own.g(x), in_globals(S=3.0)


@way
def an_exception():
    error = ValueError(2.0)
    return lambda x: x * error.args[0], lambda: setattr(error, "args", (3.0,))


@way
def a_private_list_of_a_class():
    class Own:
        _table = [2.0]

        def f(self, x):
            return x * self._table[0]
    own = Own()
    return lambda x: own.f(x), lambda: Own._table.__setitem__(0, 3.0)


@way
def an_object_in_an_object_in_a_list():
    ms = [types.SimpleNamespace(m=Model())]
    return lambda x: x * ms[0].m.k, lambda: setattr(ms[0].m, "k", 3.0)


@way
def a_copy_of_an_object():
    m = Model()
    return lambda x: x * copy.copy(m).k, lambda: setattr(m, "k", 3.0)


@way
def a_mapped_helper():
    def helper(x):
        return x * S
    mapped = olympus.vmap(helper)
    return (lambda x: mapped(x[None])[0] if isinstance(x, olympus.Array) else x * S,
            in_globals(S=3.0))


@way
def a_differentiated_helper():
    slope = olympus.grad(lambda x: x * S)
    return (lambda x: x * slope(1.0) if isinstance(x, olympus.Array) else x * S,
            in_globals(S=3.0))


@way
def a_checkpointed_helper():
    helper = olympus.checkpoint(lambda x: x * S)
    return (lambda x: helper(x) if isinstance(x, olympus.Array) else x * S, in_globals(S=3.0))


@way
def a_loop_in_the_body():
    def step(c, _):
        return c * S, None
    return (lambda x: olympus.lax.scan(step, x, None, 1)[0] if isinstance(x, olympus.Array)
            else x * S, in_globals(S=3.0))


@way
def a_stateful_generator_of_Olympus():
    keys = olympus.random.PRNGKey(0), olympus.random.PRNGKey(1)
    holder = types.SimpleNamespace(key=keys[0])
    return (lambda x: x * (2.0 + (holder.key is keys[1])), lambda: setattr(holder, "key", keys[1]))


@way
def an_option():
    olympus.config.update("olympus_log_compiles", False)
    UNDO.append(lambda: olympus.config.update("olympus_log_compiles", False))
    return (lambda x: x * (2.0 + olympus.config.olympus_log_compiles),
            lambda: olympus.config.update("olympus_log_compiles", True))


@way
def a_table_of_weak_references():
    m = Model()
    table = weakref.WeakValueDictionary(m=m)
    keep = [m]
    return lambda x: x * table["m"].k * len(keep), lambda: setattr(m, "k", 3.0)


@way
def an_event():
    event = threading.Event()
    return lambda x: x * (2.0 + event.is_set()), event.set


@way
def an_array_of_Python():
    a = array.array("d", [2.0])
    return lambda x: x * a[0], lambda: a.__setitem__(0, 3.0)


@way
def a_clock_by_another_name():
    now = [2.0]
    before, time.perf_counter = time.perf_counter, lambda: now[0]
    UNDO.append(lambda: setattr(time, "perf_counter", before))
    return lambda x: x * time.perf_counter(), lambda: now.__setitem__(0, 3.0)


@way
def a_reader_of_NumPy_by_its_own_name():
    name, load = os.path.join(folder(), "k.npy"), np.load
    np.save(name, 2.0)
    return lambda x: x * float(load(name)), lambda: np.save(name, 3.0)


@way
def the_signature_of_a_helper():
    def helper(k=2.0):
        pass
    return (lambda x: x * inspect.signature(helper).parameters["k"].default,
            lambda: setattr(helper, "__defaults__", (3.0,)))
