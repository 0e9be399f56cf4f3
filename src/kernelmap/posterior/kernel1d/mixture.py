"""What is known of one kernel after its pairs were seen: a mixture of Gaussians, weighed by evidence."""

from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.core.errors import InputError
from kernelmap.posterior.kernel1d.components import Features
from kernelmap.posterior.kernel1d.errors import ErrorShape
from kernelmap.posterior.kernel1d.evidence import Conditioned, Evidence, Whitened, evidence
from kernelmap.posterior.kernel1d.prior import Prior

PRUNED = 1e-4
"""Components of the mixture with a smaller weight are left out."""


Blocks = list[Tensor] | dict[int, Tensor]
"""Features, or linear functionals of them, by the number of their block: each (n, R) with an R of its own."""


class MixtureComponent(NamedTuple):
    """One component, made of one block of features, under one shape of errors; log_odds: of the component before."""

    block: int
    shape: ErrorShape
    given: Conditioned
    log_odds: float = 0.0


class Mixture(NamedTuple):
    """K ~ Σ over components and ratios γ of weight N(mean, covariance), on a grid; all in the units of the engine.

    component_weights: of all components of `features`.
    log_evidence: of the pairs, under the whole prior.
    """

    features: Features
    components: list[MixtureComponent]
    component_weights: Float[Tensor, " K"]
    log_evidence: float

    @property
    def blocks(self) -> set[int]:
        """Numbers of the blocks of features that the components use."""
        return {component.block for component in self.components}

    def with_used_features(self) -> "Mixture":
        """The same with the blocks of features that it uses, with their components before, and no others."""
        number = {block: i for i, block in enumerate(sorted(self.blocks))}
        kept = [i for i, component in enumerate(self.features.components) if component.block in number]
        components = [self.features.components[i] for i in kept]
        features = Features(
            [self.features.blocks[block] for block in number],
            [component._replace(block=number[component.block]) for component in components],
        )
        components = [component._replace(block=number[component.block]) for component in self.components]
        return self._replace(features=features, components=components, component_weights=self.component_weights[kept])

    def moments(self, blocks: Blocks) -> tuple[Tensor, Tensor, Tensor]:
        """Weights (C,), means and variances (C, n) of linear functionals of K, given by those of the features."""
        parts = [component.given.moments(blocks[component.block]) for component in self.components]
        return self.weights, torch.cat([mean for mean, _ in parts]), torch.cat([variance for _, variance in parts])

    def second_moment(self, block: int) -> Float[Tensor, "R R"]:
        """E[x xᵀ] of the weights x of a block's features, if the kernel is made of them."""
        components = [component.given for component in self.components if component.block == block]
        total = sum(float(given.weights.sum()) for given in components)
        return torch.stack([given.second_moment() for given in components]).sum(dim=0) / total

    @property
    def weights(self) -> Float[Tensor, " C"]:
        return torch.cat([component.given.weights for component in self.components])

    def kappas(self) -> Float[Tensor, " C"]:
        return torch.cat([component.given.kappa for component in self.components])

    def log_alpha(self) -> Float[Tensor, " C"]:
        """The amplitude, in every component."""
        return torch.cat([component.given.gamma for component in self.components]).log() + self.kappas().log()

    def error_variance(self, b: Float[Tensor, " n"]) -> Float[Tensor, "C n"]:
        """Of measured responses, in every component, whose jumps have the variance b."""
        jumping = torch.cat(
            [torch.full_like(component.given.weights, component.shape.has_jumps) for component in self.components]
        )
        return self.white_variance()[:, None] + (jumping * self.kappas())[:, None] * b

    def white_variance(self) -> Float[Tensor, " C"]:
        """Of the noise, in every component."""
        return torch.cat([component.shape.nugget * component.given.kappa for component in self.components])


def pool(
    weights: Float[Tensor, " C"], means: Float[Tensor, "C n"], variances: Float[Tensor, "C n"]
) -> tuple[Tensor, Tensor]:
    """Mean and variance of a mixture."""
    mean = weights @ means
    return mean, weights @ (variances + (means - mean).square())


def weigh(
    features: Features,
    responses: Blocks,
    f: Float[Tensor, " d"],
    components: Iterable[int],
    shapes: list[ErrorShape],
    prior: Prior,
    least_noise: float,
) -> Mixture:
    """Condition components under every shape of errors, and weigh them by evidence times prior.

    least_noise: level of the white part of the errors, at least.
    """
    block_of = {index: features.components[index].block for index in components}
    blocks = [(block, list(own)) for block, own in groupby(sorted(block_of), key=block_of.__getitem__)]
    tried: list[tuple[int, Whitened, Evidence, int]] = []
    log_weights = []
    for shape in shapes:
        for block, own in blocks:
            pairs = Whitened.of(responses[block], f, shape)
            omegas = torch.stack([features.components[index].omega for index in own])
            given = evidence(pairs, omegas, prior.amplitude, least_noise**2)
            tried += [(index, pairs, given, number) for number, index in enumerate(own)]
            log_weights.append(given.log_weight)
    numbers = torch.tensor([index for index, *_ in tried], device=f.device)
    log_odds = torch.stack([prior.log_odds[c.odds] + c.log_part for c in features.components])[numbers]
    log_weight = torch.cat(log_weights) + log_odds[:, None]
    weights = log_weight.flatten().softmax(dim=0).reshape(log_weight.shape)
    total = weights[weights > PRUNED].sum()
    found = []
    for (index, pairs, given, number), row, odds in zip(tried, weights, log_odds.tolist(), strict=True):
        chosen = (row > PRUNED).nonzero()[:, 0]
        if len(chosen):
            conditioned = given.conditioned(pairs, number, chosen, row[chosen] / total)
            found.append(MixtureComponent(features.components[index].block, pairs.shape, conditioned, odds))
    if not found:
        raise InputError(
            "the evidence of these pairs is no number for any component of the model. Check the units of u and f, and "
            "whether the model's weights are those that were trained."
        )
    each = f.new_zeros(len(features.components)).index_add(0, numbers, weights.sum(dim=1))
    return Mixture(features, found, each, float(log_weight.logsumexp(dim=(0, 1))))
