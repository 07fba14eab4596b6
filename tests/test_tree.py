"""Pytrees: structures, key paths, registration, broadcasting, and what each mismatch message says.

Literals marked "as JAX" were printed by JAX 0.10.2.
"""

import collections
import copy
import dataclasses
import functools
import operator
import pickle
from collections import OrderedDict, defaultdict

import pytest
from hypothesis import given, strategies as st

import olympus
from olympus import tree, tree_util
from olympus._src.types.tree import (
    broadcast_prefix, explain_mismatch, flatten_axes, mismatch_error, prefix_errors, registry,
)
from olympus.tree_util import (
    DictKey, FlattenedIndexKey, GetAttrKey, Partial, SequenceKey, all_leaves, flatten_one_level,
    flatten_one_level_with_keys, is_tree_node, keystr, register_dataclass, register_pytree_node,
    register_pytree_node_class, register_pytree_with_keys, register_pytree_with_keys_class,
    register_static, tree_all, tree_broadcast, tree_flatten, tree_flatten_with_path, tree_leaves,
    tree_leaves_with_path, tree_map, tree_map_with_path, tree_reduce, tree_reduce_associative,
    tree_structure, tree_transpose, tree_unflatten, treedef_children, treedef_is_leaf,
    treedef_tuple,
)

Point = collections.namedtuple("Point", "x y")
ATuple = collections.namedtuple("ATuple", ("name"))


class Node:
    """A custom node with aux data, without keys."""

    def __init__(self, *children, aux="aux"):
        self.children, self.aux = children, aux

    def __eq__(self, other):
        return (self.children, self.aux) == (other.children, other.aux)

    __hash__ = None


register_pytree_node(
    Node, lambda n: (n.children, n.aux), lambda aux, children: Node(*children, aux=aux)
)


class Keyed(Node):
    """A custom node with attribute keys, registered without the plain flatten function."""


register_pytree_with_keys(
    Keyed,
    lambda n: ([(GetAttrKey(f"c{i}"), c) for i, c in enumerate(n.children)], n.aux),
    lambda aux, children: Keyed(*children, aux=aux),
)


@register_pytree_node_class
class Span:
    def __init__(self, low, high):
        self.low, self.high = low, high

    def tree_flatten(self):
        return (self.low, self.high), None

    @classmethod
    def tree_unflatten(cls, aux, children):
        return cls(*children)


@register_pytree_with_keys_class
class Named(Span):
    def tree_flatten_with_keys(self):
        return ((GetAttrKey("low"), self.low), (GetAttrKey("high"), self.high)), None


@register_static
@dataclasses.dataclass(frozen=True)
class Mode:
    word: str


@register_dataclass
@dataclasses.dataclass
class State:
    x: object
    y: object = 0
    cached: object = dataclasses.field(default=None, init=False)
    name: str = dataclasses.field(default="s", metadata={"static": True})


@functools.partial(register_dataclass, data_fields=["b"], meta_fields=[], drop_fields=["a"])
@dataclasses.dataclass
class Dropped:
    b: object
    a: object = 7


class Stubborn:
    """A node whose flatten function fails with a ValueError of its own."""


def _refuse(_):
    raise ValueError("stubborn")


register_pytree_node(Stubborn, _refuse, lambda aux, children: Stubborn())


def is_tuple(x):
    return isinstance(x, tuple)


# --- structures -----------------------------------------------------------------------------------

STRUCTURES = [  # tree, leaves, str(structure): as JAX
    (1, [1], "PyTreeDef(*)"),
    (None, [], "PyTreeDef(None)"),
    ((), [], "PyTreeDef(())"),
    ([], [], "PyTreeDef([])"),
    ((1,), [1], "PyTreeDef((*,))"),
    ({"b": [2, 3], "a": 1}, [1, 2, 3], "PyTreeDef({'a': *, 'b': [*, *]})"),
    (Point(1, 2), [1, 2], "PyTreeDef(CustomNode(namedtuple[Point], [*, *]))"),
    (
        OrderedDict([("b", 1), ("a", 2)]),
        [1, 2],
        "PyTreeDef(CustomNode(OrderedDict[('b', 'a')], [*, *]))",
    ),
    (
        defaultdict(int, {"b": 1, "a": 2}),
        [2, 1],
        "PyTreeDef(CustomNode(defaultdict[(<class 'int'>, ('a', 'b'))], [*, *]))",
    ),
    (
        Partial(max, 1, k=2),
        [1, 2],
        "PyTreeDef(CustomNode(Partial[<built-in function max>], [(*,), {'k': *}]))",
    ),
    (Node(1, [2]), [1, 2], "PyTreeDef(CustomNode(Node[aux], [*, [*]]))"),
    ([Mode("train"), 1], [1], "PyTreeDef([CustomNode(Mode[Mode(word='train')], []), *])"),
    (State(1, [2], name="n"), [1, 2], "PyTreeDef(CustomNode(State[('n',)], [*, [*]]))"),
    (Dropped(1, 2), [1], "PyTreeDef(CustomNode(Dropped[()], [*]))"),
    ("text", ["text"], "PyTreeDef(*)"),
    ({1, 2}, [{1, 2}], "PyTreeDef(*)"),
    (collections.Counter("a"), [collections.Counter("a")], "PyTreeDef(*)"),  # a subclass is a leaf
]


