"""Options that programs written for JAX set, and that change nothing here: name, default, reason.

They are accepted; a value that asks for other behaviour gives one warning.
"""

from __future__ import annotations

from typing import Any

_TESTS = "only JAX's own tests use it"
_INTERNAL = "JAX chooses between two implementations with it; Olympus has one"
_TF = "Olympus does not call TensorFlow"
_GPU_CLUSTER = "it belongs to transfers and certificates of JAX's own clusters"
_PGLE = "profiles do not guide a second compilation; see olympus.profiler"
_CHECKS = "`jit(checks=…)` and `experimental.checkify` set it for each function"
_STACKS = "locations in modules are the user's line, not the whole stack"
_NO_PLATFORM = "such devices have no backend here"

# (name, default, values that ask for what Olympus does anyway, why other values change nothing)
IDLE: tuple[tuple[str, Any, tuple[Any, ...], str], ...] = (
    ("check_vma", False, (True,), "`shard_map(check_vma=…)` sets it for each function"),
    ("eager_constant_folding", False, (), "XLA folds constants when it compiles"),
    ("exclude_test_targets", "", (), _TESTS),
    ("max_cases_sampling_retries", 100, (), _TESTS),
    ("mock_num_gpu_processes", 0, (), _NO_PLATFORM),
    ("test_targets", "", (), _TESTS),
    ("olympus2tf_associative_scan_reductions", False, (), _TF),
    ("olympus2tf_default_native_serialization", True, (), _TF),
    ("olympus_accurate_erf_inv", False, (True,), "erf_inv is accurate anyway: docs/accuracy.md"),
    ("olympus_backend_target", "", (), "all devices belong to this process"),
    ("olympus_bcoo_cusparse_lowering", False, (), "Olympus does not call cuSPARSE"),
    ("olympus_captured_constants_report_frames", 0, (), "the warning names the function"),
    ("olympus_check_static_indices", False, (True,), "an index that is known to be out of bounds "
     "is always refused; `x.at[i].get(mode='clip')` reads the nearest element"),
    ("olympus_compilation_cache_expect_pgle", False, (), _PGLE),
    ("olympus_compiler_detailed_logging_min_ops", 10, (), "XLA's log does not depend on the size "
     "of programs"),
    ("olympus_compiler_enable_remat_pass", True, (), "pass xla_… flags to "
     "`jit(compiler_options=…)`"),
    ("olympus_cross_host_transfer_socket_address", "", (), _GPU_CLUSTER),
    ("olympus_cross_host_transfer_timeout_seconds", None, (), _GPU_CLUSTER),
    ("olympus_cross_host_transfer_transfer_size", None, (), _GPU_CLUSTER),
    ("olympus_cross_host_transport_addresses", "", (), _GPU_CLUSTER),
    ("olympus_custom_jvp3", False, (), _INTERNAL),
    ("olympus_custom_vjp3", False, (), _INTERNAL),
    ("olympus_debug_leaked_clients_on_clear_backends", False, (), "backends stay until the process "
     "ends"),
    ("olympus_disable_bwd_checks", False, (), "cotangents from rules are always checked"),
    ("olympus_disable_vmap_shmap_error", False, (), _INTERNAL),
    ("olympus_distributed_debug", False, (), "`distributed.initialize` says what it found to the "
     "logger 'olympus', at level DEBUG"),
    ("olympus_distributed_verify_secure_credentials", False, (), _GPU_CLUSTER),
    ("olympus_embedded_constants_max_bytes", 32, (), _INTERNAL),
    ("olympus_enable_pgle", False, (), _PGLE),
    ("olympus_experimental_unsafe_xla_runtime_errors", False, (), _CHECKS),
    ("olympus_export_deserialize_expired_versions", False, (True,), "artifacts of every version "
     "are read: docs/export.md"),
    ("olympus_export_ignore_forward_compatibility", False, (), "exports are written for the oldest "
     "jaxlib that reads them"),
    ("olympus_force_dcn_cross_host_transfers", False, (), _GPU_CLUSTER),
    ("olympus_hlo_source_file_canonicalization_regex", None, (), "modules name files as Python "
     "does; digests of programs leave locations out anyway"),
    ("olympus_include_full_tracebacks_in_locations", True, (False,), _STACKS),
    ("olympus_memory_fitting_effort", 0.0, (), "newer releases of XLA have no such effort; set "
     "olympus_memory_fitting_level"),
    ("olympus_exec_time_optimization_effort", 0.0, (), "newer releases of XLA have no such effort; "
     "set olympus_optimization_level"),
    ("olympus_mock_gpu_topology", "", (), _NO_PLATFORM),
    ("olympus_mtls_ca_file", None, (), _GPU_CLUSTER),
    ("olympus_mtls_cert_file", None, (), _GPU_CLUSTER),
    ("olympus_mtls_key_file", None, (), _GPU_CLUSTER),
    ("olympus_mtls_peer_uri_prefix", None, (), _GPU_CLUSTER),
    ("olympus_mutable_array_checks", True, (), "references are always checked"),
    ("olympus_num_generated_cases", 10, (), _TESTS),
    ("olympus_oneapi_visible_devices", "all", (), _NO_PLATFORM),
    ("olympus_persistent_cache_enable_xla_caches", "xla_gpu_per_fusion_autotune_cache_dir",
     ("none",), "XLA's own caches of GPU kernels are not kept on disk"),
    ("olympus_pgle_aggregation_percentile", 90, (), _PGLE),
    ("olympus_pgle_profiling_runs", 3, (), _PGLE),
    ("olympus_pprint_use_color", True, (False,), "programs are printed without colors"),
    ("olympus_ragged_dot_use_ragged_dot_instruction", True, (), _INTERNAL),
    ("olympus_raise_on_ppermute_sort_diff", True, (), "permutations are taken in any order"),
    ("olympus_refs_to_pins", False, (), "compilers of kernels alone heed pins"),
    ("olympus_remat3", False, (), _INTERNAL),
    ("olympus_remat_barrier_no_cotangents", False, (), _INTERNAL),
    ("olympus_remove_custom_partitioning_ptr_from_cache_key", False, (), "such programs are "
     "distinguished by their rules, not by addresses"),
    ("olympus_rocm_visible_devices", "all", (), _NO_PLATFORM),
    ("olympus_scan3", False, (), _INTERNAL),
    ("olympus_send_traceback_to_runtime", "off", (), "errors of the runtime name the user's line "
     "where Python calls it"),
    ("olympus_serialization_version", 0, (), "exports contain their version: docs/export.md"),
    ("olympus_share_binary_between_hosts", False, (), "each process reads the compilation cache or "
     "compiles"),
    ("olympus_share_binary_between_hosts_timeout_ms", 1200000, (), "each process reads the "
     "compilation cache or compiles"),
    ("olympus_skip_slow_tests", False, (), _TESTS),
    ("olympus_sort_devices_by_process_index", True, (), _INTERNAL),
    ("olympus_source_url_schema", None, (), "modules name files as Python does"),
    ("olympus_test_dut", "", (), _TESTS),
    ("olympus_test_num_threads", 0, (), _TESTS),
    ("olympus_test_with_persistent_compilation_cache", False, (), _TESTS),
    ("olympus_threefry_gpu_kernel_lowering", False, (), "XLA fuses Threefry itself"),
    ("olympus_traceback_in_locations_limit", 100, (1,), _STACKS),
    ("olympus_tracer_error_num_traceback_frames", 5, (), "errors about traced values name the "
     "user's line"),
    ("olympus_use_cpp_shard_args", False, (), _INTERNAL),
    ("olympus_use_direct_linearize", True, (), _INTERNAL),
    ("olympus_use_emit_pipeline_primitive", False, (), "a pipeline is a loop of its kernel"),
    ("olympus_use_hlo_logistic_lowering", None, (), _INTERNAL),
    ("olympus_use_magma", "auto", ("off",), "MAGMA is used where it is found; ask for it by "
     "`use_magma`, or `implementation`, of the operation"),
    ("olympus_use_rgv3", True, (), _INTERNAL),
    ("olympus_use_shardy_partitioner", True, (), "Shardy always partitions programs"),
    ("olympus_use_simplified_olympuspr_constants", False, (), _INTERNAL),
    ("olympus_xla_backend", "", (), "set olympus_platforms, or olympus_platform_name"),
    ("olympus_xla_profile_version", 0, (), _PGLE),
)
