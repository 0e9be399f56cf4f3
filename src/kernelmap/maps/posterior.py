"""The posterior map: a learned prior, conditioned exactly on the pairs at hand."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from kernelmap.context import Context
from kernelmap.errors import InputError
from kernelmap.kernel import Kernel
from kernelmap.maps.base import KernelMap
from kernelmap.maps.domain import ContextShape
from kernelmap.maps.mixture import Posterior, QuadratureError, jumps
from kernelmap.maps.passes import FirstPass, Pairs, Try, evidence, mixture, noise_penalty
from kernelmap.maps.prior import LearnedPrior, PosteriorOptions
from kernelmap.maps.regression import regress
from kernelmap.metrics import exploration_measure

NOISE_LEVELS = (0.0, 0.003, 0.01, 0.03, 0.1, 0.3)
"""Relative noise on f that is tried."""

FIRST_LEVELS = (0.0, 0.03)
"""Tried first: where exact data are clearly likelier, higher levels are not tried."""

REFINED = (0.55, 1.8)
"""Factors on the best level, tried last."""

CLEAR = 12.0
"""In units of log likelihood."""

FLOOR = 1e-3
"""Relative error of f that is always allowed for, on the training grid: second-order errors of the quadrature."""

ROUGH_NOISE = 0.04
"""The noise level tried in pass one besides none."""

BAND_FACTOR, BAND_FEW_PAIRS, BAND_FLOOR = 0.1, 1.6, 0.004
"""The band: log of the factor on the standard deviation, the factor's growth below 50 pairs, and the least
standard deviation as a share of the kernel's root mean square. Chosen on systems left out of training."""


