"""Where in the user's program something happens: provenance and traceback filtering.

A source is the pair (code object, instruction offset) of the innermost frame outside Olympus,
taken in about 50 ns a frame and turned into file, line and column only when someone asks. Sources
hold no frame, so they keep no values alive.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import linecache
import os
import re
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from types import CodeType, FrameType, FunctionType, TracebackType
from typing import Any, NamedTuple, TypeVar

from . import config, spelling
from .messages import in_lines, in_our_words, miscalled, with_where
from .util import lazy_imports

with lazy_imports(__name__):       # for messages
    from . import operands as _naming

Source = tuple[CodeType, int]
#: The source of equations that a library function records once for all its callers: each has
#: another line.
CALLERS: Source = ((lambda: None).__code__, 0)
_SHOWN = 60     # characters of a user's line in a message
_F = TypeVar("_F", bound=Callable[..., Any])

_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
# Frames of these modules of the standard library only stand between two frames of ours.
_HELPERS = frozenset((os.path.abspath(contextlib.__file__), os.path.abspath(functools.__file__)))

# file name -> whether its frames are ours. Keyed by name, not by code object: strings cache their
# hash, code objects hash their constants anew each time.
_internal: dict[str, bool] = {}
_MAX_FILES = 10_000


def _absolute(path: str) -> str:
    try:
        return os.path.abspath(path)
    except OSError:     # a relative path, and the current folder is gone
        return path


def _classify(filename: str) -> bool:
    path = _absolute(filename)
    internal = path.startswith(_PACKAGE) or path in _HELPERS
    if len(_internal) >= _MAX_FILES:
        _internal.clear()
    _internal[filename] = internal
    return internal


def is_internal(filename: str) -> bool:
    internal = _internal.get(filename)
    return _classify(filename) if internal is None else internal


# Files of libraries whose frames tracebacks leave out, too; their lines are the user's anyway.
excluded: list[str] = []


def exclude(path: str) -> None:
    """Leave the frames of a file, or of all files in a folder, out of tracebacks."""
    excluded.append(os.path.abspath(path))


def is_hidden(filename: str) -> bool:
    """Whether tracebacks leave out the frames of a file."""
    if is_internal(filename):
        return True
    path = _absolute(filename)
    return any(path == e or path.startswith(e + os.sep) for e in excluded)


def _first_user_frame(frame: FrameType | None) -> FrameType | None:
    internal = _internal
    while frame is not None:
        filename = frame.f_code.co_filename
        try:
            if not internal[filename]:
                return frame
        except KeyError:
            if not _classify(filename):
                return frame
        frame = frame.f_back
    return None


def user_frame(ours: int = 1) -> Source | None:
    """The innermost frame outside the package; None if the whole stack is ours.

    The caller, and who called that, and so on, `ours` in all, are known to be in the package: to
    skip a frame costs nothing, to look at it 70 ns.
    """
    # The loop of `_first_user_frame` once more: this is on the path of every traced operation.
    internal = _internal
    frame: Any = sys._getframe(ours + 1)
    try:
        while internal[frame.f_code.co_filename]:
            frame = frame.f_back
    except KeyError:
        frame = _first_user_frame(frame)
        if frame is None:
            return None
    except AttributeError:  # the stack ended
        return None
    return frame.f_code, frame.f_lasti


def traced_function(record: CodeType, trace: object) -> tuple[CodeType, str] | None:
    """The user's function that a trace is recording, and the verb that he called to have it traced.

    `record` is the code of the function that records; it has the trace in its variable `trace`.
    None where it is not on the stack, or the function recorded is ours. For messages: it is slow.
    """
    frame: Any = sys._getframe(1)
    outermost, verb = None, ""
    while frame is not None and not (
            frame.f_code is record and frame.f_locals.get("trace") is trace):
        if not is_internal(frame.f_code.co_filename):
            outermost = frame.f_code
        frame = frame.f_back
    if frame is None or outermost is None:
        return None
    while (frame := frame.f_back) is not None and is_internal(frame.f_code.co_filename):
        if frame.f_code.co_name == "trace_program":
            return outermost, "jit"
        if frame.f_code.co_filename != __file__:        # not a mere boundary
            verb = frame.f_code.co_qualname.partition(".")[0]
    return outermost, verb


class _Warned(threading.local):
    """How many warnings this thread was asked for, shown or not; and whether none is to be shown.
    """

    count, silent = 0, False


warned = _Warned()


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the user's line, once for each line as Python's own warnings are."""
    warned.count += 1
    if warned.silent:
        return
    frame = _first_user_frame(sys._getframe(1))
    if frame is None:
        warnings.warn(message, category, stacklevel=2)
        return
    names = frame.f_globals
    warnings.warn_explicit(message, category, frame.f_code.co_filename, frame.f_lineno,
                           names.get("__name__"), names.setdefault("__warningregistry__", {}))


