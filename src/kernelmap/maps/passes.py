"""What the passes of a conditioning hand on: the pairs as the prior sees them, what was found, what was tried."""

import math
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from kernelmap.context import Context
from kernelmap.maps.mixture import THETA, Jumps, Posterior, QuadratureError
from kernelmap.maps.prior import PriorOnGrid
from kernelmap.maps.regression import Regression

NOISE_ODDS = 9.0
"""Log odds of exact data against noise η are NOISE_ODDS log(1 + η / 0.01), and more below 50 pairs: so few can hardly
tell noise from a kernel of an unseen kind."""

UNEXPLAINED = 1.5
"""So many times the misfit that is expected. Medians on systems left out of training, for 302 to 30 pairs: 0.4 to 0.7
for exact data, 6 to 3 at 0.3 % noise."""

PRUNED = 1e-6
"""Cells of smaller probability are dropped."""


class Pairs(NamedTuple):
    """A context as the features see it.

    A = Φᵀ w U: responses of the features; the tokens' jumps, and their norms at every point; power: mean square of f;
    errors: variances of f from other causes than jumps; theta: variance of a jump's place in its cell; thorough: with
    errors of each component's own in pass one, and of the likeliest size.
    """

    A: Float[Tensor, "*#b R d"]
    f: Float[Tensor, "*#b d"]
    jumps: Jumps
    norms: Float[Tensor, "*#bu N"]
    power: Float[Tensor, "*#b 1"]
    errors: Float[Tensor, "*#b d"] | None
    theta: Tensor | float
    thorough: bool

    @classmethod
    def of(
        cls, context: Context, prior: PriorOnGrid, errors: Float[Tensor, "*#b d"] | None, theta: Tensor | None = None
    ) -> "Pairs":
        return cls(
            A=(prior.weighted @ context.U)[..., None, :, :],
            f=context.F,
            jumps=Jumps.of(context.U, context.y),
            norms=torch.linalg.vector_norm(context.U, dim=-1),
            power=context.F.square().mean(dim=-1, keepdim=True),
            errors=errors,
            theta=THETA if theta is None else theta,
            thorough=theta is not None,
        )

    @property
    def d(self) -> int:
        return self.f.shape[-1]


class Kinds(NamedTuple):
    """The prior's kinds of kernels: their weights omega and log odds; in units of their amplitude the variance of K,
    what jumps make of it (Σ variance (jump h)²), and the variance sigma of a white error.
    """

    omega: Float[Tensor, "Q *#b R"]
    odds: Float[Tensor, "Q *#b"]
    variance: Float[Tensor, "Q *#b N"]
    jumped: Float[Tensor, "Q *#b d"]
    sigma: Float[Tensor, "Q *#b 1"]

    @classmethod
    def of(cls, prior: PriorOnGrid, pairs: Pairs, exact: Bool[Tensor, "*#b"] | None = None) -> "Kinds":
        """The learned kinds and, where pairs are not exact, the smooth one."""
        count = len(prior.odds) - (exact is None)
        column = (count, *[1] * (max(pairs.A.ndim - 1, pairs.f.ndim) - 1))
        odds = prior.odds[:count].reshape(column)
        if exact is not None:
            odds = torch.cat([odds[:-1].expand(-1, *exact.shape), odds[-1:].where(~exact, -math.inf)])
        parts = (prior.omega, prior.variance, prior.white)
        omega, variance, white = (part[:count].reshape(*column, -1) for part in parts)
        sigma = white * pairs.norms.square().mean(dim=-1)[..., None, None] / pairs.d
        return cls(omega, odds, variance, pairs.jumps.sum(variance), sigma)


class FirstPass(NamedTuple):
    """Pass one: the mean of the features' weights, the amplitude alpha of each component, also times its probability,
    and where that is too `large`.
    """

    mean: Float[Tensor, "*#b R"]
    amplitude: Float[Tensor, "Q *#b 1"]
    alpha: Float[Tensor, "Q *#b 1"]
    large: Bool[Tensor, "*#b 1"]


