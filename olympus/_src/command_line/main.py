"""`python -m olympus`: lower, compile, run and export functions from a terminal."""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import statistics
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from ..arrays.device import block_until_ready
from ..base import config, source
from ..base.lib import MemoryStats
from ..base.progress import step
from ..base.typing import PyTree
from ..devices.chips import parse_target
from ..devices.devices import print_environment_info
from ..export.exported import Exported, deserialize, export
from ..export.files import replacing
from ..export.iree import TARGETS, to_iree
from ..export.module import version_of
from ..export.onnx import to_onnx
from ..jit.stages import CompilerOptions, Lowered, Traced
from ..planning.plan import plan
from ..planning.result import SUFFIXES
from ..runtime import disk_cache
from ..types.tree import keystr, tree_flatten_with_path
from .arguments import CommandError, check_arguments, function, named, specs, values

PROGRAM = "python -m olympus"
_MOST_NAMES = 10        # of functions whose programs are kept, that `cache` shows
_MOST_LINES = 10        # of the user's that led to an error
# The StableHLO version of jaxlibs that Olympus was run with: each reads all older ones.
_STABLEHLO = {"0.10.2": (1, 17, 0), "0.11.0": (1, 18, 0), "0.11.1": (1, 19, 0),
              "0.11.2": (1, 20, 0), "0.12.0": (1, 22, 0), "0.12.0.1": (1, 22, 0)}
_ARGUMENTS = """\
An argument is a type as programs print it, f32[8,128], ~f32[] (weak) or key<fry>[2]; a number, text
in quotes, True, False or None; or a container of those: (f32[2], i32[]), [f32[2]], {w: f32[2], b:
f32[]}. name=… gives it by name. Quote it, so that the shell leaves it alone.
"""

_OPTION = re.compile(r"-(?!\d|\.\d)")      # no number


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, and return the exit status."""
    parsed = _given(arguments)
    with contextlib.ExitStack() as settings:
        if parsed.x64:
            settings.enter_context(config.enable_x64(True))
        try:
            return parsed.run(parsed) or 0
        except CommandError as error:
            print(f"{PROGRAM} {parsed.command}: {error}", file=sys.stderr)
            return 2
        except BrokenPipeError:     # of `| head`
            sys.stdout = None       # nothing is flushed at exit
            return 141
        except Exception as error:      # of the user's file or function
            source.filter_traceback(error)
            if config.traceback_filtering.value == "off":
                raise
            print(f"{PROGRAM} {parsed.command}: {_in_words(error)}", file=sys.stderr)
            return 1


def _in_words(error: BaseException) -> str:
    """An error with the user's lines that led to it, the innermost last."""
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    told = "\n".join([f"{type(error).__name__}: {text}", *getattr(error, "__notes__", ())])
    frames = [(frame.f_code.co_filename, line, frame.f_code.co_name)
              for frame, line in traceback.walk_tb(error.__traceback__)]
    if isinstance(error, SyntaxError):
        frames.append((error.filename or "", error.lineno or 0, "<module>"))
    lines = [f"  {source.short_path(file)}:{line} ({name}): {source.line_text(file, line)}"
             for file, line, name in frames
             if not (file.startswith("<frozen") or source.is_internal(file))
             and f"{source.short_path(file)}:{line}" not in told]
    if len(lines) > _MOST_LINES:
        lines[:-_MOST_LINES] = ["  …"]
    if error.__cause__ is not None:
        lines.append(f"  because of {type(error.__cause__).__name__}: {error.__cause__}")
    return "\n".join([told, *lines])


