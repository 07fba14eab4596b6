"""Functions with transformations around them: what libraries with interpreters of their own write
wrappers in, instead of closures.

A transformation is a generator function: it yields the arguments for the function inside, gets its
result, and yields its own. Those called `2` are plain functions that take the function inside.
What one has to say besides (the tree of the results) goes to a `Store`, read through a thunk.
"""
# What `functools.wraps` made has attributes that checkers do not know of.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Generator, Hashable
from typing import Any, TypeAlias

from ..base.typing import PyTree, R, T
from ..base.util import ByKey, Memo

_NOTHING: Any = object()
# A generator function: it yields arguments, gets a result, and yields its own.
Steps: TypeAlias = Callable[..., Generator[PyTree, PyTree, None]]


class StoreException(Exception):
    """A store was read before it was filled, or filled twice."""


class Store:
    """A place for one value, filled while a function runs."""

    __slots__ = ("_value",)

    def __init__(self) -> None:
        self._value = _NOTHING

    def store(self, value: object) -> None:
        if self._value is not _NOTHING:
            raise StoreException("linear_util: a store is filled a second time; a wrapped function "
                                 "may be called once; wrap it again for each call.")
        self._value = value

    def reset(self) -> None:
        self._value = _NOTHING

    @property
    def val(self) -> object:
        if self._value is _NOTHING:
            raise StoreException("linear_util: a store is read before the function ran; call the "
                                 "wrapped function first.")
        return self._value


class WrappedFun(ByKey):
    """A function, the transformations around it, outermost first, and their stores.

    >>> from olympus.extend.linear_util import wrap_init
    >>> wrap_init(lambda x: x + 1)
    WrappedFun(<lambda>, 0 transformations)
    """

    __slots__ = ("f", "f_transformed", "transforms", "stores", "params", "in_type", "debug_info")

    def __init__(self, f: Callable[..., PyTree], f_transformed: Callable[..., PyTree],
                 transforms: tuple[Hashable, ...], stores: tuple[Store | None, ...],
                 params: tuple[tuple[str, PyTree], ...], in_type: object, debug_info: object
                 ) -> None:
        self.f, self.f_transformed, self.transforms = f, f_transformed, transforms
        self.stores, self.params = stores, params
        self.in_type, self.debug_info = in_type, debug_info

    @property
    def __name__(self) -> str:
        return getattr(self.f, "__name__", "<unnamed wrapped function>")

    def wrap(self, gen: Callable[..., PyTree], gen_static_args: tuple[object, ...],
             out_store: Store | None) -> WrappedFun:
        """This function inside one transformation more, of the kind called `2`."""
        statics = gen_static_args if out_store is None else (out_store, *gen_static_args)
        return WrappedFun(self.f, functools.partial(gen, self.f_transformed, *statics),
                          ((gen, gen_static_args), *self.transforms), (out_store, *self.stores),
                          self.params, None, self.debug_info)

    def populate_stores(self, stores: tuple[Store | None, ...]) -> None:
        """Fill the stores with the values of an equal function's stores."""
        for mine, other in zip(self.stores, stores, strict=True):
            if mine is not None and other is not None:
                mine.store(other.val)

    def replace_debug_info(self, dbg: object) -> WrappedFun:
        return WrappedFun(self.f, self.f_transformed, self.transforms, self.stores, self.params,
                          self.in_type, dbg)

    def call_wrapped(self, *args: PyTree, **kwargs: PyTree) -> PyTree:
        """Call the function with all that is around it."""
        return self.f_transformed(*args, **kwargs)

    def _key(self) -> tuple[object, ...]:
        # Not the stores: of functions that are equal, one's fill the other's.
        return self.transforms, self.f, self.params, self.in_type

    def __repr__(self) -> str:
        return f"WrappedFun({self.__name__}, {len(self.transforms)} transformations)"


def wrap_init(f: Callable[..., PyTree], params: dict[str, PyTree] | None = None, *,
              debug_info: object = None) -> WrappedFun:
    """A function without transformations around it, given keyword arguments for good.

    Args:
      f: the function.
      params: keyword arguments that it is always given.
      debug_info: what programs made of it are called; kept as given.

    >>> wrap_init(lambda x, y: x + y, {"y": 2}).call_wrapped(1)
    3
    """
    if not params:
        return WrappedFun(f, f, (), (), (), None, debug_info)
    return WrappedFun(f, functools.partial(f, **params), (), (), tuple(sorted(params.items())),
                      None, debug_info)


def _driven(gen: Steps, f: Callable[..., PyTree], *args: PyTree, **kwargs: PyTree) -> PyTree:
    """The last thing that a generator yields, which gets the result of `f` in between."""
    # The generator stops at its second yield. The code behind it does not run, except `finally`
    # blocks, which run when the generator is collected.
    steps = gen(*args, **kwargs)
    inner_args, inner_kwargs = next(steps)
    return steps.send(f(*inner_args, **inner_kwargs))


