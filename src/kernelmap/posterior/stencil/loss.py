"""What the local posterior map is trained on: predicting other pairs of the same system, with and without noise."""

import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.core.context import Context, responding
from kernelmap.core.grids import Grid
from kernelmap.maps.loss import Loss

ROWS = 60
FEWEST = 2
QUIETEST, LOUDEST = -4.0, -0.7
"""Decimal logarithms of the relative noise that is added to f."""


class LocalLoss(Loss):
    """(U, F) -> -log p(targets | context), per value and in units of f's root mean square.

    Of the pairs of a draw the last ones are targets, and the first ones the context, whose number changes from step to
    step. Two steps in three add white noise of a known level to f: pairs without noise show which bonds matter, but not
    how large the others' strengths are. Only some rows take part in a step. No true kernel is read.
    """

    targets = 10
    single_process = True
    double_precision = True
    variants = 6

    def forward(self, U: Float[Tensor, "*bu N D"], F: Float[Tensor, "*bf M D"], seed: int) -> Float[Tensor, "*bf"]:
        generator = torch.Generator().manual_seed(seed)
        most = U.shape[-1] - self.targets
        d = int(torch.randint(min(FEWEST, most), most + 1, (), generator=generator))
        nodes = responding(F).nonzero()[:, 0]
        rows = nodes[torch.randperm(len(nodes), generator=generator)[:ROWS]]
        exponent = QUIETEST + (LOUDEST - QUIETEST) * float(torch.rand((), generator=generator))
        level = 0.0 if seed % 3 == 0 else 10**exponent
        F = F[..., rows, :] / F.square().mean(dim=(-2, -1), keepdim=True).sqrt()
        F = F + level * torch.randn(F.shape, generator=generator, dtype=F.dtype).to(F.device)
        x = Grid(self.x.points[rows], self.x.weights[rows])
        posterior = self.model.posterior(Context.unchecked(U[..., :d], F[..., :d], self.y, x), noise=level)
        mean, std = posterior.predict(U[..., most:].expand(*F.shape[:-2], -1, -1))
        return (0.5 * ((F[..., most:] - mean) / std).square() + std.log()).mean(dim=(-2, -1))
