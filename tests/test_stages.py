"""What the stages tell of a program beyond the AOT document: layouts, shardings, types."""

import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus._src.base import lib
from olympus._src.runtime import compile
from olympus.experimental.layout import Format, Layout

X, Y = onp.ones((2, 3)), onp.ones((3, 2))


def compiled():
    return olympus.jit(lambda x, y, unused: {"xy": x @ y, "y": y}).lower(X, y=Y, unused=1).compile()


def test_formats_have_the_trees_of_arguments_and_results():
    c = compiled()
    rows = Format(Layout((0, 1), ()), X.sharding)
    assert c.input_formats == ((rows,), {"y": rows, "unused": Format()})
    assert c.output_formats == {"xy": rows, "y": rows}
    assert c.input_formats[0][0].layout.major_to_minor == (0, 1)


def test_shardings_have_the_trees_of_arguments_and_results():
    c = compiled()
    assert c.input_shardings == ((X.sharding,), {"y": X.sharding, "unused": None})
    assert c.output_shardings == {"xy": X.sharding, "y": X.sharding}
    assert c.out_info["xy"] == olympus.ShapeDtypeStruct((2, 2), "float32", sharding=X.sharding)
    assert c.out_avals["y"] is Y.aval


def test_formats_of_keys_and_scalars():
    c = olympus.jit(lambda key, x: (key, x)).lower(olympus.random.key(0), 1.0).compile()
    assert [f.layout.major_to_minor for f in c.output_formats] == [(0,), ()]


def test_traced_has_only_array_types():
    traced = olympus.jit(lambda x: x).trace(X)
    assert traced.loolympus.olympuspr is traced.olympuspr
    assert traced.out_avals == X.aval and traced.effects == frozenset()


def test_layouts_are_values():
    assert Layout((1, 0)) == Layout((1, 0)) != Layout((0, 1))
    assert hash(Layout((1, 0))) == hash(Layout((1, 0)))
    assert Layout((1, 0)).update(tiling=((2,),)).tiling == ((2,),)
    assert Layout((1, 0)).check_compatible_aval((2, 3)) is None
    assert repr(Layout.AUTO) == "AUTO" and Format(Layout.AUTO).layout is Layout.AUTO
    text = "Layout(major_to_minor=(1, 0), tiling=None, sub_byte_element_size_in_bits=0)"
    assert repr(Layout((1, 0))) == text
    assert repr(Format(Layout((1, 0)), X.sharding)).startswith(f"Format(layout={text}, sharding=")
    assert len({Format(), Format(None), Format(Layout((1, 0)), X.sharding)}) == 2


@pytest.mark.parametrize(("make", "error", "message"), [
    (lambda: Format(1), TypeError, "Format: layout 1 of type int given; a Layout"),
    (lambda: Format(None, 3), TypeError, "Format: sharding 3 of type int given; a sharding"),
    (lambda: Format(Layout((0,))), ValueError, "Sharding has to be concrete .*pass the sharding"),
    (lambda: Layout((0,)).check_compatible_aval((2, 3)), ValueError,
     r"major_to_minor=\(0,\) and shape=\(2, 3\) given; give one entry per axis"),
])
def test_layouts_refuse(make, error, message):
    with pytest.raises(error, match=message):
        make()


# Costs by line, compiler options, and what is lowered once -------------------------------------

def test_costs_are_told_by_the_lines_of_the_source():
    def f(x):
        y = x @ x
        return onp.sin(y)

    first = f.__code__.co_firstlineno
    x = onp.ones((8, 8))
    lowered = olympus.jit(f).lower(x)
    table = lowered.cost_table()
    assert [(r.line - first, r.function.split(".")[-1], r.text) for r in table] == [
        (1, "f", "y = x @ x"), (2, "f", "return onp.sin(y)")]
    assert (table[0].flops, table[0].bytes_accessed) == (2 * 8 ** 3, 3 * 8 * 8 * 4)
    assert (table[1].flops, table[1].transcendentals) == (0, 64)
    assert sum(r.flops for r in table) == lowered.cost_analysis()["flops"]
    assert lowered.compile().cost_table() == table
    assert str(table).splitlines()[1].split()[:2] == ["1.02k", "100.0"]


def test_a_defect_of_a_lowering_rule_is_raised_where_costs_are_asked_for(monkeypatch):
    """Whatever went wrong counted as nothing."""
    lowered = olympus.jit(lambda x: olympus.lax.tanh(x) * 3).lower(onp.ones(5))

    def broken(b, *xs, **params):
        raise KeyError("a defect")

    monkeypatch.setattr(olympus.lax.tanh_p, "lower", broken)
    with pytest.raises(KeyError, match="a defect"):
        lowered.cost_table()


