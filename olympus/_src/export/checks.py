"""The errors of checked functions in artifacts: the messages for their error codes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ..interpreters.checks import Field, Site, place_of
from ..types import dtypes
from ..types.tree import tree_structure, tree_unflatten


def encode_sites(sites: tuple[Site, ...]) -> bytes:
    """The messages for error codes as bytes, with source lines as text."""
    entries = [[site.kind, site.what, place_of(site),
                [[f.shape, dtypes.long_name(f.dtype), f.size] for f in site.fields],
                _field_names(site) if site.kind == "user" else site.details, site.around]
               for site in sites]
    return json.dumps(entries, default=str).encode()     # symbolic sizes


def _field_names(site: Site) -> tuple[int, list[str]]:
    """How many fields of a message go by place, and the names of the others."""
    args, kwargs = tree_unflatten(site.details, site.fields)
    if not all(type(x) is Field for x in (*args, *kwargs.values())):
        raise ValueError(f"serialize: the message {site.what!r} of a check given, with a field "
                         "that is a pytree; the fields of an artifact's checks are arrays; give "
                         "the check each leaf.")
    return len(args), sorted(kwargs)


def decode_sites(data: bytes) -> tuple[Site, ...]:
    """The sites in the bytes that `encode_sites` wrote."""
    return tuple([Site(
        kind, what, line, tuple([Field(tuple(shape), dtypes.as_dtype(dtype), size)
                                  for shape, dtype, size in fields]),
        _details(kind, details), tuple([(run, word) for run, word in around]))
        for kind, what, line, fields, details, around in json.loads(data)])


def _details(kind: str, details: Sequence[Any]) -> object:
    if kind == "user":
        count, names = details
        return tree_structure(((0,) * count, dict.fromkeys(names, 0)))
    return tuple(map(tuple, details)) if kind == "index" else tuple(details)
