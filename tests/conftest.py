"""What every test shares: quiet logs, a random generator seeded by the test's name, no network.

Order is random (pytest-randomly); the closing lines say which option repeats it.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")  # read once, when jaxlib is loaded

import itertools
import socket
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.register_assert_rewrite("properties")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Gives a property of `properties` the rows that it is about, of the module's table."""
    cases = getattr(metafunc.function, "cases", None)
    if cases is not None:
        found = cases(metafunc.module.TABLE)
        metafunc.parametrize(metafunc.function.names, found,
                             ids=["-".join([op.name, *kind]) for op, *kind in found])


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A table without rows for a property gives no test; tests that were found slow are marked."""
    items[:] = [item for item in items if not item.name.endswith("[NOTSET]")
                and not item.name.endswith("[op0-kind0]")]
    slow = set((Path(__file__).parent / "data" / "slow.txt").read_text().splitlines())
    families = tuple(name[:-1] for name in slow if name.endswith("*"))
    for item in items:
        file = item.nodeid.split("::")[0].removesuffix(".py").replace("/", ".")
        name = f"{file}::{item.name}"
        if name in slow or name.startswith(families):
            item.add_marker(pytest.mark.slow)
    place: dict[Any, int] = {}
    items.sort(key=lambda item: place.setdefault(row_of(item) or item.nodeid, len(place)))


def row_of(item: pytest.Item) -> tuple[str, int] | None:
    """The module and the row that a property's test is about."""
    if hasattr(getattr(item, "function", None), "cases"):
        return item.nodeid.split("::")[0], id(item.callspec.params["op"])
    return None


def pytest_collection_finish(session: pytest.Session) -> None:
    """What the selected tests of a row read of its program is compiled together."""
    for item in filter(row_of, session.items):
        item.function.announce(**item.callspec.params)


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
