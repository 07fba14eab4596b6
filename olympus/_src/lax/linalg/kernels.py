"""Kernels of LAPACK, cuSOLVER, hipSOLVER and XLA: names, layouts and how they report failure.

A kernel goes by LAPACK's name for real numbers without the letter of the dtype, "potrf", on every
platform and for every dtype. `KERNELS` says which ones a platform has; an operation asks `has`
where XLA has one of its own to fall back on.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ...base import lib
from ...base.typing import DType, IrAttribute, IrValue
from ...core.primitive import Builder
from ...types import dtypes
from ...types.avals import ShapedArray, make_aval
from ...types.shape import static_int

BOOL, INT32 = dtypes.as_dtype("bool"), dtypes.as_dtype("int32")
Config = Mapping[str, str | int]    # a kernel's parameters: characters, words, bools, ints

# LAPACK names these otherwise for complex numbers; cuSOLVER's have one name.
_COMPLEX = {"orgqr": "ungqr", "ormqr": "unmqr", "syevd": "heevd", "sytrd": "hetrd"}


def _lapack(kernel: str) -> Callable[[DType], str]:
    return lambda dtype: lib.lapack_target(
        _COMPLEX.get(kernel, kernel) if dtype.kind == "c" else kernel, dtype)


def _solver(library: str, kernel: str) -> Callable[[DType], str]:
    return lambda dtype: f"{library}_{kernel}_ffi"


def _perturbed(dtype: DType) -> str:
    lib.lapack_names()      # jaxlib registers its own kernels with LAPACK's
    return "tridiagonal_solve_perturbed_ffi"


def _hybrid(prefix: str) -> dict[str, Callable[[DType], str]]:
    """Kernels that a GPU has for no dtype, and calls LAPACK or MAGMA for."""
    return {"geqp3": lambda dtype: f"{prefix}hybrid_geqp3",
            "hybrid_eig": lambda dtype: f"{prefix}hybrid_eig_"
                                        f"{'comp' if dtype.kind == 'c' else 'real'}",
            "lu_pivots": lambda dtype: f"{prefix}_lu_pivots_to_permutation"}


_ON_GPU = ("geqrf", "gesvd", "gesvdj", "getrf", "orgqr", "ormqr", "potrf", "syevd", "sytrd")
# Platform -> kernel -> (dtype) -> the name of the custom call.
KERNELS: dict[str, dict[str, Callable[[DType], str]]] = {
    "cpu": {**{kernel: _lapack(kernel) for kernel in (
        "gees", "geev", "gehrd", "geqp3", "geqrf", "gesdd", "gesvd", "getrf", "gtsv", "orgqr",
        "ormqr", "potrf", "syevd", "sytrd", "trsm")}, "tridiagonal_solve_perturbed": _perturbed},
    "gpu": {**{kernel: _solver("cusolver", kernel) for kernel in _ON_GPU},
            **_hybrid("cu"), "geev": _solver("cusolver", "geev"),
            "gtsv": _solver("cusparse", "gtsv2"),
            "tridiagonal_solve_perturbed": lambda dtype: "cu_tridiagonal_solve_perturbed"},
    "rocm": {**{kernel: _solver("hipsolver", kernel) for kernel in _ON_GPU}, **_hybrid("hip")},
    # XLA's own there: they have neither parameters nor a report.
    "tpu": {"geqrf": lambda dtype: "Qr",
            "orgqr": lambda dtype: "ProductOfElementaryHouseholderReflectors"},
}


def has(b: Builder, kernel: str) -> bool:
    """Whether the platform that is lowered for has a kernel."""
    return kernel in KERNELS.get(b.platform, ())


def _column_major(rank: int, batch: int) -> list[int]:
    """The axes from the innermost one: matrices, after `batch` leading axes, are column-major."""
    order = list(range(rank))[::-1]
    if rank == batch + 2:
        order[:2] = rank - 2, rank - 1
    return order


def call(b: Builder, kernel: str, xs: Sequence[IrValue], outs: Sequence[ShapedArray], batch: int,
         config: Config | None = None, aliases: Sequence[int | None] = (),
         by_rows: bool = False) -> list[IrValue]:
    """Emit a call of a kernel, batched; nothing may be empty.

    Args:
      b: the builder.
      kernel: its name; NotImplementedError if the platform has none of that name.
      xs: operands; those with two axes after the batch are passed column-major.
      outs: avals of the results, laid out likewise; the first has the kernel's dtype.
      batch: the number of leading axes that are batches.
      config: the kernel's parameters: a character, a word, a bool or an int each.
      aliases: operand i is overwritten by result aliases[i], unless that is None.
      by_rows: pass matrices row-major instead: as their transposes.
    """
    if not has(b, kernel):
        raise NotImplementedError(
            f"linalg: kernel {kernel} on platform {b.platform} given; jaxlib has none of that name "
            "there; run this part on the CPU, under jit with backend='cpu' or on arrays put on a "
            "CPU device.")
    target = KERNELS[b.platform][kernel](np.dtype(outs[0].dtype))
    if b.platform == "tpu":
        return xla_call(b, target, xs, outs)
    ranks = [x.type.rank for x in xs], [a.ndim for a in outs]
    layouts = [[_column_major(n, n if by_rows else batch) for n in of] for of in ranks]
    marks: Mapping[str, IrAttribute] = {}
    if batch and len(b.module.places.devices) > 1 and b.block.sizes is None and (
            lib.is_batch_partitionable(target)):
        # Otherwise devices would gather the whole batch, and each would compute all of it.
        marks = b.batch_marks([tuple(x.type.shape) for x in xs], [a.shape for a in outs], batch)
    return b.custom_call(
        target, xs, [b.type(a) for a in outs], marks,
        config={name: _parameter(name, value) for name, value in (config or {}).items()},
        aliases=aliases,
        layouts=(layouts[0], layouts[1]), shapes=[a.shape for a in outs])


def _parameter(name: str, value: str | int) -> np.generic | bool | str:
    """A kernel's parameter as it takes it: characters are unsigned bytes, ints have 32 bits."""
    if isinstance(value, str):
        if len(value) > 1:
            return value
        return np.uint8(ord(value))
    if isinstance(value, bool):
        return value
    return np.int32(static_int(value, "custom call", f"parameter {name}"))


