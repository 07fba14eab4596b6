"""Tokens, values without data that order effects; and `stage`, a value of the current trace."""

from __future__ import annotations

from collections.abc import Sequence

from ..base.typing import Array, ArrayLike, IrValue
from ..core.primitive import Axis, Builder, Linear, Primitive, linear_jvp
from ..core.trace import typeof
from ..devices.array import register_wrapper
from ..types.avals import AbstractToken, ShapedArray, Token, abstract_token

register_wrapper(Token)     # programs take and return its content: an array without elements


class CreateToken(Primitive):
    """A new token."""

    jvp = transpose = vmap = None       # no operands

    def infer(self) -> AbstractToken:
        return abstract_token

    def lower(self, b: Builder) -> IrValue:
        return b.op("stablehlo.create_token", [])


class AfterAll(Primitive):
    """A token that is ready when all of the given ones are."""

    jvp = transpose = vmap = None       # tokens are neither mapped nor differentiated

    def infer(self, *tokens: AbstractToken) -> AbstractToken:
        for i, token in enumerate(tokens):
            if token is not abstract_token:
                raise TypeError(f"after_all: operand {i} is {token}; tokens are required; make "
                                "one with lax.create_token.")
        return abstract_token

    def lower(self, b: Builder, *tokens: IrValue) -> IrValue:
        return b.op("stablehlo.after_all", list(tokens))


class Stage(Primitive):
    """The operand, as a value of the current trace."""

    def infer(self, x: ShapedArray) -> ShapedArray:
        return x

    def lower(self, b: Builder, x: IrValue) -> IrValue:
        return x

    jvp = linear_jvp

    def transpose(self, ct: Array, x: Linear) -> list[Array | None]:
        return [self.bind(ct)]

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None]
             ) -> tuple[Array, int | None]:
        return self.bind(*args), dims[0]


create_token_p = CreateToken("create_token")
after_all_p = AfterAll("after_all")
stage_p = Stage("stage")


def create_token(_: object = None) -> Token:
    """A new token: a value without data that effects can wait for.

    Args: _: ignored.
    Returns: A token, of the type `olympus.core.abstract_token`.

    >>> token = olympus.lax.create_token()
    >>> olympus.typeof(token) is olympus.core.abstract_token
    True
    """
    return create_token_p.bind()


def after_all(*operands: Token) -> Token:
    """A token that is ready when all operands are; TypeError unless they are tokens.

    Args: *operands: any number of tokens, also none.

    >>> token = olympus.lax.after_all(olympus.lax.create_token(), olympus.lax.create_token())
    >>> olympus.typeof(token) is olympus.core.abstract_token
    True
    """
    return after_all_p.bind(*operands)


def stage(x: ArrayLike, /) -> Array:
    """Convert an array or number to a value of the current trace; to an array if nothing is traced.

    Args: x: array or Python number.
    Returns: An array, or a traced value under a transformation.

    >>> olympus.make_olympuspr(lambda: olympus.lax.stage(2.0))()
    { lambda ; . let a:f32[] = stage 2.0:f32[] in (a,) }
    """
    typeof(x)       # refuses anything else
    return stage_p.bind(x)
