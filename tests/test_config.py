"""Options: reading, overriding by thread and block, the environment, illegal values and names."""

import contextlib
import gc
import io
import logging
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus import config
from olympus._src.base import config as table, lib, logs

NAMES = [name for name, option in table._options.items() if type(option) is not table.Idle]
IDLE = [name for name in table._options if name not in NAMES]
BOOLS = [name for name in NAMES if isinstance(config.read(name), bool)]


def test_every_option_has_its_prefix_doc_and_legal_default():
    assert all(name.startswith("olympus_") for name in NAMES)
    assert {*NAMES, *IDLE} == {*dir(config)} - {"read", "update"}
    for option in table._options.values():
        assert option.doc.endswith(".")
        assert option.check(option.default) == option.default
        assert repr(option) == f"<option {option.name} = {option.value!r}>"


@pytest.mark.parametrize("name", NAMES)
def test_read_by_name_and_by_attribute(name):
    default = table._options[name].default
    if name == "olympus_compilation_cache_dir":     # conftest.py takes the user's away
        default = None
    assert config.read(name) == getattr(config, name) == default


@pytest.mark.parametrize("name", BOOLS)
def test_bool_options_switch_on_without_argument_and_restore(name):
    option = table._options[name]
    before = option.value
    with option():
        assert option.value is True
        with option(False):
            assert option.value is False
        assert option.value is True
    assert option.value is before


def test_update_sets_the_process_and_a_block_wins():
    try:
        with table.enable_x64(False):
            config.update("olympus_enable_x64", True)
            assert not table.enable_x64.value
        assert config.olympus_enable_x64
        seen = []
        thread = threading.Thread(target=lambda: seen.append(table.enable_x64.value))
        thread.start()
        thread.join()
        assert seen == [True]
    finally:
        config.update("olympus_enable_x64", False)


def test_a_block_is_of_its_thread():
    seen = []
    with table.debug_nans(True):
        thread = threading.Thread(target=lambda: seen.append(table.debug_nans.value))
        thread.start()
        thread.join()
    assert seen == [False]


def test_a_block_is_left_by_an_exception():
    with pytest.raises(KeyError), table.numpy_rank_promotion("raise"):
        raise KeyError
    assert table.numpy_rank_promotion.value == "allow"


def test_a_block_can_be_entered_again_and_decorates():
    block = table.default_prng_impl("rbg")
    with block, block:
        assert table.default_prng_impl.value == "rbg"
    assert table.default_prng_impl.value == "threefry2x32"

    @table.default_prng_impl("unsafe_rbg")
    def inside():
        return table.default_prng_impl.value

    assert [inside(), inside()] == ["unsafe_rbg"] * 2
    assert table.default_prng_impl.value == "threefry2x32"


def test_disable_jit_and_checking_leaks():
    with table.disable_jit():
        assert config.olympus_disable_jit
        with table.disable_jit(False):
            assert not config.olympus_disable_jit
    with table.checking_leaks():
        assert config.olympus_check_tracer_leaks