def _given(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line, parsed; options may stand between a command's arguments."""
    parser = _parser()
    parsed, rest = parser.parse_known_args(arguments)
    if rest and (any(map(_OPTION.match, rest)) or not hasattr(parsed, "arguments")):
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    if rest:
        parsed.arguments += rest
    return parsed


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROGRAM, description="Lower, compile, run and export functions of arrays.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, run: object, short: str,
                target: str = "module:function or file.py:function") -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=short, description=short[0].upper() + short[1:] + ".",
                                   epilog=_ARGUMENTS if target else None)
        made.set_defaults(run=run, x64=False)
        made.add_argument("-q", "--quiet", action="store_true",
                          help="say nothing of what is going on")
        if target:
            made.add_argument("target", help=target)
            made.add_argument("arguments", nargs="*", help="types or values of its arguments")
            made.add_argument("--static", action="append", default=[], metavar="NAME",
                              help="an argument, by name or position, that is a value of the "
                              "program")
            made.add_argument("--x64", action="store_true", help="64-bit types")
        return made

    lower = command("lower", _lower, "print the program of a function")
    lower.add_argument("--emit", choices=_EMITTED, default="stablehlo")
    lower.add_argument("--platform", help="cpu, cuda, rocm or tpu; else where arrays go")
    lower.add_argument("--debug-info", action="store_true", help="source locations in StableHLO")
    _takes_constraints(lower)
    compile_ = command("compile", _compile, "compile a function, and say what it costs")
    compile_.add_argument("--emit", choices=("summary", "hlo", "cost", "memory", "json", "html"),
                          default="summary", help="json and html: a report of --for")
    compile_.add_argument("--for", dest="goal", metavar="TARGET",
                          help="devices that need not be here: v5e:2x2, v6e:16x16, h100:8, a100:1; "
                          "prints what the program takes there")
    compile_.add_argument("--mesh", metavar="AXES",
                          help="of --for: axes with their sizes, data=4,model=2; one may go "
                          "without")
    compile_.add_argument("--search", action="store_true",
                          help="of --for: compile for all sizes of the axes, and rank them")
    compile_.add_argument("--arguments", dest="given_by", metavar="FUNCTION",
                          help="of --for: module:function or file.py:function that returns the "
                          "arguments, a tuple")
    compile_.add_argument("-o", "--output", type=Path, metavar="FILE",
                          help="of --for: a .html, .json or .txt file for the report")
    compile_.add_argument("--option", action="append", default=[], metavar="NAME=VALUE",
                          help="a compiler option")
    compile_.add_argument("--cache", metavar="DIRECTORY",
                          help="where compiled programs are kept, and looked for")
    run = command("run", _run, "run a function, or an exported artifact",
                  "module:function, file.py:function, or a file that `export` wrote")
    run.add_argument("-o", "--output", type=Path, metavar="FILE",
                     help="a .npy or .npz file for the results; else they are printed")
    run.add_argument("--repeat", type=int, default=1, metavar="N",
                     help="run it so often, and say how long a run takes")
    run.add_argument("--cache", metavar="DIRECTORY",
                     help="where compiled programs are kept, and looked for")
    out = command("export", _export, "write a function to a file that other processes run; "
                  "`export verify FILE` says who can read one",
                  "module:function or file.py:function; or `verify`")
    out.add_argument("-o", "--output", type=Path, metavar="FILE", help="the file to write")
    out.add_argument("--platform", action="append", metavar="NAME",
                     help="cpu, cuda, rocm or tpu; several times for several")
    out.add_argument("--vjp-order", type=int, default=0, metavar="N",
                     help="how many times it shall be differentiable")
    out.add_argument("--to", choices=("olympus", "iree", "onnx"), default="olympus",
                     help="iree: compiled for its runtime, by iree-compile; onnx: a model")
    out.add_argument("--target", dest="iree_target", choices=sorted(TARGETS), default="host",
                     help="what IREE compiles for")
    out.add_argument("--parameters", type=Path, metavar="FILE",
                     help="a .safetensors file for the constants of an IREE module")
    _takes_constraints(out)
    cache = command("cache", _cache, "say which compiled programs are kept, or delete some", "")
    cache.add_argument("action", nargs="?", choices=("show", "prune", "clear"), default="show",
                       help="prune: what was used longest ago; clear: all")
    cache.add_argument("--cache", metavar="DIRECTORY", help="another one than is in use")
    cache.add_argument("--to", type=float, metavar="MIB",
                       help="what may stay when it is pruned; else what the options say")
    command("env", _env, "print versions and devices", "")
    return parser


def _takes_constraints(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--constraint", action="append", default=[], metavar="TEXT",
                        help="what symbolic sizes satisfy: 'b >= 2', 'mod(b, 8) == 0'")


def _step(name: str, parsed: argparse.Namespace) -> contextlib.AbstractContextManager[None]:
    return step(name, parsed.quiet)


