"""Symbols solved for from the shapes of arguments, and the words where shapes do not fit."""

import itertools

import pytest

from olympus import export
from olympus._src.types.dim_equations import solve


def solved(spec, shape, constraints=()):
    """The symbols of a specification, for an argument of a shape."""
    specified = export.symbolic_shape(spec, constraints=constraints)
    return solve([specified], lambda i: f"args[{i}]").check([shape])


@pytest.mark.parametrize("spec, shape, want", [
    ("a + 2*b, a, a + b + c", (8, 2, 9), {"a": 2, "b": 3, "c": 4}),
    ("3*a - 1, b", (8, 5), {"a": 3, "b": 5}),
    ("a, a*b + b", (2, 12), None),      # b is in two terms, and no term is b alone once a is known
    ("max(a, b), a, b", (5, 3, 5), {"a": 3, "b": 5}),
    ("a, floordiv(a, 2)", (7, 3), {"a": 7}),
])
def test_symbols_by_the_sizes_of_arguments(spec, shape, want):
    if want is None:
        with pytest.raises(ValueError, match="Cannot solve"):
            solved(spec, shape)
    else:
        assert solved(spec, shape) == want


@pytest.mark.parametrize("spec, shape, words", [
    ("a + 2*b, a", (2, 2), "Expected value >= 1 for dimension variable 'b'"),
    ("a + 2*b, a", (3, 2), "Division had remainder 1 when computing the value of 'b'"),
    ("a, a + 8", (4, 13), r"size args\[0\].shape\[1\] \(= 13\) and the specification 'a \+ 8' "
     r"\(= 12\)"),
    ("a, c*c", (7, 36), "Cannot solve for values of dimension variables {'c'}"),
])
def test_shapes_that_do_not_fit_are_refused(spec, shape, words):
    with pytest.raises(ValueError, match=words):
        solved(spec, shape)


def test_constraints_are_checked():
    assert solved("a, b", (8, 3), ["mod(a, 4) == 0", "a >= b"]) == {"a": 8, "b": 3}
    with pytest.raises(ValueError, match=r"constraint mod\(a, 4\) == 0.*found 2"):
        solved("a, b", (6, 3), ["mod(a, 4) == 0"])
    with pytest.raises(ValueError, match="constraint a >= b.*found -1"):
        solved("a, b", (2, 3), ["a >= b"])
    assert solved("a, b", (4, 8), ["b == 2*a"]) == {"a": 4}
    assert solved("a", (4,), ["b >= c", "c >= 5"]) == {"a": 4}
    with pytest.raises(ValueError, match="'b' that is not appearing.*constraint a >= b"):
        solved("a", (4,), ["a >= b", "b >= 5"])     # it was traced as if a were 5 or more
    with pytest.raises(ValueError, match="inconsistency"):
        solved("a, b", (4, 9), ["b == 2*a"])


def test_sizes_may_be_symbols_of_another_scope():
    c, = export.symbolic_shape("c")
    assert solved("a + 2, 3*b", (c + 4, 6 * c)) == {"a": c + 2, "b": 2 * c}
    for spec, shape in (("a, a", (4, c)), ("5*a", (c,)), ("a, a + b", (c, c)), ("a + 9", (c,))):
        with pytest.raises(ValueError, match="do not match"):
            solved(spec, shape)


def test_every_small_shape_is_solved_or_refused_rightly():
    for m, n in itertools.product(range(1, 10), repeat=2):
        want = [(a, b) for a in range(1, 10) for b in range(1, 10)
                if (2 * a + b, 3 * a) == (m, n)]
        try:
            found = [tuple(solved("2*a + b, 3*a", (m, n))[s] for s in "ab")]
        except ValueError:
            found = []
        assert found == want