@pytest.mark.parametrize(("value", "leaves", "text"), STRUCTURES, ids=lambda v: type(v).__name__)
def test_structure(value, leaves, text):
    found, treedef = tree_flatten(value)
    assert found == leaves == tree_leaves(value) == [x for _, x in tree_leaves_with_path(value)]
    assert str(treedef) == text
    assert treedef == tree_structure(value)
    assert treedef.num_leaves == len(leaves)
    assert tree_structure(tree_unflatten(treedef, leaves)) == treedef
    assert tree_structure(tree_map(lambda x: x, value)) == treedef


@pytest.mark.parametrize("value", [row[0] for row in STRUCTURES], ids=lambda v: type(v).__name__)
def test_structure_pickles_and_copies(value):
    treedef = tree_structure(value)
    for again in (pickle.loads(pickle.dumps(treedef)), copy.deepcopy(treedef)):
        assert again == treedef
        assert hash(again) == hash(treedef)


def test_spec_tree_leaves(capsys):
    """The example of the notes, "completely flatten the tree"."""
    marker, array = object(), b"array"
    trees = [
        [1, "a", marker],
        (1, (2, 3), ()),
        [1, {"k1": 2, "k2": (3, 4)}, 5],
        {"a": 2, "b": (2, 3)},
        array,
    ]
    assert tree.leaves(trees) == [1, "a", marker, 1, 2, 3, 1, 2, 3, 4, 5, 2, 2, 3, array]
    for pytree in trees[1:4]:
        leaves = tree.leaves(pytree)
        print(f"{pytree!r:<45} has {len(leaves)} leaves: {leaves}")
    assert capsys.readouterr().out.splitlines() == [
        "(1, (2, 3), ())                               has 3 leaves: [1, 2, 3]",
        "[1, {'k1': 2, 'k2': (3, 4)}, 5]               has 5 leaves: [1, 2, 3, 4, 5]",
        "{'a': 2, 'b': (2, 3)}                         has 3 leaves: [2, 2, 3]",
    ]


def test_spec_key_paths(capsys):
    """The two examples of the notes, printed exactly."""
    value = [1, {"k1": 2, "k2": (3, 4)}, ATuple("foo")]
    flattened, _ = tree_util.tree_flatten_with_path(value)
    for key_path, leaf in flattened:
        print(f"Value of tree{tree_util.keystr(key_path)}: {leaf}")
    for key_path, _ in flattened:
        print(f"Key path of tree{tree_util.keystr(key_path)}: {key_path!r}")
    assert capsys.readouterr().out == (
        "Value of tree[0]: 1\n"
        "Value of tree[1]['k1']: 2\n"
        "Value of tree[1]['k2'][0]: 3\n"
        "Value of tree[1]['k2'][1]: 4\n"
        "Value of tree[2].name: foo\n"
        "Key path of tree[0]: (SequenceKey(idx=0),)\n"
        "Key path of tree[1]['k1']: (SequenceKey(idx=1), DictKey(key='k1'))\n"
        "Key path of tree[1]['k2'][0]: "
        "(SequenceKey(idx=1), DictKey(key='k2'), SequenceKey(idx=0))\n"
        "Key path of tree[1]['k2'][1]: "
        "(SequenceKey(idx=1), DictKey(key='k2'), SequenceKey(idx=1))\n"
        "Key path of tree[2].name: (SequenceKey(idx=2), GetAttrKey(name='name'))\n"
    )


