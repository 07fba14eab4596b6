"""olympus.export: programs that are written, read and called again."""

import functools
import json
import re
import subprocess
import sys
from collections import OrderedDict
from typing import NamedTuple

import eight_devices
import exported_cases
import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus import export
from olympus._src.export import fields
from olympus.export import DisabledSafetyCheck, deserialize
from olympus.extend.core import Primitive
from olympus.extend.mlir.dialects import stablehlo as ops
from olympus.interpreters import mlir
from olympus.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec

X = np.array([0.5, -1.0, 2.0], np.float32)


def round_trip(f, *args, vjp_order=0, **options):
    """What another process would have of `f`, exported for the types of `args`."""
    exported = export.export(olympus.jit(f), **options)(*args)
    return deserialize(exported.serialize(vjp_order=vjp_order))


def struct(spec, dtype="float32", **options):
    return olympus.ShapeDtypeStruct(export.symbolic_shape(spec, **options), dtype)


def tanh_squared(x):
    return onp.tanh(x) ** 2


def test_a_program_read_again_computes_what_the_function_does():
    read = round_trip(tanh_squared, X, vjp_order=2)
    np.testing.assert_allclose(read.call(X), np.tanh(X) ** 2, rtol=1e-6)
    np.testing.assert_allclose(olympus.jit(read.call)(X), np.tanh(X) ** 2, rtol=1e-6)
    first = olympus.grad(lambda x: read.call(x).sum())
    t = np.tanh(X.astype(np.float64))
    np.testing.assert_allclose(first(X), 2 * t * (1 - t**2), rtol=1e-5)
    second = olympus.grad(lambda x: first(x).sum())(X)
    np.testing.assert_allclose(second, 2 * (1 - t**2) * (1 - 3 * t**2), rtol=1e-5)
    np.testing.assert_allclose(olympus.vmap(read.call)(np.stack([X, 2 * X])),
                               np.tanh(np.stack([X, 2 * X])) ** 2, rtol=1e-6)


def test_derivatives_beyond_the_order_that_was_written_are_refused():
    read = round_trip(tanh_squared, X, vjp_order=1)
    assert read.has_vjp() and not read.vjp().has_vjp()
    with pytest.raises(ValueError, match="No VJP is available"):
        olympus.grad(lambda x: olympus.grad(lambda y: read.call(y).sum())(x).sum())(X)
    with pytest.raises(ValueError, match="high-enough order"):
        read.serialize(vjp_order=2)
    with pytest.raises(TypeError, match="forward"):
        olympus.jvp(read.call, (X,), (X,))


class Pair(NamedTuple):
    left: object
    right: object


export.register_namedtuple_serialization(Pair, serialized_name="tests.Pair")


@olympus.tree_util.register_pytree_node_class
class Box:
    def __init__(self, content, label):
        self.content, self.label = content, label

    def tree_flatten(self):
        return (self.content,), self.label

    @classmethod
    def tree_unflatten(cls, label, children):
        return cls(*children, label)


def test_containers_of_arguments_and_results():
    export.register_pytree_node_serialization(
        Box, serialized_name="tests.Box", serialize_auxdata=str.encode,
        deserialize_auxdata=lambda data: data.decode())

    def f(pair, *rest, scale, **more):
        return OrderedDict(b=pair, a={"x": [None, (pair.left * scale, *rest)], **more})

    args, kwargs = (Pair(X, Box(X + 1, "one")), X + 2), {"scale": 2.0, "last": X + 3}
    read = deserialize(export.export(olympus.jit(f))(*args, **kwargs).serialize())
    out, want = read.call(*args, **kwargs), f(*args, **kwargs)
    assert olympus.tree.structure(out) == olympus.tree.structure(want)
    for a, b in zip(olympus.tree.leaves(out), olympus.tree.leaves(want), strict=True):
        np.testing.assert_allclose(a, b)
    with pytest.raises(ValueError, match="same pytree structure(.|\n)*at kwargs"):
        read.call(*args, scale=2.0)
    for again in ({"serialized_name": "tests.Box2"}, {"serialized_name": "tests.Pair"}):
        with pytest.raises(ValueError, match="Duplicate serialization registration"):
            export.register_pytree_node_serialization(
                type("Other", (), {}) if "Pair" in str(again) else Box, serialize_auxdata=str,
                deserialize_auxdata=str, **again)


