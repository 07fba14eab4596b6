"""The arguments of a jitted function: static, donated and dynamic, flattened and named.

`Signature` is a function with the declarations about its arguments and results; `Arguments` are the
arguments of one call.
"""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import index
from types import BuiltinFunctionType, FunctionType
from typing import Any, TypeAlias

import numpy as np

from ..base import lib
from ..base.typing import Array, ArrayLike, PyTree, Value
from ..base.util import bit_key, clipped, name_of
from ..core.context import Context, current_context
from ..core.trace import REFERENCES, Tracer
from ..lax.sharding import resolve_sharding
from ..types.avals import Aval
from ..types.layout import AutoLayout, Format, Layout
from ..types.mesh import current_mesh
from ..types.sharding import NamedSharding, PartitionSpec, Sharding, space_of
from ..types.tree import (
    flatten_arguments, flatten_axes, keystr, tree_flatten, tree_flatten_with_path, tree_unflatten,
)
from ..types.tree_registry import PyTreeDef, registering
from .arguments import abstract, name_in_code, parameter_name, parameters_of, too_large

# Structure and types of the dynamic arguments, the number of positional ones, static ones by their
# bits, and the Context: equal keys have one program.
ProgramKey: TypeAlias = tuple[PyTreeDef, tuple[Aval, ...], int, tuple, Context]


class Arguments:
    """One call's arguments, flattened: what tracing and the program's key are made of."""

    # `key` is what traces are kept by; `cacheable` says whether C++, which compares static
    # arguments by type and `==`, tells this call from calls with other keys.
    __slots__ = ("leaves", "avals", "in_tree", "statics", "static_kwargs", "arity", "key",
                 "cacheable")
    leaves: list[ArrayLike]
    avals: tuple[Aval, ...]
    in_tree: PyTreeDef
    statics: dict[int, object]
    static_kwargs: dict[str, object]
    arity: int
    key: ProgramKey
    cacheable: bool

    @property
    def positions(self) -> list[int]:
        """The positions of dynamic arguments."""
        return [i for i in range(self.arity) if i not in self.statics]

    def types(self) -> Arguments:
        """The same with types in place of values, for who keeps it longer than the call."""
        typed = copy.copy(self)
        leaves: list[Value] = list(self.avals)
        typed.leaves = leaves
        return typed

    def merged(self, dynamic: Sequence[PyTree]) -> list[PyTree]:
        """Positional arguments with the static ones back in their places."""
        if not self.statics:
            return list(dynamic)
        rest = iter(dynamic)
        return [self.statics[i] if i in self.statics else next(rest) for i in range(self.arity)]


ArrayImpl = lib.ArrayImpl
_SIMPLE = frozenset((int, bool, str, type(None)))   # types whose identity and == tell all
WHOLE = PartitionSpec()     # the meaning of None for `pjit` with an ambient mesh


