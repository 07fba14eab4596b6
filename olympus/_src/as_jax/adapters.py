"""Names of JAX's modules that ours of the same name lack: a row for each, with who needs it.

A module that is only above others here needs no row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

_NONE: Mapping[str, str] = MappingProxyType({})


class Adapter(NamedTuple):
    """The names of one module of JAX beyond those in ours of the same name.

    Its names come from `own`; then from homes, before our module; then they are stand-ins.
    """

    about: str
    own: Mapping[str, str] = _NONE  # module of `olympus._src` -> names, "theirs=ours" if respelled
    homes: str = ""                 # public modules of ours
    lacks: str = ""                 # the missing feature, in the words of messages
    stand_ins: str = ""

    def places(self) -> Iterator[tuple[str, str, str]]:
        """Each name of its own, and the module and the name there that it is."""
        for module, names in self.own.items():
            for name in names.split():
                theirs, _, ours = name.partition("=")
                yield theirs, module, ours or theirs


def adapter_of(below: str) -> Adapter | None:
    """The row of the module `jax.{below}`."""
    if below in ROWS:
        return ROWS[below]
    return NOTHING if any(name.startswith(f"{below}.") for name in ROWS) else None


NOTHING = Adapter("nothing of its own.")
_RELEASE = {"as_jax.release": "__version__ __version_info__"}
_STATE = {"types.refs": "AbstractRef=RefAval",
          "extend.state": "AccumEffect ReadEffect RefEffect StateEffect=RefEffect WriteEffect"}


def _primitives(name: str) -> Adapter:
    return Adapter("libraries of primitives name its public names from here.",
                   homes=f"olympus.interpreters.{name}")


def _pathways(about: str, stand_ins: str) -> Adapter:
    return Adapter(about, lacks="Pathways", stand_ins=stand_ins)


def _kernels(about: str, stand_ins: str, own: Mapping[str, str] = _NONE) -> Adapter:
    return Adapter(about, own, lacks="kernels of one's own (Pallas)", stand_ins=stand_ins)


ROWS = {
    "": Adapter(
        "every library asks for its version, and sets its options.",
        {"as_jax.options": "config", **_RELEASE}),
    "core": Adapter(
        "TensorFlow Probability registers its variables in a table of it; PennyLane and tokamax "
        "ask what is traced.",
        {"as_jax.foreign": "pytype_aval_mappings",
         "as_jax.private": "is_concrete is_constant_dim"}, "olympus.extend.core"),
    "export": Adapter("the shardings of exported functions.", {"as_jax.exported": "Exported"}),
    "extend.ifrt_programs": _pathways(
        "Orbax names it at import; it runs on Pathways only.", "ifrt_programs"),
    "interpreters.xla": Adapter(
        "TensorFlow Probability registers its variables in its tables.",
        {"as_jax.foreign": "pytype_aval_mappings"}),
    "lib": Adapter(
        "JAXNS notes the version of jaxlib.", {"base.lib": "__version__=jaxlib_version"}),
    "version": Adapter("TensorFlow Probability and Orbax read it.", _RELEASE),

    "experimental": Adapter(
        "Flax's variables ask for the types of mutable values; others name arrays of extended "
        "dtypes.",
        {"as_jax.private": "cur_qdd"}, lacks="arrays of extended dtypes",
        stand_ins="primal_tangent_dtype EArray"),
    "experimental.colocated_python": _pathways(
        "Orbax names it at import; it runs on Pathways only.",
        "colocated_cpu_devices colocated_python colocated_python_class deserialize serialize"),
    "experimental.colocated_python.func": _pathways(
        "Orbax names it at import.", "_make_prng_wrapped_fun make_callable"),
    "experimental.colocated_python.serialization": _pathways(
        "Orbax names it at import.",
        "DeviceList _deserialize _deserialize_specs _get_cpu_device_map _reduce_device_list "
        "_reduce_mesh _reduce_single_device_sharding _serialize _serialize_specs "
        "colocated_cpu_devices xb"),
    "experimental.mosaic.gpu": _kernels(
        "tokamax has kernels for GPUs, and imports all of them.",
        "FragmentedArray TCGEN05_LAYOUT TCGEN05_ROW_LAYOUT TMEM_NATIVE_LAYOUT WGMMA_LAYOUT "
        "profiler utils warpgroup_barrier"),
    "experimental.pallas": _kernels(
        "libraries of kernels import older names.", "PipelineMode core device_id mpmd",
        {"kernels.masked": "load store swap", "kernels.tpu": "touch",
         "kernels.triton": "atomic_add atomic_and atomic_cas atomic_max atomic_min atomic_or "
                           "atomic_xchg atomic_xor max_contiguous"}),
    "experimental.pallas.fuser": _kernels(
        "tokamax asks which of its operands are fusions.",
        "Fusion get_fusion_values pull_block_spec"),
    "experimental.pallas.mosaic_gpu": _kernels(
        "libraries of kernels for GPUs import older names.", "async_store"),
    "experimental.pallas.ops.tpu.splash_attention.splash_attention_mask": Adapter(
        "ejKernel derives masks by a rule from its class.",
        {"kernel_library.masks": "_ComputableMask=RuledMask"}),
    "experimental.pallas.tpu": _kernels(
        "libraries of kernels for TPUs import older names.", "DMA KernelType repeat trace",
        {"kernels.tpu": "TPUCompilerParams=CompilerParams TPUMemorySpace=MemorySpace"}),
    "experimental.pallas.triton": Adapter(
        "libraries of kernels for GPUs import an older name.",
        {"kernels.triton": "TritonCompilerParams=CompilerParams"}),

    "_src.ad_util": Adapter(
        "Lineax gives `stop_gradient_p` a transpose rule.",
        {"lax.barriers": "stop_gradient_p"},
        "olympus.interpreters.ad olympus.custom_derivatives"),
    "_src.api_util": Adapter(
        "e3nn-jax asks for arguments by it.",
        {"as_jax.private": "infer_argnums_and_argnames"}, "olympus.api_util"),
    "_src.checkify": Adapter(
        "Flax's nnx transforms `checkify`; Chex and others name its exceptions.",
        {"interpreters.checks": "JaxRuntimeError=OlympusRuntimeError",
         "jit.checked": "BatchedError DivisionByZeroError Error ErrorCategory FailedCheckError "
                        "JaxException=CheckException NaNError OOBError all_checks "
                        "automatic_checks check check_error checkify debug_check div_checks "
                        "float_checks index_checks init_error nan_checks user_checks"}),
    "_src.compiler": Adapter(
        "Chex wraps the function that compiles, to restrict it to some platforms.",
        {"as_jax.compiler": "backend_compile_and_load"}),
    "_src.config": Adapter(
        "libraries read and set options by it.", {"as_jax.options": "config"}, "olympus"),
    "_src.core": Adapter(
        "NumPyro asks whether something is traced; Flax and others name avals.",
        {"as_jax.foreign": "pytype_aval_mappings", "as_jax.private": "cur_qdd trace_state_clean",
         "core.context": "trace_ctx=ctx", "core.trace": "get_aval=typeof",
         "types.avals": "physical_aval", "types.hi": "AvalMutableQDD AvalQDD"},
        "olympus.core olympus.extend.core olympus.errors olympus.ref"),
    "_src.custom_derivatives": Adapter(
        "JAX's own tests of types of users name its primitives.",
        homes="olympus.custom_derivatives"),
    "_src.dispatch": Adapter(
        "Equinox waits for effects when a program ends.",
        {"core.effects": "wait_for_tokens=effects_barrier"}, "olympus.interpreters.xla"),
    "_src.distributed": Adapter(
        "Orbax asks which process of a job this is.",
        {"job.state": "global_state=current"}, "olympus.distributed"),
    "_src.dtypes": Adapter(
        "Flax defines a dtype for scales of fp8; Equinox catches its error; tinygp asks for the "
        "complex dtype of a float's.",
        {"as_jax.private": "DType supports_inf",
         "types.dtypes": "ExtendedDType extended to_complex_dtype"},
        "olympus.dtypes"),
    "_src.earray": Adapter(
        "Flax makes arrays of extended dtypes by it. Ours are made by conversion.",
        lacks="arrays of extended dtypes", stand_ins="EArray"),
    "_src.flatten_util": Adapter(
        "BlackJAX takes `ravel_pytree` from it.", homes="olympus.flatten_util"),
    "_src.hijax": Adapter(
        "JAX's own tests take types of users from it.",
        {"types.avals": "Ty=AbstractValue"}, "olympus.experimental.hiolympus"),
    "_src.interpreters.ad": _primitives("ad"),
    "_src.interpreters.batching": Adapter(
        "jaxoplanet asks whether vmap knows a class.", {"mapping.vmappable": "is_vmappable"},
        "olympus.interpreters.batching"),
    "_src.interpreters.mlir": _primitives("mlir"),
    "_src.interpreters.partial_eval": _primitives("partial_eval"),
    "_src.interpreters.pxla": Adapter(
        "Flax reads its table of results at import.",
        {"as_jax.private": "global_result_handlers"}, "olympus.interpreters.pxla"),
    "_src.interpreters.xla": _primitives("xla"),
    "_src.lax.control_flow": Adapter("PyTensor takes `scan` from it.", homes="olympus.lax"),
    "_src.lib": Adapter("Dynamiqs imports `xla_client` from it.", homes="olympus.lib"),
    "_src.lib.xla_client": Adapter(
        "Dynamiqs catches its error.", {"base.errors": "XlaRuntimeError=OlympusRuntimeError"}),
    "_src.linear_util": Adapter(
        "JAX's own tests wrap functions by it.", homes="olympus.extend.linear_util"),
    "_src.literals": Adapter(
        "Equinox and jaxtyping count its classes as arrays. Ours are arrays.",
        {"as_jax.private": "LiteralArray=TypedNdArray TypedComplex TypedFloat TypedInt "
                           "TypedNdArray"}),
    "_src.lax.linalg": Adapter("unxt gives factorisations rules.", homes="olympus.lax.linalg"),
    "_src.numpy": Adapter("s2fft imports `util` from it.", homes="olympus.numpy"),
    "_src.numpy.array_methods": Adapter(
        "unxt's `x.at` is derived from its classes.",
        {"numpy.updates": "_IndexUpdateHelper _IndexUpdateRef"}),
    "_src.numpy.index_tricks": Adapter(
        "quaxed derives its `r_` and `c_` from their classes.",
        {"as_jax.private": "CClass RClass"}),
    "_src.numpy.ufuncs": Adapter(
        "Esquilax takes the class `ufunc` from it.", homes="olympus.numpy"),
    "_src.numpy.util": Adapter(
        "s2fft promotes operands by it.",
        {"as_jax.private": "promote_dtypes promote_dtypes_complex promote_dtypes_inexact"}),
    "_src.numpy.vectorize": Adapter(
        "quaxed names the parts of `vectorize` at import.", lacks="parts of JAX's `vectorize`",
        stand_ins="_apply_excluded _check_output_dims _parse_gufunc_signature "
                  "_parse_input_dimensions"),
    "_src.pallas.primitives": Adapter(
        "ejKernel's kernels for GPUs read and write under masks by it.",
        {"kernels.masked": "load store swap"}, "olympus.experimental.pallas"),
    "_src.pjit": Adapter(
        "JAXNS takes `auto_axes` from it; Quax gives the primitive of `jit` a rule.",
        {"control.call": "jit_p=call_p"},
        "olympus.sharding olympus.experimental.pjit olympus"),
    "_src.public_test_util": Adapter(
        "tinygp's tests compare by it.", {"as_jax.private": "check_close"}, "olympus.test_util"),
    "_src.random.threefry2x32": Adapter(
        "Quax's generator of random numbers is written with its functions.",
        {"as_jax.private": "threefry_random_bits threefry_seed threefry_split"}),
    "_src.source_info_util": Adapter(
        "jaxls shows where an equation comes from.",
        {"as_jax.private": "Frame user_frame user_frames"}, "olympus.extend.source_info_util"),
    "_src.state": Adapter("Pallas kernels and JAX's own tests take references from it.", _STATE),
    "_src.state.discharge": Adapter(
        "JAX's own tests discharge programs by it.",
        {"as_jax.private": "discharge_state",
         "extend.state": "run_state run_state_reference=run_state"}),
    "_src.state.primitives": Adapter(
        "JAX's own tests read and write references by it.",
        {"lax.refs": "addupdate_p get_p swap_p",
         "numpy.refs": "ref_addupdate=addupdate ref_get=get ref_set=set ref_swap=swap"}),
    "_src.state.types": Adapter(
        "Flax's nnx asks of every leaf whether it is a reference.",
        {**_STATE, "as_jax.private": "shaped_array_ref",
         "numpy.refs": "TransformedRef=RefPart"}),
    "_src.traceback_util": Adapter(
        "Equinox, Flax and jaxtyping leave their frames out of tracebacks.",
        {"as_jax.private": "api_boundary filter_traceback include_frame",
         "base.source": "_exclude_paths=excluded register_exclusion=exclude"}),
    "_src.tree_util": Adapter(
        "Flax's nnx asks what is a node, jaxlie how it is one; Orbax flattens one level.",
        {"as_jax.private": "_registry"}, "olympus.tree_util"),
    "_src.typing": Adapter("Haliax annotates with it.", homes="olympus.typing olympus"),
    "_src.util": Adapter(
        "ejKernel's masks are hashed by it, as splash attention's masks are in JAX; JAX's own "
        "tests map over lists of one length.",
        {"as_jax.private": "HashableFunction safe_zip tuple_insert"}, "olympus.api_util"),
    "_src.xla_bridge": Adapter(
        "Chex sets the number of CPU devices while no backend has started; plugins register.",
        {"as_jax.private": "_backends",
         "devices.devices": "register_plugin=register_pjrt_plugin"},
        "olympus olympus.extend.backend"),
}
