"""Arrangements of devices; devices of many processes and slices are stand-ins here."""

import subprocess
import sys
from dataclasses import dataclass

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
