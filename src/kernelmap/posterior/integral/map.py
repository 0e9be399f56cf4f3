"""The integral posterior map: the exact limit of the order-free NAO, with its error."""

from dataclasses import replace

import torch
from torch import Tensor

from kernelmap.core.context import Context
from kernelmap.core.domain import ContextShape
from kernelmap.maps.nao.set_nao.options import SpectralOptions
from kernelmap.maps.nao.set_nao.tokens import Tokens
from kernelmap.maps.probabilistic import ProbabilisticMap
from kernelmap.maps.registry import register
from kernelmap.posterior.integral.loss import PredictiveLoss
from kernelmap.posterior.integral.matrix_normal import Covariance, Gram, MatrixNormal
from kernelmap.posterior.integral.posterior import IntegralPosterior
from kernelmap.posterior.integral.prior import IntegralPrior

NOISE_LEVELS = (0.0, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3)
"""Relative noise on f, beyond that of the training systems, that is tried."""


@register("integral-posterior")
class IntegralPosteriorMap(ProbabilisticMap):
    """K(x, y) with a learned matrix-normal prior, conditioned exactly on the pairs:

    K = s m + (posterior mean of what m does not explain) ,  by C_x and the d x d matrix S = Uᵀ diag(h) C_y diag(h) U
    """

    Options = SpectralOptions
    Loss = PredictiveLoss

    def __init__(self, shape: ContextShape, options: SpectralOptions) -> None:
        super().__init__(shape, options)
        self.prior = IntegralPrior(shape, options)

    def posterior(self, context: Context, noise: float | None = None) -> IntegralPosterior:
        """Condition on the pairs, with a known relative noise on f beyond the prior's, or the likeliest."""
        tokens = Tokens.of(context, self.prior.mean)
        B_x, B_y = self.prior.x.root(context.x), self.prior.y.root(context.y)
        A = B_y.mT @ (tokens.h[:, None] * tokens.U)
        size = A.square().sum(dim=-2, keepdim=True).mean(dim=-1, keepdim=True).sqrt()
        size = torch.where(size > 0, size, 1)
        h_x = self.prior.x.modes.weights(context.x).to(B_x)
        x = Covariance.of(B_x / (h_x[:, None] * B_x.square()).sum().sqrt())
        tau2 = self.prior.tau2.expand(*context.batch_shape, 1, 1)
        # What no kernel explains is a function of x: on a finer mesh its values are more, but say no more.
        s2 = self.prior.noise2 * (context.x.size / self.shape.M) / tau2
        normal = MatrixNormal(x, Gram.of(A / size), tokens.G, s2, tau2)
        extra2 = (_likeliest(normal) if noise is None else torch.full_like(tau2, noise)).square()
        normal = replace(normal, s2=s2 + extra2 / tau2)
        return IntegralPosterior(context, tokens, normal, B_y / size, self.prior.noise2 + extra2)

    def deviation(self) -> Tensor:
        """Squared distance of the learned functions from where they started."""
        return self.prior.deviation()


@torch.no_grad()
def _likeliest(normal: MatrixNormal) -> Tensor:
    """Of the noise levels, the one with the largest evidence."""
    levels = normal.s2.new_tensor(NOISE_LEVELS)
    evidence = [replace(normal, s2=normal.s2 + level**2 / normal.a2).log_evidence for level in levels]
    return levels[torch.stack(evidence).argmax(dim=0)][..., None, None]