class PosteriorMap(KernelMap):
    """K ~ Σ_q π_q N(0, α C_q) with C_q = Φ diag(ω_q²) Φᵀ, conditioned on F = K diag(w) U + e.

    The amplitude α is profiled out, and the component q and the noise on f are weighed by the context's own likelihood.
    The error e of data without noise is that of the quadrature: where a token jumps within a cell, the sum is off by
    about K(y) jump h θ with an unknown |θ| <= 1/2. Pass one takes the prior's variance of K there, pass two the K just
    found. It takes any number of pairs in any order, any grid of its domain and any scale of u and f.
    """

    Options = PosteriorOptions

    def __init__(self, shape: ContextShape, options: PosteriorOptions) -> None:
        super().__init__(shape, options)
        if len(shape.y.low) != 1 or shape.y.components != 1:
            raise InputError(
                "the posterior map's features are functions of one coordinate with one component, "
                f"got {len(shape.y.low)} coordinate(s) and {shape.y.components} component(s)."
            )
        self.prior = LearnedPrior(options)
        self.log_theta = nn.Parameter(torch.tensor(math.log(0.2)))
        self.log_kept = nn.Parameter(torch.tensor(math.log(0.1)))

    def check_pairs(self, d: int) -> None:
        if d < 2:
            raise InputError(f"a kernel cannot be told from {d} pair(s); measure at least 2, better 30.")

    def check_context(self, context: Context) -> None:
        super().check_context(context)
        y = context.y.points[:, 0]
        if len(y) < 4 or not (y.diff() > 0).all():
            raise InputError("the grid y needs at least 4 points in increasing order; sort them, and the rows of U.")

    def standardise(self, u: Tensor, f: Tensor) -> None:
        """Nothing to do: every context is measured by its own scale."""

    def kernel(self, context: Context) -> Kernel:
        return Kernel(self.posterior(context).kernel, context.y, context.x)

    def conditioned(self, mean: Kernel, context: Context) -> Kernel:
        """Another map's kernel as prior mean, corrected by what the pairs say against it."""
        residual = Context._trusted(context.U, context.F - mean.apply(context.U), context.y, context.x)
        return Kernel(mean.values + self.posterior(residual).kernel, context.y, context.x)

    def posterior(self, context: Context, levels: tuple[float, ...] = NOISE_LEVELS) -> Posterior:
        """Condition on the pairs, trying these relative noise levels."""
        pairs = self.pairs(context)
        first = self.first_pass(pairs, (0.0, ROUGH_NOISE) if len(levels) > 1 else levels)
        errors = QuadratureError(
            pairs.theta,
            self.log_kept.exp() * pairs.theta * (first.amplitude * pairs.prior_variance).sum(dim=0),
            (first.amplitude * pairs.sigma).sum(dim=0) + pairs.floor * pairs.power,
        )
        tries = self.second_pass(pairs, first, errors.variance(pairs.E, first.kernel), levels)
        return Posterior(pairs.phi, *mixture(tries, context.d), errors, pairs.power, pairs.unit, context)

    def pairs(self, context: Context) -> Pairs:
        """The context as the prior sees it."""
        phi = self.features(context)
        weights = context.y.value_weights.to(phi)[:, None]
        unit = context.U.square().mean(dim=(-2, -1)).sqrt()[..., None, None]
        U, f = context.U / unit, context.F / unit
        column = (-1, *[1] * (f.ndim - 1))
        return Pairs(
            phi=phi,
            A=(phi.mT @ (weights * U))[..., None, :, :],
            E=(weights * jumps(U, context.y.points[:, 0].to(U)))[..., None, :, :],
            f=f,
            unit=unit,
            omega=self.prior.weights().reshape(*column, phi.shape[1]),
            odds=self.prior.log_odds.log_softmax(dim=0).reshape(column),
            sigma=self.prior.white_variance().reshape(*column, 1),
            theta=(2 * self.log_theta).exp(),
            floor=FLOOR**2 * max(1.0, self.coarseness(context)) ** 4,
        )

    def first_pass(self, pairs: Pairs, levels: tuple[float, ...]) -> FirstPass:
        """In units of the amplitude: with the error that jumps make in a kernel of each component."""
        A, omega = pairs.A, pairs.omega
        own = (omega.square() * A.square().mean(dim=-1)).sum(dim=-1, keepdim=True)
        of_jumps = pairs.theta * (pairs.prior_variance[..., None, :] @ pairs.E.square())[..., 0, :]
        noise = of_jumps + pairs.sigma + pairs.floor * own
        tries = [regress(A, noise + level**2 * own, pairs.f, omega) for level in levels]
        scores = torch.stack([evidence(found, pairs.odds, pairs.d) for found in tries])
        best = scores.argmax(dim=0, keepdim=True)
        misfit = torch.stack([found.misfit for found in tries]).gather(0, best)[0]
        means = torch.stack([found.mean for found in tries])
        mean = means.gather(0, best[..., None].expand(1, *means.shape[1:]))[0]
        share = scores.gather(0, best)[0].softmax(dim=0)[..., None]
        return FirstPass((share * mean).sum(dim=0) @ pairs.phi.mT, share, misfit[..., None] / pairs.d)

    def second_pass(
        self, pairs: Pairs, first: FirstPass, noise: Float[Tensor, "*#b d"], levels: tuple[float, ...]
    ) -> list[Try]:
        """In units of f: with the error that jumps make in the kernel of pass one, and noise of several levels."""
        omega = pairs.omega * first.alpha.sqrt()

        def attempt(level: float) -> Try:
            found = regress(pairs.A, noise + level**2 * pairs.power, pairs.f, omega)
            return Try(found, evidence(found, pairs.odds, pairs.d) - noise_penalty(level, pairs.d), level)

        tries = [attempt(level) for level in levels if level in FIRST_LEVELS]
        others = [level for level in levels if level not in FIRST_LEVELS]
        if len(tries) > 1 and bool((tries[0].likelihood - tries[1].likelihood > CLEAR).all()):
            return tries + [attempt(level) for level in others[:1]]
        tries += [attempt(level) for level in others]
        best = max(tries, key=lambda found: float(found.likelihood.detach().sum())).level
        return tries + [attempt(best * factor) for factor in REFINED if best > 0]

    def standard_deviation(self, posterior: Posterior) -> Float[Tensor, "*#b N"]:
        """The calibrated standard deviation of the kernel at every point."""
        context = posterior.context
        factor = math.exp(BAND_FACTOR + BAND_FEW_PAIRS * max(0.0, math.log(50 / context.d)))
        rho = exploration_measure(context.U.mT, context.y)[..., None, :] * context.y.value_weights.to(posterior.phi)
        rms = ((rho * posterior.kernel.square()).sum(dim=-1, keepdim=True)).sqrt()
        return (factor**2 * posterior.variance.clamp(min=0) + (BAND_FLOOR * rms).square()).sqrt()

    def features(self, context: Context) -> Float[Tensor, "N R"]:
        low, high = self.shape.y.low[0], self.shape.y.high[0]
        position = (context.y.points[:, 0] - low) / (high - low)
        return self.prior.features(position.to(self.u_std))

    def coarseness(self, context: Context) -> float:
        """The grid's spacing as a multiple of that of the training grid."""
        trained = (self.shape.y.high[0] - self.shape.y.low[0]) / (self.shape.N - 1)
        return float(context.y.weights.mean()) / trained
