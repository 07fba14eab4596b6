"""Names that JAX has beside its core: recurrent nets, orders and layouts, lines, hints."""

import inspect
import re
import subprocess
import sys
from importlib import import_module

import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus._src.base import lib, source
from olympus._src.base.hints import HINTS, hint_for
from olympus.experimental import layout, overlap, rnn
from olympus.experimental.fused import fused
from olympus.extend import source_info_util
from olympus.interpreters import pxla
from olympus.memory import Space

# Hints -------------------------------------------------------------------------------------------

ROWS = [(module, name, hint) for module, hints in HINTS.items() for name, hint in hints.items()]


def resolve(path):
    """What a dotted path means."""
    names = path.split(".")
    for count in range(len(names), 0, -1):
        try:
            found = import_module(".".join(names[:count]))
        except ImportError:
            continue
        for name in names[count:]:
            found = getattr(found, name)
        return found
    raise ImportError(path)


@pytest.mark.parametrize("module, name, hint", ROWS, ids=[f"{m}.{n}" for m, n, _ in ROWS])
def test_what_is_missing_names_what_is_there(module, name, hint):
    with pytest.raises(AttributeError, match=f"'{module}' has no attribute '{name}'; ") as info:
        getattr(import_module(module), name)
    assert str(info.value).endswith(f"; {hint}")
    for path in re.findall(r"\b(?:olympus|numpy|scipy)(?:\.\w+)+", hint):
        assert resolve(path) is not None


def test_names_that_are_not_here_are_numpys_and_scipys():
    with pytest.raises(AttributeError, match=r"numpy.busday_count works on NumPy arrays"):
        onp.busday_count  # noqa: B018
    with pytest.raises(AttributeError, match="has no attribute 'foo'$"):
        onp.foo  # noqa: B018
    with pytest.raises(AttributeError, match="; use scipy.optimize.bisect outside"):
        olympus.scipy.optimize.bisect  # noqa: B018
    assert not hasattr(olympus.scipy.stats, "a(b") and not hasattr(olympus.scipy.stats, "")
    assert not hasattr(olympus, "foo") and not hasattr(onp, "__wrapped__")


@pytest.mark.parametrize("module, name, home", [
    ("olympus", "float32", "numpy"), ("olympus", "Tracer", "core"),
    ("olympus.lax", "eigh", "lax.linalg"), ("olympus.numpy", "eigh", "numpy.linalg"),
    ("olympus.lax", "matmul", "numpy"),
    ("olympus.nn", "logit", "scipy.special"), ("olympus.random", "logsumexp", "nn")])
def test_a_name_of_another_public_module_is_found_there(module, name, home):
    assert hint_for(module, name) == f"use olympus.{home}.{name}"
    assert resolve(f"olympus.{home}.{name}") is not None


@pytest.mark.filterwarnings("error")
def test_a_name_that_numpy_drops_is_missing_without_numpys_warning():
    for name in ("object", "str", "long_", "unicode"):
        assert not hasattr(onp, name)


SCIPY = """
    cluster.vq fft integrate interpolate linalg ndimage optimize signal signal.windows sparse
    sparse.linalg special spatial spatial.transform stats
""".split()     # noqa: SIM905


@pytest.mark.parametrize("module", SCIPY)
def test_names_of_scipy_that_are_not_here_say_what_to_use(module):
    """Regression: `optimize.bisect` and some 900 more were "no attribute", and nothing else."""
    theirs, ours = import_module(f"scipy.{module}"), import_module(f"olympus.scipy.{module}")
    missing = {name for name in theirs.__all__ if not hasattr(ours, name) and not (
        name.endswith("_roots") or inspect.ismodule(getattr(theirs, name)))}    # old spellings
    assert {name for name in missing if not hint_for(ours.__name__, name)} <= {"reciprocal"}