class Location(NamedTuple):
    """A source, formatted: lines count from 1, columns from 0 as in Python's own tables."""

    file: str
    function: str
    line: int
    column: int
    end_line: int
    end_column: int


def location(source: Source) -> Location:
    """File, function, line and column of a source, read from the code object's position table."""
    code, lasti = source
    # Two bytes an instruction; the table has one entry for each.
    nowhere = (None, None, None, None)
    line, end_line, column, end_column = next(
        itertools.islice(code.co_positions(), lasti // 2, None), nowhere)
    line = line or code.co_firstlineno
    return Location(code.co_filename, code.co_qualname, line, column or 0, end_line or line,
                    end_column or 0)


def format_source(source: Source | None) -> str:
    """`path/file.py:12:8 (fn)`; the path is relative where it is below the current folder."""
    if source is None or source is CALLERS:
        return "<unknown>"
    at = location(source)
    return f"{short_path(at.file)}:{at.line}:{at.column} ({at.function})"


def written_at(code: CodeType) -> str:
    """`path/file.py:12`: where a function is written."""
    return f"{short_path(code.co_filename)}:{code.co_firstlineno}"


def short_path(path: str) -> str:
    try:
        below = os.path.abspath(path).startswith(os.getcwd() + os.sep)
    except OSError:  # the current folder is gone
        return path
    return os.path.relpath(path) if below else path


def source_line(source: Source | None) -> str:
    """The text of the line, stripped; empty if the file cannot be read."""
    if source is None or source is CALLERS:
        return ""
    at = location(source)
    return line_text(at.file, at.line)


def line_text(file: str, line: int) -> str:
    """The text of a line of a file, stripped; empty if the file cannot be read."""
    return linecache.getline(file, line).strip()


def clipped_line(source: Source | None) -> str:
    """The text of the line as far as it fits a line of a message."""
    line = source_line(source)
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…"


def summarize(source: Source | None) -> str:
    """A source for messages: place and text, `file.py:12:8 (fn): y = x + 1`."""
    line = clipped_line(source)
    return f"{format_source(source)}: {line}" if line else format_source(source)


# --- traceback filtering ----------------------------------------------------------------------

_HIDE = "__tracebackhide__"
_REMOVED = ("--------------------\nFor simplicity, Olympus has removed its internal frames from "
            "the traceback of this exception. Set OLYMPUS_TRACEBACK_FILTERING=off to see them.")


def filter_traceback(error: BaseException) -> None:
    """Take the package's frames out of the error's traceback, and of those it was raised from.

    The exception object stays the same; a note says so where `olympus_traceback_filtering` is
    'quiet_remove_frames'. Does nothing where it is 'off'; 'tracebackhide' marks the frames instead,
    for IPython and pytest. Use as `except Exception as e: filter_traceback(e); raise`: it costs
    nothing until something is raised.
    """
    respell(error)
    mode = config.traceback_filtering.value
    if mode == "off":
        return
    if mode == "quiet_remove_frames" and _REMOVED not in getattr(error, "__notes__", ()):
        error.add_note(_REMOVED)
    seen: set[int] = set()
    pending: list[BaseException | None] = [error]
    while pending:
        err = pending.pop()
        if err is None or id(err) in seen:
            continue
        seen.add(id(err))
        if mode == "tracebackhide":
            _mark(err.__traceback__)
        else:
            err.__traceback__ = _without_internal(err.__traceback__)
        pending += [err.__cause__, err.__context__]


def respell(error: BaseException) -> None:
    """Lay an error that we raised out in lines, with names as users of another spelling know them.

    It names the arrays in the user's expression. What Python or NumPy raises of a value of ours
    gets our message.
    """
    entries = list(_traceback_entries(error.__traceback__))
    plain = type(error) in (TypeError, ValueError)
    if entries and is_internal(entries[-1].tb_frame.f_code.co_filename):
        if (said := miscalled(error, _called_by_user(entries))) is not None:
            error.args = (said,)
        where = _operand_text(entries) if plain and len(error.args) == 1 else ""
        error.args = tuple([_laid_out(a, where) if isinstance(a, str) else a for a in error.args])
    elif plain and entries and (said := in_our_words(error)) is not None:
        last = entries[-1]      # the user's line: Python or NumPy raised it there
        where = f"at {summarize((last.tb_frame.f_code, last.tb_lasti))}"
        error.args = (_laid_out(said, where),)


def _called_by_user(entries: list[TracebackType]) -> list[str]:
    """The names of our functions at the end of a traceback, if a user's called the first."""
    ours = [e.tb_frame for e in entries]
    while ours and not is_internal(ours[0].f_code.co_filename):
        del ours[0]
    caller = ours[0].f_back if ours else None
    inside = caller is not None and is_internal(caller.f_code.co_filename)
    return [] if inside else [frame.f_code.co_name for frame in ours]


_OPERATION = re.compile(r"[^\s:]+( [^\s:]+){0,2}: |\w+ applied to the function ")


def _traceback_entries(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _laid_out(text: str, where: str) -> str:
    """A message that begins with its operation, in lines; others stay to the letter."""
    text = spelling.shown(text)
    if not _OPERATION.match(text):
        return text
    return in_lines(with_where(text, where) if where and where not in text else text)


def _operand_text(entries: list[TracebackType]) -> str:
    """The arrays in the user's innermost expression, and where that stands."""
    users = [e for e in entries if not is_internal(e.tb_frame.f_code.co_filename)]
    if users:
        frame: FrameType | None = users[-1].tb_frame
        lasti = users[-1].tb_lasti
    else:   # it was caught below the user's function
        frame = _first_user_frame(sys._getframe(1))
        lasti = frame.f_lasti if frame is not None else -1
    if frame is None:
        return ""
    at = location((frame.f_code, lasti))
    named = _naming.named_operands(frame, at)
    return f"{named} in {short_path(at.file)}:{at.line}" if named else ""


def _without_internal(traceback: TracebackType | None) -> TracebackType | None:
    """The user's part of a traceback; None where nothing in it is the user's."""
    entries = []
    entry = traceback
    while entry is not None:
        if not is_hidden(entry.tb_frame.f_code.co_filename):
            entries.append(entry)
        entry = entry.tb_next
    result = None
    for entry in reversed(entries):
        if entry.tb_next is not result:     # setting it looks for a cycle along the whole rest
            entry.tb_next = result
        result = entry
    return result


def _mark(entry: TracebackType | None) -> None:
    while entry is not None:
        if is_hidden(entry.tb_frame.f_code.co_filename):
            entry.tb_frame.f_locals[_HIDE] = True
        entry = entry.tb_next


def api_boundary(fun: _F) -> _F:
    """Decorator of public verbs: errors leave them without the package's inner frames.

    Success costs one Python frame. A verb that already wraps a user's function writes the same
    `try` in its wrapper instead, which costs nothing.
    """
    @functools.wraps(fun)
    def boundary(*args: object, **kwargs: object) -> object:
        try:
            return fun(*args, **kwargs)
        except Exception as error:
            filter_traceback(error)
            raise
    return boundary  # type: ignore[return-value]


_CATCHING = frozenset(("begin_with", "filter_traceback"))


def bounded(fun: Any) -> Any:
    """A public function behind a boundary; itself if it catches its errors, or is no function."""
    if type(fun) is not FunctionType or not _CATCHING.isdisjoint(fun.__code__.co_names):
        return fun
    return api_boundary(fun)
