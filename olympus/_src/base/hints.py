"""Replacements for names that a module lacks: old names of JAX and NumPy, and those that only NumPy
or SciPy has.

A hint names existing objects, so that a test can look: `olympus.…`, `numpy.…`, `scipy.…`.
"""

from __future__ import annotations

import importlib.machinery
import re
from pathlib import Path
from types import ModuleType
from typing import NoReturn

import numpy as np

_KERNELS = "kernels of one's own are not there yet; olympus.jit fuses what it can"
_HIJAX = "types of one's own are in olympus.experimental.hiolympus; what they hold has no types"
_HOST = "use {0} outside of olympus.jit, or within by olympus.pure_callback"

_TREE = {f"tree_{name}": f"use olympus.tree.{name}" for name in (
    "all", "flatten", "leaves", "map", "reduce", "structure", "transpose", "unflatten")}
_SEGMENTS = "use olympus.ops.segment_{0} with the labels as segment_ids"
_MINIMIZE = "use olympus.scipy.optimize.minimize with method='{0}'"


HINTS: dict[str, dict[str, str]] = {
    "olympus": {
        **_TREE,
        "tree_multimap": "use olympus.tree.map, which takes several trees",
        "treedef_is_leaf": "use olympus.tree_util.treedef_is_leaf",
        "xla_computation": "use olympus.jit: jit(f).lower(*args).compiler_ir('hlo')",
        "abstract_arrays": "use olympus.core.ShapedArray",
        "linear_util": "use olympus.extend.linear_util",
        "xla": "use olympus.interpreters.xla",
        "partial_eval": "use olympus.interpreters.partial_eval",
        "device_put_replicated": "use olympus.device_put with a sharding of olympus.P()",
        "device_put_sharded": "use olympus.device_put with an olympus.NamedSharding",
        "clear_backends": "use olympus.clear_caches",
        "make_jaxpr": "use olympus.make_olympuspr",
        "soft_pmap": "use olympus.shard_map", "xmap": "use olympus.shard_map",
        "vectorize": "use olympus.numpy.vectorize",
        "custom_transforms": "use olympus.custom_jvp or olympus.custom_vjp",
        "ShapedArray": "use olympus.core.ShapedArray",
        "Mesh": "use olympus.sharding.Mesh",
        "PartitionSpec": "use olympus.P, or olympus.sharding.PartitionSpec",
        "scan": "use olympus.lax.scan", "cond": "use olympus.lax.cond",
        "stop_gradient": "use olympus.lax.stop_gradient",
        "softmax": "use olympus.nn.softmax", "relu": "use olympus.nn.relu",
        "io_callback": "use olympus.experimental.io_callback",
        "checkpoint_name": "use olympus.ad_checkpoint.checkpoint_name",
        "array_ref": "use olympus.new_ref",
        "collect_profile": "use olympus.profiler.start_trace, or TensorBoard beside "
                           "olympus.profiler.start_server",
        "tools": "use olympus.jit: jit(f).lower(*args).as_text()",
    },
    "olympus.numpy": {
        "random": "use olympus.random: olympus.random.normal(key, shape), with a key for each draw",
        "testing": "use numpy.testing, which takes arrays of Olympus, too",
        "product": "use olympus.numpy.prod", "cumproduct": "use olympus.numpy.cumprod",
        "sometrue": "use olympus.numpy.any", "alltrue": "use olympus.numpy.all",
        "in1d": "use olympus.numpy.isin", "trapz": "use olympus.numpy.trapezoid",
        "msort": "use olympus.numpy.sort with axis=0", "round_": "use olympus.numpy.round",
        "NaN": "use olympus.numpy.nan", "NAN": "use olympus.numpy.nan",
        "Inf": "use olympus.numpy.inf", "Infinity": "use olympus.numpy.inf",
        "infty": "use olympus.numpy.inf", "PINF": "use olympus.numpy.inf",
        "NINF": "use -olympus.numpy.inf", "PZERO": "use 0.0", "NZERO": "use -0.0",
        "find_common_type": "use olympus.numpy.promote_types or olympus.numpy.result_type",
        "asfarray": "use olympus.numpy.asarray with dtype=float",
        "asscalar": "use the method of olympus.Array: x.item()",
        "rank": "use olympus.numpy.ndim", "alen": "use len",
        "set_string_function": "use olympus.numpy.set_printoptions",
        "float128": "use olympus.numpy.float64 under olympus.enable_x64, the widest there is",
        "longdouble": "use olympus.numpy.float64 under olympus.enable_x64, the widest there is",
        "matrix": "use arrays of olympus.numpy.array with two axes",
        "asmatrix": "use arrays of olympus.numpy.array with two axes",
        "bmat": "use olympus.numpy.block",
        "ma": "use olympus.numpy.where and the argument where= of reductions",
        "seterr": "see olympus.debug_nans and olympus.debug_infs",
        "geterr": "see olympus.debug_nans and olympus.debug_infs",
        "memmap": "use numpy.memmap, and give parts of it to olympus.device_put",
        "poly1d": "use olympus.numpy.polyval and its kin, on arrays of coefficients",
        "datetime64": "dates are no numbers of a device; use numpy.datetime64",
        "str_": "text is not on devices; use numpy.str_",
        "DeviceArray": "use olympus.Array", "bool8": "use olympus.numpy.bool_",
        **{name: f"use Python's {name}" for name in ("float", "int", "complex", "str", "object")},
        "mat": "use arrays of olympus.numpy.array with two axes",
        "index_update": "use the method of olympus.Array: x.at[i].set(v)",
    },
    "olympus.lax": {
        "pvary": "use olympus.lax.pcast with to='varying'",
        "tie_in": "leave it out: operations need no tie; see olympus.lax.optimization_barrier",
        "psend": "use olympus.lax.ppermute", "precv": "use olympus.lax.ppermute",
        "tree_map": "use olympus.tree.map", "where": "use olympus.numpy.where",
        "xmap": "use olympus.shard_map", "relu": "use olympus.nn.relu",
        "sigmoid": "use olympus.lax.logistic", "sum": "use olympus.numpy.sum",
        "stop_grad": "use olympus.lax.stop_gradient", "maximum": "use olympus.lax.max",
        "minimum": "use olympus.lax.min", "concat": "use olympus.lax.concatenate",
        "svd": "use olympus.lax.linalg.svd", "norm": "use olympus.numpy.linalg.norm",
    },
    "olympus.random": {
        "rand": "use olympus.random.uniform", "randn": "use olympus.random.normal",
        "seed": "use olympus.random.key", "default_rng": "use olympus.random.key",
        "shuffle": "use olympus.random.permutation", "threefry_2x32": "use "
        "olympus.extend.random.threefry_2x32", "multivariate_t": "use olympus.random.t",
        "random": "use olympus.random.uniform", "random_sample": "use olympus.random.uniform",
        "integers": "use olympus.random.randint", "Generator": "use olympus.random.key",
        "RandomState": "use olympus.random.key", "get_state": "use olympus.random.key_data",
        "set_state": "use olympus.random.wrap_key_data",
        "standard_normal": "use olympus.random.normal", "beta_binomial": "use "
        "olympus.random.binomial with a p of olympus.random.beta",
    },
    "olympus.core": {
        "get_aval": "use olympus.typeof", "call": "use olympus.jit",
        "is_concrete": "use isinstance(x, olympus.core.Tracer)",
        **{name: f"use olympus.extend.core.{name}" for name in (
            "AbstractToken", "TraceTag", "concrete_or_error", "find_top_trace", "gensym",
            "get_opaque_trace_state", "mapped_aval", "new_olympuspr_eqn", "olympusprs_in_params",
            "primal_dtype_to_tangent_dtype", "set_current_trace", "subolympusprs",
            "take_current_trace", "unmapped_aval", "valid_olympustype")},
    },
    "olympus.nn": {
        "normalize": "use olympus.nn.standardize", "stop_gradient": "use olympus.lax.stop_gradient",
        "dropout": "use olympus.random.bernoulli and olympus.numpy.where",
        "layer_norm": "use olympus.nn.standardize", "attention": "use "
        "olympus.nn.dot_product_attention", "softmin": "use olympus.nn.softmax of -x",
        "conv": "use olympus.lax.conv_general_dilated",
        "max_pool": "use olympus.lax.reduce_window with olympus.lax.max",
        "avg_pool": "use olympus.lax.reduce_window with olympus.lax.add",
    },
    "olympus.ops": {
        "index_update": "use the method of olympus.Array: x.at[i].set(v)",
        "index_add": "use the method of olympus.Array: x.at[i].add(v)",
        "index_mul": "use the method of olympus.Array: x.at[i].multiply(v)",
        "index_min": "use the method of olympus.Array: x.at[i].min(v)",
        "index_max": "use the method of olympus.Array: x.at[i].max(v)",
        "index": "index olympus.Array.at itself",
    },
    "olympus.experimental": {
        "maps": "use olympus.shard_map", "host_callback": "use olympus.pure_callback, "
        "olympus.experimental.io_callback or olympus.debug.callback",
        "optimizers": "use olympus.example_libraries.optimizers",
        "stax": "use olympus.example_libraries.stax",
        "loops": "use olympus.lax.fori_loop", "vectorize": "use olympus.numpy.vectorize",
        "global_device_array": "use olympus.make_array_from_callback",
        "gda_serialization": "use olympus.experimental.array_serialization",
        "maximal": "use olympus.device_put", "enable_x64": "use olympus.enable_x64",
        "disable_x64": "use olympus.enable_x64 with False", "djax": "use "
        "olympus.export.symbolic_shape",
        "mosaic": _KERNELS, "thunky": _KERNELS,
        "hijax": "use olympus.experimental.hiolympus", "cur_qdd": _HIJAX, "EArray": _HIJAX,
        "primal_tangent_dtype": _HIJAX,
        "jax2tf": "use olympus.export: TensorFlow is not called from here",
        "olympus2tf": "use olympus.export: TensorFlow is not called from here",
        "colocated_python": "use olympus.pure_callback", "source_mapper": "use olympus.jit: "
        "jit(f).lower(*args).as_text(debug_info=True)",
    },
    "olympus.scipy.integrate": {
        "odeint": "use olympus.experimental.ode.odeint", "simps": "use scipy.integrate.simpson",
        "trapz": "use olympus.scipy.integrate.trapezoid",
    },
    "olympus.scipy.interpolate": {
        "griddata": "use olympus.scipy.interpolate.RegularGridInterpolator on a grid",
        "interpn": "use olympus.scipy.interpolate.RegularGridInterpolator",
        "interp2d": "use olympus.scipy.interpolate.RegularGridInterpolator",
        "pchip_interpolate": "use olympus.scipy.interpolate.PchipInterpolator",
    },
    "olympus.scipy.linalg": {
        name: f"use olympus.numpy.linalg.{name}" for name in ("eig", "eigvals", "norm", "svdvals")},
    "olympus.scipy.ndimage": {
        "sum": _SEGMENTS.format("sum"), "sum_labels": _SEGMENTS.format("sum"),
        "maximum": _SEGMENTS.format("max"), "minimum": _SEGMENTS.format("min"),
    },
    "olympus.scipy.optimize": {
        "approx_fprime": "use olympus.grad, or olympus.jacobian",
        "check_grad": "use olympus.test_util.check_grads",
        "curve_fit": "use olympus.scipy.optimize.least_squares on the residuals",
        "leastsq": "use olympus.scipy.optimize.least_squares",
        "lsq_linear": "use olympus.scipy.optimize.least_squares",
        "fsolve": "use olympus.scipy.optimize.root",
        "newton": "use olympus.scipy.optimize.root", "OptimizeResult": "use "
        "olympus.scipy.optimize.OptimizeResults",
        "fmin_bfgs": _MINIMIZE.format("BFGS"), "fmin_l_bfgs_b": _MINIMIZE.format("L-BFGS-B"),
        "fmin_ncg": _MINIMIZE.format("Newton-CG"),
    },
    "olympus.scipy.signal": {
        "medfilt": "use olympus.scipy.ndimage.median_filter with mode='constant'",
    },
    "olympus.scipy.sparse.linalg": {
        "expm": "use olympus.scipy.linalg.expm", "inv": "use olympus.numpy.linalg.inv",
        "norm": "use olympus.numpy.linalg.norm",
        "spsolve": "use olympus.scipy.sparse.linalg.gmres, or olympus.numpy.linalg.solve",
    },
    "olympus.scipy.special": {
        "sph_harm": "use olympus.scipy.special.sph_harm_y, whose arguments are in another order",
        "log_softmax_": "use olympus.scipy.special.log_softmax",
        "psi": "use olympus.scipy.special.digamma", "softplus": "use olympus.nn.softplus",
        **{name: f"use olympus.numpy.{name}"
           for name in ("cbrt", "exp2", "expm1", "log1p", "round", "sinc")},
    },
}