# Commands ----------------------------------------------------------------------------------------

def _traced(parsed: argparse.Namespace) -> Traced:
    args, kwargs = specs(parsed.arguments, getattr(parsed, "constraint", ()))
    fun = function(parsed.target, parsed.static)
    check_arguments(fun, parsed.target, args, kwargs, parsed.static)
    with _step("tracing", parsed):
        return fun.trace(*args, **kwargs)


def _lowered(parsed: argparse.Namespace, traced: Traced) -> Lowered:
    platforms = (parsed.platform,) if getattr(parsed, "platform", None) else None
    with _step("lowering", parsed):
        return traced.lower(lowering_platforms=platforms)


def _lower(parsed: argparse.Namespace) -> None:
    traced = _traced(parsed)
    print(_EMITTED[parsed.emit](parsed, traced))


def _stablehlo(parsed: argparse.Namespace, traced: Traced) -> str:
    return _lowered(parsed, traced).as_text(debug_info=parsed.debug_info).rstrip()


def _memory(parsed: argparse.Namespace, traced: Traced) -> str:
    lowered = _lowered(parsed, traced)
    with _step("compiling", parsed):
        compiled = lowered.compile()
    return _fields(compiled.memory_analysis())


_EMITTED = {
    "olympuspr": lambda parsed, traced: traced.olympuspr,
    "stablehlo": _stablehlo,
    "hlo": lambda parsed, traced: _lowered(parsed, traced).as_text("hlo").rstrip(),
    "cost": lambda parsed, traced: _lowered(parsed, traced).cost_table(),
    "memory": _memory,
}


def _fields(stats: MemoryStats | None) -> str:
    """The parts of a memory analysis that are not 0."""
    if stats is None:
        return "this backend does not say"
    sizes = [(name.removesuffix("_in_bytes"), size) for name, size in stats._asdict().items()]
    return "\n".join(f"{name.replace('_', ' ')}: {size} bytes" for name, size in sizes if size)


def _compile(parsed: argparse.Namespace) -> int:
    options = dict(map(_option, parsed.option))
    if parsed.goal is not None:
        return _planned(parsed, options)
    for name in ("mesh", "search", "given_by", "output"):
        if getattr(parsed, name):
            option = {"given_by": "arguments"}.get(name, name)
            raise CommandError(f"--{option} given without --for TARGET, which it belongs to.")
    if parsed.emit in ("json", "html"):
        raise CommandError(f"--emit {parsed.emit} given without --for TARGET; only its report has "
                           "this form.")
    with _kept_in(parsed.cache):
        traced = _traced(parsed)
        lowered = _lowered(parsed, traced)
        with _step("compiling", parsed):
            try:
                compiled = lowered.compile(options)
            except ValueError as error:     # an option
                raise CommandError(str(error)) from None
    if parsed.emit == "hlo":
        print((compiled.as_text() or "this backend does not keep it").rstrip())
    elif parsed.emit == "cost":
        print(compiled.cost_table())
    elif parsed.emit == "memory":
        print(_fields(compiled.memory_analysis()))
    else:
        costs = compiled.cost_analysis() or {}
        print(f"{traced.fun_name}: {_types(traced.in_avals)} -> {_types(traced.out_avals)}")
        print(f"flops: {costs.get('flops', 0.0):.6g}, transcendentals: "
              f"{costs.get('transcendentals', 0.0):.6g}, bytes accessed: "
              f"{costs.get('bytes accessed', 0.0):.6g}")
        print(_fields(compiled.memory_analysis()))
    return 0


