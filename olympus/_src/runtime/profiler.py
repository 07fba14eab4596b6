"""Profiles: activities of host and devices over time, by XLA's profiler; and memory in use.

One profile is under way at a time, in a process. It is written as XProf (TensorBoard) reads it, and
as Chrome's and Perfetto's viewers do.
"""

from __future__ import annotations

import contextlib
import gzip
import itertools
import os
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ..base import lib
from ..base.lib import profiler as xla
from ..base.logs import LOGGER
from ..base.typing import P, R
from ..base.util import lazy_imports, name_of, wraps
from ..devices.devices import client
from ..types.shape import static_int

Session = xla.Session

with lazy_imports(__name__):
    from http import server as http

_PERFETTO_PORT = 9001       # the only local port that ui.perfetto.dev may read
_lock = threading.RLock()
_running: ProfileSession | None = None      # the profile under way
_listening: Any = None                      # the server of profiles

ProfileEvent, ProfileLine, ProfilePlane = xla.ProfileEvent, xla.ProfileLine, xla.ProfilePlane


class ProfileOptions(xla.ProfileOptions):
    """The options of a profile.

    Attributes:
      host_tracer_level: of the host, 0 nothing, 1 annotations, 2 also XLA's expensive steps, 3 all.
      python_tracer_level: 1 records every call of a Python function, 0 none.
      enable_hlo_proto: whether programs that are compiled meanwhile are in the profile.
      session_id: the name of the folder that is written; the time, if it is empty.
      duration_ms, start_timestamp_ns, include_dataset_ops, advanced_configuration and others:
        XLA's own.

    >>> import olympus
    >>> options = olympus.profiler.ProfileOptions()
    >>> options.python_tracer_level = 0
    >>> options.host_tracer_level
    2
    """


class ProfileData(xla.ProfileData):
    """A profile: planes (the host, each device) of lines (threads, streams) of events.

    Args: serialized: the bytes of a `.xplane.pb` file.

    >>> import olympus
    >>> with olympus.profiler.trace() as session:
    ...     with olympus.profiler.TraceAnnotation("a step"):
    ...         _ = olympus.numpy.ones(3).sum()
    >>> events = (event for plane in session.profile_data.planes for line in plane.lines
    ...           for event in line.events)
    >>> any(event.name == "a step" for event in events)
    True
    """

    def __init__(self, serialized: bytes) -> None:
        super().__init__(serialized)    # XLA's class does not give the bytes back
        self._serialized = serialized

    @classmethod
    def from_serialized_xspace(cls, serialized_xspace: bytes) -> ProfileData:
        """Read the bytes of a `.xplane.pb` file."""
        return cls(serialized_xspace)

    @classmethod
    def from_file(cls, proto_file_path: str | os.PathLike[str]) -> ProfileData:
        """Read a `.xplane.pb` file."""
        return cls(Path(proto_file_path).read_bytes())

    @classmethod
    def from_text_proto(cls, text_proto: str) -> ProfileData:
        """Read a profile that is written as text."""
        return cls(xla.serialized_xspace(text_proto))


class TraceAnnotation(xla.TraceMe):
    """Context manager: its block has a name in the profile, on the line of its thread.

    Args:
      name: its name.
      kwargs: values shown with it: numbers and strings.

    >>> import olympus
    >>> with olympus.profiler.TraceAnnotation("load", batch=3):
    ...     pass
    """

    def __init__(self, name: str, **kwargs: object) -> None:
        if not isinstance(name, str):
            raise TypeError(f"{type(self).__name__}: name {name!r:.60} of type "
                            f"{type(name).__name__} given; a str is required.")
        super().__init__(name, **kwargs)


class StepTraceAnnotation(TraceAnnotation):
    """Context manager: its block is one step of training; viewers show its times.

    Args:
      name: the name of the steps.
      kwargs: values shown with it; `step_num` is the step's number.

    >>> import olympus
    >>> for step in range(2):
    ...     with olympus.profiler.StepTraceAnnotation("train", step_num=step):
    ...         pass
    """

    def __init__(self, name: str, **kwargs: object) -> None:
        super().__init__(name, _r=1, **kwargs)      # _r marks the root of a step for viewers


def annotate_function(func: Callable[P, R], name: str | None = None,
                      **decorator_kwargs: object) -> Callable[P, R]:
    """The function, with a name in profiles for each of its calls.

    Args:
      func: a Python function; of a jitted one, each call and not each operation in it.
      name: its name; None is the function's own name.
      decorator_kwargs: values shown with it.
    Returns: A function of the same arguments. TypeError for what cannot be called.

    >>> @olympus.profiler.annotate_function
    ... def load(n):
    ...     return n + 1
    >>> load(2)
    3
    """
    if not callable(func):
        raise TypeError(f"annotate_function: {func!r:.60} of type {type(func).__name__} given; a "
                        "function is required.")
    label = name_of(func) if name is None else name

    def annotated(*args: P.args, **kwargs: P.kwargs) -> R:
        with TraceAnnotation(label, **decorator_kwargs):
            return func(*args, **kwargs)

    return wraps(func, attributes=True)(annotated)


