"""The map: for every band of x the likeliest hypotheses about K, conditioned on the pairs."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.core.context import Context
from kernelmap.core.domain import ContextShape
from kernelmap.core.errors import InputError
from kernelmap.core.grids import Grid
from kernelmap.core.systems import SystemSet
from kernelmap.maps.probabilistic import ProbabilisticMap
from kernelmap.maps.registry import register
from kernelmap.posterior.integral.generic.bands import Bands
from kernelmap.posterior.integral.generic.evidence import NOISE, TAU, hypotheses, likeliest_amplitude, table
from kernelmap.posterior.integral.generic.mixture import Mixture, Weighted
from kernelmap.posterior.integral.generic.nonlinearity import log_odds_of_nonlinearity
from kernelmap.posterior.integral.generic.pairs import Hypothesis, Pairs
from kernelmap.posterior.integral.generic.posterior import GenericIntegralPosterior

COMPONENTS, LEAST_WEIGHT = 4, 0.02
"""Of a band: the likeliest hypotheses that are kept."""

MANY = 300
"""Points of y, or pairs."""

MOST_VALUES = 5000
"""On a grid: an eigenproblem of this size takes a minute."""


@dataclass(frozen=True)
class GenericIntegralOptions:
    """What is weighed by evidence.

    Attributes:
        smoothness: derivatives of K in y: kernels that jump, have a kink, or are smooth.
        lengths: to an octave; one where there are many points of y, or pairs, and every length costs more.
        homogeneous: whether responses may have a part h(x) that does not depend on u.
    """

    smoothness: tuple[int, ...] = (0, 1, 2, 4)
    lengths: int = 2
    homogeneous: bool = True


@register("integral")
class GenericIntegralMap(ProbabilisticMap):
    """K(x, y) of any system, without training: f = ∫ K(x, y) u(y) dy + h(x) + e.

    K(x, y) = Σ_i v_i(x) Z_i(y), Z_i ~ N(0, a² C_y) with Matérn covariances. For every band of functions v_i, smoothness
    and length in y, a and the size of h are weighed by the evidence of the pairs; so is the noise, of all bands.
    """

    Options = GenericIntegralOptions
    Loss = None
    any_range = True

    def check_context(self, context: Context) -> None:
        self.check_pairs(context.d)
        most = max(context.y.size, context.x.size)
        if most > MOST_VALUES:
            raise InputError(f"the grids may have {MOST_VALUES} values, got {most}; take every second point, or fewer.")

    def posterior(self, context: Context) -> GenericIntegralPosterior:
        context = context.to(torch.float64)
        batch, bands = context.batch_shape, Bands.of(context.x)
        A = context.y.value_weights[:, None] * context.U
        A, F = (v.expand(*batch, *v.shape[-2:]).reshape(-1, *v.shape[-2:]) for v in (A, context.F))
        with torch.no_grad():
            mixtures = [mixture(a, f, context.y, bands, self.options) for a, f in zip(A, F, strict=True)]
        return GenericIntegralPosterior(context, tuple(mixtures))

    @classmethod
    def fit(
        cls, systems: SystemSet | Sequence[Context], d: int, options: GenericIntegralOptions
    ) -> "GenericIntegralMap":
        """Nothing is learned: the map is the same for all systems."""
        if isinstance(systems, SystemSet):
            first = systems.batch(torch.arange(min(d, systems.pairs))[None], torch.arange(1))[0, 0]
        else:
            first = systems[0]
        return cls(ContextShape.of(first), options)


def mixture(
    A: Float[Tensor, "N d"], F: Float[Tensor, "M d"], y: Grid, bands: Bands, options: GenericIntegralOptions
) -> Mixture:
    """Condition on F = K A + h 1ᵀ + e."""
    A_scale, f_scale = root_mean_square(A), root_mean_square(F)
    A, F = A / A_scale, F / f_scale
    pairs = Pairs.of(A, F, y, bands)
    lengths = options.lengths if max(pairs.A.shape) < MANY else 1
    tried = hypotheses(y, options.smoothness, lengths, TAU if options.homogeneous else TAU[:1])
    found = table(pairs, tried)
    level = int(found.logsumexp(dim=1).sum(dim=0).argmax())
    given, s2 = found[..., level], NOISE[level] ** 2
    weighted = [
        part for band, log_weights in enumerate(given) for part in likeliest(pairs, tried, band, log_weights, s2)
    ]
    best = [tried[int(i)] for i in given.argmax(dim=1)]
    return Mixture(pairs, tuple(weighted), A_scale, f_scale, s2, log_odds_of_nonlinearity(A, F, y, bands, best))


def likeliest(
    pairs: Pairs, tried: list[Hypothesis], band: int, log_weights: Float[Tensor, " H"], s2: float
) -> list[Weighted]:
    """The likeliest hypotheses about a band, likeliest first."""
    weights, order = log_weights.softmax(dim=0).sort(descending=True)
    kept = int((weights[:COMPONENTS] >= LEAST_WEIGHT * weights[0]).sum())
    total = float(weights[:kept].sum())
    chosen = [(float(w) / total, tried[int(i)]) for w, i in zip(weights[:kept], order[:kept], strict=True)]
    return [Weighted(band, w, h, likeliest_amplitude(pairs, h, band, s2)) for w, h in chosen]


def root_mean_square(values: Tensor) -> float:
    """Of values whose squares may be too small or too large for a number; 1 for zeros."""
    largest = float(values.abs().max())
    return largest * float((values / largest).square().mean().sqrt()) if largest > 0 else 1.0
