"""Advice on a plan: arguments to donate or shard, values to compute again, axes to pad less."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..base.source import Source
from ..base.util import binary_size
from ..core.ir import Olympuspr
from ..types.sharding import NamedSharding, Sharding, axes_of
from .hlo import Place
from .result import ArgumentMemory, LineMemory, MemoryPlan, line_of

_SHARE = 0.1        # the share of all memory from which advice is given
_SMALL = 1 << 20    # the least bytes of padding for advice
_MOST = 3           # sentences of one kind


def advice(memory: MemoryPlan, arguments: Sequence[ArgumentMemory], lines: Sequence[LineMemory],
           shardings: Mapping[str, Sharding | None], shapes: Mapping[str, tuple[int, ...]],
           donatable: int, differentiated: bool, float64: Place | None) -> list[str]:
    """Sentences of advice, the most important first.

    Args:
      memory, arguments, lines: the plan's.
      shardings: of arguments, by name; shapes: their whole shapes.
      donatable: bytes of results that could use the memory of arguments, and do not.
      differentiated: whether the program has a backward pass.
      float64: the line of a value of 64 bits, on a device that has no such arithmetic.
    """
    texts: list[str] = []
    total = max(memory.total, 1)
    if not memory.fits:
        texts.append(f"{binary_size(total)} are needed and {binary_size(memory.available)} are "
                     f"there: {binary_size(total - memory.available)} are to be saved.")
    if donatable > _SHARE * total:
        texts.append(f"donate arguments (donate_argnums of jit): results of "
                     f"{binary_size(donatable)} have the types of arguments, and could take their "
                     "place.")
    texts += list(_unsharded(arguments, shardings, shapes, total))[:_MOST]
    if not memory.fits and differentiated:
        texts += [f"olympus.checkpoint around what {row.line} is in: it holds "
                  f"{binary_size(row.bytes)} in {row.arrays} array{'s' * (row.arrays != 1)} at the "
                  "peak, which the backward pass can compute again."
                  for row in lines if row.bytes > _SHARE * total and ":" in row.line][:_MOST]
    elif not memory.fits:
        texts += [f"cut what {row.line} makes into parts, or spread it over the mesh: it holds "
                  f"{binary_size(row.bytes)} at the peak."
                  for row in lines if row.bytes > _SHARE * total and ":" in row.line][:_MOST]
    texts += [f"{a.name} ({a.type}) takes {binary_size(a.bytes)} for {binary_size(a.data)} of "
              "numbers: its last two axes are padded to tiles; give it larger last axes."
              for a in arguments if a.bytes > max(2 * a.data, _SMALL)][:_MOST]
    if float64 is not None:
        texts.append(f"{line_of(float64)} computes in 64 bits; a TPU computes with pairs of "
                     "float32 instead, slow and with float32's range; use 32 bits.")
    return texts


def _unsharded(arguments: Sequence[ArgumentMemory], shardings: Mapping[str, Sharding | None],
               shapes: Mapping[str, tuple[int, ...]], total: int) -> Iterator[str]:
    """Sentences on large arguments that are replicated along an axis of the mesh."""
    for argument in arguments:
        sharding = shardings.get(argument.name)
        if argument.bytes < _SHARE * total or not isinstance(sharding, NamedSharding):
            continue
        spec = [*sharding.spec, *[None] * (len(shapes[argument.name]) - len(sharding.spec))]
        used = {axis for entry in spec for axis in axes_of(entry)}
        free = [(size, name) for name, size in sharding.mesh.shape.items()
                if name not in used and size > 1]
        for size, name in sorted(free, reverse=True):
            at = next((n for n, (length, entry) in sorted(
                enumerate(zip(shapes[argument.name], spec, strict=True)),
                key=lambda item: -item[1][0]) if not axes_of(entry) and length % size == 0), None)
            if at is not None:
                cut = ", ".join(repr(name) if n == at else repr(entry)
                                for n, entry in enumerate(spec[:max(at + 1, _used(spec))]))
                yield (f"shard {argument.name} ({argument.type}) over {name}: each of its {size} "
                       f"devices holds the same {binary_size(argument.bytes)}; P({cut}) saves "
                       f"{binary_size(argument.bytes * (size - 1) / size)}.")
                break


def _used(spec: Sequence[object]) -> int:
    return max((n + 1 for n, entry in enumerate(spec) if axes_of(entry)), default=0)


def float64_line(program: Olympuspr, seen: set[int]) -> Source | None:
    """The source of the first operation with a result of 64 bits; None where there is none."""
    if id(program) in seen:
        return None
    seen.add(id(program))
    for eqn in program.eqns:
        for _, body, _ in eqn.primitive.applied(eqn.params, eqn.invars):
            found = float64_line(body.olympuspr, seen)
            if found is not None:
                return found
        if any(str(getattr(v.aval, "dtype", "")) in ("float64", "complex128")
               and not getattr(v.aval, "weak_type", False) for v in eqn.outvars):
            return eqn.source
    return None