class ProfileSession:
    """One profile: from `start` to `stop`, or for the length of a `with` block.

    Args:
      log_dir: the folder that it is written to when it stops, if any.
      create_perfetto_link: whether `stop` then prints a link that opens it in ui.perfetto.dev, and
        waits until that has read it.
      create_perfetto_trace: whether `perfetto_trace.json.gz` is written, too.
      profiler_options: a `ProfileOptions`.

    >>> import olympus
    >>> session = olympus.profiler.ProfileSession()
    >>> session.start()
    >>> session.is_running
    True
    >>> session.stop()
    >>> session.profile_data.find_plane_with_name("/host:CPU").name
    '/host:CPU'
    """

    def __init__(self, log_dir: str | os.PathLike[str] | None = None,
                 create_perfetto_link: bool = False, create_perfetto_trace: bool = False,
                 profiler_options: ProfileOptions | None = None) -> None:
        if (create_perfetto_link or create_perfetto_trace) and log_dir is None:
            raise ValueError("profiler: no log_dir given with create_perfetto_link or "
                             "create_perfetto_trace; pass the folder to write to.")
        if not isinstance(profiler_options, (xla.ProfileOptions, type(None))):
            raise TypeError(f"profiler: profiler_options {profiler_options!r:.60} given; an "
                            "olympus.profiler.ProfileOptions is required.")
        if not isinstance(log_dir, (str, os.PathLike, type(None))):
            raise TypeError(f"profiler: log_dir {log_dir!r:.60} of type {type(log_dir).__name__} "
                            "given; the path of a folder is required.")
        self._folder = None if log_dir is None else os.fspath(log_dir)
        self._shown = create_perfetto_link, create_perfetto_trace
        self._options = profiler_options
        self._session: Any = None
        self._data: ProfileData | None = None

    def start(self) -> None:
        """Begin to record; RuntimeError while another profile is under way."""
        global _running
        client()        # a plugin's profiler comes with it
        if self._folder is not None:
            os.makedirs(self._folder, exist_ok=True)    # where that fails, nothing is lost yet
        with _lock:
            if _running is not None:
                raise RuntimeError("profiler: a profile is started while another one is under way; "
                                   "one at a time is possible; stop the other one first "
                                   "(olympus.profiler.stop_trace).")
            self._session = xla.Session(self._options or ProfileOptions())
            self._data, _running = None, self

    def stop(self) -> None:
        """End it, and write it if it has a folder; RuntimeError if it does not run."""
        global _running
        with _lock:
            if self._session is None:
                raise RuntimeError("profiler: a profile is stopped that is not under way; start it "
                                   "before (olympus.profiler.start_trace).")
            session, self._session, _running = self._session, None, None
        self._data = ProfileData(_ended(session))
        if self._folder is not None:
            run = self._options.session_id if self._options is not None else ""
            _write_profile(session, self._data, self._folder, run, *self._shown)

    @property
    def is_running(self) -> bool:
        """Whether it was started and not stopped yet."""
        return self._session is not None

    @property
    def profile_data(self) -> ProfileData | None:
        """The recorded profile; None before `stop`."""
        return self._data

    def export_profile_data(self, log_dir: str | os.PathLike[str],
                            create_perfetto_link: bool = False,
                            create_perfetto_trace: bool = False,
                            session_id: str | None = None) -> None:
        """Write the recorded profile, as `olympus.profiler.export_profile_data` does."""
        if self._data is None:
            raise RuntimeError("profiler: nothing was recorded that could be written; start and "
                               "stop the profile before.")
        export_profile_data(self._data, log_dir, create_perfetto_link, create_perfetto_trace,
                            session_id)

    def __enter__(self) -> ProfileSession:
        self.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.stop()


def _ended(session: Session) -> bytes:
    """The record of XLA's session, which says only now that it could not begin."""
    try:
        return session.stop()
    except lib.XlaRuntimeError as error:
        raise RuntimeError(f"profiler: nothing was recorded ({error}); one profile at a time is "
                           "possible in a process.") from None