class Try(NamedTuple):
    """All components conditioned at one noise level of each system, with their scores: log likelihood and log odds."""

    regression: Regression
    score: Float[Tensor, "Q *#b"]
    level: Float[Tensor, "*#b"]

    @classmethod
    def at_likeliest_size(
        cls, regression: Regression, odds: Float[Tensor, "Q *#b"], d: int, level: Float[Tensor, "*#b"]
    ) -> "Try":
        """With the errors as large as is likeliest, and against the odds of noise."""
        return cls(regression, profiled_evidence(regression, odds, d) - noise_penalty(level, d), level)

    def only(self, doubtful: Bool[Tensor, "*#b"]) -> "Try":
        """Impossible elsewhere."""
        return self._replace(score=torch.where(doubtful, self.score, -math.inf))

    def likely(self, share: Float[Tensor, "Q *#b"]) -> "Try":
        """The components whose probability matters for any system."""
        components = (share.flatten(1).amax(dim=1) > PRUNED).nonzero()[:, 0]
        cells = Regression(*(part.index_select(0, components) for part in self.regression))
        return self._replace(regression=cells, score=self.score.index_select(0, components))

    def unexplained(self, d: int) -> Bool[Tensor, "*#b"]:
        """Where the misfit is larger than errors of this level make it."""
        return (self.score.softmax(dim=0) * self.regression.misfit).sum(dim=0) > UNEXPLAINED * d

    @property
    def likelihood(self) -> Float[Tensor, "*#b"]:
        return self.score.logsumexp(dim=0)


class SecondPass(NamedTuple):
    """Errors of f from the kernel of pass one, what was tried with them, and where exact data would look so."""

    errors: QuadratureError
    tries: list[Try]
    plausible: Bool[Tensor, "*#b"]

    def posterior(self, prior: PriorOnGrid, pairs: Pairs, context: Context) -> Posterior:
        """In memory of its own, as `mixture` makes it, too: tensors of inference mode cannot be used with gradients."""
        errors = self.errors._replace(v=self.errors.v.clone(), constant=self.errors.constant.clone())
        share, cells, scale, levels = mixture(self.tries, pairs.d)
        return Posterior(
            phi=prior.phi,
            rows=prior.rows,
            share=share,
            cells=cells,
            scale=scale,
            levels=levels,
            errors=errors,
            power=pairs.power.clone(),
            norms=pairs.norms.clone(),
            context=context,
        )


def mixture(tries: list[Try], d: int) -> tuple[Tensor, Regression, Tensor, Tensor]:
    """Share, regression, scale and noise level of all cells that matter."""
    share = torch.cat([found.score for found in tries]).softmax(dim=0)
    shares = share.split([len(found.score) for found in tries])
    kept = [found.likely(share) for found, share in zip(tries, shares, strict=True)]
    cells = kept[0].regression
    if len(kept) > 1:
        cells = Regression(*map(torch.cat, zip(*(found.regression for found in kept), strict=True)))
    levels = torch.cat([found.level.expand_as(found.score) for found in kept])
    return torch.cat([found.score for found in kept]).softmax(dim=0), cells, cells.misfit / d, levels


def noise_penalty(level: Float[Tensor, "*#b"], d: int) -> Float[Tensor, "*#b"]:
    return NOISE_ODDS * max(1.0, 50 / d) * torch.log1p(level / 0.01)


def evidence(regression: Regression, odds: Float[Tensor, "Q *#b"]) -> Float[Tensor, "Q *#b"]:
    """Log marginal likelihood of each component, up to a constant."""
    return odds - 0.5 * regression.log_det - 0.5 * regression.misfit


def profiled_evidence(regression: Regression, odds: Float[Tensor, "Q *#b"], d: int) -> Float[Tensor, "Q *#b"]:
    """The same with amplitude and errors scaled together, as is likeliest."""
    return odds - 0.5 * regression.log_det - 0.5 * d * regression.misfit.log()
