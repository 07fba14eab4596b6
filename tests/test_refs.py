"""References: eagerly, in programs, under transformations; what they cost, and what is refused."""

import copy
import gc
import threading
import weakref

import numpy as np
import pytest
import ref_programs as programs

import olympus
import olympus.numpy as onp
from olympus import lax
from olympus.custom_batching import custom_vmap
from olympus.experimental.compute_on import compute_on
from olympus.ref import Ref, addupdate, empty_ref, free_ref, freeze, new_ref, set, swap

X = np.array([0.5, -1.0, 2.0, 0.25], np.float32)


def ways(fun, *args):
    """The results of a function of no references: eagerly, in jit, step by step."""
    with olympus.disable_jit():
        steps = fun(*args)
    return fun(*args), olympus.jit(fun)(*args), steps


INDICES = [
    ..., (), None, 0, -1, np.int32(2), slice(None), slice(1, 3), slice(None, None, -1),
    slice(3, 0, -2), slice(0, 0), np.array([2, 0]), [1, 1], np.array([True, False, True, True]),
    (None, 1), (..., 2), (slice(1, None), None), np.array(1), True, np.zeros(0, np.int32)]


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_an_index_reads_and_writes_what_numpys_does(index):
    """Regression of JAX: masks and negative steps are refused there, None is ignored."""
    def run(x):
        ref = new_ref(x)
        before = ref[index]
        ref[index] = 7.0
        addupdate(ref, 1, 1.0)
        return before, ref[...]

    want = X.copy()
    before = np.array(want[index])
    want[index] = 7.0
    want[1] += 1
    for found, left in ways(run, X):
        np.testing.assert_array_equal(found, before)
        np.testing.assert_array_equal(left, want)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "bfloat16", "float16", "float8_e4m3fn",
                                   "int4", "complex64"])
def test_each_dtype_is_kept_and_written(dtype):
    def run(x):
        ref = new_ref(x)
        ref[1:] = ref[:-1]
        return ref[...]

    x = onp.array([1, 0, 1], dtype)
    for found in ways(run, x):
        assert found.dtype == x.dtype
        np.testing.assert_array_equal(np.asarray(found, complex), [1, 1, 0])


def test_shapes_without_elements_and_without_axes():
    for shape in ((), (0,), (2, 0)):
        ref = new_ref(onp.zeros(shape))
        olympus.jit(lambda r: r.__setitem__(..., r[...] + 1))(ref)
        assert ref.shape == shape and ref[...].shape == shape and len(shape) == ref.ndim


def test_a_number_makes_a_place_without_weak_type_and_others_are_converted():
    ref = new_ref(1.0)
    assert not ref[...].weak_type and ref.dtype == np.float32
    ref[...] = 2
    ref[...] = onp.asarray([2], np.int8)[0]
    assert ref[...].dtype == np.float32
    with olympus.enable_x64(True):
        wide = new_ref(1.0)
        olympus.jit(lambda: swap(wide, (), 3))()
        assert wide.dtype == np.float64 and wide[...] == 3


@pytest.mark.parametrize(("dtype", "value"), [
    ("float32", 1j), ("int32", 1.0), ("int32", onp.ones(3)), ("int8", onp.ones(3, np.int32)),
    ("bool", 1), ("uint8", [-1.5, 0.0, 1.0])])
@pytest.mark.parametrize("index", [Ellipsis, slice(0, 3), np.array([0, 1, 2])])
@pytest.mark.parametrize("write", [set, addupdate, swap])
def test_a_value_that_a_dtype_cannot_hold_is_refused(dtype, value, index, write):
    ref = new_ref(onp.zeros(3, dtype))
    for run in (lambda: write(ref, index, value), olympus.jit(lambda: write(ref, index, value))):
        with pytest.raises(ValueError, match="cannot be cast safely"):
            run()
    assert not ref[...].any()


def test_programs_are_printed_as_jax_prints_them():
    def f(x, i, v):
        x[...] += 1.0
        x[0] = x[1] * 2
        x[1:3]
        x[i] = v
        addupdate(x, slice(0, 2), onp.ones(2))
        y = new_ref(v)
        swap(x, 0, y[...])
        q = swap(x, -1, 1.0)
        return q, freeze(y)

    assert str(olympus.make_olympuspr(f)(new_ref(X), 1, onp.float32(2))) == """\
{ lambda ; a:Ref{f32[4]} b:i32[] c:f32[]. let
    d:f32[4] <- a[...]
    e:f32[4] = add d 1.0:f32[]
    a[...] <- e
    f:f32[] <- a[1]
    g:f32[] = mul f 2.0:f32[]
    a[0] <- g
    _:f32[2] <- a[1:3]
    a[b] <- c
    h:f32[2] = broadcast_in_dim 1.0:f32[]
    a[:2] += h
    i:Ref{f32[]} = new_ref[kind=None memory_space=None] c
    j:f32[] <- i[...]
    a[0] <- j
    k:f32[], a[-1] <- a[-1], 1.0:f32[]
    l:f32[] = freeze i
  in (k, l) }"""