def _planned(parsed: argparse.Namespace, options: CompilerOptions) -> int:
    """Report a program's memory and time on devices that need not be here; 3 if it does not fit."""
    if parsed.emit not in ("summary", "json", "html"):
        raise CommandError(f"--emit {parsed.emit} given with --for, which has json and html.")
    if parsed.output is not None:        # before minutes of compiling
        if parsed.output.suffix not in SUFFIXES:
            raise CommandError(f"-o {parsed.output} given; a file named {', '.join(SUFFIXES)} is "
                               "required.")
        if not parsed.output.parent.is_dir():
            raise CommandError(f"-o {parsed.output} given, and there is no folder "
                               f"{str(parsed.output.parent)!r}; make it first.")
    try:    # first: a forgotten target shows in the text behind --for
        parse_target(parsed.goal)
    except ValueError as error:
        raise CommandError(str(error)) from None
    args, kwargs = specs(parsed.arguments, cut=True)
    if parsed.given_by is not None:
        if args or kwargs:
            raise CommandError("--arguments given, and arguments; one of both is required.")
        giving = named(parsed.given_by)
        check_arguments(giving, parsed.given_by, [], {})
        made = giving()
        args = list(made) if type(made) is tuple else [made]
    fun = function(parsed.target, parsed.static)
    check_arguments(fun, parsed.target, args, kwargs, parsed.static)
    try:
        with _kept_in(parsed.cache):
            planned = plan(fun, *args, target=parsed.goal, mesh=_mesh(parsed.mesh),
                           search=parsed.search, compiler_options=options,
                           progress=lambda name: _step(name, parsed), **kwargs)
    except (ValueError, RuntimeError) as error:
        if str(error).startswith(("plan:", "target:", "load_plugin:", "get_topology_desc:",
                                  "compile: got compiler option")):
            raise CommandError(str(error)) from None
        raise
    if parsed.output is not None:
        planned.save(parsed.output)
        print(f"{parsed.output}: {planned!r}")
    else:
        text = {"json": planned.to_json, "html": planned.to_html}.get(parsed.emit, planned.__str__)
        print(text())
    return 0 if planned.fits else 3


def _mesh(text: str | None) -> dict[str, int | None] | None:
    if text is None:
        return None
    sizes: dict[str, int | None] = {}
    for part in text.split(","):
        name, equals, size = part.strip().partition("=")
        if not name.isidentifier() or name in sizes or equals and not size.isdigit():
            raise CommandError(f"--mesh {text} given; names of axes with their sizes, as "
                               "data=4,model=2, are required.")
        sizes[name] = int(size) if equals else None
    return sizes


def _option(text: str) -> tuple[str, str | bool | int | float]:
    name, equals, value = text.partition("=")
    if not equals:
        raise CommandError(f"--option {text} given; NAME=VALUE is required.")
    try:
        return name, json.loads(value.lower())      # a number, true or false
    except ValueError:
        return name, value


@contextlib.contextmanager
def _kept_in(directory: str | None) -> Iterator[None]:
    """Within, all that is compiled is kept in a directory."""
    if directory is None:
        yield
        return
    with (config.compilation_cache_dir(directory),
          config.persistent_cache_min_compile_time_secs(0)):
        yield
        disk_cache.flush()


def _types(tree: PyTree) -> str:
    return ", ".join(str(leaf) for _, leaf in tree_flatten_with_path(tree)[0])


def _run(parsed: argparse.Namespace) -> None:
    args, kwargs = values(parsed.arguments)
    if Path(parsed.target).is_file():
        fun = _artifact(Path(parsed.target)).call
    else:
        fun = function(parsed.target, parsed.static)
        check_arguments(fun, parsed.target, args, kwargs, parsed.static)
    times, result = [], None
    with _kept_in(parsed.cache), _step("running", parsed):
        for _ in range(max(parsed.repeat, 1)):
            start = time.perf_counter()
            result = block_until_ready(fun(*args, **kwargs))
            times.append(time.perf_counter() - start)
    arrays = {"result" + keystr(path): np.asarray(leaf)
              for path, leaf in tree_flatten_with_path(result)[0]}
    if parsed.output is None:
        for (path, leaf), text in zip(tree_flatten_with_path(result)[0], arrays.values(),
                                      strict=True):
            kind = getattr(leaf, "aval", type(leaf).__name__)
            print(f"result{keystr(path)}: {kind}\n{text}")
    elif parsed.output.suffix == ".npy":
        if len(arrays) != 1:
            raise CommandError(f"{parsed.output} given for {len(arrays)} results; a .npz file is "
                               "required.")
        whole, = arrays.values()
        np.save(parsed.output, whole)
    else:
        np.savez(parsed.output, **arrays)     # type: ignore[arg-type]
    if len(times) > 1:
        print(f"first run {times[0] * 1e3:.3f} ms, others {statistics.median(times[1:]) * 1e3:.3f} "
              "ms (median)", file=sys.stderr)


