"""Tokens of ordered effects, as lowering rules of outsiders take and give them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..base.lib import mlir
from ..base.typing import IrValue
from ..core.effects import Effect


class TokenSet:
    """MLIR's tokens by effect: `ctx.tokens_in`, and what `ctx.set_tokens_out` takes.

    >>> from olympus.interpreters import mlir
    >>> tokens = mlir.TokenSet({"an effect": "its token"})      # any objects do
    >>> tokens.get("an effect"), len(tokens)
    ('its token', 1)
    """

    def __init__(self, tokens: Mapping[Effect, IrValue] | None = None) -> None:
        self._tokens: dict[Effect, IrValue] = dict(tokens or {})

    def __len__(self) -> int:
        return len(self._tokens)

    def get(self, effect: Effect) -> IrValue:
        """The token of an effect."""
        return self._tokens[effect]

    @classmethod
    def create(cls, effects: Sequence[Effect]) -> TokenSet:
        """A new token for each effect, emitted where the lowering rule is."""
        kind = mlir.hlo.TokenType.get(mlir.context())
        return cls({e: mlir.ir.Operation.create("stablehlo.create_token", [kind]).result
                    for e in effects})

    def items(self) -> Sequence[tuple[Effect, IrValue]]:
        """(effect, token) of each."""
        return tuple(self._tokens.items())

    def effects(self) -> set[Effect]:
        """The effects that have tokens."""
        return {*self._tokens}

    def subset(self, effects: Iterable[Effect]) -> TokenSet:
        """Those of some effects."""
        return TokenSet({e: self._tokens[e] for e in effects})

    def update_tokens(self, tokens: TokenSet) -> TokenSet:
        """These, but for what `tokens` has."""
        return TokenSet(self._tokens | tokens._tokens)
