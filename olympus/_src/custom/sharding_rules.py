"""Rules by which Shardy shards corresponding axes of operands and results alike.

A factor is a name that corresponding axes of operands and results share, like an index of einsum:

    "... i j, j k -> ... i k"       a product of matrices, whose factor j is summed over
    "(i j) k -> i j k"              an axis of two factors, split in two
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ..base.lib import mlir
from ..base.typing import IrAttribute
from ..types.shape import definitely_equal, minimum

BATCHING = "…"
_TOKENS = re.compile(rf"{BATCHING}\d*|\w+|\S")


def _is_batching(factor: str) -> bool:
    return factor.startswith(BATCHING) and (len(factor) == 1 or factor[1:].isdigit())


def _check_factor(factor: str) -> None:
    if not factor[:1].isalpha():
        raise ValueError(f"Factor names have to start with a letter, but got '{factor[:1]}' in "
                         f"{factor!r}; rename the factor.")
    wrong = next((c for c in factor if c != "_" and not c.isalnum()), None)
    if wrong is not None:
        raise ValueError(f"Unknown character '{wrong}' in the factor {factor!r}; letters, digits "
                         "and _ are required.")


class CompoundFactor(tuple[str, ...]):
    """The factors of one axis, the outermost first.

    Args: *factors: at least two names.

    >>> from olympus.experimental.custom_partitioning import CompoundFactor
    >>> CompoundFactor("b", "c")
    ('b', 'c')
    """

    __slots__ = ()

    def __new__(cls, *factors: str) -> CompoundFactor:
        if len(factors) < 2:
            raise ValueError(f"A compound factor should contain at least two factors: {factors} "
                             "given; an axis of one factor is its name.")
        for factor in factors:
            if not isinstance(factor, str):
                raise ValueError(f"Each element of CompoundFactor must be a str, but got "
                                 f"{type(factor)}: {factor!r}.")
            if _is_batching(factor):
                raise ValueError("Ellipsis can't be used in a compound factor; name factors.")
            _check_factor(factor)
        return super().__new__(cls, factors)


class ArrayMapping(tuple[Any, ...]):
    """The factors of the axes of an operand or a result.

    Args: *dim_mappings: per axis a factor's name or a `CompoundFactor`; the first one may be
        `BATCHING`, which stands for any number of leading axes.

    >>> from olympus.experimental.custom_partitioning import BATCHING, ArrayMapping
    >>> ArrayMapping(BATCHING, "i")
    ('…', 'i')
    """

    __slots__ = ()

    def __new__(cls, *dim_mappings: str | CompoundFactor) -> ArrayMapping:
        for i, entry in enumerate(dim_mappings):
            if not isinstance(entry, (str, CompoundFactor)):
                raise ValueError("Each element of ArrayMapping must be a str or CompoundFactor, "
                                 f"but got {type(entry)}: {entry!r}.")
            if isinstance(entry, str) and _is_batching(entry):
                if i:
                    raise ValueError("Ellipsis can only be used at the beginning of a dimension; "
                                     "put it first.")
            elif isinstance(entry, str):
                _check_factor(entry)
        return super().__new__(cls, dim_mappings)


class SdyShardingRule:
    """How the axes of operands and of results of an operation correspond.

    Args:
      operand_mappings, result_mappings: an `ArrayMapping` for each.
      reduction_factors: factors of operands alone, over which results are summed.
      need_replication_factors: factors of axes that must not be cut.
      permutation_factors: factors of axes that devices exchange their parts along, if they are cut.
      **factor_sizes: the sizes of factors that are in compound factors only.

    ValueError where a name is unknown, a size is missing or too many, or a factor has two kinds.

    >>> from olympus.experimental.custom_partitioning import ArrayMapping, SdyShardingRule
    >>> rule = SdyShardingRule((ArrayMapping("i", "j"),), (ArrayMapping("i"),),
    ...                        reduction_factors=("j",))
    >>> print(rule)
    SdyShardingRule((('i', 'j'),), (('i',),), {} reduction_factors=('j',))
    """

    def __init__(self, operand_mappings: tuple[ArrayMapping, ...],
                 result_mappings: tuple[ArrayMapping, ...], *,
                 reduction_factors: tuple[str, ...] = (),
                 need_replication_factors: tuple[str, ...] = (),
                 permutation_factors: tuple[str, ...] = (), **factor_sizes: int) -> None:
        self.operand_mappings = tuple(operand_mappings)
        self.result_mappings = tuple(result_mappings)
        self.factor_sizes = factor_sizes
        self.reduction_factors = reduction_factors
        self.need_replication_factors = need_replication_factors
        self.permutation_factors = permutation_factors
        entries = [e for m in (*self.operand_mappings, *self.result_mappings) for e in m]
        whole = {e for e in entries if isinstance(e, str)}
        used = whole | {factor for e in entries if not isinstance(e, str) for factor in e}
        if not all(isinstance(size, int) for size in factor_sizes.values()):
            raise TypeError("factor_sizes must be a dict of str to int, but got "
                            f"{factor_sizes}.")
        for factor in factor_sizes:
            if factor not in used:
                raise ValueError(f"Factor {factor} is not used in the rule, but size is provided; "
                                 "leave it out.")
            if factor in whole:
                raise ValueError(f"Factor {factor} represents a whole dimension; do not specify "
                                 "its size.")
        for factor in sorted(used - whole):
            if factor not in factor_sizes:
                raise ValueError(f"Factor {factor} is only used in compound factors; must specify "
                                 "its size.")
        kinds: dict[str, str] = {}
        for kind, factors in self._special():
            if not isinstance(factors, tuple):
                raise ValueError(f"{kind} must be a tuple of factors: {factors!r} given.")
            if len(set(factors)) < len(factors):
                raise ValueError(f"{kind} contains duplicated factors: {factors}.")
            for factor in factors:
                if factor not in used:
                    raise ValueError(f"Factor {factor} in {kind} is not used in the rule.")
                if factor in kinds:
                    raise ValueError(f"Factor {factor} can only be in one of the reduction, need "
                                     "replication, or permutation factor sets; it is in "
                                     f"{kinds[factor]} and {kind}.")
                kinds[factor] = kind

    def _special(self) -> list[tuple[str, tuple[str, ...]]]:
        names = "reduction_factors", "need_replication_factors", "permutation_factors"
        return [(name, getattr(self, name)) for name in names]

    def __repr__(self) -> str:
        special = "".join([f" {kind}={factors}" for kind, factors in self._special() if factors])
        return (f"SdyShardingRule({self.operand_mappings}, {self.result_mappings}, "
                f"{self.factor_sizes}{special})")


def parse_rule(rule: str, **options: Any) -> SdyShardingRule:
    """The rule of a text like "i (j k), k -> ... i"; `options` are `SdyShardingRule`'s."""
    if not isinstance(rule, str):
        raise TypeError(f"rule must be a str, but got {type(rule)}: {rule!r}.")
    text = rule.replace("...", BATCHING)
    if BATCHING in rule:
        raise ValueError(f"Unknown character '{BATCHING}' in the rule {rule!r}; write '...'.")
    if "." in text:
        raise ValueError(f"Character '.' must be used inside ellipsis '...': {rule!r} given.")
    if text.count("->") != 1:
        raise ValueError(f"There is no -> in rule: '{rule}', or more than one; write "
                         "'operands -> results'.")
    operands, results = [tuple([_parse_mapping(part, rule) for part in side.split(",")])
                         for side in text.split("->")]
    return SdyShardingRule(operands, results, **options)