@pytest.mark.parametrize("index, printed", [
    (0, "[0,:]"), ((slice(1), 2), "[:1,2]"), ((..., 0), "[:,0]"), ((0, slice(None, None, 2)),
    "[0,::2]"), (np.array([0, 2]), "[b,:]"), ((None, 1), "[None,1,:]"), (..., "[...]"),
    (np.array([True, False, True]), "[b,:]"), ((0, ..., -1), "[0,-1]")])
def test_a_place_is_printed_with_all_its_axes(index, printed):
    """Regression: rows were printed as a[0], where JAX prints a[0,:]."""
    closed = olympus.make_olympuspr(lambda ref: ref[index])(new_ref(onp.zeros((3, 4))))
    text = str(closed)
    for name in ("a", "b"):     # arrays of an index come first, as constants
        text = text.replace(f"<- {name}[", "<- [")
    assert f"<- {printed}".replace("[b", "[a") in text
    part = olympus.make_olympuspr(lambda ref: ref.at[1].at[:2][...])(new_ref(onp.zeros((3, 4))))
    assert "<- a[1,:][:2]" in str(part)


def test_effects_name_the_references_and_none_that_are_made_inside():
    def f(x, y, z):
        own = new_ref(0.0)
        own[...] = x[0]
        addupdate(y, 0, own[...])
        z[0] = 1.0

    closed = olympus.make_olympuspr(f)(*[new_ref(X) for _ in range(3)])
    assert sorted(map(str, closed.effects)) == ["Add<1>", "Read<0>", "Write<2>"]
    assert not olympus.make_olympuspr(lambda x: f(*[new_ref(x) for _ in range(3)]))(X).effects


def test_what_nobody_reads_is_dropped_after_discharge():
    def f(x):
        ref = new_ref(onp.sin(x))
        ref[0] = 1.0
        return x + 1

    assert "sine" not in olympus.jit(f).lower(X).as_text()


def test_a_content_is_replaced_in_place_and_nobodys_array_is_deleted():
    step = olympus.jit(lambda ref, i: set(ref, i, 1.0))
    x = onp.zeros(1024)
    ref = new_ref(x)
    assert step.lower(ref, 1).compile().memory_analysis().alias_size_in_bytes == 4096
    kept = ref[...]
    step(ref, 1)        # copies, since `kept` is somebody's
    first = ref.unsafe_buffer_pointer()
    step(ref, 2)
    assert ref.unsafe_buffer_pointer() == first
    assert (kept.sum(), x.sum(), ref[...].sum()) == (0, 0, 2)
    ref[...] = x
    step(ref, 3)
    assert (x.sum(), ref[...].sum()) == (0, 1)


def test_a_call_with_references_is_traced_once_for_all_references():
    step = olympus.jit(lambda ref, n: set(ref, ..., ref[...] + n))
    a, b = new_ref(X), new_ref(X * 2)
    for ref in (a, b, a):
        step(ref, 1.0)
    assert step.cache_info().traces == 1
    np.testing.assert_array_equal(a[...], X + 2)
    np.testing.assert_array_equal(b[...], X * 2 + 1)
    closes = olympus.jit(lambda: set(a, 0, a[0] + b[0]))
    closes()
    closes()
    assert closes.cache_info().traces == 1 and a[0] == X[0] + 2 + 2 * (2 * X[0] + 1)


def test_references_are_leaves_of_pytrees():
    def step(state, x):
        state["w"][...] -= x
        state["count"][...] += 1
        return state["w"][0]

    state = {"w": new_ref(X), "count": new_ref(0)}
    olympus.jit(step)(state, 1.0)
    assert olympus.jit(step)(state, 1.0) == X[0] - 2 and state["count"][...] == 2


def test_ahead_of_time():
    state = new_ref(X)
    traced = olympus.jit(lambda s, x: set(s, 0, s[0] + x)).trace(state, 1.0)
    assert str(traced.in_avals[0][0]) == "Ref{float32[4]}"
    compiled = traced.lower().compile()
    compiled(state, 1.0)
    compiled(state, 2.0)
    assert state[0] == X[0] + 3 and compiled.args_info[0][0].shape == (4,)
    with pytest.raises(TypeError, match=r"compiled with Ref\{float32\[4\]\} and called with"):
        compiled(X, 1.0)
    closes = olympus.jit(lambda x: set(state, 1, x)).lower(1.0).compile()
    closes(5.0)
    assert state[1] == 5 and closes.in_tree.num_leaves == 1
    struct = olympus.ShapeDtypeStruct((4,), "float32", is_ref=True)
    olympus.jit(lambda s: set(s, 1, 6.0)).lower(struct).compile()(state)
    assert state[1] == 6