class Signature:
    """A function, which of its arguments are static or donated, and where they and results are.

    `library` says that the function and its static arguments are Olympus's own.
    """

    def __init__(self, fun: Callable[..., PyTree], library: bool,
                 static_argnums: int | Sequence[int] | None,
                 static_argnames: str | Sequence[str] | None,
                 donate_argnums: int | Sequence[int] | None,
                 donate_argnames: str | Sequence[str] | None, in_shardings: PyTree,
                 out_shardings: PyTree) -> None:
        self.fun, self.library = fun, library
        self.name = name_of(fun)
        if library:
            self.name = self.name.lstrip("_")   # the user's function
        self.static_argnums, self.static_argnames = self._resolve(
            static_argnums, static_argnames, "static")
        self.donate_argnums, self.donate_argnames = self._resolve(
            donate_argnums, donate_argnames, "donate")
        both = [*{*self.static_argnums} & {*self.donate_argnums},
                *{*self.static_argnames} & {*self.donate_argnames}]
        if both:
            raise _static_and_donated(both[0], self.name)
        self.donates = bool(self.donate_argnums or self.donate_argnames)
        self.in_shardings, self.out_shardings = in_shardings, out_shardings
        # Checked here, so that a mistake is reported at the line with `jit`.
        self.has_formats = False
        for what, shardings in (("in", in_shardings), ("out", out_shardings)):
            for leaf in tree_flatten(shardings)[0]:
                self.has_formats |= isinstance(leaf, Format)
                _check_demand(f"{what}_shardings", leaf)

    @property
    def key(self) -> tuple[object, ...]:
        """A key that signatures of one function share if their programs are the same."""
        return (self.static_argnums, self.static_argnames, self.donate_argnums,
                self.donate_argnames,
                *map(_sharding_key, (self.in_shardings, self.out_shardings)))

    @functools.cached_property
    def parameters(self) -> list[inspect.Parameter] | None:
        """The function's parameters. Few calls of `jit` read them."""
        return parameters_of(self.fun)

    def _resolve(self, argnums: int | Sequence[int] | None, argnames: str | Sequence[str] | None,
                 what: str) -> tuple[tuple[int, ...], tuple[str, ...]]:
        """Argnums and argnames; one that is not given is read from the other by the parameters."""
        if argnums is None and argnames is None:
            return (), ()
        nums = indices(argnums, "jit", f"{what}_argnums")
        names = _parameter_names(argnames, f"{what}_argnames")
        # The library passes both: reading a signature is half the cost of its decorator.
        parameters = self.parameters if (nums or names) and not self.library else None
        if parameters is None:
            if names and argnums is None and what == "donate":
                raise ValueError(f"jit: donate_argnames {names} given; the signature of "
                                 f"{self.name} cannot be read, so that they name no position; Pass "
                                 "donate_argnums instead.")
            return nums, names
        variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters)
        keywords = any(p.kind is p.VAR_KEYWORD for p in parameters)
        count = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)
        for i in nums:
            if not variadic and not -count <= i < count:
                raise ValueError(f"jit: Jitted function has {what}_argnums={nums}, but only "
                                 f"accepts {count} positional arguments: {self.name};\n  give "
                                 f"indices in range({-count}, {count}).")
            if variadic and not -2**31 <= i < 2**31:
                raise ValueError(f"jit: {what}_argnums has {i}; an index below 2**31 is required; "
                                 "count from the first argument, or from the last.")
        if not variadic:    # else each call has its own number of arguments
            nums = tuple(i + count if i < 0 else i for i in nums)
        unnamed = {p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.VAR_POSITIONAL)}
        known = [p.name for p in parameters if p.name not in unnamed]
        for name in names:
            if name in unnamed or (name not in known and not keywords):
                why = ("These are positional-only" if name in unnamed else
                       "Function does not take these args")
                raise ValueError(f"jit: Jitted function has invalid argnames {{{name!r}}} in "
                                 f"{what}_argnames.\n  {why}; name some of {', '.join(known)} of "
                                 f"{self.name}.")
        return named_twice(parameters, None if argnums is None else nums,
                           None if argnames is None else names)

    def _positions(self, what: str, argnums: tuple[int, ...], count: int) -> set[int]:
        """The positions that argnums name in a call of `count` positional arguments."""
        if argnums and min(argnums) < -count:
            raise ValueError(f"jit: {what}_argnums has {min(argnums)}; {self.name} is called with "
                             f"{count} positional arguments; give an index in that range.")
        return {i + count if i < 0 else i for i in argnums}

    def plain(self, args: tuple, kwargs: dict[str, PyTree]) -> tuple[tuple | None, list[Array]]:
        """A shorter key of a call, and its leaves, if it has only arrays and simple static values.

        Otherwise the key is None. Library functions under a transformation are called so.
        """
        key: list[object] = [current_context()]
        leaves: list[Array] = []
        for i, x in enumerate(args):
            kind = type(x)
            if kind is ArrayImpl or isinstance(x, Tracer) or kind in REFERENCES:
                key.append(x.aval)
                leaves.append(x)
            elif kind in _SIMPLE and i in self.static_argnums:
                key.append((kind, x))       # 1, 1.0 and True are equal, and three programs
            else:
                return None, leaves
        # With a dynamic keyword, places of leaves are unknown here: the whole key is used.
        for name, x in kwargs.items():
            if type(x) not in _SIMPLE or name not in self.static_argnames:
                return None, leaves
            key.append((name, type(x), x))
        return tuple(key), leaves

    def arguments(self, args: tuple, kwargs: dict[str, PyTree]) -> Arguments:
        """Flatten a call: dynamic leaves with their avals, static values, and the key."""
        arguments = Arguments()
        if self.static_argnums or self.static_argnames:
            statics = self._positions("static", self.static_argnums, len(args))
            dynamic = tuple([a for i, a in enumerate(args) if i not in statics])
            arguments.statics = {i: args[i] for i in statics if i < len(args)}
            arguments.static_kwargs = {k: kwargs[k] for k in self.static_argnames if k in kwargs}
            kwargs = {k: v for k, v in kwargs.items() if k not in arguments.static_kwargs}
        else:
            dynamic, arguments.statics, arguments.static_kwargs = args, {}, {}
        # Part of the key: without static arguments, calls of two arities may have one tree.
        arguments.arity = len(args)
        arguments.leaves, arguments.in_tree = flatten_arguments("jit", (dynamic, kwargs), self.name)
        try:
            arguments.avals = tuple([abstract(x) for x in arguments.leaves])
        except (TypeError, OverflowError):
            raise self._leaf_error(arguments, kwargs, dynamic) from None
        if self.in_shardings is not None:
            arguments.avals = tuple(map(_in_memory, arguments.leaves, arguments.avals,
                                        self.input_shardings(arguments)))
        static_key, arguments.cacheable = (), True
        if arguments.statics or arguments.static_kwargs:
            static_key, arguments.cacheable = self._static_key(arguments)
        arguments.key = (arguments.in_tree, arguments.avals, arguments.arity, static_key,
                         current_context())
        return arguments

    def _static_key(self, arguments: Arguments) -> tuple[tuple, bool]:
        # Before the user's values take the places of C++'s stand-ins, which are exact.
        exact = self._exact(arguments.statics, arguments.static_kwargs)
        arguments.statics = {i: _given(value) for i, value in arguments.statics.items()}
        arguments.static_kwargs = {
            name: _given(value) for name, value in arguments.static_kwargs.items()}
        # Sorted: a call with keywords in another order is the same call.
        items = [*arguments.statics.items(), *sorted(arguments.static_kwargs.items())]
        for where, value in items:
            try:
                hash(value)
            except TypeError:
                name = self.argument_name(where)
                raise ValueError(
                    f"jit: Non-hashable static arguments are not supported:\n  {name} of "
                    f"{self.name} is {clipped(value)} of type {type(value).__name__};\n"
                    "  pass a tuple or another hashable, or make it dynamic.") from None
        return tuple((where, bit_key(value)) for where, value in items), exact

    def _exact(self, *statics: Mapping[Any, object]) -> bool:
        return all(_exact(x, self.library) for values in statics for x in values.values())

    def for_cpp(self, arguments: Arguments, args: Sequence[PyTree], kwargs: dict[str, PyTree]
             ) -> tuple[list[PyTree], dict[str, PyTree], list[Item]] | None:
        """The arguments as C++ is to know them, and the items in them; None if it still cannot."""
        items: list[Item] = []
        statics, static_kwargs = [
            {where: _value_for_cpp(value, items) for where, value in values.items()}
            for values in (arguments.statics, arguments.static_kwargs)]
        if not self._exact(statics, static_kwargs):
            return None
        return ([statics.get(i, x) for i, x in enumerate(args)], {**kwargs, **static_kwargs},
                items)

    def argument_name(self, position: int | str) -> str:
        """The parameter that an argument is for, given by position or keyword."""
        return name_in_code(self.fun, position) or parameter_name(self.parameters, position)

    def leaf_names(self, arguments: Arguments) -> tuple[str, ...]:
        """A name for each dynamic leaf: the parameter and the path below it."""
        dynamic, kwargs = tree_unflatten(arguments.in_tree, arguments.leaves)
        names = []
        for position, arg in zip(arguments.positions, dynamic):
            base = self.argument_name(position)
            names += [base + keystr(path) for path, _ in tree_flatten_with_path(arg)[0]]
        for key in sorted(kwargs):      # as a tree has the keys of a dict
            base = self.argument_name(key)
            names += [base + keystr(path) for path, _ in tree_flatten_with_path(kwargs[key])[0]]
        return tuple(names)

    def _leaf_error(self, arguments: Arguments, kwargs: dict[str, PyTree], dynamic: tuple
                    ) -> Exception:
        # Paths and names are made only here, where a leaf has been refused.
        trees = [(self.argument_name(i), a) for i, a in zip(arguments.positions, dynamic)]
        trees += [(self.argument_name(key), a) for key, a in kwargs.items()]
        for name, arg in trees:
            for path, leaf in tree_flatten_with_path(arg)[0]:
                try:
                    abstract(leaf)
                except OverflowError:
                    return too_large("jit", leaf, name + keystr(path))
                except TypeError:
                    if self.library:
                        return TypeError(name)      # the function itself names its parameters
                    return TypeError(
                        f"jit: Error interpreting argument to {self.name} as an abstract array. "
                        f"The problematic value is of type {type(leaf)} and was passed to the "
                        f"function at path {name}{keystr(path)}.\n  It is {leaf!r:.80}; arrays and "
                        f"Python numbers are required; {registering(leaf)}mark it static "
                        "(static_argnums, static_argnames), or put it into the aux data of a "
                        "pytree node.")
        return TypeError(f"jit: an argument of {self.name} is not an array")

    def donated(self, arguments: Arguments) -> tuple[bool, ...]:
        """For each leaf, whether its buffer may be reused; of a reference its writes say it."""
        if not self.donates:
            return (False,) * len(arguments.leaves)
        dynamic, kwargs = tree_unflatten(arguments.in_tree, arguments.leaves)
        donated = self._positions("donate", self.donate_argnums, arguments.arity)
        if both := donated & arguments.statics.keys():
            raise _static_and_donated(self.argument_name(min(both)), self.name)
        flags: list[bool] = []
        for position, arg in zip(arguments.positions, dynamic):
            flags += [position in donated] * len(tree_flatten(arg)[0])
        for key in sorted(kwargs):
            flags += [key in self.donate_argnames] * len(tree_flatten(kwargs[key])[0])
        return tuple([given and not a.mutable
                      for given, a in zip(flags, arguments.avals, strict=True)])

    def input_shardings(self, arguments: Arguments) -> list[Sharding | None]:
        """The sharding that each leaf must have, or None; empty where nothing is demanded."""
        if self.in_shardings is None:
            return []
        positional, keywords = arguments.in_tree.children()
        if keywords.num_leaves:
            raise ValueError(f"jit: keyword arguments of {self.name} given; jit does not support "
                             "kwargs when in_shardings is specified; make dynamic arguments "
                             "positional.")
        return _shardings_of_leaves("in_shardings", positional, self.in_shardings)

    def input_layouts(self, arguments: Arguments) -> list[Layout | AutoLayout | None]:
        """The `Layout` that each leaf must have, or None; empty where nothing is demanded."""
        if not self.has_formats:
            return []
        layouts = self._layouts("in_shardings", arguments.in_tree.children()[0], self.in_shardings)
        _check_layouts("arguments", layouts, arguments.avals, self.leaf_names(arguments))
        return layouts

    def output_shardings(self, out_tree: PyTreeDef) -> list[Sharding | None]:
        """The sharding that each result must have, or None; empty where nothing is demanded."""
        if self.out_shardings is None:
            return []
        return _shardings_of_leaves("out_shardings", out_tree, self.out_shardings)

    def output_layouts(self, out_tree: PyTreeDef, avals: Sequence[Aval], paths: Sequence[str]
                       ) -> list[Layout | AutoLayout | None]:
        """The `Layout` that each result must have, or None; empty where nothing is demanded."""
        if not self.has_formats:
            return []
        layouts = self._layouts("out_shardings", out_tree, self.out_shardings)
        _check_layouts("results", layouts, avals, paths)
        return layouts

    def _layouts(self, what: str, tree: PyTreeDef, demands: PyTree
                 ) -> list[Layout | AutoLayout | None]:
        return [s.layout if isinstance(s, Format) else None
                for s in flatten_axes(f"jit {what}", tree, demands)]


