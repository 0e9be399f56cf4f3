"""What the integral posterior map is trained on: the predictive likelihood of other pairs of the same system."""

import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.core.context import Context, responding
from kernelmap.maps.nao.set_nao.loss import OtherPairsLoss

FARTHEST = 30
"""Standard deviations beyond which a miss teaches nothing."""


class PredictiveLoss(OtherPairsLoss):
    """(U, F) -> -log p(targets | context), per value and in units of f's root mean square, and the pull of the prior.

    A relative error would leave the size of the prior, and with it the error bar, undetermined.
    """

    double_precision = True

    def error(self, context: Context, U: Float[Tensor, "*bu N n"], F: Float[Tensor, "*bf M n"]) -> Float[Tensor, "*bf"]:
        posterior = self.model.posterior(context, noise=0.0)  # pyright: ignore
        mean, std = posterior.predict(U)
        # A context of a few pairs that hardly respond does not say how large other responses are.
        residual = ((F - mean) / std).clamp(-FARTHEST, FARTHEST)
        log_density = -0.5 * residual.square() - (std / posterior.tokens.f_scale).log()
        # A constrained value is predicted exactly and without doubt, whatever is learned.
        return -log_density[..., responding(torch.cat([context.F, F], dim=-1)), :].mean(dim=(-2, -1))
