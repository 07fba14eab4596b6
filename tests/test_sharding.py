"""Meshes, specifications, shardings and `with_sharding_constraint`.

What needs several devices is in sharded_cases.py, which runs in a process with eight of them: the
number of CPU devices is fixed when the backend starts.
"""

import copy
import pickle
import re
import sys
import types
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import eight_devices
import numpy as np
import pytest
import sharded_cases

import olympus
from olympus import lax
from olympus._src.arrays.assembly import parts_of_process
from olympus._src.base.markup import boxes
from olympus._src.host.pictures import drawn, painter
from olympus.sharding import (
    AbstractMesh, AxisType, ManualAxisType, Mesh, NamedSharding, PartitionSpec,
    SingleDeviceSharding, auto_axes, explicit_axes, make_single_device_sharding, use_abstract_mesh,
)

ROOT = Path(__file__).parent.parent
P = PartitionSpec
DEVICE = olympus.devices()[0]
EXPLICIT = Mesh([DEVICE], "x", AxisType.Explicit)


def within(outer, inner):
    with outer, inner:
        raise AssertionError("entered")


@pytest.fixture(scope="module")
def results(request):
    return eight_devices.outcomes(sharded_cases, request)


@pytest.mark.parametrize("case", sharded_cases.CASES)
def test_on_eight_devices(results, case):
    assert not results[case], results[case]


def test_partition_specs_are_values():
    assert repr(P("x", None, ("x", "y"))) == "P('x', None, ('x', 'y'))"
    assert P(("x",), ()) == P("x", None) and hash(P(("x",))) == hash(P("x"))
    assert P("x") != ("x",) and P("x") != P("x", None)
    assert P("x") + P("y") == P("x") + ("y",) == P("x", "y") == ("x",) + P("y")
    spec = P("x", None, unreduced={"y"})
    assert repr(spec) == "P('x', None, unreduced={'y'})"
    assert pickle.loads(pickle.dumps(spec)) == spec
    assert pickle.loads(pickle.dumps(P(P.UNCONSTRAINED)))[0] is P.UNCONSTRAINED
    assert list(spec) == ["x", None] and len(spec) == 2 and spec[0] == "x"
    assert spec.index(None) == 1 and spec.count("x") == 1
    assert spec.update(partitions=("z",)) == P("z", unreduced={"y"})
    with pytest.raises(AttributeError, match="immutable"):
        spec.partitions = ()


def test_mesh_says_what_it_is():
    mesh = Mesh([[DEVICE]], ("x", "y"))
    assert repr(mesh) == "Mesh(axis_sizes=(1, 1), axis_names=('x', 'y'), axis_types=(Auto, Auto))"
    assert str(mesh) == "Mesh('x': 1, 'y': 1, axis_types=(Auto, Auto))"
    assert dict(mesh.shape) == {"x": 1, "y": 1} and mesh.size == 1 and not mesh.empty
    assert mesh.device_ids.tolist() == [[0]] and mesh.local_devices == [DEVICE]
    assert not mesh.is_multi_process and mesh == Mesh([[DEVICE]], ("x", "y"))
    assert mesh != Mesh([DEVICE], "x")
    model = copy.deepcopy({"mesh": mesh, "sharding": NamedSharding(mesh, P("x"))})
    assert model["mesh"] == mesh and model["sharding"] == NamedSharding(mesh, P("x"))
    for x in (mesh, model["sharding"], olympus.numpy.ones(3).sharding):
        assert copy.copy(x) is x