def test_programs_with_references_inside_leave_the_process(tmp_path):
    def f(x):
        ref = new_ref(x)
        lax.fori_loop(0, 3, lambda i, c: (set(ref, i, ref[i + 1]), c)[1], 0)
        return ref[...]

    want = f(X)
    exported = olympus.export.export(olympus.jit(f))(X)
    np.testing.assert_array_equal(exported.call(X), want)
    with olympus._src.base.config.compilation_cache_dir(str(tmp_path)):
        np.testing.assert_array_equal(olympus.jit(f, persist=True)(X), want)


def test_two_writers_lose_no_array():
    ref, step = new_ref(onp.zeros(256)), olympus.jit(lambda r, x: set(r, ..., r[...] * 0 + x))
    step(ref, 1.0)
    failed = []

    def write(x):
        try:
            for _ in range(100):
                step(ref, x)
                found = np.unique(ref[...])
                assert found.tolist() in ([1.0], [2.0]), found
                ref[0]
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=write, args=(x,)) for x in (1.0, 2.0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


# Bodies ------------------------------------------------------------------------------------------

def _custom_vmap(fun):
    wrapped = custom_vmap(lambda x: fun() + x * 0)
    wrapped.def_vmap(lambda size, mapped, x: (onp.full(size, fun()) + x * 0, True))
    return wrapped(0.0)


def _custom(rules):
    def body(fun):
        @rules
        def wrapped(x):
            return fun() + x * 0
        if rules is olympus.custom_jvp:
            wrapped.defjvp(lambda p, t: (wrapped(*p), t[0]))
        else:
            wrapped.defvjp(lambda x: (wrapped(x), None), lambda res, ct: (ct,))
        return wrapped(0.0)
    return body


BODIES = {
    "jit": lambda f: olympus.jit(f)(), "checkpoint": lambda f: olympus.checkpoint(f)(),
    "scan": lambda f: lax.scan(lambda c, _: (c, f()), 0, None, length=1)[1][0],
    "while": lambda f: lax.while_loop(lambda c: c[0] < 1, lambda c: (c[0] + 1, f()),
                                      (0, onp.float32(0)))[1],
    "fori": lambda f: lax.fori_loop(0, onp.int32(1), lambda i, c: f(), onp.float32(0)),
    "cond": lambda f: lax.cond(onp.array(True), f, lambda: onp.float32(0)),
    "switch": lambda f: lax.switch(onp.int32(1), [lambda: onp.float32(0), f, f]),
    "map": lambda f: lax.map(lambda _: f(), onp.arange(1))[0],
    "custom_jvp": _custom(olympus.custom_jvp), "custom_vjp": _custom(olympus.custom_vjp),
    "custom_vmap": _custom_vmap, "kept": lambda f: lax.scan(
        lambda c, _: (c, f()), 0, None, length=1, checkpoint=1)[1][0],
    "checkpoints": lambda f: lax.while_loop(lambda c: c[0] < 1, lambda c: (c[0] + 1, f()),
                                            (0, onp.float32(0)), checkpoints=2)[1],
    "platform": lambda f: lax.platform_dependent(default=f, cuda=lambda: onp.float32(7)),
    "shard_map": lambda f: olympus.shard_map(
        f, mesh=olympus.make_mesh((1,), ("d",)), in_specs=(), out_specs=olympus.P())(),
    "compute_on": lambda f: compute_on("device_host")(olympus.jit(f))(),
    "solve": lambda f: lax.custom_linear_solve(lambda x: x, f(), lambda _, b: b),
    "named": lambda f: olympus.named_call(f)(), "pair": lambda f: lax.cond(
        onp.array(True), lambda: lax.scan(lambda c, _: (c, olympus.jit(f)()), 0, None, length=1)[
            1][0], lambda: onp.float32(0)),
}
DEEDS = {
    "read": (lambda r: r[1] * 2, 0), "write": (lambda r: (set(r, 1, 5.0), onp.float32(1))[1], 4),
    "add": (lambda r: (addupdate(r, 1, 3.0), onp.float32(1))[1], 3),
    "handed on": (lambda r: onp.float32(1), 0),
}
TAKES = {
    "same": lambda f: f(), "jit": lambda f: olympus.jit(f)(),
    "jvp": lambda f: olympus.jvp(lambda x: f() + x, (0.0,), (1.0,))[0],
    "grad": lambda f: olympus.value_and_grad(lambda x: f() + x)(0.0)[0],
    "vmap": lambda f: olympus.vmap(lambda x: f() + x)(onp.zeros(2))[0],
    "grad jit": lambda f: olympus.value_and_grad(olympus.jit(lambda x: f() + x))(0.0)[0],
    "jit grad": lambda f: olympus.jit(olympus.value_and_grad(lambda x: f() + x))(0.0)[0],
    "checkpoint": lambda f: olympus.value_and_grad(olympus.checkpoint(lambda x: f() + x))(0.0)[0],
}


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("deed", DEEDS)
def test_each_primitive_with_a_body_touches_an_outer_reference_once(body, deed):
    act, more = DEEDS[deed]
    for take in TAKES:
        ref = new_ref(onp.array([0.0, 1.0]))
        out = TAKES[take](lambda ref=ref: BODIES[body](lambda: act(ref)))
        assert (take, float(out), ref[...].tolist()) == (
            take, 2.0 if deed == "read" else 1.0, [0.0, 1.0 + more])


def test_a_rule_of_vmap_gets_references_where_a_body_has_contents():
    """Regression: in a body that is discharged, custom_vmap knew no contents: KeyError."""
    @custom_vmap
    def f(ref, x):
        ref[0] += x
        return ref[...].sum()

    @f.def_vmap
    def rule(size, mapped, ref, x):
        assert mapped == [True, True]
        addupdate(ref, (slice(None), 0), 10 * x)
        return ref[...].sum(1), True

    x = onp.arange(3.0)
    for g in (f, olympus.jit(f), olympus.checkpoint(f), lambda ref, x: lax.fori_loop(
            0, 1, lambda i, c: f(ref, x), 0.0)):
        one = new_ref(onp.ones(2))
        assert g(one, 2.0) == 4 and one[...].tolist() == [3, 1]
        for way in (lambda h: h, olympus.jit):
            ref = new_ref(onp.ones((3, 2)))
            assert way(olympus.vmap(g))(ref, x).tolist() == [2, 12, 22]
            assert ref[...].tolist() == [[1, 1], [11, 1], [21, 1]]
    seen = new_ref(0.0)
    g = custom_vmap(lambda x: x + seen[...])
    g.def_vmap(lambda size, mapped, x: (x - seen[...], True))
    assert olympus.vmap(g)(x).tolist() == olympus.jit(olympus.vmap(g))(x).tolist() == [0, 1, 2]
    assert olympus.jit(lambda x: (lambda ref: g(x) + ref[...])(new_ref(x)))(2.0) == 4
    with pytest.raises(TypeError, match="closes over a traced value or a reference"):
        olympus.vmap(olympus.jit(g))(x)


def test_a_composite_that_closes_over_a_reference_says_to_read_it_before():
    ref = new_ref(2.0)
    with pytest.raises(TypeError, match="decomposition closes over the reference"):
        lax.composite(lambda x: x * ref[...], "my.scale")(3.0)


@pytest.mark.parametrize("rules", [olympus.custom_jvp, olympus.custom_vjp])
def test_rules_hold_for_a_function_that_writes_a_reference(rules):
    """Regression: in a jitted function the rules were given contents for references."""
    ref = new_ref(1.0)

    @rules
    def f(x):
        ref[...] *= 2.0
        return onp.sin(x) * ref[...]

    if rules is olympus.custom_jvp:
        f.defjvp(lambda p, t: (f(*p), 100.0 * t[0] * ref[...]))
    else:
        f.defvjp(lambda x: (f(x), ref[...]), lambda res, ct: (100.0 * ct * res,))
    for k, take in enumerate((olympus.grad(f), olympus.grad(olympus.jit(f)),
                              olympus.jit(olympus.grad(olympus.jit(f))),
                              olympus.grad(lambda x: lax.scan(lambda c, _: (c, f(x)), 0, None,
                                                              length=1)[1][0]))):
        assert take(0.5) == 100 * 2 ** (k + 1) and ref[...] == 2 ** (k + 1)


def test_a_linear_function_that_writes_is_transposed():
    """Regression: a value written to a reference had no cotangent."""
    def f(x):
        ref = new_ref(onp.zeros(3))
        ref[1] = 2 * x
        return ref[...]

    transposed = olympus.linear_transpose(f, 1.0)
    assert transposed(onp.arange(3.0))[0] == 2
    assert olympus.linear_transpose(olympus.jit(f), 1.0)(onp.arange(3.0))[0] == 2


def test_checkpoint_writes_an_outer_reference_once():
    ref = new_ref(1.0)

    @olympus.checkpoint
    def f(x):
        out = onp.sin(x * ref[...])
        ref[...] += 1.0
        return out

    for k, g in enumerate((olympus.grad(f), olympus.grad(olympus.jit(f)),
                           olympus.jit(olympus.grad(f)))):
        held = k + 1.0
        np.testing.assert_allclose(g(0.5), held * np.cos(0.5 * held), rtol=1e-5)
        assert ref[...] == k + 2


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("remat", [False, True])
@pytest.mark.parametrize("looped", [False, True])
def test_a_reference_collects_what_gradients_are_on_the_way(jitted, remat, looped):
    @olympus.custom_vjp
    def watched(ref, x):
        return x

    watched.defvjp(lambda ref, x: (x, ref),
                   lambda ref, ct: (addupdate(ref, (), ct), (None, ct))[1])

    def f(ref, x):
        def body(x, _):
            return onp.sin(watched(ref, onp.sin(x))), None
        if remat:
            body = olympus.checkpoint(body)
        return lax.scan(body, x, None, length=2)[0] if looped else body(x, None)[0]

    ref, fun = new_ref(0.0), olympus.jit(f) if jitted else f
    olympus.grad(fun, 1)(ref, 1.0)
    s, c = np.sin, np.cos
    a = s(1.0)
    want = c(a)
    if looped:
        y = s(a)
        b = s(y)
        want = c(b) + c(b) * c(y) * c(a)
    np.testing.assert_allclose(ref[...], want, rtol=1e-5)


def test_a_while_reads_in_its_condition_what_its_body_writes():
    def run(n):
        ref = new_ref(onp.zeros(2))
        out = lax.while_loop(lambda i: ref[1] < n, lambda i: (addupdate(ref, 1, 2.0), i + 1)[1], 0)
        return out, ref[...]

    for count, left in ways(run, 5.0):
        assert count == 3 and left.tolist() == [0, 6]


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("outer", [False, True])
def test_a_condition_sees_what_its_body_wrote_under_transformations(jitted, outer):
    """Regression: under vmap, jvp and others the condition read the content before the loop."""
    def doubled(ref, x):
        ref[...] = x
        out = lax.while_loop(lambda i: (ref[...] < 10.0) & (i < 9),
                             lambda i: (set(ref, ..., ref[...] * 2), i + 1)[1], 0)
        return ref[...], out

    way = olympus.jit if jitted else lambda f: f
    own = lambda x: doubled(new_ref(onp.zeros_like(x)), x)
    if outer:
        refs = new_ref(onp.zeros(3)), new_ref(0.0), new_ref(0.0)
        mapped = way(olympus.vmap(doubled))(refs[0], onp.array([1.0, 3.0, 11.0]))
        found = way(lambda a, b, x: olympus.jvp(doubled, (a, x), (b, 1.0)))(*refs[1:], 3.0)
    else:
        mapped = way(olympus.vmap(own))(onp.array([1.0, 3.0, 11.0]))
        found = way(lambda x: olympus.jvp(own, (x,), (1.0,)))(3.0)
    assert [x.tolist() for x in mapped] == [[16, 12, 11], [4, 2, 0]]
    assert found[0] == (12, 2) and found[1][0] == 4


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("checkpoint", [1, 2, "sqrt", 9])
def test_rows_of_a_reference_are_written_once_where_iterations_are_computed_again(
        checkpoint, reverse):
    def total(x, **stretches):
        rows, read = new_ref(onp.arange(14.0).reshape(7, 2) * x), new_ref(onp.arange(7.0) * x)
        outside = new_ref(0.0 * x)

        def body(c, given):
            row, one, k = given
            row[0] = onp.sin(c) * row[1] + one[...]
            outside[...] += row[0] * k
            return c * 0.9 + row[1] * k, row[0] * 2

        c, ys = lax.scan(body, x, (rows, read, onp.arange(7.0)), reverse=reverse, **stretches)
        return c + ys.sum() + (rows[...] ** 2).sum() + outside[...] + read[...].sum()

    for way in (lambda f: f, olympus.value_and_grad, lambda f: olympus.grad(olympus.jit(f))):
        np.testing.assert_allclose(
            way(lambda x: total(x, checkpoint=checkpoint))(0.3), way(total)(0.3), rtol=1e-5)
    ref = new_ref(onp.arange(5.0))
    doubled = lambda c, row: (c * row[...], olympus.ref.set(row, ..., 2 * row[...] + 1))
    for held in ([1, 3, 5, 7, 9], [3, 7, 11, 15, 19]):
        slope = olympus.grad(lambda x: lax.scan(
            doubled, x, ref, reverse=reverse, checkpoint=checkpoint)[0])(2.0)
        np.testing.assert_array_equal(ref[...], held)
    assert slope == 945


def test_rows_of_a_reference_are_scanned():
    rows, out = new_ref(onp.arange(6.0).reshape(3, 2)), new_ref(0.0)

    def body(c, row):
        row[0] = row[1] * 10
        out[...] += c
        return c + 1, row[...].sum()

    for scan in (lax.scan, olympus.jit(lax.scan, static_argnums=0)):
        _, sums = scan(body, 0.0, rows)
        np.testing.assert_array_equal(sums, [11, 33, 55])
        np.testing.assert_array_equal(rows[...], [[10, 1], [30, 3], [50, 5]])
    assert out[...] == 6


def test_mapped_references_and_indices():
    rows = new_ref(onp.zeros((3, 4)))

    def f(row, i, v):
        row[i] = v
        addupdate(row, 0, 1.0)
        return row[...].sum()

    want = np.zeros((3, 4), np.float32)
    for mapped in (olympus.vmap(f), olympus.jit(olympus.vmap(f))):
        mapped(rows, onp.array([1, 2, 3]), onp.arange(3.0))
        want[[0, 1, 2], [1, 2, 3]] = [0, 1, 2]
        want[:, 0] += 1
        np.testing.assert_array_equal(rows[...], want)
    shared = new_ref(onp.arange(4.0))
    np.testing.assert_array_equal(
        olympus.vmap(lambda i: shared[i], in_axes=0)(onp.array([3, 1])), [3, 1])
    np.testing.assert_array_equal(
        olympus.vmap(lambda r, i: r[i], in_axes=(None, 0))(shared, onp.array([3, 1])), [3, 1])
    columns = new_ref(onp.arange(6.0).reshape(2, 3))
    olympus.vmap(lambda r: set(r, 0, 9.0), in_axes=1)(columns)
    np.testing.assert_array_equal(columns[...], [[9, 9, 9], [3, 4, 5]])


def test_references_have_tangents_that_are_references():
    primal, tangent = new_ref(onp.float32(2)), new_ref(onp.float32(3))

    def f(ref):
        ref[...] = onp.sin(ref[...])
        return ref[...] ** 2

    out, t = olympus.jvp(f, (primal,), (tangent,))
    np.testing.assert_allclose(t, 2 * np.sin(2) * np.cos(2) * 3, rtol=1e-5)
    np.testing.assert_allclose((primal[...], tangent[...]), (np.sin(2), 3 * np.cos(2)), rtol=1e-5)


@pytest.mark.parametrize("seed", [3, 17, 25, 44, 62, 71, 96, 107])
def test_generated_programs_agree_with_plain_arrays(seed):
    assert programs.difference(seed, *programs.PAIRS[seed % len(programs.PAIRS)]) < 1e-3


# Options, callbacks, ends ------------------------------------------------------------------------

def test_an_index_outside_is_found_in_a_reference():
    ref = new_ref(X)
    with pytest.raises(olympus.experimental.checkify.OlympusRuntimeError, match="out-of-bounds"):
        olympus.jit(lambda r, i: set(r, i, 1.0), checks={"index"})(ref, 9)
    checked = olympus.experimental.checkify.checkify(
        lambda r: onp.log(r[1]), errors=olympus.experimental.checkify.nan_checks)
    assert "nan generated by primitive: log" in checked(ref)[0].get()
    count = olympus.jit(lambda: addupdate(ref, 0, 1.0), checks={"index"})
    count()
    count()
    assert ref[0] == X[0] + 2


def test_a_nan_that_is_written_is_found_and_the_reference_is_whole():
    ref = new_ref(onp.array([-1.0]))
    with olympus.debug_nans(True):
        olympus.jit(lambda r: set(r, 0, r[0] * 2))(ref)
        with pytest.raises(FloatingPointError):
            olympus.jit(lambda r: set(r, 0, onp.log(r[0])))(ref)
        assert ref[0] == -2


def test_callbacks_get_contents():
    ref = new_ref(X)
    out = olympus.jit(lambda r: olympus.pure_callback(
        lambda x: np.asarray(x) * 2, olympus.ShapeDtypeStruct((4,), "float32"), r[...]))(ref)
    np.testing.assert_array_equal(out, X * 2)


def test_programs_with_references_pass_the_checker():
    with olympus.enable_checks(True):
        for seed in (5, 11):
            assert programs.difference(seed, "jit", "vmap") < 1e-3


def test_an_end_is_an_end():
    for end, text in ((freeze, "freeze"), (free_ref, "free_ref")):
        ref = new_ref(X)
        end(ref)
        for use in (lambda: ref[0], lambda: set(ref, 0, 1.0), lambda: freeze(ref),
                    lambda: olympus.jit(lambda r: r[0])(ref), lambda: ref.at[0][...]):
            with pytest.raises(ValueError, match=f"{text}: .* is used after its end"):
                use()
        assert repr(ref) == "Ref(float32[4], ended)"


def test_empty_references_spaces_and_kinds():
    ref = empty_ref(olympus.ShapeDtypeStruct((2,), "int32"))
    assert isinstance(ref, Ref) and ref[...].tolist() == [0, 0]
    made = new_ref(X, memory_space=olympus.memory.Space.Device, kind="mine", pin=True)
    olympus.jit(lambda r: set(r, 0, 1.0))(made)
    assert made[0] == 1

    def f(x):
        own = empty_ref(olympus.typeof(x))
        own[1:] = x[1:]
        return own[...]

    for found in ways(f, X):
        np.testing.assert_array_equal(found, [0, *X[1:]])
    assert olympus.jit(lambda r: isinstance(r, Ref) and r[0])(made) == 1


def test_a_thousand_writes_trace_in_linear_time():
    """The pass over a program visits each equation once: the nesting of bodies adds nothing."""
    def nest(depth, ref):
        if not depth:
            ref[0] += 1.0
            return
        for _ in range(2):
            lax.scan(lambda c, _: (c, nest(depth - 1, ref)), 0, None, length=1)

    ref = new_ref(onp.zeros(1))
    nest(4, ref)
    assert ref[0] == 16


def test_a_donated_reference_keeps_its_content():
    """Regression: one that was only read was deleted, and one that was written could not be."""
    ref = new_ref(X)
    read = olympus.jit(lambda ref, x: ref[...] + x, donate_argnums=(0, 1))
    np.testing.assert_array_equal(read(ref, onp.ones(4)), X + 1)
    write = olympus.jit(lambda ref: set(ref, 0, 9.0), donate_argnames="ref")
    write(ref=ref)
    write(ref=ref)
    np.testing.assert_array_equal(ref[...], [9.0, *X[1:]])


@pytest.mark.parametrize("reverse", [False, True])
def test_rows_of_a_reference_are_scanned_step_by_step(reverse):
    """Regression: under disable_jit rows of references were refused, as arrays."""
    def run(x):
        ref = new_ref(x)

        def body(before, row):
            row[0] = before
            return row[1], row[...] * 2
        return lax.scan(body, 0.0, ref, reverse=reverse), ref[...]

    x = np.arange(6.0, dtype=np.float32).reshape(3, 2)
    want = x.copy()
    want[:, 0] = [3, 5, 0] if reverse else [0, 1, 3]
    for (last, ys), left in ways(run, x):
        assert last == (1 if reverse else 5)
        np.testing.assert_array_equal(ys, want * 2)
        np.testing.assert_array_equal(left, want)


def test_a_copy_is_another_reference():
    ref = new_ref(X)
    for other in (copy.copy(ref), copy.deepcopy(ref)):
        other[0] = 7.0
        assert (ref[0], other[0], other[1]) == (0.5, 7, -1)


@pytest.mark.parametrize("deed", [lambda ref: ref[0], lambda ref: set(ref, 0, 1.0)],
                         ids=["read", "written"])
def test_a_jitted_function_keeps_no_reference_alive(deed):
    """Regression: the first call's reference lived as long as the function."""
    ref = new_ref(X)
    seen, jitted = weakref.ref(ref), olympus.jit(deed)
    jitted(ref)
    del ref
    gc.collect()
    assert seen() is None


def _looped(f):
    return lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0]


