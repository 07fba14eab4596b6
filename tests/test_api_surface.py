"""The public surface: façades hold names only, each name is JAX's, each signature too.

tests/data/api.json (tools/freeze_api.py) holds the names and signatures of JAX 0.10.2 and 0.12.0.1
under Olympus's names, and the list that this version must have.
"""

import enum
import functools
import importlib
import inspect
import json
import pkgutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import olympus

API = json.loads((Path(__file__).parent / "data" / "api.json").read_text(encoding="utf-8"))
BEYOND = {  # where names that JAX lacks may come from: NumPy or SciPy
    "olympus.numpy": np, "olympus.random": np.random.Generator,
    **{f"olympus.{name}": importlib.import_module(name) for name in (
        "scipy.cluster.vq", "scipy.integrate", "scipy.interpolate", "scipy.linalg",
        "scipy.ndimage", "scipy.fft", "scipy.optimize", "scipy.signal", "scipy.sparse.linalg",
        "scipy.spatial.transform", "scipy.special", "scipy.stats")},
}
KINDS = ("pos", "pos_or_kw", "var_pos", "kw", "var_kw")  # in the order of inspect's kinds


OURS = {    # what nobody else has a name for
    "olympus": {"memory_report"},
    "olympus.debug": {"Amplification", "ArgumentMemory", "CacheMemory", "Drawing", "Exchange",
                      "FunctionMemory", "LineMemory", "MemoryPlan", "MemoryReport", "NanFound",
                      "Parting", "Plan", "Plans", "Precision", "Recording", "SlowOp", "SlowOps",
                      "Step", "bisect", "draw", "find_nan", "holds", "kernels", "plan",
                      "precision", "record", "slow_ops"},
    "olympus.errors": {"DonatedArgumentError", "FormatError", "IncompatibleDevicesError",
                       "IndexTypeError", "IndexValueError", "LeakError", "RetraceError",
                       "RetraceWarning", "RuleMissingError", "ShardingTypeError",
                       "StaleValueError", "StaleValueWarning"},
    "olympus.extend.backend": {"register_pjrt_plugin"},
    "olympus.stages": {"CacheInfo", "Difference", "Explanation"}}


@functools.cache
def public_modules():
    """Every module that users import, by name."""
    found = pkgutil.walk_packages(olympus.__path__, "olympus.")
    return ["olympus", *(m.name for m in found if "._src" not in m.name)]


def load(name):
    """The public module of that name."""
    return importlib.import_module(name)


DEFAULTS = {str(default) for members in API["names"].values() for kind in members.values()
            if len(kind) > 1 for *_, default in kind[1]}     # names in signatures are public, too
CHECKED = [name for name in API["names"] if name != "olympus" and name in public_modules()]


@pytest.mark.parametrize("name", public_modules())
def test_all_lists_each_name_once_and_has_it(name):
    module = load(name)
    listed = getattr(module, "__all__", None)
    assert listed is not None, f"{name} has no __all__"
    assert len(listed) == len(set(listed)), f"{name}.__all__ repeats a name"
    missing = [n for n in listed if not hasattr(module, n)]
    assert not missing, f"{name}.__all__ lists what is not there: {missing}"


@pytest.mark.parametrize("name", public_modules())
def test_functions_of_a_facade_are_documented(name):
    module = load(name)
    functions = {n: getattr(module, n) for n in module.__all__}
    bare = [n for n, f in functions.items() if inspect.isfunction(f) and not f.__doc__]
    assert not bare, f"{name}: no docstring on {bare}"


@pytest.mark.parametrize("module", CHECKED)
def test_no_name_of_our_own(module):
    package, _, name = module.rpartition(".")
    beyond = BEYOND.get(module, getattr(BEYOND.get(package), name, None))
    extra = set(load(module).__all__) - set(API["names"][module]) - set(dir(beyond)) - {
        default.rpartition(".")[2] for default in DEFAULTS if default.startswith(f"{module}.")}
    extra -= OURS.get(module, set())
    assert not extra, f"{module}: names that neither JAX nor NumPy nor SciPy has: {sorted(extra)}"


