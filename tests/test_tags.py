"""Tags of types: shardings, varying axes and memory spaces on their way through operations."""


import copy
import pickle

import numpy as np
import pytest
import tag_cases

import olympus
import olympus.numpy as onp
from olympus import lax
from olympus.core import ShapedArray, check_olympuspr
from olympus.errors import ShardingTypeError
from olympus.extend.core import Primitive
from olympus.memory import Space
from olympus.sharding import (
    AbstractMesh, AxisType, ManualAxisType, Mesh, NamedSharding, PartitionSpec,
)

P = PartitionSpec
MESH = AbstractMesh((4, 2), ("x", "y"), AxisType.Explicit)
DEVICE = olympus.devices()[0]
ROWS = tag_cases.rows(lax) + [(name, make(lax), *rest) for name, make, *rest in tag_cases.BEYOND]


def aval(shape, entries, dtype="float32", mesh=MESH, **tags):
    return ShapedArray(shape, dtype, sharding=NamedSharding(mesh, P(*entries)), **tags)


@pytest.mark.parametrize(("fun", "operands", "want"), [pytest.param(*row[1:], id=row[0])
                                                       for row in ROWS])
def test_specifications_are_those_of_explicit_mode(fun, operands, want):
    avals = [aval(*operand) for operand in operands]
    if want is tag_cases.REFUSED:
        with pytest.raises(ShardingTypeError, match="operands .*reshard"):
            olympus.make_olympuspr(fun)(*avals)
        return
    program = olympus.make_olympuspr(fun)(*avals)
    assert [a.sharding for a in program.out_avals] == [NamedSharding(MESH, P(*e)) for e in want]
    check_olympuspr(program)
    plain = olympus.make_olympuspr(fun)(*[ShapedArray(a.shape, a.dtype) for a in avals])
    assert [a.update(sharding=None) for a in program.out_avals] == plain.out_avals
    assert all(not a.tagged for a in plain.out_avals)


def outs(fun, *avals):
    return olympus.make_olympuspr(fun)(*avals).out_avals


def specs(fun, *avals):
    return [a.sharding.spec for a in outs(fun, *avals)]


def test_transformations_carry_specifications():
    a = aval((8, 4), ("x", "y"))
    assert specs(olympus.vmap(onp.sin), a) == [P("x", "y")]
    assert specs(olympus.vmap(lambda r: r.sum(), in_axes=1, out_axes=0), a) == [P("y")]
    assert specs(olympus.jit(lambda a: a.T), a) == [P("y", "x")]
    assert specs(olympus.checkpoint(lambda a: a * 2), a) == [P("x", "y")]
    assert specs(olympus.grad(lambda a: (onp.sin(a) * a).sum()), a) == [P("x", "y")]
    assert specs(lambda a: lax.map(onp.sin, a), aval((3, 8), (None, "x"))) == [P(None, "x")]


X, Y, XY, N = "x", "y", ("x", "y"), None
PLACES = np.array([0, 2, 1])
SETTLED = [      # name, function, operands, the specification of the result; as JAX 0.10.2's
    ("dot", lambda a, b: onp.dot(a, b, out_sharding=P(X, Y)), [((8, 4), (N, X)), ((4, 8), (X, N))],
     (X, Y)),
    ("einsum", lambda a, b: onp.einsum("ij,kj->ik", a, b, out_sharding=P(Y)),
     [((8, 4), (X, Y)), ((8, 4), (X, Y))], (Y, N)),
    ("reshape", lambda a: onp.reshape(a, 32, out_sharding=P(XY)), [((8, 4), (N, Y))], (XY,)),
    ("lax.reshape", lambda a: lax.reshape(a, (32,), out_sharding=P()), [((8, 4), (N, Y))], (N,)),
    ("ravel", lambda a: onp.ravel(a, out_sharding=P(X)), [((8, 4), (Y, X))], (X,)),
    ("Fortran", lambda a: onp.reshape(a, (4, 8), order="F", out_sharding=P(X)),
     [((8, 4), (N, Y))], (X, N)),
    ("get", lambda a: a.at[PLACES].get(out_sharding=P(N, X)), [((8, 4), (X, Y))], (N, X)),
    ("get one", lambda a: a.at[0].get(out_sharding=P(X)), [((8, 4), (X, N))], (X,)),
    ("set", lambda a: a.at[PLACES].set(1.0, out_sharding=P(Y)), [((8, 4), (X, N))], (Y, N)),
    ("add at", lambda a: a.at[0].add(1.0, out_sharding=P(X)), [((8, 4), (X, Y))], (X, N)),
    ("mask", lambda a: a.at[a > 0].set(0.0, out_sharding=P(X)), [((8, 4), (X, N))], (X, N)),
    ("conv", lambda a, k: lax.conv_general_dilated(a, k, (1,), "SAME", dimension_numbers=(
        "NWC", "WIO", "NWC"), out_sharding=P(X)), [((8, 6, 4), (N, N, Y)), ((3, 4, 4), (N, N, X))],
     (X, N, N)),
    ("set whole", lambda a: a.at[0].set(0.0), [((8, 4), (N, X))], (N, X)),
    ("set whole columns", lambda a, b: a.at[:, 0].set(b), [((8, 4), (XY, N)), ((8,), (N,))],
     (XY, N)),
    ("diag", onp.diag, [((8,), (X,))], (X, N)),
    ("fft", onp.fft.fft, [((8, 4), (X, Y))], (X, Y)),
    ("zeros", lambda: onp.zeros((8, 2), out_sharding=P(X)), [], (X, N)),
    ("arange", lambda: onp.arange(8, out_sharding=P(X)), [], (X,)),
    ("draw", lambda: olympus.random.normal(olympus.random.key(0), (8,), out_sharding=P(X)), [],
     (X,)),
    ("one_hot", lambda a: olympus.nn.one_hot(a, 4, out_sharding=P(X, Y)), [((8,), (N,), "int32")],
     (X, Y)),
]