def test_containers_that_cannot_be_written():
    class Bare(NamedTuple):
        x: object

    with pytest.raises(ValueError, match="unregistered type"):
        export.export(olympus.jit(lambda b: b.x))(Bare(1.0)).serialize()
    with pytest.raises(TypeError, match="string keys"):
        export.export(olympus.jit(lambda d: d[1]))({1: 1.0}).serialize()
    with pytest.raises(ValueError, match="register_pytree_node"):
        export.register_namedtuple_serialization(dict, serialized_name="tests.dict")


def test_arguments_of_other_types_are_refused_by_name():
    read = export.export(olympus.jit(lambda x, *, y: x + y))(X, y=X)
    for x, y, message in ((X[None], X, r"Rank mismatch for args\[0\]"),
                          (X, X[:2], r"Shape mismatch for kwargs\['y'\].shape\[0\]"),
                          (X, X.astype(np.int32), r"Dtype mismatch for kwargs\['y'\]")):
        with pytest.raises(ValueError, match=message):
            read.call(x, y=y)


@pytest.mark.parametrize("name", ["bool", "int8", "uint64", "int4", "float16", "bfloat16",
                                  "float8_e5m2", "float64", "complex128"])
def test_every_kind_of_number_passes(name):
    with olympus.enable_x64(True):
        x = onp.ones((2,), name)
        read = round_trip(lambda x: (x, x == x), x)
        assert read.in_avals[0].dtype == x.dtype
        assert np.array_equal(read.call(x)[0].astype("complex128"), [1, 1])


def test_functions_of_the_library_need_no_jit():
    assert export.export(onp.sin)(X).fun_name == "sin"


def test_keys_and_ints_have_no_derivative_but_pass():
    def f(key, n, x):
        return olympus.random.uniform(key, (3,)) * x, n + 1, key

    key = olympus.random.key(3)
    read = round_trip(f, key, 2, X, vjp_order=1)
    out = read.call(key, 2, X)
    np.testing.assert_array_equal(out[0], olympus.random.uniform(key, (3,)) * X)
    assert out[1] == 3 and out[2].dtype == key.dtype
    assert [a.weak_type for a in read.out_avals[:2]] == [False, True]
    found = olympus.grad(lambda x: read.call(key, 2, x)[0].sum())(X)
    np.testing.assert_allclose(found, olympus.random.uniform(key, (3,)), rtol=1e-6)


def test_memories_go_with_the_program():
    mesh, space = olympus.make_mesh((1,), "x"), olympus.memory.Space
    host = NamedSharding(mesh, PartitionSpec("x"), memory_kind="pinned_host")
    f = olympus.jit(lambda h, x: (h * 2, olympus.device_put(h, space.Device) + x),
                    in_shardings=(host, None))
    h = olympus.device_put(X, host)
    read = deserialize(export.export(f)(h, X).serialize())
    assert read.in_shardings_olympus(mesh)[0] == host
    assert read.in_shardings_olympus(mesh.abstract_mesh)[0].memory_kind == "pinned_host"
    assert [a.memory_space for a in read.in_avals] == [space.Host, space.Device]
    for run in (read.call, olympus.jit(read.call)):
        doubled, total = run(h, X)
        assert [y.sharding.memory_kind for y in (doubled, total)] == ["pinned_host", "device"]
        assert np.array_equal(doubled, 2 * X) and np.array_equal(total, 2 * X)


def test_sums_that_types_speak_of_are_written():
    mesh = AbstractMesh((2, 2, 2), ("x", "y", "z"), (AxisType.Explicit,) * 3)
    sharding = NamedSharding(mesh, PartitionSpec("x", reduced={"y"}, unreduced={"z"}))
    written = json.loads(json.dumps(fields.encode_sharding(sharding)))
    assert fields.decode_sharding(written) == sharding


def test_unused_arguments_are_not_passed_to_the_module():
    exported = export.export(olympus.jit(lambda x, y, z: x * z))(X, X, X)
    assert exported.module_kept_var_idx == (0, 2)
    np.testing.assert_allclose(exported.call(X, X, 2 * X), 2 * X * X)
    kept = export.export(olympus.jit(lambda x, y: x, keep_unused=True))(X, X)
    assert kept.module_kept_var_idx == (0, 1)


