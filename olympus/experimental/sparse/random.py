"""Random sparse arrays: names only."""

from ..._src.base.util import publish as _publish
from ..._src.sparse.making import random_bcoo

__all__ = ["random_bcoo"]

_publish(__name__)
