"""The keywords of ufuncs: `where`, `dtype`, `signature`, `casting`, `order`, `axes`; not `out`.

NumPy leaves what `where` excludes as the output's memory was. Here those elements are 0, the
function is not evaluated there, and no derivative passes through them.
"""
# What `functools.wraps` made has attributes that checkers do not know of.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np

from ..base.lib import ArrayImpl
from ..base.typing import Array, ArrayLike, DType, DTypeLike, R
from ..core.ir import Literal
from ..core.trace import Tracer, literal
from ..jit.fused import fused
from ..lax.shape import expand_dims, transpose
from ..types import dtypes
from ..types.shape import broadcast_shapes, canonical_axes
from .promote import BOOL, array_args, broadcast_to, choose, convert, flag, refuse_option, to_array


def _parameter(name: str, default: int | str | None, kind: str) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default,
                             annotation=kind)


PARAMETERS = {n: _parameter(n, default, kind) for n, default, kind in (
    ("out", None, "None"), ("where", None, "ArrayLike | None"),
    ("dtype", None, "DTypeLike | None"), ("casting", "same_kind", "str"), ("order", "K", "str"),
    ("subok", True, "bool"), ("signature", None, "str | Sequence[DTypeLike | None] | None"))}
_DEFAULTS = {n: p.default for n, p in PARAMETERS.items()}
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
        """The loops in NumPy's letters; E is bfloat16. Dtypes of up to 8 bits have no letters."""
        pattern = f"{self.ins}->{self.outs}"
        return [pattern.replace("r", _REAL.get(x, x)).replace("x", x)
                for kind in self.kinds for x in _CHARACTERS[kind]]

    def given(self, name: str, dtype: DTypeLike | None, signature: object) -> list[DType | None]:
        """The dtype of each operand and result that `dtype` or `signature` gives, or None."""
        nin, nargs = len(self.ins), len(self.ins + self.outs)
        if signature is None:
            # Requested once, however many results there are: so the user is warned once.
            of_results = None if dtype is None else dtypes.requested_dtype(name, dtype)
            entries: Any = [None] * nin + [of_results] * (nargs - nin)
        elif dtype is not None:
            raise TypeError(f"{name}: dtype and signature given; pass one of them.")
        elif isinstance(signature, str) and len(signature) > 1:
            entries = signature.replace("->", "")
            if len(entries) != nargs or signature[nin:nin + 2] != "->":
                raise ValueError(f"{name}: signature {signature!r} given; {nin} letters, -> and "
                                 f"{nargs - nin} are required, as in f.types; pass one.")
            entries = ["bfloat16" if letter == "E" else letter for letter in entries]
        elif not isinstance(signature, tuple) or len(signature) != nargs:
            raise TypeError(f"{name}: signature {signature!r} given; one of types, or a tuple of "
                            f"{nargs} dtypes and None is required; use dtype for the results.")
        else:
            entries = signature
        return [None if e is None else dtypes.requested_dtype(name, e) for e in entries]

    def chosen(self, name: str, common: DType, asked: Sequence[DType | None],
               casting: str = "same_kind") -> list[DType]:
        """The dtypes of the operands and results for operands of a common one, where given as such.

        Raises TypeError where no loop has those.
        """
        kind = dtypes.scalar_kind(common)
        own = common if kind in self.kinds else np.dtype("int32") if "i" in self.kinds and (
            kind == "b" or self.kinds[-1] not in "fc") else dtypes.to_inexact_dtype(common)
        loops = []
        for x in (own, *asked, *[dtypes.to_complex_dtype(g) for g in asked if g is not None]):
            if x is None or dtypes.scalar_kind(x) not in self.kinds:
                continue
            loop = [x if letter == "x" else dtypes.to_real_dtype(x) if letter == "r" else
                    np.dtype({"i": "int32", "B": "uint8"}.get(letter, letter))
                    for letter in self.ins + self.outs]
            if all(g is None or g == y for g, y in zip(asked, loop)):     # float64 == None
                loops.append(loop)
        if not loops:
            text = ", ".join(["None" if g is None else dtypes.long_name(g) for g in asked])
            raise TypeError(f"{name}: dtypes {text} given for operands of dtype {common}; no loop "
                            "of the function has those; convert the result with astype.")
        return next((loop for loop in loops if dtypes.can_cast(common, loop[0], casting)), loops[0])


@overload
def mask_arg(name: str, where: None) -> None: ...


@overload
def mask_arg(name: str, where: ArrayLike) -> Array: ...


@overload
def mask_arg(name: str, where: ArrayLike | None) -> Array | None: ...