def _static_and_donated(argument: int | str, name: str) -> ValueError:
    return ValueError("jit: static_argnames and donate_argnames cannot intersect: argument "
                      f"{argument!r} of {name} is in both; static arguments have no buffer.")


def indices(value: Any, what: str, option: str) -> tuple[int, ...]:
    """The positions that an option names, an int or several; TypeError for anything else."""
    if value is None:
        return ()
    values = value if isinstance(value, (tuple, list)) else (value,)
    try:
        return tuple(map(index, values))
    except TypeError:
        raise TypeError(f"{what}: {option}={value!r} given; an int or a sequence of ints is "
                        "required; name arguments with static_argnames of jit instead.") from None


def named_twice(parameters: Sequence[inspect.Parameter], nums: Sequence[int] | None,
                names: Sequence[str] | None) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Arguments by position and by keyword; one that is None is read from the other.

    So an argument that one given way names is meant however a call passes it.
    """
    positional = [p for p in parameters
                  if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if nums is None:
        known = [p.name for p in positional]
        nums = [known.index(n) for n in names or () if n in known]
    elif names is None:
        names = [positional[i].name for i in nums if 0 <= i < len(positional)
                 and positional[i].kind is not inspect.Parameter.POSITIONAL_ONLY]
    return tuple(dict.fromkeys(nums)), tuple(dict.fromkeys(names or ()))


def _parameter_names(value: str | Sequence[str] | None, what: str) -> tuple[str, ...]:
    if value is None:
        return ()
    values = (value,) if isinstance(value, str) or not isinstance(value, Iterable) else tuple(value)
    if not all(isinstance(v, str) for v in values):
        raise TypeError(f"jit: {what}={value!r} given; a string or strings are required.")
    return values


def _check_demand(what: str, leaf: object) -> None:
    """TypeError or ValueError for a leaf of in_shardings or out_shardings that says nothing."""
    if isinstance(leaf, (Layout, AutoLayout)):
        raise ValueError(f"jit: {leaf} given; `olympus.jit` does not accept device-local layouts "
                         "directly: a Format is required; write Format(layout, sharding).")
    if not isinstance(leaf, (Sharding, PartitionSpec, Format)):
        raise TypeError(f"jit: {what} leaf specifications are expected to be PartitionSpec "
                        f"instances or None, but got {leaf}; a Sharding or a Format will do, too.")
    spec = leaf.spec if type(leaf) is NamedSharding else leaf
    if isinstance(spec, PartitionSpec) and PartitionSpec.UNCONSTRAINED in spec:
        raise ValueError(f"jit: Unconstrained dims are not allowed when passed to {what}: {leaf}; "
                         "use lax.with_sharding_constraint within the function.")


def _shardings_of_leaves(what: str, tree: PyTreeDef, shardings: PyTree) -> list[Sharding | None]:
    """The sharding of each leaf, or None."""
    found = [s.sharding if isinstance(s, Format) else s
             for s in flatten_axes(f"jit {what}", tree, shardings)]
    # `pjit` outside of a mesh demands nothing.
    return [None if s is None or s is WHOLE and current_mesh() is None else
            resolve_sharding(f"jit {what}", s) for s in found]


def _check_layouts(what: str, layouts: Sequence[Layout | AutoLayout | None], avals: Sequence[Aval],
                   names: Sequence[str]) -> None:
    for layout, aval, name in zip(layouts, avals, names, strict=True):
        try:
            if isinstance(layout, Layout):
                layout.check_compatible_aval(aval.shape)
        except ValueError as error:
            raise ValueError(f"jit: one of the {what}, {name}, is incompatible with its layout: "
                             f"{error}") from None


def _in_memory(leaf: object, aval: Aval, sharding: Sharding | None) -> Aval:
    """The aval of an argument, in the memory where it is put if it is nowhere yet."""
    if sharding is None or isinstance(leaf, Tracer) or (
            getattr(leaf, "sharding", None) is not None):
        return aval
    return aval.update(memory_space=space_of(sharding))


def _sharding_key(shardings: PyTree) -> object:
    if shardings is None:
        return None
    leaves, tree = tree_flatten(shardings)
    return tuple(leaves), tree


def _exact(value: object, library: bool) -> bool:
    """Whether C++'s comparison (type and ==) tells such a value from every other.

    Users may pass (1,) and (True,), which it does not tell apart; our library passes only ints.
    """
    if isinstance(value, tuple):
        if library:
            return all(type(v) is not bool and _exact(v, library) for v in value)
        return all(map(_exact_item, value))
    if isinstance(value, (float, complex)):     # NaN is not itself, and 0.0 is -0.0
        return value == value and value.real != 0 and (
            isinstance(value, float) or value.imag != 0)
    return not isinstance(value, np.generic)    # which have NaN and zeros with signs as well


def _exact_item(value: object) -> bool:
    return type(value) in _EXACT or (type(value) is tuple and all(map(_exact_item, value)))


class Item:
    """An item of a tuple as C++ is to know it: equal only to items of its type and bits.

    While asleep it equals no item of the user's.
    """

    __slots__ = ("value", "kind", "key", "asleep")
    __array_ufunc__ = None      # numbers of NumPy leave the comparison to this class

    def __init__(self, value: object) -> None:
        self.value, self.kind, self.key, self.asleep = value, type(value), bit_key(value), True

    def __hash__(self) -> int:
        return hash(self.value)     # C++ looks for the user's tuple, by the hash of that

    def __eq__(self, other: object) -> bool:
        if type(other) is not self.kind or self.asleep:
            return type(other) is Item and other.key == self.key
        # Equal ints of one type have equal bits.
        return other == self.value if self.kind is int else bit_key(other) == self.key


# Equal values of these types are the same, and no value of another type equals one.
_EXACT = (str, bytes, type(None), type, FunctionType, BuiltinFunctionType, Item)


def _value_for_cpp(value: Any, items: list[Item]) -> object:
    """The stand-in of a static argument for C++; the items in it go to the list."""
    kind = type(value)
    # A class that compares in its own way has no stand-in.
    if kind.__eq__ is not tuple.__eq__ or kind.__hash__ is not tuple.__hash__:
        return value
    comparable = [x if _exact_item(x) else Item(x) for x in value]
    items += [x for x in comparable if type(x) is Item]
    return tuple.__new__(kind, comparable)       # constructors, as of named tuples, may take others


def _given(value: object) -> object:
    """The user's static argument, from its stand-in for C++."""
    if not isinstance(value, tuple) or Item not in map(type, value):
        return value
    return tuple.__new__(type(value), [x.value if type(x) is Item else x for x in value])
