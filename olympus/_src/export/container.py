"""The bytes of an artifact: a frame with version, length and checksum, metadata as JSON, modules.

    8 bytes     the magic
    4           version of the format, little-endian, as all numbers are
    8           length of what follows the frame
    32          BLAKE2b of version and what follows
    4           length of the metadata
    …           metadata, then the blobs that it refers to by (offset, length)

The frame stays as it is in all versions: a reader can tell that an artifact is newer than itself.
"""

from __future__ import annotations

import hashlib
import json
import struct
from typing import Any

MAGIC = b"OLYMPUS\xae"      # the last byte is no text in any encoding
VERSION = 1
_FRAME = struct.Struct("<8sIQ32s")
_LENGTH = struct.Struct("<I")


def _checksum(version: int, content: bytes | memoryview) -> bytes:
    digest = hashlib.blake2b(_LENGTH.pack(version), digest_size=32)
    digest.update(content)
    return digest.digest()


def pack(metadata: object, blobs: list[bytes]) -> bytearray:
    """An artifact; `metadata` (JSON) has `blob` where it means the blob of that number."""
    spans, at = [], 0
    for blob in blobs:
        spans.append((at, len(blob)))
        at += len(blob)
    text = json.dumps({"blobs": spans, "metadata": metadata}, separators=(",", ":")).encode()
    content = b"".join([_LENGTH.pack(len(text)), text, *blobs])
    frame = _FRAME.pack(MAGIC, VERSION, len(content), _checksum(VERSION, content))
    return bytearray(frame + content)


def unpack(artifact: object) -> tuple[Any, list[bytes]]:
    """The metadata and blobs of an artifact; ValueError that names its fault."""
    if not isinstance(artifact, (bytes, bytearray, memoryview)):
        raise TypeError(f"deserialize: a {type(artifact).__name__} given; bytes, as "
                        "Exported.serialize() returns them, are required.")
    view = memoryview(artifact).cast("B")
    if bytes(view[:len(MAGIC)]) != MAGIC[:len(view)] or not view:
        raise ValueError("deserialize: bytes given that do not begin as an artifact of "
                         "olympus.export; what Exported.serialize() wrote is required (artifacts "
                         "of other libraries are not read).")
    if len(view) < _FRAME.size:
        raise ValueError(f"deserialize: the artifact is truncated: {len(view)} bytes given; more "
                         f"than {_FRAME.size} are required; copy it again.")
    _, version, length, checksum = _FRAME.unpack_from(view)
    content = view[_FRAME.size:]
    if len(content) != length:
        what = "is truncated" if len(content) < length else "has bytes behind its end"
        raise ValueError(f"deserialize: the artifact {what}: {len(view)} bytes given; "
                         f"{_FRAME.size + length} are required; copy it again.")
    if _checksum(version, content) != checksum:
        raise ValueError("deserialize: the artifact is damaged: its contents have another "
                         "checksum; copy it again, or write it anew.")
    if version > VERSION:
        raise ValueError(f"deserialize: the artifact is newer than this Olympus: its format is "
                         f"{version}; {VERSION} at most is read; update Olympus.")
    size, = _LENGTH.unpack_from(content)
    try:
        written = json.loads(bytes(content[_LENGTH.size:_LENGTH.size + size]))
        blobs = content[_LENGTH.size + size:]
        return written["metadata"], [bytes(blobs[at:at + n]) for at, n in written["blobs"]]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"deserialize: the artifact is malformed ({error}); write it anew."
                         ) from None
