"""What the posterior map is trained on: predicting other pairs of the same system, given a few."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from kernelmap.context import Context
from kernelmap.grids import Grid
from kernelmap.maps import KernelMap, PosteriorMap
from kernelmap.maps.mixture import THETA
from kernelmap.training.objective import Objective

SHARES = (1, 3, 5, 6, 7.5, 10, 10, 15)
MIXES = 4
PULL = 2e-2


class PredictiveObjective(Objective):
    """(U, F) -> -log p(targets | context), per pair and in units of the targets' root mean square.

    Of the pairs of a draw the last ones are targets, and the first d the context, with d changing from step to step.
    Random linear combinations of the batch's systems join it: their responses add exactly. No true kernel is read.
    The loss is a mean over systems and combinations, returned once for each of them. How far jumps are from the middle
    of their cells on this grid is learned beside the prior, and is not kept: on other grids they may be anywhere.
    """

    targets = 150
    variants = len(SHARES)

    def __init__(self, model: KernelMap, y: Grid, x: Grid, points: int | None = None) -> None:
        super().__init__(model, y, x, points)
        self.log_spread = nn.Parameter(0.5 * model.u_std.new_tensor(THETA).log())

    def forward(self, U: Float[Tensor, "*bu N D"], F: Float[Tensor, "*bf M D"], seed: int) -> Float[Tensor, "*all"]:
        assert isinstance(self.model, PosteriorMap)
        generator = torch.Generator().manual_seed(seed)
        most = U.shape[-1] - self.targets
        d = max(2, round(most / SHARES[seed % self.variants]))
        F = F / F.square().mean(dim=(-2, -1), keepdim=True).sqrt()
        if U.shape[-3] == 1 and self.training:
            F = torch.cat([F, mixtures(F, generator)], dim=-3)
        context = Context._trusted(U[..., :d], F[..., :d], self.y, self.x)
        posterior = self.model.thorough_posterior(context, (2 * self.log_spread).exp())
        means, variances = posterior.response_moments(U[..., most:])
        target = F[..., most:]
        log_density = -0.5 * ((target - means).square() / variances + variances.log())
        # Of a kind that is impossible for a system the share may be zero, and a logarithm's gradient infinite.
        share = posterior.share.clamp(min=torch.finfo(F.dtype).tiny)
        likelihood = (share.log()[..., None] + log_density).logsumexp(dim=0)
        loss = -(likelihood + target.square().mean(dim=-1, keepdim=True).log() / 2).mean()
        return (loss + PULL * self.model.prior.deviation()).expand(F.shape[:-2])


def mixtures(F: Float[Tensor, "*b S M D"], generator: torch.Generator) -> Float[Tensor, "*b mixes M D"]:
    """Responses of sparse random combinations of systems."""
    count = F.shape[-3]
    chosen = torch.rand(MIXES, count, generator=generator) < 2.5 / count
    chosen[torch.arange(MIXES), torch.randint(count, (MIXES,), generator=generator)] = True
    weights = torch.randn(MIXES, count, generator=generator, dtype=torch.float64) * chosen
    return torch.einsum("cs,...smd->...cmd", weights.to(F), F)
