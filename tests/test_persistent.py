"""`jit(f, persist=True)`: another process finds f's programs if f is the same, and only then.

Another process is another execution of the source here; one test starts real ones.
"""

import gc
import os
import re
import subprocess
import sys
import textwrap
import types
from pathlib import Path

import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus._src.base import config, lib
from olympus._src.devices import devices
from olympus._src.jit import persistent, program
from olympus._src.jit.stable_key import StableKey, UnstableError
from olympus._src.runtime import compile as program_cache, disk_cache

ROOT = Path(__file__).parent.parent
X = np.arange(4, dtype=np.float32)
HEAD = """
import dataclasses, enum, functools, math, typing
import numpy as np
import olympus
import olympus.numpy as onp
from olympus import lax
"""


@pytest.fixture
def traced(tmp_path, clear_caches, monkeypatch):
    """A directory in use; a list that gets an item for each program that is traced."""
    found = []
    monkeypatch.setattr(disk_cache, "_libraries", str)     # they are large
    watched = persistent._watched
    monkeypatch.setattr(persistent, "_watched", lambda run: found.append(1) or watched(run))
    disk_cache._warned.clear()
    with (config.compilation_cache_dir(str(tmp_path)),
          config.persistent_cache_min_compile_time_secs(60),
          config.raise_persistent_cache_errors(True)):
        yield found


def process(source):
    """The names of a module, as another process has them."""
    olympus.clear_caches()
    module = types.ModuleType("program")
    exec(compile(HEAD + textwrap.dedent(source), "program.py", "exec"), vars(module))
    sys.modules["program"] = module     # where dataclasses and pickle look
    return module


def run(source, *args):
    return olympus.jit(process(source).f, persist=True)(*args)