PATHS = [  # tree, keystr of each leaf
    (1, [""]),
    ({"b": 1, "a": (2, 3)}, ["['a'][0]", "['a'][1]", "['b']"]),
    (Point(1, [2]), [".x", ".y[0]"]),
    (OrderedDict([("b", 1), ("a", 2)]), ["['b']", "['a']"]),
    (defaultdict(int, {"b": 1, "a": 2}), ["['a']", "['b']"]),
    (Node(1, 2), ["[<flat index 0>]", "[<flat index 1>]"]),
    (Span(1, 2), ["[<flat index 0>]", "[<flat index 1>]"]),
    (Keyed(1, 2), [".c0", ".c1"]),
    (Named(1, 2), [".low", ".high"]),
    (State(1, {"k": 2}), [".x", ".y['k']"]),
    (Partial(max, 1, k=2), ["[<flat index 0>][0]", "[<flat index 1>]['k']"]),
    ([None, Mode("m")], []),
]


@pytest.mark.parametrize(("value", "paths"), PATHS, ids=lambda v: type(v).__name__)
def test_paths(value, paths):
    flat, treedef = tree_flatten_with_path(value)
    assert [keystr(path) for path, _ in flat] == paths
    assert flat == tree_leaves_with_path(value)
    assert treedef == tree_structure(value)
    mapped = tree_leaves(tree_map_with_path(lambda path, x: keystr(path), value))
    assert mapped == paths


KEYS = (SequenceKey(0), DictKey("a"), GetAttrKey("x"), FlattenedIndexKey(3))


@pytest.mark.parametrize(
    ("keys", "options", "text"),
    [  # as JAX
        (KEYS, {}, "[0]['a'].x[<flat index 3>]"),
        (KEYS, {"simple": True, "separator": "/"}, "0/a/x/3"),
        (KEYS[:2], {"separator": "/"}, "[0]/['a']"),
        (("a", 1), {"simple": True}, "a1"),
        ((DictKey(1), DictKey((1, 2))), {"simple": True, "separator": "."}, "1.(1, 2)"),
        ([], {}, ""),
    ],
)
def test_keystr(keys, options, text):
    assert keystr(keys, **options) == text


def test_keys():
    assert [repr(key) for key in KEYS] == [
        "SequenceKey(idx=0)",
        "DictKey(key='a')",
        "GetAttrKey(name='x')",
        "FlattenedIndexKey(key=3)",
    ]
    assert (KEYS[0].idx, KEYS[1].key, KEYS[2].name, KEYS[3].key) == (0, "a", "x", 3)
    again = pickle.loads(pickle.dumps(KEYS))
    assert again == KEYS
    assert hash(again) == hash(KEYS)


# --- the verbs ------------------------------------------------------------------------------------


def test_is_leaf():
    value = [(1, 2), {"k": (3,)}]
    assert tree_leaves(value, is_tuple) == [(1, 2), (3,)]
    assert tree_structure(value, is_tuple) == tree_structure([0, {"k": 0}])
    assert tree_map(len, value, is_leaf=is_tuple) == [2, {"k": 1}]
    assert tree_leaves([None, 1], is_leaf=lambda x: x is None) == [None, 1]
    flat, _ = tree_flatten_with_path(value, lambda p, x: len(p) == 1, is_leaf_takes_path=True)
    assert flat == [((SequenceKey(0),), (1, 2)), ((SequenceKey(1),), {"k": (3,)})]
    assert tree_map_with_path(
        lambda p, x: x, value, is_leaf=lambda p, x: keystr(p) == "[0]", is_leaf_takes_path=True
    ) == value


def test_map_with_rest():
    assert tree_map(lambda x, y: (x, y), [1, None, (2,)], [3, None, ({"k": 4},)]) == [
        (1, 3),
        None,
        ((2, {"k": 4}),),
    ]
    assert tree_map_with_path(
        lambda p, x, y: (keystr(p), x, y), [1, {"a": 2}], [3, {"a": 4}]
    ) == [("[0]", 1, 3), {"a": ("[1]['a']", 2, 4)}]
    assert tree_map(lambda x: x + 1, State(1, 2, name="n")) == State(2, 3, name="n")
    assert tree_map(lambda x: x + 1, Dropped(1, 2)) == Dropped(2, 7)
    mapped = tree_map(str, defaultdict(list, {"a": 1}))
    assert mapped == {"a": "1"}
    assert mapped.default_factory is list
    assert list(tree_map(str, OrderedDict([("b", 1), ("a", 2)]))) == ["b", "a"]


def test_errors_of_the_mapped_function_pass_unchanged():
    def fail(*_):
        raise ValueError("mine")

    with pytest.raises(ValueError, match="^mine$"):
        tree_map(fail, [1, 2])
    with pytest.raises(ValueError, match="^mine$"):
        tree_map(fail, [1, 2], [3, 4])
    with pytest.raises(ValueError, match="^mine$"):
        tree_leaves([1, 2], is_leaf=fail)
    with pytest.raises(ValueError, match="^stubborn$"):
        tree_leaves([1, Stubborn()])
    with pytest.raises(ValueError, match="^mine$"):
        tree_unflatten(tree_structure([1, 2]), (fail() for _ in range(2)))


