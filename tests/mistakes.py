"""Mistakes that users make, a line of code each, and what they are told: data/messages.txt.

    PYTHONPATH=. python tests/mistakes.py

writes what they are told anew; its difference is what a change of messages is reviewed by. A new
mistake is a line `>>> code` there, with an empty line before it.
"""

from __future__ import annotations

import dataclasses
import linecache
import math
import pathlib
from typing import Any

import numpy as np

import olympus
import olympus.numpy as onp
from olympus import (
    P, checkpoint, custom_jvp, custom_vjp, debug, export, grad, jit, jvp, lax, linear_transpose, nn,
    random, scipy, tree, vjp, vmap,
)
from olympus.experimental import pallas as pl
from olympus.experimental.pallas import tpu as pltpu
from olympus.ref import addupdate, free_ref, freeze, new_ref

FILE = pathlib.Path(__file__).parent / "data" / "messages.txt"
PLACE = "<mistake>"     # the file of each line of code, for messages that name it


class Layer:
    """An object with arrays, as a model's."""

    def __init__(self) -> None:
        self.w, self.b = onp.ones((8, 4)), onp.ones(3)


@dataclasses.dataclass
class Point:
    """A dataclass that is not registered."""

    x: Any


Point.__module__ = "model"      # also where this file is the main program


def kernel(body: Any, *args: Any, **options: Any) -> Any:
    """A kernel's result like its last argument; without one, of three elements."""
    shape = args[-1].shape if args else (3,)
    return pl.pallas_call(body, olympus.ShapeDtypeStruct(shape, onp.float32), interpret=True,
                          **options)(*args)


def names() -> dict[str, Any]:
    """What a line of code may use."""
    @custom_vjp
    def ruled(x: Any) -> Any:
        return x * 2

    @custom_jvp
    def forward(x: Any) -> Any:
        return x * 2

    return {
        "olympus": olympus, "onp": onp, "np": np, "jit": jit, "grad": grad, "vmap": vmap,
        "jvp": jvp, "vjp": vjp, "lax": lax, "nn": nn, "random": random, "scipy": scipy,
        "tree": tree, "debug": debug, "export": export, "checkpoint": checkpoint, "P": P,
        "linear_transpose": linear_transpose,
        "math": math, "Point": Point,
        "ruled": ruled, "forward": forward, "layer": Layer(),
        "x": onp.ones(3), "y": onp.ones(4), "n": onp.arange(3), "a": onp.ones((2, 3)),
        "b": onp.ones((4, 5)), "s": onp.float32(1), "z": onp.ones(3) + 1j, "mask": onp.ones(3) > 0,
        "ref": new_ref(onp.zeros(3)), "new_ref": new_ref, "freeze": freeze, "free_ref": free_ref,
        "addupdate": addupdate, "pl": pl, "pltpu": pltpu, "kernel": kernel,
        "params": {"w": onp.ones((8, 16)), "b": onp.ones(16)}, "key": random.key(0),
    }


def told(code: str) -> tuple[str, str]:
    """(the class, the message) of what a line of code raises."""
    linecache.cache[PLACE] = (len(code), None, [f"{line}\n" for line in code.split("\n")], PLACE)
    try:
        exec(compile(code, PLACE, "exec"), names())
    except Exception as error:
        return type(error).__name__, str(error).rstrip()
    return "nothing", "no exception"


def rows() -> dict[str, tuple[str, str]]:
    """{code: (class, message)} as the file has it."""
    found = {}
    for row in FILE.read_text(encoding="utf-8").rstrip().split("\n\n>>> ")[1:]:
        code, _, rest = row.partition("\n")
        kind, _, message = rest.partition("\n")
        found[code] = kind, message
    return found


HEAD = "What users are told: `>>> code` by hand, the rest by tests/mistakes.py."


def written() -> str:
    """The file as it should be."""
    told_of = [f"\n\n>>> {code}\n" + "\n".join(told(unfolded(code))) for code in rows()]
    return "".join([HEAD, *told_of, "\n"])


def unfolded(code: str) -> str:
    r"""The code of a row: `\n` in it ends a line."""
    return code.replace("\\n", "\n")


if __name__ == "__main__":
    FILE.write_text(written(), encoding="utf-8")
