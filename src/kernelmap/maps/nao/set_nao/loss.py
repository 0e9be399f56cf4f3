"""What order-free maps are trained on: other pairs of the same system, with the number of pairs drawn anew."""

from math import log

import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.core.context import Context
from kernelmap.core.metrics import operator_error
from kernelmap.maps.loss import Loss

FEWEST = 10
"""Contexts of a step have up to so many times fewer pairs than the largest."""


class OtherPairsLoss(Loss):
    """(U, F) -> ||K u - f|| / ||f|| of pairs that the context does not hold, and the pull of the map's functions.

    Of the pairs of a draw the last ones are targets, and the first ones the context, whose number changes from step to
    step, evenly in its logarithm. No true kernel is read.
    """

    targets = 20
    variants = 4

    def forward(self, U: Float[Tensor, "*bu N D"], F: Float[Tensor, "*bf M D"], seed: int) -> Float[Tensor, "*bf"]:
        most = U.shape[-1] - self.targets
        d = draw_size(most, seed)
        context = Context.unchecked(U[..., :d], F[..., :d], self.y, self.x)
        error = self.error(context, U[..., most:], F[..., most:])
        return error + self.model.options.pull * self.model.deviation() if self.training else error  # pyright: ignore

    def error(self, context: Context, U: Float[Tensor, "*bu N n"], F: Float[Tensor, "*bf M n"]) -> Float[Tensor, "*bf"]:
        """Of predicting the targets from the context."""
        return operator_error(self.model.respond(context, U), F, self.x)  # pyright: ignore


def draw_size(most: int, seed: int) -> int:
    """Pairs of the context of a step."""
    fewest = max(min(2, most), most / FEWEST)
    position = float(torch.rand((), generator=torch.Generator().manual_seed(seed)))
    return round(float(torch.tensor(log(fewest) + position * log(most / fewest)).exp()))