@pytest.mark.parametrize(("fun", "operands", "want"), [pytest.param(*row[1:], id=row[0])
                                                       for row in SETTLED])
def test_out_sharding_settles_what_types_leave_open(fun, operands, want):
    """Under an abstract mesh: no device is needed to trace; reverse mode goes back."""
    with olympus.sharding.use_abstract_mesh(MESH):
        avals = [aval(*operand) for operand in operands]
        assert specs(fun, *avals) == [P(*want)]
        if all(a.dtype == np.float32 for a in avals) and avals:
            grads = outs(olympus.grad(lambda *xs: onp.real(fun(*xs)).sum(),
                                      tuple(range(len(avals)))), *avals)
            assert grads == avals


def test_cotangents_are_cut_as_their_values():
    a, b = aval((8, 4), ("x", None)), aval((8, 4), (None, "y"))
    assert outs(olympus.grad(lambda a, b: (a * b + a).sum(), (0, 1)), a, b) == [a, b]
    assert outs(olympus.grad(lambda a, b: lax.scan(
        lambda c, _: (c * b + a, None), a * b, None, length=3)[0].sum(), (0, 1)), a, b) == [a, b]
    assert outs(olympus.grad(lambda a: lax.cond(
        a.sum() > 0, lambda: a * 2, lambda: onp.zeros((8, 4))).sum()), b) == [b]
    with pytest.raises(ValueError, match=r"scan: xs is float32\[8@x,4\], whose leading axis"):
        outs(lambda a: lax.map(onp.sin, a), a)


def test_keys_and_effects_take_operands_that_are_cut():
    words = aval((8, 2), ("x", None), "uint32")

    def draw(words):
        keys = olympus.random.wrap_key_data(words)
        olympus.debug.print("{}", words)
        return olympus.vmap(lambda k: olympus.random.bits(k, (3,)))(keys)

    assert specs(draw, words) == [P("x", None)]
    assert specs(lambda w: olympus.random.key_data(olympus.random.wrap_key_data(w)), words) == [
        P("x", None)]
    with pytest.raises(ShardingTypeError, match="needs it whole"):
        outs(olympus.random.wrap_key_data, aval((8, 2), (None, "y"), "uint32"))


AUTO = AbstractMesh((4, 2), ("x", "y"))


def test_types_of_arrays_that_xla_spreads_name_the_mesh_alone():
    plain, spread = ShapedArray((8, 4), "float32"), aval((8, 4), ("x", "y"), mesh=AUTO)
    assert spread is aval((8, 4), (), mesh=AUTO) != plain and str(spread) == str(plain)
    assert spread.sharding == NamedSharding(AUTO, P(None, None))
    assert plain.sharding == NamedSharding(AbstractMesh((), ()), P(None, None))
    mesh = Mesh([[DEVICE]], ("x", "y"))
    x = olympus.device_put(np.ones((8, 4), "f"), NamedSharding(mesh, P("x")))
    assert x.aval.sharding == NamedSharding(mesh.abstract_mesh, P(None, None))
    assert olympus.device_put(x, DEVICE).aval is plain is olympus.typeof(np.ones((8, 4), "f"))
    half = AbstractMesh((4, 2), ("x", "y"), (AxisType.Explicit, AxisType.Auto))
    mixed = aval((8, 4), ("x", "y"), mesh=half)
    assert mixed.sharding == NamedSharding(half, P("x", None)) and str(mixed) == "float32[8@x,4]"
    assert specs(lax.neg, mixed) == [P("x", None)]


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_what_xla_spreads_is_not_refused(row):
    """Along Auto axes: the shapes of a program without meshes, and a mesh on each result."""
    _, fun, operands, _ = row
    avals = [aval(*operand, mesh=AUTO) for operand in operands]
    program = olympus.make_olympuspr(fun)(*avals)
    check_olympuspr(program)
    assert {a.sharding for a in program.out_avals} == {
        NamedSharding(AUTO, P(*[None] * a.ndim)) for a in program.out_avals}
    plain = olympus.make_olympuspr(fun)(*[ShapedArray(a.shape, a.dtype) for a in avals])
    assert str(program) == str(plain)


