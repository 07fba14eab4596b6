"""Every function has a row, and every table a module here."""

import pathlib

from ops import tables

import olympus


def test_every_elementwise_and_structural_function_has_a_row() -> None:
    covered = {op.name.removeprefix("lax.").split("-")[0] for table, rows in tables().items()
               if table.startswith(("lax", "control")) for op in rows}
    public = {name for name in dir(olympus.lax) if name.islower() and not name.endswith("_p")}
    elsewhere = {"axis_size", "empty", "broadcast_shapes", "conv_dimension_numbers",
                 "linalg"}
    assert {n for n in public - covered - elsewhere if not n.startswith("_")} == set()


def test_every_table_is_run() -> None:
    here = {path.stem for path in pathlib.Path(__file__).parent.iterdir()}
    assert {f"test_rows_{name}" for name in tables()} <= here