def test_what_an_export_says_of_itself():
    exported = export.export(olympus.jit(tanh_squared))(olympus.ShapeDtypeStruct((3,), "float32"))
    assert str(exported) == repr(exported) == "Exported(fun_name=tanh_squared, ...)"
    assert exported.nr_devices == 1 and exported.platforms == ("cpu",)
    assert exported.calling_convention_version == 10 and not exported.uses_global_constants
    assert "stablehlo.tanh" in exported.mlir_module()
    assert exported.in_shardings_hlo == (None,) == exported.in_shardings_olympus(None)
    assert exported == exported and len({exported, exported}) == 1
    with pytest.raises(AttributeError):
        exported.fun_name = "g"


def test_one_module_for_several_platforms():
    def f(x):
        return olympus.lax.platform_dependent(x, cpu=lambda x: x + 1, default=lambda x: x + 2)

    both = round_trip(f, X, platforms=("cuda", "cpu"))
    assert both.uses_global_constants and "stablehlo.case" in both.mlir_module()
    assert '_platform_index' in both.mlir_module()
    np.testing.assert_allclose(both.call(X), X + 1)
    outer = round_trip(lambda x: 2 * both.call(x), X, platforms=("cpu", "cuda"), vjp_order=0)
    np.testing.assert_allclose(outer.call(X), 2 * X + 2)
    with pytest.raises(NotImplementedError, match="either all or no lowering platforms"):
        export.export(olympus.jit(f, donate_argnums=0), platforms=("cpu", "abacus"))(X)
    same = round_trip(onp.sin, X, platforms=("cpu", "tpu"), vjp_order=1)
    assert same.vjp().platforms == ("cpu", "tpu")
    assert "stablehlo.case" not in same.mlir_module()
    np.testing.assert_allclose(same.call(X), np.sin(X), rtol=1e-6)


def test_only_what_depends_on_the_platform_is_there_once_for_each():
    def which(x):
        return olympus.lax.platform_dependent(x, cuda=lambda x: x + 2, default=lambda x: x + 1)

    def f(x):
        call = olympus.jit(which)       # a function of the module, in a loop and outside
        total, parts = olympus.lax.scan(lambda c, v: (call(c) + v, c), 0.0, onp.sin(x))
        return call(total), parts, onp.linalg.cholesky(2 * onp.eye(2) * total ** 2)

    inner = round_trip(f, X, platforms=("cpu", "cuda", "rocm"))
    read = round_trip(inner.call, X, platforms=("cpu", "cuda"))
    assert read.mlir_module().count("stablehlo.sine") == 1
    total = np.sin(X, dtype=np.float64).sum() + 3
    found = read.call(X)
    np.testing.assert_allclose(found[0], total + 1, rtol=1e-5)
    np.testing.assert_allclose(found[2], np.eye(2) * np.sqrt(2) * total, rtol=1e-5)
    shapes = round_trip(lambda x: which(x).reshape(-1), struct("a, b"), platforms=("cpu", "tpu"))
    np.testing.assert_allclose(shapes.call(np.ones((2, 3), np.float32)), np.full(6, 2))


def test_a_program_for_another_platform_is_refused_unless_that_is_allowed():
    with pytest.raises(ValueError, match=r"was exported for platforms '\('tpu',\)' but it is used"):
        round_trip(onp.sin, X, platforms=("tpu",)).call(X)
    checks = [DisabledSafetyCheck.platform()]
    read = round_trip(onp.sin, X, platforms=("tpu",), disabled_checks=checks, vjp_order=1)
    for each in (read, read.vjp()):
        assert list(each.disabled_safety_checks) == checks
    np.testing.assert_allclose(read.call(X), np.sin(X), rtol=1e-6)


def test_python_in_a_program_cannot_be_exported():
    def f(x):
        return olympus.pure_callback(np.sin, x, x)

    with pytest.raises(NotImplementedError, match="host_callbacks"):
        export.export(olympus.jit(f))(X)
    with pytest.raises(ValueError, match="must be the result of `jit`"):
        export.export(lambda x: x)