def test_meshes_that_meet():
    """JAX 0.10.2: an operand without a mesh has no say, and XLA's choice of two is not foreseen."""
    spread, plain = aval((8, 4), (), mesh=AUTO), ShapedArray((8, 4), "float32")
    other = aval((8, 4), (), mesh=AbstractMesh((8,), "a"))
    assert outs(lax.add, spread, plain) == outs(lax.add, plain, spread) == [spread]
    assert outs(lax.add, spread, other) == [plain]
    constraint = NamedSharding(Mesh([[DEVICE]], ("x", "y")), P("x"))
    (found,) = outs(lambda x: lax.with_sharding_constraint(x, constraint), plain)
    assert found.sharding == NamedSharding(constraint.mesh.abstract_mesh, P(None, None))
    sum_of = lambda x: lax.fori_loop(0, 3, lambda i, c: c + x, onp.zeros((8, 4)))
    assert olympus.make_olympuspr(sum_of)(spread).out_avals[0].shape == (8, 4)
    check_olympuspr(olympus.make_olympuspr(olympus.grad(lambda x: sum_of(x).sum()))(spread))


def test_types_are_printed_and_pickled_with_their_tags():
    varying = ManualAxisType(varying={"i"})
    tagged = aval((8, 4, 2), (("x", "y"), None), manual_axis_type=varying,
                  memory_space=Space.Host)
    assert str(tagged) == "float32<host>[8@(x,y),4,2]{V:i}"
    assert str(tagged.update(sharding=None, vma=frozenset("ij"))) == "float32<host>[8,4,2]{V:(i,j)}"
    assert pickle.loads(pickle.dumps(tagged)) is tagged is copy.deepcopy(tagged)
    assert tagged.update(dtype=np.dtype("int32")).sharding == tagged.sharding
    assert not tagged.update(shape=(8, 4)).sharded
    assert tagged.with_axis(1, 3).sharding.spec == P(("x", "y"), None, None, None)
    assert tagged.without_axis(0).sharding.spec == P(None, None)
    assert str(ShapedArray((2,), "float32")) == "float32[2]"
    assert olympus.ShapeDtypeStruct((8,), "float32", sharding=NamedSharding(MESH, P("x"))
                                    ).aval == aval((8,), ("x",))


def test_what_a_type_cannot_say():
    with pytest.raises(ValueError, match="at most 1 entries"):
        aval((8,), ("x", "y"))
    other = AbstractMesh((2, 4), ("x", "y"), AxisType.Explicit)
    with pytest.raises(ShardingTypeError, match="one mesh is required"):
        outs(lax.add, aval((8,), ("x",)), aval((8,), ("x",), mesh=other))
    ruleless = Primitive("ruleless")
    ruleless.def_abstract_eval(lambda x: x)
    for entry in None, "x":
        assert specs(ruleless.bind, aval((8,), (entry,))) == [P(entry)]
    ruleless.def_abstract_eval(lambda x: ShapedArray((2, *x.shape), x.dtype))
    assert specs(ruleless.bind, aval((8,), ("x",))) == [P(None, None)]
    with pytest.raises(ShardingTypeError, match="does not say how its result is spread"):
        outs(lambda x: olympus.pure_callback(lambda x: x, x, x), aval((8,), ("x",)))


def test_results_are_in_the_memory_of_their_operands():
    host = ShapedArray((4,), "float32", memory_space=Space.Host)
    assert host.memory_space is Space.Host and ShapedArray((4,), "float32",
                                                           memory_space=Space.Device) != host

    def spaces(fun):
        return [a.memory_space for a in outs(fun, host)]

    assert spaces(lambda x: onp.sin(x) * 2) == [Space.Host]
    assert spaces(lambda x: lax.scan(lambda c, y: (c, y * 2), 0.0, x[None])[1]) == [Space.Host]
    assert spaces(lambda x: lax.scan(lambda c, y: (c, y * 2), 0.0, x)[1]) == [Space.Device]
    assert spaces(lambda x: olympus.device_put(x, Space.Device) + 1) == [Space.Device]


def test_names_of_a_set_are_told_in_one_order():
    """They came in the order of the set, which is another in each process."""
    names = "fdbgaceh"
    spec = P(None, unreduced=set(names))
    listed = ", ".join(map(repr, sorted(names)))
    assert repr(spec) == f"P(None, unreduced={{{listed}}})"
    with pytest.raises(ValueError, match=f"unreduced {{{listed}}}"):
        P("a", unreduced=set(names))
    mesh = AbstractMesh((1,) * 8, tuple(names), axis_types=(AxisType.Explicit,) * 8)
    with pytest.raises(ShardingTypeError, match=f"unreduced along {listed}, and"):
        olympus.eval_shape(lax.sin, olympus.ShapeDtypeStruct(
            (2,), "float32", sharding=NamedSharding(mesh, spec)))
