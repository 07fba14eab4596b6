"""Answers `import jax…`: modules that look each name up in an adapter, then in Olympus.

The module `jax.a.b` has the names of its adapter, if there is one, then `olympus.a.b`'s, respelled.
A name is looked up once; then the module has it, and reading it costs what reading a module costs.
What begins with an underscore is answered by adapters only, but for the names of the array API
standard.

`import jax` puts into `sys.modules` what JAX puts there (`PUBLIC`): libraries look there for
`jax.core` or `jax.numpy`. Ours load when a name of theirs is first read.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import types
from collections.abc import Iterator
from functools import cached_property
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING, Any

from ..base import lib
from ..base.hints import hint_for
from ..base.util import lazy_imports
from . import adapters, spellings
from .keywords import respelled
from .stand_ins import asker, stand_in

if TYPE_CHECKING:
    from importlib.metadata import DistributionFinder

# The public modules that `import jax` of 0.10.2 imports, below `jax`.
PUBLIC = (
    "api_util core custom_batching custom_derivatives debug distributed dlpack dtypes errors "
    "experimental experimental.compilation_cache experimental.compilation_cache.compilation_cache "
    "export ffi image interpreters interpreters.ad interpreters.batching interpreters.mlir "
    "interpreters.partial_eval interpreters.pxla interpreters.xla lax lax.linalg lib monitoring nn "
    "nn.initializers numpy numpy.fft numpy.linalg ops profiler random ref scipy sharding stages "
    "tree tree_util typing version")

_SOURCES = __name__.rsplit(".", 2)[0]

with lazy_imports(__name__):
    import difflib

    from . import metadata as _metadata


class MissingName(AttributeError):
    """A name that neither JAX's spelling nor ours has. The text is made when it is read: libraries
    ask for names to see whether they are there."""

    def __init__(self, names: Names, attribute: str) -> None:
        super().__init__(name=attribute, obj=sys.modules.get(names.name))
        self.names, self.attribute, self.asked = names, attribute, asker()

    def __str__(self) -> str:
        return self.names.nothing_called(self.attribute, self.asked)


class Names:
    """Where the names of one module of JAX are found: its adapter, and `public`, ours of that name.

    Modules of ours are imported when the first name is asked for.
    """

    def __init__(self, name: str, adapter: adapters.Adapter, public: str) -> None:
        self.name, self.adapter, self.public = name, adapter, public

    @cached_property
    def own(self) -> dict[str, tuple[str, str]]:
        """The adapter's names: a module of ours and the name there."""
        return {theirs: (f"{_SOURCES}.{module}", ours)
                for theirs, module, ours in self.adapter.places()}

    @cached_property
    def homes(self) -> list[types.ModuleType]:
        """The public modules of ours, the one of that name last."""
        homes = f"{self.adapter.homes} {self.public}".split()
        modules = [importlib.import_module(home) for home in homes]
        if isinstance(module := sys.modules.get(self.name), Unread):
            object.__setattr__(module, "__class__", types.ModuleType)   # which is read faster
            vars(module)["__doc__"] = modules[-1].__doc__ if modules else self.about
        return modules

    @property
    def about(self) -> str:
        """The docstring where no module of ours has one."""
        return f"`{self.name}`: {self.adapter.about}"

    def find(self, attribute: str) -> object:
        """The object of that name; AttributeError if there is none."""
        if attribute == "__all__":
            return self.listed()
        if attribute in self.own:
            module, ours = self.own[attribute]
            return self.keep(attribute, getattr(importlib.import_module(module), ours))
        if attribute.startswith("__") and not attribute.startswith("__array_"):
            raise AttributeError(attribute)
        if attribute[0] != "_" or attribute.startswith("__array_"):
            for home, spelt in self.places(attribute):
                value = getattr(home, spelt, self)
                if isinstance(value, types.ModuleType) and value.__name__.startswith("olympus."):
                    break       # imported under its name in JAX
                if value is not self:
                    return self.keep(attribute, respelled(value))
        if attribute in self.adapter.stand_ins.split():
            return self.keep(attribute, stand_in(self.name, attribute, self.adapter.lacks))
        try:
            return importlib.import_module(f"{self.name}.{attribute}")
        except ModuleNotFoundError:
            raise MissingName(self, attribute) from None

    def keep(self, attribute: str, value: object) -> object:
        """Let the module itself have the name from now on."""
        vars(sys.modules[self.name])[attribute] = value
        return value

    def places(self, attribute: str) -> Iterator[tuple[Any, str]]:
        """Each module and name of ours that may be meant."""
        for spelt in dict.fromkeys((spellings.ours(attribute), attribute)):
            for home in self.homes:
                yield home, spelt

    def listed(self) -> list[str]:
        """All names of the module, in JAX's spelling."""
        public = {spellings.theirs(n) for home in self.homes
                  for n in getattr(home, "__all__", None) or dir(home) if n[0] != "_"}
        return sorted(public.union(self.own))

    def nothing_called(self, attribute: str, where: str) -> str:
        """The message that says so."""
        also = "".join(f", nor has {home.__name__!r} {spelt!r}" for home, spelt in [
            (home, spellings.ours(attribute)) for home in self.homes])
        hints = [known_hint for home, spelt in self.places(attribute)
                 if (known_hint := hint_for(home.__name__, spelt))]
        near = difflib.get_close_matches(attribute, self.listed(), n=3)
        hint = (spellings.theirs(hints[0]) if hints else f"nearest names: {', '.join(near)}" if near
                else f"dir({self.name}) lists what it has")
        return (f"module {self.name!r} has no attribute {attribute!r}{also}; {hint}; "
                f"asked for at {where}.")


