"""Memory spaces: where a device keeps an array."""

import enum


class Space(enum.Enum):
    """The memory of the device, or the host memory that the device reads directly.

    >>> import olympus
    >>> x = olympus.device_put(olympus.numpy.ones(2), olympus.memory.Space.Host)
    >>> x.sharding.memory_kind
    'pinned_host'
    """

    Device = "device"
    Host = "pinned_host"
    Any = "any"

    def __repr__(self) -> str:
        return f"MemorySpace.{self.name}"

    __str__ = __repr__

    @staticmethod
    def of(where: "Space | str") -> "Space":
        """The space of a name: "device", "pinned_host".

        >>> Space.of("pinned_host")
        MemorySpace.Host
        """
        try:
            return Space(where)
        except ValueError:
            names = ", ".join(repr(s.value) for s in Space)
            raise ValueError(f"memory space: {where!r} given; one of {names} is required."
                             ) from None
