"""Pytrees of 200 leaves."""

from ..cases import Group, Loop

group = Group("trees", "Pytrees of 200 leaves")


def nested():
    return {f"block{i}": {f"layer{j}": {"w": 1.0, "b": 2.0, "more": (3.0, [4.0])}
                          for j in range(5)} for i in range(10)}


@group.case("flatten")
def _(L):
    tree, flatten = nested(), L.tree.flatten
    return Loop(lambda: flatten(tree))


@group.case("flatten with paths")
def _(L):
    tree, flatten = nested(), L.tree.flatten_with_path
    return Loop(lambda: flatten(tree))


@group.case("unflatten")
def _(L):
    leaves, structure = L.tree.flatten(nested())
    unflatten = L.tree.unflatten
    return Loop(lambda: unflatten(structure, leaves))


@group.case("map")
def _(L):
    tree, tree_map = nested(), L.tree.map
    return Loop(lambda: tree_map(abs, tree))