def test_scipy_is_not_imported_for_a_hint():
    code = """if True:
        import sys, olympus.scipy.optimize, olympus.scipy.stats
        for module, name in ((olympus.scipy.optimize, "bisect"), (olympus.scipy, "constants"),
                             (olympus.scipy.stats, "foo"), (olympus.scipy, "__wrapped__")):
            try:
                getattr(module, name)
            except AttributeError as error:
                print(error)
        assert "scipy" not in sys.modules"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.splitlines() == [
        "module 'olympus.scipy.optimize' has no attribute 'bisect'; use scipy.optimize.bisect "
        "outside of olympus.jit, or within by olympus.pure_callback",
        "module 'olympus.scipy' has no attribute 'constants'; use scipy.constants outside of "
        "olympus.jit, or within by olympus.pure_callback",
        "module 'olympus.scipy.stats' has no attribute 'foo'",
        "module 'olympus.scipy' has no attribute '__wrapped__'"]


# Recurrent nets ----------------------------------------------------------------------------------

def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def unrolled(x, h_0, c_0, parts, lengths, layers, directions):
    """Long short-term memory, one sequence and one element after the other."""
    batch, time, _ = x.shape
    hidden, last_h, last_c = h_0.shape[-1], np.array(h_0), np.array(c_0)
    for layer in range(layers):
        outs = np.zeros((batch, time, directions * hidden))
        for d in range(directions):
            i = layer * directions + d
            w_ih, w_hh, b_ih, b_hh = (np.asarray(part[i], float) for part in parts)
            for b in range(batch):
                h, c = h_0[i, b], c_0[i, b]
                for t in range(lengths[b])[::-1 if d else 1]:
                    gates = w_ih @ x[b, t] + b_ih + w_hh @ h + b_hh
                    first, forget, cell, output = np.split(gates, 4)
                    c = sigmoid(forget) * c + sigmoid(first) * np.tanh(cell)
                    h = sigmoid(output) * np.tanh(c)
                    outs[b, t, d * hidden:(d + 1) * hidden] = h
                last_h[i, b], last_c[i, b] = h, c
        x = outs
    return x, last_h, last_c


@pytest.mark.parametrize("layers, bidirectional", [(1, False), (2, False), (1, True), (2, True)])
def test_lstm_is_the_unrolled_loop(layers, bidirectional, rng):
    directions = 1 + bidirectional
    sizes = (3, 4, layers, bidirectional)
    w = rnn.init_lstm_weight(olympus.random.key(3), *sizes)
    assert abs(w).max() <= 0.5
    x = rng.normal(size=(3, 5, 3)).astype("f")
    h, c = rng.normal(size=(2, layers * directions, 3, 4)).astype("f")
    lengths = np.array([5, 1, 3])
    parts = rnn.unpack_lstm_weights(w, *sizes)
    found = rnn.lstm(x, h, c, w, lengths, *sizes[:3], 0.0, bidirectional)
    again = rnn.lstm_ref(x, h, c, *parts, lengths, *sizes[:3], 0.0, bidirectional)
    wanted = unrolled(x.astype(float), h.astype(float), c.astype(float), parts, lengths, layers,
                      directions)
    for got, same, want in zip(found, again, wanted, strict=True):
        np.testing.assert_allclose(got, want, atol=2e-6)
        np.testing.assert_array_equal(got, same)


def test_the_weights_lie_as_cudnn_takes_them():
    """Held against JAX 0.10.2: where each matrix begins and ends."""
    parts = rnn.unpack_lstm_weights(np.arange(736), 3, 4, 2, True)
    ends = [[(int(m.ravel()[0]), int(m.ravel()[-1])) for m in part.values()] for part in parts]
    assert ends == [[(0, 47), (112, 159), (224, 351), (416, 543)],
                    [(48, 111), (160, 223), (352, 415), (544, 607)],
                    [(608, 623), (640, 655), (672, 687), (704, 719)],
                    [(624, 639), (656, 671), (688, 703), (720, 735)]]
    swapped = rnn.unpack_lstm_weights(rnn.swap_lstm_gates(np.arange(736), 3, 4, 2, True),
                                      3, 4, 2, True)
    for part, other in zip(parts, swapped, strict=True):
        for i, m in part.items():
            first, forget, cell, output = np.split(np.asarray(m), 4)
            np.testing.assert_array_equal(other[i], np.concatenate([first, forget, output, cell]))


def test_derivatives_of_lstm_are_those_of_the_loop(rng):
    sizes = (2, 2, 1, True)
    w = np.asarray(rnn.init_lstm_weight(olympus.random.key(3), *sizes), float)
    x, (h, c) = rng.normal(size=(2, 3, 2)), rng.normal(size=(2, 2, 2, 2))
    ct = rng.normal(size=(2, 3, 4))
    lengths = np.array([3, 2])
    out, residuals = rnn.lstm_fwd(x.astype("f"), h.astype("f"), c.astype("f"), w.astype("f"),
                                  lengths, 2, 2, 1, 0.0, True, None)
    cts = rnn.lstm_bwd(2, 2, 1, 0.0, True, None, residuals,
                       (ct.astype("f"), *[onp.zeros_like(o) for o in out[1:]]))
    assert cts[4] is None

    def along(args, step):
        moved = [a + step * d for a, d in zip(args, ways, strict=True)]
        parts = rnn.unpack_lstm_weights(moved[3].astype("f"), *sizes)
        parts = [{i: np.reshape(moved[3][place], m.shape) for i, (m, place) in enumerate(
            zip(part.values(), places, strict=True))} for part, places in zip(
                parts, where, strict=True)]
        return (unrolled(*moved[:3], parts, lengths, 1, 2)[0] * ct).sum()

    where = [[np.asarray(m, int).ravel() for m in part.values()]
             for part in rnn.unpack_lstm_weights(np.arange(w.size), *sizes)]
    args = (x, h, c, w)
    ways = [rng.normal(size=a.shape) for a in args]
    slope = (along(args, 1e-5) - along(args, -1e-5)) / 2e-5
    np.testing.assert_allclose(sum((np.asarray(g) * d).sum() for g, d in zip(cts[:4], ways,
                                                                           strict=True)),
                               slope, rtol=1e-3)


@pytest.mark.parametrize("change, match", [
    ({"dropout": 0.5}, "dropout 0.5 given"), ({"x": np.ones((2, 3, 5), "f")}, "x float32"),
    ({"seq_lengths": np.ones(3, int)}, "seq_lengths"), ({"weights": np.ones(3, "f")}, "vector of"),
    ({"h_0": np.ones((1, 2, 5), "f")}, "h_0"), ({"num_layers": 0}, "positive"),
])
def test_what_lstm_refuses(change, match):
    good = {"x": np.ones((2, 3, 1), "f"), "h_0": np.ones((1, 2, 1), "f"),
            "c_0": np.ones((1, 2, 1), "f"), "weights": np.ones(16, "f"),
            "seq_lengths": np.array([3, 3]), "input_size": 1, "hidden_size": 1, "num_layers": 1,
            "dropout": 0.0, "bidirectional": False}
    with pytest.raises(ValueError, match=f"lstm: .*{match}"):
        rnn.lstm(**{**good, **change})


# Order, layout, calls -----------------------------------------------------------------------------

def two(x, y):
    return onp.sin(x) * 2, onp.cos(y), x.sum()


def barriers(f, *args):
    """The number of values that each barrier holds."""
    return [len(eqn.invars) for eqn in olympus.make_olympuspr(f)(*args).eqns
            if eqn.primitive.name == "optimization_barrier"]


def test_operations_wait_for_the_one_before():
    x, y = onp.arange(3.0), onp.arange(4.0)
    ordered = overlap.program_order(two, enforce=True)
    assert barriers(ordered, x, y) == [2, 2, 2]
    assert barriers(overlap.program_order(enforce=True, strict_in_out=True)(two), x, y) == [
        2, 2, 2, 2, 4]
    assert barriers(overlap.program_order(two, enforce=True, strict_in_out=True,
                                          exclude_argnames="y"), x, y) == [2, 2, 2, 4]
    assert overlap.program_order(two, enforce=False) is two
    for f in (ordered, olympus.jit(ordered), olympus.jit(overlap.program_order(
            two, enforce=True, strict_in_out=True))):
        for got, want in zip(f(x, y), two(x, y), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-6)
    loss = lambda f: lambda x: sum(out.sum() for out in f(x, x))
    np.testing.assert_allclose(olympus.grad(loss(ordered))(x), olympus.grad(loss(two))(x),
                               rtol=1e-6)
    np.testing.assert_allclose(olympus.vmap(lambda x: ordered(x, x)[1])(x[:, None]),
                               np.cos(x)[:, None], rtol=1e-6)


def test_arguments_lie_as_demanded():
    by_columns = layout.Layout((1, 0))
    f = olympus.jit(layout.explicit_layout(lambda x, y: (x, y["a"]),
                                           in_layouts=(None, {"a": by_columns})))
    x = onp.arange(6.0).reshape(2, 3)
    first, second = f(x, {"a": x})
    assert [out.format.layout.major_to_minor for out in (first, second)] == [(0, 1), (1, 0)]
    np.testing.assert_array_equal(second, x)
    same = lambda x: x
    assert layout.explicit_layout(in_layouts=None)(same)(3) == 3
    with pytest.raises(ValueError, match="major_to_minor"):
        layout.explicit_layout(same, in_layouts=by_columns)(onp.ones(3))


def test_fused_functions_are_one_call_and_their_results_where_they_are_wanted():
    f = olympus.jit(fused(out_spaces=(Space.Device, Space.Host))(lambda x: (x * 2, x + 1)))
    x = onp.arange(3.0)
    assert 'inlineable = "false"' in f.lower(x).as_text()
    twice, more = f(x)
    np.testing.assert_array_equal(twice, x * 2)
    np.testing.assert_array_equal(more, x + 1)
    assert more.sharding.memory_kind == "pinned_host" != twice.sharding.memory_kind
    with pytest.raises(ValueError, match="fused: out_spaces"):
        fused(out_spaces="moon")(lambda x: x)(x)


@pytest.mark.parametrize("how, calls", [
    (olympus.Inline.OLYMPUS_EARLY, 0), (True, 0), (olympus.Inline.OLYMPUS_LATE, 1),
    (olympus.Inline.XLA_EARLY, 1), (olympus.Inline.XLA_LATE, 1), (olympus.Inline.AUTO, 1),
    (False, 1)])
def test_a_function_is_put_into_its_caller_early_or_left_to_xla(how, calls):
    f = olympus.jit(lambda x: x * 3 + 1, inline=how)
    names = [eqn.primitive.name for eqn in olympus.make_olympuspr(f)(1.0).eqns]
    assert names == (["mul", "add"] if not calls else names) and len(names) == 2 - calls
    assert olympus.jit(lambda x: f(x))(1.0) == 4


# vjp ---------------------------------------------------------------------------------------------

def product(x, y):
    return onp.sin(x) * y["a"] + y["b"]


def test_a_pullback_gives_back_the_arguments_that_it_was_not_to_keep():
    x, y = onp.arange(3.0), {"a": onp.ones(3) * 2, "b": 1.0}
    ct = onp.ones(3)
    _, whole = olympus.vjp(product, x, y)
    kept, held = whole.args_res
    assert (repr(kept), repr(held["b"])) == ("NotNeeded()", "NotNeeded()")
    np.testing.assert_array_equal(held["a"], y["a"])
    _, pull = olympus.vjp(product, x, y, saveable_args=(True, {"a": False, "b": True}))
    assert repr(pull.args_res[1]["a"]) == "NotSaved()"
    assert not any(c is y["a"] for c in pull.consts)
    with pytest.raises(ValueError, match=r"reads arguments \[1\]\['a'\], which saveable_args"):
        pull(ct)
    with pytest.raises(ValueError, match=r"float32\[2\] given as arguments\[1\]\['a'\]"):
        pull.args_res = [x, {"a": onp.ones(2), "b": 1.0}]
    pull.args_res = [x, y]
    for got, want in zip(*map(olympus.tree.leaves, (pull(ct), whole(ct))), strict=True):
        np.testing.assert_array_equal(got, want)
    assert olympus.tree.leaves(olympus.jit(lambda p: p(ct))(pull))[0].shape == (3,)


def test_a_pullback_of_some_arguments():
    x, y = onp.arange(3.0), {"a": onp.ones(3) * 2, "b": 1.0}
    _, pull = olympus.vjp(product, x, y, in_nzs=(False, True))
    dx, dy = pull(onp.ones(3))
    np.testing.assert_array_equal(dx, np.zeros(3))
    np.testing.assert_allclose(dy["a"], np.sin(x), rtol=1e-6)
    assert dy["b"] == 3


BAD = [
    (lambda: olympus.vjp(abs, 2.0, saveable_args=(True, False)), ValueError, "vjp: saveable_args"),
    (lambda: olympus.vjp(abs, 2.0, in_nzs=(3,)), TypeError, "vjp: in_nzs"),
    (lambda: overlap.program_order(3, enforce=True), TypeError, "program_order: "),
    (lambda: layout.explicit_layout(3), TypeError, "explicit_layout: 3 of type int"),
    (lambda: fused(out_spaces=Space.Device)(3), TypeError, "fused: "),
    (lambda: rnn.lstm(onp.ones(3), *[onp.ones(2)] * 2, onp.ones(16), [1], 1, 1, 1, 0.0, False),
     (TypeError, ValueError), "lstm: x|list"),
    (lambda: source_info_util.set_name_stack(3).__enter__(), TypeError, "set_name_stack: 3"),
    (lambda: olympus.extend.backend.register_backend_cache(3, "x"), TypeError, "cache_clear"),
]


@pytest.mark.parametrize("call, error, match", BAD)
def test_what_is_refused(call, error, match):
    with pytest.raises(error, match=match):
        call()


# Lines and scopes, meshes, numbers ----------------------------------------------------------------

def test_scopes_are_set_extended_and_left():
    s = source_info_util
    assert len(s.current_name_stack()) == 0
    with s.extend_name_stack("a"), s.transform_name_stack("vmap"), s.extend_name_stack("b"):
        stack = s.current_name_stack()
        assert (str(stack), len(stack)) == ("a/vmap(b)", 3)
        with s.reset_name_stack():
            assert str(s.current_name_stack()) == ""
        with s.set_name_stack(s.new_name_stack("c") + stack[1:]):
            assert str(s.current_name_stack()) == "c/vmap(b)"
            assert s.current().name_stack is s.current_name_stack()._scope()

    @s.extend_name_stack("named")
    def f(x):
        return x * 2

    for _ in range(2):
        eqn, = olympus.make_olympuspr(f)(1.0).eqns
        assert str(eqn.source_info.name_stack) == "named"
    assert len(s.current_name_stack()) == 0
    assert "test_scopes_are_set" in s.summarize(s.current())


def test_frames_of_a_library_are_left_out_of_tracebacks(tmp_path, monkeypatch):
    monkeypatch.setattr(source, "excluded", [])
    file = tmp_path / "library.py"
    file.write_text("def call(f, x):\n    return f(x)\n")
    names = {}
    exec(compile(file.read_text(), str(file), "exec"), names)
    f = olympus.jit(lambda x: onp.reshape(x, 7))

    def frames():
        with olympus._src.base.config.traceback_filtering("remove_frames"):
            try:
                olympus.jit(lambda x: names["call"](f, x))(onp.ones(3))
            except TypeError as error:
                entry, found = error.__traceback__, []
                while entry is not None:
                    found.append(entry.tb_frame.f_code.co_filename)
                    entry = entry.tb_next
                return found
        raise AssertionError("nothing was raised")

    assert str(file) in frames()
    source_info_util.register_exclusion(str(tmp_path))
    assert str(file) not in frames()


def test_the_mesh_of_this_thread():
    env = pxla.thread_resources.env
    assert env.physical_mesh.empty
    mesh = pxla.Mesh(np.array(olympus.devices()[:1]), ("x",))
    with mesh:
        assert env.physical_mesh is mesh
    with olympus.set_mesh(mesh):
        assert env.physical_mesh is mesh
    assert env.physical_mesh.empty


def test_the_version_of_jaxlib():
    import jaxlib
    assert olympus.lib.__version__ == jaxlib.__version__


# Backends ----------------------------------------------------------------------------------------

def test_backends_are_let_go_and_added():
    """In a process of its own."""
    code = """import olympus, olympus.numpy as onp
