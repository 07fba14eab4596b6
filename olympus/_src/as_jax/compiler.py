"""The function that compiles, as Chex wraps it, to restrict it to some platforms."""

from __future__ import annotations

import sys

from ..runtime.compile import before_compiling


def backend_compile_and_load(backend: object, *args: object, **options: object) -> None:
    """Called with the client before each compilation, which is elsewhere; a wrapper may raise."""


def _ask(backend: object) -> None:
    module = sys.modules.get("jax._src.compiler")
    if module is not None:
        module.backend_compile_and_load(backend)


before_compiling.append(_ask)