def _artifact(path: Path, verify: bool = False) -> Exported:
    try:
        return deserialize(path.read_bytes(), verify=verify)
    except FileNotFoundError:
        raise CommandError(f"no file {str(path)!r} is found.") from None
    except ValueError as error:
        raise CommandError(f"{path}: {error}") from None


def _export(parsed: argparse.Namespace) -> None:
    if parsed.target == "verify":
        for file in parsed.arguments:
            _verify(Path(file))
        return
    if parsed.output is None:
        raise CommandError("-o FILE is required: the file to write.")
    args, kwargs = specs(parsed.arguments, parsed.constraint)
    fun = function(parsed.target, parsed.static)
    check_arguments(fun, parsed.target, args, kwargs, parsed.static)
    with _step("exporting", parsed):
        exported = export(fun, platforms=parsed.platform)(*args, **kwargs)
    if parsed.to != "olympus":
        with _step("compiling", parsed):
            written = _written(parsed, exported)
        for name, kind in written.items():
            print(f"{parsed.output}: {name}: {kind}")
        return
    artifact = exported.serialize(vjp_order=parsed.vjp_order)
    with replacing(parsed.output) as new:
        new.write_bytes(artifact)
    print(f"{parsed.output}: {exported.fun_name}, {len(artifact)} bytes, for "
          f"{', '.join(exported.platforms)}")


def _written(parsed: argparse.Namespace, exported: Exported) -> dict[str, str]:
    """Write an export in another format; the types of the file's arrays, by name."""
    try:
        if parsed.to == "onnx":
            return to_onnx(exported, parsed.output)
        return to_iree(exported, parsed.output, target=parsed.iree_target,
                       parameters=parsed.parameters)
    except (ValueError, RuntimeError, FileNotFoundError) as error:     # missing in the format
        raise CommandError(str(error)) from None


def _verify(path: Path) -> None:
    """Describe an artifact, and the jaxlibs that read it; CommandError for anything else."""
    exported = _artifact(path, verify=True)
    version = version_of(exported.mlir_module_serialized)
    readers = [name for name, newest in _STABLEHLO.items() if version <= newest]
    print(f"{path}: {exported.fun_name}: {_types(exported.in_avals)} -> "
          f"{_types(exported.out_avals)}")
    print(f"platforms: {', '.join(exported.platforms)}; devices: {exported.nr_devices}; "
          f"differentiable: {'yes' if exported.has_vjp() else 'no'}")
    print(f"StableHLO {'.'.join(map(str, version))}: read by jaxlib {', '.join(readers)} and later")


def _cache(parsed: argparse.Namespace) -> None:
    path, most = parsed.cache or config.compilation_cache_dir.value, (
        config.compilation_cache_max_size.value)
    if not path:
        raise CommandError("no directory is set; --cache DIRECTORY is required.")
    if parsed.action == "clear":
        most = 0
    elif parsed.to is not None:
        most = max(int(parsed.to * 2**20), 0)
    directory = disk_cache.Directory(path, most)
    entries: list[disk_cache.Entry] = []
    try:
        entries = before = directory.entries()
        if parsed.action != "show":
            directory.prune()
            entries = directory.entries()
            print(f"{len(before) - len(entries)} entries are deleted")
    except FileNotFoundError:       # nothing was kept there yet
        pass
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}.") from None
    print(f"{path}: {_size(entries)}")
    if not parsed.cache and disk_cache.current(asked=True) is None:
        print("it is not in use")
    by_name: dict[str, list[disk_cache.Entry]] = {}
    for entry in entries:
        by_name.setdefault(entry.key.rpartition("-")[0], []).append(entry)
    for name in sorted(by_name, key=lambda name: -_bytes(by_name[name]))[:_MOST_NAMES]:
        print(f"{name}: {_size(by_name[name])}")


def _bytes(entries: list[disk_cache.Entry]) -> int:
    return sum(entry.bytes for entry in entries)


def _size(entries: list[disk_cache.Entry]) -> str:
    return f"{len(entries)} entries, {_bytes(entries) / 2**20:.2f} MiB"


def _env(parsed: argparse.Namespace) -> None:
    print_environment_info()
    for name, value in sorted(config.changed().items()):
        print(f"{name}: {value!r}")
