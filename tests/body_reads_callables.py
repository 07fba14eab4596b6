"""Ways to read a value that changes later by callables and descriptors: see `body_reads.py`."""

import collections
import contextlib
import dataclasses
import functools
import math
import operator
import types
import typing

import numpy as np
from body_reads import UNDO, way

# Attributes of callables --------------------------------------------------------------------------

@way
def an_attribute_that_a_helper_gets():
    def helper():
        pass
    return lambda x: x * getattr(helper, "k", 2.0), lambda: setattr(helper, "k", 3.0)


@way
def an_attribute_that_a_helper_has_not_yet():
    def helper():
        pass

    def of(f):
        return 3.0 if hasattr(f, "k") else 2.0
    return lambda x: x * of(helper), lambda: setattr(helper, "k", 3.0)


@way
def an_attribute_whose_absence_is_caught():
    def helper():
        pass

    def g(x):
        try:
            return x * helper.k
        except AttributeError:
            return x * 2.0
    return g, lambda: setattr(helper, "k", 3.0)


@way
def an_attribute_whose_absence_is_suppressed():
    def helper():
        pass

    def g(x):
        found = x * 2.0
        with contextlib.suppress(AttributeError):
            found = x * helper.k
        return found
    return g, lambda: setattr(helper, "k", 3.0)


@way
def an_attribute_of_a_partial():
    helper = functools.partial(int)
    helper.k = 2.0
    return lambda x: x * helper.k, lambda: setattr(helper, "k", 3.0)


@way
def an_attribute_that_a_partial_gets():
    helper = functools.partial(int)
    return lambda x: x * getattr(helper, "k", 2.0), lambda: setattr(helper, "k", 3.0)


@way
def a_partial_of_a_class_of_ones_own():
    class Partial(functools.partial):
        pass
    helper = Partial(int)
    helper.k = 2.0
    return lambda x: x * helper.k, lambda: setattr(helper, "k", 3.0)


@way
def a_partial_s_state():
    helper = functools.partial(operator.mul, 2.0)
    return lambda x: helper(x), lambda: helper.__setstate__((operator.mul, (3.0,), {}, None))


@way
def an_attribute_of_a_static_method():
    helper = staticmethod(lambda: 0)
    helper.k = 2.0
    return lambda x: x * helper.k, lambda: setattr(helper, "k", 3.0)


@way
def a_function_of_NumPy_made_of_ones_own():
    ks = [2.0]
    helper = np.frompyfunc(lambda v: v * ks[0], 1, 1)
    return lambda x: x * helper(1.0), lambda: ks.__setitem__(0, 3.0)


# Functions without a name -------------------------------------------------------------------------

@way
def what_makes_an_object():
    ks = [2.0]

    class Model:
        def __new__(cls):
            self = object.__new__(cls)
            self.k = ks[0]
            return self
    return lambda x: x * Model().k, lambda: ks.__setitem__(0, 3.0)


@way
def an_item_of_a_class():
    ks = [2.0]

    class Model:
        def __class_getitem__(cls, i):
            return ks[i]
    return lambda x: x * Model[0], lambda: ks.__setitem__(0, 3.0)


@way
def an_operator_that_is_an_object():
    class Operator:
        k = 2.0

        def __call__(self):
            return self.k

    class Model:
        __float__ = Operator()
    model = Model()
    return lambda x: x * float(model), lambda: setattr(Operator, "k", 3.0)


@way
def an_operator_that_is_a_partial_method():
    ks = [2.0]

    class Model:
        __getattr__ = functools.partialmethod(lambda self, ks, name: ks[0], ks)
    model = Model()
    return lambda x: x * model.k, lambda: ks.__setitem__(0, 3.0)


@way
def a_property_of_a_class_of_ones_own():
    class Property(property):
        k = 2.0

        def __get__(self, instance, owner=None):
            return self.k

    class Model:
        k = Property(lambda self: 0.0)
    model = Model()
    return lambda x: x * model.k, lambda: setattr(Property, "k", 3.0)


@way
def a_cached_property_s_function():
    class Model:
        @functools.cached_property
        def k(self):
            return 2.0
    return lambda x: x * Model().k, lambda: setattr(vars(Model)["k"], "func", lambda self: 3.0)


