"""Symbolic dimensions: text, arithmetic, decisions, against evaluation over small ranges."""

import itertools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import olympus
import olympus.numpy as onp
from olympus import export
from olympus._src.types.shape import maximum, minimum
from olympus._src.types.symbolic import evaluate
from olympus.errors import InconclusiveDimensionOperation

a, b = export.symbolic_shape("a, b")
EXTREMES = {"max": max, "min": min}


@pytest.mark.parametrize(("text", "printed"), [
    ("2*b*a", "2*a*b"), ("-2 * b * a^2 + b^2", "- 2*a^2*b + b^2"),
    ("-2 * a^2 * b + -1 *b^2*a", "- a*b^2 - 2*a^2*b"), ("a - b", "- b + a"), ("- a", "- a"),
    ("a + 1 ,", "a + 1"), ("+ 2", "2"), ("3 * a * mod(a + 2, b + 2)", "3*a*mod(a + 2, b + 2)"),
    ("3 * floordiv(a + 2, b + 2) * 2", "6*floordiv(a + 2, b + 2)"),
    ("non_negative(a - 2)", "max(a - 2, 0)"), ("max(1, a - 2)", "max(1, a - 2)"),
    ("a*b + a^2 + b + a", "a*b + a^2 + b + a"), ("mod(b, -2)", "mod(b, - 2)"),
    ("mod(a, 4) + floordiv(a, 4) + a", "mod(a, 4) + floordiv(a, 4) + a"),
])
def test_text_and_back(text: str, printed: str) -> None:
    (d,) = export.symbolic_shape(text)
    assert str(d) == printed
    scope = export.SymbolicScope() if isinstance(d, int) else d.scope
    assert export.symbolic_shape(printed, scope=scope) == (d,)


@pytest.mark.parametrize(("text", "like", "shape"), [
    ("", (), ()), ("()", (), ()), (None, (2, 3), (2, 3)), ("2, 3,", (2, 3), (2, 3)),
    ("2, _", (2, 3), (2, 3)), ("2, ...", (2,), (2,)), (" ( 2 , 3 ) ", None, (2, 3)),
    ("(a, ...)", (None, 3), (a, 3)), ("a, b", None, (a, b)),
])
def test_placeholders(text: str, like: Any, shape: tuple) -> None:
    assert export.symbolic_shape(text, like=like, scope=a.scope) == shape


@pytest.mark.parametrize(("text", "why"), [
    ("b^99999999", "power above 100"), ("9^99999999", "power above 100"),
    ("b^" + "9" * 5000, "64 bits"), ("1" * 5000, "64 bits"), ("9^100", "64 bits"),
    ("*".join(["b^100"] * 1500), "product of more than 100"), ("2^60*2^60", "64 bits"),
    ("(" * 50_000 + "b" + ")" * 50_000, r"10000\d characters"),
    ("(" * 40 + "b" + ")" * 40, "more than 32 parentheses"),
    ("max(" * 40 + "b" + ", 2)" * 40, "more than 32 parentheses")])
