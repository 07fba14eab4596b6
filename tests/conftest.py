"""What every test shares: quiet logs, a random generator seeded by the test's name, no network.

Order is random (pytest-randomly); the closing lines say which option repeats it.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")  # read once, when jaxlib is loaded
os.environ["OLYMPUS_AS_JAX"] = "off"    # some tests import every module

import gc
import itertools
import operator
import re
import shutil
import socket
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from _pytest.raises import AbstractRaises

pytest.register_assert_rewrite("properties")


_matches_as_it_is = AbstractRaises._check_match


def _matches(raises: AbstractRaises, error: BaseException) -> bool:
    """`pytest.raises(match=…)` is about what a message says, not about where its lines end."""
    return _matches_as_it_is(raises, error) or bool(
        re.search(raises.match, " ".join(str(error).split())))


AbstractRaises._check_match = _matches

# Nine tenths of the tests' time is compiling. Workers share their compiled programs in a folder,
# which lasts as long as the run, or for ever if OLYMPUS_TEST_CACHE names it. These modules are
# about compiling, caches and memory: they and their processes run without, and without the user's.
WITHOUT_PROGRAMS = {
    "test_anomalies", "test_caches", "test_command_line", "test_config", "test_disk_cache",
    "test_jit", "test_linear_time", "test_memory", "test_persistent", "test_seam", "test_smoke",
    "test_spec_aot", "test_stages", "test_threads", "test_transform_state"}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow-sixth", type=int, choices=range(6), metavar="0..5",
                     help="of the slow tests run one sixth, told by their names")


def pytest_configure(config: pytest.Config) -> None:
    """Sets the folder of compiled programs, for workers and the processes of tests as well."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        return
    folder = os.environ.get("OLYMPUS_TEST_CACHE")
    if not folder:
        folder = tempfile.mkdtemp(prefix="olympus-test-programs-")
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    os.environ.update(OLYMPUS_COMPILATION_CACHE_DIR=folder,
                      OLYMPUS_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS="0",
                      OLYMPUS_RAISE_PERSISTENT_CACHE_ERRORS="true")


@pytest.fixture(autouse=True, scope="module")
def _programs_of_their_own(request: pytest.FixtureRequest) -> Iterator[None]:
    if request.module.__name__.rpartition(".")[2] not in WITHOUT_PROGRAMS:
        yield
        return
    import olympus

    usual = {"olympus_compilation_cache_dir": None, "olympus_raise_persistent_cache_errors": False,
             "olympus_persistent_cache_min_compile_time_secs": 0.01}
    with pytest.MonkeyPatch.context() as patch:
        found = {name: getattr(olympus.config, name) for name in usual}
        for name, value in usual.items():
            patch.delenv(name.upper(), raising=False)   # a process of a test may have none
            olympus.config.update(name, value)
        patch.setenv("OLYMPUS_ENABLE_COMPILATION_CACHE", "false")
        yield
        for name, value in found.items():
            olympus.config.update(name, value)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Gives a property of `properties` the rows that it is about, of the module's table."""
    cases = getattr(metafunc.function, "cases", None)
    if cases is not None:
        found = cases(metafunc.module.TABLE)
        metafunc.parametrize(metafunc.function.names, found,
                             ids=["-".join([op.name, *kind]) for op, *kind in found])


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A table without rows for a property gives no test; tests that were found slow are marked, of
    which five sixths may be left out.
    """
    items[:] = [item for item in items if not item.name.endswith("[NOTSET]")
                and not item.name.endswith("[op0-kind0]")]
    slow = set((Path(__file__).parent / "data" / "slow.txt").read_text().splitlines())
    families = tuple(name[:-1] for name in slow if name.endswith("*"))
    for item in items:
        file = item.nodeid.split("::")[0].removesuffix(".py").replace("/", ".")
        name = f"{file}::{item.name}"
        if name in slow or name.startswith(families):
            item.add_marker(pytest.mark.slow)
    sixth = config.getoption("--slow-sixth")
    if sixth is not None:
        items[:] = [item for item in items if item.get_closest_marker("slow") is None
                    or zlib.crc32(item.nodeid.encode()) % 6 == sixth]
    place: dict[object, int] = {}
    items.sort(key=lambda item: place.setdefault(row_of(item) or item.nodeid, len(place)))


def row_of(item: pytest.Item) -> tuple[str, int] | None:
    """The module and the row that a property's test is about."""
    if hasattr(getattr(item, "function", None), "cases"):
        return item.nodeid.split("::")[0], id(item.callspec.params["op"])
    return None


def pytest_collection() -> None:
    """Nothing that is collected becomes garbage: Python's collector need not look for it."""
    gc.disable()


def pytest_collection_finish(session: pytest.Session) -> None:
    """What the selected tests of a row read of its program is compiled together.

    The tests are a million objects, which each `gc.collect()` of a test would look at.
    """
    for item in filter(row_of, session.items):
        item.function.announce(**item.callspec.params)
    gc.freeze()
    gc.enable()


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """NumPy's generator, seeded by the test's own id: equal in any order and on any worker."""
    return np.random.default_rng(zlib.crc32(request.node.nodeid.encode()))


@pytest.fixture
def clear_caches() -> Iterator[Callable[[], None]]:
    """Empties every cache of Olympus before and after the test, and on each call in between."""
    import olympus

    olympus.clear_caches()
    yield olympus.clear_caches
    olympus.clear_caches()


@pytest.fixture(autouse=True, scope="session")
def _tests_done() -> Iterator[int]:
    return itertools.count(1)


@pytest.fixture(autouse=True)
def _few_programs(_tests_done: Iterator[int]) -> None:
    """Thousands of tests compile more than a process may keep: begin anew now and then."""
    if next(_tests_done) % 200 == 0:
        import olympus

        olympus.clear_caches()


@pytest.fixture(autouse=True)
def _options_stay() -> Iterator[None]:
    """Options are the process's: one that a test leaves changed would change the tests after it."""
    from olympus._src.base.config import _options

    before = [option.value for option in _options.values()]
    yield
    after = [option.value for option in _options.values()]
    assert after == before, [*itertools.compress(_options, map(operator.ne, before, after))]


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    connect = socket.socket.connect

    def only_here(self: socket.socket, address: object) -> None:
        if not (isinstance(address, tuple) and address[0] in ("127.0.0.1", "::1")):
            raise RuntimeError(f"test: connect to {address!r}; tests use no network")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", only_here)


@pytest.fixture(autouse=True)
def _no_jax() -> Iterator[None]:
    yield
    # None is how the seam hides jax from jaxlib's C++ for the length of one call.
    assert sys.modules.get("jax") is None, "the test imported jax"


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """A run that is stopped before its summary has said what failed until then."""
    if report.failed and "PYTEST_XDIST_WORKER" not in os.environ:
        print(f"\nfailed: {report.nodeid}", flush=True)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """`-q` hides pytest-randomly's header, so the seed that repeats this order is said here."""
    seed = terminalreporter.config.getoption("randomly_seed", None)
    if isinstance(seed, int):
        terminalreporter.write_line(f"random order: repeat it with --randomly-seed={seed}")