from olympus.extend import backend
x = onp.ones(3)
backend.clear_backends()
olympus.config.update("olympus_num_cpu_devices", 3)
print(len(olympus.devices()), x.sum(), olympus.jit(onp.sin)(onp.zeros(2)))
backend.register_backend_factory("second", lambda: backend.get_backend("cpu"))
print(olympus.devices("second") == olympus.devices("cpu"), "second" in backend.backends())
for bad in (("cpu", print), ("third", 3)):
    try:
        backend.register_backend_factory(*bad)
    except (TypeError, ValueError) as error:
        print(str(error).partition(":")[0], type(error).__name__)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout == ("3 3.0 [0. 0.]\nTrue True\nregister_backend_factory ValueError\n"
                           "register_backend_factory TypeError\n"), done.stderr


def test_options_of_the_compiler_by_hand():
    options = olympus.extend.backend.get_compile_options(
        1, 2, olympus.devices()[:1] * 2, {"xla_cpu_enable_fast_math": True})
    assert (options.num_replicas, options.num_partitions) == (1, 2)
    assert ("xla_cpu_enable_fast_math", True) in options.env_option_overrides
    with pytest.raises(ValueError, match="1 devices given for 2 replicas of 2 partitions"):
        olympus.extend.backend.get_compile_options(2, 2, [0])


