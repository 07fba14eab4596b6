"""Single arrays in TensorStore: specifications, writing, reading."""

from ..._src.base.util import publish as _publish
from ..._src.checkpoint.store import (
    async_deserialize, async_serialize, combine_kvstores, estimate_read_memory_footprint,
    get_tensorstore_spec, is_tensorstore_spec_leaf, merge_nested_ts_specs, verify_tensorstore_spec,
)

__all__ = [
    "async_deserialize", "async_serialize", "combine_kvstores", "estimate_read_memory_footprint",
    "get_tensorstore_spec", "is_tensorstore_spec_leaf", "merge_nested_ts_specs",
    "verify_tensorstore_spec",
]

_publish(__name__)
