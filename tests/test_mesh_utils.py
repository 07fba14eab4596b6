"""Arrangements of devices; devices of many processes and slices are stand-ins here."""

import subprocess
import sys
from dataclasses import dataclass
from math import prod

import numpy as np
import pytest

import olympus
from olympus.experimental import mesh_utils


@dataclass(frozen=True)
class Stand:
    id: int
    process_index: int
    slice_index: int = 0


def ids(mesh):
    return np.vectorize(lambda d: d.id)(mesh).tolist()


@dataclass(frozen=True)
class Chip(Stand):
    """A core of a TPU."""
    coords: tuple[int, ...] = ()
    core_on_chip: int = 0
    platform: str = "tpu"


def chips(*sizes, cores=1):
    """Cores of a block of a torus of sizes x, y, z, listed by host: squares of 2 x 2 chips."""
    x, y, z = sizes
    tile = lambda n: min(n, 2)
    order = [(i + a, j + b, k) for k in range(z) for j in range(0, y, tile(y))
             for i in range(0, x, tile(x)) for b in range(tile(y)) for a in range(tile(x))]
    return [Chip(number, number // (4 * cores), coords=(a + 1, b + 3, c), core_on_chip=core)
            for number, (core, a, b, c) in enumerate(
                (core, *place) for place in order for core in range(cores))]


def hops(mesh, axis):
    """The links of the torus, if it is closed, between neighbours along an axis of a mesh."""
    places = np.array([(*d.coords, d.core_on_chip) for d in mesh.flat]).reshape(*mesh.shape, 4)
    sizes = np.ptp(places, axis=tuple(range(mesh.ndim))) + 1
    steps = np.abs(np.roll(places, -1, axis) - places)
    return np.minimum(steps, sizes - steps).sum(-1)


FOUR = [Stand(i, i // 2, 1 - i // 2) for i in range(4)]     # two processes, slices the other way
MIXED = [Stand(i, i % 2) for i in range(4)]


def test_devices_keep_their_order():
    assert ids(mesh_utils.create_device_mesh([2, 2], FOUR)) == [[0, 1], [2, 3]]
    assert ids(mesh_utils.create_device_mesh((4, 1), MIXED)) == [[0], [1], [2], [3]]
    assert mesh_utils.create_device_mesh((olympus.device_count(),)).tolist() == olympus.devices()


def test_submeshes_of_a_process_may_be_asked_to_be_blocks():
    for devices, shape in ((FOUR, (2, 2)), (FOUR, (4,)), (MIXED, (2, 2))):
        made = mesh_utils.create_device_mesh(shape, devices, contiguous_submeshes=True)
        assert made.shape == shape
    with pytest.raises(ValueError, match="devices of process 0 are no block"):
        mesh_utils.create_device_mesh((4,), MIXED, contiguous_submeshes=True)


@pytest.mark.parametrize("sizes, cores, shape", [
    ((2, 2, 1), 1, (4,)), ((2, 4, 1), 1, (2, 4)), ((2, 4, 1), 1, (4, 2)), ((4, 4, 1), 1, (4, 4)),
    ((16, 16, 1), 1, (16, 16)), ((16, 16, 1), 1, (1, 256)), ((4, 4, 4), 1, (4, 16)),
    ((4, 4, 4), 1, (16, 1, 4)), ((2, 2, 4), 1, (2, 8)), ((2, 2, 1), 2, (8,)),
    ((2, 2, 1), 2, (4, 2)), ((6, 2, 1), 1, (12,)), ((4, 2, 1), 1, (2, 4, 1)),
    ((2, 4, 8), 1, (2, 4, 8)),
], ids=str)
def test_axes_of_a_mesh_are_rings_of_a_torus(sizes, cores, shape):
    devices = chips(*sizes, cores=cores)
    made = mesh_utils.create_device_mesh(shape, devices)
    assert made.shape == shape and set(made.flat) == set(devices)
    for axis, size in enumerate(shape):
        assert size == 1 or hops(made, axis).max() == 1


@pytest.mark.parametrize("sizes, shape", [
    ((16, 16, 1), (2, 128)), ((16, 16, 1), (2, 8, 16)), ((4, 4, 4), (8, 8)), ((6, 4, 1), (3, 8)),
    ((6, 4, 1), (4, 6)), ((12, 6, 1), (4, 18)), ((3, 3, 1), (9,))], ids=str)
def test_axes_of_a_torus_are_split_where_sizes_need_it(sizes, shape):
    devices = chips(*sizes) if prod(sizes) % 4 == 0 else [
        Chip(i, 0, coords=(i % 3, i // 3, 0)) for i in range(9)]
    made = mesh_utils.create_device_mesh(shape, devices)
    assert made.shape == shape and set(made.flat) == set(devices)
    assert hops(made, -1).mean() < 1.5


def test_tpus_that_fill_no_block_keep_their_order():
    eight = chips(2, 4, 1)
    for devices in (eight[1:], eight[:3], [*eight[:4], eight[0]], eight[:1], []):
        made = mesh_utils.create_device_mesh((len(devices),), devices)
        assert made.tolist() == devices


def test_a_ring_gives_way_to_blocks_of_a_host():
    many = chips(4, 4, 1)
    ring = mesh_utils.create_device_mesh((16,), many)
    assert [d.process_index for d in ring] != sorted(d.process_index for d in ring)
    blocks = mesh_utils.create_device_mesh((16,), many, contiguous_submeshes=True)
    assert blocks.tolist() == many
    square = mesh_utils.create_device_mesh((4, 4), many, contiguous_submeshes=True)
    assert (square == mesh_utils.create_device_mesh((4, 4), many)).all()


def test_slices_of_tpus_are_rings_each():
    slices = [Chip(d.id, d.process_index, s, (*d.coords,)) for s in (0, 1) for d in chips(2, 2, 1)]
    made = mesh_utils.create_hybrid_device_mesh((1, 4), (2, 1), slices)
    assert [[d.slice_index for d in row] for row in made] == [[0] * 4, [1] * 4]
    assert hops(made, 1).max() == 1


@pytest.mark.parametrize("inner, outer, expected", [
    ((2,), (2,), [0, 1, 2, 3]),
    ((1, 2), (2, 1), [[0, 1], [2, 3]]),
    ((2, 1), (1, 2), [[0, 2], [1, 3]]),
    ((2, 1), (2, 1), [[0], [1], [2], [3]]),
])
def test_hybrid_meshes_are_blocks_of_processes(inner, outer, expected):
    def made(devices, **how):
        return ids(mesh_utils.create_hybrid_device_mesh(inner, outer, devices, **how))

    assert made(FOUR, process_is_granule=True) == expected
    swapped = np.array([2, 3, 0, 1])[np.array(expected)].tolist()
    assert made(FOUR) == swapped
    assert made(FOUR, should_sort_granules_by_key=False) == expected
    assert made(FOUR[::-1], process_is_granule=True, should_sort_granules_by_key=False) == (
        3 - np.array(expected)).tolist()


@pytest.mark.parametrize("match, call", [
    ("3 are required", lambda: mesh_utils.create_device_mesh((3,), FOUR)),
    ("as many axes", lambda: mesh_utils.create_hybrid_device_mesh((2,), (2, 1), FOUR)),
    ("4 are required; give another dcn",
     lambda: mesh_utils.create_hybrid_device_mesh((1,), (4,), FOUR)),
    ("slice_index 0: mesh_shape .1,. and 2 devices",
     lambda: mesh_utils.create_hybrid_device_mesh((1,), (2,), FOUR)),
    ("process_is_granule=True", lambda: mesh_utils.create_hybrid_device_mesh((1,), (1,))),
], ids=["count", "rank", "blocks", "in a block", "no slices"])
def test_shapes_that_do_not_fit_are_refused(match, call):
    with pytest.raises(ValueError, match=match):
        call()


def test_importing_olympus_does_not_import_it():
    code = ("import sys, olympus; assert 'olympus._src.devices.mesh_utils' not in sys.modules; "
            "olympus.experimental.mesh_utils.create_device_mesh")
    subprocess.run([sys.executable, "-c", code], check=True)
