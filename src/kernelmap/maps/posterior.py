"""The posterior map: a learned prior, conditioned exactly on the pairs at hand."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from kernelmap.context import Context
from kernelmap.errors import InputError
from kernelmap.grids import Grid
from kernelmap.kernel import Kernel
from kernelmap.maps.banded import BandedMap
from kernelmap.maps.domain import ContextShape
from kernelmap.maps.mixture import THETA, Jumps, Posterior, QuadratureError
from kernelmap.maps.passes import FirstPass, Kinds, Pairs, SecondPass, Try, evidence, profiled_evidence
from kernelmap.maps.prior import USED, LearnedPrior, PosteriorOptions, PriorOnGrid
from kernelmap.maps.regression import TINY, regress

NOISE_LEVELS = (0.003, 0.01, 0.03, 0.1, 0.3)
"""Relative noise on f that is tried, besides none, where the errors of exact data do not explain the misfit."""

REFINED = (0.55, 1.8)
"""Factors on the best level, tried last."""

FLOOR = 1e-3
"""Relative error of f that is always allowed for."""

ROUGH_NOISE = 0.04
"""The noise level tried in pass one, besides none, where the data would need too large an amplitude without noise."""

LARGE = 10.0
"""Too large an amplitude: the prior then expects responses with so many times the power of those measured."""

BAND_FACTOR, BAND_FEW_PAIRS, BAND_FLOOR = 0.1, 1.0, 0.004
"""The band: log of the factor on the standard deviation, the factor's growth below 50 pairs, and the least
standard deviation as a share of the kernel's root mean square where tokens are large. Chosen on systems left out of
training."""


class PosteriorMap(BandedMap):
    """K ~ Σ_q π_q N(0, α C_q) with C_q = Φ diag(ω_q²) Φᵀ, conditioned on F = K diag(w) U + e.

    The amplitude α is profiled out, and the component q and the noise on f are weighed by the context's own likelihood.
    The error e of data without noise is that of the quadrature: where a token jumps within a cell, the sum is off by
    about K(y) jump h p with an unknown place |p| <= 1/2. Pass one takes the prior's variance of K there, pass two the K
    just found. It takes any number of pairs in any order, any grid of its domain and any scale of u and f.
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
        self.log_kept = nn.Parameter(torch.tensor(math.log(0.1)))

    def check_context(self, context: Context) -> None:
        super().check_context(context)
        y = context.y.points[:, 0]
        if len(y) < 4 or not (y.diff() > 0).all():
            raise InputError("the grid y needs at least 4 points in increasing order; sort them, and the rows of U.")

    def kernel(self, context: Context) -> Kernel:
        return Kernel(self.posterior(context).kernel, context.y, context.x)

    def conditioned(self, mean: Kernel, context: Context) -> Kernel:
        """Another map's kernel as prior mean, corrected by what the pairs say against it."""
        values = mean.values
        residual = Context._trusted(context.U, context.F - mean.apply(context.U), context.y, context.x)
        errors = THETA * Jumps.of(context.U, context.y).sum(values.square())
        return Kernel(values + self.posterior(residual, errors=errors).kernel, context.y, context.x)

    def posterior(self, context: Context, errors: Float[Tensor, "*#b d"] | None = None) -> Posterior:
        """Condition on the pairs; where exact data would not look so, with noise of several levels.

        Only then the smooth kind of kernel takes part: for exact data it has nothing to add. `errors` are variances of
        f from other causes than jumps in the kernel that is looked for.
        """
        prior = self.prior_on(context.y)
        # Without gradients, forward ones included, there is no account of them to keep, which takes small operations
        # much of their time.
        with torch.inference_mode(not torch.is_grad_enabled()):
            pairs = Pairs.of(context, prior, errors)
            found = self._conditioned(pairs, Kinds.of(prior, pairs), prior.phi)
            if not bool(found.plausible.all()):
                kinds = Kinds.of(prior, pairs, exact=found.plausible)
                found = self._conditioned(pairs, kinds, prior.phi, noisy=True)
        return found.posterior(prior, pairs, context)

    def thorough_posterior(self, context: Context, theta: Float[Tensor, ""]) -> Posterior:
        """As the prior is trained: from pairs without noise, with a given variance of a jump's place in its cell.

        All cosines are used, each component has errors of its own in pass one, and errors are of the likeliest size.
        """
        prior = self.prior_on(context.y, thorough=True)
        pairs = Pairs.of(context, prior, None, theta)
        return self._conditioned(pairs, Kinds.of(prior, pairs), prior.phi).posterior(prior, pairs, context)

    def _conditioned(self, pairs: Pairs, kinds: Kinds, phi: Float[Tensor, "N R"], noisy: bool = False) -> SecondPass:
        first = self.first_pass(pairs, kinds, noisy)
        errors = QuadratureError(
            pairs.theta,
            self.log_kept.exp() * pairs.theta * (first.amplitude * kinds.variance).sum(dim=0),
            (first.amplitude * kinds.sigma).sum(dim=0) + FLOOR**2 * pairs.power,
        )
        noise = pairs.jumps.sum(errors.at_jumps(first.mean @ phi.mT)) + errors.constant
        if pairs.errors is not None:
            noise = noise + pairs.errors
        tries = self.second_pass(pairs, kinds, first.alpha, noise, noisy)
        plausible = ~(first.large[..., 0] | tries[0].unexplained(pairs.d))
        return SecondPass(errors, tries, plausible)

    def first_pass(self, pairs: Pairs, kinds: Kinds, noisy: bool) -> FirstPass:
        """With the error that jumps make in a kernel of the prior, relative to the responses that it expects.

        Unless thorough, the components share the mean of their errors, and so one Gram matrix; the amplitude of each is
        then put in proportion, for what an error is to an amplitude is what the misfit tells.
        """
        own = (kinds.omega.square() * pairs.A.square().mean(dim=-1)).sum(dim=-1, keepdim=True)
        each = (pairs.theta * kinds.jumped + kinds.sigma) / own + FLOOR**2
        if pairs.errors is not None:
            each = each + pairs.errors / pairs.power.clamp(min=TINY)
        relative = each if pairs.thorough else (kinds.odds.softmax(dim=0)[..., None] * each).sum(dim=0)
        omega = kinds.omega * own.rsqrt()

        def attempt(level: float) -> tuple[Tensor, Tensor, Tensor]:
            found = regress(pairs.A, relative + level**2, pairs.f, omega)
            return (
                profiled_evidence(found, kinds.odds, pairs.d)[..., None],
                found.misfit[..., None] / pairs.d,
                found.mean,
            )

        score, power, mean = attempt(0.0)
        large = (score.softmax(dim=0) * power).sum(dim=0) > LARGE * pairs.power
        if noisy and bool(large.any()):
            rough = attempt(ROUGH_NOISE)
            better = large & (rough[0] > score)
            score, power, mean = (torch.where(better, *both) for both in zip(rough, (score, power, mean), strict=True))
        share = score.softmax(dim=0)
        alpha = power / own * (relative.log() - each.log()).mean(dim=-1, keepdim=True).exp()
        return FirstPass((share * mean).sum(dim=0), share * alpha, alpha, large)

    def second_pass(
        self,
        pairs: Pairs,
        kinds: Kinds,
        alpha: Float[Tensor, "Q *#b 1"],
        noise: Float[Tensor, "*#b d"],
        noisy: bool,
    ) -> list[Try]:
        """In units of f: with the error that jumps make in the kernel of pass one and, if noisy, several levels more.

        Errors of exact data have a known size. Where they do not explain the pairs, and in training, where little is
        known yet, the size is the likeliest one.
        """
        omega = kinds.omega * alpha.sqrt()
        none = torch.zeros_like(noise[..., 0])
        found = regress(pairs.A, noise, pairs.f, omega)
        if pairs.thorough:
            return [Try.at_likeliest_size(found, kinds.odds, pairs.d, none)]
        exact = Try(found, evidence(found, kinds.odds), none)
        if not noisy:
            return [exact]
        doubtful = exact.unexplained(pairs.d)
        if not bool(doubtful.any()):
            return [exact]

        def attempt(level: Tensor) -> Try:
            found = regress(pairs.A, noise + level.square()[..., None] * pairs.power, pairs.f, omega)
            return Try.at_likeliest_size(found, kinds.odds, pairs.d, level)

        tries = [Try.at_likeliest_size(found, kinds.odds, pairs.d, none)]
        tries += [attempt(none + level) for level in NOISE_LEVELS]
        likeliest = torch.stack([each.likelihood for each in tries]).argmax(dim=0, keepdim=True)
        best = torch.stack([each.level for each in tries]).gather(0, likeliest)[0]
        refined = [attempt(best * factor).only(best > 0) for factor in REFINED]
        return [exact.only(~doubtful)] + [each.only(doubtful) for each in tries + refined]

    def standard_deviation(self, posterior: Posterior) -> Float[Tensor, "*#b N"]:
        """The calibrated standard deviation of the kernel at every point."""
        context = posterior.context
        factor = math.exp(BAND_FACTOR + BAND_FEW_PAIRS * max(0.0, math.log(50 / context.d)))
        looked = posterior.norms[..., None, :] * context.y.value_weights.to(posterior.phi)
        rms = ((looked * posterior.kernel.square()).sum(dim=-1, keepdim=True) / looked.sum(dim=-1, keepdim=True)).sqrt()
        return (factor**2 * posterior.variance.clamp(min=0) + (BAND_FLOOR * rms).square()).sqrt()

    def prior_on(self, y: Grid, thorough: bool = False) -> PriorOnGrid:
        most = (self.prior.options.wide, self.prior.options.near) if thorough else USED
        return self.prior.on_grid(y, self.shape.y.low[0], self.shape.y.high[0], most)