def _parse_mapping(text: str, rule: str) -> ArrayMapping:
    factors: list[Any] = []
    inner: list[str] | None = None
    for token in _TOKENS.findall(text):
        if token == "(":
            if inner is not None:
                raise ValueError(f"Compound factors should be one level, nested brackets are not "
                                 f"allowed: {rule!r} given.")
            inner = []
        elif token == ")":
            if inner is None:
                raise ValueError(f"Brackets are not balanced in rule: '{rule}'.")
            if len(inner) < 2:
                raise ValueError(f"Brackets should contain at least two factors: {rule!r} given.")
            factors.append(CompoundFactor(*inner))
            inner = None
        elif token.startswith(BATCHING):
            if inner is not None or factors:
                raise ValueError("Ellipsis can only be used at the beginning of a dimension: "
                                 f"{rule!r} given.")
            factors.append(f"{BATCHING}{int(token[1:] or 0)}")
        elif not re.fullmatch(r"\w+", token):
            raise ValueError(f"Unknown character '{token}' in the rule {rule!r}.")
        else:
            _check_factor(token)
            (factors if inner is None else inner).append(token)
    if inner is not None:
        raise ValueError(f"Brackets are not balanced in rule: '{rule}'.")
    return ArrayMapping(*factors)


def rule_attribute(rule: SdyShardingRule, operands: Sequence[Sequence[int]],
                   results: Sequence[Sequence[int]]) -> IrAttribute:
    """Shardy's attribute for an operation on arrays of such shapes; ValueError if they do not fit.
    """
    for what, mappings, shapes in (("operands", rule.operand_mappings, operands),
                                   ("results", rule.result_mappings, results)):
        if len(mappings) != len(shapes):
            raise ValueError(f"Sharding rule has {len(mappings)} {what}, but the operation has "
                             f"{len(shapes)} {what}: {rule}.")
    names = [*(f"{i}th operand" for i in range(len(operands))),
             *(f"{i}th result" for i in range(len(results)))]
    shapes = [*operands, *results]
    batch: dict[str, int] = {}      # how many axes an ellipsis stands for
    axes = [_factors_by_axis(mapping, len(shape), name, batch) for mapping, shape, name in zip(
        (*rule.operand_mappings, *rule.result_mappings), shapes, names, strict=True)]
    sizes: dict[str, int] = {}
    for factors, shape in zip(axes, shapes, strict=True):
        for entry, size in zip(factors, shape, strict=True):
            if isinstance(entry, tuple):
                for factor in entry:
                    sizes.setdefault(factor, rule.factor_sizes.get(factor, -1))
            elif entry.startswith("?") and not definitely_equal(sizes.get(entry, size), size):
                raise ValueError(f"Batching dimension {entry[1:]} corresponds to two sizes: "
                                 f"{sizes[entry]} and {size}.")
            else:
                known = sizes.get(entry, -1)
                sizes[entry] = size if known < 0 else minimum(known, size)
    for factors, shape, name in zip(axes, shapes, names, strict=True):
        for entry, size in zip(factors, shape, strict=True):
            total = 1
            for factor in entry if isinstance(entry, tuple) else ():
                total *= sizes[factor]
            if isinstance(entry, tuple) and not definitely_equal(total, size):
                raise ValueError(f"{name} actual size {size} doesn't match the size {total} "
                                 f"derived from the compound factors {entry}.")
    number = {factor: i for i, factor in enumerate(sizes)}
    sdy = mlir.sdy_attributes
    tensors = [sdy.TensorMappingAttr.get(dim_mappings=[
        sdy.DimMappingAttr.get(factor_indices=[
            number[f] for f in (entry if isinstance(entry, tuple) else (entry,))])
        for entry in factors]) for factors in axes]
    special: dict[str, Any] = {kind: [number[f] for f in factors]
                               for kind, factors in rule._special()}
    return sdy.OpShardingRuleAttr.get(
        factor_sizes=list(sizes.values()), operand_mappings=tensors[:len(operands)],
        result_mappings=tensors[len(operands):], is_custom=True, **special)


def _factors_by_axis(mapping: ArrayMapping, rank: int, name: str, batch: dict[str, int]
                     ) -> list[str | CompoundFactor]:
    """The factors of each axis of an array, with a factor for each that an ellipsis stands for."""
    own = list(mapping)
    count = 0
    if own and isinstance(own[0], str) and _is_batching(own[0]):
        group = own.pop(0)[1:] or "0"
        count = max(rank - len(own), 0)
        if batch.setdefault(group, count) != count:
            raise ValueError("Ellipsis represents different number of leading dimensions "
                             f"{batch[group]} and {count}.")
        own = [*(f"?{group}_{i}" for i in range(count)), *own]
    if len(own) != rank:
        raise ValueError(f"Sharding rule {name} has rank {len(own)}, but the operation {name} has "
                         f"rank {rank}.")
    return own
