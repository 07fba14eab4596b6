"""Facts about operations (`core.facts.Facts`): every primitive is asked for every one."""

import importlib
import itertools
import pkgutil
import types
import typing
from typing import Any

import numpy as np
import pytest
from test_checkify import HANDING_ON

import olympus
from olympus import lax
from olympus._src.core.facts import Facts
from olympus._src.lax.families import Elementwise, elementwise
from olympus._src.lax.special.series import Computed
from olympus._src.lowering.fences import _plan
from olympus.extend.core import Primitive

TYPES = typing.get_type_hints(Facts)
# Params of elementwise operations that have some.
PARAMS: dict[str, dict[str, Any]] = {
    "conj": {"input_dtype": np.dtype("float32")}, "integer_pow": {"y": 3},
    "reduce_precision": {"exponent_bits": 5, "mantissa_bits": 7},
    "round": {"rounding_method": lax.RoundingMethod.TO_NEAREST_EVEN}}
# Functions of one operand that are NaN at single numbers, so that they have no domain.
NAN_WITHIN = {"digamma"}
# Numbers that functions have rules for, alone and in pairs.
NUMBERS = [np.nan, 0.0, -0.0, 1.0, -1.0, 0.5, 2.0, np.inf, -np.inf, 1e30, -3.5]
OPERANDS = {n: np.array([*itertools.product(NUMBERS, repeat=n)], np.float32).T for n in (1, 2)}


@pytest.fixture(scope="module")
def primitives() -> list[Primitive]:
    """Those of the whole package, without the ones that tests made."""
    for module in pkgutil.walk_packages(olympus.__path__, "olympus."):
        if not module.name.startswith("olympus._src.as_jax") and "__main__" not in module.name:
            importlib.import_module(module.name)
    return sorted([p for p in Primitive.instances
                   if type(p).__module__.startswith("olympus.") and not p.open],
                  key=lambda p: p.name)


def is_of(answer: Any, kind: Any) -> bool:
    """Whether an answer has the type that the fact is annotated with."""
    among = typing.get_origin(kind)
    if among is typing.Literal:
        return answer in typing.get_args(kind)
    if among is types.UnionType:
        return any(is_of(answer, one) for one in typing.get_args(kind))
    return isinstance(answer, among or kind)


@pytest.mark.parametrize("fact", TYPES)
def test_every_primitive_answers_for_every_fact(primitives, fact):
    assert len(primitives) > 300
    for prim in primitives:
        assert is_of(getattr(prim, fact), TYPES[fact]), prim


def test_kernels_and_their_primitives_name_each_other(primitives):
    """A primitive names the module, which has a tuple of kernels for it, perhaps an empty one."""
    modules = {p.kernels.__name__: p.kernels for p in primitives if p.kernels}
    for prim in primitives:
        at = {name for name, module in modules.items() if prim in module.KERNELS}
        assert at == ({prim.kernels.__name__} if prim.kernels else set()), prim


def test_numpy_has_the_names_that_errors_give(primitives):
    names = {p.name: p.numpy_name for p in primitives if p.numpy_name}
    assert len(names) > 10
    for name in names.values():
        assert isinstance(getattr(np, name), np.ufunc)


def test_a_fact_that_there_is_not_is_refused():
    with pytest.raises(TypeError, match="primitive neg: makes_nans given as facts"):
        elementwise("neg", "stablehlo.negate", "f", makes_nans=False)


@pytest.fixture(scope="module")
def on_floats(primitives) -> list[Any]:
    """Elementwise operations and their results on OPERANDS."""
    asked = [p for p in primitives if isinstance(p, Elementwise) and not isinstance(p, Computed)
             and "f" in p.kinds]
    results = olympus.jit(lambda: [
        p.bind(*OPERANDS[p.arity or 0], **PARAMS.get(p.name, {})) for p in asked])()
    return [*zip(asked, results, strict=True)]


@pytest.mark.slow
def test_elementwise_operations_say_what_they_do_with_nan(on_floats):
    """Where a NaN is an operand, and where none is, at numbers that functions have rules for."""
    operands = OPERANDS
    given = {n: np.isnan(xs).any(0) for n, xs in operands.items()}
    for prim, result in on_floats:
        if result.dtype == np.float32:
            found, given_here = np.isnan(np.asarray(result)), given[prim.arity or 0]
            assert prim.hands_on_nan == (not (given_here & ~found).any()), prim
            if not prim.makes_nan:
                assert not (found & ~given_here).any(), prim
            if prim.arity == 1 and prim.name not in NAN_WITHIN:
                x, (least, most) = np.float64(operands[1][0]), prim.domain or (-np.inf, np.inf)
                np.testing.assert_array_equal(found, ~((x >= least) & (x <= most)), str(prim))


@pytest.mark.slow
def test_the_known_number_of_a_result_is_the_number_that_the_operation_gives(on_floats):
    def constants() -> list[Any]:
        """Each operation on constants."""
        full = {x.tobytes(): lax.full((2,), x) for x in OPERANDS[1][0]}
        return [p.bind(*[full[x.tobytes()] for x in xs], **PARAMS.get(p.name, {}))
                for p, _ in on_floats for xs in OPERANDS[p.arity or 0].T]

    known = _plan(olympus.make_olympuspr(constants)(), True).numbers
    results = [x for _, result in on_floats for x in np.asarray(result)]
    cases = [(p.name, *xs) for p, _ in on_floats for xs in OPERANDS[p.arity or 0].T]
    seen = 0
    for case, number, result in zip(cases, known, results, strict=True):
        if number is not None:
            seen += 1
            np.testing.assert_array_equal(np.asarray(number, result.dtype), result, str(case))
    assert seen > 500


def test_other_operations_that_hand_a_nan_on_have_a_row(primitives):
    """`test_checkify` shows that they do; keys hold none."""
    assert {p.name for p in primitives if p.hands_on_nan and not p.elementwise} <= {
        *HANDING_ON, "random_clone"}