PROGRAMS = {
    "global": ("W = 3.0\ndef f(x): return x * W", "3.0", "4.0"),
    "literal": ("def f(x): return x * 3", "3", "4"),
    "helper": ("def g(x): return x + 1\ndef f(x): return g(x) * 2", "x + 1", "x + 2"),
    "helper of a helper": ("S = 1\ndef h(x): return x + S\ndef g(x): return h(x)\n"
                           "def f(x): return g(x)", "S = 1", "S = 2"),
    "default": ("def g(x, n=2): return x * n\ndef f(x): return g(x)", "n=2", "n=3"),
    "keyword default": ("def g(x, *, n=2): return x * n\ndef f(x): return g(x)", "n=2", "n=3"),
    "closure": ("def make(n):\n    def f(x): return x * n\n    return f\nf = make(2)", "make(2)",
                "make(3)"),
    "type of a number": ("N = 2\ndef f(x): return x * N", "N = 2", "N = 2.0"),
    "sign of zero": ("N = 0.0\ndef f(x): return x / N", "0.0", "-0.0"),
    "NumPy array": ("W = np.array([1., 2, 3, 4])\ndef f(x): return x * W", "3, 4", "3, 5"),
    "array": ("W = onp.array([1., 2, 3, 4])\ndef f(x): return x * W", "3, 4", "3, 5"),
    "dtype": ("D = np.dtype('int32')\ndef f(x): return x.astype(D)", "int32", "int16"),
    "dict": ("P = {'a': 1, 'b': 2}\ndef f(x): return x * P['a']", "'a': 1", "'a': 7"),
    "order of a dict": ("P = {'a': 1, 'b': 2}\ndef f(x): return x * list(P.values())[0]",
                        "'a': 1, 'b': 2", "'b': 2, 'a': 1"),
    "list of functions": ("L = [onp.sin, onp.cos]\ndef f(x): return L[0](x)", "onp.sin", "onp.tan"),
    "set": ("P = {'a', 'b'}\ndef f(x): return x * len(P)", "{'a', 'b'}", "{'a', 'b', 'c'}"),
    "frozen set": ("def f(x): return x * (2 if 3 in {3, 4} else 5)", "{3, 4}", "{4, 5}"),
    "one object or two": ("A = object()\nB = object()\nM = A\n"
                          "def f(x): return x * (2 if M is A else 3)", "M = A", "M = B"),
    "tuple": ("P = (1, (2, 3))\ndef f(x): return x * P[1][0]", "2, 3", "5, 3"),
    "method": ("class M:\n    def g(self, x): return x + 1\nm = M()\ndef f(x): return m.g(x)",
               "x + 1", "x + 2"),
    "method of a base": ("class B:\n    def g(self, x): return x + 1\nclass M(B): pass\nm = M()\n"
                         "def f(x): return m.g(x)", "x + 1", "x + 2"),
    "attribute": ("class M:\n    def __init__(self): self.n = 2\nm = M()\n"
                  "def f(x): return x * m.n", "n = 2", "n = 3"),
    "slot": ("class M:\n    __slots__ = ('n',)\n    def __init__(self): self.n = 2\nm = M()\n"
             "def f(x): return x * m.n", "n = 2", "n = 3"),
    "class attribute": ("class M: n = 2\ndef f(x): return x * M.n", "n = 2", "n = 3"),
    "property": ("class M:\n    @property\n    def n(self): return 2\nm = M()\n"
                 "def f(x): return x * m.n", "return 2", "return 3"),
    "static method": ("class M:\n    @staticmethod\n    def g(x): return x + 1\n"
                      "def f(x): return M.g(x)", "x + 1", "x + 2"),
    "dataclass": ("@dataclasses.dataclass(frozen=True)\nclass C:\n    rate: float = 2.0\n"
                  "    names: typing.Optional[tuple] = None\nc = C()\n"
                  "def f(x): return x * c.rate", "2.0", "3.0"),
    "named tuple": ("class C(typing.NamedTuple):\n    a: int = 1\nc = C()\n"
                    "def f(x): return x * c.a", "= 1", "= 2"),
    "enumeration": ("class E(enum.Enum):\n    A = 1\n    B = 2\nkind = E.A\n"
                    "def f(x): return x * (2 if kind is E.A else 3)", "kind = E.A", "kind = E.B"),
    "flags": ("class E(enum.Flag):\n    A = 1\n    B = 2\nkind = E.A | E.B\n"
              "def f(x): return x * kind.value", "A | E.B", "A & E.B"),
    "attribute of a partial": (
        "def g(n, x): return x * n\nh = functools.partial(g, 2)\nh.k = 1\n"
        "def f(x): return h(x) * h.k", "k = 1", "k = 2"),
    "attribute of a function": ("def g(x): return x * g.k\ng.k = 1\ndef f(x): return g(x)",
                                "k = 1", "k = 2"),
    "list of one's own": ("class L(list): pass\nl = L([1, 2])\ndef f(x): return x * l[0]", "[1",
                          "[3"),
    "metaclass": ("class T(type):\n    def n(cls): return 2\nclass M(metaclass=T): pass\n"
                  "def f(x): return x * M.n()", "return 2", "return 3"),
    "super": ("class B:\n    def g(self, x): return x + 1\nclass M(B):\n"
              "    def g(self, x): return super().g(x) * 2\nm = M()\ndef f(x): return m.g(x)",
              "x + 1", "x + 3"),
    "partial": ("def g(n, x): return x * n\nf = functools.partial(g, 2)", "(g, 2)", "(g, 3)"),
    "decorated": ("def twice(g):\n    @functools.wraps(g)\n    def run(x): return g(g(x))\n"
                  "    return run\n@twice\ndef f(x): return x + 1", "x + 1", "x + 2"),
    "name of a call": ("def g(x): return x + 1\nf = olympus.named_call(g, name='a')", "'a'", "'b'"),
    "function in a scope": ("@olympus.named_scope('a')\ndef f(x): return x + 1", "x + 1", "x + 2"),
    "jitted": ("@olympus.jit\ndef g(x): return x + 1\ndef f(x): return g(x)", "x + 1", "x + 2"),
    "gradient": ("def g(x): return (x ** 2).sum()\nf = olympus.grad(g)", "** 2", "** 3"),
    "option of a gradient": ("def g(x): return (x ** 2).sum(), x.sum()\n"
                             "h = olympus.grad(g, has_aux=True)\nN = 0\n"
                             "def f(x): return h(x)[N]", "N = 0", "N = 1"),
    "rule": ("@olympus.custom_jvp\ndef g(x): return x\n"
             "g.defjvp(lambda p, t: (p[0], t[0] * 2))\n"
             "def f(x): return olympus.grad(lambda y: g(y).sum())(x)", "* 2", "* 3"),
    "body of a loop": ("def step(c, x): return c + x * 2, c\n"
                       "def f(x): return lax.scan(step, 0., x)[0]", "x * 2", "x * 3"),
    "comprehension": ("def f(x): return sum([x * i for i in range(3)])", "range(3)", "range(4)"),
    "inner function": ("def f(x):\n    def g(y): return y * 2\n    return g(x)", "* 2", "* 3"),
    "function of Olympus": ("def f(x): return onp.sin(x)", "sin", "cos"),
    "function of a lazy module": ("def f(x): return olympus.nn.relu(x)", "relu", "elu"),
    "sum of products": ("def f(x): return onp.einsum('i,i->', x, x)", "'i,i->'", "'i,i->i'"),
    "function of math": ("def f(x): return x * math.floor(2.5)", "floor", "ceil"),
    "key": ("k = olympus.random.key(0)\ndef f(x): return x + olympus.random.normal(k, (4,))",
            "key(0)", "key(1)"),
    "precision of decimals": (
        "import decimal\ndecimal.getcontext().prec = 28\n"
        "def f(x): return x * float(decimal.Decimal(1) / 3)", "= 28", "= 5"),
    "metadata of a dtype": (
        "D = np.dtype('f4', metadata={'k': 2})\ndef f(x): return x * D.metadata['k']", "2}", "3}"),
    "metadata of a field": (
        "D = np.dtype([('a', np.dtype('f4', metadata={'k': 2}))])\n"
        "def f(x): return x * D['a'].metadata['k']", "2}", "3}"),
    "metadata of an array": (
        "A = np.ones(2, np.dtype('f4', metadata={'k': 2}))\n"
        "def f(x): return x * A.dtype.metadata['k']", "2}", "3}"),
    "strides": ("A = np.ones((2, 3), order='C')\ndef f(x): return x * A.strides[0]", "'C'", "'F'"),
    "what a cache keeps": ("n = 2\n@functools.lru_cache\ndef g(): return n\ng()\n"
                           "def f(x): return x * g()", "n = 2", "n = 3"),
    "pytree class": (
        "class P:\n    def __init__(self, a): self.a = a\n"
        "olympus.tree_util.register_pytree_node(P, lambda p: ((p.a,), 2),\n"
        "                                       lambda n, c: P(c[0] * n))\n"
        "def f(x): return olympus.tree.map(lambda y: y, P(x)).a", ", 2)", ", 3)"),
}


