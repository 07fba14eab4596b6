"""Programs as text in files, to see the code that was compiled: option `olympus_dump_ir_to`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from pathlib import Path

from ..base import config, source

_file_numbers = itertools.count(1)     # files are numbered as their programs were made
MODES = {"stablehlo": "compile.mlir", "olympuspr": "trace.olympuspr.txt"}


def dump(mode: str, name: str, text: Callable[[], str]) -> None:
    """Write a program to the folder of `olympus_dump_ir_to`, if programs of this mode are wanted.

    If the folder cannot be written to, a warning says so, and the program runs anyway.
    """
    modes = [m.strip() for m in config.dump_ir_modes.value.split(",")]
    for unknown in sorted({*modes} - {*MODES}):
        raise ValueError(f"olympus_dump_ir_modes: {unknown!r} given; {' and '.join(MODES)} are "
                         "what can be written, separated by commas.")
    if mode not in modes:
        return
    # Not every file system takes the name `<lambda>`; names have at most 255 bytes.
    safe = re.sub(r"[^\w.-]", "_", name)[:80]
    path = Path(config.dump_ir_to.value, f"olympus_ir{next(_file_numbers):04}_{safe}_{MODES[mode]}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text(), encoding="utf-8")
    except OSError as error:
        source.warn(f"olympus_dump_ir_to: {path} cannot be written ({error}); name a folder that "
                    "can.")
