"""Tokens of ordered effects, as lowering rules of outsiders take and give them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..base.lib import mlir

__all__ = ["TokenSet"]


class TokenSet:
    """MLIR's tokens by effect: `ctx.tokens_in`, and what `ctx.set_tokens_out` takes.

    >>> from olympus.interpreters import mlir
    >>> tokens = mlir.TokenSet({"an effect": "its token"})      # any objects do
    >>> tokens.get("an effect"), len(tokens)
    ('its token', 1)
    """

    def __init__(self, tokens: Any = None) -> None:
        self._tokens: dict[Any, Any] = dict(tokens or {})

    def __len__(self) -> int:
        return len(self._tokens)

    def get(self, effect: Any) -> Any:
        """The token of an effect."""
        return self._tokens[effect]

    @classmethod
    def create(cls, effects: Sequence[Any]) -> TokenSet:
        """A new token for each effect, emitted where the lowering rule is."""
        kind = mlir.hlo.TokenType.get(mlir.context())
        return cls({e: mlir.ir.Operation.create("stablehlo.create_token", [kind]).result
                    for e in effects})

    def items(self) -> Sequence[tuple[Any, Any]]:
        """(effect, token) of each."""
        return tuple(self._tokens.items())

    def effects(self) -> set[Any]:
        """The effects that have tokens."""
        return {*self._tokens}

    def subset(self, effects: Any) -> TokenSet:
        """Those of some effects."""
        return TokenSet({e: self._tokens[e] for e in effects})

    def update_tokens(self, tokens: TokenSet) -> TokenSet:
        """These, but for what `tokens` has."""
        return TokenSet(self._tokens | tokens._tokens)