#: modules whose names people look for in others of them
_SISTERS = ("olympus", "olympus.numpy", "olympus.lax", "olympus.nn", "olympus.random")
_LISTED = (*_SISTERS[1:], "olympus.lax.linalg", "olympus.numpy.linalg", "olympus.scipy.special",
           "olympus.core", "olympus.sharding")


def hint_for(module: str, name: str) -> str:
    """The replacement for a name that a module lacks; '' if none is known."""
    hint = HINTS.get(module, {}).get(name, "")
    if not hint and module in _SISTERS and (elsewhere := _module_with(name, module)):
        return f"use {elsewhere}.{name}"
    # `hasattr` would print NumPy's warnings about names that it is about to drop.
    if not hint and module == "olympus.numpy" and name in dir(np):
        hint = f"numpy.{name} works on NumPy arrays, outside of olympus.jit"
    elif not hint and f"{module}.".startswith("olympus.scipy.") and not name.startswith("_"):
        theirs = module.removeprefix("olympus.")
        hint = _HOST.format(f"{theirs}.{name}") if _scipy_lists(theirs, name) else ""
    return hint


def _module_with(name: str, asked: str) -> str:
    """The public module of Olympus, other than the one asked, that lists a name; '' if none does.
    Read in their files: to import one may take longer than a program that asks `hasattr`.
    """
    home = Path(__file__).parents[2]
    for module in sorted(_LISTED, key=lambda module: not module.startswith(f"{asked}.")):
        file = home.joinpath(*module.split(".")[1:]).with_suffix(".py")
        text = (file if file.is_file() else file.with_suffix("") / "__init__.py").read_text("utf-8")
        if module != asked and f'"{name}"' in text.partition("\n__all__ = ")[2]:
            return module
    return ""


def _scipy_lists(module: str, name: str) -> bool:
    """Whether a module of SciPy, where that is installed, has a name, as the docstring of its file
    lists them: to import `scipy.stats` in order to ask it takes half a second.
    """
    spec = importlib.machinery.PathFinder.find_spec("scipy")
    path, last = re.escape(module), re.escape(name)
    listed = re.compile(rf"^ +{last}( +-.*| *)$|\b{path}\.{last}\b", re.MULTILINE)
    for root in (spec and spec.submodule_search_locations) or ():
        home = Path(root, *module.split(".")[1:])
        for file in (home / "__init__.py", home.with_suffix(".py")):
            if file.is_file():
                docstring = file.read_text(encoding="utf-8").split('"""', 2)[1:2]
                return listed.search("".join(docstring)) is not None
    return False


def no_such_name(module: ModuleType, name: str) -> NoReturn:
    """AttributeError for a name that a module lacks, with what to use in its place."""
    where = module.__name__
    hint = hint_for(where, name)
    raise AttributeError(f"module {where!r} has no attribute {name!r}{hint and '; '}{hint}",
                         name=name, obj=module)
