"""Functions that say how they run on parts of arrays: names only."""

from .._src.base.util import publish as _publish
from .._src.custom.partitioning import custom_partitioning, custom_partitioning_p
from .._src.custom.sharding_rules import BATCHING, ArrayMapping, CompoundFactor, SdyShardingRule

__all__ = ["BATCHING", "ArrayMapping", "CompoundFactor", "SdyShardingRule", "custom_partitioning",
           "custom_partitioning_p"]

_publish(__name__)