def test_shardings_are_written_and_read_as_messages():
    sharding = import_module("olympus.extend.sharding")
    cut = lib.HloSharding.iota_tile((2, 3), [6], [0], [])
    data = sharding.get_serialized_proto_from_hlo_sharding(cut)
    assert sharding.get_hlo_sharding_from_serialized_proto(data) == cut
    op = sharding.get_op_sharding_from_serialized_proto(data)
    assert list(op.tile_assignment_dimensions) == [2, 3]


# Lowering ----------------------------------------------------------------------------------------

@pytest.mark.parametrize("late, calls", [(False, 1), (True, 0)])
def test_a_primitive_that_calls_a_program(late, calls):
    mlir = import_module("olympus.interpreters.mlir")
    body = olympus.make_olympuspr(lambda x: (onp.sin(x), x + 1))(1.0)
    p = olympus.extend.core.Primitive("called")
    p.multiple_results = True
    p.def_abstract_eval(lambda x: [x, x])
    mlir.register_lowering(p, lambda ctx, x: mlir.core_call_lowering(
        ctx, x, name="body", inline_olympus_late=late, call_olympuspr=body))
    f = olympus.jit(p.bind)
    np.testing.assert_allclose(f(2.0), [np.sin(2), 3], rtol=1e-6)
    assert f.lower(2.0).as_text().count("call @") == calls


def test_modules_are_merged_without_a_name_taken_twice():
    mlir, ir = import_module("olympus.interpreters.mlir"), import_module("olympus.extend.mlir").ir
    inner = olympus.jit(lambda x: x * 3)
    text = olympus.jit(lambda x: inner(x) + inner(x * 2)).lower(2.0).as_text()
    with mlir.make_ir_context():
        first, second, third = (ir.Module.parse(text) for _ in range(3))
    assert mlir.merge_mlir_modules(first, "main", second) == "main_1"
    assert first.operation.verify() and "func.func private @main_1" in str(first)
    assert str(first).count("func.func") == 2 * text.count("func.func")
    with ir.Context(), pytest.raises(ValueError, match="modules of two contexts"):
        mlir.merge_mlir_modules(third, "x", ir.Module.parse("module {}"))


def test_types_of_values_that_are_no_arrays_of_devices():
    kinds = olympus.extend.core.array_types
    assert {np.ndarray, np.float32, np.bool_, onp.bfloat16.dtype.type} <= kinds
    for kind in kinds - {np.ndarray}:
        assert olympus.extend.core.valid_olympustype(kind(1))