def xla_call(b: Builder, target: str, xs: Sequence[IrValue], outs: Sequence[ShapedArray],
             attributes: dict[str, IrAttribute] | None = None) -> list[IrValue]:
    """Emit a call of what XLA has itself on a TPU."""
    return b.custom_call(target, xs, [b.type(a) for a in outs], {
        "api_version": b.attr("1 : i32"), **(attributes or {})}, shapes=[a.shape for a in outs])


def triangle(b: Builder, lower: bool) -> Config:
    """The parameter of a kernel that says which triangle of a matrix it reads."""
    return {"uplo": "L" if lower else "U"} if b.platform == "cpu" else {"lower": lower}


def magma(asked: bool | None) -> Config:
    """The parameter by which a kernel of GPUs takes MAGMA; None where it is found."""
    return {"magma": {None: "auto", True: "on", False: "off"}[asked]}


def reported(b: Builder, kernel: str, xs: Sequence[IrValue], outs: Sequence[ShapedArray],
             batch: int, config: Config | None = None, aliases: Sequence[int | None] = (),
             by_rows: bool = False) -> Sequence[IrValue]:
    """`call` of a kernel that gives LAPACK's `info` besides, int32[batch]: the last result here."""
    info = make_aval(outs[0].shape[:batch], INT32)
    return call(b, kernel, xs, [*outs, info], batch, config, aliases, by_rows)


def check_implementation(b: Builder, what: str, implementation: enum.Enum | None) -> None:
    """ValueError unless an implementation that is asked for is LAPACK, where that is used."""
    if b.platform == "cpu" and implementation is not None and implementation.name != "LAPACK":
        raise ValueError(f"{what}: implementation {implementation.name} given on platform cpu; it "
                         "has LAPACK only; leave `implementation` out.")


def nan_unless(b: Builder, direction: str, info: IrValue, batch: int, xs: Sequence[IrValue],
               avals: Sequence[ShapedArray]) -> list[IrValue]:
    """The arrays where `info` compares to 0 by `direction` ("EQ", "GE"), else NaN: LAPACK's way of
    saying, per batch element, that it succeeded."""
    aval = make_aval(avals[0].shape[:batch], INT32)
    ok = b.compare(direction, info, b.full(aval, 0), "SIGNED", aval.update(dtype=BOOL))
    outs = []
    for x, aval in zip(xs, avals, strict=True):
        wide = ok if batch == aval.ndim else b.broadcast(ok, aval.update(dtype=BOOL), range(batch))
        nan = complex("nan+nanj") if aval.dtype.kind == "c" else float("nan")
        outs.append(b.op("stablehlo.select", [wide, x, b.full(aval, nan)], None, aval))
    return outs
