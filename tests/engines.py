"""What engines compute from exports: IREE's runtime and ONNX Runtime, where they are installed.

tests/test_deploy.py and tools/engine_rows.py run models by these.
"""

import functools
import importlib
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

Call: TypeAlias = Callable[..., list[np.ndarray]]
IREE = shutil.which("iree-run-module", path=str(Path(sys.executable).parent)) or shutil.which(
    "iree-run-module")


def run_iree(path: Path, name: str, args: Sequence[np.ndarray], outs: int, *flags: str
             ) -> list[np.ndarray]:
    """What a function of a compiled module returns, by IREE's own program; files lie beside it."""
    given = [path.with_name(f"in{i}.npy") for i in range(len(args))]
    names = [path.with_name(f"out{i}.npy") for i in range(outs)]
    for file, x in zip(given, args, strict=True):
        np.save(file, np.asarray(x, order="C"))
    done = subprocess.run(
        [IREE, f"--module={path}", "--device=local-task", f"--function={name}", *flags,
         *(f"--input=@{file}" for file in given), *(f"--output=@{file}" for file in names)],
        capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        raise RuntimeError(f"iree-run-module: {done.stderr[:300]}")
    return [np.load(file) for file in names]


def loaded_iree(path: Path, names: Iterable[str]) -> dict[str, Call]:
    """Functions of a compiled module, by IREE's runtime in this process."""
    runtime = importlib.import_module("iree.runtime")
    context = runtime.SystemContext(config=_iree_config())
    module = runtime.VmModule.copy_buffer(context.instance, path.read_bytes())
    context.add_vm_module(module)

    def called(name: str) -> Call:
        function = context.modules[module.name][name]

        def call(*args: np.ndarray) -> list[np.ndarray]:
            found = function(*[np.asarray(x, order="C") for x in args])
            return [np.asarray(x) for x in (found if isinstance(found, (tuple, list)) else [found])]

        return call

    return {name: called(name) for name in names}


@functools.cache
def _iree_config() -> Any:
    return importlib.import_module("iree.runtime").Config("local-task")


def check_onnx(path: Path) -> None:
    """ONNX's own checker passes a model, and its nodes read all of its constants."""
    onnx = importlib.import_module("onnx")
    onnx.checker.check_model(str(path), full_check=True)
    graphs = list(_graphs(onnx.load(path, load_external_data=False).graph))
    read = {name for graph in graphs for node in graph.node for name in node.input}
    unread = {x.name for graph in graphs for x in graph.initializer} - read
    if unread:
        raise AssertionError(f"no node reads the constants {sorted(unread)}")


def _graphs(graph: Any) -> Iterator[Any]:
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _graphs(attribute.g)


def run_onnx(path: Path, *args: np.ndarray) -> list[np.ndarray]:
    """What a model returns, by ONNX Runtime."""
    return loaded_onnx(path)(*args)


def loaded_onnx(path: Path) -> Call:
    """The function that a model is, by ONNX Runtime."""
    runtime = importlib.import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    session = runtime.InferenceSession(path, options)
    names = [x.name for x in session.get_inputs()]
    return lambda *args: session.run(None, dict(zip(names, args, strict=True)))
