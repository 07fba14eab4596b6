"""The distribution `jax` as `importlib.metadata` sees it: the release whose API is meant.

Apart from the finder, since it loads the standard library's reader of metadata.
"""

from collections.abc import Iterator
from importlib.metadata import Distribution, DistributionFinder

from .release import __version__


class Jax(Distribution):
    """The distribution `jax` as this process has it."""

    def read_text(self, filename: str) -> str | None:
        if filename != "METADATA":
            return None
        return (f"Metadata-Version: 2.1\nName: jax\nVersion: {__version__}\n"
                "Summary: Olympus under JAX's name\n")

    def locate_file(self, path: object) -> object:
        raise FileNotFoundError(f"{path}: the distribution jax has no files; Olympus answers for "
                                "it in this process.")


def distributions(context: DistributionFinder.Context) -> Iterator[Distribution]:
    """The distribution, if it is asked for."""
    if context.name is None or context.name.lower() == "jax":
        yield Jax()
