"""The posterior map: a learned prior, conditioned exactly on the pairs at hand."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as nnf
from jaxtyping import Float
from torch import Tensor, nn

from kernelmap.context import Context
from kernelmap.errors import InputError
from kernelmap.kernel import Kernel
from kernelmap.maps.base import KernelMap
from kernelmap.maps.domain import ContextShape
from kernelmap.maps.prior import LearnedPrior, PosteriorOptions
from kernelmap.maps.regression import Regression, regress
from kernelmap.metrics import exploration_measure

NOISE_LEVELS = (0.0, 0.003, 0.01, 0.03, 0.1, 0.3)
"""Relative noise on f that is tried."""

NOISE_ODDS = 6.0
"""Log odds of exact data against noise η are NOISE_ODDS log(1 + η / 0.01)."""

FLOOR = 1e-3
"""Relative error of f that is always allowed for, on the training grid: second-order errors of the quadrature."""


PRUNED = 1e-4
"""Cells of smaller probability are dropped."""


def jumps(U: Float[Tensor, "*b N d"], y: Float[Tensor, " N"]) -> Float[Tensor, "*b N d"]:
    """How far each step of a token exceeds what the slopes beside it explain: a jump within the cell."""
    h = y.diff()[:, None]
    slope = U.diff(dim=-2).abs() / h
    excess = slope[..., 1:-1, :] - torch.maximum(slope[..., :-2, :], slope[..., 2:, :])
    return nnf.pad(excess.clamp(min=0) * h[1:-1], (0, 0, 1, 2))


@dataclass(frozen=True)
class Posterior:
    """A mixture of Gaussian kernels, one for each cell (component and noise level), with probabilities `share`.

    In units of the tokens' root mean square `unit`. The batch *b is that of the context with its M outputs last.
    """

    phi: Float[Tensor, "N R"]
    share: Float[Tensor, "C *#b"]
    cells: Regression
    scale: Float[Tensor, "C *#b"]
    levels: Float[Tensor, " C"]
    errors: "QuadratureError"
    power: Float[Tensor, "*#b 1"]
    unit: Float[Tensor, "*#b 1"]
    context: Context

    @property
    def kernel(self) -> Float[Tensor, "*#b N"]:
        """Posterior mean."""
        return (self.share[..., None] * self.cells.mean).sum(dim=0) @ self.phi.mT

    @property
    def variance(self) -> Float[Tensor, "*#b N"]:
        """Posterior variance of the kernel at every point, before the band is calibrated."""
        return self._mixed(*self._moments(self.phi.mT))[1]

    @property
    def noise(self) -> Float[Tensor, "*#b"]:
        """The relative noise on f that was found."""
        return torch.tensordot(self.levels, self.share, dims=1)

    def predict(self, U: Float[Tensor, "*#b N n"]) -> tuple[Float[Tensor, "*#b n"], Float[Tensor, "*#b n"]]:
        """Mean and variance of the responses to new inputs, errors of measurement and quadrature included."""
        mean, variance = self._mixed(*self.response_moments(U / self.unit[..., None]))
        return mean * self.unit, variance * self.unit.square()

    def response_moments(
        self, U: Float[Tensor, "*#b N n"]
    ) -> tuple[Float[Tensor, "C *#b n"], Float[Tensor, "C *#b n"]]:
        """Mean and variance in every cell, for inputs in units of `unit`."""
        weights = self.context.y.value_weights.to(U)[:, None]
        means, variances = self._moments(self.phi.mT @ (weights * U))
        E = weights * jumps(U, self.context.y.points[:, 0].to(U))
        noise = (
            self.errors.variance(E, self.kernel)
            + self.levels.square().reshape(-1, *[1] * (means.ndim - 1)) * self.power
        )
        return means, variances + self.scale[..., None] * noise

    def sample(self, count: int, generator: torch.Generator | None = None) -> Float[Tensor, "count N"]:
        """Kernels drawn from the posterior of one system with one output."""
        share, scale, cells = self.share.flatten(), self.scale.flatten(), self.cells
        chosen = torch.multinomial(share, count, replacement=True, generator=generator)
        z = torch.randn(count, self.phi.shape[1], 1, generator=generator, dtype=self.phi.dtype)
        R = self.phi.shape[1]
        spread = torch.linalg.solve_triangular(cells.factor.reshape(-1, R, R)[chosen].mT, z, upper=True)[..., 0]
        omega, mean = cells.omega.reshape(-1, R)[chosen], cells.mean.reshape(-1, R)[chosen]
        return (mean + scale[chosen].sqrt()[:, None] * omega * spread) @ self.phi.mT

    def _moments(self, X: Float[Tensor, "*#b R n"]) -> tuple[Tensor, Tensor]:
        means = (self.cells.mean[..., None, :] @ X)[..., 0, :]
        return means, self.scale[..., None] * self.cells.variance(X)

    def _mixed(self, means: Tensor, variances: Tensor) -> tuple[Tensor, Tensor]:
        share = self.share[..., None]
        mean = (share * means).sum(dim=0)
        return mean, (share * (variances + (means - mean).square())).sum(dim=0)


class QuadratureError(NamedTuple):
    """Variance of f's error from the jumps E of its tokens: θ² (K E)² + v E² + constant."""

    theta: Tensor
    v: Float[Tensor, "*#b N"]
    constant: Float[Tensor, "*#b 1"]

    def variance(self, E: Float[Tensor, "*#b N n"], kernel: Float[Tensor, "*#b N"]) -> Float[Tensor, "*#b n"]:
        of_kernel = (kernel[..., None, :] @ E)[..., 0, :]
        return self.theta * of_kernel.square() + (self.v[..., None, :] @ E.square())[..., 0, :] + self.constant


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
        if len(shape.y.low) != 1:
            raise InputError(f"the posterior map's features are functions of one coordinate, got {len(shape.y.low)}.")
        self.prior = LearnedPrior(options)
        self.log_sigma = nn.Parameter(torch.tensor(math.log(0.003)))
        self.log_theta = nn.Parameter(torch.tensor(math.log(0.2)))
        self.log_kept = nn.Parameter(torch.tensor(math.log(0.1)))
        self.register_buffer("band", torch.zeros(3))

    def check_pairs(self, d: int) -> None:
        if d < 2:
            raise InputError(f"a kernel cannot be told from {d} pair(s); measure at least 2, better 30.")

    def standardise(self, u: Tensor, f: Tensor) -> None:
        """Nothing to do: every context is measured by its own scale."""

    def kernel(self, context: Context) -> Kernel:
        return Kernel(self.posterior(context).kernel, context.y, context.x)

    def posterior(self, context: Context, levels: tuple[float, ...] = NOISE_LEVELS) -> Posterior:
        """Condition on the pairs, trying these relative noise levels."""
        phi = self.features(context)
        weights = context.y.value_weights.to(phi)[:, None]
        unit = context.U.square().mean(dim=(-2, -1)).sqrt()[..., None, None]
        U, f = context.U / unit, context.F / unit
        A, E = (phi.mT @ (weights * U))[..., None, :, :], weights * jumps(U, context.y.points[:, 0].to(U))
        E = E[..., None, :, :]
        omega = self.prior.weights().reshape(-1, *[1] * (f.ndim - 1), phi.shape[1])
        odds = self.prior.log_odds.log_softmax(dim=0).reshape(-1, *[1] * (f.ndim - 1))
        theta, sigma, kept = (2 * self.log_theta).exp(), (2 * self.log_sigma).exp(), self.log_kept.exp()
        floor = FLOOR**2 * max(1.0, self.coarseness(context)) ** 4
        power = f.square().mean(dim=-1, keepdim=True)

        # Pass one, in units of the amplitude. Components scaled to the same variance of f share the Gram matrix.
        own = (omega.square() * A.square().mean(dim=-1)).sum(dim=-1, keepdim=True)
        omega = omega / own.sqrt()
        prior_variance = omega.square() @ phi.square().mT
        jump_error = theta * (prior_variance[..., None, :] @ E.square())[..., 0, :].mean(dim=0)
        tried = [
            regress(A, jump_error + sigma + floor + level**2, f, omega)
            for level in ((0.0, 0.04) if len(levels) > 1 else levels)
        ]
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
            theta, kept * theta * (amplitude * prior_variance).sum(dim=0), sigma * amplitude.sum(dim=0) + floor * power
        )
        noise = errors.variance(E, first)
        omega = omega * alpha.sqrt()[..., None]
        cells = [regress(A, noise + level**2 * power, f, omega) for level in levels]
        prior_odds = torch.tensor([NOISE_ODDS * math.log1p(level / 0.01) for level in levels]).to(f)
        log_share = torch.cat([evidence(r, odds, context.d) - o for r, o in zip(cells, prior_odds, strict=True)])
        joined = Regression(*(torch.cat(parts) for parts in zip(*cells, strict=True)))
        level_of = torch.tensor(levels).to(f).repeat_interleave(len(omega))
        if not torch.is_grad_enabled():
            share = log_share.softmax(dim=0).flatten(1).amax(dim=1)
            kept_cells = (share > PRUNED).nonzero()[:, 0]
            joined = Regression(*(part[kept_cells] for part in joined))
            log_share, level_of = log_share[kept_cells], level_of[kept_cells]
        scale = joined.misfit / f.shape[-1]
        share = log_share.softmax(dim=0)
        return Posterior(phi, share, joined, scale, level_of, errors, power, unit[..., 0], context)

    def standard_deviation(self, posterior: Posterior) -> Float[Tensor, "*#b N"]:
        """The calibrated standard deviation of the kernel at every point."""
        context = posterior.context
        factor = torch.exp(self.band[0] + self.band[1] * max(0.0, math.log(50 / context.d)))
        rho = exploration_measure(context.U.mT, context.y)[..., None, :] * context.y.value_weights.to(posterior.phi)
        rms = ((rho * posterior.kernel.square()).sum(dim=-1, keepdim=True)).sqrt()
        return (factor.square() * posterior.variance.clamp(min=0) + (self.band[2] * rms).square()).sqrt()

    def features(self, context: Context) -> Float[Tensor, "N R"]:
        low, high = self.shape.y.low[0], self.shape.y.high[0]
        position = (context.y.points[:, 0] - low) / (high - low)
        return self.prior.features(position.to(self.u_std)).repeat(context.y.components, 1)

    def coarseness(self, context: Context) -> float:
        """The grid's spacing as a multiple of that of the training grid."""
        trained = (self.shape.y.high[0] - self.shape.y.low[0]) / (self.shape.N / self.shape.y.components - 1)
        return float(context.y.weights.mean()) / trained


def evidence(regression: Regression, odds: Tensor, d: int) -> Tensor:
    """Log marginal likelihood of each component, amplitude profiled out, up to a constant."""
    return odds - 0.5 * regression.log_det - 0.5 * d * regression.misfit.log()
