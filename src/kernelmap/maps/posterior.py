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
from kernelmap.maps.prior import LearnedPrior, PosteriorOptions
from kernelmap.maps.regression import Regression, regress
from kernelmap.metrics import exploration_measure

NOISE_LEVELS = (0.0, 0.003, 0.01, 0.03, 0.1, 0.3)
"""Relative noise on f that is tried."""

FIRST_LEVELS = (0.0, 0.03)
"""Tried first: where exact data are clearly likelier, higher levels are not tried."""

REFINED = (0.55, 1.8)
"""Factors on the best level, tried last."""

CLEAR = 12.0
"""In units of log likelihood."""

NOISE_ODDS = 9.0
"""Log odds of exact data against noise η are NOISE_ODDS log(1 + η / 0.01), and more below 50 pairs: so few can hardly
tell noise from a kernel of an unseen kind."""

FLOOR = 1e-3
"""Relative error of f that is always allowed for, on the training grid: second-order errors of the quadrature."""


ROUGH_NOISE = 0.04
"""The noise level tried in pass one besides none."""

BAND_FACTOR, BAND_FEW_PAIRS, BAND_FLOOR = 0.1, 1.6, 0.004
"""The band: log of the factor on the standard deviation, the factor's growth below 50 pairs, and the least
standard deviation as a share of the kernel's root mean square. Chosen on systems left out of training."""

PRUNED = 1e-6
"""Cells of smaller probability are dropped."""


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
        phi = self.features(context)
        weights = context.y.value_weights.to(phi)[:, None]
        unit = context.U.square().mean(dim=(-2, -1)).sqrt()[..., None, None]
        U, f = context.U / unit, context.F / unit
        A, E = (phi.mT @ (weights * U))[..., None, :, :], weights * jumps(U, context.y.points[:, 0].to(U))
        E = E[..., None, :, :]
        column = (-1, *[1] * (f.ndim - 1))
        omega = self.prior.weights().reshape(*column, phi.shape[1])
        odds = self.prior.log_odds.log_softmax(dim=0).reshape(column)
        theta, kept = (2 * self.log_theta).exp(), self.log_kept.exp()
        sigma = self.prior.white_variance().reshape(*column, 1)
        floor = FLOOR**2 * max(1.0, self.coarseness(context)) ** 4
        power = f.square().mean(dim=-1, keepdim=True)

        # Pass one, in units of the amplitude: the error that jumps make in a kernel of each component.
        prior_variance = omega.square() @ phi.square().mT
        own = (omega.square() * A.square().mean(dim=-1)).sum(dim=-1, keepdim=True)
        noise = theta * (prior_variance[..., None, :] @ E.square())[..., 0, :] + sigma
        relative = (0.0, ROUGH_NOISE) if len(levels) > 1 else levels
        tried = [regress(A, noise + (floor + level**2) * own, f, omega) for level in relative]
        scores = torch.stack([evidence(r, odds, context.d) for r in tried])
        best = scores.argmax(dim=0, keepdim=True)
        score = scores.gather(0, best)[0]
        alpha = torch.stack([r.misfit for r in tried]).gather(0, best)[0] / f.shape[-1]
        means = torch.stack([r.mean for r in tried])
        mean = means.gather(0, best[..., None].expand(1, *means.shape[1:]))[0]
        share = score.softmax(dim=0)
        first = (share[..., None] * mean).sum(dim=0) @ phi.mT

        # Pass two, in units of f: the error that jumps make in the kernel just found.
        amplitude = (share * alpha)[..., None]
        errors = QuadratureError(
            theta,
            kept * theta * (amplitude * prior_variance).sum(dim=0),
            (amplitude * sigma).sum(dim=0) + floor * power,
        )
        noise = errors.variance(E, first)
        omega = omega * alpha.sqrt()[..., None]

        def weigh(level: float) -> tuple[Regression, Tensor, float]:
            found = regress(A, noise + level**2 * power, f, omega)
            return found, evidence(found, odds, context.d) - noise_penalty(level, context.d), level

        tries = [weigh(level) for level in levels if level in FIRST_LEVELS]
        clearly_exact = len(tries) > 1 and bool((tries[0][1].logsumexp(0) - tries[1][1].logsumexp(0) > CLEAR).all())
        others = [level for level in levels if level not in FIRST_LEVELS]
        tries += [weigh(level) for level in (others[:1] if clearly_exact else others)]
        if len(tries) > 2 and not clearly_exact:
            best = max(tries, key=lambda found: float(found[1].logsumexp(0).sum()))[2]
            tries += [weigh(best * factor) for factor in REFINED if best > 0]
        return Posterior(phi, *_mixture(tries, f.shape[-1]), errors, power, unit, context)

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
        return self.prior.features(position.to(self.u_std)).repeat(context.y.components, 1)

    def coarseness(self, context: Context) -> float:
        """The grid's spacing as a multiple of that of the training grid."""
        trained = (self.shape.y.high[0] - self.shape.y.low[0]) / (self.shape.N / self.shape.y.components - 1)
        return float(context.y.weights.mean()) / trained


def _mixture(tries: list[tuple[Regression, Tensor, float]], d: int) -> tuple[Tensor, Regression, Tensor, Tensor]:
    """Share, regression, scale and noise level of all cells that matter."""
    share = torch.cat([score for _, score, _ in tries]).softmax(dim=0)
    matters = (share.flatten(1).amax(dim=1) > PRUNED).split([len(score) for _, score, _ in tries])
    parts = [Regression(*(part[keep] for part in found)) for (found, _, _), keep in zip(tries, matters, strict=True)]
    cells = Regression(*(torch.cat(part) for part in zip(*parts, strict=True)))
    share = share[torch.cat(matters)]
    levels = [share.new_full((int(keep.sum()),), level) for (_, _, level), keep in zip(tries, matters, strict=True)]
    return share / share.sum(dim=0), cells, cells.misfit / d, torch.cat(levels)


def noise_penalty(level: float, d: int) -> float:
    return NOISE_ODDS * max(1.0, 50 / d) * math.log1p(level / 0.01)


def evidence(regression: Regression, odds: Tensor, d: int) -> Tensor:
    """Log marginal likelihood of each component, amplitude profiled out, up to a constant."""
    return odds - 0.5 * regression.log_det - 0.5 * d * regression.misfit.log()
