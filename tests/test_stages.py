"""What the stages tell of a program beyond the AOT document: layouts, shardings, types."""

import pytest

import olympus
import olympus.numpy as onp
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
    (lambda: Format(Layout((0,))), ValueError, "given without a sharding; .*pass the sharding"),
    (lambda: Layout((0,)).check_compatible_aval((2, 3)), ValueError,
     r"Layout: major_to_minor=\(0,\) and shape \(2, 3\) given; one entry per axis"),
])
def test_layouts_refuse(make, error, message):
    with pytest.raises(error, match=message):
        make()
