"""Programs of symbolic sizes, exported once and called at several: as the static programs."""

import re
from typing import Any

import numpy as np
import ops
import pytest
import symbolic_rows
from test_symbolic_gates import ROWS

import olympus
import olympus.numpy as onp
from olympus import export, lax
from olympus._src.types.dim_equations import evaluated

# One of each way to be lowered; the others are slow.
QUICK = {"x * b", "einsum", "reshape -1 of b", "x[5]", "x.at[1:].add", "cumsum", "scan",
         "conv spatial same", "reduce_window of b", "cholesky", "dynamic_slice of b"}


def made(spec: Any, sizes: dict[str, int]) -> np.ndarray:
    """An argument of these sizes; matrices are positive definite."""
    random = np.random.default_rng(len(spec.shape))
    shape = tuple(evaluated(d, sizes) for d in spec.shape)
    if spec.dtype.kind == "i":
        return random.integers(0, 3, shape, spec.dtype)
    x = random.normal(size=shape).astype(spec.dtype)
    if len(shape) == 3 and shape[1] == shape[2] == 3:
        x = x @ x.swapaxes(1, 2) + 3 * np.eye(3, dtype=x.dtype)
    return np.sort(x) if len(shape) == 1 else x


@pytest.mark.parametrize(("function", "args", "shape"), [
    pytest.param(*row.values, id=row.id, marks=() if row.id in QUICK else pytest.mark.slow)
    for row in ROWS])
def test_runs_at_every_size(function: Any, args: tuple, shape: Any) -> None:
    compiled = olympus.jit(function)
    exported = export.export(compiled)(*args)
    for sizes in ({"b": 6, "n": 5}, {"b": 7, "n": 4}, {"b": 9, "n": 6}):
        arrays = [made(spec, sizes) for spec in args]
        found = olympus.tree.leaves(exported.call(*arrays))
        for got, want in zip(found, olympus.tree.leaves(compiled(*arrays)), strict=True):
            assert (got.shape, got.dtype) == (want.shape, want.dtype)
            np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-5)


def test_a_symbolic_size_is_returned_as_a_number():
    """Was: "used in a context that requires a constant", by averages and functions of one size."""
    def f(x: Any) -> Any:
        return (onp.average(x), onp.average(x, returned=True)[1], onp.positive(x.size),
                onp.full((), x.size), onp.broadcast_to(x.shape[1], ()), onp.floor(x.size),
                onp.prod(x[:0], initial=x.size), onp.unwrap(x, period=x.shape[0]),
                onp.interp(x.size, x[0], x[0]))

    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    found = export.export(olympus.jit(f))(*export.symbolic_args_specs((x,), "n, m")).call(x)
    want = [2.5, 6, 6, 6, 3, 6, 6, np.unwrap(x, period=2), 2]
    for got, right in zip(found, want, strict=True):
        np.testing.assert_array_equal(got, right)
    assert [y.dtype.kind for y in found] == [*"ffiiiifff"]


def rows() -> list[Any]:
    """Every fiftieth row of the tables; those that give a size otherwise are not refused well."""
    found = symbolic_rows.programs({k.removeprefix("ops."): v for k, v in ops.tables().items()}, 50)
    return [pytest.param(program, id=name) for name, program in found
            if name not in symbolic_rows.refused()]


@pytest.mark.slow
@pytest.mark.parametrize("program", rows())
def test_a_row_of_the_tables_runs_at_every_size(program: Any) -> None:
    exported = program.accepted()
    for size in program.sizes(3):
        program.check(exported, size)


@pytest.mark.parametrize(("text", "constraints", "shape", "match"), [
    ("3*b, ...", (), (5, 36), "Division had remainder 2 when computing the value of 'b'"),
    ("3*b + 10, ...", (), (10, 3), "Expected value >= 1 for dimension variable 'b'"),
    ("(a, a)", (), (2, 3), "args[0].shape[1] (= 3) and the specification 'a' (= 2)"),
    ("a, ...", ["a >= 2", "a <= 4"], (1, 1), "Expected 'a - 2' to be greater or equal to 0, but"),
    ("a, ...", ["a >= 2", "a <= 4"], (5, 1), "Expected '- a + 4' to be greater or equal to 0"),
    ("a, ...", ["mod(a, 4) == 0"], (6, 1), "Expected 'mod(a, 4)' to be equal to 0, but found 2"),
])
def test_sizes_that_do_not_fit(text: str, constraints: Any, shape: tuple, match: str) -> None:
    x = np.zeros(shape, np.float32)
    specs = export.symbolic_args_specs((x,), (text,), constraints)
    exported = export.export(olympus.jit(onp.sin))(*specs)
    for called in (exported, export.deserialize(exported.serialize())):
        with pytest.raises(ValueError, match=re.escape(match)):
            called.call(x)


@pytest.mark.parametrize(("text", "shape"), [
    ("b1 + 6, b1 + 14, b2", (16, 24, 32)), ("2*b1, 4*b2, b1 + b2 + 18", (16, 24, 32)),
    ("b1 + 2*b2, 4*b2, b1*b1 + 16", (16, 24, 32))])
