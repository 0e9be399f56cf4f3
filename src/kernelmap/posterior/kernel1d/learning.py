"""Learning the prior from systems, pairs alone: expectation-maximisation of odds and hyper-priors.

Learned components: the second moment of the kernels that the generic prior finds from all pairs of every system.

E: fit every system under the present prior; weights of components, amplitudes and noise levels.
M: odds and densities are the mean weights over systems, beside a few systems' worth of the start.
"""

import math
from collections.abc import Iterable

import torch
from torch import Tensor

from kernelmap.core.context import Context
from kernelmap.core.progress import progress
from kernelmap.posterior.kernel1d.components import Component, block_of
from kernelmap.posterior.kernel1d.errors import Density
from kernelmap.posterior.kernel1d.fit import fit
from kernelmap.posterior.kernel1d.mixture import PRUNED, Mixture
from kernelmap.posterior.kernel1d.prior import Kernel1dOptions, Learned, Prior

LEAST_ODDS = 1e-4
"""Components that learning leaves with less are dropped: no training system needed them."""

START_WEIGHT = 1.0
"""The start counts as much as so many systems."""


LEARNED_MASS = 0.5
"""Prior probability of the learned components together: a new system is as likely as not like those of training."""


def learn(prior: Prior, contexts: list[Context], full: list[Context], options: Kernel1dOptions) -> Prior:
    """Odds and hyper-priors of the generic components from contexts, learned components from all pairs of systems."""
    prior = learn_odds(prior, contexts, options.rounds)
    if not options.remainders:
        return prior
    like, families = set(), {}
    for context in progress(full, "Kernels"):
        mixture = fit(context.U, context.F[0], context.y, prior).mixture
        component = likeliest_component(mixture, prior)
        if component is not None:
            like.add(component.odds)
            moment = mixture.second_moment(component.block)
            families.setdefault(block_of(prior.groups, component.odds), []).append(moment)
    moments = torch.stack([torch.stack(families[block]).mean(dim=0) for block in sorted(families)])
    count = len(like) * len(options.remainders)
    own = torch.full((count,), math.log(LEARNED_MASS / count), dtype=torch.float64)
    return prior._replace(
        learned=Learned(moments, tuple(sorted(like)), tuple(options.remainders)),
        log_odds=torch.cat([prior.log_odds + math.log(1 - LEARNED_MASS), own]),
    )


def likeliest_component(mixture: Mixture, prior: Prior) -> Component | None:
    """Of the components with odds of their own, the one that a kernel is most like; none if it has jumps or peaks."""
    count = sum(group.odds for group in prior.groups if not group.alike)
    weights, components = mixture.component_weights.tolist(), mixture.features.components
    found = [(w, component) for w, component in zip(weights, components, strict=True) if component.odds < count]
    weight, likeliest = max(found, key=lambda pair: pair[0], default=(0.0, None))
    return likeliest if weight > PRUNED else None


def learn_odds(prior: Prior, contexts: Iterable[Context], rounds: int) -> Prior:
    """The prior after some rounds; components keep their shapes."""
    start, systems = prior, list(contexts)
    for _ in range(rounds):
        odds = START_WEIGHT * start.log_odds.exp()
        amplitudes, noises = [], []
        for context in progress(systems, "Odds"):
            mixture = fit(context.U, context.F[0], context.y, prior).mixture
            own = torch.tensor([component.odds for component in mixture.features.components])
            odds = odds.index_add(0, own, mixture.component_weights)
            amplitudes.append((mixture.log_alpha(), mixture.weights))
            noises.append((0.5 * mixture.white_variance().log(), mixture.weights))
        amplitude, noise = updated(start.amplitude, amplitudes), updated(start.noise, noises)
        prior = prior._replace(log_odds=(odds / odds.sum()).log(), amplitude=amplitude, noise=noise)
    kept = torch.where(prior.log_odds > math.log(LEAST_ODDS), prior.log_odds, -math.inf)
    return prior._replace(log_odds=kept.log_softmax(dim=0))


def updated(start: Density, found: list[tuple[Tensor, Tensor]]) -> Density:
    """Mean over systems of the weights (C,) of values (C,) on the knots, smoothed over one knot."""
    step = start.knots[1] - start.knots[0]
    counts = START_WEIGHT * step * start.log_density.exp()
    for values, weights in found:
        hats = (1 - ((values[:, None] - start.knots) / step).abs() / 2).clamp(min=0)
        hats = hats / hats.sum(dim=1, keepdim=True).clamp(min=1e-9)
        counts = counts + weights @ hats
    return Density(start.knots, (counts / counts.sum() / step).log())