@pytest.mark.parametrize(("call", "error", "match"), [
    (lambda: Mesh([DEVICE], ("x", "y")), ValueError, "one name per axis"),
    (lambda: Mesh([[DEVICE]], ("x", "x")), ValueError, "distinct names"),
    (lambda: Mesh([DEVICE, DEVICE], "x"), ValueError, "each device may be in a mesh once"),
    (lambda: Mesh(["cpu"], "x"), TypeError, "devices are required"),
    (lambda: Mesh([DEVICE], "x", (AxisType.Manual,)), ValueError, "Auto or Explicit is"),
    (lambda: lax.with_sharding_constraint(olympus.reshard(np.ones(2), NamedSharding(
        EXPLICIT, P("x"))), NamedSharding(EXPLICIT, P())), AssertionError, "use olympus.reshard"),
    (lambda: olympus.reshard(np.ones(2), P("x")), ValueError, "without a mesh"),
    (lambda: olympus.reshard(np.ones(2), NamedSharding(Mesh([DEVICE], "x"), P("x"))), ValueError,
     "explicit axes only"),
    (lambda: olympus.reshard(np.ones(2), NamedSharding(EXPLICIT, P(P.UNCONSTRAINED))), ValueError,
     "no mesh axis_types are"),
    (lambda: olympus.reshard(np.ones(2), NamedSharding(EXPLICIT, P(None, "x"))), ValueError,
     "reshard: .*rank at least 2"),
    (lambda: olympus.reshard(1.0, "x"), TypeError, "a NamedSharding or a PartitionSpec"),
    (lambda: auto_axes(np.sin)(1.0), TypeError, "out_sharding is None"),
    (lambda: explicit_axes(np.sin)(1.0), TypeError, "in_sharding is None"),
    (lambda: explicit_axes(np.sin, in_sharding=P())(1.0), ValueError, "no mesh around"),
    (lambda: use_abstract_mesh(EXPLICIT), TypeError, "an AbstractMesh is required"),
    (lambda: within(use_abstract_mesh(AbstractMesh((2,), "x")), use_abstract_mesh(
        AbstractMesh((4,), "x"))), ValueError, "as many devices"),
    (lambda: AbstractMesh((2,), ("x", "y")), ValueError, "one name per axis"),
    (lambda: AbstractMesh((2,), "x", ("Auto",)), TypeError, "one AxisType for each"),
    (lambda: olympus.make_mesh((2, 512), ("x", "y")), ValueError, "takes 1024 devices"),
    (lambda: olympus.set_mesh("x"), ValueError, "a Mesh or None"),
    (lambda: NamedSharding(Mesh([DEVICE], "x"), P("y")), ValueError, "the mesh has"),
    (lambda: NamedSharding(Mesh([[DEVICE]], ("x", "y")), P("x", "x")), ValueError, "twice"),
    (lambda: NamedSharding(Mesh([DEVICE], "x"), ("x",)), TypeError, "a Mesh and a PartitionSpec"),
    (lambda: NamedSharding(Mesh([DEVICE], "x"), P(unreduced={"x"})), ValueError,
     "Auto axes cannot be unreduced"),
    (lambda: NamedSharding(EXPLICIT, P(reduced={"z"})), ValueError, "the mesh has"),
    (lambda: NamedSharding(olympus.sharding.get_mesh(), P()), ValueError, "a mesh with devices"),
    (lambda: olympus.make_mesh((0,), "x"), ValueError, "at least one device"),
    (lambda: P(("x", ("y",))), ValueError, "a tuple of names"),
    (lambda: P("x", unreduced={"x"}), ValueError, "may be in one of them"),
    (lambda: P(reduced={"x"}, unreduced={"x"}), ValueError, "may be in one of them"),
    (lambda: P(unreduced="x"), TypeError, "a set of names"),
    (lambda: ("y",) + P(unreduced={"x"}), TypeError, "required beside one"),
    (lambda: ManualAxisType(varying={"x"}, reduced={"x"}), ValueError, "one of both"),
    (lambda: olympus.jit(lambda: olympus.set_mesh(None))(), ValueError, "set_mesh: .*outside"),
    (lambda: olympus.jit(lambda: olympus.sharding.get_mesh().size)(), ValueError, "get_mesh: "),
    (lambda: olympus.core.ShapedArray((), "int8", manual_axis_type=ManualAxisType(reduced={"x"})),
     ValueError, "only varying axes"),
    (lambda: lax.with_sharding_constraint(1.0, P("x")), ValueError, "without a mesh"),
    (lambda: lax.with_sharding_constraint(1.0, "x"), TypeError, "a NamedSharding, a Partition"),
    (lambda: lax.with_sharding_constraint("x", None), None, ""),
    (lambda: lax.with_sharding_constraint(np.ones(2), NamedSharding(Mesh([DEVICE], "x"),
                                                                    P(None, "x"))),
     ValueError, "rank at least 2"),
    (lambda: lax.with_sharding_constraint([1.0], {"a": None}), ValueError, "structures differ"),
    (lambda: olympus.device_put(1.0, P("x")), ValueError, "device_put: .*without a mesh"),
    (lambda: olympus.jit(lambda x: x, out_shardings=P("x"))(1.0), ValueError,
     "jit out_shardings: .*without a mesh"),
    (lambda: olympus.device_put(1.0, may_alias=True, donate=True), ValueError, "no second owner"),
    (lambda: make_single_device_sharding(DEVICE, memory_kind="moon"), ValueError,
     "can address the following memory kinds"),
    (lambda: pickle.dumps(NamedSharding(Mesh([DEVICE], "x"), P())), TypeError, "devices of this"),
    (lambda: pickle.dumps(Mesh([DEVICE], "x")), TypeError, "pickle: Mesh.* names devices of this"),
])
def test_bad_input_says_what_is_required(call, error, match):
    if error is None:
        assert call() == "x"
        return
    with pytest.raises(error, match=match):
        call()