TRACE_KEYS = {
    "enable_x64", "disable_jit", "numpy_dtype_promotion", "numpy_rank_promotion",
    "default_matmul_precision", "default_device", "default_prng_impl", "threefry_partitionable",
    "softmax_custom_jvp", "random_seed_offset", "enable_checks", "check_tracer_leaks",
    "debug_nans", "debug_infs", "enable_custom_prng", "legacy_prng_key", "debug_key_reuse",
    "auto_pcast", "compatible", "no_collectives", "remove_size_one_mesh_axis_from_type", "hold",
    "kernels", "pallas_enable_debug_checks", "pallas_interpret",
    "high_dynamic_range_gumbel", "jit_guards",
    *[f"error_checking_behavior_{kind}" for kind in ("nan", "divide", "oob")],
}
OTHER = {"olympus_numpy_dtype_promotion": "strict", "olympus_numpy_rank_promotion": "warn"}
OTHER |= {"olympus_default_matmul_precision": "high", "olympus_default_device": "cpu"}
OTHER |= {"olympus_default_prng_impl": "rbg", "olympus_random_seed_offset": 1}
OTHER |= {"olympus_platforms": "cpu", "olympus_traceback_filtering": "off"}
OTHER |= {"olympus_export_calling_convention_version": 9}
OTHER |= {"olympus_hold": "off", "olympus_kernels": "off"}
OTHER |= {f"olympus_error_checking_behavior_{kind}": "raise" for kind in ("nan", "divide", "oob")}
OTHER |= {"olympus_num_cpu_devices": -1, "olympus_legacy_prng_key": "warn"}
OTHER |= {"olympus_cpu_collectives_implementation": "mpi", "olympus_cuda_visible_devices": "0"}
OTHER |= {f"olympus_cpu_get_{what}_topology_timeout_minutes": 9 for what in ("local", "global")}
OTHER |= {"olympus_pjrt_client_create_options": "a:1", "olympus_pjrt_plugins": "a:b.so"}
OTHER |= {"olympus_optimization_level": "O1", "olympus_memory_fitting_level": "O0"}
OTHER |= {"olympus_explicit_x64_dtypes": "error", "olympus_captured_constants_warn_bytes": 1}
OTHER |= {"olympus_dump_ir_to": "/tmp/programs", "olympus_dump_ir_modes": "olympuspr"}
OTHER |= {"olympus_logging_level": "ERROR", "olympus_debug_log_modules": ""}
OTHER |= {"olympus_platform_name": "cpu", "olympus_jit_guards": "warn"}
OTHER |= {"olympus_program_agreement_timeout_seconds": 0}
OTHER |= {"olympus_cpu_collectives_timeout_seconds": 9}
OTHER |= {"olympus_compilation_cache_dir": "/tmp/programs", "olympus_compilation_cache_max_size": 0}
OTHER |= {"olympus_persistent_cache_min_compile_time_secs": 0.5}
OTHER |= {"olympus_persistent_cache_min_entry_size_bytes": 1}
GUARDS = [name for name in NAMES if "transfer_guard" in name]
OTHER |= dict.fromkeys([*GUARDS, "olympus_array_garbage_collection_guard"], "log")


@pytest.mark.parametrize("name", NAMES)
def test_trace_key_changes_exactly_with_what_programs_depend_on(name):
    option = table._options[name]
    before = table.trace_key()
    with option(OTHER.get(name, not option.value)):
        changed = table.trace_key() != before
    depends = name.removeprefix("olympus_") in TRACE_KEYS
    assert changed is depends
    assert table.trace_key() == before
    hash(before)


ILLEGAL = [
    ("olympus_enable_x64", 1, TypeError, "must be True or False"),
    ("olympus_enable_x64", "yes", TypeError, "must be True or False"),
    ("olympus_numpy_dtype_promotion", "loose", ValueError, "'standard', 'strict'"),
    ("olympus_numpy_rank_promotion", None, TypeError, "'allow', 'warn', 'raise'"),
    ("olympus_default_matmul_precision", "double", ValueError, "None or one of 'default', 'high'"),
    ("olympus_default_device", 3, ValueError, "None or a Device or a platform name"),
    ("olympus_num_cpu_devices", True, TypeError, "-1 or a positive int"),
    ("olympus_random_seed_offset", 1.5, TypeError, "an int"),
    ("olympus_traceback_filtering", "on", ValueError, "'auto', 'off', 'remove_frames'"),
    ("olympus_transfer_guard", "forbid", ValueError, "'allow', 'log', 'disallow'"),
    ("olympus_num_cpu_devices", 0, ValueError, "-1 or a positive int"),
    # Regression: the process ended where it joined a job, or asked for its devices.
    ("olympus_cpu_collectives_timeout_seconds", 10**20, ValueError, "an int of 0 to 2147483647"),
    ("olympus_program_agreement_timeout_seconds", -1, ValueError, "an int of 0 to 2147483647"),
    ("olympus_num_cpu_devices", 10**9, ValueError, "of at most 65536"),
    ("olympus_default_prng_impl", "philox", ValueError, "'threefry2x32', 'threefry4x32', "),
]


@pytest.mark.parametrize("name, value, error, legal", ILLEGAL)
def test_illegal_values_are_told_the_legal_ones(name, value, error, legal):
    option = table._options[name]
    for attempt in (lambda: config.update(name, value), lambda: option(value)):
        with pytest.raises(error) as info:
            attempt()
        assert str(info.value).startswith(f"{name}: got {value!r}; must be ")
        assert legal in str(info.value)
    assert option.value == option.default


