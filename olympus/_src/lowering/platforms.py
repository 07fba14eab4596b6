"""Rules by platform. In a module for several, an equation may be lowered for each of them."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, NoReturn

from ..base.util import lazy_imports
from .context import ModuleContext

with lazy_imports(__name__):       # for primitives that have any
    from . import kernels as _kernels


class PlatformOpen(Exception):
    """A rule asks for the platform in a module of several: it is to be run for each of them."""


def rule_of(module: ModuleContext, prim: Any) -> Callable[..., Any]:
    """How equations of a primitive are lowered here."""
    if prim.platform_rules and module.platform is None:
        return _still_open
    # Rules that one lowering is given come before those that all have.
    found = module.rules.get(prim, prim.platform_rules.get(module.platform))
    if found is None and prim.kernels is not None and (
            "lower" not in vars(prim)):     # somebody's rule in the place of ours
        if module.takes_kernels:
            return _kernels.with_kernels(prim)
        if prim.by_parts and module.takes_kernels_on_parts:
            return _kernels.with_kernels_on_parts(prim)
    return found or prim.lower


def _still_open(*args: object, **params: Hashable) -> NoReturn:
    raise PlatformOpen