def test_one_device_needs_no_partitions():
    sharding = NamedSharding(Mesh([DEVICE], "x"), P("x"))
    f = olympus.jit(lambda x: lax.with_sharding_constraint(x, sharding) + 1)
    y = f(np.arange(4.0))
    assert y.tolist() == [1, 2, 3, 4] and y.sharding.mesh == sharding.mesh
    text = f.lower(np.arange(4.0)).as_text()
    assert "mhlo.num_partitions = 1" in text and "sdy.sharding" not in text
    x = olympus.device_put(np.arange(4.0), sharding)
    assert x.sharding == sharding
    # Results are spread like the first argument with as many axes. Regression: they had P().
    y = olympus.device_put(np.ones((4, 4)), NamedSharding(Mesh([DEVICE], "x"), P(None, "x")))
    found = olympus.jit(lambda x, y: (x, 2 * x, y.T, y[0], y.sum(), y[None]))(x, y)
    assert [z.sharding.spec for z in found] == [
        P("x"), P("x"), P(None, "x"), P("x"), P(), P()]
    assert (x + 1).sharding == olympus.grad(lambda x: (x ** 2).sum())(x).sharding == sharding


def test_the_current_mesh():
    mesh = olympus.make_mesh((1,), ("x",))
    get = olympus.sharding.get_abstract_mesh
    assert olympus.sharding.get_mesh().empty and get() == AbstractMesh((), ())
    with olympus.set_mesh(mesh) as entered:
        assert entered is mesh is olympus.sharding.get_mesh()
        assert get() == mesh.abstract_mesh == AbstractMesh((1,), "x", AxisType.Explicit)
        assert olympus.jit(lambda: lax.with_sharding_constraint(1.0, P()))() == 1
        with mesh.__class__([[DEVICE]], ("a", "b")) as inner:     # of specifications alone
            assert get().empty and olympus.sharding.get_mesh() is inner
    assert get().empty
    setting = olympus.set_mesh(mesh)        # from now on
    assert get().shape == {"x": 1}
    olympus.set_mesh(setting.prev_mesh)
    assert get().empty


