"""Ways in which a body reads a value that changes later: each makes (g, change).

`g(x)` is `x` times the value, which `change()` turns from 2 to 3. `g` takes arrays of Olympus and
of NumPy, so that a Python loop over NumPy's shows what is right. Arrays, names and containers are
here; objects and modules in `body_reads_objects.py`, the state of the process in
`body_reads_process.py`.
"""

import collections
import functools
import shutil
import tempfile
import types
import warnings
from pathlib import Path

import numpy as np

import olympus.numpy as onp

WAYS = {}
UNDO = []       # of what is changed beyond these modules
S = 2.0
ARRAY = np.array([2.0])


def way(make):
    WAYS[make.__name__.replace("_", " ")] = make
    return make


def folder():
    """A folder until the test ends."""
    found = tempfile.mkdtemp()
    UNDO.append(lambda: shutil.rmtree(found))
    return found


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
    a = np.memmap(Path(folder(), "a"), "float32", "w+", shape=(4,))
    a[:] = 2
    return lambda x: x * a[0], lambda: a.fill(3)


@way
def a_masked_array():
    a = np.ma.array([2.0, 0.0, 3.0], mask=[False, True, True])
    return lambda x: x * np.float32(a.sum()), lambda: a.mask.__setitem__(slice(None), [1, 1, 0])


@way
def the_shape_of_an_array():
    a = np.zeros((2, 3))
    return lambda x: x * float(a.shape[0]), lambda: a.resize((3, 2), refcheck=False)


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


@way
def an_array_of_Olympus():
    globals()["weights"] = onp.float32(2.0)
    return lambda x: x * weights, in_globals(weights=onp.float32(3.0))  # noqa: F821


@way
def the_dtype_of_an_array():
    a = np.array([2.0], "<f4")

    def change():
        with warnings.catch_warnings(action="ignore"):
            a.dtype = "<i4"
    return lambda x: x * (2.0 if a.dtype.kind == "f" else 3.0), change


@way
def a_read_only_view():
    a = np.array([2.0, 0.0], "float32")
    view = a[::-1]
    view.flags.writeable = False
    return lambda x: x * view[1], lambda: a.fill(3)


@way
def a_broadcast_array():
    a = np.array([2.0], "float32")
    wide = np.broadcast_to(a, (3, 4))
    return lambda x: x * wide[1, 2], lambda: a.fill(3)


@way
def an_array_of_texts():
    a = np.array(["2", "x"])
    return lambda x: x * float(a[0]), lambda: a.__setitem__(0, "3")


@way
def a_mask():
    a = np.array([True, True, False])
    return lambda x: x * float(a.sum()), lambda: a.fill(True)


@way
def an_array_of_a_class_of_ones_own():
    class Own(np.ndarray):
        pass
    a = np.full(1, 2.0, "float32").view(Own)
    return lambda x: x * float(a[0]), lambda: a.fill(3)


@way
def a_record_array():
    a = np.rec.array([(2.0,)], dtype=[("v", "f4")])
    return lambda x: x * a.v[0], lambda: a.v.fill(3)


@way
def an_array_that_a_method_is_of():
    a = np.array([2.0], "float32")
    total = a.sum
    return lambda x: x * total(), lambda: a.fill(3)


@way
def the_flat_items_of_an_array():
    a = np.array([[2.0]], "float32")
    flat = a.flat
    return lambda x: x * flat[0], lambda: a.fill(3)


@way
def an_array_in_an_object():
    holder = types.SimpleNamespace(a=np.array([2.0], "float32"))
    return lambda x: x * holder.a[0], lambda: holder.a.fill(3)


@way
def a_polynomial():
    p = np.poly1d([2.0])
    return lambda x: x * p(1.0), lambda: p.__setitem__(0, 3.0)


@way
def a_vectorized_function():
    v = np.vectorize(lambda y: y * S)
    return lambda x: x * float(v(1.0)), in_globals(S=3.0)


@way
def a_builtin_of_its_own():
    space = {"__builtins__": {"k": 2.0}}
    exec("def g(x):\n    return x * k", space)
    return space["g"], lambda: space["__builtins__"].update(k=3.0)


@way
def the_text_of_a_function():
    def helper():
        """2"""
    return lambda x: x * float(helper.__doc__), lambda: setattr(helper, "__doc__", "3")


@way
def the_name_of_a_function():
    def helper():
        pass
    helper.__name__ = "ab"
    return lambda x: x * float(len(helper.__name__)), lambda: setattr(helper, "__name__", "abc")


@way
def the_defaults_of_a_function():
    def helper(k=2.0):
        pass
    return (lambda x: x * helper.__defaults__[0], lambda: setattr(helper, "__defaults__", (3.0,)))


@way
def a_generator_function():
    def values():
        yield S
    return lambda x: x * next(values()), in_globals(S=3.0)


@way
def a_helper_s_helper_s_list():
    ks = [2.0]

    def inner():
        return ks

    def outer():
        return inner()
    return lambda x: x * outer()[0], lambda: ks.__setitem__(0, 3.0)


@way
def a_function_in_a_dict():
    d = {"f": lambda x: x * S}
    return lambda x: d["f"](x), in_globals(S=3.0)


@way
def a_method_of_a_list():
    ks = [2.0]
    item = ks.__getitem__
    return lambda x: x * item(0), lambda: ks.__setitem__(0, 3.0)


@way
def a_method_of_a_dict():
    d = {"k": 2.0}
    get = d.get
    return lambda x: x * get("k"), lambda: d.update(k=3.0)


@way
def an_iterator_that_cycles():
    ks = [2.0]
    numbers = iter(lambda: ks[0], None)
    return lambda x: x * next(numbers), lambda: ks.__setitem__(0, 3.0)


@way
def a_dict_that_computes_what_is_missing():
    class Own(dict):
        k = 2.0

        def __missing__(self, key):
            return self.k
    d = Own()
    return lambda x: x * d["any"], lambda: setattr(d, "k", 3.0)


@way
def a_set_of_objects():
    class Own:
        k = 2.0
    s = {Own()}
    return lambda x: x * [*s][0].k, lambda: setattr([*s][0], "k", 3.0)


@way
def a_key_that_is_an_object():
    class Own:
        k = 2.0
    d = {Own(): 1.0}
    return lambda x: x * [*d][0].k, lambda: setattr([*d][0], "k", 3.0)


@way
def a_class_in_a_list():
    class Own:
        k = 2.0
    classes = [Own]
    return lambda x: x * classes[0].k, lambda: setattr(Own, "k", 3.0)


@way
def a_counter_of_items():
    ks = collections.deque([2.0], maxlen=1)
    return lambda x: x * ks[0], lambda: ks.append(3.0)


@way
def a_partial_of_Olympus():
    import olympus
    ks = [2.0]
    p = olympus.tree_util.Partial(lambda ks, x: x * ks[0], ks)
    return lambda x: p(x), lambda: ks.__setitem__(0, 3.0)


@way
def a_partial_in_a_partial():
    ks = [2.0]
    p = functools.partial(functools.partial(lambda ks, n, x: x * ks[0] * n, ks), 1.0)
    return lambda x: p(x), lambda: ks.__setitem__(0, 3.0)
