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
    given = _given(arguments)
    with contextlib.ExitStack() as settings:
        if given.x64:
            settings.enter_context(config.enable_x64(True))
        try:
            return given.run(given) or 0
        except CommandError as error:
            print(f"{PROGRAM} {given.command}: {error}", file=sys.stderr)
            return 2
        except BrokenPipeError:     # of `| head`
            sys.stdout = None       # nothing is flushed at exit
            return 141
        except Exception as error:      # of the user's file or function
            source.filter_traceback(error)
            if config.traceback_filtering.value == "off":
                raise
            print(f"{PROGRAM} {given.command}: {_in_words(error)}", file=sys.stderr)
            return 1


def _in_words(error: BaseException) -> str:
    """An error with the user's lines that led to it, the innermost last."""
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    told = "\n".join([f"{type(error).__name__}: {text}", *getattr(error, "__notes__", ())])
    places = [(frame.f_code.co_filename, line, frame.f_code.co_name)
              for frame, line in traceback.walk_tb(error.__traceback__)]
    if isinstance(error, SyntaxError):
        places.append((error.filename or "", error.lineno or 0, "<module>"))
    lines = [f"  {source.short_path(file)}:{line} ({name}): {source.line_text(file, line)}"
             for file, line, name in places
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
    given, rest = parser.parse_known_args(arguments)
    if rest and (any(map(_OPTION.match, rest)) or not hasattr(given, "arguments")):
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    if rest:
        given.arguments += rest
    return given


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


def _step(name: str, given: argparse.Namespace) -> contextlib.AbstractContextManager[None]:
    return step(name, given.quiet)


# Commands ----------------------------------------------------------------------------------------

def _traced(given: argparse.Namespace) -> Traced:
    args, kwargs = specs(given.arguments, getattr(given, "constraint", ()))
    fun = function(given.target, given.static)
    check_arguments(fun, given.target, args, kwargs, given.static)
    with _step("tracing", given):
        return fun.trace(*args, **kwargs)


def _lowered(given: argparse.Namespace, traced: Traced) -> Lowered:
    platforms = (given.platform,) if getattr(given, "platform", None) else None
    with _step("lowering", given):
        return traced.lower(lowering_platforms=platforms)


def _lower(given: argparse.Namespace) -> None:
    traced = _traced(given)
    print(_EMITTED[given.emit](given, traced))


def _stablehlo(given: argparse.Namespace, traced: Traced) -> str:
    return _lowered(given, traced).as_text(debug_info=given.debug_info).rstrip()


def _memory(given: argparse.Namespace, traced: Traced) -> str:
    lowered = _lowered(given, traced)
    with _step("compiling", given):
        compiled = lowered.compile()
    return _fields(compiled.memory_analysis())


_EMITTED = {
    "olympuspr": lambda given, traced: traced.olympuspr,
    "stablehlo": _stablehlo,
    "hlo": lambda given, traced: _lowered(given, traced).as_text("hlo").rstrip(),
    "cost": lambda given, traced: _lowered(given, traced).cost_table(),
    "memory": _memory,
}


def _fields(stats: MemoryStats | None) -> str:
    """The parts of a memory analysis that are not 0."""
    if stats is None:
        return "this backend does not say"
    sizes = [(name.removesuffix("_in_bytes"), size) for name, size in stats._asdict().items()]
    return "\n".join(f"{name.replace('_', ' ')}: {size} bytes" for name, size in sizes if size)


def _compile(given: argparse.Namespace) -> int:
    options = dict(map(_option, given.option))
    if given.goal is not None:
        return _planned(given, options)
    for name in ("mesh", "search", "given_by", "output"):
        if getattr(given, name):
            option = {"given_by": "arguments"}.get(name, name)
            raise CommandError(f"--{option} given without --for TARGET, which it belongs to.")
    if given.emit in ("json", "html"):
        raise CommandError(f"--emit {given.emit} given without --for TARGET; only its report has "
                           "this form.")
    with _kept_in(given.cache):
        traced = _traced(given)
        lowered = _lowered(given, traced)
        with _step("compiling", given):
            try:
                compiled = lowered.compile(options)
            except ValueError as error:     # an option
                raise CommandError(str(error)) from None
    if given.emit == "hlo":
        print((compiled.as_text() or "this backend does not keep it").rstrip())
    elif given.emit == "cost":
        print(compiled.cost_table())
    elif given.emit == "memory":
        print(_fields(compiled.memory_analysis()))
    else:
        costs = compiled.cost_analysis() or {}
        print(f"{traced.fun_name}: {_types(traced.in_avals)} -> {_types(traced.out_avals)}")
        print(f"flops: {costs.get('flops', 0.0):.6g}, transcendentals: "
              f"{costs.get('transcendentals', 0.0):.6g}, bytes accessed: "
              f"{costs.get('bytes accessed', 0.0):.6g}")
        print(_fields(compiled.memory_analysis()))
    return 0


def _planned(given: argparse.Namespace, options: CompilerOptions) -> int:
    """Report a program's memory and time on devices that need not be here; 3 if it does not fit."""
    if given.emit not in ("summary", "json", "html"):
        raise CommandError(f"--emit {given.emit} given with --for, which has json and html.")
    if given.output is not None:        # before minutes of compiling
        if given.output.suffix not in SUFFIXES:
            raise CommandError(f"-o {given.output} given; a file named {', '.join(SUFFIXES)} is "
                               "required.")
        if not given.output.parent.is_dir():
            raise CommandError(f"-o {given.output} given, and there is no folder "
                               f"{str(given.output.parent)!r}; make it first.")
    try:    # first: a forgotten target shows in the text behind --for
        parse_target(given.goal)
    except ValueError as error:
        raise CommandError(str(error)) from None
    args, kwargs = specs(given.arguments, cut=True)
    if given.given_by is not None:
        if args or kwargs:
            raise CommandError("--arguments given, and arguments; one of both is required.")
        giving = named(given.given_by)
        check_arguments(giving, given.given_by, [], {})
        made = giving()
        args = list(made) if type(made) is tuple else [made]
    fun = function(given.target, given.static)
    check_arguments(fun, given.target, args, kwargs, given.static)
    try:
        with _kept_in(given.cache):
            planned = plan(fun, *args, target=given.goal, mesh=_mesh(given.mesh),
                           search=given.search, compiler_options=options,
                           progress=lambda name: _step(name, given), **kwargs)
    except (ValueError, RuntimeError) as error:
        if str(error).startswith(("plan:", "target:", "load_plugin:", "get_topology_desc:",
                                  "compile: got compiler option")):
            raise CommandError(str(error)) from None
        raise
    if given.output is not None:
        planned.save(given.output)
        print(f"{given.output}: {planned!r}")
    else:
        print({"json": planned.to_json, "html": planned.to_html}.get(given.emit, planned.__str__)())
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


def _run(given: argparse.Namespace) -> None:
    args, kwargs = values(given.arguments)
    if Path(given.target).is_file():
        fun = _artifact(Path(given.target)).call
    else:
        fun = function(given.target, given.static)
        check_arguments(fun, given.target, args, kwargs, given.static)
    times, result = [], None
    with _kept_in(given.cache), _step("running", given):
        for _ in range(max(given.repeat, 1)):
            start = time.perf_counter()
            result = block_until_ready(fun(*args, **kwargs))
            times.append(time.perf_counter() - start)
    arrays = {"result" + keystr(path): np.asarray(leaf)
              for path, leaf in tree_flatten_with_path(result)[0]}
    if given.output is None:
        for (path, leaf), text in zip(tree_flatten_with_path(result)[0], arrays.values(),
                                      strict=True):
            kind = getattr(leaf, "aval", type(leaf).__name__)
            print(f"result{keystr(path)}: {kind}\n{text}")
    elif given.output.suffix == ".npy":
        if len(arrays) != 1:
            raise CommandError(f"{given.output} given for {len(arrays)} results; a .npz file is "
                               "required.")
        whole, = arrays.values()
        np.save(given.output, whole)
    else:
        np.savez(given.output, **arrays)     # type: ignore[arg-type]
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


def _export(given: argparse.Namespace) -> None:
    if given.target == "verify":
        for file in given.arguments:
            _verify(Path(file))
        return
    if given.output is None:
        raise CommandError("-o FILE is required: the file to write.")
    args, kwargs = specs(given.arguments, given.constraint)
    fun = function(given.target, given.static)
    check_arguments(fun, given.target, args, kwargs, given.static)
    with _step("exporting", given):
        exported = export(fun, platforms=given.platform)(*args, **kwargs)
    if given.to != "olympus":
        with _step("compiling", given):
            written = _written(given, exported)
        for name, kind in written.items():
            print(f"{given.output}: {name}: {kind}")
        return
    artifact = exported.serialize(vjp_order=given.vjp_order)
    with replacing(given.output) as new:
        new.write_bytes(artifact)
    print(f"{given.output}: {exported.fun_name}, {len(artifact)} bytes, for "
          f"{', '.join(exported.platforms)}")


def _written(given: argparse.Namespace, exported: Exported) -> dict[str, str]:
    """Write an export in another format; the types of the file's arrays, by name."""
    try:
        if given.to == "onnx":
            return to_onnx(exported, given.output)
        return to_iree(exported, given.output, target=given.iree_target,
                       parameters=given.parameters)
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


def _cache(given: argparse.Namespace) -> None:
    path, most = given.cache or config.compilation_cache_dir.value, (
        config.compilation_cache_max_size.value)
    if not path:
        raise CommandError("no directory is set; --cache DIRECTORY is required.")
    if given.action == "clear":
        most = 0
    elif given.to is not None:
        most = max(int(given.to * 2**20), 0)
    directory = disk_cache.Directory(path, most)
    entries: list[disk_cache.Entry] = []
    try:
        entries = before = directory.entries()
        if given.action != "show":
            directory.prune()
            entries = directory.entries()
            print(f"{len(before) - len(entries)} entries are deleted")
    except FileNotFoundError:       # nothing was kept there yet
        pass
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}.") from None
    print(f"{path}: {_size(entries)}")
    if not given.cache and disk_cache.current(asked=True) is None:
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


def _env(given: argparse.Namespace) -> None:
    print_environment_info()
    for name, value in sorted(config.changed().items()):
        print(f"{name}: {value!r}")
