"""Tokens of ordered effects, for outsiders' lowering rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..base.lib import mlir
from ..base.typing import IrValue
from ..core.effects import Effect


class TokenSet:
    """MLIR's tokens by effect: `ctx.tokens_in`, and the argument of `ctx.set_tokens_out`.

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
        """A new token for each effect, emitted at the lowering rule's insertion point."""
        kind = mlir.hlo.TokenType.get(mlir.context())
        return cls({e: mlir.ir.Operation.create("stablehlo.create_token", [kind]).result
                    for e in effects})

    def items(self) -> Sequence[tuple[Effect, IrValue]]:
        """The pairs (effect, token)."""
        return tuple(self._tokens.items())

    def effects(self) -> set[Effect]:
        """The effects that have tokens."""
        return {*self._tokens}

    def subset(self, effects: Iterable[Effect]) -> TokenSet:
        """The tokens of some effects."""
        return TokenSet({e: self._tokens[e] for e in effects})

    def update_tokens(self, tokens: TokenSet) -> TokenSet:
        """These tokens, replaced by those in `tokens` where it has any."""
        return TokenSet(self._tokens | tokens._tokens)
