"""Normalisers of attention updates."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import FunctionCtx, once_differentiable

from kernelmap.core.domain import Domain
from kernelmap.maps.nao.functions import GridFunction

EPSILON = 1e-5
"""That of torch's LayerNorm: it keeps an array of equal values finite."""


class ContinuousNormaliser(nn.Module):
    """norm(Y) = b(y) + w(y) (Y - mean over tokens of Y) with learned functions w (one per head) and b of position.

    Where the mean stays (`uncentred`), a layer is the operator 1 + w A, as an iteration for an inverse needs it.
    """

    def __init__(self, domains: tuple[Domain, ...], heads: int) -> None:
        super().__init__()
        self.w = nn.ModuleList(GridFunction((domain,), heads) for domain in domains)
        self.b = nn.ModuleList(GridFunction((domain,), 1) for domain in domains)

    def forward(self, coordinates: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        """w and b on each block of tokens."""
        w = [function(c) for function, c in zip(self.w, coordinates, strict=True)]
        return w, [function(c)[0] for function, c in zip(self.b, coordinates, strict=True)]

    def set_identity(self) -> None:
        """w = 1 and b = 0, from where training goes on."""
        for functions, value in ((self.w, 1.0), (self.b, 0.0)):
            for function in functions:
                assert isinstance(function, GridFunction)
                function.set_constant(value)


class WeightedNorm(Function):
    """b + w z with z = (X - mean) / deviation over each whole array, the tokens having shares s of the sums.

    With t = w dY, the gradient is dX = (t - s Σt - s z Σ(z t)) / deviation. Left to autograd, the same takes 2.5 times
    as long: the arrays are large, and it goes through them more often.
    """

    @staticmethod
    def forward(
        ctx: FunctionCtx,
        X: Float[Tensor, "*#b n d"],
        w: Float[Tensor, "n d"],
        b: Float[Tensor, "n d"],
        weights: Float[Tensor, " n"],
    ) -> Float[Tensor, "*#b n d"]:
        z = X - (X.sum(dim=-1) @ weights)[..., None, None]
        rate = (z.square().sum(dim=-1) @ weights + EPSILON).rsqrt()[..., None, None]
        z *= rate
        ctx.save_for_backward(z, w, weights, rate)
        return torch.addcmul(b, z, w)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Float[Tensor, "*#b n d"]) -> tuple[Tensor, Tensor, Tensor, None]:
        z, w, weights, rate = ctx.saved_tensors
        product = gradient * z
        w_gradient, b_gradient = product.sum_to_size(w.shape).clone(), gradient.sum_to_size(w.shape)
        inner = product.mul_(w).sum(dim=(-2, -1), keepdim=True)
        t = torch.mul(gradient, w, out=product)
        total = t.sum(dim=(-2, -1), keepdim=True)
        t -= total * weights[:, None]
        t.addcmul_(z, inner * weights[:, None], value=-1)
        return t.mul_(rate), w_gradient, b_gradient, None


class FunctionNorm(nn.Module):
    """norm(X) = b_j(y) + (1 + w_j(y)) (X - mean) / deviation over the whole array, for every pair j.

    LayerNorm over the array of tokens whose weights and biases are learned functions of position: its sums are
    integrals, so that it belongs to no grid.
    """

    def __init__(self, domains: tuple[Domain, ...], pairs: int) -> None:
        super().__init__()
        self.w = nn.ModuleList(GridFunction((domain,), pairs) for domain in domains)
        self.b = nn.ModuleList(GridFunction((domain,), pairs) for domain in domains)

    def forward(
        self, X: Float[Tensor, "*#b n d"], coordinates: Sequence[Tensor], h: Float[Tensor, " n"]
    ) -> Float[Tensor, "*#b n d"]:
        w, b = (
            torch.cat([function(c) for function, c in zip(functions, coordinates, strict=True)], dim=-1).mT
            for functions in (self.w, self.b)
        )
        return WeightedNorm.apply(X, 1 + w, b, h / (h.sum() * X.shape[-1]))


class TokenNorm(nn.LayerNorm):
    """LayerNorm over the tokens of each pair (`pairs` None), or over the whole token array. Ties a map to one grid."""

    def __init__(self, tokens: int, pairs: int | None) -> None:
        super().__init__([tokens] if pairs is None else [tokens, pairs])

    def forward(self, input: Float[Tensor, "*#b n d"]) -> Float[Tensor, "*#b n d"]:
        return super().forward(input.mT).mT if len(self.normalized_shape) == 1 else super().forward(input)

    def blocks(self, sizes: Sequence[int]) -> tuple[Sequence[Tensor], Sequence[Tensor]]:
        """Weight and bias of the tokens of each block."""
        return self.weight.split(list(sizes)), self.bias.split(list(sizes))