def test_an_option_without_default_switch_wants_a_value():
    with pytest.raises(TypeError, match="olympus_default_prng_impl: got no value; pass one of"):
        table.default_prng_impl()


@pytest.mark.parametrize("slip", ["olympus_enable_x46", "enable_x64"])
def test_unknown_names_are_told_the_nearest(slip):
    for attempt in (
        lambda: config.update(slip, True), lambda: config.read(slip), lambda: getattr(config, slip),
    ):
        with pytest.raises(AttributeError, match=f"got '{slip}'; no option .*olympus_enable_x64"):
            attempt()


def test_a_name_like_no_other():
    with pytest.raises(AttributeError, match="dir\\(config\\) lists the options"):
        config.read("zzzz")


def test_assignment_is_refused():
    with pytest.raises(AttributeError, match="use config.update\\('olympus_enable_x64', True\\)"):
        config.olympus_enable_x64 = True


def test_repr_lists_all_values():
    assert "olympus_numpy_dtype_promotion = 'standard'" in repr(config).split("\n")


def test_no_tracing_refuses_calls_of_new_types_only():
    f = olympus.jit(lambda x: x + 1)
    f(1)
    with olympus.no_tracing():
        assert float(f(2)) == 3
        with pytest.raises(RuntimeError, match=r"types \[float32\[\].*no_tracing"):
            f(2.0)
    assert float(f(2.0)) == 3


def test_no_execution_refuses_compiled_calls_and_operations_that_ran_before():
    x = onp.ones(3)
    f = olympus.jit(lambda x: x + 1)
    f(x), x * x, onp.sum(x)
    with olympus.no_execution():
        compiled = f.lower(x).compile()
        for run in (lambda: f(x), lambda: x * x, lambda: onp.sum(x), lambda: compiled(x)):
            with pytest.raises(RuntimeError, match="no_execution is set"):
                run()
        assert olympus.eval_shape(f, x).shape == (3,)
    assert f(x)[0] == 2


def test_a_user_s_context_is_part_of_what_programs_are_kept_by():
    context, other = olympus.make_user_context("a"), olympus.make_user_context()
    traced = []

    @olympus.jit
    def f(x):
        traced.append((context.value, other.value))
        return x

    f(1)
    for value in "bab":
        with context(value):
            f(1)
    with other(1), context("b"):
        f(1)
        assert (context.value, other.value) == ("b", 1)
    assert traced == [("a", None), ("b", None), ("b", 1)]
    for bad in ([], ([],), np.ones(2)):
        for make in (context, olympus.make_user_context):   # a default poisoned every later call
            with pytest.raises(TypeError, match="hashable"):
                make(bad)


def test_default_device_takes_a_device():
    device = lib.make_cpu_client().devices()[0]
    with table.default_device(device):
        assert config.olympus_default_device is device
        hash(table.trace_key())


def moves():
    """Which transfers raise now: (one that the user asks for, one that he does not)."""
    calls = [lambda: olympus.device_put(np.ones(3, "f")), lambda: olympus.jit(abs)(np.ones(3))]
    raised = []
    for move in calls:
        try:
            move()
        except RuntimeError as error:
            assert "Disallowed host-to-device transfer" in str(error)
            raised.append(True)
        else:
            raised.append(False)
    return tuple(raised)


def test_transfer_guards():
    assert moves() == (False, False)
    with olympus.transfer_guard("disallow"):
        assert moves() == (False, True)
        with olympus.transfer_guard_host_to_device("allow"):
            assert moves() == (False, False)
            with olympus.transfer_guard("disallow_explicit"):
                assert moves() == (True, True)
            assert moves() == (False, False)
        assert moves() == (False, True)
        assert olympus.device_get(olympus.jit(abs)(olympus.device_put(-1.0))) == 1
        seen = []
        thread = threading.Thread(target=lambda: seen.append(moves()))
        thread.start()
        thread.join()
        assert seen == [(False, False)]
    with olympus.transfer_guard_device_to_device("disallow"):
        assert moves() == (False, False)
    try:
        config.update("olympus_transfer_guard", "disallow")
        assert moves() == (False, True)
    finally:
        config.update("olympus_transfer_guard", None)
    assert moves() == (False, False)