def test_an_abstract_mesh_around():
    get, mesh = olympus.sharding.get_abstract_mesh, AbstractMesh((1,), "x", AxisType.Explicit)
    with olympus.set_mesh(Mesh([DEVICE], "x")) as around:
        with use_abstract_mesh(mesh) as entered:
            assert get() is mesh is entered and olympus.sharding.get_mesh() is around
            with olympus.set_mesh(around):
                assert get() == around.abstract_mesh
            assert get() is mesh
        assert get() == around.abstract_mesh
    traced = []
    f = olympus.jit(lambda a: traced.append(get()) or a + 1)
    for _ in range(2):      # the mesh around is part of a program's key
        f.trace(1.0)
        with use_abstract_mesh(mesh):
            f.trace(1.0)
    assert [m.empty for m in traced] == [True, False]


def test_abstract_meshes_have_axes_and_no_devices():
    auto, explicit, manual = AxisType.Auto, AxisType.Explicit, AxisType.Manual
    mesh = AbstractMesh((4, 2, 1), ("x", "y", "z"), (explicit, auto, manual))
    assert (mesh.explicit_axes, mesh.auto_axes, mesh.manual_axes) == (("x",), ("y",), ("z",))
    assert mesh.size == 8 and not mesh.empty and dict(mesh.shape) == {"x": 4, "y": 2, "z": 1}
    assert AbstractMesh((2,), "x", manual).are_all_axes_manual
    assert mesh.update_axis_types({"x": auto}).axis_types == (auto, auto, manual)
    assert hash(mesh.update(axis_sizes=(4, 2, 1))) == hash(mesh) and copy.deepcopy(mesh) is mesh
    sharding = NamedSharding(mesh, P("x"))
    assert repr(sharding) == f"NamedSharding(mesh={mesh}, spec=P('x',))"
    assert sharding == NamedSharding(mesh, P("x")) != NamedSharding(mesh, P("y"))
    with pytest.raises(ValueError, match="names no devices"):
        olympus.device_put(np.ones(4), sharding)


def test_copies_have_memory_of_their_own():
    x = olympus.numpy.ones(3)
    for copied in (olympus.numpy.array(x), x.astype("float32", copy=True),
                   olympus.device_put(x, may_alias=False)):
        assert copied.unsafe_buffer_pointer() != x.unsafe_buffer_pointer()
        assert copied.tolist() == [1, 1, 1] and not copied.committed
    assert x.astype("float32") is x


def test_what_a_program_spreads_over_a_mesh_of_one_device_is_committed_to_it():
    """Otherwise the next operation forgot the mesh: "nothing names its devices"."""
    sharding = NamedSharding(EXPLICIT, P("x"))
    x = olympus.reshard(olympus.numpy.ones((4, 2)), sharding)
    assert x.committed and (x.T + 1).sharding.spec == P(None, "x")
    auto = NamedSharding(Mesh([DEVICE], "x"), P("x"))
    f = olympus.jit(lambda x: lax.with_sharding_constraint(x, auto))
    assert f(olympus.numpy.ones(4)).committed
    assert not olympus.jit(lambda x: x + 1)(np.ones(2)).committed


def test_sums_that_specifications_speak_of_are_kept_and_compared():
    assert P("x", reduced={"y"}) + P("z", unreduced={"u"}, reduced={"w"}) == P(
        "x", "z", unreduced={"u"}, reduced={"y", "w"})
    mesh = Mesh([DEVICE], "x", AxisType.Explicit)
    terms = NamedSharding(mesh, P(unreduced={"x"}))
    assert terms.is_equivalent_to(NamedSharding(mesh, P(None, unreduced={"x"})), 1)
    assert not terms.is_equivalent_to(NamedSharding(mesh, P()), 1)


