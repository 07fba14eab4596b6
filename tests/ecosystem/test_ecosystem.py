"""Programs of JAX's libraries, unchanged, give on Olympus what real jax gave (`results.json`).

`requirements.txt` says how to install the libraries; a program of one that is missing is skipped.
The programs run in a few processes, since importing takes most of their time.
"""

import functools
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parent
STORED = json.loads((FOLDER / "results.json").read_text(encoding="utf-8"))
PROCESSES = [
    ["chex", "distrax", "flax_linen", "flax_nnx", "haiku", "jraph", "optax", "orbax", "rlax"],
    ["diffrax", "einops", "equinox", "jaxtyping", "lineax", "optimistix"],
    ["blackjax", "jaxopt", "numpyro"],
    ["evosax", "gymnax", "tensorflow_probability"],
    ["augmax", "e3nn_jax", "jaxlie", "jaxoplanet", "jaxwt", "kfac_jax", "ott", "signax"],
    ["flashbax", "jumanji"],
    ["interpax", "mctx", "pyhf", "tinygp"],
    ["asdex", "jaxscape", "mpax", "sparsejac", "tatva"],
    ["ejkernel", "gdn2_pallas", "pallas_forge", "tokamax"],
    ["dm_pix", "einshape", "finitediffx", "kernex", "matfree", "tree_math"],
    ["coordax", "cuthbert", "jaxdp", "jaxkd", "jmp", "penzai"],
    ["exponax", "lyapax", "orthax", "paramax", "quadax", "sympy2jax", "traceax"],
]
PROGRAMS = sorted(path.stem.removeprefix("uses_") for path in FOLDER.glob("uses_*.py"))
# The other libraries' programs have their names.
MODULES = {"flax_linen": "flax", "flax_nnx": "flax", "gdn2_pallas": "atomic_ops"}


def installed(name):
    return importlib.util.find_spec(MODULES.get(name, name)) is not None


@functools.cache
def reports(*names):
    """What each of some programs printed, run one after another in a process."""
    done = subprocess.run(
        [sys.executable, "-m", "olympus.as_jax", FOLDER / "run.py", *filter(installed, names)],
        env={k: v for k, v in os.environ.items() if k != "OLYMPUS_AS_JAX"},   # "off" in the tests
        capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return {line["name"]: line for line in map(json.loads, done.stdout.splitlines())}


def check(found, expected, tolerances, path=""):
    """Equal structure, text and truth; numbers near, by the largest one of their array."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            check(found[name], value, tolerances, path or name)
    elif isinstance(expected, list) and not same_shape(expected):
        assert len(found) == len(expected), path
        for pair in zip(found, expected, strict=True):
            check(*pair, tolerances, path)
    elif np.asarray(expected).dtype.kind == "f":
        found, expected = np.asarray(found), np.asarray(expected)
        assert found.shape == expected.shape, path
        error = np.abs(found - expected).max(initial=0) / np.abs(expected).max(initial=1e-3)
        assert error <= tolerances.get(path, 1e-4), (path, error, found, expected)
    else:
        assert found == expected, path


def same_shape(values):
    """Whether nested lists are an array."""
    return len({np.shape(v) if not isinstance(v, list) or same_shape(v) else None
                for v in values}) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_gives_what_it_gives_on_jax(name):
    if not installed(name):
        pytest.skip(f"{name} is not installed; tests/ecosystem/requirements.txt says how")
    report = reports(*next(names for names in PROCESSES if name in names))[name]
    assert "error" not in report, report["error"]
    check(report["result"], STORED["results"][name], report["tolerances"])


TYPED = """
import jax, jaxls, jax.numpy as jnp
n, m = jax.export.symbolic_shape("n, m")
@jaxls.typed
def total(x: jaxls.Shaped[jax.Array, (n, m), jnp.float32]
          ) -> jaxls.Shaped[jax.Array, (n,), jnp.float32]:
    y = jnp.sin(x)
    return y.sum(axis=1)
lines, = jaxls.type_registry.frames.values()
print([(e.frame.start_line, e.frame.start_column, e.out_shapes[0].shape) for e in lines.values()])
"""


@pytest.mark.slow
def test_jaxls_finds_the_types_of_lines():
    # On JAX 0.10.2 itself it cannot be imported, so that there are no results of JAX.
    if not installed("jaxls"):
        pytest.skip("jaxls is not installed; tests/ecosystem/requirements.txt says how")
    done = subprocess.run(
        [sys.executable, "-m", "olympus.as_jax", "-c", TYPED], capture_output=True, text=True,
        env={k: v for k, v in os.environ.items() if k != "OLYMPUS_AS_JAX"}, check=False)
    assert done.stdout == "[(7, 8, ('n', 'm')), (8, 11, ('n',))]\n", done.stderr


def test_every_program_has_a_result_of_the_versions_that_are_installed_for_it():
    lines = (FOLDER / "requirements.txt").read_text(encoding="utf-8").splitlines()
    pinned = dict(line.split("==") for line in lines if "==" in line)
    assert STORED["versions"] == pinned | {"jax": pinned["jaxlib"]}
    assert sorted(STORED["results"]) == PROGRAMS == sorted(sum(PROCESSES, []))


def test_numbers_text_and_structure_of_results_are_compared():
    expected = {"a": [1.0, 1e-6], "b": [[1.0], [2.0, 3.0]], "c": "x", "d": [True]}
    check({"a": [1.00001, 0.0], "b": [[1.0], [2.0, 3.0]], "c": "x", "d": [True]}, expected, {})
    for name, wrong in (("a", [1.1, 0.0]), ("a", [1.0]), ("b", [[1.0], [2.0, 4.0]]), ("c", "y"),
                        ("d", [False]), ("a", [float("nan"), 0.0])):
        with pytest.raises(AssertionError):
            check(expected | {name: wrong}, expected, {})
    check(expected | {"a": [1.1, 0.0]}, expected, {"a": 0.2})
