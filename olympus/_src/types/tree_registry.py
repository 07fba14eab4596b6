"""Which types are containers: Olympus's own pytree registry, and the ways to add a type to it.

A pytree is a value seen as a tree: the containers are its nodes, everything else a leaf. The
registry is jaxlib's C++ table, so flattening enters Python only for custom nodes. It is apart from
the table that jaxlib's other users share: a registration here cannot clash with theirs. Read next:
`tree` (the verbs) and `tree_paths`.
"""

import dataclasses
import functools
import operator
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ..base import lib
from ..base.docstrings import complete_docstrings
from ..base.lib import DictKey
from ..base.typing import PyTree

Typ = TypeVar("Typ", bound=type)
Pair = tuple[Any, Any]
Flatten = Callable[[Any], tuple[Iterable[Any], Hashable]]
FlattenWithKeys = Callable[[Any], tuple[Iterable[Pair], Hashable]]
Unflatten = Callable[[Any, Any], Any]

if TYPE_CHECKING:

    class PyTreeDef:
        """The structure of a pytree, without its leaves (a C++ class; these are its types)."""

        num_leaves: int
        num_nodes: int

        def unflatten(self, leaves: Iterable[PyTree], /) -> PyTree: ...
        def flatten_up_to(self, tree: PyTree, /) -> list[PyTree]: ...
        def children(self) -> list["PyTreeDef"]: ...
        def node_data(self) -> tuple[type, Any] | None: ...
        def compose(self, inner: "PyTreeDef", /) -> "PyTreeDef": ...
        @staticmethod
        def from_node_data_and_children(registry: object, node_data: tuple[type, object] | None,
                                        children: Iterable["PyTreeDef"], /) -> "PyTreeDef": ...
        def walk(self, f_node: Callable[..., object], f_leaf: Callable[..., object] | None,
                 leaves: Iterable[PyTree], /) -> object: ...

else:
    PyTreeDef = lib.PyTreeDef

registry: Any = lib.PyTreeRegistry(
    enable_none=True, enable_tuple=True, enable_namedtuple=True, enable_list=True, enable_dict=True
)
# A PyTreeDef pickles its registry by name: these two attributes say where this one is found.
registry.__module__ = __name__
registry.__name__ = "registry"

# The registry by which C++ flattens a jitted call's arguments: the same nodes, and key arrays
# besides, which hold an array that C++ can pass on. To users a key array is a leaf.
dispatch_registry: Any = lib.PyTreeRegistry(
    enable_none=True, enable_tuple=True, enable_namedtuple=True, enable_list=True, enable_dict=True
)
_registries = (registry, dispatch_registry)

# Field names of registered dataclasses, in child order: errors name them, which a PyTreeDef lacks.
registered_field_names: dict[type, tuple[str, ...]] = {}
# The functions that flatten and make values of registered classes: C++ does not return them.
registered_functions: dict[type, tuple[Any, ...]] = {}


def is_tree_node(typ: type) -> bool:
    """Whether values of class `typ` are containers (nodes), not leaves.

    Args: typ: a class.
    Returns: A bool; True of classes that are registered, of named tuples and of None's.

    >>> is_tree_node(list), is_tree_node(int)
    (True, False)
    """
    return registry.is_node(typ)


def _require_class(what: str, nodetype: object) -> None:
    if not isinstance(nodetype, type):
        raise TypeError(
            f"{what}: got {nodetype!r} of type {type(nodetype).__name__}; a class is required; "
            "pass the class itself, not an instance"
        )


def _register(what: str, nodetype: type, *functions: object) -> None:
    """Enter a class in the C++ table, with the errors told in our words."""
    _require_class(what, nodetype)
    for function in functions:
        if function is not None and not callable(function):
            raise TypeError(
                f"{what}: got {function!r} for {nodetype.__name__}; "
                "flatten and unflatten must be callable"
            )
    try:
        for table in _registries:
            table.register_node(nodetype, *functions)
    except ValueError:
        raise _duplicate(what, nodetype) from None
    registered_functions[nodetype] = functions


def register_dispatch_node(nodetype: type, flatten: Callable[[Any], object],
                           unflatten: Unflatten) -> None:
    """Let C++ look into a class of array-like leaves when it dispatches a jitted call."""
    dispatch_registry.register_node(nodetype, flatten, unflatten)


def _duplicate(what: str, nodetype: type) -> ValueError:
    return ValueError(
        f"{what}: Duplicate custom PyTreeDef type registration for "
        f"{nodetype.__module__}.{nodetype.__qualname__}; a class is registered once; remove one of "
        "the registrations"
    )


