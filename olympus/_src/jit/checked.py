"""Checks in compiled programs: `check` says what must hold, `checkify` and `jit(checks=…)` look."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from ..base import source
from ..base.source import api_boundary
from ..base.typing import ArrayLike, P, PyTree, R
from ..base.util import clipped, lazy_imports, name_of, wraps
from ..control.bodies import stage_body
from ..control.call import call_p
from ..core.trace import ThreadState, Tracer, ctx, typeof
from ..interpreters.checks import (
    KINDS, CheckEffect, OlympusRuntimeError, Site, check_p, check_program, explained, fields_of,
    first_run, looked_for, words_of,
)
from ..interpreters.passes import arrays_only, stores_of
from ..lax.comparison import select
from ..lax.convert import convert_element_type
from ..runtime.eager import PjitFunction
from ..types import dtypes
from ..types.shape import definitely_equal
from ..types.tree import tree_flatten, tree_unflatten
from ..types.tree_registry import register_pytree_node_class

with lazy_imports(__name__):       # where there are references
    from ..lax import refs as _refs


class CheckException(Exception):
    """A finding of a check. Its classes are the categories of errors that `checkify` looks for."""


class FailedCheckError(CheckException):
    """A `check` of the user's does not hold."""


class NaNError(CheckException):
    """An operation made a NaN."""


class OOBError(CheckException):
    """An index is outside of the indexed array."""


class DivisionByZeroError(CheckException):
    """A division by zero."""


class BatchedError(CheckException):
    """Failures of several elements: `error_mapping` has each by its index."""

    def __init__(self, error_mapping: dict[tuple[int, ...], CheckException]) -> None:
        self.error_mapping = error_mapping
        super().__init__("\n".join(f"at mapped index {', '.join(map(str, index))}: {error}"
                                   for index, error in error_mapping.items()))


ErrorCategory = type[CheckException]
# The kinds of checks, by their names in `interpreters.checks`.
CATEGORIES: dict[str, ErrorCategory] = {
    "user": FailedCheckError, "nan": NaNError, "index": OOBError, "div": DivisionByZeroError}

user_checks = frozenset([FailedCheckError])
nan_checks = frozenset([NaNError])
index_checks = frozenset([OOBError])
div_checks = frozenset([DivisionByZeroError])
float_checks = nan_checks | div_checks
automatic_checks = float_checks | index_checks
all_checks = automatic_checks | user_checks


@register_pytree_node_class
class Error:
    """Whether a program failed, and what: a pytree of two arrays, which under vmap are mapped.

    >>> import olympus.numpy as onp
    >>> from olympus.experimental import checkify
    >>> error, _ = checkify.checkify(lambda x: 1 / x, errors=checkify.div_checks)(onp.zeros(()))
    >>> error.get().splitlines()[0]
    'division by zero in div'
    """

    __slots__ = ("_code", "_words", "_sites")

    def __init__(self, code: ArrayLike, words: ArrayLike, sites: tuple[Site, ...]) -> None:
        self._code, self._words, self._sites = code, words, sites

    def get(self) -> str | None:
        """The message of the first failure, or None."""
        exception = self.get_exception()
        return None if exception is None else str(exception)

    def get_exception(self) -> CheckException | None:
        """The first failure as an exception of its category, or None; of mapped ones, each."""
        if isinstance(self._code, Tracer):
            raise TypeError(f"checkify: the error {self._code} is traced; one that is known is "
                            "required; return it from the transformed function, or use "
                            "checkify.check_error there.")
        # This waits for the program; the words are read only where it failed.
        code = np.asarray(self._code)
        if not code.any():
            return None
        words = np.asarray(self._words)
        if not code.shape:
            return self._exception(code, words)
        return BatchedError({index: self._exception(code[index], words[index])
                             for index in np.ndindex(code.shape) if code[index]})

    def parts(self) -> tuple[ArrayLike, ArrayLike, tuple[Site, ...]]:
        """The code, the words, and their meaning."""
        return self._code, self._words, self._sites

    def _exception(self, code: np.ndarray, words: np.ndarray) -> CheckException:
        site = self._sites[int(code) - 1]       # 0 is no failure
        return CATEGORIES[site.kind](explained(site, words))

    def throw(self) -> None:
        """Raise an `OlympusRuntimeError` with the message, if there is one."""
        check_error(self)

    def tree_flatten(self) -> tuple[tuple[ArrayLike, ArrayLike], tuple[Site, ...]]:
        """The arrays, and their meaning."""
        return (self._code, self._words), self._sites

    @classmethod
    def tree_unflatten(cls, metadata: tuple[Site, ...], data: Sequence[ArrayLike]) -> Error:
        """The error of these arrays."""
        code, words = data
        return cls(code, words, metadata)

    def __str__(self) -> str:
        return f"Error({self.get()})"


init_error = Error(np.int32(0), np.zeros(0, np.uint32), ())