def test_forged_sizes_are_refused_and_not_computed(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        export.symbolic_shape(text)
    with pytest.raises(ValueError, match=why):
        export.SymbolicScope([f"a >= {text}"])


def test_sizes_within_the_bounds_are_read() -> None:
    assert str(export.symbolic_shape("b^100, 9223372036854775807")) == f"(b^100, {2**63 - 1})"
    deep, = export.symbolic_shape("mod(" * 30 + "b" + ", 7)" * 30)
    assert str(deep).count("mod") == 30
    with pytest.raises(ValueError, match="101 constraints given; at most 100"):
        export.SymbolicScope(["a >= 2"] * 101)
    with pytest.raises(ValueError, match="power of at most 100"):
        deep ** 10**9


@pytest.mark.parametrize(("text", "like", "why"), [
    ("2.5", None, ""), ("a + a a", None, ""), ("a ^ a", None, ""), ("a; a", None, ""),
    (")(", None, ""), ("2a", None, ""), ("'a'", None, ""), ("mod(a)", None, ""),
    ("floordiv(a, b, c)", None, ""), ("_", None, "no 'like' shape"), ("3", (4,), "different size"),
    ("b, c, _", (4, 6), "parsed 2 already and 'like' shape has only 2"),
])
def test_text_that_is_no_shape(text: str, like: Any, why: str) -> None:
    with pytest.raises(ValueError, match=f"syntax error in symbolic shape .*{why}"):
        export.symbolic_shape(text, like=like)


def test_specs_of_arguments() -> None:
    x = onp.zeros((2, 3))
    specs = export.symbolic_args_specs(({"x": x}, [x, 1]), ({"x": "b, _"}, ["2, b", None]))
    assert specs[0]["x"].shape[0] == specs[1][0].shape[1]
    assert [s.shape[-1:] for s in specs[1]] == [(specs[0]["x"].shape[0],), ()]
    assert specs[1][1].dtype == np.int32
    with pytest.raises(ValueError, match="different"):
        export.symbolic_args_specs((x,), ("3, _",))


INT_RESULTS = [(lambda: a + 2 - a, 2), (lambda: a * 2 // a, 2), (lambda: (4 * a) * 0, 0),
               (lambda: (3 * a + 5) % 3, 2), (lambda: a ** 0, 1)]


@pytest.mark.parametrize(("compute", "number"), INT_RESULTS)
def test_constants_are_ints(compute: Callable, number: int) -> None:
    assert type(compute()) is int
    assert compute() == number


DIVISIONS = [
    (3 * a + 5, 3, a + 1, 2), (3 * a - 2, 3, a - 1, 1), (a * a - b * b, a + b, a - b, 0),
    (3 * a * a * b + 2 * b * b * a, a * b, 3 * a + 2 * b, 0), (256 * a * b, 32, 8 * a * b, 0),
]


@pytest.mark.parametrize(("x", "y", "quotient", "remainder"), DIVISIONS)
def test_exact_division(x: Any, y: Any, quotient: Any, remainder: Any) -> None:
    assert divmod(x, y) == (quotient, remainder)


def test_what_an_int_or_an_array_makes_of_a_dimension() -> None:
    assert a * np.int32(2) == 2 * a == np.int64(2) * a
    assert {a, a + 0, b} == {a, b}
    assert a != 3
    with pytest.raises(InconclusiveDimensionOperation, match="constant"):
        int(a)
    with pytest.raises(ValueError, match="negative powers"):
        a ** -1
    assert olympus.eval_shape(lambda: onp.sin(a) + a / 2 + a * np.ones(3)).shape == (3,)
    assert olympus.eval_shape(lambda: onp.array(2 * a)).weak_type


# Polynomials of two variables and the operations; both sides as functions of the variables.
LEAVES = st.sampled_from([a, b, a, b, 1, 2, 3, -1, -4, 7])
TREES = st.recursive(LEAVES, lambda inner: st.tuples(
    st.sampled_from([operator.add, operator.sub, operator.mul, "max", "min", "//", "%"]),
    inner, inner), max_leaves=6)
DIVISORS = {"//": operator.floordiv, "%": operator.mod}


def built(tree: Any, values: dict[str, int] | None) -> Any:
    """The dimension of a tree; with values, the number that Python makes of it."""
    if not isinstance(tree, tuple):
        return tree if values is None else evaluate(tree, values, EXTREMES)
    name, x, y = tree[0], built(tree[1], values), built(tree[2], values)
    if name in EXTREMES:
        return {"max": maximum, "min": minimum}[name](x, y)
    if name in DIVISORS:
        return DIVISORS[name](x, maximum(y, 1))
    return name(x, y)


@settings(max_examples=150, deadline=None)
@given(TREES, TREES)
def test_arithmetic_and_bounds_are_those_of_numbers(tree: Any, other: Any) -> None:
    x, y = built(tree, None), built(other, None)
    low, high = export.symbolic_dim_bounds(x)
    try:
        larger = x >= y
    except InconclusiveDimensionOperation:
        larger = None
    for p, q in itertools.product(range(1, 7), repeat=2):
        values = {"a": p, "b": q}
        number = evaluate(x, values, EXTREMES)
        assert number == built(tree, values)
        assert low <= number <= high
        if larger is not None:
            assert larger == (number >= built(other, values))


CONSTRAINTS = ["a >= 3", "b <= 4", "a >= b", "a + b >= 6", "2*a <= 3*b + 1", "mod(a, 2) == 0",
               "max(a, b) == 5", "a == b + 1", "floordiv(a, 2) >= 2", "min(a, b) <= 2"]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(CONSTRAINTS), max_size=3, unique=True), st.data())