def register_pytree_node(
    nodetype: type,
    flatten_func: Flatten,
    unflatten_func: Unflatten,
    flatten_with_keys_func: FlattenWithKeys | None = None,
) -> None:
    """Make values of class `nodetype` (not of its subclasses) nodes of pytrees.

    `flatten_func(value)` gives `(children, aux)`, aux hashable and comparable; `unflatten_func(aux,
    children)` rebuilds the value and must accept any objects as children.
    `flatten_with_keys_func(value)` gives `((key, child) pairs, aux)`; without it the keys are
    `FlattenedIndexKey`. ValueError for a class registered before.

    Args: flatten_func, unflatten_func, flatten_with_keys_func: as above.

    >>> class Pair:
    ...     def __init__(self, low, high):
    ...         self.low, self.high = low, high
    >>> tree_util.register_pytree_node(
    ...     Pair, lambda p: ((p.low, p.high), None), lambda aux, children: Pair(*children))
    >>> tree_util.tree_leaves([Pair(1, 2), 3])
    [1, 2, 3]
    """
    _register(
        "register_pytree_node", nodetype, flatten_func, unflatten_func, flatten_with_keys_func
    )


def register_pytree_with_keys(
    nodetype: type,
    flatten_with_keys: FlattenWithKeys,
    unflatten_func: Unflatten,
    flatten_func: Flatten | None = None,
) -> None:
    """Like `register_pytree_node`, from the function that also names the children.

    `flatten_with_keys(value)` gives `((key, child) pairs, aux)`. `flatten_func`, the same without
    keys, is only faster.

    Args: flatten_with_keys, unflatten_func, flatten_func: as above.

    >>> class Point:
    ...     def __init__(self, x, y):
    ...         self.x, self.y = x, y
    >>> def with_keys(p):
    ...     return ((tree_util.GetAttrKey("x"), p.x), (tree_util.GetAttrKey("y"), p.y)), None
    >>> tree_util.register_pytree_with_keys(Point, with_keys, lambda _, children: Point(*children))
    >>> [tree_util.keystr(path) for path, _ in tree_util.tree_leaves_with_path(Point(1, 2))]
    ['.x', '.y']
    """

    def without_keys(value: object) -> tuple[Iterable[PyTree], Hashable]:
        pairs, aux = flatten_with_keys(value)
        return tuple(child for _, child in pairs), aux

    plain = without_keys if flatten_func is None else flatten_func
    _register("register_pytree_with_keys", nodetype, plain, unflatten_func, flatten_with_keys)


def _require_methods(what: str, cls: type, names: Sequence[str]) -> None:
    missing = [name for name in names if not hasattr(cls, name)]
    if missing:
        raise AttributeError(
            f"{what}: class {cls.__name__} lacks {', '.join(missing)}; define {' and '.join(names)}"
        )


def register_pytree_node_class(cls: Typ) -> Typ:
    """Class decorator: a node by its own methods `tree_flatten` and `tree_unflatten`.

    `tree_flatten(self)` gives `(children, aux)`; the classmethod `tree_unflatten(aux, children)`
    makes the value again.

    >>> @register_pytree_node_class
    ... class Span:
    ...     def __init__(self, low, high):
    ...         self.low, self.high = low, high
    ...     def tree_flatten(self):
    ...         return (self.low, self.high), None
    ...     @classmethod
    ...     def tree_unflatten(cls, aux, children):
    ...         return cls(*children)
    >>> tree_flatten(Span(1, 2))[0]
    [1, 2]
    """
    what = "register_pytree_node_class"
    _require_class(what, cls)
    _require_methods(what, cls, ("tree_flatten", "tree_unflatten"))
    _register(what, cls, operator.methodcaller("tree_flatten"), cls.tree_unflatten)
    return cls