@api_boundary
def checkify(f: Callable[P, R], errors: frozenset[ErrorCategory] = user_checks
             ) -> Callable[P, tuple[Error, R]]:
    """The function that returns an error besides its result, instead of failing or going on.

    Args:
      f: a function of pytrees of arrays, with `check`s in it, or without.
      errors: the errors to look for, a set of categories, as `user_checks`, `nan_checks`,
        `index_checks`, `div_checks` and their unions.

    Returns:
      A function of the same arguments that returns (error, result). `error.get()` is None, or says
      what failed first: the operation, the user's line, operands, the iteration of the loop.

    >>> f = checkify.checkify(lambda x, i: onp.log(x)[i], errors=checkify.all_checks)
    >>> error, _ = olympus.jit(f)(onp.array([1., 2.]), 5)
    >>> print(error.get().splitlines()[0][:64])
    out-of-bounds indexing for array of shape (2,): index 5 is out o
    """
    kinds = kinds_of("checkify", errors)
    return with_error(f, kinds)


def with_error(f: Callable[P, R], kinds: frozenset[str], quick: bool = False
               ) -> Callable[P, tuple[Error, R]]:
    """`checkify` of kinds by name.

    `quick`: the error of a program that may run twice says only whether there is one.
    """
    if not callable(f):
        raise TypeError(f"checkify: {clipped(f)} given; a function is required.")

    @wraps(f)
    def checked(*args: PyTree, **kwargs: PyTree) -> tuple[Error, R]:
        # Arguments are closed over: values that are known or no arrays stay so.
        # It is a part of the Context: functions traced within have programs of their own.
        outer = looked_for.swap_local(kinds)
        try:
            body = stage_body(lambda: f(*args, **kwargs), tree_flatten(())[1], [])
        finally:
            looked_for.set_local(outer)
        # Programs with effects may not run again, so their first run reports every error.
        once = any(not isinstance(e, CheckEffect) for e in body.program.effects)
        # Values of users' types that it closes over or returns stay whole: they may be traced.
        pure, stores = body.program, stores_of(body.program)
        pure = arrays_only(pure, whole=True)
        found = check_program(pure, kinds, quick and not once)
        program, sites = (pure, ()) if found is None else (found.program, found.sites)
        consts = [_refs.get_p.bind(c, view=_refs.WHOLE) if typeof(c).mutable else c
                  for c in body.consts]
        outs = call_p.bind(*consts, olympuspr=program, name=name_of(f))
        error = init_error      # if nothing in it can fail
        if found is not None:
            code, words, *outs = outs
            error = Error(code, words, sites)
        for i, place in stores.items():
            _refs.swap_p.bind(body.consts[i], outs[place], view=_refs.WHOLE)
        return error, tree_unflatten(body.out_tree, outs[:body.out_tree.num_leaves])

    return checked


def raising(compiled: PjitFunction, quick: PjitFunction, fun: Callable[..., PyTree]
            ) -> Callable[..., PyTree]:
    """A jitted function of (error, result) as one of the result, which raises the error.

    Args:
      compiled: the function.
      quick: a twin whose errors say only whether there is one, called first where the arguments can
        be given to `compiled` afterwards.
      fun: the user's function.
    """
    @wraps(fun, attributes=True)
    @api_boundary
    def call(*args: PyTree, **kwargs: PyTree) -> PyTree:
        # Traced, the error is the caller's: nobody knows yet whether there is one.
        traced = ctx.trace is not ThreadState.trace
        error, out = (compiled if traced else quick)(*args, **kwargs)
        if traced or error._sites or quick is compiled:
            check_error(error)
        elif error._code:       # of a quick program, which has no sites; this waits for it
            check_error(compiled(*args, **kwargs)[0])
            raise OlympusRuntimeError(
                f"jit: a check of {name_of(fun)} failed, and when it ran again, to say which, none "
                "did; a function of its arguments alone is required.")
        return out

    # The error is taken from a call's results; programs of `trace` and `lower` return it, too.
    def eval_shape(*args: PyTree, **kwargs: PyTree) -> object:
        return compiled.eval_shape(*args, **kwargs)[1]

    def clear_cache() -> None:
        quick.clear_cache()
        compiled.clear_cache()

    vars(call).update(trace=compiled.trace, lower=compiled.lower, explain=quick.explain,
                      cache_info=quick.cache_info, clear_cache=clear_cache, eval_shape=eval_shape)
    return call


def kinds_of(what: str, errors: object) -> frozenset[str]:
    """Names of checks, from names or categories."""
    names = {**{kind: kind for kind in KINDS},
             **{category: kind for kind, category in CATEGORIES.items()}}
    given: list[object] = [errors]      # one name, which as an iterable would be letters
    if isinstance(errors, Iterable) and not isinstance(errors, (str, type)):
        given = [*errors]
    if not all(isinstance(x, (str, type)) and x in names for x in given):
        raise ValueError(f"{what}: the checks {clipped(errors)} given; an iterable of "
                         f"{', '.join(map(repr, KINDS))}, or of categories of "
                         "experimental.checkify, is required.")
    return frozenset([names[x] for x in given])