@way
def every_attribute_of_an_object():
    ks = {"k": 2.0}

    class Model:
        def __getattribute__(self, name):
            return ks[name]
    model = Model()
    return lambda x: x * model.k, lambda: ks.update(k=3.0)


@way
def a_method_that_equals_everything():
    class Model:
        def k(self):
            return 2.0

    class Equal:
        __hash__ = None

        def __eq__(self, other):
            return True

        def __call__(self):
            return 3.0
    model = Model()
    return lambda x: x * model.k(), lambda: setattr(Model, "k", Equal())


@way
def two_attributes_that_change_places():
    class Model:
        pass
    model = Model()
    model.a, model.b = 2.0, 3.0

    def change():
        own = vars(model)
        values = [*own.values()]
        own.clear()
        own.update(zip("ba", values, strict=True))
    return lambda x: x * model.a, change


# Defaults, fields, slots --------------------------------------------------------------------------

@way
def a_default_of_a_named_tuple():
    pair = collections.namedtuple("pair", "a b", defaults=[2.0])
    return lambda x: x * pair(1.0).b, lambda: setattr(pair.__new__, "__defaults__", (3.0,))


@way
def a_list_that_a_named_tuple_has_by_default():
    pair = collections.namedtuple("pair", "a b", defaults=[[2.0]])
    return lambda x: x * pair(1.0).b[0], lambda: pair._field_defaults["b"].__setitem__(0, 3.0)


@way
def a_field_of_a_dataclass():
    @dataclasses.dataclass
    class Model:
        k: float = 2.0
    return lambda x: x * dataclasses.fields(Model)[0].default, lambda: setattr(
        Model.__dataclass_fields__["k"], "default", 3.0)


@way
def the_hints_of_a_class():
    class Model:
        k: int
    sizes = {int: 2.0, float: 3.0}
    return lambda x: x * sizes[typing.get_type_hints(Model)["k"]], lambda: (
        Model.__annotations__.update(k=float))


@way
def a_slot_of_a_spent_iterator():
    class Model:
        __slots__ = iter(("k",))
    model = Model()
    model.k = 2.0
    return lambda x: x * model.k, lambda: setattr(model, "k", 3.0)


# What stands for others ---------------------------------------------------------------------------

@way
def an_attribute_by_a_type_of_types():
    class Model(list):
        k = 2.0
    alias = types.GenericAlias(Model, (int,))
    return lambda x: x * alias.k, lambda: setattr(Model, "k", 3.0)


class Index:
    def __init__(self):
        self.i = 0

    def __index__(self):
        return self.i


@way
def a_slice_of_objects():
    start, values = Index(), (2.0, 3.0)
    part = slice(start, None)
    return lambda x: x * values[part][0], lambda: setattr(start, "i", 1)


@way
def an_item_getter_of_an_object():
    place, values = Index(), (2.0, 3.0)
    getter = operator.itemgetter(place)
    return lambda x: x * getter(values), lambda: setattr(place, "i", 1)


@way
def a_proxy_of_a_mapping_of_ones_own():
    class Table(dict):
        def __getitem__(self, key):
            return self.k
    table = Table(k=0.0)
    table.k = 2.0
    proxy = types.MappingProxyType(table)
    return lambda x: x * proxy["k"], lambda: setattr(table, "k", 3.0)


@way
def a_library_s_function_by_a_module_in_a_cell():
    module = math
    before = math.sqrt
    UNDO.append(lambda: setattr(math, "sqrt", before))
    return lambda x: x * module.sqrt(4.0), lambda: setattr(math, "sqrt", lambda n: 3.0)


@way
def a_name_that_a_library_gets():
    UNDO.append(lambda: vars(math).pop("twice", None))
    return lambda x: x * getattr(math, "twice", 2.0), lambda: setattr(math, "twice", 3.0)


# Arrays -------------------------------------------------------------------------------------------

@way
def the_base_of_a_view():
    whole = np.array([0.0, 2.0])
    part = whole[:1]
    return lambda x: x * part.base[1], lambda: whole.fill(3)


@way
def whether_an_array_may_be_written():
    a = np.zeros(2)
    return lambda x: x * (2.0 if a.flags.writeable else 3.0), lambda: a.setflags(write=False)


@way
def the_fields_of_an_array():
    a = np.zeros(2, [("k", "f4")])
    return lambda x: x * (2.0 if a.dtype.names == ("k",) else 3.0), lambda: setattr(
        a.dtype, "names", ("j",))