def mask_arg(name: str, where: ArrayLike | None) -> Array | None:
    """The `where` argument: None or an array of booleans."""
    if where is None:
        return None
    (mask,) = array_args(name, where)
    if mask.dtype != BOOL:
        raise ValueError(f"{name}: where must be None or a boolean array; dtype {mask.dtype} "
                         "given; compare it with 0.")
    return mask


def check_arity(name: str, args: Sequence[object], nin: int) -> None:
    """TypeError unless as many positional arguments as operands are given, or None for out."""
    if len(args) > nin + 1 or (len(args) > nin and args[nin] is not None):
        raise TypeError(f"{name}: {len(args)} positional arguments given; {nin} required:\n  "
                        "arrays cannot be written to, so there is no argument out; use the result.")
    if len(args) < nin:
        raise TypeError(f"{name}: {len(args)} positional arguments given; {nin} required.")


def with_options(ufunc: Any, args: Sequence[Any], options: dict[str, Any]) -> Any:
    """The call of an elementwise function with keywords.

    Raises TypeError for keywords that it has not, for `out`, and for dtypes that it has no loop
    for or that `casting` does not allow; ValueError for other values of casting and order.
    """
    name = ufunc.__name__
    check_arity(name, args, ufunc.nin)
    for key in options:
        if key not in _DEFAULTS:
            raise TypeError(f"{name}: keyword argument {key} given; {', '.join(_DEFAULTS)} are "
                            "accepted.")
    args, chosen = args[:ufunc.nin], {**_DEFAULTS, **options}
    where = chosen.pop("where")
    args = _in_loop(name, ufunc.loops, args, **chosen)
    if where is None or where is True:
        return ufunc(*args)
    mask = mask_arg(name, where)
    if all(isinstance(x, (ArrayImpl, np.ndarray, Tracer)) for x in args):
        return _masked_program(mask, *args, ufunc=ufunc)
    return _masked(mask, *args, ufunc=ufunc)    # it sees Python numbers itself


def _in_loop(name: str, loops: Loops | None, args: Sequence[object], *, out: int | None,
             dtype: DTypeLike | None, casting: str, order: str, subok: bool, signature: object
             ) -> Sequence[object]:
    """The operands in the dtypes of the loop, if the casting rule allows that.

    Without a dtype they stay as they are: promotion will do it.
    """
    refuse_option(name, out=out)
    dtypes.check_casting(name, casting)
    if order not in ("K", "C", "A"):
        raise ValueError(f"{name}: order {order!r} given; programs see no memory order; leave it "
                         "out.")
    if dtype is None and signature is None and casting == _DEFAULTS["casting"]:
        return args
    if loops is None:
        raise TypeError(f"{name}: dtype {dtype}, signature {signature} and casting {casting!r} "
                        "given; a function of Python has no loops to choose from; convert its "
                        "operands with astype.")
    operands, asked = array_args(name, *args), loops.given(name, dtype, signature)
    wanted = loops.chosen(name, dtypes.result_type(*operands), asked, casting)
    for i, (x, to) in enumerate(zip(operands, wanted)):
        # A Python number has its kind, but no width or sign that could be lost.
        weak = x.aval.weak_type
        rule = "same_kind" if weak and casting in ("no", "equiv", "safe") else casting
        if not dtypes.can_cast(x.dtype, to, rule) and not (
                weak and dtypes.is_integer(x.dtype) and dtypes.is_integer(to)):
            raise TypeError(f"{name}: operand {i} of dtype {x.dtype} given; casting to {to}, in "
                            f"which the function is computed, is not allowed by the rule "
                            f"{casting!r}; pass casting='unsafe', or convert it with astype.")
    if all(g is None for g, letter in zip(asked, loops.ins + loops.outs) if letter in "xr"):
        return args     # promotion finds the same dtypes
    return [to_array(convert(x, to)) for x, to in zip(operands, wanted)]


def _masked(mask: Array, *args: ArrayLike, ufunc: Callable[..., Array | tuple[Array, ...]]
            ) -> Array | tuple[Array, ...]:
    """The function where the mask holds, 0 elsewhere."""
    operands = array_args(ufunc.__name__, *args)
    shape = broadcast_shapes(mask.shape, *[x.shape for x in operands])
    mask = broadcast_to(mask, shape)
    # Derivatives that are infinite at excluded elements would make NaN of 0; there is no operand.
    args = tuple([x if type(y) is Literal else choose(
        mask, broadcast_to(y, shape), literal(1, y.dtype, y.aval.weak_type))
        for x, y in zip(args, operands)])
    results = ufunc(*args)
    if isinstance(results, tuple):
        return tuple([_or_zero(mask, x) for x in results])
    return _or_zero(mask, results)


def _or_zero(mask: Array, x: Array) -> Array:
    return choose(mask, broadcast_to(x, mask.shape), literal(0, x.dtype, x.aval.weak_type))


_masked_program = fused(_masked, static=("ufunc",))