# Needed names that are not there yet, with the reason. A name that is not whole is absent.
ABSENT: dict[str, str] = {}


def test_first_breadth_is_there():
    splits = [name.rpartition(".") for name in API["needed"] if name not in ABSENT]
    missing = [f"{m}.{n}" for m, _, n in splits if not hasattr(load(m), n)]
    assert not missing, f"{len(missing)} of {len(splits)} needed names are missing: {missing}"


def test_names_listed_as_absent_are_absent():
    assert not [n for n in ABSENT if hasattr(load(n.rpartition(".")[0]), n.rpartition(".")[2])]


def spell(default):
    """A default as the frozen file spells it; None for a required parameter."""
    if default is inspect.Parameter.empty:
        return None
    if isinstance(default, enum.Enum):
        return f"{type(default).__name__}.{default.name}"
    if isinstance(default, type):
        return getattr(getattr(default, "dtype", None), "name", default.__name__)
    return repr(default.item() if hasattr(default, "item") else default)


def is_literal(text):
    """Is the frozen default a number, a string or a constant, so that spelling must agree?"""
    return text[0].isdigit() or text[0] in "-'(" or text in ("None", "True", "False")


def mismatches(expected, function):
    """What differs between the frozen parameters and a function's own, in words."""
    got = {p.name: p for p in inspect.signature(function).parameters.values()}
    kinds = {KINDS[p.kind] for p in got.values()}
    for name, kind, default in expected:
        if kind in ("var_pos", "var_kw"):
            if kind not in kinds:
                yield f"no {'*' if kind == 'var_pos' else '**'}{name}"
        elif name not in got:
            if kind != "pos":  # the name of a positional-only parameter is free
                yield f"no {name}"
        else:
            mine, own_default = KINDS[got[name].kind], spell(got[name].default)
            if mine != kind and not (kind in ("pos", "kw") and mine == "pos_or_kw"):
                yield f"{name} is {mine}, not {kind}"
            if (default is None) != (own_default is None):
                yield f"{name}: default {own_default}, not {default}"
            elif default is not None and is_literal(default) and own_default != default:
                yield f"{name}={own_default}, not {default}"
    wanted = [name for name, kind, _ in expected if kind in ("pos", "pos_or_kw") and name in got]
    if wanted != [name for name in got if name in wanted]:
        yield f"order {list(got)}, not {wanted}"


def wrong_signatures(module):
    """What differs, of each name of the module that has a frozen signature and that we have."""
    for name, (kind, *variants) in API["names"][module].items():
        # A ufunc object's signature is its class's __call__; what it computes is an op row.
        if kind == "function" and variants and hasattr(load(module), name):
            function = getattr(load(module), name)
            found = [list(mismatches(expected, function)) for expected in variants]
            if [] not in found:
                yield f"{module}.{name}{inspect.signature(function)}: {min(found, key=len)}"


@pytest.mark.parametrize("module", ["olympus", *CHECKED])
def test_signatures_are_the_frozen_ones(module):
    wrong = list(wrong_signatures(module))
    assert not wrong, "\n".join(wrong)


def test_libraries_are_imported_when_they_are_first_named():
    ran = subprocess.run([sys.executable, "-c", (
        "import sys, olympus\n"
        "later = ('nn', 'random', 'scipy', 'example_libraries')\n"
        "print([m for m in later if f'olympus._src.{m}' in sys.modules])\n"
        "print(sorted(set(later) - set(dir(olympus))))\n"
        "print(olympus.scipy.special.expit(0.0), 'olympus._src.scipy.stats' in sys.modules)")],
        capture_output=True, text=True, check=True, cwd=Path(__file__).parent.parent)
    assert ran.stdout.split("\n")[:3] == ["[]", "[]", "0.5 False"]
    with pytest.raises(AttributeError, match="no attribute 'foo'"):
        olympus.scipy.foo  # noqa: B018