def test_reduce():
    assert tree_reduce(operator.sub, [10, (3, 2)]) == 5
    assert tree_reduce(operator.add, [[1], [2]], is_leaf=lambda x: x in ([1], [2])) == [1, 2]
    assert tree_reduce(operator.add, [], 5) == 5
    assert tree_reduce(lambda a, b: b if a is None else a + b, [1, 2], None) == 3


@pytest.mark.parametrize(
    ("size", "result"),
    [  # as JAX
        (1, 0),
        (3, (0, (1, 2))),
        (4, ((0, 1), (2, 3))),
        (5, ((0, 1), (2, (3, 4)))),
        (7, ((0, (1, 2)), ((3, 4), (5, 6)))),
    ],
)
def test_reduce_associative(size, result):
    pair = lambda a, b: (a, b)
    assert tree_reduce_associative(pair, list(range(size))) == result
    assert tree_reduce_associative(pair, list(range(size)), identity=9) == result
    assert tree_reduce_associative(pair, [], identity=9) == 9


def test_all_and_leaves():
    assert tree_all([True, 1, []])
    assert tree_all([])
    assert not tree_all([1, {"k": 0}])
    assert tree_all([[], 1], is_leaf=lambda x: x == 1)
    assert not tree_all([()], is_leaf=is_tuple)
    assert all_leaves([1, "a"])
    assert all_leaves([])
    assert not all_leaves([1, [2]])
    assert not all_leaves([None])
    assert all_leaves([None, 1], is_leaf=lambda x: x is None)
    assert not all_leaves([None, [1]], is_leaf=lambda x: x is None)


def test_treedefs():
    assert treedef_children(tree_structure([1, (2,)])) == [tree_structure(1), tree_structure((2,))]
    assert treedef_children(tree_structure(1)) == []
    leafy = [treedef_is_leaf(tree_structure(x)) for x in (1, None, [], [1])]
    assert leafy == [True, True, True, False]
    assert treedef_tuple([tree_structure(1), tree_structure([1])]) == tree_structure((1, [1]))
    assert treedef_tuple(()) == tree_structure(())


def test_transpose():
    outer, inner = tree_structure([0, 0]), tree_structure((0, 0, 0))
    for given_inner in (inner, None):
        result = tree_transpose(outer, given_inner, [(1, 2, 3), (4, 5, 6)])
        assert result == ([1, 4], [2, 5], [3, 6])
    nested = tree_transpose(tree_structure([0, {"a": 1}]), None, [(1, 2), {"a": (3, 4)}])
    assert nested == ([1, {"a": 3}], [2, {"a": 4}])
    assert tree_transpose(outer, tree_structure(()), [(), ()]) == ()


@pytest.mark.parametrize(
    ("value", "children", "aux"),
    [  # as JAX
        ([1, (2,)], [1, (2,)], None),
        ({"b": 1, "a": 2}, [2, 1], ("a", "b")),
        (None, [], None),
        (Point(1, 2), [1, 2], Point),
        (Node(1, 2), [1, 2], "aux"),
    ],
    ids=lambda v: type(v).__name__,
)
def test_one_level(value, children, aux):
    found, found_aux = flatten_one_level(value)
    assert list(found) == children
    assert found_aux == aux
    pairs, found_aux = flatten_one_level_with_keys(value)
    assert [child for _, child in pairs] == children
    assert found_aux == aux


def test_one_level_names_each_field_of_a_namedtuple():
    """jaxlib 0.10.2 repeats the first field's name."""
    pairs, _ = flatten_one_level_with_keys(Point(1, 2))
    assert list(pairs) == [(GetAttrKey("x"), 1), (GetAttrKey("y"), 2)]


def test_nodes():
    nodes = [list, dict, tuple, type(None), Point, OrderedDict, defaultdict, Partial, Node]
    assert all(map(is_tree_node, nodes))
    assert not any(map(is_tree_node, [int, str, set, object, collections.Counter]))
    assert tree_util.default_registry is registry


# --- Partial --------------------------------------------------------------------------------------


def test_partial():
    scale = Partial(max, 1, 5)
    assert scale(3) == 5
    assert isinstance(scale, functools.partial)
    assert tree_map(lambda x: x * 2, scale).args == (2, 10)
    again = pickle.loads(pickle.dumps(scale))
    assert (again.func, again.args) == (max, (1, 5))


