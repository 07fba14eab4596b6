"""The systems that are compared, behind one set of names, so that most cases are written once."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from importlib import import_module
from typing import Any

from .cases import JIT, NUMBA, NUMPY, SCIPY, TORCH


class System:
    """A library with JAX's API. Imported when it is first used; its names are attributes."""

    family = JIT

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(self.module, name)

    @cached_property
    def module(self) -> Any:
        return import_module(self.name)

    @cached_property
    def np(self) -> Any:
        return import_module(f"{self.name}.numpy")

    @property
    def version(self) -> str:
        return self.module.__version__

    def array(self, x: Any) -> Any:
        return self.np.asarray(x)

    def wait(self, x: Any) -> Any:
        return self.block_until_ready(x)

    def leaves(self, x: Any) -> list[Any]:
        return self.tree.leaves(x)

    def trace(self, fun: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """What `jit(fun).trace` gives, with its program made and not only promised."""
        traced = self.jit(fun).trace(*args)
        getattr(traced, "jaxpr" if self.name == "jax" else "olympuspr")
        return traced


class NumPy(System):
    """NumPy: what is compiled elsewhere is run as it is."""

    family = NUMPY

    @cached_property
    def np(self) -> Any:
        return import_module("numpy")

    def jit(self, fun: Callable[..., Any]) -> Callable[..., Any]:
        return fun

    def wait(self, x: Any) -> Any:
        return x

    def leaves(self, x: Any) -> list[Any]:
        return list(x) if isinstance(x, tuple | list) else [x]


class SciPy(NumPy):
    """SciPy's functions of NumPy's arrays."""

    family = SCIPY


class Numba(NumPy):
    """Loops that Numba compiles."""

    family = NUMBA

    def jit(self, fun: Callable[..., Any]) -> Callable[..., Any]:
        return self.njit(fun)


class Torch(NumPy):
    """PyTorch, eager; its functions have NumPy's names in what the cases use."""

    family = TORCH

    @cached_property
    def np(self) -> Any:
        return self.module

    def array(self, x: Any) -> Any:
        return self.module.tensor(x)

    def __getattr__(self, name: str) -> Any:    # grad, vmap, jvp … are in torch.func
        functions = self.module.func
        return getattr(functions if hasattr(functions, name) else self.module, name)


def system(name: str) -> System:
    """The system of a name, not yet imported."""
    return {"numpy": NumPy, "torch": Torch, "scipy": SciPy, "numba": Numba}.get(name, System)(name)