def test_custom_calls_without_a_promise_are_refused_by_name():
    def f(x):
        return olympus.lax.linalg.qr(x, pivoting=True)[1]

    with pytest.raises(ValueError, match=r"(?s)no compatibility guarantees.*lapack_sgeqp3_ffi"):
        export.export(olympus.jit(f))(np.eye(3, dtype=np.float32))
    allowed = [DisabledSafetyCheck.custom_call("lapack_sgeqp3_ffi")]
    read = round_trip(f, np.eye(3, dtype=np.float32), disabled_checks=allowed)
    np.testing.assert_allclose(abs(np.asarray(read.call(np.eye(3, dtype=np.float32)))), np.eye(3))


def test_exports_that_call_exports():
    inner = round_trip(tanh_squared, X, vjp_order=2)
    outer = round_trip(lambda x: inner.call(2 * x) + inner.call(x), X, vjp_order=1)
    t = np.tanh
    np.testing.assert_allclose(outer.call(X), t(2 * X) ** 2 + t(X) ** 2, rtol=1e-6)
    found = olympus.grad(lambda x: outer.call(x).sum())(X)
    want = olympus.grad(lambda x: (onp.tanh(2 * x) ** 2 + onp.tanh(x) ** 2).sum())(X)
    np.testing.assert_allclose(found, want, rtol=1e-5)


def test_main_of_an_export_wraps_a_program_with_dimensions():
    n, m = export.symbolic_shape("2*n, m")
    f = olympus.jit(lambda x: x.reshape(-1), donate_argnums=0)
    exported = export.export(f, platforms=["cpu", "tpu"])(
        olympus.ShapeDtypeStruct((n, m), "float32"))
    main, inner = re.findall(r"func.func (.*)", exported.mlir_module())
    assert main.startswith("public @main(%arg0: tensor<i32> "
                           '{olympus.global_constant = "_platform_index"}, %arg1: tensor<?x?xf32>')
    assert re.match(
        r"private @_wrapped_olympus_export_main\("
        r'%arg0: tensor<i32> {olympus.global_constant = "_platform_index"}, '
        r'%arg1: tensor<i32> {olympus.global_constant = "m"}, '
        r'%arg2: tensor<i32> {olympus.global_constant = "n"}, %arg3: tensor<\?x\?xf32>', inner)
    np.testing.assert_array_equal(exported.call(X.reshape(-1, 1)[:2]), X[:2])


def test_rules_for_this_export_only():
    sin_p = olympus.lax.sin_p
    rule = mlir.lower_fun(olympus.lax.cos, multiple_results=False)
    f = olympus.jit(lambda x: olympus.lax.sin(x))
    exported = export.export(f, _override_lowering_rules=[(sin_p, rule)])(X)
    np.testing.assert_allclose(exported.call(X), np.cos(X), rtol=1e-6)
    np.testing.assert_allclose(f(X), np.sin(X), rtol=1e-6)


@pytest.fixture(scope="module")
def results(request):
    return eight_devices.outcomes(exported_cases, request)


@pytest.mark.parametrize("case", exported_cases.CASES)
def test_on_several_devices(results, case):
    assert not results[case], results[case]


# Effects


class First(olympus.core.Effect):
    ordered = True
    name = "First"


class Second(First):
    name = "Second"


class Loose(olympus.core.Effect):
    name = "Loose"


EFFECTS = {e.name: e for e in (First(), Second(), Loose())}


def _lower_doubled(ctx, x, *, effect):
    assert ctx.tokens_in.effects() == {EFFECTS[effect]} - {Loose()}
    if EFFECTS[effect].ordered:     # an operation that passes its token on
        x, token = ops.CustomCallOp(
            [x.type, mlir.token_type()], [x, ctx.tokens_in.get(EFFECTS[effect])], effect).results
        ctx.set_tokens_out(mlir.TokenSet({EFFECTS[effect]: token}))
    return [ops.add(x, x)]


doubled_p = Primitive("doubled")
doubled_p.def_effectful_abstract_eval(lambda x, *, effect: (x, {EFFECTS[effect]}))
mlir.register_lowering(doubled_p, _lower_doubled)


def main_of(module):
    """The types of main's arguments and results: its type, without what attributes say."""
    head = next(line for line in module.splitlines() if "@main(" in line)
    return re.findall(r"!stablehlo\.token|tensor<[^>]*>", head)