def key(source):
    found = StableKey()
    found.add(process(source).f, "f")
    return found.hexdigest()


@pytest.mark.parametrize("case", PROGRAMS)
def test_the_key_of_a_function_changes_with_what_it_reads(case):
    source, old, new = PROGRAMS[case]
    changed = source.replace(old, new, 1)
    assert changed != source
    assert key(source) == key("# Lines and comments do not count.\n\n" + source) != key(changed)


OFTEN = ("helper of a helper", "sum of products", "method of a base", "gradient", "pytree class")


@pytest.mark.parametrize("case", [
    pytest.param(case, marks=() if case in OFTEN else pytest.mark.slow) for case in PROGRAMS])
def test_a_program_is_found_by_another_process_until_it_changes(traced, case):
    source, old, new = PROGRAMS[case]
    first = run(source, X)
    assert len(traced) == 1
    again = run(source, X)
    assert len(traced) == 1
    np.testing.assert_array_equal(first, again)
    assert first.dtype == again.dtype
    assert first.weak_type == again.weak_type
    run(source.replace(old, new, 1), X)
    assert len(traced) == 2


REFUSED = {
    "a lock": ("import threading\nL = threading.Lock()\ndef f(x):\n    with L: return x",
               "L, which"),
    "environment": ("import os\ndef f(x): return x * len(os.environ)", "os.environ"),
    "clock": ("import time\ndef f(x): return x * time.time()", "time.time"),
    "random numbers": ("import random\ndef f(x): return x * random.random()", "random.random"),
    "NumPy's random numbers": ("def f(x): return x * np.random.rand()", "np.random.rand"),
    "a file": ("def f(x): return x * len(open('/dev/null').read())", "open, which f reads"),
    "an array in a file": ("def f(x): return x * np.load('/dev/null')", "np.load"),
    "a file of a path": ("from pathlib import Path\nP = Path('/dev/null')\n"
                         "def f(x): return x * len(P.read_text())", "f called Path.read_text"),
    "whether there is a file": ("from pathlib import Path\nP = Path('/dev/null')\n"
                                "def f(x): return x * P.exists()",
                                f"f called {Path.exists.__qualname__}"),     # PathBase in 3.13
    "an array in a text": ("def f(x): return x * np.fromregex('/dev/null', 'a', 'f4')",
                           "np.fromregex"),
    "an array that is mapped": ("def f(x): return x * np.lib.format.open_memmap('/dev/null')",
                                "np.lib.format.open_memmap"),
    "NumPy by another name": ("def f(x):\n    q = np\n    return x * q.load('/dev/null')",
                              "f reads load of something"),
    "NumPy in a list": ("L = [np]\ndef f(x): return x * L[0].random.rand()",
                        "f reads random of something"),
    "NumPy by text": ('def f(x): return x * getattr(np, "load")("/dev/null")',
                      "f reads load of something"),
    "NumPy by a computed text": ('def f(x): return x * getattr(np, "l" + "oad".lower())(x)',
                                 "f reads by getattr of something"),
    "a setting of NumPy": ("def f(x): return x * np.get_printoptions()['precision']",
                           "np.get_printoptions"),
    "a source": ("import inspect\ndef f(x): return x * len(inspect.getsource(f))",
                 "inspect.getsource"),
    "names by text": ("def f(x): return x * globals()['X']", "globals"),
    "a whole module": ("import program as me\nimport sys\nme = sys.modules['program']\n"
                       "def f(x): return x * vars(me)['W']", "whole module"),
    "an iterator": ("I = iter([1, 2])\ndef f(x): return x * next(I)", "I, which f reads"),
    "an import": ("def f(x):\n    import program\n    return x", "imports program"),
    "a global that is set": ("N = 1\ndef f(x):\n    global N\n    N = 2\n    return x",
                             "sets the global N"),
    "a value that changes": ("C = {'n': 0}\ndef f(x):\n    C['n'] += 1\n    return x * C['n']",
                             "changed while it was traced"),
    "a callback": ("def f(x):\n    olympus.debug.print('{}', x)\n    return x", "calls Python"),
    "a tracer": ("class M: pass\nM.n = [object]\ndef f(x): return x * len(M.n)\n"
                 "M.n = iter('')", "M.n"),
    "an array of one's own": ("class A(np.ndarray): pass\na = np.ones(4).view(A)\n"
                              "def f(x): return x * a", "a, which f reads"),
    "a set of one's own": ("class S(set): pass\ns = S('a')\ndef f(x): return x * len(s)",
                           "s, which f reads"),
    "bytes that change": ("b = bytearray(b'1')\ndef f(x): return x * len(b)", "b, which f reads"),
    "a coroutine": ("async def c(): return 1\nC = c()\nC.close()\n"
                    "def f(x): return x * (C is None)", "C, which f reads"),
    "a weak reference": ("import weakref\nclass A: pass\na = A()\nw = weakref.ref(a)\n"
                         "def f(x): return x * (w() is a)", "w, which f reads"),
    "a list nested too deep": ("L = []\nfor i in range(5000): L = [L]\n"
                               "def f(x): return x * len(L)", "nested too deep"),
    "a subclass of C's": ("class R(np.random.Generator): pass\nr = R(np.random.PCG64(0))\n"
                          "def f(x): return x * r.random()", "r, which f reads"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_has_no_digest_is_refused_by_its_name(traced, case):
    source, named = REFUSED[case]
    sys.modules["program"] = types.ModuleType("program")
    with pytest.raises(UnstableError, match="jit persist=True") as error:
        run(source, X)
    assert named in " ".join(str(error.value).split())
    assert isinstance(error.value, TypeError)


def test_code_that_is_entered_unseen_is_refused(traced, monkeypatch):
    flatten = program.tree_flatten
    monkeypatch.setattr(program, "tree_flatten", lambda x: flatten(x))
    with pytest.raises(UnstableError, match="<lambda> .*was entered while f was traced"):
        run("def f(x): return x", X)


@pytest.mark.parametrize("hidden", [
    "olympus.jit(g)(x)", "twice(x)", "x + twice(W)", "lax.scan(step, 0.0, x)"])
def test_code_that_was_traced_before_does_not_go_unseen(traced, hidden):
    # What the key does not reach: names of a module that are read through its dict.
    names = {name: f'h.__globals__["{name}"]' for name in ("g", "twice", "step")}
    read = re.sub(r"\b(g|twice|step)\b", lambda found: names[found[0]], hidden)
    module = process(f"""
def g(x): return onp.sin(x) * 2
def step(c, x): return c + x, x
twice = olympus.jit(g)
W = np.arange(4, dtype=np.float32)
def h(): pass
def before(x): return {hidden}
def f(x): return {read}""")
    for _ in range(2):      # and C++ knows it from the second call
        module.before(X)
        olympus.jit(module.before)(X)
    with pytest.raises(UnstableError, match="(g|step) .*was entered while f was traced"):
        olympus.jit(module.f, persist=True)(X)


def test_what_python_calls_for_garbage_is_no_code_of_the_function():
    def told():
        return 0

    def notice(phase, info):
        told()

    class Finalized:
        def __del__(self):
            told()

    def closed():
        try:
            yield
        finally:
            told()

    finalized, generator = Finalized(), closed()
    next(generator)
    finalized.itself, generator_in_cycle = finalized, [generator]
    generator_in_cycle.append(generator_in_cycle)
    del finalized, generator, generator_in_cycle
    gc.callbacks.append(notice)
    try:
        assert persistent._watched(gc.collect)[1] == set()
        assert persistent._watched(told)[1] == {told.__code__}
    finally:
        gc.callbacks.remove(notice)


def test_what_a_cached_helper_kept_before_is_computed_again(traced):
    source = """
C = {"n": 2}
@functools.lru_cache
def g(): return C["n"]
def f(x): return x * g()"""
    module = process(source)
    module.g()
    module.C["n"] = 3
    for call in (module.f, process(source.replace("2", "3")).f):
        np.testing.assert_array_equal(olympus.jit(call, persist=True)(X), X * 3)
    assert len(traced) == 1


def test_types_options_and_static_arguments_tell_programs_apart(traced):
    source = "def f(x, n=1): return x * n"

    def call(*args, n=None, **options):
        named = {} if n is None else {"n": n}
        return olympus.jit(process(source).f, persist=True, **options)(*args, **named)

    calls = [lambda: call(X), lambda: call(X[:2]), lambda: call(X.astype(np.int32)),
             lambda: call(2.0), lambda: call(onp.float32(2)), lambda: call(X, 2),
             lambda: call(X, 2, static_argnums=1), lambda: call(X, 3, static_argnums=1),
             lambda: call(X, 2.0, static_argnums=1), lambda: call(X, n=2),
             lambda: call(onp.array(X), donate_argnums=0),
             lambda: call(X, compiler_options={"xla_cpu_enable_fast_math": True})]
    first = [f() for f in calls]
    assert len(traced) == len(calls)
    with config.enable_x64(True):
        call(2.0)
    assert len(traced) == len(calls) + 1
    for f, expected in zip(calls, first, strict=True):
        again = f()
        np.testing.assert_array_equal(again, expected)
        assert again.aval == expected.aval
    assert len(traced) == len(calls) + 1


def test_results_are_trees_and_what_is_donated_is_deleted(traced):
    source = "def f(x, y): return {'a': (x + 1, None), 'b': y['z'] * 2}"
    for _ in range(2):
        x = onp.array(X)
        found = olympus.jit(process(source).f, persist=True, donate_argnums=0)(x, {"z": 3})
        np.testing.assert_array_equal(found["a"][0], X + 1)
        assert found["a"][1] is None
        assert int(found["b"]) == 6
        assert x.is_deleted()
    assert len(traced) == 1


def test_tokens_are_arguments_as_others_are(traced):
    token = olympus.jit(olympus.lax.create_token)()
    for _ in range(2):
        call = olympus.jit(process("def f(x, token): return x + 1").f, persist=True)
        np.testing.assert_array_equal(call(X, token), X + 1)
    assert len(traced) == 1


def test_linear_algebra_is_found_by_a_process_that_registered_none(traced, monkeypatch):
    source = "def f(x): return onp.linalg.cholesky(x)"
    run(source, np.eye(3, dtype=np.float32) * 4)
    asked = []
    names = lib.lapack_names
    monkeypatch.setattr(lib, "lapack_names", lambda: asked.append(1) or names())
    np.testing.assert_allclose(run(source, np.eye(3, dtype=np.float32) * 4), np.eye(3) * 2)
    assert len(traced) == 1
    assert asked


def test_transformations_and_stages_trace_as_ever(traced):
    f = olympus.jit(process("def f(x): return onp.sin(x)").f, persist=True)
    f(1.0)
    np.testing.assert_allclose(olympus.grad(f)(1.0), np.cos(np.float32(1)), rtol=1e-6)
    np.testing.assert_allclose(olympus.vmap(f)(X), np.sin(X), rtol=1e-6)
    assert "sine" in f.lower(1.0).as_text()
    with config.debug_nans(True), pytest.raises(FloatingPointError):
        f(np.inf)


def test_a_function_that_is_cleared_looks_on_the_disk_again(traced, monkeypatch):
    f = olympus.jit(process("def f(x): return x + 1").f, persist=True)
    f(X)
    f.clear_cache()
    read = []
    get = disk_cache.Directory.get
    monkeypatch.setattr(disk_cache.Directory, "get", lambda *args: read.append(1) or get(*args))
    f(X)
    assert len(read) == 1
    assert len(traced) == 1


def test_a_forked_process_is_told_so_before_it_waits_for_ever(traced, monkeypatch):
    source = "def f(x): return x + 1"
    run(source, X)
    f = process(source).f
    monkeypatch.setattr(devices, "_forked", [True])
    monkeypatch.setattr(lib, "deserialize_executable", None)
    with pytest.raises(RuntimeError, match="was forked from one that had run Olympus"):
        olympus.jit(f, persist=True)(X)


def test_later_calls_enter_no_python(traced):
    f = olympus.jit(process("def f(x): return x + 1").f, persist=True)
    x = onp.array(X)
    f(x)
    frames = []
    sys.setprofile(lambda frame, event, arg: frames.append(frame) if event == "call" else None)
    f(x)
    sys.setprofile(None)
    assert not frames


def test_damage_and_no_directory_are_told_of(traced, tmp_path):
    source = "def f(x): return x + 1"
    run(source, X)
    entry, = tmp_path.glob("*-cache")
    entry.write_bytes(entry.read_bytes()[:-1])
    with config.raise_persistent_cache_errors(False), pytest.warns(UserWarning, match="damaged"):
        np.testing.assert_array_equal(run(source, X), X + 1)
    with config.compilation_cache_dir(None), pytest.warns(UserWarning, match="no directory is set"):
        np.testing.assert_array_equal(run(source, X), X + 1)


def test_a_program_whose_executable_was_found_in_the_cache_is_written_with_its_code(traced):
    source = "def f(x): return onp.sort(x)[::-1]"
    with config.persistent_cache_min_compile_time_secs(0):
        olympus.jit(process(source).f)(X)
    for _ in range(2):
        np.testing.assert_array_equal(run(source, X), X[::-1])
    assert len(traced) == 1


@pytest.mark.parametrize("donated", [False, True])
def test_an_entry_that_lacks_code_is_told_of_and_made_anew(traced, monkeypatch, donated):
    def stripped(loaded):
        devices = loaded.xla.local_devices()
        return lib.serialize_executable(lib.deserialize_executable(
            loaded.xla.client, lib.serialize_executable(loaded.xla), devices))

    def call():
        f = olympus.jit(process("def f(x): return onp.sort(x)[::-1]").f, persist=True,
                        donate_argnums=(0,) * donated)
        return f(onp.array(X))

    with monkeypatch.context() as m:
        m.setattr(program_cache.Loaded, "serialized", stripped)
        call()
    told = pytest.warns(UserWarning, match="Error running persistent .*'jit_f': .* not found")
    with config.raise_persistent_cache_errors(False), told:
        if donated:     # the argument is gone
            with pytest.raises(lib.XlaRuntimeError, match="not found"):
                call()
        np.testing.assert_array_equal(call(), X[::-1])
    assert len(traced) == 2
    np.testing.assert_array_equal(call(), X[::-1])
    assert len(traced) == 2


def test_a_key_is_the_same_whatever_was_imported_or_cached():
    source = "def f(x): return olympus.nn.gelu(x) + olympus.scipy.special.erf(x)"
    before = key(source)
    olympus.nn.gelu(1.0)
    olympus.scipy.special.erf(1.0)
    module = process(source)
    olympus.jit(module.f)(1.0)
    found = StableKey()
    found.add(module.f, "f")
    assert found.hexdigest() == before == key(source)


SCRIPT = HEAD + """
import sys
class Layer(typing.NamedTuple):
    w: typing.Any
def norm(x): return x / onp.sqrt((x ** 2).mean())
NAMES = {"a", "b", "c"}
@functools.partial(olympus.jit, persist=True)
@olympus.grad
def f(layers, x):
    for layer in layers:
        x = norm(olympus.nn.gelu(x @ layer.w))
    return (x * len(NAMES)).sum()
result = f([Layer(np.eye(4, dtype=np.float32))] * 3, np.arange(4, dtype=np.float32))
print(sum(np.asarray(x.w).sum() for x in result))
print("jaxlib.mlir.ir" in sys.modules)
"""


@pytest.mark.slow
def test_a_real_second_process_loads_neither_mlir_nor_a_trace(tmp_path):
    outputs = []
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=300, env={
                **os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": seed,
                "OLYMPUS_ENABLE_COMPILATION_CACHE": "true",
                "OLYMPUS_COMPILATION_CACHE_DIR": str(tmp_path)})
        assert not done.returncode, done.stderr
        assert "Warning" not in done.stderr
        outputs.append(done.stdout.splitlines())
    assert outputs[0][0] == outputs[1][0]
    assert [o[1] for o in outputs] == ["True", "False"]
