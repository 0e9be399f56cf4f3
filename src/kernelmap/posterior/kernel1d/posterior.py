"""The posterior of a batch of contexts: of every system and output a fit of its own."""

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.core.context import Context
from kernelmap.core.errors import InputError
from kernelmap.core.kernel import Kernel
from kernelmap.core.places import Places
from kernelmap.core.posterior import ESTIMATES, KernelPosterior, Prediction, check_one_system
from kernelmap.core.state import prefixed, under
from kernelmap.posterior.kernel1d.fit import VALUES_AT_ONCE, Fit
from kernelmap.posterior.kernel1d.measured.nuisance import TREND, columns
from kernelmap.posterior.kernel1d.measured.outliers import OUTLIER
from kernelmap.posterior.kernel1d.mixture import pool
from kernelmap.posterior.kernel1d.state import fit_of, state_of

BISECTIONS = 50


@ESTIMATES.register("kernel1d")
@dataclass(frozen=True)
class Kernel1dPosterior(KernelPosterior):
    """p(K | pairs): mixtures of Gaussians, one for every system and output, in the order of F's leading dimensions.

    `residual` is the relative residual where the pairs are not known any more.
    """

    fits: list[Fit]
    context: Context
    residual: Float[Tensor, ""] | None = None

    @property
    def mean(self) -> Float[Tensor, "*b M N"]:
        return self._kernel_moments[0]

    @property
    def std(self) -> Float[Tensor, "*b M N"]:
        return self._kernel_moments[1]

    @cached_property
    def _kernel_moments(self) -> tuple[Tensor, Tensor]:
        found = [(fit.units.kernel, *pool(*fit.kernel_moments())) for fit in self.fits]
        stds = self._stacked([unit * variance.sqrt() for unit, _, variance in found])
        return self._stacked([unit * mean for unit, mean, _ in found]), stds

    def interval(self, level: float = 0.95) -> tuple[Float[Tensor, "*b M N"], Float[Tensor, "*b M N"]]:
        """Quantiles of the mixture at every point."""
        if not 0 < level < 1:
            raise InputError(f"the level of an interval lies between 0 and 1, got {level}.")
        low, high = (
            self._stacked([fit.units.kernel * quantile(*fit.kernel_moments(), p) for fit in self.fits])
            for p in ((1 - level) / 2, (1 + level) / 2)
        )
        return low, high

    def cdf(self, values: Float[Tensor, "*b M N"]) -> Float[Tensor, "*b M N"]:
        rows = values.expand_as(self.mean).reshape(len(self.fits), -1)
        found = [below(*fit.kernel_moments(), row / fit.units.kernel) for fit, row in zip(self.fits, rows, strict=True)]
        return self._stacked(found)

    def predict(self, U: Float[Tensor, "*b N n"]) -> Prediction:
        return self.predict_at(U, None)

    def predict_at(self, U: Float[Tensor, "*b N n"], places: Places | None) -> Prediction:
        batch, M = self.context.batch_shape, self.context.x.size
        inputs = U.expand(*batch, *U.shape[-2:]).reshape(-1, *U.shape[-2:]).to(torch.float64)
        found = []
        for i, fit in enumerate(self.fits):
            Z = columns(fit.nuisance, U.shape[-1], places).to(inputs)
            at_once = max(1, VALUES_AT_ONCE // U.shape[-2])
            parts = [
                pool(*fit.response_moments(*some))
                for some in zip(inputs[i // M].split(at_once, dim=1), Z.split(at_once), strict=True)
            ]
            found.append((fit.units.f, *(torch.cat(part) for part in zip(*parts, strict=True))))
        stds = self._stacked([unit * variance.sqrt() for unit, _, variance in found])
        return Prediction(self._stacked([unit * mean for unit, mean, _ in found]), stds)

    def respond(self, U: Float[Tensor, "*#b N n"]) -> Float[Tensor, "*b M n"]:
        """The mean kernel applied, with the engine's weights at the last point."""
        first = self.fits[0]
        return (self.mean * (first.units.length * first.y.value_weights)) @ U.to(torch.float64)

    def beside_kernel(self, count: int, places: Places | None) -> Float[Tensor, "*b M n"]:
        rows = []
        for fit in self.fits:
            mean, _ = nuisance_moments(fit)
            rows.append(fit.units.f * columns(fit.nuisance, count, places).to(mean) @ mean)
        return self._stacked(rows)

    @property
    def whitened(self) -> Context | None:
        """The pairs with white errors, and nothing beside the kernel's response; None where they are not known."""
        T, context = self.fits[0].T, self.context
        if self.residual is not None or (T is not None and T.shape[1] != context.d):
            return None
        if T is None:
            return context
        return Context.unchecked(context.U @ T.mT, context.F @ T.mT, context.y, context.x)

    @property
    def nuisance(self) -> dict[str, tuple[float, float]]:
        """Of the first output; a trend is the slope of f per unit of time or place."""
        first = self.fits[0]
        if first.nuisance is None:
            return {}
        names, clock = first.nuisance.names, first.nuisance.clock
        mean, variance = nuisance_moments(first)
        scales = [first.units.f / (clock.half if name == TREND else 1.0) for name in names]
        return {
            name: (scale * float(m), scale * float(v.sqrt()))
            for name, scale, m, v in zip(names, scales, mean, variance, strict=True)
        }

    @property
    def error_time(self) -> float | None:
        correlation = self.fits[0].correlation
        return None if correlation is None else correlation.tau

    @property
    def through_kernel(self) -> float | None:
        return self.fits[0].through_kernel

    @property
    def outliers(self) -> dict[int, float]:
        found: dict[int, float] = {}
        for fit in self.fits:
            if fit.residuals is not None and len(fit.residuals) == self.context.d:
                far = (fit.residuals.abs() > OUTLIER).nonzero()[:, 0].tolist()
                found |= {pair: float(fit.residuals[pair]) for pair in far}
        return dict(sorted(found.items(), key=lambda pair: -abs(pair[1])))

    def sample(self, count: int, generator: torch.Generator | None = None) -> Float[Tensor, "count M N"]:
        check_one_system(self.context)
        return torch.stack([torch.stack([draw(fit, generator) for fit in self.fits]) for _ in range(count)])

    @property
    def relative_residual(self) -> Float[Tensor, "*b"]:
        if self.residual is not None:
            return self.residual
        F = self.context.F.expand(*self.context.batch_shape, *self.context.F.shape[-2:]).reshape(-1, self.context.d)
        F = F - self.beside_kernel(self.context.d, self.context.places).reshape(F.shape)
        units = F.new_tensor([fit.units.f for fit in self.fits])
        unit = units.max()
        errors = torch.stack([residual_variance(fit) for fit in self.fits]) * (units / unit).square()
        sizes = (F / unit).square().mean(dim=-1)
        shape = (*self.context.batch_shape, -1)
        return (errors.reshape(shape).sum(dim=-1) / sizes.reshape(shape).sum(dim=-1)).sqrt()

    def state(self) -> dict[str, Tensor]:
        check_one_system(self.context)
        parts = [prefixed(f"output{i}", state_of(fit)) for i, fit in enumerate(self.fits)]
        residual = {"residual": self.relative_residual.reshape(())}
        return {name: value for part in (residual, *parts) for name, value in part.items()}

    @classmethod
    def restored(cls, state: dict[str, Tensor], kernel: Kernel, d: int) -> "Kernel1dPosterior":
        fits = [fit_of(under(state, f"output{i}"), kernel.y) for i in range(kernel.x.size)]
        return cls(fits, Context.without_pairs(kernel.y, kernel.x, d), under(state, "")["residual"])

    @property
    def log_evidence(self) -> float:
        """log p(f | u) of all pairs in units of f's size, to compare descriptions of the same responses."""
        return sum(fit.mixture.log_evidence for fit in self.fits)

    @property
    def informed_directions(self) -> int:
        """Of the likeliest component: eigendirections with γ Λ > 1."""
        best = max(self.fits[0].mixture.components, key=lambda component: float(component.given.weights.max())).given
        return int((best.gamma[best.weights.argmax()] * best.eigenvalues > 1).sum())

    @property
    def variance_reduction(self) -> Float[Tensor, "*b M N"]:
        return self._stacked([reduction(fit) for fit in self.fits])

    def _stacked(self, rows: list[Tensor] | tuple[Tensor, ...]) -> Tensor:
        return torch.stack(list(rows)).reshape(*self.context.batch_shape, self.context.x.size, -1)


def below(
    weights: Float[Tensor, " C"], means: Float[Tensor, "C N"], variances: Float[Tensor, "C N"], values: Tensor
) -> Float[Tensor, " N"]:
    """Probability, under a mixture of Gaussians at every point, of smaller values."""
    return weights @ torch.special.ndtr((values - means) / variances.sqrt().clamp(min=torch.finfo(means.dtype).tiny))


def quantile(
    weights: Float[Tensor, " C"], means: Float[Tensor, "C N"], variances: Float[Tensor, "C N"], p: float
) -> Float[Tensor, " N"]:
    """Of a mixture of Gaussians at every point, by bisection."""
    std = variances.sqrt()
    low, high = (means - 9 * std).amin(dim=0), (means + 9 * std).amax(dim=0)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        less = below(weights, means, variances, middle) < p
        low, high = torch.where(less, middle, low), torch.where(less, high, middle)
    return (low + high) / 2


def draw(fit: Fit, generator: torch.Generator | None) -> Float[Tensor, " N"]:
    """A kernel from the mixture: component and ratio γ by their weights, then Gaussian directions, seen and unseen."""
    components = fit.mixture.components
    component = components[
        int(torch.multinomial(torch.stack([c.given.weights.sum() for c in components]), 1, generator=generator))
    ]
    given, index = component.given, int(torch.multinomial(component.given.weights, 1, generator=generator))
    mean, variance = (part[index] for part in given.directions())
    z = torch.randn(len(given.omega), generator=generator, dtype=torch.float64)
    seen = mean + variance.sqrt() * torch.randn(len(mean), generator=generator, dtype=torch.float64)
    z, V = (given.kappa[index] * given.gamma[index]).sqrt() * z, given.map / given.omega[:, None]
    return fit.units.kernel * (
        fit.mixture.features.blocks[component.block] @ (given.omega * (z + V @ (seen - V.mT @ z)))
    )


def nuisance_moments(fit: Fit) -> tuple[Tensor, Tensor]:
    """Mean and variance of β, in units of `units.f`."""
    one = torch.eye(0 if fit.nuisance is None else len(fit.nuisance.names)).to(fit.kernel_squared)
    return pool(*fit.expected_moments(one.new_zeros(len(fit.kernel_squared), len(one)), one))


def residual_variance(fit: Fit) -> Tensor:
    """Of the errors of f, noise and quadrature, on average over the pairs, in units of `units.f`."""
    variances = [component.given.kappa * component.shape.n.mean() for component in fit.mixture.components]
    return fit.mixture.weights @ torch.cat(variances)


def reduction(fit: Fit) -> Float[Tensor, " N"]:
    """1 - posterior variance / prior variance at the amplitudes that were found."""
    prior = torch.zeros_like(fit.y.value_weights)
    for block, _, given, _ in fit.mixture.components:
        scale = given.weights @ (given.gamma * given.kappa)
        prior = prior + scale * (fit.mixture.features.blocks[block] * given.omega).square().sum(dim=1)
    variance = pool(*fit.mixture.moments(fit.mixture.features.blocks))[1]
    return torch.where(prior > 0, 1 - variance / prior, 0.0).clamp(0, 1)