def register_pytree_with_keys_class(cls: Typ) -> Typ:
    """Class decorator: a node by its own `tree_flatten_with_keys` and `tree_unflatten`.

    `tree_flatten_with_keys(self)` gives `((key, child) pairs, aux)`; the classmethod
    `tree_unflatten(aux, children)` makes the value again.

    A method `tree_flatten`, where there is one, is used when no keys are asked for.

    >>> @tree_util.register_pytree_with_keys_class
    ... class Box:
    ...     def __init__(self, content):
    ...         self.content = content
    ...     def tree_flatten_with_keys(self):
    ...         return ((tree_util.GetAttrKey("content"), self.content),), None
    ...     @classmethod
    ...     def tree_unflatten(cls, aux, children):
    ...         return cls(*children)
    >>> [tree_util.keystr(path) for path, _ in tree_util.tree_leaves_with_path(Box([1, 2]))]
    ['.content[0]', '.content[1]']
    """
    what = "register_pytree_with_keys_class"
    _require_class(what, cls)
    _require_methods(what, cls, ("tree_flatten_with_keys", "tree_unflatten"))
    plain = operator.methodcaller("tree_flatten") if hasattr(cls, "tree_flatten") else None
    with_keys = operator.methodcaller("tree_flatten_with_keys")
    register_pytree_with_keys(cls, with_keys, cls.tree_unflatten, plain)
    return cls


def register_static(cls: Typ) -> Typ:
    """Class decorator: values are nodes without children, wholly structure, with `==` and `hash`.

    >>> @register_static
    ... class Mode(str):
    ...     pass
    >>> tree_flatten([Mode("train"), 1])[0]
    [1]
    """
    _register(
        "register_static",
        cls,
        lambda value: ((), value),
        lambda value, _: value,
        lambda value: ((), value),
    )
    return cls


def static(**kwargs: Any) -> Any:
    """A `dataclasses.field(**kwargs)` that `register_dataclass` takes as metadata instead of data.

    Args: **kwargs: as for `dataclasses.field`.
    Returns: A field, to be written after `name: type =`.

    >>> static().metadata["static"]
    True
    """
    metadata = {"static": True, **(kwargs.pop("metadata", None) or {})}
    return dataclasses.field(**kwargs, metadata=metadata)