def _driven_with_aux(gen: Steps, f: Callable[..., PyTree], store: Store, *args: PyTree,
                     **kwargs: PyTree) -> PyTree:
    out, aux = _driven(gen, f, *args, **kwargs)
    store.store(aux)
    return out


class _Of(ByKey):
    """A generator as a transformation of the kind called `2`; equal for equal generators."""

    __slots__ = ("drive", "gen")

    def __init__(self, drive: Callable[..., PyTree], gen: Steps) -> None:
        self.drive, self.gen = drive, gen

    def __call__(self, *args: PyTree, **kwargs: PyTree) -> PyTree:
        return self.drive(self.gen, *args, **kwargs)

    def _key(self) -> tuple[Any, ...]:
        return self.drive, self.gen


def _transformation(gen: Steps, fun: WrappedFun, *gen_static_args: object) -> WrappedFun:
    """`fun` inside the generator `gen(*gen_static_args, *args, **kwargs)`."""
    return fun.wrap(_Of(_driven, gen), gen_static_args, None)


def _transformation2(gen: Callable[..., PyTree], fun: WrappedFun, *gen_static_args: object
                     ) -> WrappedFun:
    """`fun` inside `gen(fun, *gen_static_args, *args, **kwargs)`."""
    return fun.wrap(gen, gen_static_args, None)


def _transformation_with_aux(gen: Steps, fun: WrappedFun, *gen_static_args: object
                             ) -> tuple[WrappedFun, Callable[[], object]]:
    """`fun` inside a generator that yields (result, aux) at the end; and a thunk of aux."""
    store = Store()
    return fun.wrap(_Of(_driven_with_aux, gen), gen_static_args, store), lambda: store.val


def _transformation_with_aux2(gen: Callable[..., PyTree], fun: WrappedFun, *gen_static_args: object,
                              use_eq_store: bool = False, unk_names: bool = False
                              ) -> tuple[WrappedFun, Callable[[], object]]:
    """`fun` inside `gen(fun, store, *gen_static_args, *args, **kwargs)`; and a thunk of its stored
    value.
    """
    store = Store()
    return fun.wrap(gen, gen_static_args, store), lambda: store.val


def _decorator(apply: Callable[..., Any]) -> Callable[..., Any]:
    return functools.wraps(apply)(functools.partial(functools.partial, apply))


transformation = _decorator(_transformation)
transformation2 = _decorator(_transformation2)
transformation_with_aux = _decorator(_transformation_with_aux)
transformation_with_aux2 = _decorator(_transformation_with_aux2)


def merge_linear_aux(aux1: Callable[[], T], aux2: Callable[[], T]) -> tuple[bool, T]:
    """Which of two stores was filled: (True, value of the first) or (False, of the second).

    Args: aux1, aux2: what gives the value of a store, or raises StoreException while it is empty.
    Returns: Whether it is the first that is filled, and the value.

    >>> from olympus.extend.linear_util import StoreException, merge_linear_aux
    >>> def empty(): raise StoreException("empty")
    >>> merge_linear_aux(empty, lambda: "value")
    (False, 'value')
    """
    filled = []
    for first, thunk in ((True, aux1), (False, aux2)):
        with contextlib.suppress(StoreException):
            filled.append((first, thunk()))
    if len(filled) != 1:
        raise StoreException(f"merge_linear_aux: {len(filled)} of two stores are filled; exactly "
                             "one is required.")
    return filled[0]


def cache(call: Callable[..., R], *, explain: Callable[..., object] | None = None
          ) -> Callable[..., R]:
    """`call(fun, *args)` with its results kept for equal functions and arguments.

    `explain`, if given, is called with what `call` is called with, whenever it is called.

    Args:
      call: a function of a `WrappedFun` and hashable arguments.
      explain: a function of the same, or None.
    Returns: The function with its cache, which `cache_clear()` empties.

    >>> from olympus.extend.linear_util import cache, wrap_init
    >>> slow = cache(lambda fun, x: print("called") or fun.call_wrapped(x))
    >>> fun = wrap_init(abs)
    >>> slow(fun, -1), slow(fun, -1)
    called
    (1, 1)
    """
    memo = Memo(4096)

    @functools.wraps(call)
    def cached(fun: WrappedFun, *args: PyTree) -> R:
        key = fun, *args
        known = memo.get(key)
        if known is None:
            if explain is not None:
                explain(fun, *args)
            out = call(fun, *args)
            # Filled by the call. An equal function is not run: its own are filled from these.
            known = memo[key] = out, fun.stores
        else:
            fun.populate_stores(known[1])
        return known[0]

    cached.cache_clear = memo.cache_clear
    return cached
