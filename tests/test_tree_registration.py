"""Pytrees: registering classes as nodes, and what each mistake is told."""

import dataclasses
import functools

import pytest
from test_tree import Mode, Node, Span, State

from olympus import tree
from olympus.tree_util import (
    is_tree_node, register_dataclass, register_pytree_node, register_pytree_node_class,
    register_pytree_with_keys, register_pytree_with_keys_class, register_static, tree_leaves,
    tree_map, tree_structure,
)


@dataclasses.dataclass
class Fields:
    a: int
    b: int
    c: int = dataclasses.field(default=1, init=False)
    s: str = tree.static(default="x")


class Plain:
    def __init__(self, a, b):
        self.a, self.b = a, b


def _pair(_):
    return (), None


@pytest.mark.parametrize(
    ("call", "error", "part"),
    [
        (lambda: register_pytree_node(list, _pair, max), ValueError, "registration for builtins"),
        (lambda: register_pytree_node(Node, _pair, max), ValueError, "a class is registered once"),
        (lambda: register_pytree_with_keys(Node, _pair, max), ValueError, "with_keys: "),
        (lambda: register_static(Node), ValueError, "register_static: "),
        (lambda: register_dataclass(State), ValueError, "registration for test_tree"),
        (lambda: register_pytree_node(3, _pair, max), TypeError, "got 3 of type int; a class"),
        (lambda: register_pytree_node(Plain, 3, max), TypeError, "got 3 for Plain; flatten"),
        (lambda: register_pytree_node_class(Plain), AttributeError, "lacks tree_flatten, tree_un"),
        (lambda: register_pytree_with_keys_class(Plain), AttributeError, "tree_flatten_with_keys"),
        (lambda: register_pytree_node_class(Plain(1, 2)), TypeError, "a class is required"),
        (lambda: register_static(Mode("a")), TypeError, "a class is required"),
        (lambda: register_dataclass(Plain(1, 2), [], []), TypeError, "a class is required"),
        (lambda: register_dataclass(Plain), TypeError, "when nodetype is not a dataclass"),
        (lambda: register_dataclass(Fields, ["a"]), TypeError, "must both be specified"),
        (lambda: register_dataclass(Fields, None, ["a"]), TypeError, "meta_fields=['a']"),
        (lambda: register_dataclass(Fields, "ab", []), TypeError, "got the string 'ab'"),
        (lambda: register_dataclass(Fields, ["a"], ["b"]), ValueError, "Missing fields: {'s'}"),
        (lambda: register_dataclass(Fields, ["a", "q", "b"], ["s"]), ValueError, "fields: {'q'}"),
        (lambda: register_dataclass(Fields, ["a", "b", "c"], ["s"]), ValueError, "fields: {'c'}"),
        (lambda: register_dataclass(Fields, ["a", "b"], ["s", "a"]), ValueError, "not overlap"),
        (lambda: register_dataclass(Fields, ["a", "b", "a"], ["s"]), ValueError,
         "data_fields names ['a'] of Fields more than once"),
        (lambda: register_dataclass(Fields, ["a"], ["s", "b", "s"]), ValueError,
         "meta_fields names ['s'] of Fields more than once"),
    ],
)
def test_registration_errors(call, error, part):
    with pytest.raises(error) as caught:
        call()
    assert part in " ".join(str(caught.value).split())
    assert not is_tree_node(Fields)
    assert not is_tree_node(Plain)


def test_a_class_built_by_keywords_can_be_a_dataclass_node():
    class Pair(Plain):
        pass

    assert register_dataclass(Pair, ("a",), ("b",)) is Pair
    assert tree_leaves(Pair(1, 2)) == [1]
    assert tree_structure(Pair(1, 2)) != tree_structure(Pair(1, 3))
    assert tree_map(str, Pair(1, 2)).a == "1"


def test_drop_fields_are_left_out_of_what_is_inferred():
    @functools.partial(register_dataclass, drop_fields=("memo",))
    @dataclasses.dataclass
    class Memoised:
        x: int
        memo: object = None

    assert tree_leaves(Memoised(1, "m")) == [1]
    assert tree_map(str, Memoised(1, "m")) == Memoised("1", None)


def test_a_subclass_is_not_registered():
    class Sub(Span):
        pass

    value = Sub(1, 2)
    assert tree_leaves(value) == [value]


def test_static_field():
    assert dict(tree.static().metadata) == {"static": True}
    assert dict(tree.static(metadata={"a": 1}).metadata) == {"static": True, "a": 1}
    assert dict(tree.static(metadata={"static": False}).metadata) == {"static": False}
    assert tree.static(default=3).default == 3
