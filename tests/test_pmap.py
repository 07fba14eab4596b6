"""`pmap`, and collectives along axes of meshes.

What needs devices is in pmap_cases.py, and at length in mesh_collective_cases.py.
"""

from pathlib import Path

import eight_devices
import mesh_collective_cases
import numpy as np
import pmap_cases
import pytest

import olympus
from olympus import lax
from olympus._src.job import launch

pmap_in_processes = str(Path(__file__).parent / "pmap_in_processes.py")


@pytest.fixture(scope="module")
def results(request):
    return eight_devices.outcomes(pmap_cases, request)


@pytest.mark.parametrize("case", pmap_cases.CASES)
def test_on_eight_devices(results, case):
    assert not results[case], results[case]


@pytest.fixture(scope="module")
def more_results(request):
    return eight_devices.outcomes(mesh_collective_cases, request)


@pytest.mark.slow
@pytest.mark.parametrize("case", mesh_collective_cases.CASES)
def test_collectives_on_eight_devices(more_results, case):
    assert not more_results[case], more_results[case]


@pytest.mark.slow
def test_processes_share_a_program(capfd):
    assert launch.launch([pmap_in_processes], 2, 2) == 0, capfd.readouterr()


@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda: olympus.pmap(1), TypeError, "pmap: Expected a callable value, got 1"),
    (lambda: olympus.pmap(abs, in_axes="a"), TypeError, "the leaf 'a'"),
    (lambda: olympus.pmap(abs, in_axes=True), TypeError, "the leaf True"),
    (lambda: olympus.pmap(abs, out_axes=1.0), TypeError, "the leaf 1.0"),
    (lambda: olympus.pmap(abs, axis_name=("i",)), TypeError, "axis_name=\\('i',\\) of type tuple"),
    (lambda: olympus.pmap(abs, devices=[]), ValueError, "must be non-empty, or None"),
    (lambda: olympus.pmap(abs, static_broadcasted_argnums="x"), TypeError,
     "pmap: static_broadcasted_argnums='x' given"),
    (lambda: olympus.pmap(abs)(), ValueError, "without any array"),
    (lambda: olympus.pmap(abs, in_axes=None)(1.0), ValueError, "no argument of abs is mapped"),
])
def test_messages(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_one_device():
    f = olympus.pmap(lambda x: lax.psum(x, "i") + lax.axis_index("i"), "i")
    assert f(np.array([3.0])).tolist() == [3.0]
