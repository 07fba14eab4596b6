"""The Python processes that this one starts import Olympus under JAX's name, too.

They are told by two variables: OLYMPUS_AS_JAX is their environment (`sys.prefix`, so that another
Python installation is left alone), and PYTHONPATH begins with `children_path`, where Python finds a
`sitecustomize` that waits for the first import of jax. A child that is started with `-E` or `-I`,
or with an environment of its own, sees neither.
"""

import os
import sys

VARIABLE = "OLYMPUS_AS_JAX"
_HOOK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "children_path")


def inherit() -> None:
    """Let child processes have what this one has."""
    os.environ[VARIABLE] = sys.prefix
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if _HOOK not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [_HOOK, *paths]))