def test_a_transform_over_several_axes_costs_5_n_log_n():
    """XLA's estimate has the product of the axes' logarithms, 14 times as many for 512 x 512."""
    def flops(fun, dtype):
        x = olympus.ShapeDtypeStruct((3, 512, 512), dtype)
        return olympus.jit(fun).lower(x).cost_table()[0].flops

    wanted = 5 * 3 * 512 * 512 * 18
    assert flops(onp.fft.fft2, "complex64") == wanted
    assert flops(onp.fft.rfft2, "float32") == wanted / 2


def test_costs_of_loops_branches_and_calls():
    x = onp.ones((8, 8))
    dot = 2 * 8 ** 3

    def flops(fun):
        return sum(r.flops for r in olympus.jit(fun).lower(x).cost_table())

    inner = olympus.jit(lambda x: x @ x)
    assert flops(lambda x: inner(inner(x))) == 2 * dot
    assert flops(lambda x: olympus.lax.scan(lambda c, _: (c @ c, None), x, None, length=5)[0]
                 ) == 5 * dot
    assert flops(lambda x: olympus.lax.cond(True, lambda y: y @ y @ y, lambda y: y @ y, x)
                 ) == 2 * dot
    assert flops(lambda x: olympus.checkpoint(inner)(x)) == dot
    assert flops(lambda x: olympus.debug.print("{}", x) or x) == 0
    # The matrix and the transposed solver are programs of derivatives.
    assert flops(lambda b: olympus.lax.custom_linear_solve(
        lambda y: x @ y, b, lambda _, b: x @ b, symmetric=True)) == dot
    assert flops(lambda x: x.at[np.array([0, 1])].add(1.0)) >= 16


@pytest.mark.parametrize(("options", "words"), [
    ({"xla_cpu_enable_fast_mth": True}, "near names: xla_cpu_enable_fast_math"),
    ({"optimisation_level": 1}, "near names: optimization_level"),
    ({"zzz": True}, "No such compile option: 'zzz'"),
    ({"": True}, "No such compile option: ''"),
    ({"xla_cpu_enable_fast_math": "yes"}, "'yes' is not a valid bool value"),
    ({"xla_backend_optimization_level": 3.5}, "not a valid int32 value"),
], ids=["spelling", "build", "nothing near", "empty", "bool", "int"])
def test_a_wrong_compiler_option_is_told_with_what_is_near(options, words):
    lowered = olympus.jit(lambda x: x + 1).lower(1.0)
    with pytest.raises(ValueError, match="compile: got compiler option") as error:
        lowered.compile(options)
    assert words in " ".join(str(error.value).split())
    assert isinstance(error.value, olympus.errors.OlympusRuntimeError)


@pytest.mark.parametrize("options", [
    {3: 4}, {"xla_cpu_enable_fast_math": None}, {"xla_dump_to": []}], ids=["name", "none", "list"])
def test_a_compiler_option_of_a_wrong_type_is_told(options):
    with pytest.raises(TypeError, match="a name and a string, bool, int or float are required"):
        olympus.jit(lambda x: x + 1).lower(1.0).compile(options)


def test_options_of_the_build_are_taken():
    levels = {"optimization_level": 1, "memory_fitting_level": 1}
    assert int(olympus.jit(lambda x: x + 1, compiler_options=levels)(2)) == 3
    efforts = {"exec_time_optimization_effort": 0.5, "memory_fitting_effort": 0.5}
    f = olympus.jit(lambda x: x + 2, compiler_options=efforts)
    if tuple(map(int, lib.jaxlib_version.split(".")[:2])) < (0, 11):
        assert int(f(2)) == 4
    else:       # which has them no more
        with pytest.raises(ValueError, match="_effort'; the names must be flags"):
            f(2)


def test_options_of_the_build_are_given_to_the_outermost_program():
    inner = olympus.jit(lambda x: x + 1, compiler_options={"xla_embed_ir_in_executable": True})
    assert olympus.vmap(inner)(np.ones(1)) == 2
    for outer in (olympus.jit(inner), olympus.jit(olympus.vmap(inner)), lambda x: olympus.lax.map(
            inner, x)):
        with pytest.raises(ValueError, match="can only be passed to top-level `olympus.jit`"):
            outer(np.ones(1))


def test_a_call_finds_what_its_stages_compiled_without_lowering_again(clear_caches, monkeypatch):
    def f(x):
        return onp.sin(x) * 3

    olympus.jit(f).lower(1.0).compile()
    monkeypatch.setattr(compile, "lower_program", None)
    np.testing.assert_allclose(olympus.jit(f)(1.0), 3 * np.sin(np.float32(1)), rtol=1e-6)


def test_the_module_of_hlo_is_xlas_computation():
    found = olympus.jit(lambda x: x + 1).lower(1.0).compiler_ir("hlo")
    assert "add" in found.as_hlo_text()
    assert found.as_serialized_hlo_module_proto()
