"""Compiled programs as bytes, good for this version of jaxlib and this kind of machine only."""

from __future__ import annotations

import hashlib
import io
import pickle
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..base import lib
from ..base.typing import Device
from ..devices import devices
from ..runtime import compile
from ..runtime.compile import Client, Executable, Placement
from ..types.mesh import Mesh
from ..types.sharding import NamedSharding
from ..types.tree_registry import PyTreeDef
from .program import Program
from .stages import Compiled


class Types(NamedTuple):
    """The types of a program that another process traced, as an executable needs them."""

    in_avals: Sequence[Any]
    out_avals: Sequence[Any]
    effects: frozenset[Any] = frozenset()
    consts: Sequence[Any] = ()      # they are in the executable


def pack(program: Program, executable: Executable) -> bytes:
    """All that a call of a compiled program needs."""
    # The devices come first, by themselves: a reader needs them for the rest.
    devices_of = [(d.platform, d.id) for d in executable.devices]
    key: Any = executable.loaded.key
    out = io.BytesIO()
    pickle.dump(devices_of, out)
    _Pickler(out).dump((
        Types(program.closed.in_avals, program.closed.out_avals), program.in_tree,
        program.out_tree, program.arg_names, program.donated, executable.kept,
        executable.interface, executable.placement, executable.loaded.bytes,
        executable.loaded.brief, key and key[0],
        # Whether LAPACK is registered here: code that calls it needs that.
        lib.lapack_names.cache_info().currsize > 0,
        executable.loaded.serialized()))
    return out.getvalue()


def unpack(data: bytes, placement: Placement | None = None, key: str | None = None,
           devices: Sequence[Device] = ()) -> tuple[Program, Executable]:
    """The program and the executable that were packed.

    Args:
      data: what `pack` returned.
      placement: where it runs; where it ran if None.
      key: under which the executable is known in this process.
      devices: devices in place of those that it ran on.
    """
    written = io.BytesIO(data)
    ran_on = pickle.load(written)
    moved = dict(zip(ran_on, devices, strict=True)) if devices else {}
    (types, in_tree, out_tree, arg_names, donated, kept, interface, packed_placement, size, brief,
     digest, lapack, code) = _Unpickler(data[written.tell():], moved).load()
    placed: Placement = placement or packed_placement
    if lapack:      # which lowering registers
        lib.lapack_names()
    on = interface.place(placed).devices
    if interface.foreign:
        compile.foreign.check_targets(interface.foreign, on[0].platform)
    # Types in the place of a program: nothing traces or lowers this one again.
    program = Program(types, [], in_tree, out_tree, arg_names, donated, interface.name, False, None)
    known = key or hashlib.blake2b(data, digest_size=20).hexdigest()
    # First the module's digest, by which the processes of a job tell whether they run the same.
    # An entry that `jit(persist=True)` found is not written again.
    hosts = lib.IN_THIS_THREAD if brief else ()
    loaded = compile.adopt(interface.name, lambda: lib.deserialize_executable(
        on[0].client, code, on, host_callbacks=hosts), (digest or known.encode(), known, on), size,
        code if key is None else None, brief)
    return program, Executable(loaded, types, kept, placed, interface, arg_names)


def serialize(compiled: Compiled) -> tuple[bytes, PyTreeDef, PyTreeDef]:
    """A compiled function as bytes, to be loaded by another process on such a machine.

    Args: compiled: what `lower(…).compile()` returned.
    Returns: (bytes, the tree of the arguments, the tree of the result), for `deserialize_and_load`.

    ValueError for programs that call Python while they run. The bytes belong to this version of
    jaxlib and hold machine code and pickles: load none that you do not trust. `olympus.export`
    writes programs that other versions and machines read.

    >>> from olympus.experimental.serialize_executable import deserialize_and_load, serialize
    >>> compiled = olympus.jit(lambda x: x + 1).lower(1.0).compile()
    >>> print(deserialize_and_load(*serialize(compiled))(2.0))
    3.0
    """
    if not isinstance(compiled, Compiled):
        raise TypeError(f"serialize: {compiled!r:.60} of type {type(compiled).__name__} given; a "
                        "Compiled is required; write jit(f).lower(…).compile().")
    executable = compiled._executable
    if executable.hosts or executable.effects:
        raise ValueError(f"serialize: {executable.name} calls Python while it runs; a program of "
                         "the compiler's alone is required: Compilation does not support "
                         "serialization of callbacks; leave them out.")
    return pack(compiled._program, executable), compiled.in_tree, compiled.out_tree


def deserialize_and_load(serialized: bytes, in_tree: PyTreeDef, out_tree: PyTreeDef,
                         backend: str | Client | None = None,
                         execution_devices: Sequence[Device] | None = None) -> Compiled:
    """The compiled function that `serialize` made bytes of. They may do anything: trust them.

    Args:
      serialized: the bytes.
      in_tree, out_tree: the trees that came with the bytes.
      backend: the platform, by name or as a client; the program's if None.
      execution_devices: as many devices as the program was compiled for, to run on; None for those
        with the same numbers.

    Returns:
      A `stages.Compiled`. ValueError for another number of devices, or devices of another backend.

    >>> from olympus.experimental.serialize_executable import deserialize_and_load, serialize
    >>> compiled = olympus.jit(lambda x: {"a": x + 1}).lower(1.0).compile()
    >>> data, in_tree, out_tree = serialize(compiled)
    >>> deserialize_and_load(data, in_tree, out_tree)(2.0)["a"].item()
    3.0
    """
    # The first of two pickles: the second is read with the devices that are to run it.
    ran_on = pickle.load(io.BytesIO(serialized))
    owner = devices.client(backend) if backend is None or isinstance(backend, str) else backend
    chosen = () if execution_devices is None else tuple(execution_devices)
    if chosen and len(chosen) != len(ran_on):
        raise ValueError(f"deserialize_and_load: execution_devices {chosen} given for a program of "
                         f"{len(ran_on)} devices; as many are required.")
    if any(d.client is not owner for d in chosen):
        raise ValueError(f"deserialize_and_load: execution_devices {chosen} given; Execution "
                         f"devices belong to a client other than `backend`, {owner.platform}; name "
                         "their backend.")
    program, executable = unpack(serialized, devices=chosen)
    program.in_tree, program.out_tree = in_tree, out_tree
    return Compiled(program, executable)


class _Pickler(pickle.Pickler):
    """Devices are written by their numbers."""

    def persistent_id(self, obj: object) -> object:
        if isinstance(obj, lib.Device):
            return "device", obj.platform, obj.id
        if type(obj) is NamedSharding:      # which pickle refuses where its mesh has devices
            return "sharding", *obj._key
        if type(obj) is Mesh:
            return "mesh", obj.devices, obj.axis_names, obj.axis_types
        return None


class _Unpickler(pickle.Unpickler):
    """`moved` are the devices in place of those that were written, by platform and number."""

    def __init__(self, data: bytes, moved: dict[tuple[str, int], Device]) -> None:
        super().__init__(io.BytesIO(data))
        self.moved = moved

    def persistent_load(self, pid: Any) -> object:
        kind, *parts = pid
        if kind == "sharding":
            mesh, spec, memory = parts
            return NamedSharding(mesh, spec, memory_kind=memory)
        if kind == "mesh":
            return Mesh(*parts)
        platform, number = parts
        found = self.moved.get((platform, number))
        return found or next(d for d in devices.client(platform).devices() if d.id == number)