def test_shardings_of_one_device():
    sharding = make_single_device_sharding(DEVICE)
    x = olympus.device_put(np.arange(4.0), sharding)
    same = SingleDeviceSharding(DEVICE)
    assert x.sharding == sharding == same and hash(same) == hash(sharding)
    assert sharding.with_memory_kind("pinned_host") != sharding
    assert re.fullmatch(r"SingleDeviceSharding\(device=.*, memory_kind=device\)", repr(sharding))
    assert sharding.device_set == {DEVICE} and sharding.num_devices == 1
    assert sharding.is_fully_replicated and sharding.is_fully_addressable
    assert sharding.shard_shape((4, 2)) == (4, 2)
    assert sharding.devices_indices_map((4,)) == {DEVICE: (slice(None),)}
    assert sharding.is_equivalent_to(NamedSharding(Mesh([DEVICE], "x"), P("x")), 1)
    (shard,) = x.addressable_shards
    assert (shard.device, shard.index, shard.replica_id) == (DEVICE, (slice(None),), 0)
    assert shard.data.tolist() == [0, 1, 2, 3] and x.is_fully_replicated


@pytest.mark.parametrize("devices, expected", [
    # Rows of devices of four processes, two each; what process 0 holds of (rows, columns).
    pytest.param("0011/0011/2233/2233", [[0, 1], [0, 1]], id="blocks"),
    pytest.param("0101/0101/2323/2323", [[0, 1], [0, 2]], id="strides"),
    pytest.param("0011/1100/2233/2233", [[0, 1], []], id="columns of one process are all"),
    pytest.param("0012/1023/3312/3021", [[], []], id="no grid"),
])
def test_parts_that_a_process_holds(devices, expected):
    rows = devices.split("/")
    places = [[i, j] for i, row in enumerate(rows) for j in range(len(row))]
    assert parts_of_process(places, [int(c) for row in rows for c in row], 0) == expected


def test_pictures_in_colour_hold_the_same_text():
    labels = {(0, 0): "a", (1, 0): "b"}
    for color_map in (None, lambda number: (number, 0.5, 1.0, 1.0)):
        coloured = drawn(labels, 3, 5, painter(color_map))
        assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == drawn(labels, 3, 5)
        assert len(set(re.findall(r"48;2;[0-9;]*m", coloured))) == 2


def test_pictures_in_notebooks_are_tables(monkeypatch):
    shown = []
    display = types.SimpleNamespace(display=shown.append, HTML=str)
    shell = types.SimpleNamespace(kernel=None)
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(
        display=display, get_ipython=lambda: shell))
    olympus.debug.visualize_array_sharding(olympus.numpy.ones((2, 2)))
    (text,) = shown
    root = ElementTree.fromstring(text)
    assert [cell.text for cell in root.iter("td")] == [f"{DEVICE.platform.upper()} {DEVICE.id}"]
    assert "rgb(230,92,92)" in text
    labels = {(0, 0): "a", (0, 1): "b", (1, 0): "c", (1, 1): "d"}
    cells = [[cell.text for cell in row] for row in ElementTree.fromstring(boxes(labels, 1, 3))]
    assert cells == [["a", "b"], ["c", "d"]]


def test_a_struct_has_the_mesh_of_where_its_sharding_is_read():
    """Was: TypeError where it is made, which may be before there is a mesh."""
    struct = olympus.ShapeDtypeStruct((2,), "float32", sharding=PartitionSpec("x"))
    assert repr(struct) == "ShapeDtypeStruct(shape=(2,), dtype=float32, sharding=P('x',))"
    for read in (lambda: struct.sharding, lambda: struct.format, lambda: olympus.typeof(struct)):
        with pytest.raises(TypeError, match="the context mesh cannot be empty"):
            read()
    mesh = olympus.make_mesh((1,), ("x",))
    with olympus.set_mesh(mesh):
        assert struct.sharding == NamedSharding(mesh, PartitionSpec("x"))
        assert struct == struct.update(weak_type=False)
        compiled = olympus.jit(lambda x: x + 1).lower(struct).compile()
    assert compiled.input_shardings[0][0] == NamedSharding(mesh, PartitionSpec("x"))
