"""Frozen dataclasses as pytrees: fields are children, or structure where they are static."""

from __future__ import annotations

import dataclasses
import difflib
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, dataclass_transform, overload

from ..base.typing import P, Params
from ..base.util import clipped, wraps
from .tree_registry import register_dataclass, static as static_field

T = TypeVar("T")
_plain_field: Callable[..., Any] = dataclasses.field    # whose overloads are about its defaults


def field(*, static: bool = False, **kwargs: object) -> Any:
    """A field of a `struct.dataclass`: a child of the tree or, with `static`, structure.

    Args:
      static: whether the value is part of the tree's structure. Such values must be hashable; they
        are compared by `==`, and `jit` compiles again for others.
      **kwargs: as for `dataclasses.field` (`default`, `default_factory`, `kw_only`, …).
    Returns: A field, to be written after `name: type =`.

    >>> struct.field(static=True, default="tanh").metadata["static"]
    True
    """
    return (static_field if static else _plain_field)(**kwargs)


@overload
def dataclass(cls: type[T], /) -> type[T]: ...
@overload
def dataclass(cls: None = None, /, **options: object) -> Callable[[type[T]], type[T]]: ...
@dataclass_transform(frozen_default=True, field_specifiers=(field, static_field, dataclasses.field))
def dataclass(cls: type[T] | None = None, /, **options: object
              ) -> type[T] | Callable[[type[T]], type[T]]:
    """Class decorator: a frozen dataclass that is a pytree, with a method `replace`.

    Fields are children; fields declared `field(static=True)` are structure, and are hashed when a
    value is made. Fields of `init=False` are neither: `__post_init__` computes them, also when a
    transformation builds the tree again, with tracers or other objects as children.

    Args:
      cls: the class.
      **options: as for `dataclasses.dataclass` (`kw_only`, `eq`, `repr`, …); it is always frozen.

    Raises:
      TypeError: for `frozen=False`; for an `__init__` that does not take the fields by their
        names; where a value is made, for a static field that cannot be hashed.

    >>> from olympus import struct
    >>> @struct.dataclass
    ... class Dense:
    ...     w: olympus.Array
    ...     b: olympus.Array
    ...     activation: str = struct.field(static=True, default="tanh")
    ...     def __call__(self, x):
    ...         return getattr(onp, self.activation)(x @ self.w + self.b)
    >>> dense = Dense(onp.eye(2), onp.zeros(2))
    >>> olympus.grad(lambda dense: dense(onp.array([0.0, 1.0])).sum())(dense).b
    Array([1.       , 0.4199743], dtype=float32)
    >>> dense.replace(activation="exp")(onp.array([0.0, 1.0]))
    Array([1.       , 2.7182817], dtype=float32)
    """
    if cls is None:
        return lambda cls: _struct(cls, options)
    return _struct(cls, options)


def _struct(cls: type[T], options: Params) -> type[T]:
    what = "struct.dataclass"
    if not isinstance(cls, type):
        raise TypeError(f"{what}: got {clipped(cls)} of type {type(cls).__name__}; a class is "
                        "required; options are given by name.")
    if options.setdefault("frozen", True) is not True:
        raise TypeError(f"{what}: frozen={options['frozen']} given for {cls.__name__}; a pytree's "
                        "class is frozen, because transformations work on copies; "
                        "use x.replace(field=value).")
    made: Any = dataclasses.dataclass(**options)(cls)
    fields = [f.name for f in dataclasses.fields(made) if f.init]
    try:
        inspect.signature(made).bind(**dict.fromkeys(fields))
    except TypeError as error:
        raise TypeError(f"{what}: {cls.__name__} cannot be made of its fields "
                        f"{', '.join(fields)}: {error}; as transformations do; leave __init__ to "
                        "the decorator, and write a classmethod for other arguments.") from None
    checked = [f.name for f in dataclasses.fields(made) if f.metadata.get("static")]
    if checked and "__init__" in vars(made):
        made.__init__ = _with_check(made.__init__, made, checked)
    if not hasattr(made, "replace"):
        made.replace = _replace
    return register_dataclass(made)


def _with_check(init: Callable[P, None], cls: type, checked: list[str]) -> Callable[P, None]:
    """The `__init__` of a class, which hashes static fields where it has made such a value."""

    @wraps(init)
    def made(*args: P.args, **kwargs: P.kwargs) -> None:
        init(*args, **kwargs)
        self = args[0]
        if type(self) is cls:       # a subclass has an `__init__` and fields of its own
            for name in checked:
                try:
                    hash(getattr(self, name))
                except TypeError as error:
                    raise _unhashable(self, name, error) from None

    return made


def _unhashable(value: object, name: str, error: TypeError) -> TypeError:
    content = getattr(value, name)
    instead = ("make the field a child: leave out static=True"
               if hasattr(content, "dtype") or hasattr(content, "aval") else
               "write a tuple instead of a list, a tuple of pairs or a frozen dataclass instead of "
               "a dict, or make the field a child: leave out static=True")
    return TypeError(f"{type(value).__name__}: static field {name}={clipped(content)} of type "
                     f"{type(content).__name__} given ({error}); a hashable value is required, "
                     f"because static fields are part of the structure; {instead}.")


def _replace(self: T, /, **changes: object) -> T:
    """A copy with other values in the named fields.

    Args: **changes: values by the names of fields.

    Returns:
      A value of the same class. TypeError for a name that is no field, or one of `init=False`.
    """
    its: Any = self         # no protocol has the fields of dataclasses in general
    fields = {f.name: f.init for f in dataclasses.fields(its)}
    for name in changes:
        if not fields.get(name, False):
            near = difflib.get_close_matches(name, [f for f, init in fields.items() if init], 1)
            raise TypeError(
                f"{type(self).__name__}.replace: {name} given; "
                + ("it is computed from others (init=False)" if name in fields else
                   f"a field is required, one of {', '.join(f for f in fields if fields[f])}")
                + (f"; use {near[0]}." if near else "."))
    return dataclasses.replace(its, **changes)


_replace.__name__ = _replace.__qualname__ = "replace"