def test_partial_keeps_an_inner_partial_whole():
    inner = functools.partial(max, 1)
    for whole in (inner, Partial(max, 1)):
        outer = Partial(whole, 2)
        assert tree_leaves(outer) == [2]
        assert outer() == 2
        assert tree_structure(outer) == tree_structure(Partial(whole, 3))
        assert tree_map(lambda x: x, outer)() == 2
    assert tree_structure(Partial(inner, 2)) != tree_structure(Partial(functools.partial(max, 1)))
    assert inner == Partial(inner, 2).func == inner


# --- broadcasting ---------------------------------------------------------------------------------

BROADCASTS = [  # prefix, full, is_leaf, result: as JAX
    (1, [1, 2], None, [1, 1]),
    ([1, 2], [(1, 2), 3], None, [(1, 1), 2]),
    ([1], [None], None, [None]),
    ([None, 1], [(2, 3), 1], lambda x: x is None, [(None, None), 1]),
    ([1], [(2, 3)], is_tuple, [(1, 1)]),
    ({"a": 1, "b": 2}, {"a": {"c": 0, "d": [0]}, "b": ()}, None,
     {"a": {"c": 1, "d": [1]}, "b": ()}),
]


@pytest.mark.parametrize(("prefix", "full", "is_leaf", "result"), BROADCASTS)
def test_broadcast(prefix, full, is_leaf, result):
    assert tree_broadcast(prefix, full, is_leaf) == result
    none = lambda x: x is None
    expected = tree_leaves(result, none if is_leaf else None)
    assert broadcast_prefix(prefix, full, is_leaf) == expected
    assert prefix_errors(prefix, full, is_leaf) == []


@pytest.mark.parametrize(
    ("full", "axes", "result"),
    [
        ((1, [2, 3]), 0, [0, 0, 0]),
        ((1, [2, 3]), None, [None] * 3),
        ((1, {"k1": 2, "k2": [3, 4]}), (None, {"k1": None, "k2": 1}), [None, None, 1, 1]),
        ((None, 1), (None, 0), [0]),
        ((None, 1), (2, 0), [0]),
        ((State(1, [2, 3]), 4), (State(0, None), 1), [0, None, None, 1]),
        ((Point(1, 2), {}), (Point(0, 1), {}), [0, 1]),
        (OrderedDict(b=1, a=[2, 3]), OrderedDict(b=5, a=6), [5, 6, 6]),
        ((), (), []),
    ],
)
def test_flatten_axes(full, axes, result):
    assert flatten_axes("vmap in_axes", tree_structure(full), axes) == result


class Picky(Node):
    """A node that cannot be rebuilt from dummies."""


def _unflatten_picky(aux, children):
    raise AssertionError("rebuilt")


register_pytree_node(Picky, lambda n: (n.children, n.aux), _unflatten_picky)


def test_flatten_axes_rebuilds_no_node():
    treedef = tree_structure((Picky(1, 2), 3))
    assert flatten_axes("vmap in_axes", treedef, (0, 1)) == [0, 0, 1]
    assert flatten_axes("vmap in_axes", treedef, (Picky(0, None), 1)) == [0, None, 1]
    with pytest.raises(ValueError, match="found list of length 1; required Picky with 2 children"):
        flatten_axes("vmap in_axes", treedef, ([0], 1))


# --- mismatches: what each message says -----------------------------------------------------------

BASE = [1, {"k2": (2, 3)}]