@pytest.mark.parametrize("size", [3, "b"])
def test_main_takes_and_gives_a_token_for_each_ordered_effect(size):
    def inner(x):
        return doubled_p.bind(x, effect="Second") + doubled_p.bind(x, effect="Loose")

    def f(x):
        return olympus.jit(inner)(x) + doubled_p.bind(x, effect="First")

    allowed = [DisabledSafetyCheck.custom_call(name) for name in EFFECTS]
    x = struct(str(size))
    exported = export.export(olympus.jit(f), disabled_checks=allowed)(x)
    assert exported.ordered_effects == (First(), Second())
    assert exported.unordered_effects == (Loose(),)
    token, array = "!stablehlo.token", "tensor<3xf32>" if size == 3 else "tensor<?xf32>"
    assert main_of(exported.mlir_module()) == [token, token, array] * 2
    read = deserialize(exported.serialize())
    assert (read.ordered_effects, read.unordered_effects) == ((First(), Second()), (Loose(),))
    # Calls within another program come after what is before them: each takes the last token.
    text = olympus.jit(lambda x: read.call(doubled_p.bind(x, effect="First"))).lower(X).as_text()
    before, = re.findall(r"(%\d+):2 = stablehlo.custom_call @First", text.split("func private")[0])
    assert f"call @call_exported_f({before}#1, {before}#1, " in text
    several = export.export(olympus.jit(f), platforms=("cpu", "tpu"), disabled_checks=allowed)(x)
    assert main_of(several.mlir_module()) == ["tensor<i32>", token, token, array, token, token,
                                              array]


def test_a_donated_argument_is_counted_behind_the_tokens():
    f = olympus.jit(lambda x: doubled_p.bind(x, effect="First") * 1, donate_argnums=0)
    allowed = [DisabledSafetyCheck.custom_call("First")]
    module = export.export(f, disabled_checks=allowed)(X).mlir_module()
    assert "tf.aliasing_output = 1" in module


# Damaged and foreign artifacts


def test_artifacts_that_are_not_whole_are_refused_by_what_is_wrong():
    whole = bytes(export.export(olympus.jit(tanh_squared))(X).serialize())
    for data, message in ((b"", "do not begin"), (b"\x18\0\0\0" + whole, "do not begin"),
                          (whole[:20], "truncated"), (whole[:-1], "truncated"),
                          (whole + b"\0", "behind its end"),
                          (whole.replace(b"tanh_squared", b"tanh_sqoared"), "damaged")):
        with pytest.raises(ValueError, match=message):
            deserialize(data)
    with pytest.raises(TypeError, match="bytes"):
        deserialize("text")


def test_no_changed_byte_goes_unnoticed():
    whole = export.export(olympus.jit(tanh_squared))(X).serialize()
    rng = np.random.default_rng(0)
    for at in [*range(60), *rng.integers(60, len(whole), 200)]:
        changed = bytearray(whole)
        changed[at] ^= 1 << int(rng.integers(8))
        with pytest.raises(ValueError, match="do not begin|truncated|behind its end|damaged"):
            deserialize(changed)


def test_newer_artifacts_say_so(monkeypatch):
    from olympus._src.export import container, module

    exported = export.export(olympus.jit(tanh_squared))(X)
    with monkeypatch.context() as patch:
        patch.setattr(container, "VERSION", 7)
        newer = exported.serialize()
    with pytest.raises(ValueError, match="newer than this Olympus: its format is 7; 1 at most"):
        deserialize(newer)
    artifact = exported.mlir_module_serialized.replace(b"StableHLO_v1.", b"StableHLO_v9.")
    with pytest.raises(ValueError, match="newer than this jaxlib: its StableHLO is 9."):
        module.read_module(artifact)


def test_malformed_contents_with_a_right_checksum_are_refused():
    from olympus._src.export import container

    metadata, blobs = container.unpack(export.export(olympus.jit(tanh_squared))(X).serialize())
    for changes in ({"in_avals": 3}, {"in_tree": {"tuple": []}}, {"module": 9}, {"in_avals": None},
                    {"in_avals": [{"shape": [3], "dtype": "float33"}]}, {"out_tree": {"what": 1}}):
        with pytest.raises(ValueError, match="malformed"):
            deserialize(container.pack({**metadata, **changes}, blobs))
    with pytest.raises(ValueError, match="malformed"):
        read = deserialize(container.pack(metadata, [blobs[0][:-40]]))
        read.call(X)
    with pytest.raises(ValueError, match="unregistered type"):
        deserialize(container.pack({**metadata, "in_tree": {"node": "nobody's"}}, blobs))