def test_arrays_that_the_garbage_collector_frees_are_told(capfd):
    def cycle():
        ring = [olympus.numpy.arange(3)]
        ring.append(ring)

    for level, told in ((None, False), ("log", True), ("allow", False)):
        gc.collect()
        capfd.readouterr()
        with olympus.array_garbage_collection_guard(level):
            cycle()
            gc.collect()
        assert ("garbage collector" in capfd.readouterr().err) is told


def test_the_number_of_cpu_devices():
    done = environment("""import olympus, pytest
olympus.config.update("olympus_num_cpu_devices", 4)
print(len(olympus.devices("cpu")))
with pytest.raises(RuntimeError, match="the CPU backend has started"):
    olympus.config.update("olympus_num_cpu_devices", 2)
with pytest.raises(RuntimeError, match="Disallowed"):
    olympus.jit(abs)(__import__("numpy").ones(3))""", OLYMPUS_NUM_CPU_DEVICES="3",
                       OLYMPUS_TRANSFER_GUARD="disallow")
    assert done.stdout == "4\n", done.stderr
    done = environment("import olympus; print(len(olympus.devices()))", OLYMPUS_NUM_CPU_DEVICES="3")
    assert done.stdout == "3\n", done.stderr


SHOW = "from olympus._src.base.config import config as c; print(c)"


def environment(code=SHOW, **variables):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120,
        env={**os.environ, **variables},
    )