def export_profile_data(profile_data: ProfileData, log_dir: str | os.PathLike[str],
                        create_perfetto_link: bool = False, create_perfetto_trace: bool = False,
                        session_id: str | None = None) -> None:
    """Write a profile to a folder, for TensorBoard and for Perfetto.

    Args:
      profile_data: the recorded profile.
      log_dir: the folder; files are in `plugins/profile/<session_id>`.
      create_perfetto_link: whether a link that opens it in ui.perfetto.dev is printed, and waited
        for.
      create_perfetto_trace: whether `perfetto_trace.json.gz` is written, too.
      session_id: the name of the inner folder; None is the time.

    RuntimeError while a profile is under way: XLA writes none then.

    >>> import os, tempfile
    >>> with olympus.profiler.trace() as session:
    ...     pass
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     olympus.profiler.export_profile_data(session.profile_data, folder, session_id="mine")
    ...     os.listdir(os.path.join(folder, "plugins", "profile"))
    ['mine']
    """
    if not isinstance(profile_data, ProfileData):
        raise TypeError(f"export_profile_data: {profile_data!r:.60} of type "
                        f"{type(profile_data).__name__} given; an olympus.profiler.ProfileData is "
                        "required.")
    idle = ProfileOptions()         # a session of XLA's writes what others recorded, too
    idle.host_tracer_level = idle.python_tracer_level = 0
    session = xla.Session(idle)
    _ended(session)
    _write_profile(session, profile_data, os.fspath(log_dir), session_id or "",
                   create_perfetto_link,
                   create_perfetto_trace)


def _write_profile(session: Session, data: ProfileData, folder: str, run: str, link: bool,
                   perfetto: bool) -> None:
    """Write a profile in XLA's layout; what Perfetto opens is the file of Chrome's viewer."""
    runs = Path(folder, "plugins", "profile")
    runs.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as beside:     # XLA's own name is the second
        session.export(data._serialized, beside)
        written, = Path(beside, "plugins", "profile").iterdir()
        names = (f"{written.name}_{i}" for i in itertools.count(2))
        place = runs / (run or written.name)
        while not run and place.exists():
            place = runs / next(names)
        shutil.copytree(written, place, dirs_exist_ok=True)     # the user may name a run twice
    if link or perfetto:
        chrome, = place.glob("*.trace.json.gz")
        shown = Path(shutil.copyfile(chrome, place / "perfetto_trace.json.gz"))
        if link:
            _serve(shown)


def _serve(path: Path) -> None:
    """Print a link by which ui.perfetto.dev reads a file of this machine; wait until it has."""
    data, served = path.read_bytes(), False

    class Once(http.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            nonlocal served
            served = True
            self.send_response(200)
            # The page has another origin, to which browsers give nothing without this header.
            self.send_header("Access-Control-Allow-Origin", "https://ui.perfetto.dev")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args: object) -> None:
            LOGGER.debug("profiler: %s", args)      # `http.server` would write to stderr

    with http.HTTPServer(("127.0.0.1", _PERFETTO_PORT), Once) as server:
        print("Open this link, which reads the trace from here: https://ui.perfetto.dev/#!/?url="
              f"http://127.0.0.1:{_PERFETTO_PORT}/{path.name}")
        while not served:
            server.handle_request()


def start_trace(log_dir: str | os.PathLike[str], create_perfetto_link: bool = False,
                create_perfetto_trace: bool = False,
                profiler_options: ProfileOptions | None = None) -> None:
    """Begin to record the activities of host and devices, until `stop_trace`.

    Args:
      log_dir: the folder that the profile is written to.
      create_perfetto_link: whether `stop_trace` prints a link to ui.perfetto.dev, and waits for it.
      create_perfetto_trace: whether `perfetto_trace.json.gz` is written, too.
      profiler_options: the choice of records, a `ProfileOptions`.

    RuntimeError while another profile is under way.

    >>> import glob, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     olympus.profiler.start_trace(folder)
    ...     _ = olympus.numpy.ones(3).sum().block_until_ready()
    ...     olympus.profiler.stop_trace()
    ...     len(glob.glob(f"{folder}/plugins/profile/*/*.xplane.pb"))
    1
    """
    ProfileSession(log_dir, create_perfetto_link, create_perfetto_trace, profiler_options).start()


def stop_trace() -> None:
    """End the profile that `start_trace` began, and write it.

    What devices still compute is not in it: wait for results (`block_until_ready`) before.
    RuntimeError if none is under way.

    >>> olympus.profiler.stop_trace()
    Traceback (most recent call last):
    RuntimeError: profiler: no profile is under way; start one before ...
    """
    session = _running
    if session is None:
        raise RuntimeError("profiler: no profile is under way; start one before "
                           "(olympus.profiler.start_trace).")
    session.stop()


