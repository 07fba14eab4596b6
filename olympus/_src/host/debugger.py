"""debug.breakpoint: a prompt in the middle of a compiled program, with the values at that point."""

from __future__ import annotations

import cmd
import linecache
import pprint
import sys
import types
from collections.abc import Callable
from typing import TextIO

from ..base import source
from ..base.typing import PyTree
from ..base.util import quoted
from ..core.trace import Tracer
from ..types.tree import tree_leaves
from .callbacks import debug_callback

SURROUNDING = 5     # lines shown before and after the current one


class Frame:
    """A frame of the user's program: its line and its names."""

    __slots__ = ("file", "name", "line", "globals")

    def __init__(self, frame: types.FrameType) -> None:
        # Not the frame itself, which would keep its and its callers' locals alive.
        self.file, self.name, self.line = frame.f_code.co_filename, frame.f_code.co_name, \
            frame.f_lineno
        self.globals = frame.f_globals

    def __str__(self) -> str:
        return f"{self.file}({self.line}){self.name}()"


class Prompt(cmd.Cmd):
    """The commands of the prompt; the names follow pdb."""

    prompt = "(oldb) "

    def __init__(self, frames: list[Frame], values: list[dict[str, object]],
                 stdin: TextIO | None = None, stdout: TextIO | None = None,
                 completekey: str = "tab") -> None:
        super().__init__(completekey, stdin or sys.stdin, stdout or sys.stdout)
        # `input`, with which lines can be edited, knows the streams of the process only.
        self.use_rawinput = stdin is None and stdout is None and sys.stdin.isatty()
        self.frames, self.values, self.at, self.quit = frames, values, 0, False

    def say(self, text: str) -> None:
        self.stdout.write(text + "\n")

    def preloop(self) -> None:
        self.say(f"> {self.frames[self.at]}")
        self.do_list("")

    def evaluate(self, text: str) -> object:
        # The frame itself is gone when the program runs: only its names were kept.
        frame = self.frames[self.at]
        return eval(text, frame.globals, self.values[self.at])

    def show(self, text: str, shown: Callable[[object], str]) -> None:
        try:
            self.say(shown(self.evaluate(text)))
        except Exception as error:      # the program survives a mistake at the prompt
            self.say(f"*** {type(error).__name__}: {error}")

    def do_p(self, arg: str) -> None:
        """p expression: print its value"""
        self.show(arg, repr)

    def do_pp(self, arg: str) -> None:
        """pp expression: print its value, indented"""
        self.show(arg, pprint.pformat)

    def default(self, line: str) -> bool | None:
        """Anything else is an expression."""
        if line == "EOF":       # `cmd`'s word for the end of input
            return self.do_continue("")
        return self.do_p(line)

    def do_list(self, arg: str) -> None:
        """l(ist): the lines around the current one"""
        frame = self.frames[self.at]
        for n in range(max(frame.line - SURROUNDING, 1), frame.line + SURROUNDING + 1):
            text = linecache.getline(frame.file, n, frame.globals).rstrip()
            if text or n <= frame.line:
                self.say(f"{n:4d} {'->' if n == frame.line else '  '} {text}")

    def do_args(self, arg: str) -> None:
        """a(rgs): the names of this frame and their values"""
        for name, value in self.values[self.at].items():
            self.say(f"{name} = {value!r:.200}")

    def do_bt(self, arg: str) -> None:
        """bt, w(here): the frames, the innermost last"""
        for i in reversed(range(len(self.frames))):
            self.say(f"{'>' if i == self.at else ' '} {self.frames[i]}")

    def move(self, to: int) -> None:
        if 0 <= to < len(self.frames):
            self.at = to
            self.say(f"> {self.frames[to]}")
        else:
            self.say("*** no such frame")

    def do_up(self, arg: str) -> None:
        """u(p): to the frame that called this one"""
        self.move(self.at + 1)

    def do_down(self, arg: str) -> None:
        """d(own): to the frame that this one called"""
        self.move(self.at - 1)

    def do_continue(self, arg: str) -> bool:
        """c(ontinue): let the program run on"""
        return True

    def do_quit(self, arg: str) -> bool:
        """q(uit): end the program with an error"""
        self.quit = True
        return True

    def emptyline(self) -> bool:
        return False        # `cmd` would repeat the last command, and `up` twice is a surprise

    do_l, do_a, do_w, do_where, do_u, do_d = do_list, do_args, do_bt, do_bt, do_up, do_down
    do_c, do_cont, do_q, do_exit = do_continue, do_continue, do_quit, do_quit


def _frames(filter_frames: bool, num_frames: int | None) -> list[types.FrameType]:
    """The frames of the stack from the caller of `breakpoint` on; the library's are left out."""
    frames: list[types.FrameType] = []
    frame: types.FrameType | None = sys._getframe(2)
    while frame is not None and (num_frames is None or len(frames) < num_frames):
        if not filter_frames or not source.is_internal(frame.f_code.co_filename):
            frames.append(frame)
        frame = frame.f_back
    return frames


def _is_traced(value: object) -> bool:
    return any(isinstance(x, Tracer) for x in tree_leaves(value))


def breakpoint(*, backend: str | None = None, filter_frames: bool = True,
               num_frames: int | None = None, ordered: bool = False, token: object = None,
               **kwargs: PyTree) -> None:
    """Stop the running program here and open a prompt on the terminal.

    The prompt knows the names of the frames that led here, with the values that they have when the
    program runs: print expressions (`p x`, or just `x`), look around (`list`, `args`, `bt`, `up`,
    `down`), go on (`continue`) or end the program (`quit`, RuntimeError). It works under jit, and
    within vmap once per element.

    Args:
      backend: None or "cli", the plain terminal.
      filter_frames: leave out the frames of the library.
      num_frames: how many frames to keep, the innermost first; None: all.
      ordered: keep the order of ordered callbacks.
      token: not used.
      **kwargs: `stdin` and `stdout`, streams in place of the process's, and `completekey`, as for
        `cmd.Cmd`.
    """
    if unknown := kwargs.keys() - {"stdin", "stdout", "completekey"}:
        raise TypeError(f"debug.breakpoint: {quoted(unknown)} given; stdin, stdout and completekey "
                        "are what the terminal takes.")
    if backend not in (None, "cli"):
        raise ValueError(f"debug.breakpoint: backend is {backend!r}; None or 'cli' is required.")
    frames, arrays, others = [], [], []
    for frame in _frames(filter_frames, num_frames):
        # Without `.0`, as the iterator of a comprehension is called.
        names = {k: v for k, v in frame.f_locals.items() if k.isidentifier()}
        traced = {k: v for k, v in names.items() if _is_traced(v)}
        frames.append(Frame(frame))
        arrays.append(traced)
        others.append({k: v for k, v in names.items() if k not in traced})

    # Traced values are operands and come back as arrays; all others are kept as they are now.
    def stop(values: list[dict[str, object]]) -> None:
        prompt = Prompt(frames, [{**fixed, **dynamic}
                                 for fixed, dynamic in zip(others, values, strict=True)], **kwargs)
        prompt.cmdloop()
        if prompt.quit:
            raise RuntimeError("debug.breakpoint: quit at the prompt.")

    debug_callback(stop, arrays, ordered=ordered)