def test_environment_is_read_at_import():
    done = environment(
        OLYMPUS_ENABLE_X64="1", OLYMPUS_DEBUG_NANS="False", OLYMPUS_RANDOM_SEED_OFFSET="3",
        OLYMPUS_NUMPY_RANK_PROMOTION="raise", OLYMPUS_PLATFORMS="cpu", OLYMPUS_LOG_COMPILES="",
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "olympus_enable_x64 = True" in lines
    assert "olympus_debug_nans = False" in lines
    assert "olympus_random_seed_offset = 3" in lines
    assert "olympus_numpy_rank_promotion = 'raise'" in lines
    assert "olympus_platforms = 'cpu'" in lines
    assert "olympus_log_compiles = False" in lines


@pytest.mark.parametrize(
    "variable, text, legal",
    [
        ("OLYMPUS_ENABLE_X64", "maybe", "True or False"),
        ("OLYMPUS_NUM_CPU_DEVICES", "many", "-1 or a positive int"),
        ("OLYMPUS_NUMPY_RANK_PROMOTION", "x", "one of 'allow', 'warn', 'raise'"),
    ],
)
def test_environment_with_an_illegal_value_is_an_error(variable, text, legal):
    done = environment(**{variable: text})
    assert done.returncode == 1
    assert f"ValueError: {variable}: got {text!r}; must be {legal}" in done.stderr


# Options of JAX's that work here -----------------------------------------------------------------

def test_the_platform_whose_devices_are_the_default():
    with table.platform_name("abacus"), pytest.raises(RuntimeError, match="backend abacus"):
        olympus.devices()
    with table.platform_name("cpu"):
        assert olympus.devices()[0].platform == "cpu"


def test_the_level_of_the_logger():
    level = logging.getLogger("olympus").level
    config.update("olympus_logging_level", "ERROR")
    assert logging.getLogger("olympus").level == logging.ERROR
    config.update("olympus_logging_level", "NOTSET")
    assert logging.getLogger("olympus").level == level == logging.NOTSET


def test_loggers_write_all_to_stderr(monkeypatch):
    monkeypatch.setattr(logs._on_stderr, "stream", stream := io.StringIO())
    for name in ("olympus, other", ""):
        config.update("olympus_debug_log_modules", name)
        logging.getLogger("olympus").debug("told to %r", name)
        logging.getLogger("other").debug("so")
    assert stream.getvalue() == "told to 'olympus, other'\nso\n"
    assert logging.getLogger("other").level == logging.NOTSET


@pytest.mark.parametrize("options, flags", [
    ({"olympus_optimization_level": "O1"}, {"optimization_level": 19}),
    ({"olympus_optimization_level": olympus.CompilerEffortLevel.O3}, {"optimization_level": 39}),
    ({"olympus_memory_fitting_level": "O0"}, {"memory_fitting_level": 9}),
    ({"olympus_disable_most_optimizations": True}, {"xla_backend_optimization_level": 0}),
    ({}, {}),
])
def test_the_compiler_is_told_how_hard_to_try(options, flags, monkeypatch):
    given = []
    compile_ = lib.compile
    monkeypatch.setattr(lib, "compile", lambda *args, options, **more: (
        given.append(options), compile_(*args, options=options, **more))[1])
    olympus.clear_caches()
    olympus.jit(lambda x: x * 3 + 4)(1)
    before = [dict(options) for options in given]
    with contextlib.ExitStack() as stack:
        for name, value in options.items():
            stack.enter_context(table._options[name](value))
        olympus.jit(lambda x: x * 3 + 4)(1)
    assert len(before) == 1 and not before[0]
    assert len(given) == 1 + bool(options)
    told = {name: getattr(value, "value", value) for name, value in given[-1].items()}
    assert flags.items() <= told.items()


def test_an_effort_is_an_option_of_the_compiler_too():
    f = olympus.jit(lambda x: x + 1, compiler_options={
        "optimization_level": olympus.CompilerEffortLevel.O1})
    assert f(1) == 2


def test_gumbel_numbers_of_high_dynamic_range_unless_told():
    key = olympus.random.key(3)
    low, high = (olympus.random.gumbel(key, (5,), mode=mode) for mode in ("low", "high"))
    with table.high_dynamic_range_gumbel(True):
        drawn = olympus.random.gumbel(key, (5,))
        coin = olympus.random.bernoulli(key, 0.5, (5,))
        np.testing.assert_array_equal(olympus.random.gumbel(key, (5,), mode="low"), low)
    np.testing.assert_array_equal(drawn, high)
    np.testing.assert_array_equal(olympus.random.gumbel(key, (5,)), low)
    np.testing.assert_array_equal(olympus.random.bernoulli(key, 0.5, (5,)), coin)
    assert not np.array_equal(low, high)


def test_sums_of_16_bits_are_refused_where_that_is_asked_for():
    x = onp.ones(3, onp.bfloat16)
    assert olympus.lax.reduce_sum(x, (0,)) == 3
    with olympus.allow_f16_reductions(False):
        with pytest.raises(ValueError, match=r"reduce_sum: bfloat16\[3\] given"):
            olympus.lax.reduce_sum(x, (0,))
        assert onp.sum(x) == 3 and olympus.lax.reduce_sum(onp.ones(3), (0,)) == 3


def test_dtypes_of_64_bits_are_refused_where_that_is_asked_for():
    with table.explicit_x64_dtypes("error"):
        with pytest.raises(ValueError, match="zeros: dtype float64 given, .* x64 is off"):
            onp.zeros(3, "float64")
        assert onp.zeros(3, float).dtype == "float32"
    with table.explicit_x64_dtypes("allow"), pytest.warns(UserWarning, match="float64"):
        assert onp.zeros(3, "float64").dtype == "float32"


def test_large_constants_of_a_function_are_told():
    held = onp.arange(10.0)
    with table.captured_constants_warn_bytes(40), pytest.warns(
            UserWarning, match=r"jit: adds closes over arrays of 40 bytes \(float32\[10\]\)"):
        @olympus.jit
        def adds(x):
            return x + held
        adds(1.0)
    for most in (41, -1):
        with table.captured_constants_warn_bytes(most):
            olympus.jit(lambda x: x + held)(1.0)


def test_what_a_checkpoint_keeps_is_logged(caplog):
    f = olympus.checkpoint(lambda x, y: onp.sin(onp.sin(x)) * y)
    with table.log_checkpoint_residuals(True):
        olympus.grad(f)(2.0, 3.0)
    assert [r.message for r in caplog.records] == [
        "checkpoint: <lambda> keeps 2 arrays: float32[], float32[]"]
    caplog.clear()
    olympus.grad(f)(2.0, 3.0)
    assert not caplog.records
    with caplog.at_level("DEBUG", logger="olympus"):
        olympus.grad(f)(2.0, 3.0)
    assert [(r.levelname, r.message[:29]) for r in caplog.records if "keeps" in r.message] == [
        ("DEBUG", "checkpoint: <lambda> keeps 2 ")]


def test_meshes_enter_no_block_where_that_is_asked_for():
    mesh = olympus.sharding.Mesh(np.array(olympus.devices()[:1]), ("x",))
    with mesh:
        pass
    with table.disallow_mesh_context_manager(True):
        with pytest.raises(RuntimeError, match=r"with olympus.set_mesh\(mesh\)"):
            mesh.__enter__()
        with olympus.set_mesh(mesh):
            pass


def test_programs_are_written_where_that_is_asked_for(clear_caches, tmp_path):
    def triple(x):
        return x * 3

    with table.dump_ir_to(str(tmp_path / "a")), table.dump_ir_modes("stablehlo,olympuspr"):
        olympus.jit(triple)(7)
        with pytest.raises(ValueError, match="'hlo' given; stablehlo and olympuspr"), (
                table.dump_ir_modes("hlo")):
            olympus.jit(lambda x: x * 5)(7)
    first, second = sorted((tmp_path / "a").iterdir())
    assert first.name.endswith("_triple_trace.olympuspr.txt")
    assert "mul a 3" in first.read_text() or "mul 3" in first.read_text()
    assert second.name.endswith("triple_compile.mlir")
    assert "stablehlo.multiply" in second.read_text() and "loc(" in second.read_text()
    with table.dump_ir_to(str(tmp_path / "b")), table.include_debug_info_in_dumps(False):
        olympus.jit(lambda x: triple(x) + 3)(7)
    file, = (tmp_path / "b").iterdir()
    assert "loc(" not in file.read_text()
    with table.dump_ir_to(str(file)), pytest.warns(UserWarning, match="cannot be written"):
        assert olympus.jit(lambda x: triple(x) + 11)(7) == 32


def test_threads_of_jobs_are_guarded_by_the_runtime(monkeypatch):
    told = []
    monkeypatch.setattr(table.thread_guard, "_tell", told.append)
    with olympus.thread_guard(True):
        assert olympus.jit(lambda x: x + 9)(1) == 10        # of one process: anything goes
    assert told == [True, False]


# Options of JAX's that change nothing here -------------------------------------------------------

@pytest.mark.parametrize("name", IDLE)
def test_an_idle_option_says_once_that_it_changes_nothing(name, monkeypatch):
    option = table._options[name]
    monkeypatch.setattr(option, "_warned", False)
    other = {bool: lambda v: not v, int: lambda v: v + 7, float: lambda v: v + 0.5,
             str: lambda v: v + "x"}.get(type(option.default), lambda _: "x")(option.default)
    with option(option.default):    # as it is: nothing to say
        pass
    if other in option._silent:
        with option(other):
            assert config.read(name) == other
        return
    with pytest.warns(UserWarning, match=f"{name}: .*changes nothing here: "), option(other):
        assert config.read(name) == other
    config.update(name, other)      # the second time
    config.update(name, option.default)
    assert option.doc.startswith("Changes nothing, as ") and not option.doc.endswith("..")


def test_options_of_the_environment_are_told_at_import():
    done = environment("""import olympus
from olympus._src.base.logs import LOGGER
print(LOGGER.level, olympus.default_backend())
LOGGER.critical("heard")""", OLYMPUS_ENABLE_PGLE="1", OLYMPUS_REMAT3="0", TEST_TARGETS="mine",
                       OLYMPUS_LOGGING_LEVEL="CRITICAL", OLYMPUS_PLATFORM_NAME="cpu",
                       OLYMPUS_ENABLE_X46="1")
    assert done.stdout == f"{logging.CRITICAL} cpu\n", done.stderr
    assert "olympus_enable_pgle: True given, which changes nothing here" in done.stderr
    assert "OLYMPUS_ENABLE_X46 is set, which no option reads; OLYMPUS_ENABLE_X64 is" in done.stderr
    assert "remat3" not in done.stderr.lower() and "test_targets" not in done.stderr
