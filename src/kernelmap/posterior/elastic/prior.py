"""What media look like: a learned Gaussian for the logarithms of their cells' stiffnesses."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from kernelmap.posterior.elastic.medium import Medium

NUGGET = 1e-3
"""Fraction of the variance that is independent from cell to cell: it keeps the covariance regular."""


class MediumPrior(nn.Module):
    """θ = log c ~ N(log c₀ + m, s² exp(-|x - x'| / ℓ)), for the uniform stiffness c₀ that responds as strongly as u.

    mean, deviation, length: m, s, and ℓ in units of the longer side of the mesh. poisson: Poisson's ratio of all
    cells. noise: the error of a response, relative to its norm, that tells as much about the medium as the real one,
    which is larger, but alike at neighbouring points.
    """

    def __init__(self) -> None:
        super().__init__()
        self.mean = nn.Parameter(torch.tensor(0.0))
        self.deviation = nn.Parameter(torch.tensor(2.0))
        self.length = nn.Parameter(torch.tensor(0.1))
        self.poisson = nn.Parameter(torch.tensor(0.3))
        self.noise = nn.Parameter(torch.tensor(0.01))

    def covariance(self, medium: Medium) -> Float[Tensor, "cells cells"]:
        """Of θ."""
        smooth = (-torch.cdist(medium.centres, medium.centres) / self.length.double()).exp()
        independent = NUGGET * torch.eye(medium.count, dtype=torch.float64, device=smooth.device)
        return self.deviation.double().square() * (smooth + independent)