@contextlib.contextmanager
def trace(log_dir: str | os.PathLike[str] | None = None, create_perfetto_link: bool = False,
          create_perfetto_trace: bool = False, profiler_options: ProfileOptions | None = None
          ) -> Iterator[ProfileSession]:
    """Context manager: record the activities of host and devices within.

    Args:
      log_dir: the folder that the profile is written to; None keeps it in memory.
      create_perfetto_link: whether a link to ui.perfetto.dev is printed in the end, and waited for.
      create_perfetto_trace: whether `perfetto_trace.json.gz` is written, too.
      profiler_options: the choice of records, a `ProfileOptions`.
    Returns: A context manager of the `ProfileSession`, which has the `profile_data` afterwards.

    >>> with olympus.profiler.trace() as session:
    ...     _ = olympus.numpy.ones(3).sum().block_until_ready()
    >>> sorted(plane.name for plane in session.profile_data.planes)[0]
    '/host:CPU'
    """
    session = ProfileSession(log_dir, create_perfetto_link, create_perfetto_trace, profiler_options)
    with session:
        yield session


def start_server(port: int, requires_backend: bool = True) -> object:
    """Serve profiles: TensorBoard (`Capture profile`) then takes them while the program runs.

    Args:
      port: of this machine.
      requires_backend: whether the backend is started first, whose devices are profiled.
    Returns: The server. ValueError if one is there already.

    >>> import socket
    >>> with socket.socket() as probe:          # a free port
    ...     probe.bind(("127.0.0.1", 0))
    ...     port = probe.getsockname()[1]
    >>> server = olympus.profiler.start_server(port)
    >>> olympus.profiler.stop_server()
    """
    global _listening
    port = static_int(port, "start_server", "port")
    if not 0 < port < 1 << 16:
        raise ValueError(f"start_server: port {port} given; one of 1 to 65535 is required.")
    if requires_backend:
        client()
    with _lock:
        if _listening is not None:
            raise ValueError("start_server: a server of profiles is started while there is one; "
                             "stop it before (olympus.profiler.stop_server).")
        # XLA says only in its log that a port is taken.
        with contextlib.suppress(ConnectionRefusedError), socket.create_connection(
                ("127.0.0.1", port), 1.0):
            raise ValueError(f"start_server: port {port} given, at which another server is; take "
                             "a free one.")
        _listening = xla.start_server(port)
        return _listening


def stop_server() -> None:
    """End the server that `start_server` made; ValueError if there is none.

    >>> olympus.profiler.stop_server()
    Traceback (most recent call last):
    ValueError: stop_server: no server of profiles is there; start one before.
    """
    global _listening
    with _lock:
        if _listening is None:
            raise ValueError("stop_server: no server of profiles is there; start one before.")
        _listening = None       # its deletion ends the server


def register_subprocess(pid: int, port: int) -> Callable[[], None]:
    """Let profiles of this process include a process that it started.

    Args:
      pid: its number.
      port: at which its own `start_server` listens.
    Returns: A function that ends this. RuntimeError if nothing answers at the port.

    >>> import os
    >>> import socket
    >>> with socket.socket() as probe:          # a free port
    ...     probe.bind(("127.0.0.1", 0))
    ...     port = probe.getsockname()[1]
    >>> server = olympus.profiler.start_server(port)
    >>> forget = olympus.profiler.register_subprocess(os.getppid(), port)
    >>> forget()
    >>> olympus.profiler.stop_server()
    """
    try:
        return xla.register_subprocess(pid, port)
    except lib.XlaRuntimeError as error:
        raise RuntimeError(f"register_subprocess: process {pid} and port {port} given; XLA says "
                           f"{error}; another process is required that has called "
                           "olympus.profiler.start_server.") from None


def device_memory_profile(backend: str | None = None) -> bytes:
    """The memory of the devices that is in use, as `pprof` reads it.

    Args: backend: the platform's name; None is the default one.
    Returns: The bytes of a compressed pprof file: how many bytes are in arrays and in programs, by
      device. With `olympus_array_tracebacks` also which lines of Python made them.

    >>> import gzip
    >>> profile = gzip.decompress(olympus.profiler.device_memory_profile())
    >>> b"bytes" in profile and b"device" in profile
    True
    """
    return gzip.compress(client(backend).heap_profile())    # as files of pprof are


def save_device_memory_profile(filename: str | os.PathLike[str], backend: str | None = None
                               ) -> None:
    """Write `device_memory_profile` to a file: `pprof -top FILE` shows it.

    Args:
      filename: the file.
      backend: the platform's name; None is the default one.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "memory.prof")
    ...     olympus.profiler.save_device_memory_profile(path)
    ...     os.path.getsize(path) > 0
    True
    """
    Path(filename).write_bytes(device_memory_profile(backend))


def get_profiled_instructions_proto(tensorboard_dir: str) -> bytes:
    """How long the instructions of GPU programs took, of the profiles in a folder.

    Args: tensorboard_dir: the `log_dir` that profiles were written to.
    Returns: The bytes of XLA's message `ProfiledInstructionsProto`; none if no GPU was profiled.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with olympus.profiler.trace(folder):
    ...         pass
    ...     profiler.get_profiled_instructions_proto(folder)
    b''
    """
    return xla.profiled_instructions(os.fspath(tensorboard_dir))
