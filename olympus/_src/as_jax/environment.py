"""Variables of the environment that JAX reads, as Olympus reads them."""

import os

from ..base.config import read_environment
from . import spellings


def take_over() -> None:
    """Let each `JAX_…` be the `OLYMPUS_…` of the same name, unless that is set itself."""
    theirs = {spellings.ours(name): value for name, value in os.environ.items()
              if name.startswith("JAX_")}
    new = {name: value for name, value in theirs.items() if name not in os.environ}
    os.environ.update(new)
    read_environment(new)