def test_variables_are_solved_from_sizes(text: str, shape: tuple) -> None:
    def weighted(x: Any) -> Any:
        return 2 * x.shape[0] + 3 * x.shape[1] + 4 * x.shape[2]

    x = np.zeros(shape, np.float32)
    exported = export.export(olympus.jit(weighted))(*export.symbolic_args_specs((x,), (text,)))
    assert exported.call(x) == weighted(x)


def test_variables_that_no_size_gives() -> None:
    spec = olympus.ShapeDtypeStruct(export.symbolic_shape("b*b, b*d*d, d"), "float32")
    with pytest.raises(ValueError, match="Cannot solve for values of dimension variables {'b'}"):
        export.export(olympus.jit(onp.sin))(spec)


def test_symbolic_sizes_outside_of_programs_of_such_arguments() -> None:
    (b,) = export.symbolic_shape("b")
    for compute in (lambda: onp.zeros((b,)), lambda: onp.array(b), lambda: b + 1.5,
                    lambda: olympus.jit(lambda x: x * b)(1.0)):
        with pytest.raises(ValueError, match="variable 'b' that is not appearing in the shapes"):
            compute()
    lowered = olympus.jit(onp.sin).lower(olympus.ShapeDtypeStruct((b,), "float32"))
    with pytest.raises(ValueError, match="compile: sin of symbolic sizes"):
        lowered.compile()


DIVISIONS = [lambda d: d // 2, lambda d: (d + 1) // -2, lambda d: (-d - 1) // 2,
             lambda d: (-d) // -2, lambda d: d % -2, lambda d: (-d - 1) % 2, lambda d: (-d) % -2,
             lambda d: d * d - d, lambda d: 7 % d, lambda d: -7 // d]


def test_the_value_of_a_dimension_is_pythons() -> None:
    (b,) = export.symbolic_shape("b")
    f = olympus.jit(lambda x: [x[0] * 0 + compute(x.shape[0]) for compute in DIVISIONS])
    exported = export.export(f)(olympus.ShapeDtypeStruct((b,), "int32"))
    for size in (1, 2, 3, 8):
        found = exported.call(np.zeros(size, np.int32))
        assert [int(x) for x in found] == [compute(size) for compute in DIVISIONS]


def test_calls_of_two_sizes_derivatives_and_calls_from_symbolic_programs() -> None:
    (b,) = export.symbolic_shape("b")
    f = olympus.jit(lambda x: onp.sum(onp.sin(x) * x.shape[0]))
    exported = export.export(f)(olympus.ShapeDtypeStruct((b,), "float32"))
    x, y = np.arange(3, dtype=np.float32), np.arange(6, dtype=np.float32)
    both = olympus.jit(lambda x, y: exported.call(x) + exported.call(y))(x, y)
    np.testing.assert_allclose(both, 3 * np.sin(x).sum() + 6 * np.sin(y).sum(), rtol=1e-5)
    again = export.deserialize(exported.serialize(vjp_order=1))
    np.testing.assert_allclose(olympus.grad(again.call)(y), 6 * np.cos(y), rtol=1e-5)
    (c,) = export.symbolic_shape("c + 3")
    outer = export.export(olympus.jit(lambda y: exported.call(y[1:])))(
        olympus.ShapeDtypeStruct((c,), "float32"))
    np.testing.assert_allclose(outer.call(y), 5 * np.sin(y[1:]).sum(), rtol=1e-5)


def test_slices_of_symbolic_bounds_and_steps() -> None:
    def bounds(b: Any) -> list[slice]:
        return [slice(s, e, k) for s in (None, 2 * b + 2, -b) for e in (None, b, -4)
                for k in (2, b, -1, -b)]

    (b,) = export.symbolic_shape("b")
    f = olympus.jit(lambda x: [x[part] for part in bounds(x.shape[1])])
    exported = export.export(f)(olympus.ShapeDtypeStruct((16, b), "float32"))
    for size in (3, 8):
        x = np.arange(16 * size, dtype=np.float32).reshape(16, size)
        for got, part in zip(exported.call(x), bounds(size), strict=True):
            np.testing.assert_array_equal(got, x[part])


def test_a_constraint_gives_what_a_program_needs() -> None:
    def f(x: Any, y: Any) -> Any:
        return x[:y.shape[0]] + y[2:] + lax.dynamic_slice_in_dim(x, 0, y.shape[0] - 2)

    x, y = np.arange(16, dtype=np.int32), np.arange(18, dtype=np.int32)
    specs = export.symbolic_args_specs((x, y), ("a", "b"), ["b >= 3", "min(a, b) == b - 2"])
    np.testing.assert_array_equal(export.export(olympus.jit(f))(*specs).call(x, y), 2 * x + y[2:])


def test_a_scan_whose_length_may_be_its_unroll_is_exported() -> None:
    """Regression: lowering asked whether the length is more than 1, which n >= 1 leaves open."""
    n, = export.symbolic_shape("n", constraints=["n >= 1"])
    exported = export.export(olympus.jit(lambda x: lax.scan(lambda c, x: (c + x, c), 0.0, x)))(
        olympus.ShapeDtypeStruct((n,), "float32"))
    for size in (1, 2):
        last, before = exported.call(onp.arange(size, dtype="float32") + 1)
        assert last == size * (size + 1) / 2 and before[0] == 0