MISMATCHES = [  # required, found, the differences as explain_mismatch tells them
    ([1, 2], [1, 2], []),
    (
        BASE,
        [1, {"k2": ([0], 3)}],
        ["at [1]['k2'][0]: found list of length 1; required a leaf of type int"],
    ),
    ([1, 2], [1], ["at the root: found list of length 1; required list of length 2"]),
    ([1, 2], (1, 2), ["at the root: found tuple of length 2; required list of length 2"]),
    (BASE, [1, {"k2": 5}], ["at [1]['k2']: found a leaf of type int; required tuple of length 2"]),
    (
        [{"a": 1, "b": 2}],
        [{"a": 1, "c": 2}],
        [
            "at [0]: found dict with keys ['a', 'c']; required dict with keys ['a', 'b'] "
            "(missing keys ['b'], unexpected keys ['c'])"
        ],
    ),
    ([None], [1], ["at [0]: found a leaf of type int; required None"]),
    (Point(1, 2), (1, 2), ["at the root: found tuple of length 2; required Point of length 2"]),
    (
        OrderedDict(a=1, b=2),
        OrderedDict(b=1, a=2),
        [
            "at the root: found OrderedDict with keys ['b', 'a']; required OrderedDict with keys "
            "['a', 'b'] (the same keys in another order)"
        ],
    ),
    (
        defaultdict(int, a=1),
        defaultdict(list, a=1),
        [
            "at the root: found defaultdict of <class 'list'> with keys ['a']; "
            "required defaultdict of <class 'int'> with keys ['a']"
        ],
    ),
    (
        (Keyed(1, Node(2)),),
        (Keyed(1, Node(2, aux="other")),),
        [
            "at [0].c1: found Node with 1 children and aux data 'other'; "
            "required Node with 1 children and aux data 'aux'"
        ],
    ),
    (
        [1, (2,), {"k": 3}],
        [[1], 2, {"k": [3]}],
        [
            "at [0]: found list of length 1; required a leaf of type int",
            "at [1]: found a leaf of type int; required tuple of length 1",
            "at [2]['k']: found list of length 1; required a leaf of type int",
        ],
    ),
    (
        dict.fromkeys(range(12), 0),
        dict.fromkeys(range(11), 0),
        [
            "at the root: found dict with keys [0, 1, 2, 3, 4, 5, 6, 7, ... 3 more]; "
            "required dict with keys [0, 1, 2, 3, 4, 5, 6, 7, ... 4 more] (missing keys [11])"
        ],
    ),
]


@pytest.mark.parametrize(("required", "found", "differences"), MISMATCHES)
def test_explain_mismatch(required, found, differences):
    assert explain_mismatch(required, found) == differences
    # A structure in place of a tree names the same places; only a leaf's class is unknown to it.
    places = [text.split(":")[0] for text in differences]
    for a, b in [
        (tree_structure(required), found),
        (required, tree_structure(found)),
        (tree_structure(required), tree_structure(found)),
    ]:
        told = [text.split(":")[0] for text in explain_mismatch(a, b)]
        if "Keyed" not in str(tree_structure(required)):
            assert told == places
        assert len(told) == len(places)


def test_explain_mismatch_of_two_classes_of_one_name():
    other = collections.namedtuple("Point", "x y")
    (text,) = explain_mismatch(Point(1, 2), other(1, 2))
    assert text.endswith("required Point of length 2 (a class of the same name, defined elsewhere)")


def test_explain_mismatch_is_iterative():
    deep, other = 1, (1,)
    for _ in range(300):
        deep, other = [deep], [other]
    (text,) = explain_mismatch(deep, other)
    assert text.startswith("at " + "[0]" * 300 + ": found tuple")


def test_aux_data_that_cannot_be_compared_differs():
    class Odd:
        def __eq__(self, other):
            raise RuntimeError("no")

        __hash__ = object.__hash__

    odd = Odd()
    assert explain_mismatch(Node(1, aux=odd), Node(1, aux=odd)) == []
    assert len(explain_mismatch(Node(1, aux=odd), Node(1, aux=Odd()))) == 1