def _values(written, path=()):
    """The places of all values in JSON."""
    if isinstance(written, (dict, list)):
        for key in written if isinstance(written, dict) else range(len(written)):
            yield (*path, key)
            yield from _values(written[key], (*path, key))


def test_metadata_that_a_stranger_wrote_are_refused_or_right():
    from olympus._src.export import container

    b, = export.symbolic_shape("b")
    exported = export.export(olympus.jit(lambda w, x, *, k: {"a": x @ w, "b": k}),
                             platforms=["cpu", "tpu"])(
        olympus.ShapeDtypeStruct((3, 2), "float32"), olympus.ShapeDtypeStruct((b, 3), "float32"),
        k=np.float32(1))
    metadata, blobs = container.unpack(exported.serialize(vjp_order=1))
    w, x, k = np.ones((3, 2), "float32"), np.ones((4, 3), "float32"), np.float32(2)
    rng, refused = np.random.default_rng(0), []
    wrong = [None, True, -1, 0, 1, 10**30, 1.5, "", "b", "9" * 5000, [], [1], {}, {"tuple": []}]
    for path in _values(metadata):
        forged = json.loads(json.dumps(metadata))
        place = functools.reduce(lambda x, key: x[key], path[:-1], forged)
        place[path[-1]] = wrong[rng.integers(len(wrong))]
        try:
            read = deserialize(container.pack(forged, blobs))
            olympus.jit(read.call).lower(w, x, k=k)
        except ValueError:      # no other exception, and no crash
            refused.append(path)
    assert len(refused) > 70
    # What is taken is another program's metadata, or concerns the derivative alone.
    assert not {("out_avals",), ("in_tree",), ("module",), ("platforms",)} - {*refused}


# In place of a child that reads bytecode which ends it: one that ends, or does not, by itself.
CHILDREN = {
    "status": ("sys.exit(7)", r"it ends \(status 7\) the process"),
    "signal": ("os.kill(os.getpid(), signal.SIGTERM)", r"it ends \(SIGTERM\) the process"),
    "never": ("time.sleep(600)", r"has not read it in 0\.2 seconds"),
    "words": ("sys.stdin.buffer.read(); print('it is malformed', end=''); sys.exit(3)",
              "^it is malformed$"),
}


@pytest.mark.parametrize("how", CHILDREN)
def test_a_child_that_does_not_read_a_module_is_a_malformed_module(how, monkeypatch):
    from olympus._src.export import module

    code, message = CHILDREN[how]
    run = subprocess.run
    monkeypatch.setattr(module, "_CHILD_SECONDS", 0.2 if how == "never" else 120)
    monkeypatch.setattr(module.subprocess, "run", lambda command, **options: run(
        [sys.executable, "-S", "-c", "import os, signal, sys, time; " + code], **options))
    with pytest.raises(ValueError, match=message) as caught:
        module.check_in_child([b"any"])
    assert "malformed" in str(caught.value)


@pytest.mark.slow
def test_the_modules_of_an_artifact_are_read_by_another_process_first(tmp_path):
    from olympus._src.export import container

    metadata, blobs = container.unpack(export.export(olympus.jit(tanh_squared))(X).serialize())
    np.testing.assert_allclose(deserialize(container.pack(metadata, blobs), verify=True).call(X),
                               np.tanh(X) ** 2, rtol=1e-6)
    forged = container.pack(metadata, [blobs[0][:-40]])     # jaxlib says that its end is missing
    with pytest.raises(ValueError, match="malformed: jaxlib .* cannot read it"):
        deserialize(forged, verify=True)
    path = tmp_path / "forged"
    path.write_bytes(forged)
    found = subprocess.run([sys.executable, "-m", "olympus", "export", "verify", str(path)],
                           capture_output=True, text=True)
    assert found.returncode == 2
    assert "is malformed" in found.stderr


