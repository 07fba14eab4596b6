#!/usr/bin/env python3
"""Write tests/data/api.json, the names and signatures that tests/test_api_surface.py holds us to.

    python tools/freeze_api.py public_api.json ranked_names.txt > tests/data/api.json

The two inputs are the project's survey of JAX 0.10.2 and 0.12.0.1 and of 44 libraries' uses. The
output has a line for each name: its kind and each version's parameters [name, kind, default].
"""

import json
import sys

NEEDED = (
    "olympus",
    "olympus.numpy",
    "olympus.lax",
    "olympus.random",
    "olympus.nn",
    "olympus.tree",
    "olympus.tree_util",
)
MODULES = (
    *NEEDED,
    "olympus.ad_checkpoint",
    "olympus.api_util",
    "olympus.core",
    "olympus.custom_batching",
    "olympus.custom_derivatives",
    "olympus.debug",
    "olympus.dlpack",
    "olympus.dtypes",
    "olympus.errors",
    "olympus.experimental",
    "olympus.experimental.buffer_callback",
    "olympus.experimental.layout",
    "olympus.extend",
    "olympus.extend.core",
    "olympus.extend.linear_util",
    "olympus.ffi",
    "olympus.flatten_util",
    "olympus.interpreters.ad",
    "olympus.interpreters.batching",
    "olympus.interpreters.mlir",
    "olympus.interpreters.partial_eval",
    "olympus.interpreters.xla",
    "olympus.lax.linalg",
    "olympus.memory",
    "olympus.nn.initializers",
    "olympus.numpy.fft",
    "olympus.numpy.linalg",
    "olympus.sharding",
    "olympus.stages",
    "olympus.typing",
    "olympus.version",
    "olympus.example_libraries.optimizers",
    "olympus.example_libraries.stax",
    "olympus.experimental.jet",
    "olympus.experimental.ode",
    "olympus.extend.random",
    "olympus.image",
    "olympus.ops",
    "olympus.test_util",
    "olympus.experimental.fused",
    "olympus.experimental.overlap",
    "olympus.experimental.profiler",
    "olympus.experimental.rnn",
    "olympus.experimental.roofline",
    "olympus.extend.backend",
    "olympus.extend.sharding",
    "olympus.extend.source_info_util",
    "olympus.lib",
    "olympus.monitoring",
    "olympus.profiler",
)
PACKAGES = ("olympus.scipy.",)  # with all their modules
FIRST = 301  # the most used names, which cover 95 % of all uses
# These come with sharding.
LATER = {"pmap", "process_index", "process_count", "with_sharding_constraint"}


def needed(path):
    """The names of this version's first breadth, most used first."""
    with open(path, encoding="utf-8") as file:
        rows = [line.split("\t") for line in file if not line.startswith("#")]
    names = [row[1] for row in rows if int(row[0]) <= FIRST]
    splits = [name.rpartition(".") for name in names]
    return [".".join((m, n)) for m, _, n in splits if m in NEEDED and n not in LATER]


def main(api_path, ranks_path):
    """Print the frozen file."""
    with open(api_path, encoding="utf-8") as file:
        modules = json.load(file)["modules"]
    print('{"needed":\n' + json.dumps(needed(ranks_path)) + ",")
    blocks = []
    for module in (*MODULES, *(m for m in modules if m.startswith(PACKAGES))):
        lines = []
        for name, entry in sorted(modules[module]["names"].items()):
            variants = [v for k, v in entry.items() if k.startswith("params") and type(v) is list]
            lines.append(f"{json.dumps(name)}: {json.dumps([entry['kind'], *variants])}")
        blocks.append(f"{json.dumps(module)}: {{\n" + ",\n".join(lines) + "}")
    print('"names": {\n' + ",\n".join(blocks) + "}}")


if __name__ == "__main__":
    main(*sys.argv[1:])