#: by name: a body for a function, and how often it runs there
IN_BODIES = {
    "jit": (olympus.jit, 1), "checkpoint": (olympus.checkpoint, 1), "scan": (_looped, 2),
    "cond": (lambda f: lambda x: lax.cond(x > 0, f, lambda x: x, x), 1),
    "fori": (lambda f: lambda x: lax.fori_loop(0, 2, lambda i, c: f(c), x), 2),
    "scan of checkpoint": (lambda f: _looped(olympus.checkpoint(f)), 2),
    "checkpoint of scan": (lambda f: olympus.checkpoint(_looped(f)), 2),
    "scan of scan": (lambda f: _looped(_looped(f)), 4),
}


def _touched(ref, how, added):
    """A value that is read, or 1; what is written."""
    read = ref[...] if "r" in how else 1.0
    if "w" in how:
        ref[...] = ref[...] * 1.5 + added
    return read


def _with_rules(ref, fun, fwd, bwd, closed_over):
    """A `custom_vjp` whose three functions touch a reference so."""
    call = lambda ref, x: x * 2 + 0 * _touched(ref, fun, 0.5)
    before = lambda ref, x: (x * 2, _touched(ref, fwd, 0.5))
    after = lambda ref, read, ct: ct * (read + 10 * _touched(ref, bwd, 0.25))
    if closed_over:
        found = olympus.custom_vjp(lambda x: call(ref, x))
        found.defvjp(lambda x: before(ref, x), lambda read, ct: (after(ref, read, ct),))
        return found

    def forward(ref, x):
        out, read = before(ref, x)
        return out, (ref, read)

    found = olympus.custom_vjp(call)
    found.defvjp(forward, lambda res, ct: (None, after(*res, ct)))
    return lambda x: found(ref, x)


