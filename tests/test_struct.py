"""Frozen dataclasses as pytrees: `olympus.struct`."""

import copy
import dataclasses
import functools
import pickle
import sys
from typing import ClassVar, Generic, TypeVar

import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus import struct, tree, tree_util

T = TypeVar("T")


@struct.dataclass
class Layer:
    w: olympus.Array
    b: olympus.Array
    name: str = struct.field(static=True, default="layer")

    def __call__(self, x):
        return x @ self.w + self.b


@struct.dataclass
class Named(Layer, Generic[T]):
    sizes: tuple[int, ...] = struct.field(static=True, default=())
    more: T = struct.field(default_factory=dict)
    total: int = struct.field(init=False, static=True)
    kind: ClassVar[str] = "named"

    def __post_init__(self):
        object.__setattr__(self, "total", sum(self.sizes))


@struct.dataclass(kw_only=True, slots=True)
class Slotted:
    x: float
    mode: str = struct.field(static=True)


LAYER = Layer(onp.array([[1., 2.], [3., 4.]]), onp.array([5., 6.]))


def test_fields_are_children_or_structure():
    named = Named(1., 2., "n", (3, 4), {"a": 5.})
    leaves, structure = tree.flatten(named)
    assert leaves == [1., 2., 5.] and named.total == 7
    assert [tree_util.keystr(p) for p, _ in tree.leaves_with_path(named)] == [
        ".w", ".b", ".more['a']"]
    again = tree.unflatten(structure, [10., 20., 50.])
    assert again == Named(10., 20., "n", (3, 4), {"a": 50.}) and again.total == 7
    assert structure != tree.structure(named.replace(sizes=(7,)))
    assert tree.map(lambda x: None, Slotted(x=1., mode="a")) == Slotted(x=None, mode="a")


def test_transformations_take_and_return_them():
    x = np.array([0.5, -1.])
    expected = x @ np.asarray(LAYER.w) + np.asarray(LAYER.b)
    np.testing.assert_allclose(olympus.jit(lambda f, x: f(x))(LAYER, x), expected)
    gradient = olympus.jit(olympus.grad(lambda f: f(x).sum()))(LAYER)
    assert type(gradient) is Layer and gradient.name == "layer"
    np.testing.assert_allclose(gradient.w, np.outer(x, [1., 1.]))
    batch = olympus.vmap(lambda s: LAYER.replace(b=LAYER.b * s))(onp.arange(3.))
    assert batch.w.shape == (3, 2, 2) and batch.b.shape == (3, 2)
    carry, _ = olympus.lax.scan(lambda f, _: (f.replace(b=2. * f.b), None), LAYER, length=3)
    np.testing.assert_allclose(carry.b, 8. * np.asarray(LAYER.b))


def test_programs_are_kept_by_static_fields():
    f = olympus.jit(lambda layer: layer.b)
    for name in ("a", "b", "a"):
        f(LAYER.replace(name=name))
    assert f.cache_info().traces == 2


def test_they_are_dataclasses_with_all_that_these_have():
    assert dataclasses.is_dataclass(Layer) and Layer.__name__ == "Layer"
    assert repr(Slotted(x=1., mode="a")) == "Slotted(x=1.0, mode='a')"
    assert not hasattr(Slotted(x=1., mode="a"), "__dict__")
    with pytest.raises(dataclasses.FrozenInstanceError):
        LAYER.w = 1.
    for copied in (copy.copy(LAYER), copy.deepcopy(LAYER), pickle.loads(pickle.dumps(LAYER)),
                   dataclasses.replace(LAYER), LAYER.replace()):
        assert copied is not LAYER and copied.name == "layer"
        np.testing.assert_array_equal(copied.w, LAYER.w)
    if sys.version_info >= (3, 13):
        assert copy.replace(LAYER, name="z").name == "z"
    assert {Slotted(x=1., mode="a"): 2}[Slotted(x=1., mode="a")] == 2


def test_a_field_of_the_name_replace_is_the_users():
    @struct.dataclass
    class Own:
        replace: float
    assert Own(3.).replace == 3. and tree.leaves(Own(3.)) == [3.]


def test_static_fields_of_a_base_are_checked_in_its_subclass():
    with pytest.raises(TypeError, match=r"^Named: static field name=\['a'\] of type list given"):
        Named(1., 2., ["a"])
    with pytest.raises(TypeError, match="Named: static field sizes="):
        Named(1., 2., "n").replace(sizes=[1, 2])


def _frozen_false():
    struct.dataclass(frozen=False)(type("Melted", (), {}))


def _own_init():
    @struct.dataclass
    class Own:
        x: float

        def __init__(self, size):
            object.__setattr__(self, "x", float(size))


def _init_var():
    @struct.dataclass
    class Own:
        x: float
        size: dataclasses.InitVar[int]


@pytest.mark.parametrize(("call", "parts"), [
    (lambda: Layer(1., 2., ["a"]), ["Layer: static field name=['a'] of type list given",
                                    "write a tuple instead of a list"]),
    (lambda: Layer(1., 2., name=onp.ones(2)), ["static field name=Array([1., 1.]", "a child"]),
    (lambda: Layer(1., 2., name=np.ones(2)), ["type ndarray", "make the field a child"]),
    (lambda: Layer(1., 2., name=("a", [])), ["name=('a', [])", "unhashable type: 'list'"]),
    (lambda: olympus.jit(lambda x: LAYER.replace(name=x).w)(1.), ["static field name=", "a child"]),
    (lambda: LAYER.replace(weight=1.), ["Layer.replace: weight given", "one of w, b, name"]),
    (lambda: LAYER.replace(names=1.), ["Layer.replace: names given", "use name."]),
    (lambda: Named(1., 2.).replace(total=3), ["total given; it is computed", "init=False"]),
    (_frozen_false, ["frozen=False given for Melted", "x.replace(field=value)"]),
    (_own_init, ["Own cannot be made of its fields x", "write a classmethod"]),
    (_init_var, ["missing a required argument: 'size'"]),
    (lambda: struct.dataclass(3), ["got 3 of type int; a class is required"]),
    (functools.partial(Layer, 1.), ["missing 1 required positional argument: 'b'"]),
], ids=lambda value: None if callable(value) else value[0][:30])
def test_mistakes_are_told_where_they_are_made(call, parts):
    with pytest.raises(TypeError) as raised:
        call()
    assert not [part for part in parts if part not in " ".join(str(raised.value).split())]