def test_another_process_runs_it(tmp_path):
    path = tmp_path / "f.bin"
    path.write_bytes(export.export(olympus.jit(tanh_squared))(X).serialize(vjp_order=1))
    code = f"""
import numpy as np, olympus
from olympus import export
read = export.deserialize(open({str(path)!r}, "rb").read())
x = np.array([0.5, -1.0, 2.0], np.float32)
np.testing.assert_allclose(read.call(x), np.tanh(x) ** 2, rtol=1e-6)
np.testing.assert_allclose(olympus.grad(lambda x: read.call(x).sum())(x),
                           2 * np.tanh(x) * (1 - np.tanh(x) ** 2), rtol=1e-5)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


# Symbolic sizes


def test_one_artifact_for_all_sizes():
    read = round_trip(lambda x: olympus.nn.softmax(x).mean(0) + x.shape[0], struct("b, 3"),
                      vjp_order=1)
    assert read.uses_global_constants and str(read.in_avals[0].shape) == "(b, 3)"
    for b in (1, 4):
        x = np.linspace(-1, 1, 3 * b, dtype=np.float32).reshape(b, 3)
        e = np.exp(x)
        p = e / e.sum(-1, keepdims=True)
        np.testing.assert_allclose(read.call(x), p.mean(0) + b, rtol=1e-6)
        found = olympus.grad(lambda x: read.call(x)[0])(x)
        want = p[:, :1] * (np.eye(3, dtype=np.float32)[:1] - p) / b
        np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-7)
    outer = round_trip(lambda x: 2 * read.call(x), struct("2*c, 3"))
    assert str(outer.in_avals[0].shape) == "(2*c, 3)"
    x = np.zeros((4, 3), np.float32)
    np.testing.assert_allclose(outer.call(x), [8 + 2 / 3] * 3, rtol=1e-6)
    with pytest.raises(ValueError, match="Division had remainder 1 when computing .* 'c'"):
        outer.call(x[:3])


def test_constraints_go_with_the_artifact():
    def f(x):
        return x.reshape(-1, 4).sum(-1), olympus.numpy.arange(x.shape[0] - 4)

    read = round_trip(f, struct("a", constraints=["mod(a, 4) == 0", "a >= 8"]))
    assert read.call(np.ones(12, np.float32))[1].shape == (8,)
    for n, words in ((9, r"constraint mod\(a, 4\) == 0"), (4, "constraint a >= 8")):
        with pytest.raises(ValueError, match=words):
            read.call(np.ones(n, np.float32))


def test_integers_of_symbolic_sizes_have_float0_for_their_derivatives():
    """Zeros of float0 asked for a number."""
    (q,) = export.symbolic_shape("q")
    args = [olympus.ShapeDtypeStruct((q,), kind) for kind in ("int32", "float32")]
    read = round_trip(lambda n, x: (n + 1, x * x), *args, vjp_order=1)
    assert [str(a) for a in read.vjp().out_avals] == ["float0[q]", "float32[q]"]
    n, x = np.arange(3, dtype=np.int32), np.array([1.0, 2.0, 3.0], np.float32)
    assert np.array_equal(olympus.grad(lambda x: read.call(n, x)[1].sum())(x), 2 * x)


def test_empty_matrices_of_symbolic_batches_have_all_singular_vectors():
    """The identities asked for a number."""
    (b,) = export.symbolic_shape("b")
    read = round_trip(functools.partial(olympus.lax.linalg.svd, full_matrices=True),
                      olympus.ShapeDtypeStruct((b, 0, 3), "float32"))
    u, s, vh = read.call(np.zeros((2, 0, 3), np.float32))
    assert u.shape == (2, 0, 0) and s.shape == (2, 0)
    assert np.array_equal(vh, np.broadcast_to(np.eye(3), (2, 3, 3)))


def test_symbols_of_two_scopes_do_not_mix():
    with pytest.raises(ValueError, match=r"(?s)Invalid mixing of symbolic scopes when exporting f"
                                         r".*from args\[0\].*'w' \(args\[1\]\)"):
        def f(x, y):
            return x, y

        export.export(olympus.jit(f))(struct("w, h"), struct("w, k"))


def test_an_export_for_several_platforms_that_computes_in_float64_is_not_malformed():
    """The determinant of float32 does on CPUs; the platform's number became an int64."""
    x = np.float32([[4, 1], [1, 3]])
    exported = export.export(olympus.jit(onp.linalg.det), platforms=["tpu", "cpu"])(x)
    assert exported.call(x) == 11
