"""What the passes of a conditioning hand on: the pairs as the prior sees them, what was found, what was tried."""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.maps.regression import Regression

NOISE_ODDS = 9.0
"""Log odds of exact data against noise η are NOISE_ODDS log(1 + η / 0.01), and more below 50 pairs: so few can hardly
tell noise from a kernel of an unseen kind."""

PRUNED = 1e-6
"""Cells of smaller probability are dropped."""


class Pairs(NamedTuple):
    """A context as the prior sees it, in units of the tokens' root mean square `unit`.

    A = Φᵀ w U: responses of the features; E = w |jump|: what jumps of the tokens can do; the components' weights omega,
    log odds and white variances sigma; theta: variance of a jump's place in its cell; floor: relative variance of f.
    """

    phi: Float[Tensor, "N R"]
    A: Float[Tensor, "*#b R d"]
    E: Float[Tensor, "*#b N d"]
    f: Float[Tensor, "*#b d"]
    unit: Float[Tensor, "*#b 1"]
    omega: Float[Tensor, "Q *#b R"]
    odds: Float[Tensor, "Q *#b"]
    sigma: Float[Tensor, "Q *#b 1"]
    theta: Tensor
    floor: float

    @property
    def d(self) -> int:
        return self.f.shape[-1]

    @property
    def power(self) -> Float[Tensor, "*#b 1"]:
        return self.f.square().mean(dim=-1, keepdim=True)

    @property
    def prior_variance(self) -> Float[Tensor, "Q *#b N"]:
        """Of the kernel, in units of the amplitude."""
        return self.omega.square() @ self.phi.square().mT


class FirstPass(NamedTuple):
    """The kernel of pass one, and probability and amplitude of each component."""

    kernel: Float[Tensor, "*#b N"]
    share: Float[Tensor, "Q *#b 1"]
    alpha: Float[Tensor, "Q *#b 1"]

    @property
    def amplitude(self) -> Float[Tensor, "Q *#b 1"]:
        return self.share * self.alpha


class Try(NamedTuple):
    """All components conditioned at one noise level, with their scores: log likelihood and log odds."""

    regression: Regression
    score: Float[Tensor, "Q *#b"]
    level: float

    @property
    def likelihood(self) -> Float[Tensor, "*#b"]:
        return self.score.logsumexp(dim=0)


def mixture(tries: list[Try], d: int) -> tuple[Tensor, Regression, Tensor, Tensor]:
    """Share, regression, scale and noise level of all cells that matter."""
    share = torch.cat([found.score for found in tries]).softmax(dim=0)
    matters = (share.flatten(1).amax(dim=1) > PRUNED).split([len(found.score) for found in tries])
    kept = list(zip(tries, matters, strict=True))
    parts = [Regression(*(part[keep] for part in found.regression)) for found, keep in kept]
    cells = Regression(*(torch.cat(part) for part in zip(*parts, strict=True)))
    share = share[torch.cat(matters)]
    levels = torch.cat([share.new_full((int(keep.sum()),), found.level) for found, keep in kept])
    return share / share.sum(dim=0), cells, cells.misfit / d, levels


def noise_penalty(level: float, d: int) -> float:
    return NOISE_ODDS * max(1.0, 50 / d) * math.log1p(level / 0.01)


def evidence(regression: Regression, odds: Tensor, d: int) -> Tensor:
    """Log marginal likelihood of each component, amplitude profiled out, up to a constant."""
    return odds - 0.5 * regression.log_det - 0.5 * d * regression.misfit.log()