# A pass forwards, then what follows the body, then a pass backwards: as in Python.
@pytest.mark.slow
@pytest.mark.parametrize("name", IN_BODIES)
@pytest.mark.parametrize("closed_over", [False, True])
def test_rules_of_custom_vjp_touch_references_in_bodies_as_they_do_outside(name, closed_over):
    """Regression: fwd and bwd that read one reference, which the function does not, were refused
    as a leak; bwd read an old content where the function read the reference, and could not write.
    """
    body, count = IN_BODIES[name]
    for fun, fwd, bwd in [("", "r", "r"), ("r", "", "r"), ("r", "r", "w"), ("rw", "rw", "rw"),
                          ("w", "w", "r"), ("", "r", "rw"), ("", "", "rw"), ("w", "rw", "")]:
        cell, reads = [3.0], []
        reads = [_touched(plain, fwd, 0.5) for plain in [_Plain(cell)] * count]
        cell[0] += 1
        want = 1.0
        for read in reversed(reads):
            want *= read + 10 * _touched(_Plain(cell), bwd, 0.25)
        for way in (lambda f: f, olympus.jit):
            ref = new_ref(3.0)

            def after(x, ref=ref):
                out = body(_with_rules(ref, fun, fwd, bwd, closed_over))(x)
                ref[...] += 1.0
                return out

            np.testing.assert_allclose(way(olympus.grad(after))(2.0), want, rtol=1e-5)
            np.testing.assert_allclose(ref[...], cell[0], rtol=1e-6)