@api_boundary
def check(pred: ArrayLike, msg: str, *fmt_args: PyTree, debug: bool = False,
          **fmt_kwargs: PyTree) -> None:
    """Fail with a message unless `pred` holds.

    Where `pred` is known it raises at once. In a compiled program it is looked at if that is
    checked: by `jit(checks={"user"})`, which raises, or `checkify`, which returns the error.

    Args:
      pred: a bool, of rank 0.
      msg: the message, with fields as `str.format` knows them.
      fmt_args, fmt_kwargs: arrays (or pytrees of them) for the fields.
      debug: look at it in checked programs only; elsewhere it is nothing.

    Raises:
      OlympusRuntimeError: where it does not hold.

    >>> @olympus.jit(checks={"user"})
    ... def f(x):
    ...     olympus.check(x > 0, "{x} is not positive", x=x)
    ...     return x ** 0.5
    >>> float(f(4.))
    2.0
    """
    what = "debug_check" if debug else "check"
    aval = typeof(pred)
    if aval.shape or not dtypes.is_bool(aval.dtype):
        raise TypeError(f"{what}: {what} takes a scalar pred as argument, got {aval}; a bool of "
                        "rank 0 is required; reduce it with olympus.numpy.all.")
    fields, tree = tree_flatten((fmt_args, fmt_kwargs))
    fields = _checked_fields(what, msg, fields, tree)
    site = Site("user", msg, source.user_frame(), fields_of(fields), tree)
    # Evaluated, a check that fails is bound, and raises there.
    if ctx.trace is ThreadState.trace and not isinstance(pred, Tracer) and (debug or bool(pred)):
        return
    # 0 where it holds, else the number of the only site.
    code = select(pred, *[convert_element_type(x, dtypes.as_dtype("int32")) for x in (0, 1)])
    check_p.bind(code, words_of(fields), sites=(site,), debug=debug)


def _checked_fields(what: str, msg: str, fields: Sequence[object], tree: PyTree) -> list[object]:
    """The values of a message's fields, which must be arrays, and fit it."""
    for x in fields:
        try:
            fits = dtypes.is_numeric(typeof(x).dtype) or dtypes.is_bool(typeof(x).dtype)
        except TypeError:
            fits = False
        if not fits:
            raise TypeError(f"{what}: Formatting arguments to checkify.check need to be PyTrees "
                            f"of arrays, but got {clipped(x)} of type {type(x)}; write other "
                            "values into the message.")
    # Tried with zeros: a message that does not fit fails here, not when it is needed.
    zeros = [np.zeros(typeof(x).shape, typeof(x).dtype)[()] for x in fields]
    args, kwargs = tree_unflatten(tree, zeros)
    try:
        msg.format(*args, **kwargs)
    except (LookupError, ValueError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{what}: the message {msg!r} given with {len(args)} values and the names "
            f"{sorted(kwargs)}; each of its fields must be one of them, and take its format "
            f"({type(error).__name__}: {error}).") from None
    return list(fields)


def debug_check(pred: ArrayLike, msg: str, *fmt_args: PyTree, **fmt_kwargs: PyTree) -> None:
    """`check` in checked programs, and nothing elsewhere.

    Args: pred, msg, fmt_args, fmt_kwargs: as `check` takes them.

    >>> checkify.debug_check(False, "not looked at")
    """
    check(pred, msg, *fmt_args, debug=True, **fmt_kwargs)


def check_error(error: Error) -> None:
    """Fail as the error says: raise, or in a checked program take the error into its own.

    Args: error: the error that a function of `checkify` returned.

    Raises:
      OlympusRuntimeError: where there is one.

    >>> error, _ = checkify.checkify(lambda x: checkify.check(x > 0, "not positive"))(1.)
    >>> checkify.check_error(error)
    """
    if not isinstance(error, Error):
        raise TypeError(f"check_error takes an Error as argument, got type {type(error)} instead; "
                        "give it the first result of a function of checkify.")
    if isinstance(error._code, Tracer) or ctx.trace is not ThreadState.trace:
        _bind(error)
    else:
        raise_error(error)


def _bind(error: Error) -> None:
    """Make a traced error the program's."""
    if not error._sites:        # nothing in its program can fail
        return
    code, words, sites = error.parts()
    shape = typeof(code).shape      # of errors that a scan has stacked, or a vmap that has ended
    if any(definitely_equal(n, 0) for n in shape):
        return
    if shape:
        (code, words), sites = first_run("element {} of the errors", shape, [code, words], sites)
    check_p.bind(code, words, sites=sites, debug=False)


def raise_error(error: Error) -> None:
    """Raise a known error."""
    exception = error.get_exception()
    if exception is not None:
        raise OlympusRuntimeError(str(exception)) from exception
