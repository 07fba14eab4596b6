"""References: mutable arrays that every transformation understands.

`new_ref` makes one; `ref[index]` reads, `ref[index] = x` writes. See the page "References".
"""

from ._src.base.util import publish as _publish
from ._src.core.cells import Ref
from ._src.numpy.refs import (
    addupdate, empty_ref, free_ref, freeze, get, new_ref, set, swap,
)
from ._src.types.refs import RefAval as AbstractRef

__all__ = ["AbstractRef", "Ref", "addupdate", "empty_ref", "free_ref", "freeze", "get", "new_ref",
           "set", "swap"]

_publish(__name__)