@pytest.mark.parametrize("passed", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("body", ["", "jit", "checkpoint", "scan"])
def test_a_rule_calls_its_function_on_a_reference_made_in_the_differentiated_function(
        passed, reverse, body):
    """Regression: in programs such a call did not end but by a RecursionError."""
    def f(x):
        ref = new_ref(2.0)

        def fun(*args):
            ref = args[0] if passed else made
            ref[...] += 1.0
            return args[-1] * ref[...]

        made = ref
        if reverse:
            ruled = olympus.custom_vjp(fun)
            ruled.defvjp(lambda *args: (ruled(*args), made[...]),
                         lambda held, ct: (*[None] * passed, 7.0 * held * ct))
        else:
            ruled = olympus.custom_jvp(fun)
            ruled.defjvp(lambda p, t: (ruled(*p), 7.0 * t[-1] * made[...]))
        return ruled(*[ref] * passed, x), ref[...]

    def both(x):
        if reverse:
            (out, held), slope = olympus.value_and_grad(f, has_aux=True)(x)
        else:
            (out, held), (slope, _) = olympus.jvp(f, (x,), (1.0,))
        return onp.stack([out, held, slope])

    found = IN_BODIES[body][0](lambda x: both(x))(2.0) if body in ("jit", "checkpoint") else (
        both(2.0) if not body else lax.scan(lambda c, _: (c, both(2.0)), 0, None, length=1)[1][0])
    assert found.tolist() == [6, 3, 21]


def test_rules_of_custom_vjp_close_over_a_reference_in_a_shard_map_that_runs_at_once():
    """Regression: in shard_map outside of jit such a rule was refused, though jit took it."""
    ref, mesh, whole = new_ref(3.0), olympus.make_mesh((1,), ("i",)), olympus.P()
    mapped = lambda fun, bwd: olympus.shard_map(
        _with_rules(ref, fun, "r", bwd, True), mesh=mesh, in_specs=whole, out_specs=whole)
    for fun in ("", "r"):
        assert olympus.grad(mapped(fun, "r"))(2.0) == 33.0
    assert olympus.grad(mapped("", "rw"))(2.0) == 33.0
    assert ref[...] == 4.75


class _Plain:
    """Python's own reference."""

    def __init__(self, cell):
        self.cell = cell

    def __getitem__(self, _):
        return self.cell[0]

    def __setitem__(self, _, value):
        self.cell[0] = value


STATE = {"calls": None, "factor": None}     # of rules that read globals


@pytest.mark.parametrize("rules", [olympus.custom_jvp, olympus.custom_vjp])
@pytest.mark.parametrize("touches", ["nothing", "another", "the same"])
def test_a_rule_that_writes_a_reference_writes_it_once_in_every_body(rules, touches):
    """Regression: in a body, what a rule alone wrote was lost, and a rule could not read globals.
    """
    calls, factor = STATE["calls"], STATE["factor"] = new_ref(0), new_ref(3.0)

    def rule(*args):
        STATE["calls"][...] += 1
        f = STATE["factor"][...]
        return (args[0][0] * f, args[1][0] * f) if rules is olympus.custom_jvp else (
            args[0] * f, None)

    @rules
    def fun(x):
        if touches == "the same":
            calls[...] += 0
        return x * (factor[...] if touches == "another" else 3.0)

    if rules is olympus.custom_jvp:
        fun.defjvp(rule)
    else:
        fun.defvjp(rule, lambda _, ct: (ct * 3.0,))
    twice = lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0]
    for body, count in [(lambda f: f, 1), (olympus.jit, 1), (olympus.checkpoint, 1), (twice, 2),
                        (lambda f: lambda x: lax.cond(x > 0, f, lambda x: x, x), 1)]:
        for way in (lambda g: g, olympus.jit):
            calls[...] = 0
            assert way(olympus.grad(body(fun)))(onp.float32(2.0)) == 3 ** count
            assert calls[...] == count


def test_a_write_of_bwd_alone_happens_in_every_body():
    """Regression: it was refused where the function with the rule was called in a body."""
    total = new_ref(0.0)
    fun = olympus.custom_vjp(lambda x: x * 2)
    fun.defvjp(lambda x: (x * 2, None), lambda _, ct: (addupdate(total, (), ct), (2 * ct,))[1])
    for body, want in [(lambda f: f, 1), (olympus.jit, 1), (olympus.checkpoint, 1),
                       (lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=2)[
                           0], 3), (lambda f: lambda x: lax.cond(x > 0, f, lambda x: x, x), 1)]:
        for way in (lambda g: g, olympus.jit):
            total[...] = 0.0
            way(olympus.grad(body(fun)))(3.0)
            assert total[...] == want


def test_a_reducer_that_reads_a_reference_says_to_read_it_before():
    ref = new_ref(2.0)
    with pytest.raises(TypeError, match=r"write x \* ref\[\.\.\.\]"):
        lax.reduce(X, np.float32(0), lambda a, b: a + b * ref, (0,))
    with pytest.raises(TypeError, match=r"closes over the reference Ref\{float32\[\]\}"):
        lax.reduce(X, np.float32(0), lambda a, b: a + b * ref[...], (0,))