@pytest.mark.parametrize(
    ("call", "parts"),
    [
        (
            lambda: tree_map(operator.add, BASE, [1, {"k2": (2,)}]),
            ["tree_map, tree 2", "at [1]['k2']: found tuple of length 1", "required tuple of len"],
        ),
        (
            lambda: tree_map(operator.add, BASE, BASE, [1, {"k3": (2, 3)}]),
            ["tree_map, tree 3", "at [1]: found dict", "missing keys ['k2']"],
        ),
        (
            lambda: tree_map(operator.add, [None], [1]),
            ["tree_map", "at [0]: found a leaf of type int; required None"],
        ),
        (
            lambda: tree_map(operator.add, {"a": 1}, OrderedDict(a=1)),
            ["found OrderedDict with keys ['a']; required dict with keys ['a']"],
        ),
        (
            lambda: tree_map(operator.add, [Mode("a")], [Mode("b")]),
            ["at [0]: found Mode with 0 children and aux data Mode(word='b')"],
        ),
        (
            lambda: tree_map(max, Keyed([1]), Keyed((1,))),
            ["at .c0: found tuple of length 1; required list of length 1"],
        ),
        (
            lambda: tree_map_with_path(max, [1, {"a": 2}], [3, {"b": 4}]),
            ["tree_map_with_path, tree 2", "at [1]: found dict with keys ['b']"],
        ),
        (
            lambda: tree_transpose(
                tree_structure([0, 0]), tree_structure((0, 0, 0)), [(1, 2, 3), (4, 5)]
            ),
            ["tree_transpose", "at [1]: found tuple of length 2; required tuple of length 3"],
        ),
        (
            lambda: tree_transpose(tree_structure([0]), tree_structure((0,)), [({"a": 1},)]),
            ["tree_transpose", "at [0][0]: found dict with keys ['a']; required a leaf"],
        ),
        (
            lambda: tree_transpose(tree_structure([0]), None, (1,)),
            ["tree_transpose", "at the root: found tuple of length 1; required list of length 1"],
        ),
        (
            lambda: tree_transpose(tree_structure([None]), None, [None]),
            ["tree_transpose: PyTreeDef([None]) has no leaves", "give inner_treedef"],
        ),
        (
            lambda: tree_broadcast([1, 2], [(1, 2), 3, 4]),
            ["tree_broadcast", "at the root: found list of length 2; required list of length 3"],
        ),
        (
            lambda: tree_broadcast([(1, 2), None], [1, 2]),
            [
                "tree_broadcast: pytree structure error: tree structures differ in 2 places:",
                "at [0]: found tuple of length 2; required a leaf of type int",
                "at [1]: found None; required a leaf of type int",
            ],
        ),
        (
            lambda: broadcast_prefix({"a": 1}, {"b": 1}),
            ["broadcast_prefix", "found dict with keys ['a']; required dict with keys ['b']"],
        ),
        (
            lambda: flatten_axes("vmap in_axes", tree_structure((1, {"k": 2})), (0, {"l": 1})),
            ["vmap in_axes", "at [1]: found dict with keys ['l']", "missing keys ['k']"],
        ),
        (
            lambda: flatten_axes("vmap in_axes", tree_structure((1, 2)), (0, (0, 1))),
            ["at [1]: found tuple of length 2; required a leaf", "a prefix is required"],
        ),
        (
            lambda: tree_unflatten(tree_structure([1, 2]), [1]),
            ["tree_unflatten: Too few leaves for PyTreeDef; expected 2, got 1", "of PyTreeDef([*,"],
        ),
        (
            lambda: tree_unflatten(tree_structure([1, 2]), (1, 2, 3)),
            ["tree_unflatten: Too many leaves for PyTreeDef; expected 2, got 3"],
        ),
        (lambda: tree_unflatten(tree_structure([1, 2]), iter([1])), ["Too few leaves"]),
        (
            lambda: tree_flatten([{"ok": 0}, {"k": {1: 0, "a": 1}}]),
            ["tree_flatten: at [1]['k']: found a dict with keys [1, 'a'] of types int, str"],
        ),
        (lambda: tree_leaves({1: 0, "a": 1}), ["tree_leaves: at the root", "cannot be sorted"]),
        (lambda: tree_structure({1: 0, "a": 1}), ["tree_structure: at the root"]),
        (lambda: tree_map(abs, {1: 0, "a": 1}), ["tree_map: at the root"]),
        (lambda: tree_leaves_with_path({1: 0, "a": 1}), ["tree_leaves_with_path: at the root"]),
        (lambda: tree_leaves(defaultdict(int, {1: 2, "a": 3})), ["keys [1, 'a'] of types int"]),
        (lambda: tree_map(max, {"a": 1}, {1: 0, "a": 1}), ["tree_map, tree 2", "cannot be"]),
        (lambda: tree_broadcast([1], [{1: 0, "a": 1}]), ["tree_broadcast", "cannot be sorted"]),
        (lambda: flatten_one_level(1), ["flatten_one_level: can't open a leaf of type int"]),
        (lambda: flatten_one_level_with_keys("s"), ["flatten_one_level_with_keys", "type str"]),
    ],
)
def test_value_errors(call, parts):
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    for part in parts:
        assert part in " ".join(str(caught.value).split())


def test_many_differences_are_cut_off():
    differences = explain_mismatch([1] * 9, [[1]] * 9)
    text = str(mismatch_error("op", "do this", differences))
    assert text.splitlines()[0] == "op: pytree structure error: tree structures differ in 9 places:"
    assert text.splitlines()[-2:] == ["  and in 4 more places", "  do this"]


