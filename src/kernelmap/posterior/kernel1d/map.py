"""The map: generic and learned components, conditioned on the pairs at hand and weighed by their evidence."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from kernelmap.core.context import Context
from kernelmap.core.domain import ContextShape
from kernelmap.core.errors import InputError
from kernelmap.core.systems import SystemSet, strided_draws
from kernelmap.maps.probabilistic import ProbabilisticMap
from kernelmap.maps.registry import register
from kernelmap.posterior.kernel1d.components import block_of
from kernelmap.posterior.kernel1d.errors import Density
from kernelmap.posterior.kernel1d.learning import learn
from kernelmap.posterior.kernel1d.measured.fit import fit_robust
from kernelmap.posterior.kernel1d.posterior import Kernel1dPosterior
from kernelmap.posterior.kernel1d.prior import Kernel1dOptions, Learned, Prior, starting_prior


@register("kernel1d")
class Kernel1dMap(ProbabilisticMap):
    """K(y) of one coordinate, on radii, lags from 0 on, or both sides of 0, in any units and on any grid.

    K ~ Σ_c π_c N(0, α C_c), f = K diag(w) U + e, e ~ N(0, κ diag(n)): the component c, the amplitude α and the errors
    are integrated over their priors by the evidence of the context. Every output point has a kernel of its own.
    """

    Options = Kernel1dOptions
    Loss = None
    any_range = True
    several_inputs = True
    keep_outliers = False
    """Whether all pairs have errors of the same size, however far they are from what the others say."""

    odds: Tensor
    log_amplitude: Tensor
    log_noise: Tensor
    moments: Tensor

    def __init__(self, shape: ContextShape, options: Kernel1dOptions) -> None:
        super().__init__(shape, options)
        start = starting_prior(options, torch.device("cpu"))
        learned = len(options.remainders) * len(options.learned_like)
        self.register_buffer("odds", torch.cat([start.log_odds.exp(), torch.ones(learned, dtype=torch.float64)]))
        self.register_buffer("log_amplitude", start.amplitude.log_density)
        self.register_buffer("log_noise", start.noise.log_density)
        families = {block_of(start.groups, index) for index in options.learned_like}
        moments = torch.zeros(len(families), options.cosines, options.cosines, dtype=torch.float64)
        self.register_buffer("moments", moments)
        self.double()

    @property
    def parameter_count(self) -> int:
        return sum(learned.numel() for learned in (self.odds, self.log_amplitude, self.log_noise, self.moments))

    @property
    def prior(self) -> Prior:
        start, options = starting_prior(self.options, self.odds.device), self.options
        learned = None
        if options.remainders:
            like, sizes = tuple(options.learned_like), tuple(options.remainders)
            learned = Learned(self.moments.double(), like, sizes)
        return start._replace(
            learned=learned,
            log_odds=(self.odds / self.odds.sum()).double().log(),
            amplitude=Density(start.amplitude.knots, self.log_amplitude.double()),
            noise=Density(start.noise.knots, self.log_noise.double()),
        )

    def check_context(self, context: Context) -> None:
        self.check_pairs(context.d)
        y = context.y
        if y.dim != 1 or y.components != len(context.blocks or (1,)):
            raise InputError(
                "this model finds kernels of one coordinate, such as a radius or a lag; got a grid y with "
                f"{y.dim} coordinate(s) and {y.components} component(s). `kernelmap models` names others."
            )
        if len(y.points) < 4 or not (y.points[:, 0].diff() > 0).all():
            raise InputError("the grid y needs at least 4 points in increasing order; sort them, and the rows of U.")

    def posterior(self, context: Context) -> Kernel1dPosterior:
        context = context.to(torch.float64)
        prior, batch = self.prior, context.batch_shape

        def systems(values: Tensor) -> Tensor:
            return values.expand(*batch, *values.shape[-2:]).reshape(-1, *values.shape[-2:])

        U, F = systems(context.U), systems(context.F)
        stds = [[None] * F.shape[1]] * len(F) if context.F_std is None else systems(context.F_std)
        with torch.no_grad():
            fits = [
                fit_robust(u, row, std, context, prior, self.keep_outliers)
                for u, rows, of_rows in zip(U, F, stds, strict=True)
                for row, std in zip(rows, of_rows, strict=True)
            ]
        return Kernel1dPosterior(fits, context)

    @classmethod
    def fit(cls, systems: SystemSet | Sequence[Context], d: int, options: Kernel1dOptions) -> "Kernel1dMap":
        """Learn odds, hyper-priors and, if wanted, components from pairs alone."""
        if isinstance(systems, SystemSet):
            numbers = torch.arange(len(systems.names))
            contexts, full = (
                [systems.batch(strided_draws(systems.pairs, count)[:1], number[None])[0, 0] for number in numbers]
                for count in (min(d, systems.pairs), min(3 * d, systems.pairs))
            )
        else:
            contexts = full = list(systems)
        with torch.no_grad():
            prior = learn(starting_prior(options, contexts[0].F.device), contexts, full, options)
        if prior.learned is not None:
            options = replace(options, learned_like=prior.learned.like)
        model = cls(ContextShape.of(contexts[0]), options)
        model.odds, model.log_amplitude, model.log_noise = (
            prior.log_odds.exp(),
            prior.amplitude.log_density,
            prior.noise.log_density,
        )
        if prior.learned is not None:
            model.moments = prior.learned.moments
        return model