# Functions of vectors and matrices ---------------------------------------------------------------

CORE = ("axes", "axis", "keepdims", "out", "dtype", "casting", "order", "subok", "signature")


def core_options(core: str) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Decorator for a function along the last axes that `core` names, as "(m,n),(n)->(m)".

    It gives the function NumPy's keywords for those (`CORE`): `axes`, a list with the axes of each
    operand and of the result, `axis` for all of them, and `keepdims`.
    """
    *ins, result = [tuple(part.strip("()").split(",")) if part.strip("()") else ()
                 for part in core.replace("->", ";").replace("),(", ");(").split(";")]

    def decorate(fun: Callable[..., R]) -> Callable[..., R]:
        name, loops = fun.__name__, Loops("xx->x", "biufc")

        def asked(*args: object, axes: object = None, axis: object = None, keepdims: bool = False,
                  out: None = None, dtype: DTypeLike | None = None, casting: str = "same_kind",
                  order: str = "K", subok: bool = True, signature: object = None, **options: object
                  ) -> Any:
            args = tuple(_in_loop(name, loops, args, out=out, dtype=dtype, casting=casting,
                                  order=order, subok=subok, signature=signature))
            if type(keepdims) is not bool:
                keepdims = flag(name, "keepdims", keepdims)
            if axes is None and axis is None and not keepdims:
                return fun(*args, **options)
            return _apply_along_axes(name, core, ins, result, fun, array_args(name, *args), axes,
                                     axis,
                                     keepdims, options)

        @functools.wraps(fun)
        def body(*args: ArrayLike, **options: Any) -> Any:
            # Usually none of the options is given.
            plain = not options or options.keys().isdisjoint(CORE)
            return fun(*args, **options) if plain else asked(*args, **options)

        own, axis = inspect.signature(fun), -1 if core == "(n),(n)->()" else None
        more = {**PARAMETERS, "axes": _parameter("axes", None, "Sequence[Axes] | None"),
                "axis": _parameter("axis", axis, "int | None"),
                "keepdims": _parameter("keepdims", False, "bool")}
        body.__signature__ = own.replace(
            parameters=[*own.parameters.values(), *[more[n] for n in CORE]])
        body.signature = core
        return body

    return decorate


def _apply_along_axes(name: str, signature: str, ins: Sequence[Sequence[str]],
                      result: Sequence[str], fun: Callable[..., Any], operands: Sequence[Array],
                      axes: object, axis: object, keepdims: bool,
                      options: dict[str, object]) -> Array:
    """The function along the axes that are named, which are moved to the end and back."""
    simple = not result and len({len(core) for core in ins}) == 1
    if (axis is not None or keepdims) and not simple:
        raise TypeError(f"{name}: {'keepdims' if axis is None else 'axis'} given; with the "
                        f"signature {signature} there is no single axis; pass axes.")
    if axis is not None and axes is not None:
        raise TypeError(f"{name}: axis and axes given; pass one of them.")
    if axes is None:
        axes = [-1 if axis is None else axis] * (len(ins) + bool(keepdims))
    if not isinstance(axes, (list, tuple)):
        raise TypeError(f"{name}: axes {axes!r} given; a list is required.")
    if len(axes) == len(ins) and not result:
        axes = [*axes, -1 if keepdims else ()]
    if len(axes) != len(ins) + 1:
        raise ValueError(f"{name}: axes {axes!r} given; an entry for each operand and for the "
                         "result is required.")
    # A vector among matrices has one axis, and lends the result none.
    cores = [tuple([d for d in core if not d.endswith("?")]) if x.ndim < len(core) else core
             for core, x in zip(ins, operands)]
    present = {d for core in cores for d in core}
    left = ("keepdims",) if keepdims else tuple([d for d in result if d in present])
    moved = [_axes_last(name, x, entry, core, False) for x, entry, core
             in zip(operands, axes, cores)]
    out = fun(*moved, **options)
    if keepdims:
        out = expand_dims(out, (out.ndim,))
    return _axes_last(name, out, axes[-1], left, True)


def _axes_last(name: str, x: Array, entry: object, core: Sequence[str], back: bool) -> Array:
    """The axes of an operand to its end, or the result's axes from there."""
    entry = tuple(entry) if isinstance(entry, (list, tuple)) else (entry,)
    if len(entry) != len(core):
        raise ValueError(f"{name}: axes {entry} given for {len(core)} axes; one for each is "
                         "required.")
    axes = canonical_axes(entry, x.ndim, name)
    rest = [i for i in range(x.ndim) if i not in axes]
    order = [*rest, *axes]
    if back:
        order = [order.index(i) for i in range(x.ndim)]
    return x if order == [*range(x.ndim)] else transpose(to_array(x), order)
