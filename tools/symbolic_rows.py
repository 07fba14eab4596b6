"""Rows of tests/ops with symbolic sizes: traced, lowered, made static and run, as static ones.

    PYTHONPATH=.:tests python tools/symbolic_rows.py [--run] [--sizes 3] [--table NAME] [--every K]
                                                     [--again]

For every size that axes of a row's arguments have, those axes become one variable `b >= 2`; a
refused row is tried again with `b` at least the row's size, also a multiple of it, or at most two
more. It prints the programs that no attempt makes, with the last error, and their number; a row
whose static program is wrong at the sizes tried closes over one. `--run` also calls the export at
several sizes and compares with the static program.
"""

from __future__ import annotations

import argparse
import collections
import pathlib
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import ops
from properties import cast

import olympus
from olympus import export
from olympus.errors import InconclusiveDimensionOperation


def is_array(x: Any) -> bool:
    return isinstance(x, np.ndarray) and x.dtype.kind in "biufc"


def sizes_of(args: tuple[Any, ...]) -> list[int]:
    """The sizes that become a variable, each in turn."""
    return sorted({n for x in args if is_array(x) for n in x.shape if n > 1})


def resized(args: tuple[Any, ...], old: int, new: int) -> tuple[Any, ...]:
    """Arguments whose axes of size `old` have size `new`, of elements that they have.

    Increasing numbers go on increasing: knots that do not have no interpolation.
    """
    def change(x: Any) -> Any:
        if is_array(x):
            rises = x.ndim == 1 and x.dtype.kind == "f" and x.size > 1 and (np.diff(x) > 0).all()
            for axis, n in enumerate(x.shape):
                if n == old:
                    x = np.take(x, np.arange(new) % old, axis)
            if rises and x.size > old:
                x = x + (np.arange(new) // old * (x[old - 1] - x[0] + 1)).astype(x.dtype)
        return x

    return tuple([change(x) for x in args])


class ClosesOver(Exception):
    """A row that has one size alone."""


class Program:
    """A row with one size symbolic: `exported` and the arguments at other sizes.

    The size is at least `least`, and a multiple of `step`.
    """

    def __init__(self, row: Any, size: int) -> None:
        self.row, self.size = row, size
        self.args = tuple(cast(row, "f" if "f" in row.dtypes else row.dtypes[0]))
        self.arrays = [i for i, x in enumerate(self.args) if is_array(x)]
        self.fun = olympus.jit(self.call)
        self.constrain(2, 1, 0)

    def constrain(self, least: int, step: int, most: int) -> None:
        self.least, self.step = least, step
        more = [f"mod(b, {step}) == 0"] * (step > 1) + [f"b <= {most}"] * (most > 0)
        (self.dim,) = export.symbolic_shape("b", constraints=[f"b >= {least}", *more])

    def sizes(self, count: int) -> list[int]:
        return [self.size + k * self.step for k in range(count)]

    def call(self, *arrays: Any) -> Any:
        args = list(self.args)
        for i, x in zip(self.arrays, arrays, strict=True):
            args[i] = x
        return self.row.fun(*args)

    def is_static(self) -> bool:
        """Whether the program of numbers is right at the least and at the next sizes."""
        try:
            for n in {self.least, *self.sizes(3)}:
                args = resized(self.args, self.size, n)
                olympus.eval_shape(self.fun, *[args[i] for i in self.arrays])
        except Exception:
            return False
        return True

    def accepted(self) -> Any:
        """The export of the first attempt that is not refused."""
        failed: Exception = ClosesOver("the row is wrong at other sizes")
        for least, step, most in ((2, 1, 0), (self.size, 1, 0), (self.size, self.size, 0),
                                  (2, 1, self.size + 2)):
            self.constrain(least, step, most)
            try:
                exported = self.exported()
            except Exception as error:
                if self.is_static():
                    failed = error
            else:
                if self.is_static():
                    return exported
        raise failed

    def exported(self) -> Any:
        """The export for all sizes."""
        specs = [olympus.ShapeDtypeStruct(tuple([self.dim if n == self.size else n
                                                 for n in self.args[i].shape]),
                                          olympus.dtypes.canonicalize_dtype(self.args[i].dtype))
                 for i in self.arrays]
        return export.export(self.fun, disabled_checks=[
            export.DisabledSafetyCheck.custom_call("ALL")])(*specs)

    def check(self, exported: Any, new: int) -> None:
        """AssertionError unless the export's results at a size are the static program's."""
        args = resized(self.args, self.size, new)
        arrays = [args[i] for i in self.arrays]
        wants = olympus.tree.leaves(self.fun(*arrays))
        for got, want in zip(olympus.tree.leaves(exported.call(*arrays)), wants, strict=True):
            if olympus.dtypes.issubdtype(want.dtype, olympus.dtypes.prng_key):
                got, want = map(olympus.random.key_data, (got, want))
            got, want = np.asarray(got), np.asarray(want)
            assert got.shape == want.shape, f"shape {got.shape}, wanted {want.shape}"
            assert got.dtype == want.dtype, f"dtype {got.dtype}, wanted {want.dtype}"
            np.testing.assert_allclose(got.astype(np.complex128), want.astype(np.complex128),
                                       rtol=1e-4, atol=1e-4)


def programs(tables: dict[str, tuple[Any, ...]], every: int) -> Iterator[tuple[str, Program]]:
    count = 0
    for name, rows in tables.items():
        for row in rows:
            if not hasattr(row, "oracle") or not any(map(is_array, row.args)):
                continue
            for size in sizes_of(row.args):
                count += 1
                if count % every == 0:
                    yield f"{name}: {row.name} [{size}]", Program(row, size)


def refused() -> set[str]:
    """Programs that failed in the run recorded in tests/data/symbolic_rows.txt."""
    lines = pathlib.Path(__file__).parent.parent.joinpath(
        "tests/data/symbolic_rows.txt").read_text().splitlines()
    return {line.split("]: ")[0] + "]" for line in lines if "]: " in line}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", action="store_true")
    parser.add_argument("--sizes", type=int, default=3)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--table", default="")
    parser.add_argument("--again", action="store_true", help="those of the list of refusals only")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    tables = {k.removeprefix("ops."): v for k, v in ops.tables().items() if options.table in k}
    failed: collections.Counter[str] = collections.Counter()
    total = 0
    listed = refused() if options.again else None
    for name, program in programs(tables, options.every):
        if listed is not None and name not in listed:
            continue
        total += 1
        try:
            exported = program.accepted()
            if options.run:
                for size in program.sizes(options.sizes):
                    program.check(exported, size)
        except ClosesOver:
            failed["closes over"] += 1
            print(f"{name}: closes over the size", flush=True)
        except Exception as error:
            kind = ("undecided" if isinstance(error, InconclusiveDimensionOperation) else
                    type(error).__name__)
            failed[kind] += 1
            print(f"{name}: {kind}: {str(error).strip().splitlines()[0][:130]}", flush=True)
    print(f"{total} programs; failed: {dict(failed)}")


if __name__ == "__main__":
    main()
