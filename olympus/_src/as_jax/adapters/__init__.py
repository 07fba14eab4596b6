"""`jax` itself: every library asks for its version, and sets its options.

The modules of this package are named for those of JAX whose names they answer for: `_src.core` for
`jax._src.core`. `__all__` are names of an adapter's own, HOMES the modules of ours that are asked
for others; `__getattr__` gives what changes from one time to the next, and stand-ins.
"""

from ..options import config
from ..release import __version__, __version_info__
from ..stand_ins import planned

__all__ = ["__version__", "__version_info__", "config"]

__getattr__ = planned(__name__, "references", "Ref new_ref empty_ref free_ref freeze")