class Unread(types.ModuleType):
    """A module until a name of it, or its docstring, is read."""

    @property
    def __doc__(self) -> str | None:
        names = names_of(self)
        return (names.homes[-1].__doc__ if names.homes else names.about) if names else None


def names_of(module: types.ModuleType) -> Names | None:
    """Where a module of JAX in this process has its names from; None for other modules."""
    return getattr(module.__spec__, "loader_state", None)


def _found(name: str) -> ModuleSpec | None:
    """The spec of a module; None if there is none."""
    try:
        return importlib.util.find_spec(name)
    except ModuleNotFoundError as error:
        if not f"{name}.".startswith(f"{error.name}."):
            raise       # of something else, which the module above imports
        return None


class Finder:
    """Finds and loads modules called `jax` and `jax.…`, and answers for the distribution."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """The spec of a module of JAX; ModuleNotFoundError if neither library has it."""
        if name != "jax" and not name.startswith("jax."):
            return None
        below = name[3:]
        private = any(part.startswith("_") for part in below.split("."))
        adapter = adapters.adapter_of(below[1:])
        public = None if private else _found("olympus" + spellings.ours(below))
        if adapter is None and public is None:
            raise self.missing(name)
        return self.spec(name, adapter, public)

    def spec(self, name: str, adapter: adapters.Adapter | None, public: ModuleSpec | None
             ) -> ModuleSpec:
        """The spec of the module `name`, of an adapter and a public module of ours."""
        loader: Any = self
        names = Names(name, adapter or adapters.NOTHING, public.name if public else "")
        return ModuleSpec(name, loader, origin=public.origin if public else adapters.__file__,
                          is_package=True, loader_state=names)

    def missing(self, name: str) -> ModuleNotFoundError:
        """The error of a module, or a name that a module is asked for, that nobody has."""
        parent, _, last = name.rpartition(".")
        names = names_of(sys.modules[parent]) if parent in sys.modules else None
        text = names.nothing_called(last, asker()) if names else f"No module named {name!r}"
        # `from jax import name` shows its own text unless the error names another module.
        return ModuleNotFoundError(text, name=spellings.ours(name))

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        """A module that asks `Names` for names that it does not have."""
        module, names = Unread(spec.name), spec.loader_state
        vars(module).update(__getattr__=names.find, __dir__=names.listed)
        if spec.origin is not None:
            module.__file__ = spec.origin
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        """Nothing: names are looked up when they are asked for. `jax` brings its public modules."""
        if module.__name__ == "jax":
            for below in PUBLIC.split():
                self.bring(f"jax.{below}", below)

    def bring(self, name: str, below: str) -> None:
        """Put a module into `sys.modules`, if ours has one; nothing of ours is imported for it."""
        adapter, above = adapters.adapter_of(below), below.rpartition(".")[0]
        # To look below a module of ours would import that.
        public = ModuleSpec(f"olympus.{below}", None) if above else _found(f"olympus.{below}")
        if name not in sys.modules and (adapter or public):
            sys.modules[name] = importlib.util.module_from_spec(self.spec(name, adapter, public))

    def find_distributions(self, context: DistributionFinder.Context) -> Iterator[Any]:
        """The distributions called `jax` for `importlib.metadata`."""
        return _metadata.distributions(context)


def install() -> None:
    """Let this process import Olympus under JAX's name.

    Raises ImportError if JAX itself is imported already.
    """
    if any(isinstance(finder, Finder) for finder in sys.meta_path):
        return
    if "jax" in sys.modules:
        raise ImportError(
            f"olympus.as_jax: JAX itself is imported already, by {_importer(sys.modules['jax'])}; "
            "import olympus.as_jax before whatever imports jax, or run the program by "
            "`python -m olympus.as_jax PROGRAM`.")
    lib.answer_for_jax()
    finder: Any = Finder()
    sys.meta_path.insert(0, finder)


def _importer(jax: types.ModuleType) -> str:
    """The module that has imported JAX: of those that name it the one that began first."""
    for name, module in list(sys.modules.items()):
        if name != "jax" and not name.startswith(("jax.", "jaxlib", "olympus")) and any(
                value is jax or getattr(value, "__module__", None) in sys.modules
                and str(value.__module__).startswith("jax.")
                for value in list(vars(module).values())):
            return f"{name} ({getattr(module, '__file__', None) or 'the program'})"
    return "a module that is gone"