def test_what_constraints_imply_holds_where_they_do(texts: list[str], data: Any) -> None:
    allowed = [(p, q) for p, q in itertools.product(range(1, 12), repeat=2)
               if all(holds(text, p, q) for text in texts)]
    try:
        p, q = export.symbolic_shape("a, b", constraints=texts)
    except ValueError:      # cannot hold; or one more rule for the same left side
        return
    tree = data.draw(TREES)
    x = built(substituted(tree, p, q), None)
    low, high = export.symbolic_dim_bounds(x)
    for values in allowed:
        assert low <= built(tree, dict(zip("ab", values, strict=True))) <= high


def test_bounds_of_what_is_no_dimension() -> None:
    assert export.symbolic_dim_bounds(np.int32(3)) == (3, 3)
    assert export.symbolic_dim_bounds(a - b) == (-math.inf, math.inf)
    with pytest.raises(TypeError, match="'a' given; a symbolic dimension or an int"):
        export.symbolic_dim_bounds("a")


def substituted(tree: Any, p: Any, q: Any) -> Any:
    if isinstance(tree, tuple):
        return (tree[0], *[substituted(x, p, q) for x in tree[1:]])
    return p if tree is a else q if tree is b else tree


def holds(text: str, p: int, q: int) -> bool:
    functions = {**EXTREMES, "mod": operator.mod, "floordiv": operator.floordiv}
    return eval(text, functions, {"a": p, "b": q})


@pytest.mark.parametrize(("texts", "compared"), [
    (["a >= 4", "3 >= b"], lambda a, b: a >= b), (["a >= 4"], lambda a, b: maximum(a, 2) == a),
    (["a + 2 <= b", "b <= a + 5"], lambda a, b: b - a <= 5), ([], lambda a, b: -2 * (-b // 2) >= b),
    (["2*a >= 5", "3*a <= 10"], lambda a, b: 5 * a - 2 == 13), ([], lambda a, b: a - a // 2 >= 1),
    (["mod(a, 8) == 0"], lambda a, b: 8 * (a // 8) == a),
    (["mod(a, 8) == 0"], lambda a, b: a % 4 == 0 and (6 * a + 3) % 4 == 3 and 2 * (a // 2) == a),
    (["b == a + 1"], lambda a, b: b > a),
    (["max(a, b) == 5", "min(a, b) == 3"], lambda a, b: 3 <= a <= 5),
    ([], lambda a, b: maximum(minimum(a, b + 10), b) <= b + 10),
])
def test_decided(texts: list[str], compared: Callable) -> None:
    p, q = export.symbolic_shape("a, b", constraints=texts)
    assert compared(p, q) or (isinstance(p, int) or p.scope.range(5 * p - 2) == (13, 13))


@pytest.mark.parametrize(("texts", "match"), [
    ("a >= 1", "sequence of strings"), (["a != 0"], "must contain one of"),
    (["a == a + 1"], "Unsatisfiable explicit constraint: a == a"), (["a <= 0"], "Unsatisfiable"),
    (["a >= c + 1", "c >= 4", "a <= d + 2", "d <= 2"], "Unsatisfiable"),
    (["a + b == 3"], "left-hand-side"),
])
def test_constraints_that_are_none(texts: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        export.symbolic_shape("a, b, c, d", constraints=texts)


def test_an_undecided_comparison_says_what_would_decide_it() -> None:
    p, q = export.symbolic_shape("a, b", constraints=["a >= 5"])
    with pytest.raises(InconclusiveDimensionOperation,
                       match=r"(?s)'b \+ a' > '9' is inconclusive.*a >= 5.*'b \+ a >= 10'"):
        assert p + q > 9


@pytest.mark.parametrize("operation", [
    operator.add, operator.sub, operator.mul, operator.mod, operator.floordiv, operator.ge,
    operator.lt, maximum, minimum])
def test_scopes_do_not_mix(operation: Callable) -> None:
    (other,) = export.symbolic_shape("a", constraints=["a >= 5"])
    assert a != other
    with pytest.raises(ValueError, match="(?s)Invalid mixing of symbolic scopes.*a >= 5"):
        operation(a, other)


def test_a_function_is_traced_once_per_scope() -> None:
    count = []
    f = olympus.jit(lambda x: (count.append(x.shape), x)[1])
    scope = a.scope
    for shape in (export.symbolic_shape("a, 3", scope=scope), (a, 3), export.symbolic_shape("a,3")):
        f.trace(olympus.ShapeDtypeStruct(shape, "float32"))
    assert len(count) == 2