@pytest.mark.parametrize(
    ("call", "error", "part"),
    [
        (lambda: tree_unflatten([1], [2]), TypeError, "type list as tree structure; a PyTreeDef"),
        (lambda: tree_unflatten(tree_structure(1), 5), TypeError, "leaves is of type int"),
        (lambda: tree_transpose([0], None, [1]), TypeError, "tree_transpose: got a value of"),
        (lambda: treedef_tuple([1]), TypeError, "treedef_tuple: got a value of type int"),
        (lambda: tree_reduce(max, []), TypeError, "tree_reduce: the tree has no leaves"),
        (lambda: tree_reduce_associative(max, ()), TypeError, "give identity"),
        (lambda: tree_leaves(_cyclic()), RecursionError, "contains itself"),
        (lambda: tree_map(abs, _cyclic()), RecursionError, "tree_map: the tree is nested"),
        (lambda: tree_flatten_with_path(_cyclic()), RecursionError, "contains itself"),
        (lambda: tree_map(max, [1], 5, [Stubborn()]), ValueError, "tree 2"),
        (lambda: Partial(3), TypeError, "callable"),
    ],
)
def test_other_errors(call, error, part):
    with pytest.raises(error) as caught:
        call()
    assert part in " ".join(str(caught.value).split())


def _cyclic():
    value = []
    value.append(value)
    return value


# --- façades --------------------------------------------------------------------------------------


def test_short_names_are_the_same_functions():
    for name in set(tree.__all__) - {"static"}:
        assert getattr(tree, name) is getattr(tree_util, f"tree_{name}")
    assert sorted(tree.__all__) == tree.__all__
    assert sorted(tree_util.__all__) == tree_util.__all__


# --- properties -----------------------------------------------------------------------------------

KEY_NAMES = st.text("abc", min_size=1, max_size=2)


def _containers(children):
    return st.one_of(
        st.lists(children, max_size=3),
        st.lists(children, max_size=3).map(tuple),
        st.dictionaries(KEY_NAMES, children, max_size=3),
        st.dictionaries(KEY_NAMES, children, max_size=3).map(OrderedDict),
        st.dictionaries(KEY_NAMES, children, max_size=3).map(lambda d: defaultdict(int, d)),
        st.tuples(children, children).map(lambda c: Point(*c)),
        st.tuples(children, children).map(lambda c: Node(*c)),
        st.tuples(children, children).map(lambda c: State(*c)),
    )


LEAVES = st.integers() | st.none() | st.text("xyz", max_size=2)
TREES = st.recursive(LEAVES, _containers, max_leaves=12)


@given(TREES)
def test_round_trip(value):
    leaves, treedef = tree_flatten(value)
    assert tree_unflatten(treedef, leaves) == value
    assert tree_map(lambda x: x, value) == value
    assert [x for _, x in tree_leaves_with_path(value)] == leaves
    paths = [path for path, _ in tree_leaves_with_path(value)]
    assert len(set(paths)) == len(paths)
    assert pickle.loads(pickle.dumps(treedef)) == treedef
    assert explain_mismatch(value, treedef) == []


@given(TREES, TREES)
def test_mismatches_are_found_exactly_where_structures_differ(a, b):
    differ = tree_structure(a) != tree_structure(b)
    assert bool(explain_mismatch(a, b)) == differ
    assert bool(explain_mismatch(tree_structure(a), tree_structure(b))) == differ
    try:
        tree_structure(a).flatten_up_to(b)
    except ValueError:
        assert prefix_errors(a, b) != []
        with pytest.raises(ValueError, match="tree_map, tree 2: pytree structure error: tree"):
            tree_map(lambda x, y: x, a, b)
    else:
        assert prefix_errors(a, b) == []
        assert broadcast_prefix(a, b) == flatten_axes("axes", tree_structure(b), a)


@given(TREES, st.data())
def test_every_cut_of_a_tree_is_a_prefix_of_it(value, data):
    axes = tree_map(lambda _: 7, value, is_leaf=lambda _: data.draw(st.booleans()))
    assert prefix_errors(axes, value) == []
    assert broadcast_prefix(axes, value) == [7] * len(tree_leaves(value))
    assert flatten_axes("axes", tree_structure(value), axes) == broadcast_prefix(axes, value)


def test_a_tree_that_cannot_be_flattened_leaves_the_process_its_recursion():
    """C++ kept the levels it had taken: `device_put(x, cyclic)` ended every later call."""
    def levels(n=0):
        try:
            return levels(n + 1)
        except RecursionError:
            return n

    def refuse(x):
        raise ValueError("no")

    cyclic, nested = [1.0], [[[[1.0]]]]
    cyclic.append(cyclic)
    before = levels()
    for _ in range(2):
        with pytest.raises(RecursionError, match="contains itself"):
            olympus.device_put(1.0, cyclic)
        for flatten in (tree_util.tree_leaves, tree_util.tree_leaves_with_path):
            with pytest.raises(RecursionError, match="contains itself"):
                flatten(cyclic, is_leaf=lambda x: x is None)
            with pytest.raises(ValueError, match="no"):
                flatten(nested, is_leaf=lambda x: x == 1.0 and refuse(x))
    assert levels() == before
