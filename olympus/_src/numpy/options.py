"""The keywords of elementwise functions: `where`, `dtype`, `casting`, `order`, `subok`; not `out`.

NumPy leaves what `where` excludes as the output's memory was. Here those elements are 0, the
function is not evaluated there, and no derivative passes through them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.lib import ArrayImpl
from ..core.ir import Literal
from ..core.trace import Tracer, literal
from ..transforms.fused import fused
from ..types import dtypes
from ..types.shape import broadcast_shapes
from .promote import BOOL, array_args, broadcast_to, choose, convert, refuse_option, to_array

__all__ = ["Loops", "check_arity", "mask_arg", "with_options"]

_DEFAULTS: dict[str, Any] = {"out": None, "where": None, "dtype": None, "casting": "same_kind",
                             "order": "K", "subok": True}
_CHARACTERS = {"b": "?", "i": "bhil", "u": "BHIL", "f": "eEfd", "c": "FD"}
_REAL = {"F": "f", "D": "d"}


class Loops:
    """The dtypes of an elementwise function, NumPy's table of loops: as `xx->x` for kinds of dtype.

    In the pattern x is one dtype of those kinds, r its real part's, and ? i B are themselves.
    """

    __slots__ = ("ins", "outs", "kinds")

    def __init__(self, pattern: str, kinds: str) -> None:
        (self.ins, self.outs), self.kinds = pattern.split("->"), kinds

    def types(self) -> list[str]:
        """As NumPy writes them; E is bfloat16. The dtypes of 8 bits and fewer have no letters."""
        pattern = f"{self.ins}->{self.outs}"
        return [pattern.replace("r", _REAL.get(x, x)).replace("x", x)
                for kind in self.kinds for x in _CHARACTERS[kind]]

    def operand_dtypes(self, name: str, common: Any, dtype: Any) -> list[Any]:
        """The dtypes that operands of a common one are converted to, for a result of `dtype`."""
        x = common if dtypes.scalar_kind(common) in self.kinds else (
            dtypes.to_inexact_dtype(common) if self.kinds[-1] in "fc" else np.dtype("int32"))
        result = {"x": x, "r": dtypes.to_real_dtype(x), "?": BOOL}.get(self.outs[0])
        if dtype is not None and dtype != result:
            if self.outs[0] not in "xr" or dtypes.scalar_kind(dtype) not in self.kinds:
                raise TypeError(f"{name}: dtype {dtypes.long_name(dtype)} given for operands of "
                                f"dtype {common}; no loop of the function has that result; "
                                "convert the result with astype.")
            x = dtype
        return [x if letter == "x" else np.dtype(letter) for letter in self.ins]


def mask_arg(name: str, where: Any) -> Any:
    """The `where` argument: None or an array of booleans."""
    if where is None:
        return None
    (mask,) = array_args(name, where)
    if mask.dtype != BOOL:
        raise ValueError(f"{name}: where of dtype {mask.dtype} given; a boolean array is required; "
                         "compare it with 0.")
    return mask


def check_arity(name: str, args: Sequence[Any], nin: int) -> None:
    """TypeError unless as many positional arguments as operands are given, or None for out."""
    if len(args) > nin + 1 or (len(args) > nin and args[nin] is not None):
        raise TypeError(f"{name}: {len(args)} positional arguments given; {nin} required: arrays "
                        "cannot be written to, so there is no argument out; use the result.")
    if len(args) < nin:
        raise TypeError(f"{name}: {len(args)} positional arguments given; {nin} required.")


def with_options(ufunc: Any, args: Sequence[Any], options: dict[str, Any]) -> Any:
    """The call of an elementwise function with keywords.

    Raises TypeError for keywords that it has not, for `out`, and for a dtype that it has no loop
    for or that `casting` does not allow; ValueError for other values of casting and order.
    """
    name = ufunc.__name__
    check_arity(name, args, ufunc.nin)
    for key in options:
        if key not in _DEFAULTS:
            raise TypeError(f"{name}: keyword argument {key} given; {', '.join(_DEFAULTS)} are "
                            "accepted.")
    args, given = args[:ufunc.nin], {**_DEFAULTS, **options}
    refuse_option(name, out=given["out"])
    if given["order"] not in ("K", "C", "A"):
        raise ValueError(f"{name}: order {given['order']!r} given; programs see no memory order; "
                         "leave it out.")
    dtype = given["dtype"]
    if dtype is not None:
        dtype = dtypes.requested_dtype(name, dtype)
    where = None if given["where"] is True else given["where"]
    if dtype is not None or given["casting"] != _DEFAULTS["casting"]:
        args = _cast(name, ufunc.loops, array_args(name, *args), dtype, given["casting"])
    if where is None:
        return ufunc(*args)
    mask = mask_arg(name, where)
    if all(isinstance(x, (ArrayImpl, np.ndarray, Tracer)) for x in args):
        return _masked_program(mask, *args, ufunc=ufunc)
    return _masked(mask, *args, ufunc=ufunc)    # it sees Python numbers itself


def _cast(name: str, loops: Loops, operands: Sequence[Any], dtype: Any, casting: str
          ) -> Sequence[Any]:
    """The operands in the dtypes of the loop, if the casting rule allows that.

    Without a dtype they stay as they are: promotion will do it.
    """
    wanted = loops.operand_dtypes(name, dtypes.result_type(*operands), dtype)
    for i, (x, to) in enumerate(zip(operands, wanted, strict=True)):
        # A Python number has its kind, but no width that could be lost.
        rule = "same_kind" if x.aval.weak_type and casting in ("no", "equiv", "safe") else casting
        if not dtypes.can_cast(x.dtype, to, rule):
            raise TypeError(f"{name}: operand {i} of dtype {x.dtype} given; casting to {to}, in "
                            f"which the function is computed, is not allowed by the rule "
                            f"{casting!r}; pass casting='unsafe', or convert it with astype.")
    return operands if dtype is None else [
        to_array(convert(x, to)) for x, to in zip(operands, wanted)]


def _masked(mask: Any, *args: Any, ufunc: Any) -> Any:
    """The function where the mask holds, 0 elsewhere."""
    operands = array_args(ufunc.__name__, *args)
    shape = broadcast_shapes(mask.shape, *[x.shape for x in operands])
    mask = broadcast_to(mask, shape)
    # Derivatives that are infinite at excluded elements would make NaN of 0; there is no operand.
    args = tuple([x if type(y) is Literal else choose(
        mask, broadcast_to(y, shape), literal(1, y.dtype, y.aval.weak_type))
        for x, y in zip(args, operands)])
    found = ufunc(*args)
    if isinstance(found, tuple):
        return tuple([_or_zero(mask, x) for x in found])
    return _or_zero(mask, found)


def _or_zero(mask: Any, x: Any) -> Any:
    return choose(mask, broadcast_to(x, mask.shape), literal(0, x.dtype, x.aval.weak_type))


_masked_program = fused(_masked, static=("ufunc",))