def register_dataclass(
    nodetype: Typ,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> Typ:
    """Make a dataclass, or a class built by keyword arguments, a node; also as a decorator.

    `data_fields` are the children, `meta_fields` the static part (hashable, compared by ==),
    `drop_fields` are left to their defaults when a value is rebuilt. Without them every `init`
    field is data, but for those made by `field(metadata=dict(static=True))`. ValueError where the
    lists are not exactly the dataclass's `init` fields.

    Args: data_fields, meta_fields, drop_fields: names of fields, each in one of them.

    >>> import dataclasses
    >>> @register_dataclass
    ... @dataclasses.dataclass
    ... class State:
    ...     x: float
    ...     name: str = dataclasses.field(default="s", metadata={"static": True})
    >>> tree_flatten(State(1.0))
    ([1.0], PyTreeDef(CustomNode(State[('s',)], [*])))
    """
    what = "register_dataclass"
    _require_class(what, nodetype)
    if data_fields is None or meta_fields is None:
        if data_fields is not None or meta_fields is not None:
            raise TypeError(
                f"{what}: data_fields and meta_fields must both be specified when either is "
                f"specified. Got data_fields={data_fields!r} meta_fields={meta_fields!r}."
            )
        data_fields, meta_fields = _inferred_fields(what, nodetype, drop_fields)
    _check_fields(what, nodetype, data_fields, meta_fields, drop_fields)
    try:
        for table in _registries:
            table.register_dataclass_node(nodetype, list(data_fields), list(meta_fields))
    except ValueError:
        raise _duplicate(what, nodetype) from None
    registered_field_names[nodetype] = tuple(data_fields)
    return nodetype


def registering(x: object) -> str:
    """What a message says of a dataclass where an array is required; '' of any other value."""
    if not dataclasses.is_dataclass(x) or isinstance(x, type):
        return ""
    return f"olympus.tree_util.register_dataclass({type(x).__name__}) makes it a container; "


def _init_fields(nodetype: type) -> list[dataclasses.Field]:
    return [f for f in dataclasses.fields(nodetype) if f.init]


def _inferred_fields(what: str, nodetype: type, drop: Sequence[str]) -> tuple[list[str], list[str]]:
    if not dataclasses.is_dataclass(nodetype):
        raise TypeError(
            f"{what}: data_fields and meta_fields are required when nodetype is not a dataclass. "
            f"Got nodetype={nodetype!r}."
        )
    fields = [f for f in _init_fields(nodetype) if f.name not in drop]
    data = [f.name for f in fields if not f.metadata.get("static", False)]
    meta = [f.name for f in fields if f.metadata.get("static", False)]
    return data, meta


def _check_fields(what: str, nodetype: type, *groups: Sequence[str]) -> None:
    """Refuse fields that are strings, repeat a name, or leave out some of the init fields."""
    for group in groups:
        if isinstance(group, str):
            raise TypeError(
                f"{what}: got the string {group!r}; a sequence of field names is required; "
                f"write [{group!r}]"
            )
    data, meta, drop = groups
    for kind, group in zip(("data_fields", "meta_fields", "drop_fields"), groups, strict=True):
        if repeated := sorted({name for name in group if [*group].count(name) > 1}):
            raise ValueError(
                f"{what}: {kind} names {repeated} of {nodetype.__name__} more than once; each "
                "field may be named once; leave out the others."
            )
    named = [*data, *meta]
    if both := sorted({*data} & {*meta}):
        raise ValueError(
            f"{what}: data_fields and meta_fields must not overlap. Overlapping fields of "
            f"{nodetype.__name__}: {both}."
        )
    if not dataclasses.is_dataclass(nodetype):
        return
    init = {f.name for f in _init_fields(nodetype)}
    missing, unexpected = init - set(named) - set(drop), set(named) - init
    if missing or unexpected:
        faults = ""
        if missing:
            faults += f" Missing fields: {{{', '.join(map(repr, sorted(missing)))}}}."
        if unexpected:
            faults += f" Unexpected fields: {{{', '.join(map(repr, sorted(unexpected)))}}}."
        raise ValueError(
            f"{what}: data_fields and meta_fields must include all dataclass fields with "
            f"``init=True`` and only them: {nodetype.__name__}.{faults} Name in drop_fields "
            "the fields to leave out."
        )


class _Static:
    """A callable held whole: it keeps functools.partial from unpacking a partial that Partial is
    given.

    The inner one's arguments must not become children of the outer node.
    """

    __slots__ = ("fun",)

    def __init__(self, fun: Callable[..., PyTree]) -> None:
        self.fun = fun

    def __call__(self, *args: PyTree, **kwargs: PyTree) -> PyTree:
        return self.fun(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return self.fun == (other.fun if isinstance(other, _Static) else other)

    def __hash__(self) -> int:
        return hash(self.fun)

    def __repr__(self) -> str:
        return repr(self.fun)


class Partial(functools.partial[Any]):
    """`functools.partial` that is a pytree: bound arguments are children, the function structure.

    So a function closed over arrays passes through transformations as an argument. A `partial`
    given as `func` is kept whole, with its arguments as structure.

    Args:
      func: a callable, compared by equality when programs are looked up.
      *args, **kw: pytrees, which come before the arguments of a call.

    >>> scale = Partial(max, 1, 5)
    >>> tree_flatten(scale)[0], scale(3)
    ([1, 5], 5)
    """

    def __new__(cls, func: Callable[..., PyTree], *args: PyTree, **kw: PyTree) -> "Partial":
        whole = _Static(func) if isinstance(func, functools.partial) else func
        return super().__new__(cls, whole, *args, **kw)


def _dict_pairs(keys: Iterable[Hashable], value: Mapping[Hashable, Any]) -> tuple[Pair, ...]:
    return tuple((DictKey(key), value[key]) for key in keys)


def _default_dict_aux(value: defaultdict) -> tuple[Hashable, tuple[Hashable, ...]]:
    return value.default_factory, tuple(sorted(value))


def _flatten_default_dict(value: defaultdict) -> tuple[tuple[PyTree, ...], Hashable]:
    aux = _default_dict_aux(value)
    return tuple(value[key] for key in aux[1]), aux


def _flatten_default_dict_with_keys(value: defaultdict) -> tuple[tuple[Pair, ...], Hashable]:
    aux = _default_dict_aux(value)
    return _dict_pairs(aux[1], value), aux


# An OrderedDict keeps its order as structure; a defaultdict is sorted as a dict is.
register_pytree_node(
    OrderedDict,
    lambda value: (tuple(value.values()), tuple(value)),
    lambda keys, children: OrderedDict(zip(keys, children, strict=True)),
    lambda value: (_dict_pairs(value, value), tuple(value)),
)
register_pytree_node(
    defaultdict,
    _flatten_default_dict,
    lambda aux, children: defaultdict(aux[0], zip(aux[1], children, strict=True)),
    _flatten_default_dict_with_keys,
)
register_pytree_node(
    Partial,
    lambda value: ((value.args, value.keywords), value.func),
    lambda func, children: Partial(func, *children[0], **children[1]),
)


complete_docstrings(globals(), {
    "nodetype": "the class.",
    "cls": "the class.",
}, returns="The class.")
